//! Asynchronous copies and variables of programs, on every device of this machine and on the emulator, which
//! does such copies as late as possible.

#![allow(clippy::unwrap_used, reason = "tests")]

mod trusted;

use std::sync::Arc;
use trusted::Trusted;

use rayspin_device::cuda::{Argument, Driver, Launch, Source, Stream};
use rayspin_device::{Array, Backend, Cuda, Device, HostCopy, Pinned};
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
    kernel.go(Launch::covering(n, 256), arguments).unwrap();
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
fn values_may_change_as_soon_as_an_upload_returns() {
    for device in devices().unwrap() {
        let mut sum = Array::<f32>::zeros(&device, &[70_001]).unwrap();
        let x = sum.try_clone().unwrap();
        // Short copies from pinned memory are the device's own business; beyond 64 KiB they are staged.
        for len in [1, 300, 16 << 10, (16 << 10) + 1] {
            let values = numbers(len, 3);
            let mut array = Array::<f32>::zeros(&device, &[len]).unwrap();
            let mut pinned = Pinned::new(&device, len).unwrap();
            type Put = fn(&mut Array<f32>, &[f32]);
            let ways: [(&str, Put); 4] = [
                ("set", |array, values| array.set(values).unwrap()),
                ("staged", |array, values| array.put(0, values, HostCopy::Staged).unwrap()),
                ("unstaged", |array, values| array.put(0, values, HostCopy::Unstaged).unwrap()),
                ("from_slice", |array, values| {
                    *array = Array::from_slice(array.device(), array.shape(), values).unwrap();
                }),
            ];
            for (way, put) in ways {
                let lent = pinned.values().unwrap();
                lent.copy_from_slice(&values);
                // The copy comes after this, which takes a while.
                add(&device, &x, &mut sum);
                put(&mut array, lent);
                lent.fill(-1.0);
                assert_eq!(array.to_vec().unwrap(), values, "{way}, {len} on {}", device.describe());
                array.fill(0.0).unwrap();
            }
        }
        let Some(cuda) = cuda(&device) else { continue };
        let mut pinned = Pinned::<u8>::new(&device, 4).unwrap();
        let bytes = pinned.values().unwrap();
        bytes.copy_from_slice(&7.0f32.to_ne_bytes());
        add(&device, &x, &mut sum);
        cuda.set_variable(&SOURCE, &[], "table", bytes).unwrap();
        bytes.fill(0);
        let mut table = Array::<f32>::zeros(&device, &[1]).unwrap();
        let arguments = &mut [table.cuda_mut().into(), Argument::from(0u32), Argument::count(1).unwrap()];
        cuda.kernel(&SOURCE, &[], "look").unwrap().go(Launch::linear(1, 1), arguments).unwrap();
        assert_eq!(table.to_vec().unwrap(), [7.0], "{}", device.describe());
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
        let ticket = driver.upload_async(there, here, 4).unwrap();
        driver.download(there, &mut seen).unwrap();
        assert_eq!(seen, [0xFF; 4]);
        ticket.join().unwrap();
        driver.download(there, &mut seen).unwrap();
        assert_eq!(seen, [1, 2, 3, 4]);
        let ticket = driver.download_async(there, here, 4).unwrap();
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
        let mut tables: Vec<_> = (0..4).map(|_| Array::<f32>::zeros(&device, &[len]).unwrap()).collect();
        let kernel = cuda.kernel(&SOURCE, &[], "look").unwrap();
        for (k, table) in tables.iter_mut().enumerate() {
            // The launch before has not been done when the variable is written.
            add(&device, &x, &mut slow);
            let values = numbers(len, 100 * k);
            if k % 2 == 0 {
                cuda.set_variable(&SOURCE, &[], "table", bytemuck::cast_slice(&values)).unwrap();
            } else {
                let there = Array::from_slice(&device, &[len], &values).unwrap();
                cuda.fill_variable(&SOURCE, &[], "table", there.cuda()).unwrap();
            }
            let arguments =
                &mut [table.cuda_mut().into(), Argument::from(0u32), Argument::count(len).unwrap()];
            kernel.go(Launch::covering(len, 128), arguments).unwrap();
        }
        for (k, table) in tables.iter().enumerate() {
            assert_eq!(table.to_vec().unwrap(), numbers(len, 100 * k), "{} {k}", device.describe());
        }
        let long = vec![0u8; 4 * len + 1];
        let refused = cuda.set_variable(&SOURCE, &[], "table", &long).unwrap_err().to_string();
        assert!(refused.contains("table") && refused.contains("4096 bytes"), "{refused}");
        assert!(cuda.set_variable(&SOURCE, &[], "tables", &[0]).is_err());
        let refused = cuda.fill_variable(&SOURCE, &[], "table", x.cuda()).unwrap_err().to_string();
        assert!(refused.contains("table") && refused.contains("4096 bytes"), "{refused}");
    }
}

#[test]
fn parts_are_copied_in_order_and_waited_for_when_they_are_looked_at() {
    for device in devices().unwrap() {
        for (len, part) in [(1, 1), (300, 7), (70_001, 4099)] {
            let values = numbers(len, 5);
            let (mut from, mut to) = (Pinned::new(&device, len).unwrap(), Pinned::new(&device, len).unwrap());
            from.values().unwrap().copy_from_slice(&values);
            to.values().unwrap().fill(-1.0);
            let mut sum = Array::<f32>::zeros(&device, &[len]).unwrap();
            let mut x = Array::<f32>::zeros(&device, &[len]).unwrap();
            for start in (0..len).step_by(part) {
                x.receive_part(start, &mut from, start..len.min(start + part)).unwrap();
            }
            add(&device, &x, &mut sum);
            for start in (0..len).step_by(part).rev() {
                sum.send_part(start, &mut to, start..len.min(start + part)).unwrap();
            }
            // After the copies, not before them.
            sum.fill(-3.0).unwrap();
            from.values().unwrap().fill(-2.0);
            assert_eq!(to.read().unwrap(), values, "{} {len}", device.describe());
            assert_eq!(to.values().unwrap(), values);

            // One value from and to other places.
            x.receive_part(len - 1, &mut from, 0..1).unwrap();
            x.send_part(len - 1, &mut to, 0..1).unwrap();
            assert_eq!(to.read().unwrap()[0], -2.0);
            for way in [HostCopy::Staged, HostCopy::Unstaged] {
                x.put(0, &values, way).unwrap();
                let mut back = vec![0.0; len / 2 + 1];
                x.get(len - back.len(), &mut back, way).unwrap();
                assert_eq!(back, values[len - back.len()..]);
                assert!(x.get(1, &mut vec![0.0; len], way).is_err());
                assert!(x.put(usize::MAX, &values, way).is_err());
            }
            assert!(x.receive_part(1, &mut from, 0..len).is_err());
            assert!(x.send_part(0, &mut to, 1..len + 1).is_err());
            let other = Device::cpu_with_threads(1).unwrap();
            assert!(x.receive_part(0, &mut Pinned::new(&other, len).unwrap(), 0..len).is_err());
        }
    }
}

#[test]
fn both_ways_at_once_and_work_between_copies() {
    for device in devices().unwrap() {
        let Some(cuda) = cuda(&device) else { continue };
        for (len, part) in [(1, 1), (300, 7), (70_001, 20_000), (70_001, usize::MAX)] {
            let pinned = |values: &[f32]| {
                let mut pinned = Pinned::new(&device, values.len()).unwrap();
                pinned.values().unwrap().copy_from_slice(values);
                pinned
            };
            let (a, b) = (numbers(len, 1), numbers(len, 2));
            let (mut from, mut into) = (pinned(&a), pinned(&vec![-1.0; len]));
            let mut to = Array::<f32>::zeros(&device, &[len]).unwrap();
            let mut source = Array::from_slice(&device, &[len], &b).unwrap();
            cuda.exchange(&mut to, &mut from, &source, &mut into, part).unwrap();
            source.fill(-1.0).unwrap();
            assert_eq!(to.to_vec().unwrap(), a, "{} {len}", device.describe());
            assert_eq!(into.read().unwrap(), b);

            // y + x, a part at a time.
            let kernel = cuda.kernel(&SOURCE, &[], "add").unwrap();
            let (mut y, mut sums) = (Array::<f32>::zeros(&device, &[len]).unwrap(), pinned(&vec![-1.0; len]));
            let mut offset = 0;
            let done = cuda.pipeline(&mut y, &mut from, &mut sums, part, |mut y| {
                let n = y.len();
                let x = source.cuda().part(offset, n).unwrap();
                offset += n;
                let arguments =
                    &mut [x.into(), y.reborrow().into(), Argument::count(n)?, Argument::from(1u32)];
                kernel.go(Launch::covering(n, 256), arguments)
            });
            done.unwrap();
            let expected: Vec<f32> = a.iter().map(|a| a - 1.0).collect();
            assert_eq!(sums.read().unwrap(), expected, "{} {len}", device.describe());
            assert_eq!((y.to_vec().unwrap(), offset), (expected, len));

            // Host memory that kernels read and write: into is b.
            let y = from.lend(|x| {
                let (x, n) = (x.view(), x.len());
                into.lend(|y| {
                    let arguments = &mut [x.into(), y.into(), Argument::count(n)?, Argument::from(1u32)];
                    kernel.go(Launch::covering(n, 256), arguments)
                })
            });
            y.unwrap();
            let expected: Vec<f32> = a.iter().zip(&b).map(|(a, b)| a + b).collect();
            assert_eq!(into.values().unwrap(), expected);
        }
    }
}

#[test]
fn parts_that_do_not_fit_or_fail_leave_nothing_under_way() {
    for device in devices().unwrap() {
        let ends =
            |len| (Pinned::<f32>::new(&device, len).unwrap(), Pinned::<f32>::new(&device, len).unwrap());
        let (mut from, mut to) = ends(10);
        let mut array = Array::<f32>::zeros(&device, &[10]).unwrap();
        let Some(cuda) = cuda(&device) else {
            assert!(from.lend(|_| Ok(())).is_err());
            continue;
        };
        let other = Array::<f32>::zeros(&device, &[9]).unwrap();
        assert!(cuda.exchange(&mut array, &mut from, &other, &mut to, 3).is_err());
        let other = Array::<f32>::zeros(&device, &[10]).unwrap();
        assert!(cuda.exchange(&mut array, &mut from, &other, &mut to, 0).is_err());
        let host = Device::cpu_with_threads(1).unwrap();
        let mut there = Array::<f32>::zeros(&host, &[10]).unwrap();
        let (mut out, mut back) = (Pinned::new(&host, 10).unwrap(), Pinned::new(&host, 10).unwrap());
        assert!(cuda.pipeline(&mut there, &mut out, &mut back, 3, |_| Ok(())).is_err());

        from.values().unwrap().fill(7.0);
        let mut parts = 0;
        let failed = cuda.pipeline(&mut array, &mut from, &mut to, 3, |_| {
            parts += 1;
            if parts == 2 { Err(rayspin_core::Error::Interrupted) } else { Ok(()) }
        });
        assert!(failed.is_err());
        // What was copied so far, and nothing that comes later.
        assert_eq!(array.to_vec().unwrap()[..7], [7.0, 7.0, 7.0, 7.0, 7.0, 7.0, 0.0]);
        array.fill(1.0).unwrap();
        assert_eq!(to.read().unwrap()[..3], [7.0; 3]);
        let refused = |result: rayspin_core::Result<()>| {
            assert!(result.unwrap_err().to_string().contains("while work is recorded"));
        };
        let recorded = |work: &mut dyn FnMut() -> rayspin_core::Result<()>| cuda.record(work).map(drop);
        refused(recorded(&mut || array.receive_part(0, &mut from, 0..10)));
        refused(recorded(&mut || array.send_part(0, &mut to, 0..10)));
        refused(recorded(&mut || cuda.exchange(&mut array, &mut from, &other, &mut to, 3)));
        refused(recorded(&mut || cuda.pipeline(&mut array, &mut from, &mut to, 3, |_| Ok(()))));
        refused(recorded(&mut || from.lend(|_| Ok(()))));
        device.synchronize().unwrap();
        assert_eq!(from.values().unwrap(), [7.0; 10]);
    }
}

#[test]
#[allow(unsafe_code)]
fn a_lane_that_is_not_waited_for_shows_on_the_emulator() {
    let driver = Emulator::new().unwrap();
    let (there, here) = (driver.allocate(4).unwrap(), driver.pin(4).unwrap());
    // SAFETY: both hold four bytes; nothing else uses them.
    unsafe {
        here.copy_from_nonoverlapping([1, 2, 3, 4].as_ptr(), 4);
        let mut seen = [0; 4];
        driver.queue_upload(Stream::Upload, there, here, 4).unwrap();
        driver.order_streams(Stream::Download, Stream::Work).unwrap();
        driver.download(there, &mut seen).unwrap();
        assert_eq!(seen, [0xFF; 4]);
        driver.order_streams(Stream::Upload, Stream::Work).unwrap();
        driver.download(there, &mut seen).unwrap();
        assert_eq!(seen, [1, 2, 3, 4]);
        driver.queue_download(Stream::Work, there, here, 4).unwrap();
        assert_eq!(here.cast::<[u8; 4]>().read(), [0xFF; 4]);
        driver.set_bytes(there, 9, 4).unwrap();
        driver.synchronize().unwrap();
        assert_eq!(here.cast::<[u8; 4]>().read(), [1, 2, 3, 4]);
        driver.queue_download(Stream::Download, there, here, 4).unwrap();
        driver.synchronize().unwrap();
        assert_eq!(here.cast::<[u8; 4]>().read(), [0xFF; 4]);
        driver.order_streams(Stream::Download, Stream::Work).unwrap();
        assert_eq!(here.cast::<[u8; 4]>().read(), [9; 4]);
        driver.unpin(here, 4);
        driver.free(there, 4);
    }
}
