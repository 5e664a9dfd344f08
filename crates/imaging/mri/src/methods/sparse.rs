//! One image seen by all coils, by accelerated proximal gradient steps: what methods with a sum of magnitudes
//! share.

use rayspin_core::{C32, Error, Monitor, Result};
use rayspin_run::{Bytes, Cost, Memory};
use rayspin_solve::{EachOf, FistaOptions, Problem, Proximal, Step, Watch, sparse_least_squares};

use super::solve::{vector_work, with_eigenvalue, without_sets};
use crate::encoding::{COMPLEX, Solve, Solving, Spec};

/// Share of the objective's whole fall that no longer counts. Simulated scans had 24 to 32 spokes, or a fifth
/// to an eighth of a grid. Wavelets ended after 147 to 189 iterations and total variation after 132 to 206.
/// Errors were within 3 % of the errors after 200.
const SETTLED: f64 = 1e-5;

/// FISTA on 1/(2L) ‖Fρ − d‖² + λs w g(ρ).
pub(super) struct Fista {
    /// λ and what the voxels' size makes of it, w.
    pub(super) lambda: f64,
    pub(super) growth: f64,
    pub(super) iterations: usize,
    pub(super) tolerance: f64,
    /// Largest number of last iterates to average into the image.
    pub(super) average: usize,
}

impl Fista {
    /// Solves for the image, and leaves it with `state`. `penalty` makes the penalty of one image; each
    /// coefficient of a temporal basis has one of its own.
    pub(super) fn solve<P: Proximal<C32>>(
        &self,
        state: &mut Solving<'_>,
        spec: &Spec<'_>,
        monitor: &Monitor<'_>,
        mut penalty: impl FnMut() -> Result<P>,
    ) -> Result<()> {
        let (mut one, mut each);
        let penalty: &mut dyn Proximal<C32> = match spec.coefficients() {
            None => {
                one = penalty()?;
                &mut one
            }
            Some(k) => {
                each = EachOf::new((0..k).map(|_| penalty()).collect::<Result<_>>()?);
                &mut each
            }
        };
        let dims = spec.domain().len();
        let (normal, rhs) = (state.normal()?, state.take_rhs()?);
        let eigenvalue = state.eigenvalue()?;
        let options = FistaOptions {
            max_iterations: self.iterations,
            tolerance: self.tolerance,
            settled: if self.tolerance > 0.0 { SETTLED } else { 0.0 },
            average: self.average.min(self.iterations.div_ceil(4)),
        };
        let observer = state.observer();
        let problem = Problem { normal: &*normal, rhs: &rhs, largest_eigenvalue: eigenvalue.value };
        // Showing iterates takes an image more, and two passes over it in each iteration.
        let watched = observer.is_some();
        let mut show = |step: &Step<'_, C32>| {
            if let Some(observer) = observer.as_mut() {
                observer(step.iteration, &without_sets(step.solution.to_host()?, dims));
            }
            Ok(())
        };
        let mut watch = Watch::from(monitor);
        if watched {
            watch = watch.with_observer(&mut show);
        }
        let lambda = self.lambda * self.growth;
        let solved = sparse_least_squares(&problem, None, lambda, penalty, &options, watch)?;
        let solve = Solve {
            solver: "FISTA",
            residuals: solved.fista.residuals,
            objective: solved.fista.objective,
            scale: Some(solved.scale * self.growth),
            converged: solved.fista.converged,
            ..Solve::default()
        };
        state.finish(solved.fista.solution.into_host()?, Some(with_eigenvalue(solve, &eigenvalue)));
        Ok(())
    }

    /// What it takes, with `penalty` arrays of an image for the penalty: beside them scaled right-hand side,
    /// the image shown, three images and what FᴴF makes of them, and two to work in.
    pub(super) fn needs(&self, spec: &Spec<'_>, penalty: u64) -> Result<Cost> {
        let iterations = self.iterations as u64;
        // With a temporal basis, the coefficient in work.
        let one = spec.coefficients().map_or(0, |_| COMPLEX * spec.voxels_of_domain());
        let arrays = (8 + penalty) * spec.image_bytes() + one;
        let memory = Memory::temporary(Bytes::with_host(spec.device(), arrays, spec.to_host()));
        let effort = spec.normal_effort(iterations)?.iterations(iterations);
        Ok(Cost::of(memory).and(effort.and(vector_work(spec, iterations, 5.0))))
    }
}

/// Fails where maps come in sets: there is one image.
pub(super) fn expect_one_set(spec: &Spec<'_>) -> Result<()> {
    match spec.sets() {
        1 => Ok(()),
        sets => Err(Error::value("sets of maps", "1 for a sparse image", sets)),
    }
}
