//! The header as the scan model has it, out of the file's XML.

use std::path::Path;

use rayspin_core::TrajectoryUnits;
use rayspin_scan::mri::{EncodedSpace, Encoding, Limits, RampShape, Ramps, ScanHeader, TrajectoryKind};

use super::xml::{self, Node};
use crate::error::{Error, Result, one_line};

/// ¹H resonance in Hz per tesla (shielded proton, CODATA 2018, is 42.576 MHz; scanners use the free
/// proton's).
pub(super) const HYDROGEN_HZ_PER_T: f64 = 42_577_478.518;
/// A field stronger than this is taken for an error in the header, tesla.
pub(super) const STRONGEST_T: f64 = 30.0;
/// The user parameter with Siemens' number of the shape of a gradient, and the numbers.
pub(crate) const REGRID_MODE: &str = "regridMode";
pub(crate) const TRAPEZOID: f64 = 2.0;
pub(crate) const SINUSOID: f64 = 4.0;
/// More voxels than this are no image that anybody means.
const MOST_VOXELS: u64 = 1 << 32;

/// Text from bytes: UTF-8, else Latin-1 with a note.
pub(super) fn text(bytes: &[u8], notes: &mut Vec<String>) -> String {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let end = bytes.iter().rposition(|b| *b != 0).map_or(0, |last| last + 1);
    let bytes = &bytes[..end];
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => {
            notes.push("the XML header is not UTF-8; it was read as Latin-1".into());
            bytes.iter().map(|b| char::from(*b)).collect()
        }
    }
}

/// Parses the XML header. What had to be assumed goes to `notes`.
pub(super) fn parse(path: &Path, xml: String, notes: &mut Vec<String>) -> Result<ScanHeader> {
    let root = xml::parse(&xml).map_err(|e| Error::field(path, "xml", "a well-formed document", e))?;
    if root.name != "ismrmrdHeader" {
        return Err(Error::field(path, "xml", "the element ismrmrdHeader", format!("<{}>", root.name)));
    }
    let encodings = root
        .all("encoding")
        .enumerate()
        .map(|(index, node)| Reader { path, node, place: format!("encoding[{index}]") }.encoding(notes))
        .collect::<Result<Vec<_>>>()?;
    if encodings.is_empty() {
        return Err(Error::field(path, "xml: encoding", "at least one", "none"));
    }
    let owned = |path: &[&str]| root.text_at(path).map(str::to_owned);
    let system = "acquisitionSystemInformation";
    let coils = root.text_at(&[system, "receiverChannels"]).and_then(|t| match whole(t) {
        Some(n @ 1..=65535) => usize::try_from(n).ok(),
        _ => {
            notes.push(format!("receiverChannels {} was ignored: not a count", one_line(t)));
            None
        }
    });
    Ok(ScanHeader {
        encodings,
        coils,
        field_strength_t: field_strength(&root, notes),
        vendor: owned(&[system, "systemVendor"]),
        model: owned(&[system, "systemModel"]),
        protocol: owned(&["measurementInformation", "protocolName"])
            .or_else(|| user_string(&root, "protocol_name").map(str::to_owned)),
        patient_position: owned(&["measurementInformation", "patientPosition"]),
        trajectory_units: trajectory_units(&root, notes),
        xml: Some(xml),
    })
}

/// The stated field strength, else what the hydrogen frequency implies.
fn field_strength(root: &Node, notes: &mut Vec<String>) -> Option<f64> {
    let plausible = |t: f64| t > 0.0 && t <= STRONGEST_T;
    let mut stated = None;
    if let Some(text) = root.text_at(&["acquisitionSystemInformation", "systemFieldStrength_T"]) {
        match text.parse::<f64>() {
            Ok(t) if plausible(t) => stated = Some(t),
            _ => notes.push(format!("field strength {} T is not plausible and was ignored", one_line(text))),
        }
    }
    if let Some(text) = root.text_at(&["experimentalConditions", "H1resonanceFrequency_Hz"]) {
        match text.parse::<f64>() {
            // 0 is how writers say that they do not know.
            Ok(0.0) => {}
            Ok(hz) if plausible(hz / HYDROGEN_HZ_PER_T) => {
                stated = stated.or(Some(hz / HYDROGEN_HZ_PER_T));
            }
            _ => notes
                .push(format!("hydrogen frequency {} Hz is not plausible and was ignored", one_line(text))),
        }
    }
    stated
}

fn user_string<'a>(root: &'a Node, name: &str) -> Option<&'a str> {
    root.child("userParameters")?
        .all("userParameterString")
        .find(|p| p.child("name").is_some_and(|n| n.text().eq_ignore_ascii_case(name)))
        .and_then(|p| p.text_at(&["value"]))
}

fn trajectory_units(root: &Node, notes: &mut Vec<String>) -> Option<TrajectoryUnits> {
    let text = user_string(root, "trajectory_units")?;
    let found = match text.to_ascii_lowercase().replace(' ', "").as_str() {
        "1/fov" | "cycles/fov" => Some(TrajectoryUnits::CyclesPerFov),
        "1/voxel" | "1/pixel" | "cycles/voxel" | "cycles/pixel" => Some(TrajectoryUnits::CyclesPerVoxel),
        "rad/voxel" | "rad/pixel" | "radians/voxel" | "radians/pixel" => {
            Some(TrajectoryUnits::RadiansPerVoxel)
        }
        "1/m" | "cycles/m" => Some(TrajectoryUnits::CyclesPerMetre),
        "rad/m" | "radians/m" => Some(TrajectoryUnits::RadiansPerMetre),
        _ => None,
    };
    if found.is_none() {
        notes.push(format!("trajectory_units {} is not known and was ignored", one_line(text)));
    }
    found
}

/// A whole number, also when written as `256.0`.
fn whole(text: &str) -> Option<u64> {
    text.parse::<u64>().ok().or_else(|| {
        let value = text.parse::<f64>().ok()?;
        (value >= 0.0 && value <= 2f64.powi(53) && value.fract() == 0.0).then_some(value as u64)
    })
}

/// One `encoding` element and where it stands, for errors.
struct Reader<'a> {
    path: &'a Path,
    node: &'a Node,
    place: String,
}

impl Reader<'_> {
    fn field(&self, what: &str, expected: &str, found: impl ToString) -> Error {
        Error::field(self.path, format!("xml: {}/{what}", self.place), expected, found)
    }

    fn encoding(&self, notes: &mut Vec<String>) -> Result<Encoding> {
        let encoded = match self.node.child("encodedSpace") {
            Some(space) => self.space(space, "encodedSpace", notes)?,
            None => return Err(self.field("encodedSpace", "a matrix and a field of view", "nothing")),
        };
        let recon = match self.node.child("reconSpace") {
            Some(space) => self.space(space, "reconSpace", notes)?,
            None => {
                notes.push(format!("{} has no reconSpace; the encoded space was taken", self.place));
                encoded
            }
        };
        let mut limits = |name: &str| {
            let node = self.node.at(&["encodingLimits", name])?;
            let found = limits(node);
            if found.is_none() {
                notes.push(format!("{} limits of {name} make no range and were ignored", self.place));
            }
            found
        };
        let (step_1, step_2) = (limits("kspace_encoding_step_1"), limits("kspace_encoding_step_2"));
        let (slice, repetition) = (limits("slice"), limits("repetition"));
        Ok(Encoding {
            encoded,
            recon,
            trajectory: self.trajectory(notes),
            step_1,
            step_2,
            slice,
            repetition,
            acceleration: self.acceleration(notes),
            ramps: self.ramps(),
            places: None,
        })
    }

    /// The ramps of an echo-planar readout gradient, as siemens_to_ismrmrd describes them (µs).
    fn ramps(&self) -> Option<Ramps> {
        let description = self.node.child("trajectoryDescription")?;
        let kinds = ["userParameterLong", "userParameterDouble"];
        let number = |name: &str| -> Option<f64> {
            let mut parameters = kinds.iter().flat_map(|kind| description.all(kind));
            let own = parameters.find(|one| one.text_at(&["name"]).is_some_and(|own| own == name))?;
            own.text_at(&["value"])?.parse().ok().filter(|value: &f64| value.is_finite() && *value >= 0.0)
        };
        let samples = number("numSamples").filter(|count| (1.0..=65535.0).contains(count))? as usize;
        Some(Ramps {
            shape: if number(REGRID_MODE) == Some(SINUSOID) {
                RampShape::Sinusoid
            } else {
                RampShape::Trapezoid
            },
            up_us: number("rampUpTime")?,
            flat_us: number("flatTopTime")?,
            down_us: number("rampDownTime")?,
            delay_us: number("acqDelayTime")?,
            sampling_us: number("dwellTime")? * samples as f64,
            samples,
        })
    }

    fn space(&self, node: &Node, name: &str, notes: &mut Vec<String>) -> Result<EncodedSpace> {
        let mut matrix = [1usize; 3];
        for (n, axis) in matrix.iter_mut().zip(["x", "y", "z"]) {
            let what = format!("{name}/matrixSize/{axis}");
            let expected = "a whole number from 1 to 65535";
            match node.text_at(&["matrixSize", axis]) {
                Some(text) => {
                    *n = whole(text)
                        .filter(|n| (1..=65535).contains(n))
                        .and_then(|n| usize::try_from(n).ok())
                        .ok_or_else(|| self.field(&what, expected, text))?;
                }
                None if axis == "z" => {
                    notes.push(format!("{} {name} states no z; 1 was assumed", self.place));
                }
                None => return Err(self.field(&what, expected, "nothing")),
            }
        }
        let voxels: u64 = matrix.iter().map(|n| *n as u64).product();
        if voxels > MOST_VOXELS {
            return Err(self.field(
                &format!("{name}/matrixSize"),
                &format!("at most {MOST_VOXELS} voxels"),
                format!("{matrix:?}"),
            ));
        }
        let mut fov_mm = [0.0; 3];
        for (axis, (fov, letter)) in fov_mm.iter_mut().zip(["x", "y", "z"]).enumerate() {
            let stated = node.text_at(&["fieldOfView_mm", letter]);
            let value = stated.and_then(|t| t.parse::<f64>().ok());
            *fov = match value {
                Some(mm) if mm > 0.0 && mm.is_finite() => mm,
                _ => {
                    notes.push(format!(
                        "{} {name} field of view along {letter} is {}; 1 mm voxels were assumed",
                        self.place,
                        stated.map_or("not stated".into(), one_line)
                    ));
                    matrix[axis] as f64
                }
            };
        }
        Ok(EncodedSpace { matrix, fov_mm })
    }

    fn trajectory(&self, notes: &mut Vec<String>) -> TrajectoryKind {
        let text = self.node.text_at(&["trajectory"]);
        match text.map(str::to_ascii_lowercase).as_deref() {
            Some("cartesian") => TrajectoryKind::Cartesian,
            Some("epi") => TrajectoryKind::Epi,
            Some("radial") => TrajectoryKind::Radial,
            Some("goldenangle") => TrajectoryKind::GoldenAngle,
            Some("spiral") => TrajectoryKind::Spiral,
            Some("other") => TrajectoryKind::Other,
            Some(unknown) => {
                notes.push(format!(
                    "{} trajectory {} is not known; taken as other",
                    self.place,
                    one_line(unknown)
                ));
                TrajectoryKind::Other
            }
            None => {
                notes.push(format!("{} names no trajectory; taken as cartesian", self.place));
                TrajectoryKind::Cartesian
            }
        }
    }

    fn acceleration(&self, notes: &mut Vec<String>) -> Option<[usize; 2]> {
        let factors = self.node.at(&["parallelImaging", "accelerationFactor"])?;
        let mut out = [1usize; 2];
        for (n, name) in out.iter_mut().zip(["kspace_encoding_step_1", "kspace_encoding_step_2"]) {
            if let Some(text) = factors.text_at(&[name]) {
                match whole(text) {
                    Some(factor @ 1..=65535) => *n = usize::try_from(factor).unwrap_or(1),
                    _ => {
                        notes.push(format!(
                            "{} acceleration factor {} was ignored",
                            self.place,
                            one_line(text)
                        ));
                        return None;
                    }
                }
            }
        }
        Some(out)
    }
}

/// A counter's range; a centre that is not stated is the middle. None when it is no range.
fn limits(node: &Node) -> Option<Limits> {
    let number = |name| match node.text_at(&[name]) {
        Some(text) => whole(text).filter(|n| *n <= 65535).and_then(|n| usize::try_from(n).ok()),
        None => Some(0),
    };
    let (minimum, maximum) = (number("minimum")?, number("maximum")?);
    if minimum > maximum {
        return None;
    }
    let centre = match node.text_at(&["center"]) {
        Some(_) => number("center")?,
        None => (minimum + maximum).div_ceil(2),
    };
    Some(Limits { minimum, maximum, centre })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPACE: &str = "<matrixSize><x>8</x><y>6</y><z>1</z></matrixSize><fieldOfView_mm><x>80</x><y>60</y><z>5</z>\
                         </fieldOfView_mm>";

    fn read(xml: &str) -> (Result<ScanHeader>, Vec<String>) {
        let mut notes = Vec::new();
        let header = parse(Path::new("x.h5"), xml.to_owned(), &mut notes);
        (header, notes)
    }

    #[test]
    fn a_bare_header_is_enough_and_what_is_missing_is_noted() {
        let (header, notes) = read(&format!(
            "<q:ismrmrdHeader><q:encoding><q:encodedSpace>{SPACE}</q:encodedSpace></q:encoding></q:ismrmrdHeader>"
        ));
        let encoding = &header.unwrap().encodings[0];
        assert_eq!(encoding.encoded.matrix, [8, 6, 1]);
        assert_eq!(encoding.recon, encoding.encoded);
        assert_eq!(notes.len(), 2, "{notes:?}");
    }

    #[test]
    fn bad_values_name_their_field() {
        let with = |x: &str| {
            let space = SPACE.replace("<x>8</x>", x);
            read(&format!(
                "<ismrmrdHeader><encoding><encodedSpace>{space}</encodedSpace></encoding></ismrmrdHeader>"
            ))
            .0
        };
        assert!(with("<x>8.0</x>").is_ok());
        for x in [
            "<x>0</x>",
            "<x>65536</x>",
            "<x>-3</x>",
            "<x>eight</x>",
            "<x/>",
            "",
            "<x>8.5</x>",
            "<x>1e300</x>",
        ] {
            let error = with(x).unwrap_err();
            assert!(error.to_string().contains("encoding[0]/encodedSpace/matrixSize/x"), "{error}");
        }
        let huge = SPACE.replace(['8', '6'], "65535").replace("<z>1", "<z>60000");
        let (huge, _) = read(&format!(
            "<ismrmrdHeader><encoding><encodedSpace>{huge}</encodedSpace></encoding></ismrmrdHeader>"
        ));
        assert!(huge.is_err());
        assert!(read("<ismrmrdHeader></ismrmrdHeader>").0.is_err());
        assert!(read("<html></html>").0.is_err());
    }

    #[test]
    fn garbage_that_no_reconstruction_needs_is_dropped_with_a_note() {
        let (header, notes) = read(&format!(
            "<ismrmrdHeader><acquisitionSystemInformation><systemFieldStrength_T>0.0</systemFieldStrength_T>\
             <receiverChannels>-1</receiverChannels></acquisitionSystemInformation><experimentalConditions>\
             <H1resonanceFrequency_Hz>140713325569856</H1resonanceFrequency_Hz></experimentalConditions><encoding>\
             <encodedSpace>{SPACE}</encodedSpace><reconSpace>{}</reconSpace><trajectory>rosette</trajectory>\
             <encodingLimits><slice><minimum>5</minimum><maximum>2</maximum></slice></encodingLimits></encoding>\
             <userParameters><userParameterString><name>trajectory_units</name><value>furlong</value>\
             </userParameterString></userParameters></ismrmrdHeader>",
            SPACE.replace("<x>80</x>", "<x>NaN</x>")
        ));
        let header = header.unwrap();
        assert_eq!((header.field_strength_t, header.coils, header.trajectory_units), (None, None, None));
        assert_eq!(header.encodings[0].trajectory, TrajectoryKind::Other);
        assert_eq!(header.encodings[0].slice, None);
        assert_eq!(header.encodings[0].recon.fov_mm, [8.0, 60.0, 5.0]);
        assert_eq!(notes.len(), 7, "{notes:#?}");
    }

    #[test]
    fn latin_1_is_read_and_noted() {
        let mut notes = Vec::new();
        assert_eq!(text(b"M\xfcnchen\0\0", &mut notes), "München");
        assert_eq!(notes.len(), 1);
        assert_eq!(text("\u{feff}München".as_bytes(), &mut notes), "München");
        assert_eq!(notes.len(), 1);
    }
}
