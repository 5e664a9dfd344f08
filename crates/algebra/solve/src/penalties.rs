use std::sync::Arc;

use rayspin_core::{Real, Result, expect_shape};
use rayspin_device::Array;
use rayspin_kernels::shrink;
use rayspin_kernels::vector::{self, Scalar};

use crate::Proximal;

/// g(x) = ½‖x − d‖², the distance to data. Its proximal map is (x + td)/(1 + t).
///
/// ```
/// use rayspin_device::{Array, Device};
/// use rayspin_solve::{Distance, Proximal};
///
/// let device = Device::cpu()?;
/// let mut penalty = Distance::new(Array::from_vec(&device, &[2], vec![4.0f32, 0.0])?);
/// let mut x = Array::from_vec(&device, &[2], vec![0.0f32, 2.0])?;
/// assert_eq!(penalty.apply(1.0, &mut x)?, 2.5); // ½(2² + 1²)
/// assert_eq!(x.to_vec()?, [2.0, 1.0]);
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub struct Distance<S: Scalar> {
    data: Arc<Array<S>>,
    scratch: Option<Array<S>>,
}

impl<S: Scalar> Distance<S> {
    /// To these data.
    pub fn new(data: impl Into<Arc<Array<S>>>) -> Self {
        Self { data: data.into(), scratch: None }
    }
}

impl<S: Scalar> Proximal<S> for Distance<S> {
    fn apply(&mut self, t: f64, x: &mut Array<S>) -> Result<f64> {
        expect_shape("distance to data", self.data.shape(), x.shape())?;
        vector::scale((1.0 / (1.0 + t)).into(), x)?;
        vector::axpy((t / (1.0 + t)).into(), &self.data, x)?;
        let scratch = match &mut self.scratch {
            Some(scratch) => scratch,
            none => none.insert(x.try_clone()?),
        };
        scratch.copy_from(x)?;
        vector::axpy((-1.0).into(), &self.data, scratch)?;
        Ok(0.5 * vector::norm_squared(scratch)?)
    }

    fn value(&mut self, x: &mut Array<S>) -> Result<Option<f64>> {
        vector::axpy((-1.0).into(), &self.data, x)?;
        Ok(Some(0.5 * vector::norm_squared(x)?))
    }
}

/// g(x) = Σ |x_i|. Its proximal map is the soft threshold.
///
/// ```
/// use rayspin_device::{Array, Device};
/// use rayspin_solve::{Magnitudes, Proximal};
///
/// let mut x = Array::from_vec(&Device::cpu()?, &[3], vec![4.0f32, -0.5, -3.0])?;
/// assert_eq!(Magnitudes::default().apply(1.0, &mut x)?, 5.0);
/// assert_eq!(x.to_vec()?, [3.0, 0.0, -2.0]);
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub struct Magnitudes<S: Scalar> {
    ones: Option<Array<S::Real>>,
}

impl<S: Scalar> Default for Magnitudes<S> {
    fn default() -> Self {
        Self { ones: None }
    }
}

impl<S: Scalar> Proximal<S> for Magnitudes<S> {
    fn apply(&mut self, t: f64, x: &mut Array<S>) -> Result<f64> {
        let fits = |ones: &Array<S::Real>| ones.shape() == x.shape() && ones.device().same_as(x.device());
        if !self.ones.as_ref().is_some_and(fits) {
            let mut ones = Array::zeros(x.device(), x.shape())?;
            ones.fill(S::Real::from_f64(1.0))?;
            self.ones = Some(ones);
        }
        match &self.ones {
            Some(ones) => shrink::soft(t, ones, x),
            None => Ok(0.0),
        }
    }

    fn value(&mut self, x: &mut Array<S>) -> Result<Option<f64>> {
        self.apply(0.0, x).map(Some)
    }
}

/// g(x) = Σ_i √Σ_a |x_a(i)|², where a is the first axis of x: isotropic total variation where x are an
/// image's differences. Its proximal map shortens each group by t.
///
/// ```
/// use rayspin_device::{Array, Device};
/// use rayspin_solve::{GroupNorms, Proximal};
///
/// // Two groups [component, element]: (3, 4) of norm 5, and (0.5, 0).
/// let mut x = Array::from_vec(&Device::cpu()?, &[2, 2], vec![3.0f32, 0.5, 4.0, 0.0])?;
/// assert!((GroupNorms::default().apply(1.0, &mut x)? - 4.0).abs() < 1e-6);
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub struct GroupNorms<S: Scalar> {
    clipped: Option<Array<S>>,
}

impl<S: Scalar> Default for GroupNorms<S> {
    fn default() -> Self {
        Self { clipped: None }
    }
}

impl<S: Scalar> Proximal<S> for GroupNorms<S> {
    fn apply(&mut self, t: f64, x: &mut Array<S>) -> Result<f64> {
        let clipped = match &mut self.clipped {
            Some(clipped) if clipped.shape() == x.shape() => clipped,
            none => none.insert(x.try_clone()?),
        };
        clipped.copy_from(x)?;
        shrink::clip(t, clipped)?;
        vector::axpy((-1.0).into(), clipped, x)?;
        shrink::joint_norm(x)
    }

    fn value(&mut self, x: &mut Array<S>) -> Result<Option<f64>> {
        shrink::joint_norm(x).map(Some)
    }
}

/// g(x) = Σ_i g_i(x_i) over the first axis of x: images that have a penalty each.
///
/// ```
/// use rayspin_device::{Array, Device};
/// use rayspin_solve::{EachOf, Magnitudes, Proximal};
///
/// let mut x = Array::from_vec(&Device::cpu()?, &[2, 2], vec![4.0f32, -0.5, -3.0, 1.0])?;
/// let mut each = EachOf::new(vec![Magnitudes::default(), Magnitudes::default()]);
/// assert_eq!(each.apply(1.0, &mut x)?, 5.0);
/// assert_eq!(x.to_vec()?, [3.0, 0.0, -2.0, 0.0]);
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub struct EachOf<P, S: Scalar> {
    parts: Vec<P>,
    one: Option<Array<S>>,
}

impl<P: Proximal<S>, S: Scalar> EachOf<P, S> {
    /// The penalties g_i, one for each image.
    pub fn new(parts: Vec<P>) -> Self {
        Self { parts, one: None }
    }

    /// Calls `work` with each penalty and a copy of its image, which it may change.
    fn each(
        &mut self,
        x: &mut Array<S>,
        mut work: impl FnMut(&mut P, &mut Array<S>, &mut Array<S>, usize) -> Result<()>,
    ) -> Result<()> {
        let shape = x.shape().get(1..).unwrap_or_default().to_vec();
        expect_shape("images with a penalty each", &[&[self.parts.len()], &shape[..]].concat(), x.shape())?;
        let one = match &mut self.one {
            Some(one) if one.shape() == shape => one,
            none => none.insert(Array::zeros(x.device(), &shape)?),
        };
        let n = one.len();
        for (index, part) in self.parts.iter_mut().enumerate() {
            vector::copy_part(x, index * n, one, 0, n)?;
            work(part, one, x, index * n)?;
        }
        Ok(())
    }
}

impl<P: Proximal<S>, S: Scalar> Proximal<S> for EachOf<P, S> {
    fn apply(&mut self, t: f64, x: &mut Array<S>) -> Result<f64> {
        let mut sum = 0.0;
        self.each(x, |part, one, x, start| {
            sum += part.apply(t, one)?;
            vector::copy_part(one, 0, x, start, one.len())
        })?;
        Ok(sum)
    }

    fn value(&mut self, x: &mut Array<S>) -> Result<Option<f64>> {
        let mut sum = Some(0.0);
        self.each(x, |part, one, _, _| {
            sum = sum.zip(part.value(one)?).map(|(sum, value)| sum + value);
            Ok(())
        })?;
        Ok(sum)
    }
}

/// g(x) = 0 where no x_i is negative, else ∞. Its proximal map replaces negative numbers by 0.
///
/// ```
/// use rayspin_device::{Array, Device};
/// use rayspin_solve::{NonNegative, Proximal};
///
/// let mut x = Array::from_vec(&Device::cpu()?, &[2], vec![4.0f32, -0.5])?;
/// assert_eq!(NonNegative.apply(1.0, &mut x)?, 0.0);
/// assert_eq!(x.to_vec()?, [4.0, 0.0]);
/// # Ok::<(), rayspin_core::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct NonNegative;

impl<R: Scalar<Real = R> + Real> Proximal<R> for NonNegative {
    fn apply(&mut self, _: f64, x: &mut Array<R>) -> Result<f64> {
        vector::cut_negative(x)?;
        Ok(0.0)
    }

    fn value(&mut self, _: &mut Array<R>) -> Result<Option<f64>> {
        Ok(Some(0.0))
    }
}
