//! Total variation: one image seen by all coils with few edges.
//!
//! ```text
//! min_ρ 1/(2L) ‖Eρ − d‖² + λ s w Σ_x |∇ρ(x)|
//! ```
//!
//! by FISTA, with L the largest eigenvalue of EᴴE, s the image's brightness (99th percentile of |Eᴴd|/L) and
//! w the size of the voxels. Differences across edges of a reference image cost little, where there is one.
//!
//! Block, Uecker, Frahm, *Undersampled radial MRI with multiple coils. Iterative image reconstruction using a
//! total variation constraint*, Magn Reson Med 57:1086, 2007.

use std::sync::Arc;

use ndarray::ArrayD;
use rayspin_core::Result;
use rayspin_run::Step;

use super::penalty::Reference;
use super::rules::Law;
use super::sparse::{Fista, expect_one_set};
use super::{About, Idle, MapUse, Method, Rule, Uses, shared};
use crate::encoding::{Solving, Spec};
use crate::params;
use crate::scan::Facts;

/// λ is a threshold: proportional to the noise of a difference.
const LAW: Law = Law { factors: [0.15, 0.04], power: 1, range: [[3e-3, 1e-2], [3e-3, 5e-3]] };

/// Steps of the inner problem of total variation in each iteration.
const STEPS: usize = 8;

params! {
    /// One image seen by all coils with few edges (Block et al., Magn Reson Med 57:1086, 2007).
    pub struct TotalVariation {
        /// Weight λ of the penalty, relative to the largest eigenvalue of FᴴF and the image's brightness, at
        /// a matrix of [`LAMBDA_MATRIX`](crate::recon::LAMBDA_MATRIX). The default was chosen by eye on real
        /// scans (README of this crate).
        lambda: f64 = 2e-3 => shared::LAMBDA,
        /// Iterations at most.
        iterations: usize = 100 => shared::ITERATIONS,
        /// Relative residual at which they end.
        tolerance: f64 = 3e-4 => shared::TOLERANCE,
        /// Reference image `[z, y, x]` or `[y, x]` of the matrix, whose edges the penalty leaves alone.
        anatomy: Option<Arc<ArrayD<f32>>> = None => shared::ANATOMY,
        /// Difference in the reference image, as a part of its brightness (99th percentile), at which the
        /// weight of a squared difference is ½.
        anatomy_edge: f64 = 0.05 => shared::ANATOMY_EDGE,
    }
}

impl TotalVariation {
    fn reference(&self) -> Reference<'_> {
        Reference { image: self.anatomy.as_ref(), edge: self.anatomy_edge }
    }
}

impl Method for TotalVariation {
    fn about(&self) -> About {
        About { name: "tv", help: "One image seen by all coils with few edges (total variation, FISTA)" }
    }

    fn uses(&self) -> Uses {
        Uses { normal: true, coefficients: true, own_eigenvalue: true, ..Uses::new(MapUse::One) }
    }

    fn idle(&self) -> Vec<Idle> {
        self.reference().idle().into_iter().collect()
    }

    fn rules(&self, facts: &Facts) -> Vec<Rule> {
        LAW.lambda(facts).into_iter().collect()
    }

    fn penalty(&self) -> Option<f64> {
        Some(self.lambda)
    }

    fn steps<'a>(&'a self, spec: &'a Spec<'a>) -> Result<Vec<Step<'a, Solving<'a>>>> {
        expect_one_set(spec)?;
        let reference = self.reference();
        let fista = move || Fista {
            lambda: self.lambda,
            growth: spec.voxels().gradient(),
            iterations: self.iterations,
            tolerance: self.tolerance,
            average: 1,
        };
        let solve = move |state: &mut Solving<'a>, monitor: &rayspin_core::Monitor<'_>| {
            let differences = reference.differences(spec.device(), spec.voxels(), spec.domain())?;
            // An anatomy's weights are at most 1.
            let bound = 4.0 * spec.voxels().slopes().iter().map(|r| r * r).sum::<f64>();
            fista().solve(state, spec, monitor, || {
                rayspin_solve::TotalVariation::new(spec.device(), &*differences, bound, STEPS)
            })
        };
        // The dual image thrice, and one image.
        let axes = spec.domain().len();
        let arrays = 3 * axes as u64 + 1 + reference.arrays(axes);
        Ok(vec![
            spec.right_hand_side(),
            spec.normal_operator(),
            spec.largest_eigenvalue(),
            Step::new("FISTA", solve).progress(self.iterations).needs(move || fista().needs(spec, arrays)),
        ])
    }
}
