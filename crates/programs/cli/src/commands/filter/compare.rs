//! Pictures before and after.

use std::path::Path;

use anyhow::{Context as _, Result};
use ndarray::{Array2, Axis};
use rayspin::core::{Error, Image};
use rayspin::imaging::display::{Limits, Montage, Window, montage, resample, square_pixels, to_grey};
use rayspin::io::png::write_grey;

/// Pixels of the longer side, at least: smaller images are enlarged.
const SIDE: usize = 384;
/// Black columns between both sides.
const GAP: usize = 8;

/// A slice before the filters, and how it is shown.
pub(super) struct Pair {
    before: Array2<f32>,
    /// The slice, and the number of slices.
    slice: [usize; 2],
    window: Option<Window>,
    limits: Limits,
}

impl Pair {
    /// Takes a slice of the first repetition; the middle one where none is named. Errors: a slice that the
    /// image lacks.
    pub(super) fn before(image: &Image<f32>, slice: Option<usize>, window: Option<Window>) -> Result<Self> {
        let depth = image.shape_zyx()[0];
        let slice = slice.unwrap_or(depth / 2);
        if slice >= depth {
            return Err(Error::value("slice", format!("0 to {}", depth - 1), slice).into());
        }
        let before = square(image, slice)?;
        let limits = window.unwrap_or_default().limits(before.view())?;
        Ok(Self { before, slice: [slice, depth], window, limits })
    }

    /// Writes both side by side, with one window or each with its own. Returns what the picture shows.
    pub(super) fn write(&self, path: &Path, after: &Image<f32>, one_window: bool) -> Result<String> {
        let ([slice, count], depth) = (self.slice, after.shape_zyx()[0]);
        // The slice whose middle is nearest in the same box.
        let other = (2 * slice + 1) * depth / (2 * count);
        let second = square(after, other)?;
        let limits = match one_window || self.window.is_some() {
            true => self.limits,
            false => Window::default().limits(second.view())?,
        };
        let sides = |one: &Array2<f32>| [one.nrows(), one.ncols()];
        let [first_side, second_side] = [sides(&self.before), sides(&second)];
        let larger = if first_side >= second_side { first_side } else { second_side };
        let times = SIDE.div_ceil(larger[0].max(larger[1]));
        let shape = (larger[0] * times, larger[1] * times);
        let mut blank = String::new();
        let mut grey = |side: &str, image: &Array2<f32>, limits: Limits| -> Result<Array2<u8>> {
            let image = resample(image.view(), shape, false)?;
            let grey = to_grey(image.view(), limits);
            if let Some(words) = limits.blank(image.view(), grey.view()) {
                blank.push_str(&format!("; {side}, {words}"));
            }
            Ok(grey)
        };
        let both = [grey("left", &self.before, self.limits)?, grey("right", &second, limits)?];
        let both = ndarray::stack(Axis(0), &both.each_ref().map(|one| one.view())).context("picture")?;
        let layout = Montage { columns: Some(2), gap: GAP, slices: None };
        write_grey(path, montage(both.view(), &layout)?.view())?;
        let range = |limits: Limits| format!("{} to {}", limits.low, limits.high);
        let shown = match limits == self.limits {
            true => format!("grey from {}", range(limits)),
            false => format!("grey from {} before and {} after", range(self.limits), range(limits)),
        };
        Ok(format!("slice {slice} before (left) and after (right), {shown}{blank}"))
    }
}

/// A slice of the first repetition on square pixels.
fn square(image: &Image<f32>, slice: usize) -> Result<Array2<f32>> {
    let [sx, sy, _] = image.geometry().spacing_mm;
    let [depth, rows, columns] = image.shape_zyx();
    let first = image.data().view().into_shape_with_order((image.repetitions(), depth, rows, columns))?;
    let plane = first.index_axis_move(Axis(0), 0).index_axis_move(Axis(0), slice);
    Ok(square_pixels(plane, [sy, sx], true)?)
}
