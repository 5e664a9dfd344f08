#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::path::Path;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayspin_core::Monitor;
use rayspin_scan::mri::Scan;

use super::samples::Small;
use crate::{ScanFile, ScanOptions, detect, read_scan};

fn read(path: &Path) -> crate::Result<Scan> {
    match read_scan(path, &ScanOptions::default(), &Monitor::silent())? {
        ScanFile::Scan(scan) => Ok(*scan),
        _ => panic!("expected a scan with a header"),
    }
}

#[test]
fn views_of_all_coils_slices_and_echoes_are_read_without_their_baselines() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("P1.7");
    for small in [Small::PLAIN, Small { echoes: 3, slices: 1, bytes: 4, ..Small::PLAIN }] {
        std::fs::write(&path, small.file()).unwrap();
        assert_eq!(detect(&path).unwrap().name, "GE P-file");
        let scan = read(&path).unwrap();
        assert_eq!(scan.acquisitions.len(), usize::from(small.slices * small.echoes * small.frames));
        for readout in &scan.acquisitions {
            let counters = readout.counters;
            for ((coil, place), value) in readout.data.indexed_iter() {
                let (slice, echo, view) = (counters.slice, counters.contrast, counters.step_1 + 1);
                let [re, im] = Small::sample(coil as u16, slice, echo, view, place as u16);
                assert_eq!([value.re, value.im], [f32::from(re), f32::from(im)]);
            }
        }
        let encoding = &scan.header.encodings[0];
        assert_eq!((encoding.encoded.matrix, encoding.encoded.fov_mm), ([6, 4, 1], [240.0, 240.0, 5.0]));
        let readout = &scan.acquisitions[0];
        match small.slices {
            // Corners at 120 right to 120 left, and 110 in front to 130 behind.
            1 => {
                assert_eq!(readout.position, [0.0, 10.0, 30.0]);
                assert_eq!((readout.read_dir, readout.phase_dir), ([1.0, 0.0, 0.0], [0.0, 1.0, 0.0]));
            }
            _ => assert_eq!(readout.read_dir, [0.0; 3]),
        }
    }
}

#[test]
fn other_revisions_are_named_with_their_converter() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("P1.7");
    let mut file = Small::PLAIN.file();
    for (revision, told) in
        [(24f32.to_le_bytes(), "revision 24"), (7f32.to_be_bytes(), "revision 7, big-endian")]
    {
        file[..4].copy_from_slice(&revision);
        for logo in [&b"GE_MED_NMR"[..], &[0; 10]] {
            file[34..44].copy_from_slice(logo);
            std::fs::write(&path, &file).unwrap();
            assert_eq!(detect(&path).unwrap().name, "GE P-file");
            let error = read(&path).unwrap_err();
            assert!(error.to_string().contains(told), "{error}");
            assert!(error.hint().unwrap().contains("ge_to_ismrmrd"));
            assert!(matches!(error.kind(), rayspin_core::ErrorKind::Input));
        }
    }
}

#[test]
fn damaged_files_are_refused_and_never_panic() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("P1.7");
    let file = Small::PLAIN.file();
    for length in (0..file.len()).step_by(997).chain([file.len() - 1]) {
        std::fs::write(&path, &file[..length]).unwrap();
        assert!(read(&path).is_err(), "{length}");
    }
    std::fs::write(&path, [&file[..], &[0; 4]].concat()).unwrap();
    assert!(read(&path).unwrap_err().to_string().contains("raw data: expected"));
    let mut rng = ChaCha8Rng::seed_from_u64(9);
    for round in 0..400 {
        let mut altered = file.clone();
        for _ in 0..rng.random_range(1..4) {
            let place =
                if round % 2 == 0 { rng.random_range(60..210) } else { rng.random_range(0..altered.len()) };
            altered[place] = rng.random();
        }
        std::fs::write(&path, &altered).unwrap();
        if let Err(error) = read(&path) {
            assert!(!error.to_string().contains('\n'), "{error}");
        }
    }
}
