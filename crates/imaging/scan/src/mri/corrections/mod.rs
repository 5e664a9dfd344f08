//! Corrections between the readouts of a scan and its frames. Each is a value, a struct of its parameters, in
//! a file of its own that opens with its equation; [`Table::default`] lists them in the order in which they
//! act.
//!
//! A frame is made in steps, and a correction acts in those that concern it. First it looks at what the heads
//! of the [whole scan](Correction::scan) say, then at the [readouts of the image](Correction::image),
//! wherever their samples lie. Before samples are placed on a grid or along a trajectory, it changes their
//! numbers or their places, [readout by readout](Correction::readouts). Last come maps of
//! [coils](Correction::coils) that commute with all of this, and which the device applies. A run whose
//! acquisitions come image by image takes the same steps.

mod centre;
mod discard;
mod echoes;
mod entropy;
mod epi_phase;
mod oversampling;
mod places;
mod ramps;
mod readouts;
#[cfg(test)]
mod tests;
mod turn;
mod whitening;

use std::sync::{Arc, OnceLock};

use ndarray::Array2;
use rayspin_core::{C64, Error, Result};
use rayspin_run::table;
pub use rayspin_run::{About, Idle, Param, Parameters, Value};

use crate::mri::raw::{Encoding, Flags, Label};
pub use centre::{Centre, ReversedCentre};
pub use discard::Discard;
pub use epi_phase::{Epi, EpiPhase, EpiReference};
pub use oversampling::Oversampling;
pub(crate) use oversampling::{grid_size, of_points, other_voxel_size};
pub use ramps::{Ramp, RampSampling};
pub use readouts::{Centres, Readout, ReadoutHeads, Readouts};
pub use whitening::{CoilMap, Noise, NoiseMeasurement, Whitening, measure};

/// Kinds of readouts that are no part of an image, and that tell how to correct those that are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sources {
    /// Kinds of readouts that belong to one image.
    pub of_image: Flags,
    /// Kinds of readouts that belong to the whole scan.
    pub of_scan: Flags,
}

impl Sources {
    /// Those of all corrections of the table.
    pub fn all() -> Self {
        static ALL: OnceLock<Sources> = OnceLock::new();
        *ALL.get_or_init(|| {
            Table::default().iter().map(|one| one.learns_from()).fold(Self::default(), |sources, one| Self {
                of_image: sources.of_image.with(one.of_image),
                of_scan: sources.of_scan.with(one.of_scan),
            })
        })
    }

    /// Whether the image `image` needs a readout with these flags and counters, which number the image `own`.
    /// Noise and calibration belong to every image, and other readouts that corrections learn from to all
    /// images of their slice.
    pub fn serve(&self, flags: Flags, own: Label, image: Label) -> bool {
        let same = (own.encoding, own.slice) == (image.encoding, image.slice);
        flags.is_image() && own == image
            || flags.contains(self.of_scan.with(Flags::CALIBRATION))
            || same && flags.contains(self.of_image)
    }
}

/// What is known of a scan before its frames are made.
#[derive(Debug, Clone, Copy)]
pub struct Known<'a> {
    /// What the heads of its readouts say.
    pub heads: &'a ReadoutHeads,
    /// The encoding of the images, as the header states it.
    pub encoding: &'a Encoding,
    /// What is known of the coils' noise.
    pub noise: CoilNoise<'a>,
}

/// What is known of the coils' noise.
#[derive(Debug, Clone, Copy)]
pub struct CoilNoise<'a> {
    /// Whether it is to be whitened where it is known.
    pub whitened: bool,
    /// What noise readouts say.
    pub measured: Option<&'a Noise>,
    /// A covariance Ψ `[coil, coil]` of any scale, in place of noise readouts.
    pub given: Option<&'a Array2<C64>>,
}

/// A step between the readouts of a scan and its frames.
pub trait Correction: Parameters + CopyCorrection {
    /// Its name and what it does.
    fn about(&self) -> About;

    /// The kinds of readouts that it learns from, besides readouts of images.
    fn learns_from(&self) -> Sources {
        Sources::default()
    }

    /// Why it does nothing in this scan; none where it acts, or where the scan's heads do not tell.
    fn idle(&self, _scan: &Known<'_>) -> Option<String> {
        None
    }

    /// Bytes that it takes at most to correct readouts of an image, which take `readouts` bytes themselves.
    fn bytes(&self, _heads: &ReadoutHeads, _encoding: &Encoding, _readouts: u64) -> u64 {
        0
    }

    /// Takes what the heads of the whole scan say of an image, whose encoding is the header's.
    fn scan(&self, _readouts: &mut Readouts<'_>, _notes: &mut Vec<String>) {}

    /// Takes what the readouts of an image say together, on a grid or along a trajectory.
    fn image(&self, _readouts: &mut Readouts<'_>, _notes: &mut Vec<String>) {}

    /// Corrects readouts of an image, or lines that calibrate it: their samples, and where these lie. On a
    /// grid no readout has a trajectory, and along one all have.
    ///
    /// Errors: readouts that it cannot correct, named.
    fn readouts(&self, _readouts: &mut Readouts<'_>, _notes: &mut Vec<String>) -> Result<()> {
        Ok(())
    }

    /// A linear map of the coils of all samples, which the device applies.
    ///
    /// Errors: options out of range.
    fn coils(&self, _noise: CoilNoise<'_>, _notes: &mut Vec<String>) -> Result<Option<CoilMap>> {
        Ok(None)
    }
}

table! {
    /// The table of corrections, each with the defaults of its parameters, in the order in which they act.
    ///
    /// ```
    /// use rayspin_scan::mri::corrections::Table;
    ///
    /// let names: Vec<_> = Table::default().iter().map(|one| one.about().name).collect();
    /// assert_eq!(names.first(), Some(&"discard"));
    /// ```
    pub struct Table of dyn Correction, called "correction", copied by CopyCorrection:
        // Echoes lie where the centre says, the phase between readouts is that of even samples, and whitening
        // mixes the coils of samples that are in place.
        Discard, Centre, Oversampling, Ramp, Epi, Whitening;
}

/// The corrections of a run: the corrections of the table, in the order in which they act, with the run's
/// parameters.
///
/// ```
/// use rayspin_scan::mri::corrections::{Corrections, Value};
/// use rayspin_scan::mri::FrameOptions;
///
/// let mut corrections = Corrections::default();
/// corrections.set("centre_line", Value::Count(12))?;
/// assert_eq!(corrections.get("centre_line"), Some(Value::Count(12)));
/// assert!(corrections.set("centre_lines", Value::Count(12)).is_err());
/// let options = FrameOptions { corrections, ..FrameOptions::default() }; // of frames whose header states another line
/// # Ok::<(), rayspin_core::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Corrections(Vec<Arc<dyn Correction>>);

impl Default for Corrections {
    fn default() -> Self {
        Self(Table::default().iter().map(|one| Arc::from(one.copy())).collect())
    }
}

impl Corrections {
    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &dyn Correction> {
        self.0.iter().map(|one| &**one)
    }

    /// Gives a parameter of a correction another value.
    ///
    /// Errors: a parameter that no correction has; a value of another kind or out of range.
    pub fn set(&mut self, name: &str, value: Value) -> Result<()> {
        let names = || {
            let params = self.iter().flat_map(|one| one.table());
            params.map(|param| param.name).collect::<Vec<_>>().join(", ")
        };
        let Some(index) = self.iter().position(|one| one.get(name).is_some()) else {
            return Err(Error::value("parameter of corrections", format!("one of {}", names()), name));
        };
        self.0[index] = with(&*self.0[index], [(name.to_owned(), value)])?;
        Ok(())
    }

    /// The value of a parameter; none where no correction has it.
    pub fn get(&self, name: &str) -> Option<Value> {
        self.iter().find_map(|one| one.get(name))
    }

    /// Bytes that corrections take at most beside the readouts of an image of this encoding, which take
    /// `readouts` bytes themselves.
    pub fn bytes(&self, heads: &ReadoutHeads, encoding: &Encoding, readouts: u64) -> u64 {
        // A readout is copied once.
        self.iter().map(|one| one.bytes(heads, encoding, readouts)).max().unwrap_or(0)
    }

    pub(crate) fn scan(&self, readouts: &mut Readouts<'_>, notes: &mut Vec<String>) {
        self.iter().for_each(|one| one.scan(readouts, notes));
    }

    pub(crate) fn image(&self, readouts: &mut Readouts<'_>, notes: &mut Vec<String>) {
        self.iter().for_each(|one| one.image(readouts, notes));
    }

    pub(crate) fn readouts(&self, readouts: &mut Readouts<'_>, notes: &mut Vec<String>) -> Result<()> {
        self.iter().try_for_each(|one| one.readouts(readouts, notes))
    }

    /// The maps of coils, one after the other.
    pub fn coils(&self, noise: CoilNoise<'_>, notes: &mut Vec<String>) -> Result<Option<CoilMap>> {
        let mut combined: Option<CoilMap> = None;
        for one in self.iter() {
            if let Some(next) = one.coils(noise, notes)? {
                combined = Some(match combined {
                    None => next,
                    Some(first) => first.then(&next)?,
                });
            }
        }
        Ok(combined)
    }
}

/// The heading of all corrections in help.
pub const GROUP: &str = "Corrections";
