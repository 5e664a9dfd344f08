//! What corrections see of a scan: the heads of all its readouts, and the readouts of one image on their way
//! to a frame.

use std::collections::BTreeMap;
use std::ops::{Deref, Range};

use super::ReversedCentre;
use crate::mri::raw::{Acquisition, Encoding, Flags, Label};

/// What the heads of a scan's readouts say together: flags, samples and `center_sample`, by encoding.
///
/// ```
/// use rayspin_scan::mri::corrections::{ReadoutHeads, ReversedCentre};
/// use rayspin_scan::mri::Flags;
///
/// let mut heads = ReadoutHeads::default();
/// heads.add(0, Flags::default(), 64, 20);
/// heads.add(0, Flags::REVERSE, 64, 43); // the stored sample that mirrors 20
/// assert_eq!(heads.convention(0), Some(ReversedCentre::Stored));
/// ```
#[derive(Debug, Clone, Default)]
pub struct ReadoutHeads {
    /// Every flag that a readout has.
    flags: Flags,
    /// Readouts for phase correction.
    phase_corrections: usize,
    /// Whether readouts of an encoding, a number of samples and a centre run forwards, and whether some are
    /// reversed.
    directions: BTreeMap<(usize, usize, usize), [bool; 2]>,
}

impl ReadoutHeads {
    /// Takes the head of a readout. Noise has no centre.
    pub fn add(&mut self, encoding: usize, flags: Flags, samples: usize, centre: usize) {
        self.flags = self.flags.with(flags);
        self.phase_corrections += usize::from(flags.contains(Flags::PHASE_CORRECTION));
        if !flags.contains(Flags::NOISE) {
            let reversed = usize::from(flags.contains(Flags::REVERSE));
            self.directions.entry((encoding, samples, centre)).or_default()[reversed] = true;
        }
    }

    /// Whether a readout has one of these flags.
    pub fn has(&self, flags: Flags) -> bool {
        self.flags.contains(flags)
    }

    /// Readouts for phase correction.
    pub fn phase_corrections(&self) -> usize {
        self.phase_corrections
    }

    /// How reversed readouts are counted: one has the number of the others, or the number that mirrors it.
    /// None where they do not tell.
    pub fn convention(&self, encoding: usize) -> Option<ReversedCentre> {
        let (mut stored, mut forward) = (false, false);
        let own = (encoding, 0, 0)..=(encoding, usize::MAX, usize::MAX);
        for (&(_, samples, centre), _) in self.directions.range(own).filter(|(_, [_, reversed])| *reversed) {
            let Some(mirrored) = mirrored(samples, centre).filter(|&mirrored| mirrored != centre) else {
                continue;
            };
            let runs_forward = |centre| {
                self.directions.get(&(encoding, samples, centre)).is_some_and(|[forward, _]| *forward)
            };
            stored |= runs_forward(mirrored);
            forward |= runs_forward(centre);
        }
        match (stored, forward) {
            (true, false) => Some(ReversedCentre::Stored),
            (false, true) => Some(ReversedCentre::Forward),
            _ => None,
        }
    }
}

/// The sample that lies where `sample` does once the readout is turned round.
pub(super) fn mirrored(samples: usize, sample: usize) -> Option<usize> {
    samples.checked_sub(1)?.checked_sub(sample)
}

/// Where the centre of k-space lies among the lines and partitions of an image, and how its reversed readouts
/// are counted; none while that is not known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Centres {
    /// The line, as `kspace_encode_step_1` counts.
    pub line: Option<usize>,
    /// The partition, as `kspace_encode_step_2` counts.
    pub partition: Option<usize>,
    /// How `center_sample` counts the samples of reversed readouts.
    pub reversed: Option<ReversedCentre>,
}

/// The readouts of one image, or the lines that calibrate it, on their way to a frame.
#[derive(Debug, Clone)]
pub struct Readouts<'a> {
    /// The image.
    pub label: Label,
    /// Its encoding.
    pub encoding: Encoding,
    /// What the heads of the whole scan say.
    pub heads: &'a ReadoutHeads,
    /// Readouts of the kinds that corrections [learn from](super::Sources). They belong to the same image,
    /// else to the nearest repetition of its slice.
    pub references: Vec<Readout<'a>>,
    /// Where the centre of k-space lies.
    pub centres: Centres,
    /// Places of the grid along x, y and z that hold the image's readouts. Along a trajectory there is no
    /// grid.
    pub grid: [usize; 3],
    /// The factor of a grid's samples. With it the image is signal per field of view of the header.
    pub scale: f64,
    /// Whether a correction interpolated along them.
    pub interpolated: bool,
    /// The readouts.
    pub each: Vec<Readout<'a>>,
}

impl<'a> Readouts<'a> {
    /// Readouts as their heads state them, each with its number in the file.
    pub fn new(
        label: Label,
        encoding: Encoding,
        heads: &'a ReadoutHeads,
        readouts: &[(usize, &'a Acquisition)],
        references: &[(usize, &'a Acquisition)],
    ) -> Self {
        let grid = encoding.recon.matrix;
        let (references, each) = (Readout::each_of(references), Readout::each_of(readouts));
        let (centres, scale, interpolated) = (Centres::default(), 1.0, false);
        Self { label, encoding, heads, references, centres, grid, scale, interpolated, each }
    }

    /// Other readouts on the way to the same image.
    pub(crate) fn others(&self, readouts: &[(usize, &'a Acquisition)]) -> Self {
        let each = Readout::each_of(readouts);
        Self { each, references: self.references.clone(), encoding: self.encoding.clone(), ..*self }
    }
}

/// A readout on its way to a frame: what its head states, and what corrections made of it.
#[derive(Debug, Clone)]
pub struct Readout<'a> {
    /// Its number in the file.
    pub index: usize,
    stated: &'a Acquisition,
    changed: Option<Box<Acquisition>>,
    /// The samples that carry signal, as they are stored.
    pub kept: Range<usize>,
    /// The sample at the centre of k-space on a grid, counted in the direction in which k rises.
    pub centre: usize,
    /// Whether k falls from sample to sample.
    pub reversed: bool,
}

impl<'a> Readout<'a> {
    /// The readout of this number in the file, as its head states it.
    pub fn new(index: usize, stated: &'a Acquisition) -> Self {
        let reversed = stated.flags.contains(Flags::REVERSE);
        let (kept, centre) = (0..stated.data.ncols(), stated.centre_sample);
        Self { index, stated, changed: None, kept, centre, reversed }
    }

    fn each_of(stated: &[(usize, &'a Acquisition)]) -> Vec<Self> {
        stated.iter().map(|&(index, stated)| Self::new(index, stated)).collect()
    }

    /// The acquisition, to be changed. The scan keeps its own.
    pub fn change(&mut self) -> &mut Acquisition {
        self.changed.get_or_insert_with(|| Box::new(self.stated.clone()))
    }
}

impl Deref for Readout<'_> {
    type Target = Acquisition;

    fn deref(&self) -> &Acquisition {
        self.changed.as_deref().unwrap_or(self.stated)
    }
}
