//! Where the frames of a run come from, and what they are like.

use std::sync::Arc;

use rayspin_device::Device;
use rayspin_io::cfl::Layout;
use rayspin_io::{ArrayFrame, ArraySeries, Protocol};
use rayspin_mri::corrections::{Corrections, Noise, ReadoutHeads};
use rayspin_mri::prepare::coils_kept;
use rayspin_mri::recon::ReconOptions;
use rayspin_mri::scan::{Encoding, Frame, Label, Scan, ScanHeader};

use super::stream::{Stream, volumes_of};
use super::taken::Taken;

/// Where the frames come from.
pub(super) enum Source {
    /// A scan in memory; its one frame is assembled already where there is but one.
    Whole {
        scan: Arc<Scan>,
        notes: Vec<String>,
        labels: Vec<Label>,
        slices: Vec<u16>,
        only: Option<Box<Frame>>,
    },
    /// Several volumes or windows of a scan in memory, of how many slices each, and another image of the
    /// slice that is looked at.
    Series { scan: Arc<Scan>, volumes: Vec<Label>, slices: usize, another: Option<Box<Frame>> },
    /// A scan on disk, read image by image; the notes are the first image's.
    Parts { labels: Vec<Label>, slices: Vec<u16>, notes: Vec<String> },
    /// The samples of one image, from arrays without a header.
    Frame(Arc<ArrayFrame>),
    /// Images of one volume of an array series, read one at a time.
    Arrays { series: Box<ArraySeries>, labels: Vec<Label>, slices: Vec<u16>, notes: Vec<String> },
    /// Several volumes or windows, read as they are needed.
    Stream(Box<Stream>),
}

impl Source {
    /// The volumes or windows, as the labels of their slices 0.
    pub(super) fn volumes(&self) -> Vec<Label> {
        match self {
            Self::Stream(stream) => stream.labels(),
            Self::Series { volumes, .. } => volumes.clone(),
            // Several volumes are a stream.
            Self::Whole { labels, .. } | Self::Parts { labels, .. } | Self::Arrays { labels, .. } => {
                volumes_of(labels)
            }
            Self::Frame(_) => vec![Label::default()],
        }
    }

    /// Where the axes of images and maps go in a BART array: to the dimensions that they came from.
    pub(super) fn layout(&self) -> Layout {
        match self {
            Self::Frame(array) => array.layout,
            Self::Arrays { series, labels, .. } => series.layout(labels),
            Self::Stream(stream) => stream.layout(),
            Self::Whole { .. } | Self::Series { .. } | Self::Parts { .. } => {
                Layout::default().with_volumes(&self.volumes())
            }
        }
    }

    /// Whether the samples come from arrays without a header.
    pub(super) fn of_array(&self) -> bool {
        match self {
            Self::Frame(_) | Self::Arrays { .. } => true,
            Self::Stream(stream) => stream.of_array(),
            Self::Whole { .. } | Self::Series { .. } | Self::Parts { .. } => false,
        }
    }
}

/// A frame that was made to be looked at, and what was noted of making it. Where its image comes, it is not
/// made again.
pub(super) type Made = (Frame, Vec<String>);

/// A frame like all others, what is held beside it, and how often it comes.
#[derive(Default)]
pub(super) struct Shape {
    pub(super) frame: Option<Box<Frame>>,
    /// What was noted of making it.
    pub(super) notes: Vec<String>,
    pub(super) held: u64,
    pub(super) frames: usize,
    pub(super) assembled: bool,
    pub(super) read: u64,
    /// Bytes that the reader keeps after it is done.
    pub(super) kept: u64,
    /// Coils that a frame has once it is prepared.
    pub(super) coils: usize,
    /// What the scan says of its coils' noise.
    pub(super) noise: Option<Noise>,
    /// What the heads of the scan's readouts say, and the encoding of its images.
    pub(super) heads: Option<(ReadoutHeads, Encoding)>,
    /// What the scan tells of the acquisition, where it has a header.
    pub(super) protocol: Option<Arc<Protocol>>,
    /// The part of the scan that is reconstructed, where its images are numbered.
    pub(super) taken: Option<Taken>,
    /// What images have that hold far fewer lines than the fullest one.
    pub(super) uneven: Option<String>,
    /// The samples that the maps of a series in memory are learned from, to plan for.
    pub(super) maps: Option<Box<Frame>>,
}

impl Shape {
    /// The frame, to look at.
    pub(super) fn frame<'a>(&'a self, source: &'a Source) -> Option<&'a Frame> {
        match source {
            Source::Frame(array) => Some(&array.frame),
            Source::Whole { only: Some(frame), .. } => Some(frame),
            _ => self.frame.as_deref(),
        }
    }

    /// What the heads of a scan say, for images of this label.
    pub(super) fn heads_of(
        heads: &ReadoutHeads,
        header: &ScanHeader,
        label: Label,
    ) -> Option<(ReadoutHeads, Encoding)> {
        Some((heads.clone(), header.encodings.get(label.encoding)?.clone()))
    }

    /// Adds what corrections take to make a frame of readouts of this many bytes.
    pub(super) fn with_corrections(mut self, corrections: &Corrections, readouts: u64) -> Self {
        let taken =
            self.heads.as_ref().map_or(0, |(heads, encoding)| corrections.bytes(heads, encoding, readouts));
        self.read += taken;
        // Frames of several images are made while others are held.
        if self.frame.is_some() {
            self.held += taken;
        }
        self
    }

    /// Images of the run, of all slices and volumes.
    pub(super) fn images(&self, source: &Source) -> usize {
        match source {
            Source::Stream(stream) => self.frames * stream.slices(),
            _ => self.frames,
        }
    }

    /// A frame as a stream has it, which is nowhere else.
    pub(super) fn of_stream((frame, notes): Made, read: u64, kept: u64, frames: usize, noise: Noise) -> Self {
        let coils = frame.coils();
        let (frame, noise) = (Some(Box::new(frame)), Some(noise));
        Self { frame, notes, frames, assembled: true, read, kept, coils, noise, ..Self::default() }
    }

    /// Finds out how many coils a frame has once it is prepared.
    pub(super) fn prepare(
        &mut self,
        device: &Device,
        source: &Source,
        options: &ReconOptions,
    ) -> rayspin_core::Result<()> {
        if let Some(frame) = self.frame(source) {
            self.coils = coils_kept(device, &options.prepare, frame)?;
        }
        Ok(())
    }

    /// Gives up the frame that was looked at.
    pub(super) fn take_made(&mut self) -> Option<Made> {
        self.frame.take().map(|frame| (*frame, std::mem::take(&mut self.notes)))
    }
}
