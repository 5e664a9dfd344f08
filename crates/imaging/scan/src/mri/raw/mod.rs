//! A raw scan as a scanner writes it: its header, and acquisitions in the order of the file.

mod acquisition;
mod header;
mod label;

pub use acquisition::{Acquisition, Counters, Flags};
pub use header::{
    EncodedSpace, Encoding, Limits, RampShape, Ramps, ReadoutPlaces, ScanHeader, TrajectoryKind,
};
pub use label::{Label, LabelCounter, TIMES, VOLUME_COUNTERS, grid_of, in_time, varying};
use rayspin_core::TrajectoryUnits;

/// A raw scan: the header and every acquisition in file order, as the ISMRMRD standard organises them
/// (Inati et al., Magn Reson Med 77:411, 2017).
#[derive(Debug, Clone, Default)]
pub struct Scan {
    /// What the file says of the experiment.
    pub header: ScanHeader,
    /// Every acquisition in file order, noise, calibration and navigators included.
    pub acquisitions: Vec<Acquisition>,
    /// What a reader had to assume or repair, one sentence each, for the user to see.
    pub notes: Vec<String>,
}

impl Scan {
    /// Bytes that the acquisitions take in memory.
    pub fn bytes(&self) -> u64 {
        let bytes_of = |a: &Acquisition| {
            let points = a.trajectory.as_ref().map_or(0, |t| t.len() * size_of::<f32>());
            a.data.len() * size_of::<rayspin_core::C32>() + points + size_of::<Acquisition>()
        };
        self.acquisitions.iter().map(|a| bytes_of(a) as u64).sum()
    }

    /// Units that the header itself names for the trajectory, if it does.
    pub fn stated_trajectory_units(&self) -> Option<TrajectoryUnits> {
        self.header.trajectory_units
    }
}

/// Whether a field of view is a length.
pub(crate) fn is_known(fov_mm: f64) -> bool {
    fov_mm.is_finite() && fov_mm > 0.0
}

/// Adds a note, once.
pub(crate) fn note(notes: &mut Vec<String>, text: impl Into<String>) {
    let text = text.into();
    if !notes.contains(&text) {
        notes.push(text);
    }
}
