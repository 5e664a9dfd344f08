use std::path::Path;

use ndarray::{ArrayD, ArrayViewD, Axis, CowArray, IxDyn};
use rayspin_core::{C32, Geometry, Image, format_shape};

use crate::cfl::{self, Cartesian, Layout, dim};
use crate::ismrmrd::{self, ImageKind, ImageOptions};
use crate::nifti::{self, NiftiOptions};
use crate::png::{self, PngOptions};
use crate::{Error, Format, Result, detect, npy};

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

/// How [`read_image`] reads.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReadOptions {
    /// The array to take from an `.npz` archive, or the series of an HDF5 file, that holds several.
    pub array: Option<String>,
}

/// How [`write_image`] writes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WriteOptions {
    /// The numbers stored; when absent, magnitude in NIfTI and ISMRMRD, and complex numbers in `.npy` and `.cfl`.
    pub values: Option<Values>,
    /// Time between repetitions in s, for NIfTI.
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
    pub format: Format,
    /// What became of the dimensions of a BART array; [`WriteOptions::layout`] takes it to write one like it.
    pub layout: Layout,
    /// What had to be assumed or repaired, one sentence each, for the user to see.
    pub notes: Vec<String>,
}

/// Reads an image of any format that holds images as arrays: NIfTI, `.npy`, `.npz`, BART, ISMRMRD images. NumPy arrays are `[y, x]`,
/// `[z, y, x]` or `[repetition, z, y, x]`.
///
/// Errors: a file of no such format, and those of each format's reader.
pub fn read_image(path: impl AsRef<Path>, options: &ReadOptions) -> Result<ImageFile> {
    let path = path.as_ref();
    let format = detect(path)?;
    let mut layout = Layout::default();
    let (image, notes) = match format {
        Format::Nifti => {
            let read = nifti::read(path)?;
            (read.image, read.notes)
        }
        Format::Npy => without_geometry(path, npy::read_complex(path)?)?,
        Format::Npz => without_geometry(path, npy::read_npz_complex(path, options.array.as_deref())?)?,
        Format::Cfl => image_of_bart(path, &mut layout)?,
        Format::Hdf5 => {
            if ismrmrd::image_series(path)?.is_empty() {
                return Err(Error::not_this_format(path, "an image", "HDF5 without an image series")
                    .with_hint("rayspin recon mri makes an image of a raw scan"));
            }
            ismrmrd::read_images(path, options.array.as_deref())?
        }
        Format::Png | Format::Twix => {
            return Err(Error::unsupported(path, format!("reading an image from {format}"))
                .with_hint("give a NIfTI, NumPy, BART or ISMRMRD image file"));
        }
    };
    Ok(ImageFile { image, format, layout, notes })
}

const NO_GEOMETRY: &str = "the file holds no geometry: voxels of 1 mm at the isocentre are assumed";

fn without_geometry(path: &Path, data: ArrayD<C32>) -> Result<(Image, Vec<String>)> {
    let image = Image::new(data, Geometry::default()).map_err(|e| Error::core(path, e))?;
    Ok((image, vec![NO_GEOMETRY.into()]))
}

fn image_of_bart(path: &Path, layout: &mut Layout) -> Result<(Image, Vec<String>)> {
    let array = cfl::read(path)?;
    let mut notes = vec![NO_GEOMETRY.to_owned()];
    if array.shape()[dim::COIL] != 1 {
        let found = format!("{} coils", array.shape()[dim::COIL]);
        return Err(Error::field(path, "Dimensions", "an image, of 1 coil", found)
            .with_hint("reconstruct or combine the coils first"));
    }
    let cartesian = Cartesian::image_from_bart(array.view()).map_err(|e| Error::core(path, e))?;
    *layout = cartesian.layout;
    notes.extend(layout.axes.note().map(str::to_owned));
    let frames: Vec<&str> = (dim::MAPS..cfl::DIMS)
        .filter(|&dim| layout.frames[dim - dim::MAPS] > 1)
        .map(|dim| dim::NAMES[dim])
        .collect();
    if !frames.is_empty() {
        notes.push(format!("{} are taken as repetitions", frames.join(" × ")));
    }
    let mut data = cartesian.data.index_axis_move(Axis(1), 0).into_dyn();
    if frames.is_empty() {
        data.index_axis_inplace(Axis(0), 0);
    }
    let image = Image::new(data, Geometry::default()).map_err(|e| Error::core(path, e))?;
    Ok((image, notes))
}

/// Writes an image in the format that the name's ending stands for: `.nii`, `.nii.gz`, `.npy`, `.cfl`, `.h5` or `.png`. Returns
/// what the file leaves out, one sentence each.
///
/// Errors: another ending, a file that cannot be written, and those of each format's writer.
pub fn write_image(path: impl AsRef<Path>, image: &Image, options: &WriteOptions) -> Result<Vec<String>> {
    let path = path.as_ref();
    let mut notes = Vec::new();
    let values = options.values;
    match Format::of_name(path) {
        Some(Format::Nifti) => {
            let values = values.unwrap_or_default();
            let nifti_options = NiftiOptions { values, repetition_time_s: options.repetition_time_s };
            nifti::write(path, image, &nifti_options)?;
            note_lost(image, values, &mut notes);
        }
        Some(Format::Npy) => {
            let values = values.unwrap_or(Values::Complex);
            match values {
                Values::Complex => npy::write(path, image.data().view())?,
                Values::Magnitude => npy::write(path, image.magnitude().view())?,
                Values::Real => npy::write(path, image.data().mapv(|v| v.re).view())?,
            }
            note_lost(image, values, &mut notes);
            note_geometry(image, &mut notes);
        }
        Some(Format::Cfl) => {
            let values = values.unwrap_or(Values::Complex);
            let other;
            let data = match values {
                Values::Complex => image.data().view(),
                Values::Magnitude => {
                    other = image.data().mapv(|v| C32::new(v.norm(), 0.0));
                    other.view()
                }
                Values::Real => {
                    other = image.data().mapv(|v| C32::new(v.re, 0.0));
                    other.view()
                }
            };
            let array = to_bart(data, &options.layout).map_err(|e| Error::core(path, e))?;
            cfl::write(path, array.view())?;
            note_lost(image, values, &mut notes);
            note_geometry(image, &mut notes);
        }
        Some(Format::Png) => notes.extend(png::write_image(path, image, &options.png)?),
        Some(Format::Hdf5) => {
            let values = values.unwrap_or_default();
            let kind = match values {
                Values::Magnitude => ImageKind::Magnitude,
                Values::Complex => ImageKind::Complex,
                Values::Real => return Err(crate::series_file::no_real_parts(path)),
            };
            let options = ImageOptions { kind, ..ImageOptions::default() };
            ismrmrd::write_images(path, image, &options)?;
            note_lost(image, values, &mut notes);
        }
        _ => return Err(no_ending(path)),
    }
    Ok(notes)
}

/// An image `[z, y, x]` or `[repetition, z, y, x]` in BART's order.
fn to_bart<'a>(
    mut data: ArrayViewD<'a, C32>,
    layout: &Layout,
) -> rayspin_core::Result<CowArray<'a, C32, IxDyn>> {
    if data.ndim() < 4 {
        data.insert_axis_inplace(Axis(0));
    }
    let layout = layout.with_frames(data.shape()[0], dim::TIME);
    layout.to_bart(data.insert_axis(Axis(1)))
}

fn note_geometry(image: &Image, notes: &mut Vec<String>) {
    notes.extend(geometry_note(image.geometry(), image.data().shape()));
}

/// What a format without geometry leaves out of an image of `shape`.
pub(crate) fn geometry_note(geometry: &Geometry, shape: &[usize]) -> Option<String> {
    (*geometry != Geometry::default()).then(|| {
        let shape = format_shape(shape);
        format!("the format holds no geometry: only the values {shape} are written")
    })
}

fn note_lost(image: &Image, values: Values, notes: &mut Vec<String>) {
    if lost_part(image.data().iter(), values) {
        notes.push(lost_note(values));
    }
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

/// A name whose ending stands for no format of images.
pub(crate) fn no_ending(path: &Path) -> Error {
    let found = path.file_name().unwrap_or_default().to_string_lossy();
    Error::field(path, "name of the output", "the ending .nii, .nii.gz, .npy, .cfl, .h5 or .png", found)
}
