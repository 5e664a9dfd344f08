//! Random outputs of an encoding's transforms against the exact sums ([`rayspin_run::Certificate`]).
//!
//! The adjoint (type 1) is checked on one coil's samples, and the forward transform (type 2) on the image of
//! these samples. The normal operator is applied to a few single voxels drawn at random. Their images are
//! displaced kernels Q, and the check sums these exactly over the trajectory. The N outputs of this check are
//! the outputs of all these images, and equally many are drawn of each. That leaves the statement true:
//! Π(1 − x_c)^(m/c) ≤ (1 − x)^m for shares x_c of mean x. A NUFFT of tolerance ε is off by at most 3ε
//! ([`nufft::BOUND`](rayspin_kernels::nufft::BOUND)), and that bound is what it must meet. The normal operator
//! stands for a forward and an adjoint transform, so its bound is twice as large. In an inhomogeneous field the
//! exact sums include the phases e^{−i2πft}, and the tolerance of the time segments is added to the bound.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayspin_core::{C32, C64, Result, Trajectory};
use rayspin_device::Array;
use rayspin_kernels::fft::{Fft, Norm};
use rayspin_kernels::{nudft, vector};
use rayspin_linop::LinearOp as _;
use rayspin_run::{Certify, draws, errors};

use super::plans::Plans;
use super::samples::CoilSamples;
use crate::recon::Certificate;

/// Relative l2 error that an FFT in single precision is to meet.
pub const FFT_TOLERANCE: f64 = 1e-6;
/// Voxels that the normal operator is applied to.
pub(super) const COLUMNS: usize = 4;

/// What is certified of a trajectory's plans.
pub(super) struct Points {
    pub(super) certify: Certify,
    /// Whether samples are weighted before they are transformed.
    pub(super) weighted: bool,
    /// Whether there is a normal operator.
    pub(super) normal: bool,
    /// The bound on the transforms' relative l2 error, for any points.
    pub(super) tolerance: f64,
}

/// Certificates of the plans' transforms, on the samples `[coil, sample]`.
pub(super) fn trajectory(
    &Points { certify, weighted, normal: iterates, tolerance }: &Points,
    plans: &Plans,
    data: &CoilSamples<'_>,
) -> Result<Vec<Certificate>> {
    if let Some(subspace) = plans.planned_subspace() {
        return subspace.certificates(certify, (plans, tolerance), data);
    }
    let mut rng = ChaCha8Rng::seed_from_u64(certify.seed);
    let (device, matrix, trajectory) = (data.device(), plans.matrix()?, plans.trajectory()?);
    let coil = rng.random_range(0..data.coils());
    let mut samples = data.part(&(coil..coil + 1))?.reshape(&[trajectory.samples()])?;
    if weighted {
        let raw = samples.try_clone()?;
        vector::weight(plans.density()?, &raw, &mut samples)?;
    }
    let voxels: usize = matrix.iter().product();
    let mut image = Array::zeros(device, matrix)?;
    plans.adjoint(&samples, &mut image)?;
    let indices = draws(&mut rng, certify.outputs, voxels);
    let off_resonance = plans.exact_off_resonance()?;
    let exact = match &off_resonance {
        Some(off_resonance) => off_resonance.adjoint(trajectory, matrix, &samples.read()?, &indices)?,
        None => nudft::reference::adjoint_at(trajectory, matrix, &samples.read()?, &indices)?,
    };
    let found = errors(&image.read()?, &exact, &indices);
    let mut all = vec![Certificate::new("NUFFT adjoint", voxels, &found, tolerance)];

    plans.forward(&image, &mut samples)?;
    let indices = draws(&mut rng, certify.outputs, trajectory.samples());
    let exact = match &off_resonance {
        Some(off_resonance) => off_resonance.forward(trajectory, matrix, &image.read()?, &indices)?,
        None => nudft::reference::forward_at(trajectory, matrix, &image.read()?, &indices)?,
    };
    let found = errors(&samples.read()?, &exact, &indices);
    all.push(Certificate::new("NUFFT forward", trajectory.samples(), &found, tolerance));

    if iterates {
        let mut found = Vec::with_capacity(certify.outputs);
        let mut column = Array::zeros(device, matrix)?;
        let normal = plans.normal(&[])?;
        let columns = COLUMNS.min(certify.outputs);
        for part in 0..columns {
            let from = rng.random_range(0..voxels);
            image.fill(C32::ZERO)?;
            image.update(|image| image[from] = C32::ONE)?;
            normal.forward_into(&image, &mut column)?;
            let share = (certify.outputs + part) / columns;
            let indices = draws(&mut rng, share, voxels);
            let exact = match &off_resonance {
                Some(off_resonance) => off_resonance.column(trajectory, matrix, from, &indices)?,
                None => {
                    let displaced: Vec<usize> =
                        indices.iter().map(|&to| displacement(matrix, from, to)).collect();
                    nudft::reference::q_at::<f32>(trajectory, matrix, None, &displaced)?
                }
            };
            found.extend(errors(&column.read()?, &exact, &indices));
        }
        all.push(Certificate::new("Toeplitz normal operator", columns * voxels, &found, 2.0 * tolerance));
    }
    Ok(all)
}

/// Index on the doubled grid of the displacement between two voxels.
pub(super) fn displacement(matrix: &[usize], from: usize, to: usize) -> usize {
    let (mut from, mut to, mut flat, mut stride) = (from, to, 0, 1);
    for &n in matrix.iter().rev() {
        flat += (to % n + n - from % n) * stride;
        stride *= 2 * n;
        from /= n;
        to /= n;
    }
    flat
}

/// The certificate of the inverse FFT of one coil's k-space `[coil, grid…]`.
pub(super) fn grid(certify: &Certify, kspace: &CoilSamples<'_>) -> Result<Vec<Certificate>> {
    let mut rng = ChaCha8Rng::seed_from_u64(certify.seed);
    let shape = kspace.of_coil();
    let coil = rng.random_range(0..kspace.coils());
    let mut image = kspace.part(&(coil..coil + 1))?.reshape(shape)?;
    let conjugate: Vec<C32> = image.read()?.iter().map(|v| v.conj()).collect();
    Fft::new(kspace.device(), shape, Norm::Unitary)?.inverse(&mut image)?;
    let indices = draws(&mut rng, certify.outputs, image.len());
    // Σ d e^{+i2πk·x} at voxel x is the conjugate of the sum of conj d at the place k = x·n of a trajectory.
    let points = ndarray::Array2::from_shape_fn((indices.len(), shape.len()), |(row, component)| {
        let axis = shape.len() - 1 - component;
        let below: usize = shape[axis + 1..].iter().product();
        let n = shape[axis];
        (indices[row] / below % n) as f64 - (n / 2) as f64
    });
    let places = Trajectory::from_cycles_per_fov(points)?;
    let all: Vec<usize> = (0..indices.len()).collect();
    let scale = 1.0 / (image.len() as f64).sqrt();
    let exact: Vec<C64> = nudft::reference::forward_at(&places, shape, &conjugate, &all)?
        .into_iter()
        .map(|sum| sum.conj() * scale)
        .collect();
    let found = errors(&image.read()?, &exact, &indices);
    Ok(vec![Certificate::new("inverse FFT", image.len(), &found, FFT_TOLERANCE)])
}
