//! Where the axis of rotation falls, on detectors whose middle is far from it, and scans that do not show it.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

use std::f64::consts::{PI, TAU};

use ndarray::Array3;
use rayspin_core::{Detector, Orbit, ProjectionGeometry};
use rayspin_ct::phantom::{Form, Phantom, Solid};
use rayspin_ct::scan::find_axis;
use rayspin_device::Device;

/// The whole object is on the detector, whose middle is far from the axis.
fn rods(columns: usize, axis: f64, span: f64, views: usize) -> (Array3<f32>, Vec<f64>) {
    let device = Device::cpu().unwrap();
    let detector = Detector { rows: 1, columns, pitch_mm: [1.0, 1.0], radius_mm: None };
    let offset = 0.5 * (columns - 1) as f64 - axis;
    let orbit = Orbit { offset_mm: [offset, 0.0], ..Orbit::default() }.arc(0.1, span, views);
    let geometry = ProjectionGeometry::orbit(detector, &orbit).unwrap();
    let solid = |x: f64, y: f64, half: f64, value: f64| {
        Solid::new(Form::Cylinder, [x, y, 0.0], [half, half, 1e3], value)
    };
    let rods = vec![solid(1.0, 2.0, 16.0, 0.02), solid(-4.0, 7.0, 5.0, 0.03), solid(9.0, -3.0, 3.0, -0.01)];
    let lines = Phantom::new(rods).unwrap().project(device.cpu_side(), &geometry).unwrap();
    (Array3::from_shape_vec(geometry.shape(), lines).unwrap(), orbit.angles)
}

#[test]
fn the_axis_is_found_outside_the_middle_half_and_in_saturated_counts() {
    let device = Device::cpu().unwrap();
    for (axis, span, views) in
        [(122.0, PI, 120), (25.5, PI, 150), (130.0, 1.2 * PI, 144), (24.0, PI, 36), (131.0, TAU, 180)]
    {
        let (lines, angles) = rods(156, axis, span, views);
        let found = find_axis(&device, lines.view(), &angles).unwrap();
        assert!((found - axis).abs() < 0.6, "{found} for {axis}");
    }
    // The brightest pixels, or the darkest ones, all count the same.
    for (axis, low, high) in [(77.0, 0.25, 9.0), (115.0, 0.25, 9.0), (60.0, 0.0, 0.5), (122.0, 0.0, 0.4)] {
        let (lines, angles) = rods(156, axis, PI, 120);
        let found = find_axis(&device, lines.mapv(|value| value.clamp(low, high)).view(), &angles).unwrap();
        assert!((found - axis).abs() < 0.6, "{found} for {axis} between {low} and {high}");
    }
}

#[test]
fn an_axis_that_the_views_do_not_show_is_refused() {
    let device = Device::cpu().unwrap();
    let noise = |at: usize| (at.wrapping_mul(2_654_435_761) >> 7 & 0xffff) as f32 / 65536.0;
    for (span, views) in [(PI, 90), (TAU, 90)] {
        let (lines, angles) = rods(120, 60.0, span, views);
        let refused = |lines: Array3<f32>, word: &str| {
            let message = find_axis(&device, lines.view(), &angles).unwrap_err().to_string();
            assert!(message.contains("axis of rotation") && message.contains(word), "{message}");
        };
        let noise = Array3::from_shape_fn(lines.dim(), |(v, _, c)| noise(v * 4099 + c * 31 + 17));
        refused(noise, "best one");
        refused(Array3::from_elem(lines.dim(), 0.3), "same value");
        // The axis is beyond the detector.
        let cut = lines.slice(ndarray::s![.., .., 64..]).to_owned();
        let message = find_axis(&device, cut.view(), &angles).unwrap_err().to_string();
        assert!(message.contains("axis of rotation"), "{message}");
    }
}
