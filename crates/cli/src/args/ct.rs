//! `rayspin simulate ct` and `rayspin recon ct`

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, ValueEnum, ValueHint};
use rayspin::core::Ranges;
use rayspin::job::ct::Field;

use super::simulate::ContrastArg;
use super::{Run, ScanRecord};
use crate::methods::{CorrectionArgs, Ct, MethodArgs};

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

/// Where the axis falls on the detector.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum AxisArg {
    /// On this column.
    Column(f64),
    /// Where the views say.
    Find,
}

impl FromStr for AxisArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match (text, text.parse()) {
            ("find", _) => Ok(Self::Find),
            (_, Ok(column)) => Ok(Self::Column(column)),
            _ => Err("expected a number or find".into()),
        }
    }
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
SCAN is Data Exchange or NeXus NXtomo (HDF5), or Zeiss (.txrm); or an array or image of line integrals
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
    /// CT scan (Data Exchange or NXtomo .h5, Zeiss .txrm), line integrals or counts as an array ({arrays read}), a .tif or another image, or - (.npy on standard input)
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) scan: PathBuf,
    /// Volume, in the format of its name, or - (stdout); repeat for several
    #[arg(long = "output", short, value_name = "IMAGE", required_unless_present = "dry_run", value_hint = ValueHint::FilePath)]
    pub(crate) outputs: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) run: Run,
    #[command(flatten)]
    pub(crate) method: MethodArgs<Ct>,
    #[command(flatten)]
    pub(crate) corrections: CorrectionArgs,
    /// Number of voxels [default: as many as fill the field of view]
    ///
    /// By default the volume has as many voxels across as the detector has columns, and as many slices as it has rows. A shifted detector
    /// counts twice the columns of its longer side. With --matrix alone the voxels become as large as the field of view needs.
    #[arg(long, value_name = "X,Y[,Z]")]
    pub(crate) matrix: Option<String>,
    /// Voxel size in mm [default: by --matrix, else pixel size / magnification]
    ///
    /// --matrix alone keeps the field of view, so fewer voxels are larger. Without --matrix and --voxel, the size of a voxel is the size of a
    /// pixel over the magnification at the axis.
    #[arg(long, value_name = "MM[,Y,Z]")]
    pub(crate) voxel: Option<String>,
    /// Middle of the volume in mm, from the axis and the middle of the orbit
    #[arg(long, value_name = "X,Y,Z", allow_hyphen_values = true)]
    pub(crate) centre: Option<String>,
    /// Add views to the volume as they arrive, from a file or a named pipe; - (standard input) always does
    ///
    /// Takes scans with a header and .npy arrays in C order, and --method fbp or fdk. Memory does not grow with the number of views. A
    /// volume beyond the memory is reconstructed slab by slab, where the views are in a file.
    #[arg(long)]
    pub(crate) stream: bool,
    /// Picture of the middle slice, written again while views arrive
    #[arg(long, value_name = "PNG", value_hint = ValueHint::FilePath)]
    pub(crate) preview: Option<PathBuf>,
    /// Only these views, counted from 0: 0-89, or 0,4,8
    #[arg(long, value_name = "NUMBERS", value_parser = rayspin_shell::args::ranges)]
    pub(crate) view: Option<Ranges>,
    /// Only these rows of the detector, counted from 0
    #[arg(long, value_name = "NUMBERS", value_parser = rayspin_shell::args::ranges)]
    pub(crate) row: Option<Ranges>,
    /// What the detector counts without the object (flat field): an image, or one number
    ///
    /// With this option the projections are counts, and the run makes line integrals of them. One image, or several as [frame, row, column],
    /// replace the flat fields of the scan. The scan's dark fields stay.
    #[arg(long, value_name = "IMAGE|NUMBER")]
    pub(crate) flat: Option<Field>,
    /// What the detector counts without the beam (dark field): an image, or one number [default: the dark fields of the scan, else 0]
    #[arg(long, value_name = "IMAGE|NUMBER", requires = "flat")]
    pub(crate) dark: Option<Field>,
    /// Only these columns of the detector, counted from 0
    #[arg(long, value_name = "NUMBERS", value_parser = rayspin_shell::args::ranges)]
    pub(crate) column: Option<Ranges>,
    /// Angle that the views cover evenly; negative: clockwise seen from +z
    ///
    /// For an array, or a scan that states no angles.
    #[arg(long, value_name = "DEGREES", allow_negative_numbers = true)]
    pub(crate) arc: Option<f64>,
    /// Column of the axis, or find [default: the file's, find, or middle]
    ///
    /// By default the axis is where the file states it. If the file states no rays and holds counts of parallel rays, the run searches the
    /// axis as with find. If the search fails, and for all other scans, the axis is on the middle column. The search takes the middle row of
    /// parallel views over half a turn or more. The axis may be near the detector's edge. A column corrects the axis of a file that states
    /// its rays. Columns are counted from 0 in the file, before --column and bins.
    #[arg(long, value_name = "COLUMN", allow_negative_numbers = true)]
    pub(crate) axis: Option<AxisArg>,
    /// Pixel size in mm [default: as the scan or image states it, else 1]
    #[arg(long, value_name = "U[,V]")]
    pub(crate) pixel: Option<String>,
    /// Distance from the source to the axis, of fan and cone beams
    #[arg(long, value_name = "MM")]
    pub(crate) source_to_axis: Option<f64>,
    /// Distance from the axis to the detector [default: 0]
    #[arg(long, value_name = "MM", requires = "source_to_axis", allow_negative_numbers = true)]
    pub(crate) axis_to_detector: Option<f64>,
    /// Rays from a geometry file of RTK (XML); the detector's middle is the origin of its images, unless the images state another origin
    #[arg(long, value_name = "FILE", conflicts_with_all = ["arc", "source_to_axis"], value_hint = ValueHint::FilePath)]
    pub(crate) rtk: Option<PathBuf>,
}
