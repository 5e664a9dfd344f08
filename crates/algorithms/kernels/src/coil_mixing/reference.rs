//! The formulas in f64.

use rayspin_core::C64;

/// y'_i(s) = Σ_j M_{ij}(s mod n) y_j(s): `matrices [kept, coil, n]`, `samples [coil, point]`.
pub fn mix(matrices: &[C64], samples: &[C64], coils: usize, positions: usize) -> Vec<C64> {
    let (kept, points) = (matrices.len() / (coils * positions), samples.len() / coils);
    let entry = |i: usize, j: usize, s: usize| matrices[(i * coils + j) * positions + s % positions];
    let one = |i: usize, s: usize| (0..coils).map(|j| entry(i, j, s) * samples[j * points + s]).sum();
    (0..kept).flat_map(|i| (0..points).map(move |s| one(i, s))).collect()
}

/// Σ_l y_i(l, p) conj(y_j(l, p)), `[position, coil, coil]`, of `[coil, line, position]`.
pub fn covariances(samples: &[C64], coils: usize, positions: usize) -> Vec<C64> {
    let points = samples.len() / coils;
    let sum = |p: usize, i: usize, j: usize| {
        (p..points).step_by(positions).map(|s| samples[i * points + s] * samples[j * points + s].conj()).sum()
    };
    (0..positions).flat_map(|p| (0..coils).flat_map(move |i| (0..coils).map(move |j| sum(p, i, j)))).collect()
}
