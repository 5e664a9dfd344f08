use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use num_complex::Complex;
use rayspin_core::{Real, Result};
use rayspin_device::cpu::zeroed;

/// Work buffers that outlive a call, for reuse by the next.
#[derive(Debug)]
pub(super) struct Pool<R> {
    /// Elements of one buffer.
    pub(super) len: usize,
    free: Mutex<Vec<Vec<Complex<R>>>>,
    allocated: AtomicUsize,
}

impl<R: Real> Pool<R> {
    pub(super) fn new(len: usize) -> Self {
        Self { len, free: Mutex::default(), allocated: Default::default() }
    }

    /// A free buffer, or a new one.
    pub(super) fn take(&self) -> Result<Lease<'_, R>> {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let buffer = match free {
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
pub(super) struct Lease<'a, R: Real> {
    pool: &'a Pool<R>,
    buffer: Vec<Complex<R>>,
}

impl<R: Real> std::ops::Deref for Lease<'_, R> {
    type Target = [Complex<R>];
    fn deref(&self) -> &[Complex<R>] {
        &self.buffer
    }
}

impl<R: Real> std::ops::DerefMut for Lease<'_, R> {
    fn deref_mut(&mut self) -> &mut [Complex<R>] {
        &mut self.buffer
    }
}

impl<R: Real> Drop for Lease<'_, R> {
    fn drop(&mut self) {
        let buffer = std::mem::take(&mut self.buffer);
        self.pool.free.lock().unwrap_or_else(PoisonError::into_inner).push(buffer);
    }
}
