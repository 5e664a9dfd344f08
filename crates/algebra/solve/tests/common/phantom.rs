//! A series of low rank plus what is sparse in temporal frequency, and lines of k-space that differ from
//! frame to frame.

use std::f64::consts::TAU;

use ndarray::{ArrayD, IxDyn};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayspin_core::C64;

/// A still disc with an inset whose contrast rises, and a spot that pulsates three times: `[frame, y, x]` of
/// `n` voxels a side, and whether a voxel is the spot's.
pub(crate) fn phantom(frames: usize, n: usize) -> (Vec<C64>, Vec<bool>) {
    let voxels = (0..frames * n * n).map(|at| {
        let (time, y, x) = ((at / (n * n)) as f64 / frames as f64, at / n % n, at % n);
        let disc = |cy: f64, cx: f64, r: f64| (y as f64 / n as f64 - cy).hypot(x as f64 / n as f64 - cx) < r;
        let still = if disc(0.5, 0.5, 0.42) { C64::ONE } else { C64::ZERO };
        let rises =
            if disc(0.35, 0.4, 0.15) { C64::I * 0.8 * (1.0 - (-4.0 * time).exp()) } else { C64::ZERO };
        let spot = disc(0.65, 0.6, 0.08);
        let pulsates = if spot { 0.7 * (TAU * 3.0 * time).cos() } else { 0.0 };
        (still + rises + pulsates, spot)
    });
    voxels.unzip()
}

/// Which k-space positions are measured, `[frame, ky, kx]`: three lines at the centre, and a fifth of the
/// others at random.
pub(crate) fn sampled(frames: usize, n: usize, seed: u64) -> ArrayD<bool> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let lines: Vec<bool> = (0..frames * n).map(|_| rng.random_bool(0.2)).collect();
    ArrayD::from_shape_fn(IxDyn(&[frames, n, n]), |i| i[1].abs_diff(n / 2) < 2 || lines[i[0] * n + i[1]])
}
