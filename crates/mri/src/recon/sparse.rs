//! Images that are sparse: few wavelet coefficients, or few edges.

use std::sync::Arc;

use ndarray::ArrayD;
use rayspin_core::{C32, Error, Monitor, Result, expect_shape};
use rayspin_device::{Array, Device};
use rayspin_linop::{Compose, FiniteDifference, LinearOp, Wavelet, WaveletFamily, weighted_differences};
use rayspin_solve::{FistaOptions, Proximal, TotalVariation, WaveletSparsity, sparse_least_squares};

use super::{Method, Reconstructor, Solve};
use crate::crop::centre_crop;

/// The matrix size at which λ of the sparse methods counts as it is given; at n it counts n/256 times.
///
/// Sums of magnitudes gather at edges, which grow as n^(d−1) voxels, and sums of squares as n^d: with λ growing as n, one
/// λ means the same image at any matrix size.
pub const LAMBDA_MATRIX: f64 = 256.0;
/// Steps of the inner problem of total variation in each iteration.
const VARIATION_STEPS: usize = 8;
/// Seed of the wavelets' random shifts: the same scan gives the same image.
const SHIFT_SEED: u64 = 1;
/// Difference in the reference image, as a share of its brightness, at which a weight of the squared difference is ½.
const EDGE: f64 = 0.05;

/// The matrix size as one number: the geometric mean over the axes that have a size.
fn matrix_size(matrix: &[usize]) -> f64 {
    let axes = matrix.iter().filter(|&&n| n > 1).count().max(1);
    (matrix.iter().product::<usize>() as f64).powf(1.0 / axes as f64)
}

/// One image seen by all coils, with the penalty of the method; `matrix` is the image's, of which the grid may be larger.
pub(super) fn one_image(
    recon: &mut Reconstructor,
    normal: &dyn LinearOp<f32>,
    rhs: &Array<C32>,
    eigenvalue: f64,
    matrix: &[usize],
    monitor: &Monitor<'_>,
) -> Result<(ArrayD<C32>, Solve)> {
    let device = recon.device.clone();
    let shape = rhs.shape();
    let growth = matrix_size(matrix) / LAMBDA_MATRIX;
    let lambda = recon.options.lambda * growth;
    let options =
        FistaOptions { max_iterations: recon.options.iterations, tolerance: recon.options.cg_tolerance };
    let differences = differences(&device, recon.options.anatomy.as_ref(), matrix, shape)?;
    let mut penalty: Box<dyn Proximal<f32> + '_> = match recon.options.method {
        Method::Wavelet => {
            let wavelet = Wavelet::new(shape, WaveletFamily::default())?;
            Box::new(WaveletSparsity::new(&device, wavelet, Some(SHIFT_SEED))?)
        }
        // Weights are at most 1: 4 an axis bounds the eigenvalues.
        _ => {
            let bound = 4.0 * shape.len() as f64;
            Box::new(TotalVariation::new(&device, &*differences, bound, VARIATION_STEPS)?)
        }
    };
    let observer = &mut recon.observer;
    let found = monitor.stage("FISTA", options.max_iterations, || {
        sparse_least_squares(normal, rhs, lambda, &mut *penalty, eigenvalue, &options, monitor, &mut |step| {
            if let Some(observer) = observer {
                observer(step.iteration, &step.solution.to_host()?);
            }
            Ok(())
        })
    })?;
    let solve = Solve {
        solver: "FISTA",
        residuals: found.fista.residuals,
        objective: found.fista.objective,
        eigenvalue,
        scale: Some(found.scale * growth),
        converged: found.fista.converged,
        ..Solve::default()
    };
    Ok((found.fista.solution.into_host()?, solve))
}

/// D, or with a reference image diag(w) D, on images of `shape`, which may be larger than the reference's `matrix`.
pub(super) fn differences(
    device: &Device,
    reference: Option<&Arc<ArrayD<f32>>>,
    matrix: &[usize],
    shape: &[usize],
) -> Result<Box<dyn LinearOp<f32>>> {
    match reference {
        None => Ok(Box::new(FiniteDifference::new(shape)?)),
        Some(reference) => Ok(Box::new(anatomical(device, reference, matrix, shape)?)),
    }
}

/// diag(w) D with w_a(i) = 1/√(1 + (|v(i + e_a) − v(i)| / η)²) from a reference image v, η being a twentieth of the 99th
/// percentile of |v|: differences across edges of the reference cost little, so that these edges stay.
///
/// The squares of these weights are those of a quadratic penalty (J. P. Haldar et al., *Anatomically constrained
/// reconstruction from noisy data*, Magn Reson Med 59:810, 2008, take weights from reference images for it); in total
/// variation they are those of M. J. Ehrhardt, M. M. Betcke, *Multi-contrast MRI reconstruction with structure-guided total
/// variation*, SIAM J Imaging Sci 9:1084, 2016, an axis at a time.
fn anatomical(
    device: &Device,
    reference: &ArrayD<f32>,
    matrix: &[usize],
    shape: &[usize],
) -> Result<Compose<f32>> {
    let mut view = reference.view();
    if view.ndim() == matrix.len() + 1 && view.shape()[0] == 1 {
        view.index_axis_inplace(ndarray::Axis(0), 0);
    }
    expect_shape("anatomical reference", matrix, view.shape())?;
    let mut sizes: Vec<f32> = view.iter().map(|v| v.abs()).collect();
    let at = (sizes.len() - 1) * 99 / 100;
    let bright = *sizes.select_nth_unstable_by(at, f32::total_cmp).1;
    if bright <= 0.0 {
        return Err(Error::value("anatomical reference", "an image that is not almost all 0", bright));
    }
    let eta = (EDGE * f64::from(bright)) as f32;
    let grid = centre_crop(view.mapv(|v| C32::from(v.abs())), shape)?;
    let edges = FiniteDifference::new(shape)?.forward(&Array::from_host(device, &grid)?)?;
    let weights = edges.into_host()?.mapv(|d| (1.0 + (d.norm() / eta).powi(2)).sqrt().recip());
    weighted_differences(Array::from_host(device, &weights)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::IxDyn;

    #[test]
    fn weights_are_small_across_edges_of_the_reference_only() {
        let device = Device::cpu_with_threads(1).unwrap();
        let reference = ArrayD::from_shape_fn(IxDyn(&[4, 6]), |i| if i[1] < 3 { 1.0f32 } else { -9.0 });
        let op = anatomical(&device, &reference, &[4, 6], &[4, 6]).unwrap();
        let ramp =
            Array::from_host(&device, &ArrayD::from_shape_fn(IxDyn(&[4, 6]), |i| C32::new(i[1] as f32, 0.0)));
        let d = op.forward(&ramp.unwrap()).unwrap().into_host().unwrap();
        assert_eq!(d[[1, 2, 1]], C32::new(1.0, 0.0));
        // |Δv| = 8 and η = 0.45.
        let wanted = 1.0 / (1.0f32 + (8.0f32 / 0.45).powi(2)).sqrt();
        assert!((d[[1, 2, 2]].re - wanted).abs() < 1e-6);
        assert_eq!(d[[0, 2, 2]], C32::ZERO);
        assert!(anatomical(&device, &reference, &[6, 4], &[6, 4]).is_err());
        assert!(anatomical(&device, &ArrayD::zeros(IxDyn(&[4, 6])), &[4, 6], &[4, 6]).is_err());
    }

    #[test]
    fn a_matrix_has_one_size() {
        assert_eq!(matrix_size(&[256, 256]), 256.0);
        assert_eq!(matrix_size(&[1, 256, 256]), 256.0);
        assert!((matrix_size(&[64, 128]) - 90.50966799187809).abs() < 1e-9);
        assert_eq!(matrix_size(&[1]), 1.0);
    }
}
