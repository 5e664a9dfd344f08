//! A block of 4 × 4 numbers: the transform, the quantiser and the codes of ITU-T H.264.

use rayspin_core::{Error, Result};

/// The largest quantiser parameter.
pub const MOST_QP: u32 = 51;

/// What a coefficient is multiplied by, by QP mod 6 and [`class`], in units of 2⁻¹⁵: the reciprocal of the
/// step over the gain of both transforms. The standard leaves it to encoders; these are the reference
/// encoder's.
const FORWARD: [[i32; 3]; 6] = [
    [13107, 5243, 8066],
    [11916, 4660, 7490],
    [10082, 4194, 6554],
    [9362, 3647, 5825],
    [8192, 3355, 5243],
    [7282, 2893, 4559],
];
/// What a level is multiplied by, likewise: normAdjust4x4 of 8.5.9.
const BACK: [[i32; 3]; 6] =
    [[10, 16, 13], [11, 18, 14], [13, 20, 16], [14, 23, 18], [16, 25, 20], [18, 29, 23]];
/// Places in the order in which levels are coded, from low to high frequencies: the zig-zag scan of 8.5.6.
pub const ZIGZAG: [usize; 16] = [0, 1, 4, 8, 5, 2, 3, 6, 9, 12, 13, 10, 7, 11, 14, 15];

/// Rows and columns 0 and 2 of the transform have another norm than 1 and 3: 0 where both are even, 1 where
/// both are odd, else 2.
pub const fn class(index: usize) -> usize {
    match (index / 4 % 2, index % 2) {
        (0, 0) => 0,
        (1, 1) => 1,
        _ => 2,
    }
}

/// The quantiser of a parameter QP: its step doubles every 6.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quantizer {
    /// Factors of coefficients, by [`class`].
    pub forward: [i32; 3],
    /// Factors of levels, by [`class`].
    pub back: [i32; 3],
    /// A level is (factor · |coefficient| + `rounding`) / 2^`shift`.
    pub shift: u32,
    /// A sixth of 2^`shift`, as the reference encoder has it for predictions from other frames: more becomes
    /// zero than by rounding.
    pub rounding: i32,
}

impl Quantizer {
    /// Errors: more than [`MOST_QP`].
    pub fn new(qp: u32) -> Result<Self> {
        if qp > MOST_QP {
            return Err(Error::value("quantiser parameter", format!("at most {MOST_QP}"), qp));
        }
        let (step, shift) = ((qp % 6) as usize, 15 + qp / 6);
        let back = BACK[step].map(|factor| factor << (qp / 6));
        Ok(Self { forward: FORWARD[step], back, shift, rounding: (1 << shift) / 6 })
    }

    /// Levels of the transform of `residual`, in the order of [`ZIGZAG`].
    #[inline(always)]
    pub fn levels(&self, residual: &[i32; 16]) -> [i16; 16] {
        let coefficients = forward(residual);
        ZIGZAG.map(|index| {
            let size = self.forward[class(index)] * coefficients[index].abs() + self.rounding;
            ((size >> self.shift) * coefficients[index].signum()) as i16
        })
    }

    /// The residual of a decoder.
    #[inline(always)]
    pub fn residual(&self, levels: &[i16; 16]) -> [i32; 16] {
        let mut coefficients = [0; 16];
        for (level, index) in levels.iter().zip(ZIGZAG) {
            coefficients[index] = i32::from(*level) * self.back[class(index)];
        }
        inverse(&coefficients)
    }
}

/// The transform of rows, then of columns.
#[inline(always)]
fn both(block: &[i32; 16], four: impl Fn([i32; 4]) -> [i32; 4]) -> [i32; 16] {
    let mut made = *block;
    for (stride, step) in [(4, 1), (1, 4)] {
        for line in 0..4 {
            let indices = [0, 1, 2, 3].map(|k| line * stride + k * step);
            for (index, value) in indices.into_iter().zip(four(indices.map(|index| made[index]))) {
                made[index] = value;
            }
        }
    }
    made
}

/// C X Cᵀ with the rows (1, 1, 1, 1), (2, 1, −1, −2), (1, −1, −1, 1), (1, −2, 2, −1) of C: additions and
/// shifts.
#[inline(always)]
fn forward(block: &[i32; 16]) -> [i32; 16] {
    both(block, |[a, b, c, d]| {
        let (outer, inner) = ([a + d, a - d], [b + c, b - c]);
        [outer[0] + inner[0], 2 * outer[1] + inner[1], outer[0] - inner[0], outer[1] - 2 * inner[1]]
    })
}

/// The inverse that decoders make, 8.5.12.2: halves are rounded down, and the sum's 64ths rounded to the
/// nearest.
#[inline(always)]
pub(super) fn inverse(coefficients: &[i32; 16]) -> [i32; 16] {
    let sums = both(coefficients, |[a, b, c, d]| {
        let (even, odd) = ([a + c, a - c], [b + (d >> 1), (b >> 1) - d]);
        [even[0] + odd[0], even[1] + odd[1], even[1] - odd[1], even[0] - odd[0]]
    });
    sums.map(|sum| (sum + 32) >> 6)
}

/// Bits of ue(n), the Exp-Golomb code of 9.1.
const fn unsigned(n: u32) -> u32 {
    2 * (n + 1).ilog2() + 1
}

/// Bits of se(n): positive numbers before negative ones of their size.
pub const fn signed(n: i32) -> u32 {
    unsigned(2 * n.unsigned_abs() - (n > 0) as u32)
}

/// Bits of levels: how many are not zero, and for each of them the zeros before it and its value.
#[inline(always)]
pub fn bits(levels: &[i16; 16]) -> u32 {
    let (mut bits, mut zeros, mut count) = (0, 0, 0);
    for &level in levels {
        if level == 0 {
            zeros += 1;
        } else {
            bits += unsigned(zeros) + signed(level.into());
            (zeros, count) = (0, count + 1);
        }
    }
    bits + unsigned(count)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    /// What both transforms make of a coefficient's basis function, by [`class`].
    const GAIN: [i32; 3] = [16, 25, 20];

    #[test]
    fn the_inverse_of_a_transform_is_the_block() {
        for seed in 0..200 {
            let pixel = |at: u64| (rayspin_tune::input::bits(seed, at) % 511) as i32 - 255;
            let block: [i32; 16] = std::array::from_fn(|at| pixel(at as u64));
            // 64/gain is whole in hundredths: the transform of 100 blocks, so that nothing is rounded.
            let mut coefficients = forward(&block);
            for (at, c) in coefficients.iter_mut().enumerate() {
                *c *= 6400 / GAIN[class(at)];
            }
            assert_eq!(inverse(&coefficients), block.map(|x| 100 * x));
            // The finest step is 0.625, so that no pixel is off by more than one.
            let finest = Quantizer::new(0).unwrap();
            let back = finest.residual(&finest.levels(&block));
            assert!(back.iter().zip(&block).all(|(a, b)| (a - b).abs() <= 1), "{back:?} of {block:?}");
        }
    }

    #[test]
    fn both_quantiser_tables_are_one_step() {
        // factor · factor · gain = 2¹⁵ · 64: coefficients come back in their size, for every step.
        for qp in 0..=MOST_QP {
            let q = Quantizer::new(qp).unwrap();
            for (class, gain) in GAIN.into_iter().enumerate() {
                let product = f64::from(q.forward[class]) * f64::from(q.back[class] * gain);
                let one = f64::from(1 << q.shift) * 64.0;
                assert!((product / one - 1.0).abs() < 2e-4, "QP {qp} class {class}: {}", product / one);
            }
        }
        assert!(Quantizer::new(52).is_err());
    }

    #[test]
    fn codes_have_the_lengths_of_the_standard() {
        // Table 9-2: 1, 010, 011, 00100 … 00111, 0001000; table 9-3: 0, 1, −1, 2, −2.
        assert_eq!([0, 1, 2, 3, 6, 7, 14, 15].map(unsigned), [1, 3, 3, 5, 5, 7, 7, 9]);
        assert_eq!([0, 1, -1, 2, -2, 3, -3, 4].map(signed), [1, 3, 3, 5, 5, 5, 5, 7]);
        let mut levels = [0; 16];
        assert_eq!(bits(&levels), 1);
        (levels[0], levels[3]) = (-1, 2);
        // Two levels; no zeros, −1; two zeros, 2.
        assert_eq!(bits(&levels), 3 + (1 + 3) + (3 + 5));
    }

    #[test]
    fn the_scan_goes_from_low_to_high_frequencies() {
        let mut places = ZIGZAG;
        let frequency = |at: usize| at / 4 + at % 4;
        assert!(ZIGZAG.windows(2).all(|two| frequency(two[0]) <= frequency(two[1])
            && (two[0] / 4).abs_diff(two[1] / 4) <= 1
            && (two[0] % 4).abs_diff(two[1] % 4) <= 1));
        places.sort_unstable();
        assert_eq!(places, std::array::from_fn(|at| at));
    }
}
