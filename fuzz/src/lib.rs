//! What the targets do with an input, and the seeds that they start from. A test runs all of it on every
//! change (`crates/files/io/tests/fuzz.rs`), with files that are altered at random.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use rayspin_core::TrajectoryUnits;
use rayspin_device::Device;
use rayspin_io::ismrmrd::ReadOptions;
use rayspin_io::pulseq::Sequence;
use rayspin_io::{FORMATS, Format};

#[allow(dead_code, reason = "shared with tests")]
#[path = "../../crates/files/io/tests/formats/samples.rs"]
mod samples;
pub mod seeds;
#[path = "../../crates/files/io/tests/ismrmrd/ways.rs"]
mod ways;

/// A target.
pub type Target = fn(&[u8]);

/// The targets by their names. `format` takes files of the format that RAYSPIN_FORMAT names, or of any.
pub const TARGETS: [(&str, Target); 7] = [
    ("format", format),
    ("ismrmrd", ismrmrd),
    ("data_exchange", data_exchange),
    ("rtk", rtk),
    ("pulseq", pulseq),
    ("xml", xml),
    ("units", units),
];

/// A folder of this process, on a memory file system where there is one.
pub fn folder() -> PathBuf {
    let base = if Path::new("/dev/shm").is_dir() { PathBuf::from("/dev/shm") } else { std::env::temp_dir() };
    let folder = base.join(format!("rayspin-fuzz-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder for the reader's files");
    folder
}

/// Writes `bytes` as a file of this name and returns its path.
fn file(name: &str, bytes: &[u8]) -> PathBuf {
    let path = folder().join(name);
    std::fs::write(&path, bytes).expect("room for the reader's file");
    path
}

/// An error's text must be one line that names the file.
fn check_error(error: &rayspin_io::Error) {
    let text = error.to_string();
    assert!(!text.contains('\n') && text.contains("rayspin-fuzz-"), "{text:?}");
}

/// An ISMRMRD file: its scan in every way of reading, its summary, the first image; its images.
pub fn ismrmrd(bytes: &[u8]) {
    let path = file("scan.h5", bytes);
    let options = ReadOptions { memory_limit: Some(1 << 30), ..Default::default() };
    match ways::read(&path, &options) {
        Ok(scan) => {
            drop(rayspin_io::ismrmrd::summarise(&scan));
            if let Ok(frames) = scan.frames() {
                let matrix = |n: [usize; 3]| n.iter().product::<usize>() < 1 << 22;
                let small =
                    |e: &rayspin_mri::scan::Encoding| matrix(e.encoded.matrix) && matrix(e.recon.matrix);
                if let Some(label) = frames.labels().next()
                    && scan.header.encodings.iter().all(small)
                {
                    let _ = frames.assemble(label, &Default::default(), &mut Vec::new());
                }
            }
        }
        Err(error) => check_error(&error),
    }
    if let Err(error) = rayspin_io::read_image(&path) {
        check_error(&error);
    }
}

/// A CT scan in a Data Exchange or NXtomo file, and its line integrals.
pub fn data_exchange(bytes: &[u8]) {
    let path = file("scan.h5", bytes);
    match rayspin_io::Projections::open(&path).and_then(|all| all.into_scan(DEVICE.cpu_side())) {
        Ok(scan) => drop(scan.into_lines(DEVICE.cpu_side(), &mut Vec::new())),
        Err(error) => check_error(&error),
    }
}

/// A geometry file of RTK, and the geometry in it.
pub fn rtk(bytes: &[u8]) {
    let path = file("geometry.xml", bytes);
    match rayspin_io::rtk::read(&path) {
        Ok(found) => {
            let radius_mm = found.radius_mm;
            let detector = rayspin_core::Detector { rows: 3, columns: 4, pitch_mm: [1.0; 2], radius_mm };
            if let Ok(geometry) = rayspin_ct::geometry::from_rtk(&found.projections, detector, [0.0; 2]) {
                let _ = rayspin_ct::geometry::to_rtk(&geometry);
            }
        }
        Err(error) => check_error(&error),
    }
}

/// A sequence of Pulseq.
pub fn pulseq(bytes: &[u8]) {
    let path = file("a.seq", bytes);
    match Sequence::read(&path) {
        Ok(sequence) => drop((sequence.readouts().len(), sequence.fov_mm())),
        Err(error) => check_error(&error),
    }
}

/// The XML header of an ISMRMRD scan.
pub fn xml(bytes: &[u8]) {
    let path = Path::new("rayspin-fuzz-header.xml");
    if let Err(error) = rayspin_io::ismrmrd::parse_header(path, bytes) {
        check_error(&error);
    }
}

/// Trajectory units as text.
pub fn units(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(units) = text.parse::<TrajectoryUnits>() {
        assert_eq!(units.to_string().parse(), Ok(units));
        let factor = units.to_cycles_per_fov(128, 240.0);
        assert!(factor.is_finite() && factor > 0.0);
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

/// The files of an input, under the names of each kind of sample that has as many, in every way there
/// is.
pub fn format(input: &[u8]) {
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
