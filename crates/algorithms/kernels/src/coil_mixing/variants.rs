//! The rows: every variant of the map of coils.

use num_complex::Complex;
use rayspin_core::Real;
use rayspin_device::{BackendKind, Cpu};

use super::{Input, cpu};
use crate::variant::{Variant, Work};

/// The sizes of a linear map from `coils` coils to `kept` coils. Each coil has `points` samples. Sample s
/// takes matrix s mod `positions`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Problem {
    /// Coils before the map.
    pub coils: usize,
    /// Coils after the map.
    pub kept: usize,
    /// Samples of a coil.
    pub points: usize,
    /// Matrices.
    pub positions: usize,
}

/// Entry point of a CPU variant: what comes in, the rows of the coils made, a run of `points` of each.
pub type Implementation<R> = fn(&Cpu, &Input<'_, R>, Vec<&mut [Complex<R>]>);

/// Every variant for the CPU, slowest first.
pub fn variants<R: Real>() -> [Variant<Problem, Implementation<R>>; 2] {
    // Products of complex numbers and sums over coils, which round like their square root.
    let tolerance = 4.0 * <R as Real>::EPSILON.to_f64();
    [
        Variant::new(
            "coilwise",
            BackendKind::Cpu,
            "one thread, a pass over all samples for every pair of coils",
            cpu::coilwise as Implementation<R>,
            work::<R>,
        )
        .tolerance(tolerance),
        Variant::new(
            "blocks",
            BackendKind::Cpu,
            "all cores over blocks of samples that stay in cache while the pairs of coils go by",
            cpu::blocks as Implementation<R>,
            work::<R>,
        )
        .tolerance(tolerance),
    ]
}

fn work<R: Real>(p: &Problem) -> Work {
    let (coils, kept, points) = (p.coils as f64, p.kept as f64, p.points as f64);
    let matrices = coils * kept * p.positions as f64;
    let bytes = size_of::<Complex<R>>() as f64 * ((coils + kept) * points + matrices);
    Work { bytes, flops: 8.0 * coils * kept * points }
}

impl Problem {
    /// What it must move and compute in single precision.
    pub fn work(&self) -> Work {
        work::<f32>(self)
    }
}
