//! Values that come to a device in turns.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use rayspin_core::{Error, Result};

use crate::{Array, Backend, Device, Element, Pinned, Transfer};

/// Values that a device has no room for: parts of one length lie in the host's pinned memory and come to the device one after
/// another, to one place or to two. Two places take turns: while the part in one is used, the next part is copied to the other.
#[derive(Debug)]
pub struct Turns<T: Element> {
    device: Device,
    what: &'static str,
    places: usize,
    /// Parts, to be told without waiting for who uses them.
    count: usize,
    state: Mutex<State<T>>,
}

#[derive(Debug)]
struct State<T: Element> {
    /// The place that takes the next part comes first.
    places: VecDeque<Array<T>>,
    /// Nothing while a copy has it.
    home: Vec<Option<Pinned<T>>>,
    /// The copy under way, with its part, to the first place.
    under_way: Option<(usize, Transfer<T>)>,
}

impl<T: Element> Turns<T> {
    /// Without parts yet, for `places` places (one or two) on `device`. Messages call the values `what`.
    pub fn new(device: &Device, what: &'static str, places: usize) -> Self {
        let state = State { places: VecDeque::new(), home: Vec::new(), under_way: None };
        Self { device: device.clone(), what, places: places.clamp(1, 2), count: 0, state: Mutex::new(state) }
    }

    /// Adds the next part. All parts and places have one length; [`Turns::each`] refuses another.
    pub fn push(&mut self, part: Pinned<T>) {
        self.state.get_mut().unwrap_or_else(PoisonError::into_inner).home.push(Some(part));
        self.count += 1;
    }

    /// Gives an array as a place, which is dropped where there are enough places.
    pub fn offer(&mut self, place: Array<T>) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        if state.places.len() < self.places {
            state.places.push_back(place);
        }
    }

    /// Number of parts.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are no parts.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Calls `work` with each of some parts in order while it is on the device. Other threads wait; `work` must not use the same
    /// parts itself.
    ///
    /// Errors: work is being recorded, parts that are not there, those of `work` and of the device.
    pub fn each(
        &self,
        parts: Range<usize>,
        mut work: impl FnMut(usize, &mut Array<T>) -> Result<()>,
    ) -> Result<()> {
        if parts.is_empty() {
            return Ok(());
        }
        self.expect_not_recording()?;
        let count = self.count;
        if parts.end > count {
            return Err(Error::value(self.what, format!("parts within 0..{count}"), format!("{parts:?}")));
        }
        let state = &mut *self.state.lock().unwrap_or_else(PoisonError::into_inner);
        for index in parts {
            state.begin(index, self.what)?;
            state.land(self.what)?;
            state.places.rotate_left(1);
            if self.places > 1 {
                // Into the other place, after the last work that read it; after the last part for the next call.
                state.begin((index + 1) % count, self.what)?;
            }
            work(index, state.places.back_mut().ok_or_else(|| lost(self.what))?)?;
        }
        Ok(())
    }

    /// What `read` makes of a part on the host. Errors: work is being recorded, no such part, those of a copy that is waited for.
    pub fn read<O>(&self, part: usize, read: impl FnOnce(&[T]) -> O) -> Result<O> {
        self.expect_not_recording()?;
        let state = &mut *self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.under_way.is_some() {
            state.land(self.what)?;
        }
        let home = state.home.get(part).and_then(Option::as_ref).ok_or_else(|| lost(self.what))?;
        Ok(read(home.read()?))
    }

    /// Copies cannot be recorded; one refused halfway would lose its part.
    fn expect_not_recording(&self) -> Result<()> {
        match self.device.backend() {
            Backend::Cuda(cuda) => cuda.expect_not_recording(self.what),
            Backend::Cpu(_) => Ok(()),
        }
    }
}

impl<T: Element> State<T> {
    /// Begins to copy a part to the first place, unless that is under way.
    fn begin(&mut self, index: usize, what: &str) -> Result<()> {
        match &self.under_way {
            Some((which, _)) if *which == index => return Ok(()),
            // Work that failed left it.
            Some(_) => self.land(what)?,
            None => {}
        }
        let home = self.home.get_mut(index).and_then(Option::take).ok_or_else(|| lost(what))?;
        let place = self.places.pop_front().ok_or_else(|| lost(what))?;
        self.under_way = Some((index, place.upload(home)?));
        Ok(())
    }

    /// Ends the copy under way.
    fn land(&mut self, what: &str) -> Result<()> {
        let (index, transfer) = self.under_way.take().ok_or_else(|| lost(what))?;
        let (place, home) = transfer.finish()?;
        if let Some(at) = self.home.get_mut(index) {
            *at = Some(home);
        }
        self.places.push_front(place);
        Ok(())
    }
}

/// After a copy that failed.
fn lost(what: &str) -> Error {
    Error::Numerical { what: what.to_owned(), detail: "lost to an earlier failure".to_owned() }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn parts_come_in_order_whatever_failed_before() {
        let device = Device::cpu_with_threads(1).unwrap();
        for places in [1, 2] {
            let mut turns = Turns::<f32>::new(&device, "parts of a test", places);
            for part in 0..4 {
                let mut home = Pinned::new(&device, 3).unwrap();
                home.values().unwrap().fill(part as f32);
                turns.push(home);
                turns.offer(Array::zeros(&device, &[3]).unwrap());
            }
            for range in [0..4, 1..3, 2..2, 3..4, 0..4] {
                let mut seen = Vec::new();
                let each = turns.each(range.clone(), |index, part| {
                    assert_eq!(part.cpu(), [index as f32; 3]);
                    seen.push(index);
                    Ok(())
                });
                each.unwrap();
                assert!(seen.into_iter().eq(range));
                let refused =
                    turns.each(0..4, |index, _| if index == 2 { Err(lost("test")) } else { Ok(()) });
                assert!(refused.is_err());
                assert_eq!(turns.read(3, <[f32]>::to_vec).unwrap(), [3.0; 3]);
            }
            assert!(turns.each(3..5, |_, _| Ok(())).is_err() && turns.read(4, |_| ()).is_err());
            assert_eq!((turns.len(), turns.is_empty()), (4, false));
        }
    }
}
