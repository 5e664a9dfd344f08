//! The texts of a measurement's header, and values in them.
//!
//! A header is a number of named texts. `MeasYaps` is the protocol, in lines `key = value`. The others are
//! XProtocol: `<ParamLong."name"> { 1 2 }`, with hints in angle brackets before the values. The reader looks
//! at `Meas`, `Dicom`, `Config` and `Protocol`.

use std::collections::BTreeMap;

use super::file::{Measurement, TwixFile, word};
use crate::{Error, Result};

/// Bytes of a header at most: real ones have about one million.
const LONGEST: u64 = 64 << 20;
/// Characters of the name of a text at most.
const LONGEST_NAME: usize = 64;
/// Texts of a header, and values of a protocol, at most: real ones have 7, and some thousands.
const MOST_TEXTS: u32 = 64;
const MOST_VALUES: usize = 1 << 17;

/// The texts of a header, by name.
#[derive(Debug, Default)]
pub(super) struct Texts {
    named: BTreeMap<String, String>,
    /// The protocol's values, by key.
    protocol: BTreeMap<String, String>,
    /// Bytes of the header.
    pub(super) length: u64,
}

/// Bytes as UTF-8, else as Latin-1, which VB writes.
pub(super) fn latin(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => bytes.iter().map(|byte| char::from(*byte)).collect(),
    }
}

impl Texts {
    /// Reads the header of a measurement.
    ///
    /// Errors: a length beyond the measurement, texts beyond the header.
    pub(super) fn read(file: &TwixFile, measurement: &Measurement) -> Result<Self> {
        let there = measurement.end.saturating_sub(measurement.start);
        let start = file.read(measurement.start, 8.min(there), "header of the measurement")?;
        let length = word(&start, 0).map_or(0, u64::from);
        if !(8..=there.min(LONGEST)).contains(&length) {
            let expected = format!("from 8 to {} bytes", there.min(LONGEST));
            return Err(Error::field(&file.path, "length of the header", expected, length));
        }
        let bytes = file.read(measurement.start, length, "header of the measurement")?;
        let mut texts = Self { length, ..Self::default() };
        let mut rest = bytes.get(8..).unwrap_or_default();
        let count = word(&bytes, 4).unwrap_or(0);
        if count > MOST_TEXTS {
            return Err(Error::field(
                &file.path,
                "texts of the header",
                format!("at most {MOST_TEXTS}"),
                count,
            ));
        }
        for number in 0..count {
            let broken = |expected: &str, value: String| {
                Error::field(&file.path, format!("header: text {number}"), expected, value)
            };
            let name = rest.iter().take(LONGEST_NAME).position(|byte| *byte == 0).filter(|end| *end > 0);
            let name = name.and_then(|end| rest.get(..end)).ok_or_else(|| {
                broken(&format!("a name of 1 to {} characters", LONGEST_NAME - 1), "none".into())
            })?;
            let behind = rest.get(name.len() + 1..).unwrap_or_default();
            let length =
                word(behind, 0).map_or(usize::MAX, |length| usize::try_from(length).unwrap_or(usize::MAX));
            let text =
                behind.get(4..).and_then(|behind| Some((behind.get(..length)?, behind.get(length..)?)));
            let Some((text, behind)) = text else {
                let expected =
                    format!("at most {} bytes, as the header holds", behind.len().saturating_sub(4));
                return Err(broken(&expected, length.to_string()));
            };
            let end = text.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
            texts.named.insert(latin(name), latin(&text[..end]));
            rest = behind;
        }
        texts.protocol = texts.named.get("MeasYaps").map(|text| values(text)).unwrap_or_default();
        Ok(texts)
    }

    /// A value of the protocol, without quotation marks.
    pub(super) fn protocol(&self, key: &str) -> Option<&str> {
        self.protocol.get(key).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// A number of the protocol.
    pub(super) fn number(&self, key: &str) -> Option<f64> {
        parsed(self.protocol(key)?)
    }

    /// The values of a parameter, from the first of these texts that states any.
    pub(super) fn values(&self, texts: &[&str], name: &str) -> Vec<String> {
        let stated = texts.iter().filter_map(|text| self.named.get(*text)).map(|text| parameter(text, name));
        stated.into_iter().find(|values| !values.is_empty()).unwrap_or_default()
    }

    /// The numbers of a parameter, likewise.
    pub(super) fn numbers(&self, texts: &[&str], name: &str) -> Vec<f64> {
        self.values(texts, name).iter().filter_map(|value| parsed(value)).collect()
    }

    /// The text of a parameter, likewise.
    pub(super) fn word(&self, texts: &[&str], name: &str) -> Option<String> {
        self.values(texts, name).into_iter().next().filter(|value| !value.trim().is_empty())
    }
}

/// A finite number, decimal or hexadecimal.
fn parsed(text: &str) -> Option<f64> {
    let text = text.trim();
    if let Some(digits) = text.strip_prefix("0x") {
        return u64::from_str_radix(digits, 16).ok().map(|value| value as f64);
    }
    text.parse::<f64>().ok().filter(|value| value.is_finite())
}

/// The lines `key = value` between the marks of a protocol.
fn values(text: &str) -> BTreeMap<String, String> {
    let lines = text.lines().skip_while(|line| !line.contains("### ASCCONV BEGIN")).skip(1);
    let lines = lines.take_while(|line| !line.contains("### ASCCONV END"));
    let pairs = lines.filter_map(|line| line.split_once('='));
    let value = |value: &str| match value.trim().strip_prefix('"') {
        // Underscores are written in UTF-7.
        Some(quoted) => quoted.trim_matches('"').replace("+AF8-", "_"),
        None => value.split('#').next().unwrap_or_default().trim().to_owned(),
    };
    pairs.take(MOST_VALUES).map(|(key, text)| (key.trim().to_owned(), value(text))).collect()
}

/// The values of a parameter of an XProtocol, from the first place that states any.
fn parameter(text: &str, name: &str) -> Vec<String> {
    /// Places that are looked at: a hostile header may have millions.
    const MOST: usize = 64;
    let mark = format!(".\"{name}\">");
    let mut rest = text;
    for _ in 0..MOST {
        let Some(place) = rest.find(&mark) else { break };
        let (before, behind) = (&rest[..place], &rest[place + mark.len()..]);
        rest = behind;
        let kind = before.rsplit('<').next().unwrap_or_default();
        let known = ["ParamLong", "ParamDouble", "ParamString", "ParamBool"].contains(&kind);
        if let Some(braced) = behind.trim_start().strip_prefix('{').filter(|_| known) {
            let stated = listed(braced);
            if !stated.is_empty() {
                return stated;
            }
        }
    }
    Vec::new()
}

/// The values up to the closing brace, without the hints before them.
fn listed(text: &str) -> Vec<String> {
    /// Values of a parameter at most, and bytes that may hold them.
    const MOST: usize = 4096;
    const LONGEST: usize = 1 << 16;
    let end = (0..=LONGEST.min(text.len())).rfind(|end| text.is_char_boundary(*end)).unwrap_or(0);
    let (mut out, mut rest) = (Vec::new(), text[..end].trim_start());
    while out.len() < MOST {
        let Some(first) = rest.chars().next() else { break };
        let (value, behind) = match first {
            '}' | '{' => break,
            // A hint, `<Precision> 6` or `<LimitRange> { 0 1 }`: its tag, and its value.
            '<' => match rest.split_once('>').map(|(_, behind)| behind.trim_start()) {
                Some(behind) if behind.starts_with('{') => match behind.split_once('}') {
                    Some((_, behind)) => (None, behind),
                    None => break,
                },
                Some(behind) => (None, token(behind).1),
                None => break,
            },
            _ => {
                let (value, behind) = token(rest);
                (Some(value), behind)
            }
        };
        out.extend(value.map(str::to_owned));
        rest = behind.trim_start();
    }
    out
}

/// A word, or a text in quotation marks, and what follows.
fn token(text: &str) -> (&str, &str) {
    match text.strip_prefix('"') {
        Some(quoted) => quoted.split_once('"').unwrap_or((quoted, "")),
        None => {
            let end = text.find(|c: char| c.is_whitespace() || matches!(c, '}' | '{' | '<'));
            // A brace in place of a word ends the list.
            text.split_at(end.unwrap_or(text.len()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stand_behind_names_and_hints() {
        let text = "<ParamMap.\"alRegridMode\"> { <ParamLong.\"alRegridMode\"> { } }\n<ParamLong.\"alRegridMode\"> \n{\n 2 1 \n}\n\
                    <ParamDouble.\"fl\"> { <Precision> 6 <LimitRange> { 0 1 } <MinSize> 1  496.5 -1e-3 }<ParamString.\"a\">{ \"syngo MR {E11}\" \"\" }\
                    <ParamString.\"broken\"> { \"no end";
        assert_eq!(parameter(text, "alRegridMode"), ["2", "1"]);
        assert_eq!(parameter(text, "fl"), ["496.5", "-1e-3"]);
        assert_eq!(parameter(text, "a"), ["syngo MR {E11}", ""]);
        assert_eq!(parameter(text, "broken"), ["no end"]);
        assert!(parameter(text, "b").is_empty() && parameter("<ParamLong.\"b\"> {", "b").is_empty());
    }

    #[test]
    fn the_protocol_is_read_between_its_marks() {
        let text = "a = 1\n### ASCCONV BEGIN object=x ###\nalTR[0]\t = \t2000000\ntName = \"\"ep2d+AF8-x = #1\"\"\nuc = 0x10\nb = -0.5 # mm\n\
                    ### ASCCONV END ###\nc = 2";
        let values = values(text);
        assert_eq!(values.len(), 4);
        assert_eq!(values["alTR[0]"], "2000000");
        assert_eq!(parsed(&values["uc"]), Some(16.0));
        assert_eq!(parsed(&values["b"]), Some(-0.5));
        assert_eq!(values["tName"], "ep2d_x = #1");
        assert_eq!((parsed("nan"), parsed("inf"), parsed("0xzz")), (None, None, None));
    }
}
