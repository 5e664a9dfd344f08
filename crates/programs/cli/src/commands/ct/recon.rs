//! `rayspin recon ct`

use anyhow::Result;
use rayspin::core::{Image, Monitor};
use rayspin::ct::corrections::ActsOn;
use rayspin::device::Device;
use rayspin::io::png::PngOptions;
use rayspin::io::{self, Format, Modality, Origin, SeriesShape, SeriesWriter, Values, WriteOptions};
use rayspin::job::ct::{Finished, Input, Request};
use rayspin_shell::effect::Given;
use rayspin_shell::{Context, interrupt, stdout};

use crate::args::ct::ReconCt;
use crate::commands::files::{self, RunFiles};
use crate::commands::metrics::Comparison;
use crate::commands::{certify, plan};

/// Reconstructs a scan on a device, writes the volume and the run record.
pub(crate) fn run(context: &Context, device: &Device, args: &ReconCt, files: RunFiles) -> Result<()> {
    args.outputs.iter().try_for_each(|output| files::check_output(output, Format::writes_images))?;
    let preview = args.options.file("preview");
    preview.map_or(Ok(()), |preview| files::check_output(preview, Format::is_picture))?;
    let template = files::dicom_template(args.dicom_template.as_deref())?;
    let origin = Origin { template, ..Origin::measured(Modality::Ct) };
    let monitor = Monitor::new(&context.console, Some(&interrupt::STOP));
    let begun = request(args, &context.given)?.begin(
        files::compute_target(context, device),
        monitor,
        files::recorder_on(context, device),
    )?;
    let hashing = if args.run.dry_run { None } else { files.hashing() };
    let planned = begun.read()?.choose()?.plan()?;
    if args.run.dry_run {
        return files::print(&plan::table(&args.scan, planned.plan(), &planned.cut()));
    }
    let reference = args.run.reference.as_deref().map(io::read_volume).transpose()?;
    // A volume that is made slab by slab is written as it comes.
    let mut writers = Vec::new();
    let is_cut = planned.is_cut();
    if is_cut {
        let grid = planned.options().grid;
        let shape = SeriesShape { frames: 1, volume: grid.shape_zyx(), geometry: grid.geometry() };
        let values =
            WriteOptions { values: Some(Values::Real), origin: origin.clone(), ..WriteOptions::default() };
        for output in &args.outputs {
            writers.push(SeriesWriter::create(output, &shape, &values)?);
        }
    }
    let mut finished = planned.run::<anyhow::Error>(&mut |slab| {
        writers.iter_mut().try_for_each(|writer| writer.push(slab.view().into_dyn()))?;
        Ok(())
    })?;
    for writer in writers {
        let name = stdout::name(writer.path());
        writer.finish()?.into_iter().for_each(|note| finished.told.say(format!("{name}: {note}")));
    }
    hashing.map_or(Ok(()), |hashing| hashing.record(&mut finished.told.recorder))?;
    let certificates = finished.made.certificates.clone();
    if !certificates.is_empty() && !context.quiet {
        files::print(&certify::certificates(&certificates, |one| one.transform.clone()))?;
    }
    let mut compared = Ok(());
    if !is_cut {
        let image = write(args, &mut finished, origin)?;
        if let Some(reference) = &reference {
            compared = compare(context, args, &mut finished, &image, &reference.image);
        }
    }
    finish(context, args, finished, &files)?;
    match certificates.iter().find(|one| !one.met()) {
        Some(missed) => Err(certify::missed(missed, missed.transform.clone()).into()),
        None => compared,
    }
}

/// The command line as a request. Errors: options that contradict each other or are out of range; an image
/// among the parameters of corrections that cannot be read.
fn request(args: &ReconCt, given: &Given) -> Result<Request> {
    args.corrections.refuse_idle(given)?;
    let mut request = Request {
        method: args.method.asked(),
        corrections: args.corrections.corrections()?,
        correction_files: args.corrections.named_files(),
        given: given.options().clone(),
        outputs: args.outputs.clone(),
        compared: args.run.reference.is_some(),
        dry_run: args.run.dry_run,
        ..Request::of(Input::File(args.scan.clone()))
    };
    args.options.put(given, &mut request)?;
    Ok(request)
}

/// Writes the volume; returns it as an image.
fn write(args: &ReconCt, finished: &mut Finished<'_>, origin: Origin) -> Result<Image<f32>> {
    finished.told.recorder.stage("write");
    let volume = std::mem::take(&mut finished.made.volume);
    let image = Image::new(volume.into_dyn(), finished.options.grid.geometry())?;
    let signed = finished.request.corrections.iter().any(|one| one.acts_on() == ActsOn::Volume);
    let options = WriteOptions {
        png: PngOptions::preview(image.shape_zyx()[0], 1),
        values: signed.then_some(Values::Real),
        hounsfield: Some(signed),
        origin,
        ..WriteOptions::default()
    };
    for output in &args.outputs {
        for note in io::write_image(output, &image, &options)? {
            finished.told.say(format!("{}: {note}", stdout::name(output)));
        }
    }
    Ok(image)
}

fn compare(
    context: &Context,
    args: &ReconCt,
    finished: &mut Finished<'_>,
    image: &Image<f32>,
    reference: &Image<f32>,
) -> Result<()> {
    finished.told.recorder.stage("metrics");
    finished.told.record_notes();
    let (first, beside) = (args.outputs.first(), args.run.reference.as_ref());
    let names = [first, beside].map(|path| path.map_or_else(String::new, |path| stdout::name(path)));
    let comparison = Comparison { image, reference, names, fit: args.run.fit };
    comparison.run(context, &mut finished.told.recorder, &finished.told.monitor)
}

/// Completes and writes the record, and says what was made.
fn finish(context: &Context, args: &ReconCt, mut finished: Finished<'_>, paths: &RunFiles) -> Result<()> {
    finished.record()?;
    finished.told.record_notes();
    let Finished { told, options, .. } = finished;
    let mut recorder = told.recorder;
    let written: Vec<_> = args.outputs.iter().flat_map(|output| files::written(output)).collect();
    paths.record_outputs(&mut recorder, &written)?;
    let recorded = recorder.finish(rayspin::device::cpu::peak_memory());
    let mut listed = args.outputs.clone();
    if let Some(path) = &paths.record {
        files::write_record(path, &recorded)?;
        listed.push(path.clone());
    }
    if !context.quiet {
        let [nz, ny, nx] = options.grid.shape_zyx();
        let names: Vec<_> = listed.iter().map(|path| stdout::name(path)).collect();
        let (seconds, names) = (recorded.total_seconds, names.join(", "));
        files::say_made(format!("{nx} x {ny} x {nz} voxels, {seconds:.2} s: {names}"));
    }
    Ok(())
}
