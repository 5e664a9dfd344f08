//! Least squares, coil by coil.
//!
//! ```text
//! (FᴴF + λ L WᴴW) y_j = Fᴴd_j,   ρ = √Σ_j |y_j|²  or  Σ_j c̄_j y_j / Σ_j |c_j|²
//! ```
//!
//! by conjugate gradients, with L the largest eigenvalue of FᴴF, and W the identity or finite differences.

use std::sync::Arc;

use ndarray::ArrayD;
use rayspin_core::{Monitor, Result};
use rayspin_device::Array;
use rayspin_kernels::vector;
use rayspin_run::Step;

use super::penalty::{Penalty, Regulariser, TIKHONOV};
use super::solve::{Conjugate, Normal, with_eigenvalue};
use super::{About, Combine, Idle, MapUse, Method, Rule, Uses, rules, shared};
use crate::encoding::{Solve, Solving, Spec, batches};
use crate::params;
use crate::scan::Facts;

params! {
    /// Regularised least squares, coil by coil, then combined.
    pub struct LeastSquares {
        /// How coil images become one; by what is given when absent.
        combine: Option<Combine> = None => shared::COMBINE,
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

impl LeastSquares {
    fn penalty_of(&self) -> Penalty<'_> {
        Penalty::new(self.regulariser, self.lambda, self.anatomy.as_ref(), self.anatomy_edge)
    }

    /// The coils' systems share their operator and differ in the right-hand side only: one after another, in
    /// the memory of one.
    fn solve(
        &self,
        conjugate: Conjugate,
        spec: &Spec<'_>,
        state: &mut Solving<'_>,
        monitor: &Monitor<'_>,
    ) -> Result<()> {
        let (operator, eigenvalue) = (state.normal()?, state.eigenvalue()?);
        let matrix = operator.domain().to_vec();
        let penalty = self.penalty_of().quadratic(spec, &matrix)?;
        let mut histories = Vec::with_capacity(spec.coils());
        let (mut all_converged, mut remaining) = (true, 0.0f64);
        let maps = state.maps();
        let mut combiner = spec.combiner(maps.as_ref());
        for range in batches(spec.coils(), spec.batch_sizes().coils) {
            let mut images = state.take_images(&range)?;
            let mut rhs = Array::zeros(spec.device(), &matrix)?;
            let len = rhs.len();
            for coil in 0..range.len() {
                vector::copy_part(&images, coil * len, &mut rhs, 0, len)?;
                let normal = Normal { operator: &*operator, rhs: &rhs, eigenvalue: eigenvalue.value };
                let solved =
                    conjugate.solve(normal, penalty.as_ref(), matrix.len(), state.observer(), monitor)?;
                vector::copy_part(&solved.image, 0, &mut images, coil * len, len)?;
                all_converged &= solved.converged;
                remaining = remaining.max(solved.remaining);
                histories.push(solved.residuals);
            }
            drop(rhs);
            combiner.add(range, images)?;
        }
        let solve = Solve {
            residuals: mean(&histories),
            converged: all_converged,
            remaining: Some(remaining),
            ..Solve::default()
        };
        state.finish(combiner.finish()?, Some(with_eigenvalue(solve, &eigenvalue)));
        Ok(())
    }
}

impl Method for LeastSquares {
    fn about(&self) -> About {
        About { name: "ls", help: "Regularised least squares by conjugate gradients, coil by coil" }
    }

    fn uses(&self) -> Uses {
        Uses { normal: true, ..Uses::new(MapUse::Combining(self.combine)) }
    }

    fn check(&self) -> Result<()> {
        self.penalty_of().check()
    }

    fn idle(&self) -> Vec<Idle> {
        self.penalty_of().idle()
    }

    fn suits(&self, facts: &Facts) -> Option<String> {
        let other = rules::sparse(facts).or_else(|| rules::partial_lines(facts));
        (facts.coils == 1 && other.is_none()).then(|| "one coil".to_owned())
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
        let coils = spec.coils();
        let needs = move || {
            let memory = spec.coil_images()?;
            let penalty = self.penalty_of().arrays(spec.domain().len());
            let beside = spec.image_bytes() + spec.combining();
            let mut needs = conjugate.needs(spec, penalty, coils as u64, beside)?;
            needs.memory = memory.memory.then(needs.memory);
            needs.effort.transforms += memory.effort.transforms;
            needs.effort.flops += memory.effort.flops;
            needs.effort.traffic += memory.effort.traffic;
            Ok(needs)
        };
        Ok(vec![
            spec.normal_operator(),
            spec.largest_eigenvalue(),
            Step::new("conjugate gradients", move |state, monitor| {
                self.solve(conjugate, spec, state, monitor)
            })
            .progress(coils * self.iterations)
            .needs(needs),
        ])
    }
}

/// Mean over coils at each iteration; a coil that ended early keeps its last residual.
fn mean(histories: &[Vec<f64>]) -> Vec<f64> {
    let longest = histories.iter().map(Vec::len).max().unwrap_or(0);
    let residual = |history: &Vec<f64>, i: usize| history.get(i).or(history.last()).copied().unwrap_or(0.0);
    (0..longest)
        .map(|i| histories.iter().map(|h| residual(h, i)).sum::<f64>() / histories.len() as f64)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::mean;

    #[test]
    fn the_mean_history_keeps_ended_coils() {
        assert_eq!(mean(&[vec![1.0, 0.5], vec![1.0, 0.3, 0.1]]), [1.0, 0.4, 0.3]);
        assert!(mean(&[]).is_empty());
    }
}
