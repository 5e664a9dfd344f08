//! Spreading and interpolation on all cores: slabs of tiles, each tile on its own padded grid.
#![allow(unsafe_code)]

pub(crate) mod group;
pub(crate) mod points;
pub(crate) mod records;
pub(crate) mod scalar;
mod scatter;
pub(crate) mod simd;
mod transform;

use fearless_simd_macros::simd;
use num_complex::Complex;
use rayon::prelude::*;
use rayspin_core::{Real, Result};
use rayspin_device::Cpu;
use rayspin_device::cpu::simd::{Level, Simd, dispatch};
use rayspin_device::cpu::{PoolLoop, Stop};

use super::coordinates::Coordinates;
use super::layout::{Layout, Part};
use points::Points;
pub(crate) use records::TilePoints;
use scatter::{Scatter, prefetch_read};

pub(crate) use transform::Engine;
/// The kernel's polynomials as the tile kernels read them.
#[derive(Debug)]
pub(crate) struct Weights<R> {
    pub(crate) dims: usize,
    pub(crate) width: usize,
    /// `[term][lane]`, highest power first, a lane a tap, zero beyond the last.
    pub(crate) taps: Vec<R>,
    /// Lanes of a term: whole vectors of any level.
    pub(crate) stride: usize,
}

impl<R: Real> Weights<R> {
    pub(crate) fn new(dims: usize, polynomials: &[Vec<f64>]) -> Self {
        let width = polynomials.first().map_or(0, Vec::len);
        let stride = width.next_multiple_of(2 * super::layout::lanes::<R>());
        let mut taps = Vec::with_capacity(stride * polynomials.len());
        for row in polynomials {
            taps.extend(row.iter().map(|&c| <R as Real>::from_f64(c)));
            taps.resize(taps.len().next_multiple_of(stride), R::zero());
        }
        Self { dims, width, taps, stride }
    }
}

/// Adds every point's footprint, times its value, to a local grid of interleaved complex numbers; rows and
/// layers are `pitch` = \[row, layer\] complex numbers apart.
pub(crate) type SpreadTile<R> =
    fn(Level, &Weights<R>, TilePoints<'_, R>, &[Complex<R>], &mut [R], pitch: [usize; 2]);

/// Every point's footprint-weighted sum of a local grid, to `values` in the points' order.
pub(crate) type InterpTile<R> =
    fn(Level, &Weights<R>, TilePoints<'_, R>, &[R], &mut [Complex<R>], pitch: [usize; 2]);

/// The plan's data for both directions.
#[derive(Debug)]
pub(crate) struct Gridding<R> {
    pub(crate) layout: Layout,
    pub(crate) points: Points<R>,
    pub(crate) weights: Weights<R>,
    pub(crate) parts: Vec<Part>,
}

/// The fine grid that points are spread onto.
pub(crate) struct Fine<'a, R> {
    pub(crate) grid: &'a mut [Complex<R>],
    /// Scratch: [`Gridding::halo_len`] elements.
    pub(crate) halo: &'a mut [Complex<R>],
    /// Whether to add to the grid's values instead of overwriting them.
    pub(crate) add: bool,
}

/// Elements of the buffers of all parts.
pub(crate) fn halo_len(layout: &Layout, parts: &[Part]) -> usize {
    parts.iter().map(|part| part_len(layout, part)).sum()
}

/// Layers of the outermost axis that a part keeps in its buffer: the halo, and the slab unless it is the
/// first.
fn part_len(layout: &Layout, part: &Part) -> usize {
    let own = if part.first { 0 } else { layout.slab_height(part.slab) };
    (own + layout.width - 1) * layout.inner()
}

/// Points that are gathered and spread together.
const RUN: usize = 128;

/// The points in runs of at most [`RUN`].
fn runs(points: std::ops::Range<usize>) -> impl Iterator<Item = std::ops::Range<usize>> {
    points.clone().step_by(RUN).map(move |first| first..(first + RUN).min(points.end))
}

/// Points of an interpolation task, about.
const INTERP_POINTS: usize = 8192;
/// Elements that one parallel task of a plain pass over memory should hold at least.
const PASS_ELEMENTS: usize = 1 << 14;

impl<R: Real> Gridding<R> {
    /// Parts of at most 1/16 of the points balance any trajectory over the cores of a workstation. Every
    /// further part of a slab fills and adds its own buffer. With parts of 1/32, spreading 1e6 points in 3-D
    /// took 10 to 20 % longer (benches/results/2026-11-22-xeon-2/nufft_tiles.txt). Below 2^15 points a part
    /// costs more than it saves.
    pub(crate) fn new(layout: Layout, points: Points<R>, weights: Weights<R>) -> Self {
        let parts = Self::parts_of(&layout, &points);
        Self { layout, points, weights, parts }
    }

    fn parts_of(layout: &Layout, points: &Points<R>) -> Vec<Part> {
        let slab_start: Vec<u32> = points.tile_start.iter().step_by(layout.slab_tiles()).copied().collect();
        layout.parts(&slab_start, Self::part_points(points.records.len()))
    }

    /// Replaces the points. Errors: as [`Points::sort`]; nothing changes then.
    pub(crate) fn set_points(&mut self, cpu: &Cpu, points: &Coordinates<'_>, matrix: &[usize]) -> Result<()> {
        self.points.sort(cpu.level(), cpu.threads(), &self.layout, points, matrix)?;
        self.parts = Self::parts_of(&self.layout, &self.points);
        Ok(())
    }

    /// Points of a part, about.
    pub(crate) fn part_points(points: usize) -> usize {
        points.div_ceil(16).max(1 << 15)
    }

    /// Elements of the buffers that [`Gridding::spread`] needs besides the fine grid.
    pub(crate) fn halo_len(&self) -> usize {
        halo_len(&self.layout, &self.parts)
    }

    fn part_len(&self, part: &Part) -> usize {
        part_len(&self.layout, part)
    }

    fn tile_points(&self, share: std::ops::Range<usize>) -> TilePoints<'_, R> {
        self.points.records.get(share)
    }

    fn pitch(&self) -> [usize; 2] {
        [self.layout.local[2], self.layout.local[1] * self.layout.local[2]]
    }

    /// grid\[l\] = Σ_j samples\[j\] φ(l − u_j), periodic.
    ///
    /// Each grid cell's sum is taken in an order that depends on the trajectory alone, so results do not vary
    /// from run to run or with the number of threads.
    pub(crate) fn spread(
        &self,
        cpu: &Cpu,
        samples: &[Complex<R>],
        fine: Fine<'_, R>,
        tile_kernel: SpreadTile<R>,
    ) {
        let Fine { grid, halo, add } = fine;
        let layout = &self.layout;
        let tasks: Vec<_> = self.parts.iter().zip(self.slabs(grid, halo)).collect();
        let (level, stop) = (cpu.level(), Stop::of_caller());
        cpu.run(|| {
            tasks.into_par_iter().with_max_len(1).each_with(
                || (Aligned::new(2 * layout.local_len()), Vec::new()),
                |(local, values), (part, mut slab)| {
                    let local = local.get();
                    if !(add && part.first) {
                        slab.own.fill(zero());
                    }
                    slab.halo.fill(zero());
                    let tiles = self.points.tiles_of(part.points.clone());
                    for (tile, share) in tiles.take_while(|_| !stop.is_set()) {
                        local.fill(R::zero());
                        for run in runs(share) {
                            // Samples lie anywhere in memory. The next run's samples are prefetched while
                            // this run is spread.
                            let next = run.end..(run.end + RUN).min(part.points.end);
                            for sample in self.tile_points(next).samples() {
                                prefetch_read(samples, sample);
                            }
                            // Samples are gathered before spreading. The processor overlaps the cache misses
                            // of many loads in a row, but not across the long work on a footprint.
                            values.clear();
                            let points = self.tile_points(run);
                            values.extend(points.samples().map(|sample| samples[sample]));
                            tile_kernel(level, &self.weights, points, values, local, self.pitch());
                        }
                        dispatch!(level, simd => add_tile(simd, &mut slab, layout, tile, bytemuck::cast_slice(local)));
                    }
                },
            );
        });
        cpu.run(|| self.add_buffers(level, grid, halo));
    }

    /// The part of the grid or of the buffers to which each part adds its tiles.
    fn slabs<'a>(&self, grid: &'a mut [Complex<R>], halo: &'a mut [Complex<R>]) -> Vec<Slab<'a, R>> {
        let inner = self.layout.inner();
        let (mut rest, mut spare) = (grid, halo);
        let slab = |part: &Part| {
            let (buffer, after) = std::mem::take(&mut spare).split_at_mut(self.part_len(part));
            spare = after;
            let own = self.layout.slab_height(part.slab) * inner;
            if part.first {
                let (own, after) = std::mem::take(&mut rest).split_at_mut(own);
                rest = after;
                Slab { own, halo: buffer, inner }
            } else {
                let (own, halo) = buffer.split_at_mut(own);
                Slab { own, halo, inner }
            }
        };
        self.parts.iter().map(slab).collect()
    }

    /// Adds the parts' buffers to their slabs.
    fn add_buffers(&self, level: Level, grid: &mut [Complex<R>], halo: &[Complex<R>]) {
        let layout = &self.layout;
        let (inner, slabs, reach) = (layout.inner(), layout.slabs(), layout.width - 1);
        let mut buffers: Vec<(&Part, &[Complex<R>])> = Vec::with_capacity(self.parts.len());
        let mut spare = halo;
        for part in &self.parts {
            let (buffer, after) = spare.split_at(self.part_len(part));
            buffers.push((part, buffer));
            spare = after;
        }
        let mut slices = Vec::with_capacity(slabs);
        let mut rest = grid;
        for s in 0..slabs {
            let (own, after) = rest.split_at_mut(layout.slab_height(s) * inner);
            slices.push((s, own));
            rest = after;
        }
        slices.into_par_iter().with_max_len(1).each(|(s, own)| {
            let before = (s + slabs - 1) % slabs;
            for (part, buffer) in &buffers {
                let (slab_part, halo_part) = buffer.split_at(buffer.len() - reach * inner);
                if part.slab == before && !part.points.is_empty() {
                    dispatch!(level, simd => add_layers(simd, &mut own[..reach * inner], halo_part));
                }
                if part.slab == s && !part.first {
                    dispatch!(level, simd => add_layers(simd, &mut *own, slab_part));
                }
            }
        });
    }

    /// samples\[j\] = Σ_l grid\[l\] φ(l − u_j), periodic: the transpose of [`Gridding::spread`].
    pub(crate) fn interp(
        &self,
        cpu: &Cpu,
        grid: &[Complex<R>],
        samples: &mut [Complex<R>],
        tile_kernel: InterpTile<R>,
    ) {
        let layout = &self.layout;
        let (level, stop) = (cpu.level(), Stop::of_caller());
        let total = self.points.records.len();
        assert_eq!(samples.len(), total);
        let scatter = Scatter::new(samples);
        cpu.run(|| {
            (0..total.div_ceil(INTERP_POINTS)).into_par_iter().with_max_len(1).each_with(
                || (Aligned::new(2 * layout.local_len()), Vec::new()),
                |(local, values), task| {
                    let local = local.get();
                    let points = task * INTERP_POINTS..((task + 1) * INTERP_POINTS).min(total);
                    for (tile, share) in self.points.tiles_of(points).take_while(|_| !stop.is_set()) {
                        read_tile(layout, tile, grid, bytemuck::cast_slice_mut(local));
                        values.clear();
                        values.resize(share.len(), zero());
                        let points = self.tile_points(share);
                        tile_kernel(level, &self.weights, points, local, values, self.pitch());
                        for (sample, &value) in points.samples().zip(values.iter()) {
                            // SAFETY: each sample is a point once by construction ([`Points`]) and tasks'
                            // runs of points are disjoint.
                            unsafe { scatter.write(sample, value) };
                        }
                    }
                },
            );
        });
    }
}

/// A buffer whose first element begins a cache line.
struct Aligned<R> {
    buffer: Vec<R>,
    skip: usize,
    len: usize,
}

impl<R: Real> Aligned<R> {
    fn new(len: usize) -> Self {
        let line = 64 / size_of::<R>();
        let buffer = vec![R::zero(); len + line];
        let skip = buffer.as_ptr().align_offset(64).min(line);
        Self { buffer, skip, len }
    }

    fn get(&mut self) -> &mut [R] {
        &mut self.buffer[self.skip..self.skip + self.len]
    }
}

fn zero<R: Real>() -> Complex<R> {
    Complex::new(R::zero(), R::zero())
}

#[inline(always)]
fn add<R: Real>(to: &mut [Complex<R>], from: &[Complex<R>]) {
    let to: &mut [R] = bytemuck::cast_slice_mut(to);
    let from: &[R] = bytemuck::cast_slice(from);
    for (t, f) in to.iter_mut().zip(from) {
        *t += *f;
    }
}

#[simd]
fn add_layers<S: Simd, R: Real>(_: S, to: &mut [Complex<R>], from: &[Complex<R>]) {
    add(to, from);
}

/// The part of the fine grid that a task adds tiles to: a slab's own layers and the halo behind them.
struct Slab<'a, R> {
    own: &'a mut [Complex<R>],
    halo: &'a mut [Complex<R>],
    inner: usize,
}

impl<R: Real> Slab<'_, R> {
    #[inline(always)]
    fn layer(&mut self, outer: usize) -> &mut [Complex<R>] {
        let start = outer * self.inner;
        if start < self.own.len() {
            &mut self.own[start..start + self.inner]
        } else {
            let start = start - self.own.len();
            &mut self.halo[start..start + self.inner]
        }
    }
}

/// Adds a tile and its halo to the fine grid.
#[simd]
fn add_tile<S: Simd, R: Real>(
    _: S,
    slab: &mut Slab<'_, R>,
    layout: &Layout,
    tile: usize,
    local: &[Complex<R>],
) {
    let (first, extent) = layout.tile_box(tile);
    let [_, ny, nx] = layout.fine;
    let [_, ly, lx] = layout.local;
    if layout.dims == 1 {
        let own = slab.own.len();
        add(slab.own, &local[..own]);
        add(slab.halo, &local[own..extent[2]]);
        return;
    }
    for z in 0..extent[0] {
        for y in 0..extent[1] {
            let (outer, row) = match layout.dims {
                2 => (y, 0),
                _ => (z, (first[1] + y) % ny),
            };
            let row = &mut slab.layer(outer)[row * nx..(row + 1) * nx];
            let from = &local[(z * ly + y) * lx..][..extent[2]];
            let until_edge = (nx - first[2]).min(extent[2]);
            add(&mut row[first[2]..first[2] + until_edge], &from[..until_edge]);
            add(row, &from[until_edge..]);
        }
    }
}

/// Copies a tile and its halo from the fine grid; the row padding behind it is left as it is (weights there
/// are zero).
fn read_tile<R: Real>(layout: &Layout, tile: usize, grid: &[Complex<R>], local: &mut [Complex<R>]) {
    let (first, extent) = layout.tile_box(tile);
    let [nz, ny, nx] = layout.fine;
    let [_, ly, lx] = layout.local;
    for z in 0..extent[0] {
        for y in 0..extent[1] {
            let start = ((first[0] + z) % nz * ny + (first[1] + y) % ny) * nx;
            let row = &grid[start..start + nx];
            let to = &mut local[(z * ly + y) * lx..][..extent[2]];
            let until_edge = (nx - first[2]).min(extent[2]);
            to[..until_edge].copy_from_slice(&row[first[2]..first[2] + until_edge]);
            let wrapped = extent[2] - until_edge;
            to[until_edge..].copy_from_slice(&row[..wrapped]);
        }
    }
}

/// Elements a task for passes over `len` elements.
pub(crate) fn pass_rows(row: usize) -> usize {
    (PASS_ELEMENTS / row.max(1)).max(1)
}
