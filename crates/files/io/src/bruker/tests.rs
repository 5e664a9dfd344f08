#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::path::{Path, PathBuf};

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayspin_core::{C32, Monitor};
use rayspin_scan::mri::{Flags, Scan, TrajectoryKind};

use super::samples::Small;
use crate::ismrmrd::Identity;
use crate::{Detail, ScanFile, ScanOptions, describe, detect, open_scan, parts, read_scan, write_scan};

/// Lays the files of a scan into a folder of its own.
fn lay(folder: &Path, small: &Small) -> PathBuf {
    let own = folder.join("7");
    std::fs::create_dir_all(&own).unwrap();
    small.files().iter().for_each(|(name, bytes)| std::fs::write(own.join(name), bytes).unwrap());
    own
}

fn read(path: &Path) -> crate::Result<Scan> {
    match read_scan(path, &ScanOptions::default(), &Monitor::silent())? {
        ScanFile::Scan(scan) => Ok(*scan),
        _ => panic!("expected a scan with a header"),
    }
}

fn refused(small: &Small) -> String {
    let folder = tempfile::tempdir().unwrap();
    let error = read(&lay(folder.path(), small)).unwrap_err();
    assert!(matches!(error.kind(), rayspin_core::ErrorKind::Input), "{error}");
    error.to_string()
}

fn sample(scan: usize, coil: usize, place: usize) -> C32 {
    let [re, im] = Small::sample(scan, coil, place);
    C32::new(re as f32, im as f32)
}

#[test]
fn a_folder_and_its_raw_data_are_one_scan() {
    let folder = tempfile::tempdir().unwrap();
    let path = lay(folder.path(), &Small { acqp: "##$ACQ_obj_order=( 2 )\n0 1\n".into(), ..Small::grid() });
    for path in [path.clone(), path.join("fid")] {
        assert_eq!(detect(&path).unwrap().name, "Bruker ParaVision");
        let names: Vec<_> = parts(&path).iter().map(|file| file.file_name().unwrap().to_owned()).collect();
        assert_eq!(names, ["fid", "acqp", "method"]);
        let scan = read(&path).unwrap();
        assert_eq!(scan.acquisitions.len(), 16);
        // [repetition, line, slice], and blocks of 1024 bytes.
        for (number, readout) in scan.acquisitions.iter().enumerate() {
            let counters = readout.counters;
            let place = [counters.repetition, counters.step_1, counters.slice].map(usize::from);
            assert_eq!(place, [number / 8, number / 2 % 4, number % 2]);
            assert_eq!((readout.centre_sample, readout.sample_time_us), (3, 20.0));
            for ((coil, place), value) in readout.data.indexed_iter() {
                assert_eq!(*value, sample(number, coil, place));
            }
        }
        let encoding = &scan.header.encodings[0];
        assert_eq!((encoding.encoded.matrix, encoding.encoded.fov_mm), ([6, 4, 1], [30.0, 20.0, 1.5]));
        assert_eq!(
            encoding.step_1.map(|limits| (limits.minimum, limits.maximum, limits.centre)),
            Some((0, 3, 2))
        );
        assert_eq!(scan.acquisitions[1].position, [0.0, 0.0, 2.0]);
        assert_eq!(scan.acquisitions[1].read_dir, [1.0, 0.0, 0.0]);
        assert!(scan.notes.is_empty(), "{:?}", scan.notes);
    }
    std::fs::remove_file(path.join("method")).unwrap();
    assert!(detect(&path).is_err());
}

#[test]
fn trains_of_rare_fill_lines_by_their_steps() {
    let folder = tempfile::tempdir().unwrap();
    let scan = read(&lay(folder.path(), &Small::rare())).unwrap();
    // [train, slice as acquired, echo]
    let steps = [0, -2, 1, -1];
    for (number, readout) in scan.acquisitions.iter().enumerate() {
        let (train, slice, echo) = (number / 6, [0, 2, 1][number / 2 % 3], number % 2);
        assert_eq!(i32::from(readout.counters.step_1), steps[2 * train + echo] + 2);
        assert_eq!(usize::from(readout.counters.slice), slice);
        assert_eq!(readout.position[2], 2.0 * slice as f32);
        assert_eq!(readout.data[[1, 4]], sample(number, 1, 4));
    }
}

#[test]
fn slices_without_an_order_come_as_the_method_lists_them() {
    let folder = tempfile::tempdir().unwrap();
    let of = |small: &Small| {
        let scan = read(&lay(folder.path(), small)).unwrap();
        std::fs::remove_dir_all(folder.path().join("7")).unwrap();
        let slices: Vec<u16> = scan.acquisitions.iter().take(6).map(|own| own.counters.slice).collect();
        let said: Vec<String> =
            scan.notes.into_iter().filter(|note| note.contains("ACQ_obj_order")).collect();
        (slices, said)
    };
    let (stated, nothing) = of(&Small::rare());
    assert_eq!((&stated[..], nothing.len()), (&[0, 0, 2, 2, 1, 1][..], 0));
    let without = Small { acqp: String::new(), ..Small::rare() };
    let (listed, said) = of(&without);
    assert_eq!((listed, said.len()), (stated, 1));
    assert!(said[0].contains("PVM_ObjOrderList"), "{said:?}");
    let more = without.more.replace("##$PVM_ObjOrderList=( 3 )\n0 2 1\n", "");
    let (ascending, said) = of(&Small { more, ..without });
    assert_eq!((&ascending[..], said.len()), (&[0, 0, 1, 1, 2, 2][..], 1));
    assert!(said[0].contains("ascending"), "{said:?}");
}

#[test]
fn echo_planar_lines_have_paths_phases_and_shifts() {
    let folder = tempfile::tempdir().unwrap();
    let scan = read(&lay(folder.path(), &Small::trains())).unwrap();
    assert_eq!(scan.acquisitions.len(), 12);
    assert_eq!(scan.header.encodings[0].trajectory, TrajectoryKind::Epi);
    assert_eq!(scan.header.trajectory_units, Some(rayspin_core::TrajectoryUnits::CyclesPerFov));
    for (number, readout) in scan.acquisitions.iter().enumerate() {
        let (train, line) = (number / 3, number % 3);
        let slice = train % 2;
        assert_eq!(usize::from(readout.counters.slice), slice);
        assert_eq!(readout.flags.contains(Flags::REVERSE), line == 1);
        let path = readout.trajectory.as_ref().unwrap();
        assert_eq!(path.dim(), (6, 2));
        let places = [0.0, 0.5, 1.5, 2.5, 3.5, 4.0].map(|place| place - 2.0);
        // The mean slope of both coils, over 6 pixels.
        let slope = [(-0.2 + 0.1) / 2.0, (-0.2 + 0.1) / 2.0][slice] * 6.0 / std::f64::consts::TAU;
        for (own, place) in path.rows().into_iter().zip(places) {
            let wanted = if line == 1 { slope - place } else { place };
            assert!((f64::from(own[0]) - wanted).abs() < 1e-6, "{number}: {own:?} {wanted}");
            assert_eq!(own[1], line as f32 - 1.0);
        }
        // An offset of -5 mm of 20 mm shifts each line by a quarter of a turn more.
        let shift = C32::from_polar(1.0, -std::f32::consts::TAU * (line as f32 - 1.0) * -0.25);
        for coil in 0..2 {
            let constant = if line == 1 { [[0.1, 0.3], [0.1, 0.05]][coil][slice] } else { 0.0 };
            for place in 0..6 {
                let raw = sample(train, 0, 0) * 0.0 + stored(train, coil, 6 * line + place);
                let wanted = raw * shift * C32::from_polar(1.0, 2.0 * constant);
                assert!((readout.data[[coil, place]] - wanted).norm() < 1e-3, "{number} {coil} {place}");
            }
        }
        assert_eq!(readout.position[1], 5.0);
    }
    assert!(scan.notes.iter().any(|note| note.contains("PVM_EpiPhaseCorrection")), "{:?}", scan.notes);
}

fn stored(scan: usize, coil: usize, place: usize) -> C32 {
    sample(scan, coil, place)
}

#[test]
fn jobs_of_paravision_360_hold_volumes_of_double_precision() {
    let folder = tempfile::tempdir().unwrap();
    let path = lay(folder.path(), &Small::volume());
    let scan = read(&path).unwrap();
    for (number, readout) in scan.acquisitions.iter().enumerate() {
        assert_eq!(
            [readout.counters.step_1, readout.counters.step_2].map(usize::from),
            [number % 4, number / 4]
        );
        assert_eq!(readout.data[[1, 5]], sample(number, 1, 5));
        // The magnet's axes of a subject on its back, head first.
        assert_eq!(readout.read_dir, [-1.0, 0.0, 0.0]);
        assert_eq!(readout.phase_dir, [0.0, 1.0, 0.0]);
        assert_eq!(readout.slice_dir, [0.0, 0.0, 1.0]);
    }
    let encoding = &scan.header.encodings[0];
    assert_eq!((encoding.encoded.matrix, encoding.recon.fov_mm), ([6, 4, 2], [30.0, 20.0, 10.0]));
    let told = describe(&path).unwrap();
    let Detail::Text(text) = &told[0].1 else { panic!("{told:?}") };
    assert!(text.contains("PV-360.3.4") && text.contains("not tried on a real file"), "{text}");
}

#[test]
fn partial_echoes_lack_their_first_samples() {
    let folder = tempfile::tempdir().unwrap();
    let mut small = Small { samples: 4, ..Small::grid() };
    small.more.push_str("##$PVM_EncMatrix=( 2 )\n4 4\n##$PVM_EchoPosition=25\n");
    let scan = read(&lay(folder.path(), &small)).unwrap();
    let readout = &scan.acquisitions[0];
    assert_eq!((readout.data.dim(), readout.centre_sample), ((2, 4), 1));
    assert_eq!(scan.header.encodings[0].encoded.matrix, [6, 4, 1]);
    let said = scan.notes.join("; ");
    assert!(said.contains("lack 2 of 6 samples") && said.contains("not tried"), "{said}");
    assert!(!said.contains("PVM_EchoPosition"), "{said}");
    small.more.push_str("##$PVM_EchoPosition=90\n");
    let scan = read(&lay(folder.path(), &small)).unwrap();
    assert!(scan.notes.iter().any(|note| note.contains("stated at 90.0 %")), "{:?}", scan.notes);
}

#[test]
fn projections_lie_where_their_file_says() {
    let folder = tempfile::tempdir().unwrap();
    let path = lay(folder.path(), &Small::projections());
    let scan = read(&path).unwrap();
    let last = &scan.acquisitions[2];
    let places = last.trajectory.as_ref().unwrap();
    assert_eq!((places.dim(), last.data.dim()), ((5, 2), (1, 5)));
    assert!((f64::from(places[[4, 0]]) - 0.4 * 4f64.cos() * 6.0).abs() < 1e-6);
    assert!((f64::from(places[[4, 1]]) - 0.4 * 4f64.sin() * 4.0).abs() < 1e-6);
    assert!(scan.notes.iter().any(|note| note.contains("5 of the 6 samples")), "{:?}", scan.notes);
    std::fs::remove_file(path.join("traj")).unwrap();
    assert!(read(&path).unwrap_err().to_string().contains("traj: expected the file"));
}

#[test]
fn echoes_are_contrasts_and_every_other_may_run_backwards() {
    let folder = tempfile::tempdir().unwrap();
    let mut small = Small { echoes: 2, scans: 16, method: "MGE", ..Small::grid() };
    small.more.push_str("##$EchoAcqMode=allEchoes\n");
    let scan = read(&lay(folder.path(), &small)).unwrap();
    let told: Vec<_> =
        scan.acquisitions.iter().take(4).map(|own| (own.counters.slice, own.counters.contrast)).collect();
    assert_eq!(told, [(0, 0), (0, 1), (1, 0), (1, 1)]);
    let reversed = &scan.acquisitions[1];
    assert!(reversed.flags.contains(Flags::REVERSE) && reversed.centre_sample == 2);
}

#[test]
fn scans_that_were_broken_off_give_their_whole_repetitions() {
    let folder = tempfile::tempdir().unwrap();
    let path = lay(folder.path(), &Small { acqp: "##$ACQ_obj_order=( 2 )\n0 1\n".into(), ..Small::grid() });
    let bytes = std::fs::read(path.join("fid")).unwrap();
    std::fs::write(path.join("fid"), &bytes[..bytes.len() - 100]).unwrap();
    let scan = read(&path).unwrap();
    assert_eq!(scan.acquisitions.len(), 8);
    assert!(scan.notes[0].contains("1 whole repetitions of 2"), "{:?}", scan.notes);
    std::fs::write(path.join("fid"), &bytes[..7000]).unwrap();
    assert!(read(&path).unwrap_err().to_string().contains("cut short"));
    std::fs::write(path.join("fid"), [&bytes[..], &[0; 1024]].concat()).unwrap();
    assert!(read(&path).unwrap_err().to_string().contains("size of the file"));
}

#[test]
fn what_is_not_understood_is_refused_by_its_name() {
    let with = |acqp: &str, more: &str| {
        let mut small = Small::grid();
        small.acqp.push_str(acqp);
        small.more.push_str(more);
        small
    };
    for (small, told) in [
        (with("##$ACQ_dim_desc=( 1 )\nSpectroscopic\n", ""), "spectroscopy"),
        (with("##$ACQ_dim=1\n", ""), "ACQ_dim: expected 2 or 3"),
        (with("##$GO_raw_data_format=GO_8BIT\n", ""), "GO_raw_data_format: expected GO_16BIT_SGN_INT"),
        (with("##$BYTORDA=middle\n", ""), "BYTORDA: expected little or big, found middle"),
        (with("##$ACQ_obj_order=( 2 )\n0 0\n", ""), "ACQ_obj_order"),
        (with("##$NI=3\n", ""), "NI: expected a multiple of the 2 slices"),
        (with("##$ACQ_phase_factor=3\n", ""), "ACQ_phase_factor: expected a divisor of the 4 lines"),
        (with("##$ACQ_grad_matrix=( 1, 3, 3 )\n1 0 0 0 1 0 0 0 2\n", ""), "orthonormal"),
        (with("", "##$PVM_EncNReceivers=0\n"), "PVM_EncNReceivers"),
        (with("", "##$PVM_EncMatrix=( 2 )\n5 4\n"), "PVM_EncMatrix: expected 6"),
        (with("", "##$PVM_EncSteps1=( 2 )\n0.5 1\n"), "PVM_EncSteps1"),
        (Small { method: "SPIRAL", ..Small::grid() }, "the method SPIRAL"),
        (Small { method: "<Bruker:PRESS>", ..Small::grid() }, "the method PRESS"),
    ] {
        let error = refused(&small);
        assert!(error.contains(told), "{error} ({told})");
    }
}

#[test]
fn a_scan_of_ismrmrd_has_the_same_samples_and_no_names() {
    let folder = tempfile::tempdir().unwrap();
    for small in [Small::grid(), Small::trains(), Small::projections()] {
        let scan = read(&lay(folder.path(), &small)).unwrap();
        let path = folder.path().join("scan.h5");
        let left_out = write_scan(&path, &scan, Identity::LeaveOut).unwrap();
        assert_eq!(left_out, ["acquisitionSystemInformation/institutionName"]);
        let back = read(&path).unwrap();
        assert_eq!(back.acquisitions.len(), scan.acquisitions.len());
        for (own, other) in scan.acquisitions.iter().zip(&back.acquisitions) {
            assert_eq!(
                (own.counters, own.flags, own.position),
                (other.counters, other.flags, other.position)
            );
            assert_eq!((&own.data, &own.trajectory), (&other.data, &other.trajectory));
        }
        assert_eq!(back.header.encodings, scan.header.encodings);
        std::fs::remove_dir_all(folder.path().join("7")).unwrap();
    }
}

#[test]
fn readouts_are_read_one_by_one_as_together() {
    let folder = tempfile::tempdir().unwrap();
    let path = lay(folder.path(), &Small::trains());
    let scan = read(&path).unwrap();
    let mut reader = open_scan(&path, &Monitor::silent()).unwrap();
    let mut seen = 0;
    reader
        .read(&mut [1, 5, 11].into_iter(), &Monitor::silent(), &mut |number, readout| {
            assert_eq!(readout, scan.acquisitions[number]);
            seen += 1;
        })
        .unwrap();
    assert_eq!(seen, 3);
    let empty = reader.without_samples().unwrap();
    assert_eq!(empty.acquisitions.len(), scan.acquisitions.len());
}

#[test]
fn damaged_files_are_refused_and_never_panic() {
    let folder = tempfile::tempdir().unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    for small in [Small::grid(), Small::rare(), Small::trains(), Small::volume(), Small::projections()] {
        let path = lay(folder.path(), &small);
        for (name, bytes) in small.files() {
            let file = path.join(name);
            for length in (0..bytes.len()).step_by(bytes.len() / 80 + 1) {
                std::fs::write(&file, &bytes[..length]).unwrap();
                // The last bytes end a line, or pad a block; whole repetitions may be left.
                if let Ok(scan) = read(&path) {
                    assert!(
                        name != "acqp" && name != "method" || length + 6 >= bytes.len(),
                        "{name} {length}"
                    );
                    assert!(!scan.acquisitions.is_empty());
                }
            }
            for _ in 0..100 {
                let mut altered = bytes.clone();
                for _ in 0..rng.random_range(1..5) {
                    let place = rng.random_range(0..altered.len());
                    altered[place] =
                        if rng.random_bool(0.5) { b'0' + rng.random_range(0..10u8) } else { rng.random() };
                }
                std::fs::write(&file, &altered).unwrap();
                if let Err(error) = read(&path).map(drop).and(describe(&path).map(drop)) {
                    let text = error.to_string();
                    assert!(!text.contains('\n') && text.contains(folder.path().to_str().unwrap()), "{text}");
                }
            }
            std::fs::write(&file, &bytes).unwrap();
        }
        std::fs::remove_dir_all(&path).unwrap();
    }
}
