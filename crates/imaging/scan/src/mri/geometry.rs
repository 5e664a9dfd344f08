use std::collections::BTreeMap;

use rayspin_core::Geometry;
use rayspin_core::slices::{Stack, all_in_one_place, order, same_directions, stacks};

use super::{Acquisition, Encoding, Label};
use crate::mri::corrections::other_voxel_size;
use crate::mri::raw::note;

/// What a readout states of the place of its slice or slab.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct SlicePlace {
    /// Its centre, LPS mm.
    pub position: [f32; 3],
    /// Direction cosines of read, phase and slice, LPS; all zero when not stated.
    pub directions: [[f32; 3]; 3],
}

impl Acquisition {
    /// What it states of the place of its slice.
    pub fn place_of_slice(&self) -> SlicePlace {
        SlicePlace { position: self.position, directions: [self.read_dir, self.phase_dir, self.slice_dir] }
    }
}

impl SlicePlace {
    /// The geometry of voxels of this size; none for directions that are not orthonormal, or a position that
    /// is not finite.
    fn geometry(&self, spacing: [f64; 3]) -> Option<Geometry> {
        let wide = |v: [f32; 3]| v.map(f64::from);
        let [read, phase, slice] = self.directions.map(wide);
        Geometry::new(spacing, wide(self.position), read, phase, slice).ok()
    }

    /// The geometry with the axes and the position that are assumed where none are stated.
    fn assumed(&self, spacing: [f64; 3]) -> Geometry {
        let position_mm = match self.position.iter().all(|p| p.is_finite()) {
            true => self.position.map(f64::from),
            false => [0.0; 3],
        };
        Geometry { position_mm, spacing_mm: spacing, ..Geometry::default() }
    }
}

/// Where an image lies, from a readout's header; what is missing or impossible is replaced, and said.
pub(super) fn of_readout(
    readout: &Acquisition,
    encoding: &Encoding,
    on_grid: bool,
    notes: &mut Vec<String>,
) -> Geometry {
    let mut spacing = [1.0; 3];
    for axis in 0..3 {
        let (n, fov) = (encoding.recon.matrix[axis], encoding.recon.fov_mm[axis]);
        let name = ["x", "y", "z"][axis];
        if !(fov.is_finite() && fov > 0.0) {
            note(notes, format!("the header's field of view along {name} is {fov} mm: 1 mm voxels assumed"));
            continue;
        }
        spacing[axis] = fov / n as f64;
        if on_grid && let Some(own) = other_voxel_size(encoding, axis) {
            let stated = std::mem::replace(&mut spacing[axis], own);
            note(
                notes,
                format!(
                    "voxels along {name} are {own:.4} mm, not the header's {stated:.4} mm: the field of view that was \
                     encoded holds no whole number of those. The image states its own size"
                ),
            );
        }
    }
    let place = readout.place_of_slice();
    if let Some(geometry) = place.geometry(spacing) {
        return geometry;
    }
    let why = if place.directions.as_flattened().iter().all(|&v| v == 0.0) {
        "states no"
    } else {
        "has no orthonormal"
    };
    note(
        notes,
        format!(
            "the header {why} direction cosines: x to the patient's left, y posterior, z superior assumed"
        ),
    );
    if place.position.iter().any(|p| !p.is_finite()) {
        note(notes, "the header's position is not finite: the isocentre assumed");
    }
    place.assumed(spacing)
}

/// Where the slices of a scan lie, each as its first readout states it.
///
/// ```
/// use rayspin_scan::mri::{Label, SlicePlace, SlicePlaces};
///
/// let mut places = SlicePlaces::default();
/// let labels = [0, 1, 2].map(|slice| Label { slice, ..Label::default() });
/// for (label, z) in labels.iter().zip([0.0, 8.0, 4.0]) {
///     places.add(label, SlicePlace { position: [0.0, 0.0, z], ..SlicePlace::default() });
/// }
/// let mut notes = Vec::new();
/// assert_eq!(places.sorted(labels.to_vec(), &mut notes), [labels[0], labels[2], labels[1]]);
/// assert_eq!(notes.len(), 1);
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SlicePlaces {
    /// By encoding and slice.
    places: BTreeMap<(usize, u16), SlicePlace>,
}

impl SlicePlaces {
    /// Takes the place of a readout, where it is the first of its slice.
    pub fn add(&mut self, label: &Label, place: SlicePlace) {
        self.places.entry((label.encoding, label.slice)).or_insert(place);
    }

    /// The labels with the slices of each image in the order of their places: from one end of a stack to the
    /// other, one stack after another. `notes` tells where counters have another order.
    pub fn sorted(&self, mut labels: Vec<Label>, notes: &mut Vec<String>) -> Vec<Label> {
        let mut rank: BTreeMap<(usize, u16), usize> = BTreeMap::new();
        let mut encodings: BTreeMap<usize, Vec<u16>> = BTreeMap::new();
        for label in &labels {
            let slices = encodings.entry(label.encoding).or_default();
            if rank.insert((label.encoding, label.slice), 0).is_none() {
                slices.push(label.slice);
            }
        }
        for (encoding, mut slices) in encodings {
            slices.sort_unstable();
            let place = |slice: &u16| self.places.get(&(encoding, *slice)).copied().unwrap_or_default();
            let geometry = |place: SlicePlace| place.geometry([1.0; 3]).unwrap_or(place.assumed([1.0; 3]));
            let places: Vec<Geometry> = slices.iter().map(|slice| geometry(place(slice))).collect();
            let order = order(&places);
            for (place, &slice) in order.iter().enumerate() {
                rank.insert((encoding, slices[slice]), place);
            }
            if !order.is_sorted() {
                let sorted: Vec<u16> = order.into_iter().map(|index| slices[index]).collect();
                note(
                    notes,
                    format!("slices are sorted by their places, not by their counters: {}", list(&sorted)),
                );
            }
        }
        labels.sort_by_key(|label| {
            let place = rank.get(&(label.encoding, label.slice)).copied();
            (label.volume(), place)
        });
        labels
    }

    /// The slices of an encoding in the order of their places.
    pub fn slices(&self, encoding: usize) -> Vec<u16> {
        let keys = self.places.keys().filter(|(own, _)| *own == encoding);
        let labels = keys.map(|&(encoding, slice)| Label { encoding, slice, ..Label::default() }).collect();
        self.sorted(labels, &mut Vec::new()).into_iter().map(|label| label.slice).collect()
    }
}

/// Numbers for people, the first few of many.
fn list(numbers: &[u16]) -> String {
    const MOST: usize = 12;
    let shown: Vec<String> = numbers.iter().take(MOST).map(u16::to_string).collect();
    let rest = if numbers.len() > MOST { ", …" } else { "" };
    format!("{}{rest}", shown.join(", "))
}

/// The stacks of slices that were reconstructed in this order; `notes` tells what their places are, where one
/// stack at one distance is not what they state.
pub fn stacked(slices: &[(u16, Geometry)], notes: &mut Vec<String>) -> Vec<Stack> {
    let places: Vec<Geometry> = slices.iter().map(|(_, place)| *place).collect();
    let stacks = stacks(&places);
    if all_in_one_place(&places) {
        let z = places[0].spacing_mm[2];
        note(notes, format!("slice positions are not spaced along the slice direction: {z} mm assumed"));
    }
    if stacks.len() > 1 {
        let mut rest = slices;
        let mut names = Vec::new();
        for stack in &stacks {
            let (own, others) = rest.split_at(stack.slices);
            names.push(list(&own.iter().map(|(slice, _)| *slice).collect::<Vec<_>>()));
            rest = others;
        }
        let alike = places.iter().all(|place| same_directions(&places[0], place));
        let why =
            if alike { "do not lie behind each other at one distance" } else { "have several directions" };
        let (count, names) = (stacks.len(), names.join("; "));
        note(
            notes,
            format!(
                "the slices {why}: they are {count} images, each with its own place, of the slices {names}"
            ),
        );
    }
    stacks
}

/// How far slices have moved since the first repetition, as a part of a voxel; infinitely far where they have
/// turned.
pub fn moved(first: &Geometry, now: &Geometry) -> f64 {
    if !same_directions(first, now) {
        return f64::INFINITY;
    }
    let off = rayspin_core::vector::sub(now.position_mm, first.position_mm);
    let least = first.spacing_mm.iter().copied().fold(f64::INFINITY, f64::min);
    rayspin_core::vector::norm(off) / least
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(z: f32) -> SlicePlace {
        let directions = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];
        SlicePlace { position: [1.0, 2.0, z], directions }
    }

    #[test]
    fn slices_of_each_repetition_are_sorted_by_place() {
        let mut places = SlicePlaces::default();
        let label = |encoding, repetition, slice| Label { encoding, repetition, slice, ..Label::default() };
        for (slice, z) in [(0, 6.0), (3, 0.0), (5, 3.0)] {
            places.add(&label(1, 0, slice), place(z));
            // A later readout does not count.
            places.add(&label(1, 1, slice), place(-z));
        }
        let all: Vec<Label> = [0, 1].iter().flat_map(|&r| [0, 3, 5].map(|s| label(1, r, s))).collect();
        let mut notes = Vec::new();
        let sorted = places.sorted(all, &mut notes);
        let found: Vec<(u16, u16)> = sorted.iter().map(|l| (l.repetition, l.slice)).collect();
        assert_eq!(found, [(0, 3), (0, 5), (0, 0), (1, 3), (1, 5), (1, 0)]);
        assert_eq!(notes, ["slices are sorted by their places, not by their counters: 3, 5, 0"]);
        assert_eq!((places.slices(1), places.slices(0)), (vec![3, 5, 0], vec![]));
        // Two of them fall.
        let two = places.sorted(vec![label(1, 0, 0), label(1, 0, 5)], &mut Vec::new());
        assert_eq!(two.iter().map(|l| l.slice).collect::<Vec<_>>(), [0, 5]);
    }

    #[test]
    fn what_the_places_of_slices_are_is_said() {
        let slice = |slice, z: f32| (slice, place(z).geometry([1.0, 1.0, 4.0]).unwrap());
        let mut notes = Vec::new();
        let found = stacked(&[slice(0, 1.0), slice(1, 1.0)], &mut notes);
        assert_eq!((found[0].geometry.spacing_mm[2], notes.len()), (4.0, 1));
        let found = stacked(&[slice(4, 0.0), slice(2, 5.0), slice(3, 30.0)], &mut notes);
        assert_eq!((found.len(), notes.len()), (2, 2));
        assert!(notes[1].ends_with("of the slices 4, 2; 3"), "{}", notes[1]);
        let [first, last] = [slice(0, 0.0).1, slice(0, 0.5).1];
        assert_eq!((moved(&first, &first), moved(&first, &last)), (0.0, 0.5));
    }
}
