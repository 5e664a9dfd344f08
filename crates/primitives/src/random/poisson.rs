//! Poisson numbers by inversion: k is the number of thresholds ⌊2⁶⁴ P(X ≤ j)⌋ that 64 random bits reach.

use rayspin_core::{Error, Result};

/// The largest mean: a table of some 20,000 thresholds.
pub const MOST: f64 = 1e6;

/// Thresholds of one mean.
#[derive(Debug, Clone)]
pub(crate) struct Table {
    /// The number that no threshold below which is kept stands for.
    pub(crate) first: u32,
    /// Ascending.
    pub(crate) thresholds: Vec<u64>,
}

impl Table {
    /// The table of mean λ. Errors: λ that is not a number from 0 to [`MOST`].
    pub(crate) fn new(lambda: f64) -> Result<Self> {
        if !(0.0..=MOST).contains(&lambda) {
            return Err(Error::value("mean of Poisson numbers", format!("0 to {MOST:e}"), lambda));
        }
        if lambda == 0.0 {
            return Ok(Self { first: 0, thresholds: Vec::new() });
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
        let split = (mode - first) as usize;
        // Each tail from its own end: what is far out keeps its digits.
        let mut sum = 0.0;
        let mut thresholds = Vec::with_capacity(shares.len());
        for &p in &shares[..split] {
            sum += p;
            thresholds.push((sum * scale) as u64);
        }
        sum = 0.0;
        let mut above = Vec::new();
        for &p in shares[split + 1..].iter().rev() {
            sum += p;
            above.push(u64::MAX - (sum * scale) as u64);
        }
        thresholds.extend(above.into_iter().rev());
        Ok(Self { first, thresholds })
    }

    /// The number that 64 random bits stand for.
    #[inline(always)]
    pub(crate) fn number(&self, bits: u64) -> u32 {
        self.first + self.thresholds.partition_point(|&t| t <= bits) as u32
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn thresholds_are_those_of_the_distribution() {
        for lambda in [1e-3, 0.7, 4.0, 33.3, 700.0, 1e6] {
            let table = Table::new(lambda).unwrap();
            assert!(table.thresholds.is_sorted());
            let (mut last, mut sum, mut mean, mut square) = (0.0, 0.0, 0.0, 0.0);
            for (j, &t) in table.thresholds.iter().chain([&u64::MAX]).enumerate() {
                let p = (t as f64 - last) / 2f64.powi(64);
                let k = f64::from(table.first) + j as f64 - lambda;
                (sum, mean, square) = (sum + p, mean + p * k, square + p * k * k);
                last = t as f64;
            }
            // Mean and variance are both λ; differences of 64-bit numbers in f64 are good to 1e-16 each.
            assert!((sum - 1.0).abs() < 1e-12, "{lambda}");
            assert!(mean.abs() < 1e-8 * lambda.sqrt(), "{lambda}: mean off by {mean}");
            assert!((square / lambda - 1.0).abs() < 1e-8, "{lambda}: {square}");
        }
        assert_eq!(Table::new(0.0).unwrap().number(u64::MAX), 0);
        let table = Table::new(2.0).unwrap();
        let e = 2f64.powi(64) * (-2f64).exp();
        assert!((table.thresholds[0] as f64 / e - 1.0).abs() < 1e-14);
        assert!(Table::new(f64::NAN).is_err() && Table::new(-1.0).is_err() && Table::new(1e7).is_err());
    }
}
