//! What the samples of the images of a run have in common.

use rayspin_core::C32;

use crate::scan::{Frame, Label, Samples, is_uneven, listed};

fn zeros<'a>(mut values: impl Iterator<Item = &'a C32>) -> bool {
    values.all(|value| *value == C32::ZERO)
}

/// Whether all samples of a frame are 0.
pub(super) fn is_empty(frame: &Frame) -> bool {
    match &frame.samples {
        Samples::Cartesian { kspace, .. } => zeros(kspace.iter()),
        Samples::NonCartesian { data, .. } => zeros(data.iter()),
    }
}

/// What is known of the samples of each image so far.
#[derive(Debug, Default)]
pub(super) struct Judge {
    images: Vec<(Label, usize)>,
    whole: bool,
    empty: Vec<Label>,
}

impl Judge {
    /// Looks at an image's samples. Returns whether all are 0.
    pub(super) fn look(&mut self, label: Label, frame: &Frame) -> bool {
        let (samples, places) = match &frame.samples {
            Samples::Cartesian { sampled, .. } => {
                (sampled.iter().filter(|known| **known).count(), Some(sampled.len()))
            }
            Samples::NonCartesian { data, .. } => (data.ncols(), None),
        };
        let empty = is_empty(frame);
        self.whole |= places == Some(samples);
        self.images.push((label, samples));
        if empty {
            self.empty.push(label);
        }
        empty
    }

    /// What the user is to know, one sentence each.
    pub(super) fn notes(&self) -> Vec<String> {
        let labels: Vec<Label> = self.images.iter().map(|(label, _)| *label).collect();
        let most = self.images.iter().map(|(_, samples)| *samples).max().unwrap_or(0);
        // Beside a whole grid every gap counts.
        let fewer = |samples: usize| if self.whole { samples < most } else { is_uneven(samples, most) };
        let part = |samples: usize| format!("{:.1} %", 100.0 * samples as f64 / most.max(1) as f64);
        let uneven = self.images.iter().filter(|(_, samples)| fewer(*samples));
        let uneven = listed(&labels, uneven.map(|(label, samples)| (*label, part(*samples))));
        let uneven =
            uneven.map(|text| format!("not every image has the samples that the fullest one has: {text}"));
        let empty = listed(&labels, self.empty.iter().map(|label| (*label, "samples of 0 alone".to_owned())));
        let empty = empty.map(|text| format!("{text}: there is no image"));
        uneven.into_iter().chain(empty).collect()
    }
}
