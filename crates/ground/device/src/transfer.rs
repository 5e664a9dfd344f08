//! Copies between the host and a device that run concurrently with the device's other work.

use std::ops::Range;

use rayspin_core::{Error, Result, expect_shape};

use crate::cuda::{Copying, PinnedBytes, ViewMut};
use crate::{Array, Backend, Cuda, Device, Element, HostCopy};

/// Host memory that a device copies from and to by itself. For a GPU this is pinned memory. Allocate little
/// of it, because the system cannot move it. For the CPU it is a plain vector.
pub struct Pinned<T: Element> {
    device: Device,
    len: usize,
    memory: TransferMemory<T>,
}

enum TransferMemory<T> {
    Host(Vec<T>),
    Pinned(PinnedBytes),
}

impl<T: Element> Pinned<T> {
    /// `len` values for copies from and to `device`, all bytes zero. Errors: no memory.
    pub fn new(device: &Device, len: usize) -> Result<Self> {
        let bytes = (len as u64).saturating_mul(size_of::<T>() as u64);
        let memory = match device.backend() {
            Backend::Cpu(_) => {
                TransferMemory::Host(crate::cpu::zeroed(format_args!("{len} host values"), len)?)
            }
            Backend::Cuda(cuda) => TransferMemory::Pinned(cuda.pin(bytes)?),
        };
        Ok(Self { device: device.clone(), len, memory })
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the length is 0.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The values. Waits for the last copy. Errors: the errors of that copy.
    pub fn values(&mut self) -> Result<&mut [T]> {
        match &mut self.memory {
            TransferMemory::Host(values) => Ok(values),
            TransferMemory::Pinned(bytes) => bytes.values(),
        }
    }

    /// The values, read-only. Waits for the last copy. Errors: the errors of that copy.
    pub fn read(&self) -> Result<&[T]> {
        match &self.memory {
            TransferMemory::Host(values) => Ok(values),
            TransferMemory::Pinned(bytes) => bytes.read(),
        }
    }

    /// Calls `work` with a view of the values for a GPU's kernels, which read and write them in place. The
    /// device does the work of `work` in order, and the host does not wait for it; [`Pinned::values`] does.
    ///
    /// Errors: the values do not belong to a GPU; work is being recorded; errors of `work`.
    pub fn lend<O>(&mut self, work: impl FnOnce(ViewMut<'_, T>) -> Result<O>) -> Result<O> {
        match (self.device.backend(), &mut self.memory) {
            (Backend::Cuda(cuda), TransferMemory::Pinned(bytes)) => cuda.lend(bytes, work),
            _ => Err(Error::value("host values for kernels", "a GPU's", self.device.describe())),
        }
    }

    fn pinned(&mut self) -> Result<&mut PinnedBytes> {
        match &mut self.memory {
            TransferMemory::Pinned(bytes) => Ok(bytes),
            TransferMemory::Host(_) => {
                Err(Error::value("host values of a copy", "a GPU's", self.device.describe()))
            }
        }
    }

    /// Errors: the range lies outside the values.
    fn expect_range(&self, range: &Range<usize>) -> Result<()> {
        if range.start <= range.end && range.end <= self.len {
            return Ok(());
        }
        let expected = format!("a range within {} values", self.len);
        Err(Error::value("host values of a copy", expected, format!("{range:?}")))
    }
}

impl<T: Element> std::fmt::Debug for Pinned<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Pinned<{}>[{}]", std::any::type_name::<T>(), self.len)
    }
}

/// A copy under way. It owns both ends, so that nothing can touch them before [`Transfer::finish`].
#[must_use = "the array comes back from `finish`"]
pub struct Transfer<T: Element> {
    ends: Option<(Array<T>, Pinned<T>)>,
    /// `None` if the copy is done.
    copy: Option<Copying>,
}

impl<T: Element> Transfer<T> {
    /// Gives back both ends. The device's later work waits for the copy. The host does not wait here;
    /// [`Pinned::values`] does.
    ///
    /// Errors: a failure of the device; work is being recorded. The ends are then freed once the copy is
    /// known to be done.
    pub fn finish(mut self) -> Result<(Array<T>, Pinned<T>)> {
        if let Some(copy) = &self.copy {
            copy.join()?;
        }
        self.copy = None;
        self.ends.take().ok_or_else(|| Error::value("copy", "one that was begun", "none"))
    }
}

impl<T: Element> Drop for Transfer<T> {
    fn drop(&mut self) {
        // The copy ends before the array is dropped, because it uses the array's memory.
        if let Some(copy) = self.copy.take().filter(|copy| !copy.over()) {
            copy.clone().keep(Self { ends: self.ends.take(), copy: Some(copy) });
        }
    }
}

impl<T: Element> std::fmt::Debug for Transfer<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Transfer({:?}, {})", self.ends, if self.copy.is_some() { "under way" } else { "done" })
    }
}

impl<T: Element> Array<T> {
    /// Begins to copy `from` into this array. The copy starts after all work queued so far and runs
    /// concurrently with the work that is queued later. To overlap the two, start the copy of a frame before
    /// you queue the work on the previous frame.
    ///
    /// Errors: another number of values, another device.
    pub fn upload(mut self, mut from: Pinned<T>) -> Result<Transfer<T>> {
        self.expect_end(&from)?;
        let device = self.device().clone();
        let copy = match (device.backend(), &mut from.memory) {
            (Backend::Cuda(cuda), TransferMemory::Pinned(bytes)) => {
                cuda.upload_async(self.cuda_mut(), bytes)?
            }
            (_, TransferMemory::Host(values)) => {
                self.set(values)?;
                None
            }
            _ => return Err(self.mixed()),
        };
        Ok(Transfer { ends: Some((self, from)), copy })
    }

    /// Begins to copy this array into `to`, as [`Array::upload`] does.
    pub fn download(self, mut to: Pinned<T>) -> Result<Transfer<T>> {
        self.expect_end(&to)?;
        let device = self.device().clone();
        let copy = match (device.backend(), &mut to.memory) {
            (Backend::Cuda(cuda), TransferMemory::Pinned(bytes)) => {
                cuda.download_async(self.cuda(), bytes)?
            }
            (Backend::Cpu(_), TransferMemory::Host(values)) => {
                values.copy_from_slice(self.cpu());
                None
            }
            _ => return Err(self.mixed()),
        };
        Ok(Transfer { ends: Some((self, to)), copy })
    }

    /// Queues a copy of this array into `to` in the order of the device's work, and does not wait for it. The
    /// copy sees the work queued so far and nothing later. [`Pinned::values`] of the returned memory waits.
    ///
    /// Errors: another number of values, another device.
    pub fn send(&self, mut to: Pinned<T>) -> Result<Pinned<T>> {
        self.expect_end(&to)?;
        match (self.device().backend(), &mut to.memory) {
            (Backend::Cuda(cuda), TransferMemory::Pinned(bytes)) => {
                cuda.download_in_order(self.cuda(), bytes)?
            }
            (Backend::Cpu(_), TransferMemory::Host(values)) => values.copy_from_slice(self.cpu()),
            _ => return Err(self.mixed()),
        }
        Ok(to)
    }

    /// Queues a copy of the values `range` of `from` to the elements starting at `start`, in the order of the
    /// device's work. Does not wait; [`Pinned::values`] does.
    ///
    /// Errors: a range outside the array or the host values, another device, work that is being recorded.
    pub fn receive_part(&mut self, start: usize, from: &mut Pinned<T>, range: Range<usize>) -> Result<()> {
        from.expect_range(&range)?;
        self.expect_part(start, range.len())?;
        self.expect_same(from)?;
        let device = self.device().clone();
        match (device.backend(), &mut from.memory) {
            (Backend::Cuda(cuda), TransferMemory::Pinned(bytes)) => {
                let mut whole = self.cuda_mut();
                let Some(part) = whole.part(start, range.len()) else { return Err(self.mixed()) };
                cuda.queue_upload(part, bytes, range.start)
            }
            (_, TransferMemory::Host(values)) => self.set_part(start, &values[range]),
            _ => Err(self.mixed()),
        }
    }

    /// Queues a copy of the elements starting at `start` to the values `range` of `to`, as
    /// [`Array::receive_part`] does.
    pub fn send_part(&self, start: usize, to: &mut Pinned<T>, range: Range<usize>) -> Result<()> {
        to.expect_range(&range)?;
        self.expect_part(start, range.len())?;
        self.expect_same(to)?;
        match (self.device().backend(), &mut to.memory) {
            (Backend::Cuda(cuda), TransferMemory::Pinned(bytes)) => {
                let whole = self.cuda();
                let part = whole.part(start, range.len()).ok_or_else(|| self.mixed())?;
                cuda.queue_download(part, bytes, range.start)
            }
            (_, TransferMemory::Host(values)) => self.get(start, &mut values[range], HostCopy::Staged),
            _ => Err(self.mixed()),
        }
    }

    fn expect_end(&self, end: &Pinned<T>) -> Result<()> {
        expect_shape("host values of a copy", &[self.len()], &[end.len])?;
        self.expect_same(end)
    }

    fn expect_same(&self, end: &Pinned<T>) -> Result<()> {
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

impl Cuda {
    /// Copies `from` to `to` and `sent` to `into` at the same time, in copies of `part` values. The copies
    /// start after the work queued so far, and later work waits for both. The host does not wait;
    /// [`Pinned::values`] does.
    ///
    /// Errors: the numbers of values differ; arrays or host values of another device; `part` is 0.
    pub fn exchange<T: Element>(
        &self,
        to: &mut Array<T>,
        from: &mut Pinned<T>,
        sent: &Array<T>,
        into: &mut Pinned<T>,
        part: usize,
    ) -> Result<()> {
        to.expect_end(from)?;
        sent.expect_end(into)?;
        self.expect_own(to)?;
        self.expect_own(sent)?;
        self.exchange_parts(to.cuda_mut(), from.pinned()?, sent.cuda(), into.pinned()?, part)
    }

    /// Copies `from` to `array`, calls `work` on every `part` values, and copies the results to `to`. While
    /// `work` runs on one part, the next part comes in and the previous part goes out. The pipeline starts
    /// after the work queued so far, and later work waits for all of it. The host does not wait;
    /// [`Pinned::values`] does.
    ///
    /// Errors: the numbers of values differ; an array or host values of another device; `part` is 0; errors
    /// of `work`.
    pub fn pipeline<T: Element>(
        &self,
        array: &mut Array<T>,
        from: &mut Pinned<T>,
        to: &mut Pinned<T>,
        part: usize,
        work: impl FnMut(ViewMut<'_, T>) -> Result<()>,
    ) -> Result<()> {
        array.expect_end(from)?;
        array.expect_end(to)?;
        self.expect_own(array)?;
        self.pipeline_parts(array.cuda_mut(), from.pinned()?, to.pinned()?, part, work)
    }

    fn expect_own<T: Element>(&self, array: &Array<T>) -> Result<()> {
        match array.device().backend() {
            Backend::Cuda(own) if std::ptr::eq(own, self) => Ok(()),
            _ => Err(Error::value(
                "array of a copy",
                self.properties().name.as_str(),
                array.device().describe(),
            )),
        }
    }
}
