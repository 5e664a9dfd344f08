use rayspin_core::{Error, Result, expect_shape};
use rayspin_device::Array;
use rayspin_kernels::vector::{self, Scalar};

use crate::{Problem, Proximal, Step, Watch};

/// When [`fista`] stops.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FistaOptions {
    /// The most iterations, each one application of the operator and one proximal map.
    pub max_iterations: usize,
    /// Stop when a proximal gradient step moves the image by at most this share of its norm. With 0 only
    /// `max_iterations` stops it.
    pub tolerance: f64,
    /// Stop when the objective no longer falls: for 24 iterations its mean over 8 of them has not come lower
    /// by more than this share of its whole fall since the first iteration. A penalty that differs a little
    /// each time keeps the image moving, and never meets `tolerance`. With 0 the objective stops nothing.
    pub settled: f64,
    /// After the last iteration the solution is the mean of the last `average` iterates, for penalties that
    /// differ a little each time. If the objective settles, the mean begins there. With 0 or 1, or if the
    /// tolerance is met, the solution is the last iterate.
    pub average: usize,
}

/// Iterations over which the objective is averaged.
const SPAN: usize = 8;
/// Iterations for which its mean must not have fallen: momentum makes it rise and fall over some.
const PATIENCE: usize = 24;

/// Tells when the objective no longer falls.
struct Fall {
    /// The share of the whole fall that counts.
    share: f64,
    lowest: f64,
    /// Iterations since the lowest mean.
    since: usize,
}

impl Fall {
    fn new(share: f64) -> Self {
        Self { share, lowest: f64::INFINITY, since: 0 }
    }

    /// Whether the objective has settled, after all these iterations; to be called after each.
    fn has_ended(&mut self, objectives: &[f64]) -> bool {
        let (Some(first), Some(from)) = (objectives.first(), objectives.len().checked_sub(SPAN)) else {
            return false;
        };
        let mean = objectives[from..].iter().sum::<f64>() / SPAN as f64;
        if mean < self.lowest - self.share * (first - mean).abs() {
            (self.lowest, self.since) = (mean, 0);
        } else {
            self.since += 1;
        }
        self.share > 0.0 && self.since >= PATIENCE
    }
}

impl Default for FistaOptions {
    /// 100 iterations, relative step 1e-4.
    fn default() -> Self {
        Self { max_iterations: 100, tolerance: 1e-4, settled: 0.0, average: 1 }
    }
}

/// What [`fista`] found.
#[derive(Debug)]
pub struct FistaResult<S: Scalar> {
    /// x.
    pub solution: Array<S>,
    /// ‖x − y‖ / ‖x‖ of every iteration, where x is the proximal gradient step from y. It is 0 only at the
    /// minimum.
    pub residuals: Vec<f64>,
    /// ½⟨x, Ax⟩ − Re⟨b, x⟩ + λg(x) after every iteration.
    pub objective: Vec<f64>,
    /// Whether the last residual met the tolerance, or the objective no longer changed.
    pub converged: bool,
}

/// Minimises ½⟨x, Ax⟩ − Re⟨b, x⟩ + λ g(x) by accelerated proximal gradient steps from `start` or from 0.
///
/// ```text
/// x⁺ = prox_{λg/Λ}(y − (Ay − b)/Λ)        y⁺ = x⁺ + ((t − 1)/t⁺)(x⁺ − x),  t⁺ = (1 + √(1 + 4t²))/2
/// ```
///
/// `problem` holds A (typically FᴴF), b, and Λ, the largest eigenvalue of A or an estimate. Λ grows if a step
/// meets a larger curvature. An observer sees x, or its mean since averaging began. A is applied once per
/// iteration, because Ay and the objective follow from Ax by linearity. t restarts from 1 when the momentum
/// points uphill, ⟨y − x⁺, x⁺ − x⟩ > 0.
///
/// Errors: shapes; λ or a tolerance that is negative or not a number; Λ that is not positive;
/// [`Error::NotFinite`] for b or `start`; [`Error::Numerical`] when the image leaves the range of the
/// numbers; [`Error::Interrupted`]. Also errors of the proximal map, the operator and `observe`.
///
/// A. Beck, M. Teboulle, *A fast iterative shrinkage-thresholding algorithm for linear inverse problems*,
/// SIAM J Imaging Sci 2:183, 2009; B. O'Donoghue, E. Candès, *Adaptive restart for accelerated gradient
/// schemes*, Found Comput Math 15:715, 2015.
///
/// ```
/// use rayspin_core::Monitor;
/// use rayspin_device::Device;
/// use rayspin_linop::{FiniteDifference, GridNormal, LinearOp, random};
/// use rayspin_solve::{FistaOptions, LanczosOptions, Problem, TotalVariation, fista, largest_eigenvalue};
///
/// let device = Device::cpu()?;
/// // Every second line of 4 coils.
/// let measured = ndarray::Array2::from_shape_fn((12, 10), |(y, _)| y % 2 == 0).into_dyn();
/// let maps = random::<f32>(&device, &[4, 12, 10], 1)?;
/// let normal = GridNormal::new(&device, measured.view(), Some(maps.into()), None)?;
/// let truth = random::<f32>(&device, &[12, 10], 2)?;
/// let rhs = normal.forward(&truth)?;
/// let largest_eigenvalue = largest_eigenvalue(&normal, &device, &LanczosOptions::default())?.value;
/// let problem = Problem { normal: &normal, rhs: &rhs, largest_eigenvalue };
/// let differences = FiniteDifference::new(&[12, 10])?;
/// let mut edges = TotalVariation::new(&device, &differences, differences.bound(), 10)?;
/// let found = fista(&problem, None, 1e-3, &mut edges, &FistaOptions::default(), &Monitor::silent())?;
/// // The objective falls.
/// assert!(found.objective.last() < found.objective.first());
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn fista<'w, S: Scalar>(
    problem: &Problem<'_, S>,
    start: Option<&Array<S>>,
    lambda: f64,
    penalty: &mut dyn Proximal<S>,
    options: &FistaOptions,
    watch: impl Into<Watch<'w, S>>,
) -> Result<FistaResult<S>> {
    check(problem, start, lambda, options)?;
    let (mut watch, Problem { normal, rhs, .. }) = (watch.into(), *problem);
    let zeros = || Array::zeros(rhs.device(), rhs.shape());
    let (mut x, mut ax) = (zeros()?, zeros()?);
    let (mut y, mut ay) = (zeros()?, zeros()?);
    let (mut next, mut anext) = (zeros()?, zeros()?);
    if let Some(start) = start {
        x.copy_from(start)?;
        y.copy_from(start)?;
        normal.forward_into(&x, &mut ax)?;
        ay.copy_from(&ax)?;
    }
    let mut mean: Option<Array<S>> = None;
    // The last iterates are averaged, which is at least one.
    let averaged = options.average.max(1);
    let mut end = options.max_iterations;
    let (mut residuals, mut objectives) = (Vec::new(), Vec::new());
    let (mut near, mut settled, mut fall) = (false, false, Fall::new(options.settled));
    let (mut lipschitz, mut t) = (problem.largest_eigenvalue, 1.0f64);
    while residuals.len() < end && !near {
        next.copy_from(&y)?;
        vector::axpy((-1.0 / lipschitz).into(), &ay, &mut next)?;
        vector::axpy((1.0 / lipschitz).into(), rhs, &mut next)?;
        let value = penalty.apply(lambda / lipschitz, &mut next)?;
        normal.forward_into(&next, &mut anext)?;
        let smooth = 0.5 * vector::dot(&next, &anext)?.re - vector::dot(rhs, &next)?.re;
        // y ← x⁺ − y and x ← x⁺ − x, in place; the same for their images under A.
        for (old, new) in [(&mut y, &next), (&mut ay, &anext), (&mut x, &next), (&mut ax, &anext)] {
            vector::xpby(new, (-1.0).into(), old)?;
        }
        let moved = vector::norm_squared(&y)?;
        let size = vector::norm_squared(&next)?.sqrt();
        let residual = if moved == 0.0 { 0.0 } else { moved.sqrt() / size };
        let objective = smooth + lambda * value;
        if !(objective.is_finite() && size.is_finite() && !residual.is_nan()) {
            return Err(Error::Numerical {
                what: format!("FISTA on {}", normal.name()),
                detail: format!("the objective became {objective} at iteration {}", residuals.len() + 1),
            });
        }
        residuals.push(residual);
        objectives.push(objective);
        near = residual <= options.tolerance;
        if !settled && fall.has_ended(&objectives) {
            settled = true;
            end = end.min(objectives.len() - 1 + averaged);
        }
        let curvature = vector::dot(&y, &ay)?.re;
        // Rounding of the differences of nearly equal images is no curvature.
        let grown = moved > 1e-8 * size * size && curvature > 1.001 * lipschitz * moved;
        if grown {
            lipschitz = 1.02 * curvature / moved;
        }
        if grown || vector::dot(&y, &x)?.re < 0.0 {
            t = 1.0;
        }
        let after = 0.5 * (1.0 + (1.0 + 4.0 * t * t).sqrt());
        let beta = (t - 1.0) / after;
        t = after;
        for (place, step, new) in [(&mut y, &mut x, &mut next), (&mut ay, &mut ax, &mut anext)] {
            place.copy_from(new)?;
            vector::axpy(beta.into(), step, place)?;
            std::mem::swap(step, new);
        }
        let (iteration, averaged_from) = (residuals.len(), end.saturating_sub(averaged));
        match &mut mean {
            _ if iteration <= averaged_from || averaged == 1 => {}
            None => mean = Some(x.try_clone()?),
            Some(mean) => {
                // m ← m + (x − m)/k
                let share = 1.0 / (iteration - averaged_from) as f64;
                vector::scale((1.0 - share).into(), mean)?;
                vector::axpy(share.into(), &x, mean)?;
            }
        }
        let step = Step { iteration, residual, solution: mean.as_ref().unwrap_or(&x) };
        watch.step(&step, &format!("relative step {residual:.3e}"))?;
    }
    let solution = mean.filter(|_| !near).unwrap_or(x);
    Ok(FistaResult { solution, residuals, objective: objectives, converged: near || settled })
}

fn check<S: Scalar>(
    problem: &Problem<'_, S>,
    start: Option<&Array<S>>,
    lambda: f64,
    options: &FistaOptions,
) -> Result<()> {
    problem.check("FISTA")?;
    if let Some(start) = start {
        let normal = problem.normal;
        expect_shape(&format!("FISTA on {}: start", normal.name()), normal.domain(), start.shape())?;
        vector::expect_finite("start of FISTA", start)?;
    }
    let named = [
        ("λ of FISTA", lambda),
        ("tolerance of FISTA", options.tolerance),
        ("change of the objective of FISTA", options.settled),
    ];
    for (what, value) in named {
        if !(value >= 0.0 && value.is_finite()) {
            return Err(Error::value(what, "0 or more", value));
        }
    }
    Ok(())
}
