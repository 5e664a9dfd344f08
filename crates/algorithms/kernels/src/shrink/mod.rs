//! Soft thresholds and projections of real and complex numbers: the proximal maps of sums of magnitudes.

mod cpu;
mod cuda;
mod ladder;
pub mod reference;
mod variants;

pub(crate) use cuda::builds;
pub(crate) use ladder::ladder;
pub use variants::{Implementation, Operation, Problem, Soft, variants};

use rayspin_core::{Error, Real, Result, expect_shape, format_shape};
use rayspin_device::{Array, Backend};

use crate::vector::{Scalar, expect_device};

/// x_i ← x_i max(0, 1 − t w_i / |x_i|) for complex x: the proximal map of t Σ w_i |x_i|. Returns Σ w_i |x_i|
/// of the result, summed in f64 in a fixed order.
///
/// Errors: other shapes or devices; a threshold that is negative or not finite.
///
/// D. L. Donoho, *De-noising by soft-thresholding*, IEEE Trans Inf Theory 41:613, 1995.
///
/// ```
/// use rayspin_core::C32;
/// use rayspin_device::{Array, Device};
/// use rayspin_kernels::shrink::soft;
///
/// let device = Device::cpu()?;
/// let weights = Array::from_vec(&device, &[3], vec![1.0f32, 1.0, 0.0])?; // the last one is free
/// let x = vec![C32::new(0.0, 4.0), C32::ONE, C32::from(5.0)];
/// let mut x = Array::from_vec(&device, &[3], x)?;
/// assert_eq!(soft(2.0, &weights, &mut x)?, 2.0);
/// assert_eq!(x.to_vec()?, [C32::new(0.0, 2.0), C32::ZERO, C32::from(5.0)]);
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn soft<S: Scalar>(threshold: f64, weights: &Array<S::Real>, x: &mut Array<S>) -> Result<f64> {
    expect_positive("soft threshold", threshold)?;
    expect_shape("soft threshold: weights", x.shape(), weights.shape())?;
    expect_device("soft threshold: weights", x.device(), weights)?;
    let device = x.device().clone();
    match device.backend() {
        Backend::Cpu(cpu) => {
            Ok(cpu::soft(cpu, <S::Real as Real>::from_f64(threshold), weights.cpu(), x.cpu_mut()))
        }
        Backend::Cuda(_) if x.is_empty() => Ok(0.0),
        Backend::Cuda(cuda) => cuda::soft(cuda, <S::Real as Real>::from_f64(threshold), weights, x),
    }
}

/// x_a(i) ← x_a(i) min(1, r / √Σ_a |x_a(i)|²), where a is the first axis of x. This projects the groups along
/// that axis onto balls of radius r. By Moreau's identity, x minus the result is the proximal map of r Σ_i
/// √Σ_a |x_a(i)|².
///
/// Errors: no axis; a radius that is negative or not finite.
///
/// ```
/// use rayspin_core::C32;
/// use rayspin_device::{Array, Device};
/// use rayspin_kernels::shrink::clip;
///
/// let device = Device::cpu()?;
/// // Two groups of two components, [component, element]: (3, 4) of norm 5, and (0.5, 0).
/// let mut x = Array::from_vec(&device, &[2, 2], [3.0, 0.5, 4.0, 0.0].map(C32::from).to_vec())?;
/// clip(1.0, &mut x)?;
/// let wanted = [0.6, 0.5, 0.8, 0.0].map(C32::from);
/// assert!(x.to_vec()?.iter().zip(wanted).all(|(a, b)| (a - b).norm() < 1e-6));
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn clip<S: Scalar>(radius: f64, x: &mut Array<S>) -> Result<()> {
    expect_positive("radius of projection", radius)?;
    let len = group_length(x)?;
    let device = x.device().clone();
    if len > 0 {
        match device.backend() {
            Backend::Cpu(cpu) => cpu::clip(cpu, <S::Real as Real>::from_f64(radius), len, x.cpu_mut()),
            Backend::Cuda(cuda) => cuda::clip(cuda, <S::Real as Real>::from_f64(radius), len, x)?,
        }
    }
    Ok(())
}

/// Σ_i √Σ_a |x_a(i)|², where a is the first axis of x, summed in f64 in a fixed order. Errors: no axis.
///
/// ```
/// use rayspin_core::C32;
/// use rayspin_device::{Array, Device};
/// use rayspin_kernels::shrink::joint_norm;
///
/// // [component, element]: (3, 4) of norm 5, and (1, 0) of norm 1.
/// let x = Array::from_vec(&Device::cpu()?, &[2, 2], [3.0, 1.0, 4.0, 0.0].map(C32::from).to_vec())?;
/// assert_eq!(joint_norm(&x)?, 6.0);
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn joint_norm<S: Scalar>(x: &Array<S>) -> Result<f64> {
    let len = group_length(x)?;
    match x.device().backend() {
        _ if len == 0 => Ok(0.0),
        Backend::Cpu(cpu) => Ok(cpu::joint_norm(cpu, len, x.cpu())),
        Backend::Cuda(cuda) => cuda::joint_norm(cuda, len, x),
    }
}

/// Elements of each component, 0 for an empty array.
fn group_length<S: Scalar>(x: &Array<S>) -> Result<usize> {
    match x.shape().first() {
        Some(&components) => Ok(x.len() / components.max(1)),
        None => Err(Error::Shape {
            what: "groups of components".into(),
            expected: "[component, image…]".into(),
            found: format_shape(x.shape()),
        }),
    }
}

fn expect_positive(what: &str, value: f64) -> Result<()> {
    if value >= 0.0 && value.is_finite() {
        Ok(())
    } else {
        Err(Error::value(what, "a finite number >= 0", value))
    }
}

#[cfg(test)]
mod tests;
