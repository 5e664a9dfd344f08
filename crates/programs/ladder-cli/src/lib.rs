//! The `rayspin-ladder` command: it checks, times, tunes and compares the variants of algorithms.
//!
//! A program of yours that knows more algorithms, or more variants of these, is a few lines. Every command
//! has them:
//!
//! ```no_run
//! use rayspin::tune::{Algorithm, Ladder, With};
//! use rayspin_primitives::matrix_add::MatrixAdd;
//!
//! # fn my_rows(_: &<MatrixAdd as Algorithm>::Problem) -> Vec<rayspin::tune::Row<MatrixAdd>> { Vec::new() }
//! # fn program() -> std::process::ExitCode {
//! let mut ladders = rayspin_ladder_cli::ladders();
//! ladders.push(Box::new(With::new(MatrixAdd, my_rows)));
//! rayspin_ladder_cli::run(ladders, std::env::args_os())
//! # }
//! ```

mod args;
mod ladder;
mod tune;
mod without;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::CommandFactory as _;
use rayspin::core::Error;
use rayspin::tune::Ladder;
use rayspin_shell::effect::Given;
use rayspin_shell::{BadInput, Context, Gpu, Program, interrupt};

use args::{Cli, Command};
use ladder::Ladders;
use without::Missing;

const PROGRAM: Program = Program { name: "rayspin-ladder", hint };

/// The ladders of this program: the algorithms of `rayspin-primitives`, of `rayspin-planes`, of
/// `rayspin-kernels` and of `rayspin-gallery`, by name.
pub fn ladders() -> Vec<Box<dyn Ladder>> {
    let mut ladders = rayspin_primitives::ladders();
    ladders.extend(rayspin::kernels::ladders());
    ladders.extend(rayspin_gallery::ladders());
    ladders.sort_by_key(|ladder| ladder.about().name);
    ladders
}

/// Runs the command line `args`, the program's name first, with these ladders. Where two have one name, the
/// later replaces the earlier.
pub fn run(ladders: Vec<Box<dyn Ladder>>, args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let (ladders, line) = (Ladders::new(ladders), Vec::from_iter(args));
    let code =
        PROGRAM.main_from(command(&ladders), line.clone(), |cli, given| start(cli, given, &ladders, &line));
    ExitCode::from(code)
}

/// The definition of the command line, with the names of these ladders.
fn command(ladders: &Ladders) -> clap::Command {
    let titled = |ladder: &&dyn Ladder| (ladder.about().name, ladder.about().title);
    let names: Vec<_> = ladders.all().iter().map(titled).collect();
    with_names(Cli::command(), &names).mut_arg("device", |option| {
        option.help(
            "Processor to compute on: auto (the CPU, then the first GPU that works; tune takes the GPU alone where there is \
             one), cpu, cuda, cuda:N, both (not for tune)",
        )
    })
}

/// The same with the names that arguments called NAME may have, its subcommands' too.
fn with_names(command: clap::Command, names: &[(&'static str, &'static str)]) -> clap::Command {
    let mut names = names.to_vec();
    if command.get_name() == "applications" {
        names.extend(ladder::applications::reconstructions());
    }
    if command.get_name() == "exercise" {
        names = ladder::exercise::names();
    }
    let known = names.clone();
    command
        .mut_args(|argument| match argument.get_id().as_str() {
            "names" | "name" => argument.value_parser(args::ladder::Names(known.clone())),
            _ => argument,
        })
        .mut_subcommands(|command| with_names(command, &names))
}

/// What to do about an error of a library, in the options of this program.
fn hint(error: &(dyn std::error::Error + 'static)) -> Option<String> {
    if let Some(missing) = error.downcast_ref::<Missing>() {
        return Some(missing.hint.to_owned());
    }
    let Error::Memory { .. } = error.downcast_ref()? else { return None };
    Some("--size of a ladder sets a smaller problem, which needs less".to_owned())
}

fn start(cli: Cli, given: Given, ladders: &Ladders, line: &[OsString]) -> anyhow::Result<()> {
    if let Some(Command::Completions(args)) = &cli.command {
        let mut script = PROGRAM.completions(args.shell, command(ladders));
        if args.shell == clap_complete::Shell::Fish {
            // The generator leaves out what arguments without a name may be.
            for ladder in ladders.all() {
                let (name, title) = (ladder.about().name, ladder.about().title);
                let line = format!("complete -c rayspin-ladder -f -a {name} -d '{title}'\n");
                script.extend(line.into_bytes());
            }
        }
        return Ok(std::io::Write::write_all(&mut std::io::stdout(), &script)?);
    }
    if let (Some(option), Some(_)) = (given.above(), &cli.command) {
        let message = format!("{option}: expected after the subcommand, found before it");
        let hint = "rayspin-ladder COMMAND --help lists what a subcommand takes";
        return Err(BadInput::new(message).hint(hint).into());
    }
    interrupt::install()?;
    let gpu = if matches!(cli.command, Some(Command::Tune(_))) { Gpu::Now } else { Gpu::Beside };
    let wants_gpu = cli.common.device.is_gpu();
    let context = Context::new(&cli.common, gpu, given).map_err(|error| match error.downcast::<Error>() {
        Ok(error) if wants_gpu => Missing::with(without::GPU)(error).into(),
        Ok(error) => error.into(),
        Err(error) => error,
    })?;
    match cli.command {
        None => ladder::benchmark::run(&context, ladders, &cli.run),
        Some(Command::Run(args)) => ladder::benchmark::run(&context, ladders, &args),
        Some(Command::List(args)) => ladder::list::run(ladders, &args),
        Some(Command::Explain(args)) => ladder::explain::run(ladders, &args),
        Some(Command::Report(args)) => ladder::report::run(&context, ladders, &args),
        Some(Command::Counters(args)) => ladder::counters::run(&context, ladders, &args, line),
        Some(Command::Compare(args)) => ladder::compare::run(&args),
        Some(Command::Applications(args)) => ladder::applications::run(&context, ladders, &args),
        Some(Command::Try(args)) => ladder::own::run(&context, ladders, &args, line),
        Some(Command::Exercise(args)) => ladder::exercise::run(&context, ladders, &args, line),
        Some(Command::Source(args)) => ladder::source::run(&context, ladders, &args),
        Some(Command::Host(args)) => ladder::host::run(&context, ladders, &args),
        Some(Command::Tune(args)) => tune::run(&context, ladders, &args),
        Some(Command::Completions(_)) => Ok(()),
    }
}
