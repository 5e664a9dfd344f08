//! SIRT: all rays update the volume at once.
//!
//! ```text
//! x ← x + ω C Aᵀ R (p − A x),   R = 1/(A 1),  C = 1/(Aᵀ 1)
//! ```
//!
//! P. Gilbert, *Iterative methods for the three-dimensional reconstruction of an object from projections*, J
//! Theor Biol 36:105, 1972.

use rayspin_core::{Monitor, Result};
use rayspin_run::{About, Step, params};
use rayspin_solve::{SartOptions, sart};

use super::{Method, Shared, iterative};
use crate::solving::{Solve, Solving, Spec};

params! {
    /// Simultaneous iterative reconstruction: least squares weighted by the lengths of rays, for any path.
    pub struct Sirt {
        /// Iterations.
        iterations: usize = 100 => iterative::ITERATIONS,
        /// Relative residual at which they end.
        tolerance: f64 = 0.0 => iterative::TOLERANCE,
        /// Part of the full step.
        relaxation: f64 = 1.0 => iterative::RELAXATION,
    }
}

impl Method for Sirt {
    fn about(&self) -> About {
        About { name: "sirt", help: "All rays update the volume at once (SIRT); slow and smooth" }
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
                relaxation: self.relaxation,
                nonnegative: false,
            };
            let solved = sart(&iterative::in_subsets(&parts), None, &options, monitor)?;
            drop(parts);
            let solve = Solve { solver: "SIRT", residuals: solved.residuals, converged: solved.converged };
            iterative::finish(spec, state, solved.solution, solve, monitor)
        };
        // x, C, the step and the scaled step; data, R, the residual and the weighted residual.
        let needs = move || iterative::needs(spec, 4.0, (4.0, 1), self.iterations);
        let beside = move || iterative::beside(spec, (4.0, 1));
        Ok(vec![Step::new("SIRT", solve).progress(self.iterations).needs(needs).beside(beside)])
    }
}
