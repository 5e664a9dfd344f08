//! `rayspin convert --raw`

use std::path::PathBuf;

use clap::{Args, ValueHint};

/// How arrays are understood that become a raw scan.
#[derive(Debug, Args)]
#[command(next_help_heading = "Raw scan of arrays")]
pub(crate) struct Raw {
    /// Make a raw scan of k-space, or of samples with `--traj` ({arrays read})
    ///
    /// k-space on a grid and samples are understood as recon mri understands them. Each line or spoke is a
    /// readout.
    #[arg(long)]
    pub(crate) raw: bool,
    /// Trajectory of the samples ({arrays read})
    ///
    /// Axes and components are as in recon mri.
    #[arg(long, value_name = "FILE", requires = "raw", value_hint = ValueHint::FilePath)]
    pub(crate) traj: Option<PathBuf>,
    /// What each axis of the array counts, as recon mri takes it [default: the format's own]
    #[arg(long, value_name = "AXIS,AXIS,...", requires = "raw", hide_short_help = true)]
    pub(crate) order: Option<String>,
    /// Units of the trajectory, such as cycles/fov [default: by range]
    #[arg(long, value_name = "UNITS", requires = "traj")]
    pub(crate) traj_units: Option<String>,
    /// Noise samples without a signal, [coil, sample] ({arrays read})
    #[arg(long, value_name = "FILE", requires = "raw", value_hint = ValueHint::FilePath, hide_short_help = true)]
    pub(crate) noise: Option<PathBuf>,
    /// Matrix of the image [default: the grid's, or by the trajectory's extent]
    #[arg(long, value_name = "X,Y[,Z]", requires = "raw")]
    pub(crate) matrix: Option<String>,
    /// Field of view in mm [default: voxels of 1 mm]
    #[arg(long, value_name = "X,Y[,Z]", requires = "raw")]
    pub(crate) fov: Option<String>,
    /// Time between samples in µs [default: not stated]
    #[arg(
        long,
        alias = "dwell-time",
        value_name = "US",
        requires = "raw",
        allow_negative_numbers = true,
        hide_short_help = true
    )]
    pub(crate) dwell: Option<f64>,
}
