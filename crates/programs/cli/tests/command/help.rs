//! Help that fits a screen, and errors of the argument parser.

use std::path::Path;

use rayspin::io::{Format, endings};

use crate::{ok, rayspin, refused};

/// A word of help texts, and the formats that it lists.
type List = (&'static str, fn(&Format) -> bool);

fn help(path: &[String], option: &str) -> String {
    let arguments: Vec<&str> = path.iter().map(String::as_str).chain([option]).collect();
    String::from_utf8(ok(&arguments, Path::new(".")).stdout).unwrap()
}

/// The command at `path` and all below it, by their own lists.
fn commands(path: Vec<String>, found: &mut Vec<Vec<String>>) {
    let text = help(&path, "-h");
    let listed =
        text.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    // A long explanation goes on below its command, farther to the right.
    let names: Vec<&str> = listed
        .filter(|line| !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    // The first two belong to another program, and the last is this help.
    for name in names.into_iter().filter(|name| !["ladder", "tune", "help"].contains(name)) {
        commands([path.clone(), vec![name.to_owned()]].concat(), found);
    }
    found.push(path);
}

/// A help text with names for its lists of formats, so that a format more changes no snapshot. A line that is
/// wrapped because of a list becomes one line again.
fn without_lists(text: &str) -> String {
    let lists: [List; 8] = [
        ("{images read}", Format::reads_images),
        ("{images written}", Format::writes_images),
        ("{signed images written}", Format::writes_signed),
        ("{arrays read}", Format::reads_arrays),
        ("{arrays written}", Format::writes_arrays),
        ("{scans read}", Format::reads_scans),
        ("{ct scans read}", Format::reads_projections),
        ("{names}", Format::has_names),
    ];
    let mut lists = lists.map(|(name, of)| (name, endings(of).join(", ")));
    // A list may be a part of another one.
    lists.sort_by_key(|(_, list)| std::cmp::Reverse(list.len()));
    let indent = |line: &str| line.len() - line.trim_start().len();
    let lines: Vec<&str> = text.lines().collect();
    let goes_on = |first: &str, next: &str| match indent(first) {
        0 => !first.is_empty() && !next.is_empty() && indent(next) == 0,
        own => indent(next) >= own + 8,
    };
    let mut out = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let more = lines[at + 1..].iter().take_while(|next| goes_on(lines[at], next)).count();
        let item = &lines[at..=at + more];
        let joined = item.iter().enumerate().map(|(at, line)| if at == 0 { line } else { line.trim_start() });
        let joined = joined.collect::<Vec<_>>().join(" ");
        let named = lists.iter().fold(joined.clone(), |text, (name, list)| match list.contains(", ") {
            true => text.replace(list.as_str(), name),
            false => text,
        });
        match named == joined {
            true => out.extend(item.iter().map(|line| (*line).to_owned())),
            false => out.push(named),
        }
        at += more + 1;
    }
    out.join("\n")
}

#[test]
fn short_help_of_every_command_fits_a_screen() {
    let mut all = Vec::new();
    commands(Vec::new(), &mut all);
    assert!(all.len() >= 9, "{all:?}");
    for path in &all {
        let name = if path.is_empty() { "rayspin".to_owned() } else { path.join("-") };
        let short = help(path, "-h");
        assert!(short.lines().count() <= 50, "{name} -h has {} lines:\n{short}", short.lines().count());
        for text in [&short, &help(path, "--help")] {
            let wide = text.lines().find(|line| line.chars().count() > 100);
            assert_eq!(wide, None, "{name}");
        }
        insta::assert_snapshot!(format!("help-{name}"), without_lists(&short));
    }
}

#[test]
fn options_of_the_device_stand_where_they_act() {
    let words = |path: &str| path.split(' ').map(str::to_owned).collect::<Vec<_>>();
    for path in ["recon mri", "demo", "info"] {
        assert!(
            help(&words(path), "--help").contains("--device")
                && help(&words(path), "--help").contains("--gpu-memory")
        );
    }
    for path in ["simulate mri", "metrics", "convert", "completions"] {
        assert!(!help(&words(path), "--help").contains("--device"), "{path}");
    }
    // Before the command and behind it, and where it does nothing.
    for line in ["--device cpu info", "info --device cpu", "--threads 1 info --device cpu"] {
        ok(&line.split(' ').collect::<Vec<_>>(), Path::new("."));
    }
    refused(&["info", "--device", "cuda:999"], Path::new("."), &["GPU"]);
    refused(&["--device", "cuda", "metrics", "a.nii", "b.nii"], Path::new("."), &["--device", "takes a GPU"]);
    // What -h leaves out is there.
    let [short, long] = ["-h", "--help"].map(|option| help(&words("recon mri"), option));
    for option in ["--certify", "--wavelet-levels", "--gpu-memory", "--noise-covariance"] {
        assert!(!short.contains(option) && long.contains(option), "{option}");
    }
}

#[test]
fn errors_of_the_parser_keep_the_style_of_all_errors() {
    let folder = tempfile::tempdir().unwrap();
    let mut told = String::new();
    for line in [
        "recon mri scan.h5 -o a.nii --lamda 1",
        "recon mri scan.h5 -o a.nii --nothing-like-it",
        "recon mri scan.h5 -o a.nii --method tvv",
        "recon mri scan.h5 -o a.nii --lambda often",
        "recon mri scan.h5 -o a.nii --iterations 1.5",
        "recon mri scan.h5 -o a.nii --iterations",
        "recon mri scan.h5 -o a.nii --contrast first",
        "recon mri scan.h5 -o a.nii --device gpu",
        "recon mri scan.h5 -o a.nii --memory lots",
        "recon mri scan.h5 -o a.nii --fit",
        "recon mri scan.h5 -o a.nii --record a.json --no-record",
        "recon mri scan.h5 -o a.nii --threads 2 --threads 3",
        "recon mri -o a.nii",
        "recon mri scan.h5 other.h5 -o a.nii",
        "recon mri scan.h5",
        "reckon mri scan.h5",
        "recon ct scan.h5",
        "metrics a.nii",
        "convert a.nii",
        "completions tcsh",
    ] {
        let arguments: Vec<&str> = line.split(' ').collect();
        refused(&arguments, folder.path(), &["expected", "found"]);
        let text = String::from_utf8(rayspin(&arguments, folder.path()).stderr).unwrap();
        told.push_str(&format!("$ rayspin {line}\n{text}"));
    }
    insta::assert_snapshot!("errors-of-the-parser", told);
    // Without a command the program shows what there is.
    let alone = rayspin(&[], folder.path());
    assert_eq!(alone.status.code(), Some(2));
    assert!(String::from_utf8(alone.stderr).unwrap().contains("Commands:"));
}
