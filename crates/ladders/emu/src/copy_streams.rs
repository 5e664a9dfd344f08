//! Asynchronous copies. They are done as late as possible, and their targets are spoilt until then, so that
//! code that does not wait for them is noticed.

#![allow(unsafe_code)]

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::collections::BTreeMap;
use std::sync::Arc;

use rayspin_core::{Error, Result};
use rayspin_device::cuda::{Stream, Ticket};

use crate::memory::POISON;
use crate::{Inner, lock};

/// Alignment of pinned memory.
const ALIGN: usize = 256;

pub(crate) fn pin(bytes: u64) -> Result<*mut u8> {
    let refused = || Error::Memory { what: "pinned host memory".to_owned(), needed: bytes, available: 0 };
    let layout = layout(bytes).ok_or_else(refused)?;
    // SAFETY: the layout is not empty.
    let address = unsafe { alloc_zeroed(layout) };
    if address.is_null() { Err(refused()) } else { Ok(address) }
}

/// # Safety
/// `address` comes from [`pin`] with the same size, and is not used again.
pub(crate) unsafe fn unpin(address: *mut u8, bytes: u64) {
    if let Some(layout) = layout(bytes) {
        // SAFETY: as the caller promises.
        unsafe { dealloc(address, layout) };
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
    /// As the caller who queued the copy promised: both ends are allocated, and nothing else uses them.
    unsafe fn perform(&self) {
        // SAFETY: as the caller promises.
        unsafe { self.to.copy_from_nonoverlapping(self.from, self.bytes) };
    }

    fn touches(&self, address: u64, bytes: u64) -> bool {
        overlap(self.from as u64, self.bytes, address, bytes)
            || overlap(self.to as u64, self.bytes, address, bytes)
    }
}

/// Copied values that are not yet visible to the host.
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

    fn touches(&self, address: u64, bytes: u64) -> bool {
        overlap(self.to as u64, self.values.len(), address, bytes)
    }

    /// Writes the pending values of the range `from`, `bytes` long, into `to`, which holds a copy of that
    /// range.
    ///
    /// # Safety
    /// `bytes` bytes are allocated at `to`, and nothing else uses them.
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

/// The ticket of a copy on a stream of its own. Joining it or waiting for it does the copy.
pub(crate) struct AsyncCopy {
    inner: Arc<Inner>,
    number: u64,
}

impl AsyncCopy {
    /// Begins a copy on a stream of its own.
    ///
    /// # Safety
    /// `bytes` bytes stay allocated at both addresses until the copy is joined or waited for, and nothing
    /// uses `to` before.
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
        let mut copies = lock(&inner.copies);
        let number = copies.number();
        copies.begun.insert(number, Copy { from, to, bytes });
        Ok(Arc::new(Self { inner: inner.clone(), number }))
    }

    fn finish(&self) -> Result<()> {
        let _order = self.inner.not_recording("waiting for a copy")?;
        if let Some(copy) = lock(&self.inner.copies).begun.remove(&self.number) {
            // SAFETY: as who began it promised.
            unsafe { copy.perform() };
        }
        Ok(())
    }
}

impl Ticket for AsyncCopy {
    fn join(&self) -> Result<()> {
        self.finish()
    }

    fn wait(&self) -> Result<()> {
        self.finish()
    }
}

/// The ticket of a copy in the order of the device's work. Its values are read at once, and become visible
/// when it is waited for.
pub(crate) struct OrderedCopy {
    inner: Arc<Inner>,
    number: u64,
}

impl OrderedCopy {
    /// # Safety
    /// `bytes` bytes are allocated at `from`, and at `to` until the copy is waited for. Nothing uses `to`
    /// before.
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
        let mut copies = lock(&inner.copies);
        let number = copies.number();
        copies.untold.insert(number, Untold { values, to });
        Ok(Arc::new(Self { inner: inner.clone(), number }))
    }
}

impl Ticket for OrderedCopy {
    fn join(&self) -> Result<()> {
        Ok(())
    }

    fn wait(&self) -> Result<()> {
        let _order = self.inner.not_recording("waiting for a copy")?;
        if let Some(untold) = lock(&self.inner.copies).untold.remove(&self.number) {
            // SAFETY: as who began it promised.
            unsafe { untold.tell() };
        }
        Ok(())
    }
}

/// Copies of at most this many bytes from pinned memory return before they are done. Longer ones are staged.
const LATE: usize = 64 << 10;

/// Copies that nothing has waited for, and the pinned memory.
#[derive(Default)]
pub(crate) struct PendingCopies {
    /// Copies on the upload and download streams that no other stream has waited for. They are not done.
    pending: [Vec<Copy>; 2],
    /// Copies to the host on the work stream that the host has not waited for. They are done and not visible.
    told: Vec<Untold>,
    /// Uploads from pinned memory that the work stream has not reached.
    late: Vec<Copy>,
    /// Copies on streams of their own, by ticket.
    begun: BTreeMap<u64, Copy>,
    /// Copies in the order of the work, by ticket.
    untold: BTreeMap<u64, Untold>,
    tickets: u64,
    /// Addresses and bytes.
    pinned: BTreeMap<u64, u64>,
}

// SAFETY: the addresses are used by the one that takes a copy.
unsafe impl Send for PendingCopies {}

impl PendingCopies {
    fn number(&mut self) -> u64 {
        self.tickets += 1;
        self.tickets
    }

    fn pending_on(&mut self, stream: Stream) -> Option<&mut Vec<Copy>> {
        match stream {
            // What another library queues is done when its call returns.
            Stream::Work | Stream::Foreign(_) => None,
            Stream::Upload => Some(&mut self.pending[0]),
            Stream::Download => Some(&mut self.pending[1]),
        }
    }

    pub(crate) fn pinned(&mut self, address: *const u8, bytes: u64) {
        self.pinned.insert(address as u64, bytes);
    }

    pub(crate) fn unpinned(&mut self, address: *const u8) {
        self.pinned.remove(&(address as u64));
    }

    /// Addresses and bytes of pinned memory.
    pub(crate) fn pinned_ranges(&self) -> Vec<(u64, u64)> {
        self.pinned.iter().map(|(&begin, &bytes)| (begin, bytes)).collect()
    }

    /// Whether these are few bytes that the device can copy by itself.
    pub(crate) fn reads_late(&self, from: &[u8]) -> bool {
        let address = from.as_ptr() as u64;
        let pinned = self.pinned.range(..=address).next_back();
        from.len() <= LATE && pinned.is_some_and(|(&first, &bytes)| address < first + bytes)
    }

    /// # Safety
    /// `bytes` bytes are allocated at both addresses until the work is waited for. Nothing changes `from`
    /// before.
    pub(crate) unsafe fn upload_late(&mut self, from: *const u8, to: *mut u8, bytes: usize) {
        // SAFETY: as the caller promises.
        unsafe { to.write_bytes(POISON, bytes) };
        self.late.push(Copy { from, to, bytes });
    }

    /// # Safety
    /// `bytes` bytes are allocated at both addresses until a stream is ordered after this one. Nothing uses
    /// `to` or changes `from` before.
    pub(crate) unsafe fn upload(&mut self, stream: Stream, from: *const u8, to: *mut u8, bytes: usize) {
        match self.pending_on(stream) {
            None => {
                // SAFETY: as the caller promises.
                unsafe { to.copy_from_nonoverlapping(from, bytes) };
                for untold in &self.told {
                    // These values are not visible to the host yet, but this copy comes later in the order of
                    // work. SAFETY: as the caller promises.
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
    /// As for [`PendingCopies::upload`]; on the work stream until the host waits.
    pub(crate) unsafe fn download(&mut self, stream: Stream, from: *const u8, to: *mut u8, bytes: usize) {
        // SAFETY: as the caller promises.
        unsafe { to.write_bytes(POISON, bytes) };
        match self.pending_on(stream) {
            Some(pending) => pending.push(Copy { from, to, bytes }),
            None => {
                // SAFETY: as the caller promises.
                let values = unsafe { std::slice::from_raw_parts(from, bytes) }.to_vec();
                self.told.push(Untold { values, to });
            }
        }
    }

    /// Does the uploads that the work stream has not reached.
    pub(crate) fn catch_up(&mut self) {
        for copy in self.late.drain(..) {
            // SAFETY: as who asked for it promised.
            unsafe { copy.perform() };
        }
    }

    /// Does the pending copies of a stream.
    pub(crate) fn finish(&mut self, stream: Stream) {
        for copy in self.pending_on(stream).map(std::mem::take).unwrap_or_default() {
            // SAFETY: as who asked for it promised.
            unsafe { copy.perform() };
        }
    }

    /// Makes the values that the work stream copied visible to the host.
    pub(crate) fn tell(&mut self) {
        for untold in self.told.drain(..) {
            // SAFETY: as who asked for it promised.
            unsafe { untold.tell() };
        }
    }

    /// Does all pending copies of all streams.
    pub(crate) fn settle(&mut self) {
        self.catch_up();
        self.finish(Stream::Upload);
        self.finish(Stream::Download);
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

    /// Forgets copies from and to memory that is freed. Errors: such a copy was under way; it is not done any
    /// more.
    pub(crate) fn give_back(&mut self, address: u64, bytes: u64) -> Result<()> {
        let under_way = |copies: &Self| {
            let under_way = copies.pending.iter().flatten().chain(&copies.late).chain(copies.begun.values());
            under_way.count() + copies.told.len() + copies.untold.len()
        };
        let before = under_way(self);
        self.pending.iter_mut().for_each(|pending| pending.retain(|copy| !copy.touches(address, bytes)));
        self.late.retain(|copy| !copy.touches(address, bytes));
        self.begun.retain(|_, copy| !copy.touches(address, bytes));
        self.told.retain(|untold| !untold.touches(address, bytes));
        self.untold.retain(|_, untold| !untold.touches(address, bytes));
        if under_way(self) == before {
            return Ok(());
        }
        let detail = format!("{bytes} bytes at {address:#x} are given back while they are copied");
        Err(Error::Device { what: "memory of the emulated GPU".to_owned(), detail })
    }
}
