//! CT scans in Data Exchange files (HDF5), the format of synchrotrons and of tomopy.
//!
//! | what | where | shape |
//! |---|---|---|
//! | projections | `exchange/data` | `[view, row, column]` |
//! | flat fields | `exchange/data_white` | `[frame, row, column]` |
//! | dark fields | `exchange/data_dark` | `[frame, row, column]` |
//! | angles | `exchange/theta`, degrees unless its `units` say radian | `[view]` |
//! | rays | `rayspin_geometry/vectors`, mm | `[view, 12]` |
//!
//! The format has no place for the pose of each view. The vectors are those of [`rayspin_ct::geometry::to_vectors`], which are ASTRA's
//! too; the attributes `beam` (`parallel` or `cone`) and, for a curved detector, `radius_mm` stand beside them.
//!
//! F. De Carlo et al., *Scientific data exchange: a schema for HDF5-based storage of raw and analyzed data*, J Synchrotron Rad
//! 21:1224, 2014.

use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use hdf5::plist::dataset_create::Layout;
use hdf5::types::VarLenUnicode;
use hdf5::{Dataset, Datatype, File, Group, H5Type};
use ndarray::{Array2, Array3, ArrayD, Ix1, Ix2, Ix3, s};
use rayon::prelude::*;
use rayspin_core::{ProjectionGeometry, voxels};
use rayspin_ct::geometry::{from_vectors, to_vectors};
use rayspin_ct::scan::{Counts, Measured, Scan};
use rayspin_device::Cpu;
use rayspin_device::cpu::{expect_memory, zeroed};

use crate::atomic::write_atomically;
use crate::error::{Error, Result};
use crate::hdf5_file::{create, group, lossy, open, reading, writing};
use crate::input;
use crate::projections::{Header, Projections, Source};

const DATA: &str = "exchange/data";
const FLATS: &str = "exchange/data_white";
const DARKS: &str = "exchange/data_dark";
const THETA: &str = "exchange/theta";
const VECTORS: &str = "rayspin_geometry/vectors";
/// Numbers that a thread reads at a time.
const PART: usize = 1 << 20;
/// The description of projections that are line integrals.
const LINES: &str = "line integrals";

/// Reads a scan. Projections that are described as line integrals are taken as such; others are counts and need flat fields.
///
/// Errors: no Data Exchange file; damage; counts without flat fields; sizes that do not fit together; memory.
///
/// ```
/// use ndarray::Array3;
/// use rayspin_ct::scan::{Measured, Scan};
/// use rayspin_device::Device;
/// use rayspin_io::data_exchange::{read, write};
///
/// # let folder = tempfile::tempdir()?;
/// let file = folder.path().join("scan.h5");
/// let scan = Scan::new(Measured::Lines(Array3::zeros((3, 1, 8))), vec![0.0, 1.0, 2.0], None)?;
/// write(&file, &scan)?;
/// assert_eq!(read(&file, Device::cpu()?.cpu_side())?.shape(), [3, 1, 8]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn read(path: impl AsRef<Path>, cpu: &Cpu) -> Result<Scan> {
    projections(path.as_ref(), None)?.into_scan(cpu)
}

/// Opens a scan for the table of formats.
pub(crate) fn projections(path: &Path, _: Option<&str>) -> Result<Projections> {
    let file = open(path, "a Data Exchange file (HDF5)")?;
    if !file.link_exists("exchange") || !file.link_exists(DATA) {
        let expected = "a Data Exchange file (HDF5 with exchange/data)";
        return Err(Error::not_this_format(path, expected, "another HDF5 file"));
    }
    let data = dataset(path, &file, DATA)?;
    let shape = <[usize; 3]>::try_from(data.shape())
        .map_err(|shape| Error::field(path, DATA, "3 axes", format!("shape {shape:?}")))?;
    let is_lines = attribute(&data, "description").is_some_and(|text| text == LINES);
    let frames = |name: &str| -> Result<Option<Array3<f32>>> {
        match file.link_exists(name) {
            true => numbers::<f32, Ix3>(path, &dataset(path, &file, name)?, name).map(Some),
            false => Ok(None),
        }
    };
    let frames = match is_lines {
        true => None,
        false => {
            let flats = frames(FLATS)?.ok_or_else(|| {
                let hint =
                    format!("give {DATA} the attribute description = \"{LINES}\" if it holds line integrals");
                Error::field(path, FLATS, "flat fields, as projections are counts", "nothing").with_hint(hint)
            })?;
            let none = || Array3::zeros((0, shape[1], shape[2]));
            Some([flats, frames(DARKS)?.unwrap_or_else(none)])
        }
    };
    let (angles, geometry) = (angles(path, &file)?, geometry(path, &file, [shape[1], shape[2]])?);
    let source = Box::new(Stored { path: path.into(), data });
    let header = Header { shape, frames, angles, geometry, notes: Vec::new() };
    Projections::new(path, "Data Exchange", source, header)
}

/// Projections in a dataset `[view, row, column]`.
pub(crate) struct Stored {
    pub(crate) path: PathBuf,
    pub(crate) data: Dataset,
}

impl Source for Stored {
    fn read(&mut self, views: Range<usize>, cpu: &Cpu) -> Result<Vec<f32>> {
        values(&self.path, &self.data, views, cpu)
    }
}

/// The numbers of some views in C order.
pub(crate) fn values(path: &Path, data: &Dataset, views: Range<usize>, cpu: &Cpu) -> Result<Vec<f32>> {
    let core = |e| Error::core(path, e);
    let shape = data.shape();
    let view: usize = voxels(&shape[1..]).map_err(core)?;
    let count = voxels(&[views.len(), view]).map_err(core)?;
    let fail = |e: hdf5::Error| reading(path, &format!("reading {DATA}"), &e);
    let native = Datatype::from_type::<f32>().and_then(|native| Ok(data.dtype()? == native)).map_err(fail)?;
    if native
        && data.layout() == Layout::Contiguous
        && let Some(offset) = data.offset()
    {
        // The file has them as memory does: HDF5 would read them on one thread, in small parts.
        let mut values = zeroed("projections", count).map_err(core)?;
        let file = input::open(path)?;
        let first = offset + (views.start * view * size_of::<f32>()) as u64;
        let part = |(at, values): (usize, &mut [f32])| {
            let place = first + (at * PART * size_of::<f32>()) as u64;
            file.read_exact_at(bytemuck::cast_slice_mut(values), place)
        };
        cpu.run(|| values.par_chunks_mut(PART).enumerate().try_for_each(part))
            .map_err(|e| Error::read(path, e))?;
        return Ok(values);
    }
    // HDF5 converts a copy.
    expect_memory(DATA, 2 * (count * size_of::<f32>()) as u64).map_err(core)?;
    let values: Array3<f32> = data.read_slice(s![views, .., ..]).map_err(fail)?;
    Ok(values.into_raw_vec_and_offset().0)
}

/// Whether a file is a Data Exchange file. Files that cannot be read are not.
pub fn is_data_exchange(path: impl AsRef<Path>) -> bool {
    let path = path.as_ref();
    open(path, "HDF5").is_ok_and(|file| file.link_exists("exchange") && file.link_exists(DATA))
}

fn dataset(path: &Path, file: &File, name: &str) -> Result<Dataset> {
    file.dataset(name).map_err(|e| reading(path, &format!("opening {name}"), &e))
}

/// The numbers of a dataset with as many axes as `D`.
pub(crate) fn numbers<T: H5Type + Clone, D: ndarray::Dimension>(
    path: &Path,
    data: &Dataset,
    name: &str,
) -> Result<ndarray::Array<T, D>> {
    let shape = data.shape();
    let axes = D::NDIM.unwrap_or(shape.len());
    if shape.len() != axes {
        return Err(Error::field(path, name, format!("{axes} axes"), format!("shape {shape:?}")));
    }
    let count = voxels(&shape).map_err(|e| Error::core(path, e))?;
    // HDF5 converts a copy.
    expect_memory(name, 2 * (count * size_of::<T>()) as u64).map_err(|e| Error::core(path, e))?;
    let values: ArrayD<T> = data.read_dyn().map_err(|e| reading(path, &format!("reading {name}"), &e))?;
    values.into_dimensionality().map_err(|e| Error::field(path, name, format!("{axes} axes"), e))
}

/// A text attribute; none where it is absent or no text.
pub(crate) fn attribute(data: &Dataset, name: &str) -> Option<String> {
    let value = data.attr(name).ok()?;
    let unicode = value.read_scalar::<VarLenUnicode>().map(|text| lossy(text.as_bytes()));
    unicode
        .or_else(|_| value.read_scalar::<hdf5::types::VarLenAscii>().map(|text| lossy(text.as_bytes())))
        .ok()
}

fn angles(path: &Path, file: &File) -> Result<Vec<f64>> {
    if !file.link_exists(THETA) {
        return Err(Error::field(path, THETA, "the angle of each view", "nothing"));
    }
    let data = dataset(path, file, THETA)?;
    let angles = numbers::<f64, Ix1>(path, &data, THETA)?;
    let radian =
        attribute(&data, "units").is_some_and(|units| units.trim().to_lowercase().starts_with("rad"));
    Ok(angles.iter().map(|angle| if radian { *angle } else { angle.to_radians() }).collect())
}

fn geometry(path: &Path, file: &File, size: [usize; 2]) -> Result<Option<ProjectionGeometry>> {
    if !file.link_exists("rayspin_geometry") {
        return Ok(None);
    }
    let data = dataset(path, file, VECTORS)?;
    let vectors: Array2<f64> = numbers::<f64, Ix2>(path, &data, VECTORS)?;
    let parallel = match attribute(&data, "beam").as_deref() {
        Some("parallel") => true,
        Some("cone") => false,
        other => {
            let found = other.unwrap_or("nothing").to_owned();
            return Err(Error::field(path, format!("beam of {VECTORS}"), "parallel or cone", found));
        }
    };
    let radius = data.attr("radius_mm").ok().and_then(|radius| radius.read_scalar::<f64>().ok());
    from_vectors(vectors.view(), size, parallel, radius).map(Some).map_err(|e| Error::core(path, e))
}

/// Writes a scan to a new file. The file appears whole or not at all.
///
/// Errors: [`Error::Write`].
pub fn write(path: impl AsRef<Path>, scan: &Scan) -> Result<()> {
    let path = path.as_ref();
    write_atomically(path, |temporary| {
        let fail = |e: hdf5::Error| writing(path, &e);
        let file = create(temporary).map_err(fail)?;
        write_scan(&file, scan).map_err(fail)?;
        file.flush().map_err(fail)?;
        file.close().map_err(fail)
    })
}

fn text(to: &Dataset, name: &str, value: &str) -> hdf5::Result<()> {
    let value: VarLenUnicode = value.parse().map_err(|_| hdf5::Error::from("text with a NUL character"))?;
    to.new_attr::<VarLenUnicode>().create(name)?.write_scalar(&value)
}

fn write_scan(file: &File, scan: &Scan) -> hdf5::Result<()> {
    let implements: VarLenUnicode =
        "exchange".parse().map_err(|_| hdf5::Error::from("text with a NUL character"))?;
    file.new_dataset_builder().with_data(&[implements]).create("implements")?;
    let exchange = group(file, "exchange")?;
    let put =
        |group: &Group, name: &str, values: &Array3<f32>, axes: &str, units: &str| -> hdf5::Result<Dataset> {
            let data = group.new_dataset_builder().with_data(values.view()).create(name)?;
            text(&data, "axes", axes)?;
            text(&data, "units", units)?;
            Ok(data)
        };
    match &scan.measured {
        Measured::Lines(lines) => {
            let data = put(&exchange, "data", lines, "theta:y:x", "1")?;
            text(&data, "description", LINES)?;
        }
        Measured::Counts(Counts { views, flats, darks }) => {
            put(&exchange, "data", views, "theta:y:x", "counts")?;
            put(&exchange, "data_white", flats, "theta_white:y:x", "counts")?;
            if !darks.is_empty() {
                put(&exchange, "data_dark", darks, "theta_dark:y:x", "counts")?;
            }
        }
    }
    let degrees: Vec<f64> = scan.angles.iter().map(|angle| angle.to_degrees()).collect();
    let theta = exchange.new_dataset_builder().with_data(&degrees).create("theta")?;
    text(&theta, "units", "degrees")?;
    if let Some(geometry) = &scan.geometry {
        let rays = group(file, "rayspin_geometry")?;
        let vectors = rays.new_dataset_builder().with_data(to_vectors(geometry).view()).create("vectors")?;
        text(&vectors, "beam", if geometry.is_parallel() { "parallel" } else { "cone" })?;
        text(&vectors, "units", "mm")?;
        if let Some(radius) = geometry.detector().radius_mm {
            vectors.new_attr::<f64>().create("radius_mm")?.write_scalar(&radius)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
