//! Small windows of f32: rows, then columns, added as they are. Sums that run along y in f64 move three times
//! the bytes.

use fearless_simd::f32x16;
use rayon::prelude::*;
use rayspin_core::Result;
use rayspin_device::Cpu;
use rayspin_device::cpu::simd::prelude::*;
use rayspin_device::cpu::simd::{Level, Simd, dispatch};
use rayspin_device::cpu::zeroed;

use super::cpu::{Job, SUMS};
use super::{Pixel, Problem};
use crate::simd::{PAST_CACHES, fence, stream, to_line};

/// The largest radius.
const MOST: usize = 2;
/// Pixels at a time.
const STEP: usize = 64;
/// Pixels of a vector.
const LANES: usize = 16;

pub(super) fn refuses(problem: &Problem) -> Option<String> {
    (problem.bytes || !(1..=MOST).contains(&problem.radius))
        .then(|| format!("{problem}: f32 with a radius from 1 to {MOST} alone"))
}

/// The same job where it is one of f32 with a small window.
pub(super) fn of<'a, T: Pixel>(job: &Job<'a, T>) -> Option<Job<'a, f32>> {
    let Job { rows, columns, radius, .. } = *job;
    let fits = size_of::<T>() == size_of::<f32>() && (1..=MOST).contains(&radius);
    fits.then(|| Job { image: bytemuck::cast_slice(job.image), rows, columns, radius })
}

impl Job<'_, f32> {
    pub(super) fn near(&self, cpu: &Cpu, out: &mut [f32]) -> Result<()> {
        let level = cpu.level();
        let each = self.each(cpu.threads());
        let past = size_of_val(out) > PAST_CACHES;
        cpu.run(|| {
            out.par_chunks_mut(each * self.columns)
                .enumerate()
                .try_for_each(|(task, out)| self.rows_near(level, task * each, past, out))
        })
    }

    /// Rows `first..`, as many as `out` has.
    fn rows_near(&self, level: Level, first: usize, past: bool, out: &mut [f32]) -> Result<()> {
        match self.radius {
            1 => dispatch!(level, simd => self.near_band::<_, 3>(simd, first, past, out)),
            _ => dispatch!(level, simd => self.near_band::<_, 5>(simd, first, past, out)),
        }
    }

    #[inline(always)]
    fn near_band<S: Simd, const WIDTH: usize>(
        &self,
        simd: S,
        first: usize,
        past: bool,
        out: &mut [f32],
    ) -> Result<()> {
        let (r, n) = (WIDTH / 2, self.columns);
        let inverse = (1.0 / (WIDTH * WIDTH) as f64) as f32;
        let mut sums = zeroed::<f32>(SUMS, n + STEP + WIDTH)?;
        for (line, out) in out.chunks_exact_mut(n).enumerate() {
            let top = (first + line) as isize - r as isize;
            let mut rows = [self.row(top); WIDTH];
            for (j, row) in rows.iter_mut().enumerate() {
                *row = self.row(top + j as isize);
            }
            down(simd, &rows, &mut sums[r..r + n]);
            let (left, right) = (sums[r], sums[r + n - 1]);
            sums[..r].fill(left);
            sums[r + n..].fill(right);
            across::<S, WIDTH>(simd, &sums, inverse, past, out);
        }
        if past {
            fence(simd);
        }
        Ok(())
    }
}

/// Sums of the rows.
#[inline(always)]
fn down<S: Simd, const WIDTH: usize>(simd: S, rows: &[&[f32]; WIDTH], sums: &mut [f32]) {
    let whole = sums.len() / LANES * LANES;
    for x in (0..whole).step_by(LANES) {
        let mut sum = f32x16::from_slice(simd, &rows[0][x..x + LANES]);
        for row in &rows[1..] {
            sum += f32x16::from_slice(simd, &row[x..x + LANES]);
        }
        sum.store_slice(&mut sums[x..x + LANES]);
    }
    for x in whole..sums.len() {
        sums[x] = rows.iter().map(|row| row[x]).sum();
    }
}

/// Means of windows of columns; `past` the caches or not.
#[inline(always)]
fn across<S: Simd, const WIDTH: usize>(simd: S, sums: &[f32], inverse: f32, past: bool, out: &mut [f32]) {
    let n = out.len();
    let mut x = if past { to_line(out) } else { 0 };
    if x > 0 {
        piece(means::<S, WIDTH>(simd, sums, inverse), &mut out[..x]);
    }
    while let Some(out) = out.get_mut(x..x + STEP) {
        let means = means::<S, WIDTH>(simd, &sums[x..], inverse);
        if past {
            stream(simd, means, out);
        } else {
            piece(means, out);
        }
        x += STEP;
    }
    if x < n {
        piece(means::<S, WIDTH>(simd, &sums[x..], inverse), &mut out[x..]);
    }
}

/// Means of `STEP` windows. The first begins with the first of `sums`, each other one element later.
#[inline(always)]
fn means<S: Simd, const WIDTH: usize>(simd: S, sums: &[f32], inverse: f32) -> [f32x16<S>; STEP / LANES] {
    let near = &sums[..STEP + WIDTH - 1];
    let mut totals = [f32x16::splat(simd, 0.0); STEP / LANES];
    for i in 0..WIDTH {
        for (total, sums) in totals.iter_mut().zip(near[i..].chunks_exact(LANES)) {
            *total += f32x16::from_slice(simd, sums);
        }
    }
    for total in &mut totals {
        *total *= inverse;
    }
    totals
}

/// As many as `out` has.
#[inline(always)]
fn piece<S: Simd>(means: [f32x16<S>; STEP / LANES], out: &mut [f32]) {
    for (mean, out) in means.iter().zip(out.chunks_mut(LANES)) {
        if out.len() == LANES {
            mean.store_slice(out);
        } else {
            out.copy_from_slice(&mean.as_slice()[..out.len()]);
        }
    }
}

#[cfg(test)]
mod tests {
    use rayspin_device::cpu::simd::levels;

    use super::*;

    #[test]
    fn every_instruction_set_gives_the_means_of_whole_windows() {
        let device = rayspin_device::Device::cpu_with_threads(1).unwrap();
        for (rows, columns, radius) in [(1, 1, 1), (3, 2, 2), (9, 64, 1), (7, 131, 2), (5, 20, 1)] {
            let image = rayspin_tune::uniform(device.cpu_side(), radius as u64, rows * columns).unwrap();
            let job = Job { image: &image, rows, columns, radius };
            let mut want = vec![0.0; image.len()];
            job.naive(&mut want);
            for level in levels() {
                for past in [false, true] {
                    let mut found = vec![f32::NAN; want.len()];
                    job.rows_near(level, 0, past, &mut found).unwrap();
                    let off = found.iter().zip(&want).map(|(a, b)| (a - b).abs());
                    assert!(
                        off.clone().all(|off| off < 1e-6),
                        "{level:?}: {rows} x {columns}, radius {radius}"
                    );
                }
            }
        }
    }
}
