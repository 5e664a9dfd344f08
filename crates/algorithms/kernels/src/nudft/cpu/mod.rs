//! The CPU variants, one file each.

pub(super) mod interchanged;
pub(super) mod naive;
pub(super) mod separable;
pub(super) mod simd;

mod gemm;
mod phases;

use num_complex::Complex;
use rayspin_core::{Real, Result, Trajectory};
use rayspin_device::cpu::simd::SimdReal;
use rayspin_device::cpu::try_with_capacity;

use super::grid::Grid;
use super::tune::Host;
use super::{CpuImplementation, Transform};

/// Q by an adjoint transform of the weights on the grid of displacements, for variants that do not exploit
/// real weights.
fn q_by_adjoint<T: Real>(
    adjoint: Transform<T>,
    cpu: &Host<'_>,
    trajectory: &Trajectory,
    matrix: &[usize],
    weights: &[T],
    out: &mut [Complex<T>],
) -> Result<()> {
    adjoint(cpu, trajectory, &Grid::displacements(matrix)?, &complex(weights)?, out)
}

/// Real weights as samples. Errors: memory.
fn complex<T: Real>(weights: &[T]) -> Result<Vec<Complex<T>>> {
    let mut samples = try_with_capacity("weights as samples", weights.len())?;
    samples.extend(weights.iter().map(|&w| Complex::from(w)));
    Ok(samples)
}

/// Components z, y, x of a point or a sample.
type Zyx = [f64; 3];

/// k of every sample and the position of every point. Errors: memory.
fn tables(trajectory: &Trajectory, grid: &Grid) -> Result<(Vec<Zyx>, Vec<Zyx>)> {
    let (mut k, mut x) = (
        try_with_capacity("table of samples", trajectory.samples())?,
        try_with_capacity("table of points", grid.points())?,
    );
    k.extend((0..trajectory.samples()).map(|m| grid.k(trajectory, m)));
    x.extend((0..grid.points()).map(|i| grid.position(i)));
    Ok((k, x))
}

/// The phase 2πk·x in turns, reduced to a half turn either way.
#[inline(always)]
fn reduced_turns(k: [f64; 3], x: [f64; 3]) -> f64 {
    let turns = k[0] * x[0] + k[1] * x[1] + k[2] * x[2];
    turns - turns.round_ties_even()
}

/// e^{i2πt} with the precision's own library sine and cosine.
#[inline(always)]
fn cis<T: Real>(turns: f64) -> Complex<T> {
    let (sin, cos) = <T as Real>::from_f64(std::f64::consts::TAU * turns).sin_cos();
    Complex::new(cos, sin)
}

/// An implementation whose Q is [`q_by_adjoint`].
macro_rules! implementation {
    ($module:ident) => {
        $crate::nudft::CpuImplementation {
            forward: $module::forward,
            adjoint: $module::adjoint,
            q: |cpu, trajectory, matrix, weights, out| {
                q_by_adjoint($module::adjoint, cpu, trajectory, matrix, weights, out)
            },
        }
    };
}

pub(super) fn naive<T: SimdReal>() -> CpuImplementation<T> {
    implementation!(naive)
}

pub(super) fn interchanged<T: SimdReal>() -> CpuImplementation<T> {
    implementation!(interchanged)
}

pub(super) fn simd<T: SimdReal>() -> CpuImplementation<T> {
    implementation!(simd)
}
