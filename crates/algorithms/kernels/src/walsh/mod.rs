//! Coil sensitivities from coil images by local principal components (Walsh, Gmitro, Marcellin,
//! *Adaptive reconstruction of phased array MR imagery*, Magn Reson Med 43:682, 2000).

mod cpu;
mod cuda;
mod reference;
#[cfg(test)]
mod tests;
mod variants;

use std::ops::Range;

use rayspin_core::{C32, C64, Error, Result, expect_shape, format_shape};
use rayspin_device::{Array, Backend, Device};

use crate::variant::Work;

pub(crate) use cuda::builds;
pub use reference::maps as reference_maps;
pub use variants::{Implementation, VARIANTS};
use variants::{on_gpu, on_host, work};

/// Half-width of the window along each axis, in voxels: 3 gives the 7-voxel windows of common practice.
pub const DEFAULT_RADIUS: usize = 3;

/// The sizes of a problem: `[coil, z, y, x]` with z = 1 in 2-D.
#[derive(Debug, Clone, Copy)]
pub struct Problem {
    /// Number of coils.
    pub coils: usize,
    /// Image shape.
    pub shape_zyx: [usize; 3],
    /// The first wanted plane of the image, and the number of wanted planes.
    pub planes: [usize; 2],
    /// Window half-width.
    pub radius: usize,
}

impl Problem {
    /// The problem of all planes of an image.
    pub fn whole(coils: usize, shape_zyx: [usize; 3], radius: usize) -> Self {
        Self { coils, shape_zyx, planes: [0, shape_zyx[0]], radius }
    }

    /// Number of voxels in the wanted planes.
    fn voxels(&self) -> usize {
        self.planes[1] * self.shape_zyx[1] * self.shape_zyx[2]
    }

    /// Whether the image has the planes.
    fn expect_planes(&self) -> Result<()> {
        let [first, count] = self.planes;
        if first.checked_add(count).is_some_and(|end| end <= self.shape_zyx[0]) {
            return Ok(());
        }
        let expected = format!("planes within 0..{}", self.shape_zyx[0]);
        Err(Error::value("planes of maps", expected, format!("{count} from {first} on")))
    }
}

/// The variant that serves a problem on a device.
fn best(device: &Device, problem: &Problem) -> Implementation {
    if on_kernels(device, problem) { on_gpu } else { on_host }
}

/// Whether a GPU's kernels compute a problem.
fn on_kernels(device: &Device, problem: &Problem) -> bool {
    match device.backend() {
        Backend::Cuda(cuda) => cuda::refuses(problem).is_none() && cuda::offers(cuda, problem),
        Backend::Cpu(_) => false,
    }
}

/// Sensitivities c(x) as the dominant eigenvector of the local coil covariance
/// R(x) = Σ_{x' ∈ window(x)} m(x') m(x')ᴴ, with Σ_j |c_j(x)|² = 1.
///
/// `images` is `[coil, z, y, x]` or `[coil, y, x]`; the result has its shape. `radius` is the window's
/// half-width in voxels (windows are cut at the border). An eigenvector's phase is free: here the component
/// along the dominant eigenvector of the [`Covariance`] of the whole image is real and positive, which keeps
/// maps smooth and leaves the image its own phase. The maps are 0 where a window holds no signal at all. If
/// the two largest eigenvalues are within a fifth of each other, the iteration may end at its limit. Then
/// c(x) is the eigenvector of a matrix that differs from R by up to 2 % of λ_max.
///
/// Errors: a rank other than 3 or 4, or no coils.
///
/// ```
/// use rayspin_core::C32;
/// use rayspin_device::{Array, Device};
/// use rayspin_kernels::walsh::maps;
///
/// let device = Device::cpu()?;
/// // Two coils with the sensitivities 0.6 and 0.8i see an object of brightness 5.
/// let coils = (0..2 * 64).map(|i| if i < 64 { C32::from(3.0) } else { C32::new(0.0, 4.0) }).collect();
/// let found = maps(&Array::from_vec(&device, &[2, 8, 8], coils)?, 3)?.to_vec()?; // [coil, y, x]
/// assert!((found[10].norm() - 0.6).abs() < 1e-3 && (found[74].norm() - 0.8).abs() < 1e-3);
/// let turn = found[74] / found[10];
/// assert!((turn - C32::new(0.0, 0.8 / 0.6)).norm() < 1e-2);
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn maps(images: &Array<C32>, radius: usize) -> Result<Array<C32>> {
    let planes = 0..zyx(images)?.1[0];
    let mut whole = Covariance::new(images.device(), images.shape()[0])?;
    whole.add(images)?;
    let reference = whole.principal()?;
    drop(whole);
    slab(images, planes, radius, &reference)?.reshape(images.shape())
}

/// [`maps`] of some planes along z, `[coil, planes, y, x]`, from coil images of a slab `[coil, z, y, x]` that
/// holds these planes and, on either side, `radius` more or as many as the image has. `reference` `[coil]`
/// fixes the phase: the principal vector of the whole image's [`Covariance`]. Each plane has the bits that
/// [`maps`] gives it with that reference.
///
/// Errors: as [`maps`], planes that are not in the slab, a reference of other coils or of another device.
///
/// ```
/// use rayspin_core::C32;
/// use rayspin_device::{Array, Device};
/// use rayspin_kernels::walsh::{Covariance, maps, slab};
///
/// let device = Device::cpu()?;
/// let images = (0..2 * 5 * 4 * 4).map(|i| C32::new((i % 7) as f32, (i % 3) as f32)).collect();
/// let images = Array::from_vec(&device, &[2, 5, 4, 4], images)?; // [coil, z, y, x]
/// let mut covariance = Covariance::new(&device, 2)?;
/// covariance.add(&images)?;
/// let part = slab(&images, 2..3, 1, &covariance.principal()?)?.to_vec()?; // one plane
/// let whole = maps(&images, 1)?.to_vec()?;
/// assert_eq!((&part[..16], &part[16..]), (&whole[32..48], &whole[112..128]));
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn slab(
    images: &Array<C32>,
    planes: Range<usize>,
    radius: usize,
    reference: &Array<C32>,
) -> Result<Array<C32>> {
    let (coils, shape_zyx) = zyx(images)?;
    expect_shape("phase reference of coils", &[coils], reference.shape())?;
    crate::fft::check_device("phase reference of coils", images.device(), reference.device())?;
    let problem = Problem { coils, shape_zyx, planes: [planes.start, planes.len()], radius };
    problem.expect_planes()?;
    let mut out = Array::zeros(images.device(), &[coils, planes.len(), shape_zyx[1], shape_zyx[2]])?;
    best(images.device(), &problem)(&problem, images, reference, &mut out)?;
    Ok(out)
}

/// Coils and image of `[coil, z, y, x]` or `[coil, y, x]`.
fn zyx(images: &Array<C32>) -> Result<(usize, [usize; 3])> {
    match *images.shape() {
        [0, _, _] | [0, _, _, _] => Err(Error::value("coil images", "at least one coil", 0)),
        [coils, y, x] => Ok((coils, [1, y, x])),
        [coils, z, y, x] => Ok((coils, [z, y, x])),
        ref shape => Err(Error::Shape {
            what: "coil images".into(),
            expected: "[coil, y, x] or [coil, z, y, x]".into(),
            found: format_shape(shape),
        }),
    }
}

/// Σ_x m(x) m(x)ᴴ of coil images, added up part by part.
///
/// ```
/// use rayspin_core::C32;
/// use rayspin_device::{Array, Device};
/// use rayspin_kernels::walsh::Covariance;
///
/// let device = Device::cpu()?;
/// let mut covariance = Covariance::new(&device, 2)?;
/// let images = Array::from_vec(&device, &[2, 2], [3.0, 6.0, 4.0, 8.0].map(C32::from).to_vec())?; // [coil, x]
/// covariance.add(&images)?;
/// let principal = covariance.principal()?.to_vec()?;
/// assert!((principal[0].norm() - 0.6).abs() < 1e-4 && (principal[1].norm() - 0.8).abs() < 1e-4);
/// # Ok::<(), rayspin_core::Error>(())
/// ```
#[derive(Debug)]
pub struct Covariance {
    device: Device,
    coils: usize,
    sums: Sums,
}

/// Lower triangles `[pair]`.
#[derive(Debug)]
enum Sums {
    Host(Vec<C64>),
    /// One sum for each block of threads.
    Gpu(Array<C64>),
}

impl Covariance {
    /// A covariance of no voxels yet. Errors: no coils, memory.
    pub fn new(device: &Device, coils: usize) -> Result<Self> {
        if coils == 0 {
            return Err(Error::value("coil images", "at least one coil", 0));
        }
        let sums = match device.backend() {
            Backend::Cuda(_) if cuda::refuses_coils(coils).is_none() => {
                Sums::Gpu(cuda::no_sums(device, coils)?)
            }
            _ => Sums::Host(vec![C64::ZERO; pairs(coils)]),
        };
        Ok(Self { device: device.clone(), coils, sums })
    }

    /// Adds the voxels of `images` `[coil, …]`. Errors: other coils, another device, or of the device.
    pub fn add(&mut self, images: &Array<C32>) -> Result<()> {
        expect_shape("coils of images", &[self.coils], &images.shape()[..1.min(images.shape().len())])?;
        crate::fft::check_device("coil images", &self.device, images.device())?;
        match (&mut self.sums, self.device.backend()) {
            (Sums::Gpu(sums), Backend::Cuda(cuda)) => cuda::add(cuda, self.coils, images, sums),
            (Sums::Gpu(_), Backend::Cpu(_)) => Err(Error::value("device", "a GPU", self.device.describe())),
            (Sums::Host(sums), _) => {
                cpu::add(self.device.cpu_side(), self.coils, &images.read()?, sums);
                Ok(())
            }
        }
    }

    /// The dominant eigenvector `[coil]`, of norm 1; zeros if there was no signal. Errors: a failure of the
    /// device.
    pub fn principal(&self) -> Result<Array<C32>> {
        match (&self.sums, self.device.backend()) {
            (Sums::Gpu(sums), Backend::Cuda(cuda)) => cuda::principal(cuda, self.coils, sums),
            (Sums::Gpu(_), Backend::Cpu(_)) => Err(Error::value("device", "a GPU", self.device.describe())),
            (Sums::Host(sums), _) => {
                let level = self.device.cpu_side().level();
                Array::from_vec(&self.device, &[self.coils], cpu::principal(level, self.coils, sums))
            }
        }
    }
}

/// Number of pairs of coils, including each coil with itself.
fn pairs(coils: usize) -> usize {
    coils * (coils + 1) / 2
}

/// Bytes that [`maps`] takes beside the images and the maps, and its work, with the default radius on
/// `threads` threads.
pub fn needs(threads: usize, coils: usize, matrix: &[usize]) -> (u64, Work) {
    let problem = default_problem(coils, matrix);
    (cpu::scratch_bytes(threads, &problem), work(&problem))
}

/// [`needs`] on a device: on a GPU the bytes of GPU memory, or the host's bytes for a problem that its
/// kernels refuse or that it has no kernels for.
pub fn needs_on(device: &Device, coils: usize, matrix: &[usize]) -> (u64, Work) {
    needs_of(device, &default_problem(coils, matrix))
}

/// [`needs_on`] for [`slab`]s of `planes` planes of an image, or for the [`Covariance`] of the whole image
/// before them, in addition to the images of the slab and its maps. The work is for one slab.
pub fn slab_needs_on(device: &Device, coils: usize, matrix: &[usize], planes: usize) -> (u64, Work) {
    let mut problem = default_problem(coils, matrix);
    let nz = problem.shape_zyx[0];
    let planes = planes.min(nz);
    let first = problem.radius.min(nz - planes);
    problem.planes = [first, planes];
    problem.shape_zyx[0] = (first + planes + problem.radius).min(nz);
    needs_of(device, &problem)
}

fn needs_of(device: &Device, problem: &Problem) -> (u64, Work) {
    let bytes = if on_kernels(device, problem) {
        cuda::scratch_bytes(problem)
    } else {
        cpu::scratch_bytes(device.cpu_side().threads(), problem)
    };
    (bytes, work(problem))
}

fn default_problem(coils: usize, matrix: &[usize]) -> Problem {
    let mut shape_zyx = [1; 3];
    for (to, &n) in shape_zyx.iter_mut().rev().zip(matrix.iter().rev()) {
        *to = n;
    }
    Problem::whole(coils, shape_zyx, DEFAULT_RADIUS)
}
