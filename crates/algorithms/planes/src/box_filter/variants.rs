//! The rows.

use rayspin_core::Result;
use rayspin_device::BackendKind;
use rayspin_tune::variant::{Runnable, Variant, Work};
use rayspin_tune::{Build, Config, HostTransfer, Row, Space, TransferArray};

use super::{BoxFilter, Data, Images, Problem, best_on_cpu, bytes, cuda, near, segment};

type Implementation = fn(&Config, &mut Data) -> Result<()>;

/// The same of bytes and of f32.
macro_rules! of_either {
    ($data:ident, $set:ident => $run:expr) => {
        match &mut $data.0 {
            Images::Bytes($set) => $run,
            Images::Floats($set) => $run,
        }
    };
}

/// Rows that a thread slides down.
const EACH: [i64; 6] = [32, 64, 128, 256, 512, 1024];

pub(super) fn rows() -> Vec<Row<BoxFilter>> {
    // Rounding of sums in double precision: 7.8e-8 at most was measured.
    let on_cpu = |name, summary, implementation: Implementation| {
        let run = Runnable::new(implementation).host_transfer(host_transfer);
        Variant::new(name, BackendKind::Cpu, summary, run, work).tolerance(1e-6)
    };
    let best: Implementation = |_, d| of_either!(d, set => set.on_cpu(best_on_cpu));
    vec![
        on_cpu("naive", "all pixels of each window, one thread", |_, d| {
            of_either!(d, set => set.on_cpu(|job, _, out| {
                job.naive(out);
                Ok(())
            }))
        })
        .refuses(too_long),
        on_cpu(
            "separable",
            "sums along y, then along x",
            |_, d| of_either!(d, set => set.on_cpu(|job, _, out| job.separable(out))),
        ),
        on_cpu(
            "running",
            "what enters a sum less what leaves it",
            |_, d| of_either!(d, set => set.on_cpu(|job, _, out| job.running(out))),
        ),
        on_cpu(
            "simd",
            "running sums along y, doubling windows along x, as vectors",
            |_, d| of_either!(d, set => set.on_cpu(|job, cpu, out| job.vectors(cpu.level(), 0, out))),
        ),
        on_cpu(
            "threads",
            "the same on all cores, in bands",
            |_, d| of_either!(d, set => set.on_cpu(|job, cpu, out| job.threads(cpu, out))),
        ),
        on_cpu("bytes", "bytes in 16 bits along y; along x scans", best).refuses(bytes::refuses),
        on_cpu("near", "f32 of 3 or 5 rows and columns, added as they are", best).refuses(near::refuses),
        on_gpu(
            "gpu-naive",
            "all pixels of each window",
            cuda::forms,
            |c, d| of_either!(d, set => set.on_gpu()?.0.naive(c.get("x")?, c.get("y")?)),
        )
        .refuses(grid)
        .space(plane),
        on_gpu("gpu-separable", "sums along y, then along x", cuda::forms, |c, d| {
            of_either!(d, set => {
                let (mut job, sums) = set.on_gpu()?;
                job.separable(c.get("x")?, c.get("y")?, sums)
            })
        })
        .refuses(grid)
        .space(plane),
        on_gpu("gpu-running", "running sums, a thread a column, then a thread a row", cuda::forms, |c, d| {
            of_either!(d, set => {
                let (mut job, sums) = set.on_gpu()?;
                job.running(c.get("threads")?, sums)
            })
        })
        .space(|_| Space::none().axis("threads", &[32, 64, 128, 256], 64)),
        gpu_scanned(),
        gpu_fused(),
    ]
}

/// What [`box_mean`](super::box_mean) runs on a GPU where the radius is too large for [`gpu_fused`].
pub(super) fn gpu_scanned() -> Row<BoxFilter> {
    on_gpu("gpu-scanned", "running sums in segments; along rows scans of a block", cuda::forms, |c, d| {
        of_either!(d, set => {
            let (mut job, sums) = set.on_gpu()?;
            job.scanned(c.get("threads")?, c.get("each")? as usize, sums)
        })
    })
    .space(|problem| {
        let threads = [64, 128, 256, 512, 1024];
        Space::none().axis("threads", &threads, 256).axis("each", &EACH, segment(problem.radius))
    })
}

/// What [`box_mean`](super::box_mean) runs on a GPU.
pub(super) fn gpu_fused() -> Row<BoxFilter> {
    on_gpu("gpu-fused", "both at once in strips of a warp", cuda::fused_forms, |c, d| {
        let (v, threads, each) = (c.get("v")?, c.get("threads")?, c.get("each")? as usize);
        of_either!(d, set => set.on_gpu()?.0.fused(v, threads, each))
    })
    .refuses(|problem| cuda::fused_refuses(problem.radius, cuda::WIDEST))
    .space(|problem| {
        let fits = |v: &i64| cuda::fused_refuses(problem.radius, *v as u32).is_none();
        let widths: Vec<i64> = [4, 8].into_iter().filter(fits).collect();
        let space = Space::none().axis("v", &widths, 8).axis("threads", &[32, 64, 128, 256], 128);
        space.axis("each", &EACH, segment(problem.radius))
    })
}

fn on_gpu(
    name: &'static str,
    summary: &'static str,
    forms: fn() -> Vec<Build>,
    implementation: Implementation,
) -> Row<BoxFilter> {
    let run = Runnable::new(implementation).host_transfer(host_transfer);
    // Rounding of sums in single precision: 8.2e-7 at most was measured.
    Variant::new(name, BackendKind::Cuda, summary, run, work).tolerance(1e-5).forms(forms)
}

fn host_transfer(data: &mut Data) -> Option<HostTransfer<'_>> {
    let (image, out): (&mut dyn TransferArray, &mut dyn TransferArray) =
        of_either!(data, set => (&mut set.image, &mut set.out));
    Some(HostTransfer { inputs: vec![image], outputs: vec![out] })
}

/// Blocks of a thread a pixel.
fn plane(_: &Problem) -> Space {
    Space::none()
        .axis("x", &[32, 64, 128, 256], 32)
        .axis("y", &[1, 2, 4, 8], 8)
        .where_(|c| c.find("x").zip(c.find("y")).is_some_and(|(x, y)| x * y <= 1024))
}

/// A pixel read and one written; what enters and what leaves along two axes, and a product.
fn work(problem: &Problem) -> Work {
    let n = problem.rows as f64 * problem.columns as f64;
    Work { bytes: if problem.bytes { 2.0 } else { 8.0 } * n, flops: 5.0 * n }
}

fn too_long(problem: &Problem) -> Option<String> {
    let reads = problem.rows as f64 * problem.columns as f64 * (2.0 * problem.radius as f64 + 1.0).powi(2);
    (reads > 1e10).then(|| format!("{problem}: {reads:.0e} reads on one thread"))
}

fn grid(problem: &Problem) -> Option<String> {
    (problem.rows > 65535).then(|| format!("{problem}: a grid has at most 65535 blocks along y"))
}
