//! Ladders: what is listed, run, written, compared and refused.

use std::path::Path;
use std::process::{Command, Stdio};

use unicode_width::UnicodeWidthStr;

use crate::{PROGRAM, ok, rayspin, refused};

fn text(arguments: &[&str], folder: &Path) -> String {
    String::from_utf8(ok(arguments, folder).stdout).unwrap()
}

#[test]
fn ladders_are_listed_and_explained() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    let list = text(&["list"], f);
    assert!(list.contains("matrix-add") && list.contains("Sum of two matrices"), "{list}");
    let variants = text(&["list", "matrix-add"], f);
    for word in ["8192x8192", "threads", "gpu-wide", "threads=64,128,[256],512,1024"] {
        assert!(variants.contains(word), "{word}: {variants}");
    }
    assert!(text(&["list", "nudft-q", "--wide"], f).contains("(the default on a GPU)"));
    let explained = text(&["explain", "matrix-add"], f);
    assert!(explained.contains("gpu-one-block") && !explained.contains('`'), "{explained}");
    assert!(text(&["--help"], f).contains("Examples"));
    for shell in ["bash", "zsh", "fish"] {
        assert!(text(&["completions", shell], f).contains("matrix-add"), "{shell} completes names");
    }
}

#[test]
fn a_benchmark_run_is_a_table_and_files() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    let run = "matrix-add --size 31x7 --device cpu --rounds 3 --budget 0.05 --seed 9 --no-limits";
    let run: Vec<_> = run.split(' ').collect();
    let with = |more: &[&'static str]| [run.as_slice(), more].concat();
    let table = text(&with(&["--json", "a.json", "--csv", "a.csv"]), f);
    for word in ["31 x 7 f32", "Variant", "GB/s", "scalar", "simd", "threads"] {
        assert!(table.contains(word), "{word}: {table}");
    }
    let json: serde_json::Value = serde_json::from_slice(&std::fs::read(f.join("a.json")).unwrap()).unwrap();
    insta::assert_json_snapshot!(json, {
        ".began" => "[time]",
        ".limits" => "[limits]",
        ".runs[].device" => "[device]",
        ".runs[].clock_mhz" => "[clock]",
        ".runs[].steps[].outcome.timed.clock_mhz" => "[clock]",
        ".runs[].steps[].floor" => "[seconds]",
        ".runs[].steps[].outcome.timed.cumulative" => "[ratio]",
        ".runs[].steps[].outcome.timed.step" => "[ratio]",
        ".runs[].steps[].outcome.timed.rate" => "[rate]",
        ".runs[].steps[].outcome.timed.timing.high" => "[seconds]",
        ".runs[].steps[].outcome.timed.timing.low" => "[seconds]",
        ".runs[].steps[].outcome.timed.timing.median" => "[seconds]",
        ".runs[].steps[].outcome.timed.timing.rounds" => "[rounds]",
        ".runs[].steps[].outcome.timed.timing.runs" => "[runs]",
    });
    let csv = std::fs::read_to_string(f.join("a.csv")).unwrap();
    let fields: Vec<_> = csv.lines().map(|line| line.matches(',').count()).collect();
    assert_eq!(fields.len(), 4, "{csv}");

    let only = text(&with(&["--variant", "simd", "--json", "-"]), f);
    let only: serde_json::Value = serde_json::from_str(&only).unwrap();
    assert_eq!(only["runs"][0]["steps"].as_array().unwrap().len(), 1);
    std::fs::write(f.join("b.json"), only.to_string()).unwrap();

    let single = text(&with(&["--variant", "simd", "--launch", "single", "--wide", "--csv", "s.csv"]), f);
    assert!(single.contains("each run launched and awaited alone"), "{single}");
    let stream = text(&with(&["--variant", "simd", "--launch", "stream", "--json", "-"]), f);
    let stream: serde_json::Value = serde_json::from_str(&stream).unwrap();
    assert_eq!(stream["runs"][0]["launch"], "stream");
    std::fs::write(f.join("s.json"), stream.to_string()).unwrap();
    let launches = |file: &str| -> Vec<String> {
        let csv = std::fs::read_to_string(f.join(file)).unwrap();
        csv.lines().skip(1).map(|line| line.rsplit(',').nth(1).unwrap().to_owned()).collect()
    };
    assert_eq!(
        (launches("a.csv"), launches("s.csv")),
        (vec!["stream".to_owned(); 3], vec!["single".to_owned()])
    );
    let other = text(&["compare", "a.json", "s.json", "--wide"], f);
    assert!(other.contains("after: runs launched one after another"), "{other}");

    let same = text(&["compare", "a.json", "a.json"], f);
    assert_eq!(same.matches("no difference beyond noise").count(), 3, "{same}");
    let less = text(&["compare", "a.json", "b.json"], f);
    assert!(less.contains("only before: scalar of matrix-add") && less.contains("simd"), "{less}");
    let json: serde_json::Value =
        serde_json::from_str(&text(&["compare", "a.json", "b.json", "--json"], f)).unwrap();
    assert_eq!(json["variants"].as_array().unwrap().len(), 1);
    assert!(json["variants"][0]["ratio"].as_f64().unwrap() > 0.0);

    std::fs::write(f.join("foreign.json"), "{\"format\": \"something\"}").unwrap();
    refused(&["compare", "a.json", "foreign.json"], f, &["foreign.json", "rayspin-ladder"]);
    refused(&["compare", "missing.json", "a.json"], f, &["missing.json"]);
}

#[test]
fn what_there_is_not_is_refused_with_the_nearest() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    let benchmark = |more: &[&'static str], words: &[&str]| {
        refused(&[&["matrix-add", "--device", "cpu"], more].concat(), f, words);
    };
    refused(&["matrix-ad"], f, &["matrix-ad"]);
    let near = rayspin(&["run", "matrix-ad"], f);
    assert!(String::from_utf8_lossy(&near.stderr).contains("did you mean matrix-add?"));
    benchmark(&["--case", "1000x100"], &["case", "1000x100"]);
    benchmark(&["--variant", "scaler"], &["variant", "scaler"]);
    benchmark(&["--variant", "gpu-wide"], &["gpu-wide", "a GPU"]);
    benchmark(&["--size", "x"], &["--size", "'x'"]);
    benchmark(&["--size", "3"], &["size of matrix-add", "[3]"]);
    benchmark(&["--size", "0x7"], &["size of matrix-add"]);
    benchmark(&["--size", "4294967296x4294967296"], &["size of matrix-add"]);
    benchmark(&["--rounds", "0"], &["--rounds"]);
    benchmark(&["--budget", "-1"], &["--budget"]);
    benchmark(&["--launch", "graph"], &["--launch graph", "a GPU"]);
    for launch in [["--launch", "graphs"].as_slice(), &["--launch", "stream", "--emulate"]] {
        let output = rayspin(&[["matrix-add", "--device", "cpu"].as_slice(), launch].concat(), f);
        assert_eq!(output.status.code(), Some(2), "{launch:?}");
    }
    benchmark(&["--config", "threads=64"], &["--config", "one variant"]);
    benchmark(&["--variant", "simd", "--config", "threads=64"], &["--config of simd", "threads=64"]);
    benchmark(&["--variant", "simd", "--config", "threads"], &["configuration"]);
    benchmark(&["--sweep", "thread"], &["--sweep", "thread"]);
    benchmark(&["--json", "x.json", "--csv", "x.json"], &["x.json"]);
    benchmark(&["--json", "no/folder.json"], &["no/folder.json"]);
    refused(&["tune", "matrix-product", "--device", "both"], f, &["--device", "both"]);
    // What stands before a subcommand is not passed over.
    refused(&["--size", "3x3", "list"], f, &["--size", "before"]);
    assert!(ok(&["-q", "--device", "cpu", "list"], f).status.success());
    assert_eq!(rayspin(&[], f).status.code(), Some(2));
    assert_eq!(rayspin(&["--all", "matrix-add"], f).status.code(), Some(2));
}

#[test]
fn every_cuda_variant_is_emulated_and_written() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    let run =
        "matrix-add --emulate --device cpu --rounds 1 --budget 0.001 --json a.json --csv a.csv --html a.html";
    let output = Command::new(PROGRAM)
        .args(run.split(' '))
        .current_dir(f)
        .env("RAYSPIN_KERNEL_CACHE", f.join("kept"))
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    if told.contains("no C++ compiler") {
        println!("passed over: this machine has no C++ compiler");
        return;
    }
    assert!(output.status.success(), "{told}");
    let tables = String::from_utf8(output.stdout).unwrap();
    assert!(tables.lines().all(|line| line.chars().count() <= 100), "{tables}");
    let json: serde_json::Value = serde_json::from_slice(&std::fs::read(f.join("a.json")).unwrap()).unwrap();
    refused(&["compare", "a.json", "a.json"], f, &["a.json", "emulated", "no processor"]);
    let ladders = json["ladders"].as_array().unwrap();
    let variants: Vec<_> = ladders.iter().flat_map(|ladder| ladder["variants"].as_array().unwrap()).collect();
    let listed = text(&["list", "matrix-add", "--wide"], f);
    let on_gpu: Vec<_> = listed.lines().filter_map(|line| line.split_whitespace().next()).collect();
    let on_gpu: Vec<_> = on_gpu.into_iter().filter(|name| name.starts_with("gpu-")).collect();
    assert!(on_gpu.contains(&"gpu-one-block"), "{listed}");
    let mut ran: Vec<_> = variants.iter().map(|variant| variant["variant"].as_str().unwrap()).collect();
    assert!(variants.iter().all(|variant| variant["as_written_seconds"].as_f64().unwrap() > 0.0), "{json}");
    ran.sort_unstable();
    let mut names = on_gpu.clone();
    names.sort_unstable();
    assert_eq!(ran, names, "every variant runs once");
    let csv = std::fs::read_to_string(f.join("a.csv")).unwrap();
    assert_eq!(csv.lines().count(), 1 + on_gpu.len(), "{csv}");
    let page = std::fs::read_to_string(f.join("a.html")).unwrap();
    for word in ["gpu-one-block as written", "gpu-one-block as loops", "Best of each ladder"] {
        assert!(page.contains(word), "{word}");
    }
}

#[test]
fn tables_fit_a_terminal_and_say_what_headings_mean() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    let run = "histogram --size 5000 --device cpu --rounds 1 --budget 0.001 --no-limits";
    for line in
        [run, "list", "list nudft-q", "list reduction", "applications --device cpu", "tune --device cpu"]
    {
        let arguments: Vec<_> = line.split(' ').collect();
        let narrow = text(&arguments, f);
        let longest = narrow.lines().map(|line| line.chars().count()).max().unwrap();
        assert!(longest <= 100, "{line}: {longest} columns: {narrow}");
        let wide = text(&[arguments.as_slice(), &["--wide"]].concat(), f);
        assert!(wide.lines().any(|line| line.chars().count() > 100), "{line} --wide: {wide}");
    }
    // A processor has a name of any length.
    for name in [
        "Intel(R) Xeon(R) Platinum 8581C CPU @ 2.30GHz of a machine with a long name",
        &"頭X".repeat(70),
        "a\u{1b}[1m",
    ] {
        for line in [run, "tune --device cpu", "list"] {
            let mut command = Command::new(PROGRAM);
            command.args(line.split(' ')).current_dir(f).env("RAYSPIN_TEST_PROCESSOR", name);
            let output = command.output().unwrap();
            let shown = String::from_utf8(output.stdout).unwrap();
            assert!(output.status.success() && !shown.contains('\u{1b}'), "{line}: {shown}");
            let longest = shown.lines().map(UnicodeWidthStr::width).max().unwrap();
            assert!(longest <= 100, "{line}: {longest} columns: {shown}");
        }
    }
    let table = text(&run.split(' ').collect::<Vec<_>>(), f);
    for words in [
        "how much faster than the variant above",
        "published: “Histograms” (lab journal), on the machine of its time",
        "Published row",
    ] {
        assert!(table.contains(words), "{words}: {table}");
    }
    assert!(!table.contains("their time"), "{table}");
}

#[test]
fn the_share_of_the_limit_counts_what_a_variant_does_and_rates_what_the_lecture_counts() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    let run =
        "nudft-q nudft-adjoint --size 8x8x8x30 --device cpu --rounds 1 --budget 0.001 --no-limits --json -";
    let json: serde_json::Value =
        serde_json::from_str(&text(&run.split(' ').collect::<Vec<_>>(), f)).unwrap();
    // Q has 16 x 16 x 16 displacements and real weights, the adjoint 8 x 8 x 8 voxels and complex samples.
    let q = (16.0 * 16.0 * 16.0 * 30.0, 12.0, [12.0, 12.0, 8.0, 2.0]);
    let adjoint = (8.0 * 8.0 * 8.0 * 30.0, 16.0, [16.0, 16.0, 8.0, 4.0]);
    for (run, (pairs, pair, own)) in [q, adjoint].into_iter().enumerate() {
        for (name, operations) in ["naive", "simd", "separable", "mirrored"].into_iter().zip(own) {
            let steps = json["runs"][run]["steps"].as_array().unwrap();
            let step = steps.iter().find(|step| step["name"] == name).unwrap();
            assert_eq!(step["flops"].as_f64(), Some(operations * pairs), "{name}");
            let timed = &step["outcome"]["timed"];
            let counted = timed["rate"].as_f64().unwrap() * timed["timing"]["median"].as_f64().unwrap();
            assert!((counted / (pair * pairs) - 1.0).abs() < 1e-9, "{name}: {counted}");
        }
    }
}

#[test]
fn without_a_gpu_each_command_says_what_works() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    let none = |arguments: &str| {
        let mut command = Command::new(PROGRAM);
        // Neither a driver nor NVRTC is found where libraries are looked for.
        command
            .args(arguments.split(' '))
            .current_dir(f)
            .env("RAYSPIN_CUDA_PATH", f)
            .env("CUDA_VISIBLE_DEVICES", "");
        let output = command.output().unwrap();
        (
            output.status.code(),
            String::from_utf8(output.stdout).unwrap(),
            String::from_utf8(output.stderr).unwrap(),
        )
    };
    let (code, _, words) = none("matrix-add --size 9x9 --rounds 1 --budget 0.001 --no-limits");
    assert_eq!(code, Some(0), "{words}");
    assert!(words.contains("variants for a GPU did not run: without a GPU --emulate and try run"), "{words}");
    let (_, _, words) = none("matrix-add --size 9x9 --rounds 1 --budget 0.001 --no-limits --device cpu");
    assert!(!words.contains("did not run"), "who chose the CPU knows: {words}");
    let (code, _, words) = none("matrix-add --device cuda");
    assert_eq!(code, Some(2), "{words}");
    assert!(words.contains("hint: without a GPU --emulate and try run CUDA sources"), "{words}");
}

#[test]
fn an_application_table_wants_a_gpu_and_known_names() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    let table = |more: &[&'static str], words: &[&str]| {
        refused(&[&["applications", "--device", "cpu"], more].concat(), f, words);
    };
    // Without a GPU the published table is shown, and what only a measurement heeds is refused.
    let shown = rayspin(&["applications", "coulomb", "recon-volume", "--device", "cpu", "--csv", "p.csv"], f);
    let (out, told) = (String::from_utf8(shown.stdout).unwrap(), String::from_utf8(shown.stderr).unwrap());
    assert!(shown.status.success() && told.contains("published with Rayspin, measured 2026-"), "{told}");
    assert!(out.contains("NVIDIA H") && out.contains("coulomb") && !out.contains("transpose"), "{out}");
    assert_eq!(std::fs::read_to_string(f.join("p.csv")).unwrap().lines().count(), 3);
    table(&["matrix-add", "--seed", "3"], &["--seed", "expected a GPU to measure with"]);
    table(&["matrix-add", "--size", "64x64"], &["--size", "expected a GPU to measure with"]);
    table(&["matrix-ad"], &["matrix-ad"]);
    table(&["matrix-add", "--case", "1000x100"], &["case of matrix-add", "1000x100"]);
    table(&["matrix-add", "--size", "3"], &["size of matrix-add", "[3]"]);
    table(&["recon-volume", "--size", "8"], &["size of recon-volume", "[8]"]);
    table(&["recon-volume", "--case", "a"], &["case of recon-volume"]);
    table(&["matrix-add", "--rounds", "0"], &["--rounds"]);
    table(&["matrix-add", "--budget", "0"], &["--budget"]);
    table(&["matrix-add", "--html", "-"], &["--html"]);
    table(&["--json", "x", "--csv", "x"], &["x"]);
    let explained = text(&["explain", "applications", "sad"], f);
    assert!(explained.contains("Application table\n===") && explained.contains("gpu-packed"));
    let near = rayspin(&["applications", "matrix-ad"], f);
    assert!(String::from_utf8_lossy(&near.stderr).contains("did you mean matrix-add?"));
    for of_the_parser in [["--size", "3"], ["matrix-add", "--emulate"]] {
        let output = rayspin(&[&["applications"], &of_the_parser[..]].concat(), f);
        assert_eq!(output.status.code(), Some(2), "{of_the_parser:?}");
    }
    assert!(!f.join("a.json").exists());
}

#[test]
fn limits_are_measured_once_and_kept_and_pages_stand_alone() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    let run = |arguments: &str| {
        let output = Command::new(PROGRAM)
            .args(arguments.split(' '))
            .env("RAYSPIN_KERNEL_CACHE", f.join("cache"))
            .current_dir(f)
            .output()
            .unwrap();
        let (out, err) =
            (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
        assert!(output.status.success(), "{arguments}: {err}");
        (out, err)
    };
    let line = "matrix-add --size 100x33 --device cpu --rounds 3 --budget 0.01 --json a.json --html a.html";
    let (table, _) = run(line);
    assert!(table.contains("Of limit (%)"), "{table}");
    let limits = || -> serde_json::Value {
        let json = std::fs::read(f.join("a.json")).unwrap();
        serde_json::from_slice::<serde_json::Value>(&json).unwrap()["limits"].clone()
    };
    let first = limits();
    assert!(first[0]["copy"].as_f64().unwrap() > 1e6 && first[0]["f32"].as_f64().unwrap() > 1e6, "{first}");
    let kept = || std::fs::read_dir(f.join("cache")).unwrap().next().unwrap().unwrap().path();
    let change = |change: &dyn Fn(&mut serde_json::Value)| {
        let mut limits: serde_json::Value = serde_json::from_slice(&std::fs::read(kept()).unwrap()).unwrap();
        change(&mut limits);
        std::fs::write(kept(), limits.to_string()).unwrap();
    };
    // Whether this machine is busy is no matter here.
    change(&|limits| limits["busy"] = false.into());
    let day = first[0]["measured"].as_str().unwrap()[..10].to_owned();
    let (table, told) = run(line);
    assert!(table.contains(&format!("measured {day}")) && !told.contains("again"), "{table}{told}");
    assert_eq!(limits()[0]["measured"], first[0]["measured"], "measured once");
    change(&|limits| limits["busy"] = true.into());
    let (_, told) = run(line);
    assert!(told.contains("while other programs used the processor: they are measured again"), "{told}");
    change(&|limits| {
        limits["busy"] = false.into();
        limits["measured"] = "2020-02-02T02:02:02Z".into();
        limits["copy"] = 1e3.into();
    });
    // Data that a cache holds say nothing of main memory.
    let (table, told) = run(line);
    assert!(table.contains("the data stay in a cache") && !told.contains("again"), "{table}{told}");
    let (_, told) = run(&line.replace("100x33", "1000x300"));
    assert!(told.contains("exceeds limits of 2020-02-02: they are measured again"), "{told}");
    assert!(limits()[0]["copy"].as_f64().unwrap() > 1e6);

    let page = std::fs::read_to_string(f.join("a.html")).unwrap();
    for word in ["Sum of two matrices", "Roofline", "Time of a run", "Limits", "scalar"] {
        assert!(page.contains(word), "{word}");
    }
    assert!(!page.contains("http://") && !page.contains("src=\"http"), "it loads nothing");

    std::fs::write(kept(), "damaged").unwrap();
    let (_, told) = run(line);
    assert!(told.contains("limits are measured anew"), "{told}");
    assert!(std::fs::read_to_string(kept()).unwrap().contains("probe"), "and kept again");
}

#[cfg(unix)]
#[test]
fn an_interrupted_benchmark_run_shows_what_is_complete() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    let arguments =
        "matrix-add --size 64x64 --device cpu --rounds 1000000 --budget 0.8 --no-limits --json a.json";
    let child = Command::new(PROGRAM)
        .args(arguments.split(' '))
        .current_dir(f)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(std::time::Duration::from_millis(400));
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", String::from_utf8_lossy(&output.stderr));
    let table = String::from_utf8(output.stdout).unwrap();
    assert!(table.contains("scalar") && !table.contains("threads "), "{table}");
    let json: serde_json::Value = serde_json::from_slice(&std::fs::read(f.join("a.json")).unwrap()).unwrap();
    assert_eq!(json["runs"][0]["steps"].as_array().unwrap().len(), 1);
}

#[test]
fn one_source_runs_on_two_processors() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    let run = "coulomb --emulate --size 5x1x3x40 --device cpu --rounds 3 --budget 0.05 --variant gpu-gather,gpu-points";
    let run: Vec<_> = run.split(' ').collect();
    let command = |run: &[&str]| {
        let mut command = Command::new(PROGRAM);
        command.args(run).current_dir(f).env("RAYSPIN_KERNEL_CACHE", f.join("kept"));
        command
    };
    let none = command(&run).env("PATH", f).env_remove("CXX").output().unwrap();
    let told = String::from_utf8_lossy(&none.stderr).into_owned();
    assert_eq!(none.status.code(), Some(1), "{told}");
    assert!(told.contains("no C++ compiler was found: install g++") && !told.contains("panicked"), "{told}");
    assert!(
        told.contains("hint: without a C++ compiler rayspin-ladder NAME runs the CPU's variants"),
        "{told}"
    );

    refused(&["sad", "--emulate", "--size", "5"], f, &["HEIGHTxWIDTHxRADIUS"]);
    refused(&["sad", "--emulate", "--variant", "gpu-nave"], f, &["gpu-nave", "gpu-naive"]);
    refused(&["sad", "--emulate", "--case", "qcfi"], f, &["qcfi", "qcif"]);
    refused(&["sad", "--emulate", "--json", "no/a.json"], f, &["no/a.json"]);
    refused(&["fft", "--emulate"], f, &["CUDA variants", "none of fft"]);

    let done = command(&run).output().unwrap();
    let told = String::from_utf8_lossy(&done.stderr).into_owned();
    if told.contains("no C++ compiler") {
        println!("passed over: this machine has no C++ compiler");
        return;
    }
    assert!(done.status.success(), "{told}");
    let tables = String::from_utf8(done.stdout).unwrap();
    let row = |name: &str| {
        tables.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{name}: {tables}"))
    };
    assert!(row("gpu-gather").contains("  all, whole  "), "{tables}");
    assert!(row("gpu-points").contains("  all, in 4  "), "{tables}");
    assert!(tables.contains("45.0 s") && row("coulomb: ").contains("3 x 40 points"), "{tables}");
    assert!(row("As written ").contains("each CUDA thread is a fibre"), "{tables}");
    assert!(row("Published: C on CPU").contains("“CUDA application development” (lecture)"), "{tables}");
    assert!(!tables.contains("gpu-scatter") && f.join("kept/emulator").is_dir(), "{tables}");
}
