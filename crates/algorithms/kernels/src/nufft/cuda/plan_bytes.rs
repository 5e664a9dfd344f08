//! The GPU memory of a plan, before it is made.

use num_complex::Complex;
use rayon::prelude::*;
use rayspin_core::{Real, Trajectory};
use rayspin_device::cpu::simd::{Level, Simd, dispatch};
use rayspin_device::cuda::Properties;

use super::tiles::Tiles;
use super::{most_items, points, slot_points};
use crate::fft::cuda::PaddedFft;
use crate::nufft::kernel::Kernel as Window;
use crate::nufft::layout::Layout;

/// Bytes of a plan on a GPU.
#[derive(Debug, Clone, Copy)]
pub(in crate::nufft) struct PlanBytes {
    /// Bytes that the plan holds.
    pub(in crate::nufft) plan: u64,
    /// Peak bytes while the plan is made.
    pub(in crate::nufft) planning: u64,
    /// Bytes of workspace for one item of a batch.
    pub(in crate::nufft) item: u64,
}

impl PlanBytes {
    pub(in crate::nufft) fn new<R: Real>(
        trajectory: &Trajectory,
        matrix: &[usize],
        layout: &Layout,
        window: &Window,
        properties: &Properties,
    ) -> Self {
        let tiles = Tiles::new::<R>(matrix.len(), layout.fine, window.width, properties);
        let (samples, dims) = trajectory.points().dim();
        let counts = counts(&tiles, matrix, trajectory);
        let most = slot_points(samples);
        let slots: usize = counts.iter().map(|n| n.div_ceil(most) as usize).sum();
        let outer = 3 - matrix.len();
        let fft = PaddedFft::<R>::bytes_needed(matrix, &layout.fine[outer..]);
        let held = ((8 + dims * size_of::<R>()) * samples) as u64;
        let tables = points::Slots::bytes_needed(samples, tiles.count());
        let cells = tiles.cells() + slots * tiles.padded::<R>();
        Self {
            plan: held + tables + fft,
            planning: points::sorting_bytes::<R>(samples, dims, tiles.count()).max(held + tables + fft),
            item: (cells * size_of::<Complex<R>>()) as u64,
        }
    }

    /// Maximum items of a batch that are transformed at once.
    pub(in crate::nufft) fn items(&self) -> usize {
        most_items(self.item)
    }
}

/// The number of points in each tile.
pub(super) fn counts(tiles: &Tiles, matrix: &[usize], trajectory: &Trajectory) -> Vec<u32> {
    let points = trajectory.points();
    let points = points.as_standard_layout();
    let (dims, level) = (matrix.len(), Level::new());
    let none = || vec![0u32; tiles.count()];
    let parts = points.as_slice().unwrap_or_default().par_chunks(dims << 16);
    let counted = parts.fold(none, |mut counts, points| {
        dispatch!(level, simd => count(simd, tiles, matrix, points, &mut counts));
        counts
    });
    counted.reduce(none, |mut counts, more| {
        counts.iter_mut().zip(more).for_each(|(count, more)| *count += more);
        counts
    })
}

/// Adds points to the counts; with an instruction set that has a fused multiply-add, which is a function call
/// otherwise.
#[inline(always)]
fn count<S: Simd>(_: S, tiles: &Tiles, matrix: &[usize], points: &[f64], counts: &mut [u32]) {
    for k in points.chunks_exact(matrix.len()) {
        counts[tile(tiles, matrix, k)] += 1;
    }
}

/// The tile of a point, as `locate` in `points.cu` finds it; component `axis` is x, y, z.
#[inline(always)]
fn tile(tiles: &Tiles, matrix: &[usize], k: &[f64]) -> usize {
    let half = 0.5 * tiles.width as f64;
    let mut key = 0;
    // A loop: a closure would not get the instruction set.
    for (axis, &k) in k.iter().enumerate().rev() {
        let inverse = 1.0 / matrix[matrix.len() - 1 - axis] as f64;
        let (fine, count) = (tiles.fine[2 - axis], tiles.tiles[2 - axis]);
        let turns = k.mul_add(inverse, -(k * inverse).floor());
        let first = turns.mul_add(fine as f64, -half).ceil();
        let first = if first < 0.0 { first + fine as f64 } else { first };
        key = key * count + (first as usize * count / fine).min(count - 1);
    }
    key
}
