//! DICOM images: one series in a file or a folder of files.
//!
//! Slices are sorted by their places along the normal of their planes (`ImagePositionPatient`,
//! `ImageOrientationPatient`), never by a number. Rows, columns and the normal are the axes x, y and z of the
//! image. Slices that share places are [`volumes`] of a series. Numbers are rescaled slice by slice to
//! `RescaleSlope` · stored + `RescaleIntercept`, which are Hounsfield units in CT, or as the file says
//! otherwise ([`values`]).

mod dataset;
mod encode;
mod ends;
mod frames;
mod grid;
mod index;
mod jpeg2000;
mod modules;
mod mosaic;
mod padding;
mod pixels;
mod plane;
mod scale;
mod series;
mod tag;
mod template;
#[cfg(test)]
mod tests;
mod values;
mod volumes;
mod write;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use ndarray::{Array3, ArrayView3, Axis, s};
use rayon::prelude::*;
use rayspin_core::Image;
use rayspin_device::cpu::zeroed;

use crate::error;
use crate::folder::{self, Folder};
use crate::format::{Detail, Folders, ImageRead, Rows};
use crate::{Error, Held, Modality, Result};

use grid::Grid;
use plane::{Found, Plane};
use series::{Series, Stack};

pub(crate) use dataset::MAGIC;
pub(crate) use index::indexed;
pub(crate) use write::{create, expect_own_folder};

/// Where an image is: a file, or a folder with its files.
#[derive(Clone, Copy)]
struct DicomSource<'a> {
    path: &'a Path,
    /// The files of the folder.
    files: Option<&'a [PathBuf]>,
}

impl<'a> DicomSource<'a> {
    fn file(path: &'a Path) -> Self {
        Self { path, files: None }
    }

    fn folder(folder: &'a Folder) -> Self {
        Self { path: &folder.path, files: Some(&folder.files) }
    }

    /// The files of the folder or of an index, or the one.
    fn files(self) -> Result<Vec<PathBuf>> {
        match self.files {
            Some(files) => Ok(files.to_vec()),
            None if folder::is_index(self.path) => indexed(self.path),
            None => Ok(vec![self.path.to_owned()]),
        }
    }
}

/// The series of the files, and a sentence on each kind of file that is left out.
///
/// Errors: none, and of each file as [`plane::found`].
fn all_series(source: DicomSource<'_>) -> Result<(Vec<Series>, Vec<String>)> {
    let contents: Vec<Found> =
        source.files()?.par_iter().map(|file| plane::found(file)).collect::<Result<_>>()?;
    let (mut planes, mut empty, mut aside) = (Vec::new(), 0, Vec::new());
    for content in contents {
        match content {
            Found::Slices(own) => planes.extend(own),
            Found::Nothing => empty += 1,
            Found::Aside(file, reason) => aside.push((file, reason)),
        }
    }
    let mut notes = Vec::new();
    if empty > 0 {
        let plural = if empty == 1 { "" } else { "s" };
        notes.push(format!("{empty} file{plural} without an image left out"));
    }
    if let Some((file, reason)) = aside.first() {
        if planes.is_empty() {
            return Err(
                Error::unsupported(file, reason).with_hint("give slices of grey values (MONOCHROME2)")
            );
        }
        let more = if aside.len() > 1 { format!(", and {} more", aside.len() - 1) } else { String::new() };
        notes.push(format!("files that are no slices left out: {} ({reason}){more}", error::name(file)));
    }
    match planes.is_empty() {
        true => Err(Error::field(source.path, tag::PIXEL_DATA.name, "an image", "none")),
        false => Ok((series::all(planes), notes)),
    }
}

/// The series of a file, for the table of formats.
pub(crate) fn names(path: &Path) -> Result<Vec<Held>> {
    held(DicomSource::file(path))
}

/// How the table of formats reads folders.
pub(crate) const FOLDERS: Folders = Folders {
    image: |folder, name| image_of(DicomSource::folder(folder), name),
    names: Some(|folder| held(DicomSource::folder(folder))),
    describe: Some(|folder| described(DicomSource::folder(folder))),
};

fn held(source: DicomSource<'_>) -> Result<Vec<Held>> {
    Ok(all_series(source)?.0.iter().map(Series::held).collect())
}

/// What each series of a file holds, for the table of formats.
pub(crate) fn describe(path: &Path) -> Result<Rows> {
    described(DicomSource::file(path))
}

fn described(source: DicomSource<'_>) -> Result<Rows> {
    let (series, _) = all_series(source)?;
    let row = |series: &Series| (format!("series {}", series.name), Detail::Text(series.summary()));
    Ok(series.iter().map(row).collect())
}

/// Reads an image of a file for the table of formats.
pub(crate) fn image(path: &Path, name: Option<&str>) -> Result<ImageRead> {
    image_of(DicomSource::file(path), name)
}

fn image_of(source: DicomSource<'_>, name: Option<&str>) -> Result<ImageRead> {
    let (series_list, left_out) = all_series(source)?;
    let path = source.path;
    let (series, taken) = series::chosen(path, series_list, name)?;
    let mut notes: Vec<String> = taken.into_iter().collect();
    let (planes, localizers) = series::without_localizers(series.planes);
    notes.extend(localizers);
    let (volumes, told) = volumes::split(planes)?;
    notes.extend(told);
    let mut stacks: Vec<Stack> = volumes.into_iter().map(Stack::of).collect::<Result<_>>()?;
    volumes::expect_same_places(&stacks)?;
    // Volumes have most notes in common.
    for note in stacks.iter_mut().flat_map(|stack| std::mem::take(&mut stack.notes)) {
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
    let planes: Vec<Plane> = stacks.iter().flat_map(|stack| stack.planes.iter().cloned()).collect();
    series::expect_scaled_alike(&planes)?;
    notes.extend(ends::missing(&planes, stacks.len()));
    notes.extend(left_out);
    let slices = read_slices(path, &planes, &mut notes)?;
    let [rows, columns] = planes[0].size;
    let stack = &stacks[0];
    let (data, grid) = match (stack.is_aligned(), stack.even_spacing()) {
        (true, Some(step)) => {
            (slices, Grid { shape: [stack.planes.len(), rows, columns], step, start: [0.0; 2] })
        }
        _ => resampled(path, &stacks, slices.view(), &mut notes)?,
    };
    let geometry = stack.geometry(path, grid.shape, grid.step, grid.start)?;
    let shape =
        if stacks.len() > 1 { [&[stacks.len()], &grid.shape[..]].concat() } else { grid.shape.to_vec() };
    let image =
        data.into_shape_with_order(shape).map_err(|e| Error::field(path, "image", "a shape that fits", e))?;
    let image = Image::new(image, geometry).map_err(|e| Error::core(path, e))?;
    let hounsfield = planes.iter().all(|plane| plane.values.is_hounsfield(&plane.modality));
    let modality = planes.first().and_then(|plane| Modality::of_code(&plane.modality));
    Ok(ImageRead { hounsfield, modality, ..ImageRead::new(image, series::stored(&planes), notes) })
}

/// The numbers of all slices, `[slice, y, x]`, with the padding filled.
fn read_slices(path: &Path, planes: &[Plane], notes: &mut Vec<String>) -> Result<Array3<f32>> {
    let [rows, columns] = planes[0].size;
    let mut slices = zeros(path, [planes.len(), rows, columns])?;
    let mut files: BTreeMap<&Path, Vec<(&Plane, &mut [f32])>> = BTreeMap::new();
    let frames = slices.as_slice_mut().unwrap_or_default().chunks_exact_mut(rows * columns);
    for (plane, to) in planes.iter().zip(frames) {
        files.entry(&plane.file).or_default().push((plane, to));
    }
    let files: Vec<_> = files.into_iter().collect();
    let rounded = AtomicBool::new(false);
    files.into_par_iter().try_for_each(|(path, frames)| {
        let file = dataset::File::read(path)?;
        let dataset = file.dataset()?;
        let layout = pixels::Layout::of(path, &file, &dataset)?;
        frames.into_iter().try_for_each(|(plane, to)| match layout.slice_size() == plane.size {
            true => layout.read(&dataset, plane, to).map(|some| {
                rounded.fetch_or(some, Ordering::Relaxed);
            }),
            // Another program writes it at this moment.
            false => Err(Error::field(path, "Rows and Columns", "the same as before", "others")),
        })
    })?;
    notes.extend(rounded.into_inner().then(|| series::stored(planes).rounded()));
    notes.extend(padding::filled(planes, &mut slices));
    Ok(slices)
}

/// The lowest of all values but NaN, or 0.
fn lowest(slices: ArrayView3<'_, f32>) -> f32 {
    let low = slices.iter().copied().fold(f32::INFINITY, f32::min);
    if low.is_finite() { low } else { 0.0 }
}

fn zeros(path: &Path, [depth, rows, columns]: [usize; 3]) -> Result<Array3<f32>> {
    let count = depth.checked_mul(rows).and_then(|count| count.checked_mul(columns)).unwrap_or(usize::MAX);
    let values = zeroed("image", count).map_err(|e| Error::core(path, e))?;
    Array3::from_shape_vec([depth, rows, columns], values)
        .map_err(|e| Error::field(path, "image", "a shape that fits the values", e))
}

/// The slices of volumes on a rectangular grid, with a note of what was done.
fn resampled(
    path: &Path,
    stacks: &[Stack],
    slices: ArrayView3<'_, f32>,
    notes: &mut Vec<String>,
) -> Result<(Array3<f32>, Grid)> {
    let stack = &stacks[0];
    let grid = Grid::of(stack);
    let [nz, ny, nx] = grid.shape;
    let mut data = zeros(path, [nz.saturating_mul(stacks.len()), ny, nx])?;
    let outside = lowest(slices);
    let planes: Vec<_> = data.axis_iter_mut(Axis(0)).collect();
    planes.into_par_iter().enumerate().for_each(|(number, to)| {
        let (volume, count) = (number / nz, stack.planes.len());
        let own = slices.slice(s![volume * count..(volume + 1) * count, .., ..]);
        grid.fill(&stacks[volume], own, number % nz, outside, to);
    });
    if stack.even_spacing().is_none() {
        let steps = stack.heights.windows(2).map(|pair| pair[1] - pair[0]);
        let (low, high) = steps.fold((f64::MAX, 0f64), |(low, high), step| (low.min(step), high.max(step)));
        let missing = stack.seem_missing().map_or_else(String::new, |missing| {
            format!("; all distances are multiples of the least, as if {missing} were missing")
        });
        notes.push(format!(
            "slices are unevenly spaced, {low:.2} to {high:.2} mm: {} are interpolated to {nz} every {:.2} mm{missing}",
            stack.planes.len(),
            grid.step
        ));
    }
    if !stack.is_aligned() {
        let [x, y] = stack.shifts.last().copied().unwrap_or_default();
        let aside = (x * stack.spacing[0]).hypot(y * stack.spacing[1]);
        let angle = aside.atan2(stack.heights.last().copied().unwrap_or_default()).to_degrees();
        notes.push(format!(
            "the slices are sheared by {angle:.1}° (gantry tilt): they are shifted by linear interpolation onto a rectangular grid \
             of {nx} x {ny} x {nz}, whose z axis is the normal of the slices"
        ));
    }
    Ok((data, grid))
}
