//! A run is repeated from its record, and what differs is named. Standard output takes the place of a file.

use std::path::Path;

use serde_json::Value;

use crate::arrays::command;
use crate::{ok, rayspin, refused, with_scan};

fn said(line: &str, folder: &Path) -> String {
    String::from_utf8(ok(&command(line), folder).stdout).unwrap()
}

fn record(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

fn same(folder: &Path, a: &str, b: &str) -> bool {
    std::fs::read(folder.join(a)).unwrap() == std::fs::read(folder.join(b)).unwrap()
}

#[test]
fn a_run_is_repeated_into_a_folder_of_its_own() {
    let folder = with_scan();
    let f = folder.path();
    let options = "--maps maps.cfl --reference truth.nii.gz --fit --save-maps=used.npy";
    ok(&command(&format!("recon mri scan.h5 -q -oimage.npy --output image.nii.gz {options}")), f);
    let before = std::fs::metadata(f.join("image.npy")).unwrap().modified().unwrap();
    let output = ok(&command("rerun image.json"), f);
    let [table, told] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    assert!(
        told.contains("differ in times alone") && table.matches("the same bytes").count() == 3,
        "{table}{told}"
    );
    for name in ["image.npy", "image.nii.gz"] {
        assert!(same(f, name, &format!("image-rerun/{name}")), "{name}");
    }
    assert!(same(f, "used.npy", "image-rerun/used.npy"));
    assert_eq!(std::fs::metadata(f.join("image.npy")).unwrap().modified().unwrap(), before);

    // The new record repeats as well, and so does a simulation.
    let again = said("rerun image-rerun/image.json --out third", f);
    assert!(!again.contains("What differs") && again.matches("the same bytes").count() == 3, "{again}");
    let simulated = said("rerun scan.json --out simulated", f);
    assert_eq!(simulated.matches("the same bytes").count(), 4, "{simulated}");
    assert!(same(f, "scan.h5", "simulated/scan.h5") && same(f, "truth.nii.gz", "simulated/truth.nii.gz"));
}

#[test]
fn what_differs_is_named() {
    let folder = with_scan();
    let f = folder.path();
    ok(&command("recon mri scan.h5 -q -o image.npy -m cg-sense --lambda 1e-3 --maps maps.cfl"), f);
    let mut changed = record(&f.join("image.json"));
    changed["version"] = "0.0.1".into();
    changed["parameters"]["lambda"] = 0.5.into();
    changed["parameters"]["lost"] = "value".into();
    changed["notes"] = serde_json::json!(["what nobody says"]);
    std::fs::write(f.join("changed.json"), changed.to_string()).unwrap();
    let table = said("rerun changed.json", f);
    for text in
        ["version", "0.0.1", "lambda", "0.5", "lost", "not recorded", "what nobody says", "the same bytes"]
    {
        assert!(table.contains(text), "{text}: {table}");
    }

    // Another input: refused by name, or run and compared.
    ok(
        &command(
            "simulate mri -q -o other.h5 --matrix 48,48 --trajectory spiral --shots 8 --coils 4 --snr 20",
        ),
        f,
    );
    std::fs::rename(f.join("other.h5"), f.join("scan.h5")).unwrap();
    refused(&["rerun", "image.json"], f, &["scan.h5", "bytes of hash"]);
    assert!(!f.join("image-rerun").exists());
    let table = said("rerun image.json --changed-inputs", f);
    assert!(table.contains("scan.h5") && table.contains("hash ") && table.contains("away"), "{table}");

    // The same inputs and another image: the program has changed, or the record.
    let mut other = record(&f.join("image.json"));
    let content = std::fs::read(f.join("scan.h5")).unwrap();
    other["inputs"][0]["blake3"] = rayspin::report::record::FileEntry::of("scan.h5", &content).blake3.into();
    std::fs::write(f.join("other.json"), other.to_string()).unwrap();
    let output = rayspin(&command("rerun other.json"), f);
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(
        output.status.code() == Some(1) && error.contains("other-rerun/image.npy") && error.contains("away"),
        "{error}"
    );
    std::fs::remove_file(f.join("image.npy")).unwrap();
    let output = rayspin(&command("rerun other.json"), f);
    let table = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.code() == Some(1) && table.contains("is gone or has changed"), "{table}");

    std::fs::remove_file(f.join("scan.h5")).unwrap();
    refused(&["rerun", "image.json"], f, &["scan.h5", "expected the input"]);
    std::fs::write(f.join("text.json"), "{}").unwrap();
    refused(&["rerun", "text.json"], f, &["text.json", "a record of a run"]);
    refused(&["rerun", "none.json"], f, &["none.json"]);
    changed["command"] = serde_json::json!(["rayspin", "demo"]);
    changed["inputs"] = serde_json::json!([]);
    std::fs::write(f.join("demo.json"), changed.to_string()).unwrap();
    refused(&["rerun", "demo.json"], f, &["demo.json", "a record of recon or simulate", "a run of demo"]);
}

#[test]
fn records_have_what_was_used() {
    let folder = with_scan();
    let f = folder.path();
    ok(&command("recon mri scan.h5 -q -o image.npy -m cg-sense"), f);
    let parameters = record(&f.join("image.json"))["parameters"].clone();
    assert_eq!(parameters["matrix"], serde_json::json!([48, 48]));
    assert_eq!(parameters["calibration"], 24);
    assert_eq!(parameters["sensitivities"], "walsh");
    assert_eq!(parameters["combine"], Value::Null);
    let fov = parameters["field of view"].as_array().unwrap();
    assert!(fov.len() == 2 && (fov[0].as_f64().unwrap() - 220.0).abs() < 1e-3, "{fov:?}");
    assert_eq!(parameters["volumes"], serde_json::json!([]));
    for name in ["lambda", "iterations", "tolerance", "regulariser", "epsilon", "prewhiten"] {
        assert!(!parameters[name].is_null(), "{name}: {parameters}");
    }
    let simulation = record(&f.join("scan.json"))["parameters"].clone();
    assert_eq!(simulation["matrix"], serde_json::json!([48, 48, 1]));
    assert_eq!(simulation["sampling"], serde_json::json!({"spiral": {"interleaves": 8, "acceleration": 1}}));
    assert_eq!((&simulation["snr"], &simulation["seed"]), (&100.0.into(), &0.into()));
}

#[test]
fn a_dash_is_standard_output() {
    let folder = with_scan();
    let f = folder.path();
    let stdout = |line: &str| ok(&command(line), f).stdout;
    let file = |name: &str| std::fs::read(f.join(name)).unwrap();
    ok(&command("recon mri scan.h5 -q -o image.npy --no-record"), f);
    let before = std::fs::read_dir(f).unwrap().count();
    assert_eq!(stdout("recon mri scan.h5 -o -"), file("image.npy"));
    assert_eq!(stdout("recon mri scan.h5 -o - --reference truth.nii.gz --fit"), file("image.npy"));
    assert_eq!(
        std::fs::read_dir(f).unwrap().count(),
        before,
        "no file is left, and no record is written unless named"
    );
    assert_eq!(stdout("convert image.npy -"), file("image.npy"));
    assert_eq!(stdout("convert scan.h5 -")[..8], *b"\x89HDF\r\n\x1a\n");
    ok(&command("info scan.h5 -o pattern.png"), f);
    assert_eq!(stdout("info scan.h5 -o -"), file("pattern.png"));
    let simulate = "simulate mri --matrix 48,48 --trajectory spiral --shots 8 --coils 4 --snr 100";
    assert_eq!(stdout(&format!("{simulate} -o -")), file("scan.h5"));
    let output = ok(&command("recon mri scan.h5 -o again.npy --record -"), f);
    let text: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(text["outputs"][0]["path"], "again.npy");
    let output = ok(&command("recon mri scan.h5 -o - --record named.json"), f);
    assert_eq!(output.stdout, file("image.npy"));
    assert_eq!(record(&f.join("named.json"))["outputs"][0]["path"], "-");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("standard output") && !said.contains("/output.npy"), "{said}");
    refused(
        &["recon", "mri", "scan.h5", "-o", "-", "--save-maps", "-"],
        f,
        &["--save-maps", "--output", "standard output"],
    );
}
