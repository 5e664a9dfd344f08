//! Files appear whole or not at all. A binary of its own: the registry of files in flight is the process's.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use ndarray::ArrayD;
use rayspin_core::{C32, ErrorKind, Geometry, Image};
use rayspin_io::atomic::{
    at_once, hold, once_named, remove_in_flight, staged, together, write_stream_atomically,
};
use rayspin_io::{Error, cfl, write_image};

/// Tests that write take turns, since one of them removes whatever is in flight.
static TURN: Mutex<()> = Mutex::new(());

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|e| e.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn a_write_that_fails_leaves_the_old_file_and_nothing_else() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.bin");
    write_stream_atomically(&path, |f| f.write_all(b"old")).unwrap();
    let failed = write_stream_atomically(&path, |f| -> io::Result<()> {
        f.write_all(b"half")?;
        Err(io::ErrorKind::StorageFull.into())
    });
    assert!(matches!(failed, Err(Error::Write { .. })));
    assert_eq!(fs::read(&path).unwrap(), b"old");
    assert_eq!(names(folder.path()), ["x.bin"]);
}

#[test]
fn interruption_removes_files_in_flight() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.bin");
    let result = write_stream_atomically(&path, |f| {
        f.write_all(b"half")?;
        assert_eq!(names(folder.path()).len(), 1);
        assert_eq!(remove_in_flight(), 1);
        Ok(())
    });
    assert!(matches!(result, Err(Error::Write { .. })));
    assert!(names(folder.path()).is_empty());
    assert_eq!(remove_in_flight(), 0);
}

#[test]
fn a_missing_folder_is_bad_input_and_a_folder_is_no_file() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().unwrap();
    let missing = write_stream_atomically(&folder.path().join("no/x"), |_| Ok(())).unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::Input);
    assert!(missing.hint().unwrap().contains("make the folder"));
    let itself = write_stream_atomically(folder.path(), |_| Ok(())).unwrap_err();
    assert_eq!(itself.kind(), ErrorKind::Input);
}

#[cfg(unix)]
#[test]
fn links_are_followed_permissions_kept_and_devices_refused() {
    use std::os::unix::fs::PermissionsExt;
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().unwrap();
    let (real, link) = (folder.path().join("real"), folder.path().join("link"));
    fs::write(&real, b"old").unwrap();
    fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    write_stream_atomically(&link, |f| f.write_all(b"new")).unwrap();
    assert_eq!(fs::read(&real).unwrap(), b"new");
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o640);
    assert!(write_stream_atomically(Path::new("/dev/null"), |_| Ok(())).is_err());
}

#[test]
#[cfg(target_os = "linux")]
fn what_killed_processes_left_is_removed() {
    use std::time::SystemTime;
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.bin");
    let host: String = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let host: String = host.chars().filter(char::is_ascii_alphanumeric).take(16).collect();
    let old = SystemTime::now() - Duration::from_secs(600);
    let leave = |name: String, when: SystemTime| {
        let file = std::fs::File::create(folder.path().join(&name)).unwrap();
        file.set_modified(when).unwrap();
        folder.path().join(name)
    };
    // No process has a number beyond 2^22.
    let stale = leave(format!(".a.bin.{host}-4194999.x1.part"), old);
    let kept = [
        leave(format!(".a.bin.{host}-4194999.x2.part"), SystemTime::now()),
        leave(format!(".a.bin.{host}-{}.x3.part", std::process::id()), old),
        leave(".a.bin.elsewhere-4194999.x4.part".into(), old),
        leave(format!(".b.bin.{host}-4194999.x5.part"), old),
        leave(".a.bin.part".into(), old),
    ];
    rayspin_io::atomic::write_stream_atomically(&path, |file| std::io::Write::write_all(file, b"new"))
        .unwrap();
    assert!(!stale.exists());
    assert!(kept.iter().all(|file| file.exists()), "{kept:?}");
}

/// Writes a folder of slices and a pair of files, larger and smaller in turn.
fn write_in_turn(folder: &Path, turn: usize) -> Result<(), Error> {
    let n = 3 + turn % 2;
    let volume = Image::new(ArrayD::from_elem(vec![n, n, n], n as f32), Geometry::default()).unwrap();
    write_image(folder.join("x.dicom"), &volume, &Default::default())?;
    cfl::write(folder.join("x.cfl"), ArrayD::from_elem(vec![n, n], C32::ONE).view())?;
    write_image(folder.join("series.cfl"), &volume, &Default::default()).map(drop)
}

/// Fails unless the folder and the pairs come from one write.
fn expect_whole(folder: &Path) {
    let slices = names(&folder.join("x.dicom"));
    let sizes: Vec<u64> =
        slices.iter().map(|name| fs::metadata(folder.join("x.dicom").join(name)).unwrap().len()).collect();
    assert!(
        [3, 4].contains(&slices.len()) && sizes.iter().all(|size| *size == sizes[0]),
        "{slices:?} {sizes:?}"
    );
    for name in ["x.cfl", "series.cfl"] {
        let dims = cfl::read_dims(folder.join(name)).unwrap();
        let bytes = 8 * dims.iter().product::<usize>() as u64;
        assert_eq!(fs::metadata(folder.join(name)).unwrap().len(), bytes, "{name}: {dims:?}");
    }
}

#[test]
fn whoever_holds_the_names_finds_whole_outputs_alone() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    /// A writer in a loop of its own would outlive a check that fails.
    struct Stops<'a>(&'a AtomicBool);
    impl Drop for Stops<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    write_in_turn(f, 0).unwrap();
    let stopped = AtomicBool::new(false);
    let write_on = |first| {
        (first..).take_while(|_| !stopped.load(Ordering::Relaxed)).try_for_each(|turn| write_in_turn(f, turn))
    };
    std::thread::scope(|scope| {
        let _stops = Stops(&stopped);
        let writer = scope.spawn(|| write_on(1));
        let (mut seen, start) = ([0; 2], Instant::now());
        // Until names changed often between two looks.
        while start.elapsed() < Duration::from_secs(60) && seen.iter().any(|&count| count < 40) {
            let held = hold();
            expect_whole(f);
            seen[names(&f.join("x.dicom")).len() % 2] += 1;
            drop(held);
            // Locks go to whoever asks first: without a pause that is this thread again.
            std::thread::sleep(Duration::from_micros(50));
        }
        assert!(seen.iter().all(|&count| count > 0), "{seen:?}");
        let mut held = hold();
        assert!(held.remove_in_flight().is_empty());
        expect_whole(f);
        assert_eq!(names(f), ["series.cfl", "series.hdr", "x.cfl", "x.dicom", "x.hdr"]);
        drop(held);
        // A writer without its temporary file fails, in whichever step it is.
        let expect_interrupted = |writer: std::thread::ScopedJoinHandle<'_, Result<(), Error>>| {
            while !writer.is_finished() {
                remove_in_flight();
            }
            let error = writer.join().unwrap().unwrap_err();
            assert!(matches!(&error, Error::Write { .. }) && error.kind() == ErrorKind::Failure, "{error}");
        };
        expect_interrupted(writer);
        for first in 0..200 {
            expect_interrupted(scope.spawn(move || write_on(first)));
        }
    });
    expect_whole(f);
    assert_eq!(names(f), ["series.cfl", "series.hdr", "x.cfl", "x.dicom", "x.hdr"]);
}

#[test]
fn outputs_that_belong_together_get_their_names_in_one_step() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    let write = |name: &str, text: &'static str| {
        write_stream_atomically(&f.join(name), |file| file.write_all(text.as_bytes()))
    };
    let text = |name: &str| fs::read_to_string(f.join(name)).unwrap();
    write("a", "old").unwrap();
    let done = together(|| {
        write("a", "new")?;
        at_once(|| write("now", "there"))?;
        // A pair within a run waits for the run.
        together(|| write("b", "new").and_then(|()| write("c", "new")))?;
        write_image(
            f.join("x.dicom"),
            &Image::new(ArrayD::<f32>::zeros(vec![2, 3, 3]), Geometry::default()).unwrap(),
            &Default::default(),
        )?;
        assert_eq!((text("a").as_str(), text("now").as_str()), ("old", "there"));
        assert!(!f.join("b").exists() && !f.join("c").exists() && !f.join("x.dicom").exists());
        assert_eq!(fs::read_to_string(staged(f.join("a"))).unwrap(), "new");
        assert!(staged(f.join("x.dicom/IM000002.dcm")).is_file() && staged(f.join("d")) == f.join("d"));
        Ok::<_, Error>(())
    });
    assert!(done.is_ok());
    assert_eq!(names(f), ["a", "b", "c", "now", "x.dicom"]);
    assert_eq!((text("a"), text("c")), ("new".into(), "new".into()));

    // Nothing of what fails, is interrupted or panics stays.
    let failed = together(|| write("a", "half").and_then(|()| write("no/d", "half")));
    assert!(failed.is_err());
    let interrupted = together(|| {
        write("a", "half")?;
        write("d", "half")?;
        assert_eq!(remove_in_flight(), 2);
        Ok::<_, Error>(())
    });
    assert!(matches!(interrupted, Err(Error::Write { .. })));
    let panicked = std::panic::catch_unwind(|| {
        together(|| -> Result<(), Error> {
            write("a", "half")?;
            panic!("stops here")
        })
    });
    assert!(panicked.is_err());
    assert_eq!(
        (names(f), text("a").as_str()),
        (["a", "b", "c", "now", "x.dicom"].map(String::from).into(), "new")
    );
    write("a", "again").unwrap();
    assert_eq!(text("a"), "again");
}

#[cfg(unix)]
#[test]
fn a_link_to_a_folder_is_followed() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    fs::create_dir(f.join("disk")).unwrap();
    std::os::unix::fs::symlink(f.join("disk"), f.join("x.dicom")).unwrap();
    for slices in [2, 1] {
        let volume = Image::new(ArrayD::<f32>::zeros(vec![slices, 3, 3]), Geometry::default()).unwrap();
        write_image(f.join("x.dicom"), &volume, &Default::default()).unwrap();
        assert_eq!((names(&f.join("disk")).len(), names(f)), (slices, vec!["disk".into(), "x.dicom".into()]));
    }
    assert!(fs::symlink_metadata(f.join("x.dicom")).unwrap().is_symlink());
}

#[cfg(unix)]
#[test]
fn a_link_to_what_is_not_there_yet_is_followed() {
    use std::os::unix::fs::symlink;
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    fs::create_dir(f.join("disk")).unwrap();
    symlink("second.npy", f.join("first.npy")).unwrap();
    symlink("disk/file.npy", f.join("second.npy")).unwrap();
    symlink(f.join("disk/slices.dicom"), f.join("x.dicom")).unwrap();
    symlink("gone/file.npy", f.join("lost.npy")).unwrap();
    symlink("round.npy", f.join("round.npy")).unwrap();
    let write = |name: &str| write_stream_atomically(&f.join(name), |file| file.write_all(b"new"));
    // Both are one output.
    assert!(
        rayspin_io::expect_apart::<&Path, _>(&[], &[f.join("first.npy"), f.join("disk/file.npy")]).is_err()
    );
    for _ in 0..2 {
        write("first.npy").unwrap();
        let volume = Image::new(ArrayD::<f32>::zeros(vec![2, 3, 3]), Geometry::default()).unwrap();
        write_image(f.join("x.dicom"), &volume, &Default::default()).unwrap();
        assert_eq!(names(&f.join("disk")), ["file.npy", "slices.dicom"]);
        assert_eq!(fs::read(f.join("disk/file.npy")).unwrap(), b"new");
        assert_eq!(names(&f.join("disk/slices.dicom")).len(), 2);
    }
    assert!(write("lost.npy").is_err() && write("round.npy").is_err());
    assert!(
        names(f)
            .iter()
            .all(|name| fs::symlink_metadata(f.join(name)).unwrap().is_symlink() || name == "disk")
    );
}

#[test]
fn a_name_that_cannot_be_given_keeps_no_other_output_from_its_name() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path().to_owned();
    let said = std::rc::Rc::new(std::cell::Cell::new(0));
    let run = |blocked: bool| {
        together(|| {
            for name in ["a", "b", "c"] {
                write_stream_atomically(&f.join(name), |file| file.write_all(b"new"))?;
            }
            let (counts, last) = (said.clone(), f.join("c"));
            together(|| {
                once_named(move || {
                    assert!(last.exists());
                    counts.set(counts.get() + 1);
                });
                Ok::<_, Error>(())
            })?;
            assert_eq!(said.get(), 0);
            // Another program makes a folder of this name meanwhile.
            if blocked {
                fs::create_dir(f.join("b")).unwrap()
            }
            Ok::<_, Error>(())
        })
    };
    let error = run(true).unwrap_err().to_string();
    assert!(error.contains("b") && names(&f) == ["a", "b", "c"] && f.join("b").is_dir(), "{error}");
    // A run that has lost an output does not say that it is done.
    assert_eq!(said.get(), 0);
    fs::remove_dir(f.join("b")).unwrap();
    run(false).unwrap();
    assert_eq!(said.get(), 1);
}

#[test]
fn one_at_a_time_claims_an_output() {
    use rayspin_io::atomic::Claim;
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().unwrap();
    let [a, b] = ["a.npy", "b.npy"].map(|name| folder.path().join(name));
    // Of many threads that ask at the same moment, one at a time has it.
    let (inside, turns) = (std::sync::atomic::AtomicUsize::new(0), std::sync::atomic::AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                while turns.load(Ordering::SeqCst) < 200 {
                    let Some(claim) = Claim::on(&[&a, &b]).unwrap() else { continue };
                    assert!(claim.is_certain());
                    assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                    turns.fetch_add(1, Ordering::SeqCst);
                    inside.fetch_sub(1, Ordering::SeqCst);
                }
            });
        }
    });
    assert!(names(folder.path()).is_empty());
    // Who gets one of two outputs keeps neither.
    let held = Claim::on(&[&b]).unwrap().unwrap();
    assert!(Claim::on(&[&a, &b]).unwrap().is_none() && Claim::on(&[&a]).unwrap().is_some());
    drop(held);
    // What a killed process has left keeps nobody out, and goes.
    fs::write(folder.path().join(".a.npy.lock"), "").unwrap();
    Claim::clear(&[&a, &b]);
    assert!(names(folder.path()).is_empty());
    // An interruption removes the file of a claim.
    let held = Claim::on(&[&a]).unwrap();
    assert_eq!((remove_in_flight(), names(folder.path()).len()), (1, 0));
    drop(held);
    assert!(Claim::on(&[folder.path().join("no/a.npy")]).is_err());
}
