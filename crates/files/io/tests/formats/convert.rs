use ndarray::{ArrayD, IxDyn};
use proptest::prelude::*;
use rayspin_core::{C32, Geometry, Image};
use rayspin_io::{Error, Values, WriteOptions, cfl, detect, read_image, write_image};

use crate::real_data::real_data;
use crate::support::{folder, oblique, random};

#[test]
fn every_image_format_is_written_by_name_and_told_by_content() {
    let folder = folder();
    let geometry = oblique([1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [0.1, 0.2, 0.3], false);
    let image = Image::new(random(1, &[3, 4, 5]), geometry).unwrap();
    let options = WriteOptions { values: Some(Values::Complex), ..WriteOptions::default() };
    for (name, format, noted) in [
        ("a.nii", "NIfTI", 0),
        ("a.nii.gz", "NIfTI", 0),
        ("a.NPY", "NumPy array", 1),
        ("a.cfl", "BART array", 1),
    ] {
        let path = folder.path().join(name);
        let notes = write_image(&path, &image, &options).unwrap();
        assert_eq!(notes.len(), noted, "{name} {notes:?}");
        // The content decides, not the name.
        if format != "BART array" {
            let other = folder.path().join("nameless");
            std::fs::copy(&path, &other).unwrap();
            assert_eq!(detect(&other).unwrap().name, format, "{name}");
            std::fs::remove_file(&other).unwrap();
        }
        let back = read_image(&path).unwrap();
        assert_eq!((back.format.name, back.image.data()), (format, image.data()), "{name}");
        assert_eq!(back.notes.len(), noted, "{name} {:?}", back.notes);
    }
    let path = folder.path().join("a.png");
    assert!(write_image(&path, &image, &options).unwrap().is_empty());
    assert_eq!(detect(&path).unwrap().name, "PNG picture");
    let scan = folder.path().join("a.h5");
    assert!(write_image(&scan, &image, &options).unwrap().is_empty());
    assert_eq!(detect(&scan).unwrap().name, "HDF5 (ISMRMRD)");
    assert!(matches!(read_image(&path), Err(Error::Unsupported { .. })));
    // Single precision is all that an ISMRMRD header has for geometry.
    let back = read_image(&scan).unwrap();
    assert_eq!((back.format.name, back.image.data()), ("HDF5 (ISMRMRD)", image.data()));
    let (wanted, found) =
        (image.geometry().affine_ras([3, 4, 5]), back.image.geometry().affine_ras([3, 4, 5]));
    for (a, b) in wanted.iter().flatten().zip(found.iter().flatten()) {
        assert!((a - b).abs() < 1e-5, "{wanted:?} {found:?}");
    }
}

#[test]
fn what_a_file_leaves_out_is_said() {
    let folder = folder();
    let image = Image::new(random(2, &[3, 4]), Geometry::default()).unwrap();
    let notes = write_image(folder.path().join("a.nii"), &image, &WriteOptions::default()).unwrap();
    assert_eq!(notes.len(), 1);
    for words in ["only the magnitude of the complex image is written", "--complex", ".nii", ".h5"] {
        assert!(notes[0].contains(words), "{notes:?}");
    }
    let magnitude = Image::new(image.magnitude().mapv(C32::from), Geometry::default()).unwrap();
    for name in ["a.nii", "a.npy", "a.cfl", "a.png"] {
        let notes = write_image(folder.path().join(name), &magnitude, &WriteOptions::default()).unwrap();
        assert!(notes.is_empty(), "{notes:?}");
    }
    let real = WriteOptions { values: Some(Values::Real), ..WriteOptions::default() };
    for name in ["b.nii", "b.npy", "b.cfl"] {
        let path = folder.path().join(name);
        assert_eq!(write_image(&path, &image, &real).unwrap().len(), 1);
        let back = read_image(&path).unwrap().image;
        assert!(back.data().iter().zip(image.data()).all(|(b, a)| b.re == a.re && b.im == 0.0));
    }
    for name in ["a", "a.gz", "a.txt", "a.npz"] {
        let refused = write_image(folder.path().join(name), &image, &WriteOptions::default());
        assert!(matches!(refused, Err(Error::Field { .. })), "{name}");
        assert!(!folder.path().join(name).exists());
    }
}

#[test]
fn formats_that_are_not_images_are_named() {
    let folder = folder();
    let path = folder.path().join("a");
    for (bytes, format) in [
        (&b"\x89HDF\r\n\x1a\n...."[..], Some("HDF5 (ISMRMRD)")),
        (b"\x89PNG\r\n\x1a\n", Some("PNG picture")),
        (b"PK\x03\x04", Some("NumPy archive")),
        (b"\x93NUMPY", Some("NumPy array")),
        (b"# Dimensions\n1\n", Some("BART array")),
        (b"", None),
        (b"\x1f\x8b", None),
        (b"hello", None),
    ] {
        std::fs::write(&path, bytes).unwrap();
        assert_eq!(detect(&path).ok().map(|f| f.name), format, "{bytes:?}");
        assert!(read_image(&path).is_err(), "{bytes:?}");
    }
    assert!(matches!(detect(folder.path().join("nothing")), Err(Error::Open { .. })));
    assert!(detect(folder.path()).is_err());
    for (name, format) in [
        ("mri/cardiac_radial_12ch.h5", "HDF5 (ISMRMRD)"),
        ("mri/gre_2ch_ve11.dat", "Siemens raw data"),
        ("mri/brain_cartesian_8ch.cfl", "BART array"),
        ("mri/brain_cartesian_8ch.hdr", "BART array"),
        ("ct/htc2022_tb_fan.npy", "NumPy array"),
    ] {
        if let Some(path) = real_data(name) {
            assert_eq!(detect(&path).unwrap().name, format, "{name}");
        }
    }
}

#[test]
fn bart_images_say_what_became_of_their_dimensions() {
    let folder = folder();
    let path = folder.path().join("a.cfl");
    let read = |shape: &[usize]| {
        let array = random(5, shape);
        cfl::write(&path, array.view()).unwrap();
        (array, read_image(&path))
    };
    let (array, image) = read(&[5, 4, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 6]);
    let image = image.unwrap();
    assert_eq!(image.image.data().shape(), [6, 4, 5]);
    assert_eq!(image.image.data()[[5, 3, 4]], array[[4, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5]]);
    assert!(image.notes.iter().any(|n| n.contains("SLICE")));

    let (array, image) = read(&[5, 4, 3, 1, 1, 2, 1, 1, 1, 1, 7]);
    let image = image.unwrap();
    assert_eq!(image.image.data().shape(), [14, 3, 4, 5]);
    assert_eq!(image.image.data()[[1 + 2 * 6, 2, 3, 4]], array[[4, 3, 2, 0, 0, 1, 0, 0, 0, 0, 6]]);
    assert!(image.notes.iter().any(|n| n.contains("TE × TIME")), "{:?}", image.notes);

    let (_, refused) = read(&[5, 4, 1, 8]);
    let error = refused.unwrap_err();
    assert!(error.hint().is_some() && error.to_string().contains("8 coils"), "{error}");
}

#[test]
fn a_fortran_array_becomes_an_image_in_c_order() {
    let folder = folder();
    let path = folder.path().join("a.npy");
    for shape in ["(2, 3)", "(1, 2, 3)", "(1, 1, 2, 3)"] {
        let header = format!("{{'descr': '<f4', 'fortran_order': True, 'shape': {shape}}}");
        let values: Vec<u8> = (0..6u8).flat_map(|v| f32::from(v).to_le_bytes()).collect();
        std::fs::write(&path, crate::npy::file(&header, &values)).unwrap();
        let image = read_image(&path).unwrap().image;
        assert!(image.data().is_standard_layout());
        let found: Vec<f32> = image.data().iter().map(|v| v.re).collect();
        assert_eq!(found, [0.0, 2.0, 4.0, 1.0, 3.0, 5.0]);
    }
    if let Some(path) = real_data("ct/htc2022_tb_fan.npy") {
        let image = read_image(path).unwrap().image;
        assert_eq!(image.data().shape(), [1, 181, 560]);
    }
}

#[test]
fn arrays_of_another_rank_are_no_images() {
    let folder = folder();
    let path = folder.path().join("a.npy");
    for shape in [&[][..], &[3], &[0, 3], &[2, 0, 3, 4, 5]] {
        rayspin_io::npy::write(&path, ArrayD::<f32>::zeros(IxDyn(shape)).view()).unwrap();
        assert!(matches!(read_image(&path), Err(Error::Core { .. })), "{shape:?}");
    }
    // More axes count volumes, the last one fastest; an array in Fortran order too.
    let many = ArrayD::from_shape_fn(IxDyn(&[2, 3, 2, 4, 5]), |i| (i[0] * 3 + i[1]) as f32);
    for view in [many.view(), many.t().to_owned().reversed_axes().view()] {
        rayspin_io::npy::write(&path, view).unwrap();
        let read = read_image(&path).unwrap();
        assert!(read.notes.iter().any(|note| note.contains("[2, 3] are 6 volumes")), "{:?}", read.notes);
        assert_eq!(read.image.data().shape(), [6, 2, 4, 5]);
        assert_eq!(read.image.data()[[5, 1, 3, 4]].re, 5.0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_chain_of_conversions_keeps_every_value(seed in any::<u64>(), shape in prop::collection::vec(2usize..6, 2..5)) {
        let folder = folder();
        let image = Image::new(random(seed, &shape), Geometry::default()).unwrap();
        let options = WriteOptions { values: Some(Values::Complex), ..WriteOptions::default() };
        let mut current = image.clone();
        for name in ["a.npy", "a.cfl", "a.nii.gz", "a.nii"] {
            let path = folder.path().join(name);
            write_image(&path, &current, &options).unwrap();
            current = read_image(&path).unwrap().image;
        }
        prop_assert_eq!(current.data(), image.data());
    }
}
