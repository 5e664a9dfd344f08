use ndarray::Array2;
use rayspin_core::{C32, Error, TrajectoryUnits};

use super::*;

mod centres;
mod places;

fn space(matrix: [usize; 3]) -> EncodedSpace {
    EncodedSpace { matrix, fov_mm: matrix.map(|n| n as f64) }
}

fn encoding(encoded: [usize; 3], recon: [usize; 3]) -> Encoding {
    Encoding {
        encoded: space(encoded),
        recon: space(recon),
        trajectory: TrajectoryKind::Cartesian,
        step_1: Some(Limits { minimum: 0, maximum: encoded[1] - 1, centre: encoded[1] / 2 }),
        step_2: Some(Limits { minimum: 0, maximum: encoded[2] - 1, centre: encoded[2] / 2 }),
        slice: None,
        repetition: None,
        acceleration: None,
        ramps: None,
        places: None,
    }
}

/// A readout whose sample s of coil c is (1000·line + s) + i·c.
fn readout(samples: usize, line: u16, coils: usize) -> Acquisition {
    Acquisition {
        flags: Flags::default(),
        counters: Counters { step_1: line, ..Counters::default() },
        encoding: 0,
        centre_sample: samples / 2,
        discard_pre: 0,
        discard_post: 0,
        sample_time_us: 5.0,
        time_stamp: 0,
        position: [0.0; 3],
        read_dir: [1.0, 0.0, 0.0],
        phase_dir: [0.0, 1.0, 0.0],
        slice_dir: [0.0, 0.0, 1.0],
        data: Array2::from_shape_fn((coils, samples), |(c, s)| {
            C32::new(1000.0 * f32::from(line) + s as f32, c as f32)
        })
        .into_shared(),
        trajectory: None,
    }
}

fn scan(encoding: Encoding, acquisitions: Vec<Acquisition>) -> Scan {
    Scan {
        header: ScanHeader { encodings: vec![encoding], ..ScanHeader::default() },
        acquisitions,
        notes: vec![],
    }
}

fn only_frame(scan: &Scan) -> rayspin_core::Result<(Frame, Vec<String>)> {
    let mut notes = Vec::new();
    let index = scan.frames()?;
    let label = index.labels().next().unwrap();
    Ok((index.assemble(label, &FrameOptions::default(), &mut notes)?, notes))
}

fn grid(frame: &Frame) -> (&ndarray::ArrayD<C32>, &ndarray::ArrayD<bool>) {
    match &frame.samples {
        Samples::Cartesian { kspace, sampled } => (kspace, sampled),
        Samples::NonCartesian { .. } => panic!("expected a grid"),
    }
}

#[test]
fn lines_land_where_their_counters_say() {
    let lines = vec![readout(6, 0, 2), readout(6, 3, 2)];
    let (frame, notes) = only_frame(&scan(encoding([6, 4, 1], [6, 4, 1]), lines)).unwrap();
    let (kspace, sampled) = grid(&frame);
    assert_eq!((kspace.shape(), &frame.matrix[..]), (&[2, 4, 6][..], &[4, 6][..]));
    assert_eq!(kspace[[1, 3, 5]], C32::new(3005.0, 1.0));
    assert_eq!(kspace[[0, 0, 2]], C32::new(2.0, 0.0));
    assert_eq!(sampled.iter().filter(|&&s| s).count(), 12);
    assert!(notes.is_empty(), "{notes:?}");
}

#[test]
fn a_reversed_line_is_turned_round_and_averages_are_averaged() {
    let mut back = readout(4, 1, 1);
    back.flags = Flags::REVERSE;
    let (frame, _) = only_frame(&scan(encoding([4, 2, 1], [4, 2, 1]), vec![back, readout(4, 1, 1)])).unwrap();
    let (kspace, _) = grid(&frame);
    for x in 0..4 {
        assert_eq!(kspace[[0, 1, x]], C32::new(1001.5, 0.0));
    }
}

#[test]
fn oversampling_widens_the_grid_and_partial_echoes_keep_their_centre() {
    let mut partial = readout(6, 1, 1);
    partial.centre_sample = 2;
    let (frame, _) = only_frame(&scan(encoding([8, 2, 1], [4, 2, 1]), vec![partial])).unwrap();
    let (kspace, sampled) = grid(&frame);
    assert_eq!((kspace.shape(), &frame.matrix[..]), (&[1, 2, 8][..], &[2, 4][..]));
    assert_eq!(kspace[[0, 1, 4]], C32::new(1002.0, 0.0));
    assert!(!sampled[[1, 1]] && sampled[[1, 2]] && sampled[[1, 7]]);
}

#[test]
fn readouts_whose_oversampling_may_have_been_removed_are_told() {
    let told = |samples: usize, centre: usize| {
        let lines = [0, 1].map(|line| Acquisition { centre_sample: centre, ..readout(samples, line, 1) });
        let (_, notes) = only_frame(&scan(encoding([16, 2, 1], [8, 2, 1]), lines.to_vec())).unwrap();
        notes.iter().any(|note| note.contains("stretched"))
    };
    assert!(told(8, 4));
    // All samples, and partial echoes of any length.
    assert!(!told(16, 8) && !told(8, 2) && !told(12, 4));
    let (_, notes) = only_frame(&scan(encoding([8, 2, 1], [8, 2, 1]), vec![readout(8, 0, 1)])).unwrap();
    assert!(!notes.iter().any(|note| note.contains("stretched")), "{notes:?}");
}

#[test]
fn readouts_that_are_no_image_are_left_out() {
    let mut noise = readout(3, 0, 5);
    noise.flags = Flags::NOISE;
    let mut dummy = readout(1, 9, 1);
    dummy.flags = Flags(1 << 28);
    let (frame, _) =
        only_frame(&scan(encoding([4, 1, 1], [4, 1, 1]), vec![noise.clone(), dummy, readout(4, 0, 2)]))
            .unwrap();
    assert_eq!(frame.coils(), 2);
    assert!(scan(encoding([4, 1, 1], [4, 1, 1]), vec![noise]).frames().is_err());
}

#[test]
fn slices_and_repetitions_are_frames_of_their_own() {
    let mut lines = Vec::new();
    for repetition in 0..2 {
        for slice in 0..3 {
            let mut line = readout(4, 0, 1);
            (line.counters.slice, line.counters.repetition) = (slice, repetition);
            lines.push(line);
        }
    }
    let scan = scan(encoding([4, 1, 1], [4, 1, 1]), lines);
    let labels: Vec<_> = scan.frames().unwrap().labels().map(|l| (l.repetition, l.slice)).collect();
    assert_eq!(labels, [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]);
}

fn with_trajectory(points: Array2<f32>) -> Acquisition {
    let mut readout = readout(points.nrows(), 0, 1);
    readout.trajectory = Some(points.into_shared());
    readout
}

#[test]
fn units_are_found_stated_or_overridden() {
    let mut scan =
        scan(
            encoding([16, 16, 1], [16, 16, 1]),
            vec![with_trajectory(Array2::from_shape_fn((9, 3), |(i, d)| {
                if d == 2 { 0.0 } else { i as f32 / 8.0 - 0.5 }
            }))],
        );
    let largest = |frame: &Frame| match &frame.samples {
        Samples::NonCartesian { trajectory, .. } => (trajectory.dims(), trajectory.extent()[0]),
        Samples::Cartesian { .. } => panic!("expected a trajectory"),
    };
    let (frame, notes) = only_frame(&scan).unwrap();
    assert_eq!(largest(&frame), (2, 8.0));
    assert!(notes.iter().any(|n| n.contains("cycles/voxel")), "{notes:?}");
    scan.header.trajectory_units = Some(TrajectoryUnits::CyclesPerFov);
    assert_eq!(largest(&only_frame(&scan).unwrap().0), (2, 0.5));
    let options = FrameOptions { units: Some(TrajectoryUnits::RadiansPerVoxel), ..FrameOptions::default() };
    let index = scan.frames().unwrap();
    let frame = index.assemble(Label::default(), &options, &mut vec![]).unwrap();
    assert!((largest(&frame).1 - 4.0 / std::f64::consts::PI).abs() < 1e-6);
}

#[test]
fn a_one_dimensional_trajectory_takes_its_line_from_the_counter() {
    let mut ramp = with_trajectory(Array2::from_shape_fn((4, 1), |(i, _)| 2.0 * i as f32 - 3.0));
    ramp.counters.step_1 = 5;
    let (frame, _) = only_frame(&scan(encoding([8, 8, 1], [8, 8, 1]), vec![ramp])).unwrap();
    let Samples::NonCartesian { trajectory, .. } = &frame.samples else { panic!("expected a trajectory") };
    assert_eq!((trajectory.point(0), trajectory.point(3)), (&[-3.0, 1.0][..], &[3.0, 1.0][..]));
}

#[test]
fn contradictions_are_named() {
    let name = |result: rayspin_core::Result<(Frame, Vec<String>)>| match result.unwrap_err() {
        Error::Value { what, .. } | Error::Shape { what, .. } | Error::NotFinite { what, .. } => what,
        other => panic!("{other}"),
    };
    let e = || encoding([4, 4, 1], [4, 4, 1]);
    assert_eq!(
        name(only_frame(&scan(e(), vec![readout(4, 0, 2), readout(4, 1, 3)]))),
        "acquisition 1: coils"
    );
    assert!(name(only_frame(&scan(e(), vec![readout(4, 9, 1)]))).contains("kspace_encode_step_1"));
    let mut nan = readout(4, 0, 1);
    nan.data[[0, 2]].re = f32::NAN;
    assert_eq!(name(only_frame(&scan(e(), vec![nan]))), "acquisition 0: samples");
    let mut huge = e();
    huge.recon.matrix = [1_000_000_000, 4, 1];
    assert_eq!(name(only_frame(&scan(huge, vec![readout(4, 0, 1)]))), "matrix size");
    let mut far = readout(4, 0, 1);
    far.encoding = 3;
    assert_eq!(name(only_frame(&scan(e(), vec![far]))), "encoding_space_ref");
    let mixed = vec![readout(4, 0, 1), with_trajectory(Array2::ones((4, 2)))];
    assert_eq!(name(only_frame(&scan(e(), mixed))), "trajectory");
    let infinite = with_trajectory(Array2::from_elem((4, 2), f32::INFINITY));
    assert_eq!(name(only_frame(&scan(e(), vec![infinite]))), "acquisition 0: trajectory");
}
