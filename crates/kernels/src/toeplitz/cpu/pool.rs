use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use bytemuck::Pod;
use rayspin_core::Result;
use rayspin_device::cpu::zeroed;

/// Buffers that outlive a call, for reuse by the next: fresh memory costs as much as a pass over it.
#[derive(Debug)]
pub(super) struct Pool<T> {
    /// Elements of one buffer.
    pub(super) len: usize,
    free: Mutex<Vec<Vec<T>>>,
    allocated: AtomicUsize,
}

impl<T: Pod> Pool<T> {
    pub(super) fn new(len: usize) -> Self {
        Self { len, free: Mutex::default(), allocated: Default::default() }
    }

    fn free(&self) -> Option<Vec<T>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    /// A free buffer, or a new one of a few kilobytes.
    pub(super) fn take_small(&self) -> Lease<'_, T> {
        let buffer = self.free().unwrap_or_else(|| vec![T::zeroed(); self.len]);
        Lease { pool: self, buffer }
    }

    /// A free buffer, or a new one.
    pub(super) fn take(&self) -> Result<Lease<'_, T>> {
        let buffer = match self.free() {
            Some(buffer) => buffer,
            None => {
                let buffer = zeroed("Toeplitz work buffer", self.len)?;
                self.allocated.fetch_add(1, Ordering::Relaxed);
                buffer
            }
        };
        Ok(Lease { pool: self, buffer })
    }

    /// Number of buffers there are.
    pub(super) fn allocated(&self) -> usize {
        self.allocated.load(Ordering::Relaxed)
    }
}

/// A buffer on loan; dropping it returns it.
pub(super) struct Lease<'a, T> {
    pool: &'a Pool<T>,
    buffer: Vec<T>,
}

impl<T> std::ops::Deref for Lease<'_, T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        &self.buffer
    }
}

impl<T> std::ops::DerefMut for Lease<'_, T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.buffer
    }
}

impl<T> Drop for Lease<'_, T> {
    fn drop(&mut self) {
        let buffer = std::mem::take(&mut self.buffer);
        self.pool.free.lock().unwrap_or_else(PoisonError::into_inner).push(buffer);
    }
}
