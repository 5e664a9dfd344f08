//! A mixed-radix FFT of [`COLUMNS`] columns at once, one per SIMD lane, so that strided axes need no
//! transposition.
//!
//! A buffer row holds one array row's columns, real parts then imaginary parts, so every operation is
//! vertical. Decimation in frequency runs in place and leaves frequencies in digit-reversed rows; decimation
//! in time takes them from there. The order is undone by choosing rows as they are copied out, at no cost.
//! The inverse transform is the forward one with real and imaginary parts exchanged, which copying in and out
//! does too.

use std::any::TypeId;

use num_complex::Complex;
use rayspin_core::Real;
use rayspin_device::cpu::simd::{Level, SimdReal, dispatch};

use super::butterflies::{FromColumns, InPlace, Layout, ToColumns, multiply, pass};
use super::line::COLUMNS;

/// Real parts of [`COLUMNS`] columns, then their imaginary parts (or the other way round, for the inverse).
pub(crate) type Row<R> = [R; 2 * COLUMNS];

/// Longest line for which N-D transforms use this FFT: its rows fill half of a second-level cache.
pub(crate) const LONGEST: usize = 2048;

/// The order in which a transform takes or leaves frequencies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decimation {
    /// Natural order in, frequency k out at row [`LaneFft::row_of`]\[k\].
    Frequency,
    /// Index j in at row [`LaneFft::row_of`]\[j\], natural order out.
    Time,
}

/// Plan of the transforms of one length without prime factors above 7.
#[derive(Debug)]
pub(crate) struct LaneFft<R> {
    n: usize,
    stages: Vec<Stage<R>>,
    row_of: Vec<usize>,
}

/// Butterflies of `radix` rows, `span` apart; twiddles `[span][radix − 1][re, im]`.
#[derive(Debug)]
struct Stage<R> {
    radix: usize,
    span: usize,
    twiddles: Vec<R>,
}

impl<R: Real> LaneFft<R> {
    /// `None` for 0 and for lengths with larger prime factors.
    pub(crate) fn new(n: usize) -> Option<Self> {
        if n == 0 {
            return None;
        }
        let mut rest = n;
        let mut radices = Vec::new();
        for radix in [7, 5, 3, 8, 4, 2] {
            // 16 = 4 · 4 rather than 8 · 2.
            while rest.is_multiple_of(radix) && !(radix == 8 && rest == 16) {
                radices.push(radix);
                rest /= radix;
            }
        }
        if rest != 1 {
            return None;
        }
        // Even ones first: half of the first stage falls away where half of the line is zero or not wanted.
        radices.sort_by_key(|radix| radix % 2);
        let mut row_of = vec![0];
        let mut stages = Vec::new();
        let mut length = n;
        for &radix in &radices {
            let span = length / radix;
            let mut twiddles = Vec::with_capacity(2 * span * (radix - 1));
            for q in 0..span {
                for i in 1..radix {
                    let phase = -std::f64::consts::TAU * (q * i % length) as f64 / length as f64;
                    twiddles.extend([phase.cos(), phase.sin()].map(<R as Real>::from_f64));
                }
            }
            stages.push(Stage { radix, span, twiddles });
            length = span;
        }
        // Row i·span + p of a stage holds frequency i + radix · (frequency of row p of the next).
        for stage in stages.iter().rev() {
            let inner = row_of;
            row_of = (0..stage.radix * stage.span)
                .map(|k| k % stage.radix * stage.span + inner[k / stage.radix])
                .collect();
        }
        Some(Self { n, stages, row_of })
    }

    /// The buffer row of each frequency after decimation in frequency.
    pub(crate) fn row_of(&self) -> &[usize] {
        &self.row_of
    }

    /// Forward transform of all columns of the first n rows, in place.
    pub(crate) fn process(&self, level: Level, rows: &mut [Row<R>], decimation: Decimation) {
        let rows = &mut rows[..self.n];
        if TypeId::of::<R>() == TypeId::of::<f32>() {
            run(level, bytemuck::cast_slice_mut::<Row<R>, Row<f32>>(rows), &self.stages, decimation);
        } else if TypeId::of::<R>() == TypeId::of::<f64>() {
            run(level, bytemuck::cast_slice_mut::<Row<R>, Row<f64>>(rows), &self.stages, decimation);
        }
    }
}

impl<R: SimdReal> LaneFft<R> {
    /// Lines of at most ⌈n/2⌉ rows, up to [`COLUMNS`] of them side by side: padded with zeros to n,
    /// transformed, multiplied by the real spectrum in the order of [`LaneFft::row_of`], transformed back
    /// without scaling, and cropped. `rows` has n rows to work in.
    pub(crate) fn convolve(
        &self,
        level: Level,
        lines: &mut [&mut [Complex<R>]],
        spectrum: &[R],
        rows: &mut [Row<R>],
    ) {
        let rows = &mut rows[..self.n];
        // Copying is part of the first and the last stage where half of the stage falls away.
        let fused = self.stages.split_first().filter(|(first, others)| {
            first.radix % 2 == 0 && !others.is_empty() && 2 * lines.len() <= self.n
        });
        if let Some((first, others)) = fused
            && let Some(mut columns) = whole_columns(lines)
        {
            dispatch!(level, simd => pass::<_, R, false, _>(
                simd,
                FromColumns { columns: &columns, rows: &mut *rows },
                first.layout(self.n),
                &first.twiddles,
            ));
            // The stage leaves several independent lines. Each goes through the other stages alone, within
            // the first-level cache.
            let part = first.span;
            for (rows, spectrum) in rows.chunks_exact_mut(part).zip(spectrum.chunks_exact(part * COLUMNS)) {
                multiply_between(level, others, rows, spectrum);
            }
            dispatch!(level, simd => pass::<_, R, true, _>(
                simd,
                ToColumns { rows: &*rows, columns: &mut columns },
                first.layout(self.n),
                &first.twiddles,
            ));
            return;
        }
        for (row, line) in rows.iter_mut().zip(&*lines) {
            split::<R, false>(line, row);
        }
        rows[lines.len()..].fill([R::zero(); 2 * COLUMNS]);
        multiply_between(level, &self.stages, rows, spectrum);
        for (row, line) in rows.iter().zip(lines) {
            join::<R, true>(row, R::one(), line);
        }
    }
}

/// [`COLUMNS`] columns of each line, if all lines have as many.
fn whole_columns<'a, R>(lines: &'a mut [&mut [Complex<R>]]) -> Option<Vec<&'a mut [Complex<R>; COLUMNS]>> {
    lines.iter_mut().map(|line| (&mut **line).try_into().ok()).collect()
}

/// Forward stages, the product with a real spectrum, and the same stages back; real and imaginary parts are
/// exchanged at the end.
fn multiply_between<R: SimdReal>(level: Level, stages: &[Stage<R>], rows: &mut [Row<R>], spectrum: &[R]) {
    let (last, before) = match stages.split_last() {
        Some((last, before)) => (last.radix, before),
        None => (1, stages),
    };
    run(level, rows, before, Decimation::Frequency);
    dispatch!(level, simd => multiply::<_, R>(simd, &mut *rows, last, spectrum));
    run(level, rows, before, Decimation::Time);
}

impl<R> Stage<R> {
    fn layout(&self, n: usize) -> Layout {
        Layout { n, radix: self.radix, span: self.span }
    }
}

/// Depth first: a stage leaves several independent lines, and each goes through the other stages alone,
/// within the first-level cache.
fn run<R: Real, L: SimdReal>(level: Level, rows: &mut [Row<L>], stages: &[Stage<R>], decimation: Decimation) {
    let Some((stage, others)) = stages.split_first() else { return };
    let (layout, twiddles): (_, &[L]) = (stage.layout(rows.len()), bytemuck::cast_slice(&stage.twiddles));
    if decimation == Decimation::Frequency {
        dispatch!(level, simd => pass::<_, L, false, _>(simd, InPlace(&mut *rows), layout, twiddles));
    }
    for part in rows.chunks_exact_mut(stage.span) {
        run(level, part, others, decimation);
    }
    if decimation == Decimation::Time {
        dispatch!(level, simd => pass::<_, L, true, _>(simd, InPlace(&mut *rows), layout, twiddles));
    }
}

/// Splits up to [`COLUMNS`] columns into real and imaginary parts, exchanged for the inverse; lanes beyond
/// are zero.
#[inline(always)]
pub(crate) fn split<R: Real, const INVERSE: bool>(columns: &[Complex<R>], row: &mut Row<R>) {
    let (first, second) = row.split_at_mut(COLUMNS);
    let (re, im) = if INVERSE { (second, first) } else { (first, second) };
    if let Ok(columns) = <&[Complex<R>; COLUMNS]>::try_from(columns) {
        for j in 0..COLUMNS {
            re[j] = columns[j].re;
            im[j] = columns[j].im;
        }
        return;
    }
    re.fill(R::zero());
    im.fill(R::zero());
    for ((re, im), value) in re.iter_mut().zip(im).zip(columns) {
        (*re, *im) = (value.re, value.im);
    }
}

/// The reverse of [`split`], scaled.
#[inline(always)]
pub(crate) fn join<R: Real, const INVERSE: bool>(row: &Row<R>, scale: R, columns: &mut [Complex<R>]) {
    let (first, second) = row.split_at(COLUMNS);
    let (re, im) = if INVERSE { (second, first) } else { (first, second) };
    if let Ok(columns) = <&mut [Complex<R>; COLUMNS]>::try_from(&mut *columns) {
        for j in 0..COLUMNS {
            columns[j] = Complex::new(re[j] * scale, im[j] * scale);
        }
        return;
    }
    for ((re, im), value) in re.iter().zip(im).zip(columns) {
        *value = Complex::new(*re * scale, *im * scale);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every radix alone and in company, both decimations, against the sum.
    #[test]
    fn every_radix_and_order_matches_the_sum() {
        let level = Level::new();
        for n in [2, 3, 4, 5, 6, 7, 8, 9, 12, 14, 15, 16, 20, 21, 32, 35, 64, 105, 128, 210, 256, 343] {
            let plan = LaneFft::<f64>::new(n).unwrap();
            let input: Vec<Row<f64>> = (0..n)
                .map(|j| std::array::from_fn(|lane| ((j * 37 + lane * 11) % 23) as f64 - 11.0))
                .collect();
            let mut frequency = input.clone();
            plan.process(level, &mut frequency, Decimation::Frequency);
            let mut time = vec![[0.0; 2 * COLUMNS]; n];
            for (j, row) in input.iter().enumerate() {
                time[plan.row_of()[j]] = *row;
            }
            plan.process(level, &mut time, Decimation::Time);
            for lane in 0..COLUMNS {
                let line: Vec<_> =
                    input.iter().map(|row| Complex::new(row[lane], row[COLUMNS + lane])).collect();
                let expected = crate::fft::reference::dft(&line, &[n], crate::fft::Direction::Forward, false);
                for (k, expected) in expected.iter().enumerate() {
                    for row in [frequency[plan.row_of()[k]], time[k]] {
                        let found = Complex::new(row[lane], row[COLUMNS + lane]);
                        assert!((found - expected).norm() < 1e-11 * n as f64, "{n}: {k}");
                    }
                }
            }
        }
        assert!(LaneFft::<f32>::new(11).is_none() && LaneFft::<f32>::new(0).is_none());
    }
}
