//! What the columns of a trajectory are, and which field of view its cycles are counted over.

use ndarray::ArrayView2;
use rayon::prelude::*;
use rayspin_core::{Error, Result, TrajectoryUnits};

use super::Encoding;
use crate::mri::corrections::Readout;
use crate::mri::raw::{is_known, note};

/// The field of view that a trajectory counts its cycles over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TrajectoryFov {
    /// The encoded one, with oversampling of the readout.
    Encoded,
    /// The reconstructed one.
    Recon,
}

/// How trajectories are read. What is given replaces what the numbers tell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TrajectoryOptions {
    /// Whether the last column holds density weights, which are left out.
    pub weights: bool,
    /// The field of view of points in cycles per field of view.
    pub fov: Option<TrajectoryFov>,
}

/// The number of columns that are components of k-space. Files may have density weights behind them.
///
/// Errors: no column; more than three components; a third one of an image without depth that is neither zero
/// nor a weight.
pub(super) fn components(
    readouts: &[Readout<'_>],
    encoding: &Encoding,
    options: &TrajectoryOptions,
    notes: &mut Vec<String>,
) -> Result<usize> {
    let Some((index, columns)) =
        readouts.first().and_then(|readout| Some((readout.index, readout.trajectory.as_ref()?.ncols())))
    else {
        return Err(Error::value("trajectory", "one for every readout", "none"));
    };
    let left = columns - usize::from(options.weights && columns > 0);
    if options.weights && left > 0 && left <= 3 {
        return Ok(left);
    }
    if !(1..=4).contains(&columns) || options.weights {
        let what = format!("acquisition {index}: trajectory");
        let expected = "1 to 3 dimensions, and density weights behind them at most";
        return Err(Error::value(what, expected, columns));
    }
    let said = "is taken as density weights and left out: weights are found anew";
    if columns == 4 {
        note(notes, format!("the trajectory's fourth column {said}"));
        return Ok(3);
    }
    if columns < 3 {
        return Ok(columns);
    }
    let third = readouts.par_iter().filter_map(|readout| {
        let kz = readout.trajectory.as_ref()?.columns().into_iter().nth(2)?;
        let all = |fits: fn(f32) -> bool| kz.iter().all(|kz| fits(*kz));
        Some((all(|kz| kz == 0.0), all(|kz| kz >= 0.0)))
    });
    let (zero, weights) = third.reduce(|| (true, true), |one, other| (one.0 && other.0, one.1 && other.1));
    let steps = || readouts.iter().map(|readout| readout.counters.step_2);
    let counted = steps().min() != steps().max();
    match (encoding.recon.matrix[2] == 1, zero, weights) {
        (true, false, true) => {
            note(
                notes,
                format!("the trajectory's third column is no kz of a two-dimensional scan and {said}"),
            );
            Ok(2)
        }
        (true, false, false) => Err(Error::value(
            "trajectory",
            "kz = 0 throughout for a matrix of one voxel along z",
            "kz that varies",
        )),
        (false, false, true) if counted => {
            let text = "kz is never negative, and partitions are counted: if the trajectory's third column holds density \
                        weights, the image is wrong (`--traj-weights`)";
            note(notes, text);
            Ok(3)
        }
        _ => Ok(3),
    }
}

/// The part of k-space along an axis that points in cycles per reconstructed field of view reach at least.
const FULL: f64 = 0.8;
/// How far beyond k-space they may reach.
const BEYOND: f64 = 1.05;

/// The field of view of `points` `[sample, dim]` in these units: the one that is `given`, or else the encoded
/// one, unless points fill the k-space of the reconstructed one, which is smaller. What is not certain goes
/// to `notes`.
///
/// Errors: a field of view that is given for points in another unit.
pub(super) fn fov_of(
    points: ArrayView2<'_, f64>,
    encoding: &Encoding,
    units: TrajectoryUnits,
    given: Option<TrajectoryFov>,
    notes: &mut Vec<String>,
) -> Result<TrajectoryFov> {
    if units != TrajectoryUnits::CyclesPerFov {
        return match given {
            None => Ok(TrajectoryFov::Encoded),
            Some(_) => Err(Error::value("field of view of the trajectory", "points in cycles/fov", units)),
        };
    }
    if let Some(given) = given {
        return Ok(given);
    }
    // Along axes that were encoded wider than the image.
    let wider = |axis: usize| {
        let (encoded, recon) = (encoding.encoded.fov_mm[axis], encoding.recon.fov_mm[axis]);
        let known = is_known(encoded) && is_known(recon) && encoding.encoded.matrix[axis] > 1;
        Some(recon / encoded).filter(|part| known && *part < 1.0 / BEYOND)
    };
    let reach = (0..points.ncols()).filter_map(|axis| {
        let part = wider(axis)?;
        let largest = points.column(axis).iter().fold(0.0f64, |most, k| most.max(k.abs()));
        Some((axis, largest / (encoding.encoded.matrix[axis] as f64 * part / 2.0)))
    });
    let reach: Vec<(usize, f64)> = reach.collect();
    if reach.is_empty() || reach.iter().any(|(_, reach)| *reach > BEYOND) {
        return Ok(TrajectoryFov::Encoded);
    }
    let full = reach.iter().all(|(_, reach)| *reach >= FULL);
    let (taken, name, other) = match full {
        true => (TrajectoryFov::Recon, "reconstructed", "encoded"),
        false => (TrajectoryFov::Encoded, "encoded", "recon"),
    };
    note(
        notes,
        format!(
            "points of the trajectory are taken as cycles per {name} field of view: if they count over the other one, the \
             image is squeezed (`--traj-fov {other}`)"
        ),
    );
    Ok(taken)
}
