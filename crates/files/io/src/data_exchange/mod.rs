//! CT scans in Data Exchange files (HDF5), the format of synchrotrons and of tomopy.
//!
//! | what | where | shape |
//! |---|---|---|
//! | projections | `exchange/data` | `[view, row, column]` |
//! | flat fields | `exchange/data_white` | `[frame, row, column]` |
//! | dark fields | `exchange/data_dark` | `[frame, row, column]` |
//! | angles | `exchange/theta`, degrees unless its `units` say otherwise | `[view]` |
//! | size of a pixel at the object | `measurement/instrument/detector/x_actual_pixel_size`, `y_actual_pixel_size` | |
//! | size of a pixel on the detector | `x_pixel_size`, `y_pixel_size` there, or `pixel_size_x`, `pixel_size_y`, with `units` | |
//! | rays | `rayspin_geometry/vectors`, mm | `[view, 12]` |
//!
//! The format has no place for the pose of each view. [`rayspin_scan::ct::geometry::to_vectors`] makes
//! the vectors, as ASTRA has them. The attributes `beam` (`parallel` or
//! `cone`) and, for a curved detector, `radius_mm` stand beside them.
//!
//! F. De Carlo et al., *Scientific data exchange: a schema for HDF5-based storage of raw and analyzed data*,
//! J Synchrotron Rad 21:1224, 2014.

use std::ops::Range;
use std::path::{Path, PathBuf};

use hdf5::types::VarLenUnicode;
use hdf5::{Dataset, File, Group};
use ndarray::{Array2, Array3, Ix2, Ix3};
use rayspin_core::ProjectionGeometry;
use rayspin_device::Cpu;
use rayspin_scan::ct::geometry::{from_vectors, to_vectors};
use rayspin_scan::ct::{Counts, Measured, PixelSize, Scan};

use crate::atomic::write_atomically;
use crate::error::{Error, Result};
use crate::hdf5_file::{
    Value, angle, attribute, create, dataset, group, length, list, number, numbers, open, values, writing,
};
use crate::projections::{Header, Places, Projections, Source};

const DATA: &str = "exchange/data";
const FLATS: &str = "exchange/data_white";
const DARKS: &str = "exchange/data_dark";
const THETA: &str = "exchange/theta";
const VECTORS: &str = "rayspin_geometry/vectors";
const DETECTOR: &str = "measurement/instrument/detector";
/// Names of the size of a pixel along columns and rows, and whether it is the size at the object.
const PIXELS: [([&str; 2], bool); 3] = [
    (["x_actual_pixel_size", "y_actual_pixel_size"], true),
    (["x_pixel_size", "y_pixel_size"], false),
    (["pixel_size_x", "pixel_size_y"], false),
];
const PLACES: Places = Places {
    flats: FLATS,
    angles: THETA,
    lines: Some("exchange/data with the attribute description = \"line integrals\" holds line integrals"),
};
/// The description of projections that are line integrals.
const LINES: &str = "line integrals";

/// Reads a scan. Projections that are described as line integrals are taken as such; others are counts and
/// need flat fields.
///
/// Errors: no Data Exchange file; damage; counts without flat fields; no angles; sizes that do not fit
/// together; memory.
///
/// ```
/// use ndarray::Array3;
/// use rayspin_scan::ct::{Measured, Scan};
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
    if !holds(&file) {
        let expected = "a Data Exchange file (HDF5 with exchange/data)";
        return Err(Error::not_this_format(path, expected, "another HDF5 file"));
    }
    let data = dataset(path, &file, DATA)?;
    let shape = <[usize; 3]>::try_from(data.shape())
        .map_err(|shape| Error::field(path, DATA, "3 axes", format!("shape {shape:?}")))?;
    let description = attribute(path, &data, DATA, "description")?.and_then(Value::text);
    let is_lines = description.is_some_and(|text| text.eq_ignore_ascii_case(LINES));
    let frames = |name: &str| -> Result<Array3<f32>> {
        match file.link_exists(name) {
            true => numbers::<f32, Ix3>(path, &dataset(path, &file, name)?, name),
            false => Ok(Array3::zeros((0, shape[1], shape[2]))),
        }
    };
    let frames = if is_lines { None } else { Some([frames(FLATS)?, frames(DARKS)?]) };
    let (angles, geometry) = (angles(path, &file)?, geometry(path, &file, [shape[1], shape[2]])?);
    let mut notes = Vec::new();
    let pixel = pixel(path, &file, &mut notes)?;
    let source = Box::new(Stored { path: path.into(), data, name: DATA });
    let header = Header { shape, frames, angles, geometry, pixel, notes, places: PLACES };
    Projections::new(path, "Data Exchange", source, header)
}

/// Projections in a dataset `[view, row, column]`.
pub(crate) struct Stored {
    pub(crate) path: PathBuf,
    pub(crate) data: Dataset,
    /// The name of the dataset.
    pub(crate) name: &'static str,
}

impl Stored {
    /// Some of the images.
    pub(crate) fn images(&self, images: Range<usize>, cpu: &Cpu) -> Result<Vec<f32>> {
        values(&self.path, &self.data, self.name, images, cpu)
    }
}

impl Source for Stored {
    fn read(&mut self, views: Range<usize>, cpu: &Cpu) -> Result<Vec<f32>> {
        self.images(views, cpu)
    }
}

/// Whether an HDF5 file is a Data Exchange file. Errors: another file, or one that cannot be read.
pub fn is_data_exchange(path: impl AsRef<Path>) -> Result<bool> {
    Ok(holds(&open(path.as_ref(), "HDF5")?))
}

/// Whether a file has the projections' place, even behind a link that leads nowhere.
fn holds(file: &File) -> bool {
    file.link_exists("exchange") && (file.group("exchange").is_err() || file.link_exists(DATA))
}

/// The angle of each view, radian; none where the file states none.
fn angles(path: &Path, file: &File) -> Result<Option<Vec<f64>>> {
    if !file.link_exists(THETA) {
        return Ok(None);
    }
    let data = dataset(path, file, THETA)?;
    let unit = angle(path, &data, THETA)?;
    Ok(Some(list(path, &data, THETA)?.iter().map(|angle| angle * unit).collect()))
}

/// The size of a pixel, where the file states it with its unit. `notes` says why a size is not taken.
fn pixel(path: &Path, file: &File, notes: &mut Vec<String>) -> Result<Option<PixelSize>> {
    let Ok(detector) = file.group(DETECTOR) else { return Ok(None) };
    for (names, at_object) in PIXELS {
        if let Some(mm) = pixel_sizes(path, &detector, names, notes)? {
            return Ok(Some(PixelSize { mm, at_object }));
        }
    }
    Ok(None)
}

/// The sizes of a pixel along columns and rows, mm, in data sets of these names; a missing size equals
/// the other.
pub(crate) fn pixel_sizes(
    path: &Path,
    group: &Group,
    names: [&str; 2],
    notes: &mut Vec<String>,
) -> Result<Option<[f64; 2]>> {
    let mut sizes = [None; 2];
    for (name, size) in names.into_iter().zip(&mut sizes) {
        if !group.link_exists(name) {
            continue;
        }
        let data = dataset(path, group, name)?;
        let number = number(path, &data, name)?;
        let ignored = match length(path, &data, name)? {
            Some(unit) if number.is_finite() && number > 0.0 => {
                *size = Some(number * unit);
                continue;
            }
            Some(_) => "is no size of a pixel",
            None => "has no unit of length",
        };
        notes.push(format!("{name} of the file, {number}, {ignored}: `--pixel` says the size in mm"));
    }
    Ok(match sizes {
        [Some(u), Some(v)] => Some([u, v]),
        [Some(both), None] | [None, Some(both)] => Some([both; 2]),
        [None, None] => None,
    })
}

fn geometry(path: &Path, file: &File, size: [usize; 2]) -> Result<Option<ProjectionGeometry>> {
    if !file.link_exists("rayspin_geometry") {
        return Ok(None);
    }
    let data = dataset(path, file, VECTORS)?;
    let vectors: Array2<f64> = numbers::<f64, Ix2>(path, &data, VECTORS)?;
    let parallel = match attribute(path, &data, VECTORS, "beam")? {
        Some(Value::Text(text)) if text == "parallel" => true,
        Some(Value::Text(text)) if text == "cone" => false,
        other => {
            let found = other.map_or_else(|| "nothing".to_owned(), |value| value.to_string());
            return Err(Error::field(path, format!("beam of {VECTORS}"), "parallel or cone", found));
        }
    };
    let radius = match attribute(path, &data, VECTORS, "radius_mm")? {
        None => None,
        Some(Value::Number(radius)) => Some(radius),
        Some(other) => {
            return Err(Error::field(path, format!("radius_mm of {VECTORS}"), "one number", other));
        }
    };
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
    if let Some(PixelSize { mm, at_object }) = scan.pixel {
        let mut detector = group(file, "measurement")?;
        for name in ["instrument", "detector"] {
            detector = group(&detector, name)?;
        }
        let names =
            PIXELS.iter().find(|(_, object)| *object == at_object).map_or(PIXELS[0].0, |(names, _)| *names);
        for (name, size) in names.into_iter().zip(mm) {
            let data = detector.new_dataset::<f64>().create(name)?;
            data.write_scalar(&size)?;
            text(&data, "units", "mm")?;
        }
    }
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
