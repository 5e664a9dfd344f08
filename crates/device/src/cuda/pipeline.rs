//! Copies between pinned memory and the device, part by part: in the order of the work, or on copy streams.

#![allow(unsafe_code)]

use std::ops::Range;

use rayspin_core::{Error, Result};

use super::{Cuda, PinnedBytes, Stream, View, ViewMut};
use crate::{Array, Element, Pinned};

impl Cuda {
    /// Queues a copy of the values of `from` starting at `at`, in the order of the device's work. The caller has checked the
    /// range.
    pub(crate) fn queue_upload<T: Element>(
        &self,
        to: ViewMut<'_, T>,
        from: &mut PinnedBytes,
        at: usize,
    ) -> Result<()> {
        self.memory.gate.pass_now("copying to the GPU").map(drop)?;
        from.ask()?;
        // SAFETY: after `ask` the host waits before it touches `from`. Work that uses `to` comes later in the order of work.
        unsafe { self.put(Stream::Work, to, from, at) }
    }

    /// Queues a copy to the values of `to` starting at `at`, in the order of the device's work. The caller has checked the
    /// range.
    pub(crate) fn queue_download<T: Element>(
        &self,
        from: View<'_, T>,
        to: &mut PinnedBytes,
        at: usize,
    ) -> Result<()> {
        self.memory.gate.pass_now("copying from the GPU").map(drop)?;
        to.ask()?;
        // SAFETY: as above.
        unsafe { self.get(Stream::Work, from, to, at) }
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

    /// Copies `from` to `to` and `of` to `into` at the same time, in copies of `part` values. The copies start after the
    /// work queued so far, and later work waits for both. The host does not wait; [`Pinned::values`] does.
    ///
    /// Errors: the numbers of values differ; arrays or host values of another device; `part` is 0.
    pub fn exchange<T: Element>(
        &self,
        to: &mut Array<T>,
        from: &mut Pinned<T>,
        of: &Array<T>,
        into: &mut Pinned<T>,
        part: usize,
    ) -> Result<()> {
        to.expect_end(from)?;
        of.expect_end(into)?;
        self.expect_own(to)?;
        self.expect_own(of)?;
        let (mut incoming, outgoing) = (parts(to.len(), part)?, parts(of.len(), part)?);
        let (from, into) = (from.pinned()?, into.pinned()?);
        let streams = ForkedStreams::fork(self, [from, into])?;
        let (mut to, of) = (to.cuda_mut(), of.cuda());
        for out in outgoing {
            if let Some(range) = incoming.next() {
                // SAFETY: all later work is ordered after the copy streams before the borrows end.
                unsafe { self.put(Stream::Upload, part_mut(&mut to, &range)?, from, range.start) }?;
            }
            // SAFETY: as above.
            unsafe { self.get(Stream::Download, part_of(&of, &out)?, into, out.start) }?;
        }
        for range in incoming {
            // SAFETY: as above.
            unsafe { self.put(Stream::Upload, part_mut(&mut to, &range)?, from, range.start) }?;
        }
        streams.join()
    }

    /// Copies `from` to `array`, calls `work` on every `part` values, and copies the results to `to`. While `work` runs on
    /// one part, the next part comes in and the previous part goes out. The pipeline starts after the work queued so far,
    /// and later work waits for all of it. The host does not wait; [`Pinned::values`] does.
    ///
    /// Errors: the numbers of values differ; an array or host values of another device; `part` is 0; errors of `work`.
    pub fn pipeline<T: Element>(
        &self,
        array: &mut Array<T>,
        from: &mut Pinned<T>,
        to: &mut Pinned<T>,
        part: usize,
        mut work: impl FnMut(ViewMut<'_, T>) -> Result<()>,
    ) -> Result<()> {
        array.expect_end(from)?;
        array.expect_end(to)?;
        self.expect_own(array)?;
        let parts = parts(array.len(), part)?;
        let (from, to) = (from.pinned()?, to.pinned()?);
        let streams = ForkedStreams::fork(self, [from, to])?;
        let mut whole = array.cuda_mut();
        for range in parts {
            // SAFETY: work that uses the part is ordered after its upload, and all later work after both copy streams before
            // the borrows end.
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

    fn expect_own<T: Element>(&self, array: &Array<T>) -> Result<()> {
        match array.device().backend() {
            crate::Backend::Cuda(own) if std::ptr::eq(own, self) => Ok(()),
            _ => Err(Error::value(
                "array of a copy",
                self.properties().name.as_str(),
                array.device().describe(),
            )),
        }
    }

    /// # Safety
    /// `from` has `to.len` values starting at value `at`. The rest as for [`super::Driver::queue_upload`].
    unsafe fn put<T>(&self, stream: Stream, to: ViewMut<'_, T>, from: &PinnedBytes, at: usize) -> Result<()> {
        let (offset, bytes) = (at * size_of::<T>(), (to.len * size_of::<T>()) as u64);
        if bytes == 0 {
            return Ok(());
        }
        let _pass = self.memory.gate.pass_now("copying to the GPU")?;
        // SAFETY: as the caller promises.
        unsafe { self.driver.queue_upload(stream, to.address, from.at.add(offset), bytes) }
    }

    /// # Safety
    /// `to` has `from.len` values starting at value `at`. The rest as for [`super::Driver::queue_download`].
    unsafe fn get<T>(&self, stream: Stream, from: View<'_, T>, to: &PinnedBytes, at: usize) -> Result<()> {
        let (offset, bytes) = (at * size_of::<T>(), (from.len * size_of::<T>()) as u64);
        if bytes == 0 {
            return Ok(());
        }
        let _pass = self.memory.gate.pass_now("copying from the GPU")?;
        // SAFETY: as the caller promises.
        unsafe { self.driver.queue_download(stream, from.address, to.at.add(offset), bytes) }
    }
}

/// Both copy streams while they are in use. All later work waits for them, however the call ends.
struct ForkedStreams<'a> {
    cuda: &'a Cuda,
    joined: bool,
}

impl<'a> ForkedStreams<'a> {
    /// Orders both copy streams after all work queued so far. The host waits for them before it touches `ends`.
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

    /// Makes later work wait for both streams, because the arrays and host values are only borrowed. If that fails, waits
    /// for the device. If that fails too, no memory is freed before a wait succeeds.
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

/// Splits `len` values into ranges of `part` values. Errors: `part` is 0.
fn parts(len: usize, part: usize) -> Result<impl Iterator<Item = Range<usize>>> {
    if part == 0 {
        return Err(Error::value("values of a part", "at least 1", part));
    }
    Ok((0..len).step_by(part).map(move |at| at..(at.saturating_add(part)).min(len)))
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
