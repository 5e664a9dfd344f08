//! Files of fastMRI, made by `tests/interop/fastmri.py` in the layout that its own code reads.

use rayspin_core::{ErrorKind, Monitor};
use rayspin_io::{detect, holds_scan, names, npy, open_scan, read_any_image};

use crate::support::{folder, python};

/// The folder that the script fills; none without Python.
fn written() -> Option<tempfile::TempDir> {
    let folder = folder();
    python("fastmri.py", "write", folder.path()).then_some(folder)
}

#[test]
fn a_file_holds_a_scan_and_images_of_its_authors() {
    let Some(folder) = written() else { return };
    let at = |name: &str| folder.path().join(name);
    assert_eq!(detect(at("multicoil.h5")).unwrap().name, "HDF5 (fastMRI)");
    let held: Vec<String> = names(at("singlecoil.h5")).unwrap().into_iter().map(|held| held.name).collect();
    assert_eq!(held, ["reconstruction_rss", "reconstruction_esc", "kspace"]);
    let named = |file: &str, name: &str| format!("{}:{name}", at(file).display());
    assert!(holds_scan(named("multicoil.h5", "kspace")).unwrap());
    assert!(!holds_scan(named("multicoil.h5", "reconstruction_rss")).unwrap());
    // Rows, along which readouts run, are x.
    let read = read_any_image(named("multicoil.h5", "reconstruction_rss")).unwrap();
    let (image, _) = read.image.into_real();
    let expected = npy::read_real(at("rss.npy")).unwrap();
    assert_eq!(image.data().shape(), [3, 32, 32]);
    for ((slice, row, column), value) in
        expected.into_dimensionality::<ndarray::Ix3>().unwrap().indexed_iter()
    {
        assert_eq!(f64::from(image.data()[[slice, column, row]]), *value);
    }
    assert_eq!(image.geometry().spacing_mm, [4.375, 4.375, 4.5]);
    let error = read_any_image(at("multicoil.h5")).unwrap_err();
    assert!(error.hint().unwrap().contains("recon mri"), "{error}");
}

#[test]
fn lines_are_those_of_the_mask_and_of_the_header() {
    let Some(folder) = written() else { return };
    let open = |name: &str| open_scan(folder.path().join(name), &Monitor::silent());
    for (file, coils, columns) in [
        ("multicoil.h5", 4, Vec::from_iter(2..42)),
        ("singlecoil.h5", 1, Vec::from_iter(2..42)),
        ("no_header.h5", 4, Vec::from_iter(2..42)),
        ("test.h5", 4, (2..42).filter(|at| at % 4 == 1 || (19..25).contains(at)).collect()),
    ] {
        let mut reader = open(file).unwrap();
        let mut found = Vec::new();
        let monitor = Monitor::silent();
        let count = reader.heads().len();
        reader
            .read(&mut (0..count), &monitor, &mut |_, one| {
                found.push((one.counters.slice, one.counters.step_1, one.data.dim()));
            })
            .unwrap();
        let encoding = &reader.header().encodings[0];
        assert_eq!(encoding.encoded.matrix, [64, 44, 1], "{file}");
        assert_eq!(encoding.recon.matrix, [32, 32, 1], "{file}");
        // The centre line of k-space is in the middle of the columns.
        let centre = encoding.step_1.map_or(22, |limits| limits.centre);
        let expected: Vec<_> = (0..3)
            .flat_map(|slice| {
                columns.iter().map(move |column| (slice, (column + centre - 22) as u16, (coils, 64)))
            })
            .collect();
        assert_eq!(found, expected, "{file}");
        assert_eq!(reader.contents().images.len(), 3);
    }
    let error = open("short_mask.h5").err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Input);
    assert!(error.to_string().contains("mask: expected 44 values"), "{error}");
}

#[test]
fn a_name_that_is_no_scan_is_refused() {
    let Some(folder) = written() else { return };
    let path = folder.path().join("multicoil.h5");
    let error =
        open_scan(format!("{}:reconstruction_rss", path.display()), &Monitor::silent()).err().unwrap();
    assert!(error.to_string().contains("expected kspace"), "{error}");
    let error = read_any_image(format!("{}:nothing", path.display())).unwrap_err().to_string();
    assert!(error.contains("reconstruction_rss"), "{error}");
}
