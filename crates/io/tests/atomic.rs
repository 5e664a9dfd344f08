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
