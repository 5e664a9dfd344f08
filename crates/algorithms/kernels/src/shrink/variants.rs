//! The rows: every variant of thresholds, projections and norms.

use num_complex::Complex;
use rayspin_core::Real;
use rayspin_device::{BackendKind, Cpu};

use super::cpu;
use crate::variant::{Variant, Work};

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
pub struct Implementation<R: Real> {
    /// (t, w, x): x ← shrunk x; Σ w|x|.
    pub soft: Soft<R>,
    /// (r, len, x): x ← clipped x.
    pub clip: fn(&Cpu, R, usize, &mut [Complex<R>]),
    /// (len, x): Σ √Σ|x|².
    pub joint_norm: fn(&Cpu, usize, &[Complex<R>]) -> f64,
}

/// Every variant, slowest first.
pub fn variants<R: Real>() -> [Variant<Problem, Implementation<R>>; 2] {
    // A magnitude, a quotient and a product; the second term is what long plain f64 sums may lose, the
    // oracle's too.
    let tolerance = 4.0 * <R as Real>::EPSILON.to_f64() + 2e-14;
    [
        Variant::new(
            "plain",
            BackendKind::Cpu,
            "one thread, element by element, group by group",
            cpu::plain(),
            work::<R>,
        )
        .tolerance(tolerance),
        Variant::new(
            "chunks",
            BackendKind::Cpu,
            "all cores over fixed chunks, all components of a chunk while it is in cache",
            cpu::chunks(),
            work::<R>,
        )
        .tolerance(tolerance),
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
