//! The command as its users meet it: outputs, exit codes, messages, and what is left behind.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "helpers of tests")]

mod arrays;
mod bart;
mod bart_series;
mod batch;
mod bruker;
mod certify;
mod choices;
mod ct;
mod dicom;
#[path = "../../../../../tests/documents.rs"]
mod documents;
mod documents_run;
mod ends;
mod files;
mod filter;
mod help;
mod images;
mod info;
mod lab;
mod limits;
mod matlab;
mod memory;
mod metrics;
mod names;
mod off_resonance;
mod options;
mod overwriting;
mod pictures;
#[path = "../../../../../tests/program.rs"]
mod program;
mod quality;
mod ranges;
mod raw;
#[path = "../../../../../tests/real_data.rs"]
mod real_data;
mod refusals;
mod render;
mod rerun;
mod stream;
mod volumes;

use std::path::Path;

pub(crate) use program::{files, ok, rayspin, refused};

/// The program under test.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_rayspin");

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
    // Threads take memory: with many cores, more is stated than small scans use.
    let arguments = format!("recon mri scan.h5 -q -o image.npy --threads 2 {options}");
    ok(&arguments.split_whitespace().collect::<Vec<_>>(), folder);
    let (parameters, peak) = parameters(&folder.join("image.json"));
    (parameters, peak, std::fs::read(folder.join("image.npy")).unwrap())
}
