//! Noise whitening: receivers share noise, and some have more of it than others. Coils are mixed until their
//! noise is alike and independent.
//!
//! ```text
//! y' = L⁻¹ y,   Ψ = L Lᴴ = Σ η ηᴴ / samples,   trace Ψ = coils
//! ```
//!
//! η are the samples of the scan's noise readouts, or Ψ is given. The scale of Ψ keeps the brightness of
//! images. The map is the same for every sample, so it commutes with all that treats coils alike, and the
//! device applies it together with the compression of coils.
//!
//! P. Kellman, E. R. McVeigh, *Image reconstruction in SNR units*, Magn Reson Med 54:1439, 2005.

use ndarray::{Array2, ArrayView2};
use rayspin_core::cholesky;
use rayspin_core::{C32, C64, Error, Result};
use rayspin_run::{About, params};

use super::{CoilNoise, Correction, Known, Sources};
use crate::mri::raw::{Flags, Scan};

params! {
    /// Coils are whitened by the scan's noise readouts, or by a covariance ([`CoilNoise`] has both).
    pub struct Whitening {}
}

impl Correction for Whitening {
    fn about(&self) -> About {
        About {
            name: "whitening",
            help: "Makes the noise of coils alike and independent, by noise readouts or `--noise-covariance`",
        }
    }

    fn learns_from(&self) -> Sources {
        Sources { of_scan: Flags::NOISE, ..Sources::default() }
    }

    fn idle(&self, scan: &Known<'_>) -> Option<String> {
        let why = match (scan.noise.given, scan.noise.measured) {
            _ if !scan.noise.whitened => "coils stay as they are (`--no-prewhiten`)",
            (Some(_), _) => return None,
            (None, None | Some(Noise::None)) => "the scan has no noise readouts",
            (None, Some(Noise::Unusable)) => "noise readouts have other coils than the images",
            (None, Some(Noise::Measured(_))) => return None,
        };
        Some(why.to_owned())
    }

    fn coils(&self, noise: CoilNoise<'_>, notes: &mut Vec<String>) -> Result<Option<CoilMap>> {
        match (noise.given, noise.measured) {
            _ if !noise.whitened => Ok(None),
            (Some(covariance), _) => {
                notes.push("coils are whitened by the noise covariance that was given".into());
                CoilMap::whitening(covariance.view()).map(Some)
            }
            (None, Some(noise)) => Ok(of_noise(noise, notes)),
            (None, None) => Ok(None),
        }
    }
}

/// A linear map of coils that can be undone.
#[derive(Debug)]
pub struct CoilMap {
    /// y' = A y: `[coil, coil]`.
    pub forward: Array2<C32>,
    /// A⁻¹.
    pub back: Array2<C32>,
}

impl CoilMap {
    /// L⁻¹ and L of Ψ = L Lᴴ, Ψ being scaled to a mean variance of 1.
    fn whitening(covariance: ArrayView2<'_, C64>) -> Result<Self> {
        let colour = cholesky::unit_covariance_factor(covariance, covariance.nrows())?;
        let whiten = cholesky::inverse(colour.view());
        let narrow = |a: &Array2<C64>| a.mapv(|v| C32::new(v.re as f32, v.im as f32));
        Ok(Self { forward: narrow(&whiten), back: narrow(&colour) })
    }

    /// This map and another one after it. Errors: another number of coils.
    pub(super) fn then(&self, next: &Self) -> Result<Self> {
        if next.forward.ncols() != self.forward.nrows() {
            let coils = self.forward.nrows();
            return Err(Error::shape("map of coils", &[coils, coils], next.forward.shape()));
        }
        Ok(Self { forward: next.forward.dot(&self.forward), back: self.back.dot(&next.back) })
    }
}

/// Fewer noise samples than this many times the coils leave a covariance that is itself mostly noise.
const SAMPLES_PER_COIL: usize = 8;

/// What a scan's noise readouts say.
#[derive(Debug, Clone, PartialEq)]
pub struct NoiseMeasurement {
    /// Ψ = Σ η ηᴴ / samples, `[coil, coil]`, at the dwell time of the first noise readout: η of another one
    /// is scaled by √(t/t_first).
    pub covariance: Array2<C64>,
    /// Samples it is the mean of.
    pub samples: usize,
    /// Readouts they came from.
    pub readouts: usize,
    /// Standard deviation of the real part of an image sample, mean over coils: the noise readouts' own times
    /// √(t_noise/t_image), for the variance of a sample goes with the bandwidth, the inverse of the dwell
    /// time t.
    pub sample_std: f64,
    /// t_noise/t_image, where both are stated.
    pub dwell_ratio: Option<f64>,
}

/// What was found of noise in a scan.
#[derive(Debug, Clone, PartialEq)]
pub enum Noise {
    /// No noise readouts.
    None,
    /// Noise readouts of other coils than the images', or that hold no finite numbers.
    Unusable,
    /// Noise readouts of the images' coils.
    Measured(NoiseMeasurement),
}

/// The noise readouts of a scan: those with as many coils as its image readouts.
///
/// ```
/// use rayspin_core::Monitor;
/// use rayspin_scan::mri::corrections::{Noise, measure};
/// use rayspin_mri::simulate::{SimulateOptions, simulate};
///
/// let options = SimulateOptions {
///     matrix: [16, 16, 1],
///     coils: 2,
///     snr: Some(20.0),
///     noise_readouts: 8,
///     ..SimulateOptions::default()
/// };
/// let simulation = simulate(&options, &Monitor::silent())?;
/// let Noise::Measured(found) = measure(&simulation.scan) else { panic!("the scan has noise readouts") };
/// assert_eq!((found.readouts, found.samples), (8, 8 * 256));
/// assert!((found.sample_std / simulation.noise_std - 1.0).abs() < 0.1);
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn measure(scan: &Scan) -> Noise {
    match of_images(scan) {
        Some(measurement) => Noise::Measured(measurement),
        None if scan.acquisitions.iter().any(|a| a.flags.contains(Flags::NOISE)) => Noise::Unusable,
        None => Noise::None,
    }
}

fn of_images(scan: &Scan) -> Option<NoiseMeasurement> {
    let image = scan.acquisitions.iter().find(|a| a.flags.is_image())?;
    let coils = image.data.nrows();
    let readouts: Vec<_> = scan
        .acquisitions
        .iter()
        .filter(|a| a.flags.contains(Flags::NOISE) && a.data.nrows() == coils)
        .filter(|a| a.data.iter().all(|v| v.re.is_finite() && v.im.is_finite()))
        .collect();
    let known = |dwell: f32| dwell.is_finite() && dwell > 0.0;
    // Readouts whose dwell time is not stated cannot be compared with others.
    let stated = readouts.iter().any(|readout| known(readout.sample_time_us));
    let readouts: Vec<_> =
        readouts.into_iter().filter(|readout| known(readout.sample_time_us) == stated).collect();
    let first = readouts.first()?;
    let mut covariance = Array2::<C64>::zeros((coils, coils));
    let mut samples = 0;
    for readout in &readouts {
        let end = readout.data.ncols().saturating_sub(readout.discard_post);
        let scale = match stated {
            true => (f64::from(readout.sample_time_us) / f64::from(first.sample_time_us)).sqrt(),
            false => 1.0,
        };
        for sample in readout.discard_pre..end {
            let column = readout.data.column(sample).mapv(|v| scale * C64::new(v.re.into(), v.im.into()));
            for i in 0..coils {
                for j in 0..coils {
                    covariance[[i, j]] += column[i] * column[j].conj();
                }
            }
            samples += 1;
        }
    }
    covariance.mapv_inplace(|v| v / samples.max(1) as f64);
    let dwell_ratio = (known(first.sample_time_us) && known(image.sample_time_us))
        .then(|| f64::from(first.sample_time_us) / f64::from(image.sample_time_us));
    let variance = (0..coils).map(|i| covariance[[i, i]].re).sum::<f64>() / coils.max(1) as f64;
    let sample_std = (variance / 2.0 * dwell_ratio.unwrap_or(1.0)).sqrt();
    Some(NoiseMeasurement { covariance, samples, readouts: readouts.len(), sample_std, dwell_ratio })
}

/// Whitening by the scan's own noise. If this noise cannot be used, `notes` says why.
fn of_noise(noise: &Noise, notes: &mut Vec<String>) -> Option<CoilMap> {
    let noise = match noise {
        Noise::None => return None,
        Noise::Unusable => {
            notes.push("noise readouts have other coils than the images: coils are not whitened (`--noise-covariance` whitens them)".into());
            return None;
        }
        Noise::Measured(noise) => noise,
    };
    let coils = noise.covariance.nrows();
    if noise.samples < SAMPLES_PER_COIL * coils {
        notes.push(format!(
            "{} noise samples are too few for {coils} coils: coils are not whitened (`--noise-covariance` whitens them)",
            noise.samples
        ));
        return None;
    }
    match CoilMap::whitening(noise.covariance.view()) {
        Ok(whitening) => {
            let dwell = match noise.dwell_ratio {
                Some(ratio) if (ratio - 1.0).abs() > 1e-3 => {
                    format!(", their dwell time being {ratio:.3} of the images'")
                }
                Some(_) => String::new(),
                None => ", dwell times not being stated".into(),
            };
            notes.push(format!(
                "coils are whitened by {} noise samples: standard deviation {:.4e} per real and imaginary part of an \
                 image sample{dwell} (`--no-prewhiten` leaves them as they are)",
                noise.samples, noise.sample_std
            ));
            Some(whitening)
        }
        Err(error) => {
            notes.push(format!("coils are not whitened: {error}"));
            None
        }
    }
}
