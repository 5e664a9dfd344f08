use std::collections::VecDeque;

use rayspin_core::{Error, Real, Result, expect_shape};
use rayspin_device::{Array, Backend, Pinned};
use rayspin_kernels::vector::{self, CgHalt, CgLimits, CgScalars, CgState, Scalar};
use rayspin_linop::LinearOp;

use crate::repeat::Repeat;
use crate::{Step, Watch};

/// When [`cg`] stops.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CgOptions {
    /// The most iterations, each one application of the operator.
    pub max_iterations: usize,
    /// Stop when ‖b − Ax‖ ≤ tolerance · ‖b‖. With 0 only `max_iterations` and the precision of the numbers
    /// stop it.
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
pub struct CgResult<S: Scalar> {
    /// x.
    pub solution: Array<S>,
    /// ‖r_k‖ / ‖b‖ before the first iteration and after each: one more than `iterations`.
    pub residuals: Vec<f64>,
    /// ½⟨x, Ax⟩ − Re⟨b, x⟩ after each iteration, from the steps: each takes ½‖r‖⁴ / ⟨p, Ap⟩ off, and no
    /// product is computed for it.
    pub objective: Vec<f64>,
    /// Iterations done.
    pub iterations: usize,
    /// Whether ‖b − Ax‖, computed anew from the solution, met the tolerance within a tenth.
    pub converged: bool,
    /// Iterations that a GPU launched from a recording. One of them may have come after the last iteration
    /// that counts.
    pub replayed: usize,
}

/// Iterations over which [`CgResult::remaining`] looks back.
const LOOK_BACK: usize = 3;

impl<S: Scalar> CgResult<S> {
    /// About ‖x̂ − x‖_A / ‖x̂‖_A after a run from 0, with x̂ the exact solution and ‖x‖²_A = ⟨x, Ax⟩.
    ///
    /// It is the root of the part of the objective that the last three iterations gained: 1 after fewer
    /// iterations, 0 if b = 0.
    ///
    /// With A = FᴴF + λ and b = Fᴴd the norm is one of samples, as the noise is. The residual ‖b − Ax‖ weighs
    /// the components of x that few samples determine once more by their small eigenvalues, and says little
    /// about them. What later iterations gain sums up to ½‖x̂ − x‖²_A exactly (Z. Strakoš, P. Tichý, *On
    /// error estimation in the conjugate gradient method and why it works in finite precision computations*,
    /// Electron Trans Numer Anal 13:56, 2002). The past gains stand for it where they decrease slowly: on two
    /// real scans the value is 0.6 to 1.3 times the true one. Where they decrease quickly it is larger.
    ///
    /// ```
    /// use rayspin_core::Monitor;
    /// use rayspin_device::Device;
    /// use rayspin_linop::{GridNormal, LinearOp, random};
    /// use rayspin_solve::{CgOptions, cg};
    ///
    /// let device = Device::cpu()?;
    /// // Every second line of 4 coils.
    /// let measured = ndarray::Array2::from_shape_fn((12, 10), |(y, _)| y % 2 == 0).into_dyn();
    /// let maps = random::<f32>(&device, &[4, 12, 10], 1)?;
    /// let normal = GridNormal::new(&device, measured.view(), Some(maps.into()), None)?;
    /// let rhs = normal.forward(&random::<f32>(&device, &[12, 10], 2)?)?;
    /// let run = |max_iterations| {
    ///     cg(&normal, &rhs, None, &CgOptions { max_iterations, tolerance: 0.0 }, &Monitor::silent())
    /// };
    /// let (short, long) = (run(10)?, run(100)?);
    /// let part = short.objective[9] / long.objective.last().copied().unwrap_or(0.0);
    /// // It is too large where the gains fall quickly, as here.
    /// assert!((1.0..10.0).contains(&(short.remaining() / (1.0 - part).sqrt())));
    /// assert!(long.remaining() < 1e-3);
    /// # Ok::<(), rayspin_core::Error>(())
    /// ```
    pub fn remaining(&self) -> f64 {
        let Some(&last) = self.objective.last() else { return 0.0 };
        let before = self.objective.len().checked_sub(LOOK_BACK + 1);
        let before = before.and_then(|index| self.objective.get(index)).copied().unwrap_or(0.0);
        if last < 0.0 { (1.0 - before / last).max(0.0).sqrt() } else { 1.0 }
    }
}

/// Solves Ax = b for Hermitian positive semidefinite A by conjugate gradients, from `start` or from 0.
///
/// `normal` is A, typically FᴴF + λWᴴW; only its forward map is used. Scalars are f64 for either storage
/// type. The relative residual of each iteration goes to [`Monitor::step`](rayspin_core::Monitor::step).
/// Rounding makes the residual of the recurrence drift from the true one. When it meets the tolerance, b − Ax
/// is computed anew. If that does not meet the tolerance, iteration goes on from there as long as it helps.
///
/// On a GPU nothing waits for a scalar. Without an observer, iterations are queued one ahead. If A can be
/// [recorded](rayspin_device::Cuda::record), iterations are repeated as one CUDA graph
/// ([`CgResult::replayed`]). Neither changes a bit of the result. A may be applied once more than there are
/// iterations, and progress is reported one iteration late.
///
/// A may be singular as long as b lies in its range, as b = Fᴴd does. The solver then finds the solution of
/// least norm. Otherwise there is no solution, and the run stops without convergence at a direction on which
/// A vanishes. It also stops where A is negative by less than a thousandth of the largest curvature met, as
/// approximations of FᴴF may be, and when the precision of the numbers is spent.
///
/// Errors: shapes; a tolerance that is negative or not a number; [`Error::NotFinite`] for b or `start`;
/// [`Error::Interrupted`]. The error is [`Error::Numerical`] when A is not Hermitian or has a direction of
/// negative curvature, or when a scalar leaves the range of f64.
///
/// M. R. Hestenes, E. Stiefel, *Methods of conjugate gradients for solving linear systems*, J Res Natl Bur
/// Stand 49:409, 1952.
///
/// ```
/// use rayspin_core::Monitor;
/// use rayspin_device::Device;
/// use rayspin_linop::{GridNormal, LinearOp, random};
/// use rayspin_solve::{CgOptions, cg};
///
/// let device = Device::cpu()?;
/// // Every second line of 4 coils.
/// let measured = ndarray::Array2::from_shape_fn((12, 10), |(y, _)| y % 2 == 0).into_dyn();
/// let maps = random::<f32>(&device, &[4, 12, 10], 1)?;
/// let normal = GridNormal::new(&device, measured.view(), Some(maps.into()), None)?;
/// let truth = random::<f32>(&device, &[12, 10], 2)?;
/// let rhs = normal.forward(&truth)?;
/// let options = CgOptions { max_iterations: 100, tolerance: 1e-4 };
/// let found = cg(&normal, &rhs, None, &options, &Monitor::silent())?;
/// assert!(found.converged && found.residuals.len() == found.iterations + 1);
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn cg<'w, S: Scalar>(
    normal: &dyn LinearOp<S>,
    rhs: &Array<S>,
    start: Option<&Array<S>>,
    options: &CgOptions,
    watch: impl Into<Watch<'w, S>>,
) -> Result<CgResult<S>> {
    run(normal, rhs, start, options, watch.into())
}

fn run<S: Scalar>(
    normal: &dyn LinearOp<S>,
    rhs: &Array<S>,
    start: Option<&Array<S>>,
    options: &CgOptions,
    watch: Watch<'_, S>,
) -> Result<CgResult<S>> {
    check(normal, rhs, start, options)?;
    let mut solution = Array::zeros(rhs.device(), rhs.shape())?;
    let size = vector::norm_squared(rhs)?.sqrt();
    if size == 0.0 {
        let residuals = vec![0.0];
        return Ok(CgResult {
            solution,
            residuals,
            objective: Vec::new(),
            iterations: 0,
            converged: true,
            replayed: 0,
        });
    }
    if !size.is_finite() {
        return Err(breakdown(0, "the norm of the right-hand side", size));
    }
    let mut residual = rhs.try_clone()?;
    let mut product = Array::zeros(rhs.device(), rhs.shape())?;
    let mut value = 0.0;
    if let Some(start) = start {
        solution.copy_from(start)?;
        renew(normal, rhs, &solution, &mut product, &mut residual)?;
        // ½⟨x, Ax⟩ − Re⟨b, x⟩ with Ax = b − r.
        value = -0.5 * (vector::dot(&solution, rhs)?.re + vector::dot(&solution, &residual)?.re);
    }
    let precision = <S::Real as Real>::EPSILON.to_f64();
    let limits = CgLimits {
        size,
        enough: options.tolerance.max(precision),
        vanishing: 2.0 * precision,
        indefinite: INDEFINITE,
    };
    let direction = residual.try_clone()?;
    let scalars = CgScalars::new(rhs.device(), rhs.len(), limits)?;
    // If the previous iteration was the last one, the scalars have halted and the iteration ahead changes
    // nothing.
    let ahead = usize::from(watch.observe.is_none() && matches!(rhs.device().backend(), Backend::Cuda(_)));
    let places = (0..=ahead).map(|_| scalars.pinned()).collect::<Result<Vec<_>>>()?;
    let mut rho = vector::norm_squared(&residual)?;
    let mut state = State {
        normal,
        solution,
        residual,
        direction,
        product,
        scalars,
        places,
        repeat: Repeat::new(rhs.device()),
        done: Done { size, rho, value, residuals: vec![rho.sqrt() / size], objective: Vec::new(), watch },
    };
    let (mut length, mut largest) = (rho, 0.0);
    // The residual last computed from b − Ax, and not by the recurrence.
    let mut verified = f64::INFINITY;
    let mut converged = false;
    loop {
        let iterations = state.done.iterations();
        let relative = rho.sqrt() / size;
        if !relative.is_finite() {
            return Err(breakdown(iterations, "the residual", relative));
        }
        if relative <= limits.enough {
            let State { solution, product, residual, direction, done, .. } = &mut state;
            rho = renew(normal, rhs, solution, product, residual)?;
            done.rho = rho;
            let renewed = rho.sqrt() / size;
            converged = renewed <= 1.1 * options.tolerance;
            // Rounding is all that is left when computing the residual anew no longer finds it halved.
            if converged || renewed > 0.5 * verified {
                break;
            }
            verified = renewed;
            direction.copy_from(residual)?;
            length = rho;
        }
        if iterations >= options.max_iterations {
            break;
        }
        state.scalars.set(rho, length, largest)?;
        let Some(end) = state.iterate(options.max_iterations)? else {
            break;
        };
        (rho, length, largest) = (end.rho, end.length, end.largest);
        if end.halt == Some(CgHalt::Curvature) {
            let Some(alpha) =
                curvature(normal.name(), state.done.iterations(), &end, &limits, &state.product)?
            else {
                break;
            };
            rho = state.finish_step(alpha, end.form.re)?;
            let beta = if end.rho > 0.0 { rho / end.rho } else { 0.0 };
            vector::xpby(&state.residual, beta.into(), &mut state.direction)?;
            length = rho + beta * beta * end.length;
        }
    }
    let State { solution, repeat, done, .. } = state;
    let (iterations, replayed) = (done.iterations(), repeat.replayed);
    let Done { residuals, objective, .. } = done;
    Ok(CgResult { solution, residuals, objective, iterations, converged, replayed })
}

/// r ← b − Ax; returns ‖r‖².
fn renew<S: Scalar>(
    normal: &dyn LinearOp<S>,
    rhs: &Array<S>,
    solution: &Array<S>,
    product: &mut Array<S>,
    residual: &mut Array<S>,
) -> Result<f64> {
    normal.forward_into(solution, product)?;
    residual.copy_from(rhs)?;
    vector::axpy((-1.0).into(), product, residual)?;
    vector::norm_squared(residual)
}

struct State<'a, 'w, S: Scalar> {
    normal: &'a dyn LinearOp<S>,
    solution: Array<S>,
    residual: Array<S>,
    direction: Array<S>,
    product: Array<S>,
    scalars: CgScalars<S>,
    /// Pinned memory for scalars: one more than the iterations queued ahead.
    places: Vec<Pinned<f64>>,
    repeat: Repeat,
    done: Done<'w, S>,
}

/// The iterations whose scalars have reached the host.
struct Done<'w, S: Scalar> {
    size: f64,
    /// ‖r‖² now.
    rho: f64,
    /// The objective now.
    value: f64,
    residuals: Vec<f64>,
    objective: Vec<f64>,
    watch: Watch<'w, S>,
}

impl<S: Scalar> Done<'_, S> {
    fn iterations(&self) -> usize {
        self.residuals.len() - 1
    }

    /// Notes that an iteration along a direction with ⟨p, Ap⟩ = `form` ended with ‖r‖² = `rho`.
    fn step(&mut self, rho: f64, form: f64, solution: &Array<S>) -> Result<()> {
        let iteration = self.iterations() + 1;
        let residual = rho.sqrt() / self.size;
        if !residual.is_finite() {
            return Err(breakdown(iteration, "the residual", residual));
        }
        self.value -= 0.5 * self.rho * (self.rho / form);
        self.rho = rho;
        self.residuals.push(residual);
        self.objective.push(self.value);
        self.watch.step(&Step { iteration, residual, solution }, &format!("residual {residual:.3e}"))
    }
}

impl<S: Scalar> State<'_, '_, S> {
    /// Iterates up to `most` iterations in all, or until the scalars halt. Returns the last scalars, or
    /// `None` if no iteration was left.
    fn iterate(&mut self, most: usize) -> Result<Option<CgState>> {
        let mut asked = self.done.iterations();
        let mut flying = VecDeque::new();
        let mut last = None;
        loop {
            while asked < most
                && let Some(place) = self.places.pop()
            {
                let Self { normal, solution, residual, direction, product, scalars, repeat, .. } = self;
                repeat.run(most - asked, &mut || {
                    normal.forward_into(direction, product)?;
                    scalars.step_length(direction, product)?;
                    scalars.update(direction, product, solution, residual)?;
                    scalars.update_direction(residual, direction)
                })?;
                flying.push_back(self.scalars.send(place)?);
                asked += 1;
            }
            let Some(mut place) = flying.pop_front() else { break };
            let state = CgState::read(&mut place)?;
            self.places.push(place);
            if state.halt != Some(CgHalt::Curvature) {
                self.done.step(state.rho, state.form.re, &self.solution)?;
            }
            last = Some(state);
            if state.halt.is_some() {
                break;
            }
        }
        // The iterations that were queued in vain.
        self.places.extend(flying);
        Ok(last)
    }

    /// Finishes an iteration that halted at its curvature, after the host found the curvature acceptable.
    /// Returns ‖r‖².
    fn finish_step(&mut self, alpha: f64, form: f64) -> Result<f64> {
        let Self { direction, product, solution, residual, .. } = self;
        let rho = vector::cg_update(alpha, direction, product, solution, residual)?;
        self.done.step(rho, form, &self.solution)?;
        Ok(rho)
    }
}

fn check<S: Scalar>(
    normal: &dyn LinearOp<S>,
    rhs: &Array<S>,
    start: Option<&Array<S>>,
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

/// Share of the largest curvature beyond which an operator counts as indefinite or not Hermitian. Approximate
/// transforms cause smaller deviations in the null space of an undersampled scan. Those are a reason to stop,
/// not to fail.
const INDEFINITE: f64 = 1e-3;

/// The step length ρ / ⟨p, Ap⟩ along the direction at whose curvature ⟨p, Ap⟩ / ‖p‖² the scalars halted. The
/// curvature is compared with the largest one seen, which is soon near the largest eigenvalue. `None` if A
/// vanishes along the direction.
fn curvature<S: Scalar>(
    name: &str,
    iteration: usize,
    state: &CgState,
    limits: &CgLimits,
    product: &Array<S>,
) -> Result<Option<f64>> {
    let form = state.form;
    if !(form.re.is_finite() && form.im.is_finite()) {
        return Err(breakdown(iteration, "⟨p, Ap⟩", form.re));
    }
    // ‖Ap‖ / ‖p‖ also bounds the largest eigenvalue from below. It costs a pass, so it is computed only here.
    let largest = state.largest.max((vector::norm_squared(product)? / state.length).sqrt());
    let limit = |share: f64| share * largest * state.length;
    let detail = if form.im.abs() > limit(INDEFINITE) {
        format!("the operator is not Hermitian: ⟨p, Ap⟩ = {form:.6e} at iteration {iteration}")
    } else if form.re < -limit(INDEFINITE) {
        let curvature = form.re;
        format!(
            "the operator is not positive semidefinite: ⟨p, Ap⟩ = {curvature:.6e} at iteration {iteration}"
        )
    } else if form.re > limit(limits.vanishing) {
        return Ok(Some(state.rho / form.re));
    } else {
        return Ok(None);
    };
    Err(Error::Numerical { what: format!("conjugate gradients on {name}"), detail })
}
