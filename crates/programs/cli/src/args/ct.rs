//! `rayspin simulate ct` and `rayspin recon ct`

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};
use rayspin::run::Remedy;

use super::simulate::ContrastArg;
use super::{RunOptions, ScanRecord};
use crate::methods::{CorrectionArgs, Ct, MethodArgs};
use crate::options::OptionArgs;

/// What to do about quantities of a simulation that no option has for its name, and of those that a
/// reconstruction has, too.
pub(crate) const REMEDIES: &[Remedy] = &[
    (
        &["views"],
        "`--view` chooses from what `rayspin info FILE` counts; `--views` sets how many are simulated",
    ),
    (&["detector", "radius of the detector"], "`--detector COLUMNS,ROWS` sets its pixels"),
    (&["photons"], "`--photons` sets them; `--lines` leaves the detector's noise out"),
    (&["electronic noise", "dark signal"], "`--electronic` and `--dark` set them"),
    (&["differences of gain", "drift of gains"], "`--gain` and `--drift` set them"),
    (
        &["flat fields"],
        "`--flat` gives an image of the beam, or what each pixel counts of it; `--frames` sets how many are simulated",
    ),
    (&["tube voltage"], "`--kilovolts` sets it in a simulation, `--tube` in a reconstruction"),
    (&["rays along a pixel"], "`--rays` sets them"),
    (&["motion"], "`--motion X,Y,Z` and `--cycles` set it"),
    (&["width of the phantom"], "`--fov` sets it"),
];

/// How rays run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum GeometryArg {
    /// Parallel rays over half a turn
    Parallel,
    /// A fan beam on one row of pixels
    Fan,
    /// A cone beam on a circle
    Cone,
    /// A cone beam on a helix
    Helix,
}

/// The object that is scanned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PhantomArg {
    /// The head of Shepp and Logan
    SheppLogan,
    /// The FORBILD head, which has both ears and is 240 mm long
    Forbild,
    /// Seven flat discs, which cone beams smear
    Defrise,
}

/// `rayspin simulate ct`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples and all options: rayspin simulate ct --help")]
#[command(after_long_help = "\
Each ray's line integral through the phantom is exact. A detector adds photon noise and electronic noise,
and measures flat and dark fields; --lines writes line integrals without noise. The scan is written as Data Exchange HDF5 with the rays of each view; the
truth as an image when --truth names one: {images written}.
Lengths are in mm, attenuations in 1/mm. Axes, angles and signs: docs/conventions.md.

Examples:
  rayspin simulate ct -o scan.h5 --truth truth.nii.gz          a cone beam, 360 views of a head
  rayspin simulate ct -o fan.h5 -g fan --views 720 --photons 2e4
  rayspin simulate ct -o short.h5 --arc 220 --views 220
  rayspin simulate ct -o half.h5 --offset 60                   a detector shifted to one side
  rayspin simulate ct -o helix.h5 -g helix --arc 1080 --views 1080 --advance 60
  rayspin simulate ct -o rings.h5 -g parallel --drift 0.02     gains that change after the flat fields
  rayspin simulate ct -o hard.h5 -p forbild --kilovolts 120    beam hardening by bone
  rayspin simulate ct -o breath.h5 --motion 0,0,5 --cycles 3")]
pub(crate) struct SimulateCt {
    /// Scan to write (Data Exchange HDF5, .h5)
    #[arg(long = "output", short, value_name = "SCAN", value_hint = ValueHint::FilePath)]
    pub(crate) output: PathBuf,
    /// Write the object's attenuation at 60 keV before it moves, as voxel means in 1/mm
    #[arg(long, value_name = "IMAGE", value_hint = ValueHint::FilePath)]
    pub(crate) truth: Option<PathBuf>,
    /// How rays run
    #[arg(long, short, value_enum, default_value = "cone")]
    pub(crate) geometry: GeometryArg,
    /// Number of views [default: 360]
    #[arg(long, value_name = "N", default_value_t = 360, hide_default_value = true)]
    pub(crate) views: usize,
    /// Angle over which the source turns [default: 180° for parallel rays, else 360°]
    ///
    /// Views are spread evenly. A negative angle turns clockwise, seen from +z.
    #[arg(long, value_name = "DEGREES", allow_negative_numbers = true)]
    pub(crate) arc: Option<f64>,
    /// Pixels of the detector [default: the matrix along x and z]
    #[arg(long, value_name = "COLUMNS[,ROWS]")]
    pub(crate) detector: Option<String>,
    /// Size of a pixel [default: a voxel times the magnification at the axis]
    #[arg(long, value_name = "U[,V]")]
    pub(crate) pixel: Option<String>,
    /// Distance from the source to the axis
    #[arg(long, value_name = "MM", default_value_t = 600.0)]
    pub(crate) source_to_axis: f64,
    /// Distance from the axis to the detector
    #[arg(long, value_name = "MM", default_value_t = 600.0, allow_negative_numbers = true)]
    pub(crate) axis_to_detector: f64,
    /// Bend the detector around the source
    #[arg(long)]
    pub(crate) curved: bool,
    /// Shift of the detector along its columns
    #[arg(long, value_name = "MM", default_value_t = 0.0, allow_negative_numbers = true)]
    pub(crate) offset: f64,
    /// Rotation of the detector in its plane
    #[arg(long, value_name = "DEGREES", default_value_t = 0.0, allow_negative_numbers = true)]
    pub(crate) tilt: f64,
    /// Height that a helix gains in a turn
    #[arg(long, value_name = "MM", default_value_t = 100.0, allow_negative_numbers = true)]
    pub(crate) advance: f64,
    /// The object
    #[arg(long, short, value_enum, default_value = "shepp-logan")]
    pub(crate) phantom: PhantomArg,
    /// Intensities of the Shepp–Logan head
    #[arg(long, value_enum, default_value = "modified")]
    pub(crate) contrast: ContrastArg,
    /// Attenuation of an intensity of 1, in 1/mm; of water at 60 keV by default
    #[arg(long, value_name = "MU", default_value_t = 0.0206)]
    pub(crate) attenuation: f64,
    /// Voxels of the truth [default: 128,128,128; 256,256 for fan and parallel beams]
    #[arg(long, value_name = "X,Y[,Z]")]
    pub(crate) matrix: Option<String>,
    /// Width of the volume along x, y and z
    #[arg(long, value_name = "MM", default_value_t = 256.0)]
    pub(crate) fov: f64,
    /// Displacement of the object between the ends of its movement
    #[arg(long, value_name = "X,Y,Z", allow_hyphen_values = true)]
    pub(crate) motion: Option<String>,
    /// Cycles of the movement during the scan
    #[arg(long, value_name = "N", default_value_t = 1.0, requires = "motion")]
    pub(crate) cycles: f64,
    /// X-rays of a tube of this voltage, which bone hardens [default: rays of 60 keV]
    #[arg(long, value_name = "KV")]
    pub(crate) kilovolts: Option<f64>,
    /// Rays along each side of a pixel, which counts the photons of all of them
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub(crate) rays: usize,
    /// Write line integrals without a detector's noise
    #[arg(long)]
    pub(crate) lines: bool,
    /// Photons that reach a pixel without the object
    #[arg(long, value_name = "N", default_value_t = 1e5)]
    pub(crate) photons: f64,
    /// Standard deviation of the electronic noise, in photons
    #[arg(long, value_name = "N", default_value_t = 10.0)]
    pub(crate) electronic: f64,
    /// Dark signal, in photons
    #[arg(long, value_name = "N", default_value_t = 100.0)]
    pub(crate) dark: f64,
    /// Standard deviation of the gain between pixels, which flat fields show
    #[arg(long, value_name = "PART", default_value_t = 0.02)]
    pub(crate) gain: f64,
    /// Standard deviation of the change of gains after the flat fields: rings
    #[arg(long, value_name = "PART", default_value_t = 0.0)]
    pub(crate) drift: f64,
    /// Number of flat fields, and of dark fields
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(crate) frames: usize,
    /// Seed of the noise
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    #[command(flatten)]
    pub(crate) record: ScanRecord,
}

/// `rayspin recon ct`
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples and all options: rayspin recon ct --help")]
#[command(after_long_help = "\
SCAN is a CT scan ({ct scans read}; HDF5 as Data Exchange or NeXus NXtomo), or an array or image of line integrals
[view, row, column] or [view, column] ({arrays read}, .tif) with --arc, of counts with --flat. Rays that the file does not
state are parallel, or those that --source-to-axis, --pixel and --axis say, or an RTK geometry file.
The volume is the attenuation in 1/mm; its format follows its name: {images written}.
Lengths are in mm. Axes, angles and signs: docs/conventions.md.
{names after a colon}

Examples:
  rayspin recon ct scan.h5 -o volume.nii.gz                    method by what the rays are
  rayspin recon ct scan.h5 -o volume.nii.gz -o slices.png --window hann
  rayspin recon ct tooth.h5 -o tooth.png --correct outliers,rings
  rayspin recon ct sinogram.npy -o slice.png --arc 180
  rayspin recon ct counts.tif -o slice.png --arc 360 --flat 65535
  rayspin recon ct projections.npy -o volume.nii.gz --rtk geometry.xml --pixel 0.8
  rayspin recon ct scan.h5 -o small.nii.gz --matrix 64,64,64 --voxel 1
  rayspin recon ct scan.h5 -o volume.nii.gz --view 0-89        a part of the views
  rayspin recon ct scan.h5 -o volume.nii.gz --reference truth.nii.gz
  acquire | rayspin recon ct - -o volume.nii.gz --arc 360 --source-to-axis 500 --preview now.png
  rayspin recon ct scan.h5 --dry-run --gpu-memory 4G")]
pub(crate) struct ReconCt {
    /// CT scan ({ct scans read}), line integrals or counts as an array ({arrays read}), a .tif or another
    /// image, or - (.npy on standard input)
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) scan: PathBuf,
    /// Volume, in the format of its name, or - (stdout); repeat for several
    #[arg(long = "output", short, value_name = "IMAGE", required_unless_present = "dry_run", value_hint = ValueHint::FilePath)]
    pub(crate) outputs: Vec<PathBuf>,
    /// DICOM: take patient and study from this DICOM file [default: no output names a patient]
    ///
    /// Patient name, ID, birth date and sex, UID, date, time and ID of the study, accession number, referring
    /// physician and frame of reference.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) dicom_template: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) run: RunOptions,
    #[command(flatten)]
    pub(crate) method: MethodArgs<Ct>,
    #[command(flatten)]
    pub(crate) corrections: CorrectionArgs,
    #[command(flatten)]
    pub(crate) options: OptionArgs<Ct>,
}
