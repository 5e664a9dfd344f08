//! What the targets share: a file for the reader, in memory where the system has a place for it.

use std::path::{Path, PathBuf};

/// A folder of this process, on a memory file system where there is one.
fn folder() -> PathBuf {
    let base = if Path::new("/dev/shm").is_dir() { PathBuf::from("/dev/shm") } else { std::env::temp_dir() };
    let folder = base.join(format!("rayspin-fuzz-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder for the reader's files");
    folder
}

/// Writes `bytes` as a file of this name and returns its path.
pub fn file(name: &str, bytes: &[u8]) -> PathBuf {
    let path = folder().join(name);
    std::fs::write(&path, bytes).expect("room for the reader's file");
    path
}

/// An error's text must be one line that names the file.
pub fn check_error(error: &rayspin_io::Error) {
    let text = error.to_string();
    assert!(!text.contains('\n') && text.contains("rayspin-fuzz-"), "{text:?}");
}
