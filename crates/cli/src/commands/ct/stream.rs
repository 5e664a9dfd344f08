//! Views that are added to a volume as they arrive.

use std::path::Path;
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use ndarray::{Array3, Array4};
use rayspin::core::{C32, Image, Monitor, ProjectionGeometry};
use rayspin::ct::corrections::Corrections;
use rayspin::ct::recon::{self, ReconOptions, Reconstruction};
use rayspin::device::Device;
use rayspin::io::npy::NpyStream;

use crate::commands::files;

/// Bytes of the views that are added at a time, at most.
const BATCH: usize = 32 << 20;
/// Parts in which views are added at least, so that a picture grows; each but the first takes a pass over the volume.
const PARTS: usize = 16;
/// Views of a part, at least.
const LEAST: usize = 8;
/// Time between two pictures of the middle slice.
const PICTURE: Duration = Duration::from_secs(1);

/// A reconstruction of views that arrive.
pub(super) struct Stream<'a> {
    pub(super) device: &'a Device,
    pub(super) geometry: &'a ProjectionGeometry,
    pub(super) options: &'a ReconOptions,
    pub(super) preview: Option<&'a Path>,
    pub(super) corrections: Arriving<'a>,
}

/// How views are corrected that arrive.
pub(super) struct Arriving<'a> {
    pub(super) corrections: &'a Corrections,
    pub(super) pixel_mm: Option<[f64; 2]>,
}

/// Views that are added at a time.
pub(super) fn at_a_time(geometry: &ProjectionGeometry) -> usize {
    let [views, rows, columns] = geometry.shape();
    let fit = BATCH / (rows * columns * size_of::<f32>()).max(1);
    fit.min(views.div_ceil(PARTS).max(LEAST)).clamp(1, views)
}

impl Stream<'_> {
    /// Adds up all views: while some are filtered and projected back, the next ones are read.
    ///
    /// Errors: a stream that ends early; as [`Arriving::add`]; an interruption.
    pub(super) fn volume(&self, mut stream: NpyStream, monitor: &Monitor<'_>) -> Result<Reconstruction> {
        let [views, rows, columns] = self.geometry.shape();
        let some = at_a_time(self.geometry);
        let mut volume = recon::Arriving::new(self.device, self.geometry, self.options)?;
        let (sender, receiver) = sync_channel(0);
        // Nobody waits for this thread: an interrupted run ends while it reads from a pipe.
        thread::Builder::new().name("views".into()).spawn(move || {
            loop {
                let read = stream.read(some * rows * columns);
                let last = !matches!(&read, Ok(values) if !values.is_empty());
                if sender.send(read).is_err() || last {
                    return;
                }
            }
        })?;
        let mut shown = Instant::now();
        monitor.stage("views", views.div_ceil(some), || {
            while volume.views() < views {
                let lines = loop {
                    match receiver.recv_timeout(Duration::from_millis(100)) {
                        Ok(lines) => break lines?,
                        Err(std::sync::mpsc::RecvTimeoutError::Timeout) => monitor.check()?,
                        Err(e) => return Err(e).context("reading views"),
                    }
                };
                volume.add(self.corrected(lines)?)?;
                monitor.step(&format!("{} of {views} views", volume.views()))?;
                if volume.views() == views || shown.elapsed() >= PICTURE {
                    self.show(&volume)?;
                    shown = Instant::now();
                }
            }
            anyhow::Ok(())
        })?;
        Ok(volume.finish()?)
    }

    /// Views as they arrived, corrected one by one.
    fn corrected(&self, lines: Vec<f32>) -> Result<Vec<f32>> {
        let Arriving { corrections, pixel_mm } = &self.corrections;
        let [_, rows, columns] = self.geometry.shape();
        let views = lines.len() / (rows * columns);
        let mut lines = Array3::from_shape_vec((views, rows, columns), lines)?;
        corrections.arriving(self.device, &mut lines, *pixel_mm)?;
        Ok(lines.into_raw_vec_and_offset().0)
    }

    /// Writes the middle slice of the views so far.
    fn show(&self, volume: &recon::Arriving) -> Result<()> {
        let Some(path) = self.preview else { return Ok(()) };
        let [nz, ny, nx] = self.options.grid.shape_zyx();
        let values = volume.slice(nz / 2)?.into_iter().map(|value| C32::new(value, 0.0)).collect();
        let image = Array4::from_shape_vec((1, 1, ny, nx), values)?.into_dyn();
        let image = Image::new(image, self.options.grid.geometry())?;
        files::write_image(path, &image, Default::default(), None)?;
        Ok(())
    }
}
