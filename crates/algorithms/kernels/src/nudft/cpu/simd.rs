//! One polynomial sine and cosine per pair, with the voxels of a row in SIMD lanes, tiled over samples, on
//! all cores.
//!
//! The phase of a lane is the sum of two reduced numbers, each formed in double precision. One is the phase
//! of the block's first voxel, computed once per pair of sample and block. The other is the phase of the
//! lane's step, computed once per sample.

use num_complex::Complex;
use rayon::prelude::*;
use rayspin_core::{Real, Result, Trajectory};
use rayspin_device::cpu::simd::prelude::*;
use rayspin_device::cpu::simd::{Lanes, Level, Simd, SimdReal, dispatch, sincos_2pi};
use rayspin_device::cpu::{Stop, expect_memory, zeroed};

use super::phases::lanes;
use crate::nudft::grid::Grid;
use crate::nudft::tune::Host;

/// Tiles of samples prepared at once for all rows.
const PREPARED: usize = 16;
/// Samples of a task of the forward transform.
const TASK: usize = 32;

/// A run of samples, prepared for adjoint and forward.
struct Prepared<T> {
    /// k of z, y, x.
    k: [Vec<f64>; 3],
    /// Phase of lane l within a block, in turns, `[sample][lane]`.
    steps: Vec<T>,
}

fn prepare<T: SimdReal>(
    trajectory: &Trajectory,
    grid: &Grid,
    samples: std::ops::Range<usize>,
    lanes: usize,
) -> Prepared<T> {
    let k = grid.axes.map(|axis| samples.clone().map(|m| axis.k(trajectory, m)).collect::<Vec<_>>());
    let n = grid.axes[2].n as f64;
    let steps = k[2].iter().flat_map(|kx| {
        (0..lanes).map(move |lane| {
            let turns = kx * (lane as f64 / n);
            <T as Real>::from_f64(turns - turns.round_ties_even())
        })
    });
    Prepared { steps: steps.collect(), k }
}

pub(crate) fn adjoint<T: SimdReal>(
    cpu: &Host<'_>,
    trajectory: &Trajectory,
    grid: &Grid,
    samples: &[Complex<T>],
    image: &mut [Complex<T>],
) -> Result<()> {
    let (count, level, stop) = (trajectory.samples(), cpu.level(), Stop::of_caller());
    let tile = cpu.cut.samples.max(1);
    for first in (0..count).step_by(PREPARED * tile) {
        let range = first..(first + PREPARED * tile).min(count);
        let prepared = &prepare(trajectory, grid, range.clone(), lanes::<T>(level));
        cpu.run(|| {
            let rows = image.par_chunks_exact_mut(grid.axes[2].count).enumerate();
            rows.filter(|_| !stop.is_set()).for_each(|(row, out)| {
                let (b, row) = (row / grid.rows(), row % grid.rows());
                let samples = Samples { prepared, d: &samples[b * count..][range.clone()], tile };
                dispatch!(level, simd => adjoint_row(simd, grid, samples, row, first > 0, out));
            });
        });
        stop.check()?;
    }
    Ok(())
}

/// A run of samples. Working precision sums `tile` of them at a time.
#[derive(Clone, Copy)]
struct Samples<'a, T> {
    prepared: &'a Prepared<T>,
    d: &'a [Complex<T>],
    tile: usize,
}

#[inline(always)]
fn adjoint_row<S: Simd, T: SimdReal>(
    simd: S,
    grid: &Grid,
    samples: Samples<'_, T>,
    row: usize,
    add: bool,
    out: &mut [Complex<T>],
) {
    let Samples { prepared, d, tile } = samples;
    let lanes = Lanes::<S, T>::LEN;
    let [z, y, x] = &grid.axes;
    let (z, y) = (z.position(row / y.count), y.position(row % y.count));
    let zero = Lanes::<S, T>::splat(simd, T::zero());
    let (mut re, mut im) = ([0.0; 16], [0.0; 16]);
    let mut base = vec![T::zero(); tile];
    for (block, out) in out.chunks_mut(lanes).enumerate() {
        let x = x.position(block * lanes);
        re[..lanes].fill(0.0);
        im[..lanes].fill(0.0);
        for (i, d) in d.chunks(tile).enumerate() {
            let part = i * tile..i * tile + d.len();
            let [kz, ky, kx] = [0, 1, 2].map(|axis| &prepared.k[axis][part.clone()]);
            for (base, ((kz, ky), kx)) in base.iter_mut().zip(kz.iter().zip(ky).zip(kx)) {
                let turns = kz * z + ky * y + kx * x;
                *base = <T as Real>::from_f64(turns - turns.round_ties_even());
            }
            let steps = prepared.steps[part.start * lanes..].chunks_exact(lanes);
            let (mut sum_re, mut sum_im) = (zero, zero);
            for ((d, base), steps) in d.iter().zip(&base).zip(steps) {
                let turns = Lanes::<S, T>::from_slice(simd, steps) + *base;
                let (sin, cos) = sincos_2pi::<S, T>(simd, turns);
                sum_re = cos.mul_add(d.re, sin.mul_add(-d.im, sum_re));
                sum_im = cos.mul_add(d.im, sin.mul_add(d.re, sum_im));
            }
            T::add_to_f64::<S>(simd, sum_re, &mut re[..lanes]);
            T::add_to_f64::<S>(simd, sum_im, &mut im[..lanes]);
        }
        for (out, (re, im)) in out.iter_mut().zip(re.iter().zip(&im)) {
            let sum = Complex::new(<T as Real>::from_f64(*re), <T as Real>::from_f64(*im));
            *out = if add { *out + sum } else { sum };
        }
    }
}

pub(crate) fn forward<T: SimdReal>(
    cpu: &Host<'_>,
    trajectory: &Trajectory,
    grid: &Grid,
    image: &[Complex<T>],
    samples: &mut [Complex<T>],
) -> Result<()> {
    let (count, level) = (trajectory.samples(), cpu.level());
    let planes = Planes::new(image, grid.axes[2].count, lanes::<T>(level))?;
    expect_memory("samples of all tasks", size_of_val(samples) as u64)?;
    let starts: Vec<usize> = (0..count).step_by(TASK).collect();
    let stop = Stop::of_caller();
    let parts: Result<Vec<Vec<Complex<T>>>> = cpu.run(|| {
        let tasks = starts.par_iter();
        tasks
            .map(|&first| {
                stop.check()?;
                Ok(forward_task(level, trajectory, grid, &planes, first..(first + TASK).min(count)))
            })
            .collect()
    });
    for (first, part) in starts.iter().zip(&parts?) {
        let width = part.len() / grid.batch(image.len()).max(1);
        for (b, part) in part.chunks_exact(width).enumerate() {
            samples[b * count + first..][..width].copy_from_slice(part);
        }
    }
    Ok(())
}

/// Real and imaginary parts apart, rows padded with zeros to whole vectors.
struct Planes<T> {
    re: Vec<T>,
    im: Vec<T>,
    width: usize,
}

impl<T: SimdReal> Planes<T> {
    fn new(image: &[Complex<T>], row: usize, lanes: usize) -> Result<Self> {
        let width = row.next_multiple_of(lanes);
        let len = image.len() / row * width;
        let [mut re, mut im] = [zeroed("plane of an image", len)?, zeroed("plane of an image", len)?];
        for (r, row) in image.chunks_exact(row).enumerate() {
            for (i, value) in row.iter().enumerate() {
                (re[r * width + i], im[r * width + i]) = (value.re, value.im);
            }
        }
        Ok(Self { re, im, width })
    }
}

/// The samples of a range, `[batch][sample]`.
fn forward_task<T: SimdReal>(
    level: Level,
    trajectory: &Trajectory,
    grid: &Grid,
    planes: &Planes<T>,
    samples: std::ops::Range<usize>,
) -> Vec<Complex<T>> {
    let prepared = prepare(trajectory, grid, samples.clone(), lanes::<T>(level));
    let batch = planes.re.len() / (grid.rows() * planes.width);
    let mut out = Vec::with_capacity(batch * samples.len());
    for b in 0..batch {
        for m in 0..samples.len() {
            out.push(dispatch!(level, simd => forward_sample(simd, grid, &prepared, planes, b, m)));
        }
    }
    out
}

#[inline(always)]
fn forward_sample<S: Simd, T: SimdReal>(
    simd: S,
    grid: &Grid,
    prepared: &Prepared<T>,
    planes: &Planes<T>,
    b: usize,
    m: usize,
) -> Complex<T> {
    let lanes = Lanes::<S, T>::LEN;
    let [z_axis, y_axis, x_axis] = &grid.axes;
    let [kz, ky, kx] = [0, 1, 2].map(|axis| prepared.k[axis][m]);
    let steps = Lanes::<S, T>::from_slice(simd, &prepared.steps[m * lanes..][..lanes]);
    let firsts = (0..planes.width).step_by(lanes);
    let firsts: Vec<f64> = firsts.map(|i| kx * x_axis.position(i)).collect();
    let zero = Lanes::<S, T>::splat(simd, T::zero());
    let (mut re, mut im) = ([0.0; 16], [0.0; 16]);
    let start = b * grid.rows() * planes.width;
    let rows =
        planes.re[start..].chunks_exact(planes.width).zip(planes.im[start..].chunks_exact(planes.width));
    for (row, (row_re, row_im)) in rows.take(grid.rows()).enumerate() {
        let zy = kz * z_axis.position(row / y_axis.count) + ky * y_axis.position(row % y_axis.count);
        let (mut sum_re, mut sum_im) = (zero, zero);
        let blocks = row_re.chunks_exact(lanes).zip(row_im.chunks_exact(lanes));
        for ((rho_re, rho_im), first) in blocks.zip(&firsts) {
            let turns = zy + first;
            let base = <T as Real>::from_f64(turns - turns.round_ties_even());
            let (sin, cos) = sincos_2pi::<S, T>(simd, steps + base);
            let rho_re = Lanes::<S, T>::from_slice(simd, rho_re);
            let rho_im = Lanes::<S, T>::from_slice(simd, rho_im);
            sum_re = rho_re.mul_add(cos, rho_im.mul_add(sin, sum_re));
            sum_im = rho_im.mul_add(cos, (-rho_re).mul_add(sin, sum_im));
        }
        T::add_to_f64::<S>(simd, sum_re, &mut re[..lanes]);
        T::add_to_f64::<S>(simd, sum_im, &mut im[..lanes]);
    }
    let sum = |parts: &[f64; 16]| <T as Real>::from_f64(parts[..lanes].iter().sum());
    Complex::new(sum(&re), sum(&im))
}
