//! Exercises: printed, and judged by what kernels do.

use std::path::Path;

use crate::{ok, rayspin, refused};

/// Whether the compiler of this machine can count.
fn counts() -> bool {
    rayspin_emu::Emulator::new().is_ok_and(|emulator| emulator.counting(None).is_ok())
}

fn text(arguments: &[&str], folder: &Path) -> String {
    String::from_utf8(ok(arguments, folder).stdout).unwrap()
}

/// Names of the exercises, by the first column of their list.
fn names(folder: &Path) -> Vec<String> {
    let list = text(&["exercise", "--wide"], folder);
    let words =
        list.lines().filter(|line| line.contains("<=")).filter_map(|line| line.split_whitespace().next());
    words.map(str::to_owned).collect()
}

#[test]
fn every_start_is_right_and_misses_a_goal_and_every_solution_meets_all() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    let names = names(f);
    assert!(names.len() >= 7 && names.contains(&"transpose".to_owned()), "{names:?}");
    if !counts() {
        println!("passed over: no compiler that counts");
        return;
    }
    let mut wrong = String::new();
    for name in &names {
        for (flag, code, words) in [(None, 1, "goals missed"), (Some("--solution"), 0, "all goals are met")] {
            let printed = text(&[&["exercise", name.as_str()][..], flag.as_slice()].concat(), f);
            std::fs::write(f.join("mine.cu"), printed).unwrap();
            let output = rayspin(&["exercise", name, "mine.cu"], f);
            let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
            if output.status.code() != Some(code) || !said.contains(words) {
                wrong += &format!("{name} {flag:?}: {:?}\n{said}\n", output.status.code());
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn exercises_are_printed_with_hints_and_slips_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    let task = text(&["exercise", "transpose"], f);
    for words in ["Goals, counted on 256 x 256 f32", "stores moved / asked <= 1.05", "launch: transpose<<<"] {
        assert!(task.contains(words), "{words}: {task}");
    }
    let hints = text(&["exercise", "transpose", "--hint", "2"], f);
    assert!(
        hints.contains("Hint 1 of 3") && hints.contains("Hint 2 of 3") && !hints.contains("Hint 3"),
        "{hints}"
    );
    let hints = text(&["exercise", "transpose", "--hint", "9"], f);
    assert!(hints.contains("Hint 3 of 3") && hints.contains("--solution"), "{hints}");
    refused(&["exercise", "transpsoe"], f, &["found transpsoe"]);
    refused(&["exercise", "transpose", "--hint", "0"], f, &["--hint"]);
    refused(&["exercise", "transpose", "--block", "64"], f, &["FILE"]);
    refused(&["exercise", "--solution"], f, &["NAME"]);
    refused(&["exercise", "transpose", "nothing.cu"], f, &["nothing.cu"]);
    refused(&["exercise", "--threads", "2"], f, &["--threads"]);
}

#[test]
fn a_wrong_kernel_is_told_before_goals_are_counted() {
    if !counts() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    let solution = text(&["exercise", "transpose", "--solution"], f);
    let judged = |text: &str| {
        std::fs::write(f.join("mine.cu"), text).unwrap();
        let output = rayspin(&["exercise", "transpose", "mine.cu"], f);
        let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        (output.status.code(), said.into_owned())
    };
    let (code, said) = judged(&solution.replace("    __syncthreads();\n", ""));
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("a race on tile") && !said.contains("goals missed"), "{said}");
    let (code, said) = judged(&solution.replace("tile[32][33]", "tile[32][32]"));
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("goals missed: 1 of 3"), "{said}");
    let (code, said) = judged(&solution.replace("ELEMENT tile", "ELEMNT tile"));
    assert_eq!(code, Some(2), "{said}");
}
