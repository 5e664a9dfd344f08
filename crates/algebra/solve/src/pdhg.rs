use rayspin_core::{Error, Result, expect_shape};
use rayspin_device::Array;
use rayspin_kernels::vector::{self, Scalar};
use rayspin_linop::LinearOp;

use crate::{Proximal, Step, Watch};

/// λ f(Kx), a term of what [`pdhg`] minimises.
pub struct Term<'a, S: Scalar> {
    /// K.
    pub op: &'a dyn LinearOp<S>,
    /// f, by its proximal map.
    pub penalty: &'a mut dyn Proximal<S>,
    /// λ > 0.
    pub weight: f64,
    /// The largest eigenvalue of KᴴK, or a bound: too small a value makes the iteration diverge.
    pub largest_eigenvalue: f64,
}

/// When [`pdhg`] stops, and the sizes of its steps.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PdhgOptions {
    /// The most iterations. Each applies every K and its adjoint once.
    pub max_iterations: usize,
    /// Stop when a step moves x and every y by at most this share of their norms. With 0 only
    /// `max_iterations` stops it.
    pub tolerance: f64,
    /// Multiplies the step of x and divides the steps of y: about the size of x over the size of y for the
    /// fewest iterations. When absent, the steps follow from the norms of the operators, for a first term
    /// that is the distance to data; see [`pdhg`].
    pub balance: Option<f64>,
}

impl Default for PdhgOptions {
    /// 300 iterations, relative step 1e-4, steps that follow from the norms.
    fn default() -> Self {
        Self { max_iterations: 300, tolerance: 1e-4, balance: None }
    }
}

/// What [`pdhg`] found.
#[derive(Debug)]
pub struct PdhgResult<S: Scalar> {
    /// x.
    pub solution: Array<S>,
    /// The largest relative step of x and of every y, of each iteration.
    pub residuals: Vec<f64>,
    /// g(x) + Σ λ_i f_i(K_i x) after each iteration. Constraints count 0. A penalty without a
    /// [value](Proximal::value) of its own counts at the result of its proximal map, which tends to K_i x.
    pub objective: Vec<f64>,
    /// Whether the last residual met the tolerance.
    pub converged: bool,
}

/// Minimises g(x) + Σ_i λ_i f_i(K_i x) by the primal–dual hybrid gradient method, from `start` or from 0.
///
/// ```text
/// x⁺  = prox_{τg}(x − τ Σ_i K_iᴴ y_i)
/// y_i⁺ = prox_{σ_i (λ_i f_i)*}(y_i + σ_i K_i (2x⁺ − x)) = v − σ_i prox_{λ_i f_i / σ_i}(v / σ_i)
/// ```
///
/// With L_i the norm of K_i and a balance β, σ_i = 1/(β L_i) and τ = 0.99 β / Σ L_i, so that τ Σ σ_i L_i²
/// < 1. Without a balance σ_1 = λ_1, which suits λ_1 ½‖K_1 x − d‖² whatever the scales of K_1, d and x. The n −
/// 1 other terms together step as far: σ_i = λ_1 L_1² / ((n − 1) L_i²). Then τ = 0.99 / Σ σ_i L_i². Without
/// `g` the first proximal map is left out. The method wants no smooth term and inverts nothing. Where one
/// term is ½‖Fx − d‖² and one other has a proximal map, [`fista`](crate::fista) needs far fewer applications
/// of F.
///
/// Errors: no terms; shapes; a weight, a largest eigenvalue or a balance that is not positive; a tolerance
/// that is negative or not a number. Also [`Error::NotFinite`] for `start`, [`Error::Numerical`] when the
/// image leaves the range of the numbers, [`Error::Interrupted`], and errors of the proximal maps, the
/// operators and the observer.
///
/// A. Chambolle, T. Pock, *A first-order primal-dual algorithm for convex problems with applications to
/// imaging*, J Math Imaging Vis 40:120, 2011, algorithm 1.
///
/// ```
/// use rayspin_core::Monitor;
/// use rayspin_device::{Array, Device};
/// use rayspin_linop::{FiniteDifference, Identity};
/// use rayspin_solve::{Distance, GroupNorms, PdhgOptions, Term, pdhg};
///
/// // Total variation with weight 0.4 brings the halves of a step nearer by 0.4/4 each.
/// let device = Device::cpu()?;
/// let step = Array::from_vec(&device, &[8], (0..8).map(|i| (i / 4) as f32).collect())?;
/// let (same, differences) = (Identity::new(&[8]), FiniteDifference::new(&[8])?);
/// let (mut near, mut edges) = (Distance::new(step), GroupNorms::default());
/// let mut terms = [
///     Term { op: &same, penalty: &mut near, weight: 1.0, largest_eigenvalue: 1.0 },
///     Term { op: &differences, penalty: &mut edges, weight: 0.4, largest_eigenvalue: differences.bound() },
/// ];
/// let options = PdhgOptions { tolerance: 1e-6, max_iterations: 2000, ..PdhgOptions::default() };
/// let found = pdhg(&device, None, &mut terms, None, &options, &Monitor::silent())?;
/// assert!((found.solution.to_vec()?[0] - 0.1).abs() < 1e-3);
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn pdhg<'w, S: Scalar>(
    device: &rayspin_device::Device,
    mut g: Option<&mut dyn Proximal<S>>,
    terms: &mut [Term<'_, S>],
    start: Option<&Array<S>>,
    options: &PdhgOptions,
    watch: impl Into<Watch<'w, S>>,
) -> Result<PdhgResult<S>> {
    check(terms, start, options)?;
    let mut watch = watch.into();
    let domain = terms[0].op.domain().to_vec();
    let zeros = |shape: &[usize]| Array::<S>::zeros(device, shape);
    let mut x = match start {
        Some(start) => start.try_clone()?,
        None => zeros(&domain)?,
    };
    let (mut next, mut gradient) = (zeros(&domain)?, zeros(&domain)?);
    let others = (terms.len() - 1) as f64;
    let (first, curvature) = (terms[0].largest_eigenvalue, terms[0].weight);
    let sigma = |(index, term): (usize, &Term<'_, S>)| match options.balance {
        Some(balance) => 1.0 / (balance * term.largest_eigenvalue.sqrt()),
        None if index == 0 => curvature,
        None => curvature * first / (others * term.largest_eigenvalue),
    };
    let mut duals = Vec::with_capacity(terms.len());
    for (index, term) in terms.iter().enumerate() {
        duals.push(Dual::new(term, sigma((index, term)), start, device)?);
    }
    let steepness = terms.iter().zip(&duals).map(|(term, dual)| dual.sigma * term.largest_eigenvalue);
    let tau = 0.99 / steepness.sum::<f64>();
    let (mut residuals, mut objectives, mut converged) = (Vec::new(), Vec::new(), false);
    while residuals.len() < options.max_iterations && !converged {
        next.copy_from(&x)?;
        for (term, dual) in terms.iter().zip(&duals) {
            term.op.adjoint_into(&dual.y, &mut gradient)?;
            vector::axpy((-tau).into(), &gradient, &mut next)?;
        }
        let mut objective = match &mut g {
            Some(g) => g.apply(tau, &mut next)?,
            None => 0.0,
        };
        // x ← 2x⁺ − x, then x ← x⁺ and the step x⁺ − x = (2x⁺ − x) − x⁺.
        vector::xpby(&next, (-1.0).into(), &mut x)?;
        vector::axpy(1.0.into(), &next, &mut x)?;
        let mut residual = 0.0f64;
        for (term, dual) in terms.iter_mut().zip(&mut duals) {
            let (moved, value) = dual.step(term, &x)?;
            residual = residual.max(moved);
            objective += term.weight * value;
        }
        vector::axpy((-1.0).into(), &next, &mut x)?;
        residual = residual.max(relative(&x, &next)?);
        std::mem::swap(&mut x, &mut next);
        let iteration = residuals.len() + 1;
        // A step to 0 is infinite beside what is left.
        if !objective.is_finite() || residual.is_nan() {
            return Err(Error::Numerical {
                what: "PDHG".to_owned(),
                detail: format!(
                    "the objective became {objective}, the step {residual} at iteration {iteration}"
                ),
            });
        }
        residuals.push(residual);
        objectives.push(objective);
        converged = residual <= options.tolerance;
        watch.step(&Step { iteration, residual, solution: &x }, &format!("relative step {residual:.3e}"))?;
    }
    Ok(PdhgResult { solution: x, residuals, objective: objectives, converged })
}

/// The variable y of a term.
struct Dual<S: Scalar> {
    /// Its step.
    sigma: f64,
    y: Array<S>,
    /// v, then the step of y.
    v: Array<S>,
    u: Array<S>,
    /// Kx.
    seen: Array<S>,
}

impl<S: Scalar> Dual<S> {
    fn new(
        term: &Term<'_, S>,
        sigma: f64,
        start: Option<&Array<S>>,
        device: &rayspin_device::Device,
    ) -> Result<Self> {
        let zeros = || Array::zeros(device, term.op.range());
        let mut seen = zeros()?;
        if let Some(start) = start {
            term.op.forward_into(start, &mut seen)?;
        }
        Ok(Self { sigma, y: zeros()?, v: zeros()?, u: zeros()?, seen })
    }

    /// Returns the relative step of y, and f(Kx⁺). `ahead` is 2x⁺ − x.
    fn step(&mut self, term: &mut Term<'_, S>, ahead: &Array<S>) -> Result<(f64, f64)> {
        let Self { sigma, y, v, u, seen } = self;
        let sigma = *sigma;
        term.op.forward_into(ahead, v)?;
        // Kx⁺ = (K(2x⁺ − x) + Kx)/2
        vector::axpy(1.0.into(), v, seen)?;
        vector::scale(0.5.into(), seen)?;
        // u ← v/σ for v = y + σK(2x⁺ − x), y ← v − σ prox(u).
        vector::axpy((1.0 / sigma).into(), y, v)?;
        u.copy_from(v)?;
        let of_result = term.penalty.apply(term.weight / sigma, u)?;
        vector::axpy((-1.0).into(), u, v)?;
        vector::scale(sigma.into(), v)?;
        std::mem::swap(y, v);
        vector::xpby(y, (-1.0).into(), v)?;
        u.copy_from(seen)?;
        let value = term.penalty.value(u)?.unwrap_or(of_result);
        Ok((relative(v, y)?, value))
    }
}

/// ‖step‖ / ‖x‖, and 0 where nothing moves.
fn relative<S: Scalar>(step: &Array<S>, x: &Array<S>) -> Result<f64> {
    let moved = vector::norm_squared(step)?;
    Ok(if moved == 0.0 { 0.0 } else { (moved / vector::norm_squared(x)?).sqrt() })
}

fn check<S: Scalar>(terms: &[Term<'_, S>], start: Option<&Array<S>>, options: &PdhgOptions) -> Result<()> {
    let Some(first) = terms.first() else {
        return Err(Error::value("terms of PDHG", "at least one", "none"));
    };
    let positive = |what: String, value: f64| {
        if value > 0.0 && value.is_finite() {
            return Ok(());
        }
        Err(Error::value(what, "a positive number", value))
    };
    for term in terms {
        let name = term.op.name();
        expect_shape(&format!("PDHG: domain of {name}"), first.op.domain(), term.op.domain())?;
        positive(format!("weight of {name} in PDHG"), term.weight)?;
        positive(format!("largest eigenvalue of {name} in PDHG"), term.largest_eigenvalue)?;
    }
    positive("balance of PDHG".to_owned(), options.balance.unwrap_or(1.0))?;
    if options.tolerance.is_nan() || options.tolerance < 0.0 {
        return Err(Error::value("tolerance of PDHG", "0 or more", options.tolerance));
    }
    if let Some(start) = start {
        expect_shape("PDHG: start", first.op.domain(), start.shape())?;
        vector::expect_finite("start of PDHG", start)?;
    }
    Ok(())
}
