//! Memory whose copies or kernels cannot be waited for, because the device fails or work is recorded: it is
//! given back when it can be waited for, and not before. The emulator tells of memory that goes while it is
//! copied.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::sync::Arc;

use rayspin_core::Result;
use rayspin_device::cuda::{AddressMode, Driver, Filter, Sampling};
use rayspin_device::{Array, Backend, Cuda, Device, Pinned, Transfer};
use rayspin_emu::{Emulator, Fault, Faulty};

const LEN: usize = 1000;
const BYTES: u64 = 4 * LEN as u64;

/// A GPU that fails as asked.
struct Rig {
    emulator: Arc<Emulator>,
    driver: Arc<Faulty>,
    device: Device,
}

impl Rig {
    fn new() -> Self {
        let emulator = Arc::new(Emulator::new().unwrap());
        let driver = Arc::new(Faulty::new(emulator.clone()));
        let device = Device::with_driver(driver.clone(), Device::cpu_with_threads(1).unwrap());
        Self { emulator, driver, device }
    }

    fn cuda(&self) -> &Cuda {
        let Backend::Cuda(cuda) = self.device.backend() else { unreachable!() };
        cuda
    }

    /// Fails from now on, for good or at the next call only.
    fn fail(&self, sticky: bool) {
        self.driver.set(Fault::Call { number: 0, sticky });
    }

    /// Fails no more: nothing went while it was copied, and now all of it is given back.
    fn expect_settled(&self, what: &str) {
        self.driver.set(Fault::Never);
        self.emulator.synchronize().unwrap_or_else(|error| panic!("{what}: {error}"));
        self.device.synchronize().unwrap();
        assert_eq!(self.driver.used(), 0, "{what}");
        assert_eq!(self.cuda().memory_used().0, 0, "{what}");
        self.emulator.synchronize().unwrap_or_else(|error| panic!("{what}: {error}"));
    }

    fn ends(&self) -> (Array<f32>, Pinned<f32>) {
        (Array::zeros(&self.device, &[LEN]).unwrap(), Pinned::new(&self.device, LEN).unwrap())
    }

    fn begun(&self, upload: bool) -> Transfer<f32> {
        let (array, pinned) = self.ends();
        if upload { array.upload(pinned) } else { array.download(pinned) }.unwrap()
    }
}

fn finish(transfer: Transfer<f32>) -> Result<()> {
    transfer.finish().map(drop)
}

#[test]
fn the_ends_of_a_copy_that_cannot_be_joined_are_kept() {
    let rig = Rig::new();
    for upload in [false, true] {
        let what = format!("upload {upload}");
        let begun = rig.begun(upload);
        rig.fail(true);
        assert!(finish(begun).unwrap_err().to_string().contains("as asked"));
        assert_eq!(rig.driver.used(), BYTES, "{what}: under the copy");
        rig.expect_settled(&what);

        let begun = rig.begun(upload);
        rig.fail(true);
        drop(begun);
        assert_eq!(rig.driver.used(), BYTES, "{what}: under the copy");
        rig.expect_settled(&what);

        // What fails once can be joined when it is dropped.
        let begun = rig.begun(upload);
        rig.fail(false);
        finish(begun).unwrap_err();
        assert_eq!(rig.driver.used(), 0, "{what}");
        rig.expect_settled(&what);
    }
}

#[test]
fn pinned_memory_that_cannot_be_waited_for_is_kept() {
    let rig = Rig::new();
    for sticky in [false, true] {
        let (array, pinned) = rig.begun(false).finish().unwrap();
        let sent = array.send(Pinned::new(&rig.device, LEN).unwrap()).unwrap();
        drop(array);
        rig.fail(sticky);
        drop(pinned);
        drop(sent);
        rig.expect_settled(&format!("sticky {sticky}"));
    }
}

#[test]
fn lanes_that_cannot_be_joined_keep_both_ends() {
    let rig = Rig::new();
    // What the exchange gives, whether its values can be looked at then, and the calls that both took.
    let run = |fault: Fault| {
        let (mut to, mut from) = rig.ends();
        let (source, mut into) = rig.ends();
        rig.driver.set(fault);
        let done = rig.cuda().exchange(&mut to, &mut from, &source, &mut into, 300);
        let calls = rig.driver.calls();
        (done, into.read().map(drop), calls)
    };
    let (done, told, calls) = run(Fault::Never);
    done.and(told).unwrap();
    for number in 0..calls {
        for sticky in [false, true] {
            let (done, told, _) = run(Fault::Call { number, sticky });
            assert!(done.unwrap_err().to_string().contains("as asked"), "{number}");
            assert_eq!(told.is_err(), sticky, "{number}: values that are copied may not be looked at");
            rig.expect_settled(&format!("call {number}, sticky {sticky}"));
        }
    }
}

#[test]
fn what_goes_while_work_is_recorded_is_waited_for_afterwards() {
    let rig = Rig::new();
    let refused = |work: &mut dyn FnMut() -> Result<()>| {
        let error = rig.cuda().record(work).unwrap_err().to_string();
        assert!(error.contains("recorded"), "{error}");
        rig.expect_settled(&error);
    };
    for upload in [false, true] {
        let mut begun = Some(rig.begun(upload));
        refused(&mut || begun.take().map_or(Ok(()), finish));
        let mut begun = Some(rig.begun(upload));
        refused(&mut || {
            drop(begun.take());
            assert_eq!(rig.driver.used(), BYTES, "recorded work may name the array");
            Ok(())
        });
        let (_, pinned) = rig.begun(upload).finish().unwrap();
        let mut pinned = Some(pinned);
        refused(&mut || {
            drop(pinned.take());
            Ok(())
        });
    }
    refused(&mut || Pinned::<f32>::new(&rig.device, 1).map(drop));
}

#[test]
fn the_texels_of_a_texture_stay_while_kernels_may_read_them() {
    let rig = Rig::new();
    let sampling = Sampling { filter: Filter::Point, address_mode: AddressMode::Clamp, normalized: false };
    let values = Array::<f32>::zeros(&rig.device, &[LEN]).unwrap();
    let texture = || rig.cuda().texture(&values, sampling).unwrap();
    let free = || rig.emulator.free_memory().unwrap();
    let without = free();

    for sticky in [false, true] {
        let texture = texture();
        rig.fail(sticky);
        drop(texture);
        let left = if sticky { without - BYTES } else { without };
        assert_eq!((free(), rig.cuda().memory_used().0), (left, without - left + BYTES), "sticky {sticky}");
        rig.driver.set(Fault::Never);
        rig.device.synchronize().unwrap();
        assert_eq!((free(), rig.cuda().memory_used().0), (without, BYTES));
    }

    let mut texture = Some(texture());
    rig.driver.set(Fault::Never);
    let recorded = rig.cuda().record(|| {
        drop(texture.take());
        assert_eq!(free(), without - BYTES, "recorded work may name it");
        assert!(
            !rig.driver.counts().contains_key("synchronize"),
            "nothing is waited for while work is recorded"
        );
        Ok(())
    });
    assert!(recorded.unwrap_err().to_string().contains("recorded"));
    assert_eq!((free(), rig.cuda().memory_used().0), (without, BYTES));
}
