//! The outputs of a dynamic scan, written volume by volume.

use std::ops::Range;
use std::path::PathBuf;

use anyhow::Result;
use ndarray::{ArrayD, Axis, IxDyn};
use rayspin::core::slices::Stack;
use rayspin::core::{C32, Image};
use rayspin::io::png::PngOptions;
use rayspin::io::{SeriesShape, SeriesWriter, WriteOptions, stack_paths};
use rayspin::job::mri::{Finished, StreamShape};
use rayspin::mri::recon::{StreamTimes, Volume};
use rayspin_shell::say;

use crate::args::mri::ReconMri;
use crate::commands::files::{RunFiles, together};

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
pub(super) struct Files<'a> {
    args: &'a ReconMri,
    paths: &'a RunFiles,
    shape: StreamShape,
    /// Each output has a writer for each of its files.
    writers: Vec<(Range<usize>, SeriesWriter)>,
    /// All images, where they are compared with a reference.
    collected: Option<Image>,
}

impl<'a> Files<'a> {
    /// The outputs of a stream of this shape; none is begun.
    pub(super) fn new(args: &'a ReconMri, paths: &'a RunFiles, shape: StreamShape) -> Self {
        Self { args, paths, shape, writers: Vec::new(), collected: None }
    }

    /// Writes a volume, and keeps it where it is compared.
    pub(super) fn push(&mut self, volume: &Volume) -> Result<()> {
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
                    let shape = SeriesShape { frames: self.shape.frames, volume, geometry: stack.geometry };
                    let options = WriteOptions {
                        repetition_time_s: self.shape.step_s,
                        layout: self.shape.layout,
                        png: PngOptions::preview(stack.slices, self.shape.frames),
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
            let shape = io_shape(self.shape.frames, zyx);
            let mut data = match self.collected.take() {
                Some(image) => image.into_data(),
                None => ArrayD::<C32>::zeros(IxDyn(&shape)),
            };
            match shape.len() {
                4 => data.index_axis_mut(ndarray::Axis(0), volume.index).assign(&volume.data),
                _ => data.assign(&volume.data),
            }
            self.collected = Some(Image::of_stacks(data, volume.stacks.clone())?);
        }
        Ok(())
    }

    /// Completes the outputs, and tells what formats cannot hold. Returns all images, where they are
    /// compared.
    pub(super) fn finish(self, finished: &mut Finished<'_>) -> Result<Option<Image>> {
        let begun = std::time::Instant::now();
        together(|| {
            for (_, writer) in self.writers {
                let path = rayspin_shell::stdout::name(writer.path());
                let left_out = writer.finish()?;
                left_out.into_iter().for_each(|note| finished.told.say(format!("{path}: {note}")));
            }
            Ok(())
        })?;
        let closing = begun.elapsed().as_secs_f64();
        if let Some(times) = &mut finished.times {
            times.write += closing;
            times.wall += closing;
        }
        Ok(self.collected)
    }

    /// Keeps what is complete, and says what that is.
    pub(super) fn keep_partial(self) {
        let frames = self.shape.frames;
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
