//! Algebraic reconstruction against what its theory says of small dense systems.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayspin_core::{Monitor, Result};
use rayspin_device::{Array, Device};
use rayspin_linop::LinearOp;
use rayspin_solve::{CgOptions, Part, SartOptions, Subset, cg, mlem, sart};

/// A dense matrix of f64.
struct Dense {
    rows: Vec<usize>,
    columns: Vec<usize>,
    entries: Vec<f64>,
}

impl Dense {
    fn random(rows: usize, columns: usize, rng: &mut ChaCha8Rng) -> Self {
        let entries = (0..rows * columns).map(|_| rng.random_range(0.0..1.0f64).powi(2)).collect();
        Self { rows: vec![rows], columns: vec![columns], entries }
    }

    fn rows_from(&self, first: usize, count: usize) -> Self {
        let n = self.columns[0];
        Self {
            rows: vec![count],
            columns: vec![n],
            entries: self.entries[first * n..(first + count) * n].to_vec(),
        }
    }
}

impl LinearOp<f64> for Dense {
    fn name(&self) -> &str {
        "dense"
    }
    fn domain(&self) -> &[usize] {
        &self.columns
    }
    fn range(&self) -> &[usize] {
        &self.rows
    }
    fn forward_into(&self, x: &Array<f64>, y: &mut Array<f64>) -> Result<()> {
        let x = x.read()?.into_owned();
        y.update(|y| {
            for (y, row) in y.iter_mut().zip(self.entries.chunks(self.columns[0])) {
                *y = row.iter().zip(&x).map(|(a, x)| a * x).sum();
            }
        })
    }
    fn adjoint_into(&self, y: &Array<f64>, x: &mut Array<f64>) -> Result<()> {
        let y = y.read()?.into_owned();
        x.update(|x| {
            x.fill(0.0);
            for (y, row) in y.iter().zip(self.entries.chunks(self.columns[0])) {
                x.iter_mut().zip(row).for_each(|(x, a)| *x += a * y);
            }
        })
    }
}

fn distance(a: &Array<f64>, b: &[f64]) -> f64 {
    let square: f64 = a.to_vec().unwrap().iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum();
    (square / b.iter().map(|b| b * b).sum::<f64>()).sqrt()
}

/// Parts of the data on several devices are one subset, whose solution has the same bits each time.
#[test]
fn parts_on_several_devices_solve_as_one() {
    let devices: Vec<Device> = (0..3).map(|_| Device::cpu_with_threads(1).unwrap()).collect();
    let mut rng = ChaCha8Rng::seed_from_u64(4);
    let whole = Dense::random(24, 6, &mut rng);
    let truth: Vec<f64> = (0..6).map(|_| rng.random_range(0.1..1.0)).collect();
    let x = Array::from_slice(&devices[0], &[6], &truth).unwrap();
    let all = whole.forward(&x).unwrap();
    let rows = [0..7, 7..8, 8..24];
    let parts: Vec<Dense> = rows.iter().map(|rows| whole.rows_from(rows.start, rows.len())).collect();
    let data: Vec<Array<f64>> = rows
        .iter()
        .zip(&devices)
        .map(|(rows, device)| Array::from_slice(device, &[rows.len()], &all.cpu()[rows.clone()]).unwrap())
        .collect();
    let of_parts = |count: usize| {
        let pairs = parts.iter().zip(&data).take(count);
        Subset::of_parts(pairs.map(|(op, data)| Part { op, data }).collect())
    };
    let options = SartOptions { iterations: 30, ..SartOptions::default() };
    for method in ["sart", "mlem"] {
        let solve = |subset: &Subset<'_, f64>| match method {
            "sart" => sart(std::slice::from_ref(subset), None, &options, &Monitor::silent()).unwrap(),
            _ => mlem(subset, None, &options, &Monitor::silent()).unwrap(),
        };
        let (one, several) = (solve(&Subset::new(&whole, &all)), solve(&of_parts(3)));
        assert!(distance(&several.solution, &one.solution.to_vec().unwrap()) < 1e-12, "{method}");
        for (found, expected) in several.residuals.iter().zip(&one.residuals) {
            assert!((found - expected).abs() < 1e-9, "{method}: {found} for {expected}");
        }
        let again = solve(&of_parts(3));
        assert_eq!(again.solution.to_vec().unwrap(), several.solution.to_vec().unwrap(), "{method}");
    }
    // Subsets on other devices, or on fewer, are refused.
    let refused = |subsets: &[Subset<'_, f64>]| sart(subsets, None, &options, &Monitor::silent()).is_err();
    assert!(refused(&[of_parts(3), of_parts(2)]) && refused(&[of_parts(0)]));
    assert!(refused(&[of_parts(2), Subset::of_parts(vec![Part { op: &parts[0], data: &data[0] }; 2])]));
}

#[test]
fn consistent_systems_are_solved_with_any_subsets() {
    let device = Device::cpu().unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let whole = Dense::random(24, 6, &mut rng);
    let truth: Vec<f64> = (0..6).map(|_| rng.random_range(0.1..1.0)).collect();
    let x = Array::from_slice(&device, &[6], &truth).unwrap();
    let mut passes = Vec::new();
    for size in [24, 12, 6] {
        let parts: Vec<Dense> = (0..24).step_by(size).map(|first| whole.rows_from(first, size)).collect();
        let data: Vec<_> = parts.iter().map(|part| part.forward(&x).unwrap()).collect();
        let subsets: Vec<_> = parts.iter().zip(&data).map(|(op, data)| Subset::new(op, data)).collect();
        let options = SartOptions { iterations: 20_000, tolerance: 1e-9, ..SartOptions::default() };
        let found = sart(&subsets, None, &options, &Monitor::silent()).unwrap();
        assert!(
            found.converged && distance(&found.solution, &truth) < 1e-5,
            "{size}: {:?}",
            found.residuals.last()
        );
        passes.push(found.residuals.len());
    }
    // More subsets need fewer passes.
    assert!(passes[1] < passes[0] && passes[2] < passes[1], "{passes:?}");
}

/// SIRT minimises Σ R (p − Ax)²: its limit solves AᵀR A x = AᵀR p.
#[test]
fn sirt_tends_to_weighted_least_squares() {
    let device = Device::cpu().unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    let op = Dense::random(12, 4, &mut rng);
    let data: Vec<f64> = (0..12).map(|_| rng.random_range(-1.0..1.0)).collect();
    let sums: Vec<f64> = op.entries.chunks(4).map(|row| row.iter().sum()).collect();
    let scaled = Dense {
        rows: vec![12],
        columns: vec![4],
        entries: op.entries.iter().enumerate().map(|(at, a)| a / sums[at / 4].sqrt()).collect(),
    };
    let weighted: Vec<f64> = data.iter().zip(&sums).map(|(p, sum)| p / sum.sqrt()).collect();
    let rhs = scaled.adjoint(&Array::from_slice(&device, &[12], &weighted).unwrap()).unwrap();
    let options = CgOptions { max_iterations: 100, tolerance: 1e-12 };
    let exact = cg(&scaled.normal_op(), &rhs, None, &options, &Monitor::silent()).unwrap().solution;
    let data = Array::from_slice(&device, &[12], &data).unwrap();
    for relaxation in [0.5, 1.0, 1.9] {
        let options = SartOptions { iterations: 20_000, relaxation, ..SartOptions::default() };
        let found = sart(&[Subset::new(&op, &data)], None, &options, &Monitor::silent()).unwrap();
        let apart = distance(&found.solution, &exact.to_vec().unwrap());
        assert!(apart < 1e-6, "{relaxation}: {apart}");
        // The weighted error falls; the residual may not.
        assert!(!found.converged && found.residuals.len() == 20_000);
    }
    let options = SartOptions { iterations: 200, nonnegative: true, ..SartOptions::default() };
    let found = sart(&[Subset::new(&op, &data)], None, &options, &Monitor::silent()).unwrap();
    assert!(found.solution.to_vec().unwrap().iter().all(|v| *v >= 0.0));
}

/// MLEM increases the likelihood Σ p ln(Ax) − Ax in each step, and ends at a positive solution where there is
/// one.
#[test]
fn mlem_increases_the_likelihood() {
    let device = Device::cpu().unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let op = Dense::random(15, 5, &mut rng);
    let truth: Vec<f64> = (0..5).map(|_| rng.random_range(0.1..2.0)).collect();
    let data = op.forward(&Array::from_slice(&device, &[5], &truth).unwrap()).unwrap();
    let mut likelihoods = Vec::new();
    let mut observe = |step: &rayspin_solve::Step<'_, f64>| {
        let seen = op.forward(step.solution)?.to_vec()?;
        likelihoods.push(data.to_vec()?.iter().zip(seen).map(|(p, q)| p * q.ln() - q).sum::<f64>());
        Ok(())
    };
    let silent = Monitor::silent();
    let watch = rayspin_solve::Watch::from(&silent).with_observer(&mut observe);
    let options = SartOptions { iterations: 5000, ..SartOptions::default() };
    let found = mlem(&Subset::new(&op, &data), None, &options, watch).unwrap();
    assert!(likelihoods.windows(2).all(|pair| pair[1] >= pair[0] - 1e-12));
    assert!(distance(&found.solution, &truth) < 1e-3, "{}", distance(&found.solution, &truth));
}

#[test]
fn bad_options_and_data_are_refused() {
    let device = Device::cpu().unwrap();
    let op = Dense::random(4, 3, &mut ChaCha8Rng::seed_from_u64(4));
    let data = Array::from_slice(&device, &[4], &[1.0; 4]).unwrap();
    let run = |options: SartOptions, data: &Array<f64>| {
        sart(&[Subset::new(&op, data)], None, &options, &Monitor::silent()).map(|_| ())
    };
    let plain = SartOptions::default();
    assert!(run(plain, &data).is_ok());
    for relaxation in [0.0, 2.0, f64::NAN] {
        assert!(run(SartOptions { relaxation, ..plain }, &data).is_err());
    }
    assert!(run(SartOptions { tolerance: -1.0, ..plain }, &data).is_err());
    assert!(run(plain, &Array::from_slice(&device, &[3], &[1.0; 3]).unwrap()).is_err());
    assert!(run(plain, &Array::from_slice(&device, &[4], &[f64::NAN; 4]).unwrap()).is_err());
    assert!(sart::<f64>(&[], None, &plain, &Monitor::silent()).is_err());
    let negative = Array::from_slice(&device, &[3], &[-1.0; 3]).unwrap();
    assert!(mlem(&Subset::new(&op, &data), Some(&negative), &plain, &Monitor::silent()).is_err());
}
