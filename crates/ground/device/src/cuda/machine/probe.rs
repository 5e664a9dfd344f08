//! Finds the GPUs of this machine and their properties, and checks that they and their driver are new enough.

use cudarc::driver::{result as cu, sys};
use rayspin_core::{Error, Result};

use super::{failed, words};
use crate::cuda::Properties;

/// The oldest driver interface that has all symbols of the bindings.
const OLDEST_DRIVER: (u32, u32) = (12, 8);
/// The oldest processor that tests compile kernels for. It has the FP64 and FP16 tensor instructions that
/// kernels use.
const OLDEST_CAPABILITY: (u32, u32) = (8, 0);

/// The reason why no GPU can be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoGpu {
    /// No driver is installed.
    NoDriver,
    /// The driver does not start, or is too old: its message.
    Driver(String),
    /// The driver finds no GPU.
    NoDevice,
}

impl std::fmt::Display for NoGpu {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoDriver => f.write_str("no CUDA driver (libcuda.so) is installed"),
            Self::Driver(words) => write!(f, "the CUDA driver does not start: {words}"),
            Self::NoDevice => f.write_str("the CUDA driver finds no GPU"),
        }
    }
}

/// Whether a driver is installed. There may still be no GPU. The driver is not started, because that takes a
/// third of a second.
pub fn driver_installed() -> bool {
    // SAFETY: loading the driver has no requirements.
    unsafe { sys::is_culib_present() }
}

/// GPUs that start on threads of their own. Dropping this waits for them: a program must not end within its
/// driver.
#[derive(Debug)]
#[must_use = "dropping it waits until the GPUs have started"]
pub struct Starting(Option<std::thread::JoinHandle<()>>);

impl Drop for Starting {
    fn drop(&mut self) {
        if let Some(thread) = self.0.take() {
            // It has nothing to tell: whoever opens a GPU finds its errors.
            drop(thread.join());
        }
    }
}

/// Begins to start the driver, and at the same time all GPUs that `which` names, given how many there are.
/// It takes a third of a second. Who opens one of them meanwhile waits for the rest.
pub fn start(which: impl FnOnce(usize) -> Vec<usize> + Send + 'static) -> Starting {
    let open = |ordinal: usize| {
        if let Ok(ordinal) = ordinal.try_into()
            && let Ok(device) = cu::device::get(ordinal)
        {
            // SAFETY: the device was just found. Its primary context stays retained until the process ends.
            let _ = unsafe { cu::primary_ctx::retain(device) };
        }
    };
    let work = move || {
        let Ok(count) = count() else { return };
        std::thread::scope(|scope| {
            for ordinal in which(count) {
                // Whoever opens it starts it, if there is no thread.
                let _ = std::thread::Builder::new().spawn_scoped(scope, move || open(ordinal));
            }
        });
    };
    Starting(std::thread::Builder::new().name("rayspin-gpu".into()).spawn(work).ok())
}

/// Number of GPUs, at least one. Never panics.
pub fn count() -> std::result::Result<usize, NoGpu> {
    // SAFETY: loading the driver has no requirements.
    if !unsafe { sys::is_culib_present() } {
        return Err(NoGpu::NoDriver);
    }
    cu::init().map_err(|e| match e.0 {
        sys::CUresult::CUDA_ERROR_NO_DEVICE => NoGpu::NoDevice,
        _ => NoGpu::Driver(words(e)),
    })?;
    driver_new_enough(driver_version())?;
    match cu::device::get_count() {
        Ok(n) if n > 0 => Ok(n as usize),
        Ok(_) => Err(NoGpu::NoDevice),
        Err(e) => Err(NoGpu::Driver(words(e))),
    }
}

fn driver_new_enough(version: (u32, u32)) -> std::result::Result<(), NoGpu> {
    if version >= OLDEST_DRIVER {
        return Ok(());
    }
    Err(NoGpu::Driver(format!(
        "it offers CUDA {}.{}, at least {}.{} is needed",
        version.0, version.1, OLDEST_DRIVER.0, OLDEST_DRIVER.1
    )))
}

pub(super) fn new_enough(ordinal: usize, properties: &Properties) -> Result<()> {
    if properties.capability >= OLDEST_CAPABILITY {
        return Ok(());
    }
    Err(Error::value(
        format!("device cuda:{ordinal}, {}", properties.name),
        format!("compute capability {}.{} or newer", OLDEST_CAPABILITY.0, OLDEST_CAPABILITY.1),
        format!("{}.{}", properties.capability.0, properties.capability.1),
    ))
}

fn driver_version() -> (u32, u32) {
    let mut version = 0;
    // SAFETY: a number to write to.
    match unsafe { sys::cuDriverGetVersion(&mut version) }.result() {
        Ok(()) => ((version / 1000) as u32, (version % 1000 / 10) as u32),
        Err(_) => (0, 0),
    }
}

pub(super) fn attribute(device: sys::CUdevice, which: sys::CUdevice_attribute) -> Result<u32> {
    // SAFETY: the device was found before.
    let value =
        unsafe { cu::device::get_attribute(device, which) }.map_err(failed("reading the GPU's limits"))?;
    Ok(u32::try_from(value).unwrap_or(0))
}

pub(super) fn properties(device: sys::CUdevice) -> Result<Properties> {
    use sys::CUdevice_attribute as A;
    let value = |which| attribute(device, which);
    Ok(Properties {
        name: cu::device::get_name(device).map_err(failed("reading the GPU's name"))?,
        capability: (
            value(A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
            value(A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        ),
        multiprocessors: value(A::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
        // SAFETY: the device was found before.
        memory: unsafe { cu::device::total_mem(device) }.map_err(failed("reading the GPU's memory"))? as u64,
        cache: value(A::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)?.into(),
        threads_per_block: value(A::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
        threads_per_multiprocessor: value(A::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR)?,
        shared_per_block: value(A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?,
        shared_per_multiprocessor: value(A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR)?,
        registers_per_multiprocessor: value(A::CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR)?,
        driver: driver_version(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_and_drivers_that_are_too_old_are_named() {
        let of = |capability| Properties {
            name: "Old GPU".to_owned(),
            capability,
            multiprocessors: 1,
            memory: 0,
            cache: 0,
            threads_per_block: 1024,
            threads_per_multiprocessor: 2048,
            shared_per_block: 0,
            shared_per_multiprocessor: 0,
            registers_per_multiprocessor: 0,
            driver: (13, 0),
        };
        new_enough(0, &of((8, 0))).unwrap();
        new_enough(0, &of((12, 1))).unwrap();
        let words = new_enough(1, &of((7, 5))).unwrap_err().to_string();
        for part in ["cuda:1", "Old GPU", "8.0 or newer", "7.5"] {
            assert!(words.contains(part), "{words}");
        }
        driver_new_enough((12, 8)).unwrap();
        driver_new_enough((13, 0)).unwrap();
        let words = driver_new_enough((12, 6)).unwrap_err().to_string();
        assert!(words.contains("offers CUDA 12.6, at least 12.8"), "{words}");
    }
}
