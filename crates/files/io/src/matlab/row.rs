//! What the row of MATLAB's files takes from this module.

use std::path::Path;

use ndarray::ArrayD;
use rayspin_core::{C32, Geometry, Image};

use super::array;
use super::{axes, variables::Mat5};
use crate::arrays::{Grid, Numbers, Runs};
use crate::cfl::Layout;
use crate::element::Element;
use crate::format::{Detail, ImageRead, Rows};
use crate::hdf5_file::kind::{Kind, kind};
use crate::named_arrays::{AnyArray, Entry, Stored, choose};
use crate::{Error, Held, Result};

/// Whether an HDF5 file has the attributes of MATLAB's arrays.
pub(crate) fn holds(path: &Path) -> bool {
    kind(path) == Kind::Matlab
}

/// The arrays of a file as names.
pub(crate) fn held(entries: Vec<Entry>) -> Vec<Held> {
    let arrays = entries.into_iter().filter(Entry::is_array);
    arrays.map(|entry| Held { what: "array", name: entry.name }).collect()
}

/// The shape and the type of each array, and what else a file holds.
pub(crate) fn rows(entries: &[Entry]) -> Rows {
    entries.iter().map(|entry| (entry.name.clone(), Detail::Text(entry.about()))).collect()
}

pub(crate) fn names(path: &Path) -> Result<Vec<Held>> {
    array::entries(path).map(held)
}

pub(crate) fn describe(path: &Path) -> Result<Rows> {
    let entries = array::entries(path)?;
    let version = match array::is_hdf5(path)? {
        true => "7.3 (HDF5)".to_owned(),
        false => {
            let file = Mat5::open(path)?;
            let order = if file.is_big_endian() { "big-endian" } else { "little-endian" };
            format!("5 to 7, {order}; {}", file.writer)
        }
    };
    let mut details = vec![("version".to_owned(), Detail::Text(version))];
    details.extend(rows(&entries));
    Ok(details)
}

/// An image `[x, y]`, `[x, y, z]` or `[x, y, z, repetition]`.
pub(crate) fn image(path: &Path, name: Option<&str>) -> Result<ImageRead> {
    let Stored { array, stored, rounded } = array::any(path, name)?;
    let mut notes = vec!["the axes of MATLAB's array are taken as x, y, z and repetition".to_owned()];
    let stored = stored.read(rounded, &mut notes);
    let core = |e| Error::core(path, e);
    Ok(match array {
        AnyArray::Real(array) => {
            ImageRead::new(Image::new(reversed(array), Geometry::default()).map_err(core)?, stored, notes)
        }
        AnyArray::Complex(array) => {
            ImageRead::new(Image::new(reversed(array), Geometry::default()).map_err(core)?, stored, notes)
        }
    })
}

/// The axes in reverse, as C order has them.
fn reversed<T: Clone>(array: ArrayD<T>) -> ArrayD<T> {
    array.reversed_axes().as_standard_layout().into_owned()
}

pub(crate) fn read(path: &Path, name: Option<&str>, numbers: Numbers) -> Result<ArrayD<C32>> {
    array::complex(path, name, numbers)
}

pub(crate) fn grid(path: &Path, array: ArrayD<C32>) -> Result<Grid> {
    let (values, names) = axes::grid(path, array)?;
    Ok(Grid { values, layout: Layout::default(), axes: Some(names), notes: Vec::new() })
}

pub(crate) fn samples(path: &Path, array: ArrayD<C32>, points: Option<usize>) -> Result<Runs<C32>> {
    axes::samples(path, array, points)
}

pub(crate) fn points(path: &Path, name: Option<&str>, numbers: Numbers) -> Result<Runs<f64>> {
    let entries = array::entries(path)?;
    let chosen = choose(path, entries, name)?;
    if numbers == Numbers::Any && chosen.element.is_some_and(Element::is_complex) {
        let array = array::complex(path, Some(&chosen.name), Numbers::Complex)?;
        return Ok(axes::complex_points(&array));
    }
    axes::points(path, &array::real(path, Some(&chosen.name))?)
}

pub(crate) fn maps(path: &Path, array: ArrayD<C32>) -> Result<ArrayD<C32>> {
    axes::maps(path, array)
}

pub(crate) fn bytes(path: &Path, name: Option<&str>) -> Result<u64> {
    array::bytes(path, name)
}
