use std::f64::consts::{PI, TAU};

use ndarray::Array2;
use rayspin_core::{Error, Result};

use super::{
    COUNTER_LIMIT, Grid, Hardware, Layout, Shot, cycles_per_metre, expect_count, expect_total, limits,
};
use crate::scan::{Counters, Flags, TrajectoryKind};

/// One interleaf of a spiral.
#[derive(Debug, Clone, PartialEq)]
pub struct SpiralReadout {
    /// k at every dwell time from 0, (x, y) in cycles per metre.
    pub points: Vec<[f64; 2]>,
    /// The amplitude in mT/m that bounded the speed: the hardware's, or what the dwell time can follow.
    pub gradient_mt_m: f64,
}

/// The fastest Archimedean spiral k(θ) = λθ e^{iθ} from rest at the centre to `k_max` (cycles/m), λ = M/(2π
/// FOV) for M interleaves, under |dk/dt| ≤ γG and |d²k/dt²| ≤ γS.
///
/// With the speed v = |dk/dt| and the curvature κ(θ) = (θ² + 2)/(λ(1 + θ²)^{3/2}) the slew rate splits into
/// v̇ along and v²κ across the path. So v̇ = √((γS)² − (v²κ)²) until v = γG. κ falls with θ, hence greedy
/// acceleration is optimal and never leaves the limits. Sources: Glover, Magn Reson Med 42:412, 1999; for
/// time optimality, Lustig et al., IEEE Trans Med Imaging 27:866, 2008. G is lowered to 1/(γ · dwell · FOV)
/// where the samples could not follow. Integrated by Runge–Kutta steps of at most 0.05 µs.
///
/// Errors: inputs that are not positive; a readout longer than 65 535 samples.
///
/// ```
/// use rayspin_mri::simulate::trajectory::{Hardware, spiral_readout};
///
/// let k_max = 64.0 / (2.0 * 0.22); // 64 voxels over 220 mm, cycles/m
/// let spiral = spiral_readout(220.0, k_max, 8, &Hardware::default())?;
/// assert_eq!(spiral.points[0], [0.0, 0.0]);
/// let reach = spiral.points.iter().map(|[x, y]| x.hypot(*y)).fold(0.0, f64::max);
/// assert!((reach / k_max - 1.0).abs() < 0.05);
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn spiral_readout(
    fov_mm: f64,
    k_max: f64,
    interleaves: usize,
    hardware: &Hardware,
) -> Result<SpiralReadout> {
    hardware.check()?;
    expect_count("interleaves", interleaves, COUNTER_LIMIT)?;
    for (what, value) in [("field of view in mm", fov_mm), ("spiral extent in cycles/m", k_max)] {
        if !(value > 0.0 && value.is_finite()) {
            return Err(Error::value(what, "a positive number", value));
        }
    }
    let pitch = interleaves as f64 / (TAU * fov_mm * 1e-3);
    let gradient_mt_m = hardware.readout_gradient(fov_mm);
    let top = cycles_per_metre(gradient_mt_m);
    let slew = cycles_per_metre(hardware.slew_t_m_s * 1e3);
    let dwell = hardware.dwell_us * 1e-6;
    let steps = (dwell / 0.05e-6).ceil().clamp(4.0, 1e4);
    let h = dwell / steps;

    let rates = |[theta, v]: [f64; 2]| {
        let v = v.clamp(0.0, top);
        let stretch = 1.0 + theta * theta;
        let across = v * v * (theta * theta + 2.0) / (pitch * stretch * stretch.sqrt());
        let along = if v < top { (slew * slew - across * across).max(0.0).sqrt() } else { 0.0 };
        [v / (pitch * stretch.sqrt()), along]
    };
    let moved = |state: [f64; 2], rate: [f64; 2], h: f64| [state[0] + h * rate[0], state[1] + h * rate[1]];
    let mut state = [0.0, 0.0];
    let mut points = Vec::new();
    while pitch * state[0] <= k_max {
        if points.len() == COUNTER_LIMIT {
            return Err(Error::value(
                "spiral readout",
                format!(
                    "at most {COUNTER_LIMIT} samples (more interleaves, a stronger gradient or a longer dwell time)"
                ),
                format!("more than {COUNTER_LIMIT}"),
            ));
        }
        let (sin, cos) = state[0].sin_cos();
        let radius = pitch * state[0];
        points.push([radius * cos, radius * sin]);
        for _ in 0..steps as usize {
            let a = rates(state);
            let b = rates(moved(state, a, 0.5 * h));
            let c = rates(moved(state, b, 0.5 * h));
            let d = rates(moved(state, c, h));
            let mean = [0, 1].map(|i| (a[i] + 2.0 * b[i] + 2.0 * c[i] + d[i]) / 6.0);
            state = moved(state, mean, h);
            state[1] = state[1].min(top);
        }
    }
    Ok(SpiralReadout { points, gradient_mt_m })
}

/// Spiral (`partitions` = 1 in 2-D) and stack of spirals: M interleaves turned by 2π/M each, fastest;
/// partitions slowest. Each interleaf is one of the R·M that full sampling at this pitch would take.
pub(super) fn spirals(
    grid: &Grid,
    hardware: &Hardware,
    interleaves: usize,
    acceleration: usize,
    partitions: usize,
) -> Result<Layout> {
    if !(1..=64).contains(&acceleration) {
        return Err(Error::value("acceleration of the spiral", "1 to 64", acceleration));
    }
    let fov = [grid.fov_mm[0], grid.fov_mm[1]];
    // Isotropic in the patient: pitch for the larger field of view, extent for the coarser voxel.
    let resolution = [0, 1].map(|axis| grid.matrix[axis] as f64 / (2.0 * fov[axis] * 1e-3));
    let k_max = resolution[0].min(resolution[1]);
    let readout =
        spiral_readout(fov[0].max(fov[1]), k_max, interleaves.saturating_mul(acceleration), hardware)?;
    let samples = readout.points.len();
    expect_total("interleaves", interleaves * partitions, samples)?;
    let mut shots = Vec::with_capacity(interleaves * partitions);
    for partition in 0..partitions {
        for interleaf in 0..interleaves {
            let (sin, cos) = (2.0 * PI * interleaf as f64 / interleaves as f64).sin_cos();
            let points = Array2::from_shape_fn((samples, grid.dims), |(i, axis)| {
                let [x, y] = readout.points[i];
                match axis {
                    0 => (cos * x - sin * y) * fov[0] * 1e-3,
                    1 => (sin * x + cos * y) * fov[1] * 1e-3,
                    _ => partition as f64 - (partitions / 2) as f64,
                }
            });
            shots.push(Shot {
                flags: Flags::default(),
                counters: Counters {
                    step_1: interleaf as u16,
                    step_2: partition as u16,
                    ..Counters::default()
                },
                centre_sample: 0,
                points,
            });
        }
    }
    Ok(Layout {
        kind: TrajectoryKind::Spiral,
        on_grid: false,
        shots,
        step_1: limits(interleaves, 0),
        step_2: limits(partitions, partitions / 2),
        acceleration: None,
        notes: vec![format!(
            "spiral readout: {samples} samples in {:.2} ms, at most {:.1} mT/m",
            samples as f64 * hardware.dwell_us * 1e-3,
            readout.gradient_mt_m
        )],
    })
}
