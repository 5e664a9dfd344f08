//! Off-resonance: encoding while the field is not the same everywhere, by time segmentation.
//!
//! Noll, Meyer, Pauly, Nishimura, Macovski, *A homogeneity correction method for magnetic resonance imaging with
//! time-varying gradients*, IEEE Trans Med Imaging 10:629, 1991; Sutton, Noll, Fessler, *Fast, iterative image
//! reconstruction for MRI in the presence of field inhomogeneities*, IEEE Trans Med Imaging 22:178, 2003; Fessler, Lee,
//! Olafsson, Shi, Noll, *Toeplitz-based iterative image reconstruction for MRI with correction for magnetic field
//! inhomogeneity*, IEEE Trans Signal Process 53:3393, 2005.

mod cpu;
mod cuda;
mod interpolator;
pub mod reference;
mod segments;

pub(crate) use cuda::SOURCE;
pub use interpolator::{Interpolator, MAX_GAIN, MAX_SEGMENTS, Table};
pub use segments::{Segments, Transform};

use num_complex::Complex;
use rayspin_core::{Error, Real, Result, expect_shape};
use rayspin_device::{Array, Backend, BackendKind, Cpu};

use crate::fft::check_trailing;
use crate::variant::{Variant, Work, runs_all};
use crate::vector::expect_device;

/// What is computed, for the table of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// e^{i2πf(x)τ} y(x).
    Modulate,
    /// w_l(t_m) d_m.
    Weigh,
}

/// An operation over `batch` rows of `len` voxels or samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Problem {
    /// Which one.
    pub operation: Operation,
    /// Images or coils.
    pub batch: usize,
    /// Voxels or samples of each.
    pub len: usize,
}

/// (field, τ, input, output, whether to add to the output); the field is one image long.
pub type Modulate<R> = fn(&Cpu, &[R], f64, &[Complex<R>], &mut [Complex<R>], bool);
/// (weights by time, each sample's time, input, output, (whether to conjugate the weights, to add)).
pub type Weigh<R> = fn(&Cpu, &[Complex<R>], &[u32], &[Complex<R>], &mut [Complex<R>], (bool, bool));

/// One implementation of every operation; no array is empty.
pub struct Launch<R: Real> {
    /// Phases of the field at one moment.
    pub modulate: Modulate<R>,
    /// One segment's share in every sample.
    pub weigh: Weigh<R>,
}

/// Every variant, slowest first.
pub fn variants<R: Real>() -> [Variant<Problem, Launch<R>>; 2] {
    // A sine, a cosine and a product of complex numbers.
    let tolerance = 4.0 * <R as Real>::EPSILON.to_f64();
    [
        Variant {
            name: "plain",
            backend: BackendKind::Cpu,
            summary: "one thread, number by number, library sine and cosine",
            launch: cpu::plain(),
            refuses: runs_all,
            work: work::<R>,
            tolerance,
            reproduces: None,
        },
        Variant {
            name: "vectors",
            backend: BackendKind::Cpu,
            summary: "all cores, sines and cosines of whole vectors in double precision",
            launch: cpu::vectors(),
            refuses: runs_all,
            work: work::<R>,
            tolerance,
            reproduces: None,
        },
    ]
}

fn work<R: Real>(p: &Problem) -> Work {
    let (complex, real) = (size_of::<Complex<R>>() as f64, size_of::<R>() as f64);
    let (batch, len) = (p.batch as f64, p.len as f64);
    let (beside, flops) = match p.operation {
        // Some 30 operations for sine and cosine.
        Operation::Modulate => (real, 6.0 * batch + 30.0),
        Operation::Weigh => (4.0, 6.0 * batch),
    };
    Work { bytes: (2.0 * batch * complex + beside) * len, flops: flops * len }
}

/// y(x) = e^{i2πf(x)τ} x(x), or that added to y: `field` (Hz) is `[image…]`, `x` and `y` `[batch.., image…]`, τ in seconds, of
/// either sign. An encoding's phase e^{−i2πfτ} takes −τ.
///
/// Errors: shapes that do not fit, or different devices.
pub fn modulate<R: Real>(
    field: &Array<R>,
    tau: f64,
    x: &Array<Complex<R>>,
    y: &mut Array<Complex<R>>,
    add: bool,
) -> Result<()> {
    check_trailing("off-resonance: image", field.shape(), x.shape())?;
    expect_shape("off-resonance: turned image", x.shape(), y.shape())?;
    expect_device("off-resonance", field.device(), x)?;
    expect_device("off-resonance", field.device(), y)?;
    if x.is_empty() {
        return Ok(());
    }
    match x.device().backend() {
        Backend::Cpu(cpu) => (cpu::vectors().modulate)(cpu, field.cpu(), tau, x.cpu(), y.cpu_mut(), add),
        Backend::Cuda(cuda) => cuda::modulate(cuda, field, tau, x, y, add)?,
    }
    Ok(())
}

/// `y[m] = w[segment, index[m]] x[m]`, or that added to y: `table` is `[segment, time]`, `index` `[sample]`, `x` and `y`
/// `[batch.., sample]`.
///
/// Every entry of `index` must be below the table's times, which [`Segments`] sees to.
fn weigh<R: Real>(
    table: (&Array<Complex<R>>, usize),
    index: &Array<u32>,
    x: &Array<Complex<R>>,
    y: &mut Array<Complex<R>>,
    (conjugate, add): (bool, bool),
) -> Result<()> {
    check_trailing("off-resonance: samples", index.shape(), x.shape())?;
    expect_shape("off-resonance: weighted samples", x.shape(), y.shape())?;
    expect_device("off-resonance", index.device(), x)?;
    expect_device("off-resonance", index.device(), y)?;
    if x.is_empty() {
        return Ok(());
    }
    match x.device().backend() {
        Backend::Cpu(cpu) => {
            let times = table.0.shape()[1];
            let row = table.0.cpu().get(table.1 * times..(table.1 + 1) * times).ok_or_else(|| {
                Error::value("segment of an off-resonance transform", "one that there is", table.1)
            })?;
            (cpu::vectors().weigh)(cpu, row, index.cpu(), x.cpu(), y.cpu_mut(), (conjugate, add));
        }
        Backend::Cuda(cuda) => cuda::weigh(cuda, table, index, x, y, (conjugate, add))?,
    }
    Ok(())
}
