//! The size of a pixel that a TIFF file states: in OME's XML, in ImageJ's description, or by the tags of the resolution.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use tiff::decoder::{Decoder, Limits, ifd::Value};
use tiff::tags::Tag;

use super::fail;
use crate::folder::Folder;
use crate::hdf5_file::length_mm;
use crate::{Error, Result};

/// Resolutions of screens and printers, in pixels per inch: programs write them without a meaning.
const OF_PAPER: [f64; 13] =
    [1.0, 72.0, 75.0, 90.0, 96.0, 100.0, 120.0, 150.0, 200.0, 300.0, 400.0, 600.0, 1200.0];
/// The most bytes of a description.
const LONGEST: usize = 16 << 20;

/// The size of a pixel along columns and rows, mm, for the table of formats. `notes` says which statement is not taken.
pub(crate) fn pixel(path: &Path, notes: &mut Vec<String>) -> Result<Option<[f64; 2]>> {
    let first = match path.is_dir() {
        true => Folder::open(path)?.numbered(path)?.first().map(|first| first.to_path_buf()),
        false => Some(path.to_owned()),
    };
    let Some(path) = first else { return Ok(None) };
    let file = File::open(&path).map_err(|e| Error::open(&path, e))?;
    let mut limits = Limits::default();
    limits.ifd_value_size = LONGEST;
    let decoder = Decoder::new(BufReader::new(file)).map_err(|e| fail(&path, 0, e))?;
    let mut decoder = decoder.with_limits(limits);
    let mut tag = |tag| decoder.find_tag(tag).ok().flatten();
    let text = tag(Tag::ImageDescription).and_then(|value| value.into_string().ok()).unwrap_or_default();
    if text.contains("<OME") {
        return Ok(of_ome(&text));
    }
    let per_unit = [Tag::XResolution, Tag::YResolution].map(|at| match tag(at) {
        Some(Value::Rational(count, of)) => Some(f64::from(count) / f64::from(of)),
        _ => None,
    });
    let [Some(u), Some(v)] = per_unit.map(|count| count.filter(|count| count.is_finite() && *count > 0.0))
    else {
        return Ok(None);
    };
    if text.starts_with("ImageJ=") {
        let unit = |key: &str| text.lines().find_map(|line| line.strip_prefix(key)).map(str::trim);
        let Some(along) = unit("unit=").filter(|unit| !["", "pixel", "pixels"].contains(unit)) else {
            return Ok(None);
        };
        let sizes = [along, unit("yunit=").unwrap_or(along)].map(length_mm);
        return Ok(match sizes {
            [Some(of_u), Some(of_v)] => Some([of_u / u, of_v / v]),
            _ => {
                notes.push(format!(
                    "ImageJ's unit '{along}' is no length that is known: --pixel says the size in mm"
                ));
                None
            }
        });
    }
    let unit = match tag(Tag::ResolutionUnit).and_then(|value| value.into_u16().ok()) {
        None | Some(2) => 25.4,
        Some(3) => 10.0,
        Some(_) => return Ok(None),
    };
    let stated = [unit / u, unit / v];
    let per_inch = [25.4 / stated[0], u].map(f64::round);
    if !per_inch.iter().any(|count| OF_PAPER.contains(count)) {
        notes.push(format!(
            "the resolution that the TIFF file states would be pixels of {} mm, and is not taken, as most programs write it for \
             printers: --pixel says the size",
            (stated[0] * 1e9).round() / 1e9
        ));
    }
    Ok(None)
}

/// `PhysicalSizeX` and `PhysicalSizeY`, in µm unless their units say otherwise.
fn of_ome(text: &str) -> Option<[f64; 2]> {
    let attribute =
        |name: &str| text.split_once(&format!(" {name}=\""))?.1.split_once('"').map(|(value, _)| value);
    let size = |axis: char| {
        let number: f64 = attribute(&format!("PhysicalSize{axis}"))?.parse().ok()?;
        let unit = attribute(&format!("PhysicalSize{axis}Unit")).unwrap_or("µm");
        let unit =
            ["&#181;", "&#xB5;", "&#xb5;"].iter().fold(unit.to_owned(), |unit, code| unit.replace(code, "µ"));
        Some(number * length_mm(&unit)?).filter(|mm| mm.is_finite() && *mm > 0.0)
    };
    Some([size('X')?, size('Y')?])
}
