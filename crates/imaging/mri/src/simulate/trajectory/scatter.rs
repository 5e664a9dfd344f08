use ndarray::Array2;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayspin_core::Result;

use super::{COUNTER_LIMIT, Grid, Layout, Shot, expect_count, expect_total, limits};
use crate::scan::{Counters, Flags, TrajectoryKind};

/// Points drawn uniformly from the box −n/2 … n/2 of each axis.
pub(super) fn scatter(
    grid: &Grid,
    shots: usize,
    samples: usize,
    seed: u64,
    repetition: usize,
) -> Result<Layout> {
    expect_count("random readouts", shots, COUNTER_LIMIT)?;
    expect_count("samples of a random readout", samples, COUNTER_LIMIT)?;
    expect_total("random readouts", shots, samples)?;
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(1 + repetition as u64);
    let shots: Vec<Shot> = (0..shots)
        .map(|shot| {
            let points = Array2::from_shape_fn((samples, grid.dims), |(_, axis)| {
                rng.random_range(-0.5..0.5) * grid.matrix[axis] as f64
            });
            Shot {
                flags: Flags::default(),
                counters: Counters { step_1: shot as u16, ..Counters::default() },
                centre_sample: 0,
                points,
            }
        })
        .collect();
    Ok(Layout {
        kind: TrajectoryKind::Other,
        on_grid: false,
        step_1: limits(shots.len(), 0),
        step_2: limits(1, 0),
        shots,
        acceleration: None,
        notes: Vec::new(),
    })
}
