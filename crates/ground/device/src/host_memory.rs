//! Memory on the host: a vector, or memory of another library.

#![allow(unsafe_code)]

use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::Arc;

use rayspin_core::{Error, Result};

use crate::Element;
use crate::cuda::{Lender, Lent};

/// The elements of an array on the CPU.
pub(crate) enum HostMemory<T> {
    Own(Vec<T>),
    Lent {
        pointer: NonNull<T>,
        len: usize,
        #[expect(dead_code, reason = "kept for its drop alone")]
        owner: Arc<Lender>,
    },
}

// SAFETY: under the contract of `Array::lent` nothing else writes to the memory while the array lives, and
// others read it only while the array is shared. The memory of a vector obeys the same rules.
unsafe impl<T: Send> Send for HostMemory<T> {}
unsafe impl<T: Sync> Sync for HostMemory<T> {}

impl<T: Element> HostMemory<T> {
    /// # Safety
    /// As for [`Array::lent`](crate::Array::lent), for `len` elements.
    pub(crate) unsafe fn lent(memory: Lent, len: usize) -> Result<Self> {
        memory.expect_aligned(align_of::<T>() as u64)?;
        let pointer = usize::try_from(memory.address).ok().map(std::ptr::with_exposed_provenance_mut);
        let pointer = pointer.and_then(NonNull::new).ok_or_else(|| {
            Error::value("lent memory", "an address of this process", format!("{:#x}", memory.address))
        })?;
        Ok(Self::Lent { pointer, len, owner: memory.lender })
    }

    /// The elements as a vector; lent ones are copied.
    pub(crate) fn into_vec(self, what: impl std::fmt::Display) -> Result<Vec<T>> {
        match self {
            Self::Own(values) => Ok(values),
            Self::Lent { .. } => crate::cpu::copied(what, &self),
        }
    }
}

impl<T> Deref for HostMemory<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match self {
            Self::Own(values) => values,
            // SAFETY: whoever made this promised `len` elements at this address for as long as the owner
            // lives.
            Self::Lent { pointer, len, owner: _ } => unsafe {
                std::slice::from_raw_parts(pointer.as_ptr(), *len)
            },
        }
    }
}

impl<T> DerefMut for HostMemory<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        match self {
            Self::Own(values) => values,
            // SAFETY: as above, and the promise includes that writing is allowed where the array is used by a
            // mutable reference.
            Self::Lent { pointer, len, owner: _ } => unsafe {
                std::slice::from_raw_parts_mut(pointer.as_ptr(), *len)
            },
        }
    }
}
