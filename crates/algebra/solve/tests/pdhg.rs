//! PDHG: against FISTA, elimination and optimality conditions, for real and complex numbers.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

mod common;

use common::{Dense, relative, wide};
use rayspin_core::{C64, Error, Monitor, Result};
use rayspin_device::{Array, Device};
use rayspin_kernels::vector;
use rayspin_linop::{FiniteDifference, Identity, LinearOp, random, random_of};
use rayspin_solve::{
    Distance, FistaOptions, GroupNorms, Magnitudes, NonNegative, PdhgOptions, Problem, Proximal, Step, Term,
    TotalVariation, Watch, fista, pdhg,
};

fn device() -> Device {
    Device::cpu_with_threads(1).unwrap()
}

fn exactly(balance: impl Into<Option<f64>>) -> PdhgOptions {
    PdhgOptions { max_iterations: 20_000, tolerance: 1e-12, balance: balance.into() }
}

/// A tall matrix of real numbers.
struct Tall {
    shapes: [[usize; 1]; 2],
    rows: Vec<Vec<f64>>,
}

impl Tall {
    fn new(device: &Device, rows: usize, columns: usize) -> Self {
        let values = random_of::<f64>(device, &[rows, columns], 3).unwrap().to_vec().unwrap();
        Self { shapes: [[columns], [rows]], rows: values.chunks(columns).map(<[f64]>::to_vec).collect() }
    }
}

impl LinearOp<f64> for Tall {
    fn name(&self) -> &str {
        "tall"
    }
    fn domain(&self) -> &[usize] {
        &self.shapes[0]
    }
    fn range(&self) -> &[usize] {
        &self.shapes[1]
    }
    fn forward_into(&self, x: &Array<f64>, y: &mut Array<f64>) -> Result<()> {
        for (y, row) in y.cpu_mut().iter_mut().zip(&self.rows) {
            *y = row.iter().zip(x.cpu()).map(|(a, x)| a * x).sum();
        }
        Ok(())
    }
    fn adjoint_into(&self, y: &Array<f64>, x: &mut Array<f64>) -> Result<()> {
        for (column, x) in x.cpu_mut().iter_mut().enumerate() {
            *x = self.rows.iter().zip(y.cpu()).map(|(row, y)| row[column] * y).sum();
        }
        Ok(())
    }
}

#[test]
fn sparse_least_squares_agree_with_fista_for_any_balance() {
    let device = device();
    let op = Dense::<f64>::hermitian(&[2.0, 1.7, 1.0, 0.6, 0.5, 0.3], 7);
    let data = random(&device, &[6], 8).unwrap();
    let lambda = 0.3;
    let rhs = op.adjoint(&data).unwrap();
    let same: Identity<C64> = Identity::new(&[6]);
    let squared = Dense::<f64>::hermitian(&[2.0, 1.7, 1.0, 0.6, 0.5, 0.3], 7).normal_op();
    let problem = Problem { normal: &squared, rhs: &rhs, largest_eigenvalue: 4.0 };
    let options = FistaOptions { max_iterations: 20_000, tolerance: 1e-13, ..FistaOptions::default() };
    let expected =
        fista(&problem, None, lambda, &mut Magnitudes::default(), &options, &Monitor::silent()).unwrap();
    let lowest = expected.objective.last().unwrap() + 0.5 * vector::norm_squared(&data).unwrap();
    let data = std::sync::Arc::new(data);
    for balance in [Some(0.3), Some(1.0), Some(4.0), None] {
        let (mut near, mut sparse) = (Distance::new(data.clone()), Magnitudes::default());
        let mut terms = [
            Term { op: &op, penalty: &mut near, weight: 1.0, largest_eigenvalue: 4.0 },
            Term { op: &same, penalty: &mut sparse, weight: lambda, largest_eigenvalue: 1.0 },
        ];
        let found = pdhg(&device, None, &mut terms, None, &exactly(balance), &Monitor::silent()).unwrap();
        let error = relative(&wide(&found.solution), &wide(&expected.solution));
        assert!(found.converged && error < 1e-9, "balance {balance:?}: {error:.1e}");
        assert!((found.objective.last().unwrap() - lowest).abs() < 1e-9);
        // The other form of the problem, with the penalty as g, from another start.
        let mut near = Distance::new(data.clone());
        let mut terms = [Term { op: &op, penalty: &mut near, weight: 1.0, largest_eigenvalue: 4.0 }];
        let start = random(&device, &[6], 9).unwrap();
        let mut scaled = Weighted(lambda, Magnitudes::default());
        let g: &mut dyn Proximal<C64> = &mut scaled;
        let found =
            pdhg(&device, Some(g), &mut terms, Some(&start), &exactly(balance), &Monitor::silent()).unwrap();
        let error = relative(&wide(&found.solution), &wide(&expected.solution));
        assert!(found.converged && error < 1e-9, "balance {balance:?}, g: {error:.1e}");
    }
}

/// λ times a penalty.
struct Weighted<P>(f64, P);

impl<P: Proximal<C64>> Proximal<C64> for Weighted<P> {
    fn apply(&mut self, t: f64, x: &mut Array<C64>) -> Result<f64> {
        Ok(self.0 * self.1.apply(self.0 * t, x)?)
    }
}

#[test]
fn total_variation_agrees_with_its_proximal_map() {
    let device = device();
    let noisy = random(&device, &[5, 7], 4).unwrap();
    let differences = FiniteDifference::<C64>::new(&[5, 7]).unwrap();
    let mut expected = noisy.try_clone().unwrap();
    let mut exact = TotalVariation::new(&device, &differences, differences.bound(), 20_000).unwrap();
    let value = exact.apply(0.2, &mut expected).unwrap();
    let same = Identity::new(&[5, 7]);
    let (mut near, mut edges) = (Distance::new(noisy), GroupNorms::default());
    let mut terms = [
        Term { op: &same, penalty: &mut near, weight: 1.0, largest_eigenvalue: 1.0 },
        Term { op: &differences, penalty: &mut edges, weight: 0.2, largest_eigenvalue: differences.bound() },
    ];
    let found = pdhg(&device, None, &mut terms, None, &exactly(1.0), &Monitor::silent()).unwrap();
    assert!(relative(&wide(&found.solution), &wide(&expected)) < 1e-6);
    let last = *found.objective.last().unwrap();
    assert!(last > 0.2 * value && last < 0.2 * value * 100.0);
}

#[test]
fn non_negative_least_squares_meet_their_optimality_conditions() {
    let device = device();
    let op = Tall::new(&device, 9, 5);
    let data = random_of::<f64>(&device, &[9], 5).unwrap();
    let mut near = Distance::new(data.try_clone().unwrap());
    let mut terms = [Term { op: &op, penalty: &mut near, weight: 1.0, largest_eigenvalue: 60.0 }];
    let found =
        pdhg(&device, Some(&mut NonNegative), &mut terms, None, &exactly(1.0), &Monitor::silent()).unwrap();
    // x ≥ 0, Aᵀ(Ax − d) ≥ 0, and one of the two is 0.
    let mut rest = op.forward(&found.solution).unwrap();
    vector::axpy((-1.0).into(), &data, &mut rest).unwrap();
    let gradient = op.adjoint(&rest).unwrap();
    let (mut free, mut held) = (0, 0);
    for (x, slope) in found.solution.cpu().iter().zip(gradient.cpu()) {
        assert!(*x >= 0.0 && *slope > -1e-8 && x * slope.abs() < 1e-8, "{x} {slope}");
        free += usize::from(*x > 1e-6);
        held += usize::from(*slope > 1e-6);
    }
    assert!(free > 0 && held > 0, "{free} {held}");
}

#[test]
fn default_steps_suit_every_scale_and_the_objective_is_the_function() {
    let device = device();
    let shape = [6, 8];
    let differences = FiniteDifference::<f64>::new(&shape).unwrap();
    let blocks: Vec<f64> = (0..48).map(|i| f64::from(u8::from(i % 8 > 2) + u8::from(i > 20))).collect();
    for (scale, size) in [(1.0, 1.0), (30.0, 1.0), (0.05, 1.0), (30.0, 0.01), (1.0, 500.0)] {
        let op = Identity::<f64>::new(&shape).scaled(scale);
        let mut data = random_of::<f64>(&device, &shape, 6).unwrap();
        vector::scale((0.2 * size * scale).into(), &mut data).unwrap();
        let blocks = Array::from_vec(&device, &shape, blocks.clone()).unwrap();
        vector::axpy((size * scale).into(), &blocks, &mut data).unwrap();
        let data = std::sync::Arc::new(data);
        let weight = 0.2 * size * scale * scale;
        let run = |options: &PdhgOptions| {
            let (mut near, mut edges) = (Distance::new(data.clone()), GroupNorms::default());
            let mut terms = [
                Term { op: &op, penalty: &mut near, weight: 1.0, largest_eigenvalue: scale * scale },
                Term {
                    op: &differences,
                    penalty: &mut edges,
                    weight,
                    largest_eigenvalue: differences.bound(),
                },
            ];
            pdhg(&device, None, &mut terms, None, options, &Monitor::silent()).unwrap()
        };
        let function = |x: &Array<f64>| {
            let mut rest = op.forward(x).unwrap();
            vector::axpy((-1.0).into(), &data, &mut rest).unwrap();
            let edges = rayspin_kernels::shrink::joint_norm(&differences.forward(x).unwrap()).unwrap();
            0.5 * vector::norm_squared(&rest).unwrap() + weight * edges
        };
        let found = run(&PdhgOptions { tolerance: 0.0, ..PdhgOptions::default() });
        let value = function(&found.solution);
        let told = found.objective[299];
        assert!((told - value).abs() < 1e-9 * value, "{told} for {value}");
        let lowest = function(&run(&PdhgOptions { max_iterations: 20_000, ..exactly(None::<f64>) }).solution);
        assert!(value < 1.005 * lowest, "scale {scale}, size {size}: {value} above {lowest}");
    }
}

#[test]
fn wrong_arguments_and_breakdowns_are_errors() {
    let device = device();
    let (op, other) = (Identity::<f64>::new(&[4]), Identity::<f64>::new(&[5]));
    let good = PdhgOptions::default();
    let run = |ops: &[(&dyn LinearOp<f64>, f64, f64)], start: Option<&Array<f64>>, options: &PdhgOptions| {
        let mut penalties: Vec<_> = ops.iter().map(|_| Magnitudes::default()).collect();
        let mut terms: Vec<_> = ops
            .iter()
            .zip(&mut penalties)
            .map(|(&(op, weight, largest_eigenvalue), penalty)| Term {
                op,
                penalty,
                weight,
                largest_eigenvalue,
            })
            .collect();
        pdhg(&device, None, &mut terms, start, options, &Monitor::silent())
    };
    let infinite = Array::from_vec(&device, &[4], vec![f64::INFINITY; 4]).unwrap();
    let short = Array::zeros(&device, &[3]).unwrap();
    assert!(run(&[(&op, 1.0, 1.0)], None, &good).unwrap().converged);
    for (ops, start, options) in [
        (&[][..], None, good),
        (&[(&op as &dyn LinearOp<f64>, 0.0, 1.0)], None, good),
        (&[(&op, 1.0, -1.0)], None, good),
        (&[(&op, 1.0, f64::NAN)], None, good),
        (&[(&op, 1.0, 1.0), (&other, 1.0, 1.0)], None, good),
        (&[(&op, 1.0, 1.0)], Some(&short), good),
        (&[(&op, 1.0, 1.0)], Some(&infinite), good),
        (&[(&op, 1.0, 1.0)], None, PdhgOptions { balance: Some(0.0), ..good }),
        (&[(&op, 1.0, 1.0)], None, PdhgOptions { tolerance: f64::NAN, ..good }),
    ] {
        assert!(run(ops, start, &options).is_err());
    }
    // An eigenvalue that is far too small: the iterates grow until they leave the numbers.
    let start = random_of::<f64>(&device, &[4], 1).unwrap();
    let mut far = Distance::new(Array::zeros(&device, &[4]).unwrap());
    let steep = Identity::<f64>::new(&[4]).scaled(1e3);
    let mut terms = [Term { op: &steep, penalty: &mut far, weight: 1e6, largest_eigenvalue: 1e-3 }];
    let options = PdhgOptions { max_iterations: 2000, ..good };
    let error = pdhg(&device, None, &mut terms, Some(&start), &options, &Monitor::silent()).unwrap_err();
    assert!(matches!(error, Error::Numerical { .. }), "{error}");
}

#[test]
fn an_observer_sees_every_iterate_and_may_stop_the_run() {
    let device = device();
    let op = Identity::<f64>::new(&[4]);
    let mut near = Distance::new(random_of::<f64>(&device, &[4], 1).unwrap());
    let mut terms = [Term { op: &op, penalty: &mut near, weight: 1.0, largest_eigenvalue: 1.0 }];
    let mut seen = 0;
    let mut observe = |step: &Step<'_, f64>| {
        seen = step.iteration;
        if seen == 3 { Err(Error::Interrupted) } else { Ok(()) }
    };
    let silent = Monitor::silent();
    let watch = Watch::from(&silent).with_observer(&mut observe);
    let stopped = pdhg(&device, None, &mut terms, None, &PdhgOptions::default(), watch);
    assert!(matches!(stopped, Err(Error::Interrupted)) && seen == 3);
}
