//! The command as its users meet it: outputs, exit codes, messages, and what is left behind.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "helpers of tests")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn rayspin(arguments: &[&str], folder: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_rayspin"))
        .args(arguments)
        .current_dir(folder)
        .output()
        .expect("the command starts")
}

fn ok(arguments: &[&str], folder: &Path) -> Output {
    let output = rayspin(arguments, folder);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

/// Runs what must be refused: exit code 2, one error line holding every word of `words`, no panic, no new file.
fn refused(arguments: &[&str], folder: &Path, words: &[&str]) {
    let before = files(folder);
    let output = rayspin(arguments, folder);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {text}");
    let errors: Vec<&str> = text.lines().filter(|line| line.starts_with("error:")).collect();
    assert_eq!(errors.len(), 1, "{arguments:?}: {text}");
    for word in words {
        assert!(errors[0].contains(word), "{arguments:?}: '{word}' is not in: {text}");
    }
    assert!(text.lines().any(|line| line.starts_with("hint:")), "{arguments:?} has no hint: {text}");
    assert!(!text.contains("panicked"), "{text}");
    assert_eq!(files(folder), before, "{arguments:?} left something behind");
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    found.sort();
    found
}

/// A folder with a small spiral scan, its truth and maps.
fn with_scan() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let arguments = "simulate mri -q -o scan.h5 --truth truth.nii.gz --maps maps.cfl --matrix 48,48 --trajectory spiral \
                     --shots 8 --coils 4 --snr 100";
    ok(&arguments.split_whitespace().collect::<Vec<_>>(), folder.path());
    folder
}

#[test]
fn a_scan_becomes_images_a_record_and_a_quality_table() {
    let folder = with_scan();
    let f = folder.path();
    let output = ok(
        &[
            "recon",
            "mri",
            "scan.h5",
            "-o",
            "a.nii.gz",
            "-o",
            "a.png",
            "-o",
            "a.cfl",
            "-o",
            "a.npy",
            "-o",
            "a.h5",
            "--maps",
            "maps.cfl",
            "--reference",
            "truth.nii.gz",
        ],
        f,
    );
    assert!(String::from_utf8_lossy(&output.stdout).contains("NRMSE"));
    for name in ["a.nii.gz", "a.png", "a.cfl", "a.hdr", "a.npy", "a.h5"] {
        assert!(f.join(name).metadata().unwrap().len() > 0, "{name}");
    }
    let record: serde_json::Value =
        serde_json::from_slice(&std::fs::read(f.join("a.json")).unwrap()).unwrap();
    assert_eq!(record["parameters"]["method"], "cg-sense");
    assert_eq!(record["inputs"][0]["path"], "scan.h5");
    assert_eq!(record["outputs"].as_array().unwrap().len(), 6);
    let error = record["quality"][0]["metrics"]["nrmse"].as_f64().unwrap();
    assert!(error < 0.2, "{error}");
    assert!(record["convergence"][0]["residual"].as_array().unwrap().len() > 3);

    let json = ok(&["metrics", "a.npy", "truth.nii.gz", "--json", "--magnitude", "--fit"], f);
    let quality: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert!((quality["nrmse"].as_f64().unwrap() - error).abs() < 1e-6);
    // What was written in one format is the same in another.
    let same = ok(&["metrics", "a.npy", "a.cfl", "--json"], f);
    let quality: serde_json::Value = serde_json::from_slice(&same.stdout).unwrap();
    assert_eq!(quality["nrmse"], 0.0);
}

#[test]
fn quiet_means_no_word_and_lines_replace_the_bar_without_a_terminal() {
    let folder = with_scan();
    let quiet = ok(&["-q", "recon", "mri", "scan.h5", "-o", "q.npy", "--no-record"], folder.path());
    assert!(quiet.stderr.is_empty() && quiet.stdout.is_empty());
    assert!(!folder.path().join("q.json").exists());
    let lines = ok(&["recon", "mri", "scan.h5", "-o", "l.npy"], folder.path());
    let text = String::from_utf8_lossy(&lines.stderr).into_owned();
    assert!(
        text.contains("conjugate gradients") && text.contains("residual") && !text.contains('\x1b'),
        "{text}"
    );
}

#[test]
fn the_number_of_threads_does_not_change_the_image() {
    let folder = with_scan();
    for (threads, name) in [("1", "one.npy"), ("2", "two.npy")] {
        ok(&["-q", "--threads", threads, "recon", "mri", "scan.h5", "-o", name], folder.path());
    }
    let same = ok(&["metrics", "one.npy", "two.npy", "--json"], folder.path());
    let quality: serde_json::Value = serde_json::from_slice(&same.stdout).unwrap();
    assert!(quality["nrmse"].as_f64().unwrap() < 1e-5, "{quality}");
}

#[test]
fn every_simulated_trajectory_reconstructs() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    for (name, options) in [
        ("cartesian", "--matrix 32,32"),
        ("cartesian", "--matrix 32,32,3 --repetitions 2 --acceleration 2 --calibration 12"),
        (
            "poisson",
            "--matrix 48,48 --acceleration 2 --calibration 12 --noise-readouts 4 --noise-correlation 0.2",
        ),
        ("radial", "--matrix 32,32 --angles golden"),
        ("spiral", "--matrix 32,32"),
        ("epi", "--matrix 32,32"),
        ("kooshball", "--matrix 16,16,16"),
        ("stack-of-stars", "--matrix 16,16,8"),
        ("stack-of-spirals", "--matrix 16,16,8"),
        ("random", "--matrix 32,32"),
    ] {
        let simulate = format!("-q simulate mri -o s.h5 --coils 3 --snr 50 --trajectory {name} {options}");
        ok(&simulate.split_whitespace().collect::<Vec<_>>(), f);
        ok(&["-q", "recon", "mri", "s.h5", "-o", "s.nii.gz"], f);
        let info = ok(&["info", "s.h5"], f);
        assert!(String::from_utf8_lossy(&info.stdout).contains("acquisitions"), "{name}");
        let info = ok(&["info", "s.nii.gz", "--json"], f);
        assert!(serde_json::from_slice::<serde_json::Value>(&info.stdout).unwrap()["shape"].is_string());
    }
}

#[test]
fn wrong_files_are_refused_by_name() {
    let folder = with_scan();
    let f = folder.path();
    let scan = std::fs::read(f.join("scan.h5")).unwrap();
    std::fs::write(f.join("text.h5"), "no scan at all").unwrap();
    std::fs::write(f.join("empty.h5"), "").unwrap();
    std::fs::write(f.join("short.h5"), &scan[..scan.len() / 2]).unwrap();
    for name in ["text.h5", "empty.h5", "short.h5", "missing.h5"] {
        refused(&["recon", "mri", name, "-o", "x.nii.gz"], f, &[name]);
        refused(&["info", name], f, &[name]);
    }
    refused(&["recon", "mri", "truth.nii.gz", "-o", "x.npy"], f, &["truth.nii.gz", "raw data"]);
    refused(&["convert", "scan.h5", "x.nii"], f, &["scan.h5", "expected an image"]);
    refused(&["metrics", "truth.nii.gz", "maps.cfl"], f, &["maps.cfl"]);
}

#[test]
fn wrong_options_are_refused_by_name() {
    let folder = with_scan();
    let f = folder.path();
    let recon = |extra: &[&'static str], words: &[&str]| {
        let mut arguments = vec!["recon", "mri", "scan.h5", "-o", "x.nii.gz"];
        arguments.extend(extra);
        refused(&arguments, f, words);
    };
    recon(&["--lambda", "-1"], &["lambda", "expected", "found -1"]);
    recon(&["--lambda", "NaN"], &["lambda", "NaN"]);
    recon(&["--epsilon", "1e-12"], &["epsilon", "found"]);
    recon(&["--epsilon", "2"], &["epsilon", "found 2"]);
    recon(&["--iterations", "0"], &["iterations", "found 0"]);
    recon(&["--matrix", "0,48"], &["scan.h5", "matrix size", "0 x 48"]);
    recon(&["--matrix", "1000000000,48"], &["matrix size", "1000000000"]);
    recon(&["--matrix", "48"], &["--matrix", "expected 2 or 3 numbers"]);
    recon(&["--traj-units", "furlongs"], &["trajectory units", "cycles/fov", "furlongs"]);
    recon(&["--method", "cartesian"], &["scan.h5", "method", "found cartesian"]);
    recon(&["--slice", "9"], &["scan.h5", "slice", "found 9"]);
    recon(&["--encoding", "4"], &["encoding", "4"]);
    recon(&["--maps", "truth.nii.gz"], &["truth.nii.gz", "expected maps"]);
    recon(&["--fov", "200,200"], &["--fov", "ISMRMRD"]);
    recon(&["--traj", "maps.cfl"], &["--traj", "ISMRMRD"]);
    refused(&["recon", "mri", "maps.cfl", "-o", "x.npy", "--slice", "1"], f, &["--slice", "one image"]);
    refused(&["convert", "truth.nii.gz", "x.npy", "--montage"], f, &["--montage", "x.npy"]);
    recon(&["--threads", "0"], &["threads", "found 0"]);
    recon(&["--save-maps", "m.cfl", "--method", "gridding"], &["--save-maps"]);
    refused(&["recon", "mri", "scan.h5", "-o", "x.jpg"], f, &["x.jpg", "ending"]);
    refused(&["recon", "mri", "scan.h5", "-o", "no/folder/x.nii"], f, &["no/folder/x.nii"]);
    refused(&["simulate", "mri", "-o", "y.h5", "--matrix", "0,9"], f, &["matrix along x", "found 0"]);
    refused(&["simulate", "mri", "-o", "y.h5", "--snr", "-3"], f, &["signal-to-noise", "found -3"]);
    refused(&["simulate", "mri", "-o", "y.h5", "--coils", "0"], f, &["coils", "found 0"]);
    refused(&["simulate", "mri", "-o", "y.h5", "--dims", "4"], f, &["dimensions", "found 4"]);
    refused(&["simulate", "mri", "-o", "y.nii"], f, &["y.nii", ".h5"]);
}

#[test]
fn outputs_never_replace_inputs_or_each_other() {
    let folder = with_scan();
    let f = folder.path();
    let scan = std::fs::read(f.join("scan.h5")).unwrap();
    refused(&["recon", "mri", "scan.h5", "-o", "./scan.h5"], f, &["scan.h5", "input"]);
    refused(&["recon", "mri", "scan.h5", "-o", "a.png", "-o", "a.png"], f, &["a.png", "another output"]);
    refused(&["recon", "mri", "scan.h5", "-o", "a.png", "--record", "a.png"], f, &["a.png"]);
    refused(
        &["recon", "mri", "scan.h5", "-o", "a.npy", "--maps", "maps.cfl", "--save-maps", "maps.cfl"],
        f,
        &["maps"],
    );
    refused(&["simulate", "mri", "-o", "z.h5", "--truth", "z.h5"], f, &["z.h5"]);
    assert_eq!(std::fs::read(f.join("scan.h5")).unwrap(), scan);
}

#[test]
fn maps_go_out_and_come_back_for_slices_and_oversampled_readouts() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    for options in ["--matrix 32,32,3 --acceleration 2 --calibration 12", "--matrix 32,32 --oversampling 2"] {
        let simulate = format!("-q simulate mri -o s.h5 --coils 4 --maps true.cfl {options}");
        ok(&simulate.split_whitespace().collect::<Vec<_>>(), f);
        ok(&["-q", "recon", "mri", "s.h5", "-o", "a.npy", "-m", "cg-sense", "--save-maps", "m.cfl"], f);
        ok(&["-q", "recon", "mri", "s.h5", "-o", "b.npy", "-m", "cg-sense", "--maps", "m.cfl"], f);
        ok(&["-q", "recon", "mri", "s.h5", "-o", "c.npy", "-m", "cg-sense", "--maps", "true.cfl"], f);
        let same = ok(&["metrics", "b.npy", "a.npy", "--json"], f);
        let quality: serde_json::Value = serde_json::from_slice(&same.stdout).unwrap();
        // Oversampled: the image outside the field of view is no longer explained by anything.
        assert!(quality["nrmse"].as_f64().unwrap() < 0.1, "{options}: {quality}");
    }
}

#[test]
fn a_coarser_matrix_shows_the_same_object_without_folding() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    for trajectory in ["radial", "cartesian"] {
        let spokes = "-q simulate mri --coils 1 --truth truth.npy --maps m.cfl -t";
        let fine = format!("{spokes} {trajectory} --matrix 96,96 -o fine.h5");
        let coarse = format!("{spokes} {trajectory} --matrix 48,48 -o coarse.h5");
        ok(&fine.split_whitespace().collect::<Vec<_>>(), f);
        ok(&coarse.split_whitespace().collect::<Vec<_>>(), f);
        ok(&["-q", "recon", "mri", "fine.h5", "-o", "fine.npy", "--matrix", "48,48"], f);
        ok(&["-q", "recon", "mri", "coarse.h5", "-o", "coarse.npy"], f);
        let of = |name: &str| {
            let output = ok(&["metrics", name, "truth.npy", "--json", "--fit", "--magnitude"], f);
            serde_json::from_slice::<serde_json::Value>(&output.stdout).unwrap()["nrmse"].as_f64().unwrap()
        };
        let (fine, coarse) = (of("fine.npy"), of("coarse.npy"));
        assert!(fine < 1.1 * coarse, "{trajectory}: {fine} against {coarse}");
    }
}

#[cfg(unix)]
#[test]
fn a_reader_that_leaves_early_is_no_error() {
    let folder = with_scan();
    let command = env!("CARGO_BIN_EXE_rayspin");
    for line in ["completions bash", "metrics truth.nii.gz truth.nii.gz", "info scan.h5"] {
        let script = format!("({command} {line}; echo $? >code) 2>stderr | true");
        assert!(
            Command::new("sh").args(["-c", &script]).current_dir(folder.path()).status().unwrap().success()
        );
        let text = std::fs::read_to_string(folder.path().join("stderr")).unwrap();
        assert!(!text.contains("panicked"), "{line}: {text}");
    }
}

#[test]
fn maps_of_another_shape_are_refused() {
    let folder = with_scan();
    let f = folder.path();
    ok(
        &[
            "-q",
            "simulate",
            "mri",
            "-o",
            "other.h5",
            "--matrix",
            "32,32",
            "--coils",
            "3",
            "--maps",
            "small.cfl",
        ],
        f,
    );
    refused(
        &["recon", "mri", "scan.h5", "-o", "x.nii.gz", "--maps", "small.cfl"],
        f,
        &["sensitivity maps", "[4, 48, 48]", "[3, 32, 32]"],
    );
}

#[cfg(unix)]
#[test]
fn a_folder_that_may_not_be_written_is_a_failure_and_keeps_the_old_file() {
    use std::os::unix::fs::PermissionsExt;
    let folder = with_scan();
    let locked = folder.path().join("locked");
    std::fs::create_dir(&locked).unwrap();
    std::fs::write(locked.join("x.npy"), "old").unwrap();
    std::fs::set_permissions(&locked, std::fs::Permissions::from_mode(0o555)).unwrap();
    // Root writes everywhere: there is nothing to see then.
    if std::fs::write(locked.join("probe"), "").is_err() {
        let output = rayspin(&["recon", "mri", "scan.h5", "-o", "locked/x.npy"], folder.path());
        assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(std::fs::read(locked.join("x.npy")).unwrap(), b"old");
    }
    std::fs::set_permissions(&locked, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[cfg(unix)]
#[test]
fn an_interrupted_run_leaves_nothing_half_written() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    ok(
        &[
            "-q",
            "simulate",
            "mri",
            "-o",
            "scan.h5",
            "--matrix",
            "96,96",
            "--coils",
            "6",
            "-t",
            "radial",
            "--no-record",
        ],
        f,
    );
    // At different moments: while starting, reading, iterating, writing.
    for milliseconds in [1, 60, 200, 500] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_rayspin"))
            .args(["recon", "mri", "scan.h5", "-o", "x.nii.gz", "-o", "x.png", "--method", "ls"])
            .args(["--iterations", "200", "--tolerance", "0", "-W", "differences"])
            .current_dir(f)
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(std::time::Duration::from_millis(milliseconds));
        let pid = child.id().to_string();
        assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
        let status = child.wait().unwrap();
        // Before the handler is installed the signal itself ends the process; a fast machine may have finished.
        assert!(
            status.code().is_none_or(|code| code == 130 || code == 0),
            "after {milliseconds} ms: {status:?}"
        );
        for file in files(f) {
            let name = file.file_name().unwrap().to_string_lossy().into_owned();
            assert!(
                ["scan.h5", "x.nii.gz", "x.png", "x.json"].contains(&&*name),
                "after {milliseconds} ms: {name}"
            );
            // What is there is whole.
            if name != "x.json" && name != "x.png" {
                ok(&["info", &name], f);
            }
        }
    }
}

#[test]
fn sparse_images_and_anatomical_references() {
    let folder = with_scan();
    let f = folder.path();
    let recon = |more: &str| -> serde_json::Value {
        let arguments = format!("-q recon mri scan.h5 -o a.npy --maps maps.cfl {more}");
        ok(&arguments.split_whitespace().collect::<Vec<_>>(), f);
        serde_json::from_str(&std::fs::read_to_string(f.join("a.json")).unwrap()).unwrap()
    };
    let record = recon("-m wavelet --iterations 12");
    assert_eq!(record["parameters"]["solver"], "FISTA");
    assert_eq!(record["parameters"]["lambda"], 3e-3);
    assert_eq!(record["convergence"][0]["residual"].as_array().unwrap().len(), 12);
    let objective = &record["parameters"]["objective, slice 0 repetition 0"];
    assert_eq!(objective.as_array().unwrap().len(), 12);
    let first = std::fs::read(f.join("a.npy")).unwrap();
    recon("-m wavelet --iterations 12");
    assert_eq!(std::fs::read(f.join("a.npy")).unwrap(), first, "the shifts are the same every time");
    let record = recon("-m tv -i 5 --anatomy truth.nii.gz");
    assert_eq!(record["parameters"]["anatomy"], "truth.nii.gz");
    let inputs = record["inputs"].to_string();
    assert!(inputs.contains("truth.nii.gz"), "{inputs}");
    recon("-m cg-sense -i 5 -W differences --anatomy truth.nii.gz");

    let no = |more: &str, words: &[&str]| {
        let arguments = format!("recon mri scan.h5 -o b.npy {more}");
        refused(&arguments.split_whitespace().collect::<Vec<_>>(), f, words);
    };
    no("-m gridding --anatomy truth.nii.gz", &["--anatomy", "gridding"]);
    no("-m wavelet --anatomy truth.nii.gz", &["--anatomy", "wavelet"]);
    no("-m cg-sense --anatomy truth.nii.gz", &["--anatomy", "-W differences"]);
    no("-m wavelet -W identity", &["-W", "wavelet"]);
    no("-m tv -W differences", &["-W", "tv"]);
    no("-m gridding -l 0.1", &["--lambda", "gridding"]);
    no("-m tv --lambda -1", &["lambda"]);
    ok(&["-q", "recon", "mri", "scan.h5", "-o", "small.nii.gz", "--matrix", "32,32", "--no-record"], f);
    no("-m tv --anatomy small.nii.gz", &["anatomical reference", "[48, 48]", "32"]);
    no("-m tv --anatomy nothing.nii.gz", &["nothing.nii.gz"]);
}

#[test]
fn help_completions_and_info_answer() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    for command in
        [&["--help"][..], &["recon", "mri", "--help"], &["simulate", "mri", "--help"], &["convert", "-h"]]
    {
        let help = ok(command, f);
        assert!(String::from_utf8_lossy(&help.stdout).contains("Example"), "{command:?}");
    }
    for shell in ["bash", "zsh", "fish"] {
        assert!(String::from_utf8_lossy(&ok(&["completions", shell], f).stdout).contains("recon"));
    }
    assert!(String::from_utf8_lossy(&ok(&["info"], f).stdout).contains("threads"));
}

fn parameters(record: &Path) -> (serde_json::Value, f64) {
    let record: serde_json::Value = serde_json::from_slice(&std::fs::read(record).unwrap()).unwrap();
    let peak = record["peak_memory_bytes"].as_f64().unwrap();
    (record["parameters"].clone(), peak)
}

fn simulated(folder: &Path, options: &str) {
    let arguments = format!("simulate mri -q --no-record -o scan.h5 {options}");
    ok(&arguments.split_whitespace().collect::<Vec<_>>(), folder);
}

fn reconstructed(folder: &Path, options: &str) -> (serde_json::Value, f64, Vec<u8>) {
    let arguments = format!("recon mri scan.h5 -q -o image.npy {options}");
    ok(&arguments.split_whitespace().collect::<Vec<_>>(), folder);
    let (parameters, peak) = parameters(&folder.join("image.json"));
    (parameters, peak, std::fs::read(folder.join("image.npy")).unwrap())
}

#[test]
fn memory_is_stated_before_the_run_as_the_system_measures_it() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    for (scan, methods) in [
        ("--matrix 256,256 --coils 24", &["cartesian", "cg-sense -i 2"][..]),
        ("--trajectory stack-of-spirals --dims 3 --matrix 64,64,48 --shots 6 --coils 8", &["gridding"]),
    ] {
        simulated(f, scan);
        for method in methods {
            let (parameters, peak, _) = reconstructed(f, &format!("--method {method}"));
            let ratio = parameters["memory stated"].as_f64().unwrap() / peak;
            assert!((0.9..1.1).contains(&ratio), "{scan} {method}: {ratio} of {peak}");
        }
    }
    // Nothing is computed or written, and no output need be named.
    let before = files(f);
    let output = ok(&["recon", "mri", "scan.h5", "--dry-run", "--method", "cg-sense"], f);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("Toeplitz kernel") && text.contains("conjugate gradients"), "{text}");
    assert_eq!(files(f), before);
}

#[test]
fn a_run_fits_its_memory_or_is_refused_with_the_number() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    simulated(f, "--matrix 192,192,12 --dims 2 --coils 8");
    let (parameters, _, whole) = reconstructed(f, "--method cartesian");
    let needed = parameters["memory stated"].as_f64().unwrap();
    let limit = (needed * 0.75) as u64;
    let (parameters, peak, parts) = reconstructed(f, &format!("--method cartesian --memory {limit}"));
    assert_eq!(parameters["read image by image"], true);
    assert!(parts == whole, "another image");
    assert!(peak < 1.1 * limit as f64, "{peak} of {limit}");
    refused(
        &["recon", "mri", "scan.h5", "-o", "a.npy", "--memory", "1M"],
        f,
        &["--memory", "at least", "MiB"],
    );
    let wrong = rayspin(&["recon", "mri", "scan.h5", "-o", "a.npy", "--memory", "much"], f);
    assert_eq!(wrong.status.code(), Some(2));
}

#[test]
fn a_run_certifies_its_transforms() {
    let folder = with_scan();
    let f = folder.path();
    let output =
        ok(&["recon", "mri", "scan.h5", "-o", "a.npy", "--method", "cg-sense", "--certify", "200"], f);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("NUFFT adjoint") && text.contains("99 % confidence"), "{text}");
    let (parameters, _) = parameters(&f.join("a.json"));
    let certificates = parameters["certificates"].as_array().unwrap();
    assert_eq!(certificates.len(), 3);
    for certificate in certificates {
        assert!(certificate["error"].as_f64().unwrap() <= 1e-4 && certificate["outputs"] == 200);
    }
    assert_eq!(parameters["certify"]["seed"], 1);
    refused(&["recon", "mri", "scan.h5", "-o", "a.npy", "--certify", "0"], f, &["certify", "1 to"]);
}

#[test]
fn kept_kernels_give_the_same_image_and_broken_ones_are_made_anew() {
    let folder = with_scan();
    let f = folder.path();
    let run = |name: &str| {
        let output = ok(
            &[
                "recon",
                "mri",
                "scan.h5",
                "-o",
                name,
                "--method",
                "cg-sense",
                "--iterations",
                "5",
                "--cache",
                "kernels",
            ],
            f,
        );
        (std::fs::read(f.join(name)).unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let (first, text) = run("a.npy");
    assert!(text.contains("cache miss"), "{text}");
    let (second, text) = run("b.npy");
    assert!(text.contains("cache hit") && second == first, "{text}");
    let kernel = files(&f.join("kernels")).remove(0);
    let bytes = std::fs::read(&kernel).unwrap();
    std::fs::write(&kernel, &bytes[..bytes.len() / 2]).unwrap();
    let (third, text) = run("c.npy");
    assert!(text.contains("cache miss") && text.contains("made anew") && third == first, "{text}");
    assert!(std::fs::read(&kernel).unwrap() == bytes, "the kernel is not replaced");
    let gridding = ["recon", "mri", "scan.h5", "-o", "d.npy", "--method", "gridding", "--cache", "kernels"];
    refused(&gridding, f, &["--cache", "gridding"]);
}

/// Runs the command and kills it after each of some times; `look` judges what is there after each.
#[cfg(unix)]
fn killed(arguments: &[&str], folder: &Path, rounds: u64, step_ms: f64, mut look: impl FnMut(u64)) {
    for round in 0..rounds {
        let mut child = Command::new(env!("CARGO_BIN_EXE_rayspin"))
            .args(arguments)
            .current_dir(folder)
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(std::time::Duration::from_secs_f64(1e-3 * step_ms * round as f64));
        child.kill().unwrap();
        child.wait().unwrap();
        look(round);
    }
}

#[test]
#[cfg(unix)]
fn a_killed_run_leaves_the_old_file_or_the_new_one() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    simulated(f, "--matrix 160,160,8 --dims 2 --coils 2");
    let recon =
        ["recon", "mri", "scan.h5", "-q", "-o", "image.nii.gz", "-o", "image.npy", "--method", "cartesian"];
    ok(&recon, f);
    let whole: Vec<_> = ["image.nii.gz", "image.npy"].map(|n| std::fs::read(f.join(n)).unwrap()).into();
    for (arguments, names) in [
        (&recon[..], vec!["image.nii.gz", "image.npy", "image.json"]),
        (&["convert", "image.npy", "other.nii.gz"][..], vec!["other.nii.gz"]),
    ] {
        let new: Vec<u8> = if names[0] == "image.nii.gz" {
            whole[0].clone()
        } else {
            ok(arguments, f);
            std::fs::read(f.join("other.nii.gz")).unwrap()
        };
        let (mut old, mut done) = (0, 0);
        for name in &names {
            std::fs::write(f.join(name), b"old").unwrap();
        }
        if names[0] == "other.nii.gz" {
            std::fs::write(f.join("image.npy"), &whole[1]).unwrap();
        }
        killed(arguments, f, 12, 12.0, |_| {
            let found = std::fs::read(f.join(names[0])).unwrap();
            old += usize::from(found == b"old");
            done += usize::from(found == new);
            assert!(found == b"old" || found == new, "{} bytes of {}", found.len(), names[0]);
            if let Some(record) = names.get(2) {
                let text = std::fs::read(f.join(record)).unwrap();
                assert!(text == b"old" || serde_json::from_slice::<serde_json::Value>(&text).is_ok());
                let array = std::fs::read(f.join(names[1])).unwrap();
                assert!(array == b"old" || array == whole[1]);
            }
            for file in files(f) {
                let name = file.file_name().unwrap().to_str().unwrap().to_owned();
                let known = ["scan.h5", "image.nii.gz", "image.npy", "image.json", "other.nii.gz"];
                assert!(
                    known.contains(&&*name) || (name.starts_with('.') && name.ends_with(".part")),
                    "{name}"
                );
            }
            std::fs::write(f.join(names[0]), b"old").unwrap();
        });
        // Killed at once nothing is written yet.
        assert!(old > 0, "{old} old, {done} new");
    }
}

#[test]
fn images_in_hdf5_are_described_converted_and_compared() {
    let folder = with_scan();
    let f = folder.path();
    ok(&["recon", "mri", "scan.h5", "-q", "-o", "image.h5", "-o", "image.nii", "--method", "gridding"], f);
    ok(&["convert", "image.h5", "back.nii"], f);
    assert_eq!(
        std::fs::read(f.join("back.nii")).unwrap()[352..],
        std::fs::read(f.join("image.nii")).unwrap()[352..]
    );
    let text = String::from_utf8(ok(&["info", "image.h5"], f).stdout).unwrap();
    assert!(text.contains("[1, 48, 48]"), "{text}");
    ok(&["metrics", "image.h5", "image.nii"], f);
    refused(&["recon", "mri", "image.h5", "-o", "x.nii"], f, &["image.h5", "scan", "image"]);
    refused(&["metrics", "scan.h5", "image.nii"], f, &["scan.h5", "an image"]);
}

#[test]
fn images_of_another_gain_and_too_many_threads_are_pointed_out() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    simulated(f, "--matrix 24,24 --coils 1 --truth truth.npy");
    let text = |arguments: &[&str]| String::from_utf8(ok(arguments, f).stderr).unwrap();
    std::fs::copy(f.join("truth.npy"), f.join("louder.npy")).unwrap();
    let mut bytes = std::fs::read(f.join("truth.npy")).unwrap();
    // Times 2^k: the exponent of every number that is not 0.
    for number in bytes[128..].as_chunks_mut::<4>().0 {
        let value = f32::from_le_bytes(*number) * 64.0;
        *number = value.to_le_bytes();
    }
    std::fs::write(f.join("louder.npy"), bytes).unwrap();
    assert!(text(&["metrics", "louder.npy", "truth.npy"]).contains("--fit"));
    assert!(!text(&["metrics", "louder.npy", "truth.npy", "--fit"]).contains("hint"));
    assert!(!text(&["metrics", "truth.npy", "truth.npy"]).contains("hint"));
    assert!(text(&["info", "--threads", "500"]).contains("500 threads"));
}

#[test]
fn coils_are_prepared_and_missing_lines_found() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    simulated(
        f,
        "--matrix 64,64 --coils 6 --acceleration 2 --snr 50 --noise-readouts 4 --truth truth.nii.gz",
    );
    let run = |options: &str| {
        let all = format!("recon mri -q scan.h5 {options}");
        let output = ok(&all.split_whitespace().collect::<Vec<_>>(), f);
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    run("-o grappa.nii.gz --method grappa --coils 4");
    let record = std::fs::read_to_string(f.join("grappa.json")).unwrap();
    for words in [
        "coils are whitened by 1024 noise samples",
        "6 coils compressed to 4",
        "GRAPPA: acceleration 2 along y",
    ] {
        assert!(record.contains(words), "{words}: {record}");
    }
    // Maps are those of the scan's own coils, and serve another run that prepares coils differently.
    run("-o a.npy --method cg-sense --coils 5 --save-maps maps.npy");
    run("-o b.npy --method cg-sense --no-prewhiten --maps maps.npy");
    run("-o c.npy --method cg-sense --sensitivities espirit --map-sets 2");
    let wrong = |options: &str, words: &[&str]| {
        let all = format!("recon mri scan.h5 -o x.npy {options}");
        refused(&all.split_whitespace().collect::<Vec<_>>(), f, words);
    };
    wrong("--method cg-sense --coils 6", &["virtual coils", "fewer than the scan's 6"]);
    wrong("--method cartesian --sensitivities espirit", &["--sensitivities", "cartesian"]);
    wrong("--method cg-sense --map-sets 2", &["--map-sets", "espirit"]);
    wrong("--method grappa --partial-fourier pocs", &["partial Fourier"]);
    simulated(f, "--matrix 32,32 --coils 3");
    let full = |options: &str, words: &[&str]| {
        let all = format!("recon mri scan.h5 -o x.npy {options}");
        refused(&all.split_whitespace().collect::<Vec<_>>(), f, words);
    };
    full("--method grappa", &["method", "without gaps"]);
    full("--no-prewhiten", &["--no-prewhiten", "noise readouts"]);
}
