//! Runs that end early: readers that leave, folders that are locked, interruptions, kills.

use std::path::Path;
use std::process::Command;

use crate::{PROGRAM, files, ok, rayspin, refused, simulated, with_scan};

#[cfg(unix)]
#[test]
fn a_reader_that_leaves_early_is_no_error() {
    let folder = with_scan();
    let command = env!("CARGO_BIN_EXE_rayspin");
    for line in ["completions bash", "metrics truth.nii.gz truth.nii.gz", "info scan.h5"] {
        let script = format!("({command} {line}; echo $? >code) 2>stderr | true");
        assert!(
            Command::new("sh").args(["-c", &script]).current_dir(folder.path()).status().unwrap().success()
        );
        let text = std::fs::read_to_string(folder.path().join("stderr")).unwrap();
        assert!(!text.contains("panicked"), "{line}: {text}");
    }
}

#[cfg(unix)]
#[test]
fn a_folder_that_may_not_be_written_is_a_failure_and_keeps_the_old_file() {
    use std::os::unix::fs::PermissionsExt;
    let folder = with_scan();
    let locked = folder.path().join("locked");
    std::fs::create_dir(&locked).unwrap();
    std::fs::write(locked.join("x.npy"), "old").unwrap();
    std::fs::set_permissions(&locked, std::fs::Permissions::from_mode(0o555)).unwrap();
    // Root writes everywhere: there is nothing to see then.
    if std::fs::write(locked.join("probe"), "").is_err() {
        let output = rayspin(&["recon", "mri", "scan.h5", "-o", "locked/x.npy"], folder.path());
        assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(std::fs::read(locked.join("x.npy")).unwrap(), b"old");
    }
    std::fs::set_permissions(&locked, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[cfg(unix)]
#[test]
fn an_interrupted_run_leaves_nothing_half_written() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    ok(
        &[
            "-q",
            "simulate",
            "mri",
            "-o",
            "scan.h5",
            "--matrix",
            "96,96",
            "--coils",
            "6",
            "-t",
            "radial",
            "--no-record",
        ],
        f,
    );
    // At different moments: while starting, reading, iterating, writing.
    for milliseconds in [1, 60, 200, 500] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_rayspin"))
            .args(["recon", "mri", "scan.h5", "-o", "x.nii.gz", "-o", "x.png", "--method", "ls"])
            .args(["--iterations", "200", "--tolerance", "0", "-W", "differences"])
            .current_dir(f)
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(std::time::Duration::from_millis(milliseconds));
        let pid = child.id().to_string();
        assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
        let status = child.wait().unwrap();
        // Before the handler is installed the signal itself ends the process; a fast machine may have
        // finished.
        assert!(
            status.code().is_none_or(|code| code == 130 || code == 0),
            "after {milliseconds} ms: {status:?}"
        );
        for file in files(f) {
            let name = file.file_name().unwrap().to_string_lossy().into_owned();
            assert!(
                ["scan.h5", "x.nii.gz", "x.png", "x.json"].contains(&&*name),
                "after {milliseconds} ms: {name}"
            );
            // What is there is whole.
            if name != "x.json" && name != "x.png" {
                ok(&["info", &name], f);
            }
        }
    }
}

/// The signal comes while the temporary files are there, at a later moment of this time in each round.
#[cfg(unix)]
#[test]
fn an_interrupted_folder_or_pair_is_the_old_one_or_the_new_one() {
    use rayspin::core::{Geometry, Image};
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    for (name, slices) in [("old.nii", 2), ("new.nii", 24)] {
        let volume =
            ndarray::ArrayD::from_shape_fn(vec![slices, 48, 48], |i| (7 * i[0] + i[1] * i[2]) as f32);
        let image = Image::new(volume, Geometry::default()).unwrap();
        rayspin::io::write_image(f.join(name), &image, &Default::default()).unwrap();
    }
    for output in ["x.dicom", "x.cfl"] {
        ok(&["convert", "old.nii", output, "-q"], f);
        for round in 0..6 {
            let mut child = Command::new(PROGRAM)
                .args(["convert", "new.nii", output, "-q"])
                .current_dir(f)
                .stderr(std::process::Stdio::null())
                .spawn()
                .unwrap();
            let begun =
                || files(f).iter().any(|file| file.extension().is_some_and(|ending| ending == "part"));
            while !begun() && child.try_wait().unwrap().is_none() {}
            std::thread::sleep(std::time::Duration::from_millis(4 * round));
            let signal = ["-INT", "-TERM", "-HUP"][round as usize % 3];
            // It may have ended.
            let _ = Command::new("kill")
                .args([signal, &child.id().to_string()])
                .stderr(std::process::Stdio::null())
                .status();
            let code = child.wait().unwrap().code();
            assert!(matches!(code, Some(130 | 0)), "{output} {round}: {code:?}");
            let image = rayspin::io::read_image(f.join(output)).unwrap().image;
            let slices = image.shape_zyx()[0];
            assert!(
                slices == 24 || (slices == 2 && code == Some(130)),
                "{output} {round}: {slices} slices, {code:?}"
            );
            assert!(!begun(), "{output} {round}: {:?}", files(f));
        }
    }
}

/// Runs the command and kills it after each of some times; `look` judges what is there after each.
#[cfg(unix)]
fn killed(arguments: &[&str], folder: &Path, rounds: u64, step_ms: f64, mut look: impl FnMut(u64)) {
    for round in 0..rounds {
        let mut child = Command::new(env!("CARGO_BIN_EXE_rayspin"))
            .args(arguments)
            .current_dir(folder)
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(std::time::Duration::from_secs_f64(1e-3 * step_ms * round as f64));
        child.kill().unwrap();
        child.wait().unwrap();
        look(round);
    }
}

#[test]
#[cfg(unix)]
fn a_killed_run_leaves_the_old_file_or_the_new_one() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    simulated(f, "--matrix 160,160,8 --dims 2 --coils 2");
    let recon =
        ["recon", "mri", "scan.h5", "-q", "-o", "image.nii.gz", "-o", "image.npy", "--method", "cartesian"];
    ok(&recon, f);
    let whole: Vec<_> = ["image.nii.gz", "image.npy"].map(|n| std::fs::read(f.join(n)).unwrap()).into();
    for (arguments, names) in [
        (&recon[..], vec!["image.nii.gz", "image.npy", "image.json"]),
        (&["convert", "image.npy", "other.nii.gz"][..], vec!["other.nii.gz"]),
    ] {
        let new: Vec<u8> = if names[0] == "image.nii.gz" {
            whole[0].clone()
        } else {
            // The last run that was killed may have left the old one.
            std::fs::write(f.join("image.npy"), &whole[1]).unwrap();
            ok(arguments, f);
            std::fs::read(f.join("other.nii.gz")).unwrap()
        };
        let (mut old, mut done) = (0, 0);
        for name in &names {
            // An empty record is replaced; other text belongs to another program.
            std::fs::write(f.join(name), if name.ends_with(".json") { "" } else { "old" }).unwrap();
        }
        killed(arguments, f, 12, 12.0, |_| {
            let found = std::fs::read(f.join(names[0])).unwrap();
            old += usize::from(found == b"old");
            done += usize::from(found == new);
            assert!(found == b"old" || found == new, "{} bytes of {}", found.len(), names[0]);
            if let Some(record) = names.get(2) {
                let text = std::fs::read(f.join(record)).unwrap();
                assert!(text.is_empty() || serde_json::from_slice::<serde_json::Value>(&text).is_ok());
                let array = std::fs::read(f.join(names[1])).unwrap();
                assert!(array == b"old" || array == whole[1]);
            }
            for file in files(f) {
                let name = file.file_name().unwrap().to_str().unwrap().to_owned();
                let known = ["scan.h5", "image.nii.gz", "image.npy", "image.json", "other.nii.gz"];
                assert!(
                    known.contains(&&*name) || (name.starts_with('.') && name.ends_with(".part")),
                    "{name}"
                );
            }
            std::fs::write(f.join(names[0]), b"old").unwrap();
        });
        // Killed at once nothing is written yet.
        assert!(old > 0, "{old} old, {done} new");
    }
}

/// A limit of the size of files ends a write as a full disk does.
#[cfg(unix)]
#[test]
fn a_full_disk_is_a_failure_that_leaves_the_old_file() {
    let folder = with_scan();
    let f = folder.path();
    for output in ["x.npy", "x.nii.gz", "x.h5", "x.png", "x.dicom"] {
        let old = f.join(output);
        if output != "x.dicom" {
            std::fs::write(&old, "old").unwrap();
        }
        let before = files(f);
        // One block of 512 bytes; a signal that nobody ignores would end the process.
        let script = format!(
            "trap '' XFSZ; ulimit -f 1; exec {PROGRAM} recon mri scan.h5 -q --no-record -o {output} 2>text"
        );
        let status = Command::new("sh").args(["-c", &script]).current_dir(f).status().unwrap();
        let text = std::fs::read_to_string(f.join("text")).unwrap();
        std::fs::remove_file(f.join("text")).unwrap();
        assert_eq!(status.code(), Some(1), "{output}: {text}");
        assert!(text.starts_with("error: ") && text.contains(output) && !text.contains("panicked"), "{text}");
        assert_eq!(files(f), before, "{output}");
        if output != "x.dicom" {
            assert_eq!(std::fs::read(&old).unwrap(), b"old");
        }
    }
}

/// The record of before would tell of an image that is gone.
#[cfg(unix)]
#[test]
fn a_run_that_fails_leaves_no_old_record_beside_a_new_image() {
    let folder = with_scan();
    let f = folder.path();
    let line = "recon mri scan.h5 -o x.png -o x.npy";
    ok(&format!("{line} -q -m gridding").split(' ').collect::<Vec<_>>(), f);
    let before = ["x.png", "x.npy"].map(|name| std::fs::read(f.join(name)).unwrap());
    // The picture has room, the numbers have none.
    let script = format!("trap '' XFSZ; ulimit -f 16; exec {PROGRAM} {line} -m ls --iterations 3 2>text");
    let status = Command::new("sh").args(["-c", &script]).current_dir(f).status().unwrap();
    let text = std::fs::read_to_string(f.join("text")).unwrap();
    assert_eq!(status.code(), Some(1), "{text}");
    let now = ["x.png", "x.npy"].map(|name| std::fs::read(f.join(name)).unwrap());
    assert!(now[0] != before[0] && now[1] == before[1] && !f.join("x.json").exists(), "{text}");
    assert!(text.contains("note: x.json: removed") && !text.contains("x.png, x.npy"), "{text}");
    // A run that replaces nothing leaves the record.
    ok(&format!("{line} -q -m gridding").split(' ').collect::<Vec<_>>(), f);
    let script = format!("trap '' XFSZ; ulimit -f 1; exec {PROGRAM} {line} -q -m ls 2>text");
    assert!(!Command::new("sh").args(["-c", &script]).current_dir(f).status().unwrap().success());
    assert!(f.join("x.json").exists());
}

/// Whoever opens a pipe waits for another program, and a device may have no end.
#[cfg(unix)]
#[test]
fn what_is_no_file_is_refused_before_the_work_starts() {
    let folder = with_scan();
    let f = folder.path();
    assert!(Command::new("mkfifo").arg(f.join("pipe.npy")).status().unwrap().success());
    std::os::unix::fs::symlink("/dev/zero", f.join("zero.json")).unwrap();
    std::os::unix::fs::symlink("pipe.npy", f.join("x.json")).unwrap();
    std::fs::create_dir_all(f.join("o.json")).unwrap();
    std::fs::create_dir_all(f.join("pair.hdr")).unwrap();
    std::fs::write(f.join("file.dicom"), "").unwrap();
    std::fs::write(f.join("notes.txt"), "of a user").unwrap();
    let before = files(f);
    for (line, found) in [
        ("recon mri scan.h5 -o pipe.npy", "a pipe or a device"),
        ("recon mri scan.h5 -o o.npy --record pipe.npy", "a pipe or a device"),
        ("recon mri scan.h5 -o o.npy --record zero.json", "a pipe or a device"),
        ("recon mri scan.h5 -o o.npy --record o.json", "a folder"),
        ("recon mri scan.h5 -o o.npy --record notes.txt", "another file"),
        ("recon mri scan.h5 -o o.npy/", "the name of a folder"),
        ("recon mri scan.h5 -o pair.cfl", "pair.hdr: cannot write: expected a file name, found a folder"),
        ("recon mri scan.h5 -o file.dicom", "expected a folder name, found a file"),
        ("simulate mri -o s.h5 --truth pipe.npy", "a pipe or a device"),
        ("simulate ct -o s.h5 --truth t.npy/.", "the name of a folder"),
        ("render truth.nii.gz -o r.png/", "the name of a folder"),
        ("filter truth.nii.gz -o pipe.npy -s median", "a pipe or a device"),
        ("convert truth.nii.gz pipe.npy", "a pipe or a device"),
    ] {
        refused(&line.split(' ').collect::<Vec<_>>(), f, &["expected", found]);
        assert_eq!(files(f), before, "{line}");
    }
    // The record of an image is named after what is there.
    for image in ["zero", "x", "o"] {
        let output = format!("{image}.npy");
        ok(&["recon", "mri", "scan.h5", "-q", "-m", "gridding", "-o", &output], f);
        assert!(f.join(format!("{image}.npy.json")).is_file(), "{image}");
    }
    for line in ["rerun o.npy.json --out scan.h5", "demo --out notes.txt"] {
        refused(&line.split(' ').collect::<Vec<_>>(), f, &["expected a folder, found a file"]);
    }
}

#[test]
fn runs_that_write_one_output_leave_the_image_of_one_of_them() {
    let folder = with_scan();
    let f = folder.path();
    let methods = ["gridding", "ls", "cg-sense"];
    let alone = methods.map(|method| {
        let output = format!("{method}.npy");
        ok(&["recon", "mri", "scan.h5", "-q", "--no-record", "-m", method, "-o", &output], f);
        std::fs::read(f.join(output)).unwrap()
    });
    for _ in 0..4 {
        let together = methods.map(|method| {
            let mut run = Command::new(PROGRAM);
            run.args(["recon", "mri", "scan.h5", "-q", "-m", method, "-o", "one.npy"]).current_dir(f);
            run.spawn().unwrap()
        });
        for mut run in together {
            assert!(run.wait().unwrap().success());
        }
        let found = std::fs::read(f.join("one.npy")).unwrap();
        assert!(alone.contains(&found), "{} bytes of none", found.len());
        let record = std::fs::read(f.join("one.json")).unwrap();
        assert!(serde_json::from_slice::<serde_json::Value>(&record).is_ok());
        let left: Vec<_> =
            files(f).into_iter().filter(|file| file.to_string_lossy().ends_with(".part")).collect();
        assert!(left.is_empty(), "{left:?}");
    }
}
