//! Work of several GPUs: order between their streams, and copies from one to another.

#![allow(unsafe_code)]

use std::sync::Arc;

use rayspin_core::{Error, Result};

use super::argument::Home;
use super::buffer::upload;
use super::driver::Driver;
use super::{Cuda, HostCopy, View, ViewMut};
use crate::Element;

/// Bytes that a copy through the host moves at once.
const PIECE: u64 = 16 << 20;

impl Cuda {
    /// Makes work that is queued from now on wait for all work queued on `other` so far. Errors: work of
    /// either is being recorded; a failure of either.
    pub(crate) fn wait_for(&self, other: &Self) -> Result<()> {
        let _passes = self.passes(other)?;
        self.driver.wait_for(&*other.driver)
    }

    /// Queues a copy to the memory of another GPU, behind the work queued so far on this one.
    ///
    /// Errors: views of other devices or of different lengths; a failure of either GPU.
    ///
    /// # Safety
    /// The other GPU's work on `to` has been waited for, and it uses `to` only after it has waited for this
    /// GPU.
    pub(crate) unsafe fn copy_to<T: Element>(
        &self,
        from: &View<'_, T>,
        other: &Self,
        to: &mut ViewMut<'_, T>,
    ) -> Result<()> {
        Home::of(&self.memory).expect("source of a copy between GPUs", from.home)?;
        Home::of(&other.memory).expect("target of a copy between GPUs", to.home)?;
        if from.len != to.len {
            return Err(Error::value("copy between GPUs", format!("{} elements", to.len), from.len));
        }
        let _passes = self.passes(other)?;
        let bytes = (from.len * size_of::<T>()) as u64;
        // SAFETY: both views have as many bytes; the order is the caller's.
        unsafe { self.driver.copy_to(from.address, &*other.driver, to.address, bytes) }
    }

    /// The turn of both GPUs. A thread that records is found before it waits for any.
    fn passes<'a>(&'a self, other: &'a Self) -> Result<impl Sized + 'a> {
        let what = "ordering two GPUs";
        self.expect_not_recording(what)?;
        other.expect_not_recording(what)?;
        // In one order for all threads: two that take them in turn would wait for each other while a third
        // wants to record.
        let mut memories = [&self.memory, &other.memory];
        memories.sort_by_key(|memory| Arc::as_ptr(memory));
        let [first, second] = memories;
        Ok((first.gate.pass_now(what)?, second.gate.pass_now(what)?))
    }
}

/// [`Driver::copy_to`] through the host's memory.
///
/// # Safety
/// As for [`Driver::copy_to`].
pub(super) unsafe fn through_host<D: Driver + ?Sized>(
    own: &D,
    from: u64,
    other: &dyn Driver,
    to: u64,
    bytes: u64,
) -> Result<()> {
    let mut piece = crate::cpu::zeroed("copy between GPUs", bytes.min(PIECE) as usize)?;
    let mut done = 0;
    while done < bytes {
        let part = &mut piece[..(bytes - done).min(PIECE) as usize];
        // SAFETY: the part lies within both ranges.
        unsafe {
            own.download(from + done, part)?;
            upload(other, to + done, part, HostCopy::Staged)?;
        }
        done += part.len() as u64;
    }
    Ok(())
}
