//! The inner kernel of the separable variants: a tile of a real matrix product, held in registers.

use rayspin_core::Real;
use rayspin_device::cpu::simd::prelude::*;
use rayspin_device::cpu::simd::{Lanes, Simd, SimdReal};

/// Complex rows of a tile.
pub(super) const ROWS: usize = 6;
/// Real rows of a tile: the real parts of [`ROWS`] rows, then their imaginary parts.
pub(super) const PARTS: usize = 2 * ROWS;
/// Vectors across a tile.
pub(super) const ACROSS: usize = 2;

/// C\[r, ·\] = Σ_k a(k, r) B\[k, ·\] for r < [`PARTS`] and [`ACROSS`] vectors of columns, handed to `sink`
/// row by row.
///
/// `b` is `[k][ACROSS lanes]`. A tile takes 24 accumulators where there are 32 registers, else two halves of
/// 12.
#[inline(always)]
pub(super) fn tile<S: Simd, T: SimdReal>(
    simd: S,
    a: impl Fn(usize, usize) -> T,
    b: &[T],
    mut sink: impl FnMut(usize, [Lanes<S, T>; ACROSS]),
) {
    let many_registers = size_of::<Lanes<S, T>>() == 64 || cfg!(target_arch = "aarch64");
    if many_registers {
        let c = product::<S, T, PARTS>(simd, &a, b);
        for (r, c) in c.into_iter().enumerate() {
            sink(r, c);
        }
    } else {
        for half in [0, ROWS] {
            let c = product::<S, T, ROWS>(simd, |k, r| a(k, half + r), b);
            for (r, c) in c.into_iter().enumerate() {
                sink(half + r, c);
            }
        }
    }
}

#[inline(always)]
fn product<S: Simd, T: SimdReal, const R: usize>(
    simd: S,
    a: impl Fn(usize, usize) -> T,
    b: &[T],
) -> [[Lanes<S, T>; ACROSS]; R] {
    let lanes = Lanes::<S, T>::LEN;
    let zero = Lanes::<S, T>::splat(simd, <T as Real>::from_f64(0.0));
    let mut c = [[zero; ACROSS]; R];
    for (k, b) in b.chunks_exact(ACROSS * lanes).enumerate() {
        let mut vectors = [zero; ACROSS];
        for (vector, b) in vectors.iter_mut().zip(b.chunks_exact(lanes)) {
            *vector = Lanes::<S, T>::from_slice(simd, b);
        }
        for (r, c) in c.iter_mut().enumerate() {
            let a = Lanes::<S, T>::splat(simd, a(k, r));
            for (c, b) in c.iter_mut().zip(vectors) {
                *c = a.mul_add(b, *c);
            }
        }
    }
    c
}
