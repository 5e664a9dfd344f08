//! Random inputs of ladders: the same for one seed on every machine.

use rayon::prelude::*;
use rayspin_core::Result;
use rayspin_device::{Cpu, cpu};

/// 64 mixed bits of a counter and a seed (Steele, Lea and Flood, "Fast splittable pseudorandom number
/// generators", 2014).
pub fn bits(seed: u64, index: u64) -> u64 {
    let mut z = seed.wrapping_add(index.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// `len` values on the host, `make(i)` at i, made by all threads of `cpu`. Errors: memory.
pub fn filled<T: Send>(
    cpu: &Cpu,
    what: &str,
    len: usize,
    make: impl Fn(usize) -> T + Send + Sync,
) -> Result<Vec<T>> {
    let mut values = cpu::try_with_capacity(what, len)?;
    cpu.run(|| {
        let made = (0..len).into_par_iter().with_min_len(1 << 12).map(make);
        made.collect_into_vec(&mut values);
    });
    Ok(values)
}

/// A number from −1 to 1, a multiple of 2⁻²³.
pub fn signed_unit(seed: u64, index: usize) -> f32 {
    ((bits(seed, index as u64) >> 40) as f32) / (1 << 23) as f32 - 1.0
}

/// `len` numbers from −1 to 1, multiples of 2⁻²³. Errors: memory.
pub fn uniform(cpu: &Cpu, seed: u64, len: usize) -> Result<Vec<f32>> {
    filled(cpu, "random numbers", len, |index| signed_unit(seed, index))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    #[test]
    fn numbers_fill_the_interval_evenly() {
        let device = rayspin_device::Device::cpu_with_threads(2).unwrap();
        let uniform = |seed, len| super::uniform(device.cpu_side(), seed, len);
        let x = uniform(3, 100_000).unwrap();
        let mean = x.iter().map(|&x| f64::from(x)).sum::<f64>() / 1e5;
        let square = x.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>() / 1e5;
        assert!(x.iter().all(|x| (-1.0..1.0).contains(x)));
        // Five standard errors of each.
        assert!(mean.abs() < 5.0 / (3.0 * 1e5f64).sqrt() && (square - 1.0 / 3.0).abs() < 5e-3);
        assert_ne!(x, uniform(4, 100_000).unwrap());
        assert!(matches!(uniform(4, 1 << 60), Err(rayspin_core::Error::Memory { .. })));
    }
}
