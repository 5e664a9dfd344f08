//! Memory that calls of one kind keep from one to the next.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use rayspin_core::{Error, Result};

use super::pinned::PinnedBytes;
use super::{Buffer, Cuda, ViewMut, lock};
use crate::Element;

/// Rooms by the name of their calls.
pub(super) type Rooms = Mutex<HashMap<&'static str, Arc<Mutex<Option<Room>>>>>;

/// Words on the device, and one number of the host's that kernels write.
pub(super) struct Room {
    words: Buffer,
    answer: PinnedBytes,
}

/// Bytes of the largest number that is an answer.
const ANSWER: u64 = 8;

impl Cuda {
    /// The number that the kernels of `work` leave: it is given `words` words of the device's memory, all 0, and a place for the number in
    /// the host's memory. This allocates at the first call of a `kind` and where more words are asked for, copies nothing and waits once, for
    /// `work` to be done. Calls of one kind take turns.
    ///
    /// `work` leaves all words 0 again; where it fails they are made anew.
    ///
    /// Errors: work is being recorded; a number of more than 8 bytes; memory; those of `work`.
    pub fn answer<T: Element>(
        &self,
        kind: &'static str,
        words: usize,
        work: impl FnOnce(ViewMut<'_, u64>, ViewMut<'_, T>) -> Result<()>,
    ) -> Result<T> {
        self.expect_not_recording(kind)?;
        let missing =
            || Error::value(format!("answer of {kind}"), "a number of 1 to 8 bytes", size_of::<T>());
        if !(1..=ANSWER as usize).contains(&size_of::<T>()) {
            return Err(missing());
        }
        let room = lock(&self.rooms).entry(kind).or_default().clone();
        let mut room = lock(&room);
        let fits = |room: &Room| room.words.view::<u64>().len() >= words;
        let mut own = match room.take().filter(fits) {
            Some(own) => own,
            None => Room::new(self, kind, words)?,
        };
        own.answer.ask()?;
        let mut place = own.answer.mapped::<T>()?;
        let place = place.part(0, 1).ok_or_else(missing)?;
        work(own.words.view_mut(), place)?;
        let found = own.answer.values::<T>()?.first().copied().ok_or_else(missing)?;
        *room = Some(own);
        Ok(found)
    }
}

impl Room {
    fn new(cuda: &Cuda, kind: &str, words: usize) -> Result<Self> {
        let bytes = (words as u64).saturating_mul(size_of::<u64>() as u64);
        let mut words = cuda.allocate(bytes, &format!("room of {kind}"))?;
        words.set_zero()?;
        Ok(Self { words, answer: cuda.pin(ANSWER)? })
    }
}
