//! The public functions of the histogram.

#![allow(clippy::unwrap_used, reason = "tests")]

use rayspin_device::{Array, Device};
use rayspin_primitives::histogram::input::Input;
use rayspin_primitives::histogram::{counts, reference, saturating};
use rayspin_tune::input::bits;

fn samples(n: usize, below: u64) -> Vec<u32> {
    (0..n as u64).map(|at| (bits(5, at) % below) as u32).collect()
}

#[test]
fn both_forms_are_exact_on_every_device() {
    for device in rayspin_emu::devices().unwrap() {
        // 70,000 bins are more than shared memory holds; sizes that no block divides; values beyond the last bin.
        for (n, bins, below) in [(0, 3, 1), (1, 1, 1), (20_011, 7, 9), (40_000, 1, 1), (3001, 70_000, 80_000)]
        {
            let host = samples(n, below);
            let want = reference::counts(&host, bins);
            let on_device = Array::from_vec(&device, &[n], host).unwrap();
            let mut wide = Array::zeros(&device, &[bins]).unwrap();
            wide.fill(u32::MAX).unwrap();
            counts(&on_device, &mut wide).unwrap();
            let found: Vec<u64> = wide.read().unwrap().iter().map(|&c| c.into()).collect();
            assert_eq!(found, want, "{n} {bins} on {}", device.describe());
            let mut narrow = Array::zeros(&device, &[bins]).unwrap();
            narrow.fill(0xaau8).unwrap();
            saturating(&on_device, &mut narrow).unwrap();
            let found: Vec<u64> = narrow.read().unwrap().iter().map(|&c| c.into()).collect();
            assert!(found.iter().zip(&want).all(|(&h, &want)| h == want.min(255)), "{n} {bins}");
        }
    }
}

#[test]
fn no_bins_and_two_devices_are_refused() {
    let (here, there) = (Device::cpu_with_threads(1).unwrap(), Device::cpu_with_threads(1).unwrap());
    let values = Array::from_vec(&here, &[2], vec![0, 1]).unwrap();
    let none = counts(&values, &mut Array::zeros(&here, &[0]).unwrap()).unwrap_err();
    assert!(none.to_string().contains("bins"), "{none}");
    let elsewhere = saturating(&values, &mut Array::zeros(&there, &[4]).unwrap()).unwrap_err();
    assert!(elsewhere.to_string().contains("one device"), "{elsewhere}");
    assert_eq!(Input::Walk.to_string(), "walk");
}
