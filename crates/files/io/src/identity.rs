/// What becomes of the parts of a header that may tell whose scan it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Identity {
    /// Only elements that are known to be harmless are written: the encodings, the sequence, the system's
    /// vendor, model, field and coils, and the patient's position. The names of protocol and sequence stay as
    /// they are. A reconstruction's user parameters stay, too. Time stamps count from the first
    /// readout instead of the time of day.
    #[default]
    LeaveOut,
    /// The header is written as it was found.
    Keep,
}
