//! The scans of a batch go to its processors: each takes the next scan when it is free.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Mutex, PoisonError};

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
}

struct Lane {
    device: Device,
    /// Whether this GPU has failed while there were others.
    lost: AtomicBool,
}

impl Lane {
    fn works(&self) -> bool {
        !self.lost.load(Ordering::Relaxed)
    }
}

impl<'a> Lanes<'a> {
    pub(super) fn new<'d>(
        devices: impl Iterator<Item = &'d Device>,
        items: &'a [Item],
        outcomes: &'a Outcomes<'a>,
    ) -> Self {
        let lane = |device: &Device| Lane { device: device.clone(), lost: AtomicBool::new(false) };
        let waiting = Mutex::new((0..items.len()).collect());
        Self { lanes: devices.map(lane).collect(), items, outcomes, waiting }
    }

    /// Reconstructs all scans. A GPU that fails gets no more, and its scan goes to another one.
    pub(super) fn run(&self) {
        while !stopped() && !self.waiting().is_empty() {
            let mut working = self.lanes.iter().filter(|lane| lane.works());
            let Some(first) = working.next() else { break };
            std::thread::scope(|scope| {
                for lane in working {
                    // Without a thread the others do its work.
                    let _ = std::thread::Builder::new().spawn_scoped(scope, move || self.work(lane));
                }
                self.work(first);
            });
        }
        if !stopped() {
            for number in std::mem::take(&mut *self.waiting()) {
                self.outcomes.add(number, Outcome::Failed("no GPU is left that works".to_owned()));
            }
        }
    }

    fn waiting(&self) -> std::sync::MutexGuard<'_, VecDeque<usize>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next scan of a processor that works, with its outputs claimed.
    fn next(&self, lane: &Lane) -> Option<Begun> {
        while !stopped() && lane.works() {
            let number = self.waiting().pop_front()?;
            if let Some(begun) = self.outcomes.begin(number) {
                return Some(begun);
            }
        }
        None
    }

    /// What became of a scan. Where a GPU of several has failed, the scan waits for another one.
    fn ended(&self, lane: &Lane, begun: Begun, result: anyhow::Result<()>) {
        if let Err(error) = &result
            && self.lanes.len() > 1
            && lane.device.kind() == BackendKind::Cuda
            && lane.device.synchronize().is_err()
        {
            if !lane.lost.swap(true, Ordering::Relaxed) {
                say!(
                    "note: {} has failed and gets no more scans: {}",
                    lane.device.describe(),
                    line_of(error)
                );
            }
            let number = begun.number;
            // The claim on its outputs ends before another processor can take it.
            drop(begun);
            self.items[number].files.remove_outdated_record();
            self.waiting().push_front(number);
            return;
        }
        self.outcomes.ended(begun.number, begun.start, result);
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
