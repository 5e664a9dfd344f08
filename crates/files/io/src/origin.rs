//! Where an image comes from, for formats that state it.

use std::sync::Arc;

use crate::protocol::Protocol;

/// What makes images.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Modality {
    /// Computed tomography.
    Ct,
    /// Magnetic resonance.
    Mr,
}

impl Modality {
    /// The code of DICOM.
    ///
    /// ```
    /// use rayspin_io::Modality;
    /// assert_eq!(Modality::of_code("MR").map(Modality::code), Some("MR"));
    /// assert_eq!(Modality::of_code("US"), None);
    /// ```
    pub fn code(self) -> &'static str {
        match self {
            Self::Ct => "CT",
            Self::Mr => "MR",
        }
    }

    /// By the code of DICOM; none of another.
    pub fn of_code(code: &str) -> Option<Self> {
        [Self::Ct, Self::Mr].into_iter().find(|modality| modality.code() == code)
    }
}

/// Where an image comes from, for formats that state it (DICOM).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Origin {
    /// What made it; where absent, the template's. Numbers in Hounsfield units are of CT.
    pub modality: Option<Modality>,
    /// Whether it is made of what a scanner measured, and not of another image.
    pub measured: bool,
    /// What the MRI scan tells of its acquisition.
    pub protocol: Option<Arc<Protocol>>,
    /// Whose image it is. Without it, no output names a patient or a study.
    pub template: Option<Arc<DicomTemplate>>,
}

impl Origin {
    /// An image that is made of samples or projections.
    pub fn measured(modality: Modality) -> Self {
        Self { modality: Some(modality), measured: true, ..Self::default() }
    }
}

/// Patient and study of a DICOM file, which images of the same examination take over: name, number, birth
/// date and sex of the patient, UID, date, time and ID of the study, accession number, referring physician,
/// and the frame of reference.
///
/// ```no_run
/// use std::sync::Arc;
/// use rayspin_io::{DicomTemplate, Origin};
///
/// let template = Arc::new(DicomTemplate::read("scanner/IM000001.dcm")?);
/// let origin = Origin { template: Some(template), ..Origin::default() };
/// # Ok::<(), rayspin_io::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DicomTemplate {
    /// Numbers of the elements that are taken over, and their bytes.
    pub(crate) elements: Vec<(usize, Vec<u8>)>,
    pub(crate) modality: Option<Modality>,
    pub(crate) series_number: Option<i32>,
}
