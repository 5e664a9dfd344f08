//! The description of a file format: what a row of the table states, and what its functions take and give.

use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};

use rayspin_core::{Geometry, Monitor};
use rayspin_scan::mri::Scan;
use serde::Serialize;

use crate::arrays::Arrays;
use crate::cfl::Layout;
use crate::element::Element;
use crate::folder::Folder;
use crate::identity::Identity;
use crate::projections::Projections;
use crate::scan_reader::ScanReader;
use crate::{AnyImage, Held, Modality, NumberType, Result, Slices, Values, WriteOptions};

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
type OpenScan = fn(&Path, Option<&str>, &Monitor<'_>) -> Result<Box<dyn ScanReader>>;
type WriteScan = fn(&Path, &Scan, Identity) -> Result<Vec<String>>;

/// A file format: how a file is recognised, what files hold, which functions read and write them, and what
/// files keep. The formats are the rows of [`FORMATS`](crate::FORMATS).
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
    /// Where its files are files of another format too, by what they hold.
    pub(crate) inside: Option<Inside>,
    /// Whether a file that no magic tells is of this format, by one of its endings and its first bytes.
    pub(crate) guess: Option<fn(&str, &[u8]) -> bool>,
    /// Whether a file or a folder is of this format by its name and by what lies beside it or within.
    pub(crate) place: Option<fn(&Path) -> bool>,
    /// The files that make up one, where they are several.
    pub(crate) parts: Option<fn(&Path) -> Vec<PathBuf>>,
    /// The other files that are read with one, where it may lead to such.
    pub(crate) linked: Option<fn(&Path) -> Vec<PathBuf>>,
    /// How a folder of such files is read as one image, where it is one.
    pub(crate) folder: Option<Folders>,
    /// What a file holds under names, where it may hold several arrays, series or scans.
    pub(crate) names: Option<ListNames>,
    /// Whether the last of these is read where no name is given.
    pub(crate) takes_last: bool,
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
    /// Small files of kinds that Rayspin reads and does not write. Tests of damaged files and fuzzers start
    /// from them, and from files that the row's own functions write.
    pub samples: fn() -> Vec<Sample>,
}

/// What tells the files of a format from files of another format that begin alike.
pub(crate) struct Inside {
    /// The name of the other format.
    pub(crate) of: &'static str,
    /// Whether a file of the other format is one.
    pub(crate) holds: fn(&Path) -> bool,
}

type ListFolder = fn(&Folder) -> Result<Vec<Held>>;

/// How a folder of a format's files is read as one image.
pub(crate) struct Folders {
    /// Reads the image; the name chooses one of several.
    pub(crate) image: fn(&Folder, Option<&str>) -> Result<ImageRead>,
    /// What the files hold under names, where they may hold several images.
    pub(crate) names: Option<ListFolder>,
    /// What the files' headers say, under labels.
    pub(crate) describe: Option<fn(&Folder) -> Result<Rows>>,
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
    /// What made it, where the file states it.
    pub(crate) modality: Option<Modality>,
    pub(crate) stored: NumberType,
    /// The time between repetitions in s, where the file states it.
    pub(crate) repetition_time_s: Option<f64>,
    pub(crate) notes: Vec<String>,
}

impl ImageRead {
    pub(crate) fn new(image: impl Into<AnyImage>, stored: impl Into<NumberType>, notes: Vec<String>) -> Self {
        let (image, stored) = (image.into(), stored.into());
        Self {
            image,
            layout: Layout::default(),
            hounsfield: false,
            modality: None,
            stored,
            repetition_time_s: None,
            notes,
        }
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
    /// Whether it states where an image comes from ([`WriteOptions::origin`]).
    pub states_origin: bool,
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

/// A file in the making, as a format's module writes it. Dropped unfinished it leaves nothing.
pub(crate) trait VolumeWriter: Send {
    /// Appends slices `[z, y, x]`: whole volumes, or parts of one where
    /// [`ImageWriter::by_slices`](crate::ImageWriter) says so.
    fn push(&mut self, slices: &Slices<'_>) -> Result<()>;

    /// Ends the file under `path` after `frames` volumes: the name and the number that it was made for, or
    /// fewer under another name in the same folder. Returns what a reader of the file does not see.
    fn finish(self: Box<Self>, path: &Path, frames: usize) -> Result<Option<String>>;
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
    /// Opens a scan; the name chooses one of several.
    pub(crate) open: OpenScan,
    /// Writes a scan; returns the header's elements that are left out.
    pub(crate) write: Option<WriteScan>,
}

impl Format {
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

    /// The format whose files its files are too; the ending of a name stands for that format.
    ///
    /// ```
    /// use rayspin_io::FORMATS;
    /// let inside: Vec<&str> = FORMATS.iter().filter_map(|format| format.inside()).collect();
    /// assert!(inside.iter().all(|of| FORMATS.iter().any(|format| format.name == *of)));
    /// ```
    pub fn inside(&self) -> Option<&'static str> {
        self.inside.as_ref().map(|inside| inside.of)
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
        self.folder.is_some()
    }

    /// Whether it writes a folder of files where other formats write a file.
    pub fn writes_folders(&self) -> bool {
        self.images.as_ref().is_some_and(|images| images.replaces.is_some())
    }

    /// Whether it states where an image comes from: the modality, the scan, the patient.
    pub fn states_origin(&self) -> bool {
        self.images.as_ref().is_some_and(|images| images.states_origin)
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

    /// Whether a file says what its numbers are. For other files, the text after a colon says it.
    pub fn has_header(&self) -> bool {
        !self.described
    }

    /// Whether a file may hold several arrays, series or scans, each under a name.
    pub fn has_names(&self) -> bool {
        self.names.is_some()
    }

    /// Whether the last of several scans is read where no name is given.
    pub fn takes_last(&self) -> bool {
        self.takes_last
    }

    pub(crate) fn has_magic(&self, start: &[u8]) -> Option<usize> {
        let is_there = |(offset, magic): &&(usize, &[u8])| {
            start.get(*offset..).is_some_and(|rest| rest.starts_with(magic))
        };
        self.magic.iter().find(is_there).map(|(offset, _)| *offset)
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

/// `a, b or c`.
pub(crate) fn any_of(words: &[&str]) -> String {
    match words {
        [first @ .., last] if !first.is_empty() => format!("{} or {last}", first.join(", ")),
        _ => words.concat(),
    }
}
