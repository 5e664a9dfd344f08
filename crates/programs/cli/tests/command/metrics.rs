//! Several images compared at once.

use std::path::Path;

use rayspin::core::{C32, Geometry, Image};
use serde_json::Value;

use crate::{ok, refused};

/// An image that differs from 1 + x by `error` everywhere.
fn write(path: &Path, error: f32) {
    let data = ndarray::ArrayD::from_shape_fn(ndarray::IxDyn(&[1, 16, 16]), |i| {
        C32::from(1.0 + i[2] as f32 + error)
    });
    rayspin::io::write_image(path, &Image::new(data, Geometry::default()).unwrap(), &Default::default())
        .unwrap();
}

fn command(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

fn json(line: &str, folder: &Path) -> Value {
    serde_json::from_slice(&ok(&command(&format!("metrics {line} --json")), folder).stdout).unwrap()
}

#[test]
fn several_images_against_one_reference_are_rows() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    for (name, error) in [("good.nii", 0.1), ("bad.npy", 1.0), ("truth.nii.gz", 0.0)] {
        write(&f.join(name), error);
    }
    let output = ok(&command("metrics good.nii bad.npy truth.nii.gz"), f);
    let table = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines[0], "Against truth.nii.gz: real values compared, no scale fitted");
    assert!(lines[3].starts_with("good.nii") && lines[3].contains('*'), "{table}");
    assert!(lines[4].starts_with("bad.npy") && !lines[4].contains('*'), "{table}");
    assert!(lines.iter().all(|line| line.chars().count() <= 100), "{table}");
    let list = json("good.nii bad.npy truth.nii.gz", f);
    let one = json("bad.npy truth.nii.gz", f);
    assert_eq!(list.as_array().unwrap().len(), 2);
    assert_eq!(list[1], one);
    assert_eq!((&one["image"], &one["reference"]), (&"bad.npy".into(), &"truth.nii.gz".into()));
    // Both numbers by the definition.
    let energy: f64 = (1..=16).map(|v| f64::from(v * v)).sum::<f64>() / 16.0;
    assert!((one["nrmse"].as_f64().unwrap() - 1.0 / energy.sqrt()).abs() < 1e-6);
    assert!((list[0]["nrmse"].as_f64().unwrap() - 0.1 / energy.sqrt()).abs() < 1e-6);
    // One pair keeps its own table, and a fit its scale.
    assert!(
        String::from_utf8(ok(&command("metrics bad.npy truth.nii.gz"), f).stdout).unwrap().contains("Metric")
    );
    let table =
        String::from_utf8(ok(&command("metrics good.nii bad.npy truth.nii.gz --fit"), f).stdout).unwrap();
    assert!(table.contains("Scale") && table.contains("scale fitted"), "{table}");
    refused(&command("metrics good.nii missing.nii truth.nii.gz"), f, &["missing.nii"]);
    refused(&command("metrics good.nii"), f, &["metrics", "IMAGE"]);
}

#[test]
fn a_folder_is_compared_with_a_folder_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    for name in ["recon", "truth"] {
        std::fs::create_dir(f.join(name)).unwrap();
    }
    for (name, error) in [
        ("recon/a.nii.gz", 0.5),
        ("recon/b.v2.npy", 0.0),
        ("recon/c.cfl", 0.25),
        ("recon/alone.nii", 0.0),
        ("truth/a.npy", 0.0),
        ("truth/b.v2.nii", 1.0),
        ("truth/c.nii", 0.0),
    ] {
        write(&f.join(name), error);
    }
    std::fs::write(f.join("recon/a.json"), "{}").unwrap();
    let output = ok(&command("metrics recon truth --json"), f);
    let list: Value = serde_json::from_slice(&output.stdout).unwrap();
    let pairs: Vec<[&str; 2]> = list
        .as_array()
        .unwrap()
        .iter()
        .map(|row| ["image", "reference"].map(|name| row[name].as_str().unwrap()))
        .collect();
    assert_eq!(
        pairs,
        [
            ["recon/a.nii.gz", "truth/a.npy"],
            ["recon/b.v2.npy", "truth/b.v2.nii"],
            ["recon/c.cfl", "truth/c.nii"]
        ]
    );
    for (row, error) in list.as_array().unwrap().iter().zip([0.5, 1.0, 0.25]) {
        assert!((row["max_error"].as_f64().unwrap() - error).abs() < 1e-6, "{row}");
    }
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("recon/alone.nii") && said.contains("left out 1 file"), "{said}");
    // A single image of the folder's name, and a folder against one image.
    assert_eq!(json("recon/a.nii.gz truth", f)["reference"], "truth/a.npy");
    assert_eq!(json("recon truth/a.npy", f).as_array().unwrap().len(), 4);
    refused(&command("metrics recon/alone.nii truth"), f, &["truth", "alone.nii"]);
    write(&f.join("truth/a.nii"), 0.0);
    refused(&command("metrics recon truth"), f, &["one image 'a'", "truth/a.nii", "truth/a.npy"]);
}
