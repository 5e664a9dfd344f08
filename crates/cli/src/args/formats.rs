//! The lists of file formats in help texts, made from the table of formats.

use clap::Command;
use rayspin::io::{Format, endings};

/// A word in a help text that stands for the endings of some formats.
type List = (&'static str, fn(&Format) -> bool);

const LISTS: [List; 8] = [
    ("{images read}", Format::reads_images),
    ("{images written}", Format::writes_images),
    ("{signed images written}", Format::writes_signed),
    ("{arrays read}", Format::reads_arrays),
    ("{arrays written}", Format::writes_arrays),
    ("{scans read}", Format::reads_scans),
    ("{scans written}", Format::writes_scans),
    ("{names}", Format::has_names),
];

/// The command with the lists in the help texts of all its options and subcommands.
pub(super) fn fill(command: Command) -> Command {
    let after = command.get_after_help().map(|text| filled(&text.to_string()));
    let command = match after {
        Some(text) => command.after_help(text),
        None => command,
    };
    let command = command.mut_args(|option| match option.get_help().map(|text| filled(&text.to_string())) {
        Some(text) => option.help(text),
        None => option,
    });
    command.mut_subcommands(fill)
}

fn filled(text: &str) -> String {
    LISTS.iter().fold(text.to_owned(), |text, (word, of)| text.replace(word, &endings(of).join(", ")))
}

#[cfg(test)]
mod tests {
    use rayspin::io::FORMATS;

    use super::super::command;

    fn texts(command: &mut clap::Command, all: &mut Vec<(String, String)>) {
        all.push((command.get_name().to_owned(), command.render_help().to_string()));
        command.get_subcommands_mut().for_each(|each| texts(each, all));
    }

    #[test]
    fn help_texts_list_the_formats_of_the_table() {
        let mut all = Vec::new();
        texts(&mut command(), &mut all);
        for (name, text) in &all {
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
