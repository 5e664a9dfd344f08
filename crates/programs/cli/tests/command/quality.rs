//! One rule of comparison, wherever images are compared.

use std::path::Path;

use rayspin::core::{C32, Geometry, Image};
use rayspin::io::{npy, read_image};

use crate::arrays::{command, nrmse, said};
use crate::{ok, refused, simulated};

fn write(path: &Path, value: impl Fn(usize, usize) -> C32) {
    let data = ndarray::ArrayD::from_shape_fn(ndarray::IxDyn(&[1, 24, 24]), |i| value(i[1], i[2]));
    rayspin::io::write_image(path, &Image::new(data, Geometry::default()).unwrap(), &Default::default())
        .unwrap();
}

fn size(y: usize, x: usize) -> f32 {
    1.0 + ((x / 3 + 2 * (y / 4)) % 5) as f32
}

fn json(arguments: &str, folder: &Path) -> serde_json::Value {
    let output = ok(&arguments.split_whitespace().collect::<Vec<_>>(), folder);
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_complex_image_beside_a_magnitude_is_compared_by_magnitudes() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    write(&f.join("turned.npy"), |y, x| C32::from_polar(size(y, x), 2.0 + 0.1 * x as f32));
    write(&f.join("truth.npy"), |y, x| size(y, x).into());
    write(&f.join("truth.nii"), |y, x| size(y, x).into());
    for reference in ["truth.npy", "truth.nii"] {
        let quality = json(&format!("metrics turned.npy {reference} --json"), f);
        assert_eq!((&quality["compared"], &quality["fitted"]), (&"magnitudes".into(), &false.into()));
        assert!(quality["nrmse"].as_f64().unwrap() < 1e-6 && quality["ssim"].as_f64().unwrap() > 0.9999);
        let table = ok(&["metrics", "turned.npy", reference], f).stdout;
        let table = String::from_utf8(table).unwrap();
        assert!(table.contains("magnitudes compared, no scale fitted"), "{table}");
    }
    // Two complex images differ by their phases, and no row of the table is of anything else.
    write(&f.join("other.npy"), |y, x| C32::from_polar(size(y, x), 0.5));
    let quality = json("metrics turned.npy other.npy --json", f);
    assert_eq!(quality["compared"], "complex-values");
    assert!(quality["nrmse"].as_f64().unwrap() > 0.5 && quality["ssim"].is_null(), "{quality}");
    let told = ok(&["metrics", "turned.npy", "other.npy"], f);
    assert!(String::from_utf8(told.stderr).unwrap().contains("--magnitude"));
    assert!(!String::from_utf8(told.stdout).unwrap().contains("SSIM"));
    assert_eq!(json("metrics turned.npy other.npy --json --magnitude", f)["compared"], "magnitudes");
    let quiet = ok(&["-q", "metrics", "turned.npy", "other.npy"], f);
    assert!(quiet.stderr.is_empty());
    // Two real ones by their signs.
    write(&f.join("signed.npy"), |y, x| (-size(y, x)).into());
    let quality = json("metrics signed.npy truth.npy --json", f);
    assert_eq!((&quality["compared"], quality["nrmse"].as_f64()), (&"real-values".into(), Some(2.0)));
}

#[test]
fn recon_and_metrics_compare_alike_and_the_record_says_how() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    simulated(f, "-t radial --matrix 32,32 --coils 3 --truth truth.nii --shots 20");
    for (options, rule) in
        [("", "magnitudes compared, no scale fitted"), ("--fit", "magnitudes compared, scale fitted: ×")]
    {
        let line = format!("recon mri scan.h5 -q -o a.npy --method cg-sense --reference truth.nii {options}");
        let table = String::from_utf8(ok(&line.split_whitespace().collect::<Vec<_>>(), f).stdout).unwrap();
        assert!(table.contains(rule), "{table}");
        let record: serde_json::Value =
            serde_json::from_slice(&std::fs::read(f.join("a.json")).unwrap()).unwrap();
        let recorded = &record["quality"][0];
        assert!(recorded["rule"].as_str().unwrap().starts_with(rule), "{recorded}");
        let quality = json(&format!("metrics a.npy truth.nii --json {options}"), f);
        for name in ["nrmse", "ssim", "psnr_db", "mse"] {
            assert_eq!(recorded["metrics"][name], quality[name], "{name} {options}");
        }
        let line = format!("metrics a.npy truth.nii {options}");
        let own = String::from_utf8(ok(&line.split_whitespace().collect::<Vec<_>>(), f).stdout).unwrap();
        assert_eq!(own, table);
    }
    // A reference with another gain: both commands give the same hint.
    let loud = rayspin::io::read_image(f.join("truth.nii")).unwrap().image;
    let loud = Image::new(loud.data().mapv(|v| v * 50.0), *loud.geometry()).unwrap();
    rayspin::io::write_image(f.join("loud.nii"), &loud, &Default::default()).unwrap();
    for line in ["recon mri scan.h5 -o a.npy --reference loud.nii", "metrics a.npy loud.nii"] {
        let told = ok(&line.split_whitespace().collect::<Vec<_>>(), f).stderr;
        let told = String::from_utf8(told).unwrap();
        assert!(told.contains("differ in scale: times ") && told.contains("--fit"), "{told}");
    }
    assert_eq!(
        crate::rayspin(&["recon", "mri", "scan.h5", "-o", "b.npy", "--fit"], f).status.code(),
        Some(2)
    );
}

#[test]
fn one_reference_stands_for_repetitions_and_not_for_slices() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    simulated(f, "--matrix 24,24 --coils 1 --repetitions 3 --truth truth.nii");
    ok(&["recon", "mri", "scan.h5", "-q", "-o", "a.nii"], f);
    let table = String::from_utf8(ok(&["metrics", "a.nii", "truth.nii"], f).stdout).unwrap();
    assert!(table.contains("one reference for 3 repetitions"), "{table}");
    simulated(f, "--matrix 24,24,4 --coils 1");
    ok(&["recon", "mri", "scan.h5", "-q", "-o", "slices.nii"], f);
    refused(&["metrics", "slices.nii", "truth.nii"], f, &["slices.nii", "truth.nii", "[4, 24, 24]"]);
}

/// The error that the record of a run states.
fn recorded(record: &Path) -> (f64, String) {
    let text = std::fs::read_to_string(record).unwrap();
    let record: serde_json::Value = serde_json::from_str(&text).unwrap();
    (record["quality"][0]["metrics"]["nrmse"].as_f64().unwrap(), text)
}

#[test]
fn a_part_of_the_scan_is_compared_with_the_same_part_of_the_reference() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    simulated(f, "--matrix 24,21,5 --coils 2 --repetitions 3 --dynamics beat --truth truth.nii");
    let truth = read_image(f.join("truth.nii")).unwrap().image;
    // An object that changes has a truth for each repetition of the scan; one at rest has one.
    assert_eq!(truth.data().shape(), [3, 5, 21, 24]);
    ok(&command("recon mri scan.h5 -q -m cartesian -o all.nii"), f);
    let (repetition, slice) = (ndarray::Axis(0), ndarray::Axis(1));
    assert_ne!(truth.data().index_axis(repetition, 0), truth.data().index_axis(repetition, 2));
    for (options, times, slices, name) in [
        ("--slice 3", 0..3, 3..4, "compared with slice 3 of 5"),
        ("--repetition 2", 2..3, 0..5, "compared with repetition 2 of 3"),
        ("--repetition 1 --slice 4", 1..2, 4..5, "compared with repetition 1 of 3, slice 4 of 5"),
        ("", 0..3, 0..5, ""),
    ] {
        let line = format!("recon mri scan.h5 -m cartesian -o part.npy {options}");
        let text = said(&format!("{line} --reference truth.nii"), f);
        assert_eq!(text.contains("compared with "), !name.is_empty(), "{options}: {text}");
        assert!(text.contains(name), "{options}: {text}");
        let (found, record) = recorded(&f.join("part.json"));
        assert!(record.contains(name), "{options}");
        let part = truth.data().slice_axis(repetition, times.clone().into());
        let part = part.slice_axis(slice, slices.clone().into());
        let part = if times.len() == 1 { part.index_axis_move(repetition, 0) } else { part };
        npy::write(f.join("wanted.npy"), part).unwrap();
        let wanted = nrmse("part.npy", "wanted.npy", f);
        assert!((found - wanted).abs() < 1e-5 * wanted, "{options}: {found} is not {wanted}");
    }
    // A reference of the part alone is compared as it is; one of another size is refused.
    let one = truth.data().index_axis(repetition, 1).slice_axis(ndarray::Axis(0), (2..3).into()).to_owned();
    npy::write(f.join("one.npy"), one.view()).unwrap();
    let text = said(
        "recon mri scan.h5 -m cartesian -o part.npy --repetition 1 --slice 2 --reference one.npy --no-record",
        f,
    );
    assert!(!text.contains("compared with "), "{text}");
    let four = truth.data().slice_axis(slice, (..4).into());
    npy::write(f.join("four.npy"), four).unwrap();
    let run = crate::rayspin(
        &command("recon mri scan.h5 -q -m cartesian -o part.npy --slice 3 --reference four.npy --no-record"),
        f,
    );
    assert_eq!(run.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&run.stderr).contains("[3, 4, 21, 24]"));
    simulated(f, "--matrix 24,21,5 --coils 2 --repetitions 3 --truth rest.nii");
    assert_eq!(read_image(f.join("rest.nii")).unwrap().image.data().shape(), [5, 21, 24]);
    let text =
        said("recon mri scan.h5 -m cartesian -o part.npy --slice 1 --reference rest.nii --no-record", f);
    assert!(text.contains("compared with slice 1 of 5"), "{text}");
}
