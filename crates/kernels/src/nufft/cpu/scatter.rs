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

    /// Asks for the cache lines of an element that is soon to be written: stores wait for theirs one after the other,
    /// requests do not.
    #[inline]
    pub(super) fn prefetch(&self, index: usize) {
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::x86_64::{_MM_HINT_ET0, _mm_prefetch};
            let first = self.to.wrapping_add(index).cast::<i8>();
            // SAFETY: a prefetch is a hint: it neither reads nor writes, and any address will do.
            unsafe {
                _mm_prefetch::<_MM_HINT_ET0>(first);
                if !size_of::<T>().is_power_of_two() {
                    _mm_prefetch::<_MM_HINT_ET0>(first.wrapping_add(size_of::<T>() - 1));
                }
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = index;
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
