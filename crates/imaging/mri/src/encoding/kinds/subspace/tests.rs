use std::borrow::Cow;

use ndarray::ArrayD;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayspin_core::{Geometry, Monitor};
use rayspin_device::Device;

use super::super::points::Plans;
use super::*;
use crate::encoding::joined::{joined, measured, repeated};
use crate::encoding::solving::{FrameCache, Solving};
use crate::encoding::spec::{Context, Inputs};
use crate::methods::CgSense;
use crate::recon::{BatchSizes, ReconOptions};
use crate::scan::{Frame, Label, Samples};

/// A series of random samples at random points, with its options.
struct Problem {
    matrix: Vec<usize>,
    frames: Vec<Frame>,
    maps: ArrayD<C32>,
    basis: Arc<Basis>,
}

struct Draw(ChaCha8Rng);

impl Draw {
    fn complex(&mut self) -> C32 {
        C32::new(self.0.random_range(-1.0..1.0), self.0.random_range(-1.0..1.0))
    }

    fn array(&mut self, shape: &[usize]) -> ArrayD<C32> {
        ArrayD::from_shape_fn(shape, |_| self.complex())
    }

    fn basis(&mut self, frames: usize, k: usize, complex: bool) -> Arc<Basis> {
        let value = |draw: &mut Self| {
            let v = wide(draw.complex());
            if complex { v } else { C64::from(v.re) }
        };
        Arc::new(Basis::new(Array2::from_shape_fn((frames, k), |_| value(self))).unwrap())
    }
}

fn problem(
    matrix: &[usize],
    samples: &[usize],
    coils: usize,
    (k, complex): (usize, bool),
    seed: u64,
) -> Problem {
    let mut draw = Draw(ChaCha8Rng::seed_from_u64(seed));
    let maps = draw.array(&[&[coils], matrix].concat());
    let frames = samples.iter().map(|&count| {
        let points = Array2::from_shape_fn((count, matrix.len()), |(_, d)| {
            let n = matrix[matrix.len() - 1 - d] as f64;
            draw.0.random_range(-n / 2.0..n / 2.0)
        });
        let data = draw.array(&[coils, count]).into_dimensionality().unwrap();
        let trajectory = Trajectory::from_cycles_per_fov(points).unwrap();
        Frame {
            label: Label::default(),
            matrix: matrix.to_vec(),
            geometry: Geometry::default(),
            samples: Samples::NonCartesian { trajectory, data },
            times: None,
            calibration: None,
            interpolated: false,
        }
    });
    let frames: Vec<Frame> = frames.collect();
    let basis = draw.basis(samples.len(), k, complex);
    Problem { matrix: matrix.to_vec(), frames, maps, basis }
}

impl Problem {
    fn options(&self, batch_sizes: BatchSizes) -> ReconOptions {
        let mut options = ReconOptions {
            maps: Some(Arc::new(self.maps.clone())),
            basis: Some(self.basis.clone()),
            nufft_tolerance: 1e-6,
            ..ReconOptions::of(CgSense::default())
        };
        options.run.batch_sizes = batch_sizes;
        options
    }

    /// Calls `look` with the series once its right-hand side and its normal operator are there.
    fn solving<T>(&self, batch_sizes: BatchSizes, look: impl FnOnce(&mut Solving<'_>) -> T) -> T {
        let device = Device::cpu_with_threads(2).unwrap();
        let options = self.options(batch_sizes);
        options.validate().unwrap();
        let (frame, of_frames) = joined(self.frames.clone()).unwrap();
        let coils = frame.coils();
        let mut inputs = Inputs::new(Cow::Owned(frame)).of_frames(Some(of_frames));
        let samples = inputs.take_samples().unwrap();
        let context = Context {
            coils,
            prepared: false,
            shared_maps: false,
            field_range: None,
            together: 1,
            maps_alone: false,
            spread: false,
        };
        let spec = options.encoding(&device, &inputs, context).unwrap();
        let mut cache = FrameCache::default();
        let mut solving = Solving::new(&spec, samples, None, &mut cache).unwrap();
        rayspin_run::run(spec.frame_of_series(), &mut solving, &Monitor::silent()).unwrap();
        look(&mut solving)
    }

    fn voxels(&self) -> usize {
        self.matrix.iter().product()
    }

    fn trajectory(&self, f: usize) -> &Trajectory {
        match &self.frames[f].samples {
            Samples::NonCartesian { trajectory, .. } => trajectory,
            Samples::Cartesian { .. } => unreachable!("frames of points"),
        }
    }

    /// Samples of one frame and coil, in double precision: F_f (s_j Σ_i Φ_fi c_i), frame by frame.
    fn forward(&self, coefficients: &[C64], f: usize, coil: usize) -> Vec<C64> {
        let n = self.voxels();
        let map = self.maps.as_slice().unwrap();
        let image: Vec<C64> = (0..n)
            .map(|x| {
                let sum: C64 = (0..self.basis.coefficients())
                    .map(|i| self.basis.matrix()[[f, i]] * coefficients[i * n + x])
                    .sum();
                sum * wide(map[coil * n + x])
            })
            .collect();
        nudft::reference::forward(self.trajectory(f), &self.matrix, &image).unwrap()
    }

    /// Σ_f Σ_j conj(Φ_fi s_j) F_fᴴ of what `of` gives for each frame and coil.
    fn adjoint(&self, of: impl Fn(usize, usize) -> Vec<C64>) -> Vec<C64> {
        let (n, k) = (self.voxels(), self.basis.coefficients());
        let map = self.maps.as_slice().unwrap();
        let mut all = vec![C64::ZERO; k * n];
        for f in 0..self.frames.len() {
            for coil in 0..self.maps.shape()[0] {
                let image =
                    nudft::reference::adjoint(self.trajectory(f), &self.matrix, &of(f, coil)).unwrap();
                for (at, sum) in all.iter_mut().enumerate() {
                    let phi = self.basis.matrix()[[f, at / n]];
                    *sum += (phi * wide(map[coil * n + at % n])).conj() * image[at % n];
                }
            }
        }
        all
    }

    fn data(&self, f: usize, coil: usize) -> Vec<C64> {
        match &self.frames[f].samples {
            Samples::NonCartesian { data, .. } => data.row(coil).iter().map(|v| wide(*v)).collect(),
            Samples::Cartesian { .. } => unreachable!("frames of points"),
        }
    }
}

fn relative(found: &[C32], exact: &[C64]) -> f64 {
    assert_eq!(found.len(), exact.len());
    let apart: f64 = found.iter().zip(exact).map(|(a, b)| (wide(*a) - b).norm_sqr()).sum();
    (apart / exact.iter().map(|v| v.norm_sqr()).sum::<f64>()).sqrt()
}

#[test]
fn right_hand_side_and_normal_operator_are_the_exact_sums() {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(now.as_nanos() as u64);
    for (matrix, samples, coils, k, complex) in [
        (vec![6, 5], vec![11, 1, 7], 1, 1, false),
        (vec![6, 5], vec![9], 3, 1, true),
        (vec![7, 8], vec![13, 5, 9, 20], 2, 3, false),
        (vec![8, 8], vec![10, 10, 10, 10, 10], 3, 4, false),
        (vec![5, 7], vec![4, 12, 9], 2, 2, true),
        (vec![6, 4], vec![6, 6, 6, 6], 1, 4, true),
        (vec![4, 3, 5], vec![20, 31], 2, 2, false),
        (vec![3, 4, 4], vec![15, 9, 22], 2, 3, true),
    ] {
        let seed: u64 = rng.random();
        let problem = problem(&matrix, &samples, coils, (k, complex), seed);
        let scale = problem.voxels() as f64;
        let exact = problem.adjoint(|f, coil| problem.data(f, coil).iter().map(|d| d * scale).collect());
        for batch_sizes in [
            BatchSizes::default(),
            BatchSizes { coils: Some(1), points: Some(6), segments: Some(2), ..BatchSizes::default() },
        ] {
            let what = format!(
                "{matrix:?}, {samples:?} samples, {coils} coils, k {k}, complex {complex}, seed {seed}"
            );
            problem.solving(batch_sizes, |solving| {
                let rhs = solving.take_rhs().unwrap();
                assert_eq!(rhs.shape(), [&[k], &matrix[..]].concat());
                let apart = relative(&rhs.to_vec().unwrap(), &exact);
                assert!(apart < 1e-5, "right-hand side of {what}: {apart}");
                let normal = solving.normal().unwrap();
                let x = rayspin_linop::random(rhs.device(), rhs.shape(), seed).unwrap();
                let wide_x: Vec<C64> = x.to_vec().unwrap().into_iter().map(wide).collect();
                let exact = problem.adjoint(|f, coil| problem.forward(&wide_x, f, coil));
                let apart = relative(&normal.forward(&x).unwrap().to_vec().unwrap(), &exact);
                assert!(apart < 1e-5, "normal operator of {what}: {apart}");
                rayspin_linop::laws::check_positive(&*normal, rhs.device(), seed, 1e-4).unwrap();
            });
        }
    }
}

#[test]
fn forward_and_adjoint_are_exact_and_match() {
    for (matrix, samples, k, complex, seed) in
        [(vec![6, 7], vec![9, 1, 14], 3, false, 1), (vec![3, 5, 4], vec![30, 20], 2, true, 2)]
    {
        let mut problem = problem(&matrix, &samples, 1, (k, complex), seed);
        problem.maps.fill(C32::ONE);
        problem.solving(BatchSizes::default(), |solving| {
            let device = solving.device().clone();
            let plans: &mut Plans<Subspace> = solving.encoding_as().unwrap();
            let (subspace, plan) = (plans.modulated().unwrap(), plans.transforms().unwrap());
            let count: usize = samples.iter().sum();
            let c = rayspin_linop::random(&device, &[&[k], &matrix[..]].concat(), seed).unwrap();
            let d = rayspin_linop::random(&device, &[count], seed + 1).unwrap();
            let mut seen = Array::zeros(&device, &[count]).unwrap();
            subspace.forward(plan, &c, &mut seen).unwrap();
            let wide_c: Vec<C64> = c.to_vec().unwrap().into_iter().map(wide).collect();
            let exact: Vec<C64> = (0..samples.len()).flat_map(|f| problem.forward(&wide_c, f, 0)).collect();
            let apart = relative(&seen.to_vec().unwrap(), &exact);
            assert!(apart < 1e-5, "{apart}");
            let mut back = Array::zeros(&device, c.shape()).unwrap();
            subspace.adjoint(plan, &d, &mut back).unwrap();
            let gap = (vector::dot(&seen, &d).unwrap() - vector::dot(&c, &back).unwrap()).norm();
            let size = vector::norm_squared(&seen).unwrap().sqrt() * vector::norm_squared(&d).unwrap().sqrt();
            assert!(gap < 1e-5 * size, "{gap} of {size}");
        });
    }
}

/// With a coefficient for each frame the blocks of different frames are 0, and each frame has its own normal
/// operator.
#[test]
fn a_full_basis_is_frame_by_frame() {
    let mut all = problem(&[9, 8], &[40, 25, 33], 3, (1, false), 5);
    all.basis = Arc::new(Basis::new(Array2::eye(3)).unwrap());
    let of = |problem: &Problem, x: &[C32]| {
        problem.solving(BatchSizes::default(), |solving| {
            let rhs = solving.take_rhs().unwrap();
            let x = Array::from_slice(rhs.device(), rhs.shape(), x).unwrap();
            let seen = solving.normal().unwrap().forward(&x).unwrap();
            (rhs.to_vec().unwrap(), seen.to_vec().unwrap())
        })
    };
    let mut draw = Draw(ChaCha8Rng::seed_from_u64(6));
    let x: Vec<C32> = (0..3 * 72).map(|_| draw.complex()).collect();
    let (rhs, seen) = of(&all, &x);
    for (f, frame) in all.frames.iter().enumerate() {
        let basis = Arc::new(Basis::new(Array2::eye(1)).unwrap());
        let (maps, matrix) = (all.maps.clone(), all.matrix.clone());
        let alone = Problem { matrix, frames: vec![frame.clone()], maps, basis };
        let own = f * 72..(f + 1) * 72;
        let (rhs_alone, seen_alone) = of(&alone, &x[own.clone()]);
        for (found, alone) in [(&rhs[own.clone()], rhs_alone), (&seen[own.clone()], seen_alone)] {
            let alone: Vec<C64> = alone.into_iter().map(wide).collect();
            assert!(relative(found, &alone) < 1e-5, "frame {f}: {}", relative(found, &alone));
        }
    }
}

#[test]
fn frames_that_do_not_join_are_refused() {
    let frames = || problem(&[6, 5], &[4, 6], 2, (1, false), 3).frames;
    assert!(joined(Vec::new()).is_err());
    let mut other = frames();
    other[1].matrix = vec![5, 6];
    assert!(joined(other).unwrap_err().to_string().contains("matrix"));
    let mut other = frames();
    other[1].samples = problem(&[6, 5], &[4], 3, (1, false), 3).frames.remove(0).samples;
    assert!(joined(other).unwrap_err().to_string().contains("coils"));
    let (frame, of_frames) = joined(frames()).unwrap();
    assert_eq!((measured(&frame), of_frames), (10, vec![4, 6]));
    let (frame, of_frames) = repeated(&frame, 3).unwrap();
    assert_eq!((measured(&frame), frame.coils(), of_frames), (30, 2, vec![10; 3]));
}
