//! Where the centre of k-space lies among lines, partitions and samples: as the header states it, or as the energy of the samples
//! tells where the header states nothing that can be.

use std::collections::BTreeMap;

use rayon::prelude::*;
use rayspin_core::C32;

use super::cartesian::may_be_centre;
use super::frames::note;
use super::{Acquisition, Encoding, Flags, Label, Limits, echoes};

/// How `center_sample` counts the samples of a reversed readout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ReversedCentre {
    /// In the order in which they are stored.
    Stored,
    /// As if the readout were not reversed, which Siemens' scanners do.
    Forward,
}

/// Centres of k-space. What is given replaces what the header says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Centres {
    /// The line, as `kspace_encode_step_1` counts.
    pub line: Option<usize>,
    /// The partition, as `kspace_encode_step_2` counts.
    pub partition: Option<usize>,
    /// How the samples of reversed readouts are counted.
    pub reversed: Option<ReversedCentre>,
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

impl Centres {
    /// These, with what the heads of the whole scan tell of the reversed readouts of an image on the grid.
    pub fn with_heads(
        self,
        heads: &ReadoutHeads,
        label: &Label,
        readouts: &[(usize, &Acquisition)],
        notes: &mut Vec<String>,
    ) -> Self {
        let reversed = |r: &Acquisition| r.trajectory.is_none() && r.flags.contains(Flags::REVERSE);
        echoes::say_uncorrected(heads.corrections, readouts, notes);
        if self.reversed.is_some() || !readouts.iter().any(|(_, readout)| reversed(readout)) {
            return self;
        }
        Self { reversed: heads.convention(label.encoding).map(|found| said(found, notes)), ..self }
    }

    /// All centres of an image: those that are given, and those that its encoding and the energy of its readouts tell.
    pub(super) fn settled(
        self,
        readouts: &[(usize, &Acquisition)],
        encoding: &Encoding,
        notes: &mut Vec<String>,
    ) -> Self {
        say_doubted_echoes(readouts, encoding.encoded.matrix[0], notes);
        // A trajectory states where its samples lie, in as many dimensions as it has.
        let stated = readouts.iter().filter_map(|(_, r)| r.trajectory.as_ref()).map(|t| t.ncols()).min();
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
        Self {
            line: settle(self.line, line, 1, notes),
            partition: settle(self.partition, partition, 2, notes),
            reversed: match self.reversed {
                None if on_grid => Some(reversed_of(readouts, notes)),
                given => given.or(Some(ReversedCentre::Forward)),
            },
        }
    }
}

/// What the heads of a scan's readouts say of their centres: flags, samples and `center_sample`, by encoding.
///
/// ```
/// use rayspin_mri::scan::{Flags, ReadoutHeads, ReversedCentre};
///
/// let mut heads = ReadoutHeads::default();
/// heads.add(0, Flags::default(), 64, 20);
/// heads.add(0, Flags::REVERSE, 64, 43); // the stored sample that mirrors 20
/// assert_eq!(heads.convention(0), Some(ReversedCentre::Stored));
/// ```
#[derive(Debug, Clone, Default)]
pub struct ReadoutHeads {
    /// Readouts for phase correction.
    corrections: usize,
    /// Whether readouts of an encoding, a number of samples and a centre run forwards, and whether some are reversed.
    directions: BTreeMap<(usize, usize, usize), [bool; 2]>,
}

impl ReadoutHeads {
    /// Takes the head of a readout. Noise has no centre.
    pub fn add(&mut self, encoding: usize, flags: Flags, samples: usize, centre: usize) {
        self.corrections += usize::from(flags.contains(Flags::PHASE_CORRECTION));
        if !flags.contains(Flags::NOISE) {
            let reversed = usize::from(flags.contains(Flags::REVERSE));
            self.directions.entry((encoding, samples, centre)).or_default()[reversed] = true;
        }
    }

    /// How reversed readouts are counted: one has the number of the others, or the number that mirrors it. None where they do not
    /// tell.
    pub fn convention(&self, encoding: usize) -> Option<ReversedCentre> {
        let (mut stored, mut forward) = (false, false);
        let own = (encoding, 0, 0)..=(encoding, usize::MAX, usize::MAX);
        for (&(_, samples, centre), _) in self.directions.range(own).filter(|(_, [_, reversed])| *reversed) {
            let Some(mirrored) = mirrored(samples, centre).filter(|&mirrored| mirrored != centre) else {
                continue;
            };
            let runs_forward = |centre| {
                self.directions.get(&(encoding, samples, centre)).is_some_and(|[forward, _]| *forward)
            };
            stored |= runs_forward(mirrored);
            forward |= runs_forward(centre);
        }
        match (stored, forward) {
            (true, false) => Some(ReversedCentre::Stored),
            (false, true) => Some(ReversedCentre::Forward),
            _ => None,
        }
    }
}

/// The sample that lies where `sample` does once the readout is turned round.
fn mirrored(samples: usize, sample: usize) -> Option<usize> {
    samples.checked_sub(1)?.checked_sub(sample)
}

/// The convention of an image's readouts; where they are reversed alone, the centre that is nearer to the peak of their energy.
fn reversed_of(readouts: &[(usize, &Acquisition)], notes: &mut Vec<String>) -> ReversedCentre {
    let mut heads = ReadoutHeads::default();
    readouts.iter().for_each(|(_, r)| heads.add(0, r.flags, r.data.ncols(), r.centre_sample));
    if let Some(found) = heads.convention(0) {
        return said(found, notes);
    }
    let reversed = readouts.iter().find(|(_, r)| r.flags.contains(Flags::REVERSE));
    let Some((_, first)) = reversed else { return ReversedCentre::Forward };
    let (samples, stated) = (first.data.ncols(), first.centre_sample);
    let alike = |r: &Acquisition| {
        r.flags.contains(Flags::REVERSE) && (r.data.ncols(), r.centre_sample) == (samples, stated)
    };
    let Some(mirrored) = mirrored(samples, stated) else { return ReversedCentre::Forward };
    // Echoes of readouts in the two directions may be shifted by a sample or two.
    if mirrored.abs_diff(stated) <= 2 * tolerance(samples) {
        return ReversedCentre::Forward;
    }
    let energy = energy_of_samples(readouts, samples, alike);
    match peak(&energy) {
        Some(at) if at.abs_diff(stated) < at.abs_diff(mirrored) => said(ReversedCentre::Stored, notes),
        _ => ReversedCentre::Forward,
    }
}

/// Says what differs from the convention of most scans.
fn said(found: ReversedCentre, notes: &mut Vec<String>) -> ReversedCentre {
    if found == ReversedCentre::Stored {
        let text = "center_sample of reversed readouts counts the samples as they are stored (--reversed-centre overrides)";
        note(notes, text);
    }
    found
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
    fn centre(&self, readouts: &[(usize, &Acquisition)], notes: &mut Vec<String>) -> usize {
        let Self { n, limits, step, on_grid, name, option } = *self;
        let steps = || readouts.iter().map(|(_, r)| usize::from(step(r)));
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
                    self.doubt(&energy(), centre, (low, high), notes);
                }
                return centre;
            }
            let energy = energy();
            let at = peak(&energy);
            // A scan of half of k-space begins at its centre.
            let begins = at.map_or(high + n / 2 < n, |at| at <= 1);
            if centre == 0 && low == 0 && begins {
                return centre;
            }
            let found = self.nearest(at, (centre > 0).then_some(centre), low, high);
            if found != centre {
                note(
                    notes,
                    format!(
                        "the header's centre of {name}, {centre}, is not where the energy of {low} to {high} peaks: {found} \
                         is assumed (--{option} overrides)"
                    ),
                );
            }
            return found;
        }
        let found = self.nearest(peak(&energy()), None, low, high);
        if on_grid || found != n / 2 {
            self.assumed(found, notes);
        }
        found
    }

    /// Says where the energy of lines from `low` to `high` contradicts the stated centre.
    fn doubt(
        &self,
        energy: &[Option<f64>],
        centre: usize,
        (low, high): (usize, usize),
        notes: &mut Vec<String>,
    ) {
        let Self { n, name, option, .. } = *self;
        let Some(at) = peak(energy).filter(|at| at.abs_diff(centre) > tolerance(n)) else { return };
        if speaks_against(energy, at, centre) {
            note(
                notes,
                format!(
                    "the header's centre of {name} is {centre}, and the energy of {low} to {high} peaks at {at}: if the \
                     image is blurred or doubled, the header is wrong (--{option} {at})"
                ),
            );
        }
    }

    fn assumed(&self, centre: usize, notes: &mut Vec<String>) {
        if self.on_grid && self.n > 1 || centre != self.n / 2 {
            note(notes, format!("the header states no centre of {}: line {centre} assumed", self.name));
        }
    }

    /// A centre for lines from `low` to `high`, whose energy peaks at `peak`: the one that is stated or a usual one, if that is about
    /// as near.
    fn nearest(&self, peak: Option<usize>, stated: Option<usize>, low: usize, high: usize) -> usize {
        let n = self.n;
        let usual = [n / 2, (low + high).div_ceil(2), (high + 1).saturating_sub(n - n / 2)];
        let fits = |centre: &usize| low + n / 2 >= *centre && high + n / 2 < centre + n;
        let mut usual = stated.into_iter().chain(usual).filter(fits);
        match peak {
            Some(at) => {
                let near = usual.filter(|centre| centre.abs_diff(at) <= tolerance(n));
                near.min_by_key(|centre| centre.abs_diff(at)).unwrap_or(at)
            }
            None => usual.next().unwrap_or(n / 2),
        }
    }
}

/// How far the energy's peak may lie from the centre of k-space along an axis of `n`: phases move it.
fn tolerance(n: usize) -> usize {
    (n / 16).max(1)
}

/// Says where the echoes of readouts on a grid of `n` places contradict their `center_sample`. Samples that are alike in all readouts of an
/// image and have their centre in the middle are shifted together, which turns the phase alone.
fn say_doubted_echoes(readouts: &[(usize, &Acquisition)], n: usize, notes: &mut Vec<String>) {
    let mut groups: BTreeMap<_, Vec<(usize, &Acquisition)>> = BTreeMap::new();
    for &(at, readout) in readouts.iter().filter(|(_, r)| r.trajectory.is_none()) {
        let key = (readout.data.ncols(), readout.centre_sample, readout.flags.contains(Flags::REVERSE));
        groups.entry(key).or_default().push((at, readout));
    }
    let several = groups.keys().filter(|(_, _, reversed)| !reversed).count() > 1;
    for ((samples, stated, reversed), own) in groups {
        let shifted = samples <= n && stated.abs_diff(samples / 2) <= 1 && !several;
        // Reversed readouts are counted in two ways, which their own rule tells apart.
        let few = samples < LEAST_LINES || own.len() < LEAST_READOUTS;
        if reversed || shifted || few || !may_be_centre(stated, samples, n) {
            continue;
        }
        let some: Vec<_> = own.iter().copied().step_by(own.len().div_ceil(MOST_READOUTS)).collect();
        let energy = energy_of_samples(&some, samples, |_| true);
        let Some(at) = peak(&energy).filter(|at| at.abs_diff(stated) > tolerance(samples)) else { continue };
        if speaks_against(&energy, at, stated) {
            let text = format!(
                "the center_sample of readouts of {samples} samples is {stated}, and their energy peaks at {at}: if the image is blurred or \
                 doubled, the file is wrong"
            );
            note(notes, text);
        }
    }
}

/// The centre of readouts whose `center_sample` cannot be: the middle, or where their energy peaks if that is elsewhere.
pub(super) fn centre_of_samples(
    readouts: &[(usize, &Acquisition)],
    like: &Acquisition,
    notes: &mut Vec<String>,
) -> usize {
    let (samples, stated) = (like.data.ncols(), like.centre_sample);
    let reversed = |r: &Acquisition| r.flags.contains(Flags::REVERSE);
    let alike =
        |r: &Acquisition| (r.data.ncols(), r.centre_sample, reversed(r)) == (samples, stated, reversed(like));
    let found = peak(&energy_of_samples(readouts, samples, alike));
    let found = found.map(|at| if reversed(like) { samples - 1 - at } else { at });
    let middle = samples / 2;
    let centre = found.filter(|at| at.abs_diff(middle) > tolerance(samples)).unwrap_or(middle);
    note(notes, format!("centre_sample is {stated} of {samples} samples: {centre} assumed"));
    centre
}

fn energy_of<'a>(values: impl Iterator<Item = &'a C32>) -> f64 {
    values.map(|v| f64::from(v.re) * f64::from(v.re) + f64::from(v.im) * f64::from(v.im)).sum()
}

/// Mean energy of a sample of each line from 0 to `high`; none of lines that were not measured.
fn energy_of_steps(
    readouts: &[(usize, &Acquisition)],
    step: fn(&Acquisition) -> u16,
    high: usize,
) -> Vec<Option<f64>> {
    let each: Vec<(usize, f64, usize)> = readouts
        .par_iter()
        .map(|(_, r)| (usize::from(step(r)), energy_of(r.data.iter()), r.data.len()))
        .collect();
    let mut sums = vec![(0.0, 0); high + 1];
    for (at, energy, count) in each {
        sums[at].0 += energy;
        sums[at].1 += count;
    }
    sums.into_iter().map(|(sum, count)| (count > 0).then(|| sum / count as f64)).collect()
}

/// Energy of each sample of the readouts that are `alike`, as they are stored.
pub(super) fn energy_of_samples(
    readouts: &[(usize, &Acquisition)],
    samples: usize,
    alike: impl Fn(&Acquisition) -> bool,
) -> Vec<Option<f64>> {
    let mut sums = vec![0.0; samples];
    for (_, readout) in readouts.iter().filter(|(_, r)| alike(r)) {
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
    let each = energy.iter().enumerate().filter_map(|(at, energy)| Some((at, (*energy)?)));
    let (at, most) = each.max_by(|a, b| a.1.total_cmp(&b.1))?;
    (most >= PEAK * mean && mean > 0.0).then_some(at)
}

/// Whether there is much less energy at a centre and beside it than at the peak.
fn speaks_against(energy: &[Option<f64>], peak: usize, centre: usize) -> bool {
    let beside = (centre.saturating_sub(1)..=centre + 1).filter_map(|at| *energy.get(at)?);
    let most = beside.fold(0.0, f64::max);
    most > 0.0 && energy[peak].is_some_and(|peak| peak > DOUBT * most)
}
