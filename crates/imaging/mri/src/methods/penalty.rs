//! Penalties on differences, and reference images that leave edges alone.

use std::sync::Arc;

use ndarray::ArrayD;
use rayspin_core::{C32, Error, Result, expect_shape};
use rayspin_device::{Array, Device};
use rayspin_linop::{
    BlockDiagonal, Compose, FiniteDifference, Identity, LinearOp, Normal, weighted_differences,
};

use super::Idle;
use super::rules::Law;
use crate::choices;
use crate::crop::centre_crop;
use crate::encoding::{Spec, Voxels};

choices! {
    /// W of the penalty λ‖Wρ‖².
    pub enum Regulariser {
        /// No penalty.
        None = "none", "No penalty";
        /// W = 1: small images.
        Identity = "identity", "Size of the image";
        /// Finite differences: smooth images.
        Differences = "differences", "Finite differences";
    }
}

/// λ of the squared size of an image: proportional to the noise's power over the signal's in the image.
pub(super) const TIKHONOV: Law = Law { factors: [0.7, 0.07], power: 2, range: [[1e-5, 1e-2], [1e-6, 1e-3]] };

/// A reference image whose edges differences leave alone, and what counts as one.
#[derive(Clone, Copy)]
pub(super) struct Reference<'a> {
    pub(super) image: Option<&'a Arc<ArrayD<f32>>>,
    pub(super) edge: f64,
}

/// The quadratic penalty of a method.
#[derive(Clone, Copy)]
pub(super) struct Penalty<'a> {
    pub(super) regulariser: Regulariser,
    pub(super) lambda: f64,
    pub(super) reference: Reference<'a>,
}

/// A quadratic penalty: WᴴW, and what λ is multiplied by.
pub(super) struct Quadratic {
    pub(super) op: Box<dyn LinearOp<C32>>,
    pub(super) factor: f64,
}

impl<'a> Penalty<'a> {
    pub(super) fn new(
        regulariser: Regulariser,
        lambda: f64,
        anatomy: Option<&'a Arc<ArrayD<f32>>>,
        edge: f64,
    ) -> Self {
        Self { regulariser, lambda, reference: Reference { image: anatomy, edge } }
    }

    /// λ, or 0 without a penalty.
    pub(super) fn weight(&self) -> f64 {
        if self.regulariser == Regulariser::None { 0.0 } else { self.lambda }
    }

    /// The operator on images of `shape`, which may be larger than the encoding's matrix.
    pub(super) fn quadratic(&self, spec: &Spec<'_>, shape: &[usize]) -> Result<Option<Quadratic>> {
        let voxels = spec.voxels();
        let dims = voxels.matrix().len();
        Ok(match self.regulariser {
            Regulariser::None => None,
            Regulariser::Identity => Some(Quadratic { op: Box::new(Identity::new(shape)), factor: 1.0 }),
            Regulariser::Differences => {
                let factor = voxels.gradient().powi(2);
                if spec.coefficients().is_some() && self.reference.image.is_some() {
                    let image = shape.get(1..).unwrap_or_default();
                    let one: Arc<dyn LinearOp<C32>> =
                        self.reference.differences(spec.device(), voxels, image)?.into();
                    let blocks = BlockDiagonal::new(vec![one; shape[0]])?;
                    return Ok(Some(Quadratic { op: Box::new(blocks.normal_op()), factor }));
                }
                if shape.len() > dims {
                    // Sets of maps, and coefficients, have an image each, and are no axis of it.
                    if self.reference.image.is_some() {
                        return Err(Error::value("sets of maps", "1 with an anatomical reference", shape[0]));
                    }
                    let axes: Vec<usize> = (shape.len() - dims..shape.len()).collect();
                    let differences = FiniteDifference::along(shape, &axes)?.weighted(voxels.slopes())?;
                    return Ok(Some(Quadratic { op: Box::new(differences.normal_op()), factor }));
                }
                let differences = self.reference.differences(spec.device(), voxels, shape)?;
                Some(Quadratic { op: Box::new(Normal::new(differences.into())), factor })
            }
        })
    }

    /// Number of arrays of the image's size for the term, for images with `axes` axes.
    pub(super) fn arrays(&self, axes: usize) -> u64 {
        match self.reference.image {
            _ if self.weight() == 0.0 => 0,
            None => 1,
            Some(_) => 1 + self.reference.arrays(axes) + 2 * axes as u64,
        }
    }

    pub(super) fn check(&self) -> Result<()> {
        match self.reference.image {
            Some(_) if self.regulariser != Regulariser::Differences => Err(Error::value(
                "anatomical reference",
                "the method tv, or cg-sense or ls with differences as the penalty",
                "another penalty",
            )),
            _ => Ok(()),
        }
    }

    /// What does nothing without a penalty, or with another one.
    pub(super) fn idle(&self) -> Vec<Idle> {
        let mut idle = Vec::new();
        if self.regulariser == Regulariser::None {
            let expected = "`--regulariser identity` or `differences`";
            idle.push(Idle { name: "lambda", expected, found: "`--regulariser none`".to_owned() });
        }
        if self.regulariser != Regulariser::Differences {
            let expected = "`--method tv`, or `ls` or `cg-sense` with `--regulariser differences`";
            idle.push(Idle { name: "anatomy", expected, found: "another penalty".to_owned() });
        }
        idle.extend(self.reference.idle());
        idle
    }
}

impl Reference<'_> {
    /// What does nothing without a reference image.
    pub(super) fn idle(&self) -> Option<Idle> {
        let expected = "`--anatomy`";
        self.image.is_none().then(|| Idle { name: "anatomy_edge", expected, found: "none".to_owned() })
    }

    /// Arrays of an image that its weights take: they are real, and differences are weighted in an array of
    /// their own.
    pub(super) fn arrays(&self, axes: usize) -> u64 {
        let axes = axes as u64;
        if self.image.is_some() { axes.div_ceil(2) + axes } else { 0 }
    }

    /// D with the slopes of the voxels, or with a reference image diag(w) D, on images of `shape`, which may
    /// be larger than the voxels' matrix, which is the reference's.
    pub(super) fn differences(
        &self,
        device: &Device,
        voxels: &Voxels,
        shape: &[usize],
    ) -> Result<Box<dyn LinearOp<C32>>> {
        match self.image {
            None => Ok(Box::new(FiniteDifference::new(shape)?.weighted(voxels.slopes())?)),
            Some(reference) => Ok(Box::new(anatomical(device, reference, self.edge, voxels, shape)?)),
        }
    }
}
/// diag(w) D with w_a(i) = r_a/√(1 + (|v(i + e_a) − v(i)| / η)²), from the slopes r and a reference image v.
/// η is `edge` times the 99th percentile of |v|. Differences across edges of the reference cost little, so
/// that these edges stay.
///
/// A quadratic penalty takes the squares of these weights. J. P. Haldar et al., *Anatomically constrained
/// reconstruction from noisy data*, Magn Reson Med 59:810, 2008, take weights of such a penalty from
/// reference images. In total variation the weights follow M. J. Ehrhardt, M. M. Betcke, *Multi-contrast MRI
/// reconstruction with structure-guided total variation*, SIAM J Imaging Sci 9:1084, 2016, an axis at a time.
fn anatomical(
    device: &Device,
    reference: &ArrayD<f32>,
    edge: f64,
    voxels: &Voxels,
    shape: &[usize],
) -> Result<Compose<C32>> {
    let matrix = voxels.matrix();
    let mut view = reference.view();
    if view.ndim() == matrix.len() + 1 && view.shape()[0] == 1 {
        view.index_axis_inplace(ndarray::Axis(0), 0);
    }
    expect_shape("anatomical reference", matrix, view.shape())?;
    let mut sizes: Vec<f32> = view.iter().map(|v| v.abs()).collect();
    let rank = (sizes.len() - 1) * 99 / 100;
    let bright = *sizes.select_nth_unstable_by(rank, f32::total_cmp).1;
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
