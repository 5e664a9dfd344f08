//! What every command gets.

use rayspin_core::Error;
use rayspin_device::{Backend, Cpu, Device, cpu, cuda};
use rayspin_run::{Gpus, Undecided};

use crate::args::{Common, DeviceArg};
use crate::effect::Given;
use crate::{BadInput, Console};

/// When a command takes the GPU that `--device` leaves to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gpu {
    /// It computes on the CPU.
    Never,
    /// Only one that the user names.
    Named,
    /// The command itself opens it, or several, once it knows how much there is to compute.
    Later,
    /// At once.
    Now,
    /// At once. Of several GPUs each does work of its own.
    Each,
    /// At once, and it takes `--device both`.
    Beside,
}

/// What every command gets: the processor, and where progress goes.
pub struct Context {
    /// The processor to compute on.
    pub device: Device,
    /// Whether the CPU may take over what a GPU fails at.
    pub finish_on_cpu: bool,
    /// Which GPU the command opens itself.
    pub undecided: Option<Undecided>,
    /// The GPUs of which the command opens all but the first.
    pub gpus: Option<Gpus>,
    /// The GPUs that are open beside the first, for a command that gives each its own work.
    pub beside: Vec<Device>,
    /// Whether what compares processors goes over the CPU beside a GPU.
    pub both: bool,
    /// `--gpu-memory`
    pub gpu_memory: Option<u64>,
    /// Progress on stderr.
    pub console: Console,
    /// `--quiet`
    pub quiet: bool,
    /// The options on the command line.
    pub given: Given,
}

impl Context {
    /// Opens the processor that the options name.
    ///
    /// Errors: no such GPU, `--device both` where `gpu` does not allow it, `--gpu-memory` without a GPU.
    pub fn new(common: &Common, gpu: Gpu, given: Given) -> anyhow::Result<Self> {
        let cores = cpu::available_threads();
        let threads = common.threads.map(|threads| threads.min(cpu::most_threads()));
        let host = match threads {
            Some(threads) => Device::cpu_with_threads(threads)?,
            None => Device::cpu()?,
        };
        // Files are read and written on these threads. A pool that exists already stays.
        let _ = rayon::ThreadPoolBuilder::new().num_threads(host.cpu_side().threads()).build_global();
        let auto = common.device.leaves_the_choice();
        let undecided = match common.device {
            // Who limits the memory of a GPU wants one.
            _ if gpu != Gpu::Later || common.gpu_memory.is_some() => None,
            DeviceArg::Auto => Some(Undecided::Auto),
            // Without a driver the error comes at once.
            DeviceArg::Cuda(ordinal) if cuda::driver_installed() => Some(Undecided::Gpu(ordinal)),
            DeviceArg::Several(gpus) if cuda::driver_installed() => Some(Undecided::Gpu(gpus.first())),
            _ => None,
        };
        let gpus = match common.device {
            DeviceArg::Several(gpus) => Some(gpus),
            _ => None,
        };
        if let Some(gpus) = gpus.filter(|_| !matches!(gpu, Gpu::Later | Gpu::Each)) {
            let message = format!("--device: expected one processor for this command, found {gpus}");
            let hint = "`rayspin recon` and `rayspin batch` take several";
            return Err(BadInput::new(message).hint(hint).into());
        }
        let started = gpus.filter(|_| gpu == Gpu::Each).map(Gpus::start);
        let device = match common.device {
            _ if undecided.is_some() => host,
            DeviceArg::Cpu => host,
            DeviceArg::Cuda(ordinal) => Device::cuda(ordinal, host)?,
            DeviceArg::Several(gpus) => Device::cuda(gpus.first(), host)?,
            DeviceArg::Both if gpu != Gpu::Beside => {
                let message =
                    "--device: expected auto, cpu, cuda or cuda:N, found both, which is for ladders";
                return Err(BadInput::new(message).into());
            }
            DeviceArg::Both => Device::cuda(0, host)?,
            DeviceArg::Auto if matches!(gpu, Gpu::Never | Gpu::Named) => host,
            DeviceArg::Auto => first_gpu(host, common.quiet),
        };
        drop(started);
        let (beside, notes) = match gpus.filter(|_| gpu == Gpu::Each) {
            Some(gpus) => gpus.open_others(&device.host())?,
            None => (Vec::new(), Vec::new()),
        };
        if !common.quiet {
            notes.iter().for_each(|note| say!("note: {note}"));
        }
        for device in &beside {
            if let Backend::Cuda(cuda) = device.backend() {
                cuda.limit_memory(common.gpu_memory);
            }
        }
        match (device.backend(), common.gpu_memory) {
            (Backend::Cuda(cuda), limit) => cuda.limit_memory(limit),
            (_, Some(_)) => {
                let what = "an array on a GPU";
                Err(Error::value("--gpu-memory", what, "the CPU as the device"))?;
            }
            _ => {}
        }
        if let Some((threads, asked)) = threads.zip(common.threads).filter(|(threads, _)| *threads > cores)
            && !common.quiet
        {
            let limit =
                if threads < asked { format!(" (of {asked}, at most 4 a core)") } else { String::new() };
            say!(
                "note: {threads} threads{limit} share {cores} cores, which is slower than --threads {cores}"
            );
        }
        Ok(Self {
            device,
            finish_on_cpu: auto,
            undecided,
            gpus: gpus.filter(|_| gpu == Gpu::Later),
            beside,
            both: matches!(common.device, DeviceArg::Auto | DeviceArg::Both),
            gpu_memory: common.gpu_memory,
            console: Console::new(common.quiet),
            quiet: common.quiet,
            given,
        })
    }

    /// The CPU, or the one beside the GPU.
    pub fn cpu(&self) -> &Cpu {
        self.device.cpu_side()
    }

    /// Threads to compute with.
    pub fn threads(&self) -> usize {
        self.cpu().threads()
    }

    /// The instruction set that the CPU computes with.
    pub fn simd_name(&self) -> &'static str {
        self.cpu().simd_name()
    }

    /// Runs `work` on this device's threads.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        self.cpu().run(work)
    }
}

/// The first GPU that works, else the host.
fn first_gpu(host: Device, quiet: bool) -> Device {
    match Device::auto(host) {
        (device, Some(reason)) if cuda::NoGpu::NoDriver.to_string() != reason => {
            // Without a driver nobody expects a GPU; one that does not work is worth a word.
            if !quiet {
                say!("note: computing on the CPU: {reason}");
            }
            device
        }
        (device, _) => device,
    }
}
