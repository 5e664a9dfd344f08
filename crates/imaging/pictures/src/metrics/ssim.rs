use rayon::prelude::*;

/// Window length and standard deviation, K₁ and K₂ of Wang et al. 2004.
const WINDOW: usize = 11;
const SIGMA: f64 = 1.5;
const K1: f64 = 0.01;
const K2: f64 = 0.03;

/// Mean of the SSIM map of every `[ny, nx]` slice of `x` against `y`, over window centres that `mask` allows.
pub(super) fn mean(x: &[f64], y: &[f64], mask: Option<&[bool]>, [ny, nx]: [usize; 2]) -> Option<f64> {
    let (low, high) = y.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), &v| (l.min(v), h.max(v)));
    let range = high - low;
    let map = Map {
        // Moments are taken about the middle of the reference, which keeps E[x²] − μ² from cancelling.
        middle: low + 0.5 * range,
        c1: (K1 * range).powi(2),
        c2: (K2 * range).powi(2),
        along_y: gaussian(ny),
        along_x: gaussian(nx),
        nx,
    };
    let size = ny * nx;
    let sums: Vec<(f64, usize)> = (0..x.len() / size)
        .into_par_iter()
        .map(|slice| {
            let range = slice * size..(slice + 1) * size;
            map.sum(&x[range.clone()], &y[range.clone()], mask.map(|m| &m[range]))
        })
        .collect();
    let (sum, count) = sums.iter().fold((0.0, 0), |a, b| (a.0 + b.0, a.1 + b.1));
    (count > 0).then(|| sum / count as f64)
}

/// The Gaussian window along an axis of `n`, normalised: 11 taps, or the largest odd number that fits.
fn gaussian(n: usize) -> Vec<f64> {
    let length = WINDOW.min(if n % 2 == 1 { n } else { n - 1 });
    let middle = (length / 2) as f64;
    let weights: Vec<f64> =
        (0..length).map(|i| (-0.5 * ((i as f64 - middle) / SIGMA).powi(2)).exp()).collect();
    let total: f64 = weights.iter().sum();
    weights.into_iter().map(|w| w / total).collect()
}

struct Map {
    middle: f64,
    c1: f64,
    c2: f64,
    along_y: Vec<f64>,
    along_x: Vec<f64>,
    nx: usize,
}

/// x, y, x², y² and xy, or their weighted sums.
type Moments = [f64; 5];

impl Map {
    /// Sum and number of the map's values in one slice.
    fn sum(&self, x: &[f64], y: &[f64], mask: Option<&[bool]>) -> (f64, usize) {
        let nx = self.nx;
        let (wy, wx) = (self.along_y.len(), self.along_x.len());
        let (width, height) = (nx + 1 - wx, x.len() / nx + 1 - wy);
        let rows = self.filter_rows(x, y, width);

        let (mut sum, mut count) = (0.0, 0);
        let mut line: [Vec<f64>; 5] = std::array::from_fn(|_| vec![0.0; width]);
        for row in 0..height {
            for (moment, line) in line.iter_mut().enumerate() {
                line.fill(0.0);
                for (tap, weight) in self.along_y.iter().enumerate() {
                    let start = (5 * (row + tap) + moment) * width;
                    add(line, *weight, &rows[start..start + width]);
                }
            }
            for column in 0..width {
                if mask.is_none_or(|m| m[(row + wy / 2) * nx + column + wx / 2]) {
                    sum += self.similarity(std::array::from_fn(|moment| line[moment][column]));
                    count += 1;
                }
            }
        }
        (sum, count)
    }

    /// The window along x over every row: `[row, moment, column]`.
    fn filter_rows(&self, x: &[f64], y: &[f64], width: usize) -> Vec<f64> {
        let nx = self.nx;
        let mut filtered = vec![0.0; x.len() / nx * 5 * width];
        let mut products = vec![0.0; 5 * nx];
        let rows = x.chunks_exact(nx).zip(y.chunks_exact(nx));
        for ((row_x, row_y), out) in rows.zip(filtered.chunks_exact_mut(5 * width)) {
            for (column, (x, y)) in row_x.iter().zip(row_y).enumerate() {
                let (a, b) = (x - self.middle, y - self.middle);
                for (moment, product) in [a, b, a * a, b * b, a * b].into_iter().enumerate() {
                    products[moment * nx + column] = product;
                }
            }
            for (line, product) in out.chunks_exact_mut(width).zip(products.chunks_exact(nx)) {
                for (tap, weight) in self.along_x.iter().enumerate() {
                    add(line, *weight, &product[tap..tap + width]);
                }
            }
        }
        filtered
    }

    fn similarity(&self, [x, y, xx, yy, xy]: Moments) -> f64 {
        let (variance_x, variance_y, covariance) = (variance(xx, x), variance(yy, y), xy - x * y);
        let (mean_x, mean_y) = (x + self.middle, y + self.middle);
        let luminance =
            fraction(2.0 * mean_x * mean_y + self.c1, mean_x * mean_x + mean_y * mean_y + self.c1);
        let structure = fraction(2.0 * covariance + self.c2, variance_x + variance_y + self.c2);
        luminance * structure
    }
}

fn add(line: &mut [f64], weight: f64, values: &[f64]) {
    for (total, value) in line.iter_mut().zip(values) {
        *total += weight * value;
    }
}

/// E[v²] − μ², exactly 0 where it is only round-off: C₂ is 0 for a constant reference and would not hide it.
fn variance(square: f64, mean: f64) -> f64 {
    let difference = square - mean * mean;
    if difference > 1e-13 * square { difference } else { 0.0 }
}

/// a/b with 0/0 = 1.
fn fraction(a: f64, b: f64) -> f64 {
    if a == 0.0 && b == 0.0 { 1.0 } else { a / b }
}
