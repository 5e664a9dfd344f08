//! The rows.

use rayspin_core::Result;
use rayspin_device::{Array, BackendKind, Element};
use rayspin_tune::{Build, Config, HostTransfer, Row, Runnable, Space, TransferArray, Variant, Work, gpu};

use super::cuda::Way;
use super::draw::{Bits, Draw, Singles};
use super::ladder::{Data, Kind, Output, Problem, RandomNumbers};
use super::poisson::Table;
use super::{Stream, cpu, cuda};

/// Nothing is read; every number is written once.
fn work(problem: &Problem) -> Work {
    Work { bytes: (problem.numbers * problem.bytes()) as f64, flops: 0.0 }
}

/// Normal numbers in f64 differ by the rounding of a product or an exponential: at most 1.4e-15 was measured.
fn tolerance(kind: Kind) -> f64 {
    match kind {
        Kind::Bits | Kind::UniformF32 | Kind::UniformF64 | Kind::Poisson(_) => 0.0,
        Kind::NormalF32 | Kind::LogNormalF32 => 1e-6,
        Kind::NormalF64 | Kind::LogNormalF64 => 2e-15,
    }
}

/// What every kernel of a kind is made of: tuning results of others do not depend on it.
fn forms(kind: Kind) -> fn() -> Vec<Build> {
    match kind {
        Kind::Bits | Kind::Poisson(_) => cuda::integer_forms,
        Kind::NormalF64 | Kind::LogNormalF64 => cuda::ziggurat_forms,
        _ => cuda::real_forms,
    }
}

/// Those by a ziggurat take more registers than the threads of a larger block can have.
fn threads(problem: &Problem) -> Space {
    let most: &[i64] = if matches!(problem.kind, Kind::NormalF64 | Kind::LogNormalF64) {
        &[64, 128, 256, 512]
    } else {
        &[128, 256, 512, 1024]
    };
    Space::none().axis("threads", most, 256)
}

/// `blocks` is the number of blocks a multiprocessor.
///
/// Defaults: bits and uniform numbers are made as fast as they are written, and take many short threads.
/// Poisson numbers take twice the threads that run at once. Ziggurat blocks are short: the numbers that they
/// write again are still in the second-level cache.
fn grid(problem: &Problem) -> Space {
    let space = |threads, usual, blocks, each| {
        Space::none().axis("threads", threads, usual).axis("blocks", blocks, each)
    };
    let ziggurat = |each| space(&[128, 256, 384, 512, 640], 640, &[2, 4, 8, 12, 16, 18, 20, 24, 32], each);
    let plain = |usual, each| space(&[128, 256, 512, 1024], usual, &[1, 2, 4, 8, 16, 32, 64], each);
    match problem.kind {
        Kind::Bits | Kind::UniformF32 | Kind::UniformF64 => plain(256, 64),
        Kind::Poisson(_) => plain(512, 8),
        Kind::NormalF32 | Kind::LogNormalF32 => {
            space(&[128, 256, 384, 512, 640, 768], 768, &[1, 2, 3, 4, 6, 8, 16], 3)
        }
        Kind::NormalF64 => ziggurat(18),
        Kind::LogNormalF64 => ziggurat(12),
    }
}

fn host_transfer(data: &mut Data) -> Option<HostTransfer<'_>> {
    let output: &mut dyn TransferArray = match &mut data.out {
        Output::Words(out, _) | Output::Events(out, ..) => out,
        Output::Single(out, _) => out,
        Output::Double(out, _) => out,
    };
    Some(HostTransfer { inputs: vec![], outputs: vec![output] })
}

fn set_up(problem: &Problem, data: &mut Data) -> Result<()> {
    if let (Output::Events(_, table, columns), Kind::Poisson(mean)) = (&mut data.out, problem.kind) {
        *table = Table::new(mean)?;
        let device = columns.device().clone();
        *columns = Array::from_slice(&device, &[table.columns.len()], &table.columns)?;
    }
    Ok(())
}

enum OnCpu {
    Scalar,
    Simd,
    Threads,
}

impl OnCpu {
    fn fill<D: Draw<Out: Element>>(&self, draw: &D, stream: Stream, out: &mut Array<D::Out>) -> Result<()> {
        let device = out.device().clone();
        let side = device.cpu_side();
        match self {
            Self::Scalar => cpu::scalar(draw, stream, 0, out.cpu_mut()),
            Self::Simd => cpu::simd(side.level(), draw, stream, 0, out.cpu_mut()),
            Self::Threads => cpu::threads(side, draw, stream, out.cpu_mut()),
        }
        Ok(())
    }

    fn run(&self, data: &mut Data) -> Result<()> {
        let stream = data.stream;
        match &mut data.out {
            Output::Words(out, _) => self.fill(&Bits, stream, out),
            Output::Events(out, table, _) => self.fill(table, stream, out),
            Output::Single(out, shape) => self.fill(&Singles::new(*shape), stream, out),
            Output::Double(out, shape) => self.fill(shape, stream, out),
        }
    }
}

enum OnGpu {
    Once,
    Grid,
    States,
}

impl OnGpu {
    fn run(&self, config: &Config, data: &mut Data) -> Result<()> {
        let device = data.states.device().clone();
        let cuda = gpu(&device)?;
        let threads = config.get("threads")?;
        let blocks = || Ok(config.get("blocks")?.saturating_mul(cuda.properties().multiprocessors));
        let way = match self {
            Self::Once => Way::Fill { threads, blocks: None },
            Self::Grid => Way::Fill { threads, blocks: Some(blocks()?) },
            Self::States => Way::States { threads, blocks: blocks()?, states: &mut data.states },
        };
        let stream = data.stream;
        match &mut data.out {
            Output::Words(out, none) => cuda::integers(cuda, way, stream, None, none, out),
            Output::Events(out, table, columns) => {
                cuda::integers(cuda, way, stream, Some(table), columns, out)
            }
            Output::Single(out, shape) => cuda::reals(cuda, way, stream, *shape, out),
            Output::Double(out, shape) => cuda::reals(cuda, way, stream, *shape, out),
        }
    }
}

pub(super) fn rows(&Problem { kind, .. }: &Problem) -> Vec<Row<RandomNumbers>> {
    let on_cpu = |name, summary, way: OnCpu| {
        row(kind, name, BackendKind::Cpu, summary, Runnable::new(move |_, data| way.run(data)))
    };
    vec![
        on_cpu("scalar", "one thread, a block at a time", OnCpu::Scalar),
        on_cpu("simd", "one thread, 32 blocks side by side", OnCpu::Simd),
        on_cpu("threads", "the same on all cores", OnCpu::Threads),
        on_gpu(kind, "gpu-states", "a state for each thread: initialised, loaded, stored", OnGpu::States)
            .space(|p| threads(p).axis("blocks", &[1, 2, 4, 8, 16, 32], 16)),
        on_gpu(kind, "gpu-once", "one kernel, one block of the stream a thread", OnGpu::Once).space(threads),
        gpu_grid(kind),
    ]
}

/// What the public functions run on a GPU.
pub(super) fn gpu_grid(kind: Kind) -> Row<RandomNumbers> {
    on_gpu(kind, "gpu-grid", "one kernel, as many threads as run at once", OnGpu::Grid).space(grid)
}

fn on_gpu(kind: Kind, name: &'static str, summary: &'static str, way: OnGpu) -> Row<RandomNumbers> {
    let run = Runnable::new(move |config, data| way.run(config, data));
    row(kind, name, BackendKind::Cuda, summary, run).forms(forms(kind))
}

fn row(
    kind: Kind,
    name: &'static str,
    backend: BackendKind,
    summary: &'static str,
    run: Runnable<Problem, Data>,
) -> Row<RandomNumbers> {
    let run = run.host_transfer(host_transfer).set_up(set_up);
    Variant::new(name, backend, summary, run, work).tolerance(tolerance(kind))
}
