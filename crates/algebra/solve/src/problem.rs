use rayspin_core::{Error, Result, expect_shape};
use rayspin_device::Array;
use rayspin_kernels::select;
use rayspin_kernels::vector::{self, Scalar};
use rayspin_linop::LinearOp;

use crate::least_squares::Regularised;

/// The data term ½⟨x, Ax⟩ − Re⟨b, x⟩. For A = FᴴF and b = Fᴴd it equals ½‖Fx − d‖² up to a constant.
///
/// ```
/// use rayspin_core::Monitor;
/// use rayspin_device::Device;
/// use rayspin_linop::{Fourier, LinearOp, Wavelet, WaveletFamily, random};
/// use rayspin_solve::{FistaOptions, Problem, WaveletSparsity, fista};
///
/// let device = Device::cpu()?;
/// let encode = Fourier::<f32>::new(&device, &[], &[16, 16])?;
/// let samples = random(&device, &[16, 16], 1)?;
/// let rhs = encode.adjoint(&samples)?;
/// let normal = encode.normal_op();
/// let problem = Problem { normal: &normal, rhs: &rhs, largest_eigenvalue: 1.0 };
/// let wavelet = Wavelet::new(&[16, 16], WaveletFamily::Haar)?;
/// let mut penalty = WaveletSparsity::new(&device, wavelet, None)?;
/// let found = fista(&problem, None, 0.1, &mut penalty, &FistaOptions::default(), &Monitor::silent())?;
/// assert!(found.objective.last() < Some(&0.0)); // the image 0 has the objective 0
/// # Ok::<(), rayspin_core::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct Problem<'a, S: Scalar> {
    /// A, Hermitian positive semidefinite; only its forward map is used.
    pub normal: &'a dyn LinearOp<S>,
    /// b, an element of the domain of A.
    pub rhs: &'a Array<S>,
    /// Λ, the largest eigenvalue of A, or an estimate.
    pub largest_eigenvalue: f64,
}

impl<S: Scalar> Problem<'_, S> {
    /// Fails unless shapes fit, b is finite and Λ is positive.
    pub(crate) fn check(&self, solver: &str) -> Result<()> {
        crate::expect_square(self.normal)?;
        let what = |part: &str| format!("{solver} on {}: {part}", self.normal.name());
        expect_shape(&what("right-hand side"), self.normal.domain(), self.rhs.shape())?;
        if !(self.largest_eigenvalue > 0.0 && self.largest_eigenvalue.is_finite()) {
            return Err(Error::value(
                what("largest eigenvalue"),
                "a positive number",
                self.largest_eigenvalue,
            ));
        }
        vector::expect_finite(&format!("right-hand side of {solver}"), self.rhs)
    }
}

/// The share of voxels whose magnitude in Fᴴd is at most s. Small bright spots do not change s. An object
/// that fills a hundredth of the field of view does.
pub const SCALE_PERCENTILE: f64 = 0.99;

/// The problem for u = x/s, whose numbers are near 1: A/Λ and b/(Λs), where s is the 99th percentile
/// of |b|/Λ.
pub(crate) struct Unit<'a, S: Scalar> {
    normal: Regularised<'a, S>,
    rhs: Array<S>,
    /// s.
    pub(crate) scale: f64,
}

impl<'a, S: Scalar> Unit<'a, S> {
    pub(crate) fn new(solver: &str, problem: &Problem<'a, S>) -> Result<Self> {
        problem.check(solver)?;
        let largest = problem.largest_eigenvalue;
        let scale = percentile(problem.rhs)? / largest;
        // The right-hand side is 0, so any scale gives the image 0.
        let scale = if scale > 0.0 { scale } else { 1.0 };
        let mut rhs = problem.rhs.try_clone()?;
        vector::scale((1.0 / (largest * scale)).into(), &mut rhs)?;
        Ok(Self { normal: Regularised::new(problem.normal, 1.0 / largest, 0.0, &[]), rhs, scale })
    }

    pub(crate) fn problem(&self) -> Problem<'_, S> {
        Problem { normal: &self.normal, rhs: &self.rhs, largest_eigenvalue: 1.0 }
    }
}

/// The magnitude that [`SCALE_PERCENTILE`] of the voxels do not exceed, or the largest magnitude if that is
/// 0.
fn percentile<S: Scalar>(x: &Array<S>) -> Result<f64> {
    if x.is_empty() {
        return Ok(0.0);
    }
    let rank = ((SCALE_PERCENTILE * x.len() as f64).ceil() as usize).clamp(1, x.len()) - 1;
    let magnitude = select::magnitude(x, rank)?;
    if magnitude > 0.0 { Ok(magnitude) } else { select::magnitude(x, x.len() - 1) }
}
