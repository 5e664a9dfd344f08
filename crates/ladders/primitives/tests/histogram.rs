//! The public functions of the histogram.

#![allow(clippy::unwrap_used, reason = "tests")]

use rayspin_device::{Array, Device};
use rayspin_planes::histogram::input::Input;
use rayspin_planes::histogram::{Sample, counts, reference, saturating};
use rayspin_tune::input::bits;

/// `n` samples below `below`, or of the whole range of their type where that is less.
fn check<T: Sample>(device: &Device, of: fn(u64) -> T, n: usize, bins: usize, below: u64) {
    let host: Vec<T> = (0..n as u64).map(|at| of(bits(5, at) % below)).collect();
    let what = format!("{n} {} {bins} on {}", std::any::type_name::<T>(), device.describe());
    let mut want = vec![0u64; bins];
    for &v in &host {
        let v: u32 = v.into();
        want.get_mut(v as usize).into_iter().for_each(|count| *count += 1);
    }
    assert_eq!(reference::counts(&host, bins).unwrap(), want, "{what}");
    let on_device = Array::from_vec(device, &[n], host).unwrap();
    let mut wide = Array::zeros(device, &[bins]).unwrap();
    wide.fill(u32::MAX).unwrap();
    counts(&on_device, &mut wide).unwrap();
    let found: Vec<u64> = wide.read().unwrap().iter().map(|&c| c.into()).collect();
    assert_eq!(found, want, "{what}");
    let mut narrow = Array::zeros(device, &[bins]).unwrap();
    narrow.fill(0xaau8).unwrap();
    saturating(&on_device, &mut narrow).unwrap();
    let found: Vec<u64> = narrow.read().unwrap().iter().map(|&c| c.into()).collect();
    assert!(found.iter().zip(&want).all(|(&h, &want)| h == want.min(255)), "{what}");
}

#[test]
fn both_forms_are_exact_on_every_device() {
    for device in rayspin_emu::devices().unwrap() {
        // 70,000 bins are more than shared memory holds; sizes that no block divides; values beyond the last
        // bin.
        for (n, bins, below) in [(0, 3, 1), (1, 1, 1), (20_011, 7, 9), (40_000, 1, 1), (3001, 70_000, 80_000)]
        {
            check(&device, |v| v as u32, n, bins, below);
        }
    }
}

#[test]
fn narrow_samples_are_exact_on_every_device() {
    for device in rayspin_emu::devices().unwrap() {
        // The largest number of a type is a bin, the last bin, and beyond it.
        for (n, bins) in [(0, 3), (1, 1), (15, 256), (20_011, 257), (5003, 255), (4099, 7)] {
            check(&device, |v| v as u8, n, bins, 256);
        }
        for (n, bins, below) in
            [(7, 9, 9), (20_011, 300, 310), (5003, 65_536, 65_536), (4099, 65_535, 65_536)]
        {
            check(&device, |v| v as u16, n, bins, below);
        }
    }
}

#[test]
fn no_bins_and_two_devices_are_refused() {
    let (here, there) = (Device::cpu_with_threads(1).unwrap(), Device::cpu_with_threads(1).unwrap());
    let values = Array::from_vec(&here, &[2], vec![0u32, 1]).unwrap();
    let none = counts(&values, &mut Array::zeros(&here, &[0]).unwrap()).unwrap_err();
    assert!(none.to_string().contains("bins"), "{none}");
    let elsewhere = saturating(&values, &mut Array::zeros(&there, &[4]).unwrap()).unwrap_err();
    assert!(elsewhere.to_string().contains("one device"), "{elsewhere}");
    assert_eq!(Input::Walk.to_string(), "walk");
}
