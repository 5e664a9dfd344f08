//! Phantoms: ellipses and ellipsoids with closed-form Fourier transforms.

mod transform;

pub(crate) use transform::Evaluator;

use ndarray::Array3;
use rayon::prelude::*;
use rayspin_core::{C64, Error, Result};
use rayspin_device::cpu::Stop;
use rayspin_imaging::phantom;
use rayspin_imaging::phantom::Change;
pub use rayspin_imaging::phantom::{Contrast, Ellipsoid};

/// ρ(x) = Σ_e A_e · 1[x in ellipsoid e], on a field of view of width 1 centred on 0.
///
/// ```
/// use rayspin_mri::simulate::{Ellipsoid, Phantom};
///
/// let disc = Ellipsoid { intensity: 2.0, semi_axes: [0.25; 3], centre: [0.1, 0.0, 0.0], angle: 0.0 };
/// let phantom = Phantom::new(2, vec![disc])?;
/// assert_eq!((phantom.intensity(&[0.1, 0.2]), phantom.intensity(&[-0.2, 0.0])), (2.0, 0.0));
/// let area = std::f64::consts::PI * 0.25 * 0.25;
/// assert!((phantom.transform(&[0.0, 0.0]) - 2.0 * area).norm() < 1e-12); // the integral
/// # Ok::<(), rayspin_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Phantom {
    dims: usize,
    parts: Vec<Ellipsoid>,
    /// What changes of each part with time.
    changes: Vec<Change>,
}

/// What is scanned.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Object {
    /// The head of Shepp and Logan.
    #[default]
    SheppLogan,
    /// A thorax at the height of the heart.
    Thorax,
}

/// Sub-lines per voxel along y and z when rasterising.
const SUBLINES: usize = 8;

impl Phantom {
    /// A phantom of `dims` = 2 or 3 dimensions from any ellipsoids.
    ///
    /// Errors: other dimensions, no part, a semi-axis that is not positive, a number that is not finite.
    pub fn new(dims: usize, parts: Vec<Ellipsoid>) -> Result<Self> {
        if dims != 2 && dims != 3 {
            return Err(Error::value("phantom dimensions", "2 or 3", dims));
        }
        if parts.is_empty() {
            return Err(Error::value("phantom", "at least one ellipsoid", "none"));
        }
        for (index, part) in parts.iter().enumerate() {
            let numbers = [part.intensity, part.angle]
                .into_iter()
                .chain(part.semi_axes[..dims].iter().copied())
                .chain(part.centre[..dims].iter().copied());
            if let Some(bad) = numbers.into_iter().find(|v| !v.is_finite()) {
                return Err(Error::NotFinite {
                    what: "phantom ellipsoid".into(),
                    index,
                    found: bad.to_string(),
                });
            }
            if let Some(bad) = part.semi_axes[..dims].iter().find(|a| **a <= 0.0) {
                return Err(Error::value(
                    format!("semi-axis of phantom ellipsoid {index}"),
                    "a positive length",
                    bad,
                ));
            }
        }
        Ok(Self { dims, changes: vec![Change::default(); parts.len()], parts })
    }

    /// The 2-D Shepp–Logan head, ten ellipses, upright: top of the head at small y.
    pub fn shepp_logan_2d(contrast: Contrast) -> Self {
        Self::head(2, phantom::shepp_logan_2d(contrast))
    }

    /// The 3-D Shepp–Logan head, ten ellipsoids; its axial slices show the front of the head at small y.
    pub fn shepp_logan_3d(contrast: Contrast) -> Self {
        Self::head(3, phantom::shepp_logan_3d(contrast))
    }

    /// A head whose two dark ellipses beat, and whose fifth part takes contrast agent.
    fn head(dims: usize, parts: Vec<Ellipsoid>) -> Self {
        let change =
            |part| Change { beat: if matches!(part, 2 | 3) { 0.3 } else { 0.0 }, enhances: part == 4 };
        Self { dims, changes: (0..parts.len()).map(change).collect(), parts }
    }

    /// A thorax at the height of the heart, a slice (`dims` = 2) or a volume.
    pub fn thorax(dims: usize) -> Self {
        let (parts, changes) = phantom::thorax().into_iter().unzip();
        Self { dims, parts, changes }
    }

    /// An object in `dims` = 2 or 3 dimensions. The contrast is the head's.
    pub(super) fn of_object(object: Object, dims: usize, contrast: Contrast) -> Self {
        match (object, dims) {
            (Object::Thorax, _) => Self::thorax(dims),
            (Object::SheppLogan, 2) => Self::shepp_logan_2d(contrast),
            (Object::SheppLogan, _) => Self::shepp_logan_3d(contrast),
        }
    }

    /// The phantom with each part as `change` makes it.
    pub(super) fn changed(&self, change: impl Fn(&Ellipsoid, &Change) -> Ellipsoid) -> Result<Self> {
        let parts = self.parts.iter().zip(&self.changes).map(|(part, how)| change(part, how)).collect();
        Ok(Self { changes: self.changes.clone(), ..Self::new(self.dims, parts)? })
    }

    /// 2 or 3.
    pub fn dims(&self) -> usize {
        self.dims
    }

    /// Its ellipsoids; the first is the outline of the object.
    pub fn parts(&self) -> &[Ellipsoid] {
        &self.parts
    }

    /// The 2-D cross-section of a 3-D phantom at height z (fields of view): an ellipsoid with rotation about
    /// z only is cut in an ellipse with semi-axes (a, b)·√(1 − ((z − z₀)/c)²). Empty where z cuts no
    /// ellipsoid. Errors: the phantom is 2-D.
    pub fn slice(&self, z: f64) -> Result<Self> {
        if self.dims != 3 {
            return Err(Error::value("cross-section", "a 3-D phantom", "a 2-D phantom"));
        }
        let (parts, changes) = self
            .parts
            .iter()
            .zip(&self.changes)
            .filter_map(|(part, change)| {
                let height = (z - part.centre[2]) / part.semi_axes[2];
                let scale = (1.0 - height * height).max(0.0).sqrt();
                let ellipse = Ellipsoid {
                    semi_axes: [part.semi_axes[0] * scale, part.semi_axes[1] * scale, 1.0],
                    centre: [part.centre[0], part.centre[1], 0.0],
                    ..*part
                };
                (scale > 0.0).then_some((ellipse, *change))
            })
            .unzip();
        Ok(Self { dims: 2, parts, changes })
    }

    /// ρ(x) at a point in fields of view, `x` in the order x, y, z.
    pub fn intensity(&self, x: &[f64]) -> f64 {
        self.parts.iter().filter(|part| contains(part, x, self.dims)).map(|part| part.intensity).sum()
    }

    /// Whether a point lies inside the outline (the first ellipsoid).
    pub fn outline_contains(&self, x: &[f64]) -> bool {
        self.parts.first().is_some_and(|part| contains(part, x, self.dims))
    }

    /// ρ̂(k) = ∫ ρ(x) e^{−i2πk·x} dx at k in cycles per field of view, exactly (to about 1e-14 of the largest
    /// value).
    ///
    /// An ellipse contributes A·ab·J₁(2πK)/K and an ellipsoid A·abc·(sin 2πK − 2πK cos 2πK)/(2π²K³), times
    /// e^{−i2πk·c} for its centre c. K = |(a k_u, b k_v, c k_w)| in its own axes. Sources: Van de Walle et
    /// al., IEEE Trans Med Imaging 19:1160, 2000; Koay et al., Magn Reson Med 58:430, 2007.
    pub fn transform(&self, k: &[f64]) -> C64 {
        let mut point = [0.0; 3];
        for (to, from) in point.iter_mut().zip(k).take(self.dims) {
            *to = *from;
        }
        let mut out = [C64::default()];
        Evaluator::new(self, &[[0.0; 3]], 0.0).evaluate(point, &mut out);
        out[0]
    }

    /// The mean of ρ over each voxel of a `[z, y, x]` matrix whose voxel (n/2, n/2, n/2) is centred on 0.
    ///
    /// Along x the mean is exact (chords of ellipsoids); along y and z it is the midpoint rule with 8 lines a
    /// voxel. A 2-D phantom fills every z alike. Rows that are left where the caller [stops](Stop) are 0.
    pub fn voxel_means(&self, shape_zyx: [usize; 3]) -> Array3<f64> {
        let [nz, ny, nx] = shape_zyx;
        let mut image = Array3::zeros((nz, ny, nx));
        let z_lines = if self.dims == 3 { SUBLINES } else { 1 };
        let weight = 1.0 / (SUBLINES * z_lines) as f64;
        let position = |index: usize, line: usize, lines: usize, n: usize| {
            (index as f64 - (n / 2) as f64 - 0.5 + (line as f64 + 0.5) / lines as f64) / n as f64
        };
        let mut rows: Vec<_> = image.rows_mut().into_iter().collect();
        let stop = Stop::of_caller();
        rows.par_iter_mut().enumerate().filter(|_| !stop.is_set()).for_each(|(row_index, row)| {
            let (iz, iy) = (row_index / ny.max(1), row_index % ny.max(1));
            for (sz, sy) in (0..z_lines).flat_map(|sz| (0..SUBLINES).map(move |sy| (sz, sy))) {
                let z = position(iz, sz, z_lines, nz);
                let y = position(iy, sy, SUBLINES, ny);
                for part in &self.parts {
                    if let Some((from, to)) = chord(part, y, z, self.dims) {
                        let edge = |x: f64| x * nx as f64 + (nx / 2) as f64 + 0.5;
                        add_interval(row, edge(from), edge(to), part.intensity * weight);
                    }
                }
            }
        });
        image
    }
}

/// Adds `value` × (length of [from, to] inside the cell) to each cell [i, i+1) of a row.
fn add_interval(row: &mut ndarray::ArrayViewMut1<'_, f64>, from: f64, to: f64, value: f64) {
    let n = row.len();
    let (from, to) = (from.clamp(0.0, n as f64), to.clamp(0.0, n as f64));
    let (first, last) = (from.floor() as usize, to.ceil() as usize);
    for cell in first..last.min(n) {
        let inside = to.min(cell as f64 + 1.0) - from.max(cell as f64);
        row[cell] += value * inside.max(0.0);
    }
}

fn contains(part: &Ellipsoid, x: &[f64], dims: usize) -> bool {
    let (sin, cos) = part.angle.sin_cos();
    let d: [f64; 3] = std::array::from_fn(|axis| x.get(axis).map_or(0.0, |v| v - part.centre[axis]));
    let u = (cos * d[0] + sin * d[1]) / part.semi_axes[0];
    let v = (cos * d[1] - sin * d[0]) / part.semi_axes[1];
    let w = if dims == 3 { d[2] / part.semi_axes[2] } else { 0.0 };
    u * u + v * v + w * w <= 1.0
}

/// The interval of x inside the ellipsoid on the line at (y, z).
fn chord(part: &Ellipsoid, y: f64, z: f64, dims: usize) -> Option<(f64, f64)> {
    let (sin, cos) = part.angle.sin_cos();
    let dy = y - part.centre[1];
    let w = if dims == 3 { (z - part.centre[2]) / part.semi_axes[2] } else { 0.0 };
    let [ia, ib] = [1.0 / part.semi_axes[0], 1.0 / part.semi_axes[1]];
    // |(cos·t + sin·dy)/a|² + |(cos·dy − sin·t)/b|² + w² = 1 is a quadratic in t = x − x₀.
    let (u1, u0) = (cos * ia, sin * dy * ia);
    let (v1, v0) = (-sin * ib, cos * dy * ib);
    let a = u1 * u1 + v1 * v1;
    let half_b = u1 * u0 + v1 * v0;
    let c = u0 * u0 + v0 * v0 + w * w - 1.0;
    let discriminant = half_b * half_b - a * c;
    (discriminant > 0.0).then(|| {
        let root = discriminant.sqrt();
        (part.centre[0] + (-half_b - root) / a, part.centre[0] + (-half_b + root) / a)
    })
}

#[cfg(test)]
pub(crate) mod tests;
