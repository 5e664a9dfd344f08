//! Sums of operators of several devices obey the laws, are those of one device to rounding, and name the
//! device that fails.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::sync::Arc;

use ndarray::{ArrayD, IxDyn};
use rayspin_core::{C32, Error};
use rayspin_device::{Array, Device};
use rayspin_emu::{Emulator, Fault, Faulty};
use rayspin_linop::laws::check_positive;
use rayspin_linop::{AcrossDevices, CoilMaps, GridNormal, Identity, LinearOp, Op, random};

const SHAPE: [usize; 2] = [9, 14];

fn host() -> Device {
    Device::cpu_with_threads(1).unwrap()
}

fn card(ordinal: usize) -> (Arc<Faulty>, Device) {
    let driver = Arc::new(Faulty::numbered(Arc::new(Emulator::new().unwrap()), ordinal));
    (driver.clone(), Device::with_driver(driver, host()))
}

/// EᴴE of the coils `[coil, image…]` on a device.
fn normal(device: &Device, maps: &ArrayD<C32>) -> Op<C32> {
    let mask = ArrayD::from_shape_fn(IxDyn(&SHAPE), |i| i[0] % 2 == 0);
    let maps = CoilMaps::from(Array::from_host(device, maps).unwrap());
    Arc::new(GridNormal::new(device, mask.view(), Some(maps), None).unwrap())
}

/// Coils of several devices, as many of each.
fn across(devices: &[Device], maps: &ArrayD<C32>, counts: &[usize]) -> AcrossDevices<C32> {
    let mut first = 0;
    let parts = devices.iter().zip(counts).map(|(device, &count)| {
        let own = maps.slice_axis(ndarray::Axis(0), (first..first + count).into()).to_owned();
        first += count;
        (device.clone(), (count > 0).then(|| normal(device, &own)))
    });
    AcrossDevices::new(parts.collect()).unwrap()
}

#[test]
fn coils_of_several_devices_are_those_of_one() {
    let maps = random::<f32>(&host(), &[&[6], &SHAPE[..]].concat(), 1).unwrap().into_host().unwrap();
    let one = host();
    let whole = normal(&one, &maps);
    let wanted = whole.forward(&random(&one, &SHAPE, 2).unwrap()).unwrap().into_host().unwrap();
    let norm: f32 = wanted.iter().map(|v| v.norm_sqr()).sum();
    for counts in [&[3, 3][..], &[0, 6], &[2, 1, 3], &[0, 2, 2, 2]] {
        let processors: Vec<Device> = counts.iter().map(|_| host()).collect();
        let cards: Vec<Device> = (0..counts.len()).map(|k| card(k).1).collect();
        for devices in [processors, cards] {
            let op = across(&devices, &maps, counts);
            check_positive(&op, &devices[0], 3, 1e-5).unwrap();
            let x = random(&devices[0], &SHAPE, 2).unwrap();
            let found = op.forward(&x).unwrap().into_host().unwrap();
            let apart: f32 = found.iter().zip(&wanted).map(|(a, b)| (a - b).norm_sqr()).sum();
            assert!(apart.sqrt() < 1e-6 * norm.sqrt(), "{counts:?}");
            assert!((0..3).all(|_| op.forward(&x).unwrap().into_host().unwrap() == found), "{counts:?}");
        }
    }
}

#[test]
fn the_device_that_fails_is_named() {
    let maps = random::<f32>(&host(), &[&[6], &SHAPE[..]].concat(), 1).unwrap().into_host().unwrap();
    for broken in 0..3 {
        for number in [0, 3, 7] {
            let cards: Vec<_> = (0..3).map(card).collect();
            let devices: Vec<Device> = cards.iter().map(|card| card.1.clone()).collect();
            let op = across(&devices, &maps, &[2, 2, 2]);
            let x = random(&devices[0], &SHAPE, 2).unwrap();
            let mut y = op.forward(&x).unwrap();
            cards[broken].0.set(Fault::Call { number, sticky: true });
            let error = op.forward_into(&x, &mut y).unwrap_err();
            assert!(matches!(error, Error::Device { .. }), "{error}");
            assert!(error.to_string().contains(&format!("on cuda:{broken} (")), "{broken} {number}: {error}");
        }
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let identity = |n: usize| -> Option<Op<C32>> { Some(Arc::new(Identity::new(&[n]))) };
    let of = |parts: Vec<Option<Op<C32>>>| {
        AcrossDevices::new(parts.into_iter().map(|part| (host(), part)).collect())
    };
    assert!(of(vec![]).is_err() && of(vec![None]).is_err() && of(vec![None, None]).is_err());
    assert!(of(vec![identity(3), identity(4)]).is_err());
    assert!(of(vec![identity(3), None]).is_err());
    let op = of(vec![None, identity(3)]).unwrap();
    let elsewhere = random::<f32>(&host(), &[3], 1).unwrap();
    assert!(matches!(op.forward(&elsewhere), Err(Error::Value { .. })));
}
