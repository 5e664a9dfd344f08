//! The emulator: a [`Driver`](rayspin_device::cuda::Driver) that runs CUDA C++ kernels on the CPU. Tests
//! without a GPU run kernels and the host code around them with it. The crate's README lists the supported
//! features, the limits, and the sources with a twin.

mod barriers;
pub mod checking;
mod compile;
mod copy_streams;
pub mod counting;
mod coverage;
mod driver;
mod faulty;
mod fft;
mod launches;
mod loops;
mod memory;
mod module;
mod programs;
mod recording;
mod shown;
mod split;
mod texture;
mod translate;
mod words;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rayspin_core::{Error, Result};
use rayspin_device::Device;
use rayspin_device::cuda::{FftPlan, Launch, NullDriver, Program, Properties, TextureLayout};

pub use coverage::Coverage;

use compile::Compiler;
pub use faulty::{Fault, Faulty};
use memory::Heap;
pub use programs::{Ended, Uncompiled, WholeProgram};
pub use recording::{RecordedMemory, RecordedTexture, RecordedVariable, RunRecord, Step};
pub use shown::KernelLoops;

/// Maximum bytes of shared memory of a block, as on an H100.
const SHARED_PER_BLOCK: u32 = 232_448;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// `curand_kernel.h` of this crate, for kernels of others that include the one of the CUDA toolkit: states,
/// uniform, normal, log-normal and Poisson numbers. Sequences differ from cuRAND's.
pub const CURAND_KERNEL: &str = include_str!("../include/curand_kernel.h");

/// All devices to test on: the CPU, the emulated GPU, and the GPUs of this machine.
///
/// `RAYSPIN_TEST_DEVICES` (`cpu`, `emulated`, `cuda`, separated by commas) chooses among them.
pub fn devices() -> Result<Vec<Device>> {
    let chosen = std::env::var("RAYSPIN_TEST_DEVICES").ok();
    let wanted = |kind: &str| chosen.as_deref().is_none_or(|list| list.split(',').any(|word| word == kind));
    let host = Device::cpu_with_threads(2)?;
    let mut devices = Vec::new();
    if wanted("cpu") {
        devices.push(host.clone());
    }
    if wanted("emulated") {
        devices.push(Device::with_driver(Arc::new(Emulator::new()?), host.clone()));
    }
    if wanted("cuda") {
        for ordinal in 0..rayspin_device::cuda::count().unwrap_or(0) {
            devices.push(Device::cuda(ordinal, host.clone())?);
        }
    }
    Ok(devices)
}

/// A CUDA processor made of the host's cores. It has the limits of an H100, except for its memory.
#[derive(Debug)]
pub struct Emulator {
    compiler: Compiler,
    /// The precompiled programs of a machine without a compiler.
    programs: Option<Vec<Program>>,
    inner: Arc<Inner>,
}

struct Inner {
    properties: Properties,
    pool: rayon::ThreadPool,
    heap: Mutex<Heap>,
    workspaces: module::Workspaces,
    ran: Mutex<BTreeMap<String, How>>,
    /// The loaded programs' variables.
    variables: Mutex<Vec<recording::NamedVariable>>,
    /// Addresses of the textures' memory.
    textures: Mutex<Vec<u64>>,
    /// Textures by their handles: what they look like, and where their texels lie.
    surfaces: Mutex<BTreeMap<u64, (TextureLayout, u64)>>,
    /// Where steps are recorded.
    recorder: Mutex<Option<recording::Recorder>>,
    /// What launches did, where they are counted.
    counts: Option<Mutex<Vec<counting::Counts>>>,
    /// What is wrong with launches, where they are checked.
    faults: Option<Mutex<Vec<checking::Fault>>>,
    /// Set where blocks that are not counted do not run.
    only_counted: AtomicBool,
    /// Set while launches are not counted.
    uncounted: AtomicBool,
    /// Set where threads of a block begin in the other order.
    turned: AtomicBool,
    /// Held while work is done, so that work is done in order.
    order: Mutex<Order>,
    /// Copies that nothing has waited for.
    copies: Mutex<copy_streams::PendingCopies>,
}

#[derive(Default)]
struct Order {
    recording: Option<Vec<Work>>,
    /// The first failure that no call has returned yet.
    failure: Option<Error>,
}

/// How a kernel's threads run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum How {
    /// As written, each thread a fibre; with the reason.
    Written(String),
    /// As this number of loops over the threads of a block, with a barrier between each two.
    Loops(usize),
}

enum Work {
    Launch { kernel: Arc<module::Callable>, launch: Launch, arguments: Vec<Vec<u128>> },
    Upload { to: u64, bytes: Vec<u8> },
    Copy { from: u64, to: u64, bytes: u64 },
    Set { address: u64, byte: u8, bytes: u64 },
    Fft { plan: FftPlan, sign: i32, from: u64, to: u64 },
}

impl Emulator {
    /// An emulator with 8 GiB of memory, on all cores. Errors: no C++ compiler.
    pub fn new() -> Result<Self> {
        Self::with_memory(8 << 30)
    }

    /// An emulator with `bytes` bytes of memory. Errors: as [`Emulator::new`].
    pub fn with_memory(bytes: u64) -> Result<Self> {
        Self::with_properties(properties(bytes))
    }

    /// An emulator whose blocks may have `bytes` bytes of shared memory (99 KiB on desktop GPUs). Errors: as
    /// [`Emulator::new`].
    pub fn with_shared(bytes: u32) -> Result<Self> {
        Self::with_properties(Properties { shared_per_block: bytes, ..properties(8 << 30) })
    }

    fn with_properties(properties: Properties) -> Result<Self> {
        let pool = pool(rayspin_device::cpu::available_threads())?;
        Ok(Self {
            compiler: Compiler::find()?,
            programs: None,
            inner: Arc::new(Inner {
                heap: Mutex::new(Heap::new(properties.memory, false)),
                properties,
                pool,
                workspaces: module::Workspaces::default(),
                ran: Mutex::default(),
                variables: Mutex::default(),
                textures: Mutex::default(),
                surfaces: Mutex::default(),
                recorder: Mutex::default(),
                counts: None,
                faults: None,
                only_counted: AtomicBool::new(false),
                uncounted: AtomicBool::new(false),
                turned: AtomicBool::new(false),
                order: Mutex::default(),
                copies: Mutex::default(),
            }),
        })
    }

    /// The same emulator for measurements, on `threads` threads and with compiled libraries cached in the
    /// folder `cache`. With `loops` a kernel runs as loops over the threads of a block, split at its
    /// barriers, which the compiler can vectorise (MCUDA). [`How`] gives the reason for kernels that do not.
    /// Errors: the thread pool cannot be started.
    pub fn measuring(self, threads: usize, cache: Option<PathBuf>, loops: bool) -> Result<Self> {
        let mut compiler = self.compiler;
        if let Some(cache) = cache {
            compiler = compiler.keeping(cache);
        }
        if loops {
            compiler = compiler.with_loops();
        }
        let inner = self.inner.afresh(pool(threads)?);
        Ok(Self { compiler, programs: self.programs, inner: Arc::new(inner) })
    }

    /// Whether the other half of the blocks begins with its last thread: results that follow from the order
    /// of threads then differ.
    pub fn turn(&self, turned: bool) {
        self.inner.turned.store(turned, std::sync::atomic::Ordering::Relaxed);
    }

    /// The kernels that ran since the last call, and how they ran.
    pub fn take_ran(&self) -> BTreeMap<String, How> {
        std::mem::take(&mut lock(&self.inner.ran))
    }

    /// How the kernels of a program run if loops are allowed. Does not compile the program. Errors: the
    /// preprocessor's message.
    pub fn ways(&self, program: &Program) -> Result<BTreeMap<String, How>> {
        let (_, ways) = self.compiler.ways(program)?;
        Ok(ways.splits.keys().map(|name| (name.clone(), ways.of(name))).collect())
    }

    /// The same emulator as a machine without a compiler that has only these programs.
    pub fn without_compiler(self, programs: Vec<Program>) -> Self {
        Self { programs: Some(programs), ..self }
    }

    /// A device on a new emulator, with the CPU beside it. Errors: as [`Emulator::new`].
    pub fn device() -> Result<Device> {
        Ok(Device::with_driver(Arc::new(Self::new()?), Device::cpu()?))
    }
}

fn pool(threads: usize) -> Result<rayon::ThreadPool> {
    rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .thread_name(|i| format!("emulator-{i}"))
        .build()
        .map_err(|e| Error::Device { what: "emulator".to_owned(), detail: e.to_string() })
}

/// The properties of an H100 with `memory` bytes of memory.
fn properties(memory: u64) -> Properties {
    Properties {
        name: "Emulated GPU".to_owned(),
        capability: (9, 0),
        multiprocessors: 132,
        memory,
        cache: 50 << 20,
        threads_per_block: 1024,
        threads_per_multiprocessor: 2048,
        shared_per_block: SHARED_PER_BLOCK,
        shared_per_multiprocessor: 228 << 10,
        registers_per_multiprocessor: 65_536,
        driver: (13, 0),
    }
}

/// A GPU that runs nothing, of this compute capability. Its blocks may have `shared_per_block` bytes of
/// shared memory. `compiles` says whether it has a compiler.
pub fn null_driver(capability: (u32, u32), shared_per_block: u32, compiles: bool) -> NullDriver {
    let properties = Properties {
        name: "GPU that runs nothing".to_owned(),
        capability,
        shared_per_block,
        shared_per_multiprocessor: shared_per_block + 1024,
        ..properties(1 << 40)
    };
    NullDriver::new(properties, compiles)
}

impl Inner {
    /// The same processor with nothing in its memory.
    fn afresh(&self, pool: rayon::ThreadPool) -> Self {
        Self {
            heap: Mutex::new(Heap::new(self.properties.memory, false)),
            properties: self.properties.clone(),
            pool,
            workspaces: module::Workspaces::default(),
            ran: Mutex::default(),
            variables: Mutex::default(),
            textures: Mutex::default(),
            surfaces: Mutex::default(),
            recorder: Mutex::default(),
            counts: None,
            faults: None,
            only_counted: AtomicBool::new(false),
            uncounted: AtomicBool::new(false),
            turned: AtomicBool::new(false),
            order: Mutex::default(),
            copies: Mutex::default(),
        }
    }

    /// Does the work, or records it.
    fn ask(&self, work: Work) -> Result<()> {
        let mut order = lock(&self.order);
        match &mut order.recording {
            Some(list) => {
                list.push(work);
                Ok(())
            }
            None => {
                lock(&self.copies).catch_up();
                self.perform(&work)
            }
        }
    }

    fn perform(&self, work: &Work) -> Result<()> {
        self.note_work(work);
        match work {
            Work::Launch { kernel, launch, arguments } => {
                // SAFETY: the caller of the launch promised correct arguments. The emulator cannot survive a
                // write beyond an array's guard zones.
                #[allow(unsafe_code)]
                let done = unsafe { kernel.run(self, *launch, arguments) };
                // Damage is reported first, because it may be the reason why the kernel failed.
                let damage = lock(&self.heap).damage();
                damage.map_or(done, |detail| {
                    Err(Error::Device { what: format!("kernel {}", kernel.name), detail })
                })
            }
            Work::Upload { to, bytes } => self.write(*to, bytes),
            Work::Copy { from, to, bytes } => {
                self.expect(*from, *bytes)?;
                self.expect(*to, *bytes)?;
                if from.abs_diff(*to) < *bytes {
                    return Err(Error::value(
                        "copy on the emulated GPU",
                        "ranges apart",
                        "ranges that overlap",
                    ));
                }
                // SAFETY: both ranges were just found to be allocated, and they are apart.
                #[allow(unsafe_code)]
                unsafe {
                    std::ptr::copy_nonoverlapping(
                        *from as usize as *const u8,
                        *to as usize as *mut u8,
                        *bytes as usize,
                    );
                }
                lock(&self.heap).copied(*from, *to, *bytes);
                Ok(())
            }
            Work::Set { address, byte, bytes } => {
                self.expect(*address, *bytes)?;
                // SAFETY: the range was just found to be allocated.
                #[allow(unsafe_code)]
                unsafe {
                    (*address as usize as *mut u8).write_bytes(*byte, *bytes as usize);
                }
                self.written(*address, *bytes);
                Ok(())
            }
            Work::Fft { plan, sign, from, to } => {
                let bytes = fft::extent(plan)
                    .and_then(|n| (n as u64).checked_mul(if plan.double { 16 } else { 8 }))
                    .ok_or_else(|| Error::value("Fourier transform", "a plan", format!("{plan:?}")))?;
                self.expect(*from, bytes)?;
                self.expect(*to, bytes)?;
                // SAFETY: both ranges were just found to be allocated.
                #[allow(unsafe_code)]
                unsafe {
                    fft::run(plan, *sign, *from, *to)?;
                }
                self.written(*to, bytes);
                Ok(())
            }
        }
    }

    /// Notes that a range holds values.
    fn written(&self, at: u64, bytes: u64) {
        lock(&self.heap).written(at, bytes);
    }

    /// Errors: the range is not allocated.
    fn expect(&self, address: u64, bytes: u64) -> Result<()> {
        let inside = |variable: &recording::NamedVariable| {
            address >= variable.address
                && address.checked_add(bytes).is_some_and(|end| end <= variable.address + variable.bytes)
        };
        if lock(&self.heap).holds(address, bytes) || lock(&self.variables).iter().any(inside) {
            return Ok(());
        }
        Err(Error::value(
            "emulated GPU memory",
            "an allocated range",
            format!("{bytes} bytes at {address:#x}"),
        ))
    }

    fn write(&self, to: u64, bytes: &[u8]) -> Result<()> {
        self.expect(to, bytes.len() as u64)?;
        // SAFETY: the range was just found to be allocated; host slices are elsewhere.
        #[allow(unsafe_code)]
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), to as usize as *mut u8, bytes.len());
        }
        self.written(to, bytes.len() as u64);
        Ok(())
    }

    /// Checks that no recording is under way, and does all uploads queued so far. Errors: work is being
    /// recorded.
    fn not_recording(&self, what: &str) -> Result<MutexGuard<'_, Order>> {
        let order = lock(&self.order);
        if order.recording.is_some() {
            return Err(Error::Device {
                what: what.to_owned(),
                detail: "not possible while work is recorded".to_owned(),
            });
        }
        lock(&self.copies).catch_up();
        Ok(order)
    }
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.properties.name)
    }
}
