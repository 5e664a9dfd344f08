//! The convolution's kernel Q from adjoint transforms that an image's own plan does.

use num_complex::Complex;
use rayon::prelude::*;
use rayspin_core::{C64, Error, Real, Result, Trajectory, format_shape, voxels};
use rayspin_device::{Array, Backend, Cpu, Device};

use super::{Toeplitz, cuda};
use crate::vector;

/// Fᴴ of `[sample]` to `[matrix..]`.
pub type Adjoint<'a, R> = &'a mut dyn FnMut(&Array<Complex<R>>, &mut Array<Complex<R>>) -> Result<()>;

impl<R: Real> Toeplitz<R> {
    /// FᴴF from Fᴴ, the adjoint transform of `trajectory` to images of `matrix`.
    ///
    /// Q(s + x) = Σ_m e^{i2πk_m·s} e^{i2πk_m·x} at the displacements around s is the adjoint transform of
    /// e^{i2πk_m·s}. It gives n voxels at a time along each axis, so no plan of the doubled grid is needed.
    /// Displacements below 0 along the first axis follow from Q(−d) = conj Q(d).
    ///
    /// Errors: axes that do not match the trajectory; errors of `adjoint` and of [`Toeplitz::from_kernel`].
    pub fn from_adjoint(
        device: &Device,
        trajectory: &Trajectory,
        matrix: &[usize],
        adjoint: Adjoint<'_, R>,
    ) -> Result<Self> {
        let q = kernel(device, trajectory, matrix, adjoint)?;
        Self::from_kernel(device, matrix, &q)
    }

    /// Bytes of device memory that [`Toeplitz::from_adjoint`] takes until Q is complete, in addition to the
    /// memory of `adjoint`: Q, the samples and the image of a transform, and on a GPU the trajectory. Errors:
    /// sizes beyond the address space.
    pub fn from_adjoint_needs(device: &Device, samples: usize, matrix: &[usize]) -> Result<u64> {
        let complex = size_of::<Complex<R>>() as u64;
        let points = match device.backend() {
            Backend::Cuda(_) => size_of::<f64>() * matrix.len(),
            Backend::Cpu(_) => 0,
        };
        let image = voxels(matrix)? as u64;
        let elements = (image << matrix.len()) + image + samples as u64;
        Ok(complex * elements + (points * samples) as u64)
    }
}

/// Q on the centred doubled grid.
pub(super) fn kernel<R: Real>(
    device: &Device,
    trajectory: &Trajectory,
    matrix: &[usize],
    adjoint: Adjoint<'_, R>,
) -> Result<Array<Complex<R>>> {
    let dims = matrix.len();
    if dims != trajectory.dims() || matrix.contains(&0) {
        return Err(Error::Shape {
            what: "Toeplitz matrix size".into(),
            expected: format!("{} axes, none empty", trajectory.dims()),
            found: format_shape(matrix),
        });
    }
    let doubled: Vec<usize> = matrix.iter().map(|n| 2 * n).collect();
    let mut q = Array::zeros(device, &doubled)?;
    let mut phases = Array::zeros(device, &[trajectory.samples()])?;
    let mut block = Array::zeros(device, matrix)?;
    let on_gpu = match device.backend() {
        Backend::Cuda(cuda) => Some((cuda, cuda::Points::new(device, trajectory)?)),
        Backend::Cpu(_) => None,
    };
    for corner in 0..1usize << (dims - 1) {
        // First displacement of the block along each axis: 0 along the first, −n or 0 along the others.
        let upper = |axis: usize| axis == 0 || corner >> (axis - 1) & 1 == 1;
        let mut shift = [0.0; 3];
        for (axis, &n) in matrix.iter().enumerate() {
            let first = if upper(axis) { 0.0 } else { -(n as f64) };
            // Components are x, y, z and axes z, y, x.
            shift[dims - 1 - axis] = (first + (n / 2) as f64) / n as f64;
        }
        match &on_gpu {
            Some((cuda, points)) => points.phases(cuda, shift, &mut phases)?,
            None => phases_on_cpu(device.cpu_side(), trajectory, &shift, phases.cpu_mut()),
        }
        adjoint(&phases, &mut block)?;
        let corner: Vec<usize> = (0..dims).map(|axis| if upper(axis) { matrix[axis] } else { 0 }).collect();
        vector::copy_box(&block, &vec![0; dims], &mut q, &corner, matrix)?;
    }
    drop((phases, block));
    match on_gpu {
        Some((cuda, points)) => {
            drop(points);
            cuda::mirror(cuda, &doubled, &mut q)?;
        }
        None => device.cpu_side().run(|| mirror(q.cpu_mut(), &doubled)),
    }
    Ok(q)
}

fn phases_on_cpu<R: Real>(cpu: &Cpu, trajectory: &Trajectory, shift: &[f64], phases: &mut [Complex<R>]) {
    cpu.run(|| {
        phases.par_iter_mut().enumerate().with_min_len(4096).for_each(|(m, phase)| {
            let cycles: f64 = trajectory.point(m).iter().zip(shift).map(|(k, s)| k * s).sum();
            let C64 { re, im } = C64::cis(std::f64::consts::TAU * (cycles - cycles.round()));
            *phase = Complex::new(<R as Real>::from_f64(re), <R as Real>::from_f64(im));
        });
    });
}

/// Fills the displacements −n < d < 0 of the first axis of a centred Hermitian kernel from those above 0.
fn mirror<R: Real>(q: &mut [Complex<R>], doubled: &[usize]) {
    let plane: usize = doubled[1..].iter().product();
    let n = doubled[0] / 2;
    let (below, above) = q.split_at_mut(n * plane);
    below.par_chunks_mut(plane).enumerate().skip(1).for_each(|(slice, to)| {
        let from = &above[(n - slice) * plane..][..plane];
        for (index, value) in to.iter_mut().enumerate() {
            let (mut rest, mut opposite, mut stride, mut paired) = (index, 0, 1, true);
            for &size in doubled[1..].iter().rev() {
                let i = rest % size;
                paired &= i > 0;
                opposite += (size - i) % size * stride;
                stride *= size;
                rest /= size;
            }
            // Displacement −n has no opposite in the grid, and occurs between no two voxels.
            *value = if paired { from[opposite].conj() } else { Complex::new(R::zero(), R::zero()) };
        }
    });
}
