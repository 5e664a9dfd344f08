//! Poisson numbers by Walker's alias method. The 64-bit numbers are divided into 2ᵇ columns. A column stands
//! for one number below its threshold and for another from there on. The numbers' shares are integers that
//! add up to 2⁶⁴: the same on every processor.

use rayspin_core::{Error, Result};

/// The largest mean: a table of some 20,000 numbers.
pub const MOST: f64 = 1e6;

/// The alias table of one mean.
#[derive(Debug, Clone)]
pub(crate) struct Table {
    /// The least number.
    pub(crate) first: u32,
    /// b: a word's upper bits are its column.
    pub(crate) bits: u32,
    /// First an entry for each column. Its lowest 32 bits are the upper half of the column's threshold. Then
    /// come, in 16 bits each, the number for words below the threshold and the number for other words, both
    /// less `first`. Another entry for each column follows: the lower half of its threshold.
    pub(crate) columns: Vec<u64>,
}

impl Table {
    /// The table of mean λ. Errors: λ that is not a number from 0 to [`MOST`].
    pub(crate) fn new(lambda: f64) -> Result<Self> {
        if !(0.0..=MOST).contains(&lambda) {
            return Err(Error::value("mean of Poisson numbers", format!("0 to {MOST:e}"), lambda));
        }
        // Relative to the most frequent number, outward until nothing is left that 64 bits would show.
        const LEAST: f64 = 1e-24;
        let mode = lambda.floor() as u32;
        let mut below = Vec::new();
        let (mut p, mut k) = (1.0, mode);
        while k > 0 && p > LEAST {
            p *= f64::from(k) / lambda;
            k -= 1;
            below.push(p);
        }
        below.reverse();
        let first = mode - below.len() as u32;
        let mut shares = below;
        (p, k) = (1.0, mode);
        while p > LEAST {
            shares.push(p);
            k += 1;
            p *= lambda / f64::from(k);
        }
        let total: f64 = shares.iter().sum();
        let scale = 2f64.powi(64) / total;
        // What the most frequent number has is what the others leave: the sum is 2⁶⁴.
        let most = (mode - first) as usize;
        let mut weights: Vec<u128> = shares.iter().map(|p| (p * scale) as u128).collect();
        weights[most] = (1 << 64) - (weights.iter().sum::<u128>() - weights[most]);
        Ok(Self::of(first, weights))
    }

    /// Columns of equal width from weights that add up to 2⁶⁴ (Vose, 1991).
    fn of(first: u32, mut weights: Vec<u128>) -> Self {
        let bits = weights.len().next_power_of_two().trailing_zeros().max(1);
        let columns = 1usize << bits;
        weights.resize(columns, 0);
        let width = 1u128 << (64 - bits);
        let (mut small, mut large): (Vec<usize>, Vec<usize>) =
            (0..columns).partition(|&k| weights[k] < width);
        let mut made = vec![0; 2 * columns];
        let mut give = |column: usize, below: usize, above: usize, share: u128| {
            let threshold = column as u128 * width + share;
            made[column] = (above as u64) << 48 | (below as u64) << 32 | (threshold >> 32) as u64;
            made[columns + column] = threshold as u64 & 0xffff_ffff;
        };
        while let (Some(&from), Some(column)) = (large.last(), small.pop()) {
            let share = weights[column];
            // Where it has no share, below its threshold is nothing.
            give(column, if share == 0 { from } else { column }, from, share);
            weights[from] -= width - share;
            if weights[from] < width {
                large.pop();
                small.push(from);
            }
        }
        for column in small.into_iter().chain(large) {
            give(column, column, column, 0);
        }
        Self { first, bits, columns: made }
    }

    /// The number that a word stands for, if its 32 bits decide that.
    #[inline(always)]
    pub(crate) fn number(&self, word: u32) -> Option<u32> {
        let column = self.columns[(word >> (32 - self.bits)) as usize];
        let values = (column >> 32) as u32;
        let value = if word < column as u32 { values & 0xffff } else { values >> 16 };
        (word != column as u32).then_some(self.first + value)
    }

    /// The number that 64 bits stand for.
    #[inline(always)]
    pub(crate) fn number_of(&self, bits: u64) -> u32 {
        let column = (bits >> (64 - self.bits)) as usize;
        let threshold = self.columns[column] << 32 | self.columns[column + (1 << self.bits)];
        let values = (self.columns[column] >> 32) as u32;
        self.first + if bits < threshold { values & 0xffff } else { values >> 16 }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    /// What each number has of 2⁶⁴, from the columns.
    fn shares(table: &Table) -> Vec<u128> {
        let (columns, width) = (1usize << table.bits, 1u128 << (64 - table.bits));
        let mut shares = vec![0u128; columns];
        for column in 0..columns {
            let start = column as u128 * width;
            let entry = table.columns[column];
            let threshold = u128::from(entry << 32 | table.columns[columns + column]);
            let below = threshold.saturating_sub(start).min(width);
            shares[(entry >> 32 & 0xffff) as usize] += below;
            shares[(entry >> 48) as usize] += width - below;
        }
        shares
    }

    #[test]
    fn columns_give_every_number_its_share() {
        for lambda in [0.0, 1e-3, 0.7, 4.0, 33.3, 700.0, 1e6] {
            let table = Table::new(lambda).unwrap();
            let shares = shares(&table);
            assert_eq!(shares.iter().sum::<u128>(), 1 << 64, "{lambda}");
            let (mut mean, mut square) = (0.0, 0.0);
            let (mut p, mut worst) = (0.0f64, 0.0f64);
            for (j, &share) in shares.iter().enumerate() {
                let share = share as f64 / 2f64.powi(64);
                let k = f64::from(table.first) + j as f64;
                (mean, square) = (mean + share * (k - lambda), square + share * (k - lambda).powi(2));
                // P(k)/P(k − 1) = λ/k.
                if j > 0 {
                    p *= lambda / k;
                    worst = worst.max((share - p).abs());
                }
                p = share;
            }
            // Mean and variance are both λ.
            assert!(mean.abs() < 1e-8 * (1.0 + lambda).sqrt(), "{lambda}: mean off by {mean}");
            assert!((square - lambda).abs() <= 1e-8 * lambda, "{lambda}: {square}");
            assert!(worst < 1e-14, "{lambda}: {worst}");
        }
        let table = Table::new(2.0).unwrap();
        assert!((shares(&table)[0] as f64 / 2f64.powi(64) / (-2f64).exp() - 1.0).abs() < 1e-14);
        assert!(Table::new(f64::NAN).is_err() && Table::new(-1.0).is_err() && Table::new(1e7).is_err());
    }

    #[test]
    fn words_decide_but_at_the_upper_halves_of_thresholds() {
        let table = Table::new(12.5).unwrap();
        for column in 0..1usize << table.bits {
            let at = table.columns[column] as u32;
            for word in [at.wrapping_sub(1), at, at.wrapping_add(1)] {
                let numbers = [0, 1, u32::MAX / 2, u32::MAX]
                    .map(|l| table.number_of(u64::from(word) << 32 | u64::from(l)));
                match table.number(word) {
                    Some(number) => assert_eq!(numbers, [number; 4], "{word:x}"),
                    None => {
                        // Both are found where the lower bits have both sides of the threshold.
                        let lower = table.columns[column + (1 << table.bits)] as u32;
                        let first = u64::from(word) << 32;
                        let [below, above] =
                            [lower.saturating_sub(1), lower].map(|l| table.number_of(first | u64::from(l)));
                        let values = (table.columns[column] >> 32) as u32;
                        assert_eq!(above, table.first + (values >> 16));
                        assert!(lower == 0 || below == table.first + (values & 0xffff));
                    }
                }
            }
        }
    }

    #[test]
    fn words_that_do_not_decide_are_completed_on_every_device() {
        use rayspin_device::Array;

        use crate::random::draw::{LOWER, blocks};
        use crate::random::{Stream, fill_poisson};

        // Tables in shared memory and elsewhere.
        for lambda in [25_000.0, 1e6] {
            let table = Table::new(lambda).unwrap();
            let words = |seed, block| blocks::<1>(block, 5, seed).map(|[word]| word);
            // A stream whose first thousand numbers ask for more than 32 bits somewhere.
            let open = |seed| (0..250).find(|&b| words(seed, b).iter().any(|&w| table.number(w).is_none()));
            let (seed, block) = (0..).find_map(|seed| open(seed).map(|block| (seed, block))).unwrap();
            let (upper, lower) = (words(seed, block), words(seed, block | LOWER));
            let want = [0, 1, 2, 3].map(|i| table.number_of(u64::from(upper[i]) << 32 | u64::from(lower[i])));
            for device in rayspin_emu::devices().unwrap() {
                let n = 4 * (block as usize + 1);
                let mut out = Array::zeros(&device, &[n]).unwrap();
                fill_poisson(Stream { seed, number: 5 }, lambda, &mut out).unwrap();
                assert_eq!(out.to_vec().unwrap()[n - 4..], want, "{lambda} on {}", device.describe());
            }
        }
    }
}
