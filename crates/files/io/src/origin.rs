//! Where an image comes from, for formats that state it.

use std::sync::Arc;

use crate::{DicomTemplate, Protocol};

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
