//! An object that changes while it is scanned.

use std::f64::consts::TAU;

use rayspin_core::{Error, Result};

use super::phantom::{Ellipsoid, Phantom};

/// What changes with time t. Within a readout the object stands still: each readout sees it as it is at its
/// own time.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Dynamics {
    /// Parts grow and shrink: their semi-axes are the phantom's times 1 + a sin(2πt/T). In the head of Shepp
    /// and Logan the two dark ellipses do, a = 0.3; in the thorax the chambers of the heart, a up to 0.25.
    Beat {
        /// T, s.
        period_s: f64,
    },
    /// Contrast agent arrives in the phantom's fifth part (of the thorax: the wall of the left ventricle):
    /// its intensity rises by 0.6 (1 − e^{−t/τ}).
    Enhance {
        /// τ, s.
        time_s: f64,
    },
}

/// The largest rise of the intensity, relative to the intensity of the outline in the modified phantom.
const ENHANCEMENT: f64 = 0.6;

impl Dynamics {
    pub(super) fn check(&self) -> Result<()> {
        let (Self::Beat { period_s: time } | Self::Enhance { time_s: time }) = self;
        if *time > 0.0 && time.is_finite() {
            return Ok(());
        }
        Err(Error::value("time in which the object changes", "a positive number of seconds", time))
    }

    /// The phantom at time `t` in s.
    pub(super) fn at(&self, phantom: &Phantom, t: f64) -> Result<Phantom> {
        phantom.changed(|part, change| match self {
            Self::Beat { period_s } => {
                let factor = 1.0 + change.beat * (TAU * t / period_s).sin();
                Ellipsoid { semi_axes: part.semi_axes.map(|a| a * factor), ..*part }
            }
            Self::Enhance { time_s } if change.enhances => {
                let added = ENHANCEMENT * (1.0 - (-t / time_s).exp());
                Ellipsoid { intensity: part.intensity + added, ..*part }
            }
            Self::Enhance { .. } => *part,
        })
    }
}

/// Windows of readouts, one for each image of the truth. They lie as in a sliding window: image i is the
/// object at the mean time of the readouts iS … iS + W − 1 of a slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct TruthWindow {
    /// W.
    pub readouts: usize,
    /// S.
    pub stride: usize,
}
