//! Dynamic scans: repetitions and sliding windows, read, reconstructed and written at the same time.

use std::ops::Range;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use ndarray::{ArrayD, Axis, IxDyn};
use rayspin::core::slices::Stack;
use rayspin::core::{C32, Image, Monitor};
use rayspin::device::Device;
use rayspin::io::cfl::Layout;
use rayspin::io::ismrmrd::{Reader, SeriesSource};
use rayspin::io::png::PngOptions;
use rayspin::io::{
    ArraySource, ArrayWindows, Input, ScanOptions, SeriesShape, SeriesWriter, WriteOptions, stack_paths,
};
use rayspin::mri::prepare::measure;
use rayspin::mri::recon::plan::{Known, Streaming, assembling, of_stream};
use rayspin::mri::recon::{
    Frames, ReconOptions, Selection, StreamEnd, StreamItem, StreamTimes, Volume, reconstruct_stream,
};
use rayspin::mri::scan::{Facts, Frame, Label, Place, Series, Window};
use rayspin::run::{Budget, Endpoints, Plan};
use rayspin_shell::{interrupt, say};

use super::Done;
use super::images::Images;
use super::taken::Taken;
use crate::args::mri::ReconMri;
use crate::commands::files::{RunFiles, together};
use crate::commands::plan::{Shape, plan_of};

/// An open scan whose images are read as they are needed.
pub(crate) struct Stream {
    source: Images,
    /// Slice counters of the whole scan.
    slices: Vec<u16>,
    notes: Vec<String>,
    /// The samples that maps are learned from, to plan for.
    maps: Option<Box<Frame>>,
    windows: bool,
}

/// Opens the scan as a stream where it is to be one: with a window, or where it holds several repetitions. Gives back the reader of
/// any other scan.
pub(crate) fn open(
    args: &ReconMri,
    options: &ScanOptions,
    selection: &Selection,
    monitor: &Monitor<'_>,
) -> Result<std::result::Result<(Stream, Shape), Reader>> {
    let path = &args.scan;
    let input = Input::of(path);
    let reader = Reader::open(&input.file, input.name.as_deref())?;
    let places = reader.places();
    let all: std::collections::BTreeSet<Label> = places.iter().filter_map(Place::label).collect();
    if all.is_empty() {
        return Ok(Err(reader));
    }
    let mut notes = Vec::new();
    let mut choose = || selection.choose(all.iter().copied(), &mut notes);
    let labels = choose().with_context(|| path.display().to_string())?;
    let slice_places = reader.slice_places();
    let labels = slice_places.sorted(labels, &mut notes);
    let several = labels.iter().any(|label| label.repetition != labels[0].repetition);
    let chosen = args.readouts.as_ref();
    let series = match args.window {
        Some(readouts) => Series::of_windows(places, &labels, &window(args, readouts), chosen),
        None if several => Series::of_repetitions(places, &labels, chosen),
        None => return Ok(Err(reader)),
    };
    let series = series.with_context(|| path.display().to_string())?;
    let (kept, beside) = (reader.library_bytes(), reader.memory_bytes());
    let frames = super::options::frames(args, options);
    let mut source = SeriesSource::new(reader, series, frames);
    let noise = measure(&source.noise(monitor)?);
    let count = source.series().repetitions();
    let (fullest, uneven) = (source.series().fullest(), source.series().uneven());
    let frame = source.image(fullest, &mut Vec::new(), monitor)?;
    let taken = Taken::of(slice_places.sorted(all.into_iter().collect(), &mut Vec::new()), &labels);
    let taken = Some(if args.window.is_some() { taken.joined() } else { taken });
    let mut shape = Shape::of_stream(frame, beside.saturating_sub(kept), kept, count, noise);
    (shape.taken, shape.uneven) = (taken, uneven);
    let (slices, windows) = (slice_places.slices(labels[0].encoding), args.window.is_some());
    let source = Images::Scan(Box::new(source));
    Ok(Ok((Stream { source, slices, notes, maps: None, windows }, shape)))
}

/// The window of that many readouts.
pub(crate) fn window(args: &ReconMri, readouts: usize) -> Window {
    Window { readouts, stride: args.stride.unwrap_or(readouts), frames: args.frames }
}

impl Stream {
    /// Images of each slice.
    pub(crate) fn repetitions(&self) -> usize {
        self.source.repetitions()
    }

    /// The facts about the fullest image `frame` as one of a series.
    pub(super) fn in_series(&mut self, facts: Facts, frame: &Frame, monitor: &Monitor<'_>) -> Result<Facts> {
        let repetitions = self.repetitions();
        Ok(match self.source.another(monitor)? {
            Some(second) => facts.in_series(repetitions, frame, &second),
            None => facts,
        })
    }

    /// The repetitions of an array series; `slices` are the slice counters of all its images.
    pub(crate) fn of_arrays(source: ArraySource, slices: Vec<u16>, notes: Vec<String>) -> Self {
        let windows = source.series().has_several_trajectories();
        Self { source: Images::Arrays(Box::new(source)), slices, notes, maps: None, windows }
    }

    /// A window over the readouts of arrays, likewise.
    pub(crate) fn of_windows(source: ArrayWindows, slices: Vec<u16>, notes: Vec<String>) -> Self {
        Self { source: Images::Windows(Box::new(source)), slices, notes, maps: None, windows: true }
    }

    /// Whether the images come from an array without a header.
    pub(super) fn of_array(&self) -> bool {
        matches!(self.source, Images::Arrays(_) | Images::Windows(_))
    }

    /// Where the axes of the images go in a BART array.
    pub(super) fn layout(&self) -> Layout {
        self.source.layout()
    }

    /// Reads the samples that all images' maps are learned from, where the method needs maps and has none.
    pub(super) fn learn_maps(&mut self, options: &ReconOptions, monitor: &Monitor<'_>) -> Result<()> {
        if options.learns_maps() {
            let found = self.source.learn_maps(&mut self.notes, monitor)?;
            self.maps = found.cloned().map(Box::new);
        }
        Ok(())
    }

    /// Bytes of reading the samples that maps are learned from, and of making a frame of them.
    pub(crate) fn learning_bytes(&self) -> u64 {
        self.maps.as_deref().map_or(0, |frame| self.source.learning_bytes() + assembling(frame))
    }

    /// What the images take besides what the reader holds.
    pub(crate) fn budget(
        &self,
        frame: &Frame,
        coils: usize,
        options: &ReconOptions,
        device: &Device,
        known: &Known,
    ) -> rayspin::core::Result<Budget> {
        let stream = Streaming {
            frames: self.repetitions(),
            slices: self.slices(),
            held: self.source.held_bytes(),
            coils,
            maps: self.maps.as_deref(),
            plans_each: self.windows,
        };
        of_stream(frame, &stream, options, device, known)
    }

    /// Slices of each image.
    pub(crate) fn slices(&self) -> usize {
        self.source.slices()
    }
}

/// A stream's budget with what its writers hold.
pub(crate) fn with_writing(
    args: &ReconMri,
    mut budget: Budget,
    images: u64,
    process: u64,
    device: &Device,
) -> Plan {
    let image = images / (budget.frames as u64).max(1);
    let held: u64 =
        args.outputs.iter().map(|path| SeriesWriter::memory(path, budget.frames as u64, image)).sum();
    // A reference is compared with all images at once.
    let compared = if args.run.reference.is_some() { 2 * images } else { 0 };
    for stage in &mut budget.stages {
        stage.bytes += held + compared;
    }
    if args.run.reference.is_some() {
        budget.push("metrics", budget.result + compared + 2 * images);
    }
    plan_of(budget, process, device)
}

/// Reconstructs the stream into its files. Those that are complete when it ends early are kept.
pub(super) fn run(
    device: &Device,
    quiet: bool,
    (args, paths): (&ReconMri, &RunFiles),
    stream: Stream,
    options: &ReconOptions,
    monitor: &Monitor<'_>,
) -> Result<Done> {
    let (step_s, layout) = (stream.source.step_s(), stream.layout());
    let Stream { mut source, slices, mut notes, maps, .. } = stream;
    drop(maps);
    let labels = source.labels();
    let frames = source.repetitions();
    if let Some(step) = step_s {
        notes.push(format!("{step:.4} s from image to image, time stamps taken as ticks of 2.5 ms"));
    }
    let mut files = Files { args, paths, frames, step_s, layout, writers: Vec::new(), collected: None };
    let (mut shape, mut stacks) = ([0; 3], 1);
    let mut sink = |volume: Volume| -> Result<()> {
        files.push(&volume)?;
        shape.copy_from_slice(volume.data.shape());
        stacks = volume.stacks.len();
        Ok(())
    };
    let mut next = |notes: &mut Vec<String>| -> Result<Option<StreamItem>> { source.next(notes, monitor) };
    let ended = interrupt::stoppable(|| {
        monitor.series("images", frames, || {
            let series = Frames { labels: &labels, slices: &slices, notes };
            let ends = Endpoints { source: &mut next, sink: &mut sink };
            reconstruct_stream(device, series, ends, options, monitor)
        })
    });
    let end = match ended {
        Ok(end) => end,
        Err(error) => {
            files.keep_partial(frames);
            return Err(error);
        }
    };
    if !quiet {
        for (stage, seconds) in monitor.stages().iter().filter(|(stage, _)| stage != "read") {
            say!("    {stage:20} {seconds:8.3} s");
        }
    }
    let StreamEnd { solves, maps, mut notes, certificates, searched, mut times } = end;
    // Only now is every acquisition read that the images need.
    notes.extend(source.notes());
    let begun = std::time::Instant::now();
    let image = files.finish(&mut notes)?;
    let closing = begun.elapsed().as_secs_f64();
    times.write += closing;
    times.wall += closing;
    let times = Some(times);
    Ok(Done { image, shape, repetitions: frames, stacks, solves, maps, notes, certificates, searched, times })
}

/// `100 images, 12.3 a second`, and how much of it was done at the same time.
pub(super) fn rate(images: usize, times: &StreamTimes) -> String {
    let StreamTimes { read, reconstruct, write, wall } = times;
    format!(
        "images, {images}, {:.1} a second (read {read:.2} s, reconstruct {reconstruct:.2} s, write {write:.2} s, \
         together {wall:.2} s)",
        images as f64 / wall
    )
}

/// The outputs in the making.
struct Files<'a> {
    args: &'a ReconMri,
    paths: &'a RunFiles,
    frames: usize,
    step_s: Option<f64>,
    layout: Layout,
    /// Each output has a writer for each of its files.
    writers: Vec<(Range<usize>, SeriesWriter)>,
    /// All images, where they are compared with a reference.
    collected: Option<Image>,
}

impl Files<'_> {
    fn push(&mut self, volume: &Volume) -> Result<()> {
        let shape = volume.data.shape();
        let zyx = [shape[0], shape[1], shape[2]];
        if self.writers.is_empty() {
            self.paths.of_stacks(&self.args.outputs, volume.stacks.len())?;
            for output in &self.args.outputs {
                let paths = stack_paths(output, volume.stacks.len())?;
                let whole = volume.stacks.first().map(|stack| Stack { slices: zyx[0], ..*stack });
                let stacks = if paths.len() == 1 { whole.as_slice() } else { &volume.stacks };
                let mut start = 0;
                for (path, stack) in paths.iter().zip(stacks) {
                    let slices = start..start + stack.slices;
                    start = slices.end;
                    let [_, ny, nx] = zyx;
                    let volume = [stack.slices, ny, nx];
                    let shape = SeriesShape { frames: self.frames, volume, geometry: stack.geometry };
                    let options = WriteOptions {
                        repetition_time_s: self.step_s,
                        layout: self.layout,
                        png: PngOptions::preview(stack.slices, self.frames),
                        values: self.args.numbers.values(),
                        stored: None,
                        hounsfield: Some(false),
                    };
                    self.writers.push((slices, SeriesWriter::create(path, &shape, &options)?));
                }
            }
        }
        for (slices, writer) in &mut self.writers {
            writer.push(volume.data.slice_axis(Axis(0), slices.clone().into()))?;
        }
        if self.args.run.reference.is_some() {
            let all = io_shape(self.frames, zyx);
            let mut data = match self.collected.take() {
                Some(image) => image.into_data(),
                None => ArrayD::<C32>::zeros(IxDyn(&all)),
            };
            match all.len() {
                4 => data.index_axis_mut(ndarray::Axis(0), volume.index).assign(&volume.data),
                _ => data.assign(&volume.data),
            }
            self.collected = Some(Image::of_stacks(data, volume.stacks.clone())?);
        }
        Ok(())
    }

    fn finish(self, notes: &mut Vec<String>) -> Result<Option<Image>> {
        together(|| {
            for (_, writer) in self.writers {
                let path = rayspin_shell::stdout::name(writer.path());
                let left_out = writer.finish()?;
                notes.extend(left_out.into_iter().map(|note| format!("{path}: {note}")));
            }
            Ok(())
        })?;
        Ok(self.collected)
    }

    /// Keeps what is complete, and says what that is.
    fn keep_partial(self, frames: usize) {
        for (_, writer) in self.writers {
            let (done, name) = (writer.pushed(), writer.path().display().to_string());
            match writer.keep_partial() {
                Ok(Some(path)) => {
                    let kept: PathBuf = path;
                    say!("kept: {} ({done} of {frames} images)", kept.display());
                }
                Ok(None) => {}
                Err(error) => say!("{name}: the {done} images that were complete are lost: {error}"),
            }
        }
    }
}

/// `[frame, z, y, x]`, or `[z, y, x]` of a single frame.
fn io_shape(frames: usize, zyx: [usize; 3]) -> Vec<usize> {
    if frames == 1 { zyx.to_vec() } else { [&[frames], &zyx[..]].concat() }
}
