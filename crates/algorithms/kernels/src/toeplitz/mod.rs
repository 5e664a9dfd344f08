//! The normal operator FᴴWF of a non-uniform Fourier transform as a convolution on a doubled grid.

mod cpu;
mod cuda;
mod ladder;
mod make;
pub mod reference;
mod series;
#[cfg(test)]
mod tests;
mod variants;

use std::borrow::Cow;
use std::ops::Range;

use num_complex::Complex;
use rayspin_core::{Error, Real, Result, expect_shape, format_shape};
use rayspin_device::{Array, Backend, Cpu, Device};

use crate::concrete::{other_type, same, same_mut, same_ref};

pub(crate) use cuda::{builds, precompiled};
pub(crate) use ladder::ladder;
pub use make::Adjoint;
pub use series::Series;
pub use variants::{Apply, Implementation, Problem, VARIANTS};

use crate::fft::{check_device, check_trailing};

/// y = FᴴWF x for F: image → samples e^{−i2πk·x} and real weights W, without going through the samples.
///
/// (FᴴWF)\[i, j\] = Q(i − j) with Q(d) = Σ_m w_m e^{+i2πk_m·d}, d in fractions of the field of view. This is
/// a convolution, computed by FFTs of a grid of at least 2n − 1 points per axis. Q is Hermitian, so its
/// spectrum is real and stored as real numbers. (Wajer & Pruessmann, ISMRM 2001; Fessler et al., IEEE Trans.
/// Signal Process. 53:3393, 2005.)
///
/// ```
/// use rayspin_core::{C32, Trajectory};
/// use rayspin_device::{Array, Device};
/// use rayspin_kernels::{nudft, toeplitz::Toeplitz};
///
/// let device = Device::cpu()?;
/// let points = ndarray::Array2::from_shape_fn((40, 2), |(i, d)| (i as f64 * 0.37 + d as f64).sin() * 4.0);
/// let trajectory = Trajectory::from_cycles_per_fov(points)?;
/// // The kernel Q on the doubled matrix, by exact sums.
/// let mut q = Array::<C32>::zeros(&device, &[16, 16])?;
/// nudft::q(&trajectory, None, &[8, 8], &mut q)?;
/// let normal = Toeplitz::from_kernel(&device, &[8, 8], &q)?;
/// let image = Array::from_vec(&device, &[8, 8], vec![C32::ONE; 64])?;
/// let mut seen = Array::zeros(&device, &[8, 8])?;
/// normal.apply(&image, &mut seen)?;
/// # Ok::<(), rayspin_core::Error>(())
/// ```
#[derive(Debug)]
pub struct Toeplitz<R: Real> {
    device: Device,
    matrix: Vec<usize>,
    engine: Engine<R>,
}

#[derive(Debug)]
enum Engine<R: Real> {
    /// The CPU's plan. For sizes that a GPU's kernels refuse, a GPU's data go to the host and back.
    Host(Box<cpu::Convolution<R>>),
    Gpu(Box<cuda::Convolution<R>>),
}

/// Largest anti-Hermitian share of a kernel that passes for rounding.
const HERMITIAN_TOLERANCE: f64 = 0.1;

/// Fails unless the values whose anti-Hermitian part has the squared norm `odd`, of `total`, are a kernel.
fn check_hermitian<'a, R: Real>(
    odd: f64,
    total: f64,
    values: impl FnOnce() -> Result<Cow<'a, [Complex<R>]>>,
) -> Result<()> {
    if !total.is_finite() {
        let values = values()?;
        let infinite = |v: &Complex<R>| !(v.re.is_finite() && v.im.is_finite());
        let zero = Complex::new(R::zero(), R::zero());
        let (index, value) = values.iter().enumerate().find(|(_, v)| infinite(v)).unwrap_or((0, &zero));
        return Err(Error::NotFinite { what: "Toeplitz kernel".into(), index, found: value.to_string() });
    }
    if odd > HERMITIAN_TOLERANCE * HERMITIAN_TOLERANCE * total {
        return Err(Error::value(
            "Toeplitz kernel",
            "Q(−d) = conj Q(d), as real weights give, centred at index n",
            format!("an anti-Hermitian part of relative norm {:.2}", (odd / total).sqrt()),
        ));
    }
    Ok(())
}

impl<R: Real> Toeplitz<R> {
    /// From the kernel Q of images of `matrix` (1 to 3 axes), given on the centred doubled grid: `q` is
    /// `[2nz, 2ny, 2nx]` (for 2 axes `[2ny, 2nx]`, …) and index n along each axis is displacement 0.
    /// Displacements −n, at index 0, occur between no two voxels and are not read.
    ///
    /// The Hermitian part of `q` is used, which drops the rounding of how it was computed. Errors: another
    /// rank or shape, an empty axis, values that are not finite, a kernel that is not Hermitian within a
    /// tenth (weights that are not real, or another centre), no memory.
    pub fn from_kernel(device: &Device, matrix: &[usize], q: &Array<Complex<R>>) -> Result<Self> {
        if !(1..=3).contains(&matrix.len()) || matrix.contains(&0) {
            return Err(Error::Shape {
                what: "Toeplitz matrix size".into(),
                expected: "1 to 3 axes, none empty".into(),
                found: format_shape(matrix),
            });
        }
        check_device("Toeplitz kernel", device, q.device())?;
        let doubled: Option<Vec<usize>> = matrix.iter().map(|n| n.checked_mul(2)).collect();
        let doubled = doubled.ok_or_else(|| {
            Error::value("Toeplitz matrix size", "sizes that can be doubled", format_shape(matrix))
        })?;
        expect_shape("Toeplitz kernel", &doubled, q.shape())?;
        if on_gpu(device, matrix)? {
            let engine = Engine::Gpu(Box::new(cuda::Convolution::new(device, matrix, q)?));
            return Ok(Self { device: device.clone(), matrix: matrix.to_vec(), engine });
        }
        let cpu = device.cpu_side();
        let convolution = if let Some(q) = same_ref(q) {
            same(new_f32(cpu, matrix, q)?).ok_or_else(other_type::<R>)?
        } else {
            let q = same_ref(q).ok_or_else(other_type::<R>)?;
            same(new_f64(cpu, matrix, q)?).ok_or_else(other_type::<R>)?
        };
        Ok(Self {
            device: device.clone(),
            matrix: matrix.to_vec(),
            engine: Engine::Host(Box::new(convolution)),
        })
    }

    /// The order of [`Toeplitz::spectrum`], a number that rises when the order changes. A program that keeps
    /// spectra keeps this number with them.
    pub const ORDER: u32 = 2;

    /// The spectrum of the padded kernel, for [`Toeplitz::from_spectrum`]. Its order is internal to this
    /// library and the same on every device.
    pub fn spectrum(&self) -> Result<Cow<'_, [R]>> {
        match &self.engine {
            Engine::Host(convolution) => Ok(convolution.spectrum().into()),
            Engine::Gpu(convolution) => Ok(convolution.spectrum()?.into()),
        }
    }

    /// Elements of [`Toeplitz::spectrum`] for images of `matrix`. Errors: as [`Toeplitz::from_kernel`].
    pub fn spectrum_len(matrix: &[usize]) -> Result<usize> {
        Ok(cpu::elements(matrix)?.0)
    }

    /// From the spectrum of another plan for the same matrix: the same operator, bit by bit.
    ///
    /// Errors: another number of elements, values that are not finite, a matrix as [`Toeplitz::from_kernel`]
    /// refuses it.
    pub fn from_spectrum(device: &Device, matrix: &[usize], spectrum: Vec<R>) -> Result<Self> {
        expect_shape("Toeplitz spectrum", &[Self::spectrum_len(matrix)?], &[spectrum.len()])?;
        if let Some((index, value)) = spectrum.iter().enumerate().find(|(_, v)| !v.is_finite()) {
            return Err(Error::NotFinite {
                what: "Toeplitz spectrum".into(),
                index,
                found: value.to_string(),
            });
        }
        let engine = if on_gpu(device, matrix)? {
            Engine::Gpu(Box::new(cuda::Convolution::with_spectrum(device, matrix, &spectrum)?))
        } else {
            Engine::Host(Box::new(cpu::Convolution::with_spectrum(matrix, spectrum)?))
        };
        Ok(Self { device: device.clone(), matrix: matrix.to_vec(), engine })
    }

    /// y = FᴴWF x for every image of a batch; `x` and `y` are `[batch.., z, y, x]`.
    ///
    /// Errors: shapes that differ or whose last axes are not the matrix, arrays of another device, no memory
    /// for the work buffer.
    pub fn apply(&self, x: &Array<Complex<R>>, y: &mut Array<Complex<R>>) -> Result<()> {
        check_trailing("Toeplitz input", &self.matrix, x.shape())?;
        expect_shape("Toeplitz output", x.shape(), y.shape())?;
        self.check_devices(&[x, y])?;
        let convolution = match &self.engine {
            Engine::Gpu(convolution) => return convolution.apply(x.cuda(), y.cuda_mut()),
            Engine::Host(convolution) => convolution.as_ref(),
        };
        let cpu = self.device.cpu_side();
        if let (Some(to), Some(x), Some(y)) = (same_ref(convolution), same_ref(x), same_mut(y)) {
            apply_f32(to, cpu, x, y)
        } else if let (Some(to), Some(x), Some(y)) = (same_ref(convolution), same_ref(x), same_mut(y)) {
            apply_f64(to, cpu, x, y)
        } else {
            Err(other_type::<R>())
        }
    }

    /// y = Σ_c S̄_c · FᴴWF (S_c · x) for one image, the normal operator of sensitivity encoding (Pruessmann
    /// et al., MRM 46:638, 2001): `x` and `y` are `[z, y, x]`, `maps` `[coil, z, y, x]`. No coil image is
    /// stored.
    ///
    /// Errors: as [`Toeplitz::apply`].
    pub fn apply_sense(
        &self,
        x: &Array<Complex<R>>,
        maps: &Array<Complex<R>>,
        y: &mut Array<Complex<R>>,
    ) -> Result<()> {
        let coils = maps.shape().first().copied().unwrap_or(0);
        self.apply_sense_coils(x, maps, 0..coils, y, false)
    }

    /// [`Toeplitz::apply_sense`] for the coils of a range. With `add` the result is added to `y`.
    ///
    /// Errors: as [`Toeplitz::apply`], and coils that do not exist.
    pub fn apply_sense_coils(
        &self,
        x: &Array<Complex<R>>,
        maps: &Array<Complex<R>>,
        coils: Range<usize>,
        y: &mut Array<Complex<R>>,
        add: bool,
    ) -> Result<()> {
        expect_shape("Toeplitz input", &self.matrix, x.shape())?;
        expect_shape("Toeplitz output", &self.matrix, y.shape())?;
        check_trailing("coil sensitivities", &self.matrix, maps.shape())?;
        if maps.shape().len() != self.matrix.len() + 1 {
            return Err(Error::Shape {
                what: "coil sensitivities".into(),
                expected: format!("[coil, {}", &format_shape(&self.matrix)[1..]),
                found: format_shape(maps.shape()),
            });
        }
        self.check_devices(&[x, maps, y])?;
        let all_coils = maps.shape()[0];
        if coils.start > coils.end || coils.end > all_coils {
            return Err(Error::value(
                "coils of a Toeplitz convolution",
                format!("a range within 0..{all_coils}"),
                format!("{coils:?}"),
            ));
        }
        if coils.is_empty() {
            return if add { Ok(()) } else { y.fill(Complex::new(R::zero(), R::zero())) };
        }
        let taken = coils.start * x.len()..coils.end * x.len();
        let to = match &self.engine {
            Engine::Gpu(convolution) => {
                let len = all_coils * x.len();
                let maps = maps.cuda().part(taken.start, taken.len());
                let maps = maps.ok_or_else(|| Error::shape("coil sensitivities", &[taken.end], &[len]))?;
                return convolution.apply_sense(x.cuda(), maps, y.cuda_mut(), add);
            }
            Engine::Host(convolution) => convolution.as_ref(),
        };
        let cpu = self.device.cpu_side();
        let from = x;
        if let (Some(to), Some(x), Some(maps), Some(y)) =
            (same_ref(to), same_ref(from), same_ref::<_, Array<Complex<f32>>>(maps), same_mut(y))
        {
            sense_f32(to, cpu, x, &maps.read()?[taken], y, add)
        } else if let (Some(to), Some(x), Some(maps), Some(y)) =
            (same_ref(to), same_ref(from), same_ref::<_, Array<Complex<f64>>>(maps), same_mut(y))
        {
            sense_f64(to, cpu, x, &maps.read()?[taken], y, add)
        } else {
            Err(other_type::<R>())
        }
    }

    /// Shape of one image.
    pub fn matrix(&self) -> &[usize] {
        &self.matrix
    }

    /// Bytes that the plan holds between calls: the spectrum and the work buffers allocated so far.
    pub fn bytes(&self) -> u64 {
        match &self.engine {
            Engine::Host(convolution) => convolution.bytes(),
            Engine::Gpu(convolution) => convolution.bytes(),
        }
    }

    /// Bytes that a plan for images of `matrix` holds with one work buffer, before it is made. It holds the
    /// real spectrum of the padded grid. The buffer is a complex grid, padded along all axes but the first,
    /// or half of it where the padded last axis is even.
    pub fn bytes_needed(matrix: &[usize]) -> Result<u64> {
        let (spectrum, work) = cpu::elements(matrix)?;
        Ok(spectrum as u64 * size_of::<R>() as u64 + work as u64 * size_of::<Complex<R>>() as u64)
    }

    /// Bytes that a plan on `device` holds at most after it was applied to `coils` coils or images. On a GPU
    /// this is GPU memory: the real spectrum and the buffers of the coils that it transforms together. On the
    /// CPU it is [`Toeplitz::bytes_needed`], and of small images a work buffer for each thread.
    pub fn bytes_needed_on(device: &Device, matrix: &[usize], coils: usize) -> Result<u64> {
        match on_gpu(device, matrix)? {
            true => cuda::bytes_needed::<R>(matrix, coils).map(|(spectrum, work)| spectrum + work),
            false => {
                let (spectrum, work) =
                    (cpu::elements(matrix)?.0, Self::bytes_of_work(device, matrix, coils)?);
                Ok(spectrum as u64 * size_of::<R>() as u64 + work)
            }
        }
    }

    /// The part of [`Toeplitz::bytes_needed_on`] that the first application allocates: the buffers.
    pub fn bytes_of_work(device: &Device, matrix: &[usize], coils: usize) -> Result<u64> {
        match on_gpu(device, matrix)? {
            true => cuda::bytes_needed::<R>(matrix, coils).map(|(_, work)| work),
            false => {
                let elements = cpu::elements(matrix)?.1;
                let buffers = cpu::buffers::<R>(elements, device.cpu_side().threads(), coils) as u64;
                Ok(buffers * elements as u64 * size_of::<Complex<R>>() as u64)
            }
        }
    }

    /// Peak bytes of device memory while [`Toeplitz::from_kernel`] makes a plan, including Q.
    pub fn bytes_of_making(device: &Device, matrix: &[usize]) -> Result<u64> {
        if on_gpu(device, matrix)? {
            return cuda::bytes_of_making::<R>(matrix);
        }
        let doubled = matrix.iter().map(|&n| 2 * n as u64).product::<u64>();
        Ok(doubled * size_of::<Complex<R>>() as u64 + Self::bytes_needed(matrix)?)
    }

    /// Limits the coils or images that are taken at a time to `coils`.
    pub fn limit_batch(&mut self, coils: usize) {
        match &mut self.engine {
            Engine::Gpu(convolution) => convolution.limit_batch(coils),
            Engine::Host(convolution) => convolution.limit_batch(coils),
        }
    }

    /// Works in the buffers of `other`, a plan for the same matrix on the same device.
    fn share_work(&mut self, other: &Self) {
        match (&mut self.engine, &other.engine) {
            (Engine::Gpu(own), Engine::Gpu(other)) => own.share_work(other),
            (Engine::Host(own), Engine::Host(other)) => own.share_work(other),
            _ => {}
        }
    }

    /// Work of one image of `matrix`.
    pub fn work(matrix: &[usize]) -> crate::variant::Work {
        variants::work(&Problem { matrix: matrix.to_vec(), batch: 1 })
    }

    fn check_devices(&self, arrays: &[&Array<Complex<R>>]) -> Result<()> {
        arrays.iter().try_for_each(|array| check_device("Toeplitz", &self.device, array.device()))
    }
}

/// Whether a GPU's own kernels serve images of `matrix`.
fn on_gpu(device: &Device, matrix: &[usize]) -> Result<bool> {
    Ok(matches!(device.backend(), Backend::Cuda(_)) && cuda::takes(matrix)?)
}

macro_rules! compiled_here {
    ($real:ty, $new:ident, $apply:ident, $sense:ident) => {
        #[inline(never)]
        fn $new(cpu: &Cpu, matrix: &[usize], q: &Array<Complex<$real>>) -> Result<cpu::Convolution<$real>> {
            cpu::Convolution::new(cpu, matrix, &q.read()?)
        }

        #[inline(never)]
        fn $apply(
            convolution: &cpu::Convolution<$real>,
            cpu: &Cpu,
            x: &Array<Complex<$real>>,
            y: &mut Array<Complex<$real>>,
        ) -> Result<()> {
            let x = x.read()?;
            y.update(|y| convolution.apply(cpu, &x, y))?
        }

        #[inline(never)]
        fn $sense(
            convolution: &cpu::Convolution<$real>,
            cpu: &Cpu,
            x: &Array<Complex<$real>>,
            maps: &[Complex<$real>],
            y: &mut Array<Complex<$real>>,
            add: bool,
        ) -> Result<()> {
            let x = x.read()?;
            y.update(|y| convolution.apply_sense(cpu, &x, maps, y, add))?
        }
    };
}

compiled_here!(f32, new_f32, apply_f32, sense_f32);
compiled_here!(f64, new_f64, apply_f64, sense_f64);
