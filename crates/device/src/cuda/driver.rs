//! What a CUDA processor is asked for: implemented by the driver of the machine ([`super::machine`]) and, so that the same
//! kernels and the same host code run in tests without a GPU, by the emulator.

// Addresses of another processor's memory can only be trusted, not checked: see each `Safety`.
#![allow(unsafe_code)]

use std::any::Any;
use std::ffi::c_void;
use std::sync::Arc;

use rayspin_core::Result;

use super::{Program, TextureLayout};

/// What the processor is and what a launch may ask of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Properties {
    /// The name that the driver states.
    pub name: String,
    /// Compute capability, as (9, 0).
    pub capability: (u32, u32),
    /// Streaming multiprocessors.
    pub multiprocessors: u32,
    /// Bytes of device memory.
    pub memory: u64,
    /// Bytes of second-level cache.
    pub cache: u64,
    /// Threads of one block at most.
    pub threads_per_block: u32,
    /// Threads that one multiprocessor holds at once.
    pub threads_per_multiprocessor: u32,
    /// Bytes of shared memory that one block may ask for.
    pub shared_per_block: u32,
    /// Bytes of shared memory of a multiprocessor.
    pub shared_per_multiprocessor: u32,
    /// 32-bit registers of a multiprocessor.
    pub registers_per_multiprocessor: u32,
    /// Version of the driver's interface, as (13, 0).
    pub driver: (u32, u32),
}

/// What a compiled kernel takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resources {
    /// 32-bit registers a thread.
    pub registers: u32,
    /// Bytes of shared memory that the kernel declares itself.
    pub shared: u32,
    /// Bytes of local memory a thread: spilled registers and arrays that are indexed at run time.
    pub local: u32,
    /// Threads of one block at most, as compiled.
    pub threads: u32,
}

/// Blocks, threads of a block, and bytes of dynamic shared memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Launch {
    /// Blocks along x, y and z.
    pub blocks: [u32; 3],
    /// Threads of a block along x, y and z.
    pub threads: [u32; 3],
    /// Bytes of shared memory beside what the kernel declares.
    pub shared: u32,
}

impl Launch {
    /// `blocks` by `threads`, both one-dimensional.
    pub fn linear(blocks: u32, threads: u32) -> Self {
        Self { blocks: [blocks, 1, 1], threads: [threads, 1, 1], shared: 0 }
    }

    /// As many blocks of `threads` threads as give each of `items` a thread; at least one block.
    pub fn covering(items: usize, threads: u32) -> Self {
        Self::linear(items.div_ceil(threads.max(1) as usize).clamp(1, i32::MAX as usize) as u32, threads)
    }

    /// The same with `bytes` of dynamic shared memory.
    pub fn with_shared(mut self, bytes: usize) -> Self {
        self.shared = u32::try_from(bytes).unwrap_or(u32::MAX);
        self
    }
}

/// One complex Fourier transform of many lines, planes or volumes, in the layout of cuFFT's "many" plans.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FftPlan {
    /// Lengths of the axes that are transformed, the slowest first; one to three of them.
    pub axes: Vec<usize>,
    /// Distance between neighbours along the last axis, in elements; outer axes are packed.
    pub stride: usize,
    /// Distance between the first elements of neighbouring transforms, in elements.
    pub distance: usize,
    /// Number of transforms.
    pub batch: usize,
    /// Whether elements are pairs of `f64`.
    pub double: bool,
}

/// A place in the order of the device's work, to be timed.
pub trait Event: Send + Sync {
    /// For the driver that made it.
    fn as_any(&self) -> &dyn Any;
}

/// A copy that goes on beside the device's other work.
pub trait Ticket: Send + Sync {
    /// Work asked for from now on waits for it.
    fn join(&self) -> Result<()>;
    /// Waits for it, on the host.
    fn wait(&self) -> Result<()>;
}

/// An order of work: what is asked of one is done in the order in which it is asked for, beside what is asked of the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lane {
    /// Kernels, and all that has no lane of its own.
    Work,
    /// Copies to the device.
    In,
    /// Copies to the host.
    Out,
}

/// The memory of a texture.
pub trait TextureMemory: Send + Sync {
    /// What kernels get.
    fn handle(&self) -> u64;
    /// Copies all texels, in the order of the device's work.
    ///
    /// # Safety
    /// `from` begins as many texels, x fastest.
    unsafe fn fill(&self, from: u64) -> Result<()>;
}

/// Recorded work that is launched again as one.
pub trait Graph: Send + Sync {
    /// Queues all of it once more.
    fn launch(&self) -> Result<()>;
}

/// A processor with memory of its own. Addresses are of its memory; all work is done in the order in which it is asked
/// for. Errors name the call; a failure of a kernel may come up at a later call.
///
/// # Safety
/// Safe code gives memory away and looks at it because of what these calls say. An implementation keeps their word, and so do
/// the [`Ticket`], [`TextureMemory`], [`Graph`], [`Module`] and [`Function`] that it gives:
///
/// - [`Driver::allocate`], [`Driver::pin`], [`Driver::texture`] and [`Module::variable`] give memory of the stated size, which
///   nothing else uses before it is given back.
/// - The device touches only the memory that a call names, and none of it after a call that waits for that work has returned
///   without an error. After [`Driver::idle`] it touches none at all.
/// - [`Driver::upload`] and [`Driver::download`] leave host memory alone once they have returned, with an error too, except where
///   [`Driver::reads_late`] says otherwise.
/// - [`Driver::properties`] and [`Function::resources`] state limits that the device has.
pub unsafe trait Driver: Send + Sync + std::fmt::Debug {
    /// What it is.
    fn properties(&self) -> &Properties;
    /// Bytes of memory not in use now, by anyone.
    fn free_memory(&self) -> Result<u64>;
    /// `bytes` of memory, not initialised. Errors: [`rayspin_core::Error::Memory`].
    fn allocate(&self, bytes: u64) -> Result<u64>;
    /// Gives memory back when the work queued so far is done.
    ///
    /// # Safety
    /// `address` comes from [`Driver::allocate`] and is not used again.
    unsafe fn free(&self, address: u64, bytes: u64);
    /// Copies to the device; `from` may change as soon as this returns, unless it is [read late](Driver::reads_late).
    ///
    /// # Safety
    /// `to` begins as many allocated bytes as `from` has. Where `from` is read late, it stays as it is until the caller has waited for
    /// all work queued so far.
    unsafe fn upload(&self, to: u64, from: &[u8]) -> Result<()>;
    /// Whether [`Driver::upload`] and [`Driver::upload_unstaged`] of these bytes may return before the device has read them:
    /// short copies from memory that the device can reach by itself.
    fn reads_late(&self, from: &[u8]) -> bool;
    /// Waits for all work and copies to the host.
    ///
    /// # Safety
    /// `from` begins as many allocated bytes as `to` has.
    unsafe fn download(&self, from: u64, to: &mut [u8]) -> Result<()>;
    /// Host memory for copies beside the device's work, all bytes 0, aligned to 256 bytes.
    fn pin(&self, bytes: u64) -> Result<*mut u8>;
    /// Gives it back.
    ///
    /// # Safety
    /// `at` and `bytes` are those of [`Driver::pin`]; nothing uses the memory any more.
    unsafe fn unpin(&self, at: *mut u8, bytes: u64);
    /// Begins a copy to the device when all work asked for so far is done.
    ///
    /// # Safety
    /// `to` begins so many allocated bytes, which nothing uses before the ticket is joined; `from` so many pinned ones, which
    /// nothing changes before it is waited for.
    unsafe fn upload_beside(&self, to: u64, from: *const u8, bytes: u64) -> Result<Arc<dyn Ticket>>;
    /// Begins a copy to the host when all work asked for so far is done.
    ///
    /// # Safety
    /// `from` begins so many allocated bytes, which nothing changes before the ticket is joined; `to` so many pinned ones,
    /// which nothing uses before it is waited for.
    unsafe fn download_beside(&self, from: u64, to: *mut u8, bytes: u64) -> Result<Arc<dyn Ticket>>;
    /// Asks for a copy to the host in the order of the device's work, and does not wait for it.
    ///
    /// # Safety
    /// `from` begins so many allocated bytes; `to` so many pinned ones, which nothing uses before the ticket is waited for.
    unsafe fn download_in_order(&self, from: u64, to: *mut u8, bytes: u64) -> Result<Arc<dyn Ticket>>;
    /// What is asked of `to` from now on waits for all that was asked of `from`.
    fn pass(&self, from: Lane, to: Lane) -> Result<()>;
    /// Asks a lane for a copy to the device, and does not wait for it.
    ///
    /// # Safety
    /// `to` begins so many allocated bytes, which no other lane uses before it was passed to; `from` so many pinned ones, which
    /// nothing changes before a lane that this one was passed to is waited for.
    unsafe fn queue_upload(&self, lane: Lane, to: u64, from: *const u8, bytes: u64) -> Result<()>;
    /// Asks a lane for a copy to the host, and does not wait for it.
    ///
    /// # Safety
    /// As for [`Driver::queue_upload`]: nothing changes `from` nor uses `to` before.
    unsafe fn queue_download(&self, lane: Lane, from: u64, to: *mut u8, bytes: u64) -> Result<()>;
    /// The address by which kernels reach pinned memory.
    ///
    /// # Safety
    /// `at` comes from [`Driver::pin`].
    unsafe fn pinned_address(&self, at: *mut u8) -> Result<u64> {
        Ok(at as u64)
    }
    /// [`Driver::upload`] by the driver's own means for pageable memory.
    ///
    /// # Safety
    /// As for [`Driver::upload`].
    unsafe fn upload_unstaged(&self, to: u64, from: &[u8]) -> Result<()> {
        // SAFETY: as the caller promises.
        unsafe { self.upload(to, from) }
    }
    /// [`Driver::download`] by the driver's own means for pageable memory.
    ///
    /// # Safety
    /// As for [`Driver::download`].
    unsafe fn download_unstaged(&self, from: u64, to: &mut [u8]) -> Result<()> {
        // SAFETY: as the caller promises.
        unsafe { self.download(from, to) }
    }
    /// Copies within the device; the ranges do not overlap.
    ///
    /// # Safety
    /// Both begin at least `bytes` allocated bytes.
    unsafe fn copy(&self, from: u64, to: u64, bytes: u64) -> Result<()>;
    /// Sets every byte.
    ///
    /// # Safety
    /// `at` begins at least `bytes` allocated bytes.
    unsafe fn set_bytes(&self, at: u64, byte: u8, bytes: u64) -> Result<()>;
    /// Memory for a texture, not initialised. Errors: no memory.
    fn texture(&self, layout: &TextureLayout) -> Result<Arc<dyn TextureMemory>>;
    /// Whether programs can be compiled, rather than found among those that were compiled beforehand.
    fn compiles(&self) -> bool {
        true
    }
    /// Compiles a program, or finds it compiled, and loads it.
    fn load(&self, program: &Program) -> Result<Arc<dyn Module>>;
    /// Transforms, not scaled; `sign` is that of the exponent.
    ///
    /// # Safety
    /// `from` and `to`, which may be the same, begin the elements that the plan describes.
    unsafe fn fft(&self, plan: &FftPlan, sign: i32, from: u64, to: u64) -> Result<()>;
    /// Marks this place in the order of work.
    fn mark(&self) -> Result<Box<dyn Event>>;
    /// Seconds that the device took between two marks; waits for the second.
    fn seconds(&self, from: &dyn Event, to: &dyn Event) -> Result<f64>;
    /// Work asked for from now on is recorded instead of done.
    fn begin_recording(&self) -> Result<()>;
    /// Ends the recording; `None` where something was asked for that the driver cannot record.
    fn end_recording(&self) -> Result<Option<Box<dyn Graph>>>;
    /// Waits until all work is done. Errors: whatever failed since the last time.
    fn synchronize(&self) -> Result<()>;
    /// Waits until nothing is under way, on any lane: for memory whose copy could not be waited for by itself. Errors: it is not
    /// known whether anything is under way; work is being recorded.
    fn idle(&self) -> Result<()>;
}

/// A loaded program.
pub trait Module: Send + Sync {
    /// One of its kernels. Errors: there is none of this name.
    fn function(&self, name: &str) -> Result<Arc<dyn Function>>;
    /// Address and bytes of one of its `__constant__` or `__device__` variables.
    fn variable(&self, name: &str) -> Result<(u64, u64)>;
}

/// A kernel of a loaded program.
pub trait Function: Send + Sync {
    /// What it takes.
    fn resources(&self) -> Resources;
    /// Blocks that one multiprocessor holds at once.
    fn occupancy(&self, threads: u32, shared: u32) -> Result<u32>;
    /// Queues it; `arguments` point to the values in the order of its parameters.
    ///
    /// # Safety
    /// The arguments are of the types of the parameters, and the kernel stays within the memory that they name.
    unsafe fn launch(&self, launch: Launch, arguments: &mut [*mut c_void]) -> Result<()>;
    /// The same, and it may start while the launch before it ends.
    ///
    /// # Safety
    /// As for [`Function::launch`]; where the kernel is compiled for compute capability 9.0 or newer, all its threads execute
    /// `griddepcontrol.wait` before they touch memory.
    unsafe fn launch_early(&self, launch: Launch, arguments: &mut [*mut c_void]) -> Result<()> {
        // SAFETY: as the caller promises.
        unsafe { self.launch(launch, arguments) }
    }
}
