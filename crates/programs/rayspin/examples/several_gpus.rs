//! Times of one image on several GPUs: an iteration of CG-SENSE along a trajectory, and sums of vectors.
//!
//! ```text
//! cargo run --release -p rayspin-mri --example several_gpus -- cuda:0 cuda:0,1
//! ```
//!
//! Each argument is a list of GPUs, of which one may be there twice. `SIZE=256`, `COILS=32`, `SPOKES=20000`
//! and `ITERATIONS=20` are the defaults.

use std::sync::Arc;
use std::time::Instant;

use ndarray::{Array2, ArrayD, IxDyn};
use rayspin_core::{C32, Error, Geometry, Monitor, Result, Trajectory};
use rayspin_device::{Array, Device};
use rayspin_kernels::vector::SumAcross;
use rayspin_mri::methods::CgSense;
use rayspin_mri::recon::{ReconOptions, reconstruct_frame};
use rayspin_mri::scan::{Frame, Label, Samples};

fn number(name: &str, default: usize) -> usize {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// `cpu` is a processor of two threads, for trying the program out.
fn devices(list: &str) -> Result<Vec<Device>> {
    let host = Device::cpu()?;
    if list.starts_with("cpu") {
        return list.split(',').map(|_| Device::cpu_with_threads(2)).collect();
    }
    let numbers = list.strip_prefix("cuda:").unwrap_or(list).split(',');
    let open = |text: &str| match text.parse() {
        Ok(ordinal) => Device::cuda(ordinal, host.clone()),
        Err(_) => Err(Error::value("list of GPUs", "cuda:N,M", list)),
    };
    numbers.map(open).collect()
}

/// Spokes through the centre in all directions, with samples of no meaning: their values change no time.
fn frame(size: usize, coils: usize, spokes: usize) -> Result<Frame> {
    let samples = 2 * size;
    let golden = std::f64::consts::PI * (3.0 - 5f64.sqrt());
    let points = Array2::from_shape_fn((spokes * samples, 3), |(row, axis)| {
        let (spoke, sample) = (row / samples, row % samples);
        let z = 1.0 - (2 * spoke + 1) as f64 / spokes as f64;
        let (sin, cos) = (golden * spoke as f64).sin_cos();
        let flat = (1.0 - z * z).sqrt();
        [flat * cos, flat * sin, z][axis] * (sample as f64 / samples as f64 - 0.5) * size as f64 * 0.999
    });
    let trajectory = Trajectory::from_cycles_per_fov(points)?;
    let data = Array2::from_shape_fn((coils, spokes * samples), |(coil, i)| {
        C32::new(((coil + i) % 13) as f32 - 6.0, ((coil + 3 * i) % 7) as f32 - 3.0)
    });
    let samples = Samples::NonCartesian { trajectory, data };
    let (matrix, geometry) = (vec![size; 3], Geometry::default());
    Ok(Frame {
        label: Label::default(),
        matrix,
        geometry,
        samples,
        times: None,
        calibration: None,
        interpolated: false,
    })
}

fn maps(size: usize, coils: usize) -> ArrayD<C32> {
    ArrayD::from_shape_fn(IxDyn(&[coils, size, size, size]), |i| {
        let axis = [i[3], i[2], i[1]][i[0] % 3] as f32 / size as f32;
        C32::new(1.0 / (1.0 + axis + i[0] as f32), axis - 0.5)
    })
}

fn main() -> Result<()> {
    let (size, coils, spokes) = (number("SIZE", 256), number("COILS", 32), number("SPOKES", 20_000));
    let iterations = number("ITERATIONS", 20);
    let lists: Vec<String> = std::env::args().skip(1).collect();
    let (frame, maps) = (frame(size, coils, spokes)?, Arc::new(maps(size, coils)));
    println!("{size}³ voxels, {coils} coils, {} samples a coil", spokes * 2 * size);
    for list in &lists {
        let devices = devices(list)?;
        let names: Vec<String> = devices.iter().map(Device::name).collect();
        println!("{list}: {}", names.join(", "));
        let mut seconds = Vec::new();
        for count in [1, iterations, 1, iterations] {
            let method = CgSense { iterations: count, tolerance: 0.0, ..CgSense::default() };
            let mut options = ReconOptions { keep_maps: false, ..ReconOptions::of(method) };
            options.maps = Some(maps.clone());
            options.run.beside = devices[1..].to_vec();
            options.run.coils_beside = true;
            let start = Instant::now();
            reconstruct_frame(&devices[0], frame.clone(), Vec::new(), &options, &Monitor::silent())?;
            seconds.push(start.elapsed().as_secs_f64());
        }
        // The second round has everything compiled.
        let each = (seconds[3] - seconds[2]) / (iterations - 1).max(1) as f64;
        println!(
            "  image of {iterations} iterations: {:.3} s, an iteration: {:.3} ms",
            seconds[3],
            each * 1e3
        );
        if devices.len() > 1 {
            sum(&devices, size.pow(3))?;
        }
    }
    Ok(())
}

/// Sums of vectors of as many complex numbers.
fn sum(devices: &[Device], len: usize) -> Result<()> {
    let vectors = devices.iter().map(|device| Array::<C32>::zeros(device, &[len]));
    let mut vectors = vectors.collect::<Result<Vec<_>>>()?;
    let mut across = SumAcross::new(devices, len)?;
    let mut times = Vec::new();
    for _ in 0..20 {
        devices.iter().try_for_each(Device::synchronize)?;
        let start = Instant::now();
        across.to_all(&mut vectors.iter_mut().collect::<Vec<_>>())?;
        devices.iter().try_for_each(Device::synchronize)?;
        times.push(start.elapsed().as_secs_f64());
    }
    times.sort_by(f64::total_cmp);
    let (median, bytes) = (times[times.len() / 2], 8.0 * len as f64);
    let moved = 2.0 * bytes * (devices.len() - 1) as f64 / devices.len() as f64;
    println!(
        "  sum of vectors of {:.0} MB: {:.3} ms, {:.1} GB/s each way",
        bytes / 1e6,
        median * 1e3,
        moved / median / 1e9
    );
    Ok(())
}
