//! Arrays without a header in files of any format.

use std::path::Path;

use ndarray::{ArrayD, ArrayViewD};
use rayspin_core::C32;

use crate::arrays::{Arrays, Numbers};
use crate::cfl::Layout;
use crate::cfl::images::image_bytes;
use crate::format::any_of;
use crate::{Error, Format, Input, Result, ScanOptions, axis_order, detect, endings, expect_ending, parts};

/// The arrays of a file that is to hold `what`. Errors: a format without arrays.
pub(crate) fn arrays_of(input: &Input, what: &str) -> Result<&'static Arrays> {
    let format = input.format()?;
    format.arrays.as_ref().ok_or_else(|| {
        let expected = format!("{what} as {}", any_of(&endings(Format::reads_arrays)));
        Error::not_this_format(&input.file, expected, format)
    })
}

/// Reads an array with the axes of the file, real numbers as complex ones. `what` it is to be is for the
/// error. A name after a colon chooses one of several ([`Input`]).
///
/// Errors: a format without arrays; several arrays and no name; errors of the format's reader.
///
/// ```
/// use ndarray::{ArrayD, IxDyn};
/// use rayspin_core::C32;
/// use rayspin_io::{npy, read_array};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("field.npy");
/// npy::write(&path, ArrayD::from_elem(IxDyn(&[4, 5]), C32::ONE).view())?;
/// assert_eq!(read_array(&path, "a field map")?.shape(), [4, 5]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn read_array(path: impl AsRef<Path>, what: &str) -> Result<ArrayD<C32>> {
    let input = Input::of(path);
    (arrays_of(&input, what)?.read)(&input.file, input.name.as_deref(), Numbers::Any)
}

/// Reads sensitivity maps `[coil, z, y, x]`, or `[set, coil, z, y, x]` of several sets. In a BART array MAPS
/// counts sets, and SLICE counts the slices z of planes.
///
/// Errors: as [`read_array`]; a BART array with another dimension that is not 1.
///
/// ```
/// use ndarray::{ArrayD, IxDyn};
/// use rayspin_core::C32;
/// use rayspin_io::{read_maps, write_coil_array};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("maps.cfl");
/// let maps = ArrayD::from_elem(IxDyn(&[8, 1, 6, 5]), C32::ONE);
/// write_coil_array(&path, maps.view(), Default::default())?;
/// // BART has x y z coil in the file.
/// assert_eq!(read_maps(&path)?, maps);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn read_maps(path: impl AsRef<Path>) -> Result<ArrayD<C32>> {
    let input = Input::of(path);
    let arrays = arrays_of(&input, "maps")?;
    let array = (arrays.read)(&input.file, input.name.as_deref(), Numbers::Any)?;
    (arrays.maps)(&input.file, array)
}

/// Writes `[coil, z, y, x]` or `[set, coil, z, y, x]` in the format of the name; `layout` is where axes go in
/// a BART array.
///
/// Errors: an ending of a format without arrays; errors of the format's writer.
///
/// ```
/// use ndarray::{ArrayD, IxDyn};
/// use rayspin_core::C32;
/// use rayspin_io::{cfl, write_coil_array};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("maps.cfl");
/// let maps = ArrayD::from_elem(IxDyn(&[8, 1, 6, 5]), C32::ONE);
/// write_coil_array(&path, maps.view(), Default::default())?;
/// assert_eq!(cfl::read_dims(&path)?[..4], [5, 6, 1, 8]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn write_coil_array(path: impl AsRef<Path>, maps: ArrayViewD<'_, C32>, layout: Layout) -> Result<()> {
    let path = path.as_ref();
    match expect_ending(path, Format::writes_arrays)?.arrays.as_ref().and_then(|arrays| arrays.write) {
        Some(write) => write(path, maps, layout),
        None => Ok(()),
    }
}

/// Bytes that [`read_scan`](crate::read_scan) needs at its peak for k-space on a grid, or for samples along a
/// trajectory. A file that numbers its images is read one image at a time, unless the user names its axes. 0
/// for a format without arrays.
///
/// Errors: as [`detect`], and a header that cannot be read.
pub fn array_memory(path: impl AsRef<Path>, options: &ScanOptions) -> Result<u64> {
    let Input { file: path, name } = Input::of(path);
    let Some(arrays) = &detect(&path)?.arrays else { return Ok(0) };
    let reading = if options.order.is_some() { axis_order::READING } else { arrays.axes };
    let copies = reading.copies[usize::from(options.trajectory.is_some())];
    if arrays.images.is_some() && options.order.is_none() {
        return Ok(copies * image_bytes(&path)?);
    }
    if let Some(bytes) = arrays.bytes {
        return Ok(copies.saturating_mul(bytes(&path, name.as_deref())?));
    }
    let sizes = parts(&path).into_iter().filter_map(|part| part.metadata().ok()).map(|file| file.len());
    Ok(copies * sizes.sum::<u64>())
}

/// Whether the file numbers its images, so that one can be chosen: an ISMRMRD scan, or a BART array of
/// several images.
///
/// Errors: as [`detect`], and a header that cannot be read.
pub fn numbers_images(path: impl AsRef<Path>) -> Result<bool> {
    let path = Input::of(path).file;
    let format = detect(&path)?;
    match format.arrays.as_ref().and_then(|arrays| arrays.images) {
        Some(images) => Ok(images(&path)?.count() > 1),
        None => Ok(format.reads_scans()),
    }
}
