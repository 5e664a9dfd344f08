//! Fourier transforms of single lines: X(k) = Σ_j x(j) e^{∓i2πjk/n}, planned by `rustfft`.
//!
//! `rustfft` is generic: each crate that plans transforms compiles it anew, for each number type. It was a
//! third of the code of `rayspin-kernels`, which is compiled a second time for its tests. Here it is compiled
//! once.

use std::sync::Arc;

use rustfft::FftPlanner;
pub use rustfft::{Fft, FftNum};

/// Transforms of several lengths.
pub struct Lines<R> {
    /// With e^{−i2πjk/n}.
    pub forward: Vec<Arc<dyn Fft<R>>>,
    /// With e^{+i2πjk/n}, not scaled.
    pub inverse: Vec<Arc<dyn Fft<R>>>,
}

/// Transforms of `lengths` in f32.
///
/// ```
/// let lines = rayspin_line_fft::plan_f32(&[3]);
/// let mut line = [1.0f32.into(), 0.0.into(), 0.0.into()];
/// lines.forward[0].process(&mut line);
/// assert!(line.iter().all(|value| (value.re - 1.0).abs() < 1e-6));
/// ```
#[inline(never)]
pub fn plan_f32(lengths: &[usize]) -> Lines<f32> {
    plan(lengths)
}

/// Transforms of `lengths` in f64.
#[inline(never)]
pub fn plan_f64(lengths: &[usize]) -> Lines<f64> {
    plan(lengths)
}

fn plan<R: FftNum>(lengths: &[usize]) -> Lines<R> {
    let mut planner = FftPlanner::new();
    Lines {
        forward: lengths.iter().map(|&n| planner.plan_fft_forward(n)).collect(),
        inverse: lengths.iter().map(|&n| planner.plan_fft_inverse(n)).collect(),
    }
}
