//! The fine grid, its tiles, and the points sorted by tile: what is computed once a trajectory.

use rayon::prelude::*;
use rayspin_core::{Error, Real, Result, Trajectory};

use super::kernel::Kernel;

/// Reals in a SIMD vector of the CPU kernels, 256 bits.
pub(crate) const fn lanes<R>() -> usize {
    32 / size_of::<R>()
}

/// The fine grid and how it is cut into tiles, axes z, y, x; axes that a transform lacks have length 1.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Layout {
    pub(crate) dims: usize,
    pub(crate) width: usize,
    /// Fine-grid cells.
    pub(crate) fine: [usize; 3],
    /// Number of tiles.
    pub(crate) tiles: [usize; 3],
    /// Cells of the largest tile and its halo; the last is the row pitch, with room for whole vectors.
    pub(crate) local: [usize; 3],
}

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

/// A run of points within one slab of tiles, spread by one thread.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Part {
    pub(crate) slab: usize,
    pub(crate) points: std::ops::Range<usize>,
    /// Whether it is the first of its slab and so writes to the fine grid itself.
    pub(crate) first: bool,
}

/// Points that one step of sorting takes together.
const GROUP: usize = 4096;

/// Cells of a tile along z, y, x: large enough that the halo is a small part, small enough for the first-level cache in
/// 2-D and the second-level cache in 3-D.
fn tile_cells(dims: usize) -> [usize; 3] {
    match dims {
        1 => [1, 1, 512],
        2 => [1, 16, 32],
        _ => [8, 16, 16],
    }
}

/// The smallest integer ≥ n with no prime factor above 5.
pub(crate) fn smooth_size(n: usize) -> usize {
    let mut best = n.next_power_of_two();
    let mut fives = 1;
    while fives < best {
        let mut threes = fives;
        while threes < best {
            let mut size = threes;
            while size < n {
                size *= 2;
            }
            best = best.min(size);
            threes *= 3;
        }
        fives *= 5;
    }
    best
}

impl Layout {
    /// The layout for a matrix in C order. Errors: a fine grid beyond the address space.
    pub(crate) fn new<R: Real>(matrix: &[usize], upsampling: f64, kernel: &Kernel) -> Result<Self> {
        let dims = matrix.len();
        let width = kernel.width;
        let (mut fine, mut tiles, mut local) = ([1; 3], [1; 3], [1; 3]);
        let cells = tile_cells(dims);
        for (axis, &n) in (3 - dims..3).zip(matrix) {
            let least = (n as f64 * upsampling).ceil();
            if least > u32::MAX as f64 / 2.0 {
                return Err(Error::value("NUFFT matrix", "axes below 2^30", n));
            }
            fine[axis] = smooth_size((least as usize).max(2 * width));
            tiles[axis] = (fine[axis] / cells[axis].max(width)).max(1);
            local[axis] = fine[axis].div_ceil(tiles[axis]) + width - 1;
        }
        let footprint = (2 * width).next_multiple_of(lanes::<R>()) / 2;
        local[2] += footprint - width;
        rayspin_core::voxels(&fine)?;
        Ok(Self { dims, width, fine, tiles, local })
    }

    /// The axis along which slabs are stacked: the outermost that the transform has.
    pub(crate) fn outer(&self) -> usize {
        3 - self.dims
    }

    /// Number of slabs: layers of tiles along the outermost axis.
    pub(crate) fn slabs(&self) -> usize {
        self.tiles[self.outer()]
    }

    /// Tiles in a slab.
    pub(crate) fn slab_tiles(&self) -> usize {
        self.tiles.iter().product::<usize>() / self.slabs()
    }

    /// Fine-grid cells of one layer of the outermost axis.
    pub(crate) fn inner(&self) -> usize {
        self.fine.iter().product::<usize>() / self.fine[self.outer()]
    }

    /// First cell of tile `t` along an axis.
    pub(crate) fn tile_first(&self, axis: usize, t: usize) -> usize {
        (t * self.fine[axis]).div_ceil(self.tiles[axis])
    }

    /// Cells of slab `s` along the outermost axis.
    pub(crate) fn slab_height(&self, s: usize) -> usize {
        self.tile_first(self.outer(), s + 1) - self.tile_first(self.outer(), s)
    }

    /// Number of cells of a local grid.
    pub(crate) fn local_len(&self) -> usize {
        self.local.iter().product()
    }

    /// First cell and number of cells, halo included, along each axis of a tile.
    pub(crate) fn tile_box(&self, tile: usize) -> ([usize; 3], [usize; 3]) {
        let index = [
            tile / (self.tiles[1] * self.tiles[2]),
            tile / self.tiles[2] % self.tiles[1],
            tile % self.tiles[2],
        ];
        let (mut first, mut extent) = ([0; 3], [1; 3]);
        for axis in self.outer()..3 {
            first[axis] = self.tile_first(axis, index[axis]);
            extent[axis] = self.tile_first(axis, index[axis] + 1) - first[axis] + self.width - 1;
        }
        (first, extent)
    }

    /// Sorts a trajectory's points by tile. Errors: more points than 2³² − 1.
    pub(crate) fn sort<R: Real>(&self, trajectory: &Trajectory, matrix: &[usize]) -> Result<Points<R>> {
        let (samples, dims) = trajectory.points().dim();
        if samples > u32::MAX as usize {
            return Err(Error::value("trajectory", "fewer than 2^32 samples", samples));
        }
        let points = trajectory.points();
        let points = points.as_slice().unwrap_or_default();
        if points.len() != samples * dims || dims != self.dims {
            return Err(Error::shape("trajectory in memory", &[samples, self.dims], &[points.len()]));
        }
        Ok(match dims {
            1 => self.sort_points(points.as_chunks::<1>().0, matrix),
            2 => self.sort_points(points.as_chunks::<2>().0, matrix),
            _ => self.sort_points(points.as_chunks::<3>().0, matrix),
        })
    }

    fn sort_points<R: Real, const D: usize>(&self, points: &[[f64; D]], matrix: &[usize]) -> Points<R> {
        // In the order of the components x, y, z.
        let axes: [Axis; D] = std::array::from_fn(|d| Axis::new(self, 2 - d, matrix[D - 1 - d]));
        let tile_of: Vec<u32> = points
            .par_iter()
            .with_min_len(GROUP)
            .map(|point| (0..D).map(|d| axes[d].cells[axes[d].footprint(point[d]).0].0).sum())
            .collect();
        let tiles: usize = self.tiles.iter().product();
        let mut next = vec![0u32; tiles + 1];
        for &tile in &tile_of {
            next[tile as usize + 1] += 1;
        }
        for tile in 0..tiles {
            next[tile + 1] += next[tile];
        }
        let tile_start = next.clone();
        let mut order = vec![0u32; points.len()];
        for (i, &tile) in tile_of.iter().enumerate() {
            let slot = &mut next[tile as usize];
            order[*slot as usize] = i as u32;
            *slot += 1;
        }
        let mut offset = vec![0u32; points.len()];
        let mut z = vec![R::zero(); points.len() * D];
        order
            .par_chunks(GROUP)
            .zip(offset.par_chunks_mut(GROUP))
            .zip(z.par_chunks_mut(GROUP * D))
            .for_each_init(
                || Vec::with_capacity(GROUP),
                |gathered: &mut Vec<[f64; D]>, ((order, offset), z)| {
                    // Gathered first, so that the cache misses of many points overlap.
                    gathered.clear();
                    gathered.extend(order.iter().map(|&i| points[i as usize]));
                    for ((point, z), offset) in gathered.iter().zip(z.as_chunks_mut::<D>().0).zip(offset) {
                        for d in 0..D {
                            let (cell, argument) = axes[d].footprint(point[d]);
                            *offset += axes[d].cells[cell].1;
                            z[d] = <R as Real>::from_f64(argument);
                        }
                    }
                },
            );
        Points { offset, z, order, tile_start }
    }

    /// Cuts each slab's points into parts of about `size` points; every slab has at least one, maybe empty.
    pub(crate) fn parts<R>(&self, points: &Points<R>, size: usize) -> Vec<Part> {
        let mut parts = Vec::new();
        for slab in 0..self.slabs() {
            let first = points.tile_start[slab * self.slab_tiles()] as usize;
            let end = points.tile_start[(slab + 1) * self.slab_tiles()] as usize;
            let pieces = (end - first).div_ceil(size).max(1);
            for piece in 0..pieces {
                let cut = |p: usize| first + (end - first) * p / pieces;
                parts.push(Part { slab, points: cut(piece)..cut(piece + 1), first: piece == 0 });
            }
        }
        parts
    }
}

/// Where coordinates along one axis fall.
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

    /// First cell of a coordinate's footprint, folded into the grid, and the polynomials' argument z ∈ \[−1, 1).
    #[inline]
    fn footprint(&self, k: f64) -> (usize, f64) {
        let cycles = k * self.inverse;
        // Conversion truncates towards zero, several times faster than `floor` on processors without SSE4.1 code.
        let mut fraction =
            if cycles.abs() < 1e15 { cycles - (cycles as i64) as f64 } else { cycles.rem_euclid(1.0) };
        if fraction < 0.0 {
            fraction += 1.0;
        }
        let u = fraction * self.fine;
        // ⌈u − W/2⌉: the argument of the conversion is positive.
        let bias = self.fine + 16.0;
        let first = bias - ((self.half - u + bias) as i64) as f64;
        let z = 2.0 * (first - u + self.half) - 1.0;
        let cell = if first < 0.0 {
            first + self.fine
        } else if first >= self.fine {
            first - self.fine
        } else {
            first
        };
        (cell as usize, z)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_small_factors() {
        let smooth = |mut n: usize| {
            for p in [2, 3, 5] {
                while n.is_multiple_of(p) {
                    n /= p;
                }
            }
            n == 1
        };
        for n in 1..2000 {
            let expected = (n..).find(|&m| smooth(m)).unwrap();
            assert_eq!(smooth_size(n), expected, "{n}");
        }
    }

    #[test]
    fn tiles_cover_every_axis_once() {
        for n in [1, 2, 7, 31, 100, 257] {
            for width in [2, 5, 16] {
                let layout = Layout::new::<f32>(&[n, n, n], 2.0, &Kernel::new(width, 2.0)).unwrap();
                for axis in 0..3 {
                    assert_eq!(layout.tile_first(axis, 0), 0);
                    assert_eq!(layout.tile_first(axis, layout.tiles[axis]), layout.fine[axis]);
                    for cell in 0..layout.fine[axis] {
                        let t = cell * layout.tiles[axis] / layout.fine[axis];
                        assert!(layout.tile_first(axis, t) <= cell && cell < layout.tile_first(axis, t + 1));
                    }
                }
                // Halos reach no further than the next slab.
                for s in 0..layout.slabs() {
                    assert!(layout.slab_height(s) >= width - 1);
                }
            }
        }
    }
}
