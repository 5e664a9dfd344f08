use bytemuck::Zeroable;
use rayon::prelude::*;
use rayspin_core::Result;
use rayspin_device::Cpu;
use rayspin_device::cpu::simd::{Level, Simd, dispatch};
use rayspin_device::cpu::zeroed;

use super::Pixel;

fn held(i: isize, n: usize) -> usize {
    i.clamp(0, n as isize - 1) as usize
}

/// What the variants allocate, where an error names it.
pub(super) const SUMS: &str = "sums of a row of windows";

/// An image and how it is filtered.
pub(super) struct Job<'a, T> {
    pub image: &'a [T],
    pub rows: usize,
    pub columns: usize,
    pub radius: usize,
}

impl<T: Pixel> Job<'_, T> {
    fn area(&self) -> f64 {
        (2.0 * self.radius as f64 + 1.0).powi(2)
    }

    /// The row that counts for `y`.
    pub(super) fn row(&self, y: isize) -> &[T] {
        &self.image[held(y, self.rows) * self.columns..][..self.columns]
    }

    /// All pixels of each window.
    pub(super) fn naive(&self, out: &mut [T]) {
        let (r, inverse) = (self.radius as isize, 1.0 / self.area());
        for (y, out) in out.chunks_exact_mut(self.columns).enumerate() {
            for (x, out) in out.iter_mut().enumerate() {
                let mut sum = 0.0;
                for j in -r..=r {
                    let row = self.row(y as isize + j);
                    for i in -r..=r {
                        sum += row[held(x as isize + i, self.columns)].into();
                    }
                }
                *out = T::of_f64(sum * inverse);
            }
        }
    }

    /// Sums along y, then of those along x. Errors: memory for the sums, as of all below.
    pub(super) fn separable(&self, out: &mut [T]) -> Result<()> {
        let (r, inverse) = (self.radius as isize, 1.0 / self.area());
        let mut sums = zeroed::<f64>(SUMS, self.columns)?;
        for (y, out) in out.chunks_exact_mut(self.columns).enumerate() {
            sums.fill(0.0);
            for j in -r..=r {
                sums.iter_mut().zip(self.row(y as isize + j)).for_each(|(sum, &p)| *sum += p.into());
            }
            for (x, out) in out.iter_mut().enumerate() {
                let sum: f64 = (-r..=r).map(|i| sums[held(x as isize + i, self.columns)]).sum();
                *out = T::of_f64(sum * inverse);
            }
        }
        Ok(())
    }

    /// What enters a sum less what leaves it, along y and along x.
    pub(super) fn running(&self, out: &mut [T]) -> Result<()> {
        let (r, inverse, n) = (self.radius as isize, 1.0 / self.area(), self.columns);
        let mut sums = zeroed::<f64>(SUMS, n)?;
        for j in -r..r {
            sums.iter_mut().zip(self.row(j)).for_each(|(sum, &p)| *sum += p.into());
        }
        for (y, out) in out.chunks_exact_mut(n).enumerate() {
            sums.iter_mut().zip(self.row(y as isize + r)).for_each(|(sum, &p)| *sum += p.into());
            let mut total: f64 = (-r..r).map(|i| sums[held(i, n)]).sum();
            for (x, out) in out.iter_mut().enumerate() {
                total += sums[held(x as isize + r, n)];
                *out = T::of_f64(total * inverse);
                total -= sums[held(x as isize - r, n)];
            }
            sums.iter_mut().zip(self.row(y as isize - r)).for_each(|(sum, &p)| *sum -= p.into());
        }
        Ok(())
    }

    /// Rows `first..`, as many as `out` has: running sums along y; along x windows that double.
    pub(super) fn vectors(&self, level: Level, first: usize, out: &mut [T]) -> Result<()> {
        match T::class(self.radius) {
            Class::Small => dispatch!(level, simd => self.band::<_, i32, true>(simd, first, out)),
            Class::Medium => dispatch!(level, simd => self.band::<_, i32, false>(simd, first, out)),
            Class::Large => dispatch!(level, simd => self.band::<_, f64, false>(simd, first, out)),
            Class::Real => dispatch!(level, simd => self.band::<_, f32, true>(simd, first, out)),
        }
    }

    #[inline(always)]
    fn band<S: Simd, W: Window, const SMALL: bool>(&self, _: S, first: usize, out: &mut [T]) -> Result<()> {
        let (r, inverse, n) = (self.radius as isize, 1.0 / self.area(), self.columns);
        let mut sums = zeroed::<T::Sum>(SUMS, n)?;
        for j in -r..r {
            enter(self.row(first as isize + j), &mut sums);
        }
        // Window sums of 1, 2, 4 … columns from each on, and the sum over the windows that make up 2r + 1.
        let mut powers = zeroed::<W>(SUMS, n + 2 * self.radius)?;
        let mut totals = zeroed::<W>(SUMS, n)?;
        for (row, out) in out.chunks_exact_mut(n).enumerate() {
            let y = (first + row) as isize;
            enter(self.row(y + r), &mut sums);
            let (left, rest) = powers.split_at_mut(self.radius);
            let (middle, right) = rest.split_at_mut(n);
            for (power, &sum) in middle.iter_mut().zip(&sums) {
                *power = W::of::<T>(sum);
            }
            left.fill(middle[0]);
            right.fill(middle[n - 1]);
            windows(&mut powers, &mut totals, 2 * self.radius + 1);
            if SMALL {
                let inverse = inverse as f32;
                for (out, &total) in out.iter_mut().zip(&totals) {
                    *out = T::of_f32(total.single() * inverse);
                }
            } else {
                for (out, &total) in out.iter_mut().zip(&totals) {
                    *out = T::of_f64(total.double() * inverse);
                }
            }
            leave(self.row(y - r), &mut sums);
        }
        Ok(())
    }

    pub(super) fn threads(&self, cpu: &Cpu, out: &mut [T]) -> Result<()> {
        let level = cpu.level();
        let each = self.each(cpu.threads());
        cpu.run(|| {
            out.par_chunks_mut(each * self.columns)
                .enumerate()
                .try_for_each(|(task, out)| self.vectors(level, task * each, out))
        })
    }

    /// Rows of a task.
    pub(super) fn each(&self, threads: usize) -> usize {
        // A band begins with 2r rows that give nothing.
        let least = (4 * self.radius).max((1usize << 16).div_ceil(self.columns));
        self.rows.div_ceil(4 * threads).max(least).min(self.rows)
    }
}

#[inline(always)]
fn enter<T: Pixel>(row: &[T], sums: &mut [T::Sum]) {
    for (sum, &p) in sums.iter_mut().zip(row) {
        *sum = T::add(*sum, p);
    }
}

#[inline(always)]
fn leave<T: Pixel>(row: &[T], sums: &mut [T::Sum]) {
    for (sum, &p) in sums.iter_mut().zip(row) {
        *sum = T::sub(*sum, p);
    }
}

/// totals\[x\] = Σ powers\[x .. x + width\].
///
/// Each step doubles the windows in `powers`. It adds them to the totals where `width` has the binary digit
/// 1. That makes about 2 log₂ width additions, all of vectors and with the rounding of a pairwise sum.
#[inline(always)]
fn windows<W: Window>(powers: &mut [W], totals: &mut [W], width: usize) {
    let n = totals.len();
    // width is odd: the first digit is set.
    totals.copy_from_slice(&powers[..n]);
    let (mut have, mut done) = (1, 1);
    while 2 * have <= width {
        // In place and upwards: what is read lies ahead of what is written.
        let len = n + width - 2 * have;
        W::doubled(powers, have, len);
        have *= 2;
        if width & have != 0 {
            for (total, &power) in totals.iter_mut().zip(&powers[done..done + n]) {
                *total = total.plus(power);
            }
            done += have;
        }
    }
}

/// How wide numbers must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Totals of 32 bits, means in f32.
    Small,
    /// Totals of 32 bits, means in f64.
    Medium,
    /// Totals and means in f64.
    Large,
    /// f32 throughout.
    Real,
}

/// What windows are summed in.
trait Window: Copy + Default + Zeroable {
    fn of<T: Pixel>(sum: T::Sum) -> Self;
    fn plus(self, other: Self) -> Self;
    fn single(self) -> f32;
    fn double(self) -> f64;

    /// values\[i\] += values\[i + by\] for i < len, each with the values from before.
    #[inline(always)]
    fn doubled(values: &mut [Self], by: usize, len: usize) {
        const PIECE: usize = 16;
        let mut start = 0;
        // Through a piece that is read before it is written, or the compiler fears overlap and adds one by
        // one.
        while start + PIECE <= len {
            let mut piece = [Self::default(); PIECE];
            piece.copy_from_slice(&values[start + by..start + by + PIECE]);
            for (value, other) in values[start..start + PIECE].iter_mut().zip(&piece) {
                *value = value.plus(*other);
            }
            start += PIECE;
        }
        for i in start..len {
            values[i] = values[i].plus(values[i + by]);
        }
    }
}

macro_rules! window {
    ($($type:ty, $sum:ident, $plus:expr;)*) => {$(
        impl Window for $type {
            #[inline(always)]
            fn of<T: Pixel>(sum: T::Sum) -> Self {
                T::$sum(sum)
            }
            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                $plus(self, other)
            }
            #[inline(always)]
            fn single(self) -> f32 {
                self as f32
            }
            #[inline(always)]
            fn double(self) -> f64 {
                self as f64
            }
        }
    )*};
}
window! {
    i32, sum_i32, i32::wrapping_add;
    f32, sum_f32, |a: f32, b: f32| a + b;
    f64, sum_f64, |a: f64, b: f64| a + b;
}
