use num_complex::Complex;
use rayspin_core::{Error, Real, Result, expect_shape};
use rayspin_device::{Array, Device};
use rayspin_kernels::vector::{self, Scalar};
use rayspin_linop::{LinearOp, random_of};

/// When [`largest_eigenvalue`] stops.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LanczosOptions {
    /// Seed of the random start.
    pub seed: u64,
    /// The most iterations, each one application of the operator.
    pub max_iterations: usize,
    /// Stop when an iteration changes the estimate by less than this share of it.
    pub tolerance: f64,
}

impl Default for LanczosOptions {
    /// Seed 0, at most 50 iterations, to 1e-3.
    fn default() -> Self {
        Self { seed: 0, max_iterations: 50, tolerance: 1e-3 }
    }
}

/// What [`largest_eigenvalue`] found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Eigenvalue {
    /// The estimate: a Rayleigh quotient, which never exceeds the largest eigenvalue except by rounding.
    pub value: f64,
    /// ‖Ay − value·y‖ for the unit vector y behind the estimate: some eigenvalue lies within this distance of
    /// `value`.
    pub residual: f64,
    /// Iterations done.
    pub iterations: usize,
    /// Whether the tolerance was met.
    pub converged: bool,
}

/// The largest eigenvalue of a Hermitian positive semidefinite operator, by the Lanczos process from a random
/// start: β_{j+1} v_{j+1} = A v_j − α_j v_j − β_j v_{j−1}. The estimate is the largest eigenvalue of the
/// tridiagonal matrix (α, β).
///
/// The process takes the vector with the largest Rayleigh quotient in the span of v, Av, … A^{k−1}v. Power
/// iteration takes the last of these vectors; Lanczos needs about the square root of its iterations for the
/// same error. The recurrence loses orthogonality with time, which repeats eigenvalues but moves none. The
/// process holds three vectors. The zero operator has eigenvalue 0.
///
/// Errors: an operator whose domain is not its range; a tolerance that is negative or not a number; no
/// iterations; [`Error::Numerical`] when the operator's output is not finite.
///
/// Source: G. H. Golub & C. F. Van Loan, Matrix Computations, 4th ed., 10.1.
///
/// ```
/// use rayspin_device::Device;
/// use rayspin_linop::{Identity, LinearOp};
/// use rayspin_solve::{LanczosOptions, largest_eigenvalue};
///
/// let three = Identity::<f32>::new(&[20]).scaled(3.0);
/// let found = largest_eigenvalue(&three, &Device::cpu()?, &LanczosOptions::default())?;
/// assert!((found.value - 3.0).abs() < 1e-4);
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn largest_eigenvalue<S: Scalar>(
    normal: &dyn LinearOp<S>,
    device: &Device,
    options: &LanczosOptions,
) -> Result<Eigenvalue> {
    crate::expect_square(normal)?;
    check(options)?;
    iterate(normal, random_of::<S>(device, normal.domain(), options.seed)?, options)
}

/// The weight of a random vector in the start of [`largest_eigenvalue_from`], relative to the hint.
const RANDOM: f64 = 0.1;

/// [`largest_eigenvalue`] from a start near a hint h, h/‖h‖ + 0.1 v/‖v‖ with a random v.
///
/// A good hint consists of eigenvectors of large eigenvalues mostly. For FᴴF the vector Fᴴd is one. The
/// random part keeps the start from missing the eigenvector. With a hint of zeros the start is random.
///
/// FᴴF of trajectories and undersampled grids takes 2 or 3 iterations to 1 %. From the random start it takes
/// 5 to 7. The 12 coils of a real radial scan of the heart take 8 from either start.
///
/// Errors: as [`largest_eigenvalue`]; a hint of another shape or that is not finite.
///
/// ```
/// use rayspin_device::Device;
/// use rayspin_linop::{Fourier, LinearOp, Sense, random};
/// use rayspin_solve::{LanczosOptions, largest_eigenvalue, largest_eigenvalue_from};
///
/// let device = Device::cpu()?;
/// let maps = random::<f32>(&device, &[4, 8, 8], 1)?; // [coil, y, x]
/// let encode = Fourier::new(&device, &[4], &[8, 8])?.compose(Sense::new(maps)?)?;
/// let (normal, options) = (encode.normal_op(), LanczosOptions::default());
/// let hint = normal.forward(&random(&device, &[8, 8], 2)?)?;
/// let (one, other) = (
///     largest_eigenvalue_from(&normal, &hint, &options)?,
///     largest_eigenvalue(&normal, &device, &options)?,
/// );
/// assert!((one.value / other.value - 1.0).abs() < 0.01);
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn largest_eigenvalue_from<S: Scalar>(
    normal: &dyn LinearOp<S>,
    hint: &Array<S>,
    options: &LanczosOptions,
) -> Result<Eigenvalue> {
    crate::expect_square(normal)?;
    check(options)?;
    expect_shape(
        &format!("hint for the largest eigenvalue of {}", normal.name()),
        normal.domain(),
        hint.shape(),
    )?;
    vector::expect_finite("hint for the largest eigenvalue", hint)?;
    let mut start = random_of::<S>(hint.device(), normal.domain(), options.seed)?;
    let size = vector::norm_squared(hint)?.sqrt();
    if size > 0.0 {
        let own = vector::norm_squared(&start)?.sqrt();
        vector::scale((RANDOM / own).into(), &mut start)?;
        vector::axpy((1.0 / size).into(), hint, &mut start)?;
    }
    iterate(normal, start, options)
}

fn check(options: &LanczosOptions) -> Result<()> {
    if options.tolerance.is_nan() || options.tolerance < 0.0 {
        return Err(Error::value("tolerance of the largest eigenvalue", "0 or more", options.tolerance));
    }
    if options.max_iterations == 0 {
        return Err(Error::value("iterations of the largest eigenvalue", "at least 1", 0));
    }
    Ok(())
}

/// The Lanczos process from a start that is not 0.
fn iterate<S: Scalar>(
    normal: &dyn LinearOp<S>,
    mut vector: Array<S>,
    options: &LanczosOptions,
) -> Result<Eigenvalue> {
    let device = &vector.device().clone();
    vector::scale((1.0 / vector::norm_squared(&vector)?.sqrt()).into(), &mut vector)?;
    let mut before = Array::zeros(device, normal.domain())?;
    let mut image = Array::zeros(device, normal.domain())?;
    let (mut diagonal, mut beside) = (Vec::<f64>::new(), Vec::<f64>::new());
    let mut estimate = Eigenvalue { value: 0.0, residual: 0.0, iterations: 0, converged: false };
    while estimate.iterations < options.max_iterations && !estimate.converged {
        normal.forward_into(&vector, &mut image)?;
        let alpha = vector::dot(&vector, &image)?.re;
        vector::axpy(Complex::from(-alpha), &vector, &mut image)?;
        if let Some(&beta) = beside.last() {
            vector::axpy(Complex::from(-beta), &before, &mut image)?;
        }
        let beta = vector::norm_squared(&image)?.sqrt();
        estimate.iterations += 1;
        if !(alpha.is_finite() && beta.is_finite()) {
            return Err(Error::Numerical {
                what: format!("largest eigenvalue of {}", normal.name()),
                detail: format!(
                    "⟨v, Av⟩ became {alpha} and ‖Av‖ {beta} at iteration {}",
                    estimate.iterations
                ),
            });
        }
        diagonal.push(alpha);
        let value = largest_of_tridiagonal(&diagonal, &beside);
        estimate.residual = beta * last_component(&diagonal, &beside, value).abs();
        // The rest of Av is rounding: A maps the span to itself, and the estimate is an eigenvalue.
        let exhausted = beta <= <S::Real as Real>::EPSILON.to_f64() * value.abs();
        let changed = (value - estimate.value).abs();
        estimate.converged =
            exhausted || (estimate.iterations > 1 && changed <= options.tolerance * value.abs());
        estimate.value = value;
        beside.push(beta);
        if !estimate.converged {
            vector::scale((1.0 / beta).into(), &mut image)?;
            // image, vector, before become vector, before, image.
            std::mem::swap(&mut before, &mut vector);
            std::mem::swap(&mut vector, &mut image);
        }
    }
    Ok(estimate)
}

/// The largest eigenvalue of the symmetric tridiagonal matrix, by bisection on whether x − T is positive
/// definite.
fn largest_of_tridiagonal(diagonal: &[f64], beside: &[f64]) -> f64 {
    let off = |i: usize| beside.get(i).filter(|_| i + 1 < diagonal.len()).map_or(0.0, |b| b.abs());
    let disc = |i: usize| diagonal[i] + off(i) + i.checked_sub(1).map_or(0.0, off);
    let mut above = (0..diagonal.len()).map(disc).fold(f64::NEG_INFINITY, f64::max);
    let mut below = diagonal.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    for _ in 0..200 {
        let middle = 0.5 * (below + above);
        if middle <= below || middle >= above {
            break;
        }
        // The pivots of elimination: all are positive where middle − T is positive definite.
        let mut pivot = f64::INFINITY;
        let definite = diagonal.iter().enumerate().all(|(i, d)| {
            pivot = middle - d - i.checked_sub(1).map_or(0.0, |i| off(i).powi(2)) / pivot;
            pivot > 0.0
        });
        if definite {
            above = middle;
        } else {
            below = middle;
        }
    }
    below
}

/// The last component of the unit eigenvector for the largest eigenvalue, by two steps of inverse iteration
/// on (value + δ) − T, which is positive definite, so that elimination needs no pivoting. T has positive
/// numbers beside its diagonal and so an eigenvector of positive components, which the start cannot miss.
fn last_component(diagonal: &[f64], beside: &[f64], value: f64) -> f64 {
    let n = diagonal.len();
    let scale = diagonal.iter().chain(&beside[..n - 1]).fold(0.0f64, |m, x| m.max(x.abs()));
    if scale == 0.0 {
        return 1.0;
    }
    let shift = value + 1e-13 * scale;
    let mut x = vec![1.0; n];
    for _ in 0..2 {
        let mut pivots = vec![shift - diagonal[0]; n];
        for i in 1..n {
            let factor = beside[i - 1] / pivots[i - 1];
            pivots[i] = shift - diagonal[i] - factor * beside[i - 1];
            x[i] += factor * x[i - 1];
        }
        for i in (0..n).rev() {
            let next = if i + 1 < n { beside[i] * x[i + 1] } else { 0.0 };
            x[i] = (x[i] + next) / pivots[i];
        }
        let size = x.iter().map(|v| v * v).sum::<f64>().sqrt();
        x.iter_mut().for_each(|v| *v /= size);
    }
    if x[n - 1].is_finite() { x[n - 1] } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tridiagonal_eigenpairs_are_known() {
        // 2 on the diagonal, 1 beside it: eigenvalues 2 + 2 cos(jπ/(n+1)), components sin(i jπ/(n+1)).
        for n in [1, 2, 3, 10, 41] {
            let (diagonal, beside) = (vec![2.0; n], vec![1.0; n]);
            let angle = std::f64::consts::PI / (n as f64 + 1.0);
            let value = largest_of_tridiagonal(&diagonal, &beside);
            assert!((value - 2.0 - 2.0 * angle.cos()).abs() < 1e-13, "{n}: {value}");
            let size = (1..=n).map(|i| (i as f64 * angle).sin().powi(2)).sum::<f64>().sqrt();
            let expected = (n as f64 * angle).sin() / size;
            let found = last_component(&diagonal, &beside, value).abs();
            assert!((found - expected).abs() < 1e-9, "{n}: {found} for {expected}");
        }
        assert_eq!(largest_of_tridiagonal(&[0.0], &[0.0]), 0.0);
        assert_eq!(last_component(&[0.0], &[0.0], 0.0), 1.0);
    }
}
