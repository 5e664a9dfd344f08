//! Every option acts, or the run is refused: which options are on the command line, and what each needs to act.
//!
//! A command has one table of its options. Each row names an option by the name of its field and lists what it needs; an option with
//! an empty list always acts. A test of each table finds options that have no row.

use std::collections::BTreeMap;

use anyhow::Result;
use clap::ArgMatches;
use clap::parser::ValueSource;

use crate::failure::BadInput;

/// The options on the command line: the name of the field of each, and what people call it.
#[derive(Debug, Default)]
pub(crate) struct Given(BTreeMap<String, String>);

impl Given {
    /// Those of the innermost command, whose definition is below `command`.
    pub(crate) fn of(command: &clap::Command, matches: &ArgMatches) -> Self {
        if let Some((name, inner)) = matches.subcommand()
            && let Some(command) = command.find_subcommand(name)
        {
            return Self::of(command, inner);
        }
        let typed = |id: &str| {
            let there = matches.try_contains_id(id).unwrap_or(false);
            there && matches.value_source(id) == Some(ValueSource::CommandLine)
        };
        let named = command.get_arguments().map(|option| (option.get_id().as_str(), name_of(option)));
        Self(named.filter(|(id, _)| typed(id)).map(|(id, name)| (id.to_owned(), name)).collect())
    }

    /// What the option of this field is called, where it is given.
    pub(crate) fn name(&self, field: &str) -> Option<&str> {
        self.0.get(field).map(String::as_str)
    }
}

/// `--regulariser (-W)`
fn name_of(option: &clap::Arg) -> String {
    match (option.get_long(), option.get_short()) {
        (Some(long), Some(short)) => format!("--{long} (-{short})"),
        (Some(long), None) => format!("--{long}"),
        (None, _) => option.get_id().to_string(),
    }
}

/// Something that options need to act on a run.
pub(crate) trait Need {
    /// What is known of a run.
    type Run<'a>;
    /// Whether the run has it; none while that is not known.
    fn met(&self, run: &Self::Run<'_>) -> Option<bool>;
    /// It, in words.
    fn expected(&self) -> String;
    /// What the run has instead.
    fn found(&self, run: &Self::Run<'_>) -> String;
}

/// An option, by its field, and what it needs.
pub(crate) type Row<N> = (&'static str, &'static [N]);

/// Refuses the first option given that does not act on the run, as far as the run is known.
pub(crate) fn refuse_idle<N: Need>(table: &[Row<N>], given: &Given, run: &N::Run<'_>) -> Result<()> {
    for (field, needs) in table {
        let Some(option) = given.name(field) else { continue };
        if let Some(need) = needs.iter().find(|need| need.met(run) == Some(false)) {
            return refuse(option, &need.expected(), &need.found(run));
        }
    }
    Ok(())
}

/// Refuses an option by name.
pub(crate) fn refuse(option: &str, expected: &str, found: &str) -> Result<()> {
    let message = format!("{option}: expected {expected}, found {found}, with which it does nothing");
    Err(BadInput::new(message).hint(format!("leave {option} out: every option acts, or is refused")).into())
}

/// `a, b or c`
pub(crate) fn any_of(names: &[&str]) -> String {
    match names {
        [] => "none".into(),
        [one] => (*one).into(),
        [some @ .., last] => format!("{} or {last}", some.join(", ")),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::args::Cli;

    /// Fails unless the table has each option of the command `path` once, and no other.
    pub(crate) fn expect_complete<N>(path: &[&str], table: &[Row<N>]) {
        let mut command = Cli::command();
        command.build();
        let found = path.iter().fold(&command, |at, name| at.find_subcommand(name).unwrap());
        let own = |option: &&clap::Arg| {
            !option.is_global_set() && !["help", "version"].contains(&option.get_id().as_str())
        };
        let mut options: Vec<String> =
            found.get_arguments().filter(own).map(|option| option.get_id().to_string()).collect();
        let mut rows: Vec<String> = table.iter().map(|(field, _)| (*field).to_owned()).collect();
        options.sort();
        rows.sort();
        assert_eq!(options, rows, "options and rows of {path:?}");
    }

    #[test]
    fn only_what_was_typed_is_given() {
        let command = Cli::command();
        let line = ["rayspin", "recon", "mri", "a.h5", "-o", "b.npy", "-W", "none", "-q"];
        let matches = command.clone().try_get_matches_from(line).unwrap();
        let given = Given::of(&command, &matches);
        assert_eq!(given.name("regulariser"), Some("--regulariser (-W)"));
        assert_eq!(given.name("outputs"), Some("--output (-o)"));
        // A default is not given.
        assert_eq!((given.name("epsilon"), given.name("density")), (None, None));
    }
}
