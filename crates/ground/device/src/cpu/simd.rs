//! SIMD with run-time dispatch. This is the one module that names the SIMD library. It adds vector functions
//! that the library lacks.
//!
//! A kernel is a function over `S: Simd`, marked `#[inline(always)]`. It is called once, inside [`dispatch!`]
//! with the level of [`super::Cpu::level`]. Its whole call tree is inlined into a body compiled for that
//! instruction set. Code that serves both precisions is generic over `T:` [`SimdReal`] and works on
//! [`Lanes<S, T>`](Lanes).
//!
//! A closure inside a kernel is a function of its own. A closure that is an argument of a kernel's function
//! needs `#[inline(always)]` too. A closure given to a library function such as `std::array::from_fn` is
//! compiled for the baseline instruction set, where every vector operation becomes a call. Write a loop
//! instead.

pub use fearless_simd::prelude;
pub use fearless_simd::{Level, Simd, dispatch};

use fearless_simd::prelude::*;
use num_complex::Complex;
use rayspin_core::Real;

/// The best instruction set that this machine has and kernels are compiled for.
pub fn best() -> Level {
    let best = Level::new();
    match super::assumed::simd().as_deref() {
        Some("baseline") => Level::baseline(),
        #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
        Some("avx2") => best.as_avx2().map_or(best, |simd| simd.level()),
        _ => best,
    }
}

/// All instruction sets that this machine has and kernels are compiled for, the baseline first, the best
/// last.
pub fn levels() -> Vec<Level> {
    let levels = [Level::baseline()].into_iter();
    #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
    let levels = {
        let best = best();
        levels.chain(best.as_avx2().map(|simd| simd.level())).chain(best.as_avx512().map(|simd| simd.level()))
    };
    levels.collect()
}

/// The native vector of `T` on the instruction set `S`.
pub type Lanes<S, T> = <T as SimdFloatElement>::Native<S>;

/// A real number that has vectors: `f32` or `f64`.
pub trait SimdReal: Real + SimdFloatElement {
    /// Coefficients P of sin(2πh) ≈ h·P(h²) on |h| ≤ 1/4, lowest order first.
    const SIN_2PI: &'static [Self];
    /// Coefficients Q of cos(2πh) ≈ Q(h²) on |h| ≤ 1/4, lowest order first; the first is 1.
    const COS_2PI: &'static [Self];

    /// Rounds a vector of doubles and stores it. `out` has as many elements as the vector.
    fn store_f64s<S: Simd>(values: S::f64s, out: &mut [Self]);

    /// `sums[i] += values[i]` in double precision; `sums` has as many elements as the vector.
    fn add_to_f64<S: Simd>(simd: S, values: Lanes<S, Self>, sums: &mut [f64]);
}

// Minimax (Remez) in h², absolute error weighted as it appears in the result; each coefficient was rounded to
// the type before the next ones were fitted, so the rounding of the leading ones is absorbed. Fit errors:
// 8e-9 (sine) and 1e-9 (cosine) for f32, 4e-18 and 1e-18 for f64, all below the rounding of the evaluation.
impl SimdReal for f32 {
    #[expect(clippy::approx_constant, reason = "a fitted coefficient, one unit from the nearest f32 to 2π")]
    const SIN_2PI: &'static [f32] = &[6.283185, -41.341618, 81.59865, -76.49605, 39.13411];
    const COS_2PI: &'static [f32] = &[1.0, -19.739208, 64.939285, -85.45034, 60.079044, -24.539007];

    #[inline(always)]
    fn store_f64s<S: Simd>(values: S::f64s, out: &mut [f32]) {
        let narrow: S::f32s = values.narrow(values);
        out.copy_from_slice(&narrow.as_slice()[..S::f64s::LEN]);
    }

    #[inline(always)]
    fn add_to_f64<S: Simd>(simd: S, values: S::f32s, sums: &mut [f64]) {
        let (low, high) = values.widen();
        let (sums_low, sums_high) = sums.split_at_mut(S::f64s::LEN);
        (S::f64s::from_slice(simd, sums_low) + low).store_slice(sums_low);
        (S::f64s::from_slice(simd, sums_high) + high).store_slice(sums_high);
    }
}

impl SimdReal for f64 {
    const SIN_2PI: &'static [f64] = &[
        std::f64::consts::TAU,
        -41.34170224039957,
        81.60524927603197,
        -76.70585974864403,
        42.058693701823124,
        -15.09463486999173,
        3.8198099031994124,
        -0.7166439893537611,
        0.09675891890695577,
    ];
    const COS_2PI: &'static [f64] = &[
        1.0,
        -19.739208802178716,
        64.93939402266764,
        -85.45681720657862,
        60.244641362000706,
        -26.426256313635765,
        7.903523302148982,
        -1.7141782726047972,
        0.28011916541980125,
        -0.029003204169492928,
    ];

    #[inline(always)]
    fn store_f64s<S: Simd>(values: S::f64s, out: &mut [f64]) {
        values.store_slice(out);
    }

    #[inline(always)]
    fn add_to_f64<S: Simd>(simd: S, values: S::f64s, sums: &mut [f64]) {
        (S::f64s::from_slice(simd, sums) + values).store_slice(sums);
    }
}

/// `(sin 2πx, cos 2πx)` of every lane, x in turns.
///
/// The reduction x − round(x) is exact for every finite x. A large phase therefore loses only the accuracy
/// that its own rounding has lost. Form k·x in double precision and pass its fractional part. Measured
/// absolute error, given x as it is: 1.2e-7 for f32 (1.6e-7 without fused multiply-add), 4e-16 for f64. Whole
/// turns give exactly (0, 1). NaN for NaN and ±∞.
#[inline(always)]
pub fn sincos_2pi<S: Simd, T: SimdReal>(simd: S, x: Lanes<S, T>) -> (Lanes<S, T>, Lanes<S, T>) {
    let splat = Lanes::<S, T>::splat;
    let real = <T as Real>::from_f64;
    let turn = x - x.round_ties_even();
    // Fold to |h| <= 1/4 by half a turn, which flips both signs.
    let half = (turn + turn).round_ties_even();
    let h = half.mul_add(splat(simd, real(-0.5)), turn);
    let sign = (half * half).mul_add(splat(simd, real(-2.0)), splat(simd, real(1.0)));
    let u = h * h;
    let sin = polynomial(simd, T::SIN_2PI, u) * (h * sign);
    let cos = polynomial(simd, T::COS_2PI, u) * sign;
    (sin, cos)
}

/// Σ_j c_j·u^j by Horner's rule.
#[inline(always)]
fn polynomial<S: Simd, T: SimdReal>(simd: S, coefficients: &[T], u: Lanes<S, T>) -> Lanes<S, T> {
    let mut sum = Lanes::<S, T>::splat(simd, T::zero());
    for (j, &c) in coefficients.iter().rev().enumerate() {
        let c = Lanes::<S, T>::splat(simd, c);
        sum = if j == 0 { c } else { sum.mul_add(u, c) };
    }
    sum
}

/// (re, im) of the product of two complex vectors.
#[inline(always)]
pub fn complex_mul<S: Simd, T: SimdReal>(
    a: (Lanes<S, T>, Lanes<S, T>),
    b: (Lanes<S, T>, Lanes<S, T>),
) -> (Lanes<S, T>, Lanes<S, T>) {
    let re = a.0.mul_add(b.0, -(a.1 * b.1));
    let im = a.0.mul_add(b.1, a.1 * b.0);
    (re, im)
}

/// Loads as many complex numbers as a vector has lanes, real and imaginary parts apart.
#[inline(always)]
pub fn load_complex<S: Simd, T: SimdReal>(simd: S, values: &[Complex<T>]) -> (Lanes<S, T>, Lanes<S, T>) {
    let parts: &[T] = bytemuck::cast_slice(values);
    let (low, high) = parts.split_at(Lanes::<S, T>::LEN);
    Lanes::<S, T>::from_slice(simd, low).deinterleave(Lanes::<S, T>::from_slice(simd, high))
}

/// Stores as many complex numbers as a vector has lanes; the inverse of [`load_complex`].
#[inline(always)]
pub fn store_complex<S: Simd, T: SimdReal>(re: Lanes<S, T>, im: Lanes<S, T>, out: &mut [Complex<T>]) {
    let parts: &mut [T] = bytemuck::cast_slice_mut(out);
    let (low, high) = re.interleave(im);
    let (out_low, out_high) = parts.split_at_mut(Lanes::<S, T>::LEN);
    low.store_slice(out_low);
    high.store_slice(out_high);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The largest absolute error of both functions over `turns`, against f64 on the exactly reduced
    /// argument.
    fn worst<T: SimdReal>(level: Level, turns: &[T]) -> f64 {
        #[inline(always)]
        fn run<S: Simd, T: SimdReal>(simd: S, turns: &[T], out: &mut [(T, T)]) {
            let lanes = Lanes::<S, T>::LEN;
            for (x, out) in turns.chunks(lanes).zip(out.chunks_mut(lanes)) {
                let x = Lanes::<S, T>::from_fn(simd, |i| x.get(i).copied().unwrap_or_default());
                let (sin, cos) = sincos_2pi::<S, T>(simd, x);
                for (i, out) in out.iter_mut().enumerate() {
                    *out = (sin[i], cos[i]);
                }
            }
        }
        let nan = T::nan();
        let mut out = vec![(nan, nan); turns.len()];
        dispatch!(level, simd => run(simd, turns, &mut out));
        let mut error: f64 = 0.0;
        for (x, (sin, cos)) in turns.iter().zip(&out) {
            // Octant by octant, so that the reference keeps its own error below 1.2e-16.
            let x = Real::to_f64(*x);
            let turn = x - x.round();
            let eighth = (turn * 8.0).round();
            let (s, c) = (std::f64::consts::TAU * (turn - eighth / 8.0)).sin_cos();
            let (se, ce) = (std::f64::consts::FRAC_PI_4 * eighth).sin_cos();
            let (want_sin, want_cos) = (s * ce + c * se, c * ce - s * se);
            error = error.max((Real::to_f64(*sin) - want_sin).abs());
            error = error.max((Real::to_f64(*cos) - want_cos).abs());
        }
        error
    }

    fn arguments<T: SimdReal>() -> Vec<T> {
        let mut x: Vec<f64> = (-40_000..=40_000).map(|i| f64::from(i) / 40_000.0).collect();
        x.extend((0..200_000).map(|i| (f64::from(i) * 0.618_033_988_749_895 - 61_803.0) * 1.618));
        x.extend((0..64).map(|i| f64::from(i) * 0.125 - 4.0));
        x.extend((0..60).map(|i| 10f64.powi(-i)));
        x.into_iter().map(<T as Real>::from_f64).collect()
    }

    #[test]
    fn sincos_stays_within_its_stated_error() {
        for level in levels() {
            let single = worst::<f32>(level, &arguments());
            let double = worst::<f64>(level, &arguments());
            println!("largest absolute error with {level:?}: f32 {single:.2e}, f64 {double:.2e}");
            assert!(single <= 1.6e-7 && double <= 4e-16, "{level:?}: {single:e} {double:e}");
        }
        assert!(!levels().is_empty());
    }

    #[test]
    fn sincos_of_zero_is_exact_and_of_infinity_not_a_number() {
        #[inline(always)]
        fn at<S: Simd, T: SimdReal>(simd: S, x: T) -> (T, T) {
            let (sin, cos) = sincos_2pi::<S, T>(simd, Lanes::<S, T>::splat(simd, x));
            (sin[0], cos[0])
        }
        let level = Level::new();
        assert_eq!(dispatch!(level, simd => at(simd, 0.0f32)), (0.0, 1.0));
        assert_eq!(dispatch!(level, simd => at(simd, 7.0f64)), (0.0, 1.0));
        let (sin, cos) = dispatch!(level, simd => at(simd, f32::INFINITY));
        assert!(sin.is_nan() && cos.is_nan());
    }

    #[test]
    fn complex_vectors_load_multiply_and_store() {
        #[inline(always)]
        fn square<S: Simd, T: SimdReal>(simd: S, values: &mut [Complex<T>]) -> usize {
            let lanes = Lanes::<S, T>::LEN;
            let a = load_complex::<S, T>(simd, &values[..lanes]);
            let (re, im) = complex_mul::<S, T>(a, a);
            store_complex::<S, T>(re, im, &mut values[..lanes]);
            lanes
        }
        let level = Level::new();
        let mut values: Vec<Complex<f32>> = (0..16).map(|i| Complex::new(i as f32, 2.0)).collect();
        let before = values.clone();
        let lanes = dispatch!(level, simd => square(simd, &mut values));
        for (now, was) in values.iter().zip(&before).take(lanes) {
            assert_eq!(*now, was * was);
        }
        assert_eq!(values[lanes..], before[lanes..]);
    }

    #[test]
    fn doubles_round_on_store_and_sums_are_double() {
        #[inline(always)]
        fn run<S: Simd, T: SimdReal>(simd: S, sums: &mut [f64], out: &mut [T]) -> (usize, usize) {
            let (n64, n) = (S::f64s::LEN, Lanes::<S, T>::LEN);
            T::store_f64s::<S>(S::f64s::from_fn(simd, |i| 0.1 + i as f64), &mut out[..n64]);
            let values = Lanes::<S, T>::from_fn(simd, |i| <T as Real>::from_f64(i as f64));
            T::add_to_f64::<S>(simd, values, &mut sums[..n]);
            (n64, n)
        }
        let mut sums = vec![1e-12; 16];
        let mut out = vec![f32::NAN; 16];
        let (n64, n) = dispatch!(Level::new(), simd => run(simd, &mut sums, &mut out));
        for (i, value) in out[..n64].iter().enumerate() {
            assert_eq!(*value, (0.1 + i as f64) as f32);
        }
        for (i, sum) in sums[..n].iter().enumerate() {
            assert_eq!(*sum, 1e-12 + i as f64);
        }
    }
}
