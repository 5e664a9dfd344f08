//! Memory that goes while it cannot be waited for: it is kept until it can be.

#![allow(unsafe_code)]

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use rayspin_core::Result;

use super::{Driver, Memory, Ticket, lock};

/// What is given back at the end of a recording, or once the device is known to be idle.
#[derive(Default)]
pub(super) struct Kept {
    /// Whether something failed that may have left a copy under way, and no wait has succeeded since.
    unsettled: AtomicBool,
    gone: Mutex<Gone>,
}

#[derive(Default)]
pub(super) struct Gone {
    /// Memory of the device: address and bytes.
    pieces: Vec<(u64, u64)>,
    /// Whatever waits for the device when it is dropped.
    values: Vec<Box<dyn Send>>,
}

impl Kept {
    /// Whether memory of the device must be kept for now.
    pub(super) fn unsettled(&self) -> bool {
        self.unsettled.load(Ordering::Acquire)
    }

    pub(super) fn piece(&self, address: u64, bytes: u64) {
        lock(&self.gone).pieces.push((address, bytes));
    }
}

impl Memory {
    /// Keeps `value`, which could not be waited for. It is dropped, and waits again, once this thread does not record and the
    /// device is known to be idle.
    pub(super) fn keep(&self, value: impl Send + 'static) {
        self.gate.goes();
        lock(&self.kept.gone).values.push(Box::new(value));
    }

    /// For memory whose own wait failed: whether nothing is under way any more, so that it may be given back. Where not, because
    /// the device fails or this thread records, it is [kept](Memory::keep).
    pub(super) fn idle(&self, driver: &dyn Driver) -> bool {
        if self.gate.records() {
            return false;
        }
        let _pass = self.gate.pass();
        // Not while another thread finds the device idle: what fails from here on is not part of that.
        let _gone = lock(&self.kept.gone);
        let idle = driver.idle().is_ok();
        if !idle {
            self.kept.unsettled.store(true, Ordering::Release);
        }
        idle
    }

    /// After a failure that may have left a copy under way: waits for the device, and gives back what was kept since. Costs one
    /// read of a flag otherwise. Errors: the device is still not known to be idle; work is being recorded.
    pub(super) fn settle(&self, driver: &dyn Driver) -> Result<()> {
        if !self.kept.unsettled() {
            return Ok(());
        }
        let pass = self.gate.pass_now("waiting for the GPU")?;
        let mut gone = lock(&self.kept.gone);
        driver.idle()?;
        self.kept.unsettled.store(false, Ordering::Release);
        let gone = std::mem::take(&mut *gone);
        drop(pass);
        self.give_back(driver, gone);
        Ok(())
    }

    /// What was kept while this thread recorded, to be [given back](Memory::give_back) when others may go on.
    pub(super) fn kept_so_far(&self) -> Gone {
        let mut gone = lock(&self.kept.gone);
        if self.kept.unsettled() { Gone::default() } else { std::mem::take(&mut *gone) }
    }

    pub(super) fn give_back(&self, driver: &dyn Driver, gone: Gone) {
        let pass = self.gate.pass();
        for (address, bytes) in gone.pieces {
            // SAFETY: the buffer that owned it is gone, and nothing that was asked for before names it: no recording that did is
            // kept, and no copy is under way.
            unsafe { driver.free(address, bytes) };
        }
        drop(pass);
        // Each waits for the device by itself.
        drop(gone.values);
    }
}

impl std::fmt::Debug for Kept {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.unsettled() { "unsettled" } else { "settled" })
    }
}

/// A copy beside the device's work, which is joined and waited for like all other work: not while this thread records.
#[derive(Clone)]
pub(crate) struct Copying {
    pub(super) driver: Arc<dyn Driver>,
    pub(super) memory: Arc<Memory>,
    pub(super) ticket: Arc<dyn Ticket>,
}

impl Copying {
    /// Has later work of the device wait for it. Errors: this thread records; those of the device.
    pub(crate) fn join(&self) -> Result<()> {
        let _pass = self.memory.gate.pass_now("waiting for a copy")?;
        self.ticket.join()
    }

    /// Has the host wait for it. Errors: as [`Copying::join`].
    pub(super) fn wait(&self) -> Result<()> {
        let _pass = self.memory.gate.pass_now("waiting for a copy")?;
        self.ticket.wait()
    }

    /// Whether the device's side of it may be given back, in the order of the device's work.
    pub(crate) fn over(&self) -> bool {
        self.join().is_ok() || self.memory.idle(&*self.driver)
    }

    /// [`Memory::keep`] of what it copies from and to.
    pub(crate) fn keep(&self, ends: impl Send + 'static) {
        self.memory.keep(ends);
    }
}
