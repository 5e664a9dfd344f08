//! Files described, converted and compared; help.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use rayspin_lab::limits::{Effort, keep, measure};

use crate::{PROGRAM, ok, refused, simulated, with_scan};

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

#[test]
fn info_tells_the_limits_that_were_measured_before() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    let device = rayspin::device::Device::cpu().unwrap();
    let effort = Effort { bytes: 1 << 20, repeats: 1, seconds: 1e-4, rounds: 1 << 10 };
    keep(&f.join("cache"), &measure(&device, &effort).unwrap()).unwrap();
    let output = Command::new(PROGRAM)
        .args(["info", "--device", "cpu"])
        .env("RAYSPIN_KERNEL_CACHE", f.join("cache"))
        .output()
        .unwrap();
    let told = String::from_utf8(output.stdout).unwrap();
    assert!(told.contains("f32 multiply-add") && told.contains("measured by rayspin-ladder"), "{told}");
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
    for threads in ["5000", "18446744073709551615"] {
        let told = text(&["info", "--threads", threads]);
        let most = rayspin::device::cpu::most_threads();
        assert!(told.contains(&format!("{most} threads (of {threads}, at most 4 a core)")), "{told}");
    }
}

/// Runs a command with `bytes` on standard input.
fn fed(line: &str, folder: &Path, bytes: &[u8]) -> Output {
    let mut child = Command::new(PROGRAM)
        .args(line.split_whitespace())
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A run that is refused closes its end.
    let _ = child.stdin.take().unwrap().write_all(bytes);
    child.wait_with_output().unwrap()
}

#[test]
fn standard_input_stands_for_any_input() {
    let folder = with_scan();
    let f = folder.path();
    let bytes = |name: &str| std::fs::read(f.join(name)).unwrap();
    let [scan, truth] = ["scan.h5", "truth.nii.gz"].map(bytes);
    ok(&["recon", "mri", "scan.h5", "-q", "-o", "file.npy", "-m", "gridding"], f);
    let spheres =
        "simulate ct -q --no-record -o ct.h5 --matrix 16,16,1 --detector 24,1 --views 20 --lines --rays 1";
    ok(&spheres.split_whitespace().collect::<Vec<_>>(), f);
    for (line, input, told) in [
        ("recon mri - -q -o stream.npy -m gridding", &scan, ""),
        ("info -", &scan, "standard input"),
        ("info - --json", &truth, "NIfTI"),
        ("metrics file.npy -", &truth, "against standard input"),
        ("metrics - truth.nii.gz", &truth, "standard input against truth.nii.gz"),
        ("recon mri scan.h5 -q --no-record -o other.npy -m gridding --reference -", &truth, "standard input"),
        ("convert - copy.npy", &truth, ""),
        ("convert - copy.h5", &scan, ""),
        ("filter - -q -o smooth.npy --step gaussian:1", &truth, ""),
        ("render - -q -o picture.png --size 16", &truth, ""),
        ("recon ct - -q --no-record -o ct.npy", &bytes("ct.h5"), ""),
        ("rerun - -q --out again", &bytes("file.json"), "file.npy"),
    ] {
        let output = fed(line, f, input);
        let [out, err] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
        assert!(output.status.success(), "{line}: {err}");
        assert!(out.contains(told), "{line}: {out}");
        assert!(!(out + &err).contains("/input"), "{line} names a temporary file");
    }
    assert_eq!(bytes("stream.npy"), bytes("file.npy"));
    let record: serde_json::Value = serde_json::from_slice(&bytes("stream.json")).unwrap();
    assert_eq!(
        (&record["inputs"][0]["path"], &record["inputs"][0]["bytes"]),
        (&"-".into(), &scan.len().into())
    );
    let before = crate::files(f);
    for (line, input, words) in [
        ("metrics - -", &truth[..], "expected one input on standard input, found 2"),
        ("info -", &[], "expected a file on standard input, found nothing"),
        ("info -", b"no format", "standard input: expected"),
        ("rerun - --out twice", &bytes("stream.json"), "found standard input"),
    ] {
        let output = fed(line, f, input);
        let told = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(2) && told.contains(words), "{line}: {told}");
    }
    assert_eq!(crate::files(f), before);
}
