//! Files appear whole or not at all. A binary of its own: the registry of files in flight is the process's.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use rayspin_core::ErrorKind;
use rayspin_io::Error;
use rayspin_io::atomic::{remove_in_flight, write_stream_atomically};

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
    use std::time::{Duration, SystemTime};
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
