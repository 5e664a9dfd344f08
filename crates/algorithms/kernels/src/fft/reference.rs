//! The transform as its formula says, in f64: the oracle.

use num_complex::Complex64;

use super::cpu::Direction;

/// X\[k\] = Σ_j x\[j\] e^{∓i2π(j−c)(k−c)/n} along each axis of a batch of C-order arrays of `shape`, c =
/// ⌊n/2⌋ when `centred`, else 0. O(n) operations an element and axis.
pub fn dft(data: &[Complex64], shape: &[usize], direction: Direction, centred: bool) -> Vec<Complex64> {
    let sign = match direction {
        Direction::Forward => -1.0,
        Direction::Inverse => 1.0,
    };
    let mut data = data.to_vec();
    for (axis, &n) in shape.iter().enumerate() {
        let inner: usize = shape[axis + 1..].iter().product();
        let centre = if centred { n / 2 } else { 0 };
        let mut out = vec![Complex64::ZERO; data.len()];
        for (index, value) in out.iter_mut().enumerate() {
            let k = index / inner % n;
            let first = index - k * inner;
            for j in 0..n {
                // Reducing the product modulo n in integers makes the phase exact for any size.
                let turns = (j + n - centre) % n * ((k + n - centre) % n) % n;
                let phase = sign * std::f64::consts::TAU * turns as f64 / n as f64;
                *value += data[first + j * inner] * Complex64::cis(phase);
            }
        }
        data = out;
    }
    data
}

/// The element of `k` in flat order of the forward transform of one array, not centred.
pub fn dft_at(data: &[Complex64], shape: &[usize], k: usize) -> Complex64 {
    let term = |(flat, value): (usize, &Complex64)| {
        let (mut turns, mut j, mut k) = (0.0, flat, k);
        for &n in shape.iter().rev() {
            turns += (j % n * (k % n) % n) as f64 / n as f64;
            (j, k) = (j / n, k / n);
        }
        value * Complex64::cis(-std::f64::consts::TAU * turns)
    };
    data.iter().enumerate().map(term).sum()
}
