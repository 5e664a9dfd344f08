//! The `rayspin` command: a thin layer over the library crates. It parses, reports progress, and turns errors
//! into one line, a hint and an exit code.
//!
//! A program of yours that knows more methods is one line:
//!
//! ```no_run
//! use rayspin::mri::methods::Methods;
//!
//! # fn program() -> std::process::ExitCode {
//! rayspin_cli::run(Methods::default(), std::env::args_os())
//! # }
//! ```

mod args;
mod commands;
#[cfg(test)]
mod extremes;
pub mod in_memory;
mod methods;
mod options;
#[cfg(test)]
mod texts;

use std::ffi::OsString;
use std::process::ExitCode;

use rayspin::mri::methods::Methods;
use rayspin_shell::effect::{Given, refuse};
use rayspin_shell::stdin::StandardInput;
use rayspin_shell::stdout::StandardOutput;
use rayspin_shell::{Context, Gpu, Program, interrupt};

use args::{Cli, Command, Recon, Simulate};
use commands::files::{RunFiles, together};
use commands::lab::NotInstalled;

const PROGRAM: Program = Program { name: "rayspin", hint };

/// What to do about an error, in the options of this program.
fn hint(error: &(dyn std::error::Error + 'static)) -> Option<String> {
    if error.is::<NotInstalled>() {
        return Some(NotInstalled::HINT.to_owned());
    }
    in_memory::hint(error.downcast_ref()?)
}

/// Runs the command line `args`, the program's name first, with these methods of reconstruction. The methods
/// of the first call hold for the process.
pub fn run(methods: Methods, args: impl IntoIterator<Item = OsString>) -> ExitCode {
    ExitCode::from(code_of(methods, args))
}

/// [`run`], with the exit code as a number: 0, 1 for a failure, 2 for bad input, 130 after an interruption.
pub fn code_of(methods: Methods, args: impl IntoIterator<Item = OsString>) -> u8 {
    methods::take(methods);
    PROGRAM.main_from(args::command(), args, start)
}

fn start(mut cli: Cli, given: Given) -> anyhow::Result<()> {
    if let Command::Completions(args) = &cli.command {
        let script = PROGRAM.completions(args.shell, args::command());
        return Ok(std::io::Write::write_all(&mut std::io::stdout(), &script)?);
    }
    if let Command::Ladder(_) | Command::Tune(_) = &cli.command {
        return commands::lab::start();
    }
    interrupt::install()?;
    let _stdin = StandardInput::of(cli.command.inputs())?;
    if let Command::Rerun(args) = &cli.command {
        return commands::rerun::run(args, &cli.common, &given);
    }
    let stdout = StandardOutput::of(cli.command.outputs())?;
    execute(cli, given)?;
    stdout.send()
}

/// Runs a command that computes.
fn execute(mut cli: Cli, given: Given) -> anyhow::Result<()> {
    let gpu = cli.command.gpu();
    for field in ["device", "gpu_memory"] {
        let harmless = field == "device" && !cli.common.device.is_gpu();
        if let Some(option) = given.name(field).filter(|_| gpu == Gpu::Never && !harmless) {
            let expected =
                "a command that takes a GPU (recon, batch, render, filter, demo, ladder, tune, info)";
            return refuse(option, expected, "another, which computes on the CPU");
        }
    }
    let files = RunFiles::of(&mut cli.command)?;
    let ended = files.clone();
    let context = Context::new(&cli.common, gpu, given)?;
    let at_once = matches!(cli.command, Command::Batch(_) | Command::Demo(_));
    let run = || match cli.command {
        Command::Demo(args) => commands::demo::run(&context, &args),
        Command::Simulate(Simulate::Mri(args)) => commands::simulate::run(&context, &args, files),
        Command::Simulate(Simulate::Ct(args)) => commands::ct::simulate::run(&context, &args, files),
        Command::Recon(Recon::Mri(args)) => commands::recon::run(&context, &args, files),
        Command::Recon(Recon::Ct(args)) => commands::ct::recon::run(&context, &context.device, &args, files),
        Command::Batch(args) => commands::batch::run(&context, &args),
        Command::Render(args) => commands::render::run(&context, &args),
        Command::Filter(args) => commands::filter::run(&context, &args),
        // Its sums run on the threads that they find themselves in.
        Command::Metrics(args) => context.run(|| commands::metrics::run(&context, &args)),
        Command::Convert(args) => commands::convert::run(&context, &args),
        Command::Info(args) => commands::info::run(&context, &args),
        Command::Rerun(_) | Command::Ladder(_) | Command::Tune(_) | Command::Completions(_) => Ok(()),
    };
    // An image of a batch does not wait for the others.
    let result = if at_once { run() } else { together(run) };
    if result.is_err() {
        ended.remove_outdated_record();
    }
    result
}
