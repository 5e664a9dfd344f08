//! The times and angles of the sequence that a header states.

use rayspin_scan::mri::ScanHeader;
use serde::Serialize;

use super::xml;

/// The echo times in s, in the order of the header's `sequenceParameters/TE` (ms); none where it states none,
/// or one that is no number.
///
/// ```
/// use rayspin_io::ismrmrd::{echo_times, parse_header};
///
/// let space = "<matrixSize><x>64</x><y>64</y><z>1</z></matrixSize>\
///     <fieldOfView_mm><x>220</x><y>220</y><z>5</z></fieldOfView_mm>";
/// let xml = format!(
///     "<ismrmrdHeader><encoding><encodedSpace>{space}</encodedSpace><reconSpace>{space}</reconSpace>\
///     <encodingLimits/><trajectory>cartesian</trajectory></encoding>\
///     <sequenceParameters><TE>8</TE><TE>16</TE></sequenceParameters></ismrmrdHeader>"
/// );
/// let (mut header, _notes) = parse_header("scan.h5", xml.as_bytes())?;
/// header.xml = Some(xml);
/// assert_eq!(echo_times(&header), [0.008, 0.016]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn echo_times(header: &ScanHeader) -> Vec<f64> {
    Sequence::of(header).echo_times_ms.into_iter().map(|ms| ms * 1e-3).collect()
}

/// What a header states of the sequence. A list with a word that is no number counts as empty.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Sequence {
    /// Repetition times, ms.
    pub repetition_times_ms: Vec<f64>,
    /// Echo times, ms.
    pub echo_times_ms: Vec<f64>,
    /// Inversion times, ms.
    pub inversion_times_ms: Vec<f64>,
    /// Flip angles, degrees.
    pub flip_angles_deg: Vec<f64>,
}

impl Sequence {
    /// What a header states.
    pub fn of(header: &ScanHeader) -> Self {
        let root = header.xml.as_deref().and_then(|xml| xml::parse(xml).ok());
        let parameters = root.as_ref().and_then(|root| root.child("sequenceParameters"));
        let numbers = |name: &str| {
            let texts = parameters.into_iter().flat_map(|node| node.all(name)).map(|node| node.text().trim());
            texts.map(str::parse).collect::<Result<Vec<f64>, _>>().unwrap_or_default()
        };
        Self {
            repetition_times_ms: numbers("TR"),
            echo_times_ms: numbers("TE"),
            inversion_times_ms: numbers("TI"),
            flip_angles_deg: numbers("flipAngle_deg"),
        }
    }

    /// As a line; none where the header states nothing.
    pub(super) fn text(&self) -> Option<String> {
        let list = |name: &str, numbers: &[f64], unit: &str| {
            let numbers: Vec<String> = numbers.iter().map(f64::to_string).collect();
            (!numbers.is_empty()).then(|| format!("{name} {} {unit}", numbers.join(", ")))
        };
        let parts = [
            list("repetition time", &self.repetition_times_ms, "ms"),
            list("echo time", &self.echo_times_ms, "ms"),
            list("inversion time", &self.inversion_times_ms, "ms"),
            list("flip angle", &self.flip_angles_deg, "degrees"),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        (!parts.is_empty()).then(|| parts.join("; "))
    }
}
