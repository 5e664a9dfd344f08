use ndarray::ArrayView2;
use rayspin_core::{Error, Result, TrajectoryUnits};

/// How far beyond n/2 a trajectory may reach and still be taken as sampling the matrix (ramps, rounded limits).
const OVERSHOOT: f64 = 1.3;
/// The least part of n/2 that a trajectory is taken to cover.
const LEAST_COVER: f64 = 0.02;

/// Finds the unit of a trajectory by its range: the unit in which max |k| comes closest to n/2 from below.
///
/// `points` is `[sample, dim]` as the file holds it, `matrix` and `fov_mm` are in the order x, y, z. Cycles per field of
/// view win when they cover at least 30 % of n/2, since small matrices make the ranges overlap (n/2 = π).
///
/// Errors: no unit explains the range.
pub fn detect_units(
    points: ArrayView2<'_, f64>,
    matrix: &[usize],
    fov_mm: &[f64],
) -> Result<TrajectoryUnits> {
    let extent: Vec<f64> =
        points.columns().into_iter().map(|c| c.iter().fold(0.0f64, |m, k| m.max(k.abs()))).collect();
    let cover = |units: TrajectoryUnits| {
        extent
            .iter()
            .zip(matrix.iter().zip(fov_mm))
            .filter(|(_, (n, _))| **n > 1)
            .map(|(k, (&n, &fov))| k * units.to_cycles_per_fov(n, fov) / (n as f64 / 2.0))
            .fold(0.0, f64::max)
    };
    let native = cover(TrajectoryUnits::CyclesPerFov);
    if (0.3..=OVERSHOOT).contains(&native) {
        return Ok(TrajectoryUnits::CyclesPerFov);
    }
    TrajectoryUnits::ALL
        .iter()
        .map(|&(units, _)| (units, cover(units)))
        .filter(|(_, cover)| (LEAST_COVER..=OVERSHOOT).contains(cover))
        .max_by(|a, b| a.1.total_cmp(&b.1))
        .map(|(units, _)| units)
        .ok_or_else(|| {
            let largest = extent.iter().fold(0.0f64, |m, &k| m.max(k));
            Error::value(
                "trajectory units",
                format!("a range that samples matrix {matrix:?} in {}", names()),
                format!("max |k| = {largest:.4}"),
            )
        })
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
            for (units, name) in TrajectoryUnits::ALL {
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
}
