//! Copies beside the device's work: done as late as may be, and their targets are spoilt until then, so that what does not wait
//! for them is seen.

#![allow(unsafe_code)]

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::collections::BTreeMap;
use std::sync::Arc;

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

impl Copy {
    /// # Safety
    /// As who asked for it promised: both ends are there, and nothing else uses them.
    unsafe fn perform(&self) {
        // SAFETY: as the caller promises.
        unsafe { self.to.copy_from_nonoverlapping(self.from, self.bytes) };
    }

    fn touches(&self, at: u64, bytes: u64) -> bool {
        overlap(self.from as u64, self.bytes, at, bytes) || overlap(self.to as u64, self.bytes, at, bytes)
    }
}

/// Values for the host that it has not been told.
struct Untold {
    values: Vec<u8>,
    to: *mut u8,
}

impl Untold {
    /// # Safety
    /// As for [`Copy::perform`].
    unsafe fn tell(&self) {
        // SAFETY: as the caller promises.
        unsafe { self.to.copy_from_nonoverlapping(self.values.as_ptr(), self.values.len()) };
    }

    fn touches(&self, at: u64, bytes: u64) -> bool {
        overlap(self.to as u64, self.values.len(), at, bytes)
    }

    /// Writes to `to`, a copy of `bytes` from `from` on, what the host is going to be told of them.
    ///
    /// # Safety
    /// `to` begins this number of bytes, which nothing else uses.
    unsafe fn tell_copy(&self, from: *const u8, to: *mut u8, bytes: usize) {
        let (from, own) = (from as usize, self.to as usize);
        let (start, end) = (from.max(own), (from + bytes).min(own + self.values.len()));
        if start < end {
            let values = &self.values[start - own..end - own];
            // SAFETY: `start..end` lies within the bytes that `to` has a copy of.
            unsafe { to.add(start - from).copy_from_nonoverlapping(values.as_ptr(), values.len()) };
        }
    }
}

fn overlap(a: u64, a_bytes: usize, b: u64, b_bytes: u64) -> bool {
    a < b + b_bytes && b < a + a_bytes as u64
}

/// The end of a copy beside the work, or of one in its order: what is done when it is joined or waited for.
pub(crate) struct Late {
    inner: Arc<Inner>,
    number: u64,
}

impl Late {
    /// A copy beside the work.
    ///
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
        let mut lanes = lock(&inner.lanes);
        let number = lanes.number();
        lanes.begun.insert(number, Copy { from, to, bytes });
        Ok(Arc::new(Self { inner: inner.clone(), number }))
    }

    fn finish(&self) -> Result<()> {
        let _order = self.inner.not_recording("waiting for a copy")?;
        if let Some(copy) = lock(&self.inner.lanes).begun.remove(&self.number) {
            // SAFETY: as who began it promised.
            unsafe { copy.perform() };
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
    number: u64,
}

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
        let mut lanes = lock(&inner.lanes);
        let number = lanes.number();
        lanes.untold.insert(number, Untold { values, to });
        Ok(Arc::new(Self { inner: inner.clone(), number }))
    }
}

impl Ticket for InOrder {
    fn join(&self) -> Result<()> {
        Ok(())
    }

    fn wait(&self) -> Result<()> {
        let _order = self.inner.not_recording("waiting for a copy")?;
        if let Some(untold) = lock(&self.inner.lanes).untold.remove(&self.number) {
            // SAFETY: as who began it promised.
            unsafe { untold.tell() };
        }
        Ok(())
    }
}

/// Short copies from pinned memory return before they are done; longer ones are staged.
const LATE: usize = 64 << 10;

/// Copies that nothing has waited for, and the pinned memory.
#[derive(Default)]
pub(crate) struct Lanes {
    /// Of the lanes in and out, those that no other lane has waited for: they are not done.
    pending: [Vec<Copy>; 2],
    /// Of the lane of all work, those to the host that the host has not waited for: done, and not told.
    told: Vec<Untold>,
    /// Uploads from pinned memory that the lane of all work has not come to.
    late: Vec<Copy>,
    /// Copies beside the work, by their tickets.
    begun: BTreeMap<u64, Copy>,
    /// Copies in the order of the work, by their tickets.
    untold: BTreeMap<u64, Untold>,
    tickets: u64,
    /// Addresses and bytes.
    pinned: BTreeMap<u64, u64>,
}

// SAFETY: the addresses are used by the one that takes a copy.
unsafe impl Send for Lanes {}

impl Lanes {
    fn number(&mut self) -> u64 {
        self.tickets += 1;
        self.tickets
    }

    fn of(&mut self, lane: Lane) -> Option<&mut Vec<Copy>> {
        match lane {
            Lane::Work => None,
            Lane::In => Some(&mut self.pending[0]),
            Lane::Out => Some(&mut self.pending[1]),
        }
    }

    pub(crate) fn pinned(&mut self, at: *const u8, bytes: u64) {
        self.pinned.insert(at as u64, bytes);
    }

    pub(crate) fn unpinned(&mut self, at: *const u8) {
        self.pinned.remove(&(at as u64));
    }

    /// Whether the device can copy from these bytes by itself, and they are few.
    pub(crate) fn reads_late(&self, from: &[u8]) -> bool {
        let at = from.as_ptr() as u64;
        let pinned = self.pinned.range(..=at).next_back();
        from.len() <= LATE && pinned.is_some_and(|(&first, &bytes)| at < first + bytes)
    }

    /// # Safety
    /// Both addresses begin this number of bytes until the work is waited for; nothing changes `from` before.
    pub(crate) unsafe fn upload_late(&mut self, from: *const u8, to: *mut u8, bytes: usize) {
        // SAFETY: as the caller promises.
        unsafe { to.write_bytes(POISON, bytes) };
        self.late.push(Copy { from, to, bytes });
    }

    /// # Safety
    /// Both addresses begin so many bytes until the lane is passed on; nothing uses `to` nor changes `from` before.
    pub(crate) unsafe fn upload(&mut self, lane: Lane, from: *const u8, to: *mut u8, bytes: usize) {
        match self.of(lane) {
            None => {
                // SAFETY: as the caller promises.
                unsafe { to.copy_from_nonoverlapping(from, bytes) };
                for untold in &self.told {
                    // The host was not told yet, but this copy comes after it in the order of work.
                    // SAFETY: as the caller promises.
                    unsafe { untold.tell_copy(from, to, bytes) };
                }
            }
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
                self.told.push(Untold { values, to });
            }
        }
    }

    /// Does what the lane of all work has not come to.
    pub(crate) fn catch_up(&mut self) {
        for copy in self.late.drain(..) {
            // SAFETY: as who asked for it promised.
            unsafe { copy.perform() };
        }
    }

    /// Does what a lane was asked for.
    pub(crate) fn finish(&mut self, lane: Lane) {
        for copy in self.of(lane).map(std::mem::take).unwrap_or_default() {
            // SAFETY: as who asked for it promised.
            unsafe { copy.perform() };
        }
    }

    /// Tells the host what the lane of all work copied.
    pub(crate) fn tell(&mut self) {
        for untold in self.told.drain(..) {
            // SAFETY: as who asked for it promised.
            unsafe { untold.tell() };
        }
    }

    /// Does all that anyone asked for.
    pub(crate) fn settle(&mut self) {
        self.catch_up();
        self.finish(Lane::In);
        self.finish(Lane::Out);
        self.tell();
        for copy in std::mem::take(&mut self.begun).into_values() {
            // SAFETY: as who began it promised.
            unsafe { copy.perform() };
        }
        for untold in std::mem::take(&mut self.untold).into_values() {
            // SAFETY: as who began it promised.
            unsafe { untold.tell() };
        }
    }

    /// Memory goes. Errors: a copy of it is under way, which is not done any more.
    pub(crate) fn give_back(&mut self, at: u64, bytes: u64) -> Result<()> {
        let under_way = |lanes: &Self| {
            let copies = lanes.pending.iter().flatten().chain(&lanes.late).chain(lanes.begun.values());
            copies.count() + lanes.told.len() + lanes.untold.len()
        };
        let before = under_way(self);
        self.pending.iter_mut().for_each(|lane| lane.retain(|copy| !copy.touches(at, bytes)));
        self.late.retain(|copy| !copy.touches(at, bytes));
        self.begun.retain(|_, copy| !copy.touches(at, bytes));
        self.told.retain(|untold| !untold.touches(at, bytes));
        self.untold.retain(|_, untold| !untold.touches(at, bytes));
        if under_way(self) == before {
            return Ok(());
        }
        let detail = format!("{bytes} bytes at {at:#x} are given back while they are copied");
        Err(Error::Device { what: "memory of the emulated GPU".to_owned(), detail })
    }
}
