//! The XML header of a scan, in the order that ismrmrd.xsd demands.

use std::fmt::Write;
use std::path::Path;

use quick_xml::escape::escape;
use rayspin_scan::mri::{EncodedSpace, Encoding, Limits, RampShape, Ramps, Scan, ScanHeader, TrajectoryKind};

use super::header_in::{self, HYDROGEN_HZ_PER_T, REGRID_MODE, SINUSOID, TRAPEZOID};
use super::identity::{Identity, without_identity};
use crate::error::{Error, Result};

/// Codes that the schema allows.
const PATIENT_POSITIONS: [&str; 8] = ["HFP", "HFS", "HFDR", "HFDL", "FFP", "FFS", "FFDR", "FFDL"];

/// The XML to write: as it was found when the header's fields still say the same, else made from the fields;
/// and the elements that are left out with the identity.
pub(super) fn xml_of(path: &Path, scan: &Scan, identity: Identity) -> Result<(String, Vec<String>)> {
    if let Some(found) = &scan.header.xml
        && let Ok(parsed) = header_in::parse(path, found.clone(), &mut Vec::new())
        && parsed == scan.header
    {
        if identity == Identity::Keep {
            return Ok((found.clone(), Vec::new()));
        }
        let (xml, removed) =
            without_identity(found).map_err(|e| Error::field(path, "xml", "a well-formed document", e))?;
        let mut left_out: Vec<String> = removed.into_iter().map(|(path, _)| path).collect();
        left_out.dedup();
        return Ok((xml, left_out));
    }
    Ok((generate(path, scan)?, Vec::new()))
}

fn generate(path: &Path, scan: &Scan) -> Result<String> {
    let header = &scan.header;
    if header.encodings.is_empty() {
        return Err(Error::field(path, "encoding", "at least one", "none"));
    }
    let mut out = Xml::default();
    out.text.push_str("<?xml version=\"1.0\"?>\n");
    out.open("ismrmrdHeader xmlns=\"http://www.ismrm.org/ISMRMRD\"");
    let mut protocol = header.protocol.as_deref();
    // The schema has no protocol without a patient position.
    if let Some(position) = header.patient_position.as_deref()
        && PATIENT_POSITIONS.contains(&position)
    {
        out.open("measurementInformation");
        out.leaf("patientPosition", position);
        if let Some(name) = protocol.take() {
            out.leaf("protocolName", name);
        }
        out.close("measurementInformation");
    }
    system(&mut out, scan);
    out.open("experimentalConditions");
    let hertz = header.field_strength_t.unwrap_or(0.0) * HYDROGEN_HZ_PER_T;
    out.leaf("H1resonanceFrequency_Hz", format!("{:.0}", hertz.clamp(0.0, 1e15)));
    out.close("experimentalConditions");
    for (index, encoding) in header.encodings.iter().enumerate() {
        self::encoding(&mut out, path, index, encoding)?;
    }
    user_parameters(&mut out, header, protocol);
    out.close("ismrmrdHeader");
    Ok(out.text)
}

fn system(out: &mut Xml, scan: &Scan) {
    let header = &scan.header;
    let coils = header.coils.or_else(|| {
        let image = scan.acquisitions.iter().find(|a| a.flags.is_image())?;
        Some(image.data.nrows())
    });
    let name = "acquisitionSystemInformation";
    out.open(name);
    if let Some(vendor) = &header.vendor {
        out.leaf("systemVendor", vendor);
    }
    if let Some(model) = &header.model {
        out.leaf("systemModel", model);
    }
    if let Some(tesla) = header.field_strength_t {
        out.leaf("systemFieldStrength_T", tesla);
    }
    if let Some(coils) = coils {
        out.leaf("receiverChannels", coils);
    }
    out.close(name);
}

fn user_parameters(out: &mut Xml, header: &ScanHeader, protocol: Option<&str>) {
    let units = header.trajectory_units.map(|u| u.name());
    let strings = [("trajectory_units", units), ("protocol_name", protocol)];
    if strings.iter().all(|(_, value)| value.is_none()) {
        return;
    }
    out.open("userParameters");
    for (name, value) in strings {
        if let Some(value) = value {
            out.open("userParameterString");
            out.leaf("name", name);
            out.leaf("value", value);
            out.close("userParameterString");
        }
    }
    out.close("userParameters");
}

fn encoding(out: &mut Xml, path: &Path, index: usize, encoding: &Encoding) -> Result<()> {
    out.open("encoding");
    for (name, space) in [("encodedSpace", &encoding.encoded), ("reconSpace", &encoding.recon)] {
        self::space(out, path, &format!("encoding[{index}]/{name}"), space)?;
    }
    out.open("encodingLimits");
    for (name, limits) in [
        ("kspace_encoding_step_1", &encoding.step_1),
        ("kspace_encoding_step_2", &encoding.step_2),
        ("slice", &encoding.slice),
        ("repetition", &encoding.repetition),
    ] {
        if let Some(limits) = limits {
            self::limits(out, path, &format!("encoding[{index}]/encodingLimits/{name}"), name, limits)?;
        }
    }
    out.close("encodingLimits");
    if encoding.places.is_some() {
        // The header has no field for places.
        let field = format!("encoding[{index}]: places of samples along readouts");
        return Err(Error::field(path, field, "even ones, or ramps of a gradient", "a sequence's"));
    }
    out.leaf("trajectory", kind_name(encoding.trajectory));
    if let Some(ramps) = &encoding.ramps {
        ramps_of(out, ramps);
    }
    if let Some(factors) = encoding.acceleration {
        out.open("parallelImaging");
        out.open("accelerationFactor");
        for (axis, factor) in factors.into_iter().enumerate() {
            if !(1..=65535).contains(&factor) {
                let field = format!("encoding[{index}]/accelerationFactor");
                return Err(Error::field(path, field, "1 to 65535", factor));
            }
            out.leaf(&format!("kspace_encoding_step_{}", axis + 1), factor);
        }
        out.close("accelerationFactor");
        out.close("parallelImaging");
    }
    out.close("encoding");
    Ok(())
}

/// The ramps of an echo-planar readout gradient, by the names that siemens_to_ismrmrd gives them, µs.
pub(crate) fn ramps_of(out: &mut Xml, ramps: &Ramps) {
    let Ramps { shape, up_us, flat_us, down_us, delay_us, sampling_us, samples } = *ramps;
    out.open("trajectoryDescription");
    out.leaf("identifier", "ConventionalEPI");
    let mode = if shape == RampShape::Sinusoid { SINUSOID } else { TRAPEZOID };
    let dwell = sampling_us / samples.max(1) as f64;
    for (kind, name, value) in [
        ("Long", "numSamples", samples as f64),
        ("Long", REGRID_MODE, mode),
        ("Double", "rampUpTime", up_us),
        ("Double", "rampDownTime", down_us),
        ("Double", "flatTopTime", flat_us),
        ("Double", "acqDelayTime", delay_us),
        ("Double", "dwellTime", dwell),
    ] {
        let element = format!("userParameter{kind}");
        out.open(&element);
        out.leaf("name", name);
        out.leaf("value", value);
        out.close(&element);
    }
    out.close("trajectoryDescription");
}

fn space(out: &mut Xml, path: &Path, place: &str, space: &EncodedSpace) -> Result<()> {
    let name = place.rsplit('/').next().unwrap_or(place);
    if space.matrix.iter().any(|n| !(1..=65535).contains(n)) {
        return Err(Error::field(
            path,
            format!("{place}/matrixSize"),
            "1 to 65535 along each axis",
            format!("{:?}", space.matrix),
        ));
    }
    if space.fov_mm.iter().any(|mm| !mm.is_finite() || *mm <= 0.0) {
        return Err(Error::field(
            path,
            format!("{place}/fieldOfView_mm"),
            "positive lengths",
            format!("{:?}", space.fov_mm),
        ));
    }
    out.open(name);
    out.open("matrixSize");
    for (axis, n) in ["x", "y", "z"].into_iter().zip(space.matrix) {
        out.leaf(axis, n);
    }
    out.close("matrixSize");
    out.open("fieldOfView_mm");
    for (axis, mm) in ["x", "y", "z"].into_iter().zip(space.fov_mm) {
        out.leaf(axis, mm);
    }
    out.close("fieldOfView_mm");
    out.close(name);
    Ok(())
}

fn limits(out: &mut Xml, path: &Path, place: &str, name: &str, limits: &Limits) -> Result<()> {
    if limits.maximum.max(limits.centre) > 65535 || limits.minimum > limits.maximum {
        return Err(Error::field(path, place, "a range within 0 to 65535", format!("{limits:?}")));
    }
    out.open(name);
    out.leaf("minimum", limits.minimum);
    out.leaf("maximum", limits.maximum);
    out.leaf("center", limits.centre);
    out.close(name);
    Ok(())
}

/// The schema's name of a trajectory.
pub(super) fn kind_name(kind: TrajectoryKind) -> &'static str {
    match kind {
        TrajectoryKind::Cartesian => "cartesian",
        TrajectoryKind::Epi => "epi",
        TrajectoryKind::Radial => "radial",
        TrajectoryKind::GoldenAngle => "goldenangle",
        TrajectoryKind::Spiral => "spiral",
        TrajectoryKind::Other => "other",
    }
}

/// `xml` with characters beyond ASCII as character references, which mean the same: readers differ in the
/// character set that they give the string.
pub(super) fn ascii(xml: &str) -> String {
    let mut out = String::with_capacity(xml.len());
    for c in xml.chars() {
        if c.is_ascii() {
            out.push(c);
        } else {
            // Writing to a string does not fail.
            let _ = write!(out, "&#{};", u32::from(c));
        }
    }
    out
}

/// Indented XML.
#[derive(Default)]
pub(crate) struct Xml {
    pub(crate) text: String,
    depth: usize,
}

impl Xml {
    pub(crate) fn open(&mut self, name: &str) {
        self.indent();
        self.text.push_str(&format!("<{name}>\n"));
        self.depth += 1;
    }

    pub(crate) fn close(&mut self, name: &str) {
        self.depth = self.depth.saturating_sub(1);
        self.indent();
        self.text.push_str(&format!("</{name}>\n"));
    }

    /// An element with text; characters that XML forbids are left out.
    pub(crate) fn leaf(&mut self, name: &str, value: impl ToString) {
        let value: String = value
            .to_string()
            .chars()
            .filter(|c| !c.is_control() && !matches!(c, '\u{fffe}' | '\u{ffff}'))
            .collect();
        self.indent();
        self.text.push_str(&format!("<{name}>{}</{name}>\n", escape(value.as_str())));
    }

    fn indent(&mut self) {
        // Writing to a string does not fail.
        let _ = write!(self.text, "{:width$}", "", width = 2 * self.depth);
    }
}
