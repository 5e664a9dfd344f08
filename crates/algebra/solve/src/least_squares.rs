use rayspin_core::{Error, Result, expect_shape};
use rayspin_device::Array;
use rayspin_kernels::vector::{self, Scalar};
use rayspin_linop::{LinearOp, Scratch};

use crate::{CgOptions, CgResult, Eigenvalue, LanczosOptions, Watch, cg, largest_eigenvalue_from};

/// Options of [`least_squares`].
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct LeastSquaresOptions {
    /// The iteration.
    pub cg: CgOptions,
    /// The estimate of L. Its tolerance is the relative error that λ may have.
    pub eigenvalue: LanczosOptions,
    /// L, if it is known already. [`largest_eigenvalue_from`] then does not run.
    pub largest_eigenvalue: Option<f64>,
}

/// What [`least_squares`] found.
#[derive(Debug)]
pub struct LeastSquaresResult<S: Scalar> {
    /// ρ, and the course of the iteration. The residuals refer to the equation of [`least_squares`], the
    /// objective is half of its minimum's minus ½‖d‖².
    pub cg: CgResult<S>,
    /// L, and its accuracy.
    pub largest_eigenvalue: Eigenvalue,
}

/// λ Σ_i W_iᴴW_i, with λ relative to the largest eigenvalue of the normal operator.
#[derive(Clone, Copy)]
pub struct Regularisation<'a, S: Scalar> {
    /// λ, 0 or more.
    pub lambda: f64,
    /// The W_iᴴW_i: the forward maps of Hermitian positive semidefinite operators such as
    /// [`normal_op`](rayspin_linop::LinearOp::normal_op)s. An empty list means W = 1 (Tikhonov).
    pub operators: &'a [&'a dyn LinearOp<S>],
}

impl<'a, S: Scalar> Regularisation<'a, S> {
    /// λ and the operators.
    pub fn new(lambda: f64, operators: &'a [&'a dyn LinearOp<S>]) -> Self {
        Self { lambda, operators }
    }
}

/// Solves (FᴴF + λ L Σ_i W_iᴴW_i) ρ = Fᴴd, where L is the largest eigenvalue of FᴴF.
///
/// This is the minimum of ‖Fρ − d‖² + λL Σ_i ‖W_iρ‖². `normal` is FᴴF, and `rhs` is Fᴴd. With λ = 0
/// nothing is added.
///
/// The iteration begins at `start` (a ρ), or at 0.
///
/// λ is relative and has no unit: it means the same at any scanner gain, matrix size, number of coils and
/// samples, and scaling of F. The solver iterates (FᴴF/L + λ Σ W_iᴴW_i) u = Fᴴd / ‖Fᴴd‖, whose numbers are
/// near 1. Then ρ = u ‖Fᴴd‖ / L.
///
/// Errors: a λ that is negative or not finite; shapes; an FᴴF that is 0; errors of [`cg`](crate::cg) and
/// [`largest_eigenvalue_from`].
///
/// ```
/// use rayspin_core::Monitor;
/// use rayspin_device::Device;
/// use rayspin_linop::{Fourier, LinearOp, Sense, random};
/// use rayspin_solve::{LeastSquaresOptions, Regularisation, least_squares};
///
/// let device = Device::cpu()?;
/// let maps = random::<f32>(&device, &[4, 8, 8], 1)?; // [coil, y, x]
/// let encode = Fourier::new(&device, &[4], &[8, 8])?.compose(Sense::new(maps)?)?;
/// let image = random(&device, &[8, 8], 2)?;
/// let rhs = encode.adjoint(&encode.forward(&image)?)?;
/// let mut options = LeastSquaresOptions::default();
/// (options.cg.max_iterations, options.cg.tolerance) = (100, 1e-6);
/// let none = Regularisation::new(0.0, &[]);
/// let result = least_squares(&encode.normal_op(), &rhs, None, none, &options, &Monitor::silent())?;
/// let solution = result.cg.solution.to_vec()?;
/// assert!(solution.iter().zip(&image.to_vec()?).all(|(a, b)| (a - b).norm() < 1e-2));
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn least_squares<'w, S: Scalar>(
    normal: &dyn LinearOp<S>,
    rhs: &Array<S>,
    start: Option<&Array<S>>,
    regularisation: Regularisation<'_, S>,
    options: &LeastSquaresOptions,
    watch: impl Into<Watch<'w, S>>,
) -> Result<LeastSquaresResult<S>> {
    let Regularisation { lambda, operators: regularisers } = regularisation;
    if !(lambda.is_finite() && lambda >= 0.0) {
        return Err(Error::value("λ of least squares", "0 or more", lambda));
    }
    let what = |part: &str| format!("least squares on {}: {part}", normal.name());
    expect_shape(&what("right-hand side"), normal.domain(), rhs.shape())?;
    for op in regularisers {
        crate::expect_square(*op)?;
        expect_shape(&what(op.name()), normal.domain(), op.domain())?;
    }
    vector::expect_finite("right-hand side of least squares", rhs)?;
    let largest_eigenvalue = match options.largest_eigenvalue {
        Some(value) => Eigenvalue { value, residual: 0.0, iterations: 0, converged: true },
        None => largest_eigenvalue_from(normal, rhs, &options.eigenvalue)?,
    };
    let scale = largest_eigenvalue.value;
    if !(scale.is_finite() && scale > 0.0) {
        return Err(Error::value(what("largest eigenvalue"), "a positive number", scale));
    }
    let size = vector::norm_squared(rhs)?.sqrt();
    if !size.is_finite() {
        return Err(Error::Numerical {
            what: what("right-hand side"),
            detail: format!("its norm is {size}"),
        });
    }
    let mut unit = rhs.try_clone()?;
    if size > 0.0 {
        vector::scale((1.0 / size).into(), &mut unit)?;
    }
    let system = Regularised::new(normal, 1.0 / scale, lambda, regularisers);
    // With a right-hand side of 0 the solution is 0, wherever the iteration begins.
    let back = if size > 0.0 { size / scale } else { 1.0 };
    let start = match start {
        Some(start) => {
            let mut start = start.try_clone()?;
            vector::scale((1.0 / back).into(), &mut start)?;
            Some(start)
        }
        None => None,
    };
    let mut cg = watch.into().scaled(back, |watch| cg(&system, &unit, start.as_ref(), &options.cg, watch))?;
    vector::scale(back.into(), &mut cg.solution)?;
    cg.objective.iter_mut().for_each(|value| *value *= size * back);
    Ok(LeastSquaresResult { cg, largest_eigenvalue })
}

/// N/L + λ Σ W_iᴴW_i over borrowed operators.
pub(crate) struct Regularised<'a, S: Scalar> {
    name: String,
    normal: &'a dyn LinearOp<S>,
    inverse_scale: f64,
    lambda: f64,
    regularisers: &'a [&'a dyn LinearOp<S>],
    scratch: Scratch<S>,
}

impl<'a, S: Scalar> Regularised<'a, S> {
    pub(crate) fn new(
        normal: &'a dyn LinearOp<S>,
        inverse_scale: f64,
        lambda: f64,
        regularisers: &'a [&'a dyn LinearOp<S>],
    ) -> Self {
        let name = format!("regularised {}", normal.name());
        Self { name, normal, inverse_scale, lambda, regularisers, scratch: Scratch::default() }
    }
}

impl<S: Scalar> LinearOp<S> for Regularised<'_, S> {
    fn name(&self) -> &str {
        &self.name
    }
    fn domain(&self) -> &[usize] {
        self.normal.domain()
    }
    fn range(&self) -> &[usize] {
        self.normal.domain()
    }
    fn forward_into(&self, x: &Array<S>, y: &mut Array<S>) -> Result<()> {
        self.normal.forward_into(x, y)?;
        vector::scale(self.inverse_scale.into(), y)?;
        if self.lambda == 0.0 {
            return Ok(());
        }
        if self.regularisers.is_empty() {
            return vector::axpy(self.lambda.into(), x, y);
        }
        let mut term = self.scratch.take(x.device(), x.shape())?;
        for op in self.regularisers {
            op.forward_into(x, &mut term)?;
            vector::axpy(self.lambda.into(), &term, y)?;
        }
        Ok(())
    }
    /// Hermitian if its parts are. [`cg`](crate::cg) checks this.
    fn adjoint_into(&self, y: &Array<S>, x: &mut Array<S>) -> Result<()> {
        self.forward_into(y, x)
    }
}
