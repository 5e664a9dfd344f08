//! How numbers are stored in 16 bits.

use super::encode;

/// The smallest and largest of some numbers, and whether all are whole.
pub(super) struct Range {
    low: f32,
    high: f32,
    whole: bool,
}

impl Default for Range {
    fn default() -> Self {
        Self { low: f32::INFINITY, high: f32::NEG_INFINITY, whole: true }
    }
}

impl Range {
    pub(super) fn low(&self) -> f32 {
        self.low
    }

    pub(super) fn limits(&self) -> [f64; 2] {
        [self.low.into(), self.high.into()]
    }

    pub(super) fn add(&mut self, value: f32) {
        (self.low, self.high) = (self.low.min(value), self.high.max(value));
        self.whole = self.whole && value.fract() == 0.0;
    }
}

/// How numbers are stored in 16 bits: `slope` · stored + `intercept`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Scale {
    pub(super) slope: f64,
    pub(super) intercept: f64,
    /// Whether the stored numbers have a sign.
    pub(super) signed: bool,
}

impl Scale {
    /// With a sign. Whole numbers that fit are stored as they are, or moved where the range alone fits.
    /// Others are rounded to the finest step at which the range fits.
    pub(super) fn of(range: &Range) -> Self {
        let (low, high) = (f64::from(range.low), f64::from(range.high));
        let (least, most) = (f64::from(i16::MIN), f64::from(i16::MAX));
        let signed = true;
        if range.whole && high - low <= most - least {
            let fits = low >= least && high <= most;
            return Self { slope: 1.0, intercept: if fits { 0.0 } else { low - least }, signed };
        }
        // Both are rounded to what fits into 16 characters; the margin is more than that.
        let slope = ((high - low) + 1e-8 * low.abs().max(high.abs())) / 65530.0;
        Self { slope: read_back(slope), intercept: read_back(0.5 * (low + high)), signed }
    }

    /// Without an intercept, as programs that know no slope expect of MR: 0 is stored as 0. Numbers that are
    /// none below zero have no sign.
    pub(super) fn through_zero(range: &Range) -> Self {
        let (low, high) = (f64::from(range.low), f64::from(range.high));
        let signed = low < 0.0;
        let most = f64::from(if signed { u16::MAX / 2 } else { u16::MAX });
        let largest = low.abs().max(high.abs());
        let slope =
            if range.whole && largest <= most { 1.0 } else { read_back(largest * (1.0 + 1e-8) / most) };
        Self { slope, intercept: 0.0, signed }
    }

    /// The lowest and the highest number that can be stored.
    pub(super) fn limits(&self) -> [i32; 2] {
        if self.signed { [i16::MIN.into(), i16::MAX.into()] } else { [0, u16::MAX.into()] }
    }

    /// The bits of the stored number.
    pub(super) fn stored(&self, value: f32) -> u16 {
        let number = ((f64::from(value) - self.intercept) / self.slope).round();
        let [least, most] = self.limits();
        number.clamp(least.into(), most.into()) as i32 as u16
    }
}

/// The number that a reader of its text has.
fn read_back(number: f64) -> f64 {
    encode::decimal(number).parse().unwrap_or(number)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn back(scale: &Scale, number: f32) -> f64 {
        let stored = scale.stored(number);
        let stored = if scale.signed { f64::from(stored as i16) } else { f64::from(stored) };
        scale.slope * stored + scale.intercept
    }

    fn range(numbers: &[f32]) -> Range {
        let mut range = Range::default();
        numbers.iter().for_each(|&number| range.add(number));
        range
    }

    proptest! {
        #[test]
        fn no_value_leaves_sixteen_bits(numbers in prop::collection::vec(-1e30f32..1e30, 1..20), exponent in -70..0) {
            let numbers: Vec<f32> = numbers.iter().map(|v| v * 10f32.powi(exponent) + 3.0).collect();
            let range = range(&numbers);
            let [low, high] = [range.low, range.high].map(f64::from);
            for (scale, width, steps) in [
                (Scale::of(&range), high - low, 130_000.0),
                (Scale::through_zero(&range), low.abs().max(high.abs()), if low < 0.0 { 65_000.0 } else { 130_000.0 }),
            ] {
                for &number in &numbers {
                    let off = (back(&scale, number) - f64::from(number)).abs();
                    let allowed = width / steps + 1e-8 * f64::from(number.abs());
                    prop_assert!(off <= allowed * 1.01, "{number} {scale:?}");
                }
            }
            prop_assert_eq!(back(&Scale::through_zero(&range), 0.0), 0.0);
        }

        #[test]
        fn decimals_fit_and_are_near(mantissa in -10f64..10.0, exponent in -300..300) {
            let number = mantissa * 10f64.powi(exponent);
            let text = encode::decimal(number);
            prop_assert!(text.len() <= 16, "{text}");
            let found: f64 = text.parse().unwrap();
            prop_assert!((found - number).abs() <= 1e-8 * number.abs(), "{text} {number}");
        }
    }

    #[test]
    fn whole_numbers_are_stored_as_they_are() {
        for (low, high, slope, intercept) in [
            (-1024.0, 3071.0, 1.0, 0.0),
            (-32768.0, 32767.0, 1.0, 0.0),
            (0.0, 65535.0, 1.0, 32768.0),
            (40000.0, 40000.0, 1.0, 72768.0),
        ] {
            let scale = Scale::of(&range(&[low, high]));
            assert_eq!((scale.slope, scale.intercept), (slope, intercept));
            let through = Scale::through_zero(&range(&[low, high]));
            assert_eq!((through.intercept, through.signed), (0.0, low < 0.0));
            for value in [low, high] {
                assert_eq!(back(&scale, value), f64::from(value));
                assert!(low == -32768.0 || (through.slope, back(&through, value)) == (1.0, value.into()));
            }
        }
        assert_eq!(Scale::through_zero(&range(&[0.0])), Scale { slope: 1.0, intercept: 0.0, signed: false });
    }
}
