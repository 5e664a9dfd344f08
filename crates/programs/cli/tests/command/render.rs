//! `rayspin render`

use std::path::Path;

use ndarray::{Array3, ArrayD, IxDyn};
use ndarray_npy::{ReadNpyExt as _, WriteNpyExt as _};

use crate::{ok, refused};

/// A cube of 0.02 in the middle of 24 x 20 x 16 voxels.
fn volume(folder: &Path) {
    let inside = |(z, y, x): (usize, usize, usize)| {
        (8..16).contains(&z) && (6..14).contains(&y) && (4..12).contains(&x)
    };
    let cube = Array3::from_shape_fn((24, 20, 16), |at| if inside(at) { 0.02f32 } else { 0.0 });
    cube.write_npy(std::fs::File::create(folder.join("cube.npy")).unwrap()).unwrap();
}

fn picture(path: &Path) -> (png::Info<'static>, Vec<u8>) {
    let decoder = png::Decoder::new(std::io::BufReader::new(std::fs::File::open(path).unwrap()));
    let mut reader = decoder.read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    reader.next_frame(&mut pixels).unwrap();
    (reader.info().clone(), pixels)
}

#[test]
fn a_radiograph_holds_the_line_integrals() {
    let folder = tempfile::tempdir().unwrap();
    volume(folder.path());
    ok(&["render", "cube.npy", "-o", "image.png", "-o", "image.npy", "--size", "48,40", "-q"], folder.path());
    let (info, pixels) = picture(&folder.path().join("image.png"));
    assert_eq!((info.width, info.height, info.animation_control.is_none()), (48, 40, true));
    let numbers =
        ArrayD::<f32>::read_npy(std::fs::File::open(folder.path().join("image.npy")).unwrap()).unwrap();
    assert_eq!(numbers.shape(), [1, 40, 48]);
    // 8 voxels of 1 mm.
    let most = numbers.iter().copied().fold(0.0, f32::max);
    assert!((most - 8.0 * 0.02).abs() < 1e-6, "{most}");
    assert_eq!((pixels.iter().max(), pixels.iter().min()), (Some(&255), Some(&0)));
    // Hounsfield units: 0.02 HU is water, and all voxels around it.
    ok(
        &["render", "cube.npy", "-o", "water.npy", "--size", "8", "--hu", "--water", "0.03", "-q"],
        folder.path(),
    );
    let water =
        ArrayD::<f32>::read_npy(std::fs::File::open(folder.path().join("water.npy")).unwrap()).unwrap();
    let middle = water[IxDyn(&[0, 4, 4])];
    assert!((middle - 20.0 * 0.03).abs() < 1e-4, "{middle}");
}

#[test]
fn every_mode_makes_pictures_and_turns() {
    let folder = tempfile::tempdir().unwrap();
    volume(folder.path());
    std::fs::write(
        folder.path().join("look.txt"),
        "# value r g b opacity\n0.005 1 0 0 0\n0.02, 1, 0, 0, 2\n",
    )
    .unwrap();
    for options in [
        "-m xray --perspective 40 --invert",
        "-m mip --view top --grey 0,0.02",
        "-m volume --transfer look.txt --background 0,0,1",
        "-m surface --iso 0.01 --colour 0,1,0 --azimuth 30 --elevation -20 --step 0.5",
    ] {
        let arguments = format!("render cube.npy -o turn.png --size 24 --turntable 3 -q {options}");
        ok(&arguments.split_whitespace().collect::<Vec<_>>(), folder.path());
        let (info, pixels) = picture(&folder.path().join("turn.png"));
        assert_eq!(info.animation_control.map(|a| a.num_frames), Some(3), "{options}");
        let (low, high) = (pixels.iter().min().unwrap(), pixels.iter().max().unwrap());
        assert!(high - low > 100, "{options}: {low} to {high}");
        if options.contains("volume") {
            // Red before blue.
            let middle = &pixels[3 * (12 * 24 + 12)..][..3];
            assert!(middle[0] > 250 && middle[2] < 5 && pixels[..3] == [0, 0, 255], "{middle:?}");
        }
        if options.contains("surface") {
            let middle = &pixels[3 * (12 * 24 + 12)..][..3];
            assert!(middle[1] > 100 && middle[0] < middle[1], "{middle:?}");
        }
    }
}

#[test]
fn a_page_carries_the_volume_and_loads_nothing() {
    let folder = tempfile::tempdir().unwrap();
    volume(folder.path());
    ok(&["render", "cube.npy", "-o", "page.html", "-q"], folder.path());
    let page = std::fs::read_to_string(folder.path().join("page.html")).unwrap();
    assert!(page.contains("16 × 20 × 24 voxels") && page.contains("default-src 'none'"));
    assert!(!page.contains("src=\"http") && !page.contains("href=\"http"));
}

#[test]
fn what_makes_no_sense_is_refused_and_nothing_is_left() {
    let folder = tempfile::tempdir().unwrap();
    volume(folder.path());
    std::fs::write(folder.path().join("bad.txt"), "0.1 1 0 0\n").unwrap();
    std::fs::write(folder.path().join("falls.txt"), "0.1 1 0 0 1\n0.05 1 0 0 1\n").unwrap();
    for (options, part) in [
        ("-o a.npy -m surface", "--mode surface"),
        ("-o a.png --iso 3", "--mode surface"),
        ("-o a.png -m volume --grey 0,1", "--mode xray or mip, or a page"),
        ("-o a.png --preset bone", "--mode volume"),
        ("-o a.png -m mip --water 0.03", "--mode xray with --hu"),
        ("-o a.html --view left", "a picture or numbers to write"),
        ("-o a.png --size 0", "pixels a side"),
        ("-o a.png --size 4,5,6", "--size"),
        ("-o a.png --elevation 100", "at most 90"),
        ("-o a.png --azimuth nan", "--azimuth"),
        ("-o a.png --perspective 180", "angle of the lens"),
        ("-o a.png --perspective 40 --distance -3", "--distance"),
        ("-o a.png --width 0", "width of the picture"),
        ("-o a.png --step 0", "step along rays"),
        ("-o a.png --turntable 0", "--turntable"),
        ("-o a.png --hu --water -1", "--water"),
        ("-o a.png -m volume --transfer bad.txt", "line 1"),
        ("-o a.png -m volume --transfer falls.txt", "grow"),
        ("-o a.png -m surface --colour 1,2,3", "from 0 to 1"),
        ("-o a.txt", "a.txt"),
        ("-o cube.npy", "cube.npy"),
    ] {
        let arguments = format!("render cube.npy {options}");
        refused(&arguments.split_whitespace().collect::<Vec<_>>(), folder.path(), &[part]);
    }
}

#[test]
fn a_picture_without_a_surface_says_which_values_there_are() {
    let folder = tempfile::tempdir().unwrap();
    volume(folder.path());
    let said = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        String::from_utf8(ok(&words, folder.path()).stderr).unwrap()
    };
    let told = said("render cube.npy -o a.png --size 16 --mode surface --iso 0.03");
    assert!(told.contains("isosurface of 0.03") && told.contains("from 0 to 0.02"), "{told}");
    let told = said("render cube.npy -o a.png --size 16 --mode surface --iso 0.01");
    assert!(!told.contains("empty"), "{told}");
    // Every voxel lies within the surface.
    for line in ["--iso -5", "--iso 0"] {
        let told = said(&format!("render cube.npy -o a.png --size 16 --mode surface {line}"));
        assert!(told.contains("the box of the volume alone") && told.contains("from 0 to 0.02"), "{told}");
    }
    // Water is no bone.
    let told = said("render cube.npy -o a.png --size 16 --mode volume --water 0.02");
    assert!(told.contains("the picture is empty") && told.contains("from -1000 to 0 HU"), "{told}");
    let told = said("render cube.npy -o a.png --size 16 --grey 5,6");
    assert!(told.contains("every pixel is black") && told.contains("the window from 5 to 6"), "{told}");
}
