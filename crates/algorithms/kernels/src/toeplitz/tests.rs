use num_complex::{Complex, Complex64};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use rayspin_core::{C64, Real, Trajectory};
use rayspin_device::{Array, Backend, BackendKind, Device};

use super::{Problem, Series, Toeplitz, VARIANTS, reference};

const MATRICES: &[&[usize]] = &[
    &[1],
    &[2],
    &[7],
    &[40],
    &[1, 1],
    &[5, 1],
    &[1, 6],
    &[8, 6],
    &[13, 11],
    &[17, 20],
    &[1, 1, 1],
    &[2, 1, 3],
    &[4, 5, 6],
    &[7, 3, 9],
    &[10, 9, 12],
];

struct Case {
    trajectory: Trajectory,
    weights: Vec<f64>,
    q: Vec<Complex64>,
    rng: ChaCha8Rng,
}

/// Random points all over k-space, beyond its edge too, with positive weights.
fn case(matrix: &[usize], seed: u64) -> Case {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let samples = 23;
    let dims = matrix.len();
    let points = ndarray::Array2::from_shape_fn((samples, dims), |(_, dim)| {
        let n = matrix[dims - 1 - dim] as f64;
        rng.random_range(-0.6 * n..0.6 * n)
    });
    let trajectory = Trajectory::from_cycles_per_fov(points).unwrap();
    let weights: Vec<f64> = (0..samples).map(|_| rng.random_range(0.1..2.0)).collect();
    let q = reference::kernel(matrix, &trajectory, &weights);
    Case { trajectory, weights, q, rng }
}

fn random(rng: &mut ChaCha8Rng, len: usize) -> Vec<Complex64> {
    (0..len).map(|_| Complex64::new(rng.random_range(-1.0..1.0), rng.random_range(-1.0..1.0))).collect()
}

fn narrow<R: Real>(values: &[Complex64]) -> Vec<Complex<R>> {
    values.iter().map(|v| Complex::new(<R as Real>::from_f64(v.re), <R as Real>::from_f64(v.im))).collect()
}

fn array<R: Real>(device: &Device, shape: &[usize], values: &[Complex64]) -> Array<Complex<R>> {
    Array::from_vec(device, shape, narrow(values)).unwrap()
}

fn poisoned<R: Real>(device: &Device, shape: &[usize]) -> Array<Complex<R>> {
    let mut array = Array::zeros(device, shape).unwrap();
    array.fill(Complex::new(R::nan(), R::nan())).unwrap();
    array
}

fn plan<R: Real>(device: &Device, matrix: &[usize], q: &[Complex64]) -> Toeplitz<R> {
    let doubled: Vec<usize> = matrix.iter().map(|n| 2 * n).collect();
    Toeplitz::from_kernel(device, matrix, &array(device, &doubled, q)).unwrap()
}

fn relative_error<R: Real>(found: &[Complex<R>], expected: &[Complex64]) -> f64 {
    let difference: f64 = found
        .iter()
        .zip(expected)
        .map(|(a, b)| (Complex64::new(a.re.to_f64(), a.im.to_f64()) - b).norm_sqr())
        .sum();
    let size: f64 = expected.iter().map(Complex64::norm_sqr).sum();
    (difference / size).sqrt()
}

fn matches_the_direct_sum<R: Real>(tolerance: f64) {
    for (index, &matrix) in MATRICES.iter().enumerate() {
        let mut case = case(matrix, 100 + index as u64);
        let len: usize = matrix.iter().product();
        for threads in [1, 2, 3] {
            let device = Device::cpu_with_threads(threads).unwrap();
            // Twice with the same plan: the second call finds used buffers.
            let toeplitz = plan::<R>(&device, matrix, &case.q);
            for batch in [1, 4] {
                let x = random(&mut case.rng, batch * len);
                let expected: Vec<_> = x
                    .chunks_exact(len)
                    .flat_map(|x| reference::normal(x, matrix, &case.trajectory, &case.weights))
                    .collect();
                let shape = [&[batch][..], matrix].concat();
                let mut y = poisoned::<R>(&device, &shape);
                toeplitz.apply(&array(&device, &shape, &x), &mut y).unwrap();
                let error = relative_error(y.cpu(), &expected);
                assert!(error < tolerance, "{matrix:?} × {batch}, {threads} threads: {error:.1e}");
            }
        }
    }
}

#[test]
fn single_precision_matches_the_direct_sum() {
    matches_the_direct_sum::<f32>(2e-6);
}

#[test]
fn double_precision_matches_the_direct_sum() {
    matches_the_direct_sum::<f64>(1e-13);
}

#[test]
fn every_variant_matches_the_direct_sum() {
    let device = Device::cpu_with_threads(2).unwrap();
    let cpu = device.cpu_side();
    for variant in VARIANTS {
        for (index, &matrix) in MATRICES.iter().enumerate() {
            let mut case = case(matrix, 400 + index as u64);
            let len: usize = matrix.iter().product();
            let problem = Problem { matrix: matrix.to_vec(), batch: 2 };
            let x = random(&mut case.rng, 2 * len);
            let expected: Vec<_> = x
                .chunks_exact(len)
                .flat_map(|x| reference::normal(x, matrix, &case.trajectory, &case.weights))
                .collect();
            let mut y = vec![Complex::new(f32::NAN, f32::NAN); 2 * len];
            let apply = (variant.implementation)(cpu, &problem, &narrow(&case.q)).unwrap();
            apply(cpu, &narrow(&x), &mut y).unwrap();
            let error = relative_error(&y, &expected);
            assert!(error < variant.tolerance, "{} {matrix:?}: {error:.1e}", variant.name);
            assert!((variant.work)(&problem).flops > 0.0);
        }
    }
}

#[test]
fn the_unpaired_displacement_is_not_read() {
    let device = Device::cpu_with_threads(2).unwrap();
    let matrix = [3, 4, 5];
    let mut case = case(&matrix, 1);
    let x = array::<f64>(&device, &matrix, &random(&mut case.rng, 60));
    let mut expected = poisoned(&device, &matrix);
    plan::<f64>(&device, &matrix, &case.q).apply(&x, &mut expected).unwrap();
    for z in 0..6 {
        for y in 0..8 {
            for x in 0..10 {
                if z * y * x == 0 {
                    case.q[(z * 8 + y) * 10 + x] = Complex64::new(f64::NAN, f64::INFINITY);
                }
            }
        }
    }
    let mut found = poisoned(&device, &matrix);
    plan::<f64>(&device, &matrix, &case.q).apply(&x, &mut found).unwrap();
    assert_eq!(found.cpu(), expected.cpu());
}

#[test]
fn it_is_self_adjoint_and_positive_semidefinite() {
    let device = Device::cpu_with_threads(2).unwrap();
    for (seed, &matrix) in MATRICES.iter().enumerate() {
        let mut case = case(matrix, 200 + seed as u64);
        let len: usize = matrix.iter().product();
        let toeplitz = plan::<f64>(&device, matrix, &case.q);
        let dot = |a: &[Complex64], b: &[Complex64]| -> Complex64 {
            a.iter().zip(b).map(|(a, b)| a.conj() * b).sum()
        };
        let (a, b) = (random(&mut case.rng, len), random(&mut case.rng, len));
        let apply = |x: &[Complex64]| {
            let mut y = poisoned::<f64>(&device, matrix);
            toeplitz.apply(&array(&device, matrix, x), &mut y).unwrap();
            y.cpu().to_vec()
        };
        let (ta, tb) = (apply(&a), apply(&b));
        let scale = (dot(&ta, &ta).re * dot(&b, &b).re).sqrt();
        assert!((dot(&ta, &b) - dot(&a, &tb)).norm() < 1e-12 * scale, "{matrix:?}");
        let energy = dot(&a, &ta);
        assert!(energy.re > -1e-12 * scale && energy.im.abs() < 1e-12 * scale, "{matrix:?}: {energy}");
    }
}

#[test]
fn the_sense_normal_is_the_sum_over_coils() {
    for (seed, &matrix) in MATRICES.iter().enumerate() {
        let mut case = case(matrix, 300 + seed as u64);
        let len: usize = matrix.iter().product();
        // Fewer coils than threads, as many coils as threads, and more.
        let coils = 5;
        let (x, maps) = (random(&mut case.rng, len), random(&mut case.rng, coils * len));
        let parts: Vec<Vec<Complex64>> = maps
            .chunks_exact(len)
            .map(|map| {
                let coil: Vec<_> = map.iter().zip(&x).map(|(s, x)| s * x).collect();
                let normal = reference::normal(&coil, matrix, &case.trajectory, &case.weights);
                normal.iter().zip(map).map(|(value, s)| s.conj() * value).collect()
            })
            .collect();
        let mut one_thread: Vec<Vec<Complex64>> = Vec::new();
        for threads in [1, 2, 3] {
            let device = Device::cpu_with_threads(threads).unwrap();
            let toeplitz = plan::<f64>(&device, matrix, &case.q);
            for (index, coils) in [1, 2, 5].into_iter().enumerate() {
                let expected: Vec<Complex64> =
                    (0..len).map(|i| parts[..coils].iter().map(|part| part[i]).sum()).collect();
                let mut y = poisoned::<f64>(&device, matrix);
                let maps = array(&device, &[&[coils][..], matrix].concat(), &maps[..coils * len]);
                toeplitz.apply_sense(&array(&device, matrix, &x), &maps, &mut y).unwrap();
                let y = y.cpu().to_vec();
                assert!(
                    relative_error(&y, &expected) < 1e-13,
                    "{matrix:?}, {coils} coils, {threads} threads"
                );
                if threads == 1 {
                    one_thread.push(y);
                } else {
                    assert_eq!(y, one_thread[index], "{matrix:?}, {coils} coils, {threads} threads");
                }
            }
        }
    }
}

#[test]
fn memory_is_stated_beforehand() {
    let device = Device::cpu_with_threads(2).unwrap();
    for matrix in [&[9][..], &[12, 7], &[6, 5, 4]] {
        let toeplitz = plan::<f32>(&device, matrix, &case(matrix, 2).q);
        assert_eq!(toeplitz.bytes(), Toeplitz::<f32>::bytes_needed(matrix).unwrap(), "{matrix:?}");
    }
    assert_eq!(Toeplitz::<f32>::bytes_needed(&[128; 3]).unwrap(), (4 + 2) << 24);
    // A work buffer for each of the coils that are transformed at once.
    let device = Device::cpu_with_threads(3).unwrap();
    for (coils, buffers) in [(1, 1), (2, 2), (5, 3)] {
        let toeplitz = plan::<f32>(&device, &[12, 7], &case(&[12, 7], 2).q);
        let maps = Array::zeros(&device, &[coils, 12, 7]).unwrap();
        let mut y = poisoned(&device, &[12, 7]);
        toeplitz.apply_sense(&Array::zeros(&device, &[12, 7]).unwrap(), &maps, &mut y).unwrap();
        assert_eq!(toeplitz.bytes(), Toeplitz::<f32>::bytes_needed_on(&device, &[12, 7], coils).unwrap());
        let work = Toeplitz::<f32>::bytes_of_work(&device, &[12, 7], coils).unwrap();
        assert_eq!(work, buffers * Toeplitz::<f32>::bytes_of_work(&device, &[12, 7], 1).unwrap());
        let mut one = plan::<f32>(&device, &[12, 7], &case(&[12, 7], 2).q);
        one.limit_batch(1);
        one.apply_sense(&Array::zeros(&device, &[12, 7]).unwrap(), &maps, &mut y).unwrap();
        assert_eq!(one.bytes(), Toeplitz::<f32>::bytes_needed(&[12, 7]).unwrap());
    }
}

#[test]
fn unsuitable_kernels_are_named() {
    let device = Device::cpu_with_threads(1).unwrap();
    let kernel = |shape: &[usize], value: Complex64| {
        let mut q = Array::<Complex64>::zeros(&device, shape).unwrap();
        q.fill(value).unwrap();
        q
    };
    let new = |matrix: &[usize], q: &Array<Complex64>| Toeplitz::from_kernel(&device, matrix, q).map(|_| ());
    let ones = kernel(&[8, 8], Complex64::ONE);
    new(&[4, 4], &ones).unwrap();
    new(&[4, 4], &kernel(&[8, 8], Complex64::ZERO)).unwrap();
    for matrix in [&[][..], &[0, 4], &[4], &[4, 5], &[2, 2, 2, 2], &[usize::MAX, 4]] {
        assert!(new(matrix, &ones).is_err(), "{matrix:?}");
    }
    let error = new(&[4, 4], &kernel(&[8, 8], Complex64::I)).unwrap_err();
    assert!(error.to_string().contains("Hermitian"), "{error}");
    let error = new(&[4, 4], &kernel(&[8, 8], Complex64::new(f64::NAN, 0.0))).unwrap_err();
    assert!(matches!(error, rayspin_core::Error::NotFinite { .. }));
    let toeplitz = Toeplitz::from_kernel(&device, &[4, 4], &ones).unwrap();
    let image = kernel(&[4, 4], Complex64::ONE);
    assert!(toeplitz.apply(&image, &mut kernel(&[1, 4, 4], Complex64::ONE)).is_err());
    assert!(toeplitz.apply(&kernel(&[4], Complex64::ONE), &mut kernel(&[4], Complex64::ONE)).is_err());
    let mut y = kernel(&[4, 4], Complex64::ONE);
    assert!(toeplitz.apply_sense(&image, &kernel(&[4, 4], Complex64::ONE), &mut y).is_err());
    toeplitz.apply_sense(&image, &kernel(&[0, 4, 4], Complex64::ONE), &mut y).unwrap();
    assert!(y.cpu().iter().all(|v| *v == Complex64::ZERO));
}

/// Sizes whose padded axes have a lower half and such that have none, one row and many.
fn gpus_match<R: Real>(matrices: &[&[usize]], tolerance: f64) {
    for device in crate::cuda::gpus() {
        for (index, &matrix) in matrices.iter().enumerate() {
            let mut case = case(matrix, 500 + index as u64);
            let len: usize = matrix.iter().product();
            let toeplitz = plan::<R>(device, matrix, &case.q);
            assert!(matches!(toeplitz.engine, super::Engine::Gpu(_)));
            for batch in [1, 3] {
                let x = random(&mut case.rng, batch * len);
                let expected: Vec<_> = x
                    .chunks_exact(len)
                    .flat_map(|x| reference::normal(x, matrix, &case.trajectory, &case.weights))
                    .collect();
                let shape = [&[batch][..], matrix].concat();
                let mut y = poisoned::<R>(device, &shape);
                toeplitz.apply(&array(device, &shape, &x), &mut y).unwrap();
                let error = relative_error(&y.to_vec().unwrap(), &expected);
                assert!(error < tolerance, "{matrix:?} × {batch} on {}: {error:.1e}", device.describe());

                // With sensitivities: the sum of what the same images give when they are coil images of one.
                let (image, maps) = (random(&mut case.rng, len), x);
                let mut expected = vec![Complex64::ZERO; len];
                for map in maps.chunks_exact(len) {
                    let coil: Vec<_> = map.iter().zip(&image).map(|(s, x)| s * x).collect();
                    let normal = reference::normal(&coil, matrix, &case.trajectory, &case.weights);
                    for ((sum, value), s) in expected.iter_mut().zip(normal).zip(map) {
                        *sum += s.conj() * value;
                    }
                }
                let mut y = poisoned::<R>(device, matrix);
                let (image, maps) = (array(device, matrix, &image), array(device, &shape, &maps));
                toeplitz.apply_sense(&image, &maps, &mut y).unwrap();
                let error = relative_error(&y.to_vec().unwrap(), &expected);
                assert!(error < tolerance, "{matrix:?}, {batch} coils on {}: {error:.1e}", device.describe());
            }
            let expected = Toeplitz::<R>::bytes_needed_on(device, matrix, 3).unwrap();
            assert_eq!(toeplitz.bytes(), expected, "{matrix:?}");
        }
    }
}

#[test]
fn single_precision_on_gpus_matches_the_direct_sum() {
    gpus_match::<f32>(&[&[1], &[7], &[40], &[1, 6], &[13, 11], &[17, 20], &[2, 1, 3], &[10, 9, 12]], 2e-6);
}

#[test]
fn double_precision_on_gpus_matches_the_direct_sum() {
    gpus_match::<f64>(&[&[6, 9], &[5, 4, 6]], 1e-13);
}

#[test]
fn gpus_and_the_cpu_exchange_spectra() {
    let cpu = Device::cpu_with_threads(2).unwrap();
    for device in crate::cuda::gpus() {
        for matrix in [&[7, 6][..], &[5, 4, 6]] {
            let mut case = case(matrix, 3);
            let x = random(&mut case.rng, matrix.iter().product());
            let ours = plan::<f64>(device, matrix, &case.q);
            let spectrum = ours.spectrum().unwrap().into_owned();
            let theirs = plan::<f64>(&cpu, matrix, &case.q);
            let scale = theirs.spectrum().unwrap().iter().fold(0.0f64, |most, v| most.max(v.abs()));
            assert_eq!(spectrum.len(), theirs.spectrum().unwrap().len());
            for (a, b) in spectrum.iter().zip(theirs.spectrum().unwrap().iter()) {
                assert!((a - b).abs() < 1e-13 * scale, "{matrix:?}: {a} against {b}");
            }
            let again = Toeplitz::from_spectrum(device, matrix, spectrum).unwrap();
            let image = array::<f64>(device, matrix, &x);
            let (mut y, mut z) = (poisoned::<f64>(device, matrix), poisoned::<f64>(device, matrix));
            ours.apply(&image, &mut y).unwrap();
            again.apply(&image, &mut z).unwrap();
            assert_eq!(y.to_vec().unwrap(), z.to_vec().unwrap());
        }
    }
}

/// Slabs narrower than the padded axis, fewer coils at a time than there are, sums of coils across them.
#[test]
fn however_a_gpus_work_is_cut_the_result_is_the_same() {
    use super::cuda::{Convolution, Cut};
    let matrix = [5, 4, 20];
    let mut case = case(&matrix, 9);
    let (len, coils) = (400, 5);
    let (x, maps) = (random(&mut case.rng, len), random(&mut case.rng, coils * len));
    for device in crate::cuda::gpus() {
        let q = array::<f64>(device, &[10, 8, 40], &case.q);
        let (x, maps) = (array::<f64>(device, &matrix, &x), array::<f64>(device, &[coils, 5, 4, 20], &maps));
        let apply = |cut: Option<Cut>| {
            let plan = Convolution::cut(device, &matrix, &q, cut).unwrap();
            let mut y = poisoned::<f64>(device, &matrix);
            plan.apply_sense(x.cuda(), maps.cuda(), y.cuda_mut(), false).unwrap();
            let mut z = poisoned::<f64>(device, &[coils, 5, 4, 20]);
            plan.apply(maps.cuda(), z.cuda_mut()).unwrap();
            [y.to_vec().unwrap(), z.to_vec().unwrap()].concat()
        };
        let expected = apply(None);
        for cut in [Cut { coils: 2, width: 16 }, Cut { coils: 5, width: 32 }, Cut { coils: 1, width: 40 }] {
            assert!(relative_error(&apply(Some(cut)), &expected) < 1e-14, "{cut:?}");
        }
    }
}

#[test]
fn fewer_coils_at_a_time_where_memory_is_short() {
    let device = rayspin_emu::Emulator::device().unwrap();
    let Backend::Cuda(cuda) = device.backend() else { panic!("not a GPU") };
    let matrix = [9, 20];
    let mut case = case(&matrix, 4);
    let plan = plan::<f64>(&device, &matrix, &case.q);
    let images = random(&mut case.rng, 5 * 180);
    let x = array::<f64>(&device, &[5, 9, 20], &images);
    let mut expected = poisoned::<f64>(&device, &[5, 9, 20]);
    plan.apply(&x, &mut expected).unwrap();
    let [all, one] = [5, 1].map(|coils| Toeplitz::<f64>::bytes_needed_on(&device, &matrix, coils).unwrap());
    assert_eq!(plan.bytes(), all);
    let short = Toeplitz::from_spectrum(&device, &matrix, plan.spectrum().unwrap().into_owned()).unwrap();
    let work = one - short.bytes();
    let mut found = poisoned::<f64>(&device, &[5, 9, 20]);
    cuda.limit_memory(Some(cuda.memory_used().0 + 4 * work));
    short.apply(&x, &mut found).unwrap();
    assert_eq!(short.bytes(), one + 2 * work, "three of five");
    assert_eq!(found.to_vec().unwrap(), expected.to_vec().unwrap());
    cuda.limit_memory(None);
    let none = Toeplitz::from_spectrum(&device, &matrix, plan.spectrum().unwrap().into_owned()).unwrap();
    cuda.limit_memory(Some(cuda.memory_used().0));
    let error = none.apply(&x, &mut found).unwrap_err();
    assert!(matches!(error, rayspin_core::Error::Memory { .. }), "{error}");
}

#[test]
fn unsuitable_kernels_are_named_on_gpus() {
    for device in crate::cuda::gpus() {
        let kernel = |value: Complex64| {
            let mut q = Array::<Complex64>::zeros(device, &[8, 8]).unwrap();
            q.fill(value).unwrap();
            q
        };
        let new = |q: &Array<Complex64>| Toeplitz::from_kernel(device, &[4, 4], q).map(|_| ());
        assert!(new(&kernel(Complex64::I)).unwrap_err().to_string().contains("Hermitian"));
        let error = new(&kernel(Complex64::new(f64::NAN, 0.0))).unwrap_err();
        assert!(matches!(error, rayspin_core::Error::NotFinite { .. }));
        let toeplitz = Toeplitz::from_kernel(device, &[4, 4], &kernel(Complex64::ONE)).unwrap();
        let image = Array::<Complex64>::zeros(device, &[4, 4]).unwrap();
        let mut y = poisoned::<f64>(device, &[4, 4]);
        toeplitz.apply_sense(&image, &Array::zeros(device, &[0, 4, 4]).unwrap(), &mut y).unwrap();
        assert!(y.to_vec().unwrap().iter().all(|v| *v == Complex64::ZERO));
    }
}

#[test]
fn the_kernel_from_adjoint_transforms_is_the_direct_sum() {
    let mut rng = ChaCha8Rng::seed_from_u64(77);
    for matrix in [vec![1], vec![7], vec![6, 5], vec![1, 8], vec![4, 3, 5], vec![3, 1, 2]] {
        let dims = matrix.len();
        let points = ndarray::Array2::from_shape_fn((40, dims), |(_, d)| {
            let n = matrix[dims - 1 - d] as f64;
            rng.random_range(-n..n)
        });
        let trajectory = rayspin_core::Trajectory::from_cycles_per_fov(points).unwrap();
        let doubled: Vec<usize> = matrix.iter().map(|n| 2 * n).collect();
        let host = Device::cpu_with_threads(1).unwrap();
        let mut direct = Array::<C64>::zeros(&host, &doubled).unwrap();
        crate::nudft::q(&trajectory, None, &matrix, &mut direct).unwrap();
        for device in rayspin_emu::devices().unwrap() {
            let mut adjoint = |samples: &Array<C64>, image: &mut Array<C64>| {
                image.fill(C64::new(f64::NAN, f64::NAN))?;
                crate::nudft::adjoint(&trajectory, samples, image)
            };
            let found = super::make::kernel(&device, &trajectory, &matrix, &mut adjoint).unwrap();
            for (index, (f, d)) in found.to_vec().unwrap().iter().zip(direct.cpu()).enumerate() {
                // Displacements −n occur between no two voxels; some are there, some 0.
                let mut rest = index;
                let mut occurs = true;
                for &size in doubled.iter().rev() {
                    occurs &= rest % size > 0;
                    rest /= size;
                }
                let what = format!("{}, {matrix:?} at {index}: {f}, not {d}", device.describe());
                assert!((f - d).norm() < 1e-9 * 40.0 || !occurs && f.norm() <= 40.0 + 1e-9, "{what}");
            }
            if let Backend::Cuda(cuda) = device.backend() {
                let before = cuda.memory_used().0;
                let mut most = 0;
                let mut nothing = |_: &Array<C64>, _: &mut Array<C64>| {
                    most = most.max(cuda.memory_used().0 - before);
                    Ok(())
                };
                drop(super::make::kernel(&device, &trajectory, &matrix, &mut nothing).unwrap());
                assert_eq!(most, Toeplitz::<f64>::from_adjoint_needs(&device, 40, &matrix).unwrap());
            }
            super::Toeplitz::from_adjoint(&device, &trajectory, &matrix, &mut adjoint).unwrap();
            assert!(super::make::kernel(&device, &trajectory, &[2, 2, 2, 2], &mut adjoint).is_err());
        }
    }
}

/// Spectra that are copied give the same bits as spectra that stay, in the stated memory. A failure in
/// between harms nothing.
#[test]
fn kernels_of_a_series_are_the_same_wherever_their_spectra_lie() {
    let (matrix, count) = ([7, 12], 4);
    let cases: Vec<_> = (0..count as u64).map(|seed| case(&matrix, 30 + seed)).collect();
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let images = random(&mut rng, 84);
    for device in rayspin_emu::devices().unwrap() {
        let x = array::<f64>(&device, &matrix, &images);
        let mut y = poisoned::<f64>(&device, &matrix);
        let mut all = |series: &Series<f64>| {
            let mut found = Vec::new();
            series.each(|index, kernel| {
                assert_eq!(found.len(), index);
                kernel.apply(&x, &mut y)?;
                found.push(y.to_vec()?);
                Ok(())
            })?;
            Ok::<_, rayspin_core::Error>(found)
        };
        let expected: Vec<_> = cases
            .iter()
            .map(|case| {
                let mut y = poisoned::<f64>(&device, &matrix);
                plan::<f64>(&device, &matrix, &case.q).apply(&x, &mut y).unwrap();
                y.to_vec().unwrap()
            })
            .collect();
        for resident in [None, Some(1), Some(2), Some(3), Some(9)] {
            let held = || match device.backend() {
                Backend::Cuda(cuda) => cuda.memory_used().0,
                Backend::Cpu(_) => 0,
            };
            let before = held();
            let mut series = Series::<f64>::new(&device, &matrix, count, resident).unwrap();
            for case in &cases {
                assert!(all(&series).is_err(), "some are missing");
                series.push(plan(&device, &matrix, &case.q)).unwrap();
            }
            assert!(series.push(plan(&device, &matrix, &cases[0].q)).is_err());
            if device.kind() == BackendKind::Cuda {
                let (stated, pinned) =
                    Series::<f64>::bytes_needed_on(&device, &matrix, count, resident).unwrap();
                let one = Series::<f64>::bytes_needed_on(&device, &matrix, 1, None).unwrap().0;
                let moving = resident.filter(|&n| n < count).map_or(0, |n| count - n.saturating_sub(2));
                // Each kernel has tables of its own besides; one applies all spectra that move.
                let taken = held();
                let engine = plan::<f64>(&device, &matrix, &cases[0].q);
                let tables = held() - taken - one;
                drop(engine);
                let kernels = (count - moving + moving.min(1)) as u64;
                assert_eq!(taken - before, stated + tables * kernels, "{resident:?}");
                assert_eq!(pinned, one * moving as u64);
            }
            for failing in [0, 3] {
                assert_eq!(all(&series).unwrap(), expected, "{resident:?}");
                let refused = series.each(|index, _| match index == failing {
                    true => Err(rayspin_core::Error::value("test", "another", index)),
                    false => Ok(()),
                });
                assert!(refused.is_err());
            }
            assert_eq!(all(&series).unwrap(), expected, "{resident:?}");
            drop(series);
            assert_eq!(held(), before);
        }
    }
}
