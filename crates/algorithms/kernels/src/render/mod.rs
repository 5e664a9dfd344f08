//! Pictures of volumes: X-ray images, maximum intensity, emission and absorption, lit surfaces.

mod blocks;
mod camera;
mod cpu;
mod cuda;
mod ladder;
mod ray;
pub mod reference;
mod scene;
mod variants;
mod voxels;

use rayspin_core::{Result, VolumeGrid, expect_shape};
use rayspin_device::{Array, Backend, Device};
use rayspin_tune::Config;

use blocks::Blocks;
pub use camera::{Camera, Lens};
use cpu::Input;
pub(crate) use cuda::builds;
pub use ladder::Render;
pub use scene::{Knot, Mode, Scene, Surface, Transfer};
pub use variants::{Implementation, Problem, variants};
use voxels::Spread;

/// Makes pictures of one volume `[z, y, x]`.
///
/// The volume is linear between the centres of voxels. In the outer half voxel of its box it has the value of
/// the nearest point between centres, and beyond the box there is nothing. A ray crosses planes of voxels
/// across its main axis, along which it passes voxels fastest:
///
/// ```text
/// ∫ g(f) ds ≈ ℓ Σ_k w_k g(f(m_k, b_k, c_k)),   m_k = (k + ½)/n − ½
/// ```
///
/// Each voxel of the main axis is cut into n cells ([`Scene::step`]). The ray is sampled in the middle of
/// each cell. For n = 1 this is the plane of the voxels' centres, where two of the three interpolations are
/// left. Here ℓ is the ray's length in a cell in mm, and w_k the part of the cell in the box. A constant
/// volume gives its value times the chord, whatever the direction.
///
/// ```
/// use rayspin_core::VolumeGrid;
/// use rayspin_device::{Array, Device};
/// use rayspin_kernels::render::{Camera, Lens, Mode, Renderer, Scene};
///
/// let device = Device::cpu()?;
/// let grid = VolumeGrid::new([6, 8, 10], [1.0, 2.0, 1.0], [0.0; 3])?;
/// let water = Array::from_vec(&device, &[6, 8, 10], vec![0.02; 480])?; // 1/mm
/// let renderer = Renderer::new(&grid, water)?;
/// let camera = Camera::new(Lens::Orthographic { width_mm: 4.0 }, [0.0, -90.0, 0.0], [0.0; 3], [0.0, 0.0, 1.0], [3, 4])?;
/// let scene = Scene::new(camera, Mode::XRay);
/// let mut picture = Array::zeros(&device, &scene.shape())?;
/// renderer.draw(&scene, &mut picture)?;
/// assert!((picture.to_vec()?[5] - 16.0 * 0.02).abs() < 1e-6); // 8 voxels of 2 mm
/// # Ok::<(), rayspin_core::Error>(())
/// ```
#[derive(Debug)]
pub struct Renderer {
    grid: VolumeGrid,
    device: Device,
    prepared: Prepared,
}

#[derive(Debug)]
enum Prepared {
    Cpu(Spread, Blocks),
    Cuda(Array<f32>, Box<cuda::Volume>),
}

impl Renderer {
    /// Pictures of a volume, made on the volume's device. The values must be finite.
    ///
    /// Errors: another shape than the grid's; memory; 2³⁰ voxels and more along an axis on a GPU.
    pub fn new(grid: &VolumeGrid, volume: Array<f32>) -> Result<Self> {
        expect_shape("volume", &grid.shape_zyx(), volume.shape())?;
        let device = volume.device().clone();
        let prepared = match device.backend() {
            Backend::Cpu(cpu) => {
                let size = grid.shape_xyz();
                Prepared::Cpu(Spread::new(cpu, volume.cpu(), size)?, Blocks::new(cpu, volume.cpu(), size)?)
            }
            Backend::Cuda(cuda) => {
                let prepared = Box::new(cuda::Volume::new(cuda, &volume)?);
                Prepared::Cuda(volume, prepared)
            }
        };
        Ok(Self { grid: *grid, device, prepared })
    }

    /// Bytes on the device, beside the volume and the picture, for a volume `[z, y, x]`.
    pub fn device_bytes(device: &Device, voxels: [u64; 3]) -> u64 {
        let blocks = voxels.iter().map(|n| n.div_ceil(blocks::SIDE as u64)).product::<u64>();
        let keys = 3 * blocks * size_of::<f32>() as u64;
        match device.backend() {
            Backend::Cpu(_) => keys + voxels::bytes(voxels),
            Backend::Cuda(_) => keys,
        }
    }

    /// The voxels.
    pub fn grid(&self) -> &VolumeGrid {
        &self.grid
    }

    /// Writes a picture of the shape [`Scene::shape`].
    ///
    /// Light of [`Mode::Volume`] is followed until 1/1024 of it is left. Samples are f32 on CPUs and GPUs.
    ///
    /// Errors: another shape or device; memory.
    pub fn draw(&self, scene: &Scene, picture: &mut Array<f32>) -> Result<()> {
        expect_shape("picture", &scene.shape(), picture.shape())?;
        crate::vector::expect_device("picture", &self.device, picture)?;
        match (self.device.backend(), &self.prepared) {
            (Backend::Cuda(cuda), Prepared::Cuda(volume, prepared)) => {
                let mut frame = cuda::Frame::new(&self.device, scene, &self.grid)?;
                let (_, best) = variants::best();
                let volume = cuda::PreparedVolume { voxels: volume, prepared };
                best.draw(cuda, &Config::default(), volume, &mut frame, picture)
            }
            (_, Prepared::Cpu(spread, blocks)) => {
                let input = Input { scene, grid: &self.grid, voxels: spread.voxels(), blocks };
                variants::best().0(self.device.cpu_side(), input, picture.cpu_mut())
            }
            _ => Err(rayspin_core::Error::value("renderer", "one for its own device", "another")),
        }
    }
}

/// The attenuation in 1/mm of a value in Hounsfield units, μ_water (1 + HU / 1000), at least 0. `water` is
/// the attenuation of water in 1/mm.
///
/// ```
/// use rayspin_kernels::render::attenuation;
///
/// assert_eq!(attenuation(-1024.0, 0.02), 0.0);
/// assert_eq!(attenuation(0.0, 0.02), 0.02);
/// ```
pub fn attenuation(hounsfield: f32, water: f32) -> f32 {
    (water * (1.0 + hounsfield / 1000.0)).max(0.0)
}

#[cfg(test)]
mod tests;
