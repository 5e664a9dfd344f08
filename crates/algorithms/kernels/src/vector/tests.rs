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
            let (f, tol) = (&variant.implementation, variant.tolerance);
            let [x, y, p, q] = std::array::from_fn(|_| random::<R>(len, &mut rng));
            let [wx, wy, wp, wq] = [&x, &y, &p, &q].map(|v| wide(v));
            let scale = (reference::norm_squared(&wx) * reference::norm_squared(&wy)).sqrt();
            let apart = (f.dot)(cpu, &x, &y) - reference::dot(&wx, &wy);
            assert!(apart.norm() <= tol * scale, "{what}: dot");
            let apart = (f.norm_squared)(cpu, &x) - reference::norm_squared(&wx);
            assert!(apart.abs() <= tol * reference::norm_squared(&wx), "{what}: norm");
            for a in [C64::new(0.7, 0.0), C64::new(-0.3, 1.25)] {
                let mut out = y.clone();
                (f.axpy)(cpu, Scalar::nearest(a), &x, &mut out);
                assert_near(&out, &reference::axpy(a, &wx, &wy), tol, &what);
                let mut out = y.clone();
                (f.xpby)(cpu, &x, Scalar::nearest(a), &mut out);
                assert_near(&out, &reference::xpby(&wx, a, &wy), tol, &what);
                let mut out = y.clone();
                (f.scale)(cpu, Scalar::nearest(a), &mut out);
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
            let (f, tol) = (&variant.implementation, variant.tolerance);
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

/// Real vectors give what complex ones without imaginary parts give, on every device.
fn real_vectors_are_complex_ones_without_imaginary_parts<R: Real + Scalar<Real = R>>() {
    let devices = [&[Device::cpu_with_threads(2).unwrap()], crate::cuda::gpus()].concat();
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let epsilon = <R as Real>::EPSILON.to_f64();
    for device in &devices {
        for len in [1, 17, 4097, 70_001] {
            let numbers: [Vec<R>; 4] =
                std::array::from_fn(|_| random::<R>(len, &mut rng).into_iter().map(|v| v.re).collect());
            let reals = || numbers.clone().map(|v| Array::from_vec(device, &[len], v).unwrap());
            let wide = || {
                let complex = |v: &Vec<R>| v.iter().map(|&re| Complex::new(re, R::zero())).collect();
                numbers.each_ref().map(|v| Array::from_vec(device, &[len], complex(v)).unwrap())
            };
            let same = |found: &Array<R>, wanted: &Array<Complex<R>>, what: &str| {
                for (a, b) in found.to_vec().unwrap().iter().zip(wanted.to_vec().unwrap()) {
                    let (a, re) = (Real::to_f64(*a), Real::to_f64(b.re));
                    assert!((a - re).abs() <= 4.0 * epsilon * (1.0 + re.abs()), "{what}: {a} for {b}");
                }
            };
            let ([a, b, mut c, mut d], [wa, wb, mut wc, mut wd]) = (reals(), wide());
            let scale = norm_squared(&wa).unwrap().sqrt() * norm_squared(&wb).unwrap().sqrt();
            let apart = (dot(&a, &b).unwrap() - dot(&wa, &wb).unwrap()).norm();
            assert!(apart <= 1e-13 * scale, "dot {apart}");
            assert!((norm_squared(&a).unwrap() / norm_squared(&wa).unwrap() - 1.0).abs() < 1e-13);
            axpy(0.75.into(), &a, &mut c).unwrap();
            axpy(0.75.into(), &wa, &mut wc).unwrap();
            same(&c, &wc, "axpy");
            xpby(&b, (-0.3).into(), &mut c).unwrap();
            xpby(&wb, (-0.3).into(), &mut wc).unwrap();
            same(&c, &wc, "xpby");
            scale_both(&mut c, &mut wc);
            same(&c, &wc, "scale");
            multiply(&a, &b, &mut d).unwrap();
            multiply(&wa, &wb, &mut wd).unwrap();
            same(&d, &wd, "multiply");
            weight(&a, &c, &mut d).unwrap();
            weight(&a, &wc, &mut wd).unwrap();
            same(&d, &wd, "weight");
            let (u, wu) = (
                cg_update(0.4, &a, &b, &mut c, &mut d).unwrap(),
                cg_update(0.4, &wa, &wb, &mut wc, &mut wd).unwrap(),
            );
            assert!((u / wu - 1.0).abs() < 1e-5 * f64::from(u8::from(size_of::<R>() == 4)) + 1e-12);
            same(&c, &wc, "cg_update x");
            same(&d, &wd, "cg_update r");
            let limits = CgLimits { size: 1.0, enough: 0.0, vanishing: 0.0, indefinite: 1e-3 };
            let mut scalars = CgScalars::<R>::new(device, len, limits).unwrap();
            let mut wide_scalars = CgScalars::<Complex<R>>::new(device, len, limits).unwrap();
            scalars.set(1.0, 1.0, 0.0).unwrap();
            wide_scalars.set(1.0, 1.0, 0.0).unwrap();
            scalars.step_length(&a, &a).unwrap();
            wide_scalars.step_length(&wa, &wa).unwrap();
            scalars.update(&a, &b, &mut c, &mut d).unwrap();
            wide_scalars.update(&wa, &wb, &mut wc, &mut wd).unwrap();
            scalars.update_direction(&d, &mut c).unwrap();
            wide_scalars.update_direction(&wd, &mut wc).unwrap();
            same(&c, &wc, "direction");
            divide(&a, &b, &mut d).unwrap();
            let (a, b, d) = (a.to_vec().unwrap(), b.to_vec().unwrap(), d.to_vec().unwrap());
            for ((a, b), d) in a.iter().zip(&b).zip(&d) {
                let exact = if *b == R::zero() { 0.0 } else { Real::to_f64(*a) / Real::to_f64(*b) };
                assert!((Real::to_f64(*d) - exact).abs() <= 4.0 * epsilon * exact.abs(), "{a} / {b} = {d}");
            }
            let [a, ..] = reals();
            assert!(expect_finite("vector", &a).is_ok());
            assert!(axpy(C64::I, &a, &mut c).unwrap_err().to_string().contains("real"));
        }
    }
}

fn scale_both<R: Real + Scalar<Real = R>>(x: &mut Array<R>, wide: &mut Array<Complex<R>>) {
    scale(1.25.into(), x).unwrap();
    scale(1.25.into(), wide).unwrap();
}

fn elements_are_gathered<S: Scalar + PartialEq + std::fmt::Debug>(of: impl Fn(f64) -> S) {
    let devices = [&[Device::cpu_with_threads(2).unwrap()], crate::cuda::gpus()].concat();
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    for device in &devices {
        for (len, count) in [(1, 1), (5, 3), (3, 0), (700, 9001)] {
            let x: Vec<S> = (0..len).map(|i| of(1.0 + f64::from(i))).collect();
            // A tenth of the places lies beyond the end.
            let places: Vec<u32> =
                (0..count).map(|_| rng.random_range(0..len as u32 + len as u32 / 10 + 1)).collect();
            let expected: Vec<S> =
                places.iter().map(|&place| x.get(place as usize).copied().unwrap_or_default()).collect();
            let x = Array::from_vec(device, &[1, x.len()], x).unwrap();
            let there = Array::from_vec(device, &[count], places).unwrap();
            let mut y = Array::from_vec(device, &[1, count], vec![of(f64::NAN); count]).unwrap();
            gather(&x, &there, &mut y).unwrap();
            assert_eq!(y.to_vec().unwrap(), expected);
            assert!(gather(&x, &there, &mut Array::zeros(device, &[count + 1]).unwrap()).is_err());
        }
    }
}

#[test]
fn elements_at_places_are_gathered() {
    elements_are_gathered(|v| v as f32);
    elements_are_gathered(|v| C64::new(v, -v));
}

#[test]
fn nothing_is_divided_by_zero_and_negative_numbers_are_cut_off() {
    let devices = [&[Device::cpu_with_threads(2).unwrap()], crate::cuda::gpus()].concat();
    for device in &devices {
        let array = |values: [f32; 5]| Array::from_slice(device, &[5], &values).unwrap();
        let mut out = array([f32::NAN; 5]);
        divide(&array([1.0, 2.0, -3.0, 0.0, 5.0]), &array([2.0, 0.0, 1.5, 0.0, -0.0]), &mut out).unwrap();
        assert_eq!(out.to_vec().unwrap(), [0.5, 0.0, -2.0, 0.0, 0.0]);
        let mut x = array([1.0, -2.0, 0.0, -0.5, 7.0]);
        cut_negative(&mut x).unwrap();
        assert_eq!(x.to_vec().unwrap(), [1.0, 0.0, 0.0, 0.0, 7.0]);
        assert!(divide(&x, &array([1.0; 5]), &mut Array::zeros(device, &[4]).unwrap()).is_err());
    }
}

#[test]
fn real_vectors_agree_with_complex_ones() {
    real_vectors_are_complex_ones_without_imaginary_parts::<f32>();
    real_vectors_are_complex_ones_without_imaginary_parts::<f64>();
}

#[test]
fn differences_thresholds_and_ranks_of_real_numbers_agree_with_complex_ones() {
    use crate::{difference, select, shrink};
    let devices = [&[Device::cpu_with_threads(2).unwrap()], crate::cuda::gpus()].concat();
    let mut rng = ChaCha8Rng::seed_from_u64(8);
    for device in &devices {
        for shape in [vec![7], vec![1, 9], vec![5, 4, 6], vec![3, 40, 50]] {
            let (axes, weights): (Vec<usize>, Vec<f64>) =
                (0..shape.len()).map(|a| (a, 1.0 + 0.5 * a as f64)).unzip();
            let len = shape.iter().product();
            let values: Vec<f32> = random::<f32>(len, &mut rng).into_iter().map(|v| v.re).collect();
            let wide = |v: &[f32]| v.iter().map(|&re| Complex::new(re, 0.0)).collect::<Vec<_>>();
            let (x, wx) = (
                Array::from_slice(device, &shape, &values).unwrap(),
                Array::from_vec(device, &shape, wide(&values)).unwrap(),
            );
            let same = |found: &Array<f32>, wanted: &Array<Complex<f32>>, what: &str| {
                for (a, b) in found.to_vec().unwrap().iter().zip(wanted.to_vec().unwrap()) {
                    assert!((a - b.re).abs() < 1e-5 && b.im == 0.0, "{what} {shape:?}: {a} for {b}");
                }
            };
            let edges = difference::range(&shape, &axes).unwrap();
            let (mut d, mut wd) =
                (Array::zeros(device, &edges).unwrap(), Array::zeros(device, &edges).unwrap());
            d.fill(f32::NAN).unwrap();
            difference::forward(&axes, &weights, &x, &mut d).unwrap();
            difference::forward(&axes, &weights, &wx, &mut wd).unwrap();
            same(&d, &wd, "forward");
            shrink::clip(0.3, &mut d).unwrap();
            shrink::clip(0.3, &mut wd).unwrap();
            same(&d, &wd, "clip");
            let (one, other) = (shrink::joint_norm(&d).unwrap(), shrink::joint_norm(&wd).unwrap());
            assert!((one - other).abs() <= 1e-6 * other.max(1.0), "{one} {other}");
            let (mut y, mut wy) = (x.try_clone().unwrap(), wx.try_clone().unwrap());
            y.fill(f32::NAN).unwrap();
            difference::adjoint(&axes, &weights, &d, &mut y).unwrap();
            difference::adjoint(&axes, &weights, &wd, &mut wy).unwrap();
            same(&y, &wy, "adjoint");
            difference::normal(&axes, &weights, &x, &mut y).unwrap();
            difference::normal(&axes, &weights, &wx, &mut wy).unwrap();
            same(&y, &wy, "normal");
            let ones = Array::from_vec(device, &shape, vec![0.5f32; len]).unwrap();
            let (one, other) =
                (shrink::soft(0.4, &ones, &mut y).unwrap(), shrink::soft(0.4, &ones, &mut wy).unwrap());
            assert!((one - other).abs() <= 1e-6 * other.max(1.0), "{one} {other}");
            same(&y, &wy, "soft");
            for rank in [0, len / 2, len - 1] {
                assert_eq!(select::magnitude(&x, rank).unwrap(), select::magnitude(&wx, rank).unwrap());
            }
        }
    }
}
