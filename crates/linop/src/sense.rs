use std::sync::{Arc, OnceLock};

use num_complex::Complex;
use rayspin_core::{Error, Real, Result, format_shape};
use rayspin_device::Array;
use rayspin_kernels::{sensitivity, vector};

use crate::LinearOp;

/// S: one image to coil images, y_j(x) = c_j(x) ρ(x); Sᴴ: Σ_j conj(c_j(x)) y_j(x). SᴴS is Σ_j |c_j|², a diagonal.
///
/// Pruessmann et al., *SENSE: sensitivity encoding for fast MRI*, Magn Reson Med 42:952, 1999.
pub struct Sense<R: Real> {
    maps: Arc<Array<Complex<R>>>,
    power: OnceLock<Array<R>>,
}

impl<R: Real> Sense<R> {
    /// From sensitivities `[coil, image…]`. Errors: no axis of coils.
    pub fn new(maps: impl Into<Arc<Array<Complex<R>>>>) -> Result<Self> {
        let maps = maps.into();
        expect_maps(&maps)?;
        Ok(Self { maps, power: OnceLock::new() })
    }

    /// The sensitivities.
    pub fn maps(&self) -> &Arc<Array<Complex<R>>> {
        &self.maps
    }
}

pub(crate) fn expect_maps<R: Real>(maps: &Array<Complex<R>>) -> Result<()> {
    if maps.shape().len() > 1 {
        return Ok(());
    }
    Err(Error::Shape {
        what: "coil sensitivities".into(),
        expected: "[coil, image…]".into(),
        found: format_shape(maps.shape()),
    })
}

impl<R: Real> LinearOp<R> for Sense<R> {
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
