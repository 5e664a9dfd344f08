//! The command as its users meet it: outputs, exit codes, messages, and what is left behind.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "helpers of tests")]

mod counters;
#[path = "../../../../../tests/documents.rs"]
mod documents;
mod documents_run;
mod exercise;
mod ladder;
mod limits;
mod own;
#[path = "../../../../../tests/program.rs"]
mod program;
mod programs;
mod report;
mod tune;

pub(crate) use program::{ok, rayspin, refused};

/// The program under test.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_rayspin-ladder");
