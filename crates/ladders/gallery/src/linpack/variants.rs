//! The rows.

use rayspin_core::{Error, Result};
use rayspin_device::BackendKind::{self, Cpu, Cuda};
use rayspin_tune::variant::{Runnable, Variant, Work};
use rayspin_tune::{Config, HostTransfer, Row, Space, gpu};

use super::{Data, Linpack, Matrix, Problem, Vectors, cpu, cuda};

/// One or two roundings of f32.
const ROUNDED: f64 = 1.2e-7;
/// Linpack's residual may be 16. Random matrices of the sizes here have a few hundredths.
const RESIDUAL: f64 = 1.0;

type Implementation = fn(&Config, &mut Data) -> Result<()>;

pub(super) fn vectors() -> Vec<Row<Linpack>> {
    let threads = |_: &Problem| Space::none().axis("threads", &[64, 128, 256, 512, 1024], 256);
    vec![
        vector("scalar", Cpu, "one thread, baseline instructions", |_, d| {
            let Vectors { a, x, y, z } = d.vectors()?;
            cpu::saxpy_scalar(*a, x.cpu(), y.cpu(), z.cpu_mut());
            Ok(())
        }),
        vector("simd", Cpu, "one thread, the widest vectors", |_, d| {
            let Vectors { a, x, y, z } = d.vectors()?;
            cpu::saxpy_simd(x.device().cpu_side().level(), *a, x.cpu(), y.cpu(), z.cpu_mut());
            Ok(())
        }),
        vector("threads", Cpu, "the same on all cores", |_, d| {
            let Vectors { a, x, y, z } = d.vectors()?;
            cpu::saxpy_threads(x.device().cpu_side(), *a, x.cpu(), y.cpu(), z.cpu_mut());
            Ok(())
        }),
        vector("gpu-each", Cuda, "a thread a number", |config, d| saxpy("each", config, d))
            .space(threads)
            .forms(cuda::saxpy_forms),
        gpu_wide(),
    ]
}

/// What [`saxpy`](super::saxpy) runs on a GPU.
pub(super) fn gpu_wide() -> Row<Linpack> {
    vector("gpu-wide", Cuda, "16 bytes a load", |config, d| saxpy("wide", config, d))
        .space(|_| Space::none().axis("threads", &[64, 128, 256, 512, 1024], 256))
        .forms(cuda::saxpy_forms)
}

pub(super) fn matrices() -> Vec<Row<Linpack>> {
    let panels = |_: &Problem| Space::none().axis("panel", &[32, 64, 128, 256], 128);
    vec![
        matrix("plain", Cpu, "a column after another, one thread", |_, m| {
            m.lu.copy_from(&m.a)?;
            cpu::plain(m.n, m.lu.cpu_mut(), m.pivots.cpu_mut());
            Ok(())
        })
        .refuses(minutes),
        matrix("blocked", Cpu, "panels of 64 columns, sums in vectors, one thread", |_, m| blocked(m, false)),
        matrix("blocked-threads", Cpu, "the same on all cores", |_, m| blocked(m, true)),
        matrix("gpu-columns", Cuda, "a column after another, each over the whole matrix", |_, m| {
            m.lu.copy_from(&m.a)?;
            let device = m.lu.device().clone();
            cuda::columns(gpu(&device)?, m.n, &mut m.lu, &mut m.pivots)
        })
        .forms(cuda::columns_forms),
        matrix("gpu-blocked", Cuda, "strips and panels, a thread a number in updates", |config, m| {
            on_gpu(config, m, cuda::Form::Blocked)
        })
        .space(panels)
        .forms(cuda::blocked_forms),
        matrix("gpu-tiled", Cuda, "updates by tiles in shared memory, sums in registers", |config, m| {
            on_gpu(config, m, cuda::Form::Tiled)
        })
        .space(|_| tiles(128))
        .forms(cuda::tiled_forms),
        gpu_strips(),
    ]
}

fn tiles(panel: i64) -> Space {
    Space::none().axis("panel", &[32, 64, 128, 256], panel).axis("bm", &[64, 128], 64).axis("bn", &[64], 64)
}

/// What [`factorize`](super::factorize) runs on a GPU.
pub(super) fn gpu_strips() -> Row<Linpack> {
    matrix("gpu-strips", Cuda, "a kernel a strip of columns, whose blocks exchange messages", |config, m| {
        on_gpu(config, m, cuda::Form::Strips)
    })
    .space(|_| tiles(128).axis("blocks", &[16, 32, 64, 128], 64))
    .forms(cuda::strips_forms)
}

fn vector(
    name: &'static str,
    backend: BackendKind,
    summary: &'static str,
    implementation: Implementation,
) -> Row<Linpack> {
    Variant::new(name, backend, summary, Runnable::new(implementation).host_transfer(host_transfer), work)
        .tolerance(ROUNDED)
}

fn matrix(
    name: &'static str,
    backend: BackendKind,
    summary: &'static str,
    implementation: fn(&Config, &mut Matrix) -> Result<()>,
) -> Row<Linpack> {
    let run = Runnable::new(move |config: &Config, d: &mut Data| implementation(config, d.matrix()?));
    Variant::new(name, backend, summary, run.host_transfer(host_transfer), work).tolerance(RESIDUAL)
}

fn host_transfer(data: &mut Data) -> Option<HostTransfer<'_>> {
    Some(match data {
        Data::Saxpy(v) => HostTransfer { inputs: vec![&mut v.x, &mut v.y], outputs: vec![&mut v.z] },
        Data::Lu(m) => HostTransfer { inputs: vec![&mut m.a], outputs: vec![&mut m.lu, &mut m.pivots] },
    })
}

fn saxpy(name: &str, config: &Config, d: &mut Data) -> Result<()> {
    let Vectors { a, x, y, z } = d.vectors()?;
    let device = x.device().clone();
    cuda::saxpy(gpu(&device)?, name, config.get("threads")?, *a, cuda::Operands { x, y, z })
}

fn blocked(m: &mut Matrix, all_cores: bool) -> Result<()> {
    m.lu.copy_from(&m.a)?;
    let device = m.lu.device().clone();
    let cpu = device.cpu_side();
    let missing = || Error::value("device of a factorization", "a CPU", device.describe());
    let room = m.cpu.as_mut().ok_or_else(missing)?;
    let cores = all_cores.then_some(cpu);
    cpu::blocked(cpu.level(), cores, m.n, m.lu.cpu_mut(), m.pivots.cpu_mut(), room);
    Ok(())
}

fn on_gpu(config: &Config, m: &mut Matrix, form: cuda::Form) -> Result<()> {
    m.lu.copy_from(&m.a)?;
    let device = m.lu.device().clone();
    let missing = || Error::value("device of a factorization", "a GPU", device.describe());
    let room = m.cuda.as_mut().ok_or_else(missing)?;
    let factors = cuda::Factors { lu: &mut m.lu, pivots: &mut m.pivots, room };
    cuda::blocked(gpu(&device)?, config, form, m.n, factors)
}

/// SAXPY: two reads and a write. LU: the matrix read and the factors written once, whatever else a form
/// moves; 2/3 n³ operations.
fn work(p: &Problem) -> Work {
    match *p {
        Problem::Saxpy(n) => Work { bytes: 12.0 * n as f64, flops: 2.0 * n as f64 },
        Problem::Lu(n) => {
            let n = n as f64;
            Work { bytes: 16.0 * n * n, flops: 2.0 / 3.0 * n.powi(3) }
        }
    }
}

/// Each step passes over what is left of the matrix: beyond the caches 16 n³ / 3 bytes.
fn minutes(p: &Problem) -> Option<String> {
    matches!(p, Problem::Lu(4097..)).then(|| format!("{p}: a column after another would take minutes"))
}
