//! Fingerprints of arrays of the caller's.

/// Numbers whose bits are compared.
pub(crate) trait Bits: Copy {
    fn bits(self) -> u64;
}

impl Bits for f32 {
    fn bits(self) -> u64 {
        self.to_bits().into()
    }
}

impl Bits for f64 {
    fn bits(self) -> u64 {
        self.to_bits()
    }
}

/// A number that differs where a value of an array differs, but for one case in 2^64. It reads each value
/// once.
pub(crate) fn fingerprint<T: Bits>(count: usize, value: impl Fn(usize) -> T) -> u64 {
    const LANES: usize = 8;
    // Odd, so that each step is one to one: a single value that changes always shows.
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let step = |sum: u64, bits: u64| (sum ^ bits).wrapping_mul(FACTOR).rotate_left(29);
    let mut lanes = [FACTOR; LANES];
    let whole = count - count % LANES;
    for first in (0..whole).step_by(LANES) {
        for (lane, sum) in lanes.iter_mut().enumerate() {
            *sum = step(*sum, value(first + lane).bits());
        }
    }
    let rest = (whole..count).fold(count as u64, |sum, index| step(sum, value(index).bits()));
    lanes.into_iter().fold(rest, step)
}
