use num_complex::Complex;
use rayspin_core::{C64, Real, Result, expect_shape};
use rayspin_device::{Array, Device};

use super::interpolator::distinct;
use super::{Interpolator, SegmentWeights, modulate, weigh};

/// E ρ = Σ_l B_l F D_l ρ, the encoding in the field f. D_l = diag(e^{−i2πf(x)τ_l}), F is a Fourier transform
/// along the trajectory, and B_l = diag(b_l(t_m)) holds the interpolators of an [`Interpolator`]. Eᴴ = Σ_l
/// D_lᴴ Fᴴ B_lᴴ exactly.
///
/// Weights are stored once per distinct time, not once per sample.
///
/// ```
/// use ndarray::array;
/// use rayspin_core::{C64, Trajectory};
/// use rayspin_device::{Array, Device};
/// use rayspin_kernels::nudft;
/// use rayspin_kernels::off_resonance::{Interpolator, Scratch, Segments};
///
/// let device = Device::cpu()?;
/// let trajectory = Trajectory::from_cycles_per_fov(array![[0.0], [1.0]])?;
/// let interpolator = Interpolator::new([-60.0, 60.0], [0.0, 0.01], 1e-4)?;
/// let segments = Segments::new(&device, &interpolator, &[0.0, 0.01])?;
/// let field = Array::from_vec(&device, &[4], vec![25.0f64; 4])?; // Hz
/// let image = Array::from_vec(&device, &[4], [0.0, 0.0, 0.0, 1.0].map(C64::from).to_vec())?; // x = ¼
/// let mut samples = Array::zeros(&device, &[2])?;
/// let (mut turned, mut weighted) = (Array::zeros(&device, &[4])?, Array::zeros(&device, &[2])?);
/// let scratch = Scratch { image: &mut turned, samples: &mut weighted };
/// let mut transform = |x: &Array<C64>, y: &mut Array<C64>| nudft::forward(&trajectory, x, y);
/// segments.forward(&field, &image, &mut samples, scratch, &mut transform)?;
/// // e^{−i2π·25·0.01} e^{−i2π·1·¼} = −i · −i
/// assert!((samples.to_vec()?[1] + 1.0).norm() < 1e-3);
/// # Ok::<(), rayspin_core::Error>(())
/// ```
#[derive(Debug)]
pub struct Segments<R: Real> {
    taus: Vec<f64>,
    /// `[segment, time]`.
    table: Array<Complex<R>>,
    /// The time of each sample, as an index.
    index: Array<u32>,
}

/// Scratch arrays of a transform by segments.
#[derive(Debug)]
pub struct Scratch<'a, R: Real> {
    /// With the shape of the images.
    pub image: &'a mut Array<Complex<R>>,
    /// With the shape of the samples.
    pub samples: &'a mut Array<Complex<R>>,
}

/// A transform of images `[batch.., matrix…]` and samples `[batch.., sample]`, into its second argument.
pub type Transform<'a, R> = &'a mut dyn FnMut(&Array<Complex<R>>, &mut Array<Complex<R>>) -> Result<()>;

impl<R: Real> Segments<R> {
    /// For samples at `times` (s), in the order of the trajectory. Errors: as [`Interpolator::table`],
    /// memory.
    pub fn new(device: &Device, interpolator: &Interpolator, times: &[f64]) -> Result<Self> {
        let known = interpolator.table(times)?;
        let (segments, count) = (interpolator.segments(), known.times());
        let narrow = |b: &C64| Complex::new(<R as Real>::from_f64(b.re), <R as Real>::from_f64(b.im));
        let table = (0..segments).flat_map(|l| known.segment(l).iter().map(narrow)).collect();
        Ok(Self {
            taus: interpolator.times(),
            table: Array::from_vec(device, &[segments, count], table)?,
            index: Array::from_slice(device, &[times.len()], known.index())?,
        })
    }

    /// Bytes that it holds for samples at `times` and `segments` segments.
    pub fn bytes_needed(times: &[f64], segments: usize) -> u64 {
        let table = (segments * distinct(times).len() * size_of::<Complex<R>>()) as u64;
        table + (times.len() * size_of::<u32>()) as u64
    }

    /// Number of segments.
    pub fn segments(&self) -> usize {
        self.taus.len()
    }

    /// Number of samples.
    pub fn samples(&self) -> usize {
        self.index.len()
    }

    fn weights(&self, segment: usize, conjugate: bool) -> SegmentWeights<'_, R> {
        SegmentWeights { table: &self.table, segment, index: &self.index, conjugate }
    }

    /// y ← E x. `field` is `[matrix…]` in Hz, `x` is `[batch.., matrix…]`, and `y` is `[batch.., sample]`.
    /// `transform` is F.
    ///
    /// Errors: shapes that do not fit; different devices; errors of `transform`.
    pub fn forward(
        &self,
        field: &Array<R>,
        x: &Array<Complex<R>>,
        y: &mut Array<Complex<R>>,
        Scratch { image, samples }: Scratch<'_, R>,
        transform: Transform<'_, R>,
    ) -> Result<()> {
        expect_shape("off-resonance: image to work in", x.shape(), image.shape())?;
        for (l, &tau) in self.taus.iter().enumerate() {
            modulate(field, -tau, x, image, false)?;
            transform(image, samples)?;
            weigh(self.weights(l, false), samples, y, l > 0)?;
        }
        Ok(())
    }

    /// x ← Eᴴ y, with the arguments of [`Segments::forward`]; `transform` is Fᴴ.
    pub fn adjoint(
        &self,
        field: &Array<R>,
        y: &Array<Complex<R>>,
        x: &mut Array<Complex<R>>,
        Scratch { image, samples }: Scratch<'_, R>,
        transform: Transform<'_, R>,
    ) -> Result<()> {
        expect_shape("off-resonance: image to work in", x.shape(), image.shape())?;
        for (l, &tau) in self.taus.iter().enumerate() {
            weigh(self.weights(l, true), y, samples, false)?;
            transform(samples, image)?;
            modulate(field, tau, image, x, l > 0)?;
        }
        Ok(())
    }
}
