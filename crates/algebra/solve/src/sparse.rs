use rayspin_core::Result;
use rayspin_device::Array;
use rayspin_kernels::vector::{self, Scalar};

use crate::problem::Unit;
use crate::{FistaOptions, FistaResult, Problem, Proximal, Watch, fista};

/// What [`sparse_least_squares`] found.
#[derive(Debug)]
pub struct SparseResult<S: Scalar> {
    /// ρ, and the course of the iteration. The objective is the one of [`sparse_least_squares`] over s².
    pub fista: FistaResult<S>,
    /// s, the scale of the image that λ is relative to.
    pub scale: f64,
}

/// Minimises 1/(2L) ‖Fρ − d‖² + λ s g(ρ), where L is the largest eigenvalue of FᴴF and s the 99th percentile
/// of the magnitudes of Fᴴd / L.
///
/// `problem` holds FᴴF, Fᴴd and L. `penalty` is g with g(αρ) = |α| g(ρ). λ has no unit: L removes the scaling
/// of F, and s, which is near the image's brightness, removes the scaling of the data. The solver iterates u
/// = ρ/s, whose numbers are near 1, from `start` (a ρ) or from 0.
///
/// Errors: a λ that is negative or not finite; an L that is not positive; shapes; errors of [`fista`].
///
/// ```
/// use rayspin_core::Monitor;
/// use rayspin_device::Device;
/// use rayspin_linop::{FiniteDifference, GridNormal, LinearOp, random};
/// use rayspin_solve::{
///     FistaOptions, LanczosOptions, Problem, TotalVariation, largest_eigenvalue, sparse_least_squares,
/// };
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
/// let options = FistaOptions::default();
/// let found = sparse_least_squares(&problem, None, 1e-3, &mut edges, &options, &Monitor::silent())?;
/// assert_eq!(found.fista.solution.shape(), [12, 10]);
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn sparse_least_squares<'w, S: Scalar>(
    problem: &Problem<'_, S>,
    start: Option<&Array<S>>,
    lambda: f64,
    penalty: &mut dyn Proximal<S>,
    options: &FistaOptions,
    watch: impl Into<Watch<'w, S>>,
) -> Result<SparseResult<S>> {
    let unit = Unit::new("sparse least squares", problem)?;
    let scale = unit.scale;
    let start = match start {
        Some(start) => {
            let mut start = start.try_clone()?;
            vector::scale((1.0 / scale).into(), &mut start)?;
            Some(start)
        }
        None => None,
    };
    let mut fista = watch
        .into()
        .scaled(scale, |watch| fista(&unit.problem(), start.as_ref(), lambda, penalty, options, watch))?;
    vector::scale(scale.into(), &mut fista.solution)?;
    Ok(SparseResult { fista, scale })
}
