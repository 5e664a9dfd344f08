use std::ops::Range;
use std::sync::Arc;

use num_complex::Complex;
use rayspin_core::{Error, Real, Result, Trajectory, expect_shape};
use rayspin_device::{Array, Device};
use rayspin_kernels::off_resonance::{self as segments, Interpolator, Segments, modulate};
use rayspin_kernels::{nudft, nufft, toeplitz};

use crate::{CoilMaps, LinearOp, Scratch};

/// E: images `[batch…, matrix…]` → samples `[batch…, sample]` while the field is inhomogeneous,
///
/// ```text
/// s[m] = Σ_x ρ[x] e^{−i2πf(x)t_m} e^{−i2πk_m·x} ≈ Σ_l b_l(t_m) Σ_x e^{−i2πk_m·x} e^{−i2πf(x)τ_l} ρ[x]
/// ```
///
/// without scaling, f in Hz and t in s. Each segment takes one NUFFT. The adjoint matches E to rounding at
/// any tolerances.
///
/// Sutton, Noll, Fessler, IEEE Trans Med Imaging 22:178, 2003.
///
/// ```
/// use rayspin_core::Trajectory;
/// use rayspin_device::{Array, Device};
/// use rayspin_kernels::nufft;
/// use rayspin_kernels::off_resonance::{Interpolator, Segments};
/// use rayspin_linop::{OffResonanceNufft, laws};
///
/// let device = Device::cpu()?;
/// let points = ndarray::Array2::from_shape_fn((40, 2), |(i, d)| (i as f64 * 0.37 + d as f64).sin() * 4.0);
/// let trajectory = Trajectory::from_cycles_per_fov(points)?;
/// let plan = nufft::Nufft::<f32>::new(&device, &trajectory, &[8, 8], &nufft::Options::tolerance(1e-4))?;
/// // 40 samples in 4 ms; a field of up to 50 Hz.
/// let times: Vec<f64> = (0..40).map(|i| 1e-4 * i as f64).collect();
/// let interpolator = Interpolator::new([0.0, 50.0], [0.0, 4e-3], 1e-3)?;
/// let segments = Segments::new(&device, &interpolator, &times)?;
/// let field = Array::from_vec(&device, &[8, 8], (0..64).map(|i| 0.7 * i as f32).collect())?;
/// laws::check(&OffResonanceNufft::new(&[], plan, segments, field)?, &device, 1)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct OffResonanceNufft<R: Real> {
    domain: Vec<usize>,
    range: Vec<usize>,
    plan: Arc<nufft::Nufft<R>>,
    segments: Arc<Segments<R>>,
    field: Arc<Array<R>>,
    images: Scratch<Complex<R>>,
    samples: Scratch<Complex<R>>,
}

impl<R: Real> OffResonanceNufft<R> {
    /// Over leading axes `batch` (coils), with the field map `[matrix…]` in Hz.
    ///
    /// Errors: segments of other samples than the plan's, a map of another matrix.
    pub fn new(
        batch: &[usize],
        plan: impl Into<Arc<nufft::Nufft<R>>>,
        segments: impl Into<Arc<Segments<R>>>,
        field: impl Into<Arc<Array<R>>>,
    ) -> Result<Self> {
        let (plan, segments, field) = (plan.into(), segments.into(), field.into());
        expect_shape("field map", plan.matrix(), field.shape())?;
        expect_shape("times of the samples", &[plan.samples()], &[segments.samples()])?;
        Ok(Self {
            domain: [batch, plan.matrix()].concat(),
            range: [batch, &[plan.samples()]].concat(),
            plan,
            segments,
            field,
            images: Scratch::default(),
            samples: Scratch::default(),
        })
    }
}

impl<R: Real> LinearOp<Complex<R>> for OffResonanceNufft<R> {
    fn name(&self) -> &str {
        "off-resonance NUFFT"
    }
    fn domain(&self) -> &[usize] {
        &self.domain
    }
    fn range(&self) -> &[usize] {
        &self.range
    }
    fn forward_into(&self, x: &Array<Complex<R>>, y: &mut Array<Complex<R>>) -> Result<()> {
        self.check_forward(x, y)?;
        let mut image = self.images.take(x.device(), &self.domain)?;
        let mut samples = self.samples.take(x.device(), &self.range)?;
        let mut transform = |x: &Array<_>, y: &mut Array<_>| self.plan.forward(x, y);
        let scratch = segments::Scratch { image: &mut image, samples: &mut samples };
        self.segments.forward(&self.field, x, y, scratch, &mut transform)
    }
    fn adjoint_into(&self, y: &Array<Complex<R>>, x: &mut Array<Complex<R>>) -> Result<()> {
        self.check_adjoint(y, x)?;
        let mut image = self.images.take(y.device(), &self.domain)?;
        let mut samples = self.samples.take(y.device(), &self.range)?;
        let mut transform = |y: &Array<_>, x: &mut Array<_>| self.plan.adjoint(y, x);
        let scratch = segments::Scratch { image: &mut image, samples: &mut samples };
        self.segments.adjoint(&self.field, y, x, scratch, &mut transform)
    }
    fn scratch(&self) -> Option<&Scratch<Complex<R>>> {
        Some(&self.samples)
    }
}

/// EᴴE of an inhomogeneous field by convolutions; with sensitivities Σ_j c̄_j EᴴE (c_j x) of one image.
/// Hermitian, its own adjoint.
///
/// ```text
/// (EᴴE)[i, j] = Σ_m e^{i2πk_m·(x_i − x_j)} e^{i2π(f_i − f_j)t_m} ≈ Σ_l e^{i2πf_iτ_l} T_l[i, j] e^{−i2πf_jτ_l}
/// ```
///
/// with e^{i2πΔt} ≈ Σ_l h_l(t) e^{i2πΔτ_l} for *differences* Δ of frequencies. Their range is twice the range
/// of the field and symmetric about 0. The h_l are therefore real, and the T_l = Fᴴ diag(h_l(t_m)) F are
/// Hermitian convolutions. The residual of the interpolation may make the operator indefinite by as much.
///
/// Fessler, Lee, Olafsson, Shi, Noll, IEEE Trans Signal Process 53:3393, 2005.
///
/// ```
/// use rayspin_core::Trajectory;
/// use rayspin_device::{Array, Device};
/// use rayspin_kernels::off_resonance::Interpolator;
/// use rayspin_linop::{LinearOp, OffResonanceToeplitz, random};
///
/// let device = Device::cpu()?;
/// let points = ndarray::Array2::from_shape_fn((40, 2), |(i, d)| (i as f64 * 0.37 + d as f64).sin() * 4.0);
/// let trajectory = Trajectory::from_cycles_per_fov(points)?;
/// let times: Vec<f64> = (0..40).map(|i| 1e-4 * i as f64).collect();
/// // Differences of frequencies, symmetric about 0.
/// let interpolator = Interpolator::new([-50.0, 50.0], [0.0, 4e-3], 1e-3)?;
/// let (moments, kernels) =
///     OffResonanceToeplitz::<f32>::exact_segments(&device, &trajectory, &times, &interpolator, &[8, 8])?;
/// let field = Array::from_vec(&device, &[8, 8], (0..64).map(|i| 0.7 * i as f32).collect())?;
/// let normal = OffResonanceToeplitz::new(&[], &moments, kernels, field)?;
/// assert_eq!(normal.forward(&random(&device, &[8, 8], 1)?)?.shape(), [8, 8]);
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub struct OffResonanceToeplitz<R: Real> {
    shape: Vec<usize>,
    moments: Vec<f64>,
    kernels: Arc<toeplitz::Series<R>>,
    field: Arc<Array<R>>,
    maps: Option<CoilMaps<R>>,
    scratch: Scratch<Complex<R>>,
}

impl<R: Real> OffResonanceToeplitz<R> {
    /// Over leading axes `batch`: the moments τ_l (s), their T_l, and the field map `[matrix…]` in Hz.
    ///
    /// Errors: no segment, other convolutions than moments, convolutions or a map of another matrix.
    pub fn new(
        batch: &[usize],
        moments: &[f64],
        kernels: impl Into<Arc<toeplitz::Series<R>>>,
        field: impl Into<Arc<Array<R>>>,
    ) -> Result<Self> {
        let (kernels, field) = (kernels.into(), field.into());
        if kernels.is_empty() {
            return Err(Error::value("segments of an off-resonance operator", "at least one", 0));
        }
        expect_shape("moments of an off-resonance operator", &[kernels.len()], &[moments.len()])?;
        expect_shape("field map", kernels.matrix(), field.shape())?;
        let (shape, moments) = ([batch, field.shape()].concat(), moments.to_vec());
        Ok(Self { shape, moments, kernels, field, maps: None, scratch: Scratch::default() })
    }

    /// For one image and the sensitivities `[coil, matrix…]`. Errors: as [`OffResonanceToeplitz::new`], and
    /// maps of another matrix.
    pub fn sense(
        maps: impl Into<CoilMaps<R>>,
        moments: &[f64],
        kernels: impl Into<Arc<toeplitz::Series<R>>>,
        field: impl Into<Arc<Array<R>>>,
    ) -> Result<Self> {
        let maps = maps.into();
        let own = Self::new(&[], moments, kernels, field)?;
        maps.expect(&own.shape)?;
        Ok(Self { maps: Some(maps), ..own })
    }

    /// The moments (s) and the convolutions for samples at `times` (s) along `trajectory`, by the exact
    /// transform. `interpolator` interpolates frequency differences and is symmetric about 0.
    ///
    /// Errors: the numbers of times and samples differ; a matrix of another rank; no memory.
    pub fn exact_segments(
        device: &Device,
        trajectory: &Trajectory,
        times: &[f64],
        interpolator: &Interpolator,
        matrix: &[usize],
    ) -> Result<(Vec<f64>, toeplitz::Series<R>)> {
        expect_shape("times of the samples", &[trajectory.samples()], &[times.len()])?;
        let doubled: Vec<usize> = matrix.iter().map(|n| n.saturating_mul(2)).collect();
        let mut q = Array::zeros(device, &doubled)?;
        let table = interpolator.table(times)?;
        let mut kernels = toeplitz::Series::new(device, matrix, interpolator.segments(), None)?;
        for segment in 0..interpolator.segments() {
            let weights = table.real(segment).map(<R as Real>::from_f64).collect();
            let weights = Array::from_vec(device, &[times.len()], weights)?;
            nudft::q(trajectory, Some(&weights), matrix, &mut q)?;
            kernels.push(toeplitz::Toeplitz::from_kernel(device, matrix, &q)?)?;
        }
        Ok((interpolator.times(), kernels))
    }
}

impl<R: Real> LinearOp<Complex<R>> for OffResonanceToeplitz<R> {
    fn name(&self) -> &str {
        "off-resonance Toeplitz"
    }
    fn domain(&self) -> &[usize] {
        &self.shape
    }
    fn range(&self) -> &[usize] {
        &self.shape
    }
    fn forward_into(&self, x: &Array<Complex<R>>, y: &mut Array<Complex<R>>) -> Result<()> {
        self.check_forward(x, y)?;
        let mut turned = self.scratch.take(x.device(), &self.shape)?;
        let mut convolved = self.scratch.take(x.device(), &self.shape)?;
        // All segments of some coils together, so that maps are copied once per application.
        let mut some = |coils: Option<(&Array<Complex<R>>, Range<usize>)>, add: bool| {
            self.kernels.each(|segment, toeplitz| {
                let tau = self.moments[segment];
                modulate(&self.field, -tau, x, &mut turned, false)?;
                match &coils {
                    Some((maps, taken)) => {
                        toeplitz.apply_sense_coils(&turned, maps, taken.clone(), &mut convolved, false)?;
                    }
                    None => toeplitz.apply(&turned, &mut convolved)?,
                }
                modulate(&self.field, tau, &convolved, y, add || segment > 0)
            })
        };
        match &self.maps {
            None => some(None, false),
            Some(maps) if maps.coils() == 0 => y.fill(Complex::new(R::zero(), R::zero())),
            Some(maps) => maps.each(None, |coils, maps, taken| some(Some((maps, taken)), coils.start > 0)),
        }
    }
    fn adjoint_into(&self, y: &Array<Complex<R>>, x: &mut Array<Complex<R>>) -> Result<()> {
        self.check_adjoint(y, x)?;
        self.forward_into(y, x)
    }
    fn scratch(&self) -> Option<&Scratch<Complex<R>>> {
        Some(&self.scratch)
    }
}
