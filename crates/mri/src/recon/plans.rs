use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use rayon::prelude::*;
use rayspin_core::{C32, Error, Monitor, Result, Trajectory};
use rayspin_device::{Array, Device};
use rayspin_kernels::density;
use rayspin_kernels::toeplitz::Toeplitz;

use super::blocks::Transforms;
use super::store::kept_or_made;
use super::{Density, ReconOptions};

/// What depends on the trajectory alone, made once and used for every frame, coil and iteration.
pub(super) struct Plans {
    trajectory: Trajectory,
    matrix: Vec<usize>,
    nufft: Transforms,
    density: OnceLock<Array<f32>>,
    toeplitz: OnceLock<Arc<Toeplitz<f32>>>,
    notes: Vec<String>,
    certified: OnceLock<()>,
}

impl Plans {
    /// `previous` when it was made for the same trajectory and matrix, else new plans: the NUFFT, then what the method
    /// needs (density weights, Toeplitz kernel).
    pub(super) fn matching(
        previous: Option<Self>,
        device: &Device,
        trajectory: Cow<'_, Trajectory>,
        matrix: &[usize],
        options: &ReconOptions,
        monitor: &Monitor<'_>,
    ) -> Result<Self> {
        if let Some(plans) = previous
            && plans.matrix == matrix
            && plans.trajectory == *trajectory
        {
            return Ok(plans);
        }
        let (tolerance, points) = (options.nufft_tolerance, options.point_batch);
        let nufft = monitor
            .stage("NUFFT plan", 0, || Transforms::new(device, &trajectory, matrix, tolerance, points))?;
        let mut plans = Self {
            trajectory: trajectory.into_owned(),
            matrix: matrix.to_vec(),
            nufft,
            density: OnceLock::new(),
            toeplitz: OnceLock::new(),
            notes: Vec::new(),
            certified: OnceLock::new(),
        };
        let trajectory = &plans.trajectory;
        if options.needs_density() {
            let weights = monitor.stage("density", 0, || match options.density {
                Density::PipeMenon => {
                    let iterations = options.density_iterations;
                    match points.filter(|&points| points < trajectory.samples()) {
                        None => density::pipe_menon(device, trajectory, matrix, iterations),
                        Some(points) => {
                            density::pipe_menon_by_blocks(device, trajectory, matrix, iterations, points)
                        }
                    }
                }
                Density::Radial => {
                    let weights = density::radial(trajectory, matrix)?;
                    Array::from_vec(device, &[weights.len()], weights)
                }
            })?;
            let _ = plans.density.set(weights);
        }
        if options.iterates() {
            let mut notes = Vec::new();
            let toeplitz = monitor.stage("Toeplitz kernel", 0, || match &options.kernels {
                Some(store) => {
                    kept_or_made(&**store, &plans.nufft, trajectory, options.nufft_tolerance, &mut notes)
                }
                None => toeplitz(&plans.nufft, trajectory),
            })?;
            plans.notes = notes;
            let _ = plans.toeplitz.set(Arc::new(toeplitz));
        }
        Ok(plans)
    }

    pub(super) fn notes(&self) -> &[String] {
        &self.notes
    }

    pub(super) fn trajectory(&self) -> &Trajectory {
        &self.trajectory
    }

    pub(super) fn matrix(&self) -> &[usize] {
        &self.matrix
    }

    /// Fᴴ of `[batch.., sample]` to `[batch.., matrix..]`.
    pub(super) fn adjoint(&self, samples: &Array<C32>, images: &mut Array<C32>) -> Result<()> {
        self.nufft.adjoint(&self.trajectory, samples, images)
    }

    /// F of `[batch.., matrix..]` to `[batch.., sample]`.
    pub(super) fn forward(&self, images: &Array<C32>, samples: &mut Array<C32>) -> Result<()> {
        self.nufft.forward(&self.trajectory, images, samples)
    }

    /// Whether these plans are certified from now on for the first time.
    pub(super) fn certify_once(&self) -> bool {
        self.certified.set(()).is_ok()
    }

    pub(super) fn density(&self) -> Result<&Array<f32>> {
        self.density.get().ok_or_else(|| missing("density weights"))
    }

    pub(super) fn toeplitz(&self) -> Result<&Arc<Toeplitz<f32>>> {
        self.toeplitz.get().ok_or_else(|| missing("Toeplitz kernel"))
    }
}

fn missing(what: &str) -> Error {
    Error::Numerical { what: what.into(), detail: "not planned for this method".into() }
}

/// Q(d) = Σ_m e^{i2πk_m·d} at every displacement d of the doubled grid, n voxels at a time along each axis: Q at the
/// displacements around s is the adjoint transform of e^{i2πk_m·s}, so that the image's own plan does, without a doubled
/// one. Displacements below 0 along the first axis follow from Q(−d) = conj Q(d).
pub(super) fn toeplitz(plan: &Transforms, trajectory: &Trajectory) -> Result<Toeplitz<f32>> {
    let device = plan.device();
    let matrix = plan.matrix();
    let dims = matrix.len();
    let doubled: Vec<usize> = matrix.iter().map(|n| 2 * n).collect();
    let mut q = Array::zeros(&device.host(), &doubled)?;
    let mut phases = Array::zeros(device, &[trajectory.samples()])?;
    let mut block = Array::zeros(device, matrix)?;
    for corner in 0..1usize << (dims - 1) {
        // First displacement of the block along each axis: 0 along the first, −n or 0 along the others.
        let upper = |axis: usize| axis == 0 || corner >> (axis - 1) & 1 == 1;
        let shift: Vec<f64> = (0..dims)
            .map(|axis| {
                let n = matrix[axis];
                let first = if upper(axis) { 0.0 } else { -(n as f64) };
                (first + (n / 2) as f64) / n as f64
            })
            .collect();
        phases.update(|phases| {
            device.cpu_side().run(|| {
                phases.par_iter_mut().enumerate().with_min_len(4096).for_each(|(m, phase)| {
                    // Components are x, y, z and axes z, y, x.
                    let point = trajectory.points();
                    let k = point.row(m);
                    let cycles: f64 = k.iter().rev().zip(&shift).map(|(k, s)| k * s).sum();
                    let (sin, cos) = (std::f64::consts::TAU * (cycles - cycles.round())).sin_cos();
                    *phase = C32::new(cos as f32, sin as f32);
                });
            });
        })?;
        plan.adjoint(trajectory, &phases, &mut block)?;
        let row = matrix[dims - 1];
        for (index, values) in block.read()?.chunks_exact(row).enumerate() {
            let (mut rest, mut to, mut stride) = (index, 0, 2 * row);
            for axis in (0..dims - 1).rev() {
                let n = matrix[axis];
                to += (rest % n + if upper(axis) { n } else { 0 }) * stride;
                stride *= 2 * n;
                rest /= n;
            }
            to += if upper(dims - 1) { row } else { 0 };
            q.cpu_mut()[to..to + row].copy_from_slice(values);
        }
    }
    drop((phases, block));
    device.cpu_side().run(|| mirror(q.cpu_mut(), &doubled));
    Toeplitz::from_kernel(device, matrix, &q.into_device(device)?)
}

/// Fills the displacements −n < d < 0 of the first axis of a centred Hermitian kernel from those above 0.
fn mirror(q: &mut [C32], doubled: &[usize]) {
    let plane: usize = doubled[1..].iter().product();
    let n = doubled[0] / 2;
    let (below, above) = q.split_at_mut(n * plane);
    below.par_chunks_mut(plane).enumerate().skip(1).for_each(|(at, to)| {
        let from = &above[(n - at) * plane..][..plane];
        for (index, value) in to.iter_mut().enumerate() {
            let (mut rest, mut at, mut stride, mut paired) = (index, 0, 1, true);
            for &size in doubled[1..].iter().rev() {
                let i = rest % size;
                paired &= i > 0;
                at += (size - i) % size * stride;
                stride *= size;
                rest /= size;
            }
            // Displacement −n has no opposite in the grid, and occurs between no two voxels.
            *value = if paired { from[at].conj() } else { C32::ZERO };
        }
    });
}
