//! The rows: every variant of the expansion to coils, the combination and the sum of squares.

use num_complex::Complex;
use rayspin_core::Real;
use rayspin_device::{BackendKind, Cpu};

use super::cpu;
use crate::variant::{Variant, Work};

/// What is computed, for the table of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// c_j(x) ρ(x).
    Expand,
    /// Σ_j conj(c_j(x)) y_j(x).
    Combine,
    /// Σ_j |y_j(x)|², or its root.
    SumOfSquares,
}

/// An operation over `coils` images of `voxels` voxels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Problem {
    /// The operation.
    pub operation: Operation,
    /// Number of coils.
    pub coils: usize,
    /// Voxels of an image.
    pub voxels: usize,
}

type Read<'a, R> = &'a [Complex<R>];
type Write<'a, R> = &'a mut [Complex<R>];

/// One implementation of every operation; no array is empty.
pub struct Implementation<R: Real> {
    /// From (maps, image, coil images).
    pub expand: fn(&Cpu, Read<R>, Read<R>, Write<R>),
    /// From (maps, coil images, image, whether to add to the image).
    pub combine: fn(&Cpu, Read<R>, Read<R>, Write<R>, bool),
    /// From (coil images, image, whether to take the root).
    pub sum_of_squares: fn(&Cpu, Read<R>, &mut [R], bool),
}

/// Every variant, slowest first.
pub fn variants<R: Real>() -> [Variant<Problem, Implementation<R>>; 2] {
    // A product of complex numbers each, and sums over coils, which round like their square root.
    let tolerance = 4.0 * <R as Real>::EPSILON.to_f64();
    [
        Variant::new(
            "coilwise",
            BackendKind::Cpu,
            "one thread, one pass over the image for every coil",
            cpu::coilwise(),
            work::<R>,
        )
        .tolerance(tolerance),
        Variant::new(
            "blocks",
            BackendKind::Cpu,
            "all cores over blocks of voxels that stay in cache while the coils go by",
            cpu::blocks(),
            work::<R>,
        )
        .tolerance(tolerance),
    ]
}

fn work<R: Real>(p: &Problem) -> Work {
    let complex = size_of::<Complex<R>>() as f64;
    let (coils, voxels) = (p.coils as f64, p.voxels as f64);
    let (streams, flops) = match p.operation {
        Operation::Expand => (2.0 * coils + 1.0, 6.0),
        Operation::Combine => (2.0 * coils + 1.0, 8.0),
        Operation::SumOfSquares => (coils + 0.5, 4.0),
    };
    Work { bytes: streams * complex * voxels, flops: flops * coils * voxels }
}
