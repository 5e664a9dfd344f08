//! The methods that this program knows, and the options that their parameters become.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Result;
use clap::builder::PossibleValue;
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches, ValueHint, value_parser};
use rayspin::core::as_options;
use rayspin::ct::corrections::{Correction, Corrections, GROUP, with};
use rayspin::job::asked::{Asked, Kit, Typed, image_of};
pub(crate) use rayspin::job::ct::{Ct, corrections};
pub(crate) use rayspin::job::mri::{Mri, in_a_field, iterates, methods, over_a_basis, take};
use rayspin::mri::methods::{Kind, MapUse, Method, Param, Value};
use rayspin::run::Described as _;
use rayspin_shell::effect::{Given, refuse};

/// Whether a method solves for an image for each of several sets of maps.
pub(crate) fn over_sets(method: &dyn Method) -> bool {
    method.uses().maps == MapUse::Sets
}

/// A number, or `auto`.
fn number_or_auto(text: &str) -> std::result::Result<Typed, String> {
    match text {
        "auto" => Ok(Typed::Searched),
        _ => text
            .parse()
            .map(|number| Typed::Value(Value::Number(number)))
            .map_err(|_| "expected a number, or auto to search for one".into()),
    }
}

/// What was typed for a parameter; none where nothing was.
fn typed_of(param: &Param, matches: &ArgMatches) -> Option<Typed> {
    let name = param.name;
    if matches.value_source(name) != Some(ValueSource::CommandLine) {
        return None;
    }
    match param.kind {
        Kind::Number if param.searched => matches.get_one::<Typed>(name).cloned(),
        Kind::Number => matches.get_one::<f64>(name).map(|v| Typed::Value(Value::Number(*v))),
        Kind::Count => matches.get_one::<u64>(name).map(|v| Typed::Value(Value::Count(*v))),
        Kind::Image => matches.get_one::<PathBuf>(name).cloned().map(Typed::Image),
        Kind::Choice(choices) => matches.get_one::<String>(name).and_then(|typed| {
            let chosen = choices.iter().find(|choice| choice.name == typed)?;
            Some(Typed::Value(Value::Choice(chosen.name)))
        }),
    }
}

/// `--method`, and an option for every parameter of any method.
#[derive(Debug, Clone)]
pub(crate) struct MethodArgs<K>(Asked<K>);

impl<K: Kit> MethodArgs<K> {
    /// What was typed.
    pub(crate) fn asked(&self) -> Asked<K> {
        self.0.clone()
    }
}

impl<K> std::ops::Deref for MethodArgs<K> {
    type Target = Asked<K>;

    fn deref(&self) -> &Asked<K> {
        &self.0
    }
}

impl<K> std::ops::DerefMut for MethodArgs<K> {
    fn deref_mut(&mut self) -> &mut Asked<K> {
        &mut self.0
    }
}

/// `1e-3; wavelet 3e-3, tv 2e-3`: the default that most methods have, and the others.
fn defaults(param: &Param, defaults_of: &[(&'static str, Value)]) -> String {
    let text = |value: &Value| match value {
        Value::Nothing => param.absent.to_owned(),
        value => value.to_string(),
    };
    let texts: Vec<String> = defaults_of.iter().map(|(_, value)| text(value)).collect();
    let count = |wanted: &String| texts.iter().filter(|text| *text == wanted).count();
    let Some(most) = texts.iter().rev().max_by_key(|text| count(text)) else { return String::new() };
    let others = defaults_of.iter().zip(&texts).filter(|(_, text)| *text != most);
    let others: Vec<String> = others.map(|((name, _), text)| format!("{name} {text}")).collect();
    if others.is_empty() { most.clone() } else { format!("{most}; {}", others.join(", ")) }
}

fn argument(param: &Param, defaults_of: &[(&'static str, Value)]) -> Arg {
    let names: Vec<_> = defaults_of.iter().map(|(name, _)| *name).collect();
    let only = format!(" ({})", names.join(", "));
    let auto = if param.searched { "; auto searches for the one that predicts samples held out" } else { "" };
    let mut default = defaults(param, defaults_of);
    if !param.rule.is_empty() {
        default = format!("by {}, else {default}", param.rule);
    }
    // The short help has the first clause.
    let brief = param.help.split([',', ';', '(']).next().unwrap_or(param.help).trim_end();
    let mut arg = Arg::new(param.name)
        .long(param.name.replace('_', "-"))
        .help(format!("{brief} [default: {default}]"))
        .long_help(format!("{}{auto}{only} [default: {default}]", param.help))
        .help_heading(param.group);
    if let Some(letter) = param.short {
        arg = arg.short(letter);
    }
    match param.kind {
        Kind::Number if param.searched => arg
            .value_name(format!("{}|auto", param.name.to_uppercase()))
            .value_parser(number_or_auto)
            .allow_negative_numbers(true),
        Kind::Number => arg
            .value_name(param.name.to_uppercase())
            .value_parser(value_parser!(f64))
            .allow_negative_numbers(true),
        Kind::Count => arg.value_name("N").value_parser(value_parser!(u64)),
        Kind::Choice(choices) => {
            let values = choices
                .iter()
                .map(|choice| PossibleValue::new(choice.name).help(as_options(choice.help).into_owned()));
            arg.value_name(param.name.to_uppercase()).value_parser(values.collect::<Vec<_>>())
        }
        Kind::Image => {
            arg.value_name("IMAGE").value_parser(value_parser!(PathBuf)).value_hint(ValueHint::FilePath)
        }
    }
}

impl<K: Kit> Args for MethodArgs<K> {
    fn augment_args(command: Command) -> Command {
        let names = K::methods().iter().map(|method| {
            let about = method.about();
            PossibleValue::new(about.name).help(as_options(about.help).into_owned())
        });
        let method = Arg::new("method")
            .long("method")
            .short('m')
            .value_name("METHOD")
            .help("How the image is made [default: chosen from the scan]")
            .long_help(format!("How the image is made [default: {}]", K::DEFAULT))
            .value_parser(names.collect::<Vec<_>>());
        let params = K::methods().params();
        command.arg(method).args(params.iter().map(|(param, defaults_of)| argument(param, defaults_of)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<K: Kit> FromArgMatches for MethodArgs<K> {
    fn from_arg_matches(matches: &ArgMatches) -> std::result::Result<Self, clap::Error> {
        let mut args = Self(Asked::default());
        args.update_from_arg_matches(matches)?;
        Ok(args)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> std::result::Result<(), clap::Error> {
        self.0 = Asked::new(matches.get_one::<String>("method").cloned());
        for (param, _) in K::methods().params() {
            if let Some(typed) = typed_of(&param, matches) {
                self.0.insert(param.name, typed);
            }
        }
        Ok(())
    }
}

/// `--correct`, and an option for every parameter of any correction.
#[derive(Debug, Clone, Default)]
pub(crate) struct CorrectionArgs {
    names: Vec<String>,
    values: BTreeMap<&'static str, Typed>,
}

impl CorrectionArgs {
    fn named(&self) -> impl Iterator<Item = &'static dyn Correction> {
        self.names.iter().filter_map(|name| corrections().named(name).ok())
    }

    /// Files that parameters name.
    pub(crate) fn files(&mut self) -> impl Iterator<Item = &mut PathBuf> {
        self.values.values_mut().filter_map(Typed::file_mut)
    }

    /// Refuses the first parameter given that no correction of this run has.
    pub(crate) fn refuse_idle(&self, given: &Given) -> Result<()> {
        for (param, _) in corrections().params() {
            let Some(option) = given.name(param.name) else { continue };
            if !self.named().any(|one| one.get(param.name).is_some()) {
                let fitting = corrections().names(|one| one.get(param.name).is_some());
                let found = if self.names.is_empty() {
                    "none".into()
                } else {
                    format!("`--correct {}`", self.names.join(","))
                };
                return refuse(option, &format!("`--correct {fitting}`"), &found);
            }
        }
        Ok(())
    }

    /// The corrections with the typed values of their parameters.
    ///
    /// Errors: a value out of range, or one that is missing; an image that cannot be read; a correction
    /// twice.
    pub(crate) fn corrections(&self) -> Result<Corrections> {
        let one = |one: &'static dyn Correction| -> Result<Arc<dyn Correction>> {
            let mut values = Vec::new();
            for (name, typed) in self.values.iter().filter(|(name, _)| one.get(name).is_some()) {
                let value = match typed {
                    Typed::Value(value) => value.clone(),
                    Typed::Image(path) => image_of(name, path)?,
                    Typed::Searched => continue,
                };
                values.push(((*name).to_owned(), value));
            }
            Ok(with(one, values)?)
        };
        Ok(Corrections::of(self.named().map(one).collect::<Result<Vec<_>>>()?)?)
    }

    /// The files of images among the parameters, by the parameters' names.
    pub(crate) fn named_files(&self) -> BTreeMap<String, PathBuf> {
        let files =
            self.values.iter().filter_map(|(name, typed)| Some(((*name).to_owned(), typed.file()?.clone())));
        files.collect()
    }
}

impl Args for CorrectionArgs {
    fn augment_args(command: Command) -> Command {
        let names = corrections().iter().map(|one| {
            let about = one.about();
            PossibleValue::new(about.name).help(as_options(about.help).into_owned())
        });
        let correct = Arg::new("correct")
            .long("correct")
            .value_name("NAMES")
            .value_delimiter(',')
            .help("Corrections besides flat and dark fields")
            .long_help(
                "Corrections, separated by commas; they act in the order of this list, whatever the order of their names \
                 [default: flat and dark fields alone]",
            )
            .help_heading(GROUP)
            .value_parser(names.collect::<Vec<_>>());
        let params = corrections().params();
        command.arg(correct).args(params.iter().map(|(param, defaults_of)| argument(param, defaults_of)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for CorrectionArgs {
    fn from_arg_matches(matches: &ArgMatches) -> std::result::Result<Self, clap::Error> {
        let mut args = Self::default();
        args.update_from_arg_matches(matches)?;
        Ok(args)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> std::result::Result<(), clap::Error> {
        self.names = matches.get_many::<String>("correct").unwrap_or_default().cloned().collect();
        for (param, _) in corrections().params() {
            if let Some(typed) = typed_of(&param, matches) {
                self.values.insert(param.name, typed);
            }
        }
        Ok(())
    }
}
