//! Low rank plus sparse: the images of a series, as what stays and what changes.
//!
//! ```text
//! min_{L,S} 1/(2Λ) ‖E(L + S) − d‖² + λ_L σ ‖L‖_* + λ_S s ‖TS‖₁,   ρ = L + S
//! ```
//!
//! over all frames of a slice together. The background L has few singular values as a matrix of frames and
//! voxels. The moving part S has few frequencies in time. T is the Fourier transform of the frames followed
//! by their mirror image, so the series need not end as it begins. Λ is the largest eigenvalue of EᴴE. σ is
//! the largest singular value of Eᴴd/Λ, and s the 99th percentile of |Eᴴd|/Λ. Each frame has an encoding of
//! its own.
//!
//! Otazo, Candès, Sodickson, *Low-rank plus sparse matrix decomposition for accelerated dynamic MRI with
//! separation of background and dynamic components*, Magn Reson Med 73:1125, 2015.

use rayspin_core::{Monitor, Result};
use rayspin_run::{Bytes, Cost, Memory, Step};
use rayspin_solve::{LowRankSparseOptions, Problem, low_rank_plus_sparse, low_rank_plus_sparse_memory};

use super::Value;
use super::solve::{vector_work, with_eigenvalue};
use super::sparse::expect_one_set;
use super::{About, MapUse, Method, Param, Rule, Span, Uses, rules, shared};
use crate::encoding::{Solve, Solving, Spec};
use crate::params;
use crate::scan::Facts;

const fn weight(help: &'static str) -> Param {
    Param::new("Series", help).expects("a finite number >= 0", |value| match value {
        Value::Number(weight) => *weight >= 0.0 && weight.is_finite(),
        _ => false,
    })
}

/// The least and the most λ_S for samples along a trajectory, and the undersampling from which on the most is
/// taken. Below it λ_S falls with the square of the undersampling. Measured with λ_S of 0.002 and of 0.01: a
/// simulated uptake at 4-fold undersampling (64 × 64, 6 coils, SNR 60) has an error of 10.8 % and 11.9 %. Its
/// region's first value is off by 3.4 % and 18 %. A beating phantom at 10-fold undersampling has an error of
/// 37 % and 23 %.
const ALONG_TRAJECTORY: ([f64; 2], f64) = ([2e-3, 1e-2], 10.0);
/// Iterations along a trajectory.
const MANY: u64 = 120;

params! {
    /// Images of a series as a background of low rank and what moves with few frequencies in time (Otazo et
    /// al., Magn Reson Med 73:1125, 2015).
    pub struct LowRankSparse {
        /// Weight λ_L of the background's singular values, relative to the largest one.
        low_rank: f64 = 4e-3 => weight("Weight of the background's nuclear norm (not a rank), relative to its largest singular value"),
        /// Weight λ_S of frequencies in time, relative to the images' brightness. Below λ_L times the square
        /// root of the number of frames the background would move to what changes.
        sparse: f64 = 1e-2 => weight("Weight of the moving part's temporal frequencies (L1 norm), relative to the images' brightness (99th percentile)"),
        /// Iterations at most.
        iterations: usize = 50 => shared::ITERATIONS,
        /// Relative change of the images at which they end.
        tolerance: f64 = 1e-3 => shared::TOLERANCE,
    }
}

impl LowRankSparse {
    fn solve(&self, spec: &Spec<'_>, state: &mut Solving<'_>, monitor: &Monitor<'_>) -> Result<()> {
        let (normal, rhs, eigenvalue) = (state.normal()?, state.take_rhs()?, state.eigenvalue()?);
        let problem = Problem { normal: &*normal, rhs: &rhs, largest_eigenvalue: eigenvalue.value };
        let options = LowRankSparseOptions {
            low_rank: self.low_rank,
            sparse: self.sparse,
            max_iterations: self.iterations,
            tolerance: self.tolerance,
        };
        let solved = low_rank_plus_sparse(&problem, &options, monitor)?;
        state.note(format!(
            "low rank plus sparse: background of rank {} in {} frames",
            solved.rank,
            spec.frames()
        ));
        let solve = Solve {
            solver: "low rank plus sparse",
            residuals: solved.residuals,
            objective: solved.objective,
            scale: Some(solved.scale),
            converged: solved.converged,
            ..Solve::default()
        };
        state.finish(solved.solution.into_host()?, Some(with_eigenvalue(solve, &eigenvalue)));
        Ok(())
    }

    fn needs(&self, spec: &Spec<'_>) -> Result<Cost> {
        let voxels = spec.voxels_of_domain() as usize;
        let (host, gpu) = low_rank_plus_sparse_memory(spec.device(), spec.frames(), voxels);
        let beside = if spec.on_gpu() { spec.to_host() } else { 0 };
        let iterations = self.iterations as u64;
        let effort = spec.normal_effort(iterations)?.iterations(iterations);
        let passes = 5.0 * spec.frames() as f64;
        Ok(Cost::of(Memory::temporary(Bytes { host: host + beside, gpu }))
            .and(effort.and(vector_work(spec, iterations, passes))))
    }
}

impl Method for LowRankSparse {
    fn about(&self) -> About {
        About {
            name: "low-rank-sparse",
            help: "All images of a series together: a low-rank background plus a moving part of few temporal frequencies (L+S)",
        }
    }

    fn uses(&self) -> Uses {
        Uses { span: Span::Series, normal: true, own_eigenvalue: true, ..Uses::new(MapUse::One) }
    }

    fn suits(&self, facts: &Facts) -> Option<String> {
        rules::series(facts)
    }

    fn rules(&self, facts: &Facts) -> Vec<Rule> {
        if facts.on_grid {
            return Vec::new();
        }
        let ([least, most], full) = ALONG_TRAJECTORY;
        let sparse = (most * (facts.undersampling / full).powi(2)).clamp(least, most);
        let sparse = format!("{sparse:.1e}").parse().unwrap_or(sparse);
        let reason = format!("{:.1}-fold undersampling along a trajectory", facts.undersampling);
        let slow = "iterations are slow where a trajectory samples k-space unevenly".to_owned();
        vec![
            Rule { name: "sparse", value: Value::Number(sparse), reason },
            Rule { name: "iterations", value: Value::Count(MANY), reason: slow },
        ]
    }

    fn penalty(&self) -> Option<f64> {
        Some(self.low_rank + self.sparse)
    }

    fn steps<'a>(&'a self, spec: &'a Spec<'a>) -> Result<Vec<Step<'a, Solving<'a>>>> {
        expect_one_set(spec)?;
        Ok(vec![
            spec.largest_eigenvalue(),
            Step::new("low rank plus sparse", move |state, monitor| self.solve(spec, state, monitor))
                .progress(self.iterations)
                .needs(move || self.needs(spec)),
        ])
    }
}
