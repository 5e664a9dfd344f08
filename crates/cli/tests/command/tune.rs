//! Tuning: what is found, kept, taken up again, replayed, used and refused.

use std::path::Path;
use std::process::{Command, Output};

use crate::refused;

fn tuned(arguments: &str, folder: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_rayspin"))
        .args(arguments.split_whitespace())
        .current_dir(folder)
        .env("RAYSPIN_WISDOM", folder.join("wisdom.jsonl"))
        .output()
        .unwrap()
}

fn json(arguments: &str, folder: &Path) -> (serde_json::Value, String) {
    let output = tuned(arguments, folder);
    let words = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{arguments}: {words}");
    (serde_json::from_slice(&output.stdout).unwrap(), words)
}

fn lines(folder: &Path) -> usize {
    std::fs::read_to_string(folder.join("wisdom.jsonl")).unwrap().lines().count()
}

const RUN: &str = "tune matrix-product --size 40x30x50 --rung simd --device cpu --budget 20 --json -";

#[test]
fn what_was_measured_is_kept_taken_up_replayed_and_used() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    let (first, _) = json(RUN, f);
    let one = &first[0];
    let space = one["tried"].as_array().unwrap().len();
    let timed = |t: &&serde_json::Value| t["trial"]["timed"].is_object();
    let counted = one["tried"].as_array().unwrap().iter().filter(timed).count();
    assert!(space > 10 && counted > 0 && lines(f) == space, "{one}");
    assert!(one["seconds"].as_f64() <= one["default_seconds"].as_f64(), "{one}");

    // Nothing is measured again, and damage is passed over with a word.
    let path = f.join("wisdom.jsonl");
    let kept = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, format!("{kept}{{\"version\":1,\"key\"\n")).unwrap();
    let (again, words) = json(RUN, f);
    assert_eq!(again[0]["best"], one["best"]);
    assert!(lines(f) == space + 1 && words.contains(&format!("{space} known")), "{words}");
    assert!(words.contains("1 lines of earlier results were not understood"), "{words}");

    std::fs::write(f.join("other.jsonl"), &kept).unwrap();
    let (replay, _) = json("tune matrix-product --rung simd --replay other.jsonl --json -", f);
    assert_eq!(replay[0]["best"], one["best"]);
    assert_eq!(replay[0]["problem"], "40 x 30 x 50 f32");

    // A ladder takes what was found, for sizes near by.
    let climb =
        "ladder matrix-product --size 41x30x50 --rung simd --device cpu --rounds 1 --no-limits --json -";
    let (climb, _) = json(climb, f);
    assert_eq!(climb["climbs"][0]["steps"][0]["config"], one["best"]);
    // Its page maps all that was tried.
    let page = "ladder matrix-product --size 41x30x50 --rung simd --device cpu --rounds 1 --no-limits --html map.html";
    assert!(tuned(page, f).status.success());
    let page = std::fs::read_to_string(f.join("map.html")).unwrap();
    assert!(page.contains("Tuning of simd, 40 x 30 x 50 f32"));
    assert!(page.contains(&format!("{space} configurations tried")), "{space}");
    assert_eq!(page.matches("<td class=\"best\"").count(), 1);
}

#[test]
fn without_time_the_default_is_timed_alone() {
    let folder = tempfile::tempdir().unwrap();
    let (found, _) = json(&RUN.replace("--budget 20", "--budget 0"), folder.path());
    assert_eq!(lines(folder.path()), 1);
    assert_eq!(found[0]["seconds"], found[0]["default_seconds"]);
    assert_eq!(found[0]["tried"].as_array().unwrap().iter().filter(|t| t["pruned"] == "budget").count(), 24);
}

#[test]
fn what_cannot_be_tuned_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    let r = |arguments: &str, words: &[&str]| {
        refused(&arguments.split_whitespace().collect::<Vec<_>>(), f, words);
    };
    r("tune matrix-prodcut --device cpu", &["matrix-product", "found matrix-prodcut"]);
    r("tune matrix-product --rung smid --device cpu", &["rung", "found smid"]);
    r("tune matrix-product --size 0x0x0 --device cpu", &["size"]);
    r("tune matrix-product --budget -1 --device cpu", &["--budget", "-1"]);
    r("tune matrix-add --device cpu", &["nothing to tune", "found none"]);
    r("tune matrix-product --replay none.jsonl", &["none.jsonl"]);
    std::fs::write(f.join("empty.jsonl"), "").unwrap();
    r("tune matrix-product --replay empty.jsonl", &["empty.jsonl", "found none"]);
}
