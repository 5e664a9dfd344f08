//! The description of a file format, and the detection of a file's format.

use std::fmt;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use rayspin_core::{Geometry, Monitor};
use rayspin_mri::scan::Scan;
use serde::Serialize;

use crate::arrays::Arrays;
use crate::cfl::Layout;
use crate::element::{self, Element};
use crate::folder::Folder;
use crate::formats::FORMATS;
use crate::ismrmrd::Identity;
use crate::projections::Projections;
use crate::series_file::VolumeWriter;
use crate::{AnyImage, Error, Held, Input, NumberType, Result, Values, WriteOptions, input};

/// What a file's header says under a label.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Detail {
    /// Words.
    Text(String),
    /// A number of things.
    Count(usize),
    /// The sizes of an array.
    Sizes(Vec<usize>),
}

impl fmt::Display for Detail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Count(count) => count.fmt(f),
            Self::Sizes(sizes) => write!(f, "{sizes:?}"),
        }
    }
}

/// Lists what a file holds under names.
pub(crate) type ListNames = fn(&Path) -> Result<Vec<Held>>;

pub(crate) type Rows = Vec<(String, Detail)>;
type Describe = fn(&Path) -> Result<Rows>;
type ReadImage = fn(&Path, Option<&str>) -> Result<ImageRead>;
type OpenProjections = fn(&Path, Option<&str>) -> Result<Projections>;
/// A small file of a format, by name and bytes: the file that is read, and then the files that it leads to.
pub type Sample = Vec<(&'static str, Vec<u8>)>;
type WriteScan = fn(&Path, &Scan, Identity) -> Result<Vec<String>>;

/// A file format: how a file is recognised, what files hold, which functions read and write them, and what
/// files keep. The formats are the rows of [`FORMATS`].
pub struct Format {
    /// The name for people. No two formats share it.
    pub name: &'static str,
    /// What its files are, in a line.
    pub about: &'static str,
    /// How its files' names end, in lower case and with the dot: the endings to advise.
    pub endings: &'static [&'static str],
    /// Endings that are understood too.
    pub other_endings: &'static [&'static str],
    /// What its files keep of an image.
    pub keeps: &'static [Property],
    /// Places and the bytes that stand there; each of them tells the format.
    pub(crate) magic: &'static [(usize, &'static [u8])],
    /// Whether the bytes before the magic are for other programs, and may be the header of another format.
    pub(crate) preamble: bool,
    /// Whether its files may be compressed by gzip as a whole.
    pub(crate) gzip: bool,
    /// Whether the file is of this format by bytes that may stand anywhere in it.
    pub(crate) seek: Option<fn(&File) -> std::io::Result<bool>>,
    /// Whether a file that no magic tells is of this format, by one of its endings and its first bytes.
    pub(crate) guess: Option<fn(&str, &[u8]) -> bool>,
    /// The files that make up one, where they are several.
    pub(crate) parts: Option<fn(&Path) -> Vec<PathBuf>>,
    /// The other files that are read with one, where it may lead to such.
    pub(crate) linked: Option<fn(&Path) -> Vec<PathBuf>>,
    /// Whether a folder of such files is one image, too.
    pub(crate) folder: bool,
    /// What a file holds under names, where it may hold several arrays, series or scans.
    pub(crate) names: Option<ListNames>,
    /// Whether the text behind a colon describes a file, which has no header.
    pub(crate) described: bool,
    /// What the header says, under labels, where an image's geometry does not tell it.
    pub(crate) describe: Option<Describe>,
    /// Reads an image; the name chooses one of several.
    pub(crate) read_image: Option<ReadImage>,
    /// Writes images.
    pub images: Option<ImageWriter>,
    /// Arrays without a header: k-space, trajectories, maps.
    pub arrays: Option<Arrays>,
    /// Raw scans with a header.
    pub scans: Option<Scans>,
    /// Whether a file of this format holds a CT scan. Errors: a file that cannot be read.
    pub(crate) holds_projections: Option<fn(&Path) -> Result<bool>>,
    /// Opens a CT scan; the name chooses one of several.
    pub(crate) projections: Option<OpenProjections>,
    /// Small files of kinds that Rayspin reads and does not write. Tests of damaged files and fuzzers start from them, and from files that
    /// the row's own functions write.
    pub samples: fn() -> Vec<Sample>,
}

/// What a file keeps of an image beside its magnitudes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Property {
    /// Complex values.
    Phase,
    /// Voxel size and place in the patient, in mm.
    Geometry,
    /// What the numbers are: Hounsfield units or others.
    Unit,
    /// All volumes of a series.
    Repetitions,
    /// Time between volumes, in s.
    RepetitionTime,
}

impl Property {
    /// The name for people, with the unit.
    pub fn name(self) -> &'static str {
        match self {
            Self::Phase => "phase",
            Self::Geometry => "geometry (mm)",
            Self::Unit => "unit (HU)",
            Self::Repetitions => "repetitions",
            Self::RepetitionTime => "time between repetitions (s)",
        }
    }
}

/// An image as a format's reader has it.
pub(crate) struct ImageRead {
    pub(crate) image: AnyImage,
    pub(crate) layout: Layout,
    /// True if the file states Hounsfield units.
    pub(crate) hounsfield: bool,
    pub(crate) stored: NumberType,
    /// The time between repetitions in s, where the file states it.
    pub(crate) repetition_time_s: Option<f64>,
    pub(crate) notes: Vec<String>,
}

impl ImageRead {
    pub(crate) fn new(image: impl Into<AnyImage>, stored: impl Into<NumberType>, notes: Vec<String>) -> Self {
        let (image, stored) = (image.into(), stored.into());
        Self { image, layout: Layout::default(), hounsfield: false, stored, repetition_time_s: None, notes }
    }
}

/// How a format writes images.
pub struct ImageWriter {
    /// The numbers that it stores, the usual ones first; none in a picture.
    pub values: &'static [Values],
    /// The integers that it stores, the narrowest first.
    pub(crate) integers: &'static [Element],
    /// Whether it keeps a slope and an intercept of integers.
    pub scaled: bool,
    /// Whether the slices of a volume may come one after another.
    pub by_slices: bool,
    /// Where it writes a folder and no file: fails for an existing folder that may not be replaced.
    pub(crate) replaces: Option<fn(&Path) -> Result<()>>,
    /// Starts a file.
    pub(crate) create: fn(&Target<'_>) -> Result<Box<dyn VolumeWriter>>,
    /// Bytes that the writer holds, by the number of volumes and the bytes of each.
    pub(crate) memory: fn(u64, u64) -> u64,
}

impl ImageWriter {
    /// The integer types that it stores, as NumPy names them, the narrowest first.
    ///
    /// ```
    /// use rayspin_io::Format;
    /// let dicom = Format::of_name("head.dicom").unwrap().images.as_ref().unwrap();
    /// assert!(dicom.integers().eq(["int16"]));
    /// ```
    pub fn integers(&self) -> impl Iterator<Item = &'static str> {
        self.integers.iter().map(|element| element.name())
    }
}

/// A file of images to be written.
pub(crate) struct Target<'a> {
    pub(crate) path: &'a Path,
    /// `[z, y, x]` or `[repetition, z, y, x]`.
    pub(crate) shape: &'a [usize],
    pub(crate) geometry: &'a Geometry,
    pub(crate) values: Values,
    /// What is stored of real numbers, where it is integers.
    pub(crate) integers: Option<NumberType>,
    pub(crate) options: &'a WriteOptions,
}

impl Target<'_> {
    /// Each volume, `[z, y, x]`.
    pub(crate) fn volume(&self) -> [usize; 3] {
        let size = |from_last: usize| self.shape.iter().rev().nth(from_last).copied().unwrap_or(1);
        [size(2), size(1), size(0)]
    }

    /// The volumes of a series; none of a single image.
    pub(crate) fn repetitions(&self) -> Option<usize> {
        (self.shape.len() > 3).then(|| self.shape[0])
    }
}

/// How a format holds raw scans.
pub struct Scans {
    /// Whether this file holds one, and not images alone; or whether what the name chooses is one.
    pub(crate) holds: fn(&Path, Option<&str>) -> Result<bool>,
    /// Reads every acquisition; the name chooses one of several scans.
    pub(crate) read: fn(&Path, Option<&str>, &Monitor<'_>) -> Result<Scan>,
    /// Writes a scan; returns the header's elements that are left out.
    pub(crate) write: Option<WriteScan>,
}

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

    /// The ending of the name, where it is one of the format's.
    pub(crate) fn ending_of(&self, path: &Path) -> Option<&'static str> {
        let name = path.file_name()?.to_string_lossy().to_ascii_lowercase();
        let mut endings = self.endings.iter().chain(self.other_endings).copied();
        endings.find(|ending| name.len() > ending.len() && name.ends_with(ending))
    }

    /// Whether a file keeps this of an image.
    pub fn keeps(&self, what: Property) -> bool {
        self.keeps.contains(&what)
    }

    /// Whether images are read from it.
    pub fn reads_images(&self) -> bool {
        self.read_image.is_some()
    }

    /// Whether images are written in it, pictures included.
    pub fn writes_images(&self) -> bool {
        self.images.is_some()
    }

    /// Whether it is a picture to look at, without the numbers.
    pub fn is_picture(&self) -> bool {
        self.images.as_ref().is_some_and(|images| images.values.is_empty())
    }

    /// Whether it stores real numbers of either sign, such as a field map's.
    pub fn writes_signed(&self) -> bool {
        self.images.as_ref().is_some_and(|images| images.values.contains(&Values::Real))
    }

    /// Whether complex numbers are what it stores by default.
    pub fn writes_complex_first(&self) -> bool {
        self.images.as_ref().is_some_and(|images| images.values.first() == Some(&Values::Complex))
    }

    /// Whether arrays without a header are read from it.
    pub fn reads_arrays(&self) -> bool {
        self.arrays.is_some()
    }

    /// Whether sensitivity maps are written in it.
    pub fn writes_arrays(&self) -> bool {
        self.arrays.as_ref().is_some_and(|arrays| arrays.write.is_some())
    }

    /// Whether a folder of its files is read as one image.
    pub fn reads_folders(&self) -> bool {
        self.folder
    }

    /// Whether it writes a folder of files where other formats write a file.
    pub fn writes_folders(&self) -> bool {
        self.images.as_ref().is_some_and(|images| images.replaces.is_some())
    }

    /// Whether it stores integers of this type, by the name that NumPy has for it.
    pub fn stores(&self, integers: &str) -> bool {
        self.images.as_ref().is_some_and(|images| images.integers().any(|name| name == integers))
    }

    /// Whether raw scans with a header are read from it.
    pub fn reads_scans(&self) -> bool {
        self.scans.is_some()
    }

    /// Whether raw scans are written in it.
    pub fn writes_scans(&self) -> bool {
        self.scans.as_ref().is_some_and(|scans| scans.write.is_some())
    }

    /// Whether CT scans are read from it.
    pub fn reads_projections(&self) -> bool {
        self.projections.is_some()
    }

    /// Whether a file says what its numbers are; of others the text behind a colon says it.
    pub fn has_header(&self) -> bool {
        !self.described
    }

    /// Whether a file may hold several arrays, series or scans, each under a name.
    pub fn has_names(&self) -> bool {
        self.names.is_some()
    }

    fn has_magic(&self, start: &[u8]) -> Option<usize> {
        let at = |(at, magic): &&(usize, &[u8])| start.get(*at..).is_some_and(|rest| rest.starts_with(magic));
        self.magic.iter().find(at).map(|(at, _)| *at)
    }
}

impl PartialEq for Format {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Format {}

impl fmt::Debug for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// The first bytes of a gzip stream.
pub(crate) const GZIP: &[u8] = &[0x1f, 0x8b];

/// The endings to advise for formats that `of` chooses, in the order of [`FORMATS`].
///
/// ```
/// use rayspin_io::{Format, endings};
/// assert_eq!(endings(Format::writes_arrays), [".cfl", ".npy"]);
/// ```
pub fn endings(of: impl Fn(&Format) -> bool) -> Vec<&'static str> {
    FORMATS.iter().filter(|format| of(format)).flat_map(|format| format.endings).copied().collect()
}

/// `a, b or c`.
pub(crate) fn any_of(words: &[&str]) -> String {
    match words {
        [first @ .., last] if !first.is_empty() => format!("{} or {last}", first.join(", ")),
        _ => words.concat(),
    }
}

/// The format that the name of an output stands for. Errors: an ending of none that `of` chooses.
///
/// ```
/// use rayspin_io::{Format, expect_ending};
/// assert_eq!(expect_ending("out/image.nii.gz", Format::writes_images)?.name, "NIfTI");
/// assert!(expect_ending("out/image.jpg", Format::writes_images).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn expect_ending(path: impl AsRef<Path>, of: impl Fn(&Format) -> bool) -> Result<&'static Format> {
    let path = path.as_ref();
    Format::of_name(path).filter(|format| of(format)).ok_or_else(|| {
        let expected = format!("the ending {}", any_of(&endings(of)));
        let found = path.file_name().unwrap_or_default().to_string_lossy();
        Error::field(path, "name of the output", expected, found)
            .with_hint("the format of an output follows its name")
    })
}

/// The files that a path stands for: both files of a BART array for either name or the common one; every file of a folder that
/// is one image; otherwise the file itself ([`Input::file`]).
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

/// The files that are read for an input: its [`parts`], and the files that an HDF5 file leads to by external links, virtual data sets and
/// external storage.
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
pub(crate) fn complete(path: &Path) -> bool {
    of_common_name(path).is_some()
}

/// The format of several files whose common name, which is no file itself, `path` is.
fn of_common_name(path: &Path) -> Option<&'static Format> {
    let complete =
        |format: &&Format| format.parts.is_some_and(|of| of(path).iter().all(|part| part.is_file()));
    FORMATS.iter().filter(|_| !path.exists()).find(complete)
}

/// The format of a file, told by its first bytes; the name decides only where these do not tell it (`.cfl`, `.dat`). The common
/// name of several files that make up an array is recognised too, and a folder whose files are one image
/// ([`Format::reads_folders`]). A name after a colon ([`Input`]) is no part of the file's.
///
/// Errors: a file that cannot be opened or read, or of no format that Rayspin knows; a folder without such files, or with files of
/// several formats.
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
    let path = &Input::of(path).file;
    if let Some(format) = of_common_name(path) {
        return Ok(format);
    }
    if path.is_dir() {
        return Folder::open(path).map(|folder| folder.format);
    }
    let mut file = input::open(path)?;
    let mut start = [0; 1024];
    let got = element::fill(&mut file, &mut start).map_err(|e| Error::read(path, e))?;
    let start = &start[..got];
    if let Some(format) = of_content(start) {
        return Ok(format);
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
            return Ok(format);
        }
    }
    let guessed = |format: &&Format| {
        let (guess, ending) = (format.guess, format.ending_of(path));
        guess.zip(ending).is_some_and(|(guess, ending)| guess(ending, start))
    };
    let found = if start.is_empty() { "an empty file" } else { "another signature" };
    FORMATS.iter().find(guessed).ok_or_else(|| unknown(path, found))
}

/// The earliest magic decides: bytes farther on may be anything in another format. A format with a preamble comes first.
fn of_content(start: &[u8]) -> Option<&'static Format> {
    let after_preamble = |format: &&Format| format.preamble && format.has_magic(start).is_some();
    if let Some(format) = FORMATS.iter().find(after_preamble) {
        return Some(format);
    }
    let told = FORMATS.iter().filter_map(|format| Some((format.has_magic(start)?, format)));
    told.min_by_key(|(at, _)| *at).map(|(_, format)| format)
}

fn unknown(path: &Path, found: &str) -> Error {
    let names: Vec<&str> = FORMATS.iter().map(|format| format.name).collect();
    let error = Error::not_this_format(path, any_of(&names), found);
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
    detect(path)?.describe.map_or_else(|| Ok(Vec::new()), |describe| describe(path))
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
    detect(path)?.names.map_or_else(|| Ok(Vec::new()), |names| names(path))
}
