//! What is counted.

use std::fmt;

use rayspin_core::Result;
use rayspin_device::Cpu;
use rayspin_device::cpu::try_with_capacity;
use rayspin_tune::input::{bits, filled};

/// The samples, where an error names them.
const SAMPLES: &str = "samples of a histogram";

/// Kinds of samples: how alike neighbours are decides what a histogram costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Input {
    /// The lab journal's: from the middle bin in steps of trunc(16 (u − ½)(v − ½)), u and v uniform;
    /// reflected at both ends.
    Walk,
    /// Every bin alike, neighbours independent.
    Uniform,
    /// One value: every update goes to one bin.
    Constant,
    /// A slice of a body: air, soft tissue, bone, with noise; most samples in a tenth of the bins.
    Tomogram,
    /// Uniform over twice as many values as there are bins: half are not counted.
    Beyond,
}

impl fmt::Display for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Walk => "walk",
            Self::Uniform => "uniform",
            Self::Constant => "constant",
            Self::Tomogram => "tomogram",
            Self::Beyond => "half beyond the last bin",
        })
    }
}

/// A number below `below`, from 32 bits.
fn scaled(bits: u32, below: usize) -> u32 {
    ((u64::from(bits) * below as u64) >> 32) as u32
}

/// `n` samples for `bins` bins. Errors: memory.
pub(super) fn samples(cpu: &Cpu, kind: Input, n: usize, bins: usize, seed: u64) -> Result<Vec<u32>> {
    let each = |value: &(dyn Fn(usize, u64) -> u32 + Sync)| {
        filled(cpu, SAMPLES, n, |index| value(index, bits(seed, index as u64)))
    };
    match kind {
        Input::Walk => walk(n, bins, seed),
        Input::Uniform => each(&|_, bits| scaled(bits as u32, bins)),
        Input::Beyond => each(&|_, bits| scaled(bits as u32, 2 * bins)),
        Input::Constant => each(&|_, _| (bins / 2) as u32),
        Input::Tomogram => {
            let side = (n as f64).sqrt().max(1.0);
            each(&|index, bits| {
                let (x, y) = ((index as f64 % side) / side - 0.5, (index as f64 / side).floor() / side - 0.5);
                // Shares of the bins: air, tissue, bone as −1000, 40 and 700 on a scale from −1024 to 3071.
                let tissue = match (x / 0.42).powi(2) + (y / 0.32).powi(2) {
                    r if r > 1.0 => 0.006,
                    r if r < 0.03 => 0.42,
                    _ => 0.26,
                };
                // The sum of four uniform numbers is nearly normal.
                let sum: u64 = (0..4).map(|k| bits >> (16 * k) & 0xffff).sum();
                let noise = (sum as f64 / 65536.0 - 2.0) * 0.01;
                ((tissue + noise).max(0.0) * bins as f64).min(bins as f64 - 1.0) as u32
            })
        }
    }
}

fn walk(n: usize, bins: usize, seed: u64) -> Result<Vec<u32>> {
    let (mut position, last) = ((bins / 2) as i64, bins as i64 - 1);
    let mut samples = try_with_capacity(SAMPLES, n)?;
    samples.extend((0..n as u64).map(|i| {
        let here = position as u32;
        let bits = bits(seed, i);
        let uniform = |bits: u64| (bits & 0xffff_ffff) as f64 / 4_294_967_296.0 - 0.5;
        position += (16.0 * uniform(bits) * uniform(bits >> 32)).trunc() as i64;
        position = if position < 0 {
            -position
        } else if position > last {
            2 * last - position
        } else {
            position
        }
        .clamp(0, last);
        here
    }));
    Ok(samples)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn a_walk_stays_and_half_of_beyond_is_beyond() {
        let device = rayspin_device::Device::cpu_with_threads(2).unwrap();
        let samples = |kind, n, bins, seed| samples(device.cpu_side(), kind, n, bins, seed).unwrap();
        let walk = samples(Input::Walk, 100_000, 1024, 1);
        assert_eq!(walk[0], 512);
        let still = walk.windows(2).filter(|w| w[0] == w[1]).count() as f64 / 1e5;
        // P(|xy| < 1/16), x and y uniform on ±1/2: (1 + ln 4) / 4; five standard errors.
        assert!((still - (1.0 + 4f64.ln()) / 4.0).abs() < 5.0 * (0.25f64 / 1e5).sqrt(), "{still}");
        assert!(walk.windows(2).all(|w| w[0].abs_diff(w[1]) <= 4));
        for kind in [Input::Walk, Input::Uniform, Input::Constant, Input::Tomogram] {
            for bins in [1, 2, 7, 1024] {
                assert!(samples(kind, 1000, bins, 2).iter().all(|&v| (v as usize) < bins), "{kind} {bins}");
            }
        }
        let beyond = samples(Input::Beyond, 10_000, 16, 3).iter().filter(|&&v| v >= 16).count();
        assert!(beyond.abs_diff(5000) < 250);
    }
}
