//! The detection of a file's format.

mod folder;
mod input;

use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;

use crate::folder::Folder;
use crate::format::{Detail, Format, GZIP, any_of};
use crate::formats::FORMATS;
use crate::{Error, Held, Result, element, opening, vendors};

pub use folder::replaces_folder;
pub use input::Input;

impl Format {
    /// The format that a name's ending stands for, whatever the case.
    ///
    /// ```
    /// use rayspin_io::Format;
    /// assert_eq!(Format::of_name("out/Head.NII.gz").unwrap().name, "NIfTI");
    /// assert_eq!(Format::of_name("head.gz"), None);
    /// ```
    pub fn of_name(path: impl AsRef<Path>) -> Option<&'static Self> {
        FORMATS.iter().find(|format| format.ending_of(path.as_ref()).is_some())
    }
}

/// The endings to advise for formats that `fits` chooses, in the order of [`FORMATS`].
///
/// ```
/// use rayspin_io::{Format, endings};
/// assert_eq!(endings(Format::writes_arrays), [".cfl", ".npy"]);
/// ```
pub fn endings(fits: impl Fn(&Format) -> bool) -> Vec<&'static str> {
    FORMATS.iter().filter(|format| fits(format)).flat_map(|format| format.endings).copied().collect()
}

/// The format that the name of an output stands for. Errors: an ending of none that `fits` chooses.
///
/// ```
/// use rayspin_io::{Format, expect_ending};
/// assert_eq!(expect_ending("out/image.nii.gz", Format::writes_images)?.name, "NIfTI");
/// assert!(expect_ending("out/image.jpg", Format::writes_images).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn expect_ending(path: impl AsRef<Path>, fits: impl Fn(&Format) -> bool) -> Result<&'static Format> {
    let path = path.as_ref();
    Format::of_name(path).filter(|format| fits(format)).ok_or_else(|| {
        let expected = format!("the ending {}", any_of(&endings(fits)));
        let found = path.file_name().unwrap_or_default().to_string_lossy();
        Error::field(path, "name of the output", expected, found)
            .with_hint("the format of an output follows its name")
    })
}

/// The files that a path stands for: both files of a BART array for either name or the common one; every file
/// of a folder that is one image; the raw data of a scan and the parameters beside them; otherwise the file
/// itself ([`Input::file`]).
///
/// ```
/// use ndarray::ArrayD;
/// use rayspin_core::C32;
/// use rayspin_io::{cfl, parts};
///
/// # let folder = tempfile::tempdir()?;
/// let head = folder.path().join("head");
/// cfl::write(&head, ArrayD::from_elem(vec![6, 5], C32::ONE).view())?;
/// assert_eq!(parts(&head).len(), 2); // head.cfl and head.hdr
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn parts(path: impl AsRef<Path>) -> Vec<PathBuf> {
    let path = Input::of(path).file;
    if let Some(Format { parts: Some(parts), .. }) = of_place(&path) {
        return parts(&path);
    }
    if path.is_dir()
        && let Ok(folder) = Folder::open(&path)
    {
        return folder.files;
    }
    match Format::of_name(&path).or_else(|| of_common_name(&path)).and_then(|format| format.parts) {
        Some(parts) => parts(&path),
        None => vec![path],
    }
}

/// The files that are read for an input: its [`parts`], and the files that an HDF5 file leads to by external
/// links, virtual data sets and external storage.
///
/// ```
/// use rayspin_io::sources;
///
/// # let folder = tempfile::tempdir()?;
/// let scan = folder.path().join("scan.npy");
/// std::fs::write(&scan, "")?;
/// assert_eq!(sources(&scan), [scan]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn sources(path: impl AsRef<Path>) -> Vec<PathBuf> {
    let path = path.as_ref();
    let mut files = parts(path);
    if let Ok(Format { linked: Some(linked), .. }) = detect(path) {
        files.extend(linked(&Input::of(path).file));
    }
    files
}

/// Whether `path` is the common name of several files that make up an array.
fn complete(path: &Path) -> bool {
    of_common_name(path).is_some()
}

/// The format of several files whose common name, which is no file itself, `path` is.
fn of_common_name(path: &Path) -> Option<&'static Format> {
    let complete =
        |format: &&Format| format.parts.is_some_and(|parts| parts(path).iter().all(|part| part.is_file()));
    FORMATS.iter().filter(|_| !path.exists()).find(complete)
}

/// The format of a file, told by its first bytes; the name decides only where these do not tell it (`.cfl`,
/// `.dat`). The common name of several files that make up an array is recognised too, and a folder whose
/// files are one image ([`Format::reads_folders`]) or a scan. A name after a colon ([`Input`]) is no part of
/// the file's.
///
/// Errors: a file that cannot be opened or read, or of no format that Rayspin knows; a folder without such
/// files, or with files of several formats.
///
/// ```
/// use ndarray::array;
/// use rayspin_io::{detect, npy};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("a.npy");
/// npy::write(&path, array![1.0, 2.0].view())?;
/// assert!(detect(&path)?.reads_arrays());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn detect(path: impl AsRef<Path>) -> Result<&'static Format> {
    Found::of(&Input::of(path).file).map(|detected| detected.format())
}

/// What is at a path.
pub(crate) enum Found {
    /// A file of this format.
    File(&'static Format),
    /// A folder whose files are one image.
    Folder(Folder),
}

impl Found {
    /// Errors: as [`detect`].
    pub(crate) fn of(path: &Path) -> Result<Self> {
        match of_place(path).or_else(|| of_common_name(path)) {
            None if path.is_dir() => Folder::open(path).map(Self::Folder),
            None => of_file(path).map(Self::File),
            Some(format) => Ok(Self::File(format)),
        }
    }

    /// The format of the file, or of the folder's files.
    pub(crate) fn format(&self) -> &'static Format {
        match self {
            Self::File(format) => format,
            Self::Folder(folder) => folder.format,
        }
    }
}

/// The format of a file or a folder that its name and what lies beside it or within tell.
fn of_place(path: &Path) -> Option<&'static Format> {
    FORMATS.iter().find(|format| format.place.is_some_and(|place| place(path)))
}

fn of_file(path: &Path) -> Result<&'static Format> {
    let mut file = opening::open(path)?;
    let mut start = [0; 1024];
    let got = element::fill(&mut file, &mut start).map_err(|e| Error::read(path, e))?;
    let start = &start[..got];
    if let Some(format) = of_content(start) {
        return Ok(refined(format, path));
    }
    if start.starts_with(GZIP) {
        file.seek(SeekFrom::Start(0)).map_err(|e| Error::read(path, e))?;
        let mut inner = [0; 1024];
        // Damage shows when the file is read; here it only means that nothing is recognised.
        let got = element::fill(&mut GzDecoder::new(file).take(1024), &mut inner).unwrap_or(0);
        let told = of_content(&inner[..got]).or_else(|| Format::of_name(path));
        return told.filter(|format| format.gzip).ok_or_else(|| {
            let names: Vec<&str> = FORMATS.iter().filter(|f| f.gzip).map(|f| f.name).collect();
            unknown(path, &format!("a gzip stream without {}", any_of(&names)))
        });
    }
    for format in &FORMATS {
        if let Some(seek) = format.seek
            && seek(&file).map_err(|e| Error::read(path, e))?
        {
            return Ok(refined(format, path));
        }
    }
    let guessed = |format: &&Format| {
        let (guess, ending) = (format.guess, format.ending_of(path));
        guess.zip(ending).is_some_and(|(guess, ending)| guess(ending, start))
    };
    let found = if start.is_empty() { "an empty file" } else { "another signature" };
    FORMATS.iter().find(guessed).ok_or_else(|| unknown(path, found))
}

/// The format of what a file of `format` holds, where that is another.
fn refined(format: &'static Format, path: &Path) -> &'static Format {
    let is = |other: &&Format| {
        other.inside.as_ref().is_some_and(|inside| inside.of == format.name && (inside.holds)(path))
    };
    FORMATS.iter().find(is).unwrap_or(format)
}

/// The earliest magic decides: bytes farther on may be anything in another format. A format with a preamble
/// comes first.
fn of_content(start: &[u8]) -> Option<&'static Format> {
    let after_preamble = |format: &&Format| format.preamble && format.has_magic(start).is_some();
    if let Some(format) = FORMATS.iter().find(after_preamble) {
        return Some(format);
    }
    let told = FORMATS.iter().filter_map(|format| Some((format.has_magic(start)?, format)));
    told.min_by_key(|(offset, _)| *offset).map(|(_, format)| format)
}

fn unknown(path: &Path, found: &str) -> Error {
    let names: Vec<&str> = FORMATS.iter().map(|format| format.name).collect();
    let error = Error::not_this_format(path, any_of(&names), found);
    if let Some(hint) = vendors::converter(path) {
        return error.with_hint(hint);
    }
    let header = path.with_extension("hdr");
    match path.extension() {
        Some(ending) if ending == "img" && header.is_file() => error.with_hint(format!(
            "{} seems to be its header: convert both to a single .nii file",
            header.display()
        )),
        _ => error,
    }
}

/// What the header of a file says, under labels; nothing of formats whose images and scans tell it.
///
/// Errors: as [`detect`], and errors of the format's reader.
///
/// ```
/// use ndarray::array;
/// use rayspin_io::{Detail, describe, npy};
///
/// # let folder = tempfile::tempdir()?;
/// let file = folder.path().join("a.npy");
/// npy::write(&file, array![[1.0f32, 2.0, 3.0]].view())?;
/// let header = describe(&file)?;
/// assert!(header.iter().any(|(_, detail)| *detail == Detail::Sizes(vec![1, 3])));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn describe(path: impl AsRef<Path>) -> Result<Vec<(String, Detail)>> {
    let path = &Input::of(path).file;
    let none = || Ok(Vec::new());
    match Found::of(path)? {
        Found::File(format) => format.describe.map_or_else(none, |describe| describe(path)),
        Found::Folder(folder) => {
            let of_folder = folder.format.folder.as_ref().and_then(|of_folder| of_folder.describe);
            of_folder.map_or_else(none, |describe| describe(&folder))
        }
    }
}

/// What a file holds under names; none in a format whose files hold one thing. Errors: as [`describe`].
///
/// ```
/// use ndarray::array;
/// use rayspin_io::names;
///
/// # let folder = tempfile::tempdir()?;
/// let file = folder.path().join("both.npz");
/// let mut archive = ndarray_npy::NpzWriter::new(std::fs::File::create(&file)?);
/// archive.add_array("kspace", &array![1.0f32, 2.0])?;
/// archive.add_array("trajectory", &array![0.5f64])?;
/// archive.finish()?;
/// let held: Vec<String> = names(&file)?.into_iter().map(|held| held.name).collect();
/// assert_eq!(held, ["kspace", "trajectory"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn names(path: impl AsRef<Path>) -> Result<Vec<Held>> {
    let path = &Input::of(path).file;
    let none = || Ok(Vec::new());
    match Found::of(path)? {
        Found::File(format) => format.names.map_or_else(none, |names| names(path)),
        Found::Folder(folder) => {
            let of_folder = folder.format.folder.as_ref().and_then(|of_folder| of_folder.names);
            of_folder.map_or_else(none, |names| names(&folder))
        }
    }
}
