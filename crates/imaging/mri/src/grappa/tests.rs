#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

use ndarray::{ArrayD, IxDyn};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayspin_core::{C64, Monitor};

use super::*;
use crate::scan::{FrameOptions, Label, Samples};
use crate::simulate::trajectory::{CartesianPattern, Sampling};
use crate::simulate::{SimulateOptions, simulate};

/// Lines as the textbook has them, for every second line of two dimensions: four lines by five positions.
fn textbook(kspace: &ArrayD<C32>, sampled: &[bool]) -> Vec<(usize, Vec<C64>)> {
    let [coils, ny, nx] = [0, 1, 2].map(|axis| kspace.shape()[axis]);
    let value = |c: usize, y: isize, x: isize| {
        if y < 0 || x < 0 || y as usize >= ny || x as usize >= nx {
            return C64::ZERO;
        }
        let v = kspace[[c, y as usize, x as usize]];
        C64::new(v.re.into(), v.im.into())
    };
    let row = |y: usize, x: usize| -> Vec<C64> {
        let mut row = Vec::new();
        for dy in [-3, -1, 1, 3] {
            for dx in -2..=2 {
                for c in 0..coils {
                    row.push(value(c, y as isize + dy, x as isize + dx));
                }
            }
        }
        row
    };
    let n = 20 * coils;
    let mut a = vec![vec![C64::ZERO; n + coils]; n];
    for y in 3..ny - 3 {
        if ![y - 3, y - 1, y, y + 1, y + 3].iter().all(|&y| sampled[y]) {
            continue;
        }
        for x in 2..nx - 2 {
            let row = row(y, x);
            for i in 0..n {
                for j in 0..n {
                    a[i][j] += row[i].conj() * row[j];
                }
                for c in 0..coils {
                    a[i][n + c] += row[i].conj() * value(c, y as isize, x as isize);
                }
            }
        }
    }
    let mean = (0..n).map(|i| a[i][i].re).sum::<f64>() / n as f64;
    for (i, row) in a.iter_mut().enumerate() {
        row[i] += RIDGE * mean;
    }
    // Gauss–Jordan elimination.
    for k in 0..n {
        let pivot = (k..n).max_by(|&i, &j| a[i][k].norm().total_cmp(&a[j][k].norm())).unwrap();
        a.swap(k, pivot);
        let top = a[k].clone();
        for (i, row) in a.iter_mut().enumerate() {
            if i != k {
                let factor = row[k] / top[k];
                row.iter_mut().zip(&top).for_each(|(v, t)| *v -= factor * t);
            }
        }
    }
    let missing = (0..ny).filter(|&y| !sampled[y]);
    missing
        .map(|y| {
            let line = (0..coils).flat_map(|c| (0..nx).map(move |x| (c, x)));
            let sum = |(c, x): (usize, usize)| {
                row(y, x).iter().enumerate().map(|(i, v)| v * a[i][n + c] / a[i][i]).sum::<C64>()
            };
            (y, line.map(sum).collect())
        })
        .collect()
}

#[test]
fn lines_are_those_of_the_textbook() {
    let device = Device::cpu_with_threads(2).unwrap();
    for (seed, (ny, nx, coils, offset)) in [(24, 20, 2, 0), (27, 17, 3, 1)].into_iter().enumerate() {
        let sampled: Vec<bool> =
            (0..ny).map(|y: usize| (y + offset).is_multiple_of(2) || y.abs_diff(ny / 2) < 6).collect();
        let mut rng = ChaCha8Rng::seed_from_u64(seed as u64);
        let kspace = ArrayD::from_shape_fn(IxDyn(&[coils, ny, nx]), |i| {
            let value = C32::new(rng.random_range(-1.0..1.0), rng.random_range(-1.0..1.0));
            if sampled[i[1]] { value } else { C32::ZERO }
        });
        let mask = ArrayD::from_shape_fn(IxDyn(&[ny, nx]), |i| sampled[i[0]]);
        let filled = grappa(&device, Array::from_host(&device, &kspace).unwrap(), &mask, None).unwrap();
        assert!(filled.sampled.iter().all(|&s| s) && filled.acceleration == [1, 2]);
        let found = filled.kspace.to_host().unwrap();
        let lines = textbook(&kspace, &sampled);
        assert!(!lines.is_empty());
        for (y, line) in lines {
            for (at, wanted) in line.into_iter().enumerate() {
                let v = found[[at / nx, y, at % nx]];
                assert!(
                    (C64::new(v.re.into(), v.im.into()) - wanted).norm() < 1e-3,
                    "{y} {at}: {v} {wanted}"
                );
            }
        }
        for (index, value) in kspace.indexed_iter().filter(|(i, _)| sampled[i[1]]) {
            assert_eq!(found[index], *value, "measured lines stay");
        }
    }
}

/// Relative error of k-space where lines were missing, after and before.
fn improvement(options: SimulateOptions) -> f64 {
    let device = Device::cpu_with_threads(2).unwrap();
    let grid = |options: &SimulateOptions| {
        let simulation = simulate(options, &Monitor::silent()).unwrap();
        let index = simulation.scan.frames().unwrap();
        let frame = index.assemble(Label::default(), &FrameOptions::default(), &mut vec![]).unwrap();
        let Samples::Cartesian { kspace, sampled } = frame.samples else { panic!("expected a grid") };
        (kspace, sampled)
    };
    let full = SimulateOptions { sampling: Sampling::Cartesian(CartesianPattern::Full), ..options.clone() };
    let (truth, _) = grid(&full);
    let (kspace, sampled) = grid(&options);
    let before = kspace.clone();
    let filled = grappa(&device, Array::from_host(&device, &kspace).unwrap(), &sampled, None).unwrap();
    let found = filled.kspace.to_host().unwrap();
    let distance =
        |a: &ArrayD<C32>| a.iter().zip(&truth).map(|(a, b)| f64::from((a - b).norm_sqr())).sum::<f64>();
    (distance(&found) / distance(&before)).sqrt()
}

#[test]
fn missing_lines_of_simulated_scans_are_found() {
    let uniform = |acceleration, calibration| {
        Sampling::Cartesian(CartesianPattern::Uniform { acceleration, calibration })
    };
    let plane = |r| SimulateOptions {
        matrix: [96, 96, 1],
        coils: 8,
        sampling: uniform([r, 1], 24),
        ..SimulateOptions::default()
    };
    let volume = SimulateOptions {
        dims: 3,
        matrix: [32, 36, 32],
        fov_mm: [220.0; 3],
        coils: 8,
        sampling: uniform([2, 2], 16),
        ..SimulateOptions::default()
    };
    for (options, bound) in [(plane(2), 0.2), (plane(3), 0.35), (volume, 0.6)] {
        let left = improvement(options.clone());
        println!("{:?} {:?}: {left:.3} of the error left", options.matrix, options.sampling);
        assert!(left < bound, "{:?}: {left}", options.sampling);
    }
}

#[test]
fn separate_calibration_serves_and_its_lack_is_refused() {
    let device = Device::cpu_with_threads(2).unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let mut random = |shape: &[usize]| {
        ArrayD::from_shape_simple_fn(IxDyn(shape), || C32::new(rng.random_range(-1.0..1.0), 0.5))
    };
    let full = random(&[2, 24, 20]);
    let sampled = ArrayD::from_shape_fn(IxDyn(&[24, 20]), |i| i[0] % 2 == 0);
    let mut thinned = full.clone();
    thinned.indexed_iter_mut().filter(|(i, _)| i[1] % 2 == 1).for_each(|(_, v)| *v = C32::ZERO);
    let array = || Array::from_host(&device, &thinned).unwrap();
    assert!(grappa(&device, array(), &sampled, None).is_err());
    let known = ArrayD::from_shape_fn(IxDyn(&[24, 20]), |i| (5..19).contains(&i[0]));
    let mut centre = full;
    centre.indexed_iter_mut().filter(|(i, _)| !known[[i[1], i[2]]]).for_each(|(_, v)| *v = C32::ZERO);
    let lines = Array::from_host(&device, &centre).unwrap();
    let filled = grappa(&device, array(), &sampled, Some((&lines, &known))).unwrap();
    assert!(filled.calibration >= 4 && filled.sampled.iter().all(|&s| s));
    // Calibration may cover the middle of the readout alone.
    let known =
        ArrayD::from_shape_fn(IxDyn(&[24, 20]), |i| (5..19).contains(&i[0]) && (4..16).contains(&i[1]));
    let mut middle = lines.to_host().unwrap();
    middle.indexed_iter_mut().filter(|(i, _)| !known[[i[1], i[2]]]).for_each(|(_, v)| *v = C32::ZERO);
    let lines = Array::from_host(&device, &middle).unwrap();
    let filled = grappa(&device, array(), &sampled, Some((&lines, &known))).unwrap();
    assert!(filled.calibration >= 4 && filled.sampled.iter().all(|&s| s));
    assert!(super::plan_filling(&device, &sampled, Some(&known), 2).is_some());
}
