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
use rayspin_solve::{SartOptions, Subset, mlem};

use super::{Method, iterative};
use crate::solving::{Solve, Solving, Spec};

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

    fn steps<'a>(&'a self, spec: &'a Spec<'a>) -> Result<Vec<Step<'a, Solving<'a>>>> {
        let solve = move |state: &mut Solving<'a>, monitor: &Monitor<'_>| {
            let (project, data) = (iterative::projection(spec)?, iterative::data(spec, state)?);
            let options = SartOptions {
                iterations: self.iterations,
                tolerance: self.tolerance,
                ..SartOptions::default()
            };
            let solved = mlem(Subset { op: &project, data: &data }, None, &options, monitor)?;
            drop((project, data));
            let solve = Solve { solver: "MLEM", residuals: solved.residuals, converged: solved.converged };
            iterative::finish(spec, state, solved.solution, solve, monitor)
        };
        // x, Aᵀ1, the step and the scaled step; data, counts, the ratio and a projection.
        let needs = move || iterative::needs(spec, 4.0, 4.0, self.iterations);
        Ok(vec![Step::new("MLEM", solve).progress(self.iterations).needs(needs)])
    }
}
