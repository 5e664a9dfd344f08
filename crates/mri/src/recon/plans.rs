use std::sync::{Arc, OnceLock};

use rayspin_core::{Error, Monitor, Result, Trajectory};
use rayspin_device::{Array, Device};
use rayspin_kernels::density;
use rayspin_kernels::nufft::{self, Nufft};
use rayspin_kernels::toeplitz::Toeplitz;

use super::{Density, Method, ReconOptions};

/// What depends on the trajectory alone, made once and used for every frame, coil and iteration.
pub(super) struct Plans {
    trajectory: Trajectory,
    matrix: Vec<usize>,
    nufft: Arc<Nufft<f32>>,
    density: OnceLock<Array<f32>>,
    toeplitz: OnceLock<Arc<Toeplitz<f32>>>,
}

impl Plans {
    /// `previous` when it was made for the same trajectory and matrix, else new plans: the NUFFT, then what the method
    /// needs (density weights, Toeplitz kernel).
    pub(super) fn matching(
        previous: Option<Self>,
        device: &Device,
        trajectory: &Trajectory,
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
        let tolerance = nufft::Options { tolerance: options.nufft_tolerance, ..nufft::Options::default() };
        let nufft = monitor.stage("NUFFT plan", 0, || Nufft::new(device, trajectory, matrix, &tolerance))?;
        let plans = Self {
            trajectory: trajectory.clone(),
            matrix: matrix.to_vec(),
            nufft: Arc::new(nufft),
            density: OnceLock::new(),
            toeplitz: OnceLock::new(),
        };
        let estimates_maps = options.maps.is_none()
            && (options.method == Method::CgSense || options.combine == super::Combine::Maps);
        if options.method == Method::Gridding || estimates_maps {
            let weights = monitor.stage("density", 0, || match options.density {
                Density::PipeMenon => {
                    density::pipe_menon(device, trajectory, matrix, options.density_iterations)
                }
                Density::Radial => {
                    let weights = density::radial(trajectory, matrix)?;
                    Array::from_vec(device, &[weights.len()], weights)
                }
            })?;
            let _ = plans.density.set(weights);
        }
        if options.iterates() {
            let toeplitz =
                monitor.stage("Toeplitz kernel", 0, || toeplitz(device, trajectory, matrix, &tolerance))?;
            let _ = plans.toeplitz.set(Arc::new(toeplitz));
        }
        Ok(plans)
    }

    pub(super) fn trajectory(&self) -> &Trajectory {
        &self.trajectory
    }

    pub(super) fn matrix(&self) -> &[usize] {
        &self.matrix
    }

    pub(super) fn nufft(&self) -> &Arc<Nufft<f32>> {
        &self.nufft
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

/// Q(x) = Σ_m e^{i2πk_m·x} at every displacement of the doubled grid, by one adjoint NUFFT: on a grid of 2n voxels at
/// the same spacing the field of view is twice as large, and so is k in cycles per field of view.
fn toeplitz(
    device: &Device,
    trajectory: &Trajectory,
    matrix: &[usize],
    options: &nufft::Options,
) -> Result<Toeplitz<f32>> {
    let doubled: Vec<usize> = matrix.iter().map(|n| 2 * n).collect();
    let twice = Trajectory::from_cycles_per_fov(trajectory.points().mapv(|k| 2.0 * k))?;
    let plan = Nufft::<f32>::new(device, &twice, &doubled, options)?;
    let mut ones = Array::zeros(device, &[trajectory.samples()])?;
    ones.fill(rayspin_core::C32::ONE);
    let mut q = Array::zeros(device, &doubled)?;
    plan.adjoint(&ones, &mut q)?;
    drop(plan);
    Toeplitz::from_kernel(device, matrix, &q)
}
