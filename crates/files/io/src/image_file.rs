use std::borrow::Cow;
use std::path::Path;

use rayspin_core::{Geometry, Image, format_shape};

use crate::atomic::together;
use crate::cfl::Layout;
use crate::detect::Found;
use crate::format::{ImageRead, Property, any_of};
use crate::{
    AnyImage, Error, Format, Input, Modality, NumberType, Pixel, Result, SeriesWriter, Slices, Values,
    WriteOptions, endings, stack_paths,
};

/// The note on images of formats that hold none.
pub(crate) const NO_GEOMETRY: &str =
    "the file holds no geometry: voxels of 1 mm at the isocentre are assumed";

/// The note on images of such formats that state the size of a voxel all the same.
pub(crate) const NO_PLACE: &str =
    "the file states the size of a voxel and no place: the isocentre is assumed";

/// An image from a file.
#[derive(Debug, Clone, PartialEq)]
pub struct ImageFile<I = Image> {
    /// The image.
    pub image: I,
    /// The format it was read from.
    pub format: &'static Format,
    /// What became of the dimensions of a BART array; [`WriteOptions::layout`] takes it to write one like it.
    pub layout: Layout,
    /// True if the file states Hounsfield units. CT images of DICOM do.
    pub hounsfield: bool,
    /// What made the image, where the file states it; [`Origin::modality`](crate::Origin::modality) takes it.
    pub modality: Option<Modality>,
    /// How the file stores the numbers; [`WriteOptions::stored`] takes it to write integers as such.
    pub stored: NumberType,
    /// Time between repetitions in s, where the file states it; [`WriteOptions::repetition_time_s`] takes it.
    pub repetition_time_s: Option<f64>,
    /// What had to be assumed or repaired, one sentence each, for the user to see.
    pub notes: Vec<String>,
}

impl<I> ImageFile<I> {
    /// Whether the numbers are Hounsfield units, where the file tells; most formats do not.
    /// [`WriteOptions::hounsfield`] takes it.
    pub fn states_hounsfield(&self) -> Option<bool> {
        (self.hounsfield || self.format.keeps(Property::Unit)).then_some(self.hounsfield)
    }

    /// The file with what `image` makes of its image.
    fn map<J>(self, image: impl FnOnce(I) -> J) -> ImageFile<J> {
        let Self { image: own, format, layout, hounsfield, modality, stored, repetition_time_s, notes } =
            self;
        let image = image(own);
        ImageFile { image, format, layout, hounsfield, modality, stored, repetition_time_s, notes }
    }
}

/// Reads an image of any format that holds images as arrays. NumPy arrays are `[y, x]`, `[z, y, x]` or
/// `[repetition, z, y, x]`. A name after a colon chooses one of several arrays or series ([`Input`]).
///
/// Errors: a file of no such format; errors of the format's reader.
///
/// ```
/// use ndarray::{ArrayD, IxDyn};
/// use rayspin_core::{C32, Geometry, Image};
/// use rayspin_io::{read_image, write_image};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("image.nii.gz");
/// let data = ArrayD::from_elem(IxDyn(&[2, 4, 5]), C32::new(3.0, 0.0));
/// let image = Image::new(data, Geometry::default())?;
/// write_image(&path, &image, &Default::default())?;
/// let found = read_image(&path)?;
/// assert_eq!(found.image.shape_zyx(), [2, 4, 5]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn read_image(path: impl AsRef<Path>) -> Result<ImageFile> {
    Ok(read_any_image(path)?.map(AnyImage::into_complex))
}

/// Reads an image of real numbers, as [`read_image`] does.
///
/// Errors: numbers with imaginary parts, and as [`read_image`].
///
/// ```
/// use ndarray::{ArrayD, IxDyn};
/// use rayspin_core::{Geometry, Image};
/// use rayspin_io::{read_volume, write_image};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("volume.npy");
/// let volume = Image::new(ArrayD::from_elem(IxDyn(&[2, 4, 5]), -3.0f32), Geometry::default())?;
/// write_image(&path, &volume, &Default::default())?;
/// assert_eq!(read_volume(&path)?.image.data()[[1, 2, 3]], -3.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn read_volume(path: impl AsRef<Path>) -> Result<ImageFile<Image<f32>>> {
    let input = Input::of(&path);
    let file = read_any_image(path)?;
    if let AnyImage::Complex(image) = &file.image
        && let Some(value) = image.data().iter().find(|value| value.im != 0.0)
    {
        return Err(Error::field(&input.file, "image", "real numbers", format!("the number {value}"))
            .with_hint("`rayspin convert` writes the magnitudes to .nii.gz"));
    }
    Ok(file.map(|image| image.into_real().0))
}

/// Reads an image in the numbers that its file has, as [`read_image`] does.
///
/// Errors: as [`read_image`].
pub fn read_any_image(path: impl AsRef<Path>) -> Result<ImageFile<AnyImage>> {
    let input = Input::of(path);
    let (path, name, detected) = (&input.file, input.name.as_deref(), input.found()?);
    let format = detected.format();
    let unsupported = || {
        let readable = endings(Format::reads_images);
        let error = Error::unsupported(path, format!("reading an image from {format}"));
        error.with_hint(format!("give an image as {}", any_of(&readable)))
    };
    let mut read = match detected {
        Found::File(_) => (format.read_image.ok_or_else(unsupported)?)(path, name)?,
        Found::Folder(folder) => {
            let of_folder = format.folder.as_ref().ok_or_else(unsupported)?;
            let mut read = (of_folder.image)(&folder, name)?;
            read.notes.extend(folder.left_out());
            read
        }
    };
    if !format.keeps(Property::Geometry) {
        let is_sized = read.image.geometry().spacing_mm != [1.0; 3];
        read.notes.insert(0, if is_sized { NO_PLACE } else { NO_GEOMETRY }.into());
    }
    read.notes.extend(read.image.not_finite_note());
    let ImageRead { image, layout, hounsfield, modality, stored, repetition_time_s, notes } = read;
    Ok(ImageFile { image, format, layout, hounsfield, modality, stored, repetition_time_s, notes })
}

/// Writes an image in the format that the name's ending stands for. Returns what the file leaves out, one
/// sentence each. An image of several stacks becomes the files that [`stack_paths`] names.
///
/// Errors: an ending that belongs to no image format; a file that cannot be written; errors of the format's
/// writer.
///
/// ```
/// use ndarray::{ArrayD, IxDyn};
/// use rayspin_core::{C32, Geometry, Image};
/// use rayspin_io::{Values, WriteOptions, read_image, write_image};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("phase.npy");
/// let data = ArrayD::from_elem(IxDyn(&[1, 4, 5]), C32::i());
/// let image = Image::new(data, Geometry::default())?;
/// let options = WriteOptions { values: Some(Values::Phase), ..WriteOptions::default() };
/// write_image(&path, &image, &options)?;
/// let phase = read_image(&path)?.image.data()[[0, 1, 2]].re;
/// assert!((phase - std::f32::consts::FRAC_PI_2).abs() < 1e-6);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn write_image<T: Pixel>(
    path: impl AsRef<Path>,
    image: &Image<T>,
    options: &WriteOptions,
) -> Result<Vec<String>> {
    let names = stack_paths(&path, image.stacks().len())?;
    if names.len() > 1 {
        let mut notes = Vec::new();
        let parts = image.apart().map_err(|e| Error::core(path.as_ref(), e))?;
        let write = |name: &Path, part: &Image<T>| {
            let mut options = options.clone();
            if let Some(shown) = &mut options.png.montage.slices {
                shown.retain(|&slice| slice < part.shape_zyx()[0]);
            }
            if options.png.montage.slices.as_ref().is_some_and(Vec::is_empty) {
                options.png.montage.slices = None;
            }
            write_image(name, part, &options)
        };
        together(|| {
            for (name, part) in names.iter().zip(&parts) {
                let left_out = write(name, part)?;
                notes.extend(left_out.into_iter().filter(|note| !notes.contains(note)).collect::<Vec<_>>());
            }
            Ok::<_, Error>(())
        })?;
        notes.push(stacks_note(&names));
        return Ok(notes);
    }
    let shape = image.data().shape();
    let slices = T::slices(image.data().view());
    let mut options = Cow::Borrowed(options);
    let images = Format::of_name(&path).and_then(|format| format.images.as_ref());
    let real = images.is_some_and(|images| images.values.contains(&Values::Real));
    if matches!(slices, Slices::Real(_)) && options.values.is_none() && real {
        options.to_mut().values = Some(Values::Real);
    }
    let integers = match (&slices, images, options.stored) {
        (Slices::Real(numbers), Some(images), Some(stored)) => match options.values {
            Some(values @ (Values::Real | Values::Magnitude)) if !slices.lose(values) => {
                stored.integers_of(numbers, images.scaled, images.integers)
            }
            _ => None,
        },
        _ => None,
    };
    let mut writer = SeriesWriter::start(path.as_ref(), shape, image.geometry(), &options, integers)?;
    match shape.len() {
        4 => slices.planes().try_for_each(|volume| writer.push(volume))?,
        _ => writer.push(slices)?,
    }
    writer.finish()
}

/// Where the stacks of an image are.
fn stacks_note(names: &[std::path::PathBuf]) -> String {
    let names: Vec<String> = names.iter().map(|name| name.display().to_string()).collect();
    format!("a file holds the place of one stack of slices: the image is in {}", names.join(", "))
}

/// What a format without geometry leaves out of an image of `shape`.
pub(crate) fn geometry_note(geometry: &Geometry, shape: &[usize]) -> Option<String> {
    (*geometry != Geometry::default()).then(|| {
        let shape = format_shape(shape);
        format!("the format holds no geometry: only the values {shape} are written")
    })
}

pub(crate) fn lost_note(values: Values) -> String {
    let part = if values == Values::Magnitude { "magnitude" } else { "real part" };
    let keep = endings(|format| format.images.as_ref().is_some_and(|i| i.values.contains(&Values::Complex)));
    format!(
        "only the {part} of the complex image is written: complex values keep the phase (`--complex`; {})",
        keep.join(", ")
    )
}
