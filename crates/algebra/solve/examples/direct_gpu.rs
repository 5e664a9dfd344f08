//! The reconstruction of the published table, (FᴴF + λ) ρ = Fᴴd of a three-dimensional scan. Q and Fᴴd come
//! from direct sums over every pair of sample and voxel; conjugate gradients then apply FᴴF as a convolution
//! with Q. It runs three times, because the first time compiles kernels and allocates. Prints a Markdown
//! table of these, then the fastest run and gridding of the same samples beside the published table.
//!
//! `cargo run --release -p rayspin-solve --example direct_gpu [matrix] [samples] [iterations] [cpu]`

use std::f64::consts::PI;
use std::time::Instant;

use ndarray::Array2;
use rayspin_core::{C32, Monitor, Result, Trajectory};
use rayspin_device::{Array, Device};
use rayspin_kernels::toeplitz::Toeplitz;
use rayspin_kernels::{nudft, nufft};
use rayspin_linop::ToeplitzNormal;
use rayspin_solve::{CgOptions, LeastSquaresOptions, Regularisation, least_squares};

/// Directions spread evenly over the sphere (two golden means), points along each from one end to the other.
fn kooshball(n: usize, samples: usize) -> Result<Trajectory> {
    let points = 2 * n;
    let point = |i: usize| {
        let (spoke, s) = ((i / points) as f64, (i % points) as f64);
        let (z, angle) = ((spoke * 0.465_571_231_876_77) % 1.0, 2.0 * PI * (spoke * 0.682_327_803_828_02));
        let (r, k) = ((1.0 - z * z).sqrt(), s / 2.0 - n as f64 / 2.0);
        [k * r * angle.cos(), k * r * angle.sin(), k * z]
    };
    Trajectory::from_cycles_per_fov(Array2::from_shape_fn((samples, 3), |(i, d)| point(i)[d]))
}

/// The table of “CUDA application development” (lecture), in minutes: Q, Fᴴd, solver, and Fᴴd with solver.
const PUBLISHED: [(&str, Option<[f64; 3]>, f64); 7] = [
    ("gridding + FFT", None, 0.39),
    ("CPU double", Some([4009.0, 518.0, 1.59]), 519.59),
    ("CPU single", Some([2678.7, 342.3, 1.61]), 343.91),
    ("GPU naive", Some([260.2, 41.0, 1.65]), 42.65),
    ("GPU constant memory", Some([72.0, 9.8, 1.57]), 11.37),
    ("GPU + SFU", Some([13.6, 2.4, 1.60]), 4.00),
    ("GPU + tuning", Some([7.5, 1.5, 1.69]), 3.19),
];
/// Pairs of a sample and a displacement in that table.
const PUBLISHED_PAIRS: f64 = 6.7e12;

/// Prints that table with these seconds below it, and the lecture's ratios with ours.
fn beside_the_published(pairs: f64, [q, rhs, solver]: [f64; 3], gridding: f64) {
    println!("\nBeside the lecture's {PUBLISHED_PAIRS:.1e} pairs for Q; here {pairs:.1e}.\n");
    println!("| row | Q | Fᴴd | solver | total without Q |\n|---|---|---|---|---|");
    for (name, parts, total) in PUBLISHED {
        let parts = parts
            .map_or("– | – | –".to_owned(), |p| p.map(|minutes| format!("{minutes} min")).join(" | "));
        println!("| lecture: {name} | {parts} | {total} min |");
    }
    let total = rhs + solver;
    println!("| here: gridding + FFT | – | – | – | {gridding:.4} s |");
    println!("| here: direct sums | {q:.4} s | {rhs:.4} s | {solver:.4} s | {total:.4} s |\n");
    println!("| how much faster | Q | Fᴴd | total |\n|---|---|---|---|");
    println!("| lecture: GPU + tuning than CPU single | 357 | 228 | 108 |");
    // Times of another size do not compare.
    if (pairs / PUBLISHED_PAIRS - 1.0).abs() < 0.05 {
        let [q, rhs, whole] =
            [(2678.7, q), (342.3, rhs), (343.91, total)].map(|(minutes, seconds)| 60.0 * minutes / seconds);
        println!("| here than the lecture's CPU single | {q:.3e} | {rhs:.3e} | {whole:.3e} |");
    }
    println!("| gridding than least squares: lecture 8, here {:.1} | | | |", total / gridding);
}

/// Three balls.
fn phantom(n: usize) -> Vec<C32> {
    let position = |i: usize| (i as f64 + 0.5) / n as f64 - 0.5;
    let ball = |p: [f64; 3], c: [f64; 3], r: f64| {
        let apart: f64 = p.iter().zip(c).map(|(p, c)| (p - c) * (p - c)).sum();
        if apart < r * r { 1.0f32 } else { 0.0 }
    };
    (0..n * n * n)
        .map(|i| {
            let p = [position(i / n / n), position(i / n % n), position(i % n)];
            let value = ball(p, [0.0; 3], 0.42) - 0.6 * ball(p, [0.1, -0.1, 0.05], 0.15)
                + 0.8 * ball(p, [-0.2, 0.15, -0.1], 0.06);
            value.into()
        })
        .collect()
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let on_cpu = arguments.last().is_some_and(|a| a == "cpu");
    arguments.truncate(arguments.len() - usize::from(on_cpu));
    let numbers: Vec<usize> = arguments.iter().map(|a| a.parse()).collect::<std::result::Result<_, _>>()?;
    let [n, samples, iterations] =
        [(0, 128), (1, 400_000), (2, 10)].map(|(i, d)| numbers.get(i).copied().unwrap_or(d));
    let host = Device::cpu()?;
    let start = Instant::now();
    let device = if on_cpu { host } else { Device::cuda(0, host)? };
    let opened = start.elapsed().as_secs_f64();
    println!("{}; {n}³ voxels, {samples} samples, {iterations} iterations", device.describe());
    println!("starting the device takes {opened:.3} s\n");

    let (matrix, trajectory) = ([n, n, n], kooshball(n, samples)?);
    let truth = phantom(n);
    let mut data = Array::zeros(&device, &[samples])?;
    nufft::Nufft::new(&device, &trajectory, &matrix, &nufft::Options::tolerance(1e-5))?
        .forward(&Array::from_slice(&device, &matrix, &truth)?, &mut data)?;
    let options = LeastSquaresOptions {
        cg: CgOptions { max_iterations: iterations, tolerance: 0.0 },
        ..LeastSquaresOptions::default()
    };
    println!("| run | Q s | kernel s | Fᴴd s | {iterations} iterations s | all s | residual | error |");
    println!("|---|---|---|---|---|---|---|---|");
    let mut fastest: Option<[f64; 4]> = None;
    for run in ["first", "second", "third"] {
        let mut seconds = Vec::new();
        let mut mark = Instant::now();
        let mut lap = |device: &Device| -> Result<()> {
            device.synchronize()?;
            seconds.push(mark.elapsed().as_secs_f64());
            mark = Instant::now();
            Ok(())
        };
        let mut q = Array::zeros(&device, &[2 * n; 3])?;
        nudft::q(&trajectory, None, &matrix, &mut q)?;
        lap(&device)?;
        let normal = ToeplitzNormal::new(&[], Toeplitz::from_kernel(&device, &matrix, &q)?);
        drop(q);
        lap(&device)?;
        let mut rhs = Array::zeros(&device, &matrix)?;
        nudft::adjoint(&trajectory, &data, &mut rhs)?;
        lap(&device)?;
        // Not the largest eigenvalue, which the published solver does not look for: a number of its size, for
        // λ.
        let options = LeastSquaresOptions { largest_eigenvalue: Some(samples as f64), ..options };
        let result =
            least_squares(&normal, &rhs, None, Regularisation::new(1e-6, &[]), &options, &Monitor::silent())?
                .cg;
        lap(&device)?;
        let image = result.solution.to_vec()?;
        let apart: f64 = image.iter().zip(&truth).map(|(a, b)| f64::from((a - b).norm_sqr())).sum();
        let size: f64 = truth.iter().map(|v| f64::from(v.norm_sqr())).sum();
        let times: Vec<String> = seconds.iter().map(|s| format!("{s:.4}")).collect();
        println!(
            "| {run} | {} | {:.4} | {:.1e} | {:.3} |",
            times.join(" | "),
            seconds.iter().sum::<f64>(),
            result.residuals.last().copied().unwrap_or(1.0),
            (apart / size).sqrt()
        );
        let [q, kernel, rhs, solver] = [0, 1, 2, 3].map(|stage| seconds[stage]);
        if fastest.is_none_or(|parts| seconds.iter().sum::<f64>() < parts.iter().sum()) {
            fastest = Some([q, kernel, rhs, solver]);
        }
    }
    let mut gridding = f64::INFINITY;
    for _ in 0..3 {
        let mark = Instant::now();
        let plan = nufft::Nufft::new(&device, &trajectory, &matrix, &nufft::Options::tolerance(1e-3))?;
        plan.adjoint(&data, &mut Array::zeros(&device, &matrix)?)?;
        device.synchronize()?;
        gridding = gridding.min(mark.elapsed().as_secs_f64());
    }
    if let Some([q, kernel, rhs, solver]) = fastest {
        let pairs = 8.0 * (n * n * n) as f64 * samples as f64;
        beside_the_published(pairs, [q, rhs, kernel + solver], gridding);
    }
    Ok(())
}
