use ndarray::Array2;
use rayspin_core::{Error, Result};

use super::poisson::poisson_disc;
use super::{Grid, Layout, Shot, expect_total, limits};
use crate::scan::{Counters, Flags, TrajectoryKind};

/// Which lines of the grid are played.
///
/// Calibration regions are centred, `calibration` lines wide along each phase encoding (as many as there are,
/// at most). Their lines are part of the image data too, so they are all flagged
/// [`Flags::CALIBRATION_AND_IMAGING`](crate::scan::Flags::CALIBRATION_AND_IMAGING).
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CartesianPattern {
    /// Every line.
    Full,
    /// Every R-th line along y and along z, the centre among them.
    Uniform {
        /// R along y and z; z must be 1 in 2-D.
        acceleration: [usize; 2],
        /// Width of the fully sampled centre; 0 for none.
        calibration: usize,
    },
    /// A random pattern with a minimum distance between lines that grows with the distance from the centre.
    PoissonDisc {
        /// Lines of the full grid per line played, calibration included.
        acceleration: f64,
        /// Width of the fully sampled centre; 0 for none.
        calibration: usize,
        /// Growth of the minimum distance, r(k) = r₀ (1 + slope · |k|/k_max); 0 for uniform density.
        slope: f64,
    },
}

/// Lines in the order of the counters: step 1 (y) fastest, step 2 (z) slowest.
pub(super) fn layout(
    pattern: &CartesianPattern,
    grid: &Grid,
    seed: u64,
    repetition: usize,
) -> Result<Layout> {
    let [nx, ny, _] = grid.matrix;
    let nz = if grid.dims == 3 { grid.matrix[2] } else { 1 };
    let mut notes = Vec::new();
    let (mask, calibration, acceleration) = match *pattern {
        CartesianPattern::Full => (Array2::from_elem((nz, ny), true), 0, Some([1, 1])),
        CartesianPattern::Uniform { acceleration, calibration } => {
            let [ry, rz] = acceleration;
            if !(1..=ny).contains(&ry) || !(1..=nz).contains(&rz) {
                return Err(Error::value(
                    "acceleration",
                    format!("1 to {ny} along y and 1 to {nz} along z"),
                    format!("{ry} and {rz}"),
                ));
            }
            // The centre line n/2 lies on the lattice: indices congruent to it modulo R.
            let mask = Array2::from_shape_fn((nz, ny), |(z, y)| {
                (y + ry - ny / 2 % ry) % ry == 0 && (z + rz - nz / 2 % rz) % rz == 0
            });
            (mask, calibration, Some(acceleration))
        }
        CartesianPattern::PoissonDisc { acceleration, calibration, slope } => {
            let seed = seed.wrapping_add(repetition as u64);
            let mask = poisson_disc([nz, ny], acceleration, calibration, slope, seed)?;
            (mask, calibration, None)
        }
    };
    let inside = |index: usize, n: usize| calibration_range(n, calibration).contains(&index);
    let os = grid.oversampling;
    let (samples, centre_sample) = (nx * os, nx * os / 2);
    let calibrates = |z: usize, y: usize| calibration > 0 && inside(z, nz) && inside(y, ny);
    let lines =
        || mask.indexed_iter().filter(|&((z, y), played)| *played || calibrates(z, y)).map(|(line, _)| line);
    expect_total("lines", lines().count(), samples)?;
    let mut shots = Vec::new();
    for (z, y) in lines() {
        let calibrates = calibrates(z, y);
        let line = [0.0, y as f64 - (ny / 2) as f64, z as f64 - (nz / 2) as f64];
        let points = Array2::from_shape_fn((samples, grid.dims), |(i, axis)| {
            if axis == 0 { (i as f64 - centre_sample as f64) / os as f64 } else { line[axis] }
        });
        shots.push(Shot {
            flags: if calibrates { Flags::CALIBRATION_AND_IMAGING } else { Flags::default() },
            counters: Counters { step_1: y as u16, step_2: z as u16, ..Counters::default() },
            centre_sample,
            points,
        });
    }
    if shots.len() < ny * nz {
        notes.push(format!(
            "{} of {} lines are played: acceleration {:.2}",
            shots.len(),
            ny * nz,
            (ny * nz) as f64 / shots.len() as f64
        ));
    }
    Ok(Layout {
        kind: TrajectoryKind::Cartesian,
        on_grid: true,
        shots,
        step_1: limits(ny, ny / 2),
        step_2: limits(nz, nz / 2),
        acceleration,
        notes,
    })
}

/// The `width` indices around n/2.
pub(super) fn calibration_range(n: usize, width: usize) -> std::ops::Range<usize> {
    let width = width.min(n);
    let from = (n / 2).saturating_sub(width / 2).min(n - width);
    from..from + width
}
