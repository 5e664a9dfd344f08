//! Type 3: from points anywhere to points anywhere.

mod cpu;
mod cuda;
mod points;
pub mod reference;
mod stages;
#[cfg(test)]
mod tests;

use num_complex::Complex;
use rayspin_core::{Real, Result, expect_shape};
use rayspin_device::{Array, Backend, Device};

use super::layout::Layout;
use super::{Coordinates, Nufft, Options, check_memory};
use crate::concrete::{other_type, same_mut, same_ref};
pub(super) use points::cuda::builds;
use points::{Factors, Placed, Points, coordinates};
pub(super) use stages::windows;
use stages::{Size, Stages};

/// Forward: s\[j\] = Σ_k f\[k\] e^{−i2πs_j·x_k}. Adjoint: f\[k\] = Σ_j s\[j\] e^{+i2πs_j·x_k}. Positions x_k
/// and frequencies s_j may lie anywhere, in 1 to 3 dimensions, and their units are each other's inverse.
/// Neither is scaled.
///
/// Values are spread to a grid of spacing 1/2σS, where S is the half-width of the frequencies. A type 2 takes
/// the grid to the frequencies, and the results are divided by the kernel's Fourier transform. Time and
/// memory grow with the number of grid cells, Π (4σS_dX_d + W), where X is the half-width of the positions.
/// Centres cost nothing, however far from zero.
///
/// On a GPU, points, values, grids and factors are in its memory, and the host takes no part in a transform.
/// A plan reads the points there, and the host reads their extents alone. The GPU's Fourier transforms end at
/// 8192 points: if the second stage has more cells along an axis, or 2³² cells in all, the host computes the
/// transform and copies points and values.
///
/// For random values the relative l2 error is near or below the tolerance, 2e-6 … 0.1 in f32 and 2e-13 … 0.1
/// in f64. The two directions are each other's adjoint to rounding.
///
/// Sources: Lee & Greengard, J. Comput. Phys. 206 (2005) 1; Barnett, Magland & af Klinteberg, SIAM J. Sci.
/// Comput. 41 (2019) C479, § 3.3.
///
/// ```
/// use ndarray::array;
/// use rayspin_core::C32;
/// use rayspin_device::{Array, Device};
/// use rayspin_kernels::nufft::{Coordinates, Options, Type3};
///
/// let device = Device::cpu()?;
/// let (x, s) = (array![[0.0], [0.25]], array![[1.0], [0.0]]);
/// let positions = Coordinates::rows("positions", x.view())?;
/// let frequencies = Coordinates::rows("frequencies", s.view())?;
/// let plan = Type3::<f32>::new(&device, positions, frequencies, &Options::tolerance(1e-5))?;
/// let values = Array::from_vec(&device, &[2], vec![C32::ONE; 2])?;
/// let mut out = Array::zeros(&device, &[2])?;
/// plan.forward(&values, &mut out)?;
/// // 1 + e^{−i2π/4}, and 1 + 1.
/// let found = out.to_vec()?;
/// assert!((found[0] - C32::new(1.0, -1.0)).norm() < 1e-4 && (found[1].re - 2.0).abs() < 1e-4);
/// # Ok::<(), rayspin_core::Error>(())
/// ```
#[derive(Debug)]
pub struct Type3<R: Real> {
    device: Device,
    positions: usize,
    frequencies: usize,
    /// Width of the first stage's kernel.
    width: usize,
    /// The second stage.
    transform: Nufft<R>,
    engine: Engine<R>,
}

/// The part of the plan for its processor: the first stage, and the factors.
#[derive(Debug)]
enum Engine<R: Real> {
    Cpu(Box<cpu::Engine<R>>),
    Cuda(Box<cuda::Engine<R>>),
}

impl<R: Real> Type3<R> {
    /// Plans transforms from `positions` to `frequencies`, in memory of the host or of the plan's GPU. A
    /// component's unit multiplies its numbers.
    ///
    /// Errors: dimensions that differ; points that are not finite or on another device; a tolerance or
    /// upsampling out of range; extents whose product needs more memory than there is.
    pub fn new<'a>(
        device: &Device,
        positions: impl Into<Coordinates<'a>>,
        frequencies: impl Into<Coordinates<'a>>,
        options: &Options,
    ) -> Result<Self> {
        let (positions, frequencies) = (positions.into(), frequencies.into());
        let expected = [frequencies.samples(), positions.dims()];
        expect_shape("frequencies", &expected, &[frequencies.samples(), frequencies.dims()])?;
        let (x_points, s_points) = (Points::new(device, positions)?, Points::new(device, frequencies)?);
        let (x, s) = (x_points.extents()?, s_points.extents()?);
        let size = Size { x: &x, s: &s, positions: positions.samples(), frequencies: frequencies.samples() };
        if let Backend::Cuda(_) = device.backend() {
            let stages = Stages::choose::<R>(options, size, super::cuda::cost::<R>)?;
            if stages.suit_a_gpu::<R>() {
                return Self::with_stages(device, device, size, stages, [&x_points, &s_points]);
            }
        }
        let host = device.host();
        let stages = Stages::choose::<R>(options, size, super::cost::<R>)?;
        let copies = [positions.copied(&host)?, frequencies.copied(&host)?];
        let x_points = Points::new(&host, positions.with_copies(&copies[0]))?;
        let s_points = Points::new(&host, frequencies.with_copies(&copies[1]))?;
        Self::with_stages(device, &host, size, stages, [&x_points, &s_points])
    }

    /// Plans for the positions and the frequencies, on the processor that has them.
    fn with_stages(
        device: &Device,
        processor: &Device,
        size: Size<'_>,
        stages: Stages,
        [positions, frequencies]: [&Points<'_>; 2],
    ) -> Result<Self> {
        let Stages { kernel, matrix, .. } = &stages;
        let layout = Layout::new::<R>(matrix, 1.0, kernel)?;
        debug_assert_eq!(layout.fine[layout.outer()..], matrix[..]);
        if let Backend::Cpu(_) = processor.backend() {
            check_memory::<R>(&layout, size.positions)?;
        }
        let axes = stages.axes(size);
        let Placed { numbers, factors: after } = frequencies.frequencies(&stages, &axes)?;
        let cycles = coordinates(&numbers)?;
        let transform = Nufft::with_kernel(processor, cycles, matrix, stages.inner_upsampling, stages.inner)?;
        let Placed { numbers, factors: before } = positions.positions(&stages, &axes)?;
        let (cells, factors) = (coordinates(&numbers)?, Factors { before, after });
        let engine = match processor.backend() {
            Backend::Cpu(_) => {
                Engine::Cpu(Box::new(cpu::Engine::new(processor.clone(), layout, kernel, &cells, factors)?))
            }
            Backend::Cuda(_) => {
                Engine::Cuda(Box::new(cuda::Engine::new(processor, &layout, kernel, &cells, factors)?))
            }
        };
        Ok(Self {
            device: device.clone(),
            positions: size.positions,
            frequencies: size.frequencies,
            width: kernel.width,
            transform,
            engine,
        })
    }

    /// Positions → frequencies, e^{−i2πs·x}: `values` is `[batch.., position]`, `out` `[batch.., frequency]`,
    /// overwritten.
    ///
    /// Errors: shapes that do not match, arrays of another device, or no memory for the grids.
    pub fn forward(&self, values: &Array<Complex<R>>, out: &mut Array<Complex<R>>) -> Result<()> {
        self.check(values, out)?;
        if let (Some(plan), Some(values), Some(out)) = (same_ref(self), same_ref(values), same_mut(out)) {
            forward_f32(plan, values, out)
        } else if let (Some(plan), Some(values), Some(out)) =
            (same_ref(self), same_ref(values), same_mut(out))
        {
            forward_f64(plan, values, out)
        } else {
            Err(other_type::<R>())
        }
    }

    /// Frequencies → positions, e^{+i2πs·x}, the adjoint of [`Type3::forward`]: `values` is `[batch..,
    /// frequency]`, `out` `[batch.., position]`, overwritten.
    ///
    /// Errors: as [`Type3::forward`].
    pub fn adjoint(&self, values: &Array<Complex<R>>, out: &mut Array<Complex<R>>) -> Result<()> {
        self.check(out, values)?;
        if let (Some(plan), Some(values), Some(out)) = (same_ref(self), same_ref(values), same_mut(out)) {
            adjoint_f32(plan, values, out)
        } else if let (Some(plan), Some(values), Some(out)) =
            (same_ref(self), same_ref(values), same_mut(out))
        {
            adjoint_f64(plan, values, out)
        } else {
            Err(other_type::<R>())
        }
    }

    /// Number of positions.
    pub fn positions(&self) -> usize {
        self.positions
    }

    /// Number of frequencies.
    pub fn frequencies(&self) -> usize {
        self.frequencies
    }

    /// The device of the plan.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Shape of the grid between the two stages, in C order.
    pub fn grid_shape(&self) -> &[usize] {
        self.transform.matrix()
    }

    /// Widths of the two stages' kernels in cells of their grids.
    pub fn widths(&self) -> [usize; 2] {
        [self.width, self.transform.width()]
    }

    /// Bytes of the memory of the processor that computes: what the plan and its workspace hold while a batch
    /// of that many items is transformed.
    pub fn bytes(&self, batch: usize) -> u64 {
        let (own, together) = match &self.engine {
            Engine::Cpu(engine) => engine.bytes(batch),
            Engine::Cuda(engine) => engine.bytes(batch),
        };
        own + self.transform.bytes(together)
    }

    fn check(&self, at_positions: &Array<Complex<R>>, at_frequencies: &Array<Complex<R>>) -> Result<()> {
        const WHAT: &str = "type 3 NUFFT";
        crate::fft::check_device(WHAT, &self.device, at_positions.device())?;
        crate::fft::check_device(WHAT, &self.device, at_frequencies.device())?;
        crate::fft::check_trailing("values at positions", &[self.positions], at_positions.shape())?;
        let shape = at_positions.shape();
        let expected = [&shape[..shape.len() - 1], &[self.frequencies]].concat();
        expect_shape("values at frequencies", &expected, at_frequencies.shape())
    }
}

macro_rules! compiled_here {
    ($real:ty, $forward:ident, $adjoint:ident) => {
        #[inline(never)]
        fn $forward(
            plan: &Type3<$real>,
            values: &Array<Complex<$real>>,
            out: &mut Array<Complex<$real>>,
        ) -> Result<()> {
            match &plan.engine {
                Engine::Cpu(engine) => {
                    let (transform, values) = (plan.transform.on_cpu()?, values.read()?);
                    out.update(|out| engine.forward_items(transform, &values, out))?
                }
                Engine::Cuda(engine) => {
                    engine.forward(plan.transform.on_gpu()?, values.cuda(), out.cuda_mut())
                }
            }
        }

        #[inline(never)]
        fn $adjoint(
            plan: &Type3<$real>,
            values: &Array<Complex<$real>>,
            out: &mut Array<Complex<$real>>,
        ) -> Result<()> {
            match &plan.engine {
                Engine::Cpu(engine) => {
                    let (transform, values) = (plan.transform.on_cpu()?, values.read()?);
                    out.update(|out| engine.adjoint_items(transform, &values, out))?
                }
                Engine::Cuda(engine) => {
                    engine.adjoint(plan.transform.on_gpu()?, values.cuda(), out.cuda_mut())
                }
            }
        }
    };
}

compiled_here!(f32, forward_f32, adjoint_f32);
compiled_here!(f64, forward_f64, adjoint_f64);
