//! Off-resonance: encoding in an inhomogeneous field by time segmentation.
//!
//! Noll, Meyer, Pauly, Nishimura, Macovski, *A homogeneity correction method for magnetic resonance imaging
//! with time-varying gradients*, IEEE Trans Med Imaging 10:629, 1991.
//!
//! Sutton, Noll, Fessler, *Fast, iterative image reconstruction for MRI in the presence of field
//! inhomogeneities*, IEEE Trans Med Imaging 22:178, 2003.
//!
//! Fessler, Lee, Olafsson, Shi, Noll, *Toeplitz-based iterative image reconstruction for MRI with correction
//! for magnetic field inhomogeneity*, IEEE Trans Signal Process 53:3393, 2005.

mod cpu;
mod cuda;
mod interpolator;
mod ladder;
pub mod reference;
mod segments;
mod variants;

pub(crate) use cuda::builds;
pub use interpolator::{Interpolator, MAX_GAIN, MAX_SEGMENTS, Table};
pub(crate) use ladder::ladder;
pub use segments::{Scratch, Segments, Transform};
pub use variants::{Implementation, Modulate, Operation, Problem, Weigh, Weights, variants};

use num_complex::Complex;
use rayspin_core::{Error, Real, Result, expect_shape};
use rayspin_device::{Array, Backend};

use crate::fft::check_trailing;
use crate::vector::expect_device;

/// y(x) = e^{i2πf(x)τ} x(x), optionally added to y. `field` (Hz) is `[image…]`, `x` and `y` are `[batch..,
/// image…]`, and τ is in seconds, of either sign. The phase e^{−i2πfτ} of an encoding takes −τ.
///
/// Errors: shapes that do not fit, or different devices.
///
/// ```
/// use rayspin_core::C64;
/// use rayspin_device::{Array, Device};
/// use rayspin_kernels::off_resonance::modulate;
///
/// let device = Device::cpu()?;
/// let field = Array::from_vec(&device, &[2], vec![0.0, 25.0])?; // Hz
/// let image = Array::from_vec(&device, &[2], vec![C64::ONE; 2])?;
/// let mut turned = Array::zeros(&device, &[2])?;
/// modulate(&field, -0.01, &image, &mut turned, false)?; // after 10 ms
/// let turned = turned.to_vec()?;
/// assert!((turned[0] - 1.0).norm() < 1e-12 && (turned[1] + C64::I).norm() < 1e-12);
/// # Ok::<(), rayspin_core::Error>(())
/// ```
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

/// The weights of one segment at the samples: `table[segment, index[m]]`, or their conjugates. `table` is
/// `[segment, time]`, and `index` is `[sample]`.
///
/// Every entry of `index` must be below the number of times in the table; [`Segments`] ensures it.
#[derive(Clone, Copy)]
struct SegmentWeights<'a, R: Real> {
    table: &'a Array<Complex<R>>,
    segment: usize,
    index: &'a Array<u32>,
    conjugate: bool,
}

/// y = w ⊙ x, optionally added to y. `x` and `y` are `[batch.., sample]`.
fn weigh<R: Real>(
    weights: SegmentWeights<'_, R>,
    x: &Array<Complex<R>>,
    y: &mut Array<Complex<R>>,
    add: bool,
) -> Result<()> {
    let SegmentWeights { table, segment, index, conjugate } = weights;
    check_trailing("off-resonance: samples", index.shape(), x.shape())?;
    expect_shape("off-resonance: weighted samples", x.shape(), y.shape())?;
    expect_device("off-resonance", index.device(), x)?;
    expect_device("off-resonance", index.device(), y)?;
    if x.is_empty() {
        return Ok(());
    }
    match x.device().backend() {
        Backend::Cpu(cpu) => {
            let times = table.shape()[1];
            let by_time = table.cpu().get(segment * times..(segment + 1) * times).ok_or_else(|| {
                Error::value("segment of an off-resonance transform", "one that there is", segment)
            })?;
            let weights = Weights { by_time, index: index.cpu(), conjugate };
            (cpu::vectors().weigh)(cpu, weights, x.cpu(), y.cpu_mut(), add);
        }
        Backend::Cuda(cuda) => cuda::weigh(cuda, weights, x, y, add)?,
    }
    Ok(())
}
