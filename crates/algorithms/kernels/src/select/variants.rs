//! The rows: every variant of the selection.

use num_complex::Complex;
use rayspin_core::{Error, Real, Result};
use rayspin_device::{Array, Backend, BackendKind};

use super::{cuda, on_cpu};
use crate::cuda::in_precision;
use crate::variant::{Variant, Work};

/// The selection of one of `len` complex numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Problem {
    /// Number of complex numbers.
    pub len: usize,
}

/// The k-th smallest |x|², from x and k.
pub type Implementation<R> = fn(&Array<Complex<R>>, usize) -> Result<f64>;

/// Every variant: the CPU's and the GPU's.
pub fn variants<R: Real>() -> [Variant<Problem, Implementation<R>>; 2] {
    // A sum of two squares and its root, in double precision: exact where a compiler fuses nothing, as it was
    // measured.
    let tolerance = 4.0 * f64::EPSILON;
    [
        Variant::new(
            "partition",
            BackendKind::Cpu,
            "squared magnitudes on all cores, then partitioned about pivots",
            on_cpu::<Complex<R>> as Implementation<R>,
            work::<R>,
        )
        .tolerance(tolerance),
        Variant::new(
            "gpu-digits",
            BackendKind::Cuda,
            "counts of the 8 bytes of |x|², highest first, in shared memory",
            on_gpu::<R> as Implementation<R>,
            work::<R>,
        )
        .forms(|| in_precision::<R>(cuda::builds()))
        .tolerance(tolerance),
    ]
}

/// Each number is read once at least.
fn work<R: Real>(p: &Problem) -> Work {
    let len = p.len as f64;
    Work { bytes: len * size_of::<Complex<R>>() as f64, flops: 3.0 * len }
}

fn on_gpu<R: Real>(x: &Array<Complex<R>>, rank: usize) -> Result<f64> {
    match x.device().backend() {
        Backend::Cuda(cuda) => cuda::digits(cuda, x, rank),
        Backend::Cpu(_) => Err(Error::value("device", "a GPU", x.device().describe())),
    }
}
