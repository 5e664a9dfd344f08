//! The variant tables of spreading and interpolation.

use num_complex::Complex;
use rayspin_core::{Real, Result};
use rayspin_device::{Array, BackendKind};

use super::{Nufft, cpu};
use crate::variant::{Variant, Work, runs_all};

/// What a variant runs: the sizes that decide its work.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Problem {
    /// Number of points.
    pub points: usize,
    /// Number of dimensions.
    pub dims: usize,
    /// Width of the kernel in fine-grid cells.
    pub width: usize,
    /// Fine-grid cells.
    pub cells: usize,
    /// Bytes of a real number.
    pub real_bytes: usize,
}

impl Problem {
    /// The problem that a plan stands for.
    pub fn of<R: Real>(plan: &Nufft<R>) -> Self {
        Self {
            points: plan.samples(),
            dims: plan.matrix().len(),
            width: plan.width(),
            cells: plan.fine.iter().product(),
            real_bytes: size_of::<R>(),
        }
    }
}

/// Spreads `[sample]` to the fine grid.
pub type Spread<R> = fn(&Nufft<R>, &Array<Complex<R>>, &mut Array<Complex<R>>) -> Result<()>;
/// Interpolates the fine grid at the points, to `[sample]`.
pub type Interp<R> = fn(&Nufft<R>, &Array<Complex<R>>, &mut Array<Complex<R>>) -> Result<()>;

/// Each sample, place and argument is read once and the grid crosses memory once; every cell of a footprint takes a
/// complex-by-real multiply-add, and every tap of an axis a polynomial.
pub(super) fn work(problem: &Problem) -> Work {
    let p = problem;
    let a_point = 2 * p.real_bytes + p.dims * p.real_bytes + 8;
    let cells = 4 * p.width.pow(p.dims as u32);
    let polynomials = 2 * p.dims * p.width * super::kernel::terms(p.width);
    Work {
        bytes: (p.points * a_point + 2 * p.cells * p.real_bytes) as f64,
        flops: p.points as f64 * (cells + polynomials) as f64,
    }
}

/// Rounding of sums of a footprint's products, which the plain variants are the oracle of.
fn tolerance<R: Real>() -> f64 {
    10.0 * <R as Real>::EPSILON.to_f64()
}

fn check<R: Real>(plan: &Nufft<R>, samples: &Array<Complex<R>>, grid: &Array<Complex<R>>) -> Result<()> {
    rayspin_core::expect_shape("samples", &[plan.samples], samples.shape())?;
    rayspin_core::expect_shape("fine grid", plan.fine_shape(), grid.shape())
}

fn spread_with<R: Real>(
    plan: &Nufft<R>,
    samples: &Array<Complex<R>>,
    grid: &mut Array<Complex<R>>,
    kernel: cpu::SpreadTile<R>,
) -> Result<()> {
    check(plan, samples, grid)?;
    let engine = plan.on_cpu()?;
    let mut halo = Array::zeros(&plan.device, &[engine.gridding.halo_len()])?;
    let cpu = plan.device.cpu_side();
    engine.gridding.spread(cpu, samples.cpu(), grid.cpu_mut(), halo.cpu_mut(), kernel);
    Ok(())
}

fn interp_with<R: Real>(
    plan: &Nufft<R>,
    grid: &Array<Complex<R>>,
    samples: &mut Array<Complex<R>>,
    kernel: cpu::InterpTile<R>,
) -> Result<()> {
    check(plan, samples, grid)?;
    let engine = plan.on_cpu()?;
    engine.gridding.interp(plan.device.cpu_side(), grid.cpu(), samples.cpu_mut(), kernel);
    Ok(())
}

fn spread_on_gpu<R: Real>(
    plan: &Nufft<R>,
    samples: &Array<Complex<R>>,
    grid: &mut Array<Complex<R>>,
) -> Result<()> {
    check(plan, samples, grid)?;
    let engine = plan.on_gpu()?;
    engine.spread_to(samples.cuda(), grid, false)
}

fn interp_on_gpu<R: Real>(
    plan: &Nufft<R>,
    grid: &Array<Complex<R>>,
    samples: &mut Array<Complex<R>>,
) -> Result<()> {
    check(plan, samples, grid)?;
    let engine = plan.on_gpu()?;
    engine.interp_from(grid, samples)
}

/// Every way of spreading, plain first, best last.
pub fn spread_variants<R: Real>() -> [Variant<Problem, Spread<R>>; 3] {
    [
        Variant {
            name: "scalar",
            backend: BackendKind::Cpu,
            summary: "one footprint cell at a time, on a padded grid a tile",
            launch: |plan, samples, grid| spread_with(plan, samples, grid, cpu::scalar::spread),
            refuses: runs_all,
            work,
            tolerance: tolerance::<R>(),
            reproduces: None,
        },
        Variant {
            name: "simd",
            backend: BackendKind::Cpu,
            summary: "256-bit rows of the footprint, the width a constant",
            launch: |plan, samples, grid| spread_with(plan, samples, grid, cpu::simd::spread),
            refuses: runs_all,
            work,
            tolerance: tolerance::<R>(),
            reproduces: None,
        },
        Variant {
            name: "tiles",
            backend: BackendKind::Cuda,
            summary: "padded tiles in shared memory, lanes sweep one footprint after the other, tiles added in one order",
            launch: |plan, samples, grid| spread_on_gpu(plan, samples, grid),
            refuses: runs_all,
            work,
            tolerance: tolerance::<R>(),
            reproduces: None,
        },
    ]
}

/// Every way of interpolating, plain first, best last.
pub fn interp_variants<R: Real>() -> [Variant<Problem, Interp<R>>; 3] {
    [
        Variant {
            name: "scalar",
            backend: BackendKind::Cpu,
            summary: "one footprint cell at a time, on a padded copy of a tile",
            launch: |plan, grid, samples| interp_with(plan, grid, samples, cpu::scalar::interp),
            refuses: runs_all,
            work,
            tolerance: tolerance::<R>(),
            reproduces: None,
        },
        Variant {
            name: "simd",
            backend: BackendKind::Cpu,
            summary: "256-bit rows of the footprint, the width a constant",
            launch: |plan, grid, samples| interp_with(plan, grid, samples, cpu::simd::interp),
            refuses: runs_all,
            work,
            tolerance: tolerance::<R>(),
            reproduces: None,
        },
        Variant {
            name: "tiles",
            backend: BackendKind::Cuda,
            summary: "padded tiles in shared memory, a thread a point",
            launch: |plan, grid, samples| interp_on_gpu(plan, grid, samples),
            refuses: runs_all,
            work,
            tolerance: tolerance::<R>(),
            reproduces: None,
        },
    ]
}
