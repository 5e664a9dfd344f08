use std::cmp::Ordering;

use ndarray::{Array, ArrayView, Dimension};
use rayspin_core::{Error, Result};
use serde::{Deserialize, Serialize};

/// How a picture chooses the values for black and white.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Window {
    /// Percentiles of the finite values, 0 … 100, linearly interpolated between neighbours in order.
    Percentile {
        /// Percentile shown black.
        low: f64,
        /// Percentile shown white.
        high: f64,
    },
    /// For any image: from the lowest value, or from the 0.5th percentile where values below 0 occur, to the
    /// 99.5th percentile, but at most to twice the level of the brightest tissue away from the edge. Neither
    /// a few voxels far below the others, as in images with streaks, nor a bright rim hide the rest.
    Preview,
    /// Given values.
    Range {
        /// Value shown black.
        low: f32,
        /// Value shown white.
        high: f32,
    },
}

impl Default for Window {
    /// Percentiles 0.5 and 99.5: a few bright voxels do not darken the picture.
    fn default() -> Self {
        Self::Percentile { low: 0.5, high: 99.5 }
    }
}

/// The values shown black and white; `low < high` unless every value is the same.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// Value shown black.
    pub low: f32,
    /// Value shown white.
    pub high: f32,
}

impl Limits {
    /// −π … π, for phase.
    pub const PHASE: Self = Self { low: -std::f32::consts::PI, high: std::f32::consts::PI };

    /// Where `value` lies between the limits, clamped to 0 … 1. NaN is 0. Equal limits map values above them
    /// to 1 and all others to 0.
    pub fn fraction(self, value: f32) -> f32 {
        let (low, high) = (f64::from(self.low), f64::from(self.high));
        let value = f64::from(value);
        if value.is_nan() {
            0.0
        } else if high > low {
            ((value - low) / (high - low)).clamp(0.0, 1.0) as f32
        } else {
            f32::from(u8::from(value > high))
        }
    }
}

impl Limits {
    /// Says that a picture of `values`, `grey` by these limits, is black or white throughout, and why.
    ///
    /// ```
    /// use ndarray::array;
    /// use rayspin_imaging::display::{Limits, to_grey};
    ///
    /// let (values, limits) = (array![-1000.0f32, 40.0], Limits { low: 500.0, high: 1500.0 });
    /// let words = limits.blank(values.view(), to_grey(values.view(), limits).view()).unwrap_or_default();
    /// assert_eq!(words, "every pixel is black: the values go from -1000 to 40, the window from 500 to 1500");
    /// ```
    pub fn blank<D: Dimension>(
        self,
        values: ArrayView<'_, f32, D>,
        grey: ArrayView<'_, u8, D>,
    ) -> Option<String> {
        let first = *grey.iter().next()?;
        if !matches!(first, u8::MIN | u8::MAX) || grey.iter().any(|&level| level != first) {
            return None;
        }
        let colour = if first == u8::MIN { "black" } else { "white" };
        let finite = values.iter().copied().filter(|value| value.is_finite());
        let (low, high) =
            finite.fold((f32::INFINITY, f32::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)));
        Some(match low.total_cmp(&high) {
            Ordering::Less => format!(
                "every pixel is {colour}: the values go from {low} to {high}, the window from {} to {}",
                self.low, self.high
            ),
            Ordering::Equal => format!("every pixel is {colour}: every value is {low}"),
            Ordering::Greater => format!("every pixel is {colour}: no value is finite"),
        })
    }
}

impl Window {
    /// The minimum and maximum of the finite values.
    pub const FULL: Self = Self::Percentile { low: 0.0, high: 100.0 };

    /// The limits of this window for `values`. NaN and infinities do not count.
    ///
    /// Errors: percentiles outside 0 … 100 or a range that is not finite, bounds out of order, or, for
    /// percentiles, no finite value.
    pub fn limits<D: Dimension>(self, values: ArrayView<'_, f32, D>) -> Result<Limits> {
        match self {
            Self::Range { low, high } => {
                if !(low.is_finite() && high.is_finite() && low < high) {
                    let found = format!("{low} … {high}");
                    return Err(Error::value("display window", "finite values, low below high", found));
                }
                Ok(Limits { low, high })
            }
            Self::Preview => {
                let signed = values.iter().any(|value| *value < 0.0 && value.is_finite());
                let percentiles = Self::Percentile { low: if signed { 0.5 } else { 0.0 }, high: 99.5 };
                let Limits { low, high } = percentiles.limits(values.view())?;
                let Some([least, most]) = tissue(&values) else { return Ok(Limits { low, high }) };
                let black = if signed { least.min(0.0) } else { low };
                let span = most - black;
                Ok(match span > 0.0 {
                    true => Limits { low: low.max(black - span), high: high.min(most + span) },
                    false => Limits { low, high },
                })
            }
            Self::Percentile { low, high } => {
                if !(0.0 <= low && low <= high && high <= 100.0) {
                    let found = format!("{low} … {high}");
                    return Err(Error::value(
                        "display window",
                        "percentiles from 0 to 100, low to high",
                        found,
                    ));
                }
                let mut finite: Vec<f32> = values.iter().copied().filter(|v| v.is_finite()).collect();
                if finite.is_empty() {
                    return Err(Error::value("image to display", "a finite value", "none"));
                }
                Ok(Limits { low: percentile(&mut finite, low), high: percentile(&mut finite, high) })
            }
        }
    }
}

/// Slices with fewer pixels along a side have no rim to speak of.
const LEAST_SIDE: usize = 16;
/// How far blocks of tissue may lie from the middle of a slice, as a part of the way to its edge.
const WITHIN: f64 = 0.8;
/// The width of the middle half of a block's values, relative to their median: noise alone has 0.7.
const EVEN: f32 = 0.25;
/// The part of the blocks that are tissue, at least.
const PART: f64 = 0.05;

/// The lowest level of tissue, and the highest one away from the edge: medians of blocks that are no noise.
/// None where there is hardly any.
fn tissue<D: Dimension>(values: &ArrayView<'_, f32, D>) -> Option<[f32; 2]> {
    let values = values.view().into_dyn();
    let &[.., ny, nx] = values.shape() else { return None };
    if ny.min(nx) < LEAST_SIDE {
        return None;
    }
    let [height, width] = [ny, nx].map(|n| (n / 32).max(4));
    let mut block = vec![1; values.ndim()];
    block[values.ndim() - 2] = height;
    block[values.ndim() - 1] = width;
    let [rows, columns] = [ny / height, nx / width];
    let off = |block: usize, side: usize, n: usize| (2 * block + 1) as f64 * side as f64 / n as f64 - 1.0;
    let (mut inner, mut levels, mut least) = (0usize, Vec::new(), f32::INFINITY);
    for (index, block) in values.exact_chunks(block).into_iter().enumerate() {
        let [y, x] = [off(index / columns % rows, height, ny), off(index % columns, width, nx)];
        let is_inner = y.hypot(x) <= WITHIN;
        inner += usize::from(is_inner);
        let mut values: Vec<f32> = block.iter().copied().filter(|value| value.is_finite()).collect();
        if values.is_empty() {
            continue;
        }
        let [low, median, high] = [25.0, 50.0, 75.0].map(|percent| percentile(&mut values, percent));
        if high - low < EVEN * median.abs() {
            // Air of CT lies at the edge.
            least = least.min(median);
            levels.extend(is_inner.then_some(median));
        }
    }
    let most = levels.iter().copied().max_by(f32::total_cmp)?;
    (levels.len() as f64 >= PART * inner as f64).then_some([least, most])
}

/// The interpolated value at `percent` of the way through the sorted `values`. Reorders `values`.
fn percentile(values: &mut [f32], percent: f64) -> f32 {
    let rank = percent / 100.0 * (values.len() - 1) as f64;
    let (index, weight) = (rank.floor() as usize, rank.fract());
    let (_, &mut value, above) = values.select_nth_unstable_by(index, f32::total_cmp);
    // The last value has no neighbour above; its weight is 0.
    let next = above.iter().copied().min_by(f32::total_cmp).unwrap_or(value);
    (f64::from(value) + weight * (f64::from(next) - f64::from(value))) as f32
}

/// 8-bit grey: `limits.low` is 0, `limits.high` is 255, linear between and clamped beyond. NaN is 0.
pub fn to_grey<D: Dimension>(values: ArrayView<'_, f32, D>, limits: Limits) -> Array<u8, D> {
    values.mapv(|value| (limits.fraction(value) * 255.0).round() as u8)
}
