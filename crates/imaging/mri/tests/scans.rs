//! Scans of other writers: calibration in the images or apart from them, images that are sampled differently,
//! samples that contradict each other, columns and fields of view of trajectories.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

#[path = "scans/echo_planar.rs"]
mod echo_planar;

use std::f64::consts::TAU;

use ndarray::Array2;
use rayspin_core::{C32, Monitor, TrajectoryUnits};
use rayspin_device::Device;
use rayspin_mri::maps::{EspiritOptions, Sensitivities};
use rayspin_mri::methods::{Cartesian, CgSense, Combine, Grappa};
use rayspin_mri::recon::{ReconOptions, ScanImage, Selection, reconstruct_scan};
use rayspin_mri::scan::{
    Acquisition, AcquisitionHead, Counters, EncodedSpace, Encoding, Flags, Frame, FrameOptions, Label,
    Limits, Samples, Scan, ScanHeader, Series, TrajectoryFov, TrajectoryKind, TrajectoryOptions,
};
use rayspin_mri::simulate::trajectory::{CartesianPattern, Sampling};
use rayspin_mri::simulate::{SimulateOptions, simulate};

const COILS: usize = 4;

/// Coil `coil` of a smooth object at a place of k-space in cycles per field of view.
fn signal(coil: usize, k: [f64; 2]) -> C32 {
    let turn = TAU * coil as f64 / COILS as f64;
    let blob = |x: f64, y: f64, width: f64| {
        // Sensitivities shift the spectrum by a part of a cycle.
        let [kx, ky] = [k[0] - 0.4 * turn.cos(), k[1] - 0.4 * turn.sin()];
        let size = (-(kx * kx + ky * ky) * width * width).exp();
        let phase = -TAU * (k[0] * x + k[1] * y);
        C32::from_polar(size as f32, phase as f32)
    };
    blob(-0.12, 0.2, 0.11) + blob(0.18, -0.07, 0.16) * C32::new(0.6, 0.3)
}

const NX: usize = 32;

fn space(matrix: [usize; 3], fov_mm: [f64; 3]) -> EncodedSpace {
    EncodedSpace { matrix, fov_mm }
}

/// A grid of this many lines.
fn encoding(lines: usize) -> Encoding {
    let whole = space([NX, lines, 1], [160.0, 5.0 * lines as f64, 4.0]);
    Encoding {
        encoded: whole,
        recon: whole,
        trajectory: TrajectoryKind::Cartesian,
        step_1: Some(Limits { minimum: 0, maximum: lines - 1, centre: lines / 2 }),
        step_2: None,
        slice: None,
        repetition: None,
        acceleration: None,
        ramps: None,
        places: None,
    }
}

fn readout(data: Array2<C32>, counters: Counters, flags: Flags) -> Acquisition {
    Acquisition {
        flags,
        counters,
        encoding: 0,
        centre_sample: data.ncols() / 2,
        discard_pre: 0,
        discard_post: 0,
        sample_time_us: 5.0,
        time_stamp: 0,
        position: [0.0, 0.0, 4.0 * f32::from(counters.slice)],
        read_dir: [1.0, 0.0, 0.0],
        phase_dir: [0.0, 1.0, 0.0],
        slice_dir: [0.0, 0.0, 1.0],
        data: data.into_shared(),
        trajectory: None,
    }
}

/// Line `y` of a grid of `lines`, its samples from `from` on.
fn line(y: usize, lines: usize, samples: std::ops::Range<usize>, flags: Flags) -> Acquisition {
    let data = Array2::from_shape_fn((COILS, samples.len()), |(coil, x)| {
        let kx = (x + samples.start) as f64 - (NX / 2) as f64;
        signal(coil, [kx, y as f64 - (lines / 2) as f64])
    });
    let counters = Counters { step_1: y as u16, ..Counters::default() };
    Acquisition { centre_sample: NX / 2 - samples.start, ..readout(data, counters, flags) }
}

fn scan(encodings: Vec<Encoding>, acquisitions: Vec<Acquisition>) -> Scan {
    Scan { header: ScanHeader { encodings, ..ScanHeader::default() }, acquisitions, notes: Vec::new() }
}

fn assembled(
    scan: &Scan,
    label: Label,
    options: &FrameOptions,
) -> rayspin_core::Result<(Frame, Vec<String>)> {
    let mut notes = Vec::new();
    Ok((scan.frames()?.assemble(label, options, &mut notes)?, notes))
}

fn first(scan: &Scan) -> (Frame, Vec<String>) {
    let label = scan.frames().unwrap().labels().next().unwrap();
    assembled(scan, label, &FrameOptions::default()).unwrap()
}

/// The lines of a frame that were measured.
fn sampled_lines(frame: &Frame) -> Vec<usize> {
    let Samples::Cartesian { sampled, .. } = &frame.samples else { panic!("expected a grid") };
    let measured = |(y, row): (usize, ndarray::ArrayViewD<'_, bool>)| row.iter().any(|&s| s).then_some(y);
    sampled.outer_iter().enumerate().filter_map(measured).collect()
}

/// What a stream would read of the scan's first image, and of its calibration.
fn of_series(scan: &Scan, frame: usize) -> (Vec<usize>, Vec<usize>) {
    let place = |a: &Acquisition| AcquisitionHead {
        flags: a.flags,
        counters: a.counters,
        encoding: a.encoding,
        time_stamp: a.time_stamp,
        trajectory: a.trajectory.is_some(),
        samples: a.data.ncols(),
        centre_sample: a.centre_sample,
        bytes: 1,
    };
    let labels: Vec<Label> = scan.frames().unwrap().labels().collect();
    let series = Series::of_labels(scan.acquisitions.iter().map(place).collect(), &labels, None).unwrap();
    (series.readouts(frame).to_vec(), series.calibration(frame))
}

fn reconstructed(scan: &Scan, options: &ReconOptions) -> ScanImage {
    let (all, frames) = (Selection::default(), FrameOptions::default());
    let device = Device::cpu_with_threads(2).unwrap();
    reconstruct_scan(&device, scan, &all, &frames, options, &Monitor::silent()).unwrap()
}

/// √(Σ|a − b|² / Σ|b|²) of the magnitudes.
fn apart(a: &ScanImage, b: &ScanImage) -> f64 {
    let (mut off, mut all) = (0.0, 0.0);
    for (a, b) in a.image.data().iter().zip(b.image.data()) {
        off += f64::from(a.norm() - b.norm()).powi(2);
        all += f64::from(b.norm()).powi(2);
    }
    (off / all).sqrt()
}

const LINES: usize = 42;

fn full() -> Vec<Acquisition> {
    (0..LINES).map(|y| line(y, LINES, 0..NX, Flags::default())).collect()
}

fn in_centre(y: usize) -> bool {
    y.abs_diff(LINES / 2) < 9
}

const BOTH: Flags = Flags::CALIBRATION_AND_IMAGING;

/// Every third line, and in the centre the lines between for calibration alone. The central image lines are
/// flagged `shared`.
fn embedded(shared: Flags) -> Vec<Acquisition> {
    let flagged = |y: usize| match (y.is_multiple_of(3), in_centre(y)) {
        (true, true) => Some(shared),
        (true, false) => Some(Flags::default()),
        (false, true) => Some(Flags::CALIBRATION),
        (false, false) => None,
    };
    (0..LINES).filter_map(|y| Some(line(y, LINES, 0..NX, flagged(y)?))).collect()
}

#[test]
fn embedded_calibration_is_a_part_of_the_image() {
    let expected: Vec<usize> = (0..LINES).filter(|&y| y % 3 == 0 || in_centre(y)).collect();
    let whole = reconstructed(&scan(vec![encoding(LINES)], full()), &ReconOptions::of(Cartesian::default()));
    // Writers flag the lines that are image and calibration as both, as either, or not at all.
    for shared in [BOTH, BOTH.with(Flags::CALIBRATION), Flags::default()] {
        let scan = scan(vec![encoding(LINES)], embedded(shared));
        let (frame, notes) = first(&scan);
        assert_eq!(sampled_lines(&frame), expected);
        assert!(frame.calibration.is_none());
        assert!(notes.iter().any(|note| note.contains("are a part of it")), "{notes:?}");
        assert_eq!(of_series(&scan, 0), ((0..expected.len()).collect(), Vec::new()));
        let found = reconstructed(&scan, &ReconOptions::of(Grappa::default()));
        assert!(apart(&found, &whole) < 0.02, "{}", apart(&found, &whole));
    }
    // Lines that the image measures too calibrate it from outside, and do not change it.
    let mut lines: Vec<_> = (0..LINES).step_by(3).map(|y| line(y, LINES, 0..NX, Flags::default())).collect();
    lines.extend((0..LINES).filter(|&y| in_centre(y)).map(|y| line(y, LINES, 0..NX, Flags::CALIBRATION)));
    let (frame, _) = first(&scan(vec![encoding(LINES)], lines));
    assert_eq!(sampled_lines(&frame), (0..LINES).step_by(3).collect::<Vec<_>>());
    assert!(frame.calibration.is_some());
}

#[test]
fn calibration_of_the_first_repetition_serves_the_others() {
    for alone in [Flags::CALIBRATION, BOTH] {
        let mut lines = embedded(BOTH);
        lines.iter_mut().filter(|a| a.flags == Flags::CALIBRATION).for_each(|a| a.flags = alone);
        let own: Vec<usize> = (0..lines.len()).filter(|&at| lines[at].flags != Flags::default()).collect();
        for repetition in 1..3 {
            lines.extend((0..LINES).step_by(3).map(|y| {
                let mut line = line(y, LINES, 0..NX, Flags::default());
                line.counters.repetition = repetition;
                line
            }));
        }
        let scan = scan(vec![encoding(LINES)], lines);
        let label = Label { repetition: 2, ..Label::default() };
        let (frame, notes) = assembled(&scan, label, &FrameOptions::default()).unwrap();
        assert_eq!(sampled_lines(&frame).len(), LINES / 3);
        let lines = frame.calibration.unwrap();
        assert_eq!(lines.sampled.outer_iter().filter(|row| row.iter().any(|&s| s)).count(), own.len());
        assert_eq!((notes.len(), of_series(&scan, 2).1), (1, own), "{notes:?}");
        assert!(first(&scan).0.calibration.is_none());
        let all = reconstructed(&scan, &ReconOptions::of(Grappa::default()));
        assert_eq!(all.image.repetitions(), 3);
    }
}

/// Every second line, and calibration of a shorter readout in an encoding of its own.
fn calibrated_elsewhere(other: Encoding, slice: u16) -> Scan {
    let mut lines: Vec<_> = (0..LINES).step_by(2).map(|y| line(y, LINES, 0..NX, Flags::default())).collect();
    let count = other.encoded.matrix[1];
    for at in 0..count {
        let mut own = line(at + LINES / 2 - count / 2, LINES, 6..26, Flags::CALIBRATION);
        (own.encoding, own.counters.step_1, own.counters.slice) = (1, at as u16, slice);
        lines.push(own);
    }
    scan(vec![encoding(LINES), other], lines)
}

#[test]
fn calibration_of_another_encoding_is_used_or_named() {
    let small = || {
        let mut small = encoding(16);
        small.encoded = space([20, 16, 1], [160.0, 5.0 * LINES as f64, 4.0]);
        small
    };
    let scan_of = |other| calibrated_elsewhere(other, 0);
    let good = scan_of(small());
    let (frame, notes) = first(&good);
    let lines = frame.calibration.unwrap();
    assert_eq!(lines.sampled.iter().filter(|&&s| s).count(), 16 * 20);
    assert_eq!(lines.kspace[[2, LINES / 2 - 5, NX / 2 + 4]], signal(2, [4.0, -5.0]));
    assert!(notes.iter().any(|note| note.contains("encoding 1")), "{notes:?}");
    let said = |notes: &[String]| notes.iter().filter(|note| note.contains("two directions")).count();
    assert_eq!(said(&notes), 0);
    let mut turned = good.clone();
    turned.acquisitions.iter_mut().filter(|line| line.encoding == 1).step_by(2).for_each(|line| {
        line.flags = line.flags.with(Flags::REVERSE);
    });
    assert_eq!(said(&first(&turned).1), 1);
    let whole = reconstructed(&scan(vec![encoding(LINES)], full()), &ReconOptions::of(Cartesian::default()));
    let found = reconstructed(&good, &ReconOptions::of(Grappa::default()));
    assert!(apart(&found, &whole) < 0.02, "{}", apart(&found, &whole));

    let mut wide = small();
    wide.encoded.fov_mm[1] *= 1.5;
    let (frame, notes) = first(&scan_of(wide));
    assert!(frame.calibration.is_none());
    let said = |note: &&String| note.contains("field of view along y") && note.contains("--maps");
    assert_eq!(notes.iter().filter(said).count(), 1, "{notes:?}");

    let (frame, notes) = first(&calibrated_elsewhere(small(), 3));
    assert!(frame.calibration.is_none() && notes.len() == 1 && notes[0].contains("16 calib"), "{notes:?}");

    // An image that has a calibration region of its own stays as it is.
    let mut own = scan_of(small());
    own.acquisitions.extend((13..29).step_by(2).map(|y| line(y, LINES, 0..NX, BOTH)));
    let (frame, notes) = first(&own);
    assert!(frame.calibration.is_none() && notes.is_empty(), "{notes:?}");
}

#[test]
fn the_first_encoding_that_holds_images_is_taken() {
    let mut lines = full();
    lines.iter_mut().for_each(|line| line.encoding = 2);
    let all = scan(vec![encoding(LINES); 3], lines);
    let found = reconstructed(&all, &ReconOptions::of(Cartesian::default()));
    assert!(found.notes.iter().any(|note| note.contains("no encoding 0: 2")), "{:?}", found.notes);
    let index = all.frames().unwrap();
    let first = Selection { encoding: Some(0), ..Selection::default() };
    let refused = first.labels(&index, &mut Vec::new()).unwrap_err().to_string();
    assert!(refused.contains("encoding: expected 2, found 0"), "{refused}");
    let none = Selection::default().choose(std::iter::empty(), &mut Vec::new()).unwrap_err().to_string();
    assert!(none.contains("carries image data"), "{none}");
}

#[test]
fn images_with_fewer_samples_are_named() {
    let mut lines = Vec::new();
    for (slice, kept) in [(0, 17), (1, LINES), (2, LINES), (3, LINES - 1)] {
        lines.extend(full().into_iter().take(kept).map(|mut line| {
            (line.counters.slice, line.position[2]) = (slice, 4.0 * f32::from(slice));
            if slice == 2 {
                line.data.fill(C32::ZERO);
            }
            line
        }));
    }
    let scan = scan(vec![encoding(LINES)], lines);
    let index = scan.frames().unwrap();
    let labels: Vec<Label> = index.labels().collect();
    assert_eq!(index.uneven(&labels).unwrap(), "slice 0 has 17 of 42 lines");
    assert_eq!((index.uneven(&labels[1..]), index.fullest(&labels).unwrap().slice), (None, 1));
    let notes = reconstructed(&scan, &ReconOptions::of(Cartesian::default())).notes;
    let said = |text: &str| notes.iter().any(|note| note.contains(text));
    assert!(said("slice 0 has 40.5 %; slice 3 has 97.6 %"), "{notes:?}");
    assert!(said("slice 2 has samples of 0 alone: there is no image"), "{notes:?}");
}

#[test]
fn of_images_that_hold_as_much_the_middle_slice_of_the_first_repetition_is_looked_at() {
    let label = |(repetition, slice)| Label { repetition, slice, ..Label::default() };
    let labels: Vec<Label> = [0, 1].iter().flat_map(|&r| (0..5).map(move |s| label((r, s)))).collect();
    let at = |holds: &dyn Fn(usize) -> usize| rayspin_mri::scan::fullest(&labels, holds);
    assert_eq!(at(&|_| 7), Some(2));
    assert_eq!(at(&|number| number % 5), Some(4));
    assert_eq!(at(&|number| usize::from(number > 4)), Some(7));
    assert_eq!(at(&|number| [3, 9, 9, 9, 9][number % 5]), Some(2));
    assert_eq!(rayspin_mri::scan::fullest(&[], |_| 0), None);
    // A file, a scan in memory and a series have one rule.
    let options = SimulateOptions { matrix: [16, 16, 5], repetitions: 2, ..SimulateOptions::default() };
    let scan = simulate(&options, &Monitor::silent()).unwrap().scan;
    let index = scan.frames().unwrap();
    let labels: Vec<Label> = index.labels().collect();
    assert_eq!(index.fullest(&labels), Some(labels[2]));
    assert_eq!(index.series(&labels, None, None).unwrap().fullest_and_another(), [2, 7]);
}

#[test]
fn contradictions_among_samples_are_said() {
    let notes = |lines: Vec<Acquisition>| first(&scan(vec![encoding(LINES)], lines)).1;
    let again = |factor: f32| {
        let mut lines = full();
        let mut other = line(LINES / 2 + 1, LINES, 0..NX, Flags::default());
        other.counters.average = 1;
        other.data.mapv_inplace(|value| value * factor);
        lines.push(other);
        lines
    };
    assert!(notes(again(1.1)).is_empty());
    let said = notes(again(-1.0));
    assert!(said.len() == 1 && said[0].contains("line 22 is the first"), "{said:?}");
    let mut some = full();
    some[5].data.fill(C32::ZERO);
    let said = notes(some);
    assert!(said.len() == 1 && said[0].contains("zeros alone"), "{said:?}");
    // Spokes on one path.
    let spokes = |angle: fn(f64) -> f64| (0..40).map(|at| spoke(angle(f64::from(at)), 1.0, &[])).collect();
    assert!(first(&along(spokes(|at| at * 0.0785), 1.0, None)).1.is_empty());
    let mut one_path: Vec<Acquisition> = spokes(|at| at * 0.0785);
    let path = one_path[0].trajectory.clone();
    one_path.iter_mut().for_each(|spoke| spoke.trajectory = path.clone());
    let said = first(&along(one_path, 1.0, None)).1;
    assert!(said.len() == 1 && said[0].contains("the path of acquisition 0"), "{said:?}");
}

const N: usize = 36;

/// A spoke in cycles per field of view times `scale`; `behind` are functions of the radius in further
/// columns.
fn spoke(angle: f64, scale: f64, behind: &[fn(f64) -> f64]) -> Acquisition {
    let radius = |s: usize| (s as f64 - N as f64) / 2.0;
    let k = |s: usize| [radius(s) * angle.cos(), radius(s) * angle.sin()];
    let data = Array2::from_shape_fn((COILS, 2 * N), |(coil, s)| signal(coil, k(s)));
    let points = Array2::from_shape_fn((2 * N, 2 + behind.len()), |(s, d)| match d {
        0 | 1 => (k(s)[d] * scale) as f32,
        _ => behind[d - 2](radius(s)) as f32,
    });
    let mut spoke = readout(data, Counters::default(), Flags::default());
    spoke.trajectory = Some(points.into_shared());
    spoke
}

/// Spokes of a scan whose encoded matrix and field of view are `wider` than the image's along x.
fn along(spokes: Vec<Acquisition>, wider: f64, units: Option<TrajectoryUnits>) -> Scan {
    let recon = space([N, N, 1], [180.0, 180.0, 4.0]);
    let encoded = space([(N as f64 * wider) as usize, N, 1], [180.0 * wider, 180.0, 4.0]);
    let encoding = Encoding { encoded, recon, trajectory: TrajectoryKind::Radial, ..encoding(N) };
    let mut scan = scan(vec![encoding], spokes);
    scan.header.trajectory_units = Some(units.unwrap_or(TrajectoryUnits::CyclesPerFov));
    scan
}

fn extent(frame: &Frame) -> Vec<f64> {
    let Samples::NonCartesian { trajectory, .. } = &frame.samples else { panic!("expected a trajectory") };
    trajectory.extent().iter().map(|k| (k * 100.0).round() / 100.0).collect()
}

fn spokes(scale: f64, behind: &[fn(f64) -> f64]) -> Vec<Acquisition> {
    (0..40).map(|at| spoke(f64::from(at) * TAU / 80.0, scale, behind)).collect()
}

#[test]
fn density_weights_behind_a_trajectory_are_left_out() {
    let plain = first(&along(spokes(1.0, &[]), 1.0, None)).0;
    let weighted = [
        (vec![f64::abs as fn(f64) -> f64], TrajectoryOptions::default(), 1),
        (vec![|_| 0.0, f64::abs], TrajectoryOptions::default(), 2),
        (vec![|k| k], TrajectoryOptions { weights: true, fov: None }, 0),
    ];
    for (columns, trajectory, said) in weighted {
        let scan = along(spokes(1.0, &columns), 1.0, None);
        let options = FrameOptions { trajectory, ..FrameOptions::default() };
        let (frame, notes) = assembled(&scan, Label::default(), &options).unwrap();
        let (Samples::NonCartesian { trajectory: a, .. }, Samples::NonCartesian { trajectory: b, .. }) =
            (&frame.samples, &plain.samples)
        else {
            panic!("expected trajectories")
        };
        assert_eq!((a.points(), notes.len()), (b.points(), said), "{notes:?}");
    }
    // A third column with signs is kz, which a plane has not.
    let refused = |columns: &[fn(f64) -> f64], weights| {
        let options = TrajectoryOptions { weights, fov: None };
        let options = FrameOptions { trajectory: options, ..FrameOptions::default() };
        assembled(&along(spokes(1.0, columns), 1.0, None), Label::default(), &options)
            .unwrap_err()
            .to_string()
    };
    assert!(refused(&[|k| k], false).contains("kz = 0 throughout"));
    assert!(refused(&[|k| k, f64::abs, f64::abs], false).contains("density weights"));
}

#[test]
fn the_field_of_view_of_points_follows_from_their_reach() {
    let half = N as f64 / 2.0;
    let with = |scan: &Scan, fov: Option<TrajectoryFov>| {
        let trajectory = TrajectoryOptions { weights: false, fov };
        let options = FrameOptions { trajectory, ..FrameOptions::default() };
        let (frame, notes) = assembled(scan, Label::default(), &options).unwrap();
        (extent(&frame), notes.len())
    };
    // Points over the image's field of view; and over the encoded one, which is twice as wide along x.
    let of_image = along(spokes(1.0, &[]), 2.0, None);
    assert_eq!(with(&of_image, None), (vec![half, half], 1));
    assert_eq!(with(&of_image, Some(TrajectoryFov::Recon)), (vec![half, half], 0));
    assert_eq!(with(&of_image, Some(TrajectoryFov::Encoded)), (vec![half / 2.0, half], 0));
    let mut encoded = spokes(1.0, &[]);
    for spoke in &mut encoded {
        if let Some(points) = &mut spoke.trajectory {
            points.column_mut(0).mapv_inplace(|k| 2.0 * k);
        }
    }
    assert_eq!(with(&along(encoded, 2.0, None), None), (vec![half, half], 0));
    // Other units do not depend on a field of view.
    let of_voxels = along(spokes(1.0 / N as f64, &[]), 2.0, Some(TrajectoryUnits::CyclesPerVoxel));
    assert_eq!(with(&of_voxels, None), (vec![half, half], 0));
    let options = TrajectoryOptions { weights: false, fov: Some(TrajectoryFov::Recon) };
    let options = FrameOptions { trajectory: options, ..FrameOptions::default() };
    assert!(assembled(&of_voxels, Label::default(), &options).is_err());
}

#[test]
fn a_stated_unit_that_leaves_k_space_empty_is_said() {
    let notes = |scale: f64, units| first(&along(spokes(scale, &[]), 1.0, Some(units))).1;
    let said = notes(1.0 / N as f64, TrajectoryUnits::CyclesPerFov);
    assert!(said.len() == 1 && said[0].contains("2.78 %") && said[0].contains("--traj-units"), "{said:?}");
    assert!(notes(0.3, TrajectoryUnits::CyclesPerFov).is_empty());
    assert!(notes(1.0, TrajectoryUnits::CyclesPerFov).is_empty());
}

#[test]
fn a_slice_without_signal_leaves_the_other_slices_their_images() {
    let options = SimulateOptions { matrix: [24, 24, 3], coils: 4, ..SimulateOptions::default() };
    let whole = simulate(&options, &Monitor::silent()).unwrap().scan;
    let mut scan = whole.clone();
    for readout in &mut scan.acquisitions {
        if readout.counters.slice == 0 {
            readout.data.fill(C32::ZERO);
        }
    }
    let method = CgSense { iterations: 3, ..CgSense::default() };
    let [expected, found] =
        [&whole, &scan].map(|scan| reconstructed(scan, &ReconOptions::of(method.clone())));
    let slice = |image: &ScanImage, z: usize| image.image.data().index_axis(ndarray::Axis(0), z).to_owned();
    let maps = |image: &ScanImage, z: usize| {
        let maps = image.maps.as_ref().unwrap();
        maps.index_axis(ndarray::Axis(1), z).to_owned()
    };
    assert!(slice(&found, 0).iter().chain(maps(&found, 0).iter()).all(|value| *value == C32::ZERO));
    for z in [1, 2] {
        assert_eq!((slice(&found, z), maps(&found, z)), (slice(&expected, z), maps(&expected, z)));
    }
    let said = "slice 0 has samples of 0 alone: there is no image";
    assert!(found.notes.iter().any(|note| note.contains(said)), "{:?}", found.notes);
    // Two sets of maps are alike.
    let sets = Sensitivities::Espirit(EspiritOptions { sets: 2, ..EspiritOptions::default() });
    let two = ReconOptions { sensitivities: Some(sets), ..ReconOptions::of(method.clone()) };
    let found = reconstructed(&scan, &two);
    assert_eq!(found.maps.as_ref().unwrap().shape(), [2, 4, 3, 24, 24]);
    assert!(slice(&found, 0).iter().all(|value| *value == C32::ZERO));
    // A scan that holds nothing else is refused.
    let zeros = Selection { slice: Some(0.into()), ..Selection::default() };
    let options = ReconOptions::of(method);
    let (device, frames, monitor) = (Device::cpu().unwrap(), FrameOptions::default(), Monitor::silent());
    let refused = reconstruct_scan(&device, &scan, &zeros, &frames, &options, &monitor).unwrap_err();
    assert!(refused.to_string().contains("not all zero"), "{refused}");
}

#[test]
fn a_slice_without_signal_needs_no_weights_of_grappa() {
    let pattern = CartesianPattern::Uniform { acceleration: [2, 1], calibration: 12 };
    let sampling = Sampling::Cartesian(pattern);
    let options = SimulateOptions { matrix: [24, 24, 3], coils: 4, sampling, ..SimulateOptions::default() };
    let mut scan = simulate(&options, &Monitor::silent()).unwrap().scan;
    for readout in scan.acquisitions.iter_mut().filter(|readout| readout.counters.slice == 2) {
        readout.data.fill(C32::ZERO);
    }
    let found = reconstructed(&scan, &ReconOptions::of(Grappa::default()));
    let slice = |z: usize| found.image.data().index_axis(ndarray::Axis(0), z).to_owned();
    assert!(slice(1).iter().any(|value| *value != C32::ZERO));
    assert!(slice(2).iter().all(|value| *value == C32::ZERO));
    // An image a coil.
    let apart = Grappa { combine: Some(Combine::None), ..Grappa::default() };
    assert_eq!(reconstructed(&scan, &ReconOptions::of(apart)).image.data().shape(), [4, 3, 24, 24]);
}
