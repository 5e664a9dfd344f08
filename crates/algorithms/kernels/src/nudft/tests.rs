use ndarray::Array2;
use num_complex::Complex;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayspin_core::{C64, Real, Trajectory};
use rayspin_device::cpu::simd::{SimdReal, levels};
use rayspin_device::{Array, BackendKind, Device};

use super::*;

/// The rows of this machine's processor. `tests/devices.rs` runs the rows of a GPU.
fn rows<T: SimdReal>() -> Vec<Variant<Problem, Implementation<T>>> {
    variants::<T>().into_iter().filter(|row| row.backend == BackendKind::Cpu).collect()
}

struct Case {
    device: Device,
    trajectory: Trajectory,
    matrix: Vec<usize>,
    batch: usize,
    image: Vec<C64>,
    samples: Vec<C64>,
    weights: Vec<f64>,
}

fn random(rng: &mut ChaCha8Rng, len: usize) -> Vec<C64> {
    (0..len).map(|_| C64::new(rng.random_range(-1.0..1.0), rng.random_range(-1.0..1.0))).collect()
}

impl Case {
    fn new(seed: u64, matrix: &[usize], samples: usize, batch: usize, threads: usize) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let dims = matrix.len();
        let points = Array2::from_shape_fn((samples, dims), |(_, c)| {
            let half = 0.5 * matrix[dims - 1 - c] as f64;
            rng.random_range(-half..=half)
        });
        let voxels: usize = matrix.iter().product();
        // What f32 holds exactly, so that both precisions have the same oracle.
        let round = |values: Vec<C64>| -> Vec<C64> {
            let single = |v: f64| f64::from(v as f32);
            values.iter().map(|v| C64::new(single(v.re), single(v.im))).collect()
        };
        Self {
            device: Device::cpu_with_threads(threads).unwrap(),
            trajectory: Trajectory::from_cycles_per_fov(points).unwrap(),
            matrix: matrix.to_vec(),
            batch,
            image: round(random(&mut rng, voxels * batch)),
            samples: round(random(&mut rng, samples * batch)),
            weights: (0..samples).map(|_| f64::from(rng.random_range(0.0f32..1.0))).collect(),
        }
    }

    fn image_shape(&self) -> Vec<usize> {
        [&[self.batch], &self.matrix[..]].concat()
    }

    fn array<T: Real>(&self, shape: &[usize], values: &[C64]) -> Array<Complex<T>> {
        let cast = |v: f64| <T as Real>::from_f64(v);
        let values = values.iter().map(|v| Complex::new(cast(v.re), cast(v.im))).collect();
        Array::from_vec(&self.device, shape, values).unwrap()
    }

    fn poisoned<T: Real>(&self, shape: &[usize]) -> Array<Complex<T>> {
        let mut array = Array::zeros(&self.device, shape).unwrap();
        array.fill(Complex::new(T::nan(), T::nan())).unwrap();
        array
    }

    fn forward<T: SimdReal>(&self, row: &Variant<Problem, Implementation<T>>) -> Vec<C64> {
        let image = self.array::<T>(&self.image_shape(), &self.image);
        let mut out = self.poisoned::<T>(&[self.batch, self.trajectory.samples()]);
        forward_with(row, &self.trajectory, &image, &mut out).unwrap();
        widen(&out)
    }

    fn adjoint<T: SimdReal>(&self, row: &Variant<Problem, Implementation<T>>) -> Vec<C64> {
        let samples = self.array::<T>(&[self.batch, self.trajectory.samples()], &self.samples);
        let mut out = self.poisoned::<T>(&self.image_shape());
        adjoint_with(row, &self.trajectory, &samples, &mut out).unwrap();
        widen(&out)
    }

    fn q<T: SimdReal>(&self, row: &Variant<Problem, Implementation<T>>) -> Vec<C64> {
        let weights = self.weights.iter().map(|&w| <T as Real>::from_f64(w)).collect();
        let weights = Array::from_vec(&self.device, &[self.weights.len()], weights).unwrap();
        let doubled: Vec<usize> = self.matrix.iter().map(|n| 2 * n).collect();
        let mut out = self.poisoned::<T>(&doubled);
        q_with(row, &self.trajectory, Some(&weights), &self.matrix, &mut out).unwrap();
        widen(&out)
    }
}

fn widen<T: Real>(array: &Array<Complex<T>>) -> Vec<C64> {
    array.cpu().iter().map(|v| C64::new(Real::to_f64(v.re), Real::to_f64(v.im))).collect()
}

/// ‖found − expected‖/‖expected‖; infinite when anything is not finite.
fn error(found: &[C64], expected: &[C64]) -> f64 {
    assert_eq!(found.len(), expected.len());
    let norm = |v: &mut dyn Iterator<Item = C64>| v.map(|v| v.norm_sqr()).sum::<f64>().sqrt();
    let difference = norm(&mut found.iter().zip(expected).map(|(a, b)| a - b));
    let error = difference / norm(&mut expected.iter().copied());
    if error.is_finite() { error } else { f64::INFINITY }
}

fn every_variant_meets_its_tolerance<T: SimdReal>(case: &Case) {
    let t = &case.trajectory;
    let forward = reference::forward(t, &case.matrix, &case.image).unwrap();
    let adjoint = reference::adjoint(t, &case.matrix, &case.samples).unwrap();
    let q = reference::q(t, &case.matrix, &case.weights).unwrap();
    for row in rows::<T>() {
        let found = [
            ("forward", error(&case.forward(&row), &forward)),
            ("adjoint", error(&case.adjoint(&row), &adjoint)),
            ("q", error(&case.q(&row), &q)),
        ];
        for (what, error) in found {
            assert!(
                error <= row.tolerance,
                "{} {what} {} of {:?}, {} samples, batch {}: error {error:.2e}",
                T::NAME,
                row.name,
                case.matrix,
                t.samples(),
                case.batch
            );
        }
    }
}

#[test]
fn every_variant_agrees_with_the_oracle_at_odd_even_prime_and_unit_sizes() {
    let cases: [(&[usize], usize, usize); 14] = [
        (&[1], 1, 1),
        (&[2], 3, 2),
        (&[64], 300, 1),
        (&[37], 29, 7),
        (&[1, 1], 5, 1),
        (&[1, 16], 9, 1),
        (&[13, 1], 40, 2),
        (&[12, 10], 257, 3),
        (&[7, 33], 61, 1),
        (&[1, 1, 1], 2, 2),
        (&[1, 6, 5], 31, 1),
        (&[4, 1, 9], 17, 1),
        (&[5, 8, 6], 70, 2),
        (&[6, 5, 8], 530, 1),
    ];
    for (seed, (matrix, samples, batch)) in cases.into_iter().enumerate() {
        let case = Case::new(seed as u64, matrix, samples, batch, 1 + seed % 3);
        every_variant_meets_its_tolerance::<f32>(&case);
        every_variant_meets_its_tolerance::<f64>(&case);
    }
}

#[test]
fn the_fast_variants_agree_with_exact_values_beyond_a_tile() {
    // More samples than a task's panels, more rows than its tiles, columns of several strips and runs.
    let cases: [(&[usize], usize, usize, usize); 4] = [
        (&[12, 14, 70], 2300, 1, 2),
        (&[40, 530], 700, 1, 1),
        (&[9, 15, 16], 5000, 3, 3),
        (&[1021], 4500, 2, 2),
    ];
    for (seed, (matrix, samples, batch, threads)) in cases.into_iter().enumerate() {
        fast_variants::<f32>(&Case::new(100 + seed as u64, matrix, samples, batch, threads));
        fast_variants::<f64>(&Case::new(200 + seed as u64, matrix, samples, batch, threads));
    }
}

fn fast_variants<T: SimdReal>(case: &Case) {
    let t = &case.trajectory;
    let pick = |len: usize| (0..24).map(|i| (i * 7919 + 13) % len).collect::<Vec<_>>();
    let at = |values: Vec<C64>, indices: &[usize]| {
        assert!(values.iter().all(|v| v.re.is_finite() && v.im.is_finite()));
        indices.iter().map(|&i| values[i]).collect::<Vec<_>>()
    };
    let points: usize = case.matrix.iter().product();
    let i = pick(case.batch * t.samples());
    let forward = (i.clone(), forward_at(t, &case.matrix, &case.image, &i).unwrap());
    let i = pick(case.batch * points);
    let adjoint = (i.clone(), adjoint_at(t, &case.matrix, &case.samples, &i).unwrap());
    let mut i = pick(points << case.matrix.len());
    i.extend([0, 1, 2 * case.matrix[case.matrix.len() - 1]].map(|i| i % (points << case.matrix.len())));
    let q = (i.clone(), q_at(t, &case.matrix, Some(&case.weights), &i).unwrap());
    for row in rows::<T>().iter().filter(|row| !["naive", "interchanged"].contains(&row.name)) {
        let found = [
            ("forward", error(&at(case.forward(row), &forward.0), &forward.1)),
            ("adjoint", error(&at(case.adjoint(row), &adjoint.0), &adjoint.1)),
            ("q", error(&at(case.q(row), &q.0), &q.1)),
        ];
        for (what, error) in found {
            assert!(error <= row.tolerance, "{} {what} {}: {error:.2e}", T::NAME, row.name);
        }
    }
}

#[test]
fn every_instruction_set_gives_the_same_transforms() {
    for level in levels() {
        for matrix in [&[7usize, 9, 30][..], &[11, 45]] {
            let mut case = Case::new(400, matrix, 333, 2, 1);
            case.device = Device::cpu_with_level(2, level).unwrap();
            fast_variants::<f32>(&case);
            fast_variants::<f64>(&case);
        }
    }
}

#[test]
fn single_precision_keeps_a_millionth_at_512_points_and_k_of_256() {
    for (seed, matrix) in [&[512usize][..], &[512, 512], &[3, 2, 512]].into_iter().enumerate() {
        let mut case = Case::new(300 + seed as u64, matrix, 300, 1, 2);
        let dims = matrix.len();
        let points = Array2::from_shape_fn((300, dims), |(m, c)| {
            let half = 0.5 * matrix[dims - 1 - c] as f64;
            if m < 4 { half * [1.0, -1.0, 0.999, 0.0][m] } else { case.trajectory.point(m)[c] }
        });
        case.trajectory = Trajectory::from_cycles_per_fov(points).unwrap();
        fast_variants::<f32>(&case);
    }
}

#[test]
fn forward_and_adjoint_are_linear_and_each_others_adjoint() {
    fn check<T: SimdReal>(tolerance: f64) {
        let case = Case::new(7, &[6, 9, 20], 333, 2, 2);
        let other = Case::new(8, &[6, 9, 20], 333, 2, 2);
        let factor = C64::new(0.75, -1.5);
        let mut sum = Case::new(7, &[6, 9, 20], 333, 2, 2);
        let add = |a: &[C64], b: &[C64]| a.iter().zip(b).map(|(a, b)| factor * a + b).collect::<Vec<_>>();
        sum.image = add(&case.image, &other.image);
        sum.samples = add(&case.samples, &other.samples);
        let other = Case { trajectory: case.trajectory.clone(), ..other };
        let inner = |a: &[C64], b: &[C64]| a.iter().zip(b).map(|(a, b)| a.conj() * b).sum::<C64>();
        for row in rows::<T>() {
            let (fx, ahy) = (case.forward(&row), case.adjoint(&row));
            let left = inner(&fx, &case.samples);
            let right = inner(&case.image, &ahy);
            let scale = (inner(&fx, &fx) * inner(&case.samples, &case.samples)).re.sqrt();
            assert!((left - right).norm() <= tolerance * scale, "{}: {left} {right}", row.name);
            let expected = add(&fx, &other.forward(&row));
            assert!(error(&sum.forward(&row), &expected) <= tolerance, "{}", row.name);
            let expected = add(&ahy, &other.adjoint(&row));
            assert!(error(&sum.adjoint(&row), &expected) <= tolerance, "{}", row.name);
        }
    }
    check::<f32>(2e-6);
    check::<f64>(1e-13);
}

#[test]
fn q_is_the_kernel_of_the_normal_operator() {
    // (FᴴWF δ_a)(b) = Q(b − a) for voxels a and b.
    let case = Case::new(9, &[4, 5, 6], 40, 1, 1);
    let rows = rows::<f64>();
    let row = &rows[rows.len() - 1];
    let q = case.q(row);
    let (a, b) = ([1usize, 4, 0], [3usize, 0, 5]);
    let flat = |i: [usize; 3]| (i[0] * 5 + i[1]) * 6 + i[2];
    let mut delta = Case::new(9, &[4, 5, 6], 40, 1, 1);
    delta.image.fill(C64::default());
    delta.image[flat(a)] = C64::from(1.0);
    let data = delta.forward(row);
    delta.samples = data.iter().zip(&case.weights).map(|(d, w)| d * w).collect();
    let normal = delta.adjoint(row)[flat(b)];
    let [z, y, x] = [4 + b[0] - a[0], 5 + b[1] - a[1], 6 + b[2] - a[2]];
    assert!((normal - q[(z * 10 + y) * 12 + x]).norm() < 1e-11);
    // Without weights every weight is 1.
    let mut plain = case.poisoned::<f64>(&[8, 10, 12]);
    super::q(&case.trajectory, None, &[4, 5, 6], &mut plain).unwrap();
    assert!((plain.cpu()[(4 * 10 + 5) * 12 + 6] - C64::from(40.0)).norm() < 1e-11);
}

#[test]
fn exact_values_are_the_oracles() {
    let case = Case::new(10, &[5, 7], 30, 3, 1);
    let t = &case.trajectory;
    let all: Vec<usize> = (0..90).collect();
    let forward = reference::forward(t, &[5, 7], &case.image).unwrap();
    assert!(error(&forward_at(t, &[5, 7], &case.image, &all).unwrap(), &forward) < 1e-14);
    let all: Vec<usize> = (0..105).collect();
    let adjoint = reference::adjoint(t, &[5, 7], &case.samples).unwrap();
    assert_eq!(adjoint_at(t, &[5, 7], &case.samples, &all).unwrap(), adjoint);
    let all: Vec<usize> = (0..140).collect();
    let q = reference::q(t, &[5, 7], &vec![1.0; 30]).unwrap();
    assert_eq!(q_at::<f64>(t, &[5, 7], None, &all).unwrap(), q);
}

#[test]
fn the_public_functions_run_in_both_precisions_and_refuse_what_does_not_fit() {
    let case = Case::new(11, &[6, 8], 25, 2, 1);
    let t = &case.trajectory;
    let image = case.array::<f32>(&[2, 6, 8], &case.image);
    let mut samples = case.poisoned::<f32>(&[2, 25]);
    forward(t, &image, &mut samples).unwrap();
    let expected = reference::forward(t, &[6, 8], &case.image).unwrap();
    assert!(error(&widen(&samples), &expected) < 1e-6);
    let samples = case.array::<f64>(&[2, 25], &case.samples);
    let mut image = case.poisoned::<f64>(&[2, 6, 8]);
    adjoint(t, &samples, &mut image).unwrap();
    let expected = reference::adjoint(t, &[6, 8], &case.samples).unwrap();
    assert!(error(&widen(&image), &expected) < 1e-12);

    let refused = |result: Result<()>| assert!(result.is_err(), "accepted");
    refused(forward(t, &case.poisoned::<f32>(&[2, 6, 8]), &mut case.poisoned::<f32>(&[3, 25])));
    refused(forward(t, &case.poisoned::<f32>(&[8]), &mut case.poisoned::<f32>(&[25])));
    refused(forward(t, &case.poisoned::<f32>(&[0, 8]), &mut case.poisoned::<f32>(&[25])));
    refused(adjoint(t, &case.poisoned::<f32>(&[2, 24]), &mut case.poisoned::<f32>(&[2, 6, 8])));
    refused(q::<f32>(t, None, &[6, 8], &mut case.poisoned::<f32>(&[6, 8])));
    refused(q::<f32>(t, None, &[6], &mut case.poisoned::<f32>(&[12])));
    refused(q(
        t,
        Some(&Array::zeros(&case.device, &[24]).unwrap()),
        &[6, 8],
        &mut case.poisoned::<f32>(&[12, 16]),
    ));
    let elsewhere = Array::zeros(&Device::cpu_with_threads(1).unwrap(), &[2, 6, 8]).unwrap();
    refused(forward::<f32>(t, &elsewhere, &mut case.poisoned::<f32>(&[2, 25])));
    assert!(forward_at(t, &[6, 8], &case.image, &[50]).is_err());
    assert!(adjoint_at(t, &[6, 8], &case.samples[1..], &[0]).is_err());
    assert!(q_at(t, &[6, 8], Some(&case.weights[1..]), &[0]).is_err());
    // An empty batch is nothing to do.
    forward(t, &case.poisoned::<f32>(&[0, 6, 8]), &mut case.poisoned::<f32>(&[0, 25])).unwrap();
}

#[test]
fn work_is_counted_as_the_sources_count_it() {
    let problem = Problem { operation: Operation::Q, matrix: vec![4, 4, 4], samples: 10, batch: 1 };
    assert_eq!(problem.pairs(), 5120.0);
    let work = (variants::<f32>()[0].work)(&problem);
    assert_eq!(work.flops, 12.0 * 5120.0);
    assert_eq!(work.bytes, 8.0 * 512.0 + 4.0 * 10.0 + 24.0 * 10.0);
}
