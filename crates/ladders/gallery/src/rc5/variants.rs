//! The rows.

use rayspin_core::Result;
use rayspin_device::BackendKind::{self, Cpu, Cuda};
use rayspin_tune::variant::{Runnable, Variant, Work};
use rayspin_tune::{Config, HostTransfer, Row};

use super::{Data, Problem, Rc5, cpu, cuda};

pub(super) fn rows() -> Vec<Row<Rc5>> {
    vec![
        row("scalar", Cpu, "a key at a time, as the definition has it", |_, d| {
            cpu::scalar(&d.search, d.list.cpu_mut());
            Ok(())
        })
        .refuses(minutes),
        row("simd", Cpu, "32 keys side by side, one thread", |_, d| {
            let level = d.list.device().cpu_side().level();
            cpu::simd(level, &d.search, d.list.cpu_mut());
            Ok(())
        }),
        row("threads", Cpu, "the same on all cores", |_, d| {
            let device = d.list.device().clone();
            cpu::threads(device.cpu_side(), &d.search, d.list.cpu_mut());
            Ok(())
        }),
        row("gpu-naive", Cuda, "a key a thread, its words in local memory", |c, d| cuda::one("naive", c, d))
            .space(cuda::one_space)
            .forms(cuda::one_forms),
        row("gpu-registers", Cuda, "all loops unrolled, words in registers, rotations", |c, d| {
            cuda::one("registers", c, d)
        })
        .space(cuda::one_space)
        .forms(cuda::one_forms),
        gpu_several(),
    ]
}

/// What [`find`](super::find) runs on a GPU.
pub(super) fn gpu_several() -> Row<Rc5> {
    row("gpu-several", Cuda, "first steps once for keys that share them", |config, d| {
        cuda::several(config, &d.search, &mut d.list)
    })
    .space(cuda::several_space)
    .forms(cuda::several_forms)
}

fn row(
    name: &'static str,
    backend: BackendKind,
    summary: &'static str,
    implementation: fn(&Config, &mut Data) -> Result<()>,
) -> Row<Rc5> {
    Variant::new(name, backend, summary, Runnable::new(implementation).host_transfer(host_transfer), work)
}

fn host_transfer(data: &mut Data) -> Option<HostTransfer<'_>> {
    Some(HostTransfer { inputs: Vec::new(), outputs: vec![&mut data.list] })
}

/// Instructions of a key, at least: the README counts them. Bytes are candidates.
const INSTRUCTIONS: f64 = 441.0;

fn work(problem: &Problem) -> Work {
    Work { bytes: 4.0 * 256.0, flops: INSTRUCTIONS * problem.keys as f64 }
}

/// A key takes a thread about half a microsecond.
fn minutes(problem: &Problem) -> Option<String> {
    (problem.keys > 1 << 26).then(|| format!("{problem}: they would take minutes"))
}
