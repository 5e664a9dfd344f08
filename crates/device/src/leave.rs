use std::io::Write;

/// Ends the process with this exit code at once, once all threads' files are closed: what stdout holds is written, and nothing else runs.
///
/// The end of `main` runs what libraries have registered. CUDA then takes its contexts apart, which the system does anyway and in less
/// time.
#[allow(unsafe_code)]
pub fn leave(code: u8) -> ! {
    // A reader that is gone is no failure.
    let _ = std::io::stdout().flush();
    #[cfg(unix)]
    {
        unsafe extern "C" {
            fn _exit(code: std::ffi::c_int) -> !;
        }
        // SAFETY: _exit(2) takes any number and may be called at any time.
        unsafe { _exit(code.into()) }
    }
    #[cfg(not(unix))]
    std::process::exit(code.into())
}
