//! The rows.

use rayspin_core::Result;
use rayspin_device::{Backend, BackendKind};
use rayspin_tune::variant::{Runnable, Variant, Work};
use rayspin_tune::{Config, HostTransfer, Row, Space, gpu};

use super::{Data, Problem, Sobel, cpu, cuda};

type Implementation = fn(&Config, &mut Data) -> Result<()>;

pub(super) fn rows() -> Vec<Row<Sobel>> {
    let on_cpu = |name, summary, implementation| {
        Variant::new(name, BackendKind::Cpu, summary, run(implementation), work)
    };
    vec![
        on_cpu("scalar", "one thread, each neighbour looked for", |_, d| {
            cpu::scalar(d.image.cpu(), d.problem, d.out.cpu_mut());
            Ok(())
        }),
        on_cpu("simd", "one thread, rows as vectors of 16-bit integers", |_, d| {
            let level = d.image.device().cpu_side().level();
            cpu::simd(level, d.image.cpu(), d.problem, 0, d.out.cpu_mut());
            Ok(())
        }),
        on_cpu("threads", "the same on all cores", |_, d| {
            let cpu = d.image.device().cpu_side();
            cpu::threads(cpu, d.image.cpu(), d.problem, d.out.cpu_mut());
            Ok(())
        }),
        on_gpu(
            "gpu-twelve-reads",
            "twelve reads a pixel, in floating point",
            run(|config, d| cuda::per_pixel("twelve_reads", config, d)),
        )
        .refuses(cuda::per_pixel_refuses)
        .space(per_pixel)
        .forms(cuda::published_forms)
        .reproduces("a"),
        on_gpu(
            "gpu-eight-reads",
            "eight reads, in integers",
            run(|config, d| cuda::per_pixel("eight_reads", config, d)),
        )
        .refuses(cuda::per_pixel_refuses)
        .space(per_pixel)
        .forms(cuda::published_forms)
        .reproduces("b"),
        on_gpu(
            "gpu-texture",
            "through the texture unit, a block a row",
            run(cuda::texture).set_up(|_, d| {
                if let Backend::Cuda(cuda) = d.image.device().backend() {
                    d.texture = Some(cuda.texture(&d.image, cuda::CLAMPED)?);
                }
                Ok(())
            }),
        )
        .refuses(cuda::texture_refuses)
        .space(|_| Space::none().axis("threads", &[64, 128, 256, 512, 1024], 256))
        .forms(cuda::published_forms)
        .reproduces("c"),
        on_gpu(
            "gpu-shared",
            "a shared tile with its apron, four pixels a thread by a sliding window, several rows",
            run(cuda::shared_tile),
        )
        .refuses(cuda::per_pixel_refuses)
        .space(|_| {
            Space::none()
                .axis("x", &[8, 16, 32, 64], 32)
                .axis("y", &[1, 2, 4, 8, 16], 4)
                .axis("rows", &[1, 2, 4, 8], 4)
                .where_(|c| between(c, &["x", "y"], 32, 512) && between(c, &["x", "y", "rows"], 32, 4096))
        })
        .forms(cuda::published_forms)
        .reproduces("d"),
        on_gpu(
            "gpu-packed",
            "strips that slide down in registers, 16 bytes a load, two pixels an instruction",
            run(|config, d| sliding(config, d, false)),
        )
        .space(strips)
        .forms(|| cuda::sliding_forms(false)),
        gpu_halves(),
    ]
}

/// What [`sobel`](super::sobel) runs on a GPU.
pub(super) fn gpu_halves() -> Row<Sobel> {
    on_gpu(
        "gpu-halves",
        "the same in half precision, which is exact here and takes half the instructions",
        run(|config, d| sliding(config, d, true)),
    )
    .space(strips)
    .forms(|| cuda::sliding_forms(true))
}

fn on_gpu(name: &'static str, summary: &'static str, run: Runnable<Problem, Data>) -> Row<Sobel> {
    Variant::new(name, BackendKind::Cuda, summary, run, work)
}

fn run(implementation: Implementation) -> Runnable<Problem, Data> {
    Runnable::new(implementation).host_transfer(host_transfer)
}

fn host_transfer(data: &mut Data) -> Option<HostTransfer<'_>> {
    Some(HostTransfer { inputs: vec![&mut data.image], outputs: vec![&mut data.out] })
}

/// Strips sliding down with the forms of a configuration.
fn sliding(config: &Config, d: &mut Data, halves: bool) -> Result<()> {
    let Problem { rows, columns, scale } = d.problem;
    let form = cuda::Form::from_config(config, scale, halves)?;
    cuda::sliding(gpu(d.image.device())?, form, &d.image, [rows, columns], scale, &mut d.out)
}

fn per_pixel(_: &Problem) -> Space {
    Space::none()
        .axis("x", &[8, 16, 32, 64, 128, 256], 32)
        .axis("y", &[1, 2, 4, 8, 16, 32], 8)
        .where_(|c| between(c, &["x", "y"], 32, 1024))
}

fn strips(problem: &Problem) -> Space {
    let aligns = cuda::aligns(problem.columns);
    Space::none()
        .axis("align", &aligns, aligns.last().copied().unwrap_or(1))
        .axis("threads", &[32, 64, 128, 256], 64)
        .axis("rows", &[3, 6, 9, 12, 16, 18, 24, 32, 48, 64], 6)
}

/// Whether the product of some parameters lies within bounds.
fn between(config: &Config, names: &[&str], least: i64, most: i64) -> bool {
    let product = names.iter().try_fold(1, |n, name| Some(n * config.find(name)?));
    product.is_some_and(|n| (least..=most).contains(&n))
}

/// A byte read and one written; eight additions and two doublings a gradient, absolute values and their sum.
fn work(problem: &Problem) -> Work {
    let n = problem.rows as f64 * problem.columns as f64;
    Work { bytes: 2.0 * n, flops: 16.0 * n }
}
