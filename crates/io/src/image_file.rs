use std::path::Path;

use rayspin_core::{C32, Geometry, Image, format_shape};

use crate::cfl::Layout;
use crate::format::{Kept, any_of};
use crate::png::PngOptions;
use crate::{Error, Format, Result, SeriesWriter, detect, endings};

/// The numbers of a complex image that a file stores.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Values {
    /// |v| as 32-bit float.
    #[default]
    Magnitude,
    /// Re v as 32-bit float.
    Real,
    /// v as two 32-bit floats.
    Complex,
}

impl Values {
    /// The numbers that are stored of this one.
    pub(crate) fn of(self, value: C32) -> C32 {
        match self {
            Self::Magnitude => C32::new(value.norm(), 0.0),
            Self::Real => C32::new(value.re, 0.0),
            Self::Complex => value,
        }
    }

    /// The name for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Magnitude => "magnitudes",
            Self::Real => "real parts",
            Self::Complex => "complex values",
        }
    }
}

/// How [`read_image`] reads.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReadOptions {
    /// The array to take from an `.npz` archive, or the series of an HDF5 file, that holds several.
    pub array: Option<String>,
}

/// How [`write_image`] writes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WriteOptions {
    /// The numbers stored; when absent, the format's usual ones: magnitude in NIfTI and ISMRMRD, and complex numbers in `.npy`
    /// and `.cfl`.
    pub values: Option<Values>,
    /// Time between repetitions in s, for formats that keep it.
    pub repetition_time_s: Option<f64>,
    /// Where the image's axes go in a BART array. Repetitions other in number than its frames go to TIME.
    pub layout: Layout,
    /// How the picture is made, for PNG.
    pub png: PngOptions,
}

/// An image from a file.
#[derive(Debug, Clone, PartialEq)]
pub struct ImageFile {
    /// The image.
    pub image: Image,
    /// The format it was read from.
    pub format: &'static Format,
    /// What became of the dimensions of a BART array; [`WriteOptions::layout`] takes it to write one like it.
    pub layout: Layout,
    /// What had to be assumed or repaired, one sentence each, for the user to see.
    pub notes: Vec<String>,
}

/// Reads an image of any format that holds images as arrays. NumPy arrays are `[y, x]`, `[z, y, x]` or `[repetition, z, y, x]`.
///
/// Errors: a file of no such format, and those of each format's reader.
pub fn read_image(path: impl AsRef<Path>, options: &ReadOptions) -> Result<ImageFile> {
    let path = path.as_ref();
    let format = detect(path)?;
    let Some(read) = format.read_image else {
        let of = endings(Format::reads_images);
        return Err(Error::unsupported(path, format!("reading an image from {format}"))
            .with_hint(format!("give an image as {}", any_of(&of))));
    };
    let mut read = read(path, options.array.as_deref())?;
    if !format.keeps(Kept::Geometry) {
        read.notes
            .insert(0, "the file holds no geometry: voxels of 1 mm at the isocentre are assumed".into());
    }
    Ok(ImageFile { image: read.image, format, layout: read.layout, notes: read.notes })
}

/// Writes an image in the format that the name's ending stands for. Returns what the file leaves out, one sentence each.
///
/// Errors: an ending of no format that images are written in, a file that cannot be written, and those of each format's writer.
pub fn write_image(path: impl AsRef<Path>, image: &Image, options: &WriteOptions) -> Result<Vec<String>> {
    let shape = image.data().shape();
    let mut writer = SeriesWriter::start(path.as_ref(), shape, image.geometry(), options)?;
    match shape.len() {
        4 => image.data().outer_iter().try_for_each(|volume| writer.push(volume))?,
        _ => writer.push(image.data().view())?,
    }
    writer.finish()
}

/// What a format without geometry leaves out of an image of `shape`.
pub(crate) fn geometry_note(geometry: &Geometry, shape: &[usize]) -> Option<String> {
    (*geometry != Geometry::default()).then(|| {
        let shape = format_shape(shape);
        format!("the format holds no geometry: only the values {shape} are written")
    })
}

/// Whether `values` tell less than the numbers.
pub(crate) fn lost_part<'a>(mut numbers: impl Iterator<Item = &'a C32>, values: Values) -> bool {
    match values {
        Values::Complex => false,
        Values::Magnitude => numbers.any(|v| v.im != 0.0 || v.re < 0.0),
        Values::Real => numbers.any(|v| v.im != 0.0),
    }
}

pub(crate) fn lost_note(values: Values) -> String {
    let part = if values == Values::Magnitude { "magnitude" } else { "real part" };
    format!("only the {part} of the complex image is written")
}
