//! The rows: every variant of finite differences.

use num_complex::Complex;
use rayspin_core::Real;
use rayspin_device::{BackendKind, Cpu};

use super::{Axis, cpu};
use crate::variant::{Variant, Work};

/// What is computed, for the table of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// D.
    Forward,
    /// Dᴴ.
    Adjoint,
    /// DᴴD.
    Normal,
}

/// An operation on images along all axes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Which one.
    pub operation: Operation,
    /// The shape of the image.
    pub shape: Vec<usize>,
}

impl Problem {
    /// Elements of the image.
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// (axes, input, output); no array is empty.
pub type Apply<R> = fn(&Cpu, &[Axis], &[Complex<R>], &mut [Complex<R>]);

/// One implementation of every operation.
pub struct Implementation<R: Real> {
    /// Image to differences `[axis, image…]`.
    pub forward: Apply<R>,
    /// Differences to image.
    pub adjoint: Apply<R>,
    /// Image to image.
    pub normal: Apply<R>,
}

/// Every variant, slowest first.
pub fn variants<R: Real>() -> [Variant<Problem, Implementation<R>>; 2] {
    // Two roundings a difference, its weight, and as many again of the adjoint.
    let tolerance = 4.0 * <R as Real>::EPSILON.to_f64();
    [
        Variant::new(
            "plain",
            BackendKind::Cpu,
            "one thread, element by element; the normal operator through the differences",
            cpu::plain(),
            work::<R>,
        )
        .tolerance(tolerance),
        Variant::new(
            "stretches",
            BackendKind::Cpu,
            "all cores over stretches without edges, all axes while in cache; the normal operator in one pass",
            cpu::stretched(),
            work::<R>,
        )
        .tolerance(tolerance),
    ]
}

fn work<R: Real>(p: &Problem) -> Work {
    let complex = size_of::<Complex<R>>() as f64;
    let (axes, len) = (p.shape.len() as f64, p.len() as f64);
    let (streams, flops) = match p.operation {
        Operation::Forward => (axes + 1.0, 4.0),
        Operation::Adjoint => (axes + 1.0, 6.0),
        Operation::Normal => (2.0, 8.0),
    };
    Work { bytes: streams * complex * len, flops: flops * axes * len }
}
