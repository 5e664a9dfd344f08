//! The frames of a series on several devices: each goes to a device that is free, and images come in the
//! order of the frames.
//!
//! The first device leads: it makes what the other frames of a slice take over (maps, the largest eigenvalue,
//! λ). Frames are independent after that. So a frame's image does not depend on the device that makes it, and
//! the images are those of one device, bit for bit, if the devices are alike.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};

use ndarray::ArrayD;
use rayspin_core::{C32, Error, Monitor, Result};
use rayspin_device::Device;

use super::run::{Begun, Choice, Nothing, SeriesRun};
use super::{FrameImage, ReconOptions, Reconstructor};
use crate::encoding::SharedMaps;
use crate::prepare::Mixing;
use crate::scan::{Frame, Label};

/// Images that may wait for an earlier one, for each device.
const AHEAD: usize = 2;

/// A device beside the first, and the thread that gives it work.
struct Lane {
    device: Device,
    jobs: Sender<Job>,
    results: Receiver<Done>,
    /// The number of the frame in work.
    busy: Option<usize>,
}

struct Job {
    label: Label,
    frame: Frame,
    choice: Choice,
}

struct Done {
    label: Label,
    frame: Frame,
    /// What its coils became.
    mixing: Option<Arc<Mixing>>,
    result: Result<Box<FrameImage>>,
}

/// An image that may wait for those before it.
enum Ready {
    Empty(Box<Nothing>),
    Made { label: Label, dims: usize, made: Box<FrameImage> },
}

/// Gives the frames of a series to devices.
pub(super) struct Lanes<'a, 'm> {
    pub(super) run: &'a mut SeriesRun,
    lanes: Vec<Lane>,
    ready: BTreeMap<usize, Ready>,
    /// Frames that came, and images that were given.
    came: usize,
    given: usize,
    monitor: &'a Monitor<'m>,
}

/// Takes images in the order of the frames.
pub(super) type Take<'t> = dyn FnMut(ArrayD<C32>, &mut SeriesRun) -> Result<()> + 't;

/// Calls `work` with the devices of the run, and ends their threads after it.
///
/// Errors: those of `work`; a thread that does not start.
pub(super) fn with_lanes<R, E: From<Error>>(
    run: &mut SeriesRun,
    monitor: &Monitor<'_>,
    work: impl FnOnce(&mut Lanes<'_, '_>) -> std::result::Result<R, E>,
) -> std::result::Result<R, E> {
    std::thread::scope(|scope| {
        let mut lanes = Vec::new();
        for device in run.beside() {
            let (jobs, given) = channel();
            let (done, results) = channel();
            let (own, options) = (device.clone(), run.options_beside());
            let refused = |error: std::io::Error| Error::Device {
                what: "starting a thread for a device".to_owned(),
                detail: error.to_string(),
            };
            std::thread::Builder::new()
                .spawn_scoped(scope, move || serve(&own, &options, &given, &done, monitor))
                .map_err(refused)?;
            lanes.push(Lane { device, jobs, results, busy: None });
        }
        work(&mut Lanes { run, lanes, ready: BTreeMap::new(), came: 0, given: 0, monitor })
    })
}

/// Reconstructs the frames that come, until no more do.
fn serve(
    device: &Device,
    options: &ReconOptions,
    jobs: &Receiver<Job>,
    done: &Sender<Done>,
    monitor: &Monitor<'_>,
) {
    let mut reconstructor = None;
    let mut moved: BTreeMap<u16, SharedMaps> = BTreeMap::new();
    for Job { label, frame, mut choice } in jobs {
        let mixing = choice.mixing.clone();
        let made = || {
            let reconstructor = match &mut reconstructor {
                Some(made) => made,
                None => reconstructor.insert(Reconstructor::new(device, options.clone())?),
            };
            if let Some(maps) = choice.shared_maps() {
                // The slice's maps come here once.
                let own = moved.entry(label.slice).or_insert_with(|| maps.clone());
                own.on(device)?;
                maps.clone_from(own);
            }
            choice.apply_to(reconstructor);
            reconstructor.kept_frame(&frame, monitor)
        };
        let result = made().map(Box::new);
        if done.send(Done { label, frame, mixing, result }).is_err() {
            return;
        }
    }
}

impl Lanes<'_, '_> {
    /// Takes the next frame. `take` gets the images that are complete.
    ///
    /// Errors: as [`Reconstructor::frame`], of this frame or an earlier one; those of `take`.
    pub(super) fn push(&mut self, label: Label, frame: Frame, take: &mut Take<'_>) -> Result<()> {
        let monitor = self.monitor;
        let number = match self.led(|run| run.begin(label, &frame, monitor))? {
            Begun::Empty(nothing) => {
                let number = self.number();
                self.ready.insert(number, Ready::Empty(nothing));
                return self.give(take);
            }
            Begun::Together => {
                self.run.keep(label, frame);
                return Ok(());
            }
            Begun::Frame => self.number(),
        };
        self.give(take)?;
        let free = self.lanes.iter().position(|lane| lane.busy.is_none());
        match free.filter(|_| self.run.is_learned(label)) {
            Some(lane) => self.send(lane, number, label, frame)?,
            None => self.lead(number, label, frame)?,
        }
        self.give(take)?;
        while self.ready.len() > AHEAD * (1 + self.lanes.len()) {
            self.wait()?;
            self.give(take)?;
        }
        Ok(())
    }

    /// Waits for all frames that came.
    pub(super) fn finish(&mut self, take: &mut Take<'_>) -> Result<()> {
        self.give(take)?;
        while self.given < self.came {
            self.wait()?;
            self.give(take)?;
        }
        Ok(())
    }

    fn number(&mut self) -> usize {
        self.came += 1;
        self.came - 1
    }

    fn send(&mut self, lane: usize, number: usize, label: Label, frame: Frame) -> Result<()> {
        let choice = self.run.choice(&label, &frame)?;
        self.lanes[lane].busy = Some(number);
        // A thread that has ended leaves no result, which the next one to look finds.
        let _ = self.lanes[lane].jobs.send(Job { label, frame, choice });
        Ok(())
    }

    /// Estimates the maps of a slice from a frame that is no image of the series, for all its images.
    pub(super) fn learn_maps(&mut self, label: Label, frame: &Frame) -> Result<()> {
        let monitor = self.monitor;
        self.led(|run| run.learn_maps(label, frame, monitor))
    }

    /// Reconstructs a frame on the first device.
    fn lead(&mut self, number: usize, label: Label, frame: Frame) -> Result<()> {
        let (dims, monitor) = (frame.matrix.len(), self.monitor);
        let made = match self.lanes.is_empty() {
            true => self.run.frame(label, frame, monitor)?,
            false => self.led(|run| run.kept_frame(label, &frame, monitor))?,
        };
        self.ready.insert(number, Ready::Made { label, dims, made: Box::new(made) });
        Ok(())
    }

    /// Does some work on the first device. If that fails, another device becomes the first and does it.
    fn led<T>(&mut self, mut work: impl FnMut(&mut SeriesRun) -> Result<T>) -> Result<T> {
        loop {
            let first = self.run.device().clone();
            match work(self.run) {
                Err(error) if is_of_device(&error) => {
                    let failed = first.describe();
                    self.collect_all()?;
                    // Frames that came back may have needed another leader already.
                    if !self.run.device().same_as(&first) {
                        continue;
                    }
                    let Some(lane) = self.lanes.pop() else {
                        return Err(error);
                    };
                    self.run.lead_by(lane.device);
                    self.run.note_failure(&failed, &error);
                }
                other => return other,
            }
        }
    }

    /// Waits for the device that makes the next image.
    fn wait(&mut self) -> Result<()> {
        let next = self.lanes.iter().position(|lane| lane.busy == Some(self.given));
        let Some(lane) = next else {
            return Err(Error::value("images of several devices", "one for each frame", "fewer"));
        };
        let done = self.lanes[lane].results.recv().ok();
        self.received(lane, done)
    }

    /// Waits for all devices.
    fn collect_all(&mut self) -> Result<()> {
        while let Some(lane) = self.lanes.iter().position(|lane| lane.busy.is_some()) {
            let done = self.lanes[lane].results.recv().ok();
            self.received(lane, done)?;
        }
        Ok(())
    }

    /// Takes what a device has made. One that failed gets no more frames, and the first device makes its
    /// frame anew.
    fn received(&mut self, lane: usize, done: Option<Done>) -> Result<()> {
        let Some(number) = self.lanes[lane].busy.take() else { return Ok(()) };
        let Some(Done { label, frame, mixing, result }) = done else {
            return Err(Error::Device {
                what: self.lanes[lane].device.describe(),
                detail: "its thread ended".to_owned(),
            });
        };
        match result {
            Ok(made) => {
                let dims = frame.matrix.len();
                self.ready.insert(number, Ready::Made { label, dims, made });
                Ok(())
            }
            Err(error) if is_of_device(&error) => {
                let failed = self.lanes.remove(lane).device.describe();
                self.run.note_failure(&failed, &error);
                // The first device has prepared the coils of a later frame.
                let later = self.run.set_mixing(mixing);
                let done = self.lead(number, label, frame);
                self.run.set_mixing(later);
                done
            }
            Err(error) => Err(error),
        }
    }

    /// Gives the images whose turn it is, and looks which devices are done.
    fn give(&mut self, take: &mut Take<'_>) -> Result<()> {
        let mut lane = 0;
        while lane < self.lanes.len() {
            let before = self.lanes.len();
            if self.lanes[lane].busy.is_some() {
                match self.lanes[lane].results.try_recv() {
                    Ok(done) => self.received(lane, Some(done))?,
                    Err(TryRecvError::Empty) => {}
                    Err(TryRecvError::Disconnected) => self.received(lane, None)?,
                }
            }
            // Devices that failed have left.
            lane += usize::from(self.lanes.len() == before);
        }
        while let Some(ready) = self.ready.remove(&self.given) {
            let image = match ready {
                Ready::Empty(nothing) => self.run.end_empty(*nothing),
                Ready::Made { label, dims, made } => self.run.end(label, *made, dims)?,
            };
            self.given += 1;
            take(image, self.run)?;
        }
        Ok(())
    }
}

/// Whether the device is at fault, so that another one may do better.
fn is_of_device(error: &Error) -> bool {
    matches!(error, Error::Device { .. } | Error::Memory { .. })
}
