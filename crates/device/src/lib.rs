//! Processors and memory: [`Device`], [`Array`], the CPU thread pool and its SIMD.
//!
//! Everything above this crate is written once over `Device` and `Array`; a kernel's entry point matches on
//! [`Device::backend`] to reach the processor's own implementation. This crate names no algorithm.

mod array;
pub mod cpu;

pub use array::{Array, Element};
pub use cpu::Cpu;

use std::sync::Arc;

use rayspin_core::Result;

/// A processor that arrays live on and kernels run on. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Device {
    backend: Arc<Backend>,
}

/// The kinds of processor, for kernels to match on.
#[derive(Debug)]
pub enum Backend {
    /// The cores of this machine.
    Cpu(Cpu),
}

/// Names the kind of processor a variant runs on, without holding one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BackendKind {
    /// The cores of this machine.
    Cpu,
}

impl Device {
    /// The CPU with one thread a core that this process may use.
    pub fn cpu() -> Result<Self> {
        Self::cpu_with_threads(cpu::available_threads())
    }

    /// The CPU with exactly `threads` threads. Errors: 0 threads, or the system refuses to start them.
    pub fn cpu_with_threads(threads: usize) -> Result<Self> {
        Self::cpu_with_level(threads, cpu::simd::Level::new())
    }

    /// The CPU held to one of the instruction sets of [`cpu::simd::levels`]: how every SIMD path is tested on one
    /// machine. Errors: as [`Device::cpu_with_threads`].
    pub fn cpu_with_level(threads: usize, level: cpu::simd::Level) -> Result<Self> {
        Ok(Self { backend: Arc::new(Backend::Cpu(Cpu::new(threads, level)?)) })
    }

    /// The processor behind this device.
    pub fn backend(&self) -> &Backend {
        &self.backend
    }

    /// The kind of processor.
    pub fn kind(&self) -> BackendKind {
        match self.backend() {
            Backend::Cpu(_) => BackendKind::Cpu,
        }
    }

    /// One line for people: processor, threads, instruction set.
    pub fn describe(&self) -> String {
        match self.backend() {
            Backend::Cpu(cpu) => {
                format!("{}, {} threads, {}", cpu::model_name(), cpu.threads(), cpu.simd_name())
            }
        }
    }

    /// Whether two handles are the same device, so that arrays of one may be used on the other.
    pub fn same_as(&self, other: &Device) -> bool {
        Arc::ptr_eq(&self.backend, &other.backend)
    }
}
