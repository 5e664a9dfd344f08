use rayspin_core::Geometry;

use super::frames::note;
use super::{Acquisition, Encoding};

/// Where an image lies, from a readout's header; what is missing or impossible is replaced, and said.
pub(super) fn of_readout(readout: &Acquisition, encoding: &Encoding, notes: &mut Vec<String>) -> Geometry {
    let mut spacing = [1.0; 3];
    for axis in 0..3 {
        let (n, fov) = (encoding.recon.matrix[axis], encoding.recon.fov_mm[axis]);
        if fov.is_finite() && fov > 0.0 {
            spacing[axis] = fov / n as f64;
        } else {
            let name = ["x", "y", "z"][axis];
            note(notes, format!("the header's field of view along {name} is {fov} mm: 1 mm voxels assumed"));
        }
    }
    let wide = |v: [f32; 3]| v.map(f64::from);
    let stated = Geometry::new(
        spacing,
        wide(readout.position),
        wide(readout.read_dir),
        wide(readout.phase_dir),
        wide(readout.slice_dir),
    );
    if let Ok(geometry) = stated {
        return geometry;
    }
    let directions = [readout.read_dir, readout.phase_dir, readout.slice_dir];
    let why = if directions.iter().flatten().all(|&v| v == 0.0) { "states no" } else { "has no orthonormal" };
    note(
        notes,
        format!(
            "the header {why} direction cosines: x to the patient's left, y posterior, z superior assumed"
        ),
    );
    let position = wide(readout.position);
    let default = Geometry { spacing_mm: spacing, ..Geometry::default() };
    if position.iter().all(|p| p.is_finite()) {
        Geometry { position_mm: position, ..default }
    } else {
        note(notes, "the header's position is not finite: the isocentre assumed");
        default
    }
}

/// Gaps that differ by more than this part of the mean distance are uneven rather than rounded.
const UNEVEN: f64 = 0.01;

/// The geometry of slices stacked along z, from each slice's own, in stacking order.
///
/// The distance of the slices is taken from the first and last position along the slice direction; where positions do
/// not differ, from the voxel's z size. Slices that are not evenly spaced are noted: an image has one distance.
///
/// ```
/// use rayspin_core::Geometry;
/// use rayspin_mri::scan::stack;
///
/// let slice = |z: f64| Geometry { position_mm: [0.0, 0.0, z], ..Geometry::default() };
/// let mut notes = Vec::new();
/// let whole = stack(&[slice(0.0), slice(4.0), slice(8.0)], &mut notes);
/// assert!(whole.is_some_and(|g| g.spacing_mm[2] == 4.0 && g.position_mm[2] == 4.0));
/// ```
pub fn stack(slices: &[Geometry], notes: &mut Vec<String>) -> Option<Geometry> {
    let first = slices.first()?;
    let mut volume = *first;
    let count = slices.len();
    if count > 1 {
        let last = slices[count - 1];
        let step: [f64; 3] =
            std::array::from_fn(|i| (last.position_mm[i] - first.position_mm[i]) / (count - 1) as f64);
        let length = step.iter().map(|v| v * v).sum::<f64>().sqrt();
        let along: f64 = step.iter().zip(&first.slice_dir).map(|(a, b)| a * b).sum();
        if length > 1e-6 && along.abs() > 0.999 * length {
            volume.spacing_mm[2] = length;
            let gaps = slices.windows(2).map(|pair| {
                let gap = (0..3).map(|i| (pair[1].position_mm[i] - pair[0].position_mm[i]) * step[i]);
                gap.sum::<f64>() / length
            });
            let (least, most) =
                gaps.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), gap| (a.min(gap), b.max(gap)));
            if most - least > UNEVEN * length {
                note(
                    notes,
                    format!(
                        "slices are {least:.3} to {most:.3} mm apart: their mean distance of {length:.3} mm is stated \
                         for all of them"
                    ),
                );
            }
            if along < 0.0 {
                volume.slice_dir = first.slice_dir.map(|v| -v);
            }
        } else {
            let z = volume.spacing_mm[2];
            note(notes, format!("slice positions are not spaced along the slice direction: {z} mm assumed"));
        }
    }
    for axis in 0..3 {
        volume.position_mm[axis] =
            first.position_mm[axis] + (count / 2) as f64 * volume.spacing_mm[2] * volume.slice_dir[axis];
    }
    Some(volume)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]
        #[test]
        fn every_stacked_slice_lies_where_it_was(
            angles in prop::array::uniform2(-3.0f64..3.0),
            start in prop::array::uniform3(-200.0f64..200.0),
            spacing in prop::array::uniform3(0.2f64..9.0),
            gap in 0.3f64..20.0,
            up in any::<bool>(),
            (count, nx, ny) in (1usize..9, 1usize..40, 1usize..40),
        ) {
            let ((s, c), (t, d)) = (angles[0].sin_cos(), angles[1].sin_cos());
            let (read, phase, slice) = ([c, s, 0.0], [-s * d, c * d, t], [s * t, -c * t, d]);
            let step = if up { gap } else { -gap };
            let places: Vec<Geometry> = (0..count)
                .map(|i| {
                    let position = std::array::from_fn(|a| start[a] + i as f64 * step * slice[a]);
                    Geometry::new(spacing, position, read, phase, slice).unwrap()
                })
                .collect();
            let mut notes = Vec::new();
            let volume = stack(&places, &mut notes).unwrap();
            prop_assert!(notes.is_empty());
            let affine = volume.affine_lps([count, ny, nx]);
            for (i, place) in places.iter().enumerate() {
                let voxel = [(nx / 2) as f64, (ny / 2) as f64, i as f64];
                for (row, wanted) in affine.iter().zip(place.position_mm) {
                    let found = row[3] + (0..3).map(|a| row[a] * voxel[a]).sum::<f64>();
                    prop_assert!((found - wanted).abs() < 1e-8, "slice {}: {} {}", i, found, wanted);
                }
            }
        }
    }

    fn at(z: f64) -> Geometry {
        Geometry { position_mm: [1.0, 2.0, z], spacing_mm: [2.0, 2.0, 3.0], ..Geometry::default() }
    }

    #[test]
    fn slices_stack_with_their_distance_and_direction() {
        let mut notes = Vec::new();
        let up = stack(&[at(0.0), at(5.0), at(10.0)], &mut notes).unwrap();
        assert_eq!((up.spacing_mm[2], up.position_mm, up.slice_dir), (5.0, [1.0, 2.0, 5.0], [0.0, 0.0, 1.0]));
        let down = stack(&[at(0.0), at(-4.0)], &mut notes).unwrap();
        assert_eq!((down.spacing_mm[2], down.slice_dir[2], down.position_mm[2]), (4.0, -1.0, -4.0));
        assert!(notes.is_empty());
        let same = stack(&[at(7.0), at(7.0)], &mut notes).unwrap();
        assert_eq!((same.spacing_mm[2], notes.len()), (3.0, 1));
        assert!(stack(&[], &mut notes).is_none());
        let uneven = stack(&[at(0.0), at(2.0), at(10.0)], &mut notes).unwrap();
        assert_eq!((uneven.spacing_mm[2], notes.len()), (5.0, 2));
        assert!(notes[1].contains("2.000 to 8.000"), "{}", notes[1]);
    }
}
