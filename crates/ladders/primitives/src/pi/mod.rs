//! π by throwing points at the square \[−1, 1\]²: π ≈ 4 h / n, where h of n points lie in the disc.
//!
//! h is an integer and its points are a stream of [`crate::random`], so that it is the same on every
//! processor.

mod cpu;
mod cuda;
mod ladder;
pub mod reference;
mod variants;

use rayspin_core::{Error, Result};
use rayspin_device::{Backend, Device};
use rayspin_tune::tuned;

use crate::random::Stream;

pub use ladder::{Data, Pi, Problem};

/// The most points: up to here a sum of hits in f64 is exact.
pub const MOST: u64 = 1 << 53;

/// What points say of π.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Estimate {
    /// n.
    pub points: u64,
    /// h.
    pub hits: u64,
}

impl Estimate {
    /// 4 h / n.
    pub fn pi(&self) -> f64 {
        4.0 * self.hits as f64 / self.points as f64
    }

    /// The standard error 4 √(p (1 − p) / n) with p = h/n.
    pub fn sigma(&self) -> f64 {
        let p = self.hits as f64 / self.points as f64;
        4.0 * (p * (1.0 - p) / self.points as f64).sqrt()
    }
}

/// Counts the first `points` points of `stream`: the size of a coordinate is (2 c + 1)/2²⁶, c the upper 25
/// bits of a word each.
///
/// Errors: no points or more than [`MOST`], errors of the device.
pub fn estimate(stream: Stream, points: u64, device: &Device) -> Result<Estimate> {
    if !(1..=MOST).contains(&points) {
        return Err(Error::value("points of an estimate of π", format!("1 to {MOST}"), points));
    }
    let hits = match device.backend() {
        Backend::Cpu(cpu) => cpu::threads(cpu, stream, points),
        Backend::Cuda(cuda) => {
            let mut sums = cuda::Sums::new(device)?;
            let config = tuned(&Pi, &Problem { points }, &variants::gpu_carry(), device);
            let grid = cuda::Grid::of(&config, cuda)?;
            cuda::count(cuda, "carried", grid, stream, points, &mut sums)?;
            sums.integer.read()?.first().copied().unwrap_or_default()
        }
    };
    Ok(Estimate { points, hits })
}
