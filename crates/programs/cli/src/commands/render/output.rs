//! Pictures, numbers and pages.

use std::path::Path;

use anyhow::{Context as _, Result};
use ndarray::{Array3, Array4, ArrayView4, s};
use rayspin::core::vector::{add, scaled};
use rayspin::core::{Geometry, Image, Monitor};
use rayspin::imaging::display::{Window, to_grey};
use rayspin::io::{self, Format, Values};
use rayspin::report::page::{Page, Section, VolumeView};
use rayspin_shell::stdout;

use super::look::colour;
use super::volume::Volume;
use crate::args::{self, render::Render};
use crate::commands::files;

/// Bytes of a volume that a page carries, at most.
const CARRIED: usize = 32 << 20;

/// Whether an output is a page.
pub(super) fn is_page(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("html"))
}

/// Whether an output is a picture.
pub(super) fn is_picture(path: &Path) -> bool {
    Format::of_name(path).is_some_and(Format::is_picture)
}

/// Writes the views `[view, row, column, channel]` as one picture, which is animated where there are several.
pub(super) fn write_picture(path: &Path, drawn: &Array4<f32>, args: &Render) -> Result<Vec<String>> {
    let (pixels, notes) = match drawn.shape()[3] {
        1 => grey(drawn, args)?,
        _ => (coloured(drawn.view(), colour("--background", &args.background)?), Vec::new()),
    };
    io::png::write_animation(path, pixels.view(), args.frame_time)?;
    Ok(notes)
}

/// One window for all views.
fn grey(drawn: &Array4<f32>, args: &Render) -> Result<(Array4<u8>, Vec<String>)> {
    let window = match &args.grey {
        Some(text) => args::grey(text)?,
        None => Window::FULL,
    };
    let limits = window.limits(drawn.view())?;
    let mut pixels = to_grey(drawn.view(), limits);
    if args.invert {
        pixels.mapv_inplace(|value| u8::MAX - value);
    }
    let blank = limits.blank(drawn.view(), pixels.view());
    let [black, white] = if args.invert { [limits.high, limits.low] } else { [limits.low, limits.high] };
    let levels = format!("black is {black:.4}, white is {white:.4}");
    Ok((pixels, [levels].into_iter().chain(blank).collect()))
}

/// Whether the background alone is seen of colours.
pub(super) fn is_empty(drawn: ArrayView4<'_, f32>) -> bool {
    drawn.shape()[3] > 3 && drawn.slice(s![.., .., .., 3]).iter().all(|&opacity| 255.0 * opacity < 0.5)
}

/// Colours over a background.
pub(super) fn coloured(drawn: ArrayView4<'_, f32>, background: [f32; 3]) -> Array4<u8> {
    let (views, rows, columns, _) = drawn.dim();
    Array4::from_shape_fn((views, rows, columns, 3), |(view, row, column, channel)| {
        let behind = background[channel] * (1.0 - drawn[[view, row, column, 3]]);
        ((drawn[[view, row, column, channel]] + behind).clamp(0.0, 1.0) * 255.0).round() as u8
    })
}

/// Writes the numbers, a slice for each view, with pixels of their size at the middle of the volume.
pub(super) fn write_numbers(path: &Path, drawn: &Array4<f32>, pitch: f64) -> Result<Vec<String>> {
    let values = drawn.slice(s![.., .., .., 0]).to_owned().into_dyn();
    let geometry = Geometry { spacing_mm: [pitch, pitch, 1.0], ..Geometry::default() };
    let image = Image::new(values, geometry)?;
    files::write_image(path, &image, Some(Values::Real), io::WriteOptions::default())
}

/// Writes a page that carries the volume, coarser along each axis where it is too large.
pub(super) fn write_page(path: &Path, volume: &Volume, args: &Render, monitor: &Monitor<'_>) -> Result<()> {
    let (image, every) = carried(volume)?;
    let limits = match &args.grey {
        Some(text) => args::grey(text)?,
        None => Window::default(),
    };
    let limits = limits.limits(image.data().view())?;
    let folder = io::atomic::ScratchFolder::create()?;
    let nifti = folder.path().join("volume.nii.gz");
    let values = io::WriteOptions { values: Some(Values::Real), ..io::WriteOptions::default() };
    io::atomic::at_once(|| io::write_image(&nifti, &image, &values))?;
    let name = args.image.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let [nz, ny, nx] = volume.grid.shape_zyx();
    let [sx, sy, sz] = volume.grid.spacing_mm();
    let mut caption = format!("{nx} × {ny} × {nz} voxels of {sx:.3} × {sy:.3} × {sz:.3} mm.");
    if every > 1 {
        let note = format!("the page carries means of {every} x {every} x {every} voxels");
        monitor.note(&format!("{}: {note}", stdout::name(path)));
        caption.push_str(&format!(" Shown are means of {every} × {every} × {every} of them."));
    }
    caption
        .push_str(" Drag to turn the volume or to move the slices; the wheel zooms or steps through slices.");
    let view = VolumeView {
        nifti: std::fs::read(&nifti).context("the page's volume")?,
        title: name.clone(),
        window: [limits.low, limits.high],
        caption,
    };
    let lead = "Slices and the volume, drawn in this browser by NiiVue. The page loads nothing.";
    let page = Page::new(name, lead).section(Section::new("Volume").volume(view));
    files::write_text(path, &page.render())
}

/// The volume, or means of some voxels along each axis, so that it is small enough for a page; and how many.
fn carried(volume: &Volume) -> Result<(Image<f32>, usize)> {
    let shape = volume.grid.shape_zyx();
    let small = |every: usize| shape.map(|n| n.div_ceil(every));
    let bytes = |every: usize| small(every).iter().product::<usize>() * size_of::<f32>();
    let every = (1..).find(|&every| bytes(every) <= CARRIED).unwrap_or(1);
    if every == 1 {
        return Ok((Image::new(volume.view()?.to_owned().into_dyn(), volume.geometry)?, 1));
    }
    let voxels = volume.view()?;
    let values = Array3::from_shape_fn(small(every), |(z, y, x)| {
        let part = |index: usize, count: usize| index * every..((index + 1) * every).min(count);
        let part = voxels.slice(s![part(z, shape[0]), part(y, shape[1]), part(x, shape[2])]);
        part.sum() / part.len() as f32
    });
    // The middle voxel of the means lies in the middle of those that it is the mean of.
    let mut geometry = volume.geometry;
    let axes = [geometry.slice_dir, geometry.phase_dir, geometry.read_dir];
    for (axis, along) in axes.into_iter().enumerate() {
        let spacing = geometry.spacing_mm[2 - axis];
        let middle = (shape[axis].div_ceil(every) / 2 * every) as f64 + 0.5 * (every - 1) as f64;
        let by = (middle - (shape[axis] / 2) as f64) * spacing;
        geometry.position_mm = add(geometry.position_mm, scaled(along, by));
    }
    geometry.spacing_mm = geometry.spacing_mm.map(|spacing| spacing * every as f64);
    Ok((Image::new(values.into_dyn(), geometry)?, every))
}
