//! The `rayspin` command: a thin layer over the library crates. It parses, reports progress, and turns errors into one
//! line, a hint and an exit code.

mod args;
mod commands;
mod failure;
mod interrupt;
mod progress;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use rayspin::device::Device;

use args::{Cli, Command, Recon, Simulate};

fn main() -> ExitCode {
    let cli = Cli::parse();
    match run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failure::report(&error),
    }
}

/// What every command gets: the processor, and where progress goes.
struct Context {
    device: Device,
    console: progress::Console,
    quiet: bool,
}

impl Context {
    fn cpu(&self) -> &rayspin::device::Cpu {
        match self.device.backend() {
            rayspin::device::Backend::Cpu(cpu) => cpu,
        }
    }

    fn threads(&self) -> usize {
        self.cpu().threads()
    }

    fn simd_name(&self) -> &'static str {
        self.cpu().simd_name()
    }

    /// Runs `work` on this device's threads.
    fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        self.cpu().run(work)
    }
}

fn run(cli: Cli) -> anyhow::Result<()> {
    if let Command::Completions(args) = &cli.command {
        let mut command = Cli::command();
        clap_complete::generate(args.shell, &mut command, "rayspin", &mut std::io::stdout());
        return Ok(());
    }
    interrupt::install()?;
    let device = match cli.common.threads {
        Some(threads) => Device::cpu_with_threads(threads)?,
        None => Device::cpu()?,
    };
    let context =
        Context { device, console: progress::Console::new(cli.common.quiet), quiet: cli.common.quiet };
    match cli.command {
        Command::Demo(args) => commands::demo::run(&context, &args),
        Command::Simulate(Simulate::Mri(args)) => commands::simulate::run(&context, &args),
        Command::Recon(Recon::Mri(args)) => commands::recon::run(&context, &args),
        Command::Metrics(args) => commands::metrics::run(&context, &args),
        Command::Convert(args) => commands::convert::run(&context, &args),
        Command::Info(args) => commands::info::run(&context, &args),
        Command::Completions(_) => Ok(()),
    }
}
