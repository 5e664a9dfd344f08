//! MetaImage files of ITK, RTK and 3D Slicer: `.mha`, and `.mhd` with the numbers in a file of their own.
//!
//! A header of lines `Key = Value`, then the numbers, x fastest, which is the C order of Rayspin's `[z, y, x]`. Coordinates are LPS, as
//! Rayspin's; `Offset` is the place of the first voxel, and the matrix holds the direction of x, of y and of z, one after another.
//! Read: numbers of 8 to 64 bits in either byte order, one channel, plain or compressed (zlib). Written: 32-bit floats.

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use flate2::read::ZlibDecoder;
use ndarray::{ArrayD, IxDyn};
use rayspin_core::{Geometry, Image};

use crate::atomic::Pending;
use crate::element::{self, ByteOrder, Element, Origin, Stop};
use crate::format::{ImageRead, Target};
use crate::series_file::VolumeWriter;
use crate::{Error, Result, Slices, Values, input};

/// The most bytes of a header. ITK's headers with a dictionary of a scanner's entries are far shorter.
const LONGEST: usize = 1 << 20;

/// Whether a file begins as a header does.
pub(crate) fn begins(start: &[u8]) -> bool {
    let keys = ["ObjectType", "NDims", "Comment", "ObjectSubType", "TransformType", "Name", "ID"];
    keys.iter().any(|key| start.starts_with(key.as_bytes()))
}

/// The header's file, and the file of the numbers where it is another one.
pub(crate) fn parts(path: &Path) -> Vec<PathBuf> {
    let data = Header::read(path).ok().and_then(|header| header.data_file(path));
    [Some(path.to_owned()), data].into_iter().flatten().collect()
}

/// A header, and where it ends.
struct Header {
    lines: Vec<(String, String)>,
    end: u64,
}

impl Header {
    fn read(path: &Path) -> Result<Self> {
        let file = input::open(path)?;
        let mut file = BufReader::new(file);
        let (mut lines, mut end) = (Vec::new(), 0);
        loop {
            let mut line = Vec::new();
            let most = (LONGEST - end.min(LONGEST)) as u64;
            let got =
                file.by_ref().take(most).read_until(b'\n', &mut line).map_err(|e| Error::read(path, e))?;
            end += got;
            if line.last() != Some(&b'\n') && end < LONGEST && got == 0 {
                return Err(Error::truncated(
                    path,
                    "the header",
                    "a line ElementDataFile",
                    "the end of the file",
                ));
            }
            let text = String::from_utf8_lossy(&line);
            let Some((key, value)) = text.split_once('=') else {
                let found = crate::error::one_line(text.chars().take(40).collect::<String>());
                return Err(Error::field(path, "header", "lines Key = Value up to ElementDataFile", found));
            };
            let (key, value) = (key.trim().to_owned(), value.trim().to_owned());
            let last = key == "ElementDataFile";
            lines.push((key, value));
            if last {
                return Ok(Self { lines, end: end as u64 });
            }
        }
    }

    fn get(&self, keys: &[&str]) -> Option<&str> {
        let known = |(key, _): &&(String, String)| keys.contains(&key.as_str());
        self.lines.iter().find(known).map(|(_, value)| value.as_str())
    }

    fn expect(&self, path: &Path, key: &str) -> Result<&str> {
        self.get(&[key]).ok_or_else(|| Error::field(path, key, "a line of the header", "none"))
    }

    fn numbers(&self, path: &Path, keys: &[&str], count: usize) -> Result<Option<Vec<f64>>> {
        let Some(text) = self.get(keys) else { return Ok(None) };
        let numbers: Option<Vec<f64>> = text.split_whitespace().map(|word| word.parse().ok()).collect();
        match numbers.filter(|numbers| numbers.len() == count && numbers.iter().all(|n| n.is_finite())) {
            Some(numbers) => Ok(Some(numbers)),
            None => Err(Error::field(path, keys[0], format!("{count} numbers"), text)),
        }
    }

    fn flag(&self, path: &Path, keys: &[&str]) -> Result<bool> {
        match self.get(keys) {
            None => Ok(false),
            Some(text) if text.eq_ignore_ascii_case("true") || text == "1" => Ok(true),
            Some(text) if text.eq_ignore_ascii_case("false") || text == "0" => Ok(false),
            Some(text) => Err(Error::field(path, keys[0], "True or False", text)),
        }
    }

    /// The file of the numbers, where they are in another one beside the header.
    fn data_file(&self, path: &Path) -> Option<PathBuf> {
        let name = self.get(&["ElementDataFile"])?;
        (!name.eq_ignore_ascii_case("LOCAL")).then(|| path.with_file_name(name))
    }
}

/// Reads an image for the table of formats.
pub(crate) fn image(path: &Path, _: Option<&str>) -> Result<ImageRead> {
    let header = Header::read(path)?;
    let dims = header.expect(path, "NDims")?;
    let Some(dims) = dims.parse::<usize>().ok().filter(|dims| (2..=4).contains(dims)) else {
        return Err(Error::field(path, "NDims", "2 to 4", dims));
    };
    let sizes = header.expect(path, "DimSize")?;
    let shape: Option<Vec<usize>> = sizes.split_whitespace().map(|word| word.parse().ok()).collect();
    let shape = shape.filter(|shape| shape.len() == dims && shape.iter().all(|&n| n > 0));
    let mut shape = shape.ok_or_else(|| Error::field(path, "DimSize", format!("{dims} sizes"), sizes))?;
    shape.reverse();
    if let Some(channels) = header.get(&["ElementNumberOfChannels"]).filter(|channels| *channels != "1") {
        return Err(Error::field(path, "ElementNumberOfChannels", 1, channels));
    }
    if header.get(&["BinaryData"]).is_some_and(|text| text.eq_ignore_ascii_case("false")) {
        return Err(Error::unsupported(path, "numbers as text (BinaryData = False)"));
    }
    let kind = header.expect(path, "ElementType")?;
    let element = match kind {
        "MET_CHAR" | "MET_ASCII_CHAR" => Element::I8,
        "MET_UCHAR" => Element::U8,
        "MET_SHORT" => Element::I16,
        "MET_USHORT" => Element::U16,
        "MET_INT" | "MET_LONG" => Element::I32,
        "MET_UINT" | "MET_ULONG" => Element::U32,
        "MET_LONG_LONG" => Element::I64,
        "MET_ULONG_LONG" => Element::U64,
        "MET_FLOAT" => Element::F32,
        "MET_DOUBLE" => Element::F64,
        other => return Err(Error::field(path, "ElementType", "one number of 8 to 64 bits", other)),
    };
    let order = match header.flag(path, &["BinaryDataByteOrderMSB", "ElementByteOrderMSB"])? {
        true => ByteOrder::Big,
        false => ByteOrder::Little,
    };
    let count = element::count(&shape, element.size())
        .ok_or_else(|| Error::field(path, "DimSize", "a product that fits the address space", sizes))?;
    let (geometry, notes) = geometry(path, &header, &shape)?;
    let values = values(path, &header, count, element, order)?;
    let data = ArrayD::from_shape_vec(IxDyn(&shape), values)
        .map_err(|e| Error::field(path, "DimSize", "a shape that fits the numbers", e))?;
    let image = Image::new(data, geometry).map_err(|e| Error::core(path, e))?;
    Ok(ImageRead::new(image, notes))
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
    let offset =
        header.numbers(path, &["Offset", "Position", "Origin"], dims)?.unwrap_or_else(|| vec![0.0; dims]);
    let matrix = header.numbers(path, &["TransformMatrix", "Rotation", "Orientation"], dims * dims)?;
    let entry = |axis: usize, row: usize| match &matrix {
        Some(matrix) if axis < dims && row < dims => matrix[axis * dims + row],
        _ => f64::from(u8::from(axis == row)),
    };
    let of = |values: &[f64], axis: usize, other: f64| values.get(axis).copied().unwrap_or(other);
    // Rayspin's position is the place of the voxel at index n/2.
    let sizes: [usize; 3] = std::array::from_fn(|axis| shape.iter().rev().nth(axis).copied().unwrap_or(1));
    let spacing: [f64; 3] = std::array::from_fn(|axis| of(&spacing, axis, 1.0));
    let directions: [[f64; 3]; 3] = std::array::from_fn(|axis| std::array::from_fn(|row| entry(axis, row)));
    let position = std::array::from_fn(|row| {
        let along = |axis: usize| directions[axis][row] * spacing[axis] * (sizes[axis] / 2) as f64;
        of(&offset, row, 0.0) + along(0) + along(1) + along(2)
    });
    let [x, y, z] = directions;
    let geometry = Geometry::new(spacing, position, x, y, z).map_err(|e| Error::core(path, e))?;
    Ok((geometry, notes))
}

fn values(
    path: &Path,
    header: &Header,
    count: usize,
    element: Element,
    order: ByteOrder,
) -> Result<Vec<f32>> {
    let name = header.expect(path, "ElementDataFile")?;
    if name == "LIST" || name.contains('%') {
        return Err(Error::unsupported(
            path,
            "numbers in several files (ElementDataFile = LIST or a pattern)",
        ));
    }
    let apart = header.data_file(path);
    let file = apart.as_deref().unwrap_or(path);
    let bytes = (count * element.size()) as u64;
    let opened = input::open(file).map_err(|error| match error {
        // A name that no file can have is an error of the header.
        Error::Open { source, .. } if source.kind() == std::io::ErrorKind::InvalidInput => {
            Error::field(path, "ElementDataFile", "the name of a file", name)
        }
        error => error,
    })?;
    let length = opened.metadata().map_err(|e| Error::read(file, e))?.len();
    let compressed = header.flag(path, &["CompressedData"])?;
    let skipped = match header.get(&["HeaderSize"]) {
        None => 0,
        Some("-1") if compressed => 0,
        Some("-1") => length.saturating_sub(bytes),
        Some(text) => {
            text.parse().map_err(|_| Error::field(path, "HeaderSize", "a number of bytes, or -1", text))?
        }
    };
    let start = if apart.is_some() { skipped } else { header.end.max(skipped) };
    if start > length {
        return Err(Error::field(
            path,
            "HeaderSize",
            format!("at most {length} bytes, as the file has"),
            start,
        ));
    }
    let mut inflated;
    let origin = match compressed {
        true => {
            (&opened).seek(SeekFrom::Start(start)).map_err(|e| Error::read(file, e))?;
            inflated = ZlibDecoder::new(BufReader::with_capacity(1 << 18, &opened));
            Origin::Stream(&mut inflated)
        }
        false => Origin::File(&opened, start),
    };
    element::read(origin, count, element, order, None).map_err(|stop| match stop {
        Stop::Io(e) if compressed => Error::field(file, "compressed numbers", "a sound zlib stream", e),
        Stop::Io(e) => Error::read(file, e),
        Stop::Memory(e) => Error::core(file, e),
        Stop::Short(got) => {
            Error::truncated(file, "the image", format!("{bytes} bytes for DimSize"), format!("{got} bytes"))
        }
        Stop::Range(at) => {
            Error::field(file, "voxel", "values within single precision", format!("a larger one at {at}"))
        }
    })
}

/// Starts a file for the table of formats.
pub(crate) fn create(target: &Target<'_>) -> Result<Box<dyn VolumeWriter>> {
    if target.repetitions().is_some_and(|count| count > 1) {
        return Err(Error::unsupported(target.path, "a series of volumes as MetaImage")
            .with_hint("--repetition chooses one; .nii and .npy hold all"));
    }
    let [nz, ny, nx] = target.volume();
    let geometry = target.geometry;
    let affine = geometry.affine_lps([nz, ny, nx]);
    let text = |numbers: &[f64]| numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    let directions = [geometry.read_dir, geometry.phase_dir, geometry.slice_dir].concat();
    let header = format!(
        "ObjectType = Image\nNDims = 3\nBinaryData = True\nBinaryDataByteOrderMSB = False\nCompressedData = False\n\
         TransformMatrix = {}\nOffset = {}\nCenterOfRotation = 0 0 0\nElementSpacing = {}\nDimSize = {nx} {ny} {nz}\n\
         ElementType = MET_FLOAT\nElementDataFile = LOCAL\n",
        text(&directions),
        text(&affine.map(|row| row[3])),
        text(&geometry.spacing_mm),
    );
    let pending = Pending::create(target.path)?;
    let mut file = BufWriter::with_capacity(1 << 20, pending.open()?);
    file.write_all(header.as_bytes()).map_err(|e| Error::write(target.path, e))?;
    Ok(Box::new(MetaImage { pending, file, values: target.values }))
}

/// An image in the making.
struct MetaImage {
    pending: Pending,
    file: BufWriter<File>,
    values: Values,
}

impl VolumeWriter for MetaImage {
    fn push(&mut self, slices: &Slices<'_>) -> Result<()> {
        element::write(&mut self.file, slices, self.values)
            .map_err(|e| Error::write(self.pending.wanted(), e))
    }

    fn finish(mut self: Box<Self>, path: &Path, _: usize) -> Result<Option<String>> {
        self.file.flush().map_err(|e| Error::write(path, e))?;
        drop(self.file);
        self.pending.finish_as(path).map(|()| None)
    }
}
