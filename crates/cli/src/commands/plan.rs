//! What a reconstruction will take, and how it is cut to fit: `--dry-run` and `--memory`.

mod arrays;

use std::path::Path;

use anyhow::{Context as _, Result};
use rayspin::core::Monitor;
use rayspin::device::{Backend, Device, cpu, cuda};
use rayspin::io::ismrmrd::{Reader, SeriesSource};
use rayspin::io::{self, ArrayFrame, ArraySeries, Input, ScanOptions, SeriesWriter};
use rayspin::mri::prepare::{Noise, coils_kept, measure};
use rayspin::mri::recon::plan::{self as core, Planned};
use rayspin::mri::recon::{Extent, ReconOptions, Selection};
use rayspin::mri::scan::{Frame, FrameOptions, Label, Scan, Series};
use rayspin::report::number;
use rayspin::report::table::{Cell, Column, Table};
use rayspin::run::{BatchSize, Budget, Job, Limits, OverBudget, Plan, Stage};
use rayspin_shell::{BadInput, Context, Undecided};

use super::recon::stream::{self, Stream};
use super::recon::taken::Taken;
use crate::args::Run;
use crate::args::mri::ReconMri;

/// Small arrays and tables of a run that no stage counts.
const RUNNING_BYTES: u64 = 1 << 18;
/// Those of each thread: its stack, and what transforms work in.
const THREAD_BYTES: u64 = 1 << 19;

/// Where the frames come from.
pub(crate) enum Source {
    /// A scan in memory; its one frame is assembled already where there is but one.
    Whole { scan: Box<Scan>, labels: Vec<Label>, slices: Vec<u16>, only: Option<Box<Frame>> },
    /// A scan on disk, read image by image; the notes are the first image's.
    Parts { labels: Vec<Label>, slices: Vec<u16>, notes: Vec<String> },
    /// The samples of one image, from arrays without a header.
    Frame(Box<ArrayFrame>),
    /// Images of one repetition of an array series, read one at a time.
    Arrays { series: Box<ArraySeries>, labels: Vec<Label>, slices: Vec<u16>, notes: Vec<String> },
    /// Repetitions or windows, read as they are needed.
    Stream(Box<Stream>),
}

impl Source {
    /// Repetitions or windows.
    pub(crate) fn repetitions(&self) -> usize {
        match self {
            Self::Stream(stream) => stream.repetitions(),
            // Several repetitions are a stream.
            Self::Whole { .. } | Self::Parts { .. } | Self::Frame(..) | Self::Arrays { .. } => 1,
        }
    }
}

/// A frame like all others, what is held beside it, and how often it comes.
pub(crate) struct Shape {
    frame: Option<Box<Frame>>,
    held: u64,
    frames: usize,
    assembled: bool,
    read: u64,
    /// Bytes that the reader keeps after it is done.
    kept: u64,
    /// Coils that a frame has once it is prepared.
    coils: usize,
    /// What the scan says of its coils' noise.
    pub(crate) noise: Option<Noise>,
    /// The part of the scan that is reconstructed, where its images are numbered.
    pub(crate) taken: Option<Taken>,
    /// What images have that hold far fewer lines than the fullest one.
    pub(crate) uneven: Option<String>,
}

impl Shape {
    /// The frame, to look at.
    pub(crate) fn frame<'a>(&'a self, source: &'a Source) -> Option<&'a Frame> {
        match source {
            Source::Frame(array) => Some(&array.frame),
            Source::Whole { only: Some(frame), .. } => Some(frame),
            _ => self.frame.as_deref(),
        }
    }

    /// The first frame of a stream.
    pub(crate) fn of_series(&self) -> Option<&Frame> {
        self.frame.as_deref()
    }

    /// Images of the run, of all slices and repetitions.
    pub(crate) fn images(&self, source: &Source) -> usize {
        match source {
            Source::Stream(stream) => self.frames * stream.slices(),
            _ => self.frames,
        }
    }

    /// A frame as a stream has it, which is nowhere else.
    pub(super) fn of_stream(frame: Frame, read: u64, kept: u64, frames: usize, noise: Noise) -> Self {
        let coils = frame.coils();
        let frame = Some(Box::new(frame));
        let (noise, taken, uneven) = (Some(noise), None, None);
        Self { frame, held: 0, frames, assembled: true, read, kept, coils, noise, taken, uneven }
    }
}

/// A budget with what every run takes besides.
pub(crate) fn plan_of(budget: Budget, process: u64, device: &Device) -> Plan {
    let threads = device.cpu_side().threads();
    let staging = match device.backend() {
        Backend::Cuda(_) => cuda::staging_bytes(threads),
        Backend::Cpu(_) => 0,
    };
    Plan { budget, process: process + RUNNING_BYTES + threads as u64 * THREAD_BYTES + staging }
}

/// That the machine has what the process does not hold yet. Errors: memory.
pub(crate) fn expect_memory(plan: &Plan) -> Result<()> {
    Ok(cpu::expect_memory("reconstruction", plan.peak().saturating_sub(process_bytes()))?)
}

/// Says so where the CPU is done before a GPU has started, and no GPU is named.
pub(crate) fn quicker_than_a_gpu_starts(undecided: Undecided, plan: &Plan, cpu: &Device) -> Option<String> {
    let seconds = cpu_seconds(&plan.budget, cpu.cpu_side().threads());
    (undecided == Undecided::Auto && seconds < GPU_START).then(|| {
        format!("done in less than {GPU_START} s, which a GPU takes to start (--device cuda takes it anyway)")
    })
}

/// Opens the GPU that is named, or else the first one that works, and returns the bytes that starting it took.
///
/// Errors: the GPU that is named does not work.
pub(crate) fn open(
    undecided: Undecided,
    context: &Context,
    starting: Option<cuda::Starting>,
) -> Result<(Device, u64)> {
    let (before, host) = (process_bytes(), context.device.host());
    let device = match undecided {
        Undecided::Auto => rayspin_shell::first_gpu(host, context.quiet),
        Undecided::Gpu(ordinal) => Device::cuda(ordinal, host)?,
    };
    let took = starting.map_or_else(|| process_bytes().saturating_sub(before), |_| STARTED_BYTES);
    Ok((device, took))
}

/// What is left to kernels, the driver, and gaps between arrays.
const GPU_RESERVE: u64 = 256 << 20;

/// What a run on this device may take: `--memory`; and `--gpu-memory`, or what is free but for [`GPU_RESERVE`].
///
/// Errors: a GPU that does not tell.
pub(crate) fn limits(memory: Option<u64>, device: &Device, gpu_memory: Option<u64>) -> Result<Limits> {
    let Backend::Cuda(cuda) = device.backend() else {
        return Ok(Limits { memory, gpu: None });
    };
    cuda.limit_memory(None);
    let free = cuda.memory_left()?.saturating_sub(GPU_RESERVE);
    cuda.limit_memory(gpu_memory);
    Ok(Limits { memory, gpu: Some(gpu_memory.map_or(free, |limit| limit.min(free))) })
}

/// Seconds until a GPU has started, its kernels being compiled already: the wall time less the work of
/// benches/results/2026-11-21-h100/recon.txt.
const GPU_START: f64 = 0.3;
/// Operations and bytes of a thread in a second, and threads that help a small scan: every scan that is counted as done before a
/// GPU has started was, on two threads beside other work (benches/results/2026-11-21-cpu/estimate.txt).
const THREAD_RATE: f64 = 4e9;
const HELPING_THREADS: usize = 16;

/// Bytes of a scan from which on a GPU starts while it is read: smaller ones are often done on the CPU meanwhile.
const EARLY_BYTES: u64 = 64 << 20;
/// Host memory that a started GPU takes: 107 MiB measured (benches/results/2026-11-24-h100/file_to_file.txt).
const STARTED_BYTES: u64 = 128 << 20;

/// Begins to start the GPU that the run will take, beside whatever comes next. Not where `--memory` limits the run or it only
/// tells its plan: what a GPU takes of the host's memory is then measured alone.
pub(crate) fn starting(context: &Context, run: &Run, scan: &Path) -> Option<cuda::Starting> {
    if run.memory.is_some() || run.dry_run {
        return None;
    }
    let large = || std::fs::metadata(scan).is_ok_and(|found| found.len() >= EARLY_BYTES);
    match context.undecided? {
        Undecided::Auto => large().then(|| cuda::start(0)),
        Undecided::Gpu(ordinal) => Some(cuda::start(ordinal)),
    }
}

/// Seconds that the CPU takes at most for what is planned.
fn cpu_seconds(budget: &Budget, threads: usize) -> f64 {
    let sum = |of: fn(&Stage) -> f64| budget.stages.iter().map(of).sum::<f64>();
    (sum(|s| s.effort.flops) + sum(|s| s.effort.traffic))
        / (THREAD_RATE * threads.min(HELPING_THREADS) as f64)
}

/// Says so where the GPU's memory is what is short.
pub(crate) fn short_of_gpu(short: &OverBudget, limits: &Limits) -> Option<String> {
    let limit = limits.gpu.filter(|&limit| short.gpu > limit)?;
    let (needed, limit) = (number::bytes(short.gpu), number::bytes(limit));
    Some(format!("it takes at least {needed} of the GPU's memory, of which arrays may take {limit}"))
}

/// The refusal of a run that does not fit, with the number that is too large.
pub(crate) fn refusal(short: &OverBudget, limits: &Limits, scan: &Path, less: &'static str) -> anyhow::Error {
    if let Err(error) = refuse(limits.memory, short.memory, scan, less) {
        return error;
    }
    BadInput::new(format!(
        "GPU memory: expected at least {} for {}, found {}",
        number::bytes(short.gpu),
        scan.display(),
        number::bytes(limits.gpu.unwrap_or(0))
    ))
    .hint("--device cpu takes the host's memory; a larger --gpu-memory, a smaller --matrix or another --method may do")
    .into()
}

/// How a scan is read.
pub(crate) struct Reading<'a> {
    pub(crate) options: &'a ScanOptions,
    pub(crate) selection: Selection,
    /// Bytes of the process before.
    pub(crate) process: u64,
    /// Whether it is read whole, where memory allows.
    pub(crate) whole: bool,
}

/// Reads the scan: whole where `whole` is set and memory allows, else image by image or as a stream.
pub(crate) fn read(
    args: &ReconMri,
    Reading { options, selection, process, whole }: &Reading<'_>,
    monitor: &Monitor<'_>,
) -> Result<(Source, Shape)> {
    let (process, whole) = (*process, *whole);
    let frame_options = super::recon::options::frames(args, options);
    let path = &args.scan;
    if !io::detect(path)?.reads_scans() {
        return arrays::read(args, options, selection, process, monitor);
    }
    let reader = match stream::open(args, options, selection, monitor)? {
        Ok((stream, shape)) => return Ok((Source::Stream(Box::new(stream)), shape)),
        Err(reader) => reader,
    };
    let contents = reader.contents();
    let mut notes = Vec::new();
    let labels = selection
        .choose(contents.images.keys().copied(), &mut notes)
        .with_context(|| path.display().to_string())?;
    let places = reader.slice_places();
    let labels = places.sorted(labels, &mut notes);
    let all = places.sorted(contents.images.keys().copied().collect(), &mut Vec::new());
    let taken = Some(Taken::of(all, &labels));
    let slices = places.slices(labels[0].encoding);
    let largest = *labels.iter().max_by_key(|label| contents.images[label]).unwrap_or(&labels[0]);
    let fits = args.run.memory.is_none_or(|limit| process + contents.memory_bytes <= limit)
        && cpu::expect_memory(path.display(), contents.memory_bytes).is_ok();
    let assemble = |scan: &Scan, notes: &mut Vec<String>| -> Result<Box<Frame>> {
        let frame = scan.frames().and_then(|index| index.assemble(largest, &frame_options, notes));
        Ok(Box::new(frame.with_context(|| path.display().to_string())?))
    };
    if whole && fits {
        let mut scan = reader.into_scan(None, monitor)?;
        let mut assumed = Vec::new();
        let frame = assemble(&scan, &mut assumed)?;
        let single = labels.len() == 1;
        let uneven = scan.frames().ok().and_then(|index| index.uneven(&labels));
        let noise = Some(measure(&scan));
        let kept = contents.library_bytes;
        let reading = contents.memory_bytes.max(kept + scan.bytes() + core::assembling(&frame)) - kept;
        let coils = frame.coils();
        let (held, only, frame) = if single {
            scan.notes.extend(assumed);
            scan.acquisitions = Vec::new();
            cpu::trim_memory();
            (0, Some(frame), None)
        } else {
            (scan.bytes(), None, Some(frame))
        };
        scan.notes.extend(notes);
        let shape = Shape {
            frame,
            held,
            frames: labels.len(),
            assembled: !single,
            read: reading,
            kept,
            coils,
            noise,
            taken,
            uneven,
        };
        return Ok((Source::Whole { scan: Box::new(scan), labels, slices, only }, shape));
    }
    let bytes = contents.images[&largest];
    // Reading one image takes what reading all takes, less the others.
    let all: u64 = contents.images.values().sum();
    let read = contents.memory_bytes.saturating_sub(all) + bytes;
    refuse(args.run.memory, process + read, path, LESS_MRI)?;
    cpu::expect_memory(path.display(), read)?;
    let uneven = Series::of_repetitions(reader.places(), &labels, None).ok().and_then(|all| all.uneven());
    let mut source = source_of(reader, largest, &frame_options)?;
    let frame = Box::new(source.image(0, &mut Vec::new(), monitor)?);
    let noise = Some(measure(&source.noise(monitor)?));
    notes.extend(source.notes());
    drop(source);
    cpu::trim_memory();
    let (frames, kept, coils) = (labels.len(), contents.library_bytes, frame.coils());
    let read = read.saturating_sub(kept);
    let frame = Some(frame);
    let shape =
        Shape { frame, held: bytes, frames, assembled: true, read, kept, coils, noise, taken, uneven };
    Ok((Source::Parts { labels, slices, notes }, shape))
}

/// One image of a scan that does not fit in memory. Its acquisitions keep their numbers in the file, which errors state.
pub(crate) fn read_part(
    path: &Path,
    label: Label,
    options: &FrameOptions,
    notes: &mut Vec<String>,
    monitor: &Monitor<'_>,
) -> Result<Frame> {
    let Input { file, name } = Input::of(path);
    let frame = source_of(Reader::open(file, name.as_deref())?, label, options)?.image(0, notes, monitor)?;
    cpu::trim_memory();
    Ok(frame)
}

fn source_of(reader: Reader, label: Label, options: &FrameOptions) -> Result<SeriesSource> {
    let series = Series::of_repetitions(reader.places(), &[label], options.readouts.as_ref());
    let series = series.with_context(|| reader.path().display().to_string())?;
    Ok(SeriesSource::new(reader, series, options.clone()))
}

impl Shape {
    /// Finds out how many coils a frame has once it is prepared.
    pub(crate) fn prepare(&mut self, device: &Device, source: &Source, options: &ReconOptions) -> Result<()> {
        if let Some(frame) = self.frame(source) {
            self.coils = coils_kept(device, &options.prepare, frame)?;
        }
        Ok(())
    }
}

/// A run whose batch sizes are to be found.
pub(crate) struct PlanJob<'a> {
    pub(crate) args: &'a ReconMri,
    pub(crate) source: &'a Source,
    pub(crate) shape: &'a Shape,
    /// Bytes of the process before it read anything.
    pub(crate) process: u64,
    /// With the batch sizes so far.
    pub(crate) options: ReconOptions,
    pub(crate) device: &'a Device,
    pub(crate) known: core::Known,
}

impl Job for PlanJob<'_> {
    fn batch_sizes(&self) -> rayspin::core::Result<Vec<BatchSize>> {
        let extent = match self.shape.frame(self.source) {
            Some(frame) => Extent::of(frame, self.shape.coils, &self.options),
            None => Extent::default(),
        };
        Ok(self.options.run.batch_sizes.list(&extent))
    }

    fn set(&mut self, name: &str, to: usize) {
        self.options.run.batch_sizes.set(name, to);
    }

    fn plan(&self) -> rayspin::core::Result<Plan> {
        let Self { args, source, shape, device, ref known, .. } = *self;
        let missing = || rayspin::core::Error::value("scan", "a frame to plan for", "none");
        let frame = shape.frame(source).ok_or_else(missing)?;
        let image = frame.matrix.iter().product::<usize>() as u64;
        let frames =
            Planned { count: shape.frames, held: shape.held, assembled: shape.assembled, coils: shape.coils };
        let core = match source {
            Source::Stream(stream) => stream.budget(frame, shape.coils, &self.options, device, known),
            _ => core::of_frames(frame, &frames, &self.options, device, known),
        }?;
        let mut budget = Budget { frames: core.frames, result: core.result, ..Budget::default() };
        budget.push(
            "read",
            match source {
                Source::Stream(stream) => shape.read.max(stream.learning_bytes()),
                _ => shape.read,
            },
        );
        budget.stages.extend(core.stages);
        let (images, result) = (8 * image * shape.frames as u64, budget.result);
        let process = self.process + shape.kept;
        if matches!(source, Source::Stream(_)) {
            return Ok(stream::with_writing(args, budget, images, process, device));
        }
        // Several repetitions are a stream.
        let writing = args.outputs.iter().map(|path| SeriesWriter::memory(path, 1, images));
        budget.push("write", result + writing.max().unwrap_or(0));
        if args.run.reference.is_some() {
            // Both images in double precision, beside the reference.
            budget.push("metrics", result + images + 2 * images);
            for stage in &mut budget.stages {
                if stage.name != "metrics" && stage.name != "read" {
                    stage.bytes += images;
                }
            }
        }
        Ok(plan_of(budget, process, device))
    }
}

impl PlanJob<'_> {
    /// What the run takes where nothing is cut. Errors: planning fails; the error names the scan.
    pub(crate) fn whole(&self) -> Result<Plan> {
        self.plan().with_context(|| self.args.scan.display().to_string())
    }
}

/// What takes less memory of the commands that reconstruct, as a hint.
pub(crate) const LESS_MRI: &str =
    "a smaller --matrix, a single --slice or --repetition, or another --method takes less";
pub(crate) const LESS_CT: &str =
    "a smaller --matrix, some views (--view) or rows (--row), --stream or another --method takes less";

/// Fails when `needed` exceeds the limit; `less` is what takes less.
fn refuse(limit: Option<u64>, needed: u64, scan: &Path, less: &'static str) -> Result<()> {
    let Some(limit) = limit.filter(|limit| needed > *limit) else {
        return Ok(());
    };
    Err(BadInput::new(format!(
        "--memory: expected at least {} for {}, found {}",
        number::bytes(needed),
        scan.display(),
        number::bytes(limit)
    ))
    .hint(less)
    .into())
}

/// Bytes of this process before it reads anything.
pub(crate) fn process_bytes() -> u64 {
    cpu::process_memory().unwrap_or(0)
}

/// How a run of `plan` is cut, for the title of its table.
pub(crate) fn cut(plan: &Plan, options: &ReconOptions) -> String {
    let batch_sizes = &options.run.batch_sizes;
    let mut split =
        if plan.budget.frames == 1 { "1 image".into() } else { format!("{} images", plan.budget.frames) };
    split.extend(batch_sizes.coils.map(|batch| format!(", {batch} coils at a time")));
    split.extend(batch_sizes.maps.map(|held| format!(", maps of {held} coils on the GPU")));
    split.extend(batch_sizes.segments.map(|held| format!(", spectra of {held} time segments on the GPU")));
    split.extend(batch_sizes.points.map(|points| format!(", {points} points at a time")));
    split
}

/// The plan as a table.
pub(crate) fn table(scan: &Path, plan: &Plan, cut: &str) -> Table {
    let gpu = plan.budget.gpu_peak() > 0;
    let mut columns = vec![Column::text("Stage"), Column::number("Memory").bytes()];
    columns.extend(gpu.then(|| Column::number("GPU memory").bytes()));
    columns.extend([
        Column::number("Transforms").decimals(0),
        Column::number("Iterations").decimals(0),
        Column::number("Work").unit("Gflop"),
        Column::number("Traffic").unit("GB"),
    ]);
    let empty = || Cell::Text(String::new());
    let with_gpu = |mut cells: Vec<Cell>, bytes: u64| {
        if gpu && cells.len() > 2 {
            cells.insert(2, if bytes > 0 { Cell::Number(bytes as f64) } else { empty() });
        }
        cells
    };
    let mut table = Table::new(format!("{}: {cut}", scan.display()), columns);
    table.push([Cell::Text("process".into()), Cell::Number(plan.process as f64)]);
    for stage in &plan.budget.stages {
        let number = |value: f64| if value > 0.0 { Cell::Number(value) } else { empty() };
        let cells = vec![
            Cell::Text(stage.name.clone()),
            Cell::Number((plan.process + stage.bytes) as f64),
            number(stage.effort.transforms as f64),
            number(stage.effort.iterations as f64),
            number(stage.effort.flops / 1e9),
            number(stage.effort.traffic / 1e9),
        ];
        table.push(with_gpu(cells, stage.gpu_bytes));
    }
    let sum = |of: fn(&Stage) -> f64| plan.budget.stages.iter().map(of).sum::<f64>();
    let cells = vec![
        Cell::Text("peak, sum".into()),
        Cell::Number(plan.peak() as f64),
        Cell::Number(sum(|s| s.effort.transforms as f64)),
        empty(),
        Cell::Number(sum(|s| s.effort.flops) / 1e9),
        Cell::Number(sum(|s| s.effort.traffic) / 1e9),
    ];
    table.push(with_gpu(cells, plan.budget.gpu_peak()));
    table
}
