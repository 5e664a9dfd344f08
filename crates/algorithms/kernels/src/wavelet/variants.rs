//! The rows: every variant of the transform.

use num_complex::Complex;
use rayspin_core::Real;
use rayspin_device::{BackendKind, Cpu};

use super::{Level, Plan, cpu};
use crate::variant::{Variant, Work};

/// A plan and a direction, for the table of work.
pub type Problem = Plan;

/// (plan, shift, input, output, memory to work in); images and coefficients have the plan's shape.
pub type Apply<R> = fn(&Cpu, &Plan, &[usize], &[Complex<R>], &mut [Complex<R>], &mut Vec<Complex<R>>);

/// One implementation of both directions.
pub struct Implementation<R: Real> {
    /// Image to coefficients.
    pub forward: Apply<R>,
    /// Coefficients to image.
    pub inverse: Apply<R>,
}

/// Every variant, slowest first.
pub fn variants<R: Real>() -> [Variant<Problem, Implementation<R>>; 2] {
    // Sums of four products, a level and an axis after the other: errors of rounding add like squares.
    let tolerance = 8.0 * <R as Real>::EPSILON.to_f64();
    [
        Variant::new(
            "plain",
            BackendKind::Cpu,
            "one thread, line by line, tap by tap",
            cpu::plain(),
            work::<R>,
        )
        .tolerance(tolerance),
        Variant::new(
            "rows",
            BackendKind::Cpu,
            "all cores over rows of the result, each a sum of whole rows; even and odd elements apart along x",
            cpu::rows(),
            work::<R>,
        )
        .tolerance(tolerance),
    ]
}

fn work<R: Real>(plan: &Problem) -> Work {
    let taps = plan.family.low().len() as f64;
    let passes = |level: &Level| {
        let axes = level.split.iter().filter(|&&s| s).count();
        (axes * level.size.iter().product::<usize>()) as f64
    };
    let moved: f64 = plan.levels.iter().map(passes).sum();
    let once = plan.shape.iter().product::<usize>() as f64;
    let complex = size_of::<Complex<R>>() as f64;
    Work { bytes: 2.0 * complex * moved.max(once), flops: 2.0 * (2.0 * taps - 1.0) * moved }
}
