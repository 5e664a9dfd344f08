//! The files of a run's images, written volume by volume.

use std::ops::Range;
use std::path::PathBuf;

use anyhow::Result;
use ndarray::{ArrayD, Axis, IxDyn};
use rayspin::core::slices::Stack;
use rayspin::core::{C32, Image};
use rayspin::io::bids::{self, BidsFile, Sidecar};
use rayspin::io::png::PngOptions;
use rayspin::io::{Origin, Protocol, SeriesShape, SeriesWriter, Values, WriteOptions, stack_paths};
use rayspin::job::mri::{Finished, StreamShape};
use rayspin::mri::recon::{StreamTimes, Volume};
use rayspin::mri::scan::{Label, in_time};
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

/// A file of an output.
pub(super) struct ImagePart {
    path: PathBuf,
    /// Whether the command line tells the name.
    is_named: bool,
    /// The stack of slices that it has; all where it has no geometry, or there is one.
    stack: Option<usize>,
    /// What it has under a name of BIDS.
    bids: Option<BidsFile>,
}

impl ImagePart {
    /// The image, and what tells its sequence.
    pub(super) fn files(&self) -> impl Iterator<Item = PathBuf> {
        let sidecar = self.bids.as_ref().map(BidsFile::sidecar);
        std::iter::once(self.path.clone()).chain(sidecar)
    }

    /// Those whose names the command line does not tell.
    fn unnamed(&self) -> impl Iterator<Item = PathBuf> {
        self.files().skip(usize::from(self.is_named))
    }
}

/// The files of the outputs, for these volumes and stacks of slices. Errors: a name that cannot be.
pub(super) fn image_parts(
    args: &ReconMri,
    volumes: &[Label],
    stacks: usize,
    origin: &Origin,
) -> Result<Vec<ImagePart>> {
    let nothing = Protocol::default();
    let protocol = origin.protocol.as_deref().unwrap_or(&nothing);
    let mut parts = Vec::new();
    for output in &args.outputs {
        if args.bids {
            let values: &[Values] = match args.numbers.phase {
                true => &[Values::Magnitude, Values::Phase],
                false => &[Values::Magnitude],
            };
            let files = bids::files(output, volumes, stacks, values, protocol)?;
            parts.extend(files.into_iter().map(|file| ImagePart {
                path: file.path.clone(),
                is_named: file.path == *output,
                stack: (stacks > 1).then_some(file.stack),
                bids: Some(file),
            }));
            continue;
        }
        let paths = stack_paths(output, stacks)?;
        let apart = paths.len() > 1;
        let part = |(stack, path)| {
            let is_named = path == *output;
            ImagePart { path, is_named, stack: apart.then_some(stack), bids: None }
        };
        parts.extend(paths.into_iter().enumerate().map(part));
    }
    Ok(parts)
}

/// Errors: a file with a name that the command line does not tell, which is an input or another output.
pub(super) fn expect_apart(paths: &RunFiles, parts: &[ImagePart]) -> Result<()> {
    let unnamed: Vec<PathBuf> = parts.iter().flat_map(ImagePart::unnamed).collect();
    paths.expect_apart(&unnamed)
}

/// The outputs in the making.
pub(super) struct Files<'a> {
    args: &'a ReconMri,
    paths: &'a RunFiles,
    shape: StreamShape,
    origin: Origin,
    writers: Vec<Writer>,
    /// All images, where they are compared with a reference.
    collected: Option<Image>,
}

/// A file in the making.
struct Writer {
    slices: Range<usize>,
    series: SeriesWriter,
    bids: Option<BidsFile>,
}

impl<'a> Files<'a> {
    /// The outputs of images of this shape; none is begun.
    pub(super) fn new(args: &'a ReconMri, paths: &'a RunFiles, shape: StreamShape, origin: Origin) -> Self {
        Self { args, paths, shape, origin, writers: Vec::new(), collected: None }
    }

    fn begin(&mut self, volume: &Volume) -> Result<()> {
        let shape = volume.data.shape();
        let zyx = [shape[0], shape[1], shape[2]];
        let parts = image_parts(self.args, &self.shape.labels, volume.stacks.len(), &self.origin)?;
        expect_apart(self.paths, &parts)?;
        for ImagePart { path, stack, bids, .. } in parts {
            let (slices, geometry) = match (stack, volume.stacks.first()) {
                (Some(number), _) => {
                    let first = volume.stacks[..number].iter().map(|stack| stack.slices).sum();
                    let Stack { slices, geometry } = volume.stacks[number];
                    (first..first + slices, geometry)
                }
                (None, first) => (0..zyx[0], first.map_or_else(Default::default, |stack| stack.geometry)),
            };
            let labels: Vec<Label> = match &bids {
                Some(file) => file.volumes.iter().map(|&number| self.shape.labels[number]).collect(),
                None => self.shape.labels.clone(),
            };
            let frames = bids.as_ref().map_or(self.shape.frames, |file| file.volumes.len());
            let shape = SeriesShape { frames, volume: [slices.len(), zyx[1], zyx[2]], geometry };
            let options = WriteOptions {
                repetition_time_s: self.shape.step_s.filter(|_| in_time(&labels)),
                layout: self.shape.layout,
                png: PngOptions::preview(slices.len(), frames),
                values: bids.as_ref().map_or(self.args.numbers.values(), |file| Some(file.values)),
                stored: None,
                hounsfield: Some(false),
                volumes: labels,
                origin: self.origin.clone(),
            };
            let series = SeriesWriter::create(path, &shape, &options)?;
            self.writers.push(Writer { slices, series, bids });
        }
        Ok(())
    }

    /// Writes a volume, and keeps it where it is compared.
    pub(super) fn push(&mut self, volume: &Volume) -> Result<()> {
        if self.writers.is_empty() {
            self.begin(volume)?;
        }
        for Writer { slices, series, bids } in &mut self.writers {
            if bids.as_ref().is_none_or(|file| file.volumes.contains(&volume.index)) {
                series.push(volume.data.slice_axis(Axis(0), slices.clone().into()))?;
            }
        }
        if self.args.run.reference.is_some() {
            let shape = volume.data.shape();
            let shape = io_shape(self.shape.frames, [shape[0], shape[1], shape[2]]);
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
        let Self { shape, origin, writers, collected, .. } = self;
        together(|| {
            let mut named = Vec::new();
            for Writer { series, bids, .. } in writers {
                let path = rayspin_shell::stdout::name(series.path());
                let left_out = series.finish()?;
                left_out.into_iter().for_each(|note| finished.told.say(format!("{path}: {note}")));
                named.extend(bids);
            }
            write_sidecars(origin.protocol.as_deref(), &shape, &named, finished)
        })?;
        let closing = begun.elapsed().as_secs_f64();
        if let Some(times) = &mut finished.times {
            times.write += closing;
            times.wall += closing;
        }
        Ok(collected)
    }

    /// Keeps what is complete, and says what that is.
    pub(super) fn keep_partial(self) {
        for Writer { series, bids, .. } in self.writers {
            let frames = bids.map_or(self.shape.frames, |file| file.volumes.len());
            let (done, name) = (series.pushed(), series.path().display().to_string());
            match series.keep_partial() {
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

/// The `.json` of each file with a name of BIDS.
fn write_sidecars(
    protocol: Option<&Protocol>,
    shape: &StreamShape,
    files: &[BidsFile],
    finished: &mut Finished<'_>,
) -> Result<()> {
    if files.is_empty() {
        return Ok(());
    }
    let nothing = Protocol::default();
    let protocol = protocol.unwrap_or(&nothing);
    for text in Sidecar::untold(protocol, &shape.labels) {
        finished.told.say(text);
    }
    for file in files {
        Sidecar::of(file, protocol, &shape.labels, shape.step_s).write(file)?;
    }
    Ok(())
}

/// `[frame, z, y, x]`, or `[z, y, x]` of a single frame.
fn io_shape(frames: usize, zyx: [usize; 3]) -> Vec<usize> {
    if frames == 1 { zyx.to_vec() } else { [&[frames], &zyx[..]].concat() }
}
