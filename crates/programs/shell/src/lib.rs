//! What the command-line programs of Rayspin share: the way from the command line to a [`Context`], progress
//! on the terminal, interruption, and the way from an error to a message and an exit code. Each program keeps
//! its own commands and options.

/// A line on stderr, with parameters as options, as [`rayspin_core::printable_lines`] has it. Unlike
/// `eprintln!` it does not end the process when nobody reads it (`rayspin … 2>&1 | head`).
#[macro_export]
macro_rules! say {
    ($($text:tt)*) => { $crate::say_line(&format!($($text)*)) };
}

/// What [`say!`] does.
pub fn say_line(text: &str) {
    use std::io::Write as _;
    let text = rayspin_core::as_options(text);
    let _ = writeln!(std::io::stderr(), "{}", rayspin_core::printable_lines(&stdin::named(&text)));
}

pub mod args;
mod context;
pub mod effect;
mod failure;
pub mod files;
pub mod interrupt;
mod parse;
mod progress;
pub mod stdin;
pub mod stdout;

pub use context::{Context, Gpu};
pub use failure::{is_interruption, line_of};
pub use progress::Console;
pub use rayspin_run::{BadInput, Undecided};

use std::process::ExitCode;

use clap::FromArgMatches;

#[global_allocator]
static ALLOCATOR: rayspin_device::cpu::Allocator = rayspin_device::cpu::Allocator;

/// A program: its name, and what it can say about an error beyond what all programs say.
#[derive(Debug, Clone, Copy)]
pub struct Program {
    /// The name of the executable.
    pub name: &'static str,
    /// What to do about an error, in the options of this program.
    pub hint: fn(&(dyn std::error::Error + 'static)) -> Option<String>,
}

impl Program {
    /// Parses the command line as `command` defines it, and runs what it says. An error becomes one line, a
    /// hint and an exit code.
    pub fn main<C: FromArgMatches>(
        &self,
        command: clap::Command,
        run: impl FnOnce(C, effect::Given) -> anyhow::Result<()>,
    ) -> ExitCode {
        ExitCode::from(self.main_from(command, std::env::args_os(), run))
    }

    /// [`Self::main`] with a command line of the caller's, the program's name first. Returns the exit code as
    /// a number.
    pub fn main_from<C: FromArgMatches>(
        &self,
        mut command: clap::Command,
        args: impl IntoIterator<Item = std::ffi::OsString>,
        run: impl FnOnce(C, effect::Given) -> anyhow::Result<()>,
    ) -> u8 {
        rayspin_device::cpu::return_freed_memory();
        let args: Vec<std::ffi::OsString> = args.into_iter().collect();
        let words = parse::command_of(&command, &args);
        let line = args.iter().map(|argument| argument.to_string_lossy().into_owned()).collect();
        let (given, parsed) = match parsed(&mut command, args) {
            Ok((given, parsed)) => (given.with_line(line), parsed),
            Err(error) => return self.unparsed(&error, &words),
        };
        let done = run(parsed, given);
        interrupt::yield_to_handler();
        match done {
            Ok(()) => 0,
            Err(error) => failure::report(self, &error),
        }
    }

    /// Parses a command line without running it, the program's name first.
    ///
    /// Errors: what the parser refuses; help, which it ends with.
    pub fn parse<C: FromArgMatches>(
        &self,
        mut command: clap::Command,
        args: impl IntoIterator<Item = std::ffi::OsString>,
    ) -> Result<(C, effect::Given), BadInput> {
        let args: Vec<std::ffi::OsString> = args.into_iter().collect();
        let words = parse::command_of(&command, &args);
        match parsed(&mut command, args) {
            Ok((given, parsed)) => Ok((parsed, given)),
            Err(error) => Err(parse::refusal(&error, &words)),
        }
    }

    /// Prints help where this is what the parser ended with, and else what it refused.
    fn unparsed(&self, error: &clap::Error, command: &str) -> u8 {
        use clap::error::ErrorKind;
        match error.kind() {
            ErrorKind::DisplayHelp
            | ErrorKind::DisplayVersion
            | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
                // It is no failure if the reader has closed the pipe.
                let _ = error.print();
                if error.use_stderr() { 2 } else { 0 }
            }
            _ => failure::report(self, &parse::refusal(error, command).into()),
        }
    }

    /// The completion script of this program for a shell.
    pub fn completions(&self, shell: clap_complete::Shell, mut command: clap::Command) -> Vec<u8> {
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut command, self.name, &mut script);
        script
    }
}

fn parsed<C: FromArgMatches>(
    command: &mut clap::Command,
    args: Vec<std::ffi::OsString>,
) -> Result<(effect::Given, C), clap::Error> {
    let matches = command.try_get_matches_from_mut(args)?;
    let parsed = C::from_arg_matches(&matches).map_err(|error| error.format(command))?;
    Ok((effect::Given::of(command, &matches), parsed))
}
