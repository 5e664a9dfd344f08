//! The rows: every variant of the projectors.

use rayspin_core::{ProjectionGeometry, VolumeGrid};
use rayspin_device::BackendKind;

use super::Number;
use super::cpu::{self, Apply, Backproject};
use crate::variant::{Variant, Work};

/// What is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Line integrals of a volume.
    Forward,
    /// Their transpose.
    Adjoint,
    /// Voxel-driven back-projection.
    Backproject,
}

/// An operation on a scan.
#[derive(Debug, Clone, PartialEq)]
pub struct Problem {
    /// Which one.
    pub operation: Operation,
    /// The rays.
    pub geometry: ProjectionGeometry,
    /// The voxels.
    pub grid: VolumeGrid,
}

impl Problem {
    /// What a rate counts: samples on rays, a plane of voxels each; for back-projection voxels of views (updates).
    pub fn items(&self) -> f64 {
        let [views, rows, columns] = self.geometry.shape().map(|n| n as f64);
        let voxels: f64 = self.grid.shape_zyx().iter().map(|&n| n as f64).product();
        match self.operation {
            Operation::Backproject => views * voxels,
            Operation::Forward | Operation::Adjoint => {
                let planes = self.grid.shape_xyz()[..2].iter().copied().max().unwrap_or(1);
                views * rows * columns * planes as f64
            }
        }
    }
}

/// One implementation on a CPU.
pub struct CpuLaunch<R> {
    pub(super) forward: Apply<R>,
    pub(super) adjoint: Apply<R>,
    pub(super) backproject: Backproject<R>,
}

impl<R> CpuLaunch<R> {
    fn new((forward, adjoint, backproject): (Apply<R>, Apply<R>, Backproject<R>)) -> Self {
        Self { forward, adjoint, backproject }
    }
}

/// The variant that [`Projector`](super::Projector) runs on a CPU.
pub(super) fn best<R: Number>() -> CpuLaunch<R> {
    CpuLaunch::new(cpu::columns())
}

/// Every variant, slowest first.
pub fn variants<R: Number>() -> Vec<Variant<Problem, CpuLaunch<R>>> {
    // f32 sums of as many terms as a volume has planes, and weights from places that are rounded to f32 in a vector.
    let tolerance = if size_of::<R>() == 8 { 1e-12 } else { 4e-6 };
    let row = |name, summary, launch| {
        Variant::new(name, BackendKind::Cpu, summary, launch, work::<R>).tolerance(tolerance)
    };
    vec![
        row(
            "rays",
            "one thread, ray by ray or voxel by voxel, in double precision",
            CpuLaunch::new(cpu::plain()),
        ),
        row(
            "cores",
            "all cores: a ray, or a plane of voxels, belongs to one of them",
            CpuLaunch::new(cpu::cores()),
        ),
        row(
            "columns",
            "columns of voxels and pixels along z are mixed once and resampled in vectors",
            CpuLaunch::new(cpu::columns()),
        ),
    ]
}

/// Volume and projections once. Four multiply-adds a sample or update.
fn work<R>(problem: &Problem) -> Work {
    let size = size_of::<R>() as f64;
    let voxels: f64 = problem.grid.shape_zyx().iter().map(|&n| n as f64).product();
    let pixels: f64 = problem.geometry.shape().iter().map(|&n| n as f64).product();
    Work { bytes: size * (voxels + pixels), flops: 8.0 * problem.items() }
}
