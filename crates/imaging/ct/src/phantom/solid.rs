use rayspin_core::{Error, Result};

/// The form of a [`Solid`] in its own axes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Form {
    /// (x/a)² + (y/b)² + (z/c)² ≤ 1
    Ellipsoid,
    /// (x/a)² + (y/b)² ≤ 1 and |z| ≤ c
    Cylinder,
    /// |x| ≤ a, |y| ≤ b and |z| ≤ c
    Box,
    /// (x/a)² + (y/b)² ≤ r(z)² and |z| ≤ c, with r growing linearly from 1 at z = −c to this number, not
    /// negative, at z = c.
    Cone(f64),
}

/// A part of space on one side of a plane: the points with normal · point ≤ offset.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HalfSpace {
    /// The outward normal, in the scanner's axes.
    pub normal: [f64; 3],
    /// normal · point on the plane, mm.
    pub offset_mm: f64,
}

/// A convex body of one attenuation.
#[derive(Debug, Clone, PartialEq)]
pub struct Solid {
    /// Its form.
    pub form: Form,
    /// Its centre, (x, y, z) in mm.
    pub centre_mm: [f64; 3],
    /// Half its lengths a, b, c along its own axes, mm. A length may be infinite.
    pub half_mm: [f64; 3],
    /// Its own axes: unit vectors at right angles, in the scanner's axes.
    pub axes: [[f64; 3]; 3],
    /// Half-spaces that it is cut to.
    pub cuts: Vec<HalfSpace>,
    /// What it adds to the attenuation, 1/mm.
    pub attenuation: f64,
}

/// Unit vectors may be off by this much.
const UNIT: f64 = 1e-6;

// Written out here and below: a compiler that optimises little makes calls of closures and iterators.
fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

impl Solid {
    /// A solid along the scanner's axes.
    pub fn new(form: Form, centre_mm: [f64; 3], half_mm: [f64; 3], attenuation: f64) -> Self {
        let axes = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];
        Self { form, centre_mm, half_mm, axes, cuts: Vec::new(), attenuation }
    }

    /// The same solid turned around z, counter-clockwise seen from +z, by an angle in radian.
    #[must_use]
    pub fn turned(mut self, angle: f64) -> Self {
        let (sin, cos) = angle.sin_cos();
        self.axes = self.axes.map(|[x, y, z]| [cos * x - sin * y, sin * x + cos * y, z]);
        self
    }

    /// The same solid without what lies beyond a plane.
    #[must_use]
    pub fn cut(mut self, normal: [f64; 3], offset_mm: f64) -> Self {
        self.cuts.push(HalfSpace { normal, offset_mm });
        self
    }

    /// Fails unless lengths are positive, axes are orthonormal and numbers are finite.
    pub fn check(&self) -> Result<()> {
        let fail = |expected: &str, found: String| Err(Error::value("solid of a phantom", expected, found));
        if self.half_mm.iter().any(|h| h.is_nan() || *h <= 0.0) {
            return fail("positive half lengths in mm", format!("{:?}", self.half_mm));
        }
        if let Form::Cone(top) = self.form
            && !(top.is_finite() && top >= 0.0)
        {
            return fail("a radius of a cone that is not negative", top.to_string());
        }
        let finite = self.centre_mm.iter().all(|c| c.is_finite()) && self.attenuation.is_finite();
        let cuts = self
            .cuts
            .iter()
            .all(|cut| cut.offset_mm.is_finite() && (dot(cut.normal, cut.normal).sqrt() - 1.0).abs() <= UNIT);
        if !finite || !cuts {
            return fail("finite numbers, and normals of unit length", format!("{self:?}"));
        }
        let pairs = (0..3).flat_map(|i| (0..3).map(move |j| (i, j)));
        let orthonormal = pairs.into_iter().all(|(i, j)| {
            let wanted = if i == j { 1.0 } else { 0.0 };
            (dot(self.axes[i], self.axes[j]) - wanted).abs() <= UNIT
        });
        if orthonormal { Ok(()) } else { fail("orthonormal axes", format!("{:?}", self.axes)) }
    }

    fn relative(&self, point: [f64; 3]) -> [f64; 3] {
        let [x, y, z] = self.centre_mm;
        [point[0] - x, point[1] - y, point[2] - z]
    }

    /// A vector along its own axes, in half lengths.
    fn own(&self, vector: [f64; 3]) -> [f64; 3] {
        let ([u, v, w], [a, b, c]) = (self.axes, self.half_mm);
        [dot(vector, u) / a, dot(vector, v) / b, dot(vector, w) / c]
    }

    /// The range of t in which `start + t·along` lies in the solid; none where the line misses it.
    pub fn chord(&self, start: [f64; 3], along: [f64; 3]) -> Option<[f64; 2]> {
        let (p, d) = (self.own(self.relative(start)), self.own(along));
        // Axes of the round part and of the flat ends.
        let (round, flat) = match self.form {
            Form::Ellipsoid => (3, 3),
            Form::Cylinder | Form::Cone(_) => (2, 2),
            Form::Box => (0, 0),
        };
        let mut range = [f64::NEG_INFINITY, f64::INFINITY];
        let mut within = |low: f64, high: f64| {
            range = [range[0].max(low), range[1].min(high)];
            range[0] < range[1]
        };
        for axis in flat..3 {
            let (p, d) = (p[axis], d[axis]);
            let [one, other] = [(-1.0 - p) / d, (1.0 - p) / d];
            let inside = if d == 0.0 { p.abs() <= 1.0 } else { within(one.min(other), one.max(other)) };
            if !inside {
                return None;
            }
        }
        if round > 0 {
            let sum = |f: fn(f64, f64) -> f64| (0..round).map(|axis| f(p[axis], d[axis])).sum::<f64>();
            // The radius where the line starts, and its growth along the line.
            let (radius, growth) = match self.form {
                Form::Cone(top) => {
                    let slope = 0.5 * (top - 1.0);
                    (0.5 * (top + 1.0) + slope * p[2], slope * d[2])
                }
                _ => (1.0, 0.0),
            };
            let a = sum(|_, d| d * d) - growth * growth;
            let b = sum(|p, d| p * d) - radius * growth;
            let c = sum(|p, _| p * p) - radius * radius;
            if let Form::Cone(_) = self.form {
                return self.cut_chord(cone([a, b, c], range)?, start, along);
            }
            if a == 0.0 {
                if c > 0.0 {
                    return None;
                }
            } else {
                let root = b * b - a * c;
                if root <= 0.0 || !within((-b - root.sqrt()) / a, (-b + root.sqrt()) / a) {
                    return None;
                }
            }
        }
        self.cut_chord(range, start, along)
    }

    /// The part of a range that the cuts leave.
    fn cut_chord(&self, mut range: [f64; 2], start: [f64; 3], along: [f64; 3]) -> Option<[f64; 2]> {
        for cut in &self.cuts {
            let (p, d) = (dot(start, cut.normal) - cut.offset_mm, dot(along, cut.normal));
            match d {
                0.0 if p > 0.0 => return None,
                0.0 => {}
                d if d > 0.0 => range[1] = range[1].min(-p / d),
                d => range[0] = range[0].max(-p / d),
            }
        }
        (range[0] < range[1]).then_some(range)
    }

    /// Whether a point lies in the solid.
    pub fn contains(&self, point: [f64; 3]) -> bool {
        let [x, y, z] = self.own(self.relative(point));
        let inside = match self.form {
            Form::Ellipsoid => x * x + y * y + z * z <= 1.0,
            Form::Cylinder => x * x + y * y <= 1.0 && z.abs() <= 1.0,
            Form::Box => x.abs().max(y.abs()).max(z.abs()) <= 1.0,
            Form::Cone(top) => {
                let radius = 0.5 * (top + 1.0) + 0.5 * (top - 1.0) * z;
                x * x + y * y <= radius * radius && z.abs() <= 1.0
            }
        };
        inside && self.cuts.iter().all(|cut| dot(point, cut.normal) <= cut.offset_mm)
    }
}

/// The part of `range` in which at² + 2bt + c ≤ 0, for a cone within its ends: it is convex, so that this is
/// one interval.
fn cone([a, b, c]: [f64; 3], range: [f64; 2]) -> Option<[f64; 2]> {
    let clip = |low: f64, high: f64| {
        let part = [range[0].max(low), range[1].min(high)];
        (part[0] < part[1]).then_some(part)
    };
    let root = b * b - a * c;
    if a == 0.0 {
        // Parallel to the surface.
        return match b {
            0.0 if c > 0.0 => None,
            0.0 => clip(f64::NEG_INFINITY, f64::INFINITY),
            b if b > 0.0 => clip(f64::NEG_INFINITY, -0.5 * c / b),
            b => clip(-0.5 * c / b, f64::INFINITY),
        };
    }
    if root <= 0.0 {
        return if a > 0.0 { None } else { clip(f64::NEG_INFINITY, f64::INFINITY) };
    }
    let (one, other) = ((-b - root.sqrt()) / a, (-b + root.sqrt()) / a);
    match a > 0.0 {
        true => clip(one, other),
        false => clip(f64::NEG_INFINITY, other).or_else(|| clip(one, f64::INFINITY)),
    }
}
