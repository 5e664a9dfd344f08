//! Sizes beyond the address space, and too little memory: one line and an exit code, never a panic or an
//! abort.

use crate::program::{least, refusals};
use crate::refused;

/// For each ladder of primitives and kernels a size whose product overflows, and the options of a run of some
/// ten megabytes. A ladder without a variant for a CPU has no options; neither has one whose oracle takes its
/// memory without a word. The ladders of pictures share
/// their arrays: one of them has options.
const LADDERS: [(&str, &str, Option<&str>); 38] = [
    ("access", "18446744073709551615", Some("--size 4000000 --variant random")),
    ("backproject", "18446744073709551615x2", None),
    ("bicubic", "4294967296x4294967295", Some("--size 1000x2000 --variant strips")),
    ("box-filter", "4294967296x4294967295x1", Some("--size 1x4000000x8 --variant running")),
    ("coil-mixing", "4294967296x1x4294967295x1", None),
    ("convolution", "4294967296x4294967295x1", Some("--size 2000x2000x3 --variant threads")),
    ("coulomb", "1x4294967296x4294967295x2", Some("--size 1000000x1x1x1 --variant threads")),
    ("difference", "4294967296x4294967295", None),
    ("fft", "4294967296x4294967295x1", None),
    ("histogram", "18446744073709551615x16", Some("--size 8000000x16 --variant cpu-threads")),
    ("matrix-add", "4294967296x4294967295", Some("--size 4000x1000 --variant threads")),
    ("matrix-product", "4294967296x4294967295x2", Some("--size 4000x2000x1 --variant threads")),
    ("nudft-adjoint", "4294967296x4294967295x2", Some("--size 1000000x1 --variant naive")),
    ("nudft-adjoint-f64", "2x18446744073709551615", Some("--size 1000000x1 --variant naive")),
    ("nudft-q", "4294967296x4294967295x2", Some("--size 500000x1 --variant naive")),
    ("nudft-q-f64", "2x18446744073709551615", Some("--size 500000x1 --variant naive")),
    ("nufft-type1", "4294967296x4294967295x2x2", Some("--size 1000x500000x2 --variant batched")),
    ("nufft-type2", "2x4294967296x4294967295", Some("--size 1000x500000x2 --variant batched")),
    ("off-resonance", "4294967296x4294967295", None),
    ("pi", "18446744073709551615", Some("--size 1000 --variant threads")),
    ("project", "18446744073709551615x2", None),
    ("project-adjoint", "18446744073709551615x2", None),
    ("random", "2305843009213693952", Some("--size 8000000 --variant threads")),
    ("reduction", "2305843009213693952", Some("--size 8000000 --variant threads")),
    ("render-maximum", "18446744073709551615x2", None),
    ("render-surface", "18446744073709551615x2", None),
    ("render-volume", "18446744073709551615x2", None),
    ("render-xray", "18446744073709551615x2", Some("--size 150x8 --variant cores")),
    ("sad", "4294967296x4294967295x1", Some("--size 300x500x10 --variant threads")),
    ("sensitivity", "4294967296x4294967295", None),
    ("shrink", "2305843009213693952", None),
    ("sobel", "4294967296x4294967295", Some("--size 4000x2000 --variant threads")),
    ("toeplitz", "4294967296x4294967295x1", None),
    ("transfers", "18446744073709551615", None),
    ("transpose", "4294967296x4294967295", Some("--size 4000x1000 --variant threads")),
    ("vector", "2305843009213693952", None),
    ("wavelet", "4294967296x4294967295", None),
    ("wavelet-inverse", "4294967296x4294967295", None),
];

#[test]
fn every_ladder_is_in_the_table() {
    let ladders = rayspin_primitives::ladders().into_iter().chain(rayspin::kernels::ladders());
    let mut names: Vec<_> = ladders.map(|ladder| ladder.about().name).collect();
    names.sort_unstable();
    assert_eq!(names, LADDERS.map(|(name, ..)| name));
}

#[test]
fn sizes_beyond_the_address_space_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    for (name, size, _) in LADDERS {
        refused(&[name, "--size", size, "--device", "cpu"], f, &["expected"]);
        refused(&["tune", name, "--size", size, "--device", "cpu"], f, &["expected"]);
    }
    for ladder in rayspin_gallery::ladders() {
        let name = ladder.about().name;
        for sides in 1..6 {
            let size = vec![usize::MAX.to_string(); sides].join("x");
            refused(&[name, "--size", &size, "--device", "cpu"], f, &["expected"]);
        }
    }
    let texture = ["access", "--case", "texture", "--size", "4294967295", "--device", "cpu"];
    refused(&texture, f, &["address space"]);
}

fn ladder(name: &str, options: &str) -> String {
    format!("{name} {options} -q --device cpu --threads 2 --no-limits --one-buffer --rounds 1 --budget 0.001")
}

#[test]
fn too_little_memory_is_one_line_whichever_array_it_is_that_finds_none() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    // A ladder without arrays, and room for what the system places elsewhere from run to run: without it a
    // thread may fail to start.
    let least = least(&ladder("pi", "--size 10 --variant threads"), f) + (8 << 10);
    for (name, _, options) in LADDERS {
        let Some(options) = options else { continue };
        let refused = refusals(&ladder(name, options), least, 6 << 10, f);
        println!("{name}: {refused} times too little memory");
        assert!(refused > 0 || name == "pi", "{name} ran at once");
    }
}
