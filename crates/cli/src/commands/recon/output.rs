//! From the images to files, numbers and the record.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use rayspin::core::Image;
use rayspin::device::Backend;
use rayspin::io::{self, cfl::Layout, kernel_cache::KernelCache};
use rayspin::mri::methods::{self, Value};
use rayspin::mri::recon::LAMBDA;
use rayspin_shell::stdout;

use super::taken::Taken;
use super::{Done, Session, files, record, stopped, stream};
use crate::commands::certify;
use crate::commands::files::RunFiles;
use crate::commands::metrics::Comparison;

impl Session<'_> {
    /// Tells and records how the reconstruction went.
    pub(super) fn reconstructed(&mut self, result: &Done) -> Result<()> {
        let Self { recorder, monitor, .. } = self;
        files::record_stages(recorder, monitor);
        for note in &result.notes {
            monitor.note(note);
            recorder.note(note.as_str());
        }
        if let Some(folder) = &self.args.cache {
            let (count, bytes) = KernelCache::new(folder)?.size();
            let bytes = rayspin::report::number::bytes(bytes);
            monitor.note(&format!("--cache: {count} kernels, {bytes}; nothing in it is ever deleted"));
        }
        if let Some(found) = &result.searched {
            let lambda = (LAMBDA.to_owned(), Value::Number(found.lambda));
            self.options.method = methods::with(&*self.options.method, [lambda])?;
            recorder.parameter("lambda searched", serde_json::to_value(found)?);
        }
        recorder.parameter("certify", serde_json::json!(self.options.certify));
        recorder.parameter("certificates", serde_json::json!(result.certificates));
        recorder.parameter("cache", serde_json::json!(self.args.cache));
        if let Some(times) = &result.times {
            recorder.parameter("images per second", result.repetitions as f64 / times.wall);
            recorder.parameter("seconds of the stream", serde_json::to_value(times)?);
        }
        if !result.certificates.is_empty() && !self.context.quiet {
            let all = &result.certificates;
            files::print(&certify::certificates(all, |one| record::name_of(one, all)))?;
        }
        Ok(())
    }

    /// Writes the images and the maps; returns the files.
    pub(super) fn write(&mut self, paths: &RunFiles, result: &Done, layout: Layout) -> Result<Vec<PathBuf>> {
        self.recorder.stage("write");
        let images = paths.of_stacks(&self.args.outputs, result.stacks)?;
        for output in &self.args.outputs {
            if let (None, Some(image)) = (&result.times, &result.image) {
                for note in self.write_one(output, image, layout)? {
                    let note = format!("{}: {note}", stdout::name(output));
                    self.monitor.note(&note);
                    self.recorder.note(note);
                }
            }
        }
        let mut written: Vec<PathBuf> = images.iter().flat_map(|file| files::written(file)).collect();
        if let Some(path) = &self.args.save_maps {
            let maps = result.maps.as_ref().context("--save-maps: the run left no sensitivity maps")?;
            io::write_coil_array(path, maps.view(), layout)?;
            written.extend(files::written(path));
        }
        Ok(written)
    }

    /// Writes an image; coil images go to the coils' dimension of an array.
    fn write_one(&self, output: &Path, image: &Image, layout: Layout) -> Result<Vec<String>> {
        let format = io::Format::of_name(output);
        if self.options.coil_images()
            && self.args.numbers.values().is_none()
            && format.is_some_and(io::Format::writes_arrays)
        {
            io::write_coil_array(output, image.data().view(), layout)?;
            return Ok(Vec::new());
        }
        let mut notes = files::write_image(output, image, layout, self.args.numbers.values())?;
        if self.options.coil_images() && !format.is_some_and(io::Format::is_picture) {
            notes.push("coils lie along the axis of repetitions".to_owned());
        }
        Ok(notes)
    }

    /// Compares the image with the reference, where there is one: an image of a part of the scan with the same part of a
    /// reference of the whole.
    ///
    /// Errors: images that cannot be compared.
    pub(super) fn judge(
        &mut self,
        reference: Option<&io::ImageFile>,
        result: &Done,
        taken: Option<&Taken>,
    ) -> Result<()> {
        let (Some(reference), Some(image)) = (reference, &result.image) else { return Ok(()) };
        self.recorder.stage("metrics");
        let part = taken.map(|taken| taken.of_reference(&reference.image, image)).transpose()?.flatten();
        if let Some((_, name)) = &part {
            let note = format!("compared with {name} of the reference");
            self.monitor.note(&note);
            self.recorder.note(note);
        }
        let reference = part.as_ref().map_or(&reference.image, |(image, _)| image);
        let (first, beside) = (self.args.outputs.first(), self.args.run.reference.as_ref());
        let names = [first, beside].map(|path| path.map_or_else(String::new, |path| stdout::name(path)));
        let comparison = Comparison { image, reference, names, fit: self.args.run.fit };
        comparison.run(self.context, &mut self.recorder, &self.monitor)
    }

    /// Completes and writes the record, and says what was made.
    pub(super) fn finish(mut self, paths: &RunFiles, result: &Done, written: &[PathBuf]) -> Result<()> {
        let (args, recorder) = (self.args, &mut self.recorder);
        record::parameters(recorder, args, &self.options);
        if args.keep_identity {
            recorder.parameter("identity", record::identity(args)?);
        }
        if let Some(note) = stopped::note(&result.solves, &*self.options.method, args.method.has("tolerance"))
        {
            self.monitor.note(&note);
            recorder.note(note);
        }
        record::solves(recorder, &result.solves);
        for file in written {
            files::record_output(recorder, file)?;
        }
        if let Backend::Cuda(cuda) = self.device.backend() {
            recorder.parameter("GPU memory peak", cuda.memory_used().1);
        }
        let finished = self.recorder.finish(rayspin::device::cpu::peak_memory());
        let mut listed = paths.of_stacks(&args.outputs, result.stacks)?;
        if let Some(path) = &paths.record {
            files::write_record(path, &finished)?;
            listed.push(path.clone());
        }
        if !self.context.quiet {
            let [nz, ny, nx] = result.shape;
            let names: Vec<_> = listed.iter().map(|path| stdout::name(path)).collect();
            let what = match &result.times {
                Some(times) => stream::rate(result.repetitions, times),
                None => "image".into(),
            };
            let (seconds, names) = (finished.total_seconds, names.join(", "));
            files::say_made(format!("{nx} x {ny} x {nz} {what}, {seconds:.2} s: {names}"));
        }
        Ok(())
    }
}
