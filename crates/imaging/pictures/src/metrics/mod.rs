//! Metrics of an image against a reference.
//!
//! One rule chooses the numbers to compare ([`Numbers::ByKind`]). Two real images are compared with their
//! signs, two complex images with their phases. If one image is complex and the other real, magnitudes are
//! compared. An image is complex if any value has an imaginary part. All metrics of a [`Quality`] compare the
//! same numbers.
//!
//! I is the image, I₀ the reference, and N the number of voxels compared (all voxels, or the voxels of a
//! mask):
//!
//! - MSE = Σ|I − I₀|² / N.
//! - PSNR = 20 log₁₀(max|I₀| / √MSE).
//! - SNR = 20 log₁₀(√A_s / √MSE), A_s = Σ|I₀|² / N.
//! - NRMSE = √(Σ|I − I₀|² / Σ|I₀|²), often quoted as a percentage.
//! - SSIM: see [`ssim()`].
//!
//! Every sum is in f64.

mod better;
mod sample;
mod serial;
mod shading;
mod ssim;

use ndarray::{ArrayView, ArrayViewD, Dimension, IxDyn};
use rayon::prelude::*;
use rayspin_core::{C64, Error, Result, expect_shape, format_shape};
use serde::{Deserialize, Serialize};

pub use better::{Better, better};
pub use sample::Sample;
pub use shading::Shading;

/// Chooses the numbers of two images for [`compare`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Numbers {
    /// The values as they are where both images are real or both complex; magnitudes where only one is
    /// complex.
    #[default]
    ByKind,
    /// |I| and |I₀|.
    Magnitudes,
    /// The values as they are, whatever their kinds.
    AsTheyAre,
}

/// The numbers of two images that were compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Compared {
    /// Real values with their signs.
    RealValues,
    /// Complex values.
    ComplexValues,
    /// |I| and |I₀|.
    Magnitudes,
}

impl Compared {
    /// Their name in words.
    pub fn name(self) -> &'static str {
        match self {
            Self::RealValues => "real values",
            Self::ComplexValues => "complex values",
            Self::Magnitudes => "magnitudes",
        }
    }
}

/// Options of [`compare`].
#[derive(Debug, Clone, Default)]
pub struct CompareOptions<'a> {
    /// The numbers that are compared.
    pub numbers: Numbers,
    /// Whether the image is first multiplied by α = Σ I* I₀ / Σ|I|², which minimises Σ|αI − I₀|² over the
    /// compared voxels. Use it for images without a meaningful scale. For complex numbers α is complex and
    /// removes a global phase. For an image of zeros α is 1.
    pub fit: bool,
    /// The voxels that count, in the shape of the images or of their trailing axes; `None` counts all.
    pub mask: Option<ArrayViewD<'a, bool>>,
}

/// The metrics of one image against its reference.
///
/// A zero reference has defined results: NRMSE is 0 for an equal image and +∞ for any other, PSNR and SNR are
/// +∞ for an equal image and −∞ for any other. Infinite values are serialised as the texts `"inf"` and
/// `"-inf"`, since JSON has no infinity.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Quality {
    /// The numbers that all metrics compare.
    pub compared: Compared,
    /// Voxels compared.
    pub voxels: usize,
    /// Mean square error, in the square of the reference's unit.
    pub mse: f64,
    /// Peak signal-to-noise ratio in dB; the peak is max|I₀| over the voxels compared.
    #[serde(with = "serial")]
    pub psnr_db: f64,
    /// Signal-to-noise ratio in dB.
    #[serde(with = "serial")]
    pub snr_db: f64,
    /// Normalised root-mean-square error.
    #[serde(with = "serial")]
    pub nrmse: f64,
    /// 100 · NRMSE.
    #[serde(with = "serial")]
    pub error_percent: f64,
    /// Mean structural similarity of real numbers. `None` if complex values are compared, for which it is not
    /// defined, or if no window centre lies inside the mask.
    pub ssim: Option<f64>,
    /// The largest |I − I₀|.
    pub max_error: f64,
    /// max|I₀| over the voxels compared.
    pub reference_max: f64,
    /// Whether a factor was fitted.
    pub fitted: bool,
    /// The fitted factor α (real, imaginary), `[1, 0]` without a fit.
    pub scale: [f64; 2],
}

impl Quality {
    /// Says which numbers were compared and whether a scale was fitted: `magnitudes compared, scale fitted:
    /// ×1.230`.
    pub fn rule(&self) -> String {
        let compared = self.compared.name();
        if !self.fitted {
            return format!("{compared} compared, no scale fitted");
        }
        let scale = C64::new(self.scale[0], self.scale[1]);
        match self.compared {
            Compared::ComplexValues => {
                let turn = scale.arg().to_degrees();
                format!("{compared} compared, scale and phase fitted: ×{:.4}, {turn:.1}°", scale.norm())
            }
            _ => format!("{compared} compared, scale fitted: ×{:.4}", scale.re),
        }
    }
}

/// Compares `image` with `reference`, which have the same shape: `[y, x]`, or any leading axes before those
/// two.
///
/// Errors: shapes that differ; an empty array; a mask that fits neither the images nor their trailing axes,
/// or that holds no voxel; a value anywhere that is not finite; sums that leave the range of f64.
///
/// ```
/// use ndarray::array;
/// use rayspin_imaging::metrics::{CompareOptions, compare};
///
/// let (image, reference) = (array![[1.0, 2.0], [3.0, 4.4]], array![[1.0, 2.0], [3.0, 4.0]]);
/// let quality = compare(image.view(), reference.view(), &CompareOptions::default())?;
/// assert!((quality.max_error - 0.4).abs() < 1e-9);
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn compare<T: Sample, U: Sample, D: Dimension>(
    image: ArrayView<'_, T, D>,
    reference: ArrayView<'_, U, D>,
    options: &CompareOptions<'_>,
) -> Result<Quality> {
    let (image, reference) = (image.into_dyn(), reference.into_dyn());
    check_shapes(image.shape(), reference.shape())?;
    let shape = reference.shape().to_vec();
    let (image, reference) = (image.as_standard_layout(), reference.as_standard_layout());
    let (image, reference) = (contiguous(image.as_slice())?, contiguous(reference.as_slice())?);
    check_finite("image", image)?;
    check_finite("reference", reference)?;
    let mask = options.mask.as_ref().map(|mask| expand(mask, &shape)).transpose()?;
    let compared = compared(image, reference, options.numbers);
    let pairs = Pairs { image, reference, mask: mask.as_deref(), compared };

    let scale = if options.fit { pairs.fit() } else { C64::new(1.0, 0.0) };
    let sums = pairs.sums(scale);
    if sums.voxels == 0 {
        return Err(Error::value("mask", "at least one voxel", "none"));
    }
    if !sums.error.is_finite() || !sums.reference.is_finite() {
        return Err(Error::Numerical {
            what: "image comparison".into(),
            detail: "the squares of the values leave the range of f64".into(),
        });
    }
    let n = sums.voxels as f64;
    let mse = sums.error / n;
    let nrmse = ratio(sums.error.sqrt(), sums.reference.sqrt());
    Ok(Quality {
        compared,
        voxels: sums.voxels,
        mse,
        psnr_db: decibel(sums.reference_max, mse.sqrt()),
        snr_db: decibel((sums.reference / n).sqrt(), mse.sqrt()),
        nrmse,
        error_percent: 100.0 * nrmse,
        ssim: pairs.ssim(scale, &shape),
        max_error: sums.max_error,
        reference_max: sums.reference_max,
        fitted: options.fit,
        scale: [scale.re, scale.im],
    })
}

/// The numbers to compare for these images.
fn compared<T: Sample, U: Sample>(image: &[T], reference: &[U], numbers: Numbers) -> Compared {
    let complex = match numbers {
        Numbers::Magnitudes => return Compared::Magnitudes,
        Numbers::ByKind | Numbers::AsTheyAre => [is_complex(image), is_complex(reference)],
    };
    match (complex, numbers) {
        ([false, false], _) => Compared::RealValues,
        ([true, true], _) | (_, Numbers::AsTheyAre) => Compared::ComplexValues,
        _ => Compared::Magnitudes,
    }
}

/// Whether any value has an imaginary part.
fn is_complex<S: Sample>(values: &[S]) -> bool {
    S::COMPLEX && values.iter().any(|value| value.to_c64().im != 0.0)
}

/// NRMSE = √(Σ|I − I₀|² / Σ|I₀|²) of the values as they are, without fit or mask. Errors: as [`compare`].
pub fn nrmse<T: Sample, U: Sample, D: Dimension>(
    image: ArrayView<'_, T, D>,
    reference: ArrayView<'_, U, D>,
) -> Result<f64> {
    let (image, reference) = (image.into_dyn(), reference.into_dyn());
    check_shapes(image.shape(), reference.shape())?;
    let (image, reference) = (image.as_standard_layout(), reference.as_standard_layout());
    let (image, reference) = (contiguous(image.as_slice())?, contiguous(reference.as_slice())?);
    check_finite("image", image)?;
    check_finite("reference", reference)?;
    let pairs = Pairs { image, reference, mask: None, compared: Compared::ComplexValues };
    let sums = pairs.sums(C64::new(1.0, 0.0));
    Ok(ratio(sums.error.sqrt(), sums.reference.sqrt()))
}

/// Mean structural similarity (Wang, Bovik, Sheikh, Simoncelli, IEEE Trans Image Process 13:600, 2004):
///
/// SSIM = (2μₓμᵧ + C₁)(2σₓᵧ + C₂) / ((μₓ² + μᵧ² + C₁)(σₓ² + σᵧ² + C₂)), C₁ = (0.01 L)², C₂ = (0.03 L)²,
///
/// moments weighted by an 11 × 11 Gaussian window of σ = 1.5, the data range L = max I₀ − min I₀ of the whole
/// reference. Each 2-D slice (the last two axes) is treated on its own; the result is the mean over every
/// position where the window lies inside the slice. Along an axis shorter than 11 the window is the largest
/// odd length that fits. A constant reference has L = 0; a fraction 0/0 then counts as 1, so that an equal
/// image scores 1.
///
/// Complex types enter as magnitudes; two images of real types enter with their signs. Errors: as
/// [`compare`].
pub fn ssim<T: Sample, U: Sample, D: Dimension>(
    image: ArrayView<'_, T, D>,
    reference: ArrayView<'_, U, D>,
) -> Result<f64> {
    let numbers = if T::COMPLEX || U::COMPLEX { Numbers::Magnitudes } else { Numbers::ByKind };
    let quality = compare(image, reference, &CompareOptions { numbers, ..CompareOptions::default() })?;
    quality.ssim.ok_or_else(|| Error::Numerical {
        what: "SSIM".into(),
        detail: "no window lies inside the image".into(),
    })
}

struct Pairs<'a, T, U> {
    image: &'a [T],
    reference: &'a [U],
    mask: Option<&'a [bool]>,
    compared: Compared,
}

/// Sums of squares and the largest magnitudes (squared, while voxels are added).
#[derive(Clone, Copy, Default)]
struct Sums {
    voxels: usize,
    error: f64,
    reference: f64,
    max_error: f64,
    reference_max: f64,
}

/// Voxels summed before partial sums are added: bounds round-off and is the unit of work of a thread.
const CHUNK: usize = 1 << 14;

impl<T: Sample, U: Sample> Pairs<'_, T, U> {
    fn value<S: Sample>(&self, sample: S) -> C64 {
        let value = sample.to_c64();
        if self.compared == Compared::Magnitudes { C64::new(value.norm(), 0.0) } else { value }
    }

    /// Folds `step` over the voxels of every chunk. Partial results are in order, so that sums do not depend
    /// on the number of threads.
    fn fold<A: Default + Send>(&self, step: impl Fn(A, C64, C64) -> A + Sync) -> Vec<A> {
        (0..self.image.len().div_ceil(CHUNK))
            .into_par_iter()
            .map(|chunk| {
                let range = chunk * CHUNK..((chunk + 1) * CHUNK).min(self.image.len());
                let pairs = self.image[range.clone()].iter().zip(&self.reference[range.clone()]);
                let values = pairs.map(|(&i, &r)| (self.value(i), self.value(r)));
                match self.mask {
                    None => values.fold(A::default(), |a, (i, r)| step(a, i, r)),
                    Some(mask) => values
                        .zip(&mask[range])
                        .filter(|(_, inside)| **inside)
                        .fold(A::default(), |a, ((i, r), _)| step(a, i, r)),
                }
            })
            .collect()
    }

    fn fit(&self) -> C64 {
        let (cross, power) = self
            .fold(|(cross, power): (C64, f64), i, r| (cross + i.conj() * r, power + i.norm_sqr()))
            .into_iter()
            .fold((C64::default(), 0.0), |a, b| (a.0 + b.0, a.1 + b.1));
        if power == 0.0 { C64::new(1.0, 0.0) } else { cross / power }
    }

    fn sums(&self, scale: C64) -> Sums {
        let partial = self.fold(|s: Sums, i, r| {
            let (error, reference) = ((i * scale - r).norm_sqr(), r.norm_sqr());
            Sums {
                voxels: s.voxels + 1,
                error: s.error + error,
                reference: s.reference + reference,
                max_error: s.max_error.max(error),
                reference_max: s.reference_max.max(reference),
            }
        });
        let total = partial.into_iter().fold(Sums::default(), |a, b| Sums {
            voxels: a.voxels + b.voxels,
            error: a.error + b.error,
            reference: a.reference + b.reference,
            max_error: a.max_error.max(b.max_error),
            reference_max: a.reference_max.max(b.reference_max),
        });
        Sums { max_error: total.max_error.sqrt(), reference_max: total.reference_max.sqrt(), ..total }
    }

    fn ssim(&self, scale: C64, shape: &[usize]) -> Option<f64> {
        if self.compared == Compared::ComplexValues {
            return None;
        }
        let x: Vec<f64> = self.image.iter().map(|&i| (self.value(i) * scale).re).collect();
        let y: Vec<f64> = self.reference.iter().map(|&r| self.value(r).re).collect();
        let nx = shape.last().copied().unwrap_or(1);
        let ny = shape.iter().rev().nth(1).copied().unwrap_or(1);
        ssim::mean(&x, &y, self.mask, [ny, nx])
    }
}

fn check_shapes(image: &[usize], reference: &[usize]) -> Result<()> {
    expect_shape("image compared with the reference", reference, image)?;
    if reference.contains(&0) {
        return Err(Error::value("images to compare", "at least one voxel", format_shape(reference)));
    }
    Ok(())
}

fn contiguous<T>(slice: Option<&[T]>) -> Result<&[T]> {
    slice.ok_or_else(|| Error::value("image", "an array in standard layout", "another"))
}

fn check_finite<S: Sample>(what: &str, values: &[S]) -> Result<()> {
    match values.iter().position(|v| !v.to_c64().is_finite()) {
        None => Ok(()),
        Some(index) => {
            Err(Error::NotFinite { what: what.into(), index, found: values[index].to_c64().to_string() })
        }
    }
}

fn expand(mask: &ArrayViewD<'_, bool>, shape: &[usize]) -> Result<Vec<bool>> {
    let full = mask.broadcast(IxDyn(shape)).ok_or_else(|| Error::shape("mask", shape, mask.shape()))?;
    Ok(full.iter().copied().collect())
}

/// a/b with 0/0 = 0.
fn ratio(a: f64, b: f64) -> f64 {
    if a == 0.0 { 0.0 } else { a / b }
}

/// 20 log₁₀(signal / noise): +∞ without noise, −∞ with noise and no signal.
fn decibel(signal: f64, noise: f64) -> f64 {
    if noise == 0.0 { f64::INFINITY } else { 20.0 * (signal / noise).log10() }
}
