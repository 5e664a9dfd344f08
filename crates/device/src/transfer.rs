//! Copies between the host and a device beside the device's other work.

use std::sync::Arc;

use rayspin_core::{Error, Result, expect_shape};

use crate::cuda::{PinnedBytes, Ticket};
use crate::{Array, Backend, Device, Element};

/// Values in host memory that a device copies from and to by itself: on a GPU pinned memory, of which there should not be
/// much, for the system cannot move it; on the CPU a plain vector.
pub struct Pinned<T: Element> {
    device: Device,
    len: usize,
    place: Place<T>,
}

enum Place<T> {
    Host(Vec<T>),
    Pinned(PinnedBytes),
}

impl<T: Element> Pinned<T> {
    /// `len` values for copies from and to `device`, all bytes zero. Errors: no memory.
    pub fn new(device: &Device, len: usize) -> Result<Self> {
        let bytes = (len as u64).saturating_mul(size_of::<T>() as u64);
        let place = match device.backend() {
            Backend::Cpu(_) => Place::Host(bytemuck::allocation::try_zeroed_vec(len).map_err(|()| {
                let available = crate::cpu::memory().map_or(0, |(_, available)| available);
                Error::Memory { what: format!("{len} host values"), needed: bytes, available }
            })?),
            Backend::Cuda(cuda) => Place::Pinned(cuda.pin(bytes)?),
        };
        Ok(Self { device: device.clone(), len, place })
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The values, once the copy that was begun last is done. Errors: of that copy.
    pub fn values(&mut self) -> Result<&mut [T]> {
        match &mut self.place {
            Place::Host(values) => Ok(values),
            Place::Pinned(bytes) => bytes.values(),
        }
    }
}

impl<T: Element> std::fmt::Debug for Pinned<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Pinned<{}>[{}]", std::any::type_name::<T>(), self.len)
    }
}

/// A copy under way, with both of its ends: neither can be touched before [`Transfer::finish`].
#[must_use = "the array comes back from `finish`"]
#[derive(Debug)]
pub struct Transfer<T: Element> {
    ends: Option<(Array<T>, Pinned<T>)>,
    ticket: Joined,
}

/// A ticket that is joined when it is dropped at the latest: an array is given back in the order of the device's work.
struct Joined(Option<Arc<dyn Ticket>>);

impl Joined {
    fn join(&mut self) -> Result<()> {
        self.0.take().map_or(Ok(()), |ticket| ticket.join())
    }
}

impl Drop for Joined {
    fn drop(&mut self) {
        // Where this fails the device is lost.
        let _ = self.join();
    }
}

impl std::fmt::Debug for Joined {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.0.is_some() { "under way" } else { "done" })
    }
}

impl<T: Element> Transfer<T> {
    /// Both ends. The device's later work waits for the copy, the host does not; [`Pinned::values`] does.
    pub fn finish(mut self) -> Result<(Array<T>, Pinned<T>)> {
        self.ticket.join()?;
        self.ends.take().ok_or_else(|| Error::value("copy", "one that was begun", "none"))
    }
}

impl<T: Element> Drop for Transfer<T> {
    fn drop(&mut self) {
        // Before the array, whose memory the copy uses.
        let _ = self.ticket.join();
    }
}

impl<T: Element> Array<T> {
    /// Begins to copy `from` into this array. It begins after all work that the device was asked for before, and goes on beside
    /// what is asked for afterwards: ask for a frame's copy before the work on the frame before it.
    ///
    /// Errors: another number of values, another device.
    pub fn upload(mut self, mut from: Pinned<T>) -> Result<Transfer<T>> {
        self.expect_end(&from)?;
        let device = self.device().clone();
        let ticket = match (device.backend(), &mut from.place) {
            (Backend::Cuda(cuda), Place::Pinned(bytes)) => cuda.upload_beside(self.cuda_mut(), bytes)?,
            (_, Place::Host(values)) => {
                self.set(values)?;
                None
            }
            _ => return Err(self.mixed()),
        };
        Ok(Transfer { ends: Some((self, from)), ticket: Joined(ticket) })
    }

    /// Begins to copy this array into `to`: as [`Array::upload`].
    pub fn download(self, mut to: Pinned<T>) -> Result<Transfer<T>> {
        self.expect_end(&to)?;
        let device = self.device().clone();
        let ticket = match (device.backend(), &mut to.place) {
            (Backend::Cuda(cuda), Place::Pinned(bytes)) => cuda.download_beside(self.cuda(), bytes)?,
            (Backend::Cpu(_), Place::Host(values)) => {
                values.copy_from_slice(self.cpu());
                None
            }
            _ => return Err(self.mixed()),
        };
        Ok(Transfer { ends: Some((self, to)), ticket: Joined(ticket) })
    }

    /// Asks for a copy of this array into `to`, in the order of the device's work, and does not wait for it: the values are those
    /// that the work asked for so far leaves, whatever is asked for afterwards. [`Pinned::values`] of what is returned waits.
    ///
    /// Errors: another number of values, another device.
    pub fn send(&self, mut to: Pinned<T>) -> Result<Pinned<T>> {
        self.expect_end(&to)?;
        match (self.device().backend(), &mut to.place) {
            (Backend::Cuda(cuda), Place::Pinned(bytes)) => cuda.download_in_order(self.cuda(), bytes)?,
            (Backend::Cpu(_), Place::Host(values)) => values.copy_from_slice(self.cpu()),
            _ => return Err(self.mixed()),
        }
        Ok(to)
    }

    fn expect_end(&self, end: &Pinned<T>) -> Result<()> {
        expect_shape("host values of a copy", &[self.len()], &[end.len])?;
        if self.device().same_as(&end.device) { Ok(()) } else { Err(self.mixed()) }
    }

    fn mixed(&self) -> Error {
        Error::value(
            "host values of a copy",
            format!("ones for {}", self.device().describe()),
            "another device's",
        )
    }
}
