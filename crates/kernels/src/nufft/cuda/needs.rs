//! The GPU memory of a plan, before it is made.

use num_complex::Complex;
use rayspin_core::{Real, Trajectory};
use rayspin_device::cuda::Properties;

use super::tiles::Tiles;
use super::{most_items, points, slot_points};
use crate::fft::cuda::PaddedFft;
use crate::nufft::kernel::Kernel as Window;
use crate::nufft::layout::Layout;

/// Bytes of a plan on a GPU.
#[derive(Debug, Clone, Copy)]
pub(in crate::nufft) struct Needs {
    /// Bytes that the plan holds.
    pub(in crate::nufft) plan: u64,
    /// Peak bytes while the plan is made.
    pub(in crate::nufft) planning: u64,
    /// Bytes of workspace for one item of a batch.
    pub(in crate::nufft) item: u64,
}

impl Needs {
    pub(in crate::nufft) fn new<R: Real>(
        trajectory: &Trajectory,
        matrix: &[usize],
        layout: &Layout,
        window: &Window,
        properties: &Properties,
    ) -> Self {
        let tiles = Tiles::new::<R>(matrix.len(), layout.fine, window.width, properties);
        let (samples, dims) = trajectory.points().dim();
        let mut counts = vec![0u32; tiles.count()];
        for k in trajectory.points().rows() {
            counts[tile(&tiles, matrix, |axis| k[axis])] += 1;
        }
        let most = slot_points(samples);
        let slots: usize = counts.iter().map(|n| n.div_ceil(most) as usize).sum();
        let runs = counts.iter().filter(|&&n| n > most).count();
        let outer = 3 - matrix.len();
        let fft = PaddedFft::<R>::bytes_needed(matrix, &layout.fine[outer..]);
        let held = (8 + dims * size_of::<R>()) * samples;
        let tables = 16 * slots + 8 * runs + 4 * tiles.count();
        let cells = tiles.cells() + slots * tiles.padded::<R>();
        Self {
            plan: (held + tables) as u64 + fft,
            planning: points::sorting_bytes::<R>(samples, dims, tiles.count())
                .max((held + tables) as u64 + fft),
            item: (cells * size_of::<Complex<R>>()) as u64,
        }
    }

    /// Maximum items of a batch that are transformed at once.
    pub(in crate::nufft) fn items(&self) -> usize {
        most_items(self.item)
    }
}

/// The tile of a point, as `locate` in `points.cu` finds it; component `axis` is x, y, z.
fn tile(tiles: &Tiles, matrix: &[usize], component: impl Fn(usize) -> f64) -> usize {
    let half = 0.5 * tiles.width as f64;
    (0..matrix.len()).rev().fold(0, |key, axis| {
        let inverse = 1.0 / matrix[matrix.len() - 1 - axis] as f64;
        let (fine, count) = (tiles.fine[2 - axis], tiles.tiles[2 - axis]);
        let k = component(axis);
        let turns = k.mul_add(inverse, -(k * inverse).floor());
        let first = turns.mul_add(fine as f64, -half).ceil();
        let first = if first < 0.0 { first + fine as f64 } else { first };
        key * count + (first as usize * count / fine).min(count - 1)
    })
}
