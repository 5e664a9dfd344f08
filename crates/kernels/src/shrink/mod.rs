//! Soft thresholds and projections of complex numbers: the proximal maps of sums of magnitudes.

mod cpu;
mod cuda;
pub mod reference;

pub(crate) use cuda::SOURCE;

use num_complex::Complex;
use rayspin_core::{Error, Real, Result, expect_shape, format_shape};
use rayspin_device::{Array, Backend, BackendKind, Cpu};

use crate::variant::{Variant, Work, runs_all};
use crate::vector::expect_device;

/// What is computed, for the table of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Soft threshold, element by element.
    Soft,
    /// Projection onto balls across components.
    Clip,
    /// Sum of magnitudes across components.
    JointNorm,
}

/// An operation on `components` arrays of `len` complex numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Problem {
    /// Which one.
    pub operation: Operation,
    /// Components that form a group; 1 for [`Operation::Soft`].
    pub components: usize,
    /// Complex numbers in each.
    pub len: usize,
}

/// Σ w|x| after shrinking x, from (t, w, x).
pub type Soft<R> = fn(&Cpu, R, &[R], &mut [Complex<R>]) -> f64;

/// One implementation of every operation. No array is empty.
pub struct Launch<R: Real> {
    /// (t, w, x): x ← shrunk x; Σ w|x|.
    pub soft: Soft<R>,
    /// (r, len, x): x ← clipped x.
    pub clip: fn(&Cpu, R, usize, &mut [Complex<R>]),
    /// (len, x): Σ √Σ|x|².
    pub joint_norm: fn(&Cpu, usize, &[Complex<R>]) -> f64,
}

/// Every variant, slowest first.
pub fn variants<R: Real>() -> [Variant<Problem, Launch<R>>; 2] {
    // A magnitude, a quotient and a product; the second term is what long plain f64 sums may lose, the oracle's too.
    let tolerance = 4.0 * <R as Real>::EPSILON.to_f64() + 2e-14;
    [
        Variant {
            name: "plain",
            backend: BackendKind::Cpu,
            summary: "one thread, element by element, group by group",
            launch: cpu::plain(),
            refuses: runs_all,
            work: work::<R>,
            tolerance,
            reproduces: None,
        },
        Variant {
            name: "chunks",
            backend: BackendKind::Cpu,
            summary: "all cores over fixed chunks, all components of a chunk while it is in cache",
            launch: cpu::chunks(),
            refuses: runs_all,
            work: work::<R>,
            tolerance,
            reproduces: None,
        },
    ]
}

fn work<R: Real>(p: &Problem) -> Work {
    let complex = size_of::<Complex<R>>() as f64;
    let numbers = (p.components * p.len) as f64;
    let (streams, flops) = match p.operation {
        Operation::Soft => (2.5, 10.0),
        Operation::Clip => (2.0, 8.0),
        Operation::JointNorm => (1.0, 5.0),
    };
    Work { bytes: streams * complex * numbers, flops: flops * numbers }
}

/// x_i ← x_i max(0, 1 − t w_i / |x_i|) for complex x: the proximal map of t Σ w_i |x_i|; returns Σ w_i |x_i| of the result,
/// summed in f64 in a fixed order.
///
/// Errors: other shapes or devices; a threshold that is negative or not finite.
///
/// D. L. Donoho, *De-noising by soft-thresholding*, IEEE Trans Inf Theory 41:613, 1995.
pub fn soft<R: Real>(threshold: f64, weights: &Array<R>, x: &mut Array<Complex<R>>) -> Result<f64> {
    expect_positive("soft threshold", threshold)?;
    expect_shape("soft threshold: weights", x.shape(), weights.shape())?;
    expect_device("soft threshold: weights", x.device(), weights)?;
    let device = x.device().clone();
    match device.backend() {
        Backend::Cpu(cpu) => {
            Ok((cpu::chunks().soft)(cpu, <R as Real>::from_f64(threshold), weights.cpu(), x.cpu_mut()))
        }
        Backend::Cuda(_) if x.is_empty() => Ok(0.0),
        Backend::Cuda(cuda) => cuda::soft(cuda, <R as Real>::from_f64(threshold), weights, x),
    }
}

/// x_a(i) ← x_a(i) min(1, r / √Σ_a |x_a(i)|²), where a is the first axis of x: the projection onto the balls of radius r of
/// the groups that lie along it, and 1 less the proximal map of r Σ_i √Σ_a |x_a(i)|² (Moreau).
///
/// Errors: no axis; a radius that is negative or not finite.
pub fn clip<R: Real>(radius: f64, x: &mut Array<Complex<R>>) -> Result<()> {
    expect_positive("radius of projection", radius)?;
    let len = group_length(x)?;
    let device = x.device().clone();
    if len > 0 {
        match device.backend() {
            Backend::Cpu(cpu) => (cpu::chunks().clip)(cpu, <R as Real>::from_f64(radius), len, x.cpu_mut()),
            Backend::Cuda(cuda) => cuda::clip(cuda, <R as Real>::from_f64(radius), len, x)?,
        }
    }
    Ok(())
}

/// Σ_i √Σ_a |x_a(i)|², where a is the first axis of x, summed in f64 in a fixed order. Errors: no axis.
pub fn joint_norm<R: Real>(x: &Array<Complex<R>>) -> Result<f64> {
    let len = group_length(x)?;
    match x.device().backend() {
        _ if len == 0 => Ok(0.0),
        Backend::Cpu(cpu) => Ok((cpu::chunks().joint_norm)(cpu, len, x.cpu())),
        Backend::Cuda(cuda) => cuda::joint_norm(cuda, len, x),
    }
}

/// Elements of each component, 0 for an empty array.
fn group_length<R: Real>(x: &Array<Complex<R>>) -> Result<usize> {
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
