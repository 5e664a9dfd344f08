//! Penalties of series of frames `[frame, image…]`. Both mix frames by one matrix, the same at every voxel.

use std::f64::consts::PI;
use std::sync::Arc;

use num_complex::Complex;
use rayspin_core::{C32, C64, Error, Real, Result, expect_shape, format_shape, voxels};
use rayspin_device::{Array, BackendKind, Device};
use rayspin_kernels::gram::Rows;
use rayspin_kernels::{coil_mixing, shrink};
use rayspin_linop::Scratch;

use crate::Proximal;
use crate::dense::{self, Matrix};

/// The axes of a series: frames and the voxels of each.
///
/// Errors: no axis, no frame or voxel, or 2³² numbers and more.
fn axes(shape: &[usize]) -> Result<(usize, usize)> {
    let Some((&frames, image)) = shape.split_first() else {
        return Err(Error::shape("series of frames", &[1, 1], shape));
    };
    if !u32::try_from(voxels(shape)?).is_ok_and(|numbers| numbers > 0) {
        let expected = "at least 1 and fewer than 2^32 numbers";
        return Err(Error::value("series of frames", expected, format_shape(shape)));
    }
    Ok((frames, voxels(image)?))
}

/// y_i(v) = Σ_j M_ij x_j(v) over frames i and j, for M `[frame, frame, 1]`.
fn mix<R: Real>(matrix: &Array<Complex<R>>, x: &Array<Complex<R>>, y: &mut Array<Complex<R>>) -> Result<()> {
    coil_mixing::mix(matrix, 0..matrix.shape()[0], x, y, 0)
}

/// Bytes of one matrix over frames.
fn matrix_bytes<T>(frames: usize) -> u64 {
    (size_of::<T>() * frames * frames) as u64
}

/// The nuclear norm g(X) = ‖X‖_* = Σ_i σ_i(X): the sum of the singular values of the Casorati matrix X
/// `[frame, voxel]` of a series `[frame, image…]`. It is small if the frames are combinations of a few
/// images.
///
/// The proximal map lowers each singular value by t: it maps X = U Σ Vᴴ to U max(Σ − t, 0) Vᴴ. This equals M
/// X with M = U max(1 − t/Σ, 0) Uᴴ. U and Σ² are the eigenvectors and eigenvalues of the small matrix X Xᴴ
/// `[frame, frame]`, which is summed in f64 on the device that holds the series. Storage is f32, whose
/// rounding hides singular values below 10⁻⁷ of the largest. X Xᴴ in f64 resolves singular values above 10⁻⁸
/// of the largest, so it loses nothing more. Time grows with frames² voxels + frames³.
///
/// J. F. Cai, E. J. Candès, Z. Shen, *A singular value thresholding algorithm for matrix completion*, SIAM J
/// Optim 20:1956, 2010; Z. P. Liang, *Spatiotemporal imaging with partially separable functions*, ISBI 2007
/// (the Casorati matrix).
///
/// ```
/// use rayspin_core::Result;
/// use rayspin_device::Device;
/// use rayspin_linop::random;
/// use rayspin_solve::{Proximal, NuclearNorm};
///
/// # fn main() -> Result<()> {
/// let device = Device::cpu()?;
/// let mut series = random::<f32>(&device, &[6, 16, 16], 1)?; // [frame, y, x]
/// let mut low_rank = NuclearNorm::new(&device, series.shape())?;
/// let before = low_rank.singular_values(&series)?;
/// low_rank.apply(0.5 * (before[1] + before[2]), &mut series)?;
/// assert_eq!(low_rank.rank(), 2);
/// # Ok(())
/// # }
/// ```
pub struct NuclearNorm {
    shape: Vec<usize>,
    voxels: usize,
    /// Where each frame begins.
    starts: Vec<u32>,
    matrix: Array<C32>,
    scratch: Arc<Scratch<C32>>,
    rank: usize,
}

impl NuclearNorm {
    /// For series of `shape`, `[frame, image…]`. Errors: no numbers, 2³² or more, memory.
    pub fn new(device: &Device, shape: &[usize]) -> Result<Self> {
        Self::sharing(device, shape, Arc::default())
    }

    pub(crate) fn sharing(device: &Device, shape: &[usize], scratch: Arc<Scratch<C32>>) -> Result<Self> {
        let (frames, voxels) = axes(shape)?;
        Ok(Self {
            shape: shape.to_vec(),
            voxels,
            starts: (0..frames).map(|frame| (frame * voxels) as u32).collect(),
            matrix: Array::zeros(device, &[frames, frames, 1])?,
            scratch,
            rank: 0,
        })
    }

    /// Bytes of host memory and of GPU memory for series of `frames` frames of `voxels` voxels: one series,
    /// and matrices over frames.
    pub fn memory(device: &Device, frames: usize, voxels: usize) -> (u64, u64) {
        let (host, gpu) = Self::memory_beside(device, frames, voxels);
        let series = (size_of::<C32>() * frames * voxels) as u64;
        match device.kind() {
            BackendKind::Cpu => (host + series, gpu),
            BackendKind::Cuda => (host, gpu + series),
        }
    }

    /// The same without the series.
    pub(crate) fn memory_beside(device: &Device, frames: usize, voxels: usize) -> (u64, u64) {
        let (host, gpu) = dense::covariance_memory(device, Rows::First(voxels), frames);
        // Eigenvectors, the workspace to find them, their product, and its f32 copy.
        let decomposed = 6 * matrix_bytes::<C64>(frames) + dense::panel_bytes(frames);
        let matrix = matrix_bytes::<C32>(frames);
        match device.kind() {
            BackendKind::Cpu => (host.max(decomposed) + matrix, 0),
            BackendKind::Cuda => (host.max(decomposed), gpu + matrix),
        }
    }

    /// Number of singular values that the last application left above 0.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// The singular values of a series, largest first, one for each frame. Values beyond the number of voxels
    /// are rounding.
    ///
    /// Errors: another shape; errors of the device and of [`dense::eigen`].
    pub fn singular_values(&self, x: &Array<C32>) -> Result<Vec<f64>> {
        Ok(self.decompose(x)?.0)
    }

    /// Σ and U.
    fn decompose(&self, x: &Array<C32>) -> Result<(Vec<f64>, Matrix)> {
        expect_shape("singular values of a series", &self.shape, x.shape())?;
        let products = dense::covariance(x, Rows::First(self.voxels), &self.starts)?;
        let (squares, vectors) = dense::eigen(x.device(), &products)?;
        Ok((squares.into_iter().map(|square| square.max(0.0).sqrt()).collect(), vectors))
    }
}

impl Proximal<C32> for NuclearNorm {
    fn apply(&mut self, t: f64, x: &mut Array<C32>) -> Result<f64> {
        if !(t >= 0.0 && t.is_finite()) {
            return Err(Error::value("threshold of singular values", "a finite number >= 0", t));
        }
        let (values, vectors) = self.decompose(x)?;
        let frames = values.len();
        self.rank = values.iter().take_while(|&&value| value > t).count();
        if self.rank == 0 {
            x.fill(C32::default())?;
            return Ok(0.0);
        }
        // M = W Wᴴ.
        let root = Matrix::from_fn(frames, self.rank, |i, k| vectors[(i, k)] * (1.0 - t / values[k]).sqrt());
        let matrix = dense::projector(x.device(), &root)?;
        let narrow = |v: C64| C32::new(v.re as f32, v.im as f32);
        let narrowed: Vec<C32> =
            (0..frames * frames).map(|index| narrow(matrix[(index / frames, index % frames)])).collect();
        self.matrix.set(&narrowed)?;
        let mut mixed = self.scratch.take(x.device(), x.shape())?;
        mix(&self.matrix, x, &mut mixed)?;
        std::mem::swap(x, &mut *mixed);
        Ok(values[..self.rank].iter().map(|value| value - t).sum())
    }
}

/// g(x) = ‖Tx‖₁ for a series x of N frames, `[frame, image…]`. T is the unitary Fourier transform of the
/// series followed by its mirror image: (Tx)_f(v) = √(c_f/N) Σ_t cos(πf(t + ½)/N) x_t(v). Here c_0 = 1, and
/// every other c_f = 2. The penalty g is small if voxels stand still or change slowly or periodically.
///
/// The transform of the series alone would take the first frame for the successor of the last. Where the two
/// differ, as when contrast agent arrives, it makes them alike: the first frame takes on part of the last.
/// With its mirror image behind it the series has no such jump. The 2N frames have N different frequencies,
/// so T is the cosine transform (DCT-II).
///
/// The proximal map is exact: T, a soft threshold, Tᴴ. T is applied as a matrix over frames, so the work
/// grows with frames² voxels for any number of frames. The frequency 0 counts like all others.
///
/// N. Ahmed, T. Natarajan, K. R. Rao, *Discrete cosine transform*, IEEE Trans Comput C-23:90, 1974.
///
/// ```
/// use rayspin_core::C32;
/// use rayspin_device::{Array, Device};
/// use rayspin_solve::{Proximal, TemporalFourier};
///
/// let device = Device::cpu()?;
/// let mut still = Array::from_vec(&device, &[4, 5], vec![C32::ONE; 20])?; // [frame, x]
/// let mut penalty = TemporalFourier::new(&device, still.shape())?;
/// // Each of 5 voxels has one temporal frequency, of magnitude √4 = 2, which the threshold ½ lowers to 1.5.
/// let sum = penalty.apply(0.5, &mut still)?;
/// assert!((sum - 5.0 * 1.5).abs() < 1e-5);
/// assert!(still.to_vec()?.iter().all(|v| (v - 0.75).norm() < 1e-6));
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub struct TemporalFourier<R: Real> {
    forward: Array<Complex<R>>,
    inverse: Array<Complex<R>>,
    weights: Array<R>,
    scratch: Arc<Scratch<Complex<R>>>,
}

impl<R: Real> TemporalFourier<R> {
    /// For series of `shape`, `[frame, image…]`. Errors: no numbers, 2³² or more, memory.
    pub fn new(device: &Device, shape: &[usize]) -> Result<Self> {
        Self::sharing(device, shape, Arc::default())
    }

    pub(crate) fn sharing(
        device: &Device,
        shape: &[usize],
        scratch: Arc<Scratch<Complex<R>>>,
    ) -> Result<Self> {
        let (frames, _) = axes(shape)?;
        let mut weights = Array::zeros(device, shape)?;
        weights.fill(R::one())?;
        // Row f of T, or of its transpose.
        let matrix = |transposed: bool| {
            let values = (0..frames * frames).map(|index| {
                let [f, t] = if transposed {
                    [index % frames, index / frames]
                } else {
                    [index / frames, index % frames]
                };
                let half_turns = f * (2 * t + 1) % (4 * frames);
                let angle = PI * half_turns as f64 / (2 * frames) as f64;
                let share = if f == 0 { 1.0 } else { 2.0 };
                Complex::from(<R as Real>::from_f64((share / frames as f64).sqrt() * angle.cos()))
            });
            Array::from_vec(device, &[frames, frames, 1], values.collect())
        };
        Ok(Self { forward: matrix(false)?, inverse: matrix(true)?, weights, scratch })
    }

    /// Bytes of host memory and of GPU memory for series of `frames` frames of `voxels` voxels: one and a
    /// half series, and matrices over frames.
    pub fn memory(device: &Device, frames: usize, voxels: usize) -> (u64, u64) {
        let (host, gpu) = Self::memory_beside(device, frames, voxels);
        let series = (size_of::<Complex<R>>() * frames * voxels) as u64;
        match device.kind() {
            BackendKind::Cpu => (host + series, gpu),
            BackendKind::Cuda => (host, gpu + series),
        }
    }

    /// The same without the series of coefficients.
    pub(crate) fn memory_beside(device: &Device, frames: usize, voxels: usize) -> (u64, u64) {
        let matrix = matrix_bytes::<Complex<R>>(frames);
        let kept = 2 * matrix + (size_of::<R>() * frames * voxels) as u64;
        match device.kind() {
            BackendKind::Cpu => (kept, 0),
            BackendKind::Cuda => (matrix, kept),
        }
    }
}

impl<R: Real> Proximal<Complex<R>> for TemporalFourier<R> {
    fn apply(&mut self, t: f64, x: &mut Array<Complex<R>>) -> Result<f64> {
        expect_shape("temporal Fourier transform of a series", self.weights.shape(), x.shape())?;
        let mut coefficients = self.scratch.take(x.device(), x.shape())?;
        mix(&self.forward, x, &mut coefficients)?;
        let value = shrink::soft(t, &self.weights, &mut coefficients)?;
        mix(&self.inverse, &coefficients, x)?;
        Ok(value)
    }
}
