//! Real scans, which are no part of the project.

use rayspin_core::TrajectoryUnits;
use rayspin_io::ismrmrd::{Identity, contents, read, summarise, write};
use rayspin_mri::scan::{Flags, TrajectoryKind};

use crate::real_data::real_data;

fn row(rows: &[(String, String)], label: &str) -> String {
    rows.iter().find(|(l, _)| l == label).map(|(_, t)| t.clone()).unwrap_or_default()
}

#[test]
fn the_radial_heart() {
    let Some(path) = real_data("mri/cardiac_radial_12ch.h5") else {
        return;
    };
    let scan = read(&path).unwrap();
    assert_eq!(scan.acquisitions.len(), 25);
    assert!(scan.acquisitions.iter().all(|a| a.data.dim() == (12, 256) && a.flags.is_image()));
    assert!(scan.acquisitions[0].flags.contains(Flags::FIRST_IN_SLICE));
    assert!(scan.acquisitions[24].flags.contains(Flags::LAST_IN_SLICE));
    assert_eq!(scan.acquisitions[24].counters.step_1, 24);
    assert_eq!(scan.acquisitions[3].centre_sample, 128);
    let most = scan
        .acquisitions
        .iter()
        .flat_map(|a| a.trajectory.as_ref().unwrap().iter())
        .fold(0f32, |m, k| m.max(k.abs()));
    assert!((most - 128.0).abs() < 1e-3);
    let encoding = &scan.header.encodings[0];
    assert_eq!(encoding.trajectory, TrajectoryKind::Radial);
    assert_eq!(encoding.encoded.matrix, [256, 256, 1]);
    assert_eq!(scan.header.coils, Some(12));
    assert!((scan.header.field_strength_t.unwrap() - 2.893).abs() < 1e-3);
    assert!(scan.notes.is_empty(), "{:?}", scan.notes);
    let rows = summarise(&scan).rows();
    assert_eq!(row(&rows, "acquisitions"), "25 (25 image)");
    assert_eq!(row(&rows, "lines"), "0 to 24 (25 values)");
    let would = format!("({} by its range)", TrajectoryUnits::CyclesPerFov);
    assert!(row(&rows, "trajectory").contains(&would));

    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy.h5");
    write(&copy, &scan, Identity::Keep).unwrap();
    let again = read(&copy).unwrap();
    assert_eq!(again.acquisitions, scan.acquisitions);
    assert_eq!(again.header, scan.header);
}

#[test]
fn the_simulated_spiral_with_a_header_of_garbage() {
    let Some(path) = real_data("mri/spiral_jemris_1ch.h5") else {
        return;
    };
    let scan = read(&path).unwrap();
    assert_eq!(scan.acquisitions.len(), 16);
    let image: Vec<_> = scan.acquisitions.iter().filter(|a| a.flags.is_image()).collect();
    assert_eq!(image.len(), 15);
    assert!(image.iter().all(|a| a.data.dim() == (1, 4940)));
    assert!(image.iter().all(|a| a.trajectory.as_ref().unwrap().dim() == (4940, 3)));
    assert_eq!(scan.acquisitions[0].data.dim(), (1, 1));
    assert!(scan.acquisitions[0].flags.contains(Flags::SURFACE_COIL_CORRECTION));
    assert_eq!(scan.header.field_strength_t, None);
    assert_eq!(scan.header.vendor.as_deref(), Some("JEMRIS"));
    for said in ["field strength 0.0", "140713325569856"] {
        assert!(scan.notes.iter().any(|n| n.contains(said)), "{said}: {:?}", scan.notes);
    }
    let rows = summarise(&scan).rows();
    assert_eq!(row(&rows, "acquisitions"), "16 (15 image, 1 surface-coil correction)");
    assert!(row(&rows, "trajectory").contains("cycles/fov by its range"), "{rows:?}");
    assert!(contents(&path, Some("dataset")).unwrap().memory_bytes > 15 * 4940 * 20);
}

#[test]
fn other_formats_are_named() {
    for (name, what) in [
        ("mri/gre_2ch_ve11.dat", "twix"),
        ("mri/brain_cartesian_8ch.hdr", "text"),
        ("ct/tooth.h5", "exchange"),
    ] {
        let Some(path) = real_data(name) else { continue };
        let error = read(&path).unwrap_err();
        assert!(error.to_string().contains(what), "{error}");
    }
}

/// A test of this file in a process of its own, with an empty folder of data.
fn without_data(required: &str) -> bool {
    let folder = tempfile::tempdir().unwrap();
    let test = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "real::the_radial_heart"])
        .env("RAYSPIN_DATA", folder.path())
        .env("RAYSPIN_DATA_REQUIRED", required)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&test.stdout).into_owned();
    assert!(said.contains("running 1 test"), "{said}");
    test.status.success()
}

#[test]
fn data_that_are_required_and_absent_fail_a_test() {
    assert!(without_data("0"));
    assert!(!without_data("1"));
}
