use std::ffi::{CStr, CString, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cudarc::driver::{result as cu, sys};
use rayspin_core::{Error, Result};

use super::{Shared, failed};
use crate::cuda::driver::{Compile, Function, Launch, Module, Properties, Resources};
use crate::cuda::{Program, cache, compile, precompiled};
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
        let architecture = compile::architecture(properties.capability);
        let refused =
            |words: String| Error::Device { what: format!("loading {}", program.name), detail: words };
        let Some(compiler) = compile::compiler_version() else {
            return Self::from_precompiled(program, properties, &architecture, &shared);
        };
        if let Some(words) = compile::newer_than_driver(compiler, properties.driver, false) {
            return Err(refused(words));
        }
        let key = key(program, &architecture, compiler);
        Self::cached(program, &key, &shared, || Ok(compile::compile(program, &architecture, false)?.image))
    }

    /// Loads precompiled PTX. The driver compiles it to machine code.
    fn from_precompiled(
        program: &Program,
        properties: &Properties,
        architecture: &str,
        shared: &Arc<Shared>,
    ) -> Result<Self> {
        let refused =
            |words: String| Error::Device { what: format!("loading {}", program.name), detail: words };
        let archive = precompiled::archive()?.ok_or_else(|| {
            let none = match precompiled::ignored() {
                Some(why) => format!("precompiled kernels are ignored: {why}"),
                None => "no precompiled kernels are there either".to_owned(),
            };
            let missing = compile::missing();
            refused(format!("{missing}; {none}; RAYSPIN_PTX may name a file of `cargo xtask ptx`"))
        })?;
        if let Some(words) = compile::newer_than_driver(archive.compiler(), properties.driver, true) {
            return Err(refused(format!("{words} ({})", archive.origin())));
        }
        let ptx = archive.find(program, properties.capability)?;
        let key = precompiled::cache_key(program, &ptx, architecture, properties.driver);
        Self::cached(program, &key, shared, || link(program, &ptx))
    }

    /// Loads the machine code cached under `key`. Otherwise makes it with `make` and caches it.
    fn cached(
        program: &Program,
        key: &str,
        shared: &Arc<Shared>,
        make: impl FnOnce() -> Result<Vec<u8>>,
    ) -> Result<Self> {
        let folder = cache::folder();
        if let Some(image) = folder.as_deref().and_then(|folder| cache::read(folder, key))
            && let Ok(module) = Self::from_image(program, &image, shared)
        {
            return Ok(module);
        }
        let image = make()?;
        let module = Self::from_image(program, &image, shared)?;
        if let Some(folder) = folder {
            // Without the cache the next start compiles again. Nothing else depends on it.
            let _ = cache::write(&folder, key, &image);
        }
        Ok(module)
    }

    fn from_image(program: &Program, image: &[u8], shared: &Arc<Shared>) -> Result<Self> {
        // SAFETY: the image is machine code whose hash was checked, or that the compiler has just made.
        let module = unsafe { cu::module::load_data(image.as_ptr().cast()) }
            .map_err(failed(&format!("loading {}", program.name)))?;
        Ok(Self { module, name: program.name, shared: shared.clone() })
    }
}

/// The cache's file name for the machine code of a program.
fn key(program: &Program, architecture: &str, compiler: (u32, u32)) -> String {
    let (options, version) = (program.options().join(" "), format!("{:?}", Some(compiler)));
    cache::key(&[&program.text, &options, architecture, &version])
}

/// Compiles what is not in the cache, as [`Driver::compile_ahead`](crate::cuda::Driver::compile_ahead).
pub(super) fn compile_ahead(properties: &Properties, job: &str, rehearse: &mut dyn FnMut(&Compile<'_>)) {
    let (Some(compiler), Some(folder)) = (compile::compiler_version(), cache::folder()) else { return };
    if compile::newer_than_driver(compiler, properties.driver, false).is_some() {
        return;
    }
    let architecture = compile::architecture(properties.capability);
    // Another version of Rayspin may load other programs for the same job.
    let mark =
        cache::key(&[job, env!("CARGO_PKG_VERSION"), &architecture, &format!("{compiler:?} {properties:?}")]);
    if cache::read(&folder, &mark).is_some() || private::make(&folder).is_err() {
        return;
    }
    let missed = AtomicBool::new(false);
    rehearse(&|program| {
        let key = key(program, &architecture, compiler);
        if cache::read(&folder, &key).is_some() {
            return;
        }
        // A program that does not compile is an error of the run that needs it.
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

/// Compiles `ptx`, which ends in a zero byte, to machine code for the GPU of the current context. Errors: the assembler's
/// message.
fn link(program: &Program, ptx: &[u8]) -> Result<Vec<u8>> {
    const LOG: usize = 4096;
    let mut log = [0u8; LOG];
    let name = CString::new(program.name).unwrap_or_default();
    let mut options =
        [sys::CUjit_option::CU_JIT_ERROR_LOG_BUFFER, sys::CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES];
    let mut values = [log.as_mut_ptr().cast::<c_void>(), LOG as *mut c_void];
    let mut state = std::ptr::null_mut();
    let (mut image, mut bytes) = (std::ptr::null_mut(), 0usize);
    // SAFETY: options and log outlive the linker's state, which is destroyed below. The PTX is only read, and the image is
    // copied before its owner is destroyed.
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
    /// Whether the kernel was compiled for processors that can wait for the previous launch. Only then does it wait.
    waits: bool,
    shared: Arc<Shared>,
}

// SAFETY: as for modules.
unsafe impl Send for Entry {}
unsafe impl Sync for Entry {}

impl Entry {
    fn new(function: sys::CUfunction, shared: Arc<Shared>) -> Result<Self> {
        use sys::CUfunction_attribute as A;
        let of = |which| {
            // SAFETY: the function belongs to a loaded module.
            unsafe { cu::function::get_function_attribute(function, which) }
                .map(|value| u32::try_from(value).unwrap_or(0))
                .map_err(failed("reading a kernel's needs"))
        };
        let resources = Resources {
            registers: of(A::CU_FUNC_ATTRIBUTE_NUM_REGS)?,
            shared: of(A::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?,
            local: of(A::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)?,
            threads: of(A::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
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
        let waits = of(A::CU_FUNC_ATTRIBUTE_PTX_VERSION)? >= 90;
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
