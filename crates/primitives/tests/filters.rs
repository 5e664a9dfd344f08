//! The filters' public functions: the same values on every device, and what they refuse.

#![allow(clippy::unwrap_used, reason = "tests")]

use rayspin_core::ErrorKind;
use rayspin_device::{Array, Device};
use rayspin_primitives::{box_filter, sobel};
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
                box_filter::reference::pixel(&pixels, (rows, columns), radius, (rows - 1, columns / 2));
            let found = out.to_vec().unwrap()[(rows - 1) * columns + columns / 2];
            assert_eq!(f64::from(found), (mean + 0.5).floor(), "{} radius {radius}", device.describe());
        }
        let image = Array::<f32>::zeros(&device, &[2, 2]).unwrap();
        let mut out = Array::zeros(&device, &[2, 2]).unwrap();
        assert!(box_filter::box_mean(&image, box_filter::MOST + 1, &mut out).is_err());
    }
}
