//! Several kernels of one matrix, one after another: what they share, and where their spectra lie.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use rayspin_core::{Error, Real, Result, expect_shape};
use rayspin_device::{Array, Backend, Device, Pinned, Transfer};

use super::{Engine, Toeplitz, cuda, on_gpu};

/// The operators T_0, T_1, … of one matrix, applied in that order, with one set of work buffers among them.
///
/// A GPU may be told to hold some of the spectra only. The others lie in the host's pinned memory; two places on the GPU take
/// turns, and while one's spectrum is applied the next one's is copied to the other. Of a GPU that is to hold `n`, the first
/// n − 2 stay; with one there is one place, and copies wait. Results do not depend on it.
#[derive(Debug)]
pub struct Series<R: Real> {
    device: Device,
    matrix: Vec<usize>,
    count: usize,
    /// How many stay, and how many places the others come to.
    staying: usize,
    places: usize,
    kernels: Vec<Toeplitz<R>>,
    moving: Mutex<Moving<R>>,
}

/// Spectra that come and go.
#[derive(Debug)]
struct Moving<R: Real> {
    /// The one whose turn it is to take the next spectrum comes first.
    places: VecDeque<Toeplitz<R>>,
    /// Nothing while a copy has it.
    home: Vec<Option<Pinned<R>>>,
    /// The copy under way, of which one, to the first place.
    under_way: Option<(usize, Transfer<R>)>,
}

impl<R: Real> Series<R> {
    /// For `count` kernels of images of `matrix`, of which a GPU holds `resident` spectra at once: all where absent.
    pub fn new(device: &Device, matrix: &[usize], count: usize, resident: Option<usize>) -> Result<Self> {
        let staying = Self::staying(device, matrix, count, resident)?;
        let moving = Moving { places: VecDeque::new(), home: Vec::new(), under_way: None };
        let (device, matrix) = (device.clone(), matrix.to_vec());
        let places = if resident == Some(1) { 1 } else { 2 };
        Ok(Self { device, matrix, count, staying, places, kernels: Vec::new(), moving: Mutex::new(moving) })
    }

    /// How many of `count` spectra stay where `resident` are held at once.
    fn staying(device: &Device, matrix: &[usize], count: usize, resident: Option<usize>) -> Result<usize> {
        Ok(match resident {
            Some(resident) if resident < count && on_gpu(device, matrix)? => {
                resident.max(1).saturating_sub(2)
            }
            _ => count,
        })
    }

    /// Bytes of a device's memory that the spectra of `count` kernels take, and of the host's pinned memory.
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

    /// Adds the next kernel, which from then on works in the buffers of those before.
    ///
    /// Errors: another matrix or device, more kernels than were to come, no memory on the host, of the device.
    pub fn push(&mut self, mut kernel: Toeplitz<R>) -> Result<()> {
        expect_shape("Toeplitz matrix of a series", &self.matrix, kernel.matrix())?;
        if !kernel.device.same_as(&self.device) {
            let found = kernel.device.describe();
            return Err(Error::value("Toeplitz kernel of a series", self.device.describe(), found));
        }
        let moving = self.moving.get_mut().unwrap_or_else(PoisonError::into_inner);
        if self.kernels.len() + moving.home.len() >= self.count {
            return Err(Error::value("kernels of a series", self.count.to_string(), "more"));
        }
        if let Some(first) = self.kernels.first().or(moving.places.front()) {
            kernel.share_work(first);
        }
        if self.kernels.len() < self.staying {
            self.kernels.push(kernel);
            return Ok(());
        }
        let Engine::Gpu(engine) = &mut kernel.engine else {
            return Err(Error::value("kernel of a series", "one that a GPU applies", "the host's"));
        };
        let spectrum = engine.take_spectrum().ok_or_else(lost)?;
        let home = Pinned::new(&self.device, spectrum.len())?;
        let (spectrum, home) = spectrum.download(home)?.finish()?;
        moving.home.push(Some(home));
        if moving.places.len() < self.places {
            engine.put_spectrum(spectrum);
            moving.places.push_back(kernel);
        }
        Ok(())
    }

    /// Calls `work` with each kernel in order, its spectrum in place. Threads that share spectra which come and go take turns.
    ///
    /// Errors: fewer kernels than were to come, those of `work`, of the device; with spectra that come and go, work is being recorded.
    pub fn each(&self, mut work: impl FnMut(usize, &Toeplitz<R>) -> Result<()>) -> Result<()> {
        if self.staying == self.count {
            self.expect_all(self.kernels.len())?;
            return self.kernels.iter().enumerate().try_for_each(|(index, kernel)| work(index, kernel));
        }
        if let Backend::Cuda(cuda) = self.device.backend() {
            // Copies cannot be recorded; one refused halfway would lose its spectrum.
            cuda.expect_not_recording("moving spectra of a series of Toeplitz kernels")?;
        }
        let moving = &mut *self.moving.lock().unwrap_or_else(PoisonError::into_inner);
        self.expect_all(self.kernels.len() + moving.home.len())?;
        moving.begin(0)?;
        for (index, kernel) in self.kernels.iter().enumerate() {
            work(index, kernel)?;
        }
        let count = moving.home.len();
        for index in 0..count {
            let kernel = moving.arrive()?;
            if self.places > 1 {
                // Into the other place, after the last work that read it; after the last one for the next application.
                moving.begin((index + 1) % count)?;
                work(self.staying + index, moving.places.back().ok_or_else(lost)?)?;
            } else {
                work(self.staying + index, kernel)?;
                if index + 1 < count {
                    moving.begin(index + 1)?;
                }
            }
        }
        Ok(())
    }

    /// Shape of one image.
    pub fn matrix(&self) -> &[usize] {
        &self.matrix
    }

    /// Number of kernels that were to come.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether none was to come.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    fn expect_all(&self, found: usize) -> Result<()> {
        if found == self.count {
            Ok(())
        } else {
            Err(Error::value("kernels of a series", self.count.to_string(), found))
        }
    }
}

impl<R: Real> Moving<R> {
    /// Begins to copy a spectrum to the first place, unless that is under way.
    fn begin(&mut self, index: usize) -> Result<()> {
        match &self.under_way {
            Some((which, _)) if *which == index => return Ok(()),
            // An application that failed left it.
            Some(_) => self.land()?,
            None => {}
        }
        let home = self.home.get_mut(index).and_then(Option::take).ok_or_else(lost)?;
        let place = self.places.front_mut().and_then(spectrum_of).ok_or_else(lost)?;
        self.under_way = Some((index, place.upload(home)?));
        Ok(())
    }

    /// The kernel whose spectrum is under way, the last of the places from now on.
    fn arrive(&mut self) -> Result<&Toeplitz<R>> {
        self.land()?;
        self.places.rotate_left(1);
        self.places.back().ok_or_else(lost)
    }

    fn land(&mut self) -> Result<()> {
        let (index, transfer) = self.under_way.take().ok_or_else(lost)?;
        let (spectrum, home) = transfer.finish()?;
        if let (Some(at), Some(Toeplitz { engine: Engine::Gpu(engine), .. })) =
            (self.home.get_mut(index), self.places.front_mut())
        {
            *at = Some(home);
            engine.put_spectrum(spectrum);
        }
        Ok(())
    }
}

fn spectrum_of<R: Real>(kernel: &mut Toeplitz<R>) -> Option<Array<R>> {
    match &mut kernel.engine {
        Engine::Gpu(engine) => engine.take_spectrum(),
        Engine::Host(_) => None,
    }
}

/// After a copy that failed.
fn lost() -> Error {
    let detail = "lost to an earlier failure".to_owned();
    Error::Numerical { what: "spectra of a series of Toeplitz kernels".to_owned(), detail }
}
