//! `rayspin recon mri`

mod output;
mod stream;

use std::sync::Arc;

use anyhow::{Context as _, Result};
use rayspin::core::{Image, Monitor, Progress as _};
use rayspin::device::Device;
use rayspin::io::{self, DicomTemplate, Format, ImageFile, Modality, Origin};
use rayspin::job::mri::{Finished, Input, Request, Understood};
use rayspin::mri::scan::Label;
use rayspin_shell::effect::Given;
use rayspin_shell::{BadInput, Context, interrupt, say};

use super::files::{Hashing, RunFiles, together};
use super::{certify, files, plan};
use crate::args::mri::ReconMri;

/// Reconstructs a scan, writes the images and the run record.
pub(crate) fn run(context: &Context, args: &ReconMri, files: RunFiles) -> Result<()> {
    Ready::read(context, &context.device, args, files)?.reconstruct()?.map_or(Ok(()), Made::write)
}

/// A scan that was read.
pub(crate) struct Ready<'a> {
    context: &'a Context,
    args: &'a ReconMri,
    files: RunFiles,
    template: Option<Arc<DicomTemplate>>,
    hashing: Option<Hashing>,
    understood: Understood<'a>,
}

/// A scan that was reconstructed.
pub(crate) struct Made<'a> {
    context: &'a Context,
    args: &'a ReconMri,
    files: RunFiles,
    finished: Finished<'a>,
    /// Where the images come from.
    origin: Origin,
    /// All images of a stream, where they are compared with the reference.
    collected: Option<Image>,
    reference: Option<ImageFile>,
}

/// The command line as a request. Errors: options that contradict each other or are out of range.
fn request(args: &ReconMri, given: &Given) -> Result<Request> {
    let mut request = Request {
        method: args.method.asked(),
        given: given.options().clone(),
        outputs: args.outputs.clone(),
        compared: args.run.reference.is_some(),
        dry_run: args.run.dry_run,
        ..Request::of(Input::File(args.scan.clone()))
    };
    args.options.put(given, &mut request)?;
    request.options.keep_maps = args.save_maps.is_some();
    Ok(request)
}

impl<'a> Ready<'a> {
    /// Reads the scan, for a run on a device.
    pub(crate) fn read(
        context: &'a Context,
        device: &Device,
        args: &'a ReconMri,
        files: RunFiles,
    ) -> Result<Self> {
        args.outputs.iter().try_for_each(|output| files::check_output(output, Format::writes_images))?;
        if args.bids {
            // Names are known in full once the volumes are.
            stream::image_parts(args, &[Label::default()], 1, &Origin::default())?;
        }
        args.save_maps.iter().try_for_each(|maps| files::check_output(maps, Format::writes_arrays))?;
        let template = files::dicom_template(args.dicom_template.as_deref())?;
        let monitor = Monitor::new(&context.console, Some(&interrupt::STOP));
        let begun = request(args, &context.given)?.begin(
            files::compute_target(context, device),
            monitor,
            files::recorder_on(context, device),
        )?;
        let hashing = if args.run.dry_run { None } else { files.hashing() };
        let understood = begun.read()?;
        Ok(Self { context, args, files, template, hashing, understood })
    }

    /// Makes the images; none where the plan alone is wanted.
    pub(crate) fn reconstruct(self) -> Result<Option<Made<'a>>> {
        let Self { context, args, files, template, hashing, understood } = self;
        if let Some(text) = understood.summary() {
            context.console.note(&format!("understood as {text}"));
        }
        understood.doubts().iter().for_each(|doubt| context.console.warn(doubt));
        let mut planned = understood.choose()?.plan()?;
        if args.bids && !planned.is_of_volumes() {
            let message =
                "--bids: expected images, found coil images or coefficients, for which BIDS has no names";
            return Err(BadInput::new(message.to_owned()).into());
        }
        if args.run.dry_run {
            files::print(&plan::table(&args.scan, planned.plan(), &planned.cut()))?;
            return Ok(None);
        }
        let reference = args.run.reference.as_deref().map(io::read_image).transpose()?;
        planned.ready()?;
        let origin = Origin { protocol: planned.protocol(), template, ..Origin::measured(Modality::Mr) };
        let fail = || args.scan.display().to_string();
        let (mut finished, collected) = match planned.stream() {
            None => (planned.run::<anyhow::Error>(&mut |_| Ok(()))?, None),
            Some(shape) => {
                let mut outputs = stream::Files::new(args, &files, shape, origin.clone());
                let ended = interrupt::stoppable(|| planned.run(&mut |volume| outputs.push(&volume)));
                let mut finished = match ended {
                    Ok(finished) => finished,
                    Err(error) => {
                        outputs.keep_partial();
                        return Err(error).with_context(fail);
                    }
                };
                if !context.quiet {
                    let stages = finished.told.monitor.stages();
                    for (stage, seconds) in stages.iter().filter(|(stage, _)| stage != "read") {
                        say!("    {stage:20} {seconds:8.3} s");
                    }
                }
                let collected = outputs.finish(&mut finished).with_context(fail)?;
                (finished, collected)
            }
        };
        hashing.map_or(Ok(()), |hashing| hashing.record(&mut finished.told.recorder))?;
        let certificates = &finished.certificates;
        if !certificates.is_empty() && !context.quiet {
            files::print(&certify::certificates(certificates, |one| {
                rayspin::job::mri::name_of(one, certificates)
            }))?;
        }
        Ok(Some(Made { context, args, files, finished, origin, collected, reference }))
    }
}

impl Made<'_> {
    /// Writes the images and the record.
    pub(crate) fn write(mut self) -> Result<()> {
        let missed = self.finished.certificates.iter().find(|certificate| !certificate.met());
        let missed = missed.map(|missed| {
            certify::missed(missed, rayspin::job::mri::name_of(missed, &self.finished.certificates))
        });
        let mismatch = together(move || {
            let written = self.write_images()?;
            let mismatch = self.judge();
            self.finish(&written)?;
            Ok(mismatch)
        })?;
        match missed {
            Some(missed) => Err(missed.into()),
            None => mismatch,
        }
    }
}
