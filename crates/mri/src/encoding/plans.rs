//! Plans of a trajectory.

use std::sync::Arc;

use rayspin_core::{C32, Error, Result, Trajectory};
use rayspin_device::{Array, Device};
use rayspin_kernels::toeplitz::Toeplitz;
use rayspin_kernels::{density, vector};
use rayspin_linop::{CoilMaps, LinearOp, SenseToeplitz, ToeplitzNormal};

use super::blocks::Transforms;
use super::off_resonance::{DeviceField, Exact, OffResonance};
use super::points::{Field, Points};
use super::spec::Spec;
use super::store::kept_or_made;
use super::subspace::{Frames, Subspace};
use crate::recon::{Density, ReconOptions};

/// What depends on the trajectory alone, made once and used for every frame, coil and iteration.
#[derive(Default)]
pub(crate) struct Plans {
    trajectory: Option<Trajectory>,
    nufft: Option<Transforms>,
    density: Option<Array<f32>>,
    toeplitz: Option<Arc<Toeplitz<f32>>>,
    off_resonance: Option<OffResonance>,
    subspace: Option<Subspace>,
    notes: Vec<String>,
    certified: bool,
}

/// What plans are made for.
pub(super) struct Extent<'a> {
    pub(super) device: &'a Device,
    pub(super) matrix: &'a [usize],
    pub(super) trajectory: &'a Trajectory,
    pub(super) field: Option<&'a Field<'a>>,
    pub(super) subspace: Option<&'a Frames<'a>>,
    pub(super) options: &'a ReconOptions,
    /// Whether the method iterates with the normal operator.
    pub(super) normal: bool,
}

impl Plans {
    /// Whether these plans do for another frame; then they take its field.
    pub(super) fn take_over(&mut self, spec: &Spec<'_>, points: &Points<'_>) -> Result<bool> {
        let normal = self.toeplitz.is_some() || self.off_resonance.is_some() || self.subspace.is_some();
        let enough = (!spec.needs_density() || self.density.is_some()) && (!spec.needs_normal() || normal);
        let same = self.trajectory.as_ref() == Some(&points.trajectory)
            && self.nufft.as_ref().is_some_and(|nufft| nufft.matrix() == spec.domain());
        if !(enough && same) {
            return Ok(false);
        }
        let fits = match (&self.subspace, &points.subspace) {
            (None, None) => true,
            (Some(planned), Some(now)) => planned.fits(now),
            _ => false,
        };
        Ok(match (&mut self.off_resonance, &points.field) {
            _ if !fits => false,
            (None, None) => true,
            (Some(planned), Some(now)) if planned.fits(now) => {
                planned.take_field(DeviceField::new(spec.device(), now, spec.domain())?);
                true
            }
            _ => false,
        })
    }

    pub(super) fn plan_segments(&mut self, of: &Extent<'_>) -> Result<()> {
        let Some(field) = of.field else { return Ok(()) };
        let field = DeviceField::new(of.device, field, of.matrix)?;
        let made = OffResonance::new(of.device, field, of.options.field_tolerance, of.normal)?;
        self.notes.push(made.note().to_owned());
        self.off_resonance = Some(made);
        Ok(())
    }

    pub(super) fn plan_subspace(&mut self, of: &Extent<'_>) -> Result<()> {
        let Some(frames) = of.subspace else { return Ok(()) };
        self.notes.extend(frames.basis.notes());
        self.subspace = Some(Subspace::new(of.device, frames)?);
        Ok(())
    }

    pub(super) fn plan_nufft(&mut self, of: &Extent<'_>) -> Result<()> {
        let (tolerance, points) = (of.options.nufft_tolerance, of.options.run.batch_sizes.points);
        self.nufft = Some(Transforms::new(of.device, of.trajectory, of.matrix, tolerance, points)?);
        self.trajectory = Some(of.trajectory.clone());
        Ok(())
    }

    pub(super) fn plan_density(&mut self, of: &Extent<'_>) -> Result<()> {
        let Extent { device, matrix, trajectory, options, .. } = *of;
        let iterations = options.density_iterations;
        let points = options.run.batch_sizes.points.filter(|&points| points < trajectory.samples());
        self.density = Some(match (options.density, points) {
            (Density::PipeMenon, None) => density::pipe_menon(device, trajectory, matrix, iterations)?,
            (Density::PipeMenon, Some(points)) => {
                density::pipe_menon_by_blocks(device, trajectory, matrix, iterations, points)?
            }
            (Density::Radial, _) => {
                let weights = density::radial(trajectory, matrix)?;
                Array::from_vec(device, &[weights.len()], weights)?
            }
        });
        Ok(())
    }

    pub(super) fn plan_normal(&mut self, of: &Extent<'_>) -> Result<()> {
        let nufft = self.nufft.as_ref().ok_or_else(|| missing("NUFFT"))?;
        let run = &of.options.run;
        let mut notes = Vec::new();
        let mut make = |weights: Option<&[f32]>| {
            let mut kernel = match &run.kernels {
                Some(store) => {
                    let tolerance = of.options.nufft_tolerance;
                    kept_or_made(&**store, nufft, of.trajectory, weights, tolerance, &mut notes)?
                }
                None => toeplitz(nufft, of.trajectory, weights)?,
            };
            if let Some(coils) = run.batch_sizes.coils {
                kernel.limit_batch(coils);
            }
            Ok(kernel)
        };
        let resident = run.batch_sizes.segments;
        match (&self.off_resonance, &self.subspace) {
            (Some(field), _) => field.plan_normal(resident, |weights| make(Some(weights)))?,
            (None, Some(subspace)) => {
                subspace.plan_normal(nufft, of.trajectory, resident, |weights| make(Some(weights)))?;
            }
            (None, None) => self.toeplitz = Some(Arc::new(make(None)?)),
        }
        notes.dedup();
        self.notes.extend(notes);
        Ok(())
    }

    pub(super) fn notes(&self) -> &[String] {
        &self.notes
    }

    pub(super) fn trajectory(&self) -> Result<&Trajectory> {
        self.trajectory.as_ref().ok_or_else(|| missing("trajectory"))
    }

    fn nufft(&self) -> Result<(&Transforms, &Trajectory)> {
        Ok((self.nufft.as_ref().ok_or_else(|| missing("NUFFT"))?, self.trajectory()?))
    }

    pub(super) fn matrix(&self) -> Result<&[usize]> {
        Ok(self.nufft()?.0.matrix())
    }

    /// Fᴴ of `[batch.., sample]` to `[batch.., matrix..]`.
    pub(crate) fn adjoint(&self, samples: &Array<C32>, images: &mut Array<C32>) -> Result<()> {
        let (nufft, trajectory) = self.nufft()?;
        match &self.off_resonance {
            Some(off_resonance) => off_resonance.adjoint(nufft, trajectory, samples, images),
            None => nufft.adjoint(trajectory, samples, images),
        }
    }

    /// F of `[batch.., matrix..]` to `[batch.., sample]`.
    pub(super) fn forward(&self, images: &Array<C32>, samples: &mut Array<C32>) -> Result<()> {
        let (nufft, trajectory) = self.nufft()?;
        match &self.off_resonance {
            Some(off_resonance) => off_resonance.forward(nufft, trajectory, images, samples),
            None => nufft.forward(trajectory, images, samples),
        }
    }

    pub(super) fn is_certified(&self) -> bool {
        self.certified
    }

    pub(super) fn set_certified(&mut self) {
        self.certified = true;
    }

    pub(crate) fn density(&self) -> Result<&Array<f32>> {
        self.density.as_ref().ok_or_else(|| missing("density weights"))
    }

    pub(super) fn planned_subspace(&self) -> Option<&Subspace> {
        self.subspace.as_ref()
    }

    /// Errors: the points are of no temporal subspace.
    pub(super) fn subspace(&self) -> Result<&Subspace> {
        self.planned_subspace().ok_or_else(|| missing("temporal subspace"))
    }

    /// FᴴF over leading axes `batch`.
    pub(super) fn normal(&self, batch: &[usize]) -> Result<Arc<dyn LinearOp<C32>>> {
        match &self.off_resonance {
            Some(off_resonance) => off_resonance.normal(batch),
            None => Ok(Arc::new(ToeplitzNormal::new(batch, self.toeplitz()?.clone()))),
        }
    }

    /// Σ_j c̄_j FᴴF c_j, of images or of the coefficients of a temporal subspace.
    pub(super) fn sense_normal(&self, maps: CoilMaps<f32>) -> Result<Arc<dyn LinearOp<C32>>> {
        match (&self.off_resonance, &self.subspace) {
            (Some(off_resonance), _) => off_resonance.sense_normal(maps),
            (None, Some(subspace)) => subspace.normal(Some(maps)),
            (None, None) => Ok(Arc::new(SenseToeplitz::new(maps, self.toeplitz()?.clone())?)),
        }
    }

    /// Where the field is inhomogeneous, its exact encoding.
    pub(super) fn exact_off_resonance(&self) -> Result<Option<Exact<'_>>> {
        self.off_resonance.as_ref().map(OffResonance::exact).transpose()
    }

    fn toeplitz(&self) -> Result<&Arc<Toeplitz<f32>>> {
        self.toeplitz.as_ref().ok_or_else(|| missing("Toeplitz kernel"))
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
