//! Errors of the argument parser, in the words of all other errors.

use std::error::Error as _;
use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, Error, ErrorKind};

use crate::BadInput;
use crate::effect::any_of;

/// The parser's error about `command` as one line and a hint.
pub(crate) fn refusal(error: &Error, command: &str) -> BadInput {
    let argument = text(error, ContextKind::InvalidArg).map(|name| bare(&name)).unwrap_or_default();
    let value = text(error, ContextKind::InvalidValue).unwrap_or_default();
    let found = if value.is_empty() { "none".to_owned() } else { format!("'{value}'") };
    let message = match error.kind() {
        ErrorKind::InvalidValue => {
            let valid = list(error, ContextKind::ValidValue);
            let names: Vec<&str> = valid.iter().map(String::as_str).collect();
            let expected = if names.is_empty() { "a value".to_owned() } else { any_of(&names) };
            format!("{argument}: expected {expected}, found {found}")
        }
        ErrorKind::ValueValidation => format!("{argument}: expected {}, found {found}", wanted(error)),
        ErrorKind::UnknownArgument if argument.starts_with(['-', '`']) => {
            format!("{argument}: expected an option of {command}, found none of this name")
        }
        ErrorKind::UnknownArgument => format!("{argument}: expected no further argument, found one"),
        ErrorKind::InvalidSubcommand => {
            let name = text(error, ContextKind::InvalidSubcommand).unwrap_or_default();
            format!("{name}: expected a command of {command}, found none of this name")
        }
        ErrorKind::MissingRequiredArgument => {
            let missing = list(error, ContextKind::InvalidArg).join(" and ");
            format!("{command}: expected {missing}, found none")
        }
        ErrorKind::ArgumentConflict => match list(error, ContextKind::PriorArg).first() {
            Some(prior) if bare(prior) != argument => {
                format!("{argument}: expected no {} beside it, found both", bare(prior))
            }
            _ => format!("{argument}: expected once, found more often"),
        },
        _ => {
            let text = error.render().to_string();
            let first = text.lines().next().unwrap_or_default();
            first.trim_start_matches("error: ").to_owned()
        }
    };
    BadInput::new(message).hint(hint(error, command))
}

/// What to do: what was probably meant, or where the options are listed.
fn hint(error: &Error, command: &str) -> String {
    let kinds = [ContextKind::SuggestedArg, ContextKind::SuggestedValue, ContextKind::SuggestedSubcommand];
    let mut meant: Vec<String> =
        kinds.iter().flat_map(|&kind| list(error, kind)).map(|name| bare(&name)).collect();
    // The parser names the most similar last.
    meant.reverse();
    let names: Vec<&str> = meant.iter().map(String::as_str).collect();
    match error.kind() {
        _ if !names.is_empty() => format!("did you mean {}?", any_of(&names)),
        ErrorKind::InvalidSubcommand => format!("`{command} -h` lists the commands"),
        ErrorKind::MissingRequiredArgument => format!("usage: `{}`", usage(error)),
        ErrorKind::ArgumentConflict => "leave one of them out".to_owned(),
        ErrorKind::InvalidValue | ErrorKind::ValueValidation => {
            let option = text(error, ContextKind::InvalidArg).map(|name| bare(&name)).unwrap_or_default();
            format!("`{command} --help` says what {option} takes")
        }
        _ => format!("`{command} --help` lists the options and what they take"),
    }
}

/// What a value should have been.
fn wanted(error: &Error) -> String {
    let Some(source) = error.source() else { return "another value".to_owned() };
    let said = source.to_string();
    if let Some(expected) = said.strip_prefix("expected ") {
        return expected.to_owned();
    }
    if let Some((_, range)) = said.split_once(" is not in ") {
        return format!("a whole number, {}", range.replace("..=", " to "));
    }
    // Parsers of numbers report the first wrong character, not the kind of number.
    if source.is::<std::num::ParseFloatError>() || said.contains("float") {
        return "a number".to_owned();
    }
    if source.is::<std::num::ParseIntError>() || said.contains("digit") || said.contains("integer") {
        return "a whole number".to_owned();
    }
    format!("another value ({said})")
}

/// The usage without its title, in one line.
fn usage(error: &Error) -> String {
    let text = match error.get(ContextKind::Usage) {
        Some(ContextValue::StyledStr(usage)) => usage.to_string(),
        _ => String::new(),
    };
    let words: Vec<&str> = text.trim_start_matches("Usage:").split_whitespace().collect();
    words.join(" ")
}

/// `rayspin recon mri`: the program and the subcommands that the command line names.
pub(crate) fn command_of(program: &clap::Command, args: &[OsString]) -> String {
    let mut words = program.get_name().to_owned();
    let mut command = program;
    for argument in args.iter().skip(1) {
        if let Some(inner) = argument.to_str().and_then(|name| command.find_subcommand(name)) {
            words.push(' ');
            words.push_str(inner.get_name());
            command = inner;
        }
    }
    words
}

/// `--lambda`, marked, of `--lambda <LAMBDA>`, and `SCAN` of `<SCAN>`.
fn bare(argument: &str) -> String {
    let name = argument.split([' ', '=']).next().unwrap_or_default();
    match name.starts_with("--") {
        true => format!("`{name}`"),
        false => name.trim_start_matches('<').trim_end_matches("...").trim_end_matches('>').to_owned(),
    }
}

fn text(error: &Error, kind: ContextKind) -> Option<String> {
    match error.get(kind)? {
        ContextValue::String(text) => Some(text.clone()),
        _ => None,
    }
}

fn list(error: &Error, kind: ContextKind) -> Vec<String> {
    match error.get(kind) {
        Some(ContextValue::String(text)) => vec![text.clone()],
        Some(ContextValue::Strings(texts)) => texts.clone(),
        _ => Vec::new(),
    }
}
