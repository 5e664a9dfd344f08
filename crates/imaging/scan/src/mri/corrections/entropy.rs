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
//! eighth of the readout. It ends on H itself: where a ghost vanishes, h_x has a cusp, which tables blur.
//!
//! The field and the object drift between shots. Each shot takes a constant phase, too: F and R are then the
//! images of the other shots and of this shot, and its constant is the nearest least of H. Shots and
//! directions take turns. The constants count only if they lower H as visibly as ghosts raise it.
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
/// Shots that have a phase each, at most, and how often shots and directions take turns, at most.
const SHOTS: usize = 16;
const ROUNDS: usize = 12;
/// By how much of itself a round must lower the entropy for another one.
const GOES_ON: f64 = 2e-5;
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

/// The phases of an image's readouts.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Found {
    /// Of reversed readouts.
    pub(super) reversed: Told,
    /// Of each readout, by its shot, in radian. Empty where shots have no phases of their own.
    pub(super) shots: Vec<f64>,
}

/// Bytes of the pixels of an image whose readouts have this number of samples.
pub(super) fn bytes(samples: usize, matrix: [usize; 3]) -> u64 {
    let partitions = matrix[2].clamp(1, PARTITIONS + 1);
    let all = [samples, matrix[1], partitions, size_of::<(f64, C64)>()];
    all.into_iter().fold(1, |product, count| product.saturating_mul(count as u64))
}

/// The phases of an image's readouts; with `linear` also the shift of reversed readouts.
pub(super) fn phase_of(readouts: &Readouts<'_>, linear: bool) -> Found {
    let Some(lines) = Lines::of(readouts) else {
        return Found { reversed: Told::Nothing, shots: Vec::new() };
    };
    let still = Phases::default();
    let reversed = lines.split(&still, |line| line.reversed).map_or(Told::Nothing, |all| all.search(linear));
    let start = match reversed {
        Told::Nothing => None,
        Told::Aligned => Some(still),
        Told::Phase { constant, shift, .. } => Some(Phases { constant, shift, ..still }),
    };
    match start.and_then(|start| lines.of_shots(start, linear)) {
        None => Found { reversed, shots: Vec::new() },
        Some(Phases { constant, shift, shots }) => {
            let by = if let Told::Phase { by, .. } = reversed { by } else { By::Entropy };
            let shots = lines.each.iter().map(|line| shots[line.shot]).collect();
            Found { reversed: Told::Phase { constant, shift, by }, shots }
        }
    }
}

/// Phases that are taken off: of reversed readouts, and of shots where they have some.
#[derive(Debug, Clone, Default)]
struct Phases {
    constant: f64,
    shift: f64,
    shots: Vec<f64>,
}

/// A readout in hybrid space.
struct Line {
    partition: u16,
    line: usize,
    reversed: bool,
    /// How often this line was measured in this direction.
    count: f32,
    shot: usize,
}

/// The readouts in hybrid space.
struct Lines {
    /// Samples of a readout, and lines of the image.
    n: usize,
    ny: usize,
    coils: usize,
    /// Shots whose phases can be told; else 0.
    shots: usize,
    each: Vec<Line>,
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
        let of_readout = |readout: &&Readout<'_>| {
            (0..coils).flat_map(|coil| transformed(&transform, readout, coil)).map(narrow).collect()
        };
        let hybrid = own.par_iter().map(of_readout).collect();
        let numbers = shots(&own.iter().map(|readout| readout.counters.step_1).collect::<Vec<_>>());
        let each: Vec<Line> = own
            .iter()
            .zip(&numbers)
            .map(|(readout, &shot)| {
                let (partition, line, reversed) = key(readout);
                Line { partition, line, reversed, count: counts[&(partition, line, reversed)], shot }
            })
            .collect();
        let several = numbers.last().map_or(0, |last| last + 1);
        let enough = (0..several).all(|shot| numbers.iter().filter(|own| **own == shot).count() >= LEAST);
        // Lines that are measured twice have no energy that all phases share.
        let once: BTreeSet<usize> = each.iter().map(|line| line.line).collect();
        let told = (2..=SHOTS).contains(&several) && enough && once.len() == readouts.each.len();
        Some(Self { n, ny, coils, shots: if told { several } else { 0 }, each, hybrid })
    }

    /// The image as the sum of two parts, with these phases taken off: readouts for which `second` holds are
    /// the second part.
    fn split(&self, phases: &Phases, second: impl Fn(&Line) -> bool + Sync) -> Option<Entropy> {
        let transform = rayspin_line_fft::plan_f32(&[self.ny]);
        let column = |index| self.column(index, phases, &second, &transform);
        Entropy::of((0..self.n).into_par_iter().map(column).collect())
    }

    /// The column of this number in the transform along the readout.
    fn column(
        &self,
        index: usize,
        phases: &Phases,
        second: impl Fn(&Line) -> bool,
        transform: &rayspin_line_fft::Lines<f32>,
    ) -> Column {
        let Self { n, ny, coils, .. } = *self;
        let mut column =
            Column { x: place(index, n), pixels: Vec::new(), energy: 0.0, middle: (0.0, C64::ZERO) };
        let reversed = phases.constant + TAU * phases.shift * column.x / n as f64;
        let turn = |line: &Line| {
            let phase = if line.reversed { reversed } else { 0.0 };
            let phase = phase + phases.shots.get(line.shot).copied().unwrap_or(0.0);
            narrow(C64::from_polar(1.0 / f64::from(line.count), -phase))
        };
        let turns: Vec<C32> = self.each.iter().map(turn).collect();
        let partitions: BTreeSet<u16> = self.each.iter().map(|line| line.partition).collect();
        for partition in partitions {
            let mut products = vec![(0.0, C64::ZERO); ny];
            for coil in 0..coils {
                let mut images = [vec![C32::ZERO; ny], vec![C32::ZERO; ny]];
                let own = self.each.iter().zip(&turns).zip(&self.hybrid);
                for ((line, turn), values) in own.filter(|((line, _), _)| line.partition == partition) {
                    images[usize::from(second(line))][line.line] += values[coil * n + index] * turn;
                }
                for image in &mut images {
                    transform.inverse.iter().for_each(|inverse| inverse.process(image));
                }
                let [first, second] = images.map(|image| image.into_iter().map(wide));
                for ((p, c), (first, second)) in products.iter_mut().zip(first.zip(second)) {
                    *p += first.norm_sqr() + second.norm_sqr();
                    *c += first.conj() * second;
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
                column.pixels.push((p, c));
            }
        }
        column
    }

    /// The phases with which shots have theirs, and none where these hardly lower the entropy.
    fn of_shots(&self, start: Phases, linear: bool) -> Option<Phases> {
        if self.shots == 0 {
            return None;
        }
        let of_directions = |phases: &Phases| {
            let others = Phases { shots: phases.shots.clone(), ..Phases::default() };
            self.split(&others, |line| line.reversed)
        };
        let before = of_directions(&start)?.entropy(start.constant, start.shift);
        let mut phases = Phases { shots: vec![0.0; self.shots], ..start };
        let mut after = before;
        for _ in 0..ROUNDS {
            for shot in 0..self.shots {
                let last = std::mem::take(&mut phases.shots[shot]);
                let alone = self.split(&phases, |line| line.shot == shot)?;
                phases.shots[shot] = alone.refined(last, 0.0, false).0;
            }
            let directions = of_directions(&phases)?;
            (phases.constant, phases.shift) = directions.refined(phases.constant, phases.shift, linear);
            let now = directions.entropy(phases.constant, phases.shift);
            if after - now < GOES_ON * before {
                after = after.min(now);
                break;
            }
            after = now;
        }
        // The phase of the whole image stays that of its first shot.
        let first = phases.shots[0];
        phases.shots.iter_mut().for_each(|shot| *shot -= first);
        (before - after >= GAIN * before).then_some(phases)
    }
}

/// The shot of each of these lines, in the order of time. A train runs through the lines in one direction;
/// the next shot starts where they go back.
fn shots(lines: &[u16]) -> Vec<usize> {
    let count = |order| lines.windows(2).filter(|two| two[0].cmp(&two[1]) == order).count();
    let back =
        if count(Ordering::Less) >= count(Ordering::Greater) { Ordering::Greater } else { Ordering::Less };
    let starts = lines.windows(2).map(|two| usize::from(two[0].cmp(&two[1]) == back));
    let numbers = std::iter::once(0).chain(starts).scan(0, |shot, start| {
        *shot += start;
        Some(*shot)
    });
    numbers.take(lines.len()).collect()
}

fn narrow(value: C64) -> C32 {
    C32::new(value.re as f32, value.im as f32)
}

fn wide(value: C32) -> C64 {
    C64::new(value.re.into(), value.im.into())
}

/// A column of an image that is the sum of two parts.
struct Column {
    /// Its place in pixels from the middle.
    x: f64,
    /// P and C of each pixel.
    pixels: Vec<(f64, C64)>,
    /// Σ P over all lines, Σ P and Σ C over the middle half.
    energy: f64,
    middle: (f64, C64),
}

impl Column {
    /// Σ_y −m ln m for this factor e^{−i(a + b x)}, with the root of the image's energy.
    fn entropy(&self, turn: C64, root: f64) -> f64 {
        let (logarithm, turn) = (root.ln(), 2.0 * turn);
        // Where a ghost vanishes, p is what is left of two numbers that are much larger.
        let of_pixel = |&(p, c): &(f64, C64)| {
            let power = p + turn.re * c.re - turn.im * c.im;
            if power > 0.0 { power.sqrt() * (logarithm - 0.5 * power.ln()) } else { 0.0 }
        };
        self.pixels.iter().map(of_pixel).sum::<f64>() / root
    }
}

/// The entropy of an image of two parts as a function of the phase of the second part.
struct Entropy {
    columns: Vec<Column>,
    energy: f64,
}

impl Entropy {
    /// None for an image of zeros, or of numbers that are none.
    fn of(columns: Vec<Column>) -> Option<Self> {
        let energy: f64 = columns.iter().map(|column| column.energy).sum();
        (energy > 0.0 && energy <= f64::from(f32::MAX)).then_some(Self { columns, energy })
    }

    /// The phase at a column for a constant and a shift in samples.
    fn phase(&self, column: &Column, constant: f64, shift: f64) -> f64 {
        constant + TAU * shift * column.x / self.columns.len() as f64
    }

    /// The functions h_x at even angles.
    fn tables(&self) -> Vec<[f64; ANGLES]> {
        let root = self.energy.sqrt();
        let turns: [C64; ANGLES] =
            std::array::from_fn(|angle| C64::from_polar(1.0, -TAU * angle as f64 / ANGLES as f64));
        let table = |column: &Column| turns.map(|turn| column.entropy(turn, root));
        self.columns.par_iter().map(table).collect()
    }

    /// H by the nearest entries of the tables.
    fn near(&self, tables: &[[f64; ANGLES]], constant: usize, shift: f64) -> f64 {
        let own = self.columns.iter().zip(tables);
        own.map(|(column, table)| {
            let angle = self.phase(column, 0.0, shift) / TAU * ANGLES as f64;
            let angle = angle.round() as i64 + constant as i64;
            table[angle.rem_euclid(ANGLES as i64) as usize]
        })
        .sum()
    }

    /// H.
    fn entropy(&self, constant: f64, shift: f64) -> f64 {
        let root = self.energy.sqrt();
        let of_column = |column: &Column| {
            column.entropy(C64::from_polar(1.0, -self.phase(column, constant, shift)), root)
        };
        // Summed in order: the same image has the same phase on any number of threads.
        self.columns.par_iter().map(of_column).collect::<Vec<f64>>().into_iter().sum()
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
        let tables = self.tables();
        let coarse = |shift: &f64| {
            let all = (0..ANGLES).map(|constant| (self.near(&tables, constant, *shift), constant, *shift));
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
        let entropies = [one, other].map(|constant| self.entropy(constant, shift));
        let middles = [one, other].map(|constant| self.middle(constant, shift));
        let (constant, by) = if entropies[1] - entropies[0] > SAME * (highest - lowest) {
            (one, By::Entropy)
        } else if (middles[0] - middles[1]).abs() > DECIDES {
            (if middles[0] > middles[1] { one } else { other }, By::Middle)
        } else {
            (if one.abs() <= other.abs() { one } else { other }, By::Smaller)
        };
        let gain = self.entropy(0.0, 0.0) - self.entropy(constant, shift);
        if constant.abs() < PI / 2.0 && gain < GAIN * lowest {
            return Told::Aligned;
        }
        Told::Phase { constant, shift, by }
    }

    /// The minimum beside a start: steps along both axes, and where none leads down, to the vertex of the
    /// parabola through three points, with shorter steps from there.
    fn refined(&self, constant: f64, shift: f64, linear: bool) -> (f64, f64) {
        let mut best = [constant, shift];
        let at = |[constant, shift]: [f64; 2]| self.entropy(constant, shift);
        let mut lowest = at(best);
        let mut step = STEP;
        while step > ACCURATE {
            let mut moved = false;
            for axis in 0..=usize::from(linear) {
                let beside = |by: f64| {
                    let mut place = best;
                    place[axis] += by;
                    (at(place), place)
                };
                let [below, above] = [-step, step].map(beside);
                moved |= below.0.min(above.0) < lowest;
                let curvature = below.0 + above.0 - 2.0 * lowest;
                let vertex = 0.5 * step * (below.0 - above.0) / curvature;
                let between = (curvature > 0.0 && vertex.abs() < step).then(|| beside(vertex));
                for (value, place) in [below, above].into_iter().chain(between) {
                    if value < lowest {
                        (lowest, best) = (value, place);
                    }
                }
            }
            if !moved {
                step /= 4.0;
            }
        }
        best.into()
    }
}

#[cfg(test)]
#[path = "entropy_tests.rs"]
mod tests;
