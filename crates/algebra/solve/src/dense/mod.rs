//! Small dense linear algebra in double precision, by `faer`, on as many threads as the device has:
//! covariances, Hermitian eigenvectors, linear systems and projectors. Covariances of arrays on a GPU are
//! summed there.

use faer::{Mat, MatRef, Side};
use rayon::prelude::*;
pub use rayspin_core::cholesky;
use rayspin_core::{C32, C64, Error, Result};
use rayspin_device::cpu::{expect_addresses, largest_cache};
use rayspin_device::{Array, Backend, Device};
use rayspin_kernels::gram::{self, Rows};

/// A dense complex matrix.
pub type Matrix = Mat<C64>;

/// Runs `work` on new threads, as many as the device has, because `faer` uses the pool that it is called in.
/// The memory that `faer` keeps for each thread is freed with them.
///
/// Errors: errors of `work`; a limit of the address space (`ulimit -v`) below the memory that `gemm` reserves
/// for each thread, twice the last-level cache. `gemm` touches only [`panel_bytes`] of it.
fn on_threads<T: Send>(device: &Device, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    let cpu = device.cpu_side();
    expect_addresses("matrix products", || 2 * largest_cache() * cpu.threads() as u64)?;
    cpu.run_on_new_threads(work)
}

/// AᴴA of a tall A that is given row by row. It is summed one block of rows at a time, so that A is never in
/// memory as a whole.
struct Gram {
    sum: Matrix,
    block: Vec<C64>,
    device: Device,
}

/// Numbers of a block of rows (8 MiB).
const BLOCK: usize = 1 << 19;
/// Bytes of a block of rows.
pub const BLOCK_BYTES: u64 = (BLOCK * size_of::<C64>()) as u64;

impl Gram {
    /// 0, of rows with `columns` entries.
    fn new(device: &Device, columns: usize) -> Self {
        Self { sum: Mat::zeros(columns, columns), block: Vec::new(), device: device.clone() }
    }

    /// Adds a row. Errors: memory.
    fn push(&mut self, row: impl Iterator<Item = C32>) -> Result<()> {
        self.block.extend(row.map(|v| C64::new(v.re.into(), v.im.into())));
        if self.block.len() >= BLOCK { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<()> {
        let columns = self.sum.ncols();
        let rows = self.block.len() / columns.max(1);
        let (block, sum) = (&self.block, &mut self.sum);
        on_threads(&self.device, || {
            let a = MatRef::from_row_major_slice(&block[..rows * columns], rows, columns);
            *sum += a.adjoint() * a;
            Ok(())
        })?;
        self.block.clear();
        Ok(())
    }

    /// The matrix. Errors: memory.
    fn finish(mut self) -> Result<Matrix> {
        if !self.block.is_empty() {
            self.flush()?;
        }
        Ok(self.sum)
    }
}

/// Σ_r y yᴴ with y_a = v\[r + c_a\] over the rows r, where v are the values of an array and c its `columns`.
/// Arrays on a GPU are summed there.
///
/// ```
/// use rayspin_core::{C32, C64};
/// use rayspin_device::{Array, Device};
/// use rayspin_kernels::gram::Rows;
/// use rayspin_solve::dense::covariance;
///
/// // Two coils of three samples, [coil, sample]: a row is a sample, and the columns begin at 0 and 3.
/// let values = [1.0, 2.0, 3.0, 0.0, 1.0, 0.0].map(|v| C32::new(v, 0.0)).to_vec();
/// let values = Array::from_vec(&Device::cpu()?, &[2, 3], values)?;
/// let sum = covariance(&values, Rows::First(3), &[0, 3])?;
/// assert_eq!((sum[(0, 0)], sum[(0, 1)], sum[(1, 1)]), (C64::from(14.0), C64::from(2.0), C64::ONE));
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn covariance(values: &Array<C32>, rows: Rows<'_>, columns: &[u32]) -> Result<Matrix> {
    let (device, n) = (values.device(), columns.len());
    if let Backend::Cuda(_) = device.backend() {
        let mut sum = Array::zeros(device, &[n, n])?;
        gram::gram(values, rows, columns, &mut sum, false)?;
        let sum = sum.to_vec()?;
        return Ok(Mat::from_fn(n, n, |a, b| sum[b * n + a]));
    }
    let values = values.cpu();
    let mut sum = Gram::new(device, n);
    for r in 0..rows.len() {
        let row = rows.at(r);
        sum.push(columns.iter().map(|&column| values[row + column as usize].conj()))?;
    }
    sum.finish()
}

/// Bytes of host memory and of GPU memory that [`covariance`] takes in addition to the values.
pub fn covariance_memory(device: &Device, rows: Rows<'_>, columns: usize) -> (u64, u64) {
    let matrix = (size_of::<C64>() * columns * columns) as u64;
    match device.backend() {
        Backend::Cuda(_) => (2 * matrix, gram::needs(rows, columns)),
        Backend::Cpu(_) => {
            let block = (size_of::<C64>() * rows.len() * columns) as u64;
            (matrix + 2 * block.min(BLOCK_BYTES) + panel_bytes(columns), 0)
        }
    }
}

/// Eigenvalues of a Hermitian matrix, largest first, and their unit eigenvectors as columns.
///
/// Errors: [`Error::Numerical`] if the iteration does not converge, for example because numbers are not
/// finite.
///
/// ```
/// use rayspin_core::C64;
/// use rayspin_device::Device;
/// use rayspin_solve::dense::{Matrix, eigen};
///
/// // [[2, i], [−i, 2]]
/// let a = Matrix::from_fn(2, 2, |i, j| if i == j { C64::from(2.0) } else { C64::new(0.0, j as f64 - i as f64) });
/// let (values, vectors) = eigen(&Device::cpu()?, &a)?;
/// assert!((values[0] - 3.0).abs() < 1e-12 && (values[1] - 1.0).abs() < 1e-12);
/// assert!((vectors[(0, 0)].norm() - 0.5f64.sqrt()).abs() < 1e-12);
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn eigen(device: &Device, a: &Matrix) -> Result<(Vec<f64>, Matrix)> {
    on_threads(device, || eigen_here(a))
}

fn eigen_here(a: &Matrix) -> Result<(Vec<f64>, Matrix)> {
    let eigen = a.self_adjoint_eigen(Side::Lower);
    let eigen = eigen.map_err(|_| broke("eigenvalues", "the iteration does not converge"))?;
    let n = a.ncols();
    let values = (0..n).rev().map(|i| eigen.S().column_vector()[i].re).collect();
    Ok((values, Mat::from_fn(n, n, |i, j| eigen.U()[(i, n - 1 - j)])))
}

/// [`eigen`] of many small matrices, one on each thread.
///
/// ```
/// use rayspin_core::C64;
/// use rayspin_device::Device;
/// use rayspin_solve::dense::{Matrix, eigen_of_each};
///
/// let diagonal = |a: f64, b: f64| Matrix::from_fn(2, 2, |i, j| C64::from([[a, 0.0], [0.0, b]][i][j]));
/// let found = eigen_of_each(&Device::cpu()?, &[diagonal(1.0, 4.0), diagonal(3.0, 2.0)])?;
/// assert_eq!(found.iter().map(|(values, _)| values.clone()).collect::<Vec<_>>(), [[4.0, 1.0], [3.0, 2.0]]);
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn eigen_of_each(device: &Device, matrices: &[Matrix]) -> Result<Vec<(Vec<f64>, Matrix)>> {
    on_threads(device, || matrices.par_iter().map(eigen_here).collect())
}

/// V Vᴴ. Errors: memory.
///
/// ```
/// use rayspin_core::C64;
/// use rayspin_device::Device;
/// use rayspin_solve::dense::{Matrix, projector};
///
/// let v = Matrix::from_fn(3, 1, |i, _| C64::from([0.6, 0.0, 0.8][i])); // one unit column
/// let p = projector(&Device::cpu()?, &v)?;
/// assert!((&p * &p - &p).norm_max() < 1e-12);
/// assert!((&p * &v - &v).norm_max() < 1e-12);
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn projector(device: &Device, v: &Matrix) -> Result<Matrix> {
    on_threads(device, || Ok(v * v.adjoint()))
}

/// Bytes of workspace for products of matrices with this many columns: the packed panels of `gemm`. Measured
/// with 144 to 1000 columns, they are 0.5 to 0.7 thousand rows.
pub fn panel_bytes(columns: usize) -> u64 {
    (640 * columns * size_of::<C64>()) as u64
}

/// Solves (A + μ I) X = B for X, with a Hermitian A. μ is `ridge` times the mean diagonal of A.
///
/// Errors: the sum is not positive definite.
///
/// ```
/// use rayspin_core::C64;
/// use rayspin_device::Device;
/// use rayspin_solve::dense::{Matrix, solve};
///
/// let a = Matrix::from_fn(2, 2, |i, j| C64::from([[1.0, 0.0], [0.0, 3.0]][i][j]));
/// let b = Matrix::from_fn(2, 1, |i, _| C64::from([2.0, 4.0][i]));
/// // The mean diagonal is 2, so the ridge ½ adds 1 to the diagonal.
/// let x = solve(&Device::cpu()?, a, 0.5, &b)?;
/// assert!((x[(0, 0)] - 1.0).norm() < 1e-12 && (x[(1, 0)] - 1.0).norm() < 1e-12);
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn solve(device: &Device, mut a: Matrix, ridge: f64, b: &Matrix) -> Result<Matrix> {
    let n = a.ncols();
    let mean = (0..n).map(|i| a[(i, i)].re).sum::<f64>() / n.max(1) as f64;
    for i in 0..n {
        a[(i, i)] += ridge * mean;
    }
    on_threads(device, || {
        use faer::linalg::solvers::Solve;
        let factor = a.llt(Side::Lower).map_err(|_| broke("least squares", "the matrix is singular"))?;
        Ok(factor.solve(b))
    })
}

/// The unitary matrix nearest to A: U Vᴴ for A = U Σ Vᴴ.
///
/// Errors: singular values that do not converge.
///
/// ```
/// use rayspin_core::C64;
/// use rayspin_solve::dense::{Matrix, nearest_unitary};
///
/// let a = Matrix::from_fn(2, 2, |i, j| C64::from([[0.0, 5.0], [-2.0, 0.0]][i][j]));
/// let q = nearest_unitary(&a)?;
/// assert!((q[(0, 1)] - 1.0).norm() < 1e-12 && (q[(1, 0)] + 1.0).norm() < 1e-12);
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn nearest_unitary(a: &Matrix) -> Result<Matrix> {
    let svd = a.thin_svd().map_err(|_| broke("singular values", "the iteration does not converge"))?;
    Ok(svd.U() * svd.V().adjoint())
}

fn broke(what: &str, detail: &str) -> Error {
    Error::Numerical { what: what.into(), detail: detail.into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    fn random(rows: usize, columns: usize, seed: u64) -> Matrix {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        Mat::from_fn(rows, columns, |_, _| C64::new(rng.random_range(-1.0..1.0), rng.random_range(-1.0..1.0)))
    }

    fn difference(a: &Matrix, b: &Matrix) -> f64 {
        (a - b).norm_max()
    }

    #[test]
    fn grams_eigenvectors_and_solutions_fit_their_equations() {
        let device = Device::cpu_with_threads(2).unwrap();
        for (rows, columns, seed) in [(1, 1, 1), (9, 4, 2), (40, 13, 3)] {
            let a = random(rows, columns, seed);
            let mut gram = Gram::new(&device, columns);
            for i in 0..rows {
                gram.push((0..columns).map(|j| C32::new(a[(i, j)].re as f32, a[(i, j)].im as f32))).unwrap();
            }
            let gram = gram.finish().unwrap();
            assert!(difference(&gram, &(a.adjoint() * &a)) < 1e-5);
            let (values, vectors) = eigen(&device, &gram).unwrap();
            assert!(values.windows(2).all(|pair| pair[0] >= pair[1]), "{values:?}");
            let scaled = Mat::from_fn(columns, columns, |i, j| vectors[(i, j)] * values[j]);
            assert!(difference(&(&gram * &vectors), &scaled) < 1e-9);
            let b = random(columns, 3, seed + 10);
            let x = solve(&device, gram.clone(), 0.5, &b).unwrap();
            let mean = (0..columns).map(|i| gram[(i, i)].re).sum::<f64>() / columns as f64;
            let back = &gram * &x + Mat::from_fn(columns, 3, |i, j| x[(i, j)] * (0.5 * mean));
            assert!(difference(&back, &b) < 1e-9);
            let square = random(columns, columns, seed + 20);
            let unitary = nearest_unitary(&square).unwrap();
            let identity = Mat::from_fn(columns, columns, |i, j| C64::from(f64::from(u8::from(i == j))));
            assert!(difference(&(unitary.adjoint() * &unitary), &identity) < 1e-12);
            // The nearest unitary matrix Q makes QᴴA positive semidefinite.
            let (values, _) = eigen(&device, &(unitary.adjoint() * &square)).unwrap();
            assert!(values.iter().all(|&v| v > -1e-12), "{values:?}");
        }
    }
}
