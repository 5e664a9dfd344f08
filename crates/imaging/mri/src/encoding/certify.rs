//! Random outputs of the transforms of points against the exact sums ([`rayspin_run::Certificate`]). A grid
//! has its inverse FFT checked ([`Encoding::certify`](super::kinds::Encoding::certify)).
//!
//! The adjoint (type 1) is checked on one coil's samples, and the forward transform (type 2) on the image of
//! these samples. The normal operator is applied to a few single voxels drawn at random. Their images are
//! displaced kernels Q, and the check sums these exactly over the trajectory. The N outputs of this check are
//! the outputs of all these images, and equally many are drawn of each. That leaves the statement true:
//! Π(1 − x_c)^(m/c) ≤ (1 − x)^m for shares x_c of mean x. A NUFFT of tolerance ε is off by at most 3ε
//! ([`nufft::BOUND`](rayspin_kernels::nufft::BOUND)), and that bound is what it must meet. The normal
//! operator stands for a forward and an adjoint transform, so its bound is twice as large. In an
//! inhomogeneous field the exact sums include the phases e^{−i2πft}, and the tolerance of the time segments
//! is added to the bound. Over a temporal subspace the outputs are outputs of all coefficients, with the
//! bound of one frame: the transforms are linear in Φ.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayspin_core::{C32, C64, Result};
use rayspin_device::Array;
use rayspin_kernels::{nufft, vector};
use rayspin_linop::LinearOp as _;
use rayspin_run::{Certify, draws, errors};

use super::kinds::{Encoding as _, Modulated, Plans};
use super::samples::CoilSamples;
use super::{Certificate, Spec};

/// Voxels that the normal operator is applied to.
const COLUMNS: usize = 4;

/// Sums of an encoding A in double precision, at some of its outputs. Images are those that it is solved for.
pub(super) trait Exact {
    /// Aᴴ of one coil's samples, at indices of the image.
    fn adjoint(&self, samples: &[C32], indices: &[usize]) -> Result<Vec<C64>>;

    /// A of an image, at indices of the samples.
    fn forward(&self, image: &[C32], indices: &[usize]) -> Result<Vec<C64>>;

    /// AᴴA of an image that is 1 at the index `from` alone, at indices of the image.
    fn column(&self, from: usize, indices: &[usize]) -> Result<Vec<C64>>;
}

/// Certificates of the transforms of points, on the samples `[coil, sample]`.
pub(super) fn points<P: Modulated>(
    plans: &Plans<P>,
    spec: &Spec<'_>,
    certify: &Certify,
    data: &CoilSamples<'_>,
) -> Result<Vec<Certificate>> {
    let mut rng = ChaCha8Rng::seed_from_u64(certify.seed);
    let (encoding, transforms) = (plans.modulated()?, plans.transforms()?);
    let [of_adjoint, of_forward, of_normal] = P::CERTIFICATES;
    let tolerance = nufft::BOUND * spec.settings().nufft_tolerance + P::tolerance(spec.settings());
    let (device, shape, count) = (data.device(), spec.image_shape(), transforms.trajectory().samples());
    let coil = rng.random_range(0..data.coils());
    let mut samples = data.part(&(coil..coil + 1))?.reshape(&[count])?;
    if spec.uses().density {
        let raw = samples.try_clone()?;
        vector::weight(plans.density()?, &raw, &mut samples)?;
    }
    let voxels: usize = shape.iter().product();
    let mut image = Array::zeros(device, &shape)?;
    encoding.adjoint(transforms, &samples, &mut image)?;
    let indices = draws(&mut rng, certify.outputs, voxels);
    let sums = encoding.exact(transforms)?;
    let exact = sums.adjoint(&samples.read()?, &indices)?;
    let deviations = errors(&image.read()?, &exact, &indices);
    let mut certificates = vec![Certificate::new(of_adjoint, voxels, &deviations, tolerance)];

    encoding.forward(transforms, &image, &mut samples)?;
    let indices = draws(&mut rng, certify.outputs, count);
    let exact = sums.forward(&image.read()?, &indices)?;
    let deviations = errors(&samples.read()?, &exact, &indices);
    certificates.push(Certificate::new(of_forward, count, &deviations, tolerance));

    if spec.uses().normal {
        let mut deviations = Vec::with_capacity(certify.outputs);
        let mut column = Array::zeros(device, &shape)?;
        let normal = encoding.normal(&[])?;
        let columns = COLUMNS.min(certify.outputs);
        for part in 0..columns {
            let from = rng.random_range(0..voxels);
            image.fill(C32::ZERO)?;
            image.update(|image| image[from] = C32::ONE)?;
            normal.forward_into(&image, &mut column)?;
            let share = (certify.outputs + part) / columns;
            let indices = draws(&mut rng, share, voxels);
            let exact = sums.column(from, &indices)?;
            deviations.extend(errors(&column.read()?, &exact, &indices));
        }
        certificates.push(Certificate::new(of_normal, columns * voxels, &deviations, 2.0 * tolerance));
    }
    Ok(certificates)
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
