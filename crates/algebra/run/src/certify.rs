//! Certificates: random outputs of a run's transforms are compared with the exact sums.
//!
//! A transform has N outputs y. m of them are drawn at random, with replacement, and evaluated exactly in
//! f64. The error of one output is e = |y − y_exact| / √(Σ|y|²/N). A certificate states
//!
//! * √(Σe²/m), an estimate of the relative l2 error, which must be within the tolerance.
//! * max e, and a share x = 1 − δ^(1/m). At confidence 1 − δ, at most the share x of all N outputs has a
//!   larger error. If the share were larger than x, all m draws would miss it with a probability below (1 −
//!   x)^m = δ. This holds for any distribution of errors. How large the errors of that share are remains
//!   unknown, because no sample can tell.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rayspin_core::{C32, C64, Error, Result};
use serde::Serialize;

/// 1 − δ. The statement about the share of larger errors is wrong in at most the share δ of all runs.
pub const CONFIDENCE: f64 = 0.99;

/// How a run checks itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Certify {
    /// Number of outputs that are checked for each transform, at least 1.
    pub outputs: usize,
    /// Seed of the draws.
    pub seed: u64,
}

impl Certify {
    /// Checks every range. Errors: the first value out of range, named.
    pub fn validate(&self) -> Result<()> {
        if (1..=1 << 24).contains(&self.outputs) {
            return Ok(());
        }
        Err(Error::value("outputs to certify", "1 to 16777216", self.outputs))
    }
}

/// The measured errors of one transform. `K` identifies an image.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Certificate<K> {
    /// The transform.
    pub transform: String,
    /// The first image that its plan makes.
    pub first: K,
    /// Number of outputs that were evaluated exactly.
    pub outputs: usize,
    /// Number of outputs of the transform.
    pub population: usize,
    /// √(Σe²/m).
    pub error: f64,
    /// max e over the evaluated outputs.
    pub largest: f64,
    /// At most this share of all outputs has an error larger than `largest` …
    pub share: f64,
    /// … at this confidence.
    pub confidence: f64,
    /// The tolerance: the largest relative l2 error that is allowed.
    pub tolerance: f64,
}

impl<K> Certificate<K> {
    /// Whether the estimated relative l2 error meets the tolerance.
    pub fn met(&self) -> bool {
        self.error <= self.tolerance
    }

    /// A certificate from errors relative to the root mean square of all outputs.
    pub fn new(transform: &str, population: usize, errors: &[f64], tolerance: f64) -> Self
    where
        K: Default,
    {
        let outputs = errors.len();
        Self {
            transform: transform.into(),
            first: K::default(),
            outputs,
            population,
            error: (errors.iter().map(|e| e * e).sum::<f64>() / outputs as f64).sqrt(),
            largest: errors.iter().copied().fold(0.0, f64::max),
            share: 1.0 - (1.0 - CONFIDENCE).powf(1.0 / outputs as f64),
            confidence: CONFIDENCE,
            tolerance,
        }
    }

    /// Sets the first image that the transform's plan makes.
    #[must_use]
    pub fn of(self, first: K) -> Self {
        Self { first, ..self }
    }
}

/// `count` indices below `population`, with replacement.
pub fn draws(rng: &mut ChaCha8Rng, count: usize, population: usize) -> Vec<usize> {
    (0..count).map(|_| rng.random_range(0..population)).collect()
}

/// |y − exact| over the root mean square of y, at the drawn indices.
pub fn errors(computed: &[C32], exact: &[C64], indices: &[usize]) -> Vec<f64> {
    let square = |v: &C32| f64::from(v.re).powi(2) + f64::from(v.im).powi(2);
    let rms = (computed.iter().map(square).sum::<f64>() / computed.len() as f64).sqrt();
    let wide = |v: C32| C64::new(v.re.into(), v.im.into());
    let computed: Vec<C64> = indices.iter().map(|&index| wide(computed[index])).collect();
    errors_of(&computed, exact, rms)
}

/// |y − exact| over `rms`, the root mean square of all outputs.
pub fn errors_of(computed: &[C64], exact: &[C64], rms: f64) -> Vec<f64> {
    // If all outputs are 0, only exact zeros are right.
    let scale = |e: f64| {
        if rms > 0.0 {
            e / rms
        } else if e == 0.0 {
            0.0
        } else {
            f64::INFINITY
        }
    };
    computed.iter().zip(exact).map(|(computed, exact)| scale((computed - exact).norm())).collect()
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    #[test]
    fn the_share_beyond_the_largest_draw_is_bounded_as_often_as_stated() {
        // A population with a known share of large errors: the statement may fail in δ of all samples at
        // most.
        let population: Vec<f64> = (0..1000).map(|i| f64::from(i) * 1e-3).collect();
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut wrong = 0;
        let rounds = 4000;
        for _ in 0..rounds {
            let errors: Vec<f64> = draws(&mut rng, 50, 1000).into_iter().map(|i| population[i]).collect();
            let certificate = Certificate::<()>::new("t", 1000, &errors, 1.0);
            let above = population.iter().filter(|&&e| e > certificate.largest).count();
            wrong += usize::from(above as f64 / 1000.0 > certificate.share);
        }
        let rate = f64::from(wrong as u32) / f64::from(rounds);
        assert!(rate < 0.015, "{rate}");
    }

    #[test]
    fn a_wrong_transform_is_found() {
        let found = [C32::ONE; 8];
        let exact = [C64::ONE, C64::new(1.5, 0.0)];
        let certificate = Certificate::<()>::new("t", 8, &errors(&found, &exact, &[0, 7]), 1e-3);
        assert!(!certificate.met() && (certificate.largest - 0.5).abs() < 1e-12);
    }
}
