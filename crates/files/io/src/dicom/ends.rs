//! Slices that are missing before the first or behind the last: no gap shows them, but the numbers of images
//! may.

use std::collections::BTreeMap;

use super::plane::Plane;

/// Sentences on slices that seem to be missing at an end of a series, whose slices are in the order of their
/// places, volume after volume.
pub(super) fn missing(planes: &[Plane], volumes: usize) -> Vec<String> {
    // Frames of one file are all there.
    match planes.iter().all(|plane| plane.frame.1 == 1) {
        true => before(planes).filter(|_| volumes == 1).into_iter().chain(of_stated(planes)).collect(),
        false => Vec::new(),
    }
}

/// Images are numbered from 1, along the slices or against them. Numbers that are further apart tell nothing:
/// other images lie between.
fn before(planes: &[Plane]) -> Option<String> {
    let numbers = planes.iter().map(|plane| plane.number).collect::<Option<Vec<i64>>>()?;
    let step = numbers.get(1)?.checked_sub(numbers[0])?;
    let is_even = numbers.windows(2).all(|pair| pair[1].checked_sub(pair[0]) == Some(step));
    let (first, last) = (*numbers.iter().min()?, *numbers.iter().max()?);
    let before = first.checked_sub(1)?;
    (is_even && matches!(step, -1 | 1) && before > 0).then(|| {
        let slices = if before == 1 { "slice" } else { "slices" };
        format!(
            "InstanceNumber runs from {first} to {last} along the slices: {before} {slices} before {first} may be missing, \
             or may belong to another image"
        )
    })
}

/// Fewer slices than the files say there are. Some files count the images of one acquisition, and some the
/// images of the whole series.
fn of_stated(planes: &[Plane]) -> Vec<String> {
    let mut counts = BTreeMap::new();
    for stated in planes.iter().filter_map(|plane| plane.stated_count) {
        *counts.entry(stated).or_insert(0) += 1;
    }
    let short = counts.into_iter().filter(|((stated, _), here)| here < stated);
    short
        .map(|((stated, name), here)| {
            format!("{name} states {stated} images, and {here} are here: others may be missing at an end")
        })
        .collect()
}
