//! P-files of GE's scanners (`P12345.7`) of header revision 9: 61,464 bytes of header, and views of 16 or 32
//! bits, little-endian.
//!
//! ```text
//! [coil][slice][echo][view][sample],   view 0 is the baseline frame, which is no part of the image
//! ```
//!
//! The layout was read in the P-files of MIRT, whose raw numbers they hold, and in the readers of GERead
//! (R. Edden), SIVIC and MIRT. Later revisions have other headers and are refused by name.

mod header;
mod samples;
#[cfg(test)]
mod tests;

use std::path::Path;

use rayspin_core::Monitor;
use rayspin_device::cpu::try_reserve;
use rayspin_scan::mri::{Counters, Flags, SlicePlace};

pub(crate) use header::{MAGIC, begins};
pub(crate) use samples::samples;

use crate::bare_scan::{BareScan, Readout, Word};
use crate::format::{Detail, Rows};
use crate::ismrmrd::parse_header;
use crate::scan_reader::ScanReader;
use crate::{Error, Result, opening};
use header::{DATA, Header};

/// The revision of the header, and how many views there are.
pub(crate) fn describe(path: &Path) -> Result<Rows> {
    let header = Header::read(path)?;
    let baselines = header.views - header.frames;
    let doubt = match (header.slices, header.echoes, header.word) {
        (1, 1, Word::I16) => "",
        _ => "; several slices, echoes and numbers of 32 bits were not tried on a real file",
    };
    let text = format!(
        "GE, header revision 9; {} views of {} samples in a group, and {baselines} before them without an image{doubt}",
        header.frames, header.samples
    );
    Ok(vec![("software".to_owned(), Detail::Text(text))])
}

/// Opens a scan.
///
/// Errors: another revision; numbers in the header that cannot be or do not fit the file.
pub(crate) fn open(path: &Path, _: Option<&str>, monitor: &Monitor<'_>) -> Result<Box<dyn ScanReader>> {
    let header = Header::read(path)?;
    let file = opening::open(path)?;
    let bytes = file.metadata().map_err(|e| Error::read(path, e))?.len();
    let view = 2 * header.word.bytes() * header.samples as u64;
    // All are numbers of 16 bits.
    let group = view * header.views as u64;
    let coil = group * header.slices as u64 * header.echoes as u64;
    let whole = coil * header.coils as u64;
    let there = bytes.saturating_sub(DATA);
    let stated = format!(
        "{whole} bytes ({} coils × {} slices × {} echoes × {} views × {} samples)",
        header.coils, header.slices, header.echoes, header.views, header.samples
    );
    if there < whole {
        return Err(Error::truncated(path, "raw data", stated, format!("{there}")));
    }
    if there > whole {
        return Err(Error::field(path, "raw data", stated, format!("{there} bytes")).with_hint(
            "several passes are not read; ge_to_ismrmrd (with GE's Orchestra) converts such files",
        ));
    }
    let mut notes = Vec::new();
    let baselines = header.slices * header.echoes * (header.views - header.frames);
    if baselines > 0 {
        let plural = if baselines == 1 { "" } else { "s" };
        notes.push(format!("baseline frames are left out: {baselines} view{plural} of each coil"));
    }
    let mut readouts = Vec::new();
    let count = header.slices * header.echoes * header.frames;
    try_reserve("readouts", &mut readouts, count).map_err(|e| Error::core(path, e))?;
    for slice in 0..header.slices {
        monitor.check().map_err(|e| Error::core(path, e))?;
        for echo in 0..header.echoes {
            let first = DATA + (slice * header.echoes + echo) as u64 * group;
            for line in 0..header.frames {
                let number = (line + header.views - header.frames) as u64;
                readouts.push(Readout {
                    place: first + number * view,
                    samples: header.samples,
                    flags: Flags::default(),
                    counters: Counters {
                        step_1: line as u16,
                        slice: slice as u16,
                        contrast: echo as u16,
                        ..Counters::default()
                    },
                    centre_sample: header.samples / 2,
                    path: None,
                    factor: rayspin_core::C32::ONE,
                    coil_factors: None,
                });
            }
        }
    }
    let xml = header.xml(&mut notes);
    let (mut parsed, of_header) = parse_header(path, xml.as_bytes())?;
    parsed.xml = Some(xml);
    notes.extend(of_header);
    let place = header.place(&mut notes);
    Ok(Box::new(BareScan {
        path: path.to_owned(),
        file,
        word: header.word,
        big_endian: false,
        coils: header.coils,
        coil_stride: coil,
        header: parsed,
        sample_time_us: 0.0,
        readouts,
        places: vec![place.unwrap_or_default(); header.slices],
        paths: Vec::new(),
        coil_factors: Vec::new(),
        notes,
    }))
}

/// A slice in the plane of the corners of an image: from the first corner along the row to the second, and
/// along the column to the third.
fn place_of_corners(corners: [[f64; 3]; 3]) -> Option<SlicePlace> {
    let minus = |a: [f64; 3], b: [f64; 3]| -> [f64; 3] { std::array::from_fn(|axis| a[axis] - b[axis]) };
    let unit = |vector: [f64; 3]| {
        let length = vector.iter().map(|part| part * part).sum::<f64>().sqrt();
        (length > 1e-3 && length.is_finite()).then(|| vector.map(|part| part / length))
    };
    let [first, second, third] = corners;
    let (read, phase) = (unit(minus(second, first))?, unit(minus(third, second))?);
    let cosine: f64 = read.iter().zip(phase).map(|(a, b)| a * b).sum();
    if cosine.abs() > 1e-3 {
        return None;
    }
    let across: [f64; 3] = std::array::from_fn(|axis| {
        let (next, last) = ((axis + 1) % 3, (axis + 2) % 3);
        read[next] * phase[last] - read[last] * phase[next]
    });
    let single = |vector: [f64; 3]| vector.map(|part| part as f32 + 0.0);
    let position = std::array::from_fn(|axis| (first[axis] + third[axis]) / 2.0);
    Some(SlicePlace { position: single(position), directions: [single(read), single(phase), single(across)] })
}
