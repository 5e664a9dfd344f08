use ndarray::s;
use num_complex::Complex;
use rayspin_core::{C32, Error, Result, Trajectory};
use rayspin_device::{Array, Backend, Device};

use super::cuda;
use crate::nufft::kernel::Kernel;
use crate::nufft::{Needs, Nufft};
use crate::vector::for_chunks;

/// Kernel width and upsampling of the convolution. The transform of φ∗φ falls to 1e-4 of its peak one field of view
/// away, where the samples of a Cartesian scan repeat, so that the sum over such samples is the integral.
const WIDTH: usize = 8;
const UPSAMPLING: f64 = 2.0;

/// The kernel of the convolution.
pub(crate) fn window() -> Kernel {
    Kernel::new(WIDTH, UPSAMPLING)
}

/// w ← w / (C w), repeated: weights whose density, smoothed by C, is 1 at every sample. \[sample\].
///
/// C w at sample i is Σ_j ψ(k_i − k_j) w_j with ψ = φ∗φ the NUFFT's kernel convolved with itself, ∫ψ = 1 in
/// (cycles per field of view)^d, taken as interpolation after spreading on the fine grid. The fixed point gives w_j the
/// volume of k-space around sample j; the result is that volume over the number of voxels (see the module's page).
/// Where samples lie further apart than ψ reaches, weights level off.
///
/// Errors: no iterations, a matrix that does not match the trajectory, or no memory for the fine grid.
/// Source: Pipe & Menon, Magn. Reson. Med. 41 (1999) 179.
pub fn pipe_menon(
    device: &Device,
    trajectory: &Trajectory,
    matrix: &[usize],
    iterations: usize,
) -> Result<Array<f32>> {
    check(trajectory, matrix, iterations)?;
    let plan = Nufft::<f32>::with_kernel(device, trajectory, matrix, UPSAMPLING, window())?;
    let samples = trajectory.samples();
    let mut weights = Array::<C32>::zeros(device, &[samples])?;
    weights.fill(Complex::new(1.0, 0.0))?;
    let mut smoothed = Array::<C32>::zeros(device, &[samples])?;
    for _ in 0..iterations {
        plan.convolve(&weights, &mut smoothed)?;
        match device.backend() {
            Backend::Cpu(cpu) => {
                let smoothed = smoothed.cpu();
                for_chunks(cpu, 1 << 14, weights.cpu_mut(), |start, weights| {
                    update(weights, &smoothed[start..start + weights.len()]);
                });
            }
            Backend::Cuda(cuda) => cuda::divide(cuda, &mut weights, &smoothed)?,
        }
    }
    drop(smoothed);
    match device.backend() {
        Backend::Cpu(_) => scaled(device, &plan, weights.cpu()),
        Backend::Cuda(cuda) => cuda::scaled(cuda, &weights, scale(&plan)),
    }
}

/// [`pipe_menon`] with at most `points` points planned at once: the same up to rounding, in less memory, for the time that it
/// takes to sort the points twice in each iteration. Of a GPU its host does the work.
///
/// Errors: as [`pipe_menon`]; no points at once.
pub fn pipe_menon_by_blocks(
    device: &Device,
    trajectory: &Trajectory,
    matrix: &[usize],
    iterations: usize,
    points: usize,
) -> Result<Array<f32>> {
    check(trajectory, matrix, iterations)?;
    if points == 0 {
        return Err(Error::value("points at once", "at least 1", 0));
    }
    let samples = trajectory.samples();
    let host = device.host();
    let plan = |first: usize| {
        let part = trajectory.points().slice(s![first..(first + points).min(samples), ..]).to_owned();
        let part = Trajectory::from_cycles_per_fov(part)?;
        Nufft::<f32>::with_kernel(&host, &part, matrix, UPSAMPLING, window())
    };
    let one = Complex::new(1.0, 0.0);
    let mut weights = vec![one; samples];
    let cells = plan(0)?.fine_shape().iter().product();
    let mut grid = vec![C32::ZERO; cells];
    let mut smoothed = vec![C32::ZERO; points.min(samples)];
    for _ in 0..iterations {
        grid.fill(C32::ZERO);
        for first in (0..samples).step_by(points) {
            let last = (first + points).min(samples);
            plan(first)?.spread_onto(&weights[first..last], &mut grid)?;
        }
        for first in (0..samples).step_by(points) {
            let last = (first + points).min(samples);
            let smoothed = &mut smoothed[..last - first];
            plan(first)?.interp_from(&grid, smoothed)?;
            update(&mut weights[first..last], smoothed);
        }
    }
    drop((grid, smoothed));
    scaled(device, &plan(0)?, &weights)
}

fn check(trajectory: &Trajectory, matrix: &[usize], iterations: usize) -> Result<()> {
    super::check_matrix(trajectory, matrix)?;
    if iterations == 0 {
        return Err(Error::value("Pipe–Menon iterations", "at least 1", 0));
    }
    Ok(())
}

fn update(weights: &mut [C32], smoothed: &[C32]) {
    for (w, s) in weights.iter_mut().zip(smoothed) {
        // C's diagonal is positive, so s exceeds a multiple of w.
        w.re /= s.re;
        w.im = 0.0;
    }
}

/// ∫ψ over k is (∫φ)² fine-grid cells, each of N / cells in k; and the weights are volumes over N.
fn scale(plan: &Nufft<f32>) -> f64 {
    let cells: f64 = plan.fine_shape().iter().map(|&n| n as f64).product();
    plan.kernel_integral().powi(2) / cells
}

fn scaled(device: &Device, plan: &Nufft<f32>, weights: &[C32]) -> Result<Array<f32>> {
    let scale = scale(plan);
    let real = weights.iter().map(|w| (f64::from(w.re) * scale) as f32).collect();
    Array::from_vec(device, &[weights.len()], real)
}

/// What the plan of [`pipe_menon`] takes; beside it stand two complex numbers a sample, and the weights. Errors: as there.
pub fn pipe_menon_needs(device: &Device, trajectory: &Trajectory, matrix: &[usize]) -> Result<Needs> {
    super::check_matrix(trajectory, matrix)?;
    crate::nufft::needs_of::<f32>(device, trajectory, matrix, UPSAMPLING, &Kernel::new(WIDTH, UPSAMPLING))
}
