//! `rayspin render`

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};
use rayspin::run::Remedy;

/// What to do about quantities that no option has for its name.
pub(crate) const REMEDIES: &[Remedy] = &[
    (&["angle of the lens"], "`--perspective 30` is usual"),
    (&["width of the picture"], "leave `--width` out: the volume then fills the picture"),
    (&["step along rays"], "leave `--step` out: it is then the smallest side of a voxel"),
    (
        &["transfer function", "point of the transfer function"],
        "one point a line, values growing: 300 1.0 0.9 0.8 0.2",
    ),
];

/// What a pixel shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ModeArg {
    /// Line integrals of the attenuation: a radiograph
    Xray,
    /// The largest value along each ray
    Mip,
    /// Emission and absorption of voxels that a transfer function colours
    Volume,
    /// The shaded isosurface of one value
    Surface,
}

/// A transfer function for values in Hounsfield units.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PresetArg {
    /// Bone, white
    Bone,
    /// Skin and soft tissue over bone
    Skin,
    /// Lungs and airways
    Lung,
}

/// The side from which a patient is seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ViewArg {
    /// The face: the patient's left is at the right
    Front,
    /// The back of the head
    Back,
    /// The patient's left
    Left,
    /// The patient's right
    Right,
    /// From above
    Top,
    /// From the feet
    Bottom,
}

impl ViewArg {
    /// Azimuth and elevation in degrees.
    pub(crate) fn angles(self) -> [f64; 2] {
        match self {
            Self::Front => [0.0, 0.0],
            Self::Left => [90.0, 0.0],
            Self::Back => [180.0, 0.0],
            Self::Right => [270.0, 0.0],
            Self::Top => [0.0, 90.0],
            Self::Bottom => [0.0, -90.0],
        }
    }
}

/// `rayspin render`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples and all options: rayspin render --help")]
#[command(after_long_help = "\
IMAGE is a volume: {images read}.
Modes xray and volume (with a preset) take attenuations in 1/mm, or Hounsfield units with --hu.
CT images in DICOM files need no --hu. Modes mip and surface, and --transfer, take any numbers.

The name of an output says what is written:
  .png     a picture; with --turntable an animated one
  .html    a page that carries the volume: slices and the volume are turned in a browser
  others   the numbers of --mode xray and mip, a slice for each view: {images written}

A transfer function (--transfer) is a text file. Each line holds a value, red, green and blue
from 0 to 1, and the opacity per mm; values grow. # begins a comment.

Examples:
  rayspin render head.nii.gz -o skull.png -m surface --hu --view left
  rayspin render dicom/ -o skull.png -m surface --view left      CT images of a folder
  rayspin render head.nii.gz -o radiograph.png -o integrals.npy --hu --view front
  rayspin render head.nii.gz -o face.png -m volume --preset skin --hu --azimuth 30 --elevation 15
  rayspin render head.nii.gz -o turn.png -m volume --preset bone --hu --turntable 36
  rayspin render volume.nii.gz -o vessels.png -m mip --grey 0,0.05
  rayspin render volume.nii.gz -o volume.html")]
pub(crate) struct Render {
    /// Volume to read ({images read})
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) image: PathBuf,
    /// Picture (.png), page (.html) or numbers, by the name's ending; repeat for several
    #[arg(long = "output", short, value_name = "FILE", required = true, value_hint = ValueHint::FilePath)]
    pub(crate) outputs: Vec<PathBuf>,
    /// What a pixel shows
    #[arg(long, short, value_enum, default_value = "xray")]
    pub(crate) mode: ModeArg,
    /// Values are Hounsfield units, as in DICOM files of CT
    #[arg(long)]
    pub(crate) hu: bool,
    /// Attenuation of water in 1/mm, which converts between Hounsfield units and attenuations
    #[arg(long, value_name = "VALUE", default_value_t = 0.0206, allow_negative_numbers = true)]
    pub(crate) water: f32,
    /// Side from which the patient is seen [default: front]
    #[arg(long, value_enum, conflicts_with_all = ["azimuth", "elevation"])]
    pub(crate) view: Option<ViewArg>,
    /// Angle around the patient, from the front to the left side [default: 0°]
    #[arg(long, value_name = "DEGREES", allow_negative_numbers = true)]
    pub(crate) azimuth: Option<f64>,
    /// Angle from which the camera looks down [default: 0°]
    #[arg(long, value_name = "DEGREES", allow_negative_numbers = true)]
    pub(crate) elevation: Option<f64>,
    /// Perspective with this field of view, 30° without a number [default: parallel rays]
    #[arg(long, value_name = "DEGREES", num_args = 0..=1, default_missing_value = "30", allow_negative_numbers = true)]
    pub(crate) perspective: Option<f64>,
    /// Distance of the eye from the middle of the volume in mm [default: the volume fills the picture]
    #[arg(long, value_name = "MM", requires = "perspective", allow_negative_numbers = true)]
    pub(crate) distance: Option<f64>,
    /// Width of the picture in mm, at the middle of the volume [default: the volume fills it]
    #[arg(long, value_name = "MM", conflicts_with = "perspective", allow_negative_numbers = true)]
    pub(crate) width: Option<f64>,
    /// Pixels of the picture
    #[arg(long, value_name = "COLUMNS[,ROWS]", default_value = "512")]
    pub(crate) size: String,
    /// Largest distance of samples along a ray's main axis in mm; each voxel has at least one [default: the
    /// smallest side of a voxel]
    #[arg(long, value_name = "MM", allow_negative_numbers = true)]
    pub(crate) step: Option<f64>,
    /// Grey values of xray, mip and pages, black to white [default: smallest to largest value, for pages
    /// 0.5th to 99.5th percentile]
    #[arg(long, alias = "window", value_name = "LOW,HIGH", allow_hyphen_values = true)]
    pub(crate) grey: Option<String>,
    /// Show xray and mip dark where the numbers are large, as X-ray film does
    #[arg(long)]
    pub(crate) invert: bool,
    /// Transfer function of `--mode volume` [default: bone]
    #[arg(long, value_enum, conflicts_with = "transfer")]
    pub(crate) preset: Option<PresetArg>,
    /// Transfer function of `--mode volume` from a text file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) transfer: Option<PathBuf>,
    /// Value of the isosurface [default: 300 in Hounsfield units, else half the 99.5th percentile]
    #[arg(long, value_name = "VALUE", allow_negative_numbers = true)]
    pub(crate) iso: Option<f32>,
    /// Colour of the surface, from 0 to 1 [default: bone's]
    #[arg(long, value_name = "R,G,B")]
    pub(crate) colour: Option<String>,
    /// Colour behind the object in `--mode volume` and `surface`, from 0 to 1
    #[arg(long, value_name = "R,G,B", default_value = "0,0,0")]
    pub(crate) background: String,
    /// Turn around the patient in N views: an animated picture, or a slice of numbers for each view
    #[arg(long, value_name = "N")]
    pub(crate) turntable: Option<usize>,
    /// Time of each view of an animated picture in ms
    #[arg(long, value_name = "MS", default_value_t = 60, requires = "turntable")]
    pub(crate) frame_time: u16,
}
