//! Noise at the edge of the field of view along readouts, and beyond it.
//!
//! Along a readout with a step of δ cycles per field of view, an object within the field of view has
//! frequencies of at most δ/2 per sample. With δ < 1 the highest frequencies hold noise alone; with δ = 1
//! they are the edge of the field of view, where there is mostly air.

use std::f64::consts::TAU;
use std::ops::Range;

use ndarray::{ArrayView1, Axis};
use rayspin_core::{C32, C64, Trajectory};

use crate::mri::Samples;

/// Shorter readouts do not tell frequencies apart.
const SHORTEST: usize = 32;
/// Readouts that are looked at, at most, evenly spread.
const LOOKED_AT: usize = 256;
/// Frequencies that are looked at, of either sign.
const FREQUENCIES: usize = 6;
/// A step that leaves room beyond the field of view, and the frequencies per sample that hold no object then
/// and otherwise. Filters of receivers weaken those nearest ½.
const OVERSAMPLED: f64 = 0.8;
const BEYOND: [f64; 2] = [0.42, 0.47];
const EDGE: [f64; 2] = [0.46, 0.49];
/// A longer step folds the object over.
const LONGEST_STEP: f64 = 1.02;

/// Where samples follow each other along a readout.
pub(super) enum Readouts {
    /// Lines of a grid along this axis of `[z, y, x]`, with this step.
    Lines(usize, f64),
    /// Ranges of samples along a trajectory, with the longest step of each.
    Ranges(Vec<(Range<usize>, f64)>),
    /// Nowhere.
    None,
}

impl Readouts {
    /// The pieces of a trajectory.
    pub(super) fn of(trajectory: &Trajectory, pieces: &[Range<usize>]) -> Self {
        let long: Vec<&Range<usize>> = pieces.iter().filter(|piece| piece.len() >= SHORTEST).collect();
        let every = long.len().div_ceil(LOOKED_AT).max(1);
        let step = |sample: usize| {
            let pair = trajectory.point(sample).iter().zip(trajectory.point(sample - 1));
            pair.map(|(to, from)| (to - from).powi(2)).sum::<f64>().sqrt()
        };
        let longest = |piece: &Range<usize>| piece.clone().skip(1).map(step).fold(0.0, f64::max);
        Self::Ranges(long.into_iter().step_by(every).map(|piece| (piece.clone(), longest(piece))).collect())
    }

    /// Energies of a coil at frequencies that hold no object, each with the mean 2σ² for noise alone; empty
    /// where no readout tells.
    pub(super) fn energies(&self, samples: &Samples, coil: usize) -> Vec<f32> {
        let (mut energies, mut filters) = (Vec::new(), None);
        match (self, samples) {
            (Self::Lines(axis, step), Samples::Cartesian { kspace, sampled }) => {
                let values = kspace.index_axis(Axis(0), coil);
                let lines = values.lanes(Axis(*axis)).into_iter().zip(sampled.lanes(Axis(*axis)));
                let measured = lines.filter_map(|(line, known)| {
                    let (first, last) = (known.iter().position(|&s| s)?, known.iter().rposition(|&s| s)?);
                    Some(line.slice_move(ndarray::s![first..=last]))
                });
                let measured: Vec<_> = measured.collect();
                let every = measured.len().div_ceil(LOOKED_AT).max(1);
                measured
                    .iter()
                    .step_by(every)
                    .for_each(|line| add(*line, *step, &mut filters, &mut energies));
            }
            (Self::Ranges(ranges), Samples::NonCartesian { data, .. }) => {
                let row = data.row(coil);
                for (range, step) in ranges {
                    add(row.slice(ndarray::s![range.clone()]), *step, &mut filters, &mut energies);
                }
            }
            _ => {}
        }
        energies
    }
}

/// Readouts of one length through a Blackman–Harris window w, at some frequencies.
struct Filters {
    count: usize,
    band: [f64; 2],
    /// w_t e^{−i2πft} of each frequency.
    rows: Vec<Vec<C64>>,
    /// Σ w².
    power: f64,
}

impl Filters {
    fn new(count: usize, band: [f64; 2]) -> Self {
        let weight = |t: usize| {
            let turn = TAU * (t as f64 + 0.5) / count as f64;
            0.35875 - 0.48829 * turn.cos() + 0.14128 * (2.0 * turn).cos() - 0.01168 * (3.0 * turn).cos()
        };
        let weights: Vec<f64> = (0..count).map(weight).collect();
        let power = weights.iter().map(|w| w * w).sum();
        let [low, high] = band;
        let frequencies = (0..FREQUENCIES).flat_map(|index| {
            let frequency = low + (high - low) * (index as f64 + 0.5) / FREQUENCIES as f64;
            [frequency, -frequency]
        });
        let row = |frequency: f64| {
            let phase = |t: usize| C64::from_polar(weights[t], -TAU * (frequency * t as f64).fract());
            (0..count).map(phase).collect()
        };
        Self { count, band, rows: frequencies.map(row).collect(), power }
    }
}

/// Adds the energies of a readout: |Σ_t w_t d_t e^{−i2πft}|² / Σ w². `filters` are kept from the readout
/// before, and serve again if its length and band are the same.
fn add(readout: ArrayView1<'_, C32>, step: f64, filters: &mut Option<Filters>, energies: &mut Vec<f32>) {
    let count = readout.len();
    if count < SHORTEST || step > LONGEST_STEP {
        return;
    }
    let band = if step < OVERSAMPLED { BEYOND } else { EDGE };
    let same = |filters: &Filters| filters.count == count && filters.band == band;
    let Filters { rows, power, .. } = match filters.take_if(|kept| same(kept)) {
        Some(same) => filters.insert(same),
        None => filters.insert(Filters::new(count, band)),
    };
    for row in rows {
        let terms = readout.iter().zip(row).map(|(d, w)| C64::new(d.re.into(), d.im.into()) * *w);
        energies.push((terms.sum::<C64>().norm_sqr() / *power) as f32);
    }
}
