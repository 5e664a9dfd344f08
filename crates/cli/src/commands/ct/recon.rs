//! `rayspin recon ct`

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use ndarray::Array3;
use rayspin::core::{Image, Monitor, ProjectionGeometry};
use rayspin::ct::corrections::{Corrections, Place};
use rayspin::ct::methods::Facts;
use rayspin::ct::recon::{
    GridOptions, ReconOptions, Reconstruction, arriving_budget, budget, compile_ahead, grid, reconstruct,
    slices_at_a_time,
};
use rayspin::device::cuda::Starting;
use rayspin::device::{Backend, BackendKind, Device};
use rayspin::io::png::PngOptions;
use rayspin::io::{self, Format, SeriesShape, SeriesWriter, Values, WriteOptions};
use rayspin::report::RunRecorder;
use rayspin::run::{BatchSize, Certify, Job, Limits, Plan, plan_within};
use rayspin_shell::effect::{Need, Row, refuse_idle};
use rayspin_shell::{Context, stdout};

use super::input::{self, Kind, Lines, Passes, Source};
use super::stream::{self, Arriving, Stream};
use super::{matrix, place};
use crate::args::ct::ReconCt;
use crate::args::numbers;
use crate::commands::files::{self, RunFiles};
use crate::commands::metrics::Comparison;
use crate::commands::{certify, plan};
use crate::methods::{self, ct_methods};

/// What is known of a run before its scan is read.
struct Known<'a> {
    args: &'a ReconCt,
    kind: Kind,
    /// Whether the file states its rays, and its angles; none while it is not read.
    rays: Option<bool>,
    angles: Option<bool>,
}

/// What an option may need.
enum Needs {
    /// A file that does not state its rays.
    NoRays,
    /// A file without angles.
    NoAngles,
    /// All views at once.
    Whole,
    /// Views that arrive one after another.
    Stream,
}

const ALWAYS: &[Needs] = &[];
const NO_RAYS: &[Needs] = &[Needs::NoRays];
const WHOLE: &[Needs] = &[Needs::Whole];

/// The options of `rayspin recon ct` besides the parameters of methods, whose tables say who has them.
const TABLE: &[Row<Needs>] = &[
    ("scan", ALWAYS),
    ("outputs", ALWAYS),
    ("dry_run", ALWAYS),
    ("memory", ALWAYS),
    ("certify", WHOLE),
    ("certify_seed", WHOLE),
    ("matrix", ALWAYS),
    ("voxel", ALWAYS),
    ("centre", ALWAYS),
    ("stream", ALWAYS),
    ("preview", &[Needs::Stream]),
    ("view", WHOLE),
    ("row", WHOLE),
    ("flat", ALWAYS),
    ("dark", ALWAYS),
    ("column", WHOLE),
    ("arc", &[Needs::NoAngles]),
    ("axis", ALWAYS),
    ("pixel", NO_RAYS),
    ("source_to_axis", NO_RAYS),
    ("axis_to_detector", ALWAYS),
    ("rtk", ALWAYS),
    ("reference", ALWAYS),
    ("fit", ALWAYS),
    ("record", ALWAYS),
    ("no_record", ALWAYS),
];

impl Need for Needs {
    type Run<'a> = Known<'a>;

    fn met(&self, run: &Known<'_>) -> Option<bool> {
        match self {
            Self::NoRays => run.rays.map(|rays| !rays || run.args.rtk.is_some()),
            Self::NoAngles => run.angles.map(|angles| !angles),
            Self::Whole => Some(!run.kind.is_stream()),
            Self::Stream => Some(run.kind.is_stream()),
        }
    }

    fn expected(&self) -> String {
        match self {
            Self::NoRays => "a scan that does not state its rays".into(),
            Self::NoAngles => "a scan that does not state its angles".into(),
            Self::Whole => "a scan that is read as a whole".into(),
            Self::Stream => "views that arrive (--stream, or - as the scan)".into(),
        }
    }

    fn found(&self, _: &Known<'_>) -> String {
        match self {
            Self::NoRays => "one that does".into(),
            Self::NoAngles => "one that does".into(),
            Self::Whole => "views that arrive".into(),
            Self::Stream => "a scan that is read as a whole".into(),
        }
    }
}

/// A reconstruction under way.
struct Session<'a> {
    context: &'a Context,
    args: &'a ReconCt,
    monitor: Monitor<'a>,
    recorder: RunRecorder,
    device: Device,
    /// The column on which the axis falls, where an option says it or it was found.
    axis: Option<f64>,
    corrections: Corrections,
    /// A GPU that starts while the scan is read.
    starting: Option<Starting>,
}

/// Reconstructs a scan, writes the volume and the run record.
pub(crate) fn run(context: &Context, args: &ReconCt, files: RunFiles) -> Result<()> {
    check_outputs(args)?;
    let monitor = Monitor::new(&context.console, Some(&rayspin_shell::interrupt::STOP));
    let (recorder, device) = (files::recorder(context), context.device.clone());
    args.corrections.refuse_idle(&context.given)?;
    let corrections = args.corrections.corrections()?;
    let mut session =
        Session { context, args, monitor, recorder, device, axis: None, corrections, starting: None };
    let process = plan::process_bytes();
    let hashing = (!args.run.dry_run).then(|| files.hashing());
    session.starting = plan::starting(context, &args.run, &args.scan);
    let lines = session.read()?;
    let mut options = session.options(&lines.geometry)?;
    session.corrections.expect_volume(options.grid.shape_zyx())?;
    let Some((plan, limits)) = session.plan(&lines, &mut options, process)? else { return Ok(()) };
    plan::expect_memory(&plan)?;
    session.planned(&plan, &limits, &options)?;
    let reference = args.run.reference.as_deref().map(io::read_volume).transpose()?;

    // `--memory` does not count compilers: with it, a kernel is compiled when it is needed. A rehearsal holds the whole scan, of views that
    // arrive there may be no room for.
    let whole = matches!(lines.values, Source::Whole(_));
    if session.device.kind() == BackendKind::Cuda && args.run.memory.is_none() && whole {
        session.recorder.stage("compile kernels");
        compile_ahead(&session.device, &lines.geometry, &options);
    }
    session.recorder.stage("reconstruct");
    let Lines { values, geometry, pixel_mm, .. } = lines;
    let streams = matches!(values, Source::Arriving(_));
    let fail = || args.scan.display().to_string();
    let mut made = match values {
        Source::Whole(values) => {
            let (device, monitor) = (&session.device, &session.monitor);
            reconstruct(device, values, &geometry, &options, monitor).with_context(fail)?
        }
        Source::Arriving(passes) => {
            session.arriving(passes, &geometry, pixel_mm, &options).with_context(fail)?
        }
    };
    session.corrections.volume(session.device.cpu_side(), &mut made.volume)?;
    hashing.map_or(Ok(()), |hashing| hashing.record(&mut session.recorder))?;
    session.reconstructed(&made, &options)?;
    let missed = made.certificates.iter().find(|one| !one.met()).cloned();
    let mut compared = Ok(());
    if slices_at_a_time(&options) == options.grid.shape_zyx()[0] || !streams {
        let image = session.write(made.volume, &options)?;
        if let Some(reference) = &reference {
            compared = session.compare(&image, &reference.image);
        }
    }
    session.finish(&files, &options)?;
    match missed {
        Some(missed) => Err(certify::missed(&missed, missed.transform.clone()).into()),
        None => compared,
    }
}

/// Errors: an output that cannot be written.
fn check_outputs(args: &ReconCt) -> Result<()> {
    args.outputs.iter().try_for_each(|output| files::check_output(output, Format::writes_images))?;
    args.preview.iter().try_for_each(|preview| files::check_output(preview, Format::is_picture))
}

impl Session<'_> {
    fn say(&mut self, note: &str) {
        self.monitor.note(note);
        self.recorder.note(note);
    }

    /// Errors: an option that does nothing, a scan that cannot be read.
    fn read(&mut self) -> Result<Lines> {
        let args = self.args;
        self.recorder.stage("read");
        let kind = input::kind(args)?;
        let of_array = kind.is_array().then_some(false);
        let mut known = Known { args, kind, rays: of_array, angles: of_array };
        refuse_idle(TABLE, &self.context.given, &known)?;
        if let Some(method) = args.method.method() {
            args.method.refuse_idle(&self.context.given, method)?;
        }
        let lines =
            self.monitor.stage("read", 0, || input::read(args, kind, &self.device, &self.corrections))?;
        (known.rays, known.angles) = (Some(lines.stated.rays), Some(lines.stated.angles));
        self.axis = lines.axis;
        refuse_idle(TABLE, &self.context.given, &known)?;
        lines.notes.iter().for_each(|note| self.say(note));
        Ok(lines)
    }

    /// The method that the user named, or one that suits the rays, and the voxels.
    fn options(&mut self, geometry: &ProjectionGeometry) -> Result<ReconOptions> {
        let args = self.args;
        let facts = Facts::of(geometry);
        let method = match args.method.method() {
            Some(method) => method,
            None => {
                let (method, reason) = ct_methods().suited(&facts).context("no method suits the scan")?;
                self.say(&format!("method {}: {reason} (--method chooses another)", method.about().name));
                method
            }
        };
        args.method.refuse_idle(&self.context.given, method)?;
        let voxel_mm = args.voxel.as_deref().map(|text| -> Result<[f64; 3]> {
            let sizes = numbers::<f64>("--voxel", text, &[1, 3])?;
            Ok(std::array::from_fn(|axis| sizes.get(axis).copied().unwrap_or(sizes[0])))
        });
        let wanted = GridOptions {
            matrix: args.matrix.as_deref().map(matrix).transpose()?,
            voxel_mm: voxel_mm.transpose()?,
            centre_mm: args.centre.as_deref().map_or(Ok([0.0; 3]), |text| place("--centre", text))?,
        };
        let certify = args.run.certify();
        certify.iter().try_for_each(Certify::validate)?;
        let grid = grid(geometry, &wanted)?;
        wanted.note(&grid).iter().for_each(|note| self.say(note));
        Ok(ReconOptions {
            method: args.method.of(method)?,
            grid,
            certify,
            batch_sizes: Default::default(),
            finish_on_cpu: self.context.finish_on_cpu,
        })
    }

    /// Decides where the run computes and how it is cut; with `--dry-run` it prints the plan and ends.
    ///
    /// Errors: limits that nothing fits, rays that the method does not take.
    fn plan(
        &mut self,
        lines: &Lines,
        options: &mut ReconOptions,
        process: u64,
    ) -> Result<Option<(Plan, Limits)>> {
        let args = self.args;
        let corrections = &self.corrections;
        let mut job = PlanJob { args, lines, process, options, corrections, device: self.device.clone() };
        let fail = || args.scan.display().to_string();
        if let Some(undecided) = self.context.undecided {
            let whole = job.plan().with_context(fail)?;
            match plan::quicker_than_a_gpu_starts(undecided, &whole, &job.device) {
                Some(why) if rayspin::device::cuda::driver_installed() => {
                    self.monitor.note(&format!("computing on the CPU: {why}"));
                }
                Some(_) => {}
                None => {
                    let (device, took) = plan::open(undecided, self.context, self.starting.take())?;
                    job.device = device;
                    job.process += took;
                }
            }
        }
        let mut limits = plan::limits(args.run.memory, &job.device, self.context.gpu_memory)?;
        let mut fitted = plan_within(&mut job, &limits).with_context(fail)?;
        if let Err(short) = &fitted
            && self.context.finish_on_cpu
            && let Some(why) = plan::short_of_gpu(short, &limits)
        {
            self.monitor.note(&format!("computing on the CPU: {why}"));
            self.recorder.note(format!("computing on the CPU: {why}"));
            job.device = job.device.host();
            job.options.batch_sizes = Default::default();
            limits = plan::limits(args.run.memory, &job.device, None)?;
            fitted = plan_within(&mut job, &limits).with_context(fail)?;
        }
        self.device = job.device.clone();
        self.recorder.device(self.device.describe());
        let plan = match fitted {
            Ok(plan) => plan,
            Err(short) => return Err(plan::refusal(&short, &limits, &args.scan, plan::LESS_CT)),
        };
        if args.run.dry_run {
            let [nz, ny, nx] = options.grid.shape_zyx();
            let sizes = options.batch_sizes;
            let mut title = format!("{nx} x {ny} x {nz} voxels");
            title.extend(sizes.slices.map(|count| format!(", {count} slices at a time")));
            title.extend(sizes.views.map(|count| format!(", {count} views at a time")));
            files::print(&plan::table(&args.scan, &plan, &title))?;
            return Ok(None);
        }
        Ok(Some((plan, limits)))
    }

    /// Records the plan.
    fn planned(&mut self, plan: &Plan, limits: &Limits, options: &ReconOptions) -> Result<()> {
        let recorder = &mut self.recorder;
        recorder.parameter("memory limit", serde_json::json!(self.args.run.memory));
        recorder.parameter("memory stated", plan.peak());
        recorder.parameter("GPU memory limit", serde_json::json!(limits.gpu));
        recorder.parameter("GPU memory stated", plan.budget.gpu_peak());
        recorder.parameter("slices at a time", serde_json::json!(options.batch_sizes.slices));
        recorder.parameter("views at a time", serde_json::json!(options.batch_sizes.views));
        recorder.parameter("budget", serde_json::to_value(&plan.budget)?);
        Ok(())
    }

    /// Adds up views as they arrive. A volume that is made slab by slab is written as it comes, and is left empty.
    fn arriving(
        &mut self,
        mut passes: Passes,
        geometry: &ProjectionGeometry,
        pixel_mm: Option<[f64; 2]>,
        options: &ReconOptions,
    ) -> Result<Reconstruction> {
        let (device, shape) = (self.device.clone(), options.grid.shape_zyx());
        let preview = self.args.preview.as_deref();
        let finish_on_cpu = options.finish_on_cpu && passes.repeat();
        let corrections = Arriving { corrections: &self.corrections, pixel_mm };
        let mut stream = Stream { geometry, options, preview, device, finish_on_cpu, corrections };
        let mut volume = Array3::zeros((0, shape[1], shape[2]));
        let notes = match slices_at_a_time(options) == shape[0] {
            true => stream.run(&mut passes, &self.monitor, &mut |whole| {
                volume = whole;
                Ok(())
            })?,
            false => {
                let shape = SeriesShape { frames: 1, volume: shape, geometry: options.grid.geometry() };
                let values = WriteOptions { values: Some(Values::Real), ..WriteOptions::default() };
                let start = |path: &PathBuf| SeriesWriter::create(path, &shape, &values);
                let mut writers = self.args.outputs.iter().map(start).collect::<io::Result<Vec<_>>>()?;
                let mut notes = stream.run(&mut passes, &self.monitor, &mut |slices| {
                    writers.iter_mut().try_for_each(|writer| writer.push(slices.view().into_dyn()))?;
                    Ok(())
                })?;
                for writer in writers {
                    let name = stdout::name(writer.path());
                    notes.extend(writer.finish()?.into_iter().map(|note| format!("{name}: {note}")));
                }
                notes
            }
        };
        self.device = stream.device;
        Ok(Reconstruction { volume, solve: None, notes, certificates: Vec::new() })
    }

    /// Tells and records how the reconstruction went.
    fn reconstructed(&mut self, made: &Reconstruction, options: &ReconOptions) -> Result<()> {
        files::record_stages(&mut self.recorder, &self.monitor);
        made.notes.iter().for_each(|note| self.say(note));
        let recorder = &mut self.recorder;
        methods::record(recorder, &*options.method, |_| None);
        recorder.parameter("voxels", serde_json::to_value(options.grid)?);
        let text = |ranges: &Option<rayspin::core::Ranges>| ranges.as_ref().map(ToString::to_string);
        recorder.parameter("view", serde_json::json!(text(&self.args.view)));
        recorder.parameter("row", serde_json::json!(text(&self.args.row)));
        recorder.parameter("column", serde_json::json!(text(&self.args.column)));
        recorder.parameter("corrections", self.args.corrections.recorded(&self.corrections));
        recorder.parameter("axis", serde_json::json!(self.axis));
        recorder.parameter("iterations done", serde_json::to_value(&made.solve)?);
        recorder.parameter("certify", serde_json::json!(options.certify));
        recorder.parameter("certificates", serde_json::json!(made.certificates));
        if !made.certificates.is_empty() && !self.context.quiet {
            files::print(&certify::certificates(&made.certificates, |one| one.transform.clone()))?;
        }
        Ok(())
    }

    /// Writes the volume; returns it as an image.
    fn write(&mut self, volume: Array3<f32>, options: &ReconOptions) -> Result<Image<f32>> {
        self.recorder.stage("write");
        let image = Image::new(volume.into_dyn(), options.grid.geometry())?;
        let signed = self.corrections.iter().any(|one| one.place() == Place::Volume);
        let options = WriteOptions {
            png: PngOptions::preview(image.shape_zyx()[0], 1),
            values: signed.then_some(Values::Real),
            hounsfield: Some(signed),
            ..WriteOptions::default()
        };
        for output in &self.args.outputs {
            for note in io::write_image(output, &image, &options)? {
                self.say(&format!("{}: {note}", stdout::name(output)));
            }
        }
        Ok(image)
    }

    fn compare(&mut self, image: &Image<f32>, reference: &Image<f32>) -> Result<()> {
        self.recorder.stage("metrics");
        let (first, beside) = (self.args.outputs.first(), self.args.run.reference.as_ref());
        let names = [first, beside].map(|path| path.map_or_else(String::new, |path| stdout::name(path)));
        let comparison = Comparison { image, reference, names, fit: self.args.run.fit };
        comparison.run(self.context, &mut self.recorder, &self.monitor)
    }

    /// Completes and writes the record, and says what was made.
    fn finish(mut self, paths: &RunFiles, options: &ReconOptions) -> Result<()> {
        for file in self.args.outputs.iter().flat_map(|output| files::written(output)) {
            files::record_output(&mut self.recorder, &file)?;
        }
        if let Backend::Cuda(cuda) = self.device.backend() {
            self.recorder.parameter("GPU memory peak", cuda.memory_used().1);
        }
        let finished = self.recorder.finish(rayspin::device::cpu::peak_memory());
        let mut listed = self.args.outputs.clone();
        if let Some(path) = &paths.record {
            files::write_record(path, &finished)?;
            listed.push(path.clone());
        }
        if !self.context.quiet {
            let [nz, ny, nx] = options.grid.shape_zyx();
            let names: Vec<_> = listed.iter().map(|path| stdout::name(path)).collect();
            let (seconds, names) = (finished.total_seconds, names.join(", "));
            files::say_made(format!("{nx} x {ny} x {nz} voxels, {seconds:.2} s: {names}"));
        }
        Ok(())
    }
}

/// A run whose batch sizes are to be found.
struct PlanJob<'a> {
    args: &'a ReconCt,
    lines: &'a Lines,
    process: u64,
    options: &'a mut ReconOptions,
    corrections: &'a Corrections,
    device: Device,
}

impl Job for PlanJob<'_> {
    fn batch_sizes(&self) -> rayspin::core::Result<Vec<BatchSize>> {
        let (args, options) = (self.args, &self.options);
        let sizes = || options.batch_sizes.list(self.lines.geometry.shape(), options.grid.shape_zyx());
        let by_slices = |output: &PathBuf| {
            Format::of_name(output).and_then(|format| format.images.as_ref()).is_some_and(|to| to.by_slices)
        };
        Ok(match (&self.lines.values, self.device.backend()) {
            (Source::Whole(_), Backend::Cuda(_)) => sizes(),
            (Source::Whole(_), Backend::Cpu(_)) => Vec::new(),
            // Each part of the volume is written before the next one is made, of all views again.
            (Source::Arriving(passes), _) => {
                let parts = passes.repeat()
                    && args.outputs.iter().all(by_slices)
                    && args.run.reference.is_none()
                    && args.preview.is_none()
                    && self.corrections.iter().all(|one| one.place() != Place::Volume);
                let slices = sizes().into_iter().take(1).map(|size| BatchSize { gpu_only: false, ..size });
                slices.filter(|_| parts).collect()
            }
        })
    }

    fn set(&mut self, name: &str, to: usize) {
        self.options.batch_sizes.set(name, to);
    }

    fn plan(&self) -> rayspin::core::Result<Plan> {
        let mut all = rayspin::run::Budget { frames: 1, ..Default::default() };
        let (device, geometry) = (&self.device, &self.lines.geometry);
        let bytes = match &self.lines.values {
            Source::Whole(_) => self.lines.bytes,
            Source::Arriving(_) => {
                let [_, rows, columns] = geometry.shape();
                let threads = device.cpu_side().threads();
                self.corrections.bytes([stream::at_a_time(geometry), rows, columns], threads)
            }
        };
        all.push("read", bytes);
        let own = match &self.lines.values {
            Source::Whole(_) => budget(device, geometry, self.options)?,
            Source::Arriving(_) => {
                arriving_budget(device, geometry, self.options, stream::at_a_time(geometry))?
            }
        };
        let volume = own.result;
        all.stages.extend(own.stages);
        all.result = volume;
        // What the writer of a format takes, which may make complex numbers of real ones.
        let writing = self.args.outputs.iter().map(|path| SeriesWriter::memory(path, 1, 2 * volume));
        all.push("write", volume + writing.max().unwrap_or(0));
        if self.args.run.reference.is_some() {
            // Both images in double precision, beside the reference.
            all.push("metrics", volume + volume + 4 * volume);
            for stage in &mut all.stages {
                if stage.name != "metrics" && stage.name != "read" {
                    stage.bytes += volume;
                }
            }
        }
        Ok(plan::plan_of(all, self.process, &self.device))
    }
}

#[cfg(test)]
mod tests {
    use super::ALWAYS;
    use crate::args::tests::expect_complete;
    use crate::methods::{ct_corrections, ct_methods};

    #[test]
    fn every_option_has_a_row() {
        let params = [ct_methods().params(), ct_corrections().params()].concat();
        let named = [("method", ALWAYS), ("correct", ALWAYS)];
        let of_methods = params.iter().map(|(param, _)| (param.name, ALWAYS)).chain(named);
        let rows: Vec<_> = super::TABLE.iter().copied().chain(of_methods).collect();
        expect_complete(&["recon", "ct"], &rows);
    }
}
