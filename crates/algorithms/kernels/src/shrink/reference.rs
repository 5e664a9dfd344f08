//! One line of f64 per formula.

use rayspin_core::C64;

/// x_i max(0, 1 − t w_i / |x_i|), and Σ w_i |·| of that.
pub fn soft(threshold: f64, weights: &[f64], x: &[C64]) -> (Vec<C64>, f64) {
    let shrunk: Vec<C64> =
        x.iter().zip(weights).map(|(x, w)| shorten(*x, (x.norm() - threshold * w).max(0.0))).collect();
    let norm = shrunk.iter().zip(weights).map(|(x, w)| w * x.norm()).sum();
    (shrunk, norm)
}

/// `x` with length `length`.
fn shorten(x: C64, length: f64) -> C64 {
    if x.norm() > 0.0 { x / x.norm() * length } else { x }
}

/// √Σ_a |x_a(i)|² for each of `len` elements.
pub fn magnitudes(len: usize, x: &[C64]) -> Vec<f64> {
    (0..len).map(|i| x.iter().skip(i).step_by(len).map(C64::norm_sqr).sum::<f64>().sqrt()).collect()
}

/// x_a(i) min(1, r / √Σ_a |x_a(i)|²).
pub fn clip(radius: f64, len: usize, x: &[C64]) -> Vec<C64> {
    let magnitudes = magnitudes(len, x);
    x.iter()
        .enumerate()
        .map(|(i, x)| if magnitudes[i % len] > radius { x * radius / magnitudes[i % len] } else { *x })
        .collect()
}

/// Σ_i √Σ_a |x_a(i)|².
pub fn joint_norm(len: usize, x: &[C64]) -> f64 {
    magnitudes(len, x).iter().sum()
}
