//! The rows.

use rayspin_core::Result;
use rayspin_device::BackendKind::{self, Cpu, Cuda};
use rayspin_tune::variant::{Runnable, Variant, Work};
use rayspin_tune::{Config, HostTransfer, Row};

use super::{BINS, Data, Problem, Tpacf, cpu, cuda};

pub(super) fn rows() -> Vec<Row<Tpacf>> {
    vec![
        row("scalar", Cpu, "a pair at a time, binary search for its bin", |_, d| {
            cpu::search(d.points.cpu(), d.counts.cpu_mut(), &d.problem);
            Ok(())
        })
        .refuses(minutes),
        row("table", Cpu, "the bin from the bits of a float", |_, d| {
            cpu::table(d.points.cpu(), d.counts.cpu_mut(), &d.problem);
            Ok(())
        })
        .refuses(minutes),
        row("simd", Cpu, "64 pairs at a time, counted below each edge, one thread", |_, d| {
            let level = d.points.device().cpu_side().level();
            cpu::simd(level, d.points.cpu(), d.counts.cpu_mut(), &d.problem);
            Ok(())
        }),
        row("threads", Cpu, "the same on all cores", |_, d| {
            let device = d.points.device().clone();
            cpu::threads(device.cpu_side(), d.points.cpu(), d.counts.cpu_mut(), &d.problem);
            Ok(())
        }),
        on_gpu("gpu-naive", "a thread a point, counts in global memory", |c, d| {
            cuda::by_edges("naive", false, c, d)
        }),
        on_gpu("gpu-shared", "points and the counts of a block in shared memory", |c, d| {
            cuda::by_edges("shared", false, c, d)
        }),
        on_gpu("gpu-columns", "counts of each thread, no atomics", |c, d| {
            cuda::by_edges("columns", true, c, d)
        }),
        on_gpu("gpu-logarithm", "the bin from a logarithm and one comparison", |c, d| {
            cuda::by_edges("logarithm", true, c, d)
        }),
        gpu_bits(),
    ]
}

/// What [`pair_counts`](super::pair_counts) runs on a GPU.
pub(super) fn gpu_bits() -> Row<Tpacf> {
    row("gpu-bits", Cuda, "the bin from the bits of a float, several points a thread", cuda::bits_of)
        .space(cuda::bits_space)
        .forms(cuda::bits_forms)
}

fn on_gpu(
    name: &'static str,
    summary: &'static str,
    implementation: fn(&Config, &mut Data) -> Result<()>,
) -> Row<Tpacf> {
    row(name, Cuda, summary, implementation).space(cuda::space).forms(cuda::forms)
}

fn row(
    name: &'static str,
    backend: BackendKind,
    summary: &'static str,
    implementation: fn(&Config, &mut Data) -> Result<()>,
) -> Row<Tpacf> {
    Variant::new(name, backend, summary, Runnable::new(implementation).host_transfer(host_transfer), work)
}

fn host_transfer(data: &mut Data) -> Option<HostTransfer<'_>> {
    Some(HostTransfer { inputs: vec![&mut data.points], outputs: vec![&mut data.counts] })
}

/// Points read, counts written; of a pair three differences, and three squares in a sum.
fn work(problem: &Problem) -> Work {
    let points: f64 = problem.shape().iter().map(|&n| n as f64).product();
    Work { bytes: 4.0 * (points + (problem.rows() * BINS) as f64), flops: 8.0 * problem.pairs() }
}

/// 5 ns a pair are what searches of one at a time take.
fn minutes(problem: &Problem) -> Option<String> {
    (problem.pairs() > 1e10)
        .then(|| format!("{problem}: {:.0e} pairs, which would take minutes", problem.pairs()))
}
