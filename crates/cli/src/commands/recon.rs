//! `rayspin recon mri`

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use rayspin::core::{C64, Image, Monitor, TrajectoryUnits};
use rayspin::imaging::metrics::{CompareOptions, Quality, ScaleFit, compare};
use rayspin::io::{self, ScanOptions};
use rayspin::mri::maps::{EspiritOptions, Sensitivities};
use rayspin::mri::partial::PartialFourier;
use rayspin::mri::prepare::{Compression, CompressionKind, Noise, PrepareOptions, VirtualCoils};
use rayspin::mri::recon::{
    Certificate, Certify, Combine, Density, Method, ReconOptions, Regulariser, ScanImage, Selection,
    reconstruct_frame, reconstruct_frames,
};
use rayspin::mri::scan::{Frame, FrameOptions, Samples};
use rayspin::report::RunRecorder;
use rayspin::report::table::{Cell, Column, Table};

use super::{files, plan};
use crate::Context;
use crate::args::{
    CombineArg, CompressionArg, DensityArg, MethodArg, PartialFourierArg, ReconMri, RegulariserArg,
    SensitivitiesArg, numbers,
};
use crate::failure::BadInput;

/// Reconstructs a scan, writes the images and the run record.
pub(crate) fn run(context: &Context, args: &ReconMri) -> Result<()> {
    for output in &args.outputs {
        files::check_output(output, &files::IMAGE_FORMATS)?;
    }
    if let Some(maps) = &args.save_maps {
        files::check_output(maps, &[io::Format::Cfl, io::Format::Npy])?;
    }
    if let Some(record) = &args.record {
        files::check_writable(record)?;
    }
    let [maps, reference, traj] = [&args.maps, &args.reference, &args.traj].map(Option::as_ref);
    let [anatomy, covariance] = [&args.anatomy, &args.noise_covariance].map(Option::as_ref);
    let inputs = [Some(&args.scan), maps, anatomy, reference, traj, covariance];
    let record = (!args.no_record && !args.dry_run)
        .then(|| args.record.clone().unwrap_or_else(|| record_path(&args.outputs[0])));
    let outputs = args.outputs.iter().chain(&args.save_maps).chain(&record);
    files::check_distinct(inputs.into_iter().flatten(), outputs)?;
    let mut recorder = files::recorder(context);
    let monitor = Monitor::new(&context.console, None);
    let mut options = options(args)?;
    options.validate()?;
    check_penalty(args, args.method.map(method_of))?;
    let scan_options = scan_options(args)?;

    recorder.stage("read");
    let selection = selection(args);
    let process = plan::process_bytes();
    check_effect(args, io::detect(&args.scan)?, &selection)?;
    if let Some(path) = &args.maps {
        options.maps = Some(std::sync::Arc::new(read_maps(path)?));
    }
    if let Some(path) = &args.anatomy {
        let image = io::read_image(path, &io::ReadOptions::default())?.image;
        if image.repetitions() > 1 {
            let message = format!("{}: expected one image, found {}", path.display(), image.repetitions());
            return Err(BadInput::new(message).hint("--anatomy takes a single volume or slice").into());
        }
        options.anatomy = Some(std::sync::Arc::new(image.magnitude()));
    }
    options.keep_maps = args.save_maps.is_some();
    let read = |whole| {
        monitor.stage("read", 0, || plan::read(args, &scan_options, &selection, process, whole, &monitor))
    };
    let (mut source, mut shape) = read(true)?;
    let frame = shape.frame(&source).context("a frame")?;
    if args.traj_units.is_some() && matches!(frame.samples, Samples::Cartesian { .. }) {
        return refuse_option("--traj-units", "a trajectory", "a grid");
    }
    if args.no_prewhiten && matches!(shape.noise, None | Some(Noise::None)) {
        return refuse_option("--no-prewhiten", "a scan with noise readouts", "one without");
    }
    options.prepare.noise = shape.noise.clone();
    options.method = match args.method {
        Some(method) => method_of(method),
        None => {
            let method = default_method(frame);
            monitor.note(&format!("method: {} (--method chooses another)", method_name(method)));
            method
        }
    };
    check_penalty(args, Some(options.method))?;
    let default = ReconOptions::of(options.method);
    options.lambda = args.lambda.unwrap_or(default.lambda);
    options.iterations = args.iterations.unwrap_or(default.iterations);
    options.cg_tolerance = args.tolerance.unwrap_or(default.cg_tolerance);
    if args.sensitivities.is_some() && !options.needs_maps() {
        let expected = "a method that uses sensitivity maps (cg-sense, wavelet, tv, or --combine maps)";
        return refuse_option("--sensitivities", expected, method_name(options.method));
    }
    let frame = shape.frame(&source).context("a frame")?;
    let on_grid = matches!(frame.samples, Samples::Cartesian { .. });
    if args.cache.is_some() && (on_grid || !options.iterates()) {
        let expected = "a trajectory and --method ls, cg-sense, wavelet or tv";
        return refuse_option(
            "--cache",
            expected,
            if on_grid { "a grid" } else { method_name(options.method) },
        );
    }
    let threads = context.threads();
    let mut fitted = plan::fit(args, &source, &shape, process, &mut options, threads)?;
    if fitted.is_err() && matches!(&source, plan::Source::Whole { labels, .. } if labels.len() > 1) {
        drop((source, shape));
        (source, shape) = read(false)?;
        options.coil_batch = None;
        fitted = plan::fit(args, &source, &shape, process, &mut options, threads)?;
    }
    let plan = match fitted {
        Ok(plan) => plan,
        Err(needed) => return plan::refuse(args.memory, needed, &args.scan),
    };
    if args.dry_run {
        return files::print(&plan::table(args, &plan, &options));
    }
    drop(shape);
    let cache = args.cache.as_ref().map(io::kernel_cache::KernelCache::new).transpose()?;
    options.kernels = cache.clone().map(|cache| std::sync::Arc::new(cache) as _);
    options.certify = args.certify.map(|outputs| Certify { outputs, seed: args.certify_seed.unwrap_or(1) });
    options.validate()?;
    recorder.parameter("memory limit", serde_json::json!(args.memory));
    recorder.parameter("memory stated", plan.peak());
    recorder.parameter("coils at a time", serde_json::json!(options.coil_batch));
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
    let result = reconstruct(context, args, source, &scan_options, &options, &monitor)
        .with_context(|| format!("{}", args.scan.display()))?;
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
    if !result.certificates.is_empty() && !context.quiet {
        files::print(&certificates(&result.certificates))?;
    }

    let maps_to_save = match (&args.save_maps, &result.maps) {
        (None, _) => None,
        (Some(path), Some(maps)) => Some((path, maps)),
        (Some(_), None) => {
            return Err(BadInput::new(
                "--save-maps: expected a method that uses sensitivity maps, found none used",
            )
            .hint("--method cg-sense or --combine maps")
            .into());
        }
    };

    recorder.stage("write");
    let mut written = Vec::new();
    for output in &args.outputs {
        for note in files::write_image(output, &result.image)? {
            let note = format!("{}: {note}", output.display());
            monitor.note(&note);
            recorder.note(note);
        }
        written.extend(files::parts(output));
    }
    if let Some((path, maps)) = maps_to_save {
        write_coil_array(path, maps)?;
        written.extend(files::parts(path));
    }
    let mut mismatch = Ok(());
    if let Some(reference) = &reference {
        recorder.stage("metrics");
        let names = (args.outputs[0].display().to_string(), display(args.reference.as_deref()));
        match judge(&result.image, &reference.image) {
            Ok(quality) => {
                record_quality(&mut recorder, &names.0, &names.1, &quality);
                files::print(&super::metrics::table(&names.0, &names.1, &quality))?;
            }
            Err(error) => {
                recorder.note(format!("not compared with {}: {error}", names.1));
                mismatch = Err(error.context(format!("the image is written; comparing with {}", names.1)));
            }
        }
    }
    parameters(&mut recorder, args, &options);
    for solve in &result.solves {
        let label = solve.label;
        if !solve.converged && options.cg_tolerance > 0.0 {
            let note = format!(
                "slice {} repetition {}: stopped after {} iterations at a residual of {:.1e}, above the tolerance of {:.0e}",
                label.slice,
                label.repetition,
                solve.iterations(),
                solve.residuals.last().copied().unwrap_or(1.0),
                options.cg_tolerance
            );
            recorder.note(note);
        }
        recorder.parameter("solver", solve.solver);
        recorder.parameter("largest eigenvalue", solve.eigenvalue);
        let name = format!("slice {} repetition {}", label.slice, label.repetition);
        if let Some(scale) = solve.scale {
            recorder.parameter("image scale", scale);
            recorder.parameter(format!("objective, {name}"), serde_json::json!(solve.objective));
        }
        recorder.converged(name, solve.residuals.clone());
    }
    for file in &written {
        recorder.output(file).with_context(|| format!("hashing {}", file.display()))?;
    }
    let finished = recorder.finish(rayspin::device::cpu::peak_memory());
    let mut listed: Vec<PathBuf> = args.outputs.clone();
    if let Some(path) = record {
        files::write_record(&path, &finished)?;
        listed.push(path);
    }
    if !context.quiet {
        let [nz, ny, nx] = result.image.shape_zyx();
        let names: Vec<_> = listed.iter().map(|p| p.display().to_string()).collect();
        say!("{nx} x {ny} x {nz} image, {:.2} s: {}", finished.total_seconds, names.join(", "));
    }
    if let Some(missed) = result.certificates.iter().find(|c| !c.met()) {
        return Err(rayspin::core::Error::Numerical {
            what: missed.transform.clone(),
            detail: format!(
                "relative error {:.2e} above the tolerance of {:.0e}",
                missed.error, missed.tolerance
            ),
        }
        .into());
    }
    mismatch
}

/// What was measured of the transforms, as a table.
fn certificates(certificates: &[Certificate]) -> Table {
    let share = certificates.first().map_or(0.0, |c| 100.0 * c.share);
    let confidence = certificates.first().map_or(0.0, |c| 100.0 * c.confidence);
    let mut table = Table::new(
        format!(
            "Outputs against exact sums (at {confidence} % confidence at most {share:.2} % of all exceed 'largest')"
        ),
        [
            Column::text("Transform"),
            Column::number("Outputs").decimals(0),
            Column::number("Relative error"),
            Column::number("Largest"),
            Column::number("Tolerance"),
            Column::text("Result"),
        ],
    );
    for c in certificates {
        table.push([
            Cell::Text(c.transform.clone()),
            Cell::Number(c.outputs as f64),
            Cell::Number(c.error),
            Cell::Number(c.largest),
            Cell::Number(c.tolerance),
            Cell::Text(if c.met() { "met" } else { "missed" }.into()),
        ]);
    }
    table
}

fn refuse_option(option: &str, expected: &str, found: &str) -> Result<()> {
    Err(BadInput::new(format!("{option}: expected {expected}, found {found}"))
        .hint(format!("leave {option} out"))
        .into())
}

/// Refuses penalties that the method leaves without effect.
fn check_penalty(args: &ReconMri, method: Option<Method>) -> Result<()> {
    let Some(method) = method else {
        return Ok(());
    };
    let refuse = |option: &str, expected: &str| {
        Err(BadInput::new(format!("{option}: expected {expected}, found {}", method_name(method)))
            .hint(format!("leave {option} out, or choose another --method"))
            .into())
    };
    let quadratic = method.iterates() && !method.is_sparse();
    if args.regulariser.is_some() && !quadratic {
        return refuse("-W", "--method cg-sense or ls");
    }
    if args.anatomy.is_some() && method != Method::TotalVariation {
        if !quadratic {
            return refuse("--anatomy", "--method tv, or cg-sense or ls with -W differences");
        }
        if args.regulariser != Some(RegulariserArg::Differences) {
            return Err(BadInput::new("--anatomy: expected -W differences or --method tv, found neither")
                .hint("the reference weights differences: add -W differences")
                .into());
        }
    }
    let given = [("--lambda", args.lambda.is_some()), ("--iterations", args.iterations.is_some())];
    let given = given.into_iter().chain([("--tolerance", args.tolerance.is_some())]);
    if !method.iterates()
        && let Some((option, _)) = given.into_iter().find(|(_, given)| *given)
    {
        return refuse(option, "a method that iterates (ls, cg-sense, wavelet, tv)");
    }
    Ok(())
}

/// Refuses options that the file leaves without effect.
fn check_effect(args: &ReconMri, format: io::Format, selection: &Selection) -> Result<()> {
    if format == io::Format::Hdf5 {
        let expected = "k-space without a header (.cfl, .npy)";
        for (option, given) in [("--traj", args.traj.is_some()), ("--fov", args.fov.is_some())] {
            if given {
                return refuse_option(option, expected, "an ISMRMRD scan, which states it");
            }
        }
    } else if *selection != Selection::default() {
        let options = "--encoding, --slice, --repetition, --contrast, --phase or --set";
        return refuse_option(options, "a scan with counters (ISMRMRD)", "the samples of one image");
    }
    Ok(())
}

/// Reconstructs whatever the file held.
fn reconstruct(
    context: &Context,
    args: &ReconMri,
    source: plan::Source,
    scan_options: &ScanOptions,
    options: &ReconOptions,
    monitor: &Monitor<'_>,
) -> Result<ScanImage> {
    let frames = FrameOptions { units: scan_options.units, matrix: scan_options.matrix.clone() };
    let device = &context.device;
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
        plan::Source::Frame(frame, notes) => Ok(reconstruct_frame(device, *frame, notes, options, monitor)?),
    }
}

fn options(args: &ReconMri) -> Result<ReconOptions> {
    let method = args.method.map_or(Method::CgSense, method_of);
    let default = ReconOptions::of(method);
    Ok(ReconOptions {
        method,
        combine: match (args.combine, &args.maps) {
            (Some(CombineArg::Rss), Some(_))
                if !args.method.is_some_and(|m| method_of(m).sees_all_coils()) =>
            {
                return Err(BadInput::new(
                    "--combine rss: expected no --maps, which it does not use, found them",
                )
                .into());
            }
            (Some(CombineArg::Maps), _) | (None, Some(_)) => Combine::Maps,
            (Some(CombineArg::Rss), _) | (None, None) => Combine::RootSumOfSquares,
        },
        lambda: args.lambda.unwrap_or(default.lambda),
        regulariser: match args.regulariser {
            Some(RegulariserArg::None) => Regulariser::None,
            Some(RegulariserArg::Identity) | None => Regulariser::Identity,
            Some(RegulariserArg::Differences) => Regulariser::Differences,
        },
        iterations: args.iterations.unwrap_or(default.iterations),
        cg_tolerance: args.tolerance.unwrap_or(default.cg_tolerance),
        nufft_tolerance: args.epsilon,
        density: match args.density {
            DensityArg::PipeMenon => Density::PipeMenon,
            DensityArg::Radial => Density::Radial,
        },
        calibration: args.calibration,
        sensitivities: sensitivities(args)?,
        prepare: prepare(args)?,
        partial_fourier: args.partial_fourier.map(|how| match how {
            PartialFourierArg::Pocs => PartialFourier::Pocs,
            PartialFourierArg::Homodyne => PartialFourier::Homodyne,
            PartialFourierArg::None => PartialFourier::None,
        }),
        ..ReconOptions::default()
    })
}

fn prepare(args: &ReconMri) -> Result<PrepareOptions> {
    let kind = match args.compression {
        CompressionArg::Svd => CompressionKind::Svd,
        CompressionArg::Geometric => CompressionKind::Geometric,
    };
    let coils = match args.coils.as_deref() {
        None => None,
        Some(text) => Some(match (text.trim().parse::<usize>(), text.trim().parse::<f64>()) {
            (Ok(count), _) => VirtualCoils::Count(count),
            (_, Ok(part)) => VirtualCoils::Energy(part),
            _ => {
                return Err(BadInput::new(format!(
                    "--coils: expected a number of virtual coils or a part of the energy below 1, found '{text}'"
                ))
                .into());
            }
        }),
    };
    let noise_covariance = args.noise_covariance.as_deref().map(read_covariance).transpose()?;
    Ok(PrepareOptions {
        prewhiten: !args.no_prewhiten,
        noise: None,
        noise_covariance,
        compression: coils.map(|coils| Compression { coils, kind }),
    })
}

/// `[coil, coil]` from `.npy` or `.cfl`.
fn read_covariance(path: &Path) -> Result<ndarray::Array2<C64>> {
    let array = match io::detect(path)? {
        io::Format::Cfl => io::cfl::read(path)?,
        io::Format::Npy => io::npy::read_complex(path)?,
        other => {
            return Err(BadInput::new(format!(
                "{}: expected a noise covariance as .npy or .cfl, found {other}",
                path.display()
            ))
            .into());
        }
    };
    let shape: Vec<usize> = array.shape().iter().copied().filter(|&n| n != 1).collect();
    let (n, m) = match shape[..] {
        [n, m] => (n, m),
        [] => (1, 1),
        _ => (0, 1),
    };
    if n != m {
        return Err(BadInput::new(format!(
            "{}: expected a noise covariance [coil, coil], found {:?}",
            path.display(),
            array.shape()
        ))
        .into());
    }
    let mut values = array.iter().map(|v| C64::new(v.re.into(), v.im.into()));
    Ok(ndarray::Array2::from_shape_simple_fn((n, n), || values.next().unwrap_or_default()))
}

fn sensitivities(args: &ReconMri) -> Result<Option<Sensitivities>> {
    if args.sensitivities == Some(SensitivitiesArg::Espirit) {
        let default = EspiritOptions::default();
        return Ok(Some(Sensitivities::Espirit(EspiritOptions {
            sets: args.map_sets.unwrap_or(default.sets),
            crop: args.map_crop.unwrap_or(default.crop),
            ..default
        })));
    }
    for (option, given) in [("--map-sets", args.map_sets.is_some()), ("--map-crop", args.map_crop.is_some())]
    {
        if given {
            return Err(BadInput::new(format!("{option}: expected --sensitivities espirit, found none"))
                .hint(format!("add --sensitivities espirit, or leave {option} out"))
                .into());
        }
    }
    Ok(args.sensitivities.map(|_| Sensitivities::Walsh))
}

fn scan_options(args: &ReconMri) -> Result<ScanOptions> {
    let units = args.traj_units.as_deref().map(str::parse::<TrajectoryUnits>).transpose()?;
    let matrix =
        args.matrix.as_deref().map(|text| numbers::<usize>("--matrix", text, &[2, 3])).transpose()?;
    let fov_mm = args.fov.as_deref().map(|text| numbers::<f64>("--fov", text, &[2, 3])).transpose()?;
    if let Some(fov) = &fov_mm
        && fov.iter().any(|&f| !(f > 0.0 && f.is_finite()))
    {
        return Err(BadInput::new(format!("--fov: expected positive lengths in mm, found {fov:?}")).into());
    }
    Ok(ScanOptions { name: args.dataset.clone(), trajectory: args.traj.clone(), units, matrix, fov_mm })
}

fn selection(args: &ReconMri) -> Selection {
    Selection {
        encoding: args.encoding,
        slice: args.slice,
        repetition: args.repetition,
        contrast: args.contrast,
        phase: args.phase,
        set: args.set,
    }
}

/// The method for a scan when none is asked for: the simplest that uses all there is.
fn default_method(frame: &Frame) -> Method {
    match &frame.samples {
        Samples::Cartesian { sampled, .. } if fills_a_box(sampled) => Method::Cartesian,
        _ if frame.coils() > 1 => Method::CgSense,
        _ => Method::LeastSquares,
    }
}

/// Whether the measured positions are a whole box of the grid, as for a full scan whose grid was enlarged.
fn fills_a_box(sampled: &ndarray::ArrayD<bool>) -> bool {
    let mut low = vec![usize::MAX; sampled.ndim()];
    let mut high = vec![0; sampled.ndim()];
    let mut count = 0;
    for (index, _) in sampled.indexed_iter().filter(|(_, known)| **known) {
        count += 1;
        for axis in 0..low.len() {
            low[axis] = low[axis].min(index[axis]);
            high[axis] = high[axis].max(index[axis]);
        }
    }
    count > 0 && count == low.iter().zip(&high).map(|(l, h)| h - l + 1).product::<usize>()
}

fn read_maps(path: &Path) -> Result<ndarray::ArrayD<rayspin::core::C32>> {
    let array = match io::detect(path)? {
        io::Format::Cfl => {
            let array = io::cfl::read(path)?;
            let cartesian =
                io::cfl::Cartesian::from_bart(array.view()).with_context(|| path.display().to_string())?;
            cartesian.single().with_context(|| path.display().to_string())?.into_dyn()
        }
        io::Format::Npy => io::npy::read_complex(path)?,
        io::Format::Npz => io::npy::read_npz_complex(path, None)?,
        other => {
            return Err(BadInput::new(format!(
                "{}: expected maps as .cfl, .npy or .npz, found {other}",
                path.display()
            ))
            .into());
        }
    };
    Ok(array)
}

/// Writes `[coil, z, y, x]` or `[coil, y, x]` as `.cfl` or `.npy`.
pub(crate) fn write_coil_array(path: &Path, maps: &ndarray::ArrayD<rayspin::core::C32>) -> Result<()> {
    match io::Format::of_name(path) {
        Some(io::Format::Npy) => Ok(io::npy::write(path, maps.view())?),
        Some(io::Format::Cfl) => {
            let mut volume = maps.view();
            if volume.ndim() == 3 {
                volume.insert_axis_inplace(ndarray::Axis(1));
            }
            // [coil, z, y, x] backwards is BART's READ, PHS1, PHS2, COIL.
            Ok(io::cfl::write(path, volume.reversed_axes())?)
        }
        _ => Err(BadInput::new(format!(
            "{}: name of the output: expected the ending .cfl or .npy, found another",
            path.display()
        ))
        .into()),
    }
}

/// Magnitudes against the reference's, after fitting one real factor: scanners have arbitrary gain.
fn judge(image: &Image, reference: &Image) -> Result<Quality> {
    let options = CompareOptions { fit: ScaleFit::Real, magnitude: true, mask: None };
    // One reference stands for every repetition.
    let repeated = reference.data().broadcast(image.data().raw_dim());
    let reference = repeated.unwrap_or_else(|| reference.data().view());
    Ok(compare(image.data().view(), reference, &options)?)
}

/// The metrics of one comparison, by name.
pub(crate) fn record_quality(recorder: &mut RunRecorder, image: &str, reference: &str, quality: &Quality) {
    let mut metrics = vec![
        ("nrmse", quality.nrmse),
        ("mse", quality.mse),
        ("psnr_db", quality.psnr_db),
        ("snr_db", quality.snr_db),
        ("scale", quality.scale[0]),
    ];
    metrics.extend(quality.ssim.map(|ssim| ("ssim", ssim)));
    recorder.quality(image, reference, metrics);
}

fn parameters(recorder: &mut RunRecorder, args: &ReconMri, options: &ReconOptions) {
    recorder.parameter("method", method_name(options.method));
    recorder.parameter("combine", serde_json::json!(options.combine));
    recorder.parameter("lambda", options.lambda);
    recorder.parameter("regulariser", serde_json::json!(options.regulariser));
    recorder.parameter("anatomy", serde_json::json!(args.anatomy));
    recorder.parameter("iterations", options.iterations);
    recorder.parameter("tolerance", options.cg_tolerance);
    recorder.parameter("epsilon", options.nufft_tolerance);
    recorder.parameter("density", serde_json::json!(options.density));
    recorder.parameter("partial Fourier", serde_json::json!(options.partial_fourier));
    recorder.parameter("prewhiten", options.prepare.prewhiten);
    recorder.parameter("noise covariance", serde_json::json!(args.noise_covariance));
    recorder.parameter("compression", serde_json::json!(options.prepare.compression));
    recorder.parameter("sensitivities", serde_json::json!(options.sensitivities));
    recorder.parameter("calibration", serde_json::json!(options.calibration));
    recorder.parameter("maps", serde_json::json!(args.maps));
    recorder.parameter("trajectory", serde_json::json!(args.traj));
    recorder.parameter("field of view", serde_json::json!(args.fov));
    recorder.parameter("dataset", serde_json::json!(args.dataset));
    recorder.parameter("encoding", args.encoding);
    recorder.parameter("slice", serde_json::json!(args.slice));
    recorder.parameter("repetition", serde_json::json!(args.repetition));
    recorder.parameter("trajectory units", serde_json::json!(args.traj_units));
    recorder.parameter("matrix", serde_json::json!(args.matrix));
}

fn display(path: Option<&Path>) -> String {
    path.map_or_else(String::new, |p| p.display().to_string())
}

fn method_of(method: MethodArg) -> Method {
    match method {
        MethodArg::Cartesian => Method::Cartesian,
        MethodArg::Grappa => Method::Grappa,
        MethodArg::Gridding => Method::Gridding,
        MethodArg::Ls => Method::LeastSquares,
        MethodArg::CgSense => Method::CgSense,
        MethodArg::Wavelet => Method::Wavelet,
        MethodArg::Tv => Method::TotalVariation,
    }
}

fn method_name(method: Method) -> &'static str {
    match method {
        Method::Cartesian => "cartesian",
        Method::Grappa => "grappa",
        Method::Gridding => "gridding",
        Method::LeastSquares => "ls",
        Method::CgSense => "cg-sense",
        Method::Wavelet => "wavelet",
        Method::TotalVariation => "tv",
    }
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
