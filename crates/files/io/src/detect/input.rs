//! What a user names as an input.

use std::path::{Path, PathBuf};

use super::{Found, complete, endings};
use crate::format::any_of;
use crate::{Error, Format, Result};

/// A file, and the name of one of its arrays, series or scans where it holds several: `archive.npz:kspace`.
///
/// A path of an existing file is that file, colons included. Otherwise what follows the colon after a file's
/// name is the name in the file. A folder of files that are one image counts as a file.
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
        let parts =
            || text.match_indices(':').map(|(colon, _)| (Path::new(&text[..colon]), &text[colon + 1..]));
        let there = parts().find(|(file, _)| is_input(file));
        let like_a_file = || parts().find(|(file, _)| Format::of_name(file).is_some());
        match there.or_else(like_a_file) {
            Some((file, name)) if !name.is_empty() => {
                Self { file: file.to_owned(), name: Some(name.to_owned()) }
            }
            _ => whole(),
        }
    }

    /// The file's format. Errors: as [`detect`](super::detect); a name in a file of a format that holds one
    /// thing.
    pub(crate) fn format(&self) -> Result<&'static Format> {
        self.found().map(|detected| detected.format())
    }

    /// The file or folder. Errors: as of [`Input::format`].
    pub(crate) fn found(&self) -> Result<Found> {
        let detected = Found::of(&self.file)?;
        let format = detected.format();
        match &self.name {
            Some(name) if !format.has_names() && !format.described => {
                let several = endings(Format::has_names);
                let expected = format!("a file of several arrays, series or scans ({})", any_of(&several));
                let many = format!("'{name}' of one that holds one ({format})");
                Err(Error::field(&self.file, "name after the colon", expected, many)
                    .with_hint("leave the colon and the name out"))
            }
            _ => Ok(detected),
        }
    }
}

fn is_input(path: &Path) -> bool {
    path.is_file() || path.is_dir() || complete(path)
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
}
