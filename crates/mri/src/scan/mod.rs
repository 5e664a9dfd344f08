//! A raw scan as a scanner writes it, and the frames that reconstruction takes from it.

mod acquisition;
mod build;
mod calibration;
mod cartesian;
mod centres;
mod columns;
mod doubts;
mod echoes;
mod facts;
mod frame;
mod frames;
mod geometry;
mod header;
mod images;
mod noncartesian;
mod repeats;
mod series;
mod sound;
mod summary;
#[cfg(test)]
mod tests;
mod times;
mod units;

pub use acquisition::{Acquisition, Counters, Flags};
pub use build::ScanBuilder;
pub use centres::{Centres, ReadoutHeads, ReversedCentre};
pub use columns::{TrajectoryFov, TrajectoryOptions};
pub use facts::{Facts, NoiseLevel, NoiseSource, Pattern, reach, readouts};
pub use frame::{CalibrationLines, Frame, Label, MAX_MATRIX, Samples, samples_of};
pub use frames::{FrameIndex, FrameOptions, SeriesFrames, assemble, maps_of_first_readouts};
pub use geometry::{SlicePlace, SlicePlaces};
pub(crate) use geometry::{moved, stacked};
pub use header::{EncodedSpace, Encoding, Limits, ScanHeader, TrajectoryKind};
pub(crate) use images::{is_uneven, listed};
pub use series::{MAPS_SAMPLES, Place, Series, Window, fullest};
pub use summary::Summary;
pub use units::{detect_units, may_count_voxels, settle_units};

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
        let of = |a: &Acquisition| {
            let points = a.trajectory.as_ref().map_or(0, |t| t.len() * size_of::<f32>());
            a.data.len() * size_of::<rayspin_core::C32>() + points + size_of::<Acquisition>()
        };
        self.acquisitions.iter().map(|a| of(a) as u64).sum()
    }

    /// Units that the header itself names for the trajectory, if it does.
    pub fn stated_trajectory_units(&self) -> Option<TrajectoryUnits> {
        self.header.trajectory_units
    }
}
