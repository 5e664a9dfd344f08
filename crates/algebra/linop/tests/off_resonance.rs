//! Encoding in an inhomogeneous field: the laws, and agreement with exact sums, on every device.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use ndarray::Array2;
use num_complex::Complex;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayspin_core::{C64, Real, Trajectory};
use rayspin_device::{Array, Device};
use rayspin_kernels::off_resonance::{Interpolator, Segments, reference};
use rayspin_kernels::toeplitz::Series;
use rayspin_kernels::{nufft, vector};
use rayspin_linop::laws::{check, check_within, tolerance};
use rayspin_linop::*;

const RANGE: [f64; 2] = [-70.0, 110.0];
const TIMES: [f64; 2] = [-1e-3, 9e-3];

struct Case {
    trajectory: Trajectory,
    times: Vec<f64>,
    matrix: Vec<usize>,
    field: Vec<f64>,
}

fn case(matrix: &[usize], samples: usize, seed: u64) -> Case {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let points = Array2::from_shape_fn((samples, matrix.len()), |(_, d)| {
        rng.random_range(-0.5..0.5) * matrix[matrix.len() - 1 - d] as f64
    });
    let step = (TIMES[1] - TIMES[0]) / 24.0;
    let times = (0..samples).map(|m| TIMES[0] + (m % 25) as f64 * step).collect();
    let voxels: usize = matrix.iter().product();
    // Numbers that f32 holds exactly.
    let field = (0..voxels).map(|_| f64::from(rng.random_range(RANGE[0] as f32..RANGE[1] as f32)));
    let trajectory = Trajectory::from_cycles_per_fov(points).unwrap();
    Case { trajectory, times, matrix: matrix.to_vec(), field: field.collect() }
}

fn apart<R: Real>(found: &Array<Complex<R>>, exact: &[C64]) -> f64 {
    let found = found.to_vec().unwrap();
    let wide = |v: &Complex<R>| C64::new(Real::to_f64(v.re), Real::to_f64(v.im));
    let gap: f64 = found.iter().zip(exact).map(|(a, b)| (wide(a) - b).norm_sqr()).sum();
    (gap / exact.iter().map(C64::norm_sqr).sum::<f64>()).sqrt()
}

fn operators<R: Real>(device: &Device, cases: &[(&[usize], usize)], tolerances: &[f64]) {
    for (seed, &(matrix, samples)) in cases.iter().enumerate() {
        let seed = seed as u64;
        let Case { trajectory, times, matrix, field } = case(matrix, samples, seed);
        let map: Vec<R> = field.iter().map(|&f| <R as Real>::from_f64(f)).collect();
        let map = std::sync::Arc::new(Array::from_vec(device, &matrix, map).unwrap());
        let coils = [&[2], &matrix[..]].concat();
        for &epsilon in tolerances {
            let options = nufft::Options::tolerance((0.1 * epsilon).max(2e-6));
            let plan =
                std::sync::Arc::new(nufft::Nufft::new(device, &trajectory, &matrix, &options).unwrap());
            let interpolator = Interpolator::new(RANGE, TIMES, epsilon).unwrap();
            let segments = std::sync::Arc::new(Segments::<R>::new(device, &interpolator, &times).unwrap());
            let encode = OffResonanceNufft::new(&[2], plan.clone(), segments.clone(), map.clone()).unwrap();
            // At any tolerance the adjoint belongs to the approximate encoding. Rounding grows with the gain.
            check_within(&encode, device, seed, 4.0 * tolerance::<R>()).unwrap();
            let x = random::<R>(device, &coils, seed + 5).unwrap();
            let wide = |v: &Complex<R>| C64::new(Real::to_f64(v.re), Real::to_f64(v.im));
            let host: Vec<C64> = x.to_vec().unwrap().iter().map(wide).collect();
            let exact = reference::forward(&trajectory, &times, &matrix, &field, &host).unwrap();
            let error = apart(&encode.forward(&x).unwrap(), &exact);
            assert!(error < 2.0 * epsilon + 4e-6, "{matrix:?} {epsilon:e}: {error:.2e}");
            let exact = reference::adjoint(&trajectory, &times, &matrix, &field, &exact).unwrap();
            let error = apart(&encode.normal(&x).unwrap(), &exact);
            assert!(error < 4.0 * epsilon + 8e-6, "{matrix:?} {epsilon:e}: {error:.2e}");

            let width = RANGE[1] - RANGE[0];
            let differences = Interpolator::new([-width, width], TIMES, epsilon).unwrap();
            assert!(differences.segments() > interpolator.segments());
            let toeplitz =
                OffResonanceToeplitz::<R>::exact_segments(device, &trajectory, &times, &differences, &matrix);
            let (moments, toeplitz) = toeplitz.unwrap();
            let toeplitz = std::sync::Arc::new(toeplitz);
            let normal = OffResonanceToeplitz::new(&[2], &moments, toeplitz.clone(), map.clone()).unwrap();
            check_within(&normal, device, seed, 4.0 * tolerance::<R>()).unwrap();
            let error = apart(&normal.forward(&x).unwrap(), &exact);
            assert!(error < 2.0 * epsilon + 4e-6, "{matrix:?} {epsilon:e}: {error:.2e}");

            // With coils: the same as coil by coil.
            let maps = std::sync::Arc::new(random::<R>(device, &coils, seed + 9).unwrap());
            let sense = Sense::new(maps.clone()).unwrap();
            let whole = OffResonanceToeplitz::sense(maps.clone(), &moments, toeplitz, map.clone()).unwrap();
            check_within(&whole, device, seed, 4.0 * tolerance::<R>()).unwrap();
            let by_parts =
                Sense::new(maps).unwrap().adjoint_op().compose(normal).unwrap().compose(sense).unwrap();
            let one = random::<R>(device, &matrix, seed + 11).unwrap();
            let mut gap = whole.forward(&one).unwrap();
            let other = by_parts.forward(&one).unwrap();
            vector::axpy((-1.0).into(), &other, &mut gap).unwrap();
            let size = vector::norm_squared(&other).unwrap();
            assert!((vector::norm_squared(&gap).unwrap() / size).sqrt() < tolerance::<R>());
        }
    }
}

#[test]
fn encoding_with_off_resonance_obeys_the_laws_and_agrees_with_exact_sums() {
    let cpu = Device::cpu_with_threads(2).unwrap();
    let cases = [(&[9][..], 60), (&[1, 7], 50), (&[12, 11], 150), (&[4, 5, 3], 90)];
    operators::<f32>(&cpu, &cases, &[1e-2, 1e-4]);
    operators::<f64>(&cpu, &cases, &[1e-3, 1e-5]);
    for device in rayspin_emu::devices().unwrap() {
        operators::<f32>(&device, &[(&[8, 9], 80)], &[1e-2]);
    }
}

#[test]
fn an_even_field_changes_nothing() {
    for device in rayspin_emu::devices().unwrap() {
        let Case { trajectory, times, matrix, .. } = case(&[8, 9], 80, 3);
        let options = nufft::Options::tolerance(1e-4);
        let plan =
            std::sync::Arc::new(nufft::Nufft::<f32>::new(&device, &trajectory, &matrix, &options).unwrap());
        let interpolator = Interpolator::new([0.0, 0.0], TIMES, 1e-3).unwrap();
        let segments = Segments::new(&device, &interpolator, &times).unwrap();
        let field = Array::<f32>::zeros(&device, &matrix).unwrap();
        let off_resonant = OffResonanceNufft::new(&[], plan.clone(), segments, field).unwrap();
        let on_resonant = Nufft::new(&[], plan);
        let x = random::<f32>(&device, &matrix, 1).unwrap();
        let (found, wanted) = (off_resonant.forward(&x).unwrap(), on_resonant.forward(&x).unwrap());
        assert_eq!(found.to_vec().unwrap(), wanted.to_vec().unwrap());
        let (found, wanted) = (off_resonant.adjoint(&wanted).unwrap(), on_resonant.adjoint(&wanted).unwrap());
        assert_eq!(found.to_vec().unwrap(), wanted.to_vec().unwrap());
    }
}

#[test]
fn mismatches_are_named() {
    let device = Device::cpu_with_threads(1).unwrap();
    let Case { trajectory, times, matrix, .. } = case(&[6, 5], 30, 3);
    let plan = |device: &Device| {
        nufft::Nufft::<f32>::new(device, &trajectory, &matrix, &nufft::Options::tolerance(1e-3)).unwrap()
    };
    let interpolator = Interpolator::new(RANGE, TIMES, 1e-2).unwrap();
    let segments = |times: &[f64]| Segments::<f32>::new(&device, &interpolator, times).unwrap();
    let field = |shape: &[usize]| Array::<f32>::zeros(&device, shape).unwrap();
    let wrong = OffResonanceNufft::new(&[], plan(&device), segments(&times), field(&[5, 6]));
    assert_eq!(wrong.err().unwrap().to_string(), "field map: expected shape [6, 5], found [5, 6]");
    let wrong = OffResonanceNufft::new(&[], plan(&device), segments(&times[1..]), field(&[6, 5]));
    assert!(wrong.err().unwrap().to_string().starts_with("times of the samples"));
    assert!(Segments::<f32>::new(&device, &interpolator, &[]).is_err());
    assert!(Segments::<f32>::new(&device, &interpolator, &[f64::NAN]).is_err());
    let none = Series::<f32>::new(&device, &[6, 5], 0, None).unwrap();
    assert!(OffResonanceToeplitz::new(&[], &[], none, field(&[6, 5])).is_err());
    let missing = Series::<f32>::new(&device, &[6, 5], 2, None).unwrap();
    let of_two = OffResonanceToeplitz::new(&[], &[0.0, 1e-3], missing, field(&[6, 5])).unwrap();
    let error = of_two.forward(&random(&device, &[6, 5], 1).unwrap()).unwrap_err().to_string();
    assert!(error.contains("kernels of a series"), "{error}");
    let encode = OffResonanceNufft::new(&[3], plan(&device), segments(&times), field(&[6, 5])).unwrap();
    let error = encode.forward(&random(&device, &[2, 6, 5], 1).unwrap()).unwrap_err().to_string();
    assert!(error.starts_with("off-resonance NUFFT: input of forward"), "{error}");
    check(&encode, &device, 2).unwrap();
}
