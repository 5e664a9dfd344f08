use num_complex::Complex;
use rayspin_core::{Error, Real, Result};
use rayspin_device::{Array, Device};
use rayspin_kernels::vector;
use rayspin_linop::{LinearOp, random};

/// How long [`power_iteration`] goes on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PowerOptions {
    /// Seed of the random start.
    pub seed: u64,
    /// The most iterations, each one application of the operator.
    pub max_iterations: usize,
    /// Stop when an iteration changes the estimate by less than this share of it.
    pub tolerance: f64,
}

impl Default for PowerOptions {
    /// Seed 0, at most 50 iterations, to 1e-3.
    fn default() -> Self {
        Self { seed: 0, max_iterations: 50, tolerance: 1e-3 }
    }
}

/// What [`power_iteration`] found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Eigenvalue {
    /// The estimate: the Rayleigh quotient ⟨v, Av⟩ / ⟨v, v⟩, never above the largest eigenvalue (but for rounding).
    pub value: f64,
    /// ‖Av − value·v‖ / ‖v‖: some eigenvalue lies within this distance of `value`.
    pub residual: f64,
    /// Iterations done.
    pub iterations: usize,
    /// Whether the tolerance was met.
    pub converged: bool,
}

/// The largest eigenvalue of a Hermitian positive semidefinite operator: v ← Av / ‖Av‖ from a random start.
///
/// The error of the estimate falls as (λ₂/λ₁)^2k with k iterations; the component of a random start along the
/// eigenvector is what may delay it. The zero operator has eigenvalue 0.
///
/// Errors: an operator whose domain is not its range; a tolerance that is negative or not a number; no iterations;
/// [`Error::Numerical`] when the operator's output is not finite.
pub fn power_iteration<R: Real>(
    normal: &dyn LinearOp<R>,
    device: &Device,
    options: &PowerOptions,
) -> Result<Eigenvalue> {
    crate::expect_square(normal)?;
    if options.tolerance.is_nan() || options.tolerance < 0.0 {
        return Err(Error::value("tolerance of power iteration", "0 or more", options.tolerance));
    }
    if options.max_iterations == 0 {
        return Err(Error::value("iterations of power iteration", "at least 1", 0));
    }
    let mut vector = random(device, normal.domain(), options.seed)?;
    let mut image = Array::zeros(device, normal.domain())?;
    let mut found = Eigenvalue { value: 0.0, residual: 0.0, iterations: 0, converged: false };
    normalise(&mut vector);
    while found.iterations < options.max_iterations && !found.converged {
        normal.forward_into(&vector, &mut image)?;
        let size = vector::norm_squared(&vector);
        let stretched = vector::norm_squared(&image);
        if !stretched.is_finite() {
            return Err(Error::Numerical {
                what: format!("power iteration on {}", normal.name()),
                detail: format!("‖Av‖² became {stretched} at iteration {}", found.iterations + 1),
            });
        }
        if size == 0.0 || stretched == 0.0 {
            found.value = 0.0;
            found.residual = 0.0;
            found.converged = true;
            break;
        }
        let value = vector::dot(&vector, &image)?.re / size;
        found.iterations += 1;
        found.converged = (value - found.value).abs() <= options.tolerance * value.abs();
        found.residual = (stretched / size - value * value).max(0.0).sqrt();
        found.value = value;
        std::mem::swap(&mut vector, &mut image);
        normalise(&mut vector);
    }
    Ok(found)
}

fn normalise<R: Real>(x: &mut Array<Complex<R>>) {
    let size = vector::norm_squared(x).sqrt();
    if size > 0.0 {
        vector::scale((1.0 / size).into(), x);
    }
}
