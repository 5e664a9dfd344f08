use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayspin_core::C64;
use rayspin_device::cpu::simd::levels;

use super::*;

const SIZES: [usize; 10] = [0, 1, 2, 7, 8, 17, 4096, 4097, 3 * 4096 + 1531, 17 * 4096 + 5];

fn random<R: Real>(len: usize, rng: &mut ChaCha8Rng) -> Vec<Complex<R>> {
    let mut one = || <R as Real>::from_f64(rng.random_range(-1.0..1.0));
    (0..len).map(|_| Complex::new(one(), one())).collect()
}

fn wide<R: Real>(x: &[Complex<R>]) -> Vec<C64> {
    x.iter().map(|v| C64::new(v.re.to_f64(), v.im.to_f64())).collect()
}

fn assert_near<R: Real>(found: &[Complex<R>], expected: &[C64], tolerance: f64, what: &str) {
    let scale = reference::norm_squared(expected).sqrt();
    let apart: f64 = wide(found).iter().zip(expected).map(|(a, b)| (a - b).norm_sqr()).sum();
    assert!(apart.sqrt() <= tolerance * scale, "{what}: {} of {scale}", apart.sqrt());
}

fn variants_match_the_reference<R: Real>() {
    let device = Device::cpu_with_threads(2).unwrap();
    let cpu = device.cpu_side();
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    for variant in variants::<R>() {
        for len in SIZES {
            let what = format!("{} {} {len}", variant.name, R::NAME);
            let (f, tol) = (&variant.launch, variant.tolerance);
            let [x, y, p, q] = std::array::from_fn(|_| random::<R>(len, &mut rng));
            let [wx, wy, wp, wq] = [&x, &y, &p, &q].map(|v| wide(v));
            let scale = (reference::norm_squared(&wx) * reference::norm_squared(&wy)).sqrt();
            let apart = (f.dot)(cpu, &x, &y) - reference::dot(&wx, &wy);
            assert!(apart.norm() <= tol * scale, "{what}: dot");
            let apart = (f.norm_squared)(cpu, &x) - reference::norm_squared(&wx);
            assert!(apart.abs() <= tol * reference::norm_squared(&wx), "{what}: norm");
            for a in [C64::new(0.7, 0.0), C64::new(-0.3, 1.25)] {
                let mut out = y.clone();
                (f.axpy)(cpu, narrow(a), &x, &mut out);
                assert_near(&out, &reference::axpy(a, &wx, &wy), tol, &what);
                let mut out = y.clone();
                (f.xpby)(cpu, &x, narrow(a), &mut out);
                assert_near(&out, &reference::xpby(&wx, a, &wy), tol, &what);
                let mut out = y.clone();
                (f.scale)(cpu, narrow(a), &mut out);
                let zeros = vec![C64::default(); len];
                assert_near(&out, &reference::axpy(a, &wy, &zeros), tol, &what);
            }
            let (mut new_x, mut new_r) = (x.clone(), y.clone());
            let norm = (f.cg_update)(cpu, <R as Real>::from_f64(0.37), &p, &q, &mut new_x, &mut new_r);
            let (rx, rr, rn) = reference::cg_update(0.37, &wp, &wq, &wx, &wy);
            assert_near(&new_x, &rx, tol, &what);
            assert_near(&new_r, &rr, tol, &what);
            assert!((norm - rn).abs() <= 2.0 * tol * rn, "{what}: cg_update {norm} {rn}");
        }
    }
}

fn products_match_the_reference<R: Real>() {
    let device = Device::cpu_with_threads(2).unwrap();
    let cpu = device.cpu_side();
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    for variant in variants::<R>() {
        for (repeats, len) in [(1, 1), (1, 4099), (3, 1), (5, 17), (3, 2731), (2, 4096), (4000, 3)] {
            let what = format!("{} {} {repeats}×{len}", variant.name, R::NAME);
            let (f, tol) = (&variant.launch, variant.tolerance);
            let d = random::<R>(len, &mut rng);
            let x = random::<R>(repeats * len, &mut rng);
            let poison = vec![Complex::new(R::nan(), R::nan()); x.len()];
            let (wd, wx) = (wide(&d), wide(&x));
            let mut out = poison.clone();
            (f.multiply)(cpu, &d, &x, &mut out);
            assert_near(&out, &reference::multiply(&wd, &wx), tol, &what);
            let mut out = poison.clone();
            (f.multiply_conj)(cpu, &d, &x, &mut out);
            assert_near(&out, &reference::multiply_conj(&wd, &wx), tol, &what);
            let mut out = poison.clone();
            let w: Vec<R> = d.iter().map(|d| d.re).collect();
            let ww: Vec<C64> = wd.iter().map(|d| d.re.into()).collect();
            (f.weight)(cpu, &w, &x, &mut out);
            assert_near(&out, &reference::multiply(&ww, &wx), tol, &what);
        }
    }
}

#[test]
fn every_variant_matches_the_reference() {
    variants_match_the_reference::<f32>();
    variants_match_the_reference::<f64>();
    products_match_the_reference::<f32>();
    products_match_the_reference::<f64>();
}

#[test]
fn sums_have_the_same_bits_for_any_number_of_threads_and_any_vectors() {
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let len = 19 * 4096 + 77;
    let vectors: [Vec<Complex<f32>>; 4] = std::array::from_fn(|_| random(len, &mut rng));
    let bits = |device: Device| {
        let [x, y, mut z, mut r] = vectors.clone().map(|v| Array::from_vec(&device, &[len], v).unwrap());
        let d = dot(&x, &y).unwrap();
        let n = norm_squared(&x).unwrap();
        let u = cg_update(0.3, &x, &y, &mut z, &mut r).unwrap();
        assert_eq!(u.to_bits(), norm_squared(&r).unwrap().to_bits());
        [d.re, d.im, n, u].map(f64::to_bits)
    };
    let one = bits(Device::cpu_with_threads(1).unwrap());
    for threads in [2, 3, 5] {
        assert_eq!(bits(Device::cpu_with_threads(threads).unwrap()), one, "{threads} threads");
    }
    for level in levels() {
        assert_eq!(bits(Device::cpu_with_level(2, level).unwrap()), one, "{level:?}");
    }
}

#[test]
fn long_sums_of_small_numbers_do_not_stall() {
    let device = Device::cpu_with_threads(2).unwrap();
    let len = 1 << 22;
    let x = Array::from_vec(&device, &[len], vec![Complex::new(0.1f32, 0.0); len]).unwrap();
    let exact = len as f64 * f64::from(0.1f32).powi(2);
    assert!((norm_squared(&x).unwrap() / exact - 1.0).abs() < 1e-12);
    assert!((dot(&x, &x).unwrap().re / exact - 1.0).abs() < 1e-12);
}

#[test]
fn mismatches_are_named() {
    let device = Device::cpu_with_threads(1).unwrap();
    let other = Device::cpu_with_threads(1).unwrap();
    let x = Array::<Complex<f32>>::zeros(&device, &[4, 6]).unwrap();
    let mut y = Array::zeros(&device, &[6, 4]).unwrap();
    assert!(matches!(dot(&x, &y), Err(Error::Shape { .. })));
    assert!(axpy(1.0.into(), &x, &mut y).is_err());
    let w = Array::<f32>::zeros(&device, &[4]).unwrap();
    let mut z = Array::zeros(&device, &[4, 6]).unwrap();
    let refused = weight(&w, &x, &mut z).unwrap_err();
    assert_eq!(refused.to_string(), "weight: factors: expected shape the trailing axes of [4, 6], found [4]");
    let elsewhere = Array::<Complex<f32>>::zeros(&other, &[4, 6]).unwrap();
    assert!(matches!(dot(&x, &elsewhere), Err(Error::Value { .. })));
    let mut empty = Array::<Complex<f32>>::zeros(&device, &[3, 0]).unwrap();
    let none = Array::<Complex<f32>>::zeros(&device, &[0]).unwrap();
    let copy = empty.try_clone().unwrap();
    multiply(&none, &copy, &mut empty).unwrap();
}

#[test]
fn parts_are_copied_and_ranges_checked() {
    let device = Device::cpu_with_threads(2).unwrap();
    let len = 100_000;
    let from = Array::from_vec(&device, &[len], (0..len as u64).collect()).unwrap();
    let mut to = Array::<u64>::zeros(&device, &[2, len]).unwrap();
    copy_part(&from, 3, &mut to, len - 5, len - 3).unwrap();
    assert_eq!(to.cpu()[len - 6..len - 3], [0, 3, 4]);
    assert_eq!(to.cpu()[2 * len - 10..2 * len - 7], [len as u64 - 2, len as u64 - 1, 0]);
    assert!(copy_part(&from, 1, &mut to, 0, len).is_err());
    assert!(copy_part(&from, 0, &mut to, len + 1, len).is_err());
    assert!(copy_part(&from, usize::MAX, &mut to, 0, 2).is_err());
}

#[test]
fn the_first_broken_number_is_found() {
    let device = Device::cpu_with_threads(2).unwrap();
    for len in [10, 80_000] {
        let mut x = Array::from_vec(&device, &[len], vec![Complex::new(1e38f32, -1e-38); len]).unwrap();
        assert!(expect_finite("data", &x).is_ok());
        x.cpu_mut()[len - 2].im = f32::NEG_INFINITY;
        x.cpu_mut()[len - 1].re = f32::NAN;
        let error = expect_finite("data", &x).unwrap_err();
        assert!(matches!(error, Error::NotFinite { index, .. } if index == len - 2), "{error}");
    }
}
