use num_complex::Complex;
use rayon::prelude::*;
use rayspin_core::{Result, Trajectory, voxels};
use rayspin_device::cpu::simd::prelude::*;
use rayspin_device::cpu::simd::{Lanes, Simd, SimdReal, complex_mul, dispatch};
use rayspin_device::cpu::{Stop, expect_memory, zeroed};

use super::{Split, from_f64, unit};
use crate::nudft::cpu::gemm::{ACROSS, PARTS, ROWS, tile};
use crate::nudft::cpu::phases::{Columns, Fold, by_sample, lanes, steps};
use crate::nudft::grid::Grid;
use crate::nudft::tune::Host;

/// Most samples of a task: their phases of x stay in the second-level cache.
const TASK: usize = 256;
/// Columns summed in one run of working precision.
const RUN: usize = 256;

pub(super) fn forward<T: SimdReal>(
    cpu: &Host<'_>,
    trajectory: &Trajectory,
    grid: &Grid,
    image: &[Complex<T>],
    samples: &mut [Complex<T>],
    fold: Fold,
) -> Result<()> {
    let (count, level, batch) = (trajectory.samples(), cpu.level(), grid.batch(image.len()));
    let columns = Columns::new(grid.axes[2], fold);
    let strip = ACROSS * lanes::<T>(level);
    let a_task = count.div_ceil(4 * cpu.threads()).next_multiple_of(strip).min(TASK);
    let rows = pack(cpu, &columns, image)?;
    expect_memory("samples of all tasks", size_of_val(samples) as u64)?;
    let starts: Vec<usize> = (0..count).step_by(a_task).collect();
    let stop = Stop::of_caller();
    let parts: Result<Vec<Vec<Complex<T>>>> = cpu.run(|| {
        let tasks = starts.par_iter();
        tasks
            .map(|&first| {
                let range = first..(first + a_task).min(count);
                let job = Job { trajectory, grid, columns: &columns, rows: &rows, batch, stop: &stop };
                dispatch!(level, simd => sum_samples(simd, job, range))
            })
            .collect()
    });
    for (first, part) in starts.iter().zip(&parts?) {
        let width = (count - first).min(a_task);
        for (b, part) in part.chunks_exact(width).enumerate() {
            samples[b * count + first..][..width].copy_from_slice(part);
        }
    }
    Ok(())
}

/// Rows `[batch, z, y]` folded along x: with ρ± the mirrored voxels of a column, ρ₊ + ρ₋ goes with its cosine
/// and −i(ρ₊ − ρ₋) with its sine. `[tile][column][part]`, zero past the last row. Errors: memory.
fn pack<T: SimdReal>(cpu: &Host<'_>, columns: &Columns, image: &[Complex<T>]) -> Result<Vec<T>> {
    let row = columns.axis.count;
    let tiles = (image.len() / row).div_ceil(ROWS);
    let mut packed = zeroed::<T>("packed rows", voxels(&[tiles, columns.len(), PARTS])?)?;
    let each = packed.par_chunks_exact_mut(columns.len() * PARTS).enumerate();
    let fill = |(t, tile): (usize, &mut [T])| {
        let rows = image[t * ROWS * row..].chunks_exact(row).take(ROWS);
        for (r, values) in rows.enumerate() {
            for j in 0..columns.cos {
                let (plus, minus) = columns.points(j);
                let (plus, minus) = (values[plus], minus.map_or(Complex::default(), |i| values[i]));
                let (sum, difference) = (plus + minus, plus - minus);
                (tile[j * PARTS + r], tile[j * PARTS + ROWS + r]) = (sum.re, sum.im);
                if let Some(s) = columns.sine(j) {
                    (tile[s * PARTS + r], tile[s * PARTS + ROWS + r]) = (difference.im, -difference.re);
                }
            }
        }
    };
    cpu.run(|| each.for_each(fill));
    Ok(packed)
}

#[derive(Clone, Copy)]
struct Job<'a, T> {
    trajectory: &'a Trajectory,
    grid: &'a Grid,
    columns: &'a Columns,
    rows: &'a [T],
    batch: usize,
    stop: &'a Stop,
}

/// Samples of `range`, `[batch][sample]`.
#[inline(always)]
fn sum_samples<S: Simd, T: SimdReal>(
    simd: S,
    job: Job<'_, T>,
    range: std::ops::Range<usize>,
) -> Result<Vec<Complex<T>>> {
    let Job { grid, columns, batch, .. } = job;
    let lanes = Lanes::<S, T>::LEN;
    let strip = ACROSS * lanes;
    let width = range.len().next_multiple_of(strip);
    let axis_steps = grid.axes.map(|axis| steps(&axis, job.trajectory, range.clone(), width));
    let x = column_phases::<S, T>(simd, columns, &axis_steps[2], strip)?;
    let mut z = Split::<T>::new(grid.axes[0].count, width)?;
    let mut y = Split::<T>::new(grid.axes[1].count, width)?;
    z.fill_phases(simd, &grid.axes[0], &axis_steps[0]);
    y.fill_phases(simd, &grid.axes[1], &axis_steps[1]);

    let zero = Lanes::<S, T>::splat(simd, T::zero());
    let (rows, ny) = (grid.rows(), grid.axes[1].count);
    let part = || zeroed::<f64>("sums of samples", batch * width);
    let mut sums = (part()?, part()?);
    for (t, a) in job.rows.chunks_exact(columns.len() * PARTS).enumerate() {
        job.stop.check()?;
        let tile_rows = t * ROWS..((t + 1) * ROWS).min(batch * rows);
        for (s, b) in x.chunks_exact(columns.len() * strip).enumerate() {
            let mut c = [[zero; ACROSS]; PARTS];
            for (a, b) in a.chunks(RUN * PARTS).zip(b.chunks(RUN * strip)) {
                let (a, _) = a.as_chunks::<PARTS>();
                tile::<S, T>(
                    simd,
                    |k, r| a[k][r],
                    b,
                    |r, run| {
                        for (c, run) in c[r].iter_mut().zip(run) {
                            *c += run;
                        }
                    },
                );
            }
            for (v, m) in (s * strip..).step_by(lanes).take(ACROSS).enumerate() {
                let mut first = tile_rows.start;
                while first < tile_rows.end {
                    // A run of rows of one batch entry.
                    let entry = first / rows;
                    let end = tile_rows.end.min((entry + 1) * rows);
                    let (mut sum_re, mut sum_im) = (zero, zero);
                    for row in first..end {
                        let (iz, iy) = (row % rows / ny, row % ny);
                        let (p_re, p_im) = complex_mul::<S, T>(z.load(simd, iz, m), y.load(simd, iy, m));
                        let (re, im) = (c[row - tile_rows.start][v], c[ROWS + row - tile_rows.start][v]);
                        sum_re = re.mul_add(p_re, im.mul_add(p_im, sum_re));
                        sum_im = im.mul_add(p_re, (-re).mul_add(p_im, sum_im));
                    }
                    let part = entry * width + m..entry * width + m + lanes;
                    T::add_to_f64::<S>(simd, sum_re, &mut sums.0[part.clone()]);
                    T::add_to_f64::<S>(simd, sum_im, &mut sums.1[part]);
                    first = end;
                }
            }
        }
    }
    let mut out = Vec::with_capacity(batch * range.len());
    for b in 0..batch {
        for (i, m) in range.clone().enumerate() {
            let middle = unit(-columns.axis.k(job.trajectory, m) * columns.centre());
            let sum = Complex::new(sums.0[b * width + i], sums.1[b * width + i]);
            out.push(from_f64(sum * middle));
        }
    }
    Ok(out)
}

/// cos and sin of X, `[strip][column][sample]`. Errors: memory.
#[inline(always)]
fn column_phases<S: Simd, T: SimdReal>(
    simd: S,
    columns: &Columns,
    steps: &[f64],
    strip: usize,
) -> Result<Vec<T>> {
    let mut x = zeroed::<T>("phases of columns", voxels(&[columns.len(), steps.len()])?)?;
    by_sample(
        simd,
        steps,
        columns.start,
        columns.cos,
        #[inline(always)]
        |j, m, re, im| {
            let start = m / strip * columns.len() * strip + m % strip;
            T::store_f64s::<S>(re, &mut x[start + j * strip..][..S::f64s::LEN]);
            if let Some(sine) = columns.sine(j) {
                T::store_f64s::<S>(im, &mut x[start + sine * strip..][..S::f64s::LEN]);
            }
        },
    );
    Ok(x)
}
