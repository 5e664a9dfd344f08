use num_complex::Complex;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayspin_core::{Error, Real, Result, expect_shape};
use rayspin_device::{Array, Device};
use rayspin_kernels::vector::Scalar;
use rayspin_kernels::{shrink, vector};
use rayspin_linop::{LinearOp, Wavelet};

/// A convex penalty g, given by its proximal map.
///
/// ```
/// use num_complex::Complex;
/// use rayspin_core::{C32, Result};
/// use rayspin_device::{Array, Device};
/// use rayspin_kernels::vector;
/// use rayspin_solve::Proximal;
///
/// /// g(x) = ½‖x‖². Its proximal map is x / (1 + t).
/// struct Ridge;
/// impl Proximal<C32> for Ridge {
///     fn apply(&mut self, t: f64, x: &mut Array<Complex<f32>>) -> Result<f64> {
///         vector::scale((1.0 / (1.0 + t)).into(), x)?;
///         Ok(0.5 * vector::norm_squared(x)?)
///     }
/// }
///
/// let mut x = Array::from_vec(&Device::cpu()?, &[2], vec![C32::new(3.0, 0.0); 2])?;
/// assert_eq!(Ridge.apply(2.0, &mut x)?, 1.0);
/// assert_eq!(x.to_vec()?, [C32::ONE; 2]);
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub trait Proximal<S: Scalar> {
    /// x ← argmin_u ½‖u − x‖² + t g(u), exactly or to the penalty's accuracy. Returns g of the result.
    fn apply(&mut self, t: f64, x: &mut Array<S>) -> Result<f64>;

    /// g(x), where the penalty tells it without its proximal map. It may overwrite x. A constraint is 0
    /// everywhere.
    fn value(&mut self, _x: &mut Array<S>) -> Result<Option<f64>> {
        Ok(None)
    }
}

/// g(x) = Σ |(Wx)_i| over the details of an orthogonal wavelet transform. Coefficients that are low-pass
/// along every axis cost nothing.
///
/// The proximal map is exact: W, a soft threshold, Wᴴ. With a seed, every application first shifts the image
/// on a torus, so that the grid of the wavelets leaves no mark (A. K. Fletcher, K. Ramchandran, V. K. Goyal,
/// *Wavelet denoising by recursive cycle spinning*, ICIP 2002). g then differs a little between applications.
/// Shifts are fractions of the image's sides. They start at a random shift and follow an additive recurrence
/// that fills the torus evenly, so that a few applications in a row cover all of it (M. Roberts, *The
/// unreasonable effectiveness of quasirandom sequences*, 2018).
///
/// ```
/// use rayspin_core::C32;
/// use rayspin_device::{Array, Device};
/// use rayspin_linop::{LinearOp, Wavelet, WaveletFamily, random};
/// use rayspin_solve::{Proximal, WaveletSparsity};
///
/// let device = Device::cpu()?;
/// let wavelet = Wavelet::new(&[16, 16], WaveletFamily::Haar)?;
/// let mut penalty = WaveletSparsity::new(&device, wavelet, None)?;
/// let mut flat = Array::from_vec(&device, &[16, 16], vec![C32::ONE; 256])?;
/// assert!(penalty.apply(10.0, &mut flat)? < 1e-3); // a flat image has no details
/// assert!(flat.to_vec()?.iter().all(|v| (v - 1.0).norm() < 1e-5)); // and stays
/// let mut noise = random::<f32>(&device, &[16, 16], 1)?;
/// let small = penalty.apply(1.0, &mut noise)?;
/// assert!(penalty.apply(0.1, &mut noise)? < small);
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub struct WaveletSparsity<R: Real> {
    wavelet: Wavelet<R>,
    details: Array<R>,
    coefficients: Array<Complex<R>>,
    shifts: Option<Shifts>,
}

/// Points u_k = u_0 + kα mod 1, α_a = φ^{−a} with φ^{d+1} = φ + 1.
struct Shifts {
    point: Vec<f64>,
    step: Vec<f64>,
}

impl Shifts {
    fn new(axes: usize, seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut phi = 1.5f64;
        for _ in 0..64 {
            phi = (1.0 + phi).powf(1.0 / (axes as f64 + 1.0));
        }
        Self {
            point: (0..axes).map(|_| rng.random_range(0.0..1.0)).collect(),
            step: (1..=axes).map(|a| phi.powf(-(a as f64))).collect(),
        }
    }

    /// The next shift of an image of `shape`, in voxels.
    fn next(&mut self, shape: &[usize]) -> Vec<usize> {
        for (u, step) in self.point.iter_mut().zip(&self.step) {
            *u = (*u + step).fract();
        }
        self.point.iter().zip(shape).map(|(u, &n)| ((u * n as f64) as usize).min(n - 1)).collect()
    }
}

impl<R: Real> WaveletSparsity<R> {
    /// The shift is fixed by the wavelet, or changes at random from `seed`.
    pub fn new(device: &Device, wavelet: Wavelet<R>, seed: Option<u64>) -> Result<Self> {
        Ok(Self {
            details: wavelet.details(device)?,
            coefficients: Array::zeros(device, wavelet.range())?,
            shifts: seed.map(|seed| Shifts::new(wavelet.domain().len(), seed)),
            wavelet,
        })
    }
}

impl<R: Real> Proximal<Complex<R>> for WaveletSparsity<R> {
    fn apply(&mut self, t: f64, x: &mut Array<Complex<R>>) -> Result<f64> {
        if let Some(shifts) = &mut self.shifts {
            self.wavelet.set_shift(&shifts.next(x.shape()))?;
        }
        self.wavelet.forward_into(x, &mut self.coefficients)?;
        let value = shrink::soft(t, &self.details, &mut self.coefficients)?;
        self.wavelet.adjoint_into(&self.coefficients, x)?;
        Ok(value)
    }

    fn value(&mut self, x: &mut Array<Complex<R>>) -> Result<Option<f64>> {
        self.wavelet.forward_into(x, &mut self.coefficients)?;
        shrink::soft(0.0, &self.details, &mut self.coefficients).map(Some)
    }
}

/// Isotropic total variation of a real or complex image, g(x) = Σ_i √Σ_a |(Dx)_a(i)|² for plain or weighted
/// differences D.
///
/// The proximal map is x − Dᴴp, where p minimises ½‖x − Dᴴp‖² over |p(i)| ≤ t. Accelerated projected gradient
/// steps find p. They start where the last application stopped, so a few steps per application are enough
/// within an outer iteration.
///
/// A. Beck, M. Teboulle, *Fast gradient-based algorithms for constrained total variation image denoising and
/// deblurring problems*, IEEE Trans Image Process 18:2419, 2009.
///
/// ```
/// use rayspin_core::C32;
/// use rayspin_device::{Array, Device};
/// use rayspin_linop::FiniteDifference;
/// use rayspin_solve::{Proximal, TotalVariation};
///
/// let device = Device::cpu()?;
/// let differences = FiniteDifference::new(&[8])?;
/// let mut penalty = TotalVariation::new(&device, &differences, differences.bound(), 200)?;
/// let mut step = Array::from_vec(&device, &[8], (0..8).map(|i| C32::new((i / 4) as f32, 0.0)).collect())?;
/// // t = 0.4 brings the two halves of 4 voxels nearer by 0.4/4 each: the step 1 becomes 0.8.
/// let variation = penalty.apply(0.4, &mut step)?;
/// assert!((variation - 0.8).abs() < 1e-3);
/// assert!((step.to_vec()?[0] - 0.1).norm() < 1e-3);
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub struct TotalVariation<'a, S: Scalar> {
    differences: &'a dyn LinearOp<S>,
    bound: f64,
    steps: usize,
    dual: Array<S>,
    place: Array<S>,
    scratch: Array<S>,
    image: Array<S>,
}

impl<'a, S: Scalar> TotalVariation<'a, S> {
    /// `differences` is D, image → `[axis, image…]`. `bound` is an upper bound of the largest eigenvalue of
    /// DᴴD (4 per axis for differences with weights of at most 1). `steps` is the number of steps per
    /// application.
    ///
    /// Errors: no axis of components; a bound that is not positive; no steps; memory.
    pub fn new(device: &Device, differences: &'a dyn LinearOp<S>, bound: f64, steps: usize) -> Result<Self> {
        let range = differences.range();
        expect_shape(
            &format!("total variation: image axes of {}", differences.name()),
            differences.domain(),
            range.get(1..).unwrap_or_default(),
        )?;
        if !(bound > 0.0 && bound.is_finite()) {
            return Err(Error::value(
                "bound on the eigenvalues of total variation",
                "a positive number",
                bound,
            ));
        }
        if steps == 0 {
            return Err(Error::value("steps of total variation", "at least 1", steps));
        }
        Ok(Self {
            bound,
            steps,
            dual: Array::zeros(device, range)?,
            place: Array::zeros(device, range)?,
            scratch: Array::zeros(device, range)?,
            image: Array::zeros(device, differences.domain())?,
            differences,
        })
    }

    /// image ← x − Dᴴ at.
    fn residual(&mut self, x: &Array<S>, at_dual: bool) -> Result<()> {
        let point = if at_dual { &self.dual } else { &self.place };
        self.differences.adjoint_into(point, &mut self.image)?;
        vector::xpby(x, (-1.0).into(), &mut self.image)
    }
}

impl<S: Scalar> Proximal<S> for TotalVariation<'_, S> {
    fn apply(&mut self, t: f64, x: &mut Array<S>) -> Result<f64> {
        // p lies within the balls of radius t of the last application and must lie within the balls of the
        // present t.
        shrink::clip(t, &mut self.dual)?;
        self.place.copy_from(&self.dual)?;
        let mut momentum = 1.0f64;
        for _ in 0..self.steps {
            self.residual(x, false)?;
            self.differences.forward_into(&self.image, &mut self.scratch)?;
            vector::axpy((1.0 / self.bound).into(), &self.scratch, &mut self.place)?;
            shrink::clip(t, &mut self.place)?;
            let after = 0.5 * (1.0 + (1.0 + 4.0 * momentum * momentum).sqrt());
            let beta = (momentum - 1.0) / after;
            momentum = after;
            // place is p⁺: dual ← p⁺ and place ← p⁺ + β(p⁺ − p).
            std::mem::swap(&mut self.place, &mut self.dual);
            vector::scale((-beta).into(), &mut self.place)?;
            vector::axpy((1.0 + beta).into(), &self.dual, &mut self.place)?;
        }
        self.residual(x, true)?;
        x.copy_from(&self.image)?;
        self.differences.forward_into(x, &mut self.scratch)?;
        shrink::joint_norm(&self.scratch)
    }

    fn value(&mut self, x: &mut Array<S>) -> Result<Option<f64>> {
        self.differences.forward_into(x, &mut self.scratch)?;
        shrink::joint_norm(&self.scratch).map(Some)
    }
}
