//! Sizes beyond the address space, and too little memory: one line and an exit code, never a panic or an abort.

use std::path::Path;
use std::process::{Command, Output};

use crate::{refused, simulated};

/// Of each ladder a size whose product overflows, and options of a run of some ten megabytes; none where it has no rung for a CPU.
const LADDERS: [(&str, &str, Option<&str>); 21] = [
    ("access", "18446744073709551615", Some("--size 4000000 --rung random")),
    ("bicubic", "4294967296x4294967295", Some("--size 1000x2000 --rung strips")),
    ("box-filter", "4294967296x4294967295x1", Some("--size 1x4000000x8 --rung running")),
    ("convolution", "4294967296x4294967295x1", Some("--size 2000x2000x3 --rung threads")),
    ("coulomb", "1x4294967296x4294967295x2", Some("--size 1000000x1x1x1 --rung threads")),
    ("histogram", "18446744073709551615x16", Some("--size 8000000x16 --rung cpu-threads")),
    ("matrix-add", "4294967296x4294967295", Some("--size 4000x1000 --rung threads")),
    ("matrix-product", "4294967296x4294967295x2", Some("--size 4000x2000x1 --rung threads")),
    ("nudft-adjoint", "4294967296x4294967295x2", Some("--size 1000000x1 --rung naive")),
    ("nudft-adjoint-f64", "2x18446744073709551615", Some("--size 1000000x1 --rung naive")),
    ("nudft-q", "4294967296x4294967295x2", Some("--size 500000x1 --rung naive")),
    ("nudft-q-f64", "2x18446744073709551615", Some("--size 500000x1 --rung naive")),
    ("nufft-type1", "4294967296x4294967295x2x2", Some("--size 1000x500000x2 --rung batched")),
    ("nufft-type2", "2x4294967296x4294967295", Some("--size 1000x500000x2 --rung batched")),
    ("pi", "18446744073709551615", Some("--size 1000 --rung threads")),
    ("random", "2305843009213693952", Some("--size 8000000 --rung threads")),
    ("reduction", "2305843009213693952", Some("--size 8000000 --rung threads")),
    ("sad", "4294967296x4294967295x1", Some("--size 300x500x10 --rung threads")),
    ("sobel", "4294967296x4294967295", Some("--size 4000x2000 --rung threads")),
    ("transfers", "18446744073709551615", None),
    ("transpose", "4294967296x4294967295", Some("--size 4000x1000 --rung threads")),
];

#[test]
fn every_ladder_is_in_the_table() {
    let all: Vec<_> = rayspin::ladders().iter().map(|ladder| ladder.about().name).collect();
    assert_eq!(all, LADDERS.map(|(name, ..)| name));
}

#[test]
fn sizes_beyond_the_address_space_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    for (name, size, _) in LADDERS {
        refused(&["ladder", name, "--size", size, "--device", "cpu"], f, &["expected"]);
        refused(&["tune", name, "--size", size, "--device", "cpu"], f, &["expected"]);
    }
    let texture = ["ladder", "access", "--case", "texture", "--size", "4294967295", "--device", "cpu"];
    refused(&texture, f, &["address space"]);
    let largest = "18446744073709551615";
    for options in [
        format!("--matrix {largest},{largest}"),
        format!("--matrix {largest},2 -t radial"),
        format!("--matrix {largest},2,2 -t kooshball"),
        format!("--coils {largest}"),
        format!("--coils {largest} --snr 10 --noise-correlation 0.5"),
        format!("--shots {largest} -t spiral"),
        format!("--shots {largest} -t stack-of-spirals"),
        format!("--shots {largest} -t epi"),
        format!("--samples {largest} -t random"),
        format!("--repetitions {largest}"),
        format!("--noise-readouts {largest} --snr 10"),
        format!("--oversampling {largest}"),
        format!("--acceleration {largest}"),
        format!("--acceleration {largest} -t spiral"),
        format!("--window {largest} --dynamics beat --truth t.npy"),
    ] {
        let line = format!("simulate mri -q -o scan.h5 {options}");
        refused(&line.split_whitespace().collect::<Vec<_>>(), f, &["expected"]);
    }
    simulated(f, "--matrix 16,16 --coils 2 -t radial");
    for options in [
        format!("--matrix {largest},{largest}"),
        format!("--matrix {largest},{largest} --method gridding"),
        format!("--coils {largest}"),
        format!("--window {largest}"),
        format!("--iterations {largest}"),
        format!("--certify {largest}"),
        format!("--wavelet-levels {largest} --method wavelet"),
        format!("--map-sets {largest} --sensitivities espirit --method cg-sense"),
    ] {
        let line = format!("recon mri scan.h5 -q -o image.npy {options}");
        refused(&line.split_whitespace().collect::<Vec<_>>(), f, &["expected"]);
    }
}

/// Runs the command with so many KiB of addresses.
fn within(kib: usize, line: &str, folder: &Path) -> Output {
    Command::new("sh")
        .args(["-c", "ulimit -c 0; ulimit -v \"$1\"; shift; exec \"$@\"", "sh", &kib.to_string()])
        .arg(env!("CARGO_BIN_EXE_rayspin"))
        .args(line.split_whitespace())
        .current_dir(folder)
        .output()
        .unwrap()
}

/// Addresses that the command takes for a ladder without arrays, in KiB.
fn least(folder: &Path) -> usize {
    let runs = |kib: &usize| within(*kib, &ladder("pi", "--size 10 --rung threads"), folder).status.success();
    (1..100).map(|step| step << 13).find(runs).unwrap()
}

fn ladder(name: &str, options: &str) -> String {
    format!(
        "ladder {name} {options} -q --device cpu --threads 2 --no-limits --one-buffer --rounds 1 --budget 0.001"
    )
}

/// Raises the limit by `step` KiB until the command runs; how often it was refused before, each time with one line.
fn refusals(line: &str, least: usize, step: usize, folder: &Path) -> usize {
    for turn in 0..60 {
        let output = within(least + turn * step, line, folder);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        if output.status.success() {
            return turn;
        }
        // A signal has no code.
        assert_eq!(output.status.code(), Some(1), "{line}, {} KiB: {told}", least + turn * step);
        let errors: Vec<_> = told.lines().filter(|line| line.starts_with("error: ")).collect();
        assert!(errors.len() == 1 && !told.contains("panicked"), "{line}: {told}");
        let whole = told + &String::from_utf8_lossy(&output.stdout);
        assert!(whole.contains("bytes of memory"), "{line}: {whole}");
    }
    panic!("{line} never ran")
}

#[test]
fn too_little_memory_is_one_line_whichever_array_it_is_that_finds_none() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    let least = least(f);
    for (name, _, options) in LADDERS {
        let Some(options) = options else { continue };
        let refused = refusals(&ladder(name, options), least, 6 << 10, f);
        println!("{name}: {refused} times too little memory");
        assert!(refused > 0 || name == "pi", "{name} ran at once");
    }
}

#[test]
fn scans_beyond_the_memory_are_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    let least = least(f);
    let simulate = "simulate mri -q --no-record -o scan.h5 --threads 2 --coils 8";
    assert!(refusals(&format!("{simulate} --matrix 512,512"), least, 12 << 10, f) > 0);
    assert!(refusals(&format!("{simulate} --matrix 192,192 -t radial --shots 400"), least, 12 << 10, f) > 0);
    for method in ["gridding", "cg-sense -i 2"] {
        let recon = format!(
            "recon mri scan.h5 -q --no-record -o image.npy --device cpu --threads 2 --method {method}"
        );
        assert!(refusals(&recon, least, 12 << 10, f) > 0, "{method}");
    }
}
