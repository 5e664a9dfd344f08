use std::io::Write;

/// Writes the text that stdout still holds, and ends the process with this exit code. No code of a library
/// runs any more.
///
/// At the end of `main` CUDA's library would clean up, although the system frees a process's GPU memory
/// itself. On an H200 a run ended 0.124 s after its last output with this call, and 0.143 s without (medians
/// of six).
#[allow(unsafe_code)]
pub fn leave(code: u8) -> ! {
    // A closed pipe is no failure.
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
