//! Processors and memory: [`Device`], [`Array`], the CPU thread pool with its SIMD, and GPUs.
//!
//! Everything above this crate is written once over `Device` and `Array`. A kernel's entry point matches on
//! [`Device::backend`] and calls the implementation for that processor. This crate names no algorithm.

mod array;
mod bandwidth;
pub mod cpu;
pub mod cuda;
mod double_buffer;
mod element;
mod exchange;
mod host_memory;
mod leave;
pub mod private;
mod texture;
mod transfer;

pub use array::Array;
pub use bandwidth::copy_bandwidth;
pub use cpu::Cpu;
pub use cuda::{Cuda, HostCopy};
pub use cuda::{ForeignStream, Lent};
pub use double_buffer::DoubleBuffer;
pub use element::Element;
pub use exchange::{Move, Side, at_once, exchange};
pub use leave::leave;
pub use transfer::{Pinned, Transfer};

use std::sync::Arc;

use rayspin_core::{Error, Result};

/// A processor that arrays live on and kernels run on. Cheap to clone.
///
/// ```
/// use rayspin_device::Device;
///
/// let device = Device::cpu_with_threads(2)?;
/// assert_eq!(device.cpu_side().threads(), 2);
/// # Ok::<(), rayspin_core::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Device {
    backend: Arc<Backend>,
}

/// The kinds of processor, for kernels to match on.
#[derive(Debug)]
pub enum Backend {
    /// The cores of this machine.
    Cpu(Cpu),
    /// An NVIDIA GPU.
    Cuda(Cuda),
}

/// A kind of processor, without a processor: what a variant runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BackendKind {
    /// The cores of this machine.
    Cpu,
    /// An NVIDIA GPU.
    Cuda,
}

impl Device {
    /// The CPU, with one thread for each core that this process may use.
    pub fn cpu() -> Result<Self> {
        Self::cpu_with_threads(cpu::available_threads())
    }

    /// The CPU with exactly `threads` threads. Errors: 0 threads, or the system refuses to start them.
    pub fn cpu_with_threads(threads: usize) -> Result<Self> {
        Self::cpu_with_level(threads, cpu::simd::best())
    }

    /// The CPU, limited to one of the instruction sets of [`cpu::simd::levels`]. Tests run every SIMD path on
    /// one machine this way. Errors: as [`Device::cpu_with_threads`].
    pub fn cpu_with_level(threads: usize, level: cpu::simd::Level) -> Result<Self> {
        Ok(Self { backend: Arc::new(Backend::Cpu(Cpu::new(threads, level)?)) })
    }

    /// The GPU with this number, counted from 0. `host` does the work that is not worth a kernel.
    ///
    /// Errors: no driver, no such GPU, or a GPU that is too old.
    pub fn cuda(ordinal: usize, host: Device) -> Result<Self> {
        Ok(Self { backend: Arc::new(Backend::Cuda(Cuda::open(ordinal, host)?)) })
    }

    /// A GPU behind the given driver. The emulator runs GPU code this way.
    pub fn with_driver(driver: Arc<dyn cuda::Driver>, host: Device) -> Self {
        Self { backend: Arc::new(Backend::Cuda(Cuda::with_driver(driver, host))) }
    }

    /// Compiles on all cores what `job` loads on this GPU, where it is not in the cache of compiled kernels.
    /// Without it each program is compiled when it is needed, one after the other.
    ///
    /// `job` rehearses the work at hand on a device that has the GPU's properties and runs nothing
    /// ([`cuda::NullDriver`]). Its errors and panics count for nothing: what it would have loaded behind them
    /// is compiled when it is needed. `what` names the job with all that decides which programs it loads: a
    /// name is rehearsed once. Nothing happens on a CPU, and without a compiler.
    ///
    /// ```
    /// use rayspin_device::{Array, Device};
    ///
    /// let device = Device::cpu()?;
    /// device.compile_ahead("zeros", |device| drop(Array::<f32>::zeros(device, &[4])));
    /// # Ok::<(), rayspin_core::Error>(())
    /// ```
    pub fn compile_ahead(&self, what: &str, job: impl FnOnce(&Self)) {
        if let Backend::Cuda(cuda) = self.backend() {
            cuda.compile_ahead(what, job);
        }
    }

    /// The first GPU if one works; otherwise `host` and the reason.
    pub fn auto(host: Device) -> (Self, Option<String>) {
        match cuda::count() {
            Err(absent) => (host, Some(absent.to_string())),
            Ok(_) => match Self::cuda(0, host.clone()) {
                Ok(device) => (device, None),
                Err(error) => (host, Some(error.to_string())),
            },
        }
    }

    /// The CPU that belongs to this device: the device itself, or the host of a GPU.
    pub fn host(&self) -> Device {
        match self.backend() {
            Backend::Cpu(_) => self.clone(),
            Backend::Cuda(cuda) => cuda.host().clone(),
        }
    }

    /// The cores of [`Device::host`].
    pub fn cpu_side(&self) -> &Cpu {
        match self.backend() {
            Backend::Cpu(cpu) => cpu,
            Backend::Cuda(cuda) => cuda.host().cpu_side(),
        }
    }

    /// Waits until all queued work is done. Errors: a failure of that work. On the CPU work is done when its
    /// call returns.
    pub fn synchronize(&self) -> Result<()> {
        match self.backend() {
            Backend::Cpu(_) => Ok(()),
            Backend::Cuda(cuda) => cuda.synchronize(),
        }
    }

    /// The processor behind this device.
    pub fn backend(&self) -> &Backend {
        &self.backend
    }

    /// The kind of processor.
    pub fn kind(&self) -> BackendKind {
        match self.backend() {
            Backend::Cpu(_) => BackendKind::Cpu,
            Backend::Cuda(_) => BackendKind::Cuda,
        }
    }

    /// One line for people: processor, threads, instruction set.
    pub fn describe(&self) -> String {
        match self.backend() {
            Backend::Cpu(cpu) => {
                format!("{}, {} threads, {}", cpu::model_name(), cpu.threads(), cpu.simd_name())
            }
            Backend::Cuda(cuda) => {
                let p = cuda.properties();
                format!(
                    "{}, {} multiprocessors, {:.1} GiB, CUDA {}.{}",
                    p.name,
                    p.multiprocessors,
                    p.memory as f64 / (1u64 << 30) as f64,
                    p.driver.0,
                    p.driver.1
                )
            }
        }
    }

    /// What tells the device from others of this machine: `cuda:1 (NVIDIA H200)`, and [`Device::describe`] of
    /// a processor without a number.
    pub fn name(&self) -> String {
        match self.backend() {
            Backend::Cuda(cuda) => match cuda.ordinal() {
                Some(ordinal) => format!("cuda:{ordinal} ({})", cuda.properties().name),
                None => self.describe(),
            },
            Backend::Cpu(_) => self.describe(),
        }
    }

    /// The error of a failure or of memory with this device's [name](Device::name), for work on several
    /// devices. Memory of the host is not this GPU's.
    pub fn named(&self, error: Error) -> Error {
        match (&error, self.backend()) {
            (Error::Memory { .. }, Backend::Cuda(cuda)) if cuda.failed_allocations() == 0 => error,
            _ => error.with_place(&self.name()),
        }
    }

    /// Whether two handles are the same device. Arrays of one may then be used on the other.
    pub fn same_as(&self, other: &Device) -> bool {
        Arc::ptr_eq(&self.backend, &other.backend)
    }
}
