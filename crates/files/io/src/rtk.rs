//! RTK's `RTKThreeDCircularGeometry` files (XML).

use std::fmt::Write as _;
use std::path::Path;

use quick_xml::events::Event;
use quick_xml::reader::Reader;
use rayspin_scan::ct::geometry::RtkProjection;

use crate::atomic::write_stream_atomically;
use crate::error::{Error, Result};

/// A geometry file: projections, and the radius of a curved detector.
#[derive(Debug, Clone, PartialEq)]
pub struct RtkGeometry {
    /// The projections.
    pub projections: Vec<RtkProjection>,
    /// `RadiusCylindricalDetector`, mm; none where the detector is flat.
    pub radius_mm: Option<f64>,
}

const ROOT: &str = "RTKThreeDCircularGeometry";
/// Elements of a matrix agree with the parameters to this much, as RTK's own reader demands.
const SAME: f64 = 1e-3;

/// Reads a geometry. As in RTK a parameter keeps its value until a later projection states another one.
///
/// Errors: another file; text that is no number; a projection without an angle; a matrix that does not belong
/// to the parameters.
///
/// ```
/// use rayspin_scan::ct::geometry::RtkProjection;
/// use rayspin_io::rtk::{RtkGeometry, read, write};
///
/// # let folder = tempfile::tempdir()?;
/// let file = folder.path().join("geometry.xml");
/// let view = RtkProjection { gantry: 0.5, source_to_isocenter_mm: 600.0, source_to_detector_mm: 1200.0, ..Default::default() };
/// write(&file, &RtkGeometry { projections: vec![view], radius_mm: None })?;
/// assert!((read(&file)?.projections[0].gantry - 0.5).abs() < 1e-12);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn read(path: impl AsRef<Path>) -> Result<RtkGeometry> {
    let path = path.as_ref();
    let text = crate::read_text(path)?;
    let mut state = State {
        path,
        geometry: RtkGeometry { projections: Vec::new(), radius_mm: None },
        now: RtkProjection::default(),
    };
    let mut reader = Reader::from_str(&text);
    let (mut open, mut content, mut angle, mut matrix): (Vec<String>, String, bool, Option<String>) =
        (Vec::new(), String::new(), false, None);
    loop {
        let event = reader.read_event();
        match event
            .map_err(|e| Error::library(path, "reading XML", e.to_string(), rayspin_core::ErrorKind::Input))?
        {
            Event::Eof => break,
            Event::Start(element) => {
                let name = element.name().as_ref().to_owned();
                if open.is_empty() && name != ROOT {
                    return Err(Error::not_this_format(
                        path,
                        format!("XML with {ROOT}"),
                        format!("XML with {name}"),
                    ));
                }
                if name == "Projection" {
                    (angle, matrix) = (false, None);
                }
                open.push(name);
                content.clear();
            }
            Event::Text(part) => content.push_str(&part),
            Event::End(_) => {
                let name = open.pop().unwrap_or_default();
                match name.as_str() {
                    "Projection" => state.take(angle, matrix.take())?,
                    "Matrix" => matrix = Some(std::mem::take(&mut content)),
                    ROOT => {}
                    name => angle |= state.set(name, content.trim())?,
                }
                content.clear();
            }
            _ => {}
        }
    }
    if !open.is_empty() || state.geometry.projections.is_empty() {
        return Err(Error::truncated(
            path,
            "the geometry",
            "at least one projection, and its end",
            "none, or no end",
        ));
    }
    Ok(state.geometry)
}

struct State<'a> {
    path: &'a Path,
    geometry: RtkGeometry,
    now: RtkProjection,
}

impl State<'_> {
    fn field(&self, name: &str) -> String {
        format!("{name} of projection {}", self.geometry.projections.len())
    }

    /// Sets a parameter; whether it is the angle. Unknown elements, such as collimations, say nothing about
    /// the rays.
    fn set(&mut self, name: &str, text: &str) -> Result<bool> {
        let known = [
            "GantryAngle",
            "Angle",
            "OutOfPlaneAngle",
            "InPlaneAngle",
            "SourceToIsocenterDistance",
            "SourceToDetectorDistance",
            "SourceOffsetX",
            "SourceOffsetY",
            "ProjectionOffsetX",
            "ProjectionOffsetY",
            "RadiusCylindricalDetector",
        ];
        if !known.contains(&name) {
            return Ok(false);
        }
        let number = text.parse::<f64>().ok().filter(|number| number.is_finite());
        let number =
            number.ok_or_else(|| Error::field(self.path, self.field(name), "a finite number", text))?;
        let now = &mut self.now;
        match name {
            "GantryAngle" | "Angle" => now.gantry = number.to_radians(),
            "OutOfPlaneAngle" => now.out_of_plane = number.to_radians(),
            "InPlaneAngle" => now.in_plane = number.to_radians(),
            "SourceToIsocenterDistance" => now.source_to_isocenter_mm = number,
            "SourceToDetectorDistance" => now.source_to_detector_mm = number,
            "SourceOffsetX" => now.source_offset_mm[0] = number,
            "SourceOffsetY" => now.source_offset_mm[1] = number,
            "ProjectionOffsetX" => now.projection_offset_mm[0] = number,
            "ProjectionOffsetY" => now.projection_offset_mm[1] = number,
            _ => self.geometry.radius_mm = (number != 0.0).then_some(number),
        }
        Ok(matches!(name, "GantryAngle" | "Angle"))
    }

    /// Ends a projection.
    fn take(&mut self, angle: bool, matrix: Option<String>) -> Result<()> {
        if !angle {
            return Err(Error::field(self.path, self.field("GantryAngle"), "an angle in degrees", "nothing"));
        }
        if let Some(text) = matrix {
            let numbers: Vec<f64> =
                text.split_whitespace().filter_map(|number| number.parse().ok()).collect();
            let wanted = self.now.matrix();
            let wanted: Vec<f64> = wanted.iter().flatten().copied().collect();
            let agree = numbers.len() == wanted.len()
                && numbers.iter().zip(&wanted).all(|(a, b)| (a - b).abs() <= SAME);
            if !agree {
                let expected = format!("the matrix of the parameters, {wanted:?}");
                return Err(Error::field(self.path, self.field("Matrix"), expected, format!("{numbers:?}")));
            }
        }
        self.geometry.projections.push(self.now);
        Ok(())
    }
}

/// Writes a geometry as RTK does, with the matrix that its reader demands. The file appears whole or not at
/// all.
///
/// Errors: [`Error::Write`].
pub fn write(path: impl AsRef<Path>, geometry: &RtkGeometry) -> Result<()> {
    let path = path.as_ref();
    let text = xml(geometry);
    write_stream_atomically(path, |file| std::io::Write::write_all(file, text.as_bytes()))
}

fn xml(geometry: &RtkGeometry) -> String {
    let mut text = format!("<?xml version=\"1.0\"?>\n<!DOCTYPE RTKGEOMETRY>\n<{ROOT} version=\"3\">\n");
    // Writing to a string cannot fail.
    if let Some(radius) = geometry.radius_mm {
        let _ = writeln!(text, "    <RadiusCylindricalDetector>{radius}</RadiusCylindricalDetector>");
    }
    for p in &geometry.projections {
        let _ = writeln!(text, "  <Projection>");
        for (name, value) in [
            ("GantryAngle", p.gantry.to_degrees()),
            ("SourceToIsocenterDistance", p.source_to_isocenter_mm),
            ("SourceToDetectorDistance", p.source_to_detector_mm),
            ("SourceOffsetX", p.source_offset_mm[0]),
            ("SourceOffsetY", p.source_offset_mm[1]),
            ("ProjectionOffsetX", p.projection_offset_mm[0]),
            ("ProjectionOffsetY", p.projection_offset_mm[1]),
            ("InPlaneAngle", p.in_plane.to_degrees()),
            ("OutOfPlaneAngle", p.out_of_plane.to_degrees()),
        ] {
            let _ = writeln!(text, "    <{name}>{value}</{name}>");
        }
        let _ = writeln!(text, "    <Matrix>");
        for row in p.matrix() {
            let _ = writeln!(text, "      {} {} {} {}", row[0], row[1], row[2], row[3]);
        }
        let _ = writeln!(text, "    </Matrix>\n  </Projection>");
    }
    let _ = writeln!(text, "</{ROOT}>");
    text
}

#[cfg(test)]
mod tests;
