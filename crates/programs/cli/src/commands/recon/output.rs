//! From the images to files, numbers and the record.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use rayspin::core::{Image, Monitor};
use rayspin::io;
use rayspin::job::mri::StreamShape;
use rayspin::mri::recon::Volume;
use rayspin_shell::stdout;

use super::{Made, files, stream};
use crate::args::mri::ReconMri;
use crate::commands::metrics::Comparison;

impl Made<'_> {
    /// Writes the images and the maps; returns the files.
    pub(super) fn write_images(&mut self) -> Result<Vec<PathBuf>> {
        self.finished.told.recorder.stage("write");
        let parts =
            stream::image_parts(self.args, &self.finished.labels, self.finished.stacks, &self.origin)?;
        stream::expect_apart(&self.files, &parts)?;
        let images: Vec<PathBuf> = parts.iter().flat_map(stream::ImagePart::files).collect();
        // A stream has written its volumes.
        if let Some(image) = self.finished.image.take() {
            if self.args.bids {
                self.write_parts(&image)?;
            } else {
                for output in &self.args.outputs {
                    for note in self.write_one(output, &image)? {
                        self.finished.told.say(format!("{}: {note}", stdout::name(output)));
                    }
                }
            }
            self.finished.image = Some(image);
        }
        let mut written: Vec<PathBuf> = images.iter().flat_map(|file| files::written(file)).collect();
        if let Some(path) = &self.args.save_maps {
            let maps = self.finished.maps.as_ref();
            let maps = maps.context("--save-maps: the run left no sensitivity maps")?;
            io::write_coil_array(path, maps.view(), self.finished.layout)?;
            written.extend(files::written(path));
        }
        Ok(written)
    }

    /// The files of the images, and what lies beside them.
    fn named(&self) -> Result<Vec<PathBuf>> {
        let parts =
            stream::image_parts(self.args, &self.finished.labels, self.finished.stacks, &self.origin)?;
        Ok(parts.iter().flat_map(stream::ImagePart::files).collect())
    }

    /// Writes an image of one volume under names of BIDS.
    fn write_parts(&mut self, image: &Image) -> Result<()> {
        let Self { args, files, finished, origin, .. } = self;
        let shape =
            StreamShape { frames: 1, step_s: None, layout: finished.layout, labels: finished.labels.clone() };
        let mut outputs = stream::Files::new(args, files, shape, origin.clone());
        outputs.push(&Volume { index: 0, data: image.data().to_owned(), stacks: image.stacks() })?;
        outputs.finish(finished).map(drop)
    }

    /// Writes an image; coil images go to the coils' dimension of an array.
    fn write_one(&self, output: &Path, image: &Image) -> Result<Vec<String>> {
        let (layout, coil_images) = (self.finished.layout, self.finished.options.coil_images());
        let format = io::Format::of_name(output);
        if coil_images
            && self.args.numbers.values().is_none()
            && format.is_some_and(io::Format::writes_arrays)
        {
            io::write_coil_array(output, image.data().view(), layout)?;
            return Ok(Vec::new());
        }
        let volumes = if coil_images { Vec::new() } else { self.finished.labels.clone() };
        let origin = self.origin.clone();
        let options = io::WriteOptions { layout, volumes, origin, ..io::WriteOptions::default() };
        let mut notes = files::write_image(output, image, self.args.numbers.values(), options)?;
        if coil_images && !format.is_some_and(io::Format::is_picture) {
            notes.push("coils lie along the axis of repetitions".to_owned());
        }
        Ok(notes)
    }

    /// Compares the image with the reference, where there is one: an image of a part of the scan with the
    /// same part of a reference of the whole.
    ///
    /// Errors: images that cannot be compared.
    pub(super) fn judge(&mut self) -> Result<()> {
        let Self { context, args, finished, collected, reference, .. } = self;
        let image = collected.take().or_else(|| finished.image.take());
        let (Some(reference), Some(image)) = (reference, image) else { return Ok(()) };
        finished.told.recorder.stage("metrics");
        let part = finished.taken.as_ref().map(|taken| taken.of_reference(&reference.image, &image));
        let part = part.transpose()?.flatten();
        if let Some((_, name)) = &part {
            finished.told.say(format!("compared with {name} of the reference"));
        }
        finished.told.record_notes();
        let reference = part.as_ref().map_or(&reference.image, |(image, _)| image);
        let (first, beside) = (args.outputs.first(), args.run.reference.as_ref());
        let names = [first, beside].map(|path| path.map_or_else(String::new, |path| stdout::name(path)));
        let comparison = Comparison { image: &image, reference, names, fit: args.run.fit };
        comparison.run(context, &mut finished.told.recorder, &finished.told.monitor)
    }

    /// Completes and writes the record, and says what was made.
    pub(super) fn finish(self, written: &[PathBuf]) -> Result<()> {
        let mut listed = self.named()?;
        let Self { context, args, files: paths, mut finished, .. } = self;
        finished.record()?;
        finished.told.record_notes();
        let (shape, times, volumes) = (finished.shape, finished.times, finished.volumes);
        let mut recorder = finished.told.recorder;
        if args.keep_identity {
            recorder.parameter("identity", identity(args)?);
        }
        paths.record_outputs(&mut recorder, written)?;
        let recorded = recorder.finish(rayspin::device::cpu::peak_memory());
        if let Some(path) = &paths.record {
            files::write_record(path, &recorded)?;
            listed.push(path.clone());
        }
        if !context.quiet {
            let [nz, ny, nx] = shape;
            let names: Vec<_> = listed.iter().map(|path| stdout::name(path)).collect();
            let what = match &times {
                Some(times) => stream::rate(volumes, times),
                None => "image".into(),
            };
            let (seconds, names) = (recorded.total_seconds, names.join(", "));
            files::say_made(format!("{nx} x {ny} x {nz} {what}, {seconds:.2} s: {names}"));
        }
        Ok(())
    }
}

/// Parts of a header that name the patient, the study and the place.
const NAMING: [&str; 4] =
    ["subjectInformation", "studyInformation", "measurementInformation", "acquisitionSystemInformation"];

/// What the scan's header says of the patient, the study and the place, by the paths of its elements.
fn identity(args: &ReconMri) -> Result<serde_json::Value> {
    let reader = rayspin::io::open_scan(&args.scan, &Monitor::silent())?;
    let stated = rayspin::io::ismrmrd::identity_of(reader.header()).into_iter();
    let naming = |path: &str| NAMING.iter().any(|part| path.starts_with(part));
    let named = stated.filter(|(path, _)| naming(path)).map(|(path, text)| (path, text.into()));
    Ok(serde_json::Value::Object(named.collect()))
}
