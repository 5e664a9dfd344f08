//! Iterative SENSE of an undersampled radial scan: how long the largest eigenvalue and the iterations take.
//!
//! `cargo run --release -p rayspin-solve --example radial_cg [matrix] [spokes] [coils]`

use std::f64::consts::PI;
use std::time::Instant;

use ndarray::Array2;
use rayspin_core::{C32, Monitor, Trajectory};
use rayspin_device::{Array, Device};
use rayspin_kernels::nufft;
use rayspin_linop::{FiniteDifference, LinearOp, SenseNufft, SenseToeplitz, ToeplitzNormal};
use rayspin_solve::{
    CgOptions, LanczosOptions, LeastSquaresOptions, Regularisation, Watch, largest_eigenvalue, least_squares,
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<usize> = std::env::args().skip(1).map(|a| a.parse()).collect::<Result<_, _>>()?;
    let [n, spokes, coils] = [(0, 128), (1, 40), (2, 8)].map(|(i, d)| arguments.get(i).copied().unwrap_or(d));
    let device = Device::cpu()?;
    println!("{}; {n}² voxels, {spokes} spokes, {coils} coils", device.describe());

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
    let maps = std::sync::Arc::new(Array::from_vec(&device, &[coils, n, n], maps)?);
    let disc = |y: f64, x: f64, r: f64| if y * y + x * x < r * r { 1.0f32 } else { 0.0 };
    let object =
        |y: f64, x: f64| disc(y, x, 0.4) - 0.5 * disc(y - 0.1, x, 0.15) + disc(y + 0.2, x + 0.1, 0.05);
    let truth = (0..voxels).map(|i| object(position(i / n), position(i % n)).into()).collect();
    let truth = Array::from_vec(&device, &[n, n], truth)?;

    let plan = nufft::Nufft::new(&device, &trajectory, &[n, n], &nufft::Options::tolerance(1e-5))?;
    let encode = SenseNufft::new(maps.clone(), plan)?;
    let rhs = encode.adjoint(&encode.forward(&truth)?)?;
    let toeplitz = ToeplitzNormal::exact(&device, &[], &trajectory, None, &[n, n])?;
    let normal = SenseToeplitz::new(maps, toeplitz.toeplitz().clone())?;

    for (name, op) in [("NUFFT", &encode.normal_op() as &dyn LinearOp<C32>), ("Toeplitz", &normal)] {
        let mut out = Array::zeros(&device, &[n, n])?;
        let seconds = (0..7).map(|_| {
            let start = Instant::now();
            op.forward_into(&rhs, &mut out).map(|()| start.elapsed().as_secs_f64())
        });
        let best = seconds.collect::<Result<Vec<_>, _>>()?.into_iter().fold(f64::INFINITY, f64::min);
        println!("FᴴF by {name:<9} {:8.3} ms", best * 1e3);
    }
    let long = LanczosOptions { max_iterations: 3000, tolerance: 1e-12, seed: 0 };
    let exact = largest_eigenvalue(&normal, &device, &long)?.value;
    for tolerance in [1e-2, 1e-3, 1e-4] {
        let eigenvalue =
            largest_eigenvalue(&normal, &device, &LanczosOptions { tolerance, ..LanczosOptions::default() })?;
        println!(
            "L to {tolerance:.0e}: {} iterations, {:+.2e} off, bound {:.2e}",
            eigenvalue.iterations,
            eigenvalue.value / exact - 1.0,
            eigenvalue.residual / exact
        );
    }
    let smooth = FiniteDifference::new(&[n, n])?.normal_op();
    let options = LeastSquaresOptions {
        cg: CgOptions { max_iterations: 30, tolerance: 0.0 },
        largest_eigenvalue: Some(exact),
        ..LeastSquaresOptions::default()
    };
    for lambda in [0.0, 1e-4, 1e-2] {
        let start = Instant::now();
        let mut errors = Vec::new();
        let parts: &[&dyn LinearOp<C32>] = &[&smooth];
        let silent = Monitor::silent();
        let result = least_squares(
            &normal,
            &rhs,
            None,
            Regularisation::new(lambda, parts),
            &options,
            Watch::<C32>::from(&silent).with_observer(&mut |step| {
                let pairs = step.solution.cpu().iter().zip(truth.cpu());
                let apart: f64 = pairs.map(|(a, b)| f64::from((a - b).norm_sqr())).sum();
                let size: f64 = truth.cpu().iter().map(|v| f64::from(v.norm_sqr())).sum();
                errors.push((apart / size).sqrt());
                Ok(())
            }),
        )?;
        println!(
            "λ {lambda:<6} {} iterations in {:.1} ms, residual {:.2e}, error after 5, 10, 30: {:.3} {:.3} {:.3}",
            result.cg.iterations,
            start.elapsed().as_secs_f64() * 1e3,
            result.cg.residuals.last().copied().unwrap_or(f64::NAN),
            errors[4],
            errors[9],
            errors[result.cg.iterations - 1]
        );
    }
    Ok(())
}
