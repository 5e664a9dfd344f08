//! Cut and altered files of every row of the table: an error or a sound result, never a panic, and memory
//! in proportion to the file.

use std::path::Path;

use ndarray::{Array1, Array3, ArrayD};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayspin_core::{C32, Monitor};
use rayspin_device::Device;
use rayspin_io::{
    AnyImage, Error, FORMATS, Format, Projections, ScanFile, ScanOptions, detect, read_any_image, read_maps,
    read_scan,
};

use crate::samples::{self, Files, apart, joined, read_every_way};
use crate::support::put;

/// A field of /proc/self/status in bytes; 0 if the field or the file is missing.
fn status(field: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with(field)).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|v| v.parse::<u64>().ok()).unwrap_or(0) * 1024
}

/// A folder in memory where the system has a place for it: thousands of files are written.
fn folder() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory).unwrap() } else { tempfile::tempdir().unwrap() }
}

/// The formats with the samples of each. Numbers without a header are no format on their own.
fn all(folder: &Path) -> Vec<(&'static Format, Vec<Files>)> {
    let read = |format: &&Format| {
        format.has_header()
            && (format.reads_images()
                || format.reads_arrays()
                || format.reads_projections()
                || format.reads_scans())
    };
    let of = |format: &'static Format| (format, samples::samples(format, folder));
    let all: Vec<_> = FORMATS.iter().filter(read).map(of).collect();
    for (format, samples) in &all {
        assert!(!samples.is_empty(), "{format} is read and has no sample");
    }
    all
}

fn lay(folder: &Path, files: &Files) -> std::path::PathBuf {
    files.iter().for_each(|(name, bytes)| put(&folder.join(name), bytes));
    folder.join(&files[0].0)
}

/// What a file holds.
#[derive(PartialEq)]
enum Read {
    Image(AnyImage),
    Maps(ArrayD<C32>),
    /// The line integrals of a CT scan.
    Scan(Array3<f32>),
}

impl Read {
    /// The numbers of an image or of maps.
    fn count(&self) -> usize {
        match self {
            Self::Image(AnyImage::Real(image)) => image.data().len(),
            Self::Image(AnyImage::Complex(image)) => image.data().len(),
            Self::Maps(maps) => maps.len(),
            Self::Scan(_) => 0,
        }
    }
}

/// Whether a format is a scanner's own: it holds a raw scan, and nothing else. What is whole of a file that
/// was cut off is used.
fn is_of_scanner(format: &Format) -> bool {
    format.reads_scans() && !format.reads_images() && !format.reads_projections()
}

/// The samples of all readouts.
fn samples_of(file: ScanFile) -> Read {
    let samples: Vec<C32> = match file {
        ScanFile::Scan(scan) => scan.acquisitions.iter().flat_map(|one| one.data.iter().copied()).collect(),
        _ => panic!("expected a scan with a header"),
    };
    Read::Maps(Array1::from_vec(samples).into_dyn())
}

fn read(path: &Path, device: &Device) -> Result<Read, Error> {
    let format = detect(path)?;
    if is_of_scanner(format) {
        return read_scan(path, &ScanOptions::default(), &Monitor::silent()).map(samples_of);
    }
    if !format.reads_images() {
        let scan = Projections::open(path)?.into_scan(device.cpu_side())?;
        let lines = scan.into_lines(device.cpu_side(), &mut Vec::new());
        return lines.map(Read::Scan).map_err(|e| Error::core(path, e));
    }
    match read_any_image(path) {
        Ok(read) => Ok(Read::Image(read.image)),
        Err(error) if format.reads_arrays() => read_maps(path).map(Read::Maps).map_err(|_| error),
        Err(error) if format.reads_scans() => {
            read_scan(path, &ScanOptions::default(), &Monitor::silent()).map(samples_of).map_err(|_| error)
        }
        Err(error) => Err(error),
    }
}

#[test]
fn samples_are_of_their_format_and_are_read() {
    let (folder, device) = (folder(), Device::cpu().unwrap());
    for (format, samples) in all(folder.path()) {
        for files in &samples {
            let path = lay(folder.path(), files);
            assert_eq!(detect(&path).unwrap(), format, "{}", files[0].0);
            let _ = read(&path, &device).unwrap_or_else(|error| panic!("{format}: {error}"));
            let bytes: Vec<&[u8]> = files.iter().map(|(_, bytes)| &bytes[..]).collect();
            assert_eq!(apart(&joined(files)), bytes, "{format}");
        }
    }
}

#[test]
fn a_file_cut_anywhere_is_refused() {
    let (folder, device) = (folder(), Device::cpu_with_threads(1).unwrap());
    for (format, samples) in all(folder.path()) {
        for files in &samples {
            let path = lay(folder.path(), files);
            let whole = read(&path, &device).unwrap();
            for (name, bytes) in files {
                // A file of HDF5 or OLE is long.
                let step = bytes.len() / 2000 + 1;
                for length in (0..bytes.len()).rev().filter(|at| at % step == 0 || at + 600 > bytes.len()) {
                    put(&folder.path().join(name), &bytes[..length]);
                    let Ok(cut) = read(&path, &device) else { continue };
                    // White space at the end of a text, sizes of 1 of a BART header, and what fills the
                    // last sector of OLE may be left out.
                    let idle: &[u8] = if format.reads_images() { b" 1\r\n" } else { b"\0" };
                    let is_idle = bytes[length..].iter().all(|b| idle.contains(b));
                    // A scanner's readouts that are whole; of its texts and marks the end may be left out.
                    let is_used = cut.count() <= whole.count();
                    let sound = (is_idle && cut == whole) || (is_of_scanner(format) && is_used);
                    assert!(sound, "{format}: {name} cut to {length} bytes");
                }
                put(&folder.path().join(name), bytes);
            }
        }
    }
}

#[test]
fn altered_files_never_panic_nor_take_much_memory() {
    let (folder, device) = (folder(), Device::cpu_with_threads(1).unwrap());
    let all = all(folder.path());
    let mut rng = ChaCha8Rng::seed_from_u64(2024);
    let before = [status("VmHWM"), status("VmPeak")];
    for (format, samples) in all {
        let (mut refused, mut rounds) = (0, 0);
        for files in &samples {
            let path = lay(folder.path(), files);
            let most = 16 * read(&path, &device).unwrap().count();
            for (name, bytes) in files {
                // Files of HDF5 and OLE are long, and slow to read.
                let each = if bytes.len() > 4096 { 100 } else { (2000 / samples.len()).max(150) };
                for round in 0..each {
                    let mut altered = bytes.clone();
                    for _ in 0..rng.random_range(1..6) {
                        // The first bytes decide most.
                        let end = if round % 2 == 0 { altered.len().min(400) } else { altered.len() };
                        let at = rng.random_range(0..end);
                        altered[at] = match rng.random_range(0..3) {
                            0 => rng.random(),
                            1 => altered[at] ^ 1 << rng.random_range(0..8),
                            _ => [0, 0xff, 0x7f, 0x80, b'9', b'('][rng.random_range(0..6)],
                        };
                    }
                    if round % 5 == 0 {
                        altered.truncate(rng.random_range(0..bytes.len()));
                    }
                    put(&folder.path().join(name), &altered);
                    rounds += 1;
                    match read(&path, &device) {
                        Ok(found) => assert!(found.count() <= most, "{format}: {name} {round}"),
                        Err(_) => refused += 1,
                    }
                    let one_line = |error: &Error| assert!(!error.to_string().contains('\n'), "{error}");
                    read_every_way(&path, &device, &mut { one_line });
                }
                put(&folder.path().join(name), bytes);
            }
        }
        println!("{format}: {refused} of {rounds} refused");
        // Most bytes of a scanner's file are samples, which may be any number.
        let least = if is_of_scanner(format) { 20 } else { 5 };
        assert!(least * refused > rounds, "{format}: {refused} of {rounds}");
    }
    let after = [status("VmHWM"), status("VmPeak")];
    // The kernel counts a peak by each processor's share, and may state a little less later.
    let grown = |i: usize| after[i].saturating_sub(before[i]);
    assert!(grown(0) < 100 << 20, "resident {before:?} {after:?}");
    assert!(grown(1) < 1 << 30, "address space {before:?} {after:?}");
}
