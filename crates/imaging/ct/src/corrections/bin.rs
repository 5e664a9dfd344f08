//! Bins: neighbouring views, rows and columns become one.
//!
//! ```text
//! q(a, b, c) = mean of p over views av … av + v − 1, rows br … br + r − 1, columns cw … cw + w − 1
//! ```
//!
//! Counts are averaged before the logarithm, as one larger pixel would count them. Line integrals p become
//! −ln of the mean of e^(−p). Pixels at the end that fill no bin are left out. The pixels that remain are
//! larger, and the detector's middle moves by half of those left out.

use ndarray::{Array3, ArrayViewMut2, Axis, s};
use rayon::prelude::*;
use rayspin_core::{Error, ProjectionGeometry, RaySource, Result, View};
use rayspin_device::Device;
use rayspin_run::{About, Param, Value, params};

use super::{ActsOn, Content, Correction, GROUP, Views};

const fn bins(help: &'static str) -> Param {
    Param::new(GROUP, help)
        .expects("1 to 64", |v| matches!(v, Value::Count(1..=64)))
        .remedies(&[(&["bin"], "`--bin-views`, `--bin-rows` and `--bin-columns` set how many become one")])
}

params! {
    /// Neighbouring views, rows and columns become one.
    pub struct Bin {
        /// Views that become one.
        bin_views: usize = 1 => bins("Views that become one"),
        /// Rows that become one.
        bin_rows: usize = 1 => bins("Rows of the detector that become one"),
        /// Columns that become one.
        bin_columns: usize = 1 => bins("Columns of the detector that become one"),
    }
}

impl Correction for Bin {
    fn about(&self) -> About {
        About { name: "bin", help: "Neighbouring views, rows and columns become one" }
    }

    fn acts_on(&self) -> ActsOn {
        ActsOn::Measured
    }

    fn check(&self) -> Result<()> {
        match Correction::bins(self) {
            [1, 1, 1] => Err(Error::value("bin", "2 or more views, rows or columns that become one", 1)),
            _ => Ok(()),
        }
    }

    fn alone(&self, _: usize) -> bool {
        false
    }

    fn bins(&self) -> [usize; 3] {
        [self.bin_views, self.bin_rows, self.bin_columns]
    }

    fn bytes(&self, shape: [usize; 3], _: usize) -> u64 {
        let bins = Correction::bins(self);
        4 * (0..3).map(|axis| shape[axis] / bins[axis].max(1)).product::<usize>() as u64
    }

    fn views(&self, device: &Device, views: &mut Views) -> Result<u64> {
        let [mut together, high, wide] = Correction::bins(self);
        if views.content == Content::Fields {
            together = 1;
        }
        let (count, rows, columns) = views.values.dim();
        let shape = (count / together, rows / high, columns / wide);
        if shape.0 == 0 || shape.1 == 0 || shape.2 == 0 {
            let expected = format!("at most {count} views, {rows} rows and {columns} columns");
            return Err(Error::value("bin", expected, format!("{together} x {high} x {wide}")));
        }
        let lines = views.content == Content::Lines;
        let mut out = Array3::zeros(shape);
        let values = &views.values;
        device.cpu_side().run(|| {
            let stack: Vec<ArrayViewMut2<'_, f32>> = out.axis_iter_mut(Axis(0)).collect();
            stack.into_par_iter().enumerate().for_each(|(view, mut out)| {
                for ((row, column), out) in out.indexed_iter_mut() {
                    let bin = values.slice(s![
                        view * together..(view + 1) * together,
                        row * high..(row + 1) * high,
                        column * wide..(column + 1) * wide
                    ]);
                    let count = bin.len() as f64;
                    *out = if lines {
                        // e^(−p) of long integrals is no number of f64 without this.
                        let least = f64::from(bin.iter().copied().fold(f32::INFINITY, f32::min));
                        let sum: f64 = bin.iter().map(|&p| (least - f64::from(p)).exp()).sum();
                        least - (sum / count).ln()
                    } else {
                        bin.iter().map(|&value| f64::from(value)).sum::<f64>() / count
                    } as f32;
                }
            });
        });
        views.values = out;
        Ok(0)
    }
}

/// The rays of views, rows and columns that become one. The rays of several views are those in their middle.
///
/// Errors: columns of a curved detector that fill no bin; a bin that is larger than the scan.
///
/// ```
/// use rayspin_core::{Detector, Orbit, ProjectionGeometry};
/// use rayspin_ct::corrections::binned;
///
/// let detector = Detector { rows: 4, columns: 9, pitch_mm: [1.0, 1.0], radius_mm: None };
/// let orbit = Orbit::default().arc(0.0, std::f64::consts::PI, 12);
/// let geometry = ProjectionGeometry::orbit(detector, &orbit)?;
/// let found = binned(&geometry, [3, 2, 2])?;
/// assert_eq!((found.shape(), found.detector().pitch_mm), ([4, 2, 4], [2.0, 2.0]));
/// // The ninth column fills no bin: the middle is half a pixel before.
/// assert!((found.views()[0].detector_mm[0] - geometry.views()[1].detector_mm[0]).abs() < 0.51);
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn binned(
    geometry: &ProjectionGeometry,
    [together, high, wide]: [usize; 3],
) -> Result<ProjectionGeometry> {
    let [views, rows, columns] = geometry.shape();
    if [together, high, wide].contains(&0) || together > views || high > rows || wide > columns {
        let expected = format!("1 to {views} views, {rows} rows and {columns} columns");
        return Err(Error::value("bin", expected, format!("{together} x {high} x {wide}")));
    }
    let mut detector = *geometry.detector();
    detector.rows /= high;
    detector.columns /= wide;
    // Distance between the middles of the detector before and after, in pixels.
    let [across, along] = [(detector.columns * wide, columns), (detector.rows * high, rows)]
        .map(|(left, whole)| 0.5 * (left as f64 - whole as f64));
    if detector.radius_mm.is_some() && across != 0.0 {
        let expected = format!("bins that fill the {columns} columns of a curved detector");
        return Err(Error::value("bin", expected, wide));
    }
    let shift = [across * detector.pitch_mm[0], along * detector.pitch_mm[1]];
    detector.pitch_mm = [detector.pitch_mm[0] * wide as f64, detector.pitch_mm[1] * high as f64];
    let poses = geometry.views().chunks_exact(together).map(|some| {
        let view = between(&some[(together - 1) / 2], &some[together / 2]);
        let moved = |axis: usize| view.detector_mm[axis] + shift[0] * view.u[axis] + shift[1] * view.v[axis];
        View { detector_mm: std::array::from_fn(moved), ..view }
    });
    ProjectionGeometry::new(detector, poses.collect())
}

/// The pose in the middle of two. It is exact for a turn around z: distances from the axis stay.
fn between(a: &View, b: &View) -> View {
    let mean = |a: [f64; 3], b: [f64; 3]| std::array::from_fn::<f64, 3, _>(|axis| 0.5 * (a[axis] + b[axis]));
    let place = |a: [f64; 3], b: [f64; 3]| {
        let middle = mean(a, b);
        let (distance, wanted) = (middle[0].hypot(middle[1]), 0.5 * (a[0].hypot(a[1]) + b[0].hypot(b[1])));
        let scale = if distance > 0.0 { wanted / distance } else { 1.0 };
        [middle[0] * scale, middle[1] * scale, middle[2]]
    };
    let direction = |a, b| {
        let vector = place(a, b);
        let length = vector.iter().map(|x| x * x).sum::<f64>().sqrt();
        vector.map(|x| x / length)
    };
    View {
        source: match (a.source, b.source) {
            (RaySource::Point(a), RaySource::Point(b)) => RaySource::Point(place(a, b)),
            (RaySource::Direction(a), RaySource::Direction(b)) => RaySource::Direction(direction(a, b)),
            (other, _) => other,
        },
        detector_mm: place(a.detector_mm, b.detector_mm),
        u: direction(a.u, b.u),
        v: direction(a.v, b.v),
    }
}
