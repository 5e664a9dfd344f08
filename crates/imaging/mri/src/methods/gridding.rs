//! Gridding: density-compensated adjoint transform, coil by coil, then combined.
//!
//! ```text
//! y_j = Fᴴ (w d_j),   ρ = √Σ_j |y_j|²  or  Σ_j c̄_j y_j / Σ_j |c_j|²
//! ```
//!
//! with weights w of the samples ([`Density`](crate::recon::Density)).
//!
//! Jackson, Meyer, Nishimura, Macovski, *Selection of a convolution function for Fourier inversion using
//! gridding*, IEEE Trans Med Imaging 10:473, 1991; Pipe, Menon, *Sampling density compensation in MRI*, Magn
//! Reson Med 41:179, 1999.

use rayspin_core::Result;
use rayspin_device::Array;
use rayspin_kernels::vector;
use rayspin_run::Step;

use super::{About, Combine, MapUse, Method, SampleKind, Uses, rules, shared};
use crate::encoding::{Solving, Spec, batches};
use crate::params;
use crate::scan::Facts;

params! {
    /// Density-compensated adjoint transform, coil by coil, then combined.
    pub struct Gridding {
        /// How coil images become one; by what is given when absent.
        combine: Option<Combine> = None => shared::COMBINE,
    }
}

impl Gridding {
    fn run(&self, spec: &Spec<'_>, state: &mut Solving<'_>) -> Result<()> {
        let maps = state.maps();
        let mut combiner = spec.combiner(maps.as_ref());
        for range in batches(spec.coils(), spec.batch_sizes().coils) {
            let samples = state.take_samples(&range)?;
            let mut weighted = Array::zeros(spec.device(), samples.shape())?;
            vector::weight(state.density()?, &samples, &mut weighted)?;
            drop(samples);
            combiner.add(range, state.adjoint(weighted)?)?;
        }
        state.finish(combiner.finish()?, None);
        Ok(())
    }
}

impl Method for Gridding {
    fn about(&self) -> About {
        About { name: "gridding", help: "Density-compensated adjoint NUFFT, coil by coil" }
    }

    fn uses(&self) -> Uses {
        Uses { samples: SampleKind::Trajectory, density: true, ..Uses::new(MapUse::Combining(self.combine)) }
    }

    fn suits(&self, facts: &Facts) -> Option<String> {
        rules::partial_lines(facts)
    }

    fn steps<'a>(&'a self, spec: &'a Spec<'a>) -> Result<Vec<Step<'a, Solving<'a>>>> {
        Ok(vec![
            Step::new("gridding", move |state, _| self.run(spec, state)).needs(move || spec.gridding_needs()),
        ])
    }
}
