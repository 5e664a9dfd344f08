//! Pinned host memory, for copies that run concurrently with a GPU's other work.

#![allow(unsafe_code)]

use std::marker::PhantomData;
use std::sync::Arc;

use rayspin_core::{Error, Result};

use super::argument::Home;
use super::{Copying, Cuda, Driver, Memory, Ticket, View, ViewMut};
use crate::Element;

/// Pinned bytes, freed on drop.
pub(crate) struct PinnedBytes {
    driver: Arc<dyn Driver>,
    memory: Arc<Memory>,
    pub(super) pointer: *mut u8,
    pub(super) bytes: u64,
    /// The work that may still read or write the bytes.
    busy: Option<Busy>,
}

enum Busy {
    /// A copy on a stream of its own.
    Copy(Copying),
    /// Work on the stream of all other work.
    Work,
}

// SAFETY: the bytes belong to this value, and the host does not touch them while the device uses them.
unsafe impl Send for PinnedBytes {}
unsafe impl Sync for PinnedBytes {}

impl PinnedBytes {
    /// Waits until the device no longer uses the bytes. Errors: the device uses them and this thread records.
    fn wait(&self) -> Result<()> {
        match &self.busy {
            None => Ok(()),
            Some(Busy::Copy(copy)) => copy.wait(),
            Some(Busy::Work) => {
                // Waiting for the work does not include a copy stream that failed.
                self.memory.settle(&*self.driver)?;
                let _pass = self.memory.gate.pass_now("waiting for host memory")?;
                self.driver.synchronize()
            }
        }
    }

    pub(crate) fn settle(&mut self) -> Result<()> {
        self.wait()?;
        self.busy = None;
        Ok(())
    }

    /// Prepares the bytes for work that is queued in order. Only a copy on another stream has to be waited
    /// for.
    pub(super) fn ask(&mut self) -> Result<()> {
        if let Some(Busy::Copy(_)) = self.busy {
            self.settle()?;
        }
        self.busy = Some(Busy::Work);
        Ok(())
    }

    /// The values. Waits for the last copy. Errors: the errors of that copy.
    pub(crate) fn values<T: Element>(&mut self) -> Result<&mut [T]> {
        self.settle()?;
        // SAFETY: the memory is this value's own, was set to 0 when it was made, is aligned to a page, and
        // nothing touches it.
        Ok(unsafe {
            std::slice::from_raw_parts_mut(
                self.pointer.cast::<T>(),
                self.bytes as usize / size_of::<T>().max(1),
            )
        })
    }

    /// The values, read-only. Waits for the last copy. Errors: the errors of that copy.
    pub(crate) fn read<T: Element>(&self) -> Result<&[T]> {
        self.wait()?;
        // SAFETY: as above. Queueing more work on the bytes needs a mutable reference.
        Ok(unsafe {
            std::slice::from_raw_parts(self.pointer.cast::<T>(), self.bytes as usize / size_of::<T>().max(1))
        })
    }

    /// A view of the values for kernels. The caller first calls [`PinnedBytes::ask`].
    pub(super) fn mapped<T: Element>(&mut self) -> Result<ViewMut<'_, T>> {
        // SAFETY: the memory was pinned by this driver.
        let address = unsafe { self.driver.pinned_address(self.pointer) }?;
        let len = self.bytes as usize / size_of::<T>().max(1);
        Ok(ViewMut { address, len, home: Home::of(&self.memory), life: PhantomData })
    }
}

impl Drop for PinnedBytes {
    fn drop(&mut self) {
        // Freeing pinned memory may wait for the device, which is not possible while work is recorded.
        let over = !self.memory.gate.records() && (self.settle().is_ok() || self.memory.idle(&*self.driver));
        if !over {
            let (driver, memory) = (self.driver.clone(), self.memory.clone());
            let Self { pointer, bytes, .. } = *self;
            return self.memory.defer(Self { driver, memory, pointer, bytes, busy: self.busy.take() });
        }
        let _pass = self.memory.gate.pass();
        // SAFETY: the memory is this value's own, and nothing uses it.
        unsafe { self.driver.unpin(self.pointer, self.bytes) };
    }
}

impl Cuda {
    pub(crate) fn pin(&self, bytes: u64) -> Result<PinnedBytes> {
        let _pass = self.memory.gate.pass_now("pinning host memory")?;
        let pointer = self.driver.pin(bytes.max(1))?;
        Ok(PinnedBytes {
            driver: self.driver.clone(),
            memory: self.memory.clone(),
            pointer,
            bytes,
            busy: None,
        })
    }

    /// Begins a copy of all values on a stream of its own. The caller ensures that nothing uses or frees `to`
    /// before the ticket is joined.
    pub(crate) fn upload_async<T: Element>(
        &self,
        to: ViewMut<'_, T>,
        from: &mut PinnedBytes,
    ) -> Result<Option<Copying>> {
        from.settle()?;
        let bytes = same::<T>(to.len(), from.bytes)?;
        if bytes == 0 {
            return Ok(None);
        }
        self.beside(from, "copying to the GPU", |driver, from| {
            // SAFETY: both have this number of bytes; `from` is not touched before the ticket is waited for.
            unsafe { driver.upload_async(to.address, from, bytes) }
        })
    }

    /// Begins a copy of all values on a stream of its own. The caller ensures that nothing writes or frees
    /// `from` before the ticket is joined.
    pub(crate) fn download_async<T: Element>(
        &self,
        from: View<'_, T>,
        to: &mut PinnedBytes,
    ) -> Result<Option<Copying>> {
        to.settle()?;
        let bytes = same::<T>(from.len(), to.bytes)?;
        if bytes == 0 {
            return Ok(None);
        }
        self.beside(to, "copying from the GPU", |driver, to| {
            // SAFETY: as above.
            unsafe { driver.download_async(from.address, to, bytes) }
        })
    }

    /// Begins a copy by calling `begin`, and marks `end` as busy with it.
    fn beside(
        &self,
        end: &mut PinnedBytes,
        what: &str,
        begin: impl FnOnce(&dyn Driver, *mut u8) -> Result<Arc<dyn Ticket>>,
    ) -> Result<Option<Copying>> {
        let pass = self.memory.gate.pass_now(what)?;
        let begun = begin(&*self.driver, end.pointer);
        drop(pass);
        match begun {
            Ok(ticket) => {
                let (driver, memory) = (self.driver.clone(), self.memory.clone());
                let copy = Copying { driver, memory, ticket };
                end.busy = Some(Busy::Copy(copy.clone()));
                Ok(Some(copy))
            }
            Err(error) => {
                // A copy without a ticket may be under way.
                if !self.memory.idle(&*self.driver) {
                    end.busy = Some(Busy::Work);
                }
                Err(error)
            }
        }
    }

    /// Queues a copy of all values in the order of the device's work.
    pub(crate) fn download_in_order<T: Element>(
        &self,
        from: View<'_, T>,
        to: &mut PinnedBytes,
    ) -> Result<()> {
        to.settle()?;
        let bytes = same::<T>(from.len(), to.bytes)?;
        if bytes == 0 {
            return Ok(());
        }
        let begun = self.beside(to, "copying from the GPU", |driver, to| {
            // SAFETY: both have this number of bytes. Work that changes or frees `from` comes later in the
            // order of work. The host does not touch `to` before it has waited for the ticket.
            unsafe { driver.download_in_order(from.address, to, bytes) }
        });
        begun.map(drop)
    }
}

fn same<T>(len: usize, pinned: u64) -> Result<u64> {
    let bytes = (len * size_of::<T>()) as u64;
    if bytes == pinned {
        return Ok(bytes);
    }
    Err(Error::value("copy beside the GPU's work", format!("{bytes} bytes of host memory"), pinned))
}
