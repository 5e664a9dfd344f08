use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayspin_core::C64;
use rayspin_device::Device;

use super::*;

const SHAPES: [&[usize]; 9] =
    [&[1], &[16], &[97], &[15, 64], &[33, 47], &[1, 37], &[64, 1], &[17, 4, 19], &[16, 33, 18]];

fn random(len: usize, seed: u64) -> Vec<C64> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut one = || f64::from(rng.random_range(-1.0f32..1.0));
    (0..len).map(|_| C64::new(one(), one())).collect()
}

fn apart(a: &[C64], b: &[C64]) -> f64 {
    let size: f64 = b.iter().map(C64::norm_sqr).sum();
    (a.iter().zip(b).map(|(a, b)| (a - b).norm_sqr()).sum::<f64>() / size).sqrt()
}

#[test]
fn every_variant_matches_the_matrices_and_its_inverse_is_the_transpose() {
    let device = Device::cpu_with_threads(2).unwrap();
    let cpu = device.cpu_side();
    for (seed, shape) in SHAPES.into_iter().enumerate() {
        for family in [Family::Haar, Family::Daubechies2] {
            let plan = Plan::new(shape, family).unwrap();
            let len = shape.iter().product();
            let x = random(len, seed as u64);
            for shift in [vec![0; shape.len()], shape.iter().map(|n| (n * 5).div_ceil(8) + 1).collect()] {
                for variant in variants::<f64>() {
                    let what = format!("{} {shape:?} {family:?} {shift:?}", variant.name);
                    let mut work = vec![C64::new(f64::NAN, 0.0); 3];
                    let nan = || vec![C64::new(f64::NAN, f64::NAN); len];
                    let (mut c, mut back, mut image) = (nan(), nan(), nan());
                    (variant.implementation.forward)(cpu, &plan, &shift, &x, &mut c, &mut work);
                    assert!(apart(&c, &reference::forward(&plan, &shift, &x)) < 1e-14, "{what}");
                    (variant.implementation.inverse)(cpu, &plan, &shift, &c, &mut back, &mut work);
                    assert!(apart(&back, &x) < 1e-14, "{what}");
                    (variant.implementation.inverse)(cpu, &plan, &shift, &x, &mut image, &mut work);
                    assert!(apart(&image, &reference::inverse(&plan, &shift, &x)) < 1e-14, "{what}");
                }
            }
        }
    }
}

#[test]
fn a_ramp_has_no_details_but_at_the_seam() {
    let device = Device::cpu_with_threads(1).unwrap();
    let n = 64;
    let wavelet = Wavelet::<f64>::new(&[n], Family::Daubechies2, None).unwrap();
    let ramp: Vec<_> = (0..n).map(|i| C64::new(i as f64, 1.0)).collect();
    let x = Array::from_vec(&device, &[n], ramp).unwrap();
    let mut c = Array::zeros(&device, &[n]).unwrap();
    wavelet.forward(&[0], &x, &mut c).unwrap();
    let finest = &c.cpu()[n / 2..];
    assert!(finest[..n / 2 - 1].iter().all(|c| c.norm() < 1e-12));
    assert!(finest[n / 2 - 1].norm() > 1.0);
}

#[test]
fn what_is_low_pass_along_every_axis_is_no_detail() {
    let details = Plan::new(&[33, 8], Family::Haar).unwrap().details::<f32>();
    // 33 → 16 low, 16 high, 1 left over; 16 → 8 low, 8 high.
    for (i, &d) in details.iter().enumerate() {
        let row = i / 8;
        assert_eq!(d, if (8..32).contains(&row) { 1.0 } else { 0.0 }, "row {row}");
    }
    let details = Plan::new(&[17, 16], Family::Haar).unwrap().details::<f32>();
    let at = |y: usize, x: usize| details[y * 16 + x];
    assert_eq!([at(0, 0), at(0, 8), at(8, 0), at(16, 0), at(16, 8)], [0.0, 1.0, 1.0, 0.0, 1.0]);
}

#[test]
fn mismatches_are_named() {
    let chosen = |levels| Plan::with_levels(&[64, 20], Family::Haar, Some(levels));
    let all = Plan::new(&[64, 20], Family::Haar).unwrap();
    assert_eq!(all.levels().len(), 3);
    assert_eq!(chosen(2).unwrap().levels(), &all.levels()[..2]);
    assert_eq!(chosen(3).unwrap(), all);
    assert!(chosen(0).is_err() && chosen(4).is_err());
    assert!(Plan::new(&[], Family::Haar).is_err());
    assert!(Plan::new(&[2, 2, 2, 2], Family::Haar).is_err());
    assert!(Plan::new(&[4, 0], Family::Haar).is_err());
    let device = Device::cpu_with_threads(1).unwrap();
    let wavelet = Wavelet::<f32>::new(&[16, 16], Family::Haar, None).unwrap();
    let x = Array::zeros(&device, &[16, 16]).unwrap();
    let mut c = Array::zeros(&device, &[16, 16]).unwrap();
    assert!(wavelet.forward(&[3], &x, &mut c).is_err());
    let mut c = Array::zeros(&device, &[16, 8]).unwrap();
    assert!(wavelet.forward(&[0, 0], &x, &mut c).is_err());
}
