//! A raw scan as a scanner writes it, and the frames that reconstruction takes from it.

mod build;
mod calibration;
mod cartesian;
mod centre;
mod columns;
pub mod corrections;
mod crop;
mod doubts;
mod facts;
mod frame;
mod frames;
mod geometry;
mod images;
mod lattice;
mod noncartesian;
mod raw;
mod repeats;
mod series;
mod sound;
mod stream;
mod summary;
#[cfg(test)]
mod tests;
mod times;
mod units;

pub use build::ScanBuilder;
pub use centre::{MIN_WIDTH, centre_of, sampled_centre};
pub use columns::{TrajectoryFov, TrajectoryOptions};
pub use crop::centre_crop;
pub use facts::{Facts, NoiseLevel, NoiseSource, Pattern, reach, readouts};
pub use frame::{CalibrationLines, Frame, MAX_MATRIX, Samples, samples_of};
pub use frames::{FrameIndex, FrameOptions, Parts, SeriesFrames, assemble, maps_of_first_readouts};
pub use geometry::{SlicePlace, SlicePlaces, moved, stacked};
pub use images::{is_uneven, listed};
pub use lattice::Lattice;
pub use raw::{
    Acquisition, Counters, EncodedSpace, Encoding, Flags, Label, LabelCounter, Limits, RampShape, Ramps,
    ReadoutPlaces, Scan, ScanHeader, TIMES, TrajectoryKind, VOLUME_COUNTERS, grid_of, in_time, varying,
};
pub use series::{AcquisitionHead, MAPS_SAMPLES, Series, Window, fullest};
pub use stream::StreamItem;
pub use summary::Summary;
pub use units::{detect_units, may_count_voxels, settle_units};
