//! FISTA and its penalties: against closed forms, optimality conditions, and what λ means.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

mod common;

use common::{Dense, relative, wide};
use ndarray::{ArrayD, IxDyn};
use num_complex::Complex;
use rayspin_core::{C64, Error, Monitor, Result};
use rayspin_device::{Array, Device};
use rayspin_kernels::vector;
use rayspin_linop::{
    FiniteDifference, Fourier, Identity, LinearOp, SamplingMask, Scaled, Sense, Wavelet, WaveletFamily,
    random, weighted_differences,
};
use rayspin_solve::{
    FistaOptions, FistaResult, Problem, Proximal, Step, TotalVariation, Watch, WaveletSparsity, fista,
    sparse_least_squares,
};

fn device() -> Device {
    Device::cpu_with_threads(1).unwrap()
}

fn run(
    normal: &dyn LinearOp<Complex<f64>>,
    rhs: &Array<Complex<f64>>,
    lambda: f64,
    penalty: &mut dyn Proximal<Complex<f64>>,
    lipschitz: f64,
    iterations: usize,
) -> FistaResult<Complex<f64>> {
    let options = FistaOptions { max_iterations: iterations, tolerance: 1e-13, ..FistaOptions::default() };
    let problem = Problem { normal, rhs, largest_eigenvalue: lipschitz };
    fista(&problem, None, lambda, penalty, &options, &Monitor::silent()).unwrap()
}

/// g = 0.
struct Free;

impl Proximal<Complex<f64>> for Free {
    fn apply(&mut self, _: f64, _: &mut Array<Complex<f64>>) -> Result<f64> {
        Ok(0.0)
    }
}

#[test]
fn without_a_penalty_the_equation_is_solved_whatever_the_first_estimate_of_the_eigenvalue() {
    let device = device();
    let eigenvalues: Vec<f64> = (0..12).map(|i| 5.0 * 0.7f64.powi(i)).collect();
    let normal = Dense::<f64>::hermitian(&eigenvalues, 3);
    let b = random(&device, &[12], 4).unwrap();
    let expected = normal.solve(&wide(&b));
    for lipschitz in [5.0, 3.0, 8.0] {
        let found = run(&normal, &b, 0.1, &mut Free, lipschitz, 4000);
        let error = relative(&wide(&found.solution), &expected);
        assert!(found.converged && error < 1e-8, "Λ {lipschitz}: {error:.1e}");
        let value = -0.5 * wide(&b).iter().zip(&expected).map(|(b, x)| (b.conj() * x).re).sum::<f64>();
        assert!((found.objective.last().unwrap() / value - 1.0).abs() < 1e-9);
    }
}

/// For A = 1 the minimum is the proximal map itself; for W orthogonal, a soft threshold of the coefficients.
#[test]
fn denoising_by_wavelets_is_a_soft_threshold_of_details() {
    let device = device();
    let shape = [33, 40];
    let b = random::<f64>(&device, &shape, 1).unwrap();
    let wavelet = || Wavelet::<f64>::new(&shape, WaveletFamily::Daubechies2).unwrap();
    let mut penalty = WaveletSparsity::new(&device, wavelet(), None).unwrap();
    let found = run(&Identity::new(&shape), &b, 0.4, &mut penalty, 1.0, 10);
    let details = wavelet().details(&device).unwrap();
    let mut c = wavelet().forward(&b).unwrap();
    for (c, &d) in c.cpu_mut().iter_mut().zip(details.cpu()) {
        let left = (c.norm() - 0.4 * d).max(0.0);
        *c *= left / c.norm();
    }
    let expected = wavelet().adjoint(&c).unwrap();
    assert!(found.converged && found.residuals.len() <= 2);
    assert!(relative(&wide(&found.solution), &wide(&expected)) < 1e-12);
}

/// x = b − Dᴴp with |p| ≤ λ everywhere and ⟨Dx, p⟩ = λ g(x): the conditions of the minimum of ½‖x − b‖² + λ
/// g(x).
#[test]
fn denoising_by_total_variation_closes_the_duality_gap() {
    let device = device();
    let shape = [9, 8];
    let b = random::<f64>(&device, &shape, 2).unwrap();
    let differences = FiniteDifference::new(&shape).unwrap();
    let weights = random::<f64>(&device, differences.range(), 3).unwrap();
    let weights = weights.cpu().iter().map(|v| v.norm() / 1.5).collect();
    let weights = Array::from_vec(&device, differences.range(), weights).unwrap();
    let weighted = weighted_differences(weights).unwrap();
    for op in [&differences as &dyn LinearOp<Complex<f64>>, &weighted] {
        let lambda = 0.3;
        let mut penalty = TotalVariation::new(&device, op, 8.0, 4000).unwrap();
        let mut x = b.try_clone().unwrap();
        let value = penalty.apply(lambda, &mut x).unwrap();
        // The dual value ½‖b‖² − ½‖x‖² equals the primal one only at the minimum.
        let half = |v: &Array<Complex<f64>>| 0.5 * vector::norm_squared(v).unwrap();
        let mut apart = x.try_clone().unwrap();
        vector::axpy((-1.0).into(), &b, &mut apart).unwrap();
        let (primal, dual) = (half(&apart) + lambda * value, half(&b) - half(&x));
        assert!((primal - dual).abs() < 1e-6 * primal, "{primal} {dual}");
        // Far from both the image itself and a constant.
        assert!(value > 0.01 && half(&apart) > 0.01 * half(&b));
        // Within an outer iteration a few steps an application come to the same.
        let mut penalty = TotalVariation::new(&device, op, 8.0, 5).unwrap();
        let found = run(&Identity::new(&shape), &b, lambda, &mut penalty, 1.0, 2000);
        assert!(relative(&wide(&found.solution), &wide(&x)) < 1e-3);
    }
}

#[test]
fn a_large_lambda_leaves_the_mean_and_a_single_edge_is_lowered_by_what_theory_says() {
    let device = device();
    let n = 24;
    let step: Vec<_> = (0..n).map(|i| C64::from(if i < n / 2 { 1.0 } else { 3.0 })).collect();
    let b = Array::from_vec(&device, &[n], step).unwrap();
    let differences = FiniteDifference::new(&[n]).unwrap();
    for (lambda, low, high) in [(1.2, 1.1, 2.9), (100.0, 2.0, 2.0)] {
        let mut penalty = TotalVariation::new(&device, &differences, 4.0, 5000).unwrap();
        let mut x = b.try_clone().unwrap();
        penalty.apply(lambda, &mut x).unwrap();
        let found = x.cpu();
        assert!((found[0].re - low).abs() < 1e-6 && (found[n - 1].re - high).abs() < 1e-6, "{found:?}");
    }
}

/// A multi-coil undersampled scan whose transform is scaled by `gain`.
fn scan(device: &Device, n: usize, gain: f64) -> Scaled<Complex<f64>> {
    let maps = random::<f64>(device, &[4, n, n], 1).unwrap();
    let kept = ArrayD::from_shape_fn(IxDyn(&[n, n]), |i| i[0] % 2 == 0 || i[0].abs_diff(n / 2) < 3);
    SamplingMask::new(device, &[4, n, n], &kept)
        .unwrap()
        .compose(Fourier::new(device, &[4], &[n, n]).unwrap())
        .unwrap()
        .compose(Sense::new(maps).unwrap())
        .unwrap()
        .scaled(gain)
}

#[test]
fn one_lambda_means_the_same_at_any_gain_of_transform_and_data() {
    let device = device();
    let n = 24;
    let data = random::<f64>(&device, &[4, n, n], 2).unwrap();
    let differences = FiniteDifference::new(&[n, n]).unwrap();
    let eigenvalue =
        rayspin_solve::largest_eigenvalue(&scan(&device, n, 1.0).normal_op(), &device, &Default::default());
    let eigenvalue = eigenvalue.unwrap().value;
    for sparse in [true, false] {
        let solve = |transform: f64, gain: f64| -> Vec<C64> {
            let op = scan(&device, n, transform);
            let mut data = data.try_clone().unwrap();
            vector::scale(gain.into(), &mut data).unwrap();
            let rhs = op.adjoint(&data).unwrap();
            let wavelet = Wavelet::new(&[n, n], WaveletFamily::Haar).unwrap();
            let mut wavelet = WaveletSparsity::new(&device, wavelet, Some(7)).unwrap();
            let mut variation = TotalVariation::new(&device, &differences, 8.0, 4).unwrap();
            let penalty: &mut dyn Proximal<Complex<f64>> = if sparse { &mut wavelet } else { &mut variation };
            let options = FistaOptions { max_iterations: 30, tolerance: 0.0, ..FistaOptions::default() };
            let largest = eigenvalue * transform * transform;
            let (normal, silent) = (op.normal_op(), Monitor::silent());
            let problem = Problem { normal: &normal, rhs: &rhs, largest_eigenvalue: largest };
            let found = sparse_least_squares(&problem, None, 0.05, penalty, &options, &silent);
            let back = transform / gain;
            wide(&found.unwrap().fista.solution).into_iter().map(|v| v * back).collect()
        };
        let plain = solve(1.0, 1.0);
        for (transform, gain) in [(1.0, 1e6), (1e-4, 1.0), (300.0, 1e-9)] {
            let apart = relative(&solve(transform, gain), &plain);
            assert!(apart < 1e-10, "sparse {sparse}, {transform} {gain}: {apart:.1e}");
        }
    }
}

#[test]
fn nonsense_is_refused_and_nothing_gives_nothing() {
    let device = device();
    let one = Identity::<Complex<f64>>::new(&[4, 4]);
    let b = random::<f64>(&device, &[4, 4], 1).unwrap();
    let options = FistaOptions::default();
    let go = |b: &Array<Complex<f64>>, lambda: f64, largest: f64, options: &FistaOptions| {
        let silent = Monitor::silent();
        let problem = Problem { normal: &one, rhs: b, largest_eigenvalue: largest };
        sparse_least_squares(&problem, None, lambda, &mut Free, options, &silent)
    };
    for (lambda, largest) in [(-1.0, 1.0), (f64::NAN, 1.0), (0.1, 0.0), (0.1, f64::INFINITY)] {
        assert!(matches!(go(&b, lambda, largest, &options), Err(Error::Value { .. })));
    }
    assert!(go(&b, 0.1, 1.0, &FistaOptions { tolerance: f64::NAN, ..options }).is_err());
    assert!(go(&random(&device, &[4], 1).unwrap(), 0.1, 1.0, &options).is_err());
    let mut broken = b.try_clone().unwrap();
    broken.cpu_mut()[5].im = f64::NAN;
    assert!(matches!(go(&broken, 0.1, 1.0, &options), Err(Error::NotFinite { .. })));
    let nothing = go(&Array::zeros(&device, &[4, 4]).unwrap(), 0.1, 1.0, &options).unwrap();
    assert!(nothing.fista.converged && nothing.fista.solution.cpu().iter().all(|v| *v == C64::ZERO));
    let differences = FiniteDifference::<Complex<f64>>::new(&[4, 4]).unwrap();
    assert!(TotalVariation::new(&device, &differences, 0.0, 5).is_err());
    assert!(TotalVariation::new(&device, &differences, 8.0, 0).is_err());
    assert!(TotalVariation::new(&device, &one, 8.0, 5).is_err());
}

#[test]
fn a_start_at_the_minimum_stays_there_and_one_elsewhere_gets_there() {
    let device = device();
    let eigenvalues: Vec<f64> = (0..9).map(|i| 2.0 * 0.6f64.powi(i)).collect();
    let normal = Dense::<f64>::hermitian(&eigenvalues, 5);
    let b = random(&device, &[9], 6).unwrap();
    let silent = Monitor::silent();
    let options = FistaOptions { max_iterations: 2000, tolerance: 1e-12, ..FistaOptions::default() };
    let problem = Problem { normal: &normal, rhs: &b, largest_eigenvalue: 2.0 };
    let from = |start: Option<&Array<Complex<f64>>>| {
        fista(&problem, start, 0.1, &mut Free, &options, &silent).unwrap()
    };
    let best = from(None);
    let again = from(Some(&best.solution));
    assert!(again.converged && again.residuals.len() <= 2, "{}", again.residuals.len());
    let elsewhere = from(Some(&random(&device, &[9], 7).unwrap()));
    assert!(relative(&wide(&elsewhere.solution), &wide(&best.solution)) < 1e-9);
    assert!(elsewhere.residuals.len() > 2);
    let bad = random(&device, &[8], 7).unwrap();
    assert!(fista(&problem, Some(&bad), 0.1, &mut Free, &options, &silent).is_err());
}

/// With shifts that differ each time, the mean of a few iterates hardly depends on where the shifts began.
#[test]
fn means_of_iterates_hold_still_under_changing_shifts() {
    let device = device();
    let shape = [40, 36];
    let b = random::<f64>(&device, &shape, 1).unwrap();
    let silent = Monitor::silent();
    let solve = |seed: u64, average: usize, seen: &mut dyn FnMut(&Array<Complex<f64>>)| {
        let wavelet = Wavelet::<f64>::new(&shape, WaveletFamily::Daubechies2).unwrap();
        let mut penalty = WaveletSparsity::new(&device, wavelet, Some(seed)).unwrap();
        let options = FistaOptions { max_iterations: 24, tolerance: 0.0, average, ..FistaOptions::default() };
        let identity = Identity::new(&shape);
        let mut observe = |step: &Step<'_, Complex<f64>>| {
            seen(step.solution);
            Ok(())
        };
        let problem = Problem { normal: &identity, rhs: &b, largest_eigenvalue: 1.0 };
        let watch = Watch::from(&silent).with_observer(&mut observe);
        let found = fista(&problem, None, 0.3, &mut penalty, &options, watch);
        wide(&found.unwrap().solution)
    };
    let apart = |average| relative(&solve(1, average, &mut |_| {}), &solve(2, average, &mut |_| {}));
    let (last, mean) = (apart(1), apart(16));
    println!("{last:.1e} {mean:.1e}");
    assert!(mean < 0.3 * last, "{mean:.1e} of {last:.1e}");
    // The solution is the mean of the last iterates.
    let mut iterates = Vec::new();
    solve(1, 1, &mut |x| iterates.push(wide(x)));
    let mut expected = vec![C64::default(); b.len()];
    for iterate in &iterates[8..] {
        expected.iter_mut().zip(iterate).for_each(|(m, x)| *m += x / 16.0);
    }
    assert!(relative(&solve(1, 16, &mut |_| {}), &expected) < 1e-12);
}

/// Random shifts keep the image moving, by a residual that no tolerance can be, while the objective has
/// settled.
#[test]
fn iterations_end_where_the_objective_no_longer_falls() {
    let device = device();
    let n = 32;
    let op = scan(&device, n, 1.0);
    let rhs = op.adjoint(&op.forward(&random::<f64>(&device, &[n, n], 6).unwrap()).unwrap()).unwrap();
    let normal = op.normal_op();
    let largest = rayspin_solve::largest_eigenvalue(&normal, &device, &Default::default()).unwrap().value;
    let problem = Problem { normal: &normal, rhs: &rhs, largest_eigenvalue: largest };
    let go = |settled: f64, average: usize| {
        let wavelet = Wavelet::new(&[n, n], WaveletFamily::Haar).unwrap();
        let mut penalty = WaveletSparsity::new(&device, wavelet, Some(3)).unwrap();
        let options = FistaOptions { max_iterations: 300, tolerance: 1e-6, settled, average };
        fista(&problem, None, 0.02, &mut penalty, &options, &Monitor::silent()).unwrap()
    };
    let all = go(0.0, 8);
    assert!(all.objective.len() == 300 && !all.converged);
    let mut before = 300;
    for share in [1e-5, 1e-4, 1e-3] {
        let found = go(share, 8);
        let iterations = found.objective.len();
        println!(
            "{share}: {iterations} iterations, {:.1e}",
            relative(&wide(&found.solution), &wide(&all.solution))
        );
        assert!(found.converged && iterations <= before && iterations > 32, "{share}: {iterations}");
        assert!(relative(&wide(&found.solution), &wide(&all.solution)) < 0.05);
        before = iterations;
        // It is the mean of the iterates from there on, or the iterate.
        let last = go(share, 1).objective.len();
        assert_eq!(iterations, (last + 7).min(300));
    }
    assert!(before < 100);
}
