//! The coils of one image on several devices: the image is that of one device to rounding, has the same bits
//! each time, takes the memory that was stated on each device, and a device that fails is named.

#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use std::sync::Arc;

use common::{alike, iterations};
use ndarray::ArrayD;
use rayspin_core::{C32, C64, Error, Monitor, Result};
use rayspin_device::cuda::Driver;
use rayspin_device::{Backend, Device};
use rayspin_emu::{Emulator, Fault, Faulty};
use rayspin_mri::basis::Basis;
use rayspin_mri::maps::{EspiritOptions, Sensitivities};
use rayspin_mri::prepare::{Compression, CompressionKind, VirtualCoils};
use rayspin_mri::recon::plan::{self, Planned};
use rayspin_mri::recon::{ReconOptions, ScanImage, Selection, reconstruct_frame, reconstruct_scan};
use rayspin_mri::scan::{Frame, FrameOptions};
use rayspin_mri::simulate::trajectory::{CartesianPattern, Sampling, SpokeAngles};
use rayspin_mri::simulate::{SimulateOptions, Simulation, simulate};

const GOLDEN: Sampling = Sampling::Radial { spokes: 15, angles: SpokeAngles::Golden };
const FULL: Sampling = Sampling::Cartesian(CartesianPattern::Full);

fn processors(count: usize) -> Vec<Device> {
    (0..count).map(|_| Device::cpu_with_threads(1).unwrap()).collect()
}

/// An emulated GPU that fails as asked.
fn card(ordinal: usize) -> (Arc<Faulty>, Device) {
    let driver = Arc::new(Faulty::numbered(Arc::new(Emulator::new().unwrap()), ordinal));
    (driver.clone(), Device::with_driver(driver, Device::cpu_with_threads(1).unwrap()))
}

fn cards(count: usize) -> (Vec<Arc<Faulty>>, Vec<Device>) {
    (0..count).map(card).unzip()
}

fn simulated(sampling: Sampling, matrix: [usize; 3], coils: usize, repetitions: usize) -> Simulation {
    let dims = if matrix[2] > 1 { 3 } else { 2 };
    let fov_mm = [220.0, 220.0, if dims == 3 { 220.0 } else { 5.0 }];
    let options =
        SimulateOptions { dims, matrix, fov_mm, coils, repetitions, sampling, ..SimulateOptions::default() };
    simulate(&options, &Monitor::silent()).unwrap()
}

fn frame(simulation: &Simulation) -> Frame {
    let index = simulation.scan.frames().unwrap();
    let label = index.labels().next().unwrap();
    let options = FrameOptions { times: true, ..FrameOptions::default() };
    index.assemble(label, &options, &mut Vec::new()).unwrap()
}

/// The coils of each image go to all devices, of which the first leads.
fn over(devices: &[Device], options: &ReconOptions) -> ReconOptions {
    let mut options = options.clone();
    options.run.beside = devices[1..].to_vec();
    options.run.coils_beside = true;
    options
}

fn image(devices: &[Device], frame: &Frame, options: &ReconOptions) -> Result<ScanImage> {
    let options = over(devices, options);
    reconstruct_frame(&devices[0], frame.clone(), Vec::new(), &options, &Monitor::silent())
}

fn scan(devices: &[Device], simulation: &Simulation, options: &ReconOptions) -> ScanImage {
    let (selection, frames) = (Selection::default(), FrameOptions::default());
    let options = over(devices, options);
    let monitor = Monitor::silent();
    reconstruct_scan(&devices[0], &simulation.scan, &selection, &frames, &options, &monitor).unwrap()
}

fn apart(a: &ArrayD<C32>, b: &ArrayD<C32>) -> f64 {
    let norm = |values: &mut dyn Iterator<Item = C32>| values.map(|v| f64::from(v.norm_sqr())).sum::<f64>();
    let difference = norm(&mut a.iter().zip(b).map(|(a, b)| a - b));
    (difference / norm(&mut b.iter().copied())).sqrt()
}

fn espirit(sets: usize) -> Option<Sensitivities> {
    Some(Sensitivities::Espirit(EspiritOptions { sets, ..EspiritOptions::default() }))
}

fn compressed(kind: CompressionKind) -> ReconOptions {
    let mut options = iterations(alike("cg-sense"), 5);
    options.prepare.compression = Some(Compression { coils: VirtualCoils::Count(4), kind });
    options
}

/// The image of several devices is that of one, and has its bits each time; so do λ's unit and the maps.
fn check(what: &str, frame: &Frame, options: &ReconOptions, lists: &[Vec<Device>]) {
    let one = image(&lists[0][..1], frame, options).unwrap();
    for devices in lists {
        let several = image(devices, frame, options).unwrap();
        let what = format!("{what} on {} of {}", devices.len(), devices[0].describe());
        let error = apart(several.image.data(), one.image.data());
        assert!(over(devices, options).shares(frame.coils()).is_some(), "{what}");
        assert!(error < 1e-5, "{what}: {error:e}");
        assert!(several.maps == one.maps, "{what}");
        assert_eq!(several.notes, one.notes, "{what}");
        for (found, expected) in several.solves.iter().zip(&one.solves) {
            assert!((found.eigenvalue / expected.eigenvalue - 1.0).abs() < 1e-5, "{what}");
            assert_eq!(found.residuals.len(), expected.residuals.len(), "{what}");
        }
        let again = image(devices, frame, options).unwrap();
        assert!(again.image.data() == several.image.data(), "{what}");
        // Maps that the result leaves out take another way to the devices.
        let unkept = ReconOptions { keep_maps: false, ..options.clone() };
        let unkept = image(devices, frame, &unkept).unwrap();
        assert!(unkept.maps.is_none() && unkept.image.data() == several.image.data(), "{what}");
    }
}

#[test]
fn one_image_on_several_devices_is_that_of_one() {
    let lists = [processors(2), processors(3)];
    let radial = frame(&simulated(GOLDEN, [20, 16, 1], 5, 1));
    let grid = frame(&simulated(FULL, [20, 16, 1], 5, 1));
    let volume = frame(&simulated(FULL, [8, 6, 8], 5, 1));
    for (method, count, frames) in
        [("cg-sense", 5, &[&radial, &grid, &volume][..]), ("tv", 6, &[&radial]), ("wavelet", 6, &[&grid])]
    {
        let options = iterations(alike(method), count);
        frames.iter().for_each(|frame| check(method, frame, &options, &lists));
    }
    // More devices than coils.
    check("few coils", &radial, &iterations(alike("cg-sense"), 3), &[processors(9)]);
}

#[test]
fn sets_of_maps_go_to_several_devices() {
    let lists = [processors(2), processors(3)];
    let options = ReconOptions { sensitivities: espirit(2), ..iterations(alike("cg-sense"), 3) };
    for sampling in [GOLDEN, FULL] {
        check("two sets of maps", &frame(&simulated(sampling, [20, 16, 1], 5, 1)), &options, &lists);
    }
}

#[test]
fn compressed_coils_go_to_several_devices() {
    let lists = [processors(2), processors(3)];
    let grid = frame(&simulated(FULL, [20, 16, 1], 5, 1));
    check("compressed", &grid, &compressed(CompressionKind::Svd), &lists);
    check("compressed along the readout", &grid, &compressed(CompressionKind::Geometric), &lists);
    let radial = frame(&simulated(GOLDEN, [20, 16, 1], 5, 1));
    check("compressed", &radial, &compressed(CompressionKind::Svd), &lists);
}

#[test]
fn given_maps_fields_and_bases_go_to_several_devices() {
    let lists = [processors(2), processors(3)];
    let options = iterations(alike("cg-sense"), 5);
    for sampling in [GOLDEN, FULL] {
        let frame = frame(&simulated(sampling, [20, 16, 1], 5, 1));
        let maps = image(&lists[0][..1], &frame, &options).unwrap().maps.unwrap();
        for maps in [maps.clone(), maps.insert_axis(ndarray::Axis(0))] {
            let maps = Some(Arc::new(maps));
            check("given maps", &frame, &ReconOptions { maps, ..options.clone() }, &lists);
        }
        let field = ArrayD::from_shape_fn(vec![16, 20], |i| (i[0] as f32 - 8.0) * 4.0);
        let field_map = Some(Arc::new(field));
        check("field map", &frame, &ReconOptions { field_map, ..options.clone() }, &lists);
    }
    let simulation = simulated(GOLDEN, [20, 16, 1], 5, 3);
    let basis = ndarray::Array2::from_shape_fn((3, 2), |(t, k)| C64::from((t as f64).powi(k as i32)));
    let options = ReconOptions { basis: Some(Arc::new(Basis::new(basis).unwrap())), ..options };
    let (one, two) = (scan(&lists[0][..1], &simulation, &options), scan(&lists[0], &simulation, &options));
    assert_eq!(one.image.data().shape(), [2, 1, 16, 20]);
    let error = apart(two.image.data(), one.image.data());
    assert!(error > 0.0 && error < 1e-5, "{error:e}");
}

#[test]
fn emulated_gpus_share_coils_in_the_memory_that_was_stated() {
    let radial = frame(&simulated(GOLDEN, [32, 28, 1], 6, 1));
    let grid = frame(&simulated(FULL, [32, 28, 1], 6, 1));
    let soft = ReconOptions { sensitivities: espirit(2), ..iterations(alike("cg-sense"), 2) };
    let mut by_coil = iterations(alike("cg-sense"), 2);
    by_coil.run.batch_sizes.coils = Some(1);
    // The maps of all coils are more than what their estimate takes.
    let wide = frame(&simulated(FULL, [96, 96, 1], 12, 1));
    let mut of_grid = ReconOptions { sensitivities: espirit(1), ..iterations(alike("cg-sense"), 2) };
    of_grid.run.batch_sizes.coils = Some(1);
    let mut alone = iterations(alike("tv"), 2);
    alone.run.batch_sizes.first = Some(0);
    let mut held = iterations(alike("cg-sense"), 2);
    held.run.batch_sizes.maps = Some(3);
    for (what, frame, options, count) in [
        ("radial", &radial, iterations(alike("cg-sense"), 2), 2),
        ("radial", &radial, iterations(alike("wavelet"), 8), 3),
        ("grid", &grid, iterations(alike("cg-sense"), 2), 3),
        ("coil by coil", &radial, by_coil.clone(), 2),
        ("coil by coil", &grid, by_coil, 2),
        ("the first solves alone", &radial, alone.clone(), 2),
        ("the first solves alone", &grid, alone, 3),
        ("maps of three coils at a time", &grid, held.clone(), 2),
        ("maps of three coils at a time", &radial, held, 2),
        ("maps of a grid, coil by coil", &wide, of_grid, 2),
        ("sets", &grid, soft.clone(), 2),
        ("sets", &radial, soft, 2),
    ] {
        for keep_maps in [true, false] {
            let options = ReconOptions { density_iterations: 1, keep_maps, ..options.clone() };
            takes_what_is_stated(&format!("{what}, maps kept: {keep_maps}"), frame, &options, count);
        }
    }
}

/// A run on emulated GPUs takes what its plan states, and makes the image of one.
fn takes_what_is_stated(what: &str, frame: &Frame, options: &ReconOptions, count: usize) {
    let (_, devices) = cards(count);
    let spread = over(&devices, options);
    let planned = Planned { count: 1, held: 0, assembled: false, coils: frame.coils() };
    let known = plan::Known::default();
    let budget = plan::of_frames(frame, &planned, &spread, &devices[0], &known).unwrap();
    let several = image(&devices, frame, options).unwrap();
    assert_eq!(budget.cards.len(), count);
    assert_eq!(Some(budget.gpu_peak()), budget.cards.iter().copied().max());
    for (index, (device, stated)) in devices.iter().zip(&budget.cards).enumerate() {
        let Backend::Cuda(cuda) = device.backend() else { unreachable!("the emulator is a CUDA device") };
        let (left, measured) = cuda.memory_used();
        assert_eq!(left, 0);
        let ratio = *stated as f64 / measured as f64;
        // The first one's peak may be its estimate of maps, which is stated with a margin. Several sets
        // of maps count twice: as they are, and by set.
        let most = if index == 0 || what.starts_with("sets") { 1.25 } else { 1.06 };
        assert!((0.97..most).contains(&ratio), "{what}, {index} of {count}: {stated} of {measured}");
    }
    let one = image(&cards(1).1, frame, options).unwrap();
    let error = apart(several.image.data(), one.image.data());
    assert!(error < 1e-5, "{what}: {error:e}");
}

#[test]
fn fewer_images_than_devices_share_them_one_after_another() {
    let simulation = simulated(GOLDEN, [20, 16, 1], 5, 2);
    let options = iterations(alike("cg-sense"), 4);
    let images = |devices: &[Device]| scan(devices, &simulation, &options);
    let (one, three, cards) = (images(&processors(1)), images(&processors(3)), images(&cards(3).1));
    assert_eq!(one.image.data().shape(), [2, 1, 16, 20]);
    assert!(apart(three.image.data(), one.image.data()) < 1e-5);
    assert!(apart(cards.image.data(), one.image.data()) < 1e-4);
    assert!(three.maps == one.maps);
}

#[test]
fn a_device_that_fails_in_an_iteration_is_named_and_leaves_no_image() {
    let frame = frame(&simulated(GOLDEN, [16, 16, 1], 4, 1));
    let options = iterations(alike("cg-sense"), 3);
    let (drivers, devices) = cards(3);
    drivers.iter().for_each(|driver| driver.set(Fault::Never));
    image(&devices, &frame, &options).unwrap();
    let calls: Vec<u64> = drivers.iter().map(|driver| driver.calls()).collect();
    assert!(calls.iter().all(|calls| *calls > 50), "{calls:?}");
    for (broken, calls) in calls.into_iter().enumerate() {
        for (case, number) in [0, calls / 4, calls / 2, calls - calls / 8, calls - 1].into_iter().enumerate()
        {
            let (drivers, devices) = cards(3);
            drivers[broken].set(Fault::Call { number, sticky: true });
            let options = ReconOptions { keep_maps: case % 2 == 0, ..options.clone() };
            let error = image(&devices, &frame, &options).unwrap_err();
            assert!(matches!(error, Error::Device { .. }), "{error}");
            let text = error.to_string();
            let named = text.contains(&format!("on cuda:{broken} ("));
            assert!(named && !text.contains('\n'), "{broken} at {number}: {text}");
        }
    }
    // The processor takes over where it may, and says which GPU failed.
    let mut options = options;
    options.run.finish_on_cpu = true;
    let (drivers, devices) = cards(2);
    drivers[1].set(Fault::Call { number: 60, sticky: true });
    let found = image(&devices, &frame, &options).unwrap();
    let one = image(&processors(1), &frame, &options).unwrap();
    assert!(found.image.data() == one.image.data());
    let said = |note: &String| note.contains("the GPU failed") && note.contains("on cuda:1 (");
    assert_eq!(found.notes.iter().filter(|note| said(note)).count(), 1, "{:?}", found.notes);
}

#[test]
fn memory_that_runs_out_on_any_device_makes_batches_smaller_or_is_named() {
    let frame = frame(&simulated(GOLDEN, [32, 28, 1], 6, 1));
    let options = ReconOptions { keep_maps: false, ..iterations(alike("cg-sense"), 2) };
    let (drivers, devices) = cards(2);
    let whole = image(&devices, &frame, &options).unwrap();
    let peak = |device: &Device| match device.backend() {
        Backend::Cuda(cuda) => cuda.memory_used().1,
        Backend::Cpu(_) => 0,
    };
    let peaks: Vec<u64> = devices.iter().map(peak).collect();
    for (driver, peak) in drivers.iter().zip(peaks) {
        // Another process holds the rest.
        driver.set(Fault::Memory { after: 0, bytes: peak - peak / 50 });
        let found = image(&devices, &frame, &options).unwrap();
        assert!(apart(found.image.data(), whole.image.data()) < 1e-5);
        // What transforms the coils of the second one takes fewer at a time by itself.
        let said = found.notes.iter().filter(|note| note.contains("GPU memory ran out")).count();
        assert!(said > 0 || driver.ordinal() == Some(1), "{:?}", found.notes);
        assert!(driver.failed().contains(&"allocate"));
        driver.set(Fault::Memory { after: 0, bytes: 1000 });
        let error = image(&devices, &frame, &options).unwrap_err();
        assert!(matches!(error, Error::Memory { .. }), "{error}");
        let place = format!(", on cuda:{} (", driver.ordinal().unwrap());
        assert!(error.to_string().contains(&place), "{error}");
        driver.set(Fault::Never);
    }
}
