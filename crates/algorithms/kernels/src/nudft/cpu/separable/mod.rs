//! Separate phases for the three axes, and a register-blocked real matrix product of them.
//!
//! e^{i2πk·x} = Z(z) Y(y) X(x). For the adjoint, rows are points (z, y), columns are points x, and the sum
//! over samples is a matrix product. Its left factor A\[row, m\] = d_m Z_m(z) Y_m(y) is made on the fly, one
//! tile at a time. Its right factor, cos and sin of X, is made once for all rows. Mirrored points of x share
//! their four real products ([`Fold::Mirrored`]).
//! The forward transform is the transpose: sums and differences of mirrored voxels times cos and sin of X,
//! then Z and Y.

mod adjoint;
mod forward;
mod q;

use num_complex::Complex;
use rayspin_core::{Real, Result, Trajectory, voxels};
use rayspin_device::cpu::simd::prelude::*;
use rayspin_device::cpu::simd::{Lanes, Simd, SimdReal};
use rayspin_device::cpu::zeroed;

use super::phases::{Fold, by_sample};
use super::q_by_adjoint;
use crate::nudft::CpuImplementation;
use crate::nudft::grid::{Axis, Grid};
use crate::nudft::tune::Host;

/// Phases of x as complex numbers: 4 real multiply-adds a pair.
pub(crate) fn plain<T: SimdReal>() -> CpuImplementation<T> {
    CpuImplementation {
        forward: |cpu, t, grid, image, samples| forward::forward(cpu, t, grid, image, samples, Fold::Plain),
        adjoint: adjoint_plain,
        q: |cpu, t, matrix, weights, out| q_by_adjoint(adjoint_plain, cpu, t, matrix, weights, out),
    }
}

fn adjoint_plain<T: SimdReal>(
    cpu: &Host<'_>,
    trajectory: &Trajectory,
    grid: &Grid,
    samples: &[Complex<T>],
    image: &mut [Complex<T>],
) -> Result<()> {
    adjoint::adjoint(cpu, trajectory, grid, samples, image, Fold::Plain)
}

/// Mirrored points of x share their products: 2 real multiply-adds a pair, 1 for Q.
pub(crate) fn mirrored<T: SimdReal>() -> CpuImplementation<T> {
    CpuImplementation {
        forward: |cpu, t, grid, image, samples| {
            forward::forward(cpu, t, grid, image, samples, Fold::Mirrored)
        },
        adjoint: |cpu, t, grid, samples, image| {
            adjoint::adjoint(cpu, t, grid, samples, image, Fold::Mirrored)
        },
        q: q::q,
    }
}

/// Complex numbers `[row][sample]`, real and imaginary parts apart; a row is a whole number of vectors.
struct Split<T> {
    re: Vec<T>,
    im: Vec<T>,
    width: usize,
}

impl<T: SimdReal> Split<T> {
    /// Errors: memory.
    fn new(rows: usize, width: usize) -> Result<Self> {
        let part = || zeroed("phases of an axis", voxels(&[rows, width])?);
        Ok(Self { re: part()?, im: part()?, width })
    }

    /// A vector of row `row` from sample `m` on.
    #[inline(always)]
    fn load<S: Simd>(&self, simd: S, row: usize, m: usize) -> (Lanes<S, T>, Lanes<S, T>) {
        let part = row * self.width + m..row * self.width + m + Lanes::<S, T>::LEN;
        (
            Lanes::<S, T>::from_slice(simd, &self.re[part.clone()]),
            Lanes::<S, T>::from_slice(simd, &self.im[part]),
        )
    }

    /// Row j becomes the phases of point j of an axis, κ per sample in `steps`.
    #[inline(always)]
    fn fill_phases<S: Simd>(&mut self, simd: S, axis: &Axis, steps: &[f64]) {
        let width = self.width;
        by_sample(
            simd,
            steps,
            axis.first as f64,
            axis.count,
            #[inline(always)]
            |j, m, re, im| {
                let part = j * width + m..j * width + m + S::f64s::LEN;
                T::store_f64s::<S>(re, &mut self.re[part.clone()]);
                T::store_f64s::<S>(im, &mut self.im[part]);
            },
        );
    }
}

/// e^{i2πt} in double precision.
fn unit(turns: f64) -> Complex<f64> {
    Complex::cis(std::f64::consts::TAU * (turns - turns.round_ties_even()))
}

fn to_f64<T: Real>(value: Complex<T>) -> Complex<f64> {
    Complex::new(Real::to_f64(value.re), Real::to_f64(value.im))
}

fn from_f64<T: Real>(value: Complex<f64>) -> Complex<T> {
    Complex::new(<T as Real>::from_f64(value.re), <T as Real>::from_f64(value.im))
}
