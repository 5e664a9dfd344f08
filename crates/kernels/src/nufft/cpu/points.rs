//! The points sorted by tile, and the places of their footprints. Both are computed once per trajectory.
#![allow(unsafe_code)]

use std::mem::MaybeUninit;

use num_complex::Complex;
use rayon::prelude::*;
use rayspin_core::{Error, Real, Result, Trajectory};
use rayspin_device::cpu::simd::prelude::*;
use rayspin_device::cpu::simd::{Level, Simd, dispatch};

use super::records::{Point, Records};
use super::scatter::Scatter;
use crate::nufft::layout::Layout;

/// Points sorted by tile; within a tile in the order of the trajectory.
#[derive(Debug)]
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

    /// Replaces all points by a trajectory's points, sorted by tile, on the cores of the current pool.
    ///
    /// Errors: more points than 2³² − 1; a trajectory of another number of components; no memory. Nothing changes then.
    pub(crate) fn sort(
        &mut self,
        level: Level,
        layout: &Layout,
        trajectory: &Trajectory,
        matrix: &[usize],
    ) -> Result<()> {
        let (samples, dims) = trajectory.points().dim();
        if samples > u32::MAX as usize {
            return Err(Error::value("trajectory", "fewer than 2^32 samples", samples));
        }
        let points = trajectory.points();
        let points = points.as_slice().unwrap_or_default();
        if points.len() != samples * dims || dims != layout.dims {
            return Err(Error::shape("trajectory in memory", &[samples, layout.dims], &[points.len()]));
        }
        match dims {
            1 => sort(level, layout, points.as_chunks::<1>().0, matrix, self),
            2 => sort(level, layout, points.as_chunks::<2>().0, matrix, self),
            _ => sort(level, layout, points.as_chunks::<3>().0, matrix, self),
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

/// A counting sort in two passes over the trajectory. The first counts the points of each block in each tile, and the second
/// writes each point's record to its place. Both compute the footprints, which takes less time than storing them.
fn sort<R: Real, const D: usize>(
    level: Level,
    layout: &Layout,
    points: &[[f64; D]],
    matrix: &[usize],
    to: &mut Points<R>,
) -> Result<()> {
    // In the order of the components x, y, z.
    let axes: [Axis; D] = std::array::from_fn(|d| Axis::new(layout, 2 - d, matrix[D - 1 - d]));
    let tiles: usize = layout.tiles.iter().product();
    // Blocks cost a count of every tile each.
    let blocks = (BLOCKS * rayon::current_num_threads()).min(points.len() / tiles.max(GROUP)).max(1);
    let block = points.len().div_ceil(blocks).max(1);
    let mut counts = vec![0u32; points.len().div_ceil(block) * tiles];
    points.par_chunks(block).zip(counts.par_chunks_mut(tiles)).with_max_len(1).for_each_init(
        || Footprints::new(level, &axes),
        |footprints, (points, counts)| {
            for points in points.chunks(GROUP) {
                footprints.locate::<false>(points);
                for cells in footprints.cells().take(points.len()) {
                    let tile: u32 = (0..D).map(|d| axes[d].cells[cells[d]].0).sum();
                    counts[tile as usize] += 1;
                }
            }
        },
    );
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
    let write = |records: &mut [MaybeUninit<Point<R, D>>]| {
        let scatter = Scatter::new(records);
        let blocks = points.par_chunks(block).zip(counts.par_chunks_mut(tiles)).enumerate();
        let footprints = || Footprints::new(level, &axes);
        blocks.with_max_len(1).for_each_init(footprints, |footprints, (b, (points, next))| {
            for (group, points) in points.chunks(GROUP).enumerate() {
                let sample = (b * block + group * GROUP) as u32;
                write_group(sample, points, footprints, next, &scatter);
            }
        });
    };
    // SAFETY: the counts of all blocks and tiles divide all places between them, and each point takes one of its own.
    unsafe { to.records.rewrite(points.len(), write) }?;
    to.tile_start = tile_start;
    if layout.dims == 3 && layout.local_len() * size_of::<Complex<R>>() > WALKED_BYTES {
        walk::<R, D>(layout, to);
    }
    Ok(())
}

/// Sorts each tile's points along a Morton curve of blocks of 4³ cells. The next footprint then overlaps the last ones,
/// whose cells are still in the first-level cache.
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
    shares.into_par_iter().for_each_init(
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

/// Writes the records of a group of points, starting with the point `sample`, to the `next` places of their tiles.
fn write_group<R: Real, const D: usize>(
    sample: u32,
    points: &[[f64; D]],
    footprints: &mut Footprints<'_, D>,
    next: &mut [u32],
    records: &Scatter<'_, MaybeUninit<Point<R, D>>>,
) {
    footprints.locate::<true>(points);
    let mut places = [(0, 0); GROUP];
    let places = &mut places[..points.len()];
    for ((place, cell), cells) in places.iter_mut().zip(footprints.cells()) {
        let of_axis: [(u32, u32); D] = std::array::from_fn(|d| footprints.axes[d].cells[cells[d]]);
        let tile: u32 = of_axis.iter().map(|cell| cell.0).sum();
        *cell = of_axis.iter().map(|cell| cell.1).sum();
        *place = next[tile as usize];
        next[tile as usize] += 1;
        records.prefetch(*place as usize);
    }
    let arguments = footprints.arguments.as_chunks::<D>().0;
    for ((sample, &(place, cell)), arguments) in (sample..).zip(&*places).zip(arguments) {
        let record = Point { sample, cell, z: arguments.map(<R as Real>::from_f64) };
        // SAFETY: places are distinct: each block's points in a tile have a run of places of their own.
        unsafe { records.write(place as usize, MaybeUninit::new(record)) };
    }
}

/// First point of each slab of tiles once sorted, and the number of points at the end.
pub(crate) fn slab_starts(layout: &Layout, trajectory: &Trajectory, matrix: &[usize]) -> Vec<u32> {
    let axis = Axis::new(layout, layout.outer(), matrix[0]);
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
    /// For every cell along the axis: its contribution to the flat index of the tile, and to the flat index of the cell in
    /// the local grid.
    cells: Vec<(u32, u32)>,
}

impl Axis {
    fn new(layout: &Layout, axis: usize, n: usize) -> Self {
        let tile_stride: usize = layout.tiles[axis + 1..].iter().product();
        let cell_stride: usize = layout.local[axis + 1..].iter().product();
        let cells = (0..layout.tiles[axis]).flat_map(|t| {
            let first = layout.tile_first(axis, t);
            (first..layout.tile_first(axis, t + 1))
                .map(move |cell| ((t * tile_stride) as u32, ((cell - first) * cell_stride) as u32))
        });
        Self {
            inverse: 1.0 / n as f64,
            fine: layout.fine[axis] as f64,
            half: 0.5 * layout.width as f64,
            cells: cells.collect(),
        }
    }
}

/// 2⁵². The sum of a smaller natural number and this has that number in its lowest bits.
const BIAS: f64 = (1u64 << 52) as f64;

/// Where the footprints of a group of points lie; `[point][x, y, z]`, padded to whole vectors.
struct Footprints<'a, const D: usize> {
    level: Level,
    axes: &'a [Axis; D],
    /// First cell, folded into the grid, plus [`BIAS`].
    biased: Vec<f64>,
    /// z = 2(⌈u − W/2⌉ − u + W/2) − 1 ∈ \[−1, 1).
    arguments: Vec<f64>,
}

/// As many points are whole vectors at every level.
const WHOLE: usize = 8;

impl<'a, const D: usize> Footprints<'a, D> {
    fn new(level: Level, axes: &'a [Axis; D]) -> Self {
        Self { level, axes, biased: vec![0.0; D * GROUP], arguments: vec![0.0; D * GROUP] }
    }

    /// Locates at most [`GROUP`] points. Computes their polynomial arguments only with `ARGUMENTS`.
    fn locate<const ARGUMENTS: bool>(&mut self, points: &[[f64; D]]) {
        let (level, axes) = (self.level, self.axes);
        let (whole, rest) = points.as_chunks::<WHOLE>();
        let (biased, biased_rest) = self.biased.split_at_mut(D * WHOLE * whole.len());
        let (arguments, arguments_rest) = self.arguments.split_at_mut(D * WHOLE * whole.len());
        let coordinates = whole.as_flattened().as_flattened();
        dispatch!(level, simd => locate::<_, D, ARGUMENTS>(simd, axes, coordinates, biased, arguments));
        if !rest.is_empty() {
            let mut padded = [[0.0; D]; WHOLE];
            padded[..rest.len()].copy_from_slice(rest);
            let (coordinates, to) = (padded.as_flattened(), ..D * WHOLE);
            let (biased, arguments) = (&mut biased_rest[to], &mut arguments_rest[to]);
            dispatch!(level, simd => locate::<_, D, ARGUMENTS>(simd, axes, coordinates, biased, arguments));
        }
    }

    /// First cells of each point's footprint; longer than the points by the padding.
    fn cells(&self) -> impl Iterator<Item = [usize; D]> + '_ {
        self.biased.as_chunks::<D>().0.iter().map(|biased| biased.map(|b| b.to_bits() as u32 as usize))
    }
}

#[inline(always)]
fn locate<S: Simd, const D: usize, const ARGUMENTS: bool>(
    simd: S,
    axes: &[Axis; D],
    coordinates: &[f64],
    biased: &mut [f64],
    arguments: &mut [f64],
) {
    let len = S::f64s::LEN;
    // D vectors hold whole points: lane l of vector v belongs to the axis (v·LEN + l) mod D.
    let zero = S::f64s::splat(simd, 0.0);
    let (mut inverse, mut fine, mut half) = ([zero; D], [zero; D], [zero; D]);
    for v in 0..D {
        let mut lanes = [[0.0; 8]; 3];
        for l in 0..len {
            let axis = &axes[(v * len + l) % D];
            lanes[0][l] = axis.inverse;
            lanes[1][l] = axis.fine;
            lanes[2][l] = axis.half;
        }
        inverse[v] = S::f64s::from_slice(simd, &lanes[0][..len]);
        fine[v] = S::f64s::from_slice(simd, &lanes[1][..len]);
        half[v] = S::f64s::from_slice(simd, &lanes[2][..len]);
    }
    let (one, two) = (S::f64s::splat(simd, 1.0), S::f64s::splat(simd, 2.0));
    let bias = S::f64s::splat(simd, BIAS);
    for ((k, biased), arguments) in coordinates
        .chunks_exact(D * len)
        .zip(biased.chunks_exact_mut(D * len))
        .zip(arguments.chunks_exact_mut(D * len))
    {
        for v in 0..D {
            let at = v * len..(v + 1) * len;
            let cycles = S::f64s::from_slice(simd, &k[at.clone()]) * inverse[v];
            let u = (cycles - cycles.floor()) * fine[v];
            let first = (u - half[v]).ceil();
            // u ≤ the grid's length, so only the left border folds.
            let folded = first.simd_lt(zero).select(first + fine[v], first);
            (folded + bias).store_slice(&mut biased[at.clone()]);
            if ARGUMENTS {
                let z = two * (first - u + half[v]) - one;
                z.store_slice(&mut arguments[at]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use ndarray::Array2;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;
    use rayspin_device::cpu::simd::levels;

    use super::*;
    use crate::nufft::kernel::Kernel;

    /// Against the definition, point by point: every point once, in its tile, in the order of the trajectory, and
    /// offset plus z giving back where it lies on the grid.
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
        pool.install(|| points.sort(level, &layout, &trajectory, matrix)).unwrap();
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
