use std::f64::consts::{PI, TAU};

use proptest::prelude::*;

use super::*;

fn detector(radius_mm: Option<f64>) -> Detector {
    Detector { rows: 4, columns: 7, pitch_mm: [2.0, 3.0], radius_mm }
}

fn orbit() -> Orbit {
    Orbit { source_to_axis_mm: Some(500.0), axis_to_detector_mm: 300.0, ..Orbit::default() }
}

#[test]
fn a_quarter_of_a_turn_takes_the_source_from_minus_y_to_plus_x() {
    let geometry = ProjectionGeometry::orbit(detector(None), &orbit().arc(0.0, TAU, 4)).unwrap();
    let (source, pixel) = geometry.ray(1, 0, 6);
    for (found, wanted) in source.into_iter().chain(pixel).zip([500.0, 0.0, 0.0, -300.0, 6.0, -4.5]) {
        assert!((found - wanted).abs() < 1e-9, "{source:?} {pixel:?}");
    }
}

#[test]
fn an_orbit_around_the_source_has_pixels_at_one_distance() {
    let geometry = ProjectionGeometry::orbit(detector(Some(800.0)), &orbit().turn(5)).unwrap();
    for column in 0..7 {
        let (source, pixel) = geometry.ray(3, 0, column);
        let flat = sub(pixel, source);
        assert!(((flat[0] * flat[0] + flat[1] * flat[1]).sqrt() - 800.0).abs() < 1e-9);
    }
}

#[test]
fn helices_rise_and_half_fans_shift() {
    let path =
        Orbit { advance_mm: 10.0, height_mm: 1.0, offset_mm: [20.0, 3.0], ..orbit() }.arc(0.0, 2.0 * TAU, 5);
    let geometry = ProjectionGeometry::orbit(detector(None), &path).unwrap();
    let heights: Vec<f64> = (0..5).map(|view| geometry.ray(view, 0, 0).0[2]).collect();
    assert!(
        heights.iter().zip([-7.0, -3.0, 1.0, 5.0, 9.0]).all(|(a, b)| (a - b).abs() < 1e-9),
        "{heights:?}"
    );
    let View { detector_mm, u, .. } = geometry.views()[2];
    assert!((dot(detector_mm, u) - 20.0).abs() < 1e-9 && (detector_mm[2] - 4.0).abs() < 1e-9);
}

#[test]
fn a_short_scan_covers_half_a_turn_and_the_fan() {
    assert!((orbit().short_scan(250.0).unwrap() - (PI + 2.0 * PI / 6.0)).abs() < 1e-12);
    assert_eq!(Orbit::default().short_scan(1e9).unwrap(), PI);
    assert!(orbit().short_scan(500.0).is_err() && orbit().short_scan(f64::NAN).is_err());
}

#[test]
fn geometries_without_sense_are_refused() {
    let refused = |detector: Detector, orbit: Orbit| {
        ProjectionGeometry::orbit(detector, &orbit).unwrap_err().to_string()
    };
    let good = detector(None);
    for (text, message) in [
        (refused(good, orbit()), "views"),
        (refused(Detector { rows: 0, ..good }, orbit().turn(3)), "detector"),
        (refused(Detector { rows: usize::MAX, ..good }, orbit().turn(3)), "shape"),
        (refused(Detector { pitch_mm: [0.0, 1.0], ..good }, orbit().turn(3)), "distance between pixels"),
        (refused(Detector { radius_mm: Some(2.0), ..good }, orbit().turn(3)), "radius of the detector"),
        (refused(good, Orbit { source_to_axis_mm: Some(0.0), ..orbit() }.turn(3)), "source to the axis"),
        (refused(good, Orbit { source_to_axis_mm: Some(-1.0), ..orbit() }.turn(3)), "source to the axis"),
        (refused(good, Orbit { axis_to_detector_mm: f64::NAN, ..orbit() }.turn(3)), "axis to the detector"),
        (refused(good, Orbit { offset_mm: [f64::NAN, 0.0], ..orbit() }.turn(3)), "view 0"),
        (refused(good, orbit().arc(0.0, f64::INFINITY, 3)), "angles"),
    ] {
        assert!(text.starts_with(message) || text.contains(message), "{text} has no {message}");
    }
    let view = View {
        source: RaySource::Point([0.0, -5.0, 0.0]),
        detector_mm: [0.0; 3],
        u: [1.0, 0.0, 0.0],
        v: [0.0, 0.0, 1.0],
    };
    let refused = |views: &[View]| ProjectionGeometry::new(good, views.to_vec()).unwrap_err().to_string();
    for (text, message) in [
        (refused(&[View { u: [1.1, 0.0, 0.0], ..view }]), "unit length"),
        (refused(&[View { v: [-1.0, 0.0, 0.0], ..view }]), "different directions"),
        (refused(&[View { source: RaySource::Point([3.0, 0.0, 1.0]), ..view }]), "away from the plane"),
        (refused(&[View { source: RaySource::Point([0.0; 3]), ..view }]), "away from the plane"),
        (refused(&[view, View { source: RaySource::Direction([0.0, 1.0, 0.0]), ..view }]), "view 1"),
        (refused(&[View { source: RaySource::Direction([0.0, 2.0, 0.0]), ..view }]), "unit length"),
        (refused(&[View { source: RaySource::Direction([1.0, 0.0, 0.0]), ..view }]), "meet the detector"),
    ] {
        assert!(text.contains(message), "{text} has no {message}");
    }
}

#[test]
fn a_skewed_detector_is_read_along_its_own_rows_and_columns() {
    let slanted = View {
        source: RaySource::Point([20.0, -500.0, 30.0]),
        detector_mm: [-7.0, 300.0, 4.0],
        u: [0.8, 0.6, 0.0],
        v: [0.28, 0.0, 0.96],
    };
    let parallel = View { source: RaySource::Direction([0.0, 0.96, 0.28]), ..slanted };
    for view in [slanted, parallel] {
        let geometry = ProjectionGeometry::new(detector(None), vec![view]).unwrap();
        let normal = view.towards_source();
        let dot = |a: [f64; 3], b: [f64; 3]| (0..3).map(|axis| a[axis] * b[axis]).sum::<f64>();
        assert!((dot(normal, normal) - 1.0).abs() < 1e-12 && dot(normal, view.v).abs() < 1e-12);
        for (row, column) in [(0.0, 0.0), (2.5, 7.0), (-3.0, 11.25)] {
            let (start, end) = (geometry.ray(0, 0, 0).0, geometry.pixel_mm(0, row, column));
            let before = std::array::from_fn(|axis| match view.source {
                RaySource::Point(_) => start[axis] + 0.3 * (end[axis] - start[axis]),
                RaySource::Direction(along) => end[axis] - 90.0 * along[axis],
            });
            let [found_row, found_column] = geometry.project(0, before).unwrap();
            assert!((found_row - row).abs() < 1e-9 && (found_column - column).abs() < 1e-9);
        }
        assert!(
            view.expect_square(3, " of a test")
                .unwrap_err()
                .to_string()
                .starts_with("rays of view 3 of a test")
        );
        let curved = ProjectionGeometry::new(detector(Some(900.0)), vec![view]).unwrap_err().to_string();
        assert!(curved.contains("right angles"), "{curved}");
    }
}

#[test]
fn points_beside_and_behind_the_source_have_no_pixel() {
    for radius in [None, Some(900.0)] {
        let geometry = ProjectionGeometry::orbit(detector(radius), &orbit().turn(1)).unwrap();
        assert_eq!(geometry.project(0, [0.0, -600.0, 0.0]), None);
        assert_eq!(geometry.project(0, [10.0, -500.0, 0.0]), None);
        let [row, column] = geometry.project(0, [0.0; 3]).unwrap();
        assert!((row - 1.5).abs() < 1e-9 && (column - 3.0).abs() < 1e-9);
    }
}

proptest! {
    /// Every point between source and pixel falls on the pixel.
    #[test]
    fn a_point_of_a_ray_is_seen_by_its_pixel(
        parallel in any::<bool>(),
        curved in any::<bool>(),
        flips in prop::array::uniform2(any::<bool>()),
        angles in prop::array::uniform3(-3.0f64..3.0),
        at in prop::array::uniform2(-2.0f64..9.0),
        part in 0.05f64..1.0,
    ) {
        // A detector that is turned about three axes, away from any orbit.
        let [yaw, pitch, roll] = [angles[0], 0.3 * angles[1], angles[2]];
        let path = Orbit { offset_mm: [13.0, -7.0], tilt: roll, height_mm: 5.0, ..orbit() };
        let path = Orbit { source_to_axis_mm: (!parallel).then_some(500.0), ..path }.arc(yaw, 1.0, 1);
        let upright = ProjectionGeometry::orbit(detector(curved.then_some(700.0)), &path).unwrap();
        let mut view = upright.views()[0];
        // Turn v out of the plane.
        view.v = add(scaled(view.v, pitch.cos()), scaled(cross(view.u, view.v), pitch.sin()));
        if flips[0] { view.u = scaled(view.u, -1.0); }
        if flips[1] { view.v = scaled(view.v, -1.0); }
        let geometry = ProjectionGeometry::new(*upright.detector(), vec![view]).unwrap();
        let pixel = geometry.pixel_mm(0, at[0], at[1]);
        let source = match view.source {
            RaySource::Point(point) => point,
            RaySource::Direction(direction) => sub(pixel, scaled(direction, 900.0)),
        };
        let point = add(source, scaled(sub(pixel, source), part));
        let [row, column] = geometry.project(0, point).unwrap();
        prop_assert!((row - at[0]).abs() < 1e-7 && (column - at[1]).abs() < 1e-7, "{row} {column}");
    }
}
