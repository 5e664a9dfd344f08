//! The rows.

use rayspin_core::Result;
use rayspin_device::BackendKind::{self, Cpu, Cuda};
use rayspin_tune::variant::{Runnable, Variant, Work};
use rayspin_tune::{Config, HostTransfer, Row};

use super::{Data, Pns, Problem, cpu, cuda};

pub(super) fn rows() -> Vec<Row<Pns>> {
    vec![
        row("scalar", Cpu, "a run at a time, a word a place", |_, d| {
            cpu::scalar(&d.problem, d.marking.cpu(), d.seed, d.sums.cpu_mut())
        })
        .counting(|p| work(p, p.runs, 0.0))
        .refuses(minutes),
        row("bits", Cpu, "32 runs at a time, a bit each of a word", |_, d| {
            cpu::bits(&d.problem, d.marking.cpu(), d.seed, d.sums.cpu_mut())
        }),
        row("simd", Cpu, "16 words side by side, one thread", |_, d| {
            let level = d.marking.device().cpu_side().level();
            cpu::simd(level, &d.problem, d.marking.cpu(), d.seed, d.sums.cpu_mut())
        }),
        row("threads", Cpu, "the same on all cores", |_, d| {
            let device = d.marking.device().clone();
            cpu::threads(device.cpu_side(), &d.problem, d.marking.cpu(), d.seed, d.sums.cpu_mut())
        }),
        by_runs("gpu-naive", "a thread a run, bytes of a run side by side", |c, d| {
            cuda::by_runs("naive", c, d)
        }),
        by_runs("gpu-columns", "bytes of a place side by side", |c, d| cuda::by_runs("columns", c, d)),
        gpu_bits(),
        shared("gpu-shared", "a block 32 runs, in shared memory", |c, d| cuda::one("shared", c, d)),
        shared("gpu-planes", "even and odd columns apart: no bank conflicts", |c, d| {
            cuda::one("planes", c, d)
        }),
        gpu_several(),
    ]
}

/// What [`simulate`](super::simulate) runs on a GPU for nets that shared memory does not hold.
pub(super) fn gpu_bits() -> Row<Pns> {
    row("gpu-bits", Cuda, "a thread 32 runs, a bit each of a word", cuda::bits_of)
        .space(cuda::bits_space)
        .forms(cuda::one_form)
        .counting(|p| work(p, p.words(), 4.0))
}

/// What [`simulate`](super::simulate) runs on a GPU.
pub(super) fn gpu_several() -> Row<Pns> {
    shared("gpu-several", "several words of runs a thread", |config, d| {
        cuda::several(config, &d.problem, &d.marking, d.seed, &mut d.sums)
    })
    .space(cuda::several_space)
    .forms(cuda::several_forms)
}

fn by_runs(
    name: &'static str,
    summary: &'static str,
    implementation: fn(&Config, &mut Data) -> Result<()>,
) -> Row<Pns> {
    row(name, Cuda, summary, implementation)
        .space(cuda::runs_space)
        .forms(cuda::one_form)
        .refuses(large)
        .counting(|p| work(p, p.runs, 1.0))
}

fn shared(
    name: &'static str,
    summary: &'static str,
    implementation: fn(&Config, &mut Data) -> Result<()>,
) -> Row<Pns> {
    row(name, Cuda, summary, implementation)
        .space(cuda::shared_space)
        .forms(cuda::one_form)
        .refuses(cuda::beyond_shared)
}

fn row(
    name: &'static str,
    backend: BackendKind,
    summary: &'static str,
    implementation: fn(&Config, &mut Data) -> Result<()>,
) -> Row<Pns> {
    let run = Runnable::new(implementation).host_transfer(host_transfer);
    Variant::new(name, backend, summary, run, |p| work(p, p.words(), 0.0))
}

fn host_transfer(data: &mut Data) -> Option<HostTransfer<'_>> {
    Some(HostTransfer { inputs: vec![&mut data.marking], outputs: vec![&mut data.sums] })
}

/// Instructions of a tile, at least: the README counts them.
const INSTRUCTIONS: f64 = 44.0;

/// A marking and the sums; a half step reads every place of each of the `lanes` nets and writes it, `bytes`
/// each.
fn work(p: &Problem, lanes: usize, bytes: f64) -> Work {
    let shape: f64 = p.shape().iter().map(|&n| n as f64).product();
    let (places, lanes) = (p.places() as f64, lanes as f64);
    let state = places * lanes * bytes * 4.0 * p.steps as f64;
    Work { bytes: 4.0 * places + 8.0 * shape + state, flops: INSTRUCTIONS * p.tiles() * lanes }
}

/// Bytes of tokens, a byte for each place and run, at most: a GPU's memory holds them twice.
pub(super) const MOST_BYTES: usize = 1 << 32;

fn large(p: &Problem) -> Option<String> {
    let bytes = p.places() * p.runs;
    (bytes > MOST_BYTES).then(|| format!("{p}: {bytes} bytes, a byte for each place and run"))
}

/// Words of [`Data::state`](super::Data): a byte for each place and run as far as rows run that want it, a
/// bit otherwise.
pub(super) fn state_words(p: &Problem) -> usize {
    let words = p.places() * p.words();
    if large(p).is_some() { words } else { 8 * words }
}

/// An update takes `scalar` about 10 ns.
fn minutes(p: &Problem) -> Option<String> {
    (p.updates() > 4e9).then(|| format!("{p}: {:.0e} updates, which would take minutes", p.updates()))
}
