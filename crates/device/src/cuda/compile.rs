//! From CUDA C++ to machine code or to PTX, by NVRTC.

#![allow(unsafe_code)]

use std::ffi::{CString, c_char};

use cudarc::nvrtc::{result as nvrtc, sys};
use rayspin_core::{Error, Result};

use super::Program;
use super::machine::library;

/// What the compiler made of a program.
#[derive(Debug, Clone)]
pub struct Compiled {
    /// Machine code (cubin), or the text of PTX.
    pub image: Vec<u8>,
    /// The compiler's words: warnings, and with `verbose` what each kernel takes.
    pub log: String,
}

/// NVRTC's version, as (13, 0), where it is there.
pub fn compiler_version() -> Option<(u32, u32)> {
    if !present() {
        return None;
    }
    let (mut major, mut minor) = (0, 0);
    // SAFETY: two integers to write to; the library is there.
    unsafe { sys::nvrtcVersion(&mut major, &mut minor) }.result().ok()?;
    Some((u32::try_from(major).ok()?, u32::try_from(minor).ok()?))
}

/// What a program is compiled for to run on a processor of this capability: `sm_80`, `sm_90a`.
pub fn architecture((major, minor): (u32, u32)) -> String {
    // The `a` opens the instructions of one generation only: machine code is made for the processor at hand anyway.
    format!("sm_{major}{minor}{}", if major >= 9 { "a" } else { "" })
}

/// What is wrong with this compiler's machine code, or its PTX, for this driver.
pub(super) fn newer_than_driver(compiler: (u32, u32), driver: (u32, u32), ptx: bool) -> Option<String> {
    // Machine code of one major version runs on every driver of it; PTX asks for a driver that is as new.
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

/// Whether NVRTC is there and `RAYSPIN_PRECOMPILED_ONLY` does not forbid it.
pub(super) fn present() -> bool {
    static LOADED: std::sync::Once = std::sync::Once::new();
    LOADED.call_once(|| {
        // The compiler asks the loader for these by name, which a package's own folder is not part of.
        library::find("nvrtc-builtins");
        library::find("nvrtc");
    });
    // SAFETY: loading NVRTC has no requirements.
    !precompiled_only() && unsafe { sys::is_culib_present() }
}

fn precompiled_only() -> bool {
    std::env::var_os("RAYSPIN_PRECOMPILED_ONLY").is_some_and(|v| v != "0")
}

/// Compiles for one architecture: `sm_90` for machine code, `compute_80` for PTX. With `verbose` the log says what each kernel takes of a multiprocessor.
///
/// Errors: [`Error::Device`] without the compiler or with its words.
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

/// What is missing where there is no compiler.
pub(super) fn missing() -> String {
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
    use super::newer_than_driver as refused;

    #[test]
    fn a_driver_older_than_the_code_is_named() {
        // Within a major version machine code runs on older drivers, PTX does not.
        assert_eq!(refused((13, 1), (13, 0), false), None);
        assert_eq!(refused((12, 8), (13, 0), true), None);
        assert!(refused((13, 1), (13, 0), true).unwrap().contains("PTX of CUDA 13.1 is newer"));
        let words = refused((13, 0), (12, 9), false).unwrap();
        assert!(words.contains("NVRTC 13.0") && words.contains("CUDA 12.9"), "{words}");
    }
}
