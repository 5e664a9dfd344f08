//! What the rows of NumPy's arrays and archives take from this module.

use std::io::Cursor;
use std::path::Path;

use ndarray::{Array2, ArrayD, ArrayViewD};
use ndarray_npy::WriteNpyExt;
use rayspin_core::{C32, format_shape};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use super::series::NpySeries;
use super::{describe, npz_names, of_entry, of_file, read_entry, read_file, read_npz_real, read_real};
use crate::arrays::{Grid, Numbers, Runs, without_ones};
use crate::cfl::Layout;
use crate::format::{Detail, ImageRead, Rows, Sample, Target, VolumeWriter};
use crate::{Error, Held, Result};

pub(crate) fn header(path: &Path) -> Result<Rows> {
    let description = describe(path)?;
    let (shape, number) = (Detail::Sizes(description.shape), Detail::Text(description.descr));
    Ok(vec![("shape".into(), shape), ("type".into(), number)])
}

pub(crate) fn names(path: &Path) -> Result<Vec<Held>> {
    Ok(npz_names(path)?.into_iter().map(|name| Held { what: "array", name }).collect())
}

pub(crate) fn image(path: &Path, _: Option<&str>) -> Result<ImageRead> {
    of_file(path, |origin, header| super::image(path, "the array", origin, header))
}

pub(crate) fn image_of_archive(path: &Path, name: Option<&str>) -> Result<ImageRead> {
    of_entry(path, name, |what, origin, header| super::image(path, what, origin, header))
}

pub(crate) fn create(target: &Target<'_>) -> Result<Box<dyn VolumeWriter>> {
    let mut shape = target.shape.to_vec();
    if let Some(volumes) = target.repetitions() {
        shape.splice(..1, target.options.axes(volumes));
    }
    Ok(Box::new(NpySeries::create(target.path, &shape, target.values, target.integers)?))
}

pub(crate) fn read(path: &Path, _: Option<&str>, numbers: Numbers) -> Result<ArrayD<C32>> {
    read_file(path, numbers)
}

pub(crate) fn read_archive(path: &Path, name: Option<&str>, numbers: Numbers) -> Result<ArrayD<C32>> {
    read_entry(path, name, numbers)
}

/// NumPy's axes are Rayspin's.
pub(crate) fn grid(_: &Path, values: ArrayD<C32>) -> Result<Grid> {
    Ok(Grid { values, layout: Layout::default(), axes: None, notes: Vec::new() })
}

/// Samples `[coil, sample]` or `[coil, spoke, readout]`.
pub(crate) fn samples(path: &Path, array: ArrayD<C32>, _: Option<usize>) -> Result<Runs<C32>> {
    let shape = array.shape().to_vec();
    let expected = "[coil, sample] or [coil, spoke, readout]";
    let wrong = || Error::field(path, "shape", expected, format_shape(&shape));
    let (&coils, runs) =
        shape.split_first().filter(|(_, runs)| (1..=2).contains(&runs.len())).ok_or_else(wrong)?;
    let values: Vec<C32> = array.iter().copied().collect();
    let data = Array2::from_shape_vec((coils, runs.iter().product()), values).map_err(|_| wrong())?;
    Ok((data, without_ones(runs)))
}

pub(crate) fn points(path: &Path, _: Option<&str>, _: Numbers) -> Result<Runs<f64>> {
    points_of(path, read_real(path)?)
}

pub(crate) fn points_of_archive(path: &Path, name: Option<&str>, _: Numbers) -> Result<Runs<f64>> {
    points_of(path, read_npz_real(path, name)?)
}

/// Points `[sample, dim]` or `[spoke, readout, dim]`. A third component that is zero throughout is dropped.
pub(crate) fn points_of(path: &Path, array: ArrayD<f64>) -> Result<Runs<f64>> {
    let shape = array.shape().to_vec();
    let expected =
        "[sample, dim] or [spoke, readout, dim], dim being 2 or 3 (x, y, z), or 4 with density weights";
    let wrong = || Error::field(path, "shape of the trajectory", expected, format_shape(&shape));
    let (&dims, runs) = shape.split_last().filter(|(dims, _)| (2..=4).contains(*dims)).ok_or_else(wrong)?;
    let points = array.as_standard_layout().into_owned();
    let mut points = points.into_shape_with_order((runs.iter().product(), dims)).map_err(|_| wrong())?;
    if dims == 3 && points.column(2).iter().all(|&kz| kz == 0.0) {
        points = points.slice(ndarray::s![.., ..2]).to_owned();
    }
    Ok((points, without_ones(runs)))
}

/// NumPy's axes are Rayspin's.
pub(crate) fn maps(_: &Path, array: ArrayD<C32>) -> Result<ArrayD<C32>> {
    Ok(array)
}

pub(crate) fn write_coils(path: &Path, maps: ArrayViewD<'_, C32>, _: Layout) -> Result<()> {
    super::write(path, maps)
}

/// Small archives, stored and deflated.
pub(crate) fn samples_of_archive() -> Vec<Sample> {
    let array = Array2::from_shape_fn((3, 4), |(y, x)| C32::new(y as f32 + 0.5, x as f32));
    let archive = |method: CompressionMethod| {
        let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
        archive.start_file("one.npy", SimpleFileOptions::default().compression_method(method)).ok()?;
        array.write_npy(&mut archive).ok()?;
        Some(vec![("a.npz", archive.finish().ok()?.into_inner())])
    };
    [CompressionMethod::Stored, CompressionMethod::Deflated].into_iter().filter_map(archive).collect()
}
