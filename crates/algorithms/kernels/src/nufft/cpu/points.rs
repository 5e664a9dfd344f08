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
        || Footprints::new(level, axes),
        |footprints, (b, counts)| {
            for group in groups(part(b)) {
                if !footprints.locate::<false>(group) {
                    return finite.store(false, Ordering::Relaxed);
                }
                for cells in footprints.cells() {
                    let tile: u32 = (0..D).map(|d| axes[d].0.cells[cells[d]].0).sum();
                    counts[tile as usize] += 1;
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
    footprints: &mut Footprints<'_, D>,
    next: &mut [u32],
    records: &Scatter<'_, MaybeUninit<Point<R, D>>>,
) {
    if !footprints.locate::<true>(points.clone()) {
        return;
    }
    let mut places = [(0, 0); GROUP];
    let places = &mut places[..points.len()];
    for ((place, cell), cells) in places.iter_mut().zip(footprints.cells()) {
        let of_axis: [(u32, u32); D] = std::array::from_fn(|d| footprints.axes[d].0.cells[cells[d]]);
        let tile: u32 = of_axis.iter().map(|cell| cell.0).sum();
        *cell = of_axis.iter().map(|cell| cell.1).sum();
        *place = next[tile as usize];
        next[tile as usize] += 1;
        records.prefetch(*place as usize);
    }
    for ((sample, &(place, cell)), z) in (points.start as u32..).zip(&*places).zip(footprints.arguments()) {
        let record = Point { sample, cell, z: z.map(<R as Real>::from_f64) };
        // SAFETY: places are distinct: each block's points in a tile have a run of places of their own.
        unsafe { records.write(place as usize, MaybeUninit::new(record)) };
    }
}

/// First point of each slab of tiles once sorted, and the number of points at the end.
pub(crate) fn slab_starts(layout: &Layout, trajectory: &Trajectory, matrix: &[usize]) -> Vec<u32> {
    let axis = Axis::new(layout, layout.outer(), 1.0 / matrix[0] as f64);
    let slab_tiles = layout.slab_tiles() as u32;
    let none = || vec![0u32; layout.slabs() + 1];
    let points = trajectory.points();
    let parts = points.as_slice().unwrap_or_default().par_chunks(layout.dims << 16);
    let counted = parts.fold(none, |mut starts, points| {
        for point in points.chunks_exact(layout.dims) {
            let cycles = point[layout.dims - 1] * axis.inverse;
            let first = ((cycles - cycles.floor()) * axis.fine - axis.half).ceil();
            let first = if first < 0.0 { first + axis.fine } else { first };
            let tile = axis.cells.get(first as usize).map_or(0, |cell| cell.0);
            starts[(tile / slab_tiles) as usize + 1] += 1;
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

/// How coordinates along one axis become cells.
struct Axis {
    inverse: f64,
    fine: f64,
    half: f64,
    /// For every cell along the axis: its contribution to the flat index of the tile, and to the flat index
    /// of the cell in the local grid.
    cells: Vec<(u32, u32)>,
}

impl Axis {
    /// `inverse`: turns of the grid per number of a component.
    fn new(layout: &Layout, axis: usize, inverse: f64) -> Self {
        let tile_stride: usize = layout.tiles[axis + 1..].iter().product();
        let cell_stride: usize = layout.local[axis + 1..].iter().product();
        let cells = (0..layout.tiles[axis]).flat_map(|t| {
            let first = layout.tile_first(axis, t);
            (first..layout.tile_first(axis, t + 1))
                .map(move |cell| ((t * tile_stride) as u32, ((cell - first) * cell_stride) as u32))
        });
        Self {
            inverse,
            fine: layout.fine[axis] as f64,
            half: 0.5 * layout.width as f64,
            cells: cells.collect(),
        }
    }
}

/// 2⁵². The sum of a smaller natural number and this has that number in its lowest bits.
const BIAS: f64 = (1u64 << 52) as f64;

/// Where the footprints of a group of points lie, `[axis][point]`.
struct Footprints<'a, const D: usize> {
    level: Level,
    axes: &'a [(Axis, HostComponent<'a>); D],
    count: usize,
    /// First cell, folded into the grid, plus [`BIAS`].
    biased: [[f64; GROUP]; D],
    /// z = 2(⌈u − W/2⌉ − u + W/2) − 1 ∈ \[−1, 1).
    arguments: [[f64; GROUP]; D],
}

/// As many points are whole vectors at every level.
const WHOLE: usize = 8;

impl<'a, const D: usize> Footprints<'a, D> {
    fn new(level: Level, axes: &'a [(Axis, HostComponent<'a>); D]) -> Self {
        Self { level, axes, count: 0, biased: [[0.0; GROUP]; D], arguments: [[0.0; GROUP]; D] }
    }

    /// Locates at most [`GROUP`] points. Computes their polynomial arguments only with `ARGUMENTS`. Returns
    /// whether all numbers are finite; otherwise the footprints are not to be used.
    fn locate<const ARGUMENTS: bool>(&mut self, points: Range<usize>) -> bool {
        self.count = points.len();
        let whole = self.count.next_multiple_of(WHOLE);
        let mut finite = true;
        for (d, (axis, component)) in self.axes.iter().enumerate() {
            let (level, biased, arguments) = (self.level, &mut self.biased[d], &mut self.arguments[d]);
            component.read(points.start, &mut biased[..self.count]);
            biased[self.count..whole].fill(0.0);
            let (biased, arguments) = (&mut biased[..whole], &mut arguments[..whole]);
            finite &= dispatch!(level, simd => locate::<_, ARGUMENTS>(simd, axis, biased, arguments));
        }
        finite
    }

    /// First cells of each point's footprint.
    fn cells(&self) -> impl Iterator<Item = [usize; D]> + '_ {
        let cell = |biased: f64| biased.to_bits() as u32 as usize;
        (0..self.count.min(GROUP)).map(move |i| std::array::from_fn(|d| cell(self.biased[d][i])))
    }

    /// Arguments of the kernel's polynomials of each point.
    fn arguments(&self) -> impl Iterator<Item = [f64; D]> + '_ {
        (0..self.count.min(GROUP)).map(|i| std::array::from_fn(|d| self.arguments[d][i]))
    }
}

/// Replaces coordinates by biased first cells. Returns whether all are finite.
#[inline(always)]
fn locate<S: Simd, const ARGUMENTS: bool>(
    simd: S,
    axis: &Axis,
    coordinates: &mut [f64],
    arguments: &mut [f64],
) -> bool {
    let len = S::f64s::LEN;
    let splat = |value| S::f64s::splat(simd, value);
    let (inverse, fine, half) = (splat(axis.inverse), splat(axis.fine), splat(axis.half));
    let (zero, one, two, bias) = (splat(0.0), splat(1.0), splat(2.0), splat(BIAS));
    // The sum of products with zero is zero, or not a number if a factor is not finite.
    let mut products = zero;
    for (k, arguments) in coordinates.chunks_exact_mut(len).zip(arguments.chunks_exact_mut(len)) {
        let coordinate = S::f64s::from_slice(simd, k);
        products += coordinate * zero;
        let cycles = coordinate * inverse;
        let u = (cycles - cycles.floor()) * fine;
        let first = (u - half).ceil();
        // u ≤ the grid's length, so only the left border folds.
        let folded = first.simd_lt(zero).select(first + fine, first);
        (folded + bias).store_slice(k);
        if ARGUMENTS {
            let z = two * (first - u + half) - one;
            z.store_slice(arguments);
        }
    }
    let mut lanes = [0.0; 8];
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
