//! Where the axis of rotation falls, on detectors whose middle is far from it, and scans that do not show it.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

use std::f64::consts::{PI, TAU};

use ndarray::Array3;
use rayspin_core::{Detector, Orbit, ProjectionGeometry};
use rayspin_ct::phantom::{Form, Phantom, Solid};
use rayspin_ct::scan::{find_axis, search_axis};
use rayspin_device::Device;

/// The whole object is on the detector, whose middle is far from the axis.
fn rods(columns: usize, axis: f64, span: f64, views: usize) -> (Array3<f32>, Vec<f64>) {
    let angles: Vec<f64> = (0..views).map(|view| 0.1 + span * view as f64 / views as f64).collect();
    (rods_at(columns, axis, &angles), angles)
}

fn rods_at(columns: usize, axis: f64, angles: &[f64]) -> Array3<f32> {
    let device = Device::cpu().unwrap();
    let detector = Detector { rows: 1, columns, pitch_mm: [1.0, 1.0], radius_mm: None };
    let offset = 0.5 * (columns - 1) as f64 - axis;
    let orbit = Orbit { offset_mm: [offset, 0.0], angles: angles.to_vec(), ..Orbit::default() };
    let geometry = ProjectionGeometry::orbit(detector, &orbit).unwrap();
    let solid = |x: f64, y: f64, half: f64, value: f64| {
        Solid::new(Form::Cylinder, [x, y, 0.0], [half, half, 1e3], value)
    };
    let rods = vec![solid(1.0, 2.0, 16.0, 0.02), solid(-4.0, 7.0, 5.0, 0.03), solid(9.0, -3.0, 3.0, -0.01)];
    let lines = Phantom::new(rods).unwrap().project(device.cpu_side(), &geometry).unwrap();
    Array3::from_shape_vec(geometry.shape(), lines).unwrap()
}

/// Views that are not even, and turns in which none is opposite to another.
#[test]
fn the_axis_is_found_among_uneven_views() {
    let device = Device::cpu().unwrap();
    let degrees = |step: f64, views: usize| {
        (0..views).map(|view| (step * view as f64).to_radians()).collect::<Vec<_>>()
    };
    let half = degrees(2.0, 90);
    let jittered = |angles: &[f64]| -> Vec<f64> {
        angles
            .iter()
            .enumerate()
            .map(|(at, angle)| angle + 0.02 * ((at * 37 % 11) as f64 / 5.0 - 1.0))
            .collect()
    };
    let missing = half
        .iter()
        .enumerate()
        .filter(|(at, _)| ![20, 21, 50, 77].contains(at))
        .map(|(_, angle)| *angle)
        .collect();
    let turn = degrees(2.4, 150);
    for (name, angles) in [
        ("9 of a turn", degrees(40.0, 9)),
        ("15 of a turn", degrees(24.0, 15)),
        ("45 of a turn", degrees(8.0, 45)),
        ("91 of a turn", degrees(360.0 / 91.0, 91)),
        ("steps of 7°", degrees(7.0, 52)),
        ("half a turn in steps of 7°", degrees(7.0, 26)),
        ("golden", degrees(111.246_117_975, 144)),
        ("each twice", half.iter().flat_map(|angle| [*angle; 2]).collect()),
        ("there and back", half.iter().chain(half.iter().rev()).copied().collect()),
        ("missing", missing),
        ("jittered", jittered(&half)),
        ("backwards", half.iter().rev().copied().collect()),
        ("jittered turn", jittered(&turn)),
        ("a turn without 30°", turn.iter().copied().filter(|angle| !(1.0..1.52).contains(angle)).collect()),
    ] {
        for axis in [44.0, 62.25] {
            let found = find_axis(&device, rods_at(100, axis, &angles).view(), &angles);
            let found = found.unwrap();
            assert!((found - axis).abs() < 0.5, "{name}: {found} for {axis}");
        }
    }
}

/// Pixels that do not see the object look the same from both sides.
#[test]
fn the_axis_is_found_beside_dead_columns_and_broken_pixels() {
    let device = Device::cpu().unwrap();
    let chance = |at: usize| (at.wrapping_mul(2_654_435_761) >> 9 & 0xffff) as f32 / 65536.0;
    for (span, views) in [(PI, 90), (TAU, 180)] {
        for axis in [41.0, 60.5] {
            let (lines, angles) = rods(100, axis, span, views);
            let noise = lines
                .indexed_iter()
                .map(|((v, _, c), value)| value + 0.02 * (chance(v * 131 + c * 7 + 5) - 0.5));
            let lines = Array3::from_shape_vec(lines.dim(), noise.collect()).unwrap();
            let spoilt = |by: &dyn Fn(usize, usize) -> Option<f32>| {
                Array3::from_shape_fn(lines.dim(), |(v, r, c)| by(v, c).unwrap_or(lines[[v, r, c]]))
            };
            for (name, made) in [
                ("none", lines.clone()),
                ("a dead column", spoilt(&|_, c| (c == 30).then_some(9.0))),
                ("dead columns", spoilt(&|_, c| [22, 23, 55].contains(&c).then_some(9.2))),
                ("bright columns", spoilt(&|_, c| (c == 70 || c == 99).then_some(-1.1))),
                ("dark pixels", spoilt(&|v, c| (chance(v * 977 + c * 13) < 0.01).then_some(9.2))),
                ("hot pixels", spoilt(&|v, c| (chance(v * 977 + c * 13) < 0.01).then_some(-4.6))),
            ] {
                let found = search_axis(&device, made.view(), &angles);
                let found = found.unwrap();
                assert!((found.column - axis).abs() < 0.4, "{name}: {found:?} for {axis}");
                assert_eq!(found.other, None, "{name}");
            }
        }
    }
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
