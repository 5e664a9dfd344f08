//! Times the NUFFT on a GPU by its own clock, and measures errors against the direct f64 sums; one line a
//! problem.
//!
//! ```text
//! cargo run --release -p rayspin-kernels --example nufft_gpu_bench -- [NAME...] [--upsampling 2] [--rounds 15] [--check 20]
//! ```
//!
//! `NAME`: problems whose names begin so; all without one. Milliseconds are of transforms of the whole batch
//! with their Fourier
//! transforms, arrays on the GPU: medians over rounds of 2 ms, the calls of a round in one graph, then one
//! after another ("stream"). "plan" is the wall clock, upload of the trajectory included.

use std::time::Instant;

use ndarray::Array2;
use num_complex::Complex;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayspin_core::{C64, Error, Real, Result, Trajectory};
use rayspin_device::cuda::FftPlan;
use rayspin_device::{Array, Backend, Device};
use rayspin_kernels::nufft::{Nufft, Options, reference};
use rayspin_lab::{LaunchMode, Protocol, measure};

#[derive(Clone, Copy)]
enum Set {
    Uniform(usize),
    /// Spokes through the centre, samples of each; golden angles in 2-D, golden means in 3-D.
    Radial(usize, usize),
}

struct Problem {
    name: &'static str,
    matrix: &'static [usize],
    set: Set,
    coils: usize,
    tolerance: f64,
    double: bool,
}

const fn problem(
    name: &'static str,
    matrix: &'static [usize],
    set: Set,
    coils: usize,
    tolerance: f64,
) -> Problem {
    Problem { name, matrix, set, coils, tolerance, double: false }
}

const CUBE: &[usize] = &[128, 128, 128];
const KOOSH: Set = Set::Radial(20_000, 256);

const PROBLEMS: [Problem; 19] = [
    problem("a128-3", CUBE, Set::Uniform(10_000_000), 1, 1e-3),
    problem("a128-5", CUBE, Set::Uniform(10_000_000), 1, 1e-5),
    problem("a64-3", &[64, 64, 64], Set::Uniform(1_000_000), 1, 1e-3),
    problem("a64-5", &[64, 64, 64], Set::Uniform(1_000_000), 1, 1e-5),
    problem("a256-3", &[256, 256, 256], Set::Uniform(20_000_000), 1, 1e-3),
    problem("a256-5", &[256, 256, 256], Set::Uniform(20_000_000), 1, 1e-5),
    problem("b16-3", CUBE, Set::Uniform(1_000_000), 16, 1e-3),
    problem("b16-5", CUBE, Set::Uniform(1_000_000), 16, 1e-5),
    problem("c1-3", CUBE, KOOSH, 1, 1e-3),
    problem("c16-3", CUBE, KOOSH, 16, 1e-3),
    problem("d12u-3", &[256, 256], Set::Uniform(102_912), 12, 1e-3),
    problem("d12r-3", &[256, 256], Set::Radial(402, 512), 12, 1e-3),
    problem("e512-4", &[512, 512], Set::Uniform(5_000_000), 1, 1e-4),
    problem("e256-4", &[256, 256], Set::Uniform(102_912), 1, 1e-4),
    problem("f512-3", &[512, 512], Set::Uniform(1_000_000), 1, 1e-3),
    Problem { double: true, ..problem("g128-9", CUBE, Set::Uniform(1_000_000), 1, 1e-9) },
    Problem { double: true, ..problem("g512-9", &[512, 512], Set::Uniform(1_000_000), 1, 1e-9) },
    Problem { double: true, ..problem("g128-12", CUBE, Set::Uniform(1_000_000), 1, 1e-12) },
    problem("h1-3", CUBE, Set::Uniform(1_000_000), 1, 1e-3),
];

fn trajectory(set: Set, matrix: &[usize], rng: &mut ChaCha8Rng) -> Result<Trajectory> {
    let dims = matrix.len();
    let points = match set {
        Set::Uniform(points) => points,
        Set::Radial(spokes, readout) => spokes * readout,
    };
    let golden = std::f64::consts::PI * (5f64.sqrt() - 1.0);
    Trajectory::from_cycles_per_fov(Array2::from_shape_fn((points, dims), |(i, d)| {
        let n = matrix[dims - 1 - d] as f64;
        match set {
            Set::Uniform(_) => n * (rng.random::<f64>() - 0.5),
            Set::Radial(spokes, readout) => {
                let (spoke, radius) = (i / readout, (i % readout) as f64 / readout as f64 - 0.5);
                let angle = spoke as f64 * golden;
                let up = if dims < 3 { 0.0 } else { (spoke as f64 + 0.5) / spokes as f64 };
                let flat = (1.0 - up * up).sqrt();
                n * radius * [angle.cos() * flat, angle.sin() * flat, up][d]
            }
        }
    }))
}

fn random<R: Real>(len: usize, rng: &mut ChaCha8Rng) -> Vec<Complex<R>> {
    let mut part = || <R as Real>::from_f64(rng.random::<f64>() - 0.5);
    (0..len).map(|_| Complex::new(part(), part())).collect()
}

fn widen<R: Real>(value: &Complex<R>) -> C64 {
    C64::new(value.re.to_f64(), value.im.to_f64())
}

fn distance(computed: impl Iterator<Item = C64>, expected: &[C64]) -> f64 {
    let norm: f64 = expected.iter().map(|e| e.norm_sqr()).sum();
    let difference: f64 = computed.zip(expected).map(|(f, e)| (f - e).norm_sqr()).sum();
    (difference / norm).sqrt()
}

/// Median milliseconds of a call, by the clock of the device.
fn time(
    device: &Device,
    rounds: usize,
    launch_mode: LaunchMode,
    mut call: impl FnMut() -> Result<()>,
) -> Result<f64> {
    let protocol = Protocol { rounds, launch_mode, budget: 10.0, ..Protocol::default() };
    Ok(measure(device, &protocol, |_| call())?.median * 1e3)
}

fn run<R: Real>(
    device: &Device,
    problem: &Problem,
    upsampling: Option<f64>,
    rounds: usize,
    check: usize,
) -> Result<()> {
    let Backend::Cuda(cuda) = device.backend() else { return Ok(()) };
    let matrix = problem.matrix;
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let trajectory = trajectory(problem.set, matrix, &mut rng)?;
    let options = Options { tolerance: problem.tolerance, upsampling };
    let plan = match Nufft::<R>::new(device, &trajectory, matrix, &options) {
        Ok(plan) => plan,
        Err(error) => {
            println!("{:8} σ {upsampling:?}: {error}", problem.name);
            return Ok(());
        }
    };
    let mut plan_ms = f64::INFINITY;
    for _ in 0..2 {
        let start = Instant::now();
        drop(Nufft::<R>::new(device, &trajectory, matrix, &options)?);
        cuda.synchronize()?;
        plan_ms = plan_ms.min(start.elapsed().as_secs_f64() * 1e3);
    }
    let (coils, points, voxels) = (problem.coils, trajectory.samples(), matrix.iter().product::<usize>());
    let (image, data) = (random::<R>(coils * voxels, &mut rng), random::<R>(coils * points, &mut rng));
    let image_gpu = Array::from_slice(device, &[&[coils], matrix].concat(), &image)?;
    let data_gpu = Array::from_slice(device, &[coils, points], &data)?;
    let nan = Complex::new(R::nan(), R::nan());
    let mut found_data = Array::zeros(device, data_gpu.shape())?;
    let mut found_image = Array::zeros(device, image_gpu.shape())?;
    found_data.fill(nan)?;
    found_image.fill(nan)?;
    plan.forward(&image_gpu, &mut found_data)?;
    plan.adjoint(&data_gpu, &mut found_image)?;
    let first = (found_data.to_vec()?, found_image.to_vec()?);
    let asked = [LaunchMode::Graph, LaunchMode::Stream];
    let mut type1 =
        |launch_mode| time(device, rounds, launch_mode, || plan.adjoint(&data_gpu, &mut found_image));
    let mut type2 =
        |launch_mode| time(device, rounds, launch_mode, || plan.forward(&image_gpu, &mut found_data));
    let [graphs, streams] =
        asked.map(|launch_mode| Ok::<_, Error>((type1(launch_mode)?, type2(launch_mode)?)));
    let ((graph1, graph2), (stream1, stream2)) = (graphs?, streams?);
    let again = first == (found_data.to_vec()?, found_image.to_vec()?);

    let fine = plan.fine_shape().to_vec();
    let cells: usize = fine.iter().product();
    let mut grids = Array::<Complex<R>>::zeros(device, &[coils, cells])?;
    let double = size_of::<R>() == 8;
    let fft = FftPlan { axes: fine.clone(), stride: 1, distance: cells, batch: coils, double };
    let fft_ms = time(device, rounds, LaunchMode::Graph, || cuda.fft(&fft, 1, grids.cuda_mut()))?;

    let mut errors = [0.0; 2];
    if check > 0 {
        // The last item.
        let (found_data, found_image) = (&first.0[(coils - 1) * points..], &first.1[(coils - 1) * voxels..]);
        let which: Vec<usize> = (0..check).map(|_| rng.random_range(0..points)).collect();
        let wide: Vec<C64> = image[(coils - 1) * voxels..].iter().map(widen).collect();
        let expected = reference::forward(&trajectory, matrix, &wide, which.iter().copied());
        errors[1] = distance(which.iter().map(|&j| widen(&found_data[j])), &expected);
        let which: Vec<usize> = (0..check).map(|_| rng.random_range(0..voxels)).collect();
        let wide: Vec<C64> = data[(coils - 1) * points..].iter().map(widen).collect();
        let expected = reference::adjoint_at(&trajectory, matrix, &wide, which.iter().copied());
        errors[0] = distance(which.iter().map(|&x| widen(&found_image[x])), &expected);
    }
    println!(
        "{:8} {} σ {:.2} W {:2} fine {:?}: plan {plan_ms:.1} type1 {graph1:.3} type2 {graph2:.3} fft {fft_ms:.3} ms, stream \
         {stream1:.3} {stream2:.3} ms, errors {:.1e} {:.1e}, same bits {again}, {} MiB",
        problem.name,
        R::NAME,
        plan.upsampling(),
        plan.width(),
        fine,
        errors[0],
        errors[1],
        plan.bytes(coils) >> 20,
    );
    Ok(())
}

fn main() -> Result<()> {
    let mut names = Vec::new();
    let (mut upsamplings, mut rounds, mut check) = (Vec::new(), 15, 20);
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut number = || words.next().and_then(|w| w.parse::<f64>().ok()).unwrap_or(0.0);
        match word.as_str() {
            "--upsampling" => upsamplings.push(Some(number())),
            "--rounds" => rounds = (number() as usize).max(1),
            "--check" => check = number() as usize,
            _ => names.push(word),
        }
    }
    if upsamplings.is_empty() {
        upsamplings.push(None);
    }
    let device = Device::cuda(0, Device::cpu()?)?;
    println!("{}", device.describe());
    for problem in &PROBLEMS {
        if !names.is_empty() && !names.iter().any(|name| problem.name.starts_with(name.as_str())) {
            continue;
        }
        for &upsampling in &upsamplings {
            if problem.double {
                run::<f64>(&device, problem, upsampling, rounds, check)?;
            } else {
                run::<f32>(&device, problem, upsampling, rounds, check)?;
            }
        }
    }
    Ok(())
}
