//! Tuning: what is found, kept, taken up again, replayed, used and refused.

use std::path::Path;
use std::process::{Command, Output};

use crate::{PROGRAM, refused};

fn tuned(arguments: &str, folder: &Path) -> Output {
    Command::new(PROGRAM)
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

const RUN: &str = "tune matrix-product --size 40x30x50 --variant simd --device cpu --budget 20 --json -";

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
    let (replay, _) = json("tune matrix-product --variant simd --replay other.jsonl --json -", f);
    assert_eq!(replay[0]["best"], one["best"]);
    assert_eq!(replay[0]["problem"], "40 x 30 x 50 f32");

    // A ladder takes what was found, for sizes near by.
    let run = "matrix-product --size 41x30x50 --variant simd --device cpu --rounds 1 --no-limits --json -";
    let (run, _) = json(run, f);
    assert_eq!(run["runs"][0]["steps"][0]["config"], one["best"]);
    // Its page maps all that was tried.
    let page =
        "matrix-product --size 41x30x50 --variant simd --device cpu --rounds 1 --no-limits --html map.html";
    assert!(tuned(page, f).status.success());
    let page = std::fs::read_to_string(f.join("map.html")).unwrap();
    assert!(page.contains("Tuning of simd, 40 x 30 x 50 f32"));
    assert!(page.contains(&format!("{space} configurations tried")), "{space}");
    assert_eq!(page.matches("<td class=\"best\"").count(), 1);
}

#[test]
fn without_time_the_default_is_timed_alone() {
    let folder = tempfile::tempdir().unwrap();
    let (document, _) = json(&RUN.replace("--budget 20", "--budget 0"), folder.path());
    assert_eq!(lines(folder.path()), 1);
    assert_eq!(document[0]["seconds"], document[0]["default_seconds"]);
    assert_eq!(
        document[0]["tried"].as_array().unwrap().iter().filter(|t| t["pruned"] == "budget").count(),
        24
    );
}

#[test]
fn without_a_name_it_lists_what_can_be_tuned_on_which_processor() {
    let folder = tempfile::tempdir().unwrap();
    let output = tuned("tune --device cpu --wide", folder.path());
    let list = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{list}");
    let row =
        |name: &str| list.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{list}"));
    let add = row("matrix-add ");
    assert!(add.contains(" —  ") && add.contains("gpu-wide (5)"), "on a GPU alone: {add}");
    assert!(row("matrix-product ").contains("  simd (25)"), "{list}");
    assert!(list.contains("Variants for a GPU need one, or results of one with --replay."), "{list}");
}

#[test]
fn what_cannot_be_tuned_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    let r = |arguments: &str, words: &[&str]| {
        refused(&arguments.split_whitespace().collect::<Vec<_>>(), f, words);
    };
    r("tune matrix-prodcut --device cpu", &["matrix-product", "found matrix-prodcut"]);
    r("tune matrix-product --variant smid --device cpu", &["variant", "found smid"]);
    r("tune matrix-product --size 0x0x0 --device cpu", &["size"]);
    r("tune matrix-product --budget -1 --device cpu", &["--budget", "-1"]);
    r("tune matrix-add --device cpu", &["nothing to tune", "found some for a GPU alone (", "gpu-wide"]);
    r("tune pi --variant scalar --device cpu", &["nothing to tune"]);
    r("tune matrix-product --replay none.jsonl", &["none.jsonl"]);
    std::fs::write(f.join("empty.jsonl"), "").unwrap();
    r("tune matrix-product --replay empty.jsonl", &["empty.jsonl", "found none"]);
}

/// Results as a GPU might have given them: the cost estimates of all 175 configurations, times that have
/// their best at 64 samples of a launch and 64 threads, and launches of 512 threads that it refuses.
fn published_space(path: &Path) -> usize {
    let mut lines = String::new();
    let (mut count, mut refused) = (0, 0);
    for unroll in [1, 2, 4, 8, 16] {
        for threads in [32, 64, 128, 256, 512] {
            for points in [32, 64, 128, 256, 512, 1024, 2048] {
                count += 1;
                // Fewer instructions the longer the launch and the more is unrolled; 32 threads fill half a
                // multiprocessor.
                let efficiency = 1e-9 / (1.0 + 40.0 / f64::from(points) + 0.2 / f64::from(unroll));
                let resident: f64 = if threads == 32 { 0.5 } else { 1.0 };
                let seconds = resident.recip()
                    * (1.0 + (f64::from(points) / 64.0).log2().abs() + 0.1 / f64::from(unroll))
                    + 1e-3 * (f64::from(threads) / 64.0).log2().abs();
                let trial = match threads {
                    512 => {
                        refused += 1;
                        serde_json::json!({ "failed": "registers of a block" })
                    }
                    _ => serde_json::json!({ "timed": { "seconds": seconds, "error": 1e-6 } }),
                };
                let record = serde_json::json!({
                    "version": 1,
                    "key": {
                        "ladder": "nudft-q", "variant": "gpu-sfu", "source": "abc", "device": "GPU", "driver": "13.0",
                        "kind": "voxels and samples", "sizes": [64, 64, 64, 2048],
                    },
                    "config": [["unroll", unroll], ["threads", threads], ["points", points]],
                    "trial": trial,
                    "estimate": (threads != 512).then(|| serde_json::json!({
                        "efficiency": efficiency, "utilisation": resident, "least": 0.1, "by_memory": false,
                    })),
                });
                lines += &format!("{record}\n");
            }
        }
    }
    std::fs::write(path, lines).unwrap();
    assert_eq!(count, 175);
    refused
}

#[test]
fn an_exhaustive_search_says_what_each_rule_leaves_out_and_what_that_loses() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    let refused = published_space(&f.join("space.jsonl"));
    let run = "tune nudft-q --variant gpu-sfu --replay space.jsonl --exhaustive";
    let (document, _) = json(&format!("{run} --json -"), f);
    let one = &document[0];
    assert_eq!(one["problem"], "64 x 64 x 64 x 2048 voxels and samples");
    let tried = one["tried"].as_array().unwrap();
    let count =
        |is_counted: &dyn Fn(&serde_json::Value) -> bool| tried.iter().filter(|t| is_counted(t)).count();
    assert_eq!(tried.len(), 175);
    assert_eq!(count(&|t| t["trial"]["failed"].is_string()), refused);
    // What the metrics keep: 16 turns at once and the longest launches, by 64, 128 and 256 threads.
    assert_eq!(count(&|t| t["pruned"] == "dominated"), 175 - refused - 3);
    let config = |t: &serde_json::Value| t["config"].to_string();
    assert_eq!(one["best"].to_string(), r#"[["unroll",16],["threads",64],["points",64]]"#);
    assert!(
        tried
            .iter()
            .filter(|t| t["pruned"].is_null() && t["trial"]["timed"].is_object())
            .all(|t| config(t).contains("2048"))
    );
    let slower = one["kept"].as_f64().unwrap();
    assert!((slower - (6.0 + 0.1 / 16.0) / (1.0 + 0.1 / 16.0)).abs() < 1e-9, "{slower}");
    // The sentence is wrapped at the width of a terminal.
    let words = String::from_utf8(tuned(run, f).stdout).unwrap();
    let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "of 175 configurations, 137 that another exceeds in efficiency and utilisation and 0 by their bounds",
        "the best that it keeps is 497 % slower; 35 cannot run",
    ] {
        assert!(words.contains(part), "{part}: {words}");
    }
}
