//! Kernels of a user's own: declared, checked, timed, and refused where they are wrong.

use std::path::Path;

use crate::{ok, rayspin, refused};

const RIGHT: &str = "\
// A thread for samples that lie a grid apart.
extern \"C\" __global__ void histogram(const SAMPLE* samples, unsigned long long n, unsigned bins, unsigned* counts) {
    const unsigned long long stride = (unsigned long long)gridDim.x * blockDim.x;
    for (unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) {
        const unsigned v = samples[i];
        if (v < bins) atomicAdd(&counts[v], 1u);
    }
}
";

/// Tries a kernel on the emulator: exit code, standard output and standard error.
fn tried(text: &str, more: &[&str], folder: &Path) -> (Option<i32>, String, String) {
    std::fs::write(folder.join("mine.cu"), text).unwrap();
    let quick = ["try", "histogram", "mine.cu", "--device", "cpu", "--rounds", "3", "--budget", "0.01"];
    let output = rayspin(&[&quick, more].concat(), folder);
    let words = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), words(output.stdout), words(output.stderr))
}

#[test]
fn a_right_kernel_stands_between_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let (code, table, words) = tried(RIGHT, &["--variant", "gpu-one-pass,gpu-copies"], folder.path());
    assert_eq!(code, Some(0), "{words}");
    for word in ["> mine.cu", "a kernel of your own", "gpu-one-pass", "gpu-copies", "emulated"] {
        assert!(table.contains(word), "{word}: {table}");
    }
    assert!(!table.contains("gpu-packed"), "{table}");
    // A few blocks do as well, as the loop goes over all samples.
    assert_eq!(tried(RIGHT, &["--grid", "2", "--block", "64"], folder.path()).0, Some(0));
}

#[test]
fn a_wrong_kernel_is_told_with_the_problem() {
    let folder = tempfile::tempdir().unwrap();
    // Counts every second sample: right for no problem of more than one.
    let wrong = RIGHT
        .replace("i += stride", "i += 2 * stride")
        .replace("if (v < bins)", "if (i % 2 == 0 && v < bins)");
    let (code, _, words) = tried(&wrong, &[], folder.path());
    assert_eq!(code, Some(1), "{words}");
    assert!(words.contains("mine.cu on 2 u32") && words.contains("wrong: error"), "{words}");
}

#[test]
fn a_kernel_that_leaves_its_arrays_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let (code, _, words) =
        tried(&RIGHT.replace("&counts[v]", "&counts[v + (1ull << 40)]"), &[], folder.path());
    assert_eq!(code, Some(1), "{words}");
    assert!(words.contains("outside its arrays"), "{words}");
}

#[test]
fn a_kernel_that_does_not_compile_is_told_by_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let (code, _, words) = tried(&RIGHT.replace("= samples[i]", "= sample[i]"), &[], folder.path());
    assert_eq!(code, Some(2), "{words}");
    assert!(
        words.contains("mine.cu:5") && words.contains("mine.cu: expected CUDA C++ that compiles"),
        "{words}"
    );
    // Another name, and another type.
    let (code, _, words) = tried(&RIGHT.replace("void histogram", "void counted"), &[], folder.path());
    assert_eq!(code, Some(2), "{words}");
    assert!(words.contains("expected one named histogram, found counted"), "{words}");
    let typed = RIGHT.replace("unsigned* counts", "int* counts").replace("&counts[v], 1u", "&counts[v], 1");
    let (code, _, words) = tried(&typed, &[], folder.path());
    assert_eq!(code, Some(2), "{words}");
    assert!(
        words.contains("parameter 4 (counts): expected unsigned int* counts, found int* counts"),
        "{words}"
    );
}

#[test]
fn declarations_and_sources_are_printed() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    let text = |arguments: &[&str]| String::from_utf8(ok(arguments, f).stdout).unwrap();
    for (name, kernel) in [
        ("histogram", "histogram"),
        ("matrix-add", "matrix_add"),
        ("matrix-product", "matrix_product"),
        ("coulomb", "coulomb"),
        ("sobel", "sobel"),
        ("sad", "sad"),
    ] {
        let words = text(&["try", name]);
        assert!(words.contains(&format!("extern \"C\" __global__ void {kernel}(")), "{words}");
        // As printed it compiles, and computes nothing.
        let output = {
            std::fs::write(f.join("empty.cu"), &words).unwrap();
            rayspin(&["try", name, "empty.cu", "--device", "cpu"], f)
        };
        assert_eq!(output.status.code(), Some(1), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    }
    let source = text(&["source", "matrix-add", "gpu-wide"]);
    assert!(source.contains("// matrix_add.cu") && source.contains("__global__ void wide"), "{source}");
    refused(&["source", "matrix-add", "gpu-wid"], f, &["gpu-wide"]);
    refused(&["source", "matrix-add", "simd"], f, &["gpu-one-block"]);
    refused(&["try", "reduction", "empty.cu"], f, &["histogram"]);
    refused(&["try", "histogram", "nothing.cu", "--device", "cpu"], f, &["nothing.cu"]);
    refused(&["try", "histogram", "empty.cu", "--block", "0", "--device", "cpu"], f, &["--block"]);
    refused(
        &["try", "histogram", "empty.cu", "--variant", "gpu-pakced", "--device", "cpu"],
        f,
        &["gpu-packed"],
    );
}
