//! The command as its users meet it: outputs, exit codes, messages, and what is left behind.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "helpers of tests")]

mod arrays;
mod bart;
mod certify;
mod ends;
mod files;
mod images;
mod ladder;
mod limits;
mod memory;
mod off_resonance;
mod options;
mod pictures;
mod quality;
#[path = "../../../../tests/real_data.rs"]
mod real_data;
mod refusals;
mod stream;
mod tune;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

pub(crate) fn rayspin(arguments: &[&str], folder: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_rayspin"))
        .args(arguments)
        .current_dir(folder)
        .output()
        .expect("the command starts")
}

pub(crate) fn ok(arguments: &[&str], folder: &Path) -> Output {
    let output = rayspin(arguments, folder);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

/// Runs what must be refused: exit code 2, one error line holding every word of `words`, no panic, no new file.
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

/// A folder with a small spiral scan, its truth and maps.
pub(crate) fn with_scan() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let arguments = "simulate mri -q -o scan.h5 --truth truth.nii.gz --maps maps.cfl --matrix 48,48 --trajectory spiral \
                     --shots 8 --coils 4 --snr 100";
    ok(&arguments.split_whitespace().collect::<Vec<_>>(), folder.path());
    folder
}

pub(crate) fn parameters(record: &Path) -> (serde_json::Value, f64) {
    let record: serde_json::Value = serde_json::from_slice(&std::fs::read(record).unwrap()).unwrap();
    let peak = record["peak_memory_bytes"].as_f64().unwrap();
    (record["parameters"].clone(), peak)
}

pub(crate) fn simulated(folder: &Path, options: &str) {
    let arguments = format!("simulate mri -q --no-record -o scan.h5 {options}");
    ok(&arguments.split_whitespace().collect::<Vec<_>>(), folder);
}

pub(crate) fn reconstructed(folder: &Path, options: &str) -> (serde_json::Value, f64, Vec<u8>) {
    let arguments = format!("recon mri scan.h5 -q -o image.npy {options}");
    ok(&arguments.split_whitespace().collect::<Vec<_>>(), folder);
    let (parameters, peak) = parameters(&folder.join("image.json"));
    (parameters, peak, std::fs::read(folder.join("image.npy")).unwrap())
}
