use std::ops::Range;
use std::sync::Arc;

use ndarray::{ArrayD, Axis};
use rayspin_core::{C32, Error, Monitor, Result};
use rayspin_device::{Array, Device};
use rayspin_kernels::fft::{Fft, Norm};
use rayspin_kernels::{sensitivity, vector};
use rayspin_linop::{
    Adjoint, FiniteDifference, Fourier, GridNormal, Identity, LinearOp, Normal, SamplingMask, SoftSense,
};
use rayspin_solve::{CgOptions, Eigenvalue, LanczosOptions, LeastSquaresOptions, Watch, least_squares};

use super::coils::{Combiner, batches};
use super::plans::Plans;
use super::samples::CoilSamples;
use super::voxels::{Voxels, voxels};
use super::{Method, Reconstructor, Regulariser, Solve, sparse};

/// Solves for an image on the grid: F = mask · unitary FFT · coils, with d N/√M for the N voxels of the image and the M of the
/// grid, so that ρ is a density.
pub(super) fn on_grid(
    recon: &mut Reconstructor,
    mut data: CoilSamples<'_>,
    sampled: &ArrayD<bool>,
    image: &Voxels,
    maps: Option<Arc<Array<C32>>>,
    monitor: &Monitor<'_>,
) -> Result<(ArrayD<C32>, Solve)> {
    let device = recon.device.clone();
    let (grid, coils, batch) = (sampled.shape(), data.coils(), recon.options.coil_batch);
    data.scale(image.count() / voxels(grid).sqrt())?;
    let fft = Fft::new(&device, grid, Norm::Unitary)?;
    let mut images = |range: &Range<usize>| {
        let mut images = data.take(range)?;
        fft.inverse(&mut images)?;
        Ok(images)
    };
    if let (Method::CgSense, Some(maps)) = (recon.options.method, &maps)
        && in_sets(maps, grid)
    {
        let sense = Arc::new(SoftSense::new(maps)?);
        let rhs = sense.adjoint(&images(&(0..coils))?)?;
        drop(data);
        let encode = SamplingMask::new(&device, sense.range(), sampled.view())?
            .compose(Fourier::new(&device, &[coils], grid)?)?
            .compose(sense)?;
        return one_image(recon, &encode.normal_op(), &rhs, image, monitor);
    }
    if let (true, Some(maps)) = (recon.options.method.sees_all_coils(), &maps) {
        let rhs = sense_rhs(&device, maps, batches(coils, batch), &mut images)?;
        drop(data);
        let normal = GridNormal::new(&device, sampled.view(), Some(maps.clone().into()), batch)?;
        return one_image(recon, &normal, &rhs, image, monitor);
    }
    let normal = GridNormal::new(&device, sampled.view(), None, None)?;
    coil_by_coil(recon, &normal, (coils, image), maps.as_deref(), &mut images, monitor)
}

/// Solves for an image from samples anywhere: FᴴF is the Toeplitz convolution.
pub(super) fn on_trajectory(
    recon: &mut Reconstructor,
    plans: &Plans,
    mut data: CoilSamples<'_>,
    image: &Voxels,
    maps: Option<Arc<Array<C32>>>,
    monitor: &Monitor<'_>,
) -> Result<(ArrayD<C32>, Solve)> {
    let device = recon.device.clone();
    let (coils, batch) = (data.coils(), recon.options.coil_batch);
    let mut images = |range: &Range<usize>| {
        let samples = data.take(range)?;
        let mut images = Array::zeros(&device, &[&[range.len()], plans.matrix()].concat())?;
        plans.adjoint(&samples, &mut images)?;
        Ok(images)
    };
    if let (Method::CgSense, Some(maps)) = (recon.options.method, &maps)
        && in_sets(maps, plans.matrix())
    {
        let sense = Arc::new(SoftSense::new(maps)?);
        let rhs = monitor.stage("right-hand side", 0, || sense.adjoint(&images(&(0..coils))?))?;
        drop(data);
        let toeplitz = plans.normal(&[coils])?;
        let normal = Adjoint::new(sense.clone()).compose(toeplitz)?.compose(sense)?;
        return one_image(recon, &normal, &rhs, image, monitor);
    }
    if let (true, Some(maps)) = (recon.options.method.sees_all_coils(), &maps) {
        let rhs = monitor
            .stage("right-hand side", 0, || sense_rhs(&device, maps, batches(coils, batch), &mut images))?;
        drop(data);
        let normal = plans.sense_normal(maps.clone())?;
        return one_image(recon, &normal, &rhs, image, monitor);
    }
    let normal = plans.normal(&[])?;
    coil_by_coil(recon, &normal, (coils, image), maps.as_deref(), &mut images, monitor)
}

/// The images `[coil, image…]` of a range of coils before they are solved for.
type Images<'a> = &'a mut dyn FnMut(&Range<usize>) -> Result<Array<C32>>;

/// Σ_j c̄_j y_j over the coils' images y.
fn sense_rhs(
    device: &Device,
    maps: &Array<C32>,
    batches: impl Iterator<Item = Range<usize>>,
    images: Images<'_>,
) -> Result<Array<C32>> {
    let mut rhs = Array::zeros(device, &maps.shape()[1..])?;
    for range in batches {
        let images = images(&range)?;
        sensitivity::combine_coils_add(maps, range, &images, &mut rhs)?;
    }
    Ok(rhs)
}

fn one_image(
    recon: &mut Reconstructor,
    normal: &dyn LinearOp<f32>,
    rhs: &Array<C32>,
    voxels: &Voxels,
    monitor: &Monitor<'_>,
) -> Result<(ArrayD<C32>, Solve)> {
    let Eigenvalue { value: eigenvalue, converged: eigenvalue_converged, .. } =
        largest(recon, normal, monitor)?;
    if recon.options.method.is_sparse() {
        let (image, solve) = sparse::one_image(recon, normal, rhs, eigenvalue, voxels, monitor)?;
        return Ok((image, Solve { eigenvalue_converged, ..solve }));
    }
    let penalty = quadratic(recon, voxels, rhs.shape())?;
    let dims = voxels.matrix().len();
    let steps = recon.options.iterations;
    let (image, residuals, converged) = monitor.stage("conjugate gradients", steps, || {
        solve(recon, normal, rhs, dims, eigenvalue, penalty.as_ref(), monitor)
    })?;
    let image = without_sets(image.into_host()?, dims);
    Ok((image, Solve { residuals, eigenvalue, eigenvalue_converged, converged, ..Solve::default() }))
}

/// Whether maps are `[set, coil, matrix…]` rather than `[coil, matrix…]`.
fn in_sets(maps: &Array<C32>, matrix: &[usize]) -> bool {
    maps.shape().len() == matrix.len() + 2
}

/// Images `[set, matrix…]` as one, √Σ_s |ρ_s|² with the first one's phase; one image as it is.
fn without_sets(image: ArrayD<C32>, dims: usize) -> ArrayD<C32> {
    if image.ndim() == dims {
        return image;
    }
    image.map_axis(Axis(0), |sets| {
        let size = sets.iter().map(|v| v.norm_sqr()).sum::<f32>().sqrt();
        let first = sets[0].norm();
        if first > 0.0 { sets[0] * (size / first) } else { C32::from(size) }
    })
}

/// The coils' systems share their operator and differ in the right-hand side only: one after another, in the memory of
/// one.
fn coil_by_coil(
    recon: &mut Reconstructor,
    normal: &dyn LinearOp<f32>,
    (coils, voxels): (usize, &Voxels),
    maps: Option<&Array<C32>>,
    images: Images<'_>,
    monitor: &Monitor<'_>,
) -> Result<(ArrayD<C32>, Solve)> {
    let penalty = quadratic(recon, voxels, normal.domain())?;
    let matrix = normal.domain().to_vec();
    let device = recon.device.clone();
    let Eigenvalue { value: eigenvalue, converged: eigenvalue_converged, .. } =
        largest(recon, normal, monitor)?;
    let mut histories = Vec::with_capacity(coils);
    let mut all_converged = true;
    let mut combiner = Combiner::new(&device, coils, &matrix, maps);
    monitor.stage("conjugate gradients", coils * recon.options.iterations, || {
        for range in batches(coils, recon.options.coil_batch) {
            let mut images = images(&range)?;
            let mut rhs = Array::zeros(&device, &matrix)?;
            let len = rhs.len();
            for coil in 0..range.len() {
                vector::copy_part(&images, coil * len, &mut rhs, 0, len)?;
                let (image, residuals, converged) =
                    solve(recon, normal, &rhs, matrix.len(), eigenvalue, penalty.as_ref(), monitor)?;
                vector::copy_part(&image, 0, &mut images, coil * len, len)?;
                all_converged &= converged;
                histories.push(residuals);
            }
            drop(rhs);
            combiner.add(range, images)?;
        }
        Ok::<_, Error>(())
    })?;
    let solve = Solve {
        residuals: mean(&histories),
        eigenvalue,
        eigenvalue_converged,
        converged: all_converged,
        ..Solve::default()
    };
    Ok((combiner.finish()?, solve))
}

fn largest(recon: &Reconstructor, normal: &dyn LinearOp<f32>, monitor: &Monitor<'_>) -> Result<Eigenvalue> {
    // The steps of sparse methods must not exceed what their own frame allows.
    if let Some(value) = recon.eigenvalue.filter(|_| !recon.options.method.is_sparse()) {
        return Ok(Eigenvalue { value, residual: 0.0, iterations: 0, converged: true });
    }
    monitor.stage("largest eigenvalue", 0, || {
        // λ need not be known better than this, and each iteration costs as much as one of conjugate gradients.
        let options = LanczosOptions { tolerance: 1e-2, ..LanczosOptions::default() };
        rayspin_solve::largest_eigenvalue(normal, &recon.device, &options)
    })
}

/// A quadratic penalty: WᴴW, and what λ is multiplied by.
struct Quadratic {
    op: Box<dyn LinearOp<f32>>,
    factor: f64,
}

/// The quadratic penalty on images of `shape`, which may be larger than the `voxels`' matrix.
fn quadratic(recon: &Reconstructor, voxels: &Voxels, shape: &[usize]) -> Result<Option<Quadratic>> {
    let dims = voxels.matrix().len();
    Ok(match recon.options.regulariser {
        Regulariser::None => None,
        Regulariser::Identity => Some(Quadratic { op: Box::new(Identity::new(shape)), factor: 1.0 }),
        Regulariser::Differences => {
            let factor = voxels.gradient().powi(2);
            if shape.len() > dims {
                // Sets of maps have an image each, and are no axis of it.
                if recon.options.anatomy.is_some() {
                    return Err(Error::value("sets of maps", "1 with an anatomical reference", shape[0]));
                }
                let axes: Vec<usize> = (shape.len() - dims..shape.len()).collect();
                let differences = FiniteDifference::along(shape, &axes)?.weighted(voxels.slopes())?;
                return Ok(Some(Quadratic { op: Box::new(differences.normal_op()), factor }));
            }
            let differences = sparse::differences(&recon.device, &recon.options, voxels, shape)?;
            Some(Quadratic { op: Box::new(Normal::new(differences.into())), factor })
        }
    })
}

fn solve(
    recon: &mut Reconstructor,
    normal: &dyn LinearOp<f32>,
    rhs: &Array<C32>,
    dims: usize,
    eigenvalue: f64,
    penalty: Option<&Quadratic>,
    monitor: &Monitor<'_>,
) -> Result<(Array<C32>, Vec<f64>, bool)> {
    let options = LeastSquaresOptions {
        cg: CgOptions { max_iterations: recon.options.iterations, tolerance: recon.options.cg_tolerance },
        eigenvalue: LanczosOptions::default(),
        largest_eigenvalue: Some(eigenvalue),
    };
    let penalties: Vec<&dyn LinearOp<f32>> = penalty.iter().map(|p| &*p.op).collect();
    let lambda = penalty.map_or(0.0, |p| p.factor * recon.options.lambda);
    // Showing iterates takes an image more, and two passes over it in each iteration.
    let result = match &mut recon.observer {
        None => least_squares(normal, rhs, lambda, &penalties, &options, monitor)?,
        Some(observer) => least_squares(
            normal,
            rhs,
            lambda,
            &penalties,
            &options,
            Watch::from(monitor).showing(&mut |step| {
                observer(step.iteration, &without_sets(step.solution.to_host()?, dims));
                Ok(())
            }),
        )?,
    };
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
    use std::sync::atomic::{AtomicI32, Ordering};

    use super::*;
    use crate::recon::ReconOptions;

    /// An operator that grows by 3 % each time it is applied, as one does whose rounding errors run away.
    struct Growing {
        shape: Vec<usize>,
        applied: AtomicI32,
    }

    impl LinearOp<f32> for Growing {
        fn name(&self) -> &str {
            "growing"
        }
        fn domain(&self) -> &[usize] {
            &self.shape
        }
        fn range(&self) -> &[usize] {
            &self.shape
        }
        fn forward_into(&self, x: &Array<C32>, y: &mut Array<C32>) -> Result<()> {
            let size = 1.03f32.powi(self.applied.fetch_add(1, Ordering::Relaxed));
            let ramp = x.to_vec()?.into_iter().enumerate();
            let values: Vec<C32> = ramp.map(|(i, v)| v * size * (1.0 + i as f32)).collect();
            y.copy_from(&Array::from_slice(x.device(), x.shape(), &values)?)
        }
        fn adjoint_into(&self, y: &Array<C32>, x: &mut Array<C32>) -> Result<()> {
            self.forward_into(y, x)
        }
    }

    #[test]
    fn an_eigenvalue_that_is_not_settled_is_told() {
        let device = Device::cpu_with_threads(1).unwrap();
        let recon = Reconstructor::new(&device, ReconOptions::default()).unwrap();
        let normal = Growing { shape: vec![50], applied: AtomicI32::new(0) };
        let found = largest(&recon, &normal, &Monitor::silent()).unwrap();
        assert!(!found.converged, "{found:?}");
        let solve = Solve { eigenvalue_converged: found.converged, ..Solve::default() };
        assert!(solve.note().unwrap().contains("eigenvalue"));
        let fixed = largest(&recon, &Identity::new(&[50]), &Monitor::silent()).unwrap();
        assert!(fixed.converged);
        assert_eq!(Solve { eigenvalue_converged: fixed.converged, ..solve }.note(), None);
    }

    #[test]
    fn the_mean_history_keeps_ended_coils() {
        assert_eq!(mean(&[vec![1.0, 0.5], vec![1.0, 0.3, 0.1]]), [1.0, 0.4, 0.3]);
        assert!(mean(&[]).is_empty());
    }
}
