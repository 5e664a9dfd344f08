use num_complex::Complex;
use rayspin_core::{Error, Real, Result};
use rayspin_device::{Array, Device};
use rayspin_kernels::{vector, wavelet};

use crate::LinearOp;

/// The filter of a [`Wavelet`].
pub use rayspin_kernels::wavelet::Family as WaveletFamily;

/// W: the orthogonal wavelet transform of an image of 1 to 3 axes and any size, WᴴW = WWᴴ = 1. The image is
/// first shifted on a torus. See [`rayspin_kernels::wavelet::Wavelet`].
///
/// ```
/// use rayspin_device::Device;
/// use rayspin_linop::{Wavelet, WaveletFamily, laws};
///
/// let device = Device::cpu()?;
/// let wavelet = Wavelet::<f32>::new(&[17, 24], WaveletFamily::Haar)?;
/// laws::check_unitary(&wavelet, &device, 1, 1e-5)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Wavelet<R: Real> {
    kernel: wavelet::Wavelet<R>,
    shift: Vec<usize>,
}

impl<R: Real> Wavelet<R> {
    /// For images of `shape`, not shifted. Errors: another rank, an empty axis.
    pub fn new(shape: &[usize], family: WaveletFamily) -> Result<Self> {
        Self::with_levels(shape, family, None)
    }

    /// With `levels` levels, or as many as the shape allows if `None`. Errors: as [`Wavelet::new`]; 0 levels,
    /// or more than the shape allows.
    pub fn with_levels(shape: &[usize], family: WaveletFamily, levels: Option<usize>) -> Result<Self> {
        Ok(Self { kernel: wavelet::Wavelet::new(shape, family, levels)?, shift: vec![0; shape.len()] })
    }

    /// Sets the shift: from now on W transforms x(i + shift). Errors: another number of axes.
    pub fn set_shift(&mut self, shift: &[usize]) -> Result<()> {
        if shift.len() != self.shift.len() {
            return Err(Error::value(
                "shift of a wavelet transform",
                format!("{} numbers", self.shift.len()),
                format!("{shift:?}"),
            ));
        }
        self.shift.copy_from_slice(shift);
        Ok(())
    }

    /// 1 for details and 0 for coefficients that are low-pass along every axis, in the order of the
    /// coefficients. A threshold should touch the details only.
    pub fn details(&self, device: &Device) -> Result<Array<R>> {
        Array::from_vec(device, self.domain(), self.kernel.plan().details())
    }
}

impl<R: Real> LinearOp<Complex<R>> for Wavelet<R> {
    fn name(&self) -> &str {
        "wavelet"
    }
    fn domain(&self) -> &[usize] {
        self.kernel.plan().shape()
    }
    fn range(&self) -> &[usize] {
        self.kernel.plan().shape()
    }
    fn forward_into(&self, x: &Array<Complex<R>>, y: &mut Array<Complex<R>>) -> Result<()> {
        self.check_forward(x, y)?;
        self.kernel.forward(&self.shift, x, y)
    }
    fn adjoint_into(&self, y: &Array<Complex<R>>, x: &mut Array<Complex<R>>) -> Result<()> {
        self.check_adjoint(y, x)?;
        self.kernel.inverse(&self.shift, y, x)
    }
    fn normal_into(&self, x: &Array<Complex<R>>, y: &mut Array<Complex<R>>) -> Result<()> {
        self.check_normal(x, y)?;
        vector::copy_part(x, 0, y, 0, x.len())
    }
}
