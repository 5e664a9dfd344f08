//! The rows.

use rayspin_core::{Error, Result};
use rayspin_device::BackendKind;
use rayspin_device::Cpu;
use rayspin_device::cpu::simd::Level;
use rayspin_tune::variant::{Variant, runs_all};
use rayspin_tune::{Config, Published, Space, gpu};

use super::{Data, Launch, Problem, cpu, cuda, work};

/// 4096 × 4096 × 4096 of the lectures; of the tiled kernel they give the speed-up over the naive one, 2.3.
pub(super) const PUBLISHED: &[Published] = &Published::on_processors([7.84, 10.1, 1.12]);

/// What a sum of products in f32 may be off: rounding of a few thousand sums, far less than one product.
const TOLERANCE: f64 = 1e-6;

pub(super) fn variants() -> Vec<Variant<Problem, Launch>> {
    let row = |name, backend, summary, launch: Launch, refuses, reproduces| Variant {
        name,
        backend,
        summary,
        launch,
        refuses,
        work,
        tolerance: TOLERANCE,
        reproduces,
    };
    let on_cpu = |name, summary, launch: Launch, refuses: fn(&Problem) -> Option<String>| {
        row(name, BackendKind::Cpu, summary, launch, refuses, None)
    };
    let on_gpu =
        |name, summary, launch: Launch| row(name, BackendKind::Cuda, summary, launch, runs_all, None);
    vec![
        on_cpu(
            "naive",
            "three loops as the formula has them, one thread",
            |_, d| {
                cpu::naive(d.a.cpu(), d.b.cpu(), d.c.cpu_mut(), d.problem);
                Ok(())
            },
            minutes,
        ),
        on_cpu(
            "interchanged",
            "the inner loop along rows of B and C",
            |_, d| {
                cpu::interchanged(d.a.cpu(), d.b.cpu(), d.c.cpu_mut(), d.problem);
                Ok(())
            },
            runs_all,
        ),
        on_cpu(
            "tiled",
            "a tile of B that stays in cache while all rows pass",
            |_, d| {
                cpu::tiled(d.a.cpu(), d.b.cpu(), d.c.cpu_mut(), d.problem);
                Ok(())
            },
            runs_all,
        ),
        on_cpu(
            "simd",
            "packed panels, sums in the widest vectors' registers, one thread",
            |config, d| {
                let level = d.a.device().cpu_side().level();
                packed(config, d, |_| (level, None))
            },
            runs_all,
        ),
        row(
            "threads",
            BackendKind::Cpu,
            "the same on all cores",
            |config, d| packed(config, d, |cpu| (cpu.level(), Some(cpu))),
            runs_all,
            Some("C on a CPU"),
        ),
        on_gpu("gpu-naive", "a thread an output", cuda::naive),
        row(
            "gpu-tiled",
            BackendKind::Cuda,
            "tiles of A and B in shared memory",
            cuda::tiled,
            runs_all,
            Some("CUDA on a GPU"),
        ),
        on_gpu("gpu-registers", "several outputs a thread, from registers", cuda::registers),
        on_gpu("gpu-wide", "16-byte loads, tiles of warps, the next tile under way", |config, d| {
            let device = d.a.device().clone();
            cuda::wide(gpu(&device)?, config, [&d.a, &d.b], &mut d.c, &d.problem)
        }),
        on_gpu("gpu-async", "several tiles under way that pass no register", |config, d| {
            let device = d.a.device().clone();
            cuda::stages(gpu(&device)?, config, [&d.a, &d.b], &mut d.c, &d.problem)
        }),
    ]
}

pub(super) fn space(problem: &Problem, variant: &str) -> Space {
    match variant {
        "simd" | "threads" => Space::none().axis("inner", &[64, 128, 256, 384, 512], 256).axis(
            "rows",
            &[24, 48, 96, 192, 384],
            96,
        ),
        "gpu-naive" => {
            Space::none().axis("x", &[16, 32, 64, 128], 32).axis("y", &[1, 2, 4, 8, 16], 8).where_(
                |c| matches!(c.find("x").zip(c.find("y")), Some((x, y)) if (64..=1024).contains(&(x * y))),
            )
        }
        "gpu-tiled" => Space::none().axis("tile", if problem.m < 256 { &[8, 16] } else { &[8, 16, 32] }, 16),
        "gpu-registers" => cuda::registers_space(problem),
        "gpu-wide" => cuda::wide_space(problem),
        "gpu-async" => cuda::stages_space(problem),
        _ => Space::none(),
    }
}

fn packed<'a>(
    config: &Config,
    data: &'a mut Data,
    on: impl FnOnce(&'a Cpu) -> (Level, Option<&'a Cpu>),
) -> Result<()> {
    let cut = cpu::Cut::of(config)?;
    let Data { a, b, c, room, problem, .. } = data;
    let room = room
        .as_mut()
        .ok_or_else(|| Error::value("device of a matrix product", "a CPU", a.device().describe()))?;
    cpu::packed(on(a.device().cpu_side()), cut, room, a.cpu(), b.cpu(), c.cpu_mut(), *problem);
    Ok(())
}

/// Columns of B are read with a stride: beyond the caches a cache line for every product.
fn minutes(problem: &Problem) -> Option<String> {
    let products = problem.m as f64 * problem.n as f64 * problem.k as f64;
    (products > 1e10).then(|| format!("{problem}: {products:.0e} products, which would take minutes"))
}
