use rayon::prelude::*;
use rayspin_core::{C32, Error, Ranges, Result, TrajectoryUnits, all_finite};

use super::frame::{check_finite, check_matrix};
use super::images::{Head, Images};
use super::times::Timing;
use super::{
    Acquisition, AcquisitionHead, Encoding, Frame, Label, Limits, Scan, ScanHeader, Series, SlicePlaces,
    TrajectoryKind, TrajectoryOptions, Window, calibration, cartesian, fullest, geometry, noncartesian,
};
use crate::mri::corrections::{Corrections, Readout, ReadoutHeads, Readouts, grid_size};
use crate::mri::raw::{is_known, note};

/// How frames are taken from a scan.
#[derive(Debug, Clone, Default)]
pub struct FrameOptions {
    /// Trajectory units to believe instead of the header or the range.
    pub units: Option<TrajectoryUnits>,
    /// What else is known of trajectories.
    pub trajectory: TrajectoryOptions,
    /// Matrix to reconstruct instead of the header's over the same field of view: x, y and, where z is to
    /// change, z.
    pub matrix: Option<Vec<usize>>,
    /// Whether [`Frame::times`] are wanted.
    pub times: bool,
    /// The dwell time in µs of readouts whose header states none, for their times.
    pub dwell_us: Option<f64>,
    /// Only these readouts of each image, counted from 0 in order of acquisition.
    pub readouts: Option<Ranges>,
    /// Corrections of the readouts.
    pub corrections: Corrections,
}

impl FrameOptions {
    /// How times are found, where they are wanted.
    pub(super) fn timing(&self) -> Option<Timing> {
        self.times.then_some(Timing { dwell_us: self.dwell_us })
    }
}

/// The images a scan holds and the readouts each is made of. They are in label order, but for the slices of a
/// repetition, which are in the order of their places ([`SlicePlaces`]).
///
/// ```
/// use rayspin_core::Monitor;
/// use rayspin_scan::mri::{FrameOptions, Label};
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
    images: Images,
    places: SlicePlaces,
    heads: ReadoutHeads,
}

impl Scan {
    /// Sorts the image readouts by what they are part of. Noise, calibration apart, navigator,
    /// phase-correction, feedback and dummy readouts are left out; averages stay together. Lines for
    /// calibration alone that lie between the lines of an image belong to the image.
    ///
    /// Errors: no image readout at all.
    pub fn frames(&self) -> Result<FrameIndex<'_>> {
        let images = Images::new(self.acquisitions.iter().map(Head::from));
        let mut places = SlicePlaces::default();
        let mut heads = ReadoutHeads::default();
        for acquisition in &self.acquisitions {
            let Acquisition { encoding, flags, centre_sample, ref counters, .. } = *acquisition;
            heads.add(encoding, flags, acquisition.data.ncols(), centre_sample);
            if flags.is_image() {
                places.add(&Label::of(encoding, counters), acquisition.place_of_slice());
            }
        }
        if images.labels().next().is_none() {
            return Err(Error::value(
                "acquisitions",
                "at least one that carries image data",
                format!("{} of noise, calibration, navigator or dummy kind", self.acquisitions.len()),
            ));
        }
        Ok(FrameIndex { scan: self, images, places, heads })
    }
}

impl FrameIndex<'_> {
    /// The labels, in order.
    pub fn labels(&self) -> impl Iterator<Item = Label> + '_ {
        self.places.sorted(self.images.labels().collect(), &mut Vec::new()).into_iter()
    }

    /// Where the slices lie.
    pub fn places(&self) -> &SlicePlaces {
        &self.places
    }

    /// What the heads of the scan's readouts say.
    pub fn heads(&self) -> &ReadoutHeads {
        &self.heads
    }

    /// What images of these labels have that hold far fewer lines than the fullest one, in words; none where
    /// all are sampled alike.
    pub fn uneven(&self, labels: &[Label]) -> Option<String> {
        self.images.uneven(labels, |index| Head::from(&self.scan.acquisitions[index]))
    }

    /// The image of these labels that has the most readouts ([`fullest`]).
    pub fn fullest(&self, labels: &[Label]) -> Option<Label> {
        let readouts = |number: usize| self.images.readouts(&labels[number]).map_or(0, <[usize]>::len);
        fullest(labels, readouts).map(|number| labels[number])
    }

    /// Assembles one image's samples; what had to be assumed goes to `notes` (once each).
    ///
    /// Errors: an unknown label, an encoding that the header lacks, or samples that contradict the header,
    /// each named.
    pub fn assemble(&self, label: Label, options: &FrameOptions, notes: &mut Vec<String>) -> Result<Frame> {
        let readouts = self
            .images
            .readouts(&label)
            .ok_or_else(|| Error::value("frame", "one that the scan holds", format!("{label:?}")))?;
        let readouts = only(readouts, options.readouts.as_ref())?;
        let references = self.images.references(readouts.iter().map(|&index| self.head(index)));
        if let Some(text) = self.images.unused(&label, Some(&label)) {
            note(notes, text);
        }
        let calibration = self.images.calibration(&label, Some(&label));
        self.frame(label, [&readouts, &calibration, &references], options, notes)
    }

    fn head(&self, index: usize) -> Head {
        Head::from(&self.scan.acquisitions[index])
    }

    fn frame(
        &self,
        label: Label,
        indices: [&[usize]; 3],
        options: &FrameOptions,
        notes: &mut Vec<String>,
    ) -> Result<Frame> {
        let Self { scan, heads, .. } = self;
        let [readouts, calibration, references] = indices.map(|indices| {
            indices.iter().map(|&index| (index, &scan.acquisitions[index])).collect::<Vec<_>>()
        });
        let (readouts, calibration, references) = (&readouts[..], &calibration[..], &references[..]);
        assemble(
            Parts { header: &scan.header, heads, label, readouts, calibration, references },
            options,
            notes,
        )
    }
}

/// The images of a dynamic scan in memory, repetitions or windows over the readouts, and the frames that
/// their maps are estimated from.
///
/// ```
/// use rayspin_core::Monitor;
/// use rayspin_scan::mri::{FrameOptions, Label, Window};
/// use rayspin_mri::simulate::trajectory::{Sampling, SpokeAngles};
/// use rayspin_mri::simulate::{SimulateOptions, simulate};
///
/// let sampling = Sampling::Radial { spokes: 30, angles: SpokeAngles::Golden };
/// let options = SimulateOptions { matrix: [16, 16, 1], sampling, ..SimulateOptions::default() };
/// let scan = simulate(&options, &Monitor::silent())?.scan;
/// let index = scan.frames()?;
/// let labels: Vec<Label> = index.labels().collect();
/// let window = Window { readouts: 10, stride: 5, frames: None };
/// let series = index.series(&labels, Some(&window), None)?;
/// assert_eq!(series.labels().len(), 5); // spokes 0–9, 5–14, … 20–29
/// let frame = series.image(4, &FrameOptions::default(), &mut Vec::new())?;
/// assert_eq!(frame.label.repetition, 4);
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub struct SeriesFrames<'a> {
    index: &'a FrameIndex<'a>,
    series: Series,
    encoded: [usize; 3],
}

impl<'a> FrameIndex<'a> {
    /// The images of these labels in time order; of each the `chosen` readouts, counted from 0. A window
    /// takes readouts across repetitions.
    ///
    /// Errors: no label; repetitions with different slices; a readout that an image lacks; a window that the
    /// readouts do not fill.
    pub fn series(
        &'a self,
        labels: &[Label],
        window: Option<&Window>,
        chosen: Option<&Ranges>,
    ) -> Result<SeriesFrames<'a>> {
        let places = self.scan.acquisitions.iter().map(AcquisitionHead::from).collect();
        let series = match window {
            Some(window) => Series::of_windows(places, labels, window, chosen)?,
            None => Series::of_labels(places, labels, chosen)?,
        };
        let encoding = labels.first().and_then(|label| self.scan.header.encodings.get(label.encoding));
        let encoded = encoding.map_or([0; 3], |encoding| encoding.encoded.matrix);
        Ok(SeriesFrames { index: self, series, encoded })
    }
}

impl SeriesFrames<'_> {
    /// The labels, one for each slice and point in time; of windows repetitions count the points in time.
    pub fn labels(&self) -> Vec<Label> {
        self.series.labels().collect()
    }

    /// Number of slices.
    pub fn slices(&self) -> usize {
        self.series.slices()
    }

    /// The number of the image that a run looks at ([`fullest`]), and of another image of the same slice; the
    /// first twice where there is but one.
    pub fn fullest_and_another(&self) -> [usize; 2] {
        let (fullest, slices) = (self.series.fullest(), self.series.slices());
        let another = if fullest < slices { fullest + slices } else { fullest - slices };
        [fullest, if another < self.series.labels().len() { another } else { fullest }]
    }

    /// An image, counted from 0; what had to be assumed goes to `notes` (once each).
    ///
    /// Errors: an image that the series lacks; as [`FrameIndex::assemble`].
    pub fn image(&self, number: usize, options: &FrameOptions, notes: &mut Vec<String>) -> Result<Frame> {
        let count = self.series.labels().len();
        let label = self.series.labels().nth(number);
        let label = label.ok_or_else(|| Error::value("image", format!("a number below {count}"), number))?;
        if let Some(text) = self.series.unused_calibration(number) {
            note(notes, text);
        }
        self.frame(label, self.series.readouts(number), &self.series.calibration(number), options, notes)
    }

    /// The frame that the maps of a slice, by position, are estimated from for all its images; none where a
    /// single image has enough samples for maps of its own, or others add nothing
    /// ([`Series::readouts_of_maps`]).
    ///
    /// Errors: as [`FrameIndex::assemble`].
    pub fn maps(
        &self,
        slice: usize,
        options: &FrameOptions,
        notes: &mut Vec<String>,
    ) -> Result<Option<(Label, Frame)>> {
        let Some(readouts) = self.series.readouts_of_maps(slice, &self.encoded) else { return Ok(None) };
        note(notes, maps_of_first_readouts(readouts.len()));
        let label = self.series.labels().nth(slice).unwrap_or_default();
        let readouts: Vec<usize> = readouts.into_iter().collect();
        let frame = self.frame(label, &readouts, &self.series.calibration(slice), options, notes)?;
        Ok(Some((label, frame)))
    }

    fn frame(
        &self,
        label: Label,
        readouts: &[usize],
        calibration: &[usize],
        options: &FrameOptions,
        notes: &mut Vec<String>,
    ) -> Result<Frame> {
        let references = self.series.references(readouts);
        self.index.frame(label, [readouts, calibration, &references], options, notes)
    }
}

/// The note on maps that all images of a slice take from its first readouts.
pub fn maps_of_first_readouts(count: usize) -> String {
    format!("coil sensitivities are estimated from the first {count} readouts of a slice, for all images")
}

/// The chosen ones of an image's readouts. Errors: a readout that the image lacks.
pub(super) fn only(readouts: &[usize], chosen: Option<&Ranges>) -> Result<Vec<usize>> {
    let Some(chosen) = chosen else { return Ok(readouts.to_vec()) };
    chosen.expect_among("readouts", &Vec::from_iter(0..readouts.len()))?;
    Ok(chosen.below(readouts.len()).map(|index| readouts[index]).collect())
}

/// What a frame is made of: acquisitions, each with its number in the file.
#[derive(Debug, Clone, Copy)]
pub struct Parts<'a> {
    /// The header of the scan.
    pub header: &'a ScanHeader,
    /// What the heads of all readouts of the scan say.
    pub heads: &'a ReadoutHeads,
    /// The image.
    pub label: Label,
    /// Its readouts.
    pub readouts: &'a [(usize, &'a Acquisition)],
    /// The calibration lines that go with it, of a scan on the grid.
    pub calibration: &'a [(usize, &'a Acquisition)],
    /// The readouts that corrections learn from.
    pub references: &'a [(usize, &'a Acquisition)],
}

/// One image's samples from its readouts, corrected; what had to be assumed goes to `notes` (once each).
///
/// Errors: no readout, an encoding that the header lacks, or samples that contradict the header, each named.
pub fn assemble(parts: Parts<'_>, options: &FrameOptions, notes: &mut Vec<String>) -> Result<Frame> {
    let Parts { header, heads, label, readouts: stated, calibration, references } = parts;
    let Some(first) = stated.first() else {
        return Err(Error::value("readouts of an image", "at least one", 0));
    };
    let encoding = header.encodings.get(label.encoding).ok_or_else(|| {
        Error::value(
            "encoding_space_ref",
            format!("below {} (the header's encodings)", header.encodings.len()),
            label.encoding,
        )
    })?;
    let corrections = &options.corrections;
    let mut readouts = Readouts::new(label, encoding.clone(), heads, stated, references);
    corrections.scan(&mut readouts, notes);
    let Readouts { encoding, each, .. } = &mut readouts;
    settle(encoding, each, notes);
    if let Some(matrix) = &options.matrix {
        for (axis, &n) in matrix.iter().enumerate().take(3) {
            encoding.recon.matrix[axis] = n;
        }
    }
    check_matrix(encoding.encoded.matrix)?;
    check_matrix(encoding.recon.matrix)?;
    let coils = first.1.data.nrows();
    for (index, readout) in stated {
        if readout.data.nrows() != coils || coils == 0 {
            return Err(Error::value(
                format!("acquisition {index}: coils"),
                format!("{} as in acquisition {}", coils.max(1), first.0),
                readout.data.nrows(),
            ));
        }
    }
    expect_finite(stated)?;
    let empty = |readout: &Acquisition| readout.data.iter().all(|value| *value == C32::ZERO);
    let filled = stated.iter().filter(|(_, readout)| !empty(readout)).count();
    if (1..stated.len()).contains(&filled) {
        note(
            notes,
            "some readouts hold zeros alone: they count as measured, and the image is wrong if they were not",
        );
    }
    corrections.image(&mut readouts, notes);
    let encoding = &readouts.encoding;
    let with_trajectory = stated.iter().filter(|(_, r)| r.trajectory.is_some()).count();
    let place = geometry::of_readout(first.1, encoding, with_trajectory == 0, notes);
    if with_trajectory == 0
        && matches!(
            encoding.trajectory,
            TrajectoryKind::Radial | TrajectoryKind::GoldenAngle | TrajectoryKind::Spiral
        )
    {
        let text = "the header names a trajectory that is no grid, and the readouts have none: they are taken as lines of a grid, \
                    and the image is wrong if they are not";
        note(notes, text);
    }
    if with_trajectory == 0 {
        say_stretched(encoding, &readouts.each, notes);
    }
    let (matrix, samples, times) = if with_trajectory == 0 {
        cartesian::assemble(&mut readouts, corrections, options.timing(), notes)?
    } else if with_trajectory == stated.len() {
        noncartesian::assemble(&mut readouts, options, header.trajectory_units, notes)?
    } else {
        return Err(Error::value(
            "trajectory",
            "one for every readout of an image, or none",
            format!("{with_trajectory} of {}", stated.len()),
        ));
    };
    if stated.iter().any(|(_, readout)| readout.flags.is_calibration_line()) {
        note(notes, calibration::EMBEDDED);
    }
    let image = calibration::Image { header, readouts: &readouts, corrections, coils };
    let calibration = image.calibration(calibration, &samples, notes)?;
    let interpolated = readouts.interpolated;
    Ok(Frame { label, matrix, geometry: place, samples, times, calibration, interpolated })
}

/// Settles the encoding of an image. A single partition is a slice, whatever the header's matrix says.
fn settle(encoding: &mut Encoding, readouts: &[Readout<'_>], notes: &mut Vec<String>) {
    let partition = readouts.first().map_or(0, |readout| readout.counters.step_2);
    let single = encoding.step_2.is_none_or(|limits| limits.minimum == limits.maximum)
        && readouts.iter().all(|readout| readout.counters.step_2 == partition);
    if single && encoding.recon.matrix[2] == 1 && encoding.encoded.matrix[2] > 1 {
        let depth = grid_size(encoding, 2);
        let count = std::mem::replace(&mut encoding.encoded.matrix[2], 1);
        let partition = usize::from(partition);
        encoding.step_2 = Some(Limits { minimum: partition, maximum: partition, centre: partition });
        if depth > 1 {
            let text = "partitions, and one was measured: a two-dimensional scan";
            note(notes, format!("the header encodes {count} {text}"));
        }
    }
}

/// Says so where readouts have as many samples as they would without oversampling, although the header
/// encodes it, and k = 0 in their middle, which a partial echo has not. They may lie as the header says, or
/// half as dense.
fn say_stretched(encoding: &Encoding, readouts: &[Readout<'_>], notes: &mut Vec<String>) {
    let ([columns, ..], fov) =
        (encoding.encoded.matrix, [encoding.encoded.fov_mm[0], encoding.recon.fov_mm[0]]);
    let oversampling = fov[0] / fov[1];
    let known = fov.into_iter().all(is_known) && encoding.ramps.is_none() && encoding.places.is_none();
    let short = |readout: &Readout<'_>| {
        let samples = readout.kept.len();
        samples == readout.data.ncols()
            && 2 * readout.centre == samples
            && (samples as f64 * oversampling).round() == columns as f64
    };
    if known && oversampling > 1.0 && !readouts.is_empty() && readouts.iter().all(short) {
        let samples = readouts[0].kept.len();
        note(
            notes,
            format!(
                "the header encodes {columns} samples a readout, and readouts have {samples} with the centre of k-space in their \
                 middle: if their oversampling was removed, the image is stretched along x"
            ),
        );
    }
}

/// That readouts hold numbers alone. Errors: the first that does not.
pub(super) fn expect_finite(readouts: &[(usize, &Acquisition)]) -> Result<()> {
    let finite = |(_, readout): &(usize, &Acquisition)| {
        readout.data.as_slice().is_some_and(|values| all_finite(bytemuck::cast_slice(values)))
    };
    if readouts.par_iter().all(finite) {
        return Ok(());
    }
    readouts.iter().try_for_each(|(index, readout)| {
        check_finite(&format!("acquisition {index}: samples"), readout.data.iter())
    })
}
