//! The scans of a batch go to its processors. Each one works on scans of its own.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rayspin::core::Error;
use rayspin::device::{BackendKind, Device};
use rayspin_shell::{line_of, say};

use super::{Begun, Item, Outcome, Outcomes, Reconstruction, stopped};
use crate::commands::recon::{Made, Ready};

/// The processors of a batch, and the scans that wait for them.
pub(super) struct Lanes<'a> {
    lanes: Vec<Lane>,
    items: &'a [Item],
    outcomes: &'a Outcomes<'a>,
    /// Numbers of scans.
    waiting: Mutex<VecDeque<usize>>,
    /// The scans that GPUs gave back.
    given_back: Mutex<BTreeMap<usize, GivenBack>>,
}

struct Lane {
    number: usize,
    device: Device,
    /// Whether this GPU has failed while there were others.
    lost: AtomicBool,
}

/// A scan that some GPUs could not make.
#[derive(Default)]
struct GivenBack {
    /// By the numbers of their lanes.
    by: Vec<usize>,
    /// GPUs that the scan took down.
    taken_down: usize,
    /// The error of the last one.
    why: String,
}

/// A scan that takes down so many GPUs is the cause, and fails.
const CAUSE: usize = 2;

impl Lane {
    fn works(&self) -> bool {
        !self.lost.load(Ordering::Relaxed)
    }
}

/// Whether a GPU has too little memory, or fails.
fn is_of_gpu(error: &anyhow::Error) -> bool {
    let of_device = |error: &Error| matches!(error, Error::Memory { .. } | Error::Device { .. });
    error.chain().any(|cause| {
        cause.downcast_ref().is_some_and(of_device)
            || matches!(cause.downcast_ref(), Some(rayspin::job::Error::Gpu(_)))
            || matches!(cause.downcast_ref(), Some(rayspin::io::Error::Core { source, .. }) if of_device(source))
    })
}

fn held<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<'a> Lanes<'a> {
    pub(super) fn new<'d>(
        devices: impl Iterator<Item = &'d Device>,
        items: &'a [Item],
        outcomes: &'a Outcomes<'a>,
    ) -> Self {
        let lane = |(number, device): (usize, &Device)| Lane {
            number,
            device: device.clone(),
            lost: AtomicBool::new(false),
        };
        let waiting = Mutex::new((0..items.len()).collect());
        Self {
            lanes: devices.enumerate().map(lane).collect(),
            items,
            outcomes,
            waiting,
            given_back: Mutex::default(),
        }
    }

    /// Reconstructs all scans. A GPU that fails gets no more of them. A scan that a GPU could not make goes
    /// to another one.
    pub(super) fn run(&self) {
        while !stopped() {
            self.refuse_hopeless();
            let mut working = self.lanes.iter().filter(|lane| lane.works());
            let first = working.next().filter(|_| !held(&self.waiting).is_empty());
            let Some(first) = first else { return };
            std::thread::scope(|scope| {
                for lane in working {
                    // Without a thread the others do its work.
                    let _ = std::thread::Builder::new().spawn_scoped(scope, move || self.work(lane));
                }
                self.work(first);
            });
        }
    }

    /// Tells of the scans that no GPU is left for.
    fn refuse_hopeless(&self) {
        let is_hopeless =
            |number: &usize| !self.lanes.iter().any(|lane| lane.works() && !self.gave_back(lane, *number));
        let numbers = std::mem::take(&mut *held(&self.waiting));
        let (hopeless, left): (VecDeque<_>, _) = numbers.into_iter().partition(is_hopeless);
        *held(&self.waiting) = left;
        for number in hopeless {
            let why = held(&self.given_back).remove(&number).map(|given| given.why);
            let why = why.unwrap_or_else(|| "no GPU is left that works".to_owned());
            self.outcomes.add(number, Outcome::Failed(why));
        }
    }

    fn gave_back(&self, lane: &Lane, number: usize) -> bool {
        held(&self.given_back).get(&number).is_some_and(|given| given.by.contains(&lane.number))
    }

    /// The next scan of a processor that works, with its outputs claimed.
    fn next(&self, lane: &Lane) -> Option<Begun> {
        while !stopped() && lane.works() {
            let number = {
                let mut waiting = held(&self.waiting);
                let place = waiting.iter().position(|&number| !self.gave_back(lane, number))?;
                waiting.remove(place)?
            };
            if let Some(begun) = self.outcomes.begin(number) {
                return Some(begun);
            }
        }
        None
    }

    /// What became of a scan. One that a GPU of several could not make waits for another one, if there is one
    /// that has not tried it.
    fn ended(&self, lane: &Lane, begun: Begun, result: anyhow::Result<()>) {
        match result {
            Err(error) if self.lanes.len() > 1 && lane.device.kind() == BackendKind::Cuda => {
                self.failed(lane, begun, error);
            }
            result => self.outcomes.ended(begun.number, begun.start, result),
        }
    }

    fn failed(&self, lane: &Lane, begun: Begun, error: anyhow::Error) {
        let is_lost = lane.device.synchronize().is_err();
        // A scan that was read before the GPU failed fails there too, and is not the cause.
        let takes_down = is_lost && !lane.lost.swap(true, Ordering::Relaxed);
        if takes_down {
            say!("note: {} has failed and gets no more scans: {}", lane.device.name(), line_of(&error));
        }
        let number = begun.number;
        let again = (is_lost || is_of_gpu(&error)) && {
            let mut given_back = held(&self.given_back);
            let given = given_back.entry(number).or_default();
            given.by.push(lane.number);
            given.taken_down += usize::from(takes_down);
            given.why = line_of(&error);
            let other = self.lanes.iter().any(|lane| lane.works() && !given.by.contains(&lane.number));
            other && given.taken_down < CAUSE
        };
        if !again {
            return self.outcomes.ended(number, begun.start, Err(error));
        }
        self.items[number].files.remove_outdated_record();
        // The claim on its outputs ends before another processor can take it.
        drop(begun);
        held(&self.waiting).push_back(number);
    }

    fn work(&self, lane: &Lane) {
        // Where threads cannot start, nothing has begun.
        if self.items.iter().any(|item| item.command.is_alone()) || self.overlapped(lane).is_err() {
            while let Some(begun) = self.next(lane) {
                let made = self.items[begun.number].make(&lane.device);
                self.ended(lane, begun, made);
            }
        }
    }

    /// The next scan is read while one is computed and the last is written.
    ///
    /// Errors: a thread cannot start; no scan has been read then.
    fn overlapped(&self, lane: &Lane) -> std::io::Result<()> {
        // Without room in between: a scan that was read waits for the one that is computed.
        let (read, to_compute) = sync_channel::<(Begun, Ready<'_>)>(0);
        let (computed, to_write) = sync_channel::<(Begun, Made<'_>)>(0);
        std::thread::scope(|scope| {
            std::thread::Builder::new().spawn_scoped(scope, move || {
                for (begun, made) in to_write {
                    self.ended(lane, begun, made.write());
                }
            })?;
            std::thread::Builder::new().spawn_scoped(scope, move || {
                while let Some(begun) = self.next(lane) {
                    let item = &self.items[begun.number];
                    let Reconstruction::Mri(args) = &item.command else { continue };
                    match Ready::read(&item.context, &lane.device, args, item.files.clone()) {
                        Ok(ready) => {
                            if read.send((begun, ready)).is_err() {
                                return;
                            }
                        }
                        Err(error) => self.ended(lane, begun, Err(error)),
                    }
                }
            })?;
            for (begun, ready) in to_compute {
                match ready.reconstruct() {
                    Ok(Some(made)) => {
                        if computed.send((begun, made)).is_err() {
                            break;
                        }
                    }
                    Ok(None) => {}
                    Err(error) => self.ended(lane, begun, Err(error)),
                }
            }
            drop(computed);
            Ok(())
        })
    }
}
