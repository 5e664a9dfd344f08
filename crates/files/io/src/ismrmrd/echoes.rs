//! The times and angles of the sequence that a header states.

use rayspin_scan::mri::ScanHeader;

use super::header_in::{HYDROGEN_HZ_PER_T, STRONGEST_T};
use super::xml;
use crate::protocol::{Sequence, Stated};

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

impl Sequence {
    /// What a header states.
    pub fn of(header: &ScanHeader) -> Self {
        let root = header.xml.as_deref().and_then(|xml| xml::parse(xml).ok());
        let parameters = root.as_ref().and_then(|root| root.child("sequenceParameters"));
        let numbers = |name: &str| {
            let texts = parameters.into_iter().flat_map(|node| node.all(name)).map(|node| node.text().trim());
            let numbers = texts.map(str::parse).collect::<Result<Vec<f64>, _>>().unwrap_or_default();
            if numbers.iter().all(|number| number.is_finite()) { numbers } else { Vec::new() }
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

/// The words of DICOM for sequences and their variants.
const SEQUENCES: [&str; 5] = ["SE", "IR", "GR", "EP", "RM"];
const VARIANTS: [&str; 8] = ["SK", "MTC", "SS", "TRSS", "SP", "MP", "OSP", "NONE"];
/// Types of sequences as converters name them, and the words of DICOM.
const TYPES: [(&str, &[&str], &[&str]); 5] = [
    ("flash", &["GR"], &[]),
    ("ssfp", &["GR"], &["SS"]),
    ("epi", &["EP"], &[]),
    ("turbospinecho", &["SE"], &["SK"]),
    ("spinecho", &["SE"], &[]),
];

/// Words that are taken of a text: elements of DICOM hold 64 KiB.
const MOST_WORDS: usize = 16;

impl Stated {
    /// The names of the user parameters that are text.
    pub(crate) const TEXTS: [&str; 4] =
        ["scanning_sequence", "sequence_variant", "scan_options", "imaged_nucleus"];
    /// The name of the user parameter that is a number.
    pub(crate) const TRAIN: &str = "etl";

    /// Words of a text with backslashes between them, of which `known` are taken, or all codes.
    pub(crate) fn words(text: &str, known: &[&str]) -> Vec<String> {
        let is_code = |word: &str| {
            let letters = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
            (1..=16).contains(&word.len()) && word.bytes().all(letters)
        };
        let fits = |word: &&str| if known.is_empty() { is_code(word) } else { known.contains(word) };
        let mut words: Vec<String> = Vec::new();
        for word in text.split('\\').map(str::trim).filter(fits) {
            if words.len() < MOST_WORDS && !words.iter().any(|known| known == word) {
                words.push(word.to_owned());
            }
        }
        words
    }

    /// A nucleus, as in 1H, 23Na or 129Xe.
    pub(crate) fn nucleus_of(text: &str) -> Option<String> {
        let name = text.trim();
        let symbol = name.trim_start_matches(|letter: char| letter.is_ascii_digit());
        let digits = name.len() - symbol.len();
        let mut letters = symbol.chars();
        let capital = letters.next().is_some_and(|letter| letter.is_ascii_uppercase());
        let rest = letters.as_str();
        let small =
            rest.is_empty() || (rest.len() == 1 && rest.bytes().all(|byte| byte.is_ascii_lowercase()));
        ((1..=3).contains(&digits) && capital && small).then(|| name.to_owned())
    }

    /// The words of these texts: the sequence, its variant and its options.
    pub(crate) fn of_texts([sequence, variant, options]: [Option<&str>; 3]) -> Self {
        let words = |text: Option<&str>, known: &[&str]| Self::words(text.unwrap_or_default(), known);
        Self {
            scanning_sequence: words(sequence, &SEQUENCES),
            sequence_variant: words(variant, &VARIANTS),
            scan_options: words(options, &[]),
            ..Self::default()
        }
    }

    /// What a header states.
    pub fn of(header: &ScanHeader) -> Self {
        let Some(root) = header.xml.as_deref().and_then(|xml| xml::parse(xml).ok()) else {
            return Self::default();
        };
        let user = |kind: &str, name: &str| {
            let list = root.child("userParameters")?.all(kind);
            let mut own = list.filter(|entry| entry.text_at(&["name"]) == Some(name));
            own.next()?.text_at(&["value"]).map(str::to_owned)
        };
        let [sequence, variant, options, nucleus] = Self::TEXTS.map(|name| user("userParameterString", name));
        let mut stated = Self::of_texts([sequence, variant, options].each_ref().map(Option::as_deref));
        let own = root.text_at(&["sequenceParameters", "sequence_type"]).map(str::to_ascii_lowercase);
        if let Some((_, sequences, variants)) = TYPES.iter().find(|(name, ..)| own.as_deref() == Some(*name))
        {
            let owned = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
            if stated.scanning_sequence.is_empty() {
                stated.scanning_sequence = owned(sequences);
            }
            if stated.sequence_variant.is_empty() {
                stated.sequence_variant = owned(variants);
            }
        }
        let train = user("userParameterLong", Self::TRAIN).and_then(|text| text.trim().parse().ok());
        stated.echo_train_length = train.filter(|length| *length > 0);
        stated.nucleus = nucleus.as_deref().and_then(Self::nucleus_of);
        // A nucleus that is not understood may be another than hydrogen.
        let is_known = stated.nucleus.is_some() || nucleus.is_none_or(|text| text.trim().is_empty());
        let hertz = root.text_at(&["experimentalConditions", "H1resonanceFrequency_Hz"]);
        let hertz = hertz.and_then(|text| text.trim().parse::<f64>().ok());
        let plausible = |hz: &f64| is_known && *hz > 0.0 && hz / HYDROGEN_HZ_PER_T <= STRONGEST_T;
        stated.hydrogen_hz = hertz.filter(plausible);
        stated
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_of_a_sequence_is_read_in_the_words_of_dicom() {
        let of = |inner: &str| {
            let xml = Some(format!("<ismrmrdHeader>{inner}</ismrmrdHeader>"));
            Stated::of(&ScanHeader { xml, ..ScanHeader::default() })
        };
        let user = |name: &str, value: &str| {
            format!(
                "<userParameters><userParameterString><name>{name}</name><value>{value}</value>\
                 </userParameterString></userParameters>"
            )
        };
        assert_eq!(of(&user("sequence_variant", "SP\\OSP\\Jane Doe")).sequence_variant, ["SP", "OSP"]);
        assert_eq!(of(&user("scan_options", "PFP\\a b\\FS")).scan_options, ["PFP", "FS"]);
        assert_eq!(of(&user("scan_options", &"FS\\".repeat(20_000))).scan_options, ["FS"]);
        let many: Vec<String> = (0..20_000).map(|number| format!("A{number}")).collect();
        assert_eq!(of(&user("scan_options", &many.join("\\"))).scan_options.len(), MOST_WORDS);
        for name in ["1H", "23Na", "129Xe", "3He", "31P"] {
            assert_eq!(Stated::nucleus_of(name).as_deref(), Some(name));
        }
        for name in ["", "H", "1", "1H\\Jane Doe", "1hydrogen", "1234H", "23NA"] {
            assert_eq!(Stated::nucleus_of(name), None, "{name}");
        }
        let typed = "<sequenceParameters><sequence_type>TurboSpinEcho</sequence_type></sequenceParameters>";
        let spin = of(typed);
        assert_eq!((spin.scanning_sequence, spin.sequence_variant), (vec!["SE".into()], vec!["SK".into()]));
        let frequency = |hz: &str| {
            of(&format!(
                "<experimentalConditions><H1resonanceFrequency_Hz>{hz}</H1resonanceFrequency_Hz>\
                 </experimentalConditions>"
            ))
            .hydrogen_hz
        };
        assert_eq!(
            (frequency("123263001"), frequency("0"), frequency("1e15")),
            (Some(123263001.0), None, None)
        );
        assert_eq!(of(""), Stated::default());
    }
}
