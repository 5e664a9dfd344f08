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

#[test]
fn jobs_share_a_list_of_scans() {
    let folder = with_scans();
    let f = folder.path();
    std::fs::remove_file(f.join("scans/c.h5")).unwrap();
    for (shard, made) in
        [("1/2", vec!["a.json", "a.npy", "d.json", "d.npy"]), ("2/2", vec!["b.json", "b.npy"])]
    {
        let out = format!("out{}", &shard[..1]);
        let line = format!("scans -o {out}/{{stem}}.npy --device cpu --shard {shard} -- -m gridding");
        assert_eq!(batch(f, &line).0, 0);
        assert_eq!(names(&f.join(out)), made);
    }
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
            // A process that is killed leaves its temporary file, which one that writes the same file later
            // removes.
            assert!(whole || was_killed && file.ends_with(".part"), "{signal}: {file}");
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
