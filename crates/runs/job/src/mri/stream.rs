//! Scans of several volumes in files (repetitions, contrasts, cardiac phases, sets, sliding windows), whose
//! images are read as they are needed.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use rayspin_core::Monitor;
use rayspin_device::Device;
use rayspin_io::SeriesSource;
use rayspin_io::cfl::{Layout, dim};
use rayspin_io::{ArraySource, ArrayWindows, Protocol, ScanReader, SeriesWriter};
use rayspin_mri::corrections::measure;
use rayspin_mri::recon::plan::{Known, Streaming, assembling, of_stream};
use rayspin_mri::recon::{Frames, ReconOptions, StreamEnd, StreamItem, Volume, reconstruct_stream};
use rayspin_mri::scan::{AcquisitionHead, Facts, Frame, Label, Series, in_time};
use rayspin_run::{Budget, Endpoints, Plan};

use super::frame_source::{FrameSource, another};
use super::read;
use super::request::Request;
use super::source::{Made, Shape};
use super::taken::Taken;
use crate::compute_target::plan_of;
use crate::{Error, Result};

/// The images of a stream as files hold them.
#[derive(Debug, Clone)]
pub struct StreamShape {
    /// Volumes.
    pub frames: usize,
    /// Time from one repetition, cardiac phase or window to the next in s, where time stamps tell it.
    pub step_s: Option<f64>,
    /// Where their axes go in a BART array.
    pub layout: Layout,
    /// The volumes, as the labels of their slices 0; none of coefficients.
    pub labels: Vec<Label>,
}

/// An open scan whose images are read as they are needed.
pub(super) struct Stream {
    source: Box<dyn FrameSource>,
    /// Slice counters of the whole scan.
    slices: Vec<u16>,
    notes: Vec<String>,
    /// The samples that maps are learned from, to plan for.
    maps: Option<Box<Frame>>,
    windows: bool,
}

/// Opens the scan as a stream where it is to be one: with a window, or where it holds several volumes.
/// Gives back the reader of any other scan.
pub(super) fn open(
    path: &Path,
    request: &Request,
    monitor: &Monitor<'_>,
) -> Result<std::result::Result<(Stream, Shape), Box<dyn ScanReader>>> {
    let Request { frames, selection, input, .. } = request;
    let of_file = |error| input.error(error);
    let reader = read::open(path, request, monitor)?;
    let places = reader.heads();
    let present: BTreeSet<Label> = places.iter().filter_map(AcquisitionHead::label).collect();
    if present.is_empty() {
        return Ok(Err(reader));
    }
    let protocol = Arc::new(Protocol::of(reader.header(), &places));
    let mut notes = Vec::new();
    let labels = selection.choose(present.iter().copied(), &mut notes).map_err(of_file)?;
    let slice_places = reader.slice_places();
    let labels = slice_places.sorted(labels, &mut notes);
    let several = labels.iter().any(|label| label.volume() != labels[0].volume());
    let (chosen, window) = (frames.readouts.as_ref(), selection.window.as_ref());
    let series = match window {
        Some(window) => Series::of_windows(places, &labels, window, chosen),
        None if several => Series::of_labels(places, &labels, chosen),
        None => return Ok(Err(reader)),
    };
    let series = series.map_err(of_file)?;
    let (kept, beside) = (reader.library_bytes(), reader.memory_bytes());
    let mut source = SeriesSource::new(reader, series, frames.clone());
    let noise = measure(&source.noise(monitor)?);
    let count = source.series().volumes();
    let (fullest, uneven) = (source.series().fullest(), source.series().uneven());
    let mut assumed = Vec::new();
    let frame = source.image(fullest, &mut assumed, monitor)?;
    let taken = Taken::of(slice_places.sorted(present.into_iter().collect(), &mut Vec::new()), &labels);
    let taken = Some(if window.is_some() { taken.joined() } else { taken });
    let heads = Shape::heads_of(source.heads(), source.reader().header(), labels[0]);
    let mut shape = Shape::of_stream((frame, assumed), beside.saturating_sub(kept), kept, count, noise);
    (shape.heads, shape.taken, shape.uneven) = (heads, taken, uneven);
    shape.protocol = Some(protocol);
    let (slices, windows) = (slice_places.slices(labels[0].encoding), window.is_some());
    Ok(Ok((Stream { source: Box::new(source), slices, notes, maps: None, windows }, shape)))
}

impl Stream {
    /// Volumes, which are images of each slice.
    pub(super) fn volumes(&self) -> usize {
        self.source.volumes()
    }

    /// The volumes, as the labels of their slices 0.
    pub(super) fn labels(&self) -> Vec<Label> {
        volumes_of(&self.source.labels())
    }

    /// The facts about the fullest image `frame` as one of a series.
    pub(super) fn in_series(&mut self, facts: Facts, frame: &Frame, monitor: &Monitor<'_>) -> Result<Facts> {
        let volumes = self.volumes();
        Ok(match another(&mut *self.source, monitor)? {
            Some(second) => facts.in_series(volumes, frame, &second),
            None => facts,
        })
    }

    /// The volumes of an array series; `slices` are the slice counters of all its images.
    pub(super) fn of_arrays(source: ArraySource, slices: Vec<u16>, notes: Vec<String>) -> Self {
        let windows = source.series().has_several_trajectories();
        Self { source: Box::new(source), slices, notes, maps: None, windows }
    }

    /// A window over the readouts of arrays, likewise.
    pub(super) fn of_windows(source: ArrayWindows, slices: Vec<u16>, notes: Vec<String>) -> Self {
        Self { source: Box::new(source), slices, notes, maps: None, windows: true }
    }

    /// Whether the images come from an array without a header.
    pub(super) fn of_array(&self) -> bool {
        self.source.of_array()
    }

    /// Where the axes of the images go in a BART array.
    pub(super) fn layout(&self) -> Layout {
        self.source.layout()
    }

    /// The images as files hold them. Coefficients of a temporal basis do not follow each other in time.
    pub(super) fn shape(&self, options: &ReconOptions) -> StreamShape {
        let step_s = self.source.step_s().filter(|_| options.basis.is_none());
        let frames = options.images_of(self.volumes());
        let labels = if options.basis.is_none() { self.labels() } else { Vec::new() };
        StreamShape { frames, step_s, layout: layout_of(self.layout(), options), labels }
    }

    /// Reads the samples that all images' maps are learned from, where the method needs maps and has none.
    pub(super) fn learn_maps(&mut self, options: &ReconOptions, monitor: &Monitor<'_>) -> Result<()> {
        if options.learns_maps() {
            let maps = self.source.learn_maps(&mut self.notes, monitor)?;
            self.maps = maps.cloned().map(Box::new);
        }
        Ok(())
    }

    /// Bytes of reading the samples that maps are learned from, and of making a frame of them.
    pub(super) fn learning_bytes(&self) -> u64 {
        self.maps.as_deref().map_or(0, |frame| self.source.learning_bytes() + assembling(frame))
    }

    /// What the images take besides what the reader holds.
    pub(super) fn budget(
        &self,
        frame: &Frame,
        coils: usize,
        options: &ReconOptions,
        device: &Device,
        known: &Known,
    ) -> rayspin_core::Result<Budget> {
        let stream = Streaming {
            frames: self.volumes(),
            slices: self.slices(),
            held: self.source.held_bytes(),
            coils,
            maps: self.maps.as_deref(),
            plans_each: self.windows,
        };
        of_stream(frame, &stream, options, device, known)
    }

    /// Slices of each image.
    pub(super) fn slices(&self) -> usize {
        self.source.slices()
    }

    /// Reconstructs the stream; `sink` takes each volume as soon as it is done. The frame that was looked at
    /// becomes the first image, or it is dropped where it shows another one. Notes on acquisitions come last:
    /// only then are all read that the images need.
    pub(super) fn run<E: From<Error> + From<rayspin_core::Error> + Send>(
        self,
        device: &Device,
        options: &ReconOptions,
        made: Option<Made>,
        sink: &mut (dyn FnMut(Volume) -> std::result::Result<(), E> + Send),
        monitor: &Monitor<'_>,
    ) -> std::result::Result<StreamEnd, E> {
        let Self { mut source, slices, mut notes, maps, .. } = self;
        drop(maps);
        let (labels, frames): (Vec<Label>, usize) = (source.labels(), source.volumes());
        if let Some(step) = source.step_s().filter(|_| options.basis.is_none()) {
            let name = if in_time(&labels) { "image" } else { "repetition" };
            notes.push(format!("{step:.4} s from {name} to {name}, time stamps taken as ticks of 2.5 ms"));
        }
        let mut made = made.filter(|(frame, _)| labels.first() == Some(&frame.label));
        let mut next = |notes: &mut Vec<String>| -> std::result::Result<Option<StreamItem>, E> {
            match made.take_if(|(frame, _)| source.upcoming() == Some(frame.label)) {
                Some((frame, assumed)) => {
                    source.skip(monitor).map_err(E::from)?;
                    notes.extend(assumed);
                    Ok(Some(StreamItem::Image(frame.label, frame)))
                }
                None => source.next(notes, monitor).map_err(E::from),
            }
        };
        let mut end = monitor.series("images", frames, || {
            let series = Frames { labels: &labels, slices: &slices, notes };
            let ends = Endpoints { source: &mut next, sink };
            reconstruct_stream(device, series, ends, options, monitor)
        })?;
        end.notes.extend(source.notes());
        Ok(end)
    }
}

/// The volumes of labels, each once, as the labels of their slices 0.
pub(super) fn volumes_of(labels: &[Label]) -> Vec<Label> {
    let mut volumes: Vec<Label> = labels.iter().map(Label::volume).collect();
    volumes.dedup();
    volumes
}

/// Where the axes of a run's images go in a BART array: coefficients of a temporal basis along COEFF, others
/// as the samples had them.
pub(super) fn layout_of(layout: Layout, options: &ReconOptions) -> Layout {
    match &options.basis {
        Some(basis) => layout.with_all_along(basis.coefficients(), dim::COEFF),
        None => layout,
    }
}

/// A stream's budget with what its writers hold.
pub(super) fn with_writing(
    request: &Request,
    mut budget: Budget,
    images: u64,
    process: u64,
    device: &Device,
) -> Plan {
    let image = images / (budget.frames as u64).max(1);
    let outputs = request.outputs.iter();
    let held: u64 = outputs.map(|path| SeriesWriter::memory(path, budget.frames as u64, image)).sum();
    // A reference is compared with all images at once.
    let compared = if request.compared { 2 * images } else { 0 };
    for stage in &mut budget.stages {
        stage.bytes += held + compared;
    }
    if request.compared {
        budget.push("metrics", budget.result + compared + 2 * images);
    }
    plan_of(budget, process, device)
}
