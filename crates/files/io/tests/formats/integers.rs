//! Real numbers keep their signs, integers their types, from one format to another.

use std::path::Path;

use ndarray::{ArrayD, IxDyn};
use rayspin_core::{Geometry, Image};
use rayspin_io::{AnyImage, Format, WriteOptions, endings, npy, read_any_image, write_image};

use crate::support::{folder, put, python};

/// The endings of the formats that store integers of this type.
fn that_store(integers: &str) -> Vec<&'static str> {
    let found = endings(|format| format.stores(integers));
    assert!(found.len() > 5, "{found:?}");
    found
}

/// Writes an image in another format; returns all notes.
fn convert(from: &Path, to: &Path) -> Vec<String> {
    let file = read_any_image(from).unwrap();
    let options = WriteOptions { stored: Some(file.stored), layout: file.layout, ..WriteOptions::default() };
    let written = match &file.image {
        AnyImage::Real(image) => write_image(to, image, &options),
        AnyImage::Complex(image) => write_image(to, image, &options),
    };
    [file.notes, written.unwrap()].concat()
}

/// The values of a real image, and what they are stored as.
fn real(path: &Path) -> (ArrayD<f32>, String) {
    let file = read_any_image(path).unwrap();
    let AnyImage::Real(image) = file.image else { panic!("{}: complex numbers", path.display()) };
    (image.into_data(), file.stored.to_string())
}

/// Air, water and bone.
fn head() -> ArrayD<i16> {
    ArrayD::from_shape_fn(IxDyn(&[3, 4, 5]), |at| {
        -1024 + 700 * at[0] as i16 + 130 * at[1] as i16 + at[2] as i16
    })
}

#[test]
fn signed_integers_pass_between_all_formats() {
    let folder = folder();
    let f = folder.path();
    npy::write(f.join("head.npy"), head().view()).unwrap();
    let values = head().mapv(f32::from);
    for from in that_store("int16") {
        let one = f.join(format!("one{from}"));
        convert(&f.join("head.npy"), &one);
        for to in that_store("int16") {
            let other = f.join(format!("{}-other{to}", from.replace('.', "-")));
            convert(&one, &other);
            assert_eq!(real(&other), (values.clone(), "int16".into()), "{from} to {to}");
        }
    }
    // Complex by nature: the numbers stay, signs included.
    convert(&f.join("one.tif"), &f.join("head.cfl"));
    let file = read_any_image(f.join("head.cfl")).unwrap();
    assert_eq!((file.image.into_real(), file.stored.name()), {
        ((Image::new(values, Geometry::default()).unwrap(), false), "complex64")
    });
}

#[test]
fn integers_of_every_width_stay_what_they_are() {
    let folder = folder();
    let f = folder.path();
    let shape = IxDyn(&[2, 3, 4]);
    let bytes = ArrayD::from_shape_fn(shape.clone(), |at| (50 * at[2] as i16 - 100) as i8);
    npy::write(f.join("a.npy"), bytes.view()).unwrap();
    for ending in that_store("int8") {
        let other = f.join(format!("b{ending}"));
        convert(&f.join("a.npy"), &other);
        assert_eq!(real(&other), (bytes.mapv(f32::from), "int8".into()), "{ending}");
    }
    let unsigned = |most: u16| ArrayD::from_shape_fn(shape.clone(), |at| if at[2] == 0 { most } else { 3 });
    for (most, dicom) in [(255, "int16"), (32_767, "int16"), (60_000, "int16, slope 1, intercept 32771")] {
        npy::write(f.join("a.npy"), unsigned(most).view()).unwrap();
        for ending in that_store("int16") {
            let other = f.join(format!("c{ending}"));
            convert(&f.join("a.npy"), &other);
            let name = if ending == ".dicom" { dicom } else { "uint16" };
            assert_eq!(real(&other), (unsigned(most).mapv(f32::from), name.into()), "{most} to {ending}");
        }
        // What DICOM moved has its own numbers again.
        convert(&f.join("c.dicom"), &f.join("d.npy"));
        let back = if most == 60_000 { "uint16" } else { "int16" };
        assert_eq!(real(&f.join("d.npy")), (unsigned(most).mapv(f32::from), back.into()));
    }
    // A byte needs two in a format without bytes.
    npy::write(f.join("a.npy"), unsigned(7).mapv(|number| number as u8).view()).unwrap();
    convert(&f.join("a.npy"), &f.join("d.h5"));
    assert_eq!(real(&f.join("d.h5")).1, "int16");
    npy::write(f.join("a.npy"), unsigned(7).mapv(|number| i64::from(number) << 33).view()).unwrap();
    for ending in that_store("int64") {
        let other = f.join(format!("e{ending}"));
        convert(&f.join("a.npy"), &other);
        assert_eq!(real(&other).1, "int64", "{ending}");
    }
}

#[test]
fn digits_that_are_lost_are_said() {
    let folder = folder();
    let (file, other) = (folder.path().join("a.npy"), folder.path().join("b.nii"));
    let array = |number: f64| ArrayD::from_elem(IxDyn(&[1, 2, 2]), number);
    let said = || convert(&file, &other).concat();
    npy::write(&file, array(0.5).view()).unwrap();
    assert!(!said().contains("rounded"));
    npy::write(&file, array(0.1).view()).unwrap();
    assert!(said().contains("float64 numbers are rounded to single precision"), "{}", said());
    let large = |more: i32| array(0.0).mapv(|_| (1 << 24) + more);
    npy::write(&file, large(0).view()).unwrap();
    assert!(!said().contains("rounded"));
    npy::write(&file, large(1).view()).unwrap();
    assert!(said().contains("int32 numbers beyond 16777216 are rounded"), "{}", said());
    // Written as integers, the rounded numbers would pass for the file's own.
    for ending in that_store("int32") {
        let other = folder.path().join(format!("c{ending}"));
        for number in [(1 << 24) + 1, i32::MAX, i32::MIN + 77] {
            npy::write(&file, array(0.0).mapv(|_| number).view()).unwrap();
            assert!(convert(&file, &other).concat().contains("rounded"));
            assert_eq!(real(&other).1, "float32", "{number} to {ending}");
        }
        npy::write(&file, array(0.0).mapv(|_| -(1 << 25)).view()).unwrap();
        convert(&file, &other);
        assert_eq!(real(&other).1, "int32", "{ending}");
    }
}

#[test]
fn numbers_that_are_no_integers_any_more_become_floats() {
    let folder = folder();
    let f = folder.path();
    npy::write(f.join("a.npy"), head().view()).unwrap();
    let file = read_any_image(f.join("a.npy")).unwrap();
    let image = file.image.into_real().0;
    let options = WriteOptions { stored: Some(file.stored), ..WriteOptions::default() };
    for ending in that_store("int32") {
        let other = f.join(format!("b{ending}"));
        write_image(&other, &image.map(|value| 0.3 * value), &options).unwrap();
        assert_eq!(real(&other), (image.data().mapv(|value| 0.3 * value), "float32".into()), "{ending}");
        // Whole numbers that need more bits.
        write_image(&other, &image.map(|value| 100.0 * value), &options).unwrap();
        assert_eq!(real(&other), (image.data().mapv(|value| 100.0 * value), "int32".into()), "{ending}");
    }
}

/// A body without air around it, and numbers below −500 that are no Hounsfield units.
#[test]
fn hounsfield_units_stay_what_they_are() {
    let folder = folder();
    let f = folder.path();
    let image = |low: f32| {
        let ramp = (0..60u8).map(|at| low + 2.0 * f32::from(at)).collect();
        Image::new(ArrayD::from_shape_vec(IxDyn(&[3, 4, 5]), ramp).unwrap(), Geometry::default()).unwrap()
    };
    for (low, stated) in [(-80.0, true), (-900.0, false), (-900.0, true), (20.0, false)] {
        let [first, second] = ["a.dicom", "b.dicom"].map(|name| f.join(name));
        let options = WriteOptions { hounsfield: Some(stated), ..WriteOptions::default() };
        let notes = write_image(&first, &image(low), &options).unwrap();
        assert_eq!(notes.iter().any(|note| note.contains("without a unit")), !stated, "{notes:?}");
        let file = read_any_image(&first).unwrap();
        assert_eq!(file.states_hounsfield(), Some(stated), "{low}");
        let options = WriteOptions { hounsfield: file.states_hounsfield(), ..WriteOptions::default() };
        write_image(&second, &file.image.into_real().0, &options).unwrap();
        assert_eq!(read_any_image(&second).unwrap().hounsfield, stated, "{low}");
    }
    for (low, taken) in [(-900.0, true), (-80.0, false)] {
        write_image(f.join("c.dicom"), &image(low), &WriteOptions::default()).unwrap();
        assert_eq!(read_any_image(f.join("c.dicom")).unwrap().hounsfield, taken, "{low}");
    }
    write_image(f.join("d.nii"), &image(-900.0), &WriteOptions::default()).unwrap();
    assert_eq!(read_any_image(f.join("d.nii")).unwrap().states_hounsfield(), None);
}

#[test]
fn slope_and_intercept_stay_where_the_format_has_them() {
    let folder = folder();
    let f = folder.path();
    let scaled = |name: &str, slope: f32, intercept: f32| {
        let mut bytes = std::fs::read(f.join("plain.nii")).unwrap();
        bytes[112..116].copy_from_slice(&slope.to_le_bytes());
        bytes[116..120].copy_from_slice(&intercept.to_le_bytes());
        put(&f.join(name), &bytes);
    };
    npy::write(f.join("a.npy"), head().mapv(|number| (number + 1024) as u16).view()).unwrap();
    convert(&f.join("a.npy"), &f.join("plain.nii"));

    scaled("units.nii", 0.37, 2.5);
    let (values, stored) = real(&f.join("units.nii"));
    assert_eq!(values[[0, 0, 1]], (f64::from(0.37f32) + 2.5) as f32);
    assert!(stored.starts_with("uint16, slope 0.37") && stored.ends_with("intercept 2.5"), "{stored}");
    assert!(!convert(&f.join("units.nii"), &f.join("b.nii.gz")).concat().contains("rounded"));
    assert_eq!(real(&f.join("b.nii.gz")), (values.clone(), stored));
    let unscaled = |format: &Format| format.images.as_ref().is_some_and(|images| !images.scaled);
    for ending in endings(|format| unscaled(format) && format.stores("int16")) {
        let other = f.join(format!("b{ending}"));
        convert(&f.join("units.nii"), &other);
        assert_eq!(real(&other), (values.clone(), "float32".into()), "{ending}");
    }
    let said = convert(&f.join("units.nii"), &f.join("b.dicom")).concat();
    assert!(!said.contains("rounded"), "{said}");
    let (found, stored) = real(&f.join("b.dicom"));
    assert!(stored.starts_with("int16, slope 0.37"), "{stored}");
    assert!(found.iter().zip(&values).all(|(a, b)| (a - b).abs() <= 1e-6 * b.abs()));

    // Whole numbers need neither.
    scaled("head.nii", 1.0, -1024.0);
    for ending in that_store("int16") {
        // NIfTI keeps the slope and the intercept of its own files.
        let stored = if ending.starts_with(".nii") { "uint16, slope 1, intercept -1024" } else { "int16" };
        let other = f.join(format!("c{ending}"));
        convert(&f.join("head.nii"), &other);
        assert_eq!(real(&other), (head().mapv(f32::from), stored.into()), "{ending}");
    }
}

#[test]
fn numbers_that_are_not_finite_are_counted() {
    let folder = folder();
    let file = folder.path().join("a.npy");
    let mut values = ArrayD::from_elem(IxDyn(&[2, 3, 4]), 1.0f32);
    values[[0, 1, 2]] = f32::NAN;
    values[[1, 1, 2]] = f32::NEG_INFINITY;
    npy::write(&file, values.view()).unwrap();
    let notes = read_any_image(&file).unwrap().notes.concat();
    assert!(notes.contains("2 of 24 numbers are not finite"), "{notes}");
    npy::write(&file, values.mapv(|value| rayspin_core::C32::new(1.0, value)).view()).unwrap();
    let notes = read_any_image(&file).unwrap().notes.concat();
    assert!(notes.contains("2 of 24 numbers are not finite"), "{notes}");
}

#[test]
fn other_programs_find_the_same_integers() {
    let folder = folder();
    let f = folder.path();
    if !python("integers.py", "write", f) {
        return;
    }
    for name in ["nibabel.nii.gz", "scaled.nii", "tifffile.tif", "pydicom.dcm"] {
        for ending in that_store("int16") {
            convert(&f.join(name), &f.join(format!("{name}{ending}")));
        }
    }
    assert!(python("integers.py", "check", f));
}
