//! Linear interpolation at regular places along a line, and its transpose: the inner loops of all projectors.

use rayspin_core::Real;
use rayspin_device::cpu::simd::prelude::*;
use rayspin_device::cpu::simd::{Simd, SimdReal};

/// Zeros before and after the values of a line. Vectors are read as a whole from up to two vectors beyond the
/// ends.
pub(in crate::projection) const PAD: usize = 48;

/// A line of values between zeros.
pub(in crate::projection) fn padded<R: Real>(len: usize) -> Vec<R> {
    vec![R::zero(); len + 2 * PAD]
}

/// Real numbers whose lines are resampled. Positions count from the first value; between −1 and 0, and beyond
/// the last value, the line falls to 0.
pub trait Resample: SimdReal {
    /// `out[k] += line(start + k·slope)`. The line is [`padded`]. Elements of `out` whose places lie beyond
    /// the line may change by 0.
    fn gather<S: Simd>(simd: S, line: &[Self], start: f64, slope: f64, out: &mut [Self]);

    /// The transpose: `out[i] += Σ_k values[k] hat(start + k·slope − i)`, with hat(t) = max(0, 1 − |t|). The
    /// values are [`padded`].
    fn scatter<S: Simd>(simd: S, values: &[Self], start: f64, slope: f64, out: &mut [Self]);
}

/// The k of `0..count` for which −1 < start + k·slope < len, and perhaps neighbours at which the line is 0.
fn seen(start: f64, slope: f64, count: usize, len: usize) -> std::ops::Range<usize> {
    let (mut low, mut high) = (0.0, count as f64);
    if slope == 0.0 {
        if start <= -1.0 || start >= len as f64 {
            high = 0.0;
        }
    } else {
        let (one, other) = ((-1.0 - start) / slope, (len as f64 - start) / slope);
        low = one.min(other).ceil().clamp(0.0, count as f64);
        high = (one.max(other).floor() + 1.0).clamp(0.0, count as f64);
    }
    let (low, high) = (low as usize, high as usize);
    low..high.max(low)
}

fn gather_scalar<R: Real>(line: &[R], start: f64, slope: f64, out: &mut [R]) {
    let range = seen(start, slope, out.len(), line.len() - 2 * PAD);
    for k in range {
        let place = start + k as f64 * slope;
        let low = place.floor();
        let fraction = <R as Real>::from_f64(place - low);
        let i = (low + PAD as f64) as usize;
        out[k] += line[i] + fraction * (line[i + 1] - line[i]);
    }
}

fn scatter_scalar<R: Real>(values: &[R], start: f64, slope: f64, out: &mut [R]) {
    let count = values.len() - 2 * PAD;
    for k in seen(start, slope, count, out.len()) {
        let place = start + k as f64 * slope;
        let low = place.floor();
        let fraction = <R as Real>::from_f64(place - low);
        let value = values[PAD + k];
        for (index, value) in [(low, value - fraction * value), (low + 1.0, fraction * value)] {
            if index >= 0.0 && index < out.len() as f64 {
                out[index as usize] += value;
            }
        }
    }
}

impl Resample for f64 {
    #[inline(always)]
    fn gather<S: Simd>(_: S, line: &[f64], start: f64, slope: f64, out: &mut [f64]) {
        gather_scalar(line, start, slope, out);
    }

    #[inline(always)]
    fn scatter<S: Simd>(_: S, values: &[f64], start: f64, slope: f64, out: &mut [f64]) {
        scatter_scalar(values, start, slope, out);
    }
}

/// Bytes of the elements of a table with these indices.
#[inline(always)]
fn bytes_of<S: Simd>(simd: S, index: S::f32s) -> S::u8s {
    let index: S::u32s = index.to_int();
    let four = S::u32s::splat(simd, 0x0404_0404);
    (index * four + S::u32s::splat(simd, 0x0302_0100)).bitcast()
}

impl Resample for f32 {
    /// Neighbouring places lie in two neighbouring vectors of the line, from which one permutation takes
    /// them.
    #[inline(always)]
    fn gather<S: Simd>(simd: S, line: &[f32], start: f64, slope: f64, out: &mut [f32]) {
        if !(0.0..=2.0).contains(&slope) {
            return gather_scalar(line, start, slope, out);
        }
        let lanes = S::f32s::LEN;
        let range = seen(start, slope, out.len(), line.len() - 2 * PAD);
        let near = slope <= 1.0;
        let rise = S::f32s::from_slice(simd, &RAMP[..lanes]) * S::f32s::splat(simd, slope as f32);
        let most = S::f32s::splat(simd, (if near { lanes } else { 2 * lanes } - 1) as f32);
        let mut k = range.start;
        while k < range.end {
            let base = start + k as f64 * slope;
            let low = base.floor();
            let from = (low + PAD as f64) as usize;
            let place = rise + S::f32s::splat(simd, (base - low) as f32);
            // Rounding may reach the next table.
            let index = place.floor().min(most);
            let fraction = place - index;
            let bytes = bytes_of(simd, index);
            let (here, next) = (&line[from..from + 2 * lanes + 1], &line[from + 1..from + 2 * lanes + 1]);
            let (a, b) = if near {
                let a = S::f32s::from_slice(simd, &here[..lanes]).swizzle_dyn(bytes);
                (a, S::f32s::from_slice(simd, &next[..lanes]).swizzle_dyn(bytes))
            } else {
                let second = S::f32s::from_slice(simd, &here[lanes..2 * lanes]);
                let a = S::f32s::from_slice(simd, &here[..lanes]).concat_swizzle_dyn(second, bytes);
                let second = S::f32s::from_slice(simd, &next[lanes..2 * lanes]);
                (a, S::f32s::from_slice(simd, &next[..lanes]).concat_swizzle_dyn(second, bytes))
            };
            let value = (b - a).mul_add(fraction, a);
            if let Some(out) = out.get_mut(k..k + lanes) {
                (S::f32s::from_slice(simd, out) + value).store_slice(out);
            } else {
                out[k..].iter_mut().zip(value.as_slice()).for_each(|(out, value)| *out += value);
            }
            k += lanes;
        }
    }

    /// An element takes the few values whose places lie within 1 of it, which are neighbours.
    #[inline(always)]
    fn scatter<S: Simd>(simd: S, values: &[f32], start: f64, slope: f64, out: &mut [f32]) {
        let count = values.len() - 2 * PAD;
        if slope < 0.5 || count == 0 || out.is_empty() {
            return scatter_scalar(values, start, slope, out);
        }
        let lanes = S::f32s::LEN;
        let last = start + (count - 1) as f64 * slope;
        let first = start.floor().clamp(0.0, out.len() as f64) as usize;
        let end = (last.floor() + 2.0).clamp(0.0, out.len() as f64) as usize;
        let inverse = 1.0 / slope;
        let terms = (2.0 * inverse).floor() as usize + 1;
        let near = inverse <= 1.0;
        let ramp = S::f32s::from_slice(simd, &RAMP[..lanes]);
        let rise = ramp * S::f32s::splat(simd, inverse as f32);
        let most = S::f32s::splat(simd, (if near { lanes } else { 2 * lanes } - 1) as f32);
        let (slopes, one) = (S::f32s::splat(simd, slope as f32), S::f32s::splat(simd, 1.0));
        let zero = S::f32s::splat(simd, 0.0);
        let mut i = first;
        while i < end {
            // Values after `low` come nearer to element i than 1.
            let base = (i as f64 - 1.0 - start) * inverse;
            let low = base.floor();
            let index = (rise + S::f32s::splat(simd, (base - low) as f32)).floor().min(most);
            let bytes = bytes_of(simd, index);
            let away = index.mul_add(slopes, -ramp);
            let mut sum = zero;
            for term in 0..terms {
                let k = low + 1.0 + term as f64;
                let from = (k + PAD as f64) as usize;
                let table = &values[from..from + 2 * lanes];
                let value = match near {
                    true => S::f32s::from_slice(simd, &table[..lanes]).swizzle_dyn(bytes),
                    false => {
                        let second = S::f32s::from_slice(simd, &table[lanes..]);
                        S::f32s::from_slice(simd, &table[..lanes]).concat_swizzle_dyn(second, bytes)
                    }
                };
                let offset = (start + k * slope - i as f64) as f32;
                let weight = (one - (away + S::f32s::splat(simd, offset)).abs()).max(zero);
                sum = value.mul_add(weight, sum);
            }
            if let Some(out) = out.get_mut(i..i + lanes) {
                (S::f32s::from_slice(simd, out) + sum).store_slice(out);
            } else {
                out[i..].iter_mut().zip(sum.as_slice()).for_each(|(out, sum)| *out += sum);
            }
            i += lanes;
        }
    }
}

const RAMP: [f32; 16] = [0., 1., 2., 3., 4., 5., 6., 7., 8., 9., 10., 11., 12., 13., 14., 15.];

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rayspin_device::cpu::simd::{dispatch, levels};

    use super::*;

    fn line(len: usize, seed: u64) -> Vec<f32> {
        let mut line = padded(len);
        for (i, value) in line[PAD..PAD + len].iter_mut().enumerate() {
            *value = rayspin_tune::input::signed_unit(seed, i);
        }
        line
    }

    proptest! {
        #[test]
        fn both_directions_match_the_formula_on_all_levels(
            len in 1usize..80,
            count in 1usize..80,
            start in -90.0f64..90.0,
            slope in prop_oneof![-3.0f64..3.0, Just(0.0), Just(1.0), Just(0.5), Just(2.0), Just(1.0 - 1e-9), 1e-3..1e-2f64, 3.0..40.0f64],
            whole in any::<bool>(),
            seed in any::<u64>(),
        ) {
            let start = if whole { start.round() } else { start };
            let place = |k: usize| start + k as f64 * slope;
            let hat = |t: f64| (1.0 - t.abs()).max(0.0);
            let from = line(len, seed);
            let to = line(count, seed ^ 1);
            let gathered: Vec<f64> = (0..count).map(|k| 0.5 + (0..len).map(|i| f64::from(from[PAD + i]) * hat(place(k) - i as f64)).sum::<f64>()).collect();
            let scattered: Vec<f64> = (0..len).map(|i| 0.5 + (0..count).map(|k| f64::from(to[PAD + k]) * hat(place(k) - i as f64)).sum::<f64>()).collect();
            for level in levels() {
                let mut out = vec![0.5f32; count];
                dispatch!(level, simd => Resample::gather(simd, &from, start, slope, &mut out));
                for (found, wanted) in out.iter().zip(&gathered) {
                    prop_assert!((f64::from(*found) - wanted).abs() < 5e-6, "{level:?}: {found} for {wanted}");
                }
                let mut out = vec![0.5f32; len];
                dispatch!(level, simd => Resample::scatter(simd, &to, start, slope, &mut out));
                for (found, wanted) in out.iter().zip(&scattered) {
                    let rounding = 5e-6 * (1.0 + 1.0 / slope.abs().max(0.02));
                    prop_assert!((f64::from(*found) - wanted).abs() < rounding, "{level:?}: {found} for {wanted}");
                }
            }
        }
    }
}
