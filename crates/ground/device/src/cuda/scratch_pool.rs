//! Scratch memory that calls of one kind reuse.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use rayspin_core::{Error, Result};

use super::pinned::PinnedBytes;
use super::{Buffer, Cuda, ViewMut, lock};
use crate::Element;

/// Scratch memory by the kind of call.
pub(super) type ScratchPools = Mutex<HashMap<&'static str, Arc<Mutex<Option<ScratchPool>>>>>;

/// Words on the device, and one number in pinned host memory that kernels write.
pub(super) struct ScratchPool {
    words: Buffer,
    scalar: PinnedBytes,
}

/// Bytes of the largest number that [`Cuda::read_scalar`] returns.
const MAX_BYTES: u64 = 8;

impl Cuda {
    /// Returns the number that the kernels of `work` compute. `work` gets `words` words of device memory, all
    /// 0, and a place for the number in pinned host memory. The first call of a `kind`, and a call that needs
    /// more words, allocates. The call copies nothing and waits once, for `work` to finish. Calls of one kind
    /// take turns.
    ///
    /// `work` leaves all words 0 again. If it fails, the words are allocated anew.
    ///
    /// Errors: work is being recorded; a number of more than 8 bytes; no memory; errors of `work`.
    pub fn read_scalar<T: Element>(
        &self,
        kind: &'static str,
        words: usize,
        work: impl FnOnce(ViewMut<'_, u64>, ViewMut<'_, T>) -> Result<()>,
    ) -> Result<T> {
        self.expect_not_recording(kind)?;
        let missing =
            || Error::value(format!("scalar of {kind}"), "a number of 1 to 8 bytes", size_of::<T>());
        if !(1..=MAX_BYTES as usize).contains(&size_of::<T>()) {
            return Err(missing());
        }
        let room = lock(&self.scratch).entry(kind).or_default().clone();
        let mut room = lock(&room);
        let fits = |room: &ScratchPool| room.words.view::<u64>().len() >= words;
        let mut own = match room.take().filter(fits) {
            Some(own) => own,
            None => ScratchPool::new(self, kind, words)?,
        };
        own.scalar.ask()?;
        let mut place = own.scalar.mapped::<T>()?;
        let place = place.part(0, 1).ok_or_else(missing)?;
        work(own.words.view_mut(), place)?;
        let value = own.scalar.values::<T>()?.first().copied().ok_or_else(missing)?;
        *room = Some(own);
        Ok(value)
    }
}

impl ScratchPool {
    fn new(cuda: &Cuda, kind: &str, words: usize) -> Result<Self> {
        let bytes = (words as u64).saturating_mul(size_of::<u64>() as u64);
        let mut words = cuda.allocate(bytes, &format!("scratch memory of {kind}"))?;
        words.set_zero()?;
        Ok(Self { words, scalar: cuda.pin(MAX_BYTES)? })
    }
}
