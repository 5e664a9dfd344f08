//! Reads a scan: whole where memory allows, else image by image or as a stream.

use std::path::Path;
use std::sync::Arc;

use rayspin_core::Monitor;
use rayspin_device::cpu;
use rayspin_io::pulseq::Sequence;
use rayspin_io::{self as io, Averages, Protocol, ScanReader, SeriesSource, open_scan};
use rayspin_mri::corrections::measure;
use rayspin_mri::methods::{Method, SampleKind};
use rayspin_mri::recon::plan as core;
use rayspin_mri::scan::{AcquisitionHead, Frame, FrameOptions, Label, Scan, Series, fullest};

use super::request::{Input, Request};
use super::source::{Shape, Source};
use super::stream::{self, volumes_of};
use super::taken::Taken;
use crate::Result;
use crate::compute_target::Short;

/// What takes less memory of a run.
pub(super) const LESS: &str = "a smaller image (`--matrix`), a single slice (`--slice`) or repetition (`--repetition`), or another method (`--method`) takes less";

impl Request {
    /// The sequence that made the scan. Methods for trajectories alone take its lines along trajectories, in
    /// a homogeneous field.
    fn played(&self) -> Result<Option<Sequence>> {
        let Some(file) = &self.sequence else { return Ok(None) };
        let sequence = Sequence::read(file)?;
        let scattered = |method: &dyn Method| method.uses().samples == SampleKind::Trajectory;
        let along = self.method.method().is_some_and(scattered) && self.field_map.is_none();
        Ok(Some(if along { sequence.along_trajectories() } else { sequence }))
    }

    /// What is short of memory.
    pub(super) fn short(&self) -> Short {
        Short { scan: self.input.file().map(Path::to_owned), less: LESS }
    }
}

/// Opens a scan with a header, whose samples lie where its sequence puts them, if that is given.
pub(super) fn open(path: &Path, request: &Request, monitor: &Monitor<'_>) -> Result<Box<dyn ScanReader>> {
    let mut reader = open_scan(path, monitor)?;
    if let Some(sequence) = request.played()? {
        reader = sequence.place_reader(reader)?;
    }
    if let Some(averages) = request.averages.clone() {
        reader = Averages::new(averages).keep_of(reader)?;
    }
    Ok(reader)
}

/// How a scan is read.
pub(super) struct Reading<'a> {
    pub(super) request: &'a Request,
    /// The limit of the process's memory.
    pub(super) memory: Option<u64>,
    /// Bytes of the process before.
    pub(super) process: u64,
    /// Whether it is read whole, where memory allows.
    pub(super) whole: bool,
}

/// Reads the scan: whole where `whole` is set and memory allows, else image by image or as a stream.
pub(super) fn read(reading: &Reading<'_>, monitor: &Monitor<'_>) -> Result<(Source, Shape)> {
    match &reading.request.input {
        Input::File(path) => read_file(path, reading, monitor),
        Input::Scan(scan) => {
            let (sequence, averages) = (reading.request.played()?, &reading.request.averages);
            if sequence.is_none() && averages.is_none() {
                return Ok(of_scan(scan, reading.request)?);
            }
            let mut own = Scan::clone(scan);
            if let Some(sequence) = sequence {
                sequence.place(&mut own)?;
            }
            if let Some(averages) = averages {
                Averages::new(averages.clone()).keep(&mut own)?;
            }
            Ok(of_scan(&Arc::new(own), reading.request)?)
        }
        Input::Image(array) => {
            let shape = Shape { frames: 1, coils: array.frame.coils(), ..Shape::default() };
            Ok((Source::Frame(array.clone()), shape))
        }
    }
}

/// A scan in memory, which its owner keeps.
fn of_scan(scan: &Arc<Scan>, request: &Request) -> rayspin_core::Result<(Source, Shape)> {
    let Request { selection, frames, .. } = request;
    let (index, mut notes) = (scan.frames()?, scan.notes.clone());
    let labels = selection.labels(&index, &mut notes)?;
    let several = labels.iter().any(|label| label.volume() != labels[0].volume());
    let noise = Some(measure(scan));
    let places: Vec<AcquisitionHead> = scan.acquisitions.iter().map(AcquisitionHead::from).collect();
    let protocol = Some(Arc::new(Protocol::of(&scan.header, &places)));
    if several || selection.window.is_some() {
        let series = index.series(&labels, selection.window.as_ref(), frames.readouts.as_ref())?;
        let [fullest, another] = series.fullest_and_another();
        let frame = series.image(fullest, frames, &mut Vec::new())?;
        let another = match another == fullest {
            true => None,
            false => Some(Box::new(series.image(another, frames, &mut Vec::new())?)),
        };
        let (images, slices) = (series.labels().len(), series.slices());
        let coils = frame.coils();
        let frame = Some(Box::new(frame));
        let read = frame.as_deref().map_or(0, core::assembling);
        let heads = Shape::heads_of(index.heads(), &scan.header, labels[0]);
        let (frames, assembled) = (images, true);
        let shape =
            Shape { frame, frames, assembled, read, coils, noise, heads, protocol, ..Shape::default() };
        let volumes = volumes_of(&series.labels());
        let source = Source::Series { scan: scan.clone(), volumes, slices, another };
        let corrections = &request.frames.corrections;
        return Ok((source, shape.with_corrections(corrections, bytes_of(scan, labels[0]))));
    }
    let slices = index.places().slices(labels[0].encoding);
    let fullest = index.fullest(&labels).unwrap_or_default();
    let uneven = index.uneven(&labels);
    let single = labels.len() == 1;
    let mut of_frame = Vec::new();
    let frame = Box::new(index.assemble(fullest, frames, &mut of_frame)?);
    let coils = frame.coils();
    if single {
        notes.append(&mut of_frame);
    }
    let read = core::assembling(&frame);
    let (only, frame) = if single { (Some(frame), None) } else { (None, Some(frame)) };
    let (count, assembled) = (labels.len(), !single);
    let heads = Shape::heads_of(index.heads(), &scan.header, labels[0]);
    let shape = Shape {
        frame,
        notes: of_frame,
        frames: count,
        assembled,
        read,
        coils,
        noise,
        heads,
        protocol,
        uneven,
        ..Shape::default()
    };
    let shape = shape.with_corrections(&frames.corrections, bytes_of(scan, fullest));
    Ok((Source::Whole { scan: scan.clone(), notes, labels, slices, only }, shape))
}

/// Bytes of the readouts of an image.
fn bytes_of(scan: &Scan, label: Label) -> u64 {
    let places = scan.acquisitions.iter().map(AcquisitionHead::from);
    places.filter(|place| place.label() == Some(label)).map(|place| place.bytes).sum()
}

fn read_file(path: &Path, reading: &Reading<'_>, monitor: &Monitor<'_>) -> Result<(Source, Shape)> {
    let Reading { request, memory, process, whole } = *reading;
    let Request { frames, selection, input, .. } = request;
    if !io::detect(path)?.reads_scans() {
        return super::arrays::read(path, reading, monitor);
    }
    let reader = match stream::open(path, request, monitor)? {
        Ok((stream, shape)) => return Ok((Source::Stream(Box::new(stream)), shape)),
        Err(reader) => reader,
    };
    let contents = reader.contents();
    let protocol = Some(Arc::new(Protocol::of(reader.header(), &reader.heads())));
    let of_file = |error| input.error(error);
    let mut notes = Vec::new();
    if contents.images.is_empty()
        && let Some(elsewhere) = reader.images_elsewhere()
    {
        let expected = "at least one that carries image data";
        return Err(io::Error::field(path, "acquisitions", expected, format!("none: {elsewhere}")).into());
    }
    let labels = selection.choose(contents.images.keys().copied(), &mut notes).map_err(of_file)?;
    let places = reader.slice_places();
    let labels = places.sorted(labels, &mut notes);
    let present = places.sorted(contents.images.keys().copied().collect(), &mut Vec::new());
    let taken = Some(Taken::of(present, &labels));
    let slices = places.slices(labels[0].encoding);
    let largest = fullest(&labels, |number| contents.images[&labels[number]])
        .map_or(labels[0], |number| labels[number]);
    let fits = memory.is_none_or(|limit| process + contents.memory_bytes <= limit)
        && cpu::expect_memory(path.display(), contents.memory_bytes).is_ok();
    if whole && fits {
        let mut scan = reader.into_scan(monitor)?;
        let mut assumed = Vec::new();
        let frame = scan.frames().and_then(|index| index.assemble(largest, frames, &mut assumed));
        let frame = Box::new(frame.map_err(of_file)?);
        let single = labels.len() == 1;
        let index = scan.frames().ok();
        let uneven = index.as_ref().and_then(|index| index.uneven(&labels));
        let heads = index.and_then(|index| Shape::heads_of(index.heads(), &scan.header, labels[0]));
        let noise = Some(measure(&scan));
        let kept = contents.library_bytes;
        let reading = contents.memory_bytes.max(kept + scan.bytes() + core::assembling(&frame)) - kept;
        let coils = frame.coils();
        let mut of_scan = std::mem::take(&mut scan.notes);
        let (held, only, frame) = if single {
            of_scan.append(&mut assumed);
            scan.acquisitions = Vec::new();
            cpu::trim_memory();
            (0, Some(frame), None)
        } else {
            (scan.bytes(), None, Some(frame))
        };
        of_scan.extend(notes);
        let (frames, assembled) = (labels.len(), !single);
        let shape = Shape {
            frame,
            notes: assumed,
            held,
            frames,
            assembled,
            read: reading,
            kept,
            coils,
            noise,
            heads,
            protocol,
            taken,
            uneven,
            maps: None,
        };
        let shape = shape.with_corrections(&request.frames.corrections, contents.images[&largest]);
        let source = Source::Whole { scan: Arc::new(scan), notes: of_scan, labels, slices, only };
        return Ok((source, shape));
    }
    let bytes = contents.images[&largest];
    // Reading one image takes what reading all takes, less the others.
    let image_bytes: u64 = contents.images.values().sum();
    let read = contents.memory_bytes.saturating_sub(image_bytes) + bytes;
    request.short().refuse(memory, process + read)?;
    cpu::expect_memory(path.display(), read)?;
    let uneven = Series::of_labels(reader.heads(), &labels, None).ok().and_then(|series| series.uneven());
    let mut source = source_of(reader, largest, frames)?;
    let mut assumed = Vec::new();
    let frame = Box::new(source.image(0, &mut assumed, monitor)?);
    let noise = Some(measure(&source.noise(monitor)?));
    notes.extend(source.notes());
    let heads = Shape::heads_of(source.heads(), source.reader().header(), largest);
    drop(source);
    cpu::trim_memory();
    let (frames, kept, coils) = (labels.len(), contents.library_bytes, frame.coils());
    let read = read.saturating_sub(kept);
    let frame = Some(frame);
    let shape = Shape {
        frame,
        notes: assumed,
        held: bytes,
        frames,
        assembled: true,
        read,
        kept,
        coils,
        noise,
        heads,
        protocol,
        taken,
        uneven,
        maps: None,
    };
    let shape = shape.with_corrections(&request.frames.corrections, bytes);
    Ok((Source::Parts { labels, slices, notes }, shape))
}

/// One image of a scan that does not fit in memory. Its acquisitions keep their numbers in the file, which
/// errors state.
pub(super) fn read_part(
    path: &Path,
    label: Label,
    request: &Request,
    notes: &mut Vec<String>,
    monitor: &Monitor<'_>,
) -> Result<Frame> {
    let reader = open(path, request, monitor)?;
    let frame = source_of(reader, label, &request.frames)?.image(0, notes, monitor)?;
    cpu::trim_memory();
    Ok(frame)
}

fn source_of(reader: Box<dyn ScanReader>, label: Label, options: &FrameOptions) -> Result<SeriesSource> {
    let series = Series::of_labels(reader.heads(), &[label], options.readouts.as_ref());
    let series = series.map_err(|error| io::Error::core(reader.path(), error))?;
    Ok(SeriesSource::new(reader, series, options.clone()))
}
