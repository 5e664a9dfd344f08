use num_complex::Complex;
use rayspin_core::{Error, Monitor, Real, Result, expect_shape};
use rayspin_device::Array;
use rayspin_kernels::{select, vector};
use rayspin_linop::LinearOp;

use crate::least_squares::Regularised;
use crate::{FistaOptions, FistaResult, FistaStep, Proximal, fista};

/// What [`sparse_least_squares`] found.
#[derive(Debug)]
pub struct SparseResult<R: Real> {
    /// ρ and how it was reached; the objective is the one below over s².
    pub fista: FistaResult<R>,
    /// s, the scale of the image that λ is relative to.
    pub scale: f64,
}

/// The share of voxels whose magnitude in Fᴴd is at most s: bright spots do not decide it, and an object that fills a
/// hundredth of the field of view does.
pub const SCALE_PERCENTILE: f64 = 0.99;

/// Minimises 1/(2L) ‖Fρ − d‖² + λ s g(ρ), where L is the largest eigenvalue of FᴴF and s the 99th percentile of the
/// magnitudes of Fᴴd / L.
///
/// `normal` is FᴴF, `rhs` is Fᴴd, `penalty` is g with g(αρ) = |α| g(ρ). λ has no unit: L takes away the scaling of F, and s,
/// which is near the image's own brightness, that of the data. What is iterated is u = ρ/s, whose numbers are near 1, from `start`
/// (a ρ) or from 0.
///
/// Errors: a λ that is negative or not finite, an L that is not positive, shapes; those of [`fista`].
#[allow(clippy::too_many_arguments, reason = "as fista")]
pub fn sparse_least_squares<R: Real>(
    normal: &dyn LinearOp<R>,
    rhs: &Array<Complex<R>>,
    start: Option<&Array<Complex<R>>>,
    lambda: f64,
    penalty: &mut dyn Proximal<R>,
    largest_eigenvalue: f64,
    options: &FistaOptions,
    monitor: &Monitor<'_>,
    observe: &mut dyn FnMut(&FistaStep<'_, R>) -> Result<()>,
) -> Result<SparseResult<R>> {
    let what = |part: &str| format!("sparse least squares on {}: {part}", normal.name());
    expect_shape(&what("right-hand side"), normal.domain(), rhs.shape())?;
    if !(largest_eigenvalue.is_finite() && largest_eigenvalue > 0.0) {
        return Err(Error::value(what("largest eigenvalue"), "a positive number", largest_eigenvalue));
    }
    vector::expect_finite("right-hand side of sparse least squares", rhs)?;
    let scale = percentile(rhs)? / largest_eigenvalue;
    // Nothing to see: any scale gives the image 0.
    let unit = if scale > 0.0 { scale } else { 1.0 };
    let mut small = rhs.try_clone()?;
    vector::scale((1.0 / (largest_eigenvalue * unit)).into(), &mut small)?;
    let scaled = Regularised::new(normal, 1.0 / largest_eigenvalue, 0.0, &[]);
    let mut shown = Array::zeros(rhs.device(), rhs.shape())?;
    let mut back = |step: &FistaStep<'_, R>| {
        shown.copy_from(step.solution)?;
        vector::scale(unit.into(), &mut shown)?;
        observe(&FistaStep { iteration: step.iteration, residual: step.residual, solution: &shown })
    };
    let start = match start {
        Some(start) => {
            let mut start = start.try_clone()?;
            vector::scale((1.0 / unit).into(), &mut start)?;
            Some(start)
        }
        None => None,
    };
    let mut fista =
        fista(&scaled, &small, start.as_ref(), lambda, penalty, 1.0, options, monitor, &mut back)?;
    vector::scale(unit.into(), &mut fista.solution)?;
    Ok(SparseResult { fista, scale: unit })
}

/// The magnitude that [`SCALE_PERCENTILE`] of the voxels do not exceed; the largest where that is 0.
fn percentile<R: Real>(x: &Array<Complex<R>>) -> Result<f64> {
    if x.is_empty() {
        return Ok(0.0);
    }
    let at = ((SCALE_PERCENTILE * x.len() as f64).ceil() as usize).clamp(1, x.len()) - 1;
    let found = select::magnitude(x, at)?;
    if found > 0.0 { Ok(found) } else { select::magnitude(x, x.len() - 1) }
}
