//! Projectors on a CPU.

mod backproject;
mod columns;
mod rays;
pub(super) mod resample;

use rayspin_core::{ProjectionGeometry, Result, VolumeGrid};
use rayspin_device::Cpu;

use super::{CpuImplementation, Weighting};
use resample::Resample;

/// Where rays and voxels are.
#[derive(Debug, Clone, Copy)]
pub struct Scan<'a> {
    pub(super) geometry: &'a ProjectionGeometry,
    pub(super) grid: &'a VolumeGrid,
}

/// Bytes of what the fastest variant holds beside its arrays, for `[view, row, column]` projections and `[z,
/// y, x]` voxels, in f32.
pub(super) fn bytes(projections: [u64; 3], voxels: [u64; 3]) -> u64 {
    columns::bytes(projections, voxels)
}

/// The same for back-projection alone, of parallel beams or others.
pub(super) fn backproject_bytes(parallel: bool, projections: [u64; 3], voxels: [u64; 3]) -> u64 {
    backproject::bytes(parallel, projections, voxels)
}

/// From a volume to projections, or back; the output is overwritten.
///
/// Errors: memory.
pub(super) type Apply<R> = fn(&Cpu, Scan<'_>, &[R], &mut [R]) -> Result<()>;

/// From projections to a volume, which is overwritten.
///
/// Errors: memory.
pub(super) type Backproject<R> = fn(&Cpu, Scan<'_>, Weighting, &[R], &mut [R]) -> Result<()>;

/// One thread, ray by ray; adjoint rays are scattered.
pub(super) fn plain<R: Resample>() -> CpuImplementation<R> {
    let (forward, adjoint) = (rays::forward_alone, rays::adjoint_alone);
    CpuImplementation { forward, adjoint, backproject: backproject::alone }
}

/// All cores: a ray, or a plane of voxels, belongs to one of them.
pub(super) fn cores<R: Resample>() -> CpuImplementation<R> {
    CpuImplementation { forward: rays::forward, adjoint: rays::adjoint, backproject: backproject::cores }
}

/// Columns of voxels and of pixels are resampled together.
pub(super) fn columns<R: Resample>() -> CpuImplementation<R> {
    let (forward, adjoint) = (columns::forward, columns::adjoint);
    CpuImplementation { forward, adjoint, backproject: backproject::columns }
}
