//! Non-uniform fast Fourier transform: type 2 (image → samples) and type 1 (samples → image), to a stated
//! tolerance.

mod coordinates;
mod cpu;
pub(crate) mod cuda;
mod deconvolve;
mod form;
pub(crate) mod kernel;
mod ladder;
pub(crate) mod layout;
mod memory;
pub mod reference;
#[cfg(test)]
mod sweep;
#[cfg(test)]
mod tests;
pub mod type3;
mod variants;

use num_complex::Complex;
use rayspin_core::{Error, Real, Result, expect_shape, format_shape};
use rayspin_device::cpu::Stop;
use rayspin_device::{Array, Backend, Device};

use crate::concrete::{other_type, same_mut, same_ref};
use kernel::Kernel;
use layout::Layout;

pub use coordinates::{Component, Coordinates};
pub use ladder::Fast;
pub use memory::Cost;
pub(crate) use memory::needs_of;
pub use type3::Type3;
pub use variants::{Interp, Problem, Spread, interp_variants, spread_variants};

/// The accuracy of a transform, and the upsampling of its fine grid.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Options {
    /// The relative l2 error ε for which the kernel is chosen: 1e-6 … 0.1 in f32, 1e-13 … 0.1 in f64. The
    /// error is about ε or less for points that are spread out, and at most [`BOUND`] · ε for any points.
    pub tolerance: f64,
    /// Fine-grid cells per voxel and axis, 1.25 … 2. `None` chooses the upsampling by its cost.
    pub upsampling: Option<f64>,
}

impl Default for Options {
    /// ε = 1e-5, the upsampling chosen.
    fn default() -> Self {
        Self { tolerance: 1e-5, upsampling: None }
    }
}

impl Options {
    /// The tolerance ε, the upsampling chosen.
    pub fn tolerance(tolerance: f64) -> Self {
        Self { tolerance, ..Self::default() }
    }

    /// The upsampling and its kernel. Unless the upsampling is given, it is the one with the least cost on
    /// this device.
    fn settle<R: Real>(&self, device: &Device, matrix: &[usize], samples: usize) -> Result<(f64, Kernel)> {
        match (self.upsampling, device.backend()) {
            (Some(upsampling), _) => {
                Ok((upsampling, kernel_for::<R>(self.tolerance, upsampling, matrix.len())?))
            }
            (None, Backend::Cpu(_)) => choose::<R>(self.tolerance, matrix, samples),
            (None, Backend::Cuda(_)) => {
                choose_by::<R>(self.tolerance, matrix, samples, &UPSAMPLINGS, cuda::cost::<R>)
            }
        }
    }
}

/// A transform's relative l2 error is at most this many times its tolerance ε, for any points and random
/// values. The largest factor in the tests' sweep over sizes, sets of points, tolerances and upsamplings is
/// 2.7, with all points in one place.
pub const BOUND: f64 = 3.0;

/// The largest tolerance accepted.
const LOOSEST: f64 = 0.1;

/// Type 2: s\[j\] = Σ_x f\[x\] e^{−i2πk_j·x}; type 1, its adjoint: f\[x\] = Σ_j s\[j\] e^{+i2πk_j·x};
/// x = (index − ⌊n/2⌋)/n along each axis, k in cycles per field of view. Neither is scaled.
///
/// The matrix is in C order (`[z, y, x]`, `[y, x]` or `[x]`), trajectory components in the order x, y, z. k
/// is periodic
/// with period n: points outside ±n/2 are folded. Points are sorted, and their places and kernel arguments
/// computed, once a trajectory. Results do not vary from run to run or with the number of threads.
///
/// Sources: Barnett, Magland & af Klinteberg, SIAM J. Sci. Comput. 41 (2019) C479 (structure); Jackson,
/// Meyer, Nishimura & Macovski, IEEE Trans. Med. Imaging 10 (1991) 473 (Kaiser–Bessel kernel).
///
/// ```
/// use rayspin_core::{C32, Trajectory};
/// use rayspin_device::{Array, Device};
/// use rayspin_kernels::nufft::{Nufft, Options};
///
/// let device = Device::cpu()?;
/// let points = ndarray::Array2::from_shape_fn((40, 2), |(i, d)| (i as f64 * 0.37 + d as f64).sin() * 4.0);
/// let trajectory = Trajectory::from_cycles_per_fov(points)?;
/// let plan = Nufft::<f32>::new(&device, &trajectory, &[8, 8], &Options::tolerance(1e-5))?;
/// let mut image = Array::zeros(&device, &[8, 8])?;
/// image.update(|values| values[8 * 4 + 4] = C32::ONE)?;
/// let mut samples = Array::zeros(&device, &[40])?;
/// plan.forward(&image, &mut samples)?;
/// // A point at the centre of the image has the value 1 everywhere.
/// assert!(samples.to_vec()?.iter().all(|s| (s - C32::ONE).norm() < 1e-4));
/// # Ok::<(), rayspin_core::Error>(())
/// ```
#[derive(Debug)]
pub struct Nufft<R: Real> {
    device: Device,
    matrix: Vec<usize>,
    samples: usize,
    upsampling: f64,
    kernel: Kernel,
    /// Shape of the fine grid.
    fine: Vec<usize>,
    engine: Engine<R>,
}

/// The part of the plan for its processor.
#[derive(Debug)]
enum Engine<R: Real> {
    Cpu(Box<cpu::Engine<R>>),
    Cuda(Box<cuda::Engine<R>>),
}

impl<R: Real> Nufft<R> {
    /// Plans transforms between images of `matrix` and samples at `points`: a
    /// [`&Trajectory`](rayspin_core::Trajectory), or [`Coordinates`] in memory of the host or of the plan's
    /// GPU.
    ///
    /// Errors: another number of axes than points have, an empty axis, numbers that are not finite, points on
    /// another device, a tolerance or upsampling out of range, sizes beyond the address space.
    pub fn new<'a>(
        device: &Device,
        points: impl Into<Coordinates<'a>>,
        matrix: &[usize],
        options: &Options,
    ) -> Result<Self> {
        let points = points.into();
        check_matrix(points.dims(), matrix)?;
        let (upsampling, kernel) = options.settle::<R>(device, matrix, points.samples())?;
        Self::with_kernel(device, points, matrix, upsampling, kernel)
    }

    /// The upsampling that [`Nufft::new`] chooses on this device for `samples` samples.
    ///
    /// Errors: a tolerance out of range.
    pub fn upsampling_for(device: &Device, tolerance: f64, matrix: &[usize], samples: usize) -> Result<f64> {
        Ok(Options { tolerance, upsampling: None }.settle::<R>(device, matrix, samples)?.0)
    }

    /// Plans with a kernel of the caller's choice.
    pub(crate) fn with_kernel<'a>(
        device: &Device,
        points: impl Into<Coordinates<'a>>,
        matrix: &[usize],
        upsampling: f64,
        kernel: Kernel,
    ) -> Result<Self> {
        let points = points.into();
        check_matrix(points.dims(), matrix)?;
        let layout = Layout::new::<R>(matrix, upsampling, &kernel)?;
        let fine = layout.fine[layout.outer()..].to_vec();
        let engine = match device.backend() {
            Backend::Cpu(_) => {
                check_memory::<R>(&layout, points.samples())?;
                Engine::Cpu(Box::new(cpu::Engine::new(device, &points, matrix, layout, &kernel)?))
            }
            Backend::Cuda(_) => {
                Engine::Cuda(Box::new(cuda::Engine::new(device, &points, matrix, &layout, &kernel)?))
            }
        };
        Ok(Self {
            device: device.clone(),
            matrix: matrix.to_vec(),
            samples: points.samples(),
            upsampling,
            kernel,
            fine,
            engine,
        })
    }

    /// Replaces the points. New points are a [`&Trajectory`](rayspin_core::Trajectory) or [`Coordinates`].
    /// The plan keeps its tolerance, upsampling and kernel.
    ///
    /// The fine grid stays, and on the CPU the new points are sorted into the memory of the old ones. This
    /// takes less time than a new plan. On a GPU the new points are sorted before the memory of the old ones
    /// is freed.
    ///
    /// Errors: another number of axes than the matrix has; numbers that are not finite; points on another
    /// device; sizes beyond the address space. The plan then stays as it was.
    pub fn set_points<'a>(&mut self, points: impl Into<Coordinates<'a>>) -> Result<()> {
        let points = points.into();
        check_matrix(points.dims(), &self.matrix)?;
        match &mut self.engine {
            Engine::Cpu(engine) => engine.set_points(&points, &self.matrix)?,
            Engine::Cuda(engine) => engine.gridding.set_points(&points)?,
        }
        self.samples = points.samples();
        Ok(())
    }

    /// Whether the plan has these points, as far as its transforms can tell: the points are sorted anew and
    /// compared. None on a GPU, where this is not known.
    ///
    /// Errors: as [`Nufft::set_points`].
    pub fn has_points<'a>(&self, points: impl Into<Coordinates<'a>>) -> Result<Option<bool>> {
        let points = points.into();
        check_matrix(points.dims(), &self.matrix)?;
        match &self.engine {
            Engine::Cpu(engine) => engine.has_points(&points, &self.matrix).map(Some),
            Engine::Cuda(_) => Ok(None),
        }
    }

    /// Type 2, image → samples: `image` is `[batch.., matrix..]`, `samples` `[batch.., sample]`, overwritten.
    ///
    /// Errors: shapes that do not match, arrays of another device, or no memory for the fine grid.
    pub fn forward(&self, image: &Array<Complex<R>>, samples: &mut Array<Complex<R>>) -> Result<()> {
        self.check(image, samples)?;
        if let (Some(plan), Some(image), Some(samples)) = (same_ref(self), same_ref(image), same_mut(samples))
        {
            forward_f32(plan, image, samples)
        } else if let (Some(plan), Some(image), Some(samples)) =
            (same_ref(self), same_ref(image), same_mut(samples))
        {
            forward_f64(plan, image, samples)
        } else {
            Err(other_type::<R>())
        }
    }

    /// Type 1, samples → image, the adjoint of [`Nufft::forward`]: `samples` is `[batch.., sample]`, `image`
    /// `[batch.., matrix..]`, overwritten.
    ///
    /// Errors: as [`Nufft::forward`].
    pub fn adjoint(&self, samples: &Array<Complex<R>>, image: &mut Array<Complex<R>>) -> Result<()> {
        self.check(image, samples)?;
        if let (Some(plan), Some(samples), Some(image)) = (same_ref(self), same_ref(samples), same_mut(image))
        {
            adjoint_f32(plan, samples, image)
        } else if let (Some(plan), Some(samples), Some(image)) =
            (same_ref(self), same_ref(samples), same_mut(image))
        {
            adjoint_f64(plan, samples, image)
        } else {
            Err(other_type::<R>())
        }
    }

    /// The matrix, in C order.
    pub fn matrix(&self) -> &[usize] {
        &self.matrix
    }

    /// Number of samples of the trajectory.
    pub fn samples(&self) -> usize {
        self.samples
    }

    /// The device of the plan.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The upsampling in use.
    pub fn upsampling(&self) -> f64 {
        self.upsampling
    }

    /// Width of the kernel in fine-grid cells.
    pub fn width(&self) -> usize {
        self.kernel.width
    }

    /// Shape of the fine grid, in C order.
    pub fn fine_shape(&self) -> &[usize] {
        &self.fine
    }

    /// Bytes that the plan and its workspace hold while a batch of that many items is transformed.
    ///
    /// On the CPU in 2-D, type 2 takes groups of four items (f32) or two items (f64) of a batch together, on
    /// as many fine grids. If memory for these is short, it takes one item after the other.
    pub fn bytes(&self, batch: usize) -> u64 {
        match &self.engine {
            Engine::Cpu(engine) => engine.bytes(batch),
            Engine::Cuda(engine) => engine.bytes(batch),
        }
    }

    /// Whether one thread transforms images of as many elements about as soon as several do.
    fn is_small(&self, elements: usize) -> bool {
        let items = elements / self.matrix.iter().product::<usize>().max(1);
        let one = cost::<R>(&self.matrix, self.upsampling, self.kernel.width, self.samples);
        items as f64 * one < SMALL
    }

    /// ∫φ over all axes, in fine-grid cells.
    pub(crate) fn kernel_integral(&self) -> f64 {
        self.kernel.fourier(0.0).powi(self.matrix.len() as i32)
    }

    /// `out` ← interpolation after spreading, without transforms: out_i = Σ_j (φ∗φ)(u_i − u_j) samples_j, as
    /// a sum over fine-grid cells. Both are `[sample]`.
    pub(crate) fn convolve(&self, samples: &Array<Complex<R>>, out: &mut Array<Complex<R>>) -> Result<()> {
        crate::fft::check_device("NUFFT", &self.device, samples.device())?;
        crate::fft::check_device("NUFFT", &self.device, out.device())?;
        expect_shape("NUFFT samples", &[self.samples], samples.shape())?;
        expect_shape("NUFFT samples", &[self.samples], out.shape())?;
        match &self.engine {
            Engine::Cpu(engine) => engine.convolve(self.device.cpu_side(), samples.cpu(), out.cpu_mut()),
            Engine::Cuda(engine) => engine.convolve(samples, out),
        }
    }

    /// Spreads one item and adds the result to a fine grid. The item's samples start at element `first` of
    /// `samples`.
    pub(crate) fn spread_onto(
        &self,
        samples: &Array<Complex<R>>,
        first: usize,
        grid: &mut Array<Complex<R>>,
    ) -> Result<()> {
        crate::fft::check_device("NUFFT", &self.device, samples.device())?;
        expect_shape("NUFFT fine grid", &self.fine, grid.shape())?;
        let short = || expect_shape("NUFFT samples", &[first + self.samples], samples.shape());
        match &self.engine {
            Engine::Cpu(engine) => match samples.cpu().get(first..first + self.samples) {
                Some(samples) => {
                    engine.spread_onto(self.device.cpu_side(), samples, grid.cpu_mut());
                    Stop::of_caller().check()?;
                }
                None => short()?,
            },
            Engine::Cuda(engine) => match samples.cuda().part(first, self.samples) {
                Some(samples) => engine.gridding.spread_to(samples, grid, true)?,
                None => short()?,
            },
        }
        Ok(())
    }

    /// One item's `[sample]` from a fine grid.
    pub(crate) fn interp_from(
        &self,
        grid: &Array<Complex<R>>,
        samples: &mut Array<Complex<R>>,
    ) -> Result<()> {
        crate::fft::check_device("NUFFT", &self.device, grid.device())?;
        expect_shape("NUFFT fine grid", &self.fine, grid.shape())?;
        expect_shape("NUFFT samples", &[self.samples], samples.shape())?;
        match &self.engine {
            Engine::Cpu(engine) => {
                engine.interp_from(self.device.cpu_side(), grid.cpu(), samples.cpu_mut());
                Stop::of_caller().check()
            }
            Engine::Cuda(engine) => {
                engine.gridding.interp(grid.cuda(), samples.cuda_mut(), cuda::Batch::usual(1))
            }
        }
    }

    /// The CPU's engine. Errors: planned for another processor.
    fn on_cpu(&self) -> Result<&cpu::Engine<R>> {
        match &self.engine {
            Engine::Cpu(engine) => Ok(engine),
            Engine::Cuda(_) => Err(Error::value("NUFFT plan", "one for the CPU", self.device.describe())),
        }
    }

    /// The GPU's engine. Errors: planned for another processor.
    fn on_gpu(&self) -> Result<&cuda::Engine<R>> {
        match &self.engine {
            Engine::Cuda(engine) => Ok(engine),
            Engine::Cpu(_) => Err(Error::value("NUFFT plan", "one for a GPU", self.device.describe())),
        }
    }

    fn check(&self, image: &Array<Complex<R>>, samples: &Array<Complex<R>>) -> Result<()> {
        crate::fft::check_device("NUFFT", &self.device, image.device())?;
        crate::fft::check_device("NUFFT", &self.device, samples.device())?;
        crate::fft::check_trailing("NUFFT image", &self.matrix, image.shape())?;
        let mut expected = image.shape()[..image.shape().len() - self.matrix.len()].to_vec();
        expected.push(self.samples);
        expect_shape("NUFFT samples", &expected, samples.shape())
    }
}

/// Fails if the fine grid, the tables of its axes and the points exceed the available memory.
fn check_memory<R: Real>(layout: &Layout, samples: usize) -> Result<()> {
    let cells: f64 = layout.fine.iter().map(|&n| n as f64).product();
    let axes: f64 = layout.fine.iter().map(|&n| n as f64).sum();
    let point = 8 + layout.dims * size_of::<R>();
    let needed =
        cells * size_of::<Complex<R>>() as f64 + axes * size_of::<R>() as f64 + (samples * point) as f64;
    let fine = format_shape(&layout.fine[layout.outer()..]);
    rayspin_device::cpu::expect_memory(format_args!("NUFFT with a fine grid of {fine}"), needed as u64)
}

fn check_matrix(dims: usize, matrix: &[usize]) -> Result<()> {
    if matrix.len() != dims || matrix.contains(&0) {
        return Err(Error::Shape {
            what: "NUFFT matrix".into(),
            expected: format!("{dims} axes, none empty"),
            found: format_shape(matrix),
        });
    }
    rayspin_core::voxels(matrix).map(|_| ())
}

/// The tightest tolerance accepted in a real type.
fn tightest<R: Real>() -> f64 {
    if size_of::<R>() == 4 { 1e-6 } else { 1e-13 }
}

fn check_upsampling(upsampling: f64) -> Result<()> {
    if (1.25..=2.0).contains(&upsampling) {
        return Ok(());
    }
    Err(Error::value("NUFFT upsampling", "1.25 to 2", upsampling))
}

/// The narrowest kernel for a tolerance, or the error that names the accepted range.
fn kernel_for<R: Real>(tolerance: f64, upsampling: f64, dims: usize) -> Result<Kernel> {
    check_upsampling(upsampling)?;
    let refused = |least: f64| {
        Error::value(
            format!("NUFFT tolerance in {} with upsampling {upsampling}", R::NAME),
            format!("{:.1e} to {LOOSEST}", least.max(tightest::<R>())),
            tolerance,
        )
    };
    if !(tolerance >= tightest::<R>() && tolerance <= LOOSEST) {
        let least = Kernel::for_tolerance(0.0, upsampling, dims, <R as Real>::EPSILON.to_f64());
        return Err(refused(least.err().unwrap_or(0.0)));
    }
    Kernel::for_tolerance(tolerance, upsampling, dims, <R as Real>::EPSILON.to_f64()).map_err(refused)
}

/// The upsamplings to choose from, the one that reaches every tolerance first. A GPU's kernels are compiled
/// for each.
const UPSAMPLINGS: [f64; 3] = [2.0, 1.5, 1.25];
/// The CPU's upsamplings: a power of two times each has no prime factor above 5. The longer list saves grid
/// cells where the next upsampling of the shorter list would need a wider kernel.
const CPU_UPSAMPLINGS: [f64; 7] = [2.0, 1.875, 1.6875, 1.5625, 1.5, 1.40625, 1.25];

/// Every kernel that a tolerance can lead to with a chosen upsampling.
fn windows<R: Real>(dims: usize) -> Vec<Kernel> {
    let mut kernels = Vec::new();
    for upsampling in UPSAMPLINGS {
        // Tolerances that a factor of 1.05 apart lie, between which no width is passed over: each is worth a
        // factor of 5.
        let mut tolerance = LOOSEST;
        let mut widths = Vec::new();
        while let Ok(kernel) = kernel_for::<R>(tolerance, upsampling, dims) {
            widths.push(kernel);
            tolerance /= 1.05;
        }
        widths.dedup_by_key(|kernel| kernel.width);
        kernels.extend(widths);
    }
    kernels
}

/// Nanoseconds of one core that are not worth another thread. On 16 cores a plan of 16² and 4 points took 41
/// µs with all threads, and takes 24 µs with one (`benches/results/2026-11-27-h100/small_cpu.txt`).
const SMALL: f64 = 20e3;

/// The cost of an upsampling in nanoseconds of one core: 4 per point, 0.3 for each vector of its footprint,
/// and 3.6 for each 8 bytes of the fine grid (FFT, padding, adding tiles). Fitted to the measurements of
/// benches/results/2026-11-22-epyc-2/nufft_upsampling.txt.
fn cost<R: Real>(matrix: &[usize], upsampling: f64, width: usize, samples: usize) -> f64 {
    let vectors = width.pow(matrix.len() as u32 - 1) * (2 * width).div_ceil(layout::lanes::<R>());
    let cells: f64 = matrix.iter().map(|&n| (n as f64 * upsampling).max(2.0 * width as f64)).product();
    samples as f64 * (4.0 + 0.3 * vectors as f64) + 3.6 * cells * size_of::<R>() as f64 / 4.0
}

/// The upsampling of least cost on the CPU, and its kernel.
fn choose<R: Real>(tolerance: f64, matrix: &[usize], samples: usize) -> Result<(f64, Kernel)> {
    // Above 1e-2 kernels have two cells. With upsamplings that are only in the longer list, points that lie
    // together then reach an error of 3.1 ε.
    let upsamplings = if tolerance > 1e-2 { &UPSAMPLINGS[..] } else { &CPU_UPSAMPLINGS };
    choose_by::<R>(tolerance, matrix, samples, upsamplings, cost::<R>)
}

/// The cheapest of these upsamplings, and its kernel. The first upsampling reaches every tolerance. `cost`
/// takes a matrix, an upsampling, a width and a number of samples.
fn choose_by<R: Real>(
    tolerance: f64,
    matrix: &[usize],
    samples: usize,
    upsamplings: &[f64],
    cost: impl Fn(&[usize], f64, usize, usize) -> f64,
) -> Result<(f64, Kernel)> {
    let dims = matrix.len();
    let [first, others @ ..] = upsamplings else {
        return Err(Error::value("NUFFT upsampling", "at least one to choose from", 0));
    };
    let mut best = (*first, kernel_for::<R>(tolerance, *first, dims)?);
    let cost = |(upsampling, kernel): (f64, Kernel)| cost(matrix, upsampling, kernel.width, samples);
    for &upsampling in others {
        if let Ok(kernel) = kernel_for::<R>(tolerance, upsampling, dims)
            && cost((upsampling, kernel)) < cost(best)
        {
            best = (upsampling, kernel);
        }
    }
    Ok(best)
}

macro_rules! compiled_here {
    ($real:ty, $forward:ident, $adjoint:ident) => {
        #[inline(never)]
        fn $forward(
            plan: &Nufft<$real>,
            image: &Array<Complex<$real>>,
            samples: &mut Array<Complex<$real>>,
        ) -> Result<()> {
            match &plan.engine {
                Engine::Cpu(engine) => {
                    let cpu = plan.device.cpu_side();
                    let work = || engine.forward_items(cpu, image.cpu(), samples.cpu_mut());
                    // Once for all steps: handing work to other threads takes longer than a small transform.
                    if plan.is_small(image.len()) { cpu.run_small(work) } else { cpu.run(work) }
                }
                Engine::Cuda(engine) => engine.forward(image.cuda(), samples.cuda_mut(), None),
            }
        }

        #[inline(never)]
        fn $adjoint(
            plan: &Nufft<$real>,
            samples: &Array<Complex<$real>>,
            image: &mut Array<Complex<$real>>,
        ) -> Result<()> {
            match &plan.engine {
                Engine::Cpu(engine) => {
                    let cpu = plan.device.cpu_side();
                    let small = plan.is_small(image.len());
                    let work = || engine.adjoint_items(cpu, samples.cpu(), image.cpu_mut());
                    if small { cpu.run_small(work) } else { cpu.run(work) }
                }
                Engine::Cuda(engine) => engine.adjoint(samples.cuda(), image.cuda_mut(), None),
            }
        }
    };
}

compiled_here!(f32, forward_f32, adjoint_f32);
compiled_here!(f64, forward_f64, adjoint_f64);
