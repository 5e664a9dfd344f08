//! The command line: one definition gives the parser, the help texts and the shell completions.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum, ValueHint};
use rayspin::core::Ranges;
use rayspin::io::Values;
use rayspin_shell::Gpu;
use rayspin_shell::args::Common;
use rayspin_shell::stdout::Output;

pub(crate) mod ct;
mod formats;
mod help;
mod raw;
pub(crate) mod render;
pub(crate) mod simulate;

use crate::methods::{MethodArgs, Mri};

/// Raw MRI and CT scans into images, on every core of this machine.
#[derive(Debug, Parser)]
#[command(name = "rayspin", version, max_term_width = 100)]
#[command(after_help = "\
Examples:
  rayspin demo                                              a tour in under a minute
  rayspin simulate mri --trajectory spiral --coils 8 -o scan.h5 --truth truth.nii.gz
  rayspin recon mri scan.h5 -o image.nii.gz -o image.png --method cg-sense
  rayspin simulate ct -o ct.h5 && rayspin recon ct ct.h5 -o volume.nii.gz
  rayspin render volume.nii.gz -o picture.png --view left
  rayspin metrics image.nii.gz truth.nii.gz --fit
  rayspin info scan.h5

Ladders and tuning are the program rayspin-ladder, which is built apart: rayspin-ladder matrix-add
An option that would do nothing is refused.
Exit codes: 0 done, 1 the run failed, 2 the input or an option is wrong, 130 interrupted.")]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Simulate three scans, reconstruct them, and show the images on a page
    Demo(Demo),
    /// Make scans whose truth is known
    #[command(subcommand)]
    Simulate(Simulate),
    /// Reconstruct images from raw scans
    #[command(subcommand)]
    Recon(Recon),
    /// Draw a volume: radiograph, surface, turntable, or a page to turn it in
    Render(Box<render::Render>),
    /// Compare an image with a reference
    Metrics(Metrics),
    /// Convert between image formats
    Convert(Box<Convert>),
    /// Describe this machine, or a file
    Info(Info),
    /// Repeat a run from its record, and name what differs
    Rerun(Rerun),
    /// Check and time every variant of an algorithm: starts rayspin-ladder
    #[command(disable_help_flag = true, disable_version_flag = true)]
    Ladder(Passed),
    /// Find the fastest parameters of an algorithm's variants: starts rayspin-ladder tune
    #[command(disable_help_flag = true, disable_version_flag = true)]
    Tune(Passed),
    /// Print a completion script for a shell
    Completions(Completions),
}

impl Command {
    /// The outputs that may be `-`, standard output.
    pub(crate) fn outputs(&mut self) -> Vec<Output<'_>> {
        fn output<'a>(option: &'a str, path: &'a mut PathBuf, ending: &'a str) -> Output<'a> {
            Output { option, path, ending }
        }
        fn optional<'a>(
            option: &'a str,
            path: &'a mut Option<PathBuf>,
            ending: &'a str,
        ) -> Option<Output<'a>> {
            path.as_mut().map(|path| output(option, path, ending))
        }
        match self {
            Self::Recon(Recon::Mri(args)) => {
                let images = args.outputs.iter_mut().map(|path| output("--output", path, "npy"));
                let others = [
                    optional("--save-maps", &mut args.save_maps, "npy"),
                    optional("--record", &mut args.record, "json"),
                ];
                images.chain(others.into_iter().flatten()).collect()
            }
            Self::Recon(Recon::Ct(args)) => {
                let images = args.outputs.iter_mut().map(|path| output("--output", path, "npy"));
                images.chain(optional("--record", &mut args.record, "json")).collect()
            }
            Self::Simulate(Simulate::Ct(args)) => {
                let others = [
                    optional("--truth", &mut args.truth, "npy"),
                    optional("--record", &mut args.record, "json"),
                ];
                let scan = output("--output", &mut args.output, "h5");
                std::iter::once(scan).chain(others.into_iter().flatten()).collect()
            }
            Self::Simulate(Simulate::Mri(args)) => {
                let others = [
                    optional("--truth", &mut args.truth, "npy"),
                    optional("--maps", &mut args.maps, "npy"),
                    optional("--save-field-map", &mut args.save_field_map, "npy"),
                    optional("--record", &mut args.record, "json"),
                ];
                let scan = output("--output", &mut args.output, "h5");
                std::iter::once(scan).chain(others.into_iter().flatten()).collect()
            }
            Self::Convert(args) => {
                let scan = rayspin::io::holds_scan(&args.from).unwrap_or(false);
                vec![output("TO", &mut args.to, if scan { "h5" } else { "npy" })]
            }
            Self::Render(args) => {
                args.outputs.iter_mut().map(|path| output("--output", path, "png")).collect()
            }
            Self::Info(args) => optional("--output", &mut args.output, "png").into_iter().collect(),
            _ => Vec::new(),
        }
    }

    /// When it takes a GPU to compute on, or to describe.
    pub(crate) fn gpu(&self) -> Gpu {
        match self {
            Self::Demo(_) | Self::Info(_) | Self::Render(_) => Gpu::Now,
            Self::Recon(_) | Self::Rerun(_) => Gpu::Later,
            Self::Simulate(_) | Self::Metrics(_) | Self::Convert(_) => Gpu::Never,
            Self::Ladder(_) | Self::Tune(_) | Self::Completions(_) => Gpu::Never,
        }
    }
}

/// The definition of the command line.
pub(crate) fn command() -> clap::Command {
    let command = formats::fill(Cli::command())
        .mut_arg("device", |option| {
            option.help("Processor to compute on: auto, cpu, cuda, cuda:N").long_help(
                "Processor to compute on: auto, cpu, cuda, cuda:N. auto takes the first GPU that works, unless the CPU is \
                 done before a GPU has started; the CPU also takes what does not fit a GPU or fails there",
            )
        })
        .mut_arg("gpu_memory", |option| {
            option.help(
                "GPU memory that arrays may take; a reconstruction is cut to fit [default: all that is free]",
            )
        });
    help::arrange(command)
}

/// `rayspin demo`
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  rayspin demo --out my-demo        pictures, run records and my-demo/index.html")]
pub(crate) struct Demo {
    /// Folder for everything the demo writes
    #[arg(long, short, value_name = "FOLDER", default_value = "rayspin-demo", value_hint = ValueHint::DirPath)]
    pub(crate) out: PathBuf,
    /// Seed of the simulated noise
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
}

/// `rayspin simulate`
#[derive(Debug, Subcommand)]
pub(crate) enum Simulate {
    /// An MRI scan of the Shepp–Logan phantom, from closed-form k-space
    Mri(Box<simulate::Mri>),
    /// A CT scan of a phantom, from exact line integrals
    Ct(Box<ct::SimulateCt>),
}

/// `rayspin recon`
#[derive(Debug, Subcommand)]
pub(crate) enum Recon {
    /// An MRI scan
    Mri(Box<ReconMri>),
    /// A CT scan
    Ct(Box<ct::ReconCt>),
}

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

/// The numbers of a complex image that files hold.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Numbers {
    /// Write complex numbers [default: complex in {complex written by default}, magnitudes in the others]
    #[arg(long)]
    pub(crate) complex: bool,
    /// Write phases in rad, from −π to π; a picture shows them
    #[arg(long, conflicts_with = "complex")]
    pub(crate) phase: bool,
}

impl Numbers {
    /// What is written of each number; by the format when absent.
    pub(crate) fn values(self) -> Option<Values> {
        match (self.complex, self.phase) {
            (true, _) => Some(Values::Complex),
            (_, true) => Some(Values::Phase),
            _ => None,
        }
    }
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
  rayspin recon mri scan.h5 -o image.nii.gz -m cg-sense --sensitivities espirit --map-sets 2
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
    /// State the memory and work of each stage; compute nothing
    #[arg(long, conflicts_with_all = ["record", "no_record"])]
    pub(crate) dry_run: bool,
    /// Memory that the run may take (2G, 512M)
    ///
    /// K, M and G are binary units. Coils, images and points of a trajectory are taken some at a time to fit, or the run is
    /// refused with the memory that it needs.
    #[arg(long, value_name = "SIZE", value_parser = rayspin_shell::args::size)]
    pub(crate) memory: Option<u64>,
    /// Compare N random outputs of each transform with the exact sums
    ///
    /// Every trajectory and grid is compared. The run fails (exit code 1, images written) where outputs miss their tolerance.
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "1000", conflicts_with = "dry_run")]
    pub(crate) certify: Option<usize>,
    /// Seed of the outputs that are drawn
    #[arg(long, value_name = "SEED", requires = "certify")]
    pub(crate) certify_seed: Option<u64>,
    /// Folder that keeps the trajectory's Toeplitz kernel for the next run ({methods with a normal operator})
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub(crate) cache: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) method: MethodArgs<Mri>,
    /// Map of the field in Hz: corrects off-resonance
    ///
    /// It states how far the field is from the receiver's frequency, [z, y, x] of the image's matrix ({images read}), and
    /// corrects shifts and blurring of long readouts ({methods in a field}; ISMRMRD scans that state their dwell time). Samples
    /// at the centre of each readout are taken at time 0.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) field_map: Option<PathBuf>,
    /// Largest error of the field's phases, which decides the number of time segments [default: 1e-4]
    #[arg(long, value_name = "ERROR", requires = "field_map", allow_negative_numbers = true)]
    pub(crate) field_tolerance: Option<f64>,
    /// Relative error that the NUFFT is planned for; its error is at most 3 times that
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
    /// Compress to N virtual coils, or to this part of the energy
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
    /// Sets of ESPIRiT maps; 2 where the object is larger than the field of view ({methods over sets of maps})
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
    /// cycles/fov, cycles/voxel, radians/voxel, cycles/m or radians/m instead of the stated unit or the one that the range
    /// tells. --traj needs --traj-units or --matrix, but for BART arrays that reach beyond 4.
    #[arg(long, value_name = "UNITS")]
    pub(crate) traj_units: Option<String>,
    /// Matrix of the image [default: the scan's own]
    ///
    /// The field of view stays as it is.
    #[arg(long, value_name = "X,Y[,Z]")]
    pub(crate) matrix: Option<String>,
    /// Field of view in mm of a scan without a header
    #[arg(long, value_name = "X,Y[,Z]")]
    pub(crate) fov: Option<String>,
    /// Encoding to reconstruct
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) encoding: usize,
    /// Only these slices: 3, 1-2 or 0,3
    #[arg(long, value_name = "NUMBERS", value_parser = rayspin_shell::args::ranges)]
    pub(crate) slice: Option<Ranges>,
    /// Only these repetitions
    #[arg(long, value_name = "NUMBERS", value_parser = rayspin_shell::args::ranges)]
    pub(crate) repetition: Option<Ranges>,
    /// Only these readouts of each image, counted from 0 in order of acquisition
    ///
    /// With --window they are counted over the whole scan. On a grid the other lines are missing: keep the centre. Readouts of an array are found along its trajectory; rayspin info
    /// counts them.
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
    /// Readouts from one window to the next [default: the window: no readout is in two images]
    #[arg(long, value_name = "N", requires = "window")]
    pub(crate) stride: Option<usize>,
    /// Only the first N windows
    #[arg(long, value_name = "N", requires = "window")]
    pub(crate) frames: Option<usize>,
    /// Estimate coil sensitivities anew in each repetition or window
    ///
    /// The eigenvalue that λ is relative to is found anew too. Without this option both are found once for all.
    #[arg(long)]
    pub(crate) independent: bool,
    /// Image to compare with, as rayspin metrics does
    ///
    /// Quality goes to the run record and the screen. Chosen slices and repetitions are compared with the same ones of a
    /// reference that shows all of the scan.
    #[arg(long, value_name = "IMAGE", value_hint = ValueHint::FilePath)]
    pub(crate) reference: Option<PathBuf>,
    /// Fit a scale factor to the image before it is compared
    #[arg(long, requires = "reference")]
    pub(crate) fit: bool,
    /// Run record [default: the first image's name with .json]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) record: Option<PathBuf>,
    /// Write no run record
    #[arg(long, conflicts_with = "record")]
    pub(crate) no_record: bool,
    /// Write to the run record what the header says of the patient, the study, the place and the date [default: no output
    /// has it]
    #[arg(long, conflicts_with = "no_record")]
    pub(crate) keep_identity: bool,
}

/// `rayspin metrics`
#[derive(Debug, Args)]
#[command(after_help = "\
Images are read from {images read}.
Two real images are compared with their signs, two complex images with their phases. Where one is
complex and the other real, magnitudes are compared. The table says which, and whether a scale
was fitted. recon mri --reference compares alike.
Several images make a table with a row for each, and a list of objects in JSON. A folder stands
for the images in it. Where the reference is a folder, each image is compared with the image of
the same name there, whatever their formats.
{names after a colon}

Examples:
  rayspin metrics image.nii.gz truth.nii.gz
  rayspin metrics sense.nii.gz tv.nii.gz wavelet.nii.gz truth.nii.gz --fit
  rayspin metrics recon/ truth/ --json")]
pub(crate) struct Metrics {
    /// The images to judge, or folders of images
    #[arg(required = true, value_name = "IMAGE", value_hint = ValueHint::FilePath)]
    pub(crate) images: Vec<PathBuf>,
    /// What they should be: an image, or a folder with an image of each name
    #[arg(required = true, value_name = "REFERENCE", value_hint = ValueHint::FilePath)]
    pub(crate) reference: PathBuf,
    /// Compare magnitudes, also of two complex or two signed images
    #[arg(long)]
    pub(crate) magnitude: bool,
    /// Fit a scale factor to each image first (and a phase, where complex values are compared)
    #[arg(long)]
    pub(crate) fit: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// `rayspin convert`
#[derive(Debug, Args)]
#[command(after_help = "\
Images are read from {images read}, and written by name to {images written}.
Raw scans are read from {scans read}, and written to {scans written}; --raw makes one of arrays.
{names after a colon}

Examples:
  rayspin convert image.nii.gz image.png --slice 20
  rayspin convert series.nii.gz part.npy --slice 10-20 --repetition 0,3
  rayspin convert volume.nii.gz volume.png --montage
  rayspin convert image.npy image.nii.gz                magnitudes; --complex keeps the phase
  rayspin convert image.cfl phase.nii.gz --phase
  rayspin convert --raw kspace.npy scan.h5 --fov 220,220,5 --noise noise.npy
  rayspin convert --raw samples.cfl scan.h5 --traj traj.cfl --matrix 256,256 --dwell 4")]
pub(crate) struct Convert {
    /// File to read
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) from: PathBuf,
    /// File to write; - is standard output, as .npy or of a raw scan as .h5
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) to: PathBuf,
    #[command(flatten)]
    pub(crate) numbers: Numbers,
    /// Only these slices: 3, 1-2 or 0,3 [default: all; of a picture the middle one]
    #[arg(long, value_name = "NUMBERS", value_parser = rayspin_shell::args::ranges)]
    pub(crate) slice: Option<Ranges>,
    /// Only these repetitions [default: all; of a picture up to 16]
    #[arg(long, value_name = "NUMBERS", value_parser = rayspin_shell::args::ranges)]
    pub(crate) repetition: Option<Ranges>,
    /// PNG: all slices side by side; a series has a row for each repetition
    #[arg(long)]
    pub(crate) montage: bool,
    /// PNG: grey values from LOW (black) to HIGH (white) [default: 0 to the 99.5th percentile]
    #[arg(long, value_name = "LOW,HIGH", allow_hyphen_values = true)]
    pub(crate) window: Option<String>,
    /// Raw scans: keep what the header says of the patient, the study, the place and the date, and strings of the user
    /// [default: left out]
    #[arg(long)]
    pub(crate) keep_identity: bool,
    #[command(flatten)]
    pub(crate) raw: raw::Raw,
}

/// `rayspin info`
#[derive(Debug, Args)]
#[command(after_help = "\
Files: images ({images read}), arrays ({arrays read}), raw scans ({scans read}).
JSON has a fixed set of typed fields, which docs/info.md explains; several files and folders make a list.
{names after a colon}

Examples:
  rayspin info                        this machine
  rayspin info scan.h5                what a file holds, how it was sampled
  rayspin info scan.h5 -o pattern.png
  rayspin info scans/ maps.cfl --json")]
pub(crate) struct Info {
    /// Files to describe, or folders of files; none: this machine
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) files: Vec<PathBuf>,
    /// Picture of the sampling pattern to write (.png): places of a grid, or readouts of a trajectory
    #[arg(long, short, value_name = "PICTURE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// `rayspin rerun`
#[derive(Debug, Args)]
#[command(after_help = "\
The run reads the files that the record names, from the folder in which this command is started,
and takes the recorded options. It writes to a folder of its own. Files whose hashes differ from
the record are refused. A table names every difference: version, processor, parameters, notes,
images. Exit code 1: an image of the same inputs differs by more than rounding (1e-5).

Examples:
  rayspin rerun image.json                       into the folder image-rerun
  rayspin rerun image.json --out again --device cpu")]
pub(crate) struct Rerun {
    /// Record of a run of recon or simulate
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) record: PathBuf,
    /// Folder for the outputs [default: the record's name with -rerun]
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub(crate) out: Option<PathBuf>,
    /// Run with input files that have changed since
    #[arg(long)]
    pub(crate) changed_inputs: bool,
}

/// Arguments of another program, which judges them.
#[derive(Debug, Args)]
pub(crate) struct Passed {
    /// Arguments of rayspin-ladder, unchanged: rayspin-ladder --help lists them
    #[arg(value_name = "ARGUMENT", trailing_var_arg = true, allow_hyphen_values = true)]
    _arguments: Vec<OsString>,
}

/// `rayspin completions`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  rayspin completions bash > ~/.local/share/bash-completion/completions/rayspin
  rayspin completions zsh > ~/.zfunc/_rayspin")]
pub(crate) struct Completions {
    /// The shell
    pub(crate) shell: clap_complete::Shell,
}

/// Parses `A,B` or `A,B,C` of positive numbers, naming the option in the error.
pub(crate) fn numbers<T: std::str::FromStr>(
    option: &str,
    text: &str,
    counts: &[usize],
) -> anyhow::Result<Vec<T>> {
    let parsed: Result<Vec<T>, _> = text.split([',', 'x']).map(|part| part.trim().parse()).collect();
    match parsed {
        Ok(values) if counts.contains(&values.len()) => Ok(values),
        _ => {
            let wanted: Vec<_> = counts.iter().map(ToString::to_string).collect();
            Err(rayspin_shell::BadInput::new(format!(
                "{option}: expected {} numbers separated by commas, found '{text}'",
                wanted.join(" or ")
            ))
            .hint(format!("{option} {}", vec!["96"; counts.first().copied().unwrap_or(2)].join(",")))
            .into())
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use rayspin_shell::effect::{Given, Row, rows_and_options};

    use super::command;

    /// Fails unless the table has each option of the command `path` once, and no other.
    pub(crate) fn expect_complete<N>(path: &[&str], table: &[Row<N>]) {
        let (rows, options) = rows_and_options(&command(), path, table);
        assert!(!options.is_empty(), "{path:?} is no command");
        assert_eq!(options, rows, "options and rows of {path:?}");
    }

    #[test]
    fn only_what_was_typed_is_given() {
        let command = command();
        let line = ["rayspin", "recon", "mri", "a.h5", "-o", "b.npy", "-W", "none", "-q"];
        let matches = command.clone().try_get_matches_from(line).unwrap();
        let given = Given::of(&command, &matches);
        assert_eq!(given.name("regulariser"), Some("--regulariser (-W)"));
        assert_eq!(given.name("outputs"), Some("--output (-o)"));
        // A default is not given.
        assert_eq!((given.name("epsilon"), given.name("density")), (None, None));
    }
}
