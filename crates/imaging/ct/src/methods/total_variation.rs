//! Total variation: a volume with few edges, from few views.
//!
//! ```text
//! min_x 1/(2L) ‖A x − p‖² + λ s Σ_i |∇x(i)|
//! ```
//!
//! by FISTA, with L the largest eigenvalue of AᵀA and s the volume's brightness (99th percentile of |Aᵀp|/L).
//!
//! E. Y. Sidky, X. Pan, *Image reconstruction in circular cone-beam computed tomography by constrained,
//! total-variation minimization*, Phys Med Biol 53:4777, 2008.

use rayspin_core::{Monitor, Result};
use rayspin_linop::FiniteDifference;
use rayspin_run::{About, Step, params};
use rayspin_solve::{FistaOptions, LanczosOptions, Problem, largest_eigenvalue_from, sparse_least_squares};

use super::{Method, Shared, iterative};
use crate::solving::{Solve, Solving, Spec};

/// Steps of the inner problem in each iteration.
const STEPS: usize = 8;
/// Iterations for the largest eigenvalue. Its error stretches λ by as much.
const EIGENVALUE: LanczosOptions = LanczosOptions { seed: 0, max_iterations: 10, tolerance: 1e-2 };

params! {
    /// A volume with few edges (Sidky and Pan, Phys Med Biol 53:4777, 2008), for any path.
    pub struct TotalVariation {
        /// Weight λ of the penalty.
        lambda: f64 = 3e-3 => iterative::LAMBDA,
        /// Iterations.
        iterations: usize = 100 => iterative::ITERATIONS,
        /// Relative change at which they end.
        tolerance: f64 = 1e-4 => iterative::TOLERANCE,
    }
}

impl Method for TotalVariation {
    fn about(&self) -> About {
        About { name: "tv", help: "A volume with few edges (total variation, FISTA); for few views" }
    }

    fn shared(&self, views: usize, _: usize) -> Option<Shared> {
        Some(Shared::views(views))
    }

    fn steps<'a>(&'a self, spec: &'a Spec<'a>) -> Result<Vec<Step<'a, Solving<'a>>>> {
        let solve = move |state: &mut Solving<'a>, monitor: &Monitor<'_>| {
            let (normal, rhs) = iterative::normal_equations(spec, state)?;
            let largest_eigenvalue = largest_eigenvalue_from(&normal, &rhs, &EIGENVALUE)?.value;
            let problem = Problem { normal: &normal, rhs: &rhs, largest_eigenvalue };
            let spacing = spec.grid().spacing_mm();
            // Differences in units of the smallest voxel's, along axes that have several voxels.
            let least = spacing.iter().copied().fold(f64::INFINITY, f64::min);
            let shape = spec.grid().shape_zyx();
            let weights: Vec<f64> = (0..3).map(|axis| least / spacing[2 - axis]).collect();
            let differences = FiniteDifference::<f32>::new(&shape)?.weighted(&weights)?;
            let bound = differences.bound();
            let mut penalty = rayspin_solve::TotalVariation::new(spec.device(), &differences, bound, STEPS)?;
            let options = FistaOptions {
                max_iterations: self.iterations,
                tolerance: self.tolerance,
                ..FistaOptions::default()
            };
            let solved =
                sparse_least_squares(&problem, None, self.lambda, &mut penalty, &options, monitor)?.fista;
            drop((penalty, normal, rhs));
            let solve = Solve { solver: "FISTA", residuals: solved.residuals, converged: solved.converged };
            iterative::finish(spec, state, solved.solution, solve, monitor)
        };
        // FISTA's six, right-hand side twice, three dual fields of three components, and an image; data, and
        // later a projection.
        let needs =
            move || iterative::needs(spec, 18.0, (1.0, 1), self.iterations + EIGENVALUE.max_iterations + 1);
        let beside = move || iterative::beside(spec, (1.0, 1));
        Ok(vec![Step::new("FISTA", solve).progress(self.iterations).needs(needs).beside(beside)])
    }
}
