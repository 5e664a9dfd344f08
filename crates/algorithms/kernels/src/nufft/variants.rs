//! The rows: spreading and interpolation, and the transforms of types 1 and 2 as ladders.

use num_complex::Complex;
use rayspin_core::{Error, Real, Result};
use rayspin_device::{Array, BackendKind};
use rayspin_tune::{Build, Config, HostTransfer, Peak, Row, Runnable, Space, TransferArray};

use super::form::{self, Asked};
use super::ladder::{Data, Fast, Size};
use super::{BOUND, Nufft, Options, cpu, cuda};
use crate::nudft;
use crate::variant::{Variant, Work};

/// The sizes that decide the work of a variant.
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

/// Each sample, place and argument is read once and the grid crosses memory once; every cell of a footprint
/// takes a complex-by-real multiply-add, and every tap of an axis a polynomial.
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
    let fine = cpu::Fine { grid: grid.cpu_mut(), halo: halo.cpu_mut(), add: false };
    engine.gridding.spread(cpu, samples.cpu(), fine, kernel);
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
    engine.gridding.spread_to(samples.cuda(), grid, false)
}

fn interp_on_gpu<R: Real>(
    plan: &Nufft<R>,
    grid: &Array<Complex<R>>,
    samples: &mut Array<Complex<R>>,
) -> Result<()> {
    check(plan, samples, grid)?;
    let engine = plan.on_gpu()?;
    engine.gridding.interp(grid.cuda(), samples.cuda_mut(), cuda::Batch::usual(1))
}

fn row<R: Real, I>(
    name: &'static str,
    backend: BackendKind,
    summary: &'static str,
    implementation: I,
) -> Variant<Problem, I> {
    Variant::new(name, backend, summary, implementation, work).tolerance(tolerance::<R>())
}

/// Every way of spreading, plain first, best last.
pub fn spread_variants<R: Real>() -> [Variant<Problem, Spread<R>>; 3] {
    [
        row::<R, Spread<R>>(
            "scalar",
            BackendKind::Cpu,
            "one footprint cell at a time, on a padded grid a tile",
            |plan, samples, grid| spread_with(plan, samples, grid, cpu::scalar::spread),
        ),
        row::<R, Spread<R>>(
            "simd",
            BackendKind::Cpu,
            "256-bit rows of the footprint, the width a constant",
            |plan, samples, grid| spread_with(plan, samples, grid, cpu::simd::spread),
        ),
        row::<R, Spread<R>>(
            "tiles",
            BackendKind::Cuda,
            "padded tiles in shared memory, lanes sweep one footprint after the other, tiles added in one order",
            |plan, samples, grid| spread_on_gpu(plan, samples, grid),
        )
        .forms(|| cuda::forms::<R>(true)),
    ]
}

/// Every way of interpolating, plain first, best last.
pub fn interp_variants<R: Real>() -> [Variant<Problem, Interp<R>>; 3] {
    [
        row::<R, Interp<R>>(
            "scalar",
            BackendKind::Cpu,
            "one footprint cell at a time, on a padded copy of a tile",
            |plan, grid, samples| interp_with(plan, grid, samples, cpu::scalar::interp),
        ),
        row::<R, Interp<R>>(
            "simd",
            BackendKind::Cpu,
            "256-bit rows of the footprint, the width a constant",
            |plan, grid, samples| interp_with(plan, grid, samples, cpu::simd::interp),
        ),
        row::<R, Interp<R>>(
            "tiles",
            BackendKind::Cuda,
            "padded tiles in shared memory, a thread a point",
            |plan, grid, samples| interp_on_gpu(plan, grid, samples),
        )
        .forms(|| cuda::forms::<R>(false)),
    ]
}

/// Pairs of sample and voxel that the exact rows take on: a second of a few cores, and of a GPU.
const MOST_PAIRS: [f64; 2] = [2e10, 1e12];

/// Samples → images (`to_image`), or images → samples, to a tolerance ε.
pub(super) fn rows(to_image: bool, tolerance: f64) -> Vec<Row<Fast>> {
    let row = |name, backend, summary, run: Runnable<Size, Data>, work| {
        Variant::new(name, backend, summary, run, work)
    };
    let exact = |name, backend, refuses, work| {
        let run = Runnable::new(move |_: &Config, data: &mut Data| exact(to_image, data));
        let run = run.host_transfer(if to_image { |d| together(d, true) } else { |d| together(d, false) });
        // Rounding of exact sums.
        row(name, backend, "the exact sum by its best variant", run, work).tolerance(1e-6).refuses(refuses)
    };
    // What the sweep of all kinds of points allows a plan.
    let fast = |row: Row<Fast>| row.tolerance(BOUND * tolerance);
    let (cpu, gpu) = (BackendKind::Cpu, BackendKind::Cuda);
    let mut rows = vec![
        exact("exact", cpu, |p: &Size| too_long(p, MOST_PAIRS[0]), work_of_sum),
        fast(alone_row(to_image, "one-by-one", cpu)),
        fast(batched_row(to_image, "batched", cpu)),
    ];
    // The CPU computes the exact sum from images to samples.
    if to_image {
        let row = exact("gpu-exact", gpu, |p: &Size| too_long(p, MOST_PAIRS[1]), work_of_halves);
        rows.push(row.on(Peak::TensorF16).unpredictable());
    }
    rows.push(fast(alone_row(to_image, "gpu-one-by-one", gpu).forms(forms(to_image))));
    rows.push(fast(gpu_batched(to_image)));
    rows
}

/// The row that plans run on a GPU, without its tolerance.
pub(super) fn gpu_batched(to_image: bool) -> Row<Fast> {
    let space: fn(&Size) -> Space = if to_image { |p| space(p, true) } else { |p| space(p, false) };
    batched_row(to_image, "gpu-batched", BackendKind::Cuda).forms(forms(to_image)).space(space)
}

fn batched_row(to_image: bool, name: &'static str, backend: BackendKind) -> Row<Fast> {
    let run = Runnable::new(move |config: &Config, data: &mut Data| batched(to_image, config, data));
    let run = run.host_transfer(if to_image { |d| together(d, true) } else { |d| together(d, false) });
    Variant::new(name, backend, "all coils at once", run.set_up(plan), work_of_fft)
}

fn alone_row(to_image: bool, name: &'static str, backend: BackendKind) -> Row<Fast> {
    let run = Runnable::new(move |_: &Config, data: &mut Data| one_by_one(to_image, data));
    let run = run.host_transfer(if to_image { |d| alone(d, true) } else { |d| alone(d, false) });
    Variant::new(name, backend, "one coil after another", run.set_up(plan), work_of_fft)
}

fn forms(to_image: bool) -> fn() -> Vec<Build> {
    if to_image { || cuda::forms::<f32>(true) } else { || cuda::forms::<f32>(false) }
}

fn exact(to_image: bool, data: &mut Data) -> Result<()> {
    data.apart = false;
    match to_image {
        true => nudft::adjoint(&data.trajectory, &data.samples, &mut data.images),
        false => nudft::forward(&data.trajectory, &data.images, &mut data.samples),
    }
}

fn one_by_one(to_image: bool, data: &mut Data) -> Result<()> {
    data.apart = true;
    data.alone.iter_mut().try_for_each(|(image, samples)| match to_image {
        true => data.plan.adjoint(samples, image),
        false => data.plan.forward(image, samples),
    })
}

fn batched(to_image: bool, config: &Config, data: &mut Data) -> Result<()> {
    data.apart = false;
    if config.values().next().is_none() {
        return match to_image {
            true => data.plan.adjoint(&data.samples, &mut data.images),
            false => data.plan.forward(&data.images, &mut data.samples),
        };
    }
    let asked = Some(asked(to_image, config, data)?);
    let engine = data.plan.on_gpu()?;
    match to_image {
        true => engine.adjoint(data.samples.cuda(), data.images.cuda_mut(), asked),
        false => engine.forward(data.images.cuda(), data.samples.cuda_mut(), asked),
    }
}

/// The form of a configuration. The defaults suit an H100; another GPU has its own.
fn asked(to_image: bool, config: &Config, data: &Data) -> Result<Asked> {
    let (plan, items) = (&data.plan, data.alone.len());
    let usual = cuda::usual(to_image, plan.matrix().len(), plan.width(), items);
    let space = form::space(to_image, usual);
    if *config == space.default_config() {
        return plan.on_gpu()?.gridding.usual(to_image, items);
    }
    // Kernels are made for forms of this space.
    let asked = Asked::of(config).filter(|_| space.contains(config));
    asked.ok_or_else(|| Error::value("configuration", format!("one of {space:?}"), config))
}

fn space(p: &Size, to_image: bool) -> Space {
    form::space(to_image, cuda::usual(to_image, p.matrix.len(), p.width(), p.coils))
}

fn together(data: &mut Data, to_image: bool) -> Option<HostTransfer<'_>> {
    let (images, samples) =
        (vec![&mut data.images as &mut dyn TransferArray], vec![&mut data.samples as &mut dyn TransferArray]);
    Some(host_transfer(to_image, images, samples))
}

fn alone(data: &mut Data, to_image: bool) -> Option<HostTransfer<'_>> {
    let coils = data.alone.iter_mut();
    let (images, samples) =
        coils.map(|(i, s)| (i as &mut dyn TransferArray, s as &mut dyn TransferArray)).unzip();
    Some(host_transfer(to_image, images, samples))
}

fn host_transfer<'a>(
    to_image: bool,
    images: Vec<&'a mut dyn TransferArray>,
    samples: Vec<&'a mut dyn TransferArray>,
) -> HostTransfer<'a> {
    match to_image {
        true => HostTransfer { inputs: samples, outputs: images },
        false => HostTransfer { inputs: images, outputs: samples },
    }
}

fn plan(problem: &Size, data: &mut Data) -> Result<()> {
    let device = data.images.device().clone();
    let options = Options::tolerance(problem.tolerance);
    data.plan = Nufft::new(&device, &data.trajectory, &problem.matrix, &options)?;
    Ok(())
}

/// Two multiply-adds a pair, as the CPU's best exact variant does; images, samples and trajectory once.
fn work_of_sum(p: &Size) -> Work {
    Work { bytes: crossing(p), flops: 4.0 * p.pairs() }
}

/// Three products of halves for each of them, as the GPU's best exact variant does.
fn work_of_halves(p: &Size) -> Work {
    Work { flops: 12.0 * p.pairs(), ..work_of_sum(p) }
}

/// The least that any fast transform does: images, samples and trajectory once, 5 n log₂ n operations of an
/// FFT of each image.
fn work_of_fft(p: &Size) -> Work {
    Work { bytes: crossing(p), flops: p.coils as f64 * 5.0 * p.voxels() * p.voxels().max(2.0).log2() }
}

fn crossing(p: &Size) -> f64 {
    let (samples, coils) = (p.samples as f64, p.coils as f64);
    8.0 * coils * (p.voxels() + samples) + 8.0 * p.matrix.len() as f64 * samples
}

fn too_long(p: &Size, most: f64) -> Option<String> {
    let pairs = p.pairs();
    (pairs > most).then(|| {
        format!("{pairs:.1e} pairs of sample and voxel, and the exact sum is for at most {most:.0e}")
    })
}
