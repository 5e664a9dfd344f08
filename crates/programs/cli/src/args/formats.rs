//! The lists of file formats and of methods in help texts, made from their tables.

use std::borrow::Cow;

use clap::Command;
use clap::builder::StyledStr;
use rayspin::filter::{Filters, Param, Value};
use rayspin::io::{Format, endings};
use rayspin::mri::methods::Method;

use crate::methods::{in_a_field, iterates, methods, over_a_basis, over_sets};

/// A word in a help text that stands for the endings of some formats.
type List = (&'static str, fn(&Format) -> bool);

const LISTS: [List; 10] = [
    ("{images read}", Format::reads_images),
    ("{images written}", Format::writes_images),
    ("{signed images written}", Format::writes_signed),
    ("{arrays read}", Format::reads_arrays),
    ("{arrays written}", Format::writes_arrays),
    ("{scans read}", Format::reads_scans),
    ("{scans written}", Format::writes_scans),
    ("{ct scans read}", Format::reads_projections),
    ("{names}", Format::has_names),
    ("{complex written by default}", Format::writes_complex_first),
];

/// A word in a help text that stands for the names of some methods.
type MethodList = (&'static str, fn(&dyn Method) -> bool);

const METHOD_LISTS: [MethodList; 4] = [
    ("{methods over a basis}", over_a_basis),
    ("{methods with a normal operator}", iterates),
    ("{methods in a field}", in_a_field),
    ("{methods over sets of maps}", over_sets),
];

/// The command with the lists in the help texts of all its options and subcommands.
pub(super) fn fill(command: Command) -> Command {
    each_text(command, filled)
}

/// The command with parameters as options in all its help texts.
pub(super) fn as_options(command: Command) -> Command {
    each_text(command, rayspin::core::as_options)
}

/// The command with each of its help texts changed. Every command of the program comes past here, so a text
/// that stays is not made anew.
fn each_text(command: Command, change: fn(&str) -> Cow<'_, str>) -> Command {
    let changed = |text: Option<&StyledStr>| match change(&text?.to_string()) {
        Cow::Owned(text) => Some(text),
        Cow::Borrowed(_) => None,
    };
    let [after, long] = [command.get_after_help(), command.get_after_long_help()].map(changed);
    let command = after.into_iter().fold(command, Command::after_help);
    let command = long.into_iter().fold(command, Command::after_long_help);
    let command = command.mut_args(|option| {
        let [help, long] = [option.get_help(), option.get_long_help()].map(changed);
        let option = help.into_iter().fold(option, clap::Arg::help);
        long.into_iter().fold(option, clap::Arg::long_help)
    });
    command.mut_subcommands(|command| each_text(command, change))
}

/// How one of several arrays, series or scans is named.
const NAMES: &str = "A colon names one of several arrays, series or scans in a file ({names}): data.npz:kspace, \
                     images.h5:dataset/image_1.";

/// The filters with their parameters and defaults, a line each; `full` explains the parameters.
fn filters(full: bool) -> String {
    let filters = Filters::default();
    let mut text = String::new();
    for filter in filters.iter() {
        let about = filter.about();
        let value = |param: &Param| match filter.get(param.name) {
            None | Some(Value::Nothing) => param.name.to_owned(),
            Some(value) => format!("{}={value}", param.name),
        };
        let params: Vec<_> = filter.table().iter().map(|param| (value(param), param.help)).collect();
        let names: Vec<_> = params.iter().map(|(value, _)| value.as_str()).collect();
        if full {
            text += &format!("  {:<10} {}\n", about.name, about.help);
            params.iter().for_each(|(value, help)| text += &format!("    {value:<12} {help}\n"));
        } else {
            text += &format!("  {:<10} {:<27} {}\n", about.name, names.join(","), about.help);
        }
    }
    text
}

#[expect(
    clippy::redundant_closure,
    reason = "a function of any method is none of methods that live for ever"
)]
pub(crate) fn filled(text: &str) -> Cow<'_, str> {
    let mut text = Cow::Borrowed(text);
    let mut put = |word: &str, list: &dyn Fn() -> String| {
        if text.contains(word) {
            text = Cow::Owned(text.replace(word, &list()));
        }
    };
    put("{names after a colon}", &|| NAMES.to_owned());
    put("{filters}\n", &|| filters(false));
    put("{filters in full}\n", &|| filters(true));
    for (word, is_listed) in LISTS {
        put(word, &|| endings(is_listed).join(", "));
    }
    for (word, is_listed) in METHOD_LISTS {
        put(word, &|| methods().names(|method| is_listed(method)));
    }
    text
}

#[cfg(test)]
mod tests {
    use rayspin::io::FORMATS;

    use super::super::command;

    fn texts(command: &mut clap::Command, all: &mut Vec<(String, String)>) {
        all.push((command.get_name().to_owned(), command.render_long_help().to_string()));
        command.get_subcommands_mut().for_each(|each| texts(each, all));
    }

    #[test]
    fn help_texts_list_the_formats_of_the_table() {
        let mut all = Vec::new();
        texts(&mut command(), &mut all);
        for (name, text) in &all {
            // What batch itself fills.
            let text = text.replace("{stem}", "").replace("{folder}", "");
            assert!(!text.contains(['{', '}']), "{name}: {text}");
        }
        let convert = &all.iter().find(|(name, _)| name == "convert").unwrap().1;
        for format in &FORMATS {
            let used = format.reads_images() || format.writes_images() || format.reads_scans();
            for ending in format.endings {
                assert_eq!(convert.contains(ending), used, "{ending}");
            }
        }
    }
}
