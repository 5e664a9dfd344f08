use num_complex::Complex;
use rayspin_core::{Real, Result};
use rayspin_device::{Array, Device};
use rayspin_kernels::fft::{Fft, Norm};
use rayspin_kernels::vector;

use crate::LinearOp;

/// The unitary centred discrete Fourier transform of the last axes, Fᴴ = F⁻¹:
/// y\[k\] = 1/√N Σ_x x\[x\] e^{−i2πk·x/n}, index ⌊n/2⌋ being position 0 and frequency 0.
///
/// ```
/// use rayspin_device::Device;
/// use rayspin_linop::{Fourier, laws};
///
/// let device = Device::cpu()?;
/// let fourier = Fourier::<f32>::new(&device, &[8], &[12, 10])?;
/// let report = laws::check_unitary(&fourier, &device, 1, 1e-5)?;
/// assert!(report.adjointness < 1e-5);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Fourier<R: Real> {
    shape: Vec<usize>,
    fft: Fft<R>,
}

impl<R: Real> Fourier<R> {
    /// Transforms `matrix`, 1 to 3 axes, of arrays `[batch…, matrix…]`. Errors: another rank, or an empty
    /// axis.
    pub fn new(device: &Device, batch: &[usize], matrix: &[usize]) -> Result<Self> {
        Ok(Self { shape: [batch, matrix].concat(), fft: Fft::new(device, matrix, Norm::Unitary)? })
    }
}

impl<R: Real> LinearOp<Complex<R>> for Fourier<R> {
    fn name(&self) -> &str {
        "Fourier"
    }
    fn domain(&self) -> &[usize] {
        &self.shape
    }
    fn range(&self) -> &[usize] {
        &self.shape
    }
    fn forward_into(&self, x: &Array<Complex<R>>, y: &mut Array<Complex<R>>) -> Result<()> {
        self.check_forward(x, y)?;
        vector::copy_part(x, 0, y, 0, x.len())?;
        self.fft.forward(y)
    }
    fn adjoint_into(&self, y: &Array<Complex<R>>, x: &mut Array<Complex<R>>) -> Result<()> {
        self.check_adjoint(y, x)?;
        vector::copy_part(y, 0, x, 0, y.len())?;
        self.fft.inverse(x)
    }
    fn normal_into(&self, x: &Array<Complex<R>>, y: &mut Array<Complex<R>>) -> Result<()> {
        self.check_normal(x, y)?;
        vector::copy_part(x, 0, y, 0, x.len())
    }
}
