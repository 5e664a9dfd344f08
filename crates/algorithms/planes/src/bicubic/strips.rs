//! Rows resampled along x by permutations of vectors, sixteen columns at a time, then combined along y; all
//! of it strip by strip.

use std::ops::Range;

use bytemuck::{Pod, Zeroable};
use fearless_simd::{f32x16, i16x32, i32x16, u8x64, u16x32};
use rayon::prelude::*;
use rayspin_core::Result;
use rayspin_device::Cpu;
use rayspin_device::cpu::simd::prelude::*;
use rayspin_device::cpu::simd::{Level, Simd, dispatch};
use rayspin_device::cpu::{try_with_capacity, zeroed};

use super::Pixel;
use super::cpu::{Job, ROWS, four_by_four};
use crate::simd::{PAST_CACHES, fence, pick, to_line};

/// Pixels at a time.
const STEP: usize = 64;
/// Columns of a strip unless asked otherwise: weights and the four kept rows fit a cache of the second level.
pub(super) const COLUMNS: usize = 4096;

/// Sixteen columns of the output: each one's first pixel, counted from `from` of the strip's row, and the
/// weights of its four.
#[repr(C, align(64))]
struct Group {
    first: [i32; 16],
    weights: [[f32; 16]; 4],
    from: usize,
}

/// A cache line, so that vectors are aligned.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, align(64))]
struct Line([f32; 16]);

/// Some columns of the output.
struct Strip {
    columns: Range<usize>,
    /// The image's columns that they need, which begin before the image or end behind it.
    needs: Range<isize>,
    groups: Vec<Group>,
    /// All pixels of any group are among 32.
    near: bool,
}

impl Strip {
    fn new(places: &[i32], weights: &[[f32; 4]], columns: Range<usize>) -> Result<Self> {
        let needs = places[columns.start] as isize - 1..places[columns.end - 1] as isize + 3;
        let mut groups: Vec<Group> = try_with_capacity("weights of a strip", columns.len().div_ceil(16))?;
        groups.extend(columns.clone().step_by(16).map(|x| {
            let (mut first, mut of_taps) = ([0; 16], [[0.0; 16]; 4]);
            for i in 0..16.min(columns.end - x) {
                first[i] = places[x + i] - places[x];
                for (tap, weight) in of_taps.iter_mut().zip(weights[x + i]) {
                    tap[i] = weight;
                }
            }
            let from = (places[x] as isize - 1 - needs.start) as usize;
            Group { first, weights: of_taps, from }
        }));
        let near = groups.iter().all(|group| group.first.iter().all(|first| first + 3 < 32));
        Ok(Self { groups, needs, columns, near })
    }
}

impl<T: Pixel> Job<'_, T> {
    /// Errors: memory for strips.
    pub(super) fn strips(&self, cpu: &Cpu, columns: usize, out: &mut [T]) -> Result<()> {
        let level = cpu.level();
        let each = self.each(cpu.threads());
        let strips = self.cut(columns)?;
        let past = size_of_val(out) > PAST_CACHES;
        cpu.run(|| {
            out.par_chunks_mut(each * self.to[1])
                .enumerate()
                .try_for_each(|(task, out)| self.rows_of_strips(level, &strips, task * each, past, out))
        })
    }

    fn cut(&self, columns: usize) -> Result<Vec<Strip>> {
        let [high, wide] = self.to;
        let ([_, places], [_, weights]) = self.tables.split(high);
        let begins = (0..wide).step_by(columns);
        begins.map(|x| Strip::new(places, weights, x..(x + columns).min(wide))).collect()
    }

    /// Rows `first..` of the output, as many as `out` has.
    fn rows_of_strips(
        &self,
        level: Level,
        strips: &[Strip],
        first: usize,
        past: bool,
        out: &mut [T],
    ) -> Result<()> {
        strips
            .iter()
            .try_for_each(|strip| dispatch!(level, simd => self.strip(simd, strip, first, past, out)))
    }

    #[inline(always)]
    fn strip<S: Simd>(&self, simd: S, strip: &Strip, first: usize, past: bool, out: &mut [T]) -> Result<()> {
        let [high, wide] = self.to;
        let ([ys, xs], [downs, weights]) = self.tables.split(high);
        let (xs, weights) = (&xs[strip.columns.clone()], &weights[strip.columns.clone()]);
        // 32 pixels are read from where a group begins.
        let mut padded = zeroed::<f32>(ROWS, strip.needs.len() + 32)?;
        // Rows a whole number of pages apart would meet in the same lines of a cache.
        let pitch = (strip.columns.len().next_multiple_of(STEP) + STEP + 16) / 16;
        let mut ring = zeroed::<Line>(ROWS, 4 * pitch)?;
        let ring: &mut [f32] = bytemuck::cast_slice_mut(&mut ring);
        let pitch = 16 * pitch;
        let mut next = isize::MIN;
        for (out, (&y0, down)) in out.chunks_exact_mut(wide).zip(ys.iter().zip(downs).skip(first)) {
            let wanted = y0 as isize - 1;
            next = next.max(wanted);
            while next < wanted + 4 {
                let row = &self.image[Self::held(next, self.from[0]) * self.from[1]..][..self.from[1]];
                pad(simd, row, &strip.needs, &mut padded);
                let slot = next.rem_euclid(4) as usize * pitch;
                let to = &mut ring[slot..slot + pitch];
                if !(strip.near && picked(simd, &padded, &strip.groups, to)) {
                    let to = &mut to[..xs.len()];
                    four_by_four(simd, &padded, strip.needs.start, xs, weights, to);
                }
                next += 1;
            }
            let near = |j: isize| &ring[(wanted + j).rem_euclid(4) as usize * pitch..][..pitch];
            let near = [near(0), near(1), near(2), near(3)];
            combined(simd, near, down, past, &mut out[strip.columns.clone()]);
        }
        if past {
            fence(simd);
        }
        Ok(())
    }
}

/// The columns `needs` of a row, the nearest where they are beyond its ends.
#[inline(always)]
fn pad<S: Simd, T: Pixel>(simd: S, row: &[T], needs: &Range<isize>, padded: &mut [f32]) {
    let n = row.len() as isize;
    let (begin, end) = (needs.start.clamp(0, n - 1), needs.end.clamp(1, n));
    let (before, inside) = ((begin - needs.start) as usize, (end - begin) as usize);
    T::singles(simd, &row[begin as usize..end as usize], &mut padded[before..before + inside]);
    padded[..before].fill(row[0].single());
    padded[before + inside..needs.len()].fill(row[row.len() - 1].single());
}

/// Columns by four permutations of 32 pixels for sixteen of them; false where the processor has none. A loop
/// of its own: in one with the other way, its counters would not stay in registers.
#[inline(always)]
fn picked<S: Simd>(simd: S, padded: &[f32], groups: &[Group], out: &mut [f32]) -> bool {
    for (group, out) in groups.iter().zip(out.chunks_exact_mut(16)) {
        let pixels = &padded[group.from..group.from + 32];
        let (a, b) = (f32x16::from_slice(simd, &pixels[..16]), f32x16::from_slice(simd, &pixels[16..]));
        let first = i32x16::from_slice(simd, &group.first);
        let [w0, w1, w2, w3] = &group.weights;
        let Some(p0) = pick(simd, a, b, first) else { return false };
        let Some(p1) = pick(simd, a, b, first + 1) else { return false };
        let Some(p2) = pick(simd, a, b, first + 2) else { return false };
        let Some(p3) = pick(simd, a, b, first + 3) else { return false };
        let left = p1.mul_add(f32x16::from_slice(simd, w1), p0 * f32x16::from_slice(simd, w0));
        let right = p3.mul_add(f32x16::from_slice(simd, w3), p2 * f32x16::from_slice(simd, w2));
        (left + right).store_slice(out);
    }
    true
}

/// Σ_j down\[j\] near\[j\]; `past` the caches or not.
#[inline(always)]
fn combined<S: Simd, T: Pixel>(simd: S, near: [&[f32]; 4], down: &[f32; 4], past: bool, out: &mut [T]) {
    let n = out.len();
    let weights = [
        f32x16::splat(simd, down[0]),
        f32x16::splat(simd, down[1]),
        f32x16::splat(simd, down[2]),
        f32x16::splat(simd, down[3]),
    ];
    let mut x = if past { to_line(out) } else { 0 };
    if x > 0 {
        piece(simd, sums(simd, near, &weights, 0), &mut out[..x]);
    }
    while let Some(out) = out.get_mut(x..x + STEP) {
        let sums = sums(simd, near, &weights, x);
        if past {
            T::stream(simd, sums, out);
        } else {
            T::store(simd, sums, out);
        }
        x += STEP;
    }
    if x < n {
        piece(simd, sums(simd, near, &weights, x), &mut out[x..]);
    }
}

#[inline(always)]
fn sums<S: Simd>(simd: S, near: [&[f32]; 4], weights: &[f32x16<S>; 4], x: usize) -> [f32x16<S>; 4] {
    let [a, b, c, d] = near;
    let mut sums = [f32x16::splat(simd, 0.0); 4];
    for (i, sum) in sums.iter_mut().enumerate() {
        let part = x + 16 * i..x + 16 * i + 16;
        let left = f32x16::from_slice(simd, &a[part.clone()]) * weights[0];
        let left = f32x16::from_slice(simd, &b[part.clone()]).mul_add(weights[1], left);
        let right = f32x16::from_slice(simd, &c[part.clone()]) * weights[2];
        *sum = left + f32x16::from_slice(simd, &d[part]).mul_add(weights[3], right);
    }
    sums
}

/// As many as `out` has.
#[inline(always)]
fn piece<S: Simd, T: Pixel>(simd: S, values: [f32x16<S>; 4], out: &mut [T]) {
    let mut piece = [T::zeroed(); STEP];
    T::store(simd, values, &mut piece);
    out.copy_from_slice(&piece[..out.len()]);
}

/// Numbers of bytes.
#[inline(always)]
pub(super) fn singles_of_bytes<S: Simd>(simd: S, row: &[u8], out: &mut [f32]) {
    let whole = row.len() / STEP * STEP;
    for x in (0..whole).step_by(STEP) {
        let (low, high) = u8x64::from_slice(simd, &row[x..x + STEP]).widen();
        let ((a, b), (c, d)) = (low.widen(), high.widen());
        let parts = [a, b, c, d];
        for i in 0..4 {
            let numbers = f32x16::float_from(parts[i].bitcast::<i32x16<S>>());
            numbers.store_slice(&mut out[x + 16 * i..x + 16 * i + 16]);
        }
    }
    for x in whole..row.len() {
        out[x] = row[x].into();
    }
}

/// The nearest bytes.
#[inline(always)]
pub(super) fn store_bytes<S: Simd>(_: S, values: [f32x16<S>; 4], out: &mut [u8]) {
    let [a, b, c, d] = values;
    // No value is beyond 16 bits: magnitudes of weights add up to at most 5/2 along each axis.
    let low: i16x32<S> =
        i32x16::truncate_from(a.max(0.0) + 0.5).relaxed_narrow(i32x16::truncate_from(b.max(0.0) + 0.5));
    let high: i16x32<S> =
        i32x16::truncate_from(c.max(0.0) + 0.5).relaxed_narrow(i32x16::truncate_from(d.max(0.0) + 0.5));
    let (low, high) = (low.min(255).bitcast::<u16x32<S>>(), high.min(255).bitcast::<u16x32<S>>());
    low.relaxed_narrow(high).store_slice(out);
}

#[cfg(test)]
mod tests {
    use rayspin_device::cpu::simd::levels;

    use super::super::{Kernel, Tables};
    use super::*;

    #[test]
    fn every_instruction_set_gives_the_sums_of_tables() {
        let device = rayspin_device::Device::cpu_with_threads(1).unwrap();
        for (from, to) in [([1, 1], [3, 70]), ([5, 130], [9, 261]), ([9, 300], [4, 100]), ([6, 90], [7, 65])]
        {
            let bytes = crate::plane::bytes(device.cpu_side(), from[1] as u64, from[0] * from[1]).unwrap();
            let floats: Vec<f32> = bytes.iter().map(|&p| f32::from(p)).collect();
            let tables = Tables::new(from, to, Kernel::Keys(-0.75)).unwrap();
            let of_floats = Job { image: &floats, from, to, tables: &tables };
            let of_bytes = Job { image: &bytes, from, to, tables: &tables };
            let mut want = vec![0.0; to[0] * to[1]];
            of_floats.tabled(&mut want);
            for level in levels() {
                for (columns, past) in [(16, false), (48, true), (COLUMNS, true)] {
                    let mut found = vec![f32::NAN; want.len()];
                    let strips = of_floats.cut(columns).unwrap();
                    of_floats.rows_of_strips(level, &strips, 0, past, &mut found).unwrap();
                    let off = |(a, b): (&f32, &f32)| (a - b).abs();
                    assert!(found.iter().zip(&want).map(off).fold(0.0, f32::max) < 1e-3, "{level:?} {to:?}");
                    let mut found = vec![99; want.len()];
                    let strips = of_bytes.cut(columns).unwrap();
                    of_bytes.rows_of_strips(level, &strips, 0, past, &mut found).unwrap();
                    let off = |(&a, b): (&u8, &f32)| (f32::from(a) - b.clamp(0.0, 255.0)).abs();
                    assert!(found.iter().zip(&want).map(off).fold(0.0, f32::max) < 0.501, "{level:?} {to:?}");
                }
            }
        }
    }
}
