#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayspin_device::Device;
use rayspin_emu::Coverage;

use super::*;

fn random(len: usize, seed: u64) -> Vec<C32> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    (0..len).map(|_| C32::new(rng.random_range(-1.0..1.0), rng.random_range(-1.0..1.0))).collect()
}

fn error(found: &[C64], wanted: &[C64]) -> f64 {
    let norm = |v: &mut dyn Iterator<Item = f64>| v.sum::<f64>().sqrt();
    let difference = norm(&mut found.iter().zip(wanted).map(|(f, w)| (f - w).norm_sqr()));
    difference / norm(&mut wanted.iter().map(|w| w.norm_sqr())).max(1e-300)
}

#[test]
fn every_variant_agrees_with_the_oracle() {
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let mut coverage = Coverage::default();
    for (seed, &(rows, columns)) in
        [(1, 1), (1, 5), (127, 16), (300, 17), (129, 33), (41, 65), (15, 131), (0, 3)].iter().enumerate()
    {
        let values = random(800, seed as u64);
        let listed: Vec<u32> = (0..rows).map(|_| rng.random_range(0..400)).collect();
        let columns: Vec<u32> = (0..columns).map(|_| rng.random_range(0..400)).collect();
        for device in crate::cuda::gpus() {
            let array = Array::from_slice(device, &[800], &values).unwrap();
            for variant in VARIANTS {
                let n = columns.len();
                let mut found =
                    Array::from_vec(device, &[n, n], vec![C64::new(f64::NAN, 0.0); n * n]).unwrap();
                let mut run = |rows, add| {
                    (variant.implementation)(&array, rows, &columns, &mut found, add).unwrap();
                    found.to_vec().unwrap()
                };
                let wanted = reference_gram(&values, &listed, &columns);
                let once = run(Rows::Listed(&listed), false);
                coverage.compared(device, variant.name, error(&once, &wanted), variant.tolerance);
                assert!(error(&once, &wanted) <= variant.tolerance, "{rows} x {n}");
                for a in 0..n {
                    assert_eq!(once[a * n + a].im, 0.0);
                    assert!((0..n).all(|b| once[a * n + b] == once[b * n + a].conj()));
                }
                assert!(run(Rows::Listed(&listed), false) == once);
                let first: Vec<u32> = (0..rows as u32).collect();
                let wanted: Vec<C64> = reference_gram(&values, &first, &columns)
                    .iter()
                    .zip(&wanted)
                    .map(|(a, b)| a + b)
                    .collect();
                assert!(error(&run(Rows::First(rows), true), &wanted) <= variant.tolerance, "{rows} x {n}");
            }
        }
    }
    println!("Gram matrices:\n{coverage}");
    for device in crate::cuda::gpus() {
        assert_eq!(coverage.left_out(device, VARIANTS.iter().map(|v| v.name)), [""; 0]);
    }
}

#[test]
fn what_lies_beyond_the_values_is_refused() {
    let device = &crate::cuda::gpus()[0];
    let values = Array::from_slice(device, &[6], &random(6, 1)).unwrap();
    let mut out = Array::zeros(device, &[2, 2]).unwrap();
    gram(&values, Rows::First(3), &[0, 3], &mut out, false).unwrap();
    assert!(gram(&values, Rows::First(3), &[0, 4], &mut out, false).is_err());
    assert!(gram(&values, Rows::Listed(&[0, 5]), &[0, 1], &mut out, false).is_err());
    assert!(gram(&values, Rows::First(3), &[0], &mut out, false).is_err());
    let cpu = Device::cpu_with_threads(1).unwrap();
    let values = Array::from_slice(&cpu, &[6], &random(6, 1)).unwrap();
    let mut out = Array::zeros(&cpu, &[2, 2]).unwrap();
    assert!(gram(&values, Rows::First(3), &[0, 3], &mut out, false).is_err());
}
