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
        repetition: Some(1),
        enlarge: 2,
        ..PngOptions::default()
    };
    write_image(&path, &image, &options).unwrap();
    let (width, height, _, bytes) = decode(&path);
    // Four slices of 3 × 5 are nearest to a square as 6 × 10 or 12 × 5 … 2 columns.
    assert_eq!((width, height), (2 * 10, 2 * 6));
    let at = |y: usize, x: usize| bytes[y * width + x];
    assert_eq!([at(0, 0), at(0, 19), at(11, 0), at(11, 19)], [0, 85, 170, 255]);

    let phase = PngOptions { part: Part::Phase, repetition: Some(0), ..PngOptions::default() };
    write_image(&path, &image, &phase).unwrap();
    // arg(i) = π/2 is three quarters of the way from −π to π; arg(0) is half.
    assert_eq!(decode(&path).3.iter().filter(|v| **v == 191).count(), 3 * 15);
    for bad in [
        PngOptions { repetition: Some(2), ..PngOptions::default() },
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

#[test]
fn a_series_becomes_a_montage_of_one_slice_over_time() {
    let folder = folder();
    let path = folder.path().join("a.png");
    let data = ArrayD::from_shape_fn(IxDyn(&[40, 3, 2, 2]), |i| C32::new((100 * i[1] + i[0]) as f32, 0.0));
    let image = Image::new(data, Geometry::default()).unwrap();
    for (slices, slice) in [(None, 1), (Some(vec![2]), 2), (Some(vec![0, 1]), 1)] {
        let low = 100.0 * slice as f32;
        let options = PngOptions {
            window: Window::Range { low, high: low + 39.0 },
            montage: Montage { slices, ..Montage::default() },
            ..PngOptions::default()
        };
        write_image(&path, &image, &options).unwrap();
        let (width, height, _, bytes) = decode(&path);
        // Sixteen tiles, four by four, from the first to the last.
        assert_eq!((width, height), (8, 8));
        let tiles: Vec<u8> = (0..16).map(|tile| bytes[tile / 4 * 2 * width + tile % 4 * 2]).collect();
        assert!(tiles[0] < 10 && tiles[15] > 245, "{tiles:?}");
        assert!(tiles.windows(2).all(|pair| pair[1] > pair[0]), "{tiles:?}");
    }
    let beyond = PngOptions {
        montage: Montage { slices: Some(vec![3]), ..Montage::default() },
        ..PngOptions::default()
    };
    assert!(write_image(&path, &image, &beyond).is_err());
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
