//! The rows: every variant of pictures.

use rayspin_core::VolumeGrid;
use rayspin_device::BackendKind;

use super::cpu::{self, Draw};
use super::cuda;
use super::{Mode, Scene};
use crate::variant::{Variant, Work};

/// A picture of a volume.
#[derive(Debug, Clone, PartialEq)]
pub struct Problem {
    /// The picture.
    pub scene: Scene,
    /// The voxels.
    pub grid: VolumeGrid,
}

impl Problem {
    /// What a rate counts: the cells of the longest axis for each pixel, whichever of them a ray meets.
    pub fn items(&self) -> f64 {
        let pixels: f64 = self.scene.camera.shape().iter().map(|&n| n as f64).product();
        let shape = self.grid.shape_xyz();
        let cells = (0..3).map(|axis| shape[axis] as f64 * f64::from(self.scene.samples[axis]));
        pixels * cells.fold(0.0, f64::max)
    }
}

/// One implementation.
#[derive(Clone, Copy)]
pub enum Implementation {
    /// On a CPU, that beside a GPU included.
    Cpu(CpuImplementation),
    /// On a GPU.
    Cuda(cuda::CudaImplementation),
}

/// An implementation on a CPU.
#[derive(Clone, Copy)]
pub struct CpuImplementation {
    pub(super) draw: Draw,
    /// Whether it reads a copy with gaps.
    pub(super) spread: bool,
}

/// The variants that [`Renderer`](super::Renderer) runs.
pub(super) fn best() -> (Draw, cuda::CudaImplementation) {
    (cpu::skipping, cuda::CudaImplementation { texture: false, skip: true })
}

/// Every variant for pictures of a mode, the CPU's first, slowest first each.
pub fn variants(mode: &Mode) -> Vec<Variant<Problem, Implementation>> {
    // Places are f32, and sums have as many terms as a ray has cells. Light is followed until 1/1024 is left.
    // A ray that grazes a surface may meet or miss it: the error of surfaces is the share of pixels that
    // differ.
    let exact = match mode {
        Mode::XRay | Mode::Maximum { .. } => 2e-5,
        Mode::Volume(_) => 2e-3,
        Mode::Surface(_) => 1e-2,
    };
    // The texture unit keeps 8 bits of a place between two numbers.
    let rounded = if matches!(mode, Mode::Surface(_)) { 5e-2 } else { 1e-2 };
    let row = |name, backend, summary, implementation| {
        Variant::new(name, backend, summary, implementation, work).tolerance(exact)
    };
    let on_cpu = |name, summary, spread, draw| {
        row(name, BackendKind::Cpu, summary, Implementation::Cpu(CpuImplementation { draw, spread }))
    };
    let on_gpu = |name, summary, texture, skip| {
        row(
            name,
            BackendKind::Cuda,
            summary,
            Implementation::Cuda(cuda::CudaImplementation { texture, skip }),
        )
        .forms(cuda::builds)
        .space(|_| cuda::space())
    };
    vec![
        on_cpu("rays", "one thread, ray by ray, in double precision", false, cpu::alone),
        on_cpu("cores", "all cores, a row of pixels each", false, cpu::cores),
        on_cpu(
            "packets",
            "vectors of rays; the rays of a tile share a layer of voxels in the cache",
            true,
            cpu::packets,
        ),
        on_cpu("packets-skip", "the same without layers in which a tile meets nothing", true, cpu::skipping),
        on_gpu("gpu-rays", "one ray a thread, four reads a sample", false, false),
        on_gpu("gpu-texture", "samples by the texture unit between eight voxels, to 1/256", true, false)
            .tolerance(rounded),
        on_gpu(
            "gpu-texture-skip",
            "the same without blocks of voxels in which a ray meets nothing",
            true,
            true,
        )
        .tolerance(rounded),
        on_gpu("gpu-rays-skip", "four reads a sample, without empty blocks", false, true),
    ]
}

/// Volume and picture once. Three interpolations of two operations for each cell, and one more.
fn work(problem: &Problem) -> Work {
    let voxels: f64 = problem.grid.shape_zyx().iter().map(|&n| n as f64).product();
    let numbers: f64 = problem.scene.shape().iter().map(|&n| n as f64).product();
    Work { bytes: size_of::<f32>() as f64 * (voxels + numbers), flops: 8.0 * problem.items() }
}
