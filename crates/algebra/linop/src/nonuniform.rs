use std::ops::Range;
use std::sync::Arc;

use num_complex::Complex;
use rayspin_core::{Real, Result, Trajectory, format_shape};
use rayspin_device::{Array, Device};
use rayspin_kernels::{nudft, nufft, sensitivity, toeplitz, vector};

use crate::{CoilMaps, LinearOp, Scratch};

/// F: images `[batch…, matrix…]` → samples `[batch…, sample]`, s\[j\] = Σ_x ρ\[x\] e^{−i2πk_j·x} without
/// scaling, by the non-uniform fast Fourier transform to its plan's tolerance. The adjoint matches F to
/// rounding at any tolerance.
///
/// ```
/// use rayspin_core::Trajectory;
/// use rayspin_device::Device;
/// use rayspin_kernels::nufft;
/// use rayspin_linop::{LinearOp, Nufft, laws};
///
/// let device = Device::cpu()?;
/// let points = ndarray::Array2::from_shape_fn((40, 2), |(i, d)| (i as f64 * 0.37 + d as f64).sin() * 4.0);
/// let trajectory = Trajectory::from_cycles_per_fov(points)?;
/// let plan = nufft::Nufft::<f32>::new(&device, &trajectory, &[8, 8], &nufft::Options::tolerance(1e-4))?;
/// // Three images at once.
/// let transform = Nufft::new(&[3], plan);
/// assert_eq!((transform.domain(), transform.range()), (&[3, 8, 8][..], &[3, 40][..]));
/// laws::check(&transform, &device, 1)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Nufft<R: Real> {
    domain: Vec<usize>,
    range: Vec<usize>,
    plan: Arc<nufft::Nufft<R>>,
    scratch: Scratch<Complex<R>>,
}

impl<R: Real> Nufft<R> {
    /// From a plan, over leading axes `batch` (coils).
    pub fn new(batch: &[usize], plan: impl Into<Arc<nufft::Nufft<R>>>) -> Self {
        let plan = plan.into();
        Self {
            domain: [batch, plan.matrix()].concat(),
            range: [batch, &[plan.samples()]].concat(),
            plan,
            scratch: Scratch::default(),
        }
    }

    /// The plan.
    pub fn plan(&self) -> &Arc<nufft::Nufft<R>> {
        &self.plan
    }
}

impl<R: Real> LinearOp<Complex<R>> for Nufft<R> {
    fn name(&self) -> &str {
        "NUFFT"
    }
    fn domain(&self) -> &[usize] {
        &self.domain
    }
    fn range(&self) -> &[usize] {
        &self.range
    }
    fn forward_into(&self, x: &Array<Complex<R>>, y: &mut Array<Complex<R>>) -> Result<()> {
        self.check_forward(x, y)?;
        self.plan.forward(x, y)
    }
    fn adjoint_into(&self, y: &Array<Complex<R>>, x: &mut Array<Complex<R>>) -> Result<()> {
        self.check_adjoint(y, x)?;
        self.plan.adjoint(y, x)
    }
    fn scratch(&self) -> Option<&Scratch<Complex<R>>> {
        Some(&self.scratch)
    }
}

/// F: values at positions `[batch…, position]` → values at frequencies `[batch…, frequency]`, s\[j\] = Σ_k
/// f\[k\] e^{−i2πs_j·x_k} without scaling, by the type 3 non-uniform fast Fourier transform to its plan's
/// tolerance. The adjoint matches F to rounding at any tolerance.
///
/// ```
/// use rayspin_device::Device;
/// use rayspin_kernels::nufft;
/// use rayspin_linop::{NufftType3, laws};
///
/// let device = Device::cpu()?;
/// let positions = ndarray::Array2::from_shape_fn((30, 2), |(i, d)| (i as f64 + d as f64).sin());
/// let frequencies = ndarray::Array2::from_shape_fn((20, 2), |(i, d)| (2.0 * i as f64 + d as f64).cos());
/// let options = nufft::Options::tolerance(1e-4);
/// let positions = nufft::Coordinates::rows("positions", positions.view())?;
/// let frequencies = nufft::Coordinates::rows("frequencies", frequencies.view())?;
/// let plan = nufft::Type3::<f32>::new(&device, positions, frequencies, &options)?;
/// laws::check(&NufftType3::new(&[], plan), &device, 1)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct NufftType3<R: Real> {
    domain: Vec<usize>,
    range: Vec<usize>,
    plan: Arc<nufft::Type3<R>>,
    scratch: Scratch<Complex<R>>,
}

impl<R: Real> NufftType3<R> {
    /// From a plan, over leading axes `batch`.
    pub fn new(batch: &[usize], plan: impl Into<Arc<nufft::Type3<R>>>) -> Self {
        let plan = plan.into();
        Self {
            domain: [batch, &[plan.positions()]].concat(),
            range: [batch, &[plan.frequencies()]].concat(),
            plan,
            scratch: Scratch::default(),
        }
    }

    /// The plan.
    pub fn plan(&self) -> &Arc<nufft::Type3<R>> {
        &self.plan
    }
}

impl<R: Real> LinearOp<Complex<R>> for NufftType3<R> {
    fn name(&self) -> &str {
        "type 3 NUFFT"
    }
    fn domain(&self) -> &[usize] {
        &self.domain
    }
    fn range(&self) -> &[usize] {
        &self.range
    }
    fn forward_into(&self, x: &Array<Complex<R>>, y: &mut Array<Complex<R>>) -> Result<()> {
        self.check_forward(x, y)?;
        self.plan.forward(x, y)
    }
    fn adjoint_into(&self, y: &Array<Complex<R>>, x: &mut Array<Complex<R>>) -> Result<()> {
        self.check_adjoint(y, x)?;
        self.plan.adjoint(y, x)
    }
    fn scratch(&self) -> Option<&Scratch<Complex<R>>> {
        Some(&self.scratch)
    }
}

/// The exact F of [`Nufft`], summed term by term, for small problems and for certificates.
///
/// ```
/// use rayspin_core::Trajectory;
/// use rayspin_device::Device;
/// use rayspin_linop::{LinearOp, Nudft, random};
///
/// let device = Device::cpu()?;
/// let points = ndarray::Array2::from_shape_fn((40, 2), |(i, d)| (i as f64 * 0.37 + d as f64).sin() * 4.0);
/// let trajectory = Trajectory::from_cycles_per_fov(points)?;
/// let exact = Nudft::<f32>::new(&[], trajectory, &[8, 8])?;
/// assert_eq!(exact.forward(&random(&device, &[8, 8], 1)?)?.shape(), [40]);
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub struct Nudft<R: Real> {
    domain: Vec<usize>,
    range: Vec<usize>,
    trajectory: Trajectory,
    scratch: Scratch<Complex<R>>,
}

impl<R: Real> Nudft<R> {
    /// Between images `[batch…, matrix…]` and samples at `trajectory`. Errors: another number of matrix axes
    /// than the trajectory has dimensions.
    pub fn new(batch: &[usize], trajectory: Trajectory, matrix: &[usize]) -> Result<Self> {
        if matrix.len() != trajectory.dims() {
            return Err(rayspin_core::Error::Shape {
                what: "NUDFT matrix".into(),
                expected: format!("{} axes", trajectory.dims()),
                found: format_shape(matrix),
            });
        }
        Ok(Self {
            domain: [batch, matrix].concat(),
            range: [batch, &[trajectory.samples()]].concat(),
            trajectory,
            scratch: Scratch::default(),
        })
    }
}

impl<R: Real> LinearOp<Complex<R>> for Nudft<R> {
    fn name(&self) -> &str {
        "NUDFT"
    }
    fn domain(&self) -> &[usize] {
        &self.domain
    }
    fn range(&self) -> &[usize] {
        &self.range
    }
    fn forward_into(&self, x: &Array<Complex<R>>, y: &mut Array<Complex<R>>) -> Result<()> {
        self.check_forward(x, y)?;
        nudft::forward(&self.trajectory, x, y)
    }
    fn adjoint_into(&self, y: &Array<Complex<R>>, x: &mut Array<Complex<R>>) -> Result<()> {
        self.check_adjoint(y, x)?;
        nudft::adjoint(&self.trajectory, y, x)
    }
    fn scratch(&self) -> Option<&Scratch<Complex<R>>> {
        Some(&self.scratch)
    }
}

/// T = FᴴWF on images `[batch…, matrix…]` by convolution, without going through the samples. Hermitian, its
/// own adjoint.
///
/// ```
/// use rayspin_core::Trajectory;
/// use rayspin_device::Device;
/// use rayspin_linop::{ToeplitzNormal, laws};
///
/// let device = Device::cpu()?;
/// let points = ndarray::Array2::from_shape_fn((40, 2), |(i, d)| (i as f64 * 0.37 + d as f64).sin() * 4.0);
/// let trajectory = Trajectory::from_cycles_per_fov(points)?;
/// let normal = ToeplitzNormal::<f32>::exact(&device, &[], &trajectory, None, &[8, 8])?;
/// laws::check_positive(&normal, &device, 1, 1e-3)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct ToeplitzNormal<R: Real> {
    shape: Vec<usize>,
    toeplitz: Arc<toeplitz::Toeplitz<R>>,
    scratch: Scratch<Complex<R>>,
}

impl<R: Real> ToeplitzNormal<R> {
    /// Over leading axes `batch`.
    pub fn new(batch: &[usize], toeplitz: impl Into<Arc<toeplitz::Toeplitz<R>>>) -> Self {
        let toeplitz = toeplitz.into();
        Self { shape: [batch, toeplitz.matrix()].concat(), toeplitz, scratch: Scratch::default() }
    }

    /// For F at `trajectory` with weights W `[sample]` (or 1), on images `[batch…, matrix…]`. The kernel Q
    /// comes from the exact transform.
    ///
    /// Errors: another number of matrix axes than the trajectory has dimensions, other weights than samples,
    /// memory.
    pub fn exact(
        device: &Device,
        batch: &[usize],
        trajectory: &Trajectory,
        weights: Option<&Array<R>>,
        matrix: &[usize],
    ) -> Result<Self> {
        let doubled: Vec<usize> = matrix.iter().map(|n| n.saturating_mul(2)).collect();
        let mut q = Array::zeros(device, &doubled)?;
        nudft::q(trajectory, weights, matrix, &mut q)?;
        Ok(Self::new(batch, toeplitz::Toeplitz::from_kernel(device, matrix, &q)?))
    }

    /// [`ToeplitzNormal::exact`] with Q by the adjoint transform of `plan`, which is at `trajectory`.
    ///
    /// Errors: another number of samples or dimensions than the plan's, other weights than samples, memory.
    pub fn by_plan(
        batch: &[usize],
        plan: &nufft::Nufft<R>,
        trajectory: &Trajectory,
        weights: Option<&Array<R>>,
    ) -> Result<Self> {
        let device = plan.device();
        let mut weighted = Array::zeros(device, &[plan.samples()])?;
        let adjoint = &mut |phases: &Array<Complex<R>>, block: &mut Array<Complex<R>>| match weights {
            None => plan.adjoint(phases, block),
            Some(weights) => {
                vector::weight(weights, phases, &mut weighted)?;
                plan.adjoint(&weighted, block)
            }
        };
        Ok(Self::new(batch, toeplitz::Toeplitz::from_adjoint(device, trajectory, plan.matrix(), adjoint)?))
    }

    /// The convolution.
    pub fn toeplitz(&self) -> &Arc<toeplitz::Toeplitz<R>> {
        &self.toeplitz
    }
}

impl<R: Real> LinearOp<Complex<R>> for ToeplitzNormal<R> {
    fn name(&self) -> &str {
        "Toeplitz"
    }
    fn domain(&self) -> &[usize] {
        &self.shape
    }
    fn range(&self) -> &[usize] {
        &self.shape
    }
    fn forward_into(&self, x: &Array<Complex<R>>, y: &mut Array<Complex<R>>) -> Result<()> {
        self.check_forward(x, y)?;
        self.toeplitz.apply(x, y)
    }
    fn adjoint_into(&self, y: &Array<Complex<R>>, x: &mut Array<Complex<R>>) -> Result<()> {
        self.check_adjoint(y, x)?;
        self.toeplitz.apply(y, x)
    }
    fn scratch(&self) -> Option<&Scratch<Complex<R>>> {
        Some(&self.scratch)
    }
}

/// SᴴTS: x ↦ Σ_j conj(c_j) T(c_j x), the normal operator of non-Cartesian sensitivity encoding. It works coil
/// by coil and stores one coil image and one doubled grid at a time. Hermitian, its own adjoint.
///
/// Pruessmann, Weiger, Börnert, Boesiger, *Advances in sensitivity encoding with arbitrary k-space
/// trajectories*, Magn Reson Med 46:638, 2001.
///
/// ```
/// use rayspin_core::Trajectory;
/// use rayspin_device::Device;
/// use rayspin_linop::{SenseToeplitz, ToeplitzNormal, laws};
///
/// let device = Device::cpu()?;
/// let points = ndarray::Array2::from_shape_fn((40, 2), |(i, d)| (i as f64 * 0.37 + d as f64).sin() * 4.0);
/// let trajectory = Trajectory::from_cycles_per_fov(points)?;
/// let normal = ToeplitzNormal::<f32>::exact(&device, &[], &trajectory, None, &[8, 8])?;
/// let maps = laws::random(&device, &[4, 8, 8], 1)?;
/// let sense = SenseToeplitz::new(maps, normal.toeplitz().clone())?;
/// laws::check_positive(&sense, &device, 2, 1e-3)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct SenseToeplitz<R: Real> {
    maps: CoilMaps<R>,
    toeplitz: Arc<toeplitz::Toeplitz<R>>,
    scratch: Scratch<Complex<R>>,
}

impl<R: Real> SenseToeplitz<R> {
    /// From sensitivities `[coil, matrix…]` and T. Errors: maps of another matrix.
    pub fn new(
        maps: impl Into<CoilMaps<R>>,
        toeplitz: impl Into<Arc<toeplitz::Toeplitz<R>>>,
    ) -> Result<Self> {
        let (maps, toeplitz) = (maps.into(), toeplitz.into());
        maps.expect(toeplitz.matrix())?;
        Ok(Self { maps, toeplitz, scratch: Scratch::default() })
    }

    fn apply(&self, x: &Array<Complex<R>>, y: &mut Array<Complex<R>>) -> Result<()> {
        if self.maps.coils() == 0 {
            return y.fill(Complex::new(R::zero(), R::zero()));
        }
        self.maps.each(None, |coils, maps, taken| {
            self.toeplitz.apply_sense_coils(x, maps, taken, y, coils.start > 0)
        })
    }
}

impl<R: Real> LinearOp<Complex<R>> for SenseToeplitz<R> {
    fn name(&self) -> &str {
        "SENSE Toeplitz"
    }
    fn domain(&self) -> &[usize] {
        self.toeplitz.matrix()
    }
    fn range(&self) -> &[usize] {
        self.toeplitz.matrix()
    }
    fn forward_into(&self, x: &Array<Complex<R>>, y: &mut Array<Complex<R>>) -> Result<()> {
        self.check_forward(x, y)?;
        self.apply(x, y)
    }
    fn adjoint_into(&self, y: &Array<Complex<R>>, x: &mut Array<Complex<R>>) -> Result<()> {
        self.check_adjoint(y, x)?;
        self.apply(y, x)
    }
    fn scratch(&self) -> Option<&Scratch<Complex<R>>> {
        Some(&self.scratch)
    }
}

/// FS, non-Cartesian sensitivity encoding: one image → samples `[coil, sample]`. It has the values of
/// `nufft.compose(sense)`, but works coil by coil, so that one coil image is in memory instead of all.
///
/// ```
/// use rayspin_core::Trajectory;
/// use rayspin_device::Device;
/// use rayspin_kernels::nufft;
/// use rayspin_linop::{LinearOp, SenseNufft, random};
///
/// let device = Device::cpu()?;
/// let points = ndarray::Array2::from_shape_fn((40, 2), |(i, d)| (i as f64 * 0.37 + d as f64).sin() * 4.0);
/// let trajectory = Trajectory::from_cycles_per_fov(points)?;
/// let plan = nufft::Nufft::<f32>::new(&device, &trajectory, &[8, 8], &nufft::Options::tolerance(1e-4))?;
/// let encode = SenseNufft::new(random(&device, &[4, 8, 8], 1)?, plan)?;
/// let samples = encode.forward(&random(&device, &[8, 8], 2)?)?;
/// assert_eq!(samples.shape(), [4, 40]);
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub struct SenseNufft<R: Real> {
    maps: CoilMaps<R>,
    plan: Arc<nufft::Nufft<R>>,
    range: [usize; 2],
    one_image: Vec<usize>,
    images: Scratch<Complex<R>>,
    samples: Scratch<Complex<R>>,
}

impl<R: Real> SenseNufft<R> {
    /// From sensitivities `[coil, matrix…]` and the plan of F. Errors: maps of another matrix.
    pub fn new(maps: impl Into<CoilMaps<R>>, plan: impl Into<Arc<nufft::Nufft<R>>>) -> Result<Self> {
        let (maps, plan) = (maps.into(), plan.into());
        maps.expect(plan.matrix())?;
        Ok(Self {
            range: [maps.coils(), plan.samples()],
            one_image: [&[1], plan.matrix()].concat(),
            maps,
            plan,
            images: Scratch::default(),
            samples: Scratch::default(),
        })
    }

    /// Calls `each` with scratch arrays for one coil's image and its samples, for each coil.
    fn for_coils(&self, device: &Device, mut each: impl FnMut(Coil<'_, R>) -> Result<()>) -> Result<()> {
        let mut image = self.images.take(device, &self.one_image)?;
        let mut samples = self.samples.take(device, &[1, self.range[1]])?;
        self.maps.each(Some(1), |coils, maps, taken| {
            each(Coil {
                first: coils.start * self.range[1],
                maps,
                taken,
                image: &mut image,
                samples: &mut samples,
            })
        })
    }
}

/// The coil that is being processed.
struct Coil<'a, R: Real> {
    /// The coil's first sample among all coils' samples.
    first: usize,
    /// Maps, and the row of this coil.
    maps: &'a Array<Complex<R>>,
    taken: Range<usize>,
    image: &'a mut Array<Complex<R>>,
    samples: &'a mut Array<Complex<R>>,
}

impl<R: Real> LinearOp<Complex<R>> for SenseNufft<R> {
    fn name(&self) -> &str {
        "SENSE NUFFT"
    }
    fn domain(&self) -> &[usize] {
        self.plan.matrix()
    }
    fn range(&self) -> &[usize] {
        &self.range
    }
    fn forward_into(&self, x: &Array<Complex<R>>, y: &mut Array<Complex<R>>) -> Result<()> {
        self.check_forward(x, y)?;
        self.for_coils(x.device(), |coil| {
            sensitivity::expand_coils(coil.maps, coil.taken, x, coil.image)?;
            self.plan.forward(coil.image, coil.samples)?;
            vector::copy_part(coil.samples, 0, y, coil.first, self.range[1])
        })
    }
    fn adjoint_into(&self, y: &Array<Complex<R>>, x: &mut Array<Complex<R>>) -> Result<()> {
        self.check_adjoint(y, x)?;
        x.fill(Complex::default())?;
        self.for_coils(y.device(), |coil| {
            vector::copy_part(y, coil.first, coil.samples, 0, self.range[1])?;
            self.plan.adjoint(coil.samples, coil.image)?;
            sensitivity::combine_coils_add(coil.maps, coil.taken, coil.image, x)
        })
    }
    fn normal_into(&self, x: &Array<Complex<R>>, y: &mut Array<Complex<R>>) -> Result<()> {
        self.check_normal(x, y)?;
        y.fill(Complex::default())?;
        self.for_coils(x.device(), |coil| {
            sensitivity::expand_coils(coil.maps, coil.taken.clone(), x, coil.image)?;
            self.plan.forward(coil.image, coil.samples)?;
            self.plan.adjoint(coil.samples, coil.image)?;
            sensitivity::combine_coils_add(coil.maps, coil.taken, coil.image, y)
        })
    }
}
