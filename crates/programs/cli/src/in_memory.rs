//! Commands whose results stay in memory, with the options of the command line. Packages for other languages
//! make keywords of these.

use std::ffi::OsString;

use anyhow::Result;
use rayspin::core::{Image, Monitor, VolumeGrid};
use rayspin::device::Cpu;
use rayspin::job::ComputeTarget;
use rayspin::kernels::render::{Knot, Transfer};
use rayspin::mri::methods::Methods;
use rayspin::mri::simulate::{Simulation, simulate};
use rayspin::run::Remedy;
use rayspin_shell::BadInput;
use rayspin_shell::effect::Given;

use crate::args::{self, Cli, Command, Simulate};
pub use crate::commands::render::Picture;
use crate::{PROGRAM, commands, methods};

/// A command that runs in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Task {
    /// `rayspin simulate mri`
    SimulateMri,
    /// `rayspin simulate ct`
    SimulateCt,
    /// `rayspin render`
    Render,
}

/// An option of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandOption {
    /// Its name, as in `field_map_hz`.
    pub name: String,
    /// What the command line calls it, as in `--field-map-hz`.
    pub long: String,
    /// Whether it takes a value; else it is there or not.
    pub takes_value: bool,
    /// The value that it has unless it is given, as text.
    pub default: Option<String>,
    /// Whether its value is an angle in degrees. Texts then mark each angle in them with °.
    pub degrees: bool,
    /// The names that it takes; empty where it takes other values.
    pub names: Vec<String>,
    /// What it is.
    pub help: String,
}

impl Task {
    fn words(self) -> &'static [&'static str] {
        match self {
            Self::SimulateMri => &["simulate", "mri"],
            Self::SimulateCt => &["simulate", "ct"],
            Self::Render => &["render"],
        }
    }

    /// Options that name files, which a run in memory has not.
    fn files(self) -> &'static [&'static str] {
        match self {
            Self::SimulateMri | Self::SimulateCt => {
                &["output", "truth", "maps", "save_field_map", "record", "no_record"]
            }
            Self::Render => &["image", "outputs", "transfer", "grey", "invert", "frame_time"],
        }
    }

    /// Files that the parser wants to be named. Nothing is written to them.
    fn placeholders(self) -> &'static [&'static str] {
        match self {
            Self::SimulateMri | Self::SimulateCt => &["--output", "scan.h5", "--truth", "truth.npy"],
            Self::Render => &["volume", "--output", "picture.png"],
        }
    }

    /// The options that are no files.
    pub fn options(self) -> Vec<CommandOption> {
        methods::take(Methods::default());
        let mut program = args::marked();
        program.build();
        let command = self.words().iter().try_fold(&program, |command, name| command.find_subcommand(name));
        let own = |option: &&clap::Arg| {
            let id = option.get_id().as_str();
            !option.is_global_set() && !["help", "version"].contains(&id) && !self.files().contains(&id)
        };
        command.into_iter().flat_map(clap::Command::get_arguments).filter(own).filter_map(described).collect()
    }

    fn parse(self, options: Vec<OsString>) -> Result<(Command, Given)> {
        methods::take(Methods::default());
        let line = std::iter::once(PROGRAM.name).chain(self.words().iter().copied());
        let line = line.chain(self.placeholders().iter().copied()).map(OsString::from);
        let (cli, given) = PROGRAM.parse::<Cli>(args::command(), line.chain(options))?;
        Ok((cli.command, given))
    }
}

fn described(option: &clap::Arg) -> Option<CommandOption> {
    let names = option.get_possible_values().iter().map(|name| name.get_name().to_owned()).collect();
    let takes_value = option.get_action().takes_values();
    let degrees = option.get_value_names().is_some_and(|names| names.iter().any(|name| name == "DEGREES"));
    let default = option.get_default_values().first().map(|value| value.to_string_lossy().into_owned());
    Some(CommandOption {
        name: option.get_id().to_string(),
        long: format!("--{}", option.get_long()?),
        takes_value,
        degrees,
        default: default.filter(|_| takes_value),
        names: if takes_value { names } else { Vec::new() },
        help: option.get_help().map(ToString::to_string).unwrap_or_default(),
    })
}

/// A help text with the lists of formats and of methods that stand in it as `{images read}` and the like.
///
/// ```
/// assert!(rayspin_cli::in_memory::filled("images: {images read}").contains(".nii.gz"));
/// ```
pub fn filled(text: &str) -> String {
    args::formats::filled(text).into_owned()
}

/// What to do about an error of a task or a run, where that is known, with parameters marked as
/// [`rayspin::core::Mention`] has them.
///
/// ```
/// use rayspin::core::Error;
///
/// let hint = rayspin_cli::in_memory::hint(&Error::value("photons", "a positive number", -5));
/// assert_eq!(hint.as_deref(), Some("`--photons` sets them; `--lines` leaves the detector's noise out"));
/// ```
pub fn hint(error: &rayspin::core::Error) -> Option<String> {
    rayspin::job::remedy(error, &remedies()).map(String::from)
}

/// The remedies of commands besides reconstruction.
pub(crate) fn remedies() -> Vec<Remedy> {
    [args::simulate::REMEDIES, args::ct::REMEDIES, args::render::REMEDIES, args::filter::REMEDIES].concat()
}

fn other_command() -> anyhow::Error {
    BadInput::new("options: expected those of one command, found another command").into()
}

/// Simulates an MRI scan. `options` are words of the command line, such as `["--coils", "4"]`.
///
/// Errors: options that there are not, that make no sense or do nothing; interruption.
///
/// ```
/// use rayspin::core::Monitor;
/// use rayspin::device::Device;
///
/// let options = ["--matrix", "16,16", "--coils", "2"].map(Into::into).to_vec();
/// let device = Device::cpu()?;
/// let made = rayspin_cli::in_memory::simulate_mri(device.cpu_side(), options, &Monitor::silent())?;
/// assert_eq!(made.maps.dim(), (2, 1, 16, 16));
/// # Ok::<(), anyhow::Error>(())
/// ```
pub fn simulate_mri(cpu: &Cpu, options: Vec<OsString>, monitor: &Monitor<'_>) -> Result<Simulation> {
    let (command, given) = Task::SimulateMri.parse(options)?;
    let Command::Simulate(Simulate::Mri(args)) = command else { return Err(other_command()) };
    let options = commands::simulate::options(&args, &given)?;
    Ok(cpu.run(|| simulate(&options, monitor))?)
}

/// A simulated CT scan and the object in it.
#[derive(Debug, Clone)]
pub struct CtSimulation {
    /// The scan.
    pub scan: rayspin::ct::scan::Scan,
    /// The attenuation at 60 keV, voxel means in 1/mm.
    pub truth: Image<f32>,
    /// The voxels of the truth.
    pub grid: VolumeGrid,
}

/// Simulates a CT scan, as [`simulate_mri`].
///
/// Errors: as [`simulate_mri`].
pub fn simulate_ct(cpu: &Cpu, options: Vec<OsString>, monitor: &Monitor<'_>) -> Result<CtSimulation> {
    let (command, given) = Task::SimulateCt.parse(options)?;
    let Command::Simulate(Simulate::Ct(args)) = command else { return Err(other_command()) };
    let setup = commands::ct::simulate::setup(&args, &given)?;
    let (scan, truth) = (setup.scan(cpu, monitor)?, setup.truth(cpu, monitor)?);
    Ok(CtSimulation { scan, truth, grid: setup.grid })
}

/// Draws a volume, as [`simulate_mri`] takes options; the CPU may take over where the device fails.
/// `transfer` are the points of a transfer function. Returns the picture and the size of a pixel at the
/// middle of the volume in mm.
///
/// Errors: as [`simulate_mri`]; a volume that is a series or holds numbers that are not finite; points that
/// are no transfer function.
pub fn render(
    target: &ComputeTarget,
    mut options: Vec<OsString>,
    volume: Image<f32>,
    transfer: Option<Vec<Knot>>,
    monitor: &Monitor<'_>,
) -> Result<(Picture, f64)> {
    if transfer.is_some() {
        options.push("--transfer=points".into());
    }
    let (command, given) = Task::Render.parse(options)?;
    let Command::Render(args) = command else { return Err(other_command()) };
    let transfer = transfer.map(Transfer::new).transpose()?;
    commands::render::in_memory(&args, &given, volume, transfer, target, monitor)
}
