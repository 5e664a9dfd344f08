use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use rayspin_core::{ErrorKind, printable};
use thiserror::Error as ThisError;

/// `Result` with [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// What reading or writing a file can refuse or fail at. Every variant names the file; `Display` is one line.
#[derive(Debug, ThisError)]
#[non_exhaustive]
pub enum Error {
    /// The file cannot be opened for reading.
    #[error("{}: cannot open: {source}", Line(path))]
    Open {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// Reading failed midway.
    #[error("{}: cannot read: {source}", Line(path))]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The file cannot be created or written.
    #[error("{}: cannot write: {source}", Line(path))]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The file is of another format than the reader's.
    #[error("{}: expected {expected}, found {found}", Line(path))]
    NotThisFormat {
        /// The file.
        path: PathBuf,
        /// The format that was to be read.
        expected: String,
        /// What the file looks like.
        found: String,
        /// What to do about it.
        hint: Option<String>,
    },
    /// The file ends, or an array in it does, before what its header promises.
    #[error("{}: {what} is cut short: expected {expected}, found {found}", Line(path))]
    Truncated {
        /// The file.
        path: PathBuf,
        /// The part that is short.
        what: String,
        /// Its promised size.
        expected: String,
        /// Its size.
        found: String,
    },
    /// A field of the file has a value that no valid file has, or is missing.
    #[error("{}: {field}: expected {expected}, found {found}", Line(path))]
    Field {
        /// The file.
        path: PathBuf,
        /// The field, as the format's documents name it.
        field: String,
        /// The accepted range, set or shape.
        expected: String,
        /// The value in the file.
        found: String,
        /// What to do about it.
        hint: Option<String>,
    },
    /// The file is valid, and uses a part of its format that Rayspin does not read or write.
    #[error("{}: {what} is not supported", Line(path))]
    Unsupported {
        /// The file.
        path: PathBuf,
        /// The part of the format.
        what: String,
        /// What to do about it.
        hint: Option<String>,
    },
    /// A library that reads or writes the format gave up, for a reason that only it knows.
    #[error("{}: {what}: {detail}", Line(path))]
    Library {
        /// The file.
        path: PathBuf,
        /// What it was doing.
        what: String,
        /// What it says.
        detail: String,
        /// Whether the file's content is at fault or the run.
        kind: ErrorKind,
    },
    /// What the file holds does not make a valid quantity.
    #[error("{}: {}", Line(path), printable(&source.to_string()))]
    Core {
        /// The file.
        path: PathBuf,
        /// The quantity, the expected and the found.
        source: rayspin_core::Error,
    },
}

impl Error {
    /// An [`Error::Open`].
    pub fn open(path: impl Into<PathBuf>, source: io::Error) -> Self {
        Self::Open { path: path.into(), source }
    }

    /// An [`Error::Read`].
    pub fn read(path: impl Into<PathBuf>, source: io::Error) -> Self {
        Self::Read { path: path.into(), source }
    }

    /// An [`Error::Write`].
    pub fn write(path: impl Into<PathBuf>, source: io::Error) -> Self {
        Self::Write { path: path.into(), source }
    }

    /// An [`Error::NotThisFormat`], without a hint.
    pub fn not_this_format(path: impl Into<PathBuf>, expected: impl ToString, found: impl ToString) -> Self {
        Self::NotThisFormat {
            path: path.into(),
            expected: one_line(expected),
            found: one_line(found),
            hint: None,
        }
    }

    /// An [`Error::Truncated`].
    pub fn truncated(
        path: impl Into<PathBuf>,
        what: impl ToString,
        expected: impl ToString,
        found: impl ToString,
    ) -> Self {
        Self::Truncated {
            path: path.into(),
            what: one_line(what),
            expected: one_line(expected),
            found: one_line(found),
        }
    }

    /// An [`Error::Field`], without a hint.
    pub fn field(
        path: impl Into<PathBuf>,
        field: impl ToString,
        expected: impl ToString,
        found: impl ToString,
    ) -> Self {
        Self::Field {
            path: path.into(),
            field: one_line(field),
            expected: one_line(expected),
            found: one_line(found),
            hint: None,
        }
    }

    /// An [`Error::Unsupported`], without a hint.
    pub fn unsupported(path: impl Into<PathBuf>, what: impl ToString) -> Self {
        Self::Unsupported { path: path.into(), what: one_line(what), hint: None }
    }

    /// An [`Error::Library`].
    pub fn library(
        path: impl Into<PathBuf>,
        what: impl ToString,
        detail: impl ToString,
        kind: ErrorKind,
    ) -> Self {
        Self::Library { path: path.into(), what: one_line(what), detail: one_line(detail), kind }
    }

    /// An [`Error::Core`].
    pub fn core(path: impl Into<PathBuf>, source: rayspin_core::Error) -> Self {
        Self::Core { path: path.into(), source }
    }

    /// The same error with a word on what to do; variants whose cause says it already stay as they are.
    #[must_use]
    pub fn with_hint(mut self, text: impl ToString) -> Self {
        if let Self::NotThisFormat { hint, .. } | Self::Field { hint, .. } | Self::Unsupported { hint, .. } =
            &mut self
        {
            *hint = Some(one_line(text));
        }
        self
    }

    /// The file.
    pub fn path(&self) -> &Path {
        match self {
            Self::Open { path, .. }
            | Self::Read { path, .. }
            | Self::Write { path, .. }
            | Self::NotThisFormat { path, .. }
            | Self::Truncated { path, .. }
            | Self::Field { path, .. }
            | Self::Unsupported { path, .. }
            | Self::Library { path, .. }
            | Self::Core { path, .. } => path,
        }
    }

    /// What the user can do about it, in one line, where that is known.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NotThisFormat { hint, .. } | Self::Field { hint, .. } | Self::Unsupported { hint, .. } => {
                hint.clone()
            }
            Self::Open { source, .. } if source.kind() == io::ErrorKind::NotFound => {
                Some("check the path and its spelling".into())
            }
            Self::Write { path, source } => match source.kind() {
                io::ErrorKind::NotFound => {
                    Some(format!("make the folder {} first", Line(parent_folder(path))))
                }
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                    Some("free some space or write to another disk".into())
                }
                io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                    Some("choose a folder that you may write to".into())
                }
                _ => None,
            },
            Self::Truncated { .. } => Some("copy the file again; the copy may have been interrupted".into()),
            _ => None,
        }
    }

    /// Who is to act: the input (exit code 2) or the run (exit code 1).
    ///
    /// A file that cannot be opened is the input's fault, and so is an output whose folder does not exist; a
    /// full disk, a folder without permission and a read that breaks off are failures.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Open { .. }
            | Self::NotThisFormat { .. }
            | Self::Truncated { .. }
            | Self::Field { .. }
            | Self::Unsupported { .. } => ErrorKind::Input,
            Self::Read { source, .. } => match source.kind() {
                io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData | io::ErrorKind::IsADirectory => {
                    ErrorKind::Input
                }
                _ => ErrorKind::Failure,
            },
            Self::Write { source, .. } => match source.kind() {
                io::ErrorKind::NotFound
                | io::ErrorKind::NotADirectory
                | io::ErrorKind::IsADirectory
                | io::ErrorKind::InvalidInput
                | io::ErrorKind::InvalidFilename => ErrorKind::Input,
                _ => ErrorKind::Failure,
            },
            Self::Library { kind, .. } => *kind,
            Self::Core { source, .. } => source.kind(),
        }
    }
}

/// The name of a file without its folder.
pub(crate) fn name(file: &Path) -> String {
    file.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// The folder that holds `path`, `.` for a bare name.
pub(crate) fn parent_folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// `text` fit for one line of a terminal: control characters escaped, at most 300 characters.
pub(crate) fn one_line(text: impl ToString) -> String {
    const LONGEST: usize = 300;
    // Names of types and members come from files, and the HDF5 library does not check that they are Unicode.
    let text = String::from_utf8_lossy(text.to_string().as_bytes()).into_owned();
    let mut out = String::with_capacity(text.len().min(LONGEST + 4));
    for (count, c) in printable(&text).chars().enumerate() {
        if count == LONGEST {
            out.push('…');
            break;
        }
        out.push(c);
    }
    out
}

/// A path on one line.
struct Line<P: AsRef<Path>>(P);

impl<P: AsRef<Path>> fmt::Display for Line<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&printable(&self.0.as_ref().to_string_lossy()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_is_one_line_and_names_its_file() {
        let source = || io::Error::from(io::ErrorKind::NotFound);
        let core = rayspin_core::Error::value("matrix", "positive", 0);
        let errors = [
            Error::open("a.h5", source()),
            Error::read("a.h5", source()),
            Error::write("a.h5", source()),
            Error::not_this_format("a.h5", "HDF5", "text\nof two lines"),
            Error::truncated("a.h5", "data", 12, 7),
            Error::field("a.h5", "matrix\r\nSize", "1 to 65535", "x".repeat(5000)),
            Error::unsupported("a.h5", "compression"),
            Error::library("a.h5", "reading", "stack:\n #000", ErrorKind::Input),
            Error::core("a.h5", core),
        ];
        for error in errors {
            let text = error.to_string();
            assert!(text.starts_with("a.h5: "), "{text}");
            assert!(!text.contains('\n') && !text.contains('\r'), "{text}");
            assert!(text.chars().count() < 1000);
            assert_eq!(error.path(), Path::new("a.h5"));
        }
    }

    #[test]
    fn the_kind_tells_bad_input_from_a_failure() {
        let write = |kind: io::ErrorKind| Error::write("out/x.npy", io::Error::from(kind));
        assert_eq!(write(io::ErrorKind::NotFound).kind(), ErrorKind::Input);
        assert_eq!(write(io::ErrorKind::StorageFull).kind(), ErrorKind::Failure);
        assert_eq!(write(io::ErrorKind::PermissionDenied).kind(), ErrorKind::Failure);
        assert_eq!(write(io::ErrorKind::NotFound).hint().as_deref(), Some("make the folder out first"));
        let hinted = Error::field("a", "b", "c", "d").with_hint("do e");
        assert_eq!(hinted.hint().as_deref(), Some("do e"));
        assert_eq!(hinted.kind(), ErrorKind::Input);
    }
}
