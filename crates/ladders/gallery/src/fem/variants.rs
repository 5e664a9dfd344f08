//! The rows.

use rayspin_core::{Error, Result};
use rayspin_device::BackendKind::{self, Cpu, Cuda};
use rayspin_tune::variant::{Runnable, Variant, Work};
use rayspin_tune::{Config, HostTransfer, Row, Space, gpu};

use super::cuda::Product;
use super::{Data, Fem, MOST_SUMS, Problem, cpu, cuda, sparse};

/// Rounding of f32 after a few tens of steps, relative to the norm of the solution.
const TOLERANCE: f64 = 1e-5;

type Implementation = fn(&Config, &mut Data) -> Result<()>;

pub(super) fn rows() -> Vec<Row<Fem>> {
    vec![
        assembled("csr", Cpu, "the assembled matrix, an operation a loop, one thread", |_, d| {
            let matrix = d.matrix.as_ref().ok_or_else(|| Error::value("assembled matrix", "one", "none"))?;
            let vectors = d.room.vectors(&d.b, &mut d.u);
            cpu::plain(&d.problem, vectors, |d, q| cpu::rows(matrix, d, q));
            Ok(())
        }),
        row(
            "nodes",
            Cpu,
            "no matrix: a node's eight elements, one thread",
            |p| work(p, 12.0 + VECTORS),
            |_, d| {
                let (p, kappa) = (d.problem, d.kappa.cpu());
                cpu::plain(&p, d.room.vectors(&d.b, &mut d.u), |d, q| cpu::nodes(&p, kappa, d, q));
                Ok(())
            },
        ),
        row(
            "simd",
            Cpu,
            "vectors along x, three passes a step, one thread",
            |p| work(p, 48.0),
            |_, d| {
                let level = d.u.device().cpu_side().level();
                let vectors = d.room.vectors(&d.b, &mut d.u);
                cpu::fused(level, None, &d.problem, d.kappa.cpu(), vectors);
                Ok(())
            },
        ),
        row(
            "threads",
            Cpu,
            "the same on all cores",
            |p| work(p, 48.0),
            |_, d| {
                let device = d.kappa.device().clone();
                let cpu = device.cpu_side();
                let vectors = d.room.vectors(&d.b, &mut d.u);
                cpu::fused(cpu.level(), Some(cpu), &d.problem, d.kappa.cpu(), vectors);
                Ok(())
            },
        ),
        assembled("gpu-csr", Cuda, "the assembled matrix, a thread a row", |c, d| plain(Product::Rows, c, d))
            .forms(cuda::plain_forms),
        assembled("gpu-csr-lanes", Cuda, "several threads a row", |c, d| plain(Product::Lanes, c, d))
            .space(|_| Space::none().axis("lanes", &[2, 4, 8, 16, 32], 8))
            .forms(cuda::lanes_forms),
        row(
            "gpu-elements",
            Cuda,
            "no matrix: a thread an element, atomic sums",
            |p| work(p, 20.0 + VECTORS),
            |config, d| plain(Product::Elements, config, d),
        )
        .forms(cuda::plain_forms),
        row(
            "gpu-nodes",
            Cuda,
            "no matrix: a thread a node, no atomics",
            |p| work(p, 12.0 + VECTORS),
            |config, d| plain(Product::Nodes, config, d),
        )
        .forms(cuda::plain_forms),
        gpu_fused(),
    ]
}

/// What [`solve`](super::solve) runs on a GPU.
pub(super) fn gpu_fused() -> Row<Fem> {
    row(
        "gpu-fused",
        Cuda,
        "two kernels a step, planes in registers",
        |p| work(p, 44.0),
        |config, d| {
            let device = d.u.device().clone();
            let equations = cuda::Equations { problem: &d.problem, kappa: &d.kappa, b: &d.b, matrix: None };
            cuda::fused(gpu(&device)?, config, equations, &mut d.room, &mut d.u)
        },
    )
    .space(columns)
    .refuses(|p| {
        let blocks = (p.shape[2].div_ceil(64)) * (p.shape[1].div_ceil(4)) * (p.shape[0].div_ceil(128));
        (blocks > MOST_SUMS || p.shape[1] / 4 > 65_534)
            .then(|| format!("{p}: its blocks leave too many sums"))
    })
    .forms(cuda::fused_forms)
}

fn row(
    name: &'static str,
    backend: BackendKind,
    summary: &'static str,
    work: fn(&Problem) -> Work,
    implementation: Implementation,
) -> Row<Fem> {
    Variant::new(name, backend, summary, Runnable::new(implementation).host_transfer(host_transfer), work)
        .tolerance(TOLERANCE)
}

/// A row that needs the assembled matrix, which a run from the host makes anew: 21 numbers and columns a
/// node, and where its row begins.
fn assembled(
    name: &'static str,
    backend: BackendKind,
    summary: &'static str,
    implementation: Implementation,
) -> Row<Fem> {
    let run = Runnable::new(implementation).host_transfer(host_transfer).set_up(|p, d| {
        d.matrix = Some(sparse::Matrix::new(p, &d.host[0], d.u.device())?);
        Ok(())
    });
    Variant::new(name, backend, summary, run, |p| work(p, 8.0 * sparse::ROW as f64 + 12.0 + VECTORS))
        .tolerance(TOLERANCE)
        .refuses(sparse::refuses)
}

fn host_transfer(data: &mut Data) -> Option<HostTransfer<'_>> {
    Some(HostTransfer { inputs: vec![&mut data.kappa, &mut data.b], outputs: vec![&mut data.u] })
}

fn plain(product: Product, config: &Config, d: &mut Data) -> Result<()> {
    let device = d.u.device().clone();
    let equations =
        cuda::Equations { problem: &d.problem, kappa: &d.kappa, b: &d.b, matrix: d.matrix.as_ref() };
    cuda::plain(gpu(&device)?, product, config, equations, &mut d.room, &mut d.u)
}

/// Threads of a block, and planes that it goes up. Blocks leave a sum each, for which there is room.
fn columns(p: &Problem) -> Space {
    let planes = match p.shape[0] {
        512.. => 128,
        192.. => 32,
        _ => 16,
    };
    let planes: Vec<_> = [8, 16, 32, 64, 128].into_iter().filter(|&n| n >= planes / 2).collect();
    let default = planes.get(1).copied().unwrap_or(128);
    Space::none().axis("x", &[32, 64], 32).axis("y", &[2, 4, 8], 4).axis("planes", &planes, default).where_(
        |c| {
            let value = |name| c.find(name).unwrap_or(1);
            value("x") * value("y") <= 256
        },
    )
}

/// Bytes of a step without its product: two dot products (8 and 4), u and r (12 each), the direction (12).
const VECTORS: f64 = 48.0;

/// `bytes` a node and step; a product without matrix takes 8 · 6 operations, the rest 10.
fn work(p: &Problem, bytes: f64) -> Work {
    let steps = p.nodes() as f64 * p.iterations as f64;
    Work { bytes: bytes * steps, flops: 58.0 * steps }
}
