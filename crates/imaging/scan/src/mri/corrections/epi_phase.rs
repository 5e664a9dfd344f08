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
//! Without such readouts, r are those of lines that were measured in both directions: of a train without
//! phase encoding, or of navigators that nothing marks. Where nothing was measured that tells the phase, it
//! is that of the image of [least entropy](super::entropy).
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

use super::echoes::{GHOSTS, say_apart};
use super::entropy::{self, By, Found, Told};
use super::turn::{Turn, transformed};
use super::{Correction, GROUP, Known, Readout, ReadoutHeads, Readouts, Sources};
use crate::mri::raw::{Encoding, Flags, note};

/// Least part of Σ|c| that has the phase found. Noise alone reaches about 1/√n for n pixels.
const AGREE: f64 = 0.5;
/// Readouts of an image from which on they are a train of echoes, and not lines that were measured twice.
const TRAIN: usize = 8;
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

choices! {
    /// What tells the phase between the two directions.
    pub enum EpiReference {
        /// Reference readouts where the scan has some that agree, else the entropy.
        Auto = "auto", "Phase-correction readouts where the scan has some that agree, else the entropy of the image";
        /// Reference readouts alone.
        Readouts = "readouts", "Phase-correction readouts of the scan";
        /// The entropy of the image.
        Entropy = "entropy", "The least entropy of each image";
    }
}

params! {
    /// Reversed readouts take the phase of the others, as the scan's phase-correction readouts or the entropy
    /// of the image tell it.
    pub struct Epi {
        /// What is removed.
        epi_phase: EpiPhase = EpiPhase::Linear => Param::new(GROUP, "What is removed of the phase between readouts of the two directions")
            .details("`--epi-reference` says what tells it.").rare(),
        /// What tells it.
        epi_reference: EpiReference = EpiReference::Auto => Param::new(GROUP, "What tells the phase between readouts of the two directions")
            .details("It is found for each slice and repetition.").rare(),
    }
}

impl Epi {
    /// Why it does nothing, as far as heads tell.
    fn why_idle(&self, heads: &ReadoutHeads) -> Option<&'static str> {
        if self.epi_phase == EpiPhase::None {
            Some("the phase stays as it is (`--epi-phase none`)")
        } else if !heads.has(Flags::REVERSE) {
            Some("no readout is reversed")
        } else if self.epi_reference == EpiReference::Readouts && !heads.has(Flags::PHASE_CORRECTION) {
            Some("the scan has no phase-correction readouts")
        } else {
            None
        }
    }

    /// The phase that reference readouts tell, or lines of the image in both directions. What was used
    /// goes to `notes`.
    fn measured(&self, readouts: &Readouts<'_>, notes: &mut Vec<String>) -> Option<Phase> {
        if self.epi_reference == EpiReference::Entropy {
            return None;
        }
        let references = usable(&readouts.references, readouts);
        let mut text = "phase-correction readouts align the readouts of the two directions (`--epi-phase none` leaves these as they are)";
        let (mut pairs, mut what) = (pairs(&references), "phase-correction readouts");
        if references.is_empty() {
            pairs = pairs_of_lines(&readouts.each);
            what = "lines that were measured in both directions";
            text = "lines that were measured in both directions tell the phase between the two (`--epi-phase none` leaves it)";
        }
        if pairs.is_empty() {
            return None;
        }
        let phase = Phase::of(&pairs, self.epi_phase == EpiPhase::Linear);
        let why =
            "have no phase in common (noise, zeros, or a shift with `--epi-phase constant`) and are not used";
        match phase {
            // Without the phase itself, which differs from image to image: a series has one note.
            Some(_) => note(notes, text),
            None if self.epi_reference == EpiReference::Readouts => {
                note(notes, format!("{what} {why}: {GHOSTS}"));
            }
            None => note(notes, format!("{what} {why}")),
        }
        phase
    }

    /// The phase that the entropy of the image tells. What was used goes to `notes`.
    fn of_entropy(&self, readouts: &Readouts<'_>, notes: &mut Vec<String>) -> Option<Phase> {
        if self.epi_reference == EpiReference::Readouts {
            return None;
        }
        let Found { reversed, shots } = entropy::phase_of(readouts, self.epi_phase == EpiPhase::Linear);
        if !shots.is_empty() {
            note(notes, "the shots have phases of their own, which the least entropy of the image tells");
        }
        match reversed {
            Told::Phase { constant, shift, by } => {
                note(
                    notes,
                    "the least entropy of the image aligns the readouts of the two directions (`--epi-phase none` leaves these as \
                     they are)",
                );
                let decided = match by {
                    By::Entropy => None,
                    By::Middle => Some("by the energy in the middle half of the field of view"),
                    By::Smaller => Some("by the smaller phase"),
                };
                if let Some(decided) = decided {
                    note(
                        notes,
                        format!(
                            "a phase of π between the directions, which moves the image by half the field of view, is settled {decided}"
                        ),
                    );
                }
                Some(Phase { constant, shift, shots })
            }
            Told::Aligned => None,
            Told::Nothing => {
                say_apart(readouts, notes);
                None
            }
        }
    }
}

impl Correction for Epi {
    fn about(&self) -> About {
        About {
            name: "epi-phase",
            help: "Removes the phase between readouts of the two directions, by phase-correction readouts or by the entropy of the image",
        }
    }

    fn learns_from(&self) -> Sources {
        Sources { of_image: Flags::PHASE_CORRECTION, ..Sources::default() }
    }

    fn idle(&self, scan: &Known<'_>) -> Option<String> {
        self.why_idle(scan.heads).map(str::to_owned)
    }

    fn bytes(&self, heads: &ReadoutHeads, encoding: &Encoding, readouts: u64) -> u64 {
        if self.why_idle(heads).is_some() {
            return 0;
        }
        // The entropy takes the transforms of all readouts and pixels, beside copies that are even. Later,
        // readouts are copied.
        if self.epi_reference == EpiReference::Readouts {
            return readouts;
        }
        let even = match (&encoding.places, &encoding.ramps) {
            (Some(places), _) => Some(places.forward.len()),
            (None, ramps) => ramps.as_ref().map(|ramps| ramps.samples),
        };
        let matrix = encoding.encoded.matrix;
        let pixels = entropy::bytes(even.unwrap_or(matrix[0]), matrix);
        readouts.saturating_mul(if even.is_some() { 2 } else { 1 }).saturating_add(pixels)
    }

    fn scan(&self, readouts: &mut Readouts<'_>, notes: &mut Vec<String>) {
        let measured = readouts.heads.phase_corrections();
        let directions = [false, true].map(|reversed| {
            readouts.each.iter().any(|readout| readout.trajectory.is_none() && readout.reversed == reversed)
        });
        let alone = self.epi_reference == EpiReference::Readouts;
        let used = self.epi_phase != EpiPhase::None
            && (!alone || !pairs(&usable(&readouts.references, readouts)).is_empty());
        if measured > 0 && directions == [true; 2] && !used {
            note(notes, format!("{measured} phase-correction readouts are not used: {GHOSTS}"));
        }
        if measured == 0 && (alone || self.epi_phase == EpiPhase::None) {
            say_apart(readouts, notes);
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
        let measured = self.measured(readouts, notes);
        let Some(phase) = measured.or_else(|| self.of_entropy(readouts, notes)) else { return Ok(()) };
        let reversed = || readouts.each.iter().filter(|readout| turned(readout));
        let lengths: BTreeSet<usize> = reversed().map(|readout| readout.data.ncols()).collect();
        let turns: BTreeMap<usize, Turn> =
            lengths.into_iter().map(|n| (n, Turn::new(n, phase.constant, phase.shift))).collect();
        readouts.each.par_iter_mut().filter(|readout| turned(readout)).for_each(|readout| {
            if let Some(turn) = turns.get(&readout.data.ncols()) {
                turn.apply(readout);
            }
        });
        readouts.each.par_iter_mut().zip(&phase.shots).for_each(|(readout, phase)| {
            let turn = C32::from_polar(1.0, -phase as f32);
            readout.change().data.mapv_inplace(|value| value * turn);
        });
        Ok(())
    }
}

/// The readouts of lines that were measured in both directions, each with its partners: trains without phase
/// encoding, navigators that nothing marks, and scans with the directions exchanged. The readouts of a line
/// that follow one another are of one time; the field turns the phase of others, which count only without
/// such ones. None of fewer readouts than a train has.
fn pairs_of_lines<'r>(readouts: &'r [Readout<'r>]) -> Vec<(&'r Readout<'r>, Vec<&'r Readout<'r>>)> {
    if readouts.len() < TRAIN {
        return Vec::new();
    }
    let all = alike(readouts.iter().collect());
    let line = |readout: &Readout<'_>| [readout.counters.step_1, readout.counters.step_2];
    let runs = all.chunk_by(|one, next| line(one) == line(next));
    let together: Vec<_> = runs.flat_map(pairs).collect();
    if !together.is_empty() {
        return together;
    }
    let mut lines: BTreeMap<[u16; 2], Vec<&Readout<'_>>> = BTreeMap::new();
    all.into_iter().for_each(|readout| lines.entry(line(readout)).or_default().push(readout));
    lines.values().flat_map(|line| pairs(line)).collect()
}

/// Those with the coils of an image, in the order of time.
fn usable<'r>(references: &'r [Readout<'r>], image: &Readouts<'_>) -> Vec<&'r Readout<'r>> {
    let Some(first) = image.each.first() else { return Vec::new() };
    let own = |reference: &&Readout<'_>| {
        reference.flags.contains(Flags::PHASE_CORRECTION)
            && reference.data.nrows() == first.data.nrows()
            && reference.data.iter().all(|value| value.is_finite())
    };
    alike(references.iter().filter(own).collect())
}

/// Those on a grid with as many samples as the first of them.
fn alike<'r>(readouts: Vec<&'r Readout<'r>>) -> Vec<&'r Readout<'r>> {
    let on_grid = |readout: &&Readout<'_>| readout.trajectory.is_none() && readout.data.ncols() > 0;
    let readouts: Vec<&Readout<'_>> = readouts.into_iter().filter(on_grid).collect();
    let samples = readouts.first().map_or(0, |readout| readout.data.ncols());
    readouts.into_iter().filter(|readout| readout.data.ncols() == samples).collect()
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

/// The phase by which reversed readouts differ from forward readouts, and shots from the first.
#[derive(Debug, Clone, PartialEq)]
struct Phase {
    /// In the middle of the field of view, radian.
    constant: f64,
    /// The shift that the slope along the readout is, samples.
    shift: f64,
    /// Of each readout of the image, radian. Empty where shots have no phases of their own.
    shots: Vec<f64>,
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
        (total > 0.0 && agreed >= AGREE * total).then_some(Self {
            constant,
            shift: b * n as f64 / TAU,
            shots: Vec::new(),
        })
    }
}
