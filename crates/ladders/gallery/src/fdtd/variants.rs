//! The rows.

use rayspin_core::Result;
use rayspin_device::BackendKind::{self, Cpu, Cuda};
use rayspin_tune::variant::{Runnable, Variant, Work};
use rayspin_tune::{Config, HostTransfer, Row, Space, gpu};

use super::{Data, Fdtd, Problem, cpu, cuda};

/// Rounding of f32 over a few tens of steps, components of at most 1 at the start.
const TOLERANCE: f64 = 1e-5;

pub(super) fn rows() -> Vec<Row<Fdtd>> {
    let threads = |_: &Problem| Space::none().axis("threads", &[64, 128, 256, 512], 256);
    vec![
        row("scalar", Cpu, "all of H, then all of E, one thread", two_passes, |_, d| {
            cpu::scalar(&d.problem, d.start.cpu(), d.out.cpu_mut());
            Ok(())
        }),
        row("simd", Cpu, "vectors along x, E of a row right after its H, one thread", one_pass, |_, d| {
            let level = d.start.device().cpu_side().level();
            cpu::rows(level, None, &d.problem, d.start.cpu(), d.out.cpu_mut());
            Ok(())
        }),
        row("threads", Cpu, "the same, a slab for each core", one_pass, |_, d| {
            let device = d.start.device().clone();
            let cpu = device.cpu_side();
            cpu::rows(cpu.level(), Some(cpu), &d.problem, d.start.cpu(), d.out.cpu_mut());
            Ok(())
        }),
        row(
            "gpu-strided",
            Cuda,
            "a pass for H and one for E, a warp along the slowest axis",
            two_passes,
            |c, d| passes(c, d, true),
        )
        .space(threads)
        .forms(|| cuda::passes_forms(true)),
        row("gpu-passes", Cuda, "a warp along x", two_passes, |config, d| passes(config, d, false))
            .space(threads)
            .forms(|| cuda::passes_forms(false)),
        row(
            "gpu-fused",
            Cuda,
            "H and E in one pass, H behind a cell computed again",
            one_pass,
            |config, d| {
                let device = d.start.device().clone();
                let fields = cuda::Fields { start: &d.start, room: &mut d.room, out: &mut d.out };
                cuda::fused(gpu(&device)?, config, &d.problem, fields)
            },
        )
        .refuses(cuda::refuses)
        .space(|_| {
            Space::none().axis("x", &[32, 64, 128], 32).axis("y", &[1, 2, 4, 8, 16], 8).where_(|c| {
                let value = |name| c.find(name).unwrap_or(1);
                (64..=512).contains(&(value("x") * value("y")))
            })
        })
        .forms(cuda::fused_forms),
        gpu_blocked(),
    ]
}

/// What [`advance`](super::advance) runs on a GPU.
pub(super) fn gpu_blocked() -> Row<Fdtd> {
    row(
        "gpu-blocked",
        Cuda,
        "several steps a pass, in registers and shared memory",
        few_passes,
        |config, d| {
            let device = d.start.device().clone();
            let fields = cuda::Fields { start: &d.start, room: &mut d.room, out: &mut d.out };
            cuda::blocked(gpu(&device)?, config, &d.problem, fields)
        },
    )
    .refuses(cuda::refuses)
    .space(tiles)
    .forms(cuda::blocked_forms)
}

fn row(
    name: &'static str,
    backend: BackendKind,
    summary: &'static str,
    work: fn(&Problem) -> Work,
    implementation: fn(&Config, &mut Data) -> Result<()>,
) -> Row<Fdtd> {
    Variant::new(name, backend, summary, Runnable::new(implementation).host_transfer(host_transfer), work)
        .tolerance(TOLERANCE)
}

fn host_transfer(data: &mut Data) -> Option<HostTransfer<'_>> {
    Some(HostTransfer { inputs: vec![&mut data.start], outputs: vec![&mut data.out] })
}

fn passes(config: &Config, d: &mut Data, strided: bool) -> Result<()> {
    let device = d.start.device().clone();
    cuda::passes(gpu(&device)?, config, &d.problem, strided, &d.start, &mut d.out)
}

/// Threads of a tile, steps of a pass, planes that a block writes. In two dimensions a thread has few
/// registers, and a large tile wastes less.
fn tiles(p: &Problem) -> Space {
    let (ty, steps) = if p.flat() { (32, 4) } else { (16, 2) };
    let planes: &[i64] = if p.flat() { &[1] } else { &[16, 32, 64, 128] };
    Space::none()
        .axis("tx", &[32, 64], 32)
        .axis("ty", &[8, 16, 32], ty)
        .axis("steps", &[1, 2, 3, 4], steps)
        .axis("planes", planes, if p.flat() { 1 } else { 64 })
        .where_(|c| {
            let [tx, ty, steps, planes] =
                ["tx", "ty", "steps", "planes"].map(|name| c.find(name).unwrap_or(1));
            // In three dimensions a stage keeps 8 numbers of a thread.
            let most = if planes > 1 && steps > 2 { 512 } else { 1024 };
            ty > 2 * steps && tx * ty <= most
        })
}

/// `bytes` a component and step; four differences and sums and a product for each.
fn work(p: &Problem, bytes: f64) -> Work {
    let numbers = p.fields() as f64 * p.cells() as f64 * p.steps as f64;
    Work { bytes: bytes * numbers, flops: 5.0 * numbers }
}

/// Each half of the components is read twice and written once a step.
fn two_passes(p: &Problem) -> Work {
    work(p, 12.0)
}

/// All components are read and written once a step.
fn one_pass(p: &Problem) -> Work {
    work(p, 8.0)
}

/// The same once every few steps, as many as the space has.
fn few_passes(p: &Problem) -> Work {
    work(p, 8.0 / f64::from(cuda::MOST_STEPS))
}
