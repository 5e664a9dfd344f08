//! Cut and altered files: an error or a sound result, never a panic, and memory in proportion to the file.

use std::path::Path;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayspin_core::{Geometry, Image};
use rayspin_io::nifti::NiftiOptions;
use rayspin_io::{Values, cfl, detect, nifti, npy, read_image, write_image};

use crate::support::{folder, put, random};

/// A field of /proc/self/status in bytes; 0 if the field or the file is missing.
fn status(field: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with(field)).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|v| v.parse::<u64>().ok()).unwrap_or(0) * 1024
}

fn samples(folder: &Path) -> Vec<(&'static str, Vec<u8>)> {
    let image = Image::new(random(1, &[2, 3, 4]), Geometry::default()).unwrap();
    let complex = NiftiOptions { values: Values::Complex, ..NiftiOptions::default() };
    for name in ["a.nii", "a.nii.gz"] {
        nifti::write(folder.join(name), &image, &complex).unwrap();
    }
    npy::write(folder.join("a.npy"), image.data().view()).unwrap();
    let mut archive = ndarray_npy::NpzWriter::new(std::fs::File::create(folder.join("a.npz")).unwrap());
    archive.add_array("one", image.data()).unwrap();
    archive.finish().unwrap();
    cfl::write(folder.join("a"), image.data().view()).unwrap();
    let slice = Image::new(random(2, &[1, 3, 4]), Geometry::default()).unwrap();
    write_image(folder.join("a.dicom"), &slice, &Default::default()).unwrap();
    std::fs::copy(folder.join("a.dicom/IM000001.dcm"), folder.join("a.dcm")).unwrap();
    ["a.nii", "a.nii.gz", "a.npy", "a.npz", "a.cfl", "a.hdr", "a.dcm"]
        .map(|name| (name, std::fs::read(folder.join(name)).unwrap()))
        .to_vec()
}

#[test]
fn a_file_cut_anywhere_is_refused() {
    let folder = folder();
    for (name, bytes) in samples(folder.path()) {
        let path = folder.path().join(name);
        for length in 0..bytes.len() {
            put(&path, &bytes[..length]);
            let cut = read_image(&path);
            // Sizes of 1 at the end of a BART header may be left out.
            let whole = name == "a.hdr" && bytes[length..].iter().all(|b| b" 1\n".contains(b));
            assert!(cut.is_err() || whole, "{name} cut to {length} bytes");
        }
        put(&path, &bytes);
    }
}

#[test]
fn altered_files_never_panic_nor_take_much_memory() {
    let folder = folder();
    let mut rng = ChaCha8Rng::seed_from_u64(2024);
    let before = [status("VmHWM"), status("VmPeak")];
    let mut refused = 0;
    for (name, bytes) in samples(folder.path()) {
        let path = folder.path().join(name);
        for round in 0..1500 {
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
            put(&path, &altered);
            match read_image(&path) {
                Ok(read) => assert!(read.image.data().len() <= 24 * 16, "{name} {round}"),
                Err(error) => {
                    refused += 1;
                    assert!(!error.to_string().contains('\n'), "{error}");
                }
            }
            let _ = detect(&path);
            let _ = npy::describe(&path);
            let _ = npy::npz_names(&path);
        }
        put(&path, &bytes);
    }
    assert!(refused > 1000, "{refused}");
    let after = [status("VmHWM"), status("VmPeak")];
    // The kernel counts a peak by each processor's share, and may state a little less later.
    let grown = |i: usize| after[i].saturating_sub(before[i]);
    assert!(grown(0) < 100 << 20, "resident {before:?} {after:?}");
    assert!(grown(1) < 1 << 30, "address space {before:?} {after:?}");
}
