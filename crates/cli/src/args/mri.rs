//! Options of `rayspin recon mri`.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};
use rayspin::core::Ranges;

use super::{Numbers, Run};
use crate::methods::{MethodArgs, Mri};

/// Density compensation of gridding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DensityArg {
    /// Iteration of Pipe and Menon, for any trajectory
    PipeMenon,
    /// The ramp of straight spokes through the centre
    Radial,
}

/// How virtual coils are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CompressionArg {
    /// Principal components of all samples
    Svd,
    /// Principal components at each position along the readout, aligned (Cartesian, fully sampled readouts)
    Geometric,
}

/// How coil sensitivities are estimated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SensitivitiesArg {
    /// Local principal components of low-resolution coil images
    Walsh,
    /// Eigenvectors of the reproducing operator of the k-space centre
    Espirit,
}

/// How `center_sample` counts the samples of reversed readouts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReversedCentreArg {
    /// In the order in which they are stored
    Stored,
    /// As if the readout were not reversed, as Siemens' scanners do
    Forward,
}

/// The field of view that a trajectory counts its cycles over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TrajectoryFovArg {
    /// The encoded one, with oversampling
    Encoded,
    /// The reconstructed one
    Recon,
}

/// `rayspin recon mri`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples and all options: rayspin recon mri --help")]
#[command(after_long_help = "\
SCAN is ISMRMRD (.h5), or an array: k-space as BART .cfl (READ PHS1 PHS2 COIL), .npy or .npz
([coil, z, y, x]); with --traj samples as .cfl (1 readout spoke coil), .npy or .npz
([coil, sample] or [coil, spoke, readout]). BART's TE, TIME, TIME2 and SLICE number contrasts,
repetitions, cardiac phases and slices. A line says what it was understood as; warnings say
what speaks against that (rules: docs/reading.md). The image's format follows its name:
{images written} (ISMRMRD images).
An array read from .cfl is written to .cfl in the same dimensions.
{names after a colon}

Examples:
  rayspin recon mri scan.h5 -o image.nii.gz                    method by what the scan is
  rayspin recon mri scan.h5 -o image.png --method gridding
  rayspin recon mri scan.h5 -o image.nii.gz -m cg-sense --lambda 1e-3 -W differences
  rayspin recon mri scan.h5 -o image.nii.gz -m wavelet --wavelet haar --wavelet-levels 3
  rayspin recon mri scan.h5 -o image.nii.gz -m tv --anatomy t1.nii.gz
  rayspin recon mri scan.h5 -o image.nii.gz -m cg-sense --map-sets 2
  rayspin recon mri scan.h5 -o image.nii.gz -m grappa --partial-fourier homodyne
  rayspin recon mri scan.h5 -o image.nii.gz -m cg-sense --lambda auto
  rayspin recon mri scan.h5 -o phase.nii.gz -o phase.png -m cg-sense --phase
  rayspin recon mri scan.h5 -q -o - > image.npy                .npy on standard output
  rayspin recon mri scan.h5 -o coils.cfl -m cartesian --combine none     an image a coil
  rayspin recon mri both.npz:kspace -o image.nii.gz --maps both.npz:maps
  rayspin recon mri scan.h5 -o image.nii.gz --coils 8          compressed to 8 virtual coils
  rayspin recon mri scan.h5 -o image.nii.gz --coils 0.99 --compression geometric
  rayspin recon mri scan.h5 -o image.nii.gz --reference truth.nii.gz --fit
  rayspin recon mri spiral.h5 -o image.nii.gz --field-map field.nii.gz
  rayspin recon mri kspace.cfl -o image.nii.gz --maps maps.cfl
  rayspin recon mri samples.npy --traj traj.npy -o image.png --matrix 256,256
  rayspin recon mri samples.npy --traj traj.npy -o image.png --traj-units cycles/fov
  rayspin recon mri scan.h5 -o some.nii.gz --slice 1-2 --repetition 0,3 --readouts 0-24
  rayspin recon mri golden.h5 -o frames.nii.gz --window 21 --stride 8    a sliding window
  rayspin recon mri golden.h5 -o frames.nii.gz --window 8 -m low-rank-sparse

Repetitions and windows are read, reconstructed and written as a stream. What is complete when a
run ends early is kept as image.partial.nii.gz. A picture shows up to 16 slices and repetitions,
and says what it leaves out. An option that does nothing with the method or the scan is refused
(exit code 2).")]
pub(crate) struct ReconMri {
    /// Raw scan ({scans read}), or k-space as an array ({arrays read})
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) scan: PathBuf,
    /// Image, in the format of its name, or - (stdout); repeat for several
    ///
    /// - writes .npy to standard output; Python reads it with numpy.load(io.BytesIO(sys.stdin.buffer.read())).
    #[arg(long = "output", short, value_name = "IMAGE", required_unless_present = "dry_run", value_hint = ValueHint::FilePath)]
    pub(crate) outputs: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) numbers: Numbers,
    #[command(flatten)]
    pub(crate) run: Run,
    /// Folder that keeps the trajectory's Toeplitz kernel for the next run ({methods with a normal operator})
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub(crate) cache: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) method: MethodArgs<Mri>,
    /// Map of the field in Hz: corrects off-resonance
    ///
    /// The map [z, y, x] has the image's matrix ({images read}) and states how far the field is from the receiver's frequency. It
    /// corrects shifts and blurring of long readouts ({methods in a field}). The scan must be ISMRMRD and state its dwell time.
    /// The sample at the centre of each readout has time 0.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) field_map: Option<PathBuf>,
    /// Largest error of the field's phases, which decides the number of time segments [default: 1e-4]
    #[arg(long, value_name = "ERROR", requires = "field_map", allow_negative_numbers = true)]
    pub(crate) field_tolerance: Option<f64>,
    /// Relative error that the NUFFT is planned for; the error is at most 3 times as large
    #[arg(long, default_value_t = 1e-4, allow_negative_numbers = true)]
    pub(crate) epsilon: f64,
    /// Density compensation of gridding
    #[arg(long, value_enum, default_value = "pipe-menon")]
    pub(crate) density: DensityArg,
    /// Sensitivity maps to use instead of estimated ones
    ///
    /// [coil, z, y, x] or [set, coil, z, y, x], or in BART's order with sets in MAPS and slices in SLICE ({arrays read}).
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) maps: Option<PathBuf>,
    /// Write the sensitivity maps that were used ({arrays written})
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) save_maps: Option<PathBuf>,
    /// Width of the k-space centre for maps, at most the fully sampled width [default: 24]
    #[arg(long, value_name = "LINES")]
    pub(crate) calibration: Option<usize>,
    /// Do not whiten coils by the scan's noise readouts
    #[arg(long, conflicts_with = "noise_covariance")]
    pub(crate) no_prewhiten: bool,
    /// Covariance of the coils' noise [coil, coil] ({arrays read}) to whiten by, instead of the scan's noise readouts
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) noise_covariance: Option<PathBuf>,
    /// Compress to N virtual coils, or to those that hold this PART of the energy
    ///
    /// A number below 1 keeps as many virtual coils as hold this part of the energy.
    #[arg(long, value_name = "N|PART")]
    pub(crate) coils: Option<String>,
    /// How coils are compressed
    #[arg(long, value_enum, default_value = "svd", requires = "coils")]
    pub(crate) compression: CompressionArg,
    /// How sensitivity maps are estimated [default: espirit on the grid, walsh with a trajectory]
    #[arg(long, value_enum, conflicts_with = "maps")]
    pub(crate) sensitivities: Option<SensitivitiesArg>,
    /// Sets of ESPIRiT maps, 1 or 2 ({methods over sets of maps}) [default: 2 on a grid where the object is larger than the field of view, else 1]
    ///
    /// Such an object folds over itself, and the image shows both layers. Implies --sensitivities espirit.
    #[arg(long, value_name = "N", conflicts_with = "maps")]
    pub(crate) map_sets: Option<usize>,
    /// Eigenvalue below which ESPIRiT maps are 0 [default: 0.8]
    #[arg(long, value_name = "VALUE", conflicts_with = "maps")]
    pub(crate) map_crop: Option<f64>,
    /// Trajectory of a scan without a header ({arrays read})
    ///
    /// BART [3, readout, spoke], for each image of a series or for all, or NumPy [sample, dim] or [spoke, readout, dim].
    /// Components are kx, ky, kz in this order (SigPy's are the other way round: kz, ky, kx).
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) traj: Option<PathBuf>,
    /// Units of the trajectory, such as cycles/fov [default: by range]
    ///
    /// cycles/fov, cycles/voxel, radians/voxel, cycles/m or radians/m. Replaces the unit that the file states or that follows from
    /// the range of the points. --traj needs --traj-units or --matrix, except for BART arrays that reach beyond 4.
    #[arg(long, value_name = "UNITS")]
    pub(crate) traj_units: Option<String>,
    /// Field of view that a trajectory in cycles/fov counts over [default: by range]
    ///
    /// The header's encoded field of view, unless it is wider than the image's (oversampling) and the points stay within the
    /// image's own k-space and fill it. Then it is the image's.
    #[arg(long, value_enum)]
    pub(crate) traj_fov: Option<TrajectoryFovArg>,
    /// The last column of the trajectory holds density weights: leave it out
    ///
    /// A fourth column always does, and so does a third one that is never negative in a two-dimensional ISMRMRD scan.
    #[arg(long)]
    pub(crate) traj_weights: bool,
    /// Matrix of the image [default: the scan's own]
    ///
    /// The field of view stays as it is.
    #[arg(long, value_name = "X,Y[,Z]")]
    pub(crate) matrix: Option<String>,
    /// Field of view in mm of a scan without a header
    #[arg(long, value_name = "X,Y[,Z]")]
    pub(crate) fov: Option<String>,
    /// Line at the centre of k-space [default: the header's; if it is impossible, the line where the energy peaks]
    ///
    /// Counted as kspace_encode_step_1.
    #[arg(long, value_name = "LINE")]
    pub(crate) centre_line: Option<usize>,
    /// Partition at the centre of k-space [default: as for --centre-line]
    ///
    /// Counted as kspace_encode_step_2.
    #[arg(long, value_name = "PARTITION")]
    pub(crate) centre_partition: Option<usize>,
    /// How center_sample counts the samples of reversed readouts [default: as readouts of both directions tell]
    #[arg(long, value_enum)]
    pub(crate) reversed_centre: Option<ReversedCentreArg>,
    /// Encoding to reconstruct [default: the first that holds images]
    #[arg(long, value_name = "N")]
    pub(crate) encoding: Option<usize>,
    /// Only slices with these counters, from 0: 3, 1-2 or 0,3
    #[arg(long, value_name = "NUMBERS", value_parser = rayspin_shell::args::ranges)]
    pub(crate) slice: Option<Ranges>,
    /// Only repetitions with these counters, from 0
    #[arg(long, value_name = "NUMBERS", value_parser = rayspin_shell::args::ranges)]
    pub(crate) repetition: Option<Ranges>,
    /// Only these readouts of each image, counted from 0 in order of acquisition
    ///
    /// With --window they are counted over the whole scan. On a grid the other lines are then missing: keep the centre of k-space.
    /// Readouts of an array are found along its trajectory; rayspin info counts them.
    #[arg(long, value_name = "NUMBERS", value_parser = rayspin_shell::args::ranges)]
    pub(crate) readouts: Option<Ranges>,
    /// Contrast (echo) to reconstruct [default: the first]
    #[arg(long, value_name = "N")]
    pub(crate) contrast: Option<u16>,
    /// Cardiac phase to reconstruct [default: the first]
    #[arg(long, value_name = "N")]
    pub(crate) cardiac_phase: Option<u16>,
    /// Set to reconstruct [default: the first]
    #[arg(long, value_name = "N")]
    pub(crate) set: Option<u16>,
    /// Make one image of every N readouts, as for golden angles
    ///
    /// Readouts are taken in order of acquisition and across repetitions. Without it the file defines the images.
    #[arg(long, value_name = "N")]
    pub(crate) window: Option<usize>,
    /// Readouts from one window to the next [default: the window, so that no readout is in two images]
    #[arg(long, value_name = "N", requires = "window")]
    pub(crate) stride: Option<usize>,
    /// Only the first N windows
    #[arg(long, value_name = "N", requires = "window")]
    pub(crate) frames: Option<usize>,
    /// Estimate coil sensitivities anew in each repetition or window
    ///
    /// The largest eigenvalue, to which λ is relative, is computed anew too. Without this option both are computed once for all images.
    #[arg(long)]
    pub(crate) independent: bool,
    /// Write the header's patient, study, place and date to the run record [default: no output has them]
    #[arg(long, conflicts_with = "no_record")]
    pub(crate) keep_identity: bool,
}
