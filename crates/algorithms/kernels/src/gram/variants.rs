//! The rows: every variant of the Gram matrix.

use rayspin_core::{C32, C64, Result};
use rayspin_device::{Array, BackendKind};

use super::{Problem, Rows, cuda, on_gpu};
use crate::variant::{Variant, Work};

/// Entry point of a variant: values, rows, columns, the matrix, and whether it is added to.
pub type Implementation = fn(&Array<C32>, Rows<'_>, &[u32], &mut Array<C64>, bool) -> Result<()>;

/// Every variant: the GPU's. On a CPU a matrix product of the linear algebra library serves, a block of rows
/// at a time.
pub static VARIANTS: &[Variant<Problem, Implementation>] = &[Variant::new(
    "gpu-tiles",
    BackendKind::Cuda,
    "tiles of up to 64 × 64 in registers, rows gathered to shared memory in double precision, parts of them added in one order",
    on_gpu as Implementation,
    work,
)
// Rounding of double-precision sums of thousands of products; the tests have short sums, which are exact.
.tolerance(1e-14)
.forms(cuda::builds)];

/// Each value is read once at least, half of the matrix computed.
pub(super) fn work(p: &Problem) -> Work {
    let (rows, n) = (p.rows as f64, p.columns as f64);
    Work { bytes: 8.0 * rows * n + 16.0 * n * n, flops: 4.0 * rows * n * (n + 1.0) }
}
