//! The rows.

use rayspin_core::Result;
use rayspin_device::BackendKind::{self, Cpu, Cuda};
use rayspin_tune::variant::{Runnable, Variant, Work};
use rayspin_tune::{Config, HostTransfer, Peak, Row};

use super::{CLASSES, Data, FUNCTIONS, Problem, Rpes, cpu, cuda};

/// Rounding of 81 terms, and of polynomials of the table; 3e-15 at most was measured.
const TOLERANCE: f64 = 1e-13;
/// The same in `f32`, 5e-7 at most was measured.
const SINGLE: f64 = 5e-6;

pub(super) fn rows() -> Vec<Row<Rpes>> {
    vec![
        row("scalar", Cpu, "a quartet of shells at a time, one thread", |_, d| {
            cpu::scalar(d);
            Ok(())
        }),
        row("simd", Cpu, "8 quartets of a class side by side, one thread", |_, d| {
            let level = d.integrals.device().cpu_side().level();
            cpu::simd(level, d);
            Ok(())
        }),
        row("threads", Cpu, "the same on all cores", |_, d| {
            let device = d.integrals.device().clone();
            cpu::threads(device.cpu_side(), d);
            Ok(())
        }),
        row("gpu-naive", Cuda, "a thread a quartet in the order of shells, loops of any class", cuda::naive)
            .space(cuda::space)
            .forms(cuda::naive_forms),
        row("gpu-sorted", Cuda, "a program a class, all loops unrolled", cuda::sorted)
            .space(cuda::space)
            .forms(cuda::sorted_forms),
        gpu_pairs(),
        row("gpu-single", Cuda, "the same in f32", cuda::single)
            .space(cuda::space)
            .forms(cuda::single_forms)
            .tolerance(SINGLE)
            .on(Peak::F32)
            .to_compare(),
    ]
}

/// What [`repulsion`](super::repulsion) runs on a GPU.
pub(super) fn gpu_pairs() -> Row<Rpes> {
    row("gpu-pairs", Cuda, "exponentials and centres of pairs made once", cuda::pairs)
        .space(cuda::space)
        .forms(cuda::pairs_forms)
}

fn row(
    name: &'static str,
    backend: BackendKind,
    summary: &'static str,
    implementation: fn(&Config, &mut Data) -> Result<()>,
) -> Row<Rpes> {
    Variant::new(name, backend, summary, Runnable::new(implementation).host_transfer(host_transfer), work)
        .tolerance(TOLERANCE)
}

fn host_transfer(data: &mut Data) -> Option<HostTransfer<'_>> {
    let tables = &mut data.double;
    Some(HostTransfer {
        inputs: vec![&mut tables.shells, &mut tables.pairs],
        outputs: vec![&mut data.integrals],
    })
}

/// Integrals written. Operations of the 81 quartets of primitives of a quartet: 40 for exponents and
/// distances, and polynomials of degree 9 for each point and weight. At each point come the powers of three
/// axes (the README counts them), and two multiplications and an addition a function.
fn work(problem: &Problem) -> Work {
    let layout = problem.layout();
    let flops = |&[bra, ket]: &[usize; 2]| {
        let (points, functions) = (((bra + ket) / 2 + 1) as f64, (FUNCTIONS[bra] * FUNCTIONS[ket]) as f64);
        let powers = 3.0 * (12 + 4 * ((bra + 1) * (ket + 1) - 1) + 2 * ((1 << bra) * (1 << ket) - 1)) as f64;
        layout.quartets([bra, ket]) as f64 * 81.0 * (40.0 + points * (36.0 + powers + 3.0 * functions))
    };
    Work { bytes: 8.0 * layout.len() as f64, flops: CLASSES.iter().map(flops).sum() }
}
