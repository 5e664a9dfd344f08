//! Regularised least squares: against dense algebra, and what λ means.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

mod common;

use std::f64::consts::TAU;

use common::{Dense, relative, wide};
use ndarray::{ArrayD, IxDyn};
use num_complex::Complex;
use rayspin_core::{C64, Error, Monitor, Real};
use rayspin_device::{Array, Device};
use rayspin_linop::{FiniteDifference, Fourier, Identity, LinearOp, SamplingMask, Scaled, Sense, random};
use rayspin_solve::{CgOptions, LanczosOptions, LeastSquaresOptions, Regularisation, Watch, least_squares};

fn tight() -> LeastSquaresOptions {
    LeastSquaresOptions {
        cg: CgOptions { max_iterations: 300, tolerance: 1e-11 },
        eigenvalue: LanczosOptions { seed: 1, max_iterations: 2000, tolerance: 1e-12 },
        largest_eigenvalue: None,
    }
}

#[test]
fn the_regularised_equation_is_solved() {
    let device = Device::cpu_with_threads(1).unwrap();
    let n = 12;
    for (scale, lambda) in [(1.0, 0.1), (37.5, 0.03), (1e-8, 0.5), (1.0, 0.0)] {
        let eigenvalues: Vec<f64> = (0..n).map(|i| scale * 0.75f64.powi(i)).collect();
        let normal = Dense::<f64>::hermitian(&eigenvalues, 3);
        let w1 = Dense::<f64>::hermitian(&(0..n).map(f64::from).collect::<Vec<_>>(), 4);
        let w2 = Dense::<f64>::hermitian(&vec![0.5; n as usize], 5);
        let b = random(&device, &[n as usize], 6).unwrap();
        let added = |parts: &[&Dense<f64>]| {
            let mut matrix = normal.matrix.clone();
            for (i, row) in matrix.iter_mut().enumerate() {
                for (j, a) in row.iter_mut().enumerate() {
                    let sum: C64 = parts.iter().map(|p| p.matrix[i][j]).sum();
                    *a += lambda * scale * sum;
                }
            }
            Dense::<f64>::new(matrix).solve(&wide(&b))
        };
        let run = |parts: &[&dyn LinearOp<Complex<f64>>]| {
            least_squares(&normal, &b, None, Regularisation::new(lambda, parts), &tight(), &Monitor::silent())
                .unwrap()
        };
        let found = run(&[&w1, &w2]);
        assert!(found.cg.converged);
        assert!((found.largest_eigenvalue.value / scale - 1.0).abs() < 1e-9);
        let error = relative(&wide(&found.cg.solution), &added(&[&w1, &w2]));
        assert!(error < 1e-8, "scale {scale}, λ {lambda}: {error:.2e}");
        let one = Dense::<f64>::hermitian(&vec![1.0; n as usize], 7);
        let error = relative(&wide(&run(&[]).cg.solution), &added(&[&one]));
        assert!(error < 1e-8, "Tikhonov: {error:.2e}");
    }
}

/// A multi-coil undersampled scan whose transform is scaled by `gain`.
fn scan<R: Real>(device: &Device, n: usize, gain: f64) -> Scaled<Complex<R>> {
    let maps = random::<R>(device, &[4, n, n], 1).unwrap();
    let kept = ArrayD::from_shape_fn(IxDyn(&[n, n]), |i| i[0] % 2 == 0 || i[0].abs_diff(n / 2) < 3);
    SamplingMask::new(device, &[4, n, n], &kept)
        .unwrap()
        .compose(Fourier::new(device, &[4], &[n, n]).unwrap())
        .unwrap()
        .compose(Sense::new(maps).unwrap())
        .unwrap()
        .scaled(gain)
}

fn gains<R: Real>(allowed: f64) {
    let device = Device::cpu_with_threads(2).unwrap();
    let n = 24;
    let smooth = FiniteDifference::new(&[n, n]).unwrap().normal_op();
    let data = random::<R>(&device, &[4, n, n], 2).unwrap();
    let solve = |transform: f64, data_gain: f64| -> Vec<C64> {
        let op = scan::<R>(&device, n, transform);
        let mut data = data.try_clone().unwrap();
        rayspin_kernels::vector::scale(data_gain.into(), &mut data).unwrap();
        let rhs = op.adjoint(&data).unwrap();
        let options = LeastSquaresOptions {
            cg: CgOptions { max_iterations: 25, tolerance: 0.0 },
            ..LeastSquaresOptions::default()
        };
        let normal = op.normal_op();
        let found = least_squares(
            &normal,
            &rhs,
            None,
            Regularisation::new(0.02, &[&smooth]),
            &options,
            &Monitor::silent(),
        )
        .unwrap();
        wide(&found.cg.solution)
    };
    let plain = solve(1.0, 1.0);
    let times = |x: &[C64], s: f64| x.iter().map(|v| v * s).collect::<Vec<_>>();
    // A gain of a power of two changes no bit of the significands.
    assert_eq!(solve(1.0, 1048576.0), times(&plain, 1048576.0));
    for (transform, gain) in [(1.0, 1e6), (1.0, 1e-9), (1e3, 1.0), (1e-4, 1e4)] {
        let error = relative(&solve(transform, gain), &times(&plain, gain / transform));
        assert!(error < allowed, "{} transform {transform:e}, gain {gain:e}: {error:.2e}", R::NAME);
    }
}

#[test]
fn lambda_means_the_same_at_any_gain() {
    gains::<f32>(2e-4);
    gains::<f64>(1e-9);
}

/// Voxels are the unit of differences: a wave of the same length in voxels is damped alike in images of any
/// size, although the transform here is not scaled and FᴴF grows with the number of voxels.
#[test]
fn lambda_means_the_same_at_any_matrix_size() {
    let device = Device::cpu_with_threads(2).unwrap();
    let lambda = 0.3;
    let mut damping = Vec::new();
    for n in [16, 48, 96] {
        let unscaled = Fourier::<f64>::new(&device, &[], &[n, n]).unwrap().scaled(n as f64);
        let wave = |i: usize| (TAU * (i as f64 + 0.5) / 16.0).cos();
        let truth: Vec<C64> = (0..n * n).map(|i| (wave(i / n) * wave(i % n)).into()).collect();
        let truth = Array::from_vec(&device, &[n, n], truth).unwrap();
        let data = unscaled.forward(&truth).unwrap();
        let rhs = unscaled.adjoint(&data).unwrap();
        let smooth = FiniteDifference::new(&[n, n]).unwrap().normal_op();
        let normal = unscaled.normal_op();
        let found = least_squares(
            &normal,
            &rhs,
            None,
            Regularisation::new(lambda, &[&smooth]),
            &tight(),
            &Monitor::silent(),
        )
        .unwrap();
        assert!((found.largest_eigenvalue.value / (n * n) as f64 - 1.0).abs() < 1e-9);
        let (solution, truth) = (wide(&found.cg.solution), wide(&truth));
        let factor = solution.iter().zip(&truth).map(|(a, b)| (a * b).re).sum::<f64>()
            / truth.iter().map(C64::norm_sqr).sum::<f64>();
        let shape: Vec<C64> = truth.iter().map(|t| t * factor).collect();
        assert!(relative(&solution, &shape) < 1e-8, "n = {n}: the wave keeps its shape");
        damping.push(factor);
    }
    // DᴴD of this wave (even about both edges) is 2(2 − 2cos(2π/16)).
    let expected = 1.0 / (1.0 + lambda * 2.0 * (2.0 - 2.0 * (TAU / 16.0).cos()));
    for factor in damping {
        assert!((factor / expected - 1.0).abs() < 1e-8, "{factor} for {expected}");
    }
}

#[test]
fn a_start_and_the_objective_are_at_the_scale_of_the_result() {
    let device = Device::cpu_with_threads(1).unwrap();
    let op = scan::<f64>(&device, 12, 3.0);
    let data = random(&device, &[4, 12, 12], 2).unwrap();
    let (rhs, normal) = (op.adjoint(&data).unwrap(), scan::<f64>(&device, 12, 3.0).normal_op());
    let run = |start: Option<&Array<C64>>, iterations: usize| {
        let cg = CgOptions { max_iterations: iterations, tolerance: 1e-9 };
        let options = LeastSquaresOptions { cg, ..tight() };
        least_squares(&normal, &rhs, start, Regularisation::new(0.1, &[]), &options, &Monitor::silent())
            .unwrap()
    };
    let found = run(None, 300);
    let weight = 0.1 * found.largest_eigenvalue.value;
    let value = |x: &Array<C64>| {
        let ax = wide(&op.forward(x).unwrap());
        let distance: f64 = ax.iter().zip(wide(&data)).map(|(a, d)| (a - d).norm_sqr()).sum();
        let size: f64 = wide(&data).iter().map(C64::norm_sqr).sum();
        0.5 * (distance - size) + 0.5 * weight * wide(x).iter().map(C64::norm_sqr).sum::<f64>()
    };
    let expected = value(&found.cg.solution);
    assert!((found.cg.objective.last().unwrap() / expected - 1.0).abs() < 1e-9);
    let again = run(Some(&found.cg.solution), 300).cg;
    assert!(again.converged && again.iterations == 0 && again.residuals[0] < 1e-8);
    let start = random(&device, &[12, 12], 9).unwrap();
    let after = run(Some(&start), 2).cg;
    assert!((after.objective[1] / value(&after.solution) - 1.0).abs() < 1e-9);
    assert!(after.objective[1] < value(&start));
}

#[test]
fn observers_see_images_at_the_scale_of_the_result() {
    let device = Device::cpu_with_threads(1).unwrap();
    let op = scan::<f32>(&device, 12, 3.0);
    let rhs = op.adjoint(&random(&device, &[4, 12, 12], 2).unwrap()).unwrap();
    let normal = op.normal_op();
    let mut last = Vec::new();
    let options = LeastSquaresOptions::default();
    let silent = Monitor::silent();
    let found = least_squares(
        &normal,
        &rhs,
        None,
        Regularisation::new(0.1, &[]),
        &options,
        Watch::from(&silent).with_observer(&mut |step| {
            last = step.solution.cpu().to_vec();
            Ok(())
        }),
    );
    assert_eq!(found.unwrap().cg.solution.cpu(), last);
}

#[test]
fn bad_problems_are_refused() {
    let device = Device::cpu_with_threads(1).unwrap();
    let one = Identity::<Complex<f64>>::new(&[4]);
    let b = random(&device, &[4], 1).unwrap();
    let run = |normal: &dyn LinearOp<Complex<f64>>,
               b: &Array<C64>,
               lambda: f64,
               parts: &[&dyn LinearOp<Complex<f64>>]| {
        least_squares(
            normal,
            b,
            None,
            Regularisation::new(lambda, parts),
            &LeastSquaresOptions::default(),
            &Monitor::silent(),
        )
    };
    for lambda in [-1.0, f64::NAN, f64::INFINITY] {
        assert!(matches!(run(&one, &b, lambda, &[]), Err(Error::Value { .. })));
    }
    let other = Identity::new(&[5]);
    assert!(matches!(run(&one, &b, 0.1, &[&other]), Err(Error::Shape { .. })));
    assert!(matches!(run(&other, &b, 0.1, &[]), Err(Error::Shape { .. })));
    let gradient = FiniteDifference::new(&[4]).unwrap();
    let error = run(&one, &b, 0.1, &[&gradient]).unwrap_err();
    assert!(error.to_string().starts_with("finite difference: range"), "{error}");
    let nothing = Identity::new(&[4]).scaled(0.0);
    assert!(matches!(run(&nothing, &b, 0.1, &[]), Err(Error::Value { .. })));
    let zero = Array::zeros(&device, &[4]).unwrap();
    assert_eq!(run(&one, &zero, 0.1, &[]).unwrap().cg.solution.cpu(), [Complex::default(); 4]);
    let mut broken = b.try_clone().unwrap();
    broken.cpu_mut()[1].re = f64::INFINITY;
    assert!(matches!(run(&one, &broken, 0.1, &[]), Err(Error::NotFinite { index: 1, .. })));
}
