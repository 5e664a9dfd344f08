//! Ladders: what is listed, climbed, written, compared and refused.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::{PROGRAM, ok, rayspin, refused};

fn text(arguments: &[&str], folder: &Path) -> String {
    String::from_utf8(ok(arguments, folder).stdout).unwrap()
}

#[test]
fn ladders_are_listed_and_explained() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    let list = text(&["list"], f);
    assert!(list.contains("matrix-add") && list.contains("Sum of two matrices"), "{list}");
    let rungs = text(&["list", "matrix-add"], f);
    for word in ["8192x8192", "threads", "gpu-wide", "threads=64,128,[256],512,1024"] {
        assert!(rungs.contains(word), "{word}: {rungs}");
    }
    let explained = text(&["explain", "matrix-add"], f);
    assert!(explained.contains("gpu-one-block") && !explained.contains('`'), "{explained}");
    assert!(text(&["--help"], f).contains("Examples"));
    for shell in ["bash", "zsh", "fish"] {
        assert!(text(&["completions", shell], f).contains("matrix-add"), "{shell} completes names");
    }
}

#[test]
fn a_climb_is_a_table_and_files() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    let run = "matrix-add --size 31x7 --device cpu --rounds 3 --budget 0.05 --seed 9 --no-limits";
    let run: Vec<_> = run.split(' ').collect();
    let with = |more: &[&'static str]| [run.as_slice(), more].concat();
    let table = text(&with(&["--json", "a.json", "--csv", "a.csv"]), f);
    for word in ["31 x 7 f32", "Rung", "GB/s", "scalar", "simd", "threads"] {
        assert!(table.contains(word), "{word}: {table}");
    }
    let json: serde_json::Value = serde_json::from_slice(&std::fs::read(f.join("a.json")).unwrap()).unwrap();
    insta::assert_json_snapshot!(json, {
        ".began" => "[time]",
        ".limits" => "[limits]",
        ".climbs[].device" => "[device]",
        ".climbs[].clock_mhz" => "[clock]",
        ".climbs[].steps[].outcome.timed.clock_mhz" => "[clock]",
        ".climbs[].steps[].floor" => "[seconds]",
        ".climbs[].steps[].outcome.timed.cumulative" => "[ratio]",
        ".climbs[].steps[].outcome.timed.step" => "[ratio]",
        ".climbs[].steps[].outcome.timed.rate" => "[rate]",
        ".climbs[].steps[].outcome.timed.timing.high" => "[seconds]",
        ".climbs[].steps[].outcome.timed.timing.low" => "[seconds]",
        ".climbs[].steps[].outcome.timed.timing.median" => "[seconds]",
        ".climbs[].steps[].outcome.timed.timing.rounds" => "[rounds]",
        ".climbs[].steps[].outcome.timed.timing.runs" => "[runs]",
    });
    let csv = std::fs::read_to_string(f.join("a.csv")).unwrap();
    let fields: Vec<_> = csv.lines().map(|line| line.matches(',').count()).collect();
    assert_eq!(fields.len(), 4, "{csv}");

    let only = text(&with(&["--rung", "simd", "--json", "-"]), f);
    let only: serde_json::Value = serde_json::from_str(&only).unwrap();
    assert_eq!(only["climbs"][0]["steps"].as_array().unwrap().len(), 1);
    std::fs::write(f.join("b.json"), only.to_string()).unwrap();

    let single = text(&with(&["--rung", "simd", "--launch", "single", "--csv", "s.csv"]), f);
    assert!(single.contains("runs asked for and waited for one by one"), "{single}");
    let stream = text(&with(&["--rung", "simd", "--launch", "stream", "--json", "-"]), f);
    let stream: serde_json::Value = serde_json::from_str(&stream).unwrap();
    assert_eq!(stream["climbs"][0]["launch"], "stream");
    std::fs::write(f.join("s.json"), stream.to_string()).unwrap();
    let launches = |file: &str| -> Vec<String> {
        let csv = std::fs::read_to_string(f.join(file)).unwrap();
        csv.lines().skip(1).map(|line| line.rsplit(',').nth(1).unwrap().to_owned()).collect()
    };
    assert_eq!(
        (launches("a.csv"), launches("s.csv")),
        (vec!["stream".to_owned(); 3], vec!["single".to_owned()])
    );
    let other = text(&["compare", "a.json", "s.json"], f);
    assert!(other.contains("after: runs asked for one after another"), "{other}");

    let same = text(&["compare", "a.json", "a.json"], f);
    assert_eq!(same.matches("no difference beyond noise").count(), 3, "{same}");
    let less = text(&["compare", "a.json", "b.json"], f);
    assert!(less.contains("only before: scalar of matrix-add") && less.contains("simd"), "{less}");
    let json: serde_json::Value =
        serde_json::from_str(&text(&["compare", "a.json", "b.json", "--json"], f)).unwrap();
    assert_eq!(json["rungs"].as_array().unwrap().len(), 1);
    assert!(json["rungs"][0]["ratio"].as_f64().unwrap() > 0.0);

    std::fs::write(f.join("foreign.json"), "{\"format\": \"something\"}").unwrap();
    refused(&["compare", "a.json", "foreign.json"], f, &["foreign.json", "rayspin-ladder"]);
    refused(&["compare", "missing.json", "a.json"], f, &["missing.json"]);
}

#[test]
fn what_there_is_not_is_refused_with_the_nearest() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    let climb = |more: &[&'static str], words: &[&str]| {
        refused(&[&["matrix-add", "--device", "cpu"], more].concat(), f, words);
    };
    refused(&["matrix-ad"], f, &["matrix-ad"]);
    let near = rayspin(&["run", "matrix-ad"], f);
    assert!(String::from_utf8_lossy(&near.stderr).contains("did you mean matrix-add?"));
    climb(&["--case", "1000x100"], &["case", "1000x100"]);
    climb(&["--rung", "scaler"], &["rung", "scaler"]);
    climb(&["--rung", "gpu-wide"], &["gpu-wide", "a GPU"]);
    climb(&["--size", "x"], &["--size", "'x'"]);
    climb(&["--size", "3"], &["size of matrix-add", "[3]"]);
    climb(&["--size", "0x7"], &["size of matrix-add"]);
    climb(&["--size", "4294967296x4294967296"], &["size of matrix-add"]);
    climb(&["--rounds", "0"], &["--rounds"]);
    climb(&["--budget", "-1"], &["--budget"]);
    climb(&["--launch", "graph"], &["--launch graph", "a GPU"]);
    for launch in [["--launch", "graphs"].as_slice(), &["--launch", "stream", "--emulate"]] {
        let found = rayspin(&[["matrix-add", "--device", "cpu"].as_slice(), launch].concat(), f);
        assert_eq!(found.status.code(), Some(2), "{launch:?}");
    }
    climb(&["--config", "threads=64"], &["--config", "one rung"]);
    climb(&["--rung", "simd", "--config", "threads=64"], &["--config of simd", "threads=64"]);
    climb(&["--rung", "simd", "--config", "threads"], &["configuration"]);
    climb(&["--sweep", "thread"], &["--sweep", "thread"]);
    climb(&["--json", "x.json", "--csv", "x.json"], &["x.json"]);
    climb(&["--json", "no/folder.json"], &["no/folder.json"]);
    refused(&["tune", "matrix-product", "--device", "both"], f, &["--device", "both"]);
    // What stands before a subcommand is not passed over.
    refused(&["--size", "3x3", "list"], f, &["--size", "before"]);
    assert!(ok(&["-q", "--device", "cpu", "list"], f).status.success());
    assert_eq!(rayspin(&[], f).status.code(), Some(2));
    assert_eq!(rayspin(&["--all", "matrix-add"], f).status.code(), Some(2));
}

#[test]
fn an_application_table_wants_a_gpu_and_known_names() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    let table = |more: &[&'static str], words: &[&str]| {
        refused(&[&["applications", "--device", "cpu"], more].concat(), f, words);
    };
    table(&[], &["expected a GPU beside the CPU"]);
    table(&["matrix-add", "--json", "a.json"], &["expected a GPU beside the CPU"]);
    table(&["matrix-ad"], &["matrix-ad"]);
    table(&["matrix-add", "--case", "1000x100"], &["case of matrix-add", "1000x100"]);
    table(&["matrix-add", "--size", "3"], &["size of matrix-add", "[3]"]);
    table(&["recon-volume", "--size", "8"], &["size of recon-volume", "[8]"]);
    table(&["recon-volume", "--case", "a"], &["case of recon-volume"]);
    table(&["matrix-add", "--rounds", "0"], &["--rounds"]);
    table(&["matrix-add", "--budget", "0"], &["--budget"]);
    table(&["matrix-add", "--html", "-"], &["--html"]);
    table(&["--json", "x", "--csv", "x"], &["x"]);
    let explained = text(&["explain", "applications", "sad"], f);
    assert!(explained.contains("Application table\n===") && explained.contains("gpu-packed"));
    let near = rayspin(&["applications", "matrix-ad"], f);
    assert!(String::from_utf8_lossy(&near.stderr).contains("did you mean matrix-add?"));
    for of_the_parser in [["--size", "3"], ["matrix-add", "--emulate"]] {
        let output = rayspin(&[&["applications"], &of_the_parser[..]].concat(), f);
        assert_eq!(output.status.code(), Some(2), "{of_the_parser:?}");
    }
    assert!(!f.join("a.json").exists());
}

#[test]
fn limits_are_measured_once_and_kept_and_pages_stand_alone() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    let run = |arguments: &str| {
        let output = Command::new(PROGRAM)
            .args(arguments.split(' '))
            .env("RAYSPIN_KERNEL_CACHE", f.join("cache"))
            .current_dir(f)
            .output()
            .unwrap();
        let (out, err) =
            (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
        assert!(output.status.success(), "{arguments}: {err}");
        (out, err)
    };
    let climb = "matrix-add --size 100x33 --device cpu --rounds 3 --budget 0.01 --json a.json --html a.html";
    let (table, _) = run(climb);
    assert!(table.contains("Of limit (%)"), "{table}");
    let limits = || -> serde_json::Value {
        let json = std::fs::read(f.join("a.json")).unwrap();
        serde_json::from_slice::<serde_json::Value>(&json).unwrap()["limits"].clone()
    };
    let first = limits();
    assert!(first[0]["copy"].as_f64().unwrap() > 1e6 && first[0]["f32"].as_f64().unwrap() > 1e6, "{first}");
    run(climb);
    assert_eq!(limits(), first, "measured once");

    let page = std::fs::read_to_string(f.join("a.html")).unwrap();
    for word in ["Sum of two matrices", "Roofline", "Time of a run", "Limits", "scalar"] {
        assert!(page.contains(word), "{word}");
    }
    assert!(!page.contains("http://") && !page.contains("src=\"http"), "it loads nothing");

    let kept = std::fs::read_dir(f.join("cache")).unwrap().next().unwrap().unwrap().path();
    std::fs::write(&kept, "damaged").unwrap();
    let (_, told) = run(climb);
    assert!(told.contains("limits are measured anew"), "{told}");
    assert!(std::fs::read_to_string(&kept).unwrap().contains("probe"), "and kept again");
}

#[cfg(unix)]
#[test]
fn an_interrupted_climb_shows_what_is_complete() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    let arguments =
        "matrix-add --size 64x64 --device cpu --rounds 1000000 --budget 0.8 --no-limits --json a.json";
    let child = Command::new(PROGRAM)
        .args(arguments.split(' '))
        .current_dir(f)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(std::time::Duration::from_millis(400));
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", String::from_utf8_lossy(&output.stderr));
    let table = String::from_utf8(output.stdout).unwrap();
    assert!(table.contains("scalar") && !table.contains("threads "), "{table}");
    let json: serde_json::Value = serde_json::from_slice(&std::fs::read(f.join("a.json")).unwrap()).unwrap();
    assert_eq!(json["climbs"][0]["steps"].as_array().unwrap().len(), 1);
}

#[test]
fn one_source_runs_on_two_processors() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    let run = "coulomb --emulate --size 5x1x3x40 --device cpu --rounds 3 --budget 0.05 --rung gpu-gather,gpu-points";
    let run: Vec<_> = run.split(' ').collect();
    let command = |run: &[&str]| {
        let mut command = Command::new(PROGRAM);
        command.args(run).current_dir(f).env("RAYSPIN_KERNEL_CACHE", f.join("kept"));
        command
    };
    let none = command(&run).env("PATH", f).env_remove("CXX").output().unwrap();
    let told = String::from_utf8_lossy(&none.stderr).into_owned();
    assert_eq!(none.status.code(), Some(1), "{told}");
    assert!(told.contains("no C++ compiler was found: install g++") && !told.contains("panicked"), "{told}");

    refused(&["sad", "--emulate", "--size", "5"], f, &["HEIGHTxWIDTHxRADIUS"]);
    refused(&["sad", "--emulate", "--rung", "gpu-nave"], f, &["gpu-nave", "gpu-naive"]);
    refused(&["sad", "--emulate", "--case", "qcfi"], f, &["qcfi", "qcif"]);
    let both = rayspin(&["sad", "--emulate", "--json", "a.json"], f);
    assert_eq!(both.status.code(), Some(2));

    let done = command(&run).output().unwrap();
    let told = String::from_utf8_lossy(&done.stderr).into_owned();
    if told.contains("no C++ compiler") {
        println!("passed over: this machine has no C++ compiler");
        return;
    }
    assert!(done.status.success(), "{told}");
    let tables = String::from_utf8(done.stdout).unwrap();
    let row = |name: &str| {
        tables.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{name}: {tables}"))
    };
    assert!(row("gpu-gather").contains("  all, whole  "), "{tables}");
    assert!(row("gpu-points").contains("  all, in 4  "), "{tables}");
    assert!(row("coulomb  ").contains("45.0 s") && row("coulomb: ").contains("3 x 40 points"), "{tables}");
    assert!(!tables.contains("gpu-scatter") && f.join("kept/emulator").is_dir(), "{tables}");
}
