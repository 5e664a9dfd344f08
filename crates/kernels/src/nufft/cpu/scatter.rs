//! Writing results in the trajectory's order from several threads.
#![allow(unsafe_code)]

use std::marker::PhantomData;
use std::ops::Range;

/// A slice whose element `order[j]` is written by whoever holds sorted point j.
pub(super) struct Scatter<'a, T> {
    to: *mut T,
    len: usize,
    order: &'a [u32],
    lifetime: PhantomData<&'a mut [T]>,
}

// SAFETY: the pointer stands for an exclusive borrow of the slice, and `write` obliges its callers to share out the
// elements between threads.
unsafe impl<T: Send> Sync for Scatter<'_, T> {}

impl<'a, T: Copy> Scatter<'a, T> {
    /// `order` must be a permutation of the slice's indices for [`Scatter::write`] to be sound.
    pub(super) fn new(to: &'a mut [T], order: &'a [u32]) -> Self {
        assert_eq!(to.len(), order.len());
        Self { to: to.as_mut_ptr(), len: to.len(), order, lifetime: PhantomData }
    }

    /// Writes `values[i]` to the element `order[points.start + i]`.
    ///
    /// # Safety
    ///
    /// `order` has no repeats, and no two threads write overlapping runs of points.
    pub(super) unsafe fn write(&self, points: Range<usize>, values: &[T]) {
        for (&index, &value) in self.order[points].iter().zip(values) {
            assert!((index as usize) < self.len);
            // SAFETY: the index is within the slice (checked), and no other thread writes it (this function's contract).
            unsafe { *self.to.add(index as usize) = value };
        }
    }
}
