//! Coil sensitivities as eigenvectors of the reproducing operator of a calibration region: the part of
//! ESPIRiT that is computed for every voxel.
//!
//! Uecker, Lai, Murphy, Virtue, Elad, Pauly, Vasanawala, Lustig, *ESPIRiT — an eigenvalue approach to
//! autocalibrating
//! parallel MRI: where SENSE meets GRAPPA*, Magn Reson Med 71:990, 2014.

mod cpu;
mod cuda;
mod reference;
#[cfg(test)]
mod tests;
mod variants;

use std::ops::Range;

use rayspin_core::{C32, Error, Result, format_shape};
use rayspin_device::{Array, Backend, Device};

use crate::variant::Work;

pub(crate) use cuda::builds;
pub use reference::maps as reference_maps;
pub use variants::{Implementation, VARIANTS};
use variants::{on_gpu, on_host, work};

/// Maximum number of eigenvectors per voxel.
pub const MAX_SETS: usize = 4;

/// The sizes of a problem.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Problem {
    /// Number of coils.
    pub coils: usize,
    /// Lags −h..=h along z, y, x.
    pub reach_zyx: [usize; 3],
    /// Image shape.
    pub shape_zyx: [usize; 3],
    /// The first wanted plane of the image, and the number of wanted planes.
    pub planes: [usize; 2],
    /// Number of wanted eigenvectors.
    pub sets: usize,
    /// Eigenvalue below which a map is 0.
    pub crop: f32,
}

impl Problem {
    /// Lags along all axes.
    fn lags(&self) -> usize {
        self.reach_zyx.iter().map(|h| 2 * h + 1).product()
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

    /// Work of it.
    pub fn work(&self) -> Work {
        work(self)
    }

    /// [`needs_on`] for it.
    pub fn scratch_bytes_on(&self, device: &Device) -> u64 {
        if served_on_gpu(device, self) { cuda::scratch_bytes(self) } else { 0 }
    }
}

/// Whether the device's own kernels serve a problem.
fn served_on_gpu(device: &Device, problem: &Problem) -> bool {
    matches!(device.backend(), Backend::Cuda(_)) && cuda::refuses(problem).is_none()
}

/// Maps c_s(x): the eigenvectors of the `sets` largest eigenvalues λ_s of the Hermitian G_{ij}(x) = Σ_δ
/// Q_{ij}\[δ\] e^{−i2πδ·x}, times a weight w(λ_s).
///
/// `correlation` is Q `[coil, coil, lag z, lag y, lag x]`, lags −h..=h (odd sizes), with Q_{ji}\[−δ\] = conj
/// Q_{ij}\[δ\]; x = (index − ⌊n/2⌋)/n along each axis of `shape_zyx`. The result is `[set, coil, z, y, x]`.
/// The weight is Σ_j |c_j|² = w(λ)². It is 0 for λ ≤ `crop`, 1 from λ = (1 + `crop`)/2 on, and cos² between.
/// Where G leaves signals nearly unchanged (λ ≈ 1), the coils see an object; elsewhere they see none. An
/// eigenvector's phase is free: here its component along `phase` is real and positive. If the next eigenvalue
/// is within a fifth of a wanted one, the iteration may end at its limit. Then c_s is the eigenvector of a
/// matrix that differs from G by up to 3 % of λ.
///
/// Errors: shapes that do not fit, no coils, more than [`MAX_SETS`] sets or more than coils, or a crop beyond
/// 0..1.
///
/// ```
/// use rayspin_core::C32;
/// use rayspin_device::{Array, Device};
/// use rayspin_kernels::espirit::maps;
///
/// let device = Device::cpu()?;
/// // G = [[½, ½], [½, ½]] everywhere: both coils always see the same.
/// let correlation = Array::from_vec(&device, &[2, 2, 1, 1, 1], vec![C32::from(0.5); 4])?;
/// let phase = Array::from_vec(&device, &[2], vec![C32::from(0.5f32.sqrt()); 2])?;
/// let found = maps(&correlation, &phase, [1, 3, 4], 1, 0.8)?;
/// assert_eq!(found.shape(), [1, 2, 1, 3, 4]); // [set, coil, z, y, x]
/// assert!(found.to_vec()?.iter().all(|c| (c - 0.5f32.sqrt()).norm() < 1e-4)); // the eigenvalue is 1
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn maps(
    correlation: &Array<C32>,
    phase: &Array<C32>,
    shape_zyx: [usize; 3],
    sets: usize,
    crop: f64,
) -> Result<Array<C32>> {
    slab(correlation, phase, shape_zyx, 0..shape_zyx[0], sets, crop)
}

/// [`maps`] of some planes along z of an image of `shape_zyx`, `[set, coil, planes, y, x]`: the same bits.
///
/// Errors: as [`maps`], and planes that the image does not have.
///
/// ```
/// use rayspin_core::C32;
/// use rayspin_device::{Array, Device};
/// use rayspin_kernels::espirit::{maps, slab};
///
/// let device = Device::cpu()?;
/// let mut lags = vec![C32::from(0.1); 4 * 3]; // [coil, coil, lag z, 1, 1]
/// for coil in [0, 3] {
///     lags[coil * 3 + 1] = C32::from(0.5);
/// }
/// let correlation = Array::from_vec(&device, &[2, 2, 3, 1, 1], lags)?;
/// let phase = Array::from_vec(&device, &[2], vec![C32::ONE, C32::ZERO])?;
/// let whole = maps(&correlation, &phase, [4, 1, 1], 1, 0.0)?.to_vec()?; // [set, coil, z, y, x]
/// let part = slab(&correlation, &phase, [4, 1, 1], 1..3, 1, 0.0)?.to_vec()?;
/// assert_eq!((&part[..2], &part[2..]), (&whole[1..3], &whole[5..7]));
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn slab(
    correlation: &Array<C32>,
    phase: &Array<C32>,
    shape_zyx: [usize; 3],
    planes: Range<usize>,
    sets: usize,
    crop: f64,
) -> Result<Array<C32>> {
    let (coils, lags) = match *correlation.shape() {
        [a, b, z, y, x] if a == b && a > 0 && [z, y, x].iter().all(|n| n % 2 == 1) => (a, [z, y, x]),
        ref shape => {
            return Err(Error::Shape {
                what: "correlation of coils".into(),
                expected: "[coil, coil, lag z, lag y, lag x] with odd numbers of lags".into(),
                found: format_shape(shape),
            });
        }
    };
    rayspin_core::expect_shape("phase of coils", &[coils], phase.shape())?;
    crate::fft::check_device("phase of coils", correlation.device(), phase.device())?;
    if sets == 0 || sets > MAX_SETS.min(coils) {
        return Err(Error::value("sets of maps", format!("1 to {}", MAX_SETS.min(coils)), sets));
    }
    if !(0.0..1.0).contains(&crop) {
        return Err(Error::value("crop of maps", "0 <= crop < 1", crop));
    }
    let [_, y, x] = shape_zyx;
    let (reach_zyx, crop) = (lags.map(|n| n / 2), crop as f32);
    let problem = Problem { coils, reach_zyx, shape_zyx, planes: [planes.start, planes.len()], sets, crop };
    problem.expect_planes()?;
    let mut out = Array::zeros(correlation.device(), &[sets, coils, planes.len(), y, x])?;
    let implementation = if served_on_gpu(correlation.device(), &problem) { on_gpu } else { on_host };
    implementation(&problem, correlation, phase, &mut out)?;
    Ok(out)
}

/// Bytes of a GPU's memory that [`maps`] takes beside correlation and maps, for lags −h..=h along z, y, x; 0
/// on a CPU, and where the CPU beside the GPU does the work.
pub fn needs_on(
    device: &Device,
    coils: usize,
    reach_zyx: [usize; 3],
    shape_zyx: [usize; 3],
    sets: usize,
) -> u64 {
    let problem = Problem { coils, reach_zyx, shape_zyx, planes: [0, shape_zyx[0]], sets, crop: 0.0 };
    problem.scratch_bytes_on(device)
}

/// w(λ) of [`maps`].
fn weight(eigenvalue: f64, crop: f64) -> f64 {
    let t = ((eigenvalue - crop) / (0.5 * (1.0 - crop))).clamp(0.0, 1.0);
    (std::f64::consts::FRAC_PI_2 * t).sin().powi(2)
}
