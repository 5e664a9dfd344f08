//! FFTs and Toeplitz normal operators on a GPU, beside the vendor's FFT and the GPU's copy:
//! `cargo run --release -p rayspin-kernels --example gpu_fft [fft|toeplitz]`. Device time, median; problems
//! below 32 MiB are recorded five times in a graph, so that the host's share of a launch stays out.

use num_complex::Complex;
use rayspin_core::{Error, Real, Result};
use rayspin_device::cuda::FftPlan;
use rayspin_device::{Array, Backend, Cuda, Device};
use rayspin_kernels::fft::{Fft, Norm};
use rayspin_kernels::toeplitz::Toeplitz;

/// Bytes below which a problem is timed in a graph.
const SMALL: usize = 32 << 20;

fn main() -> Result<()> {
    let device = Device::cuda(0, Device::cpu()?)?;
    let Backend::Cuda(cuda) = device.backend() else {
        return Err(Error::value("device", "a GPU", "the CPU"));
    };
    let (major, minor) = rayspin_device::cuda::fft_version().unwrap_or_default();
    println!("{}, cuFFT {major}.{minor}", device.describe());
    copy(&device, cuda)?;
    let what = std::env::args().nth(1).unwrap_or_default();
    if what != "toeplitz" {
        for (shape, batch) in [
            (&[64usize, 64, 64][..], 16),
            (&[128, 128, 128], 1),
            (&[128, 128, 128], 16),
            (&[256, 256, 256], 1),
            (&[320, 320, 320], 1),
            (&[512, 512, 512], 1),
            (&[256, 256], 12),
            (&[512, 512], 12),
            (&[251, 251, 251], 1),
        ] {
            transform::<f32>(&device, cuda, shape, batch)?;
        }
        transform::<f64>(&device, cuda, &[256, 256, 256], 1)?;
    }
    if what != "fft" {
        for (matrix, coils) in [
            (&[256usize, 256, 256][..], 16),
            (&[240, 240, 240], 8),
            (&[128, 128, 128], 16),
            (&[512, 512], 12),
            (&[256, 256], 12),
        ] {
            toeplitz::<f32>(&device, cuda, matrix, coils)?;
        }
        toeplitz::<f64>(&device, cuda, &[128, 128, 128], 8)?;
    }
    Ok(())
}

/// Random numbers, a MiB of them repeated.
fn random<R: Real>(device: &Device, shape: &[usize]) -> Result<Array<Complex<R>>> {
    let len: usize = shape.iter().product();
    let mut state = 88_172_645_463_325_252u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        <R as Real>::from_f64((state >> 11) as f64 / (1u64 << 53) as f64 - 0.5)
    };
    let some: Vec<_> = (0..len.min(1 << 20)).map(|_| Complex::new(next(), next())).collect();
    let from = Array::from_slice(device, &[some.len()], &some)?;
    let mut array = Array::zeros(device, shape)?;
    for start in (0..len).step_by(some.len().max(1)) {
        array.copy_range(start, &from, 0, some.len().min(len - start))?;
    }
    Ok(array)
}

/// The median of the device's microseconds for `work`. `prepare` runs before each `work` and is not counted.
fn microseconds<T>(
    cuda: &Cuda,
    bytes: usize,
    state: &mut T,
    mut prepare: impl FnMut(&mut T) -> Result<()>,
    mut work: impl FnMut(&mut T) -> Result<()>,
) -> Result<f64> {
    const RECORDED: usize = 5;
    prepare(state)?;
    work(state)?;
    let graph = match bytes < SMALL {
        true => Some(cuda.record(|| (0..RECORDED).try_for_each(|_| work(state)))?),
        false => None,
    };
    let mut times = Vec::new();
    for _ in 0..17 {
        prepare(state)?;
        times.push(match &graph {
            Some(graph) => cuda.seconds(|| graph.launch())? / RECORDED as f64,
            None => cuda.seconds(|| work(state))?,
        });
    }
    // The first two warm up.
    times.drain(..2);
    times.sort_by(f64::total_cmp);
    Ok(times[times.len() / 2] * 1e6)
}

fn nothing<T>(_: &mut T) -> Result<()> {
    Ok(())
}

fn copy(device: &Device, cuda: &Cuda) -> Result<()> {
    let from = random::<f32>(device, &[1 << 28])?;
    let mut to = random::<f32>(device, &[1 << 28])?;
    let time = microseconds(cuda, usize::MAX, &mut to, nothing, |to| to.copy_from(&from))?;
    println!("copy of 2 GiB: {:.2} TB/s, read and written", 16.0 * (1u64 << 28) as f64 / time * 1e-6);
    Ok(())
}

fn vendor<R: Real>(shape: &[usize], batch: usize) -> FftPlan {
    FftPlan {
        axes: shape.to_vec(),
        stride: 1,
        distance: shape.iter().product(),
        batch,
        double: size_of::<R>() == 8,
    }
}

fn transform<R: Real>(device: &Device, cuda: &Cuda, shape: &[usize], batch: usize) -> Result<()> {
    let batched = [&[batch][..], shape].concat();
    let plan = Fft::<R>::new(device, shape, Norm::Unitary)?;
    let mut data = random::<R>(device, &batched)?;
    let bytes = data.len() * size_of::<Complex<R>>();
    let ours = microseconds(cuda, bytes, &mut data, nothing, |data| plan.forward(data))?;
    // The vendor's are not unitary: numbers grow.
    let fresh = random::<R>(device, &batched)?;
    let peer = vendor::<R>(shape, batch);
    let theirs = microseconds(
        cuda,
        bytes,
        &mut data,
        |data| data.copy_from(&fresh),
        |data| cuda.fft(&peer, -1, data.cuda_mut()),
    )?;
    println!(
        "fft {} {batch} x {shape:?}: {ours:.1} us, {:.2} TB/s an axis; cuFFT {theirs:.1} us",
        R::NAME,
        (2 * bytes * shape.len()) as f64 / ours * 1e-6
    );
    Ok(())
}

/// `S^H T S` of all coils; beside it what the plain form spends on cuFFT alone, a forward and an inverse
/// transform of the doubled grid a coil.
fn toeplitz<R: Real>(device: &Device, cuda: &Cuda, matrix: &[usize], coils: usize) -> Result<()> {
    let doubled: Vec<usize> = matrix.iter().map(|n| 2 * n).collect();
    let mut q = Array::zeros(device, &doubled)?;
    let one = Array::from_slice(device, &[1], &[Complex::new(R::one(), R::zero())])?;
    q.copy_range(doubled.iter().zip(matrix).fold(0, |index, (n, c)| index * n + c), &one, 0, 1)?;
    let plan = Toeplitz::from_kernel(device, matrix, &q)?;
    drop(q);
    let x = random::<R>(device, matrix)?;
    let maps = random::<R>(device, &[&[coils][..], matrix].concat())?;
    let mut y = random::<R>(device, matrix)?;
    let bytes = maps.len() * size_of::<Complex<R>>();
    let ours = microseconds(cuda, bytes, &mut y, nothing, |y| plan.apply_sense(&x, &maps, y))?;
    let held = plan.bytes();
    drop((plan, maps));
    // As many coils at a time as a work area of 2 GiB holds.
    let grid = doubled.iter().product::<usize>() * size_of::<Complex<R>>();
    let together = ((2 << 30) / grid).clamp(1, coils);
    let peer = vendor::<R>(&doubled, together);
    let fresh = random::<R>(device, &[&[together][..], &doubled].concat())?;
    let mut data = fresh.try_clone()?;
    let both = |data: &mut Array<Complex<R>>| {
        cuda.fft(&peer, -1, data.cuda_mut())?;
        cuda.fft(&peer, 1, data.cuda_mut())
    };
    let theirs = microseconds(cuda, bytes, &mut data, |data| data.copy_from(&fresh), both)?;
    println!(
        "toeplitz {} {matrix:?}, {coils} coils: {ours:.1} us, {:.2} GiB held; cuFFT of the doubled grids {:.1} us",
        R::NAME,
        held as f64 / (1u64 << 30) as f64,
        theirs * coils as f64 / together as f64
    );
    Ok(())
}
