//! CG-SENSE: one image seen by all coils.
//!
//! ```text
//! (EᴴE + λ L WᴴW) ρ = Eᴴd,   E = F diag(c_j)
//! ```
//!
//! by conjugate gradients, with coil sensitivities c_j, L the largest eigenvalue of EᴴE, and W the identity
//! or finite differences.
//!
//! Pruessmann, Weiger, Börnert, Boesiger, *Advances in sensitivity encoding with arbitrary k-space
//! trajectories*, Magn Reson Med 46:638, 2001.

use std::sync::Arc;

use ndarray::ArrayD;
use rayspin_core::Result;
use rayspin_run::Step;

use super::penalty::{Penalty, Regulariser, TIKHONOV};
use super::solve::{Conjugate, Normal, with_eigenvalue, without_sets};
use super::{About, Idle, MapUse, Method, Rule, Uses, rules, shared};
use crate::encoding::{Solve, Solving, Spec};
use crate::params;
use crate::scan::Facts;

params! {
    /// Regularised least squares of one image seen by all coils at once (Pruessmann et al., Magn Reson Med
    /// 46:638, 2001).
    pub struct CgSense {
        /// Weight λ of the penalty, relative to the largest eigenvalue of FᴴF.
        lambda: f64 = 1e-3 => shared::LAMBDA,
        /// The penalty's operator.
        regulariser: Regulariser = Regulariser::Identity => shared::REGULARISER,
        /// Reference image `[z, y, x]` or `[y, x]` of the matrix, whose edges the penalty leaves alone.
        anatomy: Option<Arc<ArrayD<f32>>> = None => shared::ANATOMY,
        /// Difference in the reference image, as a part of its brightness (99th percentile), at which the
        /// weight of a squared difference is ½.
        anatomy_edge: f64 = 0.05 => shared::ANATOMY_EDGE,
        /// Iterations at most.
        iterations: usize = 30 => shared::ITERATIONS,
        /// Relative residual at which they end.
        tolerance: f64 = 1e-5 => shared::TOLERANCE,
    }
}

impl CgSense {
    fn penalty_of(&self) -> Penalty<'_> {
        Penalty::new(self.regulariser, self.lambda, self.anatomy.as_ref(), self.anatomy_edge)
    }
}

impl Method for CgSense {
    fn about(&self) -> About {
        About { name: "cg-sense", help: "Regularised least squares of one image seen by all coils" }
    }

    fn uses(&self) -> Uses {
        Uses { normal: true, coefficients: true, ..Uses::new(MapUse::Sets) }
    }

    fn check(&self) -> Result<()> {
        self.penalty_of().check()
    }

    fn idle(&self) -> Vec<Idle> {
        self.penalty_of().idle()
    }

    fn suits(&self, facts: &Facts) -> Option<String> {
        (facts.coils > 1 && rules::sparse(facts).is_none()).then(|| format!("{} coils", facts.coils))
    }

    fn rules(&self, facts: &Facts) -> Vec<Rule> {
        // λ of differences is not in the unit of the noise.
        let law = (self.regulariser == Regulariser::Identity).then(|| TIKHONOV.lambda(facts));
        law.flatten().into_iter().collect()
    }

    fn penalty(&self) -> Option<f64> {
        Some(self.penalty_of().weight())
    }

    fn steps<'a>(&'a self, spec: &'a Spec<'a>) -> Result<Vec<Step<'a, Solving<'a>>>> {
        let conjugate =
            Conjugate { lambda: self.lambda, iterations: self.iterations, tolerance: self.tolerance };
        let dims = spec.domain().len();
        let solve = move |state: &mut Solving<'a>, monitor: &rayspin_core::Monitor<'_>| {
            let (operator, rhs, eigenvalue) = (state.normal()?, state.take_rhs()?, state.eigenvalue()?);
            let penalty = self.penalty_of().quadratic(spec, rhs.shape())?;
            let normal = Normal { operator: &*operator, rhs: &rhs, eigenvalue: eigenvalue.value };
            let solved = conjugate.solve(normal, penalty.as_ref(), dims, state.observer(), monitor)?;
            let image = solved.image.into_host()?;
            let image = if spec.coefficients().is_some() { image } else { without_sets(image, dims) };
            let solve = Solve {
                residuals: solved.residuals,
                converged: solved.converged,
                remaining: Some(solved.remaining),
                ..Solve::default()
            };
            state.finish(image, Some(with_eigenvalue(solve, &eigenvalue)));
            Ok(())
        };
        Ok(vec![
            spec.right_hand_side(),
            spec.normal_operator(),
            spec.largest_eigenvalue(),
            Step::new("conjugate gradients", solve)
                .progress(self.iterations)
                .needs(move || conjugate.needs(spec, self.penalty_of().arrays(dims), 1, 0)),
        ])
    }
}
