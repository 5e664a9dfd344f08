//! `rayspin filter`

use std::path::Path;

use ndarray::{Array3, ArrayD, IxDyn};
use ndarray_npy::WriteNpyExt as _;
use rayspin::core::{C32, Geometry, Image};
use rayspin::io::{self, WriteOptions};

use crate::{ok, refused};

/// A bright cube with one hot voxel beside it, in voxels of 0.5 x 1 x 2 mm somewhere in the patient.
fn image() -> Image<f32> {
    let inside =
        |z: usize, y: usize, x: usize| (2..6).contains(&z) && (4..10).contains(&y) && (5..15).contains(&x);
    let mut values =
        Array3::from_shape_fn((8, 14, 20), |(z, y, x)| if inside(z, y, x) { 300.0 } else { -100.0 });
    values[[1, 1, 1]] = 5000.0;
    let (s, c) = 0.3f64.sin_cos();
    let geometry =
        Geometry::new([0.5, 1.0, 2.0], [10.0, -20.0, 30.0], [c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]);
    Image::new(values.into_dyn(), geometry.unwrap()).unwrap()
}

fn with_image() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    io::write_image(folder.path().join("image.nii.gz"), &image(), &WriteOptions::default()).unwrap();
    folder
}

fn filter(line: &str, folder: &Path) -> String {
    let arguments: Vec<&str> = ["filter"].into_iter().chain(line.split_whitespace()).collect();
    String::from_utf8(ok(&arguments, folder).stderr).unwrap()
}

fn near(found: [f64; 3], wanted: [f64; 3]) {
    assert!(found.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 1e-4), "{found:?} {wanted:?}");
}

#[test]
fn steps_act_in_their_order_and_the_image_keeps_its_place() {
    let folder = with_image();
    let f = folder.path();
    filter("image.nii.gz -q -o clean.nii.gz --step median:3", f);
    let clean = io::read_volume(f.join("clean.nii.gz")).unwrap().image;
    assert_eq!((clean.data()[[1, 1, 1]], clean.data()[[4, 7, 10]]), (-100.0, 300.0));
    near(clean.geometry().position_mm, image().geometry().position_mm);
    // The hot voxel spreads where the Gaussian comes first.
    filter("image.nii.gz -q -o first.npy --step median --step gaussian:1", f);
    filter("image.nii.gz -q -o last.npy --step gaussian:1 --step median", f);
    let at = |name: &str| io::read_volume(f.join(name)).unwrap().image.data()[[1, 1, 1]];
    assert!(
        (at("first.npy") + 100.0).abs() < 5.0 && at("last.npy") > -80.0,
        "{} {}",
        at("first.npy"),
        at("last.npy")
    );
    filter("image.nii.gz -q -o large.nii.gz --step resize:voxel=0.5", f);
    let large = io::read_volume(f.join("large.nii.gz")).unwrap().image;
    assert_eq!(large.shape_zyx(), [32, 28, 20]);
    near(large.geometry().spacing_mm, [0.5; 3]);
    // The corner of the box is where it was.
    let corner = |image: &Image<f32>| {
        image.geometry().affine_lps(image.shape_zyx()).map(|row| row[3] - 0.5 * (row[0] + row[1] + row[2]))
    };
    near(corner(&large), corner(&image()));
}

#[test]
fn every_format_and_series_and_complex_numbers_are_filtered() {
    let folder = with_image();
    let f = folder.path();
    for format in io::FORMATS.iter().filter(|format| format.writes_images()) {
        let ending = format.endings[0];
        let input = if format.is_picture() { "a.nii" } else { &format!("a{ending}") };
        io::write_image(f.join(input), &image(), &WriteOptions::default()).unwrap();
        filter(&format!("{input} -q -o out{ending} -s gaussian:1"), f);
        if !format.is_picture() {
            let out = io::read_volume(f.join(format!("out{ending}"))).unwrap().image;
            assert_eq!(out.shape_zyx(), [8, 14, 20], "{format}");
            assert!((out.data()[[4, 7, 10]] - 300.0).abs() < 40.0, "{format}: {}", out.data()[[4, 7, 10]]);
        }
    }
    let series = ArrayD::from_shape_fn(IxDyn(&[3, 1, 6, 5]), |at| at[0] as f32);
    let series = Image::new(series, Geometry::default()).unwrap();
    io::write_image(f.join("series.nii"), &series, &WriteOptions::default()).unwrap();
    filter("series.nii -q -o out.nii -s box:5 -s resize:2", f);
    let out = io::read_volume(f.join("out.nii")).unwrap().image;
    assert_eq!(out.data().shape(), [3, 1, 12, 10]);
    assert!((out.data()[[2, 0, 3, 3]] - 2.0).abs() < 1e-5);
    let phase =
        Image::new(ArrayD::from_elem(IxDyn(&[6, 5]), C32::new(3.0, -4.0)), Geometry::default()).unwrap();
    io::write_image(f.join("phase.npy"), &phase, &WriteOptions::default()).unwrap();
    let told = filter("phase.npy -o abs.npy -s median", f);
    assert!(told.contains("magnitudes of complex numbers"), "{told}");
    assert_eq!(io::read_volume(f.join("abs.npy")).unwrap().image.data()[[0, 2, 2]], 5.0);
}

#[test]
fn pictures_show_both_sides_at_one_size() {
    let folder = with_image();
    let f = folder.path();
    for (steps, words) in [
        ("-s gaussian:1", vec!["slice 4 before (left) and after (right), grey from "]),
        ("-s resize:0.5", vec!["slice 4 before"]),
        ("-s sobel", vec![" before and ", " after"]),
        ("-s sobel --grey 0,100", vec!["grey from 0 to 100"]),
        ("-s equalise --slice 3", vec!["slice 3 before"]),
    ] {
        let told = filter(&format!("image.nii.gz --compare both.png {steps}"), f);
        assert!(words.iter().all(|word| told.contains(word)), "{steps}: {told}");
        let decoder =
            png::Decoder::new(std::io::BufReader::new(std::fs::File::open(f.join("both.png")).unwrap()));
        let mut reader = decoder.read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut pixels).unwrap();
        // 20 x 28 pixels of 0.5 mm, 14 times as large; 8 columns between.
        assert_eq!([info.width, info.height], [2 * 20 * 14 + 8, 28 * 14], "{steps}");
        let (width, middle) = (info.width as usize, (pixels.len() / 2) - 4);
        let row = &pixels[middle / width * width..][..width];
        assert_eq!(row[280..288], [0; 8], "{steps}");
        assert!(row[140] > row[10], "{steps}: the cube is brighter before");
    }
}

#[test]
fn histograms_are_tables_json_and_pages() {
    let folder = with_image();
    let f = folder.path();
    filter("image.nii.gz -q --histogram all.csv --bins 51", f);
    let text = std::fs::read_to_string(f.join("all.csv")).unwrap();
    let rows: Vec<Vec<f64>> =
        text.lines().skip(1).map(|row| row.split(',').map(|n| n.parse().unwrap()).collect()).collect();
    assert_eq!((rows.len(), &rows[0][..], rows[50][1]), (51, &[-100.0, 0.0, 1999.0][..], 5000.0));
    assert_eq!((rows[4][2], rows[50][2]), (240.0, 1.0));
    let told = filter("image.nii.gz -s median --histogram some.json --bins 2 --range -200,0", f);
    assert!(told.contains("outside the range"), "{told}");
    let found: serde_json::Value =
        serde_json::from_slice(&std::fs::read(f.join("some.json")).unwrap()).unwrap();
    assert_eq!(found["steps"][0], "median:size=3,axes=xyz");
    let [inside, outside] = ["counts", "outside"].map(|key| found[key].clone());
    assert_eq!(inside[1].as_u64().unwrap() + outside.as_u64().unwrap(), 8 * 14 * 20);
    filter("image.nii.gz -q --histogram chart.html", f);
    let page = std::fs::read_to_string(f.join("chart.html")).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("2240 voxels in 256 bins"), "{page}");
    let output = ok(&["filter", "image.nii.gz", "-q", "--histogram", "-"], f);
    assert!(String::from_utf8(output.stdout).unwrap().starts_with("low,high,count\n"));
}

#[test]
fn what_filters_cannot_do_is_refused() {
    let folder = with_image();
    let f = folder.path();
    ndarray::arr2(&[[1.0f32, f32::NAN]])
        .write_npy(std::fs::File::create(f.join("nan.npy")).unwrap())
        .unwrap();
    for (line, words) in [
        ("image.nii.gz", vec!["filter", "--output"]),
        ("image.nii.gz -o x.npy", vec!["--step", "found none"]),
        ("image.nii.gz --compare x.png", vec!["--step", "found none"]),
        ("image.nii.gz -o x.npy -s blur", vec!["--step blur", "gaussian, box, median", "found blur"]),
        ("image.nii.gz -o x.npy -s gaussian:-1", vec!["sigma of the Gaussian", "above 0"]),
        ("image.nii.gz -o x.npy -s box:2", vec!["width of the window", "odd", "found 2"]),
        ("image.nii.gz -o x.npy -s median:17", vec!["image.nii.gz", "4096 voxels"]),
        ("image.nii.gz -o x.npy -s resize", vec!["one of factor, voxel, x, y, z"]),
        ("image.nii.gz -o x.npy -s resize:1e9", vec!["voxels of resize", "1048576"]),
        ("image.nii.gz -o x.npy -s median --slice 2", vec!["--slice", "--compare"]),
        ("image.nii.gz -o x.npy -s median --grey 0,1", vec!["--grey", ".png"]),
        ("image.nii.gz -o x.png -s median --grey 0", vec!["--grey", "expected 2 numbers"]),
        ("image.nii.gz -o x.npy -s median --bins 3", vec!["--bins", "--histogram"]),
        ("image.nii.gz -o x.npy -s median --range 0,1", vec!["--range", "--histogram"]),
        ("image.nii.gz --histogram x.csv --range 1,0", vec!["range of the histogram", "LOW below HIGH"]),
        ("image.nii.gz --histogram x.csv --bins 0", vec!["bins", "found 0"]),
        ("image.nii.gz --histogram x.txt", vec!["x.txt", ".csv, .json or .html"]),
        ("image.nii.gz --compare x.npy -s median", vec!["x.npy", "ending"]),
        ("image.nii.gz --compare x.png -s median --slice 8", vec!["slice", "0 to 7", "found 8"]),
        ("image.nii.gz -o image.nii.gz -s median", vec!["image.nii.gz", "input"]),
        ("image.nii.gz -o x.npy -s median -o x.npy", vec!["x.npy", "another output"]),
        ("nan.npy -o x.npy -s median", vec!["nan.npy", "finite", "index 1"]),
        ("none.nii -o x.npy -s median", vec!["none.nii"]),
    ] {
        let arguments: Vec<&str> = ["filter"].into_iter().chain(line.split_whitespace()).collect();
        refused(&arguments, f, &words);
    }
}
