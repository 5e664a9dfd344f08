//! Data sets of HDF5 files as arrays without a header, as h5py, h5write and others store them. Axes are as
//! HDF5 and NumPy have them.

mod samples;

use std::path::Path;

use ndarray::ArrayD;
use rayspin_core::{C32, Geometry, Image};

pub(crate) use samples::samples;

use crate::arrays::{Numbers, Runs};
use crate::format::{ImageRead, Rows};
use crate::hdf5_file::arrays::{self, Axes};
use crate::hdf5_file::kind::{Kind, kind};
use crate::matlab::row;
use crate::named_arrays::{AnyArray, Stored};
use crate::npy::{as_volumes, row::points_of};
use crate::{Error, Held, Result};

/// Whether an HDF5 file holds arrays, and neither a scan nor images with a header.
pub(crate) fn holds(path: &Path) -> bool {
    kind(path) == Kind::Arrays
}

pub(crate) fn names(path: &Path) -> Result<Vec<Held>> {
    arrays::entries(path, Axes::Kept).map(row::held)
}

pub(crate) fn describe(path: &Path) -> Result<Rows> {
    arrays::entries(path, Axes::Kept).map(|entries| row::rows(&entries))
}

/// An image `[y, x]`, `[z, y, x]` or `[repetition, z, y, x]`.
pub(crate) fn image(path: &Path, name: Option<&str>) -> Result<ImageRead> {
    let Stored { array, stored, rounded } = arrays::any(path, name, Axes::Kept)?;
    let mut notes = Vec::new();
    let stored = stored.read(rounded, &mut notes);
    let core = |e| Error::core(path, e);
    Ok(match array {
        AnyArray::Real(array) => {
            let image = Image::new(as_volumes(array, &mut notes), Geometry::default());
            ImageRead::new(image.map_err(core)?, stored, notes)
        }
        AnyArray::Complex(array) => {
            let image = Image::new(as_volumes(array, &mut notes), Geometry::default());
            ImageRead::new(image.map_err(core)?, stored, notes)
        }
    })
}

pub(crate) fn read(path: &Path, name: Option<&str>, numbers: Numbers) -> Result<ArrayD<C32>> {
    arrays::complex(path, name, Axes::Kept, numbers)
}

pub(crate) fn points(path: &Path, name: Option<&str>, _: Numbers) -> Result<Runs<f64>> {
    points_of(path, arrays::real(path, name, Axes::Kept)?)
}

pub(crate) fn bytes(path: &Path, name: Option<&str>) -> Result<u64> {
    arrays::bytes(path, name, Axes::Kept)
}
