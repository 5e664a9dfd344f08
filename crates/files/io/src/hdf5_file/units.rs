//! Units of data sets, as programs spell them.

use std::path::Path;

use hdf5::Location;

use super::text::{Value, attribute};
use crate::error::{Error, Result};

/// The spellings of a unit, and its size in radian or mm.
type Unit = (&'static [&'static str], f64);

const DEGREE: f64 = std::f64::consts::PI / 180.0;

/// Units of angles, in radian.
const ANGLES: [Unit; 8] = [
    (&["deg", "degs", "degree", "degrees", "°", "º", "angular degree", "angular degrees"], DEGREE),
    (&["rad", "rads", "radian", "radians"], 1.0),
    (&["mrad", "mrads", "milliradian", "milliradians"], 1e-3),
    (&["urad", "µrad", "μrad", "microradian", "microradians"], 1e-6),
    (&["mdeg", "millidegree", "millidegrees"], 1e-3 * DEGREE),
    (&["arcmin", "arcminute", "arcminutes", "'"], DEGREE / 60.0),
    (&["arcsec", "arcsecond", "arcseconds", "\""], DEGREE / 3600.0),
    (&["turn", "turns", "revolution", "revolutions"], 360.0 * DEGREE),
];

/// Units of lengths, in mm. The micro sign and the Greek letter look the same.
const LENGTHS: [Unit; 8] = [
    (&["m", "meter", "meters", "metre", "metres"], 1e3),
    (&["cm", "centimeter", "centimeters", "centimetre", "centimetres"], 10.0),
    (&["mm", "millimeter", "millimeters", "millimetre", "millimetres"], 1.0),
    (
        &[
            "µm",
            "μm",
            "um",
            "micron",
            "microns",
            "micrometer",
            "micrometers",
            "micrometre",
            "micrometres",
            "\\u00b5m",
        ],
        1e-3,
    ),
    (&["nm", "nanometer", "nanometers", "nanometre", "nanometres"], 1e-6),
    (&["pm", "picometer", "picometers", "picometre", "picometres"], 1e-9),
    (&["å", "angstrom", "angstroms", "ångström", "ångströms"], 1e-7),
    (&["inch", "inches"], 25.4),
];

fn size(units: &[Unit], text: &str) -> Option<f64> {
    let text = text.to_lowercase();
    let text = text.trim_matches(|c: char| c.is_whitespace() || "[](){}.".contains(c));
    units.iter().find(|(names, _)| names.contains(&text)).map(|(_, size)| *size)
}

/// The length of a unit in mm; none of a unit that is not known.
pub(crate) fn length_mm(unit: &str) -> Option<f64> {
    size(&LENGTHS, unit)
}

/// The unit of a data set of angles in radian; degrees where it states none.
///
/// Errors: a unit that is not known.
pub(crate) fn angle(path: &Path, data: &Location, name: &str) -> Result<f64> {
    let Some(unit) = attribute(path, data, name, "units")? else { return Ok(DEGREE) };
    let known = if let Value::Text(text) = &unit { size(&ANGLES, text) } else { None };
    known.ok_or_else(|| {
        let field = format!("the attribute units of {name}");
        Error::field(path, field, "a unit of angles (degree, radian, mrad …)", unit)
    })
}

/// The unit of a data set of lengths in mm; none where it states none or `pixel`.
///
/// Errors: a unit that is not known.
pub(crate) fn length(path: &Path, data: &Location, name: &str) -> Result<Option<f64>> {
    match attribute(path, data, name, "units")? {
        None => Ok(None),
        Some(Value::Text(text)) if ["pixel", "pixels", "px"].contains(&text.to_lowercase().as_str()) => {
            Ok(None)
        }
        Some(Value::Text(text)) if length_mm(&text).is_some() => Ok(length_mm(&text)),
        Some(other) => {
            let field = format!("the attribute units of {name}");
            Err(Error::field(path, field, "a unit of lengths (m, mm, µm, nm …)", other))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_known_in_every_spelling() {
        for (text, radian) in
            [("Degrees", DEGREE), (" [rad] ", 1.0), ("mRad", 1e-3), ("°", DEGREE), ("(deg.)", DEGREE)]
        {
            assert_eq!(size(&ANGLES, text), Some(radian), "{text}");
        }
        for (text, mm) in
            [("M", 1e3), ("µm", 1e-3), ("μm", 1e-3), ("Micron", 1e-3), ("Å", 1e-7), ("nm", 1e-6)]
        {
            assert_eq!(length_mm(text), Some(mm), "{text}");
        }
        for text in ["rad/s", "deg/s", "grad", "", "1", "degC"] {
            assert_eq!(size(&ANGLES, text), None, "{text}");
        }
        for text in ["pixel", "1/mm", "mm2", "V"] {
            assert_eq!(length_mm(text), None, "{text}");
        }
    }
}
