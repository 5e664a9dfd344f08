//! Complex Gaussian receiver noise of a stated signal-to-noise ratio and coil covariance.

use ndarray::{Array2, ArrayViewMut2};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::StandardNormal;
use rayspin_core::{C32, C64, Error, Result};
use rayspin_solve::dense::cholesky::unit_covariance_factor;

use super::options::expect_coils;

/// η = σ L w with E[η ηᴴ] = 2σ² Ψ, L Lᴴ = Ψ and w of independent complex numbers whose real and imaginary
/// parts are standard normal.
///
/// σ is the standard deviation of the real (or imaginary) part of a sample, averaged over coils: Ψ is scaled
/// to a mean diagonal of 1.
#[derive(Debug, Clone)]
pub(super) struct Noise {
    sigma: f64,
    factor: Array2<C64>,
    seed: u64,
}

impl Noise {
    /// Errors: a covariance that is not `[coils, coils]`, finite, Hermitian and positive definite.
    pub(super) fn new(sigma: f64, coils: usize, covariance: Option<&Array2<C64>>, seed: u64) -> Result<Self> {
        let factor = match covariance {
            None => Array2::eye(coils),
            Some(matrix) => unit_covariance_factor(matrix.view(), coils)?,
        };
        Ok(Self { sigma, factor, seed })
    }

    /// Adds noise to `[coil, sample]`; `stream` numbers the readout, so that the noise of each is its own and
    /// does not depend on the order of computation.
    pub(super) fn add(&self, mut data: ArrayViewMut2<'_, C32>, stream: u64) {
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        rng.set_stream(stream);
        let coils = data.nrows();
        let mut white = vec![C64::default(); coils];
        for mut sample in data.columns_mut() {
            for w in &mut white {
                *w = C64::new(rng.sample(StandardNormal), rng.sample(StandardNormal)) * self.sigma;
            }
            for (coil, value) in sample.iter_mut().enumerate() {
                let sum: C64 = (0..=coil).map(|j| self.factor[[coil, j]] * white[j]).sum();
                *value += C32::new(sum.re as f32, sum.im as f32);
            }
        }
    }
}

/// Ψ_{ij} = r^{|i−j|}: neighbours of a chain of coils correlate by r.
///
/// Errors: |r| ≥ 1 or not finite; no coil, or more than a scan has.
///
/// ```
/// use rayspin_mri::simulate::neighbour_covariance;
/// let noise = neighbour_covariance(3, 0.5)?;
/// assert_eq!((noise[[0, 0]].re, noise[[0, 1]].re, noise[[0, 2]].re), (1.0, 0.5, 0.25));
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn neighbour_covariance(coils: usize, correlation: f64) -> Result<Array2<C64>> {
    expect_coils(coils)?;
    if correlation.is_nan() || correlation.abs() >= 1.0 {
        return Err(Error::value(
            "noise correlation of neighbouring coils",
            "a number between −1 and 1",
            correlation,
        ));
    }
    Ok(Array2::from_shape_fn((coils, coils), |(i, j)| C64::from(correlation.powi(i.abs_diff(j) as i32))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sample_covariance_is_the_one_asked_for() {
        let (coils, samples, sigma) = (3, 60_000, 0.7);
        let mut covariance = neighbour_covariance(coils, 0.5).unwrap();
        covariance[[0, 1]] = C64::new(0.2, 0.4);
        covariance[[1, 0]] = C64::new(0.2, -0.4);
        covariance[[2, 2]] = C64::from(2.0);
        covariance.mapv_inplace(|v| v * 9.0);
        let noise = Noise::new(sigma, coils, Some(&covariance), 5).unwrap();
        let mut data = Array2::from_elem((coils, samples), C32::new(1.0, -1.0));
        noise.add(data.view_mut(), 3);
        let unit = (9.0 + 9.0 + 18.0) / 3.0;
        for i in 0..coils {
            for j in 0..coils {
                let pairs = data
                    .row(i)
                    .iter()
                    .zip(data.row(j))
                    .map(|(a, b)| {
                        let wide = |v: &C32| C64::new(f64::from(v.re) - 1.0, f64::from(v.im) + 1.0);
                        wide(a) * wide(b).conj()
                    })
                    .sum::<C64>()
                    / samples as f64;
                let expected = covariance[[i, j]] / unit * 2.0 * sigma * sigma;
                assert!((pairs - expected).norm() < 0.03, "[{i}, {j}]: {pairs} against {expected}");
            }
        }
    }

    #[test]
    fn streams_are_reproducible_and_distinct() {
        let noise = Noise::new(1.0, 2, None, 9).unwrap();
        let draw = |stream| {
            let mut data = Array2::zeros((2, 16));
            noise.add(data.view_mut(), stream);
            data
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
        let other = Noise::new(1.0, 2, None, 10).unwrap();
        let mut data = Array2::zeros((2, 16));
        other.add(data.view_mut(), 1);
        assert_ne!(draw(1), data);
    }

    #[test]
    fn bad_covariances_are_refused() {
        let refused = |m: Array2<C64>| Noise::new(1.0, 2, Some(&m), 0).is_err();
        assert!(refused(Array2::eye(3)));
        assert!(refused(Array2::zeros((2, 2))));
        assert!(refused(Array2::from_elem((2, 2), C64::new(1.0, 1.0))));
        assert!(refused(Array2::from_elem((2, 2), C64::from(f64::NAN))));
        assert!(refused(Array2::from_diag_elem(2, C64::from(-1.0))));
        assert!(!refused(Array2::eye(2)));
        assert!(neighbour_covariance(4, 1.0).is_err());
        assert!(neighbour_covariance(4, f64::NAN).is_err());
        assert!(neighbour_covariance(0, 0.5).is_err());
        assert!(neighbour_covariance(usize::MAX, 0.5).is_err());
    }
}
