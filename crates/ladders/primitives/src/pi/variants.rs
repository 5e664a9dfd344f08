//! The rows.

use rayspin_core::Result;
use rayspin_device::BackendKind::{Cpu, Cuda};
use rayspin_tune::variant::{Runnable, Variant, Work};
use rayspin_tune::{Config, HostTransfer, Row, Space};

use super::ladder::{Data, Pi, Problem};
use super::{cpu, cuda};

pub(super) fn rows() -> Vec<Row<Pi>> {
    let on_cpu = |name, summary, implementation: fn(&Config, &mut Data) -> Result<()>| {
        Variant::new(name, Cpu, summary, Runnable::new(implementation).host_transfer(host_transfer), work)
    };
    vec![
        on_cpu("scalar", "one thread, a block of the stream at a time", |_, d| {
            d.on_cpu(cpu::scalar(d.stream, d.points))
        }),
        on_cpu("simd", "one thread, 32 blocks side by side", |_, d| {
            let device = d.device();
            d.on_cpu(cpu::simd(device.cpu_side().level(), d.stream, d.points))
        }),
        on_cpu("threads", "the same on all cores", |_, d| {
            let device = d.device();
            d.on_cpu(cpu::threads(device.cpu_side(), d.stream, d.points))
        }),
        on_gpu("gpu-states", "states loaded and stored, f64, an atomic addition a thread", "from_states"),
        on_gpu("gpu-f64", "one kernel, f64, an atomic addition a thread", "one_kernel"),
        on_gpu("gpu-integers", "64-bit integers in place of f64", "integers"),
        on_gpu("gpu-shuffles", "warps and blocks add first", "shuffled"),
        gpu_carry(),
    ]
}

/// What [`estimate`](super::estimate) runs on a GPU.
pub(super) fn gpu_carry() -> Row<Pi> {
    on_gpu("gpu-carry", "what carries out of 64 bits lies outside", "carried")
}

fn on_gpu(name: &'static str, summary: &'static str, kernel: &'static str) -> Row<Pi> {
    let run = Runnable::new(move |config, data: &mut Data| data.on_gpu(kernel, config))
        .host_transfer(host_transfer);
    Variant::new(name, Cuda, summary, run, work).space(launches).forms(cuda::forms)
}

fn host_transfer(data: &mut Data) -> Option<HostTransfer<'_>> {
    Some(HostTransfer { inputs: vec![], outputs: vec![&mut data.sums.integer, &mut data.sums.double] })
}

fn launches(_: &Problem) -> Space {
    let space = Space::none().axis("threads", &[64, 128, 256, 512, 1024], 256);
    space.axis("blocks", &[1, 2, 4, 8, 16, 32], 16)
}

/// Two points take 20 multiplications of the generator and four of their own: multiply-adds of 32-bit
/// integers, two operations each.
fn work(problem: &Problem) -> Work {
    Work { bytes: 0.0, flops: 24.0 * problem.points as f64 }
}
