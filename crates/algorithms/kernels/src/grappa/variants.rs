//! The rows: every variant of the sums of lines.

use rayspin_core::{C32, Error, Result};
use rayspin_device::{Array, Backend, BackendKind};

use super::{Interpolation, Problem, cpu, cuda};
use crate::variant::{Variant, Work};

/// Entry point of a variant: problem, interpolation, k-space `[coil, z, y, x]`, lines `[line, coil, x]`
/// (written).
pub type Implementation = fn(&Problem, &Interpolation, &Array<C32>, &mut Array<C32>) -> Result<()>;

/// Rounding of sums of some hundred products; 9.3e-8 at most was measured.
const TOLERANCE: f64 = 2e-6;

/// Every variant: the CPU's and the GPU's.
pub static VARIANTS: &[Variant<Problem, Implementation>] = &[
    Variant::new(
        "lines",
        BackendKind::Cpu,
        "one line a task; a weight times a shifted source line added to the target line, in SIMD",
        on_host as Implementation,
        work,
    )
    .tolerance(TOLERANCE),
    Variant::new(
        "gpu-lines",
        BackendKind::Cuda,
        "one line of four coils a block, a thread a position along it",
        on_gpu as Implementation,
        work,
    )
    .forms(cuda::builds)
    .tolerance(TOLERANCE),
];

pub(super) fn on_host(
    problem: &Problem,
    by: &Interpolation,
    kspace: &Array<C32>,
    out: &mut Array<C32>,
) -> Result<()> {
    let device = kspace.device().clone();
    let kspace = kspace.read()?;
    out.update(|out| cpu::lines(device.cpu_side(), problem, by, &kspace, out))
}

fn on_gpu(problem: &Problem, by: &Interpolation, kspace: &Array<C32>, out: &mut Array<C32>) -> Result<()> {
    match kspace.device().backend() {
        Backend::Cuda(cuda) => cuda::lines(cuda, problem, by, kspace, out),
        Backend::Cpu(_) => Err(Error::value("device", "a GPU", kspace.device().describe())),
    }
}

/// For one line of 20 sources a coil, as two-dimensional kernels have.
fn work(p: &Problem) -> Work {
    let (coils, nx) = (p.coils as f64, p.shape_zyx[2] as f64);
    Work { bytes: 8.0 * nx * coils * 21.0, flops: 8.0 * nx * coils * coils * 20.0 }
}
