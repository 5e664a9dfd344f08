//! Several items of a batch at once. A cell of the local grid is one 256-bit vector that holds this cell of
//! every item. Kernel values are then computed once for all items, and vectors are full and never cross a
//! cache line.
#![allow(unsafe_code)]
#![allow(clippy::needless_range_loop)]

use fearless_simd_macros::simd;
use num_complex::Complex;
use rayon::prelude::*;
use rayspin_core::Real;
use rayspin_device::Cpu;
use rayspin_device::cpu::simd::prelude::*;
use rayspin_device::cpu::simd::{Level, Simd};
use rayspin_device::cpu::{PoolLoop, Stop};

use super::scatter::Scatter;
use super::simd::{Lanes, MOST_TAPS, Vector, load, store_taps, taps, token};
use super::{Aligned, Gridding, INTERP_POINTS, InterpTile, TilePoints, Weights, zero};
use crate::concrete::same;
use crate::nufft::layout::{Layout, lanes};

/// Items that are interpolated together: as many complex numbers as a vector holds, in 2-D only. In 3-D the
/// gain does not pay for as many fine grids in memory.
pub(crate) const fn items<R>(dims: usize) -> usize {
    if dims == 2 { lanes::<R>() / 2 } else { 1 }
}

/// Samples that are interleaved at a time.
const RUN: usize = 1 << 12;

/// The operations that differ between the two precisions.
pub(super) trait Grouped: Lanes {
    /// to\[item\]\[cell\] = from\[cell\]\[item\].
    fn write_rows<S: Simd>(simd: S, to: &mut [&mut [Complex<Self>]], from: &[Complex<Self>]);
    /// to\[cell\]\[item\] = from\[item\]\[cell\].
    fn read_rows<S: Simd>(simd: S, to: &mut [Complex<Self>], from: &[&[Complex<Self>]]);
}

/// The transpose of 4 × 4 complex numbers, its own inverse.
#[inline(always)]
fn transpose<S: Simd>(rows: [fearless_simd::f32x8<S>; 4]) -> [fearless_simd::f32x8<S>; 4] {
    let [a, b, c, d] = rows.map(
        #[inline(always)]
        |row| row.bitcast::<fearless_simd::f64x4<S>>(),
    );
    let (low, high) = (a.interleave(c), b.interleave(d));
    let (first, second) = (low.0.interleave(high.0), low.1.interleave(high.1));
    [first.0.bitcast(), first.1.bitcast(), second.0.bitcast(), second.1.bitcast()]
}

impl Grouped for f32 {
    #[inline(always)]
    fn write_rows<S: Simd>(simd: S, to: &mut [&mut [Complex<f32>]], from: &[Complex<f32>]) {
        let [a, b, c, d] = to else { return };
        let whole = a.len() / 4 * 4;
        let cells = from.chunks_exact(16);
        let tail = &from[4 * whole..];
        for (i, cells) in cells.enumerate().take(whole / 4) {
            let cells: &[f32] = bytemuck::cast_slice(cells);
            let cell = |c: usize| fearless_simd::f32x8::from_slice(simd, &cells[8 * c..8 * c + 8]);
            let rows = transpose([cell(0), cell(1), cell(2), cell(3)]);
            for (to, row) in [&mut **a, &mut **b, &mut **c, &mut **d].into_iter().zip(rows) {
                let to: &mut [f32] = bytemuck::cast_slice_mut(&mut to[4 * i..4 * i + 4]);
                row.store_slice(to);
            }
        }
        for (i, cell) in tail.chunks_exact(4).enumerate() {
            for (to, value) in [&mut **a, &mut **b, &mut **c, &mut **d].into_iter().zip(cell) {
                if let Some(to) = to.get_mut(whole + i) {
                    *to = *value;
                }
            }
        }
    }

    #[inline(always)]
    fn read_rows<S: Simd>(simd: S, to: &mut [Complex<f32>], from: &[&[Complex<f32>]]) {
        let [a, b, c, d] = from else { return };
        let whole = a.len() / 4 * 4;
        let (blocks, tail) = to.split_at_mut(4 * whole);
        for (i, to) in blocks.chunks_exact_mut(16).enumerate() {
            let row = |row: &[Complex<f32>]| {
                fearless_simd::f32x8::from_slice(simd, bytemuck::cast_slice(&row[4 * i..4 * i + 4]))
            };
            let cells = transpose([row(a), row(b), row(c), row(d)]);
            let to: &mut [f32] = bytemuck::cast_slice_mut(to);
            for (to, cell) in to.chunks_exact_mut(8).zip(cells) {
                cell.store_slice(to);
            }
        }
        for (i, to) in tail.chunks_exact_mut(4).enumerate() {
            for (to, row) in to.iter_mut().zip([a, b, c, d]) {
                if let Some(value) = row.get(whole + i) {
                    *to = *value;
                }
            }
        }
    }
}

impl Grouped for f64 {
    #[inline(always)]
    fn write_rows<S: Simd>(_: S, to: &mut [&mut [Complex<f64>]], from: &[Complex<f64>]) {
        let [a, b] = to else { return };
        for ((a, b), cell) in a.iter_mut().zip(b.iter_mut()).zip(from.as_chunks::<2>().0) {
            *a = cell[0];
            *b = cell[1];
        }
    }

    #[inline(always)]
    fn read_rows<S: Simd>(_: S, to: &mut [Complex<f64>], from: &[&[Complex<f64>]]) {
        let [a, b] = from else { return };
        for ((a, b), cell) in a.iter().zip(b.iter()).zip(to.as_chunks_mut::<2>().0) {
            *cell = [*a, *b];
        }
    }
}

#[simd]
fn interp_points<S: Simd, R: Lanes, const W: usize>(
    simd: S,
    weights: &Weights<R>,
    points: TilePoints<'_, R>,
    local: &[R],
    values: &mut [Complex<R>],
    pitch: [usize; 2],
) {
    let len = Vector::<S, R>::LEN;
    // Reals that the rows of a footprint span.
    let span = len * ((W - 1) * pitch[0] + W);
    let values: &mut [R] = bytemuck::cast_slice_mut(values);
    for (point, value) in points.of::<2>().iter().zip(values.chunks_exact_mut(len)) {
        let (start, z) = (len * point.cell as usize, point.z);
        let window = &local[start..start + span];
        let taps = taps::<S, Vector<S, R>, R, 2, W>(simd, weights, z);
        let mut values = [[R::zero(); MOST_TAPS]; 2];
        for d in 0..2 {
            store_taps::<S, Vector<S, R>, R, W>(&taps[d], &mut values[d]);
        }
        let [kx, ky] = values;
        let mut rows = [Vector::<S, R>::splat(simd, R::zero()); W];
        for dy in 0..W {
            let k = Vector::<S, R>::splat(simd, ky[dy]);
            for dx in 0..W {
                let start = len * (dy * pitch[0] + dx);
                // SAFETY: dx, dy < W, so at + LEN ≤ span, the length of the window.
                let cells = unsafe { load::<S, Vector<S, R>>(simd, window, start) };
                rows[dx] = cells.mul_add(k, rows[dx]);
            }
        }
        let mut total = rows[0] * kx[0];
        for dx in 1..W {
            total = rows[dx].mul_add(Vector::<S, R>::splat(simd, kx[dx]), total);
        }
        total.store_slice(value);
    }
}

fn interp_tile<R: Lanes, const W: usize>(
    level: Level,
    weights: &Weights<R>,
    points: TilePoints<'_, R>,
    local: &[R],
    values: &mut [Complex<R>],
    pitch: [usize; 2],
) {
    if let Some(simd) = token(level) {
        interp_points::<_, R, W>(simd, weights, points, local, values, pitch);
    }
}

#[simd]
fn write_rows<S: Simd, R: Grouped>(simd: S, to: &mut [&mut [Complex<R>]], from: &[Complex<R>]) {
    R::write_rows(simd, to, from);
}

#[simd]
fn read_rows<S: Simd, R: Grouped>(simd: S, to: &mut [Complex<R>], from: &[&[Complex<R>]]) {
    R::read_rows(simd, to, from);
}

fn write<R: Grouped>(level: Level, to: &mut [&mut [Complex<R>]], from: &[Complex<R>]) {
    if let Some(simd) = token(level) {
        write_rows(simd, to, from);
    }
}

fn read<R: Grouped>(level: Level, to: &mut [Complex<R>], from: &[&[Complex<R>]]) {
    if let Some(simd) = token(level) {
        read_rows(simd, to, from);
    }
}

/// From `[cell, item]` to rows of items.
type WriteRows<R> = fn(Level, &mut [&mut [Complex<R>]], &[Complex<R>]);
/// From rows of items to `[cell, item]`.
type ReadRows<R> = fn(Level, &mut [Complex<R>], &[&[Complex<R>]]);

/// The code that interpolates a group's tiles.
#[derive(Clone, Copy)]
pub(crate) struct Kernels<R: Real> {
    interp: InterpTile<R>,
    write: WriteRows<R>,
    read: ReadRows<R>,
}

macro_rules! kernels {
    ($name:ident, $real:ty, [$($w:literal)*]) => {
        fn $name(width: usize) -> Option<Kernels<$real>> {
            let interp: InterpTile<$real> = match width {
                $($w => interp_tile::<$real, $w>,)*
                _ => return None,
            };
            Some(Kernels { interp, write: write::<$real>, read: read::<$real> })
        }
    };
}

kernels!(kernels_f32, f32, [2 3 4 5 6 7 8 9 10]);
kernels!(kernels_f64, f64, [2 3 4 5 6 7 8 9 10 11 12 13 14 15 16]);

/// The code for a 2-D plan's width, if there is any for the level.
pub(crate) fn kernels<R: Real>(level: Level, weights: &Weights<R>) -> Option<Kernels<R>> {
    token(level)?;
    if weights.dims != 2 {
        return None;
    }
    let width = weights.width;
    same(kernels_f32(width)).flatten().or_else(|| same(kernels_f64(width)).flatten())
}

impl<R: Real> Gridding<R> {
    /// [`Gridding::interp`] of [`items`] items at once: `grids` is `[item, cell]`, `samples` `[item,
    /// sample]`, `interleaved` scratch of as many elements as `samples`.
    pub(crate) fn interp_group(
        &self,
        cpu: &Cpu,
        grids: &[Complex<R>],
        samples: &mut [Complex<R>],
        interleaved: &mut [Complex<R>],
        kernels: &Kernels<R>,
    ) {
        let (layout, level, items) = (&self.layout, cpu.level(), items::<R>(self.layout.dims));
        let stop = Stop::of_caller();
        let total = self.points.records.len();
        assert_eq!(samples.len(), items * total);
        let grids: Vec<&[Complex<R>]> = grids.chunks_exact(layout.cells()).collect();
        let scatter = Scatter::new(&mut *interleaved);
        cpu.run(|| {
            (0..total.div_ceil(INTERP_POINTS)).into_par_iter().with_max_len(1).each_with(
                || (Aligned::new(2 * items * layout.local_len()), Vec::new()),
                |(local, values), task| {
                    let local = local.get();
                    let points = task * INTERP_POINTS..((task + 1) * INTERP_POINTS).min(total);
                    for (tile, share) in self.points.tiles_of(points).take_while(|_| !stop.is_set()) {
                        read_tile(level, kernels, layout, tile, &grids, bytemuck::cast_slice_mut(local));
                        values.clear();
                        values.resize(items * share.len(), zero());
                        let points = self.tile_points(share);
                        (kernels.interp)(level, &self.weights, points, local, values, self.pitch());
                        for (sample, values) in points.samples().zip(values.chunks_exact(items)) {
                            for (item, &value) in values.iter().enumerate() {
                                // SAFETY: each sample is a point once by construction
                                // ([`super::points::Points`]), tasks' runs of points are disjoint, and so are
                                // items.
                                unsafe { scatter.write(items * sample + item, value) };
                            }
                        }
                    }
                },
            );
        });
        let mut runs: Vec<Vec<&mut [Complex<R>]>> = Vec::new();
        runs.resize_with(total.div_ceil(RUN), || Vec::with_capacity(items));
        for item in samples.chunks_exact_mut(total) {
            for (rows, row) in runs.iter_mut().zip(item.chunks_mut(RUN)) {
                rows.push(row);
            }
        }
        cpu.run(|| {
            let from = interleaved.par_chunks(items * RUN);
            runs.par_iter_mut().zip(from).each(|(rows, from)| (kernels.write)(level, rows, from));
        });
    }
}

/// Copies a tile and its halo from the fine grids.
fn read_tile<R: Real>(
    level: Level,
    kernels: &Kernels<R>,
    layout: &Layout,
    tile: usize,
    grids: &[&[Complex<R>]],
    local: &mut [Complex<R>],
) {
    let items = grids.len();
    let (first, extent) = layout.tile_box(tile);
    let [_, ny, nx] = layout.fine;
    let until_edge = (nx - first[2]).min(extent[2]);
    for y in 0..extent[1] {
        let row = (first[1] + y) % ny * nx;
        let to = &mut local[items * y * layout.local[2]..][..items * extent[2]];
        let (inside, wrapped) = to.split_at_mut(items * until_edge);
        let rows = |x: usize, cells: usize| -> Vec<&[Complex<R>]> {
            grids.iter().map(|grid| &grid[row + x..][..cells]).collect()
        };
        (kernels.read)(level, inside, &rows(first[2], until_edge));
        (kernels.read)(level, wrapped, &rows(0, extent[2] - until_edge));
    }
}
