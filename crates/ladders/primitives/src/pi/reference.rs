//! The oracle.

use crate::random::{Stream, reference::words};

/// How many of the first `points` points of a stream lie in the disc, in f64: the sizes of coordinates have
/// 26 bits, so that nothing is rounded. Signs do not matter.
pub fn hits(stream: Stream, points: u64) -> u64 {
    let coordinate = |word: u32| f64::from(word >> 6 | 1) / 2f64.powi(26);
    (0..points)
        .filter(|i| {
            let w = words(i / 2, stream.number, stream.seed);
            let start = 2 * (i % 2) as usize;
            coordinate(w[start]).powi(2) + coordinate(w[start + 1]).powi(2) < 1.0
        })
        .count() as u64
}
