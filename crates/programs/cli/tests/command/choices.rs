//! Methods and parameters that follow from the scan, and the numbers that files hold.

use std::path::Path;

use crate::{ok, refused, simulated, with_scan};

fn record(folder: &Path, name: &str) -> serde_json::Value {
    serde_json::from_slice(&std::fs::read(folder.join(name)).unwrap()).unwrap()
}

fn notes(record: &serde_json::Value) -> Vec<String> {
    record["notes"].as_array().unwrap().iter().map(|note| note.as_str().unwrap().to_owned()).collect()
}

#[test]
fn method_and_lambda_follow_from_the_scan_with_a_reason_each() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    for (scan, method) in [
        ("--matrix 48,48 --coils 4", "cartesian"),
        ("--matrix 48,48 --coils 4 --acceleration 2 --calibration 16 --snr 20", "cg-sense"),
        ("--matrix 64,64 --coils 4 -t poisson --acceleration 3 --calibration 8 --snr 20", "wavelet"),
        ("--matrix 48,48 --coils 4 -t radial --shots 90 --snr 20", "cg-sense"),
        ("--matrix 48,48 --coils 4 -t radial --shots 12 --snr 20", "wavelet"),
        ("--matrix 48,48 --coils 1 -t radial --shots 90 --snr 20", "ls"),
    ] {
        simulated(f, scan);
        ok(&["recon", "mri", "scan.h5", "-q", "-o", "a.npy"], f);
        let record = record(f, "a.json");
        assert_eq!(record["parameters"]["method"], method, "{scan}");
        let notes = notes(&record);
        let told = |start: &str, override_: &str| {
            let all: Vec<_> =
                notes.iter().filter(|n| n.starts_with(start) && n.contains(override_)).collect();
            assert_eq!(all.len(), 1, "{scan}: {start} in {notes:?}");
        };
        told(&format!("method {method}: "), "--method");
        if method != "cartesian" {
            told("lambda ", "--lambda overrides");
            // The note states the λ that the run used.
            let lambda = record["parameters"]["lambda"].as_f64().unwrap();
            let said = notes.iter().find(|n| n.starts_with("lambda ")).unwrap();
            let said: f64 = said["lambda ".len()..].split(':').next().unwrap().parse().unwrap();
            assert_eq!(said, lambda, "{scan}");
        }
    }
    // The more noise, the larger λ; and what is typed stays.
    let lambda = |snr: &str, more: &[&str]| {
        simulated(f, &format!("--matrix 48,48 --coils 4 --acceleration 2 --calibration 16 --snr {snr}"));
        ok(&[&["recon", "mri", "scan.h5", "-q", "-o", "a.npy"], more].concat(), f);
        record(f, "a.json")["parameters"]["lambda"].as_f64().unwrap()
    };
    assert!(lambda("5", &[]) > lambda("50", &[]));
    assert_eq!(lambda("5", &["--lambda", "0.02"]), 0.02);
}

#[test]
fn lambda_auto_searches_and_records_what_it_tried() {
    let folder = with_scan();
    let f = folder.path();
    ok(&["recon", "mri", "scan.h5", "-q", "-o", "a.npy", "-m", "cg-sense", "--lambda", "auto"], f);
    let found = record(f, "a.json");
    let searched = &found["parameters"]["lambda searched"];
    assert!(searched["tried"].as_array().unwrap().len() >= 5, "{searched}");
    assert_eq!(searched["lambda"], found["parameters"]["lambda"]);
    let said: Vec<_> = notes(&found).into_iter().filter(|note| note.starts_with("lambda")).collect();
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].contains("held out"), "{said:?}");
    let scan = ["recon", "mri", "scan.h5", "-o", "b.npy"];
    refused(&[&scan[..], &["-m", "ls", "--lambda", "auto"]].concat(), f, &["search for lambda"]);
    refused(&[&scan[..], &["--lambda", "some"]].concat(), f, &["auto to search"]);
    assert!(!f.join("b.npy").exists());
}

fn described(folder: &Path, file: &str) -> String {
    String::from_utf8_lossy(&ok(&["info", file], folder).stdout).into_owned()
}

#[test]
fn complex_numbers_and_phases_are_written_where_they_are_wanted() {
    let folder = with_scan();
    let f = folder.path();
    let scan = ["recon", "mri", "scan.h5", "-q", "--no-record", "-m", "cg-sense"];
    ok(&[&scan[..], &["-o", "c.npy"]].concat(), f);
    ok(&[&scan[..], &["-o", "c.nii.gz", "-o", "c.h5", "--complex"]].concat(), f);
    ok(&[&scan[..], &["-o", "p.npy", "-o", "p.nii", "-o", "p.h5", "-o", "p.png", "--phase"]].concat(), f);
    let apart = |a: &str, b: &str| {
        let json = ok(&["metrics", a, b, "--json"], f);
        let quality: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
        quality["nrmse"].as_f64().unwrap()
    };
    for file in ["c.nii.gz", "c.h5"] {
        assert_eq!(apart(file, "c.npy"), 0.0, "{file}");
    }
    for file in ["p.nii", "p.h5"] {
        assert_eq!(apart(file, "p.npy"), 0.0, "{file}");
    }
    ok(&["convert", "c.nii.gz", "q.npy", "--phase"], f);
    assert_eq!(apart("q.npy", "p.npy"), 0.0);
    ok(&["convert", "c.npy", "d.nii.gz", "--complex"], f);
    assert_eq!(apart("d.nii.gz", "c.npy"), 0.0);
    let picture = |file: &str| std::fs::read(f.join(file)).unwrap();
    ok(&["convert", "c.npy", "m.png"], f);
    ok(&["convert", "c.npy", "p2.png", "--phase"], f);
    assert_eq!(picture("p.png"), picture("p2.png"));
    assert_ne!(picture("m.png"), picture("p2.png"));
    // The note on a phase that is lost says what keeps it.
    let said = ok(&["convert", "c.npy", "lost.nii.gz"], f);
    let said = String::from_utf8_lossy(&said.stderr).into_owned();
    assert!(said.contains("--complex") && said.contains(".nii.gz") && said.contains(".h5"), "{said}");
    // An image without a phase has none to write, and a picture no numbers.
    for (options, expected) in [
        (&["-m", "gridding", "-o", "x.npy", "--phase"][..], "an image with a phase"),
        (&["-m", "gridding", "-o", "x.nii", "--complex"], "an image with a phase"),
        (&["-m", "cg-sense", "-o", "x.png", "--complex"], "an output that holds numbers"),
    ] {
        refused(&[&["recon", "mri", "scan.h5"], options].concat(), f, &[expected]);
    }
    assert!(!f.join("x.npy").exists() && !f.join("x.nii").exists());
}

#[test]
fn coil_images_are_written_as_they_are() {
    let folder = with_scan();
    let f = folder.path();
    let scan = ["recon", "mri", "scan.h5", "-q", "-m", "gridding"];
    ok(
        &[&scan[..], &["-o", "coils.cfl", "-o", "coils.npy", "-o", "coils.nii", "--combine", "none"]]
            .concat(),
        f,
    );
    ok(&[&scan[..], &["-o", "rss.npy"]].concat(), f);
    assert_eq!(record(f, "coils.json")["parameters"]["combine"], "none");
    assert!(std::fs::read_to_string(f.join("coils.hdr")).unwrap().contains("48 48 1 4"));
    assert!(described(f, "coils.npy").contains('4'));
    ok(&["convert", "coils.npy", "phase.nii", "--phase"], f);
    // One volume a coil; several repetitions of them have no axis.
    simulated(f, "--matrix 32,32 --coils 3 -t radial --shots 40 --repetitions 2");
    refused(&[&scan[..], &["-o", "two.npy", "--combine", "none"]].concat(), f, &["--repetition"]);
    ok(&[&scan[..], &["-o", "one.npy", "--combine", "none", "--repetition", "1"]].concat(), f);
}
