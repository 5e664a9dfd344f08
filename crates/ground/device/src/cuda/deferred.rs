//! Memory that is dropped while the device may still use it: freeing it is deferred until the device is known
//! to be idle.

#![allow(unsafe_code)]

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use rayspin_core::Result;

use super::{Driver, Memory, Ticket, lock};

/// Memory that will be freed at the end of a recording, or once the device is known to be idle.
#[derive(Default)]
pub(super) struct DeferredFrees {
    /// Whether a failure may have left a copy under way and no wait has succeeded since.
    unsettled: AtomicBool,
    gone: Mutex<Deferred>,
}

#[derive(Default)]
pub(super) struct Deferred {
    /// Device memory: address and bytes.
    pieces: Vec<(u64, u64)>,
    /// Values that wait for the device when they are dropped.
    values: Vec<Box<dyn Send>>,
}

impl DeferredFrees {
    /// Whether device memory must not be freed for now.
    pub(super) fn unsettled(&self) -> bool {
        self.unsettled.load(Ordering::Acquire)
    }

    pub(super) fn defer_free(&self, address: u64, bytes: u64) {
        lock(&self.gone).pieces.push((address, bytes));
    }
}

impl Memory {
    /// Defers the drop of `value`, whose copy could not be waited for. The value is dropped, and waits again,
    /// once this thread does not record and the device is known to be idle.
    pub(super) fn defer(&self, value: impl Send + 'static) {
        self.gate.note_free();
        lock(&self.deferred.gone).values.push(Box::new(value));
    }

    /// Waits for the device after the wait for a single copy failed. Returns whether nothing is under way any
    /// more, so that the memory may be freed. If the device fails or this thread records, the caller
    /// [defers](Memory::defer) the memory.
    pub(super) fn idle(&self, driver: &dyn Driver) -> bool {
        if self.gate.records() {
            return false;
        }
        let _pass = self.gate.pass();
        // The lock keeps another thread from finding the device idle at the same time, because a failure
        // after this point would escape it.
        let _gone = lock(&self.deferred.gone);
        let idle = driver.idle().is_ok();
        if !idle {
            self.deferred.unsettled.store(true, Ordering::Release);
        }
        idle
    }

    /// Waits for the device after a failure that may have left a copy under way, and frees the deferred
    /// memory. Without such a failure this costs one read of a flag. Errors: the device is still not known to
    /// be idle; work is being recorded.
    pub(super) fn settle(&self, driver: &dyn Driver) -> Result<()> {
        if !self.deferred.unsettled() {
            return Ok(());
        }
        let pass = self.gate.pass_now("waiting for the GPU")?;
        let mut gone = lock(&self.deferred.gone);
        driver.idle()?;
        self.deferred.unsettled.store(false, Ordering::Release);
        let gone = std::mem::take(&mut *gone);
        drop(pass);
        self.give_back(driver, gone);
        Ok(())
    }

    /// Takes the memory that was deferred during this thread's recording. [`Memory::give_back`] frees it when
    /// other threads may go on.
    pub(super) fn take_deferred(&self) -> Deferred {
        let mut gone = lock(&self.deferred.gone);
        if self.deferred.unsettled() { Deferred::default() } else { std::mem::take(&mut *gone) }
    }

    pub(super) fn give_back(&self, driver: &dyn Driver, gone: Deferred) {
        let pass = self.gate.pass();
        for (address, bytes) in gone.pieces {
            // SAFETY: the buffer that owned the memory is gone. No recording that names it is kept, and no
            // copy is under way.
            unsafe { driver.free(address, bytes) };
        }
        drop(pass);
        // Each value waits for the device when it is dropped.
        drop(gone.values);
    }
}

impl std::fmt::Debug for DeferredFrees {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.unsettled() { "unsettled" } else { "settled" })
    }
}

/// A copy on a stream of its own. Like all other work it cannot be joined or waited for while this thread
/// records.
#[derive(Clone)]
pub(crate) struct Copying {
    pub(super) driver: Arc<dyn Driver>,
    pub(super) memory: Arc<Memory>,
    pub(super) ticket: Arc<dyn Ticket>,
}

impl Copying {
    /// Makes later work of the device wait for the copy. Errors: this thread records; errors of the device.
    pub(crate) fn join(&self) -> Result<()> {
        let _pass = self.memory.gate.pass_now("waiting for a copy")?;
        self.ticket.join()
    }

    /// Makes the host wait for the copy. Errors: as [`Copying::join`].
    pub(super) fn wait(&self) -> Result<()> {
        let _pass = self.memory.gate.pass_now("waiting for a copy")?;
        self.ticket.wait()
    }

    /// Whether the device's end of the copy may be freed in the order of the device's work.
    pub(crate) fn over(&self) -> bool {
        self.join().is_ok() || self.memory.idle(&*self.driver)
    }

    /// Defers the drop of both ends of the copy ([`Memory::defer`]).
    pub(crate) fn keep(&self, ends: impl Send + 'static) {
        self.memory.defer(ends);
    }
}
