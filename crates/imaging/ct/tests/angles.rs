//! Angles that are uneven, repeated or missing, beside plain sums in f64 and beside an even scan.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::f64::consts::{FRAC_PI_2, PI, TAU};

use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use rayspin_core::{Detector, Monitor, Orbit, ProjectionGeometry, VolumeGrid};
use rayspin_ct::analytic::{Filter, FilteredBackprojection, FourierBackprojection, Turn};
use rayspin_ct::methods::{Cgls, Fbp, Fdk, Method, OsSart};
use rayspin_ct::phantom::{Form, Phantom, Solid};
use rayspin_ct::recon::{Arriving, ReconOptions, reconstruct};
use rayspin_ct::scan::{angle_notes, view_angles};
use rayspin_ct::simulate::{Beam, beam_lines};
use rayspin_device::{Array, Device};

const COLUMNS: usize = 100;
const N: usize = 64;

fn steps(first: f64, last: f64, step: f64) -> Vec<f64> {
    let count = ((last - first) / step).round() as usize;
    (0..count).map(|at| first + step * at as f64).collect()
}

fn without(mut angles: Vec<f64>, gap: std::ops::Range<f64>) -> Vec<f64> {
    angles.retain(|angle| !gap.contains(angle));
    angles
}

fn phantom() -> Phantom {
    let rod = |x: f64, y: f64, a: f64, b: f64, value: f64| {
        Solid::new(Form::Cylinder, [x, y, 0.0], [a, b, 1e4], value)
    };
    let solids = vec![
        rod(2.0, -1.0, 26.0, 20.0, 0.03),
        rod(-8.0, 6.0, 5.0, 7.0, -0.01),
        rod(11.0, -4.0, 4.0, 4.0, 0.02),
    ];
    Phantom::new(solids).unwrap()
}

fn grid() -> VolumeGrid {
    VolumeGrid::new([1, N, N], [1.0; 3], [0.0; 3]).unwrap()
}

/// Rays at these angles, degrees, whose axis falls on the column `axis`; `rows` of a fan or a cone, 0 of
/// parallel rays.
fn rays(rows: usize, degrees: &[f64], axis: f64, columns: usize) -> ProjectionGeometry {
    let pitch = if rows == 0 { 0.8 } else { 1.0 };
    let detector = Detector { rows: rows.max(1), columns, pitch_mm: [pitch; 2], radius_mm: None };
    let orbit = Orbit {
        angles: degrees.iter().map(|angle| angle.to_radians()).collect(),
        source_to_axis_mm: (rows > 0).then_some(240.0),
        axis_to_detector_mm: 60.0,
        offset_mm: [(0.5 * (columns - 1) as f64 - axis) * pitch, 0.0],
        ..Orbit::default()
    };
    ProjectionGeometry::orbit(detector, &orbit).unwrap()
}

struct Made {
    slice: Vec<f32>,
    lines: Vec<f32>,
    notes: Vec<String>,
    /// The mean of the rod beside the truth's, and the relative error within the rod and around it.
    mean: f64,
    error: f64,
}

fn made(geometry: &ProjectionGeometry) -> Made {
    let device = Device::cpu().unwrap();
    let beam = Beam { rays: 3, ..Default::default() };
    let angles = view_angles(geometry);
    let scan = beam_lines(device.cpu_side(), &phantom(), geometry, &angles, &beam).unwrap();
    let lines: Vec<f32> = scan.into_lines(device.cpu_side(), &mut Vec::new()).unwrap().into_iter().collect();
    let method = FilteredBackprojection::new(&device, geometry, &grid(), Filter::default()).unwrap();
    let array = Array::from_vec(&device, &geometry.shape(), lines.clone()).unwrap();
    let slice = method.reconstruct(array).unwrap().to_vec().unwrap();
    let (mean, error) = quality(&slice);
    Made { slice, lines, notes: method.notes().to_vec(), mean, error }
}

/// The mean of the large rod beside the truth's, and the relative error within it and around it.
fn quality(slice: &[f32]) -> (f64, f64) {
    let device = Device::cpu().unwrap();
    let truth = phantom().volume(device.cpu_side(), &grid()).unwrap();
    let (mut sums, mut squares) = ([0.0; 2], [0.0; 2]);
    for (at, (&found, &truth)) in slice.iter().zip(&truth).enumerate() {
        let place = |at: usize| at as f64 - 0.5 * (N - 1) as f64;
        if place(at % N).hypot(place(at / N)) > 29.0 {
            continue;
        }
        let (found, truth) = (f64::from(found), f64::from(truth));
        squares = [squares[0] + (found - truth).powi(2), squares[1] + truth * truth];
        if (truth - 0.03).abs() < 1e-6 {
            sums = [sums[0] + found, sums[1] + truth];
        }
    }
    (sums[0] / sums[1], (squares[0] / squares[1]).sqrt())
}

/// Half of the gaps on both sides of each angle around a circle.
fn trapezoid(angles: &[f64], period: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..angles.len()).collect();
    let angle = |at: usize| angles[at].rem_euclid(period);
    order.sort_by(|&a, &b| angle(a).total_cmp(&angle(b)));
    let count = order.len();
    let gap = |at: usize| (angle(order[(at + 1) % count]) - angle(order[at])).rem_euclid(period);
    let mut weights = vec![0.0; count];
    for (at, &view) in order.iter().enumerate() {
        weights[view] = 0.5 * (gap(at) + gap((at + count - 1) % count));
    }
    weights
}

/// Filtered back-projection of parallel rays as plain as its formula. `redundancy` is a ray's weight by its
/// distance from the axis.
fn plain(
    geometry: &ProjectionGeometry,
    lines: &[f32],
    period: f64,
    redundancy: impl Fn(f64) -> f64,
) -> Vec<f64> {
    let (pitch, columns) = (geometry.detector().pitch_mm[0], geometry.detector().columns);
    let angles = view_angles(geometry);
    let kernel = |k: usize| match k {
        0 => 0.25,
        k if k % 2 == 0 => 0.0,
        k => -1.0 / (PI * k as f64).powi(2),
    };
    let mut slice = vec![0.0; N * N];
    for (view, weight) in trapezoid(&angles, period).into_iter().enumerate() {
        let axis = geometry.project(view, [0.0; 3]).unwrap()[1];
        let row: Vec<f64> = (0..columns)
            .map(|c| f64::from(lines[view * columns + c]) * redundancy((c as f64 - axis) * pitch))
            .collect();
        // As far beyond the detector as the slice reaches.
        let (before, all) = (60, columns + 120);
        let filtered: Vec<f64> = (0..all)
            .map(|at| {
                (0..columns)
                    .map(|c| row[c] * kernel((at as isize - before - c as isize).unsigned_abs()))
                    .sum::<f64>()
                    / pitch
            })
            .collect();
        for (at, value) in slice.iter_mut().enumerate() {
            let place = |at: usize| at as f64 - 0.5 * (N - 1) as f64;
            let s = (place(at % N) * angles[view].cos() + place(at / N) * angles[view].sin()) / pitch
                + axis
                + before as f64;
            let share = s - s.floor();
            let at = s as usize;
            *value += weight * ((1.0 - share) * filtered[at] + share * filtered[at + 1]);
        }
    }
    slice
}

fn apart(found: &[f32], wanted: &[f64], radius: f64) -> f64 {
    let place = |at: usize| at as f64 - 0.5 * (N - 1) as f64;
    let inside = |at: &usize| place(at % N).hypot(place(at / N)) < radius;
    (0..N * N).filter(inside).map(|at| (f64::from(found[at]) - wanted[at]).abs()).fold(0.0, f64::max)
}

/// Sets of angles that cover a whole turn or, over half of it, parallel rays.
fn covering(span: f64, rng: &mut ChaCha8Rng) -> Vec<(&'static str, Vec<f64>)> {
    let noisy = |angles: Vec<f64>, by: f64, rng: &mut ChaCha8Rng| -> Vec<f64> {
        angles.into_iter().map(|angle| angle + rng.random_range(-by..by)).collect()
    };
    let frames: Vec<f64> = steps(0.0, span, 2.5).into_iter().flat_map(|angle| [angle; 3]).collect();
    vec![
        ("even", steps(7.0, 7.0 + span, 2.5)),
        ("jittered", noisy(steps(0.0, span, 2.5), 0.6, rng)),
        ("repeated", frames.clone()),
        ("repeated with noise", noisy(frames, 0.003, rng)),
        ("several turns with noise", noisy(steps(-40.0, 3.0 * span - 40.0, 2.5), 0.003, rng)),
        ("several turns with other steps", steps(0.0, 2.0 * span, 2.31)),
        ("two steps", [steps(0.0, 50.0, 0.2), steps(50.0, span, 2.5)].concat()),
        ("random", (0..250).map(|_| rng.random_range(0.0..span)).collect()),
        ("golden", (0..233).map(|view| (f64::from(view) * 111.246_117_975).rem_euclid(span)).collect()),
        ("two gaps", without(without(steps(0.0, span, 2.5), 31.0..36.0), 111.0..116.0)),
    ]
}

#[test]
fn uneven_angles_of_parallel_rays_weigh_as_plain_sums() {
    let mut rng = ChaCha8Rng::seed_from_u64(81);
    let axis = 0.5 * (COLUMNS - 1) as f64;
    let even = made(&rays(0, &steps(0.0, 180.0, 2.5), axis, COLUMNS)).error;
    let mut sets = covering(180.0, &mut rng);
    sets.push(("a gap", without(steps(0.0, 180.0, 2.5), 80.0..90.0)));
    sets.push(("more than half a turn", steps(0.0, 250.0, 2.5)));
    sets.push(("a gap that opposite views fill", without(steps(0.0, 360.0, 2.5), 80.0..140.0)));
    sets.push(("eight degrees less", steps(0.0, 172.0, 2.5)));
    for (name, degrees) in sets {
        let geometry = rays(0, &degrees, axis, COLUMNS);
        let found = made(&geometry);
        let wanted = plain(&geometry, &found.lines, PI, |_| 1.0);
        assert!(apart(&found.slice, &wanted, 30.0) < 6e-4, "{name}: {}", apart(&found.slice, &wanted, 30.0));
        assert!((found.mean - 1.0).abs() < 0.01, "{name}: {}", found.mean);
        let gap = name.starts_with("a gap") || ["two gaps", "eight degrees less"].contains(&name);
        assert!(
            found.error < if gap || name == "random" { 2.2 } else { 1.2 } * even,
            "{name}: {} {even}",
            found.error
        );
        let told = found.notes.iter().any(|note| note.contains("no view looks from"));
        let opposite = name.contains("opposite");
        assert!(name == "random" || told == (gap && !opposite), "{name}: {:?}", found.notes);
        let repeated = found.notes.iter().any(|note| note.contains("share its weight"));
        assert!(
            repeated == (name.contains("repeated") || name.contains("turns with noise")) || name == "random",
            "{name}: {:?}",
            found.notes
        );
    }
}

#[test]
fn uneven_angles_of_fans_and_cones_are_as_good_as_even_ones() {
    let mut rng = ChaCha8Rng::seed_from_u64(82);
    let axis = 0.5 * (COLUMNS - 1) as f64;
    for rows in [1, 2] {
        let even = made(&rays(rows, &steps(0.0, 360.0, 2.5), axis, COLUMNS)).error;
        let mut sets = covering(360.0, &mut rng);
        let short = steps(20.0, 240.0, 2.5);
        sets.extend([
            ("short", short.clone()),
            ("short, the other way", short.iter().map(|angle| -angle).collect()),
            ("short, repeated with noise", short.iter().flat_map(|angle| [*angle, angle + 0.002]).collect()),
            ("short, two steps", [steps(0.0, 90.0, 0.5), steps(90.0, 220.0, 2.5)].concat()),
            ("short, a gap", without(short, 80.0..84.0)),
            ("a turn without 20°", without(steps(0.0, 360.0, 2.5), 80.0..100.0)),
        ]);
        for (name, degrees) in sets {
            let found = made(&rays(rows, &degrees, axis, COLUMNS));
            assert!((found.mean - 1.0).abs() < 0.01, "{name}: {}", found.mean);
            let most = if name.contains("gap") || name == "random" { 1.6 } else { 1.25 };
            assert!(found.error < most * even, "{name}: {} {even}", found.error);
            let told = found.notes.iter().any(|note| note.contains("short scan"));
            let is_short = name.starts_with("short") || name.contains("without");
            assert_eq!(told, is_short, "{name}: {:?}", found.notes);
        }
    }
}

/// The axis near one end of the detector, on either side: opposite views complete the rows.
#[test]
fn a_shifted_detector_sees_all_with_missing_repeated_and_uneven_views() {
    let mut rng = ChaCha8Rng::seed_from_u64(83);
    let columns = 56;
    for rows in [0, 2] {
        for axis in [13.0, (columns - 1) as f64 - 13.0] {
            let even = made(&rays(rows, &steps(0.0, 360.0, 2.5), axis, columns)).error;
            let mut sets = covering(360.0, &mut rng);
            sets.push(("a gap", without(steps(0.0, 360.0, 2.5), 80.0..87.0)));
            sets.push(("less than a turn", steps(50.0, 400.0, 2.5)));
            for (name, degrees) in sets {
                let geometry = rays(rows, &degrees, axis, columns);
                let found = made(&geometry);
                let what = format!("{rows} {axis} {name}");
                assert!((found.mean - 1.0).abs() < 0.015, "{what}: {}", found.mean);
                let most =
                    if ["even", "repeated", "repeated with noise"].contains(&name) { 1.1 } else { 1.9 };
                assert!(found.error < most * even && even < 0.12, "{what}: {} {even}", found.error);
                assert!(found.notes.iter().any(|note| note.contains("Wang")), "{what}: {:?}", found.notes);
                if rows == 0 {
                    let edge = 13.5 * 0.8;
                    let sign = if axis < 20.0 { 1.0 } else { -1.0 };
                    let wang = |u: f64| 0.5 * (1.0 + (FRAC_PI_2 * (sign * u / edge).clamp(-1.0, 1.0)).sin());
                    let wanted = plain(&geometry, &found.lines, TAU, wang);
                    let apart = apart(&found.slice, &wanted, 29.0);
                    assert!(apart < 6e-4, "{what}: {apart}");
                }
            }
        }
    }
    // Half a turn does not see the rest, and the run says so.
    let found = made(&rays(0, &steps(0.0, 200.0, 2.5), 13.0, columns));
    let told = "the views cover 197.5°: voxels farther than 10.8 mm";
    assert!(found.notes.iter().any(|note| note.contains(told)), "{:?}", found.notes);
}

fn clusters(count: usize, views: usize, period: f64) -> Vec<f64> {
    (0..count * views).map(|at| (at / views) as f64 * period / count as f64 + (at % views) as f64).collect()
}

fn notes_of(geometry: &ProjectionGeometry) -> String {
    let method =
        FilteredBackprojection::new(&Device::cpu().unwrap(), geometry, &grid(), Filter::default()).unwrap();
    method.notes().join("; ")
}

/// Opposite views of parallel rays measure the same lines: only the gap in half a turn counts, however the
/// angles are numbered.
#[test]
fn the_same_lines_weigh_the_same_however_their_angles_are_numbered() {
    let axis = 0.5 * (COLUMNS - 1) as f64;
    let [first, second] = [steps(0.0, 70.0, 2.0), steps(90.0, 180.0, 2.0)];
    let turned = |by: f64| second.iter().map(|angle| angle + by).collect::<Vec<_>>();
    for (name, degrees, told) in [
        ("in half a turn", [first.clone(), second.clone()].concat(), "cover 158.0°"),
        (
            "one after the other",
            [second.clone(), first.iter().map(|angle| angle + 180.0).collect()].concat(),
            "cover 158.0°",
        ),
        ("opposite", [first.clone(), turned(180.0)].concat(), "cover 158.0°"),
        ("a turn", [first.clone(), second.clone(), turned(180.0), turned(360.0)].concat(), "cover 158.0°"),
        (
            "there and back",
            [first.clone(), turned(0.0), first.iter().map(|angle| angle - 180.0).rev().collect()].concat(),
            "cover 158.0°",
        ),
        ("less", steps(10.0, 120.0, 2.0), "cover 108.0°"),
        ("less, twice", [steps(10.0, 120.0, 2.0), steps(190.0, 300.0, 2.0)].concat(), "cover 108.0°"),
        ("less, in two parts", [steps(10.0, 66.0, 2.0), steps(246.0, 300.0, 2.0)].concat(), "cover 108.0°"),
        ("clusters", clusters(8, 7, 180.0), "nor from 7 other gaps"),
        ("clusters of a turn", clusters(11, 12, 360.0), ""),
    ] {
        let geometry = rays(0, &degrees, axis, COLUMNS);
        let found = made(&geometry);
        let wanted = plain(&geometry, &found.lines, PI, |_| 1.0);
        let apart = apart(&found.slice, &wanted, 30.0);
        assert!(apart < 6e-4, "{name}: {apart}");
        assert!((found.mean - 1.0).abs() < 0.04, "{name}: {}", found.mean);
        assert!(found.notes.join("; ").contains(told), "{name}: {:?}", found.notes);
    }
    // Where most of half a turn is missing, the views beside it do not stand for it.
    let few = made(&rays(0, &[steps(0.0, 40.0, 2.0), steps(200.0, 220.0, 2.0)].concat(), axis, COLUMNS));
    assert!(few.mean < 0.6 && few.notes[0].contains("cover 38.0°"), "{} {:?}", few.mean, few.notes);
}

/// Several equal gaps do not make a short scan: the views beside each gap stand for it.
#[test]
fn equal_gaps_in_a_fan_are_no_short_scan() {
    let axis = 0.5 * (COLUMNS - 1) as f64;
    let gaps = |width: f64, starts: &[f64]| {
        starts.iter().fold(steps(0.0, 360.0, 2.0), |angles, &start| without(angles, start..start + width))
    };
    for (name, degrees, most) in [
        ("two of 20°", gaps(20.0, &[70.0, 250.0]), 0.12),
        ("two of 36°", gaps(36.0, &[70.0, 220.0]), 0.25),
        ("three of 18°", gaps(18.0, &[40.0, 160.0, 280.0]), 0.12),
        ("clusters", clusters(11, 9, 360.0), 0.25),
    ] {
        let found = made(&rays(1, &degrees, axis, COLUMNS));
        let notes = found.notes.join("; ");
        assert!(!notes.contains("short scan") && notes.contains("other gaps"), "{name}: {notes}");
        assert!(
            found.error < most && (found.mean - 1.0).abs() < 0.02,
            "{name}: {} {}",
            found.mean,
            found.error
        );
    }
}

/// Gaps of a shifted detector leave streaks, and no empty margin.
#[test]
fn a_shifted_detector_sees_its_margin_beside_wide_gaps() {
    let columns = 56;
    for rows in [0, 1] {
        for (name, degrees, most) in [
            ("clusters", clusters(10, 6, 360.0), 0.5),
            ("30°", without(steps(0.0, 360.0, 2.0), 100.0..130.0), 0.2),
            ("50°", without(steps(0.0, 360.0, 2.0), 100.0..150.0), 0.4),
        ] {
            let found = made(&rays(rows, &degrees, 13.0, columns));
            let notes = found.notes.join("; ");
            assert!(notes.contains("Wang") && notes.contains("no view looks from"), "{name}: {notes}");
            assert!(
                found.error < most && (found.mean - 1.0).abs() < 0.03,
                "{rows} {name}: {} {}",
                found.mean,
                found.error
            );
        }
    }
}

/// A detector that is moved to the other side after half a turn is not shifted to one side: all views see a
/// circle in the middle.
#[test]
fn a_detector_that_changes_sides_is_not_shifted_to_one() {
    let (columns, degrees) = (56, steps(0.0, 360.0, 3.0));
    let [one, other] = [20.0, 35.0].map(|axis| rays(0, &degrees, axis, columns));
    let views = one.views()[..60].iter().chain(&other.views()[60..]).copied().collect();
    let geometry = ProjectionGeometry::new(*one.detector(), views).unwrap();
    let found = made(&geometry);
    assert!(!found.notes.join("; ").contains("Wang"), "{:?}", found.notes);
    let middle: Vec<f32> = (28..36).flat_map(|y| found.slice[y * N + 36..y * N + 39].to_vec()).collect();
    let mean = middle.iter().sum::<f32>() / middle.len() as f32;
    assert!((mean - 0.03).abs() < 0.004, "{mean}");
}

#[test]
fn notes_of_angles_tell_what_is_so() {
    let axis = 0.5 * (COLUMNS - 1) as f64;
    let mut rng = ChaCha8Rng::seed_from_u64(84);
    let of = |rows: usize, degrees: Vec<f64>| notes_of(&rays(rows, &degrees, axis, COLUMNS));
    // Views that differ do not repeat.
    let mut random: Vec<f64> = (0..220).map(|_| rng.random_range(0.0..180.0)).collect();
    random.sort_by(f64::total_cmp);
    let near = clusters(12, 8, 180.0).iter().map(|angle| angle - 0.6 * (angle % 15.0)).collect();
    for different in [[steps(0.0, 50.0, 0.1), steps(50.0, 180.0, 2.5)].concat(), random, near] {
        let notes = of(0, different);
        assert!(!notes.contains("share its weight"), "{notes}");
    }
    let notes = of(
        0,
        steps(0.0, 60.0, 0.5).into_iter().chain((0..90).map(|at| 60.0 + f64::from(at / 3) * 4.0)).collect(),
    );
    assert!(notes.contains("210 views look from 150 directions"), "{notes}");
    let notes = of(0, [steps(0.0, 90.0, 0.25), steps(90.0, 180.0, 3.75)].concat());
    assert!(notes.contains("a gap of 15.0 usual steps, nor from 23 other gaps"), "{notes}");
    // The fan takes 2 atan(50 / 300): 18.925°.
    let step = 198.925 / 120.0;
    assert!(!of(1, steps(0.0, 198.925 + 0.1, step)).contains("margin"));
    assert!(of(1, steps(0.0, 190.0, step)).contains("margin"));
}

#[test]
fn a_part_of_half_a_turn_and_a_single_direction_are_told() {
    let axis = 0.5 * (COLUMNS - 1) as f64;
    for rows in [0, 1] {
        let part = made(&rays(rows, &steps(0.0, 120.0, 2.5), axis, COLUMNS));
        assert!(part.notes[0].contains("cover 117.5°: less than half a turn"), "{:?}", part.notes);
        let one = made(&rays(rows, &[40.0; 30], axis, COLUMNS));
        assert!(one.notes[0].contains("cover 0.0°"), "{:?}", one.notes);
    }
    // Nothing is seen from all sides.
    let off = rays(0, &steps(0.0, 360.0, 3.0), -2.0, 40);
    let refused = FilteredBackprojection::new(&Device::cpu().unwrap(), &off, &grid(), Filter::default());
    assert!(refused.unwrap_err().to_string().contains("sees the axis") && Turn::of(&off).is_err());
}

/// Views that arrive weigh as they do in the whole scan, and say the same.
#[test]
fn uneven_views_that_arrive_add_up() {
    let device = Device::cpu().unwrap();
    let degrees = [without(steps(0.0, 180.0, 3.0), 60.0..70.0), vec![30.2, 30.0, 110.0]].concat();
    for (rows, options) in
        [(0, ReconOptions::new(Fbp::default(), grid())), (3, ReconOptions::new(Fdk::default(), grid()))]
    {
        let geometry = rays(rows, &degrees, 40.0, COLUMNS);
        let lines = phantom().project(device.cpu_side(), &geometry).unwrap();
        let all = ndarray::Array3::from_shape_vec(geometry.shape(), lines.clone()).unwrap();
        let wanted = reconstruct(&device, all, &geometry, &options, &Monitor::silent()).unwrap();
        let mut volume = Arriving::new(&device, &geometry, &options).unwrap();
        lines.chunks(7 * rows.max(1) * COLUMNS).for_each(|views| volume.add(views.to_vec()).unwrap());
        let found = volume.finish().unwrap();
        assert_eq!(found.notes, wanted.notes);
        let most = wanted.volume.iter().fold(0.0f32, |most, value| most.max(value.abs()));
        assert!(most > 0.01);
        let apart = (&found.volume - &wanted.volume).iter().fold(0.0f32, |most, value| most.max(value.abs()));
        assert!(apart < 1e-5 * most, "{apart}");
        if rows == 0 {
            let fourier =
                FourierBackprojection::new(&device, &geometry, &grid(), Filter::default(), 1e-4).unwrap();
            let [by_sums, by_rows] =
                [fourier.slices(&lines, 0..1).unwrap(), found.volume.into_iter().collect()]
                    .map(|slice| quality(&slice));
            assert!(
                (by_sums.0 - by_rows.0).abs() < 0.01 && by_sums.1 < 1.3 * by_rows.1,
                "{by_sums:?} {by_rows:?}"
            );
        }
    }
}

/// A subset takes every n-th view, and these may all look from one direction.
#[test]
fn subsets_of_uneven_and_repeated_views_converge_by_default() {
    let device = Device::cpu().unwrap();
    let axis = 0.5 * (COLUMNS - 1) as f64;
    for (name, degrees) in [
        ("even", steps(0.0, 180.0, 2.0)),
        ("repeated", steps(0.0, 180.0, 2.0).into_iter().flat_map(|angle| [angle; 2]).collect()),
        ("20 views a turn", (0..120).map(|view| f64::from(view) * 18.0 + f64::from(view / 20)).collect()),
        ("two steps", [steps(0.0, 50.0, 0.5), steps(50.0, 180.0, 2.0)].concat()),
    ] {
        let geometry = rays(0, &degrees, axis, COLUMNS);
        let lines = made(&geometry).lines;
        let error = |method: &dyn Method| {
            let options =
                ReconOptions { method: method.copy().into(), ..ReconOptions::new(Fbp::default(), grid()) };
            let lines = ndarray::Array3::from_shape_vec(geometry.shape(), lines.clone()).unwrap();
            let found = reconstruct(&device, lines, &geometry, &options, &Monitor::silent()).unwrap();
            quality(&found.volume.into_iter().collect::<Vec<_>>())
        };
        let [subsets, cgls] = [error(&OsSart::default()), error(&Cgls::default())];
        assert!(subsets.1 < 1.1 * cgls.1 && (subsets.0 - 1.0).abs() < 0.01, "{name}: {subsets:?} {cgls:?}");
    }
}

fn even(step_deg: f64, views: usize) -> Vec<f64> {
    (0..views).map(|view| (step_deg * view as f64).to_radians()).collect()
}

#[test]
fn angles_of_scans_are_not_odd() {
    for (step, views) in [
        (1.0, 180),
        (0.9, 400),
        (0.5, 1500),
        (111.246, 400),
        (137.508, 233),
        (-222.492, 610),
        (2.0, 1800),
        (15.0, 12),
        // A few views of many, and turns that follow what changes.
        (0.5, 10),
        (0.2, 40),
        (5.625, 1280),
        (-6.0, 1500),
    ] {
        assert!(angle_notes(&even(step, views)).is_empty(), "{step} {views}");
    }
    assert!(angle_notes(&[]).is_empty());
}

#[test]
fn a_wrong_unit_and_a_single_direction_are_told() {
    let told = |angles: Vec<f64>, word: &str| {
        let notes = angle_notes(&angles);
        assert!(notes.len() == 1 && notes[0].contains(word), "{word}: {notes:?}");
    };
    for (step, views) in [(1.0, 180), (0.5, 400), (2.0, 180), (0.3, 720), (0.4, 500)] {
        // Radian called degrees, and degrees called radian.
        told(even(step, views).iter().map(|angle| angle.to_radians()).collect(), "calls degrees");
        told(even(step, views).iter().map(|angle| angle.to_degrees()).collect(), "calls radian");
    }
    told(vec![0.7; 40], "from 40.11°");
    told(vec![0.7], "one view");
}
