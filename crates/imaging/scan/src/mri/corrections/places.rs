//! Where the samples of a readout lie along it, and what makes even samples of them. The equations are those
//! of [`super::ramps`].

use std::f64::consts::{FRAC_PI_2, PI, TAU};
use std::ops::Range;

use ndarray::Array2;
use rayon::prelude::*;
use rayspin_core::cholesky::{cholesky, solve};
use rayspin_core::{C32, C64, Error, Result};

use crate::mri::raw::{RampShape, Ramps, ReadoutPlaces};

/// The variance of noise that is reckoned with, as a part of the samples' own. Over objects that fill the
/// image, errors are smallest from 1e-4 to 1e-3.
const NOISE: f64 = 1e-3;
/// How far from even places samples may lie and count as even, in samples.
const EVEN: f64 = 0.02;

/// How even samples are made of those that are kept.
pub(super) struct Evens {
    /// `[even, kept sample]`.
    pub(super) weights: Array2<f32>,
    /// The even samples that the kept ones cover.
    pub(super) measured: Range<usize>,
}

/// Where samples lie in k-space.
pub(super) struct Places {
    /// Of forward readouts, and of reversed ones with the opposite sign: in cycles per encoded field of view,
    /// rising in the order of time.
    pub(super) k: [Vec<f64>; 2],
    /// The part w of the encoded field of view that the samples resolve where they lie farthest apart.
    width: f64,
    /// Where the receiver's frequency has them, if the slice's place sets this frequency.
    pub(super) receiver: Option<Vec<f64>>,
}

impl Places {
    /// None of times that cannot be.
    pub(super) fn of(ramps: &Ramps) -> Option<Self> {
        let Ramps { up_us: up, flat_us: flat, down_us: down, delay_us: start, sampling_us: length, .. } =
            *ramps;
        let n = ramps.samples;
        let times = [up, flat, down, start, length];
        let whole = up + flat + down;
        // Delays of the receiver may put the ends a little beyond the gradient.
        let slack = 0.05 * whole;
        let fit = times.iter().all(|time| time.is_finite() && *time >= 0.0)
            && length > 0.0
            && n > 1
            && start + length <= whole + slack;
        if !fit {
            return None;
        }
        let area = |time: f64| area(ramps, time);
        let step = (area(start + length) - area(start)) / n as f64;
        if !(step > 0.0 && step.is_finite()) {
            return None;
        }
        let (dwell, middle) = (length / n as f64, area(whole / 2.0));
        let k: Vec<f64> = (0..n).map(|s| (area(start + (s as f64 + 0.5) * dwell) - middle) / step).collect();
        let receiver = (0..n).map(|s| (s as f64 - (n - 1) as f64 / 2.0) * dwell / step).collect();
        Some(Self { width: resolved(&k), k: [k.clone(), k], receiver: Some(receiver) })
    }

    /// None of places that do not rise along forward readouts and fall along reversed ones, one by one.
    pub(super) fn stated(places: &ReadoutPlaces) -> Option<Self> {
        let ReadoutPlaces { forward, reversed } = places;
        let k = [forward.to_vec(), reversed.iter().map(|k| -k).collect()];
        let rises = |k: &Vec<f64>| {
            k.len() > 1 && k.iter().all(|k| k.is_finite()) && k.windows(2).all(|two| two[0] < two[1])
        };
        (k[0].len() == k[1].len() && k.iter().all(rises)).then(|| Self {
            width: resolved(&k[0]).min(resolved(&k[1])),
            k,
            receiver: None,
        })
    }

    /// What makes even samples of places that are one apart: the sample at the centre of k-space and how
    /// far it lies behind it, in the direction in which k rises, of forward and of reversed readouts.
    /// None of other places, or where a centre was not measured.
    pub(super) fn offsets(&self) -> Option<[(usize, f64); 2]> {
        let of_direction = |reversed: bool| {
            let k = &self.k[usize::from(reversed)];
            let (first, last) = (*k.first()?, *k.last()?);
            let even = k.iter().enumerate().all(|(s, k)| (k - first - s as f64).abs() < EVEN);
            let lowest = if reversed { -last } else { first };
            let centre = centre_of(lowest, k.len());
            let measured = (0.0..k.len() as f64).contains(&centre);
            (even && measured).then_some((centre as usize, lowest + centre))
        };
        Some([of_direction(false)?, of_direction(true)?])
    }

    /// Even samples of a readout whose samples `kept` carry signal. The middle sample of n, n/2 in the
    /// direction in which k rises, lies at the centre of k-space.
    ///
    /// Errors: places that coincide so that no weights are found.
    pub(super) fn evens(&self, kept: Range<usize>, reversed: bool) -> Result<Evens> {
        let own = &self.k[usize::from(reversed)];
        let n = own.len();
        let middle = if reversed { n - 1 - n / 2 } else { n / 2 };
        let place = |even: usize| even as f64 - middle as f64;
        let k = own.get(kept).unwrap_or_default();
        let covariance = Array2::from_shape_fn((k.len(), k.len()), |(a, b)| {
            C64::from(sinc(self.width * (k[a] - k[b])) + if a == b { NOISE } else { 0.0 })
        });
        let factor = cholesky("samples on ramps", covariance.view())?;
        let rows: Vec<Vec<f32>> = (0..n)
            .into_par_iter()
            .map(|even| {
                let mut row: Vec<C64> =
                    k.iter().map(|k| C64::from(sinc(self.width * (place(even) - k)))).collect();
                solve(factor.view(), &mut row);
                row.iter().map(|weight| weight.re as f32).collect()
            })
            .collect();
        let weights = Array2::from_shape_vec((n, k.len()), rows.concat())
            .map_err(|error| Error::value("samples on ramps", "a matrix of weights", error))?;
        let [first, last] = [k.first(), k.last()].map(|end| end.copied().unwrap_or_default());
        let covered = |even: &usize| place(*even) >= first - 0.5 && place(*even) <= last + 0.5;
        let start = (0..n).find(covered).unwrap_or(n);
        let end = (0..n).rfind(covered).map_or(start, |even| even + 1);
        Ok(Evens { weights, measured: start..end })
    }

    /// What samples of a forward readout are multiplied by where the slice lies `off` fields of view off the
    /// centre.
    pub(super) fn turns(&self, off: f64) -> Vec<C32> {
        let k = &self.k[0];
        let Some(receiver) = &self.receiver else { return vec![C32::ONE; k.len()] };
        let phase = |(k, receiver): (&f64, &f64)| (TAU * off * (k - receiver)).rem_euclid(TAU) as f32;
        k.iter().zip(receiver).map(phase).map(|phase| C32::from_polar(1.0, phase)).collect()
    }
}

/// The part of the encoded field of view that samples in cycles over it resolve, by the widest step.
fn resolved(k: &[f64]) -> f64 {
    k.windows(2).map(|two| two[1] - two[0]).fold(1.0, f64::max).recip()
}

/// The sample nearest to the centre of k-space of n samples that are one apart, where the lowest lies at
/// `lowest`. Of two that are as near it is the usual one, n/2.
fn centre_of(lowest: f64, n: usize) -> f64 {
    let usual = (n / 2) as f64;
    if (lowest + usual).abs() < 0.5 + EVEN { usual } else { (-lowest).round() }
}

/// The area of the gradient until a time, in µs of full strength.
pub(super) fn area(ramps: &Ramps, time: f64) -> f64 {
    let Ramps { shape, up_us: up, flat_us: flat, down_us: down, .. } = *ramps;
    // From the start of a rise that takes `length`.
    let rise = |time: f64, length: f64| match shape {
        _ if length == 0.0 => 0.0,
        RampShape::Trapezoid => 0.5 * time * time / length,
        RampShape::Sinusoid => length / FRAC_PI_2 * (1.0 - (FRAC_PI_2 * time / length).cos()),
    };
    let on_rise = rise(time.clamp(0.0, up), up);
    let on_top = (time - up).clamp(0.0, flat);
    let left = down - (time - up - flat).clamp(0.0, down);
    on_rise + on_top + rise(down, down) - rise(left, down)
}

fn sinc(x: f64) -> f64 {
    if x.abs() < 1e-9 { 1.0 } else { (PI * x).sin() / (PI * x) }
}
