//! DICOM exchanged with other programs, and a real series.

use std::path::Path;
use std::process::Command;

use ndarray::{ArrayD, Axis, s};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayspin_core::{Geometry, Image};
use rayspin_io::{detect, npy, read_volume, write_image};

use crate::real_data::real_data;
use crate::support::{assert_same_place, folder, oblique, put, python, random};

/// Three rows of four numbers, the affine of a volume in LPS.
fn affine(path: &Path, shape: [usize; 3]) -> Geometry {
    let text = std::fs::read_to_string(path).unwrap();
    let numbers: Vec<f64> = text.split_whitespace().map(|word| word.parse().unwrap()).collect();
    let row = |i: usize, sign: f64| std::array::from_fn(|j| sign * numbers[4 * i + j]);
    Geometry::from_affine_ras([row(0, -1.0), row(1, -1.0), row(2, 1.0)], shape).unwrap()
}

#[test]
fn files_of_pydicom_are_read() {
    let folder = folder();
    if !python("dicom_pydicom.py", "write", folder.path()) {
        return;
    }
    let mut read = 0;
    for entry in std::fs::read_dir(folder.path().join("theirs")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|ending| ending == "dcm") {
            let expected = npy::read_real(format!("{}.npy", path.display())).unwrap();
            let found = read_volume(&path).unwrap().image;
            let found = found.data().index_axis(Axis(0), 0).mapv(f64::from);
            assert_eq!(found, expected, "{}", path.display());
            read += 1;
        }
    }
    assert_eq!(read, 9);
    // A JPEG 2000 code that is cut or altered is refused, or read as an image of the same size.
    let path = folder.path().join("theirs/MR_small_jp2klossless.dcm");
    let bytes = std::fs::read(&path).unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(8);
    let start = bytes.len() - 4000;
    for round in 0..300 {
        let mut altered = bytes.clone();
        match round % 3 {
            0 => altered.truncate(rng.random_range(0..bytes.len())),
            _ => (0..4).for_each(|_| altered[rng.random_range(start..bytes.len())] = rng.random()),
        }
        put(&path, &altered);
        match read_volume(&path) {
            Ok(read) => assert_eq!(read.image.shape_zyx(), [1, 64, 64]),
            Err(error) => assert!(!error.to_string().contains('\n'), "{error}"),
        }
    }
    // Echoes, times and b-values, of files that have names in no order.
    for series in ["echoes", "diffusion", "dynamic", "enhanced"] {
        let found = read_volume(folder.path().join(series)).unwrap();
        assert!(found.notes[0].contains("the series is 6 volumes"), "{series}: {:?}", found.notes);
        let expected = npy::read_real(folder.path().join(format!("{series}.npy"))).unwrap();
        assert_eq!(found.image.data().mapv(f64::from), expected, "{series}");
    }
    let refused = |series: &str, texts: [&str; 2]| {
        let error = read_volume(folder.path().join(series)).unwrap_err().to_string();
        assert!(texts.iter().all(|text| error.contains(text)), "{series}: {error}");
    };
    refused(
        "missing",
        ["3 of 4 in the volume of TemporalPositionIdentifier 2, EchoNumbers 1", "the same slices"],
    );
    refused("copies", ["ImagePositionPatient", "numbers of echoes or times that tell volumes apart"]);
    let found = read_volume(folder.path().join("series")).unwrap();
    assert!(found.notes.is_empty(), "{:?}", found.notes);
    let expected = npy::read_real(folder.path().join("series.npy")).unwrap();
    assert_eq!(found.image.data().mapv(f64::from), expected);
    let shape = found.image.shape_zyx();
    let place = affine(&folder.path().join("series.txt"), shape);
    assert_same_place(found.image.geometry(), &place, shape, 1e-6);
}

#[test]
fn a_first_slice_that_is_missing_is_told() {
    let folder = folder();
    let path = folder.path().join("ours.dicom");
    let image = Image::new(random(3, &[5, 4, 6]).mapv(|v| v.re), Geometry::default()).unwrap();
    write_image(&path, &image, &Default::default()).unwrap();
    let told = || {
        let notes = read_volume(&path).unwrap().notes;
        notes.into_iter().filter(|note| note.contains("InstanceNumber")).collect::<Vec<_>>()
    };
    assert!(told().is_empty(), "{:?}", told());
    let files = || std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path());
    std::fs::remove_file(files().min().unwrap()).unwrap();
    assert!(told().concat().contains("runs from 2 to 5 along the slices: 1 slice before 2"), "{:?}", told());
}

#[test]
fn pydicom_nibabel_and_dciodvfy_accept_what_is_written() {
    let folder = folder();
    let places = [
        oblique([1.5, 2.0, 3.0], [4.0, -5.0, 6.0], [0.3, 0.2, -0.4], false),
        oblique([0.48828125, 0.48828125, 1.0 / 3.0], [-1e3, 1e-7, 123.456789], [0.0, 0.3, 0.0], false),
    ];
    for (seed, place) in places.iter().enumerate() {
        let numbers = random(seed as u64, &[4, 5, 7]).mapv(|v| v.re);
        // Whole Hounsfield units are kept as they are; other numbers are rounded.
        let hounsfield = numbers.mapv(|v| (v * 4000.0 + 1000.0).round());
        for data in [hounsfield, numbers.mapv(|v| v * 0.03)] {
            let image = Image::new(data, *place).unwrap();
            let notes = write_image(folder.path().join("ours.dicom"), &image, &Default::default()).unwrap();
            assert_eq!(
                notes.iter().any(|note| note.contains("rounded")),
                image.data()[[0, 0, 0]].abs() < 0.1
            );
            npy::write(folder.path().join("ours.npy"), image.data().view()).unwrap();
            let rows = place.affine_lps([4, 5, 7]).map(|row| row.map(|v| v.to_string()).join(" "));
            std::fs::write(folder.path().join("ours.txt"), rows.join("\n")).unwrap();
            python("dicom_pydicom.py", "check", folder.path());
            let back = read_volume(folder.path().join("ours.dicom")).unwrap().image;
            assert_same_place(back.geometry(), place, [4, 5, 7], 1e-5);
        }
    }
}

/// 28 slices of two thicknesses under a tilt of 18.5°.
#[test]
fn the_real_head_comes_onto_a_rectangular_grid() {
    let Some(archive) = real_data("ct/head_ge_28slices_dicom.tar.xz") else { return };
    let folder = folder();
    let unpacked = Command::new("tar").arg("xf").arg(archive).arg("-C").arg(folder.path()).status();
    assert!(unpacked.unwrap().success());
    let slices = folder.path().join("ge");
    assert_eq!(detect(&slices).unwrap().name, "DICOM");
    let read = read_volume(&slices).unwrap();
    assert_eq!(read.notes.len(), 3, "{:?}", read.notes);
    assert!(read.notes[1].contains("1.08 to 7.00 mm: 28 are interpolated to 37 every 4.00 mm"));
    assert!(read.notes[2].contains("sheared by 18.5°"), "{:?}", read.notes);
    let volume = read.image;
    assert_eq!(volume.data().shape(), [37, 611, 512]);
    // What pydicom says of 01.dcm: ImagePositionPatient, PixelSpacing; the rows above are for the shift of
    // the others.
    let affine = volume.geometry().affine_lps([37, 611, 512]);
    let at = |x: f64, y: f64, z: f64| affine.map(|row| row[0] * x + row[1] * y + row[2] * z + row[3]);
    let near = |a: [f64; 3], b: [f64; 3]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-3);
    assert!(near(at(0.0, 99.0, 0.0), [-125.0, -123.5404569, 5.8360586]), "{:?}", at(0.0, 99.0, 0.0));
    // 28.dcm, 151.94 mm higher, shifted by 98.74 rows.
    let rows = 151.94 * 0.3173047 / 0.4882812;
    assert!(near(at(0.0, 99.0 - rows, 36.0), [-125.0, -123.5404569, 157.7760586]));
    let first = read_volume(slices.join("01.dcm")).unwrap().image;
    let same = volume.data().slice(s![0, 99.., ..]).to_owned();
    let expected: ArrayD<f32> = first.data().index_axis(Axis(0), 0).to_owned();
    assert_eq!(same.into_dyn(), expected);
    let (low, high) = volume.data().iter().fold((0f32, 0f32), |(l, h), &v| (l.min(v), h.max(v)));
    assert!((low + 1023.0).abs() < 1e-3 && (2000.0..2121.0).contains(&high), "{low} {high}");

    // Without one of its slices, and with one of them twice.
    let taken = folder.path().join("20.dcm");
    std::fs::rename(slices.join("20.dcm"), &taken).unwrap();
    let refused = read_volume(&slices).unwrap_err().to_string();
    assert!(refused.contains("between 19.dcm and 21.dcm: 1 missing"), "{refused}");
    std::fs::copy(&taken, slices.join("20.dcm")).unwrap();
    std::fs::copy(&taken, slices.join("copy.dcm")).unwrap();
    let refused = read_volume(&slices).unwrap_err().to_string();
    assert!(refused.contains("that of 20.dcm in copy.dcm"), "{refused}");
    // A copy that broke off.
    std::fs::write(slices.join("copy.dcm"), &std::fs::read(&taken).unwrap()[..300_000]).unwrap();
    let refused = read_volume(&slices).unwrap_err().to_string();
    assert!(refused.contains("copy.dcm: the element (7fe0,0010) is cut short"), "{refused}");
}
