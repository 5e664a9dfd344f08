//! Slices that were measured one by one: which lie behind each other, in which order, and where.

use crate::Geometry;
use crate::vector::{dot, sub};

/// How far direction cosines of one orientation may differ: files round them.
pub const SAME_DIRECTION: f64 = 1e-3;
/// Two slices that are nearer than this part of the usual distance lie in the same place.
pub const SAME_PLACE: f64 = 0.01;
/// How far places may be off even spacing, in spacings. Headers round positions, and steps of a table vary.
pub const EVEN: f64 = 0.02;

/// Slices that lie behind each other at one distance, so that one geometry states the place of each.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stack {
    /// How many slices.
    pub slices: usize,
    /// Where they lie.
    pub geometry: Geometry,
}

/// Whether two slices have the same direction cosines.
pub fn same_directions(a: &Geometry, b: &Geometry) -> bool {
    let axes = |geometry: &Geometry| [geometry.read_dir, geometry.phase_dir, geometry.slice_dir].concat();
    near(&axes(a), &axes(b), SAME_DIRECTION)
}

/// Whether numbers differ by `off` at most.
pub fn near(a: &[f64], b: &[f64], off: f64) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() <= off)
}

/// The middle one of some numbers in ascending order. Where two are in the middle it is the lower one, so
/// that one of two distances that is too large shows.
pub fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len().saturating_sub(1) / 2).copied()
}

/// The distance of slices that are evenly spaced, from their places along their normal, which rise from 0.
/// None of a single slice, and of slices that are not.
pub fn even_spacing(heights: &[f64]) -> Option<f64> {
    let (last, steps) = (heights.last()?, heights.len().checked_sub(1).filter(|&steps| steps > 0)?);
    let step = last / steps as f64;
    let on = |(index, height): (usize, &f64)| (height - index as f64 * step).abs() <= EVEN * step;
    heights.iter().enumerate().all(on).then_some(step)
}

/// How far a slice that lies `height` behind another may be off in its plane and count as lying behind it,
/// mm: rounded places, and rounded directions.
fn in_line(height: f64, step: f64) -> f64 {
    EVEN * step + SAME_DIRECTION * height
}

/// The order in which slices are stacked: slices of one orientation that lie behind each other, sorted by
/// their places along the normal. Slices whose places fall all the way stay in their order. A slice in the
/// place of another begins a stack of its own.
///
/// ```
/// use rayspin_core::Geometry;
/// use rayspin_core::slices::order;
///
/// let at = |z: f64| Geometry { position_mm: [0.0, 0.0, z], ..Geometry::default() };
/// assert_eq!(order(&[at(0.0), at(10.0), at(5.0)]), [0, 2, 1]); // interleaved
/// assert_eq!(order(&[at(9.0), at(6.0), at(3.0)]), [0, 1, 2]);
/// ```
pub fn order(places: &[Geometry]) -> Vec<usize> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for (index, place) in places.iter().enumerate() {
        match groups.iter_mut().find(|group| same_directions(&places[group[0]], place)) {
            Some(group) => group.push(index),
            None => groups.push(vec![index]),
        }
    }
    groups.into_iter().flat_map(|group| order_of_group(places, group)).collect()
}

/// [`order`] of slices of one orientation.
fn order_of_group(places: &[Geometry], mut group: Vec<usize>) -> Vec<usize> {
    let first = places[group[0]];
    let height = |index: usize| dot(sub(places[index].position_mm, first.position_mm), first.slice_dir);
    let falls = group.windows(2).all(|pair| height(pair[1]) < height(pair[0]));
    group.sort_by(|&a, &b| height(a).total_cmp(&height(b)));
    let gaps = |slices: &[usize]| -> Vec<f64> {
        slices.windows(2).map(|pair| height(pair[1]) - height(pair[0])).collect()
    };
    let largest = gaps(&group).into_iter().fold(0.0, f64::max);
    let usual = median(gaps(&group).into_iter().filter(|gap| *gap > SAME_PLACE * largest).collect());
    let Some(usual) = usual else { return group };
    let across = |a: usize, b: usize| {
        let between = sub(places[b].position_mm, places[a].position_mm);
        let along = dot(between, first.slice_dir);
        (dot(between, between) - along * along).max(0.0).sqrt()
    };
    let mut lines: Vec<Vec<usize>> = Vec::new();
    for slice in group {
        let behind = |line: &&mut Vec<usize>| {
            let (low, last) = (line[0], line[line.len() - 1]);
            across(low, slice) <= in_line(height(slice) - height(low), usual)
                && height(slice) - height(last) > SAME_PLACE * usual
        };
        match lines.iter_mut().find(behind) {
            Some(line) => line.push(slice),
            None => lines.push(vec![slice]),
        }
    }
    if falls {
        lines.iter_mut().for_each(|line| line.reverse());
        lines.reverse();
    }
    lines.concat()
}

/// The stacks of slices in their order: each as long as one geometry states the place of each of its slices.
/// Slices that all have one place, as where a file states none, are one stack at the distance of their
/// thickness; [`all_in_one_place`] tells.
///
/// ```
/// use rayspin_core::Geometry;
/// use rayspin_core::slices::stacks;
///
/// let at = |z: f64| Geometry { position_mm: [0.0, 0.0, z], ..Geometry::default() };
/// let found = stacks(&[at(0.0), at(5.0), at(10.0), at(40.0), at(45.0)]);
/// assert_eq!(found.iter().map(|stack| stack.slices).collect::<Vec<_>>(), [3, 2]);
/// assert_eq!((found[1].geometry.spacing_mm[2], found[1].geometry.position_mm[2]), (5.0, 45.0));
/// ```
pub fn stacks(places: &[Geometry]) -> Vec<Stack> {
    let parts = if all_in_one_place(places) { vec![places] } else { split(places) };
    parts.into_iter().map(stack_of).collect()
}

/// Whether several slices have one orientation and one position, which then is none.
pub fn all_in_one_place(places: &[Geometry]) -> bool {
    let [first, others @ ..] = places else { return false };
    let same = |other: &Geometry| {
        same_directions(first, other) && near(&first.position_mm, &other.position_mm, 1e-6)
    };
    !others.is_empty() && others.iter().all(same)
}

/// The slices in parts that are even: from each on as many as are. A slice whose neighbour begins a longer
/// part is alone.
fn split(places: &[Geometry]) -> Vec<&[Geometry]> {
    if is_even(places) {
        return vec![places];
    }
    let even_from = |start: usize| {
        let ends = start + 1..=places.len();
        ends.take_while(|&end| is_even(&places[start..end])).last().unwrap_or(start + 1)
    };
    let (mut parts, mut start) = (Vec::new(), 0);
    while start < places.len() {
        let mut end = even_from(start);
        if end - start == 2 && even_from(start + 1) > end + 1 {
            end = start + 1;
        }
        parts.push(&places[start..end]);
        start = end;
    }
    parts
}

/// Whether slices of one orientation lie behind each other at one distance.
fn is_even(places: &[Geometry]) -> bool {
    let [first, others @ ..] = places else { return false };
    let Some(last) = others.last() else { return true };
    let whole = sub(last.position_mm, first.position_mm);
    let along = dot(whole, first.slice_dir).abs();
    let step = along / others.len() as f64;
    let across = (dot(whole, whole) - along * along).max(0.0).sqrt();
    let on = |(index, place): (usize, &Geometry)| {
        let part = index as f64 / others.len() as f64;
        let wanted = std::array::from_fn(|axis| first.position_mm[axis] + part * whole[axis]);
        let off = sub(place.position_mm, wanted);
        dot(off, off).sqrt() <= EVEN * step
    };
    step > 1e-6
        && across <= in_line(along, step)
        && others.iter().all(|other| same_directions(first, other))
        && places.iter().enumerate().all(on)
}

/// The geometry of slices that lie behind each other.
fn stack_of(places: &[Geometry]) -> Stack {
    let (first, count) = (places[0], places.len());
    let mut geometry = first;
    if count > 1 && !all_in_one_place(places) {
        let last = places[count - 1];
        let step: [f64; 3] =
            std::array::from_fn(|i| (last.position_mm[i] - first.position_mm[i]) / (count - 1) as f64);
        geometry.spacing_mm[2] = step.iter().map(|v| v * v).sum::<f64>().sqrt();
        let along: f64 = step.iter().zip(&first.slice_dir).map(|(a, b)| a * b).sum();
        if along < 0.0 {
            geometry.slice_dir = first.slice_dir.map(|v| -v);
        }
    }
    for axis in 0..3 {
        geometry.position_mm[axis] =
            first.position_mm[axis] + (count / 2) as f64 * geometry.spacing_mm[2] * geometry.slice_dir[axis];
    }
    Stack { slices: count, geometry }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(x: f64, z: f64) -> Geometry {
        Geometry { position_mm: [x, 2.0, z], spacing_mm: [2.0, 2.0, 3.0], ..Geometry::default() }
    }

    fn turned(degrees: f64, z: f64) -> Geometry {
        let (s, c) = degrees.to_radians().sin_cos();
        Geometry { read_dir: [c, s, 0.0], phase_dir: [-s, c, 0.0], ..at(0.0, z) }
    }

    fn sizes(places: &[Geometry]) -> Vec<usize> {
        stacks(places).iter().map(|stack| stack.slices).collect()
    }

    /// Where a stack's slice says its centre voxel is.
    fn place(stack: &Stack, slice: usize) -> [f64; 3] {
        let affine = stack.geometry.affine_lps([stack.slices, 8, 8]);
        affine.map(|row| row[3] + 4.0 * (row[0] + row[1]) + slice as f64 * row[2])
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(192))]
        /// Whatever slices there are, in any order and any orientation, each lies where it was measured.
        #[test]
        fn every_slice_lies_where_it_was(
            angles in prop::array::uniform2(-3.0f64..3.0),
            start in prop::array::uniform3(-200.0f64..200.0),
            spacing in prop::array::uniform3(0.2f64..9.0),
            steps in prop::collection::vec(prop::sample::select(vec![-3.0, 0.0, 1.5, 3.0, 3.0, 3.0, 40.0]), 0..9),
            shifts in prop::collection::vec(prop::sample::select(vec![0.0, 0.0, 0.0, 7.0]), 9),
            kinds in prop::collection::vec(prop::sample::select(vec![0usize, 0, 0, 1]), 9),
        ) {
            let ((s, c), (t, d)) = (angles[0].sin_cos(), angles[1].sin_cos());
            let (read, phase, slice) = ([c, s, 0.0], [-s * d, c * d, t], [s * t, -c * t, d]);
            let mut height = 0.0;
            let mut places = Vec::new();
            for (at, step) in std::iter::once(&0.0).chain(&steps).enumerate() {
                height += step;
                let shift = shifts[at % 9];
                let position = std::array::from_fn(|a| start[a] + height * slice[a] + shift * read[a]);
                let [x, y, z] = if kinds[at % 9] == 0 { [read, phase, slice] } else { [slice, read, phase] };
                places.push(Geometry::new(spacing, position, x, y, z).unwrap());
            }
            let sorted: Vec<Geometry> = order(&places).into_iter().map(|at| places[at]).collect();
            prop_assert_eq!(sorted.len(), places.len());
            let found = stacks(&sorted);
            prop_assert_eq!(found.iter().map(|stack| stack.slices).sum::<usize>(), places.len());
            if !all_in_one_place(&sorted) {
                let mut rest = &sorted[..];
                for stack in &found {
                    for (at, place) in rest.iter().take(stack.slices).enumerate() {
                        let affine = stack.geometry.affine_lps([stack.slices, 9, 9]);
                        let voxel = [4.0, 4.0, at as f64];
                        let rounding = 2.0 * EVEN * stack.geometry.spacing_mm[2];
                        for (row, wanted) in affine.iter().zip(place.position_mm) {
                            let lies = row[3] + (0..3).map(|a| row[a] * voxel[a]).sum::<f64>();
                            prop_assert!((lies - wanted).abs() < rounding, "{} {}", lies, wanted);
                        }
                        let falling = Geometry { slice_dir: place.slice_dir.map(|v| -v), ..*place };
                        let directions = [*place, falling];
                        prop_assert!(directions.iter().any(|own| same_directions(&stack.geometry, own)));
                    }
                    rest = &rest[stack.slices..];
                }
            }
        }
    }

    #[test]
    fn slices_stack_with_their_distance_and_direction() {
        let up = stacks(&[at(1.0, 0.0), at(1.0, 5.0), at(1.0, 10.0)]);
        let found = up[0].geometry;
        assert_eq!((up.len(), found.spacing_mm[2], found.position_mm), (1, 5.0, [1.0, 2.0, 5.0]));
        let down = stacks(&[at(1.0, 0.0), at(1.0, -4.0)])[0].geometry;
        assert_eq!((down.spacing_mm[2], down.slice_dir[2], down.position_mm[2]), (4.0, -1.0, -4.0));
        let same = [at(0.0, 7.0), at(0.0, 7.0)];
        assert_eq!((stacks(&same)[0].geometry.spacing_mm[2], all_in_one_place(&same)), (3.0, true));
        assert!(stacks(&[]).is_empty() && order(&[]).is_empty());
    }

    #[test]
    fn slices_are_sorted_by_place() {
        let of = |heights: &[f64]| order(&heights.iter().map(|&z| at(0.0, z)).collect::<Vec<_>>());
        assert_eq!(of(&[3.0, 9.0, 0.0, 6.0]), [2, 0, 3, 1]);
        assert_eq!(of(&[9.0, 6.0, 3.0, 0.0]), [0, 1, 2, 3]);
        // The same stack twice.
        assert_eq!(of(&[0.0, 0.0, 4.0, 4.0, 8.0, 8.0]), [0, 2, 4, 1, 3, 5]);
        assert_eq!(of(&[5.0, 5.0, 5.0]), [0, 1, 2]);
        let mixed = [turned(0.0, 0.0), turned(30.0, 0.0), turned(0.0, 3.0), turned(30.0, 3.0)];
        assert_eq!(order(&mixed), [0, 2, 1, 3]);
    }

    #[test]
    fn what_one_geometry_cannot_state_is_several_stacks() {
        let heights = |all: &[f64]| all.iter().map(|&z| at(0.0, z)).collect::<Vec<_>>();
        assert_eq!(sizes(&heights(&[0.0, 5.0, 10.0, 40.0, 45.0])), [3, 2]);
        assert_eq!(sizes(&heights(&[0.0, 9.0, 11.0, 13.0])), [1, 3]);
        // Rounded places are even.
        assert_eq!(sizes(&heights(&[0.0, 3.3, 6.7, 10.0])), [4]);
        let sheared = [at(0.0, 0.0), at(1.0, 5.0), at(2.0, 10.0)];
        assert_eq!(sizes(&sheared), [1, 1, 1]);
        let radial = [turned(0.0, 0.0), turned(45.0, 0.0), turned(90.0, 0.0)];
        assert_eq!(sizes(&radial), [1, 1, 1]);
        let beside = [at(0.0, 0.0), at(0.0, 5.0), at(90.0, 0.0), at(90.0, 5.0)];
        let stacked = stacks(&beside);
        assert_eq!((stacked.len(), order(&beside)), (2, vec![0, 1, 2, 3]));
        assert_eq!(place(&stacked[1], 1), [90.0, 2.0, 5.0]);
    }
}
