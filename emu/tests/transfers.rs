//! Copies beside a device's work, and variables of programs: on every device of this machine and on the emulator, which does
//! such copies as late as it may.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::sync::Arc;

use rayspin_device::cuda::{Argument, Driver, Launch, Source};
use rayspin_device::{Array, Backend, Cuda, Device, Pinned};
use rayspin_emu::{Emulator, Fault, Faulty, devices};

static SOURCE: Source = Source {
    name: "transfers",
    files: &[(
        "transfers.cu",
        r#"
        __constant__ float table[1024];
        // Slow enough for a copy to overtake it: y ← y + x after many steps that change nothing.
        extern "C" __global__ void add(const float* x, float* y, unsigned n, unsigned steps) {
            unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
            if (i >= n) return;
            float v = x[i];
            for (unsigned s = 0; s < steps; s++) v = v * 1.0f + (v == -1e30f ? 1.0f : 0.0f);
            y[i] = y[i] + v;
        }
        extern "C" __global__ void look(float* y, unsigned first, unsigned n) {
            unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
            if (i < n) y[i] = table[first + i];
        }
        "#,
    )],
};

fn cuda(device: &Device) -> Option<&Cuda> {
    match device.backend() {
        Backend::Cuda(cuda) => Some(cuda),
        Backend::Cpu(_) => None,
    }
}

/// y ← y + x, as slowly as the device allows tests to be.
fn add(device: &Device, x: &Array<f32>, y: &mut Array<f32>) {
    let Some(cuda) = cuda(device) else {
        let x = x.to_vec().unwrap();
        return y.update(|y| y.iter_mut().zip(x).for_each(|(y, x)| *y += x)).unwrap();
    };
    let steps = if cuda.properties().name.contains("Emulated") { 1u32 } else { 20_000 };
    let kernel = cuda.kernel(&SOURCE, &[], "add").unwrap();
    let n = x.len();
    let arguments =
        &mut [x.cuda().into(), y.cuda_mut().into(), Argument::count(n).unwrap(), Argument::from(steps)];
    kernel.launch(Launch::covering(n, 256), arguments).unwrap();
}

fn numbers(len: usize, from: usize) -> Vec<f32> {
    (0..len).map(|i| ((i * 7 + from) % 1013) as f32).collect()
}

#[test]
fn copies_begin_after_earlier_work_and_later_work_waits_for_them() {
    for device in devices().unwrap() {
        for len in [1, 300, 70_001] {
            let sets: Vec<_> = (0..5).map(|k| numbers(len, 31 * k)).collect();
            let mut sum = Array::<f32>::zeros(&device, &[len]).unwrap();
            let mut x = Array::from_slice(&device, &[len], &sets[0]).unwrap();
            let mut pinned = Pinned::new(&device, len).unwrap();
            for set in &sets[1..] {
                add(&device, &x, &mut sum);
                // Waits for the copy out of it.
                pinned.values().unwrap().copy_from_slice(set);
                (x, pinned) = x.upload(pinned).unwrap().finish().unwrap();
            }
            add(&device, &x, &mut sum);
            let expected: Vec<f32> = (0..len).map(|i| sets.iter().map(|set| set[i]).sum()).collect();
            let begun = sum.download(pinned).unwrap();
            let (mut sum, mut pinned) = begun.finish().unwrap();
            // After the copy, not before it.
            sum.fill(-1.0).unwrap();
            assert_eq!(pinned.values().unwrap(), expected, "{} {len}", device.describe());
            assert!(sum.to_vec().unwrap().iter().all(|&v| v == -1.0));
        }
    }
}

#[test]
fn two_buffers_take_turns() {
    for device in devices().unwrap() {
        let (len, frames) = (4099, 6);
        let mut spare =
            Some((Array::<f32>::zeros(&device, &[len]).unwrap(), Pinned::new(&device, len).unwrap()));
        let mut coming = None;
        let mut sum = Array::<f32>::zeros(&device, &[len]).unwrap();
        let mut second =
            Some((Array::<f32>::zeros(&device, &[len]).unwrap(), Pinned::new(&device, len).unwrap()));
        for frame in 0..=frames {
            let next = (frame < frames).then(|| {
                let (array, mut pinned) = spare.take().or_else(|| second.take()).unwrap();
                pinned.values().unwrap().copy_from_slice(&numbers(len, frame));
                array.upload(pinned).unwrap()
            });
            if let Some(begun) = std::mem::replace(&mut coming, next) {
                let (array, pinned) = rayspin_device::Transfer::finish(begun).unwrap();
                add(&device, &array, &mut sum);
                spare = Some((array, pinned));
            }
        }
        let expected: Vec<f32> =
            (0..len).map(|i| (0..frames).map(|frame| numbers(len, frame)[i]).sum()).collect();
        assert_eq!(sum.to_vec().unwrap(), expected, "{}", device.describe());
    }
}

#[test]
fn what_does_not_fit_is_refused_and_what_is_dropped_is_given_back() {
    for device in devices().unwrap() {
        let array = || Array::<f32>::zeros(&device, &[10]).unwrap();
        assert!(array().upload(Pinned::new(&device, 9).unwrap()).is_err());
        assert!(array().download(Pinned::new(&device, 11).unwrap()).is_err());
        let other = Device::cpu_with_threads(1).unwrap();
        assert!(array().upload(Pinned::new(&other, 10).unwrap()).is_err());
        let begun = array().upload(Pinned::new(&device, 10).unwrap()).unwrap();
        drop(begun);
        let none = Array::<f32>::zeros(&device, &[0]).unwrap();
        let (none, mut nothing) = none.upload(Pinned::new(&device, 0).unwrap()).unwrap().finish().unwrap();
        assert!(none.is_empty() && nothing.values().unwrap().is_empty());
        device.synchronize().unwrap();
        if let Some(cuda) = cuda(&device) {
            let (array, pinned) = (array(), Pinned::new(&device, 10).unwrap());
            let refused = cuda.record(|| array.upload(pinned).map(drop)).err().unwrap().to_string();
            assert!(refused.contains("while work is recorded"), "{refused}");
            device.synchronize().unwrap();
        }
    }
}

#[test]
#[allow(unsafe_code)]
fn a_copy_that_is_not_waited_for_shows_on_the_emulator() {
    let driver = Emulator::new().unwrap();
    let (there, here) = (driver.allocate(4).unwrap(), driver.pin(4).unwrap());
    let mut seen = [0; 4];
    // SAFETY: both hold four bytes; nothing else uses them.
    unsafe {
        here.copy_from_nonoverlapping([1, 2, 3, 4].as_ptr(), 4);
        let ticket = driver.upload_beside(there, here, 4).unwrap();
        driver.download(there, &mut seen).unwrap();
        assert_eq!(seen, [0xFF; 4]);
        ticket.join().unwrap();
        driver.download(there, &mut seen).unwrap();
        assert_eq!(seen, [1, 2, 3, 4]);
        let ticket = driver.download_beside(there, here, 4).unwrap();
        assert_eq!(*here, 0xFF);
        ticket.wait().unwrap();
        assert_eq!(*here, 1);
        driver.unpin(here, 4);
        driver.free(there, 4);
    }
}

#[test]
fn a_failing_copy_is_told_and_nothing_hangs() {
    let host = Device::cpu_with_threads(1).unwrap();
    let driver = Arc::new(Faulty::new(Arc::new(Emulator::new().unwrap())));
    let device = Device::with_driver(driver.clone(), host);
    let run = || -> rayspin_core::Result<f32> {
        let mut pinned = Pinned::<f32>::new(&device, 5)?;
        pinned.values()?.fill(2.0);
        let (array, pinned) = Array::zeros(&device, &[5])?.upload(pinned)?.finish()?;
        let (_, mut pinned) = array.download(pinned)?.finish()?;
        Ok(pinned.values()?[4])
    };
    driver.set(Fault::Never);
    assert_eq!(run().unwrap(), 2.0);
    for number in 0..driver.calls() {
        for sticky in [false, true] {
            driver.set(Fault::Call { number, sticky });
            let error = run().unwrap_err().to_string();
            assert!(error.contains("as asked"), "{number}: {error}");
        }
    }
}

#[test]
fn a_variable_that_is_written_again_is_new_to_later_launches_only() {
    for device in devices().unwrap() {
        let Some(cuda) = cuda(&device) else { continue };
        let len = 1024;
        let mut slow = Array::<f32>::zeros(&device, &[70_001]).unwrap();
        let x = slow.try_clone().unwrap();
        let mut found: Vec<_> = (0..4).map(|_| Array::<f32>::zeros(&device, &[len]).unwrap()).collect();
        let kernel = cuda.kernel(&SOURCE, &[], "look").unwrap();
        for (k, found) in found.iter_mut().enumerate() {
            // The launch before has not been done when the variable is written.
            add(&device, &x, &mut slow);
            let values = numbers(len, 100 * k);
            cuda.set_variable(&SOURCE, &[], "table", bytemuck::cast_slice(&values)).unwrap();
            let arguments =
                &mut [found.cuda_mut().into(), Argument::from(0u32), Argument::count(len).unwrap()];
            kernel.launch(Launch::covering(len, 128), arguments).unwrap();
        }
        for (k, found) in found.iter().enumerate() {
            assert_eq!(found.to_vec().unwrap(), numbers(len, 100 * k), "{} {k}", device.describe());
        }
        let long = vec![0u8; 4 * len + 1];
        let refused = cuda.set_variable(&SOURCE, &[], "table", &long).unwrap_err().to_string();
        assert!(refused.contains("table") && refused.contains("4096 bytes"), "{refused}");
        assert!(cuda.set_variable(&SOURCE, &[], "tables", &[0]).is_err());
    }
}
