//! The options of runs on the command line, from their tables.

use std::path::PathBuf;

use anyhow::Result;
use clap::builder::PossibleValue;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, ValueHint, value_parser};
use rayspin::core::{Ranges, as_options};
use rayspin::job::rows::{Kind, OptionRow, Setting, Settings, Table};
use rayspin_shell::args::{numbers, ranges, size};
use rayspin_shell::effect::Given;

/// The options of a run that its table has.
pub(crate) struct OptionArgs<T> {
    settings: Settings,
    table: std::marker::PhantomData<T>,
}

impl<T> std::fmt::Debug for OptionArgs<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.settings.fmt(f)
    }
}

impl<T> Clone for OptionArgs<T> {
    fn clone(&self) -> Self {
        Self { settings: self.settings.clone(), table: self.table }
    }
}

impl<T: Table> OptionArgs<T> {
    /// Whether an option was given.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.settings.has(name)
    }

    /// Puts the typed values into a request. Errors: a value that is no number; as [`Settings::put`].
    pub(crate) fn put(&self, given: &Given, request: &mut T::Request) -> Result<()> {
        let mut settings = self.settings.clone();
        for row in T::rows() {
            let Some(Setting::Text(text)) = settings.get(row.name) else { continue };
            let read = match row.kind {
                Kind::Counts(lengths) => Setting::Counts(numbers(&row.option(), text, lengths)?),
                Kind::Numbers(lengths) => Setting::Numbers(numbers(&row.option(), text, lengths)?),
                _ => continue,
            };
            settings.insert(row.name, read);
        }
        Ok(settings.put(T::rows(), given.options(), request)?)
    }

    /// The files and folders that options name, with what the options take.
    pub(crate) fn files(&mut self) -> impl Iterator<Item = (Kind, &mut PathBuf)> {
        let place = |name: &str| T::rows().iter().position(|row| row.name == name);
        let mut files: Vec<_> = self
            .settings
            .iter_mut()
            .filter_map(|(name, setting)| match setting {
                Setting::File(path) => place(name).map(|index| (index, path)),
                _ => None,
            })
            .collect();
        files.sort_by_key(|(index, _)| *index);
        files.into_iter().map(|(index, path)| (T::rows()[index].kind, path))
    }

    /// The file that an option names.
    pub(crate) fn file(&self, name: &str) -> Option<&PathBuf> {
        match self.settings.get(name) {
            Some(Setting::File(path)) => Some(path),
            _ => None,
        }
    }
}

/// An option of the command line.
fn argument<R, N>(row: &OptionRow<R, N>) -> Arg {
    let (example, units) = match row.kind {
        Kind::Bytes => (" (2G, 512M)", "K, M and G are binary units. "),
        _ => ("", ""),
    };
    let (help, details) = (format!("{}{example}", row.help), format!("{units}{}", row.details));
    let arg = Arg::new(row.name).long(row.name.replace('_', "-")).help_heading(row.group);
    let arg = if details.is_empty() { arg } else { arg.long_help(format!("{help}\n\n{details}")) };
    let arg = arg.help(help);
    let arg = if row.beside.is_empty() { arg } else { arg.requires(row.beside) };
    let arg = arg.conflicts_with_all(row.without.iter().copied());
    match row.kind {
        Kind::Flag | Kind::Program => return arg.action(ArgAction::SetTrue),
        Kind::Number | Kind::Angle => arg.value_parser(value_parser!(f64)).allow_negative_numbers(true),
        Kind::Count => arg.value_parser(value_parser!(u64)),
        Kind::CountOr(most) => {
            arg.value_parser(value_parser!(u64)).num_args(0..=1).default_missing_value(most.to_string())
        }
        Kind::Bytes => arg.value_parser(size),
        Kind::Names(names) => {
            let values =
                names.iter().map(|one| PossibleValue::new(one.name).help(as_options(one.help).into_owned()));
            arg.value_parser(values.collect::<Vec<_>>())
        }
        Kind::NumberOr(word) => arg.allow_negative_numbers(true).value_parser(move |text: &str| {
            let number = || text.parse().map(Setting::Number);
            let expected = |_| format!("expected a number or {word}");
            if text == word { Ok(Setting::Name(word)) } else { number().map_err(expected) }
        }),
        Kind::NumberOrReal => arg.value_hint(ValueHint::FilePath).value_parser(|text: &str| {
            let file = |_| Setting::File(text.into());
            Ok::<_, String>(text.parse().map_or_else(file, Setting::Number))
        }),
        Kind::DoubleOr(prefix) => {
            arg.value_hint(ValueHint::FilePath).value_parser(move |text: &str| -> Result<_, String> {
                let is_word = text.starts_with(prefix);
                Ok(if is_word { Setting::Text(text.to_owned()) } else { Setting::File(text.into()) })
            })
        }
        Kind::Counts(_) | Kind::Numbers(_) => arg.allow_hyphen_values(true),
        Kind::Ranges => arg.value_parser(ranges),
        Kind::Text => arg,
        Kind::Folder => arg.value_parser(value_parser!(PathBuf)).value_hint(ValueHint::DirPath),
        Kind::File | Kind::Picture | Kind::Complex | Kind::Double | Kind::Real => {
            arg.value_parser(value_parser!(PathBuf)).value_hint(ValueHint::FilePath)
        }
    }
    .value_name(row.value)
}

/// What was typed for an option; none where nothing was.
fn typed<R, N>(row: &OptionRow<R, N>, matches: &ArgMatches) -> Option<Setting> {
    let name = row.name;
    if matches.value_source(name) != Some(ValueSource::CommandLine) {
        return None;
    }
    match row.kind {
        Kind::Program => None,
        Kind::Flag => Some(Setting::On),
        Kind::Number | Kind::Angle => matches.get_one::<f64>(name).copied().map(Setting::Number),
        Kind::Count | Kind::CountOr(_) | Kind::Bytes => {
            matches.get_one::<u64>(name).copied().map(Setting::Count)
        }
        Kind::Names(names) => {
            let typed = matches.get_one::<String>(name)?;
            names.iter().find(|one| one.name == typed).map(|one| Setting::Name(one.name))
        }
        Kind::NumberOr(_) | Kind::NumberOrReal | Kind::DoubleOr(_) => {
            matches.get_one::<Setting>(name).cloned()
        }
        Kind::Ranges => matches.get_one::<Ranges>(name).cloned().map(Setting::Ranges),
        Kind::Counts(_) | Kind::Numbers(_) | Kind::Text => {
            matches.get_one::<String>(name).cloned().map(Setting::Text)
        }
        Kind::File | Kind::Folder | Kind::Picture | Kind::Complex | Kind::Double | Kind::Real => {
            matches.get_one::<PathBuf>(name).cloned().map(Setting::File)
        }
    }
}

/// The rows that become options; others are the program's own.
fn own<T: Table>() -> impl Iterator<Item = &'static OptionRow<T::Request, T::Requirement>> {
    T::rows().iter().filter(|row| row.kind != Kind::Program)
}

impl<T: Table> Args for OptionArgs<T> {
    fn augment_args(command: Command) -> Command {
        command.args(own::<T>().map(argument))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<T: Table> FromArgMatches for OptionArgs<T> {
    fn from_arg_matches(matches: &ArgMatches) -> std::result::Result<Self, clap::Error> {
        let mut args = Self { settings: Settings::default(), table: std::marker::PhantomData };
        args.update_from_arg_matches(matches)?;
        Ok(args)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> std::result::Result<(), clap::Error> {
        for row in own::<T>() {
            if let Some(setting) = typed(row, matches) {
                self.settings.insert(row.name, setting);
            }
        }
        Ok(())
    }
}
