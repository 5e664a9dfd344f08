//! The rows.

use rayspin_device::BackendKind::{Cpu, Cuda};
use rayspin_device::cpu::simd::Level;
use rayspin_tune::variant::{Runnable, Variant, Work};
use rayspin_tune::{Config, HostTransfer, Row, Space, gpu};

use super::cuda::Form;
use super::{Data, Lbm, Problem, cpu, cuda};

/// Rounding of f32 over a few steps, relative to velocities of 0.05.
const TOLERANCE: f64 = 5e-6;
/// The same for populations of 11 significant bits.
const HALF_TOLERANCE: f64 = 2e-3;

pub(super) fn rows() -> Vec<Row<Lbm>> {
    let scalar = |name, summary, run: fn(&Problem, &[f32], &mut [f32], &mut [f32])| {
        on_cpu(name, summary, move |d| run(&d.problem, d.start.cpu(), d.f.cpu_mut(), d.out.cpu_mut()))
    };
    vec![
        scalar("records", "a cell's 19 numbers side by side, one thread", cpu::scalar::<true>),
        scalar("arrays", "each population an array, one thread", cpu::scalar::<false>),
        on_cpu("simd", "vectors of cells along x, one thread", |d| vectors(d, false)),
        on_cpu("threads", "the same on all cores", |d| vectors(d, true)),
        on_gpu("gpu-records", "a cell's 19 numbers side by side, pushed to neighbours", || {
            Form::two_arrays(false, true)
        })
        .forms(|| vec![Form::two_arrays(false, true).build()]),
        on_gpu("gpu-push", "each population an array: neighbours write to neighbours", || {
            Form::two_arrays(false, false)
        })
        .forms(|| vec![Form::two_arrays(false, false).build()]),
        on_gpu("gpu-pull", "pulled from neighbours: every store is aligned", || {
            Form::two_arrays(true, false)
        })
        .forms(|| vec![Form::two_arrays(true, false).build()]),
        gpu_in_place(),
        on_gpu("gpu-half", "in place, populations of 16 bits", || Form::in_place(true))
            .forms(|| vec![Form::in_place(true).build()])
            .tolerance(HALF_TOLERANCE)
            .counting(|p| work(p, 2.0))
            .to_compare(),
        on_gpu("gpu-words", "two cells a thread, so that almost every access is a word", Form::words)
            .forms(|| vec![Form::words().build()])
            .refuses(|p| cuda::refuses(p).or_else(|| cuda::odd_rows(p)))
            .tolerance(HALF_TOLERANCE)
            .counting(|p| work(p, 2.0))
            .to_compare(),
    ]
}

/// What [`advance`](super::advance) runs on a GPU.
pub(super) fn gpu_in_place() -> Row<Lbm> {
    on_gpu("gpu-in-place", "one array: a cell writes where it has read", || Form::in_place(false))
        .forms(|| vec![Form::in_place(false).build()])
}

fn on_cpu(
    name: &'static str,
    summary: &'static str,
    run: impl Fn(&mut Data) + Send + Sync + 'static,
) -> Row<Lbm> {
    let run = Runnable::new(move |_: &Config, d: &mut Data| {
        run(d);
        Ok(())
    });
    Variant::new(name, Cpu, summary, run.host_transfer(host_transfer), |p| work(p, 4.0)).tolerance(TOLERANCE)
}

fn on_gpu(name: &'static str, summary: &'static str, form: fn() -> Form) -> Row<Lbm> {
    let run = Runnable::new(move |config: &Config, d: &mut Data| {
        let device = d.start.device().clone();
        let arrays = cuda::Arrays { start: &d.start, f: &mut d.f, out: &mut d.out };
        cuda::run(gpu(&device)?, form(), config, &d.problem, arrays)
    });
    Variant::new(name, Cuda, summary, run.host_transfer(host_transfer), |p| work(p, 4.0))
        .tolerance(TOLERANCE)
        .refuses(cuda::refuses)
        .space(blocks)
}

fn host_transfer(data: &mut Data) -> Option<HostTransfer<'_>> {
    Some(HostTransfer { inputs: vec![&mut data.start], outputs: vec![&mut data.out] })
}

fn vectors(d: &mut Data, all_cores: bool) {
    let device = d.start.device().clone();
    let cpu = device.cpu_side();
    let level: Level = cpu.level();
    cpu::vectors(level, all_cores.then_some(cpu), &d.problem, d.start.cpu(), d.f.cpu_mut(), d.out.cpu_mut());
}

/// Threads along x and rows of a block.
fn blocks(p: &Problem) -> Space {
    let x = if p.shape[2] <= 64 { 32 } else { 128 };
    Space::none().axis("x", &[32, 64, 128, 256], x).axis("y", &[1, 2, 4], 1).where_(|c| {
        let value = |name| c.find(name).unwrap_or(1);
        value("x") * value("y") <= 256
    })
}

/// Populations read and written once a step, `bytes` each; density and velocity read before and written
/// after. 210 operations a cell.
fn work(p: &Problem, bytes: f64) -> Work {
    let (cells, steps) = (p.cells() as f64, p.steps as f64);
    Work { bytes: cells * (steps * 2.0 * 19.0 * bytes + 32.0), flops: 210.0 * cells * steps }
}
