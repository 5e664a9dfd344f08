//! Images that are sparse: few wavelet coefficients, or few edges.

use ndarray::ArrayD;
use rayspin_core::{C32, Error, Monitor, Result, expect_shape};
use rayspin_device::{Array, Device};
use rayspin_linop::{Compose, FiniteDifference, LinearOp, Wavelet, weighted_differences};
use rayspin_solve::{
    FistaOptions, Problem, Proximal, TotalVariation, Watch, WaveletSparsity, sparse_least_squares,
};

use super::voxels::Voxels;
use super::{Method, ReconOptions, Reconstructor, Solve};
use crate::crop::centre_crop;

/// Steps of the inner problem of total variation in each iteration.
const VARIATION_STEPS: usize = 8;
/// Iterates that the image of wavelets is the mean of: each has seen other shifts.
const AVERAGED: usize = 8;

/// One image seen by all coils, with the penalty of the method; `voxels` are the image's, of which the grid may have more.
pub(super) fn one_image(
    recon: &mut Reconstructor,
    normal: &dyn LinearOp<f32>,
    rhs: &Array<C32>,
    eigenvalue: f64,
    voxels: &Voxels,
    monitor: &Monitor<'_>,
) -> Result<(ArrayD<C32>, Solve)> {
    let device = recon.device.clone();
    let shape = rhs.shape();
    let growth = match recon.options.method {
        Method::Wavelet => voxels.wavelet(),
        _ => voxels.gradient(),
    };
    let lambda = recon.options.lambda * growth;
    let average = match recon.options.method {
        Method::Wavelet => AVERAGED,
        _ => 1,
    };
    let options = FistaOptions {
        max_iterations: recon.options.iterations,
        tolerance: recon.options.cg_tolerance,
        average: average.min(recon.options.iterations.div_ceil(4)),
    };
    let differences = differences(&device, &recon.options, voxels, shape)?;
    let mut penalty: Box<dyn Proximal<f32> + '_> = match recon.options.method {
        Method::Wavelet => {
            let chosen = recon.options.wavelet;
            let wavelet = Wavelet::with_levels(shape, chosen.family.filter(), chosen.levels)?;
            Box::new(WaveletSparsity::new(&device, wavelet, Some(chosen.seed))?)
        }
        // An anatomy's weights are at most 1.
        _ => {
            let bound = 4.0 * voxels.slopes().iter().map(|r| r * r).sum::<f64>();
            Box::new(TotalVariation::new(&device, &*differences, bound, VARIATION_STEPS)?)
        }
    };
    let observer = &mut recon.observer;
    let found = monitor.stage("FISTA", options.max_iterations, || {
        let problem = Problem { normal, rhs, largest_eigenvalue: eigenvalue };
        sparse_least_squares(
            &problem,
            None,
            lambda,
            &mut *penalty,
            &options,
            Watch::from(monitor).showing(&mut |step| {
                if let Some(observer) = observer {
                    observer(step.iteration, &step.solution.to_host()?);
                }
                Ok(())
            }),
        )
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

/// D with the slopes of the voxels, or with a reference image diag(w) D, on images of `shape`, which may be larger than the
/// voxels' matrix, which is the reference's.
pub(super) fn differences(
    device: &Device,
    options: &ReconOptions,
    voxels: &Voxels,
    shape: &[usize],
) -> Result<Box<dyn LinearOp<f32>>> {
    match &options.anatomy {
        None => Ok(Box::new(FiniteDifference::new(shape)?.weighted(voxels.slopes())?)),
        Some(reference) => Ok(Box::new(anatomical(device, reference, options.anatomy_edge, voxels, shape)?)),
    }
}

/// diag(w) D with w_a(i) = r_a/√(1 + (|v(i + e_a) − v(i)| / η)²) and the slopes r from a reference image v, η being `edge` times the 99th
/// percentile of |v|: differences across edges of the reference cost little, so that these edges stay.
///
/// The squares of these weights are those of a quadratic penalty (J. P. Haldar et al., *Anatomically constrained
/// reconstruction from noisy data*, Magn Reson Med 59:810, 2008, take weights from reference images for it); in total
/// variation they are those of M. J. Ehrhardt, M. M. Betcke, *Multi-contrast MRI reconstruction with structure-guided total
/// variation*, SIAM J Imaging Sci 9:1084, 2016, an axis at a time.
fn anatomical(
    device: &Device,
    reference: &ArrayD<f32>,
    edge: f64,
    voxels: &Voxels,
    shape: &[usize],
) -> Result<Compose<f32>> {
    let matrix = voxels.matrix();
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
    let eta = (edge * f64::from(bright)) as f32;
    let grid = centre_crop(view.mapv(|v| C32::from(v.abs())), shape)?;
    let edges = FiniteDifference::new(shape)?.forward(&Array::from_host(device, &grid)?)?;
    let mut weights = edges.into_host()?.mapv(|d| (1.0 + (d.norm() / eta).powi(2)).sqrt().recip());
    for (mut axis, slope) in weights.outer_iter_mut().zip(voxels.slopes()) {
        axis.mapv_inplace(|w| w * *slope as f32);
    }
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
        let cubes = Voxels::new(&[4, 6], &[1.0; 3]);
        let op = anatomical(&device, &reference, 0.05, &cubes, &[4, 6]).unwrap();
        let ramp =
            Array::from_host(&device, &ArrayD::from_shape_fn(IxDyn(&[4, 6]), |i| C32::new(i[1] as f32, 0.0)));
        let d = op.forward(&ramp.unwrap()).unwrap().into_host().unwrap();
        assert_eq!(d[[1, 2, 1]], C32::new(1.0, 0.0));
        // |Δv| = 8 and η = 0.45.
        let wanted = 1.0 / (1.0f32 + (8.0f32 / 0.45).powi(2)).sqrt();
        assert!((d[[1, 2, 2]].re - wanted).abs() < 1e-6);
        assert_eq!(d[[0, 2, 2]], C32::ZERO);
        let turned = Voxels::new(&[6, 4], &[1.0; 3]);
        assert!(anatomical(&device, &reference, 0.05, &turned, &[6, 4]).is_err());
        assert!(anatomical(&device, &ArrayD::zeros(IxDyn(&[4, 6])), 0.05, &cubes, &[4, 6]).is_err());
    }
}
