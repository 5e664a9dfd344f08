use ndarray::{ArrayView2, Axis};
use rayon::prelude::*;
use rayspin_core::{Error, Result, TrajectoryUnits};

use crate::mri::raw::{is_known, note};

/// How far beyond n/2 a trajectory may reach and still be taken as sampling the matrix (ramps, rounded
/// limits).
const OVERSHOOT: f64 = 1.3;
/// A unit in which the trajectory covers a smaller part of n/2 than this is ruled out.
const LEAST_COVER: f64 = 0.02;
/// A unit that follows from the range alone covers at least this part of n/2. ±1, which some programs call
/// normalised, would be 0.32 in radians per voxel.
const LEAST_TOLD: f64 = 0.4;

/// A trajectory that covers n/2 in another unit but for this part of it may well be in that unit: small
/// matrices make ranges overlap.
const FULL: f64 = 0.02;

/// Whether a trajectory reaches so little far that it may count in voxels: ±0.5 cycles or ±π radians, with
/// some overshoot.
///
/// A matrix that followed from it would have 10 voxels at most. `points` is `[sample, dim]`.
///
/// ```
/// use ndarray::array;
/// use rayspin_scan::mri::may_count_voxels;
/// assert!(may_count_voxels(array![[-0.5, 0.0], [0.49, 0.2]].view()));
/// assert!(!may_count_voxels(array![[-32.0, 0.0], [31.5, 7.0]].view()));
/// ```
pub fn may_count_voxels(points: ArrayView2<'_, f64>) -> bool {
    points.iter().all(|k| k.abs() <= OVERSHOOT * std::f64::consts::PI)
}

/// The unit of a trajectory: the one that is `stated`, or else the one that the range tells
/// ([`detect_units`]), which goes to `notes`. The arguments are as for [`detect_units`].
///
/// Errors: as [`detect_units`]; a unit per metre where the field of view is unknown; places that count from
/// one end of k-space.
///
/// ```
/// use ndarray::array;
/// use rayspin_core::TrajectoryUnits;
/// use rayspin_scan::mri::settle_units;
///
/// let points = array![[-32.0, 0.0], [31.5, 7.0]];
/// let mut notes = Vec::new();
/// let units = settle_units(points.view(), &[64, 64], &[220.0, 220.0], None, &mut notes)?;
/// assert_eq!((units, notes.len()), (TrajectoryUnits::CyclesPerFov, 1)); // found by the range
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn settle_units(
    points: ArrayView2<'_, f64>,
    matrix: &[usize],
    fov_mm: &[f64],
    stated: Option<TrajectoryUnits>,
    notes: &mut Vec<String>,
) -> Result<TrajectoryUnits> {
    let units = match stated {
        Some(units) => {
            say_short(points, matrix, fov_mm, units, notes);
            units
        }
        None => {
            let detected = detect_units(points, matrix, fov_mm);
            if detected.is_err() {
                expect_centred(points, matrix, fov_mm, TrajectoryUnits::CyclesPerFov)?;
            }
            let detected = detected?;
            note(
                notes,
                format!(
                    "trajectory units are not stated: {detected} by its range (`--traj-units` overrides)"
                ),
            );
            detected
        }
    };
    if is_per_metre(units)
        && let Some(fov) = fov_mm.iter().find(|fov| !is_known(**fov))
    {
        let expected = format!("a length in mm along each axis, for a trajectory in {units}");
        return Err(Error::value("field of view", expected, fov));
    }
    expect_centred(points, matrix, fov_mm, units)?;
    Ok(units)
}

/// Errors: places on one side of 0 alone that reach beyond the matrix's k-space. They count from one end, and
/// no unit mends that.
fn expect_centred(
    points: ArrayView2<'_, f64>,
    matrix: &[usize],
    fov_mm: &[f64],
    units: TrajectoryUnits,
) -> Result<()> {
    let axes = ranges_of(points).into_iter().zip(matrix.iter().zip(fov_mm)).zip(["x", "y", "z"]);
    for (([low, high], (&n, &fov)), axis) in axes.filter(|((_, (n, _)), _)| **n > 1) {
        let cycles = units.to_cycles_per_fov(n, fov);
        let (one, most) = (1.0, OVERSHOOT * n as f64 / 2.0);
        if (high * cycles > most && low * cycles >= -one) || (low * cycles < -most && high * cycles <= one) {
            let expected = format!("places on both sides of 0 along {axis}, where the centre of k-space is");
            return Err(Error::value("centre of the trajectory", expected, format!("{low} to {high}")));
        }
    }
    Ok(())
}

/// Finds the unit of a trajectory by its range: the unit in which max |k| comes closest to n/2 from below.
///
/// `points` is `[sample, dim]` as the file holds it, `matrix` and `fov_mm` are in the order x, y, z. A field
/// of view that is not a positive number is unknown: it rules out units per metre. Cycles per field of view
/// win when they cover at least 30 % of n/2.
///
/// Errors: no unit explains the range; or, for a matrix below 22, another unit than cycles per field of view
/// covers n/2 exactly (within 2 %).
///
/// ```
/// use ndarray::array;
/// use rayspin_core::TrajectoryUnits;
/// use rayspin_scan::mri::detect_units;
///
/// let in_radian = array![[-3.14, 0.0], [3.1, 1.0]]; // −π … π radian for each voxel
/// let units = detect_units(in_radian.view(), &[64, 64], &[220.0, 220.0])?;
/// assert_eq!(units, TrajectoryUnits::RadiansPerVoxel);
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn detect_units(
    points: ArrayView2<'_, f64>,
    matrix: &[usize],
    fov_mm: &[f64],
) -> Result<TrajectoryUnits> {
    let extent = extent_of(points);
    let cover = |units: TrajectoryUnits| cover(&extent, matrix, fov_mm, units);
    let largest = extent.iter().fold(0.0f64, |m, &k| m.max(k));
    let fits = fitting(cover);
    let native = cover(TrajectoryUnits::CyclesPerFov);
    if (0.3..=OVERSHOOT).contains(&native) {
        let short = |cover: f64| (cover - 1.0).abs();
        let rival = fits.iter().find(|(_, cover)| short(*cover) < FULL.min(short(native)));
        return match rival {
            None => Ok(TrajectoryUnits::CyclesPerFov),
            Some((units, _)) => Err(Error::value(
                "trajectory units",
                format!("a range that only one unit explains for matrix {matrix:?}"),
                format!("max |k| = {largest:.4}, which cycles/fov and {units} explain"),
            )),
        };
    }
    let best = fits.iter().max_by(|a, b| a.1.total_cmp(&b.1));
    let expected = || format!("a range that samples matrix {matrix:?} in {}", names());
    match best {
        Some((units, cover)) if *cover >= LEAST_TOLD => Ok(*units),
        Some((units, cover)) => {
            let percent = 100.0 * cover;
            let found = format!(
                "max |k| = {largest:.4}, which reaches {percent:.0} % of its k-space in {units} and less in the others"
            );
            Err(Error::value("trajectory units", expected(), found))
        }
        None => Err(Error::value("trajectory units", expected(), format!("max |k| = {largest:.4}"))),
    }
}

/// The largest |k| of each component.
fn extent_of(points: ArrayView2<'_, f64>) -> Vec<f64> {
    let largest = |[low, high]: [f64; 2]| if low > high { 0.0 } else { high.max(-low) };
    ranges_of(points).into_iter().map(largest).collect()
}

/// The lowest and the highest coordinate along each axis.
fn ranges_of(points: ArrayView2<'_, f64>) -> Vec<[f64; 2]> {
    let none = [f64::INFINITY, f64::NEG_INFINITY];
    let both = |[low, high]: [f64; 2], other: [f64; 2]| [low.min(other[0]), high.max(other[1])];
    let range = |part: ArrayView2<'_, f64>| -> Vec<[f64; 2]> {
        let columns = part.columns().into_iter();
        columns.map(|column| column.iter().fold(none, |range, &k| both(range, [k, k]))).collect()
    };
    let join = |one: Vec<_>, other: Vec<_>| one.into_iter().zip(other).map(|(a, b)| both(a, b)).collect();
    let parts = points.axis_chunks_iter(Axis(0), 1 << 14).into_par_iter().map(range);
    parts.reduce(|| vec![none; points.ncols()], join)
}

/// The part of n/2 that an extent in these units reaches, along the axis where it reaches farthest.
fn cover(extent: &[f64], matrix: &[usize], fov_mm: &[f64], units: TrajectoryUnits) -> f64 {
    extent
        .iter()
        .zip(matrix.iter().zip(fov_mm))
        .filter(|(_, (n, fov))| **n > 1 && (is_known(**fov) || !is_per_metre(units)))
        .map(|(k, (&n, &fov))| k * units.to_cycles_per_fov(n, fov) / (n as f64 / 2.0))
        .fold(0.0, f64::max)
}

/// The units that are not ruled out, with the part of n/2 that they cover. Cycles per centimetre are taken
/// where they are stated: with voxels of 1 mm they are as large as radians per voxel.
fn fitting(cover: impl Fn(TrajectoryUnits) -> f64) -> Vec<(TrajectoryUnits, f64)> {
    let guessed =
        TrajectoryUnits::ALL.iter().filter(|(units, _)| *units != TrajectoryUnits::CyclesPerCentimetre);
    let covers = guessed.map(|&(units, _)| (units, cover(units)));
    covers.filter(|(_, cover)| (LEAST_COVER..=OVERSHOOT).contains(cover)).collect()
}

/// A trajectory in a stated unit that reaches a smaller part of n/2 than this is doubted where another unit
/// fits, and one that reaches less than the second in any case.
const SHORT: [f64; 2] = [0.25, 0.1];

/// Says where a trajectory in a stated unit reaches little of k-space.
fn say_short(
    points: ArrayView2<'_, f64>,
    matrix: &[usize],
    fov_mm: &[f64],
    stated: TrajectoryUnits,
    notes: &mut Vec<String>,
) {
    let extent = extent_of(points);
    let cover = |units: TrajectoryUnits| cover(&extent, matrix, fov_mm, units);
    let own = cover(stated);
    if own >= SHORT[0] || own == 0.0 {
        return;
    }
    let best = fitting(cover).into_iter().max_by(|a, b| a.1.total_cmp(&b.1));
    let other = best.filter(|(_, cover)| *cover >= LEAST_TOLD);
    if other.is_none() && own >= SHORT[1] {
        return;
    }
    let percent = 100.0 * own;
    let rest = match other {
        Some((units, cover)) => format!("{:.0} % of it in {units} (`--traj-units {units}`)", 100.0 * cover),
        None => "little of it in other units too".to_owned(),
    };
    note(
        notes,
        format!(
            "the trajectory reaches {percent:.2} % of the matrix's k-space in {stated}, the unit that is stated, and {rest}"
        ),
    );
}

fn is_per_metre(units: TrajectoryUnits) -> bool {
    use TrajectoryUnits::{CyclesPerCentimetre, CyclesPerMetre, RadiansPerMetre};
    matches!(units, CyclesPerMetre | RadiansPerMetre | CyclesPerCentimetre)
}

fn names() -> String {
    TrajectoryUnits::ALL.map(|(_, name)| name).join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::Array2;

    #[test]
    fn every_unit_is_recognised_by_its_range() {
        for (n, fov) in [(256usize, 320.0), (220, 220.0), (64, 192.0), (24, 240.0)] {
            let full = Array2::from_shape_fn((101, 2), |(i, d)| {
                (i as f64 / 100.0 - 0.5) * n as f64 * if d == 0 { 1.0 } else { 0.9 }
            });
            // Cycles per centimetre are not guessed.
            let guessed = |units| units != TrajectoryUnits::CyclesPerCentimetre;
            for (units, name) in TrajectoryUnits::ALL.into_iter().filter(|(units, _)| guessed(*units)) {
                let stated = full.mapv(|k| k / units.to_cycles_per_fov(n, fov));
                let found = detect_units(stated.view(), &[n, n], &[fov, fov]).unwrap();
                assert_eq!(found, units, "{name} at {n} voxels");
            }
        }
    }

    #[test]
    fn an_impossible_range_is_refused() {
        let far = Array2::from_elem((4, 2), 1e9);
        assert!(detect_units(far.view(), &[64, 64], &[200.0, 200.0]).is_err());
        let nothing = Array2::zeros((4, 2));
        assert!(detect_units(nothing.view(), &[64, 64], &[200.0, 200.0]).is_err());
    }

    #[test]
    fn places_that_count_from_one_end_are_refused() {
        let n = 24.0;
        let stack = |start: f64| {
            Array2::from_shape_fn((48, 3), |(i, axis)| match axis {
                2 => (i % 24) as f64 + start,
                _ => (i as f64 - 24.0) / 2.0,
            })
        };
        let settled = |points: &Array2<f64>, units| {
            settle_units(points.view(), &[24; 3], &[200.0; 3], units, &mut Vec::new())
        };
        for start in [0.0, 1.0, -n + 1.0] {
            let error = settled(&stack(start), Some(TrajectoryUnits::CyclesPerFov)).unwrap_err().to_string();
            assert!(error.contains("centre of the trajectory") && error.contains("along z"), "{error}");
        }
        // Partial Fourier has both sides; half of k-space reaches to its edge.
        for points in [stack(-12.0), stack(-4.0), stack(0.0).mapv(|k| k.clamp(-12.0, 12.0))] {
            assert!(settled(&points, Some(TrajectoryUnits::CyclesPerFov)).is_ok());
        }
    }

    #[test]
    fn small_matrices_whose_ranges_overlap_are_refused() {
        let radians = Array2::from_elem((4, 2), std::f64::consts::PI);
        for n in [8, 10, 16, 20] {
            let error = detect_units(radians.view(), &[n, n], &[f64::NAN; 2]).unwrap_err().to_string();
            assert!(error.contains("cycles/fov and radians/voxel"), "{n}: {error}");
            let full = Array2::from_elem((4, 2), n as f64 / 2.0);
            let found = detect_units(full.view(), &[n, n], &[f64::NAN; 2]).unwrap();
            assert_eq!(found, TrajectoryUnits::CyclesPerFov, "{n}");
        }
        assert!(may_count_voxels(radians.view()));
        assert!(!may_count_voxels(Array2::from_elem((4, 2), 8.0).view()));
    }

    #[test]
    fn units_per_metre_need_a_field_of_view() {
        let cycles =
            Array2::from_shape_fn((4, 2), |(sample, _)| if sample % 2 == 0 { 500.0 } else { -500.0 });
        let settle = |fov: f64, stated| {
            let mut notes = Vec::new();
            settle_units(cycles.view(), &[200, 200], &[fov; 2], stated, &mut notes)
                .map(|units| (units, notes))
        };
        let (units, notes) = settle(200.0, None).unwrap();
        assert_eq!((units, notes.len()), (TrajectoryUnits::CyclesPerMetre, 1));
        for unknown in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(settle(unknown, None).is_err());
            let error = settle(unknown, Some(TrajectoryUnits::CyclesPerMetre)).unwrap_err().to_string();
            assert!(error.contains("field of view"), "{error}");
            assert!(settle(unknown, Some(TrajectoryUnits::CyclesPerFov)).unwrap().1.is_empty());
        }
    }
}
