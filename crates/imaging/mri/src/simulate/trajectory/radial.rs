use std::f64::consts::{PI, TAU};

use ndarray::Array2;
use rayspin_core::Result;

use super::{COUNTER_LIMIT, Grid, Layout, Shot, expect_count, expect_total, limits};
use crate::scan::{Counters, Flags, TrajectoryKind};

/// Angles of 2-D spokes, from +x towards +y.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SpokeAngles {
    /// θ_m = π m/M.
    #[default]
    Uniform,
    /// θ_m = m π/φ, φ the golden ratio (111.25°), running on over repetitions: Winkelmann et al., IEEE Trans
    /// Med Imaging 26:68, 2007.
    Golden,
}

/// Directions of 3-D spokes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SphereOrder {
    /// A spiral from the equator to the pole with even density: z_m = (m + ½)/M, φ_m = √(2πM) asin z_m (Wong
    /// & Roos, Magn Reson Med 32:778, 1994).
    #[default]
    Spiral,
    /// Golden means: z_m = frac(0.4656 m), φ_m = 2π frac(0.6823 m), running on over repetitions (Chan et al.,
    /// Magn Reson Med 61:354, 2009).
    GoldenMeans,
}

/// The two-dimensional golden means 1/β² and 1/β with β³ = β² + 1, which Chan et al. round to four digits.
const GOLDEN_MEANS: [f64; 2] = [0.465_571_231_876_768, 0.682_327_803_828_019_3];

/// Samples of a spoke: oversampling × the longest axis, spaced evenly from −½ with the centre on sample n/2.
fn readout(grid: &Grid) -> (usize, impl Fn(usize) -> f64) {
    let longest = grid.matrix[..grid.dims].iter().copied().max().unwrap_or(1);
    let n = grid.oversampling * longest;
    (n, move |i| (i as f64 - (n / 2) as f64) / n as f64)
}

/// Radial (`partitions` = 1 in 2-D) and stack of stars: spokes fastest, partitions slowest.
pub(super) fn stars(
    grid: &Grid,
    spokes: usize,
    angles: SpokeAngles,
    partitions: usize,
    repetition: usize,
) -> Result<Layout> {
    expect_count("spokes", spokes, COUNTER_LIMIT)?;
    let plane = Grid { dims: 2, ..*grid };
    let (samples, along) = readout(&plane);
    expect_total("spokes", spokes * partitions, samples)?;
    let [nx, ny, _] = grid.matrix.map(|n| n as f64);
    let mut shots = Vec::with_capacity(spokes * partitions);
    for partition in 0..partitions {
        for spoke in 0..spokes {
            let theta = match angles {
                SpokeAngles::Uniform => PI * spoke as f64 / spokes as f64,
                SpokeAngles::Golden => golden_angle(repetition * spokes + spoke),
            };
            let (sin, cos) = theta.sin_cos();
            let points = Array2::from_shape_fn((samples, grid.dims), |(i, axis)| match axis {
                0 => along(i) * nx * cos,
                1 => along(i) * ny * sin,
                _ => partition as f64 - (partitions / 2) as f64,
            });
            shots.push(spoke_shot(points, samples / 2, spoke, partition));
        }
    }
    Ok(Layout {
        kind: match angles {
            SpokeAngles::Uniform => TrajectoryKind::Radial,
            SpokeAngles::Golden => TrajectoryKind::GoldenAngle,
        },
        on_grid: false,
        shots,
        step_1: limits(spokes, 0),
        step_2: limits(partitions, partitions / 2),
        acceleration: None,
        notes: Vec::new(),
    })
}

/// m π/φ modulo 2π.
fn golden_angle(m: usize) -> f64 {
    let ratio = 0.5 * (5f64.sqrt() - 1.0);
    PI * (m as f64 * ratio).rem_euclid(2.0)
}

/// 3-D spokes over half a sphere; both ends of each reach the edge.
pub(super) fn kooshball(grid: &Grid, spokes: usize, order: SphereOrder, repetition: usize) -> Result<Layout> {
    expect_count("spokes", spokes, COUNTER_LIMIT)?;
    let (samples, along) = readout(grid);
    expect_total("spokes", spokes, samples)?;
    let n = grid.matrix.map(|n| n as f64);
    let shots = (0..spokes)
        .map(|spoke| {
            let (z, phi) = match order {
                SphereOrder::Spiral => {
                    let z = (spoke as f64 + 0.5) / spokes as f64;
                    (z, (TAU * spokes as f64).sqrt() * z.asin())
                }
                SphereOrder::GoldenMeans => {
                    let m = (repetition * spokes + spoke) as f64;
                    ((m * GOLDEN_MEANS[0]).fract(), TAU * (m * GOLDEN_MEANS[1]).fract())
                }
            };
            let rho = (1.0 - z * z).sqrt();
            let direction = [rho * phi.cos(), rho * phi.sin(), z];
            let points =
                Array2::from_shape_fn((samples, 3), |(i, axis)| along(i) * n[axis] * direction[axis]);
            spoke_shot(points, samples / 2, spoke, 0)
        })
        .collect();
    Ok(Layout {
        kind: match order {
            SphereOrder::Spiral => TrajectoryKind::Radial,
            SphereOrder::GoldenMeans => TrajectoryKind::GoldenAngle,
        },
        on_grid: false,
        shots,
        step_1: limits(spokes, 0),
        step_2: limits(1, 0),
        acceleration: None,
        notes: Vec::new(),
    })
}

fn spoke_shot(points: Array2<f64>, centre_sample: usize, spoke: usize, partition: usize) -> Shot {
    Shot {
        flags: Flags::default(),
        counters: Counters { step_1: spoke as u16, step_2: partition as u16, ..Counters::default() },
        centre_sample,
        points,
    }
}
