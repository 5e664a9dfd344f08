//! The command line: one definition gives the parser, the help texts and the shell completions.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, CommandFactory, Parser, Subcommand, ValueHint};
use rayspin::core::Ranges;
use rayspin::imaging::display::Window;
use rayspin::io::Values;
use rayspin_shell::Gpu;
use rayspin_shell::args::{Common, numbers};

pub(crate) mod arrays;
pub(crate) mod batch;
pub(crate) mod ct;
pub(crate) mod files;
pub(crate) mod filter;
pub(crate) mod formats;
mod help;
pub(crate) mod mri;
mod raw;
pub(crate) mod render;
pub(crate) mod simulate;

/// Raw MRI and CT scans into images, on every core of this machine.
#[derive(Debug, Parser)]
#[command(name = "rayspin", version, max_term_width = 100)]
#[command(after_help = "\
Examples:
  rayspin demo                                              a tour in under a minute
  rayspin simulate mri --trajectory spiral --coils 8 -o scan.h5 --truth truth.nii.gz
  rayspin recon mri scan.h5 -o image.nii.gz -o image.png --method cg-sense
  rayspin batch 'scans/*.h5' -o 'out/{stem}.nii.gz'
  rayspin simulate ct -o ct.h5 && rayspin recon ct ct.h5 -o volume.nii.gz
  rayspin render volume.nii.gz -o picture.png --view left
  rayspin filter volume.nii.gz -o smooth.nii.gz --step gaussian:1.5
  rayspin metrics image.nii.gz truth.nii.gz --fit
  rayspin info scan.h5

The commands ladder and tune need the program rayspin-ladder, which is built apart.
An option that would do nothing is refused.
- stands for standard input where a command reads a file, and for standard output where it writes one.
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
    /// Simulate scans of MRI and CT, reconstruct them, and show the images on a page
    Demo(Demo),
    /// Make scans whose truth is known
    #[command(subcommand)]
    Simulate(Simulate),
    /// Reconstruct images from raw scans
    #[command(subcommand)]
    Recon(Recon),
    /// Reconstruct many scans with one start of the GPU
    Batch(batch::Batch),
    /// Draw a volume: radiograph, surface, turntable, or a page to turn it in
    Render(Box<render::Render>),
    /// Smooth images, find edges, resize, equalise, count grey values
    Filter(Box<filter::Filter>),
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
    /// When it takes a GPU to compute on, or to describe.
    pub(crate) fn gpu(&self) -> Gpu {
        match self {
            Self::Batch(args) if !args.merge.is_empty() => Gpu::Never,
            Self::Batch(_) => Gpu::Each,
            Self::Demo(_) | Self::Info(_) | Self::Render(_) => Gpu::Now,
            Self::Recon(_) | Self::Rerun(_) => Gpu::Later,
            Self::Filter(_) => Gpu::Named,
            Self::Simulate(_) | Self::Metrics(_) | Self::Convert(_) => Gpu::Never,
            Self::Ladder(_) | Self::Tune(_) | Self::Completions(_) => Gpu::Never,
        }
    }
}

/// The definition of the command line.
pub(crate) fn command() -> clap::Command {
    help::arrange(formats::as_options(definition()))
}

/// [`command`], with parameters in help texts marked as [`rayspin::core::Mention`] has them.
pub(crate) fn marked() -> clap::Command {
    help::arrange(definition())
}

fn definition() -> clap::Command {
    formats::fill(Cli::command())
        .mut_arg("device", |option| {
            option.help("Processor to compute on: auto, cpu, cuda, cuda:N, cuda:all").long_help(
                "Processor to compute on: auto, cpu, cuda, cuda:N. auto takes the first GPU that works. It takes the CPU if the \
                 CPU is done before a GPU has started, or if the work does not fit the GPU or fails there. cuda:0,2 and cuda:all \
                 are several GPUs, for the images of an MRI scan that holds several, the coils of one image, the slices or views of a \
                 CT scan, or the scans of a batch",
            )
        })
        .mut_arg("gpu_memory", |option| {
            option.help(
                "GPU memory that arrays may take; a reconstruction is cut to fit [default: all that is free]",
            )
        })
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
    Mri(Box<mri::ReconMri>),
    /// A CT scan
    Ct(Box<ct::ReconCt>),
}

/// The numbers of a complex image that files hold.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Numbers {
    /// Keep complex numbers complex [default: in {complex written by default}; magnitudes in the others];
    /// real images stay real
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

/// What every reconstruction takes: limits, checks and the record.
#[derive(Debug, Clone, Args)]
pub(crate) struct RunOptions {
    /// State the memory and work of each stage; compute nothing
    #[arg(long, conflicts_with_all = ["record", "no_record"])]
    pub(crate) dry_run: bool,
    /// Image to compare with, as rayspin metrics does
    ///
    /// Quality goes to the run record and the screen. If the reference shows a whole MRI scan, chosen slices
    /// and repetitions are compared with the same ones of the reference.
    #[arg(long, value_name = "IMAGE", value_hint = ValueHint::FilePath)]
    pub(crate) reference: Option<PathBuf>,
    /// Fit a scale factor to the image before it is compared
    #[arg(long, requires = "reference")]
    pub(crate) fit: bool,
    /// Run record [default: the first image's name with .json]
    ///
    /// A JSON file of this name that is something else, such as the record of a scan, stays. The record of
    /// image.nii.gz is then image.nii.gz.json.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    record: Option<PathBuf>,
    /// Write no run record
    #[arg(long, conflicts_with = "record")]
    no_record: bool,
}

impl RunOptions {
    /// Whether there is a record beside the first image.
    pub(crate) fn has_default_record(&self) -> bool {
        !self.no_record && !self.dry_run && self.record.is_none()
    }
}

/// The record of a simulated scan.
#[derive(Debug, Args)]
pub(crate) struct ScanRecord {
    /// Run record [default: the scan's name with .json]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) record: Option<PathBuf>,
    /// Write no run record
    #[arg(long, conflicts_with = "record")]
    no_record: bool,
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
    /// File to write; - is standard output, which gets .npy, or .h5 for a raw scan
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) to: PathBuf,
    #[command(flatten)]
    pub(crate) numbers: Numbers,
    /// Only these slices, counted from 0: 3, 1-2 or 0,3 [default: all; in a picture the middle one]
    #[arg(long, value_name = "NUMBERS", value_parser = rayspin_shell::args::ranges)]
    pub(crate) slice: Option<Ranges>,
    /// Only these repetitions, from 0 [default: all; in a picture up to 16]
    #[arg(long, value_name = "NUMBERS", value_parser = rayspin_shell::args::ranges)]
    pub(crate) repetition: Option<Ranges>,
    /// PNG: all slices side by side; a series has a row for each repetition
    #[arg(long)]
    pub(crate) montage: bool,
    /// PNG: grey values from LOW (black) to HIGH (white) [default: 0 to the 99.5th percentile]
    #[arg(long, alias = "window", value_name = "LOW,HIGH", allow_hyphen_values = true)]
    pub(crate) grey: Option<String>,
    /// DICOM: take patient and study from this DICOM file
    ///
    /// By default no output names a patient. Taken are name, ID, birth date and sex, UID, date, time and ID
    /// of the study, accession number, referring physician and frame of reference, and the modality of an
    /// image that states none.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) dicom_template: Option<PathBuf>,
    /// Raw scans: keep the header's patient, study, place, date and time of day, and all user parameters
    /// [default: left out]
    #[arg(long)]
    pub(crate) keep_identity: bool,
    #[command(flatten)]
    pub(crate) raw: raw::Raw,
}

/// `rayspin info`
#[derive(Debug, Args)]
#[command(after_help = "\
Files: images ({images read}), arrays ({arrays read}), MRI scans ({scans read}), CT scans ({ct scans read}).
JSON has a fixed set of typed fields, which docs/info.md explains; several files and folders make a list.
{names after a colon}

Examples:
  rayspin info                        this machine
  rayspin info scan.h5                what a file holds, how it was sampled
  rayspin info scan.h5 -o pattern.png
  rayspin info samples.npy --traj spokes.npy --matrix 128,128
  rayspin info scans/ maps.cfl --json")]
pub(crate) struct Info {
    /// Files to describe, or folders of files; none: this machine
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) files: Vec<PathBuf>,
    /// Trajectory of samples without a header ({arrays read}), as recon mri takes it
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) traj: Option<PathBuf>,
    /// What each axis of an array counts, as recon mri takes it [default: the format's own]
    #[arg(long, value_name = "AXIS,AXIS,...", hide_short_help = true)]
    pub(crate) order: Option<String>,
    /// Units of the trajectory, such as cycles/fov [default: by range]
    #[arg(long, value_name = "UNITS", requires = "traj")]
    pub(crate) traj_units: Option<String>,
    /// Matrix of the image [default: by the trajectory's extent]
    #[arg(long, value_name = "X,Y[,Z]", requires = "traj")]
    pub(crate) matrix: Option<String>,
    /// Field of view in mm [default: voxels of 1 mm]
    #[arg(long, value_name = "X,Y[,Z]", requires = "traj")]
    pub(crate) fov: Option<String>,
    /// Picture of the sampling pattern (.png): places of a grid, or readouts of a trajectory
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
    /// Run even if input files have changed since the recorded run
    #[arg(long)]
    pub(crate) changed_inputs: bool,
}

/// Arguments of another program, which judges them.
#[derive(Debug, Args)]
pub(crate) struct Passed {
    /// Arguments of rayspin-ladder, unchanged: `rayspin-ladder --help` lists them
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

/// The grey values of `--grey LOW,HIGH`.
pub(crate) fn grey(text: &str) -> anyhow::Result<Window> {
    let range = numbers::<f32>("--grey", text, &[2])?;
    Ok(Window::Range { low: range[0], high: range[1] })
}

#[cfg(test)]
pub(crate) mod tests {
    use rayspin::job::rows::Table;
    use rayspin_shell::effect::{Given, Row, rows_and_options};

    use super::command;

    /// Fails unless the table has each option of the command `path` once, and no other.
    pub(crate) fn expect_complete<N>(path: &[&str], table: &[Row<N>]) {
        let (rows, options) = rows_and_options(&command(), path, table);
        assert!(!options.is_empty(), "{path:?} is no command");
        assert_eq!(options, rows, "options and rows of {path:?}");
    }

    /// Fails unless the options of `recon` of this kind are the rows of its table and these parameters.
    fn expect_rows<T: Table>(kind: &str, params: impl Iterator<Item = &'static str>) {
        let rows = T::rows().iter().map(|row| row.name).chain(params);
        let rows: Vec<Row<()>> = rows.map(|name| (name, &[][..])).collect();
        expect_complete(&["recon", kind], &rows);
    }

    #[test]
    fn every_option_of_recon_mri_has_a_row() {
        let params = crate::methods::methods().params();
        expect_rows::<crate::methods::Mri>(
            "mri",
            params.iter().map(|(param, _)| param.name).chain(["method"]),
        );
    }

    #[test]
    fn every_option_of_recon_ct_has_a_row() {
        let params =
            [rayspin::job::ct::methods().params(), rayspin::job::ct::corrections().params()].concat();
        let params = params.iter().map(|(param, _)| param.name);
        expect_rows::<crate::methods::Ct>("ct", params.chain(["method", "correct"]));
    }

    #[test]
    fn only_what_was_typed_is_given() {
        let command = command();
        let line = ["rayspin", "recon", "mri", "a.h5", "-o", "b.npy", "-W", "none", "-q"];
        let matches = command.clone().try_get_matches_from(line).unwrap();
        let given = Given::of(&command, &matches);
        assert_eq!(given.name("regulariser"), Some("`--regulariser (-W)`"));
        assert_eq!(given.name("outputs"), Some("`--output (-o)`"));
        // A default is not given.
        assert_eq!((given.name("epsilon"), given.name("density")), (None, None));
    }
}
