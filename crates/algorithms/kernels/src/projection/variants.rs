//! The rows: every variant of the projectors.

use rayspin_core::{ProjectionGeometry, VolumeGrid};
use rayspin_device::BackendKind;

use super::Number;
use super::cpu::{self, Apply, Backproject};
use super::cuda;
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
    /// What a rate counts: samples on rays, a plane of voxels each; for back-projection voxels of views
    /// (updates).
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

/// One implementation.
pub enum Implementation<R> {
    /// On a CPU, that beside a GPU included.
    Cpu(CpuImplementation<R>),
    /// On a GPU, in f32.
    Cuda(CudaImplementation),
}

/// One implementation on a CPU.
pub struct CpuImplementation<R> {
    pub(super) forward: Apply<R>,
    pub(super) adjoint: Apply<R>,
    pub(super) backproject: Backproject<R>,
}

/// One implementation of some operations on a GPU.
pub struct CudaImplementation {
    pub(super) forward: Option<cuda::Apply>,
    pub(super) adjoint: Option<cuda::Apply>,
    pub(super) backproject: cuda::Backproject,
}

impl<R> Implementation<R> {
    /// Whether it has an implementation of an operation.
    pub(super) fn runs(&self, operation: Operation) -> bool {
        match (self, operation) {
            (Self::Cuda(implementation), Operation::Forward) => implementation.forward.is_some(),
            (Self::Cuda(implementation), Operation::Adjoint) => implementation.adjoint.is_some(),
            _ => true,
        }
    }
}

/// The variant that [`Projector`](super::Projector) runs on a CPU.
pub(super) fn best<R: Number>() -> CpuImplementation<R> {
    cpu::columns()
}

/// Every variant, the CPU's first, slowest first each.
pub fn variants<R: Number>() -> Vec<Variant<Problem, Implementation<R>>> {
    let single = size_of::<R>() == 4;
    // f32 sums of as many terms as a volume has planes, and weights from places that are rounded to f32 in a
    // vector.
    let tolerance = if single { 1e-5 } else { 1e-12 };
    let row = |name, backend, summary, implementation| {
        Variant::new(name, backend, summary, implementation, work::<R>).tolerance(tolerance)
    };
    let on_cpu = |name, summary, implementation| {
        row(name, BackendKind::Cpu, summary, Implementation::Cpu(implementation))
    };
    let on_gpu = |name, summary, implementation| {
        row(name, BackendKind::Cuda, summary, Implementation::Cuda(implementation)).forms(cuda::builds)
    };
    let mut rows = vec![
        on_cpu("rays", "one thread, ray by ray or voxel by voxel, in double precision", cpu::plain()),
        on_cpu("cores", "all cores: a ray, or a plane of voxels, belongs to one of them", cpu::cores()),
        on_cpu(
            "columns",
            "columns of voxels and pixels along z are mixed once and resampled in vectors",
            cpu::columns(),
        ),
    ];
    if single {
        rows.push(on_gpu(
            "gpu-rays",
            "one ray or voxel a thread; the transpose adds to voxels atomically",
            CudaImplementation {
                forward: Some(cuda::rays),
                adjoint: Some(cuda::scatter),
                backproject: cuda::voxels,
            },
        ));
        rows.push(on_gpu(
            "gpu-columns",
            "16 voxels along z a thread, which share columns and mixed pixels",
            CudaImplementation { forward: None, adjoint: None, backproject: cuda::columns },
        ));
        let textured = CudaImplementation {
            forward: Some(cuda::textured_rays),
            adjoint: None,
            backproject: cuda::textured_columns,
        };
        // The texture unit keeps 8 bits of a place between two numbers.
        rows.push(
            on_gpu("gpu-texture", "between voxels and pixels by the texture unit, to 1/256", textured)
                .tolerance(1e-2),
        );
        rows.push(on_gpu(
            "gpu-lines",
            "columns of voxels and pixels along z are mixed once in shared memory; the transpose has no atomic sums",
            CudaImplementation {
                forward: Some(cuda::lines::forward),
                adjoint: Some(cuda::lines::adjoint),
                backproject: cuda::lines::backproject,
            },
        ));
    }
    rows
}

/// Volume and projections once. Four multiply-adds a sample or update.
fn work<R>(problem: &Problem) -> Work {
    let size = size_of::<R>() as f64;
    let voxels: f64 = problem.grid.shape_zyx().iter().map(|&n| n as f64).product();
    let pixels: f64 = problem.geometry.shape().iter().map(|&n| n as f64).product();
    Work { bytes: size * (voxels + pixels), flops: 8.0 * problem.items() }
}
