use num_complex::Complex;
use rayspin_core::{Real, Result, voxels};

/// How a problem is cut into batches and slabs, from its sizes alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::toeplitz) struct Cut {
    /// Coils or images at a time.
    pub(in crate::toeplitz) coils: usize,
    /// Frequencies of the last axis in a slab.
    pub(in crate::toeplitz) width: usize,
}

impl Cut {
    /// Bytes of the slabs of all coils that are transformed together. Slabs that fit in the second-level
    /// cache were slower: 16 coils of 256³ took 31.9 ms in slabs of 16 frequencies, 30.0 of 32, 28.1 whole
    /// (benches/results/2026-11-21-h100).
    const SLAB_BYTES: usize = 512 << 20;
    /// Bytes of the work buffer of the coils that are transformed together.
    const WORK_BYTES: usize = 1 << 30;
    /// A slab is a multiple of this: whole cache lines.
    const LEAST_WIDTH: usize = 16;

    /// Coils at a time at most.
    const COILS: usize = 32;

    pub(super) fn new<R: Real>(matrix: [usize; 3], padded: [usize; 3]) -> Self {
        let element = size_of::<Complex<R>>();
        let bytes =
            |sizes: [usize; 3]| sizes.iter().fold(element, |bytes, n| bytes.saturating_mul(*n)).max(1);
        let coils = (Self::WORK_BYTES / bytes([matrix[0], matrix[1], padded[2]])).clamp(1, Self::COILS);
        let column = bytes([matrix[0], padded[1], coils]);
        let width = match Self::SLAB_BYTES / column / Self::LEAST_WIDTH * Self::LEAST_WIDTH {
            _ if padded[1] == 1 => padded[2],
            width => width.max(Self::LEAST_WIDTH).min(padded[2]),
        };
        Self { coils, width }
    }

    /// At most `coils` coils at a time.
    pub(super) fn limit_batch(&mut self, coils: usize) {
        self.coils = self.coils.min(coils).max(1);
    }

    /// Number of coils at a time for `coils` coils, as even as possible.
    pub(super) fn together(&self, coils: usize) -> usize {
        let coils = coils.max(1);
        coils.div_ceil(coils.div_ceil(self.coils.max(1)))
    }

    /// Complex elements of one coil: after the last axis, and of a slab.
    pub(super) fn coil_len(&self, matrix: [usize; 3], padded: [usize; 3]) -> Result<(usize, usize)> {
        let slab = if padded[1] == 1 { 0 } else { voxels(&[matrix[0], padded[1], self.width])? };
        Ok((voxels(&[matrix[0], matrix[1], padded[2]])?, slab))
    }
}
