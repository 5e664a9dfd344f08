//! The program under test: run, refused, and short of memory. Included by the tests of each program, which
//! name it in `PROGRAM`.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::PROGRAM;

pub(crate) fn rayspin(arguments: &[&str], folder: &Path) -> Output {
    // Help is as wide as the terminal says, which tests do not see.
    let mut command = Command::new(PROGRAM);
    command.args(arguments).current_dir(folder).env_remove("COLUMNS");
    command.output().expect("the command starts")
}

pub(crate) fn ok(arguments: &[&str], folder: &Path) -> Output {
    let output = rayspin(arguments, folder);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

/// Runs what must be refused: exit code 2, one error line holding every word of `words`, no panic, no new
/// file.
pub(crate) fn refused(arguments: &[&str], folder: &Path, words: &[&str]) {
    let before = files(folder);
    let output = rayspin(arguments, folder);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {text}");
    let errors: Vec<&str> = text.lines().filter(|line| line.starts_with("error:")).collect();
    assert_eq!(errors.len(), 1, "{arguments:?}: {text}");
    for word in words {
        assert!(errors[0].contains(word), "{arguments:?}: '{word}' is not in: {text}");
    }
    assert!(text.lines().any(|line| line.starts_with("hint:")), "{arguments:?} has no hint: {text}");
    assert!(!text.contains("panicked"), "{text}");
    assert_eq!(files(folder), before, "{arguments:?} left something behind");
}

pub(crate) fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    found.sort();
    found
}

/// Runs the command with a limit of `kib` KiB of addresses.
pub(crate) fn within(kib: usize, line: &str, folder: &Path) -> Output {
    Command::new("sh")
        .args(["-c", "ulimit -c 0; ulimit -v \"$1\"; shift; exec \"$@\"", "sh", &kib.to_string()])
        .arg(PROGRAM)
        .args(line.split_whitespace())
        .current_dir(folder)
        .output()
        .unwrap()
}

/// The smallest limit of addresses under which `line` works, in KiB, in steps of 8 MiB.
pub(crate) fn least(line: &str, folder: &Path) -> usize {
    let runs = |kib: &usize| within(*kib, line, folder).status.success();
    (1..100).map(|step| step << 13).find(runs).unwrap()
}

/// Raises the limit by `step` KiB until the command runs; how often it was refused before, each time with one
/// line.
pub(crate) fn refusals(line: &str, least: usize, step: usize, folder: &Path) -> usize {
    for turn in 0..60 {
        let output = within(least + turn * step, line, folder);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        if output.status.success() {
            return turn;
        }
        // A signal has no code.
        assert_eq!(output.status.code(), Some(1), "{line}, {} KiB: {told}", least + turn * step);
        let errors: Vec<_> = told.lines().filter(|line| line.starts_with("error: ")).collect();
        assert!(errors.len() == 1 && !told.contains("panicked"), "{line}: {told}");
        let whole = told + &String::from_utf8_lossy(&output.stdout);
        assert!(whole.contains("bytes of memory"), "{line}: {whole}");
    }
    panic!("{line} never ran")
}
