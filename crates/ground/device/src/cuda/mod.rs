//! NVIDIA GPUs: memory, compiled kernels, launches. The one place that knows CUDA bindings.
//!
//! Work is queued in order on one stream. A call that returns values to the host waits for it. Kernels are
//! CUDA C++. They are compiled at run time for the processor at hand and cached on disk. Building this crate
//! needs neither a GPU nor a toolkit.

mod archive;
mod argument;
mod buffer;
mod cache;
mod code;
mod compile;
mod deferred;
mod driver;
mod launched;
mod lent;
mod machine;
mod null_driver;
mod peer;
mod pinned;
mod pipeline;
mod precompiled;
mod program;
mod record;
mod scratch_pool;
mod texture;

pub use archive::{Code, Form, Precompiled, pack};
use argument::Home;
pub use argument::{Argument, Kernel, View, ViewMut};
pub(crate) use buffer::Buffer;
pub use buffer::HostCopy;
pub use cache::folder as cache_folder;
pub use compile::{Compiled, Usage, architecture, compile, compiler_missing, compiler_version, usages};
pub(crate) use deferred::Copying;
pub use driver::{
    Compile, Driver, Event, FftPlan, Function, Graph, Launch, Module, Properties, Resources, Stream,
    TextureMemory, Ticket,
};
pub use launched::Launched;
use launched::Trace;
pub(crate) use lent::Lender;
pub use lent::{ForeignStream, Lent};
pub use machine::{NoGpu, Starting, count, driver_installed, fft_version, start};
pub use null_driver::NullDriver;
pub(crate) use pinned::PinnedBytes;
pub use precompiled::{archive, carry as carry_archive, ignored as ignored_archive};
pub use program::{Define, Parameter, Program, Source};
pub use record::{Recorded, Recording};
pub use texture::{AddressMode, Filter, Sampling, Texel, TexelKind, Texture, TextureLayout};

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rayspin_core::{Error, Result};

use crate::Device;

/// A GPU with its memory and its compiled kernels.
pub struct Cuda {
    driver: Arc<dyn Driver>,
    memory: Arc<Memory>,
    modules: Mutex<Forms<Arc<Loaded>>>,
    /// Whether programs can be loaded.
    offered: Box<Mutex<Forms<bool>>>,
    scratch: scratch_pool::ScratchPools,
    /// The limits that launches are checked against.
    limits: Arc<Properties>,
    host: Device,
    wait: bool,
    trace: Arc<Trace>,
    /// Number of repetitions from which loops record their work.
    graphs_from: AtomicUsize,
}

/// Compilations at once at most: each takes memory.
const MOST_COMPILERS: usize = 16;

/// Programs by the address of their source, then by their macros.
type Forms<T> = HashMap<usize, HashMap<Vec<Define>, T>>;

/// The memory that arrays of a device take, and its limit.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    used: AtomicU64,
    peak: AtomicU64,
    /// 0 if only the device's memory limits arrays.
    limit: AtomicU64,
    refused: AtomicU64,
    gate: record::Gate,
    deferred: deferred::DeferredFrees,
}

struct Loaded {
    program: Arc<Program>,
    module: Arc<dyn Module>,
    signatures: HashMap<String, Arc<Vec<Parameter>>>,
    kernels: Mutex<HashMap<String, Kernel>>,
    /// Variables whose final values are written.
    tables: Mutex<HashSet<String>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Cuda {
    /// The GPU of this machine with this number.
    pub(crate) fn open(ordinal: usize, host: Device) -> Result<Self> {
        Ok(Self::with_driver(machine::open(ordinal, host.cpu_side().threads())?, host))
    }

    pub(crate) fn with_driver(driver: Arc<dyn Driver>, host: Device) -> Self {
        let wait = std::env::var_os("RAYSPIN_CUDA_WAIT").is_some_and(|v| v != "0");
        let graphs = !wait && std::env::var_os("RAYSPIN_CUDA_GRAPHS").is_none_or(|v| v != "0");
        let limits = Arc::new(driver.properties().clone());
        let graphs_from = AtomicUsize::new(if graphs { record::MIN_REPETITIONS } else { usize::MAX });
        Self {
            driver,
            memory: Arc::default(),
            modules: Mutex::default(),
            offered: Box::default(),
            scratch: Mutex::default(),
            limits,
            host,
            wait,
            graphs_from,
            trace: Arc::default(),
        }
    }

    /// The properties of the GPU.
    pub fn properties(&self) -> &Properties {
        self.driver.properties()
    }

    /// The number of the GPU; none where the driver gives it none.
    pub fn ordinal(&self) -> Option<usize> {
        self.driver.ordinal()
    }

    /// Whether a program of `source` with the macros `defines` can be loaded. On a machine without a compiler
    /// only the programs of [`Precompiled`] can. An algorithm whose kernels depend on the problem has general
    /// kernels in that list for the others.
    pub fn offers(&self, source: &'static Source, defines: &[Define]) -> bool {
        let address = std::ptr::from_ref(source).addr();
        if let Some(&offered) = lock(&self.offered).get(&address).and_then(|forms| forms.get(defines)) {
            return offered;
        }
        let offered = self.driver.offers(&Program::new(source, defines));
        lock(&self.offered).entry(address).or_default().insert(defines.to_vec(), offered);
        offered
    }

    /// The CPU that does the work that is not worth a kernel, such as setting up small problems.
    pub fn host(&self) -> &Device {
        &self.host
    }

    /// Bytes that arrays take now, and their peak since [`Cuda::reset_peak`].
    pub fn memory_used(&self) -> (u64, u64) {
        (self.memory.used.load(Ordering::Relaxed), self.memory.peak.load(Ordering::Relaxed))
    }

    /// Number of allocations that failed so far. It tells a GPU's [`Error::Memory`] from the host's.
    pub fn failed_allocations(&self) -> u64 {
        self.memory.refused.load(Ordering::Relaxed)
    }

    /// Begins a new measurement of the peak.
    pub fn reset_peak(&self) {
        self.memory.peak.store(self.memory.used.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// Limits the total bytes of arrays; `None` removes the limit.
    pub fn limit_memory(&self, bytes: Option<u64>) {
        self.memory.limit.store(bytes.unwrap_or(0), Ordering::Relaxed);
    }

    /// Bytes that arrays may still take: the smaller of the device's free memory and the rest of the limit.
    pub fn memory_left(&self) -> Result<u64> {
        let free = self.driver.free_memory()?;
        let used = self.memory.used.load(Ordering::Relaxed);
        Ok(match self.memory.limit.load(Ordering::Relaxed) {
            0 => free,
            limit => free.min(limit.saturating_sub(used)),
        })
    }

    pub(crate) fn allocate(&self, bytes: u64, what: &str) -> Result<Buffer> {
        Buffer::new(&self.driver, &self.memory, bytes, what)
    }

    /// # Safety
    /// As for [`Array::lent`](crate::Array::lent).
    #[allow(unsafe_code)]
    pub(crate) unsafe fn lent(&self, memory: crate::Lent, bytes: u64) -> Result<Buffer> {
        // SAFETY: as the caller promises.
        unsafe { Buffer::lent(&self.driver, &self.memory, memory, bytes) }
    }

    /// The kernel `name` of `source` with the macros `defines`. Compiles each form at most once.
    ///
    /// Errors: [`Error::Device`] with the compiler's message if it does not compile; no such kernel.
    pub fn kernel(&self, source: &'static Source, defines: &[Define], name: &str) -> Result<Kernel> {
        let loaded = self.load(source, defines)?;
        let mut kernels = lock(&loaded.kernels);
        if let Some(kernel) = kernels.get(name) {
            return Ok(kernel.clone());
        }
        let parameters = loaded.signatures.get(name).ok_or_else(|| {
            Error::value("kernel", format!("one of {}", list(loaded.signatures.keys())), name)
        })?;
        let kernel = Kernel {
            name: format!("{}::{name}", source.name).into(),
            function: loaded.module.function(name)?,
            parameters: parameters.clone(),
            limits: self.limits.clone(),
            wait: self.wait.then(|| self.driver.clone()),
            program: loaded.program.clone(),
            trace: self.trace.clone(),
            memory: self.memory.clone(),
        };
        kernels.insert(name.to_owned(), kernel.clone());
        Ok(kernel)
    }

    /// As [`Device::compile_ahead`].
    pub(crate) fn compile_ahead(&self, what: &str, job: impl FnOnce(&Device)) {
        let threads = self.host.cpu_side().threads().min(MOST_COMPILERS);
        let mut job = Some(job);
        let mut once = |device: &Device| job.take().into_iter().for_each(|job| job(device));
        self.driver.compile_ahead(what, &mut |compile| {
            null_driver::for_each_loaded(&self.limits, &self.host, threads, &mut once, compile);
        });
    }

    /// The names and macros of the programs that were loaded.
    pub fn loaded(&self) -> Vec<(&'static str, Vec<Define>)> {
        let modules = lock(&self.modules);
        let loaded_kernels = modules.values().flat_map(HashMap::values);
        loaded_kernels.map(|loaded| (loaded.program.name, loaded.program.defines.clone())).collect()
    }

    fn load(&self, source: &'static Source, defines: &[Define]) -> Result<Arc<Loaded>> {
        let address = std::ptr::from_ref(source).addr();
        if let Some(loaded) = lock(&self.modules).get(&address).and_then(|forms| forms.get(defines)) {
            return Ok(loaded.clone());
        }
        let program = Program::new(source, defines);
        let signatures =
            program.signatures()?.into_iter().map(|(name, list)| (name, Arc::new(list))).collect();
        let pass = self.memory.gate.pass_now(&format!("loading {}", program.name))?;
        let module = self.driver.load(&program)?;
        drop(pass);
        let loaded = Arc::new(Loaded {
            program: Arc::new(program),
            module,
            signatures,
            kernels: Mutex::default(),
            tables: Mutex::default(),
        });
        let mut modules = lock(&self.modules);
        Ok(modules.entry(address).or_default().entry(defines.to_vec()).or_insert(loaded).clone())
    }

    /// Writes a `__constant__` or `__device__` variable of a program. Errors: no such variable, or more bytes
    /// than it has.
    #[allow(unsafe_code)]
    pub fn set_variable(
        &self,
        source: &'static Source,
        defines: &[Define],
        name: &str,
        bytes: &[u8],
    ) -> Result<()> {
        let address = self.variable(source, defines, name, bytes.len() as u64)?;
        let _pass = self.memory.gate.pass_now("copying to a program's variable")?;
        // SAFETY: the variable has at least as many bytes.
        unsafe { buffer::upload(&*self.driver, address, bytes, HostCopy::Staged) }
    }

    /// [`Cuda::set_variable`] for a table that never changes: only the first call writes it. Errors: as
    /// [`Cuda::set_variable`].
    pub fn set_table(
        &self,
        source: &'static Source,
        defines: &[Define],
        name: &str,
        bytes: impl FnOnce() -> Vec<u8>,
    ) -> Result<()> {
        let loaded = self.load(source, defines)?;
        // The lock is not held during the copy, because a recording on another thread may wait for it. Two
        // concurrent first calls write the same values.
        let there = lock(&loaded.tables).contains(name);
        if !there {
            self.set_variable(source, defines, name, &bytes())?;
            lock(&loaded.tables).insert(name.to_owned());
        }
        Ok(())
    }

    /// Writes a `__constant__` variable of a program from the device's memory, in the order of the device's
    /// work. The host does not wait. Errors: no such variable, or more bytes than it has.
    #[allow(unsafe_code)]
    pub fn fill_variable<T: crate::Element>(
        &self,
        source: &'static Source,
        defines: &[Define],
        name: &str,
        from: View<'_, T>,
    ) -> Result<()> {
        Home::of(&self.memory).expect("values of a variable", from.home)?;
        let bytes = (from.len() * size_of::<T>()) as u64;
        let address = self.variable(source, defines, name, bytes)?;
        let _pass = self.memory.gate.pass();
        // SAFETY: the variable has at least as many bytes as the view, and no array lies in it.
        unsafe { self.driver.copy(from.address, address, bytes) }
    }

    /// [`Cuda::fill_variable`] from an array that is a kernel's argument. Errors: those, an argument that is
    /// no array.
    #[allow(unsafe_code)]
    pub fn copy_to_variable(
        &self,
        source: &'static Source,
        defines: &[Define],
        name: &str,
        from: &Argument<'_>,
    ) -> Result<()> {
        let (start, bytes) = from.memory("values of a variable", Home::of(&self.memory))?;
        let address = self.variable(source, defines, name, bytes)?;
        let _pass = self.memory.gate.pass();
        // SAFETY: the variable has at least as many bytes as the array, and no array lies in it.
        unsafe { self.driver.copy(start, address, bytes) }
    }

    /// The address of a variable of at least `bytes` bytes.
    fn variable(&self, source: &'static Source, defines: &[Define], name: &str, bytes: u64) -> Result<u64> {
        let (address, size) = self.load(source, defines)?.module.variable(name)?;
        if bytes > size {
            let what = format!("variable {name} of {}", source.name);
            return Err(Error::value(what, format!("at most {size} bytes"), bytes));
        }
        Ok(address)
    }

    /// A complex Fourier transform of lines, planes or volumes by the vendor's library (cuFFT), in place and
    /// without scaling. It serves only as a yardstick for Rayspin's own kernels. Plans are cached and share
    /// one workspace.
    ///
    /// Errors: the plan does not lie inside `values`; the library is missing.
    #[allow(unsafe_code)]
    pub fn fft<T: crate::Element>(&self, plan: &FftPlan, sign: i32, values: ViewMut<'_, T>) -> Result<()> {
        Home::of(&self.memory).expect("Fourier transform", values.home)?;
        let element = if plan.double { 16 } else { 8 };
        let last = plan
            .axes
            .iter()
            .try_fold(1usize, |n, &a| n.checked_mul(a))
            .and_then(|n| n.checked_sub(1)?.checked_mul(plan.stride))
            .and_then(|n| n.checked_add(plan.batch.checked_sub(1)?.checked_mul(plan.distance)?));
        match last {
            Some(last) if size_of::<T>() == element && last < values.len() => {}
            _ => {
                return Err(Error::value(
                    "Fourier transform",
                    format!("a plan inside {} elements of {element} bytes", values.len()),
                    format!("{plan:?} on elements of {} bytes", size_of::<T>()),
                ));
            }
        }
        let _pass = self.memory.gate.pass();
        // SAFETY: the last element that the plan touches was just found to lie inside the view.
        unsafe { self.driver.fft(plan, sign, values.address, values.address) }
    }

    /// The device's time for `work` in seconds, without the host's time.
    pub fn seconds(&self, work: impl FnOnce() -> Result<()>) -> Result<f64> {
        let mark = || {
            let _pass = self.memory.gate.pass_now("timing work")?;
            self.driver.mark()
        };
        let from = mark()?;
        work()?;
        let to = mark()?;
        self.driver.seconds(from.as_ref(), to.as_ref())
    }

    /// The kernels that `work` launches, in order, with their resources. A tuner learns from them about a
    /// variant without reading its source. The list includes launches by other threads during `work`. A
    /// [recording](Cuda::record) appears where it is recorded, not where it is launched.
    pub fn launches(&self, work: impl FnOnce() -> Result<()>) -> Result<Vec<Launched>> {
        self.trace.begin();
        let done = work();
        let launched = self.trace.end();
        done.map(|()| launched)
    }

    /// Waits until all work is done. Errors: a failure since the last wait.
    pub fn synchronize(&self) -> Result<()> {
        self.memory.settle(&*self.driver)?;
        let _pass = self.memory.gate.pass_now("waiting for the GPU")?;
        self.driver.synchronize()
    }
}

/// Maximum bytes of pinned host memory that stage copies from and to pageable memory, for this number of
/// threads.
pub fn staging_bytes(threads: usize) -> u64 {
    machine::staging::bytes(threads)
}

fn list<'a>(names: impl Iterator<Item = &'a String>) -> String {
    let mut names: Vec<_> = names.map(String::as_str).collect();
    names.sort_unstable();
    names.join(", ")
}

impl std::fmt::Debug for Cuda {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Cuda({})", self.properties().name)
    }
}
