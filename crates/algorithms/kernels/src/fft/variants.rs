//! The rows: every variant of the transform.

use rayspin_core::{C32, Result};
use rayspin_device::{BackendKind, Cpu};

use super::cpu::{self, Direction, FftNd, Options, Strategy};
use crate::variant::{Variant, Work};

/// The sizes of a problem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Shape of one transform.
    pub shape: Vec<usize>,
    /// Number of transforms.
    pub batch: usize,
}

impl Problem {
    /// Every element read and written once; 5 N log₂ N operations, the count that FFT rates are stated with.
    pub fn work(&self) -> Work {
        work(self)
    }
}

/// Entry point of a variant: plan, data (transformed in place, index 0 being position and frequency 0),
/// direction.
pub type Implementation = fn(&Cpu, &FftNd<f32>, &mut [C32], Direction) -> Result<()>;

/// Every variant, slowest first; the last is what [`Fft`](super::Fft) runs.
pub static VARIANTS: &[Variant<Problem, Implementation>] = &[
    row("lines", BackendKind::Cpu, "one line at a time, one thread", |_, fft, data, direction| {
        cpu::lines::process(fft, data, direction);
        Ok(())
    }),
    row(
        "columns",
        BackendKind::Cpu,
        "32 columns transposed at a time, every axis one pass over memory, all cores",
        |cpu, fft, data, direction| {
            let strategy = Strategy { lanes: false, local: false };
            fft.process_by(cpu, data, &Options::new(direction), strategy)
        },
    ),
    row(
        "planes",
        BackendKind::Cpu,
        "columns, and trailing axes that fit a core's cache in one pass over memory",
        |cpu, fft, data, direction| {
            let strategy = Strategy { lanes: false, local: true };
            fft.process_by(cpu, data, &Options::new(direction), strategy)
        },
    ),
    row(
        "lanes",
        BackendKind::Cpu,
        "planes, and 32 columns transformed at a time, one a SIMD lane, without transposition",
        |cpu, fft, data, direction| fft.process(cpu, data, direction),
    ),
];

const fn row(
    name: &'static str,
    backend: BackendKind,
    summary: &'static str,
    implementation: Implementation,
) -> Variant<Problem, Implementation> {
    Variant::new(name, backend, summary, implementation, work).tolerance(TOLERANCE)
}

/// Rounding of the stages of a transform in f32; 1.7e-7 at most was measured.
const TOLERANCE: f64 = 1e-6;

/// Every element read and written once; 5 N log₂ N operations, the count that FFT rates are stated with.
pub(crate) fn work(problem: &Problem) -> Work {
    let n = problem.shape.iter().product::<usize>() as f64;
    let batch = problem.batch as f64;
    Work { bytes: batch * n * 2.0 * size_of::<C32>() as f64, flops: batch * 5.0 * n * n.max(2.0).log2() }
}
