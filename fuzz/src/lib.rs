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

/// Reads a CT scan of any format, and its line integrals.
pub fn read_projections(path: &Path) {
    let device = rayspin_device::Device::cpu_with_threads(1).expect("a thread");
    match rayspin_io::Projections::open(path).and_then(|all| all.into_scan(device.cpu_side())) {
        Ok(scan) => drop(scan.into_lines(device.cpu_side(), &mut Vec::new())),
        Err(error) => check_error(&error),
    }
}
