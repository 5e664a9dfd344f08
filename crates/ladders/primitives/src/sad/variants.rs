//! The rows.

use rayspin_core::{Error, Result};
use rayspin_device::{Backend, BackendKind};
use rayspin_tune::variant::{Runnable, Variant, Work};
use rayspin_tune::{Config, HostTransfer, Row, Space};

use super::{Data, Problem, Sad, count, cpu, cuda};

type Implementation = fn(&Config, &mut Data) -> Result<()>;

pub(super) fn rows() -> Vec<Row<Sad>> {
    let run = |implementation: Implementation| Runnable::new(implementation).host_transfer(host_transfer);
    let on_cpu = |name, summary, implementation| {
        Variant::new(name, BackendKind::Cpu, summary, run(implementation), work)
    };
    let a_thread = |name, summary, run| {
        Variant::new(name, BackendKind::Cuda, summary, run, work)
            .space(|_| Space::none().axis("threads", &[64, 128, 256, 512], 256))
            .forms(cuda::a_thread_forms)
    };
    vec![
        on_cpu("scalar", "as the formula has it, one thread", |_, d| {
            cpu::scalar(d.current.cpu(), d.reference.cpu(), d.sums.cpu_mut(), &d.problem);
            Ok(())
        })
        .reproduces("C on a CPU"),
        on_cpu("simd", "16 displacements at a time, padded frames, one thread", |_, d| on_simd(d, false)),
        on_cpu("threads", "the same on all cores", |_, d| on_simd(d, true)),
        a_thread("gpu-naive", "a thread a sum, bytes from global memory", run(cuda::naive))
            .reproduces("CUDA on a GPU"),
        a_thread(
            "gpu-texture",
            "the same through textures",
            run(cuda::textured).set_up(|_, d| {
                if let Backend::Cuda(cuda) = d.current.device().backend() {
                    d.textures = Some(cuda::textures(cuda, [&d.current, &d.reference])?);
                }
                Ok(())
            }),
        ),
        window("gpu-shared", "the window of the reference in shared memory", |config, d| {
            cuda::window_of("shared_bytes", config, d)
        }),
        gpu_packed(),
    ]
}

/// What the public function runs on a GPU.
pub(super) fn gpu_packed() -> Row<Sad> {
    window("gpu-packed", "four differences an instruction, stores in pairs", |config, d| {
        cuda::window_of("packed", config, d)
    })
}

fn window(name: &'static str, summary: &'static str, implementation: Implementation) -> Row<Sad> {
    let run = Runnable::new(implementation).host_transfer(host_transfer);
    Variant::new(name, BackendKind::Cuda, summary, run, work)
        .refuses(cuda::window_refuses)
        .space(cuda::window_space)
        .forms(cuda::window_forms)
}

fn host_transfer(data: &mut Data) -> Option<HostTransfer<'_>> {
    Some(HostTransfer { inputs: vec![&mut data.current, &mut data.reference], outputs: vec![&mut data.sums] })
}

fn on_simd(data: &mut Data, all_cores: bool) -> Result<()> {
    let Data { problem, current, reference, sums, padded, .. } = data;
    let padded = padded
        .as_mut()
        .ok_or_else(|| Error::value("device of block matching", "a CPU", current.device().describe()))?;
    let cpu = current.device().cpu_side();
    let frames = [current.cpu(), reference.cpu()];
    cpu::simd(cpu.level(), all_cores.then_some(cpu), frames, padded, sums.cpu_mut(), problem);
    Ok(())
}

/// Both frames read, the sums written; a subtraction, an absolute value and an addition a difference.
fn work(problem: &Problem) -> Work {
    let frames = 2.0 * problem.height as f64 * problem.width as f64;
    Work { bytes: frames + 2.0 * count(problem), flops: 48.0 * count(problem) }
}
