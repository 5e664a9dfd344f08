//! Opening of files, and the choice of one of several things that a file holds.

use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

use crate::{Error, Result};

/// The most bytes of a text file: geometries, records and transfer functions are far shorter.
const LONGEST_TEXT: u64 = 64 << 20;

/// Opens a file to read. A pipe or a device is refused before it is opened: it would wait for another
/// program, or never end.
///
/// Errors: [`Error::Open`], [`Error::NotThisFormat`].
pub(crate) fn open(path: &Path) -> Result<File> {
    expect_regular(path)?;
    File::open(path).map_err(|e| Error::open(path, e))
}

/// Errors: a file that cannot be found; a pipe, a device or a socket.
pub(crate) fn expect_regular(path: &Path) -> Result<()> {
    let kind = fs::metadata(path).map_err(|e| Error::open(path, e))?.file_type();
    if !kind.is_file() && !kind.is_dir() {
        let found = match kind {
            kind if kind.is_fifo() => "a pipe",
            kind if kind.is_socket() => "a socket",
            _ => "a device",
        };
        return Err(Error::not_this_format(path, "a regular file", found)
            .with_hint("write what it gives to a file first, and name that file"));
    }
    Ok(())
}

/// Reads a text file.
///
/// Errors: a file that cannot be opened or read, that is no regular file, that is no UTF-8, or longer than 64
/// MiB.
///
/// ```
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("points.txt");
/// std::fs::write(&path, "300 1.0 0.9 0.8 0.2")?;
/// assert_eq!(rayspin_io::read_text(&path)?, "300 1.0 0.9 0.8 0.2");
/// assert!(rayspin_io::read_text("/dev/zero").is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn read_text(path: impl AsRef<Path>) -> Result<String> {
    let path = path.as_ref();
    let mut bytes = Vec::new();
    open(path)?.take(LONGEST_TEXT + 1).read_to_end(&mut bytes).map_err(|e| Error::read(path, e))?;
    if bytes.len() as u64 > LONGEST_TEXT {
        return Err(Error::field(path, "text", format!("at most {} MiB", LONGEST_TEXT >> 20), "more"));
    }
    String::from_utf8(bytes).map_err(|_| Error::not_this_format(path, "text", "bytes that are no text"))
}

/// Something that a file holds under a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// `array`, `image series` or `scan`.
    pub what: &'static str,
    /// The name, as it follows the colon.
    pub name: String,
}

/// The name to read: the given name, or the only one. `what` is for people.
///
/// Errors: no such name, several and none given, or none at all; the error lists what the file holds.
pub(crate) fn choose(path: &Path, what: &str, names: &[String], given: Option<&str>) -> Result<String> {
    let list = || if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    let hint = || names.first().map(|first| format!("name one after a colon: {}:{first}", path.display()));
    let refuse = |expected: String, found: String| {
        let error = Error::field(path, what, expected, found);
        Err(match hint() {
            Some(hint) => error.with_hint(hint),
            None => error,
        })
    };
    match (given.map(|name| name.trim_matches('/')), names) {
        (Some(name), _) => match names.iter().find(|known| known.trim_matches('/') == name) {
            Some(known) => Ok(known.clone()),
            None => refuse(format!("one of {}", list()), name.to_owned()),
        },
        (None, [only]) => Ok(only.clone()),
        (None, []) => refuse("one".into(), "none".into()),
        (None, _) => refuse("one, or the name of one".into(), list()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_chosen_or_listed() {
        let path = Path::new("both.npz");
        let names = ["k".to_owned(), "maps".to_owned()];
        assert_eq!(choose(path, "array", &names, Some("/maps")).unwrap(), "maps");
        assert_eq!(choose(path, "array", &names[..1], None).unwrap(), "k");
        for given in [None, Some("traj")] {
            let error = choose(path, "array", &names, given).unwrap_err();
            assert!(error.to_string().contains("k, maps"), "{error}");
            assert_eq!(error.hint().as_deref(), Some("name one after a colon: both.npz:k"));
        }
        assert!(choose(path, "array", &[], None).unwrap_err().hint().is_none());
    }
}
