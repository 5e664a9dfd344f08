//! The centre of k-space, and the direction of readouts: where samples lie on the grid.
//!
//! ```text
//! k_x(s) = s − c of a readout that runs forwards,   n − 1 − s − c of a reversed one,   c = center_sample, or n − 1 − center_sample
//! k_y = kspace_encode_step_1 − c₁,   k_z = kspace_encode_step_2 − c₂
//! ```
//!
//! s counts the n samples of a readout as they are stored, in the order of time. Headers state c, c₁ and c₂.
//! Where the stated number cannot be, the energy E of the samples tells it: E peaks at the centre of k-space,
//!
//! ```text
//! c = the usual centre within n/16 of argmax E, else argmax E,   where max E ≥ 2 mean E
//! ```
//!
//! and a note says so. Some writers count the `center_sample` of a reversed readout as the samples are
//! stored, others as if the readout ran forwards. Readouts of the two directions tell which it is, else the
//! energy tells it. A trajectory states its own centre, in as many dimensions as it has.

use std::collections::BTreeMap;

use rayon::prelude::*;
use rayspin_core::{C32, Result};
use rayspin_run::{About, Param, choices, params};

use super::readouts::mirrored;
use super::{Centres, Correction, GROUP, Readout, ReadoutHeads, Readouts};
use crate::mri::raw::{Acquisition, Encoding, Flags, Limits, note};

choices! {
    /// How `center_sample` counts the samples of a reversed readout.
    pub enum ReversedCentre {
        /// In the order in which they are stored.
        Stored = "stored", "In the order in which they are stored";
        /// As if the readout were not reversed, which Siemens' scanners do.
        Forward = "forward", "As if the readout were not reversed, as Siemens' scanners do";
    }
}

params! {
    /// Samples lie where the header's centre of k-space says, or where their energy does. What is given
    /// replaces both.
    pub struct Centre {
        /// The line, as `kspace_encode_step_1` counts.
        centre_line: Option<usize> = None => Param::new(GROUP, "Line at the centre of k-space")
            .called("LINE").absent("the header's; if it is impossible, the line where the energy peaks")
            .details("Counted as kspace_encode_step_1.").rare(),
        /// The partition, as `kspace_encode_step_2` counts.
        centre_partition: Option<usize> = None => Param::new(GROUP, "Partition at the centre of k-space")
            .called("PARTITION")
            .remedies(&[
                (
                    &["centre of the trajectory"],
                    "subtract the middle from the trajectory; `--centre-partition` names the partition at \
                     the centre of a scan that counts them",
                ),
            ]).absent("as for `--centre-line`").details("Counted as kspace_encode_step_2.").rare(),
        /// How the samples of reversed readouts are counted.
        reversed_centre: Option<ReversedCentre> = None => Param::new(GROUP, "How center_sample counts the samples of reversed readouts")
            .absent("as readouts of both directions tell").rare(),
    }
}

/// Energy at the peak over the mean energy, at least: along axes of k-space it is 2.1 and more.
const PEAK: f64 = 2.0;
/// Lines of an axis from which on its centre is doubted.
const LEAST_LINES: usize = 16;
/// Energy at the peak over the energy beside the stated centre from which on that is doubted.
const DOUBT: f64 = 4.0;

/// Readouts that tell where their echoes lie, at least, and those that are looked at, at most.
const LEAST_READOUTS: usize = 4;
const MOST_READOUTS: usize = 256;

impl Correction for Centre {
    fn about(&self) -> About {
        About {
            name: "centre",
            help: "Places samples around the centre of k-space, and mends a centre that cannot be right",
        }
    }

    fn scan(&self, readouts: &mut Readouts<'_>, notes: &mut Vec<String>) {
        let Self { centre_line: line, centre_partition: partition, reversed_centre: reversed } = *self;
        let turned = |r: &Readout<'_>| r.trajectory.is_none() && r.reversed;
        let convention = match reversed {
            None if readouts.each.iter().any(turned) => {
                readouts.heads.convention(readouts.label.encoding).map(|convention| said(convention, notes))
            }
            given => given,
        };
        readouts.centres = Centres { line, partition, reversed: convention };
    }

    fn image(&self, readouts: &mut Readouts<'_>, notes: &mut Vec<String>) {
        let Readouts { encoding, each, centres, .. } = readouts;
        *centres = settled(*centres, each, encoding, notes);
    }

    fn readouts(&self, readouts: &mut Readouts<'_>, notes: &mut Vec<String>) -> Result<()> {
        let stored = readouts.centres.reversed == Some(ReversedCentre::Stored);
        let width = readouts.encoding.encoded.matrix[0];
        let mut assumed: BTreeMap<(usize, usize, bool), usize> = BTreeMap::new();
        let on_grid = readouts.each.iter().enumerate().filter(|(_, readout)| readout.trajectory.is_none());
        let mut centres = Vec::with_capacity(readouts.each.len());
        for (index, readout) in on_grid {
            let (stated, samples, reversed) = (readout.centre_sample, readout.data.ncols(), readout.reversed);
            let centre = match may_be_centre(stated, samples, width) {
                true if reversed && stored => samples - 1 - stated,
                true => stated,
                false => *assumed
                    .entry((stated, samples, reversed))
                    .or_insert_with(|| centre_of_samples(&readouts.each, readout, notes)),
            };
            centres.push((index, centre));
        }
        centres.into_iter().for_each(|(index, centre)| readouts.each[index].centre = centre);
        // References are sampled as the image is: their heads often state no centre, or another one.
        let of_image: BTreeMap<(usize, bool), usize> = readouts
            .each
            .iter()
            .map(|readout| ((readout.data.ncols(), readout.reversed), readout.centre))
            .collect();
        for reference in &mut readouts.references {
            let (stated, samples) = (reference.centre_sample, reference.data.ncols());
            let own = || match may_be_centre(stated, samples, width) {
                true if reference.reversed && stored => samples - 1 - stated,
                true => stated,
                false => samples / 2,
            };
            reference.centre = of_image.get(&(samples, reference.reversed)).copied().unwrap_or_else(own);
        }
        Ok(())
    }
}

/// All centres of an image: those that are given, and those that its encoding and the energy of its readouts
/// tell.
fn settled(
    given: Centres,
    readouts: &[Readout<'_>],
    encoding: &Encoding,
    notes: &mut Vec<String>,
) -> Centres {
    say_doubted_echoes(readouts, encoding.encoded.matrix[0], notes);
    // A trajectory states where its samples lie, in as many dimensions as it has.
    let stated = readouts.iter().filter_map(|r| r.trajectory.as_ref()).map(|t| t.ncols()).min();
    let [_, ny, nz] = encoding.encoded.matrix;
    let on_grid = stated.is_none();
    let line = Axis {
        n: ny,
        limits: encoding.step_1,
        step: |r| r.counters.step_1,
        on_grid,
        name: "phase encoding",
        option: "centre-line",
    };
    let partition = Axis {
        n: nz,
        limits: encoding.step_2,
        step: |r| r.counters.step_2,
        on_grid,
        name: "second phase encoding",
        option: "centre-partition",
    };
    let counts = |axis: usize| stated.is_none_or(|dims| dims <= axis);
    let settle = |given: Option<usize>, axis: Axis, dim: usize, notes: &mut Vec<String>| match given {
        None if counts(dim) => Some(axis.centre(readouts, notes)),
        given => given,
    };
    Centres {
        line: settle(given.line, line, 1, notes),
        partition: settle(given.partition, partition, 2, notes),
        reversed: match given.reversed {
            None if on_grid => Some(reversed_of(readouts, notes)),
            given => given.or(Some(ReversedCentre::Forward)),
        },
    }
}

/// The convention of an image's readouts; where they are reversed alone, the centre that is nearer to the
/// peak of their energy.
fn reversed_of(readouts: &[Readout<'_>], notes: &mut Vec<String>) -> ReversedCentre {
    let mut heads = ReadoutHeads::default();
    readouts.iter().for_each(|r| heads.add(0, r.flags, r.data.ncols(), r.centre_sample));
    if let Some(convention) = heads.convention(0) {
        return said(convention, notes);
    }
    let reversed = readouts.iter().find(|r| r.flags.contains(Flags::REVERSE));
    let Some(first) = reversed else { return ReversedCentre::Forward };
    let (samples, stated) = (first.data.ncols(), first.centre_sample);
    let alike = |r: &Acquisition| {
        r.flags.contains(Flags::REVERSE) && (r.data.ncols(), r.centre_sample) == (samples, stated)
    };
    let Some(mirrored) = mirrored(samples, stated) else { return ReversedCentre::Forward };
    // Echoes of readouts in the two directions may be shifted by a sample or two.
    if mirrored.abs_diff(stated) <= 2 * tolerance(samples) {
        return ReversedCentre::Forward;
    }
    let energy = energy_of_samples(readouts.iter().filter(|r| alike(r)), samples);
    match peak(&energy) {
        Some(peak) if peak.abs_diff(stated) < peak.abs_diff(mirrored) => said(ReversedCentre::Stored, notes),
        _ => ReversedCentre::Forward,
    }
}

/// Says what differs from the convention of most scans.
fn said(convention: ReversedCentre, notes: &mut Vec<String>) -> ReversedCentre {
    if convention == ReversedCentre::Stored {
        let text = "center_sample of reversed readouts counts the samples as they are stored (`--reversed-centre` overrides)";
        note(notes, text);
    }
    convention
}

/// A direction that counters encode.
struct Axis {
    n: usize,
    limits: Option<Limits>,
    step: fn(&Acquisition) -> u16,
    on_grid: bool,
    name: &'static str,
    option: &'static str,
}

impl Axis {
    fn centre(&self, readouts: &[Readout<'_>], notes: &mut Vec<String>) -> usize {
        let Self { n, limits, step, on_grid, name, option } = *self;
        let steps = || readouts.iter().map(|r| usize::from(step(r)));
        let (low, high) = (steps().min().unwrap_or(0), steps().max().unwrap_or(0));
        if n == 1 || low == high {
            return match limits {
                Some(limits) => limits.centre,
                None => {
                    self.assumed(n / 2, notes);
                    n / 2
                }
            };
        }
        let energy = || energy_of_steps(readouts, step, high);
        if let Some(Limits { minimum, maximum, centre }) = limits {
            // Limits of a header that states none are all 0.
            let unset = centre == 0 || maximum == 0;
            if !unset && (minimum..=maximum).contains(&centre) {
                let uneven = high.saturating_sub(centre).abs_diff(centre.saturating_sub(low)) > tolerance(n);
                if uneven && n >= LEAST_LINES {
                    self.doubt(&energy(), centre, low, high, notes);
                }
                return centre;
            }
            let energy = energy();
            let peak = peak(&energy);
            // A scan of half of k-space begins at its centre.
            let begins = peak.map_or(high + n / 2 < n, |line| line <= 1);
            if centre == 0 && low == 0 && begins {
                return centre;
            }
            let nearest = self.nearest(peak, (centre > 0).then_some(centre), low, high);
            if nearest != centre {
                note(
                    notes,
                    format!(
                        "the header's centre of {name}, {centre}, is not where the energy of {low} to {high} peaks: {nearest} \
                         is assumed (`--{option}` overrides)"
                    ),
                );
            }
            return nearest;
        }
        let nearest = self.nearest(peak(&energy()), None, low, high);
        if on_grid || nearest != n / 2 {
            self.assumed(nearest, notes);
        }
        nearest
    }

    /// Says where the energy of lines from `low` to `high` contradicts the stated centre.
    fn doubt(&self, energy: &[Option<f64>], centre: usize, low: usize, high: usize, notes: &mut Vec<String>) {
        let Self { n, name, option, .. } = *self;
        let Some(line) = peak(energy).filter(|line| line.abs_diff(centre) > tolerance(n)) else { return };
        if speaks_against(energy, line, centre) {
            note(
                notes,
                format!(
                    "the header's centre of {name} is {centre}, and the energy of {low} to {high} peaks at {line}: if the \
                     image is blurred or doubled, the header is wrong (`--{option} {line}`)"
                ),
            );
        }
    }

    fn assumed(&self, centre: usize, notes: &mut Vec<String>) {
        if self.on_grid && self.n > 1 || centre != self.n / 2 {
            note(notes, format!("the header states no centre of {}: line {centre} assumed", self.name));
        }
    }

    /// A centre for lines from `low` to `high`, whose energy peaks at `peak`: the one that is stated or a
    /// usual one, if that is about as near.
    fn nearest(&self, peak: Option<usize>, stated: Option<usize>, low: usize, high: usize) -> usize {
        let n = self.n;
        let usual = [n / 2, (low + high).div_ceil(2), (high + 1).saturating_sub(n - n / 2)];
        let fits = |centre: &usize| low + n / 2 >= *centre && high + n / 2 < centre + n;
        let mut usual = stated.into_iter().chain(usual).filter(fits);
        match peak {
            Some(peak) => {
                let near = usual.filter(|centre| centre.abs_diff(peak) <= tolerance(n));
                near.min_by_key(|centre| centre.abs_diff(peak)).unwrap_or(peak)
            }
            None => usual.next().unwrap_or(n / 2),
        }
    }
}

/// How far the energy's peak may lie from the centre of k-space along an axis of `n`: phases move it.
fn tolerance(n: usize) -> usize {
    (n / 16).max(1)
}

/// Says where the echoes of readouts on a grid of `n` places contradict their `center_sample`. Samples that
/// are alike in all readouts of an image and have their centre in the middle are shifted together, which
/// turns the phase alone.
fn say_doubted_echoes(readouts: &[Readout<'_>], n: usize, notes: &mut Vec<String>) {
    let mut groups: BTreeMap<_, Vec<&Readout<'_>>> = BTreeMap::new();
    for readout in readouts.iter().filter(|r| r.trajectory.is_none()) {
        let key = (readout.data.ncols(), readout.centre_sample, readout.flags.contains(Flags::REVERSE));
        groups.entry(key).or_default().push(readout);
    }
    let several = groups.keys().filter(|(_, _, reversed)| !reversed).count() > 1;
    for ((samples, stated, reversed), own) in groups {
        let shifted = samples <= n && stated.abs_diff(samples / 2) <= 1 && !several;
        // Reversed readouts are counted in two ways, which their own rule tells apart.
        let few = samples < LEAST_LINES || own.len() < LEAST_READOUTS;
        if reversed || shifted || few || !may_be_centre(stated, samples, n) {
            continue;
        }
        let some = own.iter().copied().step_by(own.len().div_ceil(MOST_READOUTS));
        let energy = energy_of_samples(some, samples);
        let Some(sample) = peak(&energy).filter(|sample| sample.abs_diff(stated) > tolerance(samples)) else {
            continue;
        };
        if speaks_against(&energy, sample, stated) {
            let text = format!(
                "the center_sample of readouts of {samples} samples is {stated}, and their energy peaks at {sample}: if the image is blurred or \
                 doubled, the file is wrong"
            );
            note(notes, text);
        }
    }
}

/// The centre of readouts whose `center_sample` cannot be: the middle, or where their energy peaks if that is
/// elsewhere.
fn centre_of_samples(readouts: &[Readout<'_>], like: &Acquisition, notes: &mut Vec<String>) -> usize {
    let (samples, stated) = (like.data.ncols(), like.centre_sample);
    let reversed = |r: &Acquisition| r.flags.contains(Flags::REVERSE);
    let alike =
        |r: &Acquisition| (r.data.ncols(), r.centre_sample, reversed(r)) == (samples, stated, reversed(like));
    let peak = peak(&energy_of_samples(readouts.iter().filter(|r| alike(r)), samples));
    let peak = peak.map(|sample| if reversed(like) { samples - 1 - sample } else { sample });
    let middle = samples / 2;
    let centre = peak.filter(|sample| sample.abs_diff(middle) > tolerance(samples)).unwrap_or(middle);
    note(notes, format!("centre_sample is {stated} of {samples} samples: {centre} assumed"));
    centre
}

fn energy_of<'a>(values: impl Iterator<Item = &'a C32>) -> f64 {
    values.map(|v| f64::from(v.re) * f64::from(v.re) + f64::from(v.im) * f64::from(v.im)).sum()
}

/// Mean energy of a sample of each line from 0 to `high`; none of lines that were not measured.
fn energy_of_steps(readouts: &[Readout<'_>], step: fn(&Acquisition) -> u16, high: usize) -> Vec<Option<f64>> {
    let each: Vec<(usize, f64, usize)> =
        readouts.par_iter().map(|r| (usize::from(step(r)), energy_of(r.data.iter()), r.data.len())).collect();
    let mut sums = vec![(0.0, 0); high + 1];
    for (step, energy, count) in each {
        sums[step].0 += energy;
        sums[step].1 += count;
    }
    sums.into_iter().map(|(sum, count)| (count > 0).then(|| sum / count as f64)).collect()
}

/// Energy of each sample of readouts of one length, as they are stored.
pub(super) fn energy_of_samples<'r>(
    readouts: impl Iterator<Item = &'r Readout<'r>>,
    samples: usize,
) -> Vec<Option<f64>> {
    let mut sums = vec![0.0; samples];
    for readout in readouts {
        for (sum, column) in sums.iter_mut().zip(readout.data.columns()) {
            *sum += energy_of(column.iter());
        }
    }
    sums.into_iter().map(Some).collect()
}

/// Where the energy peaks; none where it hardly does.
fn peak(energy: &[Option<f64>]) -> Option<usize> {
    let known = energy.iter().flatten();
    let mean = known.clone().sum::<f64>() / known.count() as f64;
    let each = energy.iter().enumerate().filter_map(|(index, energy)| Some((index, (*energy)?)));
    let (index, most) = each.max_by(|a, b| a.1.total_cmp(&b.1))?;
    (most >= PEAK * mean && mean > 0.0).then_some(index)
}

/// Whether there is much less energy at a centre and beside it than at the peak.
fn speaks_against(energy: &[Option<f64>], peak: usize, centre: usize) -> bool {
    let beside = (centre.saturating_sub(1)..=centre + 1).filter_map(|line| *energy.get(line)?);
    let most = beside.fold(0.0, f64::max);
    most > 0.0 && energy[peak].is_some_and(|peak| peak > DOUBT * most)
}

/// Whether `center_sample` may be what it says. Writers leave it 0, and more than half of the encoded samples
/// do not begin at their centre.
fn may_be_centre(stated: usize, samples: usize, encoded: usize) -> bool {
    stated < samples && (stated > 0 || samples == 1 || samples <= encoded.div_ceil(2))
}
