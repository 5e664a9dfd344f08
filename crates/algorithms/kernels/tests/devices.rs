//! One suite for every device: this machine's CPU, the emulated GPU, and its GPU where there is one. What a
//! public function gives is compared with the f64 formulas on random input; outputs are poisoned before.

#![allow(clippy::unwrap_used, reason = "tests")]

use ndarray::Array2;
use num_complex::Complex;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayspin_core::{C64, Error, Real, Trajectory};
use rayspin_device::cpu::simd::SimdReal;
use rayspin_device::{Array, Backend, Device};
use rayspin_emu::Coverage;
use rayspin_kernels::{difference, nudft, off_resonance, pocs, sensitivity, shrink, vector, wavelet};

const SIZES: [usize; 7] = [1, 2, 31, 255, 257, 4099, 70_001];

struct Random(ChaCha8Rng);

impl Random {
    fn new(seed: u64) -> Self {
        Self(ChaCha8Rng::seed_from_u64(seed))
    }
    fn real<R: Real>(&mut self, len: usize) -> Vec<R> {
        (0..len).map(|_| <R as Real>::from_f64(self.0.random_range(0.0..1.0))).collect()
    }
    fn complex<R: Real>(&mut self, len: usize) -> Vec<Complex<R>> {
        let mut one = || <R as Real>::from_f64(self.0.random_range(-1.0..1.0));
        (0..len).map(|_| Complex::new(one(), one())).collect()
    }
}

fn wide<R: Real>(x: &[Complex<R>]) -> Vec<C64> {
    x.iter().map(|v| C64::new(Real::to_f64(v.re), Real::to_f64(v.im))).collect()
}

fn on<R: Real>(device: &Device, shape: &[usize], values: &[Complex<R>]) -> Array<Complex<R>> {
    Array::from_slice(device, shape, values).unwrap()
}

fn poisoned<R: Real>(device: &Device, shape: &[usize]) -> Array<Complex<R>> {
    let mut array = Array::zeros(device, shape).unwrap();
    array.fill(Complex::new(R::nan(), R::nan())).unwrap();
    array
}

#[track_caller]
fn near<R: Real>(found: &Array<Complex<R>>, expected: &[C64], what: &str) {
    let found = found.to_vec().unwrap();
    assert_eq!(found.len(), expected.len(), "{what}");
    let size: f64 = expected.iter().map(C64::norm_sqr).sum();
    let apart: f64 = wide(&found).iter().zip(expected).map(|(a, b)| (a - b).norm_sqr()).sum();
    let tolerance = 8.0 * <R as Real>::EPSILON.to_f64();
    assert!(apart.sqrt() <= tolerance * size.sqrt(), "{what}: {} of {}", apart.sqrt(), size.sqrt());
}

#[track_caller]
fn near_number<R: Real>(found: f64, expected: f64, what: &str) {
    // The second term is what the plain f64 sums of the formulas may lose.
    let tolerance = 8.0 * <R as Real>::EPSILON.to_f64() + 1e-13;
    assert!((found - expected).abs() <= tolerance * expected.abs(), "{what}: {found}, not {expected}");
}

fn everywhere(test: impl Fn(&Device)) {
    for device in rayspin_emu::devices().unwrap() {
        test(&device);
    }
}

fn projections(device: &Device) {
    let mut random = Random::new(8);
    for len in SIZES {
        let what = format!("{}, {len} numbers", device.describe());
        let (mut p, x, d) = (random.complex::<f32>(len), random.complex(len), random.complex(len));
        p[len / 2] = Complex::default();
        let mask: Vec<f32> = random.real::<f32>(len).iter().map(|v| f32::from(u8::from(*v > 0.5))).collect();
        let [phase, measured] = [&p, &d].map(|v| on(device, &[len], v));
        let mut image = on(device, &[len], &x);
        pocs::project_phase(&phase, &mut image).unwrap();
        near(&image, &pocs::reference::project_phase(&wide(&p), &wide(&x)), &what);
        let mut kspace = on(device, &[len], &x);
        let on_device = Array::from_slice(device, &[len], &mask).unwrap();
        pocs::restore_samples(&on_device, &measured, &mut kspace).unwrap();
        near(&kspace, &pocs::reference::restore_samples(&mask, &wide(&d), &wide(&x)), &what);
        let mut other = poisoned::<f32>(device, &[len + 1]);
        assert!(pocs::project_phase(&phase, &mut other).is_err());
        assert!(pocs::restore_samples(&on_device, &measured, &mut other).is_err());
    }
}

#[test]
fn projections_of_partial_fourier_imaging_are_those_of_the_formulas() {
    everywhere(projections);
}

fn boxes<R: Real>(device: &Device) {
    let mut random = Random::new(5);
    type Case = (&'static [usize], &'static [usize], &'static [usize], &'static [usize], &'static [usize]);
    let cases: [Case; 6] = [
        (&[7], &[2], &[9], &[4], &[5]),
        (&[4, 6], &[1, 0], &[3, 300], &[0, 290], &[3, 6]),
        (&[3, 5, 2], &[0, 4, 1], &[1, 1, 1], &[0, 0, 0], &[1, 1, 1]),
        (&[2, 9, 8, 17], &[0, 3, 2, 5], &[3, 5, 9, 11], &[1, 2, 0, 3], &[2, 3, 6, 7]),
        (&[2, 3], &[2, 1], &[2, 3], &[0, 0], &[0, 2]),
        (&[1, 1, 40, 31], &[0, 0, 0, 0], &[1, 1, 40, 31], &[0, 0, 0, 0], &[1, 1, 40, 31]),
    ];
    for (shape, start, other, at, extent) in cases {
        let values = random.complex::<R>(shape.iter().product());
        let from = on(device, shape, &values);
        let mut to = poisoned::<R>(device, other);
        vector::copy_box(&from, start, &mut to, at, extent).unwrap();
        let host = from.to_host().unwrap();
        for (index, value) in to.to_host().unwrap().indexed_iter() {
            let inside: Option<Vec<usize>> = (0..shape.len())
                .map(|a| index[a].checked_sub(at[a]).filter(|&i| i < extent[a]).map(|i| i + start[a]))
                .collect();
            match inside {
                Some(place) => assert_eq!(*value, host[&place[..]], "{shape:?} {index:?}"),
                None => assert!(value.re.is_nan(), "{shape:?} {index:?}"),
            }
        }
        let mut beyond = extent.to_vec();
        beyond[0] = shape[0] + 1;
        assert!(vector::copy_box(&from, start, &mut to, at, &beyond).is_err());
        assert!(vector::copy_box(&from, start, &mut to, &at[1..], extent).is_err());
    }
}

fn vectors<R: Real>(device: &Device) {
    use vector::reference as exact;
    let mut random = Random::new(1);
    for len in SIZES {
        let what = format!("{}, {} numbers of {}", device.describe(), len, R::NAME);
        let [x, y, p, q] = std::array::from_fn(|_| random.complex::<R>(len));
        let [wx, wy, wp, wq] = [&x, &y, &p, &q].map(|v| wide(v));
        let shape = [len];
        let [x, y, p, q] = [&x, &y, &p, &q].map(|v| on(device, &shape, v));
        // The sum nearly cancels, so its error is relative to the size of the terms.
        let size = (exact::norm_squared(&wx) * exact::norm_squared(&wy)).sqrt();
        let apart = (vector::dot(&x, &y).unwrap() - exact::dot(&wx, &wy)).norm();
        assert!(apart <= 8.0 * <R as Real>::EPSILON.to_f64() * size, "{what}: dot {apart}");
        near_number::<R>(vector::norm_squared(&x).unwrap(), exact::norm_squared(&wx), &what);
        let factor = C64::new(-0.25, 1.25);
        let mut out = y.try_clone().unwrap();
        vector::axpy(factor, &x, &mut out).unwrap();
        near(&out, &exact::axpy(factor, &wx, &wy), &what);
        let mut out = y.try_clone().unwrap();
        vector::xpby(&x, factor, &mut out).unwrap();
        near(&out, &exact::xpby(&wx, factor, &wy), &what);
        let mut out = y.try_clone().unwrap();
        vector::scale(factor, &mut out).unwrap();
        near(&out, &exact::axpy(factor, &wy, &vec![C64::default(); len]), &what);
        let (mut new_x, mut new_r) = (x.try_clone().unwrap(), y.try_clone().unwrap());
        let norm = vector::cg_update(0.375, &p, &q, &mut new_x, &mut new_r).unwrap();
        let (ex, er, en) = exact::cg_update(0.375, &wp, &wq, &wx, &wy);
        near(&new_x, &ex, &what);
        near(&new_r, &er, &what);
        near_number::<R>(norm, en, &what);
        // The same bits each time.
        assert_eq!(vector::norm_squared(&x).unwrap().to_bits(), vector::norm_squared(&x).unwrap().to_bits());

        let repeats = 3;
        let long = random.complex::<R>(repeats * len);
        let weights = random.real::<R>(len);
        let wide_weights: Vec<C64> = weights.iter().map(|w| C64::from(Real::to_f64(*w))).collect();
        let batch = on(device, &[repeats, len], &long);
        let mut out = poisoned(device, &[repeats, len]);
        vector::multiply(&x, &batch, &mut out).unwrap();
        near(&out, &exact::multiply(&wx, &wide(&long)), &what);
        let mut out = poisoned(device, &[repeats, len]);
        vector::multiply_conj(&x, &batch, &mut out).unwrap();
        near(&out, &exact::multiply_conj(&wx, &wide(&long)), &what);
        let mut out = poisoned(device, &[repeats, len]);
        let weights = Array::from_slice(device, &[len], &weights).unwrap();
        vector::weight(&weights, &batch, &mut out).unwrap();
        near(&out, &exact::multiply(&wide_weights, &wide(&long)), &what);

        let mut out = batch.try_clone().unwrap();
        vector::add_part(&x, &mut out, len).unwrap();
        let mut expected = wide(&long);
        expected[len..2 * len].iter_mut().zip(&wx).for_each(|(sum, x)| *sum += x);
        near(&out, &expected, &what);
        assert!(vector::add_part(&x, &mut out, 2 * len + 1).is_err());

        let mut part = poisoned::<R>(device, &[len + 2]);
        vector::copy_part(&x, 0, &mut part, 1, len).unwrap();
        let part = part.to_vec().unwrap();
        assert!(part[0].re.is_nan() && part[len + 1].re.is_nan());
        assert_eq!(part[1..=len], x.to_vec().unwrap());
        assert!(vector::copy_part(&x, 1, &mut poisoned(device, &[len]), 0, len).is_err());
    }
    let none = Array::<Complex<R>>::zeros(device, &[0]).unwrap();
    assert_eq!(vector::norm_squared(&none).unwrap(), 0.0);
    assert_eq!(vector::dot(&none, &none).unwrap(), C64::default());
}

#[test]
fn vectors_are_those_of_the_formulas() {
    everywhere(vectors::<f32>);
    everywhere(vectors::<f64>);
    everywhere(boxes::<f32>);
    everywhere(boxes::<f64>);
}

#[test]
fn the_first_number_that_is_not_finite_is_named() {
    everywhere(|device| {
        for (len, bad) in [(1, 0), (5000, 4999), (5000, 17)] {
            let mut values = Random::new(2).complex::<f32>(len);
            vector::expect_finite("x", &on(device, &[len], &values)).unwrap();
            values[len - 1].im = f32::INFINITY;
            values[bad].re = f32::NAN;
            match vector::expect_finite("x", &on(device, &[len], &values)) {
                Err(Error::NotFinite { index, .. }) => assert_eq!(index, bad),
                other => panic!("{other:?}"),
            }
        }
    });
}

fn sensitivities<R: Real>(device: &Device) {
    use sensitivity::reference as exact;
    let mut random = Random::new(3);
    for (coils, voxels) in [(1, 1), (3, 257), (8, 1000), (5, 4099)] {
        let what = format!("{}, {coils} coils of {voxels}", device.describe());
        let [maps, images] = std::array::from_fn(|_| random.complex::<R>(coils * voxels));
        let image = random.complex::<R>(voxels);
        let (shape, all) = ([voxels], [coils, voxels]);
        let (m, y, x) = (on(device, &all, &maps), on(device, &all, &images), on(device, &shape, &image));
        let mut out = poisoned(device, &all);
        sensitivity::expand(&m, &x, &mut out).unwrap();
        near(&out, &exact::expand(&wide(&maps), &wide(&image)), &what);
        let mut out = poisoned(device, &shape);
        sensitivity::combine(&m, &y, &mut out).unwrap();
        let combined = exact::combine(&wide(&maps), &wide(&images), voxels);
        near(&out, &combined, &what);
        // Coil by coil, added to what is there.
        let mut out = x.try_clone().unwrap();
        for coil in 0..coils {
            let own = on(device, &[1, voxels], &images[coil * voxels..(coil + 1) * voxels]);
            sensitivity::combine_coils_add(&m, coil..coil + 1, &own, &mut out).unwrap();
        }
        let sum: Vec<C64> = combined.iter().zip(wide(&image)).map(|(a, b)| a + b).collect();
        near(&out, &sum, &what);
        let squares = exact::sum_of_squares(&wide(&images), voxels);
        let found = sensitivity::sum_of_squares(&y).unwrap().to_vec().unwrap();
        let roots = sensitivity::root_sum_of_squares(&y).unwrap().to_vec().unwrap();
        for ((found, root), exact) in found.iter().zip(&roots).zip(&squares) {
            near_number::<R>(Real::to_f64(*found), *exact, &what);
            near_number::<R>(Real::to_f64(*root), exact.sqrt(), &what);
        }
        let mut twice = sensitivity::sum_of_squares(&y).unwrap();
        sensitivity::sum_of_squares_add(&y, &mut twice).unwrap();
        for (found, exact) in twice.to_vec().unwrap().iter().zip(&squares) {
            near_number::<R>(Real::to_f64(*found), 2.0 * exact, &what);
        }
        let mut whole = on(device, out.shape(), &image);
        sensitivity::normalise(&y, &mut whole).unwrap();
        let divided: Vec<C64> = wide(&image).iter().zip(&squares).map(|(v, s)| v / s).collect();
        near(&whole, &divided, &what);
        let mut dark = Array::zeros(device, y.shape()).unwrap();
        dark.fill(num_complex::Complex::new(R::zero(), R::zero())).unwrap();
        sensitivity::normalise(&dark, &mut whole).unwrap();
        assert!(whole.to_vec().unwrap().iter().all(|v| v.re == R::zero() && v.im == R::zero()));
    }
}

#[test]
fn coil_images_are_those_of_the_formulas() {
    everywhere(sensitivities::<f32>);
    everywhere(sensitivities::<f64>);
}

fn off_resonances<R: SimdReal>(device: &Device) {
    use off_resonance::{Interpolator, Scratch, Segments, reference as exact};
    let mut random = Random::new(8);
    for (batch, voxels) in [(1, 1), (3, 257), (2, 4099), (5, 1000)] {
        let what = format!("{}, {batch} images of {voxels}", device.describe());
        let field: Vec<R> = random.complex::<R>(voxels).iter().map(|v| v.re * real::<R>(300.0)).collect();
        let wide_field: Vec<f64> = field.iter().map(|f| Real::to_f64(*f)).collect();
        let field = Array::from_slice(device, &[voxels], &field).unwrap();
        let (shape, tau) = ([batch, voxels], -0.0173);
        let [x, y] = std::array::from_fn(|_| random.complex::<R>(batch * voxels));
        let turned = exact::modulate(&wide_field, tau, &wide(&x));
        let (x, mut out) = (on(device, &shape, &x), poisoned(device, &shape));
        off_resonance::modulate(&field, tau, &x, &mut out, false).unwrap();
        near(&out, &turned, &what);
        let mut out = on(device, &shape, &y);
        off_resonance::modulate(&field, tau, &x, &mut out, true).unwrap();
        near(&out, &turned.iter().zip(wide(&y)).map(|(a, b)| a + b).collect::<Vec<_>>(), &what);
    }

    // All segments with the exact Fourier transform in the middle, against the exact encoding.
    for (matrix, samples, batch) in [(&[9][..], 40, 1), (&[7, 6], 90, 3), (&[3, 4, 5], 75, 2)] {
        let points = Array2::from_shape_fn((samples, matrix.len()), |(_, d)| {
            let n = matrix[matrix.len() - 1 - d] as f64;
            random.0.random_range(-n / 2.0..n / 2.0)
        });
        let trajectory = Trajectory::from_cycles_per_fov(points).unwrap();
        // Times of two readouts, the second cut short.
        let times: Vec<f64> = (0..samples).map(|m| (m % 31) as f64 * 4e-4 - 2e-3).collect();
        let voxels: usize = matrix.iter().product();
        let field: Vec<f64> = (0..voxels).map(|_| random.0.random_range(-90.0..150.0)).collect();
        let on_device: Vec<R> = field.iter().map(|&f| real(f)).collect();
        let field: Vec<f64> = on_device.iter().map(|f| Real::to_f64(*f)).collect();
        let on_device = Array::from_slice(device, matrix, &on_device).unwrap();
        let [images, there] = [&[&[batch], matrix].concat()[..], &[batch, samples]].map(<[usize]>::to_vec);
        let x = random.complex::<R>(batch * voxels);
        let d = random.complex::<R>(batch * samples);
        let expected = exact::forward(&trajectory, &times, matrix, &field, &wide(&x)).unwrap();
        let back = exact::adjoint(&trajectory, &times, matrix, &field, &wide(&d)).unwrap();
        let mut last = 0;
        for tolerance in [1e-2, 1e-3, 1e-4, 1e-5] {
            let range = [-90.0, 150.0];
            let interpolator = Interpolator::new(range, [-2e-3, 1e-2], tolerance).unwrap();
            let segments = Segments::<R>::new(device, &interpolator, &times).unwrap();
            assert!(segments.segments() > last && segments.samples() == samples);
            last = segments.segments();
            let (x, d) = (on(device, &images, &x), on(device, &there, &d));
            let (mut image, mut work) = (poisoned(device, &images), poisoned(device, &there));
            let mut found = poisoned(device, &there);
            let scratch = Scratch { image: &mut image, samples: &mut work };
            let mut transform = |x: &Array<_>, y: &mut Array<_>| nudft::forward(&trajectory, x, y);
            segments.forward(&on_device, &x, &mut found, scratch, &mut transform).unwrap();
            // Residuals of random sign, and what rounding leaves of f32.
            let allowed = 2.0 * tolerance + 40.0 * <R as Real>::EPSILON.to_f64();
            within(&found, &expected, allowed);
            let mut adjoint = poisoned(device, &images);
            let scratch = Scratch { image: &mut image, samples: &mut work };
            let mut transform = |y: &Array<_>, x: &mut Array<_>| nudft::adjoint(&trajectory, y, x);
            segments.adjoint(&on_device, &d, &mut adjoint, scratch, &mut transform).unwrap();
            within(&adjoint, &back, allowed);
            // ⟨Ex, d⟩ = ⟨x, Eᴴd⟩ whatever the tolerance.
            let gap = (vector::dot(&found, &d).unwrap() - vector::dot(&x, &adjoint).unwrap()).norm();
            let size = (vector::norm_squared(&found).unwrap() * vector::norm_squared(&d).unwrap()).sqrt();
            assert!(gap <= 300.0 * <R as Real>::EPSILON.to_f64() * size, "{gap} of {size}");
        }
    }
}

#[track_caller]
fn within<R: Real>(found: &Array<Complex<R>>, expected: &[C64], allowed: f64) {
    let found = wide(&found.to_vec().unwrap());
    let size: f64 = expected.iter().map(C64::norm_sqr).sum();
    let apart: f64 = found.iter().zip(expected).map(|(a, b)| (a - b).norm_sqr()).sum();
    assert!(apart.sqrt() <= allowed * size.sqrt(), "{:.2e}, allowed {allowed:.0e}", (apart / size).sqrt());
}

fn real<R: Real>(value: f64) -> R {
    <R as Real>::from_f64(value)
}

#[test]
fn segments_are_the_encoding_with_off_resonance() {
    everywhere(off_resonances::<f32>);
    everywhere(off_resonances::<f64>);
}

fn differences<R: Real>(device: &Device) {
    let mut random = Random::new(4);
    let cases: [(&[usize], &[usize]); 6] = [
        (&[1], &[0]),
        (&[300], &[0]),
        (&[1, 7], &[0, 1]),
        (&[17, 31], &[1]),
        (&[5, 6, 7], &[0, 1, 2]),
        (&[4, 1, 9], &[2, 0]),
    ];
    for (shape, axes) in cases {
        let what = format!("{}, {shape:?} along {axes:?}", device.describe());
        let len: usize = shape.iter().product();
        let weights: Vec<f64> = (0..axes.len()).map(|a| 0.5 + a as f64).collect();
        let all = difference::range(shape, axes).unwrap();
        let (x, d) = (random.complex::<R>(len), random.complex::<R>(axes.len() * len));
        let (ax, ad) = (on(device, shape, &x), on(device, &all, &d));
        use difference::reference as exact;
        let forward = exact::forward(shape, axes, &weights, &wide(&x));
        let mut out = poisoned(device, &all);
        difference::forward(axes, &weights, &ax, &mut out).unwrap();
        near(&out, &forward, &what);
        let mut out = poisoned(device, shape);
        difference::adjoint(axes, &weights, &ad, &mut out).unwrap();
        near(&out, &exact::adjoint(shape, axes, &weights, &wide(&d)), &what);
        let mut out = poisoned(device, shape);
        difference::normal(axes, &weights, &ax, &mut out).unwrap();
        near(&out, &exact::adjoint(shape, axes, &weights, &forward), &what);
    }
}

#[test]
fn differences_are_those_of_the_formulas() {
    everywhere(differences::<f32>);
    everywhere(differences::<f64>);
}

fn shrinkage<R: Real>(device: &Device) {
    use shrink::reference as exact;
    let mut random = Random::new(5);
    for len in SIZES {
        let what = format!("{}, {len} of {}", device.describe(), R::NAME);
        let (x, weights) = (random.complex::<R>(len), random.real::<R>(len));
        let wide_weights: Vec<f64> = weights.iter().map(|w| Real::to_f64(*w)).collect();
        let (shrunk, norm) = exact::soft(0.5, &wide_weights, &wide(&x));
        let mut out = on(device, &[len], &x);
        let weights = Array::from_slice(device, &[len], &weights).unwrap();
        let found = shrink::soft(0.5, &weights, &mut out).unwrap();
        // Lengths are differences of near numbers where little is left: compared with what there was.
        let size: f64 = wide(&x).iter().map(|v| v.norm_sqr()).sum::<f64>().sqrt();
        let apart: f64 =
            wide(&out.to_vec().unwrap()).iter().zip(&shrunk).map(|(a, b)| (a - b).norm_sqr()).sum();
        let tolerance = 8.0 * <R as Real>::EPSILON.to_f64();
        assert!(apart.sqrt() <= tolerance * size, "{what}: soft {}", apart.sqrt());
        assert!(
            (found - norm).abs() <= tolerance * size * (len as f64).sqrt(),
            "{what}: {found}, not {norm}"
        );

        let components = 3;
        let groups = random.complex::<R>(components * len);
        let mut out = on(device, &[components, len], &groups);
        near_number::<R>(shrink::joint_norm(&out).unwrap(), exact::joint_norm(len, &wide(&groups)), &what);
        shrink::clip(0.5, &mut out).unwrap();
        near(&out, &exact::clip(0.5, len, &wide(&groups)), &what);
    }
}

#[test]
fn proximal_maps_are_those_of_the_formulas() {
    everywhere(shrinkage::<f32>);
    everywhere(shrinkage::<f64>);
}

fn wavelets<R: Real>(device: &Device) {
    use wavelet::{Family, Wavelet, reference as exact};
    let shapes: [&[usize]; 8] =
        [&[1], &[97], &[15, 64], &[33, 47], &[1, 37], &[64, 1], &[17, 4, 19], &[16, 33, 70]];
    let mut random = Random::new(6);
    for shape in shapes {
        for family in [Family::Haar, Family::Daubechies2] {
            let transform = Wavelet::<R>::new(shape, family, None).unwrap();
            let values = random.complex::<R>(shape.iter().product());
            let x = on(device, shape, &values);
            for shift in [vec![0; shape.len()], shape.iter().map(|n| (n * 5).div_ceil(8) + 1).collect()] {
                let what = format!("{}, {shape:?} {family:?} {shift:?}", device.describe());
                let mut c = poisoned(device, shape);
                transform.forward(&shift, &x, &mut c).unwrap();
                near(&c, &exact::forward(transform.plan(), &shift, &wide(&values)), &what);
                let mut back = poisoned(device, shape);
                transform.inverse(&shift, &c, &mut back).unwrap();
                near(&back, &wide(&values), &what);
                near(&x, &wide(&values), &what);
            }
        }
    }
}

#[test]
fn wavelet_transforms_are_those_of_the_matrices() {
    everywhere(wavelets::<f32>);
    everywhere(wavelets::<f64>);
}

/// ‖found − expected‖/‖expected‖; infinite where anything is not finite.
fn error<R: Real>(found: &Array<Complex<R>>, expected: &[C64]) -> f64 {
    let found = wide(&found.to_vec().unwrap());
    assert_eq!(found.len(), expected.len());
    let size: f64 = expected.iter().map(C64::norm_sqr).sum();
    let apart: f64 = found.iter().zip(expected).map(|(a, b)| (a - b).norm_sqr()).sum();
    let error = (apart / size).sqrt();
    if error.is_finite() { error } else { f64::INFINITY }
}

fn trajectory(random: &mut Random, matrix: &[usize], samples: usize) -> Trajectory {
    let dims = matrix.len();
    let points = ndarray::Array2::from_shape_fn((samples, dims), |(_, c)| {
        let half = 0.5 * matrix[dims - 1 - c] as f64;
        random.0.random_range(-half..=half)
    });
    Trajectory::from_cycles_per_fov(points).unwrap()
}

fn exact_transforms<R: SimdReal>(device: &Device) {
    let mut random = Random::new(7);
    let mut coverage = Coverage::default();
    // One point, fewer points than a tile, more than one tile of rows and of columns, odd axes, more than a
    // stage of samples.
    let cases: [(&[usize], usize, usize); 10] = [
        (&[1], 1, 1),
        (&[2], 3, 2),
        (&[530], 40, 1),
        (&[1, 12], 33, 1),
        (&[13, 1], 40, 2),
        (&[19, 67], 65, 2),
        (&[1, 1, 1], 2, 1),
        (&[4, 1, 9], 17, 1),
        (&[9, 5, 6], 100, 2),
        (&[3, 2, 5], 700, 1),
    ];
    for (matrix, samples, batch) in cases {
        let t = trajectory(&mut random, matrix, samples);
        let voxels: usize = matrix.iter().product();
        let image = random.complex::<R>(batch * voxels);
        // One value far larger than the others, as at the centre of k-space.
        let mut data = random.complex::<R>(batch * samples);
        data[0] *= <R as Real>::from_f64(1e3);
        let weights = random.real::<R>(samples);
        let wide_weights: Vec<f64> = weights.iter().map(|w| Real::to_f64(*w)).collect();
        let forward = nudft::reference::forward(&t, matrix, &wide(&image)).unwrap();
        let adjoint = nudft::reference::adjoint(&t, matrix, &wide(&data)).unwrap();
        let q = nudft::reference::q(&t, matrix, &wide_weights).unwrap();
        let shape = [&[batch], matrix].concat();
        let doubled: Vec<usize> = matrix.iter().map(|n| 2 * n).collect();
        let on_device = (on(device, &shape, &image), on(device, &[batch, samples], &data));
        let weights = Array::from_slice(device, &[samples], &weights).unwrap();
        let near = |what: &str, found: &Array<Complex<R>>, expected: &[C64], tolerance: f64| {
            let apart = error(found, expected);
            assert!(
                apart <= tolerance,
                "{}, {} {what} of {matrix:?}, {samples} samples, batch {batch}: {apart:.1e}",
                device.describe(),
                R::NAME
            );
        };
        for row in nudft::variants::<R>().iter().filter(|row| row.backend == device.kind()) {
            let problem = |operation| nudft::Problem { operation, matrix: matrix.to_vec(), samples, batch };
            if let (nudft::Implementation::Cuda(variant), Backend::Cuda(cuda)) =
                (&row.implementation, device.backend())
                && !variant.runs_on(cuda)
            {
                let why =
                    nudft::adjoint_with(row, &t, &on_device.1, &mut poisoned(device, &shape)).unwrap_err();
                coverage.ruled_out(device, row.name, &why.to_string());
                continue;
            }
            let (mut a, mut b, mut c) =
                (poisoned(device, &[batch, samples]), poisoned(device, &shape), poisoned(device, &doubled));
            let ran = nudft::forward_with(row, &t, &on_device.0, &mut a);
            if (row.refuses)(&problem(nudft::Operation::Forward)).is_some() {
                assert!(ran.is_err(), "{} refuses and runs", row.name);
            } else {
                ran.unwrap();
                near(&format!("{} forward", row.name), &a, &forward, row.tolerance);
            }
            nudft::adjoint_with(row, &t, &on_device.1, &mut b).unwrap();
            near(&format!("{} adjoint", row.name), &b, &adjoint, row.tolerance);
            nudft::q_with(row, &t, Some(&weights), matrix, &mut c).unwrap();
            near(&format!("{} Q", row.name), &c, &q, row.tolerance);
            let worst = error(&b, &adjoint).max(error(&c, &q));
            coverage.compared(device, row.name, worst, row.tolerance);
        }
        let tolerance = if size_of::<R>() == 4 { 1e-6 } else { 1e-12 };
        let mut out = poisoned(device, &[batch, samples]);
        nudft::forward(&t, &on_device.0, &mut out).unwrap();
        near("forward", &out, &forward, tolerance);
        let mut out = poisoned(device, &shape);
        nudft::adjoint(&t, &on_device.1, &mut out).unwrap();
        near("adjoint", &out, &adjoint, tolerance);
        let mut out = poisoned(device, &doubled);
        nudft::q(&t, None, matrix, &mut out).unwrap();
        let ones = nudft::reference::q(&t, matrix, &vec![1.0; samples]).unwrap();
        near("Q without weights", &out, &ones, tolerance);
    }
    println!("exact transforms, {}:\n{coverage}", R::NAME);
    let rows = nudft::variants::<R>();
    let rows = rows.iter().filter(|row| row.backend == device.kind()).map(|row| row.name);
    assert_eq!(coverage.left_out(device, rows), [""; 0]);
    // Nothing in, nothing out; and no weight at all.
    let t = trajectory(&mut random, &[6, 5], 20);
    let none = Array::<Complex<R>>::zeros(device, &[0, 20]).unwrap();
    nudft::adjoint(&t, &none, &mut Array::zeros(device, &[0, 6, 5]).unwrap()).unwrap();
    let mut out = poisoned::<R>(device, &[12, 10]);
    nudft::q(&t, Some(&Array::zeros(device, &[20]).unwrap()), &[6, 5], &mut out).unwrap();
    assert!(out.to_vec().unwrap().iter().all(|v| *v == Complex::default()));
}

#[test]
fn exact_transforms_are_those_of_the_formulas() {
    everywhere(exact_transforms::<f32>);
    everywhere(exact_transforms::<f64>);
}
