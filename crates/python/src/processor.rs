//! The processors of this process: each is opened once, and none is used after a fork.

use std::collections::HashMap;
use std::ffi::CString;
use std::sync::{Mutex, PoisonError};

use pyo3::exceptions::{PyRuntimeError, PyUserWarning};
use pyo3::prelude::*;
use rayspin::core::Error;
use rayspin::device::{Device, cpu};

use crate::error::raised;

/// Where memory lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Place {
    /// The memory of this process.
    Cpu,
    /// The GPU of this number.
    Cuda(usize),
}

impl std::fmt::Display for Place {
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
    pub(crate) place: Place,
    process: u32,
}

/// A device that lives as long as the process. Opening one takes longer than a small transform, and arrays of two handles of one GPU
/// could not meet.
static OPEN: Mutex<Option<HashMap<(u32, Place), Device>>> = Mutex::new(None);

impl Processor {
    /// The processor of this name: `cpu`, `cuda`, `cuda:1`, or `auto`, the first GPU if one works, else the CPU.
    pub(crate) fn named(name: &str) -> PyResult<Self> {
        let wrong = || raised(Error::value("device", "auto, cpu, cuda, or cuda:1 and so on", name));
        match name {
            "auto" if rayspin::device::cuda::count().is_ok() => {
                Self::at(Place::Cuda(0)).or_else(|_| Self::at(Place::Cpu))
            }
            "auto" | "cpu" => Self::at(Place::Cpu),
            "cuda" => Self::at(Place::Cuda(0)),
            _ => {
                let number = name.strip_prefix("cuda:").and_then(|number| number.parse().ok());
                Self::at(Place::Cuda(number.ok_or_else(wrong)?))
            }
        }
    }

    pub(crate) fn at(place: Place) -> PyResult<Self> {
        let process = std::process::id();
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        let open = open.get_or_insert_default();
        if matches!(place, Place::Cuda(_)) && open.keys().any(|key| key.0 != process && key.1 != Place::Cpu) {
            return Err(forked());
        }
        if let Some(device) = open.get(&(process, place)) {
            return Ok(Self { device: device.clone(), place, process });
        }
        let device = match place {
            Place::Cpu => Device::cpu(),
            Place::Cuda(ordinal) => {
                let host = Device::cpu().map_err(raised)?;
                Device::cuda(ordinal, host)
            }
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

/// Limits the threads of the variable RAYON_NUM_THREADS as the command limits `--threads`, with a warning. These threads read files;
/// transforms have a thread for each core.
pub(crate) fn limit_threads(py: Python<'_>) -> PyResult<()> {
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
