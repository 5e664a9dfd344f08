use rayspin_core::{Detector, Orbit};
use rayspin_imaging::phantom::Contrast;

use super::*;
use crate::methods::{Fbp, Fdk};
use crate::phantom::Phantom;

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
    let spec = Spec::new(&device, &geometry, &options);
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
        let filtered = method.filter(values).unwrap();
        let wrong: Vec<f32> = right.volume.iter().map(|v| v * factor).collect();
        state.certify_backprojection(&geometry, filtered.cpu(), method.seen_radius_mm(), &wrong).unwrap();
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
    // The projections are filtered where they are, and lie beside the volume.
    assert_eq!(plain.peak(), 4 * (60 * 20 * 32 + 21 * 24 * 25));
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
