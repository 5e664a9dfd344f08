//! Readouts in two directions, as of echo-planar imaging: where their echoes lie.

use super::centre::energy_of_samples;
use super::{Readout, Readouts};
use crate::mri::raw::note;

/// Readouts of each direction that tell where their echoes lie, at least.
const LEAST: usize = 4;
/// Distance of their echoes in samples from which on the image has visible ghosts.
const APART: f64 = 0.5;

/// What becomes of an image whose readouts of the two directions are not aligned.
pub(super) const GHOSTS: &str =
    "readouts of the two directions are not aligned, and the image may have ghosts at half the field of view";

/// Says that echoes of readouts of the two directions lie apart, in an image whose readouts are not aligned.
pub(super) fn say_apart(readouts: &Readouts<'_>, notes: &mut Vec<String>) {
    let directions: [Vec<&Readout<'_>>; 2] = [false, true].map(|reversed| {
        readouts.each.iter().filter(|r| r.trajectory.is_none() && r.reversed == reversed).collect()
    });
    if directions.iter().all(|own| own.len() >= LEAST)
        && let Some(distance) = distance(&directions)
        && distance.abs() >= APART
    {
        // Without the distance, which differs from image to image: a series has one note.
        note(notes, format!("echoes of readouts in the two directions lie apart: {GHOSTS}"));
    }
}

/// By how many samples the echoes of reversed readouts, turned round, lie behind the others.
fn distance([forth, back]: &[Vec<&Readout<'_>>; 2]) -> Option<f64> {
    let samples = forth.first()?.data.ncols();
    let profile = |own: &[&Readout<'_>]| {
        let alike = own.iter().copied().filter(|readout| readout.data.ncols() == samples);
        let energy = energy_of_samples(alike, samples);
        energy.into_iter().map(Option::unwrap_or_default).collect::<Vec<f64>>()
    };
    let (forth, mut back) = (profile(forth), profile(back));
    back.reverse();
    Some(echo(&back)? - echo(&forth)?)
}

/// Where the energy peaks, as a part of samples: noise far from the peak does not move the centre of its
/// square.
fn echo(energy: &[f64]) -> Option<f64> {
    let weights = energy.iter().map(|energy| energy * energy);
    let sum: f64 = weights.clone().sum();
    let moment: f64 = weights.enumerate().map(|(sample, weight)| sample as f64 * weight).sum();
    (sum > 0.0 && sum.is_finite()).then(|| moment / sum)
}
