//! Where the images of a stream come from.

use rayspin_core::Monitor;
use rayspin_io::cfl::Layout;
use rayspin_io::ismrmrd::{Reader, SeriesSource};
use rayspin_io::{ArraySource, ArrayWindows};
use rayspin_mri::recon::StreamItem;
use rayspin_mri::scan::{Frame, Label};

use crate::Result;

/// A tick of the time stamps of Siemens' scanners, which other converters keep to, s.
const TICK_S: f64 = 2.5e-3;

/// The images of a stream.
pub(super) enum Images {
    /// Of a scan with a header.
    Scan(Box<SeriesSource>),
    /// Of an array.
    Arrays(Box<ArraySource>),
    /// A window over the readouts of arrays.
    Windows(Box<ArrayWindows>),
}

impl Images {
    pub(super) fn labels(&self) -> Vec<Label> {
        match self {
            Self::Scan(source) => source.series().labels().collect(),
            Self::Arrays(source) => source.labels().to_vec(),
            Self::Windows(source) => source.labels(),
        }
    }

    /// Images of each slice.
    pub(super) fn repetitions(&self) -> usize {
        match self {
            Self::Scan(source) => source.series().repetitions(),
            Self::Arrays(source) => source.repetitions(),
            Self::Windows(source) => source.repetitions(),
        }
    }

    /// Slices of each repetition.
    pub(super) fn slices(&self) -> usize {
        match self {
            Self::Scan(source) => source.series().slices(),
            Self::Arrays(source) => source.slices(),
            Self::Windows(source) => source.slices(),
        }
    }

    /// Where the axes of the images go in a BART array.
    pub(super) fn layout(&self) -> Layout {
        match self {
            Self::Scan(_) => Layout::default(),
            Self::Arrays(source) => source.series().layout(source.labels()),
            Self::Windows(source) => source.layout(),
        }
    }

    /// Time between images in s, where time stamps tell it.
    pub(super) fn step_s(&self) -> Option<f64> {
        match self {
            Self::Scan(source) => source.series().ticks().map(|ticks| ticks * TICK_S),
            Self::Arrays(_) | Self::Windows(_) => None,
        }
    }

    /// Another image of the slice that the fullest image shows. The source does not advance. None if each slice has one image.
    pub(super) fn another(&mut self, monitor: &Monitor<'_>) -> Result<Option<Frame>> {
        let slices = self.slices();
        let fullest = match self {
            Self::Scan(source) => source.series().fullest(),
            Self::Arrays(_) | Self::Windows(_) => 0,
        };
        let at = if fullest < slices { fullest + slices } else { fullest - slices };
        let Some(label) = self.labels().get(at).copied() else { return Ok(None) };
        Ok(Some(match self {
            Self::Scan(source) => source.image(at, &mut Vec::new(), monitor)?,
            Self::Arrays(source) => source.series().frame(label, &mut Vec::new())?,
            Self::Windows(source) => source.image(at)?,
        }))
    }

    /// What was assumed of the acquisitions that were read.
    pub(super) fn notes(&self) -> Vec<String> {
        match self {
            Self::Scan(source) => source.notes(),
            Self::Arrays(_) | Self::Windows(_) => Vec::new(),
        }
    }

    /// Bytes that the source holds beside the frames that it gives.
    pub(super) fn held_bytes(&self) -> u64 {
        match self {
            Self::Scan(source) => source.held_bytes() + beside(source.reader()),
            Self::Arrays(source) => source.series().reading_bytes(),
            // What the reader keeps.
            Self::Windows(_) => 0,
        }
    }

    /// Bytes that the source holds while it makes the frame that maps are learned from.
    pub(super) fn learning_bytes(&self) -> u64 {
        match self {
            Self::Scan(source) => source.maps_bytes() + beside(source.reader()),
            Self::Arrays(_) | Self::Windows(_) => self.held_bytes(),
        }
    }

    /// Reads the samples that the maps of all images are learned from, where one image has too few.
    pub(super) fn learn_maps(
        &mut self,
        notes: &mut Vec<String>,
        monitor: &Monitor<'_>,
    ) -> Result<Option<&Frame>> {
        Ok(match self {
            Self::Scan(source) => source.learn_maps(notes, monitor)?,
            Self::Arrays(source) => source.learn_maps(notes)?,
            Self::Windows(source) => source.learn_maps(notes)?,
        })
    }

    /// The image that comes next; none while maps come first, and after the last image.
    pub(super) fn upcoming(&self) -> Option<Label> {
        match self {
            Self::Scan(source) => source.upcoming(),
            Self::Arrays(source) => source.upcoming(),
            Self::Windows(source) => source.upcoming(),
        }
    }

    /// Goes on past the upcoming image, which was made when it was looked at.
    pub(super) fn skip(&mut self, monitor: &Monitor<'_>) -> Result<()> {
        match self {
            Self::Scan(source) => source.skip(monitor)?,
            Self::Arrays(source) => source.skip(),
            Self::Windows(source) => source.skip(),
        }
        Ok(())
    }

    /// The next of the stream, none after the last image.
    pub(super) fn next(
        &mut self,
        notes: &mut Vec<String>,
        monitor: &Monitor<'_>,
    ) -> Result<Option<StreamItem>> {
        Ok(match self {
            Self::Scan(source) => source.next(notes, monitor)?,
            Self::Arrays(source) => source.next(notes)?,
            Self::Windows(source) => source.next_item()?,
        })
    }
}

/// Bytes that the reader takes besides acquisitions, and gives back.
fn beside(reader: &Reader) -> u64 {
    reader.memory_bytes().saturating_sub(reader.library_bytes())
}
