//! Hermitian matrices of known eigenvalues, for tests of where iterations end.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayspin_core::C64;

/// A random orthonormal basis of ℂⁿ.
pub(crate) fn basis(n: usize, seed: u64) -> Vec<Vec<C64>> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut basis: Vec<Vec<C64>> = Vec::new();
    while basis.len() < n {
        let mut one = || rng.random_range(-1.0..1.0);
        let mut v: Vec<C64> = (0..n).map(|_| C64::new(one(), one())).collect();
        for _ in 0..2 {
            for b in &basis {
                let overlap: C64 = b.iter().zip(&v).map(|(b, v)| b.conj() * v).sum();
                v.iter_mut().zip(b).for_each(|(v, b)| *v -= b * overlap);
            }
        }
        let size = norm(&v);
        v.iter_mut().for_each(|v| *v /= size);
        basis.push(v);
    }
    basis
}

/// Σ λ_k b_k b_kᴴ, row by row.
pub(crate) fn matrix(values: &[f64], basis: &[Vec<C64>]) -> Vec<C64> {
    let n = values.len();
    let entry = |i: usize, j: usize| values.iter().zip(basis).map(|(l, b)| b[i] * b[j].conj() * l).sum();
    (0..n * n).map(|index| entry(index / n, index % n)).collect()
}

/// ‖Av − ρv‖ / ρ of a vector of any length but 0, where ρ = vᴴAv / vᴴv.
pub(crate) fn residual(matrix: &[C64], v: &[C64]) -> f64 {
    let size = norm(v);
    let v: Vec<C64> = v.iter().map(|v| v / size).collect();
    let dot = |row: &[C64]| row.iter().zip(&v).map(|(a, v)| a * v).sum::<C64>();
    let image: Vec<C64> = matrix.chunks_exact(v.len()).map(dot).collect();
    let value: f64 = v.iter().zip(&image).map(|(v, g)| (v.conj() * g).re).sum();
    norm(&image.iter().zip(&v).map(|(g, v)| g - v * value).collect::<Vec<_>>()) / value
}

fn norm(v: &[C64]) -> f64 {
    v.iter().map(|v| v.norm_sqr()).sum::<f64>().sqrt()
}
