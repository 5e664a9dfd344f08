//! The `rayspin` command: a thin layer over the library crates. It parses, reports progress, and turns errors into one
//! line, a hint and an exit code.

/// A line on stderr. Unlike `eprintln!` it does not end the process when nobody reads it (`rayspin … 2>&1 | head`).
macro_rules! say {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), $($text)*);
    }};
}

mod args;
mod commands;
mod effect;
mod failure;
mod interrupt;
mod progress;

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches};
use rayspin::device::Device;

use args::{Cli, Command, DeviceArg, Recon, Simulate};

#[global_allocator]
static ALLOCATOR: rayspin::device::cpu::Allocator = rayspin::device::cpu::Allocator;

fn main() -> ExitCode {
    rayspin::device::cpu::return_freed_memory();
    let mut command = Cli::command();
    let matches = command.get_matches_mut();
    let given = effect::Given::of(&command, &matches);
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.format(&mut command).exit());
    match run(cli, given) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failure::report(&error),
    }
}

/// What every command gets: the processor, and where progress goes.
struct Context {
    device: Device,
    /// Whether the CPU may take over what a GPU fails at.
    finish_on_cpu: bool,
    /// Whether a GPU is yet to be looked for: by commands that know first how much there is to compute.
    undecided: bool,
    /// Whether what compares processors goes over the CPU beside a GPU.
    both: bool,
    /// `--gpu-memory`
    gpu_memory: Option<u64>,
    console: progress::Console,
    quiet: bool,
    /// The options on the command line.
    given: effect::Given,
}

impl Context {
    fn cpu(&self) -> &rayspin::device::Cpu {
        self.device.cpu_side()
    }

    fn threads(&self) -> usize {
        self.cpu().threads()
    }

    fn simd_name(&self) -> &'static str {
        self.cpu().simd_name()
    }

    /// Runs `work` on this device's threads.
    fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        self.cpu().run(work)
    }
}

/// The first GPU that works, else the host.
fn first_gpu(host: Device, quiet: bool) -> Device {
    match Device::auto(host) {
        (device, Some(reason)) if rayspin::device::cuda::Absent::NoDriver.to_string() != reason => {
            // Without a driver nobody expects a GPU; one that does not work is worth a word.
            if !quiet {
                say!("note: computing on the CPU: {reason}");
            }
            device
        }
        (device, _) => device,
    }
}

fn run(cli: Cli, given: effect::Given) -> anyhow::Result<()> {
    if let Command::Completions(args) = &cli.command {
        let mut command = Cli::command();
        let mut script = Vec::new();
        clap_complete::generate(args.shell, &mut command, "rayspin", &mut script);
        if args.shell == clap_complete::Shell::Fish {
            // The generator leaves out what arguments without a name may be.
            for ladder in rayspin::ladders() {
                let (name, title) = (ladder.about().name, ladder.about().title);
                let line = format!(
                    "complete -c rayspin -n \"__fish_rayspin_using_subcommand ladder\" -f -a {name} -d '{title}'\n"
                );
                script.extend(line.into_bytes());
            }
        }
        return Ok(std::io::Write::write_all(&mut std::io::stdout(), &script)?);
    }
    interrupt::install()?;
    let computes = cli.command.takes_a_device();
    for field in ["device", "gpu_memory"] {
        let harmless = field == "device" && matches!(cli.common.device, DeviceArg::Auto | DeviceArg::Cpu);
        if let Some(option) = given.name(field).filter(|_| !computes && !harmless) {
            let expected = "a command that takes a GPU (recon, demo, ladder, tune, info)";
            return effect::refuse(option, expected, "another, which computes on the CPU");
        }
    }
    let host = match cli.common.threads {
        Some(threads) => Device::cpu_with_threads(threads)?,
        None => Device::cpu()?,
    };
    // Who limits the memory of a GPU wants one.
    let undecided = cli.common.device.leaves_the_choice()
        && cli.common.gpu_memory.is_none()
        && matches!(cli.command, Command::Recon(_));
    let device = match cli.common.device {
        DeviceArg::Cpu => host,
        DeviceArg::Cuda(ordinal) => Device::cuda(ordinal, host)?,
        DeviceArg::Both if !matches!(cli.command, Command::Ladder(_)) => {
            let message = "--device: expected auto, cpu, cuda or cuda:N, found both, which is for ladders";
            return Err(failure::BadInput::new(message).into());
        }
        DeviceArg::Both => Device::cuda(0, host)?,
        DeviceArg::Auto if undecided || !computes => host,
        DeviceArg::Auto => first_gpu(host, cli.common.quiet),
    };
    match (device.backend(), cli.common.gpu_memory) {
        (rayspin::device::Backend::Cuda(cuda), limit) => cuda.limit_memory(limit),
        (_, Some(_)) => {
            let what = "an array on a GPU";
            Err(rayspin::core::Error::value("--gpu-memory", what, "the CPU as the device"))?;
        }
        _ => {}
    }
    let cores = rayspin::device::cpu::available_threads();
    if let Some(threads) = cli.common.threads.filter(|&threads| threads > cores)
        && !cli.common.quiet
    {
        say!("note: {threads} threads share {cores} cores, which is slower than --threads {cores}");
    }
    let context = Context {
        device,
        finish_on_cpu: cli.common.device.leaves_the_choice(),
        undecided,
        both: matches!(cli.common.device, DeviceArg::Auto | DeviceArg::Both),
        gpu_memory: cli.common.gpu_memory,
        console: progress::Console::new(cli.common.quiet),
        quiet: cli.common.quiet,
        given,
    };
    match cli.command {
        Command::Demo(args) => commands::demo::run(&context, &args),
        Command::Simulate(Simulate::Mri(args)) => commands::simulate::run(&context, &args),
        Command::Recon(Recon::Mri(args)) => commands::recon::run(&context, &args),
        // Its sums run on the threads that they find themselves in.
        Command::Metrics(args) => context.run(|| commands::metrics::run(&context, &args)),
        Command::Convert(args) => commands::convert::run(&context, &args),
        Command::Info(args) => commands::info::run(&context, &args),
        Command::Ladder(args) => commands::ladder::run(&context, &args),
        Command::Tune(args) => commands::tune::run(&context, &args),
        Command::Completions(_) => Ok(()),
    }
}
