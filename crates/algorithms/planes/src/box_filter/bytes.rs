//! Bytes in integers: sums along y of 16 bits; along x, differences of what enters and leaves, summed by
//! scans in registers.

use fearless_simd::{f32x16, i16x32, i32x16, u8x64, u16x32};
use rayon::prelude::*;
use rayspin_core::Result;
use rayspin_device::Cpu;
use rayspin_device::cpu::simd::prelude::*;
use rayspin_device::cpu::simd::{Level, Simd, dispatch};
use rayspin_device::cpu::zeroed;

use super::cpu::{Job, SUMS};
use super::{Pixel, Problem};
use crate::simd::upper;

/// The largest radius: a mean in f32 errs by 2 · 2⁻¹⁷, one rounding of a product and one of a sum, and must
/// not by the 1 / (2 area) that keeps means off a half.
pub(super) const MOST: usize = 89;
/// Windows up to here are added column by column in 16 bits, which hold up to 257 bytes; of wider ones scans
/// take less time.
const SMALL: usize = 5;
/// Differences of sums along y up to here fit 16 bits with a sign.
const SIGNED: usize = 63;
/// Pixels at a time.
const STEP: usize = 64;

pub(super) fn refuses(problem: &Problem) -> Option<String> {
    (!problem.bytes || problem.radius > MOST)
        .then(|| format!("{problem}: bytes with a radius up to {MOST} alone"))
}

/// The same job where it is one of bytes that sums of 16 bits are enough for.
pub(super) fn of<'a, T: Pixel>(job: &Job<'a, T>) -> Option<Job<'a, u8>> {
    let Job { rows, columns, radius, .. } = *job;
    let fits = size_of::<T>() == 1 && radius <= MOST;
    fits.then(|| Job { image: bytemuck::cast_slice(job.image), rows, columns, radius })
}

impl Job<'_, u8> {
    pub(super) fn scanned(&self, cpu: &Cpu, out: &mut [u8]) -> Result<()> {
        let level = cpu.level();
        let each = self.each(cpu.threads());
        cpu.run(|| {
            out.par_chunks_mut(each * self.columns)
                .enumerate()
                .try_for_each(|(task, out)| self.rows_scanned(level, task * each, out))
        })
    }

    /// Rows `first..`, as many as `out` has.
    fn rows_scanned(&self, level: Level, first: usize, out: &mut [u8]) -> Result<()> {
        match self.radius {
            r if (1..=SMALL).contains(&r) => {
                dispatch!(level, simd => self.scan_band::<_, true, false>(simd, first, out))
            }
            ..=SIGNED => dispatch!(level, simd => self.scan_band::<_, false, false>(simd, first, out)),
            _ => dispatch!(level, simd => self.scan_band::<_, false, true>(simd, first, out)),
        }
    }

    #[inline(always)]
    fn scan_band<S: Simd, const ADDED: bool, const WIDE: bool>(
        &self,
        simd: S,
        first: usize,
        out: &mut [u8],
    ) -> Result<()> {
        let (r, n, width) = (self.radius, self.columns, 2 * self.radius + 1);
        // A 0 that no window has, r columns before the first, and those after the last that whole steps read.
        let mut sums = zeroed::<u16>(SUMS, width + n.next_multiple_of(STEP) + STEP)?;
        for j in -(r as isize)..r as isize {
            let row = self.row(first as isize + j);
            sums[r + 1..r + 1 + n].iter_mut().zip(row).for_each(|(sum, &p)| *sum += u16::from(p));
        }
        let none = zeroed::<u8>(SUMS, n)?;
        let mut leaving: &[u8] = &none;
        for (row, out) in out.chunks_exact_mut(n).enumerate() {
            let y = (first + row) as isize;
            slide(simd, self.row(y + r as isize), leaving, &mut sums[r + 1..r + 1 + n]);
            leaving = self.row(y - r as isize);
            let (left, right) = (sums[r + 1], sums[r + n]);
            sums[1..r + 1].fill(left);
            sums[r + 1 + n..].fill(right);
            if ADDED {
                added(simd, &sums[1..], width, out);
            } else {
                scanned::<S, WIDE>(simd, &sums, width, out);
            }
        }
        Ok(())
    }
}

/// sums += entering − leaving.
#[inline(always)]
fn slide<S: Simd>(simd: S, entering: &[u8], leaving: &[u8], sums: &mut [u16]) {
    let whole = sums.len() / STEP * STEP;
    for x in (0..whole).step_by(STEP) {
        let (e0, e1) = u8x64::from_slice(simd, &entering[x..x + STEP]).widen();
        let (l0, l1) = u8x64::from_slice(simd, &leaving[x..x + STEP]).widen();
        let (low, high) = sums[x..x + STEP].split_at_mut(STEP / 2);
        (u16x32::from_slice(simd, low) + (e0 - l0)).store_slice(low);
        (u16x32::from_slice(simd, high) + (e1 - l1)).store_slice(high);
    }
    for x in whole..sums.len() {
        sums[x] = sums[x].wrapping_add(entering[x].into()).wrapping_sub(leaving[x].into());
    }
}

/// What divides t + area / 2 by the area, and rounds down, for every total t of bytes: a product's upper
/// half, shifted. Areas from 9 to 225.
fn reciprocal(area: u32) -> (u16, u32) {
    let shift = area.ilog2();
    ((1u32 << (16 + shift)).div_ceil(area) as u16, shift)
}

/// Means whose totals fit 16 bits: windows added up column by column.
#[inline(always)]
fn added<S: Simd>(simd: S, sums: &[u16], width: usize, out: &mut [u8]) {
    let area = (width * width) as u32;
    let (by, shift) = reciprocal(area);
    let n = out.len();
    for x in (0..n).step_by(STEP) {
        let mut means = [u16x32::splat(simd, 0); 2];
        for (half, mean) in means.iter_mut().enumerate() {
            let start = x + STEP / 2 * half;
            let near = &sums[start..start + width + STEP / 2 - 1];
            let mut total = u16x32::splat(simd, (area / 2) as u16);
            for i in 0..width {
                total += u16x32::from_slice(simd, &near[i..i + STEP / 2]);
            }
            *mean = upper(simd, total, by) >> shift;
        }
        store(means[0].relaxed_narrow(means[1]), x, out);
    }
}

/// Σ over the lanes up to each.
#[inline(always)]
fn scan<S: Simd>(simd: S, v: i32x16<S>) -> i32x16<S> {
    let zero = i32x16::splat(simd, 0);
    let v = v + zero.slide::<15>(v);
    let v = v + zero.slide::<14>(v);
    let v = v + zero.slide::<12>(v);
    v + zero.slide::<8>(v)
}

/// 1 / area as the sum of two f32.
fn parts(area: f64) -> [f32; 2] {
    let high = (1.0 / area) as f32;
    [high, (1.0 / area - f64::from(high)) as f32]
}

/// Means from scans of what enters the window less what leaves it; sums\[x\] leaves it at x, sums\[x +
/// width\] enters.
#[inline(always)]
fn scanned<S: Simd, const WIDE: bool>(simd: S, sums: &[u16], width: usize, out: &mut [u8]) {
    let [high, low] = parts((width * width) as f64);
    let (high, low) = (f32x16::splat(simd, high), f32x16::splat(simd, low));
    let half = f32x16::splat(simd, 0.5);
    let mut before = i32x16::splat(simd, sums[1..width].iter().map(|&sum| i32::from(sum)).sum());
    let n = out.len();
    for x in (0..n).step_by(STEP) {
        let mut steps = [before; 4];
        for half in 0..2 {
            let start = x + STEP / 2 * half;
            let leave = u16x32::from_slice(simd, &sums[start..start + STEP / 2]);
            let enter = u16x32::from_slice(simd, &sums[start + width..start + width + STEP / 2]);
            let (a, b) = if WIDE {
                let ((e0, e1), (l0, l1)) = (enter.widen(), leave.widen());
                ((e0 - l0).bitcast(), (e1 - l1).bitcast())
            } else {
                (enter - leave).bitcast::<i16x32<S>>().widen()
            };
            steps[2 * half] = scan(simd, a);
            steps[2 * half + 1] = scan(simd, b);
        }
        for step in &mut steps {
            let total = *step + before;
            // The scan gives the carry, not the total: the next piece waits for one addition.
            before += i32x16::splat(simd, step.as_slice()[15]);
            let mean = f32x16::float_from(total).mul_add(high, f32x16::float_from(total).mul_add(low, half));
            *step = i32x16::truncate_from(mean);
        }
        let bytes = steps[0].relaxed_narrow(steps[1]).bitcast::<u16x32<S>>();
        let more = steps[2].relaxed_narrow(steps[3]).bitcast::<u16x32<S>>();
        store(bytes.relaxed_narrow(more), x, out);
    }
}

/// Stores as many of the bytes as `out` has from `x` on.
#[inline(always)]
fn store<S: Simd>(bytes: u8x64<S>, x: usize, out: &mut [u8]) {
    if let Some(out) = out.get_mut(x..x + STEP) {
        bytes.store_slice(out);
    } else {
        let left = out.len() - x;
        out[x..].copy_from_slice(&bytes.as_slice()[..left]);
    }
}

#[cfg(test)]
mod tests {
    use rayspin_device::cpu::simd::levels;

    use super::*;

    #[test]
    fn means_are_rounded_as_integers_are() {
        for radius in 0..=MOST as u32 {
            let area = (2 * radius + 1).pow(2);
            let want = |total: u32| (2 * total + area) / (2 * area);
            // Totals next to where the rounded mean changes.
            let edges = (0..=255).flat_map(|mean| {
                let edge = mean * area + area / 2;
                [edge.saturating_sub(1), edge, edge + 1].map(|total| total.min(255 * area))
            });
            let [high, low] = parts(area.into());
            let (by, shift) = reciprocal(area.max(9));
            for total in edges {
                let single = total as f32;
                let fused = single.mul_add(high, single.mul_add(low, 0.5)) as u32;
                assert_eq!(fused, want(total), "{total} of {area}");
                assert_eq!((single * high + (single * low + 0.5)) as u32, want(total), "{total} of {area}");
                if (1..=SMALL).contains(&(radius as usize)) {
                    let upper = ((total + area / 2) * u32::from(by)) >> 16 >> shift;
                    assert_eq!(upper, want(total), "{total} of {area}");
                }
            }
        }
    }

    #[test]
    fn every_instruction_set_gives_the_running_means() {
        let device = rayspin_device::Device::cpu_with_threads(1).unwrap();
        for (rows, columns, radius) in
            [(1, 1, 0), (5, 3, 2), (9, 64, 7), (33, 130, 8), (7, 65, 63), (5, 200, 64), (4, 150, 89)]
        {
            for white in [false, true] {
                let mut image =
                    crate::plane::bytes(device.cpu_side(), radius as u64, rows * columns).unwrap();
                if white {
                    image.fill(255);
                }
                let job = Job { image: &image, rows, columns, radius };
                let mut want = vec![0; image.len()];
                job.running(&mut want).unwrap();
                for level in levels() {
                    let mut found: Vec<u8> = want.iter().map(|p| !p).collect();
                    job.rows_scanned(level, 0, &mut found).unwrap();
                    assert!(found == want, "{level:?}: {rows} x {columns}, radius {radius}");
                }
            }
        }
    }
}
