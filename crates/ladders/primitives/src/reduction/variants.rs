//! The rows.

use rayspin_core::Result;
use rayspin_device::BackendKind;
use rayspin_tune::{Build, Config, Row, Runnable, Space, Variant, Work};

use super::ladder::{Kind, Problem, Reduction, Type, Ways};
use super::{cpu, cuda};

/// Every element once; an addition or a comparison, or a difference, a square and an addition.
fn work(problem: &Problem) -> Work {
    let bytes = if problem.element == Type::F64 { 8.0 } else { 4.0 };
    let (arrays, flops) = if problem.kind == Kind::MeanSquareError { (2.0, 3.0) } else { (1.0, 1.0) };
    let n = problem.len as f64;
    Work { bytes: arrays * bytes * n, flops: flops * n }
}

fn sums_alone(problem: &Problem) -> Option<String> {
    matches!(problem.kind, Kind::Min | Kind::Max).then(|| format!("{problem}: atomic additions make sums"))
}

fn pieces(_: &Problem) -> Space {
    let sizes = [cpu::SMALLEST_PIECE as i64, 1 << 14, 1 << 15, 1 << 16, 1 << 17];
    Space::none().axis("piece", &sizes, cpu::PIECE as i64)
}

fn any_threads(_: &Problem) -> Space {
    Space::none().axis("threads", &[64, 128, 256, 512, 1024], 256)
}

fn made_threads(_: &Problem) -> Space {
    Space::none().axis("threads", &cuda::MADE.map(i64::from), 256)
}

fn made_trees() -> Vec<Build> {
    cuda::trees(&cuda::MADE)
}

/// Adds the number of blocks a multiprocessor to a space of threads a block.
fn grid(threads: Space) -> Space {
    threads.axis("blocks", &[1, 2, 4, 8, 16, 32], 8)
}

/// Defaults have some 64 KB under way on a multiprocessor: a bandwidth of 25 GB/s each and a latency of 1 µs
/// ask for less than half of it. Four loads at once of extremes take more registers of compute capability
/// 12.0 than there are.
fn wide(problem: &Problem) -> Space {
    match problem.kind {
        Kind::MeanSquareError => Space::none()
            .axis("threads", &[128, 256, 512], 256)
            .axis("blocks", &[1, 2, 3, 4, 8], 3)
            .axis("unroll", &[1, 2, 4], 4),
        kind => Space::none()
            .axis("threads", &[128, 256, 512, 1024], 512)
            .axis("blocks", &[1, 2, 4, 8, 16], 2)
            .axis("unroll", &[1, 2, 4, 8], if kind == Kind::Sum { 4 } else { 8 })
            // Blocks that a multiprocessor holds at once.
            .where_(|c| matches!(c.find("threads").zip(c.find("blocks")), Some((t, b)) if t * b <= 2048)),
    }
}

fn row(
    name: &'static str,
    backend: BackendKind,
    summary: &'static str,
    implementation: impl Fn(&Config, &mut Box<dyn Ways>) -> Result<()> + Send + Sync + 'static,
) -> Row<Reduction> {
    Variant::new(
        name,
        backend,
        summary,
        Runnable::new(implementation).host_transfer(|d| Some(d.host_transfer())),
        work,
    )
}

pub(super) fn rows(problem: &Problem) -> Vec<Row<Reduction>> {
    use BackendKind::{Cpu, Cuda};
    // The least and the greatest, and sums of integers, are exact. One accumulator in f64 of the 2²⁸ numbers
    // of a case loses about 1e-12, of the 20 thousand of a trial 1e-14; sums in parts lose less.
    let exact =
        matches!((problem.kind, problem.element), (Kind::Min | Kind::Max, _) | (Kind::Sum, Type::I32));
    let tolerance = if exact { 0.0 } else { 1e-12 };
    let step = |name, reproduces, summary, kernel, each| {
        row(name, Cuda, summary, move |c, d| d.by_levels(kernel, each, c))
            .reproduces(reproduces)
            .space(any_threads)
            .forms(|| cuda::trees(&[256]))
    };
    let rows = vec![
        row("scalar", Cpu, "one thread, one sum", |_, d| d.scalar()),
        row("simd", Cpu, "one thread, the widest vectors, eight under way", |_, d| d.simd()),
        cpu_threads(),
        step("gpu-k1", "K1", "interleaved, threads chosen by modulo", "k1_modulo", 1),
        step("gpu-k2", "K2", "interleaved, threads in a row", "k2_strided", 1),
        step("gpu-k3", "K3", "sequential addresses", "k3_sequential", 1),
        step("gpu-k4", "K4", "first addition while loading", "k4_first_add", 2),
        step("gpu-k5", "K5", "last warp written out", "k5_last_warp", 2),
        row("gpu-k6", Cuda, "every step written out", |c, d| d.unrolled("k6_unrolled", c))
            .reproduces("K6")
            .space(made_threads)
            .forms(made_trees),
        row("gpu-two-level", Cuda, "trees of a fixed grid, then one block's", |c, d| d.trees("two_level", c))
            .space(|p| grid(made_threads(p)))
            .forms(made_trees),
        row("gpu-k7", Cuda, "many elements a thread", |c, d| d.trees("k7_many", c))
            .reproduces("K7")
            .space(|p| grid(made_threads(p)))
            .forms(made_trees),
        row("gpu-atomic", Cuda, "one kernel clears the sum, blocks add theirs atomically", |c, d| {
            d.atomic(c)
        })
        .refuses(sums_alone)
        .space(|p| grid(any_threads(p)))
        .forms(cuda::shuffles),
        row("gpu-shuffle", Cuda, "registers of the warp instead of shared memory", |c, d| d.shuffle(c))
            .space(|p| grid(any_threads(p)))
            .forms(cuda::shuffles),
        row("gpu-wide", Cuda, "16 bytes a load, several under way", |c, d| d.wide(c))
            .space(wide)
            .forms(cuda::loads),
        row("gpu-one-pass", Cuda, "the block that ends last joins all: one kernel", |c, d| d.one_pass(c))
            .space(wide)
            .forms(cuda::loads),
        gpu_flags(),
    ];
    rows.into_iter().map(|row| row.tolerance(tolerance)).collect()
}

/// What the public functions run on a CPU.
pub(super) fn cpu_threads() -> Row<Reduction> {
    let summary = "the same on all cores, pieces joined in order";
    row("threads", BackendKind::Cpu, summary, |c, d| d.threads(c)).space(pieces)
}

/// What the public functions run on a GPU.
pub(super) fn gpu_flags() -> Row<Reduction> {
    let summary = "flags beside blocks' numbers, for which the last block waits";
    row("gpu-flags", BackendKind::Cuda, summary, |c, d| d.flagged(c)).space(wide).forms(cuda::loads)
}
