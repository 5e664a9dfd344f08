#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayspin_device::Device;

use super::*;

/// Coils, coils made, lines, positions.
const SIZES: [[usize; 4]; 8] = [
    [1, 1, 1, 1],
    [5, 3, 1009, 1],
    [8, 8, 4099, 1],
    [32, 12, 70, 33],
    [7, 17, 1, 64],
    [2, 1, 3000, 1],
    [6, 5, 41, 7],
    [9, 4, 3, 1031],
];

fn random<R: Real>(len: usize, rng: &mut ChaCha8Rng) -> Vec<Complex<R>> {
    let mut one = || <R as Real>::from_f64(rng.random_range(-1.0..1.0));
    (0..len).map(|_| Complex::new(one(), one())).collect()
}

fn wide<R: Real>(x: &[Complex<R>]) -> Vec<C64> {
    x.iter().map(|v| C64::new(v.re.to_f64(), v.im.to_f64())).collect()
}

#[track_caller]
fn near(found: &[C64], expected: &[C64], tolerance: f64, what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    let scale: f64 = expected.iter().map(C64::norm_sqr).sum::<f64>().sqrt();
    let apart: f64 = found.iter().zip(expected).map(|(a, b)| (a - b).norm_sqr()).sum::<f64>().sqrt();
    assert!(apart <= tolerance * scale, "{what}: {apart} of {scale}");
}

fn variants_match_the_reference<R: Real>() {
    let device = Device::cpu_with_threads(2).unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(4);
    for variant in variants::<R>() {
        for [coils, kept, lines, positions] in SIZES {
            let points = lines * positions;
            let matrices = random::<R>(kept * coils * positions, &mut rng);
            let samples = random::<R>(coils * points, &mut rng);
            let mut out = vec![Complex::new(R::nan(), R::nan()); kept * points];
            let input = Input { matrices: &matrices, samples: &samples, coils, positions };
            (variant.implementation)(device.cpu_side(), &input, out.chunks_mut(points).collect());
            let wanted = reference::mix(&wide(&matrices), &wide(&samples), coils, positions);
            near(&wide(&out), &wanted, variant.tolerance, variant.name);
        }
    }
}

#[test]
fn every_variant_matches_the_reference() {
    variants_match_the_reference::<f32>();
    variants_match_the_reference::<f64>();
}

fn mixes<R: Real>(device: &Device) {
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    for [coils, kept, lines, positions] in SIZES {
        let points = lines * positions;
        let matrices = random::<R>(kept * coils * positions, &mut rng);
        let samples = random::<R>(coils * points, &mut rng);
        let wanted = reference::mix(&wide(&matrices), &wide(&samples), coils, positions);
        let matrices = Array::from_slice(device, &[kept, coils, positions], &matrices).unwrap();
        let samples = Array::from_slice(device, &[coils, lines, positions], &samples).unwrap();
        let rows = kept / 3..kept;
        // A gap on either side stays as it was.
        let (before, stride) = (3, points + 5);
        let mut out = Array::zeros(device, &[rows.len(), stride]).unwrap();
        out.fill(Complex::new(R::nan(), R::nan())).unwrap();
        mix(&matrices, rows.clone(), &samples, &mut out, before).unwrap();
        let out = wide(&out.to_vec().unwrap());
        let tolerance = 4.0 * <R as Real>::EPSILON.to_f64();
        for (row, out) in rows.zip(out.chunks(stride)) {
            let what = format!("{} row {row} of {kept} from {coils} at {positions}", device.describe());
            near(&out[before..before + points], &wanted[row * points..(row + 1) * points], tolerance, &what);
            assert!(out[..before].iter().chain(&out[before + points..]).all(|v| v.re.is_nan()), "{what}");
        }
    }
}

#[test]
fn rows_of_coils_are_mixed_on_every_device() {
    for device in rayspin_emu::devices().unwrap() {
        mixes::<f32>(&device);
        mixes::<f64>(&device);
    }
}

#[test]
fn covariances_are_those_of_each_position() {
    for device in rayspin_emu::devices().unwrap() {
        let mut rng = ChaCha8Rng::seed_from_u64(6);
        for [coils, _, lines, positions] in SIZES {
            let what = format!("{} {coils} coils {lines} x {positions}", device.describe());
            let samples = random::<f32>(coils * lines * positions, &mut rng);
            let wanted = reference::covariances(&wide(&samples), coils, positions);
            let samples = Array::from_slice(&device, &[coils, lines, positions], &samples).unwrap();
            let mut out = Array::zeros(&device, &[positions, coils, coils]).unwrap();
            out.fill(C64::new(f64::NAN, 0.0)).unwrap();
            covariances(&samples, &mut out, false).unwrap();
            let once = out.to_vec().unwrap();
            near(&once, &wanted, 1e-12, &what);
            covariances(&samples, &mut out, true).unwrap();
            let twice: Vec<C64> = wanted.iter().map(|v| v * 2.0).collect();
            near(&out.to_vec().unwrap(), &twice, 1e-12, &what);
            for matrix in once.chunks(coils * coils) {
                let at = |a: usize, b: usize| matrix[a * coils + b];
                assert!((0..coils).all(|a| (0..coils).all(|b| at(a, b) == at(b, a).conj())), "{what}");
            }
        }
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let device = Device::cpu_with_threads(1).unwrap();
    let zeros = |shape: &[usize]| Array::<C32>::zeros(&device, shape).unwrap();
    let (matrices, samples) = (zeros(&[3, 4, 5]), zeros(&[4, 2, 5]));
    let run = |rows, samples: &Array<C32>, shape: &[usize], at| {
        mix(&matrices, rows, samples, &mut zeros(shape), at)
    };
    run(0..3, &samples, &[3, 10], 0).unwrap();
    run(1..1, &samples, &[0, 10], 0).unwrap();
    assert!(run(0..4, &samples, &[4, 10], 0).is_err());
    assert!(run(0..3, &samples, &[3, 10], 1).is_err());
    assert!(run(0..3, &samples, &[2, 15], 0).is_err());
    assert!(run(0..3, &zeros(&[4, 7]), &[3, 10], 0).is_err());
    assert!(run(0..3, &zeros(&[3, 10]), &[3, 10], 0).is_err());
    assert!(mix(&zeros(&[3, 4]), 0..3, &samples, &mut zeros(&[3, 10]), 0).is_err());
    let mut out = Array::zeros(&device, &[5, 4, 4]).unwrap();
    covariances(&samples, &mut out, false).unwrap();
    assert!(covariances(&zeros(&[4, 2, 6]), &mut out, false).is_err());
    assert!(covariances(&zeros(&[3, 2, 5]), &mut out, false).is_err());
}
