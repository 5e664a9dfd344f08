//! Runs on several GPUs, which are emulated: what goes to them, what their plan states, and what it fits.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::sync::Arc;

use ndarray::ArrayD;
use rayspin_core::{C32, Monitor};
use rayspin_device::{Backend, Device};
use rayspin_emu::{Emulator, Fault, Faulty};
use rayspin_job::asked::{Asked, Typed};
use rayspin_job::mri::{Beside, Finished, Input, Mri, Planned, Request};
use rayspin_job::{ComputeTarget, Error, Result};
use rayspin_mri::scan::Scan;
use rayspin_mri::simulate::trajectory::{Sampling, SpokeAngles};
use rayspin_mri::simulate::{SimulateOptions, simulate};
use rayspin_report::RunRecorder;
use rayspin_run::Value;

fn scan(coils: usize, repetitions: usize) -> Arc<Scan> {
    let sampling = Sampling::Radial { spokes: 24, angles: SpokeAngles::Golden };
    let matrix = [64, 64, 1];
    let options = SimulateOptions { matrix, coils, repetitions, sampling, ..SimulateOptions::default() };
    Arc::new(simulate(&options, &Monitor::silent()).unwrap().scan)
}

/// Smooth maps of six coils.
fn maps() -> ArrayD<C32> {
    ArrayD::from_shape_fn(vec![6, 1, 64, 64], |i| {
        let (y, x) = (i[2] as f32 / 64.0, i[3] as f32 / 64.0);
        C32::from_polar(1.0 / (1.0 + i[0] as f32 * x + y), i[0] as f32 * y)
    })
}

fn method(name: &str) -> Asked<Mri> {
    let mut asked = Asked::new(Some(name.to_owned()));
    if name != "gridding" {
        asked.insert("iterations", Typed::Value(Value::Count(2)));
    }
    asked
}

fn cards(count: usize) -> (Vec<Arc<Faulty>>, ComputeTarget) {
    let card = |ordinal| {
        let driver = Arc::new(Faulty::numbered(Arc::new(Emulator::new().unwrap()), ordinal));
        (driver.clone(), Device::with_driver(driver, Device::cpu_with_threads(1).unwrap()))
    };
    let (drivers, mut devices): (Vec<_>, Vec<_>) = (0..count).map(card).unzip();
    let beside = devices.split_off(1);
    let mut target = ComputeTarget::of(devices.swap_remove(0));
    target.beside = beside;
    (drivers, target)
}

/// GPUs whose arrays may take as many bytes.
fn limited(count: usize, bytes: u64) -> ComputeTarget {
    let mut target = cards(count).1;
    target.gpu_memory = Some(bytes);
    target
}

fn planned(scan: &Arc<Scan>, name: &str, target: ComputeTarget) -> Result<Planned<'static>> {
    // Given maps leave the solver, and what it takes, alone.
    let maps = (name == "tv").then(|| Beside::Array(Arc::new(maps())));
    let request = Request { method: method(name), maps, ..Request::of(Input::Scan(scan.clone())) };
    let recorder = RunRecorder::start("test", "1", [""; 0], "cpu", 1);
    request.begin(target, Monitor::silent(), recorder)?.read()?.choose()?.plan()
}

fn run(planned: Planned<'static>) -> Result<Finished<'static>> {
    planned.run::<Error>(&mut |_| Ok(()))
}

fn relative(found: &Finished<'_>, expected: &Finished<'_>) -> f64 {
    let energy = |values: &mut dyn Iterator<Item = C32>| values.map(|v| v.norm_sqr()).sum::<f32>();
    let data = |finished: &Finished<'_>| finished.image.as_ref().unwrap().data().clone();
    let (found, expected) = (data(found), data(expected));
    let apart = energy(&mut found.iter().zip(&expected).map(|(a, b)| a - b));
    f64::from(apart / energy(&mut expected.iter().copied())).sqrt()
}

#[test]
fn coils_or_images_go_to_gpus_and_the_plan_says_which() {
    let (one, three) = (scan(6, 1), scan(6, 3));
    let cut = |scan: &Arc<Scan>, name: &str, count: usize| {
        let planned = planned(scan, name, cards(count).1).unwrap();
        let told = planned
            .notes()
            .iter()
            .any(|note| note.starts_with("coils ") && note.contains("GPUs, which hold"));
        let idle = planned.notes().iter().any(|note| note.starts_with("one GPU computes"));
        (planned.cut(), planned.plan().budget.cards.len(), told, idle)
    };
    let (text, held, told, idle) = cut(&one, "cg-sense", 2);
    assert!(
        text.starts_with("1 image, coils 3 + 3 on 2 GPUs, which hold ") && text.contains("iB + "),
        "{text}"
    );
    assert_eq!((held, told, idle), (2, true, false));
    // One image of a method that goes coil by coil, and more images than GPUs.
    let (text, held, told, idle) = cut(&one, "gridding", 2);
    assert_eq!((text.as_str(), held, told, idle), ("1 image", 0, false, true));
    let (text, held, told, idle) = cut(&three, "cg-sense", 2);
    assert_eq!((text.as_str(), held, told, idle), ("3 images", 0, false, false));
    let (text, held, ..) = cut(&three, "cg-sense", 4);
    assert!(text.starts_with("3 images, coils 1 + 2 + 2 + 1 on 4 GPUs"), "{text}");
    assert_eq!(held, 4);
}

#[test]
fn an_image_that_one_gpu_has_no_memory_for_is_made_by_two() {
    let (scan, two) = (scan(6, 1), scan(6, 2));
    let whole = run(planned(&scan, "tv", cards(1).1).unwrap()).unwrap();
    let on_one = |bytes: u64| planned(&scan, "tv", limited(1, bytes));
    // The least that one GPU takes.
    let (mut least, mut most) = (0u64, 64 << 20);
    while most - least > 4096 {
        let middle = (least + most) / 2;
        match on_one(middle) {
            Ok(_) => most = middle,
            Err(Error::Gpu(_)) => least = middle,
            Err(error) => panic!("{error}"),
        }
    }
    let refused = on_one(least).err().unwrap().to_string();
    assert!(refused.starts_with("GPU memory: expected at least "), "{refused}");
    for (count, share) in [(2, 100), (2, 95)] {
        let bytes = least * share / 100;
        let target = limited(count, bytes);
        let devices: Vec<Device> = std::iter::once(&target.device).chain(&target.beside).cloned().collect();
        let planned = planned(&scan, "tv", target).unwrap();
        let (cut, stated) = (planned.cut(), planned.plan().budget.cards.clone());
        assert!(stated.iter().all(|stated| *stated <= bytes), "{cut}: {stated:?} of {bytes}");
        let finished = run(planned).unwrap();
        for (device, stated) in devices.iter().zip(stated) {
            let Backend::Cuda(cuda) = device.backend() else { unreachable!("an emulated GPU") };
            let measured = cuda.memory_used().1;
            assert!(
                measured <= bytes && measured <= stated * 103 / 100,
                "{cut}: {measured}, stated {stated}"
            );
        }
        assert!(relative(&finished, &whole) < 1e-4, "{cut}");
        let ran_out = finished.told.notes.iter().any(|note| note.contains("ran out"));
        assert!(!ran_out, "{:?}", finished.told.notes);
    }
    // Two GPUs take an image each, unless they have too little memory for that.
    let separate = planned(&two, "tv", limited(2, 64 << 20)).unwrap();
    assert_eq!(separate.cut(), "2 images");
    let shared = planned(&two, "tv", limited(2, least * 95 / 100)).unwrap();
    assert!(shared.cut().starts_with("2 images, coils 3 + 3 on 2 GPUs"), "{}", shared.cut());
    assert!(relative(&run(shared).unwrap(), &run(separate).unwrap()) < 1e-4);
}

#[test]
fn a_gpu_that_fails_ends_the_run_with_its_name() {
    let scan = scan(6, 1);
    let calls = {
        let (drivers, target) = cards(2);
        run(planned(&scan, "cg-sense", target).unwrap()).unwrap();
        drivers[1].calls()
    };
    for number in [calls / 2, calls - 3] {
        let (drivers, target) = cards(2);
        let planned = planned(&scan, "cg-sense", target).unwrap();
        drivers[1].set(Fault::Call { number, sticky: true });
        let text = run(planned).err().unwrap().to_string();
        assert!(text.contains("on cuda:1 (") && !text.contains('\n'), "{number}: {text}");
    }
}
