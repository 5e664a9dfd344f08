use ndarray::{Array2, Array3, ArrayD, IxDyn};
use rayspin_core::{C32, Geometry, Image};
use rayspin_imaging::display::{Montage, Part, Window};
use rayspin_io::png::{PngOptions, write_grey, write_image, write_rgb};

use crate::support::folder;

/// Width, height, channels and bytes by the decoder.
fn decode(path: &std::path::Path) -> (usize, usize, usize, Vec<u8>) {
    let file = std::io::BufReader::new(std::fs::File::open(path).unwrap());
    let mut reader = ::png::Decoder::new(file).read_info().unwrap();
    let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut bytes).unwrap();
    (info.width as usize, info.height as usize, info.color_type.samples(), bytes)
}

#[test]
fn grey_and_colour_pictures_come_back_row_by_row() {
    let folder = folder();
    let path = folder.path().join("a.png");
    let grey = Array2::from_shape_fn((3, 5), |(y, x)| (40 * y + x) as u8);
    write_grey(&path, grey.view()).unwrap();
    assert_eq!(decode(&path), (5, 3, 1, grey.iter().copied().collect()));
    write_grey(&path, grey.t()).unwrap();
    assert_eq!(decode(&path), (3, 5, 1, grey.t().iter().copied().collect()));
    let rgb = Array3::from_shape_fn((2, 3, 3), |(y, x, c)| (100 * y + 10 * x + c) as u8);
    write_rgb(&path, rgb.view()).unwrap();
    assert_eq!(decode(&path), (3, 2, 3, rgb.iter().copied().collect()));
    assert!(write_rgb(&path, Array3::zeros((2, 3, 4)).view()).is_err());
    assert!(write_grey(&path, Array2::zeros((0, 3)).view()).is_err());
    assert!(write_grey(folder.path().join("no/a.png"), grey.view()).is_err());
}

#[test]
fn an_image_becomes_a_montage_of_its_window() {
    let folder = folder();
    let path = folder.path().join("a.png");
    let data = ArrayD::from_shape_fn(IxDyn(&[2, 4, 3, 5]), |i| C32::new(0.0, (i[0] * 10 + i[1]) as f32));
    let image = Image::new(data, Geometry::default()).unwrap();
    let options = PngOptions {
        window: Window::Range { low: 10.0, high: 13.0 },
        repetitions: Some(vec![1]),
        enlarge: 2,
        ..PngOptions::default()
    };
    write_image(&path, &image, &options).unwrap();
    let (width, height, _, bytes) = decode(&path);
    // Four slices of 3 × 5 are nearest to a square as 6 × 10 or 12 × 5 … 2 columns.
    assert_eq!((width, height), (2 * 10, 2 * 6));
    let at = |y: usize, x: usize| bytes[y * width + x];
    assert_eq!([at(0, 0), at(0, 19), at(11, 0), at(11, 19)], [0, 85, 170, 255]);

    let phase = PngOptions { part: Part::Phase, repetitions: Some(vec![0]), ..PngOptions::default() };
    write_image(&path, &image, &phase).unwrap();
    // arg(i) = π/2 is three quarters of the way from −π to π; arg(0) is half.
    assert_eq!(decode(&path).3.iter().filter(|v| **v == 191).count(), 3 * 15);
    for bad in [
        PngOptions { repetitions: Some(vec![2]), ..PngOptions::default() },
        PngOptions { repetitions: Some(Vec::new()), ..PngOptions::default() },
        PngOptions {
            montage: Montage { slices: Some(vec![4]), ..Montage::default() },
            ..PngOptions::default()
        },
        PngOptions { window: Window::Range { low: 1.0, high: 0.0 }, ..PngOptions::default() },
        PngOptions { enlarge: usize::MAX, ..PngOptions::default() },
    ] {
        assert!(write_image(&path, &image, &bad).is_err(), "{bad:?}");
    }
}

/// The value at the top left of each tile of `side` pixels, in rows.
fn tiles(path: &std::path::Path, side: usize) -> (usize, Vec<u8>) {
    let (width, height, _, bytes) = decode(path);
    let columns = width / side;
    let at = |tile: usize| bytes[tile / columns * side * width + tile % columns * side];
    (columns, (0..columns * (height / side)).map(at).collect())
}

#[test]
fn every_slice_of_every_repetition_is_shown_or_what_is_not_is_said() {
    let folder = folder();
    let path = folder.path().join("a.png");
    // 4 slices × 3 repetitions: each of the 12 pictures has a grey level of its own.
    let data =
        ArrayD::from_shape_fn(IxDyn(&[3, 4, 2, 2]), |i| C32::new((20 * (4 * i[0] + i[1])) as f32, 0.0));
    let image = Image::new(data, Geometry::default()).unwrap();
    let window = Window::Range { low: 0.0, high: 255.0 };
    let show = |slices: Option<Vec<usize>>, repetitions: Option<Vec<usize>>| {
        let montage = Montage { slices, ..Montage::default() };
        let options = PngOptions { window, montage, repetitions, ..PngOptions::default() };
        let note = write_image(&path, &image, &options).unwrap();
        (tiles(&path, 2), note)
    };
    let all: Vec<u8> = (0..12).map(|i| 20 * i).collect();
    assert_eq!(show(None, None), ((4, all), None));
    let note = |text: &str| Some(format!("the picture shows {text} (`rayspin convert --montage` shows all)"));
    let (_, said) = show(Some(vec![1, 2]), None);
    assert_eq!(said, note("slices 1, 2 of 0 to 3"));
    let one = note("repetition 2 of 0 to 2, slice 1 of 0 to 3");
    assert_eq!(show(Some(vec![1]), Some(vec![2])), ((1, vec![180]), one));
    // The other slices of a volume are left out by name, too.
    let volume = Image::new(image.data().index_axis(ndarray::Axis(0), 0).to_owned(), Geometry::default());
    let montage = Montage { slices: Some(vec![3]), ..Montage::default() };
    let options = PngOptions { window, montage, ..PngOptions::default() };
    assert_eq!(write_image(&path, &volume.unwrap(), &options).unwrap(), note("slice 3 of 0 to 3"));
    assert_eq!(tiles(&path, 2), (1, vec![60]));
}

#[test]
fn one_slice_of_each_repetition_is_nearly_square() {
    let folder = folder();
    let path = folder.path().join("a.png");
    let data = ArrayD::from_shape_fn(IxDyn(&[16, 3, 2, 2]), |i| C32::new((100 * i[1] + i[0]) as f32, 0.0));
    let image = Image::new(data, Geometry::default()).unwrap();
    let montage = Montage { slices: Some(vec![2]), ..Montage::default() };
    let window = Window::Range { low: 200.0, high: 215.0 };
    let options = PngOptions { window, montage, ..PngOptions::default() };
    write_image(&path, &image, &options).unwrap();
    assert_eq!(tiles(&path, 2), (4, (0..16).map(|i| 17 * i).collect()));
    let montage = Montage { slices: Some(vec![3]), ..Montage::default() };
    assert!(write_image(&path, &image, &PngOptions { montage, ..PngOptions::default() }).is_err());
}

#[test]
fn images_of_oblong_voxels_are_shown_on_square_pixels() {
    let folder = folder();
    let path = folder.path().join("a.png");
    let data =
        ndarray::Array3::from_shape_fn((2, 6, 4), |(_, y, x)| C32::new((y + x) as f32, 0.0)).into_dyn();
    let geometry = Geometry { spacing_mm: [3.0, 1.0, 5.0], ..Geometry::default() };
    let image = Image::new(data, geometry).unwrap();
    let options =
        PngOptions { montage: Montage { columns: Some(2), ..Montage::default() }, ..PngOptions::default() };
    write_image(&path, &image, &options).unwrap();
    let (width, height, ..) = decode(&path);
    assert_eq!((width, height), (2 * 12, 6));
}

/// A bright frame around a disc on a small image.
#[test]
fn a_preview_is_large_and_shows_what_a_bright_rim_surrounds() {
    let folder = folder();
    let path = folder.path().join("a.png");
    for (n, side) in [(40usize, 280), (300, 300)] {
        let centre = n as f64 / 2.0;
        let disc = |y: usize, x: usize| (y as f64 - centre).hypot(x as f64 - centre) < 0.3 * n as f64;
        let rim = |y: usize, x: usize| y.min(x) == 0 || y.max(x) == n - 1;
        let value = |y, x| match (rim(y, x), disc(y, x)) {
            (true, _) => 900.0,
            (_, true) => 3.0,
            _ => 0.0,
        };
        let data = ArrayD::from_shape_fn(IxDyn(&[1, n, n]), |i| C32::new(value(i[1], i[2]), 0.0));
        let image = Image::new(data, Geometry::default()).unwrap();
        write_image(&path, &image, &PngOptions::preview(1, 1)).unwrap();
        let (width, height, _, bytes) = decode(&path);
        assert_eq!((width, height), (side, side));
        assert_eq!((bytes[0], bytes[height / 2 * width + width / 2]), (255, 128), "{n}");
    }
}
