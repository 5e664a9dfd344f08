//! What the targets share: a file for the reader, in memory where the system has a place for it.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use rayspin_device::Device;
use rayspin_io::{FORMATS, Format};

#[allow(dead_code, reason = "shared with tests and with the example that writes seeds")]
#[path = "../../crates/files/io/tests/formats/samples.rs"]
mod samples;

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
    match rayspin_io::Projections::open(path).and_then(|all| all.into_scan(DEVICE.cpu_side())) {
        Ok(scan) => drop(scan.into_lines(DEVICE.cpu_side(), &mut Vec::new())),
        Err(error) => check_error(&error),
    }
}

static DEVICE: LazyLock<Device> = LazyLock::new(|| Device::cpu_with_threads(1).expect("a thread"));

/// The names of the files of each kind of sample that the format named by RAYSPIN_FORMAT has, or each format
/// without a name.
static NAMES: LazyLock<Vec<Vec<String>>> = LazyLock::new(|| {
    let wanted = std::env::var("RAYSPIN_FORMAT").ok();
    let chosen = |format: &&Format| wanted.as_deref().is_none_or(|name| name == format.name);
    let folder = tempfile::tempdir().expect("a folder for samples");
    let of = |format: &Format| samples::samples(format, folder.path());
    let mut names: Vec<Vec<String>> = FORMATS
        .iter()
        .filter(chosen)
        .flat_map(of)
        .map(|files| files.into_iter().map(|(name, _)| name).collect())
        .collect();
    names.sort();
    names.dedup();
    assert!(!names.is_empty(), "RAYSPIN_FORMAT names a format that is read: {wanted:?}");
    names
});

/// Reads the files of an input, under the names of each kind of sample that has as many, in every way there
/// is.
pub fn read_files(input: &[u8]) {
    let files = samples::apart(input);
    for names in NAMES.iter().filter(|names| names.len() == files.len()) {
        for (name, bytes) in names.iter().zip(&files) {
            match name.ends_with(".gz") && !bytes.starts_with(&[0x1f, 0x8b]) {
                true => file(name, &compressed(bytes)),
                false => file(name, bytes),
            };
        }
        samples::read_every_way(&folder().join(&names[0]), &DEVICE, &mut check_error);
    }
}

fn compressed(bytes: &[u8]) -> Vec<u8> {
    let mut stream = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    stream.write_all(bytes).expect("memory");
    stream.finish().expect("memory")
}
