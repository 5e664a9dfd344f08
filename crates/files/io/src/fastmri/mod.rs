//! K-space of fastMRI (NYU Langone and Meta AI): HDF5 with `kspace` `[slice, coil, row, column]`, or `[slice,
//! row, column]` of one coil, the header of ISMRMRD as text, and the images of its authors.
//!
//! Rows are samples of a readout, twice as many as voxels. Columns are lines. The header says which columns
//! were measured, and test files have a `mask` of them. The layout is the one that the code of fastMRI reads
//! (`fastmri/data/mri_data.py`).

mod reader;

use std::path::Path;

use ndarray::IxDyn;
use rayspin_core::{Geometry, Image, Monitor};

use crate::format::{Detail, ImageRead, Rows, Sample};
use crate::hdf5_file::arrays::{self, Axes};
use crate::hdf5_file::kind::{Kind, kind};
use crate::hdf5_file::{attribute, open as open_hdf5};
use crate::named_arrays::{AnyArray, Stored};
use crate::scan_reader::ScanReader;
use crate::{Error, Held, Result};
use reader::{KSPACE, Reader};

/// Images of the authors.
const IMAGES: [&str; 2] = ["reconstruction_rss", "reconstruction_esc"];
/// What the root says beside the header.
const ATTRIBUTES: [&str; 4] = ["acquisition", "acceleration", "num_low_frequency", "max"];

/// Whether an HDF5 file is one of fastMRI.
pub(crate) fn holds_kspace(path: &Path) -> bool {
    kind(path) == Kind::FastMri
}

/// The images, and the scan, which is read without a name.
pub(crate) fn names(path: &Path) -> Result<Vec<Held>> {
    let file = open_hdf5(path, "a file of fastMRI (HDF5)")?;
    let images = IMAGES.into_iter().filter(|name| file.link_exists(name));
    let mut held: Vec<Held> = images.map(|name| Held { what: "image", name: name.into() }).collect();
    held.push(Held { what: "scan", name: KSPACE.into() });
    Ok(held)
}

pub(crate) fn describe(path: &Path) -> Result<Rows> {
    let file = open_hdf5(path, "a file of fastMRI (HDF5)")?;
    let layout = "fastMRI; not tried on a real file".to_owned();
    let mut rows = vec![("layout".to_owned(), Detail::Text(layout))];
    for name in ATTRIBUTES {
        if let Some(value) = attribute(path, &file, "the root", name)? {
            rows.push((name.to_owned(), Detail::Text(value.to_string().trim_matches('\'').to_owned())));
        }
    }
    Ok(rows)
}

fn is_scan(name: Option<&str>) -> bool {
    name.is_none_or(|name| name.trim_matches('/') == KSPACE)
}

/// Whether the name is the scan's, and not an image's.
pub(crate) fn holds(_: &Path, name: Option<&str>) -> Result<bool> {
    Ok(is_scan(name))
}

pub(crate) fn open(path: &Path, name: Option<&str>, monitor: &Monitor<'_>) -> Result<Box<dyn ScanReader>> {
    if !is_scan(name) {
        let found = name.unwrap_or_default().to_owned();
        return Err(Error::field(path, "name of the scan", KSPACE, found)
            .with_hint("leave the colon and the name out"));
    }
    Ok(Box::new(Reader::open(path, monitor)?))
}

/// An image of the authors `[slice, row, column]`: rows are x, as readouts are.
pub(crate) fn image(path: &Path, name: Option<&str>) -> Result<ImageRead> {
    if is_scan(name) {
        return Err(Error::not_this_format(path, "an image", "k-space of fastMRI").with_hint(
            "`rayspin recon mri` makes an image; a name after a colon chooses reconstruction_rss",
        ));
    }
    let Stored { array, stored, rounded } = arrays::any(path, name, Axes::Kept)?;
    let mut notes = vec!["rows of fastMRI's image are x, columns are y, as of its k-space".to_owned()];
    let stored = stored.read(rounded, &mut notes);
    let shape = match &array {
        AnyArray::Real(array) => array.shape().to_vec(),
        AnyArray::Complex(array) => array.shape().to_vec(),
    };
    if shape.len() != 3 {
        return Err(Error::field(path, "axes of the image", "slice, row, column", format!("{shape:?}")));
    }
    let spacing_mm = reader::voxel_mm(path, [shape[1], shape[2]])?;
    let geometry = Geometry { spacing_mm, ..Geometry::default() };
    let core = |e| Error::core(path, e);
    Ok(match array {
        AnyArray::Real(array) => {
            let turned = array.permuted_axes(IxDyn(&[0, 2, 1])).as_standard_layout().into_owned();
            ImageRead::new(Image::new(turned, geometry).map_err(core)?, stored, notes)
        }
        AnyArray::Complex(array) => {
            let turned = array.permuted_axes(IxDyn(&[0, 2, 1])).as_standard_layout().into_owned();
            ImageRead::new(Image::new(turned, geometry).map_err(core)?, stored, notes)
        }
    })
}

/// A small file, made by `tests/interop/fastmri.py`.
pub(crate) fn samples() -> Vec<Sample> {
    vec![vec![("a.h5", include_bytes!("samples/small.h5").to_vec())]]
}
