//! BART's arrays in the table of formats.

mod series;

use std::path::{Path, PathBuf};

use ndarray::{ArrayD, ArrayViewD, Axis};
use rayspin_core::{C32, Geometry, Image};

use crate::arrays::{Grid, Numbers, Runs, without_ones};
use crate::cfl::{
    self, Axes, Cartesian, DIMS, Layout, dim, file_pair, images, read_dims, samples_from_bart, write,
};
use crate::element::Element;
use crate::format::{Detail, ImageRead, Rows, Target, VolumeWriter};
use crate::{Error, Result};

use series::CflSeries;

pub(crate) fn parts(path: &Path) -> Vec<PathBuf> {
    let (data, header) = file_pair(path);
    vec![header, data]
}

pub(crate) fn header(path: &Path) -> Result<Rows> {
    let dims = read_dims(path)?;
    let used = dims.iter().rposition(|&d| d > 1).map_or(1, |last| last + 1);
    let rows = dim::NAMES.iter().zip(dims).take(used);
    Ok(rows.map(|(name, size)| ((*name).to_owned(), Detail::Count(size))).collect())
}

pub(crate) fn image(path: &Path, _: Option<&str>) -> Result<ImageRead> {
    let array = cfl::read(path)?;
    if array.shape()[dim::COIL] != 1 {
        let found = format!("{} coils", array.shape()[dim::COIL]);
        return Err(Error::field(path, "Dimensions", "an image, of 1 coil", found)
            .with_hint("reconstruct or combine the coils first"));
    }
    let cartesian = Cartesian::image_from_bart(array.view()).map_err(|e| Error::core(path, e))?;
    let layout = cartesian.layout;
    let mut notes: Vec<String> = layout.axes.note().map(str::to_owned).into_iter().collect();
    let frames: Vec<&str> = (dim::MAPS..DIMS)
        .filter(|&dim| layout.frames[dim - dim::MAPS] > 1)
        .map(|dim| dim::NAMES[dim])
        .collect();
    if !frames.is_empty() {
        notes.push(format!("{} are taken as repetitions", frames.join(" × ")));
    }
    let mut data = cartesian.data.index_axis_move(Axis(1), 0).into_dyn();
    if frames.is_empty() {
        data.index_axis_inplace(Axis(0), 0);
    }
    let image = Image::new(data, Geometry::default()).map_err(|e| Error::core(path, e))?;
    Ok(ImageRead { layout, ..ImageRead::new(image, Element::C32, notes) })
}

pub(crate) fn create(target: &Target<'_>) -> Result<Box<dyn VolumeWriter>> {
    let (frames, volume) = (target.repetitions().unwrap_or(1), target.volume());
    let layout = &target.options.layout;
    Ok(Box::new(CflSeries::create(target.path, frames, volume, layout, target.values)?))
}

/// Its numbers are complex always.
pub(crate) fn read(path: &Path, _: Option<&str>, _: Numbers) -> Result<ArrayD<C32>> {
    cfl::read(path)
}

pub(crate) fn grid(path: &Path, array: ArrayD<C32>) -> Result<Grid> {
    let core = |error| Error::core(path, error);
    let cartesian = Cartesian::from_bart(array.view()).map_err(core)?;
    let layout = cartesian.layout;
    let notes = layout.axes.note().map(str::to_owned).into_iter().collect();
    let values = cartesian.single().map_err(core)?.into_dyn();
    Ok(Grid { values, layout, axes: None, notes })
}

pub(crate) fn samples(path: &Path, array: ArrayD<C32>, _: Option<usize>) -> Result<Runs<C32>> {
    let runs = [array.shape()[dim::PHS2], array.shape()[dim::PHS1]];
    let data = samples_from_bart(array.view()).map_err(|e| Error::core(path, e))?;
    Ok((data, without_ones(&runs)))
}

/// All points of the file, image after image.
pub(crate) fn points(path: &Path, _: Option<&str>, _: Numbers) -> Result<Runs<f64>> {
    let (points, runs, _) = images::points(path)?;
    Ok((points, without_ones(&runs)))
}

/// Maps `[coil, z, y, x]`, or `[set, coil, z, y, x]` where MAPS counts several sets; SLICE of planes is z.
///
/// Errors: another dimension from MAPS up that is not 1.
pub(crate) fn maps(path: &Path, array: ArrayD<C32>) -> Result<ArrayD<C32>> {
    let axes = Axes::of_image(array.shape());
    for (index, &size) in array.shape().iter().enumerate().skip(dim::TE) {
        if size > 1 && !(index == dim::SLICE && axes.slice_is_z()) {
            let field = format!("{} (dimension {index})", dim::NAMES[index]);
            return Err(Error::field(file_pair(path).1, field, "1 in sensitivity maps", size));
        }
    }
    let maps = Cartesian::image_from_bart(array.view()).map_err(|e| Error::core(path, e))?.data.into_dyn();
    Ok(if maps.shape()[0] == 1 { maps.index_axis_move(Axis(0), 0) } else { maps })
}

/// Sets go to MAPS.
pub(crate) fn write_coils(path: &Path, maps: ArrayViewD<'_, C32>, layout: Layout) -> Result<()> {
    let sets = if maps.ndim() < 5 { maps.insert_axis(Axis(0)) } else { maps };
    let layout = layout.with_all_along(sets.shape()[0], dim::MAPS);
    let array = layout.to_bart(sets).map_err(|e| Error::core(path, e))?;
    write(path, array.view())
}
