//! A raw scan as a scanner writes it, and the frames that reconstruction takes from it: the items of
//! [`rayspin_scan::mri`].

pub use rayspin_scan::mri::{
    Acquisition, AcquisitionHead, CalibrationLines, Counters, EncodedSpace, Encoding, Facts, Flags, Frame,
    FrameIndex, FrameOptions, Label, LabelCounter, Limits, MAPS_SAMPLES, MAX_MATRIX, MIN_WIDTH, NoiseLevel,
    NoiseSource, Parts, Pattern, RampShape, Ramps, Samples, Scan, ScanBuilder, ScanHeader, Series,
    SeriesFrames, SlicePlace, SlicePlaces, Summary, TrajectoryFov, TrajectoryKind, TrajectoryOptions,
    VOLUME_COUNTERS, Window, assemble, centre_of, detect_units, fullest, grid_of, in_time,
    maps_of_first_readouts, may_count_voxels, reach, readouts, sampled_centre, samples_of, settle_units,
    varying,
};
pub(crate) use rayspin_scan::mri::{is_uneven, listed, moved, stacked};
