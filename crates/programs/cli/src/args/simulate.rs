//! `rayspin simulate mri`

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};

use rayspin::run::Remedy;

use super::ScanRecord;

/// What to do about quantities of a simulation that no option has for its name.
pub(crate) const REMEDIES: &[Remedy] = &[
    (&["dimensions", "dimensions of this sampling"], "`--dims` sets them"),
    (&["echo trains", "interleaves", "spokes", "shots"], "`--shots` sets them"),
    (&["acceleration", "acceleration of the spiral"], "`--acceleration` sets it"),
    (&["coils"], "`--coils` sets them"),
    (&["noise readouts"], "`--noise-readouts` sets them"),
    (&["peak of the field map in Hz"], "`--field-map-hz` sets it"),
    (&["shape of the field map of a volume"], "`--field-shape linear` suits a volume"),
    (
        &["sampling in an inhomogeneous field"],
        "`--trajectory radial` or `spiral` excites before each readout",
    ),
    (&["readout oversampling"], "`--oversampling` sets it"),
    (&["samples of a random readout"], "`--samples` sets them"),
    (&["signal-to-noise ratio"], "`--snr` sets it"),
    (&["window of the truth", "stride of the truth"], "`--window` and `--stride` set them"),
];

/// How k-space is filled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TrajectoryArg {
    /// Every line of the grid, or every R-th with --acceleration
    Cartesian,
    /// Random lines of the grid with a minimum distance and a full centre
    Poisson,
    /// Spokes
    Radial,
    /// Spirals from the centre outward
    Spiral,
    /// Echo-planar trains, sampled during the ramps too
    Epi,
    /// Spokes in three dimensions
    Kooshball,
    /// Spokes in plane, Cartesian along z
    StackOfStars,
    /// Spirals in plane, Cartesian along z
    StackOfSpirals,
    /// Points drawn uniformly from the k-space box
    Random,
}

/// Order of spokes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum AnglesArg {
    /// Evenly spread
    Uniform,
    /// Golden angle (golden means in three dimensions), running on over repetitions
    Golden,
}

/// What is scanned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ObjectArg {
    /// The head of Shepp and Logan
    SheppLogan,
    /// A thorax at the height of the heart
    Thorax,
}

/// How the phantom changes with time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DynamicsArg {
    /// Two ellipses of the head grow and shrink by 30 %; the chambers of the heart beat
    Beat,
    /// One ellipse of the head, or the wall of the left ventricle, brightens as if contrast agent arrived
    Enhance,
}

/// Intensities of the Shepp–Logan head.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ContrastArg {
    /// Shepp and Logan's own, with features of 1 %
    Standard,
    /// Raised so that every feature is visible
    Modified,
}

/// How an inhomogeneous field runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FieldShapeArg {
    /// From side to side
    Linear,
    /// From the centre to the corners
    Quadratic,
    /// A peak at the front of the head over a linear and a quadratic field
    Smooth,
}

/// `rayspin simulate mri`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples and all options: rayspin simulate mri --help")]
#[command(after_long_help = "\
The phantom's k-space and the coils are known in closed form: no sample comes from a raster. The
scan is written as ISMRMRD; the truth as an image when --truth names one:
{images written}.

Examples:
  rayspin simulate mri -o scan.h5 --truth truth.nii.gz
  rayspin simulate mri -o spiral.h5 -t spiral --shots 16 --coils 8 --snr 50 --truth truth.nii.gz
  rayspin simulate mri -o under.h5 -t poisson --acceleration 6 --noise-readouts 8 --snr 30
  rayspin simulate mri -o uneven.h5 -t spiral --field-map-hz 120 --save-field-map field.nii.gz
  rayspin simulate mri -o beat.h5 --phantom thorax --dynamics beat -t radial --angles golden
  rayspin simulate mri -o ball.h5 --dims 3 --matrix 64,64,64 -t kooshball --shots 4000")]
pub(crate) struct Mri {
    /// Scan to write (ISMRMRD, {scans written})
    #[arg(long = "output", short, value_name = "SCAN", value_hint = ValueHint::FilePath)]
    pub(crate) output: PathBuf,
    /// Write the object's voxel means
    ///
    /// An object at rest has one volume, for all repetitions. An object that changes (`--dynamics`) has a
    /// volume for each repetition, at its mean time, or for each `--window`.
    #[arg(long, value_name = "IMAGE", value_hint = ValueHint::FilePath)]
    pub(crate) truth: Option<PathBuf>,
    /// Write the coil sensitivities [coil, z, y, x] ({arrays written})
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) maps: Option<PathBuf>,
    /// 2 for slices, 3 for a volume [default: by the trajectory]
    ///
    /// The default is 3 for kooshball and stacks, else 2.
    #[arg(long, value_name = "N")]
    pub(crate) dims: Option<usize>,
    /// Voxels; Z counts the slices in 2-D [default: 256,256 or 64,64,64]
    #[arg(long, value_name = "X,Y[,Z]")]
    pub(crate) matrix: Option<String>,
    /// Field of view in mm [default: 220 each, slices of 5]
    #[arg(long, value_name = "X,Y[,Z]")]
    pub(crate) fov: Option<String>,
    /// How k-space is filled
    #[arg(long, short, value_enum, default_value = "cartesian")]
    pub(crate) trajectory: TrajectoryArg,
    /// Spokes, interleaves, trains or readouts [default: full sampling]
    ///
    /// In stacks, the number in each partition. The default is 16 interleaves for spirals, 1 train for
    /// echo-planar imaging, and otherwise enough to sample fully.
    #[arg(long, value_name = "N")]
    pub(crate) shots: Option<usize>,
    /// Samples of each readout of `--trajectory random`
    #[arg(long, value_name = "N", default_value_t = 256)]
    pub(crate) samples: usize,
    /// Order of spokes (radial, kooshball, stack-of-stars)
    #[arg(long, value_enum, default_value = "uniform")]
    pub(crate) angles: AnglesArg,
    /// Undersampling (cartesian, poisson, spirals)
    ///
    /// Cartesian: every R-th line along y (and z). Poisson disc: R times fewer lines than the full grid has.
    /// Spirals: R times fewer interleaves than full sampling needs.
    #[arg(long, value_name = "R[,RZ]")]
    pub(crate) acceleration: Option<String>,
    /// Width of the fully sampled centre [default: 24, or less]
    ///
    /// For undersampled grids. The default is smaller for small matrices.
    #[arg(long, value_name = "LINES")]
    pub(crate) calibration: Option<usize>,
    /// Poisson disc: growth of the distance between lines towards the edge
    #[arg(long, default_value_t = 2.0)]
    pub(crate) density_slope: f64,
    /// Receive coils; one is uniform
    #[arg(long, default_value_t = 8)]
    pub(crate) coils: usize,
    /// Signal-to-noise ratio of the fully sampled image; none: no noise
    #[arg(long, allow_negative_numbers = true)]
    pub(crate) snr: Option<f64>,
    /// Correlation of the noise of neighbouring coils
    #[arg(long, value_name = "R", requires = "snr", allow_negative_numbers = true)]
    pub(crate) noise_correlation: Option<f64>,
    /// Off-resonance: its largest frequency, of either sign
    ///
    /// The samples then come from an object in an inhomogeneous field. Times count from the centre of each
    /// readout in steps of `--dwell`. Echo-planar trains take no field; volumes take `--field-shape linear`
    /// alone.
    #[arg(long, value_name = "HZ", allow_negative_numbers = true)]
    pub(crate) field_map_hz: Option<f64>,
    /// How the field runs
    #[arg(long, value_enum, default_value = "smooth", requires = "field_map_hz")]
    pub(crate) field_shape: FieldShapeArg,
    /// Write the field at the voxel centres in Hz ({signed images written})
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "field_map_hz")]
    pub(crate) save_field_map: Option<PathBuf>,
    /// Readouts of noise alone before the scan, with `--snr`
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) noise_readouts: usize,
    /// Repetitions in time
    #[arg(long, default_value_t = 1)]
    pub(crate) repetitions: usize,
    /// How the object changes with time
    #[arg(long, value_enum)]
    pub(crate) dynamics: Option<DynamicsArg>,
    /// Seconds of a beat, or until 63 % of the enhancement
    #[arg(long, value_name = "S", default_value_t = 1.0, requires = "dynamics")]
    pub(crate) period: f64,
    /// Time from one readout to the next in ms, for time stamps [default: 5 with `--dynamics`]
    #[arg(long, value_name = "MS")]
    pub(crate) tr: Option<f64>,
    /// The truth of a changing object at the middle of every N readouts, as rayspin recon mri --window takes
    /// them, instead of each repetition
    #[arg(long, value_name = "N", requires = "dynamics", requires = "truth")]
    pub(crate) window: Option<usize>,
    /// Readouts from one window to the next [default: the window]
    #[arg(long, value_name = "N", requires = "window")]
    pub(crate) stride: Option<usize>,
    /// Samples per cycle per field of view along lines and spokes
    #[arg(long, default_value_t = 1)]
    pub(crate) oversampling: usize,
    /// What is scanned
    #[arg(long, value_enum, default_value = "shepp-logan")]
    pub(crate) phantom: ObjectArg,
    /// Intensities of the Shepp–Logan head
    #[arg(long, value_enum, default_value = "modified")]
    pub(crate) contrast: ContrastArg,
    /// Largest gradient in mT/m (spirals, epi)
    #[arg(long, value_name = "MT/M", default_value_t = 40.0)]
    pub(crate) gradient: f64,
    /// Largest slew rate in T/m/s (spirals, epi)
    #[arg(long, value_name = "T/M/S", default_value_t = 150.0)]
    pub(crate) slew: f64,
    /// Time between samples in µs
    #[arg(long, value_name = "US", default_value_t = 4.0)]
    pub(crate) dwell: f64,
    /// Seed of noise and random patterns
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    #[command(flatten)]
    pub(crate) record: ScanRecord,
}
