//! Copies between pinned memory and the device, part by part: in the order of the work, or on lanes beside it.

#![allow(unsafe_code)]

use std::ops::Range;

use rayspin_core::{Error, Result};

use super::{Cuda, Lane, PinnedBytes, View, ViewMut};
use crate::{Array, Element, Pinned};

impl Cuda {
    /// Asks for a copy of the bytes of `from` from `at` on in the order of the device's work; they are there.
    pub(crate) fn queue_upload<T: Element>(
        &self,
        to: ViewMut<'_, T>,
        from: &mut PinnedBytes,
        at: usize,
    ) -> Result<()> {
        self.memory.gate.pass_now("copying to the GPU").map(drop)?;
        from.ask()?;
        // SAFETY: `ask` has the host wait before it touches `from`; what uses `to` comes later in the order of work.
        unsafe { self.put(Lane::Work, to, from, at) }
    }

    /// Asks for a copy to the bytes of `to` from `at` on in the order of the device's work; they are there.
    pub(crate) fn queue_download<T: Element>(
        &self,
        from: View<'_, T>,
        to: &mut PinnedBytes,
        at: usize,
    ) -> Result<()> {
        self.memory.gate.pass_now("copying from the GPU").map(drop)?;
        to.ask()?;
        // SAFETY: as above.
        unsafe { self.get(Lane::Work, from, to, at) }
    }

    /// `work` on pinned values as kernels see them.
    pub(crate) fn lend<T: Element, O>(
        &self,
        pinned: &mut PinnedBytes,
        work: impl FnOnce(ViewMut<'_, T>) -> Result<O>,
    ) -> Result<O> {
        // Recorded work could touch the values at any later time.
        self.memory.gate.pass_now("lending host memory to kernels").map(drop)?;
        pinned.ask()?;
        let done = work(pinned.mapped()?);
        // Nor may what `work` itself recorded be done again.
        self.memory.gate.goes();
        done
    }

    /// Copies `from` to `to` and `of` to `into` at the same time, `part` values a copy: after the work asked for so far; later
    /// work waits for both, the host does not, [`Pinned::values`] does.
    ///
    /// Errors: numbers of values that differ, another device's arrays or host values, parts of 0.
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
        let lanes = Lanes::fork(self, [from, into])?;
        let (mut to, of) = (to.cuda_mut(), of.cuda());
        for out in outgoing {
            if let Some(range) = incoming.next() {
                // SAFETY: the lanes are passed on to all later work before the borrows end.
                unsafe { self.put(Lane::In, part_mut(&mut to, &range)?, from, range.start) }?;
            }
            // SAFETY: as above.
            unsafe { self.get(Lane::Out, part_of(&of, &out)?, into, out.start) }?;
        }
        for range in incoming {
            // SAFETY: as above.
            unsafe { self.put(Lane::In, part_mut(&mut to, &range)?, from, range.start) }?;
        }
        lanes.join()
    }

    /// Copies `from` to `array`, has `work` done on each `part` values, and copies them to `to`: while one part is worked on, the
    /// next comes in and the last goes out. After the work asked for so far; later work waits for all of it, the host does not,
    /// [`Pinned::values`] does.
    ///
    /// Errors: numbers of values that differ, another device's array or host values, parts of 0; those of `work`.
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
        let lanes = Lanes::fork(self, [from, to])?;
        let mut whole = array.cuda_mut();
        for range in parts {
            // SAFETY: the part is used after its lane was passed on; all are before the borrows end.
            unsafe { self.put(Lane::In, part_mut(&mut whole, &range)?, from, range.start) }?;
            self.pass(Lane::In, Lane::Work)?;
            work(part_mut(&mut whole, &range)?)?;
            self.pass(Lane::Work, Lane::Out)?;
            // SAFETY: as above; nothing else is asked of this part.
            unsafe { self.get(Lane::Out, part_mut(&mut whole, &range)?.view(), to, range.start) }?;
        }
        lanes.join()
    }

    fn pass(&self, from: Lane, to: Lane) -> Result<()> {
        let _pass = self.memory.gate.pass_now("copying beside the GPU's work")?;
        self.driver.pass(from, to)
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
    /// `from` has so many values from value `at` on; the rest as for [`super::Driver::queue_upload`].
    unsafe fn put<T>(&self, lane: Lane, to: ViewMut<'_, T>, from: &PinnedBytes, at: usize) -> Result<()> {
        let (offset, bytes) = (at * size_of::<T>(), (to.len * size_of::<T>()) as u64);
        if bytes == 0 {
            return Ok(());
        }
        let _pass = self.memory.gate.pass_now("copying to the GPU")?;
        // SAFETY: as the caller promises.
        unsafe { self.driver.queue_upload(lane, to.address, from.at.add(offset), bytes) }
    }

    /// # Safety
    /// `to` has so many values from value `at` on; the rest as for [`super::Driver::queue_download`].
    unsafe fn get<T>(&self, lane: Lane, from: View<'_, T>, to: &PinnedBytes, at: usize) -> Result<()> {
        let (offset, bytes) = (at * size_of::<T>(), (from.len * size_of::<T>()) as u64);
        if bytes == 0 {
            return Ok(());
        }
        let _pass = self.memory.gate.pass_now("copying from the GPU")?;
        // SAFETY: as the caller promises.
        unsafe { self.driver.queue_download(lane, from.address, to.at.add(offset), bytes) }
    }
}

/// Both lanes of copies under way: however this ends, all later work waits for them.
struct Lanes<'a> {
    cuda: &'a Cuda,
    joined: bool,
}

impl<'a> Lanes<'a> {
    /// They begin after all work asked for so far, and the host waits for them before it touches `ends`.
    fn fork(cuda: &'a Cuda, ends: [&mut PinnedBytes; 2]) -> Result<Self> {
        cuda.memory.gate.pass_now("copying beside the GPU's work").map(drop)?;
        for end in ends {
            end.ask()?;
        }
        cuda.pass(Lane::Work, Lane::In)?;
        cuda.pass(Lane::Work, Lane::Out)?;
        Ok(Self { cuda, joined: false })
    }

    fn join(mut self) -> Result<()> {
        self.joined = true;
        self.end()
    }

    /// Arrays and host values are borrowed: where later work cannot be made to wait, the device is waited for, and where that
    /// fails too, nothing is given back before it succeeds.
    fn end(&self) -> Result<()> {
        let both = [Lane::In, Lane::Out].map(|lane| self.cuda.pass(lane, Lane::Work));
        let passed: Result<()> = both.into_iter().collect();
        passed.inspect_err(|_| {
            self.cuda.memory.idle(&*self.cuda.driver);
        })
    }
}

impl Drop for Lanes<'_> {
    fn drop(&mut self) {
        if !self.joined {
            // The caller gets the first failure.
            let _ = self.end();
        }
    }
}

/// The parts of `len` values. Errors: parts of 0.
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
