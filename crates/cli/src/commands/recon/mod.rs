//! `rayspin recon mri`

mod arrays;
mod effect;
mod options;
mod record;
mod stopped;
pub(crate) mod stream;
mod understood;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use rayspin::core::{C32, Image, Monitor};
use rayspin::device::{Backend, Device};
use rayspin::io::{self, ArrayFrame, Format, ScanOptions};
use rayspin::mri::prepare::Noise;
use rayspin::mri::recon::{
    Certificate, Certify, ReconOptions, ScanImage, Solve, StreamTimes, reconstruct_frame, reconstruct_frames,
};
use rayspin::mri::scan::{FrameOptions, Samples};
use rayspin_shell::effect::refuse_idle;
use rayspin_shell::{BadInput, Context, say};

use super::{files, plan};
use crate::args::ReconMri;
use options::{default_method, method_name, method_of};

/// Reconstructs a scan, writes the images and the run record.
pub(crate) fn run(context: &Context, args: &ReconMri) -> Result<()> {
    for output in &args.outputs {
        files::check_output(output, Format::writes_images)?;
    }
    if let Some(maps) = &args.save_maps {
        files::check_output(maps, Format::writes_arrays)?;
    }
    if let Some(record) = &args.record {
        files::check_writable(record)?;
    }
    let [maps, reference, traj] = [&args.maps, &args.reference, &args.traj].map(Option::as_ref);
    let [anatomy, covariance] = [&args.anatomy, &args.noise_covariance].map(Option::as_ref);
    let field = args.field_map.as_ref();
    let inputs = [Some(&args.scan), maps, anatomy, field, reference, traj, covariance];
    let record = (!args.no_record && !args.dry_run)
        .then(|| args.record.clone().unwrap_or_else(|| record_path(&args.outputs[0])));
    let outputs = args.outputs.iter().chain(&args.save_maps).chain(&record);
    files::check_distinct(inputs.into_iter().flatten(), outputs)?;
    let mut recorder = files::recorder(context);
    let monitor = Monitor::new(&context.console, Some(&rayspin_shell::interrupt::STOP));
    let mut options = options::options(args)?;
    options.validate()?;
    let scan_options = options::scan_options(args)?;

    recorder.stage("read");
    let selection = options::selection(args);
    let process = plan::process_bytes();
    let mut of_run = effect::Run {
        args,
        format: io::detect(&args.scan)?,
        traj: traj.map(io::detect).transpose()?,
        method: args.method.map(method_of),
        scan: None,
    };
    refuse_idle(effect::TABLE, &context.given, &of_run)?;
    if let Some(path) = &args.maps {
        options.maps = Some(std::sync::Arc::new(io::read_maps(path)?));
    }
    if let Some(path) = &args.anatomy {
        let image = io::read_image(path, &io::ReadOptions::default())?.image;
        if image.repetitions() > 1 {
            let message = format!("{}: expected one image, found {}", path.display(), image.repetitions());
            return Err(BadInput::new(message).hint("--anatomy takes a single volume or slice").into());
        }
        options.anatomy = Some(std::sync::Arc::new(image.magnitude()));
    }
    if let Some(path) = &args.field_map {
        options.field_map = Some(std::sync::Arc::new(arrays::read_field_map(path)?));
        options.validate().with_context(|| path.display().to_string())?;
    }
    options.keep_maps = args.save_maps.is_some();
    options.finish_on_cpu = context.finish_on_cpu;
    let read = |whole| {
        monitor.stage("read", 0, || plan::read(args, &scan_options, &selection, process, whole, &monitor))
    };
    let (mut source, mut shape) = read(true)?;
    let layout = understood::layout(&source);
    understood::say(&source, &shape, context, &mut recorder);
    let frame = shape.frame(&source).context("a frame")?;
    of_run.scan = Some(effect::Scan {
        on_grid: matches!(frame.samples, Samples::Cartesian { .. }),
        coils: frame.coils(),
        repetitions: source.repetitions(),
        noise: !matches!(shape.noise, None | Some(Noise::None)),
    });
    options.prepare.noise = shape.noise.clone();
    options.method = match args.method {
        Some(method) => method_of(method),
        None => {
            let method = default_method(frame, args.field_map.is_some());
            monitor.note(&format!("method: {} (--method chooses another)", method_name(method)));
            method
        }
    };
    of_run.method = Some(options.method);
    refuse_idle(effect::TABLE, &context.given, &of_run)?;
    let default = ReconOptions::of(options.method);
    options.lambda = args.lambda.unwrap_or(default.lambda);
    options.iterations = args.iterations.unwrap_or(default.iterations);
    options.cg_tolerance = args.tolerance.unwrap_or(default.cg_tolerance);
    if let plan::Source::Stream(stream) = &mut source {
        monitor.stage("read", 0, || stream.learn_maps(&options, &monitor))?;
    }
    let mut device = context.device.clone();
    let mut notes = Vec::new();
    shape.prepare(&device, &source, &options).with_context(|| args.scan.display().to_string())?;
    let mut process = process;
    if context.undecided {
        let plan = plan::budget(args, &source, &shape, process, &options, &device)?;
        match plan.quicker_than_a_gpu_starts(&device) {
            Some(why) if rayspin::device::cuda::driver_installed() => {
                notes.push(format!("computing on the CPU: {why}"));
            }
            Some(_) => {}
            None => {
                let before = plan::process_bytes();
                device = rayspin_shell::first_gpu(device, context.quiet);
                process += plan::process_bytes().saturating_sub(before);
                recorder.device(device.describe());
            }
        }
    }
    let mut limits = plan::Limits::of(args, &device, context.gpu_memory)?;
    let mut fitted = plan::fit(args, &source, &shape, process, &mut options, &device, &limits)?;
    let host_is_short = |short: &plan::Short| args.memory.is_some_and(|limit| short.memory > limit);
    if fitted.as_ref().is_err_and(host_is_short)
        && matches!(&source, plan::Source::Whole { labels, .. } if labels.len() > 1)
    {
        drop((source, shape));
        (source, shape) = read(false)?;
        plan::whole(&mut options);
        shape.prepare(&device, &source, &options)?;
        fitted = plan::fit(args, &source, &shape, process, &mut options, &device, &limits)?;
    }
    if let Err(short) = &fitted
        && context.finish_on_cpu
        && let Some(why) = short.of_gpu(&limits)
    {
        notes.push(format!("computing on the CPU: {why}"));
        device = device.host();
        recorder.device(device.describe());
        limits = plan::Limits::of(args, &device, None)?;
        plan::whole(&mut options);
        fitted = plan::fit(args, &source, &shape, process, &mut options, &device, &limits)?;
    }
    let plan = match fitted {
        Ok(plan) => plan,
        Err(short) => return short.refuse(&limits, &args.scan),
    };
    for note in &notes {
        monitor.note(note);
        recorder.note(note.as_str());
    }
    if args.dry_run {
        return files::print(&plan::table(args, &plan, &options));
    }
    plan.expect_memory()?;
    drop(shape);
    let cache = args.cache.as_ref().map(io::kernel_cache::KernelCache::new).transpose()?;
    options.kernels = cache.clone().map(|cache| std::sync::Arc::new(cache) as _);
    options.certify = args.certify.map(|outputs| Certify { outputs, seed: args.certify_seed.unwrap_or(1) });
    options.validate()?;
    recorder.parameter("memory limit", serde_json::json!(args.memory));
    recorder.parameter("memory stated", plan.peak());
    recorder.parameter("GPU memory limit", serde_json::json!(limits.gpu));
    recorder.parameter("GPU memory stated", plan.budget.gpu_peak());
    recorder.parameter("coils at a time", serde_json::json!(options.coil_batch));
    recorder.parameter("time segments held", serde_json::json!(options.segment_batch));
    recorder.parameter("points at a time", serde_json::json!(options.point_batch));
    recorder.parameter("read image by image", matches!(source, plan::Source::Parts { .. }));
    recorder.parameter("budget", serde_json::to_value(&plan.budget)?);
    let reference =
        args.reference.as_deref().map(|p| io::read_image(p, &io::ReadOptions::default())).transpose()?;
    for input in inputs.into_iter().flatten() {
        for file in files::parts(input) {
            recorder.input(&file).with_context(|| format!("hashing {}", file.display()))?;
        }
    }

    recorder.stage("reconstruct");
    let result = match source {
        plan::Source::Stream(stream) => {
            stream::run(&device, context.quiet, args, *stream, &options, &monitor)
        }
        other => reconstruct(&device, args, other, &scan_options, &options, &monitor).map(Done::of),
    };
    let result = result.with_context(|| format!("{}", args.scan.display()))?;
    files::record_stages(&mut recorder, &monitor);
    for note in &result.notes {
        monitor.note(note);
        recorder.note(note.as_str());
    }

    if let Some(cache) = &cache {
        let (count, bytes) = cache.size();
        let bytes = rayspin::report::number::bytes(bytes);
        monitor.note(&format!("--cache: {count} kernels, {bytes}; nothing in it is ever deleted"));
    }
    recorder.parameter("certify", serde_json::json!(options.certify));
    recorder.parameter("certificates", serde_json::json!(result.certificates));
    recorder.parameter("cache", serde_json::json!(args.cache));
    if let Some(times) = &result.times {
        recorder.parameter("images per second", result.repetitions as f64 / times.wall);
        recorder.parameter("seconds of the stream", serde_json::to_value(times)?);
    }
    if !result.certificates.is_empty() && !context.quiet {
        files::print(&record::certificates(&result.certificates))?;
    }

    recorder.stage("write");
    let mut written = Vec::new();
    for output in &args.outputs {
        if let (None, Some(image)) = (&result.times, &result.image) {
            for note in files::write_image(output, image, layout)? {
                let note = format!("{}: {note}", output.display());
                monitor.note(&note);
                recorder.note(note);
            }
        }
        written.extend(files::parts(output));
    }
    if let Some(path) = &args.save_maps {
        let maps = result.maps.as_ref().context("--save-maps: the run left no sensitivity maps")?;
        io::write_coil_array(path, maps.view(), layout)?;
        written.extend(files::parts(path));
    }
    let mut mismatch = Ok(());
    if let (Some(reference), Some(image)) = (&reference, &result.image) {
        recorder.stage("metrics");
        let names = (args.outputs[0].display().to_string(), display(args.reference.as_deref()));
        let numbers = rayspin::imaging::metrics::Numbers::ByKind;
        match context.run(|| super::metrics::judge(image, &reference.image, numbers, args.fit)) {
            Ok(judgement) => {
                if let Some(hint) = &judgement.hint {
                    monitor.note(hint);
                    recorder.note(hint.as_str());
                }
                judgement.record(&mut recorder, &names.0, &names.1);
                files::print(&judgement.table(&names.0, &names.1))?;
            }
            Err(error) => {
                recorder.note(format!("not compared with {}: {error}", names.1));
                mismatch = Err(error.context(format!("the image is written; comparing with {}", names.1)));
            }
        }
    }
    record::parameters(&mut recorder, args, &options);
    if args.keep_identity {
        recorder.parameter("identity", record::identity(args)?);
    }
    if let Some(note) = stopped::note(&result.solves, &options, args.tolerance.is_some()) {
        monitor.note(&note);
        recorder.note(note);
    }
    for solve in &result.solves {
        let label = solve.label;
        recorder.parameter("solver", solve.solver);
        recorder.parameter("largest eigenvalue", solve.eigenvalue);
        let name = format!("slice {} repetition {}", label.slice, label.repetition);
        if let Some(scale) = solve.scale {
            recorder.parameter("image scale", scale);
            recorder.followed(name.clone(), "objective", solve.objective.iter().copied());
        }
        recorder.converged(name, solve.residuals.clone());
    }
    for file in &written {
        recorder.output(file).with_context(|| format!("hashing {}", file.display()))?;
    }
    if let Backend::Cuda(cuda) = device.backend() {
        recorder.parameter("GPU memory peak", cuda.memory_used().1);
    }
    let finished = recorder.finish(rayspin::device::cpu::peak_memory());
    let mut listed: Vec<PathBuf> = args.outputs.clone();
    if let Some(path) = record {
        files::write_record(&path, &finished)?;
        listed.push(path);
    }
    if !context.quiet {
        let [nz, ny, nx] = result.shape;
        let names: Vec<_> = listed.iter().map(|p| p.display().to_string()).collect();
        let what = match &result.times {
            Some(times) => stream::rate(result.repetitions, times),
            None => "image".into(),
        };
        say!("{nx} x {ny} x {nz} {what}, {:.2} s: {}", finished.total_seconds, names.join(", "));
    }
    if let Some(missed) = result.certificates.iter().find(|c| !c.met()) {
        return Err(record::missed(missed, &result.certificates).into());
    }
    mismatch
}

/// What is to be recorded of a reconstruction.
struct Done {
    /// The image, unless a stream wrote it and nobody compares it.
    image: Option<Image>,
    shape: [usize; 3],
    repetitions: usize,
    solves: Vec<Solve>,
    maps: Option<ndarray::ArrayD<C32>>,
    notes: Vec<String>,
    certificates: Vec<Certificate>,
    /// Of a stream, whose images are written.
    times: Option<StreamTimes>,
}

impl Done {
    fn of(scan: ScanImage) -> Self {
        let ScanImage { image, solves, maps, notes, certificates } = scan;
        let (shape, repetitions) = (image.shape_zyx(), image.repetitions());
        Self { image: Some(image), shape, repetitions, solves, maps, notes, certificates, times: None }
    }
}

/// Reconstructs whatever the file held.
fn reconstruct(
    device: &Device,
    args: &ReconMri,
    source: plan::Source,
    scan_options: &ScanOptions,
    options: &ReconOptions,
    monitor: &Monitor<'_>,
) -> Result<ScanImage> {
    let frames = FrameOptions {
        units: scan_options.units,
        matrix: scan_options.matrix.clone(),
        times: args.field_map.is_some(),
    };
    match source {
        plan::Source::Whole { mut scan, labels, slices, only } => {
            let notes = std::mem::take(&mut scan.notes);
            if let Some(frame) = only {
                drop(scan);
                let mut frame = Some(*frame);
                let gone = || rayspin::core::Error::value("frame", "one", "none");
                let mut take = |_, _: &mut Vec<String>| frame.take().ok_or_else(gone);
                return Ok(reconstruct_frames(device, &labels, &slices, &mut take, notes, options, monitor)?);
            }
            let index = scan.frames()?;
            let mut assemble = |label, notes: &mut Vec<String>| index.assemble(label, &frames, notes);
            Ok(reconstruct_frames(device, &labels, &slices, &mut assemble, notes, options, monitor)?)
        }
        plan::Source::Parts { labels, slices, notes } => {
            // An error in the file is told as such, and not as the reconstruction's.
            let mut broken = None;
            let mut read = |label, notes: &mut Vec<String>| match plan::read_part(
                &args.scan,
                scan_options,
                label,
                monitor,
            ) {
                Ok(scan) => scan.frames()?.assemble(label, &frames, notes),
                Err(error) => {
                    let text = error.to_string();
                    broken = Some(error);
                    Err(rayspin::core::Error::value("scan", "images that can be read", text))
                }
            };
            let result = reconstruct_frames(device, &labels, &slices, &mut read, notes, options, monitor);
            match broken {
                Some(error) => Err(error),
                None => Ok(result?),
            }
        }
        plan::Source::Frame(array) => {
            let ArrayFrame { frame, notes, .. } = *array;
            Ok(reconstruct_frame(device, frame, notes, options, monitor)?)
        }
        plan::Source::Stream(_) => Err(anyhow::anyhow!("a stream is not reconstructed as a whole")),
    }
}

fn display(path: Option<&Path>) -> String {
    path.map_or_else(String::new, |p| p.display().to_string())
}

/// image.nii.gz → image.json
fn record_path(image: &Path) -> PathBuf {
    let name = image.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let stem = name.strip_suffix(".gz").unwrap_or(&name);
    let stem = stem.rsplit_once('.').map_or(stem, |(stem, _)| stem);
    image.with_file_name(format!("{stem}.json"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_named_after_the_image() {
        assert_eq!(record_path(Path::new("a/b.nii.gz")), Path::new("a/b.json"));
        assert_eq!(record_path(Path::new("b.v2.png")), Path::new("b.v2.json"));
    }
}
