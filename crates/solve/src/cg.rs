use num_complex::Complex;
use rayspin_core::{Error, Monitor, Real, Result, expect_shape};
use rayspin_device::Array;
use rayspin_kernels::vector;
use rayspin_linop::LinearOp;

/// When [`cg`] stops.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CgOptions {
    /// The most iterations, each one application of the operator.
    pub max_iterations: usize,
    /// Stop when ‖b − Ax‖ ≤ tolerance · ‖b‖. With 0 only `max_iterations` and the precision of the numbers stop it.
    pub tolerance: f64,
}

impl Default for CgOptions {
    /// 30 iterations, relative residual 1e-4.
    fn default() -> Self {
        Self { max_iterations: 30, tolerance: 1e-4 }
    }
}

/// What [`cg`] found.
#[derive(Debug)]
pub struct CgResult<R: Real> {
    /// x.
    pub solution: Array<Complex<R>>,
    /// ‖r_k‖ / ‖b‖ before the first iteration and after each: one more than `iterations`.
    pub residuals: Vec<f64>,
    /// Iterations done.
    pub iterations: usize,
    /// Whether ‖b − Ax‖, computed anew from the solution, met the tolerance within a tenth.
    pub converged: bool,
}

/// What the observer of [`cg_observed`] is shown after each iteration.
pub struct CgStep<'a, R: Real> {
    /// 1 after the first iteration.
    pub iteration: usize,
    /// ‖r‖ / ‖b‖.
    pub residual: f64,
    /// x so far.
    pub solution: &'a Array<Complex<R>>,
}

/// Solves Ax = b for Hermitian positive semidefinite A by conjugate gradients, from `start` or from 0.
///
/// `normal` is A, typically FᴴF + λWᴴW; only its forward map is used. Scalars are f64 whatever the storage. The
/// relative residual of each iteration goes to [`Monitor::step`]. The residual of the recurrence drifts from the true
/// one by rounding: where it meets the tolerance, b − Ax is computed anew, and iteration goes on from there if it does
/// not meet it, for as long as that helps.
///
/// A singular A is no obstacle as long as b lies in its range, as b = Fᴴd does: the solution of least norm is found.
/// Otherwise there is no solution, and the run stops, not converged, along a direction on which A vanishes (or is negative by less than a thousandth of the
/// largest curvature met, as approximations of FᴴF may be). It also stops where the precision of the numbers is spent.
///
/// Errors: shapes; a tolerance that is negative or not a number; [`Error::NotFinite`] for b or `start`;
/// [`Error::Numerical`] when A is not Hermitian or has a direction of negative curvature, or when a scalar leaves the
/// range of f64; [`Error::Interrupted`].
///
/// M. R. Hestenes, E. Stiefel, *Methods of conjugate gradients for solving linear systems*, J Res Natl Bur Stand
/// 49:409, 1952.
pub fn cg<R: Real>(
    normal: &dyn LinearOp<R>,
    rhs: &Array<Complex<R>>,
    start: Option<&Array<Complex<R>>>,
    options: &CgOptions,
    monitor: &Monitor<'_>,
) -> Result<CgResult<R>> {
    cg_observed(normal, rhs, start, options, monitor, &mut |_| Ok(()))
}

/// [`cg`], showing every iterate to `observe`, whose error ends the run.
pub fn cg_observed<R: Real>(
    normal: &dyn LinearOp<R>,
    rhs: &Array<Complex<R>>,
    start: Option<&Array<Complex<R>>>,
    options: &CgOptions,
    monitor: &Monitor<'_>,
    observe: &mut dyn FnMut(&CgStep<'_, R>) -> Result<()>,
) -> Result<CgResult<R>> {
    check(normal, rhs, start, options)?;
    let mut solution = Array::zeros(rhs.device(), rhs.shape())?;
    let size = vector::norm_squared(rhs)?.sqrt();
    if size == 0.0 {
        return Ok(CgResult { solution, residuals: vec![0.0], iterations: 0, converged: true });
    }
    if !size.is_finite() {
        return Err(breakdown(0, "the norm of the right-hand side", size));
    }
    let mut state =
        State { normal, rhs, residual: rhs.try_clone()?, product: Array::zeros(rhs.device(), rhs.shape())? };
    if let Some(start) = start {
        solution.copy_from(start)?;
        state.renew(&solution)?;
    }
    let mut direction = state.residual.try_clone()?;
    let mut rho = vector::norm_squared(&state.residual)?;
    let mut residuals = vec![rho.sqrt() / size];
    let mut curvature = Curvature::new(rho);
    let mut iterations = 0;
    // The residual last computed from b − Ax, and not by the recurrence.
    let mut verified = f64::INFINITY;
    let mut converged = false;
    let precision = <R as Real>::EPSILON.to_f64();
    loop {
        let relative = rho.sqrt() / size;
        if !relative.is_finite() {
            return Err(breakdown(iterations, "the residual", relative));
        }
        if relative <= options.tolerance.max(precision) {
            rho = state.renew(&solution)?;
            let renewed = rho.sqrt() / size;
            converged = renewed <= 1.1 * options.tolerance;
            // Rounding is all that is left when computing the residual anew no longer finds it halved.
            if converged || renewed > 0.5 * verified {
                break;
            }
            verified = renewed;
            direction.copy_from(&state.residual)?;
            curvature.restart(rho);
        }
        if iterations == options.max_iterations {
            break;
        }
        normal.forward_into(&direction, &mut state.product)?;
        let Some(alpha) = curvature.step(normal.name(), iterations, rho, &direction, &state.product)? else {
            break;
        };
        let next = vector::cg_update(alpha, &direction, &state.product, &mut solution, &mut state.residual)?;
        iterations += 1;
        let residual = next.sqrt() / size;
        if !residual.is_finite() {
            return Err(breakdown(iterations, "the residual", residual));
        }
        residuals.push(residual);
        observe(&CgStep { iteration: iterations, residual, solution: &solution })?;
        monitor.step(&format!("residual {residual:.3e}"))?;
        let beta = if rho > 0.0 { next / rho } else { 0.0 };
        vector::xpby(&state.residual, beta.into(), &mut direction)?;
        curvature.turn(next, beta);
        rho = next;
    }
    Ok(CgResult { solution, residuals, iterations, converged })
}

struct State<'a, R: Real> {
    normal: &'a dyn LinearOp<R>,
    rhs: &'a Array<Complex<R>>,
    residual: Array<Complex<R>>,
    product: Array<Complex<R>>,
}

impl<R: Real> State<'_, R> {
    /// r ← b − Ax; returns ‖r‖².
    fn renew(&mut self, solution: &Array<Complex<R>>) -> Result<f64> {
        self.normal.forward_into(solution, &mut self.product)?;
        self.residual.copy_from(self.rhs)?;
        vector::axpy((-1.0).into(), &self.product, &mut self.residual)?;
        vector::norm_squared(&self.residual)
    }
}

fn check<R: Real>(
    normal: &dyn LinearOp<R>,
    rhs: &Array<Complex<R>>,
    start: Option<&Array<Complex<R>>>,
    options: &CgOptions,
) -> Result<()> {
    crate::expect_square(normal)?;
    let name = normal.name();
    expect_shape(&format!("conjugate gradients on {name}: right-hand side"), normal.domain(), rhs.shape())?;
    vector::expect_finite("right-hand side of conjugate gradients", rhs)?;
    if let Some(start) = start {
        expect_shape(&format!("conjugate gradients on {name}: start"), normal.domain(), start.shape())?;
        vector::expect_finite("start of conjugate gradients", start)?;
    }
    if options.tolerance.is_nan() || options.tolerance < 0.0 {
        return Err(Error::value("tolerance of conjugate gradients", "0 or more", options.tolerance));
    }
    Ok(())
}

fn breakdown(iteration: usize, quantity: &str, value: f64) -> Error {
    Error::Numerical {
        what: "conjugate gradients".into(),
        detail: format!("{quantity} became {value} at iteration {iteration}"),
    }
}

/// Curvature ⟨p, Ap⟩ / ‖p‖² along the search directions, judged against the largest seen, which soon is near the largest
/// eigenvalue.
struct Curvature {
    /// ‖p‖², by the recurrence ‖r + βp‖² = ‖r‖² + β²‖p‖² of orthogonal r and p.
    length: f64,
    largest: f64,
}

/// Share of the largest curvature beyond which an operator is called indefinite or not Hermitian. Within it lies what
/// approximate transforms do to the null space of an undersampled scan: reason to stop, not to fail.
const INDEFINITE: f64 = 1e-3;

impl Curvature {
    fn new(length: f64) -> Self {
        Self { length, largest: 0.0 }
    }

    fn restart(&mut self, length: f64) {
        self.length = length;
    }

    /// The direction became r + βp.
    fn turn(&mut self, residual: f64, beta: f64) {
        self.length = residual + beta * beta * self.length;
    }

    /// The length of the step along `direction`, ρ / ⟨p, Ap⟩; `None` where A vanishes along it.
    fn step<R: Real>(
        &mut self,
        name: &str,
        iteration: usize,
        rho: f64,
        direction: &Array<Complex<R>>,
        product: &Array<Complex<R>>,
    ) -> Result<Option<f64>> {
        let form = vector::dot(direction, product)?;
        if !(form.re.is_finite() && form.im.is_finite()) {
            return Err(breakdown(iteration, "⟨p, Ap⟩", form.re));
        }
        self.largest = self.largest.max(form.re / self.length);
        let vanishing = 2.0 * <R as Real>::EPSILON.to_f64();
        let limit = |share: f64, largest: f64| share * largest * self.length;
        if form.re > limit(vanishing, self.largest) && form.im.abs() <= INDEFINITE * form.re {
            return Ok(Some(rho / form.re));
        }
        // Only now, as it takes a pass: ‖Ap‖ / ‖p‖ also bounds the largest eigenvalue from below.
        let largest = self.largest.max((vector::norm_squared(product)? / self.length).sqrt());
        let detail = if form.im.abs() > limit(INDEFINITE, largest) {
            format!("the operator is not Hermitian: ⟨p, Ap⟩ = {form:.6e} at iteration {iteration}")
        } else if form.re < -limit(INDEFINITE, largest) {
            let found = form.re;
            format!(
                "the operator is not positive semidefinite: ⟨p, Ap⟩ = {found:.6e} at iteration {iteration}"
            )
        } else if form.re > limit(vanishing, largest) {
            return Ok(Some(rho / form.re));
        } else {
            return Ok(None);
        };
        Err(Error::Numerical { what: format!("conjugate gradients on {name}"), detail })
    }
}
