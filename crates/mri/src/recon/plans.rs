use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

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

/// FᴴF by the plan's own adjoint transform.
pub(super) fn toeplitz(plan: &Transforms, trajectory: &Trajectory) -> Result<Toeplitz<f32>> {
    let adjoint = &mut |phases: &Array<C32>, block: &mut Array<C32>| plan.adjoint(trajectory, phases, block);
    Toeplitz::from_adjoint(plan.device(), trajectory, plan.matrix(), adjoint)
}
