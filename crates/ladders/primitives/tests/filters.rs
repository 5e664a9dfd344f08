//! The filters' public functions: the same values on every device, and what they refuse.

#![allow(clippy::unwrap_used, reason = "tests")]

use rayspin_core::ErrorKind;
use rayspin_device::{Array, Device};
use rayspin_planes::{bicubic, box_filter, convolution};
use rayspin_primitives::sobel;
use rayspin_tune::input::bits;

fn devices() -> Vec<Device> {
    rayspin_emu::devices().unwrap()
}

fn bytes(seed: u64, len: usize) -> Vec<u8> {
    (0..len as u64).map(|at| bits(seed, at) as u8).collect()
}

#[test]
fn edges_are_those_of_the_oracle() {
    for device in devices() {
        for (rows, columns, scale) in [(1, 1, 1.0), (7, 33, 0.25), (20, 48, 1.0), (3, 260, 0.1)] {
            let pixels = bytes(1, rows * columns);
            let image = Array::from_slice(&device, &[rows, columns], &pixels).unwrap();
            let mut out = Array::zeros(&device, &[rows, columns]).unwrap();
            sobel::sobel(&image, scale, &mut out).unwrap();
            for (at, &found) in out.to_vec().unwrap().iter().enumerate() {
                let want = sobel::reference::pixel(&pixels, rows, columns, scale, at / columns, at % columns);
                assert_eq!(found, want, "{} {rows} x {columns} at {at}", device.describe());
            }
        }
    }
}

#[test]
fn edges_of_what_is_no_image_are_refused() {
    let device = Device::cpu_with_threads(1).unwrap();
    let of = |shape: &[usize]| Array::<u8>::zeros(&device, shape).unwrap();
    for (image, mut out, scale) in [
        (of(&[4, 4]), of(&[4, 5]), 1.0),
        (of(&[16]), of(&[16]), 1.0),
        (of(&[0, 4]), of(&[0, 4]), 1.0),
        (of(&[4, 4]), of(&[4, 4]), -1.0),
        (of(&[4, 4]), of(&[4, 4]), f32::NAN),
    ] {
        let error = sobel::sobel(&image, scale, &mut out).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Input, "{error}");
    }
}

#[test]
fn means_are_those_of_the_oracle_whatever_the_radius() {
    for device in devices() {
        for (rows, columns, radius) in [(1, 1, 5), (7, 33, 2), (4, 264, 100), (3, 2, 1500), (2, 2, 2100)] {
            let pixels = bytes(2, rows * columns);
            let image = Array::from_slice(&device, &[rows, columns], &pixels).unwrap();
            let mut out = Array::zeros(&device, &[rows, columns]).unwrap();
            box_filter::box_mean(&image, radius, &mut out).unwrap();
            let mean =
                box_filter::reference::pixel(&pixels, [rows, columns], radius, [rows - 1, columns / 2]);
            let found = out.to_vec().unwrap()[(rows - 1) * columns + columns / 2];
            assert_eq!(f64::from(found), (mean + 0.5).floor(), "{} radius {radius}", device.describe());
        }
        let image = Array::<f32>::zeros(&device, &[2, 2]).unwrap();
        let mut out = Array::zeros(&device, &[2, 2]).unwrap();
        assert!(box_filter::box_mean(&image, box_filter::MOST + 1, &mut out).is_err());
    }
}

#[test]
fn a_gaussian_of_a_point_is_its_taps_and_a_line_is_convolved() {
    let taps = convolution::gaussian_taps(1.2).unwrap();
    assert!((taps.iter().map(|&t| f64::from(t)).sum::<f64>() - 1.0).abs() < 1e-6);
    for device in devices() {
        let (rows, columns) = (23, 21);
        let mut point = vec![0.0f32; rows * columns];
        point[11 * columns + 10] = 1.0;
        let image = Array::from_vec(&device, &[rows, columns], point).unwrap();
        let mut out = Array::zeros(&device, &[rows, columns]).unwrap();
        convolution::gaussian(&image, 1.2, &mut out).unwrap();
        let found = out.to_vec().unwrap();
        for (j, a) in taps.iter().enumerate() {
            for (i, b) in taps.iter().enumerate() {
                let at = (11 + j - taps.len() / 2) * columns + 10 + i - taps.len() / 2;
                assert!((found[at] - a * b).abs() < 1e-7, "{}", device.describe());
            }
        }
        // Not symmetric, and longer than what registers hold: w[i] = i counted from the middle.
        let taps: Vec<f32> = (-15..=15).map(|i| i as f32).collect();
        let mut signal = vec![0.0f32; 50];
        signal[20] = 2.0;
        let signal = Array::from_vec(&device, &[50], signal).unwrap();
        let mut out = Array::zeros(&device, &[50]).unwrap();
        convolution::line(&signal, &taps, &mut out).unwrap();
        let found = out.to_vec().unwrap();
        assert_eq!(
            (found[20], found[35], found[5], found[36]),
            (0.0, 30.0, -30.0, 0.0),
            "{}",
            device.describe()
        );
        assert!(convolution::line(&signal, &taps[..4], &mut out).is_err());
        assert!(
            convolution::gaussian(&image, f64::NAN, &mut Array::zeros(&device, &[23, 21]).unwrap()).is_err()
        );
    }
}

#[test]
fn an_image_is_resampled_to_any_size_and_to_its_own_it_stays() {
    let kernel = bicubic::Kernel::Keys(-0.75);
    for device in devices() {
        let (rows, columns) = (9, 14);
        let pixels = bytes(5, rows * columns);
        let image = Array::from_slice(&device, &[rows, columns], &pixels).unwrap();
        let mut same = Array::zeros(&device, &[rows, columns]).unwrap();
        bicubic::resize(&image, kernel, &mut same).unwrap();
        assert_eq!(same.to_vec().unwrap(), pixels, "{}", device.describe());
        for to in [[1, 1], [4, 31], [40, 9]] {
            let mut out = Array::<u8>::zeros(&device, &to).unwrap();
            bicubic::resize(&image, kernel, &mut out).unwrap();
            for (at, &found) in out.to_vec().unwrap().iter().enumerate() {
                let want =
                    bicubic::reference::pixel(&pixels, [rows, columns], to, kernel, [at / to[1], at % to[1]]);
                assert!((f64::from(found) - want.clamp(0.0, 255.0)).abs() < 0.501, "{}", device.describe());
            }
        }
        let wrong = bicubic::resize(&image, bicubic::Kernel::Keys(f32::NAN), &mut same);
        assert_eq!(wrong.unwrap_err().kind(), ErrorKind::Input);
    }
}
