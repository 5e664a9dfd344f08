//! Whose image a file is: patient and study of another DICOM file.

use std::path::Path;

use super::dataset::{Dataset, File};
use super::encode::Elements;
use super::tag::{self, Tag};
use crate::{DicomTemplate, Error, Modality, Result};

/// The elements that are taken over, with their types.
const TAKEN: [(Tag, &[u8; 2]); 12] = [
    (tag::CHARACTER_SET, b"CS"),
    (tag::STUDY_DATE, b"DA"),
    (tag::STUDY_TIME, b"TM"),
    (tag::ACCESSION, b"SH"),
    (tag::PHYSICIAN, b"PN"),
    (tag::PATIENT_NAME, b"PN"),
    (tag::PATIENT_ID, b"LO"),
    (tag::BIRTH_DATE, b"DA"),
    (tag::SEX, b"CS"),
    (tag::STUDY, b"UI"),
    (tag::STUDY_ID, b"SH"),
    (tag::FRAME_OF_REFERENCE, b"UI"),
];

/// The longest of these: a name in three scripts of 64 characters each, of up to 4 bytes.
const LONGEST: usize = 1024;

impl DicomTemplate {
    /// Reads a file.
    ///
    /// Errors: no DICOM file, or damaged; no UID of a study; a UID that is none; a text that is too long.
    pub fn read(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        if path.is_dir() {
            return Err(Error::not_this_format(path, "a DICOM file", "a folder")
                .with_hint("give one file of the examination"));
        }
        let file = File::read(path)?;
        let dataset = file.dataset()?;
        let mut elements = Vec::new();
        for (index, (tag, kind)) in TAKEN.iter().enumerate() {
            let bytes = trimmed(&dataset, *tag);
            if *kind == b"UI" && !bytes.is_empty() && !is_uid(bytes) {
                let found = String::from_utf8_lossy(bytes).into_owned();
                return Err(Error::field(path, tag.name, "a UID", found));
            }
            if bytes.len() > LONGEST {
                let expected = format!("at most {LONGEST} bytes");
                return Err(Error::field(path, tag.name, expected, bytes.len()));
            }
            if *tag == tag::STUDY && bytes.is_empty() {
                return Err(Error::field(path, tag.name, "the UID of a study", "none"));
            }
            if !bytes.is_empty() {
                elements.push((index, bytes.to_vec()));
            }
        }
        let number = dataset.text(tag::SERIES_NUMBER).and_then(|text| text.parse().ok());
        let modality = dataset.text(tag::MODALITY).and_then(|code| Modality::of_code(&code));
        Ok(Self { elements, modality, series_number: number })
    }

    /// What made the image of the file, where that is known here.
    pub fn modality(&self) -> Option<Modality> {
        self.modality
    }

    /// The number of a series that is made from the file's: `number` after a hundred times that.
    pub(super) fn series_number(&self, number: usize) -> usize {
        let own = self.series_number.and_then(|own| usize::try_from(own).ok());
        own.filter(|own| *own < 10_000_000).map_or(number, |own| 100 * own + number)
    }

    /// Whether its texts may have other letters than those of ASCII.
    pub(super) fn has_character_set(&self) -> bool {
        self.elements.iter().any(|(index, _)| TAKEN[*index].0 == tag::CHARACTER_SET)
    }

    /// Sets the elements in a file.
    pub(super) fn put(&self, set: &mut Elements) {
        for (index, bytes) in &self.elements {
            let (tag, kind) = TAKEN[*index];
            set.raw_text(tag, kind, bytes);
        }
    }
}

/// The bytes of an element without padding.
fn trimmed<'a>(dataset: &Dataset<'a>, tag: Tag) -> &'a [u8] {
    let bytes = dataset.bytes(tag);
    let end = bytes.iter().rposition(|byte| !matches!(byte, 0 | b' ')).map_or(0, |last| last + 1);
    &bytes[..end]
}

fn is_uid(bytes: &[u8]) -> bool {
    bytes.len() <= 64 && bytes.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.')
}
