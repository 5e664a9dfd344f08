//! What is done to coils before anything else: [corrections](crate::corrections) map them, as whitening does,
//! and they are compressed to fewer.
//!
//! Both are linear maps of the coils, y' = C L⁻¹ y for every sample, so they commute with everything that
//! treats coils
//! alike: averages, gridding, Fourier transforms.

mod compress;
mod mixing;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use ndarray::{Array2, ArrayD, ArrayView2, Axis, IxDyn};
use rayspin_core::{C32, C64, Error, Result};
use rayspin_device::{BackendKind, Device};
use rayspin_solve::dense::cholesky;
use serde::Serialize;

use crate::corrections::{CoilMap, CoilNoise, Corrections, Noise};
use crate::maps::AXES_OF_SETS;
use crate::scan::{Frame, Label};
use compress::Basis;
pub(crate) use compress::{STAGE, finding};
pub(crate) use mixing::{Mixing, needs as mixing_needs};

/// What is done to coils first.
#[derive(Debug, Clone)]
pub struct PrepareOptions {
    /// Whether noise is whitened when its covariance is known.
    pub prewhiten: bool,
    /// What the scan's noise readouts say; measured by [`reconstruct_scan`](crate::recon::reconstruct_scan)
    /// when absent.
    pub noise: Option<Noise>,
    /// Covariance Ψ of the coils' noise `[coil, coil]`, of any scale, instead of the scan's own noise
    /// readouts.
    pub noise_covariance: Option<Array2<C64>>,
    /// Compression to fewer coils.
    pub compression: Option<Compression>,
}

impl Default for PrepareOptions {
    fn default() -> Self {
        Self { prewhiten: true, noise: None, noise_covariance: None, compression: None }
    }
}

/// Compression of coils.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Compression {
    /// How many are kept.
    pub coils: VirtualCoils,
    /// How they are found.
    pub kind: CompressionKind,
}

/// How many virtual coils are kept.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum VirtualCoils {
    /// This many.
    Count(usize),
    /// As many as hold this part of the signal's energy.
    Energy(f64),
}

/// How virtual coils are found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CompressionKind {
    /// The principal components of all samples (Huang, Vijayakumar, Li, Hertel, Duensing, Magn Reson Imaging
    /// 26:133, 2008; Buehrer et al., Magn Reson Med 57:1131, 2007).
    #[default]
    Svd,
    /// The principal components at each position along the readout, aligned from one position to the next
    /// (Zhang, Pauly, Vasanawala, Lustig, Magn Reson Med 69:571, 2013): on the grid, with the readout fully
    /// sampled.
    Geometric,
}

impl PrepareOptions {
    /// Checks every range. Errors: the first value out of range, named.
    pub fn validate(&self) -> Result<()> {
        if let Some(covariance) = &self.noise_covariance {
            cholesky::unit_covariance_factor(covariance.view(), covariance.nrows())?;
        }
        match self.compression {
            Some(Compression { coils: VirtualCoils::Count(0), .. }) => {
                Err(Error::value("virtual coils", "at least 1", 0))
            }
            Some(Compression { coils: VirtualCoils::Energy(part), .. }) if !(part > 0.0 && part < 1.0) => {
                Err(Error::value("virtual coils", "a part of the energy between 0 and 1", part))
            }
            _ => Ok(()),
        }
    }
}

impl PrepareOptions {
    /// What is known of the coils' noise.
    pub fn known_noise(&self) -> CoilNoise<'_> {
        let Self { prewhiten, noise, noise_covariance, .. } = self;
        CoilNoise { whitened: *prewhiten, measured: noise.as_ref(), given: noise_covariance.as_ref() }
    }

    /// Whether noise is whitened, as far as that can be told before it is tried.
    pub(crate) fn whitens(&self) -> bool {
        let known = matches!(self.noise, Some(Noise::Measured(_))) || self.noise_covariance.is_some();
        self.prewhiten && known
    }

    /// Whether prepared coils are not the scan's own.
    pub(crate) fn changes_coils(&self) -> bool {
        self.compression.is_some() || self.whitens()
    }
}

/// Coils that a frame has once it is prepared as the first one of a run is.
///
/// Errors: as reconstructing the frame.
///
/// ```
/// use ndarray::ArrayD;
/// use rayspin_core::{C32, Geometry};
/// use rayspin_device::Device;
/// use rayspin_mri::prepare::{Compression, CompressionKind, PrepareOptions, VirtualCoils, coils_kept};
/// use rayspin_mri::scan::Frame;
///
/// let frame = Frame::from_grid(ArrayD::from_elem(vec![8, 16, 16], C32::ONE), Geometry::default())?;
/// let kept = |coils| {
///     let compression = Some(Compression { coils, kind: CompressionKind::Svd });
///     coils_kept(&Device::cpu()?, &PrepareOptions { compression, ..PrepareOptions::default() }, &frame)
/// };
/// assert_eq!(kept(VirtualCoils::Count(3))?, 3);
/// assert_eq!(kept(VirtualCoils::Energy(0.99))?, 1); // all coils measured the same
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn coils_kept(device: &Device, options: &PrepareOptions, frame: &Frame) -> Result<usize> {
    match options.compression {
        None => Ok(frame.coils()),
        Some(Compression { coils: VirtualCoils::Count(count), .. }) => Ok(count.min(frame.coils())),
        Some(compression) => {
            let preparation = Preparation::new(options, &mut Vec::new())?;
            let on = |device| Basis::of_frame(device, frame, compression, None, preparation.whiten());
            let basis = match on(device) {
                // As a run does where a GPU's memory is too small.
                Err(Error::Memory { .. }) if device.kind() == BackendKind::Cuda => on(&device.host()),
                basis => basis,
            };
            Ok(basis?.kept())
        }
    }
}

/// Whitening and compression of one scan: the same for all frames of a slice.
#[derive(Debug)]
pub(crate) struct Preparation {
    compression: Option<Compression>,
    map: Option<CoilMap>,
    kept: Option<usize>,
    slices: BTreeMap<(usize, u16), Prepared>,
}

/// What the coils of a slice become.
#[derive(Debug)]
struct Prepared {
    basis: Option<Basis>,
    mixing: Arc<Mixing>,
}

impl Preparation {
    /// Takes the noise from the options, unless they say otherwise; the findings go to `notes`. Too few noise
    /// samples, or noise of other coils, are no error: then nothing is whitened, and a note says so.
    ///
    /// Errors: options out of range.
    pub(crate) fn new(options: &PrepareOptions, notes: &mut Vec<String>) -> Result<Self> {
        options.validate()?;
        let map = Corrections::default().coils(options.known_noise(), notes)?;
        Ok(Self { compression: options.compression, map, kept: None, slices: BTreeMap::new() })
    }

    /// What the coils of a frame become, if they do not stay: found on `device`. The first frame of a slice
    /// decides the slice's compression.
    ///
    /// Errors: noise of another number of coils; no fewer virtual coils than there are; geometric compression
    /// of what has no fully sampled readout.
    pub(crate) fn mixing(
        &mut self,
        device: &Device,
        frame: &Frame,
        notes: &mut Vec<String>,
    ) -> Result<Option<Arc<Mixing>>> {
        if let Some(map) = &self.map {
            expect_coils(map.forward.nrows(), frame.coils())?;
        }
        let key = slice(&frame.label);
        if let Some(known) = self.slices.get(&key) {
            return Ok(Some(known.mixing.clone()));
        }
        let (basis, mixing) = match (self.compression, self.whiten()) {
            (None, None) => return Ok(None),
            (None, Some(whiten)) => (None, Mixing::alike(whiten.to_owned())),
            (Some(compression), whiten) => {
                let basis = Basis::of_frame(device, frame, compression, self.kept, whiten)?;
                if self.kept.is_none() {
                    notes.push(format!(
                        "{} coils compressed to {}, which hold {:.2} % of the energy{}",
                        frame.coils(),
                        basis.kept(),
                        100.0 * basis.energy,
                        if compression.kind == CompressionKind::Geometric { " (geometric)" } else { "" }
                    ));
                }
                let mixing = basis.mixing(whiten);
                self.kept = self.kept.or(Some(basis.kept()));
                (Some(basis), mixing)
            }
        };
        let mixing = Arc::new(mixing);
        self.slices.insert(key, Prepared { basis, mixing: mixing.clone() });
        Ok(Some(mixing))
    }

    /// Whether coils become fewer.
    pub(crate) fn compresses(&self) -> bool {
        self.compression.is_some()
    }

    fn basis(&self, label: &Label) -> Option<&Basis> {
        self.slices.get(&slice(label)).and_then(|prepared| prepared.basis.as_ref())
    }

    fn whiten(&self) -> Option<ArrayView2<'_, C32>> {
        self.map.as_ref().map(|map| map.forward.view())
    }

    /// Whether prepared coils are not the scan's own.
    pub(crate) fn changes_coils(&self) -> bool {
        self.map.is_some() || self.compression.is_some()
    }

    /// Turns maps `[coil, matrix…]` of the scan's own coils into maps of the prepared coils.
    pub(crate) fn maps_of_prepared(&self, label: &Label, maps: ArrayD<C32>) -> Result<ArrayD<C32>> {
        if maps.ndim() == AXES_OF_SETS {
            return each_set(&maps, |set| self.maps_of_prepared(label, set));
        }
        let maps = match &self.map {
            Some(map) => {
                expect_coils(map.forward.nrows(), maps.shape().first().copied().unwrap_or(0))?;
                mix(maps, |data| map.forward.dot(&data))?
            }
            None => maps,
        };
        match self.basis(label) {
            Some(basis) => basis.maps(maps, false),
            None => Ok(maps),
        }
    }

    /// Turns maps of the prepared coils into maps of the scan's own coils. What compression left out stays
    /// out. `[.., coil, matrix…]` with `dims` axes of the matrix.
    pub(crate) fn maps_of_scan(&self, label: &Label, maps: ArrayD<C32>, dims: usize) -> Result<ArrayD<C32>> {
        if maps.ndim() == dims + 2 {
            return each_set(&maps, |set| self.maps_of_scan(label, set, dims));
        }
        let maps = match self.basis(label) {
            Some(basis) => basis.maps(maps, true)?,
            None => maps,
        };
        match &self.map {
            Some(map) => mix(maps, |data| map.back.dot(&data)),
            None => Ok(maps),
        }
    }
}

/// Maps `[set, coil, …]`, each set turned on its own.
fn each_set(maps: &ArrayD<C32>, turn: impl Fn(ArrayD<C32>) -> Result<ArrayD<C32>>) -> Result<ArrayD<C32>> {
    let sets: Vec<ArrayD<C32>> = maps.outer_iter().map(|set| turn(set.to_owned())).collect::<Result<_>>()?;
    let views: Vec<_> = sets.iter().map(|set| set.view()).collect();
    ndarray::stack(Axis(0), &views)
        .map_err(|_| Error::value("sensitivity maps", "one shape throughout", "different shapes"))
}

fn slice(label: &Label) -> (usize, u16) {
    (label.encoding, label.slice)
}

fn expect_coils(noise: usize, coils: usize) -> Result<()> {
    if noise == coils {
        return Ok(());
    }
    Err(Error::shape("noise covariance", &[coils, coils], &[noise, noise]))
}

/// y ← M y over the first axis.
fn mix(array: ArrayD<C32>, by: impl FnOnce(ArrayView2<'_, C32>) -> Array2<C32>) -> Result<ArrayD<C32>> {
    let shape = array.shape().to_vec();
    let coils = shape[0];
    let points = array.len() / coils.max(1);
    let wrong = |found: &[usize]| Error::shape("coils", &[coils, points], found);
    let values = array.as_standard_layout();
    let flat = values.view().into_shape_with_order((coils, points)).map_err(|_| wrong(&shape))?;
    let mixed = by(flat);
    let out = [&[mixed.nrows()], &shape[1..]].concat();
    mixed.into_dyn().into_shape_with_order(IxDyn(&out)).map_err(|_| wrong(&out))
}
