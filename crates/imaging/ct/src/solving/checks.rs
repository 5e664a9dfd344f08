//! Checks for faults that a picture does not show: line integrals of the wrong sign, a volume beside the
//! rays, numbers that are not finite.

use ndarray::ArrayView2;
use rayon::prelude::*;
use rayspin_core::{Error, ProjectionGeometry, RaySource, Result, VolumeGrid};
use rayspin_device::Device;

/// A column counts as negative if its mean lies below 0 by more than this part of the largest mean and by
/// more than `NOISE`.
const BELOW: f64 = 0.02;
/// Standard deviations of the mean by which a negative column lies below 0, at least.
const NOISE: f64 = 4.0;
/// The least part of the columns that must be negative for a note.
const SHARE: f64 = 0.05;
/// Views, and rays along each side of the detector, that are followed to the volume.
const VIEWS: usize = 32;
const RAYS: usize = 9;
/// Rows of a view that are looked at, at most.
const ROWS: usize = 64;
/// Voxels that a thread looks at together.
const PART: usize = 1 << 16;
/// Where all views see a smaller part of a slice than this, a note says so.
const SEEN: f64 = 0.01;

/// Means of line integrals over views and rows, which noise hardly touches.
#[derive(Debug, Clone, Default)]
pub(crate) struct Means {
    sums: Vec<f64>,
    rows: usize,
}

impl Means {
    /// Adds some rows of a view.
    pub(crate) fn add(&mut self, view: ArrayView2<'_, f32>) {
        let (rows, columns) = view.dim();
        self.sums.resize(columns, 0.0);
        for row in view.outer_iter().step_by(rows.div_ceil(ROWS).max(1)) {
            self.sums.iter_mut().zip(row).for_each(|(sum, value)| *sum += f64::from(*value));
            self.rows += 1;
        }
    }

    /// A note on negative columns, if there are enough of them.
    pub(crate) fn note(&self) -> Option<String> {
        let largest = self.sums.iter().fold(0.0f64, |most, sum| most.max(sum.abs()));
        let least = (BELOW * largest).max(NOISE * self.noise());
        let negative = self.sums.iter().filter(|sum| **sum < -least).count();
        if largest <= 0.0 || (negative as f64) < SHARE * self.sums.len() as f64 {
            return None;
        }
        let lowest = self.sums.iter().copied().fold(0.0, f64::min) / self.rows as f64;
        Some(format!(
            "{:.0} % of the columns have negative line integrals, down to {lowest:.3} on average: more arrives through the object than without it. The \
             flat field is too small, or the logarithm has the other sign; the volume is wrong by as much",
            100.0 * negative as f64 / self.sums.len() as f64
        ))
    }

    /// The standard deviation of the sums, from the median of second differences. A slope does not change a
    /// second difference, and edges are too few to change the median. The noise of flat fields is the same in
    /// all views and does not average out.
    fn noise(&self) -> f64 {
        let second = |w: &[f64]| (w[0] - 2.0 * w[1] + w[2]).abs();
        let mut seconds: Vec<f64> = self.sums.windows(3).map(second).collect();
        seconds.sort_by(f64::total_cmp);
        // The median of |x| of a normal distribution is 0.6745 σ; a second difference has 6 times the
        // variance of a sum.
        seconds.get(seconds.len() / 2).map_or(0.0, |median| median / (0.6745 * 6f64.sqrt()))
    }
}

/// Checks that rays meet the volume. Errors: no ray does.
pub(crate) fn expect_met(geometry: &ProjectionGeometry, grid: &VolumeGrid) -> Result<()> {
    let detector = geometry.detector();
    let (first, spacing, shape) = (grid.first_mm(), grid.spacing_mm(), grid.shape_xyz());
    let sides: [[f64; 2]; 3] = std::array::from_fn(|axis| {
        let low = first[axis] - 0.5 * spacing[axis];
        [low, low + shape[axis] as f64 * spacing[axis]]
    });
    let views = geometry.views();
    let places =
        |count: usize| (0..RAYS).map(move |index| (index as f64 / (RAYS - 1) as f64 - 0.5) * count as f64);
    // Points of a small volume fall on the detector, rays meet a large one.
    let on_detector = |view: usize| {
        (0..125).any(|index| {
            let point = std::array::from_fn(|axis| {
                let [low, high] = sides[axis];
                low + (high - low) * (index / 5usize.pow(axis as u32) % 5) as f64 / 4.0
            });
            let inside = |place: f64, count: usize| place >= -0.5 && place <= count as f64 - 0.5;
            geometry
                .project(view, point)
                .is_some_and(|[row, column]| inside(row, detector.rows) && inside(column, detector.columns))
        })
    };
    let meets = |index: usize| {
        let view = &views[index];
        on_detector(index)
            || places(detector.columns).any(|column| {
                places(detector.rows).any(|row| {
                    // A curved detector is followed as a flat one.
                    let pixel: [f64; 3] = std::array::from_fn(|axis| {
                        view.detector_mm[axis]
                            + column * detector.pitch_mm[0] * view.u[axis]
                            + row * detector.pitch_mm[1] * view.v[axis]
                    });
                    let along = match view.source {
                        RaySource::Direction(along) => along,
                        RaySource::Point(source) => std::array::from_fn(|axis| pixel[axis] - source[axis]),
                    };
                    crosses(pixel, along, &sides)
                })
            })
    };
    // Few views of a helix meet a slab, so all views are tried before the check fails.
    let some = views.len().div_ceil(VIEWS).max(1);
    if (0..views.len()).step_by(some).any(meets) || (0..views.len()).any(meets) {
        return Ok(());
    }
    let reach = |axis: usize| format!("{:.4} to {:.4}", sides[axis][0], sides[axis][1]);
    let found = format!("none in x {}, y {}, z {} mm", reach(0), reach(1), reach(2));
    Err(Error::value(
        "volume",
        format!(
            "rays that meet it (`--matrix`, `--voxel`, `--centre`), of a detector of {:.4} x {:.4} mm",
            detector.columns as f64 * detector.pitch_mm[0],
            detector.rows as f64 * detector.pitch_mm[1]
        ),
        found,
    ))
}

/// Whether a line meets a box.
fn crosses(point: [f64; 3], along: [f64; 3], sides: &[[f64; 2]; 3]) -> bool {
    let (mut enter, mut leave) = (f64::NEG_INFINITY, f64::INFINITY);
    for ((point, along), &[low, high]) in point.iter().zip(&along).zip(sides) {
        if along.abs() < 1e-12 {
            if !(low..=high).contains(point) {
                return false;
            }
            continue;
        }
        let [a, b] = [low, high].map(|side| (side - point) / along);
        (enter, leave) = (enter.max(a.min(b)), leave.min(a.max(b)));
    }
    enter <= leave
}

/// A note on a volume that is much wider than the circle that all views see, `radius_mm` around the axis.
///
/// Errors: no voxel lies in the circle.
pub(crate) fn note_of_seen(grid: &VolumeGrid, radius_mm: f64) -> Result<Option<String>> {
    let ([nx, ny, _], first, spacing) = (grid.shape_xyz(), grid.first_mm(), grid.spacing_mm());
    let seen = (0..ny)
        .map(|y| {
            let y = first[1] + y as f64 * spacing[1];
            let half = (radius_mm * radius_mm - y * y).sqrt();
            // Voxels of this row from −half to half.
            let low = ((-half - first[0]) / spacing[0]).ceil().max(0.0);
            let high = ((half - first[0]) / spacing[0]).floor().min((nx - 1) as f64);
            if half.is_nan() || radius_mm < 0.0 { 0.0 } else { (high - low + 1.0).max(0.0) }
        })
        .sum::<f64>();
    let total = nx as f64 * ny as f64;
    let voxels = format!("{} x {} mm", spacing[0], spacing[1]);
    if seen == 0.0 {
        let expected = format!(
            "voxels within {radius_mm:.4} mm of the axis, where all views see them (`--matrix`, `--voxel`, `--centre`)"
        );
        return Err(Error::value("volume", expected, format!("none among voxels of {voxels}")));
    }
    Ok((seen < SEEN * total).then(|| {
        format!(
            "all views see {seen} of {total} voxels of {voxels} a slice, those within {radius_mm:.4} mm of the axis: the others are 0 (`--voxel` sets \
             their size)"
        )
    }))
}

/// The index of the first number that is not finite.
pub(crate) fn first_not_finite(device: &Device, numbers: &[f32]) -> Option<usize> {
    let in_part = |(part, values): (usize, &[f32])| {
        // Without an early end, which the compiler cannot vectorise.
        let finite = values.iter().fold(true, |all, value| all & value.is_finite());
        let first = || values.iter().position(|value| !value.is_finite());
        if finite { None } else { first().map(|index| part * PART + index) }
    };
    device.cpu_side().run(|| numbers.par_chunks(PART).enumerate().find_map_first(in_part))
}

/// Errors: a voxel that is not finite.
pub(crate) fn expect_finite(device: &Device, volume: &[f32]) -> Result<()> {
    match first_not_finite(device, volume) {
        None => Ok(()),
        Some(index) => Err(Error::NotFinite {
            what: "reconstructed values".into(),
            index,
            found: volume[index].to_string(),
        }),
    }
}
