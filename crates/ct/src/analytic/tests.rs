use rayspin_core::Orbit;
use rayspin_imaging::phantom::Contrast;

use super::*;
use crate::phantom::Phantom;

struct Case {
    detector: Detector,
    orbit: Orbit,
    grid: VolumeGrid,
    phantom: Phantom,
}

/// Mean magnitude of the error, and the peak signal-to-noise ratio in dB against reference 2, as RTK's tests have them.
fn quality(found: &[f32], wanted: &[f32]) -> (f64, f64) {
    let differences = found.iter().zip(wanted).map(|(f, w)| f64::from(f - w));
    let count = found.len() as f64;
    let mean = differences.clone().map(f64::abs).sum::<f64>() / count;
    let square = differences.map(|d| d * d).sum::<f64>() / count;
    (mean, 20.0 * (2.0 / square.sqrt()).log10())
}

fn reconstruct(case: &Case, filter: Filter) -> (Vec<f32>, Vec<f32>, Vec<String>) {
    let device = Device::cpu().unwrap();
    let geometry = ProjectionGeometry::orbit(case.detector, &case.orbit).unwrap();
    let lines = case.phantom.project(device.cpu_side(), &geometry).unwrap();
    let method = FilteredBackprojection::new(&device, &geometry, &case.grid, filter).unwrap();
    let volume = method.reconstruct(Array::from_vec(&device, &geometry.shape(), lines).unwrap()).unwrap();
    let truth = case.phantom.volume(device.cpu_side(), &case.grid).unwrap();
    (volume.to_vec().unwrap(), truth, method.notes().to_vec())
}

/// RTK's cases: Shepp–Logan of radius 128 mm in a volume of 128³ voxels of 2 mm, source to axis 600, to detector 1200 mm.
fn cone(views: usize, span: f64) -> Case {
    let orbit = Orbit { source_to_axis_mm: Some(600.0), axis_to_detector_mm: 600.0, ..Orbit::default() };
    Case {
        detector: Detector { rows: 128, columns: 128, pitch_mm: [4.0, 4.0], radius_mm: None },
        orbit: orbit.arc(0.0, span, views),
        grid: VolumeGrid::new([128; 3], [2.0; 3], [0.0; 3]).unwrap(),
        phantom: Phantom::shepp_logan(3, 256.0, Contrast::Standard, 1.0).unwrap(),
    }
}

#[test]
fn a_cone_beam_over_a_turn_gives_the_head() {
    let (found, truth, notes) = reconstruct(&cone(180, TAU), Filter::default());
    let (mean, psnr) = quality(&found, &truth);
    assert!(mean < 0.03 && psnr > 26.0, "{mean} {psnr}");
    assert!(notes.is_empty(), "{notes:?}");
}

#[test]
fn a_short_scan_gives_the_head() {
    let (found, truth, notes) = reconstruct(&cone(110, 220f64.to_radians()), Filter::default());
    let (mean, psnr) = quality(&found, &truth);
    assert!(mean < 0.09 && psnr > 22.0, "{mean} {psnr}");
    assert!(notes[0].contains("short scan"), "{notes:?}");
}

#[test]
fn a_shifted_detector_gives_the_head_from_either_side() {
    for shift in [-60.0, 60.0] {
        let mut case = cone(180, TAU);
        case.orbit.offset_mm = [shift, 0.0];
        let (found, truth, notes) = reconstruct(&case, Filter::default());
        let (mean, psnr) = quality(&found, &truth);
        assert!(mean < 0.061 && psnr > 24.0, "{mean} {psnr}");
        assert!(notes[0].contains("Wang"), "{notes:?}");
    }
}

/// A disc of 0.02/mm: its mean inside, whatever the beam, the voxel, the pixel and the window.
#[test]
fn attenuation_does_not_depend_on_beam_voxel_or_pixel() {
    let disc =
        crate::phantom::Solid::new(crate::phantom::Form::Cylinder, [5.0, -8.0, 0.0], [30.0, 30.0, 1e4], 0.02);
    let phantom = Phantom::new(vec![disc]).unwrap();
    for parallel in [true, false] {
        for (pitch, columns) in [(1.0, 128), (0.5, 300), (1.7, 80)] {
            for (voxel, n) in [(1.0, 96), (0.6, 160)] {
                for (start, span, window) in
                    [(0.0, TAU, Window::RamLak), (0.4, 1.3 * PI, Window::Hann), (2.0, PI, Window::Cosine)]
                {
                    if !parallel && span < 1.2 * PI {
                        continue;
                    }
                    let source_to_axis_mm = (!parallel).then_some(300.0);
                    let detector = Detector {
                        rows: 1,
                        columns,
                        pitch_mm: [pitch * if parallel { 1.0 } else { 1.2 }; 2],
                        radius_mm: None,
                    };
                    let orbit = Orbit { source_to_axis_mm, axis_to_detector_mm: 60.0, ..Orbit::default() };
                    let case = Case {
                        detector,
                        orbit: orbit.arc(start, span, 240),
                        grid: VolumeGrid::new([1, n, n], [voxel; 3], [0.0; 3]).unwrap(),
                        phantom: phantom.clone(),
                    };
                    let (found, truth, _) = reconstruct(&case, Filter { window, cutoff: 1.0 });
                    let inside = |at: &usize| {
                        let first = case.grid.first_mm();
                        let (x, y) = (first[0] + (at % n) as f64 * voxel, first[1] + (at / n) as f64 * voxel);
                        (x - 5.0).hypot(y + 8.0) < 22.0
                    };
                    let pixels: Vec<usize> = (0..n * n).filter(inside).collect();
                    let mean = |values: &[f32]| {
                        pixels.iter().map(|&at| f64::from(values[at])).sum::<f64>() / pixels.len() as f64
                    };
                    let (mean, wanted) = (mean(&found), mean(&truth));
                    let what = format!("parallel {parallel} pitch {pitch} voxel {voxel} span {span}");
                    assert!((mean / wanted - 1.0).abs() < 0.01, "{what}: {mean} for {wanted}");
                }
            }
        }
    }
}

#[test]
fn rows_and_columns_may_be_numbered_the_other_way() {
    let case = cone(40, TAU);
    let device = Device::cpu().unwrap();
    let geometry = ProjectionGeometry::orbit(case.detector, &case.orbit).unwrap();
    let grid = VolumeGrid::new([9, 32, 32], [8.0; 3], [0.0; 3]).unwrap();
    let turned = |u: f64, v: f64| {
        let views = geometry.views().iter().map(|view| View {
            u: view.u.map(|x| u * x),
            v: view.v.map(|x| v * x),
            ..*view
        });
        let geometry = ProjectionGeometry::new(case.detector, views.collect()).unwrap();
        let lines = case.phantom.project(device.cpu_side(), &geometry).unwrap();
        let method = FilteredBackprojection::new(&device, &geometry, &grid, Filter::default()).unwrap();
        method
            .reconstruct(Array::from_vec(&device, &geometry.shape(), lines).unwrap())
            .unwrap()
            .to_vec()
            .unwrap()
    };
    let plain = turned(1.0, 1.0);
    for (u, v) in [(-1.0, 1.0), (1.0, -1.0), (-1.0, -1.0)] {
        let found = turned(u, v);
        assert!(plain.iter().zip(&found).all(|(a, b)| (a - b).abs() < 1e-4));
    }
}

#[test]
fn paths_that_are_no_circle_are_refused() {
    let device = Device::cpu().unwrap();
    let case = cone(10, TAU);
    let refused = |detector: Detector, orbit: Orbit, filter: Filter, message: &str| {
        let geometry = ProjectionGeometry::orbit(detector, &orbit).unwrap();
        let text =
            FilteredBackprojection::new(&device, &geometry, &case.grid, filter).unwrap_err().to_string();
        assert!(text.contains(message), "{text} has no {message}");
    };
    let (detector, orbit) = (case.detector, case.orbit.clone());
    refused(Detector { radius_mm: Some(1200.0), ..detector }, orbit.clone(), Filter::default(), "flat");
    refused(detector, Orbit { advance_mm: 30.0, ..orbit.clone() }, Filter::default(), "one height");
    refused(detector, Orbit { tilt: 0.1, ..orbit.clone() }, Filter::default(), "parallel to z");
    for cutoff in [0.0, 1.5, f64::NAN] {
        refused(detector, orbit.clone(), Filter { cutoff, ..Filter::default() }, "cutoff");
    }
}
