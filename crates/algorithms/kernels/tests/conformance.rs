//! Every row of every variant table, on the same random problems, against the algorithm's double-precision
//! oracle.
//!
//! Inputs are numbers that f32 holds exactly, so that one oracle serves both precisions; outputs are poisoned
//! with NaN before a row runs. Run with `--nocapture` for the largest error of every row.

#![allow(clippy::unwrap_used, reason = "a test's helpers fail the test")]

#[path = "conformance/elementwise.rs"]
mod elementwise;

use std::collections::HashSet;
use std::fmt::Debug;

use ndarray::Array2;
use num_complex::Complex;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayspin_core::{C64, Real, Trajectory};
use rayspin_device::cpu::simd::SimdReal;
use rayspin_device::{Array, Cpu, Device};
use rayspin_kernels::variant::Variant;
use rayspin_kernels::{fft, nudft, nufft, toeplitz};

/// What a row found and what the oracle expects.
type Pair = (Vec<C64>, Vec<C64>);

/// Checks the table itself, and runs every row on every problem that it does not refuse.
fn conform<P: Debug, I>(
    algorithm: &str,
    rows: &[Variant<P, I>],
    problems: &[P],
    run: impl Fn(&I, &P, &mut Numbers) -> Vec<Pair>,
) {
    let mut names = HashSet::new();
    for row in rows {
        assert!(names.insert(row.name), "{algorithm}: two rows are called {}", row.name);
        assert!(!row.name.is_empty() && !row.summary.trim().is_empty());
        assert!(row.tolerance > 0.0 && row.tolerance < 0.01, "{algorithm} {}", row.name);
        let (mut worst, mut ran) = (0.0f64, 0);
        for (seed, problem) in problems.iter().enumerate() {
            let work = (row.work)(problem);
            assert!(work.bytes > 0.0 && work.bytes.is_finite(), "{algorithm} {}", row.name);
            assert!(work.flops >= 0.0 && work.flops.is_finite(), "{algorithm} {}", row.name);
            if (row.refuses)(problem).is_some() {
                continue;
            }
            ran += 1;
            let pairs = run(&row.implementation, problem, &mut Numbers::new(seed as u64));
            for (part, (found, expected)) in pairs.iter().enumerate() {
                let error = relative_error(found, expected);
                worst = worst.max(error);
                assert!(
                    error <= row.tolerance,
                    "{algorithm} {}, part {part} of {problem:?}, seed {seed}: error {error:.2e}, tolerance {:.0e}",
                    row.name,
                    row.tolerance
                );
            }
        }
        assert!(ran > 0, "{algorithm} {} refuses every problem", row.name);
        println!("{algorithm:>14} {:<14} {worst:.1e} of {:.0e}", row.name, row.tolerance);
    }
    assert!(!names.is_empty(), "{algorithm} has no variants");
}

/// ‖found − expected‖/‖expected‖, or ‖found‖ where nothing is expected; infinite when anything is not finite.
fn relative_error(found: &[C64], expected: &[C64]) -> f64 {
    assert_eq!(found.len(), expected.len());
    let norm: f64 = expected.iter().map(C64::norm_sqr).sum::<f64>().sqrt();
    let difference = found.iter().zip(expected).map(|(a, b)| (a - b).norm_sqr());
    let difference = difference.sum::<f64>().sqrt();
    let error = if norm > 0.0 { difference / norm } else { difference };
    if error.is_finite() { error } else { f64::INFINITY }
}

/// Random inputs, the same for every row of a table.
struct Numbers(ChaCha8Rng);

impl Numbers {
    fn new(seed: u64) -> Self {
        Self(ChaCha8Rng::seed_from_u64(seed))
    }

    fn real(&mut self) -> f64 {
        f64::from(self.0.random_range(-1.0f32..1.0))
    }

    fn reals(&mut self, len: usize) -> Vec<f64> {
        (0..len).map(|_| self.real()).collect()
    }

    fn complex(&mut self, len: usize) -> Vec<C64> {
        (0..len).map(|_| C64::new(self.real(), self.real())).collect()
    }

    fn trajectory(&mut self, samples: usize, matrix: &[usize]) -> Trajectory {
        let points = Array2::from_shape_fn((samples, matrix.len()), |(_, c)| {
            0.5 * self.real() * matrix[matrix.len() - 1 - c] as f64
        });
        Trajectory::from_cycles_per_fov(points).unwrap()
    }
}

fn real<R: Real>(value: f64) -> R {
    <R as Real>::from_f64(value)
}

fn narrow<R: Real>(values: &[C64]) -> Vec<Complex<R>> {
    values.iter().map(|v| Complex::new(real(v.re), real(v.im))).collect()
}

fn widen<R: Real>(values: &[Complex<R>]) -> Vec<C64> {
    let wide = |v: &Complex<R>| C64::new(Real::to_f64(v.re), Real::to_f64(v.im));
    values.iter().map(wide).collect()
}

fn poison<R: Real>(len: usize) -> Vec<Complex<R>> {
    vec![Complex::new(R::nan(), R::nan()); len]
}

fn cpu(device: &Device) -> &Cpu {
    device.cpu_side()
}

fn device() -> Device {
    Device::cpu_with_threads(2).unwrap()
}

#[test]
fn nudft() {
    fn precision<T: SimdReal>() {
        let device = device();
        let sizes: [(&[usize], usize, usize); 6] = [
            (&[31], 70, 2),
            (&[16, 9], 300, 1),
            (&[1, 12], 5, 3),
            (&[6, 1, 14], 40, 1),
            (&[5, 6, 8], 265, 2),
            (&[1, 1, 1], 1, 1),
        ];
        let operations = [nudft::Operation::Forward, nudft::Operation::Adjoint, nudft::Operation::Q];
        let problems: Vec<_> = sizes
            .iter()
            .flat_map(|&(matrix, samples, batch)| {
                operations.map(|operation| nudft::Problem {
                    operation,
                    matrix: matrix.to_vec(),
                    samples,
                    batch: if operation == nudft::Operation::Q { 1 } else { batch },
                })
            })
            .collect();
        let mut rows = nudft::variants::<T>();
        rows.retain(|row| row.backend == device.kind());
        let by_name = |implementation: *const nudft::Implementation<T>| {
            rows.iter().find(|row| std::ptr::eq(&row.implementation, implementation))
        };
        conform(&format!("nudft {}", T::NAME), &rows, &problems, |implementation, p, numbers| {
            let row = by_name(implementation).unwrap();
            let t = numbers.trajectory(p.samples, &p.matrix);
            let image_shape = [&[p.batch], &p.matrix[..]].concat();
            let (voxels, count) = (image_shape.iter().product(), p.batch * p.samples);
            let data_shape = [p.batch, p.samples];
            let array = |shape: &[usize], values| Array::from_vec(&device, shape, values).unwrap();
            match p.operation {
                nudft::Operation::Forward => {
                    let image = numbers.complex(voxels);
                    let mut out = array(&data_shape, poison(count));
                    nudft::forward_with(row, &t, &array(&image_shape, narrow::<T>(&image)), &mut out)
                        .unwrap();
                    let expected = nudft::reference::forward(&t, &p.matrix, &image).unwrap();
                    vec![(widen(out.cpu()), expected)]
                }
                nudft::Operation::Adjoint => {
                    let samples = numbers.complex(count);
                    let mut out = array(&image_shape, poison(voxels));
                    nudft::adjoint_with(row, &t, &array(&data_shape, narrow::<T>(&samples)), &mut out)
                        .unwrap();
                    let expected = nudft::reference::adjoint(&t, &p.matrix, &samples).unwrap();
                    vec![(widen(out.cpu()), expected)]
                }
                nudft::Operation::Q => {
                    let weights = numbers.reals(p.samples);
                    let doubled: Vec<usize> = p.matrix.iter().map(|n| 2 * n).collect();
                    let mut out = array(&doubled, poison(doubled.iter().product()));
                    let narrow = weights.iter().map(|&w| real::<T>(w)).collect();
                    let narrow = Array::from_vec(&device, &[p.samples], narrow).unwrap();
                    nudft::q_with(row, &t, Some(&narrow), &p.matrix, &mut out).unwrap();
                    let expected = nudft::reference::q(&t, &p.matrix, &weights).unwrap();
                    vec![(widen(out.cpu()), expected)]
                }
            }
        });
    }
    precision::<f32>();
    precision::<f64>();
}

#[test]
fn fft() {
    let device = device();
    let problem = |shape: &[usize], batch| fft::Problem { shape: shape.to_vec(), batch };
    let problems = [
        problem(&[1], 2),
        problem(&[127], 3),
        problem(&[33, 64], 1),
        problem(&[12, 1, 50], 2),
        problem(&[17, 8, 30], 1),
    ];
    conform("fft", fft::VARIANTS, &problems, |implementation, p, numbers| {
        let engine = fft::cpu::FftNd::<f32>::new(&p.shape).unwrap();
        let data = numbers.complex(p.batch * p.shape.iter().product::<usize>());
        let directions = [fft::Direction::Forward, fft::Direction::Inverse];
        let transform = |direction| {
            let mut found = narrow::<f32>(&data);
            implementation(cpu(&device), &engine, &mut found, direction).unwrap();
            let expected = fft::reference::dft(&data, &p.shape, direction, false);
            (widen(&found), expected)
        };
        directions.into_iter().map(transform).collect()
    });
}

#[test]
fn toeplitz() {
    let device = device();
    let problem = |matrix: &[usize], batch| toeplitz::Problem { matrix: matrix.to_vec(), batch };
    let problems = [
        problem(&[13], 2),
        problem(&[12, 9], 1),
        problem(&[1, 16], 2),
        problem(&[5, 8, 6], 1),
        problem(&[4, 1, 7], 2),
    ];
    conform("toeplitz", toeplitz::VARIANTS, &problems, |implementation, p, numbers| {
        let t = numbers.trajectory(40, &p.matrix);
        let weights: Vec<f64> = numbers.reals(40).iter().map(|w| w.abs()).collect();
        let q = nudft::reference::q(&t, &p.matrix, &weights).unwrap();
        let voxels = p.matrix.iter().product();
        let images = numbers.complex(p.batch * voxels);
        let apply = implementation(cpu(&device), p, &narrow(&q)).unwrap();
        let mut found = poison::<f32>(images.len());
        apply(cpu(&device), &narrow(&images), &mut found).unwrap();
        let normal = |image| toeplitz::reference::normal(image, &p.matrix, &t, &weights);
        let expected = images.chunks_exact(voxels).flat_map(normal).collect();
        vec![(widen(&found), expected)]
    });
}

/// The oracle of spreading and interpolation is the plain first row. The oracle of whole transforms is the
/// direct sum.
#[test]
fn nufft() {
    fn precision<R: Real>(epsilon: f64) {
        let device = device();
        let sizes: [(&[usize], usize); 4] =
            [(&[60], 200), (&[20, 33], 500), (&[1, 40], 90), (&[10, 12, 9], 700)];
        let plan = |size: (&[usize], usize), numbers: &mut Numbers| {
            let t = numbers.trajectory(size.1, size.0);
            let options = nufft::Options::tolerance(epsilon);
            (nufft::Nufft::<R>::new(&device, &t, size.0, &options).unwrap(), t)
        };
        let plans: Vec<_> = sizes.iter().map(|&size| plan(size, &mut Numbers::new(9)).0).collect();
        let problems: Vec<_> = plans.iter().map(nufft::Problem::of).collect();
        let plan_of = |p: &nufft::Problem| &plans[problems.iter().position(|other| other == p).unwrap()];
        let array = |shape: &[usize], values| Array::from_vec(&device, shape, values).unwrap();
        let mut rows = Vec::from(nufft::spread_variants::<R>());
        rows.retain(|row| row.backend == device.kind());
        conform(&format!("spread {}", R::NAME), &rows, &problems, |implementation, p, numbers| {
            let plan = plan_of(p);
            let samples = array(&[plan.samples()], narrow::<R>(&numbers.complex(plan.samples())));
            let spread = |implementation: &nufft::Spread<R>| {
                let mut grid = array(plan.fine_shape(), poison(plan.fine_shape().iter().product()));
                implementation(plan, &samples, &mut grid).unwrap();
                widen(grid.cpu())
            };
            vec![(spread(implementation), spread(&rows[0].implementation))]
        });
        let mut rows = Vec::from(nufft::interp_variants::<R>());
        rows.retain(|row| row.backend == device.kind());
        conform(&format!("interp {}", R::NAME), &rows, &problems, |implementation, p, numbers| {
            let plan = plan_of(p);
            let cells = plan.fine_shape().iter().product();
            let grid = array(plan.fine_shape(), narrow::<R>(&numbers.complex(cells)));
            let interp = |implementation: &nufft::Interp<R>| {
                let mut samples = array(&[plan.samples()], poison(plan.samples()));
                implementation(plan, &grid, &mut samples).unwrap();
                widen(samples.cpu())
            };
            vec![(interp(implementation), interp(&rows[0].implementation))]
        });
        for (seed, size) in sizes.into_iter().enumerate() {
            let mut numbers = Numbers::new(seed as u64);
            let (plan, t) = plan(size, &mut numbers);
            let image = numbers.complex(size.0.iter().product());
            let samples = numbers.complex(size.1);
            let mut found = array(&[size.1], poison::<R>(size.1));
            plan.forward(&array(size.0, narrow(&image)), &mut found).unwrap();
            let expected = nudft::reference::forward(&t, size.0, &image).unwrap();
            assert!(relative_error(&widen(found.cpu()), &expected) < 2.0 * epsilon, "{size:?}");
            let mut found = array(size.0, poison::<R>(image.len()));
            plan.adjoint(&array(&[size.1], narrow(&samples)), &mut found).unwrap();
            let expected = nudft::reference::adjoint(&t, size.0, &samples).unwrap();
            assert!(relative_error(&widen(found.cpu()), &expected) < 2.0 * epsilon, "{size:?}");
        }
    }
    precision::<f32>(1e-4);
    precision::<f64>(1e-9);
}
