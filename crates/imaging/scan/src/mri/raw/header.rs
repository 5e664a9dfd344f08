use std::sync::Arc;

use rayspin_core::TrajectoryUnits;

/// What the file says of the experiment, as far as reconstruction needs it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ScanHeader {
    /// One entry an encoding; acquisitions name theirs by index.
    pub encodings: Vec<Encoding>,
    /// Receiver channels, when stated.
    pub coils: Option<usize>,
    /// Static field in tesla, when stated and plausible.
    pub field_strength_t: Option<f64>,
    /// Scanner vendor, when stated.
    pub vendor: Option<String>,
    /// Scanner model, when stated.
    pub model: Option<String>,
    /// Protocol name, when stated.
    pub protocol: Option<String>,
    /// Patient position code (HFS, …), when stated.
    pub patient_position: Option<String>,
    /// Units of the trajectories, when the file states them (user parameter `trajectory_units`).
    pub trajectory_units: Option<TrajectoryUnits>,
    /// The XML header as found, for writing it on unchanged.
    pub xml: Option<String>,
}

/// One encoding: how k-space was filled, and the image to make of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Encoding {
    /// The space that was encoded (with readout oversampling, for example).
    pub encoded: EncodedSpace,
    /// The space to reconstruct.
    pub recon: EncodedSpace,
    /// How k-space was traversed.
    pub trajectory: TrajectoryKind,
    /// Limits of phase encoding, when stated.
    pub step_1: Option<Limits>,
    /// Limits of the second phase encoding, when stated.
    pub step_2: Option<Limits>,
    /// Limits of the slice counter, when stated.
    pub slice: Option<Limits>,
    /// Limits of the repetition counter, when stated.
    pub repetition: Option<Limits>,
    /// Acceleration along both phase encodings, when stated.
    pub acceleration: Option<[usize; 2]>,
    /// How the readout gradient rises and falls while samples are taken, when stated.
    pub ramps: Option<Ramps>,
    /// Where the samples of readouts lie along them, when that is known and they are not at whole numbers.
    /// The ramps do not count then.
    pub places: Option<ReadoutPlaces>,
}

/// Where the samples of straight readouts lie along them: k_s in cycles per encoded field of view, in the
/// order of time.
#[derive(Debug, Clone, PartialEq)]
pub struct ReadoutPlaces {
    /// Of readouts along which k rises.
    pub forward: Arc<[f64]>,
    /// Of reversed readouts, along which k falls.
    pub reversed: Arc<[f64]>,
}

/// A readout gradient that is on while it rises and falls, as in echo-planar imaging. Times count from the
/// start of the rise.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ramps {
    /// How it rises and falls.
    pub shape: RampShape,
    /// Time of the rise, µs.
    pub up_us: f64,
    /// Time at full strength, µs.
    pub flat_us: f64,
    /// Time of the fall, µs.
    pub down_us: f64,
    /// The start of the first sample, µs.
    pub delay_us: f64,
    /// Time from the start of the first sample to the end of the last one, µs.
    pub sampling_us: f64,
    /// Samples of a readout.
    pub samples: usize,
}

/// How a gradient rises and falls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RampShape {
    /// In straight lines.
    Trapezoid,
    /// As a quarter of a sine.
    Sinusoid,
}

/// A matrix and its field of view, in the order x, y, z.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EncodedSpace {
    /// Voxels along x, y, z.
    pub matrix: [usize; 3],
    /// Field of view along x, y, z in mm.
    pub fov_mm: [f64; 3],
}

/// Range of a counter and the value at the k-space centre.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Smallest value.
    pub minimum: usize,
    /// Largest value.
    pub maximum: usize,
    /// Value at the centre of k-space.
    pub centre: usize,
}

/// How k-space was traversed, as the header names it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TrajectoryKind {
    /// On the grid.
    #[default]
    Cartesian,
    /// Echo-planar.
    Epi,
    /// Spokes through the centre.
    Radial,
    /// Golden-angle spokes.
    GoldenAngle,
    /// Spiral.
    Spiral,
    /// Anything else.
    Other,
}
