use std::any::TypeId;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rayspin_core::{C32, C64, Error, Result};

use super::argument::Home;
use super::{Driver, Lender, Lent, Memory, View, ViewMut};
use crate::Element;

/// How values are copied between a GPU and pageable host memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostCopy {
    /// Through pinned buffers that several threads fill or empty. Each thread has two: it fills one while the
    /// other is copied.
    Staged,
    /// By the driver's own copy of pageable memory.
    Unstaged,
}

/// A piece of device memory, freed on drop, or given back to the library that lent it.
pub(crate) struct Buffer {
    driver: Arc<dyn Driver>,
    memory: Arc<Memory>,
    address: u64,
    bytes: u64,
    lender: Option<Arc<Lender>>,
}

#[allow(unsafe_code)]
impl Buffer {
    pub(super) fn new(
        driver: &Arc<dyn Driver>,
        memory: &Arc<Memory>,
        bytes: u64,
        what: &str,
    ) -> Result<Self> {
        // Frees the memory that an earlier failure left behind. If that fails, the allocation below reports
        // it.
        let _ = memory.settle(&**driver);
        let _pass = memory.gate.pass_now(&format!("allocating {what} on the GPU"))?;
        let used = memory.used.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        let give_back = || memory.used.fetch_sub(bytes, Ordering::Relaxed);
        let limit = memory.limit.load(Ordering::Relaxed);
        let refused = || memory.refused.fetch_add(1, Ordering::Relaxed);
        if limit != 0 && used > limit {
            give_back();
            refused();
            return Err(Error::Memory {
                what: format!("{what} on the GPU"),
                needed: bytes,
                available: limit.saturating_sub(used - bytes),
            });
        }
        // Not every driver gives an address for an allocation of 0 bytes.
        let address = driver.allocate(bytes.max(1)).map_err(|e| {
            give_back();
            match e {
                Error::Memory { available, .. } => {
                    refused();
                    Error::Memory { what: format!("{what} on the GPU"), needed: bytes, available }
                }
                other => other,
            }
        })?;
        memory.peak.fetch_max(used, Ordering::Relaxed);
        Ok(Self { driver: driver.clone(), memory: memory.clone(), address, bytes, lender: None })
    }

    /// `bytes` bytes of memory that another library owns. Work that is queued from now on waits for what its
    /// stream has queued.
    ///
    /// # Safety
    /// As for [`Array::lent`](crate::Array::lent).
    pub(super) unsafe fn lent(
        driver: &Arc<dyn Driver>,
        memory: &Arc<Memory>,
        lent: Lent,
        bytes: u64,
    ) -> Result<Self> {
        lent.lender.lend_to(driver, memory)?;
        let (driver, memory) = (driver.clone(), memory.clone());
        Ok(Self { driver, memory, address: lent.address, bytes, lender: Some(lent.lender) })
    }

    pub(crate) fn view<T: Element>(&self) -> View<'_, T> {
        let len = self.bytes as usize / size_of::<T>();
        View { address: self.address, len, home: Home::of(&self.memory), life: PhantomData }
    }

    pub(crate) fn view_mut<T: Element>(&mut self) -> ViewMut<'_, T> {
        let len = self.bytes as usize / size_of::<T>();
        ViewMut { address: self.address, len, home: Home::of(&self.memory), life: PhantomData }
    }

    pub(crate) fn set_zero(&mut self) -> Result<()> {
        if self.bytes == 0 {
            return Ok(());
        }
        let _pass = self.memory.gate.pass();
        // SAFETY: all bytes are this buffer's own.
        unsafe { self.driver.set_bytes(self.address, 0, self.bytes) }
    }

    pub(crate) fn upload<T: Element>(&mut self, start: usize, values: &[T], way: HostCopy) -> Result<()> {
        let offset = (start * size_of::<T>()) as u64;
        let bytes: &[u8] = bytemuck::cast_slice(values);
        self.expect_inside("upload", offset, bytes.len() as u64)?;
        if bytes.is_empty() {
            return Ok(());
        }
        let _pass = self.memory.gate.pass_now("copying to the GPU")?;
        // SAFETY: the range was just found to lie inside the buffer.
        unsafe { upload(&*self.driver, self.address + offset, bytes, way) }
    }

    /// Copies pieces to the first elements, one behind the other.
    pub(crate) fn upload_pieces<T: Element>(&mut self, pieces: &[&[T]]) -> Result<()> {
        let pieces: Vec<&[u8]> = pieces.iter().map(|values| bytemuck::cast_slice(values)).collect();
        let bytes = pieces.iter().fold(0u64, |sum, piece| sum.saturating_add(piece.len() as u64));
        self.expect_inside("upload", 0, bytes)?;
        if bytes == 0 {
            return Ok(());
        }
        let _pass = self.memory.gate.pass_now("copying to the GPU")?;
        // SAFETY: all pieces were just found to fit the buffer.
        unsafe { self.driver.upload_pieces(self.address, &pieces) }
    }

    pub(crate) fn download<T: Element>(&self, start: usize, values: &mut [T], way: HostCopy) -> Result<()> {
        let offset = (start * size_of::<T>()) as u64;
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(values);
        self.expect_inside("download", offset, bytes.len() as u64)?;
        if bytes.is_empty() {
            return Ok(());
        }
        let _pass = self.memory.gate.pass_now("copying from the GPU")?;
        // SAFETY: the range was just found to lie inside the buffer.
        unsafe {
            match way {
                HostCopy::Staged => self.driver.download(self.address + offset, bytes),
                HostCopy::Unstaged => self.driver.download_unstaged(self.address + offset, bytes),
            }
        }?;
        if self.driver.answers_ones() {
            ones_for_zeros(values);
        }
        Ok(())
    }

    /// Copies `bytes` from byte `from_at` of `from` to byte `start`.
    pub(crate) fn copy_from(&mut self, start: u64, from: &Buffer, from_at: u64, bytes: u64) -> Result<()> {
        self.expect_inside("copy to", start, bytes)?;
        from.expect_inside("copy from", from_at, bytes)?;
        if bytes == 0 {
            return Ok(());
        }
        let _pass = self.memory.gate.pass();
        // SAFETY: both ranges were just found to lie inside their buffers, which are two.
        unsafe { self.driver.copy(from.address + from_at, self.address + start, bytes) }
    }

    /// Fills the buffer with `value` in log2(n) copies. Each copy doubles the filled part.
    pub(crate) fn fill<T: Element>(&mut self, value: T) -> Result<()> {
        if self.bytes == 0 {
            return Ok(());
        }
        let first = bytemuck::bytes_of(&value);
        if let [byte, rest @ ..] = first
            && rest.iter().all(|b| b == byte)
        {
            let _pass = self.memory.gate.pass();
            // SAFETY: all bytes are this buffer's own.
            return unsafe { self.driver.set_bytes(self.address, *byte, self.bytes) };
        }
        let mut done = (first.len() as u64).min(self.bytes);
        self.upload(0, &first[..done as usize], HostCopy::Staged)?;
        while done < self.bytes && done > 0 {
            let next = done.min(self.bytes - done);
            let _pass = self.memory.gate.pass();
            // SAFETY: the target begins where the source ends, and both lie inside the buffer.
            unsafe { self.driver.copy(self.address, self.address + done, next)? };
            done += next;
        }
        Ok(())
    }

    fn expect_inside(&self, what: &str, start: u64, bytes: u64) -> Result<()> {
        if start.checked_add(bytes).is_some_and(|end| end <= self.bytes) {
            return Ok(());
        }
        Err(Error::value(
            format!("{what} device memory"),
            format!("a range inside {} bytes", self.bytes),
            format!("{bytes} bytes at {start}"),
        ))
    }
}

/// Complex numbers are sums and norms of something, too, the real part the smaller one.
const COMPLEX: C64 = C64::new(1e-3, 1.0);

fn ones_for_zeros<T: Element>(values: &mut [T]) {
    macro_rules! of_types {
        ($($one:expr),*) => {$(
            if TypeId::of::<T>() == type_of(&$one) {
                let values = bytemuck::cast_slice_mut(values);
                return values.iter_mut().filter(|x| **x == $one - $one).for_each(|x| *x = $one);
            }
        )*};
    }
    fn type_of<T: Element>(_: &T) -> TypeId {
        TypeId::of::<T>()
    }
    of_types!(
        1f32,
        1f64,
        C32::new(COMPLEX.re as f32, COMPLEX.im as f32),
        COMPLEX,
        1u8,
        1u32,
        1u64,
        1i32,
        1i64
    );
}

/// Copies to the device; `from` may change as soon as this returns.
///
/// # Safety
/// `to` begins as many allocated bytes as `from` has.
#[allow(unsafe_code)]
pub(super) unsafe fn upload(driver: &dyn Driver, to: u64, from: &[u8], way: HostCopy) -> Result<()> {
    // The device would read these few bytes after this call returns. A copy of them in ordinary memory is
    // read at once.
    let own = driver.reads_late(from).then(|| from.to_vec());
    let from = own.as_deref().unwrap_or(from);
    // SAFETY: as the caller promises.
    unsafe {
        match way {
            HostCopy::Staged => driver.upload(to, from),
            HostCopy::Unstaged => driver.upload_unstaged(to, from),
        }
    }
}

impl Drop for Buffer {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        if self.lender.is_some() {
            return;
        }
        let _pass = self.memory.gate.pass();
        if self.memory.may_free(self.address, self.bytes.max(1)) {
            // SAFETY: the address is this buffer's own and goes with it.
            unsafe { self.driver.free(self.address, self.bytes.max(1)) };
        }
        self.memory.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}
