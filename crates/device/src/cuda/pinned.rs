//! Host memory that a GPU copies from and to beside its other work.

#![allow(unsafe_code)]

use std::sync::Arc;

use rayspin_core::{Error, Result};

use super::{Cuda, Driver, Ticket, View, ViewMut};
use crate::Element;

/// Pinned bytes, given back when dropped.
pub(crate) struct PinnedBytes {
    driver: Arc<dyn Driver>,
    at: *mut u8,
    bytes: u64,
    /// The copy that may still read or write them.
    busy: Option<Arc<dyn Ticket>>,
}

// SAFETY: the bytes are this value's own, and those of a copy under way are not touched.
unsafe impl Send for PinnedBytes {}
unsafe impl Sync for PinnedBytes {}

impl PinnedBytes {
    /// Waits until no copy touches the bytes.
    pub(crate) fn settle(&mut self) -> Result<()> {
        if let Some(busy) = &self.busy {
            busy.wait()?;
        }
        self.busy = None;
        Ok(())
    }

    /// The values. Errors: of the copy that is waited for.
    pub(crate) fn values<T: Element>(&mut self) -> Result<&mut [T]> {
        self.settle()?;
        // SAFETY: the memory is this value's own, was set to 0 when it was made, is aligned to a page, and no copy touches it.
        Ok(unsafe {
            std::slice::from_raw_parts_mut(self.at.cast::<T>(), self.bytes as usize / size_of::<T>().max(1))
        })
    }
}

impl Drop for PinnedBytes {
    fn drop(&mut self) {
        // Where the wait fails, the device is lost and copies no more.
        let _ = self.settle();
        // SAFETY: the memory is this value's own.
        unsafe { self.driver.unpin(self.at, self.bytes) };
    }
}

impl Cuda {
    pub(crate) fn pin(&self, bytes: u64) -> Result<PinnedBytes> {
        let at = self.driver.pin(bytes.max(1))?;
        Ok(PinnedBytes { driver: self.driver.clone(), at, bytes, busy: None })
    }

    /// Begins a copy of all values. The caller keeps `to` from being used or freed before the ticket is joined.
    pub(crate) fn upload_beside<T: Element>(
        &self,
        to: ViewMut<'_, T>,
        from: &mut PinnedBytes,
    ) -> Result<Option<Arc<dyn Ticket>>> {
        from.settle()?;
        let bytes = same::<T>(to.len(), from.bytes)?;
        if bytes == 0 {
            return Ok(None);
        }
        let _pass = self.memory.gate.pass_now("copying to the GPU")?;
        // SAFETY: both have so many bytes; `from` is not touched before the ticket is waited for.
        let ticket = unsafe { self.driver.upload_beside(to.address, from.at, bytes) }?;
        from.busy = Some(ticket.clone());
        Ok(Some(ticket))
    }

    /// Begins a copy of all values. The caller keeps `from` from being written or freed before the ticket is joined.
    pub(crate) fn download_beside<T: Element>(
        &self,
        from: View<'_, T>,
        to: &mut PinnedBytes,
    ) -> Result<Option<Arc<dyn Ticket>>> {
        to.settle()?;
        let bytes = same::<T>(from.len(), to.bytes)?;
        if bytes == 0 {
            return Ok(None);
        }
        let _pass = self.memory.gate.pass_now("copying from the GPU")?;
        // SAFETY: as above.
        let ticket = unsafe { self.driver.download_beside(from.address, to.at, bytes) }?;
        to.busy = Some(ticket.clone());
        Ok(Some(ticket))
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
        let _pass = self.memory.gate.pass_now("copying from the GPU")?;
        // SAFETY: both have so many bytes; what changes or frees `from` comes later in the order of work, and `to` is not touched
        // before the ticket is waited for.
        to.busy = Some(unsafe { self.driver.download_in_order(from.address, to.at, bytes) }?);
        Ok(())
    }
}

fn same<T>(len: usize, pinned: u64) -> Result<u64> {
    let bytes = (len * size_of::<T>()) as u64;
    if bytes == pinned {
        return Ok(bytes);
    }
    Err(Error::value("copy beside the GPU's work", format!("{bytes} bytes of host memory"), pinned))
}
