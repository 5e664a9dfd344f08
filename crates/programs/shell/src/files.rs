//! Files that programs write, and what they print.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use rayspin_io::{Format, atomic};
pub use rayspin_io::{parts, sources};

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

/// Fails if the file of this name, or a file that is written with it, can never be written: a folder, a pipe
/// or a device has the name, or the name is a folder's (`x.npy/`). If the format writes a folder, fails if a
/// file or a folder of other files has the name.
pub fn check_file(path: &Path) -> Result<()> {
    let refused = |path: &Path, expected: &str, found: &str| -> Result<()> {
        let message = format!("{}: cannot write: expected {expected}, found {found}", path.display());
        Err(BadInput::new(message).hint("name another file; - stands for standard output").into())
    };
    if Format::of_name(path).is_some_and(Format::writes_folders) {
        return match path.exists() && !rayspin_io::replaces_folder(path)? {
            true => refused(path, "a folder name", "a file"),
            false => Ok(()),
        };
    }
    let name = path.as_os_str().as_encoded_bytes();
    if name.ends_with(b"/") || name.ends_with(b"/.") {
        let found = if path.is_dir() { "a folder" } else { "the name of a folder" };
        return refused(path, "a file name", found);
    }
    let mut written = parts(path);
    written.push(path.to_owned());
    for file in written {
        match std::fs::metadata(&file) {
            Ok(there) if there.is_dir() => return refused(&file, "a file name", "a folder"),
            Ok(there) if !there.is_file() => return refused(&file, "a file name", "a pipe or a device"),
            _ => {}
        }
    }
    Ok(())
}

/// Fails when the folder of `path` does not exist, or as [`check_file`].
pub fn check_writable(path: &Path) -> Result<()> {
    let place = atomic::place(path);
    let folder = match place.parent() {
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
    check_file(path)
}

/// Makes a folder, and those that it lies in.
///
/// Errors: a file in the place of one of them; a folder that cannot be made.
pub fn make_folder(path: &Path) -> Result<()> {
    if let Some(file) = path.ancestors().find(|above| above.exists()).filter(|above| !above.is_dir()) {
        let message = format!("{}: expected a folder, found a file", file.display());
        return Err(BadInput::new(message).hint("name another folder").into());
    }
    std::fs::create_dir_all(path).with_context(|| format!("{}: cannot make the folder", path.display()))
}

/// Fails when an output would overwrite an input, or two outputs each other ([`rayspin_io::expect_apart`]).
pub fn check_distinct<'a>(
    inputs: impl Iterator<Item = &'a PathBuf>,
    outputs: impl Iterator<Item = &'a PathBuf>,
) -> Result<()> {
    Ok(rayspin_io::expect_apart(&Vec::from_iter(inputs), &Vec::from_iter(outputs))?)
}

/// Prints a result on stdout, as [`rayspin_core::printable_lines`] has it, or on stderr where stdout takes an
/// output of the run. A closed pipe is an error, not a panic.
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
