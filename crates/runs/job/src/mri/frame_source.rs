//! Where the frames of a stream come from.

use rayspin_core::Monitor;
use rayspin_io::SeriesSource;
use rayspin_io::cfl::Layout;
use rayspin_io::{ArraySource, ArrayWindows, ScanReader};
use rayspin_mri::recon::StreamItem;
use rayspin_mri::scan::{Frame, Label};

use super::stream::volumes_of;
use crate::Result;

/// A tick of the time stamps of Siemens' scanners, which other converters keep to, s.
const TICK_S: f64 = 2.5e-3;

/// Frames that are read one at a time: images of several volumes, or windows over readouts.
pub(super) trait FrameSource: Send {
    /// The frames, in the order in which they come.
    fn labels(&self) -> Vec<Label>;

    /// Slices of each volume.
    fn slices(&self) -> usize;

    /// Volumes.
    fn volumes(&self) -> usize;

    /// The number of the frame with the most readouts.
    fn fullest(&self) -> usize {
        0
    }

    /// Whether the samples come from arrays without a header.
    fn of_array(&self) -> bool;

    /// Where the axes of the images go in a BART array.
    fn layout(&self) -> Layout;

    /// Time between images in s, where time stamps tell it.
    fn step_s(&self) -> Option<f64> {
        None
    }

    /// Bytes that the source holds beside the frames that it gives.
    fn held_bytes(&self) -> u64;

    /// Bytes that the source holds while it makes the frame that maps are learned from.
    fn learning_bytes(&self) -> u64 {
        self.held_bytes()
    }

    /// Reads the samples that the maps of all images are learned from, where one image has too few.
    fn learn_maps(&mut self, notes: &mut Vec<String>, monitor: &Monitor<'_>) -> Result<Option<&Frame>>;

    /// The frame of a number. The source does not advance.
    fn frame(&mut self, number: usize, notes: &mut Vec<String>, monitor: &Monitor<'_>) -> Result<Frame>;

    /// The frame that comes next; none while maps come first, and after the last frame.
    fn upcoming(&self) -> Option<Label>;

    /// Goes on past the upcoming frame, which was made when it was looked at.
    fn skip(&mut self, monitor: &Monitor<'_>) -> Result<()>;

    /// The next of the stream, none after the last frame.
    fn next(&mut self, notes: &mut Vec<String>, monitor: &Monitor<'_>) -> Result<Option<StreamItem>>;

    /// What was assumed of the acquisitions that were read.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Another frame of the slice that the fullest frame shows; none if each slice has one frame.
pub(super) fn another(source: &mut dyn FrameSource, monitor: &Monitor<'_>) -> Result<Option<Frame>> {
    let (fullest, slices) = (source.fullest(), source.slices());
    let index = if fullest < slices { fullest + slices } else { fullest - slices };
    if index >= slices * source.volumes() {
        return Ok(None);
    }
    source.frame(index, &mut Vec::new(), monitor).map(Some)
}

/// A scan with a header.
impl FrameSource for SeriesSource {
    fn labels(&self) -> Vec<Label> {
        self.series().labels().collect()
    }

    fn slices(&self) -> usize {
        self.series().slices()
    }

    fn volumes(&self) -> usize {
        self.series().volumes()
    }

    fn fullest(&self) -> usize {
        self.series().fullest()
    }

    fn of_array(&self) -> bool {
        false
    }

    fn layout(&self) -> Layout {
        Layout::default().with_volumes(&volumes_of(&FrameSource::labels(self)))
    }

    fn step_s(&self) -> Option<f64> {
        self.series().ticks().map(|ticks| ticks * TICK_S)
    }

    fn held_bytes(&self) -> u64 {
        Self::held_bytes(self) + beside(self.reader())
    }

    fn learning_bytes(&self) -> u64 {
        self.maps_bytes() + beside(self.reader())
    }

    fn learn_maps(&mut self, notes: &mut Vec<String>, monitor: &Monitor<'_>) -> Result<Option<&Frame>> {
        Ok(Self::learn_maps(self, notes, monitor)?)
    }

    fn frame(&mut self, number: usize, notes: &mut Vec<String>, monitor: &Monitor<'_>) -> Result<Frame> {
        Ok(self.image(number, notes, monitor)?)
    }

    fn upcoming(&self) -> Option<Label> {
        Self::upcoming(self)
    }

    fn skip(&mut self, monitor: &Monitor<'_>) -> Result<()> {
        Ok(Self::skip(self, monitor)?)
    }

    fn next(&mut self, notes: &mut Vec<String>, monitor: &Monitor<'_>) -> Result<Option<StreamItem>> {
        Ok(Self::next(self, notes, monitor)?)
    }

    fn notes(&self) -> Vec<String> {
        Self::notes(self)
    }
}

/// An array.
impl FrameSource for ArraySource {
    fn labels(&self) -> Vec<Label> {
        Self::labels(self).to_vec()
    }

    fn slices(&self) -> usize {
        Self::slices(self)
    }

    fn volumes(&self) -> usize {
        Self::volumes(self)
    }

    fn of_array(&self) -> bool {
        true
    }

    fn layout(&self) -> Layout {
        self.series().layout(Self::labels(self))
    }

    fn held_bytes(&self) -> u64 {
        self.series().reading_bytes()
    }

    fn learn_maps(&mut self, notes: &mut Vec<String>, _: &Monitor<'_>) -> Result<Option<&Frame>> {
        Ok(Self::learn_maps(self, notes)?)
    }

    fn frame(&mut self, number: usize, notes: &mut Vec<String>, _: &Monitor<'_>) -> Result<Frame> {
        let labels = Self::labels(self);
        let beyond =
            || rayspin_core::Error::value("frame", format!("a number below {}", labels.len()), number);
        let label = labels.get(number).copied().ok_or_else(beyond)?;
        Ok(self.series().frame(label, notes)?)
    }

    fn upcoming(&self) -> Option<Label> {
        Self::upcoming(self)
    }

    fn skip(&mut self, _: &Monitor<'_>) -> Result<()> {
        Self::skip(self);
        Ok(())
    }

    fn next(&mut self, notes: &mut Vec<String>, _: &Monitor<'_>) -> Result<Option<StreamItem>> {
        Ok(Self::next(self, notes)?)
    }
}

/// A window over the readouts of arrays.
impl FrameSource for ArrayWindows {
    fn labels(&self) -> Vec<Label> {
        Self::labels(self)
    }

    fn slices(&self) -> usize {
        Self::slices(self)
    }

    fn volumes(&self) -> usize {
        Self::volumes(self)
    }

    fn of_array(&self) -> bool {
        true
    }

    fn layout(&self) -> Layout {
        Self::layout(self)
    }

    /// What the reader keeps.
    fn held_bytes(&self) -> u64 {
        0
    }

    fn learn_maps(&mut self, notes: &mut Vec<String>, _: &Monitor<'_>) -> Result<Option<&Frame>> {
        Ok(Self::learn_maps(self, notes)?)
    }

    fn frame(&mut self, number: usize, _: &mut Vec<String>, _: &Monitor<'_>) -> Result<Frame> {
        Ok(self.image(number)?)
    }

    fn upcoming(&self) -> Option<Label> {
        Self::upcoming(self)
    }

    fn skip(&mut self, _: &Monitor<'_>) -> Result<()> {
        Self::skip(self);
        Ok(())
    }

    fn next(&mut self, _: &mut Vec<String>, _: &Monitor<'_>) -> Result<Option<StreamItem>> {
        Ok(self.next_item()?)
    }
}

/// Bytes of the reader besides acquisitions. It gives them back.
fn beside(reader: &dyn ScanReader) -> u64 {
    reader.memory_bytes().saturating_sub(reader.library_bytes())
}
