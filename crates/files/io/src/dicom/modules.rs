//! The elements of the files that are written, module by module (PS3.3): CT Image Storage, MR Image Storage,
//! and Secondary Capture for images of neither.

use std::collections::{BTreeMap, BTreeSet};

use rayspin_core::Geometry;
use rayspin_scan::mri::{Label, TIMES, varying};

use super::encode::{self, Elements};
use super::scale::Scale;
use super::tag::{self, Tag};
use super::write::{IMPLEMENTATION, IMPLEMENTATION_NAME};
use crate::{EncodingProtocol, Modality, Origin, Protocol, Values};

/// Codes of how a patient lies.
const PATIENT_POSITIONS: [&str; 8] = ["HFP", "HFS", "HFDR", "HFDL", "FFDR", "FFDL", "FFP", "FFS"];
/// The longest text of a long string (LO).
const LONG_STRING: usize = 64;
/// The unit of values that have none, or none that is known.
const UNKNOWN_UNIT: &str = "US";

/// What the files of a folder share.
pub(super) struct Files {
    /// Of each volume.
    pub(super) shape: [usize; 3],
    pub(super) geometry: Geometry,
    pub(super) scale: Scale,
    /// The lowest and the highest value.
    pub(super) range: [f64; 2],
    /// Hash of the values, of their place and of what is stated beside them: equal images have equal UIDs.
    pub(super) hash: blake3::Hash,
    /// What made the image, where that is known.
    pub(super) modality: Option<Modality>,
    /// Whether the values are Hounsfield units.
    pub(super) hounsfield: bool,
    pub(super) values: Values,
    pub(super) origin: Origin,
    /// The volumes.
    pub(super) labels: Vec<Label>,
    /// Whether the labels are the scan's, and no numbers of volumes.
    pub(super) is_labelled: bool,
    pub(super) order: Order,
}

/// How the volumes of a folder are numbered. Each set is a series, as no element of MR numbers sets.
pub(super) struct Order {
    /// The number of each volume's series, from 0.
    series: Vec<usize>,
    /// Volumes of the same series before each.
    before: Vec<usize>,
    /// The place of each volume in time, from 0.
    time: Vec<usize>,
    /// Points in time.
    times: usize,
    sets: usize,
}

impl Order {
    pub(super) fn of(labels: &[Label]) -> Self {
        let of_set = |label: &Label| label.set;
        let of_time = |label: &Label| (label.repetition, label.phase);
        let sets: BTreeSet<u16> = labels.iter().map(of_set).collect();
        let times: BTreeSet<(u16, u16)> = labels.iter().map(of_time).collect();
        let number_of_set: BTreeMap<u16, usize> = sets.iter().copied().zip(0..).collect();
        let number_of_time: BTreeMap<(u16, u16), usize> = times.iter().copied().zip(0..).collect();
        let series: Vec<usize> = labels.iter().map(|label| number_of_set[&label.set]).collect();
        let mut counts = vec![0; sets.len()];
        let before = series.iter().map(|&number| {
            counts[number] += 1;
            counts[number] - 1
        });
        Self {
            before: before.collect(),
            time: labels.iter().map(|label| number_of_time[&of_time(label)]).collect(),
            times: times.len(),
            sets: sets.len(),
            series,
        }
    }
}

/// A UID that is made of a UUID (PS3.5 B.2), version 8.
fn uid_of(hash: &[u8], what: &str) -> String {
    let hash = blake3::Hasher::new().update(hash).update(what.as_bytes()).finalize();
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash.as_bytes()[..16]);
    bytes[6] = bytes[6] & 0x0f | 0x80;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    format!("2.25.{}", u128::from_be_bytes(bytes))
}

/// A single number.
fn only(list: &[f64]) -> Option<f64> {
    if let [one] = list { Some(*one) } else { None }
}

/// A file of MR in the making, with what its volume says.
struct Mr<'a> {
    protocol: &'a Protocol,
    encoding: EncodingProtocol,
    label: Label,
    /// Whether the label is the scan's.
    is_labelled: bool,
}

impl Mr<'_> {
    fn echo_time(&self) -> Option<f64> {
        if !self.is_labelled {
            return only(&self.protocol.sequence.echo_times_ms);
        }
        self.protocol.sequence.echo_times_ms.get(usize::from(self.label.contrast)).copied()
    }

    /// The sequence in the words of DICOM, as far as the scan tells.
    fn sequences(&self) -> Vec<String> {
        let mut words = self.protocol.stated.scanning_sequence.clone();
        if words.is_empty() && self.encoding.echo_planar {
            words.push("EP".to_owned());
        }
        if !words.is_empty() && !self.protocol.sequence.inversion_times_ms.is_empty() {
            let inverts = "IR".to_owned();
            words.extend((!words.contains(&inverts)).then_some(inverts));
        }
        words
    }
}

impl Files {
    fn class(&self) -> &'static str {
        match self.modality {
            Some(Modality::Ct) => "1.2.840.10008.5.1.4.1.1.2",
            Some(Modality::Mr) => "1.2.840.10008.5.1.4.1.1.4",
            None => "1.2.840.10008.5.1.4.1.1.7",
        }
    }

    fn uid(&self, what: &str) -> String {
        uid_of(self.hash.as_bytes(), what)
    }

    /// A UID that images of one scan share.
    fn uid_of_scan(&self, what: &str) -> String {
        let scan = self.origin.protocol.as_ref().and_then(|protocol| protocol.fingerprint.as_ref());
        scan.map_or_else(|| self.uid(what), |scan| uid_of(scan.as_bytes(), what))
    }

    fn label(&self, volume: usize) -> Label {
        self.labels.get(volume).copied().unwrap_or_default()
    }

    fn with_protocol<T>(&self, volume: usize, make: impl FnOnce(&Mr<'_>) -> T) -> T {
        let nothing = Protocol::default();
        let protocol = self.origin.protocol.as_deref().unwrap_or(&nothing);
        let label = self.label(volume);
        let encoding = protocol.encoding(label.encoding);
        make(&Mr { protocol, encoding, label, is_labelled: self.is_labelled })
    }

    /// The number of a volume's series among those of the folder, from 0.
    fn series(&self, volume: usize) -> usize {
        self.order.series.get(volume).copied().unwrap_or(0)
    }

    /// The file of a slice of a volume; `plane` are its numbers.
    pub(super) fn bytes(&self, volume: usize, slice: usize, plane: impl Iterator<Item = f32>) -> Vec<u8> {
        let [nz, _, _] = self.shape;
        let instance = self.uid(&format!("slice {}", volume * nz + slice));
        let mut set = Elements::new();
        self.put_examination(&mut set);
        self.put_series(&mut set, volume);
        self.put_equipment(&mut set);
        self.put_image(&mut set, volume, slice);
        self.put_plane(&mut set, volume, slice);
        set.text(tag::SOP_CLASS, b"UI", self.class());
        set.text(tag::SOP_INSTANCE, b"UI", &instance);
        match self.modality {
            Some(Modality::Ct) => set.empty(&[(tag::KVP, b"DS"), (tag::ACQUISITION, b"IS")]),
            Some(Modality::Mr) => self.put_mr(&mut set, volume),
            None => {
                // Made by a workstation.
                set.text(tag::CONVERSION, b"CS", "WSD");
                set.empty(&[(tag::PATIENT_ORIENTATION, b"CS")]);
            }
        }
        if let Some(template) = &self.origin.template {
            template.put(&mut set);
        }
        self.put_pixels(&mut set, plane);
        let head = encode::head(self.class(), &instance, IMPLEMENTATION, IMPLEMENTATION_NAME);
        [head, set.into_bytes()].concat()
    }

    /// What must be there, and is known of no patient without a template.
    fn put_examination(&self, set: &mut Elements) {
        set.empty(&[(tag::PATIENT_NAME, b"PN"), (tag::PATIENT_ID, b"LO"), (tag::BIRTH_DATE, b"DA")]);
        set.empty(&[(tag::SEX, b"CS"), (tag::STUDY_DATE, b"DA"), (tag::STUDY_TIME, b"TM")]);
        set.empty(&[(tag::ACCESSION, b"SH"), (tag::PHYSICIAN, b"PN"), (tag::STUDY_ID, b"SH")]);
        set.text(tag::STUDY, b"UI", &self.uid_of_scan("study"));
    }

    fn put_series(&self, set: &mut Elements, volume: usize) {
        let series = self.series(volume);
        set.text(tag::MODALITY, b"CS", self.modality.map_or("OT", Modality::code));
        set.text(tag::SERIES, b"UI", &self.uid(&format!("series {series}")));
        // Magnitudes, phases and real parts of one set stand together.
        let kind = match self.values {
            Values::Phase => 1,
            Values::Real if self.range[0] < 0.0 => 2,
            _ => 0,
        };
        let number = match self.modality {
            Some(Modality::Mr) => 1 + kind + 3 * series,
            _ => 1,
        };
        let template = self.origin.template.as_ref();
        let number = template.map_or(number, |template| template.series_number(number));
        set.text(tag::SERIES_NUMBER, b"IS", &number.to_string());
        set.text(tag::FRAME_OF_REFERENCE, b"UI", &self.uid_of_scan("frame of reference"));
        set.empty(&[(tag::LATERALITY, b"CS"), (tag::POSITION_REFERENCE, b"LO")]);
        let protocol = self.origin.protocol.as_ref();
        let position = protocol.and_then(|protocol| protocol.patient_position.as_deref());
        let position = position.filter(|code| PATIENT_POSITIONS.contains(code)).unwrap_or_default();
        set.text(tag::PATIENT_POSITION, b"CS", position);
        if let Some(name) = protocol.and_then(|protocol| protocol.name.as_deref()) {
            self.put_words(set, tag::SERIES_DESCRIPTION, name);
            self.put_words(set, tag::PROTOCOL, name);
        }
    }

    /// Text from a scan, in the letters that the file may have.
    fn put_words(&self, set: &mut Elements, tag: Tag, words: &str) {
        let template = self.origin.template.as_ref();
        let unicode = !words.is_ascii() && !template.is_some_and(|template| template.has_character_set());
        let fits = |letter: char| match letter {
            '\\' => '/',
            letter if letter.is_control() || (!letter.is_ascii() && !unicode) => '?',
            letter => letter,
        };
        let text: String = words.chars().take(LONG_STRING).map(fits).collect();
        if unicode {
            set.text(tag::CHARACTER_SET, b"CS", "ISO_IR 192");
        }
        set.text(tag, b"LO", text.trim());
    }

    /// Rayspin makes the images; a scanner contributed.
    fn put_equipment(&self, set: &mut Elements) {
        set.text(tag::MANUFACTURER, b"LO", "Rayspin");
        set.text(tag::SOFTWARE, b"LO", concat!("Rayspin ", env!("CARGO_PKG_VERSION")));
        let protocol = self.origin.protocol.as_ref();
        let Some((vendor, protocol)) = protocol.and_then(|own| Some((own.vendor.as_deref()?, own))) else {
            return;
        };
        let mut scanner = Elements::new();
        self.put_words(&mut scanner, tag::MANUFACTURER, vendor);
        if let Some(model) = &protocol.model {
            self.put_words(&mut scanner, tag::MODEL, model);
        }
        scanner.item(tag::PURPOSE, code("109101", "DCM", "Acquisition Equipment"));
        set.item(tag::EQUIPMENT, scanner);
    }

    fn put_image(&self, set: &mut Elements, volume: usize, slice: usize) {
        // An original image of CT has Hounsfield units.
        let is_original = self.origin.measured && (self.modality == Some(Modality::Mr) || self.hounsfield);
        let origin = if is_original { "ORIGINAL\\PRIMARY" } else { "DERIVED\\SECONDARY" };
        let kind = match (self.modality, self.values) {
            (None, _) => "",
            (Some(Modality::Ct), _) => "\\AXIAL",
            (Some(Modality::Mr), Values::Phase) => "\\PHASE MAP\\P",
            (Some(Modality::Mr), Values::Real) if self.range[0] < 0.0 => "\\OTHER\\R",
            (Some(Modality::Mr), _) => "\\OTHER\\M",
        };
        set.text(tag::IMAGE_TYPE, b"CS", &format!("{origin}{kind}"));
        let before = self.order.before.get(volume).copied().unwrap_or(volume);
        set.text(tag::INSTANCE, b"IS", &(before * self.shape[0] + slice + 1).to_string());
    }

    fn put_plane(&self, set: &mut Elements, volume: usize, slice: usize) {
        let Geometry { spacing_mm: [sx, sy, sz], read_dir, phase_dir, .. } = self.geometry;
        let affine = self.geometry.affine_lps(self.shape);
        // Slices may have gaps between them, or overlap.
        let thickness = self.with_protocol(volume, |mr| match mr.encoding.is_3d {
            true => None,
            false => mr.encoding.thickness_mm,
        });
        set.decimals(tag::PIXEL_SPACING, &[sy, sx]);
        set.decimals(tag::THICKNESS, &[thickness.unwrap_or(sz)]);
        set.decimals(tag::BETWEEN_SLICES, &[sz]);
        set.decimals(tag::POSITION, &affine.map(|row| row[3] + row[2] * slice as f64));
        set.decimals(tag::ORIENTATION, [read_dir, phase_dir].as_flattened());
    }

    fn put_mr(&self, set: &mut Elements, volume: usize) {
        let (time, times) = (self.order.time.get(volume).copied().unwrap_or(0), self.order.times);
        self.with_protocol(volume, |mr| {
            let Protocol { sequence, stated, field_strength_t, .. } = mr.protocol;
            let number = |set: &mut Elements, tag, number: Option<f64>| match number {
                Some(number) => set.decimals(tag, &[number]),
                None => set.text(tag, b"DS", ""),
            };
            let words = |words: &[String], unknown: &str| match words {
                [] => unknown.to_owned(),
                words => words.join("\\"),
            };
            let sequences = mr.sequences();
            set.text(tag::SCANNING_SEQUENCE, b"CS", &words(&sequences, "RM"));
            set.text(tag::SEQUENCE_VARIANT, b"CS", &words(&stated.sequence_variant, "NONE"));
            set.text(tag::SCAN_OPTIONS, b"CS", &words(&stated.scan_options, ""));
            let known = self.origin.protocol.is_some();
            let dimensions = if mr.encoding.is_3d { "3D" } else { "2D" };
            set.text(tag::ACQUISITION_TYPE, b"CS", if known { dimensions } else { "" });
            number(set, tag::REPETITION_TIME, only(&sequence.repetition_times_ms));
            number(set, tag::ECHO_TIME, mr.echo_time());
            let train = stated.echo_train_length.map_or_else(String::new, |length| length.to_string());
            set.text(tag::ECHO_TRAIN, b"IS", &train);
            let of_set = |list: &[f64]| mr.protocol.of_volume(list, &mr.label);
            let inversion = of_set(&sequence.inversion_times_ms);
            if inversion.is_some() || sequences.iter().any(|word| word == "IR") {
                number(set, tag::INVERSION_TIME, inversion);
            }
            for (tag, stated) in [
                (tag::FLIP_ANGLE, of_set(&sequence.flip_angles_deg)),
                (tag::FIELD_STRENGTH, *field_strength_t),
            ] {
                if stated.is_some() {
                    number(set, tag, stated);
                }
            }
            if let Some(hertz) = mr.protocol.imaging_hz() {
                set.decimals(tag::FREQUENCY, &[hertz * 1e-6]);
            }
            if let Some(nucleus) = mr.protocol.nucleus() {
                set.text(tag::NUCLEUS, b"SH", nucleus);
            }
            if mr.encoding.lines {
                set.text(tag::PHASE_DIRECTION, b"CS", "COL");
            }
            if known && mr.is_labelled {
                set.text(tag::ECHO_NUMBERS, b"IS", &(usize::from(mr.label.contrast) + 1).to_string());
            }
        });
        if self.labels.iter().any(|label| label.phase != self.label(0).phase) {
            set.empty(&[(tag::TRIGGER_TIME, b"DS")]);
        }
        if times > 1 && self.is_labelled {
            set.text(tag::ACQUISITION, b"IS", &(time + 1).to_string());
            set.text(tag::TEMPORAL_POSITION, b"IS", &(time + 1).to_string());
            set.text(tag::TEMPORAL_POSITIONS, b"IS", &times.to_string());
            // Images that follow each other in time have these.
            set.empty(&[(tag::CONTENT_DATE, b"DA"), (tag::CONTENT_TIME, b"TM")]);
        }
    }

    fn put_pixels(&self, set: &mut Elements, plane: impl Iterator<Item = f32>) {
        let [_, ny, nx] = self.shape;
        let Scale { slope, intercept, signed } = self.scale;
        set.short(tag::SAMPLES, 1);
        set.text(tag::PHOTOMETRIC, b"CS", "MONOCHROME2");
        set.short(tag::ROWS, ny as u16);
        set.short(tag::COLUMNS, nx as u16);
        set.short(tag::BITS_ALLOCATED, 16);
        set.short(tag::BITS_STORED, 16);
        set.short(tag::HIGH_BIT, 15);
        set.short(tag::REPRESENTATION, u16::from(signed));
        set.decimals(tag::INTERCEPT, &[intercept]);
        set.decimals(tag::SLOPE, &[slope]);
        set.text(tag::RESCALE_TYPE, b"LO", if self.hounsfield { "HU" } else { UNKNOWN_UNIT });
        if self.modality == Some(Modality::Mr) {
            set.item(tag::REAL_VALUES, self.real_values());
            // Widths below 1 are for this function alone.
            let [low, high] = [self.range[0].min(0.0), self.range[1]];
            if high > low {
                set.decimals(tag::WINDOW_CENTRE, &[0.5 * (low + high)]);
                set.decimals(tag::WINDOW_WIDTH, &[high - low]);
                set.text(tag::WINDOW_FUNCTION, b"CS", "LINEAR_EXACT");
            }
        }
        let pixels: Vec<u8> = plane.flat_map(|value| self.scale.stored(value).to_le_bytes()).collect();
        set.put(tag::PIXEL_DATA, b"OW", &pixels);
    }

    /// Slope and intercept where the standard has them for MR. Some programs read them there alone.
    fn real_values(&self) -> Elements {
        let Scale { slope, intercept, signed } = self.scale;
        let kind = if signed { b"SS" } else { b"US" };
        let mut item = Elements::new();
        let [least, most] = self.scale.limits();
        item.put(tag::REAL_FIRST, kind, &(least as u16).to_le_bytes());
        item.put(tag::REAL_LAST, kind, &(most as u16).to_le_bytes());
        item.double(tag::REAL_INTERCEPT, intercept);
        item.double(tag::REAL_SLOPE, slope);
        let (explanation, unit) = match self.values {
            Values::Phase => ("Phase in radian", code("rad", "UCUM", "radian")),
            _ => ("Signal without a unit", code("1", "UCUM", "no units")),
        };
        item.text(tag::LUT_EXPLANATION, b"LO", explanation);
        item.text(tag::REAL_LABEL, b"SH", if self.values == Values::Phase { "phase" } else { "signal" });
        item.item(tag::REAL_UNITS, unit);
        item
    }

    /// What is assumed or empty, since the scan does not state it.
    pub(super) fn notes(&self) -> Vec<String> {
        if self.modality != Some(Modality::Mr) {
            return Vec::new();
        }
        let mut notes = Vec::new();
        let (mut assumed, mut empty) = (Vec::new(), Vec::new());
        for volume in 0..self.labels.len().max(1) {
            self.with_protocol(volume, |mr| {
                let Protocol { sequence, stated, .. } = mr.protocol;
                let names_nucleus = mr.protocol.imaging_hz().is_none() || stated.nucleus.is_some();
                unless(&mut assumed, !mr.sequences().is_empty(), "ScanningSequence RM");
                unless(&mut assumed, !stated.sequence_variant.is_empty(), "SequenceVariant NONE");
                unless(&mut assumed, names_nucleus, "ImagedNucleus 1H");
                unless(&mut empty, self.origin.protocol.is_some(), "MRAcquisitionType");
                unless(&mut empty, only(&sequence.repetition_times_ms).is_some(), "RepetitionTime");
                unless(&mut empty, mr.echo_time().is_some(), "EchoTime");
                unless(&mut empty, stated.echo_train_length.is_some(), "EchoTrainLength");
            });
        }
        if !assumed.is_empty() {
            notes.push(format!("assumed, as the scan does not state it: {}", assumed.join(", ")));
        }
        if !empty.is_empty() {
            notes.push(format!("empty, as the scan does not state it: {}", empty.join(", ")));
        }
        let counters = varying(&self.labels);
        if counters.iter().any(|(name, _)| *name == "set") {
            notes.push(format!("each of the {} sets is a series of its own", self.order.sets));
        }
        if counters.iter().filter(|(name, _)| TIMES.contains(name)).count() > 1 {
            notes.push(
                "cardiac phases and repetitions are numbered together (TemporalPositionIdentifier), the \
                 phases faster"
                    .to_owned(),
            );
        }
        notes
    }
}

/// Lists a name, once, unless the scan tells what it stands for.
fn unless(list: &mut Vec<&'static str>, told: bool, name: &'static str) {
    if !told && !list.contains(&name) {
        list.push(name);
    }
}

/// An entry of a code, as an item.
fn code(value: &str, scheme: &str, meaning: &str) -> Elements {
    let mut item = Elements::new();
    item.text(tag::CODE, b"SH", value);
    item.text(tag::CODE_SCHEME, b"SH", scheme);
    item.text(tag::CODE_MEANING, b"LO", meaning);
    item
}
