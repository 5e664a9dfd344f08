//! Small dense Hermitian systems as operators, and their solution by elimination in f64.
#![allow(dead_code, clippy::unwrap_used, reason = "each test file uses a part")]

use num_complex::Complex;
use rayspin_core::{C64, Real, Result};
use rayspin_device::{Array, Device};
use rayspin_linop::{LinearOp, random};

/// A matrix as an operator; values are rounded to the storage type on use.
pub(crate) struct Dense<R> {
    shape: [usize; 1],
    pub(crate) matrix: Vec<Vec<C64>>,
    real: std::marker::PhantomData<R>,
}

impl<R: Real> Dense<R> {
    pub(crate) fn new(matrix: Vec<Vec<C64>>) -> Self {
        Self { shape: [matrix.len()], matrix, real: std::marker::PhantomData }
    }

    /// V diag(eigenvalues) Vᴴ with a random unitary V.
    pub(crate) fn hermitian(eigenvalues: &[f64], seed: u64) -> Self {
        let n = eigenvalues.len();
        let device = Device::cpu_with_threads(1).unwrap();
        let mut columns: Vec<Vec<C64>> = Vec::new();
        for j in 0..n {
            let mut v = random::<f64>(&device, &[n], seed * 1000 + j as u64).unwrap().cpu().to_vec();
            // Twice: once leaves rounding behind.
            for _ in 0..2 {
                for u in &columns {
                    let c: C64 = u.iter().zip(&v).map(|(u, v)| u.conj() * v).sum();
                    v.iter_mut().zip(u).for_each(|(v, u)| *v -= c * u);
                }
            }
            let size = v.iter().map(C64::norm_sqr).sum::<f64>().sqrt();
            columns.push(v.into_iter().map(|v| v / size).collect());
        }
        let entry = |a: usize, b: usize| -> C64 {
            (0..n).map(|j| columns[j][a] * eigenvalues[j] * columns[j][b].conj()).sum()
        };
        Self::new((0..n).map(|a| (0..n).map(|b| entry(a, b)).collect()).collect())
    }

    pub(crate) fn times(&self, x: &[C64]) -> Vec<C64> {
        self.matrix.iter().map(|row| row.iter().zip(x).map(|(a, x)| a * x).sum()).collect()
    }

    /// A⁻¹b by Gaussian elimination with pivots.
    pub(crate) fn solve(&self, b: &[C64]) -> Vec<C64> {
        let n = b.len();
        let mut a: Vec<Vec<C64>> = self.matrix.clone();
        for (row, &b) in a.iter_mut().zip(b) {
            row.push(b);
        }
        for k in 0..n {
            let pivot = (k..n).max_by(|&i, &j| a[i][k].norm().total_cmp(&a[j][k].norm())).unwrap();
            a.swap(k, pivot);
            let (above, below) = a.split_at_mut(k + 1);
            for row in below {
                let f = row[k] / above[k][k];
                row.iter_mut().zip(&above[k]).for_each(|(a, above)| *a -= f * above);
            }
        }
        let mut x = vec![C64::default(); n];
        for k in (0..n).rev() {
            let known: C64 = (k + 1..n).map(|j| a[k][j] * x[j]).sum();
            x[k] = (a[k][n] - known) / a[k][k];
        }
        x
    }
}

impl<R: Real> LinearOp<Complex<R>> for Dense<R> {
    fn name(&self) -> &str {
        "dense"
    }
    fn domain(&self) -> &[usize] {
        &self.shape
    }
    fn range(&self) -> &[usize] {
        &self.shape
    }
    fn forward_into(&self, x: &Array<Complex<R>>, y: &mut Array<Complex<R>>) -> Result<()> {
        self.check_forward(x, y)?;
        for (y, v) in y.cpu_mut().iter_mut().zip(self.times(&wide(x))) {
            *y = Complex::new(<R as Real>::from_f64(v.re), <R as Real>::from_f64(v.im));
        }
        Ok(())
    }
    fn adjoint_into(&self, y: &Array<Complex<R>>, x: &mut Array<Complex<R>>) -> Result<()> {
        let n = self.shape[0];
        let y = wide(y);
        for (j, x) in x.cpu_mut().iter_mut().enumerate() {
            let v: C64 = (0..n).map(|i| self.matrix[i][j].conj() * y[i]).sum();
            *x = Complex::new(<R as Real>::from_f64(v.re), <R as Real>::from_f64(v.im));
        }
        Ok(())
    }
}

pub(crate) fn wide<R: Real>(x: &Array<Complex<R>>) -> Vec<C64> {
    x.cpu().iter().map(|v| C64::new(v.re.to_f64(), v.im.to_f64())).collect()
}

pub(crate) fn norm(x: &[C64]) -> f64 {
    x.iter().map(C64::norm_sqr).sum::<f64>().sqrt()
}

/// ‖a − b‖ / ‖b‖.
pub(crate) fn relative(a: &[C64], b: &[C64]) -> f64 {
    let apart: Vec<C64> = a.iter().zip(b).map(|(a, b)| a - b).collect();
    norm(&apart) / norm(b)
}
