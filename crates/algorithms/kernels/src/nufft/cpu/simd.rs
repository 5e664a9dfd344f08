//! The SIMD variant: a row of the footprint is a few vectors of interleaved complex numbers; the width is a
//! constant, so that all loops over the footprint unroll.
//!
//! A row that fits two vectors of 256 bits or one of 512 bits uses unaligned vectors. A longer row is read
//! and written in aligned vectors of the local grid, of the level's own width, and its kernel values are
//! padded with zeros. Such a vector never crosses a cache line, which would cost two accesses. But the number
//! of vectors may then depend on where the row begins, and the processor mispredicts it. Short rows avoid
//! this cost, and so do rows of two vectors in 1-D and 2-D, where a point has few rows.
#![allow(unsafe_code)]
#![allow(clippy::needless_range_loop)]

use std::marker::PhantomData;

use fearless_simd_macros::simd;
use num_complex::Complex;
use rayspin_core::Real;
use rayspin_device::cpu::simd::prelude::*;
use rayspin_device::cpu::simd::{Level, Simd};

use super::records::Point;
use super::{TilePoints, Weights, scalar};
use crate::nufft::kernel::terms;
use crate::nufft::layout::{has_aligned_rows, lanes};

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

/// Vectors that hold the widest footprint of interleaved f64, and that with a lane a tap.
const MOST: usize = 9;
const MOST_TAP_VECTORS: usize = 4;
/// The widest footprint.
pub(super) const MOST_TAPS: usize = crate::nufft::kernel::MAX_WIDTH;

pub(super) type Vector<S, R> = <R as Lanes>::Vector<S>;

/// How the rows of footprints of a width lie in vectors: reals in one, and at how many places of one a row
/// may begin. Unaligned rows begin at one place.
#[derive(Debug, Clone, Copy)]
struct Rows {
    lanes: usize,
    places: usize,
}

impl Rows {
    /// `wide`: whether vectors have 512 bits.
    const fn new<R>(dims: usize, width: usize, wide: bool) -> Self {
        let narrow = lanes::<R>();
        let lanes = if wide { 2 * narrow } else { narrow };
        Self { lanes, places: if has_aligned_rows(dims, width, narrow, lanes) { lanes / 2 } else { 1 } }
    }

    /// Vectors of a row that begins at a place.
    const fn vectors(self, width: usize, place: usize) -> usize {
        (2 * (place + width)).div_ceil(self.lanes)
    }
}

/// The `V::LEN` elements at `start`, without a bounds check and without a check of the slice's length, which
/// compilers leave in loops.
///
/// # Safety
///
/// `at + V::LEN ≤ slice.len()`.
#[inline(always)]
pub(super) unsafe fn load<S: Simd, V: SimdFloat<S>>(simd: S, slice: &[V::Element], start: usize) -> V {
    const { assert!(size_of::<V::Array>() == V::LEN * size_of::<V::Element>()) }
    debug_assert!(start + V::LEN <= slice.len());
    // SAFETY: the caller promises the range, and the vector's array is as many elements.
    V::load_array_ref(simd, unsafe { &*slice.as_ptr().add(start).cast::<V::Array>() })
}

/// Puts a vector in the place of the `V::LEN` elements at `start`, checked as little as [`load`].
///
/// # Safety
///
/// `at + V::LEN ≤ slice.len()`.
#[inline(always)]
unsafe fn store<S: Simd, V: SimdFloat<S>>(vector: V, slice: &mut [V::Element], start: usize) {
    const { assert!(size_of::<V::Array>() == V::LEN * size_of::<V::Element>()) }
    debug_assert!(start + V::LEN <= slice.len());
    // SAFETY: the caller promises the range, and the vector's array is as many elements.
    vector.store_array(unsafe { &mut *slice.as_mut_ptr().add(start).cast::<V::Array>() });
}

/// How the kernel values of an axis lie in vectors with a lane a tap. The kernel is even: pⱼ(z) =
/// p_{W−1−j}(−z). Where one vector is too short, the even and the odd powers of the polynomials are summed
/// apart, and their difference is the vector of the mirrored taps.
struct TapVectors {
    /// Vectors in all; the first `straight` of them begin with tap v · lanes, the others are mirrors of the
    /// first ones.
    count: usize,
    straight: usize,
}

impl TapVectors {
    const fn new(width: usize, lanes: usize) -> Self {
        Self { count: width.div_ceil(lanes), straight: width.div_ceil(2).div_ceil(lanes) }
    }

    /// The tap in lane 0 of vector `v`.
    const fn first_tap(&self, v: usize, width: usize, lanes: usize) -> usize {
        if v < self.straight { v * lanes } else { width - (v - self.straight + 1) * lanes }
    }
}

/// Kernel values along every axis, x, y, z, in the vectors of [`TapVectors`].
#[inline(always)]
pub(super) fn taps<S: Simd, V: SimdFloat<S, Element = R>, R: Real, const D: usize, const W: usize>(
    simd: S,
    weights: &Weights<R>,
    z: [R; D],
) -> [[V; MOST_TAP_VECTORS]; D] {
    let TapVectors { count, straight } = const { TapVectors::new(W, V::LEN) };
    let (terms, stride) = (const { terms(W) }, weights.stride);
    let zero = V::splat(simd, R::zero());
    let (mut taps, mut odd) = ([[zero; MOST_TAP_VECTORS]; D], [[zero; MOST_TAP_VECTORS]; D]);
    assert!(count * V::LEN <= stride && weights.taps.len() >= terms * stride);
    // SAFETY: v < count and term < terms, and terms · stride ≤ the length, asserted above.
    let coefficient =
        |term: usize, v: usize| unsafe { load::<S, V>(simd, &weights.taps, term * stride + v * V::LEN) };
    if count == straight {
        for term in 0..terms {
            for v in 0..count {
                let c = coefficient(term, v);
                for d in 0..D {
                    let z = V::splat(simd, z[d]);
                    taps[d][v] = if term == 0 { c } else { taps[d][v].mul_add(z, c) };
                }
            }
        }
        return taps;
    }
    for term in 0..terms {
        let is_even = (terms - 1 - term) % 2 == 0;
        for v in 0..straight {
            let c = coefficient(term, v);
            for d in 0..D {
                let square = V::splat(simd, z[d] * z[d]);
                let sum = if is_even { &mut taps[d][v] } else { &mut odd[d][v] };
                *sum = if term < 2 { c } else { sum.mul_add(square, c) };
            }
        }
    }
    for d in 0..D {
        let z = V::splat(simd, z[d]);
        for v in 0..straight {
            let even = taps[d][v];
            taps[d][v] = odd[d][v].mul_add(z, even);
            if straight + v < count {
                taps[d][straight + v] = odd[d][v].mul_add(-z, even).reverse();
            }
        }
    }
    taps
}

/// Stores the kernel values of an axis in their order.
#[inline(always)]
pub(super) fn store_taps<S: Simd, V: SimdFloat<S, Element = R>, R: Real, const W: usize>(
    taps: &[V; MOST_TAP_VECTORS],
    to: &mut [R; MOST_TAPS],
) {
    let vectors = const { TapVectors::new(W, V::LEN) };
    for v in 0..vectors.count {
        taps[v].store_slice(&mut to[vectors.first_tap(v, W, V::LEN)..][..V::LEN]);
    }
}

/// Terms of the widest kernel whose values fit half a vector.
const MOST_PAIR_TERMS: usize = terms(8);

/// The polynomials for two points at once, whose kernel values share a vector: its lower half is the first
/// point's.
struct Pairs<S: Simd, V: SimdFloat<S>> {
    simd: S,
    /// Each coefficient in both halves.
    coefficients: [V; MOST_PAIR_TERMS],
    first: V::Mask,
}

impl<S: Simd, R: Real, V: SimdFloat<S, Element = R>> Pairs<S, V> {
    /// Whether a vector has room for the kernel values of two points.
    const fn fit(width: usize) -> bool {
        2 * width <= V::LEN
    }

    #[inline(always)]
    fn new(simd: S, weights: &Weights<R>, width: usize) -> Self {
        let half = V::LEN / 2;
        let mut row = V::splat(simd, R::zero());
        row.as_mut_slice()[..half].fill(R::one());
        let first = V::splat(simd, R::zero()).simd_lt(row);
        let mut coefficients = [row; MOST_PAIR_TERMS];
        if Self::fit(width) {
            for term in 0..terms(width) {
                let from = &weights.taps[term * weights.stride..][..half];
                let to = coefficients[term].as_mut_slice();
                to[..half].copy_from_slice(from);
                to[half..].copy_from_slice(from);
            }
        }
        Self { simd, coefficients, first }
    }

    /// Kernel values of two points along an axis.
    #[inline(always)]
    fn taps(&self, z: [R; 2], width: usize) -> V {
        let z = self.first.select(V::splat(self.simd, z[0]), V::splat(self.simd, z[1]));
        let mut taps = self.coefficients[0];
        for term in 1..terms(width) {
            taps = taps.mul_add(z, self.coefficients[term]);
        }
        taps
    }
}

/// Points whose kernel values are computed together, ahead of their use: loads do not wait for stores of the
/// same values.
const AHEAD: usize = 16;
/// Reals from one point's kernel values along x to the next one's: zeros, a vector's worth, before and behind
/// them.
const X_PITCH: usize = 64;

/// A point's kernel values.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Values<R> {
    /// Along x, each twice, for interleaved complex numbers.
    x: [R; X_PITCH],
    y: [R; MOST_TAPS],
    z: [R; MOST_TAPS],
}

/// What the footprints of a tile's points have in common; x runs in vectors `V`.
#[derive(Clone, Copy)]
struct Tile<S, V, const D: usize, const W: usize> {
    simd: S,
    /// Reals between rows and between layers.
    pitch: [usize; 2],
    vector: PhantomData<V>,
}

impl<S: Simd, R: Lanes, V: SimdFloat<S, Element = R>, const D: usize, const W: usize> Tile<S, V, D, W> {
    const ROWS: Rows = Rows::new::<R>(D, W, V::LEN > lanes::<R>());
    /// The two numbers of vectors that rows have: they differ by one at most.
    const FEWEST: usize = Self::ROWS.vectors(W, 0);
    const MOST: usize = Self::ROWS.vectors(W, Self::ROWS.places - 1);

    #[inline(always)]
    fn new(simd: S, pitch: [usize; 2]) -> Self {
        const {
            assert!(Self::ROWS.lanes == V::LEN && Self::MOST <= Self::FEWEST + 1);
            assert!(V::LEN + 2 * MOST_TAPS + V::LEN <= X_PITCH);
        }
        Self { simd, pitch: pitch.map(|cells| 2 * cells), vector: PhantomData }
    }

    /// Room for the kernel values of [`AHEAD`] points.
    #[inline(always)]
    fn room() -> [Values<R>; AHEAD] {
        let zero = R::zero();
        [Values { x: [zero; X_PITCH], y: [zero; MOST_TAPS], z: [zero; MOST_TAPS] }; AHEAD]
    }

    /// Computes the kernel values of points.
    #[inline(always)]
    fn prepare(
        self,
        weights: &Weights<R>,
        pairs: &Pairs<S, V>,
        points: &[Point<R, D>],
        values: &mut [Values<R>; AHEAD],
    ) {
        let (len, vectors) = (V::LEN, const { TapVectors::new(W, V::LEN) });
        if const { Pairs::<S, V>::fit(W) } {
            for (points, values) in points.chunks(2).zip(values.chunks_exact_mut(2)) {
                let (first, second) = (&points[0], &points[points.len() - 1]);
                for d in 0..D {
                    let taps = pairs.taps([first.z[d], second.z[d]], W);
                    if d == 0 {
                        taps.zip_low(taps).store_slice(&mut values[0].x[len..2 * len]);
                        taps.zip_high(taps).store_slice(&mut values[1].x[len..2 * len]);
                    } else {
                        for (half, values) in values.iter_mut().enumerate() {
                            let to = if d == 1 { &mut values.y } else { &mut values.z };
                            to[..len / 2].copy_from_slice(&taps.as_slice()[half * len / 2..][..len / 2]);
                        }
                    }
                }
            }
            return;
        }
        for (point, Values { x, y, z }) in points.iter().zip(values) {
            let taps = taps::<S, V, R, D, W>(self.simd, weights, point.z);
            for v in 0..vectors.count {
                let to = &mut x[len + 2 * vectors.first_tap(v, W, len)..][..2 * len];
                taps[0][v].zip_low(taps[0][v]).store_slice(&mut to[..len]);
                taps[0][v].zip_high(taps[0][v]).store_slice(&mut to[len..]);
            }
            if D > 1 {
                store_taps::<S, V, R, W>(&taps[1], y);
            }
            if D > 2 {
                store_taps::<S, V, R, W>(&taps[2], z);
            }
        }
    }

    /// At which place of a vector a footprint's rows begin, and with which real of the local grid; whether
    /// they have the fewest vectors.
    #[inline(always)]
    fn place(cell: u32) -> (usize, usize, bool) {
        let place = cell as usize % Self::ROWS.places;
        (place, 2 * (cell as usize - place), Self::ROWS.vectors(W, place) == Self::FEWEST)
    }

    /// Kernel values along x, in `count` vectors, for rows that begin at that place.
    #[inline(always)]
    fn along_x(self, values: &Values<R>, place: usize, count: usize) -> [V; MOST] {
        let x = &values.x[V::LEN - 2 * place..][..count * V::LEN];
        let mut kx = [V::splat(self.simd, R::zero()); MOST];
        for v in 0..count {
            kx[v] = V::from_slice(self.simd, &x[v * V::LEN..(v + 1) * V::LEN]);
        }
        kx
    }

    /// Reals from the first of a footprint's rows of `count` vectors to the end of the last.
    #[inline(always)]
    fn span(self, count: usize) -> usize {
        let row = count * V::LEN;
        match D {
            1 => row,
            2 => (W - 1) * self.pitch[0] + row,
            _ => (W - 1) * (self.pitch[0] + self.pitch[1]) + row,
        }
    }

    #[inline(always)]
    fn spread(self, values: &Values<R>, place: usize, count: usize, value: Complex<R>, window: &mut [R]) {
        let window = &mut window[..self.span(count)];
        let value = V::splat(self.simd, value.re).zip_low(V::splat(self.simd, value.im));
        let mut row = self.along_x(values, place, count);
        for v in 0..count {
            row[v] *= value;
        }
        for dz in 0..if D > 2 { W } else { 1 } {
            let mut row = row;
            if D > 2 {
                let k = V::splat(self.simd, values.z[dz]);
                for v in 0..count {
                    row[v] *= k;
                }
            }
            for dy in 0..if D > 1 { W } else { 1 } {
                let k = V::splat(self.simd, if D > 1 { values.y[dy] } else { R::one() });
                for v in 0..count {
                    let start = dz * self.pitch[1] + dy * self.pitch[0] + v * V::LEN;
                    // SAFETY: dz, dy < W and v < count, so at + LEN ≤ span, the length of the window.
                    unsafe {
                        store(row[v].mul_add(k, load::<S, V>(self.simd, window, start)), window, start);
                    }
                }
            }
        }
    }

    #[inline(always)]
    fn interp(self, values: &Values<R>, place: usize, count: usize, window: &[R]) -> Complex<R> {
        let window = &window[..self.span(count)];
        let zero = V::splat(self.simd, R::zero());
        let mut sums = [zero; MOST];
        for dz in 0..if D > 2 { W } else { 1 } {
            // A sum of rows waits for the row before. Rows of one vector have two sums, of every second row.
            let chains = if count == 1 { 2 } else { 1 };
            let mut rows = [[zero; MOST]; 2];
            for dy in 0..if D > 1 { W } else { 1 } {
                let k = V::splat(self.simd, if D > 1 { values.y[dy] } else { R::one() });
                for v in 0..count {
                    let start = dz * self.pitch[1] + dy * self.pitch[0] + v * V::LEN;
                    // SAFETY: dz, dy < W and v < count, so at + LEN ≤ span, the length of the window.
                    let cells = unsafe { load::<S, V>(self.simd, window, start) };
                    let row = &mut rows[dy % chains][v];
                    *row = cells.mul_add(k, *row);
                }
            }
            let k = V::splat(self.simd, values.z[dz]);
            for v in 0..count {
                let rows = if chains > 1 { rows[0][v] + rows[1][v] } else { rows[0][v] };
                sums[v] = if D > 2 { rows.mul_add(k, sums[v]) } else { rows };
            }
        }
        let kx = self.along_x(values, place, count);
        let mut total = sums[0] * kx[0];
        for v in 1..count {
            total = sums[v].mul_add(kx[v], total);
        }
        // Halves of a vector are added until one complex number is left.
        let mut count = V::LEN / 2;
        while count > 1 {
            count /= 2;
            for lane in 0..2 * count {
                total[lane] = total[lane] + total[lane + 2 * count];
            }
        }
        Complex::new(total[0], total[1])
    }
}

#[simd]
fn spread_points<S: Simd, V: SimdFloat<S, Element = R>, R: Lanes, const D: usize, const W: usize>(
    simd: S,
    weights: &Weights<R>,
    points: TilePoints<'_, R>,
    from: &[Complex<R>],
    local: &mut [R],
    pitch: [usize; 2],
) {
    let tile = Tile::<S, V, D, W>::new(simd, pitch);
    let mut values = Tile::<S, V, D, W>::room();
    let pairs = Pairs::new(simd, weights, W);
    for (points, from) in points.of::<D>().chunks(AHEAD).zip(from.chunks(AHEAD)) {
        tile.prepare(weights, &pairs, points, &mut values);
        for ((point, &value), values) in points.iter().zip(from).zip(&values) {
            let (place, start, fewest) = Tile::<S, V, D, W>::place(point.cell);
            let window = &mut local[start..];
            // The number of vectors is a constant in either branch.
            if fewest {
                tile.spread(values, place, Tile::<S, V, D, W>::FEWEST, value, window);
            } else {
                tile.spread(values, place, Tile::<S, V, D, W>::MOST, value, window);
            }
        }
    }
}

#[simd]
fn interp_points<S: Simd, V: SimdFloat<S, Element = R>, R: Lanes, const D: usize, const W: usize>(
    simd: S,
    weights: &Weights<R>,
    points: TilePoints<'_, R>,
    local: &[R],
    to: &mut [Complex<R>],
    pitch: [usize; 2],
) {
    let tile = Tile::<S, V, D, W>::new(simd, pitch);
    let mut values = Tile::<S, V, D, W>::room();
    let pairs = Pairs::new(simd, weights, W);
    for (points, to) in points.of::<D>().chunks(AHEAD).zip(to.chunks_mut(AHEAD)) {
        tile.prepare(weights, &pairs, points, &mut values);
        for ((point, to), values) in points.iter().zip(to).zip(&values) {
            let (place, start, fewest) = Tile::<S, V, D, W>::place(point.cell);
            let window = &local[start..];
            *to = if fewest {
                tile.interp(values, place, Tile::<S, V, D, W>::FEWEST, window)
            } else {
                tile.interp(values, place, Tile::<S, V, D, W>::MOST, window)
            };
        }
    }
}

/// Calls `$function` with vectors `$vector` for the run-time `$dims` and `$width`; false for a width that is
/// not listed.
macro_rules! with_constants {
    ($dims:expr, $width:expr, $function:ident, $vector:ident, $real:ty, $arguments:tt, [$($w:literal)*]) => {
        match ($dims, $width) {
            $(
                (1, $w) => $function::<_, fearless_simd::$vector<_>, $real, 1, $w> $arguments,
                (2, $w) => $function::<_, fearless_simd::$vector<_>, $real, 2, $w> $arguments,
                (3, $w) => $function::<_, fearless_simd::$vector<_>, $real, 3, $w> $arguments,
            )*
            _ => return false,
        }
    };
}

/// A tile kernel of one real type, which says false where there is no code for a level or width. Not generic,
/// so that it is compiled in this crate alone. `$long`: the widths whose rows take more than one vector of
/// 256 bits. `$dims`: the numbers of axes for which a row of two such vectors is faster as one of 512
/// bits.
macro_rules! tile_kernel {
    ($name:ident, $function:ident, $dims:expr, $real:ty, [$from:ty, $to:ty], [$narrow:ident, $widths:tt], [$wide:ident, $long:tt]) => {
        fn $name(
            level: Level,
            weights: &Weights<$real>,
            points: TilePoints<'_, $real>,
            from: $from,
            to: $to,
            pitch: [usize; 2],
        ) -> bool {
            let (dims, width) = (weights.dims, weights.width);
            let narrow = lanes::<$real>();
            let is_wide = width > narrow || (2 * width > narrow && $dims.contains(&dims));
            let wide = wide_token(level).filter(|_| is_wide);
            if let Some(simd) = wide {
                with_constants!(
                    dims,
                    width,
                    $function,
                    $wide,
                    $real,
                    (simd, weights, points, from, to, pitch),
                    $long
                );
            } else if let Some(simd) = token(level) {
                with_constants!(
                    dims,
                    width,
                    $function,
                    $narrow,
                    $real,
                    (simd, weights, points, from, to, pitch),
                    $widths
                );
            } else {
                return false;
            }
            true
        }
    };
}

/// Both tile kernels of one real type. A point has many rows in 3-D, and stores across cache lines are slow;
/// in 1-D the sum of a vector's lanes counts most.
macro_rules! tile_kernels {
    ($spread:ident, $interp:ident, $real:ty, $narrow:tt, $wide:tt) => {
        tile_kernel!($spread, spread_points, (1..=2), $real, [&[Complex<$real>], &mut [$real]], $narrow, $wide);
        tile_kernel!($interp, interp_points, (2..=3), $real, [&[$real], &mut [Complex<$real>]], $narrow, $wide);
    };
}

tile_kernels!(spread_f32, interp_f32, f32, [f32x8, [2 3 4 5 6 7 8 9 10]], [f32x16, [5 6 7 8 9 10]]);
tile_kernels!(
    spread_f64,
    interp_f64,
    f64,
    [f64x4, [2 3 4 5 6 7 8 9 10 11 12 13 14 15 16]],
    [f64x8, [3 4 5 6 7 8 9 10 11 12 13 14 15 16]]
);

/// The level's vectors of 512 bits.
#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
pub(super) fn wide_token(level: Level) -> Option<fearless_simd::Avx512> {
    level.as_avx512()
}

#[cfg(not(any(target_arch = "x86", target_arch = "x86_64")))]
pub(super) fn wide_token(_: Level) -> Option<fearless_simd::Fallback> {
    None
}

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
