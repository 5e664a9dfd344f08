//! Several kernels of one matrix, applied one after another. They share buffers, and their spectra lie on the
//! GPU or on the host.

use std::sync::{Mutex, PoisonError};

use rayspin_core::{Error, Real, Result, expect_shape};
use rayspin_device::{Array, Device, DoubleBuffer, Pinned};

use super::{Engine, Toeplitz, cuda, on_gpu};

/// The operators T_0, T_1, … of one matrix, applied in that order, with one shared set of work buffers.
///
/// A GPU may hold only some of the spectra. The others lie in pinned host memory. Two buffers on the GPU take
/// turns: while the spectrum in one is applied, the next spectrum is copied to the other. If a GPU holds `n`
/// spectra, the first n − 2 stay. With n = 1 there is one buffer, and copies wait. Results do not depend on
/// n.
///
/// ```
/// use rayspin_core::C64;
/// use rayspin_device::{Array, Device};
/// use rayspin_kernels::toeplitz::{Series, Toeplitz};
///
/// let device = Device::cpu()?;
/// let mut series = Series::<f64>::new(&device, &[4], 2, None)?;
/// for factor in [1.0, 3.0] {
///     let mut q = vec![C64::ZERO; 8];
///     q[4] = C64::from(factor); // Q is 0 except at displacement 0: x ↦ factor · x
///     series.push(Toeplitz::from_kernel(&device, &[4], &Array::from_vec(&device, &[8], q)?)?)?;
/// }
/// let image = Array::from_vec(&device, &[4], vec![C64::ONE; 4])?;
/// let mut found = Array::zeros(&device, &[4])?;
/// series.each(|i, kernel| {
///     kernel.apply(&image, &mut found)?;
///     assert!((found.to_vec()?[1] - [1.0, 3.0][i]).norm() < 1e-12);
///     Ok(())
/// })?;
/// # Ok::<(), rayspin_core::Error>(())
/// ```
#[derive(Debug)]
pub struct Series<R: Real> {
    device: Device,
    matrix: Vec<usize>,
    count: usize,
    /// Number of spectra that stay on the GPU.
    staying: usize,
    kernels: Vec<Toeplitz<R>>,
    /// The spectra that are copied, and the kernel that applies the copied spectrum.
    moving: DoubleBuffer<R>,
    applies: Mutex<Option<Toeplitz<R>>>,
}

impl<R: Real> Series<R> {
    /// For `count` kernels of images of `matrix`. A GPU holds `resident` spectra at once, or all if `None`.
    pub fn new(device: &Device, matrix: &[usize], count: usize, resident: Option<usize>) -> Result<Self> {
        let staying = Self::staying(device, matrix, count, resident)?;
        let places = if resident == Some(1) { 1 } else { 2 };
        let moving = DoubleBuffer::new(device, "moving spectra of a series of Toeplitz kernels", places);
        let (device, matrix, applies) = (device.clone(), matrix.to_vec(), Mutex::new(None));
        Ok(Self { device, matrix, count, staying, kernels: Vec::new(), moving, applies })
    }

    /// Number of spectra that stay if `resident` of `count` are held at once.
    fn staying(device: &Device, matrix: &[usize], count: usize, resident: Option<usize>) -> Result<usize> {
        Ok(match resident {
            Some(resident) if resident < count && on_gpu(device, matrix)? => {
                resident.max(1).saturating_sub(2)
            }
            _ => count,
        })
    }

    /// Bytes of device memory and of pinned host memory for the spectra of `count` kernels.
    pub fn bytes_needed_on(
        device: &Device,
        matrix: &[usize],
        count: usize,
        resident: Option<usize>,
    ) -> Result<(u64, u64)> {
        let one = match on_gpu(device, matrix)? {
            true => cuda::bytes_needed::<R>(matrix, 1)?.0,
            false => Toeplitz::<R>::spectrum_len(matrix)? as u64 * size_of::<R>() as u64,
        };
        let moving = count - Self::staying(device, matrix, count, resident)?;
        let held = if moving == 0 { count } else { resident.unwrap_or(count).max(1) };
        Ok((one * held as u64, one * moving as u64))
    }

    /// Adds the next kernel. From then on it works in the shared buffers.
    ///
    /// Errors: another matrix or device; more kernels than `count`; no host memory; a failure of the device.
    pub fn push(&mut self, mut kernel: Toeplitz<R>) -> Result<()> {
        expect_shape("Toeplitz matrix of a series", &self.matrix, kernel.matrix())?;
        if !kernel.device.same_as(&self.device) {
            let device = kernel.device.describe();
            return Err(Error::value("Toeplitz kernel of a series", self.device.describe(), device));
        }
        if self.kernels.len() + self.moving.len() >= self.count {
            return Err(Error::value("kernels of a series", self.count.to_string(), "more"));
        }
        let applies = self.applies.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(first) = self.kernels.first().or(applies.as_ref()) {
            kernel.share_work(first);
        }
        if self.kernels.len() < self.staying {
            self.kernels.push(kernel);
            return Ok(());
        }
        let mut spectrum = Array::zeros(&self.device, &[0])?;
        kernel.swap_spectrum(&mut spectrum);
        let home = Pinned::new(&self.device, spectrum.len())?;
        let (spectrum, home) = spectrum.download(home)?.finish()?;
        self.moving.push(home);
        self.moving.add_buffer(spectrum);
        applies.get_or_insert(kernel);
        Ok(())
    }

    /// Calls `work` with each kernel in order, with its spectrum on the device. If spectra are copied,
    /// threads take turns.
    ///
    /// Errors: fewer kernels than `count`; errors of `work` and of the device; spectra are copied while work
    /// is being recorded.
    pub fn each(&self, mut work: impl FnMut(usize, &Toeplitz<R>) -> Result<()>) -> Result<()> {
        let moving = self.moving.len();
        let present = self.kernels.len() + moving;
        if present != self.count {
            return Err(self.missing(present));
        }
        self.kernels.iter().enumerate().try_for_each(|(index, kernel)| work(index, kernel))?;
        self.moving.each(0..moving, |index, spectrum| {
            let mut applies = self.applies.lock().unwrap_or_else(PoisonError::into_inner);
            let kernel = applies.as_mut().ok_or_else(|| self.missing(self.kernels.len()))?;
            kernel.swap_spectrum(spectrum);
            let done = work(self.staying + index, kernel);
            kernel.swap_spectrum(spectrum);
            done
        })
    }

    /// Shape of one image.
    pub fn matrix(&self) -> &[usize] {
        &self.matrix
    }

    /// Number of kernels, including the ones not yet added.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether the number of kernels is 0.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    fn missing(&self, present: usize) -> Error {
        Error::value("kernels of a series", self.count.to_string(), present)
    }
}

impl<R: Real> Toeplitz<R> {
    /// Exchanges the spectrum of a GPU's kernel.
    fn swap_spectrum(&mut self, with: &mut Array<R>) {
        if let Engine::Gpu(engine) = &mut self.engine {
            engine.swap_spectrum(with);
        }
    }
}
