//! A mixed-radix FFT of [`COLUMNS`] columns at once, one per SIMD lane, so that strided axes need no transposition.
//!
//! A buffer row holds one array row's columns, real parts then imaginary parts, so every operation is vertical.
//! Decimation in frequency runs in place and leaves frequencies in digit-reversed rows; decimation in time takes them
//! from there. The order is undone by choosing rows as they are copied out, at no cost. The inverse transform is the
//! forward one with real and imaginary parts exchanged, which copying in and out does too.

use std::any::TypeId;

use num_complex::Complex;
use rayspin_core::Real;
use rayspin_device::cpu::simd::prelude::*;
use rayspin_device::cpu::simd::{Level, Simd, dispatch};

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

/// The reals that have vectors.
trait Lane: Real + SimdFloatElement {
    type Vector<S: Simd>: SimdFloat<S, Element = Self>;
}

impl Lane for f32 {
    type Vector<S: Simd> = S::f32s;
}

impl Lane for f64 {
    type Vector<S: Simd> = S::f64s;
}

fn run<R: Real, L: Lane>(level: Level, rows: &mut [Row<L>], stages: &[Stage<R>], decimation: Decimation) {
    let one = |stage: &Stage<R>, rows: &mut [Row<L>]| {
        let twiddles: &[L] = bytemuck::cast_slice(&stage.twiddles);
        match decimation {
            Decimation::Frequency => {
                dispatch!(level, simd => pass::<_, L, false>(simd, rows, stage.radix, stage.span, twiddles));
            }
            Decimation::Time => {
                dispatch!(level, simd => pass::<_, L, true>(simd, rows, stage.radix, stage.span, twiddles));
            }
        }
    };
    match decimation {
        Decimation::Frequency => stages.iter().for_each(|stage| one(stage, rows)),
        Decimation::Time => stages.iter().rev().for_each(|stage| one(stage, rows)),
    }
}

type V<S, L> = <L as Lane>::Vector<S>;

#[inline(always)]
fn pass<S: Simd, L: Lane, const TIME: bool>(
    simd: S,
    rows: &mut [Row<L>],
    radix: usize,
    span: usize,
    twiddles: &[L],
) {
    match radix {
        2 => butterflies::<S, L, 2, TIME>(simd, rows, span, twiddles, |re, im| dft2::<S, L>(re, im)),
        3 => {
            butterflies::<S, L, 3, TIME>(simd, rows, span, twiddles, |re, im| odd::<S, L, 3, 1>(simd, re, im))
        }
        4 => butterflies::<S, L, 4, TIME>(simd, rows, span, twiddles, |re, im| dft4::<S, L>(re, im)),
        5 => {
            butterflies::<S, L, 5, TIME>(simd, rows, span, twiddles, |re, im| odd::<S, L, 5, 2>(simd, re, im))
        }
        7 => {
            butterflies::<S, L, 7, TIME>(simd, rows, span, twiddles, |re, im| odd::<S, L, 7, 3>(simd, re, im))
        }
        8 => butterflies::<S, L, 8, TIME>(simd, rows, span, twiddles, |re, im| dft8::<S, L>(simd, re, im)),
        _ => {}
    }
}

/// All butterflies of one stage. Decimation in frequency multiplies by the twiddles after, in time before.
#[inline(always)]
fn butterflies<S: Simd, L: Lane, const RADIX: usize, const TIME: bool>(
    simd: S,
    rows: &mut [Row<L>],
    span: usize,
    twiddles: &[L],
    butterfly: impl Fn(&mut [V<S, L>; RADIX], &mut [V<S, L>; RADIX]),
) {
    let len = V::<S, L>::LEN;
    let one = V::<S, L>::splat(simd, L::one());
    for (q, factors) in twiddles.chunks_exact(2 * (RADIX - 1)).enumerate() {
        let mut factor = [[one; 2]; RADIX];
        for i in 1..RADIX {
            factor[i] =
                [V::<S, L>::splat(simd, factors[2 * i - 2]), V::<S, L>::splat(simd, factors[2 * i - 1])];
        }
        for block in rows.chunks_exact_mut(span * RADIX) {
            for v in (0..COLUMNS).step_by(len) {
                let mut re: [V<S, L>; RADIX] =
                    std::array::from_fn(|i| V::<S, L>::from_slice(simd, &block[q + i * span][v..v + len]));
                let mut im: [V<S, L>; RADIX] = std::array::from_fn(|i| {
                    V::<S, L>::from_slice(simd, &block[q + i * span][COLUMNS + v..COLUMNS + v + len])
                });
                if TIME && q > 0 {
                    twiddle::<S, L, RADIX>(&mut re, &mut im, &factor);
                }
                butterfly(&mut re, &mut im);
                if !TIME && q > 0 {
                    twiddle::<S, L, RADIX>(&mut re, &mut im, &factor);
                }
                for i in 0..RADIX {
                    re[i].store_slice(&mut block[q + i * span][v..v + len]);
                    im[i].store_slice(&mut block[q + i * span][COLUMNS + v..COLUMNS + v + len]);
                }
            }
        }
    }
}

#[inline(always)]
fn twiddle<S: Simd, L: Lane, const RADIX: usize>(
    re: &mut [V<S, L>; RADIX],
    im: &mut [V<S, L>; RADIX],
    factor: &[[V<S, L>; 2]; RADIX],
) {
    for i in 1..RADIX {
        let [wr, wi] = factor[i];
        let (a, b) = (re[i], im[i]);
        re[i] = a.mul_add(wr, -(b * wi));
        im[i] = a.mul_add(wi, b * wr);
    }
}

#[inline(always)]
fn dft2<S: Simd, L: Lane>(re: &mut [V<S, L>; 2], im: &mut [V<S, L>; 2]) {
    (re[0], re[1]) = (re[0] + re[1], re[0] - re[1]);
    (im[0], im[1]) = (im[0] + im[1], im[0] - im[1]);
}

#[inline(always)]
fn dft4<S: Simd, L: Lane>(re: &mut [V<S, L>; 4], im: &mut [V<S, L>; 4]) {
    let (a, b) = (re[0] + re[2], im[0] + im[2]);
    let (c, d) = (re[0] - re[2], im[0] - im[2]);
    let (e, f) = (re[1] + re[3], im[1] + im[3]);
    let (g, h) = (re[1] - re[3], im[1] - im[3]);
    // −i (g + ih) = h − ig.
    *re = [a + e, c + h, a - e, c - h];
    *im = [b + f, d - g, b - f, d + g];
}

#[inline(always)]
fn dft8<S: Simd, L: Lane>(simd: S, re: &mut [V<S, L>; 8], im: &mut [V<S, L>; 8]) {
    let mut even_re = [re[0], re[2], re[4], re[6]];
    let mut even_im = [im[0], im[2], im[4], im[6]];
    let mut odd_re = [re[1], re[3], re[5], re[7]];
    let mut odd_im = [im[1], im[3], im[5], im[7]];
    dft4::<S, L>(&mut even_re, &mut even_im);
    dft4::<S, L>(&mut odd_re, &mut odd_im);
    let half = V::<S, L>::splat(simd, L::FRAC_1_SQRT_2());
    let (a, b) = (odd_re[1], odd_im[1]);
    (odd_re[1], odd_im[1]) = ((a + b) * half, (b - a) * half);
    (odd_re[2], odd_im[2]) = (odd_im[2], -odd_re[2]);
    let (a, b) = (odd_re[3], odd_im[3]);
    (odd_re[3], odd_im[3]) = ((b - a) * half, -((a + b) * half));
    for i in 0..4 {
        (re[i], re[i + 4]) = (even_re[i] + odd_re[i], even_re[i] - odd_re[i]);
        (im[i], im[i + 4]) = (even_im[i] + odd_im[i], even_im[i] - odd_im[i]);
    }
}

/// Odd prime radix: y_k = x_0 + Σ_j cos(2πjk/r)(x_j + x_{r−j}) − i Σ_j sin(2πjk/r)(x_j − x_{r−j}), j = 1 … (r−1)/2.
#[inline(always)]
fn odd<S: Simd, L: Lane, const RADIX: usize, const HALF: usize>(
    simd: S,
    re: &mut [V<S, L>; RADIX],
    im: &mut [V<S, L>; RADIX],
) {
    let sums: [(V<S, L>, V<S, L>); HALF] =
        std::array::from_fn(|j| (re[j + 1] + re[RADIX - 1 - j], im[j + 1] + im[RADIX - 1 - j]));
    let differences: [(V<S, L>, V<S, L>); HALF] =
        std::array::from_fn(|j| (re[j + 1] - re[RADIX - 1 - j], im[j + 1] - im[RADIX - 1 - j]));
    let (re0, im0) = (re[0], im[0]);
    for (s, t) in sums {
        re[0] += s;
        im[0] += t;
    }
    for k in 1..=HALF {
        let (mut c, mut d) = (re0, im0);
        let (mut s, mut t) = (V::<S, L>::splat(simd, L::zero()), V::<S, L>::splat(simd, L::zero()));
        for j in 0..HALF {
            let (sine, cosine) = ROOTS[HALF - 1][(j + 1) * k % RADIX];
            let cosine = V::<S, L>::splat(simd, <L as Real>::from_f64(cosine));
            let sine = V::<S, L>::splat(simd, <L as Real>::from_f64(sine));
            c = sums[j].0.mul_add(cosine, c);
            d = sums[j].1.mul_add(cosine, d);
            s = differences[j].0.mul_add(sine, s);
            t = differences[j].1.mul_add(sine, t);
        }
        // −i (s + it) = t − is.
        (re[k], im[k]) = (c + t, d - s);
        (re[RADIX - k], im[RADIX - k]) = (c - t, d + s);
    }
}

/// (sin, cos) of 2πj/r, for r = 3, 5, 7.
const ROOTS: [[(f64, f64); 7]; 3] = [
    {
        let s = 0.866_025_403_784_438_6;
        let o = (0.0, 1.0);
        [o, (s, -0.5), (-s, -0.5), o, o, o, o]
    },
    {
        let (s1, c1) = (0.951_056_516_295_153_5, 0.309_016_994_374_947_45);
        let (s2, c2) = (0.587_785_252_292_473_1, -0.809_016_994_374_947_5);
        let o = (0.0, 1.0);
        [o, (s1, c1), (s2, c2), (-s2, c2), (-s1, c1), o, o]
    },
    {
        let (s1, c1) = (0.781_831_482_468_029_8, 0.623_489_801_858_733_5);
        let (s2, c2) = (0.974_927_912_181_823_6, -0.222_520_933_956_314_4);
        let (s3, c3) = (0.433_883_739_117_558_1, -0.900_968_867_902_419_1);
        [(0.0, 1.0), (s1, c1), (s2, c2), (s3, c3), (-s3, c3), (-s2, c2), (-s1, c1)]
    },
];

/// Splits up to [`COLUMNS`] columns into real and imaginary parts, exchanged for the inverse; lanes beyond are zero.
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
