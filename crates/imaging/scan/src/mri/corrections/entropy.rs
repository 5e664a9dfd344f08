//! The phase between readouts of the two directions by the least entropy of the image: a ghost spreads the
//! object's signal over more pixels.
//!
//! ```text
//! p(x, y) = Σ_coils |F + e^{−i(a + b x)} R|² = P(x, y) + 2 Re e^{−i(a + b x)} C(x, y),   C = Σ_coils F̄ R
//! (a, b) = argmin H,   H = Σ_x h_x(a + b x),   h_x(φ) = −Σ_y m ln m,   m = √(p / Σ p)
//! ```
//!
//! F and R are the images of the forward and of the reversed readouts alone, and P = Σ_coils |F|² + |R|². Σ p
//! is the same for all phases, as F and R hold different lines. So the entropy H is a sum of functions of one
//! angle for each column x, which are tabulated once. The search runs over all a and over shifts up to an
//! eighth of the readout. It ends on the trigonometric interpolation of the tables.
//!
//! With a + π in place of a the image of one shot is shifted by half the field of view, and has the same
//! entropy. The a is taken that has more energy in the middle half of the field of view along the lines; if
//! this hardly differs, the smaller |a|.
//!
//! S. Clare, *Iterative Nyquist ghost correction for single and multi-shot EPI using an entropy measure*,
//! Proc ISMRM 11:1041, 2003; D. Atkinson et al., *Automatic correction of motion artifacts in magnetic
//! resonance images using an entropy focus criterion*, IEEE Trans Med Imaging 16:903, 1997 (the entropy
//! of m).

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::f64::consts::{PI, TAU};

use rayon::prelude::*;
use rayspin_core::{C32, C64};

use super::turn::{place, transformed};
use super::{Readout, Readouts};

/// Angles of a table.
const ANGLES: usize = 64;
/// Harmonics of its interpolation.
const HARMONICS: usize = ANGLES / 2 - 1;
/// The largest shift that is searched, as a part of a readout, and the step of the search in samples.
const FARTHEST: f64 = 0.125;
const STEP: f64 = 0.25;
/// Accuracy at which the search ends, in radian and samples.
const ACCURATE: f64 = 1e-4;
/// Readouts of each direction at least: fewer make no image.
const LEAST: usize = 8;
/// Partitions around the centre that are looked at, at most: they hold most of the energy.
const PARTITIONS: usize = 8;
/// By how much the entropy must differ among phases, as a part of it. In noise alone it differs by less.
const TELLS: f64 = 0.01;
/// By how much of itself a correction must lower the entropy. Ghosts of less are hardly seen.
const GAIN: f64 = 5e-4;
/// By how much the entropies with a and a + π may differ and count as the same, as a part of what phases make
/// of the entropy: half a field of view of an odd number of lines is no whole number of pixels.
const SAME: f64 = 0.1;
/// By how much of the whole the energies in the middle must differ to decide between a and a + π.
const DECIDES: f64 = 0.05;

/// What the entropy tells of the phase of reversed readouts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Told {
    /// A constant in radian in the middle of the field of view, and a shift in samples.
    Phase { constant: f64, shift: f64, by: By },
    /// The readouts are aligned already.
    Aligned,
    /// All phases are alike: noise, or lines of one direction only.
    Nothing,
}

/// What decided between a and a + π.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    /// The entropy itself: they are no shifts of each other.
    Entropy,
    /// The energy in the middle half of the field of view.
    Middle,
    /// The smaller |a|.
    Smaller,
}

/// A column of the image.
struct Column {
    /// Its place in pixels from the middle.
    x: f64,
    /// Σ_y r and Σ_y r ln r of r = √p, for each angle.
    tables: [[f64; ANGLES]; 2],
    /// Σ P over all lines, Σ P and Σ C over the middle half.
    energy: f64,
    middle: (f64, C64),
}

/// The phase of an image's reversed readouts; with `linear` also their shift.
pub(super) fn phase_of(readouts: &Readouts<'_>, linear: bool) -> Told {
    let Some(lines) = Lines::of(readouts) else { return Told::Nothing };
    let columns = lines.columns();
    let energy: f64 = columns.iter().map(|column| column.energy).sum();
    if !(energy > 0.0 && energy.is_finite()) {
        return Told::Nothing;
    }
    Entropy::of(&columns, energy).search(linear)
}

/// The readouts in hybrid space.
struct Lines {
    /// Samples of a readout, and lines of the image.
    n: usize,
    ny: usize,
    coils: usize,
    /// Each readout with its partition, line and direction, and how often that was measured.
    each: Vec<(u16, usize, bool, f32)>,
    /// Transforms along the readouts, `[readout][coil · n + x]`.
    hybrid: Vec<Vec<C32>>,
}

impl Lines {
    /// None where they make no image.
    fn of(readouts: &Readouts<'_>) -> Option<Self> {
        let on_grid = |readout: &&Readout<'_>| readout.trajectory.is_none();
        let first = readouts.each.iter().find(on_grid)?;
        let (coils, n) = first.data.dim();
        let centre = readouts.centres.partition.unwrap_or(0) as u16;
        let near = |partition: u16| usize::from(partition.abs_diff(centre)) <= PARTITIONS / 2;
        let own: Vec<&Readout<'_>> = readouts
            .each
            .iter()
            .filter(on_grid)
            .filter(|readout| readout.data.dim() == (coils, n) && near(readout.counters.step_2))
            .collect();
        let steps = || own.iter().map(|readout| usize::from(readout.counters.step_1));
        let (low, high) = (steps().min()?, steps().max()?);
        // Lines far beyond the matrix are refused once they are placed.
        let encoded = readouts.encoding.encoded.matrix[1];
        if high - low >= encoded.saturating_mul(2) {
            return None;
        }
        let ny = encoded.max(high + 1 - low);
        let mut counts: BTreeMap<(u16, usize, bool), f32> = BTreeMap::new();
        let key = |readout: &Readout<'_>| {
            let line = (usize::from(readout.counters.step_1) - low) % ny;
            (readout.counters.step_2, line, readout.reversed)
        };
        own.iter().for_each(|readout| *counts.entry(key(readout)).or_default() += 1.0);
        let lines = |reversed: bool| {
            let own = counts.keys().filter(|key| key.2 == reversed).map(|key| key.1);
            own.collect::<BTreeSet<usize>>().len()
        };
        if n < 2 || lines(false) < LEAST || lines(true) < LEAST {
            return None;
        }
        let transform = rayspin_line_fft::plan_f64(&[n]);
        let narrow = |value: C64| C32::new(value.re as f32, value.im as f32);
        let of_readout = |readout: &&Readout<'_>| {
            (0..coils).flat_map(|coil| transformed(&transform, readout, coil)).map(narrow).collect()
        };
        let hybrid = own.par_iter().map(of_readout).collect();
        let each = own.iter().map(|readout| {
            let (partition, line, reversed) = key(readout);
            (partition, line, reversed, counts[&(partition, line, reversed)])
        });
        Some(Self { n, ny, coils, each: each.collect(), hybrid })
    }

    fn columns(&self) -> Vec<Column> {
        let transform = rayspin_line_fft::plan_f32(&[self.ny]);
        (0..self.n).into_par_iter().map(|index| self.column(index, &transform)).collect()
    }

    /// The column of this number in the transform along the readout.
    fn column(&self, index: usize, transform: &rayspin_line_fft::Lines<f32>) -> Column {
        let Self { n, ny, coils, .. } = *self;
        let turns: [C64; ANGLES] =
            std::array::from_fn(|angle| C64::from_polar(2.0, -TAU * angle as f64 / ANGLES as f64));
        let mut column =
            Column { x: place(index, n), tables: [[0.0; ANGLES]; 2], energy: 0.0, middle: (0.0, C64::ZERO) };
        let partitions: BTreeSet<u16> = self.each.iter().map(|readout| readout.0).collect();
        for partition in partitions {
            let mut products = vec![(0.0, C64::ZERO); ny];
            for coil in 0..coils {
                let mut images = [vec![C32::ZERO; ny], vec![C32::ZERO; ny]];
                let own = self.each.iter().zip(&self.hybrid).filter(|(readout, _)| readout.0 == partition);
                for (&(_, line, reversed, count), values) in own {
                    images[usize::from(reversed)][line] += values[coil * n + index] / count;
                }
                for image in &mut images {
                    transform.inverse.iter().for_each(|inverse| inverse.process(image));
                }
                let [forward, reversed] = images.map(|image| image.into_iter().map(wide));
                for ((p, c), (forward, reversed)) in products.iter_mut().zip(forward.zip(reversed)) {
                    *p += forward.norm_sqr() + reversed.norm_sqr();
                    *c += forward.conj() * reversed;
                }
            }
            for (y, (p, c)) in products.into_iter().enumerate() {
                column.energy += p;
                // A pixel on the edge of the middle half belongs to both halves.
                let inside = match place(y, ny).abs().total_cmp(&(ny as f64 / 4.0)) {
                    Ordering::Less => 1.0,
                    Ordering::Equal => 0.5,
                    Ordering::Greater => 0.0,
                };
                column.middle.0 += inside * p;
                column.middle.1 += inside * c;
                let [sums, products] = &mut column.tables;
                for ((sum, product), turn) in sums.iter_mut().zip(products).zip(&turns) {
                    let power = p + turn.re * c.re - turn.im * c.im;
                    if power > 0.0 {
                        let root = power.sqrt();
                        *sum += root;
                        *product += 0.5 * root * power.ln();
                    }
                }
            }
        }
        column
    }
}

fn wide(value: C32) -> C64 {
    C64::new(value.re.into(), value.im.into())
}

/// The entropy of an image as a function of the phase.
struct Entropy<'a> {
    columns: &'a [Column],
    energy: f64,
    /// The tables h_x and their harmonics from 0 on.
    tables: Vec<[f64; ANGLES]>,
    harmonics: Vec<[C64; HARMONICS + 1]>,
}

impl<'a> Entropy<'a> {
    fn of(columns: &'a [Column], energy: f64) -> Self {
        let root = energy.sqrt();
        let table = |column: &Column| -> [f64; ANGLES] {
            let [sums, products] = &column.tables;
            std::array::from_fn(|angle| (root.ln() * sums[angle] - products[angle]) / root)
        };
        let tables: Vec<[f64; ANGLES]> = columns.iter().map(table).collect();
        let turn = |step: usize| C64::from_polar(1.0 / ANGLES as f64, -TAU * step as f64 / ANGLES as f64);
        let turns: [C64; ANGLES] = std::array::from_fn(turn);
        let harmonics = |table: &[f64; ANGLES]| -> [C64; HARMONICS + 1] {
            std::array::from_fn(|order| {
                table.iter().enumerate().map(|(angle, h)| turns[order * angle % ANGLES] * h).sum()
            })
        };
        let harmonics = tables.iter().map(harmonics).collect();
        Self { columns, energy, tables, harmonics }
    }

    /// The phase at a column for a constant and a shift in samples.
    fn phase(&self, column: &Column, constant: f64, shift: f64) -> f64 {
        constant + TAU * shift * column.x / self.columns.len() as f64
    }

    /// H by the nearest entries of the tables.
    fn near(&self, constant: usize, shift: f64) -> f64 {
        let own = self.columns.iter().zip(&self.tables);
        own.map(|(column, table)| {
            let angle = self.phase(column, 0.0, shift) / TAU * ANGLES as f64;
            let angle = angle.round() as i64 + constant as i64;
            table[angle.rem_euclid(ANGLES as i64) as usize]
        })
        .sum()
    }

    /// H by the interpolation of the tables.
    fn exact(&self, constant: f64, shift: f64) -> f64 {
        let own = self.columns.iter().zip(&self.harmonics);
        own.map(|(column, harmonics)| {
            let turn = C64::from_polar(1.0, self.phase(column, constant, shift));
            // Horner's scheme from the highest harmonic down.
            let sum = harmonics[1..].iter().rev().fold(C64::ZERO, |sum, h| (sum + h) * turn);
            harmonics[0].re + 2.0 * sum.re
        })
        .sum()
    }

    /// The part of the energy in the middle half of the field of view.
    fn middle(&self, constant: f64, shift: f64) -> f64 {
        let own = self.columns.iter().map(|column| {
            let turn = C64::from_polar(2.0, -self.phase(column, constant, shift));
            column.middle.0 + (turn * column.middle.1).re
        });
        own.sum::<f64>() / self.energy
    }

    fn search(&self, linear: bool) -> Told {
        let most = if linear { (FARTHEST * self.columns.len() as f64 / STEP).round() as i32 } else { 0 };
        let shifts: Vec<f64> = (-most..=most).map(|step| STEP * f64::from(step)).collect();
        let coarse = |shift: &f64| {
            let all = (0..ANGLES).map(|constant| (self.near(constant, *shift), constant, *shift));
            let all: Vec<(f64, usize, f64)> = all.collect();
            let least = all.iter().copied().min_by(|a, b| a.0.total_cmp(&b.0));
            (least, all.iter().map(|one| one.0).fold(f64::NEG_INFINITY, f64::max))
        };
        let all: Vec<_> = shifts.par_iter().map(coarse).collect();
        let highest = all.iter().map(|one| one.1).fold(f64::NEG_INFINITY, f64::max);
        let least = all.iter().filter_map(|one| one.0).min_by(|a, b| a.0.total_cmp(&b.0));
        let Some((lowest, angle, shift)) = least.filter(|least| least.0.is_finite()) else {
            return Told::Nothing;
        };
        if highest - lowest < TELLS * highest {
            return Told::Nothing;
        }
        let (constant, shift) = self.refined(TAU * angle as f64 / ANGLES as f64, shift, linear);
        let near_zero = |constant: f64| (constant + PI).rem_euclid(TAU) - PI;
        let [one, other] = [constant, constant + PI].map(near_zero);
        let entropies = [one, other].map(|constant| self.exact(constant, shift));
        let middles = [one, other].map(|constant| self.middle(constant, shift));
        let (constant, by) = if entropies[1] - entropies[0] > SAME * (highest - lowest) {
            (one, By::Entropy)
        } else if (middles[0] - middles[1]).abs() > DECIDES {
            (if middles[0] > middles[1] { one } else { other }, By::Middle)
        } else {
            (if one.abs() <= other.abs() { one } else { other }, By::Smaller)
        };
        let gain = self.exact(0.0, 0.0) - self.exact(constant, shift);
        if constant.abs() < PI / 2.0 && gain < GAIN * lowest {
            return Told::Aligned;
        }
        Told::Phase { constant, shift, by }
    }

    /// The minimum beside a start: steps along both axes, halved where none leads down.
    fn refined(&self, constant: f64, shift: f64, linear: bool) -> (f64, f64) {
        let (mut constant, mut shift) = (constant, shift);
        let mut lowest = self.exact(constant, shift);
        let mut step = STEP;
        while step > ACCURATE {
            let along_both = if linear { step } else { 0.0 };
            let beside = [(step, 0.0), (-step, 0.0), (0.0, along_both), (0.0, -along_both)];
            let values = beside.map(|(da, ds)| (self.exact(constant + da, shift + ds), da, ds));
            let best = values
                .into_iter()
                .fold((lowest, 0.0, 0.0), |best, own| if own.0 < best.0 { own } else { best });
            if best.0 < lowest {
                (lowest, constant, shift) = (best.0, constant + best.1, shift + best.2);
            } else {
                step /= 2.0;
            }
        }
        (constant, shift)
    }
}

#[cfg(test)]
#[path = "entropy_tests.rs"]
mod tests;
