//! Conjugate gradients and the Lanczos process against dense algebra in f64.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

mod common;

use std::sync::atomic::{AtomicBool, Ordering};

use common::{Dense, norm, relative, wide};
use num_complex::Complex;
use rayspin_core::{C64, Error, Monitor, Progress, Real, Silent};
use rayspin_device::{Array, Device};
use rayspin_kernels::vector;
use rayspin_linop::{Identity, LinearOp, random};
use rayspin_solve::{
    CgOptions, LanczosOptions, Step, Watch, cg, largest_eigenvalue, largest_eigenvalue_from,
};

fn device() -> Device {
    Device::cpu_with_threads(1).unwrap()
}

fn spread(n: usize, condition: f64) -> Vec<f64> {
    (0..n).map(|i| condition.powf(-(i as f64) / (n.max(2) - 1) as f64)).collect()
}

fn solves_dense_systems<R: Real>(tolerance: f64, allowed: f64) {
    let device = device();
    for (seed, n) in [1, 2, 3, 5, 8, 17, 40].into_iter().enumerate() {
        let system = Dense::<R>::hermitian(&spread(n, 50.0), seed as u64 + 1);
        let b = random::<R>(&device, &[n], 77).unwrap();
        let options = CgOptions { max_iterations: 4 * n, tolerance };
        let found = cg(&system, &b, None, &options, &Monitor::silent()).unwrap();
        let exact = system.solve(&wide(&b));
        let error = relative(&wide(&found.solution), &exact);
        assert!(found.converged, "{} n = {n}: {:?}", R::NAME, found.residuals);
        assert!(error < allowed, "{} n = {n}: {error:.2e}", R::NAME);
        assert_eq!(found.residuals.len(), found.iterations + 1);
        assert_eq!(found.residuals[0], 1.0);

        let near = Array::from_vec(
            &device,
            &[n],
            exact
                .iter()
                .map(|v| {
                    let v = v * 1.001;
                    Complex::new(<R as Real>::from_f64(v.re), <R as Real>::from_f64(v.im))
                })
                .collect(),
        );
        let warm = cg(&system, &b, Some(&near.unwrap()), &options, &Monitor::silent()).unwrap();
        assert!(relative(&wide(&warm.solution), &exact) < allowed);
        assert!(warm.residuals[0] < 2e-3 && warm.iterations <= found.iterations);
    }
}

#[test]
fn dense_systems_are_solved() {
    solves_dense_systems::<f64>(1e-12, 1e-10);
    solves_dense_systems::<f32>(3e-6, 3e-4);
}

#[test]
fn n_iterations_are_exact_in_f64() {
    let device = device();
    for (seed, n) in [1, 2, 4, 7, 12, 20].into_iter().enumerate() {
        let system = Dense::<f64>::hermitian(&spread(n, 6.0), seed as u64 + 10);
        let b = random(&device, &[n], 5).unwrap();
        let options = CgOptions { max_iterations: n, tolerance: 0.0 };
        let found = cg(&system, &b, None, &options, &Monitor::silent()).unwrap();
        let error = relative(&wide(&found.solution), &system.solve(&wide(&b)));
        assert!(error < 1e-9, "n = {n}: {error:.2e}");
    }
    // As many iterations as there are distinct eigenvalues.
    let system = Dense::<f64>::hermitian(&[1.0, 3.0, 3.0, 7.0, 7.0, 7.0, 1.0, 3.0], 3);
    let b = random(&device, &[8], 5).unwrap();
    let found = cg(&system, &b, None, &CgOptions { max_iterations: 8, tolerance: 1e-12 }, &Monitor::silent());
    assert_eq!(found.unwrap().iterations, 3);
}

#[test]
fn the_error_falls_monotonically_in_the_norm_of_a() {
    let device = device();
    for seed in 1..5 {
        let n = 30;
        let system = Dense::<f64>::hermitian(&spread(n, 1e3), seed);
        let b = random(&device, &[n], seed).unwrap();
        let exact = system.solve(&wide(&b));
        let mut last = exact.iter().zip(wide(&b)).map(|(x, b)| (x.conj() * b).re).sum::<f64>();
        let mut seen = 0;
        let options = CgOptions { max_iterations: n, tolerance: 1e-8 };
        let silent = Monitor::silent();
        let found = cg(
            &system,
            &b,
            None,
            &options,
            Watch::from(&silent).with_observer(&mut |step| {
                seen += 1;
                assert_eq!(step.iteration, seen);
                let e: Vec<C64> = wide(step.solution).iter().zip(&exact).map(|(a, b)| a - b).collect();
                let energy: f64 = e.iter().zip(system.times(&e)).map(|(e, ae)| (e.conj() * ae).re).sum();
                assert!(energy < last, "seed {seed}, iteration {seen}: {energy:.3e} after {last:.3e}");
                last = energy;
                Ok(())
            }),
        )
        .unwrap();
        assert_eq!(seen, found.iterations);
    }
}

#[test]
fn the_objective_is_the_one_of_every_iterate() {
    let device = device();
    let n = 30;
    let system = Dense::<f64>::hermitian(&spread(n, 1e3), 5);
    let (b, start) = (random(&device, &[n], 6).unwrap(), random(&device, &[n], 7).unwrap());
    for start in [None, Some(&start)] {
        let mut expected = Vec::new();
        let silent = Monitor::silent();
        let mut observe = |step: &Step<'_, Complex<f64>>| {
            let x = wide(step.solution);
            let terms = x.iter().zip(system.times(&x)).zip(wide(&b));
            expected.push(terms.map(|((x, ax), b)| (x.conj() * (0.5 * ax - b)).re).sum::<f64>());
            Ok(())
        };
        // The tolerance is met several times before rounding is all that is left: the residual is then
        // computed anew.
        let options = CgOptions { max_iterations: 200, tolerance: 0.0 };
        let watch = Watch::from(&silent).with_observer(&mut observe);
        let found = cg(&system, &b, start, &options, watch).unwrap();
        assert_eq!(found.objective.len(), found.iterations);
        for (found, expected) in found.objective.iter().zip(&expected) {
            assert!((found / expected - 1.0).abs() < 1e-9, "{found} for {expected}");
        }
    }
}

#[test]
fn a_zero_right_hand_side_has_the_solution_zero() {
    let device = device();
    let zero = Array::<Complex<f32>>::zeros(&device, &[6]).unwrap();
    let start = random(&device, &[6], 1).unwrap();
    let system = Dense::<f32>::hermitian(&spread(6, 10.0), 1);
    let found = cg(&system, &zero, Some(&start), &CgOptions::default(), &Monitor::silent()).unwrap();
    assert_eq!(found.solution.cpu(), zero.cpu());
    assert!(found.converged && found.iterations == 0);
}

/// On a singular system with a solution CG finds the one of least norm; without a solution it stops where A
/// vanishes.
#[test]
fn singular_systems_stop_without_blowing_up() {
    fn run<R: Real>(allowed: f64) {
        let device = device();
        let system = Dense::<R>::hermitian(&[1.0, 0.7, 0.4, 0.0, 0.0, 0.0], 4);
        let any = random::<R>(&device, &[6], 8).unwrap();
        let options = CgOptions { max_iterations: 200, tolerance: 1e-30 };
        let reachable = system.forward(&any).unwrap();
        let found = cg(&system, &reachable, None, &options, &Monitor::silent()).unwrap();
        assert!(!found.converged);
        let left = relative(&wide(&system.forward(&found.solution).unwrap()), &wide(&reachable));
        assert!(left < allowed, "{} {left:.2e}", R::NAME);
        assert!(found.iterations < 60, "{} iterations", found.iterations);

        let found = cg(&system, &any, None, &options, &Monitor::silent()).unwrap();
        assert!(!found.converged);
        assert!(norm(&wide(&found.solution)) < 1e3, "{}", R::NAME);
    }
    run::<f32>(1e-6);
    run::<f64>(1e-14);
}

#[test]
fn a_tolerance_beyond_the_precision_ends_and_is_not_called_met() {
    let device = device();
    let system = Dense::<f32>::hermitian(&spread(20, 1e3), 2);
    let b = random(&device, &[20], 3).unwrap();
    let options = CgOptions { max_iterations: 10_000, tolerance: 0.0 };
    let found = cg(&system, &b, None, &options, &Monitor::silent()).unwrap();
    assert!(!found.converged && found.iterations < 500, "{}", found.iterations);
    let error = relative(&wide(&found.solution), &system.solve(&wide(&b)));
    assert!(error < 1e-3, "{error:.2e}");
}

#[test]
fn breakdowns_are_errors_that_say_why() {
    let device = device();
    let b = random::<f64>(&device, &[5], 3).unwrap();
    let run = |system: &dyn LinearOp<Complex<f64>>, b: &Array<C64>| {
        cg(system, b, None, &CgOptions::default(), &Monitor::silent()).unwrap_err()
    };
    let indefinite = Dense::hermitian(&[1.0, 0.5, -0.2, 0.3, 0.8], 1);
    let error = run(&indefinite, &b);
    assert!(matches!(error, Error::Numerical { .. }));
    assert!(error.to_string().contains("not positive semidefinite"), "{error}");
    let negative = Identity::new(&[5]).scaled(-1.0);
    assert!(run(&negative, &b).to_string().contains("not positive semidefinite"));
    let turned = Identity::new(&[5]).scaled(Complex::new(1.0, 0.5));
    assert!(run(&turned, &b).to_string().contains("not Hermitian"));
    let endless = Identity::new(&[5]).scaled(f64::INFINITY);
    assert!(matches!(run(&endless, &b), Error::Numerical { .. }));

    let mut broken = b.try_clone().unwrap();
    broken.cpu_mut()[2].im = f64::NAN;
    assert!(matches!(run(&Identity::new(&[5]), &broken), Error::NotFinite { index: 2, .. }));
    let short = random(&device, &[4], 1).unwrap();
    assert!(matches!(run(&Identity::new(&[5]), &short), Error::Shape { .. }));
    let options = CgOptions { tolerance: f64::NAN, ..CgOptions::default() };
    assert!(cg(&Identity::new(&[5]), &b, None, &options, &Monitor::silent()).is_err());
}

#[test]
fn progress_is_reported_and_a_stop_is_heeded() {
    struct Counts(std::sync::Mutex<Vec<String>>, AtomicBool);
    impl Progress for Counts {
        fn begin(&self, _: &str, _: usize) {}
        fn step(&self, detail: &str) {
            let mut seen = self.0.lock().unwrap();
            seen.push(detail.to_owned());
            self.1.store(seen.len() == 4, Ordering::Relaxed);
        }
        fn end(&self, _: &str, _: f64) {}
        fn note(&self, _: &str) {}
    }
    let device = device();
    let system = Dense::<f64>::hermitian(&spread(30, 1e3), 2);
    let b = random(&device, &[30], 3).unwrap();
    let counts = Counts(Default::default(), AtomicBool::new(false));
    let stopped = cg(&system, &b, None, &CgOptions::default(), &Monitor::new(&counts, Some(&counts.1)));
    assert_eq!(stopped.unwrap_err(), Error::Interrupted);
    let seen = counts.0.into_inner().unwrap();
    assert_eq!(seen.len(), 4);
    assert!(seen[0].starts_with("residual "), "{seen:?}");

    let mut seen = 0;
    let monitor = Monitor::new(&Silent, None);
    let stopped = cg(
        &system,
        &b,
        None,
        &CgOptions::default(),
        Watch::from(&monitor).with_observer(&mut |_| {
            seen += 1;
            if seen == 2 { Err(Error::Interrupted) } else { Ok(()) }
        }),
    );
    assert!(stopped.is_err() && seen == 2);
}

fn largest_eigenvalues<R: Real>(allowed: f64) {
    let device = device();
    for (seed, n) in [1, 2, 3, 6, 20].into_iter().enumerate() {
        for scale in [1e-6, 1.0, 1e6] {
            let eigenvalues: Vec<f64> = (0..n).map(|i| scale * 0.8f64.powi(i)).collect();
            let system = Dense::<R>::hermitian(&eigenvalues, seed as u64 + 1);
            let options = LanczosOptions { seed: 4, max_iterations: 200, tolerance: 1e-9 };
            let found = largest_eigenvalue(&system, &device, &options).unwrap();
            let error = found.value / scale - 1.0;
            assert!(error.abs() < allowed, "{} n = {n}: {error:.2e}", R::NAME);
            assert!(found.converged || R::NAME == "f32");
            assert!(found.residual < 1e-2 * scale);
        }
    }
    let nothing = Identity::<Complex<R>>::new(&[5]).scaled(0.0);
    let found = largest_eigenvalue(&nothing, &device, &LanczosOptions::default()).unwrap();
    assert_eq!((found.value, found.converged), (0.0, true));
    let one = Identity::<Complex<R>>::new(&[5, 3]);
    let found = largest_eigenvalue(&one, &device, &LanczosOptions::default()).unwrap();
    assert!((found.value - 1.0).abs() < 1e-6 && found.iterations <= 2);
    let endless = Identity::<Complex<R>>::new(&[5]).scaled(f64::NAN);
    assert!(largest_eigenvalue(&endless, &device, &LanczosOptions::default()).is_err());
    let none = LanczosOptions { max_iterations: 0, ..LanczosOptions::default() };
    assert!(largest_eigenvalue(&one, &device, &none).is_err());
}

#[test]
fn largest_eigenvalue_finds_the_largest_eigenvalue() {
    largest_eigenvalues::<f32>(1e-5);
    largest_eigenvalues::<f64>(1e-6);
}

#[test]
fn a_hint_saves_iterations_and_hides_no_eigenvalue() {
    let device = device();
    let eigenvalues: Vec<f64> = (0..40).map(|i| 0.9f64.powi(i)).collect();
    let system = Dense::<f64>::hermitian(&eigenvalues, 3);
    let options = LanczosOptions { seed: 5, max_iterations: 200, tolerance: 1e-3 };
    let by_chance = largest_eigenvalue(&system, &device, &options).unwrap();
    let mut hint = random::<f64>(&device, &[40], 7).unwrap();
    for _ in 0..3 {
        hint = system.forward(&hint).unwrap();
    }
    let found = largest_eigenvalue_from(&system, &hint, &options).unwrap();
    assert!(
        (found.value - 1.0).abs() < 1e-2 && found.iterations < by_chance.iterations,
        "{found:?} {by_chance:?}"
    );
    // A hint without the largest eigenvector: what A − 1 leaves of a vector.
    let mut without = system.forward(&hint).unwrap();
    vector::axpy((-1.0).into(), &hint, &mut without).unwrap();
    let exact = LanczosOptions { tolerance: 1e-9, ..options };
    let found = largest_eigenvalue_from(&system, &without, &exact).unwrap();
    assert!((found.value - 1.0).abs() < 1e-6, "{found:?}");
    let nothing = Array::zeros(&device, &[40]).unwrap();
    assert_eq!(largest_eigenvalue_from(&system, &nothing, &options).unwrap(), by_chance);
    assert!(largest_eigenvalue_from(&system, &Array::zeros(&device, &[39]).unwrap(), &options).is_err());
    hint.fill(f64::NAN.into()).unwrap();
    assert!(largest_eigenvalue_from(&system, &hint, &options).is_err());
}

#[test]
fn the_estimate_never_exceeds_the_largest_eigenvalue_and_its_bound_holds() {
    let device = device();
    let eigenvalues: Vec<f64> = (0..25).map(|i| 1.0 - i as f64 / 25.0).collect();
    let system = Dense::<f64>::hermitian(&eigenvalues, 9);
    let mut last = 0.0;
    for max_iterations in [1, 2, 5, 10, 40] {
        let options = LanczosOptions { seed: 2, max_iterations, tolerance: 0.0 };
        let found = largest_eigenvalue(&system, &device, &options).unwrap();
        assert!(found.value <= 1.0 + 1e-12 && found.value > last);
        let nearest = eigenvalues.iter().map(|e| (e - found.value).abs()).fold(f64::INFINITY, f64::min);
        assert!(nearest <= found.residual + 1e-12);
        last = found.value;
    }
}
