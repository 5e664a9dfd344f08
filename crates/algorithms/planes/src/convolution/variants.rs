//! The rows.

use rayspin_core::Result;
use rayspin_device::{Array, BackendKind, Cpu};
use rayspin_tune::variant::{Runnable, Variant, Work};
use rayspin_tune::{Build, Config, HostTransfer, Row, Space, gpu};

use super::{Convolution, Data, Problem, SEGMENT, cpu, cuda};

/// Rounding of a sum of a hundred products in f32: 1.7e-6 at most was measured.
const TOLERANCE: f64 = 3e-6;

/// `between` is room for the image between two passes.
type OnCpu = fn(&cpu::Job<'_>, &Cpu, between: &mut [f32], out: &mut [f32]) -> Result<()>;

pub(super) fn rows() -> Vec<Row<Convolution>> {
    let on_cpu = |name, summary, implementation: OnCpu| {
        let run = Runnable::new(move |_, data: &mut Data| {
            let Data { problem: Problem { rows, columns, .. }, image, across, down, between, out, .. } = data;
            let job = cpu::Job { image: image.cpu(), rows: *rows, columns: *columns, across, down };
            implementation(&job, image.device().cpu_side(), between.cpu_mut(), out.cpu_mut())
        });
        Variant::new(name, BackendKind::Cpu, summary, run.host_transfer(host_transfer), work)
            .tolerance(TOLERANCE)
    };
    vec![
        on_cpu("naive", "all products of taps, one thread", |job, _, _, out| {
            job.naive(out);
            Ok(())
        })
        .refuses(too_long),
        on_cpu("separable", "along rows, then along columns", |job, _, between, out| {
            job.separable(between, out);
            Ok(())
        }),
        on_cpu("simd", "vectors; filtered rows stay in the cache", |job, cpu, _, out| {
            job.vectors(cpu.level(), 0, out)
        }),
        on_cpu("threads", "the same on all cores, in bands", |job, cpu, _, out| job.threads(cpu, out)),
        on_gpu("gpu-naive", "all products of taps", cuda::plain_forms, |c, d| {
            job(d)?.0.naive(c.get("x")?, c.get("y")?)
        })
        .refuses(grid)
        .space(plane),
        gpu_separable(),
        on_gpu("gpu-constant", "taps in constant memory", cuda::constant_forms, |c, d| constant(c, d, false))
            .refuses(too_many_taps)
            .space(plane)
            .reproduces("loop"),
        on_gpu("gpu-unrolled", "loops over taps written out", cuda::constant_forms, |c, d| {
            constant(c, d, true)
        })
        .refuses(too_many_taps)
        .space(plane)
        .reproduces("unrolled"),
        on_gpu("gpu-shared", "both passes from a shared tile", cuda::shared_forms, |c, d| {
            job(d)?.0.shared(c.get("x")?, c.get("y")?, c.get("height")? as usize)
        })
        .refuses(too_large)
        .space(|problem| {
            let fits = |h: &i64| cuda::fits(32, *h as usize, problem.rx, problem.ry);
            let heights: Vec<i64> = [8, 16, 32, 64].into_iter().filter(fits).collect();
            let highest = heights.last().copied().unwrap_or(8);
            Space::none().axis("x", &[32], 32).axis("y", &[4, 8, 16, 32], 8).axis("height", &heights, highest)
        }),
        gpu_sliding(),
    ]
}

/// What [`separable`](super::separable) runs on a GPU where taps are many.
pub(super) fn gpu_separable() -> Row<Convolution> {
    on_gpu("gpu-separable", "two passes, taps in global memory", cuda::plain_forms, |c, d| {
        let (mut job, between) = job(d)?;
        job.separable(c.get("x")?, c.get("y")?, between)
    })
    .refuses(grid)
    .space(plane)
}

/// What [`separable`](super::separable) runs on a GPU where taps are few.
pub(super) fn gpu_sliding() -> Row<Convolution> {
    on_gpu("gpu-sliding", "both passes in registers, four columns a thread", cuda::sliding_forms, |c, d| {
        job(d)?.0.sliding(c.get("threads")?, c.get("each")? as usize)
    })
    .refuses(|problem| radii(problem, cuda::SLIDING_MOST))
    .space(|_| {
        let each = [16, 32, 64, 128, 256, 512];
        Space::none().axis("threads", &[32, 64, 128, 256], 128).axis("each", &each, SEGMENT as i64)
    })
}

fn on_gpu(
    name: &'static str,
    summary: &'static str,
    forms: fn() -> Vec<Build>,
    implementation: fn(&Config, &mut Data) -> Result<()>,
) -> Row<Convolution> {
    let run = Runnable::new(implementation).host_transfer(host_transfer);
    Variant::new(name, BackendKind::Cuda, summary, run, work).tolerance(TOLERANCE).forms(forms)
}

fn host_transfer(data: &mut Data) -> Option<HostTransfer<'_>> {
    Some(HostTransfer { inputs: vec![&mut data.image, &mut data.taps], outputs: vec![&mut data.out] })
}

/// What a GPU runs, and room between two passes.
fn job(data: &mut Data) -> Result<(cuda::Job<'_>, &mut Array<f32>)> {
    let Data { problem: Problem { rows, columns, rx, ry, line }, image, taps, between, out, .. } = data;
    let (rows, columns, rx, ry, line) = (*rows, *columns, *rx, *ry, *line);
    let cuda = gpu(image.device())?;
    Ok((cuda::Job { cuda, image, taps, out, rows, columns, rx, ry, line }, between))
}

fn constant(config: &Config, data: &mut Data, unrolled: bool) -> Result<()> {
    let values = [&data.across[..], &data.down].concat();
    let (mut job, between) = job(data)?;
    job.constant(config.get("x")?, config.get("y")?, unrolled, &values, between)
}

/// Blocks of a thread a pixel.
fn plane(problem: &Problem) -> Space {
    let (x, y, heights): (_, _, &[i64]) = if problem.line { (128, 1, &[1]) } else { (64, 4, &[1, 2, 4, 8]) };
    Space::none()
        .axis("x", &[32, 64, 128, 256], x)
        .axis("y", heights, y)
        .where_(|c| c.find("x").zip(c.find("y")).is_some_and(|(x, y)| x * y <= 1024))
}

/// A pixel read and one written; a multiply-add a tap.
fn work(problem: &Problem) -> Work {
    let n = problem.rows as f64 * problem.columns as f64;
    let taps = 2 * problem.rx + 1 + if problem.line { 0 } else { 2 * problem.ry + 1 };
    Work { bytes: 8.0 * n, flops: 2.0 * n * taps as f64 }
}

fn too_long(p: &Problem) -> Option<String> {
    let products = p.rows as f64 * p.columns as f64 * (2 * p.rx + 1) as f64 * (2 * p.ry + 1) as f64;
    (products > 1e10).then(|| format!("{p}: {products:.0e} products on one thread"))
}

fn grid(problem: &Problem) -> Option<String> {
    (problem.rows > 65535).then(|| format!("{problem}: a grid has at most 65535 blocks along y"))
}

fn radii(problem: &Problem, most: usize) -> Option<String> {
    (problem.rx.max(problem.ry) > most).then(|| format!("{problem}: radii of at most {most}"))
}

fn too_many_taps(problem: &Problem) -> Option<String> {
    radii(problem, cuda::CONSTANT_MOST).or_else(|| grid(problem))
}

fn too_large(problem: &Problem) -> Option<String> {
    let fits = cuda::fits(32, 8, problem.rx, problem.ry);
    (!fits).then(|| format!("{problem}: a tile with its apron exceeds 48 KB")).or_else(|| grid(problem))
}
