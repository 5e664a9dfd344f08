//! Measures the laws that every linear operator obeys. Use it on your own operators.

use num_complex::Complex;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use rayspin_core::{Error, Real, Result, voxels};
use rayspin_device::cpu::{prefer_huge_pages, zeroed};
use rayspin_device::{Array, Device};
use rayspin_kernels::vector::{self, Scalar};

use crate::LinearOp;

/// The deviation of an operator from each law, relative to the norms of the compared arrays.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Report {
    /// ‖A(αx + y) − αAx − Ay‖ / (‖αAx‖ + ‖Ay‖).
    pub linearity: f64,
    /// |⟨Ax, y⟩ − ⟨x, Aᴴy⟩| / (‖Ax‖ ‖y‖), the larger of a random y and y = Ax.
    pub adjointness: f64,
    /// ‖N x − Aᴴ(Ax)‖ / ‖Aᴴ(Ax)‖, where N is the operator's own normal operator.
    pub normal: f64,
    /// ‖Aᴴ(Ax) − x‖ / ‖x‖, from [`check_unitary`] only.
    pub unitarity: Option<f64>,
}

/// Why an operator fails the check.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Violation {
    /// A law does not hold.
    #[error("{operator}: {law} misses by {deviation:.3e} (relative), {tolerance:.3e} allowed")]
    Law {
        /// The operator's name.
        operator: String,
        /// The law, as a formula.
        law: &'static str,
        /// The measured relative deviation; NaN if outputs were not written or not finite.
        deviation: f64,
        /// The allowed deviation.
        tolerance: f64,
    },
    /// The operator could not be applied.
    #[error("{operator}: {error}")]
    Failed {
        /// The operator's name.
        operator: String,
        /// Its error.
        error: Error,
    },
}

/// The relative deviation that rounding alone is allowed: 256 units of the storage type.
pub fn tolerance<R: Real>() -> f64 {
    256.0 * <R as Real>::EPSILON.to_f64()
}

/// Random complex numbers, both parts uniform in [−1, 1); the same for the same seed on every machine.
pub fn random<R: Real>(device: &Device, shape: &[usize], seed: u64) -> Result<Array<Complex<R>>> {
    random_of(device, shape, seed)
}

/// Random numbers of one task.
const TOGETHER: usize = 1 << 15;
/// Words of 32 bits of the generator that a number in [−1, 1) takes.
const WORDS: u128 = 2;

/// Random numbers, all parts uniform in [−1, 1); the same for the same seed on every machine, with any number
/// of threads.
pub fn random_of<S: Scalar>(device: &Device, shape: &[usize], seed: u64) -> Result<Array<S>> {
    let mut values: Vec<S> = zeroed("random numbers", voxels(shape)?)?;
    prefer_huge_pages(&mut values);
    let parts = if S::COMPLEX { 2 } else { 1 };
    let fill = |(part, values): (usize, &mut [S])| {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_word_pos(WORDS * (parts * part * TOGETHER) as u128);
        let mut one = || rng.random_range(-1.0..1.0);
        values.fill_with(|| S::nearest(Complex::new(one(), if S::COMPLEX { one() } else { 0.0 })));
    };
    device.cpu_side().run(|| values.par_chunks_mut(TOGETHER).enumerate().for_each(fill));
    Array::from_vec(device, shape, values)
}

/// Checks linearity, adjointness and normal = adjoint ∘ forward on random inputs, each within [`tolerance`].
/// Fills outputs with NaN first, so that it finds elements that an operator leaves unwritten.
///
/// # Errors
/// [`Violation`], naming the operator and the law.
///
/// ```
/// use rayspin_device::Device;
/// use rayspin_linop::{FiniteDifference, laws};
///
/// let device = Device::cpu()?;
/// let report = laws::check(&FiniteDifference::<f32>::new(&[7, 5])?, &device, 1)?;
/// assert!(report.linearity < 1e-5 && report.adjointness < 1e-5);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn check<S: Scalar>(
    op: &dyn LinearOp<S>,
    device: &Device,
    seed: u64,
) -> std::result::Result<Report, Violation> {
    check_within(op, device, seed, tolerance::<S::Real>())
}

/// [`check`] with a tolerance of your own, for transforms that are approximate by design.
pub fn check_within<S: Scalar>(
    op: &dyn LinearOp<S>,
    device: &Device,
    seed: u64,
    tolerance: f64,
) -> std::result::Result<Report, Violation> {
    let report = measure(op, device, seed, false).map_err(|error| failed(op, error))?;
    judge(op, "A(αx + y) = αAx + Ay", report.linearity, tolerance)?;
    judge(op, "⟨Ax, y⟩ = ⟨x, Aᴴy⟩", report.adjointness, tolerance)?;
    judge(op, "normal = adjoint ∘ forward", report.normal, tolerance)?;
    Ok(report)
}

/// [`check_within`], and AᴴA = 1.
pub fn check_unitary<S: Scalar>(
    op: &dyn LinearOp<S>,
    device: &Device,
    seed: u64,
    tolerance: f64,
) -> std::result::Result<Report, Violation> {
    let plain = check_within(op, device, seed, tolerance)?;
    let report = measure(op, device, seed, true).map_err(|error| failed(op, error))?;
    let unitarity = report.unitarity.unwrap_or(f64::NAN);
    judge(op, "AᴴA = 1", unitarity, tolerance)?;
    Ok(Report { unitarity: Some(unitarity), ..plain })
}

/// [`check_within`], and A = Aᴴ and ⟨x, Ax⟩ ≥ 0, as conjugate gradients need.
pub fn check_positive<S: Scalar>(
    op: &dyn LinearOp<S>,
    device: &Device,
    seed: u64,
    tolerance: f64,
) -> std::result::Result<Report, Violation> {
    let report = check_within(op, device, seed, tolerance)?;
    let (hermitian, negative) = measure_positive(op, device, seed).map_err(|error| failed(op, error))?;
    judge(op, "A = Aᴴ", hermitian, tolerance)?;
    judge(op, "⟨x, Ax⟩ ≥ 0", negative, tolerance)?;
    Ok(report)
}

fn failed<S: Scalar>(op: &dyn LinearOp<S>, error: Error) -> Violation {
    Violation::Failed { operator: op.name().to_owned(), error }
}

fn judge<S: Scalar>(
    op: &dyn LinearOp<S>,
    law: &'static str,
    deviation: f64,
    tolerance: f64,
) -> std::result::Result<(), Violation> {
    if deviation <= tolerance {
        return Ok(());
    }
    Err(Violation::Law { operator: op.name().to_owned(), law, deviation, tolerance })
}

/// a / b, and 0 where both vanish.
fn ratio(a: f64, b: f64) -> f64 {
    if a == 0.0 && b == 0.0 { 0.0 } else { a / b }
}

fn norm<S: Scalar>(x: &Array<S>) -> Result<f64> {
    Ok(vector::norm_squared(x)?.sqrt())
}

/// ‖a − b‖.
fn distance<S: Scalar>(a: &Array<S>, b: &Array<S>) -> Result<f64> {
    let mut apart = a.try_clone()?;
    vector::axpy((-1.0).into(), b, &mut apart)?;
    norm(&apart)
}

fn poisoned<S: Scalar>(device: &Device, shape: &[usize]) -> Result<Array<S>> {
    let mut array = Array::zeros(device, shape)?;
    array.fill(S::nearest(Complex::new(f64::NAN, f64::NAN)))?;
    Ok(array)
}

fn measure<S: Scalar>(op: &dyn LinearOp<S>, device: &Device, seed: u64, unitary: bool) -> Result<Report> {
    let (domain, range) = (op.domain(), op.range());
    let forward = |x: &Array<S>| -> Result<Array<S>> {
        let mut y = poisoned(device, range)?;
        op.forward_into(x, &mut y).map(|()| y)
    };
    let adjoint = |y: &Array<S>| -> Result<Array<S>> {
        let mut x = poisoned(device, domain)?;
        op.adjoint_into(y, &mut x).map(|()| x)
    };
    let x = random_of(device, domain, seed)?;
    let z = random_of(device, domain, seed ^ 0x5851_f42d_4c95_7f2d)?;
    let y = random_of(device, range, seed ^ 0x1405_7b7e_f767_814f)?;
    let alpha = Complex::new(-0.625, if S::COMPLEX { 1.375 } else { 0.0 });

    let (ax, az) = (forward(&x)?, forward(&z)?);
    let mut mixed = z.try_clone()?;
    vector::axpy(alpha, &x, &mut mixed)?;
    let mut apart = forward(&mixed)?;
    vector::axpy(-alpha, &ax, &mut apart)?;
    vector::axpy((-1.0).into(), &az, &mut apart)?;
    let linearity = ratio(norm(&apart)?, alpha.norm() * norm(&ax)? + norm(&az)?);

    let ahy = adjoint(&y)?;
    let gap = (vector::dot(&ax, &y)? - vector::dot(&x, &ahy)?).norm();
    let at_random = ratio(gap, norm(&ax)? * norm(&y)?);
    let ahax = adjoint(&ax)?;
    let gap = (vector::dot(&ax, &ax)? - vector::dot(&x, &ahax)?).norm();
    let aligned = ratio(gap, norm(&ax)? * norm(&ax)?);
    // A NaN must win: f64::max would drop it.
    let adjointness = if at_random > aligned || at_random.is_nan() { at_random } else { aligned };

    let mut own = poisoned(device, domain)?;
    op.normal_into(&x, &mut own)?;
    let normal = ratio(distance(&own, &ahax)?, norm(&ahax)?);
    let unitarity = if unitary { Some(ratio(distance(&ahax, &x)?, norm(&x)?)) } else { None };
    Ok(Report { linearity, adjointness, normal, unitarity })
}

fn measure_positive<S: Scalar>(op: &dyn LinearOp<S>, device: &Device, seed: u64) -> Result<(f64, f64)> {
    rayspin_core::expect_shape(&format!("{}: range", op.name()), op.domain(), op.range())?;
    let x = random_of(device, op.domain(), seed)?;
    let ax = op.forward(&x)?;
    let ahx = op.adjoint(&x)?;
    let hermitian = ratio(distance(&ax, &ahx)?, norm(&ax)?);
    let form = vector::dot(&x, &ax)?;
    let scale = norm(&x)? * norm(&ax)?;
    Ok((hermitian, ratio((-form.re).max(0.0), scale)))
}
