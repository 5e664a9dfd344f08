//! CT: simulate and reconstruct, plan, certify, repeat, refuse.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::{files, ok, parameters, refused};

fn words(text: &str) -> Vec<&str> {
    text.split_whitespace().collect()
}

fn simulated(folder: &Path, options: &str) {
    ok(&words(&format!("simulate ct -q -o scan.h5 {options}")), folder);
}

/// The relative error of a reconstruction beside the truth.
fn error_of(folder: &Path, options: &str) -> f64 {
    ok(&words(&format!("recon ct scan.h5 -q -o volume.npy --reference truth.npy {options}")), folder);
    let (parameters, _) = parameters(&folder.join("volume.json"));
    assert!(parameters["method"].is_string());
    let record: serde_json::Value =
        serde_json::from_slice(&std::fs::read(folder.join("volume.json")).unwrap()).unwrap();
    let text = record.to_string();
    let at = text.find("\"nrmse\":").unwrap() + 8;
    text[at..].split([',', '}']).next().unwrap().parse().unwrap()
}

#[test]
fn defaults_of_the_simulation_are_reconstructed_well_by_defaults() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    for (geometry, most) in [
        ("--matrix 64,64,64", 0.25),
        ("-g fan", 0.15),
        ("-g parallel --views 300", 0.15),
        ("--matrix 48,48,48 --arc 220", 0.35),
    ] {
        simulated(f, &format!("{geometry} --truth truth.npy"));
        let error = error_of(f, "--certify 100");
        assert!(error < most, "{geometry}: {error}");
    }
}

#[test]
fn every_method_makes_a_volume_with_a_record() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    simulated(f, "-g fan --matrix 48,48 --views 60 --truth truth.npy");
    for method in [
        "fbp --window hann --cutoff 0.8",
        "cgls",
        "sirt -i 20",
        "os-sart -i 3 --subsets 6",
        "mlem -i 10",
        "tv -i 10",
    ] {
        let error = error_of(f, &format!("-m {method} --certify 50"));
        assert!(error < 0.7, "{method}: {error}");
        let (parameters, _) = parameters(&f.join("volume.json"));
        let name = method.split(' ').next().unwrap();
        assert_eq!(parameters["method"], name);
        assert_eq!(parameters["certificates"][0]["outputs"], 50);
        let iterates = !name.starts_with("fbp");
        assert_eq!(parameters["iterations done"]["residuals"].is_array(), iterates, "{parameters}");
    }
    refused(&words("recon ct scan.h5 -o other.npy -m fourier"), f, &["parallel rays", "a fan"]);
    // Slices of parallel rays through Fourier space, and by back-projection.
    simulated(f, "-g parallel --matrix 64,64,5 --detector 64,5 --views 100 --truth truth.npy");
    let errors = ["fourier --accuracy 1e-5", "fbp"].map(|method| {
        let error = error_of(f, &format!("-m {method} --certify 50"));
        let (parameters, _) = parameters(&f.join("volume.json"));
        assert_eq!(parameters["certificates"][0]["outputs"], 50, "{method}");
        error
    });
    assert!(errors.iter().all(|error| *error < 0.4) && (errors[0] - errors[1]).abs() < 0.1, "{errors:?}");
    refused(
        &words("recon ct scan.h5 -o other.npy -m fourier --accuracy 1e-9"),
        f,
        &["accuracy", "1e-6 to 0.1"],
    );
    // A helix has no filtered back-projection.
    simulated(f, "-g helix --matrix 24,24,24 --arc 720 --views 80 --advance 60");
    let told = ok(&words("recon ct scan.h5 -o volume.npy --no-record"), f);
    assert!(String::from_utf8(told.stderr).unwrap().contains("method cgls"));
    refused(&words("recon ct scan.h5 -o other.npy -m fdk"), f, &["iterative method"]);
}

#[test]
fn memory_is_stated_as_the_system_measures_it_and_limits_refuse() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    for (scan, runs) in [
        (
            "--matrix 96,96,96 --views 120",
            &["fdk", "cgls -i 1", "sirt -i 1", "os-sart -i 1", "mlem -i 1", "tv -i 1"][..],
        ),
        ("--matrix 64,64,64 --views 300 --lines --offset 40", &["fdk"][..]),
        ("-g parallel --matrix 128,128,40 --detector 128,40 --views 400", &["fbp", "fourier"][..]),
    ] {
        simulated(f, &format!("{scan} --no-record"));
        for run in runs {
            ok(&words(&format!("recon ct scan.h5 -q -o volume.npy --threads 2 -m {run}")), f);
            let (parameters, peak) = parameters(&f.join("volume.json"));
            let ratio = parameters["memory stated"].as_f64().unwrap() / peak;
            assert!((0.85..1.15).contains(&ratio), "{scan}, {run}: {ratio} of {peak}");
        }
    }
    let line = "recon ct scan.h5 -o v.npy --memory 20M";
    refused(&words(line), f, &["--memory"]);
    // The hint names no option of another command.
    let told = String::from_utf8(crate::rayspin(&words(line), f).stderr).unwrap();
    assert!(told.contains("--row") && !told.contains("--repetition"), "{told}");
    let table = String::from_utf8(ok(&words("recon ct scan.h5 --dry-run"), f).stdout).unwrap();
    assert!(table.contains("back-projection") && table.contains("filter"), "{table}");
    assert!(!f.join("v.npy").exists());
}

#[test]
fn a_record_repeats_a_run() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    simulated(f, "-g fan --matrix 32,32 --views 40 --motion 3,0,0 --kilovolts 100 --drift 0.01");
    ok(&words("recon ct scan.h5 -q -o volume.npy"), f);
    ok(&words("rerun scan.json -q --out one"), f);
    ok(&words("rerun volume.json -q --out two"), f);
    assert_eq!(
        std::fs::read(f.join("volume.npy")).unwrap(),
        std::fs::read(f.join("two/volume.npy")).unwrap()
    );
}

#[test]
fn arrays_and_parts_of_scans_are_reconstructed() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    simulated(f, "-g cone --matrix 32,32,32 --views 60 --lines --no-record");
    ok(&words("recon ct scan.h5 -q -o whole.npy --no-record"), f);
    // The middle rows alone give the middle slices alone.
    ok(&words("recon ct scan.h5 -q -o some.nii.gz --row 14-17 --view 0-59 --no-record"), f);
    let sinogram = ndarray::Array2::<f32>::from_shape_fn((45, 40), |(_, column)| {
        let x = column as f32 - 19.5;
        if x.abs() < 10.0 { 0.02 * 2.0 * (100.0 - x * x).sqrt() } else { 0.0 }
    });
    ndarray_npy::write_npy(f.join("disc.npy"), &sinogram).unwrap();
    ok(&words("recon ct disc.npy -q -o slice.npy --arc 180 --pixel 1 --no-record"), f);
    let slice: ndarray::ArrayD<f32> = ndarray_npy::read_npy(f.join("slice.npy")).unwrap();
    assert!((slice[[0, 20, 20]] - 0.02).abs() < 1e-3, "{}", slice[[0, 20, 20]]);
}

/// Runs a command whose standard input gets `bytes` in two writes with a pause between them.
fn piped(line: &str, folder: &Path, bytes: &[u8]) -> std::process::Output {
    let mut child = Command::new(crate::PROGRAM)
        .args(line.split_whitespace())
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let (first, second) = bytes.split_at(bytes.len() / 3);
    // A run that is refused closes its end.
    let _ = stdin.write_all(first);
    std::thread::sleep(std::time::Duration::from_millis(200));
    let _ = stdin.write_all(second);
    drop(stdin);
    child.wait_with_output().unwrap()
}

#[test]
fn views_are_added_as_they_arrive() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    simulated(f, "--matrix 40,40,40 --detector 300,300 --views 186 --lines --rays 1 --no-record");
    let scan = rayspin::io::data_exchange::read(
        f.join("scan.h5"),
        rayspin::device::Device::cpu().unwrap().cpu_side(),
    )
    .unwrap();
    let rayspin::ct::scan::Measured::Lines(lines) = scan.measured else { panic!("line integrals") };
    ndarray_npy::write_npy(f.join("lines.npy"), &lines).unwrap();
    let pitch = 256.0 / 300.0 * 2.0;
    let rays = format!(
        "--arc 360 --source-to-axis 600 --axis-to-detector 600 --pixel {pitch} --matrix 40,40,40 --voxel 6.4"
    );
    ok(&words(&format!("recon ct lines.npy -q -o whole.npy {rays}")), f);
    let read = |name: &str| -> ndarray::ArrayD<f32> { ndarray_npy::read_npy(f.join(name)).unwrap() };
    let near = |name: &str, whole: &str| {
        let (found, whole) = (read(name), read(whole));
        let most = whole.iter().fold(0.0f32, |most, value| most.max(value.abs()));
        whole.iter().zip(&found).all(|(a, b)| (a - b).abs() < 1e-5 * most)
    };
    // 16 parts of 12 views and less.
    ok(
        &words(&format!("recon ct lines.npy --stream -q --threads 2 -o parts.npy --preview now.png {rays}")),
        f,
    );
    assert!(near("parts.npy", "whole.npy") && f.join("now.png").metadata().unwrap().len() > 100);
    let (parameters, peak) = parameters(&f.join("parts.json"));
    let ratio = parameters["memory stated"].as_f64().unwrap() / peak;
    assert!((0.85..1.25).contains(&ratio), "{ratio} of {peak}");
    let bytes = std::fs::read(f.join("lines.npy")).unwrap();
    let output = piped(&format!("recon ct - -q -o piped.npy --no-record {rays}"), f, &bytes);
    assert!(
        output.status.success() && near("piped.npy", "whole.npy"),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    // A scan that states its rays.
    let line = |more: &str| format!("recon ct scan.h5 -q --no-record --matrix 40,40,40 --voxel 6.4 {more}");
    ok(&words(&line("-o whole-scan.npy")), f);
    ok(&words(&line("-o scan.npy --stream")), f);
    assert!(near("scan.npy", "whole-scan.npy"));
    // Streams that end early, or are none.
    let before = files(f);
    for (bytes, word) in
        [(&bytes[..bytes.len() - 5], "found"), (b"nothing", "NumPy"), (&bytes[..20], "header")]
    {
        let output = piped(&format!("recon ct - -q -o short.npy {rays}"), f, bytes);
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && told.contains(word), "{word}: {told}");
    }
    assert_eq!(files(f), before);
    for (line, word) in [
        (format!("recon ct lines.npy --stream -o v.npy {rays} -m cgls"), "fbp or fdk"),
        (format!("recon ct lines.npy --stream -o v.npy {rays} -m fbp"), "fbp"),
        (format!("recon ct lines.npy --stream -o v.npy {rays} --certify"), "--certify"),
        (format!("recon ct lines.npy --stream -o v.npy {rays} --view 0-3"), "--view"),
        (format!("recon ct lines.npy -o v.npy {rays} --preview now.png"), "--preview"),
        ("recon ct lines.npy --stream -o v.npy".into(), "angle over which"),
        ("recon ct scan.h5 --stream -o v.npy --arc 360".into(), "--arc"),
    ] {
        refused(&words(&line), f, &[word]);
    }
}

#[test]
fn volumes_beyond_the_memory_are_made_slices_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    simulated(f, "--matrix 48,48,48 --views 20 --lines --rays 1 --no-record");
    let run = "recon ct scan.h5 --stream -q --threads 2 --matrix 160,160,160";
    ok(&words(&format!("{run} -o whole.npy")), f);
    let (whole, _) = parameters(&f.join("whole.json"));
    assert!(whole["slices at a time"].is_null());
    // The volume takes 16 MB.
    let limit = whole["memory stated"].as_u64().unwrap() - (8 << 20);
    let line = format!("{run} -o parts.npy -o parts.nii --memory {limit}");
    ok(&words(&line), f);
    let (parts, peak) = parameters(&f.join("parts.json"));
    let slices = parts["slices at a time"].as_u64().unwrap();
    assert!((1..160).contains(&slices) && peak < 1.1 * limit as f64, "{slices} slices, {peak} of {limit}");
    let read = |name: &str| rayspin::io::read_volume(f.join(name)).unwrap().image.into_data();
    let whole = read("whole.npy");
    let most = whole.iter().fold(0.0f32, |most, value| most.max(value.abs()));
    for name in ["parts.npy", "parts.nii"] {
        let apart = whole.iter().zip(&read(name)).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(apart < 1e-6 * most, "{name}: {apart} of {most}");
    }
    // A BART array holds volumes whole.
    refused(&words(&line.replace("parts.nii", "parts.cfl")), f, &["scan.h5", "memory"]);
}

#[test]
fn what_cannot_be_is_refused_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    simulated(f, "-g parallel --matrix 24,24 --views 20 --no-record");
    ndarray_npy::write_npy(f.join("lines.npy"), &ndarray::Array2::<f32>::zeros((20, 24))).unwrap();
    std::fs::write(f.join("text.h5"), "no HDF5").unwrap();
    let before = files(f);
    for (line, word) in [
        ("recon ct scan.h5 -o v.npy -m fdk", "parallel"),
        ("recon ct scan.h5 -o v.npy --axis 30", "a column from 0 to 23"),
        ("recon ct scan.h5 -o v.npy --arc 180", "--arc"),
        ("recon ct scan.h5 -o v.npy --view 30", "view"),
        ("recon ct scan.h5 -o v.npy --row 1", "row"),
        ("recon ct scan.h5 -o v.npy --voxel 0", "voxel"),
        ("recon ct scan.h5 -o v.npy --voxel 1,2", "--voxel"),
        ("recon ct scan.h5 -o v.npy -m tv --window hann", "--window"),
        ("recon ct scan.h5 -o v.npy --cutoff 2", "cutoff"),
        ("recon ct scan.h5 -o v.npy --certify 0", "certify"),
        ("recon ct scan.h5 -o v.npy --matrix 8", "--matrix"),
        ("recon ct lines.npy -o v.npy", "angle over which"),
        ("recon ct lines.npy -o v.npy --arc 180 --axis 90", "--axis"),
        ("recon ct lines.npy -o v.npy --arc 180 --axis nowhere", "a number or find"),
        ("recon ct lines.npy -o v.npy --arc 90 --axis find", "half a turn"),
        ("recon ct lines.npy -o v.npy --arc 360 --source-to-axis 90 --axis find", "parallel views"),
        ("recon ct lines.npy --stream -o v.npy --arc 180 --axis find", "views that arrive"),
        ("recon ct scan.h5 -o v.npy --correct blur", "outliers"),
        ("recon ct scan.h5 -o v.npy --correct rings,rings", "each once"),
        ("recon ct scan.h5 -o v.npy --ring-snr 4", "--correct rings"),
        ("recon ct scan.h5 -o v.npy --correct outliers --ring-snr 4", "--correct rings"),
        ("recon ct scan.h5 -o v.npy --correct rings --ring-small 4", "odd"),
        ("recon ct scan.h5 -o v.npy --correct bin", "bin"),
        ("recon ct scan.h5 -o v.npy --correct bin --bin-rows 2", "at most"),
        ("recon ct scan.h5 -o v.npy --correct phase --energy 20", "--distance"),
        ("recon ct scan.h5 -o v.npy --correct hardening", "--tube"),
        ("recon ct scan.h5 -o v.npy --correct hardening --tube 120 --hardening-2 1", "both"),
        ("recon ct scan.h5 -o v.npy --correct hounsfield", "--water"),
        ("recon ct scan.h5 -o v.npy --correct hounsfield --water-mask lines.npy", "marks water"),
        ("recon ct scan.h5 -o v.npy --column 3,5", "side by side"),
        ("recon ct scan.h5 -o v.npy --column 24", "column"),
        ("recon ct lines.npy --stream -o v.npy --arc 180 --correct rings", "rings"),
        ("recon ct lines.npy --stream -o v.npy --arc 180 --column 0-3", "--column"),
        ("recon ct lines.npy -o v.npy --arc 180 --pixel 0", "pixel"),
        ("recon ct lines.npy -o v.npy --arc 180 --source-to-axis 0", "source"),
        ("recon ct lines.npy -o v.npy --rtk absent.xml", "absent.xml"),
        ("recon ct text.h5 -o v.npy", "text.h5"),
        ("recon ct scan.h5 -o scan.h5", "input"),
        ("simulate ct -o a.h5 --views 0", "views"),
        ("simulate ct -o a.h5 --source-to-axis 0", "source"),
        ("simulate ct -o a.h5 --axis-to-detector -600", "distance"),
        ("simulate ct -o a.h5 --photons 0", "photons"),
        ("simulate ct -o a.h5 --lines --photons 10", "--lines"),
        ("simulate ct -o a.h5 -g parallel --source-to-axis 10", "--geometry"),
        ("simulate ct -o a.h5 --advance 10", "helix"),
        ("simulate ct -o a.h5 --kilovolts 20", "voltage"),
        ("simulate ct -o a.h5 --rays 0", "rays"),
        ("simulate ct -o a.h5 --arc nan", "--arc"),
        ("simulate ct -o a.h5 --fov 0", "--fov"),
        ("simulate ct -o a.h5 -g fan --matrix 8,8,8", "--matrix"),
        ("simulate ct -o a.nii", ".h5"),
    ] {
        refused(&words(line), f, &[word]);
    }
    assert_eq!(files(f), before);
    // A scan of another kind.
    ok(&words("simulate mri -q -o mri.h5 --matrix 16,16 --no-record"), f);
    refused(&words("recon ct mri.h5 -o v.npy"), f, &["Data Exchange"]);
    ok(&words("recon ct scan.h5 -o v.npy -q"), f);
}

#[test]
fn scans_are_described() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    simulated(f, "-g fan --matrix 24,24 --views 20 --arc -200 --no-record");
    let text = String::from_utf8(ok(&words("info scan.h5"), f).stdout).unwrap();
    for word in ["Data Exchange", "20 of 1 x 24 pixels", "10 flat fields", "fan beam over 190°"] {
        assert!(text.contains(word), "{word}: {text}");
    }
    let json: serde_json::Value =
        serde_json::from_slice(&ok(&words("info scan.h5 --json"), f).stdout).unwrap();
    assert_eq!((json["ct"]["views"].as_u64(), json["ct"]["beam"].as_str()), (Some(20), Some("fan")));
    assert!((json["ct"]["last_angle_deg"].as_f64().unwrap() + 190.0).abs() < 1e-9);
}

fn volume(path: &Path) -> ndarray::ArrayD<f32> {
    ndarray_npy::read_npy(path).unwrap()
}

#[test]
fn corrections_are_recorded_with_their_parameters_and_repeated() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    simulated(f, "-g parallel --matrix 64,64 --views 90 --kilovolts 120 --drift 0.02 --truth truth.npy");
    ok(
        &words(
            "recon ct scan.h5 -q -o volume.npy --correct hounsfield,rings,hardening,outliers --tube 120 --water 0.0206 --ring-small 3",
        ),
        f,
    );
    let (parameters, _) = parameters(&f.join("volume.json"));
    let list = parameters["corrections"].as_array().unwrap();
    let names: Vec<_> = list.iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["outliers", "rings", "hardening", "hounsfield"]);
    assert_eq!((list[1]["ring_small"].as_u64(), list[2]["tube"].as_f64()), (Some(3), Some(120.0)));
    ok(&words("rerun volume.json -q --out again"), f);
    let found = volume(&f.join("volume.npy"));
    assert_eq!(found, volume(&f.join("again/volume.npy")));
    // Air is −1000; the same with what marks it.
    let corner = found[[0, 1, 32]];
    assert!((corner + 1000.0).abs() < 60.0, "{corner}");
    let mut air = ndarray::ArrayD::<f32>::zeros(found.raw_dim());
    air[[0, 1, 32]] = 1.0;
    ndarray_npy::write_npy(f.join("air.npy"), &air).unwrap();
    ok(&words("recon ct scan.h5 -q -o marked.npy --correct hounsfield --water 0.0206 --air-mask air.npy"), f);
    assert!((volume(&f.join("marked.npy"))[[0, 1, 32]] + 1000.0).abs() < 0.1);
}

#[test]
fn bins_and_parts_keep_the_object_in_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    let disc = |middle: f32| {
        ndarray::Array2::<f32>::from_shape_fn((60, 96), |(view, column)| {
            // A disc 12 mm from the axis, which falls on `middle`.
            let angle = view as f32 * std::f32::consts::PI / 60.0;
            let x = column as f32 - middle - 12.0 * angle.cos();
            0.02 * 2.0 * (64.0 - x * x).max(0.0).sqrt()
        })
    };
    ndarray_npy::write_npy(f.join("disc.npy"), &disc(44.3)).unwrap();
    let line = "recon ct disc.npy -q --no-record --arc 180 --axis 44.3 --pixel 1 --matrix 48,48 --voxel 1";
    ok(&words(&format!("{line} -o whole.npy")), f);
    let whole = volume(&f.join("whole.npy"));
    for (options, most) in [
        ("--column 10-85", 0.02),
        ("--correct bin --bin-columns 2", 0.25),
        ("--correct bin --bin-columns 3 --column 5-90", 0.35),
        ("--correct bin --bin-views 2", 0.15),
    ] {
        ok(&words(&format!("{line} {options} -o part.npy")), f);
        let part = volume(&f.join("part.npy"));
        let (mut error, mut all) = (0.0, 0.0);
        for (a, b) in whole.iter().zip(&part) {
            error += (a - b).powi(2);
            all += a * a;
        }
        assert!((error / all).sqrt() < most, "{options}: {}", (error / all).sqrt());
    }
    // The axis is found in columns of the file.
    let turn = ndarray::Array2::<f32>::from_shape_fn((120, 96), |(view, column)| {
        let angle = view as f32 * std::f32::consts::PI / 60.0;
        let x = column as f32 - 15.5 - 20.0 * angle.cos();
        0.02 * 2.0 * (256.0 - x * x).max(0.0).sqrt()
    });
    ndarray_npy::write_npy(f.join("turn.npy"), &turn).unwrap();
    for options in ["", "--column 4-95", "--correct bin --bin-columns 2 --column 2-95"] {
        ok(&words(&format!("recon ct turn.npy -q -o found.npy --arc 360 --axis find {options}")), f);
        let axis = parameters(&f.join("found.json")).0["axis"].as_f64().unwrap();
        assert!((axis - 15.5).abs() < 0.4, "{options}: {axis}");
    }
}

/// A detector that does not see the whole head: rows go on beyond it, of a scan as a whole and as it arrives,
/// and the run says so. `--axis` corrects a scan that states its rays.
#[test]
fn truncated_rows_and_a_stated_axis_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    simulated(f, "-g parallel --matrix 64,64 --detector 36 --views 60 --lines --no-record");
    let told = |options: &str| {
        let line = format!("recon ct scan.h5 --no-record --device cpu --matrix 40,40 --voxel 4 {options}");
        String::from_utf8(ok(&words(&line), f).stderr).unwrap()
    };
    let said = "does not see the whole object on both sides (in 60 of 60 views)";
    assert!(told("-o auto.npy").contains(said) && told("-o stream.npy --stream").contains(said));
    assert!(told("-m fourier -o fourier.npy").contains(said));
    assert!(
        !told("-o none.npy --extend none").contains("go on")
            && told("-o edge.npy --extend edge").contains("last value")
    );
    // The rim, in the middle row of the image, as bright as the middle and not much brighter.
    let rim = |name: &str| {
        let row = volume(&f.join(name)).slice(ndarray::s![0, 20, ..]).to_owned();
        row.slice(ndarray::s![3..6]).mean().unwrap() / row.slice(ndarray::s![17..23]).mean().unwrap()
    };
    assert!(rim("none.npy") > 1.3 * rim("auto.npy"), "{} {}", rim("none.npy"), rim("auto.npy"));
    for name in ["stream.npy", "fourier.npy"] {
        assert!((rim(name) / rim("auto.npy") - 1.0).abs() < 0.1, "{name}");
    }
    let moved = "column 20.00, in place of column 17.50";
    assert!(
        told("-o moved.npy --axis 20").contains(moved)
            && told("-o moved.npy --axis 20 --stream").contains(moved)
    );
}

/// The mean square of differences between neighbouring pixels along a circle's radius, in the air around a
/// tooth: rings.
fn rings(path: &Path, radii: std::ops::Range<usize>) -> f64 {
    let image = volume(path);
    let middle = 0.5 * (image.shape()[2] - 1) as f64;
    let mean = |radius: usize| {
        let angles = (0..720).map(|at| f64::from(at) * std::f64::consts::TAU / 720.0);
        let values = angles.map(|angle| {
            let place = |x: f64| (middle + radius as f64 * x).round() as usize;
            f64::from(image[[0, place(angle.sin()), place(angle.cos())]])
        });
        values.sum::<f64>() / 720.0
    };
    let profile: Vec<f64> = radii.map(mean).collect();
    let squares = profile.windows(3).map(|w| (w[1] - 0.5 * (w[0] + w[2])).powi(2));
    squares.sum::<f64>() / (profile.len() - 2) as f64
}

#[test]
fn rings_around_a_real_tooth_are_removed() {
    let Some(scan) = crate::real_data::real_data("ct/tooth.h5") else { return };
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    let line = format!("recon ct {} -q --no-record --axis 295.9 --row 0", scan.display());
    ok(&words(&format!("{line} -o before.npy")), f);
    let before = rings(&f.join("before.npy"), 230..290);
    for options in ["rings", "rings-wavelet"] {
        ok(&words(&format!("{line} -o after.npy --correct {options}")), f);
        let after = rings(&f.join("after.npy"), 230..290);
        assert!(after < 0.25 * before, "{options}: {after} of {before}");
    }
}

/// The steepest step outwards of the mean around a point, and the mean within `radius` of it.
fn edge(path: &Path, [x, y]: [f64; 2], radius: usize) -> [f64; 2] {
    let image = volume(path);
    let mut rings = vec![[0.0; 2]; radius + 12];
    for (at, &value) in image.indexed_iter() {
        let distance = (at[1] as f64 - y).hypot(at[2] as f64 - x) as usize;
        if let Some([sum, count]) = rings.get_mut(distance) {
            (*sum, *count) = (*sum + f64::from(value), *count + 1.0);
        }
    }
    let means: Vec<f64> = rings.iter().map(|[sum, count]| sum / count).collect();
    let steepest = means[radius - 10..].windows(2).map(|pair| pair[0] - pair[1]).fold(0.0, f64::max);
    [steepest, means[..radius - 10].iter().sum::<f64>() / (radius - 10) as f64]
}

#[test]
fn strong_stripes_of_a_neutron_sinogram_are_removed_and_edges_stay() {
    let Some(scan) = crate::real_data::real_data("ct/neutron_sinogram_360.tif") else { return };
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    // The first view and the last are the same.
    let line = format!("recon ct {} -q --arc 360.786 --flat 47300 --axis find", scan.display());
    ok(&words(&format!("{line} -o before.npy")), f);
    ok(&words(&format!("{line} -o after.npy --correct rings")), f);
    let axis = |name: &str| parameters(&f.join(name)).0["axis"].as_f64().unwrap();
    assert!((axis("before.json") - 244.9).abs() < 0.2 && (axis("after.json") - 244.9).abs() < 0.2);
    let [before, after] = ["before.npy", "after.npy"].map(|name| f.join(name));
    let stripes = [&before, &after].map(|path| rings(path, 55..115));
    assert!(stripes[1] < 0.1 * stripes[0], "{stripes:?}");
    // Two of the rods.
    for place in [[256.5, 363.5], [183.5, 222.5]] {
        let [[was, inside], [is, still]] = [&before, &after].map(|path| edge(path, place, 30));
        assert!(is > 0.97 * was && is < 1.03 * was, "{place:?}: {is} of {was}");
        assert!((still / inside - 1.0).abs() < 0.02, "{place:?}: {still} of {inside}");
    }
}

#[test]
fn a_real_tooth_is_reconstructed() {
    let Some(scan) = crate::real_data::real_data("ct/tooth.h5") else { return };
    let folder = tempfile::tempdir().unwrap();
    let line = format!(
        "recon ct {} -q -o tooth.png -o tooth.nii.gz --axis 296 --window hann --certify 100",
        scan.display()
    );
    ok(&words(&line), folder.path());
    let (parameters, _) = parameters(&folder.path().join("tooth.json"));
    assert_eq!((parameters["method"].as_str(), parameters["axis"].as_f64()), (Some("fbp"), Some(296.0)));
    // Without an axis it is found.
    let line = format!("recon ct {} -q -o found.png", scan.display());
    ok(&words(&line), folder.path());
    let found = crate::parameters(&folder.path().join("found.json")).0["axis"].as_f64().unwrap();
    assert!((found - 295.8).abs() < 0.7, "{found}");
}
