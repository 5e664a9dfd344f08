//! Wavelet sparsity: one image seen by all coils with few wavelet coefficients.
//!
//! ```text
//! min_ρ 1/(2L) ‖Eρ − d‖² + λ s w ‖Wρ‖₁
//! ```
//!
//! by FISTA with random shifts, with L the largest eigenvalue of EᴴE, s the image's brightness (99th
//! percentile of |Eᴴd|/L) and w the size of the voxels. The image is the mean of the last iterates. Each of
//! them has seen other shifts.
//!
//! Lustig, Donoho, Pauly, *Sparse MRI: the application of compressed sensing for rapid MR imaging*, Magn
//! Reson Med 58:1182, 2007.

use rayspin_core::Result;
use rayspin_device::BackendKind;
use rayspin_linop::WaveletFamily;
use rayspin_run::Step;
use rayspin_solve::WaveletSparsity;

use super::Value;
use super::rules::{self, Law};
use super::sparse::{Fista, expect_one_set};
use super::{About, MapUse, Method, Param, Rule, Uses, shared};
use crate::encoding::{Solving, Spec};
use crate::scan::Facts;
use crate::{choices, params};

/// Number of last iterates to average into the image. Each has seen other shifts.
const AVERAGED: usize = 8;

/// λ is a threshold: proportional to the noise of a coefficient.
const LAW: Law = Law { factors: [0.3, 0.04], power: 1, range: [[1e-3, 1e-2], [1e-3, 1e-2]] };

choices! {
    /// The filter of wavelets.
    #[derive(Default)]
    pub enum WaveletFilter {
        /// Sums and differences of neighbours.
        Haar = "haar", "Sums and differences of neighbours";
        /// Daubechies' four coefficients, two vanishing moments.
        #[default]
        Db2 = "db2", "Daubechies wavelet with 4 filter taps";
    }
}

params! {
    /// One image seen by all coils with few wavelet coefficients (Lustig et al., Magn Reson Med 58:1182,
    /// 2007).
    pub struct Wavelet {
        /// Weight λ of the penalty, relative to the largest eigenvalue of FᴴF and the image's brightness, at
        /// a matrix of [`LAMBDA_MATRIX`](crate::recon::LAMBDA_MATRIX). The default was chosen by eye on real
        /// scans (README of this crate).
        lambda: f64 = 3e-3 => shared::LAMBDA,
        /// Iterations at most.
        iterations: usize = 50 => shared::ITERATIONS,
        /// Relative change of the image at which they end. The random shifts leave a change of their own,
        /// which no iteration lowers: they end where the objective no longer falls, unless the tolerance is
        /// 0.
        tolerance: f64 = 1e-4 => shared::TOLERANCE,
        /// The filter.
        wavelet: WaveletFilter = WaveletFilter::Db2 => Param::new("Wavelets", "Wavelet family"),
        /// Times that an axis is halved at most; as often as it has 16 voxels or more when absent.
        wavelet_levels: Option<usize> = None => Param::new("Wavelets", "Largest number of wavelet levels per axis")
            .title("levels of wavelets")
            .absent("an axis is halved while it has 16 voxels or more")
            .expects("at least 1", |value| matches!(value, Value::Count(1..))),
        /// Where the shifts of the image begin; the same seed gives the same image.
        wavelet_seed: u64 = 1 => Param::new("Wavelets", "Seed of the random shifts of the wavelet transform"),
    }
}

impl Wavelet {
    fn family(&self) -> WaveletFamily {
        match self.wavelet {
            WaveletFilter::Haar => WaveletFamily::Haar,
            WaveletFilter::Db2 => WaveletFamily::Daubechies2,
        }
    }
}

impl Method for Wavelet {
    fn about(&self) -> About {
        About {
            name: "wavelet",
            help: "One image seen by all coils with few wavelet coefficients (L1-wavelet, FISTA)",
        }
    }

    fn uses(&self) -> Uses {
        Uses { normal: true, coefficients: true, own_eigenvalue: true, ..Uses::new(MapUse::One) }
    }

    fn suits(&self, facts: &Facts) -> Option<String> {
        rules::sparse(facts).filter(|_| rules::series(facts).is_none())
    }

    fn rules(&self, facts: &Facts) -> Vec<Rule> {
        LAW.lambda(facts).into_iter().chain(rules::fista_iterations(facts)).collect()
    }

    fn penalty(&self) -> Option<f64> {
        Some(self.lambda)
    }

    fn moves(&self) -> bool {
        true
    }

    fn steps<'a>(&'a self, spec: &'a Spec<'a>) -> Result<Vec<Step<'a, Solving<'a>>>> {
        expect_one_set(spec)?;
        let fista = move || Fista {
            lambda: self.lambda,
            growth: spec.voxels().wavelet(),
            iterations: self.iterations,
            tolerance: self.tolerance,
            average: AVERAGED,
        };
        let solve = move |state: &mut Solving<'a>, monitor: &rayspin_core::Monitor<'_>| {
            fista().solve(state, spec, monitor, || {
                let (family, levels) = (self.family(), self.wavelet_levels);
                let wavelet = rayspin_linop::Wavelet::with_levels(spec.domain(), family, levels)?;
                WaveletSparsity::new(spec.device(), wavelet, Some(self.wavelet_seed))
            })
        };
        // Coefficients, what may be shrunk, two boxes and the mean of iterates; a GPU's boxes are the
        // coefficients anew, and a quarter of an image or less.
        let arrays = 1 + if spec.device().kind() == BackendKind::Cuda { 3 } else { 4 };
        Ok(vec![
            spec.right_hand_side(),
            spec.normal_operator(),
            spec.largest_eigenvalue(),
            Step::new("FISTA", solve).progress(self.iterations).needs(move || fista().needs(spec, arrays)),
        ])
    }
}
