use num_complex::Complex;
use rayon::prelude::*;
use rayspin_core::{Result, Trajectory, voxels};
use rayspin_device::cpu::simd::prelude::*;
use rayspin_device::cpu::simd::{Lanes, Simd, SimdReal, complex_mul, dispatch};
use rayspin_device::cpu::{Stop, expect_memory, zeroed};

use super::{Split, from_f64, to_f64, unit};
use crate::nudft::cpu::gemm::{ACROSS, PARTS, ROWS, tile};
use crate::nudft::cpu::phases::{Columns, Fold, by_column, lanes, steps};
use crate::nudft::grid::Grid;
use crate::nudft::tune::Host;

/// The most samples of a panel; a multiple of every vector length.
const LONGEST: usize = 512;
/// Elements of a row of a tile: rows begin at different places of a first-level cache.
const ROW: usize = LONGEST + 16;
/// Panels made at once for all rows.
const PANELS: usize = 8;

/// Samples of a panel, which are summed in working precision before they are added to a double-precision sum.
/// A tile's part of them and a strip of columns share a first-level cache. Also the number rounded up to
/// whole vectors.
fn depth<T>(cpu: &Host<'_>) -> (usize, usize) {
    let samples = cpu.cut.samples.clamp(64, LONGEST).next_multiple_of(64);
    (samples * size_of::<f32>() / size_of::<T>(), samples)
}

/// Everything that rows need of the samples of a panel.
struct Panel<T> {
    /// How many samples there are.
    used: usize,
    /// cos and sin of X, `[strip][sample][column]`.
    columns: Vec<T>,
    /// Y and Z, `[point][sample]`.
    y: Split<T>,
    z: Split<T>,
    /// d times the phase of the middle of x, `[batch][sample]`.
    d: Split<T>,
}

pub(super) fn adjoint<T: SimdReal>(
    cpu: &Host<'_>,
    trajectory: &Trajectory,
    grid: &Grid,
    samples: &[Complex<T>],
    image: &mut [Complex<T>],
    fold: Fold,
) -> Result<()> {
    let (count, level, batch) = (trajectory.samples(), cpu.level(), grid.batch(image.len()));
    let columns = Columns::new(grid.axes[2], fold);
    let job = Job { trajectory, grid, columns: &columns, samples };
    let strip = ACROSS * lanes::<T>(level);
    let width = columns.len().next_multiple_of(strip);
    let row = columns.axis.count;
    let tiles = (batch * grid.rows()).div_ceil(ROWS);
    let a_task = (cpu.cut.sums / (PARTS * width)).clamp(1, tiles.div_ceil(4 * cpu.threads()).max(1));
    let (depth, room) = depth::<T>(cpu);
    let panels = count.div_ceil(depth).min(PANELS);
    let panel = |_| {
        Ok(Panel {
            used: 0,
            columns: zeroed("phases of columns", voxels(&[width, room])?)?,
            y: Split::new(grid.axes[1].count, room)?,
            z: Split::new(grid.axes[0].count, room)?,
            d: Split::new(batch, room)?,
        })
    };
    let mut panels = (0..panels).map(panel).collect::<Result<Vec<Panel<T>>>>()?;
    // The buffers in which a thread sums its rows.
    let sums = (size_of::<f64>() * PARTS * width) as u64;
    expect_memory("sums of rows", sums.saturating_mul((a_task * cpu.threads().min(tiles)) as u64))?;
    for first in (0..count).step_by(PANELS * depth) {
        let used = (count - first).div_ceil(depth).min(PANELS);
        let panels = &mut panels[..used];
        let stop = Stop::of_caller();
        cpu.run(|| {
            panels.par_iter_mut().enumerate().for_each(|(p, panel)| {
                let start = first + p * depth;
                let range = start..(start + depth).min(count);
                dispatch!(level, simd => fill(simd, job, panel, range));
            });
            let tasks = image.par_chunks_mut(a_task * ROWS * row).enumerate();
            tasks.filter(|_| !stop.is_set()).for_each(|(task, out)| {
                let rows = Rows { grid, first: task * a_task * ROWS, total: batch * grid.rows() };
                dispatch!(level, simd => sum_rows(simd, panels, &columns, rows, first > 0, out));
            });
        });
        stop.check()?;
    }
    Ok(())
}

#[derive(Clone, Copy)]
struct Job<'a, T> {
    trajectory: &'a Trajectory,
    grid: &'a Grid,
    columns: &'a Columns,
    samples: &'a [Complex<T>],
}

/// Makes a panel of the samples of `range`.
#[inline(always)]
fn fill<S: Simd, T: SimdReal>(simd: S, job: Job<'_, T>, panel: &mut Panel<T>, range: std::ops::Range<usize>) {
    let Job { trajectory, grid, columns, samples } = job;
    panel.used = range.len();
    let padded = range.len().next_multiple_of(Lanes::<S, T>::LEN);
    let axis_steps = grid.axes.map(|axis| steps(&axis, trajectory, range.clone(), padded));
    by_column::<S, T>(simd, columns, &axis_steps[2][..range.len()], panel.d.width, &mut panel.columns);
    panel.z.fill_phases(simd, &grid.axes[0], &axis_steps[0]);
    panel.y.fill_phases(simd, &grid.axes[1], &axis_steps[1]);
    let count = trajectory.samples();
    for (i, m) in range.enumerate() {
        let middle = unit(columns.axis.k(trajectory, m) * columns.centre());
        for (b, d) in samples.chunks_exact(count).enumerate() {
            let d = from_f64::<T>(to_f64(d[m]) * middle);
            let index = b * panel.d.width + i;
            (panel.d.re[index], panel.d.im[index]) = (d.re, d.im);
        }
    }
}

/// Rows `first..total` of `[batch, z, y]`, in flat order.
#[derive(Clone, Copy)]
struct Rows<'a> {
    grid: &'a Grid,
    first: usize,
    total: usize,
}

impl Rows<'_> {
    /// Batch, z and y of a row.
    #[inline(always)]
    fn at(&self, row: usize) -> (usize, usize, usize) {
        let (rows, ny) = (self.grid.rows(), self.grid.axes[1].count);
        (row / rows, row % rows / ny, row % ny)
    }
}

#[inline(always)]
fn sum_rows<S: Simd, T: SimdReal>(
    simd: S,
    panels: &[Panel<T>],
    columns: &Columns,
    rows: Rows<'_>,
    add: bool,
    out: &mut [Complex<T>],
) {
    let strip = ACROSS * Lanes::<S, T>::LEN;
    let width = columns.len().next_multiple_of(strip);
    let row = columns.axis.count;
    let tiles = (out.len() / row).div_ceil(ROWS);
    let mut sums = vec![0.0; tiles * PARTS * width];
    let mut a = [[T::zero(); ROW]; PARTS];
    for panel in panels {
        for (t, sums) in sums.chunks_exact_mut(PARTS * width).enumerate() {
            pack(simd, panel, rows, rows.first + t * ROWS, &mut a);
            for (s, b) in panel.columns.chunks_exact(panel.d.width * strip).enumerate() {
                tile::<S, T>(
                    simd,
                    #[inline(always)]
                    |k, r| a[r][k],
                    &b[..panel.used * strip],
                    #[inline(always)]
                    |r, c| {
                        let sums = &mut sums[r * width + s * strip..][..strip];
                        for (c, sums) in c.into_iter().zip(sums.chunks_exact_mut(Lanes::<S, T>::LEN)) {
                            T::add_to_f64::<S>(simd, c, sums);
                        }
                    },
                );
            }
        }
    }
    for (r, out) in out.chunks_exact_mut(row).enumerate() {
        let start = (r / ROWS * PARTS + r % ROWS) * width;
        let (re, im) = (&sums[start..start + width], &sums[start + ROWS * width..start + (ROWS + 1) * width]);
        unfold(columns, re, im, |i, sum| {
            let sum = from_f64::<T>(sum);
            out[i] = if add { out[i] + sum } else { sum };
        });
    }
}

/// A\[part, m\] = d_m Z_m(z) Y_m(y) of [`ROWS`] rows from `first` on; zero past the last row.
#[inline(always)]
fn pack<S: Simd, T: SimdReal>(
    simd: S,
    panel: &Panel<T>,
    rows: Rows<'_>,
    first: usize,
    a: &mut [[T; ROW]; PARTS],
) {
    let lanes = Lanes::<S, T>::LEN;
    let (re, im) = a.split_at_mut(ROWS);
    for (r, (re, im)) in re.iter_mut().zip(im).enumerate() {
        if first + r >= rows.total {
            re.fill(T::zero());
            im.fill(T::zero());
            continue;
        }
        let (b, z, y) = rows.at(first + r);
        let parts = re.chunks_exact_mut(lanes).zip(im.chunks_exact_mut(lanes));
        for (m, (re, im)) in (0..panel.used).step_by(lanes).zip(parts) {
            let zy = complex_mul::<S, T>(panel.z.load(simd, z, m), panel.y.load(simd, y, m));
            let (a_re, a_im) = complex_mul::<S, T>(panel.d.load(simd, b, m), zy);
            a_re.store_slice(re);
            a_im.store_slice(im);
        }
    }
}

/// Computes the values of the points from the real products of a row. C and S are the products with cosine
/// and sine. The value at the point is (C_re − S_im) + i(S_re + C_im). The value at its mirror image is
/// (C_re + S_im) + i(C_im − S_re).
fn unfold(columns: &Columns, re: &[f64], im: &[f64], mut store: impl FnMut(usize, Complex<f64>)) {
    for j in 0..columns.cos {
        let (s_re, s_im) = columns.sine(j).map_or((0.0, 0.0), |s| (re[s], im[s]));
        let (plus, minus) = columns.points(j);
        store(plus, Complex::new(re[j] - s_im, s_re + im[j]));
        if let Some(minus) = minus {
            store(minus, Complex::new(re[j] + s_im, im[j] - s_re));
        }
    }
}
