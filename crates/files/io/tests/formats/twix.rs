//! Real files of Siemens' scanners, which are no part of the project.

use std::f64::consts::TAU;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use rayspin_core::{C32, C64, Monitor};
use rayspin_io::pulseq::Sequence;
use rayspin_io::{Protocol, ScanFile, ScanOptions, detect, open_scan, read_scan};
use rayspin_scan::mri::corrections::{Corrections, Value};
use rayspin_scan::mri::{Flags, FrameOptions, Label, Samples, Scan, TrajectoryKind};

use crate::real_data::real_data;
use crate::support::{folder, python};

/// The files, with the readouts of each.
const FILES: [(&str, usize); 9] = [
    ("mri/gre_2ch_ve11.dat", 160),
    ("mri/twix/epi_ve11.dat.xz", 83),
    ("mri/twix/xa61_2024-02-06-164120.dat.xz", 128),
    ("mri/twix/02_03_ro_dur_1200_pe0.dat.xz", 60),
    ("mri/twix/04_03_basic_epi_96x96_pe0.dat.xz", 96),
    ("mri/twix/04_03_basic_epi_96x96_peminus.dat.xz", 96),
    ("mri/twix/04_03_basic_epi_96x96_peplus.dat.xz", 96),
    ("mri/twix/04_03_ramp_sampling_epi_96x96_pe0.dat.xz", 96),
    ("mri/twix/04_03_ramp_sampling_epi_96x96_peplus.dat.xz", 96),
];

/// A file, unpacked into a folder; none where it or the program that unpacks it is absent.
fn unpacked(name: &str, folder: &Path) -> Option<PathBuf> {
    let path = real_data(name)?;
    let file = path.file_name()?.to_string_lossy().into_owned();
    let target = folder.join(file.trim_end_matches(".xz"));
    if !file.ends_with(".xz") {
        std::fs::copy(&path, &target).unwrap();
        return Some(target);
    }
    let Ok(unpacked) = Command::new("xz").arg("-dc").arg(&path).output() else {
        println!("skipped: xz is not there to unpack {name}");
        return None;
    };
    assert!(unpacked.status.success(), "{name}");
    std::fs::write(&target, unpacked.stdout).unwrap();
    Some(target)
}

fn read(path: &Path) -> Scan {
    match read_scan(path, &ScanOptions::default(), &Monitor::silent()).unwrap() {
        ScanFile::Scan(scan) => *scan,
        _ => panic!("expected a scan with a header"),
    }
}

/// What `twix_twixtools.py` compares.
fn rows(scan: &Scan) -> String {
    let kept = [
        Flags::NOISE,
        Flags::PHASE_CORRECTION,
        Flags::REVERSE,
        Flags::FIRST_IN_SLICE,
        Flags::LAST_IN_SLICE,
        Flags::LAST_IN_MEASUREMENT,
    ];
    let mut text = String::new();
    for readout in &scan.acquisitions {
        let (coils, samples) = readout.data.dim();
        let c = &readout.counters;
        let flags =
            kept.iter().enumerate().map(|(bit, flag)| u32::from(readout.flags.contains(*flag)) << bit);
        let counters =
            [c.step_1, c.step_2, c.average, c.slice, c.contrast, c.phase, c.repetition, c.set, c.segment];
        let counters = counters.map(|counter| counter.to_string()).join(" ");
        let [x, y, z] = readout.position;
        let numbers = [
            readout.discard_pre,
            readout.discard_post,
            readout.centre_sample,
            readout.time_stamp as usize,
            flags.sum::<u32>() as usize,
        ];
        let numbers = numbers.map(|number| number.to_string()).join(" ");
        writeln!(text, "{samples} {coils} {counters} {numbers} {x} {y} {z}").unwrap();
    }
    text
}

#[test]
fn samples_and_counters_are_those_of_twixtools() {
    let folder = folder();
    let mut any = false;
    for (name, count) in FILES {
        let Some(path) = unpacked(name, folder.path()) else { continue };
        any = true;
        assert_eq!(detect(&path).unwrap().name, "Siemens raw data");
        let scan = read(&path);
        assert_eq!(scan.acquisitions.len(), count, "{name}");
        let of_pulseq =
            |note: &String| note.contains("the readouts hold") || note.contains("a Pulseq sequence");
        assert!(scan.notes.iter().all(of_pulseq), "{name}: {:?}", scan.notes);
        assert_eq!(
            scan.notes.len(),
            if scan.header.protocol.as_deref() == Some("pulseq") { 2 } else { 0 },
            "{name}"
        );
        let samples: Vec<u8> = scan
            .acquisitions
            .iter()
            .flat_map(|readout| readout.data.iter().flat_map(|v| [v.re, v.im]).flat_map(f32::to_le_bytes))
            .collect();
        std::fs::write(path.with_extension("bin"), samples).unwrap();
        std::fs::write(path.with_extension("txt"), rows(&scan)).unwrap();
    }
    if any {
        python("twix_twixtools.py", "check", folder.path());
    }
}

#[test]
fn protocols_tell_what_was_scanned() {
    let folder = folder();
    if let Some(path) = unpacked("mri/gre_2ch_ve11.dat", folder.path()) {
        let scan = read(&path);
        let encoding = &scan.header.encodings[0];
        assert_eq!((encoding.encoded.matrix, encoding.recon.matrix), ([320, 160, 1], [160, 160, 1]));
        assert_eq!(
            (encoding.encoded.fov_mm, encoding.recon.fov_mm),
            ([400.0, 200.0, 4.0], [200.0, 200.0, 4.0])
        );
        assert_eq!((encoding.trajectory, encoding.ramps), (TrajectoryKind::Cartesian, None));
        assert_eq!(encoding.step_1.map(|limits| (limits.maximum, limits.centre)), Some((159, 80)));
        let header = &scan.header;
        assert_eq!((header.model.as_deref(), header.protocol.as_deref()), (Some("Skyra"), Some("gre")));
        assert_eq!(
            (header.field_strength_t, header.patient_position.as_deref()),
            (Some(2.89362), Some("HFS"))
        );
        assert_eq!(scan.acquisitions[0].sample_time_us, 11.6);
        // The phantom's bubbles are in front, which is where y points of a patient on the back.
        assert!(scan.acquisitions[0].phase_dir[1] < -0.99 && scan.acquisitions[0].read_dir[0] > 0.99);
    }
    if let Some(path) = unpacked("mri/twix/epi_ve11.dat.xz", folder.path()) {
        let scan = read(&path);
        let encoding = &scan.header.encodings[0];
        assert_eq!((encoding.encoded.matrix, encoding.recon.matrix), ([160, 80, 1], [80, 80, 1]));
        let ramps = encoding.ramps.unwrap();
        assert_eq!((ramps.up_us, ramps.flat_us, ramps.down_us), (160.0, 240.0, 160.0));
        assert_eq!((ramps.delay_us, ramps.sampling_us, ramps.samples), (32.0, 496.0, 160));
        let references = scan.acquisitions.iter().filter(|r| r.flags.contains(Flags::PHASE_CORRECTION));
        assert_eq!(references.count(), 3);
        assert_eq!(scan.acquisitions.iter().filter(|r| r.flags.is_image()).count(), 80);
    }
    if let Some(path) = unpacked("mri/twix/xa61_2024-02-06-164120.dat.xz", folder.path()) {
        // The table states no length.
        let reader = open_scan(&path, &Monitor::silent()).unwrap();
        let header = reader.header();
        assert_eq!(header.model.as_deref(), Some("MAGNETOM Cima.X"));
        assert_eq!((header.encodings[0].encoded.matrix, header.coils), ([128, 128, 1], Some(2)));
        assert_eq!(reader.heads().len(), 128);
    }
}

/// Numbers of pypulseq 1.5.0 (`calculate_kspace`): Σ k cos(n/100) over all samples n, and the largest |k|
/// along each axis, in cycles/m.
const SEQUENCES: [(&str, usize, [f64; 3], [f64; 3]); 6] = [
    ("02_03_ro_dur_1200_pe0", 3600, [-418.4121483, 0.0, -0.1775035386], [134.091455, 0.0, 0.0018]),
    ("04_03_basic_epi_96x96_pe0", 9216, [-1590.630005, 0.0, -0.1551304137], [215.90954, 0.0, 0.0018]),
    (
        "04_03_basic_epi_96x96_peminus",
        9216,
        [-1590.630005, -19871.90404, -0.1551304137],
        [215.90954, 218.18128, 0.0018],
    ),
    (
        "04_03_basic_epi_96x96_peplus",
        9216,
        [-1590.630005, 19871.90404, -0.1551304137],
        [215.90954, 218.18128, 0.0018],
    ),
    (
        "04_03_ramp_sampling_epi_96x96_pe0",
        13056,
        [-4729.953557, 0.0, 0.05874259569],
        [217.3872981, 0.0, 0.0006],
    ),
    (
        "04_03_ramp_sampling_epi_96x96_peplus",
        13056,
        [-4729.953557, 22032.60192, 0.05874259569],
        [217.3872981, 218.18115, 0.0006],
    ),
];

#[test]
fn sequences_of_real_scans_lie_where_pypulseq_has_them() {
    let folder = tempfile::tempdir().unwrap();
    for (name, samples, weighted, largest) in SEQUENCES {
        let files = ["dat", "seq"].map(|end| unpacked(&format!("mri/twix/{name}.{end}.xz"), folder.path()));
        let [Some(scan), Some(sequence)] = files else { return };
        let sequence = Sequence::read(&sequence).unwrap();
        let (mut sums, mut most, mut number) = ([0.0; 3], [0.0f64; 3], 0);
        for place in sequence.readouts().iter().flat_map(|readout| readout.rows()) {
            let weight = (f64::from(number) * 0.01).cos();
            for axis in 0..3 {
                sums[axis] += weight * place[axis];
                most[axis] = most[axis].max(place[axis].abs());
            }
            number += 1;
        }
        assert_eq!(number as usize, samples, "{name}");
        for axis in 0..3 {
            let (sum, wanted) = (sums[axis], weighted[axis]);
            assert!((sum - wanted).abs() < 1e-4 * (1.0 + wanted.abs()), "{name} {axis}: {sum}, {wanted}");
            assert!((most[axis] - largest[axis]).abs() < 1e-5, "{name} {axis}: {}", most[axis]);
        }
        // The scan that it made has as many readouts and samples; another scan is refused.
        let reader = open_scan(&scan, &Monitor::silent()).unwrap();
        let placed = sequence.place_reader(reader).unwrap();
        let reversed = |index: usize| index % 2 == 1;
        for (index, head) in placed.heads().iter().enumerate() {
            assert!(!head.trajectory && head.flags.contains(Flags::REVERSE) == reversed(index), "{name}");
        }
        let along = sequence.clone().along_trajectories();
        let along = along.place_reader(open_scan(&scan, &Monitor::silent()).unwrap()).unwrap();
        assert!(along.heads().iter().all(|head| head.trajectory));
        // Without phase encoding there is one line.
        let lines = if name.ends_with("pe0") { 1 } else { 96 };
        let columns = if name.starts_with("02") { 60 } else { 96 };
        assert_eq!(placed.header().encodings[0].recon.matrix, [columns, lines, 1], "{name}");
        // Echo times of pypulseq: from the last excitation to the sample that is nearest to k = 0.
        let told = Protocol::of(placed.header(), &[]).sequence;
        let echo = [("basic_epi_96x96_pe", 43.253), ("ramp_sampling_epi_96x96_pe", 27.53175)]
            .into_iter()
            .find_map(|(own, echo)| (lines > 1 && name.contains(own)).then_some(echo));
        assert_eq!(told.echo_times_ms.len(), usize::from(echo.is_some()), "{name}: {told:?}");
        assert!(
            told.echo_times_ms.iter().zip(echo).all(|(own, wanted)| (own - wanted).abs() < 1e-3),
            "{told:?}"
        );
        assert_eq!((&told.flip_angles_deg[..], told.repetition_times_ms.len()), (&[90.0][..], 0), "{name}");
        // The protocol states an echo time of 10 ms, whichever the sequence.
        let untold = open_scan(&scan, &Monitor::silent()).unwrap();
        assert_eq!(Protocol::of(untold.header(), &[]).sequence, Default::default(), "{name}");
        let placeholders = |note: &String| note.contains("placeholders, which are left out: TE 10 ms");
        assert_eq!(untold.notes().iter().filter(|note| placeholders(note)).count(), 1, "{name}");
        assert!(!placed.notes().iter().any(placeholders), "{name}");
    }
    let (scan, other) = ("mri/twix/epi_ve11.dat.xz", "mri/twix/02_03_ro_dur_1200_pe0.seq.xz");
    if let [Some(scan), Some(other)] = [scan, other].map(|name| unpacked(name, folder.path())) {
        let reader = open_scan(&scan, &Monitor::silent()).unwrap();
        let refused = Sequence::read(other).unwrap().place_reader(reader).err().unwrap().to_string();
        assert!(refused.contains("ADC events: expected 83") && refused.contains("found 60"), "{refused}");
    }
}

/// The magnitudes of a scan's first image `[y][x]`, with this choice of its phase correction, by plain sums.
fn image(scan: &Scan, choice: &'static str) -> Vec<Vec<f64>> {
    let mut corrections = Corrections::default();
    corrections.set("epi_phase", Value::Choice(choice)).unwrap();
    let options = FrameOptions { corrections, ..FrameOptions::default() };
    let frame = scan.frames().unwrap().assemble(Label::default(), &options, &mut Vec::new()).unwrap();
    let Samples::Cartesian { kspace, .. } = frame.samples else { panic!("expected a grid") };
    let [ny, nx, columns] = [kspace.shape()[1], kspace.shape()[2], frame.matrix[1]];
    let turn = |k: usize, x: usize, n: usize| {
        let [k, x] = [k, x].map(|index| index as f64);
        C64::from_polar(1.0, TAU * (k - (n / 2) as f64) * x / n as f64)
    };
    let wide = |value: C32| C64::new(value.re.into(), value.im.into());
    let place = |x: usize| x + nx - columns / 2;
    let hybrid: Vec<Vec<C64>> = (0..ny)
        .map(|line| {
            let at = |x: usize| (0..nx).map(|k| wide(kspace[[0, line, k]]) * turn(k, place(x), nx)).sum();
            (0..columns).map(at).collect()
        })
        .collect();
    let pixel = |y: usize, x: usize| -> C64 {
        (0..ny).map(|line| hybrid[line][x] * turn(line, y + ny - ny / 2, ny)).sum()
    };
    (0..ny).map(|y| (0..columns).map(|x| pixel(y, x).norm()).collect()).collect()
}

/// The mean in the ghost over that in the object, which is what is bright in `clean`. The ghost is the object
/// moved by half the field of view, less the object.
fn ghost(image: &[Vec<f64>], clean: &[Vec<f64>]) -> f64 {
    let mut sorted: Vec<f64> = clean.concat();
    sorted.sort_by(f64::total_cmp);
    let level = 0.2 * sorted[sorted.len() * 99 / 100];
    let (mut object, mut ghost) = (Vec::new(), Vec::new());
    for (y, row) in image.iter().enumerate() {
        for (x, value) in row.iter().enumerate() {
            if clean[y][x] > level {
                object.push(*value);
            } else if clean[(y + clean.len() / 2) % clean.len()][x] > level {
                ghost.push(*value);
            }
        }
    }
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
    mean(&ghost) / mean(&object)
}

#[test]
fn ghosts_of_real_echo_planar_scans_go() {
    let folder = tempfile::tempdir().unwrap();
    // benches/ghosts.py has the ratios that a correction by a scan without phase encoding reaches.
    for name in [
        "04_03_basic_epi_96x96_peplus",
        "04_03_basic_epi_96x96_peminus",
        "04_03_ramp_sampling_epi_96x96_peplus",
    ] {
        let files = ["dat", "seq"].map(|end| unpacked(&format!("mri/twix/{name}.{end}.xz"), folder.path()));
        let [Some(file), Some(sequence)] = files else { return };
        let mut scan = read(&file);
        Sequence::read(&sequence).unwrap().place(&mut scan).unwrap();
        let [clean, raw] = ["linear", "none"].map(|choice| image(&scan, choice));
        let [with, without] = [&clean, &raw].map(|image| ghost(image, &clean));
        assert!(with < 0.05 && without > 0.7, "{name}: {with}, {without} without");
    }
}
