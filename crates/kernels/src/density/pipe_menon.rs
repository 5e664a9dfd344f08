use num_complex::Complex;
use rayspin_core::{C32, Error, Result, Trajectory};
use rayspin_device::{Array, Device};

use crate::nufft::kernel::Kernel;
use crate::nufft::{Needs, Nufft};

/// Kernel width and upsampling of the convolution. The transform of φ∗φ falls to 1e-4 of its peak one field of view
/// away, where the samples of a Cartesian scan repeat, so that the sum over such samples is the integral.
const WIDTH: usize = 8;
const UPSAMPLING: f64 = 2.0;

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
    super::check_matrix(trajectory, matrix)?;
    if iterations == 0 {
        return Err(Error::value("Pipe–Menon iterations", "at least 1", 0));
    }
    let plan =
        Nufft::<f32>::with_kernel(device, trajectory, matrix, UPSAMPLING, Kernel::new(WIDTH, UPSAMPLING))?;
    let samples = trajectory.samples();
    let mut weights = Array::<C32>::zeros(device, &[samples])?;
    weights.fill(Complex::new(1.0, 0.0))?;
    let mut smoothed = Array::<C32>::zeros(device, &[samples])?;
    for _ in 0..iterations {
        plan.convolve(&weights, &mut smoothed)?;
        let smoothed = smoothed.read()?;
        weights.update(|weights| {
            for (w, s) in weights.iter_mut().zip(smoothed.iter()) {
                // C's diagonal is positive, so s exceeds a multiple of w.
                w.re /= s.re;
                w.im = 0.0;
            }
        })?;
    }
    // ∫ψ over k is (∫φ)² fine-grid cells, each of N / cells in k; and the weights are volumes over N.
    let cells: f64 = plan.fine_shape().iter().map(|&n| n as f64).product();
    let scale = plan.kernel_integral().powi(2) / cells;
    let real = weights.read()?.iter().map(|w| (f64::from(w.re) * scale) as f32).collect();
    Array::from_vec(device, &[samples], real)
}

/// What the plan of [`pipe_menon`] takes; beside it stand two complex numbers a sample, and the weights. Errors: as there.
pub fn pipe_menon_needs(trajectory: &Trajectory, matrix: &[usize]) -> Result<Needs> {
    super::check_matrix(trajectory, matrix)?;
    crate::nufft::needs_of::<f32>(trajectory, matrix, UPSAMPLING, &Kernel::new(WIDTH, UPSAMPLING))
}
