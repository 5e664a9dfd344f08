//! Where rays run in a CT scan: sources, detectors and the volume that they cross.
//!
//! The coordinates are the scanner's, right-handed and in mm. The axis of rotation is z and passes through
//! the origin. At angle 0 rays run along +y, the columns of the detector are numbered along +x and its rows
//! along +z. The angle grows from x to y: counter-clockwise, seen from +z.

mod orbit;
mod volume;

use serde::{Deserialize, Serialize};

use crate::vector::{add, cross, dot, norm, scaled, sub};
use crate::{Error, Result, voxels};
pub use orbit::Orbit;
pub use volume::VolumeGrid;

/// Where the rays of a view come from.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RaySource {
    /// All rays start at this point, mm: fan and cone beams.
    Point([f64; 3]),
    /// All rays run along this unit vector: parallel beams.
    Direction([f64; 3]),
}

/// Where source and detector are in one view.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct View {
    /// Where the rays come from.
    pub source: RaySource,
    /// The middle of the detector, mm.
    pub detector_mm: [f64; 3],
    /// The unit vector along which columns are numbered.
    pub u: [f64; 3],
    /// The unit vector along which rows are numbered; at right angles to `u`, but for a detector that is
    /// skewed.
    pub v: [f64; 3],
}

/// The pixels of a detector.
///
/// On a flat detector the centre of pixel (row, column) lies at `detector + (column − (columns − 1)/2) ·
/// pitch_u · u + (row − (rows − 1)/2) · pitch_v · v`. A curved one is bent around a line along v, at its
/// radius in front of its middle, and lengths along u are lengths of arc.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Detector {
    /// Number of rows, along v.
    pub rows: usize,
    /// Number of columns, along u.
    pub columns: usize,
    /// Distance between the centres of neighbouring pixels along u and v, mm.
    pub pitch_mm: [f64; 2],
    /// Radius of a curved detector, mm; none where it is flat. The middle line of a detector that is curved
    /// around the source lies one radius from it.
    pub radius_mm: Option<f64>,
}

/// The rays of a CT scan: a [`Detector`] and its place in each [`View`]. Flying focal spots, tilted and
/// shifted detectors, helices and any other path are views like others.
///
/// Projections are arrays `[view, row, column]`.
///
/// ```
/// use rayspin_core::{Detector, Orbit, ProjectionGeometry};
///
/// let detector = Detector { rows: 3, columns: 5, pitch_mm: [2.0, 2.0], radius_mm: None };
/// let orbit = Orbit { source_to_axis_mm: Some(600.0), axis_to_detector_mm: 400.0, ..Orbit::default() };
/// let geometry = ProjectionGeometry::orbit(detector, &orbit.turn(8))?;
/// assert_eq!(geometry.shape(), [8, 3, 5]);
/// // At angle 0 the source is on the negative y axis; the last pixel of the first row is at +x and −z.
/// assert_eq!(geometry.ray(0, 0, 4), ([0.0, -600.0, 0.0], [4.0, 400.0, -2.0]));
/// # Ok::<(), rayspin_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProjectionGeometry {
    detector: Detector,
    views: Vec<View>,
}

/// How far vectors may be from unit length and from a right angle.
const UNIT: f64 = 1e-6;
/// The least sine of the angle between rows and columns of pixels: of less than a degree, places along them
/// lose their meaning.
const LEAST_SINE: f64 = 0.017;

impl ProjectionGeometry {
    /// A geometry of any `views`.
    ///
    /// Errors:
    ///
    /// - No views or pixels, or more pixels than an array may have.
    /// - Lengths that are not positive, or numbers that are not finite.
    /// - Vectors that are not of unit length, lie along one line, or are not at right angles on a curved
    ///   detector.
    /// - Parallel and diverging rays in one scan.
    /// - A source in the plane of its detector, or rays along the detector.
    /// - A detector that is bent by a full turn or more.
    pub fn new(detector: Detector, views: Vec<View>) -> Result<Self> {
        let geometry = Self { detector, views };
        geometry.check_detector()?;
        let parallel = geometry.is_parallel();
        for (index, view) in geometry.views.iter().enumerate() {
            view.check(index, parallel, detector.radius_mm.is_some())?;
        }
        Ok(geometry)
    }

    fn check_detector(&self) -> Result<()> {
        let Detector { rows, columns, pitch_mm, radius_mm } = self.detector;
        if self.views.is_empty() {
            return Err(Error::value("views", "at least one", "none"));
        }
        if voxels(&self.shape())? == 0 {
            return Err(Error::value(
                "detector",
                "at least one row and column",
                format!("{rows} × {columns}"),
            ));
        }
        if pitch_mm.iter().any(|p| !p.is_finite() || *p <= 0.0) {
            return Err(Error::value(
                "distance between pixels",
                "positive lengths in mm",
                format!("{pitch_mm:?}"),
            ));
        }
        if let Some(radius) = radius_mm {
            let arc = columns as f64 * pitch_mm[0];
            if !(radius.is_finite() && radius > 0.0 && arc < std::f64::consts::TAU * radius) {
                let expected = format!(
                    "more than {} mm, so that {columns} columns are less than a turn",
                    arc / std::f64::consts::TAU
                );
                return Err(Error::value("radius of the detector", expected, radius));
            }
        }
        Ok(())
    }

    /// The detector.
    pub fn detector(&self) -> &Detector {
        &self.detector
    }

    /// The views.
    pub fn views(&self) -> &[View] {
        &self.views
    }

    /// The shape of projections, `[view, row, column]`.
    pub fn shape(&self) -> [usize; 3] {
        [self.views.len(), self.detector.rows, self.detector.columns]
    }

    /// Whether all rays of a view are parallel.
    pub fn is_parallel(&self) -> bool {
        matches!(self.views.first(), Some(View { source: RaySource::Direction(_), .. }))
    }

    /// The geometry of some of the views, in this order.
    ///
    /// Errors: no views, or a view that does not exist.
    pub fn select(&self, views: impl IntoIterator<Item = usize>) -> Result<Self> {
        let count = self.views.len();
        let chosen = views.into_iter().map(|view| {
            let pose = self.views.get(view).copied();
            pose.ok_or_else(|| Error::value("view", format!("one of 0 to {}", count - 1), view))
        });
        Self::new(self.detector, chosen.collect::<Result<_>>()?)
    }

    /// The centre of a pixel, mm. Rows and columns may lie between pixels and beyond the detector.
    pub fn pixel_mm(&self, view: usize, row: f64, column: f64) -> [f64; 3] {
        let Detector { rows, columns, pitch_mm, radius_mm } = self.detector;
        let View { detector_mm, u, v, .. } = self.views[view];
        let along_u = (column - 0.5 * (columns - 1) as f64) * pitch_mm[0];
        let along_v = (row - 0.5 * (rows - 1) as f64) * pitch_mm[1];
        let (along_u, forward) = match radius_mm {
            None => (along_u, 0.0),
            Some(radius) => {
                let angle = along_u / radius;
                (radius * angle.sin(), radius * (1.0 - angle.cos()))
            }
        };
        let flat = add(detector_mm, add(scaled(u, along_u), scaled(v, along_v)));
        match forward == 0.0 {
            true => flat,
            false => add(flat, scaled(self.views[view].towards_source(), forward)),
        }
    }

    /// The ends of the ray that a pixel measures, mm: the source, and the centre of the pixel. A ray of a
    /// parallel beam starts anywhere on its line, here 1 mm before the pixel.
    pub fn ray(&self, view: usize, row: usize, column: usize) -> ([f64; 3], [f64; 3]) {
        let pixel = self.pixel_mm(view, row as f64, column as f64);
        match self.views[view].source {
            RaySource::Point(source) => (source, pixel),
            RaySource::Direction(direction) => (sub(pixel, direction), pixel),
        }
    }

    /// The row and column at which the ray through a point meets the detector; none where the point lies
    /// beside or behind the source, or where its ray does not meet a curved detector. `project` of a point of
    /// a ray of [`pixel_mm`](Self::pixel_mm) is its pixel.
    pub fn project(&self, view: usize, point_mm: [f64; 3]) -> Option<[f64; 2]> {
        let Detector { rows, columns, pitch_mm, radius_mm } = self.detector;
        let pose = &self.views[view];
        let ([u, v], normal) = (pose.measures(), pose.towards_source());
        // In the detector's own axes: a point, and the direction of its ray.
        let local = |p: [f64; 3]| [dot(p, u), dot(p, v), dot(p, normal)];
        let point = local(sub(point_mm, pose.detector_mm));
        let along = match pose.source {
            RaySource::Direction(direction) => local(direction),
            RaySource::Point(source) => {
                let from = local(sub(source, pose.detector_mm));
                sub(point, from)
            }
        };
        // Rays run towards the detector, against its normal.
        if along[2] >= 0.0 {
            return None;
        }
        let (s, arc) = match radius_mm {
            None => (-point[2] / along[2], None),
            Some(radius) => {
                // |(u, normal) − (0, radius)| = radius, at the far side.
                let (a, b) = ([point[0], point[2] - radius], [along[0], along[2]]);
                let (bb, ab) = (b[0] * b[0] + b[1] * b[1], a[0] * b[0] + a[1] * b[1]);
                let root = ab * ab - bb * (a[0] * a[0] + a[1] * a[1] - radius * radius);
                if root < 0.0 {
                    return None;
                }
                let s = (root.sqrt() - ab) / bb;
                let (x, y) = (a[0] + s * b[0], -(a[1] + s * b[1]));
                (s, Some(radius * x.atan2(y)))
            }
        };
        let across = arc.unwrap_or(point[0] + s * along[0]);
        let height = point[1] + s * along[1];
        Some([
            height / pitch_mm[1] + 0.5 * (rows - 1) as f64,
            across / pitch_mm[0] + 0.5 * (columns - 1) as f64,
        ])
    }
}

impl View {
    /// The unit normal of the detector on the side of the source.
    pub fn towards_source(&self) -> [f64; 3] {
        let normal = self.normal();
        let side = match self.source {
            RaySource::Point(source) => dot(sub(source, self.detector_mm), normal),
            RaySource::Direction(direction) => -dot(direction, normal),
        };
        if side < 0.0 { scaled(normal, -1.0) } else { normal }
    }

    fn normal(&self) -> [f64; 3] {
        let normal = cross(self.u, self.v);
        if self.is_square() { normal } else { scaled(normal, 1.0 / norm(normal)) }
    }

    /// Whether rows and columns of pixels are at right angles.
    pub fn is_square(&self) -> bool {
        dot(self.u, self.v).abs() <= UNIT
    }

    /// Fails unless rows and columns of pixels are at right angles. `index` is the number of the view.
    ///
    /// Errors: a skewed detector. The message ends with the `context`, such as " for TIGRE".
    pub fn expect_square(&self, index: usize, context: &str) -> Result<()> {
        if self.is_square() {
            return Ok(());
        }
        let angle = format!("{:.3} degrees between them", dot(self.u, self.v).acos().to_degrees());
        Err(Error::value(
            format!("rays of view {index}{context}"),
            "rows and columns of pixels at right angles",
            angle,
        ))
    }

    /// What measures places on the detector: of a point p in its plane, (p − detector)·measure are the
    /// lengths along u and v that lead to p. These are u and v themselves where they are at right angles.
    pub fn measures(&self) -> [[f64; 3]; 2] {
        if self.is_square() {
            return [self.u, self.v];
        }
        let slant = dot(self.u, self.v);
        let dual = |a, b| scaled(sub(a, scaled(b, slant)), 1.0 / (1.0 - slant * slant));
        [dual(self.u, self.v), dual(self.v, self.u)]
    }

    fn check(&self, index: usize, parallel: bool, curved: bool) -> Result<()> {
        let fail = |expected: &str, given: String| {
            Err(Error::value(format!("rays of view {index}"), expected, given))
        };
        let (u, v, middle) = (self.u, self.v, self.detector_mm);
        let source = match self.source {
            RaySource::Point(point) => point,
            RaySource::Direction(direction) => direction,
        };
        if [source, middle, u, v].iter().flatten().any(|x| !x.is_finite()) {
            return fail("finite numbers", format!("{self:?}"));
        }
        if matches!(self.source, RaySource::Direction(_)) != parallel {
            return fail("rays that are parallel in all views or in none", format!("{:?}", self.source));
        }
        let unit = |x: [f64; 3]| (norm(x) - 1.0).abs() <= UNIT;
        if !unit(u) || !unit(v) || norm(cross(u, v)) <= LEAST_SINE {
            return fail("u and v of unit length in different directions", format!("u {u:?}, v {v:?}"));
        }
        if curved {
            self.expect_square(index, " on a curved detector")?;
        }
        let normal = self.normal();
        match self.source {
            RaySource::Direction(direction) if !unit(direction) => {
                fail("a direction of unit length", format!("{direction:?}"))
            }
            RaySource::Direction(direction) if dot(direction, normal).abs() <= UNIT => {
                fail("rays that meet the detector", format!("rays along it, {direction:?}"))
            }
            RaySource::Point(point) => {
                let (away, distance) = (sub(point, middle), dot(sub(point, middle), normal).abs());
                match distance > UNIT * norm(away) && distance > 0.0 {
                    true => Ok(()),
                    false => fail(
                        "a source away from the plane of the detector",
                        format!("a source in it, {point:?}"),
                    ),
                }
            }
            RaySource::Direction(_) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
