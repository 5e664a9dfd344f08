use rayspin_core::{Error, Result};

use super::Counters;

/// What one image is made of: the counters that its readouts share. Labels are in the order of the fields, so
/// that contrasts of one point in time stand together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
pub struct Label {
    /// Encoding index.
    pub encoding: usize,
    /// Set.
    pub set: u16,
    /// Cardiac phase.
    pub phase: u16,
    /// Repetition.
    pub repetition: u16,
    /// Contrast (echo).
    pub contrast: u16,
    /// Slice.
    pub slice: u16,
}

/// A counter of labels, and how texts name it.
pub type LabelCounter = (&'static str, fn(&Label) -> u16);

/// The counters that number the volumes of an encoding, the slowest first.
pub const VOLUME_COUNTERS: [LabelCounter; 4] = [
    ("set", |label| label.set),
    ("cardiac phase", |label| label.phase),
    ("repetition", |label| label.repetition),
    ("contrast", |label| label.contrast),
];

impl Label {
    /// The label of readouts with these counters.
    pub fn of(encoding: usize, counters: &Counters) -> Self {
        let Counters { contrast, phase, set, repetition, slice, .. } = *counters;
        Self { encoding, contrast, phase, set, repetition, slice }
    }

    /// The volume of this image: the label of its slice 0.
    pub fn volume(&self) -> Self {
        Self { slice: 0, ..*self }
    }

    /// The counters by which this image differs from others of `labels`, and its values: `repetition 3, slice
    /// 1`. Of a single image it is its slice.
    pub fn name_among(&self, labels: &[Self]) -> String {
        let slice: LabelCounter = ("slice", |label| label.slice);
        let mut names = Vec::new();
        for (name, counter) in VOLUME_COUNTERS.into_iter().chain([slice]) {
            if labels.iter().any(|label| counter(label) != counter(self)) {
                names.push(format!("{name} {}", counter(self)));
            }
        }
        if names.is_empty() { format!("slice {}", self.slice) } else { names.join(", ") }
    }
}

/// The counters of [`VOLUME_COUNTERS`] that differ among labels, each with its values in ascending order.
///
/// ```
/// use rayspin_scan::mri::{Label, varying};
///
/// let label = |(repetition, contrast)| Label { repetition, contrast, ..Label::default() };
/// let labels = [(0, 0), (0, 2), (1, 0), (1, 2)].map(label);
/// assert_eq!(varying(&labels), [("repetition", vec![0, 1]), ("contrast", vec![0, 2])]);
/// ```
pub fn varying(labels: &[Label]) -> Vec<(&'static str, Vec<u16>)> {
    let values = |(name, counter): LabelCounter| {
        let values: std::collections::BTreeSet<u16> = labels.iter().map(counter).collect();
        (name, values.into_iter().collect::<Vec<u16>>())
    };
    VOLUME_COUNTERS.into_iter().map(values).filter(|(_, values)| values.len() > 1).collect()
}

/// How many volumes labels name, and how many slices each has; the labels of a volume follow each other.
///
/// Errors: no label; volumes with different slices.
pub fn grid_of(labels: &[Label]) -> Result<(usize, usize)> {
    let Some(first) = labels.first() else {
        return Err(Error::value("images of the series", "at least one", 0));
    };
    let slices = labels.iter().take_while(|label| label.volume() == first.volume()).count();
    let alike = |volume: &[Label]| {
        let slices = volume.iter().zip(labels);
        slices.clone().all(|(a, b)| a.slice == b.slice)
            && volume.iter().all(|l| l.volume() == volume[0].volume())
    };
    if !labels.len().is_multiple_of(slices) || !labels.chunks(slices).all(alike) {
        let (name, option) = match varying(labels)[..] {
            [("set", _)] => ("sets", "set"),
            [("cardiac phase", _)] => ("cardiac phases", "cardiac-phase"),
            [("repetition", _)] => ("repetitions", "repetition"),
            [("contrast", _)] => ("contrasts", "contrast"),
            _ => ("volumes", "repetition"),
        };
        let expected = format!("the same slices in each (choose with `--slice` or `--{option}`)");
        return Err(Error::value(name, expected, "different slices"));
    }
    Ok((labels.len() / slices, slices))
}

/// The counters of [`VOLUME_COUNTERS`] that are times.
pub const TIMES: [&str; 2] = ["cardiac phase", "repetition"];

/// Whether volumes differ in one counter alone, which is a time: repetitions or cardiac phases.
pub fn in_time(labels: &[Label]) -> bool {
    matches!(varying(labels)[..], [(name, _)] if TIMES.contains(&name))
}
