//! Kernels of a user's own: declared, checked, timed, and refused where they are wrong.

use std::path::Path;
use std::sync::Arc;

use rayspin::device::Device;
use rayspin::tune::{Config, Own, Which};

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
    if checks() {
        assert!(table.contains("mine.cu: right: no wrong result, no race, no memory error"), "{table}");
        assert!(table.contains("rayspin-ladder counters histogram --own mine.cu"), "{table}");
    }
    let (code, table, words) = tried(RIGHT, &["--variant", "gpu-one-pass", "--fast"], folder.path());
    assert_eq!(code, Some(0), "{words}");
    assert!(table.contains("races and memory errors were not looked for (--fast)"), "{table}");
    assert!(!table.contains("mine.cu: right"), "{table}");
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
    assert!(words.contains("; output[") && words.contains(", expected "), "{words}");
}

#[test]
fn a_kernel_that_leaves_its_arrays_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let (code, _, words) =
        tried(&RIGHT.replace("&counts[v]", "&counts[v + (1ull << 40)]"), &[], folder.path());
    assert_eq!(code, Some(1), "{words}");
    if checks() {
        assert!(words.contains("an access outside all arrays") && words.contains("mine.cu:6"), "{words}");
    } else {
        assert!(words.contains("outside its arrays"), "{words}");
    }
    let fast = tried(&RIGHT.replace("&counts[v]", "&counts[v + (1ull << 40)]"), &["--fast"], folder.path());
    assert_eq!(fast.0, Some(1), "{}", fast.2);
    assert!(fast.2.contains("outside its arrays"), "{}", fast.2);
    // Just beyond: the array, the index, and its length.
    let (code, _, words) = tried(&RIGHT.replace("if (v < bins)", ""), &[], folder.path());
    assert_eq!(code, Some(1), "{words}");
    if checks() {
        assert!(words.contains("is outside counts, which has"), "{words}");
        assert!(words.contains("mine.cu:6: thread"), "{words}");
    }
}

/// Whether the compiler of this machine can check.
fn checks() -> bool {
    rayspin_emu::Emulator::new().is_ok_and(|emulator| emulator.checking(None).is_ok())
}

#[test]
fn a_race_is_told_with_both_lines_and_threads() {
    if !checks() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    // Right or wrong by chance, and found every time.
    let racing = RIGHT.replace("atomicAdd(&counts[v], 1u)", "counts[v] += 1");
    for _ in 0..2 {
        let (code, _, words) = tried(&racing, &[], folder.path());
        assert_eq!(code, Some(1), "{words}");
        assert!(words.contains("a race on counts["), "{words}");
        assert_eq!(words.matches("mine.cu:6: thread").count() % 2, 0, "{words}");
        assert!(words.contains("counts[v] += 1"), "{words}");
    }
    // A barrier that some threads do not reach, by the lines of the file.
    let apart = RIGHT.replace(
        "    const unsigned long long stride",
        "    if (threadIdx.x < 16) __syncthreads();\n    else\n        __syncthreads();\n    const unsigned long long stride",
    );
    let (code, _, words) = tried(&apart, &[], folder.path());
    assert_eq!(code, Some(1), "{words}");
    assert!(words.contains("barrier of line 5") && words.contains("the one of line 3"), "{words}");
}

#[test]
fn variants_are_checked_and_idle_options_refused() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    if checks() {
        let line = "transpose --emulate --check --variant gpu-naive,gpu-padded --json - --device cpu";
        let found = ok(&line.split(' ').collect::<Vec<_>>(), f).stdout;
        let found: serde_json::Value = serde_json::from_slice(&found).unwrap();
        let variants = found["ladders"][0]["variants"].as_array().unwrap();
        assert_eq!(variants.len(), 2);
        assert!(variants.iter().all(|v| v["faults"].as_array().unwrap().is_empty() && v["why"].is_null()));
    }
    refused(&["transpose", "--check"], f, &["--emulate"]);
    refused(&["transpose", "--emulate", "--check", "--rounds", "3"], f, &["--rounds"]);
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
        ("transpose", "transpose"),
        ("reduction", "reduction"),
        ("convolution", "convolution"),
        ("pi", "pi"),
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
    refused(&["try", "h264", "empty.cu"], f, &["h264 takes no kernel", "sad takes a kernel"]);
    refused(&["try", "histogram", "nothing.cu", "--device", "cpu"], f, &["nothing.cu"]);
    refused(&["try", "histogram", "empty.cu", "--block", "0", "--device", "cpu"], f, &["--block"]);
    refused(
        &["try", "histogram", "empty.cu", "--variant", "gpu-pakced", "--device", "cpu"],
        f,
        &["gpu-packed"],
    );
}

#[test]
fn blocks_have_three_axes_and_a_file_lists_its_launches() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    let write = |name: &str, text: &str| std::fs::write(f.join(name), text).unwrap();
    // As a course writes it: includes, no extern "C", a block of two axes.
    write(
        "plane.cu",
        "#include <stdio.h>\n#include <cuda_runtime.h>\n\
         __global__ void sobel(const unsigned char* image, unsigned char* out, int rows, int columns, float scale) {\n\
         \x20   int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;\n\
         \x20   if (x >= columns || y >= rows) return;\n\
         \x20   int p[3][3];\n\
         \x20   for (int j = 0; j < 3; j++)\n\
         \x20       for (int i = 0; i < 3; i++)\n\
         \x20           p[j][i] = image[min(max(y + j - 1, 0), rows - 1) * columns + min(max(x + i - 1, 0), columns - 1)];\n\
         \x20   int h = p[0][2] + 2 * p[1][2] + p[2][2] - p[0][0] - 2 * p[1][0] - p[2][0];\n\
         \x20   int v = p[2][0] + 2 * p[2][1] + p[2][2] - p[0][0] - 2 * p[0][1] - p[0][2];\n\
         \x20   out[y * columns + x] = min(255, (int)__fmul_rn(scale, (float)(abs(h) + abs(v))));\n}\n",
    );
    let quick = ["--device", "cpu", "--rounds", "3", "--budget", "0.01", "--fast"];
    let line =
        |rest: &[&str]| String::from_utf8(ok(&[&["try"], rest, &quick[..]].concat(), f).stdout).unwrap();
    let told = line(&["sobel", "plane.cu", "--block", "32x8", "--variant", "gpu-eight-reads"]);
    assert!(told.contains("plane.cu: results are right"), "{told}");
    // Two kernels with an array between them, and a variable that is filled.
    write(
        "two.cu",
        "// array: unsigned parts[4 * bins]\n// launch: clear<<<(4 * bins + 63) / 64, 64>>>(parts, 4 * bins)\n\
         // launch: count<<<dim3(2, 2), dim3(16, 4)>>>(samples, n, bins, parts)\n\
         // launch: add<<<(bins + 63) / 64, 64>>>(parts, counts, bins)\n\
         __global__ void clear(unsigned* parts, int n) {\n\
         \x20   int i = blockIdx.x * blockDim.x + threadIdx.x;\n    if (i < n) parts[i] = 0;\n}\n\
         __global__ void count(const SAMPLE* samples, unsigned long long n, unsigned bins, unsigned* parts) {\n\
         \x20   unsigned block = blockIdx.y * 2 + blockIdx.x, thread = threadIdx.y * 16 + threadIdx.x;\n\
         \x20   for (unsigned long long i = block * 64 + thread; i < n; i += 256)\n\
         \x20       if (samples[i] < bins) atomicAdd(&parts[block * bins + samples[i]], 1u);\n}\n\
         __global__ void add(const unsigned* parts, unsigned* counts, unsigned bins) {\n\
         \x20   unsigned b = blockIdx.x * blockDim.x + threadIdx.x;\n\
         \x20   if (b < bins) counts[b] = parts[b] + parts[bins + b] + parts[2 * bins + b] + parts[3 * bins + b];\n}\n",
    );
    let told = line(&["histogram", "two.cu", "--variant", "gpu-one-pass"]);
    assert!(told.contains("two.cu: results are right"), "{told}");
    let options = ["--device", "cpu"];
    let refused = |arguments: &[&str], words: &[&str]| {
        refused(&[&["try"], arguments, &options[..]].concat(), f, words);
    };
    refused(
        &["histogram", "two.cu", "--block", "64"],
        &["--block", "lists no launches", "launches in two.cu"],
    );
    refused(&["sobel", "plane.cu", "--block", "64x32"], &["--block", "1024 threads in all, found 2048"]);
    refused(&["sobel", "plane.cu", "--grid", "4x0"], &["--grid", "as in 32x8, found 4x0"]);
    let text = std::fs::read_to_string(f.join("two.cu")).unwrap();
    for (old, new, words) in [
        ("(parts, counts, bins)\n", "(parts, count, bins)\n", ["two.cu:4: expected an array", "found count"]),
        (
            "(parts, counts, bins)\n",
            "(parts, samples, bins)\n",
            ["two.cu:4: add, parameter 2", "found unsigned int* counts"],
        ),
        (
            "(parts, counts, bins)\n",
            "(parts, counts)\n",
            ["two.cu:4: arguments of add: expected 3", "found 2"],
        ),
        ("launch: add<<<", "launch: sum<<<", ["one named sum", "add, clear, count"]),
        (
            "unsigned parts[4 * bins]",
            "string parts[4 * bins]",
            ["two.cu:1: expected an array of", "found string"],
        ),
        (
            "unsigned parts[4 * bins]",
            "unsigned parts[4 * bin]",
            ["two.cu:1: expected a whole number", "found bin"],
        ),
        ("dim3(2, 2)", "dim3(2, 2", ["two.cu:3: expected launch: KERNEL<<<BLOCKS", "found launch: count"]),
    ] {
        assert!(text.contains(old), "{old}");
        write("wrong.cu", &text.replace(old, new));
        let words: Vec<_> = words.map(|word| word.replace("two.cu", "wrong.cu")).to_vec();
        let words: Vec<_> = words.iter().map(String::as_str).collect();
        refused(&["histogram", "wrong.cu"], &words);
    }
}

/// Where a ladder's plain kernel is: the exercise that begins with it, or a file of these tests.
const EXERCISES: [(&str, &str); 13] = [
    ("transpose", "transpose"),
    ("reduction", "reduction"),
    ("pi", "pi"),
    ("histogram", "histogram"),
    ("convolution", "convolution"),
    ("sobel", "sobel"),
    ("matrix-product", "matrix-product"),
    ("nudft-q", "q"),
    ("nudft-q-f64", "q"),
    ("nudft-adjoint", "fhd"),
    ("nudft-adjoint-f64", "fhd"),
    ("render-xray", "xray"),
    ("backproject", "backproject"),
];

#[test]
fn a_plain_kernel_of_every_declaration_is_right_on_all_trials() {
    let folder = tempfile::tempdir().unwrap();
    let files = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/own");
    let emulator = rayspin_emu::Emulator::new().unwrap();
    let device = Device::with_driver(Arc::new(emulator), Device::cpu_with_threads(2).unwrap());
    let headers = [("curand_kernel.h", rayspin_emu::CURAND_KERNEL)];
    let mut wrong = String::new();
    for ladder in rayspin_ladder_cli::ladders() {
        let name = ladder.about().name;
        let of = |which| ladder.signature(which).unwrap().map(|(kernel, _)| kernel);
        // Some ladders have a kernel for each of several cases.
        let mut kernels = Vec::new();
        for (case, ..) in ladder.cases() {
            let Some(kernel) = of(Which::Case(Some(case), None)) else { continue };
            if kernels.contains(&kernel) {
                continue;
            }
            kernels.push(kernel);
            let own = std::fs::read_to_string(files.join(format!("{name}-{case}.cu")));
            let text = match EXERCISES.iter().find(|(other, _)| *other == name) {
                Some((_, exercise)) => {
                    String::from_utf8(ok(&["exercise", exercise], folder.path()).stdout).unwrap()
                }
                None => own.or_else(|_| std::fs::read_to_string(files.join(format!("{name}.cu")))).unwrap(),
            };
            let own = Own::new("plain.cu", &text, [256, 1, 1], &headers).unwrap();
            let trials = (0..ladder.trials()).map(Which::Trial).filter(|trial| of(*trial) == Some(kernel));
            for trial in trials {
                let mut session = ladder.open_with(trial, &device, 1, own).unwrap();
                let index = session.variants().len() - 1;
                let error = session.verify(index, &Config::default());
                let tolerance = session.variants()[index].tolerance;
                if !error.as_ref().is_ok_and(|error| *error <= tolerance) {
                    wrong += &format!("{name}, {kernel} on {}: {error:?}\n", session.problem());
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn a_case_chooses_the_kernel_and_ladders_say_why_they_take_none() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    let quick = ["--device", "cpu", "--fast", "--rounds", "1", "--budget", "0.01"];
    let text = include_str!("../own/vector-cg-update.cu");
    std::fs::write(f.join("mine.cu"), text).unwrap();
    let line = ["try", "vector", "mine.cu", "--case", "cg-update", "--size", "1000"];
    let said = String::from_utf8(ok(&[&line[..], &quick].concat(), f).stdout).unwrap();
    assert!(said.contains("mine.cu: results are right"), "{said}");
    // The first case has another kernel.
    refused(&[&line[..3], &quick].concat(), f, &["an array (x, y, sum)", "found p"]);
    refused(&["try", "random", "--case", "poisson-4"], f, &["a case of random", "uniform-f32, bits"]);
    for name in ["transfers", "nufft-type1", "nufft-type2", "h264", "rpes"] {
        refused(&["try", name], f, &[&format!("{name} takes no kernel of your own: ")]);
    }
    // What came out, in words.
    std::fs::write(f.join("pi.cu"), ok(&["exercise", "pi"], f).stdout).unwrap();
    let said = String::from_utf8(ok(&[&["try", "pi", "pi.cu"][..], &quick].concat(), f).stdout).unwrap();
    assert!(said.contains("pi is 3."), "{said}");
}
