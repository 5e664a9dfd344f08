//! CT scans of any format, and arrays and images as views.

use std::ops::Range;
use std::path::Path;

use ndarray::{ArrayD, Axis};
use rayspin_core::Geometry;
use rayspin_device::Cpu;
use rayspin_scan::ct::PixelSize;

use crate::format::any_of;
use crate::image_file::{NO_GEOMETRY, NO_PLACE};
use crate::npy::NpyStream;
use crate::projections::{Header, Places, Projections, Source};
use crate::tiff::NO_STEP;
use crate::{Error, Format, Input, Result, endings};

fn another_shape(path: &Path, shape: &[usize]) -> Error {
    Error::field(
        path,
        "line integrals",
        "an array [view, row, column] or [view, column]",
        format!("{shape:?}"),
    )
}

impl Source for NpyStream {
    /// Views are read in their order.
    fn read(&mut self, views: Range<usize>, _: &Cpu) -> Result<Vec<f32>> {
        let view = self.shape().iter().skip(1).product::<usize>();
        self.read(views.len() * view)
    }
}

/// Projections in memory, which are read once.
struct Held {
    values: Vec<f32>,
    view: usize,
}

impl Source for Held {
    fn read(&mut self, views: Range<usize>, _: &Cpu) -> Result<Vec<f32>> {
        Ok(match views.len() * self.view == self.values.len() {
            true => std::mem::take(&mut self.values),
            false => self.values[views.start * self.view..views.end * self.view].to_vec(),
        })
    }
}

/// The places in an array, which has none.
const ARRAY: Places = Places { flats: "flat fields", angles: "angles", lines: None };

/// The numbers of an array or image that are views.
#[derive(Debug, Clone, PartialEq)]
pub struct Views {
    /// `[view, row, column]`, or `[view, column]`.
    pub values: ArrayD<f32>,
    /// The distance between pixels, where the file states it.
    pub pixel: Option<PixelSize>,
    /// Where the middle of a view lies in the image's own coordinates, mm, where this is away from the origin
    /// by more than half a pixel.
    pub middle_mm: Option<[f64; 2]>,
    /// What had to be assumed or repaired, for people.
    pub notes: Vec<String>,
}

impl Projections {
    /// Opens a scan of any format that holds CT scans, by its content. A name after a colon chooses one of
    /// several ([`Input`]).
    ///
    /// Errors: a file of no such format; errors of the format's reader.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let input = Input::of(path);
        let format = input.format()?;
        let Some(open) = format.projections else {
            let readable = endings(|format| format.projections.is_some());
            return Err(Error::unsupported(&input.file, format!("reading a CT scan from {format}"))
                .with_hint(format!("give a CT scan as {}", any_of(&readable))));
        };
        open(&input.file, input.name.as_deref())
    }

    /// Line integrals that are read from an array `[view, row, column]` or `[view, column]` as they arrive.
    ///
    /// Errors: another number of axes, or of angles.
    pub fn of_stream(path: impl AsRef<Path>, stream: NpyStream, angles: Vec<f64>) -> Result<Self> {
        let path = path.as_ref();
        let shape = match *stream.shape() {
            [views, columns] => [views, 1, columns],
            [views, rows, columns] => [views, rows, columns],
            ref other => return Err(another_shape(path, other)),
        };
        let header = Header {
            shape,
            frames: None,
            angles: Some(angles),
            geometry: None,
            pixel: None,
            notes: Vec::new(),
            places: ARRAY,
        };
        Self::new(path, "array", Box::new(stream), header)
    }

    /// Line integrals in memory, `[view, row, column]` or `[view, column]`.
    ///
    /// Errors: another number of axes, or of angles.
    pub fn of_array(path: impl AsRef<Path>, views: Views, angles: Vec<f64>) -> Result<Self> {
        let path = path.as_ref();
        let Views { values: lines, pixel, middle_mm, notes } = views;
        let shape = match *lines.shape() {
            [views, columns] => [views, 1, columns],
            [views, rows, columns] => [views, rows, columns],
            ref other => return Err(another_shape(path, other)),
        };
        let lines = if lines.is_standard_layout() { lines } else { lines.as_standard_layout().into_owned() };
        let angles = Some(angles);
        let header = Header { shape, frames: None, angles, geometry: None, pixel, notes, places: ARRAY };
        let held = Held { values: lines.into_raw_vec_and_offset().0, view: shape[1] * shape[2] };
        let mut projections = Self::new(path, "array", Box::new(held), header)?;
        projections.middle_mm = middle_mm;
        Ok(projections)
    }

    /// Whether a file holds a CT scan. Files of no known format hold none.
    ///
    /// Errors: a file of a format that holds CT scans, and which cannot be read.
    pub fn are_in(path: impl AsRef<Path>) -> Result<bool> {
        let input = Input::of(path);
        match input.format() {
            Ok(Format { holds_projections: Some(holds), .. }) => holds(&input.file),
            _ => Ok(false),
        }
    }
}

/// The numbers of an array or image: `[view, row, column]`, or `[view, column]`. The slices of an image are
/// views, and one slice is a sinogram. The voxels of an image are as large as the pixels along rows and
/// columns.
///
/// Errors: a file of another kind; numbers with imaginary parts.
pub fn read_views(path: impl AsRef<Path>) -> Result<Views> {
    let path = path.as_ref();
    let format = crate::detect(path)?;
    if !format.reads_arrays() {
        let read = crate::read_volume(path)?;
        let (place, mut notes) = (*read.image.geometry(), read.notes);
        // Views lie on a detector, whose place the rays say.
        notes.retain(|note| ![NO_GEOMETRY, NO_PLACE, NO_STEP].contains(&note.as_str()));
        let [u, v, _] = place.spacing_mm;
        let values = read.image.into_data();
        let sinogram = values.shape()[0] == 1;
        // Voxels of 1 mm are what files have that state nothing.
        let stated = Some([u, v]).filter(|sizes| *sizes != [1.0; 2]);
        // The other axis of a sinogram is the view.
        let mm = stated.map(|[u, v]| if sinogram { [u; 2] } else { [u, v] });
        let middle_mm = middle(&place, values.shape(), sinogram);
        let values = if sinogram { values.index_axis_move(Axis(0), 0) } else { values };
        let pixel = mm.map(|mm| PixelSize { mm, at_object: false });
        return Ok(Views { values, pixel, middle_mm, notes });
    }
    let array = crate::read_array(path, "line integrals")?;
    match array.iter().find(|value| value.im != 0.0) {
        Some(value) => {
            Err(Error::field(path, "line integrals", "real numbers", format!("the number {value}")))
        }
        None => {
            let values = array.mapv(|value| value.re);
            Ok(Views { values, pixel: None, middle_mm: None, notes: Vec::new() })
        }
    }
}

/// Where the middle of each view lies, as [`Views`] has it. An image whose first voxel is the origin states
/// nothing.
fn middle(place: &Geometry, shape: &[usize], sinogram: bool) -> Option<[f64; 2]> {
    let axes = if sinogram { 1 } else { 2 };
    let size = |axis: usize| shape[shape.len() - 1 - axis];
    let first =
        (0..axes).map(|axis| place.position_mm[axis] - place.spacing_mm[axis] * (size(axis) / 2) as f64);
    let is_turned = [place.read_dir, place.phase_dir] != [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]];
    let first: Vec<f64> = first.collect();
    if is_turned || first.iter().all(|position| position.abs() < 1e-9) {
        return None;
    }
    let mut middle = [0.0; 2];
    for (axis, first) in first.iter().enumerate() {
        middle[axis] = first + 0.5 * place.spacing_mm[axis] * (size(axis) - 1) as f64;
    }
    // The voxel at n/2 of Rayspin's own images is the origin: their middle is half a voxel before it, or on
    // it.
    let is_away = middle.iter().zip(place.spacing_mm).any(|(position, size)| position.abs() > 0.501 * size);
    is_away.then_some(middle)
}
