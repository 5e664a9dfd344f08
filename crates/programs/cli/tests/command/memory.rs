//! Memory: stated, limited, and kernels that are kept.

use crate::{files, ok, parameters, rayspin, reconstructed, refused, simulated, with_scan};

/// The stated peak over the one that the system measured, of reconstructions of a simulated scan.
fn within_a_tenth(scan: &str, runs: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    simulated(folder.path(), scan);
    for run in runs {
        let (parameters, peak, _) = reconstructed(folder.path(), &format!("--method {run}"));
        let ratio = parameters["memory stated"].as_f64().unwrap() / peak;
        assert!((0.9..1.1).contains(&ratio), "{scan}, {run}: {ratio} of {peak}");
    }
}

#[test]
fn memory_of_small_scans_is_stated_as_the_system_measures_it() {
    within_a_tenth(
        "--matrix 64,64 --coils 4",
        &["cartesian", "cg-sense -i 2", "ls -i 2", "wavelet -i 2", "tv -i 2"],
    );
    within_a_tenth(
        "-t radial --matrix 64,64 --coils 4",
        &["gridding", "cg-sense -i 2", "ls -i 2", "wavelet -i 2", "tv -i 2", "cg-sense -i 2 --coils 3"],
    );
    within_a_tenth("-t kooshball --matrix 24,24,24 --coils 4", &["gridding", "tv -i 2"]);
}

#[test]
fn memory_on_the_grid_is_stated_as_the_system_measures_it() {
    within_a_tenth("--matrix 256,256 --coils 24", &["cartesian", "cg-sense -i 2"]);
    within_a_tenth(
        "--matrix 192,192 --coils 12 --acceleration 2 --calibration 24 --noise-readouts 8 --snr 50",
        &[
            "grappa",
            "grappa --coils 6",
            "cg-sense -i 2 --coils 6",
            "cg-sense -i 2 --coils 0.95 --compression geometric",
            "tv -i 2 --sensitivities walsh",
            "cg-sense -i 2 --sensitivities espirit --map-sets 2",
        ],
    );
}

#[test]
fn memory_with_a_trajectory_is_stated_as_the_system_measures_it() {
    within_a_tenth(
        "-t stack-of-spirals --dims 3 --matrix 64,64,48 --shots 6 --coils 8",
        &["gridding", "cg-sense -i 2 --coils 3"],
    );
    within_a_tenth(
        "-t radial --matrix 160,160 --coils 12 --noise-readouts 8 --snr 50",
        &["gridding --combine maps", "wavelet -i 2", "ls -i 2"],
    );
}

#[test]
fn memory_of_partial_fourier_is_stated_as_the_system_measures_it() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    // A grid [coil, y, x] that is measured from line 60 on.
    let (coils, n) = (12, 192);
    let header = format!("{{'descr': '<c8', 'fortran_order': False, 'shape': ({coils}, {n}, {n}), }}");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    let padded = (header.len() + 11).next_multiple_of(64) - 10;
    bytes.extend((padded as u16).to_le_bytes());
    bytes.extend(format!("{header:<width$}\n", width = padded - 1).into_bytes());
    for index in 0..coils * n * n {
        let (y, x) = ((index / n % n) as f32 - 96.0, (index % n) as f32 - 96.0);
        let value = if y < -36.0 { 0.0 } else { (-(x * x + y * y) / 800.0).exp() + 1e-6 };
        bytes.extend([value.to_le_bytes(), 0f32.to_le_bytes()].concat());
    }
    std::fs::write(f.join("half.npy"), bytes).unwrap();
    for options in ["--partial-fourier pocs", "--partial-fourier homodyne", "--coils 4"] {
        let line = format!("recon mri half.npy -q -o image.npy --method cartesian {options}");
        ok(&line.split_whitespace().collect::<Vec<_>>(), f);
        let (parameters, peak) = parameters(&f.join("image.json"));
        let ratio = parameters["memory stated"].as_f64().unwrap() / peak;
        assert!((0.9..1.1).contains(&ratio), "{options}: {ratio} of {peak}");
    }
}

#[test]
fn a_dry_run_states_its_stages_and_writes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    simulated(f, "-t radial --matrix 48,48 --coils 2");
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
    // However a scan is read, an error names the acquisition by its number in the file.
    let mut scan = rayspin::io::ismrmrd::read(f.join("scan.h5")).unwrap();
    let last = scan.acquisitions.len() - 1;
    scan.acquisitions[last].counters.step_1 = 5000;
    rayspin::io::ismrmrd::write(f.join("written.h5"), &scan, rayspin::io::ismrmrd::Identity::Keep).unwrap();
    // HDF5 locks the file that it writes. A process that another test starts meanwhile keeps the lock until
    // it runs its program.
    std::fs::copy(f.join("written.h5"), f.join("wrong.h5")).unwrap();
    let (named, limit) = (format!("acquisition {last}: "), limit.to_string());
    let run = "recon mri wrong.h5 -o a.npy --method cartesian --threads 2".split(' ').collect::<Vec<_>>();
    for words in [run.clone(), [&run[..], &["--memory", &limit]].concat()] {
        refused(&words, f, &["wrong.h5", &named, "5000"]);
    }
    refused(
        &["recon", "mri", "scan.h5", "-o", "a.npy", "--memory", "1M"],
        f,
        &["--memory", "at least", "MiB"],
    );
    let wrong = rayspin(&["recon", "mri", "scan.h5", "-o", "a.npy", "--memory", "much"], f);
    assert_eq!(wrong.status.code(), Some(2));
}

#[test]
fn points_are_planned_some_at_a_time_where_memory_is_short() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    simulated(f, "-t radial --matrix 48,48 --coils 1 --shots 8000");
    let line = "--method gridding --combine rss";
    let (parameters, whole_peak, _) = reconstructed(f, line);
    assert!(parameters["points at a time"].is_null());
    let needed = parameters["memory stated"].as_f64().unwrap();
    std::fs::copy(f.join("image.npy"), f.join("whole.npy")).unwrap();
    let limit = (0.96 * needed) as u64;
    let (parameters, peak, _) = reconstructed(f, &format!("{line} --memory {limit}"));
    assert!(parameters["points at a time"].as_u64().is_some(), "{parameters}");
    assert!(peak <= limit as f64 && whole_peak > limit as f64, "{peak} and {whole_peak} of {limit}");
    let same = ok(&["metrics", "image.npy", "whole.npy", "--json"], f);
    let quality: serde_json::Value = serde_json::from_slice(&same.stdout).unwrap();
    assert!(quality["nrmse"].as_f64().unwrap() < 1e-5, "{quality}");
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
    assert!(text.contains("was not in --cache"), "{text}");
    let (second, text) = run("b.npy");
    assert!(text.contains("comes from --cache") && second == first, "{text}");
    let kernel = files(&f.join("kernels")).remove(0);
    let bytes = std::fs::read(&kernel).unwrap();
    std::fs::write(&kernel, &bytes[..bytes.len() / 2]).unwrap();
    let (third, text) = run("c.npy");
    assert!(text.contains("was not in --cache") && text.contains("made anew") && third == first, "{text}");
    assert!(std::fs::read(&kernel).unwrap() == bytes, "the kernel is not replaced");
    let gridding = ["recon", "mri", "scan.h5", "-o", "d.npy", "--method", "gridding", "--cache", "kernels"];
    refused(&gridding, f, &["--cache", "gridding"]);
}
