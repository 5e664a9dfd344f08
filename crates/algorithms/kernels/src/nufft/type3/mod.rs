//! Type 3: from points anywhere to points anywhere.

mod cpu;
mod cuda;
pub mod reference;
mod stages;
#[cfg(test)]
mod tests;

use ndarray::ArrayView2;
use num_complex::Complex;
use rayspin_core::{Real, Result, expect_shape};
use rayspin_device::{Array, Backend, Device};

use super::layout::Layout;
use super::{Nufft, Options, check_memory};
use crate::concrete::{other_type, same_mut, same_ref};
pub(super) use stages::windows;
use stages::{Size, Stages, extents};

/// Forward: s\[j\] = Σ_k f\[k\] e^{−i2πs_j·x_k}. Adjoint: f\[k\] = Σ_j s\[j\] e^{+i2πs_j·x_k}. Positions x_k
/// and frequencies s_j may lie anywhere, in 1 to 3 dimensions, and their units are each other's inverse.
/// Neither is scaled.
///
/// Values are spread to a grid of spacing 1/2σS, where S is the half-width of the frequencies. A type 2 takes
/// the grid to the frequencies, and the results are divided by the kernel's Fourier transform. Time and
/// memory grow with the number of grid cells, Π (4σS_dX_d + W), where X is the half-width of the positions.
/// Centres cost nothing, however far from zero.
///
/// On a GPU, values, grids and factors are in its memory, and the host takes no part in a transform. The
/// GPU's Fourier
/// transforms end at 8192 points: if the second stage has more cells along an axis, or 2³² cells in all, the
/// host computes the transform and copies the values.
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
/// use rayspin_kernels::nufft::{Options, Type3};
///
/// let device = Device::cpu()?;
/// let (positions, frequencies) = (array![[0.0], [0.25]], array![[1.0], [0.0]]);
/// let options = Options::tolerance(1e-5);
/// let plan = Type3::<f32>::new(&device, positions.view(), frequencies.view(), &options)?;
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
    /// Plans transforms from `positions` `[position, dim]` to `frequencies` `[frequency, dim]`, components x,
    /// y, z.
    ///
    /// Errors: no points; dimensions that differ or are not 1 to 3; points that are not finite; a tolerance
    /// or upsampling out of range; extents whose product needs more memory than there is.
    pub fn new(
        device: &Device,
        positions: ArrayView2<'_, f64>,
        frequencies: ArrayView2<'_, f64>,
        options: &Options,
    ) -> Result<Self> {
        let (x, s) = (extents("positions", positions)?, extents("frequencies", frequencies)?);
        expect_shape("frequencies", &[frequencies.nrows(), x.len()], frequencies.shape())?;
        let size = Size { x: &x, s: &s, positions: positions.nrows(), frequencies: frequencies.nrows() };
        let on_gpu = match device.backend() {
            Backend::Cuda(_) => Some(Stages::choose::<R>(options, size, super::cuda::cost::<R>)?),
            Backend::Cpu(_) => None,
        };
        let (processor, stages) = match on_gpu {
            Some(stages) if stages.suit_a_gpu::<R>() => (device.clone(), stages),
            _ => (device.host(), Stages::choose::<R>(options, size, super::cost::<R>)?),
        };
        let Stages { kernel, matrix, .. } = &stages;
        let layout = Layout::new::<R>(matrix, 1.0, kernel)?;
        debug_assert_eq!(layout.fine[layout.outer()..], matrix[..]);
        if let Backend::Cpu(_) = processor.backend() {
            check_memory::<R>(&layout, positions.nrows())?;
        }
        let (cells, cycles) = (stages.cells(positions, size)?, stages.cycles(frequencies, size)?);
        let transform =
            Nufft::with_kernel(&processor, &cycles, matrix, stages.inner_upsampling, stages.inner)?;
        let factors = stages.factors(device.cpu_side(), positions, frequencies, size);
        let engine = match processor.backend() {
            Backend::Cpu(_) => {
                Engine::Cpu(Box::new(cpu::Engine::new(processor.clone(), layout, kernel, &cells, factors)?))
            }
            Backend::Cuda(_) => {
                let engine = cuda::Engine::new(&processor, &layout, kernel, &cells, factors)?;
                Engine::Cuda(Box::new(engine))
            }
        };
        Ok(Self {
            device: device.clone(),
            positions: positions.nrows(),
            frequencies: frequencies.nrows(),
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
