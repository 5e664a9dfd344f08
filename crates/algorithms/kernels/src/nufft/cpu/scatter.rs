//! Writing to scattered places of one slice from several threads, and reading from such places ahead of time.
#![allow(unsafe_code)]

use std::marker::PhantomData;

/// A slice that several threads write at once, each to elements of its own.
pub(super) struct Scatter<'a, T> {
    to: *mut T,
    len: usize,
    lifetime: PhantomData<&'a mut [T]>,
}

// SAFETY: the pointer stands for an exclusive borrow of the slice, and `write` obliges its callers to share
// out the elements between threads.
unsafe impl<T: Send> Sync for Scatter<'_, T> {}

impl<'a, T: Copy> Scatter<'a, T> {
    pub(super) fn new(to: &'a mut [T]) -> Self {
        Self { to: to.as_mut_ptr(), len: to.len(), lifetime: PhantomData }
    }

    /// Prefetches the cache lines of an element that will soon be written. Stores wait for their lines one
    /// after the other; prefetches do not.
    #[inline]
    pub(super) fn prefetch(&self, index: usize) {
        #[cfg(target_arch = "x86_64")]
        prefetch::<T, { std::arch::x86_64::_MM_HINT_ET0 }>(self.to.wrapping_add(index));
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
        // SAFETY: the index is within the slice (checked), and no other thread writes it (this function's
        // contract).
        unsafe { *self.to.add(index) = value };
    }
}

/// Prefetches the cache lines of an element that will soon be read, for a slice that is read at scattered
/// places.
#[inline]
pub(super) fn prefetch_read<T>(from: &[T], index: usize) {
    #[cfg(target_arch = "x86_64")]
    prefetch::<T, { std::arch::x86_64::_MM_HINT_T0 }>(from.as_ptr().wrapping_add(index));
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (from, index);
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn prefetch<T, const HINT: i32>(address: *const T) {
    let first = address.cast::<i8>();
    // SAFETY: a prefetch is a hint: it neither reads nor writes, and any address will do.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<HINT>(first);
        if !size_of::<T>().is_power_of_two() {
            std::arch::x86_64::_mm_prefetch::<HINT>(first.wrapping_add(size_of::<T>() - 1));
        }
    }
}
