//! Sizes beyond the address space, and too little memory: one line and an exit code, never a panic or an
//! abort.

use crate::program::{least, refusals, within};
use crate::{refused, simulated};

#[test]
fn sizes_beyond_the_address_space_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
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

#[test]
fn scans_beyond_the_memory_are_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    let least = least("simulate mri -q --no-record -o least.h5 --threads 2 --matrix 8,8 --coils 1", f);
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

#[test]
fn threads_that_cannot_start_are_no_panic() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    simulated(f, "--matrix 64,64 --coils 2");
    for line in [
        "recon mri scan.h5 -q --no-record -o image.npy --device cpu --threads 2 --method cartesian",
        "batch scan.h5 -q -o again.npy --device cpu --threads 2 -- --method cartesian",
    ] {
        let least = least(line, f);
        // Below it, whatever starts next has no room: the system's loader, a thread, an array.
        for kib in (least.saturating_sub(32 << 10)..least).step_by(1 << 10) {
            let told = String::from_utf8_lossy(&within(kib, line, f).stderr).into_owned();
            assert!(!told.contains("panicked"), "{line}, {kib} KiB: {told}");
        }
    }
}
