//! From CUDA C++ to machine code, by NVRTC.

#![allow(unsafe_code)]

use std::ffi::{CString, c_char};

use cudarc::nvrtc::{result as nvrtc, sys};
use rayspin_core::{Error, Result};

use super::Program;
use super::machine::library;

/// What the compiler made of a program.
#[derive(Debug, Clone)]
pub struct Compiled {
    /// Machine code (cubin).
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

pub(super) fn present() -> bool {
    static LOADED: std::sync::Once = std::sync::Once::new();
    LOADED.call_once(|| {
        // The compiler asks the loader for these by name, which a package's own folder is not part of.
        library::find("nvrtc-builtins");
        library::find("nvrtc");
    });
    // SAFETY: loading NVRTC has no requirements.
    unsafe { sys::is_culib_present() }
}

/// Compiles for one architecture, as `sm_90`. With `verbose` the log says what each kernel takes of a multiprocessor.
///
/// Errors: [`Error::Device`] without the compiler or with its words.
pub fn compile(program: &Program, architecture: &str, verbose: bool) -> Result<Compiled> {
    let what = || format!("compiling {} for {architecture}", program.name);
    if !present() {
        return Err(Error::Device {
            what: what(),
            detail: "NVRTC (libnvrtc.so) was not found; it comes with the CUDA toolkit or `pip install \
                     nvidia-cuda-nvrtc`, whose folder RAYSPIN_CUDA_PATH can name"
                .to_owned(),
        });
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
    let mut size = 0usize;
    // SAFETY: a number to write to; then as many bytes as it says.
    unsafe { sys::nvrtcGetCUBINSize(handle.0, &mut size) }.result().map_err(|e| failed("size", e))?;
    let mut image = vec![0u8; size];
    unsafe { sys::nvrtcGetCUBIN(handle.0, image.as_mut_ptr().cast::<c_char>()) }
        .result()
        .map_err(|e| failed("machine code", e))?;
    Ok(Compiled { image, log })
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
