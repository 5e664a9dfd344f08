//! What each pattern gives.

use rayspin_device::cuda::{AddressMode, Filter};
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
    /// Numbers between those of a table.
    Line,
    /// An image at places between its texels and outside.
    Modes(Outside),
}

/// How an image is read between its texels and outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outside {
    /// What lies outside.
    pub address_mode: AddressMode,
    /// What lies between texels.
    pub filter: Filter,
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

/// A texel: whole numbers below 2¹⁵. Their products with weights of 8 bits are exact in f32, so results are
/// compared bit by bit.
pub fn texel(index: usize) -> f32 {
    (bits(77, index as u64) >> 49) as f32
}

/// The place that output `i` reads in the table, in steps of 1/256 from the centre of texel 0.
fn steps(i: usize) -> usize {
    let mixed = (i as u32).wrapping_mul(2_654_435_761);
    (mixed ^ mixed >> 15) as usize % ((WORDS - 1) * 256)
}

/// (1 − α) T\[j\] + α T\[j + 1\] of the table at the place of output `i`.
pub fn between(i: usize) -> f32 {
    let (j, part) = (steps(i) / 256, (steps(i) % 256) as f64 / 256.0);
    ((1.0 - part) * f64::from(texel(j)) + part * f64::from(texel(j + 1))) as f32
}

/// The texel that counts for index `i` of `n`.
fn inside(i: i64, n: i64, mode: AddressMode) -> Option<i64> {
    match mode {
        AddressMode::Clamp => Some(i.clamp(0, n - 1)),
        AddressMode::Border => (0..n).contains(&i).then_some(i),
        AddressMode::Wrap => Some(i.rem_euclid(n)),
        AddressMode::Mirror => Some(i.rem_euclid(2 * n)).map(|i| i.min(2 * n - 1 - i)),
    }
}

/// Output `index` of an image of n × n texels: output (x, y) reads the place (2x − ⌊n/2⌋, 2y − ⌊n/2⌋), in
/// texels from the first one's centre, plus (5x + 3y) mod 15 − 7 sixteenths along both axes.
pub fn sampled(n: usize, Outside { address_mode, filter }: Outside, index: usize) -> f32 {
    let side = n as i64;
    let (x, y) = ((index % n) as i64, (index / n) as i64);
    let sixteenths = (5 * x + 3 * y) % 15 - 7;
    let value = |x: i64, y: i64| match (inside(x, side, address_mode), inside(y, side, address_mode)) {
        (Some(x), Some(y)) => f64::from(texel((y * side + x) as usize)),
        _ => 0.0,
    };
    let [x, y] = [x, y].map(|at| 2 * at - side / 2);
    if filter == Filter::Point {
        return value(x, y) as f32;
    }
    let (first, part) = (sixteenths.div_euclid(16), sixteenths.rem_euclid(16) as f64 / 16.0);
    let (x, y) = (x + first, y + first);
    let row = |y: i64| (1.0 - part) * value(x, y) + part * value(x + 1, y);
    ((1.0 - part) * row(y) + part * row(y + 1)) as f32
}
