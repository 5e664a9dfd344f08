//! Samples that were measured more than once at one place, and whether they agree.

use ndarray::{ArrayView2, Axis};
use rayon::prelude::*;
use rayspin_core::C32;

/// The part of the energy of repeated samples that their differences have at most, beside noise. Two samples
/// differ by this part where one has 1.8 times the size of the other, or phases are 32° apart.
const DIFFERENT: f64 = 0.15;
/// The mean of the same part over samples, each for itself, at most: the centre of k-space outweighs all
/// others in a sum of energies. Noise is added to the energy this many times, so that noise alone has a fifth
/// of it.
const DIFFERENT_EACH: f64 = 0.4;
const ADDED: f64 = 4.0;
/// Chunks of each readout and values in each, at least; the energy that this part of all chunks stays below
/// bounds the energy of noise, and differences may be twice this bound. Of 3200 lines of noise alone, of 64
/// values and more, none is found to contradict another.
const CHUNKS: usize = 8;
const VALUES: usize = 16;
const WEAK: f64 = 0.1;
const NOISE: f64 = 2.0;
/// Values that tell differences from noise, at least, and those that tell them each for itself.
const LEAST: usize = 32;
const LEAST_EACH: usize = 64;

/// One readout of an image.
pub(super) struct Readout<'a, K> {
    /// What readouts of the same places have in common.
    pub(super) place: K,
    /// `[coil, sample]`
    pub(super) samples: ArrayView2<'a, C32>,
    /// Whether the first sample has the last place.
    pub(super) reversed: bool,
}

/// The first place, in the order of places, where readouts were measured more than once and contradict each
/// other.
pub(super) fn contradicted<K: Ord + Copy + Send + Sync>(readouts: &[Readout<'_, K>]) -> Option<K> {
    let mut sorted: Vec<&Readout<'_, K>> = readouts.iter().collect();
    sorted.par_sort_by_key(|readout| readout.place);
    let groups: Vec<_> =
        sorted.chunk_by(|one, other| one.place == other.place).filter(|group| group.len() > 1).collect();
    if groups.is_empty() {
        return None;
    }
    let noise = weak(readouts);
    groups.par_iter().find_first(|group| disagree(group, noise)).map(|group| group[0].place)
}

/// Says so once for all images, with the first place.
pub(super) fn say(place: &str, notes: &mut Vec<String>) {
    let text = "samples that were measured more than once contradict each other, and their mean is taken";
    if !notes.iter().any(|note| note.starts_with(text)) {
        notes.push(format!("{text}: {place} is the first; counters that tell averages, contrasts or repetitions may be missing"));
    }
}

/// The mean energy of a sample in weak chunks of readouts.
fn weak<K: Sync>(readouts: &[Readout<'_, K>]) -> f64 {
    let of_readout = |readout: &Readout<'_, K>| -> Vec<f64> {
        let (coils, samples) = readout.samples.dim();
        let chunk = samples.div_ceil(CHUNKS).max(VALUES.div_ceil(coils.max(1)));
        let chunks = readout.samples.axis_chunks_iter(Axis(1), chunk);
        chunks.map(|part| energy(part.iter()) / part.len().max(1) as f64).collect()
    };
    let mut energies: Vec<f64> = readouts.par_iter().flat_map_iter(of_readout).collect();
    let place = (energies.len() as f64 * WEAK) as usize;
    if place >= energies.len() {
        return 0.0;
    }
    *energies.select_nth_unstable_by(place, f64::total_cmp).1
}

fn energy<'a>(values: impl Iterator<Item = &'a C32>) -> f64 {
    values.map(|v| f64::from(v.re).powi(2) + f64::from(v.im).powi(2)).sum()
}

/// Whether readouts of the same places differ by more than noise.
fn disagree<K>(group: &[&Readout<'_, K>], noise: f64) -> bool {
    let Some(first) = group.first() else { return false };
    let (coils, samples) = first.samples.dim();
    let like: Vec<_> = group.iter().filter(|readout| readout.samples.dim() == (coils, samples)).collect();
    let count = like.len() as f64;
    if like.len() < 2 || coils * samples < LEAST {
        return false;
    }
    let (mut total, mut apart, mut each) = (0.0, 0.0, 0.0);
    for coil in 0..coils {
        for sample in 0..samples {
            let values = like.iter().map(|readout| {
                let stored = if readout.reversed { samples - 1 - sample } else { sample };
                let value = readout.samples[[coil, stored]];
                [f64::from(value.re), f64::from(value.im)]
            });
            let [re, im] = values.clone().fold([0.0; 2], |sum, value| [sum[0] + value[0], sum[1] + value[1]]);
            let (mut energy, mut distance) = (0.0, 0.0);
            for [x, y] in values {
                energy += (x * x + y * y) / count;
                distance += ((x - re / count).powi(2) + (y - im / count).powi(2)) / (count - 1.0);
            }
            total += energy;
            apart += distance;
            each += if distance > 0.0 { distance / (energy + ADDED * noise) } else { 0.0 };
        }
    }
    let number = (coils * samples) as f64;
    apart > DIFFERENT * total + NOISE * noise * number
        || (coils * samples >= LEAST_EACH && each > DIFFERENT_EACH * number)
}

#[cfg(test)]
mod tests {
    use ndarray::Array2;

    use super::*;

    /// Readouts at places 4, 7 and 7, the last one `factor` times the one before, with noise of this standard
    /// deviation.
    fn first_contradiction(factor: C32, noise: f32) -> Option<u16> {
        let peak = |s: usize| 20.0 / (1.0 + (s as f32 - 32.0).powi(2));
        let mut state = 1u32;
        let mut random = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            noise * 3.4641 * (state as f32 / 4_294_967_296.0 - 0.5)
        };
        let mut readout = |factor: C32| {
            Array2::from_shape_fn((2, 64), |(c, s)| {
                factor * peak(s) * (c as f32 + 1.0) + C32::new(random(), random())
            })
        };
        let all = [readout(C32::ONE), readout(C32::ONE), readout(factor)];
        let readouts: Vec<_> = all
            .iter()
            .zip([4, 7, 7])
            .map(|(samples, place)| Readout { place, samples: samples.view(), reversed: false })
            .collect();
        contradicted(&readouts)
    }

    #[test]
    fn repeated_readouts_may_differ_by_noise_alone() {
        for (factor, noise, expected) in [
            (C32::ONE, 0.0, None),
            (C32::ONE, 1.0, None),
            (C32::ONE, 100.0, None),
            (C32::new(1.3, 0.0), 0.0, None),
            (C32::new(3.0, 0.0), 0.0, Some(7)),
            (C32::new(-1.0, 0.0), 0.5, Some(7)),
            (C32::new(0.0, 1.0), 0.5, Some(7)),
        ] {
            assert_eq!(first_contradiction(factor, noise), expected, "{factor} {noise}");
        }
    }

    #[test]
    fn a_strong_centre_that_agrees_hides_no_contradiction() {
        let spoke = |number: usize| {
            let turn = |s: usize| 0.9 * number as f32 * (s as f32 - 32.0);
            let size = |s: usize| if s == 32 { 500.0 } else { 10.0 / (1.0 + (s as f32 / 4.0 - 8.0).powi(2)) };
            Array2::from_shape_fn((1, 64), |(_, s)| C32::from_polar(size(s), turn(s)))
        };
        let all: Vec<Array2<C32>> = (0..9).map(spoke).collect();
        let of = |readouts: &[Array2<C32>]| {
            let readouts =
                readouts.iter().map(|samples| Readout { place: 3, samples: samples.view(), reversed: false });
            contradicted(&readouts.collect::<Vec<_>>())
        };
        assert_eq!((of(&all), of(&[all[2].clone(), all[2].clone()])), (Some(3), None));
    }

    #[test]
    fn reversed_readouts_are_compared_place_by_place() {
        let forth = Array2::from_shape_fn((1, 40), |(_, s)| C32::new(s as f32, 0.0));
        let back = Array2::from_shape_fn((1, 40), |(_, s)| C32::new(39.0 - s as f32, 0.0));
        let of = |reversed| {
            let first = Readout { place: 0, samples: forth.view(), reversed: false };
            contradicted(&[first, Readout { place: 0, samples: back.view(), reversed }])
        };
        assert_eq!((of(true), of(false)), (None, Some(0)));
    }
}
