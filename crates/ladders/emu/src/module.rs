//! A compiled program: its kernels, its variables, and the distribution of blocks to threads.

#![allow(unsafe_code)]

mod counted;

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use libloading::Library;
use rayon::prelude::*;
use rayspin_core::{Error, Result};
use rayspin_device::cuda::{Function, Launch, Module, Program, Resources};
use rayspin_device::private;

use crate::checking::{Checker, Whose};
use crate::compile::Compiler;
use crate::counting::{Counts, record};
use crate::recording::NamedVariable;
use crate::{How, Inner, Work, lock};
use counted::Counted;

const MESSAGE: usize = 600;
/// Maximum bytes of shared memory that a kernel may declare, as on a real processor.
const STATIC_SHARED: u32 = 48 << 10;

/// As in `fibres.h`.
#[repr(C)]
struct RawKernel {
    name: *const c_char,
    call: Option<unsafe extern "C" fn(*mut *mut c_void)>,
    whole: Option<unsafe extern "C" fn(*mut *mut c_void)>,
    arguments: u32,
    sizes: *const u32,
    threads: u32,
    shared_begin: *const u32,
    shared_end: *const u32,
    loops: u32,
    why: *const c_char,
}

#[repr(C)]
struct RawVariable {
    name: *const c_char,
    address: *mut c_void,
    bytes: u64,
}

#[repr(C)]
struct RawLaunch {
    blocks: [u32; 3],
    threads: [u32; 3],
    shared: u32,
    turned: u32,
    until: u64,
}

enum Workspace {}

#[repr(C)]
struct RawProgram {
    kernels: *const RawKernel,
    kernel_count: u32,
    variables: *const RawVariable,
    variable_count: u32,
    make: unsafe extern "C" fn() -> *mut Workspace,
    destroy: unsafe extern "C" fn(*mut Workspace),
    run: unsafe extern "C" fn(
        *mut Workspace,
        unsafe extern "C" fn(*mut *mut c_void),
        Option<unsafe extern "C" fn(*mut *mut c_void)>,
        *mut *mut c_void,
        *const RawLaunch,
        *mut u64,
        *mut c_int,
        *mut c_char,
    ) -> c_int,
}

/// Stacks and shared memory of one thread of the host, between launches.
struct Idle {
    pointer: *mut Workspace,
    /// The library whose code made it and frees it.
    library: Arc<Code>,
}

// SAFETY: a workspace is used by one thread at a time.
unsafe impl Send for Idle {}

impl Drop for Idle {
    fn drop(&mut self) {
        // SAFETY: the workspace was made by this library and is not in use.
        unsafe { (self.library.program().destroy)(self.pointer) };
    }
}

#[derive(Default)]
pub(crate) struct Workspaces {
    idle: Mutex<Vec<Idle>>,
}

impl Workspaces {
    fn take(&self, code: &Arc<Code>) -> Result<Idle> {
        if let Some(idle) = lock(&self.idle).pop() {
            return Ok(idle);
        }
        // SAFETY: no requirements.
        let pointer = unsafe { (code.program().make)() };
        if pointer.is_null() {
            return Err(Error::Memory {
                what: "emulator's workspace".to_owned(),
                needed: 1 << 20,
                available: 0,
            });
        }
        Ok(Idle { pointer, library: code.clone() })
    }

    fn give(&self, idle: Idle) {
        lock(&self.idle).push(idle);
    }
}

struct Code {
    program: *const RawProgram,
    _library: Library,
}

// SAFETY: the table is constant.
unsafe impl Send for Code {}
unsafe impl Sync for Code {}

impl Code {
    fn open(path: &std::path::Path, what: &str) -> Result<Self> {
        let failed =
            |e: libloading::Error| Error::Device { what: format!("loading {what}"), detail: e.to_string() };
        // SAFETY: the emulator's own compiler made it, and no other user could change it since; nothing runs
        // at loading.
        unsafe {
            let library = Library::new(path).map_err(failed)?;
            let program = *library.get::<*const RawProgram>(b"emu_program\0").map_err(failed)?;
            Ok(Self { program, _library: library })
        }
    }

    /// A library whose variables no other emulator shares. One that `tells` has variables of its runtime.
    fn open_alone(path: &std::path::Path, what: &str, tells: bool) -> Result<Self> {
        if !tells {
            let code = Self::open(path, what)?;
            if code.variables().is_empty() {
                return Ok(code);
            }
        }
        // Loading a library twice gives the same library.
        let copy = private::temporary(path.parent().unwrap_or(path), "so");
        let copied = std::fs::copy(path, &copy);
        let opened = copied
            .map_err(|e| Error::Device { what: format!("copying {what}"), detail: e.to_string() })
            .and_then(|_| Self::open(&copy, what));
        let _ = std::fs::remove_file(&copy);
        opened
    }

    fn program(&self) -> &RawProgram {
        // SAFETY: the table lives as long as the library.
        unsafe { &*self.program }
    }

    fn kernels(&self) -> &[RawKernel] {
        // SAFETY: as above, with as many rows.
        unsafe { std::slice::from_raw_parts(self.program().kernels, self.program().kernel_count as usize) }
    }

    fn variables(&self) -> &[RawVariable] {
        // SAFETY: as above, with as many rows.
        unsafe {
            std::slice::from_raw_parts(self.program().variables, self.program().variable_count as usize)
        }
    }
}

fn named(name: *const c_char, wanted: &str) -> bool {
    // SAFETY: names are literals of the library.
    unsafe { CStr::from_ptr(name) }.to_bytes() == wanted.as_bytes()
}

fn how(kernel: &RawKernel) -> How {
    if kernel.whole.is_some() {
        return How::Loops(kernel.loops as usize);
    }
    // SAFETY: a literal of the library.
    How::Written(unsafe { CStr::from_ptr(kernel.why) }.to_string_lossy().into_owned())
}

type RawCall = unsafe extern "C" fn(*mut *mut c_void);

/// A kernel's entry in a compiled library.
struct NativeKernel<'a> {
    code: &'a Arc<Code>,
    call: RawCall,
}

impl RawVariable {
    fn named(&self) -> (String, u64, u64) {
        // SAFETY: names are literals of the library.
        let name = unsafe { CStr::from_ptr(self.name) }.to_string_lossy().into_owned();
        (name, self.address as u64, self.bytes)
    }
}

pub(crate) struct Loaded {
    code: Arc<Code>,
    counted: Option<Arc<Counted>>,
    checked: Option<Arc<Checker>>,
    inner: Arc<Inner>,
    name: &'static str,
    program: Arc<Program>,
}

impl Loaded {
    pub(crate) fn load(program: &Program, compiler: &Compiler, inner: Arc<Inner>) -> Result<Self> {
        let path = compiler.library(program)?;
        let code = Code::open_alone(&path, program.name, inner.counts.is_some() || inner.faults.is_some())?;
        let checked = match inner.faults {
            Some(_) => Some(Arc::new(Checker::open(&path, &code._library, program)?)),
            None => None,
        };
        let counted = match inner.counts {
            Some(_) => Some(Arc::new(Counted::open(&path, &code, program, compiler)?)),
            None => None,
        };
        let kept = Arc::new(program.clone());
        for variable in code.variables() {
            let (name, address, bytes) = variable.named();
            let program = kept.clone();
            lock(&inner.variables).push(NamedVariable { program, name, address, bytes });
        }
        Ok(Self { code: Arc::new(code), counted, checked, inner, name: program.name, program: kept })
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        for variable in self.code.variables() {
            lock(&self.inner.variables).retain(|own| own.address != variable.address as u64);
        }
    }
}

impl Module for Loaded {
    fn function(&self, name: &str) -> Result<Arc<dyn Function>> {
        let missing = || Error::value("kernel", format!("one of {}", self.name), name);
        let kernel = self.code.kernels().iter().find(|k| named(k.name, name)).ok_or_else(missing)?;
        // SAFETY: both ends are of one section, or both null.
        let shared = unsafe {
            let count = (kernel.shared_end as usize - kernel.shared_begin as usize) / size_of::<u32>();
            if count == 0 { 0 } else { std::slice::from_raw_parts(kernel.shared_begin, count).iter().sum() }
        };
        if shared > STATIC_SHARED {
            return Err(Error::Device {
                what: format!("loading {}::{name}", self.name),
                detail: format!("{shared} bytes of shared memory of its own, at most {STATIC_SHARED}"),
            });
        }
        // SAFETY: the table has as many sizes.
        let sizes = unsafe { std::slice::from_raw_parts(kernel.sizes, kernel.arguments as usize) };
        Ok(Arc::new(Entry {
            kernel: Arc::new(Callable {
                name: format!("{}::{name}", self.name),
                program: self.program.clone(),
                code: self.code.clone(),
                counted: self.counted.clone(),
                checked: self.checked.clone(),
                declared: shared,
                call: kernel.call.ok_or_else(missing)?,
                whole: kernel.whole,
                how: how(kernel),
                sizes: sizes.iter().map(|&s| s as usize).collect(),
            }),
            resources: Resources { registers: 0, shared, local: 0, threads: kernel.threads.min(1024) },
            inner: self.inner.clone(),
        }))
    }

    fn variable(&self, name: &str) -> Result<(u64, u64)> {
        self.code
            .variables()
            .iter()
            .find(|v| named(v.name, name))
            .map(|v| (v.address as u64, v.bytes))
            .ok_or_else(|| Error::value("variable", format!("one of {}", self.name), name))
    }
}

/// A kernel that can be called, and the sizes of its arguments.
pub(crate) struct Callable {
    pub(crate) name: String,
    pub(crate) program: Arc<Program>,
    code: Arc<Code>,
    counted: Option<Arc<Counted>>,
    checked: Option<Arc<Checker>>,
    /// Bytes of shared memory that a block declares.
    declared: u32,
    call: unsafe extern "C" fn(*mut *mut c_void),
    /// All threads of a block as a loop.
    whole: Option<unsafe extern "C" fn(*mut *mut c_void)>,
    how: How,
    sizes: Vec<usize>,
}

impl Callable {
    /// The bytes of each argument of a launch.
    pub(crate) fn bytes_of(&self, arguments: &[Vec<u128>]) -> Vec<Vec<u8>> {
        let bytes = |(words, &size): (&Vec<u128>, &usize)| {
            words.iter().flat_map(|word| word.to_ne_bytes()).take(size).collect()
        };
        arguments.iter().zip(&self.sizes).map(bytes).collect()
    }

    /// Copies each argument to its own place, which is aligned for every type.
    ///
    /// # Safety
    /// `arguments` point to values of the kernel's types.
    unsafe fn copy(&self, arguments: &[*mut c_void]) -> Result<Vec<Vec<u128>>> {
        if arguments.len() != self.sizes.len() {
            return Err(Error::value(
                format!("kernel {}", self.name),
                format!("{} arguments", self.sizes.len()),
                arguments.len(),
            ));
        }
        Ok(arguments
            .iter()
            .zip(&self.sizes)
            .map(|(&from, &bytes)| {
                let mut copy = vec![0u128; bytes.div_ceil(size_of::<u128>()).max(1)];
                // SAFETY: as the caller promises; the copy has as many bytes.
                unsafe { std::ptr::copy_nonoverlapping(from.cast::<u8>(), copy.as_mut_ptr().cast(), bytes) };
                copy
            })
            .collect())
    }

    /// Runs all blocks, on several threads.
    ///
    /// # Safety
    /// The arguments are of the kernel's types and name living memory.
    pub(crate) unsafe fn run(&self, inner: &Inner, launch: Launch, arguments: &[Vec<u128>]) -> Result<()> {
        let failed = |detail: String| Error::Device { what: format!("kernel {}", self.name), detail };
        let blocks = launch.blocks.iter().map(|&b| u64::from(b)).product::<u64>();
        let threads = launch.threads.iter().map(|&t| u64::from(t)).product::<u64>();
        if !(1..=1024).contains(&threads) || launch.shared > inner.properties.shared_per_block {
            return Err(failed(format!("{launch:?} is more than a block may be")));
        }
        lock(&inner.ran).insert(self.name.clone(), self.how.clone());
        if let (Some(counted), Some(counts)) = (&self.counted, &inner.counts) {
            // SAFETY: as the caller promises.
            let Some(launch_counts) = (unsafe { self.run_counted(inner, counted, launch, arguments)? })
            else {
                return Ok(());
            };
            let mut counts = lock(counts);
            let same = |other: &&mut Counts| {
                other.program == launch_counts.program
                    && other.kernel == launch_counts.kernel
                    && other.launch == launch_counts.launch
            };
            match counts.iter_mut().find(same) {
                Some(other) => other.add(launch_counts),
                None => counts.push(launch_counts),
            }
            return Ok(());
        }
        if let (Some(checker), Some(faults)) = (&self.checked, &inner.faults) {
            let mut heap = lock(&inner.heap);
            // Kernels may read pinned memory of the host.
            let pinned = lock(&inner.copies).pinned_ranges();
            let variables = self.variables();
            let ranges = heap.ranges(&pinned, &variables);
            let kernel = self.name.rsplit("::").next().unwrap_or_default();
            let pieces: Vec<_> = heap.pieces().into_iter().chain(pinned).collect();
            let arrays = record::arrays(
                checker.program(),
                kernel,
                &pieces,
                &variables,
                &lock(&inner.textures),
                arguments,
            );
            drop(heap);
            let whose = Whose { kernel, launch };
            let kernel = NativeKernel { code: &self.code, call: self.call };
            // SAFETY: as the caller promises.
            let run = || unsafe { self.part(inner, kernel, launch, arguments, 0..blocks) };
            return checker.check(&whose, &ranges, &arrays, faults, run);
        }
        let raw = RawLaunch {
            blocks: launch.blocks,
            threads: launch.threads,
            shared: launch.shared,
            turned: u32::from(inner.turned.load(Ordering::Relaxed)),
            until: blocks,
        };
        let (mut next, mut stop): (u64, c_int) = (0, 0);
        let shared = Shared { next: &raw mut next, stop: &raw mut stop, raw: &raw };
        let one = |_: usize| -> Result<()> {
            let shared = &shared;
            let workspace = inner.workspaces.take(&self.code)?;
            let mut pointers: Vec<*mut c_void> =
                arguments.iter().map(|a| a.as_ptr().cast_mut().cast()).collect();
            let mut message = [0u8; MESSAGE];
            // SAFETY: the workspace is this thread's; counter and flag are only used atomically; the rest as
            // the caller promises.
            let bad = unsafe {
                (self.code.program().run)(
                    workspace.pointer,
                    self.call,
                    self.whole,
                    pointers.as_mut_ptr(),
                    shared.raw,
                    shared.next,
                    shared.stop,
                    message.as_mut_ptr().cast(),
                )
            };
            inner.workspaces.give(workspace);
            if bad == 0 {
                return Ok(());
            }
            let text = CStr::from_bytes_until_nul(&message).map(|c| c.to_string_lossy().into_owned());
            Err(failed(text.unwrap_or_default()))
        };
        let workers = (inner.pool.current_num_threads() as u64).min(blocks) as usize;
        if workers <= 1 {
            one(0)
        } else {
            let results: Vec<_> =
                inner.pool.install(|| (0..workers).into_par_iter().with_max_len(1).map(one).collect());
            results.into_iter().collect()
        }
    }
}

impl Callable {
    /// The program's variables: name, address, bytes.
    fn variables(&self) -> Vec<(String, u64, u64)> {
        self.code.variables().iter().map(RawVariable::named).collect()
    }

    /// Runs some blocks in order on this thread.
    ///
    /// # Safety
    /// As for `run`; `native` is this kernel.
    unsafe fn part(
        &self,
        inner: &Inner,
        native: NativeKernel<'_>,
        launch: Launch,
        arguments: &[Vec<u128>],
        blocks: std::ops::Range<u64>,
    ) -> Result<()> {
        let raw = RawLaunch {
            blocks: launch.blocks,
            threads: launch.threads,
            shared: launch.shared,
            turned: u32::from(inner.turned.load(Ordering::Relaxed)),
            until: blocks.end,
        };
        let (mut next, mut stop): (u64, c_int) = (blocks.start, 0);
        let mut pointers: Vec<*mut c_void> = arguments.iter().map(|a| a.as_ptr().cast_mut().cast()).collect();
        let mut message = [0u8; MESSAGE];
        let workspace = inner.workspaces.take(native.code)?;
        // SAFETY: the workspace is this thread's; the rest as the caller promises.
        let bad = unsafe {
            (native.code.program().run)(
                workspace.pointer,
                native.call,
                None,
                pointers.as_mut_ptr(),
                &raw const raw,
                &raw mut next,
                &raw mut stop,
                message.as_mut_ptr().cast(),
            )
        };
        inner.workspaces.give(workspace);
        if bad == 0 {
            return Ok(());
        }
        let text = CStr::from_bytes_until_nul(&message).map(|c| c.to_string_lossy().into_owned());
        Err(Error::Device { what: format!("kernel {}", self.name), detail: text.unwrap_or_default() })
    }
}

struct Shared {
    next: *mut u64,
    stop: *mut c_int,
    raw: *const RawLaunch,
}

// SAFETY: counter and flag are used atomically, the launch is only read.
unsafe impl Sync for Shared {}

struct Entry {
    kernel: Arc<Callable>,
    resources: Resources,
    inner: Arc<Inner>,
}

impl Function for Entry {
    fn resources(&self) -> Resources {
        self.resources
    }

    fn occupancy(&self, threads: u32, shared: u32) -> Result<u32> {
        let p = &self.inner.properties;
        let by_threads = p.threads_per_multiprocessor / threads.max(1).next_multiple_of(32);
        // The system keeps 1 KiB of each block.
        let bytes = u64::from(shared) + u64::from(self.resources.shared) + 1024;
        let by_shared = (u64::from(p.shared_per_multiprocessor) / bytes) as u32;
        let fits = threads <= self.resources.threads && bytes <= u64::from(p.shared_per_block) + 1024;
        Ok(if fits { by_threads.min(by_shared).min(32) } else { 0 })
    }

    unsafe fn launch(&self, launch: Launch, arguments: &mut [*mut c_void]) -> Result<()> {
        // SAFETY: as the caller promises.
        let arguments = unsafe { self.kernel.copy(arguments)? };
        self.inner.ask(Work::Launch { kernel: self.kernel.clone(), launch, arguments })
    }
}
