//! Detectors that do not see the whole object: values in the field of view, and scans that end in air.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

use std::f64::consts::{PI, TAU};

use rayspin_core::{Detector, Orbit, ProjectionGeometry, VolumeGrid};
use rayspin_ct::analytic::{Extend, Filter, FilteredBackprojection, FourierBackprojection, Window};
use rayspin_ct::phantom::{Form, Phantom, Solid};
use rayspin_device::{Array, Device};

/// An oval body with two organs, wider than most detectors below.
fn body() -> Phantom {
    let solid = |middle: [f64; 2], half: [f64; 2], value: f64| {
        let size = [half[0], half[1], 1e4];
        Solid::new(Form::Cylinder, [middle[0], middle[1], 0.0], size, value)
    };
    let solids = vec![
        solid([2.0, -1.0], [36.0, 30.0], 0.02),
        solid([10.0, 6.0], [6.0, 5.0], 0.01),
        solid([-8.0, 3.0], [4.0, 9.0], -0.006),
    ];
    Phantom::new(solids).unwrap()
}

/// Mean error and root mean square error within `radius` of the axis, and in its outer fifth, relative to the
/// truth's mean.
fn errors_within(grid: &VolumeGrid, radius: f64, found: &[f32], truth: &[f32]) -> [f64; 3] {
    let ([nx, ny, _], first, spacing) = (grid.shape_xyz(), grid.first_mm(), grid.spacing_mm());
    let (mut n, mut sum, mut square, mut wanted) = (0.0, 0.0, 0.0, 0.0);
    let (mut rim, mut rim_wanted) = (0.0, 0.0);
    for at in 0..nx * ny {
        let r = (first[0] + (at % nx) as f64 * spacing[0]).hypot(first[1] + (at / nx) as f64 * spacing[1]);
        if r > radius - 1.0 {
            continue;
        }
        let (f, w) = (f64::from(found[at]), f64::from(truth[at]));
        n += 1.0;
        (sum, square, wanted) = (sum + f - w, square + (f - w).powi(2), wanted + w);
        if r > 0.8 * radius {
            (rim, rim_wanted) = (rim + f - w, rim_wanted + w);
        }
    }
    let mean = wanted / n;
    [sum / wanted, (square / n).sqrt() / mean, rim / rim_wanted]
}

/// A detector that does not see the whole body on both sides, or on one; parallel rays, a fan over a turn and
/// in a short scan, a shifted detector. The value in the field of view is right to some percent, where air
/// beyond the detector makes the rim half as bright again.
#[test]
fn truncated_rows_keep_the_values_in_the_field_of_view() {
    let device = Device::cpu().unwrap();
    let grid = VolumeGrid::new([1, 80, 80], [1.0; 3], [0.0; 3]).unwrap();
    let fan = Orbit { source_to_axis_mm: Some(200.0), axis_to_detector_mm: 100.0, ..Orbit::default() };
    let parallel = Orbit::default();
    let half = |offset: f64| Orbit { offset_mm: [offset, 0.0], ..parallel.clone() };
    // Columns, their pitch, the path, and on which sides rows end inside the body.
    let cases = [
        (40, 1.0, parallel.clone().arc(0.0, PI, 180), [true, true]),
        (60, 1.0, half(-18.0).arc(0.0, PI, 180), [false, true]),
        (60, 1.0, half(18.0).arc(0.3, PI, 180), [true, false]),
        (48, 1.2, fan.clone().arc(0.0, TAU, 240), [true, true]),
        (48, 1.2, fan.clone().arc(0.2, 1.3 * PI, 240), [true, true]),
        // The short side ends near the axis by design: the other half of the turn continues it.
        (32, 1.0, half(9.0).arc(0.0, TAU, 360), [false, true]),
        (32, 1.0, half(-9.0).arc(0.0, TAU, 360), [true, false]),
    ];
    for (at, (columns, pitch, orbit, sides)) in cases.into_iter().enumerate() {
        let detector = Detector { rows: 1, columns, pitch_mm: [pitch; 2], radius_mm: None };
        let geometry = ProjectionGeometry::orbit(detector, &orbit).unwrap();
        let lines = body().project(device.cpu_side(), &geometry).unwrap();
        let truth = body().volume(device.cpu_side(), &grid).unwrap();
        let of = |extend| {
            let filter = Filter { extend, ..Filter::default() };
            let method = FilteredBackprojection::new(&device, &geometry, &grid, filter).unwrap();
            let counts = method.ends(&lines, 0..geometry.views().len()).unwrap().count();
            let volume =
                method.reconstruct(Array::from_slice(&device, &geometry.shape(), &lines).unwrap()).unwrap();
            let errors = errors_within(&grid, method.seen_radius_mm(), &volume.to_vec().unwrap(), &truth);
            (counts, errors)
        };
        let (counts, [mean, square, rim]) = of(Extend::Auto);
        println!(
            "{at}: {counts:?} mean {mean:.3} square {square:.3} rim {rim:.3}, plain {:?}, edge {:?}",
            of(Extend::None).1,
            of(Extend::Edge).1
        );
        let most = geometry.views().len();
        assert!([0, 1].iter().all(|&side| (counts[side] > most / 2) == sides[side]), "{at}: {counts:?}");
        assert!(mean.abs() < 0.08 && square < 0.1 && rim.abs() < 0.09, "{at}: {mean} {square} {rim}");
        let (_, [_, _, plain]) = of(Extend::None);
        assert!(plain > 0.1 && plain > 4.0 * rim.abs(), "{at}: {plain} {rim}");
        assert_eq!(of(Extend::None).0, [0, 0]);
    }
}

/// Rows that end in air stay as they are, bit for bit, with noise as well.
#[test]
fn rows_that_end_in_air_are_not_extended() {
    let device = Device::cpu().unwrap();
    let grid = VolumeGrid::new([1, 80, 80], [1.0; 3], [0.0; 3]).unwrap();
    for orbit in
        [Orbit::default().arc(0.0, PI, 90), Orbit { offset_mm: [28.0, 0.0], ..Orbit::default() }.turn(90)]
    {
        let columns = if orbit.offset_mm[0] > 0.0 { 60 } else { 90 };
        let detector = Detector { rows: 2, columns, pitch_mm: [1.0; 2], radius_mm: None };
        let geometry = ProjectionGeometry::orbit(detector, &orbit).unwrap();
        let mut lines = body().project(device.cpu_side(), &geometry).unwrap();
        for (at, value) in lines.iter_mut().enumerate() {
            *value += 0.05 * ((at * 7919 % 1009) as f32 / 504.5 - 1.0);
        }
        let volume = |extend| {
            let filter = Filter { extend, ..Filter::default() };
            let method = FilteredBackprojection::new(&device, &geometry, &grid, filter).unwrap();
            let lines = Array::from_slice(&device, &geometry.shape(), &lines).unwrap();
            method.reconstruct(lines).unwrap().to_vec().unwrap()
        };
        assert!(volume(Extend::Edge) != volume(Extend::None) && volume(Extend::Auto) == volume(Extend::None));
    }
}

/// The extension is the convolution of longer rows, on a GPU and through Fourier space as well. There are
/// more views than are extended at a time.
#[test]
fn an_extension_is_a_longer_row() {
    let cpu = Device::cpu().unwrap();
    let grid = VolumeGrid::new([3, 41, 40], [0.9; 3], [0.0; 3]).unwrap();
    let detector = Detector { rows: 4, columns: 36, pitch_mm: [1.0; 2], radius_mm: None };
    let geometry = ProjectionGeometry::orbit(detector, &Orbit::default().arc(0.0, PI, 70)).unwrap();
    let lines = body().project(cpu.cpu_side(), &geometry).unwrap();
    let filter = Filter { window: Window::Hann, cutoff: 0.8, extend: Extend::Edge };
    // A detector that sees the last values up to its own width beyond the ends.
    let wide = Detector { columns: 3 * 36, ..detector };
    let wide = ProjectionGeometry::orbit(wide, &Orbit::default().arc(0.0, PI, 70)).unwrap();
    let extended = lines.chunks(36).flat_map(|row| {
        let mean = |values: &[f32]| values.iter().sum::<f32>() / values.len() as f32;
        let (first, last) = (mean(&row[..2]), mean(&row[34..]));
        [vec![first; 36], row.to_vec(), vec![last; 36]].concat()
    });
    let plain =
        FilteredBackprojection::new(&cpu, &wide, &grid, Filter { extend: Extend::None, ..filter }).unwrap();
    let extended = Array::from_vec(&cpu, &wide.shape(), extended.collect()).unwrap();
    let wanted = plain.filter(extended, 0..70).unwrap().to_vec().unwrap();
    let wanted: Vec<f32> = wanted.chunks(3 * 36).flat_map(|row| row[36..72].to_vec()).collect();
    // The share of a view, times the largest line integral: what the sums of a row round.
    let largest = lines.iter().fold(0.0f32, |most, value| most.max(value.abs())) * (PI / 70.0) as f32;
    for device in [cpu.clone(), rayspin_emu::Emulator::device().unwrap()] {
        let method = FilteredBackprojection::new(&device, &geometry, &grid, filter).unwrap();
        let values = Array::from_slice(method.filter_device(), &geometry.shape(), &lines).unwrap();
        let found = method.filter(values, 0..70).unwrap().to_vec().unwrap();
        let apart = found.iter().zip(&wanted).fold(0.0f32, |most, (f, w)| most.max((f - w).abs()));
        assert!(apart < 1e-5 * largest, "{apart} of {largest}");
    }
    let direct = FilteredBackprojection::new(&cpu, &geometry, &grid, filter).unwrap();
    let values = Array::from_slice(&cpu, &geometry.shape(), &lines).unwrap();
    let direct = direct.reconstruct(values).unwrap().to_vec().unwrap();
    let fourier = FourierBackprojection::new(&cpu, &geometry, &grid, filter, 1e-5).unwrap();
    let found = fourier.slices(&lines, 0..3).unwrap();
    let mean = direct.iter().sum::<f32>() / direct.len() as f32;
    let apart = found.iter().zip(&direct).map(|(f, w)| (f - w).abs()).sum::<f32>() / direct.len() as f32;
    assert!(apart < 0.02 * mean, "{apart} of {mean}");
}

/// A detector of few columns in the middle of a body, and one of single columns.
#[test]
fn narrow_detectors_keep_the_values_in_the_field_of_view() {
    let device = Device::cpu().unwrap();
    let grid = VolumeGrid::new([1, 80, 80], [1.0; 3], [0.0; 3]).unwrap();
    let disc =
        Phantom::new(vec![Solid::new(Form::Cylinder, [1.0, -2.0, 0.0], [36.0, 33.0, 1e4], 0.02)]).unwrap();
    let truth = disc.volume(device.cpu_side(), &grid).unwrap();
    for (columns, most) in [(6, 0.08), (10, 0.08), (15, 0.05), (16, 0.05), (20, 0.05), (30, 0.05)] {
        let detector = Detector { rows: 1, columns, pitch_mm: [1.0; 2], radius_mm: None };
        let geometry = ProjectionGeometry::orbit(detector, &Orbit::default().arc(0.0, PI, 90)).unwrap();
        let lines = disc.project(device.cpu_side(), &geometry).unwrap();
        let of = |extend| {
            let filter = Filter { extend, ..Filter::default() };
            let method = FilteredBackprojection::new(&device, &geometry, &grid, filter).unwrap();
            let volume =
                method.reconstruct(Array::from_slice(&device, &geometry.shape(), &lines).unwrap()).unwrap();
            errors_within(&grid, method.seen_radius_mm(), &volume.to_vec().unwrap(), &truth)[0]
        };
        assert!(of(Extend::Auto).abs() < most && of(Extend::None) > 0.5, "{columns}: {}", of(Extend::Auto));
    }
}

/// Columns at the end of the detector that are much brighter than those beside them, and views of few columns
/// that end in air.
#[test]
fn broken_columns_and_coarse_scans_are_not_extended() {
    let device = Device::cpu().unwrap();
    let grid = VolumeGrid::new([1, 80, 80], [1.0; 3], [0.0; 3]).unwrap();
    let count = |geometry: &ProjectionGeometry, lines: &[f32]| {
        let method = FilteredBackprojection::new(&device, geometry, &grid, Filter::default()).unwrap();
        method.ends(lines, 0..geometry.views().len()).unwrap().count()
    };
    let detector = Detector { rows: 1, columns: 90, pitch_mm: [1.0; 2], radius_mm: None };
    let geometry = ProjectionGeometry::orbit(detector, &Orbit::default().arc(0.0, PI, 60)).unwrap();
    let lines = body().project(device.cpu_side(), &geometry).unwrap();
    for broken in [1, 2] {
        let broken: Vec<f32> =
            lines.iter().enumerate().map(|(at, value)| if at % 90 < broken { 4.0 } else { *value }).collect();
        assert_eq!(count(&geometry, &broken), [0, 0]);
    }
    let fan = Orbit { source_to_axis_mm: Some(300.0), axis_to_detector_mm: 100.0, ..Orbit::default() };
    for columns in [8, 12, 16, 24, 32, 48] {
        for orbit in [Orbit::default().arc(0.0, PI, 60), fan.clone().turn(60)] {
            // As wide as the body with a column of air on both sides.
            let wide = if orbit.source_to_axis_mm.is_some() { 37.5 * 8.0 / 3.0 } else { 76.0 };
            let pitch = wide / (columns - 2) as f64;
            let detector = Detector { rows: 1, columns, pitch_mm: [pitch; 2], radius_mm: None };
            let geometry = ProjectionGeometry::orbit(detector, &orbit).unwrap();
            let lines = body().project(device.cpu_side(), &geometry).unwrap();
            assert_eq!(count(&geometry, &lines), [0, 0], "{columns}");
        }
    }
}
