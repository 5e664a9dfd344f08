//! MLEM: expectation maximisation, which leaves no negative numbers.
//!
//! ```text
//! x ← x / (Aᵀ1) ⊙ Aᵀ(p / (A x))
//! ```
//!
//! L. A. Shepp, Y. Vardi, *Maximum likelihood reconstruction for emission tomography*, IEEE Trans Med Imaging
//! 1:113, 1982.

use rayspin_core::{Monitor, Result};
use rayspin_run::{About, Step, params};
use rayspin_solve::{SartOptions, mlem};

use super::{Method, Shared, iterative};
use crate::solving::{Solve, Solving, Spec, lost};

params! {
    /// Expectation maximisation: a volume without negative numbers, for any path. Negative line integrals
    /// count as 0.
    pub struct Mlem {
        /// Iterations.
        iterations: usize = 50 => iterative::ITERATIONS,
        /// Relative residual at which they end.
        tolerance: f64 = 0.0 => iterative::TOLERANCE,
    }
}

impl Method for Mlem {
    fn about(&self) -> About {
        About { name: "mlem", help: "Expectation maximisation (MLEM): no negative numbers" }
    }

    fn shared(&self, views: usize, _: usize) -> Option<Shared> {
        Some(Shared::views(views))
    }

    fn steps<'a>(&'a self, spec: &'a Spec<'a>) -> Result<Vec<Step<'a, Solving<'a>>>> {
        let solve = move |state: &mut Solving<'a>, monitor: &Monitor<'_>| {
            let parts = iterative::parts(spec, state, &iterative::subsets(spec.geometry().views().len(), 1))?;
            let options = SartOptions {
                iterations: self.iterations,
                tolerance: self.tolerance,
                ..SartOptions::default()
            };
            let all = iterative::in_subsets(&parts);
            let [all] = &all[..] else { return Err(lost("views")) };
            let solved = mlem(all, None, &options, monitor)?;
            drop(parts);
            let solve = Solve { solver: "MLEM", residuals: solved.residuals, converged: solved.converged };
            iterative::finish(spec, state, solved.solution, solve, monitor)
        };
        // x, Aᵀ1, the step and the scaled step; data, counts, the ratio and a projection.
        let needs = move || iterative::needs(spec, 4.0, (4.0, 1), self.iterations);
        let beside = move || iterative::beside(spec, (4.0, 1));
        Ok(vec![Step::new("MLEM", solve).progress(self.iterations).needs(needs).beside(beside)])
    }
}
