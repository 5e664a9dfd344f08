//! Centred N-dimensional complex FFT of any size, over the last axes of an array.

pub mod cpu;
pub(crate) mod cuda;
pub mod reference;
#[cfg(test)]
mod tests;

use num_complex::Complex;
use rayspin_core::{C32, Error, Real, Result, expect_shape, format_shape};
use rayspin_device::{Array, Backend, BackendKind, Cpu, Device};

pub use cpu::Direction;
use cpu::{FftNd, Options, Strategy};

use crate::variant::{Variant, Work, runs_all};

/// What a variant is given.
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

/// Entry point of a variant: plan, data (transformed in place, index 0 being position and frequency 0), direction.
pub type Launch = fn(&Cpu, &FftNd<f32>, &mut [C32], Direction) -> Result<()>;

/// Every variant, slowest first; the last is what [`Fft`] runs.
pub static VARIANTS: &[Variant<Problem, Launch>] = &[
    Variant {
        name: "lines",
        backend: BackendKind::Cpu,
        summary: "one line at a time, one thread",
        launch: |_, fft, data, direction| {
            cpu::lines::process(fft, data, direction);
            Ok(())
        },
        refuses: runs_all,
        work,
        tolerance: TOLERANCE,
        reproduces: None,
    },
    Variant {
        name: "columns",
        backend: BackendKind::Cpu,
        summary: "32 columns transposed at a time, every axis one pass over memory, all cores",
        launch: |cpu, fft, data, direction| {
            let strategy = Strategy { lanes: false, local: false };
            fft.process_by(cpu, data, &Options::new(direction), strategy)
        },
        refuses: runs_all,
        work,
        tolerance: TOLERANCE,
        reproduces: None,
    },
    Variant {
        name: "planes",
        backend: BackendKind::Cpu,
        summary: "columns, and trailing axes that fit a core's cache in one pass over memory",
        launch: |cpu, fft, data, direction| {
            let strategy = Strategy { lanes: false, local: true };
            fft.process_by(cpu, data, &Options::new(direction), strategy)
        },
        refuses: runs_all,
        work,
        tolerance: TOLERANCE,
        reproduces: None,
    },
    Variant {
        name: "lanes",
        backend: BackendKind::Cpu,
        summary: "planes, and 32 columns transformed at a time, one a SIMD lane, without transposition",
        launch: |cpu, fft, data, direction| fft.process(cpu, data, direction),
        refuses: runs_all,
        work,
        tolerance: TOLERANCE,
        reproduces: None,
    },
];

/// Rounding of the stages of a transform in f32; 1.7e-7 at most was measured.
const TOLERANCE: f64 = 1e-6;

/// Every element read and written once; 5 N log₂ N operations, the count that FFT rates are stated with.
pub(crate) fn work(problem: &Problem) -> Work {
    let n = problem.shape.iter().product::<usize>() as f64;
    let batch = problem.batch as f64;
    Work { bytes: batch * n * 2.0 * size_of::<C32>() as f64, flops: batch * 5.0 * n * n.max(2.0).log2() }
}

/// How a transform is scaled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Norm {
    /// Neither direction: inverse ∘ forward = N.
    None,
    /// 1/√N in both directions: each is the other's inverse and adjoint.
    Unitary,
}

/// X\[k\] = s Σ_x x\[x\] e^{−i2π Σ_a k_a x_a / n_a} and its adjoint, where index ⌊n/2⌋ is position 0 and frequency 0 along
/// every axis, and s is 1 or 1/√N ([`Norm`]).
///
/// Transforms the last axes of an array; all leading axes are a batch. Any sizes: odd, prime and 1 included.
#[derive(Debug)]
pub struct Fft<R: Real> {
    device: Device,
    shape: Vec<usize>,
    engine: Engine<R>,
    scale: R,
}

#[derive(Debug)]
enum Engine<R: Real> {
    /// The CPU's; a GPU's data visit the host for lengths that its kernels do not take.
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

    /// Image → k-space, e^{−i2πk·x}, in place. Errors: `data` is not `[batch.., shape..]`, or lives on another device.
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

/// Fails unless the last axes of `found` are `shape`.
pub(crate) fn check_trailing(what: &str, shape: &[usize], found: &[usize]) -> Result<()> {
    if found.len() < shape.len() {
        return Err(Error::Shape {
            what: what.into(),
            expected: format!("[.., {}", &format_shape(shape)[1..]),
            found: format_shape(found),
        });
    }
    expect_shape(&format!("{what}, last axes"), shape, &found[found.len() - shape.len()..])
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
