//! Writing to scattered places of one slice from several threads.
#![allow(unsafe_code)]

use std::marker::PhantomData;

/// A slice that several threads write at once, each to elements of its own.
pub(super) struct Scatter<'a, T> {
    to: *mut T,
    len: usize,
    lifetime: PhantomData<&'a mut [T]>,
}

// SAFETY: the pointer stands for an exclusive borrow of the slice, and `write` obliges its callers to share out the
// elements between threads.
unsafe impl<T: Send> Sync for Scatter<'_, T> {}

impl<'a, T: Copy> Scatter<'a, T> {
    pub(super) fn new(to: &'a mut [T]) -> Self {
        Self { to: to.as_mut_ptr(), len: to.len(), lifetime: PhantomData }
    }

    /// Writes one element.
    ///
    /// # Safety
    ///
    /// No other thread writes it at the same time.
    #[inline]
    pub(super) unsafe fn write(&self, index: usize, value: T) {
        assert!(index < self.len);
        // SAFETY: the index is within the slice (checked), and no other thread writes it (this function's contract).
        unsafe { *self.to.add(index) = value };
    }
}
