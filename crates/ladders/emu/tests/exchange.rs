//! Copies between the memories of several devices, in the order of their work.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::sync::Arc;

use rayspin_core::Error;
use rayspin_device::cuda::{Launch, Source};
use rayspin_device::{Array, Backend, Cuda, Device, Move, Side, cuda, exchange};
use rayspin_emu::{Emulator, Fault, Faulty};

static SOURCE: Source = Source {
    name: "exchange",
    files: &[(
        "exchange.cu",
        r#"
        // Slow enough for a copy that does not wait to read the old values.
        extern "C" __global__ void twice(float* y, unsigned n, unsigned steps) {
            unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
            if (i >= n) return;
            float v = y[i];
            for (unsigned s = 0; s < steps; s++) v = v * 1.0f + (v == -1e30f ? 1.0f : 0.0f);
            y[i] = 2.0f * v;
        }
        "#,
    )],
};

fn of(device: &Device) -> Option<&Cuda> {
    match device.backend() {
        Backend::Cuda(cuda) => Some(cuda),
        Backend::Cpu(_) => None,
    }
}

fn twice(y: &mut Array<f32>, steps: u32) {
    let device = y.device().clone();
    let Some(cuda) = of(&device) else {
        return y.update(|y| y.iter_mut().for_each(|y| *y *= 2.0)).unwrap();
    };
    let n = y.len();
    let kernel = cuda.kernel(&SOURCE, &[], "twice").unwrap();
    let arguments = &mut [y.cuda_mut().into(), (n as u32).into(), steps.into()];
    // SAFETY: the kernel touches the array's own elements.
    #[allow(unsafe_code)]
    unsafe { kernel.launch(Launch::covering(n, 256), arguments) }.unwrap();
}

fn host() -> Device {
    Device::cpu_with_threads(1).unwrap()
}

fn card(ordinal: usize) -> (Arc<Faulty>, Device) {
    let driver = Arc::new(Faulty::numbered(Arc::new(Emulator::new().unwrap()), ordinal));
    (driver.clone(), Device::with_driver(driver, host()))
}

/// Lists of devices: processors, emulated GPUs, both, and the GPUs of this machine. One GPU is there twice,
/// with two streams.
fn lists() -> Vec<(u32, Vec<Device>)> {
    let mut lists = vec![
        (1, vec![host(), host(), host()]),
        (1, vec![card(0).1, card(1).1, card(2).1]),
        (1, vec![card(0).1, host(), card(1).1]),
    ];
    let wanted = std::env::var("RAYSPIN_TEST_DEVICES").map_or(true, |list| list.contains("cuda"));
    let count = if wanted { cuda::count().unwrap_or(0) } else { 0 };
    if count > 0 {
        let open = |ordinal| Device::cuda(ordinal, host()).unwrap();
        lists.push((20_000, (0..count.max(3)).map(|k| open(k % count)).collect()));
    }
    lists
}

fn numbers(len: usize, from: usize) -> Vec<f32> {
    (0..len).map(|i| ((i * 7 + from) % 1013) as f32).collect()
}

#[test]
fn copies_wait_for_the_work_before_them_and_work_behind_them_waits() {
    for (steps, devices) in lists() {
        let (n, len) = (devices.len(), 70_000);
        let mut arrays: Vec<Array<f32>> =
            (0..n).map(|k| Array::from_vec(&devices[k], &[2 * len], numbers(2 * len, k)).unwrap()).collect();
        for _ in 0..3 {
            arrays.iter_mut().for_each(|array| twice(array, steps));
            let moves: Vec<Move> =
                (0..n).map(|k| Move { from: (k, 0), to: ((k + 1) % n, len), len }).collect();
            let before: Vec<_> = arrays.iter().map(|array| array.to_vec().unwrap()).collect();
            let mut sides: Vec<_> = arrays.iter_mut().map(Side::Written).collect();
            exchange(&mut sides, &moves).unwrap();
            arrays.iter_mut().for_each(|array| twice(array, steps));
            for (k, array) in arrays.iter().enumerate() {
                let found = array.to_vec().unwrap();
                let from = &before[(k + n - 1) % n];
                let own = before[k][..len].iter().chain(&from[..len]).map(|v| 2.0 * v);
                assert!(own.eq(found.iter().copied()), "{} of {n}", devices[k].describe());
            }
        }
    }
}

#[test]
fn no_wait_of_the_host_is_needed_between_work_and_copies() {
    for (steps, devices) in lists() {
        let len = 100_000;
        let mut first = Array::from_vec(&devices[0], &[len], numbers(len, 1)).unwrap();
        let mut second = Array::<f32>::zeros(&devices[1], &[len]).unwrap();
        for _ in 0..4 {
            twice(&mut first, steps);
            let there = Move { from: (0, 0), to: (1, 0), len };
            exchange(&mut [Side::Read(&first), Side::Written(&mut second)], &[there]).unwrap();
            twice(&mut second, steps);
            let back = Move { from: (1, 0), to: (0, 0), len };
            exchange(&mut [Side::Written(&mut first), Side::Read(&second)], &[back]).unwrap();
        }
        let expected = numbers(len, 1).into_iter().map(|v| 256.0 * v);
        assert!(expected.eq(first.to_vec().unwrap()), "{}", devices[0].describe());
    }
}

#[test]
fn moves_that_touch_what_another_writes_are_refused() {
    let devices = [host(), host()];
    let x = Array::from_vec(&devices[0], &[8], numbers(8, 0)).unwrap();
    let mut y = Array::<f32>::zeros(&devices[1], &[8]).unwrap();
    let go = |from: (usize, usize), to: (usize, usize), len| Move { from, to, len };
    for moves in [
        vec![go((0, 0), (1, 0), 5), go((0, 3), (1, 4), 4)],
        vec![go((0, 0), (1, 0), 5), go((1, 4), (1, 6), 2)],
        vec![go((1, 0), (1, 2), 4)],
        vec![go((0, 4), (1, 0), 5)],
        vec![go((0, 0), (1, usize::MAX), 2)],
        vec![go((1, 0), (0, 0), 5)],
        vec![go((0, 0), (2, 0), 5)],
    ] {
        let found = exchange(&mut [Side::Read(&x), Side::Written(&mut y)], &moves);
        assert!(matches!(found, Err(Error::Value { .. })), "{moves:?}: {found:?}");
        assert!(y.to_vec().unwrap().iter().all(|v| *v == 0.0), "{moves:?}");
    }
    let apart = [go((0, 0), (1, 0), 3), go((0, 0), (1, 3), 3), go((1, 7), (1, 6), 1)];
    exchange(&mut [Side::Read(&x), Side::Written(&mut y)], &apart).unwrap();
    assert_eq!(y.to_vec().unwrap()[..6], [0.0, 7.0, 14.0, 0.0, 7.0, 14.0]);
}

#[test]
fn the_device_that_fails_is_named() {
    for broken in 0..2 {
        for number in 0..12 {
            let cards = [card(4), card(7)];
            let x = Array::from_vec(&cards[0].1, &[8], numbers(8, 0)).unwrap();
            let mut y = Array::<f32>::zeros(&cards[1].1, &[8]).unwrap();
            cards[broken].0.set(Fault::Call { number, sticky: true });
            let step = Move { from: (0, 0), to: (1, 0), len: 8 };
            match exchange(&mut [Side::Read(&x), Side::Written(&mut y)], &[step]) {
                // The copy takes fewer calls.
                Ok(()) => assert!(number > 2, "{number}"),
                Err(error @ Error::Device { .. }) => {
                    let name = ["cuda:4", "cuda:7"][broken];
                    assert!(error.to_string().contains(name), "{broken} at {number}: {error}");
                }
                Err(error) => panic!("{error}"),
            }
        }
    }
}

#[test]
fn a_kernel_takes_no_array_of_another_device() {
    let cards = [card(0), card(1)];
    let mut there = Array::from_vec(&cards[1].1, &[8], numbers(8, 0)).unwrap();
    let kernel = of(&cards[0].1).unwrap().kernel(&SOURCE, &[], "twice").unwrap();
    let arguments = &mut [there.cuda_mut().into(), 8u32.into(), 1u32.into()];
    // SAFETY: the launch is refused.
    #[allow(unsafe_code)]
    let found = unsafe { kernel.launch(Launch::covering(8, 32), arguments) };
    assert!(found.is_err_and(|error| error.to_string().contains("GPU")));
}
