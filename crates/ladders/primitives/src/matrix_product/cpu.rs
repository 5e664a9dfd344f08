use rayon::prelude::*;
use rayspin_core::{Result, voxels};
use rayspin_device::Cpu;
use rayspin_device::cpu::simd::prelude::*;
use rayspin_device::cpu::simd::{Level, Simd, dispatch};
use rayspin_device::cpu::zeroed;

use super::Problem;

/// Columns of the widest panel of B: two of the widest vectors.
const WIDEST: usize = 32;
/// What all heights of panels of A divide.
const HEIGHT: usize = 12;
/// Side of the tiles of the plain tiled variant: three of them in f32 are 48 KB.
const TILE: usize = 64;

pub(super) fn naive(a: &[f32], b: &[f32], c: &mut [f32], p: Problem) {
    for (i, c) in c.chunks_exact_mut(p.n).enumerate() {
        for (j, c) in c.iter_mut().enumerate() {
            let column = b.iter().skip(j).step_by(p.n);
            *c = a[i * p.k..(i + 1) * p.k].iter().zip(column).map(|(a, b)| a * b).sum();
        }
    }
}

pub(super) fn interchanged(a: &[f32], b: &[f32], c: &mut [f32], p: Problem) {
    c.fill(0.0);
    for (a, c) in a.chunks_exact(p.k).zip(c.chunks_exact_mut(p.n)) {
        for (a, b) in a.iter().zip(b.chunks_exact(p.n)) {
            add_scaled(*a, b, c);
        }
    }
}

pub(super) fn tiled(a: &[f32], b: &[f32], c: &mut [f32], p: Problem) {
    c.fill(0.0);
    for from in (0..p.k).step_by(TILE) {
        let inner = from..(from + TILE).min(p.k);
        for first in (0..p.n).step_by(TILE) {
            let columns = first..(first + TILE).min(p.n);
            for (a, c) in a.chunks_exact(p.k).zip(c.chunks_exact_mut(p.n)) {
                for k in inner.clone() {
                    add_scaled(a[k], &b[k * p.n..][columns.clone()], &mut c[columns.clone()]);
                }
            }
        }
    }
}

#[inline(always)]
fn add_scaled(scale: f32, b: &[f32], c: &mut [f32]) {
    for (c, b) in c.iter_mut().zip(b) {
        *c += scale * b;
    }
}

/// Copies of a slab of A and of B in the order in which they are read.
pub(super) struct Packed {
    a: Vec<f32>,
    b: Vec<f32>,
}

impl Packed {
    /// Room for slabs of at most `inner`. Errors: no memory.
    pub(super) fn new(p: Problem, inner: usize) -> Result<Self> {
        let inner = inner.min(p.k);
        let room = |side: usize, panel: usize| {
            zeroed("packed panels of a matrix product", voxels(&[side.next_multiple_of(panel), inner])?)
        };
        Ok(Self { a: room(p.m, HEIGHT)?, b: room(p.n, WIDEST)? })
    }
}

/// How the work is cut.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cut {
    /// Columns of A and rows of B at a time: a slab.
    pub(super) inner: usize,
    /// Rows of C of one task, a multiple of [`HEIGHT`].
    pub(super) rows: usize,
}

impl Cut {
    /// The cut of a configuration.
    pub(super) fn of(config: &rayspin_tune::Config) -> rayspin_core::Result<Self> {
        Ok(Self { inner: config.get("inner")? as usize, rows: config.get("rows")? as usize })
    }
}

impl Default for Cut {
    fn default() -> Self {
        Self { inner: 256, rows: 96 }
    }
}

/// One thread, or the threads of a CPU.
#[derive(Debug, Clone, Copy)]
pub(super) struct Workers<'a> {
    level: Level,
    cpu: Option<&'a Cpu>,
}

impl<'a> Workers<'a> {
    pub(super) fn one(level: Level) -> Self {
        Self { level, cpu: None }
    }

    pub(super) fn all(cpu: &'a Cpu) -> Self {
        Self { level: cpu.level(), cpu: Some(cpu) }
    }
}

/// A, B and C, and their sizes.
pub(super) struct Matrices<'a> {
    pub(super) a: &'a [f32],
    pub(super) b: &'a [f32],
    pub(super) c: &'a mut [f32],
    pub(super) p: Problem,
}

/// Panels of A and B packed, their outer products in registers.
pub(super) fn packed(workers: Workers<'_>, cut: Cut, room: &mut Packed, matrices: Matrices<'_>) {
    let Workers { level, cpu } = workers;
    let Matrices { a, b, c, p } = matrices;
    let slab = cut.inner.clamp(1, p.k.max(1));
    let width = dispatch!(level, simd => width(simd));
    let height = if width == WIDEST { HEIGHT } else { HEIGHT / 2 };
    // Small products are cut finer, so that every thread has some.
    let threads = cpu.map_or(1, Cpu::threads);
    let rows = p.m.div_ceil(2 * threads).next_multiple_of(HEIGHT).min(cut.rows.next_multiple_of(HEIGHT));
    if p.k == 0 {
        c.fill(0.0);
    }
    for from in (0..p.k).step_by(slab) {
        let inner = slab.min(p.k - from);
        let a_panels = &mut room.a[..p.m.next_multiple_of(height) * inner];
        let b_panels = &mut room.b[..p.n.next_multiple_of(width) * inner];
        let left = |(index, panel): (usize, &mut [f32])| pack_left(a, p, index * height, from, height, panel);
        let right = |(index, panel): (usize, &mut [f32])| pack_right(b, p, index * width, from, width, panel);
        match cpu {
            None => {
                a_panels.chunks_exact_mut(height * inner).enumerate().for_each(left);
                b_panels.chunks_exact_mut(width * inner).enumerate().for_each(right);
            }
            Some(cpu) => cpu.run(|| {
                a_panels.par_chunks_exact_mut(height * inner).enumerate().for_each(left);
                b_panels.par_chunks_exact_mut(width * inner).enumerate().for_each(right);
            }),
        }
        let (a_panels, b_panels) = (&*a_panels, &*b_panels);
        let task = |(index, c): (usize, &mut [f32])| {
            let slab = Panels { a: &a_panels[index * rows * inner..], b: b_panels, inner, first: from == 0 };
            dispatch!(level, simd => rows_of(simd, slab, c, p.n));
        };
        match cpu {
            None => c.chunks_mut(rows * p.n).enumerate().for_each(task),
            Some(cpu) => cpu.run(|| c.par_chunks_mut(rows * p.n).enumerate().for_each(task)),
        }
    }
}

#[inline(always)]
fn width<S: Simd>(_: S) -> usize {
    2 * S::f32s::LEN
}

/// Rows `row`… of A: for each column the panel's height of numbers, 0 below the last row.
fn pack_left(a: &[f32], p: Problem, row: usize, from: usize, height: usize, panel: &mut [f32]) {
    let inner = panel.len() / height;
    for i in 0..height {
        if row + i < p.m {
            let line = &a[(row + i) * p.k + from..][..inner];
            panel.iter_mut().skip(i).step_by(height).zip(line).for_each(|(to, &a)| *to = a);
        } else {
            panel.iter_mut().skip(i).step_by(height).for_each(|to| *to = 0.0);
        }
    }
}

/// Columns `column`… of B: for each row the panel's width of numbers, 0 behind the last column.
fn pack_right(b: &[f32], p: Problem, column: usize, from: usize, width: usize, panel: &mut [f32]) {
    let there = width.min(p.n - column);
    for (k, to) in panel.chunks_exact_mut(width).enumerate() {
        to[..there].copy_from_slice(&b[(from + k) * p.n + column..][..there]);
        to[there..].fill(0.0);
    }
}

/// Packed panels of a slab: columns of A, from some row on, and rows of B.
#[derive(Clone, Copy)]
struct Panels<'a> {
    a: &'a [f32],
    b: &'a [f32],
    inner: usize,
    /// Whether C holds nothing yet.
    first: bool,
}

/// Some rows of C from packed panels. A panel of B stays in the first-level cache while all of the rows pass
/// by.
#[inline(always)]
fn rows_of<S: Simd>(simd: S, slab: Panels<'_>, c: &mut [f32], n: usize) {
    // Registers: 12 × 2 sums of 32, or 6 × 2 of 16.
    if 2 * S::f32s::LEN == WIDEST {
        panels::<S, HEIGHT>(simd, slab, c, n);
    } else {
        panels::<S, { HEIGHT / 2 }>(simd, slab, c, n);
    }
}

#[inline(always)]
fn panels<S: Simd, const MR: usize>(simd: S, slab: Panels<'_>, c: &mut [f32], n: usize) {
    let Panels { a, b, inner, first } = slab;
    let lanes = S::f32s::LEN;
    let width = 2 * lanes;
    for (index, b) in b.chunks_exact(width * inner).enumerate() {
        let column = index * width;
        let there = width.min(n - column);
        for (c, a) in c.chunks_mut(MR * n).zip(a.chunks_exact(MR * inner)) {
            let sums = micro::<S, MR>(simd, a, b);
            for (c, [low, high]) in c.chunks_exact_mut(n).zip(sums) {
                let c = &mut c[column..column + there];
                if there == width {
                    let (to_low, to_high) = c.split_at_mut(lanes);
                    let (low, high) = if first {
                        (low, high)
                    } else {
                        (low + S::f32s::from_slice(simd, to_low), high + S::f32s::from_slice(simd, to_high))
                    };
                    low.store_slice(to_low);
                    high.store_slice(to_high);
                } else {
                    let mut line = [0.0; WIDEST];
                    low.store_slice(&mut line[..lanes]);
                    high.store_slice(&mut line[lanes..width]);
                    for (c, x) in c.iter_mut().zip(line) {
                        *c = if first { x } else { *c + x };
                    }
                }
            }
        }
    }
}

#[inline(always)]
fn micro<S: Simd, const MR: usize>(simd: S, a: &[f32], b: &[f32]) -> [[S::f32s; 2]; MR] {
    let lanes = S::f32s::LEN;
    let mut sums = [[S::f32s::splat(simd, 0.0); 2]; MR];
    for (a, b) in a.chunks_exact(MR).zip(b.chunks_exact(2 * lanes)) {
        let low = S::f32s::from_slice(simd, &b[..lanes]);
        let high = S::f32s::from_slice(simd, &b[lanes..]);
        for (sum, &a) in sums.iter_mut().zip(a) {
            let a = S::f32s::splat(simd, a);
            sum[0] = a.mul_add(low, sum[0]);
            sum[1] = a.mul_add(high, sum[1]);
        }
    }
    sums
}
