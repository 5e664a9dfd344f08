//! Phase between readouts of the two directions: echo-planar imaging reads every other line backwards. Delays
//! of gradients and receiver, and eddy currents, shift echoes and turn phases of the two directions in
//! opposite ways, and a ghost of the object appears half a field of view away.
//!
//! ```text
//! ŝ₋(x) ← ŝ₋(x) e^{−i(a + b x)},   (a, b) = argmin Σ_x |c(x)| (arg c(x) − a − b x)²,   c(x) = Σ r̂₋(x) r̂₊(x)*
//! ```
//!
//! ŝ(x) = Σ_k s(k) e^{+i2πkx/n} is the transform along a readout, turned round where it is reversed. x counts
//! pixels from the middle of the field of view. r are the scan's phase-correction readouts of the same image,
//! which have no phase encoding. The sum runs over coils and over reference readouts between two others of
//! the opposite direction. The mean of the two is the partner, so that phase which grows with time cancels.
//! Where no readout lies between two such readouts, neighbours are partners. The minimum starts from the
//! phase of the autocorrelation of c, which needs no unwrapping. A slope b is a shift of b n / 2π of n
//! samples. Where it is positive, the echoes of reversed readouts come later in k.
//!
//! H. Bruder, H. Fischer, H.-E. Reinfelder, F. Schmitt, *Image reconstruction for echo planar imaging with
//! nonequidistant k-space sampling*, Magn Reson Med 23:311, 1992; O. Heid, *Method for the phase correction
//! of nuclear magnetic resonance signals*, US patent 6,043,651, 2000 (three reference readouts); C. B. Ahn,
//! Z. H. Cho, *A new phase correction method in NMR imaging based on autocorrelation and histogram analysis*,
//! IEEE Trans Med Imaging 6:32, 1987.

use std::collections::{BTreeMap, BTreeSet};
use std::f64::consts::{PI, TAU};

use rayon::prelude::*;
use rayspin_core::{C32, C64, Result};
use rayspin_run::{About, Param, choices, params};

use super::echoes::GHOSTS;
use super::{Correction, GROUP, Known, Readout, ReadoutHeads, Readouts, Sources};
use crate::mri::raw::{Flags, note};

/// Least part of Σ|c| that has the phase found. Noise alone reaches about 1/√n for n pixels.
const AGREE: f64 = 0.5;
/// Steps of least squares.
const STEPS: usize = 3;

choices! {
    /// What of the phase between the two directions is removed.
    pub enum EpiPhase {
        /// A constant and a slope.
        Linear = "linear", "A constant and a slope along the readout, which is a shift of the echo";
        /// A constant.
        Constant = "constant", "A constant";
        /// Nothing.
        None = "none", "Nothing";
    }
}

params! {
    /// Reversed readouts take the phase of the others, as the scan's phase-correction readouts tell it.
    pub struct Epi {
        /// What is removed.
        epi_phase: EpiPhase = EpiPhase::Linear => Param::new(GROUP, "What is removed of the phase between readouts of the two directions")
            .details("Phase-correction readouts of the scan tell it, for each slice and repetition. A scan without them stays as it is.").rare(),
    }
}

impl Epi {
    /// Why it does nothing, as far as heads tell.
    fn why_idle(&self, heads: &ReadoutHeads) -> Option<&'static str> {
        if self.epi_phase == EpiPhase::None {
            Some("the phase stays as it is (`--epi-phase none`)")
        } else if !heads.has(Flags::PHASE_CORRECTION) {
            Some("the scan has no phase-correction readouts")
        } else if !heads.has(Flags::REVERSE) {
            Some("no readout is reversed")
        } else {
            None
        }
    }
}

impl Correction for Epi {
    fn about(&self) -> About {
        About {
            name: "epi-phase",
            help: "Removes the phase between readouts of the two directions that phase-correction readouts tell",
        }
    }

    fn learns_from(&self) -> Sources {
        Sources { of_image: Flags::PHASE_CORRECTION, ..Sources::default() }
    }

    fn idle(&self, scan: &Known<'_>) -> Option<String> {
        self.why_idle(scan.heads).map(str::to_owned)
    }

    fn bytes(&self, heads: &ReadoutHeads, readouts: u64) -> u64 {
        // Reversed readouts are copied.
        if self.why_idle(heads).is_none() { readouts } else { 0 }
    }

    fn scan(&self, readouts: &mut Readouts<'_>, notes: &mut Vec<String>) {
        let measured = readouts.heads.phase_corrections();
        let directions = [false, true].map(|reversed| {
            readouts.each.iter().any(|readout| readout.trajectory.is_none() && readout.reversed == reversed)
        });
        let used = self.epi_phase != EpiPhase::None && !pairs(&usable(readouts)).is_empty();
        if measured > 0 && directions == [true; 2] && !used {
            note(notes, format!("{measured} phase-correction readouts are not used: {GHOSTS}"));
        }
        let along = readouts.each.iter().any(|readout| readout.trajectory.is_some() && readout.reversed);
        if measured > 0 && along {
            note(
                notes,
                format!("{measured} phase-correction readouts are not used along a trajectory: {GHOSTS}"),
            );
        }
    }

    fn readouts(&self, readouts: &mut Readouts<'_>, notes: &mut Vec<String>) -> Result<()> {
        let turned = |readout: &Readout<'_>| readout.trajectory.is_none() && readout.reversed;
        if self.epi_phase == EpiPhase::None || !readouts.each.iter().any(turned) {
            return Ok(());
        }
        let references = usable(readouts);
        let pairs = pairs(&references);
        if pairs.is_empty() {
            return Ok(());
        }
        let Some(phase) = Phase::of(&pairs, self.epi_phase == EpiPhase::Linear) else {
            note(
                notes,
                format!(
                    "phase-correction readouts have no phase in common (noise, zeros, or a shift with `--epi-phase constant`) and are not \
                     used: {GHOSTS}"
                ),
            );
            return Ok(());
        };
        // Without the phase itself, which differs from image to image: a series has one note.
        let text = "phase-correction readouts align the readouts of the two directions (`--epi-phase none` leaves these as they are)";
        note(notes, text);
        let reversed = || readouts.each.iter().filter(|readout| turned(readout));
        let lengths: BTreeSet<usize> = reversed().map(|readout| readout.data.ncols()).collect();
        let turns: BTreeMap<usize, Turn> = lengths.into_iter().map(|n| (n, phase.turn(n))).collect();
        readouts.each.par_iter_mut().filter(|readout| turned(readout)).for_each(|readout| {
            if let Some(turn) = turns.get(&readout.data.ncols()) {
                turn.apply(readout);
            }
        });
        Ok(())
    }
}

/// References with the image's coils, and as many samples as the first of them, in the order of time.
fn usable<'r>(readouts: &'r Readouts<'_>) -> Vec<&'r Readout<'r>> {
    let Some(first) = readouts.each.first() else { return Vec::new() };
    let own = |reference: &&Readout<'_>| {
        reference.flags.contains(Flags::PHASE_CORRECTION)
            && reference.trajectory.is_none()
            && reference.data.nrows() == first.data.nrows()
            && reference.data.ncols() > 0
            && reference.data.iter().all(|value| value.is_finite())
    };
    let references: Vec<&Readout<'_>> = readouts.references.iter().filter(own).collect();
    let samples = references.first().map_or(0, |reference| reference.data.ncols());
    references.into_iter().filter(|reference| reference.data.ncols() == samples).collect()
}

/// References, each with its partners of the opposite direction.
fn pairs<'r>(references: &[&'r Readout<'r>]) -> Vec<(&'r Readout<'r>, Vec<&'r Readout<'r>>)> {
    let between = references
        .windows(3)
        .filter(|three| three[0].reversed == three[2].reversed && three[0].reversed != three[1].reversed);
    let between: Vec<_> = between.map(|three| (three[1], vec![three[0], three[2]])).collect();
    if !between.is_empty() {
        return between;
    }
    let beside = references.windows(2).filter(|two| two[0].reversed != two[1].reversed);
    beside.map(|two| (two[0], vec![two[1]])).collect()
}

/// The phase by which reversed readouts differ from forward readouts.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Phase {
    /// In the middle of the field of view, radian.
    constant: f64,
    /// The shift that the slope along the readout is, samples.
    shift: f64,
}

impl Phase {
    /// None where the references do not agree.
    fn of(pairs: &[(&Readout<'_>, Vec<&Readout<'_>>)], linear: bool) -> Option<Self> {
        let n = pairs.first()?.0.data.ncols();
        let mut c = vec![C64::ZERO; n];
        let transform = rayspin_line_fft::plan_f64(&[n]);
        for (one, partners) in pairs {
            for coil in 0..one.data.nrows() {
                let own = transformed(&transform, one, coil);
                let mut mean = vec![C64::ZERO; n];
                for partner in partners {
                    let values = transformed(&transform, partner, coil);
                    mean.iter_mut()
                        .zip(values)
                        .for_each(|(mean, value)| *mean += value / partners.len() as f64);
                }
                let (back, forth) = if one.reversed { (&own, &mean) } else { (&mean, &own) };
                c.iter_mut()
                    .zip(back.iter().zip(forth))
                    .for_each(|(c, (back, forth))| *c += back * forth.conj());
            }
        }
        // From the lowest x to the highest.
        c.rotate_right(n / 2);
        let x = |index: usize| index as f64 - (n / 2) as f64;
        let left = |a: f64, b: f64| {
            c.iter()
                .enumerate()
                .map(move |(index, value)| (x(index), value * C64::from_polar(1.0, -(a + b * x(index)))))
        };
        let slope = c.windows(2).map(|two| two[1] * two[0].conj()).sum::<C64>().arg();
        let mut b = if linear { slope } else { 0.0 };
        let mut a = left(0.0, b).map(|(_, value)| value).sum::<C64>().arg();
        for _ in 0..STEPS {
            // Weighted moments of x, and of the phase that is left.
            let mut sums = [0.0; 5];
            for (x, value) in left(a, b) {
                let (weight, phase) = (value.norm(), value.arg());
                let own = [1.0, x, x * x, phase, x * phase];
                sums.iter_mut().zip(own).for_each(|(sum, own)| *sum += weight * own);
            }
            let [w, wx, wxx, wp, wxp] = sums;
            let determinant = w * wxx - wx * wx;
            let (da, db) = match linear && determinant > 1e-9 * w * wxx {
                true => ((wp * wxx - wxp * wx) / determinant, (w * wxp - wx * wp) / determinant),
                false => (wp / w, 0.0),
            };
            if !(da.is_finite() && db.is_finite()) {
                return None;
            }
            (a, b) = (a + da, b + db);
        }
        let total: f64 = c.iter().map(|value| value.norm()).sum();
        let agreed = left(a, b).map(|(_, value)| value).sum::<C64>().norm();
        let constant = (a + PI).rem_euclid(TAU) - PI;
        (total > 0.0 && agreed >= AGREE * total).then_some(Self { constant, shift: b * n as f64 / TAU })
    }

    /// What takes it from readouts of `n` samples.
    fn turn(&self, n: usize) -> Turn {
        let phase = |index: usize| -(self.constant + TAU * self.shift / n as f64 * place(index, n));
        // The two transforms multiply by n.
        let turn = |index: usize| C32::from_polar(1.0 / n as f32, phase(index).rem_euclid(TAU) as f32);
        Turn { transform: rayspin_line_fft::plan_f32(&[n]), turns: (0..n).map(turn).collect() }
    }
}

/// Transforms of readouts of one length, and what their pixels are multiplied by.
struct Turn {
    transform: rayspin_line_fft::Lines<f32>,
    turns: Vec<C32>,
}

impl Turn {
    /// Turns the phase of a reversed readout.
    fn apply(&self, readout: &mut Readout<'_>) {
        let (n, kept) = (self.turns.len(), readout.kept.clone());
        let mut line = vec![C32::ZERO; n];
        for mut row in readout.change().data.rows_mut() {
            line.fill(C32::ZERO);
            kept.clone().for_each(|sample| line[n - 1 - sample] = row[sample]);
            self.transform.inverse.iter().for_each(|inverse| inverse.process(&mut line));
            line.iter_mut().zip(&self.turns).for_each(|(value, turn)| *value *= turn);
            self.transform.forward.iter().for_each(|forward| forward.process(&mut line));
            row.iter_mut().zip(line.iter().rev()).for_each(|(value, line)| *value = *line);
        }
    }
}

/// The place in pixels of a number of a transform.
fn place(index: usize, n: usize) -> f64 {
    if index < n.div_ceil(2) { index as f64 } else { index as f64 - n as f64 }
}

/// A coil's samples that are kept, in the direction in which k rises, transformed: x = 0 first. The centre of
/// k-space has no phase.
fn transformed(transform: &rayspin_line_fft::Lines<f64>, readout: &Readout<'_>, coil: usize) -> Vec<C64> {
    let n = readout.data.ncols();
    let mut line = vec![C64::ZERO; n];
    for sample in readout.kept.clone() {
        let value = readout.data[[coil, sample]];
        let index = if readout.reversed { n - 1 - sample } else { sample };
        line[index] = C64::new(value.re.into(), value.im.into());
    }
    transform.inverse.iter().for_each(|inverse| inverse.process(&mut line));
    let turn = |index: usize| C64::from_polar(1.0, -TAU * place(index, n) * readout.centre as f64 / n as f64);
    line.iter_mut().enumerate().for_each(|(index, value)| *value *= turn(index));
    line
}
