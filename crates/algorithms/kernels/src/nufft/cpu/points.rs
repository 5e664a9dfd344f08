//! The points sorted by tile, and the places of their footprints. Both are computed once per trajectory.
#![allow(unsafe_code)]

use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use num_complex::Complex;
use rayon::prelude::*;
use rayspin_core::{Error, Real, Result, Trajectory};
use rayspin_device::cpu::PoolLoop;
use rayspin_device::cpu::simd::prelude::*;
use rayspin_device::cpu::simd::{Level, Simd, dispatch};

use super::records::{Point, Records};
use super::scatter::Scatter;
use crate::nufft::coordinates::{Coordinates, HostComponent, numbers_changed};
use crate::nufft::layout::Layout;

/// Points sorted by tile; within a tile in the order of the trajectory.
#[derive(Debug, PartialEq)]
pub(crate) struct Points<R> {
    pub(crate) records: Records<R>,
    /// First point of each tile, and the number of points at the end.
    pub(crate) tile_start: Vec<u32>,
}

/// Points that one step of sorting takes together. Their footprints fit the first-level cache.
const GROUP: usize = 256;
/// Bytes of a tile and its halo from which its points are sorted further: a few times the first-level cache.
const WALKED_BYTES: usize = 1 << 17;
/// Blocks of the trajectory a thread: the cores of a machine are seldom equally fast.
const BLOCKS: usize = 4;

impl<R: Real> Points<R> {
    /// No points.
    pub(crate) fn new() -> Self {
        Self { records: Records::new(), tile_start: vec![0] }
    }

    /// Replaces all points by these, sorted by tile, on the cores of the current pool, which has `threads`.
    ///
    /// Errors: more points than 2³² − 1; another number of components than the layout has; numbers that are
    /// not finite or not on the host; no memory. Nothing changes then. If another thread changes the numbers,
    /// an error may leave no points.
    pub(crate) fn sort(
        &mut self,
        level: Level,
        threads: usize,
        layout: &Layout,
        points: &Coordinates<'_>,
        matrix: &[usize],
    ) -> Result<()> {
        let (samples, dims) = (points.samples(), points.dims());
        if samples > u32::MAX as usize {
            return Err(Error::value("points", "fewer than 2^32", samples));
        }
        if dims != layout.dims {
            return Err(Error::shape("points", &[samples, layout.dims], &[samples, dims]));
        }
        match dims {
            1 => sort::<R, 1>(level, threads, layout, points, matrix, self),
            2 => sort::<R, 2>(level, threads, layout, points, matrix, self),
            _ => sort::<R, 3>(level, threads, layout, points, matrix, self),
        }
    }
}

impl<R: Real> Points<R> {
    /// The tiles that a run of points lies in, each with its share of the run.
    pub(crate) fn tiles_of(
        &self,
        points: std::ops::Range<usize>,
    ) -> impl Iterator<Item = (usize, std::ops::Range<usize>)> + '_ {
        let first = self.tile_start.partition_point(|&s| s as usize <= points.start) - 1;
        (first..self.tile_start.len() - 1)
            .map(move |tile| {
                let start = (self.tile_start[tile] as usize).max(points.start);
                let end = (self.tile_start[tile + 1] as usize).min(points.end);
                (tile, start..end.max(start))
            })
            .take_while(move |(_, share)| share.start < points.end)
            .filter(|(_, share)| !share.is_empty())
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> u64 {
        self.records.bytes() + size_of_val(self.tile_start.as_slice()) as u64
    }
}

/// A counting sort in two passes over the points. The first counts the points of each block in each tile, and
/// the second writes each point's record to its place. Both compute the footprints, which takes less time
/// than storing them.
fn sort<R: Real, const D: usize>(
    level: Level,
    threads: usize,
    layout: &Layout,
    points: &Coordinates<'_>,
    matrix: &[usize],
    to: &mut Points<R>,
) -> Result<()> {
    // In the order of the components x, y, z.
    let mut axes = Vec::with_capacity(D);
    for (d, component) in points.components().iter().enumerate() {
        let axis = Axis::new(layout, 2 - d, component.inverse(matrix[D - 1 - d]));
        axes.push((axis, component.on_host()?));
    }
    let axes = <&[_; D]>::try_from(&axes[..]).map_err(|_| Error::shape("points", &[D], &[axes.len()]))?;
    let (samples, tiles) = (points.samples(), layout.tiles.iter().product::<usize>());
    // Blocks cost a count of every tile each.
    let blocks = (BLOCKS * threads).min(samples / tiles.max(GROUP)).max(1);
    let block = samples.div_ceil(blocks).max(1);
    let part = |b: usize| b * block..((b + 1) * block).min(samples);
    let mut counts = vec![0u32; samples.div_ceil(block) * tiles];
    let finite = AtomicBool::new(true);
    counts.par_chunks_mut(tiles).enumerate().with_max_len(1).each_with(
        || Footprints::<R, D>::new(level, axes),
        |footprints, (b, counts)| {
            for group in groups(part(b)) {
                if !footprints.locate::<false>(group) {
                    return finite.store(false, Ordering::Relaxed);
                }
                for tile in footprints.tiles() {
                    counts[tile] += 1;
                }
            }
        },
    );
    if !finite.into_inner() {
        return Err(points.first_not_finite());
    }
    // From counts to the first place of every tile's points of every block.
    let mut tile_start = Vec::with_capacity(tiles + 1);
    let mut start = 0;
    for tile in 0..tiles {
        tile_start.push(start);
        for count in counts.iter_mut().skip(tile).step_by(tiles) {
            start += std::mem::replace(count, start);
        }
    }
    tile_start.push(start);
    // Another thread may change the memory of a caller meanwhile. Then the second pass finds other tiles than
    // the first.
    let (starts, changed) = (counts.clone(), AtomicBool::new(false));
    let write = |records: &mut [MaybeUninit<Point<R, D>>]| {
        let scatter = Scatter::new(records);
        let footprints = || Footprints::new(level, axes);
        let blocks = counts.par_chunks_mut(tiles).enumerate().with_max_len(1);
        blocks.each_with(footprints, |footprints, (b, next)| {
            for group in groups(part(b)) {
                write_group(group, footprints, next, &scatter);
            }
            if *next != *starts.chunks_exact(tiles).nth(b + 1).unwrap_or(&tile_start[1..]) {
                changed.store(true, Ordering::Relaxed);
            }
        });
        !changed.load(Ordering::Relaxed)
    };
    // SAFETY: the counts of all blocks and tiles divide all places between them, and each block has filled
    // its places of each tile if its next place is the first of the next block.
    if !unsafe { to.records.rewrite(samples, write) }? {
        to.tile_start = vec![0];
        return Err(numbers_changed());
    }
    to.tile_start = tile_start;
    if layout.dims == 3 && layout.local_len() * size_of::<Complex<R>>() > WALKED_BYTES {
        walk::<R, D>(layout, to);
    }
    Ok(())
}

/// Points in groups of at most [`GROUP`].
fn groups(points: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    points.clone().step_by(GROUP).map(move |first| first..(first + GROUP).min(points.end))
}

/// Sorts each tile's points along a Morton curve of blocks of 4³ cells. The next footprint then overlaps the
/// last ones, whose cells are still in the first-level cache.
fn walk<R: Real, const D: usize>(layout: &Layout, points: &mut Points<R>) {
    let [_, ly, lx] = layout.local;
    let axis = |cells: usize, first: u32| -> Vec<u32> {
        // Every third bit, from `first` on. Tiles are less than 64 cells long: four bits of blocks.
        let place = |cell: usize| {
            (0..4).map(|bit| ((((cell / 4) >> bit) & 1) as u32) << (3 * bit + first as usize)).sum()
        };
        (0..cells).map(place).collect()
    };
    let places = [axis(layout.local[0], 2), axis(ly, 1), axis(lx, 0)];
    let last: u32 = places.iter().filter_map(|axis| axis.iter().max()).sum();
    let mut rest = points.records.all_mut::<D>();
    let shares: Vec<&mut [Point<R, D>]> = points
        .tile_start
        .windows(2)
        .map(|bounds| rest.split_off_mut(..(bounds[1] - bounds[0]) as usize).unwrap_or_default())
        .collect();
    shares.into_par_iter().each_with(
        || (vec![0u32; last as usize + 2], Vec::new(), Vec::new()),
        |(starts, keys, sorted), share| {
            starts.fill(0);
            keys.clear();
            keys.extend(share.iter().map(|point| {
                let (row, x) = (point.cell / lx as u32, point.cell % lx as u32);
                let (z, y) = (row / ly as u32, row % ly as u32);
                let key = places[0][z as usize] | places[1][y as usize] | places[2][x as usize];
                starts[key as usize + 1] += 1;
                key
            }));
            for key in 1..starts.len() {
                starts[key] += starts[key - 1];
            }
            sorted.clear();
            sorted.extend_from_slice(share);
            for (key, point) in keys.iter().zip(&*sorted) {
                let place = &mut starts[*key as usize];
                share[*place as usize] = *point;
                *place += 1;
            }
        },
    );
}

/// Writes the records of a group of points to the `next` places of their tiles.
fn write_group<R: Real, const D: usize>(
    points: Range<usize>,
    footprints: &mut Footprints<'_, R, D>,
    next: &mut [u32],
    records: &Scatter<'_, MaybeUninit<Point<R, D>>>,
) {
    if !footprints.locate::<true>(points.clone()) {
        return;
    }
    let mut places = [0; GROUP];
    for (place, tile) in places.iter_mut().zip(footprints.tiles()) {
        *place = next[tile];
        next[tile] += 1;
        records.prefetch(*place as usize);
    }
    for ((sample, &place), (cell, z)) in (points.start as u32..).zip(&places).zip(footprints.places()) {
        let record = Point { sample, cell, z };
        // SAFETY: places are distinct: each block's points in a tile have a run of places of their own.
        unsafe { records.write(place as usize, MaybeUninit::new(record)) };
    }
}

/// First point of each slab of tiles once sorted, and the number of points at the end.
pub(crate) fn slab_starts(layout: &Layout, trajectory: &Trajectory, matrix: &[usize]) -> Vec<u32> {
    let axis = Axis::new(layout, layout.outer(), 1.0 / matrix[0] as f64);
    let none = || vec![0u32; layout.slabs() + 1];
    let points = trajectory.points();
    let parts = points.as_slice().unwrap_or_default().par_chunks(layout.dims << 16);
    let counted = parts.fold(none, |mut starts, points| {
        for point in points.chunks_exact(layout.dims) {
            let cycles = point[layout.dims - 1] * axis.inverse;
            let first = ((cycles - cycles.floor()) * axis.fine - axis.half).ceil();
            let first = if first < 0.0 { first + axis.fine } else { first };
            starts[axis.tile(first) + 1] += 1;
        }
        starts
    });
    let mut starts = counted.reduce(none, |mut starts, more| {
        starts.iter_mut().zip(more).for_each(|(start, more)| *start += more);
        starts
    });
    for slab in 1..starts.len() {
        starts[slab] += starts[slab - 1];
    }
    starts
}

/// How coordinates along one axis become cells and tiles.
///
/// All quotients are exact in double precision, since [`Layout`] keeps cells · tiles of an axis below 2⁵⁰: an
/// offset of half the least distance between two quotients is larger than what rounding changes.
struct Axis {
    /// Turns of the grid per number of a component.
    inverse: f64,
    /// Cells along the axis.
    fine: f64,
    half: f64,
    /// The tile of a cell is ⌊cell · tiles / fine⌋.
    tiles_per_cell: f64,
    tile_offset: f64,
    /// The first cell of a tile is ⌈tile · fine / tiles⌉.
    cells_per_tile: f64,
    cell_offset: f64,
    /// From one tile along the axis to the next, and from one cell of a local grid.
    tile_stride: f64,
    cell_stride: f64,
}

impl Axis {
    fn new(layout: &Layout, axis: usize, inverse: f64) -> Self {
        let (fine, tiles) = (layout.fine[axis] as f64, layout.tiles[axis] as f64);
        Self {
            inverse,
            fine,
            half: 0.5 * layout.width as f64,
            tiles_per_cell: tiles / fine,
            tile_offset: 0.5 / fine,
            cells_per_tile: fine / tiles,
            cell_offset: -0.5 / tiles,
            tile_stride: layout.tiles[axis + 1..].iter().product::<usize>() as f64,
            cell_stride: layout.local[axis + 1..].iter().product::<usize>() as f64,
        }
    }

    /// The tile of a cell.
    fn tile(&self, cell: f64) -> usize {
        (cell * self.tiles_per_cell + self.tile_offset) as usize
    }
}

/// 2⁵². The sum of a smaller natural number and this has that number in its lowest bits.
const BIAS: f64 = (1u64 << 52) as f64;

/// Where the footprints of a group of points lie. No vector of an array crosses a cache line.
#[repr(C, align(64))]
struct Footprints<'a, R, const D: usize> {
    /// Coordinates, then arguments of the polynomials, `[axis][point]`:
    /// z = 2(⌈u − W/2⌉ − (u − W/2)) − 1 ∈ \[−1, 1).
    numbers: [[f64; GROUP]; D],
    arguments: [[R; GROUP]; D],
    /// Flat indices of the tiles, and of the first cells in the tiles' local grids; both plus [`BIAS`].
    tiles: [f64; GROUP],
    cells: [f64; GROUP],
    level: Level,
    axes: &'a [(Axis, HostComponent<'a>); D],
    count: usize,
}

/// As many points are whole vectors at every level.
const WHOLE: usize = 8;

impl<'a, R: Real, const D: usize> Footprints<'a, R, D> {
    fn new(level: Level, axes: &'a [(Axis, HostComponent<'a>); D]) -> Self {
        let (numbers, arguments) = ([[0.0; GROUP]; D], [[R::zero(); GROUP]; D]);
        Self { level, axes, count: 0, numbers, arguments, tiles: [0.0; GROUP], cells: [0.0; GROUP] }
    }

    /// Locates at most [`GROUP`] points. Computes tiles alone without `RECORDS`. Returns whether all numbers
    /// are finite; otherwise the footprints are not to be used.
    fn locate<const RECORDS: bool>(&mut self, points: Range<usize>) -> bool {
        dispatch!(self.level, simd => locate::<_, R, D, RECORDS>(simd, self, points))
    }

    /// The tile of each point.
    fn tiles(&self) -> impl Iterator<Item = usize> + '_ {
        self.tiles[..self.count].iter().map(|tile| tile.to_bits() as u32 as usize)
    }

    /// First cell and arguments of the kernel's polynomials of each point.
    fn places(&self) -> impl Iterator<Item = (u32, [R; D])> + '_ {
        let cells = self.cells[..self.count].iter().enumerate();
        cells.map(|(i, cell)| (cell.to_bits() as u32, std::array::from_fn(|d| self.arguments[d][i])))
    }
}

#[inline(always)]
fn locate<S: Simd, R: Real, const D: usize, const RECORDS: bool>(
    simd: S,
    to: &mut Footprints<'_, R, D>,
    points: Range<usize>,
) -> bool {
    let len = S::f64s::LEN;
    let splat = |value| S::f64s::splat(simd, value);
    let (zero, two, minus_one, bias) = (splat(0.0), splat(2.0), splat(-1.0), splat(BIAS));
    to.count = points.len();
    let whole = to.count.next_multiple_of(WHOLE);
    for d in 0..D {
        to.axes[d].1.read(points.start, &mut to.numbers[d][..points.len()]);
        to.numbers[d][points.len()..whole].fill(0.0);
    }
    // The sum of products with zero is zero, or not a number if a factor is not finite.
    let mut products = zero;
    for first in (0..whole).step_by(len) {
        let (mut tiles, mut cells) = (bias, bias);
        for d in 0..D {
            let axis = &to.axes[d].0;
            let numbers = &mut to.numbers[d][first..first + len];
            let coordinate = S::f64s::from_slice(simd, numbers);
            products = coordinate.mul_add(zero, products);
            let cycles = coordinate * splat(axis.inverse);
            // u − W/2, with u ≤ the grid's length, so only the left border folds.
            let border = (cycles - cycles.floor()) * splat(axis.fine) - splat(axis.half);
            let cell = border.ceil();
            let folded = cell.simd_lt(zero).select(cell + splat(axis.fine), cell);
            let tile = folded.mul_add(splat(axis.tiles_per_cell), splat(axis.tile_offset)).floor();
            tiles = tile.mul_add(splat(axis.tile_stride), tiles);
            if RECORDS {
                let start = tile.mul_add(splat(axis.cells_per_tile), splat(axis.cell_offset)).ceil();
                cells = (folded - start).mul_add(splat(axis.cell_stride), cells);
                (cell - border).mul_add(two, minus_one).store_slice(numbers);
            }
        }
        tiles.store_slice(&mut to.tiles[first..first + len]);
        if RECORDS {
            cells.store_slice(&mut to.cells[first..first + len]);
        }
    }
    if RECORDS {
        for d in 0..D {
            for i in 0..whole {
                to.arguments[d][i] = <R as Real>::from_f64(to.numbers[d][i]);
            }
        }
    }
    let mut lanes = [0.0; WHOLE];
    products.store_slice(&mut lanes[..len]);
    lanes.iter().sum::<f64>() == 0.0
}

#[cfg(test)]
mod tests {
    use ndarray::Array2;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;
    use rayspin_device::cpu::simd::levels;

    use super::*;
    use crate::nufft::kernel::Kernel;

    /// Against the definition, point by point: every point once, in its tile, in the order of the trajectory,
    /// and offset plus z giving back where it lies on the grid.
    fn check(level: Level, threads: usize, matrix: &[usize], count: usize, width: usize) {
        let dims = matrix.len();
        let mut rng = ChaCha8Rng::seed_from_u64((count * width + dims) as u64);
        let edges = [0.0, -0.0, 0.5, -0.5, 1.0, -1.0, -1e-20, 1e-20, 0.5 - 1e-16, 12.25, -7.75, 1e17, -1e17];
        let k = Array2::from_shape_fn((count, dims), |(i, d)| {
            let n = matrix[dims - 1 - d] as f64;
            let edge = edges.get(i / (1 + d)).filter(|_| i.is_multiple_of(1 + d));
            n * edge.copied().unwrap_or_else(|| rng.random::<f64>() - 0.5)
        });
        let trajectory = Trajectory::from_cycles_per_fov(k).unwrap();
        let layout = Layout::new::<f64>(matrix, 2.0, &Kernel::new(width, 2.0)).unwrap();
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let mut points = Points::<f64>::new();
        pool.install(|| points.sort(level, threads, &layout, &(&trajectory).into(), matrix)).unwrap();
        assert_eq!(points.tile_start.len(), layout.tiles.iter().product::<usize>() + 1);
        assert_eq!(points.tile_start.last().copied(), Some(count as u32));
        let large = dims == 3 && 16 * layout.local_len() > WALKED_BYTES;
        let mut seen = vec![false; count];
        for (tile, places) in points.tile_start.windows(2).enumerate() {
            let (first, extent) = layout.tile_box(tile);
            let places = places[0] as usize..places[1] as usize;
            let tile_points = points.records.get(places);
            // Along the curve where tiles are large; among the points of a block in the trajectory's order.
            let order = tile_points.footprints().map(|(offset, _)| {
                let [ly, lx] = [layout.local[1], layout.local[2]];
                let block = [offset / (ly * lx), offset / lx % ly, offset % lx].map(|cell| cell / 4);
                let curve = (0..4).rev().flat_map(|bit| block.map(|axis| (axis >> bit) & 1));
                if large { curve.fold(0, |key, bit| 2 * key + bit) } else { 0 }
            });
            assert!(order.zip(tile_points.samples()).is_sorted(), "order within a tile");
            for (sample, (offset, z)) in tile_points.samples().zip(tile_points.footprints()) {
                assert!(!std::mem::replace(&mut seen[sample], true), "sample {sample} twice");
                let local = [
                    offset / (layout.local[1] * layout.local[2]),
                    offset / layout.local[2] % layout.local[1],
                    offset % layout.local[2],
                ];
                for d in 0..dims {
                    let axis = 2 - d;
                    assert!(local[axis] + width <= extent[axis], "footprint beyond the tile's halo");
                    let z = z[d];
                    assert!((-1.0..=1.0).contains(&z), "z = {z}");
                    // z = 2(first − u + W/2) − 1, so u = first + W/2 − (z + 1)/2.
                    let u = (first[axis] + local[axis]) as f64 + 0.5 * width as f64 - 0.5 * (z + 1.0);
                    let fine = layout.fine[axis] as f64;
                    let k = trajectory.points()[[sample, d]] / matrix[dims - 1 - d] as f64;
                    let away = (u - k.rem_euclid(1.0) * fine).rem_euclid(fine);
                    assert!(away.min(fine - away) < 1e-9, "sample {sample}, axis {d}: {away} cells away");
                }
            }
        }
        assert!(seen.iter().all(|&s| s));
    }

    /// Points in the first and the last cell of tiles, up to the longest axes.
    #[test]
    fn tiles_and_cells_are_those_of_the_layout() {
        for level in levels() {
            let long = [(1 << 20, 4), (3 << 27, 16), ((1 << 30) - 1, 5)];
            for (n, width) in (1..2000).map(|n| (n, 2 + n % 15)).chain(long) {
                let layout = Layout::new::<f64>(&[n], 2.0, &Kernel::new(width, 2.0)).unwrap();
                let (fine, tiles) = (layout.fine[2], layout.tiles[2]);
                let borders = (0..tiles).step_by(tiles.div_ceil(5000)).chain([tiles - 1]);
                let cells: Vec<_> = borders
                    .flat_map(|tile| {
                        [(tile, layout.tile_first(2, tile)), (tile, layout.tile_first(2, tile + 1) - 1)]
                    })
                    .collect();
                // A quarter of a cell before the first cell of the footprint.
                let coordinate = |i: usize| {
                    let u = cells[i].1 as f64 + 0.5 * width as f64 - 0.25;
                    u / fine as f64 * n as f64
                };
                let k = Array2::from_shape_fn((cells.len(), 1), |(i, _)| coordinate(i));
                let coordinates = Coordinates::rows("points", k.view()).unwrap();
                let mut points = Points::<f64>::new();
                points.sort(level, 1, &layout, &coordinates, &[n]).unwrap();
                for (tile, places) in points.tile_start.windows(2).enumerate() {
                    let points = points.records.get(places[0] as usize..places[1] as usize);
                    for (sample, (offset, _)) in points.samples().zip(points.footprints()) {
                        assert_eq!(
                            (tile, layout.tile_first(2, tile) + offset),
                            cells[sample],
                            "{fine} cells"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn every_point_lies_once_in_its_tile() {
        for level in levels() {
            for (matrix, width) in [(&[97][..], 2), (&[64, 50], 5), (&[9, 31, 20], 4), (&[1, 3], 16)] {
                for count in [1, 13, 1000, 5003] {
                    check(level, 1, matrix, count, width);
                }
            }
            // More points than tiles and groups, so that several blocks are counted apart.
            check(level, 3, &[64, 64], 20_011, 4);
        }
    }
}
