use rayspin_core::{Detector, Orbit};
use rayspin_imaging::phantom::Contrast;

use super::*;
use crate::methods::{Cgls, Fbp, Fdk, Mlem, OsSart, Sirt, TotalVariation};
use crate::phantom::Phantom;
use crate::solving::Slab;

/// A head in a cone beam, and the rays through it.
fn head(device: &Device, offset: f64) -> (Array3<f32>, ProjectionGeometry) {
    let orbit = Orbit {
        source_to_axis_mm: Some(600.0),
        axis_to_detector_mm: 600.0,
        offset_mm: [offset, 0.0],
        ..Orbit::default()
    };
    let detector = Detector { rows: 20, columns: 32, pitch_mm: [16.0; 2], radius_mm: None };
    let geometry = ProjectionGeometry::orbit(detector, &orbit.turn(60)).unwrap();
    let phantom = Phantom::shepp_logan(3, 240.0, Contrast::Standard, 0.02).unwrap();
    let lines = phantom.project(device.cpu_side(), &geometry).unwrap();
    (Array3::from_shape_vec((60, 20, 32), lines).unwrap(), geometry)
}

fn options() -> ReconOptions {
    let grid = VolumeGrid::new([21, 24, 25], [10.0; 3], [0.0; 3]).unwrap();
    ReconOptions {
        certify: Some(Certify { outputs: 300, seed: 1 }),
        ..ReconOptions::new(Fdk::default(), grid)
    }
}

#[test]
fn the_volume_does_not_depend_on_how_the_work_is_cut() {
    for device in [Device::cpu().unwrap(), rayspin_emu::Emulator::device().unwrap()] {
        for offset in [0.0, 100.0] {
            let (lines, geometry) = head(&device, offset);
            let whole =
                reconstruct(&device, lines.clone(), &geometry, &options(), &Monitor::silent()).unwrap();
            let brightest = whole.volume.iter().fold(0.0f32, |most, v| most.max(v.abs()));
            assert!(
                brightest > 0.01 && whole.certificates.iter().all(Certificate::met),
                "{:?}",
                whole.certificates
            );
            for (slices, views) in [(Some(5), None), (None, Some(7)), (Some(1), Some(59))] {
                let batch_sizes = BatchSizes { slices, views };
                let cut = ReconOptions { batch_sizes, ..options() };
                let found = reconstruct(&device, lines.clone(), &geometry, &cut, &Monitor::silent()).unwrap();
                let apart = (&found.volume - &whole.volume).iter().fold(0.0f32, |most, v| most.max(v.abs()));
                assert!(apart <= 1e-6 * brightest, "{slices:?} {views:?}: {apart}");
                assert_eq!(found.certificates.len(), 1);
            }
        }
    }
}

#[test]
fn a_certificate_finds_a_wrong_volume() {
    let device = Device::cpu().unwrap();
    let (lines, geometry) = head(&device, 0.0);
    let options = options();
    let right = reconstruct(&device, lines.clone(), &geometry, &options, &Monitor::silent()).unwrap();
    let spec = options.spec(&device, &geometry);
    for (factor, met) in [(1.0, true), (1.001, false)] {
        let mut state = Solving::new(&spec, Cow::Borrowed(&lines), options.certify);
        let method = crate::analytic::FilteredBackprojection::new(
            &device,
            &geometry,
            &options.grid,
            Default::default(),
        )
        .unwrap();
        let values =
            rayspin_device::Array::from_slice(&device, &geometry.shape(), lines.as_slice().unwrap()).unwrap();
        let filtered = method.filter(values, 0..geometry.views().len()).unwrap();
        let wrong: Vec<f32> = right.volume.iter().map(|v| v * factor).collect();
        let slab = Slab { geometry: &geometry, filtered: &filtered, planes: 0..21 };
        state.certify_backprojection(&[slab], method.seen_radius_mm(), &wrong).unwrap();
        state.finish(wrong);
        assert_eq!(state.into_made().unwrap().certificates[0].met(), met, "{factor}");
    }
}

#[test]
fn the_budget_holds_every_array() {
    let device = Device::cpu().unwrap();
    let (_, geometry) = head(&device, 0.0);
    let plain = budget(&device, &geometry, &options()).unwrap();
    let names: Vec<_> = plain.stages.iter().map(|stage| stage.name.as_str()).collect();
    assert_eq!(names, ["filter", "back-projection"]);
    // The projections are filtered where they are, and lie beside the volume and what the projector holds.
    let arrays = 4 * (60 * 20 * 32 + 21 * 24 * 25);
    assert!(plain.peak() > arrays && plain.peak() < 10 * arrays, "{} {arrays}", plain.peak());
    let (_, shifted) = head(&device, 100.0);
    assert!(budget(&device, &shifted, &options()).unwrap().peak() > plain.peak());
    let gpu = rayspin_emu::Emulator::device().unwrap();
    let whole = budget(&gpu, &geometry, &options()).unwrap();
    let cut = ReconOptions { batch_sizes: BatchSizes { slices: Some(3), views: Some(6) }, ..options() };
    assert!(budget(&gpu, &geometry, &cut).unwrap().gpu_peak() < whole.gpu_peak() / 5);
}

#[test]
fn rays_that_a_method_does_not_take_are_refused() {
    let device = Device::cpu().unwrap();
    let (lines, geometry) = head(&device, 0.0);
    let fbp = ReconOptions { method: Arc::new(Fbp::default()), ..options() };
    let refused = reconstruct(&device, lines.clone(), &geometry, &fbp, &Monitor::silent()).unwrap_err();
    assert!(refused.to_string().contains("fdk"), "{refused}");
    let fewer = geometry.select(0..59).unwrap();
    assert!(reconstruct(&device, lines, &fewer, &options(), &Monitor::silent()).is_err());
}

/// Mean magnitude of the error, and the peak signal-to-noise ratio in dB against reference 2, as RTK's tests
/// have them.
fn quality(found: &Array3<f32>, wanted: &[f32]) -> (f64, f64) {
    let differences = found.iter().zip(wanted).map(|(f, w)| f64::from(f - w));
    let count = found.len() as f64;
    let mean = differences.clone().map(f64::abs).sum::<f64>() / count;
    let square = differences.map(|d| d * d).sum::<f64>() / count;
    (mean, 20.0 * (2.0 / square.sqrt()).log10())
}

/// RTK's acceptance tests of iterative methods: a ball of radius 90 mm and density 1 in 64³ voxels of 4 mm.
/// The scan has 180 views of 64² pixels of 8 mm. The source lies 600 mm from the axis and 1200 mm from the
/// detector.
fn ball(method: impl Method + 'static) -> (f64, f64) {
    let device = Device::cpu().unwrap();
    let orbit = Orbit {
        source_to_axis_mm: Some(600.0),
        axis_to_detector_mm: 600.0,
        offset_mm: [-3.0, -3.0],
        ..Orbit::default()
    };
    let detector = Detector { rows: 64, columns: 64, pitch_mm: [8.0; 2], radius_mm: None };
    let geometry = ProjectionGeometry::orbit(detector, &orbit.turn(180)).unwrap();
    let grid = VolumeGrid::new([64; 3], [4.0; 3], [-1.0; 3]).unwrap();
    let solid = crate::phantom::Solid::new(crate::phantom::Form::Ellipsoid, [0.0; 3], [90.0; 3], 1.0);
    let phantom = Phantom::new(vec![solid]).unwrap();
    let lines = phantom.project(device.cpu_side(), &geometry).unwrap();
    let lines = Array3::from_shape_vec((180, 64, 64), lines).unwrap();
    let options =
        ReconOptions { certify: Some(Certify { outputs: 200, seed: 1 }), ..ReconOptions::new(method, grid) };
    let made = reconstruct(&device, lines, &geometry, &options, &Monitor::silent()).unwrap();
    assert!(made.certificates.len() == 1 && made.certificates[0].met(), "{:?}", made.certificates);
    quality(&made.volume, &phantom.volume(device.cpu_side(), &grid).unwrap())
}

#[test]
fn sart_meets_what_rtk_demands_of_its_own() {
    let (mean, psnr) = ball(OsSart { iterations: 1, relaxation: 0.5, subsets: 180, ..OsSart::default() });
    println!("SART: mean error {mean:.4}, {psnr:.1} dB");
    assert!(mean < 0.032 && psnr > 28.6, "{mean} {psnr}");
}

#[test]
fn conjugate_gradients_meet_what_rtk_demands_of_its_own() {
    let (mean, psnr) = ball(Cgls { iterations: 5, tolerance: 0.0 });
    println!("CG: mean error {mean:.4}, {psnr:.1} dB");
    assert!(mean < 0.08 && psnr > 23.0, "{mean} {psnr}");
}

/// Iterative methods on few noisy views of a head: each comes near the truth, total variation nearest, on the
/// CPU and in the emulator.
#[test]
fn every_iterative_method_finds_the_head() {
    let cpu = Device::cpu().unwrap();
    let detector = Detector { rows: 1, columns: 48, pitch_mm: [10.0; 2], radius_mm: None };
    let orbit = Orbit { source_to_axis_mm: Some(600.0), axis_to_detector_mm: 600.0, ..Orbit::default() };
    let geometry = ProjectionGeometry::orbit(detector, &orbit.turn(24)).unwrap();
    let grid = VolumeGrid::new([1, 48, 48], [5.0; 3], [0.0; 3]).unwrap();
    let head = Phantom::shepp_logan(2, 220.0, Contrast::Modified, 0.02).unwrap();
    let beam = crate::simulate::Beam { rays: 3, ..Default::default() };
    let scan =
        crate::simulate::beam_lines(cpu.cpu_side(), &head, &geometry, &orbit_angles(24), &beam).unwrap();
    let lines = scan.into_lines(cpu.cpu_side(), &mut Vec::new()).unwrap();
    let truth = head.volume(cpu.cpu_side(), &grid).unwrap();
    let size: f64 = truth.iter().map(|v| f64::from(*v).powi(2)).sum();
    let methods: [(Arc<dyn Method>, f64); 5] = [
        (Arc::new(Cgls::default()), 0.5),
        (Arc::new(Sirt::default()), 0.5),
        (Arc::new(OsSart { subsets: 6, ..OsSart::default() }), 0.5),
        (Arc::new(Mlem::default()), 0.5),
        (Arc::new(TotalVariation { lambda: 1e-3, iterations: 60, ..TotalVariation::default() }), 0.4),
    ];
    for (method, most) in methods {
        let mut first: Option<Array3<f32>> = None;
        for device in [cpu.clone(), rayspin_emu::Emulator::device().unwrap()] {
            let certify = Some(Certify { outputs: 100, seed: 2 });
            let options = ReconOptions { method: method.clone(), certify, ..options_of(grid) };
            let made = reconstruct(&device, lines.clone(), &geometry, &options, &Monitor::silent()).unwrap();
            assert!(made.certificates.iter().all(Certificate::met) && made.certificates.len() == 1);
            let wrong: f64 =
                made.volume.iter().zip(&truth).map(|(f, t)| f64::from(f - t).powi(2)).sum::<f64>() / size;
            let name = method.about().name;
            assert!(wrong.sqrt() < most, "{name}: {}", wrong.sqrt());
            let solve = made.solve.unwrap();
            assert!(solve.residuals.last() < solve.residuals.first(), "{name}: {:?}", solve.residuals);
            match &first {
                None => {
                    println!("{name}: {:.3}", wrong.sqrt());
                    first = Some(made.volume);
                }
                Some(first) => {
                    let apart = (&made.volume - first).iter().fold(0.0f32, |most, v| most.max(v.abs()));
                    assert!(apart < 2e-5, "{name}: {apart} on {}", device.describe());
                }
            }
        }
    }
}

fn orbit_angles(views: usize) -> Vec<f64> {
    even_angles(views, std::f64::consts::TAU)
}

fn options_of(grid: VolumeGrid) -> ReconOptions {
    ReconOptions::new(Fdk::default(), grid)
}

/// Views that arrive in parts of any size add up to the volume of all of them; what is no view is refused.
#[test]
fn arriving_views_add_up() {
    let detector = Detector { rows: 6, columns: 20, pitch_mm: [2.0; 2], radius_mm: None };
    let orbit = Orbit {
        source_to_axis_mm: Some(90.0),
        axis_to_detector_mm: 60.0,
        offset_mm: [6.0, 0.0],
        ..Orbit::default()
    };
    let geometry = ProjectionGeometry::orbit(detector, &orbit.turn(30)).unwrap();
    let grid = VolumeGrid::new([5, 12, 13], [1.5; 3], [0.0; 3]).unwrap();
    let count: usize = geometry.shape().iter().product();
    let lines: Vec<f32> = (0..count).map(|at| (at * 7919 % 1009) as f32 / 1009.0).collect();
    for device in [Device::cpu().unwrap(), rayspin_emu::Emulator::device().unwrap()] {
        let options = ReconOptions::new(crate::methods::Fdk::default(), grid);
        let all = Array3::from_shape_vec(geometry.shape(), lines.clone()).unwrap();
        let wanted = reconstruct(&device, all, &geometry, &options, &Monitor::silent()).unwrap();
        let mut volume = Arriving::new(&device, &geometry, &options).unwrap();
        assert!(volume.add(vec![0.0; 119]).is_err() && volume.add(Vec::new()).is_err());
        assert!(volume.add(vec![f32::NAN; 120]).unwrap_err().to_string().contains("line integrals"));
        for part in [7, 1, 12, 10] {
            let first = 120 * volume.views();
            volume.add(lines[first..first + 120 * part].to_vec()).unwrap();
        }
        assert!(volume.add(vec![0.0; 120]).is_err() && volume.slice(5).is_err());
        let slice = volume.slice(2).unwrap();
        let found = volume.finish().unwrap();
        assert_eq!(found.notes, wanted.notes);
        let most = wanted.volume.iter().fold(0.0f32, |most, value| most.max(value.abs()));
        for (found, wanted) in found.volume.iter().zip(&wanted.volume) {
            assert!((found - wanted).abs() < 1e-5 * most, "{found} for {wanted}");
        }
        assert!(slice.iter().eq(found.volume.index_axis(ndarray::Axis(0), 2).iter()));
        assert!(Arriving::new(&device, &geometry, &options).unwrap().finish().is_err());
        let needs_all = ReconOptions::new(crate::methods::Cgls::default(), grid);
        assert!(Arriving::new(&device, &geometry, &needs_all).is_err());
        assert!(arriving_budget(&device, &geometry, &needs_all, 4).is_err());
        assert!(arriving_budget(&device, &geometry, &options, 4).unwrap().peak() > 0);
    }
}

#[test]
fn what_a_run_loads_is_found_ahead() {
    use std::collections::HashSet;

    use rayspin_device::Backend;
    use rayspin_device::cuda::NullDriver;

    let device = rayspin_emu::Emulator::device().unwrap();
    let (lines, cone) = head(&device, 0.0);
    let detector = Detector { rows: 1, columns: 32, pitch_mm: [16.0; 2], radius_mm: None };
    let parallel = ProjectionGeometry::orbit(detector, &Orbit::default().turn(12)).unwrap();
    let rows = Array3::from_elem((12, 1, 32), 0.1f32);
    let grid = VolumeGrid::new([1, 12, 13], [20.0; 3], [0.0; 3]).unwrap();
    let few = |method: &str| {
        let mut method = crate::methods::Methods::default().named(method).unwrap().copy();
        if method.get("iterations").is_some() {
            method.set("iterations", crate::methods::Value::Count(2)).unwrap();
        }
        method
    };
    let mut of_methods = Vec::new();
    for method in ["fdk", "sirt", "os-sart", "cgls", "mlem", "tv"] {
        of_methods.push((method, &lines, &cone, options().grid));
    }
    for method in ["fbp", "fourier"] {
        of_methods.push((method, &rows, &parallel, grid));
    }
    for (method, lines, geometry, grid) in of_methods {
        let options = ReconOptions { method: few(method).into(), ..ReconOptions::new(Fdk::default(), grid) };
        let device = rayspin_emu::Emulator::device().unwrap();
        let Backend::Cuda(cuda) = device.backend() else { unreachable!("the emulator is a CUDA device") };
        let driver = Arc::new(NullDriver::new(cuda.properties().clone(), true));
        rehearse(&Device::with_driver(driver.clone(), device.clone()), geometry, &options);
        let found: HashSet<_> =
            driver.take_programs().into_iter().map(|program| (program.name, program.defines)).collect();
        reconstruct(&device, lines.clone(), geometry, &options, &Monitor::silent()).unwrap();
        let loaded: HashSet<_> = cuda.loaded().into_iter().collect();
        let missed: Vec<_> = loaded.difference(&found).collect();
        assert!(missed.is_empty() && !loaded.is_empty(), "{method}: {missed:?}");
    }
}

#[test]
fn pixels_are_as_large_as_the_scan_states_or_the_option_says() {
    use crate::corrections::Corrections;
    use crate::scan::{Measured, Part, PixelSize, Scan};

    let device = Device::cpu().unwrap();
    let pitch = |pixel: Option<PixelSize>, options: RayOptions| {
        let lines = Measured::Lines(Array3::zeros((4, 2, 8)));
        let scan = Scan { pixel, ..Scan::new(lines, even_angles(4, 3.0), None).unwrap() };
        let part = Part::of(scan.shape(), None, None, None).unwrap();
        let mut notes = Vec::new();
        let made = prepare(&device, scan, &part, &Corrections::default(), &options, &mut notes).unwrap();
        (made.geometry.detector().pitch_mm, notes.concat())
    };
    let stated = |at_object: bool| Some(PixelSize { mm: [0.2, 0.3], at_object });
    let cone =
        || RayOptions { source_to_axis_mm: Some(50.0), axis_to_detector_mm: 100.0, ..RayOptions::default() };
    let given = || RayOptions { pixel_mm: Some([0.5; 2]), ..RayOptions::default() };
    for (pixel, options, wanted, word) in [
        (None, RayOptions::default(), [1.0; 2], "neither the file nor `--pixel`"),
        (stated(true), RayOptions::default(), [0.2, 0.3], "0.2 x 0.3 mm (as the file states them)"),
        (stated(false), cone(), [0.2, 0.3], "as the file states them"),
        (stated(true), cone(), [0.2 * 3.0, 0.3 * 3.0], "as the file states them"),
        (stated(false), given(), [0.5; 2], "0.5 mm (`--pixel`; the file states 0.2 x 0.3)"),
    ] {
        let (found, note) = pitch(pixel, options);
        assert!(found.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 1e-12), "{found:?} for {wanted:?}");
        assert!(note.contains(word), "{note}");
    }
}

#[test]
fn a_matrix_alone_keeps_the_field_of_view_and_says_the_voxel() {
    let detector = Detector { rows: 4, columns: 40, pitch_mm: [1.5; 2], radius_mm: None };
    let geometry = ProjectionGeometry::orbit(detector, &Orbit::default().turn(8)).unwrap();
    let wanted = GridOptions { matrix: Some([20, 30, 1]), ..GridOptions::default() };
    let made = grid(&geometry, &wanted).unwrap();
    assert_eq!(made.spacing_mm(), [3.0, 2.0, 1.5]);
    assert!(wanted.note(&made).unwrap().starts_with("voxels of 3 x 2 x 1.5 mm"));
    let both = GridOptions { voxel_mm: Some([1.5; 3]), ..wanted };
    assert_eq!((grid(&geometry, &both).unwrap().spacing_mm(), both.note(&made)), ([1.5; 3], None));
}
