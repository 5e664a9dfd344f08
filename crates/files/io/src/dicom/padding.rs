//! Pixels that were not measured (`PixelPaddingValue`).

use ndarray::{Array3, ArrayView2, Axis};
use rayon::prelude::*;

use super::plane::Plane;

/// Scanners give the pixels that they measure no lower number, in Hounsfield units.
const LOWEST_MEASURED: f32 = -1024.0;

/// Gives pixels that a CT scanner did not measure the lowest of the other values. Such pixels have a number
/// below all measured ones. Elsewhere the number of the padding has a meaning, as the background of labels
/// and the zeros of MRI have, and stays. Returns a sentence on what was done, or on padding that lies above
/// other values.
pub(super) fn filled(planes: &[Plane], slices: &mut Array3<f32>) -> Option<String> {
    let (first, last) = planes.iter().find_map(|plane| plane.padding)?;
    let ranges: Vec<Option<[f32; 2]>> = planes.iter().map(range).collect();
    // The highest padding, and the lowest of all others.
    let extent = |(slice, range): (ArrayView2<'_, f32>, Option<[f32; 2]>)| {
        let each = slice.iter().map(|&value| match is_within(range, value) {
            true => (value, f32::INFINITY),
            false => (f32::NEG_INFINITY, value),
        });
        each.fold((f32::NEG_INFINITY, f32::INFINITY), both)
    };
    let views: Vec<_> = slices.axis_iter(Axis(0)).zip(ranges.iter().copied()).collect();
    let (padding, lowest) =
        views.into_par_iter().map(extent).reduce(|| (f32::NEG_INFINITY, f32::INFINITY), both);
    if padding == f32::NEG_INFINITY || lowest == f32::INFINITY {
        return None;
    }
    let stated = if first == last { first.to_string() } else { format!("{first} to {last}") };
    let what = format!("pixels that were not measured (PixelPaddingValue {stated})");
    let hounsfield = planes.iter().all(|plane| plane.values.is_hounsfield(&plane.modality));
    if padding >= lowest {
        // Zeros are the background of images in which others may be negative.
        let told = hounsfield || padding != 0.0;
        return told.then(|| format!("{what} keep their values, up to {padding}: other values lie below"));
    }
    if padding >= LOWEST_MEASURED || !hounsfield {
        return None;
    }
    for (mut slice, range) in slices.axis_iter_mut(Axis(0)).zip(ranges) {
        slice.mapv_inplace(|value| if is_within(range, value) { lowest } else { value });
    }
    Some(format!("{what} have the lowest of the other values, {lowest}"))
}

/// The higher padding and the lower value of two pairs. Numbers that are none do not count.
fn both(one: (f32, f32), other: (f32, f32)) -> (f32, f32) {
    (one.0.max(other.0), one.1.min(other.1))
}

/// The lowest and highest value of a slice's padding.
fn range(plane: &Plane) -> Option<[f32; 2]> {
    let (low, high) = plane.padding?;
    let [a, b] = [low, high].map(|stored| plane.values.scale.value(stored));
    Some([a.min(b), a.max(b)])
}

fn is_within(range: Option<[f32; 2]>, value: f32) -> bool {
    range.is_some_and(|[low, high]| (low..=high).contains(&value))
}
