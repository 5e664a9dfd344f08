//! The `rayspin` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    #[cfg(feature = "precompiled")]
    rayspin::device::cuda::carry_archive(include_bytes!(env!("RAYSPIN_KERNELS_EMBED")));
    rayspin_cli::run(rayspin::mri::methods::Methods::default(), std::env::args_os())
}
