//! What an iteration of conjugate gradients takes, with iterations recorded as a CUDA graph and without:
//! two-dimensional radial SENSE by convolution with finite differences as regulariser. Times are the device's
//! own (events) and include what the device waits for the host. Prints a Markdown table.
//!
//! `cargo run --release -p rayspin-solve --example cg_graph`

use std::f64::consts::PI;
use std::time::Instant;

use ndarray::Array2;
use rayspin_core::{C32, Monitor, Result, Trajectory};
use rayspin_device::{Array, Backend, Device};
use rayspin_linop::{FiniteDifference, LinearOp, SenseToeplitz, ToeplitzNormal, random};
use rayspin_solve::{
    CgOptions, LanczosOptions, LeastSquaresOptions, Regularisation, Watch, largest_eigenvalue, least_squares,
};

/// Iterations of a reconstruction, and of one whose further iterations are timed.
const ITERATIONS: [usize; 2] = [15, 115];

#[derive(Debug, Clone, Copy, PartialEq)]
enum How {
    /// One launch after the other. Each iterate is observed before the next iteration is queued.
    Watched,
    /// One launch after the other, queued one iteration ahead.
    Launches,
    /// The recorded iteration, queued one ahead.
    Graph,
}

struct Problem {
    normal: SenseToeplitz<f32>,
    smooth: Box<dyn LinearOp<C32>>,
    rhs: Array<C32>,
    largest: f64,
}

impl Problem {
    fn new(device: &Device, n: usize, coils: usize, spokes: usize) -> Result<Self> {
        let along = |i: usize, s: usize| {
            let (r, angle) = (i as f64 / 2.0 - n as f64 / 2.0, PI * s as f64 / spokes as f64);
            [r * angle.cos(), r * angle.sin()]
        };
        let points = Array2::from_shape_fn((2 * n * spokes, 2), |(i, d)| along(i % (2 * n), i / (2 * n))[d]);
        let trajectory = Trajectory::from_cycles_per_fov(points)?;
        let position = |v: usize| (v as f64 + 0.5) / n as f64 - 0.5;
        let map = |j: usize, y: f64, x: f64| {
            let angle = 2.0 * PI * j as f64 / coils as f64;
            let apart = (y - 0.6 * angle.sin()).powi(2) + (x - 0.6 * angle.cos()).powi(2);
            C32::from_polar((-2.0 * apart).exp() as f32, angle as f32)
        };
        let voxels = n * n;
        let maps =
            (0..coils * voxels).map(|i| map(i / voxels, position(i % voxels / n), position(i % n))).collect();
        let maps = Array::from_vec(device, &[coils, n, n], maps)?;
        let toeplitz = ToeplitzNormal::exact(device, &[], &trajectory, None, &[n, n])?;
        let normal = SenseToeplitz::new(maps, toeplitz.toeplitz().clone())?;
        let rhs = normal.forward(&random(device, &[n, n], 1)?)?;
        let largest = largest_eigenvalue(&normal, device, &LanczosOptions::default())?.value;
        Ok(Self { normal, smooth: Box::new(FiniteDifference::new(&[n, n])?.normal_op()), rhs, largest })
    }

    /// Seconds of the device, the image and the iterations that were repeated.
    fn solve(&self, how: How, iterations: usize) -> Result<(f64, Vec<C32>, usize)> {
        let options = LeastSquaresOptions {
            cg: CgOptions { max_iterations: iterations, tolerance: 0.0 },
            largest_eigenvalue: Some(self.largest),
            ..LeastSquaresOptions::default()
        };
        let silent = Monitor::silent();
        // Enough of it that the residual falls on, and no iteration is left out.
        let lambda = 1e-6;
        let mut result = None;
        let mut run = || {
            result = Some(match how {
                How::Watched => least_squares(
                    &self.normal,
                    &self.rhs,
                    None,
                    Regularisation::new(lambda, &[&*self.smooth]),
                    &options,
                    Watch::from(&silent).with_observer(&mut |_| Ok(())),
                )?,
                _ => least_squares(
                    &self.normal,
                    &self.rhs,
                    None,
                    Regularisation::new(lambda, &[&*self.smooth]),
                    &options,
                    &silent,
                )?,
            });
            Ok(())
        };
        let seconds = match self.rhs.device().backend() {
            Backend::Cuda(cuda) => {
                cuda.allow_graphs(how == How::Graph);
                cuda.seconds(run)?
            }
            Backend::Cpu(_) => {
                let start = Instant::now();
                run()?;
                start.elapsed().as_secs_f64()
            }
        };
        let Some(result) = result else { return Ok((seconds, Vec::new(), 0)) };
        if result.cg.iterations < iterations {
            println!(
                "only {} of {iterations} iterations: {:?}",
                result.cg.iterations,
                result.cg.residuals.last()
            );
        }
        Ok((seconds, result.cg.solution.to_vec()?, result.cg.replayed))
    }
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let (device, without_gpu) = Device::auto(Device::cpu()?);
    println!(
        "{}{}\n",
        device.describe(),
        without_gpu.map_or(String::new(), |why| format!(" (no GPU: {why})"))
    );
    let [few, many] = ITERATIONS;
    println!("| problem | iterations are | µs an iteration | ms of {few} iterations | repeated of {few} |");
    println!("|---|---|---|---|---|");
    for (n, coils, spokes) in [(256, 12, 64), (64, 4, 24)] {
        let problem = Problem::new(&device, n, coils, spokes)?;
        let mut images: Vec<Vec<C32>> = Vec::new();
        for how in [How::Watched, How::Launches, How::Graph] {
            let mut best = [f64::INFINITY; 2];
            let mut repeated = 0;
            for round in 0..6 {
                for (best, iterations) in best.iter_mut().zip(ITERATIONS) {
                    let (seconds, image, replayed) = problem.solve(how, iterations)?;
                    if iterations == few {
                        images.push(image);
                        repeated = replayed;
                    }
                    // The first round loads programs and makes workspaces.
                    if round > 0 {
                        *best = best.min(seconds);
                    }
                }
            }
            let each = (best[1] - best[0]) / (many - few) as f64;
            println!(
                "| {n}², {coils} coils | {} | {:.1} | {:.3} | {repeated} |",
                match how {
                    How::Watched => "launched, each waited for",
                    How::Launches => "launched, one ahead",
                    How::Graph => "a graph, one ahead",
                },
                1e6 * each,
                1e3 * best[0]
            );
        }
        if images.iter().any(|image| image != &images[0]) {
            return Err("images differ".into());
        }
    }
    Ok(())
}
