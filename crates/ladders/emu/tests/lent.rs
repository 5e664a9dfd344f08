//! What `Array::lent` promises of memory that another library owns, on the CPU, the emulated GPU and the GPUs
//! of this machine.

#![allow(clippy::unwrap_used, reason = "a test's helpers fail the test")]
#![allow(unsafe_code)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rayspin_device::{Array, Backend, Cuda, Device, ForeignStream, Lent};
use rayspin_emu::{Emulator, Fault, Faulty};

/// Memory of a device that counts its drops.
struct Owner {
    _memory: Arc<Array<f32>>,
    drops: Arc<AtomicUsize>,
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.drops.fetch_add(1, Ordering::Relaxed);
    }
}

fn cuda(device: &Device) -> Option<&Cuda> {
    match device.backend() {
        Backend::Cuda(cuda) => Some(cuda),
        Backend::Cpu(_) => None,
    }
}

fn lender(device: &Device, values: &[f32]) -> (Arc<Array<f32>>, Arc<AtomicUsize>) {
    (Arc::new(Array::from_slice(device, &[values.len()], values).unwrap()), Arc::default())
}

fn lend(memory: &Arc<Array<f32>>, drops: &Arc<AtomicUsize>) -> Lent {
    Lent::new(memory.address(), Owner { _memory: memory.clone(), drops: drops.clone() })
}

#[test]
fn lent_memory_is_read_and_written_in_place_and_its_owner_kept() {
    for device in rayspin_emu::devices().unwrap() {
        let (memory, drops) = lender(&device, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        let used = cuda(&device).map(|cuda| cuda.memory_used().0);
        // SAFETY: the memory has six elements and lives as long as its owner; nothing reads it while the
        // array writes.
        let mut array = unsafe { Array::<f32>::lent(&device, &[2, 3], lend(&memory, &drops)).unwrap() };
        assert_eq!(array.address(), memory.address());
        assert_eq!(array.to_vec().unwrap(), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        assert_eq!(cuda(&device).map(|cuda| cuda.memory_used().0), used, "lent memory does not count");
        let other = Array::from_slice(&device, &[2, 3], &[7.0; 6]).unwrap();
        array.copy_from(&other).unwrap();
        array.set_part(5, &[9.0]).unwrap();
        let clone = array.try_clone().unwrap();
        assert_ne!(clone.address(), array.address());
        assert_eq!(drops.load(Ordering::Relaxed), 0);
        drop(array);
        assert_eq!(drops.load(Ordering::Relaxed), 1);
        assert_eq!(memory.to_vec().unwrap(), [7.0, 7.0, 7.0, 7.0, 7.0, 9.0]);
        assert_eq!(clone.to_vec().unwrap(), memory.to_vec().unwrap());
    }
}

#[test]
fn lent_memory_that_leaves_its_array_is_copied() {
    for device in rayspin_emu::devices().unwrap() {
        let (memory, drops) = lender(&device, &[1.0, 2.0]);
        for way in 0..3 {
            // SAFETY: as above; the array is only read.
            let array = unsafe { Array::<f32>::lent(&device, &[2], lend(&memory, &drops)).unwrap() };
            let values = match way {
                0 => array.into_vec().unwrap(),
                1 => array.into_host().unwrap().into_raw_vec_and_offset().0,
                _ => array.into_device(&device.host()).unwrap().into_vec().unwrap(),
            };
            assert_eq!(values, [1.0, 2.0]);
        }
        assert_eq!(drops.load(Ordering::Relaxed), 3);
        assert_eq!(memory.to_vec().unwrap(), [1.0, 2.0]);
    }
}

#[test]
fn lent_memory_on_a_stream_comes_back_after_the_work() {
    for device in rayspin_emu::devices().unwrap() {
        let (memory, drops) = lender(&device, &[1.0; 4]);
        // SAFETY: the legacy default stream always lives.
        let stream = unsafe { ForeignStream::new(0) };
        // SAFETY: as above.
        let mut array =
            unsafe { Array::<f32>::lent(&device, &[4], lend(&memory, &drops).on(stream)).unwrap() };
        array.fill(2.5).unwrap();
        drop(array);
        assert_eq!(drops.load(Ordering::Relaxed), 1);
        assert_eq!(memory.to_vec().unwrap(), [2.5; 4]);
    }
}

#[test]
fn addresses_that_do_not_suit_are_refused_and_the_owner_goes() {
    for device in rayspin_emu::devices().unwrap() {
        let (memory, drops) = lender(&device, &[1.0; 8]);
        for wrong in [0, memory.address() + 1] {
            let owner = Owner { _memory: memory.clone(), drops: drops.clone() };
            // SAFETY: no array is made of such an address.
            let refused = unsafe { Array::<f32>::lent(&device, &[4], Lent::new(wrong, owner)) };
            assert!(refused.unwrap_err().to_string().contains("multiple of"));
        }
        assert_eq!(drops.load(Ordering::Relaxed), 2);
        // Nothing is read where there are no elements, so any address will do.
        let owner = Owner { _memory: memory, drops: drops.clone() };
        // SAFETY: no elements.
        let empty = unsafe { Array::<f32>::lent(&device, &[0, 3], Lent::new(0, owner)).unwrap() };
        assert!(empty.is_empty());
        assert_eq!(drops.load(Ordering::Relaxed), 3);
    }
}

#[test]
fn memory_that_is_dropped_in_a_recording_is_given_back_after_it() {
    for device in rayspin_emu::devices().unwrap() {
        let Some(cuda) = cuda(&device) else { continue };
        let (memory, drops) = lender(&device, &[1.0; 4]);
        // SAFETY: as above.
        let array = unsafe { Array::<f32>::lent(&device, &[4], lend(&memory, &drops)).unwrap() };
        let recorded = cuda.record(|| {
            drop(array);
            assert_eq!(drops.load(Ordering::Relaxed), 0, "the recording may name the memory");
            Ok(())
        });
        recorded.unwrap_err();
        assert_eq!(drops.load(Ordering::Relaxed), 1);
        let refused = cuda.record(|| {
            // SAFETY: as above.
            unsafe { Array::<f32>::lent(&device, &[4], lend(&memory, &drops)) }.map(drop)
        });
        assert!(refused.unwrap_err().to_string().contains("recorded"));
    }
}

#[test]
fn arrays_of_one_stream_are_ordered_once_and_their_owners_stay() {
    let faulty = Arc::new(Faulty::new(Arc::new(Emulator::new().unwrap())));
    let device = Device::with_driver(faulty.clone(), Device::cpu().unwrap());
    // SAFETY: the emulated device has no streams of its own; it takes any.
    let [one, other] = [1, 2].map(|handle| unsafe { ForeignStream::new(handle) });
    for (streams, orders, owners_left) in [([one, one], 2, [0, 2]), ([one, other], 4, [1, 2])] {
        let (input, drops) = lender(&device, &[1.0; 4]);
        let (output, _) = lender(&device, &[0.0; 4]);
        let first = lend(&input, &drops).on(streams[0]);
        let second = lend(&output, &drops).on(streams[1]).beside(&first);
        faulty.set(Fault::Never);
        // SAFETY: both have four elements that nothing else uses.
        let mut to = unsafe { Array::<f32>::lent(&device, &[4], second).unwrap() };
        // SAFETY: as above.
        let from = unsafe { Array::<f32>::lent(&device, &[4], first).unwrap() };
        to.copy_from(&from).unwrap();
        drop(to);
        assert_eq!(drops.load(Ordering::Relaxed), owners_left[0]);
        drop(from);
        assert_eq!(drops.load(Ordering::Relaxed), owners_left[1]);
        assert_eq!(faulty.counts()["order_streams"], orders);
        assert_eq!(output.to_vec().unwrap(), [1.0; 4]);
    }
    // The second array is never made: nothing is left behind.
    let (input, drops) = lender(&device, &[1.0; 4]);
    let first = lend(&input, &drops).on(one);
    let second = lend(&input, &drops).on(one).beside(&first);
    // SAFETY: as above.
    drop(unsafe { Array::<f32>::lent(&device, &[4], first).unwrap() });
    assert_eq!(drops.load(Ordering::Relaxed), 0);
    drop(second);
    assert_eq!(drops.load(Ordering::Relaxed), 2);
}

#[test]
fn memory_that_a_gpu_uses_is_not_lent_to_another() {
    let devices =
        [(); 2].map(|()| Device::with_driver(Arc::new(Emulator::new().unwrap()), Device::cpu().unwrap()));
    let (input, drops) = lender(&devices[0], &[1.0; 4]);
    // SAFETY: as above.
    let stream = unsafe { ForeignStream::new(1) };
    let first = lend(&input, &drops).on(stream);
    let second = lend(&input, &drops).on(stream).beside(&first);
    // SAFETY: as above; the other device refuses the memory.
    let kept = unsafe { Array::<f32>::lent(&devices[0], &[4], first).unwrap() };
    // SAFETY: as above.
    let refused = unsafe { Array::<f32>::lent(&devices[1], &[4], second) };
    assert!(refused.unwrap_err().to_string().contains("another device's"));
    drop(kept);
    assert_eq!(drops.load(Ordering::Relaxed), 2);
}
