//! What each pattern gives.

use rayspin_tune::input::bits;

/// Words of a record.
pub const FIELDS: usize = 30;
/// Words of the table that is read again and again.
pub const WORDS: usize = 4096;
/// Reads of a thread are this squared.
pub const READS: usize = 16;

/// What the last run did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pattern {
    /// Word i of the output is word i % lines · stride + i / lines.
    Stride(usize),
    /// Word i is word i + offset, counted round.
    Offset(usize),
    /// Within segments neighbours are 5 apart.
    Permuted(usize),
    /// Words in the order of a random permutation.
    Random,
    /// Sums of the first fields of records.
    Records(usize),
    /// Sums of reads of elements of `width` bytes, `stride` from the neighbour's.
    Table {
        /// Bytes of an element.
        width: usize,
        /// Elements from one neighbour to the next.
        stride: usize,
    },
    /// A copy of an image's bits.
    Image,
}

/// Where word `i` of the output of a copy comes from.
pub fn source(pattern: Pattern, index: &[u32], n: usize, i: usize) -> usize {
    match pattern {
        Pattern::Stride(stride) => {
            let lines = n / stride;
            if i < lines * stride { i % lines * stride + i / lines } else { i }
        }
        Pattern::Offset(by) => (i + by) % n,
        Pattern::Permuted(segment) => {
            let first = i / segment * segment;
            if first + segment <= n { first + (i - first) * 5 % segment } else { i }
        }
        Pattern::Random => index[i] as usize,
        _ => i,
    }
}

/// Field `field` of record `i`.
pub fn field(i: usize, field: usize) -> u32 {
    (i * FIELDS + field) as u32 ^ 0x5bd1_e995
}

/// The table.
pub fn word(index: usize) -> u32 {
    ((index % WORDS) as u32).wrapping_mul(2_654_435_761) >> 8
}

/// The sum of all reads of thread `thread` of a block.
pub fn reads(thread: usize, width: usize, stride: usize) -> u32 {
    let length = WORDS * 4 / width;
    let element = |index: usize| match width {
        1 => word(index / 4) >> (8 * (index % 4)) & 255,
        _ => (0..width / 4).fold(0u32, |sum, w| sum.wrapping_add(word(index * width / 4 + w))),
    };
    let mut sum = 0u32;
    for o in 0..READS {
        let start = (thread * stride + o * READS) % length;
        sum = (start..start + READS).fold(sum, |sum, index| sum.wrapping_add(element(index)));
    }
    sum
}

/// A random permutation (Fisher and Yates).
pub fn permute(seed: u64, index: &mut [u32]) {
    for i in (1..index.len()).rev() {
        index.swap(i, (bits(seed, i as u64) % (i as u64 + 1)) as usize);
    }
}
