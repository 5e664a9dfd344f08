//! The GPUs of this machine, through the CUDA driver.

#![allow(unsafe_code)]

mod copy_streams;
mod fft;
pub(super) mod library;
mod module;
mod peer;
mod pins;
mod probe;
pub(super) mod staging;
mod texture;

pub use fft::fft_version;
pub use probe::{NoGpu, Starting, count, driver_installed, start};
use probe::{attribute, new_enough, properties};

use std::any::Any;
use std::sync::{Arc, Mutex};

use cudarc::driver::{DriverError, result as cu, sys};
use rayspin_core::{Error, Result};

use super::driver::{
    Compile, Driver, Event, FftPlan, Graph, Module, Properties, Stream, TextureMemory, Ticket,
};
use super::{Program, TextureLayout, code, lock};

/// The driver's name and description of an error.
fn words(error: DriverError) -> String {
    let text = |message: std::result::Result<&std::ffi::CStr, DriverError>| {
        message.map_or_else(|_| format!("{:?}", error.0), |s| s.to_string_lossy().into_owned())
    };
    format!("{} ({})", text(error.error_string()), text(error.error_name()))
}

fn failed(what: &str) -> impl FnOnce(DriverError) -> Error + '_ {
    move |error| Error::Device { what: what.to_owned(), detail: words(error) }
}

/// `threads` is the number of host threads that share a copy to or from pageable memory.
pub(super) fn open(ordinal: usize, threads: usize) -> Result<Arc<dyn Driver>> {
    let count = count().map_err(|absent| Error::value("device", "a CUDA GPU", absent))?;
    if ordinal >= count {
        return Err(Error::value(
            "device",
            format!("cuda:0 to cuda:{}", count - 1),
            format!("cuda:{ordinal}"),
        ));
    }
    Ok(Arc::new(Machine::open(ordinal, threads)?))
}

struct Machine {
    ordinal: usize,
    device: sys::CUdevice,
    shared: Arc<Shared>,
    properties: Properties,
    pool: Option<sys::CUmemoryPool>,
    staging: Mutex<staging::Staging>,
    plans: Mutex<fft::Plans>,
    copy_streams: copy_streams::CopyStreams,
    pins: pins::Pins,
}

/// The context and the stream, which everything on the device needs.
struct Shared {
    context: sys::CUcontext,
    /// Whether it is the GPU that CUDA takes where none is chosen.
    first: bool,
    stream: sys::CUstream,
}

// SAFETY: contexts and streams may be used from any thread, which makes the context current first (`enter`).
unsafe impl Send for Shared {}
unsafe impl Sync for Shared {}
// SAFETY: as above; the memory pool is a handle that the driver itself guards.
unsafe impl Send for Machine {}
unsafe impl Sync for Machine {}

impl Shared {
    fn enter(&self) -> Result<Entered> {
        // SAFETY: the context is retained as long as the machine lives.
        unsafe { Entered::new(self.context, self.first) }
    }
}

/// The context is this thread's until this is dropped. Then the thread has again the context that it had:
/// another library of the process may work on another GPU.
#[must_use = "the context is current as long as this lives"]
struct Entered {
    before: Option<sys::CUcontext>,
}

impl Entered {
    /// A thread without a context keeps the context of the first GPU, which it would get anyway: most threads
    /// enter it again.
    ///
    /// # Safety
    /// The context lives as long as this does.
    unsafe fn new(context: sys::CUcontext, first: bool) -> Result<Self> {
        let what = "making the GPU current";
        let before = match cu::ctx::get_current().map_err(failed(what))? {
            Some(current) if current == context => return Ok(Self { before: None }),
            None if first => None,
            None => Some(std::ptr::null_mut()),
            Some(other) => Some(other),
        };
        // SAFETY: as the caller promises.
        unsafe { cu::ctx::set_current(context) }.map_err(failed(what))?;
        Ok(Self { before })
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            // SAFETY: it was this thread's context a moment ago. A context that its owner has destroyed since
            // is an error, not undefined.
            let _ = unsafe { cu::ctx::set_current(before) };
        }
    }
}

impl Machine {
    fn open(ordinal: usize, threads: usize) -> Result<Self> {
        let device = cu::device::get(ordinal as i32).map_err(failed("finding the GPU"))?;
        let properties = properties(device)?;
        new_enough(ordinal, &properties)?;
        // SAFETY: the device was just found. Its primary context stays retained until the process ends, so
        // that arrays may be dropped in any order.
        let context = unsafe { cu::primary_ctx::retain(device) }.map_err(failed("opening the GPU"))?;
        let first = ordinal == 0;
        // SAFETY: as above.
        let _entered = unsafe { Entered::new(context, first) }?;
        let stream =
            cu::stream::create(cu::stream::StreamKind::NonBlocking).map_err(failed("making a stream"))?;
        let pool = attribute(device, sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED)
            .ok()
            .filter(|&yes| yes != 0)
            .and_then(|_| {
                // SAFETY: the device supports pools, and the attribute is a 64-bit number. Freed memory stays
                // in the pool, so that the next allocation of its size costs nothing.
                unsafe {
                    let pool = cu::device::get_default_mem_pool(device).ok()?;
                    let mut keep = u64::MAX;
                    cu::mem_pool::set_attribute(
                        pool,
                        sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD,
                        (&raw mut keep).cast(),
                    )
                    .ok()?;
                    Some(pool)
                }
            });
        let shared = Arc::new(Shared { context, first, stream });
        Ok(Self {
            ordinal,
            device,
            properties,
            pool,
            staging: Mutex::new(staging::Staging::new(shared.clone(), threads)),
            plans: Mutex::new(fft::Plans::new(shared.clone())),
            copy_streams: copy_streams::CopyStreams::new(shared.clone()),
            pins: pins::Pins::new(shared.clone()),
            shared,
        })
    }

    fn try_allocate(&self, bytes: u64) -> std::result::Result<u64, DriverError> {
        // SAFETY: the context is current and the pool, if any, is the device's own.
        unsafe {
            match self.pool {
                Some(pool) => cu::mem_pool::alloc_async(pool, bytes as usize, self.shared.stream),
                None => cu::malloc_sync(bytes as usize),
            }
        }
    }
}

impl std::fmt::Debug for Machine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Machine({}, {})", self.device, self.properties.name)
    }
}

// SAFETY: each call does what CUDA's documentation of the function states. The comments at the calls name the
// rest.
unsafe impl Driver for Machine {
    fn properties(&self) -> &Properties {
        &self.properties
    }

    fn ordinal(&self) -> Option<usize> {
        Some(self.ordinal)
    }

    fn free_memory(&self) -> Result<u64> {
        let _entered = self.shared.enter()?;
        let (free, _) = cu::mem_get_info().map_err(failed("reading the GPU's free memory"))?;
        let Some(pool) = self.pool else { return Ok(free as u64) };
        let read = |which| {
            let mut bytes = 0u64;
            // SAFETY: both attributes are 64-bit numbers.
            unsafe { cu::mem_pool::get_attribute(pool, which, (&raw mut bytes).cast()) }.map(|()| bytes)
        };
        // Memory that the pool holds and nobody uses is available.
        let reserved = read(sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
        let used = read(sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_USED_MEM_CURRENT);
        Ok(free as u64 + reserved.unwrap_or(0).saturating_sub(used.unwrap_or(0)))
    }

    fn allocate(&self, bytes: u64) -> Result<u64> {
        let _entered = self.shared.enter()?;
        let refused = match self.try_allocate(bytes) {
            Ok(address) => return Ok(address),
            Err(e) if e.0 == sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY => e,
            Err(e) => return Err(failed("allocating GPU memory")(e)),
        };
        // Freed memory may still wait for queued work, or lie in the pool in pieces.
        self.synchronize()?;
        if let Some(pool) = self.pool {
            // SAFETY: the pool is the device's own.
            unsafe { cu::mem_pool::trim_to(pool, 0) }.map_err(failed("trimming the memory pool"))?;
        }
        self.try_allocate(bytes).map_err(|e| match e.0 == refused.0 {
            true => Error::Memory {
                what: "GPU memory".to_owned(),
                needed: bytes,
                available: self.free_memory().unwrap_or(0),
            },
            false => failed("allocating GPU memory")(e),
        })
    }

    unsafe fn free(&self, address: u64, _bytes: u64) {
        // A context that ended with an earlier error has no memory to free.
        if let Ok(_entered) = self.shared.enter() {
            // SAFETY: as the caller promises.
            let _ = unsafe {
                match self.pool {
                    Some(_) => cu::free_async(address, self.shared.stream),
                    None => cu::free_sync(address),
                }
            };
        }
    }

    unsafe fn upload(&self, to: u64, from: &[u8]) -> Result<()> {
        let _entered = self.shared.enter()?;
        // SAFETY: as the caller promises.
        unsafe { lock(&self.staging).upload(to, from) }.map_err(failed("copying to the GPU"))
    }

    unsafe fn upload_pieces(&self, to: u64, pieces: &[&[u8]]) -> Result<()> {
        let _entered = self.shared.enter()?;
        // SAFETY: as the caller promises.
        unsafe { lock(&self.staging).upload_pieces(to, pieces) }.map_err(failed("copying to the GPU"))
    }

    fn reads_late(&self, from: &[u8]) -> bool {
        // CUDA copies directly from memory whose address it knows. Longer copies are staged or waited for. If
        // CUDA knows only the end of a slice, the slice begins in pageable memory, and its copy goes through
        // the driver's own buffer.
        from.len() <= staging::SMALL && self.shared.enter().map_or(true, |_entered| known(from.as_ptr()))
    }

    unsafe fn download(&self, from: u64, to: &mut [u8]) -> Result<()> {
        let _entered = self.shared.enter()?;
        // SAFETY: as the caller promises.
        unsafe { lock(&self.staging).download(from, to) }.map_err(failed("copying from the GPU"))
    }

    fn pin(&self, bytes: u64) -> Result<*mut u8> {
        self.pins.pin(bytes)
    }

    unsafe fn unpin(&self, pointer: *mut u8, bytes: u64) {
        // SAFETY: as the caller promises.
        unsafe { self.pins.unpin(pointer, bytes) }
    }

    unsafe fn upload_async(&self, to: u64, from: *const u8, bytes: u64) -> Result<Arc<dyn Ticket>> {
        let _entered = self.shared.enter()?;
        // SAFETY: as the caller promises.
        unsafe {
            let from = std::slice::from_raw_parts(from, bytes as usize);
            self.copy_streams.begin(0, |stream| cu::memcpy_htod_async(to, from, stream))
        }
    }

    unsafe fn download_async(&self, from: u64, to: *mut u8, bytes: u64) -> Result<Arc<dyn Ticket>> {
        let _entered = self.shared.enter()?;
        // SAFETY: as the caller promises.
        unsafe {
            let to = std::slice::from_raw_parts_mut(to, bytes as usize);
            self.copy_streams.begin(1, |stream| cu::memcpy_dtoh_async(to, from, stream))
        }
    }

    unsafe fn download_in_order(&self, from: u64, to: *mut u8, bytes: u64) -> Result<Arc<dyn Ticket>> {
        let _entered = self.shared.enter()?;
        // SAFETY: as the caller promises.
        unsafe {
            let to = std::slice::from_raw_parts_mut(to, bytes as usize);
            copy_streams::in_order(&self.shared, |stream| cu::memcpy_dtoh_async(to, from, stream))
        }
    }

    fn order_streams(&self, from: Stream, to: Stream) -> Result<()> {
        let _entered = self.shared.enter()?;
        self.copy_streams.order(from, to)
    }

    unsafe fn queue_upload(&self, stream: Stream, to: u64, from: *const u8, bytes: u64) -> Result<()> {
        let _entered = self.shared.enter()?;
        let stream = self.copy_streams.stream(stream)?;
        // SAFETY: as the caller promises.
        unsafe {
            let from = std::slice::from_raw_parts(from, bytes as usize);
            cu::memcpy_htod_async(to, from, stream).map_err(failed("copying to the GPU"))
        }
    }

    unsafe fn queue_download(&self, stream: Stream, from: u64, to: *mut u8, bytes: u64) -> Result<()> {
        let _entered = self.shared.enter()?;
        let stream = self.copy_streams.stream(stream)?;
        // SAFETY: as the caller promises.
        unsafe {
            let to = std::slice::from_raw_parts_mut(to, bytes as usize);
            cu::memcpy_dtoh_async(to, from, stream).map_err(failed("copying from the GPU"))
        }
    }

    unsafe fn pinned_address(&self, pointer: *mut u8) -> Result<u64> {
        let _entered = self.shared.enter()?;
        let mut address = 0;
        // SAFETY: a place to write to, and pinned memory as the caller promises.
        unsafe { sys::cuMemHostGetDevicePointer_v2(&raw mut address, pointer.cast(), 0) }
            .result()
            .map_err(failed("mapping pinned memory"))?;
        Ok(address)
    }

    unsafe fn upload_unstaged(&self, to: u64, from: &[u8]) -> Result<()> {
        let _entered = self.shared.enter()?;
        // SAFETY: as the caller promises.
        unsafe { staging::upload_unstaged(&self.shared, to, from) }.map_err(failed("copying to the GPU"))
    }

    unsafe fn download_unstaged(&self, from: u64, to: &mut [u8]) -> Result<()> {
        let _entered = self.shared.enter()?;
        // SAFETY: as the caller promises.
        unsafe { staging::download_unstaged(&self.shared, from, to) }.map_err(failed("copying from the GPU"))
    }

    unsafe fn copy(&self, from: u64, to: u64, bytes: u64) -> Result<()> {
        let _entered = self.shared.enter()?;
        // SAFETY: as the caller promises.
        unsafe { cu::memcpy_dtod_async(to, from, bytes as usize, self.shared.stream) }
            .map_err(failed("copying on the GPU"))
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }

    fn wait_for(&self, other: &dyn Driver) -> Result<()> {
        match other.as_any().and_then(|other| other.downcast_ref::<Self>()) {
            Some(other) => self.wait_for_machine(other),
            None => other.synchronize(),
        }
    }

    unsafe fn copy_to(&self, from: u64, other: &dyn Driver, to: u64, bytes: u64) -> Result<()> {
        // SAFETY: as the caller promises.
        unsafe {
            match other.as_any().and_then(|machine| machine.downcast_ref::<Self>()) {
                Some(machine) => self.copy_to_machine(from, machine, to, bytes),
                None => crate::cuda::peer::through_host(self, from, other, to, bytes),
            }
        }
    }

    unsafe fn set_bytes(&self, address: u64, byte: u8, bytes: u64) -> Result<()> {
        let _entered = self.shared.enter()?;
        // SAFETY: as the caller promises.
        unsafe { cu::memset_d8_async(address, byte, bytes as usize, self.shared.stream) }
            .map_err(failed("filling GPU memory"))
    }

    fn texture(&self, layout: &TextureLayout) -> Result<Arc<dyn TextureMemory>> {
        let _entered = self.shared.enter()?;
        Ok(Arc::new(texture::Surface::new(layout, self.shared.clone())?))
    }

    fn offers(&self, program: &Program) -> bool {
        code::origin(program, &self.properties).is_ok()
    }

    fn compile_ahead(&self, job: &str, rehearse: &mut dyn FnMut(&Compile<'_>)) {
        module::compile_ahead(&self.properties, job, rehearse);
    }

    fn load(&self, program: &Program) -> Result<Arc<dyn Module>> {
        let _entered = self.shared.enter()?;
        Ok(Arc::new(module::Loaded::load(program, &self.properties, self.shared.clone())?))
    }

    unsafe fn fft(&self, plan: &FftPlan, sign: i32, from: u64, to: u64) -> Result<()> {
        let _entered = self.shared.enter()?;
        // SAFETY: as the caller promises.
        unsafe { lock(&self.plans).run(plan, sign, from, to) }
    }

    fn mark(&self) -> Result<Box<dyn Event>> {
        let _entered = self.shared.enter()?;
        let event =
            cu::event::create(sys::CUevent_flags::CU_EVENT_DEFAULT).map_err(failed("making an event"))?;
        let mark = Mark { event, shared: self.shared.clone() };
        // SAFETY: both handles were made in this context.
        unsafe { cu::event::record(event, self.shared.stream) }.map_err(failed("recording an event"))?;
        Ok(Box::new(mark))
    }

    fn seconds(&self, from: &dyn Event, to: &dyn Event) -> Result<f64> {
        let _entered = self.shared.enter()?;
        let event_of = |event: &dyn Event| event.as_any().downcast_ref::<Mark>().map(|mark| mark.event);
        let (Some(from), Some(to)) = (event_of(from), event_of(to)) else {
            return Err(Error::value("event", "one of this device", "another device's"));
        };
        // SAFETY: both events live and were recorded.
        unsafe {
            cu::event::synchronize(to).map_err(failed("waiting for the GPU"))?;
            cu::event::elapsed(from, to).map(|ms| f64::from(ms) * 1e-3).map_err(failed("timing the GPU"))
        }
    }

    fn begin_recording(&self) -> Result<()> {
        let _entered = self.shared.enter()?;
        // SAFETY: the stream is our own.
        unsafe {
            cu::stream::begin_capture(
                self.shared.stream,
                sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
            )
        }
        .map_err(failed("recording a graph"))
    }

    fn end_recording(&self) -> Result<Option<Box<dyn Graph>>> {
        let _entered = self.shared.enter()?;
        // SAFETY: the stream is our own and was recording. The graph is used once, to make the executable
        // graph.
        unsafe {
            let graph = match cu::stream::end_capture(self.shared.stream) {
                Ok(graph) => graph,
                Err(error) if not_recordable(error) => return Ok(None),
                Err(error) => return Err(failed("recording a graph")(error)),
            };
            let mut ready = std::mem::MaybeUninit::uninit();
            let made = sys::cuGraphInstantiateWithFlags(ready.as_mut_ptr(), graph, 0).result();
            let _ = cu::graph::destroy(graph);
            made.map_err(failed("making a graph"))?;
            Ok(Some(Box::new(Recorded { graph: ready.assume_init(), shared: self.shared.clone() })))
        }
    }

    fn synchronize(&self) -> Result<()> {
        let _entered = self.shared.enter()?;
        // SAFETY: the stream is our own.
        unsafe { cu::stream::synchronize(self.shared.stream) }.map_err(failed("work on the GPU"))
    }

    fn idle(&self) -> Result<()> {
        let _entered = self.shared.enter()?;
        cu::ctx::synchronize().map_err(failed("waiting for all of the GPU's work"))
    }
}

/// Whether CUDA can copy from this host address without its own buffer: pinned, registered or managed memory.
fn known(pointer: *const u8) -> bool {
    let mut kind = 0u32;
    // SAFETY: the call writes the kind of memory to a local. An address that CUDA does not know only gives an
    // error.
    let status = unsafe {
        sys::cuPointerGetAttribute(
            (&raw mut kind).cast(),
            sys::CUpointer_attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
            pointer as u64,
        )
    };
    // On Linux kernels that let GPUs read all host memory, pageable memory has no kind.
    status.result().is_ok() && kind != 0
}

/// Whether a recording ended because of a call that cannot be recorded: `CUDA_ERROR_STREAM_CAPTURE_…`.
fn not_recordable(error: DriverError) -> bool {
    (900..=908).contains(&(error.0 as u32))
}

struct Mark {
    event: sys::CUevent,
    shared: Arc<Shared>,
}

// SAFETY: events may be used from any thread.
unsafe impl Send for Mark {}
unsafe impl Sync for Mark {}

impl Event for Mark {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        if let Ok(_entered) = self.shared.enter() {
            // SAFETY: the event is this mark's own.
            let _ = unsafe { cu::event::destroy(self.event) };
        }
    }
}

struct Recorded {
    graph: sys::CUgraphExec,
    shared: Arc<Shared>,
}

// SAFETY: an executable graph may be launched from any thread. The stream orders the launches of one graph.
unsafe impl Send for Recorded {}
unsafe impl Sync for Recorded {}

impl Graph for Recorded {
    fn launch(&self) -> Result<()> {
        let _entered = self.shared.enter()?;
        // SAFETY: both handles live.
        unsafe { cu::graph::launch(self.graph, self.shared.stream) }.map_err(failed("launching a graph"))
    }
}

impl Drop for Recorded {
    fn drop(&mut self) {
        if let Ok(_entered) = self.shared.enter() {
            // SAFETY: the graph is this recording's own.
            let _ = unsafe { cu::graph::exec_destroy(self.graph) };
        }
    }
}
