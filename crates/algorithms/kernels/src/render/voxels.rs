//! A volume in memory that a cache holds well.

use rayon::prelude::*;
use rayspin_core::Result;
use rayspin_device::Cpu;
use rayspin_device::cpu::zeroed;

/// Numbers of a line of the cache.
const LINE: usize = 16;

/// The numbers of a volume `[z, y, x]`, and the distances of neighbours along x, y and z.
#[derive(Debug, Clone, Copy)]
pub(super) struct Voxels<'a> {
    pub(super) values: &'a [f32],
    pub(super) strides: [usize; 3],
}

impl<'a> Voxels<'a> {
    /// A volume without gaps, of `size` voxels along x, y and z.
    pub(super) fn dense(values: &'a [f32], [nx, ny, _]: [usize; 3]) -> Self {
        Self { values, strides: [1, nx, nx * ny] }
    }
}

/// A copy of a volume with gaps between its lines and slices: neighbours along y and z are an odd number of
/// lines of the cache apart. Where they are a power of two apart, as in 256³, all voxels along an axis share
/// one set of the cache, which holds 8 of them.
#[derive(Debug)]
pub(super) struct Spread {
    values: Vec<f32>,
    strides: [usize; 3],
}

fn strides([nx, ny, _]: [usize; 3]) -> [usize; 3] {
    let odd = |lines: usize| lines | 1;
    let line = odd(nx.div_ceil(LINE)) * LINE;
    [1, line, odd(ny * line / LINE) * LINE]
}

/// Bytes of the copy of a volume `[z, y, x]`.
pub(super) fn bytes([nz, ny, nx]: [u64; 3]) -> u64 {
    let line = (nx / LINE as u64 + 2) * LINE as u64;
    nz * (ny * line + LINE as u64) * size_of::<f32>() as u64
}

impl Spread {
    /// Errors: memory.
    pub(super) fn new(cpu: &Cpu, volume: &[f32], size: [usize; 3]) -> Result<Self> {
        let ([nx, ny, nz], strides) = (size, strides(size));
        let [_, line, slice] = strides;
        let mut values = zeroed("copy of the volume", slice * nz)?;
        cpu.run(|| {
            values.par_chunks_mut(slice).zip(volume.par_chunks(nx * ny)).for_each(|(to, from)| {
                for (to, from) in to.chunks_mut(line).zip(from.chunks(nx)) {
                    to[..nx].copy_from_slice(from);
                }
            });
        });
        Ok(Self { values, strides })
    }

    pub(super) fn voxels(&self) -> Voxels<'_> {
        Voxels { values: &self.values, strides: self.strides }
    }
}
