//! Pictures show every slice and repetition, or say what they leave out.

use std::path::Path;

use rayspin::core::{C32, Geometry, Image};

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
    assert_eq!(extent(&f.join("all.png")), (4 * 12, 3 * 10));
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
    assert_eq!(extent(&f.join("coils.png")), (3 * 6, 8 * 6));
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
    assert_eq!(extent(&f.join("few.png")), (4 * 12, 3 * 12));
    assert!(!all.contains("the picture shows"), "{all}");
    simulated(f, "--matrix 12,12,4 --coils 1 --repetitions 6");
    let some = said("recon mri scan.h5 -o some.png", f);
    assert_eq!(extent(&f.join("some.png")), (2 * 12, 6 * 12));
    assert!(some.contains("some.png: the picture shows slices 1, 3 of 0 to 3"), "{some}");
    let record = std::fs::read_to_string(f.join("some.json")).unwrap();
    assert!(record.contains("the picture shows slices 1, 3 of 0 to 3"), "{record}");
    simulated(f, "--matrix 8,8,20 --coils 1");
    let volume = said("recon mri scan.h5 -o volume.png", f);
    assert!(volume.contains("the picture shows slices 0, 1, 3, "), "{volume}");
}
