//! Pipe–Menon in f64 with the kernel's own formula instead of its polynomials, one cell at a time, and
//! exponents from Chebyshev's zeros.

use rayspin_core::Trajectory;

use crate::nufft::kernel::Kernel;

/// w ← w (C w)^−ω on the fine grid `fine` (C order) with a kernel of `width` cells, weights as
/// [`super::pipe_menon`] scales them.
pub fn pipe_menon(
    trajectory: &Trajectory,
    matrix: &[usize],
    fine: &[usize],
    width: usize,
    iterations: usize,
) -> Vec<f64> {
    let kernel = Kernel::new(width, 2.0);
    let samples = trajectory.samples();
    let voxels: f64 = matrix.iter().map(|&n| n as f64).product();
    let cells: f64 = fine.iter().map(|&n| n as f64).product();
    let footprints: Vec<Vec<(usize, f64)>> =
        (0..samples).map(|j| footprint(trajectory.point(j), matrix, fine, &kernel)).collect();
    let mut weights = vec![1.0; samples];
    for step in 0..iterations {
        let exponent = exponent(step, iterations);
        let mut grid = vec![0.0; cells as usize];
        for (cells, w) in footprints.iter().zip(&weights) {
            for &(cell, value) in cells {
                grid[cell] += value * w;
            }
        }
        for (cells, w) in footprints.iter().zip(&mut weights) {
            *w *= cells.iter().map(|&(cell, value)| grid[cell] * value).sum::<f64>().powf(-exponent);
        }
    }
    // ∫φ∗φ: the kernel's integral squared, each axis, times the volume of a cell; over the number of voxels.
    let integral = kernel.fourier(0.0).powi(2 * matrix.len() as i32) * voxels / cells;
    weights.iter().map(|w| w * integral / voxels).collect()
}

/// 1, and at the end as many times five exponents as leave two steps before them. An error e that C takes to
/// λ e is Π (1 − ω λ) e after the five steps. The product is Chebyshev's polynomial of degree 5 on [λ₀, 1], 1
/// at λ = 0, and at most 1/20 there: arcosh 20 = 5 arcosh((1 + λ₀)/(1 − λ₀)).
fn exponent(step: usize, steps: usize) -> f64 {
    let fast = if steps < 7 { 0 } else { (steps - 2) / 5 * 5 };
    let Some(index) = (step + fast).checked_sub(steps) else { return 1.0 };
    let ratio = (20f64.acosh() / 5.0).cosh();
    let least = (ratio - 1.0) / (ratio + 1.0);
    let zero = (std::f64::consts::PI * [5.0, 9.0, 1.0, 7.0, 3.0][index % 5] / 10.0).cos();
    2.0 / (1.0 + least + (1.0 - least) * zero)
}

/// Cells within reach of a point and the kernel's value there.
fn footprint(k: &[f64], matrix: &[usize], fine: &[usize], kernel: &Kernel) -> Vec<(usize, f64)> {
    let mut cells = vec![(0, 1.0)];
    for ((&n, &size), &k) in matrix.iter().zip(fine).zip(k.iter().rev()) {
        let u = k / n as f64 * size as f64;
        let half = kernel.width as f64 / 2.0;
        let reach = (u - half).ceil() as i64..=(u + half).floor() as i64;
        cells = cells
            .iter()
            .flat_map(|&(cell, value)| {
                reach.clone().map(move |l| {
                    let wrapped = l.rem_euclid(size as i64) as usize;
                    (cell * size + wrapped, value * kernel.value(l as f64 - u))
                })
            })
            .collect();
    }
    cells
}
