//! Copies between pageable host memory and the device through two pinned buffers: while one is on its way, the other is
//! filled or emptied.

use std::ffi::c_void;
use std::sync::Arc;

use cudarc::driver::{DriverError, result as cu, sys};

use super::Shared;

/// Bytes of one of the two buffers.
const CHUNK: usize = 8 << 20;
/// Smaller copies go through the driver's own buffer.
const SMALL: usize = 64 << 10;

pub(super) struct Staging {
    shared: Arc<Shared>,
    buffers: Option<[Pinned; 2]>,
}

struct Pinned {
    bytes: *mut c_void,
    /// Marks that the last copy out of or into the buffer is done.
    done: sys::CUevent,
}

// SAFETY: the memory is reached only through the lock that holds the staging.
unsafe impl Send for Staging {}

/// # Safety
/// The context is current; `to` begins as many allocated bytes as `from` has.
pub(super) unsafe fn upload_unstaged(shared: &Shared, to: u64, from: &[u8]) -> Result<(), DriverError> {
    // SAFETY: as the caller promises. From pageable memory the call returns when the bytes have been taken; that holds of
    // long copies only where they are staged, so those are waited for.
    unsafe {
        cu::memcpy_htod_async(to, from, shared.stream)?;
        if from.len() <= SMALL { Ok(()) } else { cu::stream::synchronize(shared.stream) }
    }
}

/// # Safety
/// The context is current; `from` begins as many allocated bytes as `to` has.
pub(super) unsafe fn download_unstaged(shared: &Shared, from: u64, to: &mut [u8]) -> Result<(), DriverError> {
    // SAFETY: as the caller promises; the bytes are waited for before the borrow ends.
    unsafe {
        cu::memcpy_dtoh_async(to, from, shared.stream)?;
        cu::stream::synchronize(shared.stream)
    }
}

impl Staging {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self { shared, buffers: None }
    }

    fn buffers(&mut self) -> Result<&mut [Pinned; 2], DriverError> {
        match &mut self.buffers {
            Some(buffers) => Ok(buffers),
            none => {
                let made = [Pinned::new()?, Pinned::new()?];
                Ok(none.insert(made))
            }
        }
    }

    /// # Safety
    /// The context is current; `to` begins as many allocated bytes as `from` has.
    pub(super) unsafe fn upload(&mut self, to: u64, from: &[u8]) -> Result<(), DriverError> {
        let stream = self.shared.stream;
        if from.len() <= SMALL {
            // SAFETY: as the caller promises.
            return unsafe { upload_unstaged(&self.shared, to, from) };
        }
        let buffers = self.buffers()?;
        for (i, chunk) in from.chunks(CHUNK).enumerate() {
            let buffer = &buffers[i % 2];
            // SAFETY: the buffer holds CHUNK bytes and is not being read any more once its event has come.
            unsafe {
                cu::event::synchronize(buffer.done)?;
                let staged = std::slice::from_raw_parts_mut(buffer.bytes.cast::<u8>(), chunk.len());
                staged.copy_from_slice(chunk);
                cu::memcpy_htod_async(to + (i * CHUNK) as u64, staged, stream)?;
                cu::event::record(buffer.done, stream)?;
            }
        }
        Ok(())
    }

    /// # Safety
    /// The context is current; `from` begins as many allocated bytes as `to` has.
    pub(super) unsafe fn download(&mut self, from: u64, to: &mut [u8]) -> Result<(), DriverError> {
        let stream = self.shared.stream;
        if to.len() <= SMALL {
            // SAFETY: as the caller promises.
            return unsafe { download_unstaged(&self.shared, from, to) };
        }
        let buffers = self.buffers()?;
        let total = to.len();
        let begin = |i: usize| -> Result<(), DriverError> {
            let at = i * CHUNK;
            if at >= total {
                return Ok(());
            }
            let buffer = &buffers[i % 2];
            // SAFETY: the buffer holds CHUNK bytes, and the chunk lies inside what the caller promises.
            unsafe {
                let staged = std::slice::from_raw_parts_mut(buffer.bytes.cast::<u8>(), CHUNK.min(total - at));
                cu::memcpy_dtoh_async(staged, from + at as u64, stream)?;
                cu::event::record(buffer.done, stream)
            }
        };
        begin(0)?;
        for (i, chunk) in to.chunks_mut(CHUNK).enumerate() {
            begin(i + 1)?;
            let buffer = &buffers[i % 2];
            // SAFETY: the copy into the buffer is done once its event has come.
            unsafe {
                cu::event::synchronize(buffer.done)?;
                chunk.copy_from_slice(std::slice::from_raw_parts(buffer.bytes.cast::<u8>(), chunk.len()));
            }
        }
        Ok(())
    }
}

impl Pinned {
    fn new() -> Result<Self, DriverError> {
        // SAFETY: the context is current; plain pinned memory.
        let bytes = unsafe { cu::malloc_host(CHUNK, 0) }?;
        let done = cu::event::create(sys::CUevent_flags::CU_EVENT_DISABLE_TIMING)?;
        Ok(Self { bytes, done })
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        if self.shared.enter().is_err() {
            return;
        }
        for buffer in self.buffers.iter().flatten() {
            // SAFETY: both are the buffer's own; the stream is waited for so that no copy is on its way.
            unsafe {
                let _ = cu::stream::synchronize(self.shared.stream);
                let _ = cu::event::destroy(buffer.done);
                let _ = cu::free_host(buffer.bytes);
            }
        }
    }
}
