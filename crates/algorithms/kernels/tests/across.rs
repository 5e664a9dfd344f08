//! Sums and copies of vectors of several devices.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::sync::Arc;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayspin_core::{C32, Error};
use rayspin_device::{Array, Backend, Device};
use rayspin_emu::{Emulator, Fault, Faulty};

use rayspin_kernels::vector::{SumAcross, broadcast};

fn host() -> Device {
    Device::cpu_with_threads(1).unwrap()
}

fn card(ordinal: usize) -> (Arc<Faulty>, Device) {
    let driver = Arc::new(Faulty::numbered(Arc::new(Emulator::new().unwrap()), ordinal));
    (driver.clone(), Device::with_driver(driver, host()))
}

/// Lists of processors, of emulated GPUs, and of this machine's GPUs, on which one may be there twice.
fn lists() -> Vec<Vec<Device>> {
    let mut lists: Vec<Vec<Device>> = Vec::new();
    for count in 1..=5 {
        lists.push((0..count).map(|_| host()).collect());
    }
    lists.extend([2, 3].map(|count| (0..count).map(|k| card(k).1).collect()));
    let wanted = std::env::var("RAYSPIN_TEST_DEVICES").map_or(true, |list| list.contains("cuda"));
    let gpus = if wanted { rayspin_device::cuda::count().unwrap_or(0) } else { 0 };
    if gpus > 0 {
        let open = |k: usize| Device::cuda(k % gpus, host()).unwrap();
        lists.extend([2, 3, gpus.max(4)].map(|count| (0..count).map(open).collect()));
    }
    lists
}

fn random(rng: &mut ChaCha8Rng, len: usize) -> Vec<C32> {
    (0..len).map(|_| C32::new(rng.random_range(-1.0..1.0), rng.random_range(-1.0..1.0))).collect()
}

#[test]
fn sums_have_the_bits_of_adding_from_left_to_right() {
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    for devices in lists() {
        for len in [0, 1, 63, 64, 200, 5000] {
            let values: Vec<Vec<C32>> = devices.iter().map(|_| random(&mut rng, len)).collect();
            let sum: Vec<C32> = (0..len)
                .map(|i| values[1..].iter().fold(values[0][i], |sum, values| sum + values[i]))
                .collect();
            let arrays = || -> Vec<Array<C32>> {
                let each = devices.iter().zip(&values);
                each.map(|(device, values)| Array::from_slice(device, &[len], values).unwrap()).collect()
            };
            let mut across = SumAcross::new(&devices, len).unwrap();
            let (mut all, mut first) = (arrays(), arrays());
            across.to_all(&mut all.iter_mut().collect::<Vec<_>>()).unwrap();
            across.to_first(&mut first.iter_mut().collect::<Vec<_>>()).unwrap();
            let what = format!("{len} on {} of {}", devices.len(), devices[0].describe());
            assert!(all.iter().all(|array| array.to_vec().unwrap() == sum), "{what}");
            assert!(first[0].to_vec().unwrap() == sum, "{what}");
            let (x, others) = first.split_first_mut().unwrap();
            broadcast(x, &mut others.iter_mut().collect::<Vec<_>>()).unwrap();
            assert!(others.iter().all(|array| array.to_vec().unwrap() == sum), "{what}");
        }
    }
}

#[test]
fn memory_is_what_it_states() {
    for (count, len) in [(2, 1000), (3, 1000), (4, 64)] {
        let cards: Vec<_> = (0..count).map(|k| card(k).1).collect();
        let across = SumAcross::<C32>::new(&cards, len).unwrap();
        let used = cards.iter().map(|card| match card.backend() {
            Backend::Cuda(cuda) => cuda.memory_used().0,
            Backend::Cpu(_) => 0,
        });
        assert_eq!(used.max(), Some(SumAcross::<C32>::bytes(count, len)));
        drop(across);
    }
}

#[test]
fn a_device_that_fails_is_named_at_every_call() {
    let sum = |cards: &[(Arc<Faulty>, Device)]| {
        let devices: Vec<_> = cards.iter().map(|card| card.1.clone()).collect();
        let mut arrays: Vec<_> =
            devices.iter().map(|device| Array::from_slice(device, &[300], &[1.0f32; 300]).unwrap()).collect();
        let mut across = SumAcross::new(&devices, 300)?;
        cards.iter().for_each(|card| card.0.set(Fault::Never));
        across.to_all(&mut arrays.iter_mut().collect::<Vec<_>>())?;
        Ok::<_, Error>(cards.iter().map(|card| card.0.calls()).collect::<Vec<_>>())
    };
    let whole: Vec<_> = (0..3).map(card).collect();
    let calls = sum(&whole).unwrap();
    for broken in 0..3 {
        for number in 0..calls[broken] {
            let cards: Vec<_> = (0..3).map(card).collect();
            let devices: Vec<_> = cards.iter().map(|card| card.1.clone()).collect();
            let mut arrays: Vec<_> = devices
                .iter()
                .map(|device| Array::from_slice(device, &[300], &[1.0f32; 300]).unwrap())
                .collect();
            let mut across = SumAcross::new(&devices, 300).unwrap();
            cards[broken].0.set(Fault::Call { number, sticky: true });
            let error = across.to_all(&mut arrays.iter_mut().collect::<Vec<_>>()).unwrap_err();
            assert!(matches!(error, Error::Device { .. }), "{error}");
            let named = error.to_string().contains(&format!(", on cuda:{broken} "));
            assert!(named, "{broken} at {number}: {error}");
        }
    }
}

#[test]
fn other_lengths_and_devices_are_refused() {
    let devices = [host(), host()];
    let zeros = |k: usize, len: usize| Array::<f32>::zeros(&devices[k], &[len]).unwrap();
    let mut across = SumAcross::new(&devices, 4).unwrap();
    assert!(across.to_all(&mut [&mut zeros(0, 4)]).is_err());
    assert!(across.to_all(&mut [&mut zeros(0, 4), &mut zeros(1, 3)]).is_err());
    assert!(across.to_all(&mut [&mut zeros(1, 4), &mut zeros(0, 4)]).is_err());
    assert!(broadcast(&zeros(0, 4), &mut [&mut zeros(1, 5)]).is_err());
}
