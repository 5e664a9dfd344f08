//! What RTK demands of its own forward projections, demanded of ours: mean errors and peak signal-to-noise
//! ratios against exact line integrals, with sources inside the volume and curved detectors.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

use rayspin_core::{Detector, Orbit, ProjectionGeometry, RaySource, View, VolumeGrid};
use rayspin_ct::phantom::{Form, Phantom, Solid};
use rayspin_device::{Array, Device};
use rayspin_imaging::phantom::Contrast;
use rayspin_kernels::projection::Projector;

/// The mean magnitude of the error, and the peak signal-to-noise ratio in dB against 255.
fn quality(phantom: &Phantom, geometry: &ProjectionGeometry, grid: &VolumeGrid) -> (f64, f64) {
    let device = Device::cpu().unwrap();
    let exact = phantom.project(device.cpu_side(), geometry).unwrap();
    let volume = phantom.volume(device.cpu_side(), grid).unwrap();
    let volume = Array::from_vec(&device, &grid.shape_zyx(), volume).unwrap();
    let mut found = Array::zeros(&device, &geometry.shape()).unwrap();
    found.fill(f32::NAN).unwrap();
    Projector::new(&device, geometry, grid).unwrap().forward(&volume, &mut found).unwrap();
    let differences: Vec<f64> =
        found.to_vec().unwrap().iter().zip(&exact).map(|(f, e)| f64::from(f - e)).collect();
    let count = differences.len() as f64;
    let mean = differences.iter().map(|d| d.abs()).sum::<f64>() / count;
    let square = differences.iter().map(|d| d * d).sum::<f64>() / count;
    assert!(exact.iter().copied().fold(0.0, f32::max) > 20.0, "the phantom is not in the beam");
    (mean, 20.0 * (255.0 / square.sqrt()).log10())
}

fn demand(name: &str, (mean, psnr): (f64, f64)) {
    println!("{name}: mean error {mean:.3}, {psnr:.1} dB");
    assert!(mean < 1.28 && psnr > 44.0, "{name}: {mean} {psnr}");
}

/// 45 views, 8° apart.
fn orbit(source_mm: f64, detector_mm: f64) -> Orbit {
    let axis_to_detector_mm = detector_mm - source_mm;
    Orbit { source_to_axis_mm: Some(source_mm), axis_to_detector_mm, ..Orbit::default() }.turn(45)
}

fn detector(radius_mm: Option<f64>) -> Detector {
    Detector { rows: 64, columns: 64, pitch_mm: [4.0; 2], radius_mm }
}

#[test]
fn a_cube_is_projected_from_outside_and_from_inside() {
    let cube = Solid::new(Form::Box, [0.0; 3], [128.0; 3], 1.0);
    let phantom = Phantom::new(vec![cube]).unwrap();
    let grid = VolumeGrid::new([64; 3], [4.0; 3], [0.0; 3]).unwrap();
    let geometry = ProjectionGeometry::orbit(detector(None), &orbit(500.0, 1000.0)).unwrap();
    demand("cube", quality(&phantom, &geometry, &grid));
    // Sources on the sides of a square within the cube.
    let views = (0..180).map(|view| {
        let (quarter, angle) = (view / 45, f64::from(-45 + 2 * (view % 45)).to_radians());
        let turn = angle + f64::from(quarter) * std::f64::consts::FRAC_PI_2;
        let (distance, (sin, cos)) = (47.6 / angle.cos(), turn.sin_cos());
        View {
            source: RaySource::Point([distance * sin, -distance * cos, 0.0]),
            detector_mm: [-(1000.0 - distance) * sin, (1000.0 - distance) * cos, 0.0],
            u: [cos, sin, 0.0],
            v: [0.0, 0.0, 1.0],
        }
    });
    let geometry = ProjectionGeometry::new(detector(None), views.collect()).unwrap();
    demand("cube, source inside", quality(&phantom, &geometry, &grid));
}

#[test]
fn a_head_is_projected_to_flat_and_curved_detectors_and_from_inside() {
    let head = Phantom::shepp_logan(3, 256.0, Contrast::Standard, 1.0).unwrap();
    let grid = VolumeGrid::new([128; 3], [2.0; 3], [0.0; 3]).unwrap();
    for (name, source, radius) in [
        ("head", 500.0, None),
        ("head, curved detector", 500.0, Some(600.0)),
        ("head, source inside", 120.0, None),
    ] {
        let geometry = ProjectionGeometry::orbit(detector(radius), &orbit(source, 1000.0)).unwrap();
        demand(name, quality(&head, &geometry, &grid));
    }
}
