//! The rows.

use rayspin_core::Result;
use rayspin_device::BackendKind::{Cpu, Cuda};
use rayspin_tune::variant::{Runnable, Variant, Work};
use rayspin_tune::{Config, HostTransfer, Row, Space, gpu};

use super::{Data, MatrixAdd, Problem, cpu, cuda};

type Implementation = fn(&Config, &mut Data) -> Result<()>;

pub(super) fn rows() -> Vec<Row<MatrixAdd>> {
    vec![
        on_cpu("scalar", "one thread, baseline instructions", |_, d| {
            cpu::scalar(d.a.cpu(), d.b.cpu(), d.c.cpu_mut());
            Ok(())
        }),
        on_cpu("simd", "one thread, the widest vectors", |_, d| {
            let cpu = d.a.device().cpu_side().level();
            cpu::simd(cpu, d.a.cpu(), d.b.cpu(), d.c.cpu_mut());
            Ok(())
        }),
        on_cpu("threads", "the same on all cores", |_, d| {
            cpu::threads(d.a.device().cpu_side(), d.a.cpu(), d.b.cpu(), d.c.cpu_mut());
            Ok(())
        }),
        on_gpu("gpu-one-block", "one block, a thread an element", cuda::one_block).refuses(one_block_only),
        on_gpu("gpu-tiled", "a grid of 2-D blocks that checks its bounds", cuda::tiled)
            .refuses(cuda::tiled_refuses)
            .space(tiles),
        gpu_wide(),
    ]
}

/// What [`add`](super::add) runs on a GPU.
pub(super) fn gpu_wide() -> Row<MatrixAdd> {
    on_gpu("gpu-wide", "16 bytes a thread and load, flat", |config, d| {
        let device = d.a.device().clone();
        cuda::wide(gpu(&device)?, config.get("threads")?, &d.a, &d.b, &mut d.c)
    })
    .space(|_| Space::none().axis("threads", &[64, 128, 256, 512, 1024], 256))
}

fn on_cpu(name: &'static str, summary: &'static str, implementation: Implementation) -> Row<MatrixAdd> {
    Variant::new(name, Cpu, summary, Runnable::new(implementation).host_transfer(host_transfer), work)
}

fn on_gpu(name: &'static str, summary: &'static str, implementation: Implementation) -> Row<MatrixAdd> {
    Variant::new(name, Cuda, summary, Runnable::new(implementation).host_transfer(host_transfer), work)
        .forms(cuda::forms)
}

fn host_transfer(data: &mut Data) -> Option<HostTransfer<'_>> {
    Some(HostTransfer { inputs: vec![&mut data.a, &mut data.b], outputs: vec![&mut data.c] })
}

/// Two reads and a write of four bytes, one addition.
fn work(problem: &Problem) -> Work {
    let n = problem.rows as f64 * problem.columns as f64;
    Work { bytes: 12.0 * n, flops: n }
}

fn one_block_only(problem: &Problem) -> Option<String> {
    let n = problem.rows * problem.columns;
    (n > 1024).then(|| format!("{n} elements, and a block has at most 1024 threads"))
}

fn tiles(_: &Problem) -> Space {
    Space::none()
        .axis("x", &[8, 16, 32, 64, 128, 256], 16)
        .axis("y", &[1, 2, 4, 8, 16, 32], 16)
        .where_(|c| matches!(c.find("x").zip(c.find("y")), Some((x, y)) if (32..=1024).contains(&(x * y))))
}
