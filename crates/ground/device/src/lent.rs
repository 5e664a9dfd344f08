//! Memory of another library in this process, which an [`Array`](crate::Array) uses without a copy.

#![allow(unsafe_code)]

use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

use rayspin_core::{Error, Result};

use crate::Element;

/// The handle of a CUDA stream that another library made on a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ForeignStream(u64);

impl ForeignStream {
    /// The stream with this handle (`CUstream`). 0 and 1 are the legacy default stream, 2 the calling
    /// thread's.
    ///
    /// # Safety
    /// The stream belongs to the primary context of the GPU that it is used with, and lives as long as this
    /// value and what is made of it.
    pub unsafe fn new(handle: u64) -> Self {
        Self(handle)
    }

    /// The handle.
    pub fn handle(self) -> u64 {
        self.0
    }
}

/// Memory that another library owns: its address, what keeps it alive, and the CUDA stream on which its owner
/// uses it.
pub struct Lent {
    pub(crate) address: u64,
    pub(crate) owner: Box<dyn Send + Sync>,
    pub(crate) stream: Option<ForeignStream>,
}

impl Lent {
    /// The memory at `address` in the address space of the array's device. It stays valid as long as `owner`
    /// lives.
    pub fn new(address: u64, owner: impl Send + Sync + 'static) -> Self {
        Self { address, owner: Box::new(owner), stream: None }
    }

    /// The memory at another address, which stays valid as long as the same owner lives.
    #[must_use]
    pub fn at(mut self, address: u64) -> Self {
        self.address = address;
        self
    }

    /// With the stream on which the owner uses the memory. The device's work waits for what is queued there
    /// when the array is made, and what is queued there after the array is dropped waits for the device's
    /// work.
    #[must_use]
    pub fn on(mut self, stream: ForeignStream) -> Self {
        self.stream = Some(stream);
        self
    }

    /// Errors: the address is no multiple of `alignment`.
    pub(crate) fn expect_aligned(&self, alignment: u64) -> Result<()> {
        if self.address != 0 && self.address.is_multiple_of(alignment) {
            return Ok(());
        }
        let expected = format!("an address that is a multiple of {alignment}");
        Err(Error::value("lent memory", expected, format!("{:#x}", self.address)))
    }
}

impl std::fmt::Debug for Lent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Lent({:#x}, {:?})", self.address, self.stream)
    }
}

/// The elements of an array on the CPU.
pub(crate) enum HostMemory<T> {
    Own(Vec<T>),
    Lent {
        pointer: NonNull<T>,
        len: usize,
        #[expect(dead_code, reason = "kept for its drop alone")]
        owner: Box<dyn Send + Sync>,
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
        Ok(Self::Lent { pointer, len, owner: memory.owner })
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
