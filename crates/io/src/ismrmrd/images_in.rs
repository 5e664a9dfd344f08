//! Image series on the way in.

use std::collections::BTreeMap;
use std::path::Path;

use hdf5::types::TypeDescriptor;
use hdf5::{Dataset, H5Type};
use ndarray::{ArrayD, Axis, IxDyn};
use rayspin_core::slices::{Stack, all_in_one_place, order, stacks};
use rayspin_core::{C32, Geometry, Image, voxels};
use rayspin_device::cpu::expect_memory;

use super::header_in;
use super::layout::{ReIm, RealImag, Ri};
use super::open::{open, series_of};
use crate::error::{Error, Result};
use crate::hdf5_file::reading;
use crate::input::choose;

/// The largest factor by which HDF5's deflate shrinks data, with room for others.
const LARGEST_RATIO: u64 = 1100;

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

/// The image series of `path`, as `group/series`: groups with a dataset `header` and a dataset `data` of five axes.
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
    Ok(series_of(&open(path)?))
}

/// Reads an ISMRMRD image series, `[image, 1, z, y, x]`, and what was assumed of it. Images are repetitions. Those that share a
/// repetition are slices, in the order of their places. Slices that no single geometry describes are several stacks, of which
/// `series/1`, `series/2`, … name one each.
///
/// Errors: no series or stack, or several and none named, more than one channel, arrays that contradict the headers, values that
/// are not numbers.
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
/// let (found, _notes) = read_images(&file, Some("dataset/image_0"))?;
/// assert_eq!(found.data(), image.data());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn read_images(path: impl AsRef<Path>, series: Option<&str>) -> Result<(Image, Vec<String>)> {
    let path = path.as_ref();
    let file = open(path)?;
    let found = series_of(&file);
    let of_stack = series.and_then(|name| series_of_stack(name, &found));
    let name = choose(path, "image series", &found, of_stack.or(series))?;
    let fail = |e: hdf5::Error| reading(path, "the image series", &e);
    let group = file.group(&name).map_err(fail)?;
    let data = group.dataset("data").map_err(fail)?;
    let shape = data.get_shape().map_err(fail)?;
    let &[count, channels, nz, ny, nx] = shape.as_slice() else {
        return Err(Error::field(path, "image data", "[image, channel, z, y, x]", format!("{shape:?}")));
    };
    if channels != 1 || shape.contains(&0) {
        let expected = "one channel and no empty axis";
        return Err(Error::field(path, "image data", expected, format!("shape {shape:?}")));
    }
    let heads = heads(path, &group.dataset("header").map_err(fail)?, count)?;
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
    let values = values(path, &data, &shape)?;
    let array = ArrayD::from_shape_vec(IxDyn(&[count, nz, ny, nx]), values)
        .map_err(|e| Error::field(path, "image data", "a shape that fits the values", e))?;
    let (array, stacks) = arranged(path, array, (&heads, &places), &mut notes)?;
    let chosen = match &stacks[..] {
        [_] => 0,
        several => {
            let names: Vec<String> = (1..=several.len()).map(|number| format!("{name}/{number}")).collect();
            let given = series.filter(|_| of_stack.is_some());
            let wanted = choose(path, "stack of slices, which one image has one of", &names, given)?;
            names.iter().position(|name| *name == wanted).unwrap_or_default()
        }
    };
    let image = match stacks.len() {
        1 => Image::of_stacks(array, stacks),
        _ => Image::of_stacks(array, stacks).and_then(|image| Ok(image.apart()?.swap_remove(chosen))),
    };
    Ok((image.map_err(|e| Error::core(path, e))?, notes))
}

/// The series that a stack's name `series/number` is of, where it is one.
pub(super) fn series_of_stack<'a>(name: &'a str, series: &[String]) -> Option<&'a str> {
    let known = |name: &str| series.iter().any(|one| one.trim_matches('/') == name);
    let name = name.trim_matches('/');
    let (whole, number) = name.rsplit_once('/')?;
    (!known(name) && known(whole) && number.parse::<usize>().is_ok()).then_some(whole)
}

/// The images `[image, z, y, x]` as repetitions of slices, `[z, y, x]` or `[repetition, z, y, x]`, and the stacks that these are.
fn arranged(
    path: &Path,
    images: ArrayD<C32>,
    (heads, places): (&[ImageHead], &[Geometry]),
    notes: &mut Vec<String>,
) -> Result<(ArrayD<C32>, Vec<Stack>)> {
    let (count, nz) = (images.shape()[0], images.shape()[1]);
    let mut times: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for (at, head) in heads.iter().enumerate() {
        times.entry(head.repetition).or_default().push(at);
    }
    let each = count / times.len().max(1);
    let alike = times.values().all(|images| images.len() == each);
    let of = |all: &[usize]| -> Vec<Geometry> { all.iter().map(|&at| places[at]).collect() };
    if each == 1 || !alike || (nz > 1 && all_in_one_place(places)) {
        let images = if count == 1 { images.index_axis_move(Axis(0), 0) } else { images };
        return Ok((images, vec![Stack { slices: nz, geometry: places[0] }]));
    }
    let mut sorted = Vec::with_capacity(count);
    for images in times.values() {
        sorted.extend(order(&of(images)).into_iter().map(|at| images[at]));
    }
    let first = of(&sorted[..each]);
    let stacks = match nz {
        1 => stacks(&first),
        // Volumes, such as the slabs of a scan.
        _ => first.iter().map(|&geometry| Stack { slices: nz, geometry }).collect(),
    };
    if nz == 1 && all_in_one_place(&first) {
        let z = first[0].spacing_mm[2];
        notes.push(format!("slice positions are not spaced along the slice direction: {z} mm assumed"));
    }
    let sorted = if sorted.is_sorted() { images } else { images.select(Axis(0), &sorted) };
    let leading = if times.len() == 1 { vec![each * nz] } else { vec![times.len(), each * nz] };
    let shape = [&leading, &sorted.shape()[2..]].concat();
    let whole = sorted.into_shape_with_order(IxDyn(&shape));
    Ok((whole.map_err(|e| Error::field(path, "image data", "slices of repetitions", e))?, stacks))
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
) -> Result<(rayspin_mri::scan::ScanHeader, Vec<String>)> {
    let mut notes = Vec::new();
    let text = header_in::text(xml, &mut notes);
    let header = header_in::parse(path.as_ref(), text, &mut notes)?;
    Ok((header, notes))
}

fn heads(path: &Path, dataset: &Dataset, count: usize) -> Result<Vec<ImageHead>> {
    let fail = |e: hdf5::Error| reading(path, "the headers of the images", &e);
    let shape = dataset.get_shape().map_err(fail)?;
    if voxels(&shape).ok() != Some(count) || count as u64 > file_bytes(path)? {
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

fn file_bytes(path: &Path) -> Result<u64> {
    Ok(std::fs::metadata(path).map_err(|e| Error::read(path, e))?.len())
}

fn geometry(head: &ImageHead, notes: &mut Vec<String>) -> Geometry {
    let wide = |v: [f32; 3]| v.map(f64::from);
    let spacing = std::array::from_fn(|axis| {
        f64::from(head.field_of_view[axis]) / f64::from(head.matrix_size[axis].max(1))
    });
    let dirs = [head.read_dir, head.phase_dir, head.slice_dir].map(wide);
    Geometry::new(spacing, wide(head.position), dirs[0], dirs[1], dirs[2]).unwrap_or_else(|_| {
        let text = "the image headers state no usable geometry: voxels of 1 mm at the isocentre are assumed";
        if !notes.iter().any(|n| n == text) {
            notes.push(text.into());
        }
        Geometry::default()
    })
}

fn values(path: &Path, dataset: &Dataset, shape: &[usize]) -> Result<Vec<C32>> {
    let fail = |e: hdf5::Error| reading(path, "the image data", &e);
    let descriptor = dataset.dtype().and_then(|t| t.to_descriptor()).map_err(fail)?;
    let count = voxels(shape).map_err(|e| Error::core(path, e))?;
    let promised = count as u128 * descriptor.size() as u128;
    let most = u128::from(file_bytes(path)?) * u128::from(LARGEST_RATIO);
    if promised > most {
        let expected = format!("at most {most} bytes in a file of this size");
        return Err(Error::field(path, "image data", expected, format!("shape {shape:?}")));
    }
    // The values as they lie in the file, and as they are given.
    let bytes = promised + count as u128 * size_of::<C32>() as u128;
    expect_memory("image data", u64::try_from(bytes).unwrap_or(u64::MAX))
        .map_err(|e| Error::core(path, e))?;
    let values: Vec<C32> = match &descriptor {
        TypeDescriptor::Integer(_) | TypeDescriptor::Unsigned(_) | TypeDescriptor::Float(_) => {
            raw::<f32>(dataset, count).map_err(fail)?.into_iter().map(C32::from).collect()
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
    match values.iter().position(|z| !(z.re.is_finite() && z.im.is_finite())) {
        Some(at) => Err(Error::field(path, format!("image value {at}"), "a finite number", values[at])),
        None => Ok(values),
    }
}

fn raw<T: H5Type + Clone>(dataset: &Dataset, count: usize) -> hdf5::Result<Vec<T>> {
    let values = dataset.read_raw::<T>()?;
    if values.len() == count { Ok(values) } else { Err("another number of values than the shape has".into()) }
}

fn pairs<T>(values: hdf5::Result<Vec<T>>, number: impl Fn(T) -> C32) -> hdf5::Result<Vec<C32>> {
    Ok(values?.into_iter().map(number).collect())
}
