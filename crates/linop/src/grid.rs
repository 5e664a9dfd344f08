//! The normal operator of Cartesian encoding, some coils at a time.

use std::sync::Arc;

use ndarray::ArrayD;
use rayspin_core::{C32, Result};
use rayspin_device::{Array, Device};
use rayspin_kernels::fft::{Fft, Norm};
use rayspin_kernels::{sensitivity, vector, window};
use rayspin_linop::{LinearOp, Scratch};

use super::coils::batches;

/// x ↦ Σ_j c̄_j F⁻¹ M F (c_j x) with the unitary F and the mask M of what was measured; without maps F⁻¹ M F x. Hermitian,
/// its own adjoint.
pub(super) struct GridNormal {
    maps: Option<Arc<Array<C32>>>,
    mask: Array<f32>,
    fft: Fft<f32>,
    batch: Option<usize>,
    scratch: Scratch<f32>,
}

impl GridNormal {
    pub(super) fn new(
        device: &Device,
        sampled: &ArrayD<bool>,
        maps: Option<Arc<Array<C32>>>,
        batch: Option<usize>,
    ) -> Result<Self> {
        Ok(Self {
            maps,
            mask: window::indicator(device, sampled.view())?,
            fft: Fft::new(device, sampled.shape(), Norm::Unitary)?,
            batch,
            scratch: Scratch::default(),
        })
    }

    /// images ← F⁻¹ M F images, by way of `between`.
    fn project(&self, images: &mut Array<C32>, between: &mut Array<C32>) -> Result<()> {
        self.fft.forward(images)?;
        vector::weight(&self.mask, images, between)?;
        self.fft.inverse(between)
    }
}

impl LinearOp<f32> for GridNormal {
    fn name(&self) -> &str {
        "Cartesian encoding"
    }
    fn domain(&self) -> &[usize] {
        self.mask.shape()
    }
    fn range(&self) -> &[usize] {
        self.mask.shape()
    }
    fn forward_into(&self, x: &Array<C32>, y: &mut Array<C32>) -> Result<()> {
        self.check_forward(x, y)?;
        let Some(maps) = &self.maps else {
            let mut images = self.scratch.take(x.device(), x.shape())?;
            images.copy_from(x)?;
            return self.project(&mut images, y);
        };
        y.fill(C32::ZERO)?;
        for coils in batches(maps.shape()[0], self.batch) {
            let shape = [&[coils.len()], x.shape()].concat();
            let mut images = self.scratch.take(x.device(), &shape)?;
            let mut between = self.scratch.take(x.device(), &shape)?;
            sensitivity::expand_coils(maps, coils.clone(), x, &mut images)?;
            self.project(&mut images, &mut between)?;
            sensitivity::combine_coils_add(maps, coils, &between, y)?;
        }
        Ok(())
    }
    fn adjoint_into(&self, y: &Array<C32>, x: &mut Array<C32>) -> Result<()> {
        self.forward_into(y, x)
    }
}

#[cfg(test)]
mod tests {
    use ndarray::IxDyn;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;
    use rayspin_linop::{Fourier, SamplingMask, Sense};

    use super::*;

    fn random(device: &Device, shape: &[usize], seed: u64) -> Array<C32> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut value = || rng.random_range(-1.0f32..1.0);
        let len = shape.iter().product();
        Array::from_vec(device, shape, (0..len).map(|_| C32::new(value(), value())).collect()).unwrap()
    }

    #[test]
    fn it_is_the_normal_operator_of_mask_transform_and_coils() {
        let device = Device::cpu_with_threads(2).unwrap();
        for (shape, coils) in [(vec![5, 8], 3), (vec![4, 3, 6], 5), (vec![1, 7], 1)] {
            let sampled = ArrayD::from_shape_fn(IxDyn(&shape), |i| i[shape.len() - 2] % 2 == 0);
            let maps = Arc::new(random(&device, &[&[coils], &shape[..]].concat(), 1));
            let encode = SamplingMask::new(&device, maps.shape(), sampled.view())
                .unwrap()
                .compose(Fourier::new(&device, &[coils], &shape).unwrap())
                .unwrap()
                .compose(Sense::new(maps.clone()).unwrap())
                .unwrap();
            let x = random(&device, &shape, 2);
            let wanted = encode.normal(&x).unwrap();
            for batch in [None, Some(1), Some(2), Some(9)] {
                let normal = GridNormal::new(&device, &sampled, Some(maps.clone()), batch).unwrap();
                let found = normal.forward(&x).unwrap();
                let scale = vector::norm_squared(&wanted).unwrap().sqrt();
                let mut difference = found;
                vector::axpy((-1.0).into(), &wanted, &mut difference).unwrap();
                assert!(
                    vector::norm_squared(&difference).unwrap().sqrt() < 1e-6 * scale,
                    "{shape:?} {batch:?}"
                );
            }
        }
    }
}
