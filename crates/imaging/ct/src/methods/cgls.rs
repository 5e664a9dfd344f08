//! CGLS: least squares by conjugate gradients.
//!
//! ```text
//! min_x ‖A x − p‖²,   AᵀA x = Aᵀp
//! ```
//!
//! Noise grows with the number of iterations, which is what regularises.
//!
//! M. R. Hestenes, E. Stiefel, *Methods of conjugate gradients for solving linear systems*, J Res Natl Bur
//! Stand 49:409, 1952.

use rayspin_core::{Monitor, Result};
use rayspin_run::{About, Step, params};
use rayspin_solve::{CgOptions, cg};

use super::{Facts, Method, Shared, iterative};
use crate::solving::{Solve, Solving, Spec};

params! {
    /// Least squares by conjugate gradients, for any path.
    pub struct Cgls {
        /// Iterations.
        iterations: usize = 10 => iterative::ITERATIONS,
        /// Relative residual of AᵀA x = Aᵀp at which they end.
        tolerance: f64 = 1e-4 => iterative::TOLERANCE,
    }
}

impl Method for Cgls {
    fn about(&self) -> About {
        About { name: "cgls", help: "Least squares by conjugate gradients (CGLS); few iterations" }
    }

    fn suits(&self, facts: &Facts) -> Option<String> {
        facts.turn.is_none().then(|| "rays that filtered back-projection does not take".to_owned())
    }

    fn shared(&self, views: usize, _: usize) -> Option<Shared> {
        Some(Shared::views(views))
    }

    fn steps<'a>(&'a self, spec: &'a Spec<'a>) -> Result<Vec<Step<'a, Solving<'a>>>> {
        let solve = move |state: &mut Solving<'a>, monitor: &Monitor<'_>| {
            let (normal, rhs) = iterative::normal_equations(spec, state)?;
            let options = CgOptions { max_iterations: self.iterations, tolerance: self.tolerance };
            let solved = cg(&normal, &rhs, None, &options, monitor)?;
            drop((normal, rhs));
            let solve = Solve {
                solver: "conjugate gradients",
                residuals: solved.residuals,
                converged: solved.converged,
            };
            iterative::finish(spec, state, solved.solution, solve, monitor)
        };
        // The right-hand side, solution, residual, direction and product; data, and later a projection.
        let needs = move || iterative::needs(spec, 5.0, (1.0, 1), self.iterations + 1);
        let beside = move || iterative::beside(spec, (1.0, 1));
        Ok(vec![
            Step::new("conjugate gradients", solve).progress(self.iterations).needs(needs).beside(beside),
        ])
    }
}
