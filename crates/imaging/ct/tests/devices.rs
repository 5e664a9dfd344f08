//! A volume of several devices: it is that of one to rounding, has the same bits each time, takes the memory
//! that was stated on each device, and a device that fails is named.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::sync::Arc;

use ndarray::Array3;
use rayspin_core::{Detector, Error, Monitor, Orbit, ProjectionGeometry, Result, VolumeGrid};
use rayspin_ct::analytic::Extend;
use rayspin_ct::methods::{Cgls, Fbp, Fdk, Fourier, Method, Mlem, OsSart, Sirt, TotalVariation};
use rayspin_ct::recon::{BatchSizes, ReconOptions, Reconstruction, budget, reconstruct};
use rayspin_device::cuda::Driver;
use rayspin_device::{Backend, BackendKind, Device};
use rayspin_emu::{Emulator, Fault, Faulty};
use rayspin_run::Certify;

fn processors(count: usize) -> Vec<Device> {
    (0..count).map(|_| Device::cpu_with_threads(1).unwrap()).collect()
}

fn cards(count: usize) -> (Vec<Arc<Faulty>>, Vec<Device>) {
    let card = |ordinal| {
        let driver = Arc::new(Faulty::numbered(Arc::new(Emulator::new().unwrap()), ordinal));
        (driver.clone(), Device::with_driver(driver, Device::cpu_with_threads(1).unwrap()))
    };
    (0..count).map(card).unzip()
}

/// Processors, emulated GPUs, and this machine's GPU, where there is one, opened several times.
fn groups() -> Vec<Vec<Device>> {
    let open = |count: usize| {
        let host = || Device::cpu_with_threads(1).unwrap();
        (0..count).map(|_| Device::cuda(0, host()).ok()).collect::<Option<Vec<_>>>()
    };
    let own = [2, 3].into_iter().filter_map(open);
    [processors(2), processors(3), cards(2).1, cards(3).1].into_iter().chain(own).collect()
}

/// Line integrals of odd sizes through something that fills the field of view.
fn scan(shape: [usize; 3], source: Option<f64>, offset: f64) -> (Array3<f32>, ProjectionGeometry) {
    let [views, rows, columns] = shape;
    let detector = Detector { rows, columns, pitch_mm: [2.0, 2.5], radius_mm: None };
    let orbit = Orbit {
        source_to_axis_mm: source,
        axis_to_detector_mm: if source.is_some() { 50.0 } else { 0.0 },
        offset_mm: [offset, 0.0],
        ..Orbit::default()
    };
    let geometry = ProjectionGeometry::orbit(detector, &orbit.turn(views)).unwrap();
    let lines = Array3::from_shape_fn(shape, |(view, row, column)| {
        let [y, x] = [row as f32 / rows as f32 - 0.4, column as f32 / columns as f32 - 0.55];
        (1.0 - 2.0 * (x * x + y * y)) * (1.0 + 0.1 * ((3 * view + 5 * row + 7 * column) % 11) as f32)
    });
    (lines, geometry)
}

fn options(method: impl Method + 'static, shape: [usize; 3]) -> ReconOptions {
    let grid = VolumeGrid::new(shape, [1.3, 1.2, 1.1], [0.4, -0.7, 0.9]).unwrap();
    ReconOptions { certify: Some(Certify { outputs: 200, seed: 1 }), ..ReconOptions::new(method, grid) }
}

fn made(
    devices: &[Device],
    (lines, geometry): &(Array3<f32>, ProjectionGeometry),
    options: &ReconOptions,
) -> Result<Reconstruction> {
    let options = ReconOptions { beside: devices[1..].to_vec(), ..options.clone() };
    reconstruct(&devices[0], lines.clone(), geometry, &options, &Monitor::silent())
}

/// The largest difference, in parts of the largest value.
fn apart(found: &Array3<f32>, expected: &Array3<f32>) -> f32 {
    let most = |volume: &Array3<f32>| volume.iter().fold(0.0f32, |most, value| most.max(value.abs()));
    most(&(found - expected)) / most(expected)
}

/// Checks a volume against that of one device, and that it has the same bits again. The transpose of a
/// projection to few slices adds in any order on a GPU, so iterations there agree to rounding.
fn check(
    what: &str,
    devices: &[Device],
    scan: &(Array3<f32>, ProjectionGeometry),
    options: &ReconOptions,
    most: f32,
) {
    let one = made(&devices[..1], scan, options).unwrap();
    let several = made(devices, scan, options).unwrap();
    let what = format!("{what} on {} of {}", devices.len(), devices[0].describe());
    let error = apart(&several.volume, &one.volume);
    assert!(error <= most, "{what}: {error:e}");
    assert_eq!(several.notes, one.notes, "{what}");
    assert!(several.certificates.len() == 1 && several.certificates[0].met(), "{what}");
    assert_eq!(several.certificates[0].outputs, one.certificates[0].outputs, "{what}");
    let steps = |made: &Reconstruction| made.solve.as_ref().map(|solve| solve.residuals.len());
    assert_eq!(steps(&several), steps(&one), "{what}");
    let again = made(devices, scan, options).unwrap();
    let any_order = devices[0].kind() == BackendKind::Cuda && one.solve.is_some();
    let error = apart(&again.volume, &several.volume);
    assert!(error <= if any_order { most } else { 0.0 }, "{what}: {error:e} from run to run");
}

#[test]
fn slabs_of_several_devices_are_the_volume_of_one() {
    let cone = scan([19, 23, 31], Some(90.0), 0.0);
    let shifted = scan([20, 14, 30], Some(90.0), 9.0);
    let parallel = scan([13, 9, 25], None, 0.0);
    let fan = scan([17, 1, 33], Some(80.0), 0.0);
    let edge = Fdk { extend: Extend::Edge, ..Fdk::default() };
    for devices in groups() {
        check("cone", &devices, &cone, &options(Fdk::default(), [11, 13, 12]), 2e-6);
        check("rows that go on", &devices, &cone, &options(edge.clone(), [11, 13, 12]), 2e-6);
        check("shifted detector", &devices, &shifted, &options(Fdk::default(), [7, 9, 10]), 2e-6);
        check("parallel", &devices, &parallel, &options(Fbp::default(), [8, 11, 9]), 2e-6);
        // A slab of one slice each, and slices that no row sees.
        check("a slice each", &devices, &cone, &options(Fdk::default(), [devices.len(), 9, 8]), 2e-6);
        check("fan", &devices, &fan, &options(Fbp::default(), [5, 9, 8]), 2e-6);
        for (slices, views) in [(Some(2), None), (None, Some(7)), (Some(1), Some(4))] {
            let batch_sizes = BatchSizes { slices, views };
            let cut = ReconOptions { batch_sizes, ..options(Fdk::default(), [9, 8, 7]) };
            check("in batches", &devices, &cone, &cut, 2e-6);
        }
    }
    // Fewer slices than devices: the others do nothing.
    let few = options(Fdk::default(), [2, 9, 8]);
    let four = ReconOptions { beside: processors(3), ..few.clone() };
    assert_eq!(four.shares(&cone.1).unwrap().1, [1, 1]);
    check("fewer slices", &processors(4), &cone, &few, 2e-6);
    let single = ReconOptions { beside: processors(3), ..options(Fdk::default(), [1, 9, 8]) };
    assert!(single.shares(&cone.1).is_none());
}

/// Long columns of voxels, which a GPU takes in lines.
#[test]
fn slabs_of_many_slices_are_the_volume_of_one() {
    let cone = scan([12, 96, 16], Some(200.0), 0.0);
    check("lines", &cards(2).1, &cone, &options(Fdk::default(), [131, 6, 7]), 3e-6);
}

#[test]
fn views_of_several_devices_make_the_volume_of_one() {
    let cone = scan([13, 9, 15], Some(90.0), 0.0);
    let methods: [Arc<dyn Method>; 5] = [
        Arc::new(Sirt { iterations: 4, ..Sirt::default() }),
        Arc::new(OsSart { iterations: 2, subsets: 4, ..OsSart::default() }),
        Arc::new(Mlem { iterations: 4, ..Mlem::default() }),
        Arc::new(Cgls { iterations: 4, ..Cgls::default() }),
        Arc::new(TotalVariation { iterations: 4, ..TotalVariation::default() }),
    ];
    for method in methods {
        for devices in groups() {
            let options = ReconOptions { method: method.clone(), ..options(Fdk::default(), [7, 9, 8]) };
            check(method.about().name, &devices, &cone, &options, 2e-5);
        }
    }
    // A subset of OS-SART has a view for each device that takes part.
    let beside = || processors(3);
    let shares = |subsets: usize| {
        let method = OsSart { subsets, ..OsSart::default() };
        ReconOptions { beside: beside(), ..options(method, [7, 9, 8]) }.shares(&cone.1).map(|(_, s)| s.len())
    };
    assert_eq!(
        [shares(1), shares(4), shares(6), shares(7), shares(13)],
        [Some(4), Some(3), Some(2), None, None]
    );
    let fourier = ReconOptions { beside: beside(), ..options(Fourier::default(), [7, 9, 8]) };
    assert!(fourier.shares(&cone.1).is_none());
}

#[test]
fn each_gpu_takes_the_memory_that_was_stated() {
    let cone = scan([24, 40, 41], Some(200.0), 0.0);
    let sizes = [
        BatchSizes::default(),
        BatchSizes { slices: Some(5), views: None },
        BatchSizes { slices: Some(3), views: Some(5) },
    ];
    let mut runs: Vec<(&str, ReconOptions)> = Vec::new();
    for batch_sizes in sizes {
        runs.push(("fdk", ReconOptions { batch_sizes, ..options(Fdk::default(), [31, 30, 29]) }));
    }
    runs.push(("sirt", options(Sirt { iterations: 2, ..Sirt::default() }, [31, 30, 29])));
    runs.push(("os-sart", options(OsSart { iterations: 1, subsets: 5, ..OsSart::default() }, [31, 30, 29])));
    runs.push(("mlem", options(Mlem { iterations: 2, ..Mlem::default() }, [31, 30, 29])));
    runs.push(("cgls", options(Cgls { iterations: 2, ..Cgls::default() }, [31, 30, 29])));
    for (what, options) in runs {
        let options = ReconOptions { certify: None, ..options };
        let alone = cards(1).1;
        let stated_alone = budget(&alone[0], &cone.1, &options).unwrap().gpu_peak();
        made(&alone, &cone, &options).unwrap();
        for count in [2, 3] {
            let devices = cards(count).1;
            let spread = ReconOptions { beside: devices[1..].to_vec(), ..options.clone() };
            let stated = budget(&devices[0], &cone.1, &spread).unwrap();
            made(&devices, &cone, &options).unwrap();
            assert_eq!(stated.cards.len(), count, "{what}");
            assert_eq!(Some(stated.gpu_peak()), stated.cards.iter().copied().max());
            for (index, (device, stated)) in devices.iter().zip(&stated.cards).enumerate() {
                let ratio = *stated as f64 / peak(device) as f64;
                // Back-projection states the lines of pixels that long columns of voxels take.
                let most = if what == "fdk" { f64::INFINITY } else { 1.3 };
                assert!(
                    (0.97..most).contains(&ratio),
                    "{what}, {index} of {count}: {stated} of {}",
                    peak(device)
                );
            }
            // Memory adds up.
            let measured = devices.iter().map(peak).max().unwrap();
            assert!(stated.gpu_peak() < stated_alone, "{what}: {} of {stated_alone}", stated.gpu_peak());
            assert!(measured < peak(&alone[0]), "{what}: {measured} of {}", peak(&alone[0]));
        }
    }
}

fn peak(device: &Device) -> u64 {
    let Backend::Cuda(cuda) = device.backend() else { unreachable!("the emulator is a CUDA device") };
    let (left, peak) = cuda.memory_used();
    assert_eq!(left, 0);
    peak
}

#[test]
fn a_device_that_fails_is_named_and_leaves_no_volume() {
    let cone = scan([13, 9, 15], Some(90.0), 0.0);
    for options in [
        options(Fdk::default(), [7, 9, 8]),
        options(Cgls { iterations: 2, ..Cgls::default() }, [7, 9, 8]),
        options(Sirt { iterations: 2, ..Sirt::default() }, [7, 9, 8]),
    ] {
        let options = ReconOptions { certify: None, ..options };
        let (drivers, devices) = cards(3);
        drivers.iter().for_each(|driver| driver.set(Fault::Never));
        let whole = made(&devices, &cone, &options).unwrap();
        let calls: Vec<u64> = drivers.iter().map(|driver| driver.calls()).collect();
        for (broken, calls) in calls.into_iter().enumerate() {
            for number in [0, calls / 4, calls / 2, calls - calls / 8, calls - 1] {
                let (drivers, devices) = cards(3);
                drivers[broken].set(Fault::Call { number, sticky: true });
                let error = made(&devices, &cone, &options).unwrap_err();
                let text = error.to_string();
                assert!(matches!(error, Error::Device { .. }), "{text}");
                let named = text.contains(&format!("on cuda:{broken} ("));
                assert!(named && !text.contains('\n'), "{broken} at {number}: {text}");
            }
        }
        // The processor takes over where it may, and says which GPU failed.
        let (drivers, devices) = cards(2);
        drivers[1].set(Fault::Call { number: 12, sticky: true });
        let found = made(&devices, &cone, &ReconOptions { finish_on_cpu: true, ..options.clone() }).unwrap();
        assert!(apart(&found.volume, &whole.volume) < 2e-5);
        let said = |note: &String| note.contains("the GPU failed") && note.contains("on cuda:1 (");
        assert_eq!(found.notes.iter().filter(|note| said(note)).count(), 1, "{:?}", found.notes);
    }
}

#[test]
fn memory_that_runs_out_on_any_gpu_makes_batches_smaller_or_is_named() {
    let cone = scan([24, 40, 41], Some(200.0), 0.0);
    for (options, may_cut) in
        [(options(Fdk::default(), [31, 30, 29]), true), (options(Cgls::default(), [31, 30, 29]), false)]
    {
        let options = ReconOptions { certify: None, ..options };
        let (drivers, devices) = cards(2);
        let whole = made(&devices, &cone, &options).unwrap();
        let peaks: Vec<u64> = devices.iter().map(peak).collect();
        for (driver, peak) in drivers.iter().zip(peaks) {
            // Another process holds the rest.
            driver.set(Fault::Memory { after: 0, bytes: peak / 2 });
            match made(&devices, &cone, &options) {
                Ok(found) => {
                    assert!(may_cut && apart(&found.volume, &whole.volume) < 2e-6);
                    assert!(found.notes.iter().any(|note| note.contains("GPU memory ran out")));
                }
                Err(error) => {
                    let place = format!(", on cuda:{} (", driver.ordinal().unwrap());
                    assert!(!may_cut && matches!(error, Error::Memory { .. }), "{error}");
                    assert!(error.to_string().contains(&place), "{error}");
                }
            }
            driver.set(Fault::Never);
        }
    }
}
