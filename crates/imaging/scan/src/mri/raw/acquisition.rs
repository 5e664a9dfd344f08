use ndarray::ArcArray2;
use rayspin_core::C32;

/// One readout: samples of every coil, with its place in the experiment.
#[derive(Debug, Clone, PartialEq)]
pub struct Acquisition {
    /// What the readout is for.
    pub flags: Flags,
    /// Its counters.
    pub counters: Counters,
    /// Which of [`ScanHeader::encodings`](super::ScanHeader::encodings) it belongs to.
    pub encoding: usize,
    /// The sample at the k-space centre along the readout.
    pub centre_sample: usize,
    /// Samples at the start that carry no signal.
    pub discard_pre: usize,
    /// Samples at the end that carry no signal.
    pub discard_post: usize,
    /// Dwell time in µs; 0 when not stated.
    pub sample_time_us: f32,
    /// Time stamp, in the vendor's ticks.
    pub time_stamp: u32,
    /// Centre of the slice or slab, LPS mm.
    pub position: [f32; 3],
    /// Direction cosines of read, LPS; all zero when not stated.
    pub read_dir: [f32; 3],
    /// Direction cosines of phase, LPS; all zero when not stated.
    pub phase_dir: [f32; 3],
    /// Direction cosines of slice, LPS; all zero when not stated.
    pub slice_dir: [f32; 3],
    /// Samples `[coil, sample]`. Acquisitions of a scan may share memory. An acquisition is copied before it
    /// is changed.
    pub data: ArcArray2<C32>,
    /// Trajectory as the file holds it, `[sample, dim]`, in the file's own units; absent when the encoding is
    /// Cartesian. Shared as the samples are.
    pub trajectory: Option<ArcArray2<f32>>,
}

/// Where a readout stands in the experiment's loops.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Counters {
    /// Phase-encoding line.
    pub step_1: u16,
    /// Partition (second phase encoding).
    pub step_2: u16,
    /// Signal average.
    pub average: u16,
    /// Slice.
    pub slice: u16,
    /// Echo or contrast.
    pub contrast: u16,
    /// Cardiac phase.
    pub phase: u16,
    /// Repetition in time.
    pub repetition: u16,
    /// Set (flow encoding, for example).
    pub set: u16,
    /// Segment.
    pub segment: u16,
}

/// The ISMRMRD acquisition flags (bit n−1 of the file's 64-bit field is flag n).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Flags(pub u64);

impl Flags {
    /// Pure noise, no signal.
    pub const NOISE: Self = Self::bit(19);
    /// Calibration line only, outside the image data.
    pub const CALIBRATION: Self = Self::bit(20);
    /// Calibration line that is image data too.
    pub const CALIBRATION_AND_IMAGING: Self = Self::bit(21);
    /// Readout played backwards (EPI): samples are stored in time order.
    pub const REVERSE: Self = Self::bit(22);
    /// Navigator.
    pub const NAVIGATION: Self = Self::bit(23);
    /// Phase-correction line (EPI reference).
    pub const PHASE_CORRECTION: Self = Self::bit(24);
    /// High-performance feedback.
    pub const HP_FEEDBACK: Self = Self::bit(26);
    /// Dummy scan.
    pub const DUMMY: Self = Self::bit(27);
    /// Real-time feedback.
    pub const RT_FEEDBACK: Self = Self::bit(28);
    /// Surface-coil correction scan.
    pub const SURFACE_COIL_CORRECTION: Self = Self::bit(29);
    /// Phase-stabilisation reference.
    pub const PHASE_STABILISATION_REFERENCE: Self = Self::bit(30);
    /// Phase stabilisation.
    pub const PHASE_STABILISATION: Self = Self::bit(31);
    /// First readout of a slice.
    pub const FIRST_IN_SLICE: Self = Self::bit(7);
    /// Last readout of a slice.
    pub const LAST_IN_SLICE: Self = Self::bit(8);
    /// Last readout of the measurement.
    pub const LAST_IN_MEASUREMENT: Self = Self::bit(25);

    /// The standard's first flag for users: the samples are evenly spaced in k-space, whatever the encoding
    /// says of its gradient's ramps.
    pub const EVENLY_SAMPLED: Self = Self::bit(57);

    /// Flag number `n` of the standard, counted from 1.
    pub const fn bit(n: u32) -> Self {
        Self(1 << (n - 1))
    }

    /// Whether any flag of `other` is set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// These flags but the others.
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Both sets of flags.
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether the readout belongs to the image: none of noise, pure calibration, navigator, phase
    /// correction, feedback, dummy, surface-coil or phase-stabilisation readouts does.
    pub const fn is_image(self) -> bool {
        let other = Self::NOISE
            .with(Self::NAVIGATION)
            .with(Self::PHASE_CORRECTION)
            .with(Self::HP_FEEDBACK)
            .with(Self::DUMMY)
            .with(Self::RT_FEEDBACK)
            .with(Self::SURFACE_COIL_CORRECTION)
            .with(Self::PHASE_STABILISATION_REFERENCE)
            .with(Self::PHASE_STABILISATION);
        !self.contains(other) && !self.is_calibration_alone()
    }

    /// Whether the readout is measured for calibration alone, and is a line like the lines of an image.
    pub const fn is_calibration_line(self) -> bool {
        self.is_calibration_alone() && Self(self.0 & !Self::CALIBRATION.0).is_image()
    }

    /// A line that is image data too may have both flags, as Siemens' scanners set them.
    const fn is_calibration_alone(self) -> bool {
        self.contains(Self::CALIBRATION) && !self.contains(Self::CALIBRATION_AND_IMAGING)
    }
}
