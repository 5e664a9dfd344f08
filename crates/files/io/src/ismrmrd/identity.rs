//! What a header says of the patient, the study and the place, and headers without it.

use rayspin_scan::mri::ScanHeader;

use super::header_out::Xml;
use super::xml::{self, Node};
pub use crate::identity::Identity;

/// Elements that do not tell whose scan it is, as paths below the root. Everything within them is kept except
/// comments and user
/// parameters that are text or encoded data: converters put headers of scanners there, names included.
const HARMLESS: [&str; 20] = [
    "version",
    "measurementInformation/patientPosition",
    "measurementInformation/relativeTablePosition",
    "measurementInformation/initialSeriesNumber",
    "measurementInformation/protocolName",
    "measurementInformation/sequenceName",
    "acquisitionSystemInformation/systemVendor",
    "acquisitionSystemInformation/systemModel",
    "acquisitionSystemInformation/systemFieldStrength_T",
    "acquisitionSystemInformation/relativeReceiverNoiseBandwidth",
    "acquisitionSystemInformation/receiverChannels",
    "acquisitionSystemInformation/coilLabel",
    "experimentalConditions",
    "encoding",
    "sequenceParameters",
    "userParameters/userParameterLong",
    "userParameters/userParameterDouble",
    "userParameters/userParameterString",
    "waveformInformation/waveformName",
    "waveformInformation/waveformType",
];

/// User parameters that are text and that Rayspin reads, by name.
const READ_STRINGS: [&str; 6] = [
    "trajectory_units",
    "protocol_name",
    "scanning_sequence",
    "sequence_variant",
    "scan_options",
    "imaged_nucleus",
];

/// User parameters with numbers for a reconstruction, by the names that converters write: echo
/// planar and spiral trajectories, the gradient system, the lines of a reference. Only known names are kept,
/// since no list names all harmful ones, such as MRN.
const READ_NUMBERS: [&str; 20] = [
    "acqDelayTime",
    "dwellTime",
    "echoSpacing",
    "EmbeddedRefLinesE1",
    "EmbeddedRefLinesE2",
    "etl",
    "flatTopTime",
    "fov_coeff_1_cm",
    "fov_coefficients",
    "interleaves",
    "krmax_per_cm",
    "max_gradient_G_per_cm",
    "max_slew_rate_G_per_cm_per_s",
    "MaxwellCoefficient",
    "numberOfNavigators",
    "numSamples",
    "rampDownTime",
    "rampUpTime",
    "regridMode",
    "SamplingTime_ns",
];

/// Whether a numeric user parameter of this name is kept. The names of a list end in a number:
/// `MaxwellCoefficient_3`.
fn is_read(name: &str) -> bool {
    let digits = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let list = digits.strip_suffix('_').filter(|_| digits.len() < name.len()).unwrap_or(name);
    READ_NUMBERS.iter().any(|known| known.eq_ignore_ascii_case(list))
}

/// What a header says of the patient, the study and the place: the paths of elements and their texts.
///
/// ```
/// use rayspin_io::ismrmrd::{identity_of, parse_header};
///
/// let space = "<matrixSize><x>32</x><y>32</y><z>1</z></matrixSize>\
///     <fieldOfView_mm><x>220</x><y>220</y><z>5</z></fieldOfView_mm>";
/// let xml = format!(
///     "<ismrmrdHeader><subjectInformation><patientName>Doe</patientName></subjectInformation>\
///     <encoding><encodedSpace>{space}</encodedSpace><reconSpace>{space}</reconSpace>\
///     <encodingLimits/><trajectory>cartesian</trajectory></encoding></ismrmrdHeader>"
/// );
/// let (mut header, _notes) = parse_header("scan.h5", xml.as_bytes())?;
/// header.xml = Some(xml);
/// let told = identity_of(&header);
/// assert_eq!((told.len(), told[0].1.as_str()), (1, "Doe"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn identity_of(header: &ScanHeader) -> Vec<(String, String)> {
    let removed = header.xml.as_deref().and_then(|xml| without_identity(xml).ok());
    removed.map(|(_, removed)| removed).unwrap_or_default()
}

/// A header without what may tell whose scan it is, and that as the paths and the texts of its elements. A
/// header that tells nothing comes back as it is.
pub(super) fn without_identity(xml: &str) -> Result<(String, Vec<(String, String)>), String> {
    let root = xml::parse(xml)?;
    let mut removed = Vec::new();
    let mut kept = Vec::new();
    for node in root.children() {
        let node = harmless(node, node.name.clone(), &mut removed);
        kept.extend(node);
    }
    if removed.is_empty() && !xml.contains("<!--") {
        return Ok((xml.to_owned(), removed));
    }
    let mut out = Xml::default();
    out.text.push_str("<?xml version=\"1.0\"?>\n");
    out.open("ismrmrdHeader xmlns=\"http://www.ismrm.org/ISMRMRD\"");
    kept.iter().for_each(|node| write(&mut out, node));
    out.close("ismrmrdHeader");
    Ok((out.text, removed))
}

/// The part of an element that is kept; what is not goes to `removed`.
fn harmless(node: &Node, path: String, removed: &mut Vec<(String, String)>) -> Option<Node> {
    let whole = HARMLESS.iter().any(|known| path == *known || path.starts_with(&format!("{known}/")));
    let beyond = HARMLESS.iter().any(|known| known.starts_with(&format!("{path}/")));
    let name = || node.text_at(&["name"]).unwrap_or_default();
    let refused = match node.name.as_str() {
        "userParameterString" => !READ_STRINGS.iter().any(|known| known.eq_ignore_ascii_case(name())),
        "userParameterBase64" | "comment" => true,
        "userParameterLong" | "userParameterDouble" => {
            !is_read(name())
                || node.text_at(&["value"]).is_none_or(|text| text.trim().parse::<f64>().is_err())
        }
        _ => !(whole || beyond),
    };
    if refused {
        texts(node, &path, removed);
        return None;
    }
    let own_text = if whole { node.text() } else { "" };
    if own_text.len() < node.text().len() {
        removed.push((path.clone(), node.text().to_owned()));
    }
    let parts = node.children().iter();
    let parts: Vec<Node> =
        parts.filter_map(|part| harmless(part, format!("{path}/{}", part.name), removed)).collect();
    // What held nothing else says nothing either.
    let emptied = parts.is_empty() && !node.children().is_empty();
    (!emptied).then(|| Node::new(&node.name, own_text, parts))
}

/// Every text of an element, with its path.
fn texts(node: &Node, path: &str, out: &mut Vec<(String, String)>) {
    if !node.text().is_empty() {
        out.push((path.to_owned(), node.text().to_owned()));
    }
    for part in node.children() {
        texts(part, &format!("{path}/{}", part.name), out);
    }
}

/// Writes an element with all that it holds.
pub(super) fn write(out: &mut Xml, node: &Node) {
    if node.children().is_empty() {
        return out.leaf(&node.name, node.text());
    }
    out.open(&node.name);
    node.children().iter().for_each(|part| write(out, part));
    out.close(&node.name);
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPACE: &str = "<matrixSize><x>8</x><y>6</y><z>1</z></matrixSize>";

    #[test]
    fn what_tells_of_the_patient_is_removed_and_the_rest_is_kept() {
        let xml = format!(
            "<?xml version=\"1.0\"?><!-- of DOE --><i:ismrmrdHeader xmlns:i=\"u\"><subjectInformation><patientName>DOE^JANE\
             </patientName><patientID>4711</patientID></subjectInformation><studyInformation><studyDate>2020-02-29</studyDate>\
             </studyInformation><measurementInformation><measurementID>41_DOE</measurementID><patientPosition>HFS\
             </patientPosition><protocolName>T1 &amp; more</protocolName></measurementInformation>\
             <acquisitionSystemInformation><systemVendor>V</systemVendor><institutionName>St. Doe's</institutionName>\
             </acquisitionSystemInformation><experimentalConditions><H1resonanceFrequency_Hz>1</H1resonanceFrequency_Hz>\
             </experimentalConditions><encoding><encodedSpace>{SPACE}</encodedSpace><trajectoryDescription><identifier>a\
             </identifier><userParameterString><name>who</name><value>DOE 2</value></userParameterString>\
             </trajectoryDescription></encoding><userParameters><userParameterLong><name>etl</name><value>3</value>\
             </userParameterLong><userParameterString><name>Trajectory_Units</name><value>1/m</value></userParameterString>\
             <userParameterBase64><name>b</name><value>RE9F</value></userParameterBase64></userParameters><vendorPart>DOE 3\
             </vendorPart></i:ismrmrdHeader>"
        );
        let (kept, removed) = without_identity(&xml).unwrap();
        for word in ["DOE", "4711", "2020", "Doe", "RE9F", "<!--"] {
            assert!(!kept.contains(word), "{word} in {kept}");
        }
        let paths: Vec<&str> = removed.iter().map(|(path, _)| path.as_str()).collect();
        assert_eq!(
            paths,
            [
                "subjectInformation/patientName",
                "subjectInformation/patientID",
                "studyInformation/studyDate",
                "measurementInformation/measurementID",
                "acquisitionSystemInformation/institutionName",
                "encoding/trajectoryDescription/userParameterString/name",
                "encoding/trajectoryDescription/userParameterString/value",
                "userParameters/userParameterBase64/name",
                "userParameters/userParameterBase64/value",
                "vendorPart",
            ]
        );
        assert_eq!(removed[0].1, "DOE^JANE");
        let tree = xml::parse(&kept).unwrap();
        assert_eq!(tree.text_at(&["measurementInformation", "protocolName"]), Some("T1 & more"));
        assert_eq!(tree.text_at(&["encoding", "encodedSpace", "matrixSize", "y"]), Some("6"));
        assert_eq!(tree.text_at(&["encoding", "trajectoryDescription", "identifier"]), Some("a"));
        assert_eq!(tree.text_at(&["userParameters", "userParameterLong", "value"]), Some("3"));
        assert_eq!(tree.text_at(&["userParameters", "userParameterString", "value"]), Some("1/m"));
        // What is without identity stays as it is.
        assert_eq!(without_identity(&kept).unwrap(), (kept, Vec::new()));
    }

    #[test]
    fn numbers_that_tell_of_the_patient_and_comments_are_removed() {
        let number = |kind: &str, name: &str, value: &str| {
            format!("<userParameter{kind}><name>{name}</name><value>{value}</value></userParameter{kind}>")
        };
        let (age, lines, text) = (
            number("Double", "flPatientAge", "71.5"),
            number("Long", "EmbeddedRefLinesE1", "24"),
            number("Long", "etl", "DOE"),
        );
        let xml = format!(
            "<ismrmrdHeader><encoding><encodedSpace>{SPACE}</encodedSpace><trajectoryDescription><identifier>a</identifier>{}\
             <comment>of DOE</comment></trajectoryDescription></encoding><userParameters>{age}{lines}{text}{}</userParameters>\
             </ismrmrdHeader>",
            number("Double", "rampUpTime", "120"),
            number("Long", "study_date", "20200229"),
        );
        let (kept, removed) = without_identity(&xml).unwrap();
        for word in ["Age", "71.5", "DOE", "2020"] {
            assert!(!kept.contains(word), "{word} in {kept}");
        }
        assert!(kept.contains("EmbeddedRefLinesE1") && kept.contains("rampUpTime"), "{kept}");
        assert_eq!(removed.iter().filter(|(path, _)| path.ends_with("/value")).count(), 3, "{removed:?}");
        for (name, kept) in [
            ("maxwellcoefficient_12", true),
            ("dwellTime", true),
            ("dwellTimeOfDoe", false),
            ("MaxwellCoefficient_", false),
            ("MRN", false),
            ("ssn", false),
            ("UnixTime", false),
            ("CaseNumber_2", false),
            ("Average", false),
            ("", false),
        ] {
            assert_eq!(is_read(name), kept, "{name}");
        }
    }
}
