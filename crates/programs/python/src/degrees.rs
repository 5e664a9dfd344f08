//! Angles that look like degrees.

use std::ffi::CString;

use pyo3::exceptions::PyUserWarning;
use pyo3::prelude::*;
use rayspin::ct::scan::turns_of_degrees;

/// Warns where angles in radian look like degrees. The largest less the smallest are the turns.
pub(crate) fn warn_of_degrees(py: Python<'_>, what: &str, angles: &[f64]) -> PyResult<()> {
    let Some(turns) = turns_of_degrees(angles) else { return Ok(()) };
    let text = format!(
        "{what}: {turns:.1} turns, as degrees that are taken to be radian make; numpy.radians({what}) makes radian of degrees"
    );
    PyErr::warn(py, &py.get_type::<PyUserWarning>(), &CString::new(text)?, 1)
}

/// The text with the angles that it marks with ° in radian: `180°` as `pi`.
pub(crate) fn in_radian(text: &str) -> String {
    let mut parts = text.split('°').peekable();
    let mut told = String::with_capacity(text.len());
    while let Some(part) = parts.next() {
        let begin = part
            .rfind(|c: char| !c.is_ascii_digit() && !"+-.e".contains(c))
            .map_or(0, |index| index + part[index..].chars().next().map_or(1, char::len_utf8));
        match part[begin..].parse() {
            Ok(angle) if parts.peek().is_some() => {
                told.push_str(&part[..begin]);
                told.push_str(&radian(angle));
            }
            _ => {
                told.push_str(part);
                told.extend(parts.peek().map(|_| '°'));
            }
        }
    }
    told
}

/// An angle in degrees as an expression in radian: `pi/6`, or a number where it is no simple part of pi.
pub(crate) fn radian(degrees: f64) -> String {
    for parts in [1, 2, 3, 4, 6] {
        let times = degrees / 180.0 * f64::from(parts);
        if times.fract() == 0.0 && times.abs() < 1e6 {
            let times = match times {
                0.0 => return "0".to_owned(),
                1.0 => "pi".to_owned(),
                -1.0 => "-pi".to_owned(),
                _ => format!("{times}*pi"),
            };
            return if parts == 1 { times } else { format!("{times}/{parts}") };
        }
    }
    let digits = format!("{:.6}", degrees.to_radians());
    digits.trim_end_matches('0').trim_end_matches('.').to_owned()
}
