//! The size of a voxel that a TIFF file states: in OME's XML, in ImageJ's description, or by the tags of the
//! resolution.

use std::io::{Read, Seek};

use rayspin_core::Geometry;
use tiff::decoder::{Decoder, ifd::Value};
use tiff::tags::Tag;

use super::stored::{description, imagej};
use crate::hdf5_file::length_mm;

/// Resolutions of screens and printers, in pixels per inch: programs write them without a meaning.
const OF_PAPER: [f64; 13] =
    [1.0, 72.0, 75.0, 90.0, 96.0, 100.0, 120.0, 150.0, 200.0, 300.0, 400.0, 600.0, 1200.0];

/// The note on stacks that state the size of their pixels alone.
pub(crate) const NO_STEP: &str = "the file states no distance between slices: 1 mm is assumed";

/// What a file states of the size of a voxel.
#[derive(Default)]
pub(super) struct Stated {
    /// Along columns and rows, mm.
    pixel: Option<[f64; 2]>,
    /// From slice to slice, mm.
    step: Option<f64>,
    /// Which statement is not taken.
    note: Option<String>,
}

impl Stated {
    /// What the page says at which the decoder is.
    pub(super) fn of<R: Read + Seek>(decoder: &mut Decoder<R>) -> Self {
        let text = description(decoder);
        if text.contains("<OME") {
            return of_ome(&text);
        }
        let mut tag = |tag| decoder.find_tag(tag).ok().flatten();
        let per_unit = [Tag::XResolution, Tag::YResolution].map(|axis| match tag(axis) {
            Some(Value::Rational(count, unit)) => Some(f64::from(count) / f64::from(unit)),
            _ => None,
        });
        let [Some(u), Some(v)] =
            per_unit.map(|count| count.filter(|count| count.is_finite() && *count > 0.0))
        else {
            return Self::default();
        };
        if text.starts_with("ImageJ=") {
            return of_imagej(&text, [u, v]);
        }
        // Millimetre and micrometre are no units of the standard, and nobody writes them without a meaning.
        let (unit, is_meant) = match tag(Tag::ResolutionUnit).and_then(|value| value.into_u16().ok()) {
            None | Some(2) => (25.4, false),
            Some(3) => (10.0, false),
            Some(4) => (1.0, true),
            Some(5) => (1e-3, true),
            Some(_) => return Self::default(),
        };
        let stated = [unit / u, unit / v];
        if is_meant {
            return Self { pixel: Some(stated), ..Self::default() };
        }
        // 1 in any unit is what files have that state nothing.
        let is_of_paper = u == 1.0 || OF_PAPER.contains(&(25.4 / stated[0]).round());
        let note = (!is_of_paper).then(|| {
            format!(
                "the resolution that the TIFF file states would be pixels of {} mm, and is not taken, as most programs write it \
                 for printers (CT: `--pixel` says the size)",
                (stated[0] * 1e9).round() / 1e9
            )
        });
        Self { note, ..Self::default() }
    }

    /// Voxels of this size at the isocentre, of 1 mm where the file states none. `notes` says what was not
    /// taken, and what is assumed.
    pub(super) fn geometry(self, pages: usize, notes: &mut Vec<String>) -> Geometry {
        notes.extend(self.note);
        let Some([u, v]) = self.pixel else { return Geometry::default() };
        if self.step.is_none() && pages > 1 {
            notes.push(NO_STEP.into());
        }
        Geometry { spacing_mm: [u, v, self.step.unwrap_or(1.0)], ..Geometry::default() }
    }
}

/// Pixels per unit, and the distance of slices in the unit.
fn of_imagej(text: &str, [u, v]: [f64; 2]) -> Stated {
    let unit = |key: &str| imagej::<String>(text, key);
    let Some(along) = unit("unit").filter(|unit| !["", "pixel", "pixels"].contains(&unit.as_str())) else {
        return Stated::default();
    };
    let size = |key: &str| length_mm(&unit(key).unwrap_or_else(|| along.clone()));
    let [Some(of_u), Some(of_v)] = [length_mm(&along), size("yunit")] else {
        let note =
            format!("ImageJ's unit '{along}' is no length that is known (CT: `--pixel` says the size in mm)");
        return Stated { note: Some(note), ..Stated::default() };
    };
    let step = imagej::<f64>(text, "spacing").zip(size("zunit")).map(|(step, unit)| step.abs() * unit);
    Stated { pixel: Some([of_u / u, of_v / v]), step: step.filter(|mm| is_size(*mm)), note: None }
}

fn is_size(mm: f64) -> bool {
    mm.is_finite() && mm > 0.0
}

/// `PhysicalSizeX`, `PhysicalSizeY` and `PhysicalSizeZ`, in µm unless their units say otherwise.
fn of_ome(text: &str) -> Stated {
    let attribute =
        |name: &str| text.split_once(&format!(" {name}=\""))?.1.split_once('"').map(|(value, _)| value);
    let size = |axis: char| {
        let number: f64 = attribute(&format!("PhysicalSize{axis}"))?.parse().ok()?;
        let unit = attribute(&format!("PhysicalSize{axis}Unit")).unwrap_or("µm");
        let unit =
            ["&#181;", "&#xB5;", "&#xb5;"].iter().fold(unit.to_owned(), |unit, code| unit.replace(code, "µ"));
        Some(number * length_mm(&unit)?).filter(|mm| is_size(*mm))
    };
    let pixel = size('X').zip(size('Y')).map(|(u, v)| [u, v]);
    Stated { pixel, step: size('Z'), note: None }
}
