use std::ffi::{CStr, CString, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cudarc::driver::{result as cu, sys};
use rayspin_core::{Error, Result};

use super::{Shared, failed};
use crate::cuda::code::{self, Origin};
use crate::cuda::driver::{Compile, Function, Launch, Module, Properties, Resources};
use crate::cuda::{Precompiled, Program, cache, compile, precompiled};
use crate::private;

/// Dynamic shared memory that a kernel may use without an attribute.
const SHARED_WITHOUT_ASKING: u32 = 48 << 10;

pub(super) struct Loaded {
    module: sys::CUmodule,
    name: &'static str,
    shared: Arc<Shared>,
}

// SAFETY: modules and functions may be used from any thread that makes the context current.
unsafe impl Send for Loaded {}
unsafe impl Sync for Loaded {}

impl Loaded {
    pub(super) fn load(program: &Program, properties: &Properties, shared: Arc<Shared>) -> Result<Self> {
        let origin = code::origin(program, properties)?;
        let make = || origin.code(program, properties, |ptx| link(program, ptx));
        code::cached(cache::folder().as_deref(), &origin.key(program, properties), make, |image| {
            Self::from_image(program, image, &shared)
        })
    }

    fn from_image(program: &Program, image: &[u8], shared: &Arc<Shared>) -> Result<Self> {
        // SAFETY: the image is machine code whose hash was checked, or that the compiler has just made.
        let module = unsafe { cu::module::load_data(image.as_ptr().cast()) }
            .map_err(failed(&format!("loading {}", program.name)))?;
        Ok(Self { module, name: program.name, shared: shared.clone() })
    }
}

/// Compiles what is neither in the cache nor precompiled, as
/// [`Driver::compile_ahead`](crate::cuda::Driver::compile_ahead).
pub(super) fn compile_ahead(properties: &Properties, job: &str, rehearse: &mut dyn FnMut(&Compile<'_>)) {
    let (Ok(compiler), Some(folder)) = (compile::usable(properties.driver), cache::folder()) else { return };
    // Another version of Rayspin, or with other precompiled programs, may have to compile others for the same
    // job.
    let precompiled = precompiled::archive().ok().flatten().map(Precompiled::fingerprint);
    let version = format!("{} {compiler:?} {properties:?} {precompiled:?}", env!("CARGO_PKG_VERSION"));
    let mark = cache::key(&[job, &version]);
    if cache::read(&folder, &mark).is_some() || private::make(&folder).is_err() {
        return;
    }
    let missed = AtomicBool::new(false);
    rehearse(&|program| {
        let Ok(origin @ Origin::Compiler(_)) = code::origin(program, properties) else { return };
        let key = origin.key(program, properties);
        if cache::read(&folder, &key).is_some() {
            return;
        }
        // A program that does not compile is an error of the run that needs it.
        let architecture = compile::architecture(properties.capability);
        let kept = compile::compile(program, &architecture, false)
            .is_ok_and(|compiled| cache::write(&folder, &key, &compiled.image).is_ok());
        if !kept {
            missed.store(true, Ordering::Relaxed);
        }
    });
    if !missed.into_inner() {
        let _ = cache::write(&folder, &mark, &[]);
    }
}

/// Compiles `ptx`, which ends in a zero byte, to machine code for the GPU of the current context. Errors: the
/// assembler's message.
fn link(program: &Program, ptx: &[u8]) -> Result<Vec<u8>> {
    const LOG: usize = 4096;
    let mut log = [0u8; LOG];
    let name = CString::new(program.name).unwrap_or_default();
    let mut options =
        [sys::CUjit_option::CU_JIT_ERROR_LOG_BUFFER, sys::CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES];
    let mut values = [log.as_mut_ptr().cast::<c_void>(), LOG as *mut c_void];
    let mut state = std::ptr::null_mut();
    let (mut image, mut bytes) = (std::ptr::null_mut(), 0usize);
    // SAFETY: options and log outlive the linker's state, which is destroyed below. The PTX is only read, and
    // the image is copied before its owner is destroyed.
    let made = unsafe {
        sys::cuLinkCreate_v2(2, options.as_mut_ptr(), values.as_mut_ptr(), &mut state).result().and_then(
            |()| {
                let made = sys::cuLinkAddData_v2(
                    state,
                    sys::CUjitInputType::CU_JIT_INPUT_PTX,
                    ptx.as_ptr().cast_mut().cast(),
                    ptx.len(),
                    name.as_ptr(),
                    0,
                    std::ptr::null_mut(),
                    std::ptr::null_mut(),
                )
                .result()
                .and_then(|()| sys::cuLinkComplete(state, &mut image, &mut bytes).result())
                .map(|()| std::slice::from_raw_parts(image.cast::<u8>(), bytes).to_vec());
                let _ = sys::cuLinkDestroy(state);
                made
            },
        )
    };
    made.map_err(|error| {
        let text = CStr::from_bytes_until_nul(&log).map(CStr::to_string_lossy).unwrap_or_default();
        Error::Device {
            what: format!("assembling {} ({})", program.name, program.describe()),
            detail: format!("{}\n{}", super::words(error), text.trim_end()),
        }
    })
}

impl Module for Loaded {
    fn function(&self, name: &str) -> Result<Arc<dyn Function>> {
        let _entered = self.shared.enter()?;
        let symbol = CString::new(name).map_err(|_| Error::value("kernel", "a name", name))?;
        // SAFETY: the module is loaded, for good.
        let function = unsafe { cu::module::get_function(self.module, symbol) }
            .map_err(failed(&format!("finding {}::{name}", self.name)))?;
        Ok(Arc::new(Entry::new(function, self.shared.clone())?))
    }

    fn variable(&self, name: &str) -> Result<(u64, u64)> {
        let _entered = self.shared.enter()?;
        let symbol = CString::new(name).map_err(|_| Error::value("variable", "a name", name))?;
        // SAFETY: the module is loaded, for good.
        let (address, bytes) = unsafe { cu::module::get_global(self.module, symbol) }
            .map_err(failed(&format!("finding {} of {}", name, self.name)))?;
        Ok((address, bytes as u64))
    }
}

struct Entry {
    function: sys::CUfunction,
    resources: Resources,
    /// Whether the kernel was compiled for processors that can wait for the previous launch. Only then does
    /// it wait.
    waits: bool,
    shared: Arc<Shared>,
}

// SAFETY: as for modules.
unsafe impl Send for Entry {}
unsafe impl Sync for Entry {}

impl Entry {
    fn new(function: sys::CUfunction, shared: Arc<Shared>) -> Result<Self> {
        use sys::CUfunction_attribute as A;
        let attribute_of = |which| {
            // SAFETY: the function belongs to a loaded module.
            unsafe { cu::function::get_function_attribute(function, which) }
                .map(|value| u32::try_from(value).unwrap_or(0))
                .map_err(failed("reading a kernel's needs"))
        };
        let resources = Resources {
            registers: attribute_of(A::CU_FUNC_ATTRIBUTE_NUM_REGS)?,
            shared: attribute_of(A::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?,
            local: attribute_of(A::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)?,
            threads: attribute_of(A::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
        };
        let most = attribute_of_current(
            sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
        )?;
        if most > SHARED_WITHOUT_ASKING {
            // SAFETY: the function belongs to a loaded module.
            unsafe {
                cu::function::set_function_attribute(
                    function,
                    A::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                    most.saturating_sub(resources.shared) as i32,
                )
            }
            .map_err(failed("asking for shared memory"))?;
        }
        let waits = attribute_of(A::CU_FUNC_ATTRIBUTE_PTX_VERSION)? >= 90;
        Ok(Self { function, resources, waits, shared })
    }
}

fn attribute_of_current(which: sys::CUdevice_attribute) -> Result<u32> {
    let mut device = 0;
    // SAFETY: a number to write to.
    unsafe { sys::cuCtxGetDevice(&mut device) }.result().map_err(failed("finding the GPU"))?;
    super::attribute(device, which)
}

impl Function for Entry {
    fn resources(&self) -> Resources {
        self.resources
    }

    fn occupancy(&self, threads: u32, shared: u32) -> Result<u32> {
        let _entered = self.shared.enter()?;
        let mut blocks = 0;
        // SAFETY: a number to write to; the function belongs to a loaded module.
        unsafe {
            sys::cuOccupancyMaxActiveBlocksPerMultiprocessor(
                &mut blocks,
                self.function,
                threads as i32,
                shared as usize,
            )
        }
        .result()
        .map_err(failed("reading a kernel's occupancy"))?;
        Ok(u32::try_from(blocks).unwrap_or(0))
    }

    fn blocks_meet(&self) -> bool {
        true
    }

    unsafe fn launch(&self, launch: Launch, arguments: &mut [*mut c_void]) -> Result<()> {
        let _entered = self.shared.enter()?;
        let [x, y, z] = launch.blocks;
        let [a, b, c] = launch.threads;
        // SAFETY: as the caller promises.
        unsafe {
            cu::launch_kernel(
                self.function,
                (x, y, z),
                (a, b, c),
                launch.shared,
                self.shared.stream,
                arguments,
            )
        }
        .map_err(failed("launch"))
    }

    unsafe fn launch_early(&self, launch: Launch, arguments: &mut [*mut c_void]) -> Result<()> {
        if !self.waits {
            // SAFETY: as the caller promises.
            return unsafe { self.launch(launch, arguments) };
        }
        let _entered = self.shared.enter()?;
        let [x, y, z] = launch.blocks;
        let [a, b, c] = launch.threads;
        // SAFETY: a union of plain data, for which all bits 0 is a valid value.
        let mut attribute: sys::CUlaunchAttribute = unsafe { std::mem::zeroed() };
        attribute.id = sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
        attribute.value.programmaticStreamSerializationAllowed = 1;
        let config = sys::CUlaunchConfig {
            gridDimX: x,
            gridDimY: y,
            gridDimZ: z,
            blockDimX: a,
            blockDimY: b,
            blockDimZ: c,
            sharedMemBytes: launch.shared,
            hStream: self.shared.stream,
            attrs: &raw mut attribute,
            numAttrs: 1,
        };
        let none = std::ptr::null_mut();
        // SAFETY: as the caller promises; the attribute lives until the call returns.
        unsafe { sys::cuLaunchKernelEx(&raw const config, self.function, arguments.as_mut_ptr(), none) }
            .result()
            .map_err(failed("launch"))
    }
}
