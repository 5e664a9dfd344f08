//! Times the FFT: one JSON line a problem and transform, milliseconds over repetitions.
//!
//! `cargo run --release -p rayspin-kernels --example fft_bench -- [repetitions] [threads]`

use std::time::Instant;

use num_complex::Complex32;
use rayspin_core::Result;
use rayspin_device::{Array, Backend, Device};
use rayspin_kernels::fft::cpu::{Direction, FftNd, Options, Region};
use rayspin_kernels::fft::{Fft, Norm};

const PROBLEMS: &[(usize, &[usize])] = &[
    (1, &[128, 128, 128]),
    (1, &[256, 256, 256]),
    (1, &[512, 512]),
    (8, &[256, 256]),
    (1, &[192, 192, 192]),
    (4, &[320, 320]),
];

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default: usize| arguments.next().and_then(|a| a.parse().ok()).unwrap_or(default);
    let repetitions = number(9).max(1);
    let device = Device::cpu_with_threads(number(rayspin_device::cpu::available_threads()))?;
    for &(batch, shape) in PROBLEMS {
        let len = batch * shape.iter().product::<usize>();
        let full: Vec<usize> = [&[batch][..], shape].concat();
        let values: Vec<Complex32> = (0..len)
            .map(|i| Complex32::new((i % 7) as f32, (i % 5) as f32))
            .collect();
        let mut data = Array::from_vec(&device, &full, values)?;
        let Backend::Cpu(cpu) = device.backend();
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
            report(name, batch, shape, repetitions, || {
                engine.process_with(cpu, data.cpu_mut(), &options)
            })?;
        }
        report("centred", batch, shape, repetitions, || {
            centred.forward(&mut data)
        })?;
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
