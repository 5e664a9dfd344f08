//! Launch reports.

use std::process::Command;

use crate::{PROGRAM, rayspin, refused};

/// Text without the ends of its lines.
fn unwrapped(text: Vec<u8>) -> String {
    String::from_utf8(text).unwrap().split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_report_without_a_gpu_is_of_the_compiler_and_the_published_problem() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    let run = |more: &str| {
        let line =
            format!("report matrix-add --size 300x500 --variant gpu-tiled,gpu-wide --architecture {more}");
        let mut command = Command::new(PROGRAM);
        command.args(line.split(' ')).current_dir(f).env("RAYSPIN_KERNEL_CACHE", f.join("kept"));
        command.output().unwrap()
    };
    let done = run("sm_90 --json a.json");
    let told = String::from_utf8_lossy(&done.stderr).into_owned();
    if told.contains("NVRTC (libnvrtc.so) was not found") {
        assert_eq!(done.status.code(), Some(1), "{told}");
        let required = std::env::var_os("RAYSPIN_NVRTC_REQUIRED").is_some_and(|v| v != "0");
        assert!(!required, "NVRTC is required: {told}");
        println!("passed over: {}", told.lines().next().unwrap_or_default());
        return;
    }
    assert!(done.status.success(), "{told}");
    let table = unwrapped(done.stdout);
    for word in
        ["300 x 500 f32", "for sm_90", "nothing was run", "132 multiprocessors (H100 SXM)", "gpu-wide"]
    {
        assert!(table.contains(word), "{word}: {table}");
    }
    let json: serde_json::Value = serde_json::from_slice(&std::fs::read(f.join("a.json")).unwrap()).unwrap();
    let report = &json["reports"][0];
    assert_eq!((&report["ladder"], &report["processor"]["emulated"]), (&"matrix-add".into(), &true.into()));
    let launches = report["launches"].as_array().unwrap();
    assert!(launches.iter().any(|line| line["variant"] == "gpu-tiled"), "{json}");
    for line in launches {
        let number = |name: &str| line[name].as_f64().unwrap_or_else(|| panic!("{name}: {line}"));
        let count = |name: &str| -> f64 {
            line[name].as_array().unwrap().iter().map(|side| side.as_f64().unwrap()).product()
        };
        // A sum takes few registers: threads or blocks are the limit.
        assert!((1..=40).contains(&line["takes"]["registers"].as_u64().unwrap()), "{line}");
        assert_eq!(line["takes"]["spill_stores"], 0, "{line}");
        let held = number("held");
        assert!(held >= 1.0 && held * count("threads") <= 2048.0, "{line}");
        assert!((number("occupancy") - held * count("threads") / 2048.0).abs() < 1e-9, "{line}");
        assert!((number("waves") - count("blocks") / (held * 132.0)).abs() < 1e-9, "{line}");
    }

    // Without a size the problem is the one that GPUs are measured with.
    let mut command = Command::new(PROGRAM);
    let line = "report transpose --variant gpu-naive --architecture sm_90";
    let large = command.args(line.split(' ')).current_dir(f).output().unwrap();
    let table = unwrapped(large.stdout);
    assert!(table.contains("8192 x 8192 f32") && table.contains("65536"), "{table}");

    let both = run("sm_86,sm_120 --json -");
    let both: serde_json::Value = serde_json::from_slice(&both.stdout).unwrap();
    let processor = |index: usize| &both["reports"][index]["processor"];
    assert_eq!(
        (&processor(0)["architecture"], &processor(1)["architecture"]),
        (&"sm_86".into(), &"sm_120".into())
    );
    assert_eq!((&processor(0)["multiprocessors"], &processor(0)["threads"]), (&82.into(), &1536.into()));
}

#[test]
fn reports_that_cannot_be_made_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    let r = |arguments: &str, words: &[&str]| {
        let arguments: Vec<_> = ["report"].into_iter().chain(arguments.split_whitespace()).collect();
        refused(&arguments, f, words);
    };
    r("matrix-ad", &["found matrix-ad"]);
    r("matrix-add --variant gpu-wid", &["variant for a GPU", "found gpu-wid"]);
    r("matrix-add --variant scalar --device cpu", &["variant for a GPU", "found scalar"]);
    r("matrix-add --case 1000x100", &["case of matrix-add", "1000x100"]);
    r("matrix-add --size 3", &["size of matrix-add", "[3]"]);
    r("matrix-add --architecture sm_91", &["--architecture", "sm_90", "found sm_91"]);
    r("matrix-add --json none/a.json", &["none"]);
    assert_eq!(rayspin(&["report"], f).status.code(), Some(2), "a name is required");
}

#[test]
fn without_the_cuda_compiler_a_report_says_what_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(PROGRAM)
        .args(["report", "matrix-add", "--architecture", "sm_90"])
        .current_dir(folder.path())
        .env("RAYSPIN_PRECOMPILED_ONLY", "1")
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains("needs the CUDA compiler: RAYSPIN_PRECOMPILED_ONLY forbids NVRTC"), "{told}");
}
