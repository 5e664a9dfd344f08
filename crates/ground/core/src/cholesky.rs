//! Cholesky factors of small Hermitian matrices.

use crate::{C64, Error, Result};
use ndarray::{Array2, ArrayView2};

/// The lower triangular L with A = L Lᴴ and a positive diagonal; reads the lower triangle of A only.
///
/// Errors: A is not square, or not positive definite.
///
/// ```
/// use ndarray::array;
/// use rayspin_core::C64;
/// use rayspin_core::cholesky::cholesky;
///
/// let a = array![[4.0, 2.0], [2.0, 5.0]].mapv(C64::from);
/// let l = cholesky("noise covariance", a.view())?;
/// assert_eq!(l, array![[2.0, 0.0], [1.0, 2.0]].mapv(C64::from));
/// assert!(cholesky("noise covariance", a.mapv(|v| -v).view()).is_err()); // not positive definite
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn cholesky(what: &str, a: ArrayView2<'_, C64>) -> Result<Array2<C64>> {
    let (n, columns) = a.dim();
    if n != columns {
        return Err(Error::Shape {
            what: what.into(),
            expected: "a square matrix".into(),
            found: crate::format_shape(&[n, columns]),
        });
    }
    let mut l = Array2::<C64>::zeros((n, n));
    for j in 0..n {
        let pivot = a[[j, j]].re - (0..j).map(|k| l[[j, k]].norm_sqr()).sum::<f64>();
        if pivot.is_nan() || pivot <= 0.0 {
            return Err(Error::value(
                what,
                "a positive definite matrix",
                format!("pivot {pivot:e} in row {j}"),
            ));
        }
        let diagonal = pivot.sqrt();
        l[[j, j]] = C64::from(diagonal);
        for i in j + 1..n {
            let sum: C64 = (0..j).map(|k| l[[i, k]] * l[[j, k]].conj()).sum();
            l[[i, j]] = (a[[i, j]] - sum) / diagonal;
        }
    }
    Ok(l)
}

/// L⁻¹ of a lower triangular L with a positive diagonal.
///
/// ```
/// use ndarray::array;
/// use rayspin_core::C64;
/// use rayspin_core::cholesky::inverse;
///
/// let l = array![[2.0, 0.0], [1.0, 2.0]].mapv(C64::from);
/// assert_eq!(inverse(l.view()).dot(&l), array![[1.0, 0.0], [0.0, 1.0]].mapv(C64::from));
/// ```
pub fn inverse(l: ArrayView2<'_, C64>) -> Array2<C64> {
    let n = l.nrows();
    let mut out = Array2::<C64>::zeros((n, n));
    for column in 0..n {
        for i in column..n {
            let sum: C64 = (column..i).map(|k| l[[i, k]] * out[[k, column]]).sum();
            let one = if i == column { C64::ONE } else { C64::ZERO };
            out[[i, column]] = (one - sum) / l[[i, i]];
        }
    }
    out
}

/// L with L Lᴴ = Ψ/m, where m is the mean diagonal of a noise covariance Ψ.
///
/// Errors: Ψ is not `[coils, coils]`, finite, Hermitian and positive definite.
///
/// ```
/// use ndarray::array;
/// use rayspin_core::C64;
/// use rayspin_core::cholesky::unit_covariance_factor;
///
/// let noise = array![[4.0, 0.0], [0.0, 12.0]].mapv(C64::from); // mean diagonal 8
/// let l = unit_covariance_factor(noise.view(), 2)?;
/// assert!((l[(0, 0)].norm_sqr() - 0.5).abs() < 1e-12 && (l[(1, 1)].norm_sqr() - 1.5).abs() < 1e-12);
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn unit_covariance_factor(matrix: ArrayView2<'_, C64>, coils: usize) -> Result<Array2<C64>> {
    let what = "noise covariance";
    crate::expect_shape(what, &[coils, coils], matrix.shape())?;
    if let Some((index, bad)) = matrix.iter().enumerate().find(|(_, v)| !v.is_finite()) {
        return Err(Error::NotFinite { what: what.into(), index, found: bad.to_string() });
    }
    let mean = (0..coils).map(|i| matrix[[i, i]].re).sum::<f64>() / coils as f64;
    for ((i, j), value) in matrix.indexed_iter() {
        if (value - matrix[[j, i]].conj()).norm() > 1e-6 * mean.abs() {
            return Err(Error::value(
                what,
                "a Hermitian matrix",
                format!("{value} at [{i}, {j}] and {} at [{j}, {i}]", matrix[[j, i]]),
            ));
        }
    }
    if mean <= 0.0 {
        return Err(Error::value(what, "a positive definite matrix", format!("mean diagonal {mean}")));
    }
    cholesky(what, matrix.mapv(|v| v / mean).view())
}

/// Solves L Lᴴ x = b in place, for an L from [`cholesky()`] and a b of its size.
///
/// ```
/// use ndarray::array;
/// use rayspin_core::C64;
/// use rayspin_core::cholesky::{cholesky, solve};
///
/// let a = array![[4.0, 2.0], [2.0, 5.0]].mapv(C64::from);
/// let l = cholesky("covariance", a.view())?;
/// let mut x = [C64::from(8.0), C64::from(12.0)];
/// solve(l.view(), &mut x);
/// assert_eq!(x, [C64::from(1.0), C64::from(2.0)]);
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn solve(l: ArrayView2<'_, C64>, b: &mut [C64]) {
    let n = b.len();
    for i in 0..n {
        let sum: C64 = (0..i).map(|k| l[[i, k]] * b[k]).sum();
        b[i] = (b[i] - sum) / l[[i, i]];
    }
    for i in (0..n).rev() {
        let sum: C64 = (i + 1..n).map(|k| l[[k, i]].conj() * b[k]).sum();
        b[i] = (b[i] - sum) / l[[i, i]].conj();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    #[test]
    fn factors_and_solves_random_hermitian_systems() {
        let mut rng = ChaCha8Rng::seed_from_u64(31);
        for n in [1usize, 2, 7, 16] {
            let g = Array2::from_shape_fn((n, n), |_| {
                C64::new(rng.random_range(-1.0..1.0), rng.random_range(-1.0..1.0))
            });
            let a = g.dot(&g.t().mapv(|v| v.conj())) + Array2::<C64>::eye(n) * C64::from(0.1);
            let x: Vec<C64> = (0..n).map(|i| C64::new(i as f64, 1.0)).collect();
            let mut b: Vec<C64> = (0..n).map(|i| (0..n).map(|j| a[[i, j]] * x[j]).sum()).collect();
            let l = cholesky("matrix", a.view()).unwrap();
            solve(l.view(), &mut b);
            let identity = inverse(l.view()).dot(&l) - Array2::<C64>::eye(n);
            assert!(identity.iter().all(|v| v.norm() < 1e-12), "{n}");
            for (found, expected) in b.iter().zip(&x) {
                assert!((found - expected).norm() < 1e-9, "{n}: {found} {expected}");
            }
        }
    }

    #[test]
    fn refuses_what_is_not_positive_definite() {
        let mut a = Array2::<C64>::eye(2);
        a[[1, 0]] = C64::from(2.0);
        assert!(cholesky("covariance", a.view()).is_err());
        assert!(cholesky("covariance", Array2::zeros((2, 3)).view()).is_err());
    }
}
