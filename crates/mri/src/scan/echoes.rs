//! Readouts in two directions, as of echo-planar imaging: what is not corrected of them.

use super::centres::energy_of_samples;
use super::frames::note;
use super::{Acquisition, Flags};

/// Readouts of each direction that tell where their echoes lie, at least.
const LEAST: usize = 4;
/// Distance of their echoes in samples from which on the image has visible ghosts.
const APART: f64 = 0.5;

/// Says that the shift and the phase between readouts of the two directions are not corrected, where the scan measured them in
/// `corrections` readouts or the echoes lie apart.
pub(super) fn say_uncorrected(
    corrections: usize,
    readouts: &[(usize, &Acquisition)],
    notes: &mut Vec<String>,
) {
    let directions: [Vec<(usize, &Acquisition)>; 2] = [false, true].map(|reversed| {
        let own = |r: &Acquisition| r.trajectory.is_none() && r.flags.contains(Flags::REVERSE) == reversed;
        readouts.iter().copied().filter(|(_, readout)| own(readout)).collect()
    });
    if directions.iter().any(Vec::is_empty) {
        return;
    }
    let ghosts = "readouts of the two directions are not aligned, and the image may have ghosts at half the field of view";
    if corrections > 0 {
        note(notes, format!("{corrections} phase-correction readouts are not used: {ghosts}"));
    } else if directions.iter().all(|own| own.len() >= LEAST)
        && let Some(distance) = distance(&directions)
        && distance.abs() >= APART
    {
        // One number for all images.
        note(notes, format!("echoes of readouts in the two directions lie apart: {ghosts}"));
    }
}

/// By how many samples the echoes of reversed readouts, turned round, lie behind the others.
fn distance([forth, back]: &[Vec<(usize, &Acquisition)>; 2]) -> Option<f64> {
    let samples = forth.first()?.1.data.ncols();
    let profile = |own: &[(usize, &Acquisition)]| {
        let alike = |readout: &Acquisition| readout.data.ncols() == samples;
        let energy = energy_of_samples(own, samples, alike);
        energy.into_iter().map(Option::unwrap_or_default).collect::<Vec<f64>>()
    };
    let (forth, mut back) = (profile(forth), profile(back));
    back.reverse();
    Some(echo(&back)? - echo(&forth)?)
}

/// Where the energy peaks, as a part of samples: noise far from the peak does not move the centre of its square.
fn echo(energy: &[f64]) -> Option<f64> {
    let weights = energy.iter().map(|energy| energy * energy);
    let sum: f64 = weights.clone().sum();
    let moment: f64 = weights.enumerate().map(|(at, weight)| at as f64 * weight).sum();
    (sum > 0.0 && sum.is_finite()).then(|| moment / sum)
}
