//! Centred N-dimensional complex FFT of any size, over the last axes of an array.

pub mod cpu;
pub(crate) mod cuda;
mod ladder;
pub mod reference;
#[cfg(test)]
mod tests;
mod variants;

use num_complex::Complex;
use rayspin_core::{Error, Real, Result, expect_shape, format_shape};
use rayspin_device::{Array, Backend, Device};

pub use cpu::Direction;
use cpu::{FftNd, Options};
pub(crate) use ladder::ladder;
pub(crate) use variants::work;
pub use variants::{Implementation, Problem, VARIANTS};

/// How a transform is scaled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Norm {
    /// Neither direction: inverse ∘ forward = N.
    None,
    /// 1/√N in both directions: each is the other's inverse and adjoint.
    Unitary,
}

/// X\[k\] = s Σ_x x\[x\] e^{−i2π Σ_a k_a x_a / n_a} and its adjoint, where index ⌊n/2⌋ is position 0 and
/// frequency 0 along every axis, and s is 1 or 1/√N ([`Norm`]).
///
/// Transforms the last axes of an array; all leading axes are a batch. Any sizes: odd, prime and 1 included.
///
/// ```
/// use rayspin_core::C32;
/// use rayspin_device::{Array, Device};
/// use rayspin_kernels::fft::{Fft, Norm};
///
/// let device = Device::cpu()?;
/// let fft = Fft::new(&device, &[6, 5], Norm::Unitary)?;
/// let mut image = Array::from_vec(&device, &[6, 5], vec![C32::ONE; 30])?;
/// fft.forward(&mut image)?;
/// // An even image is one number at the centre, [3, 2].
/// assert!((image.to_host()?[[3, 2]].re - 30f32.sqrt()).abs() < 1e-5);
/// # Ok::<(), rayspin_core::Error>(())
/// ```
#[derive(Debug)]
pub struct Fft<R: Real> {
    device: Device,
    shape: Vec<usize>,
    engine: Engine<R>,
    scale: R,
}

#[derive(Debug)]
enum Engine<R: Real> {
    /// The CPU's plan. For lengths that a GPU's kernels refuse, a GPU's data go to the host and back.
    Host(FftNd<R>),
    Gpu(cuda::GpuFft<R>),
}

impl<R: Real> Fft<R> {
    /// Plans transforms of `shape`, 1 to 3 axes, on `device`.
    ///
    /// Errors: another rank, an empty axis, or a size beyond the address space.
    pub fn new(device: &Device, shape: &[usize], norm: Norm) -> Result<Self> {
        cpu::check_shape(shape)?;
        let gpu = match device.backend() {
            Backend::Cpu(_) => None,
            Backend::Cuda(_) => cuda::GpuFft::new(device, shape)?,
        };
        let engine = match gpu {
            Some(gpu) => Engine::Gpu(gpu),
            None => Engine::Host(FftNd::new(shape)?),
        };
        let scale = match norm {
            Norm::None => R::one(),
            Norm::Unitary => <R as Real>::from_f64(1.0 / (shape.iter().product::<usize>() as f64).sqrt()),
        };
        Ok(Self { device: device.clone(), shape: shape.to_vec(), engine, scale })
    }

    /// The shape of one transform.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Image → k-space, e^{−i2πk·x}, in place. Errors: `data` is not `[batch.., shape..]`, or lives on
    /// another device.
    pub fn forward(&self, data: &mut Array<Complex<R>>) -> Result<()> {
        self.run(data, Direction::Forward)
    }

    /// k-space → image, e^{+i2πk·x}, in place: the adjoint of [`Fft::forward`], and its inverse when unitary.
    /// Errors: as [`Fft::forward`].
    pub fn inverse(&self, data: &mut Array<Complex<R>>) -> Result<()> {
        self.run(data, Direction::Inverse)
    }

    fn run(&self, data: &mut Array<Complex<R>>, direction: Direction) -> Result<()> {
        check_device("FFT", &self.device, data.device())?;
        check_trailing("FFT", self.shape(), data.shape())?;
        match &self.engine {
            Engine::Gpu(gpu) => gpu.run(data.cuda_mut(), direction == Direction::Inverse, self.scale, true),
            Engine::Host(engine) => {
                let options = Options { scale: self.scale, centred: true, ..Options::new(direction) };
                let cpu = self.device.cpu_side();
                data.update(|data| engine.process_with(cpu, data, &options))?
            }
        }
    }
}

/// Fails unless the last axes of `actual` are `shape`.
pub(crate) fn check_trailing(what: &str, shape: &[usize], actual: &[usize]) -> Result<()> {
    if actual.len() < shape.len() {
        return Err(Error::Shape {
            what: what.into(),
            expected: format!("[.., {}", &format_shape(shape)[1..]),
            found: format_shape(actual),
        });
    }
    expect_shape(&format!("{what}, last axes"), shape, &actual[actual.len() - shape.len()..])
}

/// Fails unless both handles are the same device.
pub(crate) fn check_device(what: &str, plan: &Device, array: &Device) -> Result<()> {
    if plan.same_as(array) {
        Ok(())
    } else {
        Err(Error::value(
            format!("{what}, device of the array"),
            plan.describe(),
            format!("another device: {}", array.describe()),
        ))
    }
}
