//! What a scan tells of how its images were acquired, for files that state it: sidecars of BIDS, and DICOM.

use rayspin_scan::mri::Label;
use serde::{Deserialize, Serialize};

/// What a header states of the sequence. A list with a word that is no number counts as empty.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
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

/// What a header states of the kind of its sequence, in the words of DICOM (PS3.3 C.8.3.1). Those that have
/// no element of their own in ISMRMRD are user parameters, as Rayspin writes them of a scanner's file.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Stated {
    /// SE, IR, GR, EP or RM; several may hold.
    pub scanning_sequence: Vec<String>,
    /// SK, MTC, SS, TRSS, SP, MP, OSP or NONE; several may hold.
    pub sequence_variant: Vec<String>,
    /// Such as FS (fat saturation) or PFP (partial Fourier along phase); none where they are not stated.
    pub scan_options: Vec<String>,
    /// Lines of k-space that an excitation makes.
    pub echo_train_length: Option<u32>,
    /// Such as 1H.
    pub nucleus: Option<String>,
    /// Larmor frequency of hydrogen in Hz.
    pub hydrogen_hz: Option<f64>,
}

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
    /// Sets of its images, as readouts count them; 0 without readouts.
    #[serde(default)]
    pub sets: u16,
    /// Whether z is encoded, too.
    pub is_3d: bool,
    /// Thickness of a slice in mm; of an encoding along z, that of the slab's partitions.
    pub thickness_mm: Option<f64>,
}

impl Protocol {
    /// The Larmor frequency of the nucleus in Hz, which the header states of hydrogen.
    pub fn imaging_hz(&self) -> Option<f64> {
        let is_hydrogen = self.stated.nucleus.as_deref().is_none_or(|nucleus| nucleus == "1H");
        self.stated.hydrogen_hz.filter(|_| is_hydrogen)
    }

    /// The nucleus; hydrogen where the header states no other and hydrogen's frequency.
    pub fn nucleus(&self) -> Option<&str> {
        self.stated.nucleus.as_deref().or_else(|| self.imaging_hz().map(|_| "1H"))
    }

    /// The value of a volume in a list that has one for all volumes, or one for each set.
    pub(crate) fn of_volume(&self, list: &[f64], label: &Label) -> Option<f64> {
        match list {
            [one] => Some(*one),
            _ => self.of_set(list, label),
        }
    }

    /// The value of a volume's set in a list that has one for each set of the scan.
    pub(crate) fn of_set(&self, list: &[f64], label: &Label) -> Option<f64> {
        let sets = usize::from(self.encoding(label.encoding).sets);
        list.get(usize::from(label.set)).copied().filter(|_| sets > 1 && list.len() == sets)
    }

    /// What it tells of an encoding; nothing of one that there is not.
    pub fn encoding(&self, index: usize) -> EncodingProtocol {
        self.encodings.get(index).cloned().unwrap_or_default()
    }
}
