use super::{Frame, Label};

/// What a source gives.
#[derive(Debug)]
pub enum StreamItem {
    /// Samples that tell the sensitivities of a slice, for all its images; such come before the images.
    Maps(Label, Frame),
    /// The samples of the next image.
    Image(Label, Frame),
}
