//! Conjugate gradients, and what they take.

use ndarray::{ArrayD, Axis};
use rayspin_core::{C32, Monitor, Result};
use rayspin_device::Array;
use rayspin_kernels::variant::Work;
use rayspin_linop::LinearOp;
use rayspin_run::{Bytes, Cost, Memory};
use rayspin_solve::{
    CgOptions, Eigenvalue, LanczosOptions, LeastSquaresOptions, Regularisation, Step, Watch, least_squares,
};

use super::penalty::Quadratic;
use crate::encoding::{Observer, Solve, Spec};

/// Conjugate gradients on (FᴴF + λ WᴴW) ρ = Fᴴd.
#[derive(Debug, Clone, Copy)]
pub(super) struct Conjugate {
    pub(super) lambda: f64,
    pub(super) iterations: usize,
    pub(super) tolerance: f64,
}

/// What conjugate gradients found.
pub(super) struct Found {
    pub(super) image: Array<C32>,
    pub(super) residuals: Vec<f64>,
    pub(super) converged: bool,
    pub(super) remaining: f64,
}

/// FᴴF and Fᴴd.
#[derive(Clone, Copy)]
pub(super) struct Normal<'a> {
    pub(super) operator: &'a dyn LinearOp<C32>,
    pub(super) rhs: &'a Array<C32>,
    pub(super) eigenvalue: f64,
}

impl Conjugate {
    /// Solves one system; `observer` sees images of `dims` axes.
    pub(super) fn solve(
        &self,
        normal: Normal<'_>,
        penalty: Option<&Quadratic>,
        dims: usize,
        observer: &mut Option<Observer>,
        monitor: &Monitor<'_>,
    ) -> Result<Found> {
        let Normal { operator, rhs, eigenvalue } = normal;
        let options = LeastSquaresOptions {
            cg: CgOptions { max_iterations: self.iterations, tolerance: self.tolerance },
            eigenvalue: LanczosOptions::default(),
            largest_eigenvalue: Some(eigenvalue),
        };
        let penalties: Vec<&dyn LinearOp<C32>> = penalty.iter().map(|p| &*p.op).collect();
        let lambda = penalty.map_or(0.0, |p| p.factor * self.lambda);
        // Showing iterates takes an image more, and two passes over it in each iteration.
        let watched = observer.is_some();
        let mut show = |step: &Step<'_, C32>| {
            if let Some(observer) = observer.as_mut() {
                observer(step.iteration, &without_sets(step.solution.to_host()?, dims));
            }
            Ok(())
        };
        let mut watch = Watch::from(monitor);
        if watched {
            watch = watch.with_observer(&mut show);
        }
        let result =
            least_squares(operator, rhs, None, Regularisation::new(lambda, &penalties), &options, watch)?;
        let remaining = result.cg.remaining();
        let rayspin_solve::CgResult { solution, residuals, converged, .. } = result.cg;
        Ok(Found { image: solution, residuals, converged, remaining })
    }

    /// What it takes on images of the encoding, with `penalty` arrays of an image for the penalty, `solves`
    /// times over; and `beside` in arrays.
    pub(super) fn needs(&self, spec: &Spec<'_>, penalty: u64, solves: u64, beside: u64) -> Result<Cost> {
        // Scaled right-hand side, solution, residual, product, direction.
        let arrays = (5 + penalty) * spec.image_bytes();
        let iterations = self.iterations as u64;
        let memory = Memory::temporary(Bytes::with_host(spec.device(), arrays + beside, spec.to_host()));
        let applications = spec.normal_effort(iterations)?.times(solves);
        Ok(Cost::of(memory).and(applications.iterations(solves * iterations).and(vector_work(
            spec,
            solves * iterations,
            1.0,
        ))))
    }
}

/// A vector operation or two on every array, each iteration; sparse methods pass over the image some five
/// times as often.
pub(super) fn vector_work(spec: &Spec<'_>, iterations: u64, passes: f64) -> Work {
    let images = spec.coefficients().unwrap_or(1) as f64;
    let n = images * spec.voxels_of_domain() as f64 * iterations as f64 * passes;
    Work { bytes: 88.0 * n, flops: 40.0 * n }
}

/// Images `[set, matrix…]` or `[coefficient, matrix…]` as one, √Σ_s |ρ_s|² with the first one's phase; one
/// image as it is.
pub(super) fn without_sets(image: ArrayD<C32>, dims: usize) -> ArrayD<C32> {
    if image.ndim() == dims {
        return image;
    }
    image.map_axis(Axis(0), |sets| {
        let size = sets.iter().map(|v| v.norm_sqr()).sum::<f32>().sqrt();
        let first = sets[0].norm();
        if first > 0.0 { sets[0] * (size / first) } else { C32::from(size) }
    })
}

/// What the eigenvalue says of a solve.
pub(super) fn with_eigenvalue(solve: Solve, eigenvalue: &Eigenvalue) -> Solve {
    Solve { eigenvalue: eigenvalue.value, eigenvalue_converged: eigenvalue.converged, ..solve }
}
