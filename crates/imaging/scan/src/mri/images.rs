//! Which readouts each image is made of, and which calibrate it.

use std::collections::{BTreeMap, BTreeSet};

use super::{Acquisition, AcquisitionHead, Counters, Flags, Label};
use crate::mri::corrections::Sources;

/// What the head of a readout tells of the images that it serves.
#[derive(Debug, Clone, Copy)]
pub(super) struct Head {
    flags: Flags,
    counters: Counters,
    encoding: usize,
    trajectory: bool,
}

impl From<&AcquisitionHead> for Head {
    fn from(place: &AcquisitionHead) -> Self {
        let AcquisitionHead { flags, counters, encoding, trajectory, .. } = *place;
        Self { flags, counters, encoding, trajectory }
    }
}

impl From<&Acquisition> for Head {
    fn from(readout: &Acquisition) -> Self {
        let Acquisition { flags, counters, encoding, .. } = *readout;
        Self { flags, counters, encoding, trajectory: readout.trajectory.is_some() }
    }
}

impl Head {
    fn label(&self) -> Label {
        Label::of(self.encoding, &self.counters)
    }

    fn steps(&self) -> [u16; 2] {
        [self.counters.step_1, self.counters.step_2]
    }
}

/// The readouts of each image in file order, and the readouts that calibrate it.
///
/// A train of echoes may measure an accelerated image and, for calibration, the lines that the image skips
/// (embedded calibration). Such lines are flagged as calibration alone, and are lines of the image like the
/// others. Calibration apart from the image measures lines again that the image has.
#[derive(Debug, Clone, Default)]
pub(super) struct Images {
    readouts: BTreeMap<Label, Vec<usize>>,
    /// Readouts that corrections learn from.
    references: BTreeMap<Label, Vec<usize>>,
    /// Such that are flagged for calibration, too.
    of_calibration: BTreeMap<Label, Vec<usize>>,
    marked: BTreeMap<Label, Marked>,
}

/// The readouts of a label that are flagged for calibration.
#[derive(Debug, Clone, Default)]
struct Marked {
    /// For calibration alone, without a trajectory.
    alone: Vec<usize>,
    /// Those with one.
    along_trajectory: Vec<usize>,
    /// Readouts of the image too, without a trajectory.
    shared: Vec<usize>,
    /// Whether some of the image's readouts along a trajectory calibrate it.
    shares_trajectory: bool,
    /// Whether those for calibration alone are a part of the image.
    embedded: bool,
}

/// What the lines of an image are beside those for calibration alone.
struct Lines {
    ends: [[u16; 2]; 2],
    repeated: bool,
    trajectory: bool,
}

impl Images {
    /// Sorts the readouts of a scan by their heads, which come in file order.
    pub(super) fn new(heads: impl Iterator<Item = Head> + Clone) -> Self {
        let (mut images, learned) = (Self::default(), Sources::all().of_image);
        for (index, head) in heads.clone().enumerate() {
            if head.flags.is_image() {
                images.readouts.entry(head.label()).or_default().push(index);
            } else if head.flags.contains(learned) {
                let calibrates = head.flags.contains(Flags::CALIBRATION);
                let readouts = if calibrates { &mut images.of_calibration } else { &mut images.references };
                readouts.entry(head.label()).or_default().push(index);
            }
            let alone = head.flags.is_calibration_line();
            let shared = head.flags.is_image() && head.flags.contains(Flags::CALIBRATION_AND_IMAGING);
            if alone || shared {
                let marked = images.marked.entry(head.label()).or_default();
                match (alone, head.trajectory) {
                    (true, false) => marked.alone.push(index),
                    (true, true) => marked.along_trajectory.push(index),
                    (false, false) => marked.shared.push(index),
                    (false, true) => marked.shares_trajectory = true,
                }
            }
        }
        images.embed(heads);
        images
    }

    /// Makes calibration that is embedded a part of its image.
    fn embed(&mut self, heads: impl Iterator<Item = Head> + Clone) {
        type Steps = BTreeSet<[u16; 2]>;
        let mut alone: BTreeMap<Label, Steps> = BTreeMap::new();
        for head in heads.clone().filter(|head| head.flags.is_calibration_line()) {
            alone.entry(head.label()).or_default().insert(head.steps());
        }
        if alone.is_empty() {
            return;
        }
        let mut lines: BTreeMap<Label, Lines> = BTreeMap::new();
        for head in heads.filter(|head| head.flags.is_image()) {
            let (label, steps) = (head.label(), head.steps());
            let Some(own) = alone.get(&label) else { continue };
            let new = || Lines {
                ends: steps.map(|step| [step, step]),
                repeated: false,
                trajectory: head.trajectory,
            };
            let lines = lines.entry(label).or_insert_with(new);
            lines.repeated |= own.contains(&steps);
            lines.ends = std::array::from_fn(|axis| {
                let [low, high] = lines.ends[axis];
                [low.min(steps[axis]), high.max(steps[axis])]
            });
        }
        for (label, Lines { ends, repeated, trajectory }) in lines {
            let (Some(own), Some(marked)) = (alone.get(&label), self.marked.get_mut(&label)) else {
                continue;
            };
            let within = |steps: &[u16; 2]| {
                ends.iter().zip(steps).all(|([low, high], step)| (low..=high).contains(&step))
            };
            // Lines of a grid lie where their counters say, whether others are flagged or not.
            let (list, told) = match trajectory {
                true => (&marked.along_trajectory, marked.shares_trajectory),
                false => (&marked.alone, !marked.shared.is_empty() || own.iter().all(within)),
            };
            if repeated || list.is_empty() || !told {
                continue;
            }
            let readouts = self.readouts.entry(label).or_default();
            readouts.extend(list);
            readouts.sort_unstable();
            marked.embedded = true;
        }
    }

    /// The images, in the order of their labels.
    pub(super) fn labels(&self) -> impl Iterator<Item = Label> + '_ {
        self.readouts.keys().copied()
    }

    /// The readouts of an image.
    pub(super) fn readouts(&self, label: &Label) -> Option<&[usize]> {
        self.readouts.get(label).map(Vec::as_slice)
    }

    /// The images and their readouts.
    pub(super) fn all(&self) -> impl Iterator<Item = (&Label, &[usize])> {
        self.readouts.iter().map(|(label, readouts)| (label, readouts.as_slice()))
    }

    /// Lines that calibrate an image and are no part of it: its own lines for calibration alone, else lines
    /// of other images of its slice, first the images of the same encoding. Their lines for calibration alone
    /// come before their lines that also belong to the image; an image with such shared lines of its own
    /// takes no shared lines. An image with embedded calibration takes no lines. `own` is the image that the
    /// lines may be a part of, if the scan's counters number it.
    pub(super) fn calibration(&self, label: &Label, own: Option<&Label>) -> Vec<usize> {
        let mine = own.and_then(|own| self.marked.get(own));
        match mine {
            Some(mine) if mine.embedded => return Vec::new(),
            Some(mine) if !mine.alone.is_empty() => return mine.alone.clone(),
            _ => {}
        }
        let shares = mine.is_some_and(|mine| !mine.shared.is_empty());
        let others = |same: bool| {
            let of_slice = self
                .marked
                .iter()
                .filter(move |(other, _)| other.slice == label.slice && Some(*other) != own);
            of_slice
                .filter(move |(other, _)| (other.encoding == label.encoding) == same)
                .map(|(_, marked)| marked)
        };
        let alone = |same: bool| others(same).flat_map(Marked::lines).collect::<Vec<usize>>();
        let shared = |same: bool| {
            let most =
                others(same).filter(|_| !shares).min_by_key(|marked| std::cmp::Reverse(marked.shared.len()));
            most.map(|marked| marked.shared.clone()).unwrap_or_default()
        };
        let mut readouts = [alone(true), shared(true), alone(false), shared(false)]
            .into_iter()
            .find(|lines| !lines.is_empty())
            .unwrap_or_default();
        readouts.sort_unstable();
        readouts
    }

    /// The reference readouts from which corrections of an image learn, in file order. They have the counters
    /// of the image's readouts. An image without such references takes the references of its slice from the
    /// nearest repetition. References for calibration serve where a scan has no others.
    pub(super) fn references(&self, readouts: impl Iterator<Item = Head>) -> Vec<usize> {
        if self.references.is_empty() && self.of_calibration.is_empty() {
            return Vec::new();
        }
        let labels: BTreeSet<Label> = readouts.map(|head| head.label()).collect();
        let readouts = nearest(&self.references, &labels).or_else(|| nearest(&self.of_calibration, &labels));
        readouts.unwrap_or_default()
    }

    /// What the images of these labels that have fewer lines than the fullest one have of them; none where
    /// all have about as many. Along a trajectory readouts count. `head` is the head of a readout.
    pub(super) fn uneven(&self, labels: &[Label], head: impl Fn(usize) -> Head) -> Option<String> {
        let lines = |label: &Label| {
            let heads = self.readouts(label).unwrap_or_default().iter().map(|&index| head(index));
            let along = heads.clone().any(|head| head.trajectory);
            let mut steps: Vec<[u16; 2]> = heads.map(|head| head.steps()).collect();
            if !along {
                steps.sort_unstable();
                steps.dedup();
            }
            (steps.len(), if along { "readouts" } else { "lines" })
        };
        let counts: Vec<(Label, usize)> = labels.iter().map(|label| (*label, lines(label).0)).collect();
        let (fullest, most) = counts.iter().copied().max_by_key(|(_, lines)| *lines)?;
        let (_, unit) = lines(&fullest);
        let fewer = counts.iter().filter(|(_, lines)| is_uneven(*lines, most));
        listed(labels, fewer.map(|(label, lines)| (*label, format!("{lines} of {most} {unit}"))))
    }

    /// Says that the scan has readouts for calibration alone which serve neither this image nor, as a part of
    /// it, any other.
    pub(super) fn unused(&self, label: &Label, own: Option<&Label>) -> Option<String> {
        let apart = self.marked.values().filter(|marked| !marked.embedded);
        let count: usize = apart.map(|marked| marked.alone.len() + marked.along_trajectory.len()).sum();
        let embedded = own.and_then(|own| self.marked.get(own)).is_some_and(|mine| mine.embedded);
        (count > 0 && !embedded && self.calibration(label, own).is_empty()).then(|| {
            format!(
                "{count} calibration readouts are not used: they have a trajectory, or another slice than the image (`--maps` gives \
                 sensitivities)"
            )
        })
    }
}

impl Marked {
    /// Lines for calibration alone; where they are embedded, with those that complete them.
    fn lines(&self) -> Vec<usize> {
        match self.embedded {
            true if !self.alone.is_empty() => [&self.alone[..], &self.shared].concat(),
            _ => self.alone.clone(),
        }
    }
}

/// The part of the samples of the fullest image that others have at least, where images are sampled alike.
const ALIKE: f64 = 0.9;

/// Readouts with these labels, in file order. Without such readouts, the readouts of the same encoding and
/// slice from the nearest repetition.
fn nearest(readouts: &BTreeMap<Label, Vec<usize>>, labels: &BTreeSet<Label>) -> Option<Vec<usize>> {
    let own: Vec<usize> = labels.iter().filter_map(|label| readouts.get(label)).flatten().copied().collect();
    let mut nearest = match labels.first() {
        Some(label) if own.is_empty() => {
            let same = |other: &&Label| (label.encoding, label.slice) == (other.encoding, other.slice);
            let away = |other: &&Label| other.repetition.abs_diff(label.repetition);
            readouts.get(readouts.keys().filter(same).min_by_key(away)?)?.clone()
        }
        _ => own,
    };
    nearest.sort_unstable();
    (!nearest.is_empty()).then_some(nearest)
}

/// Whether an image has fewer of something than the fullest image.
pub fn is_uneven(own: usize, most: usize) -> bool {
    (own as f64) < ALIKE * most as f64
}

/// Images that are named at most.
const NAMED: usize = 6;

/// Says what images of a run have: `slice 3 has 7 of 9 lines, …`. Their names have the counters that differ
/// among all labels. None of no image.
pub fn listed(labels: &[Label], images: impl Iterator<Item = (Label, String)>) -> Option<String> {
    let texts: Vec<String> =
        images.map(|(label, text)| format!("{} has {text}", label.name_among(labels))).collect();
    let more = texts.len().saturating_sub(NAMED);
    let rest = if more > 0 { format!("; and {more} more") } else { String::new() };
    (!texts.is_empty()).then(|| format!("{}{rest}", texts[..texts.len() - more].join("; ")))
}
