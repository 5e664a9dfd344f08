use proptest::prelude::*;
use rayspin_core::{Detector, Orbit};
use rayspin_device::Device;
use rayspin_imaging::phantom::Contrast;

use super::*;

fn solids() -> impl Strategy<Value = Solid> {
    let form = prop_oneof![
        Just(Form::Ellipsoid),
        Just(Form::Cylinder),
        Just(Form::Box),
        (0.0f64..2.5).prop_map(Form::Cone)
    ];
    let place = (prop::array::uniform3(-10.0f64..10.0), prop::array::uniform3(1.0f64..15.0), -3.0f64..3.0);
    (form, place, prop::option::of((-3.0f64..3.0, -3.0f64..3.0, -5.0f64..5.0))).prop_map(
        |(form, (centre, half, angle), cut)| {
            let mut solid = Solid::new(form, centre, half, 0.5).turned(angle);
            // About another axis too.
            solid.axes.rotate_right(1);
            solid = solid.turned(0.7 * angle);
            match cut {
                None => solid,
                Some((a, b, offset)) => solid.cut([a.cos() * b.sin(), a.sin() * b.sin(), b.cos()], offset),
            }
        },
    )
}

proptest! {
    /// The closed form is the sum over fine steps along the line.
    #[test]
    fn line_integrals_are_sums_along_the_line(
        solids in prop::collection::vec(solids(), 1..4),
        start in prop::array::uniform3(-30.0f64..30.0),
        end in prop::array::uniform3(-30.0f64..30.0),
        replace in any::<bool>(),
    ) {
        let mut solids = solids;
        solids.iter_mut().enumerate().for_each(|(at, solid)| solid.attenuation += 0.1 * at as f64);
        let phantom = if replace { Phantom::replacing(solids) } else { Phantom::new(solids) }.unwrap();
        let steps = 20_000;
        let point = |t: f64| std::array::from_fn(|axis| start[axis] + t * (end[axis] - start[axis]));
        let length = start.iter().zip(end).map(|(s, e)| (s - e) * (s - e)).sum::<f64>().sqrt();
        let sum: f64 = (0..steps).map(|i| phantom.at(point((f64::from(i) + 0.5) / f64::from(steps)))).sum();
        let wanted = sum * length / f64::from(steps);
        let found = phantom.line_integral(start, end);
        // Two ends of each chord, half a step each.
        let tolerance = 3.0 * 2.0 * 0.7 * length / f64::from(steps) + 1e-9;
        prop_assert!((found - wanted).abs() <= tolerance, "{found} for {wanted}");
        prop_assert!((phantom.line_integral(end, start) - found).abs() < 1e-9);
    }

    #[test]
    fn a_moved_phantom_is_seen_along_moved_lines(solid in solids(), by in prop::array::uniform3(-5.0f64..5.0)) {
        let phantom = Phantom::new(vec![solid]).unwrap();
        let (start, end) = ([-20.0, 3.0, 1.0], [25.0, -4.0, 2.0]);
        let shift = |p: [f64; 3]| std::array::from_fn(|axis| p[axis] + by[axis]);
        let moved = phantom.clone().moved(by).line_integral(shift(start), shift(end));
        prop_assert!((moved - phantom.line_integral(start, end)).abs() < 1e-9);
    }
}

#[test]
fn voxels_hold_the_mass_of_the_phantom() {
    let device = Device::cpu().unwrap();
    let ball =
        Phantom::new(vec![Solid::new(Form::Ellipsoid, [1.0, 2.0, 0.5], [9.0, 7.0, 5.0], 0.03)]).unwrap();
    let grid = VolumeGrid::new([24, 30, 32], [0.7, 0.8, 0.6], [1.0, 2.0, 0.0]).unwrap();
    let volume = ball.volume(device.cpu_side(), &grid).unwrap();
    let mass: f64 = volume.iter().map(|&v| f64::from(v)).sum::<f64>() * 0.7 * 0.8 * 0.6;
    let wanted = 0.03 * 4.0 / 3.0 * std::f64::consts::PI * 9.0 * 7.0 * 5.0;
    assert!((mass / wanted - 1.0).abs() < 2e-3, "{mass} for {wanted}");
}

#[test]
fn parallel_rays_have_no_ends_and_sources_inside_see_the_rest() {
    let cylinder =
        Phantom::new(vec![Solid::new(Form::Cylinder, [0.0; 3], [10.0, 10.0, f64::INFINITY], 0.1)]).unwrap();
    let detector = Detector { rows: 1, columns: 1, pitch_mm: [1.0; 2], radius_mm: None };
    let parallel = Orbit { axis_to_detector_mm: 1.0, ..Orbit::default() }.turn(1);
    let inside =
        Orbit { source_to_axis_mm: Some(4.0), axis_to_detector_mm: 30.0, ..Orbit::default() }.turn(1);
    let beyond =
        Orbit { source_to_axis_mm: Some(40.0), axis_to_detector_mm: 3.0, ..Orbit::default() }.turn(1);
    for (orbit, length) in [(parallel, 20.0), (inside, 14.0), (beyond, 13.0)] {
        let geometry = ProjectionGeometry::orbit(detector, &orbit).unwrap();
        assert!((cylinder.ray(&geometry, 0, 0, 0) - 0.1 * length).abs() < 1e-12);
    }
}

#[test]
fn heads_stand_upright_and_discs_lie_apart() {
    let head = Phantom::shepp_logan(2, 200.0, Contrast::Standard, 0.02).unwrap();
    assert!((head.at([0.0; 3]) - 0.02 * 1.02).abs() < 1e-12);
    // Three small ellipses lie near the bottom, at large y.
    let near_the_bottom = head.at([0.0, 60.6, 0.0]);
    assert!((near_the_bottom - 0.02 * 1.03).abs() < 1e-12, "{near_the_bottom}");
    let discs = Phantom::defrise(100.0, 0.01).unwrap();
    let line = discs.line_integral([5.0, 5.0, -100.0], [5.0, 5.0, 100.0]);
    assert!((line - 7.0 * 2.5 * 0.01).abs() < 1e-12);
    for bad in [
        Phantom::shepp_logan(4, 1.0, Contrast::Standard, 1.0),
        Phantom::defrise(-1.0, 1.0),
        Phantom::defrise(1.0, f64::NAN),
    ] {
        assert!(bad.is_err());
    }
}

/// Values that the definition has at points of each part.
#[test]
fn the_forbild_head_has_its_parts() {
    let head = Phantom::forbild_head(1.0).unwrap();
    for (x, y, z, wanted) in [
        (0.0, 0.0, 12.2, 1.8),    // skull
        (0.0, -11.7, 0.0, 1.8),   // skull in front
        (3.0, 1.0, 0.0, 1.05),    // brain
        (0.0, -3.6, 0.0, 1.045),  // ventricle
        (0.0, 8.4, 2.5, 0.0),     // frontal sinus
        (-4.7, 4.3, 0.872, 1.06), // eye
        (1.08, -9.0, 0.0, 1.0475),
        (-1.08, -9.0, 0.0, 1.0525),
        (6.393945, -6.393945, 0.0, 1.055), // haematoma
        (9.05, 0.0, 1.0, 1.8),             // inner ear
        (8.8, 0.0, 0.0, 0.0),              // a bubble in it
        (0.0, -10.8, 0.2, 1.8),            // the cone
        (-7.0, -1.0, 0.0, 1.8),            // the pattern of the left ear
        (-6.97, -1.0, 0.0, 1.05),          // beside it
        (11.0, 0.0, 0.0, 0.0),
    ] {
        let found = head.at([10.0 * x, 10.0 * y, 10.0 * z]);
        assert!((found - wanted).abs() < 1e-12, "{found} for {wanted} at {x}, {y}, {z} cm");
    }
    assert_eq!(head.solids().len(), 479);
    // Through the middle along z: skull 2 · 0.6 cm, brain and ventricle between.
    let line = head.line_integral([0.0, -36.0, -200.0], [0.0, -36.0, 200.0]);
    let chord = |half: f64, c: f64| 20.0 * c * (1.0 - (3.6f64 / half).powi(2)).sqrt();
    let wanted =
        1.8 * (chord(12.0, 12.5) - chord(11.4, 11.9)) + 1.05 * (chord(11.4, 11.9) - 72.0) + 1.045 * 72.0;
    assert!((line - wanted).abs() < 1e-9, "{line} for {wanted}");
}

#[test]
fn materials_add_up_to_the_phantom() {
    let heads = [
        Phantom::forbild_head(0.02).unwrap(),
        Phantom::shepp_logan(3, 200.0, Contrast::Standard, 0.02).unwrap(),
    ];
    for head in heads {
        let [tissue, bone] = head.materials();
        let mut found = [0, 0];
        for at in 0..4000usize {
            let part = |step: usize| (at * step % 4001) as f64 / 4001.0 - 0.5;
            let point = [200.0 * part(7), 250.0 * part(523), 250.0 * part(1999)];
            let parts = [tissue.at(point), bone.at(point)];
            assert!((parts[0] + parts[1] - head.at(point)).abs() < 1e-12, "{point:?}");
            found[0] += usize::from(parts[0] > 1e-9);
            found[1] += usize::from(parts[1] > 1e-9);
        }
        assert!(found[0] > 500 && found[1] > 40 && found[1] < found[0], "{found:?}");
    }
}
