//! Files that programs write, and what they print.

use std::path::{Path, PathBuf};

use anyhow::Result;
use rayspin_io::atomic;
pub use rayspin_io::parts;

use crate::BadInput;

/// A path as an argument that no parser takes for an option: `./-name` for `-name`.
///
/// ```
/// use rayspin_shell::files::argument;
///
/// assert_eq!(argument("-o.h5").to_str(), Some("./-o.h5"));
/// assert_eq!(argument("scans/-o.h5").to_str(), Some("scans/-o.h5"));
/// ```
pub fn argument(path: impl Into<PathBuf>) -> PathBuf {
    let path = path.into();
    match path.as_os_str().as_encoded_bytes().first() {
        Some(b'-') => Path::new(".").join(path),
        _ => path,
    }
}

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
        .hint(format!("mkdir -p {}", rayspin_core::shell_word(&argument(folder).display().to_string())))
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

/// Prints a result on stdout, as [`rayspin_core::printable_lines`] has it, or on stderr where stdout takes an output of the run. A
/// closed pipe is an error, not a panic.
pub fn print(text: &dyn std::fmt::Display) -> Result<()> {
    print_styled(&rayspin_core::printable_lines(&crate::stdin::named(&text.to_string())))
}

/// [`print()`] for text that holds no words of files: escape sequences in it act on a terminal.
pub fn print_styled(text: &dyn std::fmt::Display) -> Result<()> {
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
