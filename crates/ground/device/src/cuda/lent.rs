//! Memory of another library in this process, which an [`Array`](crate::Array) uses without a copy.

#![allow(unsafe_code)]

use std::sync::{Arc, Mutex};

use rayspin_core::{Error, Result};

use super::{Driver, Memory, Stream, lock};

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
    pub(crate) lender: Arc<Lender>,
}

/// Whose memory arrays use. Its drop makes the stream of the owners wait for the device's work so far.
pub(crate) struct Lender {
    stream: Option<ForeignStream>,
    lending: Mutex<Lending>,
}

#[derive(Default)]
struct Lending {
    owners: Vec<Box<dyn Send + Sync>>,
    /// The GPU that uses the memory, once one does.
    user: Option<(Arc<dyn Driver>, Arc<Memory>)>,
}

impl Lent {
    /// The memory at `address` in the address space of the array's device. It stays valid as long as `owner`
    /// lives.
    pub fn new(address: u64, owner: impl Send + Sync + 'static) -> Self {
        Self { address, lender: Arc::new(Lender::new(None, owner)) }
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
        match Arc::get_mut(&mut self.lender) {
            Some(own) => own.stream = Some(stream),
            None => self.lender = Arc::new(Lender::new(Some(stream), self.lender)),
        }
        self
    }

    /// Memory of the same stream as `other`, for arrays that one call uses. The two streams are ordered once
    /// for both, when the first array is made and when the last one is dropped; both owners live until then.
    /// Memory of another stream, what lies beside other memory already, and what comes after an array was
    /// made of `other`, stays apart. To order two streams takes two calls of the driver, and a small
    /// transform takes three in all.
    #[must_use]
    pub fn beside(mut self, other: &Self) -> Self {
        let one_stream = self.lender.stream.is_some() && self.lender.stream == other.lender.stream;
        let apart = !one_stream || Arc::ptr_eq(&self.lender, &other.lender) || !other.lender.is_new();
        if let Some(own) = Arc::get_mut(&mut self.lender).filter(|own| !apart && own.is_new()) {
            let owners = own.take().owners;
            lock(&other.lender.lending).owners.extend(owners);
            self.lender = other.lender.clone();
        }
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

impl Lender {
    fn new(stream: Option<ForeignStream>, owner: impl Send + Sync + 'static) -> Self {
        let lending = Lending { owners: vec![Box::new(owner)], user: None };
        Self { stream, lending: Mutex::new(lending) }
    }

    /// Whether no device has used the memory.
    fn is_new(&self) -> bool {
        lock(&self.lending).user.is_none()
    }

    fn take(&self) -> Lending {
        std::mem::take(&mut *lock(&self.lending))
    }

    /// Makes the device's later work wait for what the owners have queued so far, unless it does already.
    /// Errors: another device uses the memory; errors of the device.
    pub(crate) fn lend_to(&self, driver: &Arc<dyn Driver>, memory: &Arc<Memory>) -> Result<()> {
        let mut lending = lock(&self.lending);
        if let Some((_, user)) = &lending.user {
            let same = Arc::ptr_eq(user, memory);
            let wrong = || Error::value("lent memory", "memory of its own GPU", "another device's");
            return if same { Ok(()) } else { Err(wrong()) };
        }
        let _pass = memory.gate.pass_now("borrowing memory")?;
        if let Some(stream) = self.stream {
            driver.order_streams(Stream::Foreign(stream), Stream::Work)?;
        }
        lending.user = Some((driver.clone(), memory.clone()));
        Ok(())
    }
}

impl Drop for Lender {
    fn drop(&mut self) {
        let lending = self.take();
        let Some((driver, memory)) = &lending.user else { return };
        memory.gate.note_free();
        let ordered = || {
            let _pass = memory.gate.pass_now("giving memory back")?;
            match self.stream {
                Some(stream) => driver.order_streams(Stream::Work, Stream::Foreign(stream)),
                // Without a stream nobody knows what its owner does next: the host waits.
                None => driver.synchronize(),
            }
        };
        if ordered().is_err() && !memory.idle(&**driver) {
            let memory = memory.clone();
            memory.defer(Self { stream: self.stream, lending: Mutex::new(lending) });
        }
    }
}

impl std::fmt::Debug for Lent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Lent({:#x}, {:?})", self.address, self.lender.stream)
    }
}
