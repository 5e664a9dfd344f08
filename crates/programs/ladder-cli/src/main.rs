//! The `rayspin-ladder` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    rayspin_ladder_cli::run(rayspin_ladder_cli::ladders(), std::env::args_os())
}
