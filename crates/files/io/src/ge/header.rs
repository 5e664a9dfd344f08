//! The header of a P-file.

use std::io::Read as _;
use std::path::Path;

use rayspin_scan::mri::SlicePlace;

use super::place_of_corners;
use crate::bare_scan::Word;
use crate::ismrmrd::Xml;
use crate::{Error, Result, opening};

/// Bytes of the header of revision 9.
pub(super) const DATA: u64 = 61_464;
/// The image header within it.
const IMAGE: usize = DATA as usize - 1536;
/// Revisions of headers. The older ones are big-endian.
const REVISIONS: [f32; 22] = [
    5.3, 5.4, 7.0, 8.0, 9.0, 11.0, 12.0, 14.0, 14.1, 14.2, 14.3, 15.0, 16.0, 20.0, 20.006, 20.007, 24.0,
    25.0, 26.0, 27.0, 28.0, 30.0,
];

/// Coils at most.
const MOST_COILS: usize = 1024;

/// What is read of it.
#[derive(Debug, Clone)]
pub(super) struct Header {
    bytes: Vec<u8>,
    pub(super) word: Word,
    pub(super) coils: usize,
    pub(super) slices: usize,
    pub(super) echoes: usize,
    /// Views of an image, and views that are stored.
    pub(super) frames: usize,
    pub(super) views: usize,
    pub(super) samples: usize,
}

/// What GE's scanners write behind the date of the scan, up to revision 24.
pub(crate) const MAGIC: &[(usize, &[u8])] = &[(34, b"GE_MED_NMR"), (34, b"INVALIDNMR")];

/// Whether a file whose name ends in `.7` begins like a P-file of any revision.
pub(crate) fn begins(start: &[u8]) -> bool {
    revision(start).is_some()
}

/// The revision that a file states, in either byte order.
fn revision(start: &[u8]) -> Option<f32> {
    let four = *start.first_chunk::<4>()?;
    let stated = [f32::from_le_bytes(four), f32::from_be_bytes(four)];
    stated.into_iter().find(|stated| REVISIONS.iter().any(|known| (known - stated).abs() < 0.01))
}

impl Header {
    /// Errors: another revision; a short file; counts that cannot be.
    pub(super) fn read(path: &Path) -> Result<Self> {
        let mut bytes = Vec::new();
        opening::open(path)?.take(DATA).read_to_end(&mut bytes).map_err(|e| Error::read(path, e))?;
        let little = bytes.first_chunk::<4>().map(|four| f32::from_le_bytes(*four));
        if little != Some(9.0) {
            let found = revision(&bytes).map_or_else(
                || "another signature".to_owned(),
                |stated| {
                    format!("revision {stated}{}", if little == Some(stated) { "" } else { ", big-endian" })
                },
            );
            return Err(Error::field(path, "revision of the P-file's header", "9, little-endian", found).with_hint(
                "ge_to_ismrmrd (with GE's Orchestra) converts P-files and ScanArchives of other revisions to ISMRMRD (.h5)",
            ));
        }
        if (bytes.len() as u64) < DATA {
            return Err(Error::truncated(path, "header", format!("{DATA} bytes"), bytes.len()));
        }
        let word = |place: usize| u16::from_le_bytes([bytes[place], bytes[place + 1]]);
        let count = |name: &str, place: usize, most: usize| match usize::from(word(place)) {
            count if (1..=most).contains(&count) => Ok(count),
            other => Err(Error::field(path, name, format!("1 to {most}"), other)),
        };
        let most = usize::from(i16::MAX as u16);
        let passes = count("passes (rdb_hdr_npasses)", 64, most)?;
        if passes != 1 {
            return Err(Error::field(path, "passes (rdb_hdr_npasses)", "1", passes).with_hint(
                "ge_to_ismrmrd (with GE's Orchestra) converts files of several passes to ISMRMRD (.h5)",
            ));
        }
        let slices = count("slices (rdb_hdr_nslices)", 68, most)?;
        let echoes = count("echoes (rdb_hdr_nechoes)", 70, most)?;
        let frames = count("views of an image (rdb_hdr_nframes)", 74, most)?;
        let samples = count("samples of a view (rdb_hdr_da_xres)", 102, most)?;
        let views = count("views that are stored (rdb_hdr_da_yres)", 104, most)?;
        if usize::from(word(80)) != samples {
            let expected = format!("{samples}, the samples of a view (rdb_hdr_da_xres)");
            return Err(Error::field(path, "rdb_hdr_frame_size", expected, word(80)));
        }
        if views < frames {
            let expected = format!("{frames} or more, the views of an image (rdb_hdr_nframes)");
            return Err(Error::field(path, "views that are stored (rdb_hdr_da_yres)", expected, views));
        }
        let (first, last) = (word(200), word(202));
        let coils = usize::from(last).checked_sub(usize::from(first)).map_or(0, |more| more + 1);
        if !(1..=MOST_COILS).contains(&coils) {
            let found = format!("{first} to {last}");
            return Err(Error::field(
                path,
                "receivers (rdb_hdr_dab)",
                format!("1 to {MOST_COILS} of them"),
                found,
            ));
        }
        let word = match word(82) {
            2 => Word::I16,
            4 => Word::I32,
            other => {
                return Err(Error::field(path, "bytes of a number (rdb_hdr_point_size)", "2 or 4", other));
            }
        };
        Ok(Self { word, coils, slices, echoes, frames, views, samples, bytes })
    }

    fn float(&self, place: usize) -> f64 {
        let four = self.bytes.get(place..place + 4).and_then(|own| own.first_chunk::<4>());
        four.map_or(f64::NAN, |four| f32::from_le_bytes(*four).into())
    }

    /// Text up to the first zero.
    fn text(&self, place: usize, length: usize) -> String {
        let own = self.bytes.get(place..place + length).unwrap_or_default();
        let own = own.split(|byte| *byte == 0).next().unwrap_or_default();
        own.iter().map(|byte| char::from(*byte)).collect::<String>().trim().to_owned()
    }

    /// A length of the image header that may be one, mm.
    fn length(&self, place: usize) -> Option<f64> {
        Some(self.float(IMAGE + place)).filter(|length| *length > 0.01 && *length < 10_000.0)
    }

    /// The matrix that was acquired, as the image header has it.
    fn matrix(&self) -> [usize; 2] {
        let size = |place: usize, other: usize| match self.float(IMAGE + place) {
            size if (1.0..=4096.0).contains(&size) && size.fract() == 0.0 => size as usize,
            _ => other,
        };
        [size(44, self.samples), size(48, self.frames)]
    }

    /// The place of the slice; none where there are several, or where corners make no rectangle.
    pub(super) fn place(&self, notes: &mut Vec<String>) -> Option<SlicePlace> {
        if self.slices > 1 {
            notes.push("places of several slices are not read from P-files".into());
            return None;
        }
        // Corners are RAS.
        let corner = |place: usize| {
            let part = |axis: usize| self.float(IMAGE + place + 4 * axis);
            [-part(0), -part(1), part(2)]
        };
        let place = place_of_corners([160, 172, 184].map(corner));
        let said = match place {
            Some(_) => {
                "the slice lies where the header's corners are; the header does not say which way samples and lines run along its edges, and \
                 the image may be mirrored"
            }
            None => "the header's corners of the image make no rectangle, and are not used",
        };
        notes.push(said.into());
        place
    }

    /// The header as ISMRMRD has it.
    pub(super) fn xml(&self, notes: &mut Vec<String>) -> String {
        let [columns, lines] = self.matrix();
        let wide = self.length(36);
        if wide.is_none() {
            notes.push("the header states no field of view: 1 mm for each sample is assumed".into());
        }
        let wide = wide.unwrap_or(columns as f64);
        // 0 stands for a square.
        let high = self.length(40).unwrap_or(wide);
        let thick = self.length(28).unwrap_or(1.0);
        // Views that are longer than lines of the image are trains or spirals.
        let along_path = self.samples > 2 * columns;
        if along_path {
            notes.push(format!(
                "each view has {} samples of an image of {columns} × {lines}: a train of lines or a path whose trajectory the file does not \
                 hold",
                self.samples
            ));
        }
        let space = if along_path { [columns, lines] } else { [self.samples, self.frames] };
        let mut out = Xml::default();
        out.text.push_str("<?xml version=\"1.0\"?>\n");
        out.open("ismrmrdHeader xmlns=\"http://www.ismrm.org/ISMRMRD\"");
        let exam = IMAGE - 1536 - 1040;
        let hospital = self.text(exam + 10, 33);
        out.open("acquisitionSystemInformation");
        out.leaf("systemVendor", "GE");
        out.leaf("receiverChannels", self.coils);
        if !hospital.is_empty() {
            out.leaf("institutionName", hospital);
        }
        out.close("acquisitionSystemInformation");
        out.open("experimentalConditions");
        out.leaf("H1resonanceFrequency_Hz", 0);
        out.close("experimentalConditions");
        out.open("encoding");
        for (name, matrix) in [("encodedSpace", space), ("reconSpace", space)] {
            out.open(name);
            out.open("matrixSize");
            ["x", "y", "z"].iter().zip([matrix[0], matrix[1], 1]).for_each(|(axis, n)| out.leaf(axis, n));
            out.close("matrixSize");
            out.open("fieldOfView_mm");
            ["x", "y", "z"].iter().zip([wide, high, thick]).for_each(|(axis, mm)| out.leaf(axis, mm));
            out.close("fieldOfView_mm");
            out.close(name);
        }
        out.open("encodingLimits");
        for (name, count, centre) in [
            ("kspace_encoding_step_1", self.frames, self.frames / 2),
            ("slice", self.slices, 0),
            ("contrast", self.echoes, 0),
        ] {
            out.open(name);
            out.leaf("minimum", 0);
            out.leaf("maximum", count - 1);
            out.leaf("center", centre);
            out.close(name);
        }
        out.close("encodingLimits");
        out.leaf("trajectory", if along_path { "other" } else { "cartesian" });
        out.close("encoding");
        out.close("ismrmrdHeader");
        out.text
    }
}
