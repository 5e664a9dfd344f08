//! Copies between pinned memory and the device, part by part: in the order of the work, or on copy streams.

#![allow(unsafe_code)]

use std::ops::Range;

use rayspin_core::{Error, Result};

use super::{Cuda, PinnedBytes, Stream, View, ViewMut};
use crate::Element;

impl Cuda {
    /// Queues a copy of the values of `from` starting at `start`, in the order of the device's work. The
    /// caller has checked the range.
    pub(crate) fn queue_upload<T: Element>(
        &self,
        to: ViewMut<'_, T>,
        from: &mut PinnedBytes,
        start: usize,
    ) -> Result<()> {
        self.memory.gate.pass_now("copying to the GPU").map(drop)?;
        from.ask()?;
        // SAFETY: after `ask` the host waits before it touches `from`. Work that uses `to` comes later in the
        // order of work.
        unsafe { self.put(Stream::Work, to, from, start) }
    }

    /// Queues a copy to the values of `to` starting at `start`, in the order of the device's work. The caller
    /// has checked the range.
    pub(crate) fn queue_download<T: Element>(
        &self,
        from: View<'_, T>,
        to: &mut PinnedBytes,
        start: usize,
    ) -> Result<()> {
        self.memory.gate.pass_now("copying from the GPU").map(drop)?;
        to.ask()?;
        // SAFETY: as above.
        unsafe { self.get(Stream::Work, from, to, start) }
    }

    /// Calls `work` with a view of pinned values for kernels.
    pub(crate) fn lend<T: Element, O>(
        &self,
        pinned: &mut PinnedBytes,
        work: impl FnOnce(ViewMut<'_, T>) -> Result<O>,
    ) -> Result<O> {
        // Recorded work could use the values at any later time.
        self.memory.gate.pass_now("lending host memory to kernels").map(drop)?;
        pinned.ask()?;
        let done = work(pinned.mapped()?);
        // A recording that `work` made itself must not be launched again.
        self.memory.gate.note_free();
        done
    }

    /// [`Cuda::exchange`] of views. Errors: host memory that is too small; `part` is 0. The device is the
    /// caller's to check.
    pub(crate) fn exchange_parts<T: Element>(
        &self,
        mut to: ViewMut<'_, T>,
        from: &mut PinnedBytes,
        sent: View<'_, T>,
        into: &mut PinnedBytes,
        part: usize,
    ) -> Result<()> {
        expect_room::<T>(from, to.len())?;
        expect_room::<T>(into, sent.len())?;
        let (mut incoming, outgoing) = (parts(to.len(), part)?, parts(sent.len(), part)?);
        let streams = ForkedStreams::fork(self, [&mut *from, &mut *into])?;
        for out in outgoing {
            if let Some(range) = incoming.next() {
                // SAFETY: all later work is ordered after the copy streams before the borrows end.
                unsafe { self.put(Stream::Upload, part_mut(&mut to, &range)?, from, range.start) }?;
            }
            // SAFETY: as above.
            unsafe { self.get(Stream::Download, part_of(&sent, &out)?, into, out.start) }?;
        }
        for range in incoming {
            // SAFETY: as above.
            unsafe { self.put(Stream::Upload, part_mut(&mut to, &range)?, from, range.start) }?;
        }
        streams.join()
    }

    /// [`Cuda::pipeline`] of a view, likewise.
    pub(crate) fn pipeline_parts<T: Element>(
        &self,
        mut whole: ViewMut<'_, T>,
        from: &mut PinnedBytes,
        to: &mut PinnedBytes,
        part: usize,
        mut work: impl FnMut(ViewMut<'_, T>) -> Result<()>,
    ) -> Result<()> {
        expect_room::<T>(from, whole.len())?;
        expect_room::<T>(to, whole.len())?;
        let parts = parts(whole.len(), part)?;
        let streams = ForkedStreams::fork(self, [&mut *from, &mut *to])?;
        for range in parts {
            // SAFETY: work that uses the part is ordered after its upload, and all later work after both copy
            // streams before the borrows end.
            unsafe { self.put(Stream::Upload, part_mut(&mut whole, &range)?, from, range.start) }?;
            self.order(Stream::Upload, Stream::Work)?;
            work(part_mut(&mut whole, &range)?)?;
            self.order(Stream::Work, Stream::Download)?;
            // SAFETY: as above. Nothing else uses this part.
            unsafe { self.get(Stream::Download, part_mut(&mut whole, &range)?.view(), to, range.start) }?;
        }
        streams.join()
    }

    fn order(&self, from: Stream, to: Stream) -> Result<()> {
        let _pass = self.memory.gate.pass_now("copying beside the GPU's work")?;
        self.driver.order_streams(from, to)
    }

    /// # Safety
    /// `from` has `to.len` values starting at value `start`. The rest as for [`super::Driver::queue_upload`].
    unsafe fn put<T>(
        &self,
        stream: Stream,
        to: ViewMut<'_, T>,
        from: &PinnedBytes,
        start: usize,
    ) -> Result<()> {
        let (offset, bytes) = (start * size_of::<T>(), (to.len * size_of::<T>()) as u64);
        if bytes == 0 {
            return Ok(());
        }
        let _pass = self.memory.gate.pass_now("copying to the GPU")?;
        // SAFETY: as the caller promises.
        unsafe { self.driver.queue_upload(stream, to.address, from.pointer.add(offset), bytes) }
    }

    /// # Safety
    /// `to` has `from.len` values starting at value `start`. The rest as for
    /// [`super::Driver::queue_download`].
    unsafe fn get<T>(&self, stream: Stream, from: View<'_, T>, to: &PinnedBytes, start: usize) -> Result<()> {
        let (offset, bytes) = (start * size_of::<T>(), (from.len * size_of::<T>()) as u64);
        if bytes == 0 {
            return Ok(());
        }
        let _pass = self.memory.gate.pass_now("copying from the GPU")?;
        // SAFETY: as the caller promises.
        unsafe { self.driver.queue_download(stream, from.address, to.pointer.add(offset), bytes) }
    }
}

/// Both copy streams while they are in use. All later work waits for them, however the call ends.
struct ForkedStreams<'a> {
    cuda: &'a Cuda,
    joined: bool,
}

impl<'a> ForkedStreams<'a> {
    /// Orders both copy streams after all work queued so far. The host waits for them before it touches
    /// `ends`.
    fn fork(cuda: &'a Cuda, ends: [&mut PinnedBytes; 2]) -> Result<Self> {
        cuda.memory.gate.pass_now("copying beside the GPU's work").map(drop)?;
        for end in ends {
            end.ask()?;
        }
        cuda.order(Stream::Work, Stream::Upload)?;
        cuda.order(Stream::Work, Stream::Download)?;
        Ok(Self { cuda, joined: false })
    }

    fn join(mut self) -> Result<()> {
        self.joined = true;
        self.end()
    }

    /// Makes later work wait for both streams, because the arrays and host values are only borrowed. If that
    /// fails, waits for the device. If that fails too, no memory is freed before a wait succeeds.
    fn end(&self) -> Result<()> {
        let both = [Stream::Upload, Stream::Download].map(|stream| self.cuda.order(stream, Stream::Work));
        let passed: Result<()> = both.into_iter().collect();
        passed.inspect_err(|_| {
            self.cuda.memory.idle(&*self.cuda.driver);
        })
    }
}

impl Drop for ForkedStreams<'_> {
    fn drop(&mut self) {
        if !self.joined {
            // The caller has got the first failure already.
            let _ = self.end();
        }
    }
}

/// Errors: host memory that is smaller than this number of values.
fn expect_room<T>(pinned: &PinnedBytes, values: usize) -> Result<()> {
    let room = pinned.bytes / size_of::<T>().max(1) as u64;
    match values as u64 <= room {
        true => Ok(()),
        false => Err(Error::value("host values of a copy", format!("{values} or more"), room)),
    }
}

/// Splits `len` values into ranges of `part` values. Errors: `part` is 0.
fn parts(len: usize, part: usize) -> Result<impl Iterator<Item = Range<usize>>> {
    if part == 0 {
        return Err(Error::value("values of a part", "at least 1", part));
    }
    Ok((0..len).step_by(part).map(move |start| start..(start.saturating_add(part)).min(len)))
}

fn outside(range: &Range<usize>, len: usize) -> Error {
    Error::value("part of an array", format!("a range within {len} elements"), format!("{range:?}"))
}

fn part_of<'a, T: Element>(whole: &View<'a, T>, range: &Range<usize>) -> Result<View<'a, T>> {
    whole.part(range.start, range.len()).ok_or_else(|| outside(range, whole.len()))
}

fn part_mut<'a, T: Element>(whole: &'a mut ViewMut<'_, T>, range: &Range<usize>) -> Result<ViewMut<'a, T>> {
    let len = whole.len();
    whole.part(range.start, range.len()).ok_or_else(|| outside(range, len))
}
