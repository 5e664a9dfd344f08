//! Non-uniform operators: the laws, agreement of the fast with the exact, and of the convolution with both.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

use ndarray::Array2;
use num_complex::Complex;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayspin_core::{Real, Trajectory};
use rayspin_device::{Array, Device};
use rayspin_kernels::{nufft, vector};
use rayspin_linop::laws::{check, check_positive, check_within, tolerance};
use rayspin_linop::*;

const MATRICES: [&[usize]; 6] = [&[9], &[1, 7], &[12, 11], &[16, 10], &[4, 7, 6], &[1, 8, 5]];

/// Uniform over the k-space of the matrix, some points beyond its edge.
fn points(samples: usize, matrix: &[usize], seed: u64) -> Trajectory {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let dims = matrix.len();
    let points = Array2::from_shape_fn((samples, dims), |(_, d)| {
        rng.random_range(-0.55..0.55) * matrix[dims - 1 - d] as f64
    });
    Trajectory::from_cycles_per_fov(points).unwrap()
}

fn plan<R: Real>(
    device: &Device,
    trajectory: &Trajectory,
    matrix: &[usize],
    tolerance: f64,
) -> nufft::Nufft<R> {
    nufft::Nufft::new(device, trajectory, matrix, &nufft::Options::tolerance(tolerance)).unwrap()
}

fn apart<R: Real>(a: &Array<Complex<R>>, b: &Array<Complex<R>>) -> f64 {
    let mut d = a.try_clone().unwrap();
    vector::axpy((-1.0).into(), b, &mut d).unwrap();
    (vector::norm_squared(&d).unwrap() / vector::norm_squared(b).unwrap()).sqrt()
}

fn transforms<R: Real>(finest: f64) {
    let device = Device::cpu_with_threads(2).unwrap();
    for (seed, matrix) in MATRICES.into_iter().enumerate() {
        let seed = seed as u64;
        for (samples, batch) in [(1, &[][..]), (53, &[3]), (200, &[2, 2])] {
            let trajectory = points(samples, matrix, seed);
            let exact = Nudft::<R>::new(batch, trajectory.clone(), matrix).unwrap();
            // The exact transform's own accuracy, of phases in the storage type, bounds how well its laws
            // hold.
            check_within(&exact, &device, seed, 40.0 * finest.max(tolerance::<R>())).unwrap();
            for epsilon in [1e-2, 1e-4, finest] {
                let fast = Nufft::new(batch, plan::<R>(&device, &trajectory, matrix, epsilon));
                assert_eq!((fast.domain(), fast.range()), (exact.domain(), exact.range()));
                // At any tolerance the adjoint belongs to the approximate transform.
                check(&fast, &device, seed).unwrap();
                let x = random::<R>(&device, fast.domain(), seed + 7).unwrap();
                let error = apart(&fast.forward(&x).unwrap(), &exact.forward(&x).unwrap());
                assert!(error < 10.0 * epsilon, "{matrix:?} {samples} samples, ε {epsilon:e}: {error:.2e}");
            }
        }
    }
}

#[test]
fn fast_and_exact_transforms_obey_the_laws_and_agree() {
    transforms::<f32>(1e-5);
    transforms::<f64>(1e-11);
}

fn convolutions<R: Real>(allowed: f64) {
    let device = Device::cpu_with_threads(2).unwrap();
    for (seed, matrix) in MATRICES.into_iter().enumerate() {
        let seed = seed as u64;
        let trajectory = points(150, matrix, seed);
        let w: Vec<R> =
            random::<R>(&device, &[150], seed).unwrap().cpu().iter().map(|v| v.re * v.re).collect();
        let w = Array::from_vec(&device, &[150], w).unwrap();
        let t = ToeplitzNormal::exact(&device, &[], &trajectory, Some(&w), matrix).unwrap();
        check_positive(&t, &device, seed, tolerance::<R>()).unwrap();
        let exact = Nudft::<R>::new(&[], trajectory.clone(), matrix).unwrap();
        let weighted = Diagonal::real(&[150], roots(&device, &w)).unwrap().compose(exact).unwrap();
        let x = random::<R>(&device, matrix, seed + 7).unwrap();
        let error = apart(&t.forward(&x).unwrap(), &weighted.normal(&x).unwrap());
        assert!(error < allowed, "{matrix:?}: {error:.2e}");

        let coils = [&[3], matrix].concat();
        let batched = ToeplitzNormal::new(&[3], t.toeplitz().clone());
        check(&batched, &device, seed).unwrap();
        let maps = std::sync::Arc::new(random::<R>(&device, &coils, seed + 9).unwrap());
        let whole = SenseToeplitz::new(maps.clone(), t.toeplitz().clone()).unwrap();
        check_positive(&whole, &device, seed, tolerance::<R>()).unwrap();
        let sense = || Sense::new(maps.clone()).unwrap();
        let by_parts = sense().adjoint_op().compose(batched).unwrap().compose(sense()).unwrap();
        let error = apart(&whole.forward(&x).unwrap(), &by_parts.forward(&x).unwrap());
        assert!(error < tolerance::<R>(), "{matrix:?}: {error:.2e}");

        let fast = Nufft::new(&[3], plan::<R>(&device, &trajectory, matrix, allowed));
        let encode = Diagonal::real(&[3, 150], roots(&device, &w)).unwrap();
        let encode = encode.compose(fast).unwrap().compose(sense()).unwrap();
        assert_eq!(encode.name(), "diagonal ∘ NUFFT ∘ SENSE");
        let coilwise = SenseNufft::new(maps.clone(), plan::<R>(&device, &trajectory, matrix, allowed));
        let coilwise = coilwise.unwrap();
        check(&coilwise, &device, seed).unwrap();
        let weigh = Diagonal::real(&[3, 150], roots(&device, &w)).unwrap();
        let error =
            apart(&weigh.compose(coilwise).unwrap().forward(&x).unwrap(), &encode.forward(&x).unwrap());
        assert!(error < tolerance::<R>(), "{matrix:?}: {error:.2e}");
        check(&encode, &device, seed).unwrap();
        let error = apart(&whole.forward(&x).unwrap(), &encode.normal(&x).unwrap());
        assert!(error < 10.0 * allowed, "{matrix:?}: {error:.2e}");
    }
}

fn roots<R: Real>(device: &Device, w: &Array<R>) -> Array<R> {
    Array::from_vec(device, w.shape(), w.cpu().iter().map(|w| w.sqrt()).collect()).unwrap()
}

#[test]
fn convolutions_are_the_normal_operators_of_the_transforms() {
    convolutions::<f32>(1e-5);
    convolutions::<f64>(1e-11);
}

#[test]
fn mismatches_are_named() {
    let device = Device::cpu_with_threads(1).unwrap();
    let trajectory = points(20, &[6, 5], 1);
    assert!(Nudft::<f32>::new(&[], trajectory.clone(), &[6]).is_err());
    let fast = Nufft::new(&[2], plan::<f32>(&device, &trajectory, &[6, 5], 1e-4));
    let error = fast.forward(&random(&device, &[3, 6, 5], 1).unwrap()).unwrap_err();
    assert_eq!(error.to_string(), "NUFFT: input of forward: expected shape [2, 6, 5], found [3, 6, 5]");
    let t = ToeplitzNormal::<f32>::exact(&device, &[], &trajectory, None, &[6, 5]).unwrap();
    let maps = random::<f32>(&device, &[2, 5, 6], 1).unwrap();
    let wrong = SenseNufft::new(maps, plan::<f32>(&device, &trajectory, &[6, 5], 1e-4));
    let error = wrong.err().unwrap().to_string();
    assert_eq!(error, "coil sensitivities, [coil, matrix…]: matrix: expected shape [6, 5], found [5, 6]");
    let maps = random::<f32>(&device, &[2, 5, 6], 1).unwrap();
    assert!(SenseToeplitz::new(maps, t.toeplitz().clone()).is_err());
    let w = Array::zeros(&device, &[19]).unwrap();
    assert!(ToeplitzNormal::<f32>::exact(&device, &[], &trajectory, Some(&w), &[6, 5]).is_err());
}

#[test]
fn type_3_obeys_the_laws() {
    fn transforms<R: Real>(tolerances: &[f64]) {
        let device = Device::cpu_with_threads(2).unwrap();
        for dims in 1..=3 {
            let mut rng = ChaCha8Rng::seed_from_u64(dims as u64);
            let mut points = |count: usize, far: f64| {
                Array2::from_shape_fn((count, dims), |_| far + rng.random_range(-1.5..1.5))
            };
            for (positions, frequencies, batch) in [(1, 1, &[][..]), (40, 61, &[3]), (55, 30, &[2, 2])] {
                let (x, s) = (points(positions, 4.0), points(frequencies, -60.0));
                for &tolerance in tolerances {
                    let options = nufft::Options::tolerance(tolerance);
                    let x = nufft::Coordinates::rows("positions", x.view()).unwrap();
                    let s = nufft::Coordinates::rows("frequencies", s.view()).unwrap();
                    let plan = nufft::Type3::<R>::new(&device, x, s, &options).unwrap();
                    let op = NufftType3::new(batch, plan);
                    assert_eq!(op.domain(), [batch, &[positions]].concat());
                    check(&op, &device, dims as u64).unwrap();
                }
            }
        }
    }
    transforms::<f32>(&[1e-2, 1e-4]);
    transforms::<f64>(&[1e-2, 1e-9]);
}
