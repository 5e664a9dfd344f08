//! Temporal bases: the images of a series as sums of a few coefficient images.
//!
//! ```text
//! x_f = Σ_i Φ_fi c_i,   f = 1 … F frames,   i = 1 … k coefficients
//! ```
//!
//! Φ comes from a file, or from the simulated signals of many tissues: its columns are then the first k right
//! singular vectors of the dictionary, which hold more of its energy than any other k columns do.
//!
//! Tamir et al., *T2 shuffling: sharp, multicontrast, volumetric fast spin-echo imaging*, Magn Reson Med
//! 77:180, 2017.

use ndarray::{Array2, ArrayView2};
use rayspin_core::{C64, Error, Result, format_shape};
use rayspin_device::Device;
use rayspin_linop::SubspaceToeplitz;
use rayspin_solve::dense::{Matrix, eigen};

/// The shortest and the longest T2 of [`t2_decays`], in s.
pub const T2_RANGE_S: [f64; 2] = [0.01, 2.0];
/// The number of T2 values of [`t2_decays`].
pub const T2_VALUES: usize = 256;

/// The smallest singular value, relative to the largest, that counts: Gram matrices in double precision
/// resolve 1e-8.
const RANK_TOLERANCE: f64 = 1e-6;
/// Largest |ΦᴴΦ − 1| of columns that count as orthonormal. Numbers of a file may be single precision.
const ORTHONORMAL: f64 = 1e-4;

/// Φ, `[frame, coefficient]`: how the images of a series are made of coefficient images.
///
/// Its columns are taken as they are given, so that x_f = Σ_i Φ_fi c_i holds with the coefficients of the
/// result. They need not be orthonormal; λ then weighs the coefficients by the sizes of their columns, which
/// a run notes.
///
/// ```
/// use rayspin_mri::basis::{Basis, t2_decays};
///
/// // 32 echoes, 10 ms apart.
/// let times: Vec<f64> = (1..=32).map(|echo| 0.01 * f64::from(echo)).collect();
/// let basis = Basis::svd(t2_decays(&times)?.view(), 4)?;
/// assert_eq!((basis.frames(), basis.coefficients(), basis.spectra()), (32, 4, 10));
/// assert!(basis.deviation() < 1e-9); // orthonormal columns
/// # Ok::<(), rayspin_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Basis {
    matrix: Array2<C64>,
    /// Energy of the dictionary that lies within the subspace, where the basis is of one.
    energy: Option<f64>,
}

impl Basis {
    /// From Φ, `[frame, coefficient]`.
    ///
    /// Errors: no column, more columns than frames, numbers that are not finite, or columns that depend on
    /// each other.
    pub fn new(matrix: Array2<C64>) -> Result<Self> {
        let (frames, coefficients) = matrix.dim();
        if coefficients == 0 || coefficients > frames {
            return Err(Error::Shape {
                what: "temporal basis".into(),
                expected: "[frame, coefficient] with 1 to as many coefficients as frames".into(),
                found: format_shape(&[frames, coefficients]),
            });
        }
        check_finite("temporal basis", matrix.view())?;
        let rank = rank(matrix.view())?;
        if rank < coefficients {
            let expected = format!("{coefficients} columns that do not depend on each other");
            return Err(Error::value("temporal basis", expected, format!("a rank of {rank}")));
        }
        Ok(Self { matrix, energy: None })
    }

    /// The first `coefficients` right singular vectors of a dictionary of signals, `[atom, frame]`:
    /// orthonormal columns, real where the dictionary is real. The largest number of each column is real and
    /// positive.
    ///
    /// Errors: no coefficient; numbers that are not finite; more coefficients than the dictionary's rank.
    pub fn svd(dictionary: ArrayView2<'_, C64>, coefficients: usize) -> Result<Self> {
        check_finite("dictionary", dictionary)?;
        let frames = dictionary.ncols();
        // The right singular vectors are the eigenvectors of Σ_a d_a d_aᴴ with the signals d_a as columns.
        let (values, vectors) = gram(&dictionary.t().to_owned().view())?;
        let most = values.first().copied().unwrap_or(0.0).max(0.0);
        let rank = values.iter().filter(|&&value| value > RANK_TOLERANCE.powi(2) * most).count();
        if coefficients == 0 || coefficients > rank {
            let expected =
                format!("1 to {rank}, the rank of the dictionary of {} signals", dictionary.nrows());
            return Err(Error::value("coefficients of a temporal basis", expected, coefficients));
        }
        let mut matrix = Array2::from_shape_fn((frames, coefficients), |(f, i)| vectors[(f, i)]);
        for mut column in matrix.columns_mut() {
            let largest = column.iter().copied().max_by(|a, b| a.norm_sqr().total_cmp(&b.norm_sqr()));
            let turn = largest.map_or(C64::ONE, |v| v.conj() / v.norm());
            column.mapv_inplace(|v| v * turn);
        }
        if dictionary.iter().all(|v| v.im == 0.0) {
            matrix.mapv_inplace(|v| C64::from(v.re));
        }
        let sum = |values: &[f64]| values.iter().map(|value| value.max(0.0)).sum::<f64>();
        Ok(Self { matrix, energy: Some(sum(&values[..coefficients]) / sum(&values)) })
    }

    /// Φ.
    pub fn matrix(&self) -> ArrayView2<'_, C64> {
        self.matrix.view()
    }

    /// F, the number of frames.
    pub fn frames(&self) -> usize {
        self.matrix.nrows()
    }

    /// k, the number of coefficients.
    pub fn coefficients(&self) -> usize {
        self.matrix.ncols()
    }

    /// Fails unless a series of `frames` images has one for each row.
    pub fn expect_frames(&self, frames: usize) -> Result<()> {
        if self.frames() == frames {
            return Ok(());
        }
        let expected = format!("{frames} rows, one for each image of the series");
        Err(Error::value("temporal basis", expected, self.frames()))
    }

    /// Whether any number of Φ is not real.
    pub fn is_complex(&self) -> bool {
        self.matrix.iter().any(|v| v.im != 0.0)
    }

    /// Real spectra of the normal operator: k(k + 1)/2, or k² of a complex basis.
    pub fn spectra(&self) -> usize {
        SubspaceToeplitz::<f32>::spectra(self.coefficients(), self.is_complex())
    }

    /// The part of the dictionary's energy that lies within the subspace, 0 to 1; none of a basis that was
    /// given.
    pub fn energy(&self) -> Option<f64> {
        self.energy
    }

    /// The largest |ΦᴴΦ − 1|: 0 for orthonormal columns.
    pub fn deviation(&self) -> f64 {
        let gram = self.matrix.t().mapv(|v| v.conj()).dot(&self.matrix);
        let identity = |i, j| if i == j { C64::ONE } else { C64::ZERO };
        gram.indexed_iter().map(|((i, j), v)| (v - identity(i, j)).norm()).fold(0.0, f64::max)
    }

    /// What a run says of the basis.
    pub(crate) fn notes(&self) -> Vec<String> {
        let (frames, coefficients, spectra) = (self.frames(), self.coefficients(), self.spectra());
        let energy = match self.energy {
            Some(energy) => format!(", which hold {:.4} % of the dictionary's energy", 100.0 * energy),
            None => String::new(),
        };
        let (images, operator) = match coefficients {
            1 => (
                "coefficient",
                "the image is the coefficient, and the normal operator has 1 real spectrum".to_owned(),
            ),
            _ => (
                "coefficients",
                format!(
                    "the images are the coefficients, in the order of the basis's columns, and the normal \
                     operator has {spectra} real spectra"
                ),
            ),
        };
        let text =
            format!("temporal subspace: {frames} frames from {coefficients} {images}{energy}; {operator}");
        let mut notes = vec![text];
        let deviation = self.deviation();
        if deviation > ORTHONORMAL {
            notes.push(format!(
                "the columns of the temporal basis are not orthonormal (largest |ΦᴴΦ − 1| {deviation:.1e}): \
                 coefficients are of the columns as given, and λ weighs them by the columns' sizes"
            ));
        }
        notes
    }
}

/// Signals e^{−t/T2} of [`T2_VALUES`] tissues at the echo times `times_s` (s), `[atom, frame]`: T2 from 10 ms
/// to 2 s ([`T2_RANGE_S`]), evenly spaced in the logarithm. No signal is normalised: at t = 0 all are 1.
///
/// Errors: no time; a time that is negative or not finite.
///
/// ```
/// use rayspin_mri::basis::{T2_VALUES, t2_decays};
///
/// let signals = t2_decays(&[0.0, 0.01])?; // 0 and 10 ms
/// assert_eq!(signals.dim(), (T2_VALUES, 2));
/// assert!((signals[[0, 1]].re - (-1.0f64).exp()).abs() < 1e-12); // T2 = 10 ms
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn t2_decays(times_s: &[f64]) -> Result<Array2<C64>> {
    if times_s.is_empty() {
        return Err(Error::value("echo times", "at least one", 0));
    }
    if let Some(time) = times_s.iter().find(|time| !(**time >= 0.0 && time.is_finite())) {
        return Err(Error::value("echo time", "seconds, not negative", time));
    }
    let [shortest, longest] = T2_RANGE_S;
    let t2 = |atom: usize| shortest * (longest / shortest).powf(atom as f64 / (T2_VALUES - 1) as f64);
    Ok(Array2::from_shape_fn((T2_VALUES, times_s.len()), |(atom, f)| {
        C64::from((-times_s[f] / t2(atom)).exp())
    }))
}

fn check_finite(what: &str, values: ArrayView2<'_, C64>) -> Result<()> {
    let not_finite = values.iter().enumerate().find(|(_, v)| !(v.re.is_finite() && v.im.is_finite()));
    match not_finite {
        Some((index, value)) => Err(Error::NotFinite { what: what.into(), index, found: value.to_string() }),
        None => Ok(()),
    }
}

/// Eigenvalues, largest first, and eigenvectors of A Aᴴ.
fn gram(a: &ArrayView2<'_, C64>) -> Result<(Vec<f64>, Matrix)> {
    let product = a.dot(&a.t().mapv(|v| v.conj()));
    let n = product.nrows();
    eigen(&Device::cpu_with_threads(1)?, &Matrix::from_fn(n, n, |i, j| product[[i, j]]))
}

/// The number of columns that do not depend on the others, whatever their sizes.
fn rank(matrix: ArrayView2<'_, C64>) -> Result<usize> {
    let mut unit = matrix.t().mapv(|v| v.conj());
    for mut column in unit.rows_mut() {
        // Sums of squares of huge numbers would overflow.
        let largest = column.iter().map(|v| v.re.abs().max(v.im.abs())).fold(0.0, f64::max);
        if largest > 0.0 {
            column.mapv_inplace(|v| v / largest);
            let norm = column.iter().map(|v| v.norm_sqr()).sum::<f64>().sqrt();
            column.mapv_inplace(|v| v / norm);
        }
    }
    let (values, _) = gram(&unit.view())?;
    let most = values.first().copied().unwrap_or(0.0);
    Ok(values.iter().filter(|&&value| value > 0.0 && value > RANK_TOLERANCE.powi(2) * most).count())
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    fn random(shape: (usize, usize), complex: bool, seed: u64) -> Array2<C64> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        Array2::from_shape_fn(shape, |_| {
            C64::new(rng.random_range(-1.0..1.0), if complex { rng.random_range(-1.0..1.0) } else { 0.0 })
        })
    }

    #[test]
    fn what_is_no_basis_is_refused_by_name() {
        let refused = |matrix: Array2<C64>| Basis::new(matrix).unwrap_err().to_string();
        assert!(refused(Array2::zeros((3, 0))).contains("temporal basis"));
        assert!(refused(random((3, 4), false, 1)).contains("[3, 4]"));
        let mut nan = random((5, 2), false, 2);
        nan[[3, 1]].im = f64::NAN;
        assert!(refused(nan).contains("temporal basis"));
        // The third column is the sum of the others; and a column of zeros.
        let mut dependent = random((6, 3), true, 3);
        let sum = &dependent.column(0) + &dependent.column(1);
        dependent.column_mut(2).assign(&sum);
        assert!(refused(dependent.clone()).contains("rank of 2"));
        dependent.column_mut(2).fill(C64::ZERO);
        assert!(refused(dependent).contains("rank of 2"));
        // Columns of very different size are no reason.
        let mut sized = random((6, 2), false, 4);
        sized.column_mut(1).mapv_inplace(|v| v * 1e-12);
        assert!(Basis::new(sized).is_ok());
        assert!(Basis::new(Array2::eye(3)).is_ok());
    }

    /// Σ_a ‖d_a − ΦΦᴴd_a‖² is the sum of the squared singular values that are left out, and no other basis
    /// does better.
    #[test]
    fn singular_vectors_leave_least() {
        for (atoms, frames, k, complex) in
            [(9, 7, 3, false), (4, 12, 2, true), (30, 5, 5, true), (1, 3, 1, false)]
        {
            let dictionary = random((atoms, frames), complex, 7 + k as u64);
            let basis = Basis::svd(dictionary.view(), k).unwrap();
            assert!(basis.deviation() < 1e-12, "{}", basis.deviation());
            assert_eq!(basis.is_complex(), complex && frames > 1);
            let left = |basis: ArrayView2<'_, C64>| -> f64 {
                let coefficients = dictionary.dot(&basis.mapv(|v| v.conj()));
                let apart = &dictionary - &coefficients.dot(&basis.t());
                apart.iter().map(|v| v.norm_sqr()).sum()
            };
            let all: f64 = dictionary.iter().map(|v| v.norm_sqr()).sum();
            let found = left(basis.matrix());
            assert!((found / all - (1.0 - basis.energy().unwrap())).abs() < 1e-12);
            // Orthonormal columns near by leave more.
            let near = &basis.matrix() + &(random((frames, k), complex, 5) * 0.05);
            let near = Basis::svd(near.t(), k).unwrap();
            assert!(left(near.matrix()) >= found - 1e-12 * all);
        }
    }

    #[test]
    fn decays_have_few_dimensions() {
        let times: Vec<f64> = (1..=32).map(|echo| 0.01 * f64::from(echo)).collect();
        let dictionary = t2_decays(&times).unwrap();
        let basis = Basis::svd(dictionary.view(), 4).unwrap();
        assert!(basis.energy().unwrap() > 0.999_9);
        assert!(!basis.is_complex());
        let refused = Basis::svd(dictionary.view(), 32).unwrap_err().to_string();
        assert!(refused.contains("rank of the dictionary"), "{refused}");
        assert!(t2_decays(&[]).is_err() && t2_decays(&[-0.1]).is_err() && t2_decays(&[f64::NAN]).is_err());
    }
}
