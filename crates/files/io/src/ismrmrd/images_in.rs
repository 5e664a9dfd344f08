//! Image series on the way in.

use std::collections::BTreeMap;
use std::path::Path;

use hdf5::types::{FloatSize, IntSize, TypeDescriptor};
use hdf5::{Dataset, H5Type};
use ndarray::{ArrayD, Axis, IxDyn};
use rayspin_core::slices::{Stack, all_in_one_place, order, stacks};
use rayspin_core::{C32, Geometry, Image, voxels};
use rayspin_device::cpu::expect_memory;

use super::header_in;
use super::layout::{ReIm, RealImag, Ri};
use super::open::{open, series_of};
use crate::element::Element;
use crate::error::{Error, Result};
use crate::format::ImageRead;
use crate::hdf5_file::{dataset, expect_within, file_bytes, reading};
use crate::opening::choose;
use crate::{AnyImage, NumberType};

/// What Rayspin takes from an image's `header`, by name.
#[derive(H5Type, Debug, Clone, Copy, Default)]
#[repr(C)]
struct ImageHead {
    matrix_size: [u32; 3],
    field_of_view: [f32; 3],
    position: [f32; 3],
    read_dir: [f32; 3],
    phase_dir: [f32; 3],
    slice_dir: [f32; 3],
    repetition: u32,
}

/// The image series of `path`, as `group/series`: groups with a dataset `header` and a dataset `data` of five
/// axes.
///
/// Errors: not HDF5, or cut short.
///
/// ```
/// use rayspin_core::{C32, Geometry, Image};
/// use rayspin_io::ismrmrd::{ImageOptions, image_series, write_images};
///
/// # let folder = tempfile::tempdir()?;
/// let image = Image::new(ndarray::ArrayD::from_elem(vec![1, 8, 6], C32::ONE), Geometry::default())?;
/// let file = folder.path().join("image.h5");
/// write_images(&file, &image, &ImageOptions::default())?;
/// assert_eq!(image_series(&file)?, ["dataset/image_0"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn image_series(path: impl AsRef<Path>) -> Result<Vec<String>> {
    let path = path.as_ref();
    Ok(series_of(path, &open(path)?))
}

/// Reads an ISMRMRD image series, `[image, 1, z, y, x]`, and what was assumed of it. Images are repetitions.
/// Those that share a repetition are slices, in the order of their places. Slices that no single geometry
/// describes form several stacks, named `series/1`, `series/2`, ….
///
/// Errors: no series or stack, or several and none named, more than one channel, arrays that contradict the
/// headers.
///
/// ```
/// use rayspin_core::{C32, Geometry, Image};
/// use rayspin_io::ismrmrd::{ImageOptions, read_images, write_images};
///
/// # let folder = tempfile::tempdir()?;
/// let series = ndarray::ArrayD::from_elem(vec![3, 1, 8, 6], C32::from(2.0)); // [repetition, z, y, x]
/// let image = Image::new(series, Geometry::default())?;
/// let file = folder.path().join("image.h5");
/// write_images(&file, &image, &ImageOptions::default())?;
/// let (read, _notes) = read_images(&file, Some("dataset/image_0"))?;
/// assert_eq!(read.data(), image.data());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn read_images(path: impl AsRef<Path>, series: Option<&str>) -> Result<(Image, Vec<String>)> {
    let ImageRead { image, notes, .. } = read_any_images(path.as_ref(), series)?;
    Ok((image.into_complex(), notes))
}

/// [`read_images`] in the numbers that the file has.
pub(super) fn read_any_images(path: &Path, series: Option<&str>) -> Result<ImageRead> {
    let file = open(path)?;
    let names = series_of(path, &file);
    let of_stack = series.and_then(|name| series_of_stack(name, &names));
    let name = choose(path, "image series", &names, of_stack.or(series))?;
    let fail = |e: hdf5::Error| reading(path, "the image series", &e);
    let group = file.group(&name).map_err(fail)?;
    let data = dataset(path, &group, "data")?;
    let shape = data.get_shape().map_err(fail)?;
    let &[count, channels, nz, ny, nx] = shape.as_slice() else {
        return Err(Error::field(path, "image data", "[image, channel, z, y, x]", format!("{shape:?}")));
    };
    if channels != 1 || shape.contains(&0) {
        let expected = "one channel and no empty axis";
        return Err(Error::field(path, "image data", expected, format!("shape {shape:?}")));
    }
    let heads = heads(path, &dataset(path, &group, "header")?, count)?;
    for (index, head) in heads.iter().enumerate() {
        if head.matrix_size.map(|n| n as usize) != [nx, ny, nz] {
            return Err(Error::field(
                path,
                format!("image {index}: matrix_size"),
                format!("{:?}, as its data have", [nx, ny, nz]),
                format!("{:?}", head.matrix_size),
            ));
        }
    }
    let mut notes = Vec::new();
    let places: Vec<Geometry> = heads.iter().map(|head| geometry(head, &mut notes)).collect();
    let Stored { values, stored, rounded } = values(path, &data, &shape)?;
    let stored = stored.read(rounded, &mut notes);
    let arrangement = arranged(&heads, &places, nz, &mut notes);
    let chosen = match &arrangement.stacks[..] {
        [_] => 0,
        several => {
            let names: Vec<String> = (1..=several.len()).map(|number| format!("{name}/{number}")).collect();
            let given = series.filter(|_| of_stack.is_some());
            let wanted = choose(path, "stacks of slices in several places", &names, given)?;
            names.iter().position(|name| *name == wanted).unwrap_or_default()
        }
    };
    let image: AnyImage = match values {
        Values::Real(values) => image(path, values, &shape, arrangement, chosen)?.into(),
        Values::Complex(values) => image(path, values, &shape, arrangement, chosen)?.into(),
    };
    Ok(ImageRead::new(image, stored, notes))
}

/// The stack `chosen` of the images of the file.
fn image<T: Copy>(
    path: &Path,
    values: Vec<T>,
    shape: &[usize],
    arrangement: Arrangement,
    chosen: usize,
) -> Result<Image<T>> {
    let &[count, _, nz, ny, nx] = shape else {
        return Err(Error::field(path, "image data", "[image, channel, z, y, x]", format!("{shape:?}")));
    };
    let unfit = |e| Error::field(path, "image data", "a shape that fits the values", e);
    let images = ArrayD::from_shape_vec(IxDyn(&[count, nz, ny, nx]), values).map_err(unfit)?;
    let Arrangement { order, leading, stacks } = arrangement;
    let images = if order.is_sorted() { images } else { images.select(Axis(0), &order) };
    let shape = [&leading[..], &[ny, nx]].concat();
    let whole = Image::of_stacks(images.into_shape_with_order(IxDyn(&shape)).map_err(unfit)?, stacks);
    let one = whole.and_then(|whole| match whole.stacks().len() {
        1 => Ok(whole),
        _ => Ok(whole.apart()?.swap_remove(chosen)),
    });
    one.map_err(|e| Error::core(path, e))
}

/// The series that a stack's name `series/number` is of, where it is one.
pub(super) fn series_of_stack<'a>(name: &'a str, series: &[String]) -> Option<&'a str> {
    let known = |name: &str| series.iter().any(|one| one.trim_matches('/') == name);
    let name = name.trim_matches('/');
    let (whole, number) = name.rsplit_once('/')?;
    (!known(name) && known(whole) && number.parse::<usize>().is_ok()).then_some(whole)
}

/// How the images of a file become one array.
struct Arrangement {
    /// The images, repetition by repetition, slices in the order of their places.
    order: Vec<usize>,
    /// The array's axes before y and x: `[z]` or `[repetition, z]`.
    leading: Vec<usize>,
    /// What the slices of a repetition are.
    stacks: Vec<Stack>,
}

/// Images of `nz` slices each as repetitions of slices.
fn arranged(heads: &[ImageHead], places: &[Geometry], nz: usize, notes: &mut Vec<String>) -> Arrangement {
    let count = heads.len();
    let mut times: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for (index, head) in heads.iter().enumerate() {
        times.entry(head.repetition).or_default().push(index);
    }
    let each = count / times.len().max(1);
    let alike = times.values().all(|images| images.len() == each);
    let geometries =
        |images: &[usize]| -> Vec<Geometry> { images.iter().map(|&index| places[index]).collect() };
    if each == 1 || !alike || (nz > 1 && all_in_one_place(places)) {
        return Arrangement {
            order: (0..count).collect(),
            leading: if count == 1 { vec![nz] } else { vec![count, nz] },
            stacks: vec![Stack { slices: nz, geometry: places[0] }],
        };
    }
    let mut sorted = Vec::with_capacity(count);
    for images in times.values() {
        sorted.extend(order(&geometries(images)).into_iter().map(|position| images[position]));
    }
    let first = geometries(&sorted[..each]);
    let stacks = match nz {
        1 => stacks(&first),
        // Volumes, such as the slabs of a scan.
        _ => first.iter().map(|&geometry| Stack { slices: nz, geometry }).collect(),
    };
    if nz == 1 && all_in_one_place(&first) {
        let z = first[0].spacing_mm[2];
        notes.push(format!("slice positions are not spaced along the slice direction: {z} mm assumed"));
    }
    let leading = if times.len() == 1 { vec![each * nz] } else { vec![times.len(), each * nz] };
    Arrangement { order: sorted, leading, stacks }
}

/// The XML header as the scan model has it, and what had to be assumed. `path` is for the errors.
///
/// Errors: no well-formed document, another root, no encoding, or values out of range.
///
/// ```
/// use rayspin_io::ismrmrd::parse_header;
///
/// let space = "<matrixSize><x>32</x><y>24</y><z>1</z></matrixSize>\
///     <fieldOfView_mm><x>220</x><y>180</y><z>5</z></fieldOfView_mm>";
/// let xml = format!(
///     "<ismrmrdHeader><encoding><encodedSpace>{space}</encodedSpace><reconSpace>{space}</reconSpace>\
///     <encodingLimits/><trajectory>radial</trajectory></encoding></ismrmrdHeader>"
/// );
/// let (header, _notes) = parse_header("scan.h5", xml.as_bytes())?;
/// assert_eq!(header.encodings[0].recon.matrix, [32, 24, 1]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn parse_header(
    path: impl AsRef<Path>,
    xml: &[u8],
) -> Result<(rayspin_scan::mri::ScanHeader, Vec<String>)> {
    let mut notes = Vec::new();
    let text = header_in::text(xml, &mut notes);
    let header = header_in::parse(path.as_ref(), text, &mut notes)?;
    Ok((header, notes))
}

fn heads(path: &Path, dataset: &Dataset, count: usize) -> Result<Vec<ImageHead>> {
    let fail = |e: hdf5::Error| reading(path, "the headers of the images", &e);
    let shape = dataset.get_shape().map_err(fail)?;
    let most = file_bytes(path, dataset)?.unwrap_or(u64::MAX);
    if voxels(&shape).ok() != Some(count) || count as u64 > most {
        let expected = format!("{count}, one an image");
        return Err(Error::field(path, "image headers", expected, format!("shape {shape:?}")));
    }
    if !matches!(dataset.dtype().and_then(|t| t.to_descriptor()), Ok(TypeDescriptor::Compound(_))) {
        return Err(Error::field(path, "image headers", "compounds", "another type"));
    }
    let mut heads = vec![ImageHead::default(); count];
    dataset.as_reader().read_into_raw(&mut heads).map_err(fail)?;
    Ok(heads)
}

fn geometry(head: &ImageHead, notes: &mut Vec<String>) -> Geometry {
    let wide = |v: [f32; 3]| v.map(f64::from);
    let spacing = std::array::from_fn(|axis| {
        f64::from(head.field_of_view[axis]) / f64::from(head.matrix_size[axis].max(1))
    });
    let mut note = |text: &str| {
        if !notes.iter().any(|known| known == text) {
            notes.push(text.into());
        }
    };
    let new =
        |[read, phase, slice]: [[f64; 3]; 3]| Geometry::new(spacing, wide(head.position), read, phase, slice);
    if let Ok(geometry) = new([head.read_dir, head.phase_dir, head.slice_dir].map(wide)) {
        return geometry;
    }
    let Geometry { read_dir, phase_dir, slice_dir, .. } = Geometry::default();
    if let Ok(geometry) = new([read_dir, phase_dir, slice_dir]) {
        note("the image headers state no usable directions: axes are taken as left, posterior, superior");
        return geometry;
    }
    note("the image headers state no usable geometry: voxels of 1 mm at the isocentre are assumed");
    Geometry::default()
}

/// The numbers of a series.
struct Stored {
    values: Values,
    stored: NumberType,
    rounded: bool,
}

enum Values {
    Real(Vec<f32>),
    Complex(Vec<C32>),
}

fn values(path: &Path, dataset: &Dataset, shape: &[usize]) -> Result<Stored> {
    let fail = |e: hdf5::Error| reading(path, "the image data", &e);
    let descriptor = dataset.dtype().and_then(|t| t.to_descriptor()).map_err(fail)?;
    let count = voxels(shape).map_err(|e| Error::core(path, e))?;
    expect_within(path, dataset, "image data", descriptor.size())?;
    let promised = count as u128 * descriptor.size() as u128;
    // The values as they lie in the file, and as they are given.
    let bytes = promised + count as u128 * size_of::<C32>() as u128;
    expect_memory("image data", u64::try_from(bytes).unwrap_or(u64::MAX))
        .map_err(|e| Error::core(path, e))?;
    let element = element_of(&descriptor);
    let mut rounded = false;
    let values: Vec<C32> = match &descriptor {
        TypeDescriptor::Integer(_) | TypeDescriptor::Unsigned(_) | TypeDescriptor::Float(_) => {
            let values = match element.size() {
                ..4 => raw::<f32>(dataset, count).map_err(fail)?,
                _ if element == Element::F32 => raw::<f32>(dataset, count).map_err(fail)?,
                // Double precision holds the digits of wider numbers, but not all of 64-bit integers.
                _ => {
                    let wide = raw::<f64>(dataset, count).map_err(fail)?;
                    rounded =
                        wide.iter().any(|&number| f64::from(number as f32) != number && !number.is_nan());
                    let beyond = |number: &f64| number.is_finite() && number.abs() > f64::from(f32::MAX);
                    if let Some(index) = wide.iter().position(beyond) {
                        return Err(too_large(path, index));
                    }
                    wide.into_iter().map(|number| number as f32).collect()
                }
            };
            return Ok(Stored { values: Values::Real(values), stored: element.into(), rounded });
        }
        TypeDescriptor::Compound(pair) => {
            let mut names: Vec<&str> = pair.fields.iter().map(|f| f.name.as_str()).collect();
            names.sort_unstable();
            match names.as_slice() {
                ["imag", "real"] => pairs(raw::<RealImag>(dataset, count), |z| C32::new(z.real, z.imag)),
                ["im", "re"] => pairs(raw::<ReIm>(dataset, count), |z| C32::new(z.re, z.im)),
                ["i", "r"] => pairs(raw::<Ri>(dataset, count), |z| C32::new(z.r, z.i)),
                _ => {
                    let expected = "numbers or complex numbers (real, imag)";
                    return Err(Error::field(path, "image data", expected, names.join(", ")));
                }
            }
            .map_err(fail)?
        }
        other => return Err(Error::field(path, "image data", "numbers or complex numbers", other)),
    };
    // HDF5 makes infinite numbers of those that are too large.
    let is_infinite = |z: &C32| element == Element::C64 && (z.re.is_infinite() || z.im.is_infinite());
    match values.iter().position(is_infinite) {
        Some(index) => Err(too_large(path, index)),
        None => Ok(Stored { values: Values::Complex(values), stored: element.into(), rounded }),
    }
}

fn too_large(path: &Path, index: usize) -> Error {
    Error::field(path, format!("image value {index}"), "a value within single precision", "a larger one")
}

/// The type of numbers; pairs are complex ones.
fn element_of(descriptor: &TypeDescriptor) -> Element {
    match descriptor {
        TypeDescriptor::Integer(IntSize::U1) => Element::I8,
        TypeDescriptor::Integer(IntSize::U2) => Element::I16,
        TypeDescriptor::Integer(IntSize::U4) => Element::I32,
        TypeDescriptor::Integer(IntSize::U8) => Element::I64,
        TypeDescriptor::Unsigned(IntSize::U1) => Element::U8,
        TypeDescriptor::Unsigned(IntSize::U2) => Element::U16,
        TypeDescriptor::Unsigned(IntSize::U4) => Element::U32,
        TypeDescriptor::Unsigned(IntSize::U8) => Element::U64,
        TypeDescriptor::Float(FloatSize::U4) => Element::F32,
        TypeDescriptor::Float(FloatSize::U8) => Element::F64,
        TypeDescriptor::Compound(pair) if pair.size > 8 => Element::C64,
        _ => Element::C32,
    }
}

fn raw<T: H5Type + Clone>(dataset: &Dataset, count: usize) -> hdf5::Result<Vec<T>> {
    let values = dataset.read_raw::<T>()?;
    if values.len() == count { Ok(values) } else { Err("another number of values than the shape has".into()) }
}

fn pairs<T>(values: hdf5::Result<Vec<T>>, number: impl Fn(T) -> C32) -> hdf5::Result<Vec<C32>> {
    Ok(values?.into_iter().map(number).collect())
}
