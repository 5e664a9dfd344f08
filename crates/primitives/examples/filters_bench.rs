//! Times of the filters on a CPU, a line of JSON each: what `benches/peers/filters.py` compares with OpenCV. `cpu_ms` is what the threads
//! together had of the processor for a run, on Linux: on a machine that others use, too, it says more than the clock.
//!
//! `filters_bench [threads]`

use rayspin_core::Result;
use rayspin_device::{Array, Device};
use rayspin_primitives::{bicubic, box_filter, convolution, sobel};
use rayspin_tune::input::bits;
use rayspin_tune::{Protocol, measure, uniform};

/// Milliseconds of processor time that this process's threads had; 0 where the system does not tell.
fn processor_ms() -> f64 {
    let of = |thread: std::io::Result<std::fs::DirEntry>| -> Option<f64> {
        let text = std::fs::read_to_string(thread.ok()?.path().join("schedstat")).ok()?;
        text.split(' ').next()?.parse::<f64>().ok()
    };
    let threads = std::fs::read_dir("/proc/self/task").into_iter().flatten();
    threads.filter_map(of).sum::<f64>() * 1e-6
}

fn main() -> Result<()> {
    let threads = std::env::args().nth(1).and_then(|t| t.parse().ok()).unwrap_or(1);
    let device = Device::cpu_with_threads(threads)?;
    let n = 4096;
    let bytes = (0..n * n).map(|at| bits(1, at as u64) as u8).collect();
    let bytes = Array::<u8>::from_vec(&device, &[n, n], bytes)?;
    let floats = Array::<f32>::from_vec(&device, &[n, n], uniform(2, n * n))?;
    let (mut bytes_out, mut floats_out) =
        (Array::<u8>::zeros(&device, &[n, n])?, Array::<f32>::zeros(&device, &[n, n])?);
    // Pages that nobody wrote to come into being when they are.
    bytes_out.fill(1)?;
    floats_out.fill(1.0)?;
    let show = |name: &str, run: &mut dyn FnMut() -> Result<()>| -> Result<()> {
        let (mut runs, before) = (0, processor_ms());
        let timing = measure(&device, &Protocol::default(), |_| {
            runs += 1;
            run()
        })?;
        let each = (processor_ms() - before) / f64::from(runs);
        println!("{{\"name\": \"{name}\", \"ms\": {:.4}, \"cpu_ms\": {each:.4}}}", 1e3 * timing.median);
        Ok(())
    };
    show("sobel u8", &mut || sobel::sobel(&bytes, 1.0, &mut bytes_out))?;
    for radius in [1, 8, 64] {
        show(&format!("box u8 radius {radius}"), &mut || {
            box_filter::box_mean(&bytes, radius, &mut bytes_out)
        })?;
        show(&format!("box f32 radius {radius}"), &mut || {
            box_filter::box_mean(&floats, radius, &mut floats_out)
        })?;
    }
    for sigma in [0.5, 2.0] {
        show(&format!("gaussian f32 sigma {sigma}"), &mut || {
            convolution::gaussian(&floats, sigma, &mut floats_out)
        })?;
    }
    let half = n / 2;
    let small = (0..half * half).map(|at| bits(3, at as u64) as u8).collect();
    let small = Array::<u8>::from_vec(&device, &[half, half], small)?;
    let small_floats = Array::<f32>::from_vec(&device, &[half, half], uniform(4, half * half))?;
    let kernel = bicubic::Kernel::Keys(-0.75);
    show("bicubic u8 2048 to 4096", &mut || bicubic::resize(&small, kernel, &mut bytes_out))?;
    show("bicubic f32 2048 to 4096", &mut || bicubic::resize(&small_floats, kernel, &mut floats_out))?;
    let mut fewer = Array::<u8>::zeros(&device, &[2867, 2867])?;
    fewer.fill(1)?;
    show("bicubic u8 4096 to 2867", &mut || bicubic::resize(&bytes, kernel, &mut fewer))?;
    let mut fewer = Array::<f32>::zeros(&device, &[2867, 2867])?;
    fewer.fill(1.0)?;
    show("bicubic f32 4096 to 2867", &mut || bicubic::resize(&floats, kernel, &mut fewer))
}
