//! Compiles CUDA C++ to machine code or to PTX with NVRTC.

#![allow(unsafe_code)]

use std::ffi::{CString, c_char};

use cudarc::nvrtc::{result as nvrtc, sys};
use rayspin_core::{Error, Result};

use super::Program;
use super::machine::library;

/// The result of a compilation.
#[derive(Debug, Clone)]
pub struct Compiled {
    /// Machine code (cubin) or PTX text.
    pub image: Vec<u8>,
    /// The compiler's log: warnings and, with `verbose`, the resources of each kernel.
    pub log: String,
}

/// The first NVRTC that caches its results (NVRTC User Guide, "Caching").
const CACHES: (u32, u32) = (12, 9);

/// NVRTC's version, for example (13, 0); `None` without NVRTC.
pub fn compiler_version() -> Option<(u32, u32)> {
    if !present() {
        return None;
    }
    let (mut major, mut minor) = (0, 0);
    // SAFETY: two integers to write to; the library is there.
    unsafe { sys::nvrtcVersion(&mut major, &mut minor) }.result().ok()?;
    Some((u32::try_from(major).ok()?, u32::try_from(minor).ok()?))
}

/// Advice for a machine without the compiler; `None` if the compiler is there.
pub fn compiler_missing() -> Option<String> {
    (!present()).then(missing)
}

/// The resources of one kernel, from the assembler's lines in the log of [`compile`] with `verbose`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Usage {
    /// The kernel, by the name of its entry.
    pub kernel: String,
    /// 32-bit registers a thread.
    pub registers: u32,
    /// Bytes of shared memory that the kernel declares itself.
    pub shared: u32,
    /// Bytes of local memory a thread: spilled registers and arrays that are indexed at run time.
    pub stack: u32,
    /// Bytes that a thread stores to local memory because it has too few registers (register spills).
    pub spill_stores: u32,
    /// Bytes of spilled registers that a thread loads back.
    pub spill_loads: u32,
}

/// The kernels in the log of [`compile`] with `verbose`, in the order of the log.
///
/// ```
/// let log = "ptxas info    : Compiling entry function 'scale' for 'sm_90'\n\
///     ptxas info    : Function properties for scale\n    \
///         0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n\
///     ptxas info    : Used 10 registers, used 1 barriers, 2112 bytes smem\n";
/// let usages = rayspin_device::cuda::usages(log);
/// assert_eq!((usages[0].kernel.as_str(), usages[0].registers, usages[0].shared), ("scale", 10, 2112));
/// ```
pub fn usages(log: &str) -> Vec<Usage> {
    let mut usages: Vec<Usage> = Vec::new();
    for line in log.lines() {
        if let Some(start) = line.find("Compiling entry function '") {
            let kernel = line[start..].split('\'').nth(1).unwrap_or_default().to_owned();
            usages.push(Usage { kernel, ..Usage::default() });
        }
        let Some(last) = usages.last_mut() else { continue };
        if let Some(stack) = number_before(line, "bytes stack frame") {
            last.stack = stack;
            last.spill_stores = number_before(line, "bytes spill stores").unwrap_or(u32::MAX);
            last.spill_loads = number_before(line, "bytes spill loads").unwrap_or(u32::MAX);
        }
        if let Some(registers) = number_before(line, "registers") {
            last.registers = registers;
            last.shared = number_before(line, "bytes smem").unwrap_or(0);
        }
    }
    usages
}

/// The number before `unit` in `text`.
fn number_before(text: &str, unit: &str) -> Option<u32> {
    text[..text.find(unit)?].split_whitespace().next_back()?.parse().ok()
}

/// The compiler's name of the architecture for a processor of this capability: `sm_80`, `sm_90a`.
pub fn architecture(capability: (u32, u32)) -> String {
    let (major, minor) = capability;
    // The `a` allows instructions that exist in one generation only. Such machine code serves no later
    // processor.
    format!("sm_{major}{minor}{}", if capability == (9, 0) { "a" } else { "" })
}

/// Why this driver cannot load this compiler's machine code or PTX, if it cannot.
pub(super) fn newer_than_driver(compiler: (u32, u32), driver: (u32, u32), ptx: bool) -> Option<String> {
    // Machine code of a major version runs on every driver of that major version. PTX needs a driver that is
    // at least as new.
    let newer = if ptx { compiler > driver } else { compiler.0 > driver.0 };
    let kind = if ptx { "PTX of CUDA" } else { "NVRTC" };
    newer.then(|| {
        format!(
            "{kind} {}.{} is newer than the driver, which offers CUDA {}.{}: the driver must be updated, or an older {} taken",
            compiler.0,
            compiler.1,
            driver.0,
            driver.1,
            if ptx { "archive" } else { "NVRTC" }
        )
    })
}

/// NVRTC's version if the driver loads what it makes, or else why not.
pub(super) fn usable(driver: (u32, u32)) -> std::result::Result<(u32, u32), String> {
    let version = compiler_version().ok_or_else(missing)?;
    newer_than_driver(version, driver, false).map_or(Ok(version), Err)
}

/// Whether NVRTC is installed and `RAYSPIN_PRECOMPILED_ONLY` does not forbid its use.
fn present() -> bool {
    static LOADED: std::sync::Once = std::sync::Once::new();
    LOADED.call_once(|| {
        // NVRTC loads this library by name, and the loader does not search the folder of a package.
        library::find("nvrtc-builtins");
        library::find("nvrtc");
    });
    // SAFETY: loading NVRTC has no requirements.
    !precompiled_only() && unsafe { sys::is_culib_present() }
}

fn precompiled_only() -> bool {
    std::env::var_os("RAYSPIN_PRECOMPILED_ONLY").is_some_and(|v| v != "0")
}

/// Compiles for one architecture: `sm_90` for machine code, `compute_80` for PTX. With `verbose` the log
/// lists the resources of each kernel.
///
/// Errors: [`Error::Device`] if the compiler is missing, or with the compiler's message.
pub fn compile(program: &Program, architecture: &str, verbose: bool) -> Result<Compiled> {
    let what = || format!("compiling {} for {architecture}", program.name);
    if !present() {
        return Err(Error::Device { what: what(), detail: missing() });
    }
    let failed = |call: &str, error: nvrtc::NvrtcError| Error::Device {
        what: what(),
        detail: format!("{call}: {error}"),
    };
    let text = CString::new(program.text.as_str())
        .map_err(|_| Error::value(what(), "a source without zero bytes", "one"))?;
    let name = CString::new(format!("{}.cu", program.name)).unwrap_or_default();
    let mut options = program.options();
    options.extend([
        format!("--gpu-architecture={architecture}"),
        "--std=c++17".to_owned(),
        "--device-as-default-execution-space".to_owned(),
    ]);
    if verbose {
        options.push("--ptxas-options=-v".to_owned());
        // With a driver installed NVRTC caches compiled programs, but not their log.
        if compiler_version().is_some_and(|version| version >= CACHES) {
            options.push("--no-cache".to_owned());
        }
    }
    let handle = Handle(nvrtc::create_program(&text, Some(&name)).map_err(|e| failed("create", e))?);
    // SAFETY: the handle lives until the end of this function, and so do the text and the name.
    let done = unsafe { nvrtc::compile_program(handle.0, &options) };
    let log = handle.log();
    if let Err(error) = done {
        return Err(Error::Device { what: what(), detail: format!("{error}\n{log}") });
    }
    let ptx = architecture.starts_with("compute");
    let mut size = 0usize;
    // SAFETY: a number to write to.
    unsafe {
        match ptx {
            true => sys::nvrtcGetPTXSize(handle.0, &mut size),
            false => sys::nvrtcGetCUBINSize(handle.0, &mut size),
        }
    }
    .result()
    .map_err(|e| failed("size", e))?;
    let mut image = vec![0u8; size];
    let to = image.as_mut_ptr().cast::<c_char>();
    // SAFETY: there are as many bytes as the compiler said.
    unsafe {
        match ptx {
            true => sys::nvrtcGetPTX(handle.0, to),
            false => sys::nvrtcGetCUBIN(handle.0, to),
        }
    }
    .result()
    .map_err(|e| failed("code", e))?;
    Ok(Compiled { image, log })
}

/// Names the missing library and how to get it.
fn missing() -> String {
    if precompiled_only() {
        return "RAYSPIN_PRECOMPILED_ONLY forbids NVRTC".to_owned();
    }
    "NVRTC (libnvrtc.so) was not found; it comes with the CUDA toolkit or `pip install nvidia-cuda-nvrtc`, whose folder \
     RAYSPIN_CUDA_PATH can name"
        .to_owned()
}

struct Handle(sys::nvrtcProgram);

impl Handle {
    fn log(&self) -> String {
        let mut size = 0usize;
        // SAFETY: a number to write to; then as many bytes as it says.
        if unsafe { sys::nvrtcGetProgramLogSize(self.0, &mut size) }.result().is_err() {
            return String::new();
        }
        let mut bytes = vec![0u8; size];
        if unsafe { sys::nvrtcGetProgramLog(self.0, bytes.as_mut_ptr().cast::<c_char>()) }.result().is_err() {
            return String::new();
        }
        String::from_utf8_lossy(&bytes).trim_end_matches(['\0', '\n']).to_owned()
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: the program was created and is not used again.
        let _ = unsafe { nvrtc::destroy_program(self.0) };
    }
}

#[cfg(test)]
mod tests {
    use super::{Usage, newer_than_driver as refused, usages};

    #[test]
    fn a_driver_older_than_the_code_is_named() {
        // Within a major version machine code runs on older drivers, PTX does not.
        assert_eq!(refused((13, 1), (13, 0), false), None);
        assert_eq!(refused((12, 8), (13, 0), true), None);
        assert!(refused((13, 1), (13, 0), true).unwrap().contains("PTX of CUDA 13.1 is newer"));
        let words = refused((13, 0), (12, 9), false).unwrap();
        assert!(words.contains("NVRTC 13.0") && words.contains("CUDA 12.9"), "{words}");
    }

    #[test]
    fn the_assembler_s_words_are_read() {
        let log = "ptxas info    : 0 bytes gmem, 16 bytes cmem[3]\n\
            ptxas info    : Compiling entry function 'spread' for 'sm_90'\n\
            ptxas info    : Function properties for spread\n    \
                40 bytes stack frame, 24 bytes spill stores, 36 bytes spill loads\n\
            ptxas info    : Used 168 registers, used 1 barriers, 40 bytes cumulative stack size, 2112 bytes smem\n\
            ptxas info    : Compiling entry function 'scale' for 'sm_90'\n\
            ptxas info    : Function properties for scale\n    \
                0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n\
            ptxas info    : Used 10 registers, used 0 barriers\n";
        let wanted = [
            Usage {
                kernel: "spread".to_owned(),
                registers: 168,
                shared: 2112,
                stack: 40,
                spill_stores: 24,
                spill_loads: 36,
            },
            Usage { kernel: "scale".to_owned(), registers: 10, ..Usage::default() },
        ];
        assert_eq!(usages(log), wanted);
    }
}
