//! The calls to a CUDA processor. [`super::machine`] implements them with the driver of the machine. The
//! emulator implements them too, so that the same kernels and the same host code run in tests without a GPU.

// Addresses of a device's memory cannot be checked here. Each call states its contract under `Safety`.
#![allow(unsafe_code)]

use std::any::Any;
use std::ffi::c_void;
use std::sync::Arc;

use super::ForeignStream;
use rayspin_core::Result;

use super::{Program, TextureLayout};

/// The properties of a processor and the limits of a launch.
#[derive(Debug, Clone, PartialEq)]
pub struct Properties {
    /// The processor's name, from the driver.
    pub name: String,
    /// Compute capability, as (9, 0).
    pub capability: (u32, u32),
    /// Streaming multiprocessors.
    pub multiprocessors: u32,
    /// Bytes of device memory.
    pub memory: u64,
    /// Bytes of second-level cache.
    pub cache: u64,
    /// Maximum number of threads of a block.
    pub threads_per_block: u32,
    /// Threads that one multiprocessor holds at once.
    pub threads_per_multiprocessor: u32,
    /// Maximum bytes of shared memory of a block.
    pub shared_per_block: u32,
    /// Bytes of shared memory of a multiprocessor.
    pub shared_per_multiprocessor: u32,
    /// 32-bit registers of a multiprocessor.
    pub registers_per_multiprocessor: u32,
    /// Version of the driver's interface, as (13, 0).
    pub driver: (u32, u32),
}

/// The resources of a compiled kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resources {
    /// 32-bit registers a thread.
    pub registers: u32,
    /// Bytes of shared memory that the kernel declares itself.
    pub shared: u32,
    /// Bytes of local memory a thread: spilled registers and arrays that are indexed at run time.
    pub local: u32,
    /// Maximum number of threads of a block, as compiled.
    pub threads: u32,
}

/// Blocks, threads of a block, and bytes of dynamic shared memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Launch {
    /// Blocks along x, y and z.
    pub blocks: [u32; 3],
    /// Threads of a block along x, y and z.
    pub threads: [u32; 3],
    /// Bytes of dynamic shared memory, in addition to the kernel's own.
    pub shared: u32,
}

impl Launch {
    /// `blocks` by `threads`, both one-dimensional.
    pub fn linear(blocks: u32, threads: u32) -> Self {
        Self { blocks: [blocks, 1, 1], threads: [threads, 1, 1], shared: 0 }
    }

    /// Enough blocks of `threads` threads for one thread per item; at least one block.
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

/// A point in the order of the device's work, for timing.
pub trait Event: Send + Sync {
    /// Lets the driver that made the event recognise it.
    fn as_any(&self) -> &dyn Any;
}

/// A copy that runs concurrently with the device's other work.
pub trait Ticket: Send + Sync {
    /// Makes work that is queued from now on wait for the copy.
    fn join(&self) -> Result<()>;
    /// Makes the host wait for the copy.
    fn wait(&self) -> Result<()>;
}

/// A CUDA stream: the device does the work queued on one stream in order, and concurrently with the other
/// streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Kernels, and all work that the other two do not take.
    Work,
    /// Copies to the device.
    Upload,
    /// Copies to the host.
    Download,
    /// A stream of another library in this process.
    Foreign(ForeignStream),
}

/// The memory of a texture.
pub trait TextureMemory: Send + Sync {
    /// The handle that kernels take as an argument.
    fn handle(&self) -> u64;
    /// Copies all texels, in the order of the device's work.
    ///
    /// # Safety
    /// `from` is the address of as many texels as the texture has, x fastest.
    unsafe fn fill(&self, from: u64) -> Result<()>;
}

/// Recorded work (a CUDA graph) that one call launches again.
pub trait Graph: Send + Sync {
    /// Queues all of it once more.
    fn launch(&self) -> Result<()>;
}

/// What compiles a program, on any thread.
pub type Compile<'a> = dyn Fn(&Program) + Sync + 'a;

/// A processor with its own memory. Addresses refer to that memory. The device does all work in the order of
/// the calls. Errors name the call. A kernel's failure may appear at a later call.
///
/// # Safety
/// Safe code frees and reads memory because of the promises below. An implementation keeps them, and so do
/// the [`Ticket`], [`TextureMemory`], [`Graph`], [`Module`] and [`Function`] that it returns:
///
/// - [`Driver::allocate`], [`Driver::pin`], [`Driver::texture`] and [`Module::variable`] return memory of the
///   stated size. Nothing else uses it until it is freed.
/// - The device touches only the memory that a call names. It does not touch that memory any more after a
///   call that waits for the work has returned without an error. After [`Driver::idle`] it touches no memory
///   at all.
/// - [`Driver::upload`] and [`Driver::download`] do not touch host memory after they return, even with an
///   error, unless [`Driver::reads_late`] says otherwise.
/// - [`Driver::properties`] and [`Function::resources`] state limits that the device has.
pub unsafe trait Driver: Send + Sync + std::fmt::Debug {
    /// The processor's properties.
    fn properties(&self) -> &Properties;
    /// The number of the device, where it is one of several.
    fn ordinal(&self) -> Option<usize> {
        None
    }
    /// Bytes of device memory that no process uses now.
    fn free_memory(&self) -> Result<u64>;
    /// `bytes` of memory, not initialised. Errors: [`rayspin_core::Error::Memory`].
    fn allocate(&self, bytes: u64) -> Result<u64>;
    /// Frees memory when the work queued so far is done.
    ///
    /// # Safety
    /// `address` comes from [`Driver::allocate`] and is not used again.
    unsafe fn free(&self, address: u64, bytes: u64);
    /// Copies to the device. `from` may change as soon as this returns, unless the device [reads it
    /// late](Driver::reads_late).
    ///
    /// # Safety
    /// As many bytes are allocated at `to` as `from` has. If `from` is read late, it does not change until
    /// the caller has waited for all work queued so far.
    unsafe fn upload(&self, to: u64, from: &[u8]) -> Result<()>;
    /// As [`Driver::upload`], of pieces that lie one behind the other on the device. None of them is read
    /// late.
    ///
    /// # Safety
    /// As many bytes are allocated at `to` as all pieces have.
    unsafe fn upload_pieces(&self, mut to: u64, pieces: &[&[u8]]) -> Result<()> {
        for piece in pieces.iter().filter(|piece| !piece.is_empty()) {
            let own = self.reads_late(piece).then(|| piece.to_vec());
            // SAFETY: as the caller promises. A copy of a few bytes in ordinary memory is read at once.
            unsafe { self.upload(to, own.as_deref().unwrap_or(piece)) }?;
            to += piece.len() as u64;
        }
        Ok(())
    }
    /// Whether [`Driver::upload`] and [`Driver::upload_unstaged`] of these bytes may return before the device
    /// has read them. Drivers do so for short copies from memory that the device can reach by itself.
    fn reads_late(&self, from: &[u8]) -> bool;
    /// Whether zeros become ones when arrays are read, as of a [`NullDriver`](super::NullDriver).
    fn answers_ones(&self) -> bool {
        false
    }
    /// Waits for all work and copies to the host.
    ///
    /// # Safety
    /// `from` begins as many allocated bytes as `to` has.
    unsafe fn download(&self, from: u64, to: &mut [u8]) -> Result<()>;
    /// Allocates pinned host memory for concurrent copies, all bytes 0, aligned to 256 bytes.
    fn pin(&self, bytes: u64) -> Result<*mut u8>;
    /// Frees pinned host memory.
    ///
    /// # Safety
    /// `pointer` and `bytes` come from one call of [`Driver::pin`], and nothing uses the memory any more.
    unsafe fn unpin(&self, pointer: *mut u8, bytes: u64);
    /// Queues a copy to the device on a stream of its own. The copy starts when all work queued so far is
    /// done.
    ///
    /// # Safety
    /// `bytes` bytes are allocated at `to`, and nothing uses them before the ticket is joined. `bytes` bytes
    /// are pinned at `from`, and nothing changes them before the ticket is waited for.
    unsafe fn upload_async(&self, to: u64, from: *const u8, bytes: u64) -> Result<Arc<dyn Ticket>>;
    /// Queues a copy to the host on a stream of its own. The copy starts when all work queued so far is done.
    ///
    /// # Safety
    /// `bytes` bytes are allocated at `from`, and nothing changes them before the ticket is joined. `bytes`
    /// bytes are pinned at `to`, and nothing uses them before the ticket is waited for.
    unsafe fn download_async(&self, from: u64, to: *mut u8, bytes: u64) -> Result<Arc<dyn Ticket>>;
    /// Queues a copy to the host in the order of the device's work, and does not wait for it.
    ///
    /// # Safety
    /// `bytes` bytes are allocated at `from`. `bytes` bytes are pinned at `to`, and nothing uses them before
    /// the ticket is waited for.
    unsafe fn download_in_order(&self, from: u64, to: *mut u8, bytes: u64) -> Result<Arc<dyn Ticket>>;
    /// Makes work that is queued on `to` from now on wait for all work queued on `from` so far.
    fn order_streams(&self, from: Stream, to: Stream) -> Result<()>;
    /// Queues a copy to the device on a stream, and does not wait for it.
    ///
    /// # Safety
    /// `bytes` bytes are allocated at `to`. Another stream uses them only after [`Driver::order_streams`]
    /// from this stream to it. `bytes` bytes are pinned at `from`, and nothing changes them before the host
    /// has waited for a stream that was ordered after this one.
    unsafe fn queue_upload(&self, stream: Stream, to: u64, from: *const u8, bytes: u64) -> Result<()>;
    /// Queues a copy to the host on a stream, and does not wait for it.
    ///
    /// # Safety
    /// As for [`Driver::queue_upload`]: nothing changes `from` or uses `to` before then.
    unsafe fn queue_download(&self, stream: Stream, from: u64, to: *mut u8, bytes: u64) -> Result<()>;
    /// The address of pinned memory for kernels.
    ///
    /// # Safety
    /// `pointer` comes from [`Driver::pin`].
    unsafe fn pinned_address(&self, pointer: *mut u8) -> Result<u64> {
        Ok(pointer as u64)
    }
    /// [`Driver::upload`] by the driver's own copy of pageable memory.
    ///
    /// # Safety
    /// As for [`Driver::upload`].
    unsafe fn upload_unstaged(&self, to: u64, from: &[u8]) -> Result<()> {
        // SAFETY: as the caller promises.
        unsafe { self.upload(to, from) }
    }
    /// [`Driver::download`] by the driver's own copy of pageable memory.
    ///
    /// # Safety
    /// As for [`Driver::download`].
    unsafe fn download_unstaged(&self, from: u64, to: &mut [u8]) -> Result<()> {
        // SAFETY: as the caller promises.
        unsafe { self.download(from, to) }
    }
    /// Copies within the device.
    ///
    /// # Safety
    /// At least `bytes` bytes are allocated at `from` and at `to`, and the ranges do not overlap.
    unsafe fn copy(&self, from: u64, to: u64, bytes: u64) -> Result<()>;
    /// The driver itself behind those that wrap it, where drivers of its kind recognise each other.
    fn as_any(&self) -> Option<&dyn Any> {
        None
    }
    /// Makes work that is queued from now on wait for all work queued on `other` so far.
    fn wait_for(&self, other: &dyn Driver) -> Result<()> {
        other.synchronize()
    }
    /// Queues a copy to the memory of another device, in the order of this device's work.
    ///
    /// # Safety
    /// At least `bytes` bytes are allocated at `from` on this device and at `to` on the other. All of the
    /// other device's work on `to` so far has been [waited for](Driver::wait_for), and its work on `to` from
    /// now on waits for this device.
    unsafe fn copy_to(&self, from: u64, other: &dyn Driver, to: u64, bytes: u64) -> Result<()> {
        // SAFETY: as the caller promises.
        unsafe { super::peer::through_host(self, from, other, to, bytes) }
    }
    /// Sets every byte.
    ///
    /// # Safety
    /// At least `bytes` bytes are allocated at `address`.
    unsafe fn set_bytes(&self, address: u64, byte: u8, bytes: u64) -> Result<()>;
    /// Allocates memory for a texture, not initialised. Errors: no memory.
    fn texture(&self, layout: &TextureLayout) -> Result<Arc<dyn TextureMemory>>;
    /// Whether [`Driver::load`] has code of this program: a compiler makes it, or it is precompiled.
    fn offers(&self, _program: &Program) -> bool {
        true
    }
    /// Calls `rehearse` with what compiles a program into the cache, once for each `job`. Drivers without a
    /// cache call nothing.
    fn compile_ahead(&self, _job: &str, _rehearse: &mut dyn FnMut(&Compile<'_>)) {}
    /// Loads a program. Compiles it first if it is neither in a cache nor precompiled.
    fn load(&self, program: &Program) -> Result<Arc<dyn Module>>;
    /// Fourier transforms without scaling. `sign` is the sign of the exponent.
    ///
    /// # Safety
    /// The elements that the plan describes are allocated at `from` and at `to`, which may be equal.
    unsafe fn fft(&self, plan: &FftPlan, sign: i32, from: u64, to: u64) -> Result<()>;
    /// Marks this point in the order of work.
    fn mark(&self) -> Result<Box<dyn Event>>;
    /// Seconds that the device took between two marks. Waits for the second mark.
    fn seconds(&self, from: &dyn Event, to: &dyn Event) -> Result<f64>;
    /// Records the work that is queued from now on, instead of doing it.
    fn begin_recording(&self) -> Result<()>;
    /// Ends the recording. `None` if a call could not be recorded.
    fn end_recording(&self) -> Result<Option<Box<dyn Graph>>>;
    /// Waits until all work is done. Errors: a failure since the last wait.
    fn synchronize(&self) -> Result<()>;
    /// Waits until nothing is under way on any stream. Used for memory whose copy could not be waited for.
    /// Errors: the driver does not know whether anything is under way; work is being recorded.
    fn idle(&self) -> Result<()>;
}

/// A loaded program.
pub trait Module: Send + Sync {
    /// The kernel of this name. Errors: no such kernel.
    fn function(&self, name: &str) -> Result<Arc<dyn Function>>;
    /// Address and bytes of one of its `__constant__` or `__device__` variables.
    fn variable(&self, name: &str) -> Result<(u64, u64)>;
}

/// A kernel of a loaded program.
pub trait Function: Send + Sync {
    /// The kernel's resources.
    fn resources(&self) -> Resources;
    /// Number of blocks that one multiprocessor holds at once.
    fn occupancy(&self, threads: u32, shared: u32) -> Result<u32>;
    /// Whether blocks run at the same time, and so may wait for each other, if multiprocessors hold them all
    /// at once. Blocks that run one after another would wait for ever.
    fn blocks_meet(&self) -> bool {
        false
    }
    /// Queues the kernel. `arguments` point to the values in the order of its parameters.
    ///
    /// # Safety
    /// The arguments have the types of the parameters, and the kernel stays within the memory that they name.
    unsafe fn launch(&self, launch: Launch, arguments: &mut [*mut c_void]) -> Result<()>;
    /// [`Function::launch`] that may start while the previous launch ends.
    ///
    /// # Safety
    /// As for [`Function::launch`]. If the kernel is compiled for compute capability 9.0 or newer, all its
    /// threads execute `griddepcontrol.wait` before they touch memory.
    unsafe fn launch_early(&self, launch: Launch, arguments: &mut [*mut c_void]) -> Result<()> {
        // SAFETY: as the caller promises.
        unsafe { self.launch(launch, arguments) }
    }
}
