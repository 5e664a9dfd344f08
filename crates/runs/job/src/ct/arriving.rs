//! Views that are added to a volume as they arrive.

use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use ndarray::{Array3, Array4};
use rayspin_core::{Error, Image, Monitor, ProjectionGeometry};
use rayspin_ct::corrections::Corrections;
use rayspin_ct::recon::{self, ReconOptions, Reconstruction, slices_at_a_time};
use rayspin_device::Device;
use rayspin_io::png::PngOptions;
use rayspin_io::{self as io, Projections, WriteOptions};
use rayspin_run::{Recoverable, with_recovery};

use super::read::Passes;
use crate::Result;

/// Bytes of the views that are added at a time, at most.
const BATCH: usize = 32 << 20;
/// Parts in which views are added at least, so that a picture grows; each but the first takes a pass over the
/// volume.
const PARTS: usize = 16;
/// Views of a part, at least.
const LEAST: usize = 8;
/// Time between two pictures of the middle slice.
const PICTURE: Duration = Duration::from_secs(1);

/// A reconstruction of views that arrive.
pub(super) struct Stream<'a> {
    pub(super) geometry: &'a ProjectionGeometry,
    pub(super) options: &'a ReconOptions,
    pub(super) preview: Option<&'a Path>,
    pub(super) device: Device,
    /// Whether the CPU takes over when a GPU fails: views can be read again.
    pub(super) finish_on_cpu: bool,
    pub(super) corrections: Arriving<'a>,
}

/// How views are corrected that arrive.
pub(super) struct Arriving<'a> {
    pub(super) corrections: &'a Corrections,
    pub(super) pixel_mm: Option<[f64; 2]>,
}

impl Recoverable for Stream<'_> {
    fn device(&self) -> &Device {
        &self.device
    }

    fn finish_on_cpu(&self) -> bool {
        self.finish_on_cpu
    }

    fn give_back(&mut self) {}

    fn reduce_batch(&mut self) -> rayspin_core::Result<Option<String>> {
        Ok(None)
    }

    fn move_to(&mut self, device: Device) {
        self.device = device;
    }
}

/// Views that are added at a time.
pub(super) fn at_a_time(geometry: &ProjectionGeometry) -> usize {
    let [views, rows, columns] = geometry.shape();
    let fit = BATCH / (rows * columns * size_of::<f32>()).max(1);
    fit.min(views.div_ceil(PARTS).max(LEAST)).clamp(1, views)
}

impl Stream<'_> {
    /// Makes the volume slab by slab, each of all views, and gives each part to `deliver` with its first
    /// slice. Returns what was assumed or changed, for people.
    ///
    /// Errors: as [`Stream::slab`], errors of `deliver`.
    pub(super) fn run<E: From<crate::Error> + From<Error>>(
        &mut self,
        passes: &mut Passes,
        monitor: &Monitor<'_>,
        deliver: &mut dyn FnMut(Array3<f32>) -> std::result::Result<(), E>,
    ) -> std::result::Result<Vec<String>, E> {
        let (depth, some) = (self.options.grid.shape_zyx()[0], slices_at_a_time(self.options));
        let mut notes = Vec::new();
        for first in (0..depth).step_by(some) {
            let count = some.min(depth - first);
            let options =
                ReconOptions { grid: self.options.grid.slab(first, count)?, ..self.options.clone() };
            let made = with_recovery(self, &mut notes, |stream, _| {
                let made = passes.start().and_then(|views| stream.slab(views, &options, monitor));
                // Errors of the device decide whether the run goes on.
                match made {
                    Ok(made) => Ok(Ok(made)),
                    Err(crate::Error::Core(error)) => Err(error),
                    Err(other) => Ok(Err(other)),
                }
            })??;
            if first == 0 {
                notes.extend(made.notes);
            }
            deliver(made.volume)?;
            if some < depth {
                monitor.note(&format!("slices {first} to {} of {depth}", first + count - 1));
            }
        }
        Ok(notes)
    }

    /// Adds up all views: while some are filtered and projected back, the next ones are read.
    ///
    /// Errors: a stream that ends early; as [`recon::Arriving::add`]; an interruption.
    fn slab(
        &self,
        mut source: Projections,
        options: &ReconOptions,
        monitor: &Monitor<'_>,
    ) -> Result<Reconstruction> {
        let views = self.geometry.views().len();
        let some = at_a_time(self.geometry);
        let mut volume = recon::Arriving::new(&self.device, self.geometry, options)?;
        let (sender, receiver) = sync_channel(0);
        let (last_sender, last) = sync_channel(1);
        let host = self.device.host();
        // Nobody waits for this thread: an interrupted run ends while it reads from a pipe.
        let reader = thread::Builder::new().name("views".into()).spawn(move || {
            loop {
                let read = source.lines(some, host.cpu_side());
                let ends = !matches!(&read, Ok(values) if !values.is_empty());
                if ends {
                    // The channel has room for it.
                    let _ = last_sender.try_send(source.notes());
                }
                if sender.send(read).is_err() || ends {
                    return;
                }
            }
        });
        let broken = |what: &str, error: &dyn std::fmt::Display| Error::Numerical {
            what: what.to_owned(),
            detail: error.to_string(),
        };
        reader.map_err(|error| broken("thread that reads views", &error))?;
        let mut shown = Instant::now();
        monitor.stage("views", views.div_ceil(some), || {
            while volume.views() < views {
                let lines = loop {
                    match receiver.recv_timeout(Duration::from_millis(100)) {
                        Ok(lines) => break lines?,
                        Err(RecvTimeoutError::Timeout) => monitor.check()?,
                        Err(error) => return Err(broken("reading views", &error).into()),
                    }
                };
                volume.add(self.corrected(lines)?)?;
                monitor.step(&format!("{} of {views} views", volume.views()))?;
                if volume.views() == views || shown.elapsed() >= PICTURE {
                    self.show(&volume)?;
                    shown = Instant::now();
                }
            }
            Ok::<_, crate::Error>(())
        })?;
        let mut made = volume.finish()?;
        // The thread finds no more views, and says what was mended.
        let _ = receiver.recv();
        made.notes.extend(last.recv().unwrap_or_default());
        Ok(made)
    }

    /// Views as they arrived, corrected one by one.
    fn corrected(&self, lines: Vec<f32>) -> Result<Vec<f32>> {
        let Arriving { corrections, pixel_mm } = &self.corrections;
        let [_, rows, columns] = self.geometry.shape();
        let views = lines.len() / (rows * columns);
        let found = [lines.len()];
        let wrong = |_| Error::shape("views", &[views, rows, columns], &found);
        let mut lines = Array3::from_shape_vec((views, rows, columns), lines).map_err(wrong)?;
        corrections.arriving(&self.device, &mut lines, *pixel_mm)?;
        Ok(lines.into_raw_vec_and_offset().0)
    }

    /// Writes the middle slice of the views so far.
    fn show(&self, volume: &recon::Arriving) -> Result<()> {
        let Some(path) = self.preview else { return Ok(()) };
        let [nz, ny, nx] = self.options.grid.shape_zyx();
        let values = volume.slice(nz / 2)?;
        let found = [values.len()];
        let wrong = |_| Error::shape("middle slice", &[ny, nx], &found);
        let image = Array4::from_shape_vec((1, 1, ny, nx), values).map_err(wrong)?.into_dyn();
        let image = Image::new(image, self.options.grid.geometry())?;
        let png = PngOptions::preview(1, 1);
        let options = WriteOptions { png, hounsfield: Some(false), ..WriteOptions::default() };
        io::atomic::at_once(|| io::write_image(path, &image, &options))?;
        Ok(())
    }
}
