//! Times the NUFFT and measures its error against the direct f64 sums; prints one JSON object.
//!
//! ```text
//! cargo run --release -p rayspin-kernels --example nufft_bench -- \
//!     --matrix 128,128,128 --points 1000000 --precision f32 --tolerance 1e-3 [--upsampling 2] [--set uniform|radial]
//!     [--batch 1] [--plans 5] [--runs 5] [--threads 2] [--check 50] [--variants]
//! ```

mod common;

use std::time::Instant;

use ndarray::Array2;
use num_complex::Complex;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayspin_core::{C64, Real, Result, Trajectory};
use rayspin_device::{Array, Device};
use rayspin_kernels::nufft::{Nufft, Options, interp_variants, reference, spread_variants};

use common::Arguments;

fn trajectory(set: &str, points: usize, matrix: &[usize], rng: &mut ChaCha8Rng) -> Result<Trajectory> {
    let dims = matrix.len();
    let readout = 2 * matrix[dims - 1];
    let golden = std::f64::consts::PI * (5f64.sqrt() - 1.0);
    let spokes = points.div_ceil(readout);
    Trajectory::from_cycles_per_fov(Array2::from_shape_fn((points, dims), |(i, d)| {
        let n = matrix[dims - 1 - d] as f64;
        if set == "radial" {
            let (spoke, radius) = (i / readout, (i % readout) as f64 / readout as f64 - 0.5);
            let angle = spoke as f64 * golden;
            let up = if dims < 3 { 0.0 } else { (spoke as f64 + 0.5) / spokes as f64 };
            let flat = (1.0 - up * up).sqrt();
            n * radius * [angle.cos() * flat, angle.sin() * flat, up][d]
        } else {
            n * (rng.random::<f64>() - 0.5)
        }
    }))
}

fn random<R: Real>(len: usize, rng: &mut ChaCha8Rng) -> Vec<Complex<R>> {
    let mut part = || <R as Real>::from_f64(rng.random::<f64>() - 0.5);
    (0..len).map(|_| Complex::new(part(), part())).collect()
}

fn widen<R: Real>(values: &[Complex<R>]) -> Vec<C64> {
    values.iter().map(|v| C64::new(v.re.to_f64(), v.im.to_f64())).collect()
}

fn distance(computed: impl Iterator<Item = C64>, expected: &[C64]) -> f64 {
    let norm: f64 = expected.iter().map(|e| e.norm_sqr()).sum();
    let difference: f64 = computed.zip(expected).map(|(f, e)| (f - e).norm_sqr()).sum();
    (difference / norm).sqrt()
}

/// Least and median milliseconds of `runs` calls, after one that warms up.
fn time(runs: usize, mut call: impl FnMut() -> Result<()>) -> Result<(f64, f64)> {
    call()?;
    let mut times = Vec::new();
    for _ in 0..runs {
        let start = Instant::now();
        call()?;
        times.push(start.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    Ok((times[0], times[times.len() / 2]))
}

fn run<R: Real>(arguments: &Arguments) -> Result<()> {
    let matrix: Vec<usize> =
        arguments.text("matrix", "512,512").split(',').filter_map(|n| n.parse().ok()).collect();
    let points = arguments.number("points", 1e6) as usize;
    let batch = arguments.number("batch", 1.0) as usize;
    let runs = arguments.number("runs", 5.0) as usize;
    let plans = arguments.number("plans", 5.0) as usize;
    let check = arguments.number("check", 50.0) as usize;
    let threads = arguments.number("threads", rayspin_device::cpu::available_threads() as f64) as usize;
    let options =
        Options { tolerance: arguments.number("tolerance", 1e-3), upsampling: arguments.given("upsampling") };
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let device = Device::cpu_with_threads(threads)?;
    let trajectory = trajectory(&arguments.text("set", "uniform"), points, &matrix, &mut rng)?;
    let start = Instant::now();
    let mut plan = Nufft::<R>::new(&device, &trajectory, &matrix, &options)?;
    let mut plan_ms = start.elapsed().as_secs_f64() * 1e3;
    for _ in 1..plans {
        let start = Instant::now();
        plan = Nufft::<R>::new(&device, &trajectory, &matrix, &options)?;
        plan_ms = plan_ms.min(start.elapsed().as_secs_f64() * 1e3);
    }
    let mut points_ms = f64::INFINITY;
    for _ in 0..plans {
        let start = Instant::now();
        plan.set_points(&trajectory)?;
        points_ms = points_ms.min(start.elapsed().as_secs_f64() * 1e3);
    }
    let voxels: usize = matrix.iter().product();
    let image =
        Array::from_vec(&device, &[&[batch], &matrix[..]].concat(), random::<R>(batch * voxels, &mut rng))?;
    let data = Array::from_vec(&device, &[batch, points], random::<R>(batch * points, &mut rng))?;
    let mut found_data = Array::zeros(&device, data.shape())?;
    let mut found_image = Array::zeros(&device, image.shape())?;
    let type2 = time(runs, || plan.forward(&image, &mut found_data))?;
    let type1 = time(runs, || plan.adjoint(&data, &mut found_image))?;

    let mut errors = [0.0; 2];
    if check > 0 {
        let which: Vec<usize> = (0..check).map(|_| rng.random_range(0..points)).collect();
        let image64 = widen(&image.cpu()[..voxels]);
        let expected = reference::forward(&trajectory, &matrix, &image64, which.iter().copied());
        let computed = which.iter().map(|&j| widen(&found_data.cpu()[j..=j])[0]);
        errors[1] = distance(computed, &expected);
        let which: Vec<usize> = (0..check).map(|_| rng.random_range(0..voxels)).collect();
        let data64 = widen(&data.cpu()[..points]);
        let expected = reference::adjoint_at(&trajectory, &matrix, &data64, which.iter().copied());
        let computed = which.iter().map(|&x| widen(&found_image.cpu()[x..=x])[0]);
        errors[0] = distance(computed, &expected);
    }
    let mut stages = String::new();
    if arguments.has("variants") {
        let item = Array::from_vec(&device, &[points], data.cpu()[..points].to_vec())?;
        let mut grid = Array::zeros(&device, plan.fine_shape())?;
        let mut values = Array::zeros(&device, &[points])?;
        for variant in spread_variants::<R>().into_iter().filter(|v| v.backend == device.kind()) {
            let (least, _) = time(runs, || (variant.implementation)(&plan, &item, &mut grid))?;
            stages += &format!(", \"spread_{}_ms\": {least:.3}", variant.name);
        }
        for variant in interp_variants::<R>().into_iter().filter(|v| v.backend == device.kind()) {
            let (least, _) = time(runs, || (variant.implementation)(&plan, &grid, &mut values))?;
            stages += &format!(", \"interp_{}_ms\": {least:.3}", variant.name);
        }
    }
    println!(
        "{{\"matrix\": {matrix:?}, \"points\": {points}, \"precision\": \"{}\", \"tolerance\": {:e}, \"batch\": {batch}, \
         \"threads\": {threads}, \"upsampling\": {}, \"width\": {}, \"fine\": {:?}, \"bytes\": {}, \
         \"plan_ms\": {plan_ms:.3}, \"points_ms\": {points_ms:.3}, \"type1_ms\": {:.3}, \"type1_median_ms\": {:.3}, \"type2_ms\": {:.3}, \
         \"type2_median_ms\": {:.3}, \"type1_error\": {:.3e}, \"type2_error\": {:.3e}{stages}}}",
        R::NAME,
        options.tolerance,
        plan.upsampling(),
        plan.width(),
        plan.fine_shape(),
        plan.bytes(batch),
        type1.0,
        type1.1,
        type2.0,
        type2.1,
        errors[0],
        errors[1],
    );
    Ok(())
}

fn main() -> Result<()> {
    let arguments = Arguments::read();
    if arguments.text("precision", "f32") == "f64" { run::<f64>(&arguments) } else { run::<f32>(&arguments) }
}
