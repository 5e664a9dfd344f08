use ndarray::s;
use rayspin_core::{C32, Error, Result, Trajectory};
use rayspin_device::{Array, Backend, BackendKind, Device};

use super::cuda;
use crate::nufft::kernel::Kernel;
use crate::nufft::layout::Layout;
use crate::nufft::{Cost, Nufft};
use crate::vector::for_chunks;

/// Kernel width and upsampling of the convolution. The transform of φ∗φ falls to 1e-4 of its peak one field
/// of view away, where the samples of a Cartesian scan repeat, so that the sum over such samples is the
/// integral.
const WIDTH: usize = 8;
const UPSAMPLING: f64 = 2.0;

/// The kernel of the convolution.
pub(crate) fn window() -> Kernel {
    Kernel::new(WIDTH, UPSAMPLING)
}

/// The exponents ω of the last five steps: the inverses of the zeros of Chebyshev's polynomial of degree 5 on
/// [0.125, 1]. Together they leave a twentieth of each error of the weights that C takes to 0.125 of itself
/// or more. In this order a rounding error grows less than in rising order.
const CYCLE: [f64; 5] = [1.778_436_21, 6.849_012_23, 1.021_891_96, 3.278_545_70, 1.220_151_73];
/// Steps with ω = 1 at least before those: far from the fixed point the exponents are too large.
const PLAIN: usize = 2;

/// The exponent ω of a `step` of `steps`: 1, and at the end whole cycles.
fn exponent(step: usize, steps: usize) -> f64 {
    let cycles = steps.saturating_sub(PLAIN) / CYCLE.len();
    let plain = steps - cycles * CYCLE.len();
    step.checked_sub(plain).map_or(1.0, |step| CYCLE[step % CYCLE.len()])
}

/// Repeats w ← w (C w)^−ω, which gives weights `[sample]` whose density, smoothed by C, is 1 at every sample.
///
/// Pipe and Menon's steps have ω = 1. From 7 steps on, the last ones have exponents from Chebyshev's
/// polynomials, so that 7 steps do what 20 do with ω = 1 (see the module's page).
///
/// C w at sample i is Σ_j ψ(k_i − k_j) w_j. The kernel ψ = φ∗φ is the NUFFT's kernel convolved with itself,
/// with ∫ψ = 1 in (cycles per field of view)^d. Spreading to the fine grid and interpolating from it applies
/// ψ. At the fixed point w_j is the volume of k-space around sample j. The result is that volume over the
/// number of voxels (see the module's page). Weights level off where samples lie further apart than ψ
/// reaches.
///
/// Errors: no iterations, a matrix that does not match the trajectory, or no memory for the fine grid.
/// Source: Pipe & Menon, Magn. Reson. Med. 41 (1999) 179.
///
/// ```
/// use ndarray::array;
/// use rayspin_core::Trajectory;
/// use rayspin_device::Device;
/// use rayspin_kernels::density::pipe_menon;
///
/// let device = Device::cpu()?;
/// // The centre was measured twice.
/// let points = array![[-3.0], [-2.0], [-1.0], [0.0], [0.0], [1.0], [2.0], [3.0]];
/// let trajectory = Trajectory::from_cycles_per_fov(points)?;
/// let weights = pipe_menon(&device, &trajectory, &[8], 30)?.to_vec()?;
/// assert!((weights[3] - weights[4]).abs() < 1e-6);
/// assert!((weights[3] + weights[4] - weights[1]).abs() < 0.2 * weights[1]); // both together count as one
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn pipe_menon(
    device: &Device,
    trajectory: &Trajectory,
    matrix: &[usize],
    iterations: usize,
) -> Result<Array<f32>> {
    check(trajectory, matrix, iterations)?;
    let plan = Nufft::<f32>::with_kernel(device, trajectory, matrix, UPSAMPLING, window())?;
    let samples = trajectory.samples();
    let mut weights = Array::zeros(device, &[samples])?;
    weights.fill(C32::ONE)?;
    let mut smoothed = Array::zeros(device, &[samples])?;
    for step in 0..iterations {
        plan.convolve(&weights, &mut smoothed)?;
        update(&mut weights, 0, &smoothed, exponent(step, iterations))?;
    }
    drop(smoothed);
    scaled(&plan, &weights)
}

/// [`pipe_menon`] with at most `points` points planned at once. The result is the same up to rounding and
/// takes less memory, but each iteration sorts the points twice.
///
/// Errors: as [`pipe_menon`]; no points at once.
///
/// ```
/// use ndarray::Array2;
/// use rayspin_core::Trajectory;
/// use rayspin_device::Device;
/// use rayspin_kernels::density::{pipe_menon, pipe_menon_by_blocks};
///
/// let device = Device::cpu()?;
/// let points = Array2::from_shape_fn((40, 1), |(i, _)| (i as f64 / 40.0 - 0.5) * 16.0);
/// let trajectory = Trajectory::from_cycles_per_fov(points)?;
/// let whole = pipe_menon(&device, &trajectory, &[16], 10)?.to_vec()?;
/// let by_blocks = pipe_menon_by_blocks(&device, &trajectory, &[16], 10, 7)?.to_vec()?;
/// assert!(whole.iter().zip(&by_blocks).all(|(a, b)| (a - b).abs() < 1e-4 * a));
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn pipe_menon_by_blocks(
    device: &Device,
    trajectory: &Trajectory,
    matrix: &[usize],
    iterations: usize,
    points: usize,
) -> Result<Array<f32>> {
    check(trajectory, matrix, iterations)?;
    let firsts: Vec<usize> = firsts(trajectory, points)?.collect();
    let mut weights = Array::zeros(device, &[trajectory.samples()])?;
    weights.fill(C32::ONE)?;
    let mut plans = Blocks { device, trajectory, matrix, points, last: None };
    let fine = plans.of(0)?.fine_shape().to_vec();
    let mut grid = Array::zeros(device, &fine)?;
    for step in 0..iterations {
        grid.fill(C32::ZERO)?;
        for &first in &firsts {
            plans.of(first)?.spread_onto(&weights, first, &mut grid)?;
        }
        // Backwards: the last block is planned, and in the next iteration the first one will be.
        for &first in firsts.iter().rev() {
            let plan = plans.of(first)?;
            let mut smoothed = Array::zeros(device, &[plan.samples()])?;
            plan.interp_from(&grid, &mut smoothed)?;
            update(&mut weights, first, &smoothed, exponent(step, iterations))?;
        }
    }
    drop(grid);
    scaled(plans.of(0)?, &weights)
}

/// Blocks of points, planned when their turn comes; no more than one at a time.
struct Blocks<'a> {
    device: &'a Device,
    trajectory: &'a Trajectory,
    matrix: &'a [usize],
    points: usize,
    last: Option<(usize, Nufft<f32>)>,
}

impl Blocks<'_> {
    /// The plan of the block that begins with the point `first`.
    fn of(&mut self, first: usize) -> Result<&Nufft<f32>> {
        let kept = self.last.take().filter(|(start, _)| *start == first);
        let (_, plan) = self.last.insert(match kept {
            Some(kept) => kept,
            None => {
                let block = block(self.trajectory, first, self.points)?;
                let plan = Nufft::with_kernel(self.device, &block, self.matrix, UPSAMPLING, window())?;
                (first, plan)
            }
        });
        Ok(plan)
    }
}

/// The first points of all blocks. Errors: no points at once.
fn firsts(trajectory: &Trajectory, points: usize) -> Result<impl Iterator<Item = usize>> {
    if points == 0 {
        return Err(Error::value("points at once", "at least 1", 0));
    }
    Ok((0..trajectory.samples()).step_by(points))
}

/// At most `points` points from `first` on.
fn block(trajectory: &Trajectory, first: usize, points: usize) -> Result<Trajectory> {
    let end = first.saturating_add(points).min(trajectory.samples());
    Trajectory::from_cycles_per_fov(trajectory.points().slice(s![first..end, ..]).to_owned())
}

fn check(trajectory: &Trajectory, matrix: &[usize], iterations: usize) -> Result<()> {
    super::check_matrix(trajectory, matrix)?;
    if iterations == 0 {
        return Err(Error::value("Pipe–Menon iterations", "at least 1", 0));
    }
    Ok(())
}

/// w ← w s^−ω, of the real parts, for the weights from `first` on.
fn update(weights: &mut Array<C32>, first: usize, smoothed: &Array<C32>, exponent: f64) -> Result<()> {
    let device = smoothed.device();
    match device.backend() {
        Backend::Cpu(cpu) => {
            let smoothed = smoothed.cpu();
            let weights = &mut weights.cpu_mut()[first..first + smoothed.len()];
            let exponent = exponent as f32;
            for_chunks(cpu, 1 << 14, weights, |start, weights| {
                // C's diagonal is positive, so s exceeds a multiple of w.
                for (w, s) in weights.iter_mut().zip(&smoothed[start..]) {
                    *w = (w.re * s.re.powf(-exponent)).into();
                }
            });
            Ok(())
        }
        Backend::Cuda(cuda) => cuda::correct(cuda, weights, first, smoothed, exponent),
    }
}

/// ∫ψ over k is (∫φ)² fine-grid cells, each of N / cells in k; and the weights are volumes over N.
fn scaled(plan: &Nufft<f32>, weights: &Array<C32>) -> Result<Array<f32>> {
    let cells: f64 = plan.fine_shape().iter().map(|&n| n as f64).product();
    let scale = plan.kernel_integral().powi(2) / cells;
    let device = weights.device();
    match device.backend() {
        Backend::Cpu(_) => {
            let real = weights.cpu().iter().map(|w| (f64::from(w.re) * scale) as f32).collect();
            Array::from_vec(device, &[weights.len()], real)
        }
        Backend::Cuda(cuda) => cuda::scaled(cuda, weights, scale),
    }
}

/// The memory of [`pipe_menon`]'s plan. In addition it takes two complex numbers per sample, and the weights.
/// Errors: as there.
///
/// ```
/// use ndarray::Array2;
/// use rayspin_core::Trajectory;
/// use rayspin_device::Device;
/// use rayspin_kernels::density::pipe_menon_needs;
///
/// let device = Device::cpu()?;
/// let points = |n| Trajectory::from_cycles_per_fov(Array2::from_shape_fn((n, 1), |(i, _)| i as f64 / n as f64));
/// let few = pipe_menon_needs(&device, &points(100)?, &[64])?;
/// let many = pipe_menon_needs(&device, &points(10_000)?, &[64])?;
/// assert!(many.plan > few.plan);
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn pipe_menon_needs(device: &Device, trajectory: &Trajectory, matrix: &[usize]) -> Result<Cost> {
    super::check_matrix(trajectory, matrix)?;
    crate::nufft::needs_of::<f32>(device, trajectory, matrix, UPSAMPLING, &window())
}

/// Peak bytes of device memory of [`pipe_menon_by_blocks`], including the weights, and of host memory if that
/// is separate.
/// Errors: as there.
pub fn pipe_menon_by_blocks_needs(
    device: &Device,
    trajectory: &Trajectory,
    matrix: &[usize],
    points: usize,
) -> Result<(u64, u64)> {
    let complex = size_of::<C32>() as u64;
    let samples = trajectory.samples() as u64;
    let layout = Layout::new::<f32>(matrix, UPSAMPLING, &window())?;
    let grid = complex * layout.fine.iter().map(|&n| n as u64).product::<u64>();
    let (mut most, mut beside) = (0, 0);
    for first in firsts(trajectory, points)? {
        let block = block(trajectory, first, points)?;
        let Cost { plan, planning, workspace, .. } = pipe_menon_needs(device, &block, matrix)?;
        let own = block.points().len() as u64 * size_of::<f64>() as u64;
        let smoothed = complex * block.samples() as u64;
        let running = plan + workspace.max(grid + smoothed);
        most = most.max(match device.kind() {
            BackendKind::Cpu => running.max(grid + planning + own),
            BackendKind::Cuda => running.max(grid + planning),
        });
        beside = beside.max(own);
    }
    let bytes = (complex * samples + most).max((complex + size_of::<f32>() as u64) * samples);
    Ok((bytes, if device.kind() == BackendKind::Cpu { 0 } else { beside }))
}
