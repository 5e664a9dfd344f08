//! Plans of a trajectory, made once and used for every frame, coil and iteration.

use std::ops::Range;
use std::sync::Arc;

use rayspin_core::{C32, Error, Result};
use rayspin_device::Array;
use rayspin_kernels::density;
use rayspin_linop::{Adjoint, CoilMaps, LinearOp};
use rayspin_run::Certify;

use super::{Modulated, Modulation, Points};
use crate::encoding::blocks::Transforms;
use crate::encoding::kinds::{Encoding, Seen};
use crate::encoding::samples::CoilSamples;
use crate::encoding::store::{kept_or_made, toeplitz};
use crate::encoding::{Certificate, Density, Spec, certify};
use crate::maps;
use crate::prepare::Mixing;

/// What depends on the trajectory alone, and on what multiplies its transforms.
pub(in crate::encoding) struct Plans<P> {
    modulated: Option<P>,
    transforms: Option<Transforms>,
    density: Option<Array<f32>>,
    notes: Vec<String>,
}

impl<P> Default for Plans<P> {
    fn default() -> Self {
        Self { modulated: None, transforms: None, density: None, notes: Vec::new() }
    }
}

impl<M: Modulation> Points<'_, M> {
    pub(super) fn plan_modulation(&self, spec: &Spec<'_>, plans: &mut Plans<M::Plans>) -> Result<()> {
        let (modulated, notes) = self.modulation.plan(spec)?;
        plans.notes.extend(notes);
        plans.modulated = Some(modulated);
        Ok(())
    }

    pub(super) fn plan_nufft(&self, spec: &Spec<'_>, plans: &mut Plans<M::Plans>) -> Result<()> {
        let (tolerance, at_once) = (spec.settings().nufft_tolerance, spec.batch_sizes().points);
        let made = Transforms::new(spec.device(), &self.trajectory, self.matrix, tolerance, at_once)?;
        plans.transforms = Some(made);
        Ok(())
    }

    pub(super) fn plan_density(&self, spec: &Spec<'_>, plans: &mut Plans<M::Plans>) -> Result<()> {
        let (device, trajectory, matrix) = (spec.device(), &self.trajectory, self.matrix);
        let iterations = spec.settings().density_iterations;
        plans.density = Some(match (spec.settings().density, self.split(spec)) {
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

    pub(super) fn plan_normal(&self, spec: &Spec<'_>, plans: &mut Plans<M::Plans>) -> Result<()> {
        let Plans { modulated, transforms, notes, .. } = plans;
        let transforms = transforms.as_ref().ok_or_else(|| missing("NUFFT"))?;
        let settings = spec.settings();
        let mut said = Vec::new();
        let mut make = |weights: Option<&[f32]>| {
            let mut kernel = match settings.kernels {
                Some(store) => {
                    let tolerance = settings.nufft_tolerance;
                    kept_or_made(store, transforms, weights, tolerance, &mut said)?
                }
                None => toeplitz(transforms, weights)?,
            };
            if let Some(coils) = settings.batch_sizes.coils {
                kernel.limit_batch(coils);
            }
            Ok(kernel)
        };
        let modulated = modulated.as_mut().ok_or_else(|| missing("encoding"))?;
        modulated.plan_normal(transforms, settings.batch_sizes.segments, &mut make)?;
        said.dedup();
        notes.extend(said);
        Ok(())
    }
}

impl<P: Modulated> Plans<P> {
    /// Whether these plans do for another frame; then they take over what differs.
    pub(super) fn take_over<M: Modulation<Plans = P>>(
        &mut self,
        spec: &Spec<'_>,
        points: &Points<'_, M>,
    ) -> Result<bool> {
        let Some(modulated) = &mut self.modulated else { return Ok(false) };
        let enough = (!spec.needs_density() || self.density.is_some())
            && (!spec.needs_normal() || modulated.has_normal());
        let same = self.transforms.as_ref().is_some_and(|transforms| {
            *transforms.trajectory() == points.trajectory && transforms.matrix() == points.matrix
        });
        if enough && same { points.modulation.take_over(spec, modulated) } else { Ok(false) }
    }

    pub(in crate::encoding) fn modulated(&self) -> Result<&P> {
        self.modulated.as_ref().ok_or_else(|| missing("encoding"))
    }

    pub(in crate::encoding) fn transforms(&self) -> Result<&Transforms> {
        self.transforms.as_ref().ok_or_else(|| missing("NUFFT"))
    }
}

impl<P: Modulated> Encoding for Plans<P> {
    fn adjoint(&mut self, spec: &Spec<'_>, samples: Array<C32>) -> Result<Array<C32>> {
        let coils = [samples.shape()[0]];
        let mut images = Array::zeros(spec.device(), &[&coils, &spec.image_shape()[..]].concat())?;
        self.modulated()?.adjoint(self.transforms()?, &samples, &mut images)?;
        Ok(images)
    }

    fn combine(
        &mut self,
        _: &Spec<'_>,
        samples: Array<C32>,
        maps: &CoilMaps<f32>,
        coils: Range<usize>,
        sum: &mut Array<C32>,
    ) -> Result<()> {
        self.modulated()?.combine(self.transforms()?, samples, maps, coils, sum)
    }

    fn normal(&self, spec: &Spec<'_>, seen: Seen) -> Result<Arc<dyn LinearOp<C32>>> {
        let modulated = self.modulated()?;
        match seen {
            Seen::Alone => modulated.normal(&[]),
            Seen::Coils(maps) => modulated.normal_of_coils(maps),
            Seen::Sets(soft) => {
                let normal = modulated.normal(&[spec.coils()])?;
                Ok(Arc::new(Adjoint::new(soft.clone()).compose(normal)?.compose(soft)?))
            }
        }
    }

    fn certify(
        &self,
        spec: &Spec<'_>,
        certify: &Certify,
        samples: &CoilSamples<'_>,
    ) -> Result<Vec<Certificate>> {
        certify::points(self, spec, certify, samples)
    }

    fn estimate_maps(
        &self,
        spec: &Spec<'_>,
        samples: &CoilSamples<'_>,
        _: Option<&Mixing>,
    ) -> Result<(CoilMaps<f32>, String)> {
        let settings = spec.settings();
        let transforms = self.transforms()?;
        let from = maps::NonCartesian {
            trajectory: transforms.trajectory(),
            matrix: transforms.matrix(),
            coils: samples.coils(),
            of_coil: &mut |coil| samples.part(&(coil..coil + 1)),
            density: self.density()?,
            on_host: transforms.by_blocks(),
        };
        let (width, how) = (settings.calibration, settings.sensitivities);
        let (coil_maps, centre) = maps::from_samples(from, width, how, spec.map_cut())?;
        let note = format!(
            "coil sensitivities from the central {} cycles per field of view by {} (`--calibration`, `--sensitivities` or `--maps` overrides)",
            centre.width,
            centre.how.name()
        );
        Ok((coil_maps, note))
    }

    fn density(&self) -> Result<&Array<f32>> {
        self.density.as_ref().ok_or_else(|| missing("density weights"))
    }

    fn notes(&self) -> &[String] {
        &self.notes
    }
}

pub(in crate::encoding::kinds) fn missing(what: &str) -> Error {
    Error::Numerical { what: what.into(), detail: "not planned for this method".into() }
}
