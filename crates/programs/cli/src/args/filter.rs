//! `rayspin filter`

use std::path::PathBuf;

use clap::{Args, ValueHint};
use rayspin::run::Remedy;

/// What to do about quantities that no option has for its name.
pub(crate) const REMEDIES: &[Remedy] = &[
    (&["image to filter"], "filters take finite numbers: give such voxels a number"),
    (
        &["radius of a median", "sigma of a Gaussian in pixels", "bins"],
        "`rayspin filter --help` says what each filter takes",
    ),
    (
        &["voxels of resize along x", "voxels of resize along y", "voxels of resize along z"],
        "a smaller factor of resize, or a larger voxel",
    ),
    (&["range of the histogram"], "`--range LOW,HIGH`"),
];

/// `rayspin filter`
#[derive(Debug, Args)]
#[command(after_help = "\
Filters and their parameters, with defaults; values stand in this order or by name:
{filters}

Examples:
  rayspin filter head.nii.gz -o smooth.nii.gz --step gaussian:1.5
  rayspin filter head.nii.gz -o edges.png --step median:3 --step sobel --compare both.png
  rayspin filter head.nii.gz -o small.nii.gz --step resize:voxel=2
  rayspin filter head.nii.gz --histogram counts.csv")]
#[command(after_long_help = "\
Filters and their parameters, with defaults; values stand in this order or by name:
{filters in full}

Images are read from {images read}, and written by name to {images written}.
Volumes are filtered along all axes, 2-D images along two; axes=xy filters each slice alone. Each repetition of a series is
filtered alone. Complex images are filtered as magnitudes. Numbers that are not finite are refused.
Outside the image the voxel at its edge is repeated; median mirrors the image instead. Results are 32-bit floats. The image keeps its
place in the patient.
The CPU computes unless --device names a GPU.
{names after a colon}

Examples:
  rayspin filter head.nii.gz -o smooth.nii.gz --step gaussian:1.5             1.5 mm along each axis
  rayspin filter head.nii.gz -o smooth.nii.gz --step gaussian:2,xy,voxel      2 voxels in each slice
  rayspin filter noisy.npy -o clean.npy --step median:5
  rayspin filter head.nii.gz -o edges.png --step gaussian:1 --step sobel --compare both.png
  rayspin filter head.nii.gz -o small.nii.gz --step resize:voxel=2            voxels of 2 mm
  rayspin filter slice.npy -o large.npy --step resize:x=512,y=512
  rayspin filter head.nii.gz --step equalise --compare both.png --slice 14
  rayspin filter head.nii.gz --histogram counts.csv --bins 100 --range 0,100
  rayspin filter head.nii.gz --step equalise --histogram counts.html")]
pub(crate) struct Filter {
    /// Image to filter
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) image: PathBuf,
    /// Image to write, in the format of its name, or - (stdout); repeat for several
    #[arg(long = "output", short, value_name = "IMAGE", required_unless_present_any = ["compare", "histogram"], value_hint = ValueHint::FilePath)]
    pub(crate) outputs: Vec<PathBuf>,
    /// Filter to apply; repeat for several, which act in this order
    #[arg(long = "step", short, value_name = "FILTER[:VALUE,…]")]
    pub(crate) steps: Vec<String>,
    /// Picture of a slice before (left) and after (right), with one window (.png)
    ///
    /// Both sides have the same size, whatever the size of a voxel. sobel changes the unit, so that each side
    /// has a window of its own unless `--grey` states one.
    #[arg(long, value_name = "PNG", value_hint = ValueHint::FilePath)]
    pub(crate) compare: Option<PathBuf>,
    /// Slice of the image that `--compare` shows, counted from 0 [default: the middle one]
    #[arg(long, value_name = "N")]
    pub(crate) slice: Option<usize>,
    /// Pictures: grey values from LOW (black) to HIGH (white) [default: 0.5th to 99.5th percentile]
    #[arg(long, alias = "window", value_name = "LOW,HIGH", allow_hyphen_values = true)]
    pub(crate) grey: Option<String>,
    /// Histogram of the image after the steps: .csv, .json, or a chart (.html)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) histogram: Option<PathBuf>,
    /// Bins of the histogram [default: 256]
    #[arg(long, value_name = "N", default_value_t = 256, hide_default_value = true)]
    pub(crate) bins: usize,
    /// Values that the bins cover [default: all]
    #[arg(long, value_name = "LOW,HIGH", allow_hyphen_values = true)]
    pub(crate) range: Option<String>,
}
