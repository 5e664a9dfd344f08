//! The `rayspin-ladder` command: it checks, times, tunes and compares the variants of algorithms.

mod args;
mod ladder;
mod tune;

use std::process::ExitCode;

use rayspin::core::Error;
use rayspin::tune::Ladder;
use rayspin_shell::effect::Given;
use rayspin_shell::{BadInput, Context, Gpu, Program, interrupt};

use args::{Cli, Command};

const PROGRAM: Program = Program { name: "rayspin-ladder", hint };

fn main() -> ExitCode {
    PROGRAM.main(args::command(), run)
}

/// Every ladder: the algorithms of `rayspin-primitives` and of `rayspin-kernels`, by name.
fn ladders() -> Vec<Box<dyn Ladder>> {
    let mut all = rayspin_primitives::ladders();
    all.extend(rayspin::kernels::ladders());
    all.sort_by_key(|ladder| ladder.about().name);
    all
}

/// What to do about an error of a library, in the options of this program.
fn hint(error: &(dyn std::error::Error + 'static)) -> Option<String> {
    let Error::Memory { .. } = error.downcast_ref()? else { return None };
    Some("--size of a ladder sets a smaller problem, which needs less".to_owned())
}

fn run(cli: Cli, given: Given) -> anyhow::Result<()> {
    if let Some(Command::Completions(args)) = &cli.command {
        let mut script = PROGRAM.completions(args.shell, args::command());
        if args.shell == clap_complete::Shell::Fish {
            // The generator leaves out what arguments without a name may be.
            for ladder in ladders() {
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
    let context = Context::new(&cli.common, gpu, given)?;
    match cli.command {
        None => ladder::climbing::run(&context, &cli.run),
        Some(Command::Run(args)) => ladder::climbing::run(&context, &args),
        Some(Command::List(args)) => ladder::list::run(&args),
        Some(Command::Explain(args)) => ladder::explain::run(&args),
        Some(Command::Report(args)) => ladder::report::run(&context, &args),
        Some(Command::Compare(args)) => ladder::compare::run(&args),
        Some(Command::Applications(args)) => ladder::applications::run(&context, &args),
        Some(Command::Try(args)) => ladder::own::run(&context, &args),
        Some(Command::Source(args)) => ladder::own::source(&args),
        Some(Command::Tune(args)) => tune::run(&context, &args),
        Some(Command::Completions(_)) => Ok(()),
    }
}
