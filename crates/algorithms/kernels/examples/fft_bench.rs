//! Times the FFT and the Toeplitz normal operator: one JSON line a problem and form, milliseconds over
//! repetitions.
//!
//! `cargo run --release -p rayspin-kernels --example fft_bench -- [repetitions] [threads] [form] [variant]`;
//! forms are `plain`, `padded`, `cropped`, `centred`, `variant` (every row of the FFT's table) and `toeplitz`
//! (every row of its table, or the variant that is named).

use std::time::Instant;

use num_complex::Complex32;
use rayspin_core::Result;
use rayspin_device::{Array, Device};
use rayspin_kernels::fft::cpu::{Direction, FftNd, Options, Region};
use rayspin_kernels::fft::{self, Fft, Norm};
use rayspin_kernels::toeplitz;

const PROBLEMS: &[(usize, &[usize])] = &[
    (1, &[128, 128, 128]),
    (1, &[256, 256, 256]),
    (1, &[512, 512]),
    (8, &[256, 256]),
    (1, &[192, 192, 192]),
    (4, &[320, 320]),
];

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |index: usize| arguments.get(index).and_then(|a| a.parse().ok());
    let repetitions = number(0).unwrap_or(9).max(1);
    let device = Device::cpu_with_threads(number(1).unwrap_or_else(rayspin_device::cpu::available_threads))?;
    let form = arguments.get(2).map(String::as_str);
    let chosen = |name: &str| form.is_none_or(|form| form == name);
    for &(batch, shape) in PROBLEMS {
        let len = batch * shape.iter().product::<usize>();
        let full: Vec<usize> = [&[batch][..], shape].concat();
        let values: Vec<Complex32> =
            (0..len).map(|i| Complex32::new((i % 7) as f32, (i % 5) as f32)).collect();
        let mut data = Array::from_vec(&device, &full, values)?;
        let cpu = device.cpu_side();
        let engine = FftNd::<f32>::new(shape)?;
        let centred = Fft::<f32>::new(&device, shape, Norm::Unitary)?;
        let half: Vec<usize> = shape.iter().map(|n| n / 2).collect();
        let region = Region::wrapped(shape, &half)?;

        // Scaled, so that repetition overflows nothing.
        let options = |direction, nonzero, wanted| Options {
            nonzero,
            wanted,
            scale: 1.0 / (engine.len() as f32).sqrt(),
            ..Options::new(direction)
        };
        let forward = options(Direction::Forward, None, None);
        let padded = options(Direction::Forward, Some(&region), None);
        let cropped = options(Direction::Inverse, None, Some(&region));
        for (name, options) in [("plain", forward), ("padded", padded), ("cropped", cropped)] {
            if chosen(name) {
                report(name, batch, shape, repetitions, || {
                    engine.process_with(cpu, data.cpu_mut(), &options)
                })?;
            }
        }
        if chosen("centred") {
            report("centred", batch, shape, repetitions, || centred.forward(&mut data))?;
        }
        // Variants do not scale: zeros stay finite, and take the same time.
        data.fill(Complex32::new(0.0, 0.0))?;
        for variant in fft::VARIANTS.iter().filter(|_| chosen("variant")) {
            report(variant.name, batch, shape, repetitions, || {
                (variant.implementation)(cpu, &engine, data.cpu_mut(), Direction::Forward)
            })?;
        }
    }
    for &(batch, matrix) in TOEPLITZ.iter().filter(|_| chosen("toeplitz")) {
        toeplitz_forms(&device, batch, matrix, repetitions, arguments.get(3))?;
    }
    Ok(())
}

const TOEPLITZ: &[(usize, &[usize])] = &[(1, &[128, 128, 128]), (12, &[256, 256])];

/// A point spread function's kernel: its values do not matter to the time, its symmetry does.
fn toeplitz_forms(
    device: &Device,
    batch: usize,
    matrix: &[usize],
    repetitions: usize,
    only: Option<&String>,
) -> Result<()> {
    let cpu = device.cpu_side();
    let doubled: Vec<usize> = matrix.iter().map(|n| 2 * n).collect();
    let centre = doubled.iter().fold(0, |flat, n| flat * n + n / 2);
    let mut q = vec![Complex32::new(0.0, 0.0); doubled.iter().product()];
    q[centre] = Complex32::new(1.0, 0.0);
    let x = vec![Complex32::new(1.0, -1.0); batch * matrix.iter().product::<usize>()];
    let mut y = x.clone();
    for variant in toeplitz::VARIANTS.iter().filter(|variant| only.is_none_or(|only| only == variant.name)) {
        let problem = toeplitz::Problem { matrix: matrix.to_vec(), batch };
        let apply = (variant.implementation)(cpu, &problem, &q)?;
        let name = format!("toeplitz {}", variant.name);
        report(&name, batch, matrix, repetitions, || apply(cpu, &x, &mut y))?;
    }
    Ok(())
}

fn report(
    transform: &str,
    batch: usize,
    shape: &[usize],
    repetitions: usize,
    mut run: impl FnMut() -> Result<()>,
) -> Result<()> {
    run()?;
    let mut times = Vec::with_capacity(repetitions);
    for _ in 0..repetitions {
        let start = Instant::now();
        run()?;
        times.push(start.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    println!(
        "{{\"transform\":\"{transform}\",\"batch\":{batch},\"shape\":{shape:?},\"median_ms\":{:.3},\"best_ms\":{:.3}}}",
        times[times.len() / 2],
        times[0]
    );
    Ok(())
}
