//! Pinned host memory. Small blocks are kept: a solver takes some for its scalars in each run, and to pin and
//! free two of them takes 1.5 ms.

use std::sync::{Arc, Mutex};

use cudarc::driver::{result as cu, sys};
use rayspin_core::{Error, Result};

use super::{Shared, failed, lock};

/// Bytes of a small block.
const SMALL: usize = 4096;
/// Blocks that are kept, at most.
const KEPT: usize = 64;

pub(super) struct Pins {
    shared: Arc<Shared>,
    kept: Mutex<Vec<*mut u8>>,
}

impl Pins {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self { shared, kept: Mutex::default() }
    }

    /// Memory of all zeros.
    pub(super) fn pin(&self, bytes: u64) -> Result<*mut u8> {
        let _entered = self.shared.enter()?;
        let size = usize::try_from(bytes).unwrap_or(usize::MAX).max(SMALL);
        let kept = if size == SMALL { lock(&self.kept).pop() } else { None };
        // SAFETY: the context is current. The memory is new or was given back, and has `size` bytes, which
        // are all set.
        unsafe {
            let pointer = match kept {
                Some(pointer) => pointer,
                None => cu::malloc_host(size, 0)
                    .map_err(|e| match e.0 {
                        sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY => Error::Memory {
                            what: "pinned host memory".to_owned(),
                            needed: bytes,
                            available: crate::cpu::memory().map_or(0, |(_, available)| available),
                        },
                        _ => failed("pinning host memory")(e),
                    })?
                    .cast(),
            };
            pointer.write_bytes(0, size);
            Ok(pointer)
        }
    }

    /// Takes memory back.
    ///
    /// # Safety
    /// `pointer` and `bytes` come from one call of [`Self::pin`], and nothing uses the memory any more.
    pub(super) unsafe fn unpin(&self, pointer: *mut u8, bytes: u64) {
        let mut kept = lock(&self.kept);
        if bytes <= SMALL as u64 && kept.len() < KEPT {
            return kept.push(pointer);
        }
        drop(kept);
        if let Ok(_entered) = self.shared.enter() {
            // SAFETY: as the caller promises.
            let _ = unsafe { cu::free_host(pointer.cast()) };
        }
    }
}

impl Drop for Pins {
    fn drop(&mut self) {
        let Ok(_entered) = self.shared.enter() else { return };
        for pointer in lock(&self.kept).drain(..) {
            // SAFETY: the memory was given back, and nobody has it.
            let _ = unsafe { cu::free_host(pointer.cast()) };
        }
    }
}
