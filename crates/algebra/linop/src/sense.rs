use std::sync::{Arc, OnceLock};

use num_complex::Complex;
use rayspin_core::{Error, Real, Result, format_shape};
use rayspin_device::Array;
use rayspin_kernels::{sensitivity, vector};

use crate::{LinearOp, Scratch};

/// S: one image to coil images, y_j(x) = c_j(x) ρ(x); Sᴴ: Σ_j conj(c_j(x)) y_j(x). SᴴS is Σ_j |c_j|², a
/// diagonal.
///
/// Pruessmann et al., *SENSE: sensitivity encoding for fast MRI*, Magn Reson Med 42:952, 1999.
///
/// ```
/// use rayspin_device::Device;
/// use rayspin_linop::{LinearOp, Sense, random};
///
/// let device = Device::cpu()?;
/// let maps = random::<f32>(&device, &[8, 6, 5], 1)?;
/// let sense = Sense::new(maps)?;
/// let coil_images = sense.forward(&random(&device, &[6, 5], 2)?)?;
/// assert_eq!(coil_images.shape(), [8, 6, 5]);
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub struct Sense<R: Real> {
    maps: Arc<Array<Complex<R>>>,
    power: OnceLock<Array<R>>,
}

impl<R: Real> Sense<R> {
    /// From sensitivities `[coil, image…]`. Errors: no axis of coils.
    pub fn new(maps: impl Into<Arc<Array<Complex<R>>>>) -> Result<Self> {
        let maps = maps.into();
        expect_maps(maps.shape())?;
        Ok(Self { maps, power: OnceLock::new() })
    }

    /// The sensitivities.
    pub fn maps(&self) -> &Arc<Array<Complex<R>>> {
        &self.maps
    }
}

pub(crate) fn expect_maps(shape: &[usize]) -> Result<()> {
    if shape.len() > 1 {
        return Ok(());
    }
    Err(Error::Shape {
        what: "coil sensitivities".into(),
        expected: "[coil, image…]".into(),
        found: format_shape(shape),
    })
}

impl<R: Real> LinearOp<Complex<R>> for Sense<R> {
    fn name(&self) -> &str {
        "SENSE"
    }
    fn domain(&self) -> &[usize] {
        &self.maps.shape()[1..]
    }
    fn range(&self) -> &[usize] {
        self.maps.shape()
    }
    fn forward_into(&self, x: &Array<Complex<R>>, y: &mut Array<Complex<R>>) -> Result<()> {
        self.check_forward(x, y)?;
        sensitivity::expand(&self.maps, x, y)
    }
    fn adjoint_into(&self, y: &Array<Complex<R>>, x: &mut Array<Complex<R>>) -> Result<()> {
        self.check_adjoint(y, x)?;
        sensitivity::combine(&self.maps, y, x)
    }
    fn normal_into(&self, x: &Array<Complex<R>>, y: &mut Array<Complex<R>>) -> Result<()> {
        self.check_normal(x, y)?;
        if let Some(power) = self.power.get() {
            return vector::weight(power, x, y);
        }
        let power = sensitivity::sum_of_squares(&self.maps)?;
        vector::weight(&power, x, y)?;
        // Another thread may have been first: both computed the same.
        let _ = self.power.set(power);
        Ok(())
    }
}

/// S of several sets of maps: images `[set, image…]` to coil images, y_j(x) = Σ_s c_{sj}(x) ρ_s(x). If an
/// object larger than the field of view folds over itself, one map cannot describe both layers, but two can.
///
/// Uecker et al., *ESPIRiT — an eigenvalue approach to autocalibrating parallel MRI*, Magn Reson Med 71:990,
/// 2014.
///
/// ```
/// use rayspin_device::Device;
/// use rayspin_linop::{LinearOp, SoftSense, random};
///
/// let device = Device::cpu()?;
/// let maps = random::<f32>(&device, &[2, 8, 6, 5], 1)?;
/// let sense = SoftSense::new(&maps)?;
/// // An image for each set of maps.
/// assert_eq!((sense.domain(), sense.range()), (&[2, 6, 5][..], &[8, 6, 5][..]));
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub struct SoftSense<R: Real> {
    domain: Vec<usize>,
    sets: Vec<Array<Complex<R>>>,
    image: Scratch<Complex<R>>,
    images: Scratch<Complex<R>>,
}

impl<R: Real> SoftSense<R> {
    /// From sensitivities `[set, coil, image…]`. Errors: fewer axes, no set, or memory.
    pub fn new(maps: &Array<Complex<R>>) -> Result<Self> {
        let (&[sets, _], [_, ..]) = maps.shape().split_at(2.min(maps.shape().len())) else {
            return Err(unfit(maps.shape()));
        };
        if sets == 0 {
            return Err(unfit(maps.shape()));
        }
        let of_set = &maps.shape()[1..];
        let len = maps.len() / sets;
        let copies = (0..sets).map(|set| {
            let mut copy = Array::zeros(maps.device(), of_set)?;
            vector::copy_part(maps, set * len, &mut copy, 0, len)?;
            Ok(copy)
        });
        Ok(Self {
            domain: [&[sets], &of_set[1..]].concat(),
            sets: copies.collect::<Result<_>>()?,
            image: Scratch::default(),
            images: Scratch::default(),
        })
    }
}

fn unfit(shape: &[usize]) -> Error {
    Error::Shape {
        what: "sets of coil sensitivities".into(),
        expected: "[set, coil, image…]".into(),
        found: format_shape(shape),
    }
}

impl<R: Real> LinearOp<Complex<R>> for SoftSense<R> {
    fn name(&self) -> &str {
        "soft SENSE"
    }
    fn domain(&self) -> &[usize] {
        &self.domain
    }
    fn range(&self) -> &[usize] {
        self.sets[0].shape()
    }
    fn forward_into(&self, x: &Array<Complex<R>>, y: &mut Array<Complex<R>>) -> Result<()> {
        self.check_forward(x, y)?;
        let mut image = self.image.take(x.device(), &self.domain[1..])?;
        let len = image.len();
        for (set, maps) in self.sets.iter().enumerate() {
            vector::copy_part(x, set * len, &mut image, 0, len)?;
            if set == 0 {
                sensitivity::expand(maps, &image, y)?;
            } else {
                let mut images = self.images.take(x.device(), y.shape())?;
                sensitivity::expand(maps, &image, &mut images)?;
                vector::axpy(1.0.into(), &images, y)?;
            }
        }
        Ok(())
    }
    fn adjoint_into(&self, y: &Array<Complex<R>>, x: &mut Array<Complex<R>>) -> Result<()> {
        self.check_adjoint(y, x)?;
        let mut image = self.image.take(y.device(), &self.domain[1..])?;
        let len = image.len();
        for (set, maps) in self.sets.iter().enumerate() {
            sensitivity::combine(maps, y, &mut image)?;
            vector::copy_part(&image, 0, x, set * len, len)?;
        }
        Ok(())
    }
    fn normal_into(&self, x: &Array<Complex<R>>, y: &mut Array<Complex<R>>) -> Result<()> {
        self.check_normal(x, y)?;
        let mut between = self.images.take(x.device(), self.range())?;
        self.forward_into(x, &mut between)?;
        self.adjoint_into(&between, y)
    }
}
