#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayspin_core::C64;
use rayspin_device::Device;
use rayspin_emu::Coverage;

use super::*;
use crate::spectra;

/// Q of a random Hermitian operator: (A + Aᴴ)/2 with a strong part along one smooth vector per set, so that
/// its largest eigenvalues stand apart.
pub(super) fn correlation(problem: &Problem, seed: u64) -> Vec<C32> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut random = || C32::new(rng.random_range(-1.0..1.0), rng.random_range(-1.0..1.0));
    let (coils, lags) = (problem.coils, problem.lags());
    let raw: Vec<C32> = (0..coils * coils * lags).map(|_| random()).collect();
    let vectors: Vec<Vec<C32>> = (0..problem.sets).map(|_| (0..coils).map(|_| random()).collect()).collect();
    (0..raw.len())
        .map(|at| {
            let (i, j, lag) = (at / lags / coils, at / lags % coils, at % lags);
            let mirrored = raw[(j * coils + i) * lags + lags - 1 - lag].conj();
            let mut value = (raw[at] + mirrored) * (0.05 / (coils * lags) as f32);
            if lag == lags / 2 {
                for (set, v) in vectors.iter().enumerate() {
                    let norm: f32 = v.iter().map(|v| v.norm_sqr()).sum();
                    value += v[i] * v[j].conj() * ((0.9 - 0.2 * set as f32) / norm);
                }
            }
            value
        })
        .collect()
}

pub(super) fn phase(coils: usize) -> Vec<C32> {
    (0..coils).map(|j| C32::from_polar(1.0, j as f32)).collect()
}

pub(super) fn problems() -> Vec<Problem> {
    let problem = |coils, reach_zyx, shape_zyx: [usize; 3], sets| {
        let planes = [0, shape_zyx[0]];
        Problem { coils, reach_zyx, shape_zyx, planes, sets, crop: 0.3 }
    };
    vec![
        problem(1, [0, 0, 0], [1, 1, 1], 1),
        problem(2, [0, 1, 2], [1, 5, 7], 2),
        problem(3, [0, 5, 5], [1, 16, 13], 1),
        problem(8, [0, 2, 3], [1, 9, 20], 2),
        problem(5, [2, 1, 2], [5, 6, 11], 1),
        problem(33, [0, 1, 1], [1, 3, 4], 1),
        problem(4, [0, 1, 1], [1, 5, 3], 4),
    ]
}

#[test]
fn every_variant_agrees_with_the_oracle() {
    let devices = rayspin_emu::devices().unwrap();
    let mut coverage = Coverage::default();
    for (seed, problem) in problems().iter().enumerate() {
        let coils = problem.coils;
        let (q, phase) = (correlation(problem, seed as u64), phase(coils));
        let wanted = reference_maps(problem, &q, &phase);
        let [lz, ly, lx] = problem.reach_zyx.map(|h| 2 * h + 1);
        for device in &devices {
            let q = Array::from_slice(device, &[coils, coils, lz, ly, lx], &q).unwrap();
            let phase = Array::from_slice(device, &[coils], &phase).unwrap();
            let shape = [&[problem.sets, coils], &problem.shape_zyx[..]].concat();
            for variant in VARIANTS.iter().filter(|v| v.backend == device.kind()) {
                if let Some(why) = (variant.refuses)(problem) {
                    coverage.refused(device, variant.name, &why);
                    continue;
                }
                let mut found = Array::zeros(device, &shape).unwrap();
                found.fill(C32::new(f32::NAN, f32::NAN)).unwrap();
                (variant.implementation)(problem, &q, &phase, &mut found).unwrap();
                let norm: f64 = wanted.iter().map(|v| v.norm_sqr()).sum();
                let error: f64 = wanted
                    .iter()
                    .zip(found.to_vec().unwrap())
                    .map(|(w, f)| (w - rayspin_core::C64::new(f.re.into(), f.im.into())).norm_sqr())
                    .sum();
                let relative = (error / norm).sqrt();
                coverage.compared(device, variant.name, relative, variant.tolerance);
                assert!(relative <= variant.tolerance, "{} {problem:?}: {relative:e}", variant.name);
            }
        }
    }
    println!("ESPIRiT:\n{coverage}");
    for device in &devices {
        let rows = VARIANTS.iter().filter(|v| v.backend == device.kind()).map(|v| v.name);
        assert_eq!(coverage.left_out(device, rows), [""; 0]);
    }
}

#[test]
fn slabs_have_the_bits_of_the_whole() {
    for (number, problem) in problems().iter().enumerate() {
        let Problem { coils, shape_zyx: [nz, ny, nx], sets, .. } = *problem;
        let [lz, ly, lx] = problem.reach_zyx.map(|h| 2 * h + 1);
        for device in rayspin_emu::devices().unwrap() {
            let q = correlation(problem, 40 + number as u64);
            let q = Array::from_vec(&device, &[coils, coils, lz, ly, lx], q).unwrap();
            let along = Array::from_vec(&device, &[coils], phase(coils)).unwrap();
            let whole = maps(&q, &along, [nz, ny, nx], sets, 0.3).unwrap().to_vec().unwrap();
            for (first, planes) in [(0, 1), (1, 2), (2, 3), (0, nz)] {
                let found = slab(&q, &along, [nz, ny, nx], first..first + planes, sets, 0.3);
                if first + planes > nz {
                    assert!(found.is_err());
                    continue;
                }
                let wanted: Vec<C32> = (0..sets * coils)
                    .flat_map(|map| &whole[(map * nz + first) * ny * nx..][..planes * ny * nx])
                    .copied()
                    .collect();
                assert_eq!(found.unwrap().to_vec().unwrap(), wanted, "{problem:?}: {first}, {planes}");
            }
        }
    }
}

/// What the limit of the iteration leaves, for eigenvalues that are `apart` from the next ones: the worst of
/// some random matrices whose other eigenvalues are all the same.
#[test]
fn the_limit_of_the_iteration_leaves_a_small_residual() {
    let n = 8;
    for device in rayspin_emu::devices().unwrap() {
        for sets in [1, 2] {
            for apart in [1e-3, 0.01, 0.02, 0.03, 0.04, 0.06, 0.08, 0.1, 0.15, 0.2, 0.3, 0.5] {
                let mut worst = 0.0f64;
                for seed in 0..24 {
                    let basis = spectra::basis(n, seed);
                    let values: Vec<f64> = (0..n).map(|k| if k < sets { 1.0 } else { 1.0 - apart }).collect();
                    let matrix = spectra::matrix(&values, &basis);
                    let narrow = matrix.iter().map(|v| C32::new(v.re as f32, v.im as f32)).collect();
                    let q = Array::from_vec(&device, &[n, n, 1, 1, 1], narrow).unwrap();
                    let along = Array::from_vec(&device, &[n], phase(n)).unwrap();
                    let found = maps(&q, &along, [1, 1, 1], sets, 0.1).unwrap().to_vec().unwrap();
                    for map in found.chunks_exact(n) {
                        let map: Vec<C64> = map.iter().map(|v| C64::new(v.re.into(), v.im.into())).collect();
                        worst = worst.max(spectra::residual(&matrix, &map));
                    }
                }
                println!("ESPIRiT, {sets} sets, {apart} apart: {worst:.1e}  {}", device.describe());
                let allowed = if apart >= 0.3 { 1.2e-4 } else { 0.03 };
                assert!(worst <= allowed, "{sets} sets, {apart} apart on {}: {worst:e}", device.describe());
            }
        }
    }
}

#[test]
fn weights_rise_from_nothing_at_the_crop_to_one() {
    assert_eq!((weight(0.5, 0.8), weight(0.8, 0.8), weight(1.02, 0.8)), (0.0, 0.0, 1.0));
    assert!((weight(0.85, 0.8) - 0.5).abs() < 1e-12);
    for device in rayspin_emu::devices().unwrap() {
        let nothing = Array::<C32>::zeros(&device, &[3, 3, 1, 3, 3]).unwrap();
        let along = Array::from_vec(&device, &[3], phase(3)).unwrap();
        let silent = maps(&nothing, &along, [1, 4, 4], 2, 0.8).unwrap();
        assert!(silent.to_vec().unwrap().iter().all(|v| v.norm() == 0.0));
        assert!(maps(&nothing, &along, [1, 0, 4], 2, 0.8).unwrap().is_empty());
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let device = Device::cpu_with_threads(1).unwrap();
    let along = Array::from_vec(&device, &[2], phase(2)).unwrap();
    let array = |shape: &[usize]| Array::<C32>::zeros(&device, shape).unwrap();
    assert!(maps(&array(&[2, 2, 1, 4, 3]), &along, [1, 4, 4], 1, 0.8).is_err());
    assert!(maps(&array(&[2, 3, 1, 3, 3]), &along, [1, 4, 4], 1, 0.8).is_err());
    assert!(maps(&array(&[3, 3, 1, 3, 3]), &along, [1, 4, 4], 1, 0.8).is_err());
    assert!(maps(&array(&[2, 2, 1, 3, 3]), &along, [1, 4, 4], 3, 0.8).is_err());
    assert!(maps(&array(&[2, 2, 1, 3, 3]), &along, [1, 4, 4], 1, 1.0).is_err());
}
