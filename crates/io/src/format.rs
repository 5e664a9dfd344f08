use std::fmt;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use flate2::read::GzDecoder;

use crate::{Error, Result, cfl, element, nifti, npy};

/// The format of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// NIfTI-1, compressed or not.
    Nifti,
    /// A NumPy array.
    Npy,
    /// A NumPy archive of arrays.
    Npz,
    /// BART's pair of `.cfl` and `.hdr`.
    Cfl,
    /// A PNG picture.
    Png,
    /// HDF5: ISMRMRD scans and images.
    Hdf5,
    /// Siemens raw data (twix), VB or VD/VE.
    Twix,
}

impl Format {
    /// Every format that has an ending of its own, with it.
    const ENDINGS: [(&'static str, Self); 9] = [
        (".nii", Self::Nifti),
        (".nii.gz", Self::Nifti),
        (".npy", Self::Npy),
        (".npz", Self::Npz),
        (".cfl", Self::Cfl),
        (".hdr", Self::Cfl),
        (".png", Self::Png),
        (".h5", Self::Hdf5),
        (".mrd", Self::Hdf5),
    ];

    /// The format that a name's ending stands for, whatever the case.
    ///
    /// ```
    /// use rayspin_io::Format;
    /// assert_eq!(Format::of_name("out/Head.NII.gz"), Some(Format::Nifti));
    /// assert_eq!(Format::of_name("head.gz"), None);
    /// ```
    pub fn of_name(path: impl AsRef<Path>) -> Option<Self> {
        let name = path.as_ref().file_name()?.to_string_lossy().to_ascii_lowercase();
        Self::ENDINGS
            .iter()
            .find(|(ending, _)| name.len() > ending.len() && name.ends_with(ending))
            .map(|(_, format)| *format)
    }

    /// The name for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Nifti => "NIfTI",
            Self::Npy => "NumPy array",
            Self::Npz => "NumPy archive",
            Self::Cfl => "BART array",
            Self::Png => "PNG picture",
            Self::Hdf5 => "HDF5 (ISMRMRD)",
            Self::Twix => "Siemens raw data",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

const HDF5: &[u8] = b"\x89HDF\r\n\x1a\n";
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";
const ZIP: [&[u8]; 2] = [b"PK\x03\x04", b"PK\x05\x06"];

/// The format of a file, told by its first bytes; the name decides only for formats without a signature (`.cfl`, `.dat`).
/// The common name of a BART pair, which is no file itself, is recognised too.
///
/// Errors: a file that cannot be opened or read, or of no format that Rayspin knows.
pub fn detect(path: impl AsRef<Path>) -> Result<Format> {
    let path = path.as_ref();
    if !path.exists() && cfl::exists(path) {
        return Ok(Format::Cfl);
    }
    let mut file = File::open(path).map_err(|e| Error::open(path, e))?;
    let mut start = [0; 1024];
    let got = element::fill(&mut file, &mut start).map_err(|e| Error::read(path, e))?;
    let start = &start[..got];
    if let Some(format) = of_content(start) {
        return Ok(format);
    }
    if start.starts_with(nifti::GZIP) {
        file.seek(SeekFrom::Start(0)).map_err(|e| Error::read(path, e))?;
        let mut inner = [0; 348];
        // Damage shows when the file is read; here it only means that nothing is recognised.
        let got = element::fill(&mut GzDecoder::new(file).take(348), &mut inner).unwrap_or(0);
        if is_nifti(&inner[..got]) || Format::of_name(path) == Some(Format::Nifti) {
            return Ok(Format::Nifti);
        }
        return Err(unknown(path, "a gzip stream without a NIfTI header"));
    }
    let lower = path.extension().map(|e| e.to_string_lossy().to_ascii_lowercase());
    match lower.as_deref() {
        Some("cfl") => Ok(Format::Cfl),
        Some("dat") if is_twix(start) => Ok(Format::Twix),
        _ if start.is_empty() => Err(unknown(path, "an empty file")),
        _ => Err(unknown(path, "another signature")),
    }
}

fn unknown(path: &Path, found: &str) -> Error {
    Error::not_this_format(path, "HDF5 (ISMRMRD), NIfTI, NumPy, BART, PNG or Siemens raw data", found)
}

fn of_content(start: &[u8]) -> Option<Format> {
    // A user block moves the HDF5 signature to a later power of two.
    if start.starts_with(HDF5) || start.get(512..).is_some_and(|rest| rest.starts_with(HDF5)) {
        Some(Format::Hdf5)
    } else if start.starts_with(PNG) {
        Some(Format::Png)
    } else if start.starts_with(npy::MAGIC) {
        Some(Format::Npy)
    } else if ZIP.iter().any(|magic| start.starts_with(magic)) {
        Some(Format::Npz)
    } else if is_nifti(start) {
        Some(Format::Nifti)
    } else if start.starts_with(b"# Dimensions") {
        Some(Format::Cfl)
    } else {
        None
    }
}

/// NIfTI-1 by its magic, NIfTI-2 by the size of its header.
fn is_nifti(start: &[u8]) -> bool {
    let size = start.first_chunk::<4>().map(|b| [i32::from_le_bytes(*b), i32::from_be_bytes(*b)]);
    let magic = start.get(344..348);
    magic == Some(b"n+1\0")
        || magic == Some(b"ni1\0")
        || (size.is_some_and(|s| s.contains(&540)) && matches!(start.get(4..8), Some(b"n+2\0" | b"ni2\0")))
}

/// VD and VE files start with a count below 10000 and a number of measurements of at most 64; VB files with the length of
/// their header, which is beyond 1024, and the number of its parts.
fn is_twix(start: &[u8]) -> bool {
    let word = |at: usize| {
        let bytes = start.get(at..at + 4)?;
        bytes.first_chunk::<4>().map(|b| u32::from_le_bytes(*b))
    };
    match (word(0), word(4)) {
        (Some(first), Some(second)) => {
            (first < 10_000 && (1..=64).contains(&second)) || (first > 10_000 && (1..=32).contains(&second))
        }
        _ => false,
    }
}
