//! The points sorted by tile, and where their footprints lie: what is computed once a trajectory.
#![allow(unsafe_code)]

use rayon::prelude::*;
use rayspin_core::{Error, Real, Result, Trajectory};
use rayspin_device::cpu::simd::prelude::*;
use rayspin_device::cpu::simd::{Level, Simd, dispatch};

use super::scatter::Scatter;
use crate::nufft::layout::Layout;

/// Points sorted by tile; within a tile in the order of the trajectory.
#[derive(Debug)]
pub(crate) struct Points<R> {
    /// First cell of each footprint in its tile's local grid.
    pub(crate) offset: Vec<u32>,
    /// Arguments of the kernel's polynomials, `[point][x, y, z]`.
    pub(crate) z: Vec<R>,
    /// Which sample of the trajectory each is.
    pub(crate) order: Vec<u32>,
    /// First point of each tile, and the number of points at the end.
    pub(crate) tile_start: Vec<u32>,
}

/// Points that one step of sorting takes together: their coordinates, cells and arguments fit the second-level cache.
const GROUP: usize = 1024;

impl<R: Real> Points<R> {
    /// Sorts a trajectory's points by tile, on the cores of the pool that it is called in.
    ///
    /// Errors: more points than 2³² − 1; a trajectory of another number of components.
    pub(crate) fn sort(
        level: Level,
        layout: &Layout,
        trajectory: &Trajectory,
        matrix: &[usize],
    ) -> Result<Self> {
        let (samples, dims) = trajectory.points().dim();
        if samples > u32::MAX as usize {
            return Err(Error::value("trajectory", "fewer than 2^32 samples", samples));
        }
        let points = trajectory.points();
        let points = points.as_slice().unwrap_or_default();
        if points.len() != samples * dims || dims != layout.dims {
            return Err(Error::shape("trajectory in memory", &[samples, layout.dims], &[points.len()]));
        }
        Ok(match dims {
            1 => sort(level, layout, points.as_chunks::<1>().0, matrix),
            2 => sort(level, layout, points.as_chunks::<2>().0, matrix),
            _ => sort(level, layout, points.as_chunks::<3>().0, matrix),
        })
    }
}

impl<R> Points<R> {
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
        (4 * (self.offset.len() + self.order.len() + self.tile_start.len()) + size_of::<R>() * self.z.len())
            as u64
    }
}

/// A counting sort in three passes: every point's tile, and how many points of each block of the trajectory fall in each
/// tile; the points' places, block by block; and their offsets and arguments, in the new order.
fn sort<R: Real, const D: usize>(
    level: Level,
    layout: &Layout,
    points: &[[f64; D]],
    matrix: &[usize],
) -> Points<R> {
    // In the order of the components x, y, z.
    let axes: [Axis; D] = std::array::from_fn(|d| Axis::new(layout, 2 - d, matrix[D - 1 - d]));
    let tiles: usize = layout.tiles.iter().product();
    // Blocks cost a count of every tile each.
    let blocks = rayon::current_num_threads().min(points.len() / tiles.max(GROUP)).max(1);
    let block = points.len().div_ceil(blocks).max(1);
    let mut tile_of = vec![0u32; points.len()];
    let mut counts = vec![0u32; blocks * tiles];
    points
        .par_chunks(block)
        .zip(tile_of.par_chunks_mut(block))
        .zip(counts.par_chunks_mut(tiles))
        .with_max_len(1)
        .for_each_init(Footprints::new, |footprints, ((points, tile_of), counts)| {
            for (points, tile_of) in points.chunks(GROUP).zip(tile_of.chunks_mut(GROUP)) {
                footprints.locate(level, &axes, points.iter());
                for (tile, cells) in tile_of.iter_mut().zip(footprints.cells()) {
                    *tile = (0..D).map(|d| axes[d].cells[cells[d]].0).sum();
                    counts[*tile as usize] += 1;
                }
            }
        });
    // From counts to the first place of every tile's points of every block.
    let mut tile_start = Vec::with_capacity(tiles + 1);
    let mut start = 0;
    for tile in 0..tiles {
        tile_start.push(start);
        for block in 0..blocks {
            let count = &mut counts[block * tiles + tile];
            start += std::mem::replace(count, start);
        }
    }
    tile_start.push(start);
    let mut order = vec![0u32; points.len()];
    let scatter = Scatter::new(&mut order);
    tile_of.par_chunks(block).zip(counts.par_chunks_mut(tiles)).enumerate().with_max_len(1).for_each(
        |(b, (tile_of, next))| {
            for (i, &tile) in tile_of.iter().enumerate() {
                let place = &mut next[tile as usize];
                // SAFETY: places are distinct: each block's points in a tile have a run of places of their own.
                unsafe { scatter.write(*place as usize, (b * block + i) as u32) };
                *place += 1;
            }
        },
    );
    let mut offset = tile_of;
    let mut z = vec![R::zero(); points.len() * D];
    order
        .par_chunks(GROUP)
        .zip(offset.par_chunks_mut(GROUP))
        .zip(z.par_chunks_mut(GROUP * D))
        .with_min_len(4)
        .for_each_init(Footprints::new, |footprints, ((order, offset), z)| {
            footprints.locate(level, &axes, order.iter().map(|&i| &points[i as usize]));
            for (offset, cells) in offset.iter_mut().zip(footprints.cells()) {
                *offset = (0..D).map(|d| axes[d].cells[cells[d]].1).sum();
            }
            for (z, &argument) in z.iter_mut().zip(&footprints.arguments) {
                *z = <R as Real>::from_f64(argument);
            }
        });
    Points { offset, z, order, tile_start }
}

/// First point of each slab of tiles once sorted, and the number of points at the end.
pub(crate) fn slab_starts(layout: &Layout, trajectory: &Trajectory, matrix: &[usize]) -> Vec<u32> {
    let axis = Axis::new(layout, layout.outer(), matrix[0]);
    let slab_tiles = layout.slab_tiles() as u32;
    let mut starts = vec![0u32; layout.slabs() + 1];
    for k in trajectory.points().column(layout.dims - 1) {
        let cycles = k * axis.inverse;
        let first = ((cycles - cycles.floor()) * axis.fine - axis.half).ceil();
        let first = if first < 0.0 { first + axis.fine } else { first };
        let tile = axis.cells.get(first as usize).map_or(0, |cell| cell.0);
        starts[(tile / slab_tiles) as usize + 1] += 1;
    }
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
    /// Of every cell: its tile's and its own share of the flat indices of a tile and of a cell in a local grid.
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

/// 2⁵²: a smaller natural number plus this has that number for its lowest bits.
const BIAS: f64 = (1u64 << 52) as f64;

/// Where the footprints of a group of points lie; `[point][x, y, z]`, padded to whole vectors.
struct Footprints<const D: usize> {
    coordinates: Vec<[f64; D]>,
    /// First cell, folded into the grid, plus [`BIAS`].
    biased: Vec<f64>,
    /// z = 2(⌈u − W/2⌉ − u + W/2) − 1 ∈ \[−1, 1).
    arguments: Vec<f64>,
}

impl<const D: usize> Footprints<D> {
    fn new() -> Self {
        Self { coordinates: Vec::with_capacity(GROUP), biased: Vec::new(), arguments: Vec::new() }
    }

    fn locate<'a>(
        &mut self,
        level: Level,
        axes: &[Axis; D],
        points: impl ExactSizeIterator<Item = &'a [f64; D]>,
    ) {
        // Copied before any work on them, so that the cache misses of many points overlap.
        self.coordinates.clear();
        self.coordinates.extend(points);
        // A multiple of 8 points is whole vectors at every level.
        self.coordinates.resize(self.coordinates.len().next_multiple_of(8), [0.0; D]);
        let coordinates = self.coordinates.as_flattened();
        self.biased.resize(coordinates.len(), 0.0);
        self.arguments.resize(coordinates.len(), 0.0);
        dispatch!(level, simd => locate(simd, axes, coordinates, &mut self.biased, &mut self.arguments));
    }

    /// First cells of each point's footprint; longer than the points by the padding.
    fn cells(&self) -> impl Iterator<Item = [usize; D]> + '_ {
        self.biased.as_chunks::<D>().0.iter().map(|biased| biased.map(|b| b.to_bits() as u32 as usize))
    }
}

#[inline(always)]
fn locate<S: Simd, const D: usize>(
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
            let z = two * (first - u + half[v]) - one;
            // u ≤ the grid's length, so only the left border folds.
            let folded = first.simd_lt(zero).select(first + fine[v], first);
            (folded + bias).store_slice(&mut biased[at.clone()]);
            z.store_slice(&mut arguments[at]);
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
        let points = pool.install(|| Points::<f64>::sort(level, &layout, &trajectory, matrix)).unwrap();
        assert_eq!(points.tile_start.len(), layout.tiles.iter().product::<usize>() + 1);
        assert_eq!(points.tile_start.last().copied(), Some(count as u32));
        let mut seen = vec![false; count];
        for (tile, places) in points.tile_start.windows(2).enumerate() {
            let (first, extent) = layout.tile_box(tile);
            let places = places[0] as usize..places[1] as usize;
            assert!(points.order[places.clone()].is_sorted(), "order within a tile");
            for place in places {
                let sample = points.order[place] as usize;
                assert!(!std::mem::replace(&mut seen[sample], true), "sample {sample} twice");
                let offset = points.offset[place] as usize;
                let local = [
                    offset / (layout.local[1] * layout.local[2]),
                    offset / layout.local[2] % layout.local[1],
                    offset % layout.local[2],
                ];
                for d in 0..dims {
                    let axis = 2 - d;
                    assert!(local[axis] + width <= extent[axis], "footprint beyond the tile's halo");
                    let z = points.z[place * dims + d];
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
