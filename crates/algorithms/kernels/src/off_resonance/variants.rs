//! The rows: every variant of the phases and the shares of samples.

use num_complex::Complex;
use rayspin_core::Real;
use rayspin_device::{BackendKind, Cpu};

use super::cpu;
use crate::variant::{Variant, Work};

/// What is computed, for the table of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// e^{i2πf(x)τ} y(x).
    Modulate,
    /// w_l(t_m) d_m.
    Weigh,
}

/// An operation over `batch` rows of `len` voxels or samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Problem {
    /// The operation.
    pub operation: Operation,
    /// Number of images or coils.
    pub batch: usize,
    /// Number of voxels or samples of each.
    pub len: usize,
}

/// (field, τ, input, output, whether to add to the output); the field is one image long.
pub type Modulate<R> = fn(&Cpu, &[R], f64, &[Complex<R>], &mut [Complex<R>], bool);
/// (weights, input, output, whether to add to the output).
pub type Weigh<R> = fn(&Cpu, Weights<'_, R>, &[Complex<R>], &mut [Complex<R>], bool);

/// The weights of one segment at the samples: w(t_m), or their conjugates.
#[derive(Debug, Clone, Copy)]
pub struct Weights<'a, R> {
    /// w at every distinct time.
    pub by_time: &'a [Complex<R>],
    /// The time of each sample, as an index.
    pub index: &'a [u32],
    /// Whether the conjugates are the weights.
    pub conjugate: bool,
}

/// One implementation of every operation; no array is empty.
pub struct Implementation<R: Real> {
    /// Phases of the field at one moment.
    pub modulate: Modulate<R>,
    /// One segment's share in every sample.
    pub weigh: Weigh<R>,
}

/// Every variant, slowest first.
pub fn variants<R: Real>() -> [Variant<Problem, Implementation<R>>; 2] {
    // A sine, a cosine and a product of complex numbers.
    let tolerance = 4.0 * <R as Real>::EPSILON.to_f64();
    [
        Variant::new(
            "plain",
            BackendKind::Cpu,
            "one thread, number by number, library sine and cosine",
            cpu::plain(),
            work::<R>,
        )
        .tolerance(tolerance),
        Variant::new(
            "vectors",
            BackendKind::Cpu,
            "all cores, sines and cosines of whole vectors in double precision",
            cpu::vectors(),
            work::<R>,
        )
        .tolerance(tolerance),
    ]
}

fn work<R: Real>(p: &Problem) -> Work {
    let (complex, real) = (size_of::<Complex<R>>() as f64, size_of::<R>() as f64);
    let (batch, len) = (p.batch as f64, p.len as f64);
    let (beside, flops) = match p.operation {
        // Some 30 operations for sine and cosine.
        Operation::Modulate => (real, 6.0 * batch + 30.0),
        Operation::Weigh => (4.0, 6.0 * batch),
    };
    Work { bytes: (2.0 * batch * complex + beside) * len, flops: flops * len }
}
