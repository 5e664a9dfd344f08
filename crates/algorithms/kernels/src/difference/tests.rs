use num_complex::Complex;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayspin_core::C64;
use rayspin_core::Real;
use rayspin_device::Device;

use super::*;

type Case = (&'static [usize], &'static [usize]);

const CASES: [Case; 13] = [
    (&[41, 43, 47], &[0, 1, 2]),
    (&[1], &[0]),
    (&[2], &[0]),
    (&[1, 1, 1], &[0, 1, 2]),
    (&[1, 9, 7], &[0, 1, 2]),
    (&[5, 1, 7], &[0, 1, 2]),
    (&[5, 9, 1], &[0, 1, 2]),
    (&[4, 6, 8], &[2, 0]),
    (&[3, 2, 11, 13], &[0]),
    (&[3, 7, 11, 13], &[1, 2, 3]),
    (&[29, 31, 37], &[0, 1, 2]),
    (&[2, 150, 201], &[0, 1, 2]),
    (&[3, 5], &[]),
];

fn random<R: Real>(len: usize, rng: &mut ChaCha8Rng) -> Vec<Complex<R>> {
    let mut one = || <R as Real>::from_f64(rng.random_range(-1.0..1.0));
    (0..len).map(|_| Complex::new(one(), one())).collect()
}

fn wide<R: Real>(x: &[Complex<R>]) -> Vec<C64> {
    x.iter().map(|v| C64::new(v.re.to_f64(), v.im.to_f64())).collect()
}

fn assert_near<R: Real>(found: &[Complex<R>], expected: &[C64], tolerance: f64, what: &str) {
    let scale: f64 = expected.iter().map(C64::norm_sqr).sum::<f64>().sqrt();
    let apart: f64 = wide(found).iter().zip(expected).map(|(a, b)| (a - b).norm_sqr()).sum();
    assert!(apart.sqrt() <= tolerance * scale, "{what}: {} of {scale}", apart.sqrt());
}

fn variants_match_the_reference<R: Real>() {
    let device = Device::cpu_with_threads(2).unwrap();
    let cpu = device.cpu_side();
    let mut rng = ChaCha8Rng::seed_from_u64(6);
    let nan = Complex::new(R::nan(), R::nan());
    for variant in variants::<R>() {
        for (shape, axes) in CASES {
            let what = format!("{} {} {shape:?} {axes:?}", variant.name, R::NAME);
            let (f, tol) = (&variant.implementation, variant.tolerance);
            let weights: Vec<f64> = axes.iter().map(|_| rng.random_range(0.2..3.0)).collect();
            let (range, list) = layout(shape, axes, &weights).unwrap();
            let len: usize = shape.iter().product();
            let x = random::<R>(len, &mut rng);
            let d = random::<R>(range.iter().product(), &mut rng);

            let mut out = vec![nan; d.len()];
            (f.forward)(cpu, &list, &x, &mut out);
            let expected = reference::forward(shape, axes, &weights, &wide(&x));
            assert_near(&out, &expected, tol, &what);

            let mut out = vec![nan; len];
            (f.adjoint)(cpu, &list, &d, &mut out);
            assert_near(&out, &reference::adjoint(shape, axes, &weights, &wide(&d)), tol, &what);

            let mut out = vec![nan; len];
            (f.normal)(cpu, &list, &x, &mut out);
            assert_near(&out, &reference::adjoint(shape, axes, &weights, &expected), tol, &what);
        }
    }
}

#[test]
fn every_variant_matches_the_reference() {
    variants_match_the_reference::<f32>();
    variants_match_the_reference::<f64>();
}

#[test]
fn a_ramp_has_constant_differences_and_no_curvature_inside() {
    let device = Device::cpu_with_threads(2).unwrap();
    let ramp: Vec<_> = (0..6 * 5).map(|i| Complex::new((3 * (i / 5) + i % 5) as f64, 0.0)).collect();
    let x = Array::from_vec(&device, &[6, 5], ramp).unwrap();
    let mut d = Array::zeros(&device, &range(&[6, 5], &[0, 1]).unwrap()).unwrap();
    forward(&[0, 1], &[1.0; 2], &x, &mut d).unwrap();
    assert_eq!(d.cpu()[2 * 5 + 2].re, 3.0);
    assert_eq!(d.cpu()[5 * 5 + 2].re, 0.0);
    assert_eq!(d.cpu()[30 + 2 * 5 + 2].re, 1.0);
    assert_eq!(d.cpu()[30 + 2 * 5 + 4].re, 0.0);
    let mut out = Array::zeros(&device, &[6, 5]).unwrap();
    normal(&[0, 1], &[1.0; 2], &x, &mut out).unwrap();
    assert_eq!(out.cpu()[2 * 5 + 2].re, 0.0);
    assert_eq!(out.cpu()[0].re, -4.0);
    let mut back = Array::zeros(&device, &[6, 5]).unwrap();
    adjoint(&[0, 1], &[1.0; 2], &d, &mut back).unwrap();
    assert_eq!(back.cpu(), out.cpu());
}

#[test]
fn mismatches_are_named() {
    let device = Device::cpu_with_threads(1).unwrap();
    let x = Array::<Complex<f32>>::zeros(&device, &[4, 6]).unwrap();
    let mut d = Array::zeros(&device, &[2, 4, 6]).unwrap();
    assert!(forward(&[0, 1], &[1.0; 2], &x, &mut d).is_ok());
    assert!(matches!(forward(&[0, 2], &[1.0; 2], &x, &mut d), Err(Error::Value { .. })));
    assert!(matches!(forward(&[1, 1], &[1.0; 2], &x, &mut d), Err(Error::Value { .. })));
    assert!(matches!(forward(&[1], &[1.0], &x, &mut d), Err(Error::Shape { .. })));
    let mut empty = Array::zeros(&device, &[4, 0]).unwrap();
    assert!(matches!(forward(&[0, 1], &[1.0], &x, &mut d), Err(Error::Value { .. })));
    assert!(matches!(forward(&[0, 1], &[1.0, f64::NAN], &x, &mut d), Err(Error::Value { .. })));
    normal(&[0, 1], &[1.0; 2], &Array::<Complex<f32>>::zeros(&device, &[4, 0]).unwrap(), &mut empty).unwrap();
}
