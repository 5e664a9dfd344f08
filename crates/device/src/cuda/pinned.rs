//! Host memory that a GPU copies from and to beside its other work.

#![allow(unsafe_code)]

use std::marker::PhantomData;
use std::sync::Arc;

use rayspin_core::{Error, Result};

use super::argument::Home;
use super::{Copying, Cuda, Driver, Memory, Ticket, View, ViewMut};
use crate::Element;

/// Pinned bytes, given back when dropped.
pub(crate) struct PinnedBytes {
    driver: Arc<dyn Driver>,
    memory: Arc<Memory>,
    pub(super) at: *mut u8,
    pub(super) bytes: u64,
    /// What may still read or write them.
    busy: Option<Busy>,
}

enum Busy {
    /// A copy beside the device's work.
    Copy(Copying),
    /// Work that was asked for in order.
    Work,
}

// SAFETY: the bytes are this value's own, and those that the device uses are not touched.
unsafe impl Send for PinnedBytes {}
unsafe impl Sync for PinnedBytes {}

impl PinnedBytes {
    /// Waits until the device does not touch the bytes. Errors: this thread records, where work was asked for.
    fn wait(&self) -> Result<()> {
        match &self.busy {
            None => Ok(()),
            Some(Busy::Copy(copy)) => copy.wait(),
            Some(Busy::Work) => {
                // A lane that failed may not be part of the work that is waited for.
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

    /// Before work that is asked for in order: only a copy on another stream has to be waited for.
    pub(super) fn ask(&mut self) -> Result<()> {
        if let Some(Busy::Copy(_)) = self.busy {
            self.settle()?;
        }
        self.busy = Some(Busy::Work);
        Ok(())
    }

    /// The values. Errors: of the copy that is waited for.
    pub(crate) fn values<T: Element>(&mut self) -> Result<&mut [T]> {
        self.settle()?;
        // SAFETY: the memory is this value's own, was set to 0 when it was made, is aligned to a page, and nothing touches it.
        Ok(unsafe {
            std::slice::from_raw_parts_mut(self.at.cast::<T>(), self.bytes as usize / size_of::<T>().max(1))
        })
    }

    /// The values, to be read. Errors: of the copy that is waited for.
    pub(crate) fn read<T: Element>(&self) -> Result<&[T]> {
        self.wait()?;
        // SAFETY: as above; whatever asks the device for more needs the value itself, not a reference that is shared.
        Ok(unsafe {
            std::slice::from_raw_parts(self.at.cast::<T>(), self.bytes as usize / size_of::<T>().max(1))
        })
    }

    /// The values as kernels see them. Who gives them to kernels calls [`PinnedBytes::ask`] before.
    pub(super) fn mapped<T: Element>(&mut self) -> Result<ViewMut<'_, T>> {
        // SAFETY: the memory was pinned by this driver.
        let address = unsafe { self.driver.pinned_address(self.at) }?;
        let len = self.bytes as usize / size_of::<T>().max(1);
        Ok(ViewMut { address, len, home: Home::of(&self.memory), life: PhantomData })
    }
}

impl Drop for PinnedBytes {
    fn drop(&mut self) {
        // The system may wait for the device where it takes pinned memory back: not while work is recorded.
        let over = !self.memory.gate.records() && (self.settle().is_ok() || self.memory.idle(&*self.driver));
        if !over {
            let (driver, memory) = (self.driver.clone(), self.memory.clone());
            let Self { at, bytes, .. } = *self;
            return self.memory.keep(Self { driver, memory, at, bytes, busy: self.busy.take() });
        }
        let _pass = self.memory.gate.pass();
        // SAFETY: the memory is this value's own, and nothing uses it.
        unsafe { self.driver.unpin(self.at, self.bytes) };
    }
}

impl Cuda {
    pub(crate) fn pin(&self, bytes: u64) -> Result<PinnedBytes> {
        let _pass = self.memory.gate.pass_now("pinning host memory")?;
        let at = self.driver.pin(bytes.max(1))?;
        Ok(PinnedBytes { driver: self.driver.clone(), memory: self.memory.clone(), at, bytes, busy: None })
    }

    /// Begins a copy of all values. The caller keeps `to` from being used or freed before the ticket is joined.
    pub(crate) fn upload_beside<T: Element>(
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
            unsafe { driver.upload_beside(to.address, from, bytes) }
        })
    }

    /// Begins a copy of all values. The caller keeps `from` from being written or freed before the ticket is joined.
    pub(crate) fn download_beside<T: Element>(
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
            unsafe { driver.download_beside(from.address, to, bytes) }
        })
    }

    /// What `begin` begins, which `end` is busy with from then on.
    fn beside(
        &self,
        end: &mut PinnedBytes,
        what: &str,
        begin: impl FnOnce(&dyn Driver, *mut u8) -> Result<Arc<dyn Ticket>>,
    ) -> Result<Option<Copying>> {
        let pass = self.memory.gate.pass_now(what)?;
        let begun = begin(&*self.driver, end.at);
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

    /// Asks for a copy of all values in the order of the device's work.
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
            // SAFETY: both have this number of bytes; whatever changes or frees `from` comes later in the order of work, and `to` is
            // not touched before the ticket is waited for.
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
