//! Random inputs of ladders: the same for one seed on every machine.

/// 64 mixed bits of a counter and a seed (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014).
pub fn bits(seed: u64, at: u64) -> u64 {
    let mut z = seed.wrapping_add(at.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// `len` numbers from −1 to 1, multiples of 2⁻²³.
pub fn uniform(seed: u64, len: usize) -> Vec<f32> {
    (0..len as u64).map(|at| ((bits(seed, at) >> 40) as f32) / (1 << 23) as f32 - 1.0).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn numbers_fill_the_interval_evenly() {
        let x = super::uniform(3, 100_000);
        let mean = x.iter().map(|&x| f64::from(x)).sum::<f64>() / 1e5;
        let square = x.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>() / 1e5;
        assert!(x.iter().all(|x| (-1.0..1.0).contains(x)));
        // Five standard errors of each.
        assert!(mean.abs() < 5.0 / (3.0 * 1e5f64).sqrt() && (square - 1.0 / 3.0).abs() < 5e-3);
        assert_ne!(x, super::uniform(4, 100_000));
    }
}
