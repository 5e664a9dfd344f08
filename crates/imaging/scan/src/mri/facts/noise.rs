use ndarray::{ArrayD, Axis, Dimension};
use rayon::prelude::*;
use rayspin_core::{C32, Result, Trajectory};
use rayspin_device::cpu;
use serde::Serialize;

use super::edge::Readouts;
use super::region::{Region, shell};
use crate::mri::Samples;
use crate::mri::corrections::NoiseMeasurement;

/// The part of the samples, farthest from the centre, that noise is estimated from.
const RIM: f64 = 0.05;
/// The quantiles of their energies.
const QUANTILES: [f64; 3] = [0.1, 0.5, 0.9];
/// Fewer samples than this tell no noise.
const LEAST: usize = 64;
/// Samples of the rim that are looked at, at most.
const MOST: usize = 1 << 16;
/// Bins of the distance from the centre, up to the corners of the box.
const RINGS: usize = 1 << 12;

/// Where a noise level comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum NoiseSource {
    /// Readouts without signal.
    NoiseScan,
    /// Frequencies along readouts that lie at the edge of the field of view or beyond it.
    Edge,
    /// The samples farthest from the centre of k-space.
    Rim,
}

/// How strong the noise of the samples is.
///
/// Without a noise scan the level is the lower of two upper bounds, since signal raises either. One is from
/// the rim of k-space, the 5 % of the samples that are farthest from the centre. The other is from the edge
/// of the field of view, the frequencies along readouts where an object in air has no signal. In both, σ_c²
/// is the least of Q_p / (−2 ln(1 − p)) for p = 0.1, 0.5 and 0.9. Q_p are quantiles of the energies; the
/// three agree for noise alone.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct NoiseLevel {
    /// Where it comes from.
    pub source: NoiseSource,
    /// σ: standard deviation of the real part of a sample, in the file's unit, root mean square over coils.
    pub sample_std: f64,
    /// Signal-to-noise ratio: SNR² = Σ_c (E_c − 2σ_c²) / σ_c², E_c being the mean of |d_c|² over k-space,
    /// estimated for places between samples from samples at the same distance from the centre. So it is the
    /// root mean square of the optimally combined image over the field of view, over the standard deviation
    /// of the real part of its noise, if every place of k-space were measured once. A lower bound without a
    /// noise scan.
    pub snr: f64,
}

/// The least of the variances that quantiles of energies tell; infinite where these are few.
fn by_quantiles(mut energies: Vec<f32>) -> f64 {
    if energies.len() < LEAST {
        return f64::INFINITY;
    }
    let told = QUANTILES.map(|part| {
        let place = (energies.len() as f64 * part) as usize;
        f64::from(*energies.select_nth_unstable_by(place, f32::total_cmp).1) / (-2.0 * (1.0 - part).ln())
    });
    told.into_iter().fold(f64::INFINITY, f64::min)
}

/// Noise and signal of a coil.
struct Coil {
    source: NoiseSource,
    variance: f64,
    energy: f64,
}

/// The noise level of samples that span `region`, which has `counts` cells at each rounded distance from the
/// centre.
pub(super) fn level(
    samples: &Samples,
    region: &Region,
    counts: &[f64],
    along: &Readouts,
    measured: Option<&NoiseMeasurement>,
) -> Result<Option<NoiseLevel>> {
    let places = Places::new(samples, region)?;
    let rim = places.rim();
    let coils: Vec<usize> = (0..samples.coils()).collect();
    let parts = coils.par_iter().map(|&coil| {
        let (energy, outer) = places.of_coil(samples, coil, counts, rim.as_ref())?;
        let by_scan = |measured: &NoiseMeasurement| {
            measured.covariance[[coil, coil]].re / 2.0 * measured.dwell_ratio.unwrap_or(1.0)
        };
        let variance = match measured {
            Some(measured) => [(NoiseSource::NoiseScan, by_scan(measured)); 2],
            None => [
                (NoiseSource::Rim, by_quantiles(outer)),
                (NoiseSource::Edge, by_quantiles(along.energies(samples, coil))),
            ],
        };
        let [first, second] = variance;
        let (source, variance) = if second.1 < first.1 { second } else { first };
        Ok(Coil { source, variance, energy })
    });
    let coils: Vec<Coil> = parts.collect::<Result<_>>()?;
    let known = |coil: &&Coil| coil.variance > 0.0 && coil.variance.is_finite();
    let usable: Vec<&Coil> = coils.iter().filter(known).collect();
    if usable.is_empty() {
        return Ok(None);
    }
    let variance = usable.iter().map(|coil| coil.variance).sum::<f64>() / usable.len() as f64;
    let ratio = |coil: &&Coil| (coil.energy / coil.variance - 2.0).max(0.0);
    let edges = usable.iter().filter(|coil| coil.source == NoiseSource::Edge).count();
    let source = match measured {
        Some(_) => NoiseSource::NoiseScan,
        None if 2 * edges > usable.len() => NoiseSource::Edge,
        None => NoiseSource::Rim,
    };
    Ok(Some(NoiseLevel {
        source,
        sample_std: variance.sqrt(),
        snr: usable.iter().map(ratio).sum::<f64>().sqrt(),
    }))
}

/// The samples at the rim: those in this ring and beyond, one of every `step`.
struct Rim {
    ring: u16,
    step: usize,
    samples: usize,
}

/// The places of the samples of a coil: a shell, the rounded distance from the centre, and a ring, the
/// distance relative to the box.
struct Places {
    shells: Vec<u16>,
    rings: Vec<u16>,
}

impl Places {
    fn new(samples: &Samples, region: &Region) -> Result<Self> {
        let half = region.half();
        let last = region.shells().saturating_sub(1).min(usize::from(u16::MAX));
        let place = |k: [f64; 3]| {
            let square: f64 = k.iter().zip(&half).map(|(k, half)| (k / half.max(0.5)).powi(2)).sum();
            let ring = (square / half.len().max(1) as f64).sqrt() * RINGS as f64;
            let shell = shell(k.into_iter().take(half.len())).min(last);
            (shell as u16, (ring as usize).min(RINGS) as u16)
        };
        let (mut shells, mut rings) = (Vec::new(), Vec::new());
        match samples {
            Samples::Cartesian { sampled, .. } => {
                let count = sampled.iter().filter(|known| **known).count();
                shells = cpu::try_with_capacity("places of samples", count)?;
                rings = cpu::try_with_capacity("places of samples", count)?;
                each_of_grid(sampled, |k| {
                    let (shell, ring) = place(k);
                    shells.push(shell);
                    rings.push(ring);
                });
            }
            Samples::NonCartesian { trajectory, .. } => {
                cpu::try_reserve("places of samples", &mut shells, trajectory.samples())?;
                cpu::try_reserve("places of samples", &mut rings, trajectory.samples())?;
                let points = (0..trajectory.samples()).into_par_iter().with_min_len(1 << 12);
                points
                    .map(|sample| place(point(trajectory, sample)))
                    .unzip_into_vecs(&mut shells, &mut rings);
            }
        }
        Ok(Self { shells, rings })
    }

    fn rim(&self) -> Option<Rim> {
        let mut rings = vec![0usize; RINGS + 1];
        let total = self.rings.len();
        self.rings.iter().for_each(|&ring| rings[usize::from(ring)] += 1);
        let wanted = ((total as f64 * RIM) as usize).max(LEAST);
        let mut samples = 0;
        let ring = (0..=RINGS).rev().find(|&ring| {
            samples += rings[ring];
            samples >= wanted
        })?;
        // Nearly all samples at one distance have no rim.
        (samples <= total / 2).then_some(Rim { ring: ring as u16, step: samples.div_ceil(MOST), samples })
    }

    /// The mean energy over the region, and the energies at the rim.
    fn of_coil(
        &self,
        samples: &Samples,
        coil: usize,
        counts: &[f64],
        rim: Option<&Rim>,
    ) -> Result<(f64, Vec<f32>)> {
        let mut shells = vec![(0.0, 0usize); counts.len()];
        let wanted = rim.map_or(0, |rim| rim.samples.div_ceil(rim.step));
        let mut outer = cpu::try_with_capacity("samples at the rim of k-space", wanted)?;
        let mut seen = 0;
        let mut places = self.shells.iter().zip(&self.rings);
        samples.each_value(coil, |value| {
            let Some((&shell, &ring)) = places.next() else { return };
            let energy = f64::from(value.re).powi(2) + f64::from(value.im).powi(2);
            let sums = &mut shells[usize::from(shell)];
            *sums = (sums.0 + energy, sums.1 + 1);
            if let Some(rim) = rim.filter(|rim| ring >= rim.ring) {
                if seen % rim.step == 0 {
                    outer.push(energy as f32);
                }
                seen += 1;
            }
        });
        let places: f64 = counts.iter().sum();
        let mean = |((sum, count), places): (&(f64, usize), &f64)| sum / (*count).max(1) as f64 * places;
        let energy = shells.iter().zip(counts).map(mean).sum::<f64>() / places.max(1.0);
        Ok((energy, outer))
    }
}

impl Samples {
    fn coils(&self) -> usize {
        match self {
            Self::Cartesian { kspace, .. } => kspace.shape()[0],
            Self::NonCartesian { data, .. } => data.nrows(),
        }
    }

    /// Calls `take` with every sample of a coil.
    fn each_value(&self, coil: usize, mut take: impl FnMut(C32)) {
        match self {
            Self::Cartesian { kspace, sampled } => {
                let values = kspace.index_axis(Axis(0), coil);
                let known = values.iter().zip(sampled).filter(|(_, known)| **known);
                known.for_each(|(&value, _)| take(value));
            }
            Self::NonCartesian { data, .. } => data.row(coil).iter().for_each(|&value| take(value)),
        }
    }
}

/// A point of a trajectory as x, y, z.
#[inline]
pub(super) fn point(trajectory: &Trajectory, sample: usize) -> [f64; 3] {
    let mut k = [0.0; 3];
    k.iter_mut().zip(trajectory.point(sample)).for_each(|(k, &stated)| *k = stated);
    k
}

/// Calls `take` with the place of every sample of a grid from its centre: x, y, z, with z = 0 in two
/// dimensions.
fn each_of_grid(sampled: &ArrayD<bool>, mut take: impl FnMut([f64; 3])) {
    let shape = sampled.shape();
    let Some((&nx, outer)) = shape.split_last() else { return };
    let offset = |index: usize, n: usize| index as f64 - (n / 2) as f64;
    for (known, index) in sampled.rows().into_iter().zip(ndarray::indices(outer)) {
        let mut k = [0.0; 3];
        for (k, (&index, &n)) in k[1..].iter_mut().zip(index.as_array_view().iter().zip(outer).rev()) {
            *k = offset(index, n);
        }
        for (x, _) in known.iter().enumerate().filter(|(_, known)| **known) {
            k[0] = offset(x, nx);
            take(k);
        }
    }
}
