//! The SIMD rung: a row of the footprint is a few vectors of interleaved complex numbers; the width is a constant, so
//! that all loops over the footprint unroll.
//!
//! Vectors have 256 bits at every level: rows are short and start anywhere, and a 512-bit access that crosses a cache
//! line, as nearly all would, costs two.
#![allow(unsafe_code)]
#![allow(clippy::needless_range_loop)]

use fearless_simd_macros::simd;
use num_complex::Complex;
use rayspin_core::Real;
use rayspin_device::cpu::simd::prelude::*;
use rayspin_device::cpu::simd::{Level, Simd};

use super::{TilePoints, Weights, scalar};

/// The reals that have vectors.
pub(super) trait Lanes: Real + fearless_simd::SimdFloatElement {
    type Vector<S: Simd>: SimdFloat<S, Element = Self>;
}

impl Lanes for f32 {
    type Vector<S: Simd> = fearless_simd::f32x8<S>;
}

impl Lanes for f64 {
    type Vector<S: Simd> = fearless_simd::f64x4<S>;
}

/// Vectors that hold the widest footprint of interleaved f64.
const MOST: usize = 8;
/// The widest footprint.
pub(super) const MOST_TAPS: usize = crate::nufft::kernel::MAX_WIDTH;

pub(super) type Vector<S, R> = <R as Lanes>::Vector<S>;

/// The `V::LEN` elements at `at`, without a bounds check.
///
/// # Safety
///
/// `at + V::LEN ≤ slice.len()`.
#[inline(always)]
pub(super) unsafe fn load<S: Simd, R: Lanes>(simd: S, slice: &[R], at: usize) -> Vector<S, R> {
    let len = Vector::<S, R>::LEN;
    debug_assert!(at + len <= slice.len());
    // SAFETY: the caller promises the range.
    Vector::<S, R>::from_slice(simd, unsafe { slice.get_unchecked(at..at + len) })
}

/// Polynomials of `count` vectors at z: `coefficients` is `[term][count · LEN]`, highest power first.
#[inline(always)]
fn horner<S: Simd, R: Lanes>(
    simd: S,
    coefficients: &[R],
    count: usize,
    terms: usize,
    z: R,
) -> [Vector<S, R>; MOST] {
    let len = Vector::<S, R>::LEN;
    let mut sum = [Vector::<S, R>::splat(simd, R::zero()); MOST];
    let z = Vector::<S, R>::splat(simd, z);
    assert!(coefficients.len() >= terms * count * len);
    for term in 0..terms {
        for v in 0..count {
            // SAFETY: (term · count + v + 1) · LEN ≤ terms · count · LEN ≤ the length, asserted above.
            let c = unsafe { load::<S, R>(simd, coefficients, (term * count + v) * len) };
            sum[v] = if term == 0 { c } else { sum[v].mul_add(z, c) };
        }
    }
    sum
}

/// Kernel values along y or z as scalars.
#[inline(always)]
pub(super) fn scalars<S: Simd, R: Lanes, const W: usize>(
    simd: S,
    weights: &Weights<R>,
    z: R,
) -> [R; MOST_TAPS] {
    let len = Vector::<S, R>::LEN;
    let count = W.div_ceil(len);
    let values = horner(simd, &weights.single, count, const { crate::nufft::kernel::terms(W) }, z);
    let mut out = [R::zero(); MOST_TAPS];
    for (v, chunk) in values.iter().zip(out.chunks_exact_mut(len)).take(count) {
        v.store_slice(chunk);
    }
    out
}

/// Real numbers that the rows of a footprint span in a local grid.
#[inline(always)]
fn span<S: Simd, R: Lanes, const D: usize, const W: usize>(pitch: [usize; 2]) -> usize {
    let row = (2 * W).next_multiple_of(Vector::<S, R>::LEN);
    match D {
        1 => row,
        2 => 2 * (W - 1) * pitch[0] + row,
        _ => 2 * (W - 1) * (pitch[0] + pitch[1]) + row,
    }
}

#[simd]
fn spread_points<S: Simd, R: Lanes, const D: usize, const W: usize>(
    simd: S,
    weights: &Weights<R>,
    points: TilePoints<'_, R>,
    values: &[Complex<R>],
    local: &mut [R],
    pitch: [usize; 2],
) {
    let len = Vector::<S, R>::LEN;
    let count = (2 * W).div_ceil(len);
    let terms = const { crate::nufft::kernel::terms(W) };
    let span = span::<S, R, D, W>(pitch);
    for (point, value) in points.of::<D>().iter().zip(values) {
        let (start, z) = (2 * point.cell as usize, point.z);
        let window = &mut local[start..start + span];
        let kx = horner(simd, &weights.double, count, terms, z[0]);
        let ky = if D > 1 { scalars::<S, R, W>(simd, weights, z[1]) } else { [R::one(); MOST_TAPS] };
        let kz = if D > 2 { scalars::<S, R, W>(simd, weights, z[2]) } else { [R::one(); MOST_TAPS] };
        let value = Vector::<S, R>::splat(simd, value.re).zip_low(Vector::<S, R>::splat(simd, value.im));
        for dz in 0..if D > 2 { W } else { 1 } {
            let value = if D > 2 { value * kz[dz] } else { value };
            for dy in 0..if D > 1 { W } else { 1 } {
                let value = if D > 1 { value * ky[dy] } else { value };
                for v in 0..count {
                    let at = 2 * (dz * pitch[1] + dy * pitch[0]) + v * len;
                    // SAFETY: dz, dy < W and v < count, so at + LEN ≤ span, the length of the window.
                    unsafe {
                        let sum = kx[v].mul_add(value, load::<S, R>(simd, window, at));
                        sum.store_slice(window.get_unchecked_mut(at..at + len));
                    }
                }
            }
        }
    }
}

#[simd]
fn interp_points<S: Simd, R: Lanes, const D: usize, const W: usize>(
    simd: S,
    weights: &Weights<R>,
    points: TilePoints<'_, R>,
    local: &[R],
    values: &mut [Complex<R>],
    pitch: [usize; 2],
) {
    let len = Vector::<S, R>::LEN;
    let count = (2 * W).div_ceil(len);
    let terms = const { crate::nufft::kernel::terms(W) };
    let span = span::<S, R, D, W>(pitch);
    let zero = Vector::<S, R>::splat(simd, R::zero());
    for (point, value) in points.of::<D>().iter().zip(values) {
        let (start, z) = (2 * point.cell as usize, point.z);
        let window = &local[start..start + span];
        let kx = horner(simd, &weights.double, count, terms, z[0]);
        let ky = if D > 1 { scalars::<S, R, W>(simd, weights, z[1]) } else { [R::one(); MOST_TAPS] };
        let kz = if D > 2 { scalars::<S, R, W>(simd, weights, z[2]) } else { [R::one(); MOST_TAPS] };
        let mut sums = [zero; MOST];
        for dz in 0..if D > 2 { W } else { 1 } {
            let mut rows = [zero; MOST];
            for dy in 0..if D > 1 { W } else { 1 } {
                let k = Vector::<S, R>::splat(simd, ky[dy]);
                for v in 0..count {
                    let at = 2 * (dz * pitch[1] + dy * pitch[0]) + v * len;
                    // SAFETY: dz, dy < W and v < count, so at + LEN ≤ span, the length of the window.
                    let cells = unsafe { load::<S, R>(simd, window, at) };
                    rows[v] = cells.mul_add(k, rows[v]);
                }
            }
            let k = Vector::<S, R>::splat(simd, kz[dz]);
            for v in 0..count {
                sums[v] = if D > 2 { rows[v].mul_add(k, sums[v]) } else { rows[v] };
            }
        }
        let mut total = sums[0] * kx[0];
        for v in 1..count {
            total = sums[v].mul_add(kx[v], total);
        }
        let (mut re, mut im) = (R::zero(), R::zero());
        for pair in total.as_slice().chunks_exact(2) {
            re += pair[0];
            im += pair[1];
        }
        *value = Complex::new(re, im);
    }
}

/// Calls `$function::<_, $real, D, W>` for the run-time `$dims` and `$width`; false for a width that is not listed.
macro_rules! with_constants {
    ($dims:expr, $width:expr, $function:ident, $real:ty, $arguments:tt, [$($w:literal)*]) => {
        match ($dims, $width) {
            $(
                (1, $w) => $function::<_, $real, 1, $w> $arguments,
                (2, $w) => $function::<_, $real, 2, $w> $arguments,
                (3, $w) => $function::<_, $real, 3, $w> $arguments,
            )*
            _ => return false,
        }
    };
}

/// The tile kernels of one real type, which say false where there is no code for a level or width. Not generic, so that
/// they are compiled in this crate alone.
macro_rules! tile_kernels {
    ($spread:ident, $interp:ident, $real:ty, $widths:tt) => {
        fn $spread(
            level: Level,
            weights: &Weights<$real>,
            points: TilePoints<'_, $real>,
            values: &[Complex<$real>],
            local: &mut [$real],
            pitch: [usize; 2],
        ) -> bool {
            let Some(simd) = token(level) else { return false };
            with_constants!(
                weights.dims,
                weights.width,
                spread_points,
                $real,
                (simd, weights, points, values, local, pitch),
                $widths
            );
            true
        }

        fn $interp(
            level: Level,
            weights: &Weights<$real>,
            points: TilePoints<'_, $real>,
            local: &[$real],
            values: &mut [Complex<$real>],
            pitch: [usize; 2],
        ) -> bool {
            let Some(simd) = token(level) else { return false };
            with_constants!(
                weights.dims,
                weights.width,
                interp_points,
                $real,
                (simd, weights, points, local, values, pitch),
                $widths
            );
            true
        }
    };
}

tile_kernels!(spread_f32, interp_f32, f32, [2 3 4 5 6 7 8 9 10]);
tile_kernels!(spread_f64, interp_f64, f64, [2 3 4 5 6 7 8 9 10 11 12 13 14 15 16]);

#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
pub(super) fn token(level: Level) -> Option<fearless_simd::Avx2> {
    level.as_avx2()
}

#[cfg(target_arch = "aarch64")]
pub(super) fn token(level: Level) -> Option<fearless_simd::Neon> {
    level.as_neon()
}

#[cfg(not(any(target_arch = "x86", target_arch = "x86_64", target_arch = "aarch64")))]
pub(super) fn token(_: Level) -> Option<fearless_simd::Fallback> {
    None
}

/// `weights` under the name of its own type.
fn same_type<R: Real, T: Real>(weights: &Weights<R>) -> Option<&Weights<T>> {
    (weights as &dyn std::any::Any).downcast_ref()
}

/// Spreads with vectors where there is code for the level, type and width, else plainly.
pub(crate) fn spread<R: Real>(
    level: Level,
    weights: &Weights<R>,
    points: TilePoints<'_, R>,
    values: &[Complex<R>],
    local: &mut [R],
    pitch: [usize; 2],
) {
    use bytemuck::{cast_slice, cast_slice_mut};
    let done = if let Some(weights) = same_type::<R, f32>(weights) {
        let local = cast_slice_mut(local);
        spread_f32(level, weights, points.cast(), cast_slice(values), local, pitch)
    } else if let Some(weights) = same_type::<R, f64>(weights) {
        let local = cast_slice_mut(local);
        spread_f64(level, weights, points.cast(), cast_slice(values), local, pitch)
    } else {
        false
    };
    if !done {
        scalar::spread(level, weights, points, values, local, pitch);
    }
}

/// Interpolates with vectors where there is code for the level, type and width, else plainly.
pub(crate) fn interp<R: Real>(
    level: Level,
    weights: &Weights<R>,
    points: TilePoints<'_, R>,
    local: &[R],
    values: &mut [Complex<R>],
    pitch: [usize; 2],
) {
    use bytemuck::{cast_slice, cast_slice_mut};
    let done = if let Some(weights) = same_type::<R, f32>(weights) {
        let values = cast_slice_mut(values);
        interp_f32(level, weights, points.cast(), cast_slice(local), values, pitch)
    } else if let Some(weights) = same_type::<R, f64>(weights) {
        let values = cast_slice_mut(values);
        interp_f64(level, weights, points.cast(), cast_slice(local), values, pitch)
    } else {
        false
    };
    if !done {
        scalar::interp(level, weights, points, local, values, pitch);
    }
}
