//! What a user names as an input.

use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use crate::format::{Format, any_of, complete, endings};
use crate::{Error, Result, detect};

/// A file, and the name of one of its arrays, series or scans where it holds several: `archive.npz:kspace`.
///
/// A path of an existing file is that file, colons included. Otherwise what follows the colon after a file's name is the name
/// in the file. A folder of files that are one image counts as a file.
///
/// ```
/// let input = rayspin_io::Input::of("scans/both.npz:kspace");
/// assert_eq!((input.file.to_str(), input.name.as_deref()), (Some("scans/both.npz"), Some("kspace")));
/// assert_eq!(rayspin_io::Input::of("scans/head.h5").name, None);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Input {
    /// The file.
    pub file: PathBuf,
    /// The name of an array, series or scan. None stands for the only one in the file.
    pub name: Option<String>,
}

impl Input {
    /// What `path` names.
    pub fn of(path: impl AsRef<Path>) -> Self {
        let path = path.as_ref();
        let whole = || Self { file: path.to_owned(), name: None };
        let Some(text) = path.to_str().filter(|text| text.contains(':') && !is_input(path)) else {
            return whole();
        };
        let parts = || text.match_indices(':').map(|(at, _)| (Path::new(&text[..at]), &text[at + 1..]));
        let there = parts().find(|(file, _)| is_input(file));
        let like_a_file = || parts().find(|(file, _)| Format::of_name(file).is_some());
        match there.or_else(like_a_file) {
            Some((file, name)) if !name.is_empty() => {
                Self { file: file.to_owned(), name: Some(name.to_owned()) }
            }
            _ => whole(),
        }
    }

    /// The file's format. Errors: as [`detect`]; a name in a file of a format that holds one thing.
    pub(crate) fn format(&self) -> Result<&'static Format> {
        let format = detect(&self.file)?;
        match &self.name {
            Some(name) if !format.has_names() && !format.described => {
                let of = endings(Format::has_names);
                let expected = format!("a file of several arrays, series or scans ({})", any_of(&of));
                let found = format!("'{name}' of one that holds one ({format})");
                Err(Error::field(&self.file, "name after the colon", expected, found)
                    .with_hint("leave the colon and the name out"))
            }
            _ => Ok(format),
        }
    }
}

/// The most bytes of a text file: geometries, records and transfer functions are far shorter.
const LONGEST_TEXT: u64 = 64 << 20;

/// Opens a file to read. A pipe or a device is refused before it is opened: it would wait for another program, or never end.
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
/// Errors: a file that cannot be opened or read, that is no regular file, that is no UTF-8, or longer than 64 MiB.
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

fn is_input(path: &Path) -> bool {
    path.is_file() || path.is_dir() || complete(path)
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
    fn a_colon_after_a_file_names_a_part_of_it() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in ["a:b.npz", "noending", "c.cfl", "c.hdr", "x:y"] {
            std::fs::write(at(name), "").unwrap();
        }
        for (given, file, name) in [
            // Files that exist.
            ("a:b.npz", "a:b.npz", None),
            ("a:b.npz:k", "a:b.npz", Some("k")),
            ("noending:images/1", "noending", Some("images/1")),
            ("c:k", "c", Some("k")),
            ("x:y", "x:y", None),
            ("x:y:z:1", "x:y", Some("z:1")),
            // Files that do not.
            ("d.npz:k", "d.npz", Some("k")),
            ("d.h5:a.h5:b", "d.h5", Some("a.h5:b")),
            ("d.npz:", "d.npz:", None),
            ("e:f", "e:f", None),
        ] {
            let input = Input::of(at(given));
            assert_eq!((input.file, input.name.as_deref()), (at(file), name), "{given}");
        }
    }

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
