//! The rows: every variant of the maps of all voxels.

use rayspin_core::{C32, Error, Result};
use rayspin_device::{Array, Backend, BackendKind};

use super::{Problem, cpu, cuda};
use crate::variant::{Variant, Work};

/// Entry point of a variant: problem, coil images, vector that fixes the phase `[coil]`, maps of the wanted
/// planes (written).
pub type Implementation = fn(&Problem, &Array<C32>, &Array<C32>, &mut Array<C32>) -> Result<()>;

/// The iteration ends at a change of 1e-4, which bounds the rest where the second eigenvalue is at most half
/// the first. The tests' second eigenvalues are a few per cent, and leave 1.3e-6.
const TOLERANCE: f64 = 1e-4;

/// Every variant: the CPU's, which also serves what a GPU's refuses, and the GPU's.
pub static VARIANTS: &[Variant<Problem, Implementation>] = &[
    Variant::new(
        "rows",
        BackendKind::Cpu,
        "one row a task, a SIMD lane a voxel: window sums of the covariance, then power iteration",
        on_host as Implementation,
        work,
    )
    .tolerance(TOLERANCE),
    Variant::new(
        "gpu-tiles",
        BackendKind::Cuda,
        "window sums of some voxels at a time in memory, then a team of up to 32 lanes iterates for each voxel",
        on_gpu as Implementation,
        work,
    )
    .refuses(cuda::refuses)
    .forms(cuda::builds)
    .tolerance(TOLERANCE),
];

pub(super) fn on_host(
    problem: &Problem,
    images: &Array<C32>,
    reference: &Array<C32>,
    maps: &mut Array<C32>,
) -> Result<()> {
    let device = images.device().clone();
    let (images, reference) = (images.read()?, reference.read()?);
    maps.update(|maps| cpu::rows(device.cpu_side(), problem, &images, &reference, maps))
}

pub(super) fn on_gpu(
    problem: &Problem,
    images: &Array<C32>,
    reference: &Array<C32>,
    maps: &mut Array<C32>,
) -> Result<()> {
    match images.device().backend() {
        Backend::Cuda(cuda) => cuda::maps(cuda, problem, images, reference, maps),
        Backend::Cpu(_) => Err(Error::value("device", "a GPU", images.device().describe())),
    }
}

pub(super) fn work(p: &Problem) -> Work {
    let voxels = p.voxels() as f64;
    let coils = p.coils as f64;
    let pairs = coils * (coils + 1.0) / 2.0;
    let side = (2 * p.radius + 1) as f64;
    let window_rows = if p.shape_zyx[0] > 1 { side * side } else { side };
    Work {
        bytes: 16.0 * voxels * coils,
        flops: voxels * (pairs * 8.0 * (window_rows + 2.0) + 8.0 * coils * coils * 8.0),
    }
}
