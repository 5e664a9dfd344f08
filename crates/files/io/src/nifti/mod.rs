//! NIfTI-1 images, `.nii` and `.nii.gz`.
//!
//! NIfTI's x varies fastest, then y, z and time, which is the C order of Rayspin's `[z, y, x]` and
//! `[repetition, z, y, x]`: values pass through unchanged. NIfTI coordinates are RAS, Rayspin's LPS; the
//! affine is converted, the values are never flipped.

mod affine;
mod header;
mod series;

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use ndarray::{ArrayD, IxDyn};
use rayspin_core::{C32, Geometry, Image};

use crate::element::{self, Numbers, Origin, Stop, Value};
use crate::format::{GZIP, ImageRead, Target, VolumeWriter};
use crate::gzip::GzipReader;
use crate::{AnyImage, Error, NumberType, Result, Values, opening};

use header::Header;
use series::NiftiSeries;

/// An image read from a file, and what had to be assumed or repaired, one sentence each.
#[derive(Debug, Clone, PartialEq)]
pub struct NiftiImage {
    /// The image with its geometry.
    pub image: Image,
    /// For the user to see.
    pub notes: Vec<String>,
}

/// What [`write()`] stores beside the image.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NiftiOptions {
    /// The numbers stored.
    pub values: Values,
    /// Time between repetitions in s, when known.
    pub repetition_time_s: Option<f64>,
}

/// Reads an image for the table of formats.
pub(crate) fn image(path: &Path, _: Option<&str>) -> Result<ImageRead> {
    read_any(path)
}

/// Starts a file for the table of formats.
pub(crate) fn create(target: &Target<'_>) -> Result<Box<dyn VolumeWriter>> {
    let options = NiftiOptions { values: target.values, repetition_time_s: target.options.repetition_time_s };
    let (shape, repetitions) = (target.volume(), target.repetitions());
    let Target { path, geometry, integers, .. } = *target;
    Ok(Box::new(NiftiSeries::create(path, repetitions, shape, geometry, options, integers)?))
}

/// Reads a NIfTI-1 file, compressed or not (told by its content, not its name).
///
/// Integers of 8 to 64 bits, floats of 32 and 64 bits and complex numbers of 64 and 128 bits are read, in
/// either byte order, scaled as the header says. The affine is `sform`, else `qform`, else the voxel size
/// alone, which is noted. A sheared `sform` has no direction cosines: `qform` is taken instead when the file
/// has one.
///
/// Errors: NIfTI-2, header and values in two files, more than four axes, colour values, a sheared affine, a
/// size that the file does not have.
///
/// ```
/// use ndarray::ArrayD;
/// use rayspin_core::{C32, Geometry, Image};
/// use rayspin_io::nifti::{self, NiftiOptions};
///
/// # let folder = tempfile::tempdir()?;
/// let geometry = Geometry { position_mm: [10.0, -5.0, 2.5], ..Geometry::default() }; // LPS
/// let image = Image::new(ArrayD::from_elem(vec![3, 8, 6], C32::from(7.0)), geometry)?;
/// let file = folder.path().join("image.nii");
/// nifti::write(&file, &image, &NiftiOptions::default())?;
/// let found = nifti::read(&file)?.image; // the file's RAS is LPS again
/// assert_eq!(found.data(), image.data());
/// assert!(found.geometry().position_mm.iter().zip([10.0, -5.0, 2.5]).all(|(a, b)| (a - b).abs() < 1e-4));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn read(path: impl AsRef<Path>) -> Result<NiftiImage> {
    let ImageRead { image, notes, .. } = read_any(path.as_ref())?;
    Ok(NiftiImage { image: image.into_complex(), notes })
}

fn read_any(path: &Path) -> Result<ImageRead> {
    let io = |e| Error::read(path, e);
    let mut file = BufReader::with_capacity(1 << 18, opening::open(path)?);
    let mut start = [0; 2];
    let got = element::fill(&mut file, &mut start).map_err(io)?;
    file.seek(SeekFrom::Start(0)).map_err(io)?;
    if &start[..got] == GZIP {
        let mut stream = GzipReader::new(file);
        let image = read_stream(path, &mut stream, None)?;
        // The checksum follows the values; reading on to the end verifies it.
        io::copy(&mut stream.take(1 << 20), &mut io::sink()).map_err(|e| stream_error(path, e))?;
        Ok(image)
    } else {
        let plain = file.get_ref().try_clone().map_err(io)?;
        read_stream(path, &mut file, Some(&plain))
    }
}

/// Reads a header and what follows it: the numbers from the stream, or from a file without compression.
fn read_stream(path: &Path, stream: &mut dyn Read, plain: Option<&File>) -> Result<ImageRead> {
    let header = header::read(path, stream)?;
    // The values start at an offset that is at least the header's own size.
    let gap = header.offset - header::SIZE as u64;
    let skipped = io::copy(&mut stream.take(gap), &mut io::sink()).map_err(|e| stream_error(path, e))?;
    if skipped < gap {
        let length = header::SIZE as u64 + skipped;
        return Err(Error::truncated(
            path,
            "the header",
            format!("{} bytes", header.offset),
            format!("{length} bytes"),
        ));
    }
    let shape = header.shape();
    let [.., nz, ny, nx] = shape[..] else {
        return Err(Error::field(path, "dim", "2 to 4 axes", format!("{shape:?}")));
    };
    let (geometry, mut notes) = affine::geometry(path, &header.raw, [nz, ny, nx])?;
    notes.extend(header.notes.iter().cloned());
    let origin = match plain {
        Some(file) => Origin::File(file, header.offset),
        None => Origin::Stream(stream),
    };
    match header.element.is_complex() {
        true => read_values::<C32>(path, origin, &header, geometry, notes),
        false => read_values::<f32>(path, origin, &header, geometry, notes),
    }
}

fn read_values<T: Value>(
    path: &Path,
    origin: Origin<'_>,
    header: &Header,
    geometry: Geometry,
    mut notes: Vec<String>,
) -> Result<ImageRead>
where
    AnyImage: From<Image<T>>,
{
    let shape = header.shape();
    let size = header.element.size();
    let count = element::count(&shape, size).ok_or_else(|| {
        Error::field(path, "dim", "a product that fits the address space", format!("{shape:?}"))
    })?;
    let Numbers { values, rounded } =
        element::read(origin, count, header.element, header.order, header.scale).map_err(
            |stop| match stop {
                Stop::Io(e) => stream_error(path, e),
                Stop::Memory(e) => Error::core(path, e),
                Stop::Short(got) => Error::truncated(
                    path,
                    "the image",
                    format!("{} bytes for dim {shape:?}", count as u64 * size as u64),
                    format!("{got} bytes"),
                ),
                Stop::Range(index) => Error::field(
                    path,
                    "voxel",
                    "values within single precision",
                    format!("a larger one at {index}"),
                ),
            },
        )?;
    let data = ArrayD::from_shape_vec(IxDyn(&shape), values)
        .map_err(|e| Error::field(path, "dim", "a shape that fits the values", e))?;
    let image = Image::new(data, geometry).map_err(|e| Error::core(path, e))?;
    let stored = NumberType::new(header.element, header.scale).read(rounded, &mut notes);
    Ok(ImageRead { repetition_time_s: header.step_s(), ..ImageRead::new(image, stored, notes) })
}

/// A decoder reports damage as an I/O error of these kinds.
fn stream_error(path: &Path, error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => {
            Error::truncated(path, "the compressed stream", "an end of stream", "the end of the file")
        }
        io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData => {
            Error::field(path, "compressed stream", "valid gzip data", error)
        }
        _ => Error::read(path, error),
    }
}

/// Writes an image as NIfTI-1, compressed when the name ends in `.gz`; `sform` and `qform` both hold its
/// geometry, in mm.
///
/// Errors: an axis longer than 32767, or a file that cannot be written.
///
/// ```
/// use ndarray::{ArrayD, IxDyn};
/// use rayspin_core::{C32, Geometry, Image};
/// use rayspin_io::nifti;
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("image.nii");
/// let data = ArrayD::from_elem(IxDyn(&[2, 4, 5]), C32::new(3.0, 0.0));
/// let image = Image::new(data, Geometry::default())?;
/// nifti::write(&path, &image, &Default::default())?;
/// assert_eq!(nifti::read(&path)?.image.shape_zyx(), [2, 4, 5]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn write(path: impl AsRef<Path>, image: &Image, options: &NiftiOptions) -> Result<()> {
    let path = path.as_ref();
    let repetitions = (image.data().ndim() == 4).then(|| image.repetitions());
    let mut series =
        NiftiSeries::create(path, repetitions, image.shape_zyx(), image.geometry(), options.clone(), None)?;
    series.push(&image.data().view().into())?;
    Box::new(series).finish(path, image.repetitions()).map(drop)
}

fn is_compressed(path: &Path) -> bool {
    path.extension().is_some_and(|e| e.eq_ignore_ascii_case("gz"))
}
