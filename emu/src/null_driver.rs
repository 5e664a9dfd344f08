//! A GPU that has memory and runs no kernel. It records the programs that code loads, without doing the work.

#![allow(unsafe_code)]

use std::any::Any;
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::{Arc, Mutex};

use rayspin_core::{Error, Result};
use rayspin_device::cuda::{
    Driver, Event, FftPlan, Function, Graph, Launch, Module, Program, Properties, Resources, Stream,
    TextureLayout, TextureMemory, Ticket,
};

use crate::lock;

/// Records the programs that are loaded. Kernels write nothing, so memory holds zeros and copied values.
#[derive(Debug)]
pub struct NullDriver {
    properties: Properties,
    compiles: bool,
    programs: Mutex<Vec<Program>>,
    pieces: Mutex<BTreeMap<u64, Box<[u64]>>>,
}

impl NullDriver {
    /// A GPU of this compute capability. Its blocks may have `shared_per_block` bytes of shared memory. `compiles` says
    /// whether it has a compiler.
    pub fn new(capability: (u32, u32), shared_per_block: u32, compiles: bool) -> Self {
        let properties = Properties {
            name: "NullDriver GPU".to_owned(),
            capability,
            shared_per_block,
            shared_per_multiprocessor: shared_per_block + 1024,
            ..crate::properties(1 << 40)
        };
        Self { properties, compiles, programs: Mutex::default(), pieces: Mutex::default() }
    }

    /// The programs that were loaded since the last call.
    pub fn take_programs(&self) -> Vec<Program> {
        std::mem::take(&mut lock(&self.programs))
    }

    /// The place of `bytes` bytes at `address` in the host's memory. Errors: they are not allocated.
    fn at(&self, address: u64, bytes: u64) -> Result<*mut u8> {
        let outside =
            || Error::value("null GPU memory", "an allocated range", format!("{bytes} at {address:#x}"));
        let pieces = lock(&self.pieces);
        let (&first, piece) = pieces.range(..=address).next_back().ok_or_else(outside)?;
        let end = address.checked_add(bytes).ok_or_else(outside)?;
        if end > first + size_of_val::<[u64]>(piece) as u64 {
            return Err(outside());
        }
        Ok(address as usize as *mut u8)
    }
}

/// Bytes of a program's variables: the size of constant memory.
const VARIABLE: u64 = 64 << 10;

struct Now;

impl Event for Now {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Ticket for Now {
    fn join(&self) -> Result<()> {
        Ok(())
    }

    fn wait(&self) -> Result<()> {
        Ok(())
    }
}

impl TextureMemory for Now {
    fn handle(&self) -> u64 {
        1
    }

    unsafe fn fill(&self, _from: u64) -> Result<()> {
        Ok(())
    }
}

impl Graph for Now {
    fn launch(&self) -> Result<()> {
        Ok(())
    }
}

// SAFETY: memory is the host's, looked up before it is touched; every copy is done when its call returns.
unsafe impl Driver for NullDriver {
    fn properties(&self) -> &Properties {
        &self.properties
    }

    fn free_memory(&self) -> Result<u64> {
        Ok(self.properties.memory)
    }

    fn allocate(&self, bytes: u64) -> Result<u64> {
        let piece = vec![0u64; bytes.div_ceil(8).max(1) as usize].into_boxed_slice();
        let address = piece.as_ptr() as u64;
        lock(&self.pieces).insert(address, piece);
        Ok(address)
    }

    unsafe fn free(&self, address: u64, _bytes: u64) {
        lock(&self.pieces).remove(&address);
    }

    unsafe fn upload(&self, to: u64, from: &[u8]) -> Result<()> {
        let to = self.at(to, from.len() as u64)?;
        // SAFETY: the range was just found to be allocated.
        unsafe { to.copy_from_nonoverlapping(from.as_ptr(), from.len()) };
        Ok(())
    }

    unsafe fn download(&self, from: u64, to: &mut [u8]) -> Result<()> {
        let from = self.at(from, to.len() as u64)?;
        // SAFETY: the range was just found to be allocated.
        unsafe { from.copy_to_nonoverlapping(to.as_mut_ptr(), to.len()) };
        Ok(())
    }

    fn reads_late(&self, _from: &[u8]) -> bool {
        false
    }

    fn pin(&self, bytes: u64) -> Result<*mut u8> {
        crate::copy_streams::pin(bytes)
    }

    unsafe fn unpin(&self, at: *mut u8, bytes: u64) {
        // SAFETY: as the caller promises.
        unsafe { crate::copy_streams::unpin(at, bytes) }
    }

    unsafe fn upload_async(&self, to: u64, from: *const u8, bytes: u64) -> Result<Arc<dyn Ticket>> {
        let to = self.at(to, bytes)?;
        // SAFETY: the range was just found to be allocated; the rest as the caller promises.
        unsafe { to.copy_from_nonoverlapping(from, bytes as usize) };
        Ok(Arc::new(Now))
    }

    unsafe fn download_async(&self, from: u64, to: *mut u8, bytes: u64) -> Result<Arc<dyn Ticket>> {
        let from = self.at(from, bytes)?;
        // SAFETY: as above.
        unsafe { from.copy_to_nonoverlapping(to, bytes as usize) };
        Ok(Arc::new(Now))
    }

    unsafe fn download_in_order(&self, from: u64, to: *mut u8, bytes: u64) -> Result<Arc<dyn Ticket>> {
        let from = self.at(from, bytes)?;
        // SAFETY: as above.
        unsafe { from.copy_to_nonoverlapping(to, bytes as usize) };
        Ok(Arc::new(Now))
    }

    fn order_streams(&self, _from: Stream, _to: Stream) -> Result<()> {
        Ok(())
    }

    unsafe fn queue_upload(&self, _stream: Stream, to: u64, from: *const u8, bytes: u64) -> Result<()> {
        let to = self.at(to, bytes)?;
        // SAFETY: the range was just found to be allocated; the rest as the caller promises.
        unsafe { to.copy_from_nonoverlapping(from, bytes as usize) };
        Ok(())
    }

    unsafe fn queue_download(&self, _stream: Stream, from: u64, to: *mut u8, bytes: u64) -> Result<()> {
        let from = self.at(from, bytes)?;
        // SAFETY: as above.
        unsafe { from.copy_to_nonoverlapping(to, bytes as usize) };
        Ok(())
    }

    unsafe fn copy(&self, from: u64, to: u64, bytes: u64) -> Result<()> {
        let (from, to) = (self.at(from, bytes)?, self.at(to, bytes)?);
        // SAFETY: both ranges were just found to be allocated.
        unsafe { from.copy_to(to, bytes as usize) };
        Ok(())
    }

    unsafe fn set_bytes(&self, at: u64, byte: u8, bytes: u64) -> Result<()> {
        let at = self.at(at, bytes)?;
        // SAFETY: the range was just found to be allocated.
        unsafe { at.write_bytes(byte, bytes as usize) };
        Ok(())
    }

    fn texture(&self, _layout: &TextureLayout) -> Result<Arc<dyn TextureMemory>> {
        Ok(Arc::new(Now))
    }

    fn compiles(&self) -> bool {
        self.compiles
    }

    fn load(&self, program: &Program) -> Result<Arc<dyn Module>> {
        lock(&self.programs).push(program.clone());
        let kernels = program.signatures()?.into_keys().collect();
        Ok(Arc::new(Empty { name: program.name, kernels, variables: self.allocate(VARIABLE)? }))
    }

    unsafe fn fft(&self, _plan: &FftPlan, _sign: i32, _from: u64, _to: u64) -> Result<()> {
        Ok(())
    }

    fn mark(&self) -> Result<Box<dyn Event>> {
        Ok(Box::new(Now))
    }

    fn seconds(&self, _from: &dyn Event, _to: &dyn Event) -> Result<f64> {
        Ok(0.0)
    }

    fn begin_recording(&self) -> Result<()> {
        Ok(())
    }

    fn end_recording(&self) -> Result<Option<Box<dyn Graph>>> {
        Ok(Some(Box::new(Now)))
    }

    fn synchronize(&self) -> Result<()> {
        Ok(())
    }

    fn idle(&self) -> Result<()> {
        Ok(())
    }
}

struct Empty {
    name: &'static str,
    kernels: Vec<String>,
    variables: u64,
}

impl Module for Empty {
    fn function(&self, name: &str) -> Result<Arc<dyn Function>> {
        if self.kernels.iter().any(|kernel| kernel == name) {
            return Ok(Arc::new(Empty { name: self.name, kernels: Vec::new(), variables: 0 }));
        }
        Err(Error::value("kernel", format!("one of {}", self.name), name))
    }

    fn variable(&self, _name: &str) -> Result<(u64, u64)> {
        Ok((self.variables, VARIABLE))
    }
}

impl Function for Empty {
    fn resources(&self) -> Resources {
        Resources { registers: 32, shared: 0, local: 0, threads: 1024 }
    }

    fn occupancy(&self, _threads: u32, _shared: u32) -> Result<u32> {
        Ok(1)
    }

    unsafe fn launch(&self, _launch: Launch, _arguments: &mut [*mut c_void]) -> Result<()> {
        Ok(())
    }
}
