//! Copies beside the device's work: done as late as may be, and their targets are spoilt until then, so that what does not wait
//! for them is seen.

#![allow(unsafe_code)]

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::sync::{Arc, Mutex};

use rayspin_core::{Error, Result};
use rayspin_device::cuda::{Lane, Ticket};

use crate::memory::POISON;
use crate::{Inner, lock};

/// What pinned memory is aligned to.
const ALIGN: usize = 256;

pub(crate) fn pin(bytes: u64) -> Result<*mut u8> {
    let refused = || Error::Memory { what: "pinned host memory".to_owned(), needed: bytes, available: 0 };
    let layout = layout(bytes).ok_or_else(refused)?;
    // SAFETY: the layout is not empty.
    let at = unsafe { alloc_zeroed(layout) };
    if at.is_null() { Err(refused()) } else { Ok(at) }
}

/// # Safety
/// `at` comes from [`pin`] with the same size, and is not used again.
pub(crate) unsafe fn unpin(at: *mut u8, bytes: u64) {
    if let Some(layout) = layout(bytes) {
        // SAFETY: as the caller promises.
        unsafe { dealloc(at, layout) };
    }
}

fn layout(bytes: u64) -> Option<Layout> {
    Layout::from_size_align(usize::try_from(bytes).ok()?.max(1), ALIGN).ok()
}

/// A copy that has not been done.
struct Copy {
    from: *const u8,
    to: *mut u8,
    bytes: usize,
}

pub(crate) struct Late {
    inner: Arc<Inner>,
    copy: Mutex<Option<Copy>>,
}

// SAFETY: the addresses are used by the one that takes the copy.
unsafe impl Send for Late {}
unsafe impl Sync for Late {}

impl Late {
    /// # Safety
    /// Both addresses begin so many bytes until the copy is joined or waited for; nothing uses `to` before.
    pub(crate) unsafe fn begin(
        inner: &Arc<Inner>,
        from: *const u8,
        to: *mut u8,
        bytes: u64,
    ) -> Result<Arc<dyn Ticket>> {
        let _order = inner.not_recording("copying beside the emulated GPU's work")?;
        let bytes = bytes as usize;
        // SAFETY: as the caller promises.
        unsafe { to.write_bytes(POISON, bytes) };
        Ok(Arc::new(Self { inner: inner.clone(), copy: Mutex::new(Some(Copy { from, to, bytes })) }))
    }

    fn finish(&self) -> Result<()> {
        let _order = self.inner.not_recording("waiting for a copy")?;
        if let Some(copy) = lock(&self.copy).take() {
            // SAFETY: as who began it promised.
            unsafe { copy.to.copy_from_nonoverlapping(copy.from, copy.bytes) };
        }
        Ok(())
    }
}

impl Ticket for Late {
    fn join(&self) -> Result<()> {
        self.finish()
    }

    fn wait(&self) -> Result<()> {
        self.finish()
    }
}

/// A copy in the order of the device's work: its values are taken at once, and told late.
pub(crate) struct InOrder {
    inner: Arc<Inner>,
    told: Mutex<Option<(Vec<u8>, *mut u8)>>,
}

// SAFETY: the address is used by the one that takes the copy.
unsafe impl Send for InOrder {}
unsafe impl Sync for InOrder {}

impl InOrder {
    /// # Safety
    /// `from` begins so many bytes, and `to` does until the copy is waited for; nothing uses `to` before.
    pub(crate) unsafe fn begin(
        inner: &Arc<Inner>,
        from: *const u8,
        to: *mut u8,
        bytes: u64,
    ) -> Result<Arc<dyn Ticket>> {
        let _order = inner.not_recording("copying from the emulated GPU")?;
        // SAFETY: as the caller promises.
        let values = unsafe {
            to.write_bytes(POISON, bytes as usize);
            std::slice::from_raw_parts(from, bytes as usize).to_vec()
        };
        Ok(Arc::new(Self { inner: inner.clone(), told: Mutex::new(Some((values, to))) }))
    }
}

impl Ticket for InOrder {
    fn join(&self) -> Result<()> {
        Ok(())
    }

    fn wait(&self) -> Result<()> {
        let _order = self.inner.not_recording("waiting for a copy")?;
        if let Some((values, to)) = lock(&self.told).take() {
            // SAFETY: as who began it promised.
            unsafe { to.copy_from_nonoverlapping(values.as_ptr(), values.len()) };
        }
        Ok(())
    }
}

/// Copies that lanes were asked for.
#[derive(Default)]
pub(crate) struct Lanes {
    /// Of the lanes in and out, those that no other lane has waited for: they are not done.
    pending: [Vec<Copy>; 2],
    /// Of the lane of all work, those to the host that the host has not waited for: done, and not told.
    told: Vec<(Vec<u8>, *mut u8)>,
}

// SAFETY: the addresses are used by the one that takes a copy.
unsafe impl Send for Lanes {}

impl Lanes {
    fn of(&mut self, lane: Lane) -> Option<&mut Vec<Copy>> {
        match lane {
            Lane::Work => None,
            Lane::In => Some(&mut self.pending[0]),
            Lane::Out => Some(&mut self.pending[1]),
        }
    }

    /// # Safety
    /// Both addresses begin so many bytes until the lane is passed on; nothing uses `to` nor changes `from` before.
    pub(crate) unsafe fn upload(&mut self, lane: Lane, from: *const u8, to: *mut u8, bytes: usize) {
        match self.of(lane) {
            // SAFETY: as the caller promises.
            None => unsafe { to.copy_from_nonoverlapping(from, bytes) },
            Some(pending) => {
                // SAFETY: as the caller promises.
                unsafe { to.write_bytes(POISON, bytes) };
                pending.push(Copy { from, to, bytes });
            }
        }
    }

    /// # Safety
    /// As for [`Lanes::upload`], of the lane of all work until the host waits.
    pub(crate) unsafe fn download(&mut self, lane: Lane, from: *const u8, to: *mut u8, bytes: usize) {
        // SAFETY: as the caller promises.
        unsafe { to.write_bytes(POISON, bytes) };
        match self.of(lane) {
            Some(pending) => pending.push(Copy { from, to, bytes }),
            None => {
                // SAFETY: as the caller promises.
                let values = unsafe { std::slice::from_raw_parts(from, bytes) }.to_vec();
                self.told.push((values, to));
            }
        }
    }

    /// Does what a lane was asked for.
    pub(crate) fn finish(&mut self, lane: Lane) {
        for copy in self.of(lane).map(std::mem::take).unwrap_or_default() {
            // SAFETY: as who asked for it promised.
            unsafe { copy.to.copy_from_nonoverlapping(copy.from, copy.bytes) };
        }
    }

    /// Tells the host what the lane of all work copied.
    pub(crate) fn tell(&mut self) {
        for (values, to) in self.told.drain(..) {
            // SAFETY: as who asked for it promised.
            unsafe { to.copy_from_nonoverlapping(values.as_ptr(), values.len()) };
        }
    }
}
