//! Counters of kernels without a GPU.

use std::process::{Command, Output};

use crate::{PROGRAM, refused};

fn run(folder: &std::path::Path, line: &str) -> Output {
    let mut command = Command::new(PROGRAM);
    command.args(line.split(' ')).args(["--device", "cpu"]).current_dir(folder);
    command.env("RAYSPIN_KERNEL_CACHE", folder.join("kept")).output().unwrap()
}

/// The JSON that a command writes; none where no compiler can count.
fn json(folder: &std::path::Path, line: &str) -> Option<serde_json::Value> {
    let done = run(folder, &format!("{line} --json -"));
    let told = String::from_utf8_lossy(&done.stderr).into_owned();
    if ["no C++ compiler", "g++ 12 or newer"].iter().any(|word| told.contains(word)) {
        assert_eq!(done.status.code(), Some(1), "{told}");
        println!("passed over: {}", told.lines().next().unwrap_or_default());
        return None;
    }
    assert!(done.status.success(), "{told}");
    Some(serde_json::from_slice(&done.stdout).unwrap())
}

/// The sum of a number over the accesses of a variant in memory of the device.
fn sum(variant: &serde_json::Value, kind: &str, what: &str) -> f64 {
    let kernels = variant["kernels"].as_array().unwrap();
    let lines = kernels.iter().flat_map(|kernel| kernel["lines"].as_array().unwrap());
    let accesses = lines.flat_map(|line| line["accesses"].as_array().unwrap());
    let wanted = accesses.filter(|access| access["kind"] == kind && access["space"] == "global");
    wanted.map(|access| access[what].as_f64().unwrap()).sum()
}

#[test]
fn the_naive_transpose_wastes_its_stores_and_the_tile_does_not() {
    let folder = tempfile::tempdir().unwrap();
    let Some(document) =
        json(folder.path(), "counters transpose --variant gpu-naive,gpu-padded --size 256x256")
    else {
        return;
    };
    let ladder = &document["ladders"][0];
    assert_eq!(ladder["gpu"]["name"], "h100");
    let [naive, padded] = [0, 1].map(|index| &ladder["variants"][index]);
    for variant in [naive, padded] {
        assert_eq!(sum(variant, "load", "bytes_asked"), 4.0 * 65_536.0, "{variant}");
        assert!(variant["seconds"].as_f64().unwrap() > 1e-6, "{variant}");
    }
    // A warp writes a column: a sector for each lane.
    assert_eq!(sum(naive, "store", "sectors"), 65_536.0);
    assert_eq!(sum(padded, "store", "sectors"), 65_536.0 / 8.0);
    assert_eq!(sum(padded, "store", "requests"), 65_536.0 / 32.0);
}

#[test]
fn where_the_launch_limits_a_larger_size_is_named_and_changes_name_their_kernels() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    let line = "counters reduction --variant gpu-k3,gpu-two-level";
    let Some(document) = json(f, line) else { return };
    for variant in document["ladders"][0]["variants"].as_array().unwrap() {
        assert_eq!(variant["limit"], "launch", "{variant}");
        assert!(variant["change_first"].as_str().unwrap().contains("--measured --sampled"), "{variant}");
    }
    let told = String::from_utf8(run(f, &format!("{line} --changed")).stdout).unwrap();
    assert!(told.contains("Kernel") && told.contains("k3_sequential → two_level"), "{told}");
    let small = "counters transpose --variant gpu-naive --size 64x64";
    let document = json(f, small).unwrap();
    let advice = document["ladders"][0]["variants"][0]["change_first"].as_str().unwrap().to_owned();
    // As many doublings of each side.
    let size = advice.split("--size ").nth(1).unwrap().split_whitespace().next().unwrap();
    let larger = json(f, &small.replace("64x64", &format!("{size} --sampled"))).unwrap();
    assert_ne!(larger["ladders"][0]["variants"][0]["limit"], "launch", "{advice}");
}

#[test]
fn launches_are_listed_in_order_without_a_gpu() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    if json(f, "counters reduction --variant gpu-k3").is_none() {
        return;
    }
    let done = run(f, "counters reduction --variant gpu-k3 --launches launches.json");
    assert!(done.status.success(), "{done:?}");
    let listed = std::fs::read(f.join("launches.json")).unwrap();
    let listed: serde_json::Value = serde_json::from_slice(&listed).unwrap();
    let variant = &listed[0]["variants"][0];
    for time in ["first", "second"] {
        let launches = variant[time].as_array().unwrap();
        assert!(
            launches.len() > 1 && launches.iter().all(|one| one["kernel"] == "k3_sequential"),
            "{listed}"
        );
    }
}

#[test]
fn an_error_of_the_compiler_gets_no_hint_about_devices() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    let kernel = "extern \"C\" __global__ void histogram(const SAMPLE* samples, unsigned long long n, unsigned bins, \
                  unsigned* counts) {\n    nonsense\n}\n";
    std::fs::write(f.join("bad.cu"), kernel).unwrap();
    let done = run(f, "counters histogram --own bad.cu");
    let told = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(1), "{told}");
    assert!(told.contains("nonsense") || told.contains("g++"), "{told}");
    for word in ["RAYSPIN_CUDA_WAIT", "--device cpu", "disable pass"] {
        assert!(!told.contains(word), "{word}: {told}");
    }
}

#[test]
fn a_kernel_of_one_s_own_is_told_which_line_to_change() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    std::fs::write(
        f.join("one.cu"),
        "extern \"C\" __global__ void histogram(const SAMPLE* samples, unsigned long long n, unsigned bins, unsigned* counts) {\n\
         \x20   unsigned long long i = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;\n\
         \x20   if (i < n && samples[i] < bins) atomicAdd(&counts[samples[i]], 1u);\n}\n",
    )
    .unwrap();
    let Some(document) = json(f, "counters histogram --own one.cu --on a100") else { return };
    let variants = document["ladders"][0]["variants"].as_array().unwrap();
    assert_eq!(variants.len(), 1, "{document}");
    let kernel = &variants[0]["kernels"][0];
    let atomics = kernel["lines"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|line| line["accesses"].as_array().unwrap().iter().map(move |access| (line, access)))
        .find(|(_, access)| access["kind"] == "atomic");
    let (line, access) = atomics.unwrap();
    assert_eq!(
        (&line["file"], &line["line"], &access["array"]),
        (&"one.cu".into(), &3.into(), &"counts".into())
    );
    let told = run(f, "counters histogram --own one.cu");
    let text = String::from_utf8(told.stdout).unwrap();
    for word in ["counts", "one.cu:3", "H100 SXM", "Limited by"] {
        assert!(text.contains(word), "{word}: {text}");
    }
}

#[test]
fn counts_stand_beside_times_and_are_compared() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    let counts = "counters transpose --variant gpu-naive,gpu-padded --size 256x256 --json";
    if json(f, counts.trim_end_matches(" --json")).is_none() {
        return;
    }
    // Beside the times of the emulator, the very same numbers.
    let line = "transpose --emulate --counters --variant gpu-naive,gpu-padded --size 256x256 --budget 0.01 --rounds 3";
    let emulated = json(f, line).unwrap();
    let ladder = &emulated["ladders"][0];
    assert_eq!(ladder["predicted_on"], "H100 SXM");
    let naive = &ladder["variants"][0]["counts"];
    assert_eq!(naive["store_sectors"], 65_536.0);
    assert_eq!(naive["stores_moved_over_asked"], 8.0);
    assert_eq!(ladder["variants"][1]["counts"]["turns_over_least"], 1.0);
    let page = run(f, &format!("{line} --html page.html"));
    assert!(page.status.success(), "{page:?}");
    let table = String::from_utf8(page.stdout).unwrap();
    let page = std::fs::read_to_string(f.join("page.html")).unwrap();
    for text in [&table, &page] {
        for word in ["Moved / asked", "Turns / least", "Lanes", "Time on H100 SXM", "Limited by"] {
            assert!(text.contains(word), "{word}: {text}");
        }
    }
    // Two files of counts: one variant in both, one in each.
    for (file, variants) in [("a.json", "gpu-naive,gpu-padded"), ("b.json", "gpu-naive,gpu-wide")] {
        let line = counts.replace("gpu-naive,gpu-padded", variants);
        assert!(run(f, &format!("{line} {file}")).status.success());
    }
    let told = String::from_utf8(run(f, "compare a.json b.json").stdout).unwrap();
    for word in ["gpu-naive", "only before: gpu-padded of transpose", "only after: gpu-wide of transpose"] {
        assert!(told.contains(word), "{word}: {told}");
    }
    let compared = run(f, "compare a.json b.json --json").stdout;
    let compared: serde_json::Value = serde_json::from_slice(&compared).unwrap();
    assert_eq!(compared["counts"].as_array().unwrap().len(), 1);
    assert_eq!(compared["counts"][0]["before"], compared["counts"][0]["after"]);
    assert_eq!(compared["counts"][0]["after"]["store_sectors"], 65_536.0);
    std::fs::write(f.join("c.json"), "{}").unwrap();
    refused(&["compare", "a.json", "c.json"], f, &["c.json: expected counts, as a.json has them"]);
}

#[test]
fn a_tried_kernel_is_counted_beside_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    std::fs::write(
        f.join("stride.cu"),
        "extern \"C\" __global__ void matrix_add(const float* a, const float* b, float* c, unsigned long long n) {\n\
         \x20   unsigned long long threads = (unsigned long long)gridDim.x * blockDim.x;\n\
         \x20   unsigned long long each = (n + threads - 1) / threads, first = each * (blockIdx.x * blockDim.x + threadIdx.x);\n\
         \x20   for (unsigned long long i = first; i < first + each && i < n; i++) c[i] = a[i] + b[i];\n}\n",
    )
    .unwrap();
    if json(f, "counters matrix-add --variant gpu-wide").is_none() {
        return;
    }
    let line = "try matrix-add stride.cu --grid 1 --block 64 --budget 0.01 --rounds 3 --variant gpu-tiled";
    let done = run(f, line);
    let told = String::from_utf8(done.stdout).unwrap();
    assert!(done.status.success(), "{told} {}", String::from_utf8_lossy(&done.stderr));
    for word in ["Moved / asked", "Limited by", "stride.cu: change first stride.cu:4", "no race"] {
        assert!(told.contains(word), "{word}: {told}");
    }
    let fast = run(f, &format!("{line} --fast"));
    assert!(!String::from_utf8(fast.stdout).unwrap().contains("Moved / asked"));
}

#[test]
fn a_kernel_that_destroys_ends_its_own_process() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    let declaration = "extern \"C\" __global__ void histogram(const SAMPLE* samples, unsigned long long n, unsigned bins, \
                       unsigned* counts)";
    std::fs::write(f.join("wild.cu"), format!("{declaration} {{\n    counts[1ull << 40] = 1;\n}}\n"))
        .unwrap();
    let done = run(f, "counters histogram --own wild.cu");
    let told = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(1), "{told}");
    assert!(told.contains("wild.cu ended the emulator") || told.contains("g++"), "{told}");
}

#[test]
fn the_user_s_kernel_stands_beside_the_named_variants_alone() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    let kernel = "extern \"C\" __global__ void histogram(const SAMPLE* samples, unsigned long long n, unsigned bins, \
                  unsigned* counts) {\n    if (blockIdx.x + threadIdx.x == 0) counts[0] = 1;\n}\n";
    std::fs::write(f.join("one.cu"), kernel).unwrap();
    for (more, expected) in [("", 1), (" --variant gpu-one-pass", 2)] {
        let Some(found) = json(f, &format!("counters histogram --own one.cu{more}")) else { return };
        let variants = found["ladders"][0]["variants"].as_array().unwrap();
        assert_eq!(variants.len(), expected, "{found}");
    }
}

#[test]
fn counters_that_cannot_be_made_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let r = |arguments: &str, words: &[&str]| {
        let arguments: Vec<_> = ["counters"].into_iter().chain(arguments.split_whitespace()).collect();
        refused(&arguments, folder.path(), words);
    };
    r("transpos", &["found transpos"]);
    r("transpose --on h1000", &["--on", "h100", "found h1000"]);
    r("transpose --variant gpu-naiv", &["variant for a GPU", "found gpu-naiv"]);
    r("transpose reduction --own a.cu", &["--own", "one algorithm, found 2"]);
    r("fft", &["expected CUDA variants", "found none of fft"]);
    r("transpose --block 32", &["--block", "--own"]);
    r("transpose --shared 32", &["--shared", "--own"]);
    r("transpose --lines --json -", &["--lines", "--json -"]);
    refused(&["transpose", "--counters"], folder.path(), &["--emulate"]);
    refused(&["transpose", "--emulate", "--on", "a100"], folder.path(), &["--counters"]);
    refused(&["transpose", "--emulate", "--counters", "--on", "h1000"], folder.path(), &["found h1000"]);
    r("transpose --json - --wide", &["--wide", "--json -"]);
    r("transpose --sampled --launches a.json", &["--sampled", "--launches"]);
    r("transpose --threads 2", &["--threads", "uses one"]);
    r("transpose --variant gpu-naive --changed", &["--changed", "two variants, found 1"]);
}
