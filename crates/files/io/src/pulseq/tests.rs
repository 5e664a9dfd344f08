use std::f64::consts::TAU;

use rayspin_core::{C32, C64};
use rayspin_scan::mri::{Counters, Flags, FrameOptions, Label, Limits, Samples};

use super::*;
use crate::ismrmrd::Identity;

/// The shapes of the sequences below: a pulse of 100 samples, its phase of 0, a gradient of four samples on
/// the raster, and the times and amplitudes of a trapezoid of one's own.
const SHAPES: &str = "[SHAPES]\n\nshape_id 1\nnum_samples 100\n1\n0\n0\n97\n\nshape_id 2\nnum_samples 100\n0\n0\n98\n\n\
    shape_id 3\nnum_samples 4\n0.25\n0.5\n0.5\n0\n0\n\nshape_id 4\nnum_samples 4\n0\n1\n1\n0\n\n\
    shape_id 5\nnum_samples 4\n0\n2\n6\n8\n";

/// Excitation; a trapezoid along y; refocusing; a shaped gradient along x beside a trapezoid along z,
/// sampled. The version's own sections come first.
fn sequence(version: [u32; 3], sections: &str) -> String {
    let [major, minor, revision] = version;
    format!(
        "# Pulseq\n[VERSION]\nmajor {major}\nminor {minor}\nrevision {revision}\n\n[DEFINITIONS]\nFOV 0.2 0.1 0.005\n\n{sections}\n\
         [TRAP]\n1 20000 20 60 40 10\n2 10000 30 100 30 0\n\n{SHAPES}"
    )
}

/// The same sequence in the layouts of four versions. Pulses of 2500 Hz turn by 90°, of 5000 Hz by 180°.
fn versions() -> Vec<([u32; 3], String)> {
    let timed = "[BLOCKS]\n1 20 1 0 0 0 0 0\n2 20 0 0 1 0 0 0\n3 20 2 0 0 0 0 0\n4 20 0 3 0 2 1 0\n";
    let old = "[BLOCKS]\n1 1 1 0 0 0 0\n2 1 0 0 1 0 0\n3 1 2 0 0 0 0\n4 0 0 3 0 2 1\n[DELAYS]\n1 200\n";
    let extended =
        "[BLOCKS]\n1 1 1 0 0 0 0 0\n2 1 0 0 1 0 0 0\n3 1 2 0 0 0 0 0\n4 0 0 3 0 2 1 0\n[DELAYS]\n1 200\n";
    let adc = "[ADC]\n1 8 10000 20 0 0\n";
    let pulses = "[RF]\n1 2500 1 2 30 0 0\n2 5000 1 2 0 0 0\n[GRADIENTS]\n3 8000 3 10\n";
    let of_14 = "[RF]\n1 2500 1 2 0 30 0 0\n2 5000 1 2 0 0 0 0\n[GRADIENTS]\n3 8000 3 0 10\n";
    let of_15 = "[RF]\n1 2500 1 2 0 50 30 0 0 0 0 e\n2 5000 1 2 0 50 0 0 0 0 0 r\n[GRADIENTS]\n3 8000 0 14000 3 0 10\n\
                 [ADC]\n1 8 10000 20 0 0 0 0 0\n";
    vec![
        ([1, 2, 1], sequence([1, 2, 1], &format!("{old}{pulses}{adc}"))),
        ([1, 3, 1], sequence([1, 3, 1], &format!("{extended}{pulses}{adc}"))),
        ([1, 4, 2], sequence([1, 4, 2], &format!("{timed}{of_14}{adc}"))),
        ([1, 5, 0], sequence([1, 5, 0], &format!("{timed}{of_15}"))),
    ]
}

fn read(text: &str) -> Result<Sequence> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.seq");
    std::fs::write(&file, text).unwrap();
    Sequence::read(&file)
}

/// ∫ G from 0 to t in s by many small steps, G linear between points.
fn integral(points: &[[f64; 2]], until: f64) -> f64 {
    let at = |t: f64| {
        let piece = points.windows(2).find(|two| two[0][0] <= t && t < two[1][0]);
        piece.map_or(0.0, |two| {
            two[0][1] + (two[1][1] - two[0][1]) * (t - two[0][0]) / (two[1][0] - two[0][0])
        })
    };
    let steps = 200_000;
    let step = until / f64::from(steps);
    (0..steps).map(|index| at((f64::from(index) + 0.5) * step) * step).sum()
}

#[test]
fn every_version_places_samples_where_the_integral_of_gradients_is() {
    let us = |points: &[[f64; 2]]| points.iter().map(|[t, g]| [t * 1e-6, *g]).collect::<Vec<_>>();
    // Before the refocusing pulse: a trapezoid along y.
    let y = integral(&us(&[[10.0, 0.0], [30.0, 20000.0], [90.0, 20000.0], [130.0, 0.0]]), 2e-4);
    // Four samples of 2000, 6000, 10000 and 10000 Hz/m at the middles of the raster, from 0 to the
    // extrapolated end; differences of the shape are ¼, ½, ½, 0, counted as two more of ½.
    for (version, text) in versions() {
        let sequence = read(&text).unwrap_or_else(|error| panic!("{version:?}: {error}"));
        let [readout] = sequence.readouts() else { panic!("{version:?}") };
        assert_eq!((readout.dim(), sequence.fov_mm()), ((8, 3), Some([200.0, 100.0, 5.0])));
        let x = us(&[
            [10.0, 0.0],
            [15.0, 2000.0],
            [25.0, 6000.0],
            [35.0, 10000.0],
            [45.0, 10000.0],
            [50.0, 10000.0],
        ]);
        let z = us(&[[0.0, 0.0], [30.0, 10000.0], [130.0, 10000.0], [160.0, 0.0]]);
        for (sample, place) in readout.rows().into_iter().enumerate() {
            let time = 1e-6 * (20.0 + 10.0 * (sample as f64 + 0.5));
            // 1.5 states another end of the shape.
            let mut x = x.clone();
            x[5][1] = if version >= [1, 5, 0] { 14000.0 } else { 10000.0 };
            for (axis, wanted) in [(0, integral(&x, time)), (1, -y), (2, integral(&z, time))] {
                let found = place[axis];
                assert!((found - wanted).abs() < 2e-6, "{version:?} {sample} {axis}: {found}, {wanted}");
            }
        }
    }
}

#[test]
fn what_is_wrong_in_a_file_is_named() {
    let [.., (_, good), _] = &versions()[..] else { panic!("four versions") };
    for (from, to, said) in [
        ("minor 4", "minor 1", "Pulseq version: expected 1.2.0 to 1.5, found 1.1.2"),
        ("minor 4", "minor 9", "found 1.9.2"),
        ("[VERSION]", "[VERSIONS]", "the section VERSION before it"),
        ("4 20 0 3 0 2 1 0", "4 20 0 7 0 2 1 0", "the gradient 7 of block 4"),
        ("4 20 0 3 0 2 1 0", "4 20 0 3 0 2 9 0", "the ADC 9 of block 4"),
        ("4 20 0 3 0 2 1 0", "4 20 0 3", "7 numbers"),
        ("4 20 0 3 0 2 1 0", "4 20 0 3 0 2 0 0", "ADC events: expected at least one"),
        ("3 8000 3 0 10", "3 8000 3 1 10", "4 rising times"),
        ("3 8000 3 0 10", "3 8000 3 4 10", "4 rising times"),
        ("3 8000 3 0 10", "3 8000 8 0 10", "the shape 8"),
        ("3 8000 3 0 10", "3 8000 3 0 -10", "a time from 0"),
        ("3 8000 3 0 10", "3 nan 3 0 10", "a number in place 2"),
        ("num_samples 4\n0.25", "num_samples 6\n0.25", "6 samples of shape 3"),
        ("num_samples 4\n0.25", "num_samples 999999999999\n0.25", "samples"),
        ("1 8 10000", "1 99999999999 10000", "at most"),
        (
            "[TRAP]",
            "[EXTENSIONS]\n1 1 1 0\nextension ROTATIONS 1\n1 1 0 0 0\n[TRAP]",
            "the extension ROTATIONS",
        ),
    ] {
        assert!(good.contains(from), "{from}");
        let refused = read(&good.replacen(from, to, 1)).expect_err(to).to_string();
        assert!(refused.contains(said), "{to}: {refused}");
    }
    // A gradient of times of its own; extensions that change no gradient.
    assert!(read(&good.replacen("3 8000 3 0 10", "3 8000 3 5 10", 1)).is_ok());
    let labelled = good.replace("[TRAP]", "[EXTENSIONS]\n1 1 1 0\n\nextension LABELSET 1\n1 2 LIN\n[TRAP]");
    assert!(read(&labelled).is_ok());
    assert!(read("nothing").unwrap_err().to_string().contains("Pulseq"));
    assert!(read("").is_err());
}

#[test]
fn no_cut_and_no_overwritten_text_does_harm() {
    for (_, text) in versions() {
        for end in 0..text.len() {
            let _ = read(&text[..end]);
        }
        for start in (0..text.len()).step_by(3) {
            let mut bytes = text.clone().into_bytes();
            bytes[start] = b'9';
            let _ = read(std::str::from_utf8(&bytes).unwrap());
        }
    }
}

fn drawn(readouts: Vec<Array2<f64>>, fov_mm: Option<[f64; 3]>) -> Sequence {
    Sequence {
        path: "a.seq".into(),
        readouts,
        fov_mm,
        fov_said: None,
        times: Times::default(),
        on_lines: true,
    }
}

/// Simulated once for all tests.
fn simulated() -> &'static Scan {
    static SIMULATED: std::sync::OnceLock<Scan> = std::sync::OnceLock::new();
    SIMULATED.get_or_init(|| {
        rayspin_mri::simulate::simulate(&Default::default(), &Monitor::silent()).unwrap().scan
    })
}

fn scan_of(samples: &[usize]) -> Scan {
    let space = EncodedSpace { matrix: [64, 64, 1], fov_mm: [300.0, 300.0, 5.0] };
    let encoding = rayspin_scan::mri::Encoding {
        encoded: space,
        recon: space,
        trajectory: TrajectoryKind::Epi,
        step_1: None,
        step_2: None,
        slice: None,
        repetition: None,
        acceleration: None,
        ramps: None,
        places: None,
    };
    let readout = |&samples: &usize| Acquisition {
        data: ndarray::ArcArray2::zeros((2, samples)),
        flags: Flags::REVERSE,
        counters: Counters::default(),
        ..simulated().acquisitions[0].clone()
    };
    let mut acquisitions: Vec<Acquisition> = samples.iter().map(readout).collect();
    acquisitions[0].flags = Flags::NOISE;
    let header = ScanHeader { encodings: vec![encoding], ..ScanHeader::default() };
    Scan { header, acquisitions, notes: Vec::new() }
}

#[test]
fn readouts_of_a_scan_get_the_places_of_the_sequence() {
    let sequence = read(&versions()[2].1).unwrap();
    let mut scan = scan_of(&[30, 8]);
    sequence.place(&mut scan).unwrap();
    assert!(scan.acquisitions[0].trajectory.is_none());
    let points = scan.acquisitions[1].trajectory.as_ref().unwrap();
    assert_eq!(points.dim(), (8, 3));
    assert!((f64::from(points[[7, 2]]) - sequence.readouts()[0][[7, 2]]).abs() < 1e-6);
    assert!(!scan.acquisitions[1].flags.contains(Flags::REVERSE));
    let encoding = &scan.header.encodings[0];
    assert_eq!(scan.header.trajectory_units, Some(TrajectoryUnits::CyclesPerMetre));
    assert_eq!(encoding.recon.fov_mm, [200.0, 100.0, 5.0]);
    assert_eq!(scan.notes.len(), 1);
    for (samples, said) in [
        (&[30, 8, 8][..], "expected 2, one for each readout of the scan, found 1"),
        (&[30, 9], "expected 9, as the scan has, found 8"),
    ] {
        let refused = sequence.place(&mut scan_of(samples)).unwrap_err().to_string();
        assert!(refused.contains(said), "{refused}");
    }
}

#[test]
fn the_matrix_holds_all_samples() {
    let of = |lines: &[f64]| {
        let readouts = lines.iter().map(|&k| Array2::from_elem((4, 3), k * 5.0)).collect();
        drawn(readouts, None).matrix_along(1, 200.0)
    };
    let lines = |first: i32, last: i32| (first..=last).map(f64::from).collect::<Vec<f64>>();
    for (first, last, matrix) in
        [(-48, 47, 96), (-47, 48, 96), (-20, 47, 96), (-48, 20, 96), (-47, 47, 96), (0, 0, 2)]
    {
        assert_eq!(of(&lines(first, last)), matrix, "{first} to {last}");
    }
    let along = |samples: &[f64]| {
        let k = Array2::from_shape_fn((samples.len(), 3), |(i, _)| samples[i] * 5.0);
        drawn(vec![k], None).matrix_along(0, 200.0)
    };
    let even =
        |first: f64, step: f64, n: usize| (0..n).map(|i| first + step * i as f64).collect::<Vec<f64>>();
    assert_eq!(along(&even(-48.0, 1.0, 96)), 96);
    assert_eq!(along(&even(-47.5, 1.0, 96)), 96);
    assert_eq!(along(&even(-48.0, 0.5, 192)), 96);
    assert_eq!(along(&even(-47.9, 0.7, 138)), 96);
    assert_eq!(along(&even(-64.0, 1.0, 129)), 128); // a spiral's ends
}

/// A readout along x: its places along x and its line, in cycles per field of view.
type Drawn = (Vec<f64>, [f64; 2]);

/// Readouts over a field of view of 200 mm.
fn along_x(readouts: &[Drawn]) -> Sequence {
    let readout = |(along, [y, z]): &Drawn| {
        Array2::from_shape_fn((along.len(), 3), |(sample, axis)| [along[sample], *y, *z][axis] * 5.0)
    };
    let readouts = readouts.iter().map(readout).collect();
    drawn(readouts, Some([200.0; 3]))
}

/// A train of lines from `first` on, of which every other one runs backwards.
fn train(along: &[f64], first: i32, lines: i32) -> Vec<Drawn> {
    let line = |index: i32| {
        let mut own = along.to_vec();
        if index % 2 == 1 {
            own.reverse();
        }
        (own, [f64::from(first + index), 0.0])
    };
    (0..lines).map(line).collect()
}

fn even(first: f64, step: f64, n: usize) -> Vec<f64> {
    (0..n).map(|index| first + step * index as f64).collect()
}

/// n places around 0 whose steps rise to `widest` and fall again, as on ramps.
fn ramped(n: usize, widest: f64) -> Vec<f64> {
    let step = |index: usize| {
        let end = 1 + index.min(n - 2 - index);
        widest * (end as f64 / (0.3 * n as f64)).min(1.0)
    };
    let mut places = vec![0.0];
    (0..n - 1).for_each(|index| places.push(places[index] + step(index)));
    let middle = places[n - 1] / 2.0;
    places.iter().map(|k| k - middle).collect()
}

/// A smooth object that fills half of the field of view.
fn object(kx: f64, ky: f64) -> C64 {
    let size = (-(0.22 * kx).powi(2) - (0.2 * ky).powi(2)).exp();
    C64::from_polar(size, 0.4 - TAU * (0.06 * kx - 0.11 * ky))
}

/// A scan whose samples are `signal` at the places of a sequence.
fn measured(sequence: &Sequence, signal: fn(f64, f64) -> C64) -> Scan {
    let mut scan = scan_of(&[4]);
    let blank = Acquisition { flags: Flags::default(), ..scan.acquisitions[0].clone() };
    scan.acquisitions = sequence
        .readouts
        .iter()
        .map(|places| {
            let value = |sample: usize| signal(places[[sample, 0]] / 5.0, places[[sample, 1]] / 5.0);
            let data = Array2::from_shape_fn((1, places.nrows()), |(_, sample)| {
                let value = value(sample);
                C32::new(value.re as f32, value.im as f32)
            });
            Acquisition { data: data.into_shared(), centre_sample: 0, ..blank.clone() }
        })
        .collect();
    scan
}

/// The grid of the first image, and notes.
fn grid(scan: &Scan) -> (ndarray::ArrayD<C32>, Vec<String>) {
    let mut notes = Vec::new();
    let frames = scan.frames().unwrap();
    let frame = frames.assemble(Label::default(), &FrameOptions::default(), &mut notes).unwrap();
    let Samples::Cartesian { kspace, sampled } = frame.samples else { panic!("expected a grid") };
    assert!(sampled.iter().all(|measured| *measured), "{notes:?}");
    (kspace, notes)
}

#[test]
fn lines_of_a_train_are_a_grid() {
    for (along, first, matrix, limits) in [
        (even(-32.0, 1.0, 64), -16, [64, 32], (0, 31)),
        (even(-31.5, 1.0, 64), -15, [64, 32], (1, 32)),
        // Twice as many samples as pixels.
        (even(-31.75, 0.5, 127), -16, [128, 32], (0, 31)),
        (ramped(90, 0.95), -16, [90, 32], (0, 31)),
    ] {
        let sequence = along_x(&train(&along, first, 32));
        let mut scan = measured(&sequence, object);
        sequence.place(&mut scan).unwrap();
        let encoding = &scan.header.encodings[0];
        let case = format!("{} samples from {}", along.len(), along[0]);
        assert_eq!(encoding.trajectory, TrajectoryKind::Epi, "{case}");
        assert_eq!(encoding.encoded.matrix, [matrix[0], matrix[1], 1], "{case}");
        let (minimum, maximum) = limits;
        assert_eq!(encoding.step_1, Some(Limits { minimum, maximum, centre: 16 }), "{case}");
        assert_eq!(scan.header.trajectory_units, None);
        assert!(scan.notes[0].contains("32 lines of a grid, 16 of them run backwards"), "{:?}", scan.notes);
        for (index, readout) in scan.acquisitions.iter().enumerate() {
            assert!(readout.trajectory.is_none());
            assert_eq!(readout.flags.contains(Flags::REVERSE), index % 2 == 1, "{case}");
        }
        // ISMRMRD has no field for places between whole numbers.
        let folder = tempfile::tempdir().unwrap();
        let written = crate::ismrmrd::write(folder.path().join("a.h5"), &scan, Identity::default());
        let refused = written.err().map(|error| error.to_string());
        let said = refused.is_some_and(|error| error.contains("places of samples along readouts"));
        assert_eq!(said, along[0] != -32.0, "{case}");
        // A readout of 127 samples does not reach the last place.
        if along.len() == 127 {
            continue;
        }
        let (kspace, notes) = grid(&scan);
        let scale = matrix[0] as f64 / encoding.recon.matrix[0] as f64;
        let (mut off, mut energy) = (0.0, 0.0);
        for (place, value) in kspace.indexed_iter() {
            let [kx, ky] = [(place[2], matrix[0]), (place[1], 32)].map(|(i, n)| i as f64 - (n / 2) as f64);
            let wanted = object(kx / scale, if first == -15 && ky == -16.0 { 16.0 } else { ky });
            off += (C64::new(value.re.into(), value.im.into()) - wanted).norm_sqr();
            energy += wanted.norm_sqr();
        }
        assert!(off < 1e-5 * energy, "{case}: {}", off / energy);
        let ramps = notes.iter().any(|note| note.contains("interpolated to even places"));
        assert_eq!(ramps, along.len() == 90, "{notes:?}");
    }
}

#[test]
fn a_method_may_take_lines_along_a_trajectory() {
    let sequence = along_x(&train(&even(-31.5, 1.0, 64), -16, 32)).along_trajectories();
    let mut scan = measured(&sequence, object);
    sequence.place(&mut scan).unwrap();
    assert!(scan.acquisitions.iter().all(|readout| readout.trajectory.is_some()));
    assert!(scan.notes[0].contains("along a trajectory"), "{:?}", scan.notes);
}

#[test]
fn readouts_that_are_no_lines_of_a_grid_lie_along_a_trajectory() {
    let lines = |change: fn(&mut Vec<Drawn>)| {
        let mut readouts = train(&even(-16.0, 1.0, 32), -16, 32);
        change(&mut readouts);
        let sequence = along_x(&readouts);
        let mut scan = measured(&sequence, object);
        sequence.place(&mut scan).unwrap();
        (scan.acquisitions[0].trajectory.is_some(), scan.notes.join("; "))
    };
    assert!(!lines(|_| ()).0);
    for (said, change) in [
        ("not whole cycles", (|all| all[3].1[0] += 0.3) as fn(&mut Vec<Drawn>)),
        ("several places along x", |all| all[3].0.iter_mut().for_each(|k| *k += 0.2)),
        ("several numbers of samples", |all| all[3].0.truncate(20)),
        ("more than a cycle", |all| all.iter_mut().for_each(|one| one.0.iter_mut().for_each(|k| *k *= 1.5))),
        ("does not rise or fall", |all| all.iter_mut().for_each(|one| one.0.swap(3, 4))),
        ("does not rise or fall", |all| all.iter_mut().for_each(|one| one.0.fill(0.0))),
        ("centre of k-space", |all| all.iter_mut().for_each(|one| one.0.iter_mut().for_each(|k| *k += 60.0))),
        ("not all numbers", |all| all[0].0.fill(f64::NAN)),
        ("not all numbers", |all| all[5].1[0] = f64::INFINITY),
    ] {
        let (along, notes) = lines(change);
        assert!(along && notes.contains(said), "{said}: {notes}");
    }
    // Spokes.
    let spoke = |angle: f64| {
        let turn = [angle.cos(), angle.sin(), 0.0];
        Array2::from_shape_fn((32, 3), |(sample, axis)| (sample as f64 - 16.0) * turn[axis] * 5.0)
    };
    let readouts = (0..8).map(|index| spoke(0.2 * f64::from(index))).collect();
    let sequence = drawn(readouts, Some([200.0; 3]));
    let mut scan = measured(&sequence, object);
    sequence.place(&mut scan).unwrap();
    assert!(scan.acquisitions.iter().all(|readout| readout.trajectory.is_some()));
    assert!(scan.notes[0].contains("no lines along x"), "{:?}", scan.notes);
}

#[test]
fn an_axis_along_which_k_does_not_change_is_not_encoded() {
    // A 2-D scan whose slice is not, or not wholly, rephased: k along z is the same up to rounding.
    for (kz, said) in [(0.0, false), (1e-6, false), (0.3, false), (2.0, true), (-7.25, true)] {
        let mut readouts = train(&even(-32.0, 1.0, 64), -16, 32);
        let rounded = |index: usize| kz * (1.0 + 1e-7 * (index % 3) as f64) + 1e-6 * (index % 2) as f64;
        readouts.iter_mut().enumerate().for_each(|(index, one)| one.1[1] = rounded(index));
        let sequence = along_x(&readouts);
        let mut scan = measured(&sequence, object);
        sequence.place(&mut scan).unwrap();
        let encoding = &scan.header.encodings[0];
        assert_eq!(encoding.recon.matrix, [64, 32, 1], "{kz}");
        assert!(scan.acquisitions.iter().all(|readout| readout.trajectory.is_none()), "{kz}");
        let about = |note: &String| note.contains("off the centre of k-space along z");
        assert_eq!(
            scan.notes.iter().filter(|note| about(note)).count(),
            usize::from(said),
            "{:?}",
            scan.notes
        );
        // Along a trajectory, too.
        let mut along = measured(&sequence, object);
        sequence.along_trajectories().place(&mut along).unwrap();
        assert_eq!(along.header.encodings[0].recon.matrix, [64, 32, 1], "{kz}");
        let two = |readout: &Acquisition| readout.trajectory.as_ref().map(|points| points.ncols()) == Some(2);
        assert!(along.acquisitions.iter().all(two), "{kz}");
    }
    // Partitions of a slab are encoded, be they two.
    let mut readouts = train(&even(-32.0, 1.0, 64), -16, 32);
    readouts.iter_mut().skip(16).for_each(|one| one.1[1] = -1.0);
    let mut scan = measured(&along_x(&readouts), object);
    along_x(&readouts).place(&mut scan).unwrap();
    assert_eq!(scan.header.encodings[0].recon.matrix, [64, 32, 2]);
    // No phase encoding: one line.
    for ky in [0.0, 3.0] {
        let mut readouts = train(&even(-32.0, 1.0, 64), 0, 32);
        readouts.iter_mut().for_each(|one| one.1[0] = ky);
        let sequence = along_x(&readouts);
        let mut scan = measured(&sequence, object);
        sequence.place(&mut scan).unwrap();
        let encoding = &scan.header.encodings[0];
        assert_eq!((encoding.recon.matrix, encoding.trajectory), ([64, 1, 1], TrajectoryKind::Epi));
        let once = scan.notes.iter().filter(|note| note.contains("32 readouts measure one line")).count();
        assert_eq!(once, 1, "{:?}", scan.notes);
        assert_eq!(grid(&scan).0.shape()[1..], [1, 64]);
    }
}

#[test]
fn a_field_of_view_that_is_not_stated_in_metres_is_said() {
    let text = |fov: &str| versions()[2].1.replace("FOV 0.2 0.1 0.005\n", fov);
    for (fov, taken, said) in [
        ("FOV 0.2 0.1 0.005\n", [200.0, 100.0, 5.0], None),
        // Longer than a metre along one axis, as a table is.
        ("FOV 0.5 1.6 0.5\n", [500.0, 1600.0, 500.0], None),
        ("FOV 220 210 5\n", [220.0, 210.0, 5.0], Some("220 210 5, which is read as mm")),
        ("", [300.0, 300.0, 5.0], Some("defines no FOV: the protocol's field of view of 300 × 300 × 5 mm")),
        (
            "FOV 0.22\n",
            [300.0, 300.0, 5.0],
            Some("the FOV '0.22', which is not three lengths in m: the protocol's"),
        ),
        ("FOV 0.2 0.2 0\n", [300.0, 300.0, 5.0], Some("the FOV '0.2 0.2 0'")),
        ("FOV wide 0.2 0.1\n", [300.0, 300.0, 5.0], Some("the FOV 'wide 0.2 0.1'")),
    ] {
        let sequence = read(&text(fov)).unwrap();
        let mut scan = scan_of(&[30, 8]);
        sequence.place(&mut scan).unwrap();
        assert_eq!(scan.header.encodings[0].recon.fov_mm, taken, "{fov}");
        let found: Vec<&String> = scan.notes.iter().filter(|note| note.contains("FOV")).collect();
        assert_eq!(found.len(), usize::from(said.is_some()), "{fov}: {found:?}");
        assert!(said.is_none_or(|said| found[0].contains(said)), "{fov}: {found:?}");
    }
}

/// A spin-echo or a gradient-echo train of `lines` of an excitation with slices of this many frequencies, in
/// version 1.4: blocks of 1 ms, pulses of 100 µs of 2500 Hz (90°) or of 1250 Hz (45°) in their middle.
fn echo_train(hertz: f64, offsets: &[f64], repetitions: usize, contrasts: usize) -> Sequence {
    let mut blocks = String::new();
    let mut number = 0;
    let mut block = |rest: String| {
        number += 1;
        blocks += &format!("{number} 100 {rest} 0\n");
    };
    for repetition in 0..repetitions {
        for slice in 0..offsets.len() {
            // The line is the repetition, by a blip; the readout goes through k = 0 at 4 of 8 samples.
            block(format!("{} 0 0 0 0", slice + 1));
            block(format!("0 1 {} 0 0", 10 + repetition));
            for contrast in 0..contrasts {
                block("0 2 0 0 1".to_owned());
                if contrast + 1 < contrasts {
                    block("0 3 0 0 0".to_owned());
                }
            }
        }
    }
    let pulses: String = (offsets.iter().enumerate())
        .map(|(slice, offset)| format!("{} {hertz} 1 2 0 450 {offset} 0\n", slice + 1))
        .collect();
    // Eight samples of 100 µs at 10 cycles/m each, from the middle of the flat top.
    let lines: String = (0..repetitions)
        .map(|line| {
            format!("{} {} 100 100 100 0\n", 10 + line, 25000.0 * (line as f64 - (repetitions / 2) as f64))
        })
        .collect();
    let text = format!(
        "[VERSION]\nmajor 1\nminor 4\nrevision 0\n[DEFINITIONS]\nFOV 0.2 0.2 0.005\n[BLOCKS]\n{blocks}[RF]\n{pulses}\
         [TRAP]\n1 -225000 100 100 100 0\n2 50000 100 800 100 0\n3 -225000 100 100 100 0\n{lines}[ADC]\n1 8 100000 100 0 0\n\
         [SHAPES]\nshape_id 1\nnum_samples 100\n1\n0\n0\n97\n\nshape_id 2\nnum_samples 100\n0\n0\n98\n"
    );
    read(&text).unwrap()
}

#[test]
fn times_and_angle_follow_from_the_sequence() {
    let heads = |sequence: &Sequence, contrasts: usize, counted: bool| {
        let blank = AcquisitionHead::from(&scan_of(&[8, 8]).acquisitions[1]);
        let head = |number: usize| {
            let mut head = AcquisitionHead { flags: Flags::default(), ..blank };
            head.counters.contrast = if counted { (number % contrasts) as u16 } else { 0 };
            head
        };
        (0..sequence.readouts().len()).map(head).collect::<Vec<_>>()
    };
    let of = |sequence: &Sequence, contrasts: usize, counted: bool| {
        let found = sequence.followed(heads(sequence, contrasts, counted).iter());
        (found.repetition_times, found.echo_times, found.flip_angles)
    };
    // Excitation at 0.5 ms; the readout's block begins at 2 ms, and k = 0 is its sample at 100 + 450 µs: k is
    // −45 + 2.5 + 5 (i + ½) there.
    let one = echo_train(2500.0, &[0.0], 4, 1);
    let place = |sample: usize| one.readouts()[0][[sample, 0]];
    let nearest = (0..8).min_by(|a, b| place(*a).abs().total_cmp(&place(*b).abs())).unwrap();
    let echo = 2.0 + 0.1 + 0.1 * (nearest as f64 + 0.5) - 0.5;
    assert_eq!(of(&one, 1, false), (vec![3.0], vec![rounded(echo)], vec![90.0]));
    // Slices come in turn.
    let slices = echo_train(1250.0, &[-500.0, 0.0, 500.0], 2, 1);
    assert_eq!(of(&slices, 1, false), (vec![9.0], vec![rounded(echo)], vec![45.0]));
    // Two echoes, which readouts count or do not.
    let echoes = echo_train(1250.0, &[0.0], 4, 2);
    assert_eq!(of(&echoes, 2, true), (vec![5.0], vec![rounded(echo), rounded(echo + 2.0)], vec![45.0]));
    assert_eq!(of(&echoes, 2, false), (vec![5.0], vec![], vec![45.0]));
    // A single excitation repeats nothing.
    assert_eq!(of(&echo_train(2500.0, &[0.0], 1, 1), 1, false).0, Vec::<f64>::new());
}

fn rounded(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

#[test]
fn what_follows_from_the_sequence_stands_in_the_protocol() {
    let sequence = echo_train(2500.0, &[0.0], 4, 1);
    let folder = tempfile::tempdir().unwrap();
    crate::ismrmrd::write(folder.path().join("a.h5"), simulated(), Identity::default()).unwrap();
    let header = crate::ismrmrd::header(folder.path().join("a.h5"), None).unwrap();
    let stated = "<sequenceParameters><TR>100</TR><TE>10</TE><TI>5</TI></sequenceParameters>";
    let plain = header.xml.unwrap();
    let with = plain.replace("</encoding>", &format!("</encoding>{stated}"));
    for (xml, inversion) in [(plain, vec![]), (with, vec![5.0])] {
        let mut placed = measured(&sequence, object);
        placed.header.xml = Some(xml);
        sequence.place(&mut placed).unwrap();
        let own = crate::Protocol::of(&placed.header, &[]).sequence;
        let followed = sequence
            .followed(placed.acquisitions.iter().map(AcquisitionHead::from).collect::<Vec<_>>().iter());
        assert_eq!((&own.repetition_times_ms, &own.flip_angles_deg), (&vec![3.0], &vec![90.0]));
        assert_eq!((own.echo_times_ms, own.inversion_times_ms), (followed.echo_times, inversion));
    }
}
