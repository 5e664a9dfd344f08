//! FᴴWF and its kernel as their formulas say, in f64: the oracle.

use num_complex::{Complex32, Complex64};
use rayspin_core::Trajectory;

/// k·x in turns, for a voxel at `index` (in the order of `matrix`: z, y, x) counted from `centre`.
fn turns(point: &[f64], index: &[usize], matrix: &[usize], centre: impl Fn(usize) -> usize) -> f64 {
    let last = matrix.len() - 1;
    // Components are in the order x, y, z; axes in the order z, y, x.
    let terms = (0..matrix.len()).map(|axis| {
        let displacement = index[axis] as f64 - centre(matrix[axis]) as f64;
        point[last - axis] * displacement / matrix[axis] as f64
    });
    terms.sum()
}

fn unravel(mut flat: usize, shape: &[usize]) -> Vec<usize> {
    let mut index = vec![0; shape.len()];
    for (i, &n) in index.iter_mut().zip(shape).rev() {
        *i = flat % n;
        flat /= n;
    }
    index
}

/// y\[i\] = Σ_m w_m e^{+i2πk_m·x_i} Σ_j e^{−i2πk_m·x_j} x\[j\], x_i = (i − ⌊n/2⌋)/n.
pub fn normal(
    image: &[Complex64],
    matrix: &[usize],
    trajectory: &Trajectory,
    weights: &[f64],
) -> Vec<Complex64> {
    let tau = std::f64::consts::TAU;
    let mut out = vec![Complex64::ZERO; image.len()];
    for (m, weight) in weights.iter().enumerate() {
        let phases: Vec<f64> = (0..image.len())
            .map(|j| tau * turns(trajectory.point(m), &unravel(j, matrix), matrix, |n| n / 2))
            .collect();
        let sample: Complex64 = image.iter().zip(&phases).map(|(v, p)| v * Complex64::cis(-p)).sum();
        for (value, phase) in out.iter_mut().zip(&phases) {
            *value += weight * sample * Complex64::cis(*phase);
        }
    }
    out
}

/// Q(d) = Σ_m w_m e^{+i2πk_m·d}, d = (index − n)/n on the doubled grid.
pub fn kernel(matrix: &[usize], trajectory: &Trajectory, weights: &[f64]) -> Vec<Complex64> {
    let doubled: Vec<usize> = matrix.iter().map(|n| 2 * n).collect();
    (0..doubled.iter().product())
        .map(|flat| {
            let index = unravel(flat, &doubled);
            let terms = weights.iter().enumerate().map(|(m, weight)| {
                let turns = turns(trajectory.point(m), &index, matrix, |n| n);
                weight * Complex64::cis(std::f64::consts::TAU * turns)
            });
            terms.sum()
        })
        .collect()
}

/// y\[i\] = Σ_j Q(i − j) x\[j\] for the voxel `i` in flat order.
pub fn convolved(q: &[Complex32], matrix: &[usize], image: &[Complex64], i: usize) -> Complex64 {
    let doubled: Vec<usize> = matrix.iter().map(|n| 2 * n).collect();
    let i = unravel(i, matrix);
    let term = |(j, value): (usize, &Complex64)| {
        let axes = i.iter().zip(unravel(j, matrix)).zip(matrix.iter().zip(&doubled));
        let index = axes.fold(0, |index, ((&i, j), (n, doubled))| index * doubled + i + n - j);
        Complex64::new(q[index].re.into(), q[index].im.into()) * value
    };
    image.iter().enumerate().map(term).sum()
}
