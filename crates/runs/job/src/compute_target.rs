//! Where a run computes, and the memory that it may take there.

use std::path::{Path, PathBuf};

use rayspin_device::cuda::Starting;
use rayspin_device::{Backend, Device, cpu, cuda};
use rayspin_report::{RunRecorder, number};
use rayspin_run::{BadInput, Budget, Gpus, Limits, OverBudget, Plan, Stage, Undecided};

use crate::Result;

/// Where a run computes, and how much memory it may take there.
#[derive(Debug, Clone)]
pub struct ComputeTarget {
    /// The processor to compute on; the CPU until the GPU that is [`Self::undecided`] is open.
    pub device: Device,
    /// Which GPU the run opens itself, once it knows how much there is to compute.
    pub undecided: Option<Undecided>,
    /// The GPUs that were asked for, of which those behind the first are still to be opened.
    pub gpus: Option<Gpus>,
    /// The GPUs beside [`Self::device`], which share its work.
    pub beside: Vec<Device>,
    /// Whether the CPU may take over what a GPU fails at, or what does not fit it.
    pub finish_on_cpu: bool,
    /// Bytes of a GPU's memory that arrays may take.
    pub gpu_memory: Option<u64>,
    /// Bytes of memory that the process may take: the request's.
    pub(crate) memory: Option<u64>,
}

impl ComputeTarget {
    /// A device that is open, without limits.
    pub fn of(device: Device) -> Self {
        Self {
            device,
            undecided: None,
            gpus: None,
            beside: Vec::new(),
            finish_on_cpu: false,
            gpu_memory: None,
            memory: None,
        }
    }

    /// The memory that a run on this device may take: the limit of the process, and on a GPU its own limit,
    /// but no more than is free beside [`GPU_RESERVE`]; on several GPUs what each of them has.
    ///
    /// Errors: the driver does not tell the GPU's memory.
    pub(crate) fn limits(&self) -> Result<Limits> {
        let mut least: Option<u64> = None;
        for device in std::iter::once(&self.device).chain(&self.beside) {
            let Backend::Cuda(cuda) = device.backend() else { continue };
            cuda.limit_memory(None);
            let free = cuda.memory_left()?.saturating_sub(GPU_RESERVE);
            cuda.limit_memory(self.gpu_memory);
            let own = self.gpu_memory.map_or(free, |limit| limit.min(free));
            least = Some(least.map_or(own, |least| least.min(own)));
        }
        Ok(Limits { memory: self.memory, gpu: least })
    }

    /// Opens the GPUs behind the first. Returns the bytes that starting them took; `early` says whether they
    /// had started beside something else. `notes` name those of [`Gpus::ALL`] that do not work.
    ///
    /// Errors: a GPU that is named does not work.
    pub(crate) fn open_beside(
        &mut self,
        early: bool,
        recorder: &mut RunRecorder,
        notes: &mut Vec<String>,
    ) -> Result<u64> {
        let Some(gpus) = self.gpus.take() else { return Ok(0) };
        let (host, before) = (self.device.host(), process_bytes());
        let (opened, said) = gpus.open_others(&host)?;
        self.beside.extend(opened);
        notes.extend(said);
        recorder.parameter("devices beside", self.beside.iter().map(Device::describe).collect::<Vec<_>>());
        Ok(match early {
            true => STARTED_BYTES * self.beside.len() as u64,
            false => process_bytes().saturating_sub(before),
        })
    }

    /// Begins to start the GPUs that the run will take, beside whatever comes next. It does not where the
    /// memory of the process has a limit or the run only tells its plan: the host memory that a GPU takes is
    /// then measured alone.
    pub(crate) fn starting(&self, scan: &Path, dry_run: bool) -> Option<Starting> {
        if self.memory.is_some() || dry_run {
            return None;
        }
        let large = || std::fs::metadata(scan).is_ok_and(|metadata| metadata.len() >= EARLY_BYTES);
        let first = match self.undecided? {
            Undecided::Auto if !large() => return None,
            Undecided::Auto => 0,
            Undecided::Gpu(ordinal) => ordinal,
        };
        Some(self.gpus.map_or_else(|| cuda::start(move |_| vec![first]), Gpus::start))
    }

    /// Whether the run computes on the CPU where that is done before a GPU has started.
    pub(crate) fn may_stay(&self) -> bool {
        self.undecided == Some(Undecided::Auto)
    }

    /// Takes the GPU that is named, or one where the CPU is not done with its `plan` before the GPU has
    /// started. Returns the bytes that starting it took. `notes` say why a GPU was not taken.
    ///
    /// Errors: the GPU that is named does not work.
    pub(crate) fn decide(
        &mut self,
        plan: Option<&Plan>,
        starting: Option<Starting>,
        recorder: &mut RunRecorder,
        notes: &mut Vec<String>,
    ) -> Result<u64> {
        let Some(undecided) = self.undecided else { return Ok(0) };
        let seconds = plan.map(|plan| cpu_seconds(&plan.budget, self.device.cpu_side().threads()));
        if seconds.is_some_and(|seconds| seconds < GPU_START) {
            if cuda::driver_installed() {
                notes.push(format!(
                    "computing on the CPU: done in less than {GPU_START} s, which a GPU takes to start (`--device cuda` takes it \
                     anyway)"
                ));
            }
            return Ok(0);
        }
        recorder.stage("start GPU");
        let (before, host) = (process_bytes(), self.device.host());
        let (device, failed) = match undecided {
            Undecided::Auto => Device::auto(host),
            Undecided::Gpu(ordinal) => (Device::cuda(ordinal, host)?, None),
        };
        let took = starting.map_or_else(|| process_bytes().saturating_sub(before), |_| STARTED_BYTES);
        // Without a driver nobody expects a GPU; one that does not work is worth a word.
        let failed = failed.filter(|reason| cuda::NoGpu::NoDriver.to_string() != *reason);
        notes.extend(failed.map(|reason| format!("computing on the CPU: {reason}")));
        self.move_to(device, recorder);
        recorder.stage("plan");
        Ok(took)
    }

    /// Goes to the CPU where the GPU has too little memory and the CPU may take over. Returns why.
    pub(crate) fn leave_gpu(
        &mut self,
        short: &OverBudget,
        limits: &Limits,
        recorder: &mut RunRecorder,
    ) -> Option<String> {
        let limit = limits.gpu.filter(|&limit| self.finish_on_cpu && short.gpu > limit)?;
        let (needed, limit) = (number::bytes(short.gpu), number::bytes(limit));
        self.move_to(self.device.host(), recorder);
        self.beside.clear();
        Some(format!(
            "computing on the CPU: the run needs at least {needed} of GPU memory, and its arrays may take {limit}"
        ))
    }

    fn move_to(&mut self, device: Device, recorder: &mut RunRecorder) {
        recorder.device(device.describe());
        self.device = device;
    }
}

/// Bytes of a GPU's memory that are left to kernels, the driver, and gaps between arrays.
const GPU_RESERVE: u64 = 256 << 20;

/// Small arrays and tables of a run that no stage counts.
const RUNNING_BYTES: u64 = 1 << 18;
/// Those of each thread: its stack, and what transforms work in.
const THREAD_BYTES: u64 = 1 << 19;

/// Seconds until a GPU has started, its kernels being compiled already: the wall time less the work of
/// benches/results/2026-11-21-h100/recon.txt.
const GPU_START: f64 = 0.3;
/// Operations and bytes of a thread in a second, and threads that help a small scan: every scan that is
/// counted as done before a GPU has started was, on two threads beside other work
/// (benches/results/2026-11-21-cpu/estimate.txt).
const THREAD_RATE: f64 = 4e9;
const HELPING_THREADS: usize = 16;

/// Bytes of a scan from which on a GPU starts while it is read: smaller ones are often done on the CPU
/// meanwhile.
const EARLY_BYTES: u64 = 64 << 20;
/// Host memory that a started GPU takes: 107 MiB measured (benches/results/2026-11-24-h100/file_to_file.txt).
const STARTED_BYTES: u64 = 128 << 20;

/// The most seconds that the CPU takes for a planned run.
fn cpu_seconds(budget: &Budget, threads: usize) -> f64 {
    let sum = |quantity: fn(&Stage) -> f64| budget.stages.iter().map(quantity).sum::<f64>();
    (sum(|s| s.effort.flops) + sum(|s| s.effort.traffic))
        / (THREAD_RATE * threads.min(HELPING_THREADS) as f64)
}

/// Bytes of this process.
pub(crate) fn process_bytes() -> u64 {
    cpu::process_memory().unwrap_or(0)
}

impl ComputeTarget {
    /// Bytes of the process before a run. With a limit, what earlier runs have left to the allocator is given
    /// back first.
    pub(crate) fn bytes_before(&self) -> u64 {
        if self.memory.is_some() {
            cpu::trim_memory();
        }
        process_bytes()
    }
}

/// The most bytes that each of these GPUs held.
pub(crate) fn peaks(devices: &[Device]) -> Vec<u64> {
    let peak = |device: &Device| match device.backend() {
        Backend::Cuda(cuda) => cuda.memory_used().1,
        Backend::Cpu(_) => 0,
    };
    devices.iter().map(peak).collect()
}

/// The plan of a budget, with the threads' and the GPU's own memory added. `process` are bytes of the process
/// before it read anything. Devices beside this one take their own staging memory, which the budget has.
pub(crate) fn plan_of(budget: Budget, process: u64, device: &Device) -> Plan {
    let threads = device.cpu_side().threads();
    let staging = match device.backend() {
        Backend::Cuda(_) => cuda::staging_bytes(threads),
        Backend::Cpu(_) => 0,
    };
    Plan { budget, process: process + RUNNING_BYTES + threads as u64 * THREAD_BYTES + staging }
}

/// That the machine has what the process does not hold yet. Errors: memory.
pub(crate) fn expect_memory(plan: &Plan) -> Result<()> {
    Ok(cpu::expect_memory("reconstruction", plan.peak().saturating_sub(process_bytes()))?)
}

/// What is short of memory, and what takes less of it.
#[derive(Debug, Clone)]
pub(crate) struct Short {
    /// The scan's file, where it is one.
    pub(crate) scan: Option<PathBuf>,
    /// What takes less.
    pub(crate) less: &'static str,
}

impl Short {
    /// Errors: `needed` exceeds the limit.
    pub(crate) fn refuse(&self, limit: Option<u64>, needed: u64) -> Result<()> {
        let Some(limit) = limit.filter(|limit| needed > *limit) else {
            return Ok(());
        };
        Err(BadInput::new(format!(
            "`--memory`: expected at least {} for {}, found {}",
            number::bytes(needed),
            self.name(),
            number::bytes(limit)
        ))
        .hint(self.less)
        .into())
    }

    /// The refusal of a run that does not fit, with the number that is too large.
    pub(crate) fn refusal(&self, short: &OverBudget, limits: &Limits) -> crate::Error {
        if let Err(error) = self.refuse(limits.memory, short.memory) {
            return error;
        }
        let refused = BadInput::new(format!(
            "GPU memory: expected at least {} for {}, found {}",
            number::bytes(short.gpu),
            self.name(),
            number::bytes(limits.gpu.unwrap_or(0))
        ))
        .hint("the CPU (`--device cpu`) takes the host's memory; a larger limit (`--gpu-memory`), a smaller image (`--matrix`) or another method (`--method`) may do");
        crate::Error::Gpu(refused)
    }

    fn name(&self) -> String {
        self.scan.as_ref().map_or_else(|| "the scan".to_owned(), |scan| scan.display().to_string())
    }
}
