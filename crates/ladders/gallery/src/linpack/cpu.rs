use rayon::prelude::*;
use rayspin_core::{Result, voxels};
use rayspin_device::Cpu;
use rayspin_device::cpu::simd::prelude::*;
use rayspin_device::cpu::simd::{Level, Simd, dispatch};
use rayspin_device::cpu::zeroed;

/// Numbers a task of SAXPY.
const CHUNK: usize = 1 << 14;
/// Columns that are eliminated before the rest of the matrix is updated.
const PANEL: usize = 64;
/// Columns that are eliminated before the rest of their panel is updated: a cache line of a row.
const STRIP: usize = 8;
/// Columns of a packed panel at most: two of the widest vectors.
const WIDEST: usize = 16;
/// Rows of a task of the update; all heights of micro-kernels divide it.
const ROWS: usize = 64;

pub(super) fn saxpy_scalar(a: f32, x: &[f32], y: &[f32], z: &mut [f32]) {
    for ((x, y), z) in x.iter().zip(y).zip(z) {
        *z = a * x + y;
    }
}

pub(super) fn saxpy_simd(level: Level, a: f32, x: &[f32], y: &[f32], z: &mut [f32]) {
    #[inline(always)]
    fn body<S: Simd>(_: S, a: f32, x: &[f32], y: &[f32], z: &mut [f32]) {
        saxpy_scalar(a, x, y, z);
    }
    dispatch!(level, simd => body(simd, a, x, y, z));
}

pub(super) fn saxpy_threads(cpu: &Cpu, a: f32, x: &[f32], y: &[f32], z: &mut [f32]) {
    let level = cpu.level();
    cpu.run(|| {
        (x.par_chunks(CHUNK), y.par_chunks(CHUNK), z.par_chunks_mut(CHUNK))
            .into_par_iter()
            .for_each(|(x, y, z)| saxpy_simd(level, a, x, y, z));
    });
}

/// A column after another, each step over all of the matrix that is left.
pub(super) fn plain(n: usize, a: &mut [f64], pivots: &mut [i32]) {
    for k in 0..n {
        pivot(n, a, pivots, k);
        let (above, below) = a.split_at_mut((k + 1) * n);
        let row = &above[k * n..];
        for other in below.chunks_exact_mut(n) {
            eliminate(&row[k..], &mut other[k..]);
        }
    }
}

/// Finds the pivot of step k and changes rows.
fn pivot(n: usize, a: &mut [f64], pivots: &mut [i32], k: usize) {
    let mut best = k;
    for i in k + 1..n {
        if a[i * n + k].abs() > a[best * n + k].abs() {
            best = i;
        }
    }
    pivots[k] = best as i32;
    if best != k {
        let (above, below) = a.split_at_mut(best * n);
        above[k * n..(k + 1) * n].swap_with_slice(&mut below[..n]);
    }
}

/// other −= l · row, where l, which takes the first number's place, makes that number 0.
#[inline(always)]
fn eliminate(row: &[f64], other: &mut [f64]) {
    let l = other[0] / row[0];
    other[0] = l;
    for (other, u) in other[1..].iter_mut().zip(&row[1..]) {
        *other -= l * u;
    }
}

/// Rows of U of a panel in the order in which the update reads them.
pub(super) struct Room {
    u: Vec<f64>,
}

impl Room {
    /// Errors: no memory.
    pub(super) fn new(n: usize) -> Result<Self> {
        Ok(Self { u: zeroed("packed rows of U", voxels(&[n.next_multiple_of(WIDEST), PANEL])?)? })
    }
}

/// Panels of columns. The matrix on the right of a panel is updated once for all columns of the panel, by
/// sums in registers. One thread does the work, or all threads of `cpu`.
pub(super) fn blocked(
    level: Level,
    cpu: Option<&Cpu>,
    n: usize,
    a: &mut [f64],
    pivots: &mut [i32],
    room: &mut Room,
) {
    let width = dispatch!(level, simd => width(simd));
    for first in (0..n).step_by(PANEL) {
        let end = (first + PANEL).min(n);
        for from in (first..end).step_by(STRIP) {
            let to = (from + STRIP).min(end);
            for k in from..to {
                pivot(n, a, pivots, k);
                let (above, below) = a.split_at_mut((k + 1) * n);
                let row = &above[k * n..][k..to];
                dispatch!(level, simd => step(simd, n, row, k, below));
            }
            // The rest of the panel: rows of U, then all rows below, each once for the strip.
            let (above, below) = a.split_at_mut(to * n);
            let strip = &mut above[from * n..];
            for i in 1..to - from {
                let (done, row) = strip.split_at_mut(i * n);
                dispatch!(level, simd => rest(simd, n, [from, from + i, to, end], done, &mut row[..n]));
            }
            let (strip, of_strip) = (&*strip, [from, to, to, end]);
            let below_strip = |rows: &mut [f64]| {
                let rows = rows.chunks_exact_mut(n);
                rows.for_each(|row| dispatch!(level, simd => rest(simd, n, of_strip, strip, row)));
            };
            match cpu {
                None => below_strip(below),
                Some(cpu) => cpu.run(|| below.par_chunks_mut(ROWS * n).for_each(below_strip)),
            }
        }
        if end == n {
            break;
        }
        let (above, below) = a.split_at_mut(end * n);
        let panel = &mut above[first * n..];
        // Rows of U: L⁻¹ times what is there, in packed panels of columns.
        let depth = end - first;
        let packed = &mut room.u[..(n - end).div_ceil(width) * width * depth];
        let rows = &*panel;
        let solve = |(index, u): (usize, &mut [f64])| {
            let from = end + index * width;
            let there = width.min(n - from);
            for (k, u) in u.chunks_exact_mut(width).enumerate() {
                u[..there].copy_from_slice(&rows[k * n + from..][..there]);
                u[there..].fill(0.0);
            }
            dispatch!(level, simd => triangle(simd, &rows[first..], n, width, u));
        };
        let pieces = width * depth;
        match cpu {
            None => packed.chunks_exact_mut(pieces).enumerate().for_each(solve),
            Some(cpu) => cpu.run(|| packed.par_chunks_exact_mut(pieces).enumerate().for_each(solve)),
        }
        let packed = &*packed;
        for (k, row) in panel.chunks_exact_mut(n).enumerate() {
            for (to, u) in row[end..].chunks_mut(width).zip(packed.chunks_exact(pieces)) {
                to.copy_from_slice(&u[k * width..][..to.len()]);
            }
        }
        let update = |rows: &mut [f64]| dispatch!(level, simd => update(simd, n, first..end, packed, rows));
        match cpu {
            None => below.chunks_mut(ROWS * n).for_each(update),
            Some(cpu) => cpu.run(|| below.par_chunks_mut(ROWS * n).for_each(update)),
        }
    }
}

#[inline(always)]
fn width<S: Simd>(_: S) -> usize {
    2 * S::f64s::LEN
}

/// Step k within a panel, whose columns `row` has.
#[inline(always)]
fn step<S: Simd>(_: S, n: usize, row: &[f64], k: usize, below: &mut [f64]) {
    for other in below.chunks_exact_mut(n) {
        eliminate(row, &mut other[k..k + row.len()]);
    }
}

/// The numbers of a row from column `begin` to `end`, less its numbers from column `from` to `to` times the
/// rows of U, which begin with row `from`.
#[inline(always)]
fn rest<S: Simd>(_: S, n: usize, [from, to, begin, end]: [usize; 4], u: &[f64], row: &mut [f64]) {
    let (left, right) = row.split_at_mut(begin);
    for (l, u) in left[from..to].iter().zip(u.chunks_exact(n)) {
        for (right, u) in right[..end - begin].iter_mut().zip(&u[begin..end]) {
            *right -= l * u;
        }
    }
}

/// u = L⁻¹ u for a packed panel of `width` columns; row k of L begins at `k · n` in `l`.
#[inline(always)]
fn triangle<S: Simd>(_: S, l: &[f64], n: usize, width: usize, u: &mut [f64]) {
    for k in 1..u.len() / width {
        let (done, row) = u.split_at_mut(k * width);
        for (j, done) in done.chunks_exact(width).enumerate() {
            let l = l[k * n + j];
            for (row, done) in row[..width].iter_mut().zip(done) {
                *row -= l * done;
            }
        }
    }
}

/// rows −= L U for rows below a panel.
#[inline(always)]
fn update<S: Simd>(simd: S, n: usize, panel: std::ops::Range<usize>, packed: &[f64], rows: &mut [f64]) {
    // Registers: 8 x 2 sums of 32, or 4 x 2 of 16.
    if 2 * S::f64s::LEN == WIDEST {
        update_by::<S, 8>(simd, n, panel, packed, rows);
    } else {
        update_by::<S, 4>(simd, n, panel, packed, rows);
    }
}

#[inline(always)]
fn update_by<S: Simd, const MR: usize>(
    simd: S,
    n: usize,
    panel: std::ops::Range<usize>,
    packed: &[f64],
    rows: &mut [f64],
) {
    let (depth, lanes) = (panel.len(), S::f64s::LEN);
    let width = 2 * lanes;
    // L of these rows, MR of them side by side.
    let mut l = [0.0; ROWS * PANEL];
    for (index, row) in rows.chunks_exact(n).enumerate() {
        for (k, &v) in row[panel.clone()].iter().enumerate() {
            l[(index / MR * depth + k) * MR + index % MR] = v;
        }
    }
    for (index, u) in packed.chunks_exact(width * depth).enumerate() {
        let from = panel.end + index * width;
        let there = width.min(n - from);
        for (l, rows) in l.chunks_exact(MR * depth).zip(rows.chunks_mut(MR * n)) {
            let mut sums = [[S::f64s::splat(simd, 0.0); 2]; MR];
            for (l, u) in l.chunks_exact(MR).zip(u.chunks_exact(width)) {
                let low = S::f64s::from_slice(simd, &u[..lanes]);
                let high = S::f64s::from_slice(simd, &u[lanes..]);
                for i in 0..MR {
                    let l = S::f64s::splat(simd, l[i]);
                    sums[i][0] = l.mul_add(low, sums[i][0]);
                    sums[i][1] = l.mul_add(high, sums[i][1]);
                }
            }
            for (i, row) in rows.chunks_exact_mut(n).enumerate() {
                let to = &mut row[from..from + there];
                if there == width {
                    let (low, high) = to.split_at_mut(lanes);
                    (S::f64s::from_slice(simd, low) - sums[i][0]).store_slice(low);
                    (S::f64s::from_slice(simd, high) - sums[i][1]).store_slice(high);
                } else {
                    let mut line = [0.0; WIDEST];
                    sums[i][0].store_slice(&mut line[..lanes]);
                    sums[i][1].store_slice(&mut line[lanes..width]);
                    to.iter_mut().zip(line).for_each(|(to, sum)| *to -= sum);
                }
            }
        }
    }
}
