//! `cargo xtask kernels`: the kernels compiled beforehand, for machines that have only the driver, and for
//! the first run on the others.

mod common;
mod gpus;
mod kernels;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(about = "What developers of Rayspin run beside cargo")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Compiles kernels into one file that RAYSPIN_KERNELS names at run time, or RAYSPIN_KERNELS_EMBED when
    /// building with the feature `precompiled`: machine code of what common runs load, and PTX of general
    /// kernels. Needs NVRTC, no GPU
    Kernels(Kernels),
}

#[derive(clap::Args)]
struct Kernels {
    /// The file
    #[arg(long, short, default_value = "target/kernels/rayspin.kernels")]
    out: PathBuf,
    /// Points of the longest Fourier transform of general kernels: images of 512 voxels an axis take 1024
    /// where they are doubled. There are kernels for up to 8192
    #[arg(long, default_value_t = 1024)]
    longest: usize,
    /// Only machine code for these capabilities, as 9.0, and text where `ptx` is among them
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Refuse any other version of NVRTC
    #[arg(long, value_name = "VERSION")]
    nvrtc: Option<String>,
    /// Only what a few small runs load
    #[arg(long)]
    few: bool,
    /// Counts the programs of each capability and compiles nothing
    #[arg(long)]
    count: bool,
}

fn main() -> ExitCode {
    let done = match Arguments::parse().command {
        Command::Kernels(arguments) => kernels::run(&arguments),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
