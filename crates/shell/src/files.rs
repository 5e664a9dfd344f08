//! Files that programs write, and what they print.

use std::path::{Path, PathBuf};

use anyhow::Result;
use rayspin_io::atomic;
pub use rayspin_io::parts;

use crate::BadInput;

/// Fails when the folder of `path` does not exist or `path` is a folder.
pub fn check_writable(path: &Path) -> Result<()> {
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    if !folder.is_dir() {
        return Err(BadInput::new(format!(
            "{}: cannot write: expected the folder {} to exist, found none",
            path.display(),
            folder.display()
        ))
        .hint(format!("mkdir -p {}", folder.display()))
        .into());
    }
    if path.is_dir() && !rayspin_io::replaces_folder(path)? {
        return Err(BadInput::new(format!(
            "{}: cannot write: expected a file name, found a folder",
            path.display()
        ))
        .into());
    }
    Ok(())
}

/// Fails when an output would overwrite an input, or two outputs each other ([`rayspin_io::expect_apart`]).
pub fn check_distinct<'a>(
    inputs: impl Iterator<Item = &'a PathBuf>,
    outputs: impl Iterator<Item = &'a PathBuf>,
) -> Result<()> {
    Ok(rayspin_io::expect_apart(&Vec::from_iter(inputs), &Vec::from_iter(outputs))?)
}

/// Prints a result on stdout, or on stderr where stdout takes an output of the run. A closed pipe is an error, not a panic.
pub fn print(text: &dyn std::fmt::Display) -> Result<()> {
    use std::io::Write;
    if crate::stdout::is_taken() {
        return Ok(writeln!(std::io::stderr().lock(), "{text}")?);
    }
    Ok(writeln!(std::io::stdout().lock(), "{text}")?)
}

/// Writes a text file, whole or not at all.
pub fn write_text(path: &Path, text: &str) -> Result<()> {
    Ok(atomic::write_stream_atomically(path, |file| std::io::Write::write_all(file, text.as_bytes()))?)
}
