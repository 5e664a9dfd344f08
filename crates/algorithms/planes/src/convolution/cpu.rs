use rayon::prelude::*;
use rayspin_core::Result;
use rayspin_device::Cpu;
use rayspin_device::cpu::simd::prelude::*;
use rayspin_device::cpu::simd::{Level, Simd, dispatch};
use rayspin_device::cpu::zeroed;

fn held(i: isize, n: usize) -> usize {
    i.clamp(0, n as isize - 1) as usize
}

/// An image and its taps, both of odd number.
pub(super) struct Job<'a> {
    pub image: &'a [f32],
    pub rows: usize,
    pub columns: usize,
    pub across: &'a [f32],
    pub down: &'a [f32],
}

impl Job<'_> {
    fn row(&self, y: isize) -> &[f32] {
        &self.image[held(y, self.rows) * self.columns..][..self.columns]
    }

    /// All products of taps.
    pub(super) fn naive(&self, out: &mut [f32]) {
        let (rx, ry) = (self.across.len() as isize / 2, self.down.len() as isize / 2);
        for (y, out) in out.chunks_exact_mut(self.columns).enumerate() {
            for (x, out) in out.iter_mut().enumerate() {
                let mut sum = 0.0;
                for (j, d) in self.down.iter().enumerate() {
                    let row = self.row(y as isize + ry - j as isize);
                    for (i, a) in self.across.iter().enumerate() {
                        sum += d * a * row[held(x as isize + rx - i as isize, self.columns)];
                    }
                }
                *out = sum;
            }
        }
    }

    /// Along rows, then along columns, a pixel at a time; `between` holds an image.
    pub(super) fn separable(&self, between: &mut [f32], out: &mut [f32]) {
        let n = self.columns;
        let (rx, ry) = (self.across.len() as isize / 2, self.down.len() as isize / 2);
        for (y, to) in between.chunks_exact_mut(n).enumerate() {
            let row = self.row(y as isize);
            for (x, to) in to.iter_mut().enumerate() {
                let source = |i: usize| row[held(x as isize + rx - i as isize, n)];
                *to = self.across.iter().enumerate().map(|(i, a)| a * source(i)).sum();
            }
        }
        for (y, out) in out.chunks_exact_mut(n).enumerate() {
            for (x, out) in out.iter_mut().enumerate() {
                let source = |j: usize| between[held(y as isize + ry - j as isize, self.rows) * n + x];
                *out = self.down.iter().enumerate().map(|(j, d)| d * source(j)).sum();
            }
        }
    }

    /// Rows `first..`, as many as `out` has: the last rows filtered along x stay in the cache until they are
    /// no longer needed.
    ///
    /// Errors: memory for them.
    pub(super) fn vectors(&self, level: Level, first: usize, out: &mut [f32]) -> Result<()> {
        let (n, rx, ry) = (self.columns, self.across.len() / 2, self.down.len() / 2);
        let count = self.down.len();
        let mut padded = zeroed::<f32>("row with its edges", n + 2 * rx)?;
        let mut ring = zeroed::<f32>("filtered rows", count * n)?;
        let mut filter = |y: isize, to: &mut [f32]| {
            let row = self.row(y);
            padded[..rx].fill(row[0]);
            padded[rx..rx + n].copy_from_slice(row);
            padded[rx + n..].fill(row[n - 1]);
            let sources: Vec<&[f32]> = (0..self.across.len()).map(|i| &padded[2 * rx - i..][..n]).collect();
            dispatch!(level, simd => weighted(simd, self.across, &sources, to));
        };
        let slot = |y: isize| (y + ry as isize).rem_euclid(count as isize) as usize;
        let begin = first as isize - ry as isize;
        for y in begin..begin + 2 * ry as isize {
            filter(y, &mut ring[slot(y) * n..][..n]);
        }
        for (row, out) in out.chunks_exact_mut(n).enumerate() {
            let y = (first + row) as isize;
            if self.down == [1.0] {
                filter(y, out);
                continue;
            }
            let next = y + ry as isize;
            filter(next, &mut ring[slot(next) * n..][..n]);
            let sources: Vec<&[f32]> =
                (0..count).map(|j| &ring[slot(next - j as isize) * n..][..n]).collect();
            dispatch!(level, simd => weighted(simd, self.down, &sources, out));
        }
        Ok(())
    }

    pub(super) fn threads(&self, cpu: &Cpu, out: &mut [f32]) -> Result<()> {
        let level = cpu.level();
        // A band begins with rows that give nothing.
        let least = (4 * self.down.len()).max((1usize << 15).div_ceil(self.columns));
        let each = self.rows.div_ceil(4 * cpu.threads()).max(least).min(self.rows);
        cpu.run(|| {
            out.par_chunks_mut(each * self.columns)
                .enumerate()
                .try_for_each(|(task, out)| self.vectors(level, task * each, out))
        })
    }
}

/// out\[x\] = Σ_k taps\[k\] sources\[k\]\[x\].
#[inline(always)]
fn weighted<S: Simd>(simd: S, taps: &[f32], sources: &[&[f32]], out: &mut [f32]) {
    let lanes = S::f32s::LEN;
    let mut x = 0;
    // Four sums at a time hide the latency of multiply-adds.
    while x + 4 * lanes <= out.len() {
        let zero = S::f32s::splat(simd, 0.0);
        let (mut a, mut b, mut c, mut d) = (zero, zero, zero, zero);
        for (&tap, source) in taps.iter().zip(sources) {
            let tap = S::f32s::splat(simd, tap);
            let source = &source[x..x + 4 * lanes];
            a = S::f32s::from_slice(simd, &source[..lanes]).mul_add(tap, a);
            b = S::f32s::from_slice(simd, &source[lanes..2 * lanes]).mul_add(tap, b);
            c = S::f32s::from_slice(simd, &source[2 * lanes..3 * lanes]).mul_add(tap, c);
            d = S::f32s::from_slice(simd, &source[3 * lanes..]).mul_add(tap, d);
        }
        a.store_slice(&mut out[x..x + lanes]);
        b.store_slice(&mut out[x + lanes..x + 2 * lanes]);
        c.store_slice(&mut out[x + 2 * lanes..x + 3 * lanes]);
        d.store_slice(&mut out[x + 3 * lanes..x + 4 * lanes]);
        x += 4 * lanes;
    }
    while x + lanes <= out.len() {
        let mut sum = S::f32s::splat(simd, 0.0);
        for (&tap, source) in taps.iter().zip(sources) {
            let tap = S::f32s::splat(simd, tap);
            sum = S::f32s::from_slice(simd, &source[x..x + lanes]).mul_add(tap, sum);
        }
        sum.store_slice(&mut out[x..x + lanes]);
        x += lanes;
    }
    for (column, out) in out.iter_mut().enumerate().skip(x) {
        *out = taps.iter().zip(sources).map(|(tap, source)| tap * source[column]).sum();
    }
}
