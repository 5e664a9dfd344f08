//! Files and folders described: sampling patterns, typed JSON, pictures.

use std::path::Path;

use rayspin::core::C32;
use serde_json::Value;

use crate::real_data::real_data;
use crate::{ok, rayspin, refused, simulated};

fn command(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

fn info(line: &str, folder: &Path) -> Value {
    let output = ok(&command(&format!("info {line} --json")), folder);
    serde_json::from_slice(&output.stdout).unwrap()
}

fn text(line: &str, folder: &Path) -> String {
    String::from_utf8(ok(&command(line), folder).stdout).unwrap()
}

/// A colour picture `[row, column, 3]`.
fn pixels(path: &Path) -> ndarray::Array3<u8> {
    let file = std::io::BufReader::new(std::fs::File::open(path).unwrap());
    let mut reader = png::Decoder::new(file).read_info().unwrap();
    let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
    let frame = reader.next_frame(&mut bytes).unwrap();
    ndarray::Array3::from_shape_vec((frame.height as usize, frame.width as usize, 3), bytes).unwrap()
}

#[test]
fn scans_state_pattern_undersampling_calibration_and_noise() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    let noisy = "--snr 40 --noise-readouts 4";
    for (options, pattern, factor, steps, calibration, words) in [
        ("--matrix 64,48", "full", [1.0, 1.0], "[1,1]", "[64,48]", "full grid"),
        (
            "--matrix 64,48 --acceleration 3 --calibration 12",
            "regular",
            [1.9, 2.2],
            "[1,3]",
            "[64,1",
            "regular undersampling, every 3rd along y",
        ),
        (
            "--dims 3 --matrix 24,32,32 -t poisson --acceleration 6 --calibration 8",
            "variable-density",
            [5.0, 7.0],
            "[1,null,null]",
            "[24,8,8]",
            "variable-density undersampling",
        ),
        (
            "--matrix 64,64 -t radial --shots 20",
            "radial",
            [2.7, 3.2],
            "[null,null]",
            "[1",
            "radial; 20 readouts",
        ),
        (
            "--matrix 64,64 -t spiral --shots 8",
            "spiral",
            [0.99, 1.1],
            "[null,null]",
            "[6",
            "spiral; 8 readouts",
        ),
    ] {
        simulated(f, &format!("{options} --coils 4 {noisy}"));
        let json = info("scan.h5", f);
        let sampling = &json["sampling"];
        assert_eq!((&sampling["pattern"], &sampling["coils"]), (&pattern.into(), &4.into()), "{options}");
        let found = sampling["undersampling"].as_f64().unwrap();
        assert!((factor[0]..=factor[1]).contains(&found), "{options}: {found}");
        assert_eq!(sampling["steps"].to_string(), steps, "{options}");
        assert!(sampling["calibration"].to_string().starts_with(calibration), "{options}: {sampling}");
        assert_eq!(
            (&sampling["noise_samples"], &sampling["noise"]["source"]),
            (&1024.into(), &"noise-scan".into())
        );
        assert_eq!(json["scan"]["purposes"]["noise"], 4);
        let told = text("info scan.h5", f);
        assert!(told.contains(words) && told.contains("noise scan of 1024 samples"), "{told}");
    }
}

#[test]
fn noise_is_told_by_the_noise_scan_and_by_the_rim() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    for options in ["--matrix 96,96", "--matrix 96,96 -t radial"] {
        let level = |extra: &str| {
            simulated(f, &format!("{options} --coils 4 {extra}"));
            let noise = info("scan.h5", f)["sampling"]["noise"].clone();
            [noise["sample_std"].as_f64().unwrap(), noise["snr"].as_f64().unwrap()]
        };
        // Both sources agree where noise exceeds the signal at the rim.
        let [scan, rim] = ["--snr 5 --noise-readouts 16", "--snr 5"].map(level);
        for (scan, rim) in scan.into_iter().zip(rim) {
            assert!((scan / rim - 1.0).abs() < 0.2, "{options}: {scan} and {rim}");
        }
        // Twice the noise.
        let louder = level("--snr 2.5 --noise-readouts 16");
        assert!(
            (louder[0] / scan[0] - 2.0).abs() < 0.1 && (scan[1] / louder[1] - 2.0).abs() < 0.1,
            "{options}"
        );
    }
}

#[test]
fn one_sided_k_space_and_lines_for_calibration_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    simulated(f, "--matrix 48,64 --coils 2");
    let mut scan = rayspin::io::ismrmrd::read(f.join("scan.h5")).unwrap();
    // The last quarter of the lines is left out.
    scan.acquisitions.retain(|readout| readout.counters.step_1 < 48);
    rayspin::io::ismrmrd::write(f.join("part.h5"), &scan, rayspin::io::ismrmrd::Identity::LeaveOut).unwrap();
    let sampling = &info("part.h5", f)["sampling"];
    assert_eq!(sampling["coverage"].to_string(), "[1.0,0.75]");
    assert!((sampling["undersampling"].as_f64().unwrap() - 64.0 / 48.0).abs() < 1e-9);
    assert!(text("info part.h5", f).contains("partial Fourier"));
    // Every second line, and some lines for calibration alone.
    let flags = rayspin::mri::scan::Flags::CALIBRATION;
    let mut lines = rayspin::io::ismrmrd::read(f.join("scan.h5")).unwrap();
    let own: Vec<_> =
        lines.acquisitions.iter().filter(|a| (26..38).contains(&a.counters.step_1)).cloned().collect();
    lines.acquisitions.retain(|readout| readout.counters.step_1 % 2 == 0);
    lines.acquisitions.extend(own.into_iter().map(|mut readout| {
        readout.flags = readout.flags.with(flags);
        readout
    }));
    rayspin::io::ismrmrd::write(f.join("lines.h5"), &lines, rayspin::io::ismrmrd::Identity::LeaveOut)
        .unwrap();
    let sampling = &info("lines.h5 -o lines.png", f)["sampling"];
    assert_eq!(sampling["calibration"].to_string(), "[48,12]");
    assert_eq!((&sampling["calibration_apart"], &sampling["undersampling"]), (&true.into(), &2.0.into()));
}

#[test]
fn the_picture_shows_the_measured_places() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    simulated(f, "--matrix 64,48 --acceleration 3 --calibration 0 --coils 2");
    let said = ok(&command("info scan.h5 -o pattern.png"), f).stderr;
    assert!(String::from_utf8(said).unwrap().contains("measured places of the grid are white"));
    let picture = pixels(&f.join("pattern.png"));
    // 64 × 48 places, each 12 × 12 pixels; every third line is white, the middle one among them.
    assert_eq!(picture.dim(), (48 * 12, 64 * 12, 3));
    let white = |line: usize| picture[[line * 12 + 6, 400, 0]] > 200;
    let lines: Vec<usize> = (0..48).filter(|&line| white(line)).collect();
    assert_eq!(lines, (0..48).step_by(3).collect::<Vec<_>>());

    simulated(f, "--matrix 64,64 -t radial --shots 3 --coils 1");
    let said = ok(&command("info scan.h5 -o spokes.png"), f).stderr;
    assert!(String::from_utf8(said).unwrap().contains("3 readouts"));
    assert!(pixels(&f.join("spokes.png")).iter().any(|&level| level > 200));

    refused(&command("info -o x.png"), f, &["--output (-o)", "this machine"]);
    refused(&command("info scan.h5 -o x.jpg"), f, &["x.jpg", ".png"]);
    refused(&command("info scan.h5 -o missing/x.png"), f, &["missing/x.png"]);
    ok(&command("recon mri scan.h5 -q --no-record -o image.nii"), f);
    refused(&command("info image.nii -o x.png"), f, &["--output", "an image"]);
    refused(&command("info scan.h5 image.nii -o x.png"), f, &["--output (-o)", "2 files"]);
}

#[test]
fn folders_and_several_files_make_a_list() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    std::fs::create_dir(f.join("scans")).unwrap();
    simulated(&f.join("scans"), "--matrix 32,32 --coils 2 --truth truth.cfl");
    std::fs::write(f.join("scans/notes.txt"), "nothing of this kind").unwrap();
    let output = ok(&command("info scans --json"), f);
    let list: Value = serde_json::from_slice(&output.stdout).unwrap();
    let names: Vec<&str> = list.as_array().unwrap().iter().map(|one| one["file"].as_str().unwrap()).collect();
    assert_eq!(names, ["scans/scan.h5", "scans/truth.cfl"]);
    assert!(String::from_utf8(output.stderr).unwrap().contains("left out 1 file of no format"));
    let told = text("info scans/truth.cfl scans/scan.h5", f);
    assert!(told.contains("scans/truth.cfl") && told.contains("\n\nfile"), "{told}");
    // A file that is damaged does not hide the others, and the exit code tells.
    let bytes = std::fs::read(f.join("scans/scan.h5")).unwrap();
    std::fs::write(f.join("scans/broken.h5"), &bytes[..bytes.len() / 2]).unwrap();
    let output = rayspin(&command("info scans --json"), f);
    assert_eq!(output.status.code(), Some(2));
    let list: Value = serde_json::from_slice(&output.stdout).unwrap();
    let errors: Vec<bool> = list.as_array().unwrap().iter().map(|one| one["error"].is_string()).collect();
    assert_eq!(errors, [true, false, false]);
    assert!(String::from_utf8(output.stderr).unwrap().contains("1 of 3 files cannot be described"));
    std::fs::create_dir(f.join("empty")).unwrap();
    refused(&command("info empty"), f, &["empty", "files to read"]);
    // Pictures are written and not read: that is no fault of the folder.
    std::fs::create_dir(f.join("pictures")).unwrap();
    ok(&command("recon mri scans/scan.h5 -q --no-record -o pictures/image.png"), f);
    let told = text("info pictures", f);
    assert!(told.contains("PNG") && told.contains("does not read it"), "{told}");
}

#[test]
fn a_name_that_a_file_does_not_hold_is_refused_with_those_that_it_holds() {
    let folder = tempfile::tempdir().unwrap();
    let file = std::fs::File::create(folder.path().join("two.npz")).unwrap();
    let mut archive = ndarray_npy::NpzWriter::new(file);
    for name in ["kspace", "maps"] {
        archive.add_array(name, &ndarray::Array2::from_elem((4, 4), C32::ONE)).unwrap();
    }
    archive.finish().unwrap();
    assert!(text("info two.npz:maps", folder.path()).contains("two.npz:maps"));
    refused(&command("info two.npz:nope"), folder.path(), &["two.npz", "kspace, maps", "nope"]);
}

/// Every name of an object anywhere in a value, but for keys that follow the file: header labels, counters
/// and purposes.
fn names(value: &Value, found: &mut std::collections::BTreeSet<String>) {
    match value {
        Value::Object(map) => {
            for (name, inner) in map {
                found.insert(name.clone());
                if !["header", "limits", "purposes"].contains(&name.as_str()) || inner.is_array() {
                    match (name.as_str(), inner) {
                        ("counters", Value::Object(counters)) => {
                            counters.values().for_each(|counter| names(counter, found));
                        }
                        _ => names(inner, found),
                    }
                }
            }
        }
        Value::Array(list) => list.iter().for_each(|inner| names(inner, found)),
        _ => {}
    }
}

#[test]
fn json_is_typed_and_every_field_is_documented() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    simulated(
        f,
        "--matrix 32,32 -t spiral --shots 4 --coils 2 --truth truth.nii --maps maps.cfl --repetitions 2",
    );
    let points =
        ndarray::Array2::from_shape_fn(
            (64, 2),
            |(i, d)| if i / 32 == d { (i % 32) as f32 - 16.0 } else { 0.0 },
        );
    rayspin::io::npy::write(f.join("path.npy"), points.view()).unwrap();
    let page =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/info.md")).unwrap();
    let mut found = std::collections::BTreeSet::new();
    for line in ["scan.h5", "truth.nii", "maps.cfl", "path.npy", "", "--device cpu"] {
        let json = info(line, f);
        assert!(json.is_object(), "{line}");
        names(&json, &mut found);
    }
    assert!(found.len() > 60, "{found:?}");
    for name in found {
        assert!(page.contains(&format!("`{name}`")), "docs/info.md does not explain `{name}`");
    }
    let scan = info("scan.h5", f);
    assert_eq!(scan["scan"]["encodings"][0]["encoded_matrix"].to_string(), "[32,32,1]");
    assert_eq!((&scan["images"], &scan["scan"]["coils"]), (&2.into(), &2.into()));
    assert_eq!(scan["scan"]["counters"]["repetitions"]["values"], 2);
    assert!(scan["notes"].is_array() && scan["error"].is_null());
    let maps = info("maps.cfl", f);
    assert_eq!((&maps["header"]["READ"], &maps["header"]["COIL"]), (&32.into(), &2.into()));
    let path = info("path.npy", f);
    assert_eq!(path["header"]["shape"].to_string(), "[64,2]");
    assert_eq!(
        (&path["trajectory"]["pattern"], &path["trajectory"]["readouts"]),
        (&"radial".into(), &2.into())
    );
    assert!(info("", f)["threads"].is_u64());
    // An image is no k-space, and says so with a note rather than a failure.
    let value = ndarray::ArrayD::from_elem(ndarray::IxDyn(&[3, 3, 3, 3, 3]), C32::ONE);
    rayspin::io::npy::write(f.join("deep.npy"), value.view()).unwrap();
    assert!(info("deep.npy", f)["notes"][0].as_str().unwrap().contains("no k-space"));
}

#[test]
fn samples_are_described_along_their_trajectory() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    let point = |(spoke, at, axis): (usize, usize, usize)| {
        let (sin, cos) = (spoke as f64 * 0.35).sin_cos();
        (at as f64 - 20.0) / 2.0 * if axis == 0 { cos } else { sin }
    };
    let points = ndarray::Array3::from_shape_fn((9, 40, 2), point);
    rayspin::io::npy::write(f.join("spokes.npy"), points.view()).unwrap();
    let samples = ndarray::Array3::from_elem((3, 9, 40), C32::ONE);
    rayspin::io::npy::write(f.join("samples.npy"), samples.view()).unwrap();
    let found = info("samples.npy --traj spokes.npy --matrix 20,20", f);
    let sampling = &found["sampling"];
    assert_eq!(
        (&sampling["pattern"], &sampling["readouts"], &sampling["coils"], &sampling["on_grid"]),
        (&"radial".into(), &9.into(), &3.into(), &false.into())
    );
    assert!(found["trajectory"].is_null() && found["notes"].to_string().contains("cycles/fov"), "{found}");
    let told = text("info samples.npy --traj spokes.npy --traj-units cycles/fov -o dots.png", f);
    assert!(told.contains("understood as") && f.join("dots.png").exists(), "{told}");
    refused(&command("info samples.npy --traj spokes.npy"), f, &["trajectory units"]);
    refused(
        &command("info spokes.npy samples.npy --traj spokes.npy"),
        f,
        &["--traj", "samples without a header"],
    );
    refused(&command("info samples.npy --matrix 20,20"), f, &["--traj"]);
}

/// Twix of VD: a count and a number of measurements.
#[test]
fn siemens_raw_data_are_described_or_refused_by_their_field() {
    let folder = tempfile::tempdir().unwrap();
    let head = [0u32, 1, 0, 0].map(u32::to_le_bytes).concat();
    std::fs::write(folder.path().join("meas.dat"), [&head[..], &[0; 600]].concat()).unwrap();
    refused(&command("info meas.dat"), folder.path(), &["meas.dat", "measurement 1: offset"]);
    let Some(path) = real_data("mri/gre_2ch_ve11.dat") else { return };
    let told = info(path.to_str().unwrap(), Path::new("."));
    assert_eq!(told["names"], serde_json::json!(["1"]));
    assert!(told["header"]["software"].as_str().unwrap().contains("E11"), "{told}");
    let sequence = &told["scan"]["sequence"];
    assert_eq!(sequence["echo_times_ms"], serde_json::json!([3.0]));
    assert_eq!(sequence["flip_angles_deg"], serde_json::json!([15.0]));
    assert_eq!(told["sampling"]["pattern"], "full", "{told}");
}

#[test]
fn real_scans_are_told_apart() {
    for (name, pattern, factor, readouts) in [
        ("mri/cardiac_radial_12ch.h5", "radial", [6.0, 10.0], Some(25)),
        ("mri/brain_cartesian_8ch.cfl", "variable-density", [7.5, 8.5], None),
        ("mri/spiral_jemris_1ch.h5", "spiral", [0.99, 1.2], None),
    ] {
        let Some(path) = real_data(name) else { continue };
        let sampling = &info(path.to_str().unwrap(), Path::new("."))["sampling"];
        assert_eq!(sampling["pattern"], pattern, "{name}: {sampling}");
        let found = sampling["undersampling"].as_f64().unwrap();
        assert!((factor[0]..=factor[1]).contains(&found), "{name}: {sampling}");
        if let Some(readouts) = readouts {
            assert_eq!(sampling["readouts"], readouts, "{name}");
        }
    }
}
