use ndarray::Array2;
use num_complex::Complex;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayspin_core::{C64, Real, Trajectory};
use rayspin_device::cpu::simd::SimdReal;
use rayspin_device::{Array, Device};

use super::*;

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
    (0..len)
        .map(|_| C64::new(rng.random_range(-1.0..1.0), rng.random_range(-1.0..1.0)))
        .collect()
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
            values
                .iter()
                .map(|v| C64::new(single(v.re), single(v.im)))
                .collect()
        };
        Self {
            device: Device::cpu_with_threads(threads).unwrap(),
            trajectory: Trajectory::from_cycles_per_fov(points).unwrap(),
            matrix: matrix.to_vec(),
            batch,
            image: round(random(&mut rng, voxels * batch)),
            samples: round(random(&mut rng, samples * batch)),
            weights: (0..samples)
                .map(|_| f64::from(rng.random_range(0.0f32..1.0)))
                .collect(),
        }
    }

    fn image_shape(&self) -> Vec<usize> {
        [&[self.batch], &self.matrix[..]].concat()
    }

    fn array<T: Real>(&self, shape: &[usize], values: &[C64]) -> Array<Complex<T>> {
        let cast = |v: f64| <T as Real>::from_f64(v);
        let values = values
            .iter()
            .map(|v| Complex::new(cast(v.re), cast(v.im)))
            .collect();
        Array::from_vec(&self.device, shape, values).unwrap()
    }

    fn poisoned<T: Real>(&self, shape: &[usize]) -> Array<Complex<T>> {
        let mut array = Array::zeros(&self.device, shape).unwrap();
        array.fill(Complex::new(T::nan(), T::nan()));
        array
    }

    fn forward<T: SimdReal>(&self, row: &Variant<Problem, Launch<T>>) -> Vec<C64> {
        let image = self.array::<T>(&self.image_shape(), &self.image);
        let mut out = self.poisoned::<T>(&[self.batch, self.trajectory.samples()]);
        forward_with(row, &self.trajectory, &image, &mut out).unwrap();
        widen(&out)
    }

    fn adjoint<T: SimdReal>(&self, row: &Variant<Problem, Launch<T>>) -> Vec<C64> {
        let samples = self.array::<T>(&[self.batch, self.trajectory.samples()], &self.samples);
        let mut out = self.poisoned::<T>(&self.image_shape());
        adjoint_with(row, &self.trajectory, &samples, &mut out).unwrap();
        widen(&out)
    }

    fn q<T: SimdReal>(&self, row: &Variant<Problem, Launch<T>>) -> Vec<C64> {
        let weights = self.weights.iter().map(|&w| <T as Real>::from_f64(w)).collect();
        let weights = Array::from_vec(&self.device, &[self.weights.len()], weights).unwrap();
        let doubled: Vec<usize> = self.matrix.iter().map(|n| 2 * n).collect();
        let mut out = self.poisoned::<T>(&doubled);
        q_with(row, &self.trajectory, Some(&weights), &self.matrix, &mut out).unwrap();
        widen(&out)
    }
}

fn widen<T: Real>(array: &Array<Complex<T>>) -> Vec<C64> {
    array
        .cpu()
        .iter()
        .map(|v| C64::new(Real::to_f64(v.re), Real::to_f64(v.im)))
        .collect()
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
    for row in variants::<T>() {
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
