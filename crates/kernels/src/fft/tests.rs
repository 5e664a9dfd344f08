use num_complex::{Complex, Complex64};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use rayspin_core::Real;
use rayspin_device::{Array, Cpu, Device};

use super::cpu::{Direction, FftNd, Options, Region};
use super::{Fft, Norm, Problem, VARIANTS, reference};

const SHAPES: &[&[usize]] = &[
    &[1],
    &[2],
    &[7],
    &[16],
    &[97],
    &[360],
    &[1, 1],
    &[1, 5],
    &[6, 1],
    &[8, 6],
    &[31, 33],
    &[64, 48],
    &[1, 1, 1],
    &[3, 1, 4],
    &[2, 3, 5],
    &[13, 12, 11],
    &[16, 20, 24],
];

fn random<R: Real>(len: usize, seed: u64) -> Vec<Complex<R>> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut part = || <R as Real>::from_f64(rng.random_range(-1.0..1.0));
    (0..len).map(|_| Complex::new(part(), part())).collect()
}

fn widen<R: Real>(data: &[Complex<R>]) -> Vec<Complex64> {
    data.iter().map(|v| Complex64::new(v.re.to_f64(), v.im.to_f64())).collect()
}

fn relative_error<R: Real>(found: &[Complex<R>], expected: &[Complex64]) -> f64 {
    let difference: f64 = widen(found).iter().zip(expected).map(|(a, b)| (a - b).norm_sqr()).sum();
    let size: f64 = expected.iter().map(Complex64::norm_sqr).sum();
    (difference / size.max(f64::MIN_POSITIVE)).sqrt()
}

fn cpu(device: &Device) -> &Cpu {
    device.cpu_side()
}

/// Serial, parallel over chunks, and (with more threads than planes) parallel over columns.
fn devices() -> Vec<Device> {
    [1, 2, 5].map(|threads| Device::cpu_with_threads(threads).unwrap()).into()
}

fn transforms_match<R: Real>(tolerance: f64) {
    for (case, &shape) in SHAPES.iter().enumerate() {
        let len: usize = shape.iter().product();
        for batch in [1, 3] {
            let input = random::<R>(batch * len, case as u64);
            for direction in [Direction::Forward, Direction::Inverse] {
                for centred in [false, true] {
                    let expected = reference::dft(&widen(&input), shape, direction, centred);
                    for device in devices() {
                        let mut found = input.clone();
                        let options = Options { centred, ..Options::new(direction) };
                        let engine = FftNd::new(shape).unwrap();
                        engine.process_with(cpu(&device), &mut found, &options).unwrap();
                        let error = relative_error(&found, &expected);
                        assert!(error < tolerance, "{shape:?} × {batch} {options:?}: {error:.1e}");
                    }
                }
            }
        }
    }
}

#[test]
fn single_precision_matches_the_formula() {
    transforms_match::<f32>(1e-6);
}

#[test]
fn double_precision_matches_the_formula() {
    transforms_match::<f64>(1e-14);
}

#[test]
fn every_variant_matches_the_formula() {
    for variant in VARIANTS {
        for (case, &shape) in SHAPES.iter().enumerate() {
            let batch = 2;
            let len = shape.iter().product::<usize>();
            let problem = Problem { shape: shape.to_vec(), batch };
            assert_eq!((variant.refuses)(&problem), None);
            assert!((variant.work)(&problem).bytes == (16 * len * batch) as f64);
            let input = random::<f32>(batch * len, 50 + case as u64);
            for direction in [Direction::Forward, Direction::Inverse] {
                let expected = reference::dft(&widen(&input), shape, direction, false);
                for device in devices() {
                    let mut found = input.clone();
                    let engine = FftNd::new(shape).unwrap();
                    (variant.launch)(cpu(&device), &engine, &mut found, direction).unwrap();
                    let error = relative_error(&found, &expected);
                    assert!(error < variant.tolerance, "{} {shape:?}: {error:.1e}", variant.name);
                }
            }
        }
    }
}

/// Every combination of regions that the padded and cropped transforms of NUFFT and Toeplitz use, and ragged ones.
#[test]
fn pruned_transforms_read_and_write_their_regions_only() {
    let nan = Complex::new(f64::NAN, f64::NAN);
    let cases: &[(&[usize], &[usize])] = &[
        (&[16], &[7]),
        (&[15], &[1]),
        (&[12, 10], &[5, 4]),
        (&[9, 40], &[4, 21]),
        (&[8, 12, 36], &[4, 5, 18]),
        (&[18, 16, 20], &[9, 8, 11]),
        (&[5, 3, 1], &[1, 3, 1]),
    ];
    for (case, (shape, inner)) in cases.iter().enumerate() {
        let len: usize = shape.iter().product();
        let engine = FftNd::<f64>::new(shape).unwrap();
        let boxes = [
            Region::full(shape).unwrap(),
            Region::wrapped(shape, inner).unwrap(),
            Region::centred(shape, inner).unwrap(),
            Region::new(
                shape,
                shape.iter().map(|&n| vec![n / 3..n / 3 + 1, n - n / 4..n.max(1)]).map(sound).collect(),
            )
            .unwrap(),
        ];
        for (a, nonzero) in boxes.iter().enumerate() {
            for (b, wanted) in boxes.iter().enumerate() {
                let batch = 2;
                let inside = |region: &Region| {
                    let mut mask = vec![false; len];
                    region.flat(0..shape.len()).iter().for_each(|&i| mask[i] = true);
                    mask.repeat(batch)
                };
                let mut found = random::<f64>(batch * len, (case * 16 + a * 4 + b) as u64);
                let mut padded = found.clone();
                for (index, inside) in inside(nonzero).into_iter().enumerate() {
                    if !inside {
                        found[index] = nan;
                        padded[index] = Complex::ZERO;
                    }
                }
                for centred in [false, true] {
                    let mut expected = reference::dft(&padded, shape, Direction::Inverse, centred);
                    let mask = inside(wanted);
                    let outside: Vec<usize> = (0..batch * len).filter(|&index| !mask[index]).collect();
                    expected.iter_mut().for_each(|value| *value *= 0.25);
                    outside.iter().for_each(|&index| expected[index] = Complex::ZERO);
                    for device in devices() {
                        let options = Options {
                            nonzero: Some(nonzero),
                            wanted: Some(wanted),
                            scale: 0.25,
                            centred,
                            ..Options::new(Direction::Inverse)
                        };
                        let mut found = found.clone();
                        engine.process_with(cpu(&device), &mut found, &options).unwrap();
                        outside.iter().for_each(|&index| found[index] = Complex::ZERO);
                        let error = relative_error(&found, &expected);
                        assert!(error < 1e-14, "{shape:?} {nonzero:?} -> {wanted:?}: {error:.1e}");
                    }
                }
            }
        }
    }
}

fn sound(ranges: Vec<std::ops::Range<usize>>) -> Vec<std::ops::Range<usize>> {
    let mut end = 0;
    let mut kept = Vec::new();
    for range in ranges {
        let range = range.start.max(end)..range.end;
        if !range.is_empty() {
            end = range.end;
            kept.push(range);
        }
    }
    kept
}

/// Large enough that planes are transformed locally and the first axis over all cores, columns split between them.
#[test]
fn large_arrays_round_trip_on_every_path() {
    for shape in [&[70, 130, 64][..], &[3, 300, 310], &[520, 515], &[5, 9000]] {
        let len: usize = shape.iter().product();
        let input = random::<f32>(len, 7);
        for threads in [1, 2, 3] {
            let device = Device::cpu_with_threads(threads).unwrap();
            let fft = Fft::<f32>::new(&device, shape, Norm::Unitary).unwrap();
            let mut data = Array::from_vec(&device, shape, input.clone()).unwrap();
            fft.forward(&mut data).unwrap();
            // One frequency by the formula: a round trip alone would also pass for two wrong transforms.
            let at = [shape[0] / 3, shape[1] - 1, shape.get(2).map_or(0, |n| n / 5)];
            let mut expected = Complex64::ZERO;
            for (index, value) in widen(&input).into_iter().enumerate() {
                let mut rest = index;
                let mut turns = 0.0;
                for (axis, &n) in shape.iter().enumerate().rev() {
                    let (j, c) = (rest % n, n / 2);
                    rest /= n;
                    turns += (j as f64 - c as f64) * (at[axis] as f64 - c as f64) / n as f64;
                }
                expected += value * Complex64::cis(-std::f64::consts::TAU * turns);
            }
            expected /= (len as f64).sqrt();
            let flat = shape.iter().zip(at).fold(0, |flat, (n, k)| flat * n + k);
            let found = widen(&data.cpu()[flat..flat + 1])[0];
            assert!((found - expected).norm() < 1e-4, "{shape:?}: {found} against {expected}");
            fft.inverse(&mut data).unwrap();
            assert!(relative_error(data.cpu(), &widen(&input)) < 1e-6);
        }
    }
}

#[test]
fn the_centre_is_position_and_frequency_zero() {
    let device = Device::cpu_with_threads(2).unwrap();
    for shape in [&[7, 4][..], &[5, 1, 6]] {
        let fft = Fft::<f64>::new(&device, shape, Norm::None).unwrap();
        let len: usize = shape.iter().product();
        let centre = shape.iter().fold(0, |flat, n| flat * n + n / 2);
        let mut point = Array::<Complex64>::zeros(&device, shape).unwrap();
        point.cpu_mut()[centre] = Complex64::ONE;
        fft.forward(&mut point).unwrap();
        assert!(point.cpu().iter().all(|v| (v - 1.0).norm() < 1e-14));
        fft.inverse(&mut point).unwrap();
        for (index, value) in point.cpu().iter().enumerate() {
            let expected = if index == centre { len as f64 } else { 0.0 };
            assert!((value - expected).norm() < 1e-12);
        }
    }
}

#[test]
fn unsuitable_shapes_are_named() {
    let device = Device::cpu_with_threads(1).unwrap();
    for shape in [&[][..], &[0], &[4, 0], &[1, 2, 3, 4], &[usize::MAX, 2]] {
        assert!(Fft::<f32>::new(&device, shape, Norm::None).is_err(), "{shape:?}");
    }
    let fft = Fft::<f32>::new(&device, &[4, 6], Norm::None).unwrap();
    for shape in [&[6][..], &[6, 4], &[4, 6, 2]] {
        let error = fft.forward(&mut Array::zeros(&device, shape).unwrap()).unwrap_err();
        assert!(error.to_string().contains("[4, 6]") || error.to_string().contains("[.., 4, 6]"), "{error}");
    }
    fft.forward(&mut Array::zeros(&device, &[0, 4, 6]).unwrap()).unwrap();
    let other = Device::cpu_with_threads(1).unwrap();
    assert!(fft.forward(&mut Array::zeros(&other, &[4, 6]).unwrap()).is_err());
    let engine = FftNd::<f32>::new(&[5]).unwrap();
    assert!(engine.process(cpu(&device), &mut [Complex::ZERO; 6], Direction::Forward).is_err());
    let overlapping = vec![vec![0..3, 2..4]];
    assert!(Region::new(&[5], overlapping).is_err());
    assert!(Region::wrapped(&[5], &[6]).is_err());
}
