use ndarray::ArrayViewD;
use num_complex::Complex;
use rayspin_core::{Real, Result};
use rayspin_device::{Array, Device};
use rayspin_kernels::fft::{Fft, Norm};
use rayspin_kernels::{sensitivity, vector, window};

use crate::{CoilMaps, LinearOp, Scratch};

/// x ↦ Σ_j c̄_j F⁻¹ M F (c_j x), the normal operator of Cartesian sensitivity encoding. F is the unitary
/// transform and M the mask of the sampled positions. Without maps the operator is F⁻¹ M F. It handles some
/// coils at a time. It is Hermitian, its own adjoint.
///
/// Pruessmann et al., *SENSE: sensitivity encoding for fast MRI*, Magn Reson Med 42:952, 1999.
///
/// ```
/// use rayspin_device::Device;
/// use rayspin_linop::{GridNormal, LinearOp, laws};
///
/// let device = Device::cpu()?;
/// let measured = ndarray::Array2::from_shape_fn((12, 10), |(y, _)| y % 2 == 0).into_dyn();
/// let maps = laws::random::<f32>(&device, &[4, 12, 10], 1)?;
/// let normal = GridNormal::new(&device, measured.view(), Some(maps.into()), None)?;
/// assert_eq!(normal.domain(), [12, 10]);
/// laws::check_positive(&normal, &device, 2, 1e-4)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct GridNormal<R: Real> {
    maps: Option<CoilMaps<R>>,
    mask: Array<R>,
    fft: Fft<R>,
    batch: Option<usize>,
    scratch: Scratch<Complex<R>>,
}

impl<R: Real> GridNormal<R> {
    /// For a grid with the positions `sampled` and the sensitivities `[coil, grid…]`, at most `batch` coils
    /// at a time.
    ///
    /// Errors: maps of another grid, a grid that no FFT takes, memory.
    pub fn new(
        device: &Device,
        sampled: ArrayViewD<'_, bool>,
        maps: Option<CoilMaps<R>>,
        batch: Option<usize>,
    ) -> Result<Self> {
        if let Some(maps) = &maps {
            maps.expect(sampled.shape())?;
        }
        let fft = Fft::new(device, sampled.shape(), Norm::Unitary)?;
        let mask = window::indicator(device, sampled)?;
        Ok(Self { maps, mask, fft, batch, scratch: Scratch::default() })
    }

    /// images ← F⁻¹ M F images. `between` is scratch space.
    fn project(&self, images: &mut Array<Complex<R>>, between: &mut Array<Complex<R>>) -> Result<()> {
        self.fft.forward(images)?;
        vector::weight(&self.mask, images, between)?;
        self.fft.inverse(between)
    }
}

impl<R: Real> LinearOp<Complex<R>> for GridNormal<R> {
    fn name(&self) -> &str {
        "Cartesian encoding"
    }
    fn domain(&self) -> &[usize] {
        self.mask.shape()
    }
    fn range(&self) -> &[usize] {
        self.mask.shape()
    }
    fn forward_into(&self, x: &Array<Complex<R>>, y: &mut Array<Complex<R>>) -> Result<()> {
        self.check_forward(x, y)?;
        let Some(maps) = &self.maps else {
            let mut images = self.scratch.take(x.device(), x.shape())?;
            images.copy_from(x)?;
            return self.project(&mut images, y);
        };
        y.fill(Complex::new(R::zero(), R::zero()))?;
        maps.each(self.batch, |coils, maps, taken| {
            let shape = [&[coils.len()], x.shape()].concat();
            let mut images = self.scratch.take(x.device(), &shape)?;
            let mut between = self.scratch.take(x.device(), &shape)?;
            sensitivity::expand_coils(maps, taken.clone(), x, &mut images)?;
            self.project(&mut images, &mut between)?;
            sensitivity::combine_coils_add(maps, taken, &between, y)
        })
    }
    fn adjoint_into(&self, y: &Array<Complex<R>>, x: &mut Array<Complex<R>>) -> Result<()> {
        self.forward_into(y, x)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use std::sync::Arc;

    use ndarray::{ArrayD, IxDyn};
    use rayspin_core::C32;

    use super::*;
    use crate::{Fourier, SamplingMask, Sense};

    fn random(device: &Device, shape: &[usize], seed: u64) -> Array<C32> {
        crate::random(device, shape, seed).unwrap()
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
                let normal =
                    GridNormal::new(&device, sampled.view(), Some(maps.clone().into()), batch).unwrap();
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
