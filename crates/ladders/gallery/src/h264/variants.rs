//! The rows.

use rayspin_core::{Error, Result};
use rayspin_device::BackendKind::{self, Cpu, Cuda};
use rayspin_device::{Array, Cpu as Processor, HostCopy};
use rayspin_primitives::sad;
use rayspin_tune::variant::{Runnable, Variant, Work};
use rayspin_tune::{Config, HostTransfer, Row};

use super::block::Quantizer;
use super::{Coded, Data, H264, Host, Problem, cpu, cuda, reference};

pub(super) fn rows() -> Vec<Row<H264>> {
    vec![
        row("scalar", Cpu, "as the formulas have it, one thread", |_, d| {
            let (frames, q) = ([d.current.cpu(), d.reference.cpu()], Quantizer::new(d.problem.qp)?);
            let find = |macroblock| reference::vector(frames, &d.problem, macroblock);
            cpu::encode(None, frames, &d.problem, &q, d.coded.rows(), find);
            Ok(())
        })
        .refuses(a_minute),
        row("simd", Cpu, "16 differences at a time, one thread", |_, d| {
            let device = d.current.device().clone();
            on_vectors(device.cpu_side(), None, [&d.current, &d.reference], &d.problem, &mut d.coded)
        }),
        row("sums", Cpu, "all sums of `sad` stored, then the rest, all cores", |_, d| {
            let (frames, q) = ([d.current.cpu(), d.reference.cpu()], Quantizer::new(d.problem.qp)?);
            sad::block_match(&d.current, &d.reference, d.problem.radius, &mut d.sums)?;
            let find = |macroblock| cpu::from_sums(d.sums.cpu(), &d.problem, macroblock);
            let on = d.current.device().cpu_side();
            cpu::encode(Some(on), frames, &d.problem, &q, d.coded.rows(), find);
            Ok(())
        }),
        row("threads", Cpu, "`simd` on all cores, no sums stored", |_, d| {
            let (device, frames) = (d.current.device().clone(), [&d.current, &d.reference]);
            on_vectors(device.cpu_side(), Some(device.cpu_side()), frames, &d.problem, &mut d.coded)
        }),
        row("gpu-search", Cuda, "all sums of `sad` on the GPU, the rest on the host", |_, d| on_host(d)),
        gpu_whole(),
    ]
}

/// What [`encode`](super::encode) runs on a GPU.
pub(super) fn gpu_whole() -> Row<H264> {
    row("gpu-whole", Cuda, "all on the GPU, no sums stored", |config, d| {
        cuda::whole(config, [&d.current, &d.reference], &d.problem, &mut d.coded)
    })
    .space(cuda::space)
    .forms(cuda::forms)
}

fn row(
    name: &'static str,
    backend: BackendKind,
    summary: &'static str,
    implementation: fn(&Config, &mut Data) -> Result<()>,
) -> Row<H264> {
    Variant::new(name, backend, summary, Runnable::new(implementation).host_transfer(host_transfer), work)
}

fn host_transfer(data: &mut Data) -> Option<HostTransfer<'_>> {
    let Coded { vectors, levels, bits, reconstruction } = &mut data.coded;
    Some(HostTransfer {
        inputs: vec![&mut data.current, &mut data.reference],
        outputs: vec![vectors, levels, bits, reconstruction],
    })
}

/// Two frames read; a frame, levels of two bytes a pixel and a number of bits a block written. Four
/// differences of the search are a shift and an instruction that takes and adds them, each at the rate of
/// multiply-adds, which count as two operations.
fn work(p: &Problem) -> Work {
    let pixels = 16.0 * (p.down() * p.across()) as f64;
    Work { bytes: (2.0 + 1.0 + 2.0 + 0.25) * pixels, flops: p.differences() }
}

/// A difference with its tests takes several nanoseconds.
fn a_minute(p: &Problem) -> Option<String> {
    (p.differences() > 1e9)
        .then(|| format!("{p}: {:.0e} differences, up to a minute of them", p.differences()))
}

/// 16 differences at a time, on one thread or on `threads`.
pub(super) fn on_vectors(
    on: &Processor,
    threads: Option<&Processor>,
    frames: [&Array<u8>; 2],
    p: &Problem,
    coded: &mut Coded,
) -> Result<()> {
    let (frames, q) = (frames.map(Array::cpu), Quantizer::new(p.qp)?);
    cpu::encode(threads, frames, p, &q, coded.rows(), |macroblock| {
        cpu::search(on.level(), frames, p, macroblock)
    });
    Ok(())
}

/// The sums come to the host, and what it makes of them goes back.
fn on_host(d: &mut Data) -> Result<()> {
    let Data { problem: p, current, reference, coded, sums, host, .. } = d;
    let Some(host) = host else {
        return Err(Error::value("device of a search", "a GPU", current.device().describe()));
    };
    let Host { sums: on_host, coded: made } = host;
    sad::block_match(current, reference, p.radius, sums)?;
    sums.get(0, on_host, HostCopy::Staged)?;
    let (current_frame, reference_frame) = (current.read()?, reference.read()?);
    let (frames, q) = ([&*current_frame, &*reference_frame], Quantizer::new(p.qp)?);
    let find = |macroblock| cpu::from_sums(on_host, p, macroblock);
    cpu::encode(Some(current.device().cpu_side()), frames, p, &q, made.rows(), find);
    coded.vectors.set(made.vectors.cpu())?;
    coded.levels.set(made.levels.cpu())?;
    coded.bits.set(made.bits.cpu())?;
    coded.reconstruction.set(made.reconstruction.cpu())
}
