//! Which readouts each image of a dynamic scan is made of, known from their heads.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use rayspin_core::{C32, Error, Ranges, Result};

use super::frames::only;
use super::images::{Head, Images};
use super::{Acquisition, Counters, Flags, Label, TIMES, grid_of, in_time, varying};

/// Samples of a coil for each cell of the encoded matrix, from which the sensitivities of a series are
/// estimated at least. Fully sampled spokes have π/2.
pub const MAPS_SAMPLES: f64 = 1.5;

/// What the head of a readout says of its place in the experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AcquisitionHead {
    /// What the readout is for.
    pub flags: Flags,
    /// Its counters.
    pub counters: Counters,
    /// Its encoding.
    pub encoding: usize,
    /// Time stamp, in the vendor's ticks.
    pub time_stamp: u32,
    /// Whether it has a trajectory.
    pub trajectory: bool,
    /// Samples of one coil.
    pub samples: usize,
    /// The sample at the k-space centre, as the head states it.
    pub centre_sample: usize,
    /// Size of the readout in memory, bytes.
    pub bytes: u64,
}

impl From<&Acquisition> for AcquisitionHead {
    fn from(readout: &Acquisition) -> Self {
        let points = readout.trajectory.as_ref().map_or(0, |points| points.len() * size_of::<f32>());
        Self {
            flags: readout.flags,
            counters: readout.counters,
            encoding: readout.encoding,
            time_stamp: readout.time_stamp,
            trajectory: readout.trajectory.is_some(),
            samples: readout.data.ncols(),
            centre_sample: readout.centre_sample,
            bytes: (readout.data.len() * size_of::<C32>() + points) as u64,
        }
    }
}

impl AcquisitionHead {
    /// The label of the readout's image, if its flags say that it belongs to one.
    pub fn label(&self) -> Option<Label> {
        self.flags.is_image().then(|| Label::of(self.encoding, &self.counters))
    }
}

/// A window over the readouts of each slice in the order in which they were acquired, one image at each of
/// its steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// Readouts of an image.
    pub readouts: usize,
    /// Readouts from one image to the next.
    pub stride: usize,
    /// Images at most; as many as the scan has readouts for when absent.
    pub frames: Option<usize>,
}

impl Window {
    /// The images that `readouts` of a slice give.
    ///
    /// Errors: a window or stride of 0; fewer readouts than the window has; more images than they give, or
    /// than a file can count (65 535).
    pub fn images(&self, readouts: usize) -> Result<usize> {
        for (what, value) in [("window", self.readouts), ("stride", self.stride)] {
            if value == 0 {
                return Err(Error::value(what, "at least 1 readout", 0));
            }
        }
        if readouts < self.readouts {
            let expected = format!("at most the {readouts} readouts of a slice");
            return Err(Error::value("window", expected, self.readouts));
        }
        let fitting = (readouts - self.readouts) / self.stride + 1;
        let count = match self.frames {
            Some(0) => return Err(Error::value("frames", "at least 1", 0)),
            Some(frames) if frames > fitting => {
                let expected = format!("at most the {fitting} that {readouts} readouts give");
                return Err(Error::value("frames", expected, frames));
            }
            asked => asked.unwrap_or(fitting),
        };
        if count > usize::from(u16::MAX) {
            let expected = format!("at most {} (take a longer stride)", u16::MAX);
            return Err(Error::value("frames", expected, count));
        }
        Ok(count)
    }
}

/// The volumes of a scan in the order of their labels, all slices of one after all of the one before: its
/// repetitions, contrasts, cardiac phases and sets, or windows.
///
/// Image i of a window of W readouts and stride S holds readouts iS … iS + W − 1 of each slice; the label's
/// repetition counts the images then.
///
/// ```
/// use rayspin_scan::mri::{Counters, Flags, AcquisitionHead, Series, Window};
///
/// let place = |shot| AcquisitionHead {
///     flags: Flags(0),
///     counters: Counters { step_1: shot, ..Counters::default() },
///     encoding: 0,
///     time_stamp: 0,
///     trajectory: true,
///     samples: 64,
///     centre_sample: 32,
///     bytes: 512,
/// };
/// let heads: Vec<AcquisitionHead> = (0..30).map(place).collect(); // 30 spokes
/// let Some(label) = heads[0].label() else { panic!("a readout of an image") };
/// let window = Window { readouts: 10, stride: 5, frames: None };
/// let series = Series::of_windows(heads, &[label], &window, None)?;
/// assert_eq!(series.volumes(), 5); // spokes 0–9, 5–14, … 20–29
/// assert_eq!(series.readouts(1), (5..15).collect::<Vec<_>>());
/// # Ok::<(), rayspin_core::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Series {
    heads: Vec<AcquisitionHead>,
    /// Readouts in acquisition order: one sequence for each image, or with a window for each slice.
    sequences: Vec<Vec<usize>>,
    frames: Vec<(Label, usize, Range<usize>)>,
    images: Images,
    /// Whether the images are windows, which the scan's counters do not number.
    windows: bool,
    slices: usize,
}

/// The number of the image that a run looks at to choose a method and its parameters; `holds` says how much
/// the image of each number holds. It is the middle slice of the first volume, among the images that hold the
/// most: outer slices often show little of the object.
pub fn fullest<K: Ord>(labels: &[Label], holds: impl Fn(usize) -> K) -> Option<usize> {
    let most = (0..labels.len()).map(&holds).max()?;
    let mut full = (0..labels.len()).filter(|&number| holds(number) == most).peekable();
    let volume = labels[*full.peek()?].volume();
    let slices: Vec<usize> = full.filter(|&number| labels[number].volume() == volume).collect();
    slices.get((slices.len() - 1) / 2).copied()
}

impl Series {
    /// The images of `labels`, as the counters sort them; of each image the chosen readouts, counted from 0.
    ///
    /// Errors: no label; volumes with different slices; a readout that an image lacks.
    pub fn of_labels(heads: Vec<AcquisitionHead>, labels: &[Label], chosen: Option<&Ranges>) -> Result<Self> {
        let images = Images::new(heads.iter().map(Head::from));
        let sequences = sequences(&images, labels, |label| label, chosen)?;
        let frames = labels.iter().zip(&sequences).enumerate();
        let frames = frames.map(|(index, (&label, readouts))| (label, index, 0..readouts.len())).collect();
        Self::new(heads, images, sequences, frames, false)
    }

    /// Windows over the readouts of all of `labels`, whose repetitions are joined; over the chosen ones of
    /// each slice, counted from 0.
    ///
    /// Errors: a readout that a slice lacks; as [`Window::images`].
    pub fn of_windows(
        heads: Vec<AcquisitionHead>,
        labels: &[Label],
        window: &Window,
        chosen: Option<&Ranges>,
    ) -> Result<Self> {
        let of_slice = |label: Label| Label { repetition: 0, ..label };
        let images = Images::new(heads.iter().map(Head::from));
        let sequences = sequences(&images, labels, of_slice, chosen)?;
        let count = window.images(sequences.iter().map(Vec::len).min().unwrap_or(0))?;
        let slices = distinct(labels, of_slice);
        let frames = (0..count).flat_map(|frame| {
            let range = frame * window.stride..frame * window.stride + window.readouts;
            slices.iter().enumerate().map(move |(slice, &label)| {
                (Label { repetition: frame as u16, ..label }, slice, range.clone())
            })
        });
        let frames = frames.collect();
        Self::new(heads, images, sequences, frames, true)
    }

    fn new(
        heads: Vec<AcquisitionHead>,
        images: Images,
        sequences: Vec<Vec<usize>>,
        frames: Vec<(Label, usize, Range<usize>)>,
        windows: bool,
    ) -> Result<Self> {
        let labels: Vec<Label> = frames.iter().map(|(label, ..)| *label).collect();
        let (_, slices) = grid_of(&labels)?;
        Ok(Self { heads, sequences, frames, images, windows, slices })
    }

    /// The images, one for each slice of each volume.
    pub fn labels(&self) -> impl ExactSizeIterator<Item = Label> + '_ {
        self.frames.iter().map(|(label, ..)| *label)
    }

    /// Volumes: points in time, contrasts and so on.
    pub fn volumes(&self) -> usize {
        self.frames.len() / self.slices
    }

    /// Slices of each volume.
    pub fn slices(&self) -> usize {
        self.slices
    }

    /// Whether the volumes differ in one counter alone that is a time: repetitions, windows or cardiac
    /// phases.
    pub fn in_time(&self) -> bool {
        let labels: Vec<Label> = self.labels().collect();
        in_time(&labels)
    }

    /// The heads of all readouts of the scan.
    pub fn heads(&self) -> &[AcquisitionHead] {
        &self.heads
    }

    /// The number of the image that has the most samples ([`fullest`]).
    pub fn fullest(&self) -> usize {
        let labels: Vec<Label> = self.labels().collect();
        fullest(&labels, |frame| self.samples(frame)).unwrap_or(0)
    }

    /// What images have that hold far fewer lines than the fullest one, in words; none where all are sampled
    /// alike.
    pub fn uneven(&self) -> Option<String> {
        let labels: Vec<Label> = self.labels().collect();
        // Windows have one number of readouts.
        let head = |index: usize| Head::from(&self.heads[index]);
        if self.windows { None } else { self.images.uneven(&labels, head) }
    }

    /// The readouts of image `frame`, in acquisition order.
    pub fn readouts(&self, frame: usize) -> &[usize] {
        let (_, sequence, range) = &self.frames[frame];
        &self.sequences[*sequence][range.clone()]
    }

    /// The readouts that the maps of slice `slice` (by position) are estimated from, for all its images:
    /// those of its first image, and more of later times. None where the first image has [`MAPS_SAMPLES`]
    /// samples for each cell of the matrix that was encoded, or later times add nothing to it; slice 0 tells
    /// for all.
    pub fn readouts_of_maps(&self, slice: usize, encoded: &[usize; 3]) -> Option<BTreeSet<usize>> {
        let wanted = (MAPS_SAMPLES * encoded.iter().map(|&n| n as f64).product::<f64>()).min(1e15) as usize;
        let more = self.samples(0) < wanted && self.first_readouts(0, wanted).len() > self.readouts(0).len();
        more.then(|| self.first_readouts(slice, wanted))
    }

    /// The first readouts of slice `slice` (by position) that hold at least `samples` samples of a coil, or
    /// all there are, in file order. Images that differ from the first in more than time have another
    /// contrast or phase, and give none. A later image gives no line of a grid that an earlier one has.
    pub fn first_readouts(&self, slice: usize, samples: usize) -> BTreeSet<usize> {
        let mut taken = BTreeSet::new();
        let mut sum = 0;
        let mut lines: BTreeSet<[u16; 2]> = BTreeSet::new();
        let untimed = |label: &Label| Label { phase: 0, repetition: 0, ..*label };
        let first = self.frames.get(slice).map(|(label, ..)| untimed(label));
        let line = |head: &AcquisitionHead| [head.counters.step_1, head.counters.step_2];
        let frames = (slice..self.frames.len()).step_by(self.slices);
        for frame in frames.filter(|&frame| Some(untimed(&self.frames[frame].0)) == first) {
            for &index in self.readouts(frame) {
                if sum >= samples {
                    return taken;
                }
                let head = &self.heads[index];
                let is_new = head.trajectory || !lines.contains(&line(head));
                if is_new && taken.insert(index) {
                    sum += head.samples;
                }
            }
            lines.extend(self.readouts(frame).iter().map(|&index| line(&self.heads[index])));
        }
        taken
    }

    /// Samples of one coil of image `frame`.
    pub fn samples(&self, frame: usize) -> usize {
        self.readouts(frame).iter().map(|&index| self.heads[index].samples).sum()
    }

    /// Calibration lines that go with the image, as [`FrameIndex`](super::FrameIndex) takes them.
    pub fn calibration(&self, frame: usize) -> Vec<usize> {
        let label = &self.frames[frame].0;
        self.images.calibration(label, Some(label).filter(|_| !self.windows))
    }

    /// Says so where the scan's calibration readouts serve no image like this one.
    pub fn unused_calibration(&self, frame: usize) -> Option<String> {
        let label = &self.frames[frame].0;
        self.images.unused(label, Some(label).filter(|_| !self.windows))
    }

    /// The readouts that corrections of these readouts of an image learn from.
    pub fn references(&self, readouts: &[usize]) -> Vec<usize> {
        self.images.references(readouts.iter().map(|&index| Head::from(&self.heads[index])))
    }

    /// Every readout that the images of one volume need, with calibration and what corrections learn from, in
    /// file order.
    pub fn needed(&self, volume: usize) -> BTreeSet<usize> {
        let frames = volume * self.slices..(volume + 1) * self.slices;
        let of_frame = |frame| {
            let readouts = self.readouts(frame);
            [readouts.to_vec(), self.calibration(frame), self.references(readouts)].concat()
        };
        frames.flat_map(of_frame).collect()
    }

    /// Mean distance in time from one repetition or cardiac phase to the next, in the ticks of the time
    /// stamps; none where these do not rise, and where not one of the two counters alone varies.
    pub fn ticks(&self) -> Option<f64> {
        let labels: Vec<Label> = self.labels().collect();
        let mut times = varying(&labels).into_iter().filter(|(name, _)| TIMES.contains(name));
        let (Some((_, values)), None) = (times.next(), times.next()) else { return None };
        let first = labels.first()?;
        let others = |label: &Label| (label.set, label.contrast, label.slice);
        let alike = |label: &Label| others(label) == others(first);
        let last = labels.iter().rposition(alike)?;
        let stamp = |frame: usize| self.readouts(frame).first().map(|&index| self.heads[index].time_stamp);
        let (start, end) = (stamp(0)?, stamp(last)?);
        (end > start).then(|| f64::from(end - start) / (values.len() - 1) as f64)
    }
}

/// The group of each label, each once, in the order of the labels.
fn distinct(labels: &[Label], group: impl Fn(Label) -> Label) -> Vec<Label> {
    let mut seen = BTreeSet::new();
    labels.iter().map(|&label| group(label)).filter(|label| seen.insert(*label)).collect()
}

/// The chosen readouts of the labels of each group, in the order of [`distinct`] groups.
fn sequences(
    images: &Images,
    labels: &[Label],
    group: impl Fn(Label) -> Label + Copy,
    chosen: Option<&Ranges>,
) -> Result<Vec<Vec<usize>>> {
    let wanted: BTreeSet<Label> = labels.iter().copied().collect();
    let positions: BTreeMap<Label, usize> =
        distinct(labels, group).into_iter().enumerate().map(|(index, label)| (label, index)).collect();
    let mut sequences = vec![Vec::new(); positions.len()];
    for (label, readouts) in images.all().filter(|(label, _)| wanted.contains(label)) {
        if let Some(&position) = positions.get(&group(*label)) {
            sequences[position].extend_from_slice(readouts);
        }
    }
    sequences.iter_mut().for_each(|readouts: &mut Vec<usize>| readouts.sort_unstable());
    sequences.iter().map(|readouts| only(readouts, chosen)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Readouts `[repetition, shot, slice]` with the slice fastest, a noise readout first.
    fn heads(repetitions: u16, shots: u16, slices: u16) -> Vec<AcquisitionHead> {
        let place = |flags, counters, time_stamp| AcquisitionHead {
            flags,
            counters,
            encoding: 0,
            time_stamp,
            trajectory: true,
            samples: 10,
            centre_sample: 5,
            bytes: 80,
        };
        let mut all = vec![place(Flags::NOISE, Counters::default(), 0)];
        for repetition in 0..repetitions {
            for step_1 in 0..shots {
                for slice in 0..slices {
                    let counters = Counters { step_1, slice, repetition, ..Counters::default() };
                    all.push(place(Flags::default(), counters, 100 + 4 * all.len() as u32));
                }
            }
        }
        all
    }

    fn labels(heads: &[AcquisitionHead]) -> Vec<Label> {
        let all: BTreeSet<Label> = heads.iter().filter_map(AcquisitionHead::label).collect();
        all.into_iter().collect()
    }

    #[test]
    fn windows_run_over_repetitions_slice_by_slice() {
        for (slices, window, stride) in [(1, 5, 3), (2, 4, 1), (3, 7, 7), (2, 21, 1), (1, 1, 2)] {
            let heads = heads(3, 7, slices);
            let window = Window { readouts: window, stride, frames: None };
            let series = Series::of_windows(heads.clone(), &labels(&heads), &window, None).unwrap();
            let frames = (21 - window.readouts) / stride + 1;
            assert_eq!((series.volumes(), series.slices()), (frames, slices.into()));
            for (at, label) in series.labels().enumerate() {
                let (frame, slice) = (at / usize::from(slices), at % usize::from(slices));
                assert_eq!((usize::from(label.repetition), usize::from(label.slice)), (frame, slice));
                let expected: Vec<usize> = (0..window.readouts)
                    .map(|i| 1 + (frame * stride + i) * usize::from(slices) + slice)
                    .collect();
                assert_eq!(series.readouts(at), expected);
                assert!(series.readouts(at).iter().all(|&i| heads[i].counters.slice == label.slice));
            }
            let per_readout = 4.0 * f64::from(slices);
            let expected = (frames > 1).then_some(stride as f64 * per_readout);
            assert_eq!(series.ticks(), expected);
        }
    }

    /// Echoes and sets may have opposite signs, and inversion times the signal of noise.
    #[test]
    fn maps_are_of_one_contrast_and_set() {
        let counter: [fn(u16) -> Counters; 3] = [
            |volume| Counters { contrast: volume % 2, repetition: volume / 2, ..Counters::default() },
            |volume| Counters { set: volume % 2, repetition: volume / 2, ..Counters::default() },
            |volume| Counters { contrast: volume % 2, phase: volume / 2, ..Counters::default() },
        ];
        for of_volume in counter {
            for trajectory in [true, false] {
                let head = |readout: u16| {
                    let step_1 = readout % 3 + 3 * (readout / 6);
                    let counters = Counters { step_1, ..of_volume(readout / 3) };
                    let [template, ..] = heads(0, 0, 0)[..] else { panic!("the noise readout") };
                    AcquisitionHead { flags: Flags::default(), counters, trajectory, ..template }
                };
                let heads: Vec<AcquisitionHead> = (0..12).map(head).collect();
                let series = Series::of_labels(heads.clone(), &labels(&heads), None).unwrap();
                assert_eq!(series.volumes(), 4);
                let taken = series.readouts_of_maps(0, &[10, 12, 1]).unwrap();
                assert_eq!(taken, BTreeSet::from([0, 1, 2, 6, 7, 8]));
            }
        }
    }

    #[test]
    fn repetitions_are_taken_as_they_are_counted() {
        let heads = heads(4, 3, 2);
        let series = Series::of_labels(heads.clone(), &labels(&heads), None).unwrap();
        assert_eq!((series.volumes(), series.slices()), (4, 2));
        assert_eq!(series.readouts(3), [8, 10, 12]);
        assert_eq!(series.needed(1), (7..13).collect());
        assert_eq!(series.first_readouts(1, 45), BTreeSet::from([2, 4, 6, 8, 10]));
        assert_eq!(series.first_readouts(0, 1000).len(), 12);
        // Lines of a grid: every repetition has the same three, or others.
        let on_grid = |moves: u16| -> Series {
            let each = heads.iter().map(|head| {
                let Counters { step_1, repetition, .. } = head.counters;
                let counters = Counters { step_1: step_1 + moves * repetition, ..head.counters };
                AcquisitionHead { trajectory: false, counters, ..*head }
            });
            Series::of_labels(each.collect(), &labels(&heads), None).unwrap()
        };
        assert_eq!(on_grid(0).first_readouts(1, 1000), BTreeSet::from([2, 4, 6]));
        assert_eq!(on_grid(0).readouts_of_maps(1, &[10, 12, 1]), None);
        assert_eq!(on_grid(3).first_readouts(1, 1000).len(), 12);
        assert_eq!(on_grid(3).readouts_of_maps(1, &[10, 3, 1]).unwrap(), BTreeSet::from([2, 4, 6, 8, 10]));
        assert_eq!(on_grid(3).readouts_of_maps(1, &[10, 2, 1]), None);
        let uneven: Vec<Label> = labels(&heads).into_iter().skip(1).collect();
        assert!(Series::of_labels(heads.clone(), &uneven, None).is_err());
        let chosen: Ranges = "0,2".parse().unwrap();
        let some = Series::of_labels(heads.clone(), &labels(&heads), Some(&chosen)).unwrap();
        assert_eq!((some.readouts(3), some.readouts(0)), (&[8, 12][..], &[1, 5][..]));
        assert!(Series::of_labels(heads.clone(), &labels(&heads), Some(&3.into())).is_err());
        // A slice has 12 readouts in 4 repetitions: 2 windows of the second to the seventh.
        let window = Window { readouts: 3, stride: 3, frames: None };
        let some =
            Series::of_windows(heads.clone(), &labels(&heads), &window, Some(&(1..=6).into())).unwrap();
        assert_eq!(
            (some.volumes(), some.readouts(0), some.readouts(3)),
            (2, &[3, 5, 7][..], &[10, 12, 14][..])
        );
    }

    #[test]
    fn windows_that_cannot_be_are_refused() {
        let heads = heads(1, 9, 1);
        let of = |readouts, stride, frames| {
            Series::of_windows(heads.clone(), &labels(&heads), &Window { readouts, stride, frames }, None)
        };
        for (readouts, stride, frames) in [(0, 1, None), (3, 0, None), (10, 1, None), (3, 2, Some(5))] {
            assert!(of(readouts, stride, frames).is_err(), "{readouts} {stride} {frames:?}");
        }
        assert_eq!(of(3, 2, Some(3)).unwrap().volumes(), 3);
    }
}
