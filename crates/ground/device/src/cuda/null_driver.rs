//! A GPU that has memory for small arrays alone and runs no kernel. It records the programs that code loads,
//! without doing the work.

#![allow(unsafe_code)]

use std::any::Any;
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};

use super::driver::{
    Compile, Driver, Event, FftPlan, Function, Graph, Launch, Module, Properties, Resources, Stream,
    TextureMemory, Ticket,
};
use super::{Program, TextureLayout, lock};
use crate::Device;
use rayspin_core::{Error, Result};

/// Records the programs that are loaded. Arrays of up to 4 KiB have memory, which keeps copied values. Copies
/// of other arrays move nothing. Where code waits for numbers from the GPU, zeros become ones (complex ones
/// 0.001 + i): sums and counts that kernels would have written are positive then, as code expects them.
#[derive(Debug)]
pub struct NullDriver {
    properties: Properties,
    compiles: bool,
    programs: Mutex<Vec<Program>>,
    tell: Mutex<Option<Sender<Program>>>,
    /// Small arrays. A `Vec` may move without its memory.
    pieces: Mutex<BTreeMap<u64, Vec<u64>>>,
    /// The address of the next large array.
    next: AtomicU64,
    pinned: Mutex<BTreeMap<u64, Vec<Aligned>>>,
}

/// Bytes of pinned memory, at an address that is a multiple of as many.
#[derive(Debug, Clone, Copy)]
#[repr(align(256))]
struct Aligned(#[allow(dead_code, reason = "other code reaches it by its address")] [u8; ALIGN as usize]);

impl NullDriver {
    /// A GPU with these properties. `compiles` says whether it has a compiler.
    pub fn new(properties: Properties, compiles: bool) -> Self {
        Self {
            properties,
            compiles,
            programs: Mutex::default(),
            tell: Mutex::default(),
            pieces: Mutex::default(),
            next: AtomicU64::new(LARGE),
            pinned: Mutex::default(),
        }
    }

    /// Sends each program as soon as it is loaded, or no longer.
    pub(super) fn tell(&self, to: Option<Sender<Program>>) {
        *lock(&self.tell) = to;
    }

    /// The programs that were loaded since the last call.
    pub fn take_programs(&self) -> Vec<Program> {
        std::mem::take(&mut lock(&self.programs))
    }

    /// The place of `bytes` bytes at `address` in the host's memory; none of a large array. Errors: they are
    /// not allocated.
    fn at(&self, address: u64, bytes: u64) -> Result<Option<*mut u8>> {
        let outside =
            || Error::value("null GPU memory", "an allocated range", format!("{bytes} at {address:#x}"));
        if address >= LARGE {
            return Ok(None);
        }
        let pieces = lock(&self.pieces);
        let (&first, piece) = pieces.range(..=address).next_back().ok_or_else(outside)?;
        let end = address.checked_add(bytes).ok_or_else(outside)?;
        if end > first + size_of_val::<[u64]>(piece.as_slice()) as u64 {
            return Err(outside());
        }
        Ok(Some(address as usize as *mut u8))
    }

    /// # Safety
    /// `bytes` bytes may be read at `from`.
    unsafe fn write(&self, to: u64, from: *const u8, bytes: u64) -> Result<()> {
        if let Some(to) = self.at(to, bytes)? {
            // SAFETY: the range was just found to be allocated; the rest as the caller promises.
            unsafe { to.copy_from_nonoverlapping(from, bytes as usize) };
        }
        Ok(())
    }

    /// # Safety
    /// `bytes` bytes may be written at `to`.
    unsafe fn read(&self, from: u64, to: *mut u8, bytes: u64) -> Result<()> {
        // SAFETY: the range was just found to be allocated; the rest as the caller promises.
        match self.at(from, bytes)? {
            Some(from) => unsafe { to.copy_from_nonoverlapping(from, bytes as usize) },
            None => unsafe { to.write_bytes(0, bytes as usize) },
        }
        Ok(())
    }
}

/// What addresses of large arrays are multiples of.
const ALIGN: u64 = 256;
/// Bytes of a small array at most.
const SMALL: u64 = 4 << 10;
/// Bytes of a program's variables: the size of constant memory.
const VARIABLE: u64 = 64 << 10;
/// Addresses of large arrays begin here, beyond the addresses of a process.
const LARGE: u64 = 1 << 60;

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

// SAFETY: memory of small arrays is the host's, looked up before it is touched. Every copy is done when its
// call returns.
unsafe impl Driver for NullDriver {
    fn properties(&self) -> &Properties {
        &self.properties
    }

    fn free_memory(&self) -> Result<u64> {
        Ok(self.properties.memory)
    }

    fn allocate(&self, bytes: u64) -> Result<u64> {
        if bytes > SMALL {
            return Ok(self.next.fetch_add(bytes.next_multiple_of(ALIGN), Ordering::Relaxed));
        }
        let mut piece = vec![0u64; bytes.div_ceil(8).max(1) as usize];
        let address = piece.as_mut_ptr() as u64;
        lock(&self.pieces).insert(address, piece);
        Ok(address)
    }

    unsafe fn free(&self, address: u64, _bytes: u64) {
        lock(&self.pieces).remove(&address);
    }

    unsafe fn upload(&self, to: u64, from: &[u8]) -> Result<()> {
        // SAFETY: the slice may be read.
        unsafe { self.write(to, from.as_ptr(), from.len() as u64) }
    }

    unsafe fn download(&self, from: u64, to: &mut [u8]) -> Result<()> {
        // SAFETY: the slice may be written.
        unsafe { self.read(from, to.as_mut_ptr(), to.len() as u64) }
    }

    fn reads_late(&self, _from: &[u8]) -> bool {
        false
    }

    fn answers_ones(&self) -> bool {
        true
    }

    fn pin(&self, bytes: u64) -> Result<*mut u8> {
        let pieces = (bytes.max(1) as usize).div_ceil(size_of::<Aligned>());
        let mut memory = vec![Aligned([0; ALIGN as usize]); pieces];
        let pointer: *mut u8 = memory.as_mut_ptr().cast();
        lock(&self.pinned).insert(pointer as u64, memory);
        Ok(pointer)
    }

    unsafe fn unpin(&self, pointer: *mut u8, _bytes: u64) {
        lock(&self.pinned).remove(&(pointer as u64));
    }

    unsafe fn upload_async(&self, to: u64, from: *const u8, bytes: u64) -> Result<Arc<dyn Ticket>> {
        // SAFETY: as the caller promises.
        unsafe { self.write(to, from, bytes)? };
        Ok(Arc::new(Now))
    }

    unsafe fn download_async(&self, from: u64, to: *mut u8, bytes: u64) -> Result<Arc<dyn Ticket>> {
        // SAFETY: as the caller promises.
        unsafe { self.read(from, to, bytes)? };
        Ok(Arc::new(Now))
    }

    unsafe fn download_in_order(&self, from: u64, to: *mut u8, bytes: u64) -> Result<Arc<dyn Ticket>> {
        // SAFETY: as the caller promises.
        unsafe { self.read(from, to, bytes)? };
        Ok(Arc::new(Now))
    }

    fn order_streams(&self, _from: Stream, _to: Stream) -> Result<()> {
        Ok(())
    }

    unsafe fn queue_upload(&self, _stream: Stream, to: u64, from: *const u8, bytes: u64) -> Result<()> {
        // SAFETY: as the caller promises.
        unsafe { self.write(to, from, bytes) }
    }

    unsafe fn queue_download(&self, _stream: Stream, from: u64, to: *mut u8, bytes: u64) -> Result<()> {
        // SAFETY: as the caller promises.
        unsafe { self.read(from, to, bytes) }
    }

    unsafe fn copy(&self, from: u64, to: u64, bytes: u64) -> Result<()> {
        if let Some(from) = self.at(from, bytes)? {
            // SAFETY: the range was just found to be allocated.
            unsafe { self.write(to, from, bytes)? };
        }
        Ok(())
    }

    unsafe fn set_bytes(&self, address: u64, byte: u8, bytes: u64) -> Result<()> {
        if let Some(pointer) = self.at(address, bytes)? {
            // SAFETY: the range was just found to be allocated.
            unsafe { pointer.write_bytes(byte, bytes as usize) };
        }
        Ok(())
    }

    fn texture(&self, _layout: &TextureLayout) -> Result<Arc<dyn TextureMemory>> {
        Ok(Arc::new(Now))
    }

    fn offers(&self, _program: &Program) -> bool {
        self.compiles
    }

    fn load(&self, program: &Program) -> Result<Arc<dyn Module>> {
        if let Some(tell) = &*lock(&self.tell) {
            // Who no longer listens does not want it.
            let _ = tell.send(program.clone());
        }
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

/// Calls `work` on `threads` threads with each program that `job` loads on a device of these properties that
/// runs nothing, while `job` goes on. A device that `job` keeps, and a panic of either, ends nothing but
/// itself.
pub(super) fn for_each_loaded(
    properties: &Properties,
    host: &Device,
    threads: usize,
    job: &mut dyn FnMut(&Device),
    work: &Compile<'_>,
) {
    let (tell, heard) = channel();
    let heard = Mutex::new(heard);
    let next = || lock(&heard).recv();
    let quietly = |work: &mut dyn FnMut()| drop(catch_unwind(AssertUnwindSafe(work)));
    let listen = || {
        while let Ok(program) = next() {
            quietly(&mut || work(&program));
        }
    };
    let driver = Arc::new(NullDriver::new(properties.clone(), true));
    driver.tell(Some(tell));
    std::thread::scope(|scope| {
        for _ in 0..threads {
            // Fewer threads take longer; without any, programs are compiled when they are needed.
            drop(std::thread::Builder::new().name("rayspin-compile".into()).spawn_scoped(scope, listen));
        }
        let device = Device::with_driver(driver.clone(), host.clone());
        quietly(&mut || job(&device));
        driver.tell(None);
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Array;
    use crate::cuda::Source;

    static SOURCE: Source =
        Source { name: "test", files: &[("test.cu", "extern \"C\" __global__ void nothing(int n) {}")] };

    fn properties() -> Properties {
        Properties {
            name: "GPU that runs nothing".to_owned(),
            capability: (9, 0),
            multiprocessors: 1,
            memory: 1 << 40,
            cache: 1 << 20,
            threads_per_block: 1024,
            threads_per_multiprocessor: 2048,
            shared_per_block: 48 << 10,
            shared_per_multiprocessor: 64 << 10,
            registers_per_multiprocessor: 65_536,
            driver: (13, 0),
        }
    }

    /// The forms that a job has seen compiled.
    fn heard(job: &mut dyn FnMut(&Device)) -> Vec<String> {
        let found = Mutex::new(Vec::new());
        let work = |program: &Program| {
            let form = program.defines[0].1.clone();
            assert_ne!(form, "5", "a compiler may panic");
            lock(&found).push(form);
        };
        for_each_loaded(&properties(), &Device::cpu_with_threads(1).unwrap(), 3, job, &work);
        let mut found = found.into_inner().unwrap();
        found.sort();
        found
    }

    fn load(device: &Device, form: usize) {
        let crate::Backend::Cuda(cuda) = device.backend() else { unreachable!("a GPU that runs nothing") };
        cuda.kernel(&SOURCE, &[("FORM", form.to_string())], "nothing").unwrap();
    }

    #[test]
    fn each_program_is_heard_whatever_a_job_does() {
        let mut kept = None;
        let job = &mut |device: &Device| {
            (0..9).for_each(|form| load(device, form));
            kept = Some(device.clone());
        };
        assert_eq!(heard(job), ["0", "1", "2", "3", "4", "6", "7", "8"]);
        let job = &mut |device: &Device| {
            load(device, 1);
            panic!("of a job that takes its numbers for true");
        };
        assert_eq!(heard(job), ["1"]);
        assert!(heard(&mut |_| ()).is_empty());
        load(&kept.unwrap(), 11);
    }

    #[test]
    fn small_arrays_keep_values_and_others_are_ones() {
        let driver = Arc::new(NullDriver::new(properties(), true));
        let device = Device::with_driver(driver, Device::cpu_with_threads(1).unwrap());
        let few = Array::from_slice(&device, &[3], &[3u32, 0, 7]).unwrap();
        assert_eq!(few.to_vec().unwrap(), [3, 1, 7]);
        let mut many = Array::from_slice(&device, &[5000], &[2f32; 5000]).unwrap();
        many.fill(4.0).unwrap();
        assert!(many.to_vec().unwrap().iter().all(|x| *x == 1.0));
    }
}
