//! What a picture does not betray: one direction, a volume beside the rays, negative line integrals, a stated
//! axis that is wrong.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

use std::sync::Arc;

use ndarray::Array3;
use rayspin_core::{Detector, Monitor, Orbit, ProjectionGeometry, VolumeGrid};
use rayspin_ct::corrections::Corrections;
use rayspin_ct::methods::{Cgls, Fdk, Method};
use rayspin_ct::phantom::Phantom;
use rayspin_ct::recon::{
    Arriving, AxisOn, RayOptions, ReconOptions, axis_note, prepare, reconstruct, with_axis,
};
use rayspin_ct::scan::{Measured, Part, Scan};
use rayspin_device::Device;
use rayspin_imaging::phantom::Contrast;

/// A head in a cone beam, and the rays through it.
fn head(device: &Device) -> (Array3<f32>, ProjectionGeometry) {
    let orbit = Orbit { source_to_axis_mm: Some(600.0), axis_to_detector_mm: 600.0, ..Orbit::default() };
    let detector = Detector { rows: 20, columns: 32, pitch_mm: [16.0; 2], radius_mm: None };
    let geometry = ProjectionGeometry::orbit(detector, &orbit.turn(60)).unwrap();
    let phantom = Phantom::shepp_logan(3, 200.0, Contrast::Standard, 0.02).unwrap();
    let lines = phantom.project(device.cpu_side(), &geometry).unwrap();
    (Array3::from_shape_vec((60, 20, 32), lines).unwrap(), geometry)
}

fn options() -> ReconOptions {
    ReconOptions::new(Fdk::default(), VolumeGrid::new([21, 24, 25], [10.0; 3], [0.0; 3]).unwrap())
}

#[test]
fn what_a_volume_does_not_betray_is_said_or_refused() {
    let device = Device::cpu().unwrap();
    let (lines, geometry) = head(&device);
    let made = |lines: &Array3<f32>, geometry: &ProjectionGeometry, options: &ReconOptions| {
        reconstruct(&device, lines.clone(), geometry, options, &Monitor::silent())
    };
    assert!(made(&lines, &geometry, &options()).unwrap().notes.is_empty());
    // One view, and several of one direction.
    let few = geometry.select([7, 7]).unwrap();
    for views in [1, 2] {
        let few = few.select(0..views).unwrap();
        let lines = lines.slice(ndarray::s![..views, .., ..]).to_owned();
        for method in [Arc::new(Fdk::default()) as Arc<dyn Method>, Arc::new(Cgls::default())] {
            let notes = made(&lines, &few, &ReconOptions { method, ..options() }).unwrap().notes;
            assert!(notes.iter().any(|note| note.contains("no depth")), "{notes:?}");
        }
    }
    // A volume beside the rays, above them, and one whose voxels are larger than what the detector sees.
    for (centre, voxel) in [([900.0, 0.0, 0.0], 10.0), ([0.0, 0.0, 400.0], 10.0), ([0.0; 3], 1000.0)] {
        let grid = VolumeGrid::new([4, 4, 4], [voxel; 3], centre).unwrap();
        let options = ReconOptions { grid, ..options() };
        let refused = made(&lines, &geometry, &options).unwrap_err().to_string();
        assert!(refused.contains("volume") && refused.contains("--voxel"), "{refused}");
        assert!(Arriving::new(&device, &geometry, &options).is_err());
    }
    let grid = VolumeGrid::new([3, 101, 101], [60.0; 3], [0.0; 3]).unwrap();
    let notes = made(&lines, &geometry, &ReconOptions { grid, ..options() }).unwrap().notes;
    assert!(notes[0].contains("of 10201 voxels"), "{notes:?}");
    // Numbers that overflow.
    let bright = lines.mapv(|value| value * 1e38);
    let refused = made(&bright, &geometry, &options()).unwrap_err().to_string();
    assert!(refused.contains("finite"), "{refused}");
}

/// Iterative methods take rows as they are.
#[test]
fn rows_that_end_inside_the_object_are_told() {
    let device = Device::cpu().unwrap();
    let orbit = Orbit { source_to_axis_mm: Some(600.0), axis_to_detector_mm: 600.0, ..Orbit::default() };
    let shifted = Orbit { offset_mm: [72.0, 0.0], ..orbit.clone() };
    let phantom = Phantom::shepp_logan(3, 200.0, Contrast::Standard, 0.02).unwrap();
    for (columns, orbit, told) in [
        (32, &orbit, None),
        (17, &orbit, Some("on both sides (in 20 of 20 views")),
        // Half of a turn continues the short side.
        (22, &shifted, None),
        (13, &shifted, Some("behind the last column")),
    ] {
        let detector = Detector { rows: 6, columns, pitch_mm: [16.0; 2], radius_mm: None };
        let geometry = ProjectionGeometry::orbit(detector, &orbit.clone().turn(20)).unwrap();
        let lines = phantom.project(device.cpu_side(), &geometry).unwrap();
        let lines = Array3::from_shape_vec((20, 6, columns), lines).unwrap();
        let options =
            ReconOptions { method: Arc::new(Cgls { iterations: 1, ..Cgls::default() }), ..options() };
        let notes = reconstruct(&device, lines, &geometry, &options, &Monitor::silent()).unwrap().notes;
        let found = notes.iter().find(|note| note.contains("does not see the whole object"));
        assert!(found.is_some() == told.is_some(), "{columns}: {notes:?}");
        assert!(
            found.is_none_or(|note| told.is_some_and(|told| note.contains(told))),
            "{columns}: {notes:?}"
        );
    }
}

#[test]
fn negative_line_integrals_are_told() {
    let device = Device::cpu().unwrap();
    let (lines, geometry) = head(&device);
    let told = |lines: Array3<f32>| {
        let scan = Scan::new(Measured::Lines(lines), vec![0.0; 60], Some(geometry.clone())).unwrap();
        let part = Part::of(scan.shape(), None, None, None).unwrap();
        let mut notes = Vec::new();
        let (none, options) = (Corrections::default(), RayOptions::default());
        prepare(&device, scan, &part, &none, &options, &mut notes).unwrap();
        notes
    };
    assert!(told(lines.clone()).is_empty());
    // A flat field that is too small, and the logarithm with the other sign.
    for wrong in [lines.mapv(|value| value - 0.5), lines.mapv(|value| -value)] {
        let notes = told(wrong.clone());
        assert!(notes.len() == 1 && notes[0].contains("negative line integrals"), "{notes:?}");
        let mut volume = Arriving::new(&device, &geometry, &options()).unwrap();
        volume.add(wrong.into_raw_vec_and_offset().0).unwrap();
        assert!(volume.finish().unwrap().notes.iter().any(|note| note.contains("negative line integrals")));
    }
}

/// Noise makes columns negative as well, and the noise of the flat fields is the same in all views.
#[test]
fn noise_is_no_negative_line_integral() {
    let device = Device::cpu().unwrap();
    let chance = |at: usize| (at.wrapping_mul(2_654_435_761) >> 11 & 0xffff) as f32 / 65536.0 - 0.5;
    let (lines, geometry) = head(&device);
    let faint = |less: f32| {
        Array3::from_shape_fn(lines.dim(), |(v, r, c)| {
            0.004 * lines[[v, r, c]] + 0.1 * chance(v * 7919 + r * 641 + c) + 0.03 * chance(c * 101 + 7)
                - less
        })
    };
    for (less, told) in [(0.0, false), (0.1, true)] {
        let mut volume = Arriving::new(&device, &geometry, &options()).unwrap();
        volume.add(faint(less).into_raw_vec_and_offset().0).unwrap();
        let notes = volume.finish().unwrap().notes;
        assert_eq!(notes.iter().any(|note| note.contains("negative line integrals")), told, "{notes:?}");
    }
}

/// Few views of a helix meet a thin slab.
#[test]
fn a_slab_that_few_views_of_a_helix_meet_is_met() {
    let device = Device::cpu().unwrap();
    let orbit = Orbit { source_to_axis_mm: Some(600.0), axis_to_detector_mm: 600.0, ..Orbit::default() };
    let detector = Detector { rows: 2, columns: 12, pitch_mm: [16.0, 4.0], radius_mm: None };
    let helix = Orbit { advance_mm: 40.0, ..orbit }.arc(0.0, 8.0 * std::f64::consts::TAU, 640);
    let geometry = ProjectionGeometry::orbit(detector, &helix).unwrap();
    let middle = |view: usize| geometry.views()[view].detector_mm[2];
    let (z, far) = (middle(330), middle(639) + 60.0);
    let lines = Array3::from_elem((640, 2, 12), 0.1f32);
    let made = |z: f64| {
        let grid = VolumeGrid::new([1, 4, 4], [4.0, 4.0, 1.0], [0.0, 0.0, z]).unwrap();
        let options =
            ReconOptions { method: Arc::new(Cgls { iterations: 1, ..Cgls::default() }), grid, ..options() };
        reconstruct(&device, lines.clone(), &geometry, &options, &Monitor::silent())
    };
    assert!(made(z).is_ok());
    assert!(made(far).unwrap_err().to_string().contains("rays that meet it"));
}

/// A column for the axis corrects rays that the scan states, of all beams, and of a part of the detector.
#[test]
fn a_column_for_the_axis_corrects_stated_rays() {
    let device = Device::cpu().unwrap();
    let detector = Detector { rows: 2, columns: 30, pitch_mm: [2.0; 2], radius_mm: None };
    for source_to_axis_mm in [None, Some(300.0)] {
        let orbit = Orbit { source_to_axis_mm, axis_to_detector_mm: 60.0, ..Orbit::default() };
        let rays = |offset: f64| {
            let orbit = Orbit { offset_mm: [offset, 0.0], ..orbit.clone() };
            ProjectionGeometry::orbit(detector, &orbit.turn(12)).unwrap()
        };
        // The axis is on column 17.5 and not on 14.5, the middle.
        let (right, wrong) = (rays(-6.0), rays(0.0));
        let lines = Array3::from_shape_fn((12, 2, 30), |(v, r, c)| 0.01 * (v + r + c) as f32);
        let scan = Scan::new(Measured::Lines(lines), vec![0.0; 12], Some(wrong)).unwrap();
        let columns = Some("4-27".parse().unwrap());
        let part = Part::of(scan.shape(), None, None, columns.as_ref()).unwrap();
        let options = RayOptions { axis: Some(AxisOn::Column(17.5)), ..RayOptions::default() };
        let mut notes = Vec::new();
        let scan = part.scan(scan).unwrap();
        let made = prepare(&device, scan, &part, &Corrections::default(), &options, &mut notes).unwrap();
        let wanted = part.rays(&right).unwrap();
        for (found, wanted) in made.geometry.views().iter().zip(wanted.views()) {
            assert!((0..3).all(|axis| (found.detector_mm[axis] - wanted.detector_mm[axis]).abs() < 1e-9));
        }
        assert!(notes.iter().any(|note| note.contains("17.50") && note.contains("14.50")), "{notes:?}");
        assert!(with_axis(&right, 31.0).is_err());
        assert!(axis_note(17.5, 17.5).contains("as the scan's rays state"));
    }
}
