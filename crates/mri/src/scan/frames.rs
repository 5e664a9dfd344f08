use std::collections::BTreeMap;

use rayon::prelude::*;
use rayspin_core::{Error, Ranges, Result, TrajectoryUnits, all_finite};

use super::frame::{check_finite, check_matrix};
use super::{
    Acquisition, CalibrationLines, Centres, Encoding, Frame, Label, Limits, ReadoutHeads, Samples, Scan,
    ScanHeader, SlicePlaces, cartesian, geometry, noncartesian,
};

/// How frames are taken from a scan.
#[derive(Debug, Clone, Default)]
pub struct FrameOptions {
    /// Trajectory units to believe instead of the header or the range.
    pub units: Option<TrajectoryUnits>,
    /// Matrix to reconstruct instead of the header's over the same field of view: x, y and, where z is to change, z.
    pub matrix: Option<Vec<usize>>,
    /// Whether [`Frame::times`] are wanted.
    pub times: bool,
    /// Only these readouts of each image, counted from 0 in order of acquisition.
    pub readouts: Option<Ranges>,
    /// Centres of k-space to believe instead of the header's.
    pub centres: Centres,
}

/// The images a scan holds and the readouts each is made of. They are in label order, but for the slices of a repetition, which are
/// in the order of their places ([`SlicePlaces`]).
///
/// ```
/// use rayspin_core::Monitor;
/// use rayspin_mri::scan::{FrameOptions, Label};
/// use rayspin_mri::simulate::{SimulateOptions, simulate};
///
/// let options = SimulateOptions { matrix: [16, 16, 2], repetitions: 3, ..SimulateOptions::default() };
/// let scan = simulate(&options, &Monitor::silent())?.scan;
/// let index = scan.frames()?;
/// let labels: Vec<Label> = index.labels().collect();
/// assert_eq!(labels.len(), 2 * 3); // slices and repetitions
/// let frame = index.assemble(labels[5], &FrameOptions::default(), &mut Vec::new())?;
/// assert_eq!((frame.label.repetition, frame.label.slice), (2, 1));
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub struct FrameIndex<'a> {
    scan: &'a Scan,
    frames: BTreeMap<Label, Vec<usize>>,
    places: SlicePlaces,
    heads: ReadoutHeads,
}

impl Scan {
    /// Sorts the image readouts by what they are part of. Noise, calibration, navigator, phase-correction, feedback and
    /// dummy readouts are left out; averages stay together.
    ///
    /// Errors: no image readout at all.
    pub fn frames(&self) -> Result<FrameIndex<'_>> {
        let mut frames: BTreeMap<Label, Vec<usize>> = BTreeMap::new();
        let mut places = SlicePlaces::default();
        let mut heads = ReadoutHeads::default();
        for (index, acquisition) in self.acquisitions.iter().enumerate() {
            let Acquisition { encoding, flags, centre_sample, .. } = *acquisition;
            heads.add(encoding, flags, acquisition.data.ncols(), centre_sample);
            if !acquisition.flags.is_image() {
                continue;
            }
            let c = &acquisition.counters;
            let label = Label {
                encoding: acquisition.encoding,
                contrast: c.contrast,
                phase: c.phase,
                set: c.set,
                repetition: c.repetition,
                slice: c.slice,
            };
            frames.entry(label).or_default().push(index);
            places.add(&label, acquisition.place_of_slice());
        }
        if frames.is_empty() {
            return Err(Error::value(
                "acquisitions",
                "at least one that carries image data",
                format!("{} of noise, calibration, navigator or dummy kind", self.acquisitions.len()),
            ));
        }
        Ok(FrameIndex { scan: self, frames, places, heads })
    }
}

impl FrameIndex<'_> {
    /// The labels, in order.
    pub fn labels(&self) -> impl Iterator<Item = Label> + '_ {
        self.places.sorted(self.frames.keys().copied().collect(), &mut Vec::new()).into_iter()
    }

    /// Where the slices lie.
    pub fn places(&self) -> &SlicePlaces {
        &self.places
    }

    /// Assembles one image's samples; what had to be assumed goes to `notes` (once each).
    ///
    /// Errors: an unknown label, an encoding that the header lacks, or samples that contradict the header, each named.
    pub fn assemble(&self, label: Label, options: &FrameOptions, notes: &mut Vec<String>) -> Result<Frame> {
        let readouts = self
            .frames
            .get(&label)
            .ok_or_else(|| Error::value("frame", "one that the scan holds", format!("{label:?}")))?;
        let readouts = only(readouts, options.readouts.as_ref())?;
        let readouts: Vec<_> = readouts.into_iter().map(|i| (i, &self.scan.acquisitions[i])).collect();
        let calibration = self.calibration(label);
        let centres = options.centres.with_heads(&self.heads, &label, &readouts, notes);
        let options = &FrameOptions { centres, ..options.clone() };
        assemble(&self.scan.header, label, &readouts, &calibration, options, notes)
    }

    /// The calibration lines of an image: lines without a trajectory of the same encoding and slice. If some
    /// of them have the image's repetition, contrast, phase and set, only these.
    fn calibration(&self, label: Label) -> Vec<(usize, &Acquisition)> {
        let all: Vec<(usize, &Acquisition)> = self
            .scan
            .acquisitions
            .iter()
            .enumerate()
            .filter(|(_, a)| {
                a.flags.is_calibration_line()
                    && (a.encoding, a.counters.slice) == (label.encoding, label.slice)
                    && a.trajectory.is_none()
            })
            .collect();
        let own = |a: &Acquisition| {
            let c = &a.counters;
            (c.repetition, c.contrast, c.phase, c.set)
                == (label.repetition, label.contrast, label.phase, label.set)
        };
        let mine: Vec<_> = all.iter().copied().filter(|(_, a)| own(a)).collect();
        if mine.is_empty() { all } else { mine }
    }
}

/// The chosen ones of an image's readouts. Errors: a readout that the image lacks.
pub(super) fn only(readouts: &[usize], chosen: Option<&Ranges>) -> Result<Vec<usize>> {
    let Some(chosen) = chosen else { return Ok(readouts.to_vec()) };
    chosen.expect_among("readouts", &Vec::from_iter(0..readouts.len()))?;
    Ok(chosen.below(readouts.len()).map(|at| readouts[at]).collect())
}

/// One image's samples from its readouts, each with its number in the file, and the calibration lines that go with it (of a
/// scan on the grid); what had to be assumed goes to `notes` (once each).
///
/// Errors: no readout, an encoding that the header lacks, or samples that contradict the header, each named.
pub fn assemble(
    header: &ScanHeader,
    label: Label,
    readouts: &[(usize, &Acquisition)],
    calibration: &[(usize, &Acquisition)],
    options: &FrameOptions,
    notes: &mut Vec<String>,
) -> Result<Frame> {
    let Some(first) = readouts.first() else {
        return Err(Error::value("readouts of an image", "at least one", 0));
    };
    let mut encoding = encoding_of(header, label, readouts, notes)?;
    if let Some(matrix) = &options.matrix {
        for (axis, &n) in matrix.iter().enumerate().take(3) {
            encoding.recon.matrix[axis] = n;
        }
    }
    check_matrix(encoding.encoded.matrix)?;
    check_matrix(encoding.recon.matrix)?;
    let coils = first.1.data.nrows();
    for (index, readout) in readouts {
        if readout.data.nrows() != coils || coils == 0 {
            return Err(Error::value(
                format!("acquisition {index} coils"),
                format!("{} as in acquisition {}", coils.max(1), first.0),
                readout.data.nrows(),
            ));
        }
    }
    expect_finite(readouts)?;
    let centres = options.centres.settled(readouts, &encoding, notes);
    let with_trajectory = readouts.iter().filter(|(_, r)| r.trajectory.is_some()).count();
    let place = geometry::of_readout(first.1, &encoding, with_trajectory == 0, notes);
    let (matrix, samples, times) = if with_trajectory == 0 {
        cartesian::assemble(readouts, &encoding, &centres, options.times, notes)?
    } else if with_trajectory == readouts.len() {
        let units = options.units.or(header.trajectory_units);
        noncartesian::assemble(readouts, &encoding, &centres, units, options.times, notes)?
    } else {
        return Err(Error::value(
            "trajectory",
            "one for every readout of an image, or none",
            format!("{with_trajectory} of {}", readouts.len()),
        ));
    };
    let calibration = match &samples {
        Samples::Cartesian { sampled, .. } => {
            calibration_lines(calibration, coils, (&encoding, &centres), sampled.shape(), notes)?
        }
        Samples::NonCartesian { .. } => None,
    };
    Ok(Frame { label, matrix, geometry: place, samples, times, calibration })
}

/// The encoding of an image. A single partition is a slice, whatever the header's matrix says.
fn encoding_of(
    header: &ScanHeader,
    label: Label,
    readouts: &[(usize, &Acquisition)],
    notes: &mut Vec<String>,
) -> Result<Encoding> {
    let encoding = header.encodings.get(label.encoding).ok_or_else(|| {
        Error::value(
            "encoding_space_ref",
            format!("below {} (the header's encodings)", header.encodings.len()),
            label.encoding,
        )
    })?;
    let mut encoding = encoding.clone();
    let partition = readouts.first().map_or(0, |(_, readout)| readout.counters.step_2);
    let single = encoding.step_2.is_none_or(|limits| limits.minimum == limits.maximum)
        && readouts.iter().all(|(_, readout)| readout.counters.step_2 == partition);
    if single && encoding.recon.matrix[2] == 1 && encoding.encoded.matrix[2] > 1 {
        let depth = cartesian::grid_size(&encoding, 2);
        let count = std::mem::replace(&mut encoding.encoded.matrix[2], 1);
        let partition = usize::from(partition);
        encoding.step_2 = Some(Limits { minimum: partition, maximum: partition, centre: partition });
        if depth > 1 {
            let text = "partitions, and one was measured: a two-dimensional scan";
            note(notes, format!("the header encodes {count} {text}"));
        }
    }
    Ok(encoding)
}

fn calibration_lines(
    readouts: &[(usize, &Acquisition)],
    coils: usize,
    (encoding, centres): (&Encoding, &Centres),
    grid: &[usize],
    notes: &mut Vec<String>,
) -> Result<Option<CalibrationLines>> {
    let Some((first, _)) = readouts.first() else { return Ok(None) };
    if readouts.iter().any(|(_, a)| a.data.nrows() != coils) {
        note(notes, "calibration readouts have other coils than the images and are left out");
        return Ok(None);
    }
    expect_finite(readouts)?;
    match cartesian::assemble(readouts, encoding, centres, false, notes)? {
        (_, Samples::Cartesian { kspace, sampled }, _) if sampled.shape() == grid => {
            let text = "calibration readouts apart from the images tell the coils' sensitivities";
            note(notes, text);
            Ok(Some(CalibrationLines { kspace, sampled }))
        }
        _ => Err(Error::value(format!("acquisition {first}"), "calibration on the grid", "another grid")),
    }
}

/// That readouts hold numbers alone. Errors: the first that does not.
fn expect_finite(readouts: &[(usize, &Acquisition)]) -> Result<()> {
    let finite = |(_, readout): &(usize, &Acquisition)| {
        readout.data.as_slice().is_some_and(|values| all_finite(bytemuck::cast_slice(values)))
    };
    if readouts.par_iter().all(finite) {
        return Ok(());
    }
    readouts.iter().try_for_each(|(index, readout)| {
        check_finite(&format!("acquisition {index} samples"), readout.data.iter())
    })
}

pub(super) fn note(notes: &mut Vec<String>, text: impl Into<String>) {
    let text = text.into();
    if !notes.contains(&text) {
        notes.push(text);
    }
}
