//! MetaImage files of ITK, RTK and 3D Slicer: `.mha`, and `.mhd` with the numbers in a file of their own.
//!
//! A header of lines `Key = Value`, then the numbers, x fastest, which is the C order of Rayspin's `[z, y,
//! x]`. Coordinates are LPS, as Rayspin's; `Offset` is the place of the first voxel, and the matrix holds the
//! direction of x, of y and of z, one after another.
//! Read: numbers of 8 to 64 bits in either byte order or as text, one channel, plain or compressed (zlib,
//! gzip), in one file or in several. Keys mean what they mean to ITK. Written: 32-bit floats, and integers
//! that were read as such.

mod data;
mod samples;

pub(crate) use samples::samples;

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use ndarray::{ArrayD, IxDyn};
use rayspin_core::{Geometry, Image};

use crate::atomic::Pending;
use crate::element::{self, ByteOrder, Element, Numbers};
use crate::format::{ImageRead, Target, VolumeWriter};
use crate::{Error, NumberType, Result, Slices, Values, opening};

/// The most bytes of a header. ITK's headers with a dictionary of a scanner's entries are far shorter.
const LONGEST: usize = 1 << 20;

/// The names of types; of several names the first is written.
const TYPES: [(&str, Element); 13] = [
    ("MET_CHAR", Element::I8),
    ("MET_ASCII_CHAR", Element::I8),
    ("MET_UCHAR", Element::U8),
    ("MET_SHORT", Element::I16),
    ("MET_USHORT", Element::U16),
    ("MET_INT", Element::I32),
    ("MET_LONG", Element::I32),
    ("MET_UINT", Element::U32),
    ("MET_ULONG", Element::U32),
    ("MET_LONG_LONG", Element::I64),
    ("MET_ULONG_LONG", Element::U64),
    ("MET_FLOAT", Element::F32),
    ("MET_DOUBLE", Element::F64),
];

/// Whether a file begins as a header does.
pub(crate) fn begins(start: &[u8]) -> bool {
    let keys = ["ObjectType", "NDims", "Comment", "ObjectSubType", "TransformType", "Name", "ID"];
    keys.iter().any(|key| start.starts_with(key.as_bytes()))
}

/// The header's file, and the files of the numbers where they are other ones.
pub(crate) fn parts(path: &Path) -> Vec<PathBuf> {
    let part_files = || {
        let header = Header::read(path).ok()?;
        let shape = header.shape(path).ok()?;
        data::files(path, &header, &shape).ok()
    };
    let files = part_files().unwrap_or_default().into_iter().filter_map(|part| part.file).map(data::holder);
    std::iter::once(path.to_owned()).chain(files).collect()
}

/// A header, and where it ends.
struct Header {
    lines: Vec<(String, String)>,
    /// The lines after `ElementDataFile = LIST`.
    list: Vec<String>,
    end: u64,
}

impl Header {
    fn read(path: &Path) -> Result<Self> {
        let file = opening::open(path)?;
        let mut file = BufReader::new(file);
        let (mut lines, mut end) = (Vec::new(), 0);
        let mut next = |end: &mut usize| -> Result<(String, usize)> {
            let mut line = Vec::new();
            let most = (LONGEST - (*end).min(LONGEST)) as u64;
            let got =
                file.by_ref().take(most).read_until(b'\n', &mut line).map_err(|e| Error::read(path, e))?;
            *end += got;
            Ok((String::from_utf8_lossy(&line).into_owned(), got))
        };
        loop {
            let (text, got) = next(&mut end)?;
            if got == 0 && end < LONGEST {
                return Err(Error::truncated(
                    path,
                    "the header",
                    "a line ElementDataFile",
                    "the end of the file",
                ));
            }
            if got > 0 && text.trim().is_empty() {
                continue;
            }
            let Some((key, value)) = text.split_once(['=', ':']) else {
                let found = crate::error::one_line(text.chars().take(40).collect::<String>());
                return Err(Error::field(path, "header", "lines Key = Value up to ElementDataFile", found));
            };
            let (key, value) = (key.trim().to_owned(), value.trim().to_owned());
            let last = key == DATA_FILE;
            let is_list = last && value.starts_with(data::LIST);
            lines.push((key, value));
            if !last {
                continue;
            }
            let (mut list, header_end) = (Vec::new(), end);
            if is_list {
                loop {
                    let (text, got) = next(&mut end)?;
                    match got {
                        0 => break,
                        _ => list.push(text.trim().to_owned()),
                    }
                }
            }
            while list.last().is_some_and(String::is_empty) {
                list.pop();
            }
            return Ok(Self { lines, list, end: header_end as u64 });
        }
    }

    /// The value of the first of these keys that is there. A key that is there twice has its last value.
    fn get(&self, keys: &[&str]) -> Option<&str> {
        let entry = |wanted: &&str| self.lines.iter().rev().find(|(key, _)| key == wanted);
        keys.iter().find_map(entry).map(|(_, value)| value.as_str())
    }

    fn expect(&self, path: &Path, key: &str) -> Result<&str> {
        self.get(&[key]).ok_or_else(|| Error::field(path, key, "a line of the header", "none"))
    }

    fn numbers(&self, path: &Path, keys: &[&str], count: usize) -> Result<Option<Vec<f64>>> {
        let Some(text) = self.get(keys) else { return Ok(None) };
        let numbers: Option<Vec<f64>> = text.split_whitespace().map(|word| word.parse().ok()).collect();
        match numbers.filter(|numbers| numbers.len() == count && numbers.iter().all(|n| n.is_finite())) {
            Some(numbers) => Ok(Some(numbers)),
            None => Err(Error::field(path, keys.join(" or "), format!("{count} numbers"), text)),
        }
    }

    /// As ITK reads flags, by their first letter.
    fn flag(&self, path: &Path, keys: &[&str], otherwise: bool) -> Result<bool> {
        let Some(text) = self.get(keys) else { return Ok(otherwise) };
        match text.bytes().next() {
            Some(b'T' | b't' | b'1') => Ok(true),
            Some(b'F' | b'f' | b'0' | b'N' | b'n') => Ok(false),
            _ => Err(Error::field(path, keys[0], "True or False", text)),
        }
    }

    /// `[z, y, x]`, or `[t, z, y, x]`.
    fn shape(&self, path: &Path) -> Result<Vec<usize>> {
        let dims = self.expect(path, "NDims")?;
        let Some(dims) = dims.parse::<usize>().ok().filter(|dims| (2..=4).contains(dims)) else {
            return Err(Error::field(path, "NDims", "2 to 4", dims));
        };
        let sizes = self.expect(path, "DimSize")?;
        let shape: Option<Vec<usize>> = sizes.split_whitespace().map(|word| word.parse().ok()).collect();
        let shape = shape.filter(|shape| shape.len() == dims && shape.iter().all(|&n| n > 0));
        let mut shape = shape.ok_or_else(|| Error::field(path, "DimSize", format!("{dims} sizes"), sizes))?;
        shape.reverse();
        match element::count(&shape, 1) {
            Some(_) => Ok(shape),
            None => Err(Error::field(path, "DimSize", "a product that fits the address space", sizes)),
        }
    }
}

const DATA_FILE: &str = "ElementDataFile";

/// Reads an image for the table of formats.
pub(crate) fn image(path: &Path, _: Option<&str>) -> Result<ImageRead> {
    let header = Header::read(path)?;
    let shape = header.shape(path)?;
    let channels = header.get(&["ElementNumberOfChannels"]).filter(|text| text.parse() != Ok(1));
    if let Some(channels) = channels {
        return Err(Error::field(path, "ElementNumberOfChannels", 1, channels)
            .with_hint("write each channel as an image of its own"));
    }
    let kind = header.expect(path, "ElementType")?;
    let Some((_, element)) = TYPES.iter().find(|(name, _)| *name == kind).copied() else {
        return Err(Error::field(path, "ElementType", "one number of 8 to 64 bits", kind));
    };
    let order = match header.flag(path, &["BinaryDataByteOrderMSB", "ElementByteOrderMSB"], false)? {
        true => ByteOrder::Big,
        false => ByteOrder::Little,
    };
    let (geometry, mut notes) = geometry(path, &header, &shape)?;
    notes.extend(not_applied(&header));
    let Numbers { values, rounded } =
        data::read(path, &header, &shape, data::ElementType { element, order })?;
    let data = ArrayD::from_shape_vec(IxDyn(&shape), values)
        .map_err(|e| Error::field(path, "DimSize", "a shape that fits the numbers", e))?;
    let image = Image::new(data, geometry).map_err(|e| Error::core(path, e))?;
    let stored = NumberType::from(element).read(rounded, &mut notes);
    Ok(ImageRead::new(image, stored, notes))
}

/// Where the image lies; of four axes the last is time.
fn geometry(path: &Path, header: &Header, shape: &[usize]) -> Result<(Geometry, Vec<String>)> {
    let (dims, mut notes) = (shape.len(), Vec::new());
    let spacing = match header.numbers(path, &["ElementSpacing", "ElementSize"], dims)? {
        Some(spacing) => spacing,
        None => {
            notes.push("the header states no ElementSpacing: voxels of 1 mm are taken".into());
            vec![1.0; dims]
        }
    };
    // In the order in which ITK prefers them.
    let offset = header.numbers(path, &["ImagePosition", "Origin", "Offset", "Position"], dims)?;
    let offset = offset.unwrap_or_else(|| vec![0.0; dims]);
    let matrix = header.numbers(path, &["TransformMatrix", "Rotation", "Orientation"], dims * dims)?;
    let entry = |axis: usize, row: usize| match &matrix {
        Some(matrix) if axis < dims && row < dims => matrix[axis * dims + row],
        _ => f64::from(u8::from(axis == row)),
    };
    let value_or = |values: &[f64], axis: usize, other: f64| values.get(axis).copied().unwrap_or(other);
    // Rayspin's position is the place of the voxel at index n/2.
    let sizes: [usize; 3] = std::array::from_fn(|axis| shape.iter().rev().nth(axis).copied().unwrap_or(1));
    let signed: [f64; 3] = std::array::from_fn(|axis| value_or(&spacing, axis, 1.0));
    // A negative spacing turns its axis round.
    let spacing = signed.map(f64::abs);
    let directions: [[f64; 3]; 3] = std::array::from_fn(|axis| {
        std::array::from_fn(|row| if signed[axis] < 0.0 { -entry(axis, row) } else { entry(axis, row) })
    });
    let position = std::array::from_fn(|row| {
        let along = |axis: usize| directions[axis][row] * spacing[axis] * (sizes[axis] / 2) as f64;
        value_or(&offset, row, 0.0) + along(0) + along(1) + along(2)
    });
    let [x, y, z] = directions;
    let geometry = Geometry::new(spacing, position, x, y, z).map_err(|e| Error::core(path, e))?;
    Ok((geometry, notes))
}

/// What the header states and ITK does not apply either, one sentence each.
fn not_applied(header: &Header) -> Vec<String> {
    let number = |key: &str, otherwise: f64| {
        header.get(&[key]).map_or(otherwise, |text| text.parse().unwrap_or(f64::NAN))
    };
    let (slope, offset) =
        (number("ElementToIntensityFunctionSlope", 1.0), number("ElementToIntensityFunctionOffset", 0.0));
    let mut notes = Vec::new();
    if (slope, offset) != (1.0, 0.0) {
        notes.push(format!(
            "numbers are read as they are stored: ElementToIntensityFunction, {slope} · stored + {offset}, is not applied"
        ));
    }
    if let Some(unit) = header.get(&["DistanceUnits"]).filter(|unit| !["mm", "?", ""].contains(unit)) {
        notes
            .push(format!("lengths are taken as mm, as ITK takes them: DistanceUnits {unit} is not applied"));
    }
    notes
}

/// Starts a file for the table of formats.
pub(crate) fn create(target: &Target<'_>) -> Result<Box<dyn VolumeWriter>> {
    if target.repetitions().is_some_and(|count| count > 1) {
        return Err(Error::unsupported(target.path, "a series of volumes as MetaImage")
            .with_hint("`--repetition` chooses one; .nii and .npy hold all"));
    }
    let [nz, ny, nx] = target.volume();
    let geometry = target.geometry;
    let affine = geometry.affine_lps([nz, ny, nx]);
    let text = |numbers: &[f64]| numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    let directions = [geometry.read_dir, geometry.phase_dir, geometry.slice_dir].concat();
    let element = target.integers.map_or(Element::F32, |integers| integers.element);
    let kind = TYPES.iter().find(|(_, other)| *other == element).map_or("MET_FLOAT", |(name, _)| name);
    let header = format!(
        "ObjectType = Image\nNDims = 3\nBinaryData = True\nBinaryDataByteOrderMSB = False\nCompressedData = False\n\
         TransformMatrix = {}\nOffset = {}\nCenterOfRotation = 0 0 0\nElementSpacing = {}\nDimSize = {nx} {ny} {nz}\n\
         ElementType = {kind}\nElementDataFile = LOCAL\n",
        text(&directions),
        text(&affine.map(|row| row[3])),
        text(&geometry.spacing_mm),
    );
    let pending = Pending::create(target.path)?;
    let mut file = BufWriter::with_capacity(1 << 20, pending.open()?);
    file.write_all(header.as_bytes()).map_err(|e| Error::write(target.path, e))?;
    Ok(Box::new(MetaImage { pending, file, values: target.values, integers: target.integers }))
}

/// An image in the making.
struct MetaImage {
    pending: Pending,
    file: BufWriter<File>,
    values: Values,
    integers: Option<NumberType>,
}

impl VolumeWriter for MetaImage {
    fn push(&mut self, slices: &Slices<'_>) -> Result<()> {
        element::write(&mut self.file, slices, self.values, self.integers)
            .map_err(|e| Error::write(self.pending.wanted(), e))
    }

    fn finish(mut self: Box<Self>, path: &Path, _: usize) -> Result<Option<String>> {
        self.file.flush().map_err(|e| Error::write(path, e))?;
        drop(self.file);
        self.pending.finish_as(path).map(|()| None)
    }
}
