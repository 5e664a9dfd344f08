//! A driver that fails at the call a test chooses.

#![allow(unsafe_code)]

use std::any::Any;
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rayspin_core::{Error, Result};
use rayspin_device::cuda::{
    Driver, Event, FftPlan, Function, Graph, Launch, Module, Program, Properties, Resources, Stream,
    TextureLayout, TextureMemory, Ticket,
};

/// A fault of the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// No fault.
    Never,
    /// The call with this number, counted from 0, fails. With `sticky` every later call fails too, as after
    /// an error that ends a CUDA context.
    Call {
        /// Which call.
        number: u64,
        /// Whether the device is lost.
        sticky: bool,
    },
    /// From call `after` on, allocations that would raise the device's use above `bytes` fail, as if another
    /// process held the rest.
    Memory {
        /// The first such call.
        after: u64,
        /// Bytes that may be in use.
        bytes: u64,
    },
}

/// Wraps a driver, counts its calls and makes them fail. Freeing memory never fails and is not counted.
#[derive(Debug)]
pub struct Faulty {
    inner: Arc<dyn Driver>,
    ordinal: Option<usize>,
    state: Arc<State>,
}

#[derive(Debug)]
struct State {
    fault: Mutex<Fault>,
    calls: AtomicU64,
    counts: Mutex<BTreeMap<&'static str, u64>>,
    used: AtomicU64,
    failed: Mutex<Vec<&'static str>>,
}

impl Faulty {
    /// `inner`, without a fault so far.
    pub fn new(inner: Arc<dyn Driver>) -> Self {
        let state = State {
            fault: Mutex::new(Fault::Never),
            calls: AtomicU64::new(0),
            counts: Mutex::default(),
            used: AtomicU64::new(0),
            failed: Mutex::default(),
        };
        Self { inner, ordinal: None, state: Arc::new(state) }
    }

    /// [`Faulty::new`] of a device that is one of several, and has this number.
    pub fn numbered(inner: Arc<dyn Driver>, ordinal: usize) -> Self {
        Self { ordinal: Some(ordinal), ..Self::new(inner) }
    }

    /// Sets the fault, and counts calls from 0 again.
    pub fn set(&self, fault: Fault) {
        *self.state.fault.lock().unwrap_or_else(PoisonError::into_inner) = fault;
        self.state.calls.store(0, Ordering::Relaxed);
        self.state.counts.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.state.failed.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Calls since [`Faulty::set`].
    pub fn calls(&self) -> u64 {
        self.state.calls.load(Ordering::Relaxed)
    }

    /// Calls since [`Faulty::set`] by their names: the functions of [`Driver`], and `launch`, `launch_graph`,
    /// `function`, `variable`, `occupancy`, and `join` and `wait` of tickets.
    pub fn counts(&self) -> BTreeMap<&'static str, u64> {
        self.state.counts.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Names of the calls that failed since [`Faulty::set`].
    pub fn failed(&self) -> Vec<&'static str> {
        self.state.failed.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn ticket(&self, inner: Result<Arc<dyn Ticket>>) -> Result<Arc<dyn Ticket>> {
        Ok(Arc::new(FaultyTicket { inner: inner?, state: self.state.clone() }))
    }

    /// Bytes of device memory in use.
    pub fn used(&self) -> u64 {
        self.state.used.load(Ordering::Relaxed)
    }
}

impl State {
    fn fail(&self, name: &'static str) {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).push(name);
    }

    /// Counts a call. Errors: this is the call that fails.
    fn call(&self, name: &'static str) -> Result<()> {
        let number = self.calls.fetch_add(1, Ordering::Relaxed);
        *self.counts.lock().unwrap_or_else(PoisonError::into_inner).entry(name).or_default() += 1;
        match *self.fault.lock().unwrap_or_else(PoisonError::into_inner) {
            Fault::Call { number: failing, sticky } if number == failing || (sticky && number > failing) => {
                self.fail(name);
                let what = format!("{name} on the faulty GPU");
                Err(Error::Device { what, detail: format!("call {number} fails as asked") })
            }
            _ => Ok(()),
        }
    }

    fn expect_room(&self, bytes: u64) -> Result<()> {
        let used = self.used.load(Ordering::Relaxed);
        match *self.fault.lock().unwrap_or_else(PoisonError::into_inner) {
            Fault::Memory { after, bytes: most } if self.calls.load(Ordering::Relaxed) > after => {
                if used.saturating_add(bytes) > most {
                    self.fail("allocate");
                    let available = most.saturating_sub(used);
                    let what = "memory of the faulty GPU".to_owned();
                    return Err(Error::Memory { what, needed: bytes, available });
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

// SAFETY: every call is the inner driver's, or fails without it; a ticket is the inner driver's too.
unsafe impl Driver for Faulty {
    fn properties(&self) -> &Properties {
        self.inner.properties()
    }

    fn free_memory(&self) -> Result<u64> {
        self.state.call("free_memory")?;
        self.inner.free_memory()
    }

    fn allocate(&self, bytes: u64) -> Result<u64> {
        self.state.call("allocate")?;
        self.state.expect_room(bytes)?;
        let address = self.inner.allocate(bytes)?;
        self.state.used.fetch_add(bytes, Ordering::Relaxed);
        Ok(address)
    }

    unsafe fn free(&self, address: u64, bytes: u64) {
        self.state.used.fetch_sub(bytes, Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { self.inner.free(address, bytes) }
    }

    unsafe fn upload(&self, to: u64, from: &[u8]) -> Result<()> {
        self.state.call("upload")?;
        // SAFETY: as the caller promises.
        unsafe { self.inner.upload(to, from) }
    }

    unsafe fn download(&self, from: u64, to: &mut [u8]) -> Result<()> {
        self.state.call("download")?;
        // SAFETY: as the caller promises.
        unsafe { self.inner.download(from, to) }
    }

    fn reads_late(&self, from: &[u8]) -> bool {
        self.inner.reads_late(from)
    }

    fn pin(&self, bytes: u64) -> Result<*mut u8> {
        self.state.call("pin")?;
        self.inner.pin(bytes)
    }

    unsafe fn unpin(&self, pointer: *mut u8, bytes: u64) {
        // SAFETY: as the caller promises.
        unsafe { self.inner.unpin(pointer, bytes) }
    }

    unsafe fn upload_async(&self, to: u64, from: *const u8, bytes: u64) -> Result<Arc<dyn Ticket>> {
        self.state.call("upload_async")?;
        // SAFETY: as the caller promises.
        self.ticket(unsafe { self.inner.upload_async(to, from, bytes) })
    }

    unsafe fn download_async(&self, from: u64, to: *mut u8, bytes: u64) -> Result<Arc<dyn Ticket>> {
        self.state.call("download_async")?;
        // SAFETY: as the caller promises.
        self.ticket(unsafe { self.inner.download_async(from, to, bytes) })
    }

    unsafe fn download_in_order(&self, from: u64, to: *mut u8, bytes: u64) -> Result<Arc<dyn Ticket>> {
        self.state.call("download_in_order")?;
        // SAFETY: as the caller promises.
        self.ticket(unsafe { self.inner.download_in_order(from, to, bytes) })
    }

    fn order_streams(&self, from: Stream, to: Stream) -> Result<()> {
        self.state.call("order_streams")?;
        self.inner.order_streams(from, to)
    }

    unsafe fn queue_upload(&self, stream: Stream, to: u64, from: *const u8, bytes: u64) -> Result<()> {
        self.state.call("queue_upload")?;
        // SAFETY: as the caller promises.
        unsafe { self.inner.queue_upload(stream, to, from, bytes) }
    }

    unsafe fn queue_download(&self, stream: Stream, from: u64, to: *mut u8, bytes: u64) -> Result<()> {
        self.state.call("queue_download")?;
        // SAFETY: as the caller promises.
        unsafe { self.inner.queue_download(stream, from, to, bytes) }
    }

    unsafe fn pinned_address(&self, pointer: *mut u8) -> Result<u64> {
        self.state.call("pinned_address")?;
        // SAFETY: as the caller promises.
        unsafe { self.inner.pinned_address(pointer) }
    }

    unsafe fn upload_unstaged(&self, to: u64, from: &[u8]) -> Result<()> {
        self.state.call("upload_unstaged")?;
        // SAFETY: as the caller promises.
        unsafe { self.inner.upload_unstaged(to, from) }
    }

    unsafe fn download_unstaged(&self, from: u64, to: &mut [u8]) -> Result<()> {
        self.state.call("download_unstaged")?;
        // SAFETY: as the caller promises.
        unsafe { self.inner.download_unstaged(from, to) }
    }

    unsafe fn copy(&self, from: u64, to: u64, bytes: u64) -> Result<()> {
        self.state.call("copy")?;
        // SAFETY: as the caller promises.
        unsafe { self.inner.copy(from, to, bytes) }
    }

    fn ordinal(&self) -> Option<usize> {
        self.ordinal.or_else(|| self.inner.ordinal())
    }

    fn as_any(&self) -> Option<&dyn Any> {
        self.inner.as_any()
    }

    fn wait_for(&self, other: &dyn Driver) -> Result<()> {
        self.state.call("wait_for")?;
        self.inner.wait_for(other)
    }

    unsafe fn copy_to(&self, from: u64, other: &dyn Driver, to: u64, bytes: u64) -> Result<()> {
        self.state.call("copy_to")?;
        // SAFETY: as the caller promises.
        unsafe { self.inner.copy_to(from, other, to, bytes) }
    }

    unsafe fn set_bytes(&self, address: u64, byte: u8, bytes: u64) -> Result<()> {
        self.state.call("set_bytes")?;
        // SAFETY: as the caller promises.
        unsafe { self.inner.set_bytes(address, byte, bytes) }
    }

    fn texture(&self, layout: &TextureLayout) -> Result<Arc<dyn TextureMemory>> {
        self.state.call("texture")?;
        self.inner.texture(layout)
    }

    fn offers(&self, program: &Program) -> bool {
        self.inner.offers(program)
    }

    fn load(&self, program: &Program) -> Result<Arc<dyn Module>> {
        self.state.call("load")?;
        Ok(Arc::new(FaultyModule { inner: self.inner.load(program)?, state: self.state.clone() }))
    }

    unsafe fn fft(&self, plan: &FftPlan, sign: i32, from: u64, to: u64) -> Result<()> {
        self.state.call("fft")?;
        // SAFETY: as the caller promises.
        unsafe { self.inner.fft(plan, sign, from, to) }
    }

    fn mark(&self) -> Result<Box<dyn Event>> {
        self.state.call("mark")?;
        self.inner.mark()
    }

    fn seconds(&self, from: &dyn Event, to: &dyn Event) -> Result<f64> {
        self.state.call("seconds")?;
        self.inner.seconds(from, to)
    }

    fn begin_recording(&self) -> Result<()> {
        self.state.call("begin_recording")?;
        self.inner.begin_recording()
    }

    fn end_recording(&self) -> Result<Option<Box<dyn Graph>>> {
        let graph = self.inner.end_recording();
        self.state.call("end_recording")?;
        let state = self.state.clone();
        Ok(graph?.map(|inner| Box::new(FaultyGraph { inner, state }) as Box<dyn Graph>))
    }

    fn synchronize(&self) -> Result<()> {
        self.state.call("synchronize")?;
        self.inner.synchronize()
    }

    fn idle(&self) -> Result<()> {
        self.state.call("idle")?;
        self.inner.idle()
    }
}

struct FaultyTicket {
    inner: Arc<dyn Ticket>,
    state: Arc<State>,
}

impl Ticket for FaultyTicket {
    fn join(&self) -> Result<()> {
        self.state.call("join")?;
        self.inner.join()
    }

    fn wait(&self) -> Result<()> {
        self.state.call("wait")?;
        self.inner.wait()
    }
}

struct FaultyGraph {
    inner: Box<dyn Graph>,
    state: Arc<State>,
}

impl Graph for FaultyGraph {
    fn launch(&self) -> Result<()> {
        self.state.call("launch_graph")?;
        self.inner.launch()
    }
}

struct FaultyModule {
    inner: Arc<dyn Module>,
    state: Arc<State>,
}

impl Module for FaultyModule {
    fn function(&self, name: &str) -> Result<Arc<dyn Function>> {
        self.state.call("function")?;
        Ok(Arc::new(FaultyFunction { inner: self.inner.function(name)?, state: self.state.clone() }))
    }

    fn variable(&self, name: &str) -> Result<(u64, u64)> {
        self.state.call("variable")?;
        self.inner.variable(name)
    }
}

struct FaultyFunction {
    inner: Arc<dyn Function>,
    state: Arc<State>,
}

impl Function for FaultyFunction {
    fn resources(&self) -> Resources {
        self.inner.resources()
    }

    fn occupancy(&self, threads: u32, shared: u32) -> Result<u32> {
        self.state.call("occupancy")?;
        self.inner.occupancy(threads, shared)
    }

    unsafe fn launch(&self, launch: Launch, arguments: &mut [*mut c_void]) -> Result<()> {
        self.state.call("launch")?;
        // SAFETY: as the caller promises.
        unsafe { self.inner.launch(launch, arguments) }
    }
}
