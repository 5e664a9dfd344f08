//! Low rank plus sparse: proximal maps and the solver against plain f64 references, optimality conditions, a
//! phantom, memory.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

mod common;
#[path = "common/phantom.rs"]
mod phantom;

use std::f64::consts::TAU;

use common::{Dense, norm, relative};
use faer::Mat;
use phantom::{phantom, sampled};
use rayspin_core::{C32, C64, Error, Monitor, Result};
use rayspin_device::{Array, Backend, Device};
use rayspin_emu::Emulator;
use rayspin_kernels::vector;
use rayspin_linop::{Fourier, Identity, LinearOp, SamplingMask, random};
use rayspin_solve::{
    LowRankSparseOptions, LowRankSparseResult, NuclearNorm, Problem, Proximal, Step, TemporalFourier, Watch,
    low_rank_plus_sparse, low_rank_plus_sparse_memory,
};

fn wide(x: &Array<C32>) -> Vec<C64> {
    x.to_vec().unwrap().iter().map(|v| C64::new(v.re.into(), v.im.into())).collect()
}

fn narrow(device: &Device, shape: &[usize], x: &[C64]) -> Array<C32> {
    let values = x.iter().map(|v| C32::new(v.re as f32, v.im as f32)).collect();
    Array::from_vec(device, shape, values).unwrap()
}

fn inner(x: &[C64], y: &[C64]) -> C64 {
    x.iter().zip(y).map(|(x, y)| x.conj() * y).sum()
}

fn minus(x: &[C64], y: &[C64]) -> Vec<C64> {
    x.iter().zip(y).map(|(x, y)| x - y).collect()
}

/// U max(Σ − t, 0) Vᴴ by a singular value decomposition, the sum of what is left of Σ, and Σ.
fn lowered(frames: usize, x: &[C64], t: f64) -> (Vec<C64>, f64, Vec<f64>) {
    let voxels = x.len() / frames;
    let svd = Mat::from_fn(frames, voxels, |i, j| x[i * voxels + j]).thin_svd().unwrap();
    let values: Vec<f64> = (0..frames.min(voxels)).map(|i| svd.S().column_vector()[i].re).collect();
    let left = |k: usize| (values[k] - t).max(0.0);
    let scaled = Mat::from_fn(frames, values.len(), |i, k| svd.U()[(i, k)] * left(k));
    let out = scaled * svd.V().adjoint();
    let sum = (0..values.len()).map(left).sum();
    ((0..x.len()).map(|at| out[(at / voxels, at % voxels)]).collect(), sum, values)
}

/// The Fourier transform of each voxel's frames and their mirror image, `[frequency, voxel]`: of 2T
/// frequencies those below T, which tell the others, from the mirror's plane at −½, and scaled to the frames'
/// own norm.
fn spectrum(frames: usize, x: &[C64]) -> Vec<C64> {
    let voxels = x.len() / frames;
    let at = |f: usize, v: usize| -> C64 {
        let wave = |t: usize| C64::from_polar(1.0, -TAU * f as f64 * (t as f64 + 0.5) / (2 * frames) as f64);
        let mirrored = (0..frames).chain((0..frames).rev()).enumerate();
        let pair = if f == 0 { 1.0 } else { 2.0 };
        mirrored.map(|(at, t)| wave(at) * x[t * voxels + v]).sum::<C64>()
            * (pair / (4 * frames) as f64).sqrt()
    };
    (0..x.len()).map(|i| at(i / voxels, i % voxels)).collect()
}

/// The series of a spectrum: [`spectrum`] keeps norms, so that its transpose is its inverse.
fn of_spectrum(frames: usize, c: &[C64]) -> Vec<C64> {
    let voxels = c.len() / frames;
    let waves = (0..frames * frames).map(|at| C64::from(f64::from(u8::from(at / frames == at % frames))));
    let rows = spectrum(frames, &waves.collect::<Vec<_>>());
    let at = |t: usize, v: usize| (0..frames).map(|f| rows[f * frames + t].conj() * c[f * voxels + v]).sum();
    (0..c.len()).map(|i| at(i / voxels, i % voxels)).collect()
}

fn thresholded(frames: usize, x: &[C64], t: f64) -> (Vec<C64>, f64) {
    let mut c = spectrum(frames, x);
    for c in &mut c {
        let size = c.norm();
        *c = if size > t { *c * (1.0 - t / size) } else { C64::default() };
    }
    (of_spectrum(frames, &c), c.iter().map(|c| c.norm()).sum())
}

/// Odd and even, one frame, one voxel, more frames than voxels, more than the kernels take at once.
const SHAPES: [&[usize]; 7] = [&[1, 7], &[5, 1], &[6, 9], &[7, 3, 5], &[9, 2, 2], &[16, 11], &[35, 4, 9]];

#[test]
fn singular_values_are_lowered_as_by_a_decomposition_in_f64() {
    for device in rayspin_emu::devices().unwrap() {
        for (seed, shape) in SHAPES.iter().enumerate() {
            let x = random::<f32>(&device, shape, seed as u64).unwrap();
            let (frames, plain) = (shape[0], wide(&x));
            let (_, _, values) = lowered(frames, &plain, 0.0);
            let mut penalty = NuclearNorm::new(&device, shape).unwrap();
            for (found, expected) in penalty.singular_values(&x).unwrap().iter().zip(&values) {
                assert!((found - expected).abs() < 1e-6 * values[0], "{shape:?}: {found} {expected}");
            }
            let middle = values[values.len() / 2];
            for t in [0.0, 0.5 * values[values.len() - 1], 0.999 * middle, 1.001 * values[0]] {
                let (expected, sum, _) = lowered(frames, &plain, t);
                let mut y = x.try_clone().unwrap();
                let found = penalty.apply(t, &mut y).unwrap();
                let apart = norm(&minus(&wide(&y), &expected)) / norm(&plain);
                assert!(apart < 1e-6, "{} {shape:?} at {t}: {apart:.1e}", device.describe());
                assert!((found - sum).abs() < 2e-6 * values.iter().sum::<f64>(), "{found} {sum}");
                if t > 0.0 {
                    assert_eq!(penalty.rank(), values.iter().filter(|&&v| v > t).count());
                }
            }
        }
    }
}

/// Products of frames square the singular values. Singular values of 10⁻⁴ of the largest must not be lost.
#[test]
fn small_singular_values_are_kept_and_lowered_exactly() {
    let device = Device::cpu_with_threads(2).unwrap();
    let (frames, voxels) = (6, 50);
    let sizes = [1.0, 0.3, 1e-2, 1e-3, 3e-4, 1e-4];
    let orthogonal = |rows: usize, seed: u64| {
        let x = random::<f64>(&device, &[rows, frames], seed).unwrap();
        Mat::from_fn(rows, frames, |i, j| x.cpu()[i * frames + j]).thin_svd().unwrap().U().to_owned()
    };
    let (u, v) = (orthogonal(frames, 1), orthogonal(voxels, 2));
    let series = |size: &dyn Fn(usize) -> f64| -> Vec<C64> {
        let entry = |i: usize, j: usize| (0..frames).map(|k| u[(i, k)] * size(k) * v[(j, k)].conj()).sum();
        (0..frames * voxels).map(|at| entry(at / voxels, at % voxels)).collect()
    };
    let shape = [frames, voxels];
    let mut x = narrow(&device, &shape, &series(&|k| sizes[k]));
    let mut penalty = NuclearNorm::new(&device, &shape).unwrap();
    for (found, expected) in penalty.singular_values(&x).unwrap().iter().zip(sizes) {
        assert!((found - expected).abs() < 1e-7, "{found} {expected}");
    }
    let t = 5e-4;
    let value = penalty.apply(t, &mut x).unwrap();
    assert_eq!(penalty.rank(), 4);
    let expected = series(&|k| (sizes[k] - t).max(0.0));
    let apart = norm(&minus(&wide(&x), &expected));
    assert!(apart < 3e-7, "{apart:.1e}");
    assert!((value - (1.311 - 4.0 * t)).abs() < 1e-6, "{value}");
}

#[test]
fn temporal_spectra_are_thresholded_as_by_sums_in_f64() {
    for device in rayspin_emu::devices().unwrap() {
        for (seed, shape) in SHAPES.iter().enumerate() {
            let x = random::<f32>(&device, shape, 10 + seed as u64).unwrap();
            let plain = wide(&x);
            let mut penalty = TemporalFourier::new(&device, shape).unwrap();
            for t in [0.0, 0.4, 0.9, 100.0] {
                let (expected, sum) = thresholded(shape[0], &plain, t);
                let mut y = x.try_clone().unwrap();
                let found = penalty.apply(t, &mut y).unwrap();
                let apart = norm(&minus(&wide(&y), &expected)) / norm(&plain);
                assert!(apart < 2e-6, "{} {shape:?} at {t}: {apart:.1e}", device.describe());
                assert!((found - sum).abs() <= 2e-6 * norm(&plain) * (plain.len() as f64).sqrt());
            }
        }
    }
}

/// p = prox(x) exactly where x − p lies in the dual ball of radius t and ⟨p, x − p⟩ = t g(p); and such maps
/// are firmly nonexpansive.
#[test]
fn both_maps_meet_their_optimality_conditions_and_are_firmly_nonexpansive() {
    let device = Device::cpu_with_threads(2).unwrap();
    for (seed, shape) in SHAPES.iter().enumerate() {
        let t = 0.8;
        let mut values = NuclearNorm::new(&device, shape).unwrap();
        let mut fourier = TemporalFourier::<f32>::new(&device, shape).unwrap();
        let penalties: [(&mut dyn Proximal<C32>, bool); 2] = [(&mut values, true), (&mut fourier, false)];
        for (penalty, low_rank) in penalties {
            let mut both = Vec::new();
            for seed in [seed as u64, 50 + seed as u64] {
                let mut x = random::<f32>(&device, shape, seed).unwrap();
                let before = wide(&x);
                let value = penalty.apply(t, &mut x).unwrap();
                let (after, left) = (wide(&x), minus(&before, &wide(&x)));
                let dual = if low_rank {
                    lowered(shape[0], &left, 0.0).2[0]
                } else {
                    spectrum(shape[0], &left).iter().map(|c| c.norm()).fold(0.0, f64::max)
                };
                assert!(dual <= t * (1.0 + 1e-5), "{shape:?}: {dual}");
                let aligned = inner(&after, &left);
                let allowed = 1e-5 * norm(&before).powi(2);
                assert!((aligned - t * value).norm() < allowed, "{shape:?}: {aligned} {}", t * value);
                both.push((before, after));
            }
            let apart = minus(&both[0].1, &both[1].1);
            let given = minus(&both[0].0, &both[1].0);
            assert!(norm(&apart).powi(2) <= inner(&apart, &given).re + 1e-5 * norm(&given).powi(2));
        }
    }
}

/// A dense matrix over all numbers of a series.
struct Series {
    shape: Vec<usize>,
    dense: Dense<f32>,
}

impl LinearOp<C32> for Series {
    fn name(&self) -> &str {
        "dense series"
    }
    fn domain(&self) -> &[usize] {
        &self.shape
    }
    fn range(&self) -> &[usize] {
        &self.shape
    }
    fn forward_into(&self, x: &Array<C32>, y: &mut Array<C32>) -> Result<()> {
        y.copy_from(&narrow(x.device(), x.shape(), &self.dense.times(&wide(x))))
    }
    fn adjoint_into(&self, y: &Array<C32>, x: &mut Array<C32>) -> Result<()> {
        self.forward_into(y, x)
    }
}

/// The iteration of the paper's Algorithm 1 with step ½ in f64, everything over Λ and s: L, S and the
/// objective.
fn plain(
    normal: &Dense<f32>,
    frames: usize,
    b: &[C64],
    low_rank: f64,
    sparse: f64,
    iterations: usize,
) -> (Vec<C64>, Vec<C64>, f64) {
    let (mut l, mut s) = (b.to_vec(), vec![C64::default(); b.len()]);
    let mut objective = f64::INFINITY;
    for _ in 0..iterations {
        let sum: Vec<C64> = l.iter().zip(&s).map(|(l, s)| l + s).collect();
        let gradient = minus(&normal.times(&sum), b);
        let stepped = |x: &[C64]| -> Vec<C64> { x.iter().zip(&gradient).map(|(x, g)| x - g * 0.5).collect() };
        let (next, nuclear, _) = lowered(frames, &stepped(&l), 0.5 * low_rank);
        let (other, magnitudes) = thresholded(frames, &stepped(&s), 0.5 * sparse);
        (l, s) = (next, other);
        let sum: Vec<C64> = l.iter().zip(&s).map(|(l, s)| l + s).collect();
        let found = 0.5 * inner(&sum, &normal.times(&sum)).re - inner(b, &sum).re
            + low_rank * nuclear
            + sparse * magnitudes;
        assert!(found <= objective + 1e-12);
        objective = found;
    }
    (l, s, objective)
}

fn random_problem(shape: &[usize], seed: u64) -> (Series, Vec<C64>) {
    let n: usize = shape.iter().product();
    let eigenvalues: Vec<f64> = (0..n).map(|i| 0.05 + 0.95 * (1.0 - i as f64 / n as f64)).collect();
    let dense = Dense::hermitian(&eigenvalues, seed);
    let b = random::<f64>(&Device::cpu_with_threads(1).unwrap(), &[n], seed + 100).unwrap();
    (Series { shape: shape.to_vec(), dense }, b.cpu().to_vec())
}

#[test]
fn the_solution_is_that_of_the_plain_iteration_in_f64() {
    let (low_rank, sparse) = (0.15, 0.2);
    for (shape, seed) in [(&[5, 6][..], 1), (&[4, 3, 3], 2), (&[8, 3], 3)] {
        let (op, b) = random_problem(shape, seed);
        // Numbers of the reference are over Λ s, where Λ = 1.
        let mut sizes: Vec<f64> = b.iter().map(|v| v.norm()).collect();
        sizes.sort_by(f64::total_cmp);
        let s = sizes[(0.99 * b.len() as f64).ceil() as usize - 1];
        let scaled: Vec<C64> = b.iter().map(|v| v / s).collect();
        let sigma = lowered(shape[0], &scaled, 0.0).2[0];
        let nuclear = low_rank * sigma;
        let (l, other, objective) = plain(&op.dense, shape[0], &scaled, nuclear, sparse, 4000);
        let zeros = |x: &[C64]| x.iter().all(|v| v.norm() < 1e-9);
        assert!(!zeros(&l) && !zeros(&other), "both parts are there");
        for device in rayspin_emu::devices().unwrap() {
            // Λ may be what it is, or an estimate.
            for gain in [1.0, 1e-3, 1e4] {
                let rhs = narrow(&device, shape, &b.iter().map(|v| v * gain).collect::<Vec<_>>());
                let problem = Problem { normal: &op, rhs: &rhs, largest_eigenvalue: 1.0 };
                let options = LowRankSparseOptions { low_rank, sparse, max_iterations: 400, tolerance: 1e-6 };
                let found = low_rank_plus_sparse(&problem, &options, &Monitor::silent()).unwrap();
                let what = format!("{} {shape:?} {gain}", device.describe());
                assert!((found.scale / (s * gain) - 1.0).abs() < 1e-5, "{what}");
                assert!((found.largest_singular_value / (s * gain * sigma) - 1.0).abs() < 1e-5, "{what}");
                let reached = *found.objective.last().unwrap();
                assert!(
                    (reached - objective).abs() < 2e-6 * objective.abs(),
                    "{what}: {reached} {objective}"
                );
                let times = s * gain;
                for (found, expected, name) in [(&found.low_rank, &l, "L"), (&found.sparse, &other, "S")] {
                    let expected: Vec<C64> = expected.iter().map(|v| v * times).collect();
                    let apart = relative(&wide(found), &expected);
                    // What moves between L and S hardly changes the objective.
                    assert!(apart < 5e-2, "{what}: {name} {apart:.1e}");
                }
                let sum: Vec<C64> = l.iter().zip(&other).map(|(l, s)| (l + s) * times).collect();
                assert!(relative(&wide(&found.solution), &sum) < 1e-3, "{what}");
                let rank = lowered(shape[0], &l, 0.0).2.iter().filter(|&&v| v > 1e-9).count();
                assert_eq!(found.rank, rank, "{what}");
                falls(&found);
            }
        }
    }
}

fn falls(found: &LowRankSparseResult) {
    assert_eq!(found.objective.len(), found.residuals.len());
    assert!(found.objective.windows(2).all(|pair| pair[1] <= pair[0]), "{:?}", found.objective);
}

#[test]
fn the_objective_falls_whatever_the_estimate_of_the_eigenvalue() {
    let device = Device::cpu_with_threads(1).unwrap();
    let (op, b) = random_problem(&[6, 7], 5);
    let rhs = narrow(&device, &[6, 7], &b);
    let mut solutions: Vec<Vec<C64>> = Vec::new();
    for largest in [1.0, 0.1, 0.6, 3.0] {
        let problem = Problem { normal: &op, rhs: &rhs, largest_eigenvalue: largest };
        let options = LowRankSparseOptions { max_iterations: 300, tolerance: 1e-4, ..Default::default() };
        let found = low_rank_plus_sparse(&problem, &options, &Monitor::silent()).unwrap();
        falls(&found);
        println!("Λ {largest}: {} iterations, {:?}", found.residuals.len(), found.residuals.last());
        assert!(found.converged, "{largest}: {:?}", found.residuals.last());
        solutions.push(wide(&found.solution));
        // Λ scales both penalties as it scales the data term.
        let apart = relative(&solutions[solutions.len() - 1], &solutions[0]);
        assert!(apart < 5e-3, "{largest}: {apart:.1e}");
    }
}

/// The paper's iteration by the penalties themselves: the objective over s² after every iteration, and L + S.
fn paper(
    problem: &Problem<'_, C32>,
    found: &LowRankSparseResult,
    options: &LowRankSparseOptions,
    tau: f64,
    iterations: usize,
) -> (Vec<f64>, Vec<C64>) {
    let (rhs, device) = (problem.rhs, problem.rhs.device());
    let mut values = NuclearNorm::new(device, rhs.shape()).unwrap();
    let mut fourier = TemporalFourier::new(device, rhs.shape()).unwrap();
    let (low_rank, sparse) = (options.low_rank * found.largest_singular_value, options.sparse * found.scale);
    let zeros = || Array::zeros(device, rhs.shape()).unwrap();
    let (mut l, mut s, mut sum, mut image) =
        (rhs.try_clone().unwrap(), zeros(), rhs.try_clone().unwrap(), zeros());
    let mut objectives = Vec::new();
    for _ in 0..iterations {
        problem.normal.forward_into(&sum, &mut image).unwrap();
        vector::axpy((-1.0).into(), rhs, &mut image).unwrap();
        for part in [&mut l, &mut s] {
            vector::axpy((-tau).into(), &image, part).unwrap();
        }
        let nuclear = values.apply(tau * low_rank, &mut l).unwrap();
        let magnitudes = fourier.apply(tau * sparse, &mut s).unwrap();
        sum.copy_from(&l).unwrap();
        vector::axpy(1.0.into(), &s, &mut sum).unwrap();
        problem.normal.forward_into(&sum, &mut image).unwrap();
        let smooth = 0.5 * vector::dot(&sum, &image).unwrap().re - vector::dot(rhs, &sum).unwrap().re;
        objectives.push((smooth + low_rank * nuclear + sparse * magnitudes) / found.scale.powi(2));
    }
    (objectives, wide(&sum))
}

#[test]
fn an_undersampled_series_is_recovered_and_what_pulsates_is_in_the_sparse_part() {
    let (frames, n) = (20, 24);
    let shape = [frames, n, n];
    let (truth, pulsates) = phantom(frames, n);
    let mut found_before: Option<Vec<C64>> = None;
    for device in rayspin_emu::devices().unwrap() {
        let kept = sampled(frames, n, 9);
        let mask = SamplingMask::new(&device, &shape, &kept).unwrap();
        let fraction = mask.fraction();
        let encode = mask.compose(Fourier::new(&device, &[frames], &[n, n]).unwrap()).unwrap();
        let rhs = encode.adjoint(&encode.forward(&narrow(&device, &shape, &truth)).unwrap()).unwrap();
        let normal = encode.normal_op();
        let problem = Problem { normal: &normal, rhs: &rhs, largest_eigenvalue: 1.0 };
        // λ_S is large enough to leave the background in L.
        let options =
            LowRankSparseOptions { sparse: 0.02, max_iterations: 60, tolerance: 0.0, ..Default::default() };
        let (silent, mut early) = (Monitor::silent(), Vec::new());
        let mut observe = |step: &Step<'_, C32>| {
            if step.iteration == 40 {
                early = wide(step.solution);
            }
            Ok(())
        };
        let watch = Watch::from(&silent).with_observer(&mut observe);
        let found = low_rank_plus_sparse(&problem, &options, watch).unwrap();
        falls(&found);
        let (zero_filled, error) = (relative(&wide(&rhs), &truth), relative(&wide(&found.solution), &truth));
        println!(
            "{}: sampled {fraction:.2}, zero-filled {zero_filled:.3}, L + S {error:.3}, rank {}, {} iterations",
            device.describe(),
            found.rank,
            found.residuals.len()
        );
        // With the momentum the objective is lower after as many iterations than by the paper's step or half
        // of it.
        for tau in [0.5, 1.0] {
            let (steps, x) = paper(&problem, &found, &options, tau, 40);
            let (ours, theirs) = (found.objective[39], steps[39]);
            let errors = [relative(&early, &truth), relative(&x, &truth)];
            println!("40 iterations: error {:.3}, and {:.3} with step {tau}", errors[0], errors[1]);
            assert!(ours < theirs && errors[0] < 0.5 * errors[1], "τ {tau}: {ours} {theirs}, {errors:?}");
        }
        assert!(fraction < 0.4 && error < 0.25 * zero_filled, "{error} {zero_filled}");
        assert!(found.rank < frames / 2, "{}", found.rank);
        let energy = |x: &Array<C32>, spot: bool| -> f64 {
            let x = wide(x);
            x.iter().zip(&pulsates).filter(|(_, s)| **s == spot).map(|(v, _)| v.norm_sqr()).sum()
        };
        let share = energy(&found.sparse, true) / (energy(&found.sparse, false) + 1e-30);
        let of_all = energy(&found.solution, true) / energy(&found.solution, false);
        assert!(share > 20.0 * of_all, "{share} {of_all}");
        // Every device finds the same.
        let solution = wide(&found.solution);
        if let Some(before) = &found_before {
            assert!(relative(&solution, before) < 1e-3);
        }
        found_before = Some(solution);
    }
}

#[test]
fn memory_is_what_is_stated() {
    let device = Emulator::device().unwrap();
    let Backend::Cuda(cuda) = device.backend() else { panic!("the emulator is a GPU") };
    for shape in [[12, 40, 41], [30, 25, 20]] {
        let (frames, voxels) = (shape[0], shape[1] * shape[2]);
        let rhs = random::<f32>(&device, &shape, 1).unwrap();
        let one = Identity::new(&shape);
        let problem = Problem { normal: &one, rhs: &rhs, largest_eigenvalue: 1.0 };
        let options = LowRankSparseOptions { max_iterations: 3, tolerance: 0.0, ..Default::default() };
        let (before, _) = cuda.memory_used();
        cuda.reset_peak();
        let mut shown = 0;
        let mut observe = |step: &Step<'_, C32>| {
            shown += 1;
            assert_eq!((step.iteration, step.solution.shape()), (shown, &shape[..]));
            Ok(())
        };
        let silent = Monitor::silent();
        let watch = Watch::from(&silent).with_observer(&mut observe);
        low_rank_plus_sparse(&problem, &options, watch).unwrap();
        assert_eq!(shown, 3);
        let measured = cuda.memory_used().1 - before;
        let stated = low_rank_plus_sparse_memory(&device, frames, voxels).1;
        let ratio = stated as f64 / measured as f64;
        assert!((0.98..1.02).contains(&ratio), "{shape:?}: stated {stated}, measured {measured}");
        let values = {
            cuda.reset_peak();
            let (before, _) = cuda.memory_used();
            let mut x = rhs.try_clone().unwrap();
            let own = cuda.memory_used().0 - before;
            let mut penalty = NuclearNorm::new(&device, &shape).unwrap();
            for t in [0.1, 0.2] {
                penalty.apply(t, &mut x).unwrap();
            }
            cuda.memory_used().1 - before - own
        };
        let stated = NuclearNorm::memory(&device, frames, voxels).1;
        assert!(
            (0.98..1.02).contains(&(stated as f64 / values as f64)),
            "stated {stated}, measured {values}"
        );
        let host = Device::cpu_with_threads(1).unwrap();
        let (on_host, on_gpu) = low_rank_plus_sparse_memory(&host, frames, voxels);
        assert!(on_gpu == 0 && on_host >= (68 * frames * voxels) as u64);
    }
}

#[test]
fn nonsense_is_refused_and_nothing_gives_nothing() {
    let device = Device::cpu_with_threads(1).unwrap();
    let shape = [4, 5];
    let one = Identity::<C32>::new(&shape);
    let b = random::<f32>(&device, &shape, 1).unwrap();
    let sound = LowRankSparseOptions::default();
    let go = |rhs: &Array<C32>, largest_eigenvalue: f64, options: &LowRankSparseOptions| {
        let problem = Problem { normal: &one, rhs, largest_eigenvalue };
        low_rank_plus_sparse(&problem, options, &Monitor::silent())
    };
    for options in [
        LowRankSparseOptions { low_rank: -1.0, ..sound },
        LowRankSparseOptions { sparse: f64::NAN, ..sound },
        LowRankSparseOptions { tolerance: f64::INFINITY, ..sound },
    ] {
        assert!(matches!(go(&b, 1.0, &options), Err(Error::Value { .. })));
    }
    assert!(matches!(go(&b, 0.0, &sound), Err(Error::Value { .. })));
    assert!(matches!(go(&random(&device, &[5, 4], 1).unwrap(), 1.0, &sound), Err(Error::Shape { .. })));
    let mut broken = b.try_clone().unwrap();
    broken.cpu_mut()[3].re = f32::NAN;
    assert!(matches!(go(&broken, 1.0, &sound), Err(Error::NotFinite { .. })));
    let nothing = go(&Array::zeros(&device, &shape).unwrap(), 1.0, &sound).unwrap();
    assert!(
        nothing.converged && nothing.rank == 0 && wide(&nothing.solution).iter().all(|v| v.norm() == 0.0)
    );
    // With λ_L of 1 nothing is left of the first image, and with λ_S of much no S.
    let strict = LowRankSparseOptions { low_rank: 2.0, sparse: 1e3, max_iterations: 200, tolerance: 1e-6 };
    let found = go(&b, 1.0, &strict).unwrap();
    assert!(vector::norm_squared(&found.solution).unwrap() == 0.0 && found.rank == 0);
    // Nothing is penalised: the data themselves.
    let free = LowRankSparseOptions { low_rank: 0.0, sparse: 0.0, ..sound };
    assert!(relative(&wide(&go(&b, 1.0, &free).unwrap().solution), &wide(&b)) < 1e-5);
    assert!(NuclearNorm::new(&device, &[]).is_err() && NuclearNorm::new(&device, &[3, 0]).is_err());
    assert!(TemporalFourier::<f32>::new(&device, &[0, 3]).is_err());
    let mut values = NuclearNorm::new(&device, &shape).unwrap();
    let mut other = random::<f32>(&device, &[5, 4], 1).unwrap();
    assert!(values.apply(0.1, &mut other).is_err() && values.singular_values(&other).is_err());
    assert!(values.apply(-1.0, &mut b.try_clone().unwrap()).is_err());
    assert!(TemporalFourier::new(&device, &shape).unwrap().apply(0.1, &mut other).is_err());
    let stop = std::sync::atomic::AtomicBool::new(true);
    let problem = Problem { normal: &one, rhs: &b, largest_eigenvalue: 1.0 };
    let stopped = low_rank_plus_sparse(&problem, &sound, &Monitor::new(&rayspin_core::Silent, Some(&stop)));
    assert_eq!(stopped.unwrap_err(), Error::Interrupted);
}
