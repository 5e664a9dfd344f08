//! The rows: every variant of the maps of all voxels.

use rayspin_core::{C32, Error, Result};
use rayspin_device::{Array, Backend, BackendKind};

use super::{Problem, cpu, cuda};
use crate::variant::{Variant, Work};

/// Entry point of a variant: problem, correlation `[coil, coil, lag z, lag y, lag x]`, vector that fixes the
/// phase `[coil]`, maps `[set, coil, plane, y, x]` of the wanted planes (written).
pub type Implementation = fn(&Problem, &Array<C32>, &Array<C32>, &mut Array<C32>) -> Result<()>;

/// A residual of 1e-4, at which iteration ends, over the 0.2 by which a test's eigenvalues stand apart;
/// 6.9e-5 at most was measured.
const TOLERANCE: f64 = 5e-4;

/// Every variant: the CPU's, which also serves what a GPU's refuses, and the GPU's.
pub static VARIANTS: &[Variant<Problem, Implementation>] = &[
    Variant::new(
        "rows",
        BackendKind::Cpu,
        "lags summed axis by axis, subspace iteration that starts from the neighbouring voxel, one row a task",
        on_host as Implementation,
        work,
    )
    .tolerance(TOLERANCE),
    Variant::new(
        "gpu-tiles",
        BackendKind::Cuda,
        "lags summed axis by axis, matrices of a tile of voxels on the chip, a team of up to 32 lanes a voxel",
        on_gpu as Implementation,
        work,
    )
    .refuses(cuda::refuses)
    .forms(cuda::builds)
    .tolerance(TOLERANCE),
];

pub(super) fn on_host(
    problem: &Problem,
    correlation: &Array<C32>,
    phase: &Array<C32>,
    maps: &mut Array<C32>,
) -> Result<()> {
    let device = correlation.device().clone();
    let (correlation, phase) = (correlation.read()?, phase.read()?);
    maps.update(|maps| cpu::rows(device.cpu_side(), problem, &correlation, &phase, maps))
}

pub(super) fn on_gpu(
    problem: &Problem,
    correlation: &Array<C32>,
    phase: &Array<C32>,
    maps: &mut Array<C32>,
) -> Result<()> {
    match correlation.device().backend() {
        Backend::Cuda(cuda) => cuda::maps(cuda, problem, correlation, phase, maps),
        Backend::Cpu(_) => Err(Error::value("device", "a GPU", correlation.device().describe())),
    }
}

pub(super) fn work(p: &Problem) -> Work {
    let voxels = p.voxels() as f64;
    let coils = p.coils as f64;
    let pairs = coils * (coils + 1.0) / 2.0;
    let lags_x = (2 * p.reach_zyx[2] + 1) as f64;
    let block = (p.sets + 1) as f64;
    Work {
        bytes: 8.0 * voxels * coils * p.sets as f64,
        flops: voxels * 8.0 * (pairs * lags_x + 5.0 * block * coils * coils),
    }
}
