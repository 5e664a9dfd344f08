//! Rings by wavelets and Fourier transforms: stripes of a sinogram are narrow along columns and long along
//! views.
//!
//! ```text
//! p ← p − Σ_l R_l[ F⁻¹ e^(−k²/2σ²) F v_l ]
//! ```
//!
//! v_l are the wavelet coefficients of level l: high frequencies along columns, low ones along views. R_l
//! makes a sinogram of them alone. F is the Fourier transform along views, and k counts oscillations over the
//! views of v_l.
//!
//! B. Münch, P. Trtik, F. Marone, M. Stampanoni, *Stripe and ring artifact removal with combined
//! wavelet–Fourier filtering*, Opt Express 17:8567, 2009. Their coefficients are damped by 1 − e^(−k²/2σ²)
//! and put together again; the transform is linear and orthogonal, so that this is the difference above. It
//! needs no coefficients but v_l.

use std::f64::consts::TAU;

use ndarray::{ArrayViewMut2, Axis};
use rayon::prelude::*;
use rayspin_core::{Error, Result};
use rayspin_device::Device;
use rayspin_device::cpu::Stop;
use rayspin_device::cpu::simd::dispatch;
use rayspin_kernels::median::reference::mirrored;
use rayspin_run::{About, Param, Value, params};

use super::{ActsOn, Correction, GROUP, Views};

/// Daubechies' filter of five vanishing moments. `kernels::wavelet` has filters of two at most, which do not
/// keep narrow stripes and wide structures apart.
const LOW: [f64; 10] = [
    0.160_102_397_974_125,
    0.603_829_269_797_473,
    0.724_308_528_438_574_4,
    0.138_428_145_901_103_4,
    -0.242_294_887_066_190_15,
    -0.032_244_869_585_029_52,
    0.077_571_493_840_065_15,
    -0.006_241_490_213_011_705,
    -0.012_580_751_999_015_526,
    0.003_335_725_285_001_549,
];
/// Weights e^(−k²/2σ²) below this are left out.
const LEAST: f64 = 1e-6;
/// Frequencies whose sums are made together: a row of numbers is read once for them.
const TOGETHER: usize = 6;
/// Rows that are added to a sum together: it is read and written once for them.
const ROWS: usize = 4;

params! {
    /// Rings are removed by wavelets and Fourier transforms (Münch et al., Opt Express 17:8567, 2009).
    pub struct RingsWavelet {
        /// Oscillations over the views up to which a stripe varies.
        ring_sigma: f64 = 2.0 => Param::new(GROUP, "σ: oscillations over the views up to which stripes vary; a greater σ removes more, also of the object")
            .title("sigma of rings").expects("0.1 to 50", |v| matches!(v, Value::Number(s) if (0.1..=50.0).contains(s))),
        /// Levels of wavelets.
        ring_levels: Option<usize> = None => Param::new(GROUP, "Levels L of the wavelets; stripes up to 2^L columns wide are removed")
            .title("levels of rings").expects("1 to 10", |v| matches!(v, Value::Count(1..=10))).absent("by the columns, 5 of 2048"),
    }
}

impl Correction for RingsWavelet {
    fn about(&self) -> About {
        About {
            name: "rings-wavelet",
            help: "Rings are removed by wavelets and Fourier transforms (Münch et al. 2009)",
        }
    }

    fn acts_on(&self) -> ActsOn {
        ActsOn::Lines
    }

    fn alone(&self, _: usize) -> bool {
        false
    }

    fn bytes(&self, [views, rows, columns]: [usize; 3], threads: usize) -> u64 {
        // The sinogram, half of it twice, and the coefficients of all levels, a third.
        let levels = self.levels(columns);
        let count = padded(views, levels).0 * padded(columns, levels).0;
        (threads.min(rows) * count * 4 * 5 / 2) as u64
    }

    fn views(&self, device: &Device, views: &mut Views) -> Result<u64> {
        let (count, rows, columns) = views.values.dim();
        if columns < 8 || count < 8 {
            let found = format!("{count} views of {columns} columns, {rows} rows");
            return Err(Error::value("views to remove rings from", "at least 8 views of 8 columns", found));
        }
        let stop = Stop::of_caller();
        device.cpu_side().run(|| {
            let stack: Vec<_> = views.values.axis_iter_mut(Axis(1)).collect();
            let level = device.cpu_side().level();
            let stack = stack.into_par_iter().filter(|_| !stop.is_set());
            stack.for_each(|row| dispatch!(level, _simd => self.sinogram(row)));
        });
        Ok(0)
    }
}

/// A length that can be halved `levels` times, and the elements before the first one that it has beside
/// `count`.
fn padded(count: usize, levels: usize) -> (usize, usize) {
    let margin = (count / 8).min(150) + LOW.len();
    let length = (count + 2 * margin).next_multiple_of(1 << levels);
    (length, (length - count) / 2)
}

/// A matrix, row by row.
struct Matrix {
    rows: usize,
    columns: usize,
    values: Vec<f32>,
}

impl Matrix {
    fn new(rows: usize, columns: usize) -> Self {
        Self { rows, columns, values: vec![0.0; rows * columns] }
    }

    fn row(&self, row: usize) -> &[f32] {
        &self.values[row * self.columns..(row + 1) * self.columns]
    }
}

/// Filters of ten numbers.
type Filter = [f32; LOW.len()];

fn low() -> Filter {
    LOW.map(|h| h as f32)
}

/// g_j = (−1)^j h_{9 − j}: what passes high frequencies.
fn high() -> Filter {
    let mut high = low();
    high.reverse();
    high.iter_mut().skip(1).step_by(2).for_each(|g| *g = -*g);
    high
}

/// y(c) += Σ_j h_j x_j(c). The sum stays in a register.
#[inline(always)]
fn add_sum<const N: usize>(out: &mut [f32], x: [&[f32]; N], h: [f32; N]) {
    let x = x.map(|x| &x[..out.len()]);
    for (c, y) in out.iter_mut().enumerate() {
        let mut sum = *y;
        for j in 0..N {
            sum += h[j] * x[j][c];
        }
        *y = sum;
    }
}

/// The even or odd numbers of a filter.
fn every_other(filter: Filter, odd: bool) -> [f32; 5] {
    std::array::from_fn(|t| filter[2 * t + usize::from(odd)])
}

/// Low frequencies along rows' numbers: half as many rows, y(i) = Σ_j h_j x((2i + j) mod n).
#[inline(always)]
fn halved_rows(from: &Matrix) -> Matrix {
    let mut to = Matrix::new(from.rows / 2, from.columns);
    for (i, row) in to.values.chunks_exact_mut(from.columns).enumerate() {
        add_sum(row, std::array::from_fn(|j| from.row((2 * i + j) % from.rows)), low());
    }
    to
}

/// The same along columns, through a filter. Even and odd columns apart, neighbours of the sums are
/// neighbours in memory.
#[inline(always)]
fn halved_columns(from: &Matrix, filter: Filter) -> Matrix {
    let half = from.columns / 2;
    let mut to = Matrix::new(from.rows, half);
    let [mut even, mut odd] = [vec![0.0; half + 5], vec![0.0; half + 5]];
    for (row, out) in to.values.chunks_exact_mut(half).enumerate() {
        let pairs = from.row(row).as_chunks::<2>().0;
        for ((even, odd), pair) in even.iter_mut().zip(&mut odd).zip(pairs) {
            [*even, *odd] = *pair;
        }
        for index in half..half + 5 {
            [even[index], odd[index]] = pairs[index % half];
        }
        let x = std::array::from_fn(|j| if j.is_multiple_of(2) { &even[j / 2..] } else { &odd[j / 2..] });
        add_sum(out, x, filter);
    }
    to
}

/// The transposes: x((2i + j) mod n) += h_j y(i).
#[inline(always)]
fn doubled_rows(from: &Matrix) -> Matrix {
    let mut to = Matrix::new(2 * from.rows, from.columns);
    for (index, row) in to.values.chunks_exact_mut(from.columns).enumerate() {
        let y = |t: usize| from.row((index / 2 + 5 * from.rows - t) % from.rows);
        add_sum(row, std::array::from_fn(y), every_other(low(), index % 2 == 1));
    }
    to
}

#[inline(always)]
fn add_doubled_columns(from: &Matrix, filter: Filter, to: &mut Matrix) {
    let half = from.columns;
    let [mut even, mut odd] = [vec![0.0; half], vec![0.0; half]];
    // The row, and its last four numbers before it.
    let mut y = vec![0.0; half + 4];
    for (row, to) in to.values.chunks_exact_mut(2 * half).enumerate() {
        let row = from.row(row);
        y[4..].copy_from_slice(row);
        (0..4).for_each(|index| y[index] = row[(index + 4 * half - 4) % half]);
        for (sums, odd) in [(&mut even, false), (&mut odd, true)] {
            sums.fill(0.0);
            add_sum(sums, std::array::from_fn(|t| &y[4 - t..]), every_other(filter, odd));
        }
        for (pair, (even, odd)) in to.as_chunks_mut::<2>().0.iter_mut().zip(even.iter().zip(&odd)) {
            pair[0] += even;
            pair[1] += odd;
        }
    }
}

impl RingsWavelet {
    /// The number of levels. A structure wider than a 64th of the columns belongs to the object.
    fn levels(&self, columns: usize) -> usize {
        self.ring_levels.unwrap_or_else(|| ((columns / 64).max(2).ilog2() as usize).min(10))
    }

    #[inline(always)]
    fn sinogram(&self, mut lines: ArrayViewMut2<'_, f32>) {
        let levels = self.levels(lines.dim().1);
        let ((rows, above), (columns, before)) =
            (padded(lines.dim().0, levels), padded(lines.dim().1, levels));
        let mut part = Matrix::new(rows, columns);
        for (index, row) in part.values.chunks_exact_mut(columns).enumerate() {
            let from = lines.row(mirrored(index as i64 - above as i64, lines.dim().0));
            let end = before + from.len();
            row[before..end].iter_mut().zip(from).for_each(|(to, x)| *to = *x);
            for column in (0..before).chain(end..columns) {
                row[column] = from[mirrored(column as i64 - before as i64, from.len())];
            }
        }
        let mut stripes = Vec::new();
        for _ in 0..levels {
            let half = halved_rows(&part);
            let mut vertical = halved_columns(&half, high());
            self.keep_slow(&mut vertical);
            stripes.push(vertical);
            part = halved_columns(&half, low());
        }
        // What slow stripes alone make up.
        part.values.fill(0.0);
        while let Some(vertical) = stripes.pop() {
            let mut half = Matrix::new(part.rows, 2 * part.columns);
            add_doubled_columns(&part, low(), &mut half);
            add_doubled_columns(&vertical, high(), &mut half);
            part = doubled_rows(&half);
        }
        for (row, mut to) in lines.outer_iter_mut().enumerate() {
            let from = &part.row(row + above)[before..];
            to.iter_mut().zip(from).for_each(|(to, stripe)| *to -= stripe);
        }
    }

    /// F⁻¹ e^(−k²/2σ²) F along rows' numbers. Few frequencies have a weight, so that sums over these are
    /// quicker than a transform.
    #[inline(always)]
    fn keep_slow(&self, values: &mut Matrix) {
        let (rows, columns) = (values.rows, values.columns);
        let weight = |k: usize| (-0.5 * (k as f64 / self.ring_sigma).powi(2)).exp();
        let waves: Vec<(usize, f64)> =
            (0..=rows / 2).map(|k| (k, weight(k))).take_while(|(_, weight)| *weight >= LEAST).collect();
        let turn: Vec<[f64; 2]> = (0..rows)
            .map(|index| (TAU * index as f64 / rows as f64).sin_cos())
            .map(|(sine, cosine)| [cosine, sine])
            .collect();
        // The cosines and the sines that some frequencies have at a row. Those of no frequency are 0.
        let factors = |row: usize, waves: &[(usize, f64)], scaled: bool| {
            let mut factors = [0.0f32; 2 * TOGETHER];
            for (factors, &(k, weight)) in factors.as_chunks_mut::<2>().0.iter_mut().zip(waves) {
                let twice = if k == 0 || 2 * k == rows { 1.0 } else { 2.0 };
                let scale = if scaled { weight * twice / rows as f64 } else { 1.0 };
                *factors = turn[k * row % rows].map(|x| (scale * x) as f32);
            }
            factors
        };
        let group = 2 * TOGETHER * columns;
        let mut sums = vec![0.0f32; waves.len().div_ceil(TOGETHER) * group];
        for first in (0..rows).step_by(ROWS) {
            // Rows behind the last one are the last one with a factor of 0.
            let x: [&[f32]; ROWS] = std::array::from_fn(|index| values.row((first + index).min(rows - 1)));
            for (sums, waves) in sums.chunks_exact_mut(group).zip(waves.chunks(TOGETHER)) {
                let of_rows: [_; ROWS] = std::array::from_fn(|index| {
                    if first + index < rows {
                        factors(first + index, waves, false)
                    } else {
                        [0.0; 2 * TOGETHER]
                    }
                });
                for (wave, sums) in sums.chunks_exact_mut(columns).enumerate() {
                    add_sum(sums, x, of_rows.map(|factors| factors[wave]));
                }
            }
        }
        for (row, to) in values.values.chunks_exact_mut(columns).enumerate() {
            to.fill(0.0);
            for (sums, waves) in sums.chunks_exact(group).zip(waves.chunks(TOGETHER)) {
                let sums: [&[f32]; 2 * TOGETHER] =
                    std::array::from_fn(|index| &sums[index * columns..(index + 1) * columns]);
                add_sum(to, sums, factors(row, waves, true));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_filter_is_orthogonal_and_has_five_vanishing_moments() {
        for shift in 0..5 {
            let product: f64 = (0..10 - 2 * shift).map(|j| LOW[j] * LOW[j + 2 * shift]).sum();
            assert!((product - if shift == 0 { 1.0 } else { 0.0 }).abs() < 1e-10, "{shift}: {product}");
        }
        for moment in 0..5 {
            let sum: f64 =
                high().iter().enumerate().map(|(j, g)| f64::from(*g) * (j as f64).powi(moment)).sum();
            assert!(sum.abs() < 1e-3, "{moment}: {sum}");
        }
    }

    #[test]
    fn halves_and_their_transposes_make_up_the_whole() {
        let mut from = Matrix::new(32, 16);
        from.values.iter_mut().enumerate().for_each(|(at, x)| *x = ((at * 7919) % 101) as f32 - 50.0);
        // W restricted to rows: halves and back keep what low frequencies make up, twice as well as once.
        let once = doubled_rows(&halved_rows(&from));
        let twice = doubled_rows(&halved_rows(&once));
        assert!(once.values.iter().zip(&twice.values).all(|(a, b)| (a - b).abs() < 1e-3));
        let mut whole = Matrix::new(32, 16);
        add_doubled_columns(&halved_columns(&from, low()), low(), &mut whole);
        add_doubled_columns(&halved_columns(&from, high()), high(), &mut whole);
        assert!(whole.values.iter().zip(&from.values).all(|(a, b)| (a - b).abs() < 1e-3));
    }
}

#[cfg(test)]
pub(super) mod reference {
    //! All coefficients, damped by 1 − e^(−k²/2σ²), and put together again.

    use ndarray::Array2;

    use super::{LOW, TAU, mirrored, padded};

    /// One level along the first axis: low frequencies, then high ones.
    fn split(from: &Array2<f64>) -> Array2<f64> {
        let (n, columns) = from.dim();
        Array2::from_shape_fn((n, columns), |(i, c)| {
            let (k, high) = (i % (n / 2), i >= n / 2);
            let g = |j: usize| if j.is_multiple_of(2) { LOW[9 - j] } else { -LOW[9 - j] };
            (0..10).map(|j| if high { g(j) } else { LOW[j] } * from[[(2 * k + j) % n, c]]).sum()
        })
    }

    fn merge(from: &Array2<f64>) -> Array2<f64> {
        let (n, columns) = from.dim();
        let mut to = Array2::zeros((n, columns));
        for ((i, c), value) in from.indexed_iter() {
            let (k, high) = (i % (n / 2), i >= n / 2);
            for j in 0..10usize {
                let g = if j.is_multiple_of(2) { LOW[9 - j] } else { -LOW[9 - j] };
                to[[(2 * k + j) % n, c]] += if high { g } else { LOW[j] } * value;
            }
        }
        to
    }

    fn along_columns(f: fn(&Array2<f64>) -> Array2<f64>, from: &Array2<f64>) -> Array2<f64> {
        f(&from.t().to_owned()).t().to_owned()
    }

    fn level(image: &Array2<f64>, levels: usize, sigma: f64) -> Array2<f64> {
        if levels == 0 {
            return image.clone();
        }
        let mut parts = along_columns(split, &split(image));
        let (rows, columns) = parts.dim();
        let (high, wide) = (rows / 2, columns / 2);
        let inner = level(&parts.slice(ndarray::s![..high, ..wide]).to_owned(), levels - 1, sigma);
        parts.slice_mut(ndarray::s![..high, ..wide]).assign(&inner);
        for column in wide..columns {
            let values: Vec<f64> = (0..high).map(|row| parts[[row, column]]).collect();
            for row in 0..high {
                let mut sum = 0.0;
                for (u, value) in values.iter().enumerate() {
                    for k in 0..high {
                        let around = k.min(high - k) as f64;
                        let damped = 1.0 - (-0.5 * (around / sigma).powi(2)).exp();
                        let phase = TAU * (k * (row + high - u) % high) as f64 / high as f64;
                        sum += damped * phase.cos() * value / high as f64;
                    }
                }
                parts[[row, column]] = sum;
            }
        }
        merge(&along_columns(merge, &parts))
    }

    pub(in super::super) fn damped(lines: &Array2<f64>, levels: usize, sigma: f64) -> Array2<f64> {
        let (views, columns) = lines.dim();
        let ((high, above), (wide, before)) = (padded(views, levels), padded(columns, levels));
        let image = Array2::from_shape_fn((high, wide), |(v, c)| {
            lines[[mirrored(v as i64 - above as i64, views), mirrored(c as i64 - before as i64, columns)]]
        });
        let image = level(&image, levels, sigma);
        image.slice(ndarray::s![above..above + views, before..before + columns]).to_owned()
    }
}
