//! Coil sensitivities from coil images by local principal components (Walsh, Gmitro, Marcellin,
//! *Adaptive reconstruction of phased array MR imagery*, Magn Reson Med 43:682, 2000).

mod cpu;
mod cuda;
mod reference;
#[cfg(test)]
mod tests;
mod variants;

use rayspin_core::{C32, Error, Result, format_shape};
use rayspin_device::{Array, Backend, Device};

use crate::variant::Work;

pub(crate) use cuda::builds;
pub use reference::maps as reference_maps;
pub use variants::{Launch, VARIANTS};
use variants::{on_gpu, on_host, work};

/// Half-width of the window along each axis, in voxels: 3 gives the 7-voxel windows of common practice.
pub const DEFAULT_RADIUS: usize = 3;

/// What a variant is given: `[coil, z, y, x]` with z = 1 in 2-D.
#[derive(Debug, Clone, Copy)]
pub struct Problem {
    /// Number of coils.
    pub coils: usize,
    /// Image shape.
    pub shape_zyx: [usize; 3],
    /// Window half-width.
    pub radius: usize,
}

/// What serves a problem on a device.
fn best(device: &Device, problem: &Problem) -> Launch {
    let served = matches!(device.backend(), Backend::Cuda(_)) && cuda::refuses(problem).is_none();
    if served { on_gpu } else { on_host }
}

/// Sensitivities c(x) as the dominant eigenvector of the local coil covariance
/// R(x) = Σ_{x' ∈ window(x)} m(x') m(x')ᴴ, with Σ_j |c_j(x)|² = 1.
///
/// `images` is `[coil, z, y, x]` or `[coil, y, x]`; the result has its shape. `radius` is the window's half-width in
/// voxels (windows are cut at the border). An eigenvector's phase is free: here the component along the dominant
/// eigenvector of the covariance of the whole image is real and positive, which keeps maps smooth and leaves the
/// image its own phase. Where a window holds no signal at all the maps are 0. Where the two largest eigenvalues are within a fifth of each
/// other, the iteration may end at its limit: then c(x) is the eigenvector of a matrix that differs from R by up to 2 % of λ_max.
///
/// Errors: a rank other than 3 or 4, or no coils.
pub fn maps(images: &Array<C32>, radius: usize) -> Result<Array<C32>> {
    let shape = images.shape();
    let (coils, shape_zyx) = match *shape {
        [coils, y, x] => (coils, [1, y, x]),
        [coils, z, y, x] => (coils, [z, y, x]),
        _ => {
            return Err(Error::Shape {
                what: "coil images".into(),
                expected: "[coil, y, x] or [coil, z, y, x]".into(),
                found: format_shape(shape),
            });
        }
    };
    if coils == 0 {
        return Err(Error::value("coil images", "at least one coil", 0));
    }
    let mut out = Array::zeros(images.device(), shape)?;
    let problem = Problem { coils, shape_zyx, radius };
    best(images.device(), &problem)(&problem, images, &mut out)?;
    Ok(out)
}

/// Bytes that [`maps`] takes beside the images and the maps, and its work, with the default radius on `threads` threads.
pub fn needs(threads: usize, coils: usize, matrix: &[usize]) -> (u64, Work) {
    let problem = default_problem(coils, matrix);
    (cpu::scratch_bytes(threads, &problem), work(&problem))
}

/// [`needs`] on a device: of a GPU, bytes of its memory; of a problem that its kernels refuse, those of the CPU beside it.
pub fn needs_on(device: &Device, coils: usize, matrix: &[usize]) -> (u64, Work) {
    let problem = default_problem(coils, matrix);
    match device.backend() {
        Backend::Cuda(_) if cuda::refuses(&problem).is_none() => {
            (cuda::scratch_bytes(&problem), work(&problem))
        }
        _ => needs(device.cpu_side().threads(), coils, matrix),
    }
}

fn default_problem(coils: usize, matrix: &[usize]) -> Problem {
    let mut shape_zyx = [1; 3];
    for (to, &n) in shape_zyx.iter_mut().rev().zip(matrix.iter().rev()) {
        *to = n;
    }
    Problem { coils, shape_zyx, radius: DEFAULT_RADIUS }
}
