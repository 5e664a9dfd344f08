//! `rayspin batch`

use std::path::Path;

use crate::{PROGRAM, files, ok, rayspin, refused};

/// Four small scans; the last but one is none.
fn with_scans() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("scans")).unwrap();
    for (name, seed) in [("a", 1), ("b", 2), ("d", 3)] {
        let line = format!(
            "simulate mri -q --no-record -o scans/{name}.h5 --matrix 24,24 --trajectory radial --shots 24 --coils 2 --snr 50 --seed {seed}"
        );
        ok(&line.split_whitespace().collect::<Vec<_>>(), folder.path());
    }
    std::fs::write(folder.path().join("scans/c.h5"), "no scan").unwrap();
    folder
}

fn names(folder: &Path) -> Vec<String> {
    files(folder).iter().map(|path| path.file_name().unwrap().to_string_lossy().into_owned()).collect()
}

fn batch(folder: &Path, line: &str) -> (i32, String) {
    let arguments: Vec<&str> = ["batch"].into_iter().chain(line.split_whitespace()).collect();
    let output = rayspin(&arguments, folder);
    (output.status.code().unwrap(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn scans_are_reconstructed_as_alone_and_what_is_there_is_not_made_again() {
    let folder = with_scans();
    let f = folder.path();
    let line = "scans/*.h5 -o out/{stem}.npy --device cpu --page out/page.html -- -m cg-sense --iterations 3";
    // A file that is no scan stops no other.
    let (code, text) = batch(f, line);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("scans/c.h5: failed: ") && text.contains("3 reconstructed, 1 failed"), "{text}");
    assert_eq!(names(&f.join("out")), ["a.json", "a.npy", "b.json", "b.npy", "d.json", "d.npy", "page.html"]);
    let page = std::fs::read_to_string(f.join("out/page.html")).unwrap();
    assert!(page.contains("scans/d.h5") && page.contains("scans/c.h5: "), "{page}");
    // As alone.
    let alone = "recon mri -q scans/b.h5 -o alone.npy --device cpu -m cg-sense --iterations 3";
    ok(&alone.split_whitespace().collect::<Vec<_>>(), f);
    let image = |name: &str| std::fs::read(f.join(name)).unwrap();
    assert_eq!(image("out/b.npy"), image("alone.npy"));
    ok(&["rerun", "out/b.json", "-q", "--out", "again"], f);

    // A scan and an image that changed since are made again, and so is all with other options.
    std::fs::copy(f.join("scans/a.h5"), f.join("scans/c.h5")).unwrap();
    std::fs::write(f.join("out/b.npy"), "changed").unwrap();
    let (code, text) = batch(f, line);
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("2 reconstructed, 2 there before"), "{text}");
    assert!(text.contains("scans/a.h5: out/a.npy is there"), "{text}");
    assert_eq!(image("out/b.npy"), image("alone.npy"));
    assert_eq!(image("out/c.npy"), image("out/a.npy"));
    let (_, text) = batch(f, &line.replace("--iterations 3", "--iterations 2 --memory 2G"));
    assert!(text.contains("4 scans in") && text.contains("4 reconstructed"), "{text}");
}

/// Names that a parser would take for options, and those that a shell would take apart.
#[test]
fn scans_and_images_have_any_names() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    let line = "simulate mri -q --no-record -o a.h5 --matrix 16,16 --coils 1";
    ok(&line.split_whitespace().collect::<Vec<_>>(), f);
    let stems = ["--method", "-oelse", "a b 'c'"];
    for stem in stems {
        std::fs::copy(f.join("a.h5"), f.join(format!("{stem}.h5"))).unwrap();
    }
    std::fs::remove_file(f.join("a.h5")).unwrap();
    let (code, text) = batch(f, "*.h5 -o {stem}.npy --device cpu -- -m cartesian");
    assert!(code == 0 && text.contains("3 reconstructed"), "{text}");
    let made = |stem: &str| std::fs::read(f.join(format!("{stem}.npy"))).unwrap();
    assert!(stems.iter().all(|stem| made(stem) == made(stems[0])));
    let (_, text) = batch(f, "*.h5 -o {stem}.npy --device cpu -- -m cartesian");
    assert!(text.contains("3 there before"), "{text}");
    // The record of such a run repeats it, in a folder whose name begins like an option, too.
    let told = ok(&["rerun", "./--method.json"], f);
    assert!(String::from_utf8_lossy(&told.stdout).contains("the same bytes"), "{told:?}");
    ok(
        &["recon", "mri", "-q", "-o", "image.npy", "-m", "cartesian", "--device", "cpu", "--", "-oelse.h5"],
        f,
    );
    ok(&["rerun", "-q", "image.json", "--out=-again"], f);
    assert_eq!(std::fs::read(f.join("-again/image.npy")).unwrap(), made(stems[0]));
}

fn json(file: &Path) -> serde_json::Value {
    serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap()
}

/// A summary without the times.
fn timeless(file: &Path) -> serde_json::Value {
    let mut summary = json(file);
    assert!(summary["seconds"].take().as_f64().unwrap() > 0.0);
    for row in summary["scans"].as_array_mut().unwrap() {
        row["seconds"].take();
    }
    summary
}

#[test]
fn jobs_share_a_list_of_scans_and_their_summaries_make_one() {
    let folder = with_scans();
    let f = folder.path();
    std::fs::remove_file(f.join("scans/c.h5")).unwrap();
    for name in ["e", "f", "g", "h"] {
        std::fs::copy(f.join("scans/a.h5"), f.join(format!("scans/{name}.h5"))).unwrap();
    }
    let all = ["a", "b", "d", "e", "f", "g", "h"];
    let line = "--device cpu -o out/{stem}.npy";
    let (code, text) = batch(f, &format!("scans {line} --summary whole.json -- -m gridding"));
    assert_eq!(code, 0, "{text}");
    let whole = timeless(&f.join("whole.json"));
    assert_eq!(whole["list"]["scans"], 7);
    std::fs::rename(f.join("out"), f.join("before")).unwrap();
    for count in [1, 3, 7, 9] {
        let _ = std::fs::remove_dir_all(f.join("out"));
        let mut taken = Vec::new();
        for number in (1..=count).rev() {
            // The order of the names changes nothing.
            let scans = if number % 2 == 0 { "scans/*.h5" } else { "scans/[e-h].h5 scans/[abd].h5" };
            let part = format!("part-{count}-{number}.json");
            let line =
                format!("{scans} {line} --shard {number}/{count} --summary parts/{part} -- -m gridding");
            let (code, text) = batch(f, &line);
            assert_eq!(code, 0, "{text}");
            let own = json(&f.join("parts").join(part))["scans"].as_array().unwrap().clone();
            assert!((7 / count..=7usize.div_ceil(count)).contains(&own.len()), "{number}/{count}");
            taken.extend(own.iter().map(|row| row["scan"].as_str().unwrap()[6..7].to_owned()));
        }
        taken.sort();
        assert_eq!(taken, all, "{count} parts");
        let (code, text) = batch(
            f,
            &format!("--merge parts/part-{count}-*.json --summary merged.json --page merged.html")
                .replace('*', "1"),
        );
        assert_eq!(code, if count == 1 { 0 } else { 2 }, "{text}");
        assert!(count == 1 || text.contains(&format!("2/{count}")), "{text}");
        let parts: Vec<String> =
            (1..=count).map(|number| format!("parts/part-{count}-{number}.json")).collect();
        let (code, text) =
            batch(f, &format!("--merge {} --summary merged.json --page merged.html", parts.join(" ")));
        assert!(code == 0 && text.contains("7 scans in") && text.contains("7 reconstructed"), "{text}");
        assert_eq!(timeless(&f.join("merged.json")), whole, "{count} parts");
        let page = std::fs::read_to_string(f.join("merged.html")).unwrap();
        assert!(all.iter().all(|name| page.contains(&format!("scans/{name}.h5"))));
    }

    // What does not belong together makes no summary.
    let part = |number| format!("parts/part-3-{number}.json");
    let merge = |names: &[String]| batch(f, &format!("--merge {} --summary no.json", names.join(" ")));
    let changed = |name: &str, from: &str, to: &str| {
        let text = std::fs::read_to_string(f.join(part(2))).unwrap();
        assert!(text.contains(from), "{text}");
        let changed = format!("parts/changed-{name}.json");
        std::fs::write(f.join(&changed), text.replace(from, to)).unwrap();
        changed
    };
    for (names, expected) in [
        (vec![part(1), part(2)], "found none of 3/3"),
        (vec![part(1), part(2), part(2), part(3)], "found 2/3 again"),
        (vec![part(1), "parts/part-7-2.json".to_owned()], "one of 3 parts"),
        (vec![part(1), changed("a", "\"scans\": 7", "\"scans\": 8")], "found another list (8 scans)"),
        (vec![part(1), changed("b", "gridding", "ls")], "found others"),
        (
            vec![part(1), changed("c", "\"number\": 5", "\"number\": 4"), part(3)],
            "each of 7 scans in one summary",
        ),
        (vec![part(1), changed("d", "\"schema\": 1", "\"schema\": 9")], "one of layout 9"),
        (vec!["out/a.json".to_owned()], "expected a summary of rayspin batch"),
        (vec!["none.json".to_owned()], "none.json: expected a summary"),
    ] {
        let (code, text) = merge(&names);
        assert!(code == 2 && text.contains(expected), "{expected}: {text}");
    }
    assert!(!f.join("no.json").exists());
    // A scan that failed is one in the whole, too.
    let (code, text) = merge(&[part(1), changed("e", "\"reconstructed\"", "\"failed\""), part(3)]);
    assert!(code == 1 && text.contains("2 of 7 scans failed"), "{text}");
}

#[test]
fn ct_scans_are_a_batch() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    std::fs::create_dir(f.join("scans")).unwrap();
    for (name, seed) in [("a", 1), ("b", 2)] {
        let line = format!(
            "simulate ct -q --no-record -o scans/{name}.h5 -g fan --matrix 24,24 --views 24 --seed {seed}"
        );
        ok(&line.split_whitespace().collect::<Vec<_>>(), f);
    }
    let mri = "simulate mri -q --no-record -o scans/mri.h5 --matrix 16,16 --coils 1";
    ok(&mri.split_whitespace().collect::<Vec<_>>(), f);
    // A folder stands for its CT scans.
    let line = "--ct scans -o out/{stem}.npy --device cpu --summary out/all.json -- -m cgls -i 3";
    let (code, text) = batch(f, line);
    assert!(code == 0 && text.contains("2 scans in") && text.contains("2 reconstructed"), "{text}");
    assert_eq!(names(&f.join("out")), ["a.json", "a.npy", "all.json", "b.json", "b.npy"]);
    assert_eq!(json(&f.join("out/all.json"))["kind"], "ct");
    let alone = "recon ct -q scans/b.h5 -o alone.npy --device cpu -m cgls -i 3";
    ok(&alone.split_whitespace().collect::<Vec<_>>(), f);
    assert_eq!(std::fs::read(f.join("out/b.npy")).unwrap(), std::fs::read(f.join("alone.npy")).unwrap());
    std::fs::write(f.join("out/b.npy"), "changed").unwrap();
    let (code, text) = batch(f, line);
    assert!(code == 0 && text.contains("1 reconstructed, 1 there before"), "{text}");
    // A pattern stands for all its files, and what is no CT scan fails.
    let (code, text) = batch(f, &line.replace("scans -o", "scans/*.h5 -o"));
    assert!(
        code == 1 && text.contains("scans/mri.h5: failed: ") && text.contains("2 there before"),
        "{text}"
    );
    refused(
        &"batch --ct scans -o out/{stem}.npy -- --iteration x".split(' ').collect::<Vec<_>>(),
        f,
        &["options of recon ct"],
    );
}

#[test]
fn what_cannot_be_a_batch_is_refused_before_anything_is_computed() {
    let folder = with_scans();
    let f = folder.path();
    for (line, expected) in [
        (
            "scans/*.dat -o out/{stem}.npy",
            "scans/*.dat: expected scans, a folder of scans or a pattern, found none",
        ),
        ("scans/*.h5 -o out/same.npy", "expected an image for each scan"),
        ("scans/*.h5 -o out/{stem}.npy --shard 3/2", "a job and the number of jobs"),
        ("scans/*.h5 -o out/{stem}.npy --shard 0/4", "a job and the number of jobs"),
        ("scans/*.h5 -o out/{stem}.npy --shard 5/4", "a job and the number of jobs"),
        ("scans/*.h5 -o out/{stem}.npy --shard a/b", "a job and the number of jobs"),
        ("scans/*.h5 -o out/{stem}.npy --merge a.json", "--merge"),
        ("-o out/{stem}.npy", "SCAN"),
        ("scans/*.h5 -o out/{stem}.npy -- -o all.npy", "--output: expected before --"),
        ("scans/*.h5 -o out/{stem}.npy -- --no-record", "expected a record beside each image"),
        ("scans/*.h5 -o out/{stem}.npy -- --device cpu", "--device: expected before --"),
        ("scans/*.h5 -o out/{stem}.npy -- --iteration x", "options of recon mri"),
    ] {
        let arguments: Vec<&str> = ["batch"].into_iter().chain(line.split_whitespace()).collect();
        refused(&arguments, f, &[expected]);
    }
}

/// Ten scans that take a while.
#[cfg(unix)]
fn slow_batch(folder: &Path) -> Vec<String> {
    std::fs::create_dir(folder.join("scans")).unwrap();
    let line =
        "simulate mri -q --no-record -o scans/s0.h5 --matrix 64,64 --trajectory radial --shots 64 --coils 4";
    ok(&line.split_whitespace().collect::<Vec<_>>(), folder);
    for number in 1..10 {
        std::fs::copy(folder.join("scans/s0.h5"), folder.join(format!("scans/s{number}.h5"))).unwrap();
    }
    let line = "batch scans/*.h5 -o out/{stem}.npy --device cpu -- -m ls --iterations 60 --tolerance 0";
    line.split_whitespace().map(str::to_owned).collect()
}

/// The images that are there, and whether each has its record.
#[cfg(unix)]
fn done(folder: &Path) -> usize {
    let there =
        std::fs::read_dir(folder.join("out")).map_or_else(|_| Vec::new(), |all| all.flatten().collect());
    there.iter().filter(|entry| entry.path().extension().is_some_and(|ending| ending == "npy")).count()
}

#[cfg(unix)]
#[test]
fn a_batch_that_was_interrupted_or_killed_goes_on_where_it_ended() {
    use std::process::{Command, Stdio};
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    let line = slow_batch(f);
    let mut was_killed = false;
    for signal in ["-INT", "-KILL", "-INT"] {
        was_killed |= signal == "-KILL";
        let before = done(f);
        let mut child = Command::new(PROGRAM)
            .args(&line)
            .current_dir(f)
            .stderr(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        // Until two more images are there.
        while done(f) < before + 2 {
            assert!(child.try_wait().unwrap().is_none(), "it ended with {} images", done(f));
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
        let status = child.wait().unwrap();
        assert_eq!(status.code(), (signal == "-INT").then_some(130), "{status:?}");
        assert!(done(f) < 10);
        for file in names(&f.join("out")) {
            let whole = file.ends_with(".npy") || file.ends_with(".json");
            // A process that is killed leaves its temporary file and its claims, which one that writes the
            // same file later removes.
            let left = file.ends_with(".part") || file.ends_with(".lock");
            assert!(whole || was_killed && left, "{signal}: {file}");
        }
    }
    let before = done(f);
    let (code, text) = batch(f, &line[1..].join(" "));
    assert_eq!(code, 0, "{text}");
    // An image whose record was not written is made again.
    let again: usize = text.lines().filter(|line| line.contains(" is there")).count();
    assert!(
        again <= before && again + 3 >= before && text.contains("10 scans in"),
        "{before} before: {text}"
    );
    let image = |number: usize| std::fs::read(f.join(format!("out/s{number}.npy"))).unwrap();
    assert!((1..10).all(|number| image(number) == image(0)));
    let whole = names(&f.join("out")).into_iter().filter(|file| !file.ends_with(".part"));
    assert_eq!(whole.count(), 20);
}

#[cfg(unix)]
#[test]
fn a_shard_that_was_killed_goes_on_where_it_ended() {
    use std::process::{Command, Stdio};
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    let line = slow_batch(f);
    let shard = |number: usize| {
        let at = line.iter().position(|word| word == "--").unwrap();
        let own =
            ["--shard".to_owned(), format!("{number}/2"), "--summary".to_owned(), format!("s{number}.json")];
        [&line[..at], &own[..], &line[at..]].concat()
    };
    let quiet = |line: &[String]| {
        let mut command = Command::new(PROGRAM);
        command.args(line).current_dir(f).stderr(Stdio::null()).stdout(Stdio::null());
        command
    };
    // Both at once, as two jobs are; the second one is killed.
    let mut first = quiet(&shard(1)).spawn().unwrap();
    let mut second = quiet(&shard(2)).spawn().unwrap();
    while !f.join("out/s1.json").exists() {
        assert!(second.try_wait().unwrap().is_none());
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    second.kill().unwrap();
    second.wait().unwrap();
    assert!(first.wait().unwrap().success() && !f.join("s2.json").exists());
    let (code, text) = batch(f, "--merge s1.json s2.json");
    assert!(code == 2 && text.contains("s2.json"), "{text}");
    let (code, text) = batch(f, &shard(2)[1..].join(" "));
    assert!(code == 0 && text.contains("5 scans in") && text.contains("there before"), "{text}");
    let (code, text) = batch(f, "--merge s1.json s2.json");
    assert!(code == 0 && text.contains("10 scans in"), "{text}");
    let whole = names(&f.join("out")).into_iter().filter(|file| !file.ends_with(".part"));
    assert_eq!(whole.count(), 20);
}

/// Two runs of other options on the same images: each image is of one of them, with its record.
#[cfg(unix)]
#[test]
fn two_runs_never_write_one_image_at_the_same_time() {
    use std::process::{Command, Stdio};
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    let line = slow_batch(f);
    let other: Vec<String> =
        line.iter().map(|word| if word == "60" { "59".into() } else { word.clone() }).collect();
    let spawn = |line: &[String]| {
        let mut command = Command::new(PROGRAM);
        command.args(line).current_dir(f).stderr(Stdio::piped()).stdout(Stdio::null());
        command.spawn().unwrap()
    };
    let both = [spawn(&line), spawn(&other), spawn(&line)];
    let mut left = 0;
    for child in both {
        let ended = child.wait_with_output().unwrap();
        let text = String::from_utf8_lossy(&ended.stderr).into_owned();
        let own =
            text.lines().filter(|line| line.contains(": left to another run, which writes out/s")).count();
        assert_eq!(ended.status.code(), Some(i32::from(own > 0)), "{text}");
        assert_eq!(
            own > 0,
            text.contains("of 10 scans left to another run: run the same command again"),
            "{text}"
        );
        assert!(!text.contains("failed"), "{text}");
        left += own;
    }
    // They began with the same scan.
    assert!(left > 0);
    for number in 0..10 {
        let record = json(&f.join(format!("out/s{number}.json")));
        let image = std::fs::read(f.join(format!("out/s{number}.npy"))).unwrap();
        let found = rayspin::report::record::FileEntry::of("", &image).blake3;
        assert_eq!(record["outputs"][0]["blake3"], found, "{number}");
    }
    assert_eq!(names(&f.join("out")).len(), 20);
    let (code, text) = batch(f, &line[1..].join(" "));
    assert!(code == 0 && !text.contains("left to"), "{text}");
}
