//! The echo times that a header states.

use rayspin_scan::mri::ScanHeader;

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
    let root = header.xml.as_deref().and_then(|xml| xml::parse(xml).ok());
    let parameters = root.as_ref().and_then(|root| root.child("sequenceParameters"));
    let times = parameters.into_iter().flat_map(|node| node.all("TE")).map(|node| node.text().trim().parse());
    times.map(|time| time.map(|ms: f64| ms * 1e-3)).collect::<Result<_, _>>().unwrap_or_default()
}
