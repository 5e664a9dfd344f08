//! The fine grid and its tiles.

use rayspin_core::{Error, Real, Result};

use super::kernel::Kernel;

/// Reals in a SIMD vector of the CPU kernels, 256 bits.
pub(crate) const fn lanes<R>() -> usize {
    32 / size_of::<R>()
}

/// Whether the CPU reads and writes the rows of a footprint in aligned vectors of `lanes` reals. `narrow`:
/// the reals in 256 bits.
///
/// Rows of two vectors in 1-D and 2-D are unaligned where aligned rows have a third vector at a quarter of
/// their places or more, which the processor mispredicts.
pub(crate) const fn has_aligned_rows(dims: usize, width: usize, narrow: usize, lanes: usize) -> bool {
    let places = lanes / 2;
    let mispredicted = lanes > narrow && width <= lanes && 4 * (places - 1 + width) >= 4 * lanes + places;
    width > narrow && !(dims < 3 && mispredicted)
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

/// A run of points within one slab of tiles, spread by one thread.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Part {
    pub(crate) slab: usize,
    pub(crate) points: std::ops::Range<usize>,
    /// Whether it is the first of its slab and so writes to the fine grid itself.
    pub(crate) first: bool,
}

/// Cells of a tile along z, y, x. Tiles are large compared with their halo, and fit the first-level cache in
/// 2-D and the second-level cache in 3-D. Measured in benches/results/2026-11-22-xeon-2/nufft_tiles.txt. Wide
/// tiles also have fewer starts and ends of rows, which are slow to add and copy. Higher tiles leave too few
/// slabs for 16 cores.
fn tile_cells(dims: usize) -> [usize; 3] {
    match dims {
        1 => [1, 1, 512],
        2 => [1, 16, 32],
        _ => [8, 16, 32],
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
            // The CPU computes tiles in double precision, exactly where cells · tiles stay below 2⁵⁰.
            tiles[axis] = (fine[axis] / cells[axis].max(width)).min((1 << 50) / fine[axis]).max(1);
            local[axis] = fine[axis].div_ceil(tiles[axis]) + width - 1;
        }
        // A row ends with a whole vector, be it one that begins with the footprint, or one of the grid of up
        // to 512 bits.
        let narrow = lanes::<R>();
        let wide = 2 * width > narrow && !has_aligned_rows(dims, width, narrow, 2 * narrow);
        let footprint = (2 * width).next_multiple_of(if wide { 2 * narrow } else { narrow }) / 2;
        local[2] = (local[2] + footprint - width).next_multiple_of(lanes::<R>());
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

    /// Number of fine-grid cells.
    pub(crate) fn cells(&self) -> usize {
        self.fine.iter().product()
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

    /// Cuts each slab's points into parts of about `size` points; every slab has at least one, maybe empty.
    /// `slab_start`: first point of each slab, and the number of points.
    pub(crate) fn parts(&self, slab_start: &[u32], size: usize) -> Vec<Part> {
        let mut parts = Vec::new();
        for (slab, bounds) in slab_start.windows(2).enumerate() {
            let [first, end] = [bounds[0] as usize, bounds[1] as usize];
            let pieces = (end - first).div_ceil(size).max(1);
            for piece in 0..pieces {
                let cut = |p: usize| first + (end - first) * p / pieces;
                parts.push(Part { slab, points: cut(piece)..cut(piece + 1), first: piece == 0 });
            }
        }
        parts
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
