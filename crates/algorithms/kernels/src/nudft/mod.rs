//! Exact non-uniform discrete Fourier transforms by direct summation, and the kernel Q of their normal
//! operator.
//!
//! Image → samples (type 2): d_m = Σ_x ρ(x) e^{−i2πk_m·x}. Samples → image (type 1, its adjoint):
//! ρ(x) = Σ_m d_m e^{+i2πk_m·x}. Neither is scaled. Q(x) = Σ_m w_m e^{+i2πk_m·x} on the displacements between
//! voxels turns the normal operator FᴴWF into a convolution. See the folder's README for how they are
//! computed and how fast.
//!
//! Cost is O(MN); [`forward_at`], [`adjoint_at`] and [`q_at`] evaluate chosen outputs of any problem in
//! double precision, to certify a faster transform's result.

mod cpu;
mod cuda;
pub mod grid;
mod ladder;
pub mod reference;
#[cfg(test)]
mod tests;
mod tune;
mod variants;

use std::any::TypeId;
use std::fmt;

use num_complex::Complex;
use rayspin_core::{Error, Real, Result, Trajectory, expect_shape, format_shape};
use rayspin_device::cpu::simd::SimdReal;

use rayspin_device::{Array, Backend, Device, Element};
use rayspin_tune::{Config, input};

use crate::variant::Variant;
pub use cuda::CudaVariant;
pub(crate) use cuda::PHASE;
use grid::Grid;
pub use ladder::Direct;
pub(crate) use ladder::random_trajectory;
use reference::grid_of;
pub use reference::{adjoint_at, forward_at, q_at};
use tune::{Cut, Host};
use variants::Transform;
pub(crate) use variants::builds;
pub use variants::{CpuImplementation, Implementation, variants};

/// Which transform.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Image → samples.
    Forward,
    /// Samples → image.
    Adjoint,
    /// Real weights → displacements.
    Q,
}

/// A transform's size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Which transform.
    pub operation: Operation,
    /// Image shape without batch, 1 to 3 axes.
    pub matrix: Vec<usize>,
    /// Number of samples.
    pub samples: usize,
    /// Number of images; 1 for Q.
    pub batch: usize,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let matrix: Vec<_> = self.matrix.iter().map(ToString::to_string).collect();
        write!(f, "{} voxels, {} samples, {:.2e} pairs", matrix.join(" x "), self.samples, self.pairs())
    }
}

impl Problem {
    /// Pairs of a sample and a point. The time is proportional to their number.
    pub fn pairs(&self) -> f64 {
        let points: f64 = self.matrix.iter().map(|&n| n as f64).product();
        let doubled = match self.operation {
            Operation::Q => f64::powi(2.0, self.matrix.len() as i32),
            Operation::Forward | Operation::Adjoint => 1.0,
        };
        points * doubled * self.samples as f64 * self.batch as f64
    }

    /// Operations as “CUDA application development” (lecture) counts them. A pair of Q takes 12: six of the
    /// phase, two for its sine and cosine, and four of a complex number times a real one, added up. A pair of
    /// complex numbers, forward or adjoint, takes 16: eight of a complex multiply-add.
    pub fn flops(&self) -> f64 {
        let pair = match self.operation {
            Operation::Q => 12.0,
            Operation::Forward | Operation::Adjoint => 16.0,
        };
        pair * self.pairs()
    }
}

/// d\[.., m\] = Σ_x ρ\[.., x\] e^{−i2πk_m·x}: image `[batch.., matrix..]` → samples `[batch.., sample]`.
///
/// x = (index − n/2)/n along each axis, and k is in cycles per field of view. The matrix has as many axes as
/// the trajectory has dimensions. The relative error is 1e-6 for f32 and 1e-12 for f64. The call takes as
/// much memory again as the image. For arrays on a GPU the CPU does the work.
///
/// Errors: shapes that do not match, arrays on different devices.
///
/// ```
/// use ndarray::array;
/// use rayspin_core::{C64, Trajectory};
/// use rayspin_device::{Array, Device};
/// use rayspin_kernels::nudft;
///
/// let device = Device::cpu()?;
/// let trajectory = Trajectory::from_cycles_per_fov(array![[0.0], [1.0]])?;
/// let image = Array::from_vec(&device, &[4], [0.0, 0.0, 2.0, 1.0].map(C64::from).to_vec())?; // x = −½ … ¼
/// let mut samples = Array::zeros(&device, &[2])?;
/// nudft::forward(&trajectory, &image, &mut samples)?;
/// let samples = samples.to_vec()?;
/// assert!((samples[0] - 3.0).norm() < 1e-12);
/// assert!((samples[1] - C64::new(2.0, -1.0)).norm() < 1e-12); // 2 + e^{−iπ/2}
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn forward<R: Real>(
    trajectory: &Trajectory,
    image: &Array<Complex<R>>,
    samples: &mut Array<Complex<R>>,
) -> Result<()> {
    if is_single::<R>() {
        run_forward(&best_f32(), &Config::default(), trajectory, image, samples)
    } else {
        run_forward(&best_f64(), &Config::default(), trajectory, image, samples)
    }
}

/// ρ\[.., x\] = Σ_m d\[.., m\] e^{+i2πk_m·x}: samples `[batch.., sample]` → image `[batch.., matrix..]`.
///
/// The adjoint of [`forward`], with its conventions, accuracy and errors.
///
/// ```
/// use ndarray::array;
/// use rayspin_core::{C64, Trajectory};
/// use rayspin_device::{Array, Device};
/// use rayspin_kernels::nudft;
///
/// let device = Device::cpu()?;
/// let trajectory = Trajectory::from_cycles_per_fov(array![[1.0]])?;
/// let samples = Array::from_vec(&device, &[1], vec![C64::ONE])?;
/// let mut image = Array::zeros(&device, &[4])?;
/// nudft::adjoint(&trajectory, &samples, &mut image)?;
/// let wanted = [-C64::ONE, -C64::I, C64::ONE, C64::I]; // e^{+i2πx} at x = −½, −¼, 0, ¼
/// assert!(image.to_vec()?.iter().zip(wanted).all(|(a, b)| (a - b).norm() < 1e-12));
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn adjoint<R: Real>(
    trajectory: &Trajectory,
    samples: &Array<Complex<R>>,
    image: &mut Array<Complex<R>>,
) -> Result<()> {
    let device = samples.device();
    let problem = problem(Operation::Adjoint, trajectory, matrix_of(trajectory, image.shape()));
    if is_single::<R>() {
        let (implementation, config) = tuned_f32(&problem, device);
        run_adjoint(&implementation, &config, trajectory, samples, image)
    } else {
        let (implementation, config) = tuned_f64(&problem, device);
        run_adjoint(&implementation, &config, trajectory, samples, image)
    }
}

/// Q\[x\] = Σ_m w_m e^{+i2πk_m·x} at the displacements between the voxels of `matrix`: real weights
/// `[sample]` (or 1) → `[2nz, 2ny, 2nx]`.
///
/// Spacing is 1/n along each axis and index n is displacement 0. Conventions, accuracy and errors as
/// [`forward`].
///
/// ```
/// use ndarray::array;
/// use rayspin_core::{C64, Trajectory};
/// use rayspin_device::{Array, Device};
/// use rayspin_kernels::nudft;
///
/// let device = Device::cpu()?;
/// let trajectory = Trajectory::from_cycles_per_fov(array![[0.3], [-1.7], [2.0]])?;
/// let mut q = Array::<C64>::zeros(&device, &[8])?; // twice the matrix
/// nudft::q(&trajectory, None, &[4], &mut q)?;
/// let q = q.to_vec()?;
/// assert!((q[4] - 3.0).norm() < 1e-12); // displacement 0 sums the weights
/// assert!((q[5] - q[3].conj()).norm() < 1e-12); // Hermitian
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn q<R: Real>(
    trajectory: &Trajectory,
    weights: Option<&Array<R>>,
    matrix: &[usize],
    out: &mut Array<Complex<R>>,
) -> Result<()> {
    let device = out.device();
    let problem = problem(Operation::Q, trajectory, matrix);
    if is_single::<R>() {
        let (implementation, config) = tuned_f32(&problem, device);
        run_q(&implementation, &config, trajectory, weights, matrix, out)
    } else {
        let (implementation, config) = tuned_f64(&problem, device);
        run_q(&implementation, &config, trajectory, weights, matrix, out)
    }
}

/// [`forward`] by a given variant, its parameters at their defaults.
pub fn forward_with<T: SimdReal>(
    variant: &Variant<Problem, Implementation<T>>,
    trajectory: &Trajectory,
    image: &Array<Complex<T>>,
    samples: &mut Array<Complex<T>>,
) -> Result<()> {
    run_forward(&variant.implementation, &by_default(variant), trajectory, image, samples)
}

/// [`adjoint`] by a given variant, its parameters at their defaults.
pub fn adjoint_with<T: SimdReal>(
    variant: &Variant<Problem, Implementation<T>>,
    trajectory: &Trajectory,
    samples: &Array<Complex<T>>,
    image: &mut Array<Complex<T>>,
) -> Result<()> {
    run_adjoint(&variant.implementation, &by_default(variant), trajectory, samples, image)
}

/// [`q`] by a given variant, its parameters at their defaults.
pub fn q_with<T: SimdReal>(
    variant: &Variant<Problem, Implementation<T>>,
    trajectory: &Trajectory,
    weights: Option<&Array<T>>,
    matrix: &[usize],
    out: &mut Array<Complex<T>>,
) -> Result<()> {
    run_q(&variant.implementation, &by_default(variant), trajectory, weights, matrix, out)
}

/// The parameters of a row are open to any problem alike.
fn by_default<T: SimdReal>(variant: &Variant<Problem, Implementation<T>>) -> Config {
    let any = Problem { operation: Operation::Adjoint, matrix: vec![1], samples: 1, batch: 1 };
    (variant.space)(&any).default_config()
}

/// The image's own axes: the last of `shape`, as many as the trajectory has.
fn matrix_of<'a>(trajectory: &Trajectory, shape: &'a [usize]) -> &'a [usize] {
    &shape[shape.len().saturating_sub(trajectory.dims())..]
}

/// The problem as the tuner sees it: batches share their configuration.
fn problem(operation: Operation, trajectory: &Trajectory, matrix: &[usize]) -> Problem {
    Problem { operation, matrix: matrix.to_vec(), samples: trajectory.samples(), batch: 1 }
}

// Not generic, so that callers do not compile the kernels anew.
#[inline(never)]
fn best_f32() -> Implementation<f32> {
    variants::mirrored().implementation
}

#[inline(never)]
fn best_f64() -> Implementation<f64> {
    variants::mirrored().implementation
}

#[inline(never)]
fn tuned_f32(problem: &Problem, device: &Device) -> (Implementation<f32>, Config) {
    tune::best(problem, device)
}

#[inline(never)]
fn tuned_f64(problem: &Problem, device: &Device) -> (Implementation<f64>, Config) {
    tune::best(problem, device)
}

fn is_single<R: Real>() -> bool {
    TypeId::of::<R>() == TypeId::of::<f32>()
}

// R and T below are the same type, under the bounds that callers above this crate have (R) and kernels need
// (T).

fn run_forward<R: Real, T: SimdReal>(
    implementation: &Implementation<T>,
    config: &Config,
    trajectory: &Trajectory,
    image: &Array<Complex<R>>,
    samples: &mut Array<Complex<R>>,
) -> Result<()> {
    expect_device("NUDFT samples", image, samples)?;
    let grid = check("NUDFT image", trajectory, image.shape(), samples.shape())?;
    let device = image.device().clone();
    let implementation = match (implementation, device.backend()) {
        (Implementation::Cpu(implementation), _) => implementation,
        (Implementation::Cuda(CudaVariant::Naive), Backend::Cuda(cuda)) => {
            if image.is_empty() || samples.is_empty() {
                return Ok(());
            }
            return cuda::forward(cuda, config, trajectory, &grid, image, samples);
        }
        (Implementation::Cuda(_), Backend::Cuda(_)) => {
            return Err(Error::value(
                "NUDFT variant",
                "one for image to samples",
                "one for samples to image",
            ));
        }
        (Implementation::Cuda(_), Backend::Cpu(_)) => return Err(needs_gpu()),
    };
    let host = Host { cpu: device.cpu_side(), cut: Cut::of(config)? };
    let image = image.read()?;
    samples.update(|samples| {
        let (image, samples) = (cast(&image)?, cast_mut(samples)?);
        if !(image.is_empty() || samples.is_empty()) {
            (implementation.forward)(&host, trajectory, &grid, image, samples)?;
        }
        Ok(())
    })?
}

fn run_adjoint<R: Real, T: SimdReal>(
    implementation: &Implementation<T>,
    config: &Config,
    trajectory: &Trajectory,
    samples: &Array<Complex<R>>,
    image: &mut Array<Complex<R>>,
) -> Result<()> {
    expect_device("NUDFT image", samples, image)?;
    let grid = check("NUDFT image", trajectory, image.shape(), samples.shape())?;
    let device = samples.device().clone();
    let implementation = match (implementation, device.backend()) {
        (Implementation::Cpu(implementation), _) => implementation,
        (Implementation::Cuda(variant), Backend::Cuda(cuda)) => {
            if image.is_empty() || samples.is_empty() {
                return Ok(());
            }
            return cuda::adjoint(
                cuda,
                cuda::Chosen { variant: *variant, config },
                trajectory,
                &grid,
                samples,
                image,
            );
        }
        (Implementation::Cuda(_), Backend::Cpu(_)) => return Err(needs_gpu()),
    };
    let host = Host { cpu: device.cpu_side(), cut: Cut::of(config)? };
    let samples = samples.read()?;
    image.update(|image| {
        let (samples, image) = (cast(&samples)?, cast_mut(image)?);
        if !(image.is_empty() || samples.is_empty()) {
            (implementation.adjoint)(&host, trajectory, &grid, samples, image)?;
        }
        Ok(())
    })?
}

fn run_q<R: Real, T: SimdReal>(
    implementation: &Implementation<T>,
    config: &Config,
    trajectory: &Trajectory,
    weights: Option<&Array<R>>,
    matrix: &[usize],
    out: &mut Array<Complex<R>>,
) -> Result<()> {
    grid_of(trajectory, Grid::displacements(matrix)?)?;
    let doubled: Vec<usize> = matrix.iter().map(|n| n.saturating_mul(2)).collect();
    expect_shape("Q", &doubled, out.shape())?;
    if let Some(weights) = weights {
        expect_device("Q", weights, out)?;
        expect_shape("Q weights", &[trajectory.samples()], weights.shape())?;
    }
    let device = out.device().clone();
    let implementation = match (implementation, device.backend()) {
        (Implementation::Cpu(implementation), _) => implementation,
        (Implementation::Cuda(variant), Backend::Cuda(cuda)) => {
            let chosen = cuda::Chosen { variant: *variant, config };
            return cuda::q(cuda, chosen, trajectory, matrix, weights.map(Array::cuda), out);
        }
        (Implementation::Cuda(_), Backend::Cpu(_)) => return Err(needs_gpu()),
    };
    let host = Host { cpu: device.cpu_side(), cut: Cut::of(config)? };
    let given = weights.map(Array::read).transpose()?;
    let ones;
    let weights = match &given {
        Some(weights) => cast(weights)?,
        None => {
            ones = input::filled(host.cpu, "weights", trajectory.samples(), |_| T::one())?;
            &ones
        }
    };
    out.update(|out| (implementation.q)(&host, trajectory, matrix, weights, cast_mut(out)?))?
}

fn needs_gpu() -> Error {
    Error::value("NUDFT variant", "one for the CPU", "one for a GPU")
}

/// The grid of an image `[batch.., matrix..]` beside samples `[batch.., sample]`.
fn check(what: &str, trajectory: &Trajectory, image: &[usize], samples: &[usize]) -> Result<Grid> {
    let dims = trajectory.dims();
    let Some(lead) = image.len().checked_sub(dims) else {
        return Err(Error::Shape {
            what: what.into(),
            expected: format!("batch axes and {dims} image axes"),
            found: format_shape(image),
        });
    };
    let (batch, matrix) = image.split_at(lead);
    let expected = [batch, &[trajectory.samples()]].concat();
    expect_shape("NUDFT samples", &expected, samples)?;
    Grid::image(matrix)
}

fn expect_device<A: Element, B: Element>(what: &str, input: &Array<A>, output: &Array<B>) -> Result<()> {
    if input.device().same_as(output.device()) {
        return Ok(());
    }
    let (expected, other) = (input.device().describe(), output.device().describe());
    Err(Error::value(format!("{what}, device"), expected, format!("another device: {other}")))
}

fn cast<A: Element, B: Element>(values: &[A]) -> Result<&[B]> {
    bytemuck::try_cast_slice(values).map_err(|e| Error::value("NUDFT precision", "f32 or f64", e))
}

fn cast_mut<A: Element, B: Element>(values: &mut [A]) -> Result<&mut [B]> {
    bytemuck::try_cast_slice_mut(values).map_err(|e| Error::value("NUDFT precision", "f32 or f64", e))
}
