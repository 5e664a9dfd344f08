//! Numbers as people read them, and as JSON keeps them.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// `value` with `digits` significant digits: plain between 10⁻⁴ and 10⁶, scientific outside. Digits before
/// the point are all shown.
///
/// ```
/// use rayspin_report::number::significant;
/// assert_eq!(significant(0.123456, 3), "0.123");
/// assert_eq!(significant(1.2345e-7, 3), "1.23e-7");
/// assert_eq!(significant(41.996, 3), "42.0");
/// assert_eq!(significant(f64::INFINITY, 3), "∞");
/// ```
pub fn significant(value: f64, digits: usize) -> String {
    if let Some(text) = not_finite(value) {
        return text.to_owned();
    }
    if value == 0.0 {
        return "0".to_owned();
    }
    let digits = digits.clamp(1, 17);
    let scientific = format!("{value:.*e}", digits - 1);
    // The exponent is read after rounding, so that 9.996 counts as 10.0.
    let exponent =
        scientific.split_once('e').and_then(|(_, exponent)| exponent.parse::<i32>().ok()).unwrap_or(0);
    if !(-4..6).contains(&exponent) {
        return scientific;
    }
    let decimals = usize::try_from(digits as i32 - 1 - exponent).unwrap_or(0);
    format!("{value:.decimals$}")
}

/// [`significant`] without zeros that end the digits: `0.5`, `100`, `1e10`.
pub fn short(value: f64, digits: usize) -> String {
    let text = significant(value, digits);
    let (mantissa, exponent) = match text.find('e') {
        Some(mark) => text.split_at(mark),
        None => (text.as_str(), ""),
    };
    let mantissa =
        if mantissa.contains('.') { mantissa.trim_end_matches('0').trim_end_matches('.') } else { mantissa };
    format!("{mantissa}{exponent}")
}

/// `value` with `decimals` digits after the point.
pub fn fixed(value: f64, decimals: usize) -> String {
    match not_finite(value) {
        Some(text) => text.to_owned(),
        None => {
            let text = format!("{value:.decimals$}");
            // A value that rounds to nothing has no sign left to show.
            match text.strip_prefix('-') {
                Some(rest) if rest.chars().all(|c| c == '0' || c == '.') => rest.to_owned(),
                _ => text,
            }
        }
    }
}

fn not_finite(value: f64) -> Option<&'static str> {
    if value.is_nan() {
        Some("NaN")
    } else if value == f64::INFINITY {
        Some("∞")
    } else if value == f64::NEG_INFINITY {
        Some("−∞")
    } else {
        None
    }
}

/// A span of time in the unit that suits it: `840 µs`, `12.3 ms`, `4.56 s`, `2 min 5 s`, `1 h 2 min`.
pub fn seconds(value: f64) -> String {
    let size = value.abs();
    if !value.is_finite() || value == 0.0 {
        format!("{} s", significant(value, 3))
    } else if size < 0.999_5e-6 {
        format!("{} ns", significant(value * 1e9, 3))
    } else if size < 0.999_5e-3 {
        format!("{} µs", significant(value * 1e6, 3))
    } else if size < 0.999_5 {
        format!("{} ms", significant(value * 1e3, 3))
    } else if size < 119.5 {
        format!("{} s", significant(value, 3))
    } else {
        let total = value.round();
        let sign = if total < 0.0 { "−" } else { "" };
        let total = total.abs() as u64;
        if total < 3600 {
            format!("{sign}{} min {} s", total / 60, total % 60)
        } else {
            format!("{sign}{} h {} min", total / 3600, total % 3600 / 60)
        }
    }
}

/// A number of bytes in binary units: `512 B`, `1.50 MiB`.
pub fn bytes(value: u64) -> String {
    if value < 1024 {
        return format!("{value} B");
    }
    let mut size = value as f64;
    let mut unit = "B";
    for next in ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"] {
        if size < 999.5 && unit != "B" {
            break;
        }
        size /= 1024.0;
        unit = next;
    }
    format!("{} {unit}", significant(size, 3))
}

/// Puts `1.2e-7` as `1.2×10⁻⁷`, and a hyphen before a number as a minus sign.
pub fn typeset(text: &str) -> String {
    let (mantissa, exponent) = match text.split_once('e') {
        Some((mantissa, exponent)) if exponent.parse::<i32>().is_ok() && mantissa.parse::<f64>().is_ok() => {
            (mantissa, Some(exponent))
        }
        _ => (text, None),
    };
    let mut out = match mantissa.strip_prefix('-') {
        Some(rest) if rest.parse::<f64>().is_ok() => format!("−{rest}"),
        _ => mantissa.to_owned(),
    };
    if let Some(exponent) = exponent {
        out.push_str("×10");
        out.push_str(&superscript(exponent));
    }
    out
}

/// An integer's text in superscript characters.
pub(crate) fn superscript(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '-' => '⁻',
            '1' => '¹',
            '2' => '²',
            '3' => '³',
            '0' | '4'..='9' => char::from_u32('⁰' as u32 + (c as u32 - '0' as u32)).unwrap_or(c),
            other => other,
        })
        .collect()
}

/// An `f64` that JSON keeps whole: what JSON has no number for is written as `"NaN"`, `"Infinity"` or
/// `"-Infinity"`, which the parsers of most languages read back.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Lossless(pub(crate) f64);

#[derive(Deserialize)]
#[serde(untagged)]
enum Stored {
    Number(f64),
    Text(String),
    Null(()),
}

impl Serialize for Lossless {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let value = self.0;
        if value.is_finite() {
            serializer.serialize_f64(value)
        } else if value.is_nan() {
            serializer.serialize_str("NaN")
        } else if value > 0.0 {
            serializer.serialize_str("Infinity")
        } else {
            serializer.serialize_str("-Infinity")
        }
    }
}

impl<'de> Deserialize<'de> for Lossless {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Stored::deserialize(deserializer)? {
            Stored::Number(value) => Ok(Self(value)),
            Stored::Null(()) => Ok(Self(f64::NAN)),
            Stored::Text(text) => match text.as_str() {
                "NaN" => Ok(Self(f64::NAN)),
                "Infinity" => Ok(Self(f64::INFINITY)),
                "-Infinity" => Ok(Self(f64::NEG_INFINITY)),
                _ => Err(serde::de::Error::custom(format!(
                    "expected a number, NaN, Infinity or -Infinity, found {text:?}"
                ))),
            },
        }
    }
}

/// `#[serde(with)]` for one `f64`.
pub(crate) mod lossless {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
        Lossless(*value).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
        Ok(Lossless::deserialize(deserializer)?.0)
    }
}

/// `#[serde(with)]` for a list of `f64`.
pub(crate) mod lossless_list {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(values: &[f64], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(values.iter().map(|&value| Lossless(value)))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<f64>, D::Error> {
        let stored = Vec::<Lossless>::deserialize(deserializer)?;
        Ok(stored.into_iter().map(|value| value.0).collect())
    }
}

/// `#[serde(with)]` for named `f64`s in order.
pub(crate) mod lossless_map {
    use super::*;
    use indexmap::IndexMap;

    pub(crate) fn serialize<S: Serializer>(
        values: &IndexMap<String, f64>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_map(values.iter().map(|(name, &value)| (name, Lossless(value))))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<IndexMap<String, f64>, D::Error> {
        let stored = IndexMap::<String, Lossless>::deserialize(deserializer)?;
        Ok(stored.into_iter().map(|(name, value)| (name, value.0)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn significant_digits_survive_rounding_and_extremes() {
        for (value, digits, text) in [
            (9.996, 3, "10.0"),
            (999_999.0, 3, "1.00e6"),
            (98_765.0, 2, "98765"),
            (0.000_1, 2, "0.00010"),
            (0.000_099, 2, "9.9e-5"),
            (-0.5, 3, "-0.500"),
            (0.0, 3, "0"),
            (f64::NAN, 3, "NaN"),
            (f64::NEG_INFINITY, 3, "−∞"),
            (f64::MIN_POSITIVE, 2, "2.2e-308"),
            (f64::MAX, 1, "2e308"),
            (1.0, 0, "1"),
        ] {
            assert_eq!(significant(value, digits), text, "{value} with {digits} digits");
        }
    }

    #[test]
    fn significant_agrees_with_the_value_to_half_a_unit_of_the_last_digit() {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        for _ in 0..2000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let mantissa = 1.0 + 9.0 * (state >> 11) as f64 / (1u64 << 53) as f64;
            let exponent = (state % 25) as i32 - 12;
            let value = mantissa * 10f64.powi(exponent);
            for digits in 1..8usize {
                let shown: f64 = significant(value, digits).parse().unwrap();
                let unit = 10f64.powi(exponent + 1 - digits as i32);
                assert!((shown - value).abs() <= 0.5000001 * unit, "{value} shown as {shown} with {digits}");
            }
        }
    }

    #[test]
    fn times_and_sizes_choose_their_unit() {
        for (value, text) in [
            (0.0, "0 s"),
            (3.2e-8, "32.0 ns"),
            (0.000_84, "840 µs"),
            (0.012_34, "12.3 ms"),
            (0.999_6, "1.00 s"),
            (59.95, "60.0 s"),
            (125.2, "2 min 5 s"),
            (3725.0, "1 h 2 min"),
            (f64::NAN, "NaN s"),
        ] {
            assert_eq!(seconds(value), text);
        }
        for (value, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.00 KiB"),
            (1023 * 1024, "0.999 MiB"),
            (1_610_612_736, "1.50 GiB"),
            (u64::MAX, "16.0 EiB"),
        ] {
            assert_eq!(bytes(value), text);
        }
    }

    #[test]
    fn typeset_touches_numbers_only() {
        assert_eq!(typeset("1.23e-17"), "1.23×10⁻¹⁷");
        assert_eq!(typeset("-4.5"), "−4.5");
        assert_eq!(typeset("-0.5e4"), "−0.5×10⁴");
        assert_eq!(typeset("-v"), "-v");
        assert_eq!(typeset("one"), "one");
        let shortened = [0.0, 100.0, 0.5, 1e10, 1.25e-9, f64::NAN].map(|value| short(value, 7));
        assert_eq!(shortened, ["0", "100", "0.5", "1e10", "1.25e-9", "NaN"]);
        assert_eq!(fixed(-0.001, 2), "0.00");
        assert_eq!(fixed(-0.01, 2), "-0.01");
    }

    #[test]
    fn what_json_cannot_say_comes_back() {
        for value in [0.1, -3.5e300, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let text = serde_json::to_string(&Lossless(value)).unwrap();
            let back: Lossless = serde_json::from_str(&text).unwrap();
            assert!(back.0 == value || (back.0.is_nan() && value.is_nan()), "{value} through {text}");
        }
        assert!(serde_json::from_str::<Lossless>("null").unwrap().0.is_nan());
        assert!(serde_json::from_str::<Lossless>("\"many\"").is_err());
    }
}
