//! The tuned parameters of the CPU's rows, and the configuration that the public functions use.

use std::ops::Deref;

use rayspin_core::Result;
use rayspin_device::cpu::simd::SimdReal;
use rayspin_device::{Backend, Cpu, Device};
use rayspin_tune::{Config, Space, tuned};

use super::ladder::Direct;
use super::variants::{mirrored, on_gpu};
use super::{CudaVariant, Implementation, Problem};

/// The number of samples summed in working precision, as a parameter.
pub(super) fn samples(values: &[i64]) -> Space {
    Space::none().axis("samples", values, SAMPLES)
}

/// The parameters of [`Cut`].
pub(super) fn sums() -> Space {
    samples(&[64, 128, 256, 512]).axis("sums", &[4096, 8192, 16384, 32768, 65536], SUMS)
}

/// Samples that are summed in working precision before they join a double-precision sum.
const SAMPLES: i64 = 256;
/// Elements of double-precision sums that a task keeps, so that they and a panel stay in its second-level
/// cache.
const SUMS: i64 = 16 * 1024;

/// How the CPU's variants cut their work.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cut {
    /// Samples of a panel.
    pub(super) samples: usize,
    /// Elements of double-precision sums of a task.
    pub(super) sums: usize,
}

impl Cut {
    /// The default where a configuration says nothing. Errors: a value that is no number.
    pub(super) fn of(config: &Config) -> Result<Self> {
        Ok(Self {
            samples: value(config, "samples", SAMPLES)? as usize,
            sums: value(config, "sums", SUMS)? as usize,
        })
    }
}

/// The value of `name`, or `default` where the space of the variant has no such axis.
pub(super) fn value(config: &Config, name: &str, default: i64) -> Result<u32> {
    match config.find(name) {
        Some(_) => config.get(name),
        None => Config::of(&[(name, default)]).get(name),
    }
}

/// A CPU, and how work is cut for it.
pub(super) struct Host<'a> {
    pub(super) cpu: &'a Cpu,
    pub(super) cut: Cut,
}

impl Deref for Host<'_> {
    type Target = Cpu;

    fn deref(&self) -> &Cpu {
        self.cpu
    }
}

/// What transforms samples on a device, and the best configuration that was measured there, else its default.
pub(super) fn best<T: SimdReal>(problem: &Problem, device: &Device) -> (Implementation<T>, Config) {
    let row = match device.backend() {
        Backend::Cuda(cuda) => on_gpu(CudaVariant::best::<T>(cuda)),
        Backend::Cpu(_) => mirrored(),
    };
    let config = tuned(&Direct::<T>::new(problem.operation), problem, &row, device);
    (row.implementation, config)
}
