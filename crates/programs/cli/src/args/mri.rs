//! Options of `rayspin recon mri`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use super::{Numbers, RunOptions};
use crate::methods::{MethodArgs, Mri};
use crate::options::OptionArgs;

/// `rayspin recon mri`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples and all options: rayspin recon mri --help")]
#[command(after_long_help = "\
SCAN is ISMRMRD or fastMRI (.h5), a scanner's own files (Siemens .dat, the folder of a scan of
Bruker's ParaVision, GE P-files .7), or an array: k-space as BART .cfl (READ PHS1 PHS2 COIL), of
NumPy or HDF5 ([coil, z, y, x]) or of MATLAB ([x, y, coil]); with --traj samples as .cfl (1
readout spoke coil), of NumPy or HDF5 ([coil, sample] or [coil, spoke, readout]) or of MATLAB
([readout, spoke, coil]). --order names other axes. BART's TE, TIME, TIME2, SLICE and BATCH number
contrasts, repetitions, cardiac phases, slices and sets. A line says what it was understood as;
warnings say what speaks against that (rules: docs/reading.md). The image's format follows its name:
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
  rayspin recon mri brain.mat:DATA -o image.nii.gz --order x,y,slice,coil
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
  rayspin recon mri echoes.h5 -o coefficients.h5 --basis svd:4          T2 decays, 4 coefficients
  rayspin recon mri meas.dat -o sub-01_MEGRE.nii.gz --bids --phase      a file for each echo and part

Images of several repetitions, contrasts, cardiac phases and sets are volumes of one file, like
windows. They are read, reconstructed and written as a stream. What is complete when a
run ends early is kept as image.partial.nii.gz. A picture shows up to 16 slices and repetitions,
and says what it leaves out. An option that does nothing with the method or the scan is refused
(exit code 2).")]
pub(crate) struct ReconMri {
    /// Raw scan ({scans read}), or k-space as an array ({arrays read})
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) scan: PathBuf,
    /// Image, in the format of its name, or - (stdout); repeat for several
    ///
    /// - writes .npy to standard output; Python reads it with
    ///   numpy.load(io.BytesIO(sys.stdin.buffer.read())).
    #[arg(long = "output", short, value_name = "IMAGE", required_unless_present = "dry_run", value_hint = ValueHint::FilePath)]
    pub(crate) outputs: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) numbers: Numbers,
    /// Write a file for each contrast and set, with names of BIDS and acquisition parameters in a .json
    ///
    /// sub-01_GRE.nii.gz becomes sub-01_echo-1_GRE.nii.gz and so on. With --phase magnitudes and phases are
    /// written (part-mag, part-phase). Sets are inv-1 or flip-1 if the header has an inversion time or a flip
    /// angle for each, else acq-set1. Slices of several directions are chunk-1, chunk-2. Names of BIDS are
    /// those of NIfTI images.
    #[arg(long, conflicts_with = "complex")]
    pub(crate) bids: bool,
    /// DICOM: take patient and study from this DICOM file [default: no output names a patient]
    ///
    /// Patient name, ID, birth date and sex, UID, date, time and ID of the study, accession number, referring
    /// physician and frame of reference.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) dicom_template: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) run: RunOptions,
    #[command(flatten)]
    pub(crate) options: OptionArgs<Mri>,
    #[command(flatten)]
    pub(crate) method: MethodArgs<Mri>,
    /// Write the sensitivity maps that were used ({arrays written})
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) save_maps: Option<PathBuf>,
    /// Write the header's patient, study, place and date to the run record [default: no output has them]
    #[arg(long, conflicts_with = "no_record")]
    pub(crate) keep_identity: bool,
}
