use super::Counters;

/// What one image is made of: the counters that its readouts share.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
pub struct Label {
    /// Encoding index.
    pub encoding: usize,
    /// Contrast (echo).
    pub contrast: u16,
    /// Cardiac phase.
    pub phase: u16,
    /// Set.
    pub set: u16,
    /// Repetition.
    pub repetition: u16,
    /// Slice.
    pub slice: u16,
}

impl Label {
    /// The label of readouts with these counters.
    pub fn of(encoding: usize, counters: &Counters) -> Self {
        let Counters { contrast, phase, set, repetition, slice, .. } = *counters;
        Self { encoding, contrast, phase, set, repetition, slice }
    }
}
