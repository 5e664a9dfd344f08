//! The `rayspin` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    rayspin_cli::run(rayspin::mri::methods::Methods::default(), std::env::args_os())
}
