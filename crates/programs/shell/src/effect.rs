//! Every option acts, or the run is refused: which options are on the command line, and what each needs to
//! act.
//!
//! A command has one table of its options. Each row names an option by the name of its field and lists what
//! it needs; an option with an empty list always acts. The program's tests hold each table to
//! [`rows_and_options`], which finds options that have no row.

use anyhow::Result;
use clap::ArgMatches;
use clap::parser::ValueSource;
pub use rayspin_run::{Need, Row};

use crate::BadInput;

/// The options on the command line: the name of the field of each, and what people call it.
#[derive(Debug, Default)]
pub struct Given {
    /// Those of the innermost command.
    own: rayspin_run::Given,
    /// What the first is called that belongs to a command around it alone.
    above: Option<String>,
    /// The command line, the program first.
    line: Vec<String>,
}

impl Given {
    /// Those of `command`, or of the subcommand that was named.
    pub fn of(command: &clap::Command, matches: &ArgMatches) -> Self {
        let typed = |id: &str| {
            let there = matches.try_contains_id(id).unwrap_or(false);
            there && matches.value_source(id) == Some(ValueSource::CommandLine)
        };
        let mut typed = command.get_arguments().filter(|option| typed(option.get_id().as_str()));
        if let Some((name, inner)) = matches.subcommand()
            && let Some(subcommand) = command.find_subcommand(name)
        {
            let above = typed.find(|option| !option.is_global_set()).map(name_of);
            let inner = Self::of(subcommand, inner);
            return Self { above: above.or(inner.above), ..inner };
        }
        let own = typed.map(|option| (option.get_id().to_string(), name_of(option))).collect();
        Self { own, above: None, line: Vec::new() }
    }

    /// With the command line that they come from, the program first.
    pub fn with_line(self, line: Vec<String>) -> Self {
        Self { line, ..self }
    }

    /// The command line, the program first.
    pub fn line(&self) -> &[String] {
        &self.line
    }

    /// What the option of this field is called, where it is given.
    pub fn name(&self, field: &str) -> Option<&str> {
        self.own.name(field)
    }

    /// Those of the innermost command.
    pub fn options(&self) -> &rayspin_run::Given {
        &self.own
    }

    /// What an option is called that stands before the subcommand, which does not take it.
    pub fn above(&self) -> Option<&str> {
        self.above.as_deref()
    }
}

/// The option as texts mark it, with its letter: `--regulariser (-W)` between backticks.
fn name_of(option: &clap::Arg) -> String {
    match (option.get_long(), option.get_short()) {
        (Some(long), Some(short)) => format!("`--{long} (-{short})`"),
        (Some(long), None) => format!("`--{long}`"),
        (None, _) => option.get_id().to_string(),
    }
}

/// Refuses the first option given that does not act on the run, as far as the run is known.
pub fn refuse_idle<N: Need>(table: &[Row<N>], given: &Given, run: &N::Facts<'_>) -> Result<()> {
    Ok(rayspin_run::refuse_idle(table, &given.own, run)?)
}

/// Refuses an option by name.
pub fn refuse(option: &str, expected: &str, found: &str) -> Result<()> {
    Err(BadInput::idle(option, expected, found).into())
}

/// `a, b or c`
pub fn any_of(names: &[&str]) -> String {
    match names {
        [] => "none".into(),
        [one] => (*one).into(),
        [some @ .., last] => format!("{} or {last}", some.join(", ")),
    }
}

/// The fields of a table, and the fields of the options of the command `path` below `program`, each in order.
/// Both lists must be equal.
pub fn rows_and_options<N>(
    program: &clap::Command,
    path: &[&str],
    table: &[Row<N>],
) -> (Vec<String>, Vec<String>) {
    let mut program = program.clone();
    program.build();
    let command = path.iter().try_fold(&program, |command, name| command.find_subcommand(name));
    let own = |option: &&clap::Arg| {
        !option.is_global_set() && !["help", "version"].contains(&option.get_id().as_str())
    };
    let options = command.into_iter().flat_map(clap::Command::get_arguments).filter(own);
    let mut options: Vec<String> = options.map(|option| option.get_id().to_string()).collect();
    let mut rows: Vec<String> = table.iter().map(|(field, _)| (*field).to_owned()).collect();
    options.sort();
    rows.sort();
    (rows, options)
}
