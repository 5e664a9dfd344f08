use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use rayspin_core::{C32, Error, Monitor, Result, Trajectory};
use rayspin_device::{Array, Device};
use rayspin_kernels::toeplitz::Toeplitz;
use rayspin_kernels::{density, vector};
use rayspin_linop::{LinearOp, SenseToeplitz, ToeplitzNormal};

use super::blocks::Transforms;
use super::off_resonance::{Exact, OffResonance, Uneven};
use super::store::kept_or_made;
use super::{Density, ReconOptions};

/// What depends on the trajectory alone, made once and used for every frame, coil and iteration.
pub(super) struct Plans {
    trajectory: Trajectory,
    matrix: Vec<usize>,
    nufft: Transforms,
    density: OnceLock<Array<f32>>,
    toeplitz: OnceLock<Arc<Toeplitz<f32>>>,
    off_resonance: Option<OffResonance>,
    notes: Vec<String>,
    certified: OnceLock<()>,
}

/// What a plan is to have besides the NUFFT.
#[derive(Debug, Clone, Copy)]
pub(super) struct Needs {
    pub(super) density: bool,
    pub(super) toeplitz: bool,
}

impl Plans {
    /// `previous` when it was made for the same trajectory and matrix, else new plans: the NUFFT, then what the method
    /// needs (density weights, Toeplitz kernel).
    pub(super) fn matching(
        previous: Option<Self>,
        device: &Device,
        trajectory: Cow<'_, Trajectory>,
        matrix: &[usize],
        needs: Needs,
        uneven: Option<Uneven>,
        options: &ReconOptions,
        monitor: &Monitor<'_>,
    ) -> Result<Self> {
        if let Some(mut plans) = previous
            && plans.has(needs)
            && plans.matrix == matrix
            && plans.trajectory == *trajectory
        {
            match (&mut plans.off_resonance, &uneven) {
                (None, None) => return Ok(plans),
                (Some(planned), Some(now)) if planned.fits(now) => {
                    uneven.into_iter().for_each(|uneven| planned.take_field(uneven));
                    return Ok(plans);
                }
                _ => {}
            }
        }
        let off_resonance = match uneven {
            None => None,
            Some(uneven) => {
                Some(monitor.stage("time segments", 0, || OffResonance::new(device, uneven, options))?)
            }
        };
        let (tolerance, points) = (options.nufft_tolerance, options.point_batch);
        let nufft = monitor
            .stage("NUFFT plan", 0, || Transforms::new(device, &trajectory, matrix, tolerance, points))?;
        let mut plans = Self {
            trajectory: trajectory.into_owned(),
            matrix: matrix.to_vec(),
            nufft,
            density: OnceLock::new(),
            toeplitz: OnceLock::new(),
            notes: off_resonance.iter().map(|o| o.note().to_owned()).collect(),
            off_resonance,
            certified: OnceLock::new(),
        };
        let trajectory = &plans.trajectory;
        if needs.density {
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
        if needs.toeplitz {
            let mut notes = Vec::new();
            let mut make = |weights: Option<&[f32]>| {
                let mut kernel = match &options.kernels {
                    Some(store) => {
                        let tolerance = options.nufft_tolerance;
                        kept_or_made(&**store, &plans.nufft, trajectory, weights, tolerance, &mut notes)?
                    }
                    None => toeplitz(&plans.nufft, trajectory, weights)?,
                };
                if let Some(coils) = options.coil_batch {
                    kernel.hold_to(coils);
                }
                Ok(kernel)
            };
            monitor.stage("Toeplitz kernel", 0, || match &plans.off_resonance {
                Some(uneven) => uneven.plan_normal(options.segment_batch, |weights| make(Some(weights))),
                None => make(None).map(|kernel| {
                    let _ = plans.toeplitz.set(Arc::new(kernel));
                }),
            })?;
            notes.dedup();
            plans.notes.extend(notes);
        }
        Ok(plans)
    }

    fn has(&self, needs: Needs) -> bool {
        let normal = self.toeplitz.get().is_some() || self.off_resonance.is_some();
        (!needs.density || self.density.get().is_some()) && (!needs.toeplitz || normal)
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
        match &self.off_resonance {
            Some(uneven) => uneven.adjoint(&self.nufft, &self.trajectory, samples, images),
            None => self.nufft.adjoint(&self.trajectory, samples, images),
        }
    }

    /// F of `[batch.., matrix..]` to `[batch.., sample]`.
    pub(super) fn forward(&self, images: &Array<C32>, samples: &mut Array<C32>) -> Result<()> {
        match &self.off_resonance {
            Some(uneven) => uneven.forward(&self.nufft, &self.trajectory, images, samples),
            None => self.nufft.forward(&self.trajectory, images, samples),
        }
    }

    /// Whether these plans are certified from now on for the first time.
    pub(super) fn certify_once(&self) -> bool {
        self.certified.set(()).is_ok()
    }

    pub(super) fn density(&self) -> Result<&Array<f32>> {
        self.density.get().ok_or_else(|| missing("density weights"))
    }

    /// FᴴF over leading axes `batch`.
    pub(super) fn normal(&self, batch: &[usize]) -> Result<Arc<dyn LinearOp<f32>>> {
        match &self.off_resonance {
            Some(uneven) => uneven.normal(batch),
            None => Ok(Arc::new(ToeplitzNormal::new(batch, self.toeplitz()?.clone()))),
        }
    }

    /// Σ_j c̄_j FᴴF c_j.
    pub(super) fn sense_normal(&self, maps: Arc<Array<C32>>) -> Result<Arc<dyn LinearOp<f32>>> {
        match &self.off_resonance {
            Some(uneven) => uneven.sense_normal(maps),
            None => Ok(Arc::new(SenseToeplitz::new(maps, self.toeplitz()?.clone())?)),
        }
    }

    /// Where the field is uneven, its exact encoding.
    pub(super) fn uneven(&self) -> Result<Option<Exact<'_>>> {
        self.off_resonance.as_ref().map(OffResonance::exact).transpose()
    }

    fn toeplitz(&self) -> Result<&Arc<Toeplitz<f32>>> {
        self.toeplitz.get().ok_or_else(|| missing("Toeplitz kernel"))
    }
}

fn missing(what: &str) -> Error {
    Error::Numerical { what: what.into(), detail: "not planned for this method".into() }
}

/// FᴴWF by the plan's own adjoint transform, with real weights W of the samples or 1.
pub(super) fn toeplitz(
    plan: &Transforms,
    trajectory: &Trajectory,
    weights: Option<&[f32]>,
) -> Result<Toeplitz<f32>> {
    let device = plan.device();
    let mut weighing = match weights {
        None => None,
        Some(of) => Some((Array::from_slice(device, &[of.len()], of)?, Array::zeros(device, &[of.len()])?)),
    };
    let adjoint = &mut |phases: &Array<C32>, block: &mut Array<C32>| match &mut weighing {
        None => plan.adjoint(trajectory, phases, block),
        Some((weights, weighted)) => {
            vector::weight(weights, phases, weighted)?;
            plan.adjoint(trajectory, weighted, block)
        }
    };
    Toeplitz::from_adjoint(device, trajectory, plan.matrix(), adjoint)
}
