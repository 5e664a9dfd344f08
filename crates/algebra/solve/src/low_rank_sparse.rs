use std::sync::Arc;

use rayspin_core::{C32, Error, Result};
use rayspin_device::{Array, BackendKind, Device};
use rayspin_kernels::vector;
use rayspin_linop::Scratch;

use crate::problem::Unit;
use crate::{NuclearNorm, Problem, Proximal, Step, TemporalFourier, Watch};

/// Options of [`low_rank_plus_sparse`]: the weights of the two parts, and when it stops.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LowRankSparseOptions {
    /// λ_L of the nuclear norm, relative to σ, the largest singular value of the image Fᴴd/Λ.
    pub low_rank: f64,
    /// λ_S of the temporal spectrum's magnitudes, relative to s, the image's scale.
    pub sparse: f64,
    /// The most iterations, each one application of the operator.
    pub max_iterations: usize,
    /// Stop when an iteration moves L + S by at most this share of its norm. With 0 only `max_iterations` and
    /// the precision of the numbers stop it.
    pub tolerance: f64,
}

impl Default for LowRankSparseOptions {
    /// λ_L of 0.004 and λ_S of 0.01, 50 iterations, relative step 1e-3. These λ were best or nearly best for
    /// series of 20 and 60 frames with and without noise (see the table in the crate's README).
    fn default() -> Self {
        Self { low_rank: 0.004, sparse: 0.01, max_iterations: 50, tolerance: 1e-3 }
    }
}

/// What [`low_rank_plus_sparse`] found.
#[derive(Debug)]
pub struct LowRankSparseResult {
    /// L + S, `[frame, image…]`.
    pub solution: Array<C32>,
    /// L, the background: it changes alike in many voxels.
    pub low_rank: Array<C32>,
    /// S, the remaining changes.
    pub sparse: Array<C32>,
    /// ‖Δ(L + S)‖ / ‖L + S‖ of every iteration.
    pub residuals: Vec<f64>,
    /// The objective over s² after every iteration, without the constant ‖d‖²/(2Λs²): it never rises.
    pub objective: Vec<f64>,
    /// Whether the last residual met the tolerance.
    pub converged: bool,
    /// Singular values of L above 0.
    pub rank: usize,
    /// s, the scale that λ_S is relative to: the 99th percentile of |Fᴴd|/Λ.
    pub scale: f64,
    /// σ, the scale that λ_L is relative to.
    pub largest_singular_value: f64,
}

/// Minimises 1/(2Λ) ‖F(L + S) − d‖² + λ_L σ ‖L‖_* + λ_S s ‖TS‖₁ over series L and S `[frame, image…]`. L is a
/// background of low rank, and S is sparse in temporal frequency.
///
/// `problem` holds FᴴF, Fᴴd and Λ, the largest eigenvalue of FᴴF. ‖L‖_* is the sum of the singular values of
/// L as a matrix `[frame, voxel]` ([`NuclearNorm`]). T is the Fourier transform of the frames and their
/// mirror image ([`TemporalFourier`]). The scale σ is the largest singular value of Fᴴd/Λ as such a matrix,
/// and s the 99th percentile of the magnitudes of Fᴴd/Λ. Both λ have no unit: one pair means the same at any
/// gain of scanner and transform. At λ_L = 1 nothing of Fᴴd/Λ itself would be left. The static part costs
/// less in L than in S if λ_S is larger than about λ_L √frames. With a smaller λ_S the iteration moves it to
/// S, and L vanishes.
///
/// ```text
/// G = (FᴴF(L + S) − Fᴴd)/Λ at the point to which the last steps lead,  step τ = ½
/// L ← lower the singular values of L − τG by τ λ_L σ
/// S ← Tᴴ soft(T(S − τG), τ λ_S s)
/// ```
///
/// Both parts are updated together, as in the paper's Algorithm 1, from L = Fᴴd/Λ and S = 0. The paper uses
/// the step τ = 1. The gradient of the data term changes by at most 2 ‖(ΔL, ΔS)‖, because both parts share
/// the data. At τ = 1 the objective therefore does not rise, but the iterates need not converge. At τ = ½
/// they converge. Momentum (A. Beck, M. Teboulle, SIAM J Imaging Sci 2:183, 2009) makes up for the shorter
/// step. If the objective would rise, L and S stay as they are and the next step has no momentum (B.
/// O'Donoghue, E. Candès, Found Comput Math 15:715, 2015). If a step meets a curvature above 2Λ, because the
/// estimate of Λ is too small, τ becomes as small as that curvature requires.
///
/// An observer sees L + S. [`low_rank_plus_sparse_memory`] states the allocated memory.
///
/// Errors: shapes; series of 2³² numbers or more; λ or a tolerance that is negative or not finite; Λ that is
/// not positive; [`Error::NotFinite`] for Fᴴd; [`Error::Numerical`] when the series leaves the range of the
/// numbers; [`Error::Interrupted`]; memory.
///
/// R. Otazo, E. Candès, D. K. Sodickson, *Low-rank plus sparse matrix decomposition for accelerated dynamic
/// MRI with separation of background and dynamic components*, Magn Reson Med 73:1125, 2015.
///
/// ```
/// use rayspin_core::{Monitor, Result};
/// use rayspin_device::Device;
/// use rayspin_linop::{Fourier, LinearOp, SamplingMask, random};
/// use rayspin_solve::{LowRankSparseOptions, Problem, low_rank_plus_sparse};
///
/// # fn main() -> Result<()> {
/// let device = Device::cpu()?;
/// let shape = [6, 16, 16]; // [frame, y, x]
/// let kept = ndarray::ArrayD::from_shape_fn(ndarray::IxDyn(&shape), |i| (i[1] + i[0]) % 3 == 0);
/// let encode = SamplingMask::new(&device, &shape, &kept)?.compose(Fourier::new(&device, &[6], &[16, 16])?)?;
/// let samples = encode.forward(&random::<f32>(&device, &shape, 1)?)?;
///
/// let rhs = encode.adjoint(&samples)?;
/// let normal = encode.normal_op();
/// let problem = Problem { normal: &normal, rhs: &rhs, largest_eigenvalue: 1.0 };
/// let found = low_rank_plus_sparse(&problem, &LowRankSparseOptions::default(), &Monitor::silent())?;
/// assert!(found.objective.windows(2).all(|pair| pair[1] <= pair[0]));
/// # Ok(())
/// # }
/// ```
pub fn low_rank_plus_sparse<'w>(
    problem: &Problem<'_, C32>,
    options: &LowRankSparseOptions,
    watch: impl Into<Watch<'w, C32>>,
) -> Result<LowRankSparseResult> {
    let named = [
        ("λ of the low-rank part", options.low_rank),
        ("λ of the sparse part", options.sparse),
        ("tolerance of low rank plus sparse", options.tolerance),
    ];
    for (what, value) in named {
        if !(value >= 0.0 && value.is_finite()) {
            return Err(Error::value(what, "0 or more", value));
        }
    }
    let unit = Unit::new("low rank plus sparse", problem)?;
    Split::new(&unit, options)?.run(watch.into())
}

/// Bytes of host memory and of GPU memory that [`low_rank_plus_sparse`] allocates for series of `frames`
/// frames of `voxels` voxels, in addition to the operator and Fᴴd. These are 68 bytes for each number of the
/// series, on the device that holds it, and matrices over frames. The GPU's bytes are exact except for the
/// rounding of its allocations and the partial sums of scalars. The host's bytes are an upper estimate.
///
/// ```
/// use rayspin_device::Device;
/// use rayspin_solve::low_rank_plus_sparse_memory;
///
/// let (host, gpu) = low_rank_plus_sparse_memory(&Device::cpu()?, 20, 128 * 128);
/// assert!(host >= 68 * 20 * 128 * 128 && gpu == 0);
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn low_rank_plus_sparse_memory(device: &Device, frames: usize, voxels: usize) -> (u64, u64) {
    let values = NuclearNorm::memory_beside(device, frames, voxels);
    let spectrum = TemporalFourier::<f32>::memory_beside(device, frames, voxels);
    let series = (SERIES * size_of::<C32>() * frames * voxels) as u64;
    let (host, gpu) = (values.0 + spectrum.0, values.1 + spectrum.1);
    match device.kind() {
        BackendKind::Cpu => (host + series, gpu),
        BackendKind::Cuda => (host, gpu + series),
    }
}

/// Number of series in memory: Fᴴd/(Λs), two parts each of x and y, their images under the operator, and one
/// scratch series.
const SERIES: usize = 8;

/// The step τ over 1/Λ: the gradient of the data term in both parts has the Lipschitz constant 2Λ.
const STEP: f64 = 0.5;

/// L and S, and the image of their sum under the operator.
struct Iterate {
    parts: [Array<C32>; 2],
    image: Array<C32>,
}

impl Iterate {
    fn zeros(device: &Device, shape: &[usize]) -> Result<Self> {
        let zeros = || Array::zeros(device, shape);
        Ok(Self { parts: [zeros()?, zeros()?], image: zeros()? })
    }

    fn arrays(&mut self) -> impl Iterator<Item = &mut Array<C32>> {
        self.parts.iter_mut().chain([&mut self.image])
    }

    /// ‖L‖² + ‖S‖² and ‖L + S‖².
    fn norms_squared(&self) -> Result<(f64, f64)> {
        let [low_rank, sparse] = &self.parts;
        let both = vector::norm_squared(low_rank)? + vector::norm_squared(sparse)?;
        Ok((both, (both + 2.0 * vector::dot(low_rank, sparse)?.re).max(0.0)))
    }

    /// Re⟨L + S, A(L + S)⟩.
    fn form(&self) -> Result<f64> {
        let [low_rank, sparse] = &self.parts;
        Ok(vector::dot(low_rank, &self.image)?.re + vector::dot(sparse, &self.image)?.re)
    }

    fn sum_into(&self, sum: &mut Array<C32>) -> Result<()> {
        sum.copy_from(&self.parts[0])?;
        vector::axpy(1.0.into(), &self.parts[1], sum)
    }
}

/// The run for u = (L, S)/s.
struct Split<'a> {
    problem: Problem<'a, C32>,
    options: &'a LowRankSparseOptions,
    scale: f64,
    largest: f64,
    values: NuclearNorm,
    spectrum: TemporalFourier<f32>,
    scratch: Arc<Scratch<C32>>,
}

impl<'a> Split<'a> {
    fn new(unit: &'a Unit<'_, C32>, options: &'a LowRankSparseOptions) -> Result<Self> {
        let problem = unit.problem();
        let (device, shape) = (problem.rhs.device(), problem.rhs.shape());
        let scratch = Arc::<Scratch<C32>>::default();
        let values = NuclearNorm::sharing(device, shape, scratch.clone())?;
        let spectrum = TemporalFourier::sharing(device, shape, scratch.clone())?;
        Ok(Self { problem, options, scale: unit.scale, largest: 0.0, values, spectrum, scratch })
    }

    /// iterate.image ← A(L + S). Returns ½⟨L + S, A(L + S)⟩ − Re⟨b, L + S⟩.
    fn look(&self, iterate: &mut Iterate) -> Result<f64> {
        let Problem { normal, rhs, .. } = self.problem;
        let mut sum = self.scratch.take(rhs.device(), rhs.shape())?;
        iterate.sum_into(&mut sum)?;
        normal.forward_into(&sum, &mut iterate.image)?;
        Ok(0.5 * vector::dot(&sum, &iterate.image)?.re - vector::dot(rhs, &sum)?.re)
    }

    /// Takes a proximal gradient step of both parts from y. Returns the objective at the new y.
    fn step(&mut self, step: f64, y: &mut Iterate) -> Result<f64> {
        let Iterate { parts: [low_rank, sparse], image } = y;
        for part in [&mut *low_rank, &mut *sparse] {
            vector::axpy((-step).into(), image, part)?;
            vector::axpy(step.into(), self.problem.rhs, part)?;
        }
        let lambda = self.options.low_rank * self.largest;
        let nuclear = lambda * self.values.apply(step * lambda, low_rank)?;
        let lambda = self.options.sparse;
        let magnitudes = lambda * self.spectrum.apply(step * lambda, sparse)?;
        Ok(self.look(y)? + nuclear + magnitudes)
    }

    fn run(mut self, mut watch: Watch<'_, C32>) -> Result<LowRankSparseResult> {
        let rhs = self.problem.rhs;
        let (mut x, mut y) =
            (Iterate::zeros(rhs.device(), rhs.shape())?, Iterate::zeros(rhs.device(), rhs.shape())?);
        x.parts[0].copy_from(rhs)?;
        let values = self.values.singular_values(rhs)?;
        self.largest = values.first().copied().unwrap_or(0.0);
        let lambda = self.options.low_rank * self.largest;
        let mut objective = self.look(&mut x)? + lambda * values.iter().sum::<f64>();
        for (y, x) in y.arrays().zip(x.arrays()) {
            y.copy_from(x)?;
        }
        let (mut residuals, mut objectives, mut converged) = (Vec::new(), Vec::new(), false);
        let (mut step, mut t, mut rank) = (STEP, 1.0f64, values.iter().filter(|&&v| v > 0.0).count());
        while residuals.len() < self.options.max_iterations && !converged {
            let reached = self.step(step, &mut y)?;
            let ((parts_squared, size), plain, rises) = (y.norms_squared()?, t == 1.0, reached > objective);
            // The moving iterate is overwritten by the difference: from x to y, or from y back to x if x
            // stays.
            let [kept, way] = if rises { [&mut x, &mut y] } else { [&mut y, &mut x] };
            for (way, kept) in way.arrays().zip(kept.arrays()) {
                vector::xpby(kept, (-1.0).into(), way)?;
            }
            let ((moved, sum_moved), curvature) = (way.norms_squared()?, way.form()?);
            let residual = if sum_moved == 0.0 { 0.0 } else { (sum_moved / size).sqrt() };
            if !(reached.is_finite() && parts_squared.is_finite() && !residual.is_nan()) {
                return Err(Error::Numerical {
                    what: format!("low rank plus sparse on {}", self.problem.normal.name()),
                    detail: format!("the objective became {reached} at iteration {}", residuals.len() + 1),
                });
            }
            converged = residual <= self.options.tolerance && (plain || !rises);
            // Differences of nearly equal series are rounding and say nothing about curvature.
            let grown = moved > 1e-8 * parts_squared && curvature * step > 1.001 * moved;
            if grown {
                step = moved / (1.02 * curvature);
            }
            if grown || rises {
                t = 1.0;
            }
            if rises {
                for (y, x) in y.arrays().zip(x.arrays()) {
                    y.copy_from(x)?;
                }
            } else {
                let after = 0.5 * (1.0 + (1.0 + 4.0 * t * t).sqrt());
                let beta = (t - 1.0) / after;
                t = after;
                // y is x⁺ and x is x⁺ − x: they become x⁺ + β(x⁺ − x) and x⁺.
                for (y, x) in y.arrays().zip(x.arrays()) {
                    vector::xpby(y, beta.into(), x)?;
                    std::mem::swap(x, y);
                }
                (objective, rank) = (reached, self.values.rank());
            }
            // A step that is short enough and without momentum can raise the objective only by rounding: the
            // precision is spent.
            let spent = rises && plain && !grown;
            residuals.push(residual);
            objectives.push(objective);
            self.show(residuals.len(), residual, &x, &mut watch)?;
            if spent {
                break;
            }
        }
        let scale = self.scale;
        x.parts.iter_mut().try_for_each(|part| vector::scale(scale.into(), part))?;
        let mut solution = x.image;
        let [low_rank, sparse] = x.parts;
        solution.copy_from(&low_rank)?;
        vector::axpy(1.0.into(), &sparse, &mut solution)?;
        Ok(LowRankSparseResult {
            solution,
            low_rank,
            sparse,
            residuals,
            objective: objectives,
            converged,
            rank,
            scale,
            largest_singular_value: self.largest * scale,
        })
    }

    fn show(&self, iteration: usize, residual: f64, x: &Iterate, watch: &mut Watch<'_, C32>) -> Result<()> {
        let detail = format!("relative step {residual:.3e}");
        if watch.observe.is_none() {
            return watch.monitor.step(&detail);
        }
        let mut solution = self.scratch.take(x.image.device(), x.image.shape())?;
        x.sum_into(&mut solution)?;
        vector::scale(self.scale.into(), &mut solution)?;
        watch.step(&Step { iteration, residual, solution: &solution }, &detail)
    }
}
