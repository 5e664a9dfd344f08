//! Texts of the libraries mark each parameter that they name, and name none that there is not.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use rayspin::mri::methods::Methods;

use crate::args::command;
use crate::methods::take;

/// Crates whose texts reach other programs than the command.
const CRATES: [&str; 8] = [
    "algebra/run",
    "files/io",
    "ground/core",
    "imaging/ct",
    "imaging/filter",
    "imaging/mri",
    "imaging/scan",
    "runs/job",
];

/// What the words of other programs are.
const OTHERS: [&str; 1] = ["gdcmconv --raw"];

/// The names of the options of all commands, as in `--field-map`.
fn option_names() -> BTreeSet<String> {
    take(Methods::default());
    let mut program = command();
    program.build();
    let mut names = BTreeSet::new();
    let mut left = vec![&program];
    while let Some(command) = left.pop() {
        let long = command.get_arguments().filter_map(clap::Arg::get_long);
        names.extend(long.map(|name| format!("--{name}")));
        left.extend(command.get_subcommands());
    }
    names
}

/// A name that is not in the source.
const FILLED_IN: &str = "{}";

fn sources(folder: &Path, listed: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        let name = entry.file_name().unwrap().to_str().unwrap();
        if entry.is_dir() && name != "tests" {
            sources(&entry, listed);
        } else if name.ends_with(".rs") && name != "tests.rs" && name != "marks.rs" {
            listed.push(entry);
        }
    }
}

/// What follows each `--` that begins the name of an option, and whether a mark stands before it.
fn named(text: &str) -> impl Iterator<Item = (bool, &str)> {
    text.match_indices("--").filter_map(|(start, _)| {
        let before = text[..start].chars().next_back();
        // A line of the command: `rayspin convert --montage`.
        if text[..start]
            .rsplit_once('`')
            .is_some_and(|(_, line)| line.starts_with("rayspin") && !line.contains('\n'))
        {
            return None;
        }
        let name = &text[start + 2..];
        // A name that a text fills in: `--{option}`.
        if name.starts_with('{') && matches!(before, Some('`' | '(' | ' ')) {
            return Some((before == Some('`'), FILLED_IN));
        }
        let end = name.find(|c: char| !c.is_ascii_lowercase() && !c.is_ascii_digit() && c != '-')?;
        let begins = !before.is_some_and(|c| c.is_alphanumeric() || "-_/=.".contains(c));
        (begins && name.starts_with(|c: char| c.is_ascii_lowercase()))
            .then_some((before == Some('`'), &name[..end]))
    })
}

/// The text without comments and without its tests, which come last.
fn code(text: &str) -> String {
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    let code = lines.collect::<Vec<_>>().join("\n");
    OTHERS.iter().fold(code, |code, other| code.replace(other, ""))
}

#[test]
fn texts_mark_parameters_that_there_are() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    let options = option_names();
    let mut files = Vec::new();
    CRATES.iter().for_each(|name| sources(&crates.join(name).join("src"), &mut files));
    let (mut marked, mut wrong) = (0, Vec::new());
    for file in &files {
        for (mark, name) in named(&code(&fs::read_to_string(file).unwrap())) {
            marked += usize::from(mark);
            if !mark || (name != FILLED_IN && !options.contains(&format!("--{name}"))) {
                wrong.push(format!("{}: --{name}", file.strip_prefix(crates).unwrap().display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(marked > 150, "{marked} in {} files", files.len());
}

#[test]
fn names_are_found() {
    let text = "`--maps` and --traj-fov, x--y, (--a=1) --- `--std` (--{option}) \"--{}\" --";
    let found: Vec<_> = named(text).collect();
    assert_eq!(found, [(true, "maps"), (false, "traj-fov"), (false, "a"), (true, "std"), (false, FILLED_IN)]);
}

/// The text without what it fills in: `acquisition: samples` of `acquisition {index}: samples`.
fn uncounted(text: &str) -> String {
    let mut parts = text.split(" {");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| match part.split_once('}') {
        Some((name, after)) if name.chars().all(|c| c.is_ascii_alphanumeric() || "._".contains(c)) => {
            text + after
        }
        _ => text + " {" + part,
    })
}

#[test]
fn quantities_of_remedies_are_named_by_errors() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    let mut files = Vec::new();
    sources(crates, &mut files);
    let sources: String =
        files.iter().map(|file| uncounted(&code(&fs::read_to_string(file).unwrap()))).collect();
    let remedies: Vec<_> = crate::in_memory::remedies().into_iter().chain(rayspin::job::remedies()).collect();
    let quantities: Vec<&str> =
        remedies.iter().flat_map(|(quantities, _)| quantities.iter().copied()).collect();
    let unnamed: Vec<&&str> = quantities
        .iter()
        .filter(|quantity| {
            // Each table that has the quantity is a place of its own.
            let tables: BTreeSet<*const u8> =
                quantities.iter().filter(|other| other == quantity).map(|other| other.as_ptr()).collect();
            // Errors fill in the axis.
            let axis = [" x", " y", " z"].into_iter().find_map(|axis| quantity.strip_suffix(axis));
            let filled = axis.map_or(0, |stem| sources.matches(&format!("\"{stem}\"")).count());
            let places = sources.matches(&format!("\"{quantity}\"")).count();
            let begun = sources.matches(&format!("\"{quantity}: ")).count();
            places + begun + filled <= tables.len()
        })
        .collect();
    assert!(unnamed.is_empty(), "{unnamed:?}");
}

#[test]
fn remedies_name_options_that_there_are() {
    let options = option_names();
    for (quantities, remedy) in crate::in_memory::remedies().into_iter().chain(rayspin::job::remedies()) {
        for (mark, name) in named(&format!("{remedy} ")) {
            let of_command = remedy.contains("`rayspin filter --help`");
            assert!(
                of_command || (mark && options.contains(&format!("--{name}"))),
                "{quantities:?}: {remedy}"
            );
        }
    }
}
