//! The processors of this process: each is opened once, and none is used after a fork.

use std::collections::HashMap;
use std::ffi::CString;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use pyo3::exceptions::{PyRuntimeError, PyUserWarning};
use pyo3::prelude::*;
use rayspin::core::Error;
use rayspin::device::{Device, cpu};
use rayspin::run::Gpus;

use crate::error::raised;
use crate::whole::whole;

/// Where memory lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum DeviceName {
    /// The memory of this process.
    Cpu,
    /// The GPU of this number.
    Cuda(usize),
}

impl std::fmt::Display for DeviceName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Cpu => f.write_str("cpu"),
            Self::Cuda(ordinal) => write!(f, "cuda:{ordinal}"),
        }
    }
}

/// A device, where its memory is, and the process that opened it.
#[derive(Debug, Clone)]
pub(crate) struct Processor {
    pub(crate) device: Device,
    pub(crate) place: DeviceName,
    process: u32,
}

/// A device that lives as long as the process. Opening one takes longer than a small transform, and arrays of
/// two handles of one GPU could not meet.
static OPEN: Mutex<Option<HashMap<(u32, DeviceName), Device>>> = Mutex::new(None);

impl Processor {
    /// The processor of this name: `cpu`, `cuda`, `cuda:1`, or `auto`, the first GPU if one works, else the
    ///     CPU.
    pub(crate) fn named(name: &str) -> PyResult<Self> {
        let wrong = || raised(Error::value("device", "auto, cpu, cuda, or cuda:1 and so on", name));
        match name {
            "auto" if rayspin::device::cuda::count().is_ok() => {
                Self::at(DeviceName::Cuda(0)).or_else(|_| Self::at(DeviceName::Cpu))
            }
            "auto" | "cpu" => Self::at(DeviceName::Cpu),
            "cuda" => Self::at(DeviceName::Cuda(0)),
            _ => {
                let number = name.strip_prefix("cuda:").and_then(|number| number.parse().ok());
                Self::at(DeviceName::Cuda(number.ok_or_else(wrong)?))
            }
        }
    }

    /// The processor of this name, and those beside it: `cuda:all` and `cuda:0,2` name several GPUs.
    pub(crate) fn several(name: &str) -> PyResult<(Self, Vec<Self>)> {
        let Some(gpus) = name.strip_prefix("cuda:").and_then(Gpus::parse) else {
            return Ok((Self::named(name)?, Vec::new()));
        };
        let first = Self::at(DeviceName::Cuda(gpus.first()))?;
        let count = rayspin::device::cuda::count().unwrap_or(0);
        let mut others = Vec::new();
        for ordinal in gpus.others(count) {
            match Self::at(DeviceName::Cuda(ordinal)) {
                Ok(other) => others.push(other),
                // `cuda:all` leaves out a GPU that does not work.
                Err(error) if gpus == Gpus::ALL => {
                    let text = CString::new(format!("computing without cuda:{ordinal}: {error}"))?;
                    Python::attach(|py| PyErr::warn(py, &py.get_type::<PyUserWarning>(), &text, 1))?;
                }
                Err(error) => return Err(error),
            }
        }
        Ok((first, others))
    }

    pub(crate) fn at(place: DeviceName) -> PyResult<Self> {
        let process = std::process::id();
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        let open = open.get_or_insert_default();
        if matches!(place, DeviceName::Cuda(_))
            && open.keys().any(|key| key.0 != process && key.1 != DeviceName::Cpu)
        {
            return Err(forked());
        }
        if let Some(device) = open.get(&(process, place)) {
            return Ok(Self { device: device.clone(), place, process });
        }
        let device = match place {
            DeviceName::Cpu => host(),
            DeviceName::Cuda(ordinal) => host().and_then(|host| Device::cuda(ordinal, host)),
        };
        let device = device.map_err(raised)?;
        open.insert((process, place), device.clone());
        Ok(Self { device, place, process })
    }

    /// Errors: this process is a fork of the one that opened the device, whose threads and GPU it has not.
    pub(crate) fn expect_own(&self) -> PyResult<()> {
        if self.process == std::process::id() { Ok(()) } else { Err(forked()) }
    }
}

/// The threads that a caller wants; 0 for one a core.
static THREADS: AtomicUsize = AtomicUsize::new(0);

/// The CPU, with the threads that are wanted.
fn host() -> rayspin::core::Result<Device> {
    match THREADS.load(Ordering::Relaxed) {
        0 => Device::cpu(),
        threads => {
            // Files are read on these threads. A pool that has started stays.
            let _ = rayon::ThreadPoolBuilder::new().num_threads(threads).build_global();
            Device::cpu_with_threads(threads)
        }
    }
}

/// Sets the number of threads that compute on the CPU and read files. The environment variable
/// RAYSPIN_THREADS sets it when rayspin is imported.
///
/// threads: from 1 to 4 for each core.
///
/// Returns None. Raises ValueError for another number, RuntimeError if threads of another number have
/// started: call it before a scan is read or anything is computed.
///
/// >>> import subprocess, sys
/// >>> text = "import rayspin; rayspin.set_threads(1); print(rayspin.threads())"
/// >>> subprocess.run([sys.executable, "-c", text], capture_output=True, text=True).stdout
/// '1\n'
///
/// `(threads: int) -> None`
#[pyfunction]
pub(crate) fn set_threads(#[pyo3(from_py_with = whole)] threads: i64) -> PyResult<()> {
    let most = cpu::most_threads();
    let wanted = usize::try_from(threads).ok().filter(|wanted| (1..=most).contains(wanted));
    let wrong = || raised(Error::value("threads", format!("a number from 1 to {most}, 4 a core"), threads));
    let wanted = wanted.ok_or_else(wrong)?;
    let open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    let process = std::process::id();
    let started = open.iter().flatten().find(|(key, _)| key.0 == process).map(|(_, device)| device);
    match started.map(|device| device.cpu_side().threads()) {
        Some(threads) if threads != wanted => {
            let text = format!(
                "the number of threads that have started already is {threads}: call set_threads before a scan is read or anything is computed"
            );
            Err(PyRuntimeError::new_err(text))
        }
        _ => {
            THREADS.store(wanted, Ordering::Relaxed);
            Ok(())
        }
    }
}

/// The number of threads that compute on the CPU. Returns a whole number.
///
/// `() -> int`
#[pyfunction]
pub(crate) fn threads() -> usize {
    let process = std::process::id();
    let open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    match open.iter().flatten().find(|(key, _)| key.0 == process) {
        Some((_, device)) => device.cpu_side().threads(),
        None => match THREADS.load(Ordering::Relaxed) {
            0 => cpu::available_threads(),
            threads => threads,
        },
    }
}

/// Takes the number of threads of the variable RAYSPIN_THREADS, with a warning of what is no such number.
pub(crate) fn take_environment(py: Python<'_>) -> PyResult<()> {
    let Some(text) = std::env::var_os("RAYSPIN_THREADS") else { return limit_threads(py) };
    let most = cpu::most_threads();
    let asked = text.to_str().and_then(|text| text.trim().parse::<usize>().ok()).filter(|&asked| asked > 0);
    THREADS.store(asked.map_or(0, |asked| asked.min(most)), Ordering::Relaxed);
    match asked {
        Some(asked) if asked <= most => return Ok(()),
        Some(_) => {}
        None => limit_threads(py)?,
    }
    let text = text.to_string_lossy();
    let text = format!("RAYSPIN_THREADS: expected a number from 1 to {most}, 4 a core, found {text}");
    PyErr::warn(py, &py.get_type::<PyUserWarning>(), &CString::new(text)?, 1)
}

/// Limits the threads of the variable RAYON_NUM_THREADS as the command limits `--threads`, with a warning.
/// These threads read files; transforms have a thread for each core.
fn limit_threads(py: Python<'_>) -> PyResult<()> {
    let most = cpu::most_threads();
    let asked = std::env::var("RAYON_NUM_THREADS").ok().and_then(|text| text.parse::<usize>().ok());
    let Some(asked) = asked.filter(|&asked| asked > most) else { return Ok(()) };
    // A pool that another copy of this module has started stays.
    let _ = rayon::ThreadPoolBuilder::new().num_threads(most).build_global();
    let text = format!("RAYON_NUM_THREADS: {most} threads of {asked}, at most 4 a core");
    PyErr::warn(py, &py.get_type::<PyUserWarning>(), &CString::new(text)?, 1)
}

fn forked() -> PyErr {
    PyRuntimeError::new_err(
        "this process was forked after Rayspin had started: its threads and its GPU belong to the parent. Make plans in the child, \
         and start children with multiprocessing's method 'spawn' where they use a GPU",
    )
}
