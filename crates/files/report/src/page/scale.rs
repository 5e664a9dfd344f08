//! Ticks and the way from values to places along an axis.

use crate::number::{superscript, typeset};

/// How values are spread along an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Spread {
    /// Evenly.
    #[default]
    Linear,
    /// By their logarithm; values that are not positive have no place.
    Log,
}

/// Beyond this a difference of two values could overflow.
const LARGEST: f64 = 1e300;

/// An axis laid out: its ends and ticks.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Scale {
    spread: Spread,
    low: f64,
    high: f64,
    pub(crate) ticks: Vec<Tick>,
}

/// A value worth naming and its name.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tick {
    pub(crate) value: f64,
    pub(crate) label: String,
}

impl Spread {
    /// Whether a value has a place on such an axis.
    pub(crate) fn holds(self, value: f64) -> bool {
        match self {
            Self::Linear => value.abs() <= LARGEST,
            Self::Log => value > 0.0 && value <= LARGEST,
        }
    }
}

impl Scale {
    /// Lays out an axis over the values that it can hold. Gives `None` if it can hold no value. `snap` widens
    /// the ends to ticks; otherwise they stay at the values' own, as long as two ticks lie between.
    pub(crate) fn over(values: impl Iterator<Item = f64>, spread: Spread, snap: bool) -> Option<Self> {
        let (mut low, mut high, mut whole) = (f64::INFINITY, f64::NEG_INFINITY, true);
        for value in values.filter(|&value| spread.holds(value)) {
            low = low.min(value);
            high = high.max(value);
            whole &= value.fract() == 0.0;
        }
        if low > high {
            return None;
        }
        let mut scale = match spread {
            Spread::Linear => Self::linear(low, high, whole),
            Spread::Log => Self::log(low, high),
        };
        if !snap && low < high {
            let inside = |tick: &&Tick| (low..=high).contains(&tick.value);
            if scale.ticks.iter().filter(inside).count() >= 2 {
                scale.ticks.retain(|tick| inside(&tick));
                (scale.low, scale.high) = (low, high);
            }
        }
        if snap && low < high {
            scale.trim(low, high);
        }
        Some(scale)
    }

    /// Where values pass a tick by a hair only, the axis ends with them instead of running on to the next
    /// tick.
    fn trim(&mut self, low: f64, high: f64) {
        const HAIR: f64 = 0.04;
        let gap = |scale: &Self, a: f64, b: f64| Some(scale.place(b)? - scale.place(a)?);
        let [.., before, _] = self.ticks.as_slice() else {
            return;
        };
        if self.ticks.len() > 2 && gap(self, before.value, high).is_some_and(|gap| gap < HAIR) {
            self.high = high.max(before.value);
            self.ticks.pop();
        }
        let [_, after, ..] = self.ticks.as_slice() else {
            return;
        };
        if self.ticks.len() > 2 && gap(self, low, after.value).is_some_and(|gap| gap < HAIR) {
            self.low = low.min(after.value);
            self.ticks.remove(0);
        }
    }

    fn linear(low: f64, high: f64, whole: bool) -> Self {
        let (low, high) = if low < high {
            (low, high)
        } else if whole {
            (low - 1.0, high + 1.0)
        } else {
            (low - 0.5 * low.abs(), high + 0.5 * high.abs())
        };
        let mut step = nice_step((high - low) / 5.0);
        if whole {
            step = step.max(1.0);
        }
        let first = (low / step).floor();
        let last = (high / step).ceil();
        let count = last - first;
        // Values that differ in their last digits only cannot carry ticks between them.
        if !(step > 0.0 && (1.0..=50.0).contains(&count) && first + 1.0 > first) {
            let ticks = [low, high].map(|value| Tick { value, label: typeset(&format!("{value:e}")) });
            return Self {
                spread: Spread::Linear,
                low,
                high: if high > low { high } else { low + low.abs().max(1.0) },
                ticks: ticks.into(),
            };
        }
        let values: Vec<f64> = (0..=count as i32).map(|i| (first + f64::from(i)) * step).collect();
        let largest = values.iter().fold(0.0f64, |most, value| most.max(value.abs()));
        let ticks = values.iter().map(|&value| Tick { value, label: linear_label(value, step, largest) });
        Self { spread: Spread::Linear, low: first * step, high: last * step, ticks: ticks.collect() }
    }

    fn log(low: f64, high: f64) -> Self {
        let decades = high.log10() - low.log10();
        let multiples: &[f64] = if decades > 2.5 { &[1.0] } else { &[1.0, 2.0, 5.0] };
        let from = low.log10().floor() as i32;
        let to = high.log10().ceil() as i32;
        // At most about eight labels, always at powers that the step divides, so that 1 keeps its label.
        let every = if multiples.len() > 1 { 1 } else { ((to - from + 7) / 8).max(1) };
        let from = from.div_euclid(every) * every;
        let mut candidates = Vec::new();
        let mut power = from - every;
        while power <= to + every {
            for &multiple in multiples {
                let value: f64 = format!("{multiple}e{power}").parse().unwrap_or(0.0);
                if value > 0.0 && value.is_finite() {
                    candidates.push((value, multiple, power));
                }
            }
            power += every;
        }
        let start = candidates.iter().rposition(|c| c.0 <= low * (1.0 + 1e-9)).unwrap_or(0);
        let end = candidates.iter().position(|c| c.0 >= high * (1.0 - 1e-9)).unwrap_or(candidates.len() - 1);
        let (start, end) = if start < end {
            (start, end)
        } else {
            (start.saturating_sub(1), (end + 1).min(candidates.len() - 1))
        };
        let kept = &candidates[start..=end];
        let plain = kept.iter().all(|&(value, ..)| (0.999e-3..1.001e4).contains(&value));
        let ticks: Vec<Tick> = kept
            .iter()
            .map(|&(value, multiple, power)| Tick { value, label: log_label(value, multiple, power, plain) })
            .collect();
        Self {
            spread: Spread::Log,
            low: ticks[0].value.min(low),
            high: ticks[ticks.len() - 1].value.max(high),
            ticks,
        }
    }

    /// Where a value lies, 0 at the low end and 1 at the high; `None` where it has no place.
    pub(crate) fn place(&self, value: f64) -> Option<f64> {
        if !self.spread.holds(value) {
            return None;
        }
        Some(match self.spread {
            Spread::Linear => (value - self.low) / (self.high - self.low),
            Spread::Log => (value.ln() - self.low.ln()) / (self.high.ln() - self.low.ln()),
        })
    }
}

/// The number nearest to `wish`, by ratio, among 1, 2, 5 times a power of ten.
fn nice_step(wish: f64) -> f64 {
    let power = wish.log10().floor();
    if !power.is_finite() {
        return 0.0;
    }
    let unit = 10f64.powf(power);
    let part = wish / unit;
    let bounds = [(2f64.sqrt(), 1.0), (10f64.sqrt(), 2.0), (50f64.sqrt(), 5.0)];
    let chosen = bounds.into_iter().find(|(bound, _)| part < *bound);
    chosen.map_or(10.0, |(_, multiple)| multiple) * unit
}

fn linear_label(value: f64, step: f64, largest: f64) -> String {
    let value = if value.abs() < step * 1e-6 { 0.0 } else { value };
    let finest = step.log10().floor();
    if value == 0.0 {
        "0".to_owned()
    } else if largest >= 1e6 || finest < -4.0 {
        let digits = (value.abs().log10().floor() - finest).clamp(0.0, 16.0) as usize;
        typeset(&format!("{value:.digits$e}"))
    } else {
        let decimals = (-finest).max(0.0) as usize;
        typeset(&format!("{value:.decimals$}"))
    }
}

fn log_label(value: f64, multiple: f64, power: i32, plain: bool) -> String {
    if plain {
        let decimals = usize::try_from(-power).unwrap_or(0);
        format!("{value:.decimals$}")
    } else if multiple == 1.0 {
        format!("10{}", superscript(&power.to_string()))
    } else {
        format!("{multiple}×10{}", superscript(&power.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(values: &[f64], spread: Spread, snap: bool) -> Vec<String> {
        let scale = Scale::over(values.iter().copied(), spread, snap).unwrap();
        scale.ticks.into_iter().map(|tick| tick.label).collect()
    }

    #[test]
    fn ticks_are_round_numbers() {
        assert_eq!(labels(&[0.0, 30.0], Spread::Linear, false), ["0", "5", "10", "15", "20", "25", "30"]);
        assert_eq!(labels(&[0.0, 2.0], Spread::Linear, false), ["0", "1", "2"]);
        assert_eq!(
            labels(&[0.03, 0.11], Spread::Linear, true),
            ["0.02", "0.04", "0.06", "0.08", "0.10", "0.12"]
        );
        assert_eq!(
            labels(&[-1e7, 1e7], Spread::Linear, true),
            ["−1.0×10⁷", "−5×10⁶", "0", "5×10⁶", "1.0×10⁷"]
        );
        assert_eq!(labels(&[1.0, 3e-5], Spread::Log, true), ["10⁻⁵", "10⁻⁴", "10⁻³", "10⁻²", "10⁻¹", "10⁰"]);
        assert_eq!(labels(&[0.12, 1.0], Spread::Log, true), ["0.1", "0.2", "0.5", "1"]);
        assert_eq!(
            labels(&[3.0, 700.0], Spread::Log, true),
            ["2", "5", "10", "20", "50", "100", "200", "500", "1000"]
        );
        assert_eq!(labels(&[4.0], Spread::Linear, true), ["3", "4", "5"]);
        assert_eq!(labels(&[1.0], Spread::Log, true), ["0.5", "1", "2"]);
    }

    #[test]
    fn an_axis_ends_with_values_a_hair_past_a_tick() {
        assert_eq!(labels(&[-0.004, 1.0], Spread::Linear, true).first().unwrap(), "0");
        assert_eq!(labels(&[1.0002, 3e-6], Spread::Log, true).last().unwrap(), "10⁰");
        let scale = Scale::over([-0.004, 1.0].into_iter(), Spread::Linear, true).unwrap();
        assert_eq!((scale.place(-0.004), scale.place(1.0)), (Some(0.0), Some(1.0)));
    }

    #[test]
    fn many_decades_skip_powers_but_keep_one() {
        let scale = Scale::over([1e-16, 1.0].into_iter(), Spread::Log, true).unwrap();
        assert!(scale.ticks.len() <= 10);
        assert_eq!(scale.ticks.last().unwrap().label, "10⁰");
    }

    #[test]
    fn any_range_has_ticks_within_and_values_inside() {
        let mut state = 7u64;
        let mut fresh = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1u64 << 53) as f64
        };
        let corners =
            [0.0, 5e-324, 1e-310, 1e-5, 1.0, 1.0 + f64::EPSILON, 1e16, 1e16 + 2.0, 1e300, -1e300, -1e-310];
        let mut pairs = Vec::new();
        for a in corners {
            for b in corners {
                pairs.push((a, b));
            }
        }
        for _ in 0..3000 {
            let a = (fresh() - 0.5) * 10f64.powf(40.0 * fresh() - 20.0);
            let b = if fresh() < 0.5 { a * (1.0 + fresh()) } else { fresh() * 10f64.powf(20.0 * fresh()) };
            pairs.push((a, b));
        }
        for (a, b) in pairs {
            for spread in [Spread::Linear, Spread::Log] {
                for snap in [false, true] {
                    let Some(scale) = Scale::over([a, b].into_iter(), spread, snap) else {
                        assert!(spread == Spread::Log && a <= 0.0 && b <= 0.0);
                        continue;
                    };
                    let shown = format!("{a:e} {b:e} {spread:?} {snap}: {scale:?}");
                    assert!((2..=60).contains(&scale.ticks.len()), "{shown}");
                    for value in [a, b] {
                        if let Some(place) = scale.place(value) {
                            assert!((-1e-9..=1.0 + 1e-9).contains(&place), "{place} of {shown}");
                        }
                    }
                    for pair in scale.ticks.windows(2) {
                        assert!(pair[0].value <= pair[1].value, "{shown}");
                    }
                    for tick in &scale.ticks {
                        let place = scale.place(tick.value).unwrap_or(0.0);
                        assert!((-0.01..=1.01).contains(&place), "tick at {place} of {shown}");
                        assert!(tick.label.chars().count() < 30, "{shown}");
                    }
                }
            }
        }
    }

    #[test]
    fn nothing_to_show_is_none() {
        assert_eq!(Scale::over([].into_iter(), Spread::Linear, true), None);
        assert_eq!(Scale::over([f64::NAN, f64::INFINITY].into_iter(), Spread::Linear, true), None);
        assert_eq!(Scale::over([0.0, -3.0].into_iter(), Spread::Log, true), None);
    }
}
