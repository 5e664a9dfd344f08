//! Forward differences along chosen axes with the far edge at zero (Neumann): the gradient of total variation
//! and of smoothness penalties.

mod cpu;
mod cuda;
mod ladder;
pub mod reference;
mod variants;

pub(crate) use cuda::builds;
pub(crate) use ladder::ladder;
pub use variants::{Apply, Implementation, Operation, Problem, variants};

use rayspin_core::{Error, Result, expect_shape, format_shape};
use rayspin_device::{Array, Backend};

use crate::vector::{Scalar, expect_device};

/// An axis to take differences along.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Axis {
    /// Elements along it.
    pub size: usize,
    /// Distance between neighbours in memory.
    pub step: usize,
    /// w, the factor of the differences along the axis.
    pub weight: f64,
}

/// The shape `[axes, image…]` of the differences, and the axes in memory. Errors: an axis that the image
/// lacks or that is named twice, other weights than axes, a weight that is not finite.
fn layout(shape: &[usize], axes: &[usize], weights: &[f64]) -> Result<(Vec<usize>, Vec<Axis>)> {
    if weights.len() != axes.len() || weights.iter().any(|w| !w.is_finite()) {
        return Err(Error::value(
            "weights of finite differences",
            format!("{} finite numbers, one an axis", axes.len()),
            format!("{weights:?}"),
        ));
    }
    let mut out = vec![axes.len()];
    out.extend_from_slice(shape);
    let mut list = Vec::new();
    for (i, &axis) in axes.iter().enumerate() {
        if axis >= shape.len() || axes[..i].contains(&axis) {
            return Err(Error::value(
                "axes of finite differences",
                format!("distinct axes of an image of shape {}", format_shape(shape)),
                format!("{axes:?}"),
            ));
        }
        list.push(Axis { size: shape[axis], step: shape[axis + 1..].iter().product(), weight: weights[i] });
    }
    Ok((out, list))
}

/// The shape `[axes, image…]` of the differences of an image along `axes`.
///
/// Errors: an axis that the image lacks or that is named twice.
///
/// ```
/// use rayspin_kernels::difference::range;
/// assert_eq!(range(&[4, 5], &[0, 1])?, [2, 4, 5]);
/// assert!(range(&[4, 5], &[2]).is_err()); // an axis that the image lacks
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn range(shape: &[usize], axes: &[usize]) -> Result<Vec<usize>> {
    layout(shape, axes, &vec![1.0; axes.len()]).map(|(out, _)| out)
}

/// d_a(i) = w_a (x(i + e_a) − x(i)) for every axis a of `axes`, with w_a from `weights`, and 0 at the last
/// element of the axis. `out` is `[axes, image…]`, component by component in the order of `axes`.
///
/// An axis of size 1 has only a last element: its component is 0, so that component a always belongs to axis
/// a.
///
/// Errors: an axis that the image lacks or that is named twice, weights that are not one finite number an
/// axis, shapes that do not fit, different devices.
///
/// ```
/// use rayspin_core::C32;
/// use rayspin_device::{Array, Device};
/// use rayspin_kernels::difference::forward;
///
/// let device = Device::cpu()?;
/// let ramp = Array::from_vec(&device, &[4], [0.0, 1.0, 4.0, 9.0].map(C32::from).to_vec())?;
/// let mut differences = Array::zeros(&device, &[1, 4])?; // [axis, image…]
/// forward(&[0], &[0.5], &ramp, &mut differences)?; // voxels of size 2
/// assert_eq!(differences.to_vec()?, [0.5, 1.5, 2.5, 0.0].map(C32::from));
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn forward<S: Scalar>(axes: &[usize], weights: &[f64], x: &Array<S>, out: &mut Array<S>) -> Result<()> {
    let (wanted, axes) = layout(x.shape(), axes, weights)?;
    expect_shape("finite differences", &wanted, out.shape())?;
    expect_device("finite differences", x.device(), out)?;
    if !out.is_empty() {
        match x.device().backend() {
            Backend::Cpu(cpu) => cpu::forward(cpu, &axes, x.cpu(), out.cpu_mut()),
            Backend::Cuda(cuda) => cuda::run(cuda, "forward", &axes, x.len(), x, out)?,
        }
    }
    Ok(())
}

/// x(i) = Σ_a w_a (d_a(i − e_a) − d_a(i)), terms beyond an edge left out: the adjoint of [`forward`], minus
/// the divergence.
///
/// Errors: as [`forward`].
///
/// ```
/// use rayspin_core::C32;
/// use rayspin_device::{Array, Device};
/// use rayspin_kernels::difference::adjoint;
///
/// let device = Device::cpu()?;
/// let d = Array::from_vec(&device, &[1, 4], [1.0, 3.0, 5.0, 7.0].map(C32::from).to_vec())?;
/// let mut x = Array::zeros(&device, &[4])?;
/// adjoint(&[0], &[1.0], &d, &mut x)?;
/// assert_eq!(x.to_vec()?, [-1.0, -2.0, -2.0, 5.0].map(C32::from)); // the last difference does not count
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn adjoint<S: Scalar>(axes: &[usize], weights: &[f64], d: &Array<S>, out: &mut Array<S>) -> Result<()> {
    let (wanted, axes) = layout(out.shape(), axes, weights)?;
    expect_shape("finite differences", &wanted, d.shape())?;
    expect_device("finite differences", d.device(), out)?;
    if !out.is_empty() {
        match d.device().backend() {
            Backend::Cpu(cpu) => cpu::adjoint(cpu, &axes, d.cpu(), out.cpu_mut()),
            Backend::Cuda(cuda) => cuda::run(cuda, "adjoint", &axes, out.len(), d, out)?,
        }
    }
    Ok(())
}

/// DᴴDx in one pass: Σ_a w_a² ((x(i) − x(i − e_a)) + (x(i) − x(i + e_a))), terms beyond an edge left out.
///
/// Errors: as [`forward`]; `out` has the shape of `x`.
///
/// ```
/// use rayspin_core::C32;
/// use rayspin_device::{Array, Device};
/// use rayspin_kernels::difference::normal;
///
/// let device = Device::cpu()?;
/// let spike = Array::from_vec(&device, &[4], [0.0, 1.0, 0.0, 0.0].map(C32::from).to_vec())?;
/// let mut y = Array::zeros(&device, &[4])?;
/// normal(&[0], &[1.0], &spike, &mut y)?;
/// assert_eq!(y.to_vec()?, [-1.0, 2.0, -1.0, 0.0].map(C32::from));
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn normal<S: Scalar>(axes: &[usize], weights: &[f64], x: &Array<S>, out: &mut Array<S>) -> Result<()> {
    let (_, axes) = layout(x.shape(), axes, weights)?;
    expect_shape("finite differences", x.shape(), out.shape())?;
    expect_device("finite differences", x.device(), out)?;
    if !out.is_empty() {
        match x.device().backend() {
            Backend::Cpu(cpu) => cpu::normal(cpu, &axes, x.cpu(), out.cpu_mut()),
            Backend::Cuda(cuda) => cuda::run(cuda, "normal", &axes, x.len(), x, out)?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
