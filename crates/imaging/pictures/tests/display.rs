//! Windows, colours, montages and enlargement.

use ndarray::{Array1, Array2, Array3, array, s};
use proptest::prelude::*;
use rayspin_core::{C32, Error};
use rayspin_imaging::display::{
    ColourMap, Limits, Montage, Part, Window, error_map, evenly_spaced, montage, montage_filled, part,
    square_pixels, to_colour, to_grey, upscale_bilinear, upscale_nearest,
};

#[test]
fn parts_of_a_complex_value() {
    let image = array![[C32::new(3.0, -4.0)]];
    let shown = |p| part(image.view(), p)[[0, 0]];
    assert_eq!((shown(Part::Magnitude), shown(Part::Real), shown(Part::Imaginary)), (5.0, 3.0, -4.0));
    assert!((shown(Part::Phase) - (-4.0f32).atan2(3.0)).abs() < 1e-6);
}

#[test]
fn percentiles_interpolate_as_numpy_does() {
    let values = Array1::from_iter((0..11).rev().map(|v| v as f32));
    let limits = |low, high| Window::Percentile { low, high }.limits(values.view()).unwrap();
    assert_eq!(limits(0.0, 100.0), Limits { low: 0.0, high: 10.0 });
    assert_eq!(limits(25.0, 73.0), Limits { low: 2.5, high: 7.3 });
    let with_gaps = array![f32::NAN, 1.0, f32::INFINITY, 3.0, f32::NEG_INFINITY];
    assert_eq!(Window::FULL.limits(with_gaps.view()).unwrap(), Limits { low: 1.0, high: 3.0 });
    assert_eq!(Window::FULL.limits(array![7.0f32].view()).unwrap(), Limits { low: 7.0, high: 7.0 });
}

#[test]
fn windows_that_make_no_sense_are_refused() {
    let values = array![1.0f32, 2.0];
    for window in [
        Window::Percentile { low: -1.0, high: 50.0 },
        Window::Percentile { low: 60.0, high: 50.0 },
        Window::Percentile { low: 0.0, high: 100.1 },
        Window::Percentile { low: f64::NAN, high: 50.0 },
        Window::Range { low: 2.0, high: 1.0 },
        Window::Range { low: 1.5, high: 1.5 },
        Window::Range { low: f32::NAN, high: 1.0 },
        Window::Range { low: 0.0, high: f32::INFINITY },
    ] {
        assert!(matches!(window.limits(values.view()), Err(Error::Value { .. })), "{window:?}");
    }
    assert!(Window::FULL.limits(array![f32::NAN].view()).is_err());
    assert!(Window::FULL.limits(Array1::<f32>::zeros(0).view()).is_err());
}

/// A disc of tissue, noise around it, and what each place adds.
fn slice(add: impl Fn(f64) -> f32) -> Array2<f32> {
    let mut state = 7u32;
    Array2::from_shape_fn((96, 96), |(y, x)| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let noise = f64::from(state) / f64::from(u32::MAX);
        let radius = (y as f64 - 48.0).hypot(x as f64 - 48.0) / 48.0;
        (if radius < 0.6 { 5.0 + 0.1 * noise } else { 0.2 * noise }) as f32 + add(radius)
    })
}

#[test]
fn a_preview_is_of_the_tissue_and_not_of_a_rim() {
    let limits = |values: &Array2<f32>| Window::Preview.limits(values.view()).unwrap();
    let percentiles = |values: &Array2<f32>| {
        let low = if values.iter().any(|value| *value < 0.0) { 0.5 } else { 0.0 };
        Window::Percentile { low, high: 99.5 }.limits(values.view()).unwrap()
    };
    // What has no rim is shown from the lowest value to the percentile.
    let plain = slice(|_| 0.0);
    assert_eq!(limits(&plain), percentiles(&plain));
    let shaded = slice(|radius| if radius < 0.6 { 3.0 * radius as f32 } else { 0.0 });
    assert_eq!(limits(&shaded), percentiles(&shaded));
    for rim in [40.0, 5e5] {
        let found = limits(&slice(|radius| if radius > 0.95 { rim } else { 0.0 }));
        assert!((10.0..10.3).contains(&found.high), "{found:?}");
        // Rims of either sign, as at the edge of a truncated projection.
        let found = limits(&slice(|radius| match radius {
            0.97.. => rim,
            0.93..0.97 => -rim,
            _ => -0.1,
        }));
        assert!((9.5..10.3).contains(&found.high) && (-5.2..-4.5).contains(&found.low), "{found:?}");
    }
    // Noise has no tissue, and a point in it is what there is to see.
    let point = slice(|radius| if radius < 0.05 { 1000.0 } else { 0.0 })
        .mapv(|value| if value > 900.0 { value } else { 0.0 });
    assert_eq!(limits(&point), percentiles(&point));
}

#[test]
fn grey_levels_are_linear_and_clamped() {
    let limits = Limits { low: -1.0, high: 1.0 };
    let values = array![-9.0f32, -1.0, 0.0, 0.5, 1.0, 2.0, f32::NAN, f32::INFINITY, f32::NEG_INFINITY];
    assert_eq!(to_grey(values.view(), limits), array![0u8, 0, 128, 191, 255, 255, 0, 255, 0]);
    let flat = Limits { low: 5.0, high: 5.0 };
    assert_eq!(to_grey(array![4.0f32, 5.0, 6.0].view(), flat), array![0u8, 0, 255]);
    let widest = Limits { low: f32::MIN, high: f32::MAX };
    assert_eq!(to_grey(array![f32::MIN, 0.0, f32::MAX].view(), widest), array![0u8, 128, 255]);
}

/// CIE 1976 lightness of an sRGB colour.
fn lightness(rgb: [u8; 3]) -> f64 {
    let linear = rgb.map(|c| {
        let c = f64::from(c) / 255.0;
        if c <= 0.04045 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) }
    });
    let y = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
    if y > 216.0 / 24389.0 { 116.0 * y.cbrt() - 16.0 } else { y * 24389.0 / 27.0 }
}

#[test]
fn the_error_map_rises_evenly_in_lightness() {
    let levels: Vec<f64> =
        (0..=255).map(|i| lightness(ColourMap::Inferno.colour(i as f32 / 255.0))).collect();
    let (first, last) = (levels[0], levels[255]);
    assert!(first < 1.0 && last > 97.0, "{first} {last}");
    for (i, pair) in levels.windows(2).enumerate() {
        assert!(pair[1] > pair[0], "{i}: {pair:?}");
    }
    for (i, level) in levels.iter().enumerate() {
        let line = first + (last - first) * i as f64 / 255.0;
        // The map is uniform in CAM02-UCS. Its lightness departs from the lightness of CIE 1976 by about this
        // much.
        assert!((level - line).abs() < 6.0, "{i}: {level} {line}");
    }
    assert_eq!(ColourMap::Inferno.colour(f32::NAN), [0, 0, 4]);
    assert_eq!(ColourMap::Inferno.colour(9.0), [252, 255, 164]);
    assert_eq!(ColourMap::Grey.colour(0.5), [128; 3]);
}

#[test]
fn colour_pictures_have_rows_down_and_columns_right() {
    let mut image = Array2::<f32>::zeros((2, 3));
    image[[0, 2]] = 1.0;
    let picture = to_colour(image.view(), Limits { low: 0.0, high: 1.0 }, ColourMap::Grey);
    assert_eq!(picture.dim(), (2, 3, 3));
    assert_eq!(picture.slice(s![0, 2, ..]).to_vec(), [255; 3]);
    assert_eq!(picture.iter().filter(|&&v| v > 0).count(), 3);
}

#[test]
fn error_maps_apply_the_fitted_scale() {
    let reference = array![[C32::new(0.0, 1.0), C32::new(2.0, 0.0)]];
    let image = reference.mapv(|v| v * C32::new(0.0, 2.0));
    let map = error_map(image.view(), reference.view(), [0.0, -0.5]).unwrap();
    assert!(map.iter().all(|&v| v == 0.0));
    let map = error_map(image.view(), reference.view(), [1.0, 0.0]).unwrap();
    assert!((map[[0, 1]] - 20.0f32.sqrt()).abs() < 1e-6);
    assert!(error_map(image.view(), reference.t(), [1.0, 0.0]).is_err());
}

#[test]
fn montages_read_left_to_right_and_down() {
    let volume = Array3::from_shape_fn((5, 2, 3), |(z, y, x)| (100 * z + 10 * y + x) as u16 + 1);
    let picture = montage(volume.view(), &Montage { gap: 1, ..Montage::default() }).unwrap();
    // 3 rows × 2 columns of 2 × 3 tiles are 6 high and 6 wide.
    assert_eq!(picture.dim(), (3 * 2 + 2, 2 * 3 + 1));
    for z in 0..5 {
        let (top, left) = (z / 2 * 3, z % 2 * 4);
        assert_eq!(picture.slice(s![top..top + 2, left..left + 3]), volume.slice(s![z, .., ..]));
    }
    assert!(picture.row(2).iter().all(|&v| v == 0) && picture.column(3).iter().all(|&v| v == 0));
    assert_eq!(picture[[7, 6]], 0);
    let layout = Montage { gap: 1, ..Montage::default() };
    let filled = montage_filled(volume.view(), &layout, 7000).unwrap();
    assert_eq!((filled[[7, 6]], filled[[2, 0]], filled[[0, 0]]), (7000, 7000, 1));

    let chosen = Montage { slices: Some(vec![4, 0]), columns: Some(7), gap: 0 };
    let picture = montage(volume.view(), &chosen).unwrap();
    assert_eq!((picture.dim(), picture[[0, 0]], picture[[0, 3]]), ((2, 6), 401, 1));

    for bad in [
        Montage { slices: Some(vec![5]), ..Montage::default() },
        Montage { slices: Some(vec![]), ..Montage::default() },
        Montage { columns: Some(0), ..Montage::default() },
        Montage { gap: usize::MAX, ..Montage::default() },
        Montage { gap: usize::MAX / 4, ..Montage::default() },
    ] {
        assert!(matches!(montage(volume.view(), &bad), Err(Error::Value { .. })), "{bad:?}");
    }
    assert!(montage(Array3::<u8>::zeros((0, 2, 2)).view(), &Montage::default()).is_err());
}

#[test]
fn enlargement_keeps_pixel_centres() {
    let image = array![[0.0f32, 3.0], [6.0, 9.0]];
    let nearest = upscale_nearest(image.view(), 2).unwrap();
    assert_eq!(nearest.row(1).to_vec(), [0.0, 0.0, 3.0, 3.0]);
    let smooth = upscale_bilinear(image.view(), 3).unwrap();
    for ((y, x), &value) in image.indexed_iter() {
        assert!((smooth[[3 * y + 1, 3 * x + 1]] - value).abs() < 1e-5);
    }
    assert_eq!(smooth.row(1).to_vec(), [0.0, 0.0, 1.0, 2.0, 3.0, 3.0]);
    assert!(upscale_nearest(image.view(), 0).is_err());
    assert!(upscale_bilinear(image.view(), usize::MAX).is_err());
    let single = upscale_bilinear(array![[7.0f32]].view(), 4).unwrap();
    assert!(single.iter().all(|&v| v == 7.0));
}

proptest! {
    #[test]
    fn bilinear_enlargement_reproduces_a_plane(ny in 2usize..9, nx in 2usize..9, factor in 1usize..6, a in -2f32..2.0, b in -2f32..2.0) {
        let image = Array2::from_shape_fn((ny, nx), |(y, x)| a * y as f32 + b * x as f32);
        let large = upscale_bilinear(image.view(), factor).unwrap();
        for ((y, x), value) in large.indexed_iter() {
            let place = |i: usize, n: usize| ((i as f32 + 0.5) / factor as f32 - 0.5).clamp(0.0, (n - 1) as f32);
            prop_assert!((value - (a * place(y, ny) + b * place(x, nx))).abs() < 1e-4);
        }
    }

    #[test]
    fn every_slice_of_a_montage_is_found_and_the_grid_is_near_square(nz in 1usize..40, ny in 1usize..9, nx in 1usize..9) {
        let volume = Array3::from_shape_fn((nz, ny, nx), |(z, _, _)| z as u32 + 1);
        let picture = montage(volume.view(), &Montage::default()).unwrap();
        for z in 0..nz {
            prop_assert_eq!(picture.iter().filter(|&&v| v == z as u32 + 1).count(), ny * nx);
        }
        let (h, w) = picture.dim();
        let best = (1..=nz).map(|c| ((nz.div_ceil(c) * ny) as f64 / (c * nx) as f64).ln().abs()).fold(f64::MAX, f64::min);
        prop_assert!(((h as f64 / w as f64).ln().abs() - best).abs() < 1e-12);
    }

    #[test]
    fn evenly_spaced_slices_rise_and_are_centred(n in 1usize..200, count in 1usize..20) {
        let slices = evenly_spaced(n, count);
        prop_assert_eq!(slices.len(), count.min(n));
        prop_assert!(slices.windows(2).all(|p| p[0] < p[1]));
        prop_assert!(slices[slices.len() - 1] < n);
    }
}

#[test]
fn square_pixels_keep_the_extent_and_the_values_of_a_ramp() {
    // A ramp along y: pixel centres of the finer axis are interpolated, the outer half pixels repeat the
    // border.
    let image = Array2::from_shape_fn((5, 7), |(y, _)| y as f32);
    let square = square_pixels(image.view(), [3.0, 1.5], true).unwrap();
    assert_eq!(square.dim(), (10, 7));
    for ((y, _), &value) in square.indexed_iter() {
        assert_eq!(value, ((y as f32 + 0.5) / 2.0 - 0.5).clamp(0.0, 4.0));
    }
    let nearest = square_pixels(image.view(), [3.0, 1.5], false).unwrap();
    assert!(nearest.indexed_iter().all(|((y, _), &value)| value == (y / 2) as f32));
    let across = square_pixels(image.t(), [1.0, 2.5], true).unwrap();
    assert_eq!(across.dim(), (7, 13));
    assert_eq!(square_pixels(image.view(), [1.0, 1.005], true).unwrap(), image);
    for spacing in [[0.0, 1.0], [-1.0, 1.0], [f64::NAN, 1.0], [1.0, 100.0]] {
        assert!(square_pixels(image.view(), spacing, true).is_err(), "{spacing:?}");
    }
}
