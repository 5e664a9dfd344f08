//! Histogram: h\[b\] = number of samples of value b, 0 ≤ b < bins. Values of `bins` and more are not counted.

mod cpu;
mod cuda;
pub mod input;
mod ladder;
pub mod reference;
mod sample;
mod variants;

use rayspin_core::{Error, Result};
use rayspin_device::cpu::zeroed;
use rayspin_device::{Array, Backend, Device};
use rayspin_tune::tuned;

pub use ladder::{Data, Form, Histogram, Problem};
use sample::Samples;
pub use sample::{Sample, Width};

/// h\[b\] = number of samples of value b: as many bins as `counts` has elements, samples of larger values are
/// not counted.
///
/// Errors: no bins; more than 2³² − 1 samples (a count would not hold them); arrays on different devices;
/// errors of the device; too little memory on it.
pub fn counts<T: Sample>(samples: &Array<T>, counts: &mut Array<u32>) -> Result<()> {
    check(samples, counts.len(), counts.device())?;
    let bins = counts.len();
    match samples.device().backend() {
        Backend::Cpu(cpu) => {
            let tables = on_cpu(cpu, samples, bins, Form::Counts)?;
            counts.cpu_mut().copy_from_slice(&tables[..bins]);
            Ok(())
        }
        Backend::Cuda(_) => {
            let mut bytes = Array::zeros(samples.device(), &[1])?;
            on_gpu(samples, bins, Form::Counts, &mut bytes, counts)
        }
    }
}

/// min(h\[b\], 255) of [`counts`].
///
/// Errors: as of [`counts`].
pub fn saturating<T: Sample>(samples: &Array<T>, counts: &mut Array<u8>) -> Result<()> {
    check(samples, counts.len(), counts.device())?;
    let bins = counts.len();
    match samples.device().backend() {
        Backend::Cpu(cpu) => {
            saturate(&on_cpu(cpu, samples, bins, Form::Saturating)?, counts.cpu_mut());
            Ok(())
        }
        Backend::Cuda(_) => {
            let mut words = Array::zeros(samples.device(), &[1])?;
            on_gpu(samples, bins, Form::Saturating, counts, &mut words)
        }
    }
}

fn check(samples: &dyn Samples, bins: usize, device: &Device) -> Result<()> {
    if bins == 0 || bins >= u32::MAX as usize {
        return Err(Error::value("bins of a histogram", "1 to 4294967294", bins));
    }
    if samples.count() > u32::MAX as usize {
        return Err(Error::value("samples of a histogram", "at most 4294967295", samples.count()));
    }
    if !device.same_as(samples.device()) {
        return Err(Error::value("histogram", "samples and counts on one device", device.describe()));
    }
    Ok(())
}

/// The problem for unknown samples. It takes the parameters tuned for the walk, whose neighbours are alike as
/// in images.
fn problem(samples: &dyn Samples, bins: usize, form: Form) -> Problem {
    Problem { samples: samples.count(), width: samples.width(), bins, form, input: input::Input::Walk }
}

fn on_cpu(cpu: &rayspin_device::Cpu, samples: &dyn Samples, bins: usize, form: Form) -> Result<Vec<u32>> {
    let problem = problem(samples, bins, form);
    let each = tuned(&Histogram, &problem, &variants::cpu_threads(), samples.device()).get("tables")?;
    let mut tables = zeroed("tables of a histogram", cpu::words(cpu.threads(), bins))?;
    samples.threads(cpu, each as usize, &mut tables, bins);
    Ok(tables)
}

fn saturate(wide: &[u32], counts: &mut [u8]) {
    for (count, &wide) in counts.iter_mut().zip(wide) {
        *count = wide.min(255) as u8;
    }
}

fn on_gpu(
    samples: &dyn Samples,
    bins: usize,
    form: Form,
    bytes: &mut Array<u8>,
    words: &mut Array<u32>,
) -> Result<()> {
    let device = samples.device();
    let cuda = rayspin_tune::gpu(device)?;
    let mut wide = Array::zeros(device, &[cuda::wide_len(bins)])?;
    let problem = problem(samples, bins, form);
    let tuned = |row| cuda::OnePass::of(&tuned(&Histogram, &problem, &row, device));
    let mut pass = tuned(variants::gpu_copies())?;
    // A multiprocessor may hold less than the one that the space was made for.
    let copies = variants::copies(bins).into_iter().rev().map(|copies| copies as u32);
    let mut fits = copies.filter(|&copies| copies <= pass.copies && cuda::fits(cuda, copies, bins));
    let name = match fits.next() {
        Some(copies) => {
            pass.copies = copies;
            "each"
        }
        None => {
            pass = tuned(variants::gpu_device_memory())?;
            "everywhere"
        }
    };
    let mut arrays = cuda::Arrays { samples, bins, wide: &mut wide, bytes, words };
    cuda::one_pass(cuda, name, pass, form.limit(), &mut arrays)
}
