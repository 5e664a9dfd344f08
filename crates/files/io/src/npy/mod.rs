//! NumPy's `.npy` arrays and `.npz` archives of them.
//!
//! Read: booleans, integers of 8 to 64 bits, floats of 16 to 64 bits and complex numbers of 64 and 128 bits,
//! in C or Fortran order and in either byte order. Structured, text and object arrays are refused. Written: C
//! order, little-endian. Neither holds geometry.

pub(crate) mod row;
mod series;
mod stream;

pub use stream::NpyStream;

use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Seek};
use std::path::Path;

use ndarray::{ArrayD, ArrayView, Dimension, IxDyn, ShapeBuilder};
use ndarray_npy::npy::header::{Header, Layout};
use ndarray_npy::{WritableElement, WriteNpyExt};
use rayspin_core::{C32, ErrorKind, Geometry, Image, format_shape};
use zip::ZipArchive;

use crate::arrays::Numbers;
use crate::atomic::write_atomically;
use crate::element::{self, ByteOrder, Element, Origin, Stop, Value};
use crate::format::ImageRead;
use crate::{AnyImage, Error, NumberType, Result, opening};

/// What a `.npy` file holds, without its values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Description {
    /// Shape; axes in the order of the file's owner.
    pub shape: Vec<usize>,
    /// NumPy's name of the number type, such as `<c8`.
    pub descr: String,
    /// Whether the first axis varies fastest in the file.
    pub fortran_order: bool,
}

/// A header that has been checked: the element, the byte order and the number of elements are sound.
struct Checked {
    description: Description,
    element: Element,
    order: ByteOrder,
    count: usize,
}

/// What the `.npy` file at `path` holds. Errors: as [`read_complex`], short of the values.
///
/// ```
/// use ndarray::Array2;
/// use rayspin_core::C32;
/// use rayspin_io::npy;
///
/// # let folder = tempfile::tempdir()?;
/// let file = folder.path().join("a.npy");
/// npy::write(&file, Array2::from_elem((4, 3), C32::ONE).view())?;
/// let found = npy::describe(&file)?;
/// assert_eq!((found.shape, found.descr.as_str(), found.fortran_order), (vec![4, 3], "<c8", false));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn describe(path: impl AsRef<Path>) -> Result<Description> {
    let path = path.as_ref();
    let mut file = open(path)?;
    Ok(read_header(path, "header", &mut file)?.description)
}

/// Reads a `.npy` file of real or complex numbers as complex ones; an array in Fortran order keeps that
/// layout in memory.
///
/// Errors: another format, a number type that is none of the above, a file shorter or longer than its header
/// promises, or a value beyond single precision.
///
/// ```
/// use ndarray::array;
/// use rayspin_core::C32;
/// use rayspin_io::npy;
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("a.npy");
/// npy::write(&path, array![C32::i(), C32::ONE].view())?;
/// assert_eq!(npy::read_complex(&path)?[0], C32::i());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn read_complex(path: impl AsRef<Path>) -> Result<ArrayD<C32>> {
    read_file(path.as_ref(), Numbers::Any)
}

/// Reads a `.npy` file of real numbers in double precision. Errors: complex numbers, and as [`read_complex`].
///
/// ```
/// use ndarray::array;
/// use rayspin_io::npy;
///
/// # let folder = tempfile::tempdir()?;
/// let file = folder.path().join("times.npy");
/// let times = array![0.0, 0.1, 0.3].into_dyn(); // keeps double precision
/// npy::write(&file, times.view())?;
/// assert_eq!(npy::read_real(&file)?, times);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn read_real(path: impl AsRef<Path>) -> Result<ArrayD<f64>> {
    read_file(path.as_ref(), Numbers::Real)
}

/// Writes an array in C order, whatever its layout in memory. Errors: a file that cannot be written.
///
/// ```
/// use ndarray::array;
/// use rayspin_io::npy;
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("a.npy");
/// npy::write(&path, array![[1.0, 2.0], [3.0, 4.0]].view())?;
/// assert_eq!(npy::read_real(&path)?[[1, 0]], 3.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn write<T: WritableElement + Copy, D: Dimension>(
    path: impl AsRef<Path>,
    array: ArrayView<'_, T, D>,
) -> Result<()> {
    let path = path.as_ref();
    write_atomically(path, |temporary| {
        let fail = |e| Error::write(path, e);
        let file = File::options().write(true).truncate(true).open(temporary).map_err(fail)?;
        // The writer flushes before it returns.
        array.as_standard_layout().write_npy(BufWriter::with_capacity(1 << 20, file)).map_err(|e| match e {
            ndarray_npy::WriteNpyError::Io(e) => Error::write(path, e),
            other => Error::library(path, "writing the array", other, ErrorKind::Failure),
        })
    })
}

/// Names of the arrays in an `.npz` archive, in its order, without their `.npy` ending. Errors: another
/// format.
///
/// ```
/// use ndarray::array;
/// use rayspin_io::npy::npz_names;
///
/// # let folder = tempfile::tempdir()?;
/// let file = folder.path().join("both.npz");
/// let mut archive = ndarray_npy::NpzWriter::new(std::fs::File::create(&file)?);
/// archive.add_array("kspace", &array![1.0f32, 2.0])?;
/// archive.add_array("times", &array![0.5f64])?;
/// archive.finish()?;
/// assert_eq!(npz_names(&file)?, ["kspace", "times"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn npz_names(path: impl AsRef<Path>) -> Result<Vec<String>> {
    Ok(archive_names(&open_archive(path.as_ref())?))
}

/// Reads one array of an `.npz` archive as complex numbers; without a name, the archive must hold just one.
///
/// Errors: no array of that name, several and no name, and as [`read_complex`].
///
/// ```
/// use ndarray::array;
/// use rayspin_core::C32;
/// use rayspin_io::npy::read_npz_complex;
///
/// # let folder = tempfile::tempdir()?;
/// let file = folder.path().join("both.npz");
/// let mut archive = ndarray_npy::NpzWriter::new(std::fs::File::create(&file)?);
/// archive.add_array("kspace", &array![C32::I, C32::ONE])?;
/// archive.add_array("times", &array![0.5f64])?;
/// archive.finish()?;
/// assert_eq!(read_npz_complex(&file, Some("kspace"))?, array![C32::I, C32::ONE].into_dyn());
/// assert!(read_npz_complex(&file, None).is_err()); // two arrays, and no name
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn read_npz_complex(path: impl AsRef<Path>, name: Option<&str>) -> Result<ArrayD<C32>> {
    read_entry(path.as_ref(), name, Numbers::Any)
}

/// Reads one array of an `.npz` archive as real numbers. Errors: complex numbers, and as
/// [`read_npz_complex`].
///
/// ```
/// use ndarray::array;
/// use rayspin_io::npy::read_npz_real;
///
/// # let folder = tempfile::tempdir()?;
/// let file = folder.path().join("one.npz");
/// let mut archive = ndarray_npy::NpzWriter::new(std::fs::File::create(&file)?);
/// archive.add_array("times", &array![0.1f64, 0.3])?;
/// archive.finish()?;
/// assert_eq!(read_npz_real(&file, None)?, array![0.1, 0.3].into_dyn()); // the only one
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn read_npz_real(path: impl AsRef<Path>, name: Option<&str>) -> Result<ArrayD<f64>> {
    read_entry(path.as_ref(), name, Numbers::Real)
}

fn open(path: &Path) -> Result<BufReader<File>> {
    opening::open(path).map(BufReader::new)
}

fn read_file<T: Value>(path: &Path, numbers: Numbers) -> Result<ArrayD<T>> {
    of_file(path, |origin, header| Ok(read_values(path, "the array", origin, header, numbers)?.0))
}

/// What `read` makes of the numbers of a file.
fn of_file<R>(path: &Path, read: impl FnOnce(Origin<'_>, Checked) -> Result<R>) -> Result<R> {
    let mut file = open(path)?;
    let header = read_header(path, "header", &mut file)?;
    let end = file.get_ref().metadata().map_err(|e| Error::read(path, e))?.len();
    let start = file.stream_position().map_err(|e| Error::read(path, e))?;
    let length = end.saturating_sub(start);
    let expected = header.count as u64 * header.element.size() as u64;
    if length > expected {
        let promise = format!("{expected} bytes for {}", header.promise());
        return Err(Error::field(path, "size of the values", promise, format!("{length} bytes")));
    }
    read(Origin::File(file.get_ref(), start), header)
}

fn read_entry<T: Value>(path: &Path, name: Option<&str>, numbers: Numbers) -> Result<ArrayD<T>> {
    of_entry(path, name, |what, origin, header| Ok(read_values(path, what, origin, header, numbers)?.0))
}

/// What `read` makes of the numbers of an array in an archive.
fn of_entry<R>(
    path: &Path,
    name: Option<&str>,
    read: impl FnOnce(&str, Origin<'_>, Checked) -> Result<R>,
) -> Result<R> {
    let mut archive = open_archive(path)?;
    let names = archive_names(&archive);
    let name =
        opening::choose(path, "array", &names, name.map(|name| name.strip_suffix(".npy").unwrap_or(name)))?;
    let mut entry = archive.by_name(&format!("{name}.npy")).map_err(|e| zip_error(path, e))?;
    let header = read_header(path, &format!("header of {name}"), &mut entry)?;
    let (what, promise) = (format!("array {name}"), header.promise());
    let read = read(&what, Origin::Stream(&mut entry), header)?;
    // The end of an entry verifies its checksum.
    match element::fill(&mut entry, &mut [0]) {
        Ok(0) => Ok(read),
        Ok(_) => Err(Error::field(path, what, format!("no more than {promise}"), "more bytes")),
        Err(e) => Err(damaged(path, &what, e)),
    }
}

/// The error of an entry of an archive: its numbers cannot be unpacked, or are others than its checksum was
/// made of.
fn damaged(path: &Path, what: &str, error: std::io::Error) -> Error {
    use std::io::ErrorKind::{InvalidData, InvalidInput, UnexpectedEof};
    match error.kind() {
        InvalidData | InvalidInput | UnexpectedEof => {
            Error::field(path, what, "sound numbers, as the archive's checksum says", error)
                .with_hint("copy the file again, or write it anew: its bytes have changed")
        }
        _ => Error::read(path, error),
    }
}

/// An array as an image.
fn image(path: &Path, what: &str, origin: Origin<'_>, header: Checked) -> Result<ImageRead> {
    fn of<T: Value>(path: &Path, what: &str, origin: Origin<'_>, header: Checked) -> Result<ImageRead>
    where
        AnyImage: From<Image<T>>,
    {
        let (element, mut notes) = (header.element, Vec::new());
        let (data, rounded) = read_values(path, what, origin, header, Numbers::Any)?;
        let data = as_volumes(data, &mut notes);
        let image = Image::new(data, Geometry::default()).map_err(|e| Error::core(path, e))?;
        let stored = NumberType::from(element).read(rounded, &mut notes);
        Ok(ImageRead::new(image, stored, notes))
    }
    match header.element.is_complex() {
        true => of::<C32>(path, what, origin, header),
        false => of::<f32>(path, what, origin, header),
    }
}

/// `[volume, z, y, x]` of an array with more axes before these three.
pub(crate) fn as_volumes<T: Copy>(data: ArrayD<T>, notes: &mut Vec<String>) -> ArrayD<T> {
    let shape = data.shape().to_vec();
    if shape.len() < 5 || shape.contains(&0) {
        return data;
    }
    let (outer, volume) = shape.split_at(shape.len() - 3);
    let count: usize = outer.iter().product();
    notes.push(format!("the axes {} are {count} volumes, the last axis fastest", format_shape(outer)));
    let ordered = data.as_standard_layout().into_owned();
    let joined = ordered.into_shape_with_order(IxDyn(&[&[count], volume].concat()));
    joined.unwrap_or(data)
}

fn open_archive(path: &Path) -> Result<ZipArchive<BufReader<File>>> {
    ZipArchive::new(open(path)?).map_err(|e| zip_error(path, e))
}

fn archive_names<R: Read + Seek>(archive: &ZipArchive<R>) -> Vec<String> {
    archive.file_names().filter_map(|name| name.strip_suffix(".npy")).map(str::to_owned).collect()
}

fn zip_error(path: &Path, error: zip::result::ZipError) -> Error {
    use zip::result::ZipError;
    match error {
        ZipError::Io(e) => Error::read(path, e),
        ZipError::InvalidArchive(detail) => Error::not_this_format(path, "an .npz archive", detail),
        ZipError::UnsupportedArchive(detail) => Error::unsupported(path, format!("this archive ({detail})")),
        other => Error::library(path, "reading the archive", other, ErrorKind::Input),
    }
}

/// NumPy itself refuses headers beyond this by default.
const LONGEST_HEADER: usize = 10_000;
/// Deepest nesting of brackets in a header: a shape inside the dictionary takes two.
const DEEPEST: usize = 4;

fn read_header(path: &Path, what: &str, stream: &mut dyn Read) -> Result<Checked> {
    let io = |e| Error::read(path, e);
    let mut preamble = [0u8; 12];
    let short = |expected: usize, got: usize| {
        Error::truncated(path, what, format!("{expected} bytes"), format!("{got} bytes"))
    };
    let got = element::fill(stream, &mut preamble[..8]).map_err(io)?;
    if !preamble[..got].starts_with(MAGIC) {
        return Err(Error::not_this_format(path, "a NumPy array", "another signature"));
    }
    if got < 8 {
        return Err(short(8, got));
    }
    let width = if preamble[6] == 1 { 2 } else { 4 };
    let got = element::fill(stream, &mut preamble[8..8 + width]).map_err(io)?;
    if got < width {
        return Err(short(8 + width, 8 + got));
    }
    let length = preamble[8..8 + width].iter().rev().fold(0usize, |n, &byte| n << 8 | usize::from(byte));
    if length > LONGEST_HEADER {
        let expected = format!("at most {LONGEST_HEADER} bytes");
        return Err(Error::field(path, "header length", expected, length));
    }
    let mut bytes = preamble[..8 + width].to_vec();
    let start = bytes.len();
    bytes.resize(start + length, 0);
    let got = element::fill(stream, &mut bytes[start..]).map_err(io)?;
    if got < length {
        return Err(short(start + length, start + got));
    }
    let depth = deepest_brackets(&bytes[start..]);
    if depth > DEEPEST {
        let found = format!("{depth} levels of brackets");
        return Err(Error::field(path, what, "a plain array", found));
    }
    without_python_2(&mut bytes[start..]);
    let header = Header::from_reader(&mut &bytes[..])
        .map_err(|e| Error::field(path, what, "a dictionary of descr, fortran_order and shape", e))?;
    check(path, header)
}

/// The signature of `.npy` files.
pub(crate) const MAGIC: &[u8] = b"\x93NUMPY";

fn deepest_brackets(text: &[u8]) -> usize {
    let mut deepest = 0;
    let mut depth = 0usize;
    for byte in text {
        match byte {
            b'(' | b'[' | b'{' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// Takes away the L behind long integers: Python 2 wrote the shape (91L, 160L), which NumPy still reads.
fn without_python_2(text: &mut [u8]) {
    for index in 1..text.len().saturating_sub(1) {
        if text[index] == b'L'
            && text[index - 1].is_ascii_digit()
            && matches!(text[index + 1], b',' | b')' | b' ')
        {
            text[index] = b' ';
        }
    }
}

fn check(path: &Path, header: Header) -> Result<Checked> {
    let Some(descr) = header.type_descriptor.as_string().cloned() else {
        return Err(Error::unsupported(path, "a structured array")
            .with_hint("save one of its fields as a plain array"));
    };
    let (mark, name) = descr.split_at_checked(1).unwrap_or_default();
    let order = match mark {
        "<" | "|" => Some(ByteOrder::Little),
        ">" => Some(ByteOrder::Big),
        "=" if cfg!(target_endian = "little") => Some(ByteOrder::Little),
        "=" => Some(ByteOrder::Big),
        _ => None,
    };
    let element = match name {
        "b1" => Some(Element::Bool),
        "i1" => Some(Element::I8),
        "u1" => Some(Element::U8),
        "i2" => Some(Element::I16),
        "u2" => Some(Element::U16),
        "i4" => Some(Element::I32),
        "u4" => Some(Element::U32),
        "i8" => Some(Element::I64),
        "u8" => Some(Element::U64),
        "f2" => Some(Element::F16),
        "f4" => Some(Element::F32),
        "f8" => Some(Element::F64),
        "c8" => Some(Element::C32),
        "c16" => Some(Element::C64),
        _ => None,
    };
    let Some((order, element)) = order.zip(element) else {
        return Err(Error::unsupported(path, format!("an array of type {descr}"))
            .with_hint("save it as complex64, float32 or float64"));
    };
    let count = element::count(&header.shape, element.size())
        .filter(|_| header.shape.len() <= 64)
        .ok_or_else(|| {
            let expected = "at most 64 axes whose product fits the address space";
            Error::field(path, "shape", expected, format_shape(&header.shape))
        })?;
    Ok(Checked {
        description: Description {
            shape: header.shape,
            descr,
            fortran_order: header.layout == Layout::Fortran,
        },
        element,
        order,
        count,
    })
}

impl Checked {
    fn promise(&self) -> String {
        format!("shape {} of {}", format_shape(&self.description.shape), self.description.descr)
    }
}

/// The numbers, and whether one is rounded.
fn read_values<T: Value>(
    path: &Path,
    what: &str,
    origin: Origin<'_>,
    header: Checked,
    numbers: Numbers,
) -> Result<(ArrayD<T>, bool)> {
    let descr = &header.description.descr;
    match (numbers, header.element.is_complex()) {
        (Numbers::Real, true) => return Err(Error::field(path, "number type", "real numbers", descr)),
        (Numbers::Complex, false) => {
            return Err(Error::field(path, "number type", "complex numbers, as k-space has", descr)
                .with_hint("a magnitude or a real part is no k-space; join real and imaginary parts"));
        }
        _ => {}
    }
    let element::Numbers { values, rounded } =
        element::read(origin, header.count, header.element, header.order, None).map_err(
            |stop| match stop {
                Stop::Io(e) => damaged(path, what, e),
                Stop::Memory(e) => Error::core(path, e),
                Stop::Short(got) => {
                    let expected = header.count as u64 * header.element.size() as u64;
                    let promise = format!("{expected} bytes for {}", header.promise());
                    Error::truncated(path, what, promise, format!("{got} bytes"))
                }
                Stop::Range(index) => Error::field(
                    path,
                    what,
                    "values within single precision",
                    format!("a larger one at {index}"),
                ),
            },
        )?;
    let shape = IxDyn(&header.description.shape);
    let array = ArrayD::from_shape_vec(shape.set_f(header.description.fortran_order), values)
        .map_err(|e| Error::field(path, "shape", "one that fits the values", e))?;
    Ok((array, rounded))
}
