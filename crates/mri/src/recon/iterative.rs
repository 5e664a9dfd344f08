use std::sync::Arc;

use ndarray::ArrayD;
use rayspin_core::{C32, Error, Monitor, Result};
use rayspin_device::Array;
use rayspin_kernels::{sensitivity, vector};
use rayspin_linop::{
    FiniteDifference, Fourier, Identity, LinearOp, Normal, Op, SamplingMask, Sense, SenseToeplitz,
    ToeplitzNormal,
};
use rayspin_solve::{CgOptions, LeastSquaresOptions, PowerOptions, least_squares_observed};

use super::plans::Plans;
use super::{Method, Reconstructor, Regulariser, Solve};
use crate::scan::Label;

/// Solves for an image on the grid: F = mask · unitary FFT · coils, with d/√N so that ρ keeps the scale of
/// (1/N) Σ d e^{+i2πk·x}.
pub(super) fn on_grid(
    recon: &mut Reconstructor,
    kspace: &ArrayD<C32>,
    sampled: &ArrayD<bool>,
    maps: Option<&Array<C32>>,
    monitor: &Monitor<'_>,
) -> Result<(ArrayD<C32>, Solve)> {
    let device = recon.device.clone();
    let grid = sampled.shape();
    let coils = kspace.shape()[0];
    let scale = 1.0 / (sampled.len() as f64).sqrt();
    let mut data = Array::from_host(&device, kspace.view())?;
    vector::scale(scale.into(), &mut data);
    if let (Method::CgSense, Some(maps)) = (recon.options.method, maps) {
        let encode = SamplingMask::new(&device, kspace.shape(), sampled.view())?
            .compose(Fourier::new(&device, &[coils], grid)?)?
            .compose(Sense::new(Arc::new(maps.try_clone()?))?)?;
        let rhs = encode.adjoint(&data)?;
        drop(data);
        return one_image(recon, &encode.normal_op(), &rhs, monitor);
    }
    let encode =
        SamplingMask::new(&device, grid, sampled.view())?.compose(Fourier::new(&device, &[], grid)?)?;
    let normal: Op<f32> = Arc::new(Normal::new(Arc::new(encode)));
    let mut images = Array::zeros(&device, kspace.shape())?;
    Fourier::new(&device, &[coils], grid)?.adjoint_into(&data, &mut images)?;
    coil_by_coil(recon, &*normal, images, maps, monitor)
}

/// Solves for an image from samples anywhere: FᴴF is the Toeplitz convolution.
pub(super) fn on_trajectory(
    recon: &mut Reconstructor,
    plans: &Plans,
    data: &Array<C32>,
    maps: Option<&Array<C32>>,
    monitor: &Monitor<'_>,
) -> Result<(ArrayD<C32>, Solve)> {
    let shape = [&data.shape()[..1], plans.matrix()].concat();
    let images = monitor.stage("right-hand side", 0, || {
        let mut images = Array::zeros(&recon.device, &shape)?;
        plans.nufft().adjoint(data, &mut images)?;
        Ok::<_, Error>(images)
    })?;
    if let (Method::CgSense, Some(maps)) = (recon.options.method, maps) {
        let mut rhs = Array::zeros(&recon.device, plans.matrix())?;
        sensitivity::combine(maps, &images, &mut rhs)?;
        drop(images);
        let normal = SenseToeplitz::new(Arc::new(maps.try_clone()?), plans.toeplitz()?.clone())?;
        return one_image(recon, &normal, &rhs, monitor);
    }
    let normal = ToeplitzNormal::new(&[], plans.toeplitz()?.clone());
    coil_by_coil(recon, &normal, images, maps, monitor)
}

fn one_image(
    recon: &mut Reconstructor,
    normal: &dyn LinearOp<f32>,
    rhs: &Array<C32>,
    monitor: &Monitor<'_>,
) -> Result<(ArrayD<C32>, Solve)> {
    let eigenvalue = largest(recon, normal, monitor)?;
    let steps = recon.options.iterations;
    let (image, residuals, converged) =
        monitor.stage("conjugate gradients", steps, || solve(recon, normal, rhs, eigenvalue, monitor))?;
    Ok((image.into_host()?, Solve { label: Label::default(), residuals, eigenvalue, converged }))
}

/// The coils' systems share their operator and differ in the right-hand side only: one after another, in the memory of
/// one.
fn coil_by_coil(
    recon: &mut Reconstructor,
    normal: &dyn LinearOp<f32>,
    mut images: Array<C32>,
    maps: Option<&Array<C32>>,
    monitor: &Monitor<'_>,
) -> Result<(ArrayD<C32>, Solve)> {
    let coils = images.shape()[0];
    let matrix = images.shape()[1..].to_vec();
    let eigenvalue = largest(recon, normal, monitor)?;
    let mut histories = Vec::with_capacity(coils);
    let mut all_converged = true;
    monitor.stage("conjugate gradients", coils * recon.options.iterations, || {
        let mut rhs = Array::zeros(&recon.device, &matrix)?;
        let len = rhs.len();
        for coil in 0..coils {
            vector::copy_part(&images, coil * len, &mut rhs, 0, len)?;
            let (image, residuals, converged) = solve(recon, normal, &rhs, eigenvalue, monitor)?;
            vector::copy_part(&image, 0, &mut images, coil * len, len)?;
            all_converged &= converged;
            histories.push(residuals);
        }
        Ok::<_, Error>(())
    })?;
    let solve =
        Solve { label: Label::default(), residuals: mean(&histories), eigenvalue, converged: all_converged };
    Ok((recon.combine(images, maps)?, solve))
}

fn largest(recon: &Reconstructor, normal: &dyn LinearOp<f32>, monitor: &Monitor<'_>) -> Result<f64> {
    let found = monitor.stage("largest eigenvalue", 0, || {
        // λ need not be known better than this, and each iteration costs as much as one of conjugate gradients.
        let options = PowerOptions { tolerance: 1e-2, ..PowerOptions::default() };
        rayspin_solve::power_iteration(normal, &recon.device, &options)
    })?;
    Ok(found.value)
}

fn solve(
    recon: &mut Reconstructor,
    normal: &dyn LinearOp<f32>,
    rhs: &Array<C32>,
    eigenvalue: f64,
    monitor: &Monitor<'_>,
) -> Result<(Array<C32>, Vec<f64>, bool)> {
    let options = LeastSquaresOptions {
        cg: CgOptions { max_iterations: recon.options.iterations, tolerance: recon.options.cg_tolerance },
        power: PowerOptions::default(),
        largest_eigenvalue: Some(eigenvalue),
    };
    let penalty: Option<Box<dyn LinearOp<f32>>> = match recon.options.regulariser {
        Regulariser::None => None,
        Regulariser::Identity => Some(Box::new(Identity::new(rhs.shape()))),
        Regulariser::Differences => Some(Box::new(FiniteDifference::new(rhs.shape())?.normal_op())),
    };
    let penalties: Vec<&dyn LinearOp<f32>> = penalty.iter().map(AsRef::as_ref).collect();
    let lambda = if penalties.is_empty() { 0.0 } else { recon.options.lambda };
    let observer = &mut recon.observer;
    let result = least_squares_observed(normal, rhs, lambda, &penalties, &options, monitor, &mut |step| {
        if let Some(observer) = observer {
            observer(step.iteration, &step.solution.to_host()?);
        }
        Ok(())
    })?;
    Ok((result.cg.solution, result.cg.residuals, result.cg.converged))
}

/// Mean over coils at each iteration; a coil that ended early keeps its last residual.
fn mean(histories: &[Vec<f64>]) -> Vec<f64> {
    let longest = histories.iter().map(Vec::len).max().unwrap_or(0);
    let at = |history: &Vec<f64>, i: usize| history.get(i).or(history.last()).copied().unwrap_or(0.0);
    (0..longest).map(|i| histories.iter().map(|h| at(h, i)).sum::<f64>() / histories.len() as f64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_history_keeps_ended_coils() {
        assert_eq!(mean(&[vec![1.0, 0.5], vec![1.0, 0.3, 0.1]]), [1.0, 0.4, 0.3]);
        assert!(mean(&[]).is_empty());
    }
}
