//! Random outputs of a run's transforms against the exact sums.
//!
//! Of the N outputs y of a transform m are drawn at random, with replacement, and evaluated exactly in f64; the error of
//! one is e = |y − y_exact| / √(Σ|y|²/N). Stated are
//!
//! * √(Σe²/m), an estimate of the relative l2 error, which the tolerance is compared with;
//! * max e, and a share x = 1 − δ^(1/m): at confidence 1 − δ at most the share x of all N outputs has a larger error. For
//!   were the share larger than x, all m draws would miss it with a probability below (1 − x)^m = δ. This holds for any
//!   distribution of errors. Nothing is said of how large the errors of that share are: no sample can.
//!
//! The adjoint (type 1) is that of one coil's samples, the forward transform (type 2) that of its image; the normal
//! operator is applied to a few single voxels drawn at random, whose images are displaced kernels Q, summed exactly over
//! the trajectory. There the N outputs are those of these images, and equally many are drawn of each, which leaves the
//! statement true: Π(1 − x_c)^(m/c) ≤ (1 − x)^m for shares x_c of mean x. It stands for a forward and an adjoint
//! transform, each of which may be off by ε, so it is to meet 2ε. In an uneven field the sums are those of the encoding with its
//! phases e^{−i2πft}, and ε is the NUFFT's tolerance and the time segments' together.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayspin_core::{C32, C64, Error, Result, Trajectory};
use rayspin_device::Array;
use rayspin_kernels::fft::{Fft, Norm};
use rayspin_kernels::{nudft, vector};
use rayspin_linop::LinearOp as _;
use serde::Serialize;

use super::plans::Plans;
use super::samples::CoilSamples;
use crate::scan::Label;

/// δ: the statement on the share of larger errors is wrong in at most one of this many runs.
pub const CONFIDENCE: f64 = 0.99;
/// Relative l2 error that an FFT in single precision is to meet.
pub const FFT_TOLERANCE: f64 = 1e-6;
/// Voxels that the normal operator is applied to.
const COLUMNS: usize = 4;

/// How a run is to check itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Certify {
    /// Outputs of each transform, at least 1.
    pub outputs: usize,
    /// Seed of the draws.
    pub seed: u64,
}

/// What was measured of one transform.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Certificate {
    /// The transform.
    pub transform: String,
    /// The first image that its plan makes.
    pub first: Label,
    /// Outputs evaluated exactly.
    pub outputs: usize,
    /// Outputs that there are.
    pub population: usize,
    /// √(Σe²/m).
    pub error: f64,
    /// max e of the outputs evaluated.
    pub largest: f64,
    /// At most this share of all outputs has a larger error than that …
    pub share: f64,
    /// … at this confidence.
    pub confidence: f64,
    /// The relative l2 error that the transform is to meet.
    pub tolerance: f64,
}

impl Certificate {
    /// Whether the estimated relative l2 error meets the tolerance.
    pub fn met(&self) -> bool {
        self.error <= self.tolerance
    }

    /// With the image that it is the first of.
    pub(super) fn first(label: Label) -> impl Fn(Self) -> Self {
        move |certificate| Self { first: label, ..certificate }
    }

    /// From errors relative to the root mean square of all outputs.
    fn new(transform: &str, population: usize, errors: &[f64], tolerance: f64) -> Self {
        let outputs = errors.len();
        Self {
            transform: transform.into(),
            first: Label::default(),
            outputs,
            population,
            error: (errors.iter().map(|e| e * e).sum::<f64>() / outputs as f64).sqrt(),
            largest: errors.iter().copied().fold(0.0, f64::max),
            share: 1.0 - (1.0 - CONFIDENCE).powf(1.0 / outputs as f64),
            confidence: CONFIDENCE,
            tolerance,
        }
    }
}

fn draws(rng: &mut ChaCha8Rng, count: usize, population: usize) -> Vec<usize> {
    (0..count).map(|_| rng.random_range(0..population)).collect()
}

/// |y − exact| over the root mean square of y, at the drawn indices.
fn errors(found: &[C32], exact: &[C64], indices: &[usize]) -> Vec<f64> {
    let square = |v: &C32| f64::from(v.re).powi(2) + f64::from(v.im).powi(2);
    let rms = (found.iter().map(square).sum::<f64>() / found.len() as f64).sqrt();
    let wide = |v: C32| C64::new(v.re.into(), v.im.into());
    let error = |(&index, exact): (&usize, &C64)| (wide(found[index]) - exact).norm();
    // Nothing but zeros is right when it is exactly that.
    let scale = |e: f64| {
        if rms > 0.0 {
            e / rms
        } else if e == 0.0 {
            0.0
        } else {
            f64::INFINITY
        }
    };
    indices.iter().zip(exact).map(error).map(scale).collect()
}

/// Certificates of the plans' transforms, on the samples `[coil, sample]`.
pub(super) fn trajectory(
    certify: &Certify,
    plans: &Plans,
    data: &CoilSamples<'_>,
    weighted: bool,
    iterates: bool,
    tolerance: f64,
) -> Result<Vec<Certificate>> {
    let mut rng = ChaCha8Rng::seed_from_u64(certify.seed);
    let (device, matrix, trajectory) = (data.device(), plans.matrix(), plans.trajectory());
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
    let uneven = plans.uneven()?;
    let exact = match &uneven {
        Some(uneven) => uneven.adjoint(trajectory, matrix, &samples.read()?, &indices)?,
        None => nudft::reference::adjoint_at(trajectory, matrix, &samples.read()?, &indices)?,
    };
    let found = errors(&image.read()?, &exact, &indices);
    let mut all = vec![Certificate::new("NUFFT adjoint", voxels, &found, tolerance)];

    plans.forward(&image, &mut samples)?;
    let indices = draws(&mut rng, certify.outputs, trajectory.samples());
    let exact = match &uneven {
        Some(uneven) => uneven.forward(trajectory, matrix, &image.read()?, &indices)?,
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
            let exact = match &uneven {
                Some(uneven) => uneven.column(trajectory, matrix, from, &indices)?,
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
fn displacement(matrix: &[usize], from: usize, to: usize) -> usize {
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

impl Certify {
    pub(super) fn validate(&self) -> Result<()> {
        if (1..=1 << 24).contains(&self.outputs) {
            return Ok(());
        }
        Err(Error::value("outputs to certify", "1 to 16777216", self.outputs))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_beyond_the_largest_draw_is_bounded_as_often_as_stated() {
        // A population with a known share of large errors: the statement may fail in δ of all samples at most.
        let population: Vec<f64> = (0..1000).map(|i| f64::from(i) * 1e-3).collect();
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut wrong = 0;
        let rounds = 4000;
        for _ in 0..rounds {
            let errors: Vec<f64> = draws(&mut rng, 50, 1000).into_iter().map(|i| population[i]).collect();
            let certificate = Certificate::new("t", 1000, &errors, 1.0);
            let above = population.iter().filter(|&&e| e > certificate.largest).count();
            wrong += usize::from(above as f64 / 1000.0 > certificate.share);
        }
        let rate = f64::from(wrong as u32) / f64::from(rounds);
        assert!(rate < 0.015, "{rate}");
    }

    #[test]
    fn a_wrong_transform_is_found() {
        let found = [C32::ONE; 8];
        let exact = [C64::ONE, C64::new(1.5, 0.0)];
        let certificate = Certificate::new("t", 8, &errors(&found, &exact, &[0, 7]), 1e-3);
        assert!(!certificate.met() && (certificate.largest - 0.5).abs() < 1e-12);
    }
}
