//! How the fine grid is cut for a GPU: tiles whose padded copies fit shared memory.

use rayspin_core::Real;
use rayspin_device::cuda::Properties;

/// Cells of the largest tile along z, y, x: small enough that shared memory holds the padded tiles of several
/// items, or of many blocks; large enough that most of a padded tile is its own.
pub(super) fn cells(dims: usize) -> [usize; 3] {
    match dims {
        1 => [1, 1, 512],
        2 => [1, 16, 16],
        _ => [8, 8, 8],
    }
}

/// Shared memory that kernels want beside padded tiles.
const BESIDE: usize = 24 << 10;

/// The fine grid and its tiles, axes z, y, x; axes that a transform lacks have length 1.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Tiles {
    pub(super) dims: usize,
    pub(super) width: usize,
    /// Fine-grid cells.
    pub(super) fine: [usize; 3],
    /// Number of tiles; tile t begins at cell ⌈t · fine / tiles⌉.
    pub(super) tiles: [usize; 3],
    /// Cells of the largest tile.
    pub(super) largest: [usize; 3],
}

impl Tiles {
    /// Tiles whose padded copy of `R` fits the shared memory of a block.
    pub(super) fn new<R: Real>(dims: usize, fine: [usize; 3], width: usize, properties: &Properties) -> Self {
        let most = (properties.shared_per_block as usize).saturating_sub(BESIDE) / (2 * size_of::<R>());
        let mut largest = cells(dims);
        loop {
            let tiles = std::array::from_fn(|axis| fine[axis].div_ceil(largest[axis]));
            let cut = Self { dims, width, fine, tiles, largest };
            let longest = (0..3).max_by_key(|&axis| largest[axis]).unwrap_or(2);
            if cut.padded_even().max(cut.padded::<R>()) <= most || largest[longest] == 1 {
                return cut;
            }
            largest[longest] /= 2;
        }
    }

    /// Number of tiles.
    pub(super) fn count(&self) -> usize {
        self.tiles.iter().product()
    }

    /// Number of fine-grid cells.
    pub(super) fn cells(&self) -> usize {
        self.fine.iter().product()
    }

    /// Cells of the largest padded tile along each axis.
    fn extent(&self) -> [usize; 3] {
        std::array::from_fn(|axis| if axis < 3 - self.dims { 1 } else { self.largest[axis] + self.width - 1 })
    }

    /// Warps that type 1 gives to a padded tile of `R`: a multiprocessor holds few large tiles, and wants
    /// many warps.
    pub(super) fn warps<R: Real>(&self) -> usize {
        let bytes = self.extent().iter().product::<usize>() * 2 * size_of::<R>();
        match bytes >> 10 {
            _ if self.dims < 3 => 1,
            0..16 => 1,
            16..32 => 2,
            32..96 => 4,
            _ => 8,
        }
    }

    /// Cells of a padded tile of `R` as type 1 keeps it: in 2-D lines, and in 3-D the planes of one warp,
    /// begin W cells apart in the banks of shared memory.
    pub(super) fn padded<R: Real>(&self) -> usize {
        let warps = self.warps::<R>();
        let span = 64 / size_of::<R>() / warps;
        let apart = |n: usize| n + (self.width.div_ceil(warps) + span - n % span) % span;
        let [z, y, x] = self.extent();
        match self.dims {
            1 => x,
            2 => y * apart(x),
            _ => z * apart(y * x),
        }
    }

    /// Cells of a padded tile as type 2 keeps it: rows have an even number.
    pub(super) fn padded_even(&self) -> usize {
        let [z, y, x] = self.extent();
        z * y * x.next_multiple_of(2)
    }
}
