//! What the rows of the CPU leave open, and the configuration that the public functions take.

use std::any::TypeId;
use std::ops::Deref;

use rayspin_core::{Real, Result};
use rayspin_device::{Cpu, Device};
use rayspin_tune::{Config, Space, tuned};

use super::ladder::Direct;
use super::{Operation, Problem};

/// How many samples are summed in working precision, as a parameter.
pub(super) fn samples(values: &[i64]) -> Space {
    Space::none().axis("samples", values, SAMPLES)
}

/// The parameters of [`Cut`].
pub(super) fn sums() -> Space {
    samples(&[64, 128, 256, 512]).axis("sums", &[4096, 8192, 16384, 32768, 65536], SUMS)
}

/// Samples that are summed in working precision before they join a double-precision sum.
const SAMPLES: i64 = 256;
/// Elements of double-precision sums that a task keeps, so that they and a panel stay in its second-level cache.
const SUMS: i64 = 16 * 1024;

/// How the CPU's rungs cut their work.
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

/// The value of `name`, or `default` where the space of the rung has no such axis.
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

/// The best configuration of a rung that was measured on this device, else its default.
pub(super) fn chosen<R: Real>(
    operation: Operation,
    rung: &'static str,
    (matrix, samples): (&[usize], usize),
    device: &Device,
) -> Config {
    let problem = Problem { operation, matrix: matrix.to_vec(), samples, batch: 1 };
    if TypeId::of::<R>() == TypeId::of::<f32>() {
        tuned(&Direct::<f32>::new(operation), &problem, rung, device)
    } else {
        tuned(&Direct::<f64>::new(operation), &problem, rung, device)
    }
}
