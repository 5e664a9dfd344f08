//! The frames of a series on several devices: each goes to a device that is free, and images come in the
//! order of the frames. While the first device makes an image, the next frames wait for the others.
//!
//! The first device leads: it makes what the other frames of a slice take over (maps, the largest eigenvalue,
//! λ). Frames are independent after that. So a frame's image does not depend on the device that makes it, and
//! the images are those of one device, bit for bit, if the devices are alike.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use ndarray::ArrayD;
use rayspin_core::{C32, Error, Monitor, Result};
use rayspin_device::Device;

use super::run::{Begun, Choice, Nothing, SeriesRun};
use super::{FrameImage, ReconOptions, Reconstructor};
use crate::encoding::SharedMaps;
use crate::scan::{Frame, Label};

/// Images that may wait for an earlier one, for each device.
const AHEAD: usize = 2;

/// A device beside the first, whose thread takes frames that wait.
struct Lane {
    number: usize,
    device: Device,
}

struct Job {
    number: usize,
    label: Label,
    frame: Frame,
    choice: Choice,
}

/// What a device's thread says.
enum Said {
    Done(Box<Done>),
    /// It takes no more frames.
    Ended(usize),
}

struct Done {
    lane: usize,
    number: usize,
    label: Label,
    frame: Frame,
    choice: Choice,
    result: Result<FrameImage>,
}

/// An image that may wait for those before it.
enum Ready {
    Empty(Box<Nothing>),
    Made { label: Label, dims: usize, made: Box<FrameImage> },
}

/// Frames that wait for a device beside the first, the oldest first.
struct Queue<J> {
    waiting: Mutex<Waiting<J>>,
    changed: Condvar,
}

struct Waiting<J> {
    jobs: VecDeque<J>,
    /// Devices that have a frame in work.
    busy: usize,
    /// Devices that are to take no more.
    leaving: BTreeSet<usize>,
    closed: bool,
}

impl<J> Queue<J> {
    fn new() -> Self {
        let waiting = Waiting { jobs: VecDeque::new(), busy: 0, leaving: BTreeSet::new(), closed: false };
        Self { waiting: Mutex::new(waiting), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting<J>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut Waiting<J>)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }

    /// The next frame for a device, when there is one; none where it is to end.
    fn next(&self, lane: usize) -> Option<J> {
        let mut waiting = self.lock();
        loop {
            if waiting.closed || waiting.leaving.contains(&lane) {
                return None;
            }
            if let Some(job) = waiting.jobs.pop_front() {
                waiting.busy += 1;
                return Some(job);
            }
            waiting = self.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Takes the oldest frame if more than `ahead` are left once each idle one of `lanes` devices has taken
    /// one.
    fn beyond(&self, lanes: usize, ahead: usize) -> Option<J> {
        let mut waiting = self.lock();
        let idle = lanes.saturating_sub(waiting.busy);
        if waiting.jobs.len() > idle + ahead { waiting.jobs.pop_front() } else { None }
    }
}

/// Gives the frames of a series to devices.
pub(super) struct Lanes<'a, 'm> {
    pub(super) run: &'a mut SeriesRun,
    /// Devices that take frames.
    lanes: Vec<Lane>,
    queue: &'a Queue<Job>,
    said: Receiver<Said>,
    /// Frames that wait for a device, or that one has.
    away: usize,
    ready: BTreeMap<usize, Ready>,
    /// Frames that came, and images that were given.
    came: usize,
    given: usize,
    monitor: &'a Monitor<'m>,
}

impl Drop for Lanes<'_, '_> {
    fn drop(&mut self) {
        self.queue.change(|waiting| waiting.closed = true);
    }
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
    let queue = Queue::new();
    std::thread::scope(|scope| {
        let (says, said) = channel();
        let (queue, beside, options) = (&queue, run.beside(), run.options_beside());
        let (lanes, ready) = (Vec::with_capacity(beside.len()), BTreeMap::new());
        let mut lanes = Lanes { run, lanes, queue, said, away: 0, ready, came: 0, given: 0, monitor };
        for (number, device) in beside.into_iter().enumerate() {
            let (own, options, says) = (device.clone(), options.clone(), says.clone());
            let refused = |error: std::io::Error| Error::Device {
                what: "starting a thread for a device".to_owned(),
                detail: error.to_string(),
            };
            std::thread::Builder::new()
                .spawn_scoped(scope, move || {
                    serve(number, &own, &options, queue, &Says(number, says), monitor)
                })
                .map_err(refused)?;
            lanes.lanes.push(Lane { number, device });
        }
        drop(says);
        work(&mut lanes)
    })
}

/// Sends a thread's results, and a last message when the thread ends, also after a panic.
struct Says(usize, Sender<Said>);

impl Drop for Says {
    fn drop(&mut self) {
        let _ = self.1.send(Said::Ended(self.0));
    }
}

/// Reconstructs frames that wait, until there are no more or the device fails.
fn serve(
    lane: usize,
    device: &Device,
    options: &ReconOptions,
    queue: &Queue<Job>,
    says: &Says,
    monitor: &Monitor<'_>,
) {
    let mut reconstructor = None;
    let mut moved: BTreeMap<u16, SharedMaps> = BTreeMap::new();
    while let Some(Job { number, label, frame, choice }) = queue.next(lane) {
        let mut own = choice.clone();
        let made = || {
            let reconstructor =
                reconstructor.get_or_insert_with(|| Reconstructor::of_checked(device, options.clone()));
            if let Some(maps) = own.shared_maps() {
                // The slice's maps come here once.
                let here = moved.entry(label.slice).or_insert_with(|| maps.clone());
                here.on(device)?;
                maps.clone_from(here);
            }
            own.apply_to(reconstructor);
            reconstructor.kept_frame(&frame, monitor)
        };
        let result = made();
        let fails = result.as_ref().err().is_some_and(is_of_device);
        queue.lock().busy -= 1;
        let done = Done { lane, number, label, frame, choice, result };
        if says.1.send(Said::Done(Box::new(done))).is_err() || fails {
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
        match !self.lanes.is_empty() && self.run.is_learned(label) {
            true => {
                let choice = self.run.choice(&label, &frame)?;
                self.away += 1;
                self.queue.change(|waiting| waiting.jobs.push_back(Job { number, label, frame, choice }));
                // One more for each device, so that none waits while the first is at work.
                while let Some(job) = self.beyond(self.lanes.len()) {
                    self.take_back(job)?;
                }
            }
            false => self.lead(number, label, frame)?,
        }
        self.give(take)?;
        while self.ready.len() > AHEAD * (1 + self.lanes.len()) {
            self.wait()?;
            self.give(take)?;
        }
        Ok(())
    }

    /// Makes the images of all frames that came.
    pub(super) fn finish(&mut self, take: &mut Take<'_>) -> Result<()> {
        self.give(take)?;
        while self.given < self.came {
            match self.beyond(0) {
                Some(job) => self.take_back(job)?,
                None => self.wait()?,
            }
            self.give(take)?;
        }
        Ok(())
    }

    /// The oldest queued frame, if more than `ahead` are left for the devices that are busy.
    fn beyond(&mut self, ahead: usize) -> Option<Job> {
        let job = self.queue.beyond(self.lanes.len(), ahead);
        self.away -= usize::from(job.is_some());
        job
    }

    fn number(&mut self) -> usize {
        self.came += 1;
        self.came - 1
    }

    /// Reconstructs a queued frame, or one that came back, on the first device.
    fn take_back(&mut self, Job { number, label, frame, choice }: Job) -> Result<()> {
        let (dims, monitor) = (frame.matrix.len(), self.monitor);
        let made = self.led(|run| run.chosen_frame(label, &frame, choice.clone(), monitor))?;
        self.ready.insert(number, Ready::Made { label, dims, made: Box::new(made) });
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
                    self.queue.change(|waiting| _ = waiting.leaving.insert(lane.number));
                    self.run.lead_by(lane.device);
                    self.run.note_failure(&failed, &error);
                }
                other => return other,
            }
        }
    }

    /// Waits for an image of another device. Makes one where no other device is left.
    fn wait(&mut self) -> Result<()> {
        if self.lanes.is_empty()
            && let Some(job) = self.beyond(0)
        {
            return self.take_back(job);
        }
        if self.away == 0 {
            return Err(Error::value("images of several devices", "one for each frame", "fewer"));
        }
        let ended = |_| Error::value("threads of devices", "at least one", 0);
        let said = self.said.recv().map_err(ended)?;
        self.heard(said)
    }

    /// Waits for all devices.
    fn collect_all(&mut self) -> Result<()> {
        while self.away > 0 && !self.lanes.is_empty() {
            self.wait()?;
        }
        Ok(())
    }

    /// Takes what a device has made. One that failed gets no more frames, and the first device makes its
    /// frame anew.
    fn heard(&mut self, said: Said) -> Result<()> {
        let Done { lane, number, label, frame, choice, result } = match said {
            Said::Done(done) => *done,
            Said::Ended(number) => {
                return match self.lanes.iter().find(|lane| lane.number == number) {
                    Some(lane) => Err(Error::Device {
                        what: lane.device.describe(),
                        detail: "its thread ended".to_owned(),
                    }),
                    None => Ok(()),
                };
            }
        };
        self.away -= 1;
        match result {
            Ok(made) => {
                let dims = frame.matrix.len();
                self.ready.insert(number, Ready::Made { label, dims, made: Box::new(made) });
                Ok(())
            }
            Err(error) if is_of_device(&error) => {
                if let Some(place) = self.lanes.iter().position(|one| one.number == lane) {
                    let failed = self.lanes.remove(place).device.describe();
                    self.run.note_failure(&failed, &error);
                }
                self.take_back(Job { number, label, frame, choice })
            }
            Err(error) => Err(error),
        }
    }

    /// Gives the images whose turn it is, and looks which devices are done.
    fn give(&mut self, take: &mut Take<'_>) -> Result<()> {
        while let Ok(said) = self.said.try_recv() {
            self.heard(said)?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_leaves_frames_to_idle_devices() {
        let queue = Queue::new();
        queue.change(|waiting| waiting.jobs.extend(0..4));
        // Two idle devices take two, and one more may wait for each.
        assert_eq!(queue.beyond(2, 2), None);
        assert_eq!(queue.beyond(2, 1), Some(0), "the oldest");
        assert_eq!(queue.next(0), Some(1));
        assert_eq!(queue.beyond(2, 1), None);
        // The busy device takes none of the two frames left.
        assert_eq!(queue.beyond(2, 0), Some(2));
        assert_eq!(queue.beyond(2, 0), None);
        queue.change(|waiting| _ = waiting.leaving.insert(1));
        assert_eq!(queue.next(1), None, "it is to take no more");
        assert_eq!(queue.next(0), Some(3));
        queue.change(|waiting| {
            waiting.jobs.push_back(4);
            waiting.closed = true;
        });
        assert_eq!(queue.next(0), None);
        assert_eq!(queue.beyond(0, 0), Some(4), "no device is left");
    }

    #[test]
    fn a_device_waits_for_a_frame_and_ends_with_the_queue() {
        let queue = Queue::new();
        std::thread::scope(|scope| {
            let taken = scope.spawn(|| std::iter::from_fn(|| queue.next(0)).collect::<Vec<_>>());
            for number in 0..3 {
                queue.change(|waiting| waiting.jobs.push_back(number));
                while !queue.lock().jobs.is_empty() {
                    std::thread::yield_now();
                }
            }
            queue.change(|waiting| waiting.closed = true);
            assert_eq!(taken.join().unwrap(), [0, 1, 2]);
        });
    }
}
