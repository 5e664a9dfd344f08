//! The `rayspin` program.

fn main() {
    #[cfg(feature = "precompiled")]
    rayspin::device::cuda::carry_archive(include_bytes!(env!("RAYSPIN_KERNELS_EMBED")));
    let code = rayspin_cli::code_of(rayspin::mri::methods::Methods::default(), std::env::args_os());
    // Outputs are on disk, and temporary files and locks are gone.
    rayspin::device::leave(code)
}
