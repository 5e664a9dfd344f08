//! Line integrals of volumes, their transpose, and voxel-driven back-projection: the projectors of CT.

mod cpu;
mod cuda;
mod ladder;
mod line;
mod matrix;
pub mod reference;
mod variants;

pub use cpu::Scan;
use cpu::resample::Resample;
pub(crate) use cuda::builds;
pub use ladder::Projection;
use rayspin_core::{Error, ProjectionGeometry, Result, VolumeGrid, expect_shape};
use rayspin_device::{Array, Backend, Cuda, Device};

use crate::concrete::{same_mut, same_ref};
pub use variants::{CpuImplementation, CudaImplementation, Implementation, Operation, Problem, variants};

/// The weights of views in [`Projector::backproject`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Weighting {
    /// Every view counts alike.
    Even,
    /// Rays from a point: the square of the magnification, (source to detector / source to voxel)², both
    /// along the normal of the detector. This is the weight of filtered back-projection of fan and cone beams
    /// with a flat detector. Parallel beams: 1.
    Magnification,
}

/// Real numbers that volumes and projections have: `f32`, and on a CPU `f64`.
pub trait Number: Resample + rayspin_device::Element {}

impl Number for f32 {}
impl Number for f64 {}

/// The line integrals of a volume `[z, y, x]` along the rays of a scan, `[view, row, column]`, by Joseph's
/// method.
///
/// ```text
/// p(ray) = ℓ Σ_i w_i f(i, b_i, c_i)
/// ```
///
/// i runs over the planes of voxels across the ray's main axis, along which it passes voxels fastest. The ray
/// crosses plane i at (b_i, c_i), where f is linear between four voxels and 0 outside the volume. Here ℓ is
/// the ray's length between two planes in mm. The weight w_i is the part of the interval around plane i that
/// lies between source and pixel: 1 except at the ray's ends. If f is an attenuation in 1/mm, p has no unit.
///
/// [`adjoint`](Self::adjoint) is the transpose with the same weights. [`backproject`](Self::backproject) is
/// not: each voxel reads the place of the detector on which its centre falls, as filtered back-projection
/// does.
///
/// P. M. Joseph, *An improved algorithm for reprojecting rays through pixel images*, IEEE Trans Med Imaging
/// 1:192, 1982.
///
/// ```
/// use rayspin_core::{Detector, Orbit, ProjectionGeometry, VolumeGrid};
/// use rayspin_device::{Array, Device};
/// use rayspin_kernels::projection::Projector;
///
/// let device = Device::cpu()?;
/// let detector = Detector { rows: 1, columns: 9, pitch_mm: [1.0, 1.0], radius_mm: None };
/// let geometry = ProjectionGeometry::orbit(detector, &Orbit::default().turn(4))?;
/// let grid = VolumeGrid::new([1, 8, 8], [1.0; 3], [0.0; 3])?;
/// let projector = Projector::new(&device, &geometry, &grid)?;
/// let water = Array::from_vec(&device, &[1, 8, 8], vec![0.02f32; 64])?; // 1/mm
/// let mut projections = Array::zeros(&device, &[4, 1, 9])?;
/// projector.forward(&water, &mut projections)?;
/// assert!((projections.to_vec()?[4] - 8.0 * 0.02).abs() < 1e-6); // the middle ray, 8 mm long
/// # Ok::<(), rayspin_core::Error>(())
/// ```
#[derive(Debug)]
pub struct Projector {
    device: Device,
    geometry: ProjectionGeometry,
    grid: VolumeGrid,
    on_gpu: Option<cuda::Plan>,
}

impl Projector {
    /// A projector for the rays of `geometry` through the voxels of `grid`.
    ///
    /// Errors: sizes of 2³⁰ and more on a GPU; memory.
    pub fn new(device: &Device, geometry: &ProjectionGeometry, grid: &VolumeGrid) -> Result<Self> {
        let on_gpu = match device.backend() {
            Backend::Cpu(_) => None,
            Backend::Cuda(_) => Some(cuda::Plan::new(device, Scan { geometry, grid })?),
        };
        Ok(Self { device: device.clone(), geometry: geometry.clone(), grid: *grid, on_gpu })
    }

    /// Bytes on the device, beside arrays, of a projector that runs on `[view, row, column]` projections and
    /// `[z, y, x]` voxels.
    pub fn device_bytes(device: &Device, projections: [u64; 3], voxels: [u64; 3]) -> u64 {
        match device.backend() {
            Backend::Cpu(_) => cpu::bytes(projections, voxels),
            Backend::Cuda(_) => cuda::bytes(projections, voxels),
        }
    }

    /// The same for back-projection alone, of parallel beams or others. A CPU needs less for it.
    pub fn backproject_bytes(
        device: &Device,
        parallel: bool,
        projections: [u64; 3],
        voxels: [u64; 3],
    ) -> u64 {
        match device.backend() {
            Backend::Cpu(_) => cpu::backproject_bytes(parallel, projections, voxels),
            Backend::Cuda(_) => Self::device_bytes(device, projections, voxels),
        }
    }

    /// The rays.
    pub fn geometry(&self) -> &ProjectionGeometry {
        &self.geometry
    }

    /// The voxels.
    pub fn grid(&self) -> &VolumeGrid {
        &self.grid
    }

    fn check<R: Number>(&self, volume: &Array<R>, projections: &Array<R>) -> Result<()> {
        expect_shape("volume", &self.grid.shape_zyx(), volume.shape())?;
        expect_shape("projections", &self.geometry.shape(), projections.shape())?;
        crate::vector::expect_device("volume", &self.device, volume)?;
        crate::vector::expect_device("projections", &self.device, projections)
    }

    fn scan(&self) -> Scan<'_> {
        Scan { geometry: &self.geometry, grid: &self.grid }
    }

    /// Runs an operation on this device.
    ///
    /// Errors: f64 on a GPU.
    fn run<R: Number>(
        &self,
        from: &Array<R>,
        to: &mut Array<R>,
        on_cpu: impl FnOnce(CpuImplementation<R>, &[R], &mut [R]) -> Result<()>,
        on_gpu: impl FnOnce(&Cuda, &cuda::Plan, &Array<f32>, &mut Array<f32>) -> Result<()>,
    ) -> Result<()> {
        let (Backend::Cuda(cuda), Some(plan)) = (self.device.backend(), &self.on_gpu) else {
            return on_cpu(variants::best::<R>(), from.cpu(), to.cpu_mut());
        };
        match (same_ref(from), same_mut(to)) {
            (Some(from), Some(to)) => on_gpu(cuda, plan, from, to),
            _ => Err(Error::value("numbers of a projector on a GPU", "f32", "f64")),
        }
    }

    /// Writes the line integrals of a volume `[z, y, x]` to projections `[view, row, column]`.
    ///
    /// Errors: shapes, devices, memory; f64 on a GPU.
    pub fn forward<R: Number>(&self, volume: &Array<R>, projections: &mut Array<R>) -> Result<()> {
        self.check(volume, projections)?;
        let on_cpu = |implementation: CpuImplementation<R>, from: &[R], to: &mut [R]| {
            (implementation.forward)(self.device.cpu_side(), self.scan(), from, to)
        };
        self.run(volume, projections, on_cpu, cuda::forward)
    }

    /// Writes the transpose of [`forward`](Self::forward) of projections to a volume. On a GPU the order of
    /// sums may differ from run to run where the columns of the detector are not parallel to z, or there are
    /// few slices.
    ///
    /// Errors: as [`forward`](Self::forward).
    pub fn adjoint<R: Number>(&self, projections: &Array<R>, volume: &mut Array<R>) -> Result<()> {
        self.check(volume, projections)?;
        let on_cpu = |implementation: CpuImplementation<R>, from: &[R], to: &mut [R]| {
            (implementation.adjoint)(self.device.cpu_side(), self.scan(), from, to)
        };
        self.run(projections, volume, on_cpu, cuda::adjoint)
    }

    /// Writes to each voxel Σ over views of the weight times the projection at the place on which the voxel's
    /// centre falls. Projections are linear between pixels and 0 beyond the detector.
    ///
    /// Errors: as [`forward`](Self::forward); a curved detector on a GPU.
    pub fn backproject<R: Number>(
        &self,
        weighting: Weighting,
        projections: &Array<R>,
        volume: &mut Array<R>,
    ) -> Result<()> {
        self.check(volume, projections)?;
        let on_cpu = |implementation: CpuImplementation<R>, from: &[R], to: &mut [R]| {
            (implementation.backproject)(self.device.cpu_side(), self.scan(), weighting, from, to)
        };
        let on_gpu = |cuda: &Cuda, plan: &cuda::Plan, from: &Array<f32>, to: &mut Array<f32>| {
            cuda::fastest_backproject(cuda, plan, weighting, from, to)
        };
        self.run(projections, volume, on_cpu, on_gpu)
    }
}

#[cfg(test)]
mod tests;
