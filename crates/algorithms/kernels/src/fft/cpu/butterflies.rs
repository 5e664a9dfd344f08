//! One stage of the FFT of [`COLUMNS`] columns: butterflies of a few rows each, from one place to another.

use num_complex::Complex;
use rayspin_core::Real;
use rayspin_device::cpu::simd::prelude::*;
use rayspin_device::cpu::simd::{Lanes, Simd, SimdReal, load_complex, store_complex};

use super::lanes::Row;
use super::line::COLUMNS;

/// Where a stage takes its rows and leaves them. `v` is the first of the columns in a vector.
pub(super) trait Port<S: Simd, T: SimdReal> {
    /// Whether the second half of the rows is zero and not there to be loaded.
    const ZEROS: bool = false;
    /// Whether nobody wants the second half of the rows.
    const CROPS: bool = false;

    fn load(&self, simd: S, row: usize, v: usize) -> [Lanes<S, T>; 2];
    fn store(&mut self, row: usize, v: usize, value: [Lanes<S, T>; 2]);
}

/// A buffer, in place.
pub(super) struct InPlace<'a, T>(pub(super) &'a mut [Row<T>]);

impl<S: Simd, T: SimdReal> Port<S, T> for InPlace<'_, T> {
    #[inline(always)]
    fn load(&self, simd: S, row: usize, v: usize) -> [Lanes<S, T>; 2] {
        load(simd, &self.0[row], v)
    }

    #[inline(always)]
    fn store(&mut self, row: usize, v: usize, value: [Lanes<S, T>; 2]) {
        store::<S, T>(&mut self.0[row], v, value);
    }
}

/// [`COLUMNS`] columns of the rows of an array.
pub(super) type Columns<'a, T> = [&'a mut [Complex<T>; COLUMNS]];

/// From columns of an array, zero after its last row, to a buffer.
pub(super) struct FromColumns<'a, 'b, T> {
    pub(super) columns: &'a Columns<'b, T>,
    pub(super) rows: &'a mut [Row<T>],
}

impl<S: Simd, T: SimdReal> Port<S, T> for FromColumns<'_, '_, T> {
    const ZEROS: bool = true;

    #[inline(always)]
    fn load(&self, simd: S, row: usize, v: usize) -> [Lanes<S, T>; 2] {
        match self.columns.get(row) {
            Some(columns) => {
                let (re, im) = load_complex::<S, T>(simd, &columns[v..v + Lanes::<S, T>::LEN]);
                [re, im]
            }
            None => [Lanes::<S, T>::splat(simd, T::zero()); 2],
        }
    }

    #[inline(always)]
    fn store(&mut self, row: usize, v: usize, value: [Lanes<S, T>; 2]) {
        store::<S, T>(&mut self.rows[row], v, value);
    }
}

/// From a buffer to columns of an array up to its last row, real and imaginary parts exchanged.
pub(super) struct ToColumns<'a, 'b, T> {
    pub(super) rows: &'a [Row<T>],
    pub(super) columns: &'a mut Columns<'b, T>,
}

impl<S: Simd, T: SimdReal> Port<S, T> for ToColumns<'_, '_, T> {
    const CROPS: bool = true;

    #[inline(always)]
    fn load(&self, simd: S, row: usize, v: usize) -> [Lanes<S, T>; 2] {
        load(simd, &self.rows[row], v)
    }

    #[inline(always)]
    fn store(&mut self, row: usize, v: usize, [im, re]: [Lanes<S, T>; 2]) {
        if let Some(columns) = self.columns.get_mut(row) {
            store_complex::<S, T>(re, im, &mut columns[v..v + Lanes::<S, T>::LEN]);
        }
    }
}

#[inline(always)]
fn load<S: Simd, T: SimdReal>(simd: S, row: &Row<T>, v: usize) -> [Lanes<S, T>; 2] {
    let len = Lanes::<S, T>::LEN;
    [
        Lanes::<S, T>::from_slice(simd, &row[v..v + len]),
        Lanes::<S, T>::from_slice(simd, &row[COLUMNS + v..COLUMNS + v + len]),
    ]
}

#[inline(always)]
fn store<S: Simd, T: SimdReal>(row: &mut Row<T>, v: usize, [re, im]: [Lanes<S, T>; 2]) {
    let len = Lanes::<S, T>::LEN;
    re.store_slice(&mut row[v..v + len]);
    im.store_slice(&mut row[COLUMNS + v..COLUMNS + v + len]);
}

type V<S, L> = Lanes<S, L>;

/// The butterflies of one stage: of `radix` rows, `span` apart, in a line of `n` rows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layout {
    pub(super) n: usize,
    pub(super) radix: usize,
    pub(super) span: usize,
}

/// All butterflies of one stage; `TIME` for decimation in time.
#[inline(always)]
pub(super) fn pass<S: Simd, L: SimdReal, const TIME: bool, P: Port<S, L>>(
    simd: S,
    mut port: P,
    layout: Layout,
    twiddles: &[L],
) {
    macro_rules! stage {
        ($radix:literal, |$re:ident, $im:ident| $butterfly:expr) => {
            butterflies::<S, L, $radix, TIME, P>(
                simd,
                &mut port,
                layout,
                twiddles,
                #[inline(always)]
                |$re, $im| $butterfly,
            )
        };
    }
    match layout.radix {
        2 if P::ZEROS => stage!(2, |re, im| (re[1], im[1]) = (re[0], im[0])),
        4 if P::ZEROS => stage!(4, |re, im| half_dft4::<S, L>(re, im)),
        8 if P::ZEROS => stage!(8, |re, im| half_dft8::<S, L>(simd, re, im)),
        2 => stage!(2, |re, im| dft2::<S, L>(re, im)),
        4 => stage!(4, |re, im| dft4::<S, L>(re, im)),
        8 => stage!(8, |re, im| dft8::<S, L>(simd, re, im)),
        // A stage of odd radix has no halves, so nobody calls this. Its code would be compiled in vain.
        _ if P::ZEROS || P::CROPS => debug_assert!(false, "half a stage of radix {}", layout.radix),
        3 => stage!(3, |re, im| odd::<S, L, 3, 1>(simd, re, im)),
        5 => stage!(5, |re, im| odd::<S, L, 5, 2>(simd, re, im)),
        7 => stage!(7, |re, im| odd::<S, L, 7, 3>(simd, re, im)),
        _ => {}
    }
}

/// Decimation in frequency multiplies by the twiddles after the butterfly, in time before it.
#[inline(always)]
fn butterflies<S: Simd, L: SimdReal, const RADIX: usize, const TIME: bool, P: Port<S, L>>(
    simd: S,
    port: &mut P,
    layout: Layout,
    twiddles: &[L],
    butterfly: impl Fn(&mut [V<S, L>; RADIX], &mut [V<S, L>; RADIX]),
) {
    let Layout { n, span, .. } = layout;
    let len = V::<S, L>::LEN;
    let one = V::<S, L>::splat(simd, L::one());
    let zero = V::<S, L>::splat(simd, L::zero());
    let read = if P::ZEROS { RADIX / 2 } else { RADIX };
    let written = if P::CROPS { RADIX / 2 } else { RADIX };
    for (q, factors) in twiddles.chunks_exact(2 * (RADIX - 1)).enumerate() {
        let mut factor = [[one; 2]; RADIX];
        for i in 1..RADIX {
            factor[i] =
                [V::<S, L>::splat(simd, factors[2 * i - 2]), V::<S, L>::splat(simd, factors[2 * i - 1])];
        }
        let mut first = q;
        while first < n {
            for v in (0..COLUMNS).step_by(len) {
                let (mut re, mut im) = ([zero; RADIX], [zero; RADIX]);
                for i in 0..read {
                    [re[i], im[i]] = port.load(simd, first + i * span, v);
                }
                if TIME && q > 0 {
                    twiddle::<S, L, RADIX>(&mut re, &mut im, &factor);
                }
                butterfly(&mut re, &mut im);
                if !TIME && q > 0 {
                    twiddle::<S, L, RADIX>(&mut re, &mut im, &factor);
                }
                for i in 0..written {
                    port.store(first + i * span, v, [re[i], im[i]]);
                }
            }
            first += span * RADIX;
        }
    }
}

#[inline(always)]
fn twiddle<S: Simd, L: SimdReal, const RADIX: usize>(
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
fn dft2<S: Simd, L: SimdReal>(re: &mut [V<S, L>; 2], im: &mut [V<S, L>; 2]) {
    (re[0], re[1]) = (re[0] + re[1], re[0] - re[1]);
    (im[0], im[1]) = (im[0] + im[1], im[0] - im[1]);
}

#[inline(always)]
fn dft4<S: Simd, L: SimdReal>(re: &mut [V<S, L>; 4], im: &mut [V<S, L>; 4]) {
    let (a, b) = (re[0] + re[2], im[0] + im[2]);
    let (c, d) = (re[0] - re[2], im[0] - im[2]);
    let (e, f) = (re[1] + re[3], im[1] + im[3]);
    let (g, h) = (re[1] - re[3], im[1] - im[3]);
    // −i (g + ih) = h − ig.
    *re = [a + e, c + h, a - e, c - h];
    *im = [b + f, d - g, b - f, d + g];
}

/// [`dft4`] where the last two are zero.
#[inline(always)]
fn half_dft4<S: Simd, L: SimdReal>(re: &mut [V<S, L>; 4], im: &mut [V<S, L>; 4]) {
    let (a, b, e, f) = (re[0], im[0], re[1], im[1]);
    *re = [a + e, a + f, a - e, a - f];
    *im = [b + f, b - e, b - f, b + e];
}

#[inline(always)]
fn dft8<S: Simd, L: SimdReal>(simd: S, re: &mut [V<S, L>; 8], im: &mut [V<S, L>; 8]) {
    let mut even_re = [re[0], re[2], re[4], re[6]];
    let mut even_im = [im[0], im[2], im[4], im[6]];
    let mut odd_re = [re[1], re[3], re[5], re[7]];
    let mut odd_im = [im[1], im[3], im[5], im[7]];
    dft4::<S, L>(&mut even_re, &mut even_im);
    dft4::<S, L>(&mut odd_re, &mut odd_im);
    [*re, *im] = join8::<S, L>(simd, [even_re, even_im], [odd_re, odd_im]);
}

/// [`dft8`] where the last four are zero.
#[inline(always)]
fn half_dft8<S: Simd, L: SimdReal>(simd: S, re: &mut [V<S, L>; 8], im: &mut [V<S, L>; 8]) {
    let (mut even_re, mut even_im) = ([re[0], re[2], re[0], re[0]], [im[0], im[2], im[0], im[0]]);
    let (mut odd_re, mut odd_im) = ([re[1], re[3], re[1], re[1]], [im[1], im[3], im[1], im[1]]);
    half_dft4::<S, L>(&mut even_re, &mut even_im);
    half_dft4::<S, L>(&mut odd_re, &mut odd_im);
    [*re, *im] = join8::<S, L>(simd, [even_re, even_im], [odd_re, odd_im]);
}

/// The transform of 8 rows from the transforms of the even rows and of the odd rows.
#[inline(always)]
fn join8<S: Simd, L: SimdReal>(
    simd: S,
    [even_re, even_im]: [[V<S, L>; 4]; 2],
    [mut odd_re, mut odd_im]: [[V<S, L>; 4]; 2],
) -> [[V<S, L>; 8]; 2] {
    let half = V::<S, L>::splat(simd, L::FRAC_1_SQRT_2());
    let (a, b) = (odd_re[1], odd_im[1]);
    (odd_re[1], odd_im[1]) = ((a + b) * half, (b - a) * half);
    (odd_re[2], odd_im[2]) = (odd_im[2], -odd_re[2]);
    let (a, b) = (odd_re[3], odd_im[3]);
    (odd_re[3], odd_im[3]) = ((b - a) * half, -((a + b) * half));
    let (mut re, mut im) = ([half; 8], [half; 8]);
    for i in 0..4 {
        (re[i], re[i + 4]) = (even_re[i] + odd_re[i], even_re[i] - odd_re[i]);
        (im[i], im[i + 4]) = (even_im[i] + odd_im[i], even_im[i] - odd_im[i]);
    }
    [re, im]
}

/// Odd prime radix: y_k = x_0 + Σ_j cos(2πjk/r)(x_j + x_{r−j}) − i Σ_j sin(2πjk/r)(x_j − x_{r−j}), j = 1 …
/// (r−1)/2.
#[inline(always)]
fn odd<S: Simd, L: SimdReal, const RADIX: usize, const HALF: usize>(
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

/// The last stage of decimation in frequency, the product with a real spectrum, and the first stage of
/// decimation in time on the same rows. Real and imaginary parts change places, so that the second transform
/// is an inverse one.
#[inline(always)]
pub(super) fn multiply<S: Simd, L: SimdReal>(simd: S, rows: &mut [Row<L>], radix: usize, spectrum: &[L]) {
    macro_rules! stage {
        ($radix:literal, |$re:pat_param, $im:pat_param| $butterfly:expr) => {
            products::<S, L, $radix>(
                simd,
                rows,
                spectrum,
                #[inline(always)]
                |$re, $im| $butterfly,
            )
        };
    }
    match radix {
        2 => stage!(2, |re, im| dft2::<S, L>(re, im)),
        3 => stage!(3, |re, im| odd::<S, L, 3, 1>(simd, re, im)),
        4 => stage!(4, |re, im| dft4::<S, L>(re, im)),
        5 => stage!(5, |re, im| odd::<S, L, 5, 2>(simd, re, im)),
        7 => stage!(7, |re, im| odd::<S, L, 7, 3>(simd, re, im)),
        8 => stage!(8, |re, im| dft8::<S, L>(simd, re, im)),
        // A line of one row.
        _ => stage!(1, |_, _| ()),
    }
}

#[inline(always)]
fn products<S: Simd, L: SimdReal, const RADIX: usize>(
    simd: S,
    rows: &mut [Row<L>],
    spectrum: &[L],
    butterfly: impl Fn(&mut [V<S, L>; RADIX], &mut [V<S, L>; RADIX]),
) {
    let len = V::<S, L>::LEN;
    let zero = V::<S, L>::splat(simd, L::zero());
    let factors = spectrum.as_chunks::<COLUMNS>().0;
    for (rows, factors) in rows.as_chunks_mut::<RADIX>().0.iter_mut().zip(factors.as_chunks::<RADIX>().0) {
        for v in (0..COLUMNS).step_by(len) {
            let (mut re, mut im) = ([zero; RADIX], [zero; RADIX]);
            for i in 0..RADIX {
                [re[i], im[i]] = load(simd, &rows[i], v);
            }
            butterfly(&mut re, &mut im);
            for i in 0..RADIX {
                let factor = V::<S, L>::from_slice(simd, &factors[i][v..v + len]);
                (re[i], im[i]) = (im[i] * factor, re[i] * factor);
            }
            butterfly(&mut re, &mut im);
            for i in 0..RADIX {
                store::<S, L>(&mut rows[i], v, [re[i], im[i]]);
            }
        }
    }
}
