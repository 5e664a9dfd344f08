//! Repetition time, echo times and flip angle of a sequence, as far as they follow from it.

use rayspin_scan::mri::AcquisitionHead;

use super::{CONSTANT, Sequence};
use crate::ismrmrd::Followed;

/// By how much the flip angles of a scan may differ and count as one, degrees.
const SAME_ANGLE: f64 = 0.1;
/// By how much distances of excitations may differ and count as one, s: a step of the raster of blocks.
const SAME_TIME: f64 = 1.5e-5;

/// An excitation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Excitation {
    /// Its centre, s.
    pub(super) time: f64,
    pub(super) degrees: f64,
    /// How far its frequency lies from the scanner's, Hz. It tells slices apart.
    pub(super) offset_hz: f64,
}

/// When a readout is taken.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Taken {
    /// The number of the last excitation before it.
    pub(super) excitation: Option<usize>,
    /// The time of the first sample, and from one to the next, s.
    pub(super) first: f64,
    pub(super) dwell: f64,
}

/// When things happen.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Times {
    pub(super) excitations: Vec<Excitation>,
    /// The time of each readout.
    pub(super) taken: Vec<Taken>,
}

impl Sequence {
    /// What follows for the image readouts of a scan, whose readouts these are:
    /// - the time from an excitation's centre to the sample that is nearest to k = 0,
    /// - the flip angle 2π |∫ B(t) dt| of the excitations that images are made of, if it is the same,
    /// - the time from one of these to the next of the same frequency, if it is the same.
    pub(super) fn followed<'a>(&self, played: impl Iterator<Item = &'a AcquisitionHead>) -> Followed {
        let Times { excitations, taken } = &self.times;
        let images: Vec<(usize, &AcquisitionHead)> =
            played.enumerate().filter(|(_, head)| head.flags.is_image()).collect();
        let mut used: Vec<usize> =
            images.iter().filter_map(|(number, _)| taken.get(*number)?.excitation).collect();
        used.sort_unstable();
        used.dedup();
        let used: Vec<Excitation> =
            used.iter().filter_map(|number| excitations.get(*number).copied()).collect();
        let angles = used.iter().map(|one| one.degrees);
        let angle = one_value(angles, SAME_ANGLE).filter(|degrees| *degrees > 0.0);
        let mut by_slice = used;
        by_slice.sort_by(|a, b| a.offset_hz.total_cmp(&b.offset_hz).then(a.time.total_cmp(&b.time)));
        let distances = by_slice.windows(2).filter(|two| two[0].offset_hz == two[1].offset_hz);
        let repetition = one_value(distances.map(|two| two[1].time - two[0].time), SAME_TIME);
        let contrasts =
            images.iter().map(|(_, head)| head.counters.contrast).max().map_or(0, |last| last + 1);
        let of_contrast = |contrast| {
            let own = images.iter().filter(|(_, head)| head.counters.contrast == contrast);
            self.echo_time(&own.map(|(number, _)| *number).collect::<Vec<usize>>())
        };
        let echoes: Option<Vec<f64>> = (0..contrasts).map(of_contrast).collect();
        Followed {
            repetition_times: repetition.map(|seconds| rounded(1e3 * seconds)).into_iter().collect(),
            echo_times: echoes
                .unwrap_or_default()
                .into_iter()
                .map(|seconds| rounded(1e3 * seconds))
                .collect(),
            // Amplitudes in files have six digits.
            flip_angles: angle.map(|degrees| (degrees * 1e3).round() / 1e3).into_iter().collect(),
        }
    }

    /// The time from excitation to the centre of k-space, s; none where readouts pass it at several times.
    fn echo_time(&self, readouts: &[usize]) -> Option<f64> {
        let encoded = self.encoded();
        let widest = (0..3).map(|axis| self.span(axis)).map(|[low, high]| high - low).fold(0.0, f64::max);
        // The distance from the centre, and the time since the excitation, of a readout's nearest sample.
        let nearest = |number: &usize| {
            let taken = self.times.taken.get(*number)?;
            let excited = self.times.excitations.get(taken.excitation?)?.time;
            let distance = |place: ndarray::ArrayView1<'_, f64>| {
                (0..3).filter(|axis| encoded[*axis]).map(|axis| place[axis].powi(2)).sum::<f64>().sqrt()
            };
            let places = self.readouts.get(*number)?.rows().into_iter().map(distance).enumerate();
            let (sample, distance) = places.min_by(|a, b| a.1.total_cmp(&b.1))?;
            Some((distance, taken.first + sample as f64 * taken.dwell - excited, taken.dwell))
        };
        let all: Vec<(f64, f64, f64)> = readouts.iter().map(nearest).collect::<Option<_>>()?;
        let least = all.iter().map(|(distance, ..)| *distance).fold(f64::INFINITY, f64::min);
        let at_centre = || all.iter().filter(|(distance, ..)| *distance <= least + CONSTANT * widest);
        // Readouts in two directions may have the sample before or behind the centre.
        let dwell = at_centre().map(|(.., dwell)| *dwell).fold(0.0, f64::max);
        one_value(at_centre().map(|(_, time, _)| *time), 1.5 * dwell)
    }
}

/// The first value where all are the same.
fn one_value(values: impl Iterator<Item = f64>, tolerance: f64) -> Option<f64> {
    let mut values = values;
    let first = values.next().filter(|first| first.is_finite())?;
    values.all(|value| (value - first).abs() <= tolerance).then_some(first)
}

/// Without the rounding of sums: six digits behind the point.
fn rounded(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}
