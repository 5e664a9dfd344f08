use num_complex::{Complex, Complex64};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use rayspin_core::Real;
use rayspin_device::{Array, Cpu, Device};

use super::cpu::{Direction, FftNd, Options, Region};
use super::cuda::{Beside, Extent, Side, Span};
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
                    (variant.implementation)(cpu(&device), &engine, &mut found, direction).unwrap();
                    let error = relative_error(&found, &expected);
                    assert!(error < variant.tolerance, "{} {shape:?}: {error:.1e}", variant.name);
                }
            }
        }
    }
}

/// Every combination of regions that the padded and cropped transforms of NUFFT and Toeplitz use, and ragged
/// ones.
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

/// Large enough that planes are transformed locally and the first axis over all cores, columns split between
/// them.
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

/// Lengths of one stage and of several, of every radix, and with large prime factors, as rows and as columns.
fn gpus_match<R: Real>(shapes: &[&[usize]], tolerance: f64) {
    for device in crate::cuda::gpus() {
        for (case, &shape) in shapes.iter().enumerate() {
            let len: usize = shape.iter().product();
            for batch in [1, 3] {
                let input = random::<R>(batch * len, 60 + case as u64);
                let fft = Fft::<R>::new(device, shape, Norm::Unitary).unwrap();
                let shape = [&[batch][..], shape].concat();
                for direction in [Direction::Forward, Direction::Inverse] {
                    let mut data = Array::from_slice(device, &shape, &input).unwrap();
                    match direction {
                        Direction::Forward => fft.forward(&mut data).unwrap(),
                        Direction::Inverse => fft.inverse(&mut data).unwrap(),
                    }
                    let mut expected = reference::dft(&widen(&input), fft.shape(), direction, true);
                    let scale = 1.0 / (len as f64).sqrt();
                    expected.iter_mut().for_each(|value| *value *= scale);
                    let error = relative_error(&data.to_vec().unwrap(), &expected);
                    assert!(
                        error < tolerance,
                        "{shape:?} {direction:?} on {}: {error:.1e}",
                        device.describe()
                    );
                }
            }
        }
    }
}

#[test]
fn single_precision_on_gpus_matches_the_formula() {
    gpus_match::<f32>(
        &[&[1], &[7], &[97], &[360], &[1, 5], &[31, 33], &[64, 48], &[256, 3], &[2, 3, 5], &[16, 20, 24]],
        1e-6,
    );
}

#[test]
fn double_precision_on_gpus_matches_the_formula() {
    gpus_match::<f64>(&[&[210], &[13, 16], &[6, 1, 9]], 1e-14);
}

#[test]
fn lengths_beyond_a_gpus_kernels_are_transformed_on_the_host() {
    for device in crate::cuda::gpus() {
        let fft = Fft::<f32>::new(device, &[9000], Norm::Unitary).unwrap();
        assert!(matches!(fft.engine, super::Engine::Host(_)));
        let input = random::<f32>(9000, 3);
        let mut data = Array::from_slice(device, &[9000], &input).unwrap();
        fft.forward(&mut data).unwrap();
        fft.inverse(&mut data).unwrap();
        assert!(relative_error(&data.to_vec().unwrap(), &widen(&input)) < 1e-6);
    }
}

/// Padding is not read, weights are applied, and the way back is the adjoint.
#[test]
fn padded_transforms_on_gpus_match_the_formula() {
    use super::cuda::PaddedFft;
    let cases: &[(&[usize], &[usize])] =
        &[(&[7], &[16]), (&[5, 8], &[12, 16]), (&[4, 3, 6], &[8, 9, 15]), (&[1, 6, 6], &[1, 12, 12])];
    for device in crate::cuda::gpus() {
        for (case, &(matrix, grid)) in cases.iter().enumerate() {
            let batch = 2;
            let mut rng = ChaCha8Rng::seed_from_u64(case as u64);
            let factors: Vec<Vec<f64>> =
                matrix.iter().map(|&n| (0..n).map(|_| rng.random_range(0.5..2.0)).collect()).collect();
            let plan = PaddedFft::<f64>::new(device, matrix, grid, &factors).unwrap();
            let image = random::<f64>(batch * plan.image_len(), 80 + case as u64);
            // Image index and grid index of every voxel.
            let places: Vec<(f64, usize)> = (0..plan.image_len())
                .map(|flat| {
                    let (mut rest, mut at, mut stride, mut weight) = (flat, 0, 1, 1.0);
                    for axis in (0..matrix.len()).rev() {
                        let (n, l) = (matrix[axis], grid[axis]);
                        let i = rest % n;
                        rest /= n;
                        at += (i + l - n / 2) % l * stride;
                        stride *= l;
                        weight *= factors[axis][i];
                    }
                    (weight, at)
                })
                .collect();
            let mut padded = vec![Complex64::ZERO; batch * plan.grid_len()];
            for (index, value) in image.iter().enumerate() {
                let (weight, at) = places[index % plan.image_len()];
                padded[index / plan.image_len() * plan.grid_len() + at] = value * weight;
            }
            let expected = reference::dft(&padded, grid, Direction::Forward, false);
            let nan = Complex::new(f64::NAN, f64::NAN);
            let shape = [&[batch][..], grid].concat();
            let mut found = Array::from_vec(device, &shape, vec![nan; padded.len()]).unwrap();
            let from = Array::from_slice(device, &[image.len()], &image).unwrap();
            plan.forward_padded(from.cuda(), found.cuda_mut(), batch).unwrap();
            let error = relative_error(&found.to_vec().unwrap(), &expected);
            assert!(error < 1e-14, "{matrix:?} in {grid:?}: {error:.1e}");

            let samples = random::<f64>(padded.len(), 90 + case as u64);
            let whole = reference::dft(&samples, grid, Direction::Inverse, false);
            let expected: Vec<_> = (0..image.len())
                .map(|index| {
                    let (weight, at) = places[index % plan.image_len()];
                    whole[index / plan.image_len() * plan.grid_len() + at] * weight
                })
                .collect();
            let mut grids = Array::from_vec(device, &shape, samples).unwrap();
            let mut found = Array::from_vec(device, &[image.len()], vec![nan; image.len()]).unwrap();
            plan.inverse_cropped(grids.cuda_mut(), found.cuda_mut(), batch).unwrap();
            let error = relative_error(&found.to_vec().unwrap(), &expected);
            assert!(error < 1e-14, "{grid:?} to {matrix:?}: {error:.1e}");
        }
        assert!(PaddedFft::<f32>::new(device, &[4], &[11], &[vec![1.0; 4]]).is_err());
        assert!(PaddedFft::<f32>::new(device, &[4], &[8], &[vec![1.0; 5]]).is_err());
    }
}

/// The number of elements from the first to the last that a pass touches, by going through all of them.
fn touched(side: &Side, extent: &Extent, n: usize) -> usize {
    let beside = |axis: &Beside, i: usize| match axis.shift {
        0 => i,
        shift => (i + axis.length - shift) % axis.length,
    };
    let along = |i: usize| if side.span.whole { (i + n - side.span.shift) % n } else { i };
    let mut last = None;
    for batch in 0..extent.batch {
        for (a, b) in (0..extent.a).flat_map(|a| (0..extent.b).map(move |b| (a, b))) {
            for element in 0..side.span.count {
                let line = batch * side.batch
                    + beside(&side.a, a) * side.a.stride
                    + beside(&side.b, b) * side.b.stride;
                last = last.max(Some(line + along(element) * side.stride + extent.inner - 1));
            }
        }
    }
    last.map_or(0, |last| last + 1)
}

#[test]
fn a_pass_reaches_no_farther_than_its_sides_say() {
    let n = 6;
    let spans =
        [Span::full(n), Span::centred(5), Span::centred(4).in_place(), Span::lower(3), Span::lower(0)];
    let axes = [
        Beside::packed(7),
        Beside { stride: 3, shift: 2, length: 9 },
        Beside { stride: 50, shift: 4, length: 5 },
    ];
    for (batch, across, down, inner) in [(1, 1, 1, 1), (3, 2, 5, 4), (2, 4, 3, 1)] {
        let extent = Extent { batch, a: across, b: down, inner };
        for span in spans {
            for (a, b) in axes.into_iter().flat_map(|a| axes.map(|b| (a, b))) {
                let side = Side { batch: 100, a, b, stride: 11, span };
                let (said, found) = (side.len(&extent, n).unwrap(), touched(&side, &extent, n));
                assert!(said >= found, "{side:?} {extent:?}");
                // The index before the shift lies at the last place of a shifted axis.
                let reached =
                    a.shift <= across && b.shift <= down && (!span.whole || span.shift <= span.count);
                assert!(!reached || said == found, "{side:?} {extent:?}");
                // Beyond all memory.
                let far = Side { stride: usize::MAX / 2, batch: usize::MAX / 2, ..side };
                let beyond = span.count > 3 && batch > 1;
                assert!(!beyond || far.len(&extent, n).is_none(), "{far:?}");
            }
        }
    }
    let longer = Side { batch: 1, a: axes[0], b: axes[0], stride: 1, span: Span::full(n + 1) };
    assert_eq!(longer.len(&Extent { batch: 1, a: 1, b: 1, inner: 1 }, n), None);
}
