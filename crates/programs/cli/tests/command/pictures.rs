//! Pictures show every slice and repetition, or say what they leave out.

use std::path::Path;

use rayspin::core::{C32, Geometry, Image};
use rayspin::io::endings;

use crate::{ok, refused, simulated};

/// Width and height of a PNG.
fn extent(path: &Path) -> (u32, u32) {
    let bytes = std::fs::read(path).unwrap();
    let number = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap());
    (number(16), number(20))
}

fn write(path: &Path, shape: &[usize]) {
    let data = ndarray::ArrayD::from_shape_fn(ndarray::IxDyn(shape), |i| C32::from((1 + i[0] + i[1]) as f32));
    rayspin::io::write_image(path, &Image::new(data, Geometry::default()).unwrap(), &Default::default())
        .unwrap();
}

/// What a command says.
fn said(line: &str, folder: &Path) -> String {
    String::from_utf8(ok(&line.split_whitespace().collect::<Vec<_>>(), folder).stderr).unwrap()
}

#[test]
fn a_montage_shows_every_slice_of_every_repetition() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    write(&f.join("series.nii"), &[3, 4, 10, 12]);
    assert_eq!(said("convert series.nii all.png --montage", f), "");
    // A row of four slices for each of three repetitions.
    // Each pixel is 6 large.
    assert_eq!(extent(&f.join("all.png")), (6 * 4 * 12, 6 * 3 * 10));
    let one = said("convert series.nii one.png --slice 3", f);
    assert!(one.contains("slice 3 of 0 to 3") && one.contains("--montage"), "{one}");
    let middle = said("convert series.nii middle.png", f);
    assert!(middle.contains("slice 2 of 0 to 3"), "{middle}");
    assert!(said("-q convert series.nii quiet.png", f).is_empty());

    write(&f.join("long.nii"), &[40, 1, 6, 6]);
    let some = said("convert long.nii some.png", f);
    assert!(some.contains("repetitions 1, 3, 6, ") && some.contains("of 0 to 39"), "{some}");
    said("convert long.nii all.png --montage", f);
    let (width, height) = extent(&f.join("all.png"));
    assert!((width / 6) * (height / 6) >= 40, "{width} x {height}");

    write(&f.join("coils.npy"), &[8, 3, 6, 6]);
    said("convert coils.npy coils.png --montage", f);
    assert_eq!(extent(&f.join("coils.png")), (6 * 3 * 6, 6 * 8 * 6));
    refused(
        &["convert", "series.nii", "x.png", "--slice", "4"],
        f,
        &["slice", "numbers from 0 to 3", "found 4"],
    );
}

#[test]
fn pictures_of_reconstructions_say_what_they_leave_out() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    simulated(f, "--matrix 12,12,4 --coils 1 --repetitions 3");
    let all = said("recon mri scan.h5 -o few.png", f);
    assert_eq!(extent(&f.join("few.png")), (6 * 4 * 12, 6 * 3 * 12));
    assert!(!all.contains("the picture shows"), "{all}");
    simulated(f, "--matrix 12,12,4 --coils 1 --repetitions 6");
    let some = said("recon mri scan.h5 -o some.png", f);
    assert_eq!(extent(&f.join("some.png")), (4 * 2 * 12, 4 * 6 * 12));
    assert!(some.contains("some.png: the picture shows slices 1, 3 of 0 to 3"), "{some}");
    let record = std::fs::read_to_string(f.join("some.json")).unwrap();
    assert!(record.contains("the picture shows slices 1, 3 of 0 to 3"), "{record}");
    simulated(f, "--matrix 8,8,20 --coils 1");
    let volume = said("recon mri scan.h5 -o volume.png", f);
    assert!(volume.contains("the picture shows slices 0, 1, 3, "), "{volume}");
}

/// A head of two slices in Hounsfield units: air, a skull of 1200 and a brain of 40, as 16-bit integers.
fn head(path: &Path) {
    let of = |z: usize, y: usize, x: usize| {
        let middle = |at: usize| (at as f64 - 15.5).powi(2);
        match (middle(y) + middle(x)).sqrt() {
            radius if radius > 14.0 => -1000,
            radius if radius > 11.0 => 1200,
            _ => 40 + z as i16,
        }
    };
    let data = ndarray::Array3::from_shape_fn((2, 32, 32), |(z, y, x)| of(z, y, x));
    rayspin::io::npy::write(path, data.view()).unwrap();
}

/// Grey levels in the corner, in the skull and in the middle of a picture.
fn levels(path: &Path) -> [u8; 3] {
    let file = std::io::BufReader::new(std::fs::File::open(path).unwrap());
    let mut reader = png::Decoder::new(file).read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    let width = reader.next_frame(&mut pixels).unwrap().width as usize;
    let each = width / 32;
    [(0, 0), (16, 28), (16, 16)].map(|(y, x)| pixels[y * each * width + x * each])
}

#[test]
fn air_is_dark_and_bone_is_bright() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    head(&f.join("head.npy"));
    for ending in endings(|format| format.reads_images() && format.writes_images()) {
        let name = &format!("head{ending}");
        if ending != ".npy" {
            said(&format!("convert head.npy {name}"), f);
        }
        said(&format!("convert {name} head.png --slice 0"), f);
        let [air, bone, brain] = levels(&f.join("head.png"));
        assert!(air < 10 && bone > 245 && (100..140).contains(&brain), "{name}: {air} {bone} {brain}");
        if ending != ".cfl" {
            let told = String::from_utf8(ok(&["info", name], f).stdout).unwrap();
            assert!(told.contains("int16") && told.contains("-1000 to 1200"), "{told}");
        }
    }
    // A filter that keeps whole numbers keeps their type.
    for (step, stored) in [("median:3", "int16"), ("gaussian:1.5", "float32")] {
        ok(&["filter", "head.nii.gz", "-o", "filtered.nii", "--step", step], f);
        let found = rayspin::io::read_any_image(f.join("filtered.nii")).unwrap();
        assert_eq!(found.stored.name(), stored);
    }
}

#[test]
fn a_picture_that_shows_nothing_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    head(&f.join("head.npy"));
    let told = said("convert head.npy a.png --montage --grey 2000,3000", f);
    assert!(told.contains("every pixel is black: the values go from -1000 to 1200"), "{told}");
    let told = said("convert head.npy a.png --montage --grey -3000,-2000", f);
    assert!(told.contains("every pixel is white") && told.contains("from -3000 to -2000"), "{told}");
    assert_eq!(said("convert head.npy a.png --montage --window -1000,1000", f).matches("every").count(), 0);
    let told = said("filter head.npy -o b.png --step median:3 --compare c.png --grey 2000,3000", f);
    assert_eq!(told.matches("every pixel is black").count(), 3, "{told}");
}

#[test]
fn numbers_that_are_not_finite_are_said_by_every_command() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    let mut values = ndarray::Array3::from_elem((2, 6, 6), 1.0f32);
    values[[0, 3, 3]] = f32::NAN;
    rayspin::io::npy::write(f.join("gap.npy"), values.view()).unwrap();
    let words = "1 of 72 numbers are not finite";
    let told = said("convert gap.npy gap.nii", f);
    assert!(told.contains(words), "{told}");
    let told = String::from_utf8(ok(&["info", "gap.nii"], f).stdout).unwrap();
    assert!(told.contains(words) && told.contains("1 to 1"), "{told}");
    refused(&["filter", "gap.nii", "-o", "b.nii", "--step", "median:3"], f, &["finite numbers"]);
    refused(&["render", "gap.nii", "-o", "c.png"], f, &["finite numbers"]);
    refused(&["metrics", "gap.nii", "gap.npy"], f, &["finite"]);
}
