//! Blocks of voxels: what a ray can meet in them, so that it may leave out what it cannot.

use rayon::prelude::*;
use rayspin_core::Result;
use rayspin_device::Cpu;
use rayspin_device::cpu::zeroed;

use super::{Mode, Transfer};

/// Voxels along each side of a block.
pub(super) const SIDE: usize = 8;

/// The smallest and the largest voxel around each block `[z, y, x]`. A block reaches a voxel beyond its
/// sides, so that all samples whose index is in it lie between the two.
#[derive(Debug, Clone)]
pub(super) struct Blocks {
    /// Blocks along x, y and z.
    pub(super) size: [usize; 3],
    pub(super) low: Vec<f32>,
    pub(super) high: Vec<f32>,
}

/// Blocks along axes of these voxels.
pub(super) fn blocks_of(size: [usize; 3]) -> [usize; 3] {
    size.map(|n| n.div_ceil(SIDE))
}

/// The voxels around a `block` of an axis of `count`.
fn around(block: usize, count: usize) -> std::ops::Range<usize> {
    (block * SIDE).saturating_sub(1)..(block * SIDE + SIDE + 1).min(count)
}

impl Blocks {
    /// The blocks of a volume `[z, y, x]` of `size` voxels along x, y and z.
    ///
    /// Errors: memory.
    pub(super) fn new(cpu: &Cpu, volume: &[f32], size: [usize; 3]) -> Result<Self> {
        let [nx, ny, nz] = size;
        let [bx, by, bz] = blocks_of(size);
        let (mut low, mut high) = (zeroed("blocks", bx * by * bz)?, zeroed("blocks", bx * by * bz)?);
        cpu.run(|| {
            let layers = low.par_chunks_mut(bx * by).zip(high.par_chunks_mut(bx * by));
            layers.enumerate().for_each(|(z, (low, high))| {
                low.fill(f32::INFINITY);
                high.fill(f32::NEG_INFINITY);
                let mut ends = vec![[0.0f32; 2]; nx];
                for y in 0..by {
                    ends.fill([f32::INFINITY, f32::NEG_INFINITY]);
                    for (k, j) in around(z, nz).flat_map(|k| around(y, ny).map(move |j| (k, j))) {
                        for (ends, &value) in ends.iter_mut().zip(&volume[(k * ny + j) * nx..][..nx]) {
                            *ends = [ends[0].min(value), ends[1].max(value)];
                        }
                    }
                    for x in 0..bx {
                        let block = y * bx + x;
                        for ends in &ends[around(x, nx)] {
                            low[block] = low[block].min(ends[0]);
                            high[block] = high[block].max(ends[1]);
                        }
                    }
                }
            });
        });
        Ok(Self { size: [bx, by, bz], low, high })
    }

    /// A number for each block. A ray may leave out blocks whose number is at most its bar: 0, and in a
    /// search for the largest value what it has found.
    pub(super) fn keys(&self, mode: &Mode) -> Vec<f32> {
        let ends = self.low.iter().copied().zip(self.high.iter().copied());
        ends.map(|(low, high)| key(mode, low, high)).collect()
    }
}

fn key(mode: &Mode, low: f32, high: f32) -> f32 {
    let seen = |seen: bool| if seen { 1.0 } else { 0.0 };
    match mode {
        Mode::XRay => seen(low != 0.0 || high != 0.0),
        Mode::Maximum { .. } => high,
        Mode::Volume(transfer) => Transfer::most_opaque(transfer, low, high),
        Mode::Surface(surface) => seen(high >= surface.value),
    }
}
