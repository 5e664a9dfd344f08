//! What a scan tells of how its images were acquired, for files that state it: sidecars of BIDS, and DICOM.

use rayspin_scan::mri::{AcquisitionHead, Encoding, ScanHeader, TrajectoryKind};
use serde::{Deserialize, Serialize};

use crate::ismrmrd::{MINUTE, Sequence, Stated};

/// What an MRI scan tells of the acquisition of its images. It names neither patient, date nor place.
///
/// ```
/// use rayspin_io::Protocol;
/// use rayspin_scan::mri::ScanHeader;
///
/// let header = ScanHeader { field_strength_t: Some(3.0), ..ScanHeader::default() };
/// let protocol = Protocol::of(&header, &[]);
/// assert_eq!((protocol.field_strength_t, protocol.sequence.echo_times_ms.len()), (Some(3.0), 0));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Protocol {
    /// Its name.
    pub name: Option<String>,
    /// Vendor of the scanner.
    pub vendor: Option<String>,
    /// Model of the scanner.
    pub model: Option<String>,
    /// Static field in T.
    pub field_strength_t: Option<f64>,
    /// How the patient lay, a code such as HFS.
    pub patient_position: Option<String>,
    /// Times and angles.
    pub sequence: Sequence,
    /// What else the header states of the sequence.
    pub stated: Stated,
    /// By the number of the encoding.
    pub encodings: Vec<EncodingProtocol>,
    /// What tells this scan from others: a hash of its header, and of counters and times of its readouts.
    /// None without times.
    pub fingerprint: Option<String>,
}

/// What a scan tells of one of its encodings.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct EncodingProtocol {
    /// Whether readouts follow each other in a train as in echo-planar imaging.
    pub echo_planar: bool,
    /// Whether readouts are lines of a grid, encoded along y.
    pub lines: bool,
    /// Whether the lines of the first slice fall from readout to readout; none where there are not two.
    pub falls: Option<bool>,
    /// Whether z is encoded, too.
    pub is_3d: bool,
    /// Thickness of a slice in mm; of an encoding along z, that of the slab's partitions.
    pub thickness_mm: Option<f64>,
}

impl EncodingProtocol {
    fn of(index: usize, encoding: &Encoding, heads: &[AcquisitionHead]) -> Self {
        let along_trajectory = heads.iter().any(|head| head.flags.is_image() && head.trajectory);
        let echo_planar = encoding.trajectory == TrajectoryKind::Epi;
        let grid = encoding.trajectory == TrajectoryKind::Cartesian && !along_trajectory;
        let thickness = encoding.recon.fov_mm[2] / encoding.recon.matrix[2].max(1) as f64;
        Self {
            echo_planar,
            lines: echo_planar || grid,
            falls: lines_fall(heads, index),
            is_3d: encoding.encoded.matrix[2] > 1,
            thickness_mm: Some(thickness).filter(|mm| mm.is_finite() && *mm > 0.0),
        }
    }
}

impl Protocol {
    /// What a header and the heads of the readouts tell.
    pub fn of(header: &ScanHeader, heads: &[AcquisitionHead]) -> Self {
        let encodings = header.encodings.iter().enumerate();
        Self {
            name: header.protocol.clone(),
            vendor: header.vendor.clone(),
            model: header.model.clone(),
            field_strength_t: header.field_strength_t,
            patient_position: header.patient_position.clone(),
            sequence: Sequence::of(header),
            stated: Stated::of(header),
            encodings: encodings
                .map(|(index, encoding)| EncodingProtocol::of(index, encoding, heads))
                .collect(),
            fingerprint: fingerprint(header, heads),
        }
    }

    /// The Larmor frequency of the nucleus in Hz, which the header states of hydrogen.
    pub fn imaging_hz(&self) -> Option<f64> {
        let is_hydrogen = self.stated.nucleus.as_deref().is_none_or(|nucleus| nucleus == "1H");
        self.stated.hydrogen_hz.filter(|_| is_hydrogen)
    }

    /// The nucleus; hydrogen where the header states no other and hydrogen's frequency.
    pub fn nucleus(&self) -> Option<&str> {
        self.stated.nucleus.as_deref().or_else(|| self.imaging_hz().map(|_| "1H"))
    }

    /// What it tells of an encoding; nothing of one that there is not.
    pub fn encoding(&self, index: usize) -> EncodingProtocol {
        self.encodings.get(index).cloned().unwrap_or_default()
    }
}

/// Headers of two scans may be alike, and the times of day of their readouts are not. None where the readouts
/// have no times of day: without identifiers they begin at 0, alike in all scans of a protocol.
fn fingerprint(header: &ScanHeader, heads: &[AcquisitionHead]) -> Option<String> {
    let stamps = heads.iter().map(|head| head.time_stamp);
    let (first, last) = (stamps.clone().filter(|&stamp| stamp > 0).min()?, stamps.max()?);
    if first <= MINUTE || first == last {
        return None;
    }
    let mut hash = blake3::Hasher::new();
    match &header.xml {
        Some(xml) => hash.update(xml.as_bytes()),
        None => hash.update(format!("{header:?}").as_bytes()),
    };
    for head in heads {
        hash.update(&head.time_stamp.to_le_bytes());
        hash.update(format!("{:?}", head.counters).as_bytes());
    }
    Some(hash.finalize().to_hex().to_string())
}

/// Whether the lines of an image's first slice fall from readout to readout; none where there are not two.
fn lines_fall(heads: &[AcquisitionHead], encoding: usize) -> Option<bool> {
    let mut image = heads.iter().filter(|head| head.flags.is_image() && head.encoding == encoding);
    let first = image.next()?;
    let label = first.label();
    let next = image.find(|head| head.label() == label && head.counters.step_1 != first.counters.step_1)?;
    Some(next.counters.step_1 < first.counters.step_1)
}
