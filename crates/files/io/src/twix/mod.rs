//! Siemens raw data ("twix", `.dat`), as scanners of VB17 to XA write it.
//!
//! A file of VD and later begins with a table of its measurements; a file of VB is one. A measurement is a
//! header of named texts, and blocks: readouts with heads, physiology, and a mark of the end. The layout is
//! known from twixtools (P. Ehses), mapVBVD (the same), siemens_to_ismrmrd (S. Inati and others) and BART.
//!
//! A measurement becomes a [`Scan`](rayspin_scan::mri::Scan): samples and counters as they are, the bits of
//! the heads as flags, and the protocol as a header of ISMRMRD.

mod block;
mod file;
mod geometry;
mod header;
mod list;
mod reader;
mod samples;
#[cfg(test)]
mod tests;
mod text;

use std::path::Path;

use rayspin_core::Monitor;

pub(crate) use file::begins;
pub(crate) use samples::samples;

use crate::format::{Detail, Rows};
use crate::scan_reader::ScanReader;
use crate::{Held, Result};
use file::{Generation, TwixFile};
use text::Texts;

/// Ends of the names of versions whose real files were read.
const TRIED: [&str; 3] = ["B19", "E11", "XA61"];

/// The measurements, by number.
pub(crate) fn names(path: &Path) -> Result<Vec<Held>> {
    let count = TwixFile::open(path)?.measurements.len();
    Ok((1..=count).map(|number| Held { what: "measurement", name: number.to_string() }).collect())
}

/// The software of the scanner, and the protocol and the size of each of several measurements.
pub(crate) fn describe(path: &Path) -> Result<Rows> {
    let file = TwixFile::open(path)?;
    let mut rows = Rows::new();
    let layout = match file.generation {
        Generation::Vb => "VB",
        Generation::Vd => "VD and later",
    };
    let texts = file.measurements.last().and_then(|last| Texts::read(&file, last).ok());
    let software = texts.and_then(|texts| texts.word(&["Dicom", "Meas", "Protocol"], "SoftwareVersions"));
    let tried = software.as_ref().is_some_and(|software| TRIED.iter().any(|one| software.ends_with(one)));
    let software = software.unwrap_or_else(|| "unknown version".into());
    let doubt = if tried { "" } else { "; not tried on a real file of this version" };
    rows.push(("software".into(), Detail::Text(format!("{software}, layout of {layout}{doubt}"))));
    for (index, measurement) in file.measurements.iter().enumerate().filter(|_| file.measurements.len() > 1) {
        let size = measurement.end.saturating_sub(measurement.start) as f64 / 1e6;
        let text = format!("{}, {size:.1} MB", measurement.protocol);
        rows.push((format!("measurement {}", index + 1), Detail::Text(text)));
    }
    Ok(rows)
}

/// Opens a measurement; the last one without a name.
pub(crate) fn open(path: &Path, name: Option<&str>, monitor: &Monitor<'_>) -> Result<Box<dyn ScanReader>> {
    Ok(Box::new(reader::Reader::open(path, name, monitor)?))
}
