//! What must arrive.

use rayspin_tune::input::bits;

/// Value `i` of what the host has: a whole number below 2²⁰.
pub fn from(seed: u64, i: usize) -> f32 {
    (bits(seed, i as u64) >> 44) as f32
}

/// Value `i` of what the device has.
pub fn of(seed: u64, i: usize) -> f32 {
    from(!seed, i)
}

/// Value `i` of what comes back: x ← 1 · x + 1 in each round, which f32 has exactly below 2²⁴.
pub fn grown(seed: u64, rounds: u32, i: usize) -> f32 {
    from(seed, i) + rounds as f32
}
