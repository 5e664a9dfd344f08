use fearless_simd::f32x4;
use rayon::prelude::*;
use rayspin_core::Result;
use rayspin_device::Cpu;
use rayspin_device::cpu::simd::prelude::*;
use rayspin_device::cpu::simd::{Level, Simd, dispatch};
use rayspin_device::cpu::zeroed;

use super::{Kernel, Pixel, Tables, reference};

/// What is kept of an image's rows, where an error names it.
pub(super) const ROWS: &str = "resampled rows";

/// An image and what its resampled rows and columns are made of.
pub(super) struct Job<'a, T> {
    pub image: &'a [T],
    pub from: [usize; 2],
    pub to: [usize; 2],
    pub tables: &'a Tables,
}

impl<T: Pixel> Job<'_, T> {
    pub(super) fn held(i: isize, n: usize) -> usize {
        i.clamp(0, n as isize - 1) as usize
    }

    /// Sixteen pixels and their weights, by themselves for each output.
    pub(super) fn scalar(&self, kernel: Kernel, out: &mut [T]) {
        for (y, out) in out.chunks_exact_mut(self.to[1]).enumerate() {
            for (x, out) in out.iter_mut().enumerate() {
                *out = T::of(reference::pixel(self.image, self.from, self.to, kernel, [y, x]) as f32);
            }
        }
    }

    /// The same with places and weights from tables.
    pub(super) fn tabled(&self, out: &mut [T]) {
        let [high, wide] = self.to;
        let ([ys, xs], [downs, acrosses]) = self.tables.split(high);
        for ((y0, down), out) in ys.iter().zip(downs).zip(out.chunks_exact_mut(wide)) {
            for ((x0, across), out) in xs.iter().zip(acrosses).zip(out) {
                let mut sum = 0.0;
                for (j, d) in down.iter().enumerate() {
                    let row = Self::held(*y0 as isize + j as isize - 1, self.from[0]) * self.from[1];
                    let mut part = 0.0;
                    for (i, a) in across.iter().enumerate() {
                        let column = Self::held(*x0 as isize + i as isize - 1, self.from[1]);
                        part += a * self.image[row + column].single();
                    }
                    sum += d * part;
                }
                *out = T::of(sum);
            }
        }
    }

    /// Rows `first..` of the output, as many as `out` has: the last four rows that are resampled along x are
    /// kept.
    ///
    /// Errors: memory for them.
    pub(super) fn vectors(&self, level: Level, first: usize, out: &mut [T]) -> Result<()> {
        let [high, wide] = self.to;
        let ([ys, _], [downs, _]) = self.tables.split(high);
        let mut padded = zeroed::<f32>(ROWS, self.from[1] + 4)?;
        let mut ring = zeroed::<f32>(ROWS, 4 * wide)?;
        let mut next = isize::MIN;
        for (out, (&y0, down)) in out.chunks_exact_mut(wide).zip(ys.iter().zip(downs).skip(first)) {
            let wanted = y0 as isize - 1;
            next = next.max(wanted);
            while next < wanted + 4 {
                let row = &self.image[Self::held(next, self.from[0]) * self.from[1]..][..self.from[1]];
                let slot = next.rem_euclid(4) as usize * wide;
                let to = &mut ring[slot..slot + wide];
                dispatch!(level, simd => along(simd, row, self.tables, high, &mut padded, to));
                next += 1;
            }
            let near = [0, 1, 2, 3].map(|j| &ring[(wanted + j).rem_euclid(4) as usize * wide..][..wide]);
            dispatch!(level, simd => combined(simd, near, down, out));
        }
        Ok(())
    }

    pub(super) fn threads(&self, cpu: &Cpu, out: &mut [T]) -> Result<()> {
        let level = cpu.level();
        let each = self.each(cpu.threads());
        cpu.run(|| {
            out.par_chunks_mut(each * self.to[1])
                .enumerate()
                .try_for_each(|(task, out)| self.vectors(level, task * each, out))
        })
    }

    /// Rows of a task.
    pub(super) fn each(&self, threads: usize) -> usize {
        // A band begins with four rows that the one before has too.
        let least = (1usize << 16).div_ceil(self.to[1]).max(16);
        self.to[0].div_ceil(4 * threads).max(least).min(self.to[0])
    }
}

/// A row resampled along x; `padded` holds it with two pixels more at either end.
#[inline(always)]
fn along<S: Simd, T: Pixel>(
    simd: S,
    row: &[T],
    tables: &Tables,
    high: usize,
    padded: &mut [f32],
    out: &mut [f32],
) {
    let n = row.len();
    for (to, &p) in padded[2..n + 2].iter_mut().zip(row) {
        *to = p.single();
    }
    let (left, right) = (padded[2], padded[n + 1]);
    padded[..2].fill(left);
    padded[n + 2..].fill(right);
    let ([_, xs], [_, weights]) = tables.split(high);
    four_by_four(simd, padded, -2, xs, weights, out);
}

/// Resampled columns of a row. Column x takes four pixels of the image's row, from `xs[x]` − 1 on. `padded`
/// holds that row from pixel `begin` on.
#[inline(always)]
pub(super) fn four_by_four<S: Simd>(
    simd: S,
    padded: &[f32],
    begin: isize,
    xs: &[i32],
    weights: &[[f32; 4]],
    out: &mut [f32],
) {
    let from = -1 - begin as i32;
    let whole = out.len() / 4 * 4;
    for x in (0..whole).step_by(4) {
        let (a, b, c, d) = (
            products(simd, padded, xs[x] + from, &weights[x]),
            products(simd, padded, xs[x + 1] + from, &weights[x + 1]),
            products(simd, padded, xs[x + 2] + from, &weights[x + 2]),
            products(simd, padded, xs[x + 3] + from, &weights[x + 3]),
        );
        // Sums of neighbours twice: of four products each.
        let ab = a.unzip_low(b) + a.unzip_high(b);
        let cd = c.unzip_low(d) + c.unzip_high(d);
        (ab.unzip_low(cd) + ab.unzip_high(cd)).store_slice(&mut out[x..x + 4]);
    }
    for x in whole..out.len() {
        let from = (xs[x] + from) as usize;
        out[x] = weights[x].iter().zip(&padded[from..from + 4]).map(|(w, p)| w * p).sum();
    }
}

/// Four pixels from `from` on and their weights.
#[inline(always)]
fn products<S: Simd>(simd: S, padded: &[f32], from: i32, weights: &[f32; 4]) -> f32x4<S> {
    let from = from as usize;
    f32x4::<S>::from_slice(simd, &padded[from..from + 4]) * f32x4::<S>::from_slice(simd, weights)
}

/// Σ_j down\[j\] near\[j\].
#[inline(always)]
fn combined<S: Simd, T: Pixel>(_: S, near: [&[f32]; 4], down: &[f32; 4], out: &mut [T]) {
    let [a, b, c, d] = near;
    let [wa, wb, wc, wd] = *down;
    for ((((out, a), b), c), d) in out.iter_mut().zip(a).zip(b).zip(c).zip(d) {
        *out = T::of(wa * a + wb * b + (wc * c + wd * d));
    }
}
