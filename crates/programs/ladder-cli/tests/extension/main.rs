//! Variants and an algorithm of another crate, through public interfaces alone: every command of the program
//! has them, their CUDA sources are among the programs, and the conformance check runs them, and finds those
//! that are wrong.

#![allow(clippy::unwrap_used, reason = "tests")]

mod scale;

use std::path::Path;
use std::process::{Command, ExitCode, Output};

use rayspin::device::cuda::Source;
use rayspin::device::{BackendKind, Device};
use rayspin::tune::variant::{Runnable, Variant};
use rayspin::tune::{Algorithm, Build, Ladder, Own, Row, Space, With, sources};
use rayspin_lab::{Conformance, unexplained};
use rayspin_primitives::matrix_add::{MatrixAdd, Problem};
use serde_json::Value as Json;

/// A kernel of four blocks that go over all elements.
static STRIDE: Source = Source {
    name: "matrix_add_stride",
    files: &[(
        "stride.cu",
        r#"#ifndef SIGN
#define SIGN +
#endif
extern "C" __global__ void matrix_add(const float* a, const float* b, float* c, unsigned long long n) {
    const unsigned long long stride = (unsigned long long)gridDim.x * blockDim.x;
    for (unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride)
        c[i] = a[i] SIGN b[i];
}
"#,
    )],
};

/// The same kernel with another sign.
static DIFFERENCE: Source =
    Source { name: "matrix_add_difference", files: &[("sign.cu", "#define SIGN -\n"), STRIDE.files[0]] };

fn small() -> Problem {
    Problem { rows: 1, columns: 7 }
}

/// The first variant of the table.
fn first(problem: &Problem) -> Row<MatrixAdd> {
    MatrixAdd.variants(problem).swap_remove(0)
}

/// A variant for the CPU: pieces of `rows` elements, the last one first.
fn backwards(problem: &Problem) -> Row<MatrixAdd> {
    let row =
        first(problem).beside("cpu-backwards", BackendKind::Cpu, "the last piece first", |config, arrays| {
            let (inputs, mut outputs) = arrays.arrays::<f32, f32>()?;
            let piece = config.get("piece")? as usize;
            let (a, b) = (inputs[0].cpu().chunks(piece), inputs[1].cpu().chunks(piece));
            for ((a, b), c) in a.zip(b).zip(outputs[0].cpu_mut().chunks_mut(piece)).rev() {
                c.iter_mut().zip(a).zip(b).for_each(|((c, a), b)| *c = a + b);
            }
            Ok(())
        });
    row.space(|_| Space::none().axis("piece", &[16, 64, 256], 64))
}

/// A variant for a GPU: a CUDA source with the algorithm's signature.
fn kernel(name: &'static str, source: &'static Source, problem: &Problem) -> Row<MatrixAdd> {
    let own = Own::of(name, source, 64).launched(Some([4, 1, 1]), 0);
    let row = own.row(&MatrixAdd, problem).unwrap();
    Variant { summary: "four blocks go over all elements", ..row }
}

fn stride(problem: &Problem) -> Row<MatrixAdd> {
    kernel("gpu-stride", &STRIDE, problem).forms(|| vec![Build::plain(&STRIDE)])
}

/// The two ladders of this crate.
fn own() -> Vec<Box<dyn Ladder>> {
    let sum = With::new(MatrixAdd, |problem| vec![stride(problem), backwards(problem)]);
    vec![Box::new(sum), scale::ladder()]
}

/// Runs the command with the program's ladders and these, as a program of another crate would.
fn command(line: &str) -> ExitCode {
    let ladders = rayspin_ladder_cli::ladders().into_iter().chain(own());
    let words = std::iter::once("rayspin-ladder").chain(line.split_whitespace());
    rayspin_ladder_cli::run(ladders.collect(), words.map(Into::into))
}

const LINE: &str = "RAYSPIN_TEST_LINE";

/// The program that other tests start, where a line is given: its output cannot be caught in their own
/// process.
#[test]
fn program() {
    if let Ok(line) = std::env::var(LINE) {
        assert_eq!(command(&line), ExitCode::SUCCESS, "{line}");
    }
}

fn started(line: &str, folder: &Path) -> Output {
    let mut program = Command::new(std::env::current_exe().unwrap());
    program.args(["program", "--exact", "--nocapture", "--quiet"]).env(LINE, line).current_dir(folder);
    program.env("RAYSPIN_WISDOM", folder.join("wisdom.jsonl")).output().unwrap()
}

/// What the command prints.
#[track_caller]
fn printed(line: &str, folder: &Path) -> String {
    let output = started(line, folder);
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{line}: {words}");
    String::from_utf8(output.stdout).unwrap()
}

#[track_caller]
fn holds(text: &str, words: &[&str]) {
    for word in words {
        assert!(text.contains(word), "'{word}' is not in: {text}");
    }
}

/// The errors of the algorithm with one more row, on every device of the row's kind.
fn wrong(row: fn(&Problem) -> Row<MatrixAdd>) -> Vec<String> {
    let kind = row(&small()).backend;
    let ladders: [Box<dyn Ladder>; 1] = [Box::new(With::new(MatrixAdd, move |problem| vec![row(problem)]))];
    let on = |device: Device| Conformance::default().check(&ladders, &device).wrong;
    let devices = rayspin_emu::devices().unwrap();
    devices.into_iter().filter(|device| device.kind() == kind).flat_map(on).collect()
}

#[test]
fn lists_and_texts_have_the_new_rows() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    let list = printed("list", f);
    holds(&list, &["scale", "Three times a vector", "4 CPU, 4 GPU", "transpose"]);
    assert_eq!(list.matches("matrix-add").count(), 1, "the later ladder replaces the earlier: {list}");
    holds(&printed("list matrix-add", f), &["gpu-wide", "gpu-stride", "four blocks", "piece=16,[64],256"]);
    holds(&printed("explain matrix-add", f), &["More variants", "gpu-stride: four blocks", "cpu-backwards"]);
    let scale = printed("explain scale", f);
    holds(&scale, &["gpu-thread-each"]);
    assert!(!scale.contains("More variants"), "its README names all: {scale}");
    holds(&printed("source matrix-add gpu-stride", f), &["// stride.cu", "i += stride"]);
    holds(&printed("try scale", f), &["__global__ void scale("]);
    holds(&printed("completions zsh", f), &["Three times a vector"]);
}

#[test]
fn runs_comparisons_and_the_tuner_have_them() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    let run = "--device cpu --rounds 3 --budget 0.02 --no-limits -q";
    for (line, rows) in [
        ("matrix-add --size 31x70", vec!["scalar", "simd", "threads", "cpu-backwards"]),
        ("scale --size 1000", vec!["cpu-plain"]),
    ] {
        printed(&format!("{line} {run} --json run.json --csv run.csv"), f);
        let json: Json = serde_json::from_slice(&std::fs::read(f.join("run.json")).unwrap()).unwrap();
        let steps = json["runs"][0]["steps"].as_array().unwrap();
        let names: Vec<_> = steps.iter().map(|step| step["name"].as_str().unwrap()).collect();
        assert_eq!(names, rows);
        assert!(steps.iter().all(|step| step["outcome"]["timed"]["error"] == 0.0), "{json}");
        holds(&std::fs::read_to_string(f.join("run.csv")).unwrap(), &rows);
        holds(&printed("compare run.json run.json", f), &rows);
    }
    // In this process, and again: what was set up once holds.
    for _ in 0..2 {
        let line = format!("matrix-add --size 31x70 --variant cpu-backwards {run}");
        assert_eq!(command(&line), ExitCode::SUCCESS);
    }
    let tuned = printed(
        "tune matrix-add --variant cpu-backwards --size 31x70 --budget 1 --exhaustive --device cpu -q",
        f,
    );
    holds(&tuned, &["matrix-add cpu-backwards", "piece="]);
    holds(&std::fs::read_to_string(f.join("wisdom.jsonl")).unwrap(), &["cpu-backwards"]);
}

#[test]
fn the_emulator_and_the_launch_report_have_them() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    for (name, row) in [("matrix-add", "gpu-stride"), ("scale", "gpu-thread-each")] {
        let run = format!("{name} --variant {row} --device cpu");
        let table = printed(&format!("{run} --emulate --rounds 2 --budget 0.01 -q"), f);
        holds(&table, &[row, "all, whole"]);
        let line = format!("report {run} --architecture sm_90 --json report.json -q");
        let output = started(&line, f);
        let told = String::from_utf8_lossy(&output.stderr);
        let required = std::env::var_os("RAYSPIN_NVRTC_REQUIRED").is_some_and(|v| v != "0");
        if told.contains("NVRTC (libnvrtc.so) was not found") && !required {
            println!("passed over: {told}");
            continue;
        }
        assert!(output.status.success(), "{told}");
        let json: Json = serde_json::from_slice(&std::fs::read(f.join("report.json")).unwrap()).unwrap();
        let launch = &json["reports"][0]["launches"][0];
        assert_eq!(
            (&launch["variant"], &launch["takes"]["spill_stores"]),
            (&row.into(), &0.into()),
            "{json}"
        );
    }
}

#[test]
fn their_sources_are_among_the_programs() {
    let own = own();
    let names = |ladder: &dyn Ladder| -> Vec<_> {
        sources(&ladder.programs()).iter().map(|source| source.name).collect()
    };
    assert_eq!(names(own[0].as_ref()), ["matrix_add", "matrix_add_stride"]);
    assert_eq!(names(own[1].as_ref()), ["scale"]);
}

#[test]
fn they_conform() {
    for device in rayspin_emu::devices().unwrap() {
        let conformed = Conformance::default().check(&own(), &device);
        assert!(conformed.wrong.is_empty(), "{}", conformed.wrong.join("\n"));
        let coverage: String = conformed.coverage.iter().map(|(_, coverage)| coverage.to_string()).collect();
        let rows = match device.kind() {
            BackendKind::Cpu => ["cpu-backwards", "cpu-plain"],
            BackendKind::Cuda => ["gpu-stride", "gpu-thread-each"],
        };
        holds(&coverage, &rows);
    }
}

#[test]
fn what_readmes_leave_out_is_found() {
    let wrong = unexplained(&own()).unwrap().join("\n");
    let left = [
        "matrix-add: its README does not name gpu-stride",
        "scale: its README has no title, or a few words only",
    ];
    holds(&wrong, &left);
    assert!(!wrong.contains("gpu-thread-each"), "{wrong}");
}

#[test]
fn wrong_results_are_found() {
    // A kernel that subtracts; a loop that leaves the last element as it was.
    let difference = |problem: &Problem| {
        kernel("gpu-wrong", &DIFFERENCE, problem).forms(|| vec![Build::plain(&DIFFERENCE)])
    };
    let short = |problem: &Problem| {
        first(problem).beside("cpu-wrong", BackendKind::Cpu, "all but the last", |_, arrays| {
            let (inputs, mut outputs) = arrays.arrays::<f32, f32>()?;
            let (a, b) = (inputs[0].cpu(), inputs[1].cpu());
            for index in 1..a.len() {
                outputs[0].cpu_mut()[index - 1] = a[index - 1] + b[index - 1];
            }
            Ok(())
        })
    };
    let fails = |problem: &Problem| {
        first(problem).beside("cpu-wrong", BackendKind::Cpu, "takes other arrays", |_, arrays| {
            arrays.arrays::<u8, f32>().map(|_| ())
        })
    };
    let lines = wrong(difference);
    holds(&lines.join("\n"), &["matrix-add: gpu-wrong on 1 x 1 f32: error 1", "gpu-wrong from the host"]);
    let lines = wrong(short);
    holds(
        &lines.join("\n"),
        &["matrix-add: cpu-wrong on 1 x 1 f32: error 1", "cpu-wrong on 100 x 129 f32: error"],
    );
    let lines = wrong(fails);
    holds(&lines.join("\n"), &["cpu-wrong on 1 x 1 f32: array of a variant: expected u8"]);
    // Nothing else is wrong.
    assert!(lines.iter().all(|line| line.contains("cpu-wrong")), "{lines:?}");
}

#[test]
fn wrong_rows_are_found() {
    let unnamed = |problem: &Problem| kernel("gpu-wrong", &STRIDE, problem);
    let another = |problem: &Problem| {
        let minus = || vec![Build { defines: vec![("SIGN", "-".to_owned())], ..Build::plain(&STRIDE) }];
        kernel("gpu-wrong", &STRIDE, problem).forms(minus)
    };
    for row in [unnamed as fn(&Problem) -> Row<MatrixAdd>, another] {
        let lines = wrong(row);
        let told = "matrix-add: gpu-wrong launches matrix_add_stride with [], which is none of the forms that it names";
        assert!(!lines.is_empty() && lines.iter().all(|line| line == told), "{lines:?}");
    }
    let twice = |problem: &Problem| Variant { name: "scalar", ..backwards(problem) };
    holds(&wrong(twice).join("\n"), &["matrix-add: two variants are called scalar"]);
    let never =
        |problem: &Problem| Variant { name: "cpu-never", ..first(problem) }.refuses(|_| Some("no".into()));
    let text = wrong(never).join("\n");
    holds(&text, &["matrix-add: cpu-never refuses every problem on ", "no"]);
    let kept = |problem: &Problem| {
        let scalar = first(problem);
        let run = Runnable::new(move |config, data| scalar.implementation.launch(config, data));
        Variant { name: "cpu-kept", implementation: run, ..first(problem) }
    };
    holds(&wrong(kept).join("\n"), &["cpu-kept from the host on 100 x 129 f32"]);
}

#[test]
fn a_kernel_of_other_parameters_makes_no_row() {
    let own = Own::of("gpu-scale", &scale::SOURCE, 64);
    let error = own.row(&MatrixAdd, &small()).err().unwrap().to_string();
    holds(&error, &["one named matrix_add", "scale"]);
}
