//! BART's `.cfl` arrays: complex single-precision numbers in a `.cfl` file, their dimensions in a `.hdr` file
//! beside it.
//!
//! An array has [`DIMS`] dimensions of fixed meaning ([`dim`]), the first varying fastest. In memory it is an
//! `ArrayD` with these sixteen axes in BART's order, in Fortran layout. [`Cartesian`] turns Cartesian
//! k-space, coil images and images into Rayspin's `[coil, z, y, x]`. Its [`Layout`] turns them back.
//! [`trajectory_from_bart`] and [`samples_from_bart`] do so for non-Cartesian data. Along TE, TIME, TIME2 and
//! SLICE lie the images of a series ([`ArraySeries`](crate::ArraySeries)).
//!
//! `.cfl` files hold no geometry.

mod cartesian;
pub(crate) mod images;
mod radial;

use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use ndarray::{ArrayD, ArrayViewD, IxDyn, ShapeBuilder};
use rayspin_core::C32;

use crate::atomic::{together, write_stream_atomically};
use crate::element::{self, ByteOrder, Element, Origin, Stop};
use crate::{Error, Result, opening};

pub use cartesian::{Axes, Cartesian, Layout};
pub use radial::{samples_from_bart, samples_to_bart, trajectory_from_bart, trajectory_to_bart};

/// Number of dimensions of a BART array.
pub const DIMS: usize = 16;

/// What BART's dimensions mean.
pub mod dim {
    /// Readout, x; for trajectories, the component kx, ky, kz.
    pub const READ: usize = 0;
    /// First phase encoding, y; samples of a readout in non-Cartesian data.
    pub const PHS1: usize = 1;
    /// Second phase encoding, z; spokes or shots in non-Cartesian data.
    pub const PHS2: usize = 2;
    /// Receiver channels.
    pub const COIL: usize = 3;
    /// Sets of sensitivities.
    pub const MAPS: usize = 4;
    /// Echoes.
    pub const TE: usize = 5;
    /// Subspace coefficients.
    pub const COEFF: usize = 6;
    /// Second subspace coefficients.
    pub const COEFF2: usize = 7;
    /// Iterations.
    pub const ITER: usize = 8;
    /// Chemical shift.
    pub const CSHIFT: usize = 9;
    /// Time.
    pub const TIME: usize = 10;
    /// Second time (cardiac phase, for example).
    pub const TIME2: usize = 11;
    /// Wavelet or resolution levels.
    pub const LEVEL: usize = 12;
    /// Slices.
    pub const SLICE: usize = 13;
    /// Averages.
    pub const AVG: usize = 14;
    /// Batches.
    pub const BATCH: usize = 15;

    /// Names in order.
    pub const NAMES: [&str; super::DIMS] = [
        "READ", "PHS1", "PHS2", "COIL", "MAPS", "TE", "COEFF", "COEFF2", "ITER", "CSHIFT", "TIME", "TIME2",
        "LEVEL", "SLICE", "AVG", "BATCH",
    ];
}

/// The `.cfl` and `.hdr` files of an array that is named by either of them or by their common name.
///
/// ```
/// let (data, header) = rayspin_io::cfl::file_pair("scans/head.hdr");
/// assert_eq!((data.to_str(), header.to_str()), (Some("scans/head.cfl"), Some("scans/head.hdr")));
/// ```
pub fn file_pair(path: impl AsRef<Path>) -> (PathBuf, PathBuf) {
    let path = path.as_ref();
    let extension = path.extension().and_then(OsStr::to_str);
    let base = match extension {
        Some("cfl" | "hdr") => path.with_extension(""),
        _ => path.to_owned(),
    };
    let with = |end: &str| {
        let mut name = base.clone().into_os_string();
        name.push(end);
        PathBuf::from(name)
    };
    (with(".cfl"), with(".hdr"))
}

/// The dimensions that the header states, all sixteen. Errors: as [`read`].
///
/// ```
/// use ndarray::ArrayD;
/// use rayspin_core::C32;
/// use rayspin_io::cfl;
///
/// # let folder = tempfile::tempdir()?;
/// let head = folder.path().join("head"); // head.hdr and head.cfl
/// cfl::write(&head, ArrayD::from_elem(vec![64, 32, 1, 8], C32::ONE).view())?;
/// let dims = cfl::read_dims(&head)?;
/// assert_eq!((dims.len(), dims[cfl::dim::READ], dims[cfl::dim::COIL]), (16, 64, 8));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn read_dims(path: impl AsRef<Path>) -> Result<[usize; DIMS]> {
    let (_, header) = file_pair(path);
    let file = opening::open(&header)?;
    let mut text = Vec::new();
    // Headers take a few hundred bytes; the commands recorded in them make some longer.
    file.take(1 << 20).read_to_end(&mut text).map_err(|e| Error::read(&header, e))?;
    parse_dims(&header, &String::from_utf8_lossy(&text))
}

fn parse_dims(path: &Path, text: &str) -> Result<[usize; DIMS]> {
    let mut lines = text.lines().map(str::trim);
    if !lines.any(|line| line.strip_prefix('#').is_some_and(|key| key.trim() == "Dimensions")) {
        return Err(Error::not_this_format(path, "a BART header with a `# Dimensions` line", "none"));
    }
    let line = lines.find(|line| !line.is_empty()).unwrap_or_default();
    let field = |expected: String, found: &str| Error::field(path, "Dimensions", expected, found);
    if line.is_empty() || line.starts_with('#') {
        return Err(field("numbers on the line below".into(), "none"));
    }
    let mut dims = [1; DIMS];
    for (index, word) in line.split_ascii_whitespace().enumerate() {
        let size: usize = word
            .parse()
            .ok()
            .filter(|&size| size > 0)
            .ok_or_else(|| field("positive whole numbers".into(), word))?;
        match dims.get_mut(index) {
            Some(dim) => *dim = size,
            None => return Err(field(format!("at most {DIMS} numbers"), "more")),
        }
    }
    Ok(dims)
}

/// Reads an array by the name of its `.cfl` file, its `.hdr` file or what both have in common.
///
/// Errors: either file missing, a header without dimensions or with numbers that are no sizes, dimensions
/// whose product exceeds the address space, and a `.cfl` file whose size is not eight bytes times their
/// product.
///
/// ```
/// use ndarray::ArrayD;
/// use rayspin_core::C32;
/// use rayspin_io::cfl;
///
/// # let folder = tempfile::tempdir()?;
/// let head = folder.path().join("head.cfl");
/// let array = ArrayD::from_shape_fn(vec![6, 5], |i| C32::new(i[0] as f32, i[1] as f32));
/// cfl::write(&head, array.view())?;
/// let found = cfl::read(&head)?;
/// assert_eq!((found.len(), found.iter().sum::<C32>()), (30, array.sum()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn read(path: impl AsRef<Path>) -> Result<ArrayD<C32>> {
    let (data, header) = file_pair(&path);
    let dims = read_dims(&path)?;
    let mut file = opening::open(&data)?;
    let count = expect_size(&file, &data, &header, &dims)?;
    let values = values(&mut file, &data, count, &dims)?;
    ArrayD::from_shape_vec(IxDyn(&dims).f(), values)
        .map_err(|e| Error::field(&header, "Dimensions", "a shape", e))
}

/// The numbers that the dimensions promise. Errors: a file of another size.
fn expect_size(file: &File, data: &Path, header: &Path, dims: &[usize; DIMS]) -> Result<usize> {
    let count = element::count(dims, 8).ok_or_else(|| {
        Error::field(header, "Dimensions", "a product that fits the address space", line(dims))
    })?;
    let length = file.metadata().map_err(|e| Error::read(data, e))?.len();
    let expected = count as u64 * 8;
    if length < expected {
        return Err(Error::truncated(data, "the array", promise(header, dims), format!("{length} bytes")));
    }
    if length > expected {
        return Err(Error::field(data, "file size", promise(header, dims), format!("{length} bytes"))
            .with_hint("check that the .hdr file belongs to the .cfl file"));
    }
    Ok(count)
}

/// `96 bytes for dimensions 4 3 1 … of head.hdr`
fn promise(header: &Path, dims: &[usize; DIMS]) -> String {
    let bytes = dims.iter().fold(8u64, |bytes, &size| bytes.saturating_mul(size as u64));
    format!("{bytes} bytes for dimensions {} of {}", line(dims), crate::error::name(header))
}

/// The next `count` numbers of a file.
fn values(file: &mut File, data: &Path, count: usize, dims: &[usize; DIMS]) -> Result<Vec<C32>> {
    let read = element::read(Origin::Stream(file), count, Element::C32, ByteOrder::Little, None);
    read.map(|numbers| numbers.values).map_err(|stop| match stop {
        Stop::Io(e) => Error::read(data, e),
        Stop::Memory(e) => Error::core(data, e),
        Stop::Short(got) => {
            let header = data.with_extension("hdr");
            Error::truncated(data, "the array", promise(&header, dims), format!("{got} bytes"))
        }
        Stop::Range(index) => Error::field(data, "value", "a single-precision number", index),
    })
}

/// Writes an array of at most sixteen axes in BART's order; missing ones are 1. `path` is as for [`read`];
/// both files are on the disk before they get their names, one right after the other.
///
/// Errors: more than sixteen axes, an empty axis, or files that cannot be written.
///
/// ```
/// use ndarray::{ArrayD, IxDyn};
/// use rayspin_core::C32;
/// use rayspin_io::cfl;
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("kspace.cfl");
/// // READ PHS1 PHS2 COIL
/// let array = ArrayD::from_elem(IxDyn(&[6, 5, 1, 8]), C32::ONE);
/// cfl::write(&path, array.view())?;
/// assert_eq!(cfl::read_dims(&path)?[..4], [6, 5, 1, 8]);
/// assert_eq!(cfl::read(&path)?.len(), array.len());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn write(path: impl AsRef<Path>, array: ArrayViewD<'_, C32>) -> Result<()> {
    let (data, header) = file_pair(path);
    if array.ndim() > DIMS || array.is_empty() {
        let found = rayspin_core::format_shape(array.shape());
        let expected = format!("at most {DIMS} axes, none empty");
        return Err(Error::field(&header, "Dimensions", expected, found));
    }
    let mut dims = [1; DIMS];
    dims[..array.ndim()].copy_from_slice(array.shape());
    together(|| {
        write_stream_atomically(&data, |file| {
            // Logical order of the reversed axes is Fortran order of these.
            for value in array.t() {
                file.write_all(&value.re.to_le_bytes())?;
                file.write_all(&value.im.to_le_bytes())?;
            }
            Ok(())
        })?;
        write_header(&header, &dims)
    })
}

pub(crate) fn write_header(path: &Path, dims: &[usize; DIMS]) -> Result<()> {
    write_stream_atomically(path, |file| writeln!(file, "# Dimensions\n{}", line(dims)))
}

fn line(dims: &[usize; DIMS]) -> String {
    dims.map(|d| d.to_string()).join(" ")
}
