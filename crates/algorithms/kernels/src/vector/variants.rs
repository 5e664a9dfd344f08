//! The rows: every variant of the sums and updates.

use num_complex::Complex;
use rayspin_core::Real;
use rayspin_device::{BackendKind, Cpu};

use super::cpu;
use crate::variant::{Variant, Work};

/// What is computed, for the table of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Σ conj(x) y.
    Dot,
    /// Σ |x|².
    NormSquared,
    /// y ← αx + y.
    Axpy,
    /// y ← x + βy.
    Xpby,
    /// x ← αx.
    Scale,
    /// y ← d ⊙ x, or with conj(d).
    Multiply,
    /// y ← w ⊙ x with real w.
    Weight,
    /// x ← x + αp, r ← r − αq, ‖r‖².
    CgUpdate,
}

/// An operation on vectors of `len` complex numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Problem {
    /// Which one.
    pub operation: Operation,
    /// Complex numbers in each vector.
    pub len: usize,
}

type Read<'a, R> = &'a [Complex<R>];
type Write<'a, R> = &'a mut [Complex<R>];
/// The fused step of conjugate gradients, from (α, p, q, x, r).
pub type CgUpdate<R> = fn(&Cpu, R, Read<R>, Read<R>, Write<R>, Write<R>) -> f64;

/// One implementation of every operation. Vectors of one call have the same length, except that `d` and `w`
/// are repeated along `x`, whose length is a multiple of theirs.
pub struct Implementation<R: Real> {
    /// Σ conj(x) y, from (x, y).
    pub dot: fn(&Cpu, Read<R>, Read<R>) -> Complex<f64>,
    /// Σ |x|².
    pub norm_squared: fn(&Cpu, Read<R>) -> f64,
    /// y ← αx + y, from (α, x, y).
    pub axpy: fn(&Cpu, Complex<R>, Read<R>, Write<R>),
    /// y ← x + βy, from (x, β, y).
    pub xpby: fn(&Cpu, Read<R>, Complex<R>, Write<R>),
    /// x ← αx.
    pub scale: fn(&Cpu, Complex<R>, Write<R>),
    /// y ← d ⊙ x, from (d, x, y).
    pub multiply: fn(&Cpu, Read<R>, Read<R>, Write<R>),
    /// y ← conj(d) ⊙ x, from (d, x, y).
    pub multiply_conj: fn(&Cpu, Read<R>, Read<R>, Write<R>),
    /// y ← w ⊙ x, from (w, x, y).
    pub weight: fn(&Cpu, &[R], Read<R>, Write<R>),
    /// x ← x + αp, r ← r − αq and ‖r‖², from (α, p, q, x, r).
    pub cg_update: CgUpdate<R>,
}

/// Every variant, slowest first.
pub fn variants<R: Real>() -> [Variant<Problem, Implementation<R>>; 2] {
    // A product of complex numbers and a sum; the second term is what long plain f64 sums may lose, the
    // oracle's too.
    let tolerance = 4.0 * <R as Real>::EPSILON.to_f64() + 2e-14;
    [
        Variant::new(
            "plain",
            BackendKind::Cpu,
            "one thread, one accumulator, one pass a step",
            cpu::plain(),
            work::<R>,
        )
        .tolerance(tolerance),
        Variant::new(
            "chunks",
            BackendKind::Cpu,
            "all cores over fixed chunks, 16 accumulators in vector registers, fused updates",
            cpu::parallel(),
            work::<R>,
        )
        .tolerance(tolerance),
    ]
}

fn work<R: Real>(p: &Problem) -> Work {
    let complex = size_of::<Complex<R>>() as f64;
    let (streams, flops) = match p.operation {
        Operation::Dot => (2.0, 8.0),
        Operation::NormSquared => (1.0, 4.0),
        Operation::Axpy | Operation::Xpby => (3.0, 4.0),
        Operation::Scale => (2.0, 6.0),
        Operation::Multiply => (3.0, 6.0),
        Operation::Weight => (2.5, 2.0),
        Operation::CgUpdate => (6.0, 12.0),
    };
    Work { bytes: streams * complex * p.len as f64, flops: flops * p.len as f64 }
}
