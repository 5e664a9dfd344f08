//! The plain variant: one footprint cell at a time, any width.

use num_complex::Complex;
use rayspin_core::Real;
use rayspin_device::cpu::simd::Level;

use super::{TilePoints, Weights};
use crate::nufft::kernel::MAX_WIDTH;

/// Kernel values along one axis.
fn taps<R: Real>(weights: &Weights<R>, z: R) -> [R; MAX_WIDTH] {
    let mut out = [R::zero(); MAX_WIDTH];
    for (tap, value) in out.iter_mut().enumerate().take(weights.width) {
        *value = weights.taps.iter().skip(tap).step_by(weights.stride).fold(R::zero(), |sum, &c| sum * z + c);
    }
    out
}

/// Kernel values along x, y, z; 1 at one cell along axes that the transform lacks.
fn footprint<R: Real>(weights: &Weights<R>, z: &[R]) -> ([[R; MAX_WIDTH]; 3], [usize; 3]) {
    let mut values = [[R::one(); MAX_WIDTH]; 3];
    let mut widths = [1; 3];
    for (axis, &z) in z.iter().enumerate() {
        values[axis] = taps(weights, z);
        widths[axis] = weights.width;
    }
    (values, widths)
}

pub(crate) fn spread<R: Real>(
    _: Level,
    weights: &Weights<R>,
    points: TilePoints<'_, R>,
    values: &[Complex<R>],
    local: &mut [R],
    pitch: [usize; 2],
) {
    for ((first, z), &value) in points.footprints().zip(values) {
        let ([kx, ky, kz], [wx, wy, wz]) = footprint(weights, z);
        for (dz, &kz) in kz[..wz].iter().enumerate() {
            for (dy, &ky) in ky[..wy].iter().enumerate() {
                let start = first + dz * pitch[1] + dy * pitch[0];
                let value = value * (kz * ky);
                for (cell, &kx) in local[2 * start..2 * (start + wx)].chunks_exact_mut(2).zip(&kx) {
                    cell[0] += value.re * kx;
                    cell[1] += value.im * kx;
                }
            }
        }
    }
}

pub(crate) fn interp<R: Real>(
    _: Level,
    weights: &Weights<R>,
    points: TilePoints<'_, R>,
    local: &[R],
    values: &mut [Complex<R>],
    pitch: [usize; 2],
) {
    for ((first, z), value) in points.footprints().zip(values) {
        let ([kx, ky, kz], [wx, wy, wz]) = footprint(weights, z);
        let mut sum = Complex::new(R::zero(), R::zero());
        for (dz, &kz) in kz[..wz].iter().enumerate() {
            for (dy, &ky) in ky[..wy].iter().enumerate() {
                let start = first + dz * pitch[1] + dy * pitch[0];
                let mut row = Complex::new(R::zero(), R::zero());
                for (cell, &kx) in local[2 * start..2 * (start + wx)].chunks_exact(2).zip(&kx) {
                    row.re += cell[0] * kx;
                    row.im += cell[1] * kx;
                }
                sum += row * (kz * ky);
            }
        }
        *value = sum;
    }
}
