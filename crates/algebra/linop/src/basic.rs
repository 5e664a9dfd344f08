use std::sync::Arc;

use num_complex::Complex;
use rayspin_core::{Error, Real, Result, format_shape, voxels};
use rayspin_device::{Array, Device};
use rayspin_kernels::vector::Scalar;
use rayspin_kernels::{difference, vector, window};

use crate::{Compose, LinearOp, Scratch};

/// x ↦ x.
///
/// ```
/// use rayspin_device::Device;
/// use rayspin_linop::{Identity, LinearOp, random};
///
/// let device = Device::cpu()?;
/// let x = random::<f32>(&device, &[3, 4], 1)?;
/// let same = Identity::new(&[3, 4]).forward(&x)?;
/// assert_eq!(same.to_host()?, x.to_host()?);
/// # Ok::<(), rayspin_core::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Identity<S> {
    shape: Vec<usize>,
    scalar: std::marker::PhantomData<S>,
}

impl<S: Scalar> Identity<S> {
    /// On arrays of this shape.
    pub fn new(shape: &[usize]) -> Self {
        Self { shape: shape.to_vec(), scalar: std::marker::PhantomData }
    }
}

impl<S: Scalar> LinearOp<S> for Identity<S> {
    fn name(&self) -> &str {
        "identity"
    }
    fn domain(&self) -> &[usize] {
        &self.shape
    }
    fn range(&self) -> &[usize] {
        &self.shape
    }
    fn forward_into(&self, x: &Array<S>, y: &mut Array<S>) -> Result<()> {
        self.check_forward(x, y)?;
        vector::copy_part(x, 0, y, 0, x.len())
    }
    fn adjoint_into(&self, y: &Array<S>, x: &mut Array<S>) -> Result<()> {
        self.check_adjoint(y, x)?;
        vector::copy_part(y, 0, x, 0, y.len())
    }
    fn normal_into(&self, x: &Array<S>, y: &mut Array<S>) -> Result<()> {
        self.forward_into(x, y)
    }
}

enum Factors<S: Scalar> {
    Real(Arc<Array<S::Real>>),
    Complex(Arc<Array<S>>),
}

/// x ↦ d ⊙ x, with d repeated along the leading axes of x: density compensation, phases, masks.
///
/// ```
/// use rayspin_core::C32;
/// use rayspin_device::{Array, Device};
/// use rayspin_linop::{Diagonal, LinearOp};
///
/// let device = Device::cpu()?;
/// let weights = Array::from_vec(&device, &[3], vec![1.0f32, 2.0, 0.5])?;
/// let weigh = Diagonal::real(&[2, 3], weights)?;
/// let ones = Array::from_vec(&device, &[2, 3], vec![C32::ONE; 6])?;
/// // The weights repeat along the leading axis.
/// assert_eq!(weigh.forward(&ones)?.to_host()?[[1, 2]].re, 0.5);
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub struct Diagonal<S: Scalar> {
    shape: Vec<usize>,
    factors: Factors<S>,
    scratch: Scratch<S>,
}

impl<S: Scalar> Diagonal<S> {
    /// Factors of the arrays' own type for arrays of `shape`, whose trailing axes equal the shape of
    /// `factors`. Errors: they differ.
    pub fn complex(shape: &[usize], factors: impl Into<Arc<Array<S>>>) -> Result<Self> {
        let factors = factors.into();
        expect_trailing("diagonal: factors", shape, factors.shape())?;
        Ok(Self { shape: shape.to_vec(), factors: Factors::Complex(factors), scratch: Scratch::default() })
    }

    /// Real factors; otherwise as [`Diagonal::complex`].
    pub fn real(shape: &[usize], factors: impl Into<Arc<Array<S::Real>>>) -> Result<Self> {
        let factors = factors.into();
        expect_trailing("diagonal: factors", shape, factors.shape())?;
        Ok(Self { shape: shape.to_vec(), factors: Factors::Real(factors), scratch: Scratch::default() })
    }
}

fn expect_trailing(what: &str, shape: &[usize], actual: &[usize]) -> Result<()> {
    if shape.ends_with(actual) {
        return Ok(());
    }
    Err(Error::Shape {
        what: what.to_owned(),
        expected: format!("the trailing axes of {}", format_shape(shape)),
        found: format_shape(actual),
    })
}

impl<S: Scalar> LinearOp<S> for Diagonal<S> {
    fn name(&self) -> &str {
        "diagonal"
    }
    fn domain(&self) -> &[usize] {
        &self.shape
    }
    fn range(&self) -> &[usize] {
        &self.shape
    }
    fn forward_into(&self, x: &Array<S>, y: &mut Array<S>) -> Result<()> {
        self.check_forward(x, y)?;
        match &self.factors {
            Factors::Real(w) => vector::weight(w, x, y),
            Factors::Complex(d) => vector::multiply(d, x, y),
        }
    }
    fn adjoint_into(&self, y: &Array<S>, x: &mut Array<S>) -> Result<()> {
        self.check_adjoint(y, x)?;
        match &self.factors {
            Factors::Real(w) => vector::weight(w, y, x),
            Factors::Complex(d) => vector::multiply_conj(d, y, x),
        }
    }
    fn scratch(&self) -> Option<&Scratch<S>> {
        Some(&self.scratch)
    }
}

/// Keeps the measured positions of Cartesian k-space and sets the others to 0. The mask is a projection: its
/// own adjoint and its own normal operator.
///
/// ```
/// use rayspin_device::Device;
/// use rayspin_linop::{LinearOp, SamplingMask, random};
///
/// // Every third line of 12.
/// let measured = ndarray::Array2::from_shape_fn((12, 8), |(y, _)| y % 3 == 0).into_dyn();
/// let device = Device::cpu()?;
/// let mask = SamplingMask::new(&device, &[4, 12, 8], &measured)?;
/// let kept = mask.forward(&random::<f32>(&device, &[4, 12, 8], 1)?)?;
/// assert_eq!(kept.to_host()?[[2, 1, 5]].norm(), 0.0);
/// assert!((mask.fraction() - 1.0 / 3.0).abs() < 1e-12);
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub struct SamplingMask<R: Real> {
    shape: Vec<usize>,
    mask: Array<R>,
    measured: usize,
}

impl<R: Real> SamplingMask<R> {
    /// For arrays of `shape`, whose trailing axes equal the shape of `mask` (`[z, y, x]` for `[coil, z, y,
    /// x]`).
    ///
    /// Errors: the axes differ; no memory.
    pub fn new<'a>(
        device: &Device,
        shape: &[usize],
        mask: impl Into<ndarray::ArrayViewD<'a, bool>>,
    ) -> Result<Self> {
        let mask = mask.into();
        expect_trailing("sampling mask", shape, mask.shape())?;
        let measured = mask.iter().filter(|&&m| m).count();
        Ok(Self { shape: shape.to_vec(), mask: window::indicator(device, mask)?, measured })
    }

    /// 1 where positions were measured, 0 elsewhere.
    pub fn mask(&self) -> &Array<R> {
        &self.mask
    }

    /// The share of positions that were measured, 1 over the acceleration factor.
    pub fn fraction(&self) -> f64 {
        self.measured as f64 / self.mask.len().max(1) as f64
    }
}

impl<R: Real> LinearOp<Complex<R>> for SamplingMask<R> {
    fn name(&self) -> &str {
        "sampling mask"
    }
    fn domain(&self) -> &[usize] {
        &self.shape
    }
    fn range(&self) -> &[usize] {
        &self.shape
    }
    fn forward_into(&self, x: &Array<Complex<R>>, y: &mut Array<Complex<R>>) -> Result<()> {
        self.check_forward(x, y)?;
        vector::weight(&self.mask, x, y)
    }
    fn adjoint_into(&self, y: &Array<Complex<R>>, x: &mut Array<Complex<R>>) -> Result<()> {
        self.forward_into(y, x)
    }
    fn normal_into(&self, x: &Array<Complex<R>>, y: &mut Array<Complex<R>>) -> Result<()> {
        self.forward_into(x, y)
    }
}

/// D: forward differences along chosen axes, image → `[axis, image…]`. They are in units of one voxel unless
/// [`weighted`](FiniteDifference::weighted), and 0 at the far edge (Neumann) and along axes of size 1. DᴴD
/// runs in one pass and allocates nothing.
///
/// ```
/// use rayspin_core::C32;
/// use rayspin_device::{Array, Device};
/// use rayspin_linop::{FiniteDifference, LinearOp};
///
/// let device = Device::cpu()?;
/// let even = Array::from_vec(&device, &[5, 4], vec![C32::ONE; 20])?;
/// let edges = FiniteDifference::new(&[5, 4])?.forward(&even)?;
/// assert_eq!(edges.shape(), [2, 5, 4]);
/// assert!(edges.to_host()?.iter().all(|edge| edge.norm() == 0.0));
/// # Ok::<(), rayspin_core::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct FiniteDifference<S> {
    shape: Vec<usize>,
    axes: Vec<usize>,
    weights: Vec<f64>,
    range: Vec<usize>,
    scalar: std::marker::PhantomData<S>,
}

impl<S: Scalar> FiniteDifference<S> {
    /// Along all axes of images of this shape.
    pub fn new(shape: &[usize]) -> Result<Self> {
        Self::along(shape, &(0..shape.len()).collect::<Vec<_>>())
    }

    /// Along `axes` only. Errors: an axis that the shape lacks or that is named twice.
    pub fn along(shape: &[usize], axes: &[usize]) -> Result<Self> {
        voxels(shape)?;
        Ok(Self {
            range: difference::range(shape, axes)?,
            shape: shape.to_vec(),
            weights: vec![1.0; axes.len()],
            axes: axes.to_vec(),
            scalar: std::marker::PhantomData,
        })
    }

    /// Multiplies the differences along axis a by w_a. Takes one weight for each axis of the differences:
    /// 1/h_a for voxels of size h_a.
    ///
    /// Errors: another number of weights, or a weight that is not positive.
    pub fn weighted(mut self, weights: &[f64]) -> Result<Self> {
        if weights.len() != self.axes.len() || weights.iter().any(|w| !(*w > 0.0 && w.is_finite())) {
            return Err(Error::value(
                "weights of differences",
                format!("{} positive numbers, one an axis", self.axes.len()),
                format!("{weights:?}"),
            ));
        }
        self.weights = weights.to_vec();
        Ok(self)
    }

    /// An upper bound of the largest eigenvalue of DᴴD: 4 Σ w_a².
    pub fn bound(&self) -> f64 {
        4.0 * self.weights.iter().map(|w| w * w).sum::<f64>()
    }
}

impl<S: Scalar> LinearOp<S> for FiniteDifference<S> {
    fn name(&self) -> &str {
        "finite difference"
    }
    fn domain(&self) -> &[usize] {
        &self.shape
    }
    fn range(&self) -> &[usize] {
        &self.range
    }
    fn forward_into(&self, x: &Array<S>, y: &mut Array<S>) -> Result<()> {
        self.check_forward(x, y)?;
        difference::forward(&self.axes, &self.weights, x, y)
    }
    fn adjoint_into(&self, y: &Array<S>, x: &mut Array<S>) -> Result<()> {
        self.check_adjoint(y, x)?;
        difference::adjoint(&self.axes, &self.weights, y, x)
    }
    fn normal_into(&self, x: &Array<S>, y: &mut Array<S>) -> Result<()> {
        self.check_normal(x, y)?;
        difference::normal(&self.axes, &self.weights, x, y)
    }
}

/// diag(w) D: differences along all axes, each with its own weight, `[axis, image…]`. An edge costs nothing
/// where w is 0.
///
/// Errors: weights and differences have different shapes.
///
/// ```
/// use rayspin_device::{Array, Device};
/// use rayspin_linop::{LinearOp, random, weighted_differences};
///
/// let device = Device::cpu()?;
/// // Edges along the first axis cost nothing.
/// let weights: Vec<f32> = (0..40).map(|at| if at < 20 { 0.0 } else { 1.0 }).collect();
/// let op = weighted_differences(Array::from_vec(&device, &[2, 5, 4], weights)?)?;
/// let edges = op.forward(&random::<f32>(&device, &[5, 4], 1)?)?.to_host()?;
/// assert!(edges.index_axis(ndarray::Axis(0), 0).iter().all(|edge| edge.norm() == 0.0));
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn weighted_differences<S: Scalar>(weights: impl Into<Arc<Array<S::Real>>>) -> Result<Compose<S>> {
    let weights = weights.into();
    let range = weights.shape().to_vec();
    let Some((_, shape)) = range.split_first().filter(|(axes, shape)| **axes == shape.len()) else {
        return Err(Error::Shape {
            what: "weights of differences".into(),
            expected: "[axis, image…], every axis of the image".into(),
            found: format_shape(&range),
        });
    };
    Diagonal::real(&range, weights)?.compose(FiniteDifference::new(shape)?)
}
