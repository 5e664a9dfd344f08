//! Microseconds of one type 2 NUFFT from arrays that are the device's own, for `benches/peers/arrays.py`,
//! which times the same calls from
//! Python: `cargo run --release -p rayspin-kernels --example nufft_calls [cpu|cuda]`.

use std::time::Instant;

use ndarray::Array2;
use rayspin_core::{C32, Result, Trajectory};
use rayspin_device::{Array, Backend, Device};
use rayspin_kernels::nufft::{Nufft, Options};

const ROUNDS: usize = 7;

fn main() -> Result<()> {
    let cpu = Device::cpu()?;
    let device = if std::env::args().nth(1).as_deref() == Some("cuda") { Device::cuda(0, cpu)? } else { cpu };
    for (name, side, count, batch, times) in [("small", 16, 4, 1, 500), ("12 x 256^2", 256, 200_000, 12, 20)]
    {
        // Fractions of multiples of irrational numbers fill the plane evenly, as random points do.
        let points = Array2::from_shape_fn((count, 2), |(i, dim)| {
            ((i as f64 + 0.5) * [2f64.sqrt(), 3f64.sqrt()][dim]).fract() * side as f64 - side as f64 / 2.0
        });
        let trajectory = Trajectory::from_cycles_per_fov(points)?;
        let plan = Nufft::<f32>::new(&device, &trajectory, &[side, side], &Options::tolerance(1e-4))?;
        let mut image = Array::zeros(&device, &[batch, side, side])?;
        image.fill(C32::ONE)?;
        let mut samples = Array::zeros(&device, &[batch, count])?;
        let wait = || match device.backend() {
            Backend::Cuda(cuda) => cuda.synchronize(),
            Backend::Cpu(_) => Ok(()),
        };
        let mut rounds = Vec::new();
        for _ in 0..ROUNDS {
            plan.forward(&image, &mut samples)?;
            wait()?;
            let start = Instant::now();
            for _ in 0..times {
                plan.forward(&image, &mut samples)?;
            }
            let queued = start.elapsed().as_secs_f64();
            wait()?;
            rounds.push([queued, start.elapsed().as_secs_f64()].map(|seconds| seconds / times as f64 * 1e6));
        }
        let median = |which: usize| {
            let mut times: Vec<f64> = rounds.iter().map(|round| round[which]).collect();
            times.sort_by(f64::total_cmp);
            times[ROUNDS / 2]
        };
        println!(
            "{name:11} Rust, its own arrays       queued {:9.1} us, done {:9.1} us",
            median(0),
            median(1)
        );
    }
    Ok(())
}
