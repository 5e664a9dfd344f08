//! The oracle: the residual of a system that the factorization solves.

use std::iter::zip;

/// x with A x = b, from L (without its diagonal of ones) and U, row by row in one matrix, and the row that
/// each step changed places with.
pub fn solve(lu: &[f64], pivots: &[i32], b: &[f64]) -> Vec<f64> {
    let (n, mut x) = (b.len(), b.to_vec());
    for (k, &p) in pivots.iter().enumerate() {
        x.swap(k, (p.max(0) as usize).min(n - 1));
    }
    let dot = |a: &[f64], x: &[f64]| zip(a, x).map(|(a, x)| a * x).sum::<f64>();
    for i in 0..n {
        x[i] -= dot(&lu[i * n..i * n + i], &x[..i]);
    }
    for i in (0..n).rev() {
        x[i] = (x[i] - dot(&lu[i * n + i + 1..(i + 1) * n], &x[i + 1..])) / lu[i * n + i];
    }
    x
}

/// ‖A x − b‖ / (ε (‖A‖ ‖x‖ + ‖b‖) n) with ∞-norms: High Performance Linpack's residual, which calls 16
/// enough. ε is 2⁻⁵³. Infinite for NaN.
pub fn residual(a: &[f64], x: &[f64], b: &[f64]) -> f64 {
    let n = b.len();
    let norm = |v: &mut dyn Iterator<Item = f64>| {
        v.fold(0.0, |m: f64, v| if v.is_nan() { f64::INFINITY } else { m.max(v.abs()) })
    };
    let rows = || a.chunks_exact(n);
    let off = norm(&mut zip(rows(), b).map(|(a, b)| zip(a, x).map(|(a, x)| a * x).sum::<f64>() - b));
    let size = norm(&mut rows().map(|a| a.iter().map(|a| a.abs()).sum::<f64>()));
    let error = off
        / (f64::EPSILON / 2.0
            * (size * norm(&mut x.iter().copied()) + norm(&mut b.iter().copied()))
            * n as f64);
    if error.is_nan() { f64::INFINITY } else { error }
}
