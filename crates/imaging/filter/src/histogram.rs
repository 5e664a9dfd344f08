//! Histograms of real numbers.

use rayon::prelude::*;
use rayspin_core::{Error, Result};
use rayspin_device::cpu::zeroed;
use rayspin_device::{Array, Device};
use rayspin_planes::histogram::counts;

/// The most bins: bins are numbered in 16 bits, with one number more for what lies outside.
pub const MOST_BINS: usize = 65_535;
/// Numbers that are counted at a time.
const AT_A_TIME: usize = 1 << 24;
/// The number of a value outside the range.
const OUTSIDE: u16 = u16::MAX;

/// How many numbers lie in each of equal bins:
///
/// h\[b\] = |{ v : b = ⌊(v − low) n / (high − low)⌋ }|, and v = high is in the last bin.
#[derive(Debug, Clone, PartialEq)]
pub struct Histogram {
    /// Where the first bin begins.
    pub low: f64,
    /// Where the last bin ends.
    pub high: f64,
    /// The number of values in each bin.
    pub counts: Vec<u64>,
    /// The number of values outside the range.
    pub outside: u64,
}

impl Histogram {
    /// Counts finite numbers in bins between `range`, or between the least and the largest number. Where
    /// these are equal the range is 1 wide, as NumPy has it.
    ///
    /// Errors: no numbers, or one that is not finite; a number of bins that is not from 1 to [`MOST_BINS`]; a
    /// range out of order; memory.
    ///
    /// ```
    /// use rayspin_device::Device;
    /// use rayspin_filter::Histogram;
    ///
    /// let found = Histogram::of(&Device::cpu()?, &[0.0, 1.0, 1.5, 4.0], 4, None)?;
    /// assert_eq!((found.low, found.high, found.counts), (0.0, 4.0, vec![1, 2, 0, 1]));
    /// # Ok::<(), rayspin_core::Error>(())
    /// ```
    pub fn of(device: &Device, values: &[f32], bins: usize, range: Option<[f64; 2]>) -> Result<Self> {
        if !(1..=MOST_BINS).contains(&bins) {
            return Err(Error::value("bins", format!("1 to {MOST_BINS}"), bins));
        }
        let (low, high) = match range {
            Some([low, high]) if low < high && low.is_finite() && high.is_finite() => (low, high),
            Some(range) => {
                return Err(Error::value("range of the histogram", "LOW below HIGH", format!("{range:?}")));
            }
            None => Self::range(values)?,
        };
        let mut histogram = Self { low, high, counts: vec![0; bins], outside: 0 };
        let mut numbers = zeroed("numbers of bins", values.len().min(AT_A_TIME))?;
        for part in values.chunks(AT_A_TIME) {
            numbers.truncate(part.len());
            let number = |value: &f32| histogram.place(*value).map_or(OUTSIDE, |(bin, _)| bin as u16);
            device.cpu_side().run(|| {
                numbers.par_iter_mut().zip(part).for_each(|(to, value)| *to = number(value));
            });
            let samples = Array::from_slice(device, &[part.len()], &numbers)?;
            let mut some = Array::zeros(device, &[bins])?;
            counts(&samples, &mut some)?;
            for (sum, count) in histogram.counts.iter_mut().zip(some.read()?.iter()) {
                *sum += u64::from(*count);
            }
        }
        histogram.outside = values.len() as u64 - histogram.counts.iter().sum::<u64>();
        Ok(histogram)
    }

    /// The least and the largest number, or half of 1 on both sides of the only one.
    fn range(values: &[f32]) -> Result<(f64, f64)> {
        let (mut low, mut high) = (f32::INFINITY, f32::NEG_INFINITY);
        for (index, &value) in values.iter().enumerate() {
            if !value.is_finite() {
                let what = "numbers of a histogram".to_owned();
                return Err(Error::NotFinite { what, index, found: value.to_string() });
            }
            (low, high) = (low.min(value), high.max(value));
        }
        match (f64::from(low), f64::from(high)) {
            _ if values.is_empty() => Err(Error::value("numbers of a histogram", "at least one", "none")),
            (low, high) if low < high => Ok((low, high)),
            (low, _) => Ok((low - 0.5, low + 0.5)),
        }
    }

    /// Where bin `bin` begins. Where `bin` is the number of bins, the end of the last one.
    pub fn edge(&self, bin: usize) -> f64 {
        let bins = self.counts.len();
        if bin >= bins { self.high } else { self.low + (self.high - self.low) * bin as f64 / bins as f64 }
    }

    /// The bin of a value and where in it the value lies, from 0 to 1.
    pub(crate) fn place(&self, value: f32) -> Option<(usize, f64)> {
        let (value, bins) = (f64::from(value), self.counts.len());
        if !(self.low..=self.high).contains(&value) {
            return None;
        }
        let place = (value - self.low) * bins as f64 / (self.high - self.low);
        let bin = (place as usize).min(bins - 1);
        Some((bin, place - bin as f64))
    }
}
