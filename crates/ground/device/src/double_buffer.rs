//! Values that are copied to a device part by part because they do not fit there at once.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use rayspin_core::{Error, Result};

use crate::{Array, Backend, Device, Element, Pinned, Transfer};

/// Double buffering for values that do not fit on a device. Parts of equal length lie in pinned host memory.
/// They are copied to one or two buffers on the device, one part after another. With two buffers the next
/// part is copied to one buffer while the part in the other is used.
#[derive(Debug)]
pub struct DoubleBuffer<T: Element> {
    device: Device,
    what: &'static str,
    places: usize,
    /// Number of parts, readable without waiting for the lock.
    count: usize,
    state: Mutex<State<T>>,
}

#[derive(Debug)]
struct State<T: Element> {
    /// Buffers on the device. The first one receives the next part.
    places: VecDeque<Array<T>>,
    /// The parts on the host; `None` while a copy owns the part.
    home: Vec<Option<Pinned<T>>>,
    /// The copy under way and the part that it copies.
    under_way: Option<(usize, Transfer<T>)>,
}

impl<T: Element> DoubleBuffer<T> {
    /// No parts yet, for `places` buffers (one or two) on `device`. Errors call the values `what`.
    pub fn new(device: &Device, what: &'static str, places: usize) -> Self {
        let state = State { places: VecDeque::new(), home: Vec::new(), under_way: None };
        Self { device: device.clone(), what, places: places.clamp(1, 2), count: 0, state: Mutex::new(state) }
    }

    /// Adds the next part. All parts and buffers have the same length; [`DoubleBuffer::each`] refuses any
    /// other.
    pub fn push(&mut self, part: Pinned<T>) {
        self.state.get_mut().unwrap_or_else(PoisonError::into_inner).home.push(Some(part));
        self.count += 1;
    }

    /// Adds a buffer on the device. Drops it if there are enough buffers already.
    pub fn add_buffer(&mut self, place: Array<T>) {
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

    /// Calls `work` with each part of a range, in order, while the part is on the device. Other threads wait.
    /// `work` must not use this double buffer itself.
    ///
    /// Errors: work is being recorded; a range beyond the parts; errors of `work` and of the device.
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
                // The next part goes to the other buffer, after the last work that read that buffer. After
                // the last part the first one follows, for the next call.
                state.begin((index + 1) % count, self.what)?;
            }
            work(index, state.places.back_mut().ok_or_else(|| lost(self.what))?)?;
        }
        Ok(())
    }

    /// Calls `read` with a part on the host. Errors: work is being recorded; no such part; a copy that
    /// failed.
    pub fn read<O>(&self, part: usize, read: impl FnOnce(&[T]) -> O) -> Result<O> {
        self.expect_not_recording()?;
        let state = &mut *self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.under_way.is_some() {
            state.land(self.what)?;
        }
        let home = state.home.get(part).and_then(Option::as_ref).ok_or_else(|| lost(self.what))?;
        Ok(read(home.read()?))
    }

    /// Copies cannot be recorded, and a copy that is refused halfway would lose its part.
    fn expect_not_recording(&self) -> Result<()> {
        match self.device.backend() {
            Backend::Cuda(cuda) => cuda.expect_not_recording(self.what),
            Backend::Cpu(_) => Ok(()),
        }
    }
}

impl<T: Element> State<T> {
    /// Begins to copy a part to the first buffer, unless that copy is under way.
    fn begin(&mut self, index: usize, what: &str) -> Result<()> {
        match &self.under_way {
            Some((which, _)) if *which == index => return Ok(()),
            // Work that failed left this copy.
            Some(_) => self.land(what)?,
            None => {}
        }
        let home = self.home.get_mut(index).and_then(Option::take).ok_or_else(|| lost(what))?;
        let place = self.places.pop_front().ok_or_else(|| lost(what))?;
        self.under_way = Some((index, place.upload(home)?));
        Ok(())
    }

    /// Finishes the copy under way.
    fn land(&mut self, what: &str) -> Result<()> {
        let (index, transfer) = self.under_way.take().ok_or_else(|| lost(what))?;
        let (place, home) = transfer.finish()?;
        if let Some(slot) = self.home.get_mut(index) {
            *slot = Some(home);
        }
        self.places.push_front(place);
        Ok(())
    }
}

/// The error for values that an earlier failed copy lost.
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
            let mut buffer = DoubleBuffer::<f32>::new(&device, "parts of a test", places);
            for part in 0..4 {
                let mut home = Pinned::new(&device, 3).unwrap();
                home.values().unwrap().fill(part as f32);
                buffer.push(home);
                buffer.add_buffer(Array::zeros(&device, &[3]).unwrap());
            }
            for range in [0..4, 1..3, 2..2, 3..4, 0..4] {
                let mut seen = Vec::new();
                let each = buffer.each(range.clone(), |index, part| {
                    assert_eq!(part.cpu(), [index as f32; 3]);
                    seen.push(index);
                    Ok(())
                });
                each.unwrap();
                assert!(seen.into_iter().eq(range));
                let refused =
                    buffer.each(0..4, |index, _| if index == 2 { Err(lost("test")) } else { Ok(()) });
                assert!(refused.is_err());
                assert_eq!(buffer.read(3, <[f32]>::to_vec).unwrap(), [3.0; 3]);
            }
            assert!(buffer.each(3..5, |_, _| Ok(())).is_err() && buffer.read(4, |_| ()).is_err());
            assert_eq!((buffer.len(), buffer.is_empty()), (4, false));
        }
    }
}
